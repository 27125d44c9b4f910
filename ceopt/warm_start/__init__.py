"""Good answers before any program is solved."""
