"""How a stated model is solved; knows nothing of counterfactuals."""

from ceopt.solvers.compiled import CompiledModel, compile_model
from ceopt.solvers.problem import Outcome, ProblemClass, Result, Solution, Status
from ceopt.solvers.registry import available
from ceopt.solvers.run import solve

__all__ = [
    "CompiledModel",
    "Outcome",
    "ProblemClass",
    "Result",
    "Solution",
    "Status",
    "available",
    "compile_model",
    "solve",
]
