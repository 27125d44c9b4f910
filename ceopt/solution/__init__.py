"""Results: verified answers, as JSON and as tables."""
