"""Bounds that a verified answer disproves: it costs less than a solver proved that anything can."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ceopt.solution.counterfactual import Counterfactual

__all__ = ["CHEAPER", "is_disproved", "ranked_anew"]

#: A cost is below another, or below a bound, if it is by more than this share: what a solver's tolerances explain.
CHEAPER = 1e-6
#: And by more than this, for costs of about 0.
_LEAST = 1e-9


def is_disproved(bound: float | None, cost: float) -> bool:
    """Tell whether the cost of a verified answer contradicts a bound on the least cost."""
    return bound is not None and bound > cost * (1.0 + CHEAPER) + _LEAST


def ranked_anew(
    answers: Sequence[tuple[Counterfactual, dict[str, float]]],
) -> list[tuple[Counterfactual, dict[str, float]]]:
    """Return answers as they stand, or in order of cost where one contradicts the bound of an earlier one.

    Each answer was looked for among those that differ from all before it, so a later one may not cost less than what
    was proved for an earlier one. Where it does, that bound proves nothing.
    """
    false = [
        any(is_disproved(answer.bound, later.cost) for later, _ in answers[place:])
        for place, (answer, _) in enumerate(answers)
    ]
    if not any(false):
        return list(answers)
    unbound = [
        (_without_bound(answer) if wrong else answer, p) for (answer, p), wrong in zip(answers, false, strict=True)
    ]
    ordered = sorted(unbound, key=lambda pair: pair[0].cost)
    return [(_with(answer, rank=rank), point) for rank, (answer, point) in enumerate(ordered, start=1)]


def _without_bound(answer: Counterfactual) -> Counterfactual:
    return _with(answer, bound=0.0, gap=answer.cost / max(answer.cost, 1e-12))


def _with(answer: Counterfactual, **changes: Any) -> Counterfactual:
    return replace(answer, values=answer.frame, **changes)  # type: ignore[arg-type]  # a frame keeps the dtypes
