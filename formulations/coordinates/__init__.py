"""How one column's counterfactual value is written with variables: one file per kind of coordinate."""

from ceopt.formulations.coordinates.category import Category
from ceopt.formulations.coordinates.coordinate import AbstractCoordinate, Price
from ceopt.formulations.coordinates.numeric import Numeric
from ceopt.formulations.coordinates.ranked import Ranked

__all__ = ["AbstractCoordinate", "Category", "Numeric", "Price", "Ranked"]
