"""Guards: what a solver says is held against its own point and the points in hand."""
