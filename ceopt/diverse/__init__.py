"""Sets of explanations that do not jump: diverse candidates, complete enumeration, and the choice of a subset."""

from ceopt.diverse.exhaustive import exhaustive
from ceopt.diverse.explainer import DiverseRobustExplainer
from ceopt.diverse.subset import Selection, select

__all__ = ["DiverseRobustExplainer", "Selection", "exhaustive", "select"]
