"""One answer as a short table: every value, and what it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

from ceopt.solution.cells import html_table, shown, shown_move, shown_value, text_table
from ceopt.words.changes import ToldAnswer, feature_of, unit_of

__all__ = ["answer_to_html", "answer_to_text"]

#: Rows up to which columns that stay are listed as well.
_MOST_ROWS: Final = 60


class ShownAnswer(ToldAnswer, Protocol):
    """What a table says of a :class:`~ceopt.Counterfactual`."""

    @property
    def rank(self) -> int:
        """1 for the best."""

    @property
    def cost(self) -> float:
        """What it costs."""

    @property
    def prediction(self) -> Any:
        """What the user's own model says."""

    @property
    def listed(self) -> tuple[str, ...]:
        """The columns that change or are held."""


def answer_to_text(answer: ShownAnswer) -> str:
    """Lay out the values of an answer in columns, and beside those that change what they were."""
    return text_table(_headline(answer), _cells(answer))


def answer_to_html(answer: ShownAnswer) -> str:
    """Write the same as an HTML table."""
    return html_table(_headline(answer), _cells(answer))


def _headline(answer: ShownAnswer) -> str:
    names = answer.values.index
    line = f"answer {answer.rank}, cost {answer.cost:.4g}, prediction {shown(answer.prediction)}"
    if len(names) > _MOST_ROWS:
        line += f"; {len(names) - len(answer.listed)} columns stay"
    return line


def _cells(answer: ShownAnswer) -> list[tuple[str, ...]]:
    """Return titles, and a row a column; of many columns, only what is listed as a change."""
    names = list(answer.values.index)
    if len(names) > _MOST_ROWS:
        names = list(answer.listed)
    cells: list[tuple[str, ...]] = [("column", "value", "before"), *_rows(answer, names)]
    if any(was for _, _, was in cells[1:]):
        return cells
    return [row[:2] for row in cells]


def _rows(answer: ShownAnswer, names: list[str]) -> Iterator[tuple[str, str, str]]:
    values = answer.values
    before = answer.factual
    for name in names:
        feature = feature_of(answer.space, name)
        was = ""
        value = shown_value(values[name], feature)
        if name in answer.changed:
            home = None if before is None else before[name]
            was, value = shown_move(home, values[name], feature, answer.printed.get(name))
            was = was if before is not None else ""
        unit = unit_of(feature)
        if unit:
            value = f"{value} {unit}"
        yield name, value, was
