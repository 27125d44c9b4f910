"""The decision as rows: the embedded model's score reaches the target, with a margin."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.linear_form import LinearForm, Rows, sum_form
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.representation import NEVER, AbstractRepresentation, score_needed, sign_of
from ceopt.formulations.predictors.ties import (
    RowSide,
    above_level,
    agreeing_form,
    checked_margin,
    count_agreeing,
    default_margin,
    forest_of,
    has_fixed_order,
    link_rounding,
    margin_near,
    right_side_of,
    row_scale,
    score_size,
    trimmed,
)
from ceopt.formulations.space.reachable import Reach
from ceopt.formulations.space.space import point_row
from ceopt.formulations.targets import DisagreementOf, Labels, ProbabilityOf, Target, Values, parse_target
from ceopt.formulations.tolerances import CLEAR_DISTANCE, VOTE_ROUNDING
from ceopt.solvers.errors import InvalidValueError, UnboundedFeatureError, UnsupportedModelError
from ceopt.solvers.manifest import Manifest, describe

#: Share of a range of values that a margin may take from either end.
_OF_RANGE = 1e-2
#: The largest score for which a row is stated in smaller units, so that it keeps a clear distance.
_LARGEST = 1e6

_MANIFEST = Manifest(
    title="the decision reaches the target",
    formula="score(target) - score(rival) >= margin for every rival; P >= p as score >= log(p / (1 - p)) + margin; "
    "trees that agree >= T - floor(limit * T)",
    reference="own; the rival classes of an argmax, row by row",
    rule="target",
)


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
            result = (best - scores[:, list(target.others)].max(axis=1)) * _unit(core)
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


def _unit(core: AbstractRepresentation) -> float:
    """P(target) - 1/2 is half the difference of two shares."""
    return 0.5 if core.probability == "share" and core.n_scores == 2 else 1.0


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
    below
        By how much, in the score, the rows may be missed where there is no margin: for a caller who shows what is found
        to the model itself. So no tie is lost to the rounding of a sum of large numbers.

    Notes
    -----
    One row per rival; with several labels wanted one binary per label and a row per pair. Exact at the margin.

    With None and trees, a row stands half-way between the scores that the library accepts and those that it does not,
    where these can be listed (votes, pure leaves, single trees, few trees). Elsewhere it is lower than the decision by
    the rounding error of the library's sum, so that it cuts off nothing that the library accepts: a score within that
    error of a tie has to be shown to the library, as :func:`ceopt.explain` does. Forests of scikit-learn that add their
    trees in several jobs decide such a tie one way or the other; there it has to be refused.

    Raises
    ------
    UnboundedFeatureError
        Several labels are wanted of a linear model and a column that it weighs has no bound, so no big-M exists.
    UnsupportedModelError
        A probability is asked of a model that has none, or a limit on disagreement of one that is no forest.
    """

    def __init__(
        self, block: AbstractEmbedded, target: Any, *, margin: float | None = None, below: float = 0.0
    ) -> None:
        super().__init__(concrete=True)
        core = block.predictor.core
        checked = target
        if not isinstance(target, Target):
            checked = parse_target(target, core.labels)
        if isinstance(checked, ProbabilityOf):
            require_probability(core)
        near = (block.x.point, block.x.reach) if isinstance(block.x, Factual) else ()
        self.margin = target_margin(margin, block.predictor, checked, *near)
        self._below = below if self.margin == 0.0 else 0.0
        self._scale = row_scale(block.predictor, self.margin or self._below)
        self._is_own = margin is None and block.predictor.is_trees  # the library's own decision, no margin
        self._is_clear = self._is_own and not has_fixed_order(block.predictor)
        describe(self, _MANIFEST)
        match checked:
            case Values():
                self._range(block, checked)
            case ProbabilityOf():
                self._probability(block, checked)
            case Labels():
                self._labels(block, checked)
            case DisagreementOf():
                least = checked.needed(len(forest_of(core).trees))
                Rows(self, "valid").add("trees", agreeing_form(block, checked.wanted), lower=float(least))

    def _row(
        self,
        block: AbstractEmbedded,
        index: Any,
        form: LinearForm,
        *,
        lower: float | None = None,
        upper: float | None = None,
        gap: float = 0.0,
    ) -> None:
        """Add a row over the score, in its own unit unless a tolerance would hide the margin, or the gap at its end.

        Values of leaves that differ by rounding alone count as one, and the row is lowered by what they may add.
        """
        if block.predictor.is_trees:
            form, least, most = trimmed(block.predictor, form, gap or self.margin)
            lower = None if lower is None else lower - most
            upper = None if upper is None else upper - least
        scale = self._scale
        if 0.0 < gap * scale < CLEAR_DISTANCE:
            most = _LARGEST / max(score_size(block.predictor), abs(lower or upper or 0.0))
            scale = max(scale, 2.0 ** math.floor(math.log2(min(CLEAR_DISTANCE / gap, most))))
        if scale != 1.0:
            form = form.scaled(scale)
        if lower is not None:
            lower *= scale
        if upper is not None:
            upper *= scale
        Rows(self, "valid").add(index, form, lower=lower, upper=upper)

    def _place(
        self,
        block: AbstractEmbedded,
        weights: Sequence[float],
        level: float,
        accepts: Callable[[float], bool],
        more: float = 0.0,
    ) -> RowSide:
        """Return what a weighted sum of the scores has to reach: the level and the margin, or what the library does."""
        if not self._is_own:
            core = block.predictor.core
            if isinstance(core, Combination) and core.votes:  # counts tie or differ by a whole vote, never by rounding
                return RowSide(level + max(self.margin, default_margin(block.predictor)), 0.0)
            return RowSide(level + self.margin - self._below, 0.0)
        return right_side_of(block.predictor, weights, level, accepts, more=more, clear=self._is_clear)

    def _range(self, block: AbstractEmbedded, target: Values) -> None:
        score = block.combine((1.0,))
        if math.isfinite(target.low):
            place = self._place(block, (1.0,), target.low, lambda s: s >= target.low)
            self._row(block, "low", score, lower=place.least, gap=place.clearance)
        if math.isfinite(target.high):
            place = self._place(block, (-1.0,), -target.high, lambda s: -s <= target.high)
            self._row(block, "high", score, upper=-place.least, gap=place.clearance)

    def _probability(self, block: AbstractEmbedded, target: ProbabilityOf) -> None:
        core = block.predictor.core
        label = target.labels[target.position]
        p = target.at_least
        if core.probability == "share":
            weights = np.eye(core.n_scores)[target.position].tolist()
            place = self._place(block, weights, p, lambda s: s >= p)
            if not self._is_own and block.predictor.has_ties and self.margin <= default_margin(block.predictor):
                place = RowSide(p - VOTE_ROUNDING, 0.0)  # the library's test is >=
            self._row(block, label, block.combine(weights), lower=place.least, gap=place.clearance)
            return
        needed = score_needed(core.probability, target.position, p)
        sign = sign_of(target.position)
        if needed == math.inf:  # no score has so high a probability
            self._row(block, label, LinearForm(0.0), lower=1.0)
        elif needed > -math.inf:
            place = self._place(
                block,
                (sign,),
                needed,
                lambda s: bool(core.head.of_position(np.array([sign * s]), target.position)[0] >= p),
                more=link_rounding(block.predictor, target),
            )
            self._row(block, label, block.combine((sign,)), lower=place.least, gap=place.clearance)

    def _beats(self, block: AbstractEmbedded, t: int, k: int) -> tuple[Sequence[float], RowSide]:
        """Return how label t beats label k: weights, and their sum; a tie of votes is one that the library breaks."""
        predictor = block.predictor
        core = predictor.core
        differences, level = core.against(t, k)
        weights = [_unit(core) * weight for weight in differences]
        wins = core.head.wins_ties(t, k)
        if not self._is_own and predictor.has_ties and self.margin <= default_margin(predictor) and wins:
            return weights, RowSide(level - VOTE_ROUNDING, 0.0)
        return weights, self._place(block, weights, level, above_level(level, ties=wins))

    def _labels(self, block: AbstractEmbedded, target: Labels) -> None:
        if len(target.wanted) > 1:
            self._several(block, target)
            return
        (t,) = target.wanted
        for k in target.others:
            index = target.labels[t] if len(target.others) == 1 else (target.labels[t], target.labels[k])
            _, level = block.predictor.core.against(t, k)
            if level >= NEVER:  # no score has this label
                self._row(block, index, LinearForm(0.0), lower=1.0)
            elif level > -NEVER:
                weights, place = self._beats(block, t, k)
                self._row(block, index, block.combine(weights), lower=place.least, gap=place.clearance)

    def _several(self, block: AbstractEmbedded, target: Labels) -> None:
        """Write that one of several labels wanted beats every label that is not."""
        self.wins = pyo.Var([target.labels[t] for t in target.wanted], domain=pyo.Binary)
        for t in target.wanted:
            wins = sum_form([self.wins[target.labels[t]]])
            for k in target.others:
                weights, place = self._beats(block, t, k)
                least = place.least
                big_m = least - block.range_of(weights)[0]
                if not math.isfinite(big_m):
                    name = block.x.unbounded()
                    raise UnboundedFeatureError(
                        "A target of several labels",
                        "finite bounds",
                        f"column {name!r} has none",
                        f"{block.x.bounds_advice(name)} Or ask for one label.",
                    )
                form = block.combine(weights) + wins.scaled(-max(big_m, 0.0))
                index = (target.labels[t], target.labels[k])
                self._row(block, index, form, lower=least - max(big_m, 0.0), gap=place.clearance)
        Rows(self, "one_wins").add("target", sum_form(self.wins.values()), lower=1.0, upper=1.0)


def require_probability(core: AbstractRepresentation) -> None:
    """Refuse a probability target where the model's scores give none."""
    if core.probability is None:
        raise UnsupportedModelError(
            "Probability",
            "a model whose probability follows from its score",
            "this one has decision values only",
            "Ask for the label, with a margin in its score if you like.",
        )
