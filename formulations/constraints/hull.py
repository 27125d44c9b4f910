"""Plausible answers: within a radius of the hull of people who have the decision wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from numpy.typing import NDArray

from ceopt.formulations.constraints.hull_points import (
    HullPoints,
    HullRows,
    NearHull,
    are_alike,
    check_clusters,
    hull_distance,
    hull_points,
    labels_of_rows,
    least_sum,
)
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractElastic, DataRows, Point, PointJudge
from ceopt.formulations.costs.base import SCALE, scale_of
from ceopt.formulations.digits import digits
from ceopt.formulations.space.space import FeatureSpace, rows_to_keep, taken
from ceopt.solvers.checks import (
    NOT_A_NUMBER,
    AllOf,
    Choice,
    Flag,
    Floats,
    Instance,
    ListOf,
    OrNone,
    Real,
    Refusal,
    Whole,
    check_fields,
)
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, counted
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns

# ==== A hull rule in a sentence, and in code that fits on a line ======================================================

_OPTIONS = {"radius": 0.0, "norm": "l1", "scale": "range", "clusters": None, "enlarge": False, "penalty": None}
_OPTIONS |= {"name": None, "sample": None, "columns": None}


def sentence_of(hull: Any, points: HullPoints | None) -> str:
    """Return "within 0.1 (l1, columns by range) of the hull of 312 rows in 3 clusters"."""
    scale = hull.scale
    if isinstance(hull.scale, Mapping):
        scale = "their own scales"
    columns = "raw columns"
    if scale != "none":
        columns = f"columns by {scale}"
    rows = _rows(hull, points)
    if hull.columns is not None:
        rows = f"{rows} in {', '.join(hull.columns)}"
    charge = ""
    if hull.penalty is not None:
        charge = f", at {digits(hull.penalty)} for each unit of l1 off it"
    if np.isinf(hull.radius) or (hull.penalty is not None and hull.radius == 0.0):
        return f"at any distance ({columns}) from the hull of {rows}{charge}"
    if hull.radius == 0.0:
        return f"in the hull of {rows}"
    return f"within {digits(hull.radius)} ({hull.norm}, {columns}) of the hull of {rows}{charge}"


def _rows(hull: Any, points: HullPoints | None) -> str:
    count = None
    if isinstance(hull.clusters, int | np.integer):
        count = hull.clusters
    if points is not None:
        rows = f"{points.count} rows"
        count = len(points.labels)
        if hull.sample is not None and hull.sample < points.given:
            rows = f"a sample of {points.count} of {points.given} rows"
    else:
        rows = "the rows of the target class"
        if hull.data is not None:
            rows = f"{len(hull.data)} rows"
        if hull.sample is not None:
            rows = f"a sample of at most {hull.sample} of {rows}"
    if hull.clusters is None:
        return rows
    if count is None:
        return f"{rows} in clusters"
    return f"{rows} in {counted(int(count), 'cluster')}"


def short_text(hull: Any, points: HullPoints | None) -> str:
    """Return "Hull(<312 x 20>, radius=0.1, clusters=3)": what differs from the defaults, frames by their size."""
    given = []
    if hull.data is not None:
        given = [f"<{' x '.join(map(str, hull.data.shape))}>"]
    elif points is not None:
        given = [f"<{points.count} rows>"]
    for word, default in _OPTIONS.items():
        value = getattr(hull, word)
        if word == "clusters" and hasattr(value, "fit_predict"):
            given.append(f"clusters={type(value).__name__}()")
        elif word == "clusters" and np.ndim(value) == 1:
            given.append(f"clusters=<{len(value)} labels>")
        elif value != default:
            given.append(f"{word}={value!r}")
    return f"Hull({', '.join(given)})"


# ==== Which of many points are near enough ============================================================================


@final
@dataclass(frozen=True, slots=True)
class HullJudge(PointJudge):
    """Tells which points of one person are within the radius of a hull; of others it is not asked how far they are.

    Parameters
    ----------
    points
        Of the hulls.
    hulls
        One a cluster, each with the directions that showed points of this person to be too far.
    """

    points: HullPoints
    hulls: Sequence[NearHull]

    def may_keep(self, points: Floats) -> NDArray[np.bool_]:
        """Return which points (n, d) no direction shows to be too far that has shown it of another."""
        seen, has_all = self.points.seen_together(self.space, points)
        return np.asarray(~has_all | np.any([hull.may_hold(seen) for hull in self.hulls], axis=0))

    def keeps(self, points: Floats) -> NDArray[np.bool_]:
        """Return which points (n, d) are within the radius, up to the tolerance."""
        seen, has_all = self.points.seen_together(self.space, points)
        kept = np.zeros(len(points), dtype=bool)
        kept[~has_all] = self.rule.keeps(self.space, self.factual, points[~has_all])
        for place in np.flatnonzero(has_all).tolist():
            kept[place] = any(hull.holds(seen[place]) for hull in self.hulls)
        return kept


# ==== The rule ========================================================================================================

_NO_FRAME = Refusal("a DataFrame as {name}", "Name its columns as the space's.", "{name} is {type}", InvalidTypeError)
_AT_LEAST_0 = Real(
    at_least=0.0, otherwise=Refusal("a {name} of at least 0", "Give for example 0.1."), wrong_type=NOT_A_NUMBER
)
_FINITE = Real(finite=True, otherwise=Refusal("a finite {name}", "Leave it out: radius is a limit."))
_NO_COUNT = Refusal("a whole number of at least 1 as {name}", "Give for example 1000.")
_NO_NAMES = Refusal("a list of column names as {name}", "Name some columns.", error=InvalidTypeError)
_CHECKS = {
    "name": RULE_NAME,
    "data": OrNone(Instance(pd.DataFrame, _NO_FRAME)),
    "radius": _AT_LEAST_0,
    "norm": Choice(("l1", "l2", "linf")),
    "scale": SCALE,
    "penalty": OrNone(AllOf((_AT_LEAST_0, _FINITE))),
    "sample": OrNone(Whole(1, None, _NO_COUNT)),
    "enlarge": Flag(),
    "columns": OrNone(
        ListOf(Refusal("a list of column names as {name}", "Name some columns.", error=InvalidTypeError))
    ),
}


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hull(AbstractElastic):
    r"""The answer lies within a radius of the hull of given rows, or of one of their clusters.

    .. math::
        \tfrac{x_j - a_j}{d_j} + s_j = \sum_i \lambda_i \tfrac{p_{ij} - a_j}{d_j}, \quad
        \sum_{i \in I_k} \lambda_i = u_k, \quad \sum_k u_k = 1, \quad \lVert s \rVert_p \le \varepsilon, \quad
        \lambda \ge 0,\ u \in \{0, 1\}

    ============== ============================== ============================================================
    symbol         component                      meaning
    ============== ============================== ============================================================
    x_j            ``x.raw``, ``x.is_level``      number, rank or 0/1; a category counts as one 0/1 column a level
    p_ij           given                          the same of row i, of ``data``
    d_j            given                          ``scale`` of the column
    a_j            given                          the commonest p_ij: it cancels, and leaves short rows
    λ_i            ``weight[i]``                  share of row i
    u_k            ``in_cluster[k]``              1 iff x is near the hull of cluster k; 1 without clusters
    s_j            ``slack[j]``                   x to the hull, for l2 and linf without a penalty; otherwise
                   ``over[j] - under[j]``         two parts, whose sum is at least \|s_j\|
    ε              given                          ``radius``
    ============== ============================== ============================================================

    The radius counts columns divided by their scale: by default each column's range is 1, and a changed category is 2
    away in l1, :math:`\sqrt 2` in l2 and 1 in linf. With ``scale="none"`` it counts raw units, whatever they are.

    Rows: ``point[j]``, one a column that is not the same for all; ``share[k]``, one a cluster, and ``one_cluster``;
    ``within``, one row (l1), one second-order cone (l2), none but bounds (linf). A variable for each distinct row that
    can matter, one or two for each column, a binary for each cluster. MILP, with l2 mixed-integer second-order cone.

    Exact. Equal rows are one point. So are left out: rows that are a combination of others of their cluster, where they
    differ in up to four columns with numbers or ranks; and with radius 0, rows that differ from x in a column that
    stays at a 0/1 value, or at the least or greatest value of the rows. ``sample``, on request, is an approximation:
    its hull is smaller, so that answers are plausible but may not be the cheapest. Of more than a thousand points
    :func:`ceopt.explain` of a linear model with HiGHS states some, and lets those join that may improve on the answer.

    The hull is of amounts. A column that is missing or on a code is not held to it. One that stays so has no row. The
    row of any that may be so has a variable more, ``unknown[j]``, which leads to any point where b, the sum of its
    ``x.missing`` and ``x.code``, is 1, and is 0 elsewhere (rows ``least_unknown``, ``most_unknown``):

    .. math:: \min_i m_i\, b \le \text{unknown}_j \le \max_i m_i\, b, \qquad m_i = p_{ij}/d_j - h_j

    with h_j what the column counts then, the amount at which it rests.

    With radius 0 levels of a category could only be mixed, without binaries, where rows mix them, and rows do not; with
    a radius from 1 (l1), :math:`|C|^{-1/2}` (l2) or :math:`1/|C|` (linf) on, for ``|C|`` levels, the hull no longer
    keeps them whole. Columns with levels have their own binaries, so that they always are.

    Parameters
    ----------
    data
        Frame whose rows are all points, but for those with missing cells, of which a warning tells, and those with
        codes. By default the rows of the data given to :func:`ceopt.explain` that the model puts in the target, or
        under ``Recourse.fit(X, y)`` those whose own label is.
    radius
        Greatest norm of s, at least 0; infinite where there is none.
    norm
        "l1", "l2" or "linf".
    scale
        "range", "std", "mad", "none", or column -> number; ranks count 1 / (levels - 1), 0/1 columns 1, unless a
        mapping has them.
    clusters
        How many (k-means on scaled rows, seed 0), a clusterer of scikit-learn, or a label for each row of ``data``, in
        its order. Rows with label -1, which is noise to DBSCAN and others, are left out. Labels for rows that ``data``
        does not give belong to those of the target class, in their order.
    enlarge
        Where no answer is within the radius, take the least radius that has one, and report it.
    penalty
        Adds ``penalty`` times the l1 norm of s to the cost (``block.penalty``); with radius 0, s has then no limit.
        A person who already has the decision is not moved for it.
    name
        Name in exports and reports.
    sample
        Use at most so many rows, drawn with seed 0 before they are grouped.
    columns
        Names of the columns that the hull is of; by default all. The others are free, and ``data`` need not have them.

    Raises
    ------
    InvalidValueError
        A negative radius or penalty, no rows, none without gaps and codes, more clusters than distinct rows, labels of
        another number than rows, a
        column or value in ``data`` that the space does not have.
    InvalidTypeError
        A number that is none, ``data`` that is no frame, an unsuitable clusterer.
    UnknownNameError
        A norm, scale or column that does not exist.

    References
    ----------
    Maragno, Roeber & Birbil (2022), eq. (3) and its union over clusters.

    Examples
    --------
    >>> import pandas as pd, pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> wage = Feature("wage", kind="continuous", lower=0, upper=8)
    >>> space = FeatureSpace([wage, Feature("owner", kind="binary", levels=(False, True))])
    >>> people = pd.DataFrame({"wage": [2.0, 6.0, 8.0], "owner": [False, True, True]})
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"wage": 1.0, "owner": False})
    >>> m.likely = impose(Hull(people, radius=0.25), m.x)
    >>> for row in m.likely.component_data_objects(pyo.Constraint):  # doctest: +NORMALIZE_WHITESPACE
    ...     print(row.local_name, row.expr)
    share[all] likely.weight[0] + likely.weight[1] + likely.weight[2]  ==  1.0
    point[wage] -0.25 + 0.125*x.x[wage] + likely.over[wage] - likely.under[wage]
        - 0.5*likely.weight[1] - 0.75*likely.weight[2]  ==  0.0
    point[owner] -1.0 + x.level[owner,True] + likely.over[owner] - likely.under[owner] + likely.weight[0]  ==  0.0
    within[norm] -0.25 + likely.over[wage] + likely.under[wage] + likely.over[owner] + likely.under[owner]  <=  0.0
    """

    data: pd.DataFrame | None = None
    radius: float = field(default=0.0, kw_only=True)
    norm: Literal["l1", "l2", "linf"] = field(default="l1", kw_only=True)
    scale: str | Mapping[str, float] = field(default="range", kw_only=True)
    clusters: Any = field(default=None, kw_only=True)
    enlarge: bool = field(default=False, kw_only=True)
    penalty: float | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    sample: int | None = field(default=None, kw_only=True)
    columns: Sequence[str] | None = field(default=None, kw_only=True)
    _known: dict[str, Any] = field(default_factory=dict, init=False)
    manifest: ClassVar[Manifest] = Manifest(
        title="within a radius of the hull of rows",
        formula="x + s = sum_i weight_i p_i; sum_{i in k} weight_i = u_k; sum_k u_k = 1; |s| <= radius",
        reference="Maragno, Roeber & Birbil 2022, (3)",
        rule="Hull",
        features=dict.fromkeys(
            ("point", "slack", "over", "under", "within_each", "unknown", "least_unknown", "most_unknown"), 0
        ),
    )
    needs_factual: ClassVar[bool] = False
    takes_columns: ClassVar[bool] = True
    slow: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self, _CHECKS)
        check_clusters(self.clusters)
        if self.enlarge and self._limit is None:
            but = f"radius is {digits(self.radius)}"
            if self.penalty is not None:
                but += " beside a penalty, which is no limit"
            raise InvalidValueError("Hull", "a radius to enlarge", but, "Give a finite one above 0, or no enlarge.")

    @property
    def _limit(self) -> float | None:
        """The greatest norm of the slack; None where there is no limit."""
        if math.isinf(self.radius) or (self.penalty is not None and self.radius == 0.0):
            return None
        return float(self.radius)

    # ---- the points --------------------------------------------------------------------------------------------------
    def check(self, space: FeatureSpace) -> None:
        """Refuse scales and rows that do not fit the space."""
        scale_of("Hull", self.scale, self._own(space))
        if self.data is not None:
            self._points(space)

    @property
    def lacks_rows(self) -> bool:  # type: ignore[override]
        """Whether there are no rows to be near to yet."""
        return self.data is None and "points" not in self._known

    def fitted(self, space: FeatureSpace, rows: DataRows) -> Hull:
        """Return the hull of the rows of the target class, unless it has rows of its own."""
        if self.data is not None:
            return self
        favoured = rows()
        if not len(favoured):
            raise InvalidValueError(
                "Hull", "rows of the target class", "there is none in the data",
                "Give data that has some, or the rows themselves: Hull(frame).",
            )  # fmt: skip
        own = self._own(space)
        if own is not space:
            favoured = favoured[:, [space.names.index(name) for name in own.names]]
        points = hull_points(own, favoured, scale=self.scale, clusters=self.clusters, sample=self.sample)
        return self._knowing(space, points)

    def _knowing(self, space: FeatureSpace, points: HullPoints, **changes: Any) -> Self:
        new = replace(self, **changes)
        new._known.update(space=space, points=points)  # noqa: SLF001 - of its own class
        return new

    def _points(self, space: FeatureSpace) -> HullPoints:
        """Return the points in the columns of a space; they are made once for all spaces that differ in reach alone."""
        known = self._known.get("space")
        if known is None or (known is not space and not are_alike(self._own(known), self._own(space), self.scale)):
            if self.data is None:
                raise InvalidValueError(
                    "Hull", "rows", "data is None and those of the target class are not known here",
                    "Give it rows of its own: Hull(frame).",
                )  # fmt: skip
            if self.data.empty:
                raise InvalidValueError("Hull", "at least one row", "data has none", "Give rows of the target class.")
            self._known.update(space=space, points=self._points_of_data(space, self.data))
        found: HullPoints = self._known["points"]
        return found

    def _own(self, space: FeatureSpace) -> FeatureSpace:
        """Return the space of the columns that the hull is of."""
        if self.columns is None:
            return space
        for name in self.columns:
            if name not in space:
                raise UnknownNameError.among("Hull", "column", name, space.names)
        if not self.columns:
            raise InvalidValueError("Hull", "some columns", "columns is empty", "Name some, or leave it out.")
        return FeatureSpace([space[name] for name in dict.fromkeys(self.columns)])

    def _points_of_data(self, whole: FeatureSpace, data: pd.DataFrame) -> HullPoints:
        """Return the points of the rows of its own that lack no cell."""
        space = self._own(whole)
        if self.columns is not None:
            data = data[[name for name in data.columns if name in space]]
        labels = labels_of_rows(self.clusters, len(data))
        given = self.clusters if labels is not None else None
        kept = rows_to_keep("Hull", space, data, word="data", clusters=given)
        clusters = self.clusters if labels is None else taken(labels, kept)
        rows = space.coordinates(taken(data, kept))
        return hull_points(space, rows, scale=self.scale, clusters=clusters, sample=self.sample)

    def first_points(self, space: FeatureSpace) -> Any:
        """Return the places of the points with which a program begins that generates the others; None where all are."""
        return self._points(space).first()

    def with_points(self, only: Any) -> Self:
        """Return the hull of some of its points, whose rows are those of all of them."""
        new = self._knowing(self._known["space"], self._known["points"])
        new._known["only"] = only  # noqa: SLF001 - of its own class
        return new

    # ---- the program -------------------------------------------------------------------------------------------------
    def build(self, block: Any, x: AbstractColumns) -> None:
        """Add the rows of the hulls."""
        self._write(block, x, self._limit)

    def relax(self, block: Any, x: AbstractColumns) -> Any:
        """Add the same with the radius as a variable, ``radius``; return by how much it is greater."""
        if self._limit is None:
            self.build(block, x)
            return 0.0
        block.radius = pyo.Var(bounds=(float(self.radius), None), initialize=float(self.radius))
        self._write(block, x, block.radius)
        return block.radius - float(self.radius)

    def widened(self, by: float) -> Self:
        """Return the hull with a radius greater by an amount."""
        if self._limit is None:
            return self
        if "points" not in self._known:
            return replace(self, radius=self.radius + by)
        return self._knowing(self._known["space"], self._known["points"], radius=self.radius + by)

    def _write(self, block: Any, x: AbstractColumns, limit: Any) -> None:
        rows = HullRows(block, x, self._points(x.space), self.norm, limit, self.penalty, self._known.get("only"))
        block.left_out = (rows.write(), rows.left_out)
        if self.sample is not None:
            title = f"{self.manifest.title}, a sample of at most {self.sample}"
            describe(block, replace(self.manifest, title=title))

    def cluster_in(self, block: Any) -> Any:
        """Return the label of the cluster that is active in the solution loaded."""
        if self.clusters is None:
            return None
        return max(block.in_cluster, key=lambda label: block.in_cluster[label].value or 0.0)

    # ---- the same in plain numbers -----------------------------------------------------------------------------------
    def distances(self, space: FeatureSpace, point: Point) -> dict[Any, float]:
        """Return how far a point is from the hull of each cluster by label; the label is None without clusters."""
        points = self._points(space)
        x, clusters = points.seen(point)
        return {label: hull_distance(own, x, self.norm)[0] for label, own in zip(points.labels, clusters, strict=True)}

    def violation(self, space: FeatureSpace, factual: Point | None, point: Point) -> float:
        """Return by how much the distance from the nearest hull is greater than the radius, beyond the tolerance."""
        del factual
        limit = self._limit
        if limit is None:
            return 0.0
        points = self._points(space)
        x, clusters = points.seen(point)
        allowed = limit + points.tolerance(limit)
        nearest = math.inf
        for own in clusters:
            nearest = min(nearest, hull_distance(own, x, self.norm, enough=allowed, beyond=nearest)[0])
            if nearest <= allowed:
                return 0.0
        return nearest - limit

    def judge(self, space: FeatureSpace, factual: Point) -> PointJudge:
        """Return who is asked which points are within the radius, and remembers how others were seen to be apart."""
        if self._limit is None:
            return PointJudge(self, space, factual)
        points = self._points(space)
        return HullJudge(self, space, factual, points, points.within_distance(self.norm, self._limit))

    @property
    def charges_more(self) -> bool:  # type: ignore[override]
        """Whether a slack costs something."""
        return bool(self.penalty)

    def surcharge(self, space: FeatureSpace, factual: Point, point: Point) -> float:
        """Return the penalty on the least l1 norm of a slack that the radius admits, or of any where it admits none."""
        del factual
        if not self.penalty:
            return 0.0
        points = self._points(space)
        x, clusters = points.seen(point)
        least = min(least_sum(own, x, self.norm, self._limit) for own in clusters)
        if not math.isfinite(least):
            least = min(least_sum(own, x, self.norm, None) for own in clusters)
        return float(self.penalty) * least

    # ---- in words ----------------------------------------------------------------------------------------------------
    def sentence(self) -> str:
        """Return the rule in words and numbers."""
        return sentence_of(self, self._known.get("points"))

    def __repr__(self) -> str:
        return short_text(self, self._known.get("points"))
