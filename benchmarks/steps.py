"""What it costs to answer in the resolution of the data: each person asked with the steps of `infer` and without."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import product
from typing import Any

import common
import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

import ceopt
from ceopt.search.prepare import Prepared, prepare
from ceopt.search.search import search
from ceopt.settings import Settings

TITLE = "Answers in the resolution of the data"
MEASURES = (
    "ceopt/search",
    "formulations/columns",
    "formulations/space",
    "formulations/predictors/embed",
)

#: Those with columns of floats of at most three decimals: 2, 4, 2 and 55 of them.
DATA_SETS = ("diabetes", "no2", "gmsc", "spambase")
MODELS: dict[str, Any] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "forest": lambda: RandomForestClassifier(n_estimators=50, max_depth=6, random_state=common.SEED, n_jobs=1),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=50, max_depth=3, random_state=common.SEED),
    "network": lambda: MLPClassifier((10, 10), max_iter=1000, random_state=common.SEED),
}
WAYS = ("with steps", "without")
LIMIT_S = 60.0
#: The time with steps is to be at most so many times that without.
MOST = 1.5


class Cell:
    """A model on a data set, read once for each way to describe its columns."""

    def __init__(self, data_set: str, model: str, rows: int, limit_s: float) -> None:
        self.task = common.load(data_set)
        fitted = common.fit(self.task, MODELS[model]())
        self.people = common.rejected(self.task, fitted, rows)
        settings = Settings(target=self.task.target, time_limit_s=limit_s, why=False)
        self.prepared: dict[str, Prepared] = {}
        for way in WAYS:
            space = space_of(self.task, steps=way == "with steps")
            self.prepared[way] = prepare(fitted, space, settings, data=self.task.train)

    @property
    def stepped(self) -> int:
        """How many columns have a step that was inferred."""
        return sum(feature.step_inferred for feature in self.prepared["with steps"].space)

    def ask(self, way: str, row: pd.DataFrame) -> dict[str, Any]:
        """Ask for one person in one way; the clock covers building, solving and checking."""
        result = search(self.prepared[way], row)
        record: dict[str, Any] = {"status": str(result.status)}
        if len(result):
            record["cost"] = result[0].cost
            record["as_data"] = self._is_as_fine_as_the_data(result[0].values, row)
        return record

    def _is_as_fine_as_the_data(self, values: pd.Series[Any], row: pd.DataFrame) -> bool:
        """Tell whether each moved number has no more decimals than the data and the person's own; nothing of ceopt."""
        for feature in self.prepared["with steps"].space:
            before, after = float(row[feature.name].iloc[0]), float(values[feature.name])
            if feature.step is not None and before != after:
                places = max(_places(before), _places(feature.step))
                if _places(after) > places:
                    return False
        return True


def _places(number: float) -> int:
    """Return how many decimals a number is written with."""
    return len(np.format_float_positional(number, trim="-").partition(".")[2])


def space_of(task: common.Task, *, steps: bool) -> ceopt.FeatureSpace:
    """Return the columns as `infer` describes them, with what the schema says of their moves."""
    moves = {}
    for feature in task.bunch.space:
        moves[feature.name] = feature.direction if feature.mutable else "fixed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ceopt.SpaceWarning)  # its advice is not what is measured
        return ceopt.FeatureSpace.infer(task.train, moves=moves, steps=steps)


def main() -> None:
    """Ask in both ways, interleaved row by row, and write the report."""
    options = common.arguments(__doc__ or "", rows=50, limit=int(LIMIT_S))
    rows = 3 if options.quick else options.rows
    settings: dict[str, Any] = {"rows": rows, "limit_s": options.limit, "seed": common.SEED}
    journal = common.Journal("steps-quick" if options.quick else "steps", settings)
    cells = list(product(DATA_SETS, MODELS))
    stepped: dict[str, int] = {}
    with common.bar(None, len(cells) * rows * len(WAYS)) as bar, threadpool_limits(1):
        for data_set, model in cells:
            bar.set_description(f"{data_set}, {model}")
            cell = Cell(data_set, model, rows, options.limit)
            stepped[data_set] = cell.stepped
            for way in WAYS:  # imports and first compilations
                cell.ask(way, cell.people.iloc[[0]])
            for place, label in enumerate(cell.people.index):
                row = cell.people.loc[[label]]
                for way in common.rotated(list(WAYS), place):
                    key = f"{data_set}/{model}/{place}/{way}"
                    if key not in journal.done:
                        about = {"data": data_set, "model": model, "row": str(label), "way": way}
                        found = common.timed(partial(cell.ask, way, row), options.limit)
                        journal.add(key, about | found)
                    bar.update()
    record = {"settings": settings, "stepped": stepped, "records": journal.records}
    common.report("steps", TITLE, MEASURES, text_of, record, quick=options.quick)
    journal.close()


def text_of(record: dict[str, Any]) -> str:
    """Summarise by data set and model, then all together."""
    lines = []
    worst = 0.0
    for data_set, model in product(DATA_SETS, MODELS):
        part = [r for r in record["records"] if (r["data"], r["model"]) == (data_set, model)]
        both = {way: [r for r in part if r["way"] == way] for way in WAYS}
        if not part:
            continue
        times = common.ratios(both["without"], both["with steps"], "cpu")
        worst = max(worst, times["sums"])
        proved = " / ".join(str(sum(r["status"] == "optimal" for r in both[way])) for way in WAYS)
        fine = " / ".join(str(sum(r.get("as_data", False) for r in both[way])) for way in WAYS)
        dearer = _dearer(both)
        seconds = [common.spread([r["cpu"] for r in both[way]]) for way in WAYS]
        lines.append(
            [data_set, model, proved, fine, dearer, *seconds, f"{times['median']:.2f}", f"{times['sums']:.2f}"]
        )
    everything = {way: [_keyed(r) for r in record["records"] if r["way"] == way] for way in WAYS}
    overall = common.ratios(everything["without"], everything["with steps"], "cpu")
    wrong = _cheaper(record["records"])
    head = ["data", "model", "proved", "as fine as the data", "dearer by", *(f"{way}, CPU s" for way in WAYS)]
    stepped = ", ".join(f"{number} in {name}" for name, number in record["stepped"].items())
    return (
        f"`FeatureSpace.infer` gives floats of at most three decimals the step of their decimals ({stepped} columns); "
        f"`steps=False` leaves them free. {record['settings']['rows']} rejected people of each data set and model are "
        "asked in both ways, in turns, for one answer at the least l1 cost. Counts are with steps / without; seconds "
        'are median / 90 % / worst of CPU time, as the machine does other things too. "Dearer" is the median share by '
        "which the optimum of the grid costs more.\n\n"
        + common.markdown_table([*head, "median ratio", "ratio of sums"], lines)
        + f"\n\nAll together, the time with steps is {overall['sums']:.2f} times that without (median of the people: "
        f"{overall['median']:.2f}); the worst of the pairs of data set and model is {worst:.2f} by sums. At most "
        f"{MOST} was asked for. Proved optima of the grid that cost less than the proved optimum without one: {wrong}."
    )


def _keyed(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record whose row is told from those of other data sets and models."""
    return record | {"row": f"{record['data']}/{record['model']}/{record['row']}"}


def _pairs(both: dict[str, list[dict[str, Any]]]) -> list[tuple[float, float]]:
    """Return the proved costs (with steps, without) of each row that has both."""
    free = {r["row"]: r["cost"] for r in both["without"] if r["status"] == "optimal"}
    pairs = []
    for r in both["with steps"]:
        if r["status"] == "optimal" and r["row"] in free:
            pairs.append((r["cost"], free[r["row"]]))
    return pairs


def _dearer(both: dict[str, list[dict[str, Any]]]) -> str:
    shares = [a / b - 1.0 for a, b in _pairs(both) if b > 0.0]
    return f"{np.median(shares):.1e}" if shares else "-"


def _cheaper(found: list[dict[str, Any]]) -> int:
    both = {way: [_keyed(r) for r in found if r["way"] == way] for way in WAYS}
    return sum(a < b * (1.0 - 2e-5) for a, b in _pairs(both))  # of the margin 1e-5, and of the gap


if __name__ == "__main__":
    main()
