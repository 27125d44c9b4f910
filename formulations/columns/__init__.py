"""Columns of the counterfactual as variables, one coordinate a column, and the rows that follow from what is asked."""

from ceopt.formulations.columns.coordinate import (
    AbstractCharge,
    AbstractCoordinate,
    Category,
    Free,
    Price,
    Ranked,
    Steps,
)
from ceopt.formulations.columns.numeric import Numeric

__all__ = ["AbstractCharge", "AbstractCoordinate", "Category", "Free", "Numeric", "Price", "Ranked", "Steps"]
