r"""Probabilities of an embedded classifier as expressions: shares and votes as they are, links of a score in pieces.

Few solvers take :math:`1 / (1 + e^{-s})`, which :class:`LogisticCurve` states for them. For all others a link is a
continuous, non-decreasing, piecewise-linear function of the score whose distance from the link is proved. The proof
asks of the link only that it is non-decreasing: between two points :math:`g_i < g_{i+1}` of a grid, a link f and a
non-decreasing function l of the score both lie between their values at the ends, so

.. math::
    |l(s) - f(s)| \le \max_k |l(g_k) - f(g_k)| + \max_i \bigl(f(g_{i+1}) - f(g_i)\bigr) ,

and the grid is as fine as the second term has to be small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock
from pyomo.core.base.expression import IndexedExpression

from ceopt.formulations.linear_form import LinearForm, Rows, sum_form
from ceopt.formulations.predictors.reaches import require_finite
from ceopt.formulations.space.space import point_row
from ceopt.formulations.tolerances import (
    LEAST_LINK_ERROR,
    LINK_JUMP,
    MOST_CURVED_SCORE,
    ODDS_ROOM,
    PROBABILITY_ROUNDING,
    SCORES_BEYOND_BOUNDS,
)
from ceopt.solvers.checks import Real
from ceopt.solvers.cones import exponential
from ceopt.solvers.errors import InvalidValueError, UnknownNameError, UnsupportedModelError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ceopt.formulations.predictors.reaches import ScoredBlock
    from ceopt.solvers.checks import Floats

__all__ = ["LogisticCurve", "PiecewiseLink", "Probabilities", "pieces_of", "probabilities_of"]

_CHECK: Final = Real(at_least=LEAST_LINK_ERROR, below=0.5)
#: Share of the error that the rise of the link between two points of the grid takes.
_RISE_SHARE: Final = 0.125

_MANIFEST = Manifest(
    title="probability of one score, in pieces",
    formula="s = sum_k w_k s_k, p = sum_k w_k p_k, sum_k w_k = 1; at most two neighbours of w by a Gray code",
    reference="Vielma & Nemhauser (2011), logarithmic formulation",
)


@final
class Probabilities(IndexedExpression):  # type: ignore[misc]  # Pyomo is untyped
    """The expressions that ``block.probability`` has: label -> linear expression.

    Attributes
    ----------
    error
        How far each is at most from the probability that the model's link gives at the block's score: 0 for shares.
    """

    def __init__(self, expressions: Mapping[Any, Any], error: float) -> None:
        super().__init__(list(expressions), initialize=dict(expressions))
        self.error = error

    def __getitem__(self, label: Any) -> Any:
        if not isinstance(label, slice | tuple) and label is not Ellipsis and label not in self.index_set():
            raise UnknownNameError.among("block.probability", "label", label, self.index_set(), quoted=True)
        return super().__getitem__(label)


@final
class PiecewiseLink(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    r"""The probability of the second label as a piecewise-linear function of the score, exactly.

    .. math::
        s = \sum_k s_k w_k,\quad p = \sum_k p_k w_k,\quad \sum_k w_k = 1,\quad w \ge 0, \qquad
        \sum_{k \in L_b} w_k \le z_b,\quad \sum_{k \in R_b} w_k \le 1 - z_b \quad (b = 1, ..., B)

    ======== ======== ============== ====================================================================
    symbol   shape    component      meaning
    ======== ======== ============== ====================================================================
    s        ()                      the block's score
    s_k, p_k (K,)                    where the pieces meet: ``.scores``, ``.probabilities``
    w        (K,)     ``weight``     weights of these points
    z        (B,)     ``digit``      binary: the digits of the piece in a Gray code, 2^B >= K - 1
    L_b, R_b                         points of which all pieces beside have digit b 1, and 0
    ======== ======== ============== ====================================================================

    Adds K variables, B binaries and 2 B + 2 rows (MILP); the relaxation without integers is the hull of the points.
    """

    def __init__(self, block: ScoredBlock, scores: Floats, probabilities: Floats) -> None:
        super().__init__(concrete=True)
        self._held = (block.predictor, block.x)
        self.scores = tuple(scores.tolist())
        self.probabilities = tuple(probabilities.tolist())
        describe(self, _MANIFEST)
        points = range(len(scores))
        self.weight = pyo.Var(points, bounds=(0.0, 1.0))
        weights = self.weight
        rows = Rows(self, "pieces")
        at = LinearForm(0.0, tuple((self.scores[k], weights[k]) for k in points))
        rows.add("score", at + block.combine((1.0,)).scaled(-1.0), lower=0.0, upper=0.0)
        rows.add("one", sum_form(list(weights.values())), lower=1.0, upper=1.0)
        n_digits = (len(scores) - 2).bit_length()
        self.digit = pyo.Var(range(n_digits), domain=pyo.Binary)
        for digit in range(n_digits):
            for value, side in ((1, "ones"), (0, "zeros")):
                inside = [weights[k] for k in points if self._pieces_have(k, digit, value)]
                own = LinearForm(0.0, ((1.0, self.digit[digit]),))
                allowed = own if value else own.complement()
                rows.add((side, digit), sum_form(inside) + allowed.scaled(-1.0), upper=0.0)
        self.form = LinearForm(0.0, tuple((self.probabilities[k], weights[k]) for k in points))
        block.x.also_place(self.place)

    def _pieces_have(self, point: int, digit: int, value: int) -> bool:
        """Whether the pieces on both sides of a point have this digit."""
        beside = [piece for piece in (point - 1, point) if 0 <= piece < len(self.scores) - 1]
        return all(_gray(piece) >> digit & 1 == value for piece in beside)

    def place(self, point: Mapping[str, float]) -> None:
        """Set the variables to those of a point (coordinates by column)."""
        predictor, _ = self._held
        score = float(predictor.score(point_row(predictor.space, point)).reshape(-1)[0])
        score = min(max(score, self.scores[0]), self.scores[-1])
        piece = min(max(int(np.searchsorted(self.scores, score)) - 1, 0), len(self.scores) - 2)
        low, high = self.scores[piece : piece + 2]
        share = (score - low) / (high - low)
        for k, weight in self.weight.items():
            weight.set_value({piece: 1.0 - share, piece + 1: share}.get(k, 0.0), skip_validation=True)
        for digit, chosen in self.digit.items():
            chosen.set_value(_gray(piece) >> digit & 1, skip_validation=True)


_CURVE = Manifest(
    title="probability of one score, as a curve",
    formula="a >= exp(-s/2), b >= exp(s/2), a b <= 1, p (a + b) = b",
    reference="own: the product leaves both exponentials no room",
)


@final
class LogisticCurve(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    r"""The probability of the second label as the logistic function of the score itself.

    .. math::
        a \ge e^{-s/2},\quad b \ge e^{s/2},\quad a\, b \le 1 + 10^{-6},\quad p\,(a + b) = b

    ======== ================= ==============================
    symbol   component         meaning
    ======== ================= ==============================
    s                          the block's score
    a, b     ``odds[0 or 1]``  roots of the odds of the first and the second label
    p        ``chance``        probability of the second
    ======== ================= ==============================

    To 1e-6 in both directions: as :math:`e^{-s/2} e^{s/2} = 1`, the product lets neither exceed its exponential.
    Without the 1e-6 no point has any room, and odds themselves, up to 1e8, cannot be exact enough: SCIP lost points.
    Adds 3 variables, 2 exponential cones and 3 products: a nonconvex program, for SCIP and Gurobi.
    """

    def __init__(self, block: ScoredBlock, low: float, high: float) -> None:
        super().__init__(concrete=True)
        self._held = (block.predictor, block.x)
        describe(self, _CURVE)
        half = block.combine((0.5,)).expression()
        least, most = math.exp(0.5 * low), math.exp(0.5 * high)
        ends = ((1.0 / most, 1.0 / least), (least, most))
        self.odds = pyo.Var(
            [0, 1], bounds=lambda _, k: (ends[k][0] * (1.0 - ODDS_ROOM), ends[k][1] * (1.0 + ODDS_ROOM))
        )
        self.chance = pyo.Var(bounds=(0.0, 1.0))
        self.above = pyo.ConstraintList()
        self.above.add(exponential(-half, 1.0, self.odds[0]) >= 0)
        self.above.add(exponential(half, 1.0, self.odds[1]) >= 0)
        self.both = pyo.Constraint(expr=self.odds[0] * self.odds[1] <= 1.0 + ODDS_ROOM)
        self.share = pyo.Constraint(expr=self.chance * self.odds[0] + self.chance * self.odds[1] == self.odds[1])
        self.form = LinearForm(0.0, ((1.0, self.chance),))
        block.x.also_place(self.place)

    def place(self, point: Mapping[str, float]) -> None:
        """Set the variables to those of a point (coordinates by column)."""
        predictor, _ = self._held
        score = float(predictor.score(point_row(predictor.space, point)).reshape(-1)[0])
        self.odds[0].set_value(math.exp(-0.5 * score), skip_validation=True)
        self.odds[1].set_value(math.exp(0.5 * score), skip_validation=True)
        self.chance.set_value(1.0 / (1.0 + math.exp(-score)), skip_validation=True)


def _gray(number: int) -> int:
    """Return the Gray code of a number: neighbours differ in one digit."""
    return number ^ (number >> 1)


def probabilities_of(block: ScoredBlock, error: float) -> tuple[Probabilities, PiecewiseLink | LogisticCurve | None]:
    """Return the probabilities of a block's labels, and the block of the variables that they need, if they need some.

    Raises
    ------
    UnsupportedModelError
        The model's scores give no probabilities, or its link jumps.
    UnboundedFeatureError
        A column that a model with a link weighs has no bound.
    InvalidValueError
        The error is below 1e-5 and not 0, or .5 or more; or it is 0 and the scores are too large for a curve.
    """
    if error != 0 or isinstance(error, bool):
        _CHECK.require("probability_within", "error", error)
    head = block.predictor.core.head
    labels = head.labels
    link: Any = head.probability
    if labels is None or link is None:
        what = "a regressor" if labels is None else "a classifier without them, or of several labels by a softmax"
        raise UnsupportedModelError(
            "block.probability", "a model that gives probabilities, one score of two labels or shares",
            f"this one is {what}", "Use block.score or block.margin(target).",
        )  # fmt: skip
    if link == "share":
        units = np.eye(len(labels)).tolist()
        shares = {label: block.combine(unit).expression() for label, unit in zip(labels, units, strict=True)}
        return Probabilities(shares, 0.0), None
    if link == "identity":
        return _of_two(labels, block.combine((1.0,)), 0.0), None
    low, high = block.range_of((1.0,))
    require_finite("block.probability", block.x, low, high)
    if error == 0:
        curve = _curve(block, link, low, high)
        return _of_two(labels, curve.form, 0.0), curve
    scores, values, proved = pieces_of(lambda s: head.of_position(s, 1), low, high, error)
    if len(scores) == 1:
        return _of_two(labels, LinearForm(float(values[0])), proved), None
    parts = PiecewiseLink(block, scores, values)
    return _of_two(labels, parts.form, proved), parts


def _curve(block: ScoredBlock, link: Any, low: float, high: float) -> LogisticCurve:
    """Return the curve of a logistic link over some scores."""
    if link != "logistic":
        raise UnsupportedModelError(
            "probability_within", "a logistic link, where the error is 0", "this one is another", "Give an error."
        )
    if max(-low, high) > MOST_CURVED_SCORE:
        raise InvalidValueError(
            "probability_within", f"scores within {MOST_CURVED_SCORE:g} of 0, where the error is 0",
            f"they range over [{low:.4g}, {high:.4g}]", "Narrow the bounds of the columns, or give an error.",
        )  # fmt: skip
    return LogisticCurve(block, low, high)


def _of_two(labels: Sequence[Any], second: LinearForm, error: float) -> Probabilities:
    return Probabilities({labels[0]: second.complement().expression(), labels[1]: second.expression()}, error)


# ==== A piecewise-linear function near a non-decreasing one, with a proof =============================================


def pieces_of(link: Callable[[Floats], Floats], low: float, high: float, error: float) -> tuple[Floats, Floats, float]:
    """Return points between which a line is never further from a link than ``error``, and a proved bound on how far.

    Each piece is as long as one that begins where the last one ended can be.

    Parameters
    ----------
    link
        Non-decreasing, of values in [0, 1], elementwise.
    low, high
        The least and the greatest score.
    error
        Greatest distance.

    Returns
    -------
    scores, values
        (K,) each, increasing and non-decreasing; K = 1 where the score cannot move.
    proved
        At most ``error``.

    Raises
    ------
    UnsupportedModelError
        The link jumps by more than an eighth of the error.

    Examples
    --------
    >>> from scipy.special import expit
    >>> scores, values, proved = pieces_of(expit, -6.0, 6.0, 1e-3)
    >>> len(scores), proved <= 1e-3
    (20, True)
    """
    if low == high:
        return np.array([low]), np.clip(link(np.array([low])), 0.0, 1.0), PROBABILITY_ROUNDING
    pad = SCORES_BEYOND_BOUNDS * max(1.0, abs(low), abs(high))
    grid, raw = _grid(link, low - pad, high + pad, _RISE_SHARE * error)
    values = np.clip(np.maximum.accumulate(raw), 0.0, 1.0)  # float32 may fall by a last digit
    rounding = float(np.abs(values - raw).max()) + PROBABILITY_ROUNDING
    rise = float(np.diff(values).max())
    width = (error - rise - rounding) * (1.0 - 1e-9)  # so that the sum below is no more, rounded
    ends, at_ends = _greedy(grid, np.maximum(values - width, 0.0), np.minimum(values + width, 1.0))
    miss = float(np.abs(np.interp(grid, ends, at_ends) - values).max())
    return ends, at_ends, miss + rise + rounding


def _grid(link: Callable[[Floats], Floats], low: float, high: float, rise: float) -> tuple[Floats, Floats]:
    """Return a grid between whose points the link rises by at most ``rise``, and its values."""
    grid = np.linspace(low, high, 65)
    values = np.asarray(link(grid), dtype=np.float64)
    while True:
        steep = np.flatnonzero(np.diff(values) > rise)
        if not steep.size:
            return grid, values
        widths = grid[steep + 1] - grid[steep]
        if widths.min() < LINK_JUMP * max(1.0, abs(low), abs(high)):
            at = float(grid[steep[np.argmin(widths)]])
            raise UnsupportedModelError(
                "block.probability", "a link without jumps", f"this model's probability jumps at the score {at:.6g}",
                "Use block.score or block.margin(target), or a larger error.",
            )  # fmt: skip
        middles = grid[steep] + widths / 2.0
        grid = np.insert(grid, steep + 1, middles)
        values = np.insert(values, steep + 1, np.asarray(link(middles), dtype=np.float64))


def _greedy(grid: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return the corners of a non-decreasing line between two bounds at the points of a grid, each piece the longest.

    From a corner on, the slopes that keep to the bounds of one more point are an interval that only shrinks.
    """
    ends = [0]
    values = [float(lower[0] + upper[0]) / 2.0]
    last = len(grid) - 1
    while ends[-1] < last:
        first = ends[-1] + 1
        steps = grid[first:] - grid[ends[-1]]
        least = np.maximum(np.maximum.accumulate((lower[first:] - values[-1]) / steps), 0.0)
        most = np.minimum.accumulate((upper[first:] - values[-1]) / steps)
        count = int(np.argmin(np.append(least <= most, False)))
        slope = (least[count - 1] + most[count - 1]) / 2.0
        ends.append(first + count - 1)
        values.append(float(np.clip(values[-1] + slope * steps[count - 1], lower[ends[-1]], upper[ends[-1]])))
    return grid[ends], np.array(values)
