"""The battery that every solver passes: small plain Pyomo models of every class, each with its known answer.

A solver is tested on all of them by ``tests/solvers/test_battery.py``, for the classes that its entry in
``ceopt.solvers.registry`` claims; a model is added by writing a builder in the file of its class.
"""

from battery import conic, integer, linear, quadratic
from battery.case import MODELS, Case

__all__ = ["MODELS", "Case", "conic", "integer", "linear", "quadratic"]
