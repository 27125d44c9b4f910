"""How one column's counterfactual value is written with variables: one file per kind of coordinate."""

from ceopt.formulations.coordinates.category import Category
from ceopt.formulations.coordinates.chosen import at_least, at_most, close, equals, members, one_of
from ceopt.formulations.coordinates.coordinate import AbstractCharge, AbstractCoordinate, Price
from ceopt.formulations.coordinates.numeric import Numeric
from ceopt.formulations.coordinates.ranked import Ranked
from ceopt.formulations.coordinates.steps import Steps

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
