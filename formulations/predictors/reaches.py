r"""The decision: what a target asks of an embedded model's scores, and the same as rows.

A target is alternatives, of which one has to hold, each of conditions that hold together. A label, a probability or a
range of values is one alternative; of several labels wanted each is one. A condition is

.. math:: w^\top s \ge \ell

with the level :math:`\ell` at which the target's slack is 0. A row stands beside it: above by a margin, or between the
neighbouring scores that a model of trees attains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.common.gc_manager import PauseGC
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.linear_form import LinearForm, Rows, binary_form, sum_form
from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.representation import NEVER, AbstractRepresentation, score_needed, sign_of
from ceopt.formulations.predictors.ties import (
    ExactSide,
    RowSide,
    above_level,
    checked_margin,
    count_agreeing,
    default_margin,
    exact_side_of,
    forest_of,
    has_fixed_order,
    link_rounding,
    margin_near,
    meets_alone,
    right_side_of,
    row_scale,
    score_size,
    trimmed,
)
from ceopt.formulations.space.space import point_row
from ceopt.formulations.targets import DisagreementOf, Labels, ProbabilityOf, Target, Values, parse_target
from ceopt.formulations.tolerances import CLEAR_DISTANCE, SCORE_ROUNDING, VOTE_ROUNDING
from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import InvalidValueError, UnboundedFeatureError, UnsupportedModelError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.space.reachable import Reach

#: Share of a range of values that a margin may take from either end.
_OF_RANGE: Final = 1e-2


@final
@dataclass(frozen=True, slots=True)
class WantedSum:
    """A weighted sum of a model's scores that a target asks to reach a level, in the unit of margins.

    Parameters
    ----------
    index
        How its row is named.
    weights
        (K,) of the scores.
    level
        Where the slack is 0; -inf where all scores reach it, inf where none does.
    ties
        Whether the level itself is enough.
    """

    index: Any
    weights: tuple[float, ...]
    level: float
    ties: bool


def wanted_sums(core: AbstractRepresentation, target: Target) -> list[tuple[Any, tuple[WantedSum, ...]]]:
    """Return what a target asks of the scores: alternatives, of which one has to hold, with the label that then wins.

    Of a target that counts trees, which asks nothing of the scores, there are none.

    Raises
    ------
    UnsupportedModelError
        A probability is asked of a model that has none.
    """
    match target:
        case Values():
            ends = (WantedSum("low", (1.0,), target.low, True), WantedSum("high", (-1.0,), -target.high, True))
            return [(None, tuple(end for end in ends if math.isfinite(end.level)))]
        case ProbabilityOf():
            return [(None, (_wanted_probability(core, target),))]
        case Labels():
            return [
                (target.labels[t], tuple(_beats(core, target, t, rival) for rival in target.others))
                for t in target.wanted
            ]
    return []


def _wanted_probability(core: AbstractRepresentation, target: ProbabilityOf) -> WantedSum:
    require_probability(core)
    label = target.labels[target.position]
    if core.probability == "share":
        weights = tuple(np.eye(core.n_scores)[target.position].tolist())
        return WantedSum(label, weights, target.at_least, True)
    needed = score_needed(core.probability, target.position, target.at_least)
    return WantedSum(label, (sign_of(target.position),), needed, True)


def _beats(core: AbstractRepresentation, target: Labels, label: int, rival: int) -> WantedSum:
    """Return that a label beats a rival; a tie of votes is one that the library breaks."""
    index: Any = (target.labels[label], target.labels[rival])
    if len(target.wanted) == len(target.others) == 1:
        index = target.labels[label]
    differences, level = core.against(label, rival)
    if abs(level) >= NEVER:  # no score has this label, or each has
        level = math.copysign(math.inf, level)
    weights = tuple(slack_unit(core) * weight for weight in differences)
    return WantedSum(index, weights, level, core.head.wins_ties(label, rival))


def own_decision(predictor: Predictor, target: Target, wanted: WantedSum) -> tuple[Callable[[float], bool], float]:
    """Return the library's decision for a value of a wanted sum, and what its level's own rounding may add."""
    if isinstance(target, ProbabilityOf) and predictor.core.probability != "share":
        return partial(_has_probability, predictor.core, target), link_rounding(predictor, target)
    return above_level(wanted.level, ties=wanted.ties), 0.0


def slack(
    predictor: Predictor,
    coordinates: NDArray[np.float64],
    target: Target,
    *,
    scores: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return by how much each row of coordinates (n, d) meets the target, in the model's own score; negative if not.

    ``scores``: those of the rows, where the caller has them.

    ============================= =========================================================
    target                        slack
    ============================= =========================================================
    label, one score              score - level, signed
    label, two classes by share   P(target) - 1/2
    labels, several classes       best score wanted - best score not wanted
    probability p, one score      signed score - least signed score that has it
    probability p, share          P(target) - p
    range of values               distance to the nearer end
    limit on disagreement         share of the trees that agree - share that does half a tree
                                  short of the limit
    ============================= =========================================================
    """
    core = predictor.core
    if isinstance(target, DisagreementOf):
        trees = len(forest_of(core).trees)
        return (count_agreeing(predictor, coordinates, target.wanted) - target.needed(trees) + 0.5) / trees
    if scores is None:
        scores = predictor.score(coordinates)
    result: NDArray[np.float64]
    match target:
        case Values():
            result = np.minimum(scores - target.low, target.high - scores)
        case ProbabilityOf() if core.probability == "share":
            result = scores[:, target.position] - target.at_least
        case ProbabilityOf():
            result = sign_of(target.position) * scores - score_needed(
                core.probability, target.position, target.at_least
            )
        case Labels() if core.n_scores == 1:
            if target.wanted == (1,):
                result = scores - core.level
            else:
                result = core.level - scores
        case Labels():
            best = scores[:, list(target.wanted)].max(axis=1)
            result = (best - scores[:, list(target.others)].max(axis=1)) * slack_unit(core)
    return result


def target_margin(
    margin: float | None,
    predictor: Predictor,
    target: Target,
    point: Mapping[str, float] | None = None,
    reach: Reach | None = None,
) -> float:
    """Return the least slack to ask for, or refuse one that is none.

    0 where trees are counted, which tie nowhere, and where None asks trees for what they decide themselves. Else None
    asks for what the numbers near the person at ``point``, with this ``reach``, make necessary, if there is one.
    """
    if isinstance(target, DisagreementOf):
        if margin is not None and checked_margin(margin, predictor) > 0.0:
            raise InvalidValueError(
                "Disagreement", "no margin, as trees are counted", f"margin is {margin!r}", "Lower at_most instead."
            )
        return 0.0
    if margin is None and predictor.is_trees:
        return 0.0
    if margin is not None or point is None:
        return checked_margin(margin, predictor)
    coordinates = point_row(predictor.space, point)
    near = margin_near(predictor, float(slack(predictor, coordinates, target)[0]), coordinates, reach)
    # A range of values is not to be closed by its own margins.
    if isinstance(target, Values):
        return min(near, _OF_RANGE * (target.high - target.low))
    return near


def slack_unit(core: AbstractRepresentation) -> float:
    """P(target) - 1/2 is half the difference of two shares."""
    return 0.5 if core.probability == "share" and core.n_scores == 2 else 1.0


class ScoredBlock(Protocol):
    """An embedded model, as far as its decision is concerned: scores as forms over the columns of a block."""

    @property
    def predictor(self) -> Predictor:
        """What was embedded."""
        ...

    @property
    def x(self) -> AbstractColumns:
        """The block of columns."""
        ...

    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return a weighted sum of the scores."""
        ...

    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return its least and greatest value over the reach."""
        ...

    def adding_up(self, amounts: Callable[[Floats], Floats]) -> LinearForm:
        """Return the sum over the trees of an amount for the leaf that each ends in, by the leaf's values."""
        ...


def agreeing_form(block: ScoredBlock, wanted: Labels | Values) -> LinearForm:
    """Return the number of trees that decide as wanted, as a form over the leaves of an embedded forest."""
    core = forest_of(block.predictor.core)
    return block.adding_up(lambda values: meets_alone(core, values, wanted).astype(np.float64))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreCondition:
    """A sum of scores that has to reach a level.

    Parameters
    ----------
    index
        How the row is named.
    form
        The sum, in the unit of margins.
    ends
        A function that returns its least and greatest value over the reach; infinite where a column has no bound.
    level
        Where the target's slack is 0.
    side
        Where a row over the sum stands.
    value
        The sum as a function of scores (n, K), or (n,) of one, and coordinates (n, d).
    is_upper
        Whether the sum is the negative of what the row is written over.
    exact
        The row that tells ties apart, where there is one.
    """

    index: Any
    form: LinearForm
    ends: Callable[[], tuple[float, float]]
    level: float
    side: RowSide
    value: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    is_upper: bool = False
    exact: ExactSide | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Its least and greatest value over the reach."""
        return self.ends()

    @property
    def turns_at(self) -> float:
        """The level from which on the condition counts as met: that of the target where it tells the scores apart.

        Else, where a tie at that level is refused, the least score that a model of trees attains above it.
        """
        refused, accepted = self.side.refused, self.side.accepted
        if refused is None or accepted is None:
            return self.side.least
        turns = self.level if refused < self.level <= accepted else accepted
        clearance = self.side.clearance
        return turns - min(clearance / 4.0, SCORE_ROUNDING * max(abs(turns), clearance))


@final
@dataclass(frozen=True, slots=True)
class _Weighted:
    """A weighted sum of scores, as a function that can be pickled with a model."""

    weights: tuple[float, ...]

    def __call__(self, scores: Floats, coordinates: Floats) -> Floats:
        return np.asarray(scores.reshape(len(coordinates), -1) @ np.array(self.weights))


@final
@dataclass(frozen=True, slots=True)
class _Agreeing:
    """The number of trees that decide as wanted, likewise."""

    predictor: Predictor
    wanted: Labels | Values

    def __call__(self, scores: Floats, coordinates: Floats) -> Floats:
        del scores
        return np.asarray(count_agreeing(self.predictor, coordinates, self.wanted), dtype=np.float64)


def _settled(index: Any, *, holds: bool) -> ScoreCondition:
    """Return a condition that no score meets, or that each does."""
    value = 1.0 if holds else -1.0
    return ScoreCondition(index, LinearForm(value), lambda: (value, value), 0.0, RowSide(0.0), _Constant(value))


@final
@dataclass(frozen=True, slots=True)
class _Constant:
    """A number for each row, likewise."""

    number: float

    def __call__(self, scores: Floats, coordinates: Floats) -> Floats:
        del scores
        return np.full(len(coordinates), self.number)


#: One of several ways to reach a target: the label that wins, where there is one, and its conditions.
Alternative: TypeAlias = tuple[Any, tuple[ScoreCondition, ...]]


@final
class AskedOfScores:
    """What a target asks of an embedded model.

    Parameters
    ----------
    block
        The embedded model.
    target
        A target, checked or not.
    margin, below
        As of :class:`~ceopt.formulations.Reaches`.

    Attributes
    ----------
    target
        The target, checked.
    margin
        The least slack that is asked for.
    below
        By how much the rows may be missed where there is no margin.
    """

    def __init__(self, block: ScoredBlock, target: Any, margin: float | None, below: float = 0.0) -> None:
        self._block = block
        self._predictor = predictor = block.predictor
        self.target: Target = parse_target(target, predictor.labels)
        if isinstance(self.target, ProbabilityOf):
            require_probability(predictor.core)
        if isinstance(block.x, Factual):
            self.margin = target_margin(margin, predictor, self.target, block.x.point, block.x.reach)
        else:
            self.margin = target_margin(margin, predictor, self.target)
        self.below = below if self.margin == 0.0 else 0.0
        #: Whether the library's own decision is asked for, and no margin.
        self._is_own = margin is None and predictor.is_trees
        self._is_clear = self._is_own and not has_fixed_order(predictor)

    def alternatives(self) -> Iterator[Alternative]:
        """Yield the alternatives, of which one has to hold."""
        if isinstance(self.target, DisagreementOf):
            yield None, (self._agreement(self.target),)
            return
        for label, sums in wanted_sums(self._predictor.core, self.target):
            yield label, tuple(map(self._condition, sums))

    def _condition(self, wanted: WantedSum) -> ScoreCondition:
        """Return that a weighted sum of the scores reaches its level, with the margin, or as the library decides."""
        if math.isinf(wanted.level):
            return _settled(wanted.index, holds=wanted.level < 0.0)
        is_upper = isinstance(self.target, Values) and wanted.weights[0] < 0.0
        if is_upper:
            form = self._block.combine([-w for w in wanted.weights]).scaled(-1.0)
        else:
            form = self._block.combine(wanted.weights)
        ends = partial(self._block.range_of, wanted.weights)
        side = self._side(wanted)
        exact = None
        if self._is_own:
            accepts, more = own_decision(self._predictor, self.target, wanted)
            exact = exact_side_of(
                self._predictor, wanted.weights, wanted.level, accepts, more=more, clear=self._is_clear
            )
        return ScoreCondition(wanted.index, form, ends, wanted.level, side, _Weighted(wanted.weights), is_upper, exact)

    def _agreement(self, target: DisagreementOf) -> ScoreCondition:
        """Return that enough trees agree, as a share of them, half a tree short of the limit."""
        trees = len(forest_of(self._predictor.core).trees)
        needed = float(target.needed(trees))

        agreeing = _Agreeing(self._predictor, target.wanted)
        form = agreeing_form(self._block, target.wanted)
        return ScoreCondition(
            "trees", form, lambda: (form.constant, float(trees)), needed - 0.5, RowSide(needed), agreeing
        )

    def _side(self, wanted: WantedSum) -> RowSide:
        """Return where the row over a sum stands."""
        predictor = self._predictor
        level = wanted.level
        if self._is_own:
            accepts, more = own_decision(predictor, self.target, wanted)
            return right_side_of(predictor, wanted.weights, level, accepts, more=more, clear=self._is_clear)
        if predictor.has_ties and wanted.ties and self.margin <= default_margin(predictor):
            return RowSide(level - VOTE_ROUNDING)  # the library's test is >=
        core = predictor.core
        if isinstance(core, Combination) and core.votes:  # counts tie or differ by a whole vote, never by rounding
            return RowSide(level + max(self.margin, default_margin(predictor)))
        return RowSide(level + self.margin - self.below)


def _has_probability(core: AbstractRepresentation, target: ProbabilityOf, signed: float) -> bool:
    """Return whether a signed score has the probability that is asked for."""
    scores = np.array([sign_of(target.position) * signed])
    return bool(core.head.of_position(scores, target.position)[0] >= target.at_least)


def require_probability(core: AbstractRepresentation) -> None:
    """Refuse a probability target where the model's scores give none."""
    if core.probability is None:
        raise UnsupportedModelError(
            "Probability",
            "a model whose probability follows from its score",
            "this one has decision values only",
            "Ask for the label, with a margin in its score if you like.",
        )


# ==== The decision as rows ============================================================================================

#: The largest score for which a row is stated in smaller units, so that it keeps a clear distance.
_LARGEST = 1e6

_MANIFEST = Manifest(
    title="the decision reaches the target",
    formula="score(target) - score(rival) >= margin for every rival; P >= p as score >= log(p / (1 - p)) + margin; "
    "trees that agree >= T - floor(limit * T)",
    reference="own; the rival classes of an argmax, row by row",
    rule="target",
)


@final
class Reaches(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    r"""The embedded model decides as the target says.

    .. math::
        s_t - s_k \ge m \ \forall k \notin T \quad (T = \{t\}), \qquad
        s_t - s_k \ge m - M_{tk}(1 - u_t),\ \sum_{t \in T} u_t = 1 \quad (|T| > 1)

    One score, which decides at level c: :math:`\pm (s - c) \ge m`. A probability p of one score:
    :math:`\pm s \ge g(p) + m`, where g is the inverse of the model's link: :math:`\log\frac{p}{1-p}` for the logistic
    one. Shares of trees:
    :math:`P_t \ge p + m`, and :math:`P_t - \tfrac12 \ge m` for a label of two. Values: :math:`l + m \le s \le h - m`.
    A limit a on the share of T trees that disagree, with :math:`L_i` the leaves in which tree i decides as wanted:

    .. math:: \sum_i \sum_{\ell \in L_i} z_{i\ell} \ge T - \lfloor a T \rfloor .

    With a binary w as ``when``, each row :math:`f \ge \ell` is :math:`f \ge \ell - M (1 - w)`, and
    :math:`\sum_t u_t \ge w`.

    ======== =============== =================================================================
    symbol   component       meaning
    ======== =============== =================================================================
    u_t      ``wins[t]``     binary, 1 iff label t is the one that beats every label not wanted
    z        ``block.leaf``  1 iff tree i ends in the leaf
    M_tk                     least big-M: m less the least difference of the scores in reach
    ======== =============== =================================================================

    Parameters
    ----------
    block
        The embedded model.
    target
        A label, a set of labels, ``OtherThan``, ``Probability``, ``AtLeast``, ``AtMost``, ``Between`` or
        ``Disagreement``.
    margin
        Least slack m in the model's own score. With 0 the decision may be a tie. ``Disagreement`` counts trees and
        takes none. None: for trees, votes and sums of them what the library decides, ties included; for all others
        :func:`~ceopt.formulations.predictors.ties.margin_near` the person, and over the caller's own
        variables :func:`~ceopt.formulations.predictors.ties.default_margin`.
    when
        A binary Var, or 1 less one: the target has to be reached only where it is 1, by the least big-M of each row.
    below
        By how much, in the score, the rows may be missed where there is no margin: for a caller who shows what is found
        to the model itself. So no tie is lost to the rounding of a sum of large numbers.

    Notes
    -----
    One row per rival; with several labels wanted one binary per label and a row per pair. Exact at the margin.

    With None and trees, a row stands between the scores that the library accepts and those that it does not, where
    these can be listed (votes, pure leaves, single trees, few trees): half-way, or as near to the accepted ones as a
    solver's tolerance allows. Elsewhere it is lower than the decision by the rounding error of the library's sum, so
    that it cuts off nothing that the library accepts: a score within that error of a tie has to be shown to the
    library, as :func:`ceopt.explain` does. A further row ``not_tied`` then cuts off the ties of leaves that add up
    exactly, as the pure ones of a forest do
    (:class:`~ceopt.formulations.predictors.ties.ExactSide`). Forests of scikit-learn that add their
    trees in several jobs decide such a tie one way or the other; there it has to be refused.

    Raises
    ------
    UnboundedFeatureError
        Several labels are wanted of a linear model, or it is asked ``when`` something holds, and a column that it
        weighs has no bound, so no big-M exists.
    InvalidTypeError
        ``when`` is no binary.
    UnsupportedModelError
        A probability is asked of a model that has none, or a limit on disagreement of one that is no forest.
    """

    def __init__(
        self,
        block: ScoredBlock,
        target: Any,
        *,
        margin: float | None = None,
        when: Any = None,
        below: float = 0.0,
    ) -> None:
        super().__init__(concrete=True)
        asked = AskedOfScores(block, target, margin, below)
        self.margin = asked.margin
        self.target: Target = asked.target
        self._held = (block, when)
        self._scale = row_scale(block.predictor, self.margin or asked.below)
        switch = LinearForm(1.0)
        self._who = "A target of several labels"
        if when is not None:
            self._who = "A target that is reached only when a binary is 1"
            switch = binary_form("Reaches", "when", when)
        describe(self, _MANIFEST)
        if not switch.terms and switch.constant <= 0.0:  # a condition that cannot hold asks for nothing
            return
        with PauseGC():
            self._state(block, list(asked.alternatives()), switch)

    def _state(self, block: ScoredBlock, alternatives: Sequence[Alternative], switch: LinearForm) -> None:
        """Write the rows of the one alternative, or of that which wins."""
        if len(alternatives) == 1:
            for condition in alternatives[0][1]:
                self._row(block, condition, switch)
            return
        self.wins = pyo.Var([label for label, _ in alternatives], domain=pyo.Binary)
        for label, conditions in alternatives:
            for condition in conditions:
                self._row(block, condition, sum_form([self.wins[label]]))
        wins = sum_form(self.wins.values())
        if self.when is None:
            Rows(self, "one_wins").add("target", wins, lower=1.0, upper=1.0)
        else:
            form = wins + LinearForm(0.0, switch.terms).scaled(-1.0)
            Rows(self, "one_wins").add("target", form, lower=switch.constant)

    @property
    def embedded(self) -> ScoredBlock:
        """The embedded model that the target is asked of."""
        return self._held[0]

    @property
    def when(self) -> Any:
        """The binary without which nothing is asked; None where there is none."""
        return self._held[1]

    def _row(self, block: ScoredBlock, condition: ScoreCondition, switch: LinearForm) -> None:
        """Add the row of a condition; where leaves in reach do not add up exactly, and others do, one for each."""
        form, exact = condition.form, condition.exact
        if exact is None:
            self._side_row("valid", condition, form, condition.side, switch)
            return
        relief = block.adding_up(exact.relief_of)
        if not relief.terms and relief.constant == 0.0:
            self._side_row("valid", condition, form, exact.side, switch)
            return
        self._side_row("valid", condition, form, condition.side, switch)
        self._side_row("not_tied", condition, form + relief, RowSide(exact.side.least), switch)

    def _side_row(
        self, name: str, condition: ScoreCondition, form: LinearForm, side: RowSide, switch: LinearForm
    ) -> None:
        """Add a row over the score, in its own unit unless a tolerance would hide the margin, or the gap at its end.

        Values of leaves that differ by rounding alone count as one, and the row is lowered by what they may add. Where
        the switch is 0, the row says nothing.
        """
        block = self.embedded
        rows = Rows(self, name)
        least, gap = side.least, side.clearance
        lost = 0.0
        if block.predictor.is_trees:
            form, low, high = trimmed(block.predictor, form, gap or self.margin)
            least -= high
            lost = high - low
        if switch.terms:
            big_m = least - condition.bounds[0] + lost
            if not form.terms:
                big_m = least - form.constant
                if big_m > 0.0:  # a constant that falls short, by however little
                    rows.add(condition.index, switch, upper=0.0)
                return
            require_finite(self._who, block.x, big_m)
            big_m = max(big_m, 0.0)
            form = form + switch.scaled(-big_m)
            least -= big_m
        scale = self._scale
        if 0.0 < gap * scale < CLEAR_DISTANCE:
            most = _LARGEST / max(score_size(block.predictor), abs(side.least))
            scale = max(scale, 2.0 ** math.floor(math.log2(min(CLEAR_DISTANCE / gap, most))))
        if condition.is_upper:
            rows.add(condition.index, form.scaled(-scale), upper=-least * scale)
            return
        if scale != 1.0:
            form = form.scaled(scale)
        rows.add(condition.index, form, lower=least * scale)


def require_finite(who: str, x: Any, *ends: float) -> None:
    """Refuse bounds that are infinite, naming the column that has none."""
    if all(map(math.isfinite, ends)):
        return
    name = x.unbounded()
    raise UnboundedFeatureError(who, "finite bounds", f"column {name!r} has none", x.bounds_advice(name))
