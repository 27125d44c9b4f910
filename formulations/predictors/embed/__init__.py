"""Embedded models: a representation as a Pyomo block, one file per formulation."""
