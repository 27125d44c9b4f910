"""What is asked for the tables: each a result of its own, so that a run that was interrupted goes on."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np

from ceopt.diverse import DiverseRobustExplainer
from leofante_potyka import protocol

__all__ = ["DRAWS", "MAIN", "MOMENTA", "SHARES", "TABLES", "THINNED", "Table", "wanted"]

#: Of everything that is random.
DRAWS = 5
#: Shares of the training rows, for the data of which the release has more.
SHARES = (0.25, 0.5)
THINNED = ("credit", "news")
MOMENTA = (0.9, 0.0)


@final
@dataclass(frozen=True, slots=True)
class Table:
    """One of the paper's tables: its filter, its minimisation, which rows it is about and how many copies of each."""

    number: int
    diversity: str
    tolerance: float | None
    rows: range
    copies: int

    @property
    def is_grid(self) -> bool:
        """Whether it is of the validation rows, of which the release draws a copy again until it keeps its class."""
        return self.copies == 1

    @property
    def title(self) -> str:
        """What the table holds."""
        step = "no minimisation" if self.tolerance is None else f"gamma = {self.tolerance}"
        which = "validation rows, a copy each" if self.is_grid else f"test rows, {self.copies} copies each"
        return f"Table {self.number}: {self.diversity}, beta = 0.5, {step}, {which}"


TABLES = (
    Table(6, "distance", 0.1, protocol.VALIDATION_ROWS, 1),
    Table(8, "distance", None, protocol.VALIDATION_ROWS, 1),
    Table(9, "angle", 0.1, protocol.TEST_ROWS, protocol.COPIES),
    Table(10, "angle", None, protocol.TEST_ROWS, protocol.COPIES),
    Table(5, "angle", 0.1, protocol.VALIDATION_ROWS, 1),
    Table(7, "angle", None, protocol.VALIDATION_ROWS, 1),
)
#: The table of which the figure is.
MAIN = TABLES[2]
Result = dict[str, Any]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A data set and what decides on it."""

    split: protocol.Split
    predict: Callable[[Any], Any]
    alpha: int


@cache
def released(name: str, seed: int | None = None) -> Setting:
    """Return a data set with the released network: the release's split, or another one."""
    file = protocol.network_file()
    if file is None:
        raise FileNotFoundError("CEOPT_NN003 names no file of the released weights.")
    split = protocol.of_release(name) if seed is None else protocol.load(name, seed)
    return Setting(split, protocol.released(file, name).predict, protocol.ALPHA[name])


@cache
def trained(name: str, seed: int) -> Setting:
    """Return a data set of which the split and the network are of one seed."""
    if name == "loans":
        split = protocol.loans(seed)
        return Setting(split, protocol.retrained(split, seed, epochs=5).predict, 50)
    split = protocol.load(name, seed)
    return Setting(split, protocol.retrained(split, seed).predict, protocol.ALPHA[name])


def ask(
    known: Setting,
    table: Table,
    norm: str,
    *,
    seed: int = protocol.SEED,
    variant: str = "released",
    copies: int | None = None,
    rows: protocol.Floats | None = None,
) -> Result:
    """Return measures over all pairs; the time is that of the first explanation, as in the paper.

    Parameters
    ----------
    known, table, norm
        What is asked.
    seed
        Of the noise.
    variant
        Of the explainer.
    copies
        Of each row; None: the table's. Of several those of another class are left out.
    rows
        The rows that candidates are taken from; None: the training part.
    """
    explainer = DiverseRobustExplainer(
        distance=norm,
        alpha=known.alpha,
        diversity=table.diversity,
        beta=0.5,
        tolerance=table.tolerance,
        variant=variant,
    ).fit(known.split.train if rows is None else rows)
    copies = table.copies if copies is None else copies
    found: list[dict[str, float]] = []
    seconds: list[float] = []
    counts: list[int] = []
    invalid = 0
    for pair in protocol.pairs(known.split, known.predict, table.rows, copies=copies, seed=seed, again=copies == 1):
        began = time.process_time()
        first = protocol.answers(explainer, known.predict, pair.row, pair.label)
        seconds.append(time.process_time() - began)
        others = [protocol.answers(explainer, known.predict, copy, pair.label) for copy in pair.copies]
        for answers in (first, *others):
            counts.append(len(answers))
            invalid += int((known.predict(answers) == pair.label).sum()) if len(answers) else 0
        found += [protocol.measured(pair.row, first, other, norm) for other in others if len(first) and len(other)]
    return {
        "measures": protocol.summary(found),
        "pairs": len(found),
        "answers": sum(counts),
        "per_row": float(np.mean(counts)),
        "invalid": invalid,
        "cpu_s": float(np.median(seconds)),
    }


def network(name: str, momentum: float, seed: int) -> Result:
    """Return what a network of a momentum knows: its accuracy, and how often it says what is said less often."""
    split = protocol.load(name, seed)
    if momentum == MOMENTA[0]:
        predict = trained(name, seed).predict
    else:
        predict = protocol.retrained(split, seed, momentum=momentum).predict
    said = np.asarray(predict(split.test))
    return {
        "accuracy": float(np.mean(said == split.test_labels)),
        "majority": float(max(np.mean(split.test_labels), 1.0 - np.mean(split.test_labels))),
        "rarer": float(min(np.mean(said), 1.0 - np.mean(said))),
    }


# ---- what is wanted --------------------------------------------------------------------------------------------------
def wanted(
    names: Sequence[str], *, has_weights: bool, fast: bool, networks: Sequence[str] | None = None
) -> Iterator[tuple[str, Callable[[], Result]]]:
    """Give every result that is wanted, by its key, and how it is made; networks are trained of all data if None."""
    if fast:
        for table, name, norm in itertools.product(TABLES, names, protocol.NORMS):
            few = Table(table.number, table.diversity, table.tolerance, range(3), table.copies)
            yield f"{table.number}/{name}/{norm}/network 0", lambda n=name, t=few, p=norm: ask(trained(n, 0), t, p)
        return
    if has_weights:
        yield from _of_release(names)
        yield from _why(names)
    yield from _random([name for name in names if networks is None or name in networks])


def _of_release(names: Sequence[str]) -> Iterator[tuple[str, Callable[[], Result]]]:
    """Give the tables with the released weights: the release's noise first, then other noise."""
    seeds = range(protocol.SEED, protocol.SEED + DRAWS)
    for seed, table, name, norm in itertools.product(seeds, TABLES, names, protocol.NORMS):
        yield (
            f"{table.number}/{name}/{norm}/noise {seed}",
            lambda n=name, t=table, p=norm, s=seed: ask(released(n), t, p, seed=s),
        )


def _why(names: Sequence[str]) -> Iterator[tuple[str, Callable[[], Result]]]:
    """Give the runs that show causes: the paper's text, three copies, fewer rows, other splits."""
    grid = [table for table in TABLES if table.is_grid]
    for table, name, norm in itertools.product(grid, names, protocol.NORMS):
        key = f"{table.number}/{name}/{norm}"
        yield f"{key}/paper", lambda n=name, t=table, p=norm: ask(released(n), t, p, variant="paper")
        yield f"{key}/three copies", lambda n=name, t=table, p=norm: ask(released(n), t, p, copies=protocol.COPIES)
    by_distance = [table for table in grid if table.diversity == "distance"]
    missing = [name for name in names if name in THINNED]
    for draw, name, share, table, norm in itertools.product(range(DRAWS), missing, SHARES, by_distance, protocol.NORMS):
        yield (
            f"{table.number}/{name}/{norm}/share {share} {draw}",
            lambda n=name, t=table, p=norm, s=share, d=draw: ask(
                released(n), t, p, rows=protocol.thinned(released(n).split, s, d)
            ),
        )
    for draw, table, norm in itertools.product(range(DRAWS), by_distance, protocol.NORMS):
        if "news" in names:
            yield (
                f"{table.number}/news/{norm}/split {draw}",
                lambda t=table, p=norm, d=draw: ask(released("news", d), t, p),
            )


def _random(names: Sequence[str]) -> Iterator[tuple[str, Callable[[], Result]]]:
    """Give the tables with everything drawn: split, network and noise; and what the networks know."""
    for seed, name in itertools.product(range(DRAWS), names):
        for table, norm in itertools.product(TABLES, protocol.NORMS):
            yield (
                f"{table.number}/{name}/{norm}/network {seed}",
                lambda n=name, t=table, p=norm, s=seed: ask(trained(n, s), t, p, seed=protocol.SEED + s),
            )
        if name != "loans":
            for momentum in MOMENTA:
                yield f"momentum {momentum}/{name}/{seed}", lambda n=name, m=momentum, s=seed: network(n, m, s)
