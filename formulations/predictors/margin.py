"""The margin of a decision as one expression: the target is reached exactly where it is not negative."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock
from pyomo.core.base.expression import ScalarExpression

from ceopt.formulations.linear_form import LinearForm, Rows, sum_form
from ceopt.formulations.predictors.reaches import AskedOfScores, ScoreCondition, ScoredBlock, require_finite
from ceopt.formulations.space.space import point_row
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.targets import Target

_MANIFEST = Manifest(
    title="the least and the greatest of several margins",
    formula="v <= f_k, v >= f_k - M_k (1 - b_k), sum_k b_k = 1; of the greatest with the opposite signs",
    reference="standard, with the least big-M of each row",
)


@final
class DecisionMargin(ScalarExpression):  # type: ignore[misc]  # Pyomo is untyped
    """The expression that ``block.margin(target)`` returns; an ordinary Pyomo expression.

    Attributes
    ----------
    bounds
        Its least and greatest value over the reach; infinite where a column that the model weighs has no bound.
    slack
        What it is less than the slack of the decision: 0 for models of trees, which are asked what they decide
        themselves; for others the margin that :func:`ceopt.explain` would ask for by default.
    target
        The target, checked.
    """

    def __init__(self, form: LinearForm, bounds: tuple[float, float], asked: AskedOfScores) -> None:
        super().__init__(expr=form.expression())
        self.bounds = bounds
        self.slack = asked.margin
        self.target: Target = asked.target


@final
class LeastAndGreatest(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    r"""The margin where several labels, or both ends of a range, matter: the greatest of the least of some sums.

    .. math::
        m = \max_{t \in T} \min_{k} f_{tk}, \qquad
        v_t \le f_{tk}, \quad v_t \ge f_{tk} - M_{tk} (1 - b_{tk}), \quad \sum_k b_{tk} = 1 \\
        m \ge v_t, \quad m \le v_t + M_t (1 - c_t), \quad \sum_t c_t = 1

    ======== ===================== ==========================================================
    symbol   component             meaning
    ======== ===================== ==========================================================
    v_t      ``least[t]``          the least of the sums of alternative t
    b        ``is_least[t, k]``    binary, 1 for one sum that is the least
    m        ``greatest``          the greatest of them
    c        ``is_greatest[t]``    binary, 1 for one alternative that is the greatest
    M                              by how much the sums can differ within the reach
    ======== ===================== ==========================================================

    Exact in both directions: m may be maximised, minimised and bounded on either side. A sum that is never the least
    has no row; of one alternative, or of one sum, there are no variables.

    Raises
    ------
    UnboundedFeatureError
        A column that the model weighs has no bound, so no M exists.
    """

    def __init__(self, block: ScoredBlock, alternatives: Sequence[Sequence[ScoreCondition]]) -> None:
        super().__init__(concrete=True)
        levels = [[(condition.value, condition.turns_at) for condition in conditions] for conditions in alternatives]
        self._held = (block.predictor, block.x, levels)
        describe(self, _MANIFEST)
        self.least = pyo.Var(pyo.Any, dense=False)
        self.is_least = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
        margins: list[tuple[LinearForm, tuple[float, float]]] = []
        for t, conditions in enumerate(alternatives):
            margins.append(self._least_of(t, conditions))
        self.form, self.bounds = margins[0]
        if len(margins) > 1:
            self.form, self.bounds = self._greatest_of(margins)
        block.x.also_place(self.place)

    def _least_of(self, t: int, conditions: Sequence[ScoreCondition]) -> tuple[LinearForm, tuple[float, float]]:
        """Return the least of some sums, each less the level from which on it counts as met, and its bounds."""
        sums = []
        for condition in conditions:
            low, high = condition.bounds
            start = condition.turns_at
            sums.append((condition.form + LinearForm(-start), low - start, high - start))
        lowest = min(low for _, low, _ in sums)
        highest = min(high for _, _, high in sums)
        if len(sums) == 2:
            both = (sums[0][0] + sums[1][0]).expression()
            if isinstance(both, float):  # the two sides of a range: the least of them is at most half its width
                highest = min(highest, both / 2.0 + math.ulp(both))
        kept = [k for k, (_, low, _) in enumerate(sums) if low < highest or len(sums) == 1]
        if len(kept) == 1:
            return sums[kept[0]][0], (lowest, highest)
        self._require_finite(lowest, *(high for _, _, high in sums))
        least = self.least[t]
        least.setlb(lowest)
        least.setub(highest)
        below = Rows(self, "at_most_each")
        above = Rows(self, "at_least_one")
        own = LinearForm(0.0, ((1.0, least),))
        for k in kept:
            form, _, high = sums[k]
            chosen = self.is_least[t, k]
            difference = own + form.scaled(-1.0)
            below.add((t, k), difference, upper=0.0)
            big_m = high - lowest
            above.add((t, k), difference + LinearForm(0.0, ((-big_m, chosen),)), lower=-big_m)
        binaries = [self.is_least[t, k] for k in kept]
        Rows(self, "one_is_least").add(t, sum_form(binaries), lower=1.0, upper=1.0)
        return own, (lowest, highest)

    def _greatest_of(
        self, margins: Sequence[tuple[LinearForm, tuple[float, float]]]
    ) -> tuple[LinearForm, tuple[float, float]]:
        """Return the greatest of some forms, and its bounds."""
        lowest = max(low for _, (low, _) in margins)
        highest = max(high for _, (_, high) in margins)
        self._require_finite(highest, *(low for _, (low, _) in margins))
        self.greatest = pyo.Var(bounds=(lowest, highest))
        self.is_greatest = pyo.Var(range(len(margins)), domain=pyo.Binary)
        own = LinearForm(0.0, ((1.0, self.greatest),))
        for t, (form, (low, _)) in enumerate(margins):
            difference = own + form.scaled(-1.0)
            Rows(self, "at_least_each").add(t, difference, lower=0.0)
            big_m = highest - low
            chosen = LinearForm(0.0, ((big_m, self.is_greatest[t]),))
            Rows(self, "at_most_one").add(t, difference + chosen, upper=big_m)
        Rows(self, "one_is_greatest").add("target", sum_form(self.is_greatest.values()), lower=1.0, upper=1.0)
        return own, (lowest, highest)

    def _require_finite(self, *ends: float) -> None:
        require_finite("The margin of several conditions", self._held[1], *ends)

    def place(self, point: Mapping[str, float]) -> None:
        """Set the variables to those of a point."""
        predictor, _, levels = self._held
        coordinates = point_row(predictor.space, point)
        scores = predictor.score(coordinates)
        margins = []
        for t, pairs in enumerate(levels):
            values = [float(value(scores, coordinates)[0]) - start for value, start in pairs]
            margins.append(self._place_least(t, values))
        if self.component("greatest") is None:
            return
        best = int(np.argmax(margins))
        self.greatest.set_value(margins[best], skip_validation=True)
        for t, chosen in self.is_greatest.items():
            chosen.set_value(int(t == best), skip_validation=True)

    def _place_least(self, t: int, values: Sequence[float]) -> float:
        if t in self.least:
            kept = [k for k in range(len(values)) if (t, k) in self.is_least]
            best = min(kept, key=values.__getitem__)
            self.least[t].set_value(values[best], skip_validation=True)
            for k in kept:
                self.is_least[t, k].set_value(int(k == best), skip_validation=True)
        return min(values)


def margin_of(block: ScoredBlock, target: Any) -> tuple[DecisionMargin, LeastAndGreatest | None]:
    """Return the margin of a target, and the block of the variables that it needs, where it needs some."""
    asked = AskedOfScores(block, target, None)
    alternatives = [conditions for _, conditions in asked.alternatives()]
    if len(alternatives) > 1 or len(alternatives[0]) > 1:
        parts = LeastAndGreatest(block, alternatives)
        return DecisionMargin(parts.form, parts.bounds, asked), parts
    (condition,) = alternatives[0]
    start = condition.turns_at
    low, high = condition.bounds
    return DecisionMargin(condition.form + LinearForm(-start), (low - start, high - start), asked), None
