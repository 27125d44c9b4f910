"""Every quadratic of a program as a second-order cone, for solvers and files that take cones alone."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.compile.convexity import cone_of, factor, is_convex
from ceopt.solvers.compile.rows_and_cones import Auxiliary, ConeRows, resized
from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import UnsupportedProblemError

__all__ = ["cones_of_rows", "without_quadratics"]


def cones_of_rows(compiled: CompiledModel) -> list[ConeRows]:
    """Return a cone for each quadratic row of the model.

    Raises
    ------
    UnsupportedProblemError
        A row is not convex and has not the shape of a second-order cone.
    """
    cones = []
    for row in compiled.quadratics:
        cone = cone_of(row, compiled.lb)
        if cone is None:
            raise UnsupportedProblemError(
                "A convex solver",
                "convex quadratic rows",
                f"constraint {row.constraint.name!r} is not convex",
                "Use SCIP or Gurobi, or restate it.",
            )
        cones.append(cone)
    return cones


def without_quadratics(compiled: CompiledModel) -> CompiledModel:
    r"""Return the same program with every convex quadratic as a cone, and so with a linear objective.

    A quadratic objective becomes :math:`c^\top x + w` with a last column :math:`w \ge \tfrac12 x^\top Q x` (to
    maximise, :math:`c^\top x - w`); a program without quadratics comes back as it is.

    Raises
    ------
    UnsupportedProblemError
        A quadratic is not convex.
    """
    if compiled.Q is None and not compiled.quadratics:
        return compiled
    if not is_convex(compiled.Q, compiled.sense):
        raise UnsupportedProblemError(
            "A convex solver",
            "a convex quadratic objective",
            "this one is not convex",
            "Use SCIP or Gurobi, or state a convex or a linear cost.",
        )
    cones = [*compiled.cones, *cones_of_rows(compiled)]
    if compiled.Q is None:
        conic = compiled.extended()
        conic.quadratics = []
        conic.cones = cones
        return conic
    n = len(compiled.columns)
    conic = compiled.extended(columns=[Auxiliary("quadratic objective")], lb=[0.0], ub=[np.inf])
    body = factor(sp.csc_array(compiled.sense * compiled.Q))
    unit = sp.csr_array(([1.0], ([0], [n])), shape=(1, n + 1))
    matrix = sp.vstack([unit, sp.csr_array((1, n + 1)), resized(body.T.tocsr(), (n + 1, body.shape[0])).T])
    constant = np.zeros(matrix.shape[0])
    constant[1] = 1.0
    conic.c[n] = compiled.sense
    conic.Q = None
    conic.quadratics = []
    conic.cones = [cone.widened(n + 1) for cone in cones]
    conic.cones.append(ConeRows(None, Cone.ROTATED, constant, sp.csr_array(matrix)))
    return conic
