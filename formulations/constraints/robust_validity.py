"""Favourable after the next retraining too, with a probability that holds for all parameters near some moments."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule, Point
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.predictors.embed.embedded import Inputs
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.predictors.readers.model_input import behind, dense, given
from ceopt.formulations.predictors.readers.pipeline import split
from ceopt.formulations.predictors.representation import AbstractRepresentation, Affine
from ceopt.formulations.predictors.ties import margin_near, row_scale
from ceopt.formulations.programs.moments import Moments, require_moments
from ceopt.formulations.programs.validity_lower import least_of_score
from ceopt.formulations.space.space import FeatureSpace, point_row
from ceopt.formulations.tolerances import NO_ROBUST_ENTRY, ROBUST_BOUND_ROUNDING
from ceopt.solvers.checks import (
    NOT_A_NUMBER,
    AbstractCheck,
    Real,
    Refusal,
    check_fields,
    in_double,
    is_number,
    is_whole,
)
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import InvalidValueError, UnsupportedModelError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.encoding import Column
    from ceopt.solvers.checks import Floats

# ==== The row that an estimator is given, by the pipeline's own steps, and the names of its columns ===================


def row_seen(predictor: Predictor, point: Mapping[str, float]) -> Floats:
    """Return the row (m,) that the estimator is given for a point in coordinates; NaN where the pipeline fails on it.

    A pipeline of scikit-learn transforms the raw row itself. Of other models, and of those that wrap a pipeline, the
    encoding is asked, which was compared with their own bit for bit when they were read.
    """
    space = predictor.space
    if any(point[name] in ranks for name, ranks in predictor.unseen.items()):
        return np.full(len(predictor.encoding.columns), np.nan)
    steps, estimator = _steps(predictor.model)
    if not _reads_numbers(estimator, len(predictor.encoding.columns)):
        return _row(predictor.encoding.matrix(point_row(space, point)))
    data = given(open_model(predictor.model), space, space.frame([point]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown levels under handle_unknown="warn"
        return _row(behind(steps, data))


def _row(matrix: Any) -> Floats:
    return np.asarray(dense(matrix), dtype=np.float64).reshape(-1)


def _steps(model: Any) -> tuple[list[Any], Any]:
    if isinstance(model, AbstractRepresentation):
        return [], model
    return split(open_model(model))


def _reads_numbers(estimator: Any, count: int) -> bool:
    """Return whether it is a linear estimator of scikit-learn with a coefficient for each column of its matrix."""
    if type(estimator).__module__.partition(".")[0] != "sklearn":
        return False
    coefficients: Any = getattr(estimator, "coef_", ())
    return bool(np.shape(coefficients)[-1:] == (count,))


def column_names(predictor: Predictor) -> list[str]:
    """Return a name for each column of the estimator's matrix: "age", or "job=cook" where it tells one level."""
    return [_name(column, predictor.space) for column in predictor.encoding.columns]


def _name(column: Column, space: FeatureSpace) -> str:
    if column.feature is None:
        return f"{column.constant:g}"
    if column.table is None or len(column.table) <= 2:
        return column.feature
    ranks = np.flatnonzero(np.asarray(column.table) != 0.0)
    if len(ranks) != 1:
        return column.feature
    level = space[column.feature].levels[int(ranks[0])]
    return f"{column.feature}={level}"


# ==== Favourable after the next retraining too, with a probability that holds for all parameters near some moments ====


@final
@dataclass(frozen=True, slots=True)
class _OfAnySize(AbstractCheck):
    """A number of any size, beyond doubles infinite, that is then what another check asks for."""

    check: AbstractCheck

    def require(self, who: str, name: str, value: Any) -> Any:
        """Return what the other check returns of the number in double precision."""
        if not (is_whole(value) or is_number(value)):
            raise NOT_A_NUMBER.of(who, name, value)
        return self.check.require(who, name, in_double(value))


_NO_RADIUS = Refusal("a finite radius of at least 0", "Give for example 0.1.")
_NO_LEVEL = Refusal(
    "a level of at least 0 and less than 1",
    "A level is a probability, 0.9 for 90 %; nothing is certain while covariance or radius is not 0.",
)
_CHECKS = {
    "name": RULE_NAME,
    "radius": _OfAnySize(Real(at_least=0.0, finite=True, otherwise=_NO_RADIUS)),
    "level": _OfAnySize(Real(at_least=0.0, at_most=1.0, otherwise=_NO_LEVEL)),
}

#: How many columns an error names.
_SHOWN = 12


@final
@dataclass(frozen=True, slots=True)
class RobustRows:
    """Writes the rows of one rule into an empty block.

    Parameters
    ----------
    block, x
        Where the rows go, and the person.
    predictor
        What says which columns the classifier sees of x.
    moments
        Mean and covariance of its parameters, the intercept last.
    """

    block: Any
    x: Factual
    predictor: Predictor
    moments: Moments

    def write(self, kappa: float, ambiguity: float) -> None:
        """State that the mean score less ``kappa`` deviations less ``ambiguity`` lengths is at least the margin."""
        mean = self.moments.mean
        factor = self.moments.factor
        score = Predictor(Affine(mean[:-1], mean[-1]), self.predictor.encoding, None, self.predictor.space)
        point = point_row(self.x.space, self.x.point)
        margin = margin_near(score, float(score.score(point)[0]), point)
        unit = row_scale(score, margin)
        read = np.ones(len(mean) - 1, dtype=bool)
        if ambiguity == 0.0:
            read = mean[:-1].astype(bool) | (kappa > 0.0) & factor[:-1].any(axis=1)
        inputs = Inputs(self.predictor, self.x, read)
        favourable = _forms(inputs, unit * mean[None, :])[0]
        if kappa > 0.0 and factor.size:
            favourable += self._norm("spread", _forms(inputs, unit * kappa * factor.T, triangular=True)).scaled(-1.0)
        if ambiguity > 0.0:
            favourable += self._norm("ambiguity", _forms(inputs, unit * ambiguity * np.eye(len(mean)))).scaled(-1.0)
        Rows(self.block, "favourable").add("score", favourable, lower=unit * margin)

    def keep_off_unseen(self) -> None:
        """Keep the person off the levels that the pipeline fails on."""
        for column, ranks in self.predictor.unseen.items():
            Rows(self.block, "never_seen").add(column, self.x.coordinate(column).indicator(ranks), upper=0.0)

    def _norm(self, name: str, entries: list[LinearForm]) -> LinearForm:
        """Return a form that is at least the norm of the entries: a variable of its own, or a number."""
        still = math.hypot(*(form.constant for form in entries if not form.terms))
        moving = tuple(form for form in entries if form.terms)
        if not moving:
            return LinearForm(still)
        if still > 0.0:
            entries = [*moving, LinearForm(still)]
        else:
            entries = list(moving)
        variable = pyo.Var(bounds=(0.0, None))
        self.block.add_component(name, variable)
        cone = soc(variable, [form.expression() for form in entries]) >= 0.0
        self.block.add_component(f"{name}_cone", pyo.Constraint(expr=cone))
        self.x.also_place(_Length(variable, tuple(entries)))
        return LinearForm(0.0, ((1.0, variable),))


@final
@dataclass(frozen=True, slots=True)
class _Length:
    """Sets a variable to the norm of some forms, once the columns are placed."""

    variable: Any
    entries: tuple[LinearForm, ...]

    def __call__(self, _point: Any) -> None:
        if all(v.value is not None for form in self.entries for _, v in form.terms):
            self.variable.set_value(math.hypot(*(form.value() for form in self.entries)), skip_validation=True)


def _forms(inputs: Inputs, weights: Floats, *, triangular: bool = False) -> list[LinearForm]:
    """Return ``weights @ (phi(x), 1)``, of several rows such that their norm is the same.

    There are no more rows than atoms, and a constant. Triangular ones have half the terms of dense ones: with the rows
    of an eigenvalue decomposition, HiGHS failed on one in four of the programs of German credit.
    """
    rows = np.column_stack([weights[:, :-1] @ inputs.matrix, weights[:, :-1] @ inputs.offset + weights[:, -1]])
    if triangular or len(rows) > rows.shape[1]:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
        lead = rows[
            np.arange(len(rows)), (np.abs(rows) > NO_ROBUST_ENTRY * np.abs(rows).max(initial=0.0)).argmax(axis=1)
        ]
        rows = rows * np.where(lead < 0.0, -1.0, 1.0)[:, None] + 0.0  # no -0
    return inputs.atoms.forms(rows[:, :-1], rows[:, -1])


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RobustValidity(AbstractRule):
    r"""The answer is favourable with at least a probability, whatever retraining makes of a linear classifier.

    Its parameters are random. Mean and covariance are known up to a Gelbrich distance of ``radius``, and nothing else.
    The least probability of :math:`\theta^\top \tilde x > 0` over all such distributions is at least ``level`` iff

    .. math::
        \hat\mu^\top \tilde x \;\ge\; \kappa \lVert F^\top \tilde x \rVert
        + \rho \sqrt{1 + \kappa^2}\, \lVert \tilde x \rVert, \qquad \kappa = \sqrt{\tfrac{l}{1 - l}},
        \qquad \tilde x = (\phi(x), 1),

    stated as :math:`\hat\mu^\top \tilde x - t - s \ge \tau,\; t \ge \kappa \lVert F^\top \tilde x \rVert,\; s \ge \rho
    \sqrt{1 + \kappa^2} \lVert \tilde x \rVert`, all in one unit near the size of the score.

    ============== ================== ============== ==========================================================
    symbol         component          shape          meaning
    ============== ================== ============== ==========================================================
    phi(x)         ``x``              (m,)           what the classifier sees of x, after scalers and encoders
    mu             given              (m + 1,)       ``mean`` of its parameters, the intercept last
    F F'           given              (m + 1, m + 1) their ``covariance``
    rho            given              ()             ``radius``, a distance between parameters (not squared)
    l              given              ()             ``level``, a probability
    t              ``spread``         ()             what the covariance takes off the score; ``spread_cone``
    s              ``ambiguity``      ()             what the radius takes off it; ``ambiguity_cone``
    tau            given              ()             margin, as :func:`~ceopt.formulations.Reaches` has it
    ============== ================== ============== ==========================================================

    Two variables, two second-order cones and one row, ``favourable``; a cone less where the covariance or the radius
    is 0. The entries of F'x are rotated, so that they are triangular in the columns. Nothing at level 0, which every
    answer has. SOCP; with integers MISOCP.

    Exact but for the margin, which keeps a solver's tolerance from the level: answers have the level itself, as the
    check finds it by the closed form of the bound at the row that the pipeline's own steps make of an answer.

    Parameters
    ----------
    mean, covariance
        Shapes (m + 1,) and (m + 1, m + 1), over the columns that the classifier sees, in its order, the intercept last.
        They are those of a score that is positive where the answer is favourable: of the second of two classes, as
        ``coef_`` and ``intercept_`` are. Where the first is the target, ``mean`` changes its sign; with several classes
        the parameters may be those of a difference of two scores, one rule each.
    radius
        At least 0, in the units of the parameters.
    level
        From 0 up to, and without, 1; 1 itself only where the parameters are certain: covariance and radius 0.
    model
        The classifier; by default the one that :func:`ceopt.explain` explains. Needed in a model of your own.
    name
        Name in exports and reports.

    Raises
    ------
    InvalidValueError
        A level or radius out of range; moments of another number of parameters than the classifier has, not finite, not
        symmetric or not positive semidefinite; a rule in a model of your own that was not told its classifier.
    InvalidTypeError
        A level or radius that is no number.
    UnsupportedModelError
        A classifier whose score is not linear in its columns, or that clips one.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, theorem 2.2, for one
    counterfactual; the closed form is derived in ``ceopt/formulations/programs/validity_lower.py``.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("wage", kind="continuous", lower=0, upper=8), Feature("age", kind="integer")])
    >>> model = Affine([1.0, 0.5], -4.0, labels=("no", "yes"))
    >>> rule = RobustValidity([1.0, 0.5, -4.0], [[0.04, 0, 0], [0, 0.01, 0], [0, 0, 0]], 0.25, 0.5, model=model)
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"wage": 1.0, "age": 2})
    >>> m.robust = impose(rule, m.x)
    >>> for row in m.robust.component_data_objects(pyo.Constraint):  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    ...     print(row.local_name, row.expr)
    spread_cone 0.0 <= second_order_margin(robust.spread, 0.2*x.x[wage], 0.1*x.x[age])
    ambiguity_cone 0.0 <= second_order_margin(robust.ambiguity, 0.353...*x.x[wage], 0.353...*x.x[age], 0.353...)
    favourable[score] 5e-06 <= -4.0 + x.x[wage] + 0.5*x.x[age] - robust.spread - robust.ambiguity
    """

    mean: ArrayLike
    covariance: ArrayLike
    radius: float
    level: float
    name: str | None = None
    model: Any = field(default=None, kw_only=True)
    _moments: Moments = field(init=False)
    _known: dict[str, Any] = field(default_factory=dict, init=False)
    manifest: ClassVar[Manifest] = Manifest(
        title="favourable with a probability, whatever retraining does",
        formula="mean'x - kappa |F'x| - radius sqrt(1 + kappa^2) |x| >= margin, kappa = sqrt(level / (1 - level))",
        reference="Bui, Nguyen & Nguyen 2022, Theorem 2.2, for one counterfactual",
        rule="RobustValidity",
    )
    needs_factual: ClassVar[bool] = False
    slow: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked = check_fields(self, _CHECKS)
        object.__setattr__(self, "radius", checked["radius"])
        object.__setattr__(self, "level", checked["level"])
        moments = require_moments("RobustValidity", self.mean, self.covariance)
        object.__setattr__(self, "_moments", moments)
        certain = self.radius == 0.0 and not moments.covariance.any()
        if self.level == 1.0 and not certain:
            raise _NO_LEVEL.of("RobustValidity", "level", self.level)

    # ---- the classifier ----------------------------------------------------------------------------------------------
    def check(self, space: FeatureSpace) -> None:
        """Refuse a classifier of its own that does not fit the space or the moments."""
        if self.model is not None:
            content = content_of(self.model)
            if content is None or content != self._known.get("content"):  # it may have been fitted again since
                self._known.clear()
            self._predictor(space)
            self._known["content"] = content

    def about(self, predictor: Callable[[], Predictor]) -> RobustValidity:
        """Return the rule about the model that is explained, unless it has one of its own."""
        if self.model is not None:
            return self
        explained = predictor()
        if self._known.get("predictor") is explained:
            return self
        self._require_fit(explained)
        new = replace(self)
        new._known["predictor"] = explained  # noqa: SLF001 - of its own class
        return new

    def _predictor(self, space: FeatureSpace) -> Predictor:
        """Return the classifier over the columns of a space; its own one is read once."""
        if self.model is not None and self._known.get("space") is not space and self._known.get("space") != space:
            predictor = read(open_model(self.model), space)
            self._require_fit(predictor)
            self._known.update(space=space, predictor=predictor)
        if "predictor" not in self._known:
            raise InvalidValueError(
                "RobustValidity", "to know the classifier", "model is None and none is explained here",
                "Give it: RobustValidity(mean, covariance, radius, level, model=pipeline).",
            )  # fmt: skip
        found: Predictor = self._known["predictor"]
        return found

    def _require_fit(self, predictor: Predictor) -> None:
        """Refuse a classifier whose score is not linear in what it sees, or moments of other parameters than its."""
        if not isinstance(predictor.core, Affine):
            raise UnsupportedModelError(
                "RobustValidity", "a model whose score is linear in its columns",
                f"{type(predictor.model).__name__} is not",
                "Fit a linear one, such as LogisticRegression, or state the rule about a linear one: model=.",
            )  # fmt: skip
        moments = self._moments
        names = column_names(predictor)
        if len(moments.mean) != len(names) + 1:
            shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
            raise InvalidValueError(
                "RobustValidity", f"moments of {len(names) + 1} parameters",
                f"mean has {len(moments.mean)}",
                f"Give one for each column that the classifier sees ({shown}), and the intercept last.",
            )  # fmt: skip
        uncertain = moments.mean.astype(bool) | moments.covariance.any(axis=0) | (self.radius > 0.0)
        for column, used in zip(predictor.encoding.columns, uncertain.tolist(), strict=False):
            if used and not column.is_affine:
                raise UnsupportedModelError(
                    "RobustValidity", "columns that are not clipped", f"the pipeline clips {column.feature!r}",
                    "Fit the scaler with clip=False and bound the column in the space instead.",
                )  # fmt: skip

    # ---- the program -------------------------------------------------------------------------------------------------
    @property
    def kappa(self) -> float:
        """How many standard deviations the mean score must be above 0 without a radius; 0 where nothing is random."""
        if self.level == 1.0:
            return 0.0
        return math.sqrt(self.level / (1.0 - self.level))

    def build(self, block: Any, x: Factual) -> None:
        """Add the cones and the row; nothing at level 0."""
        predictor = self._predictor(x.space)
        if self.level > 0.0:
            rows = RobustRows(block, x, predictor, self._moments)
            rows.write(self.kappa, self.radius * math.sqrt(1.0 + self.kappa**2))
            if self.model is not None:
                rows.keep_off_unseen()

    # ---- the same in plain numbers -----------------------------------------------------------------------------------
    def bound(self, space: FeatureSpace, point: Point) -> float:
        r"""Return the least probability that a point is favourable, over all parameters near the moments.

        .. math::
            L = \Bigl(\tfrac{m \sqrt{R^2 - r^2} - s r}{R^2}\Bigr)^2 \text{ if } m > r, \text{ else } 0; \qquad
            m = \hat\mu^\top \tilde x,\; s = \lVert F^\top \tilde x \rVert,\; r = \rho \lVert \tilde x \rVert,\;
            R^2 = m^2 + s^2.
        """
        x = np.append(row_seen(self._predictor(space), point), 1.0)
        m = float(self._moments.mean @ x)
        s = math.sqrt(max(float(x @ self._moments.covariance @ x), 0.0))
        return least_of_score(m, s, float(self.radius) * float(np.linalg.norm(x)))[0]

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return by how much the bound is below the level, beyond rounding."""
        del factual
        if self.level == 0.0:
            return 0.0
        bound = self.bound(space, point)
        if bound >= self.level * (1.0 - ROBUST_BOUND_ROUNDING):
            return 0.0
        return float(self.level) if math.isnan(bound) else float(self.level) - bound

    # ---- in words ----------------------------------------------------------------------------------------------------
    def sentence(self) -> str:
        """Return the rule in words and numbers."""
        whose = ""
        if self.model is not None:
            whose = f" to {_title(self.model)}"
        near = "with"
        if self.radius != 0.0:
            near = f"within {digits(self.radius)} of"
        return f"favourable{whose} with probability >= {digits(self.level)} for all parameters {near} the moments given"

    def __repr__(self) -> str:
        own = ""
        if self.model is not None:
            own = f", model={_title(self.model)}"
        if self.name is not None:
            own += f", name={self.name!r}"
        return f"RobustValidity(<{len(self._moments.mean)} parameters>, {self.radius!r}, {self.level!r}{own})"


def _title(model: Any) -> str:
    if isinstance(model, Predictor):
        model = model.model
    if isinstance(model, str):
        return model
    return type(model).__name__
