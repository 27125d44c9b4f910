"""Robustness through diversity: Leofante & Potyka (2024), tables 1 and 2, as the released ``util.py`` computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ceopt.metrics.distance import k_distance, set_distance
from ceopt.metrics.diversity import k_diversity
from ceopt.metrics.published.measure import RUN_TIME, Evidence, Measure
from ceopt.metrics.validity import label_change

__all__ = ["LEOFANTE_POTYKA2024"]

_PAPER = "Leofante & Potyka 2024"


def _validity(known: Evidence) -> float:
    """Return 1 if every counterfactual, also of the moved input, has another label than the factual; else 0."""
    sets = [known.S] if known.others is None or not len(known.others) else [known.S, known.others]
    changed = (label_change(known.factual, one, known.model, space=known.space) for one in sets)
    return float(all(share == 1.0 for share in changed))


def _diversity(S: Any, norm: Any) -> float:
    # One counterfactual: undefined in the paper, 0 in the code, which the published means contain.
    return k_diversity(S, norm) if len(S) > 1 else 0.0


def _measures(norm: Any) -> tuple[Measure, ...]:
    def listed(  # noqa: PLR0917 - the columns of the table below
        name: str, function: str, needs: tuple[str, ...], equation: str, of: Callable[[Evidence], float], better: Any
    ) -> Measure:
        source = f"{_PAPER}, {equation}"
        return Measure(name=f"{name}_{norm}", function=function, better=better, needs=needs, source=source, of=of)

    def distance(kind: Any) -> Callable[[Evidence], float]:
        def of(known: Evidence) -> float:
            first, second = known.encoded("leofante_potyka2024", A=known.S, B=known.others)
            return set_distance(first, second, kind, norm)

        return of

    def from_factual(known: Evidence) -> float:
        home, points = known.encoded("leofante_potyka2024", x=known.factual, S=known.S)
        return k_distance(home, points, norm)

    among = ("range",)
    apart = ("others", "range")
    return (
        listed("k_distance", f"k_distance({norm!r})", ("factual", "range"), "(12)", from_factual, "lower"),
        listed(
            "k_diversity", f"k_diversity({norm!r}), 0 for one counterfactual", among, "(13); util.py",
            lambda e: _diversity(e.encoded("leofante_potyka2024", S=e.S)[0], norm), "higher",
        ),
        listed("set_distance_sum", f"set_distance('sum', {norm!r})", apart, "(4)", distance("sum"), "lower"),
        listed("set_distance_max", f"set_distance('max', {norm!r})", apart, "(5)", distance("max"), "lower"),
    )  # fmt: skip


#: Both norms of the paper. ``others`` is the set for the moved input.
LEOFANTE_POTYKA2024 = (
    Measure(
        name="validity",
        function="label_change == 1, of S and of others",
        better="higher",
        needs=("factual", "model"),
        source=f"{_PAPER}, tables 1 and 2; util.py",
        of=_validity,
    ),
    *_measures("l1"),
    *_measures("l2"),
    RUN_TIME.by(f"{_PAPER}, tables 1 and 2", name="time"),
)
