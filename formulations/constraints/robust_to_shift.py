"""Valid for every network whose weights and biases are near those of the model: the worst of a box, as one network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import LinearForm, Rows, finite_or_none, sum_form
from ceopt.formulations.predictors.embed.embedded import Inputs
from ceopt.formulations.predictors.embed.networks import BigMNetwork
from ceopt.formulations.predictors.predictor import Predictor, name_of
from ceopt.formulations.predictors.reaches import WantedSum, require_finite, target_margin, wanted_sums
from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.predictors.representation import AbstractLayers, ReluNetwork
from ceopt.formulations.predictors.ties import row_scale
from ceopt.formulations.space.space import point_row
from ceopt.formulations.targets import DisagreementOf, Target, parse_target
from ceopt.solvers.checks import AllOf, Moderate, Real, Refusal, check_fields
from ceopt.solvers.errors import InvalidValueError, UnboundedFeatureError, UnsupportedModelError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.constraints.rule import Point
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.solvers.checks import Floats

# ==== The worst of a box of weights, as one network ===================================================================


def worst_network(
    layers: Sequence[tuple[Floats, Floats]], asked: Sequence[WantedSum], delta: float, low: Floats
) -> tuple[ReluNetwork, frozenset[tuple[int, int]]]:
    """Return the network whose scores are the least of what is asked over the box, and its neurons of upper bounds.

    Its first layer is ``x - low + 1``, which is above 0, and ``max(0, -x)`` of the inputs that may be negative; each
    hidden layer of the model follows as its lower and its upper bounds, and those that nothing reads are left out by
    the formulation.

    Parameters
    ----------
    layers
        Those of the model, one hidden layer at least.
    asked
        What its scores are asked.
    delta
        Half the width of the box.
    low
        The least value of each input, (m,); finite.
    """
    m = len(low)
    read = _seen(layers[0][0], delta)
    signed = np.flatnonzero((low < 0.0) & (delta > 0.0))
    kept = np.flatnonzero(read)
    origin = low[kept] - 1.0
    w = [np.vstack((np.eye(m)[kept], -np.eye(m)[signed]))]
    b = [np.concatenate((-origin, np.zeros(len(signed))))]
    above = {(0, len(kept) + k) for k in range(len(signed))}

    first, bias = layers[0]
    less = first[:, kept] - delta
    more = first[:, kept] + delta
    twice = np.full((len(first), len(signed)), 2.0 * delta)
    w.append(np.vstack((np.hstack((less, -twice)), np.hstack((more, twice)))))
    b.append(np.concatenate((less @ origin + bias - delta, more @ origin + bias + delta)))
    for weights, bias in layers[1:-1]:
        least, greatest = weights - delta, weights + delta
        w.append(np.vstack((_of_ends(least), _of_ends(greatest)[:, _swapped(weights.shape[1])])))
        b.append(np.concatenate((bias - delta, bias + delta)))
    for i, biases in enumerate(b[1:], start=1):
        above |= {(i, k) for k in range(len(biases) // 2, len(biases))}

    last, bias = layers[-1]
    sums = np.array([each.weights for each in asked])
    moves = delta * np.array([_share(each) for each in asked])
    w.append(_of_ends(sums @ last - moves[:, None]))
    b.append(sums @ bias - moves)
    labels = None if len(asked) == 1 else tuple(range(len(asked)))
    return ReluNetwork(w, b, labels=labels), frozenset(above)


def _seen(weights: Floats, delta: float) -> NDArray[np.bool_]:
    """Return which inputs of a network have a weight somewhere in the box; the first where none has."""
    read = (weights != 0.0).any(axis=0) | (delta > 0.0)
    read[0] |= not read.any()
    return np.asarray(read)


def _of_ends(weights: Floats) -> Floats:
    """Return weights over (lower, upper) bounds of outputs that give their least weighted sum."""
    return np.hstack((np.maximum(weights, 0.0), np.minimum(weights, 0.0)))


def _share(asked: WantedSum) -> float:
    """Return by how many times a move of every score a sum may move."""
    return float(np.abs(asked.weights).sum())


def _swapped(width: int) -> Any:
    """Return the places of (upper, lower) bounds in (lower, upper)."""
    return np.concatenate((np.arange(width, 2 * width), np.arange(width)))


# ==== The same in plain numbers: interval arithmetic over the box =====================================================


@final
class _BoxJudge:
    """The least of what a target asks, over all networks of the box, at points."""

    __slots__ = ("_alternatives", "_delta", "_hidden", "_last", "_predictor")

    def __init__(self, predictor: Predictor, target: Target, delta: float) -> None:
        core = _layers_of(predictor)
        *hidden, (weights, biases) = core.layers
        self._predictor = predictor
        self._delta = delta
        self._hidden = hidden
        self._last = weights, biases
        self._alternatives = wanted_sums(core, target)

    def worst(self, point: Point) -> tuple[float, bool]:
        """Return by how much every network of the box meets the target at a point, and whether 0 is enough."""
        space = self._predictor.space
        seen = np.asarray(self._predictor.encoding.matrix(point_row(space, point)), dtype=np.float64)[0]
        if np.isnan(seen).any():  # a level that the pipeline fails on
            return -math.inf, False
        low = high = seen
        for weights, biases in self._hidden:
            least, greatest = _interval(weights - self._delta, weights + self._delta, low, high)
            low = np.maximum(least + (biases - self._delta), 0.0)
            high = np.maximum(greatest + (biases + self._delta), 0.0)
        best, enough = -math.inf, False
        for _, conditions in self._alternatives:
            slack, ties = math.inf, True
            for asked in conditions:
                short = self._least(asked, low, high) - asked.level
                if short < slack:
                    slack, ties = short, asked.ties
                elif short == slack:
                    ties = ties and asked.ties
            best, enough = max((best, enough), (slack, ties))
        return best, enough

    def _least(self, asked: WantedSum, low: Floats, high: Floats) -> float:
        weights, biases = self._last
        move = self._delta * _share(asked)
        row = np.array(asked.weights) @ weights
        least, _ = _interval((row - move)[None, :], (row + move)[None, :], low, high)
        return float(least[0] + np.array(asked.weights) @ biases - move)


def _interval(least: Floats, greatest: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the least and the greatest of ``w @ h`` over ``least <= w <= greatest``, ``low <= h <= high``."""
    ends = np.stack((least * low, least * high, greatest * low, greatest * high))
    return ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)


# ==== The rule ========================================================================================================

_NO_DELTA = Refusal("a finite delta of at least 0", "Give for example 0.01: how far a weight may move.")
_CHECKS = {
    "name": RULE_NAME,
    "delta": AllOf((Real(at_least=0.0, finite=True, otherwise=_NO_DELTA), Moderate())),
}


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RobustToShift(AbstractRule):
    r"""The answer has the decision by every network whose weights and biases differ by at most ``delta``.

    .. math::
        \min_{|W'_i - W_i| \le \delta,\ |b'_i - b_i| \le \delta} w^\top s(W', b'; \phi(x)) \ \ge\ \ell + m

    for what the target asks of the scores, :math:`w^\top s \ge \ell`: one score at a limit, or the difference to each
    rival, in which the weights of both heads move. With :math:`n = \max(0, -\phi)`, so that
    :math:`|\phi| = \phi + 2 n`, and :math:`[\cdot]^\pm` the positive and the negative part,

    .. math::
        l_1 = \max(0, (W_1 - \delta) \phi - 2 \delta n + b_1 - \delta), \qquad
        u_1 = \max(0, (W_1 + \delta) \phi + 2 \delta n + b_1 + \delta), \\
        l_i = \max(0, [W_i - \delta]^+ l_{i-1} + [W_i - \delta]^- u_{i-1} + b_i - \delta), \qquad
        u_i = \max(0, [W_i + \delta]^+ u_{i-1} + [W_i + \delta]^- l_{i-1} + b_i + \delta), \\
        [w^\top W_L - r]^+ l_{L-1} + [w^\top W_L - r]^- u_{L-1} + w^\top b_L - r \ \ge\ \ell + m,
        \qquad r = \delta \lVert w \rVert_1 .

    Of a linear model, by the closed form: :math:`w^\top (W \phi + b) - r (\lVert \phi \rVert_1 + 1) \ge \ell + m`.

    ======== ====================== ===============================================================================
    symbol   component              meaning
    ======== ====================== ===============================================================================
    phi(x)   ``x``                  what the network sees of x, after scalers and encoders
    n        ``network.post[0, k]`` ``max(0, -phi)`` of inputs that may be negative; ``negative[j]`` of linear models
    l, u     ``network.post[i, k]`` bounds of the outputs of layer i over the box, the lower ones first
    W, b     given                  weights and biases of the model as it was read
    m        given                  margin, as :func:`~ceopt.formulations.Reaches` has it by default
    ======== ====================== ===============================================================================

    One row ``holds`` for each rival. Of a network: the rows of
    :class:`~ceopt.formulations.predictors.embed.networks.BigMNetwork` over at most twice the neurons of each hidden
    layer, in the last one as many as it has where one score decides. Only lower bounds that switch have a binary: u and
    n are held from below, ``not_below``, which is exact as no score of the worst case rises with them. MILP. Of a
    linear model a variable and a row for each input that may be negative: LP.

    Exact for linear models and for networks of one hidden layer. **From two hidden layers on the rule is defined as the
    interval bound** that stands above: a neuron takes its least value for one reader and its greatest for another, so
    the bound may be less than the minimum over the box. What keeps the rule has the decision by every network of the
    box; that nothing keeps it says nothing of the box itself. The check is interval arithmetic in floats.

    Of several labels wanted one and the same has to win by all networks.

    Parameters
    ----------
    delta
        By how much each weight and bias may move, in the network's own units: behind a scaler, of scaled columns.
    name
        Name in exports and reports.
    target
        As for :func:`ceopt.explain`; by default what is asked there. Needed in a model of your own.
    model
        The model; by default the one that is explained. With another one give its target.

    Raises
    ------
    InvalidValueError
        Delta is negative, NaN or infinite; a model without a target, or a rule in a model of your own that was not told
        them.
    UnsupportedModelError
        Trees, models of several models, or a network with layers that have no ReLU between them.
    UnboundedFeatureError
        A column that a network sees has no bound, or of a linear model where several labels are wanted.

    References
    ----------
    Jiang, Leofante, Rago & Toni (2023), Formalising the robustness of counterfactual explanations for neural networks,
    for the set of networks and its interval abstraction; Jiang et al. (2024), Provably robust and plausible
    counterfactual explanations for neural networks via robust optimisation. The network of both bounds is ours.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("wage", kind="continuous", lower=0, upper=8), Feature("debt", kind="integer")])
    >>> model = Affine([1.0, -0.5], -4.0, labels=("no", "yes"))
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"wage": 1.0, "debt": 2})
    >>> m.robust = impose(RobustToShift(0.25, target="yes", model=model), m.x)
    >>> for row in m.robust.component_data_objects(pyo.Constraint):  # doctest: +ELLIPSIS
    ...     print(row.local_name, row.expr)
    not_below[1] 0.0 <= robust.negative[1] + x.x[debt]
    holds[yes] 1e-05 <= -4.25 + 0.75*x.x[wage] - 0.75*x.x[debt] - 0.5*robust.negative[1]
    """

    delta: float
    name: str | None = None
    target: Any = field(default=None, kw_only=True)
    model: Any = field(default=None, kw_only=True)
    _known: dict[str, Any] = field(default_factory=dict, init=False)
    manifest: ClassVar[Manifest] = Manifest(
        title="valid for every network near this one",
        formula="min of the score over |W' - W| <= delta, |b' - b| <= delta at the level, by bounds of each neuron",
        reference="own; the set of networks of Jiang, Leofante, Rago & Toni 2023",
        rule="RobustToShift",
    )
    needs_factual: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", check_fields(self, _CHECKS)["delta"])
        if self.model is not None and self.target is None:
            raise InvalidValueError(
                "RobustToShift", "a target beside a model of its own", "target is None",
                "Name it: RobustToShift(0.01, target='good', model=network).",
            )  # fmt: skip

    # ---- the model and the target ------------------------------------------------------------------------------------
    def check(self, space: FeatureSpace) -> None:
        """Refuse a model of its own that does not fit the space, has no weights, or does not have the target."""
        if self.model is not None:
            content = content_of(self.model)
            if content is None or content != self._known.get("content"):  # it may have been fitted again since
                self._known.clear()
            self._judge(space)
            self._known["content"] = content

    def about(self, predictor: Callable[[], Predictor]) -> RobustToShift:
        """Return the rule about the model that is explained, unless it has one of its own."""
        if self.model is not None:
            return self
        explained = predictor()
        _layers_of(explained)
        if self._known.get("predictor") is explained:
            return self
        return self._knowing(predictor=explained)

    def aimed(self, target: Any) -> RobustToShift:
        """Return the rule about the target that is asked for, unless it has one of its own."""
        if self.target is not None or target is self._known.get("target"):
            return self
        return self._knowing(target=target)

    def _knowing(self, **more: Any) -> RobustToShift:
        new = replace(self)
        known = {name: self._known[name] for name in ("predictor", "target") if name in self._known}
        new._known.update(known | more)  # noqa: SLF001 - of its own class
        return new

    def _predictor(self, space: FeatureSpace) -> Predictor:
        """Return the model over the columns of a space; its own one is read once."""
        known = self._known
        if self.model is not None and known.get("space") is not space and known.get("space") != space:
            known.pop("judge", None)
            known.update(space=space, predictor=read(open_model(self.model), space))
        if "predictor" not in known:
            raise _unknown("the model", "model")
        found: Predictor = known["predictor"]
        return found

    def _target(self, predictor: Predictor) -> Target:
        """Return the target, checked."""
        asked = self.target
        if asked is None:
            asked = self._known.get("target")
        if asked is None:
            raise _unknown("the target", "target")
        asked = parse_target(asked, predictor.labels)
        if isinstance(asked, DisagreementOf):
            raise UnsupportedModelError(
                "RobustToShift", "a target of scores", "the target counts trees that agree",
                "Ask for a label or a value.",
            )  # fmt: skip
        return asked

    def _judge(self, space: FeatureSpace) -> _BoxJudge:
        predictor = self._predictor(space)
        if "judge" not in self._known:
            self._known["judge"] = _BoxJudge(predictor, self._target(predictor), self.delta)
        judge: _BoxJudge = self._known["judge"]
        return judge

    # ---- the program -------------------------------------------------------------------------------------------------
    def build(self, block: Any, x: Factual) -> None:
        """Add the worst network, or the closed form of a linear model, and the rows over it."""
        predictor = self._predictor(x.space)
        target = self._target(predictor)
        core = _layers_of(predictor)
        alternatives = wanted_sums(core, target)
        asked = [each for _, conditions in alternatives for each in conditions if math.isfinite(each.level)]
        stated: Mapping[int, tuple[LinearForm, Callable[[], float]]] = {}
        if asked:
            write = _write_linear if len(core.layers) == 1 else _write_network
            worst = write(block, x, predictor, asked, self.delta)
            stated = {id(each): form for each, form in zip(asked, worst, strict=True)}
        margin = target_margin(None, predictor, target, x.point, x.reach)
        scale = row_scale(predictor, margin)
        wins = None
        if len(alternatives) > 1:
            block.wins = wins = pyo.Var([label for label, _ in alternatives], domain=pyo.Binary)
            Rows(block, "one_wins").add("target", sum_form(wins.values()), lower=1.0, upper=1.0)
        for label, conditions in alternatives:
            for each in conditions:
                if each.level == -math.inf:
                    continue
                form, least = stated.get(id(each), (LinearForm(-1.0), lambda: -1.0))
                level = each.level + margin if id(each) in stated else 0.0
                if wins is not None:
                    require_finite("RobustToShift to one of several labels", x, least())
                    big_m = max(level - least(), 0.0)
                    form = form + sum_form([wins[label]]).scaled(-big_m)
                    level -= big_m
                Rows(block, "holds").add(each.index, form.scaled(scale), lower=level * scale)
        if self.model is not None:  # levels that the pipeline of its own model fails on
            for column, ranks in predictor.unseen.items():
                Rows(block, "never_seen").add(column, x.coordinate(column).indicator(ranks), upper=0.0)

    # ---- the same in plain numbers -----------------------------------------------------------------------------------
    def worst(self, space: FeatureSpace, point: Point) -> float:
        """Return the least slack of the decision at a point (coordinates by column) over all networks of the box."""
        return self._judge(space).worst(point)[0]

    def violation(self, space: FeatureSpace, factual: Point | None, point: Point) -> float:
        """Return by how much the worst network of the box misses the target; a tie that it loses counts as rounding."""
        del factual
        slack, is_enough = self._judge(space).worst(point)
        if slack == 0.0 and not is_enough:
            return math.ulp(0.0)
        return max(0.0, -slack)

    # ---- in words ----------------------------------------------------------------------------------------------------
    def sentence(self) -> str:
        """Return the rule in words and numbers."""
        kind = "model"
        if self.model is not None:
            kind = _title(self.model)
        return f"the decision holds for every {kind} whose weights differ by at most {digits(self.delta)}"

    def __repr__(self) -> str:
        own = ""
        if self.name is not None:
            own = f", name={self.name!r}"
        if self.target is not None:
            own += f", target={self.target!r}"
        if self.model is not None:
            own += f", model={_title(self.model)}"
        return f"RobustToShift({self.delta!r}{own})"


def _unknown(what: str, argument: str) -> InvalidValueError:
    return InvalidValueError(
        "RobustToShift", f"to know {what}", f"{argument} is None and none is asked about here",
        "Give both: RobustToShift(0.01, target='good', model=network).",
    )  # fmt: skip


def _title(model: Any) -> str:
    if isinstance(model, Predictor):
        model = model.model
    return model if isinstance(model, str) else name_of(model)


def _layers_of(predictor: Predictor) -> AbstractLayers:
    """Return the layers of a model, or refuse one that has no weights, saying what it has instead."""
    core = predictor.core
    title = name_of(predictor.model)
    if predictor.forests:
        raise UnsupportedModelError(
            "RobustToShift", "a network or a linear model, whose weights may move",
            f"{title} has trees, which have none",
            "Ask for a margin instead, explain(margin=0.1), or of a forest for Disagreement(target, at_most=0.1), and "
            "count by metrics.future_validity.",
        )  # fmt: skip
    if not isinstance(core, AbstractLayers):
        raise UnsupportedModelError(
            "RobustToShift", "one network or linear model", f"{title} is made of {len(predictor.parts)}",
            "State it of each: RobustToShift(0.01, target=..., model=member).",
        )  # fmt: skip
    if "identity" in core.between:
        raise UnsupportedModelError(
            "RobustToShift", "a ReLU behind every layer but the last", f"{title} has a layer without",
            "Fit it with activation='relu', or a linear model instead.",
        )  # fmt: skip
    return core


# ==== The rows ========================================================================================================


def _write_network(
    block: Any, x: Factual, predictor: Predictor, asked: Sequence[WantedSum], delta: float
) -> list[tuple[LinearForm, Callable[[], float]]]:
    """Embed the worst network; return, for each that is asked, the form of the least and a lower bound of it."""
    layers = _layers_of(predictor).layers
    read = _seen(layers[0][0], delta)
    inputs = Inputs(predictor, x, read)
    low, high = inputs.extremes(np.eye(len(read))[read], np.zeros(int(read.sum())))
    if not (np.isfinite(low) & np.isfinite(high)).all():
        name = inputs.unbounded(np.eye(len(read))[read])
        raise UnboundedFeatureError(
            "RobustToShift of a network", "finite bounds of every column that it sees", f"column {name!r} has none",
            x.bounds_advice(name or ""),
        )  # fmt: skip
    least = np.zeros(len(read))
    least[read] = low
    core, above = worst_network(layers, asked, delta, least)
    worst = Predictor(core, predictor.encoding, predictor.model, predictor.space)
    block.network = network = BigMNetwork(worst, x, cutoff=x.cutoff, one_sided=above)
    x.also_place(network.place)
    found: list[tuple[LinearForm, Callable[[], float]]] = []
    for row in np.eye(len(asked)).tolist():
        found.append((network.combine(row), lambda row=row: network.range_of(row)[0]))  # type: ignore[misc]
    return found


def _write_linear(
    block: Any, x: Factual, predictor: Predictor, asked: Sequence[WantedSum], delta: float
) -> list[tuple[LinearForm, Callable[[], float]]]:
    """State the closed form of a linear model, likewise: |phi| is phi, its negative, or ``phi + 2 negative``."""
    ((weights, biases),) = _layers_of(predictor).layers
    read = (weights != 0.0).any(axis=0) | (delta > 0.0)
    inputs = Inputs(predictor, x, read)
    m = len(read)
    low, high = inputs.extremes(np.diag(read.astype(float)), np.zeros(m))
    sign = np.where((high <= 0.0) & (low < 0.0), -1.0, 1.0)
    signed = np.flatnonzero((low < 0.0) & (high > 0.0) & (delta > 0.0)).tolist()
    negative: dict[int, Any] = {}
    if signed:
        block.negative = pyo.Var(signed, bounds=(0.0, None))
        negative = dict(block.negative.items())
        for j, form in zip(signed, _forms(inputs, np.eye(m)[signed], np.zeros(len(signed))), strict=True):
            negative[j].setub(finite_or_none(-float(low[j])))
            Rows(block, "not_below").add(j, LinearForm(0.0, ((1.0, negative[j]),)) + form, lower=0.0)
        x.also_place(_Negatives(inputs, negative))
    sums = np.array([each.weights for each in asked])
    moves = delta * np.array([_share(each) for each in asked])
    rows = sums @ weights - moves[:, None] * sign * read
    constants = sums @ biases - moves
    found: list[tuple[LinearForm, Callable[[], float]]] = []
    for row, constant, move, form in zip(rows, constants, moves, _forms(inputs, rows, constants), strict=True):
        taken = LinearForm(0.0, tuple((-2.0 * move, variable) for variable in negative.values()))
        most = 2.0 * move * float(-low[signed].sum())

        def bound(row: Floats = row, constant: float = constant, most: float = most) -> float:
            return float(inputs.extremes(row[None, :], np.array([constant]))[0][0]) - most

        found.append((form + taken, bound))
    return found


def _forms(inputs: Inputs, weights: Floats, constants: Floats) -> list[LinearForm]:
    """Return ``weights @ phi(x) + constants``, one form per row."""
    return inputs.atoms.forms(weights @ inputs.matrix, weights @ inputs.offset + constants)


@final
@dataclass(frozen=True, slots=True)
class _Negatives:
    """Sets the variables of inputs that may be negative, once the columns are placed."""

    inputs: Inputs
    variables: Mapping[int, Any]

    def __call__(self, point: Mapping[str, float]) -> None:
        seen = self.inputs.matrix @ self.inputs.atoms.values(point) + self.inputs.offset
        for j, variable in self.variables.items():
            variable.set_value(max(0.0, -float(seen[j])), skip_validation=True)
