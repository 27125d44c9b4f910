"""The answer is a row that an isolation forest calls ordinary."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import numpy as np

from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.linear_form import Rows
from ceopt.formulations.predictors.embed import embed_predictor
from ceopt.formulations.predictors.reaches import Reaches
from ceopt.formulations.predictors.readers import open_model
from ceopt.formulations.predictors.readers.model_input import given
from ceopt.formulations.predictors.readers.pipeline import split
from ceopt.formulations.predictors.readers.sklearn.isolation import OUTLIER_LABELS, decision_of, read_isolation_forest
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.tolerances import SAME_SUM, UNIT_ROUNDING
from ceopt.solvers.checks import Floats, check_fields
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.constraints.rule import Point
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.reachable import Reach
    from ceopt.formulations.space.space import FeatureSpace

_CHECKS: Final = {"name": RULE_NAME}
#: Values and points of which a judge keeps what it has found out.
_MOST_KEPT: Final = 100_000


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NotAnOutlier(AbstractRule):
    r"""The answer is no outlier to an isolation forest: its ``decision_function`` is at least 0 there.

    .. math::
        \sum_t \sum_\ell h_{t\ell} z_{t\ell} \ge -T c(\psi) \log_2(-o), \qquad h_{t\ell} = d_{t\ell} + c(n_{t\ell}), \\
        c(1) = 0, \quad c(2) = 1, \quad c(n) = 2 (\ln(n - 1) + \gamma) - \tfrac{2 (n - 1)}{n}

    ========== ======================= =================================================================
    symbol     component               meaning
    ========== ======================= =================================================================
    z          ``forest.leaf[t, l]``   1 iff tree t ends in that leaf, by rows as of
                                       :class:`~ceopt.formulations.predictors.embed.trees.OrderedTrees`
    h          leaf                    path length: d splits down to the leaf, and c(n) for the n rows in it
    T, psi     forest                  trees, and rows that each was grown on (``max_samples_``)
    o          forest                  ``offset_``: -0.5, or what ``contamination`` makes of it
    ========== ======================= =================================================================

    One row, ``ordinary``, over the embedded forest, and ``never_seen`` for each column with levels that a step before
    the forest fails on. The cuts on the columns are those of the model that decides, where both split alike. MILP.
    Exact: what scikit-learn itself says of the answer counts, ties included. :func:`ceopt.explain` solves without the
    rule first; an optimum that keeps it stands.

    Parameters
    ----------
    forest
        A fitted ``IsolationForest``, or a pipeline that ends in one, whatever encodes its columns. It may have been
        fitted on some of the space's columns alone, if on a frame.
    name
        Name in exports and reports.

    Raises
    ------
    UnsupportedModelError
        It is no isolation forest, is not fitted, flags every row, or was fitted on columns that the space does not
        have; a step of the pipeline has no exact representation; a column may be missing and nothing takes that.

    References
    ----------
    Liu, Ting & Zhou (2008), Isolation forest, equations 1 and 2, as scikit-learn computes them.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pyomo.environ as pyo
    >>> from sklearn.ensemble import IsolationForest
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> people = pd.DataFrame({"wage": [1, 2, 2, 3, 3, 3, 4, 4, 5, 30]})
    >>> forest = IsolationForest(n_estimators=2, random_state=0, contamination=0.1).fit(people)
    >>> forest.predict(pd.DataFrame({"wage": [3, 30]})).tolist()
    [1, -1]
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(FeatureSpace([Feature("wage", kind="integer", lower=0, upper=40)]), {"wage": 30})
    >>> m.usual = impose(NotAnOutlier(forest), m.x)
    >>> print(m.usual.ordinary.valid[1].expr)  # doctest: +ELLIPSIS
    5.99...  <=  3.0 + usual.forest.leaf[0,3] + 2.0*usual.forest.leaf[0,4] + ...
    """

    forest: Any
    name: str | None = None
    _known: dict[str, Any] = field(default_factory=dict, init=False)
    manifest: ClassVar[Manifest] = Manifest(
        title="no outlier to an isolation forest",
        formula="sum_t sum_l h[t,l] leaf[t,l] >= -T c(psi) log2(-offset), h = depth + c(rows in the leaf)",
        reference="Liu, Ting & Zhou 2008, as scikit-learn computes it",
        rule="NotAnOutlier",
    )
    needs_factual: ClassVar[bool] = False
    is_large: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self, _CHECKS)

    def check(self, space: FeatureSpace) -> None:
        """Refuse what is no isolation forest over columns of the space."""
        content = content_of(self.forest)
        if content is None or content != self._known.get("content"):  # it may have been fitted again since
            self._known.clear()
        self._predictor(space)
        self._known["content"] = content

    def _predictor(self, space: FeatureSpace) -> Predictor:
        """Return the forest over the columns of a space; it is read once."""
        known = self._known
        if known.get("space") is not space and known.get("space") != space:
            known.pop("judge", None)
            known.update(predictor=read_isolation_forest(open_model(self.forest), space), space=space)
        found: Predictor = known["predictor"]
        return found

    def build(self, block: Any, x: Factual) -> None:
        """Embed the forest and add the row."""
        block.forest = embed_predictor(self._predictor(x.space), x, cutoff=x.cutoff)
        block.ordinary = Reaches(block.forest, OUTLIER_LABELS[1])
        for name, ranks in block.forest.predictor.unseen.items():  # levels that a step before the forest fails on
            Rows(block, "never_seen").add(name, x.coordinate(name).indicator(ranks), upper=0.0)

    def stand_ins(self, reach: Reach) -> tuple[Predictor, ...]:
        """Return the forest, which decides just so; nothing before the rule was checked against a space."""
        del reach
        predictor = self._known.get("predictor")
        return () if predictor is None or predictor.unseen else (predictor,)

    def violation(self, space: FeatureSpace, factual: Point | None, point: Point) -> float:
        """Return how far below 0 the ``decision_function`` is at the point."""
        del factual
        predictor = self._predictor(space)
        if "judge" not in self._known:
            self._known["judge"] = _OutlierJudge(predictor)
        judge: _OutlierJudge = self._known["judge"]
        return max(0.0, -judge.decision(point))

    def sentence(self) -> str:
        """Return the rule in words."""
        return f"no outlier to {_title(self.forest)}"

    def __repr__(self) -> str:
        own = "" if self.name is None else f", name={self.name!r}"
        return f"NotAnOutlier({_title(self.forest)}{own})"


@final
class _OutlierJudge:
    """The ``decision_function`` of a forest at points, from its trees as read, which were held against the library's.

    Within rounding of the level, where an order of summation decides, the library itself is asked, once a point: it
    takes milliseconds. What the trees see of a value is kept, as a search asks about many points of few values.
    """

    __slots__ = ("_asked", "_codes", "_forest", "_predictor", "_rounding", "_row", "_targets")

    def __init__(self, predictor: Predictor) -> None:
        core = predictor.core
        assert isinstance(core, TreeEnsemble)  # noqa: S101 - read_isolation_forest makes no other
        self._predictor = predictor
        self._forest = split(predictor.model)[1]
        share = max(SAME_SUM, 2.0 * UNIT_ROUNDING[core.sum_dtype] * len(core.trees))
        self._rounding = share * max(abs(core.level), 1.0)
        columns = predictor.encoding.columns
        #: What the trees see of a row, (columns,): those that read no cell hold what they always do.
        self._row = np.array([0.0 if column.feature else column.evaluate([0.0])[0] for column in columns])
        self._targets: dict[str, list[int]] = {name: [] for name in predictor.space.names}
        for place, column in enumerate(columns):
            if column.feature:
                self._targets[column.feature].append(place)
        self._codes: dict[tuple[str, float], Floats] = {}
        self._asked: dict[tuple[float, ...], float] = {}

    def decision(self, point: Point) -> float:
        """Return the library's ``decision_function`` at a point."""
        core = self._predictor.core
        row = self._row.copy()
        for name, places in self._targets.items():
            if point[name] in self._predictor.unseen.get(name, ()):  # a step before the forest fails on this level
                return -math.inf
            row[places] = self._code(name, point[name])
        total = float(core.score(row[None])[0])
        if abs(total - core.level) > self._rounding:
            return decision_of(self._forest, total)
        return self._by_library(point)

    def _code(self, name: str, value: float) -> Floats:
        """Return what the trees see of a value of a column, (columns that read it,)."""
        key = (name, float(value))
        if key not in self._codes:
            if len(self._codes) >= _MOST_KEPT:
                self._codes.clear()
            columns = self._predictor.encoding.columns
            seen = [columns[place].evaluate([value])[0] for place in self._targets[name]]
            self._codes[key] = np.array(seen)
        return self._codes[key]

    def _by_library(self, point: Point) -> float:
        space = self._predictor.space
        row = tuple(float(point[name]) for name in space.names)
        if row not in self._asked:
            if len(self._asked) >= _MOST_KEPT:
                self._asked.clear()
            model = self._predictor.model
            frame = space.frame([dict(zip(space.names, row, strict=True))])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # unknown levels under handle_unknown="warn"
                self._asked[row] = float(model.decision_function(given(model, space, frame))[0])
        return self._asked[row]


def _title(forest: Any) -> str:
    steps = getattr(forest, "steps", None)
    return type(steps[-1][1] if steps else forest).__name__
