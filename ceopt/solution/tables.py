"""A solution set as a short table that a person can act on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pandas as pd

from ceopt.formulations.digits import rounded
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solution.cells import html_table, shown, shown_move, text_table, written
from ceopt.solution.counterfactual import Counterfactual, scalars
from ceopt.status import Status
from ceopt.tolerances import DIGIT_NOISE
from ceopt.words.changes import feature_of
from ceopt.words.numbers import is_number, tidied

__all__ = ["ShownResult", "headline", "rows", "shown", "to_html", "to_text"]

_HEAD = ("rank", "column", "from", "to", "why", "cost", "gap")


class ShownResult(Protocol):
    """What a table says of a :class:`~ceopt.SolutionSet`."""

    @property
    def status(self) -> Status:
        """Why the search ended."""

    @property
    def factual(self) -> pd.DataFrame:
        """The person's row."""

    @property
    def target(self) -> str:
        """The target in words."""

    @property
    def reason(self) -> str:
        """One sentence, or empty."""

    @property
    def relaxed(self) -> Mapping[str, float]:
        """The radius of each rule that was widened."""

    @property
    def conflict(self) -> tuple[tuple[str, str, float | None], ...]:
        """(rule, sentence, width) of each rule in conflict."""

    @property
    def query_id(self) -> Any:
        """The person's label in a cohort."""

    @property
    def space(self) -> FeatureSpace | None:
        """What each column is."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Counterfactual]: ...


def headline(result: ShownResult) -> str:
    """Return what happened, in one line."""
    line = str(result.status)
    if result.query_id is not None:
        line = f"{result.query_id}: {line}"
    if len(result) == 1:
        line += ", 1 answer"
    elif len(result) > 1:
        line += f", {len(result)} answers"
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
    return f"{rounded(gap, 1, 'up'):.1g}" if gap > DIGIT_NOISE else "0"


def _cells(result: ShownResult) -> list[tuple[str, ...]]:
    """Return titles and rows, without a column that is empty in all; without an answer, the rules in conflict."""
    if result.conflict and not len(result):
        return [("in conflict", "says", "wider by"), *_conflict_rows(result)]
    cells: list[tuple[str, ...]] = [_HEAD, *rows(result)]
    why = _HEAD.index("why")
    if any(row[why] for row in cells[1:]):
        return cells
    return [row[:why] + row[why + 1 :] for row in cells]


def _conflict_rows(result: ShownResult) -> Iterator[tuple[str, str, str]]:
    for name, sentence, width in result.conflict:
        yield name, sentence, "" if width is None else shown(width, 0.0)


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
