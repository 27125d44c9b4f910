"""Columns of the counterfactual as variables: one file per kind of coordinate."""

from ceopt.formulations.columns.category import Category
from ceopt.formulations.columns.coordinate import AbstractCharge, AbstractCoordinate, Price
from ceopt.formulations.columns.levels import at_least, at_most, close, equals, members, one_of
from ceopt.formulations.columns.numeric import Numeric
from ceopt.formulations.columns.ordinal import Ranked
from ceopt.formulations.columns.steps import Steps

__all__ = [
    "AbstractCharge",
    "AbstractCoordinate",
    "Category",
    "Numeric",
    "Price",
    "Ranked",
    "Steps",
    "at_least",
    "at_most",
    "close",
    "equals",
    "members",
    "one_of",
]
