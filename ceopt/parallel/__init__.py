"""Tasks side by side, and an estimator trained many times over."""
