"""What is easily overlooked in a frame that a space was inferred from, with the line to write about each."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.digits import digits
from ceopt.formulations.space.column_groups import one_hot_groups, settling, sums
from ceopt.formulations.space.column_names import counts_years, is_code, is_identifier, is_protected, words_of
from ceopt.solvers.checks import plain

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["Pitfall", "pitfalls"]

Floats = NDArray[np.float64]
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
    kind: Literal["protected", "grows", "identifier", "text", "code", "constant", "codes", "one_hot", "sum", "same"]
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
        names = [repr(name) for name in self.names]
        if len(names) > _SHOWN + 1:
            names = [*names[:_SHOWN], f"{len(names) - _SHOWN} more"]
        return f"Columns {', '.join(names[:-1])} and {names[-1]} {self.found}"

    @property
    def sentence(self) -> str:
        """What was seen and what to do."""
        return f"{self.seen}. {self.line}"


def pitfalls(frame: pd.DataFrame, features: Sequence[Feature], *, settled: Collection[str] = ()) -> list[Pitfall]:
    """Return what is easily overlooked in the columns of a frame, in their order.

    A kind that was named is decided, and so is how a ``settled`` column may move; what may not move cannot go wrong.
    """
    found: list[Pitfall] = []
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
            of_values = next(_of_values(feature, frame[feature.name], words), None)
        if of_values is not None and of_values.kind == "constant":
            aside.add(feature.name)
            if not is_settled:
                found.append(of_values)
            continue
        if of_values is not None:
            found.append(of_values)
            if of_values.kind == "identifier":
                aside.add(feature.name)
        elif not is_named and not feature.is_finite:
            found += _of_codes(feature, frame[feature.name])
        if not is_settled:
            of_name = list(_of_name(feature, words))
            found += of_name
            if of_name and of_name[0].kind == "protected":
                protected.append(feature.name)
    found += _of_flags(frame, features)
    found += _of_sums(frame, features, {name for one in found if one.kind == "one_hot" for name in one.names})
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
def _of_codes(feature: Feature, column: pd.Series[Any]) -> Iterator[Pitfall]:
    """Yield that some values of a column of numbers look like codes: no amounts, but words for what is not known."""
    name = feature.name
    numbers = column.dropna().to_numpy(dtype=np.float64)
    values, counts = np.unique(numbers, return_counts=True)
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
    line = (
        f"Write space = space.update({name!r}, codes=[{shown}], data=frame), or {feature.kind}=[{name!r}] in infer if "
        f"{'it counts something' if is_one else 'they count something'}."
    )
    yield Pitfall(name, "codes", found, line)


def _codes_below(values: Floats, counts: Counts, *, is_upper: bool = False) -> int:
    """Return how many of the least values look like codes; of the greatest, where all are given with the other sign.

    Either all of them are negative where no other is, or they are written with nines, or one is 0, far from the others.
    """
    if is_upper:
        longest = _MOST_CODES
    else:
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
    near = amounts[:_NEAREST]
    usual = float(np.diff(near).max())
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
def _of_flags(frame: pd.DataFrame, features: Sequence[Feature]) -> Iterator[Pitfall]:
    """Yield the groups of 0/1 columns that are levels of one thing."""
    asked = [feature for feature in features if not feature.guess.startswith("named ")]
    mutable = {feature.name for feature in features if feature.mutable}
    for names in one_hot_groups(frame, asked):
        if not mutable.intersection(names):
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


def _of_sums(frame: pd.DataFrame, features: Sequence[Feature], flags: Collection[str]) -> Iterator[Pitfall]:
    """Yield the columns that always add up, but for groups of 0/1 columns that are told of already."""
    asked = [feature for feature in features if not feature.guess.startswith("named ")]
    mutable = {feature.name for feature in features if feature.mutable}
    for one in sums(frame, asked):
        names = tuple(one.coefficients)
        if set(names).issubset(flags) or not mutable.intersection(names):
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
