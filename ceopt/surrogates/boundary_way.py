"""The last way out: a legal row that the model itself favours, brought nearer to the person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints.rule import mended_points
from ceopt.formulations.space.reachable import Interval, reach_of
from ceopt.oracle.model import broken_rules
from ceopt.solvers.deadline import OutOfTimeError, checkpoint
from ceopt.surrogates.scaled_columns import on_grid

if TYPE_CHECKING:
    from ceopt.search.prepare import Prepared
    from ceopt.solvers.checks import Floats
    from ceopt.surrogates.sampler import DecidedRows
    from ceopt.surrogates.scaled_columns import ScaledColumns

#: Rows of data that are tried, ways to them, points on each way, and halvings of a column's move.
_ENDS: Final = 50
_WAYS: Final = 5
#: Ends of few moves that are asked about, and orders by chance in which moves are taken.
_SPARSER: Final = 500
_ORDERS: Final = 10
_LINE: Final = 100
_HALVINGS: Final = 12
#: Share of the cost that a step towards a refused point saves at least.
_PROGRESS: Final = 0.01


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundaryWay:
    """Legal rows that the model favours and that keep every rule, found without a surrogate.

    Parameters
    ----------
    rows
        The data, and the black box.
    columns
        The scaled columns about the person.
    prepared
        Rules and cost, fitted to the data.
    factual
        The person's coordinates, (d,).
    """

    rows: DecidedRows
    columns: ScaledColumns
    prepared: Prepared
    factual: Floats

    def cost(self, point: Floats) -> float:
        """Return the cost of a point (d,)."""
        space = self.prepared.space
        return self.prepared.settings.cost.value(space, self._named(self.factual), self._named(point))

    def keeps_rules(self, point: Floats) -> bool:
        """Return whether a point (d,) keeps the rules of the space and of the user."""
        checkpoint("checking the rules")
        settings = self.prepared.settings
        return not broken_rules(settings.rules, self.prepared.space, self._named(self.factual), self._named(point))

    def from_data(self) -> Floats | None:
        """Return the cheapest favourable legal point on the ways to rows of data put where the person may go.

        Where the time ends it is the best so far.
        """
        ends = self._ends()
        if not len(ends):
            return None
        shares = np.arange(1, _LINE + 1) / _LINE
        best = ends[0]
        try:
            for end in ends:
                way = self.columns.between(self.factual, end, shares)
                kept = np.array(list(map(self.keeps_rules, way)))
                good = np.flatnonzero(kept & self._favourable(way))
                if len(good):
                    best = min(best, way[good[0]], key=self.cost)
        except OutOfTimeError:
            return np.asarray(best)
        return np.asarray(best)

    def nearer(self, point: Floats) -> Floats:
        """Return a good point brought nearer: each column put back as far as model and rules allow, the dearest first.

        Whole steps and levels first go back entirely; numbers that cannot are then halved on the way. Where the time
        ends it is the nearest so far.
        """
        best = point.copy()
        for column in self._dearest_first(point):
            trial = best.copy()
            trial[column] = self.factual[column]
            if self._is_good(trial, best):
                best = trial
                continue
            best = self._halved(best, column)
        return best

    def led(self, good: Floats, refused: Floats) -> Floats | None:
        """Return the cheapest good point between a good and a refused one; None if no point is cheaper."""
        limit = self.cost(good) * (1.0 - _PROGRESS)
        way = np.unique(self.columns.between(good, refused, np.arange(1, _LINE + 1) / _LINE), axis=0)
        priced = [(self.cost(point), point) for point in way]
        cheaper = [(price, point) for price, point in priced if price < limit and self.keeps_rules(point)]
        if not cheaper:
            return None
        points = np.array([point for _, point in cheaper])
        favourable = self._favourable(points)
        if not favourable.any():
            return None
        prices = np.array([price for price, _ in cheaper])
        return np.asarray(points[favourable][prices[favourable].argmin()])

    def _halved(self, point: Floats, column: int) -> Floats:
        interval = self.columns.intervals[column]
        if interval is None:
            return point
        best = point
        bad = self.factual[column]
        for _ in range(_HALVINGS):
            middle = best.copy()
            middle[column] = on_grid(np.array([(best[column] + bad) / 2.0]), interval)[0]
            if middle[column] in {best[column], bad}:
                break
            if self._is_good(middle, best):
                best = middle
            else:
                bad = middle[column]
        return best

    def _dearest_first(self, point: Floats) -> list[int]:
        def saved(column: int) -> float:
            trial = point.copy()
            trial[column] = self.factual[column]
            return self.cost(trial)

        return sorted(np.flatnonzero(point != self.factual).tolist(), key=saved)

    def _is_good(self, point: Floats, before: Floats) -> bool:
        """Return whether a point is no dearer, legal and favourable; False where the time ends before."""
        if self.cost(point) > self.cost(before):
            return False
        try:
            return self.keeps_rules(point) and bool(self._favourable(point[None])[0])
        except OutOfTimeError:
            return False

    def _ends(self) -> Floats:
        """Return the nearest favourable rows of data, put where the person may go, that keep every rule."""
        space = self.prepared.space
        person = self._named(self.factual)
        points = self.rows.coordinates[self.rows.favourable].copy()
        reach = reach_of(space, person)
        for j, name in enumerate(space.names):
            part = reach[name]
            if isinstance(part, Interval):
                points[:, j] = on_grid(points[:, j], part)
            else:
                points[~np.isin(points[:, j], part.ranks), j] = self.factual[j]
        points = mended_points(self.prepared.settings.rules, space, person, points)
        points = np.unique(points, axis=0)
        away = np.abs(self.columns.encoded(points) - self.columns.encoded(self.factual[None])).sum(axis=1)
        nearest = points[np.argsort(away, kind="stable")]
        good = list(filter(self.keeps_rules, nearest[: 4 * _ENDS]))[:_ENDS]
        if not good:  # as where few columns may change
            good = self._sparser(nearest[:_ENDS])[:_SPARSER]
        ends = np.array(good).reshape(-1, len(space))
        return np.asarray(ends[self._favourable(ends)][:_WAYS])

    def _sparser(self, points: Floats) -> list[Floats]:
        """Return points (n, d) with fewer of their moves that keep every rule, the nearest first, and most moves first.

        Of each the moves are taken in order of length and in some orders by chance, as many as the rules let.
        """
        rng = np.random.default_rng(0)
        found: dict[bytes, Floats] = {}
        for point in points:
            moved = np.flatnonzero(point != self.factual)
            lengths = [self.cost(self._with(point, moved[k : k + 1])) for k in range(len(moved))]
            orders = [moved[np.argsort(lengths)[::-1]], *(rng.permutation(moved) for _ in range(_ORDERS))]
            for order in orders:
                for count in range(len(order) - 1, 0, -1):
                    end = self._with(point, order[:count])
                    if end.tobytes() not in found and self.keeps_rules(end):
                        found[end.tobytes()] = end
                        break
        return list(found.values())

    def _with(self, point: Floats, columns: NDArray[np.int_]) -> Floats:
        """Return the person with some columns of a point."""
        end = self.factual.copy()
        end[columns] = point[columns]
        return end

    def _favourable(self, points: Floats) -> NDArray[np.bool_]:
        return self.rows.box.favourable(self.columns.frame(points))

    def _named(self, point: Floats) -> dict[str, float]:
        return dict(zip(self.prepared.space.names, point.tolist(), strict=True))
