"""From rows of data to the points of a hull: scaled, categories as 0/1, distinct, by cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints.hull.clusters import cluster_labels
from ceopt.formulations.constraints.hull.vertices import face, vertices
from ceopt.formulations.costs.base import scale_of
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.solvers.deadline import checkpoint

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["HullColumn", "HullPoints", "are_alike", "hull_points"]

Floats = NDArray[np.float64]

_WHO = "Hull"

#: What the time limit ends here.
_STAGE = "finding the points of a hull"
#: Columns wider than this cannot be held to a solver's absolute tolerance.
LARGE = 1e7


@final
@dataclass(frozen=True, slots=True)
class HullColumn:
    """A column as the hull sees it: ``raw / scale``, or whether a category takes the level of ``rank``."""

    name: str
    key: Any
    rank: int | None
    scale: float

    def of(self, values: Floats) -> Floats:
        """Return coordinates of the space's column as the hull sees them."""
        return np.asarray((values if self.rank is None else values == self.rank) / self.scale)

    def range(self, part: Any) -> tuple[float, float]:
        """Return the least and the greatest value that the reach of the space's column leaves."""
        if isinstance(part, Interval):
            return part.lower / self.scale, part.upper / self.scale
        values = self.of(np.array(part.ranks, dtype=np.float64))
        return float(values.min()), float(values.max())


@final
@dataclass(frozen=True, slots=True, eq=False)
class HullPoints:
    """The points that span the hulls, without those that change nothing.

    Parameters
    ----------
    columns
        What the D columns of ``values`` are.
    values
        (n, D), divided by the scales; the points of one cluster follow those of another.
    cluster
        (n,), position of each point's cluster among ``labels``.
    labels
        Of the clusters; (None,) where there are none.
    shift
        (D,), the value that occurs most often: what is left of most points once it is subtracted is 0.
    count
        Rows that were used, noise left out.
    given
        Rows that there were.
    """

    columns: tuple[HullColumn, ...]
    values: Floats
    cluster: NDArray[np.intp]
    labels: tuple[Any, ...]
    shift: Floats
    count: int
    given: int

    def size(self, radius: float) -> float:
        """Return the size that tolerances are shares of: 1, unless radius or columns are large, or a column small."""
        widths = np.ptp(self.values, axis=0)
        widest = float(widths.max())
        least = float(widths.min(initial=1.0, where=widths > 0.0))
        return max(least, radius, widest if widest > LARGE else 0.0)

    def of(self, point: Mapping[str, float]) -> Floats:
        """Return one point, coordinates by column, as the hull sees it, (D,)."""
        return np.array([float(column.of(np.float64(point[column.name]))) for column in self.columns])  # type: ignore[arg-type]

    def clusters(self) -> list[Floats]:
        """Return the points of each cluster."""
        return [self.values[self.cluster == k] for k in range(len(self.labels))]

    def within(self, reach: Reach) -> NDArray[np.intp]:
        """Return the points that may have a weight where x is in the reach and in a hull itself (no slack)."""
        low, high = np.array([column.range(reach[column.name]) for column in self.columns]).T
        members = [np.flatnonzero(self.cluster == k) for k in range(len(self.labels))]
        return np.concatenate([own[face(self.values[own], low, high)] for own in members])


def hull_points(
    space: FeatureSpace, rows: Floats, *, scale: str | Mapping[str, float], clusters: Any, sample: int | None
) -> HullPoints:
    """Return the points of rows (coordinates (n, d), at least one), after dropping what does not matter exactly.

    Rows that are equal stand for one point, and a point that is a combination of others of its cluster is left out
    where that is cheap to tell (:func:`vertices`).
    """
    scales = scale_of(_WHO, scale, space)
    columns: list[HullColumn] = []
    for f in space:
        if f.kind == "categorical":
            for rank, level in enumerate(f.levels):
                columns.append(HullColumn(f.name, (f.name, level), rank, scales[f.name]))
        else:
            columns.append(HullColumn(f.name, f.name, None, scales[f.name]))
    place = {name: j for j, name in enumerate(space.names)}
    checkpoint(_STAGE)
    values = np.column_stack([column.of(rows[:, place[column.name]]) for column in columns])
    drawn = np.arange(len(rows))
    if sample is not None and len(rows) > sample:
        drawn = np.sort(np.random.default_rng(0).choice(len(rows), sample, replace=False))
    labels, cluster = cluster_labels(clusters, values, drawn)
    values = values[drawn]
    # A column of 0 and 1 is at an end at every point, so a combination takes only points that agree in all of those.
    ends = np.array([column.rank is not None or space[column.name].kind == "binary" for column in columns])
    kept = []
    for k in range(len(labels)):
        checkpoint(_STAGE)
        own = np.flatnonzero(cluster == k)
        kept.append(own[vertices(values[own], ends)])
    chosen = np.concatenate(kept)
    return HullPoints(
        columns=tuple(columns),
        values=values[chosen],
        cluster=cluster[chosen],
        labels=labels,
        shift=np.array([_commonest(column) for column in values[chosen].T]),
        count=int((cluster >= 0).sum()),
        given=len(rows),
    )


def are_alike(one: FeatureSpace, other: FeatureSpace, scale: str | Mapping[str, float]) -> bool:
    """Tell whether rows are the same points in two spaces: the columns, their levels and scales are the same."""
    if [(f.name, f.kind, f.levels) for f in one] != [(f.name, f.kind, f.levels) for f in other]:
        return False
    return scale_of(_WHO, scale, one) == scale_of(_WHO, scale, other)


def _commonest(values: Floats) -> float:
    distinct, counts = np.unique(values, return_counts=True)
    return float(distinct[np.argmax(counts)])
