"""What is easily overlooked in a frame that a space was inferred from, with the line to write about each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np
import pandas as pd

from ceopt.formulations.space.column_names import counts_years, is_code, is_identifier, is_protected, words_of
from ceopt.solvers.checks import plain

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

__all__ = ["Pitfall", "pitfalls"]

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

_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
_THOUSANDS: Final = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*")
_COMMA: Final = re.compile(r"\s*[+-]?\d+,\d+\s*")
_CODE_OF_DIGITS: Final = re.compile(r"\s*0\d+\s*")


@final
@dataclass(frozen=True, slots=True)
class Pitfall:
    """One column that may be meant otherwise than it is described.

    Parameters
    ----------
    column, kind
        Which column, and what it looks like.
    found
        What was seen and what follows from it, as the end of a sentence about the column.
    line
        What to write in Python, as a sentence.
    """

    column: str
    kind: Literal["protected", "grows", "identifier", "text", "code", "constant"]
    found: str
    line: str

    @property
    def sentence(self) -> str:
        """What was seen and what to do."""
        return f"Column {self.column!r} {self.found}. {self.line}"


def pitfalls(frame: pd.DataFrame, features: Sequence[Feature], *, settled: Collection[str] = ()) -> list[Pitfall]:
    """Return what is easily overlooked in the columns of a frame, in their order.

    A kind that was named is decided, and so is how a ``settled`` column may move; what may not move cannot go wrong.
    """
    found: list[Pitfall] = []
    for feature in features:
        if not feature.mutable:
            continue
        words = words_of(feature.name)
        is_named = feature.guess.startswith("named ")
        is_settled = feature.name in settled
        of_values = None
        if not is_named:
            of_values = next(_of_values(feature, frame[feature.name], words), None)
        if of_values is not None and of_values.kind == "constant":
            if not is_settled:
                found.append(of_values)
            continue
        if of_values is not None:
            found.append(of_values)
        if not is_settled:
            found += _of_name(feature, words)
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
