"""Columns that say something together: of which exactly one is 1, that sum to a constant, that say the same as another.

A program takes each column for one that moves by itself. What is found here is in the data and nowhere in the space.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.tolerances import CORRELATED, SUM_ROUNDING
from ceopt.solvers.checks import plain

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["ConstantSum", "SettledBy", "one_hot_groups", "settling", "sums"]

Floats = NDArray[np.float64]

#: Rows in which a relation is looked for, before it is held against all of them; fewer than the least prove nothing.
_SOME: Final = 2_000
_LEAST: Final = 10
#: Columns of numbers among which sums are looked for.
_MOST_COLUMNS: Final = 300
#: Share of its spread that other columns leave of one that they determine but for the rounding of each.
_UNEXPLAINED: Final = 0.1
#: Share of the spread of its least column that rounding may take of a sum.
_ROUNDING: Final = 0.1
#: How many times as much as rounding leaves a sum may vary.
_MORE: Final = 2.0
#: How far a coefficient may be from 1, -1 or 0.
_OFF: Final = 0.05
#: Levels, and pairs of levels, of columns that are compared.
_MOST_LEVELS: Final = 5_000
_MOST_PAIRS: Final = 500_000
#: One row in so many may be otherwise.
_EXCEPTION: Final = 1_000
#: Share of the rows whose level settles another column, from which on two say the same; and what chance makes of it.
_SETTLED: Final = 0.3
_BY_CHANCE: Final = 0.1

#: Where the first part of a name ends.
_SEPARATOR: Final = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")


# ---- one 1 in every row ----------------------------------------------------------------------------------------------
def one_hot_groups(frame: pd.DataFrame, features: Sequence[Feature]) -> list[list[str]]:
    """Return the groups of 0/1 columns with the first part of their names in common, exactly one of which is 1.

    Longer parts in common are tried first, and a column is in one group at most.
    """
    flags = [feature.name for feature in features if _holds_flags(feature)]
    by_start: dict[str, list[str]] = {}
    for name in flags:
        for start in _starts(name):
            by_start.setdefault(start, []).append(name)
    groups: list[list[str]] = []
    taken: set[str] = set()
    for start in sorted(by_start, key=len, reverse=True):
        names = [name for name in by_start[start] if name not in taken]
        if len(names) > 1 and _has_one_in_each(frame[names]):
            groups.append(names)
            taken.update(names)
    return sorted(groups, key=lambda names: flags.index(names[0]))


def _holds_flags(feature: Feature) -> bool:
    """Whether a column holds 0 and 1, or False and True, and both."""
    if feature.is_finite:
        return (
            len(feature.levels) == 2
            and not any(isinstance(level, str) for level in feature.levels)
            and set(feature.levels) == {0, 1}
        )
    return feature.lower == 0.0 and feature.upper == 1.0


def _starts(name: str) -> list[str]:
    """Return the beginnings of a name that end where one of its parts does."""
    return [name[: match.end()] for match in _SEPARATOR.finditer(name) if match.start() > 0 and match.end() < len(name)]


def _has_one_in_each(flags: pd.DataFrame) -> bool:
    values = flags.dropna().to_numpy(dtype=np.float64)
    if len(values) < _LEAST or not np.isin(values, (0.0, 1.0)).all():
        return False
    return bool((values.sum(axis=1) == 1.0).all())


# ---- sums that are a constant ----------------------------------------------------------------------------------------
@final
@dataclass(frozen=True, slots=True)
class ConstantSum:
    """Columns whose sum, some of them subtracted, is the same in every row but for rounding.

    Parameters
    ----------
    coefficients
        1 or -1 of each column, in the order of the frame.
    constant
        The sum.
    """

    coefficients: Mapping[str, int]
    constant: float


def sums(frame: pd.DataFrame, features: Sequence[Feature]) -> list[ConstantSum]:
    """Return the sums of columns of numbers, 0 and 1 among them, that are constant.

    Each column is told from those before it, as far as it goes, on some of the rows; what has coefficients of 1 and -1
    is then held against all rows. So a sum is found once, at its last column.
    """
    numbers = [feature for feature in features if not feature.is_finite or _holds_flags(feature)]
    if len(numbers) > _MOST_COLUMNS or len(numbers) < 2:
        return []
    names = [feature.name for feature in numbers]
    table = frame[names].to_numpy(dtype=np.float64, na_value=np.nan)
    some = _some_rows(table)
    if len(some) < max(_LEAST, 2 * len(names)):
        return []
    units = np.array([_unit(feature) for feature in numbers])
    middle = some.mean(axis=0)
    spread = some.std(axis=0)
    found: list[ConstantSum] = []
    told: list[int] = []
    basis = np.empty((len(some), 0))
    for j in np.flatnonzero(spread > 0.0).tolist():
        column = (some[:, j] - middle[j]) / spread[j]
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        left = float(np.sqrt(np.mean(rest**2)))
        one = None
        if told and left < _UNEXPLAINED:
            one = _sum_of(_Numbers(table, some, names, units, spread), told, j)
        if one is not None:
            found.append(one)
        elif left > SUM_ROUNDING**0.5:
            told.append(j)
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return found


def _some_rows(table: Floats) -> Floats:
    """Return some rows that lack nothing."""
    whole = np.flatnonzero(~np.isnan(table).any(axis=1))
    if len(whole) > _SOME:
        whole = np.sort(np.random.default_rng(0).choice(whole, _SOME, replace=False))
    return table[whole]


def _unit(feature: Feature) -> float:
    """Return the unit of the last decimal that a column's numbers are written with; 0 where they have no such."""
    if feature.kind == "continuous":
        return 0.0 if feature.decimals is None else 10.0**-feature.decimals
    return 1.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """Columns of numbers: all rows (n, k) and some, the names (k,), units of their last decimals, and spreads (k,)."""

    table: Floats
    some: Floats
    names: Sequence[str]
    units: Floats
    spread: Floats


def _sum_of(numbers: _Numbers, told: Sequence[int], j: int) -> ConstantSum | None:
    """Return the sum that a column makes with those before it, if it is one."""
    table, some, names = numbers.table, numbers.some, numbers.names
    before = some[:, list(told)]
    coefficients = np.linalg.lstsq(before - before.mean(axis=0), some[:, j] - some[:, j].mean(), rcond=None)[0]
    whole = np.rint(coefficients)
    if (np.abs(coefficients - whole) > _OFF).any() or not np.isin(whole, (-1.0, 0.0, 1.0)).all() or not whole.any():
        return None
    signs = {told[place]: -int(sign) for place, sign in enumerate(whole.tolist()) if sign} | {j: 1}
    places = sorted(signs)
    are_flags = bool(np.isin(some[:, places], (0.0, 1.0)).all())
    rows = table[:, places]
    rows = rows[~np.isnan(rows).any(axis=1)]
    total = rows @ np.array([signs[place] for place in places], dtype=np.float64)
    unit = float(numbers.units[places].max())
    noise = SUM_ROUNDING * float(np.abs(rows).sum(axis=1).max())
    usual = noise
    most = noise
    if not are_flags:
        usual += unit * math.sqrt(len(places) / 12.0)  # each number is off by up to half a unit, uniformly
        most += 0.5 * unit * len(places)
    constant = float(np.median(total))
    if usual > _ROUNDING * float(numbers.spread[places].min()) or float(total.std()) > _MORE * usual:
        return None
    if np.abs(total - constant).max() > most + 0.5 * unit:  # the middle is off as well
        return None
    if sum(signs.values()) < 0 or (sum(signs.values()) == 0 and signs[places[0]] < 0):
        signs = {place: -sign for place, sign in signs.items()}
        constant = -constant
    if unit:
        constant = round(constant / unit) * unit
    return ConstantSum({names[place]: signs[place] for place in places}, float(f"{constant:.12g}") + 0.0)


# ---- columns that say the same as another ----------------------------------------------------------------------------
@final
@dataclass(frozen=True, slots=True)
class SettledBy:
    """A column whose value settles that of another, or is settled by it, in a good part of the rows.

    Parameters
    ----------
    column, other
        Which.
    says
        In which rows, as the end of a sentence.
    """

    column: str
    other: str
    says: str


def settling(
    frame: pd.DataFrame, features: Sequence[Feature], others: Collection[str], *, without: Collection[str] = ()
) -> Iterator[SettledBy]:
    """Yield the columns that say the same as one of the others, in the order of the frame.

    A level settles another column if all rows with it, but for one in a thousand, have one value there, and chance
    would hardly do so. Two columns say the same if the levels that settle the other hold a good part of the rows;
    columns of numbers also if one is a multiple of the other.

    Parameters
    ----------
    frame, features
        The rows, and what the columns are.
    others
        Those that may not change.
    without
        Columns that are not looked at.
    """
    coded: dict[str, tuple[NDArray[np.intp], Any]] = {}
    for feature in features:
        if feature.name in others or feature.name not in without:
            codes, values = pd.factorize(frame[feature.name], use_na_sentinel=True)
            if 1 < len(values) <= _MOST_LEVELS or feature.name in others:
                coded[feature.name] = (codes, values)
    by_name = {feature.name: feature for feature in features}
    for feature in features:
        if feature.name in others or feature.name in without:
            continue
        for other in others:
            says = _says_the_same(coded, feature.name, other) or _is_multiple(frame, feature, by_name[other])
            if says:
                yield SettledBy(feature.name, other, says)


def _says_the_same(coded: Mapping[str, tuple[NDArray[np.intp], Any]], name: str, other: str) -> str:
    """Return in which rows one of two columns settles the other; empty where that is no good part of them."""
    if name not in coded or other not in coded:
        return ""
    codes, values = coded[name]
    other_codes, other_values = coded[other]
    if len(values) * len(other_values) > _MOST_PAIRS:
        return ""
    present = (codes >= 0) & (other_codes >= 0)
    pairs = codes[present] * len(other_values) + other_codes[present]
    counts = np.bincount(pairs, minlength=len(values) * len(other_values)).reshape(len(values), len(other_values))
    for table, levels, names, of, to in (
        (counts, values, other_values, name, other),
        (counts.T, other_values, values, other, name),
    ):
        level, count = _settling_level(table)
        if count:
            settled = int(table[level].argmax())
            of_rows = f"{int(table[level, settled]):,} of {int(table[level].sum()):,} rows"
            return f"{of!r} {plain(levels[level])!r} has {to!r} {plain(names[settled])!r} in {of_rows}"
    return ""


def _settling_level(table: NDArray[np.intp]) -> tuple[int, int]:
    """Return the level with the most rows of those that settle the other column, and its rows; 0 for none."""
    total = int(table.sum())
    rows = table.sum(axis=1)
    if not total:
        return 0, 0
    shares = table.sum(axis=0) / total
    settles = (rows - table.max(axis=1) <= rows // _EXCEPTION) & (rows > 1)
    counts = np.where(settles, rows, 0)
    by_chance = 0.0
    for count, repeats in zip(*np.unique(rows[rows > 1], return_counts=True), strict=True):
        by_chance += float(repeats * count * (shares ** float(count)).sum())
    if counts.sum() < _SETTLED * total or by_chance > _BY_CHANCE * counts.sum():
        return 0, 0
    level = int(counts.argmax())
    return level, int(counts[level])


def _is_multiple(frame: pd.DataFrame, feature: Feature, other: Feature) -> str:
    """Return that a column of numbers is a multiple of another and a constant, where it is."""
    if feature.is_finite or other.is_finite:
        return ""
    rows = frame[[feature.name, other.name]].to_numpy(dtype=np.float64, na_value=np.nan)
    rows = rows[~np.isnan(rows).any(axis=1)]
    if len(rows) < _LEAST or len(np.unique(rows[:_SOME, 0])) < _LEAST or (rows.std(axis=0) == 0.0).any():
        return ""
    if np.corrcoef(rows, rowvar=False)[0, 1] ** 2 < CORRELATED:
        return ""
    return f"it is a multiple of {other.name!r}, up to a constant and rounding"
