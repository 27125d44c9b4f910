"""The answer is a row that an isolation forest calls ordinary."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.predictors.embed import embed_predictor
from ceopt.formulations.predictors.reaches import Reaches
from ceopt.formulations.predictors.read import open_model
from ceopt.formulations.predictors.read.model_input import given
from ceopt.formulations.predictors.read.sklearn.isolation import OUTLIER_LABELS, read_isolation_forest
from ceopt.solvers.checks import check_fields
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.constraints.rule import Point
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.space import FeatureSpace

_CHECKS: Final = {"name": RULE_NAME}


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

    One row, ``ordinary``, over the embedded forest. The cuts on the columns are those of the model that decides, where
    both split alike. MILP. Exact: what scikit-learn itself says of the answer counts, ties included, and every answer
    is shown to it.

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
    5.60...  <=  3.0 + usual.forest.leaf[0,3] + 2.0*usual.forest.leaf[0,4] + ...
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
    slow: ClassVar[bool] = True

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
            known.update(predictor=read_isolation_forest(open_model(self.forest), space), space=space)
        found: Predictor = known["predictor"]
        return found

    def build(self, block: Any, x: Factual) -> None:
        """Embed the forest and add the row."""
        block.forest = embed_predictor(self._predictor(x.space), x, cutoff=x.cutoff)
        block.ordinary = Reaches(block.forest, OUTLIER_LABELS[1])

    def violation(self, space: FeatureSpace, factual: Point | None, point: Point) -> float:
        """Return how far below 0 the library's own ``decision_function`` is at the point."""
        del factual
        own = self._predictor(space).space
        frame = own.frame([{name: point[name] for name in own.names}])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown levels under handle_unknown="warn"
            decision = self.forest.decision_function(given(self.forest, own, frame))
        return max(0.0, -float(decision[0]))

    def sentence(self) -> str:
        """Return the rule in words."""
        return f"no outlier to {_title(self.forest)}"

    def __repr__(self) -> str:
        own = "" if self.name is None else f", name={self.name!r}"
        return f"NotAnOutlier({_title(self.forest)}{own})"


def _title(forest: Any) -> str:
    steps = getattr(forest, "steps", None)
    return type(steps[-1][1] if steps else forest).__name__
