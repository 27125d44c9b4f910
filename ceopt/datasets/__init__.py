"""Data to try things on: a loan book drawn from a known causal model, and real data sets read from a folder."""

from ceopt.datasets.bunch import Bunch, StructuralEquation
from ceopt.datasets.load import load
from ceopt.datasets.loans import loans

__all__ = ["Bunch", "StructuralEquation", "load", "loans"]
