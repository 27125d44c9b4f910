"""The nearest rows of the data that the model favours, as one person could become them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ceopt.checking.answer_check import broken_rules
from ceopt.diverse.decisions import Memory
from ceopt.diverse.distance import Floats
from ceopt.diverse.filters import within
from ceopt.diverse.nearest import Neighbours, in_order
from ceopt.diverse.projection import Projection
from ceopt.formulations.constraints import rule_name
from ceopt.formulations.constraints.rule import lacks_rows

if TYPE_CHECKING:
    from ceopt.diverse.decisions import Decisions
    from ceopt.diverse.training_rows import TrainingRows

__all__ = ["Candidates", "Cutoff", "Keeper", "Searched", "nearest_candidates", "origin_in_data"]

#: Rows that are looked at first, at least, and per candidate that is wanted; then twice as many, and so on.
_FIRST, _PER_CANDIDATE = 512, 4
#: Rows that are looked at before all are asked about and remembered.
_PATIENCE = 1024


@final
@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """The training rows, an index of them, and what is known of them."""

    rows: TrainingRows
    neighbours: Neighbours
    memory: Memory


@final
@dataclass(frozen=True, slots=True)
class Cutoff:
    """Which candidates are near: the ``count`` nearest, or those within (1 + ``share``) times the nearest distance."""

    count: int | None
    share: float | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Keeper:
    """Says which points are answers: the model agrees, and every rule of the space and of the user is kept.

    Parameters
    ----------
    projection
        Puts points where the person may go.
    decisions
        What the model says.
    origin
        From where distances and directions are seen, and to where segments lead, (d,): the person's own row, or
        another point that is no answer.
    """

    projection: Projection
    decisions: Decisions
    origin: Floats

    @property
    def factual(self) -> dict[str, float]:
        """The person, coordinates by name."""
        return self.named(self.projection.home)

    def named(self, point: Floats) -> dict[str, float]:
        """Return a point as coordinates by name."""
        return dict(zip(self.projection.space.names, point.tolist(), strict=True))

    def broken(self, point: Floats) -> tuple[str, ...]:
        """Return what a point breaks, in words."""
        rules = self.projection.rules
        return broken_rules(rules, self.projection.space, self.factual, self.named(point))

    def accepts(self, points: Floats) -> NDArray[np.bool_]:
        """Return which of points (n, d), put back by the projection, are answers.

        Such points keep the space's own rules, so that there is something to check only where the user has rules.
        """
        good = self.decisions.meets(points)
        if self.projection.rules:
            for k in np.flatnonzero(good):
                good[k] = not self.broken(points[k])
        return good


@final
@dataclass(slots=True)
class Candidates:
    """What was found.

    Parameters
    ----------
    places, points, distances
        Rows of the data, what the person could become of each (k, d), and how far it is, nearest first.
    favoured
        How many rows the model favours, of those that were looked at.
    looked_at
        How many rows that was.
    lost
        How many of the favoured ones it no longer favours once they are put back.
    broken
        How many break each rule all the same, by its name.
    """

    places: list[int] = field(default_factory=list)
    points: list[Floats] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    favoured: int = 0
    looked_at: int = 0
    lost: int = 0
    broken: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.places)


def nearest_candidates(data: Searched, keeper: Keeper, cutoff: Cutoff, *, keep_repeats: bool = False) -> Candidates:
    """Return the candidates up to the cutoff: nearest first, ties in the data's order.

    Rows are asked about in blocks of growing size, from the nearest on, so that a large table is hardly looked at where
    favourable rows are common. Where they are rare, all rows are asked about and the answer is remembered.

    A candidate is a row that the model favours, put back by the projection, that the model still favours and that keeps
    every rule. Of candidates that have become equal the first is kept.
    """
    known = data.memory.recall(keeper.decisions)
    if known is None:
        found = _search(data, keeper, cutoff, keep_repeats=keep_repeats, patience=_PATIENCE)
        if found is not None:
            return found
        known = data.memory.learn(keeper.decisions, data.rows.coordinates)
    found = _search(data, keeper, cutoff, keep_repeats=keep_repeats, known=known)
    assert found is not None  # noqa: S101 - only a search without patience gives up
    return found


def _search(
    data: Searched,
    keeper: Keeper,
    cutoff: Cutoff,
    *,
    keep_repeats: bool,
    known: NDArray[np.bool_] | None = None,
    patience: float = math.inf,
) -> Candidates | None:
    """Return the candidates; None where they are not all found among as many rows as ``patience`` goes for."""
    found = Candidates()
    had = set[bytes]()
    rows = data.rows.coordinates
    # Of rows that are known to be favoured the others need not be looked at.
    which = np.arange(len(rows)) if known is None else np.flatnonzero(known)
    raw = rows if known is None else rows[which]
    points = keeper.projection(raw)
    may_repeat = points is not raw and not keep_repeats
    first = max(_FIRST, _PER_CANDIDATE * (cutoff.count or 0))
    for places, distances in _blocks(data.neighbours if known is None else None, keeper, raw, points, first):
        if found.looked_at > patience:
            return None
        for k in np.flatnonzero(_favoured(keeper, raw, points, places, found, is_known=known is not None)).tolist():
            distance = float(distances[k])
            point = points[places[k]]
            if _is_full(found, cutoff, distance):
                return found
            if may_repeat:
                mark = (point + 0.0).tobytes()  # -0.0 is 0.0
                if mark in had:
                    continue
                had.add(mark)
            if keeper.projection.rules and (names := _names_of(keeper, point)):
                found.broken.update(names)
                continue
            found.places.append(int(which[places[k]]))
            found.points.append(point)
            found.distances.append(distance)
        if len(distances) and _is_full(found, cutoff, float(distances[-1])):
            return found
    found.looked_at = len(rows)
    return found


def origin_in_data(data: Searched, keeper: Keeper) -> Floats:
    """Return the nearest row of the data that is no answer, with the person's own categories, put back by every rule.

    The person's row itself where there is none.
    """
    projection = keeper.projection
    rows = data.rows.coordinates
    switch = projection.switch
    points = projection(np.where(switch, keeper.origin, rows) if switch.any() else rows)
    for places, _ in _blocks(data.neighbours, keeper, rows, points, _FIRST):
        others = np.flatnonzero(~keeper.accepts(points[places]))
        if len(others):
            return np.asarray(points[places[others[0]]])
    return keeper.origin


def _blocks(
    neighbours: Neighbours | None, keeper: Keeper, raw: Floats, points: Floats, first: int
) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """Give places and distances of the points, nearest first; by the index, if there is one and none was put back."""
    if points is raw and neighbours is not None:
        yield from neighbours.blocks(keeper.origin, first)
        return
    distances = keeper.projection.distance.between(keeper.origin, points)
    for places in in_order(distances, first):
        yield places, distances[places]


def _favoured(
    keeper: Keeper, raw: Floats, points: Floats, places: NDArray[np.intp], found: Candidates, *, is_known: bool
) -> NDArray[np.bool_]:
    """Return which rows the model favours, as they are and as they are put back, and count them."""
    good = np.ones(len(places), dtype=bool) if is_known else keeper.decisions.meets(raw[places])
    found.looked_at += len(places)
    found.favoured += int(good.sum())
    if points is not raw:
        moved = np.flatnonzero(good & (points[places] != raw[places]).any(axis=1))
        still = keeper.decisions.meets(points[places[moved]])
        good[moved[~still]] = False
        found.lost += int((~still).sum())
    return good


def _is_full(found: Candidates, cutoff: Cutoff, distance: float) -> bool:
    if cutoff.count is not None:
        return len(found) >= cutoff.count
    assert cutoff.share is not None  # noqa: S101 - one of the two is given
    return bool(found.distances) and distance > within(cutoff.share, found.distances[0])


def _names_of(keeper: Keeper, point: Floats) -> list[str]:
    """Return the names of the rules that a point breaks."""
    projection = keeper.projection
    factual = keeper.factual
    named = keeper.named(point)
    own = [
        rule_name(rule, place)
        for place, rule in enumerate(projection.rules)
        if not lacks_rows(rule) and not rule.violation(projection.space, factual, named) <= 0
    ]
    return own or ["the space"] * bool(keeper.broken(point))
