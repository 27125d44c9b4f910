"""Solving, exporting and reading back a stated model; nothing here knows of counterfactuals."""

from ceopt.solvers.built_in import BUILT_IN
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.cutting_planes import CutRound, CuttingPlanes, cutting_planes
from ceopt.solvers.files.read import load, read
from ceopt.solvers.files.write import write
from ceopt.solvers.incremental import Session, session
from ceopt.solvers.manifest import Manifest, describe, manifest_of, model_summary
from ceopt.solvers.pool.pool import ApartVariables as Apart
from ceopt.solvers.pool.pool import Count, Support, count
from ceopt.solvers.problem import Outcome, ProblemClass, Result, Solution
from ceopt.solvers.problem import Stop as Status
from ceopt.solvers.pyomo_interface import register_with_pyomo
from ceopt.solvers.registry import Solver, available, register, register_built_in, unregister
from ceopt.solvers.run import solve

register_built_in(BUILT_IN)
register_with_pyomo()

__all__ = [
    "Apart",
    "CompiledModel",
    "Count",
    "CutRound",
    "CuttingPlanes",
    "Manifest",
    "Outcome",
    "ProblemClass",
    "Result",
    "Session",
    "Solution",
    "Solver",
    "Status",
    "Support",
    "available",
    "compile_model",
    "count",
    "cutting_planes",
    "describe",
    "load",
    "manifest_of",
    "model_summary",
    "read",
    "register",
    "session",
    "solve",
    "unregister",
    "write",
]
