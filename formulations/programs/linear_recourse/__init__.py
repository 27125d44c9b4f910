"""Programs of recourse on a linear model given as plain arrays: robust projection, ROAR, Wachter."""
