r"""A program in other units: what is handed over where a solver's absolute tolerances would hide its numbers.

.. math:: x = b + D x', \qquad r_i^- - r_i A_i b \le r_i A_i D\, x' \le r_i^+ - r_i A_i b

with a diagonal D and row factors r of powers of two, so that nothing is rounded but the sums :math:`A_i b`. An integer
column keeps its unit, unless it is *relaxed*: counted in the width of its bounds, it is a continuous column.

HiGHS 1.15.1 drops coefficients below 1e-9 and takes a row for kept that is missed by 1e-6; SCIP 10 and Gurobi 13 have
tolerances of the same size. In the units of a column of 1e9 whole numbers beside one of 1, that is the whole column.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.compile.compiled_model import CompiledModel, greatest_by_row, rows_of_entries
from ceopt.solvers.problem import Vector
from ceopt.solvers.tolerances import (
    HIDDEN_STEP,
    NO_COEFFICIENT,
    ORDINARY_COEFFICIENTS,
    ORDINARY_WIDTHS,
    SMALL_UNIT,
)

#: An integer column with more steps than this is one whose single step hardly matters.
_WIDE: Final = 2.0**23
#: The same beneath squares and cones: SCIP 10 was seen to prove an optimum that was 1e-4 too dear, from 5e6 steps on.
_WIDE_WITH_CURVES: Final = 2.0**20
#: One with more steps, or with values beyond, is counted in other units whatever the rows: HiGHS 1.15.1 fixes columns
#: by their reduced costs in numbers of 32 bits, and goes on for ever, its time limit unseen, where they overflow.
_VERY_WIDE: Final = 2.0**30
#: Costs beyond are brought down to the size of the rows.
_COSTS: Final = 2.0**30
#: A column without bounds keeps its unit where rows suggest one that is larger or smaller by no more.
_NEAR: Final = 2.0**7
#: Share of a column's values below which the width of its bounds is a trace of them.
_TRACE: Final = 2.0**-8
#: Columns whose values are larger are counted from a value of their own.
_FAR: Final = 1e5
#: What the greatest coefficient of a row in other units is brought to: a tolerance of 1e-6 is then 1e-9 of the widths.
_GREATEST: Final = 2.0**10
#: Where the coefficients of one row span more, an integer may be off by a tolerance and move the row by what counts.
_SPANNED: Final = 1e10
#: Rounds in which columns without bounds take their unit from rows of columns that have one.
_ROUNDS: Final = 4


@final
@dataclass(frozen=True, slots=True)
class Rescaled:
    """A program in other units, and how to change between them and its own.

    Parameters
    ----------
    program
        What a solver is handed.
    own
        The program itself.
    base, unit
        b and the diagonal of D, (n,) each.
    cost_scale
        Factor of the objective.
    """

    program: CompiledModel
    own: CompiledModel
    base: Vector
    unit: Vector
    cost_scale: float

    def to_own(self, x: Vector) -> Vector:
        """Return a point in the program's own units; whole columns are whole."""
        point = self.base + self.unit * x
        return np.where(self.own.integer & self.program.integer, np.round(point), point)

    def from_own(self, values: Mapping[int, float]) -> dict[int, float]:
        """Return a start, column -> value, in these units."""
        return {k: (value - float(self.base[k])) / float(self.unit[k]) for k, value in values.items()}


def wide_columns(compiled: CompiledModel) -> NDArray[np.bool_]:
    """Return the integer columns of whose width one step is a negligible share, and that some row hardly sees, (n,)."""
    width = compiled.ub - compiled.lb
    is_curved = compiled.Q is not None or bool(compiled.quadratics) or bool(compiled.cones)
    wide = compiled.integer & (width > (_WIDE_WITH_CURVES if is_curved else _WIDE))
    if not wide.any() or not compiled.A.nnz:
        return np.zeros(len(width), dtype=bool)
    A = compiled.A
    size = np.abs(compiled.A.data)
    row = rows_of_entries(A)
    hidden = np.zeros(len(width), dtype=bool)
    hidden[A.indices[(size < HIDDEN_STEP * greatest_by_row(size, row, A.shape[0])[row]) & (size > 0.0)]] = True
    return np.asarray(wide & (hidden | (np.isfinite(width) & (width > _VERY_WIDE))))


def is_extreme(compiled: CompiledModel) -> bool:
    """Whether numbers of a program are of a size that tolerances do not suit; programs with data are left alone."""
    if compiled.data.size or not compiled.columns:
        return False
    if wide_columns(compiled).any() or _is_far_off(compiled):
        return True
    size = np.abs(compiled.A.data[compiled.A.data != 0.0])
    moves = ~compiled.integer & (compiled.lb < compiled.ub)
    width = (compiled.ub - compiled.lb)[moves]
    width = width[np.isfinite(width)]
    small, large = (size.min(), size.max()) if size.size else (1.0, 1.0)
    if small < ORDINARY_COEFFICIENTS[0] or large > ORDINARY_COEFFICIENTS[1]:
        return True
    if large > _SPANNED * small and span_of(compiled) > _SPANNED:
        return True
    if (width < ORDINARY_WIDTHS[0]).any() or (width > ORDINARY_WIDTHS[1]).any():
        return True
    if small >= SMALL_UNIT:
        return False
    if _has_faint_rows(compiled):
        return True
    # The greatest of some lengths of 1e-7 each, and whatever else takes its size from rows alone.
    return bool((_units(compiled, compiled.lb, compiled.ub, compiled.integer) < SMALL_UNIT).any())


def is_far_from_zero(compiled: CompiledModel) -> bool:
    """Whether a column takes only large values, and can move by a trace of them; not in programs with data."""
    if compiled.data.size:
        return False
    width = compiled.ub - compiled.lb
    size = np.maximum(np.abs(compiled.lb), np.abs(compiled.ub))
    moves = (width > 0.0) & np.isfinite(size)
    return bool((moves & (size > ORDINARY_WIDTHS[1]) & (width < _TRACE * size)).any())


def _is_far_off(compiled: CompiledModel) -> bool:
    """Whether an integer column that moves has a bound beyond 32 bits, in which HiGHS counts."""
    moves = compiled.integer & (compiled.lb < compiled.ub)
    ends = np.abs(np.concatenate([compiled.lb[moves], compiled.ub[moves]]))
    return bool((ends[np.isfinite(ends)] > _VERY_WIDE).any())


def _has_faint_rows(compiled: CompiledModel) -> bool:
    """Whether a row with an integer column of many steps has only small coefficients: it is missed by many steps."""
    many = compiled.integer & (compiled.ub - compiled.lb > _WIDE)
    if not many.any():
        return False
    A = compiled.A
    size = np.abs(compiled.A.data)
    row = rows_of_entries(A)
    return bool((many[A.indices] & (size > 0.0) & (greatest_by_row(size, row, A.shape[0])[row] < SMALL_UNIT)).any())


def span_of(compiled: CompiledModel) -> float:
    """Return the greatest ratio of two coefficients of one row, of columns that can move."""
    moves = compiled.lb < compiled.ub
    A = sp.csr_array(compiled.A)
    used = (A.data != 0.0) & moves[A.indices]
    if not used.any():
        return 1.0
    row = rows_of_entries(A)[used]
    size = np.abs(A.data[used])
    least = np.full(A.shape[0], math.inf)
    np.minimum.at(least, row, size)
    return float((greatest_by_row(size, row, A.shape[0]) / least).max())


def rescaled(
    compiled: CompiledModel,
    relaxed: NDArray[np.bool_],
    at: Vector,
    *,
    around: float = math.inf,
) -> Rescaled:
    """Return the program in units that its bounds and rows suggest.

    Parameters
    ----------
    compiled
        The program; it is not changed.
    relaxed
        Integer columns that become continuous, (n,).
    at
        A point near which values are expected, (n,): what columns of large values are counted from.
    around
        How far the other wide integer columns may move from there, in steps.
    """
    program = copy.copy(compiled)
    low = compiled.lb.copy()
    high = compiled.ub.copy()
    wide = wide_columns(compiled) & ~relaxed
    low[wide] = np.maximum(low[wide], np.round(at[wide]) - around)
    high[wide] = np.minimum(high[wide], np.round(at[wide]) + around)
    whole = compiled.integer & ~relaxed
    base = _base(compiled, np.clip(at, low, high))
    unit = _units(compiled, low, high, whole)
    scale = sp.diags_array(unit, format="csr")
    program.integer = whole
    program.sets = []  # their rows are rescaled; whether the members keep them is asked of the program itself
    program.lb = (low - base) / unit
    program.ub = (high - base) / unit
    A, left_out = _without_rounding(sp.csr_array(compiled.A @ scale), program)
    factor = _row_factors(A, ~whole | wide)
    shift = compiled.A @ base + left_out
    program.A = sp.csr_array(sp.diags_array(factor, format="csr") @ A)
    program.A.sort_indices()
    program.row_lb = (compiled.row_lb - shift) * factor
    program.row_ub = (compiled.row_ub - shift) * factor
    program.quadratics = [
        replace(row, a=sp.csr_array(row.a @ scale), Q=sp.csc_array(scale @ row.Q @ scale))
        for row in compiled.quadratics
    ]
    program.cones = [
        replace(cone, constant=cone.entries(base), matrix=sp.csr_array(cone.matrix @ scale)) for cone in compiled.cones
    ]
    cost = compiled.c * unit
    squares = None
    if compiled.Q is not None:
        squares = sp.csc_array(scale @ compiled.Q @ scale)
    greatest = float(np.abs(cost if squares is None else np.concatenate([cost, squares.data])).max(initial=0.0))
    cost_scale = 1.0 if greatest <= _COSTS else float(_GREATEST / _power_of_two(np.array(greatest)))
    program.c = cost_scale * cost
    program.c0 = cost_scale * compiled.evaluate(base)
    program.Q = None if squares is None else sp.csc_array(cost_scale * squares)
    return Rescaled(program, compiled, base, unit, cost_scale)


def _base(compiled: CompiledModel, inside: Vector) -> Vector:
    """Return the origin of each column, (n,): 0 unless its values are large; squared columns keep 0."""
    base = np.where(np.abs(inside) > _FAR, np.where(compiled.integer, np.round(inside), inside), 0.0)
    return np.where(_is_curved(compiled), 0.0, base)


def _is_curved(compiled: CompiledModel) -> NDArray[np.bool_]:
    """Return the columns of squares, of quadratic rows and of cones, (n,)."""
    curved = np.zeros(len(compiled.columns), dtype=bool)
    squares = []
    if compiled.Q is not None:
        squares = [compiled.Q]
    for hessian in [*squares, *(row.Q for row in compiled.quadratics)]:
        for at in sp.coo_array(hessian).coords:
            curved[at] = True
    for row in compiled.quadratics:
        curved[row.a.indices] = True
    for cone in compiled.cones:
        curved[cone.matrix.indices] = True
    return curved


def _without_rounding(A: sp.csr_array, program: CompiledModel) -> tuple[sp.csr_array, Vector]:
    """Return the rows without coefficients that move a row by no more than the rounding of its sum, and their terms.

    The terms, one for each row, are those at the lower bounds: a fixed column moves no row, and counts in each.
    """
    size = np.abs(A.data)
    width = program.ub - program.lb
    row = rows_of_entries(A)
    dropped = size * width[A.indices] < NO_COEFFICIENT * greatest_by_row(size, row, A.shape[0])[row]
    terms = np.zeros(A.shape[0])
    np.add.at(terms, row[dropped], A.data[dropped] * program.lb[A.indices[dropped]])
    A.data[dropped] = 0.0
    A.eliminate_zeros()
    return A, terms


def _units(compiled: CompiledModel, low: Vector, high: Vector, whole: NDArray[np.bool_]) -> Vector:
    """Return the unit of each column: its width where that is extreme, else what the rows' other columns suggest."""
    n = len(low)
    unit = np.ones(n)
    width = high - low
    free = ~whole & (low < high)
    bounded = free & np.isfinite(width)
    out = bounded & ((width > ORDINARY_WIDTHS[1]) | (width < ORDINARY_WIDTHS[0]) | (compiled.integer & ~whole))
    unit[out] = _power_of_two(width[out])
    known = ~free | bounded | _is_curved(compiled)  # what is squared comes in the unit of the cost
    A = compiled.A
    size = np.abs(A.data)
    row = rows_of_entries(A)
    fixed = low >= high
    for _ in range(_ROUNDS):
        if known.all():
            break
        used = known[A.indices] & ~fixed[A.indices] & (size > 0.0)
        greatest = np.zeros(A.shape[0])
        np.maximum.at(greatest, row[used], size[used] * unit[A.indices[used]])
        asks = ~known[A.indices] & (size > 0.0) & (greatest[row] > 0.0)
        at = A.indices[asks]
        ratio = greatest[row[asks]] / size[asks]
        least = np.full(n, math.inf)
        most = np.zeros(n)
        np.minimum.at(least, at, ratio)
        np.maximum.at(most, at, ratio)
        is_asked = most > 0.0
        wanted = np.sqrt(least[is_asked]) * np.sqrt(most[is_asked])
        is_far = (wanted > _NEAR) | (wanted < 1.0 / _NEAR)
        unit[is_asked] = np.where(is_far, _power_of_two(wanted), 1.0)
        known = known | is_asked
        if not is_asked.any():
            break
    return unit


def _row_factors(A: sp.csr_array, counted: NDArray[np.bool_]) -> Vector:
    """Return the power of two by which each row is multiplied.

    Where it has integers of ordinary width alone, it is 1, or brings the greatest coefficient there if it is extreme.
    """
    row = rows_of_entries(A)
    size = np.abs(A.data)
    greatest = greatest_by_row(size, row, A.shape[0])
    touched = np.zeros(A.shape[0], dtype=bool)
    touched[row[counted[A.indices] & (size > 0.0)]] = True
    one = 1.0 / _power_of_two(greatest)
    is_odd = (greatest < SMALL_UNIT) | (greatest > ORDINARY_COEFFICIENTS[1])
    return np.where(touched, _GREATEST * one, np.where(is_odd, one, 1.0))


def _power_of_two(value: Vector) -> Vector:
    return np.asarray(np.exp2(np.round(np.log2(value))))
