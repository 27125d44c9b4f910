"""Every near-optimal answer: one of each cell of a model, by branch and bound."""
