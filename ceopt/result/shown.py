"""What a solution set shows: a table, pictures, a report, and what is known of the surrogate behind its answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, final

import numpy as np
import pandas as pd

from ceopt.base.libraries import require_library
from ceopt.base.results import Status
from ceopt.formulations.digits import rounded
from ceopt.formulations.space.feature import MISSING, is_gap
from ceopt.formulations.space.space import FeatureSpace
from ceopt.pictures.canvas import CAPTIONS, Captions
from ceopt.pictures.charts import Move, ParallelAxis, ParallelLine, draw_changes, draw_parallel
from ceopt.report import picture, require_report, write_page
from ceopt.result.counterfactual import (
    Counterfactual,
    hands_out_copies,
    html_table,
    scalars,
    shown,
    shown_move,
    text_table,
    written,
)
from ceopt.solvers.checks import AbstractCheck, Choice, ListOf, OrNone, Refusal, Whole, check_arguments, plain
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, counted
from ceopt.tolerances import DIGIT_NOISE
from ceopt.words.binding import binding_lines
from ceopt.words.columns import column_limits
from ceopt.words.language import Language, is_number, language_of, tidied
from ceopt.words.sentences import ToldResult, feature_of, in_words, name_with_unit, truths, value_phrase

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.formulations.space.feature import Feature

# ==== A solution set as a short table that a person can act on ========================================================

_HEAD = ("rank", "column", "from", "to", "why", "cost", "gap")


class ShownResult(ToldResult, Protocol):
    """What tables, pictures and reports say of a :class:`~ceopt.SolutionSet`, beside its sentences."""

    @property
    def factual(self) -> pd.DataFrame:
        """The person's row."""

    @property
    def relaxed(self) -> Mapping[str, float]:
        """The radius of each rule that was widened."""

    @property
    def query_id(self) -> Any:
        """The person's label in a cohort."""

    @property
    def space(self) -> FeatureSpace | None:
        """What each column is."""

    @property
    def bound(self) -> float | None:
        """Proved least cost."""

    @property
    def gap(self) -> float | None:
        """Relative gap of rank 1."""

    @property
    def margin(self) -> float | None:
        """Least slack of the decision."""

    @property
    def timings(self) -> Mapping[str, float]:
        """Seconds by phase."""

    @property
    def proof(self) -> str:
        """What proved it."""

    @property
    def solver(self) -> str:
        """Which one answered."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Of the libraries."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Every setting."""

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Of model and data."""

    @property
    def size(self) -> Mapping[str, int]:
        """Of the program."""

    def __iter__(self) -> Iterator[Counterfactual]: ...


def headline(result: ShownResult) -> str:
    """Return what happened, in one line."""
    line = str(result.status)
    if result.query_id is not None:
        line = f"{result.query_id}: {line}"
    if len(result):
        line += f", {counted(len(result), 'answer')}"
    line += f", target {result.target}"
    for name, radius in result.relaxed.items():
        line += f", {name} widened to {shown(radius, 0.0)}"
    if result.reason:
        line += f". {result.reason}"
    return line


def rows(result: ShownResult) -> Iterator[tuple[str, str, str, str, str, str, str]]:
    """Give one row of text per change: rank, column, from, to, why, and with an answer's first change cost and gap.

    Why is an action, by how much where it shifts what follows besides, or a consequence, empty without a causal model;
    and the rules that alone ask for it.
    """
    before = scalars(result.factual)
    for answer in result:
        rank = str(answer.rank)
        cost = f"{answer.cost:.4g}"
        gap = _shown_gap(answer.gap)
        for name in answer.listed:
            old = before[name]
            new = answer.values[name]
            was, becomes = shown_move(old, new, feature_of(result.space, name), answer.printed.get(name))
            asked_by = [f"rule {rule}" for rule in answer.asked_by.get(name, ())]
            why = "; ".join(filter(None, [_why(answer, name, old), *asked_by]))
            yield rank, name, was, becomes, why, cost, gap
            rank = ""
            cost = ""
            gap = ""


def _shown_gap(gap: float | None) -> str:
    if gap is None or math.isnan(gap):
        return ""
    if gap <= DIGIT_NOISE:
        return "0"
    return f"{rounded(gap, 1, 'up'):.1g}"


def _cells(result: ShownResult) -> list[tuple[str, ...]]:
    """Return titles and rows, without a column that is empty in all; without an answer, the rules in conflict."""
    cells: list[tuple[str, ...]] = [("in conflict", "says", "wider by")]
    if result.conflict and not len(result):
        for name, sentence, width in result.conflict:
            cells.append((name, sentence, "" if width is None else shown(width, 0.0)))
        return cells
    cells = [_HEAD, *rows(result)]
    why = _HEAD.index("why")
    if any(row[why] for row in cells[1:]):
        return cells
    return [row[:why] + row[why + 1 :] for row in cells]


def _why(answer: Counterfactual, name: str, old: Any) -> str:
    """Return why a column is listed: "action by +500" where another part of its move is a consequence."""
    if answer.actions is None:
        return ""
    why = answer.why(name)
    new = answer.values[name]
    if why != "action":
        return why
    done = answer.actions[name]
    if done == new or not (is_number(done) and is_number(old)) or math.isclose(done, new - old):
        return why
    sign = "+" if done > 0 else ""
    return f"{why} by {sign}{written(tidied(done))}"


def to_text(result: ShownResult) -> str:
    """Lay out the changes in columns, under a headline; where there is no answer, the rules in conflict."""
    return text_table(headline(result), _cells(result))


def to_html(result: ShownResult) -> str:
    """Write the same as an HTML table."""
    return html_table(headline(result), _cells(result))


# ==== What the pictures of one person's answers show, as plain texts and numbers, and which picture is asked for ======

_PLOT: Final = "SolutionSet.plot"
#: The part of an axis of numbers on which missing cells and codes stand, where there are some.
_APART: Final = 0.25
_KINDS: Final = ("changes", "parallel", "surface")
_NO_LIST: Final = Refusal("a list of names as columns", 'Write columns=["income", "age"].', error=InvalidTypeError)
_NONE: Final = Refusal("some column to draw", "Name one, or leave columns out.")
_CHECKS: Final[dict[str, AbstractCheck]] = {
    "kind": Choice(_KINDS),
    "columns": OrNone(ListOf(_NO_LIST, empty=_NONE, texts=True)),
    "language": Choice(tuple(CAPTIONS)),
}


def plot_answers(
    result: ShownResult, kind: str, *, columns: Any, rank: Any, ax: Any, dark: bool, model: Any, target: Any,
    language: str,
) -> Axes:  # fmt: skip
    """Draw what :meth:`ceopt.SolutionSet.plot` is asked for; see there."""
    require_library(_PLOT, "matplotlib")
    checked = check_arguments(_PLOT, _CHECKS, {"kind": kind, "columns": columns, "language": language})
    say = CAPTIONS[checked["language"]]
    space = _space_of(result)
    chosen = _known(space, checked["columns"])
    if kind == "surface":
        answer = None
        if len(result):
            answer = _answer(result, rank)
        return _surface(result, space, chosen, answer, say, model=model, target=target, ax=ax, dark=dark)
    answer = _answer(result, rank)
    goal = result.target  # in English as short as it is
    if language != "en":
        goal = language_of(_PLOT, language).say(result.target)
    if kind == "parallel":
        return _parallel(result, space, chosen, answer, say, goal=goal, ax=ax, dark=dark)
    moves = list(_moves(result, space, chosen, answer, say))
    if not moves:
        raise _nothing_changes(f"answer {answer.rank} changes nothing")
    title = _titled(result, "answer", say, rank=answer.rank, count=len(result), target=goal, cost=_cost(answer, say))
    return draw_changes(_PLOT, moves, title=title, say=say, ax=ax, dark=dark)


# ---- what is asked for -----------------------------------------------------------------------------------------------
def _space_of(result: ShownResult) -> FeatureSpace:
    if result.space is None:
        but = "this set knows none: its row could not be asked about, or an earlier version wrote it"
        then = "Ask again, or give it: dataclasses.replace(result, space=space)."
        raise InvalidValueError(_PLOT, "the space of the columns", but, then)
    for name in result.factual.columns:
        if str(name) not in result.space:
            but = f"column {str(name)!r} is not in the one that it has"
            raise InvalidValueError(_PLOT, "the space of its columns", but, "Give that with which was asked.")
    return result.space


def _known(space: FeatureSpace, columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    for place, name in enumerate(columns):
        if name not in space:
            raise UnknownNameError.among(_PLOT, "column", name, space.names)
        if name in columns[:place]:
            raise InvalidValueError(_PLOT, "each column once", f"{name!r} is there twice", "Leave one out.")
    return columns


def _answer(result: ShownResult, rank: Any) -> Counterfactual:
    if not len(result):
        but = f"the status is {result.status}"
        if result.reason:
            but += f" ({result.reason.rstrip('.')})"
        then = 'Draw what has answers; kind="surface" shows the row alone.'
        if result.status is Status.ALREADY_FAVOURABLE:
            then = "Nothing has to change."
        raise InvalidValueError(_PLOT, "an answer to draw", but, then)
    one_of = f"an answer, from 1 to {len(result)},"
    if len(result) == 1:
        one_of = "the one answer, 1,"
    refusal = Refusal(f"the rank of {one_of} as rank", "Choose one that is there.")
    place = Whole(at_least=1, at_most=len(result), otherwise=refusal).require(_PLOT, "rank", rank)
    return list(result)[place - 1]


def _nothing_changes(but: str) -> InvalidValueError:
    return InvalidValueError(_PLOT, "an answer that changes something", but, "Name the columns to draw.")


def _titled(result: ShownResult, name: str, say: Captions, **fields: Any) -> str:
    """Return a title, which begins with the label of the row where there is one."""
    if result.query_id is None:
        return say.put(name, **fields)
    return say.put(f"{name}_of_row", row=result.query_id, **fields)


def _cost(answer: Counterfactual, say: Captions) -> str:
    return say.number(f"{answer.cost:.4g}")


def _value(text: str, value: Any, feature: Feature, say: Captions) -> str:
    """Return the text of a value as the language writes numbers and truth values; other levels and codes stay."""
    if is_gap(value):
        return say.put("missing")
    if feature.is_label_value(value):
        return text
    if isinstance(value, bool):
        return say.put(str(value).lower())
    if is_number(value):
        return say.number(text)
    return text


# ---- changes ---------------------------------------------------------------------------------------------------------
def _moves(
    result: ShownResult, space: FeatureSpace, columns: tuple[str, ...] | None, answer: Counterfactual, say: Captions
) -> Iterator[Move]:
    """Give a move for each column that changes, or that is held by an intervention, or for each that was named."""
    before = scalars(result.factual)
    for name in columns or answer.listed:
        feature = space[name]
        old = before[name]
        new = answer.values[name]
        first, second = shown_move(old, new, feature, answer.printed.get(name))
        texts = (name_with_unit(feature), _value(first, old, feature, say), _value(second, new, feature, say))
        note = ""
        if answer.actions is not None and name in answer.listed:
            note = say.put(answer.why(name))
        if name not in answer.changed:
            yield Move(*texts, amount=0.0, sense="stays", note=say.put("held" if note else "stays"))
        elif feature.is_label_value(old) or feature.is_label_value(new):
            yield Move(*texts, amount=_fill(feature), sense="level", note=note)
        elif feature.kind in {"categorical", "binary"}:
            yield Move(*texts, amount=1.0, sense="level", note=note)
        else:
            amount = (feature.to_coordinate(new) - feature.to_coordinate(old)) / feature.scale("mad")
            yield Move(*texts, amount=amount, note=note)


def _fill(feature: Feature) -> float:
    """Return how far a cell that is filled in moves; 1 where it was not to be."""
    return 1.0 if math.isinf(feature.fill) else feature.fill


# ---- parallel coordinates --------------------------------------------------------------------------------------------
def _parallel(
    result: ShownResult, space: FeatureSpace, columns: tuple[str, ...] | None, answer: Counterfactual, say: Captions,
    *, goal: str, ax: Any, dark: bool,
) -> Axes:  # fmt: skip
    feet = []
    if columns is None:
        changed = {name for one in result for name in one.changed}
        columns = tuple(name for name in space.names if name in changed)
        if not columns:
            raise _nothing_changes("no answer changes anything")
        stay = len(space) - len(columns)
        if stay:
            feet.append(say.count("not_drawn", stay))
    if not all(map(_is_ordered, map(space.__getitem__, columns))):
        feet.append(say.put("unordered"))
    rows = [scalars(result.factual), *(one.values for one in result)]
    scales = []
    places = []
    for name in columns:
        printed = [None, *(one.printed.get(name) for one in result)]
        scale, own = _scale(space[name], [row[name] for row in rows], printed, answer.rank, say)
        scales.append(scale)
        places.append(own)
    by_row = list(zip(*places, strict=True))
    person = ParallelLine((say.put("as_it_is"),) * 3, by_row[0])
    answers = []
    for one, own in zip(result, by_row[1:], strict=True):
        at_length = say.put("line", rank=one.rank, cost=_cost(one, say))
        answers.append(ParallelLine((at_length, say.put("line_short", rank=one.rank), str(one.rank)), own))
    title = _titled(result, "answers", say, target=goal)
    strongest = answer.rank - 1
    foot = "; ".join(feet)
    return draw_parallel(_PLOT, scales, person, answers, strongest=strongest, title=title, foot=foot, ax=ax, dark=dark)


def _scale(
    feature: Feature, values: Sequence[Any], printed: Sequence[Any], strongest: int, say: Captions
) -> tuple[ParallelAxis, tuple[float, ...]]:
    """Return the axis of a column for the row's value and the answers', and the place of each on it."""
    coordinates = list(map(feature.to_coordinate, values))
    ends = list(dict.fromkeys(coordinates))  # as they come, the row's first
    if _is_ordered(feature):
        ends.sort(key=lambda one: (one != MISSING, one))
    place_of = {}
    for rank, coordinate in enumerate(ends):
        if len(ends) == 1:
            place_of[coordinate] = 0.5
        elif feature.is_finite:
            place_of[coordinate] = rank / (len(ends) - 1)
    if not feature.is_finite and len(ends) > 1:
        place_of = _number_places(feature, ends)
    texts = {}
    for coordinate, value, digits in zip(coordinates, values, printed, strict=True):
        texts[coordinate] = _value(shown_move(values[0], value, feature, digits)[1], value, feature, say)
    weighty = dict.fromkeys([coordinates[0], coordinates[strongest], ends[0], ends[-1], *coordinates])
    written = tuple((place_of[coordinate], texts[coordinate]) for coordinate in weighty)
    axis = ParallelAxis(name_with_unit(feature), written, not feature.is_finite, _is_ordered(feature))
    return axis, tuple(map(place_of.__getitem__, coordinates))


def _number_places(feature: Feature, ends: Sequence[float]) -> dict[float, float]:
    """Return the place of each of some numbers between 0 and 1; missing cells and codes stand apart, before them."""
    labels = [one for one in ends if feature.is_label(one)]
    amounts = [one for one in ends if not feature.is_label(one)]
    places = {label: _APART * rank / len(labels) for rank, label in enumerate(labels)}
    first = _APART if labels else 0.0
    for amount in amounts:
        share = 1.0
        if len(amounts) > 1:
            share = (amount - amounts[0]) / (amounts[-1] - amounts[0])
        places[amount] = first + (1.0 - first) * share
    return places


def _is_ordered(feature: Feature) -> bool:
    """Whether the values of a column have an order: numbers, ranks, no and yes."""
    return not feature.is_finite or feature.kind == "ordinal" or truths(feature.levels) is not None


# ---- surface ---------------------------------------------------------------------------------------------------------
def _surface(
    result: ShownResult, space: FeatureSpace, columns: tuple[str, ...] | None, answer: Counterfactual | None,
    say: Captions, *, model: Any, target: Any, ax: Any, dark: bool,
) -> Axes:  # fmt: skip
    from ceopt.pictures.surface import decisions, draw_surface

    if model is None:
        but = "model is None, as a set of answers does not keep it"
        raise InvalidValueError(_PLOT, "the model whose decision is drawn", but, "Write model=model.")
    person = _coordinates(space, scalars(result.factual))
    points = [person, *(_coordinates(space, one.values) for one in result)]
    pair = _pair(space, columns, answer, points)
    base = person
    others = say.put("others_as_in_row")
    if answer is not None:
        base = points[answer.rank]
        others = say.put("others_as_in_answer", rank=answer.rank)
        held = [name for name in answer.changed if name not in pair]
        if held:
            before = scalars(result.factual)
            values = []
            for name in held:
                new = answer.values[name]
                _, text = shown_move(before[name], new, space[name], answer.printed.get(name))
                values.append(f"{name} {_value(text, new, space[name], say)}")
            others = say.put("others_named", others=others, values=", ".join(values))
    grid = decisions(space, model, target, pair, held=base, points=points)
    labels = [say.put("as_it_is"), *(str(one.rank) for one in result)]
    wanted = getattr(answer, "prediction", None)
    names = (name_with_unit(space[pair[0]]), name_with_unit(space[pair[1]]))
    title = say.put("surface", others=others)
    are_apart = (not _is_ordered(space[pair[0]]), not _is_ordered(space[pair[1]]))
    return draw_surface(_PLOT, grid, names, labels, wanted, title=title, say=say, ax=ax, dark=dark, are_apart=are_apart)


def _coordinates(space: FeatureSpace, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([feature.to_coordinate(values[feature.name]) for feature in space])


def _pair(
    space: FeatureSpace,
    columns: tuple[str, ...] | None,
    answer: Counterfactual | None,
    points: Sequence[np.ndarray[Any, np.dtype[np.float64]]],
) -> tuple[str, str]:
    """Return the two columns of a surface: those named, else numbers that change, levels that do, numbers that may."""
    blank = [name for j, name in enumerate(space.names) if any(space[name].is_label(point[j]) for point in points)]
    if columns is None:
        changed = getattr(answer, "changed", ())
        ordered = sorted(changed, key=lambda name: space[name].is_finite)
        ordered += sorted(space.names, key=lambda name: (not space[name].mutable, space[name].is_finite))
        columns = tuple(name for name in dict.fromkeys(ordered) if name not in blank)[:2]
    if len(columns) != 2:
        but = f"columns are {', '.join(map(repr, columns))}"
        raise InvalidValueError(_PLOT, "two columns for a surface", but, 'Write columns=["income", "age"].')
    for name in columns:
        if name in blank:
            but = f"{name!r} is missing, or a code, in the row or in an answer"
            raise InvalidValueError(_PLOT, "two columns of amounts for a surface", but, "Name others.")
    return columns[0], columns[1]


# ==== What the report of one person's answers shows, as plain texts ===================================================

_REPORT: Final = "SolutionSet.report"


def report_answers(result: ShownResult, path: Any, *, title: Any, language: Any) -> None:
    """Write what :meth:`ceopt.SolutionSet.report` is asked for; see there."""
    say = require_report(_REPORT, title=title, language=language)
    spoken = language_of(_REPORT, language)
    words = in_words(result, spoken)
    heading = title
    if heading is None:
        heading = say["report_of_person"]
        if result.query_id is not None:
            heading += f": {result.query_id}"
    ways = []
    for answer, sentences in zip(result, words.answers, strict=True):
        name = say["way"].format(rank=answer.rank)
        cost = say["costs"].format(cost=short(answer.cost, spoken))
        ways.append({"name": name, "cost": cost, "sentences": sentences})
    person = []
    for column, value in scalars(result.factual).items():
        feature = feature_of(result.space, str(column))
        label = ""
        limits = ""
        if feature is not None:
            label = feature.label or ""
            limits = limits_text(feature, [value], say, spoken)
        person.append((str(column), label, spoken.phrase(value_phrase(feature, value)), limits))
    write_page(
        _REPORT,
        path,
        "person.html",
        title=heading,
        language=language,
        words=words,
        ways=ways,
        pictures=_pictures(result, language),
        person=person,
        has_labels=any(label for _, label, _, _ in person),
        has_limits=result.space is not None,
        bound=tuple(binding_lines(result, spoken)),
        proof=_proof(result, say, spoken),
        sources=sources(result, say, spoken),
    )


def limits_text(feature: Feature, values: Sequence[Any], say: Mapping[str, str], language: Language) -> str:
    """Return the limits of a column as one text."""
    return language.templates["separator"].join(column_limits(feature, values, language)) or say["no_limit"]


def short(number: float | None, language: Language, way: Literal["nearest", "up", "down"] = "nearest") -> str:
    """Return a number of four digits, a limit of six rounded to where it is true, or nothing where there is none."""
    if number is None or math.isnan(number):
        return ""
    if way != "nearest":
        return language.number(rounded(number, 6, way))
    return language.number(float(f"{number:.4g}"))


def sources(result: ShownResult, say: Mapping[str, str], language: Language) -> list[tuple[str, str]]:
    """Return by what model, data and program are known again, each with its name."""
    rows = [(say[name], result.fingerprints.get(name, "")) for name in ("model", "data")]
    if result.size:
        counts = {name: language.number(count) for name, count in result.size.items()}
        rows.append((say["size"], say["size_of"].format_map(counts)))
    rows.append((say["lp"], say["lp_how"]))
    rows.append((say["options"], "; ".join(f"{name} = {value}" for name, value in result.options.items())))
    rows.append((say["versions"], ", ".join(f"{name} {text}" for name, text in result.versions.items())))
    return [(name, text) for name, text in rows if text]


def _pictures(result: ShownResult, language: str) -> list[dict[str, Any]]:
    """Return a picture of each answer that changes something, and one of all of them where there are several."""
    if result.space is None:
        return []
    drawn = []
    draw = partial(plot_answers, result, columns=None, ax=None, model=None, target=None, language=language)
    moving = [answer for answer in result if answer.listed]
    for answer in moving:
        prefix = f"answer-{answer.rank}"
        drawn.append(picture(partial(draw, "changes", rank=answer.rank), prefix))
    if len(moving) > 1:
        drawn.append(picture(partial(draw, "parallel", rank=1), "all-answers"))
    return drawn


def _proof(result: ShownResult, say: Mapping[str, str], language: Language) -> list[tuple[str, str]]:
    rows = [
        (say["status"], say[str(result.status)]),
        (say["bound"], short(result.bound, language, "down")),
        (say["gap"], short(result.gap, language, "up")),
        (say["margin"], short(result.margin, language, "down")),
        (say["proved_by"], say[f"proved_by_{result.proof}"] if result.proof else ""),
        (say["solver"], result.solver),
        (say["seconds"], short(result.timings.get("total"), language)),
    ]
    return [(name, text) for name, text in rows if text]


# ==== What is said of the linear surrogate whose program gave an answer ===============================================


@final
@hands_out_copies("coef")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SurrogateReport:
    """A linear surrogate in scaled columns, how near it is to the model, and what was proved about it.

    Parameters
    ----------
    coef, intercept
        Of the surrogate, favourable where ``coef @ z + intercept >= 0``; a Series by scaled column.
    fidelity
        Share of rows about the centre of its sample of which it says the same as the model; nan without queries left.
    stability
        Greatest distance of its normalised parameters from those of ten surrogates for people a thousandth of a scale
        off (standard deviation), as :func:`ceopt.metrics.stability` has it; nan without queries left.
    worst_case_error
        Greatest error of a class over the ambiguity; nan of surrogates that know none.
    radius
        Of the unfavourable class's ambiguity, as far as it was grown; nan of surrogates without one.
    program_status, program_gap
        What is proved about the program over the surrogate.
    n_queries
        Rows that were sent to the model for this person. ``explain`` sends the data too; ``Recourse`` does so once, in
        ``fit``, and counts it for nobody.
    """

    coef: pd.Series[float]
    intercept: float
    fidelity: float
    stability: float
    worst_case_error: float
    radius: float
    program_status: str
    program_gap: float
    n_queries: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "coef", pd.Series(self.coef, dtype="float64"))
        for name in ("intercept", "fidelity", "stability", "worst_case_error", "radius", "program_gap", "n_queries"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        object.__setattr__(self, "program_status", str(self.program_status))

    def to_mapping(self) -> dict[str, Any]:
        """Return every field as plain values, as JSON holds them."""
        mapping: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        mapping["coef"] = {str(name): float(value) for name, value in self.coef.items()}
        return mapping

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any] | None) -> SurrogateReport | None:
        """Return what :meth:`to_mapping` wrote."""
        if given is None:
            return None
        return cls(**given)
