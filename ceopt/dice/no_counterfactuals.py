"""The error where nobody gets a counterfactual, which scripts written for dice_ml expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ceopt.solvers.errors import CeoptError
from ceopt.status import Status

if TYPE_CHECKING:
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["NoCounterfactualsError", "require_some"]

#: So many rows are told why.
_SHOWN = 3
_NEEDLESS = "Nothing is to be changed: ask for another outcome."
_THEN = (
    "Let more columns vary (features_to_vary), widen permitted_range, or ask for another outcome; ceopt.explain says "
    "it by a status, without an error."
)


class NoCounterfactualsError(CeoptError, ValueError):
    """None of the rows that were asked about has a counterfactual."""


def require_some(who: str, results: Sequence[SolutionSet]) -> None:
    """Raise where no result has an answer, and say of the first rows why.

    Raises
    ------
    NoCounterfactualsError
        There is none at all.
    """
    if any(len(result) for result in results):
        return
    told = []
    for result in results[:_SHOWN]:
        why = result.reason.rstrip(".")
        told.append(f"row {result.query_id!r}: {result.status.value}" + (f", {why}" if why else ""))
    if len(results) > _SHOWN:
        told.append("...")
    but = f"there is none for any of {len(results)} ({'; '.join(told)})"
    is_needless = all(result.status is Status.ALREADY_FAVOURABLE for result in results)
    raise NoCounterfactualsError(who, "a counterfactual for some row", but, _NEEDLESS if is_needless else _THEN)
