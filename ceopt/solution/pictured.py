"""What the pictures of one person's answers show, as plain texts and numbers, and which picture is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from ceopt.extras import require_library
from ceopt.pictures.captions import CAPTIONS, Captions
from ceopt.pictures.changes import Move, draw_changes
from ceopt.pictures.parallel import ParallelAxis, ParallelLine, draw_parallel
from ceopt.solution.cells import shown_move
from ceopt.solution.counterfactual import Counterfactual, scalars
from ceopt.solution.tables import ShownResult
from ceopt.solvers.checks import AbstractCheck, Choice, ListOf, OrNone, Refusal, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.status import Status
from ceopt.words.language import language_of
from ceopt.words.numbers import is_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["PicturedResult", "plot_answers"]

_WHO: Final = "SolutionSet.plot"
_KINDS: Final = ("changes", "parallel", "surface")
_NO_LIST: Final = Refusal("a list of names as columns", 'Write columns=["income", "age"].', error=InvalidTypeError)
_NONE: Final = Refusal("some column to draw", "Name one, or leave columns out.")
_CHECKS: Final[dict[str, AbstractCheck]] = {
    "kind": Choice(_KINDS),
    "columns": OrNone(ListOf(_NO_LIST, empty=_NONE, texts=True)),
    "language": Choice(tuple(CAPTIONS)),
}


class PicturedResult(ShownResult, Protocol):
    """What the pictures show of a :class:`~ceopt.SolutionSet`."""

    @property
    def space(self) -> FeatureSpace | None:
        """The columns."""


def plot_answers(
    result: PicturedResult, kind: str, *, columns: Any, rank: Any, ax: Any, dark: bool, model: Any, target: Any,
    language: str,
) -> Axes:  # fmt: skip
    """Draw what :meth:`ceopt.SolutionSet.plot` is asked for; see there."""
    require_library(_WHO, "matplotlib")
    checked = check_arguments(_WHO, _CHECKS, {"kind": kind, "columns": columns, "language": language})
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
        goal = language_of(_WHO, language).say(result.target)
    if kind == "parallel":
        return _parallel(result, space, chosen, answer, say, goal=goal, ax=ax, dark=dark)
    moves = list(_moves(result, space, chosen, answer, say))
    if not moves:
        raise _nothing_changes(f"answer {answer.rank} changes nothing")
    title = _titled(result, "answer", say, rank=answer.rank, count=len(result), target=goal, cost=_cost(answer, say))
    return draw_changes(_WHO, moves, title=title, say=say, ax=ax, dark=dark)


# ---- what is asked for -----------------------------------------------------------------------------------------------
def _space_of(result: PicturedResult) -> FeatureSpace:
    if result.space is None:
        but = "this set knows none: its row could not be asked about, or an earlier version wrote it"
        then = "Ask again, or give it: dataclasses.replace(result, space=space)."
        raise InvalidValueError(_WHO, "the space of the columns", but, then)
    for name in result.factual.columns:
        if str(name) not in result.space:
            but = f"column {str(name)!r} is not in the one that it has"
            raise InvalidValueError(_WHO, "the space of its columns", but, "Give that with which was asked.")
    return result.space


def _known(space: FeatureSpace, columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    for place, name in enumerate(columns):
        if name not in space:
            raise UnknownNameError.among(_WHO, "column", name, space.names)
        if name in columns[:place]:
            raise InvalidValueError(_WHO, "each column once", f"{name!r} is there twice", "Leave one out.")
    return columns


def _answer(result: PicturedResult, rank: Any) -> Counterfactual:
    if not len(result):
        but = f"the status is {result.status}"
        if result.reason:
            but += f" ({result.reason.rstrip('.')})"
        then = 'Draw what has answers; kind="surface" shows the row alone.'
        if result.status is Status.ALREADY_FAVOURABLE:
            then = "Nothing has to change."
        raise InvalidValueError(_WHO, "an answer to draw", but, then)
    there = Refusal(f"the rank of {_one_of(len(result))} as rank", "Choose one that is there.")
    place = Whole(at_least=1, at_most=len(result), otherwise=there).require(_WHO, "rank", rank)
    return list(result)[place - 1]


def _nothing_changes(but: str) -> InvalidValueError:
    return InvalidValueError(_WHO, "an answer that changes something", but, "Name the columns to draw.")


def _one_of(count: int) -> str:
    if count == 1:
        return "the one answer, 1,"
    return f"an answer, from 1 to {count},"


def _titled(result: PicturedResult, name: str, say: Captions, **fields: Any) -> str:
    """Return a title, which begins with the label of the row where there is one."""
    if result.query_id is None:
        return say.put(name, **fields)
    return say.put(f"{name}_of_row", row=result.query_id, **fields)


def _cost(answer: Counterfactual, say: Captions) -> str:
    return say.number(f"{answer.cost:.4g}")


def _value(text: str, value: Any, say: Captions) -> str:
    """Return the text of a value as the language writes numbers and truth values; other levels stay."""
    if isinstance(value, bool):
        return say.put("true" if value else "false")
    if is_number(value):
        return say.number(text)
    return text


def _named(feature: Feature) -> str:
    if feature.unit is None:
        return feature.name
    return f"{feature.name} ({feature.unit})"


# ---- changes ---------------------------------------------------------------------------------------------------------
def _moves(
    result: PicturedResult, space: FeatureSpace, columns: tuple[str, ...] | None, answer: Counterfactual, say: Captions
) -> Iterator[Move]:
    """Give a move for each column that changes, or that is held by an intervention, or for each that was named."""
    before = scalars(result.factual)
    for name in columns or answer.listed:
        feature = space[name]
        old = before[name]
        new = answer.values[name]
        first, second = shown_move(old, new, feature, answer.printed.get(name))
        texts = (_named(feature), _value(first, old, say), _value(second, new, say))
        note = ""
        if answer.actions is not None and name in answer.listed:
            note = say.put(answer.why(name))
        if name not in answer.changed:
            yield Move(*texts, amount=0.0, sense="stays", note=say.put("held" if note else "stays"))
        elif feature.kind in {"categorical", "binary"}:
            yield Move(*texts, amount=1.0, sense="level", note=note)
        else:
            amount = (feature.to_coordinate(new) - feature.to_coordinate(old)) / feature.scale("mad")
            yield Move(*texts, amount=amount, note=note)


# ---- parallel coordinates --------------------------------------------------------------------------------------------
def _parallel(
    result: PicturedResult, space: FeatureSpace, columns: tuple[str, ...] | None, answer: Counterfactual, say: Captions,
    *, goal: str, ax: Any, dark: bool,
) -> Axes:  # fmt: skip
    foot = ""
    if columns is None:
        changed = {name for one in result for name in one.changed}
        columns = tuple(name for name in space.names if name in changed)
        if not columns:
            raise _nothing_changes("no answer changes anything")
        stay = len(space) - len(columns)
        if stay:
            foot = say.count("not_drawn", stay)
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
    return draw_parallel(_WHO, scales, person, answers, strongest=strongest, title=title, foot=foot, ax=ax, dark=dark)


def _scale(
    feature: Feature, values: Sequence[Any], printed: Sequence[Any], strongest: int, say: Captions
) -> tuple[ParallelAxis, tuple[float, ...]]:
    """Return the axis of a column for the row's value and the answers', and the place of each on it."""
    coordinates = [feature.to_coordinate(value) for value in values]
    ends = sorted(set(coordinates))
    place_of = {}
    for rank, coordinate in enumerate(ends):
        if len(ends) == 1:
            place_of[coordinate] = 0.5
        elif feature.is_finite:
            place_of[coordinate] = rank / (len(ends) - 1)
        else:
            place_of[coordinate] = (coordinate - ends[0]) / (ends[-1] - ends[0])
    texts = {}
    for coordinate, value, digits in zip(coordinates, values, printed, strict=True):
        texts[coordinate] = _value(shown_move(values[0], value, feature, digits)[1], value, say)
    weighty = dict.fromkeys([coordinates[0], coordinates[strongest], ends[0], ends[-1], *coordinates])
    written = tuple((place_of[coordinate], texts[coordinate]) for coordinate in weighty)
    return ParallelAxis(_named(feature), written, not feature.is_finite), tuple(place_of[one] for one in coordinates)


# ---- surface ---------------------------------------------------------------------------------------------------------
def _surface(
    result: PicturedResult, space: FeatureSpace, columns: tuple[str, ...] | None, answer: Counterfactual | None,
    say: Captions, *, model: Any, target: Any, ax: Any, dark: bool,
) -> Axes:  # fmt: skip
    from ceopt.pictures.decision_grid import decisions
    from ceopt.pictures.surface import draw_surface

    if model is None:
        but = "model is None, as a set of answers does not keep it"
        raise InvalidValueError(_WHO, "the model whose decision is drawn", but, "Write model=model.")
    pair = _pair(space, columns, answer)
    person = _coordinates(space, scalars(result.factual))
    points = [person, *(_coordinates(space, one.values) for one in result)]
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
                values.append(f"{name} {_value(text, new, say)}")
            others = say.put("others_named", others=others, values=", ".join(values))
    grid = decisions(space, model, target, pair, held=base, points=points)
    labels = [say.put("as_it_is"), *(str(one.rank) for one in result)]
    wanted = answer.prediction if answer is not None else None
    names = (_named(space[pair[0]]), _named(space[pair[1]]))
    title = say.put("surface", others=others)
    return draw_surface(_WHO, grid, names, labels, wanted, title=title, say=say, ax=ax, dark=dark)


def _coordinates(space: FeatureSpace, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([feature.to_coordinate(values[feature.name]) for feature in space])


def _pair(space: FeatureSpace, columns: tuple[str, ...] | None, answer: Counterfactual | None) -> tuple[str, str]:
    """Return the two columns of a surface: those named, else numbers that change, levels that do, numbers that may."""
    if columns is None:
        changed = answer.changed if answer is not None else ()
        ordered = sorted(changed, key=lambda name: space[name].is_finite)
        ordered += sorted(space.names, key=lambda name: (not space[name].mutable, space[name].is_finite))
        columns = tuple(dict.fromkeys(ordered))[:2]
    if len(columns) != 2:
        but = f"columns are {', '.join(map(repr, columns))}"
        raise InvalidValueError(_WHO, "two columns for a surface", but, 'Write columns=["income", "age"].')
    return columns[0], columns[1]
