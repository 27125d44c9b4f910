"""A least distance between any two answers."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo

from ceopt.formulations.columns.numeric import LEAST_MOVE
from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity, Point, is_far, is_moved, length
from ceopt.formulations.constraints.rule import active_ones, is_off_amounts
from ceopt.formulations.costs import L0, L1, AbstractCost, Changes, Linf, Sum, parse_cost
from ceopt.formulations.costs.base import move_of
from ceopt.formulations.linear_form import Rows, total
from ceopt.formulations.tolerances import APART_TOLERANCE, DISTANCE_ROUNDING
from ceopt.solvers.checks import Real, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.constraints.rule import AbstractRule
    from ceopt.formulations.recourse_program import RecourseProgram
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

_CHECKS = {
    "least": Real(
        above=0.0,
        finite=True,
        otherwise=Refusal("a finite number above 0 as least", "Give for example 0.5."),
        wrong_type=Refusal("a number as least", "Give for example 0.5.", error=InvalidTypeError),
    )
}
#: By how much :meth:`Apart.firmer` multiplies what the rows ask for beyond the distance.
_FIRMER = 10.0

_MANIFEST = Manifest(
    title="distance from an earlier answer",
    formula="sum_j price_j(x_j - x^k_j) >= least",
    reference="reverse convex rows by a binary per column",
    features=dict.fromkeys(("up", "down", "rises", "way", "move", "most"), 0),
)


@final
@dataclass(frozen=True, slots=True)
class Apart(AbstractDiversity):
    r"""Every further answer keeps at least a distance from each earlier one.

    .. math::
        \text{l1:}\quad & \sum_j w^+_j p_j + w^-_j n_j \ge \delta, \quad x_j - x^k_j = p_j - n_j, \quad
            p_j \le M^+_j b_j, \quad n_j \le M^-_j (1 - b_j) \\
        \text{l0:}\quad & \sum_j w^+_j\, [x_j \ge x^k_j + \epsilon_j] + w^-_j\, [x_j \le x^k_j - \epsilon_j]
            \ge \delta \\
        \text{linf:}\quad & \sum_j [x_j \ge x^k_j + \delta / w^+_j] + [x_j \le x^k_j - \delta / w^-_j] \ge 1

    ========== ======================== ==========================================================================
    symbol     component                meaning
    ========== ======================== ==========================================================================
    x^k                                 the earlier answer
    w^-, w^+                            price of a move down and up, weight over scale, as the cost has it
    p, n, b    ``up``, ``down``,        move up and down, and which of them it is; of a number that can go one way
               ``rises``; ``way``       only, the move
    M                                   room from x^k to the bounds
    [...]      ``x.cut``                binary of a cut of the column at that value, exact to a float
    epsilon                             least move that counts: the step, or a thousandth of the range of a number
                                        without one
    ========== ======================== ==========================================================================

    The cost counts the move from the earlier answer to the new one, with its weights for each direction; a move between
    two columns of an :class:`~ceopt.ExactlyOne` is that of the column that takes the 1; between an amount and a missing
    cell or a code it is the column's ``fill``, wherever it lands. Levels add
    their price table to the row and no variable; numbers move in units of the distance. Per earlier answer one row and,
    for "l1", up to two variables, a binary and three rows a number; else up to two cuts a number. MILP. Exact up to the
    solver's tolerance: an answer is taken to keep the distance if it misses at most 1e-6 of it. All columns can move,
    also those that no model reads.

    :class:`ceopt.solvers.Apart` is the same over Vars of any program, for :func:`ceopt.solvers.solve`.

    Parameters
    ----------
    least
        The distance, above 0.
    cost
        "l0", "l1" or "linf", or L0(), Changes(count=), L1(scale=), Linf(scale=).
    extra
        Share by which the rows ask for more; :meth:`firmer` sets it.
    together
        Groups of columns of which one is 1; :meth:`counting` sets it.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        ``least`` is not a positive number; a cost of which no distance can be asked (see the message).
    UnknownNameError
        A cost, or a column of its scale, that does not exist.
    UnboundedFeatureError
        For "l1" a number that can go both ways has an infinite bound, so no M exists (when built: ``explain`` keeps the
        answers in hand, and says so in ``.reason``).

    References
    ----------
    The usual rows for a sum of absolute values that is to be large (a reverse convex constraint): a binary for each.

    Examples
    --------
    From the earlier answer 2 there is room for 2 down and 7 up; lengths count the distance 4 as 1:

    >>> import pyomo.environ as pyo
    >>> from ceopt import L1, Apart, Feature, FeatureSpace
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.predictors.readers import read
    >>> from ceopt.formulations.recourse_program import recourse_program
    >>> space = FeatureSpace([Feature("hours", kind="continuous", lower=0, upper=9)])
    >>> model = read(Affine([1.0], -1.0, labels=("no", "yes")), space)
    >>> program = recourse_program(model, {"hours": 0}, target="yes", cost=L1())
    >>> Apart(4, cost=L1(scale="none")).exclude(program, {"hours": 2.0})
    >>> for row in program.model.apart[1].component_data_objects(pyo.Constraint):
    ...     print(row.expr)
    -2.0 + x.x[hours] - 4.0*apart[1].up[hours] + 4.0*apart[1].down[hours]  ==  0.0
    apart[1].up[hours] - 1.75*apart[1].rises[hours]  <=  0.0
    -0.5 + apart[1].down[hours] + 0.5*apart[1].rises[hours]  <=  0.0
    0.999999999  <=  apart[1].up[hours] + apart[1].down[hours]
    """

    least: float
    cost: str | AbstractCost = "l1"
    extra: float = field(default=0.0, kw_only=True, repr=False)
    together: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", check_fields(self, _CHECKS)["least"])
        _require_distance(self.cost)

    @property
    def text(self) -> str:  # type: ignore[override]
        """The call that makes it."""
        return f"Apart({self.least!r}, cost={self.cost!r})"

    @property
    def measure(self) -> AbstractCost:
        """The cost as an object."""
        return parse_cost(self.cost)

    def check(self, space: FeatureSpace, rules: tuple[AbstractRule, ...]) -> None:
        """Refuse scales of columns that do not exist."""
        del rules
        self.measure.prices(space)

    def counting(self, together: tuple[tuple[str, ...], ...]) -> Apart:
        """Return the same knowing the groups of which one column is 1."""
        return replace(self, together=together)

    def firmer(self) -> Apart:
        """Return the same with rows that ask for more, by a share that begins at the tolerance."""
        return replace(self, extra=max(_FIRMER * self.extra, APART_TOLERANCE))

    # ---- the program -------------------------------------------------------------------------------------------------
    def exclude(self, program: RecourseProgram, point: Point) -> None:
        """Add a block ``apart[k]`` with the row ``distance``."""
        x = program.x
        model = program.model
        measure = self.measure
        if model.component("apart") is None:
            model.apart = pyo.Block(pyo.Any)
        block = model.apart[len(model.apart) + 1]
        describe(block, _MANIFEST)
        share = (1.0 - DISTANCE_ROUNDING) * (1.0 + self.extra)
        free = active_ones(self.together, point)
        pairs = [(name, price) for name, (price,) in measure.prices(x.space).items() if name not in free]
        if isinstance(measure, Linf):
            forms = [is_far(x, name, point[name], price, self.least * share) for name, price in pairs]
            Rows(block, "distance").add("least", total(forms), lower=1.0)
            return
        build: Any = is_moved
        if isinstance(measure, L1):
            build = functools.partial(length, block)
        forms = [build(x, name, point[name], price.scaled(1.0 / self.least)) for name, price in pairs]
        Rows(block, "distance").add("least", total(forms), lower=share)

    # ---- in plain numbers --------------------------------------------------------------------------------------------
    def between(self, space: FeatureSpace, a: Point, b: Point) -> float:
        """Return the distance from a point to another; of "l0" without moves too short to count."""
        b = {**b, **{name: a[name] for name in active_ones(self.together, a)}}
        if not isinstance(self.measure, L1 | Linf):
            for feature in space:
                if _is_short(feature, move_of(feature, a[feature.name], b[feature.name])) and not is_off_amounts(
                    space, [feature.name], a, b
                ):
                    b[feature.name] = a[feature.name]
        return self.measure.value(space, a, b)

    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether the distance from the earlier point to the other is kept."""
        del factual
        return self.between(space, a, b) >= self.least * (1.0 - APART_TOLERANCE)


def _require_distance(given: Any) -> None:
    cost = parse_cost(given)
    if isinstance(cost, L0 | L1 | Changes | Linf):
        return
    if isinstance(cost, Sum):
        why = "a sum has no one unit to keep a distance in"
        what = "Choose one part of it."
    elif cost.curved:
        why = "points outside a curved ball are not convex, nor a choice of a few linear pieces"
        what = "Take 'linf', which is never above l2 at the same scale, or 'l1'."
    else:
        why = "it is not a distance column by column"
        what = "Take 'l0', 'l1' or 'linf'."
    raise InvalidValueError("Apart", "'l0', 'l1' or 'linf' as cost", f"cost is {given!r}: {why}", what)


def _is_short(feature: Feature, move: float) -> bool:
    """Tell whether a number's move is too short for two answers to count as different in it."""
    if feature.is_finite:
        return False
    width = feature.upper - feature.lower
    if feature.spacing:
        least = feature.spacing
    elif math.isfinite(width) and width > 0.0:
        least = LEAST_MOVE * width
    else:
        least = LEAST_MOVE
    return abs(move) < least * (1.0 - APART_TOLERANCE)
