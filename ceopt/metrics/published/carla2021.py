"""CARLA: Pawelczyk, Bielawski, van den Heuvel, Richter & Kasneci (2021), ``carla/evaluation/catalog``.

Measured on the columns that the model sees: numbers in [0, 1], categories as 0/1 columns. One counterfactual a person;
rows with a missing value are people without one, who count for the success rate only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.metrics.changes import immutable_changes, redundancy
from ceopt.metrics.plausibility import favoured, favoured_share
from ceopt.metrics.published.measure import RUN_TIME, Evidence, Measure
from ceopt.metrics.rows import Floats, frame_of
from ceopt.metrics.validity import success_rate
from ceopt.tolerances import CARLA_STILL

__all__ = ["CARLA2021"]

_CODE = "CARLA evaluation/catalog"


def _found(known: Evidence) -> pd.DataFrame | Floats:
    """Return the rows that have no missing value."""
    table = frame_of(known.S)
    if isinstance(table, pd.DataFrame):
        return table.dropna()
    array = np.asarray(table)
    return array[~pd.isna(array).any(axis=1)] if array.ndim == 2 else array


def _mean(known: Evidence, of: Callable[[], NDArray[Any]]) -> float:
    return float(of().mean()) if len(_found(known)) else float("nan")


def _moved(known: Evidence, length: Callable[[Floats], NDArray[Any]]) -> float:
    def lengths() -> NDArray[Any]:
        home, points = known.encoded("carla2021", x=known.factual, S=_found(known))
        return length(points - home)

    return _mean(known, lengths)


def _ynn(known: Evidence) -> float:
    if not len(_found(known)):
        return float("nan")
    points, people = known.encoded("ynn", include_data=True, S=_found(known))
    which = favoured(known.data, known.model, known.target, known.labels, len(people), known.space)
    return favoured_share(points, people, known.neighbours, "l2", which)


def _distance(name: str, formula: str, length: Callable[[Floats], NDArray[Any]]) -> Measure:
    return Measure(
        name=f"{name}_distance",
        function=formula,
        better="lower",
        needs=("factual", "range"),
        source=f"{_CODE}/distance.py",
        of=lambda e: _moved(e, length),
    )


#: Means over counterfactuals of what CARLA lists row by row.
CARLA2021 = (
    Measure(
        name="success_rate",
        function="success_rate",
        better="higher",
        needs=(),
        source=f"{_CODE}/success_rate.py",
        of=lambda e: success_rate(e.S, n=e.n),
        when_empty=0.0,
    ),
    _distance(
        "l0", "encoded columns that move by more than 1e-5", lambda moves: (np.abs(moves) > CARLA_STILL).sum(axis=1)
    ),
    _distance("l1", "distance('l1') of encoded columns", lambda moves: np.abs(moves).sum(axis=1)),
    _distance("l2", "distance('l2') ** 2 of encoded columns: no root", lambda moves: (moves**2).sum(axis=1)),
    _distance("linf", "distance('linf') of encoded columns", lambda moves: np.abs(moves).max(axis=1)),
    Measure(
        name="constraint_violation",
        function="immutable_changes",
        better="lower",
        needs=("factual", "space"),
        source=f"{_CODE}/violations.py",
        of=lambda e: _mean(e, lambda: immutable_changes(e.factual, _found(e), e.space)),  # type: ignore[arg-type]
    ),
    Measure(
        name="redundancy",
        function="redundancy",
        better="lower",
        needs=("factual", "model", "target"),
        source=f"{_CODE}/redundancy.py",
        of=lambda e: _mean(e, lambda: redundancy(e.factual, _found(e), e.model, e.target, space=e.space)),
    ),
    Measure(
        name="ynn",
        function="ynn(k=neighbours) of encoded columns",
        better="higher",
        needs=("data", "classes", "target"),
        source=f"{_CODE}/ynn.py",
        of=_ynn,
    ),
    RUN_TIME.by(f"{_CODE}/time.py", name="avg_time"),
)
