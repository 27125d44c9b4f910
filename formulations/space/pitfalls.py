"""What is easily overlooked in a frame that a space was inferred from, with the line to write about each.

The name of a column may hint at something protected, something that only grows, an identifier or a code. Names are
read word by word (``years_employed``, ``yearsEmployed`` and ``Years employed`` are two words each), so that
``racetrack`` and ``page`` hint at nothing. The words are English, with the German ones that mean nothing else.

Columns may say something together: exactly one of them is 1, they sum to a constant, or one says the same as another. A
program takes each column for one that moves by itself; what is found here is in the data and nowhere in the space.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.digits import digits
from ceopt.formulations.space.dtypes import are_gaps
from ceopt.formulations.space.infer import codes_listed, hold_codes
from ceopt.formulations.tolerances import CORRELATED, SUM_ROUNDING
from ceopt.solvers.checks import Floats, plain

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

# ==== What the name of a column hints at: something protected, something that only grows, an identifier, a code =======

_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN: Final = re.compile(r"[\W\d_]+")

_PROTECTED: Final = frozenset(
    "sex gender race races racial ethnicity ethnic religion religious nationality citizenship citizen disability "
    "disabilities disabled handicap handicapped marital married pregnant pregnancy sexual caste veteran immigrant "
    "birth birthdate birthday birthplace dob "
    "geschlecht ethnie nationalität staatsangehörigkeit behinderung familienstand geburtsdatum".split()
)
_PROTECTED_TOGETHER: Final = (
    {"native", "country"},
    {"native", "language"},
    {"national", "origin"},
    {"foreign", "worker"},
    {"skin", "color"},
    {"skin", "colour"},
    {"civil", "status"},
)

_GROWING: Final = frozenset("age tenure seniority betriebszugehörigkeit lebensalter".split())
_LASTING: Final = frozenset("year years yrs month months time length duration".split())
_HELD: Final = frozenset(
    "employed employment experience service job work worked residence address customer client member membership "
    "company employer".split()
)

_IDENTIFIERS: Final = frozenset("id ids uuid guid identifier ssn iban passport unnamed".split())
_NUMBERS: Final = frozenset("number no nr num".split())
_NUMBERED: Final = (
    "customer client user person member record account loan case row applicant application order patient student "
    "employee transaction contract policy"
).split()
_JOINED: Final = re.compile(f"(?:{'|'.join(_NUMBERED)})id")

_AREAS: Final = frozenset("zip zipcode postcode postal plz postleitzahl".split())
_CODES: Final = frozenset(
    "code codes id type category region district status country state city branch occupation industry sector "
    "department".split()
)


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case.

    Examples
    --------
    >>> words_of("raceEthnicity"), words_of("customer ID"), words_of("homesexpense")
    (('race', 'ethnicity'), ('customer', 'id'), ('homesexpense',))
    """
    parted = _BOUNDARY.sub(" ", name).lower()
    return tuple(filter(None, _BETWEEN.split(parted)))


def is_protected(words: Collection[str]) -> bool:
    """Tell whether words name something by which people must not be told apart, and which no advice should touch."""
    return _has(words, _PROTECTED) or any(together <= set(words) for together in _PROTECTED_TOGETHER)


def counts_years(words: Collection[str]) -> bool:
    """Tell whether words name something that time alone moves, upwards: an age, or how long something has lasted."""
    has_lasted = _has(words, _LASTING) and _has(words, _HELD)
    return has_lasted or _has(words, _GROWING) or list(words) == ["experience"]


def is_identifier(words: Collection[str]) -> bool:
    """Tell whether words name something that tells rows apart and says nothing of them."""
    is_numbered = _has(words, _NUMBERS) and _has(words, frozenset(_NUMBERED))
    return is_numbered or _has(words, _IDENTIFIERS) or any(map(_JOINED.fullmatch, words))


def is_code(words: Collection[str], *, few: bool) -> bool:
    """Tell whether words name something whose numbers stand for something else; some do so only where they are few."""
    return _has(words, _AREAS) or any(word.endswith("code") for word in words) or (few and _has(words, _CODES))


def _has(words: Collection[str], known: AbstractSet[str]) -> bool:
    return not known.isdisjoint(words)


# ==== Columns that say something together =============================================================================


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
    flags = [feature.name for feature in filter(_holds_flags, features)]
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
    units = np.array(list(map(_unit, numbers)))
    middle = some.mean(axis=0)
    spread = some.std(axis=0)
    relations: list[ConstantSum] = []
    independent: list[int] = []
    basis = np.empty((len(some), 0))
    for j in np.flatnonzero(spread > 0.0).tolist():
        column = (some[:, j] - middle[j]) / spread[j]
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        left = float(np.sqrt(np.mean(rest**2)))
        one = None
        if independent and left < _UNEXPLAINED:
            one = _sum_of(_Numbers(table, some, names, units, spread), independent, j)
        if one is not None:
            relations.append(one)
        elif left > SUM_ROUNDING**0.5:
            independent.append(j)
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return relations


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


def _sum_of(numbers: _Numbers, independent: Sequence[int], j: int) -> ConstantSum | None:
    """Return the sum that a column makes with those before it, if it is one."""
    table, some, names = numbers.table, numbers.some, numbers.names
    before = some[:, list(independent)]
    coefficients = np.linalg.lstsq(before - before.mean(axis=0), some[:, j] - some[:, j].mean(), rcond=None)[0]
    whole = np.rint(coefficients)
    if (np.abs(coefficients - whole) > _OFF).any() or not np.isin(whole, (-1.0, 0.0, 1.0)).all() or not whole.any():
        return None
    signs = {independent[place]: -int(sign) for place, sign in enumerate(whole.tolist()) if sign} | {j: 1}
    places = sorted(signs)
    are_flags = bool(np.isin(some[:, places], (0.0, 1.0)).all())
    rows = table[:, places]
    rows = rows[~np.isnan(rows).any(axis=1)]
    total = rows @ np.array(list(map(signs.__getitem__, places)), dtype=np.float64)
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


# ==== The pitfalls, each with its sentence ============================================================================

Counts = NDArray[np.intp]

#: Whole numbers that were drawn from their range would repeat so often by chance; those of an identifier never do.
_REPEATS: Final = 10.0
#: So many rows that hold one value hold it not by chance.
_SAME: Final = 3
#: Texts that differ in so many rows are no levels.
_MANY_ROWS: Final = 20
#: Share of rows that a column named as an identifier tells apart at least.
_MOSTLY: Final = 0.5
#: Numbers that are named as codes are few up to here.
_FEW: Final = 50
#: Of the distinct texts of a column, those that are no numbers, where the others are.
_STRAY: Final = 0.1
#: So many columns of a group are named in a sentence, and in a line that can say them otherwise.
_SHOWN: Final = 6

#: So many values of a column may stand for something else; the others are at least so many.
_MOST_CODES: Final = 3
_AMOUNTS: Final = 3
#: A value that stands for something else lies so many times further from the amounts than these from each other.
_APART: Final = 3.0
#: So many of the amounts nearest to it are looked at.
_NEAREST: Final = 10
#: A value that occurs so many times as often as the amounts nearest to it is no end of theirs.
_SPIKE: Final = 3.0
#: Share of the range of the amounts by which a 0 that stands for something else lies apart from them.
_BESIDE_ZERO: Final = 0.2

#: Levels that say, in any case, that nothing is known.
_UNKNOWN: Final = frozenset({"?", "unknown", "n/a", "nan"})
_NO_CODES: Final[Mapping[str, Any]] = {}

_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
_THOUSANDS: Final = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*")
_COMMA: Final = re.compile(r"\s*[+-]?\d+,\d+\s*")
_CODE_OF_DIGITS: Final = re.compile(r"\s*0\d+\s*")


@final
@dataclass(frozen=True, slots=True)
class Pitfall:
    """One column, or several together, that may be meant otherwise than they are described.

    Parameters
    ----------
    column, kind
        Which column, and what it looks like; of several the first.
    found
        What was seen and what follows from it, as the end of a sentence about the column or columns.
    line
        What to write in Python, as a sentence.
    others
        The other columns that it is about.
    """

    column: str
    kind: Literal[
        "protected", "grows", "identifier", "text", "code", "constant", "codes", "unknown", "absent", "one_hot", "sum",
        "same",
    ]  # fmt: skip
    found: str
    line: str
    others: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that it is about."""
        return (self.column, *self.others)

    @property
    def seen(self) -> str:
        """What was seen, as a sentence without its end."""
        if not self.others:
            return f"Column {self.column!r} {self.found}"
        names = list(map(repr, self.names))
        if len(names) > _SHOWN + 1:
            names = [*names[:_SHOWN], f"{len(names) - _SHOWN} more"]
        return f"Columns {', '.join(names[:-1])} and {names[-1]} {self.found}"

    @property
    def sentence(self) -> str:
        """What was seen and what to do."""
        return f"{self.seen}. {self.line}"


def pitfalls(
    frame: pd.DataFrame,
    features: Sequence[Feature],
    *,
    settled: Collection[str] = (),
    codes: Mapping[str, Any] = _NO_CODES,
) -> list[Pitfall]:
    """Return what is easily overlooked in the columns of a frame, in their order.

    A kind that was named is decided, and so is how a ``settled`` column may move; what may not move cannot go wrong.
    Named ``codes``, by column, are looked for in the frame, and what a column holds beside them is looked at.
    """
    found = [pitfall for name, listed in codes.items() for pitfall in _of_absent(name, frame[name], listed)]
    aside: set[str] = set()
    protected: list[str] = []
    for feature in features:
        if not feature.mutable:
            protected.append(feature.name)
            continue
        words = words_of(feature.name)
        is_named = feature.guess.startswith("named ")
        is_settled = feature.name in settled
        of_values = None
        if not is_named:
            of_values = next(_of_values(feature, _amounts_of(frame[feature.name], feature.codes), words), None)
        if of_values is not None and of_values.kind == "constant":
            aside.add(feature.name)
            if not is_settled:
                found.append(of_values)
            continue
        if of_values is not None:
            found.append(of_values)
            if of_values.kind == "identifier":
                aside.add(feature.name)
        elif not is_named:
            found += _of_no_amounts(feature, frame[feature.name])
        if not is_settled:
            of_name = list(_of_name(feature, words))
            found += of_name
            if of_name and of_name[0].kind == "protected":
                protected.append(feature.name)
    asked = [feature for feature in features if not feature.guess.startswith("named ")]
    mutable = {feature.name for feature in features if feature.mutable}
    found += _of_flags(frame, asked, mutable)
    flags = {name for one in found if one.kind == "one_hot" for name in one.names}
    found += _of_sums(frame, asked, mutable, flags)
    found += _of_the_same(frame, features, protected, {*aside, *settled})
    return found


def _of_name(feature: Feature, words: Collection[str]) -> Iterator[Pitfall]:
    """Yield what a name says of how its column may move."""
    name = feature.name
    if is_protected(words):
        line = f"Write space = space.fix({name!r}), or moves={{{name!r}: 'fixed'}} in infer ('any' leaves it free)."
        yield Pitfall(name, "protected", "looks protected, and answers may change it", line)
    elif counts_years(words) and feature.kind == "categorical":
        line = f"Write space = space.fix({name!r}), or moves={{{name!r}: 'fixed'}} in infer ('any' leaves it free)."
        yield Pitfall(name, "grows", "looks like one that time alone moves, and answers may change it", line)
    elif counts_years(words) and feature.direction != "increasing":
        line = (
            f"Write space = space.update({name!r}, direction='up'), or moves={{{name!r}: 'up'}} in infer "
            "('any' leaves it free)."
        )
        yield Pitfall(name, "grows", "looks like one that only grows with time, and answers may lower it", line)


def _of_values(feature: Feature, column: pd.Series[Any], words: Collection[str]) -> Iterator[Pitfall]:
    """Yield what the values of a column look like, the gravest first."""
    name = feature.name
    present = column.dropna()
    distinct = pd.unique(present)
    drop = f"Write frame = frame.drop(columns={name!r}) before infer"
    if len(distinct) == 1 and len(present) >= _SAME:
        line = f"{drop}, or moves={{{name!r}: 'fixed'}} in it."
        yield Pitfall(name, "constant", f"holds one value, {plain(distinct[0])!r}, and tells nobody apart", line)
    identifier = Pitfall(
        name,
        "identifier",
        f"looks like an identifier ({len(distinct):,} values in {len(present):,} rows)",
        f"{drop}, or {feature.kind}=[{name!r}] in it if it means something.",
    )
    if is_identifier(words) and len(present) > 1 and len(distinct) > _MOSTLY * len(present):
        yield identifier
    if feature.kind == "categorical" and not isinstance(column.dtype, pd.CategoricalDtype):
        yield from _numbers_as_levels(feature, column, words)
    if len(distinct) == len(present) and _would_repeat(feature, column.dtype, len(present)):
        yield identifier
    if not feature.is_finite and _stands_for_something(distinct, words):
        found = "looks like a code, and the space takes it for a number, which answers may raise by one"
        line = f"Write categorical=[{name!r}] in infer, or {feature.kind}=[{name!r}] if it counts something."
        yield Pitfall(name, "code", found, line)


def _would_repeat(feature: Feature, dtype: Any, n_rows: int) -> bool:
    """Tell whether values of so many rows, no two of them the same, would repeat if they meant anything."""
    if feature.kind == "categorical":
        return n_rows >= _MANY_ROWS and not isinstance(dtype, pd.CategoricalDtype)
    if feature.kind != "integer":
        return False
    n_values = feature.upper - feature.lower + 1.0
    return n_rows * (n_rows - 1) / (2.0 * n_values) >= _REPEATS


def _stands_for_something(distinct: Any, words: Collection[str]) -> bool:
    """Tell whether numbers are those of a code: whole, of a name that says so, and more than 0 and 1."""
    numbers = np.asarray(distinct, dtype=np.float64)
    if (numbers != np.floor(numbers)).any() or set(numbers.tolist()) <= {0.0, 1.0}:
        return False
    return is_code(words, few=len(numbers) <= _FEW)


def _numbers_as_levels(feature: Feature, column: pd.Series[Any], words: Collection[str]) -> Iterator[Pitfall]:
    """Yield that a column of levels holds numbers: as text, or as objects."""
    name = feature.name
    cell = f"frame[{name!r}]"
    otherwise = f"before infer, or categorical=[{name!r}] in it if they are levels"
    found = "holds numbers as text, and the space takes each for a level"
    if all(not isinstance(level, str) for level in feature.levels):
        found = f"holds numbers in a column of dtype {column.dtype}, and the space takes each for a level"
        yield Pitfall(name, "text", found, f"Write {cell} = pandas.to_numeric({cell}) {otherwise}.")
        return
    texts = [str(level) for level in feature.levels]
    if is_code(words, few=False) or any(_CODE_OF_DIGITS.fullmatch(text) for text in texts):
        return
    for pattern, change in ((_NUMBER, ""), (_THOUSANDS, ".str.replace(',', '')"), (_COMMA, ".str.replace(',', '.')")):
        stray = [text for text in texts if not pattern.fullmatch(text) and not _NUMBER.fullmatch(text)]
        if not stray:
            yield Pitfall(name, "text", found, f"Write {cell} = pandas.to_numeric({cell}{change}) {otherwise}.")
            return
    stray = [text for text in texts if not _NUMBER.fullmatch(text)]
    if len(stray) <= _STRAY * len(texts):
        found = f"holds numbers as text beside {', '.join(map(repr, stray[:3]))}, and the space takes each for a level"
        line = f"Write {cell} = pandas.to_numeric({cell}, errors='coerce') {otherwise}."
        yield Pitfall(name, "text", found, line)


# ---- values that stand for something else ----------------------------------------------------------------------------
def _amounts_of(column: pd.Series[Any], codes: Sequence[Any]) -> pd.Series[Any]:
    """Return the cells of a column that are neither missing nor on a code."""
    present = column[~are_gaps(column)]
    return present[~hold_codes(present, codes)]


def _of_absent(name: str, column: pd.Series[Any], codes: Any) -> Iterator[Pitfall]:
    """Yield the codes of a column that no cell holds."""
    present = column[~are_gaps(column)]
    absent = [code for code in codes_listed(f"Column {name!r}", codes) if not hold_codes(present, [code]).any()]
    if absent:
        is_one = len(absent) == 1
        found = f"has no cell with {', '.join(map(repr, absent))}, named as {'a code' if is_one else 'codes'}"
        yield Pitfall(name, "absent", found, f"Correct codes, or leave {'it' if is_one else 'them'} out.")


def _of_no_amounts(feature: Feature, column: pd.Series[Any]) -> Iterator[Pitfall]:
    """Yield that some values of a column look like no amounts."""
    if feature.is_finite:
        return _of_unknown(feature)
    return _of_codes(feature, _amounts_of(column, feature.codes))


def _of_unknown(feature: Feature) -> Iterator[Pitfall]:
    """Yield that a level says that nothing is known, which answers may come from and go to."""
    name = feature.name
    for level in feature.levels:
        if isinstance(level, str) and level.strip().lower() in _UNKNOWN and level not in feature.codes:
            found = f"has the level {level!r}, which says that nothing is known, and answers may go there"
            cell = f"frame[{name!r}]"
            kind = f"{feature.kind}=[{name!r}]"
            if feature.kind == "ordinal":
                kind = f"ordinal={{{name!r}: {list(feature.levels)!r}}}"
            line = (
                f"Write codes={{{name!r}: [{level!r}]}} in infer, or {cell} = {cell}.mask({cell} == {level!r}) before "
                f"the model is fitted, or {kind} in infer if it is a level like others."
            )
            yield Pitfall(name, "unknown", found, line)


def _of_codes(feature: Feature, column: pd.Series[Any]) -> Iterator[Pitfall]:
    """Yield that some values of a column of numbers look like codes: no amounts, but words for what is not known."""
    name = feature.name
    values, counts = np.unique(column.to_numpy(dtype=np.float64), return_counts=True)
    low = _codes_below(values, counts)
    high = _codes_below(-values[low:][::-1], counts[low:][::-1], is_upper=True)
    if not low + high:
        return
    amounts = values[low : len(values) - high]
    codes = [*values[:low].tolist(), *values[len(values) - high :].tolist()]
    shown = ", ".join(map(digits, codes))
    is_one = len(codes) == 1
    found = (
        f"holds {shown} beside amounts from {digits(amounts[0])} to {digits(amounts[-1])}, which "
        f"{'looks like a code' if is_one else 'look like codes'} and no amount, and answers may go there"
    )
    step = "" if feature.spacing is not None else "step=..., "  # codes need one
    line = (
        f"Write space = space.update({name!r}, {step}codes=[{shown}], data=frame), or {feature.kind}=[{name!r}] in "
        f"infer if {'it counts something' if is_one else 'they count something'}."
    )
    yield Pitfall(name, "codes", found, line)


def _codes_below(values: Floats, counts: Counts, *, is_upper: bool = False) -> int:
    """Return how many of the least values look like codes; of the greatest, where all are given with the other sign.

    Either all of them are negative where no other is, or they are written with nines, or one is 0, far from the others.
    """
    longest = _MOST_CODES
    if not is_upper:
        longest = min(int((values < 0.0).sum()), _MOST_CODES + 1) or 1
    for count in range(min(longest, len(values) - _AMOUNTS), 0, -1):
        codes = values[:count]
        amounts = values[count:]
        gap = float(amounts[0] - codes[-1])
        if (codes != np.floor(codes)).any() or gap <= 0.0:
            continue
        if is_upper:
            looks = all(map(_has_nines, (-codes).tolist())) and bool((amounts < 0.0).any())
        else:
            looks = bool(codes[-1] < 0.0 <= amounts[0]) or (count == 1 and codes[0] == 0.0)
        if looks and _are_apart(codes, counts[:count], amounts, counts[count:], is_upper=is_upper):
            return count
    return 0


def _has_nines(number: float) -> bool:
    """Whether a number is written as codes are: 9, 96 to 99, 996 to 999 and so on."""
    if number == 9.0:
        return True
    digits_ = len(str(int(number)))
    return digits_ > 1 and number < 1e15 and 1.0 <= 10.0**digits_ - number <= 4.0


def _are_apart(codes: Floats, counts: Counts, amounts: Floats, beside: Counts, *, is_upper: bool) -> bool:
    """Whether values at one end of a column are too far from the others, and too frequent, to be their end."""
    gap = float(amounts[0] - codes[-1])
    usual = float(np.diff(amounts[:_NEAREST]).max())
    often = float(counts.max()) >= _SPIKE * float(beside[:_NEAREST].mean())
    width = float(amounts[-1] - amounts[0])
    if is_upper:
        is_far = gap >= width or (gap >= _APART * usual and often)
        return is_far and int(counts.max()) >= _SAME
    if codes[0] == 0.0:
        return gap >= _APART * usual and gap >= _BESIDE_ZERO * width and int(counts[0]) >= _SAME
    if all(_has_nines(-code) or -code in {7.0, 8.0} for code in codes.tolist()) and codes[0] <= -9.0:
        return gap >= _APART * usual or int(counts.max()) >= _SAME
    return int(counts.min()) >= _SAME and (often or gap >= _APART * usual)


# ---- columns together ------------------------------------------------------------------------------------------------
def _of_flags(frame: pd.DataFrame, asked: Sequence[Feature], mutable: AbstractSet[str]) -> Iterator[Pitfall]:
    """Yield the groups of 0/1 columns that are levels of one thing, and of which some may change."""
    for names in one_hot_groups(frame, asked):
        if mutable.isdisjoint(names):
            continue
        found = "are 0 or 1, and exactly one is 1 in every row; answers may make it none or two"
        line = f"Write constraints=[ExactlyOne({_listed(names, frame)})] in explain, of ceopt.ExactlyOne."
        yield Pitfall(names[0], "one_hot", found, line, tuple(names[1:]))


def _listed(names: Sequence[str], frame: pd.DataFrame) -> str:
    """Return a list of columns as Python has it, by the start of their names where they are many and it says them."""
    start = os.path.commonprefix(list(names))  # noqa: RUF071 - of texts, not of paths
    if len(names) > _SHOWN and [name for name in frame.columns if name.startswith(start)] == list(names):
        return f"[name for name in space.names if name.startswith({start!r})]"
    return repr(list(names))


def _of_sums(
    frame: pd.DataFrame, asked: Sequence[Feature], mutable: AbstractSet[str], flags: AbstractSet[str]
) -> Iterator[Pitfall]:
    """Yield the columns that always add up, of which some may change, but for those of ``flags``."""
    for one in sums(frame, asked):
        names = tuple(one.coefficients)
        if set(names).issubset(flags) or mutable.isdisjoint(names):
            continue
        terms = [f"{'' if sign > 0 else '-'}{name}" for name, sign in one.coefficients.items()]
        shown = " + ".join(terms).replace("+ -", "- ")
        if len(terms) > _SHOWN:
            shown = "their sum"
        found = f"always add up: {shown} = {digits(one.constant)}, but for rounding; answers may break it"
        if all(sign > 0 for sign in one.coefficients.values()) and _are_flags(frame, names):
            found = "are 0 or 1, and exactly one is 1 in every row; answers may make it none or two"
            line = f"Write constraints=[ExactlyOne({_listed(names, frame)})] in explain, of ceopt.ExactlyOne."
            yield Pitfall(names[0], "one_hot", found, line, names[1:])
            continue
        coefficients = repr(dict(one.coefficients))
        rule = f"Linear({coefficients}, '==', {digits(one.constant)}, beyond='no_further')"  # rows are off by rounding
        line = f"Write constraints=[{rule}] in explain, of ceopt.Linear."
        yield Pitfall(names[0], "sum", found, line, names[1:])


def _are_flags(frame: pd.DataFrame, names: Sequence[str]) -> bool:
    return bool(frame[list(names)].dropna().isin([0, 1]).to_numpy().all())


def _of_the_same(
    frame: pd.DataFrame, features: Sequence[Feature], protected: Collection[str], without: Collection[str]
) -> Iterator[Pitfall]:
    """Yield the columns that say the same as one that may not change, or should not."""
    fixed = {feature.name for feature in features if not feature.mutable}
    found: dict[str, list[str]] = {}
    for one in settling(frame, features, protected, without=without):
        is_fixed = "is fixed" if one.other in fixed else "looks protected"
        found.setdefault(one.column, []).append(f"{one.other!r}, which {is_fixed} ({one.says})")
    for name, parts in found.items():
        line = f"Write space = space.fix({name!r}), or moves={{{name!r}: 'fixed'}} in infer ('any' leaves it free)."
        yield Pitfall(name, "same", f"says the same as {' and as '.join(parts)}, and answers may contradict it", line)
