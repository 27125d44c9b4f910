"""Programs of extreme numbers, solved in other units."""
