"""Three answers for a rejected person: distinct ones beside the pool's, what they cost, and how diverse they are.

Where dice-ml is installed, its three methods are asked the same. What an answer changes, and whether it is more of an
earlier one, is counted by code of this script that uses nothing of ceopt.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import answers as checks
import common
import numpy as np
import pandas as pd
from changes import length, moves, repeats, supersets
from raw_dice import METHODS, RawDice
from sklearn.ensemble import RandomForestClassifier

from ceopt.metrics import suite
from ceopt.search.prepare import Prepared, prepare
from ceopt.search.search import search
from ceopt.settings import Settings

sys.path.insert(0, str(common.ROOT / "examples" / "papers"))  # whether dice-ml is there is the examples' to say

from shared.dice import is_installed

TITLE = "Distinct answers"
MEASURES = ("ceopt/search", "formulations/constraints/diversity", "formulations/predictors/embed/trees.py")

ANSWERS = 3
TREES, DEPTH = 50, 6
#: What is asked of ceopt.
WAYS: Mapping[str, Mapping[str, Any]] = {
    "pool": {"diversity": "pool"},
    "distinct": {"diversity": "distinct"},
    "distinct, few changes": {"diversity": "distinct", "cost": "few_changes"},
}
#: Metrics of the papers: suite, metric, as the table says it.
DIVERSITIES = (
    ("dice2020", "continuous_diversity", "DiCE, numbers"),
    ("dice2020", "categorical_diversity", "DiCE, categories"),
    ("dice2020", "count_diversity", "DiCE, count"),
    ("leofante_potyka2024", "k_diversity_l1", "k-diversity, l1"),
    ("leofante_potyka2024", "k_diversity_l2", "k-diversity, l2"),
    ("copa2022", "diversity", "COPA, det K"),
)


# ---- counted ------------------------------------------------------------------------------------------------------
def counted(row: pd.DataFrame, rows: pd.DataFrame, model: Any, task: common.Task) -> dict[str, Any]:
    """Return what is to be said of the answers of one person, the cheapest first as they come."""
    schema = common.schema_of(task.bunch.name)
    changed = [moves(row, answer, schema) for _, answer in rows.iterrows()]
    faults = 0
    for place in range(len(rows)):
        faults += bool(checks.faults(rows.iloc[[place]].reset_index(drop=True), row, model, task))
    return {
        "answers": len(rows),
        "supersets": supersets(changed),
        "same_ways": repeats(changed),
        "invalid": faults,
        "columns": [len(each) for each in changed],
        "lengths": [length(row, answer, task) for _, answer in rows.iterrows()],
        "diversity": diversity(row, rows, model, task),
    }


def diversity(row: pd.DataFrame, rows: pd.DataFrame, model: Any, task: common.Task) -> dict[str, float]:
    """Return the metrics of the papers; of fewer than two answers there are none."""
    if len(rows) < 2:
        return {}
    found = {}
    for name in dict.fromkeys(name for name, _, _ in DIVERSITIES):
        values = suite(
            name, rows.reset_index(drop=True), factual=row.iloc[0], space=task.bunch.space, model=model,
            target=task.target, data=task.train, n=ANSWERS, missing="nan",
        )  # fmt: skip
        for of, metric, _ in DIVERSITIES:
            if of == name and not np.isnan(values[metric]):  # without categories there is no diversity of them
                found[metric] = float(values[metric])
    return found


# ---- the run ---------------------------------------------------------------------------------------------------------
def main() -> None:
    """Ask all ways about every person, interleaved, and write the report."""
    options = common.arguments("Distinct answers on real data.", rows=100, limit=60)
    rows = 2 if options.quick else options.rows
    methods = METHODS if is_installed() else ()
    ways = [*WAYS, *(f"dice-ml, {method}" for method in methods)]
    settings = {
        "rows": rows, "limit_s": options.limit, "seed": common.SEED, "answers": ANSWERS, "trees": TREES,
        "depth": DEPTH, "ways": ways, "dice": common.installed(("dice-ml",)),
    }  # fmt: skip
    journal = common.Journal("distinct-quick" if options.quick else "distinct", settings)
    with common.bar(None, rows * len(ways) * len(common.DATA_SETS)) as bar:
        for name in common.DATA_SETS:
            run(common.load(name), ways, rows, options.limit, journal=journal, bar=bar)
    record = {"settings": settings, "records": journal.records}
    common.report("distinct", TITLE, MEASURES, text_of, record, quick=options.quick)
    journal.close()


def run(task: common.Task, ways: Sequence[str], rows: int, limit_s: int, *, journal: common.Journal, bar: Any) -> None:
    """Ask about the people of one data set who are not in the journal yet."""
    name = task.bunch.name
    keys = [f"{name}/{place}/{way}" for place in range(rows) for way in ways]
    bar.set_description(name)
    if all(key in journal.done for key in keys):
        bar.update(len(keys))
        return
    model = common.fit(task, RandomForestClassifier(TREES, max_depth=DEPTH, random_state=common.SEED, n_jobs=1))
    people = common.rejected(task, model, rows)
    asked = {
        way: prepare(
            model, task.bunch.space, Settings(target=task.target, n=ANSWERS, time_limit_s=limit_s, **WAYS[way]),
            data=task.train,
        )
        for way in WAYS
    }  # fmt: skip
    dice = RawDice(task, model) if len(ways) > len(WAYS) else None
    for way in WAYS:
        search(asked[way], people.iloc[[0]])  # the first pays for imports
    for place in range(len(people)):
        row = people.iloc[[place]]
        for way in common.rotated(list(ways), place):
            key = f"{name}/{place}/{way}"
            if key not in journal.done:
                if way in asked:
                    record = ours(asked[way], row, model, task)
                else:
                    record = theirs(dice, way.split(", ")[1], row, model, task, seed=place, limit_s=limit_s)
                journal.add(key, {"data": name, "row": str(people.index[place]), "way": way, **record})
            bar.update()


def ours(prepared: Prepared, row: pd.DataFrame, model: Any, task: common.Task) -> dict[str, Any]:
    """Ask ceopt about one person, and count."""
    began, cpu = time.perf_counter(), time.process_time()
    result = search(prepared, row)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    rows = pd.concat([answer.frame for answer in result]) if len(result) else row.iloc[:0]
    record = {"status": str(result.status), "complete": result.complete, "seconds": seconds, "cpu": cpu}
    return {
        **record,
        "proved": sum(answer.gap <= prepared.settings.relative_gap for answer in result),
        "costs": [answer.cost for answer in result],
        **counted(row, rows, model, task),
    }


def theirs(
    dice: RawDice | None, method: str, row: pd.DataFrame, model: Any, task: common.Task, *, seed: int, limit_s: int
) -> dict[str, Any]:
    """Ask dice-ml about one person, and count."""
    assert dice is not None  # noqa: S101 - its ways are asked where it is installed
    began, cpu = time.perf_counter(), time.process_time()
    status, rows = dice.ask(method, row, seed=seed, n=ANSWERS, limit_s=limit_s)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"status": status, "seconds": seconds, "cpu": cpu, **counted(row, rows, model, task)}


# ---- report ----------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Say what was asked, what came back, what it costs, and how diverse it is."""
    settings = record["settings"]
    found = record["records"]
    distinct = [r for r in found if r["way"].startswith("distinct")]
    more, again, invalid, of = (
        sum(r[what] for r in distinct) for what in ("supersets", "same_ways", "invalid", "answers")
    )
    asked = (
        f"{settings['rows']} people each whom a forest of {settings['trees']} trees of depth {settings['depth']} "
        f"rejects, drawn with seed {settings['seed']}, are asked about for {settings['answers']} answers, "
        f"{settings['limit_s']} s each, HiGHS on one thread, cost l1 by median absolute deviations (in the last way of "
        "ceopt 0.1 more for each column). An answer is a superset if it changes all columns that an earlier one does "
        "and more, and the same again if it changes the same columns, numbers, ordinal and binary columns to the same "
        f"side, categories to the same level: both are counted by code of this script. {_of_dice(settings)}"
    )
    reached = (
        f"Distinct answers that are a superset of an earlier one: {more} (to reach: 0), the same again: {again}, "
        f"refused by the model or the schema: {invalid}, of {of}."
    )
    wall, cpu = (sum(r[what] for r in found) for what in ("seconds", "cpu"))
    busy = (
        f"All ways together took {wall / cpu:.2f} times as many seconds of the clock as of the processor, as the "
        "machine did other things beside. The limit counts the clock."
    )
    price = (
        "What it costs to ask for distinct answers: the l1 length of each, mean over the people to whom both ways give "
        "all, and CPU seconds, mean over all people."
    )
    diverse = (
        "Diversity by the metrics of the papers (more is better), mean over the people to whom the way gives two "
        "answers at least; one answer has no diversity."
    )
    parts = [
        asked,
        busy,
        reached,
        common.markdown_table(COUNT_HEAD, _counts(found, settings)),
        price,
        common.markdown_table(PRICE_HEAD, _prices(found)),
        diverse,
        common.markdown_table(DIVERSITY_HEAD, _diversities(found, settings)),
    ]
    return "\n\n".join(parts)


COUNT_HEAD = (
    "data", "way", "people", "statuses", "answers", "fewer, as proved", "supersets", "the same again", "invalid",
    "columns changed", "seconds: median / 90 % / worst", "CPU seconds",
)  # fmt: skip
PRICE_HEAD = (
    "data", "people", "lengths by pool", "lengths of distinct", "times the pool's", "CPU by pool", "CPU of distinct",
    "times the pool's",
)  # fmt: skip
DIVERSITY_HEAD = ("data", "way", "people", *(text for _, _, text in DIVERSITIES))


def _of_dice(settings: Mapping[str, Any]) -> str:
    if not settings["dice"]:
        return "dice-ml was not installed where this was run (`benchmarks/README.md` says how it is asked as well)."
    libraries = ", ".join(f"{name} {version}" for name, version in settings["dice"].items())
    return (
        f"Its methods ({libraries}, defaults) are told what cannot change and what can only rise; its answers come in "
        "its own order."
    )


def _parts(found: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> list[tuple[str, str, list[Any]]]:
    """Return the records of each data set and way."""
    parts = []
    for name in common.DATA_SETS:
        for way in settings["ways"]:
            part = [r for r in found if (r["data"], r["way"]) == (name, way)]
            if part:
                parts.append((name, way, part))
    return parts


def _counts(found: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> list[list[Any]]:
    lines = []
    for name, way, part in _parts(found, settings):
        statuses = Counter(r["status"] for r in part).most_common()
        columns = [count for r in part for count in r["columns"]]
        fewer = sum(r["answers"] < settings["answers"] and r.get("complete", False) for r in part)
        lines.append(
            [
                name, way, len(part), ", ".join(f"{status} {count}" for status, count in statuses),
                sum(r["answers"] for r in part), fewer if way in WAYS else "-",
                *(sum(r[what] for r in part) for what in ("supersets", "same_ways", "invalid")),
                f"{np.mean(columns):.2f}" if columns else "-",
                common.spread([r["seconds"] for r in part], 2), common.spread([r["cpu"] for r in part], 2),
            ]
        )  # fmt: skip
    return lines


def _prices(found: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    lines = []
    for name in common.DATA_SETS:
        pool, distinct = (
            {r["row"]: r for r in found if (r["data"], r["way"]) == (name, way)} for way in ("pool", "distinct")
        )
        both = [row for row in pool if row in distinct and pool[row]["answers"] == distinct[row]["answers"] == ANSWERS]
        if not both:
            continue
        ranks = [np.mean([way[row]["lengths"] for row in both], axis=0) for way in (pool, distinct)]
        spent = [float(np.mean([r["cpu"] for r in way.values()])) for way in (pool, distinct)]
        lines.append(
            [
                name, f"{len(both)} of {len(pool)}", *(" / ".join(f"{mean:.3f}" for mean in means) for means in ranks),
                " / ".join(f"{b / a:.2f}" for a, b in zip(*ranks, strict=True)),
                *(f"{seconds:.2f}" for seconds in spent), f"{spent[1] / spent[0]:.2f}",
            ]
        )  # fmt: skip
    return lines


def _diversities(found: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> list[list[Any]]:
    lines = []
    for name, way, part in _parts(found, settings):
        known = [r["diversity"] for r in part if r["diversity"]]
        means = []
        for _, metric, _ in DIVERSITIES:
            values = [each[metric] for each in known if metric in each]
            means.append(f"{np.mean(values):.3f}" if values else "-")
        lines.append([name, way, len(known), *means])
    return lines


if __name__ == "__main__":
    main()
