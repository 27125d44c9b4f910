"""The results of the tables by table, data set, norm and run; and what is published of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from leofante_potyka import protocol
from leofante_potyka.runs import DRAWS, MAIN, TABLES, THINNED, Table

__all__ = ["BY_DISTANCE", "DRAWN", "GRID", "MEASURES", "NAMES", "NEAR", "NOISE", "Found", "listed"]

MEASURES = protocol.MEASURES
NAMES = {
    "k_distance": "k-distance",
    "k_diversity": "k-diversity",
    "set_distance_sum": "sum",
    "set_distance_max": "max",
}
#: A row is reached if all its means are within so much of the release's, relatively.
NEAR = 0.1
NOISE = f"noise {protocol.SEED}"
#: The number of a draw: of noise it is the seed.
DRAWN = (*range(DRAWS), *range(protocol.SEED, protocol.SEED + DRAWS))
GRID = tuple(table for table in sorted(TABLES, key=lambda table: table.number) if table.is_grid)
BY_DISTANCE = tuple(table for table in GRID if table.diversity == "distance")


@final
class Found:
    """The results by table, data set, norm and run.

    Parameters
    ----------
    results
        By key.
    names
        The data sets.
    rows
        Of the training parts, by data set.
    """

    def __init__(self, results: Mapping[str, Any], names: Sequence[str], rows: Mapping[str, int]) -> None:
        self.results = results
        self.names = names
        self.rows = rows
        paper = protocol.published()
        self.paper = {(row["table"], row["data"], row["norm"], row["method"]): row for row in paper["rows"]}
        self.differs = paper["differs"]
        self.release = {(row["table"], row["data"], row["norm"]): row for row in paper["grid"]}

    @property
    def has_weights(self) -> bool:
        """Whether the released networks were asked."""
        return any(key.endswith(NOISE) for key in self.results)

    @property
    def complete(self) -> list[str]:
        """The data sets that are the release's own."""
        return [name for name in self.names if name not in THINNED]

    def get(self, table: Table, name: str, norm: str, run: str) -> Any:
        """Return a result; None where there is none."""
        return self.results.get(f"{table.number}/{name}/{norm}/{run}")

    def mean(self, table: Table, name: str, norm: str, run: str, measure: str) -> float:
        """Return the mean of a measure over the pairs of a run."""
        return float(self.get(table, name, norm, run)["measures"][measure][0])

    def draws(self, table: Table, name: str, norm: str, kind: str, measure: str) -> list[float]:
        """Return the means of a measure in all runs of a kind."""
        runs = [self.get(table, name, norm, f"{kind} {draw}") for draw in DRAWN]
        return [float(run["measures"][measure][0]) for run in runs if run is not None]

    def of_main(self, name: str, norm: str, measure: str) -> tuple[float, float]:
        """Return mean and spread of a measure in the table that is drawn."""
        run = NOISE if self.has_weights else "network 0"
        mean, spread = self.get(MAIN, name, norm, run)["measures"][measure]
        return float(mean), float(spread)


def listed(words: Sequence[str]) -> str:
    """Return words for a sentence."""
    return "; ".join(words) if words else "none"
