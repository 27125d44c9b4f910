"""SCIP."""
