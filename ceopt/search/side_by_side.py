"""The searches of many people side by side: the user's own model is asked about all of them in a few calls."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from ceopt.search.search import search_in_parts
from ceopt.search.solve_program import Person
from ceopt.search.state import Predictions, person_of
from ceopt.solvers.errors import CeoptError

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.result.solution_set import SolutionSet
    from ceopt.search.nearer import Point
    from ceopt.search.prepare import Prepared

#: Rows that are predicted in one call: a call then costs each less than its own search.
_AT_ONCE: Final = 64
#: Seconds that a point waits for others, which is what Ctrl-C loses at most of rows that are nearly finished.
_WAIT_S: Final = 2.0

#: A row's number, its search, and the points that the model is to be asked about.
_Waiting: TypeAlias = "tuple[int, Generator[Sequence[Point], None, SolutionSet], Sequence[Point]]"
#: What stands for a person whose search raised an error.
Failed: TypeAlias = "Callable[[pd.DataFrame, Exception], SolutionSet]"


def search_side_by_side(prepared: Prepared, rows: pd.DataFrame, failed: Failed) -> Iterator[tuple[int, SolutionSet]]:
    """Give the number and the result of each row as soon as it is there; nobody's depends on who is beside them.

    People are searched for one after the other up to the point that is to be checked. Then the model is asked about the
    points of some of them at once, and they go on. Ctrl-C raises KeyboardInterrupt after those who have waited.

    Parameters
    ----------
    prepared
        Model and settings.
    rows
        In raw units.
    failed
        Makes the result of a row whose search raises.
    """
    predictions = Predictions()
    waiting: list[_Waiting] = []
    asked: list[_Waiting] = []
    began = 0.0
    try:
        for place, query_id in enumerate(rows.index):
            if place % _AT_ONCE == 0:
                people = _people(prepared, rows.iloc[place : place + _AT_ONCE])
                known = [person for person in people if isinstance(person, Person)]
                predictions.ask(prepared, [person.factual for person in known])
                predictions.expect(prepared, known)
            row = people[place % _AT_ONCE]
            asked = [(place, search_in_parts(prepared, row, query_id=query_id, predictions=predictions), [])]
            while asked:
                number, search, _ = asked.pop(0)
                try:
                    points = next(search)
                except StopIteration as ended:
                    yield number, ended.value
                except Exception as error:  # noqa: BLE001 - nobody else's answers are lost to one's failure
                    yield number, failed(rows.iloc[[number]], error)
                else:
                    if not waiting:
                        began = time.monotonic()
                    waiting.append((number, search, points))
                is_last = place == len(rows) - 1
                is_full = is_last or len(waiting) >= _AT_ONCE or time.monotonic() - began >= _WAIT_S
                if waiting and not asked and is_full:
                    _ask(prepared, predictions, waiting)
                    asked, waiting = waiting, []
    except KeyboardInterrupt:
        _ask(prepared, predictions, waiting)
        yield from _finished([*asked, *waiting])
        raise


def _ask(prepared: Prepared, predictions: Predictions, waiting: Sequence[_Waiting]) -> None:
    """Ask the model about all points that are waited for."""
    predictions.ask(prepared, [point for _, _, points in waiting for point in points])


def _finished(begun: Sequence[_Waiting]) -> Iterator[tuple[int, SolutionSet]]:
    """Give the results of those who waited for the check of their points; another Ctrl-C ends this too."""
    for number, search, _ in begun:
        try:
            while True:
                next(search)
        except StopIteration as ended:
            yield number, ended.value
        except Exception:  # noqa: BLE001, S112 - who has failed is not finished
            continue


def _people(prepared: Prepared, rows: pd.DataFrame) -> list[Person | pd.DataFrame]:
    """Return who is asked about; a row that is refused stays, and is refused when its turn comes."""
    people: list[Person | pd.DataFrame] = []
    for place, values in enumerate(rows.itertuples(index=False, name=None)):
        try:
            people.append(person_of(prepared, dict(zip(rows.columns, values, strict=True))))
        except CeoptError:
            people.append(rows.iloc[[place]])
    return people


@contextmanager
def garbage_of_before_kept() -> Iterator[None]:
    """Let the collector look at new objects alone: over a model's hundreds of thousands it takes .1 s each time."""
    is_frozen = gc.get_freeze_count() > 0
    if not is_frozen:
        gc.freeze()
    try:
        yield
    finally:
        if not is_frozen:
            gc.unfreeze()
