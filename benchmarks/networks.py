"""A network of 2 x 20 ReLU neurons on HELOC and Adult: ceopt against OMLT's partition form, interleaved row by row."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple, final

import answers
import common
import numpy as np
import pandas as pd
import peers
from question import Question
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from ceopt.search.prepare import Prepared, prepare
from ceopt.search.search import search
from ceopt.settings import Settings

TITLE = "Networks: ceopt against OMLT's partition form"
MEASURES = ("formulations/predictors/embed/networks.py", "ceopt/search")

DATA_SETS = ("heloc", "adult")
WIDTH = 20
RELATIVE_GAP = 1e-6
OMLT_PARTITION = "OMLT's partition form"


class Way(NamedTuple):
    """Who is asked, and its options: settings of ceopt, or of a peer."""

    who: str
    options: dict[str, str]


HIGHS = {"solver": "highs"}
#: Ways to ask the same question.
WAYS = {"ceopt": Way("ceopt", HIGHS), OMLT_PARTITION: Way("OMLT", {"formulation": "ReluPartitionFormulation"})}
MORE_WAYS = {
    "OMLT's big-M form": Way("OMLT", {"formulation": "ReluBigMFormulation"}),
    "ceopt, partition form": Way("ceopt", HIGHS | {"formulation": "partition"}),
    "ceopt, extended form": Way("ceopt", HIGHS | {"formulation": "extended"}),
}


@final
class Cell:
    """A network on a data set: read once, then asked for each person in every way."""

    def __init__(self, data_set: str, network: MLPClassifier, ways: dict[str, Way], rows: int, limit_s: float) -> None:
        self.task, self.ways = common.as_amounts(common.load(data_set)), ways
        self.model: Pipeline = common.fit(self.task, network)
        self.people = common.rejected(self.task, self.model, rows)
        self.prepared: dict[str, Prepared] = {
            name: prepare(
                self.model,
                self.task.bunch.space,
                Settings(target=self.task.target, time_limit_s=limit_s, relative_gap=RELATIVE_GAP, **way.options),
                data=self.task.train,
            )
            for name, way in ways.items()
            if way.who == "ceopt"
        }
        self.margin = next(iter(self.prepared.values())).margin
        for name in ways:  # imports and first compilations
            self.ask(name, self.people.iloc[[0]], 1.0)

    def ask(self, name: str, row: pd.DataFrame, limit_s: float) -> dict[str, Any]:
        """Ask for one person in one way; the clock covers building, solving, and ceopt's start and checks."""
        way = self.ways[name]
        if way.who == "ceopt":
            record = common.timed(lambda: self._ceopt(name, row), limit_s)
        else:
            question = Question.of(self.model, row, self.task, margin=self.margin)
            peer = peers.PEERS[way.who].make(**way.options, relative_gap=RELATIVE_GAP)
            record = common.timed(lambda: peers.ask(peer, self.model[-1], question, limit_s), limit_s)
            record["size"] = peer.size()
            if record.pop("codes", None):
                record["found"] = question.answer(record["values"])
        found = record.pop("found", None)
        if found is not None:
            wrong = answers.faults(found.reset_index(drop=True), row.reset_index(drop=True), self.model, self.task)
            record["invalid"] = bool(wrong)
        return record

    def _ceopt(self, name: str, row: pd.DataFrame) -> dict[str, Any]:
        with common.sizes() as sizes:
            result = search(self.prepared[name], row)
        record: dict[str, Any] = {"status": str(result.status), "size": sizes[0] if sizes else {}}
        record |= {"proof": result.proof, "bound": result.bound, "timings": dict(result.timings)}
        return record | ({"cost": result[0].cost, "found": result[0].frame} if len(result) else {})

    def asked(self, journal: common.Journal, about: dict[str, Any], limit_s: float, bar: Any) -> None:
        """Ask for everyone in every way, interleaved, where the journal has no answer yet."""
        for place in range(len(self.people)):
            for name in common.rotated(list(self.ways), place):
                self.once(journal, about, place, name, limit_s)
                bar.update()

    def once(self, journal: common.Journal, about: dict[str, Any], place: int, name: str, limit_s: float) -> None:
        """Ask for one person in one way where the journal has no answer yet and the way's median is open."""
        cell = "/".join(map(str, about.values()))
        if f"{cell}/{place}/{name}" in journal.done:
            return
        before = [r for r in journal.records if r.get("way") == name and r["key"].startswith(f"{cell}/")]
        given_up = sum(r["timed_out"] for r in before) > len(self.people) / 2
        least = min((r["cpu"] for r in before if r["timed_out"]), default=limit_s)
        record = _not_asked(limit_s, least) if given_up else self.ask(name, self.people.iloc[[place]], limit_s)
        label = str(self.people.index[place])
        journal.add(f"{cell}/{place}/{name}", about | {"row": label, "way": name} | record)


def main() -> None:
    """Run every way on every row, interleaved, and write the report."""
    logging.getLogger("pyomo").setLevel(logging.ERROR)  # OMLT sets values outside bounds
    options = common.arguments("Networks: ceopt against OMLT's partition form.", rows=20, limit=120)
    rows, limit_s = (2, 20) if options.quick else (options.rows, options.limit)
    there = peers.available()
    ways = {way: of for way, of in (WAYS | (MORE_WAYS if options.all else {})).items() if of.who in {"ceopt", *there}}
    settings = {"rows": rows, "limit_s": limit_s, "seed": common.SEED, "ways": list(ways)}
    settings["libraries"] = common.installed(["omlt"])
    journal = common.Journal("networks-quick" if options.quick else "networks", settings)
    with common.bar(None, len(DATA_SETS) * rows * len(ways)) as bar, threadpool_limits(1):
        for data_set in DATA_SETS:
            bar.set_description(data_set)
            about = {"data": data_set}
            if is_asked(journal, about, ways, rows):
                bar.update(rows * len(ways))
                continue
            network = MLPClassifier((WIDTH, WIDTH), early_stopping=True, random_state=common.SEED)
            Cell(data_set, network, ways, rows, limit_s).asked(journal, about, limit_s, bar)
    write(journal, settings, quick=options.quick)


def is_asked(journal: common.Journal, about: dict[str, Any], ways: Iterable[str], rows: int) -> bool:
    """Whether the journal has everyone's answers in every way."""
    cell = "/".join(map(str, about.values()))
    return all(f"{cell}/{place}/{way}" in journal.done for place in range(rows) for way in ways)


def _not_asked(limit_s: float, cpu_s: float) -> dict[str, Any]:
    """Return the record of a way whose median is known: it timed out on more than half of the people already."""
    return {"status": "not asked", "seconds": limit_s, "cpu": cpu_s, "timed_out": True}


ABOUT = (
    "Network of two layers of {width} ReLU neurons, trained with early stopping at the end of a pipeline, {rows} "
    "people per data set whom it rejects, drawn with seed {seed}; cost l1, HiGHS on one thread with relative gap "
    "{gap:g}, {limit_s} s. Same costs, margin and reach for all: OMLT's bounds of the inputs are the person's reach. "
    "Reading the model, and stating reach and codes for OMLT, happen before the clock starts; ceopt's time holds the "
    "search for a start, bounds, building, solving and checking, OMLT's building and solving. Ways take turns row by "
    "row. A time-out counts as the limit; who has timed out on more than half of a data set's people is asked no "
    "further, and the rest count as time-outs. CPU seconds are of this process.\n\n"
)


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Compare the ways, and keep what was found."""
    ratios = []
    for data_set in DATA_SETS:
        by_way = _by_way(journal.records, data_set, settings["ways"])
        ratios += [
            {"data": data_set, "against": way, "timed_out": sum(r["timed_out"] for r in part)}
            | {what: common.ratios(by_way["ceopt"], part, what) for what in ("seconds", "cpu")}
            for way, part in by_way.items()
            if way != "ceopt"
        ]
    proved = Counter((r["data"], r["row"]) for r in journal.records if r["status"] == "optimal" and not r["invalid"])
    totals = {
        "ratios": ratios,
        "rows_proved_in_every_way": sum(count == len(settings["ways"]) for count in proved.values()),
        "greatest_relative_difference_of_proved_optima": max(
            common.disagreement([r for r in journal.records if r["data"] == data_set]) for data_set in DATA_SETS
        ),
        "invalid_answers": {
            way: sum(r.get("invalid", False) for r in journal.records if r["way"] == way) for way in settings["ways"]
        },
    }
    record = {"settings": settings, "totals": totals, "records": journal.records}
    common.report("networks", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


def _by_way(records: list[dict[str, Any]], data_set: str, ways: list[str]) -> dict[str, list[dict[str, Any]]]:
    return {way: [r for r in records if (r["data"], r["way"]) == (data_set, way)] for way in ways}


def text_of(record: dict[str, Any]) -> str:
    """Summarise by data set and way, and the ratios of OMLT's times to ceopt's."""
    settings, totals = record["settings"], record["totals"]
    lines = []
    for data_set in DATA_SETS:
        for way, part in _by_way(record["records"], data_set, settings["ways"]).items():
            lines.append([data_set, way, *cells(part)])
    return (
        ABOUT.format(width=WIDTH, gap=RELATIVE_GAP, **settings)
        + common.markdown_table(
            ["data", "way", "statuses", "invalid", "variables/binaries/rows", "seconds: median / 90 % / worst",
             "CPU seconds", "sum of seconds"], lines)
        + "\n\n"
        + common.markdown_table(
            ["data", "ceopt is faster than", "by medians", "by sums", "median of ratios", "CPU: by medians",
             "CPU: by sums", "the other's time-outs"],
            [[r["data"], r["against"], *(f"{v:.1f}" for v in r["seconds"].values()),
              *(f"{r['cpu'][k]:.1f}" for k in ("medians", "sums")), r["timed_out"]] for r in totals["ratios"]])
        + f"\n\n{totals['rows_proved_in_every_way']} people have proved and valid answers in every way. Proved optima "
        + f"differ by at most {totals['greatest_relative_difference_of_proved_optima']:.1e}, relatively."
        + ("" if OMLT_PARTITION in settings["ways"] else "\n\nOMLT could not be imported: not asked.")
        + "".join(f" {name} {version}." for name, version in settings["libraries"].items())
    )  # fmt: skip


def cells(part: list[dict[str, Any]]) -> list[Any]:
    """Return statuses, invalid answers, size, seconds of wall and processor, and their sum."""
    counts = Counter("time-out" if r["timed_out"] else r["status"] for r in part)
    sizes = [r["size"] for r in part if r.get("size")]
    parts = ("variables", "binaries", "rows") if sizes else ()
    size = "/".join(str(round(float(np.median([size[key] for size in sizes])))) for key in parts)
    seconds, cpu = [r["seconds"] for r in part], [r["cpu"] for r in part]
    return [
        ", ".join(f"{status} {count}" for status, count in counts.items()),
        sum(r.get("invalid", False) for r in part),
        size or "-",
        common.spread(seconds, 2),
        common.spread(cpu, 2),
        f"{sum(seconds):.1f}",
    ]


if __name__ == "__main__":
    main()
