"""The decision as rows: the embedded model's score reaches the target, with a margin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.linear_form import LinearForm, Rows, binary_form, sum_form
from ceopt.formulations.predictors.conditions import AskedOfScores, ScoreCondition
from ceopt.formulations.predictors.margin import require_finite
from ceopt.formulations.predictors.ties import row_scale, score_size, trimmed
from ceopt.formulations.tolerances import CLEAR_DISTANCE
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded

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

    With None and trees, a row stands half-way between the scores that the library accepts and those that it does not,
    where these can be listed (votes, pure leaves, single trees, few trees). Elsewhere it is lower than the decision by
    the rounding error of the library's sum, so that it cuts off nothing that the library accepts: a score within that
    error of a tie has to be shown to the library, as :func:`ceopt.explain` does. Forests of scikit-learn that add their
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
        block: AbstractEmbedded,
        target: Any,
        *,
        margin: float | None = None,
        when: Any = None,
        below: float = 0.0,
    ) -> None:
        super().__init__(concrete=True)
        asked = AskedOfScores(block, target, margin, below)
        self.margin = asked.margin
        self._scale = row_scale(block.predictor, self.margin or asked.below)
        switch = LinearForm(1.0)
        self._who = "A target of several labels"
        if when is not None:
            self._who = "A target that is reached only when a binary is 1"
            switch = binary_form("Reaches", "when", when)
        describe(self, _MANIFEST)
        alternatives = list(asked.alternatives())
        if len(alternatives) == 1:
            for condition in alternatives[0][1]:
                self._row(block, condition, switch)
            return
        self.wins = pyo.Var([label for label, _ in alternatives], domain=pyo.Binary)
        for label, conditions in alternatives:
            for condition in conditions:
                self._row(block, condition, sum_form([self.wins[label]]))
        wins = sum_form(self.wins.values())
        if when is None:
            Rows(self, "one_wins").add("target", wins, lower=1.0, upper=1.0)
        else:
            form = wins + LinearForm(0.0, switch.terms).scaled(-1.0)
            Rows(self, "one_wins").add("target", form, lower=switch.constant)

    def _row(self, block: AbstractEmbedded, condition: ScoreCondition, switch: LinearForm) -> None:
        """Add a row over the score, in its own unit unless a tolerance would hide the margin, or the gap at its end.

        Values of leaves that differ by rounding alone count as one, and the row is lowered by what they may add. Where
        the switch is 0, the row says nothing.
        """
        form, least, gap = condition.form, condition.side.least, condition.side.clearance
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
                    Rows(self, "valid").add(condition.index, switch, upper=0.0)
                return
            require_finite(self._who, block.x, big_m)
            big_m = max(big_m, 0.0)
            form = form + switch.scaled(-big_m)
            least -= big_m
        scale = self._scale
        if 0.0 < gap * scale < CLEAR_DISTANCE:
            most = _LARGEST / max(score_size(block.predictor), abs(condition.side.least))
            scale = max(scale, 2.0 ** math.floor(math.log2(min(CLEAR_DISTANCE / gap, most))))
        if condition.is_upper:
            Rows(self, "valid").add(condition.index, form.scaled(-scale), upper=-least * scale)
            return
        if scale != 1.0:
            form = form.scaled(scale)
        Rows(self, "valid").add(condition.index, form, lower=least * scale)
