"""The slope of a minimax probability machine by a solver of cone programs."""

from __future__ import annotations

import numpy as np

from ceopt.formulations.programs.minimax import Ambiguity, ClassMoments, minimax_machine
from ceopt.formulations.programs.parts import Floats
from ceopt.solvers import solve
from ceopt.solvers.checks import LARGEST
from ceopt.solvers.errors import InvalidValueError
from ceopt.surrogates.minimax.norm_sum import LeastNormSum, norms_of, polished, separating_weights

__all__ = ["by_program"]


def by_program(classes: ClassMoments, ambiguity: Ambiguity, matrices: list[Floats], solver: str) -> LeastNormSum:
    """Return the slope of :func:`~ceopt.formulations.programs.minimax_machine`, with its norms in ``matrices``.

    The program is stated in units in which the columns spread by about 1, and the solver's point is polished. Radii are
    finite.
    """
    a = classes.difference
    apart = separating_weights(a, matrices)
    if apart is not None:  # the optimum is 0, which a solver cannot tell from its tolerance
        return LeastNormSum(apart, np.zeros(len(matrices)), 0.0)
    units, radii = _units(classes, ambiguity)
    squares = np.outer(units, units)
    model = minimax_machine(
        np.zeros(len(a)),
        classes.cov_neg / squares,
        a / units,
        classes.cov_pos / squares,
        divergence=ambiguity.divergence,
        radius=radii,
        bures=ambiguity.bures,
    )
    result = solve(model, solver, relative_gap=1e-9)
    if result.status.value != "optimal" or result.gap is None:
        but = f"{result.solver} ended with {result.status.value!r}"
        who = "MinimaxProbabilityMachine"
        raise InvalidValueError(who, "a solver that finds the optimum", but, "Choose another, or solver=None.")
    weights = np.array([variable.value for variable in model.w.values()]) / units
    weights /= a @ weights
    found = LeastNormSum(weights, norms_of(weights, matrices), float(result.gap))
    return polished(a, matrices, found)


def _units(classes: ClassMoments, ambiguity: Ambiguity) -> tuple[Floats, tuple[float, float]]:
    """Return a unit of each column, and the radii in these units; one unit for all where lengths are compared."""
    sizes = np.sqrt(np.maximum(classes.cov_neg.diagonal() + classes.cov_pos.diagonal(), 0.0))
    if ambiguity.divergence not in {"quadratic", "bures"}:
        return np.where(sizes > 0.0, sizes, 1.0), ambiguity.radii
    unit = float(sizes.max()) or float(np.abs(classes.difference).max())
    power = 2.0
    if ambiguity.divergence == "quadratic":
        power = 4.0
    elif ambiguity.bures == "paper":
        power = 1.0
    largest = max(ambiguity.radii)
    if largest > LARGEST * unit**power:
        but = f"radius is {ambiguity.radii} and the columns spread by {unit:.3g}"
        then = "Give inf, whose limit it is, or the columns in greater units."
        raise InvalidValueError("MinimaxProbabilityMachine", "a radius in the units of the columns", but, then)
    neg, pos = (rho / unit**power for rho in ambiguity.radii)
    return np.full(len(sizes), unit), (neg, pos)
