"""The hyperplane of a minimax probability machine without a solver."""

from __future__ import annotations

import math

from ceopt.formulations.programs.minimax import Ambiguity, ClassMoments
from ceopt.surrogates.minimax.cone_program import by_program
from ceopt.surrogates.minimax.hyperplane import Hyperplane, hyperplane_of, matrices_of
from ceopt.surrogates.minimax.limit import limit_of
from ceopt.surrogates.minimax.norm_sum import least_norm_sum

__all__ = ["hyperplane"]


def hyperplane(classes: ClassMoments, ambiguity: Ambiguity, solver: str | None) -> Hyperplane:
    """Return the least hyperplane: exactly where ``solver`` is None, else by the cone program.

    One infinite radius is answered in closed form. Where the exact method does not prove its answer, the better of it
    and the cone program's is returned.
    """
    if not all(map(math.isfinite, ambiguity.radii)):
        return limit_of(classes, ambiguity)
    unit, matrices = matrices_of(classes, ambiguity)
    if solver is not None:
        return hyperplane_of(classes, ambiguity, by_program(classes, ambiguity, matrices, solver), unit)
    found = least_norm_sum(classes.difference, matrices)
    if not found.is_proved:
        found = min(found, by_program(classes, ambiguity, matrices, "auto"), key=lambda one: one.value)
    return hyperplane_of(classes, ambiguity, found, unit)
