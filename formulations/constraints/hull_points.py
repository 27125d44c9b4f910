"""The points of a hull, grouped into clusters, and a point's distance from it: in plain numbers, and as rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.common.gc_manager import PauseGC
from pyomo.core.expr.numeric_expr import LinearExpression
from scipy.optimize import linprog, nnls
from scipy.spatial import ConvexHull, QhullError

from ceopt.formulations.columns import Numeric
from ceopt.formulations.columns.coordinate import AbstractLevels
from ceopt.formulations.costs.base import scale_of
from ceopt.formulations.linear_form import LinearForm, Rows, sum_form, total
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Reach
from ceopt.formulations.tolerances import (
    HULL_DISTANCE_FOUND,
    HULL_TOLERANCE,
    ORDINARY_HULL_COEFFICIENTS,
    TINY,
    VERTEX_ROUNDING,
)
from ceopt.solvers.checks import Floats, plain
from ceopt.solvers.cones import soc
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, counted

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

# ==== Groups of rows, each with a hull of its own: by k-means, by a clusterer of scikit-learn, or as labelled =========

Places = NDArray[np.intp]

#: Runs of k-means, each from other centres; steps of one at most, and between two looks at the clock where numbers
#: times clusters are more than the last.
_RUNS, _STEPS, _AT_ONCE, _LARGE = 10, 300, 10, 200_000
#: What the time limit ends here.
_CLUSTERING = "clustering the rows of a hull"
_CHOICES = "Give a count, a clusterer such as DBSCAN(), or a label per row."


def check_clusters(clusters: Any) -> None:
    """Refuse what is no count, clusterer or sequence of labels, before there are rows."""
    if clusters is None or _is_clusterer(clusters):
        return
    if isinstance(clusters, int | np.integer) and not isinstance(clusters, bool | np.timedelta64):
        if clusters < 1:
            raise InvalidValueError("Hull", "at least one cluster", f"clusters is {clusters!r}", _CHOICES)
        return
    if isinstance(clusters, type) and hasattr(clusters, "fit_predict"):
        name = clusters.__name__
        raise InvalidTypeError("Hull", "a clusterer", f"clusters is the class {name}", f"Make one: {name}().")
    if isinstance(clusters, str | bytes | Mapping | pd.DataFrame) or np.ndim(_as_array(clusters)) != 1:
        but = f"clusters is {type(clusters).__name__}"
        raise InvalidTypeError("Hull", "clusters as a count, a clusterer or labels", but, _CHOICES)
    labels = list(map(plain, _listed(clusters)))
    for label in labels:
        if not isinstance(label, Hashable):
            raise InvalidTypeError("Hull", "labels such as numbers or text", f"one of clusters is {label!r}", _CHOICES)
    if any(pd.isna(label) is True for label in labels):
        raise InvalidValueError("Hull", "a label for every row", "one of clusters is missing", "Use -1 for noise.")


def labels_of_rows(clusters: Any, n_rows: int) -> list[Any] | None:
    """Return clusters that were given as a label for each of some rows; None where they are anything else."""
    if clusters is None or isinstance(clusters, int | np.integer) or _is_clusterer(clusters):
        return None
    labels: list[Any] = _listed(clusters)
    if len(labels) != n_rows:  # it is refused where it is read
        return None
    return labels


def cluster_labels(clusters: Any, values: Floats, drawn: Places) -> tuple[tuple[Any, ...], Places]:
    """Return the labels of the clusters and, for each row drawn, the position of its own; -1 for noise.

    Parameters
    ----------
    clusters
        As :func:`check_clusters` accepts it.
    values
        All rows as the hull sees them, (n, D).
    drawn
        Places of the rows that are used: a count or a clusterer sees only these; labels are given for all.
    """
    if clusters is None:
        return (None,), np.zeros(len(drawn), dtype=np.intp)
    if isinstance(clusters, int | np.integer) or _is_clusterer(clusters):
        given = _clustered(clusters, values[drawn])
    else:
        given = _listed(clusters)
        if len(given) != len(values):
            but = f"clusters has {len(given)} labels for {len(values)} rows"
            raise InvalidValueError("Hull", "one label per row", but, "Label each row of its data, in their order.")
        given = [given[k] for k in drawn]
    labels = list(map(plain, given))
    names = sorted({label for label in labels if not _is_noise(label)}, key=lambda label: (type(label).__name__, label))
    if not names:
        raise InvalidValueError(
            "Hull", "rows in some cluster", "every label is -1, which is noise", "Let the clusterer join more rows."
        )
    position = dict(zip(names, range(len(names)), strict=True))
    return tuple(names), np.array([position.get(label, -1) for label in labels], dtype=np.intp)


def _clustered(clusters: Any, values: Floats) -> list[Any]:
    from sklearn.base import clone

    checkpoint(_CLUSTERING)
    count: Any = getattr(clusters, "n_clusters", None)
    if isinstance(clusters, int | np.integer):
        count = clusters
    distinct = len(np.unique(values, axis=0))
    if isinstance(count, int | np.integer) and count > distinct:
        raise InvalidValueError(
            "Hull", "at least as many distinct rows as clusters",
            f"clusters asks for {count} and there are {distinct}", "Ask for fewer, or give more rows.",
        )  # fmt: skip
    if count is clusters:
        return _by_k_means(int(count), values)
    name = type(clusters).__name__
    try:
        labels = np.asarray(clone(clusters).fit_predict(values))
    except Exception as error:
        but = f"{name} fails with {type(error).__name__}: {error}"
        raise InvalidValueError("Hull", "a clusterer that takes its rows", but, _CHOICES) from error
    if labels.shape != (len(values),):
        but = f"{name} returns shape {labels.shape} for {len(values)} rows"
        raise InvalidValueError("Hull", "one label per row", but, _CHOICES)
    return list(labels)


def _by_k_means(count: int, values: Floats) -> list[Any]:
    """Return the best of ten runs of k-means, those of ``KMeans(count, random_state=0, n_init=10)``.

    Run by run, so that a time limit can end it, and where a step takes milliseconds a few steps at a time: a run that
    has met its tolerance just then makes some more.
    """
    from sklearn.cluster import KMeans

    draws = np.random.RandomState(0)
    best = None
    for _ in range(_RUNS):
        checkpoint(_CLUSTERING)
        steps = few = _STEPS if count * values.size <= _LARGE else _AT_ONCE
        run = KMeans(count, random_state=draws, n_init=1, max_iter=few).fit(values)
        while run.n_iter_ == few and steps < _STEPS:
            checkpoint(_CLUSTERING)
            run = KMeans(count, init=run.cluster_centers_, n_init=1, max_iter=few).fit(values)
            steps += few
        if best is None or run.inertia_ < best.inertia_:
            best = run
    assert best is not None  # noqa: S101 - there is at least one run
    return list(best.labels_)


def _is_clusterer(clusters: Any) -> bool:
    return all(hasattr(clusters, word) for word in ("fit_predict", "get_params")) and not isinstance(clusters, type)


def _is_noise(label: Any) -> bool:
    return isinstance(label, int | float) and not isinstance(label, bool) and label == -1


def _as_array(clusters: Any) -> Any:
    try:
        return np.asarray(clusters)
    except ValueError:  # ragged
        return np.zeros((0, 0))


def _listed(clusters: Any) -> Any:
    if hasattr(clusters, "tolist"):
        return clusters.tolist()
    return list(clusters)


# ==== The distance from a hull: the check of the rule, by least squares, small linear programs and a cone =============

Norm: TypeAlias = Literal["l1", "l2", "linf"]

_ORDER = {"l1": 1, "l2": 2, "linf": np.inf}
_DUAL = {"l1": np.inf, "l2": 2, "linf": 1}
#: Rounds after which the best distance found is returned as it is; a dozen is much.
_MOST = 200


def hull_distance(
    points: Floats, x: Floats, norm: Norm, *, enough: float = 0.0, beyond: float = np.inf
) -> tuple[float, Floats]:
    r"""Return the distance of a point to a hull, and the way there: x + s is in the hull and has that norm.

    .. math::
        \min_{\lambda \ge 0,\, 1^\top\lambda = 1} \Big\lVert \sum_i \lambda_i (p_i - x) \Big\rVert_p
        \;=\; \max_{\lVert z \rVert_q \le 1} \min_i z^\top (p_i - x).

    The left side is solved over a few points, those nearest to x; its multipliers z bound the distance from below by
    the right side, and the points at which that is least join the few. It ends where both sides agree, so the result is
    the distance to all points, at the price of a few small programs.

    Parameters
    ----------
    points
        (n, D).
    x
        (D,).
    norm
        "l1", "l2" or "linf".
    enough
        A distance that need not be improved on: the first one found that is at most this is returned.
    beyond
        A distance that is of no interest: once it is known to be at least this, what is found by then is returned.
    """
    if not len(x):
        return 0.0, x
    return _nearest(points, x, norm, enough=enough, beyond=beyond)[:2]


@final
@dataclass(frozen=True, slots=True)
class NearHull:
    r"""Which points are within a distance of a hull, without asking how far the others are.

    A direction z that showed one of them to be too far, as :func:`hull_distance` does, is kept, and shows it of others:

    .. math:: z^\top (x - p_0) < \min_i z^\top (p_i - p_0) - \delta, \quad \lVert z \rVert_q \le 1.

    All is seen from one of the points, so that columns of large numbers lose no digits.

    Parameters
    ----------
    points
        (n, D) whose hull it is.
    norm
        "l1", "l2" or "linf".
    enough, beyond
        The distance, and a greater one: of what lies between the two it is asked how far it is.
    """

    points: Floats
    norm: Norm
    enough: float
    beyond: float
    _directions: list[Floats] = field(default_factory=list, init=False)
    _least: list[float] = field(default_factory=list, init=False)

    def may_hold(self, x: Floats) -> NDArray[np.bool_]:
        """Return which points (m, D) no direction that is known shows to be too far."""
        if not self._directions:
            return np.ones(len(x), dtype=bool)
        least: Floats = np.array(self._least) - (x - self.points[0]) @ np.array(self._directions).T
        return np.asarray(least.max(axis=1) < self.beyond)

    def holds(self, x: Floats) -> bool:
        """Return whether a point (D,) is within the distance."""
        if not self.may_hold(x[None, :])[0]:
            return False
        distance, _, _, multipliers = _nearest(self.points, x, self.norm, enough=self.enough, beyond=self.beyond)
        if distance > self.enough and multipliers is not None:
            least = float(((self.points - self.points[0]) @ multipliers).min())
            if least - (x - self.points[0]) @ multipliers >= self.beyond:
                self._directions.append(multipliers)
                self._least.append(least)
        return distance <= self.enough


def _nearest(
    points: Floats, x: Floats, norm: Norm, *, enough: float = 0.0, beyond: float = np.inf
) -> tuple[float, Floats, NDArray[np.intp], Floats | None]:
    """Return distance and way, the places of a few points whose hull is as near, and the multipliers that show it."""
    moves = points - x
    order = _ORDER[norm]
    away = np.linalg.norm(moves, order, axis=1)
    best = float(away.min())
    slack = moves[away.argmin()]
    step = moves.shape[1] + 1
    few = _least(away, 2 * step)
    multipliers: Floats | None = None
    is_rough = norm != "l2" and enough > 0.0  # by squares, which are solved ten times faster, as long as that suffices
    for _ in range(_MOST):
        if best <= enough:
            break
        checkpoint("measuring the distance from a hull")
        way, multipliers = _NEAREST["l2" if is_rough else norm](moves[few])
        if is_rough:
            multipliers = multipliers / max(float(np.linalg.norm(multipliers, _DUAL[norm])), 1e-300)
        length = float(np.linalg.norm(way, order))
        if length < best:
            best = length
            slack = way
        if best <= enough or best <= 1e-12:
            break
        along = moves @ multipliers
        if along.min() >= beyond:
            break
        is_found = (way @ multipliers if is_rough else best) - along.min() <= HULL_DISTANCE_FOUND * max(1.0, best)
        joining = np.setdiff1d(_least(along, step), few)
        if is_found or not joining.size:
            if not is_rough:
                break
            is_rough = False
        few = np.concatenate([few, joining])
    return best, slack, few, multipliers


def _least(values: Floats, count: int) -> NDArray[np.intp]:
    """Return the places of the least of some values."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]


def _by_sum(moves: Floats) -> tuple[Floats, Floats]:
    """Return s of least l1 norm in a hull, and multipliers."""
    result = _least_parts(_equations(moves), None)
    k, d = moves.shape
    return _weights(result.x[:k]) @ moves, -result.eqlin.marginals[:d]


def _equations(moves: Floats) -> Floats:
    """Return the rows over (weights, parts of s up, parts of s down) that put s in a hull; the right side is (0, 1)."""
    k, d = moves.shape
    return np.block([[moves.T, -np.eye(d), np.eye(d)], [np.ones((1, k)), np.zeros((1, 2 * d))]])


def _least_parts(equations: Floats, limit: float | None) -> Any:
    """Return the solution of least sum of both parts of an s, none above a limit."""
    d = len(equations) - 1
    k = equations.shape[1] - 2 * d
    return _solved(
        np.repeat([0.0, 1.0], [k, 2 * d]), A_eq=equations, b_eq=np.repeat([0.0, 1.0], [d, 1]),
        bounds=[(0.0, None)] * k + [(0.0, limit)] * (2 * d),
    )  # fmt: skip


def _by_greatest(moves: Floats) -> tuple[Floats, Floats]:
    """Return s of least greatest entry in a hull, and multipliers."""
    k, d = moves.shape
    sides = np.block([[moves.T, -np.ones((d, 1))], [-moves.T, -np.ones((d, 1))]])
    total = np.repeat([[1.0, 0.0]], [k, 1], axis=1)
    result = _solved(np.repeat([0.0, 1.0], [k, 1]), A_ub=sides, b_ub=np.zeros(2 * d), A_eq=total, b_eq=[1.0])
    above = result.ineqlin.marginals[:d]
    below = result.ineqlin.marginals[d:]
    return _weights(result.x[:k]) @ moves, below - above


def _by_squares(moves: Floats) -> tuple[Floats, Floats]:
    r"""Return the shortest s in a hull, and its direction.

    For weights :math:`l = t \lambda` with :math:`1^\top \lambda = 1`, the least of :math:`\lVert A l \rVert^2 +
    (1^\top l - 1)^2` over t is :math:`r / (1 + r)` with :math:`r = \lVert A \lambda \rVert^2`: what is best for one is
    best for the other.
    """
    size = max(float(np.abs(moves).max()), 1e-300)
    k, d = moves.shape
    weights, _ = nnls(np.vstack([moves.T / size, np.ones((1, k))]), np.repeat([0.0, 1.0], [d, 1]))
    shortest = _weights(weights) @ moves
    return shortest, shortest / max(float(np.linalg.norm(shortest)), 1e-300)


_NEAREST = {"l1": _by_sum, "l2": _by_squares, "linf": _by_greatest}


def least_sum(points: Floats, x: Floats, norm: Norm, limit: float | None) -> float:
    """Return the least l1 norm of an s with x + s in a hull and the norm of s at most a limit (None: any s).

    It is infinite where the hull is farther than the limit, up to a solver's tolerance.
    """
    if not len(x):
        return 0.0
    least, slack, few, _ = _nearest(points, x, "l1")
    if limit is None or np.linalg.norm(slack, _ORDER[norm]) <= limit * (1.0 + 1e-9):
        return least
    nearest, inner, others, _ = _nearest(points, x, norm)
    if nearest >= limit:
        return float(np.abs(inner).sum()) if nearest <= limit + 1e-6 * max(1.0, limit) else np.inf
    return _limited(points - x, np.union1d(few, others), float(np.abs(inner).sum()), norm, limit)


def _limited(moves: Floats, few: NDArray[np.intp], high: float, norm: Norm, limit: float) -> float:
    """Return the least l1 norm of an s of at most some norm, from a few points whose hull has one; it is at most high.

    As in :func:`hull_distance`, the multipliers tell how much less it could be over all points, and which should join.
    """
    d = moves.shape[1]
    for _ in range(_MOST):
        length, multipliers = (_boxed if norm == "linf" else _balled)(_equations(moves[few]), limit)
        if not np.isfinite(length):  # a hull that only touches the ball may be too much for the cone's solver
            break
        gains = moves @ multipliers[:d] + multipliers[d]
        high = min(high, length)
        if gains.max() <= HULL_DISTANCE_FOUND * max(1.0, high):
            break
        joining = np.setdiff1d(np.argsort(-gains, kind="stable")[: d + 1], few)
        if not joining.size:
            break
        few = np.concatenate([few, joining])
    return high


def _boxed(equations: Floats, limit: float) -> tuple[float, Floats]:
    """Return the least sum of both parts of an s, none above a limit, and the multipliers of the equations."""
    result = _least_parts(equations, limit)
    return float(result.fun), result.eqlin.marginals


def _balled(equations: Floats, limit: float) -> tuple[float, Floats]:
    """Return the same for an s no longer than a limit, by an interior-point method for cones."""
    import clarabel

    d = len(equations) - 1
    k = equations.shape[1] - 2 * d
    signs = np.vstack([np.zeros((1, k + 2 * d)), np.hstack([np.zeros((d, k)), -np.eye(d), np.eye(d)])])
    rows = sp.csc_matrix(np.vstack([equations, -np.eye(k + 2 * d), signs]))
    sides = np.concatenate([np.zeros(d), [1.0], np.zeros(k + 2 * d), [limit], np.zeros(d)])
    cones = [clarabel.ZeroConeT(d + 1), clarabel.NonnegativeConeT(k + 2 * d), clarabel.SecondOrderConeT(d + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = HULL_DISTANCE_FOUND
    nothing = sp.csc_matrix((k + 2 * d, k + 2 * d))
    price = np.repeat([0.0, 1.0], [k, 2 * d])
    solution = clarabel.DefaultSolver(nothing, price, rows, sides, cones, settings).solve()
    return float(solution.obj_val), -np.array(solution.z)[: d + 1]


def _weights(solution: Floats) -> Floats:
    """Return weights as they should be: none negative, 1 in all."""
    positive = np.maximum(solution, 0.0)
    return np.asarray(positive / positive.sum())


def _solved(objective: Floats, **program: Any) -> Any:
    result = linprog(objective, **program, method="highs")
    assert result.status == 0, result.message  # noqa: S101 - feasible and bounded by how it is stated
    return result


# ==== The rows that put a person's block near a hull of points ========================================================


@final
@dataclass(frozen=True, slots=True)
class HullRows:
    """Writes the rows of one :class:`Hull` into an empty block.

    Parameters
    ----------
    block, x
        Where the rows go, and the person.
    points
        What spans the hulls.
    norm, penalty
        As the rule has them.
    limit
        Greatest norm of the slack: a number, 0 for no slack at all, a variable, or None where there is no limit.
    only
        Places of the points that have a weight; None for all that can matter.
    left_out
        Coefficients that the others which can matter would have, by the key of ``point``.
    """

    block: Any
    x: AbstractColumns
    points: HullPoints
    norm: Norm
    limit: Any
    penalty: float | None
    only: Places | None = None
    left_out: dict[Any, Floats] = field(default_factory=dict)

    def write(self) -> Places:
        """Add the variables ``weight``, ``in_cluster`` and those of the slack, and all rows; return who is left out."""
        with PauseGC():  # looking again and again at what was just made takes longer than making it
            return self._write()

    def _write(self) -> Places:
        slackless = isinstance(self.limit, float) and self.limit == 0.0
        if slackless:
            places = self.points.within(self.x.reach)
        else:
            places = np.arange(len(self.points.values))
        has_weight = np.ones(len(places), dtype=bool)
        if self.only is not None:
            has_weight = np.isin(places, self.only)
        self.block.weight = pyo.Var(places[has_weight].tolist(), bounds=(0.0, 1.0))
        weights = list(self.block.weight.values())
        self._write_shares(places[has_weight], weights)
        values = self.points.values[places] - self.points.shift
        slacks = []
        for j, column in enumerate(self.points.columns):
            form = self._value(column) + LinearForm(-float(self.points.shift[j]))
            if not form.terms and abs(form.constant) <= 1e-12 and not values[:, j].any():
                continue
            on_label = self.x.coordinate(column.name).on_label
            if on_label == LinearForm(1.0):  # no amount, and none to come
                continue
            if on_label.terms:
                form += self._bridge(column.key, on_label, values[:, j] + self.points.shift[j] - self._home(column))
            if not slackless:
                slacks.append((column.key, *self._slack(column.key)))
                form += total(slacks[-1][1:])
            self._write_point(column.key, form, values[:, j], weights, has_weight)
        self._write_norm(slacks)
        return places[~has_weight]

    def _value(self, column: HullColumn) -> LinearForm:
        """Return what the person's column counts in the hull; on a label, what it counts at home."""
        coordinate = self.x.coordinate(column.name)
        if column.rank is not None:
            form = coordinate.indicator({column.rank})
        elif isinstance(coordinate, Numeric):
            form = coordinate.amount()
        else:
            assert isinstance(coordinate, AbstractLevels)  # noqa: S101 - all that are no numbers
            form = coordinate.tabulate({value: column.amount_of(value) for value in coordinate.values})
        return form.scaled(1.0 / column.scale)

    def _home(self, column: HullColumn) -> float:
        """Return what a column counts while it holds no amount."""
        if column.rank is not None:
            return 0.0
        coordinate = self.x.coordinate(column.name)
        home = coordinate.home if isinstance(coordinate, Numeric) else 0.0
        return home / column.scale

    def _bridge(self, key: Any, on_label: LinearForm, ways: Floats) -> LinearForm:
        """Return a variable that leads, where a column holds no amount, from what it counts then to any point."""
        if self.block.component("unknown") is None:
            self.block.unknown = pyo.Var(pyo.Any, dense=False)
        unknown = self.block.unknown[key]
        least = float(ways.min())
        most = float(ways.max())
        unknown.setlb(min(least, 0.0))
        unknown.setub(max(most, 0.0))
        form = LinearForm(0.0, ((1.0, unknown),))
        Rows(self.block, "least_unknown").add(key, form + on_label.scaled(-least), lower=0.0)
        Rows(self.block, "most_unknown").add(key, form + on_label.scaled(-most), upper=0.0)
        return form

    def _write_shares(self, places: NDArray[np.intp], weights: list[Any]) -> None:
        rows = Rows(self.block, "share")
        labels = self.points.labels
        cluster = self.points.cluster[places]
        if labels == (None,):
            rows.add("all", sum_form(weights), lower=1.0, upper=1.0)
            return
        self.block.in_cluster = pyo.Var(list(labels), domain=pyo.Binary)
        for k, label in enumerate(labels):
            own = sum_form(weights[i] for i in np.flatnonzero(cluster == k))
            chosen = LinearForm(0.0, ((-1.0, self.block.in_cluster[label]),))
            rows.add(label, own + chosen, lower=0.0, upper=0.0)
        Rows(self.block, "one_cluster").add("all", sum_form(self.block.in_cluster.values()), lower=1.0, upper=1.0)

    def _write_point(
        self, key: Any, form: LinearForm, values: Floats, weights: list[Any], has_weight: NDArray[np.bool_]
    ) -> None:
        """Add a column's row, multiplied so that a solver sees its smallest coefficients."""
        sizes = [abs(c) for c, _ in form.terms] + [float(np.abs(values).max(initial=0.0))]
        low = min(size for size in (*sizes, 1e300) if size > 0.0)
        high = max(sizes)
        least, greatest = ORDINARY_HULL_COEFFICIENTS
        ordinary = high == 0.0 or (low >= least and high <= greatest)
        factor = 1.0
        if not ordinary:
            factor = max(2.0 ** -round(math.log2(math.sqrt(low) * math.sqrt(high))), 2.0**-13)
        scaled = factor * values
        # What is no more than a solver's tolerance counts as that, or as nothing, whichever is nearer.
        scaled = np.where(np.abs(scaled) >= TINY, scaled, TINY * np.round(scaled / TINY))
        self.left_out[key] = -scaled[~has_weight]
        scaled = scaled[has_weight]
        taken = np.flatnonzero(scaled)
        form = form.scaled(factor)
        rows = Rows(self.block, "point")
        if not taken.size:
            rows.add(key, form, lower=0.0, upper=0.0)
            return
        # As one expression of plain lists: with a few hundred thousand terms, a tuple for each would take seconds.
        short = form.expression()
        coefs = getattr(short, "linear_coefs", ())
        variables = getattr(short, "linear_vars", ())
        body = LinearExpression(
            constant=form.constant,
            linear_coefs=[*coefs, *(-scaled[taken]).tolist()],
            linear_vars=[*variables, *map(weights.__getitem__, taken.tolist())],
        )
        self.block.point[key] = body == 0.0

    # ---- the slack ---------------------------------------------------------------------------------------------------
    @property
    def _is_split(self) -> bool:
        """Whether the slack is stated as two parts, so that its absolute value is linear."""
        return self.norm == "l1" or self.penalty is not None or (self.norm == "linf" and not self._is_number)

    @property
    def _is_number(self) -> bool:
        return isinstance(self.limit, float)

    def _slack(self, key: Any) -> tuple[LinearForm, ...]:
        """Return a column's slack as one signed form, or as its two parts."""
        most = self.limit if self._is_number else None
        if self._is_split:
            names = {"over": 1.0, "under": -1.0}
        else:
            names = {"slack": 1.0}
        forms = []
        for name, sign in names.items():
            if self.block.component(name) is None:
                self.block.add_component(name, pyo.Var(pyo.Any, dense=False))
            variable = self.block.component(name)[key]
            if self._is_split:
                variable.setlb(0.0)
            elif most is not None:
                variable.setlb(-most)
            variable.setub(most)
            forms.append(LinearForm(0.0, ((sign, variable),)))
        return tuple(forms)

    def _write_norm(self, slacks: list[tuple[Any, ...]]) -> None:
        """Limit the norm of the slack, and charge for it."""
        lengths = {}
        for key, *parts in slacks:
            lengths[key] = sum_form(variable for part in parts for _, variable in part.terms)
        if self.limit is not None and slacks:
            if self._is_number:
                most = LinearForm(self.limit)
            else:
                most = LinearForm(0.0, ((1.0, self.limit),))
            if self.norm == "l1":
                Rows(self.block, "within").add("norm", total(lengths.values()) + most.scaled(-1.0), upper=0.0)
            elif self.norm == "l2":
                entries = [total(parts).expression() for _, *parts in slacks]
                self.block.within = pyo.Constraint(expr=soc(self.limit, entries) >= 0.0)
            elif not self._is_number:
                for key, length in lengths.items():
                    Rows(self.block, "within_each").add(key, length + most.scaled(-1.0), upper=0.0)
        if self.penalty is not None:
            charged = total(lengths.values()).scaled(float(self.penalty)).expression()
            self.block.penalty = pyo.Expression(expr=charged)
            self.x.surcharges.append(self.block.penalty)


# ==== The vertices of a set of points: those that are no combination of others, and those that a reach leaves =========

#: Columns in which quickhull is still quick.
_FEW = 4


def vertices(values: Floats, ends: NDArray[np.bool_]) -> Places:
    """Return places of points (n, D) that have the hull of all: equal ones once, and fewer where that is cheap.

    Points that agree in every column of ``ends`` form a group. In a group that varies in one column the least and the
    greatest are kept, in up to four the vertices that quickhull finds; of a flat group, and in more, all.

    Parameters
    ----------
    values
        The points.
    ends
        Columns whose values are all 0 or 1, up to a scale, (D,): no combination of points that differ in one of them
        is a point of the set, so that nothing is lost by looking at the groups one by one.
    """
    first = np.sort(np.unique(values, axis=0, return_index=True)[1])
    if not ends.any():
        return np.sort(first[_extreme(values[first])])
    _, group = np.unique(values[np.ix_(first, ends)], axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    groups = np.split(first[order], np.flatnonzero(np.diff(group.ravel()[order])) + 1)
    kept = []
    for own in groups:
        checkpoint("finding the points of a hull")
        kept.append(own[_extreme(values[np.ix_(own, ~ends)])])
    return np.sort(np.concatenate(kept))


def _extreme(values: Floats) -> Places:
    """Return places of points, all distinct, that have the hull of all."""
    every = np.arange(len(values))
    if len(values) <= 2:
        return every
    varying = values
    if values.size:
        varying = values[:, np.ptp(values, axis=0) > 0.0]
    if varying.shape[1] == 1:
        return np.array([varying[:, 0].argmin(), varying[:, 0].argmax()])
    if not 2 <= varying.shape[1] <= _FEW or len(values) <= varying.shape[1] + 1:
        return every
    try:
        return np.asarray(ConvexHull((varying - varying.min(axis=0)) / np.ptp(varying, axis=0)).vertices, dtype=np.intp)
    except QhullError:  # flat: all in a plane, or too near to one
        return every


def face(values: Floats, low: Floats, high: Floats) -> Places:
    """Return places of points (n, D) that may have a weight in a combination between ``low`` and ``high``, (D,).

    Where the combination may not be below the greatest value of a column (or above the least), only points with that
    value take part. Of those left the same may be true in another column.
    """
    places = np.arange(len(values))
    share, size = VERTEX_ROUNDING
    while len(places):
        own = values[places]
        least = own.min(axis=0)
        greatest = own.max(axis=0)
        slack = share * (greatest - least) + size * np.maximum(abs(least), abs(greatest))
        at_top = low >= greatest - slack
        at_bottom = high <= least + slack
        kept = ((own >= low - slack) | ~at_top).all(axis=1) & ((own <= high + slack) | ~at_bottom).all(axis=1)
        if kept.all():
            break
        places = places[kept]
    return places


# ==== From rows of data to points: scaled, categories as 0/1, distinct, by cluster ====================================

_WHO = "Hull"

#: What the time limit ends here.
_FINDING_POINTS = "finding the points of a hull"
#: Columns wider than this cannot be held to a solver's absolute tolerance.
LARGE = 1e7
#: Points of which not all are stated at once, and how many a program begins with then.
MANY, _FIRST = 1000, 100


@final
@dataclass(frozen=True, slots=True)
class HullColumn:
    """A column as the hull sees it: ``raw / scale``, or whether a category takes the level of ``rank``."""

    name: str
    key: Any
    rank: int | None
    scale: float
    codes: frozenset[float] = frozenset()

    def has(self, value: float) -> bool:
        """Return whether a coordinate of the space's column is an amount."""
        return value != MISSING and value not in self.codes

    def amount_of(self, value: float) -> float:
        """Return a coordinate that is an amount; 0 of a label."""
        return value if self.has(value) else 0.0

    def of(self, values: Floats) -> Floats:
        """Return coordinates of the space's column as the hull sees them."""
        if self.rank is not None:
            values = values == self.rank
        return np.asarray(values / self.scale)

    def range(self, part: Any) -> tuple[float, float]:
        """Return the least and the greatest value that the reach of the space's column leaves; with labels, any."""
        if isinstance(part, Interval):
            if part.labels or not self.has(part.lower):
                return -math.inf, math.inf
            return part.lower / self.scale, part.upper / self.scale
        if not all(map(self.has, part.values)):
            return -math.inf, math.inf
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

    def seen(self, point: Mapping[str, float]) -> tuple[Floats, list[Floats]]:
        """Return a point, coordinates by column, as the hull sees it, (D,), and the points of each cluster.

        Columns in which the point holds no amount are left out of both.
        """
        places = [j for j, column in enumerate(self.columns) if column.has(point[column.name])]
        amounts = [float(self.columns[j].of(np.float64(point[self.columns[j].name]))) for j in places]  # type: ignore[arg-type]
        clusters = self.of_clusters()
        if len(places) < len(self.columns):
            clusters = [np.take(own, places, axis=1) for own in clusters]
        return np.array(amounts), clusters

    def seen_together(self, space: FeatureSpace, points: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return points (n, d) as the hull sees them, (n, D), and which hold an amount in every column of it."""
        return _seen(self.columns, [space[name] for name in {column.name for column in self.columns}], space, points)

    def of_clusters(self) -> list[Floats]:
        """Return the points of each cluster."""
        return np.split(self.values, np.searchsorted(self.cluster, np.arange(1, len(self.labels))))

    def tolerance(self, radius: float) -> float:
        """Return by how much a point may be farther than a radius and counts as within it."""
        return self.size(radius) * HULL_TOLERANCE

    def within_distance(self, norm: Norm, radius: float) -> list[NearHull]:
        """Return the hull of each cluster, to be asked what is within a radius."""
        allowed = self.tolerance(radius)
        return [NearHull(own, norm, radius + allowed, radius + 2.0 * allowed) for own in self.of_clusters()]

    def first(self) -> Places | None:
        """Return the places of points that a program may begin with where there are many: the ends, and some others."""
        if len(self.values) <= MANY or self.labels != (None,):
            return None
        some = np.linspace(0, len(self.values) - 1, _FIRST).astype(np.intp)
        return np.unique(np.concatenate([self.values.argmin(axis=0), self.values.argmax(axis=0), some]))

    def within(self, reach: Reach) -> NDArray[np.intp]:
        """Return the points that may have a weight where x is in the reach and in a hull itself (no slack)."""
        low, high = np.array([column.range(reach[column.name]) for column in self.columns]).T
        kept = []
        for k in range(len(self.labels)):
            own = np.flatnonzero(self.cluster == k)
            kept.append(own[face(self.values[own], low, high)])
        return np.concatenate(kept)


def hull_points(
    space: FeatureSpace, rows: Floats, *, scale: str | Mapping[str, float], clusters: Any, sample: int | None
) -> HullPoints:
    """Return the points of rows (coordinates (n, d), at least one), after dropping what does not matter exactly.

    Rows that lack a cell, or hold a code, are left out. Rows that are equal stand for one point, and a point that is a
    combination of others of its cluster is left out where that is cheap to tell (:func:`vertices`).
    """
    scales = scale_of(_WHO, scale, space)
    columns: list[HullColumn] = []
    for f in space:
        codes = frozenset(map(f.to_coordinate, f.codes))
        if f.kind != "categorical":
            columns.append(HullColumn(f.name, f.name, None, scales[f.name], codes))
            continue
        for rank, level in enumerate(f.levels):
            if rank not in codes:
                columns.append(HullColumn(f.name, (f.name, level), rank, scales[f.name], codes))
    checkpoint(_FINDING_POINTS)
    values, is_whole = _seen(columns, space, space, rows)
    drawn = np.flatnonzero(is_whole)
    if not len(drawn):
        but = f"each of its {counted(len(rows), 'row')} lacks a cell or holds a code"
        raise InvalidValueError(_WHO, "a row of amounts", but, "Give it rows of its own: Hull(frame).")
    if sample is not None and len(drawn) > sample:
        drawn = drawn[np.sort(np.random.default_rng(0).choice(len(drawn), sample, replace=False))]
    labels, cluster = cluster_labels(clusters, values, drawn)
    values = values[drawn]
    # A column of 0 and 1 is at an end at every point, so a combination takes only points that agree in all of those.
    ends = np.array([column.rank is not None or space[column.name].kind == "binary" for column in columns])
    kept = []
    for k in range(len(labels)):
        checkpoint(_FINDING_POINTS)
        own = np.flatnonzero(cluster == k)
        kept.append(own[vertices(values[own], ends)])
    chosen = np.concatenate(kept)
    return HullPoints(
        columns=tuple(columns),
        values=values[chosen],
        cluster=cluster[chosen],
        labels=labels,
        shift=np.array(list(map(_commonest, values[chosen].T))),
        count=int((cluster >= 0).sum()),
        given=len(rows),
    )


def _seen(
    columns: Sequence[HullColumn], features: Iterable[Feature], space: FeatureSpace, rows: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return rows (n, d) in the columns of a hull, (n, D), and which of them hold an amount of all features."""
    by_name = dict(zip(space.names, rows.T, strict=True))
    is_whole = np.ones(len(rows), dtype=bool)
    for feature in features:
        is_whole &= ~feature.are_labels(by_name[feature.name])
    return np.column_stack([column.of(by_name[column.name]) for column in columns]), is_whole


def are_alike(one: FeatureSpace, other: FeatureSpace, scale: str | Mapping[str, float]) -> bool:
    """Tell whether rows are the same points in two spaces: the columns, their levels and scales are the same."""
    described = attrgetter("name", "kind", "levels", "codes")
    same = list(map(described, one)) == list(map(described, other))
    return same and scale_of(_WHO, scale, one) == scale_of(_WHO, scale, other)


def _commonest(values: Floats) -> float:
    distinct, counts = np.unique(values, return_counts=True)
    return float(distinct[np.argmax(counts)])
