"""Columns that follow from others by a formula: the ratio of two columns, and the product of several.

First the product of columns as a linear form with rows of its own (:func:`product_of`), then what a decoded point needs
to meet a formula to the last digit, then the two rules.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.columns import Numeric
from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints.if_then import ValueList
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule, Point, is_off_amounts
from ceopt.formulations.digits import digits
from ceopt.formulations.linear_form import LinearForm, Rows, finite_or_none, total
from ceopt.formulations.space.feature import Feature, column_tolerance
from ceopt.formulations.space.reachable import Interval, Levels, decimal_grid, reach_of
from ceopt.formulations.tolerances import (
    BILINEAR_SIZES,
    ORDINARY_PRODUCTS,
    PRODUCT_ROUNDING,
    RESOLVED_PRODUCTS,
    SUM_ROUNDING,
    TRACE,
)
from ceopt.solvers.checks import Floats, Refusal, Text, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns import AbstractCoordinate
    from ceopt.formulations.space.space import FeatureSpace

# ==== The product of columns in a program =============================================================================

#: A column of at most so many values is taken value by value, one of more by the binary digits of its steps.
_MOST_VALUES: Final = 256
#: A column of more steps than this counts as one without: a solver's integers are right to 1e-6.
_MOST_STEPS: Final = 2**17


@final
@dataclass(frozen=True, slots=True)
class Bounded:
    """A linear form, and the least and the greatest value that it may take."""

    form: LinearForm
    low: float
    high: float

    @property
    def unit(self) -> float:
        """What variables that hold it count in: 1, or a power of two where its size is very small or very large."""
        size = max(abs(self.low), abs(self.high))
        if not math.isfinite(size) or size == 0.0 or ORDINARY_PRODUCTS[0] <= size <= ORDINARY_PRODUCTS[1]:
            return 1.0
        return 2.0 ** round(math.log2(size))

    def times(self, low: float, high: float) -> tuple[float, float]:
        """Return the least and the greatest product with a number between two others."""
        ends = []
        for one in (self.low, self.high):
            for other in (low, high):
                ends.append(0.0 if 0.0 in {one, other} else one * other)
        return min(ends), max(ends)


def product_of(block: Any, x: Factual, who: str, names: Sequence[str]) -> Bounded:
    r"""Return the product of some columns, one several times where it is there several times, as a linear form.

    ============================== ===================================================================================
    a further factor               the product with what is there, :math:`p \in [l, u]`
    ============================== ===================================================================================
    that cannot move               a coefficient
    of levels, or 256 values v     :math:`\sum_v v\, p_v`, where :math:`\sum_v p_v = p` and
                                   :math:`l\, [x = v] \le p_v \le u\, [x = v]`: a variable and two rows a value
    with more, at equal steps s    :math:`v_0 p + s \sum_k 2^k p_k`, of the binary digits :math:`b_k` of the steps,
                                   where :math:`p_k = b_k p` by four rows: a binary, a variable and four rows a digit
    any other                      a variable that is equal to the product: a row that is bilinear, and for a factor of
                                   extreme size a variable and a row that count it in another unit
    ============================== ===================================================================================

    Exact. Of the last kind one factor costs nothing: it is what is there first. Where a second one is met, the program
    is a nonconvex one, and ``x.multiplied`` notes who multiplies which columns. With ``x.takes_products`` every number
    that moves is of the last kind, of which SCIP proves the optimum in a tenth of the time. Of digits whose product is
    1e8 times its least or more, ``x.unresolved`` notes who multiplies them: a search then claims nothing. Where values
    or digits are multiplied by what moves, ``x.expands_products`` says so: a search then solves twice.

    Raises
    ------
    UnboundedFeatureError
        A column has values or digits, and one that it is multiplied by lacks a bound.
    """
    constant, smooth, stepped = _factors(x, names)
    if len(smooth) > 1:
        x.multiplied.append((who, tuple(dict.fromkeys(smooth))))
    product = Bounded(LinearForm(constant), constant, constant)
    for name in smooth:
        product = _times_smooth(block, x, product, x.coordinate(name))
    for name, power in Counter(stepped).items():
        coordinate = x.coordinate(name)
        if product.form.terms:
            x.expands_products = True
            for other in (*smooth, *stepped):
                _require_bounds(who, x.coordinate(other))
        if isinstance(coordinate, Numeric) and count_of(coordinate) > _MOST_VALUES:
            for _ in range(power):
                product = _times_digits(block, x, product, coordinate)
        else:
            product = _times_values(block, x, product, coordinate, power)
    _note_size(block, x, who, names)
    return product


def _note_size(block: Any, x: Factual, who: str, names: Sequence[str]) -> None:
    """Note a product in digits whose greatest value is too many times its least."""
    if block.component("digits") is None:
        return
    ratio = 1.0
    for name in names:
        low, high = map(abs, ends_of(x.coordinate(name)))
        step = x.space[name].spacing
        least = step if step is not None else min(filter(None, (low, high)), default=1.0)
        ratio *= max(low, high, least) / least
    if ratio > RESOLVED_PRODUCTS:
        x.unresolved.append(who)


def _factors(x: Factual, names: Sequence[str]) -> tuple[float, list[str], list[str]]:
    """Return the product of what cannot move, the columns that need bilinear rows beside one another, and the others.

    The first of the last need none, where there are no others before them: it is the one with the most values.
    """
    constant = 1.0
    smooth: list[str] = []
    stepped: list[str] = []
    for name, power in Counter(names).items():
        coordinate = x.coordinate(name)
        if coordinate.is_point:
            constant *= x.reach[name].only ** power
        elif count_of(coordinate) > _MOST_STEPS or (x.takes_products and isinstance(coordinate, Numeric)):
            smooth += [name] * power
        else:
            stepped += [name] * power
    stepped.sort(key=lambda name: (-count_of(x.coordinate(name)), name))
    if not smooth and stepped and stepped.count(stepped[0]) == 1:
        smooth.append(stepped.pop(0))
    return constant, smooth, stepped


def count_of(coordinate: AbstractCoordinate) -> float:
    """Return how many values a column may take; infinite of one without steps or bounds."""
    if not isinstance(coordinate, Numeric):
        return len(coordinate.block.reach[coordinate.name].ranks)
    interval = coordinate.interval
    if interval.step is None:
        return math.inf
    return (interval.upper - interval.lower) / interval.step + 1.0


def ends_of(coordinate: AbstractCoordinate) -> tuple[float, float]:
    """Return the least and the greatest value that a column may take."""
    if isinstance(coordinate, Numeric):
        return coordinate.interval.lower, coordinate.interval.upper
    ranks = coordinate.block.reach[coordinate.name].ranks
    return float(ranks[0]), float(ranks[-1])


def _values(coordinate: AbstractCoordinate) -> list[float]:
    """Return all values that a column may take."""
    if not isinstance(coordinate, Numeric):
        return list(map(float, coordinate.block.reach[coordinate.name].ranks))
    interval = coordinate.interval
    step = cast("float", interval.step)
    first = round((interval.lower - interval.anchor) / step)
    last = round((interval.upper - interval.anchor) / step)
    return [interval.grid.at(count) for count in range(first, last + 1)]


def _require_bounds(who: str, coordinate: AbstractCoordinate) -> None:
    if isinstance(coordinate, Numeric):
        coordinate.require_bounds(who)


def _new(block: Any, name: str, index: Any, domain: Any = pyo.Reals) -> Any:
    """Return a new variable of a block's container, which is made with the first one."""
    if block.component(name) is None:
        block.add_component(name, pyo.Var(pyo.Any, dense=False, domain=domain))
    return block.component(name)[index]


def _text(value: float) -> str:
    return repr(value).removesuffix(".0")


def _times_values(block: Any, x: Factual, base: Bounded, coordinate: AbstractCoordinate, power: int) -> Bounded:
    values = _values(coordinate)
    if isinstance(coordinate, Numeric):
        coordinate.cut_around(values)
    is_value = {value: coordinate.equals(value) for value in values}
    powers = {value: value**power for value in values}
    low, high = base.times(min(powers.values()), max(powers.values()))
    if not base.form.terms:
        form = total(is_value[value].scaled(base.form.constant * powers[value]) for value in values)
        return Bounded(form, low, high)
    unit = base.unit
    low_part, high_part = base.low / unit, base.high / unit
    rows = Rows(block, "part")
    parts = {}
    for value in values:
        index = (coordinate.name, _text(value))
        part = _new(block, "parts", index)
        part.setlb(min(low_part, 0.0))
        part.setub(max(high_part, 0.0))
        parts[value] = part
        form = LinearForm(0.0, ((1.0, part),))
        rows.add((*index, "least"), form + is_value[value].scaled(-low_part), lower=0.0)
        rows.add((*index, "most"), form + is_value[value].scaled(-high_part), upper=0.0)
    whole = LinearForm(0.0, tuple((1.0, part) for part in parts.values())) + base.form.scaled(-1.0 / unit)
    Rows(block, "whole").add(coordinate.name, whole, lower=0.0, upper=0.0)
    x.also_place(_Parts(base.form, unit, coordinate.name, parts).place)
    form = LinearForm(0.0, tuple((unit * powers[value], part) for value, part in parts.items() if powers[value]))
    return Bounded(form, low, high)


def _times_digits(block: Any, x: Factual, base: Bounded, coordinate: Numeric) -> Bounded:
    interval = coordinate.interval
    step = cast("float", interval.step)
    count = round((interval.upper - interval.lower) / step)
    low, high = base.times(interval.lower, interval.upper)
    place = 0
    while block.component("digits") is not None and (coordinate.name, place, 0) in block.digits:
        place += 1  # a further power of the same column
    digit_of = [_new(block, "digits", (coordinate.name, place, k), pyo.Binary) for k in range(count.bit_length())]
    steps = LinearForm(0.0, tuple((-step * 2**k, digit) for k, digit in enumerate(digit_of)))
    form = (coordinate.raw() + steps).scaled(1.0 / step)
    Rows(block, "counted").add((coordinate.name, place), form, lower=interval.lower / step, upper=interval.lower / step)
    if not base.form.terms:
        return Bounded(coordinate.raw().scaled(base.form.constant), low, high)
    unit = base.unit
    ends = base.low / unit, base.high / unit
    scaled = base.form.scaled(1.0 / unit)
    rows = Rows(block, "digit")
    parts = []
    for k, digit in enumerate(digit_of):
        index = (coordinate.name, place, k)
        part = _new(block, "digit_parts", index)
        part.setlb(min(ends[0], 0.0))
        part.setub(max(ends[1], 0.0))
        parts.append(part)
        form = LinearForm(0.0, ((1.0, part),))
        rows.add((*index, "least"), form + LinearForm(0.0, ((-ends[0], digit),)), lower=0.0)
        rows.add((*index, "most"), form + LinearForm(0.0, ((-ends[1], digit),)), upper=0.0)
        other = form + scaled.scaled(-1.0)
        rows.add((*index, "off most"), other + LinearForm(0.0, ((-ends[0], digit),)), upper=-ends[0])
        rows.add((*index, "off least"), other + LinearForm(0.0, ((-ends[1], digit),)), lower=-ends[1])
    x.also_place(_Digits(base.form, unit, coordinate, tuple(digit_of), tuple(parts)).place)
    terms = tuple((unit * step * 2**k, part) for k, part in enumerate(parts))
    return Bounded(base.form.scaled(interval.lower) + LinearForm(0.0, terms), low, high)


def _times_smooth(block: Any, x: Factual, base: Bounded, coordinate: AbstractCoordinate) -> Bounded:
    factor = Bounded(coordinate.raw(), *ends_of(coordinate))
    low, high = base.times(factor.low, factor.high)
    if not base.form.terms:
        return Bounded(factor.form.scaled(base.form.constant), low, high)
    position = 0 if block.component("product") is None else len(block.product)
    one = _in_scale(block, x, base, (position, "before"))
    other = _in_scale(block, x, factor, (position, coordinate.name))
    scale = _scale_of(low, high)
    product = _new(block, "product", position)
    product.setlb(finite_or_none(low / scale))
    product.setub(finite_or_none(high / scale))
    share = one.scale * other.scale / scale
    if block.component("bilinear") is None:
        block.bilinear = pyo.Constraint(pyo.Any)
    block.bilinear[position] = product - one.form.scaled(share).expression() * other.form.expression() == 0.0
    x.also_place(_Product(product, one.form.scaled(share), other.form).place)
    return Bounded(LinearForm(0.0, ((scale, product),)), low, high)


@final
@dataclass(frozen=True, slots=True)
class _Scaled:
    """A form that counts in a scale."""

    form: LinearForm
    scale: float


def _scale_of(low: float, high: float) -> float:
    """Return 1, or a power of two in which a number between two others is some thousand at most."""
    size = max(abs(low), abs(high))
    if not math.isfinite(size) or size == 0.0 or BILINEAR_SIZES[0] <= size <= BILINEAR_SIZES[1]:
        return 1.0
    return 2.0 ** (round(math.log2(size)) - 10)


def _in_scale(block: Any, x: Factual, factor: Bounded, index: Any) -> _Scaled:
    """Return a factor of a bilinear row in its scale: a variable of its own where that is not 1.

    Coefficients of products are then near 1: SCIP takes those below 1e-9 for 0.
    """
    scale = _scale_of(factor.low, factor.high)
    if scale == 1.0:
        return _Scaled(factor.form, 1.0)
    variable = _new(block, "scaled", index)
    variable.setlb(finite_or_none(factor.low / scale))
    variable.setub(finite_or_none(factor.high / scale))
    form = factor.form.scaled(1.0 / scale)
    own = LinearForm(0.0, ((1.0, variable),))
    Rows(block, "scale").add(index, own + form.scaled(-1.0), lower=0.0, upper=0.0)
    x.also_place(_Product(variable, form, LinearForm(1.0)).place)
    return _Scaled(own, scale)


# ---- a start: what the variables of a product are at a point ---------------------------------------------------------
@final
@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    base: LinearForm
    unit: float
    name: str
    parts: Mapping[float, Any]

    def place(self, point: Point) -> None:
        nearest = min(self.parts, key=lambda value: abs(value - point[self.name]))
        for value, part in self.parts.items():
            size = self.base.value() / self.unit if value == nearest else 0.0
            part.set_value(size, skip_validation=True)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Digits:
    base: LinearForm
    unit: float
    coordinate: Numeric
    digits: tuple[Any, ...]
    parts: tuple[Any, ...]

    def place(self, point: Point) -> None:
        interval = self.coordinate.interval
        count = round((point[self.coordinate.name] - interval.lower) / cast("float", interval.step))
        for k, (digit, part) in enumerate(zip(self.digits, self.parts, strict=True)):
            is_on = count >> k & 1
            digit.set_value(is_on, skip_validation=True)
            part.set_value(is_on * self.base.value() / self.unit, skip_validation=True)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    variable: Any
    base: LinearForm
    factor: LinearForm

    def place(self, _point: Point) -> None:
        self.variable.set_value(self.base.value() * self.factor.value(), skip_validation=True)


# ==== A column that follows from others ===============================================================================


def half_step(feature: Feature) -> float:
    """Return half the distance of a column's neighbouring values; 0 of a continuous one without decimals."""
    if feature.is_finite:
        return 0.5
    if feature.spacing is not None:
        return feature.spacing / 2.0
    if feature.decimals is not None:
        return 10.0**-feature.decimals / 2.0
    return 0.0


class AbstractFormula(AbstractRule):
    r"""A column y that is computed from others, half a step h apart at most; abstract.

    .. math:: |y - f(x) - r| \le h, \qquad
        r = y^0 - f(x^0) \text{ if } |y^0 - f(x^0)| > h, \text{ else } 0
    """

    __slots__ = ()

    needs_factual: ClassVar[bool] = True
    mends = True
    column: Any

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """The columns of the formula, one several times where it is there several times."""

    @abstractmethod
    def computed(self, values: Mapping[str, Any]) -> Any:
        """Return the formula of numbers, or of arrays (n,), by column; not finite where it is not defined."""

    @abstractmethod
    def solved(self, name: str, goal: float, point: Point) -> float:
        """Return what an input would have to be for the formula to be ``goal``; NaN where nothing would do."""

    # ---- what fits ---------------------------------------------------------------------------------------------------
    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every column that the rule reads, once."""
        return tuple(dict.fromkeys((self.column, *self.inputs)))

    def check(self, space: FeatureSpace) -> None:
        """Refuse unknown and categorical columns."""
        who = type(self).__name__
        for name in self.reads:
            if name not in space:
                raise UnknownNameError.among(who, "column", name, space.names)
            if space[name].kind == "categorical":
                but = f"column {name!r} is categorical"
                then = "Leave the rule out, or make the column ordinal or a number."
                raise InvalidTypeError(who, "columns that are numbers, ranks or 0/1", but, then)

    def needs_amount(self, space: FeatureSpace, name: str, label: float) -> bool:
        """Whether the formula has the column: always."""
        del space, name, label
        return True

    # ---- plain numbers -----------------------------------------------------------------------------------------------
    def residual(self, space: FeatureSpace, factual: Point) -> float:
        """Return by how much a person's row misses the formula, which is kept; 0 where it does not."""
        if is_off_amounts(space, self.reads, factual):
            return 0.0
        off = factual[self.column] - self._formula(factual)
        if not math.isfinite(off):
            return 0.0
        size = max(abs(factual[self.column]), abs(self._formula(factual)))
        return off if abs(off) > _allowed(space[self.column], size) else 0.0

    def off_today(self, space: FeatureSpace, factual: Point) -> float:
        """Return the size of the residual."""
        return abs(self.residual(space, factual))

    def violation(self, space: FeatureSpace, factual: Point | None, point: Point) -> float:
        """Return by how much the column is more than half a step off the formula and the residual."""
        assert factual is not None  # noqa: S101 - needs_factual
        if is_off_amounts(space, self.reads, factual, point):
            return math.inf
        goal = self._formula(point)
        if not math.isfinite(goal):
            return math.inf
        feature = space[self.column]
        residual = self.residual(space, factual)
        off = abs(point[self.column] - goal - residual)
        size = max(abs(point[self.column]), abs(goal) + abs(residual))
        return max(off - half_step(feature), 0.0) if off > _allowed(feature, size) else 0.0

    def mended(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points (n, d) with the column computed anew where it misses the formula, of those with amounts."""
        if is_off_amounts(space, self.reads, factual):
            return points
        holds_amounts = np.ones(len(points), dtype=bool)
        for name in self.reads:
            holds_amounts &= ~space[name].are_labels(points[:, space.names.index(name)])
        j = space.names.index(self.column)
        feature = space[self.column]
        with np.errstate(all="ignore"):
            goals = self.computed({name: points[:, space.names.index(name)] for name in self.inputs})
        goals = np.broadcast_to(goals, len(points)) + self.residual(space, factual)
        with np.errstate(invalid="ignore"):
            is_off = np.isfinite(goals) & ~(np.abs(points[:, j] - goals) <= half_step(feature)) & holds_amounts
        if not is_off.any():
            return points
        values = goals[is_off]
        if feature.is_finite:
            values = np.clip(np.rint(values), *feature.coordinate_limits)
        elif feature.spacing is not None:
            values = decimal_grid(float(factual[self.column]), float(feature.spacing)).nearest(values)
        mended = points.copy()
        mended[is_off, j] = values
        return mended

    def _formula(self, point: Point) -> float:
        values = {name: np.float64(point[name]) for name in self.inputs}
        with np.errstate(all="ignore"):
            return float(self.computed(values))


def _allowed(feature: Feature, size: float) -> float:
    """Return by how much a column may be off numbers of a size: half a step, with a solver's tolerance of it."""
    half = half_step(feature)
    if feature.is_finite or feature.spacing is not None:
        return half + column_tolerance(feature, size) + SUM_ROUNDING * size
    return max(half * (1.0 + TRACE) + SUM_ROUNDING * size, PRODUCT_ROUNDING * size)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Settled:
    """Puts a decoded point where it meets a formula: a solver's numbers are right to 1e-6 only.

    The column moves, or where its cell, its bounds or a count of changes does not let it, another number without steps.
    """

    rule: AbstractFormula
    x: Factual

    def __call__(self, point: dict[str, float]) -> dict[str, float]:
        """Return the point with one column changed, or as it is, where it meets the formula or nothing would do."""
        rule, space = self.rule, self.x.space
        if rule.violation(space, self.x.point, point) <= 0.0:
            return point
        residual = rule.residual(space, self.x.point)
        half = half_step(space[rule.column]) * (1.0 - TRACE)
        goal = rule._formula(point) + residual  # noqa: SLF001 - the other half of the same rule
        trials = [(rule.column, min(max(point[rule.column], goal - half), goal + half))]
        wanted = point[rule.column] - residual
        for name in rule.reads[1:]:
            if space[name].spacing is None:
                trials.append((name, rule.solved(name, min(max(goal - residual, wanted - half), wanted + half), point)))
        for name, value in trials:
            coordinate = self.x.coordinate(name)
            if not isinstance(coordinate, Numeric) or coordinate.is_point or not math.isfinite(value):
                continue
            low, high = coordinate.room_here()
            settled = {**point, name: coordinate.interval.clip(min(max(value, low), high))}
            if rule.violation(space, self.x.point, settled) <= 0.0:
                return settled
        return point


def _scale(x: Factual, name: str) -> float:
    """Return what a row that reads a column counts in: its step, or the unit of its variables."""
    feature = x.space[name]
    if feature.is_finite or feature.spacing is not None:
        return column_tolerance(feature, 0.0) / TRACE
    return x.coordinate(name).unit


_NO_NAME = Refusal("{name} to be the name of a column", "Write it as text.", error=InvalidTypeError)
_NO_FACTOR = Refusal("names of columns as factors", "Write them as text.", "one is {value}", InvalidTypeError)


@final
@dataclass(frozen=True, slots=True)
class Ratio(AbstractFormula):
    r"""A column y that is one column n divided by another d, as an instalment is an amount by a number of months.

    .. math:: |y - n / d - r| \le h \quad\text{as}\quad
        n - y d + r d + h |d| \ge 0, \quad n - y d + r d - h |d| \le 0

    ====== ===== ====================================================================================
    symbol unit  meaning
    ====== ===== ====================================================================================
    y, n   own   ``column`` and ``numerator``; a number in its own unit, an ordinal column by its rank, a binary one 0
                 or 1
    d      own   ``denominator``, which keeps one sign within the person's reach
    h      of y  half a step of y: of its ``step``, of 1 for whole numbers and ranks, of the last decimal of a
                 continuous column (``Feature.decimals``); without any 0
    r      of y  what the person's row is off by today, if that is more than h, else 0: who misses the formula keeps the
                 difference, with a :class:`~ceopt.RuleWarning`
    ====== ===== ====================================================================================

    Two rows, one where h is 0, and those of the product y d
    (:func:`~ceopt.formulations.constraints.products.product_of`): MILP where y or d has steps and bounds, or levels,
    else a nonconvex program with one bilinear row, which SCIP and Gurobi solve. Exact: an answer meets the formula
    within half a step, without steps within 1e-9 of its size. A move of y is charged and counted like any other.

    Parameters
    ----------
    column
        The column that follows.
    numerator, denominator
        The columns that it follows from.
    name
        Name in exports and reports.

    Raises
    ------
    UnknownNameError
        A column that does not exist.
    InvalidTypeError
        A name that is no text, or a categorical column.
    InvalidValueError
        The same column twice; a denominator that may reach 0 (when built, where it depends on the person); a column
        that may be missing or on a code for the person (when built).
    UnboundedFeatureError
        One of y and d has steps, and the other has no bounds (when built).
    UnsupportedProblemError
        Neither of the two has steps and bounds, and the solver takes no products (when solved).

    References
    ----------
    Sums over disjoint values: Balas (1979), Disjunctive programming; products with binary digits: McCormick (1976).

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import Ratio
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("rate", kind="continuous", lower=0.0, upper=900.0),
    ...                       Feature("amount", kind="continuous", lower=100.0, upper=2000.0),
    ...                       Feature("months", kind="integer", lower=2, upper=3)])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"rate": 500.0, "amount": 1000.0, "months": 2})
    >>> m.rate = impose(Ratio("rate", "amount", "months"), m.x)
    >>> for row in m.rate.component_data_objects(pyo.Constraint):
    ...     print(row.local_name, "|", row.expr)
    part[months,'2',least] | 0.0  <=  rate.parts[months,'2']
    part[months,'2',most] | -900.0 + rate.parts[months,'2'] + 900.0*x.cut[months,'2']  <=  0.0
    part[months,'3',least] | 0.0  <=  rate.parts[months,'3']
    part[months,'3',most] | rate.parts[months,'3'] - 900.0*x.cut[months,'2']  <=  0.0
    whole[months] | rate.parts[months,'2'] + rate.parts[months,'3'] - x.x[rate]  ==  0.0
    row[equals] | 0.5*x.x[amount] - rate.parts[months,'2'] - 1.5*rate.parts[months,'3']  ==  0.0
    """

    column: str
    numerator: str
    denominator: str
    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(
        title="a column that is the ratio of two others",
        formula="|y - n/d - r| <= h; y d = sum_v v y_v, sum_v y_v = y, y_v = 0 unless d = v",
        reference="Balas 1979; McCormick 1976",
        rule="Ratio",
    )

    def __post_init__(self) -> None:
        check_fields(self, _RATIO)
        names = (self.column, self.numerator, self.denominator)
        if len(set(names)) < 3:
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidValueError("Ratio", "three columns", f"{twice!r} is there twice", "Name each of them once.")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Numerator and denominator."""
        return self.numerator, self.denominator

    def computed(self, values: Mapping[str, Any]) -> Any:
        """Return the quotient."""
        return values[self.numerator] / values[self.denominator]

    def solved(self, name: str, goal: float, point: Point) -> float:
        """Return the numerator or the denominator that gives ``goal``."""
        if name == self.numerator:
            return goal * point[self.denominator]
        return point[self.numerator] / goal if goal else math.nan

    def check(self, space: FeatureSpace) -> None:
        """Refuse unknown and categorical columns, and a denominator that can be 0 whoever the person is."""
        AbstractFormula.check(self, space)
        feature = space[self.denominator]
        if feature.mutable and feature.direction == "any":
            self._refuse_zero(*_limits(feature))

    def _refuse_zero(self, low: float, high: float) -> None:
        if low <= 0.0 <= high:
            but = f"column {self.denominator!r} may become 0, as it goes from {digits(low)} to {digits(high)}"
            then = f"Set a bound: space.update({self.denominator!r}, lower=...)."
            raise InvalidValueError("Ratio", "a denominator that keeps away from 0", but, then)

    def build(self, block: Any, x: Factual) -> None:
        """Add the rows ``row``, and those of the product of column and denominator."""
        whole = reach_of(x.space, x.point)[self.denominator]  # a budget narrows the block's own, now and then
        self._refuse_zero(*_part_ends(whole))
        low, high = _part_ends(x.reach[self.denominator])
        self._refuse_zero(low, high)
        product = product_of(block, x, "Ratio", (self.column, self.denominator))
        divisor = x.coordinate(self.denominator).raw()
        residual = self.residual(x.space, x.point)
        form = x.coordinate(self.numerator).raw() + product.form.scaled(-1.0) + divisor.scaled(residual)
        scale = _scale(x, self.column) * min(abs(low), abs(high))
        rows = Rows(block, "row")
        half = half_step(x.space[self.column])
        if half == 0.0:
            rows.add("equals", form.scaled(1.0 / scale), lower=0.0, upper=0.0)
        else:
            size = divisor.scaled(math.copysign(half, low))
            rows.add("at_least", (form + size).scaled(1.0 / scale), lower=0.0)
            rows.add("at_most", (form + size.scaled(-1.0)).scaled(1.0 / scale), upper=0.0)
        x.also_settle(_Settled(self, x))

    def sentence(self) -> str:
        """Return the rule in words."""
        return f"{self.column} == {self.numerator} / {self.denominator}"


@final
@dataclass(frozen=True, slots=True)
class Product(AbstractFormula):
    r"""A column y that is the product of others, as what is paid in all is an instalment times a number of months.

    .. math:: r - h \le y - \prod_k x_k \le r + h

    ====== ===== ====================================================================================
    symbol unit  meaning
    ====== ===== ====================================================================================
    y, x_k own   ``column`` and ``factors``; a number in its own unit, an ordinal column by its rank, a binary one 0
                 or 1
    h, r   of y  half a step of y, and what the person's row is off by today: as in :class:`Ratio`
    ====== ===== ====================================================================================

    One row, and those of the product (:func:`~ceopt.formulations.constraints.products.product_of`): MILP where all
    factors but one have steps and bounds, or levels, else a nonconvex program with bilinear rows, which SCIP and Gurobi
    solve. Exact: an answer meets the formula within half a step, without steps within 1e-9 of its size. A move of y is
    charged and counted like any other.

    Parameters
    ----------
    column
        The column that follows.
    factors
        The columns that it follows from, two or more; one that is there twice is squared.
    name
        Name in exports and reports.

    Raises
    ------
    UnknownNameError
        A column that does not exist.
    InvalidTypeError
        A name that is no text, no list of factors, or a categorical column.
    InvalidValueError
        Fewer than two factors, or the column itself among them; a column that may be missing or on a code for the
        person (when built).
    UnboundedFeatureError
        A factor has steps, and another one no bounds (when built).
    UnsupportedProblemError
        Two factors are without steps or bounds, and the solver takes no products (when solved).

    References
    ----------
    Sums over disjoint values: Balas (1979), Disjunctive programming; products with binary digits: McCormick (1976).

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import Product
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("cost", kind="integer", lower=0, upper=90),
    ...                       Feature("price", kind="continuous", lower=1.0, upper=30.0),
    ...                       Feature("extra", kind="binary", levels=(False, True))])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"cost": 0, "price": 20.0, "extra": False})
    >>> m.cost = impose(Product("cost", ["price", "extra"]), m.x)
    >>> for row in m.cost.component_data_objects(pyo.Constraint):
    ...     print(row.local_name, "|", row.expr)
    part[extra,'0',least] | 0.0  <=  -1.0 + cost.parts[extra,'0'] + x.level[extra,True]
    part[extra,'0',most] | -30.0 + cost.parts[extra,'0'] + 30.0*x.level[extra,True]  <=  0.0
    part[extra,'1',least] | 0.0  <=  cost.parts[extra,'1'] - x.level[extra,True]
    part[extra,'1',most] | cost.parts[extra,'1'] - 30.0*x.level[extra,True]  <=  0.0
    whole[extra] | cost.parts[extra,'0'] + cost.parts[extra,'1'] - x.x[price]  ==  0.0
    row[equals] | -0.5  <=  x.x[cost] - cost.parts[extra,'1']  <=  0.5
    """

    column: str
    factors: Any
    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(
        title="a column that is the product of others",
        formula="|y - prod_k x_k - r| <= h; p x_k = sum_v v p_v, sum_v p_v = p, p_v = 0 unless x_k = v",
        reference="Balas 1979; McCormick 1976",
        rule="Product",
    )

    def __post_init__(self) -> None:
        factors = check_fields(self, _PRODUCT)["factors"]
        if len(factors) < 2:
            raise InvalidValueError("Product", "two factors or more", f"factors is {factors!r}", "Name some more.")
        if self.column in factors:
            but = f"{self.column!r} is one of its own factors"
            raise InvalidValueError("Product", "factors that are other columns", but, "Leave it out.")
        object.__setattr__(self, "factors", tuple(factors))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The factors."""
        return tuple(self.factors)

    def computed(self, values: Mapping[str, Any]) -> Any:
        """Return the product."""
        product = values[self.factors[0]]
        for name in self.factors[1:]:
            product = product * values[name]
        return product

    def solved(self, name: str, goal: float, point: Point) -> float:
        """Return the factor that gives ``goal``, if it is there once."""
        others = math.prod(point[other] for other in self.factors if other != name)
        if self.factors.count(name) > 1 or others == 0.0:
            return math.nan
        return goal / others

    def build(self, block: Any, x: Factual) -> None:
        """Add the row ``row``, and those of the product."""
        product = product_of(block, x, "Product", self.factors)
        scale = _scale(x, self.column)
        form = (x.coordinate(self.column).raw() + product.form.scaled(-1.0)).scaled(1.0 / scale)
        residual = self.residual(x.space, x.point)
        half = half_step(x.space[self.column])
        Rows(block, "row").add("equals", form, lower=(residual - half) / scale, upper=(residual + half) / scale)
        x.also_settle(_Settled(self, x))

    def sentence(self) -> str:
        """Return the rule in words."""
        return f"{self.column} == {' * '.join(self.factors)}"


_RATIO = {"column": Text(_NO_NAME), "numerator": Text(_NO_NAME), "denominator": Text(_NO_NAME), "name": RULE_NAME}
_PRODUCT = {"column": Text(_NO_NAME), "factors": ValueList(Text(_NO_FACTOR)), "name": RULE_NAME}


def _limits(feature: Feature) -> tuple[float, float]:
    """Return the least and the greatest coordinate of a column."""
    if feature.is_finite:
        low, high = feature.coordinate_limits
        return float(low), float(high)
    return feature.lower, feature.upper


def _part_ends(part: Interval | Levels) -> tuple[float, float]:
    """Return the least and the greatest value of a column's reach."""
    if isinstance(part, Levels):
        return float(part.ranks[0]), float(part.ranks[-1])
    return part.lower, part.upper
