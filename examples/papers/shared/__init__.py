"""What the examples that do a paper's experiments again share."""
