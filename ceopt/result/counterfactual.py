"""One verified answer: values in the person's own columns and units, cost, prediction; and cells of tables as text."""

from __future__ import annotations

import html
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

import numpy as np
import pandas as pd

from ceopt.formulations.space.feature import is_gap
from ceopt.formulations.space.space import FeatureSpace, raw_frame
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import InvalidValueError, printable
from ceopt.words.language import exact, in_six_digits, is_number, language_of
from ceopt.words.sentences import feature_of, sentences_of, unit_of

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature

# ==== Results that nobody changes by accident: what they hand out is a copy, and some of it is made when first read ===

Class = TypeVar("Class")
Value = TypeVar("Value")


@final
@dataclass(frozen=True, slots=True)
class _WhenRead:
    """Stands in a slot for a value that nobody has read."""

    make: Callable[[], Any]


@final
@dataclass(frozen=True, slots=True)
class KeptRow:
    """Stands in a slot for a row of the instance's space; the raw row is made from its coordinates when it is read.

    Parameters
    ----------
    coordinates
        In the order of the columns.
    as_scalars
        Whether it is read as a Series, which is then kept, and not as a frame of one row, which is made each time.
    """

    coordinates: array[float]
    as_scalars: bool = False

    @classmethod
    def of(cls, space: FeatureSpace, point: Mapping[str, float]) -> KeptRow:
        """Return the row of a point."""
        return cls(array("d", [point[name] for name in space.names]))

    def made(self, space: FeatureSpace) -> Any:
        """Return the raw row."""
        frame = raw_frame(space, np.array(self.coordinates)[None, :])
        return scalars(frame) if self.as_scalars else frame


def as_scalars(row: KeptRow | pd.DataFrame) -> KeptRow | pd.Series[Any]:
    """Return a row as a Series of scalars, made or to be made."""
    return replace(row, as_scalars=True) if isinstance(row, KeptRow) else scalars(row)


def when_read(make: Callable[[], Value]) -> Value:
    """Return what stands for a value in one of the slots that hand out copies: it is made once somebody reads it.

    ``make`` reads nothing that can change or is large: it may run much later, or never, and keeps what it reads alive.
    """
    return cast("Value", _WhenRead(make))


def hands_out_copies(*names: str) -> Callable[[type[Class]], type[Class]]:
    """Make the slots ``names`` of a class give a copy at each reading; None and what has no ``copy`` as it is.

    A Series or frame is copied with its cells, a mapping with its keys and values as they are. Text shows control
    characters as they are written. Pickles hold what the slots hold, so that what several objects share is still
    shared; a value that stands to be made :func:`when_read` is made before, and rows are their coordinates.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        slots = {field.name: cls.__dict__[field.name] for field in fields(cls)}  # type: ignore[arg-type]  # a dataclass
        _SLOTS[cls] = slots
        for name in names:
            slot = cls.__dict__[name]
            setattr(cls, name, property(_copied(slot), slot.__set__, doc=f"A copy of {name}."))

        def state(self: Any) -> list[Any]:
            kept = [slot.__get__(self) for slot in slots.values()]
            return [held.make() if isinstance(held, _WhenRead) else held for held in kept]

        cls.__getstate__ = state  # type: ignore[method-assign]  # the one that a dataclass of slots has
        return cls

    return decorate


#: What is in each slot, by class and name: a value, or what stands for one.
_SLOTS: Final[dict[type, dict[str, Any]]] = {}


def in_slot(instance: Any, name: str) -> Any:
    """Return what a slot holds: a value, or what stands for one that is made when it is read."""
    return _SLOTS[type(instance)][name].__get__(instance)


def altered(instance: Value, **changes: Any) -> Value:
    """Return an instance with other values in some slots, and what all others hold, which is not made for that."""
    new = object.__new__(type(instance))
    for name, slot in _SLOTS[type(instance)].items():
        slot.__set__(new, changes[name] if name in changes else slot.__get__(instance))
    return new


def _copied(slot: Any) -> Callable[[Any], Any]:
    def read(self: Any) -> Any:
        held = _held(self, slot)
        if isinstance(held, str):
            return printable(held)
        if hasattr(held, "copy"):
            return held.copy()
        return held

    return read


def _held(instance: Any, slot: Any) -> Any:
    """Return what a slot holds, which is made where nobody has read it before."""
    held = slot.__get__(instance)
    if isinstance(held, _WhenRead):
        held = held.make()
        slot.__set__(instance, held)
    if isinstance(held, KeptRow):
        is_kept = held.as_scalars
        held = held.made(instance.space)
        if is_kept:
            slot.__set__(instance, held)
    return held


# ==== Cells of a table as text, and tables of them as text and as HTML ================================================

#: Powers of ten beyond which a number is shown with an exponent.
_LEAST_POWER = -9
_GREATEST_POWER = 15


def shown(value: Any, away_from: Any = None) -> str:
    """Return a value as text of six significant digits, rounded away from the factual where one is given.

    Rounded so, the step that a person reads is never shorter than the step that was checked.
    """
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if not is_number(value):
        return str(value)
    return written(in_six_digits(value, away_from))


def shown_value(value: Any, feature: Feature | None) -> str:
    """Return a value of a column as text, or what a code means; a number that is a level or a code has no thousands."""
    if feature is not None and feature.is_label_value(value):
        value = feature.meaning_of(value) or value
        if is_number(value):
            return f"{exact(value):f}"
    if feature is not None and feature.is_finite and is_number(value):
        return f"{exact(value):f}"
    return shown(value)


def shown_move(
    before: Any, after: Any, feature: Feature | None, printed: tuple[float, float] | None = None
) -> tuple[str, str]:
    """Return two values of a column as text.

    The value that is come to is written digit for digit, or as ``printed`` (in sentences, in tables) says; the person's
    own is short where the column has no steps, levels or decimals.
    """
    if feature is not None and (feature.is_finite or feature.is_label_value(after)):
        return shown_value(before, feature), shown_value(after, feature)
    if feature is not None and feature.is_label_value(before):
        return shown_value(before, feature), written(exact(after if printed is None else printed[1]))
    if not is_number(after) or (is_number(before) and before == after):
        return shown(before), shown(after)
    second = exact(after if printed is None else printed[1])
    if not is_number(before):
        return shown(before), written(second)
    first = in_six_digits(before)
    has_digits = feature is not None and (feature.step is not None or feature.decimals is not None)
    if has_digits or (second > first) is not (after > before):
        first = exact(before)
    return written(first), written(second)


def written(number: Decimal) -> str:
    """Return the digits of a number as text: with thousands, or with an exponent where it is of another size."""
    if number and not _LEAST_POWER <= number.adjusted() < _GREATEST_POWER:
        return f"{number.normalize():e}"
    return f"{number:,f}"


def text_table(headline: str, cells: Sequence[Sequence[str]]) -> str:
    """Lay out rows in columns under a headline; the first row has the titles, and alone it is left out."""
    headline = printable(headline)
    if len(cells) == 1:
        return headline
    cells = [list(map(printable, row)) for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = ["-" * width for width in widths]
    lines = [headline]
    for row in (cells[0], rule, *cells[1:]):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def html_table(headline: str, cells: Sequence[Sequence[str]]) -> str:
    """Write the same as HTML."""
    titles, *body = cells
    text = f"<p>{html.escape(printable(headline))}</p>"
    if not body:
        return text
    lines = "".join(_html_row("td", row) for row in body)
    return f"{text}<table><thead>{_html_row('th', titles)}</thead><tbody>{lines}</tbody></table>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    row = "".join(f"<{tag}>{html.escape(printable(cell))}</{tag}>" for cell in cells)
    return f"<tr>{row}</tr>"


# ==== One answer as a short table: every value, and what it was =======================================================

#: Rows up to which columns that stay are listed as well.
_MOST_ROWS: Final = 60


def _headline(answer: Counterfactual) -> str:
    names = answer.values.index
    line = f"answer {answer.rank}, cost {answer.cost:.4g}, prediction {shown(answer.prediction)}"
    if len(names) > _MOST_ROWS:
        line += f"; {len(names) - len(answer.listed)} columns stay"
    return line


def _cells(answer: Counterfactual) -> list[tuple[str, ...]]:
    """Return titles, and a row a column; of many columns, only what is listed as a change."""
    names = list(answer.values.index)
    if len(names) > _MOST_ROWS:
        names = list(answer.listed)
    cells: list[tuple[str, ...]] = [("column", "value", "before"), *_rows(answer, names)]
    if any(was for _, _, was in cells[1:]):
        return cells
    return [row[:2] for row in cells]


def _rows(answer: Counterfactual, names: list[str]) -> Iterator[tuple[str, str, str]]:
    values = answer.values
    before = answer.factual
    for name in names:
        feature = feature_of(answer.space, name)
        was = ""
        value = shown_value(values[name], feature)
        if name in answer.changed and before is not None:
            was, value = shown_move(before[name], values[name], feature, answer.printed.get(name))
        elif name in answer.changed:
            _, value = shown_move(None, values[name], feature, answer.printed.get(name))
        unit = unit_of(feature)
        if unit:
            value = f"{value} {unit}"
        yield name, value, was


# ==== One verified answer: values in the person's own columns and units, cost, prediction and what is proved ==========


@final
@hands_out_copies("values", "actions", "frame", "factual", "asked_by", "printed", "ranges", "rules")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counterfactual:
    """One verified answer. What it hands out is a copy: to write into it changes no answer.

    Parameters
    ----------
    values
        The answer in raw units: a one-row frame, or a Series. Read back as a Series of the columns' own scalars;
        ``frame`` is the row in the columns' own dtypes.
    cost
        Recomputed in plain arithmetic from the values.
    prediction
        What the user's own model says of the values.
    score, slack
        The model's score (by label where it has several), and by how much the decision meets the target.
    changed
        Names of the columns that leave the factual.
    verified
        Whether the user's own model and every rule agree.
    rank
        1 for the best.
    bound, gap
        Proved least cost among answers of this rank, and ``(cost - bound) / max(|cost|, 1e-12)``.
    actions
        Interventions by column, under a causal model.
    cluster
        Which hull of a clustered data manifold holds it.
    way
        How it was found for a black box: "surrogate", "grown" or "boundary"; None where the model itself is stated.
    asked_by
        Column -> names of rules that the person breaks today and that alone ask for its change: with the person's own
        value in its place the answer would break them, and have the decision but for a twentieth of the way at most.
    printed
        Column -> the number that sentences print for its value, and the one that tables print, where either has fewer
        digits than the value. With all of a kind in their places the row was checked as the answer was, by the user's
        own model and every rule; what is not named here is printed digit for digit.
    ranges
        Column -> the least and the greatest amount that would do as well, of a number that is filled in where it was
        missing or a code: everything else being as in the answer, each amount of the column between them, its steps
        counted from its lower bound or from 0, keeps every rule and has the decision by the user's own model. Infinite
        where there is no end. What is not named here is not known.
    factual
        The person's row, a Series of the columns' own scalars; None of an answer that is in no solution set.
    space
        What each column is; None where nobody said.
    rules
        The sentence of each rule by name, as the solution set has it.
    """

    values: pd.Series[Any]
    cost: float
    prediction: Any
    score: Any
    slack: float | None
    changed: tuple[str, ...]
    verified: bool
    rank: int
    bound: float | None
    gap: float | None
    actions: pd.Series[Any] | None = None
    cluster: int | None = None
    way: str | None = None
    asked_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    printed: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    factual: pd.Series[Any] | None = field(default=None, repr=False)
    space: FeatureSpace | None = field(default=None, repr=False)
    rules: Mapping[str, str] = field(default_factory=dict, repr=False)
    frame: pd.DataFrame = field(init=False, repr=False)

    def __post_init__(self) -> None:
        frame: Any = in_slot(self, "values")
        if isinstance(frame, pd.Series):
            frame = pd.DataFrame({name: [value] for name, value in frame.items()})
        object.__setattr__(self, "frame", frame if isinstance(frame, KeptRow) else frame.reset_index(drop=True))
        object.__setattr__(self, "values", as_scalars(frame))
        object.__setattr__(self, "changed", tuple(self.changed))
        object.__setattr__(self, "prediction", plain(self.prediction))

    @property
    def listed(self) -> tuple[str, ...]:
        """The columns that change, and those that an intervention holds where they are, in the row's order."""
        listed = []
        for name in self.values.index:
            is_action = self.actions is not None and name in self.actions.index
            if is_action or name in self.changed:
                listed.append(name)
        return tuple(listed)

    def why(self, name: str) -> str:
        """Return whether a column that is listed is an "action" or, under a causal model, a "consequence"."""
        if self.actions is None or name in self.actions.index:
            return "action"
        return "consequence"

    def about(
        self, factual: KeptRow | pd.Series[Any], space: FeatureSpace | None, rules: Mapping[str, str]
    ) -> Counterfactual:
        """Return the same answer, as one about a person's row under some rules."""
        known = {} if self.space == space else {"values": self.values, "frame": self.frame}  # in its own columns
        return altered(self, factual=factual, space=space, rules=rules, **known)

    def sentences(self, language: str = "en", templates: Mapping[str, str] | None = None) -> list[str]:
        """Return one sentence for each column that changes, in the order of ``changed``.

        A number is written in the language's own way, with its unit. It has few digits where the whole answer, read
        back as it is printed, was checked like the answer itself (``printed``), else all of the answer's value. What
        follows by a causal model is told apart from what is to be done, and so is a change that only a rule asks for
        which the person breaks today (``asked_by``). The text is plain: who puts it into markup escapes it.

        Parameters
        ----------
        language
            "en" or "de".
        templates
            Name -> text, in place of some or all of the language's: :func:`ceopt.words.templates` has them, and
            `docs/how_to/words.md` shows a third language.

        Raises
        ------
        InvalidValueError
            The answer is in no solution set, so that nobody knows from where it goes.
        UnknownNameError
            A language, a template or a field of one that does not exist.

        Examples
        --------
        >>> import ceopt
        >>> from ceopt.formulations.predictors import Affine
        >>> space = ceopt.FeatureSpace([ceopt.Feature("savings", kind="integer", lower=0, step=100, unit="euros")])
        >>> model = Affine([1.0], -22350.0, labels=("bad", "good"))
        >>> answer = ceopt.explain(model, {"savings": 21200}, space, target="good")[0]
        >>> answer.sentences()
        ['Raise savings from 21,200 to 22,400 euros']
        >>> answer.sentences("de")
        ['savings von 21.200 auf 22.400 euros erhöhen']
        >>> answer.sentences(templates={"raise": "{column}: +{by}"})
        ['savings: +1,200 euros']
        """
        if self.factual is None:
            but = "this one is in no solution set"
            then = "Make a SolutionSet with it and the factual."
            raise InvalidValueError("Counterfactual.sentences", "the person's row", but, then)
        return sentences_of(self, self.changed, language_of("Counterfactual.sentences", language, templates))

    def __repr__(self) -> str:
        return text_table(_headline(self), _cells(self))

    def _repr_html_(self) -> str:
        return html_table(_headline(self), _cells(self))


def scalars(frame: pd.DataFrame) -> pd.Series[Any]:
    """Return a one-row frame as a Series of each column's own scalar (nothing is widened to a common dtype).

    However a dtype writes that a cell is missing, it is NaN here.
    """
    if all(dtype == np.float64 for dtype in frame.dtypes):  # column by column takes milliseconds where there are many
        if isinstance(frame.columns.dtype, pd.StringDtype):
            index: Any = frame.columns.rename(None)
        else:
            index = list(map(str, frame.columns))
        return pd.Series(frame.to_numpy()[0].tolist(), index=index, dtype=object)
    cells = [_scalar(frame.iat[0, j]) for j in range(frame.shape[1])]  # noqa: PD009 - a third of what .iloc takes
    return pd.Series(dict(zip(map(str, frame.columns), cells, strict=True)), dtype=object)


def _scalar(cell: Any) -> Any:
    if is_gap(cell):
        return math.nan
    return plain(cell)
