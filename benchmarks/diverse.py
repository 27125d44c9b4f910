"""Diverse robust sets against dice-ml's random, genetic and k-d tree methods: distance, robustness, time, validity."""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import common
import numpy as np

from ceopt.diverse import DiverseRobustExplainer

sys.path.insert(0, str(common.ROOT / "examples" / "papers"))  # the protocol of the paper is the example's

from leofante_potyka import dice, protocol
from shared.dice import PRECISION, is_installed

TITLE = "Diverse robust sets and dice-ml"

#: Lower is better; diversity is told beside them.
MEASURES = ("k_distance", "set_distance_sum", "set_distance_max")
#: Answers that are asked for.
WANTED = 5
#: Without a filter for diversity, as dice-ml's k-d tree is.
_NEAREST = {"diversity": "angle", "beta": 0.0, "tolerance": 0.01, "alpha": 50}
#: Settings of the explainer, each asked in both norms. The first is the paper's own choice, with its alpha.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "angle": {"diversity": "angle", "beta": 0.5, "tolerance": 0.1},
    "distance": {"diversity": "distance", "beta": 0.0, "tolerance": 0.01, "alpha": 50},
    "nearest": _NEAREST,
    "nearest, as they are": _NEAREST | {"tolerance": None},
    "nearest, columns": _NEAREST | {"put_back": "columns"},
    "nearest, all": _NEAREST | {"minimise": "all"},
    "nearest, from data": _NEAREST | {"origin": "data"},
    "nearest, all, from data": _NEAREST | {"minimise": "all", "origin": "data"},
    "nearest, all, from data, columns": _NEAREST | {"minimise": "all", "origin": "data", "put_back": "columns"},
    "nearest, all, columns": _NEAREST | {"minimise": "all", "put_back": "columns"},
}
#: What is held against dice-ml: of the settings that give so many answers a call on average and are so many times
#: faster than dice-ml's fastest method, the one of which the worst measure, relative to the best of dice-ml's methods,
#: is best on ten validation rows of each network (``--all --rows 10`` prints it).
LEAST_ANSWERS, LEAST_RATIO = 4.0, 10.0
CHOSEN: Mapping[str, str] = {
    "diabetes": "nearest, all",
    "no2": "nearest, all",
    "credit": "nearest, all, columns",
    "spambase": "nearest, from data",
    "news": "nearest, all, columns",
}


class Case:
    """A data set, a network and everybody who is asked about it."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self.split = protocol.load(name)
        self.network = protocol.retrained(self.split, seed)
        self.accuracy = float(self.network.score(self.split.test, self.split.test_labels))
        self.dice = dice.Dice(self.split, self.network)
        self.explainers = {
            (way, norm): DiverseRobustExplainer(**({"alpha": protocol.ALPHA[name]} | dict(options)), distance=norm).fit(
                self.split.train
            )
            for way, options in SETTINGS.items()
            for norm in protocol.NORMS
        }

    def asker(self, way: str, norm: str, limit_s: int) -> Callable[[Any, int, int], tuple[str, Any, Any]]:
        """Return what answers for a row, its label and a seed: how it ended, the answers, the raw ones."""
        if way in SETTINGS:
            explainer = self.explainers[way, norm]

            def ours(row: Any, label: int, _seed: int) -> tuple[str, Any, Any]:
                found = protocol.answers(explainer, self.network.predict, row, label, WANTED)
                return ("answered" if len(found) else "none"), found, found

            return ours
        return lambda row, _, seed: self.dice.ask(way, row, seed=seed, n=WANTED, limit_s=limit_s)


def ask(case: Case, pair: protocol.Pair, way: str, norm: str, limit_s: int) -> dict[str, Any]:
    """Ask about a row and its copies, and measure; dice-ml's answers are measured in both norms."""
    asker = case.asker(way, norm, limit_s)
    records, sets = [], []
    for k, row in enumerate([pair.row, *pair.copies]):
        seed = (case.seed * 1000 + pair.place) * 10 + k  # a fresh one for each call
        began, cpu = time.perf_counter(), time.process_time()
        status, answers, raw = asker(row, pair.label, seed)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        invalid = int((case.network.predict(answers) == pair.label).sum()) if len(answers) else 0
        records.append({"status": status, "answers": len(answers), "invalid": invalid, "seconds": seconds, "cpu": cpu})
        sets.append((answers, raw))
    measures: dict[str, list[dict[str, float]]] = {}
    for one in protocol.NORMS if norm == "both" else (norm,):
        for kind, suffix in ((0, ""), (1, " before sparsity")) if norm == "both" else ((0, ""),):
            first = sets[0][kind]
            others = [s[kind] for s in sets[1:] if len(s[kind]) and len(first)]
            measures[one + suffix] = [protocol.measured(pair.row, first, other, one) for other in others]
    return {"calls": records, "measures": measures, "pairs": len(pair.copies)}


def main() -> None:
    """Ask all ways about every row, interleaved, and write the report."""
    options = common.arguments("Diverse robust sets against dice-ml.", seeds=5, rows=20, limit=120)
    common.data_folder()
    seeds = 1 if options.quick else options.seeds
    # With --all the validation rows: what the settings are chosen on.
    place = protocol.VALIDATION_ROWS if options.all else protocol.TEST_ROWS
    rows = place[: 2 if options.quick else options.rows]
    if not is_installed():
        sys.exit("This benchmark asks dice-ml. Install benchmarks/requirements-dice.txt.")
    methods = dice.METHODS
    ways = [(way, norm) for way in SETTINGS for norm in protocol.NORMS] + [(way, "both") for way in methods]
    settings = {
        "seeds": seeds,
        "rows": [rows[0], rows[-1]],
        "limit_s": options.limit,
        "ways": {way: dict(words) for way, words in SETTINGS.items()},
        "dice": common.installed(("dice-ml",)),
    }
    name = "diverse-quick" if options.quick else "diverse-validation" if options.all else "diverse"
    journal = common.Journal(name, settings)
    cases = list(itertools.product(protocol.DATA_SETS, range(seeds)))
    bar = common.bar([], len(cases) * len(rows) * len(ways))
    for data, seed in cases:
        keys = [f"{data}/{seed}/{row}/{way}/{norm}" for row in rows for way, norm in ways]
        if all(key in journal.done for key in keys):
            bar.update(len(keys))
            continue
        case = Case(data, seed)
        warm(case, ways, options.limit)
        for key, pair, way, norm in turns(case, rows, ways):
            if key not in journal.done:
                record = ask(case, pair, way, norm, options.limit)
                about = {"data": data, "seed": seed, "row": pair.place, "way": way, "norm": norm}
                journal.add(key, {**about, "accuracy": case.accuracy, **record})
            bar.update()
    bar.close()
    write(journal, settings, [way for way, norm in ways if norm in {"l1", "both"}], quick=options.quick or options.all)


def turns(
    case: Case, rows: Sequence[int], ways: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, protocol.Pair, str, str]]:
    """Give all ways for each row, beginning with another at each."""
    for pair in protocol.pairs(case.split, case.network.predict, rows):
        turn = pair.place % len(ways)
        for way, norm in [*ways[turn:], *ways[:turn]]:
            yield f"{case.name}/{case.seed}/{pair.place}/{way}/{norm}", pair, way, norm


def warm(case: Case, ways: Sequence[tuple[str, str]], limit_s: int) -> None:
    """Ask each way once before the clock counts: the first call pays for imports and tables."""
    row = case.split.test[-1]
    label = int(case.network.predict(row[None, :])[0])
    for way, norm in ways:
        case.asker(way, norm, limit_s)(row, label, 0)


# ---- report ----------------------------------------------------------------------------------------------------------
COLUMNS = tuple(itertools.product(protocol.NORMS, MEASURES))
TIME_HEAD = (
    "data", "dice-ml", "invalid answers", "calls without one", "ceopt, CPU ms", "dice-ml, CPU ms", "ratio", "of means",
)  # fmt: skip
HEAD = ("data", "way", *(f"{measure.replace('_', ' ')}, {norm}" for norm, measure in COLUMNS))


def write(journal: common.Journal, settings: dict[str, Any], ways: Sequence[str], *, quick: bool) -> None:
    """Summarise by data set and way; say where ceopt is not better, and how many times faster it is."""
    records = journal.records
    names = [name for name in protocol.DATA_SETS if any(r["data"] == name for r in records)]
    methods = [way for way in ways if way not in SETTINGS]
    before = [
        qualities({norm: of_seeds(records, name, "kdtree", f"{norm} before sparsity") for norm in protocol.NORMS},
                  name, "kdtree")
        for name in names if "kdtree" in methods
    ]  # fmt: skip
    work = [[name, way, *work_cells(records, name, way)] for name in names for way in ways]
    lost = [sentence for name in names for sentence in not_better(records, name, methods)]
    times = [time_cells(records, name, method) for name in names for method in methods]
    options = ("alpha", "diversity", "beta", "tolerance", "put_back", "minimise", "origin")
    asked = [[way, *(str(words.get(option, "-")) for option in options)] for way, words in SETTINGS.items()]
    record = {
        "settings": settings,
        "chosen": dict(CHOSEN),
        "lost": lost,
        "records": list(briefly(records, names, ways)),
    }
    text = (
        f"Networks of 20 and 10 neurons, trained with {settings['seeds']} seeds; test rows {settings['rows']}, three "
        "noisy copies of each; five answers asked for; the protocol of Leofante & Potyka "
        "(`examples/papers/leofante_potyka/`). "
        f"dice-ml {settings['dice'].get('dice-ml', '-')}, scikit-learn back end, its "
        f"defaults on scaled columns of {PRECISION} decimals, a fresh seed per call. Lower is better; mean over "
        "seeds ± standard deviation of the seeds' means. In bold the setting that is held against dice-ml. It was "
        "chosen on ten validation rows of each network: of the settings that give at least "
        f"{LEAST_ANSWERS:.0f} answers a call and are at least {LEAST_RATIO:.0f} times faster than dice-ml's fastest "
        "method, the one of which the worst measure, relative to the best of dice-ml's methods, is best.\n\n"
        + quality_table(record["records"])
        + "\n\nThe k-d tree's answers before dice-ml's step for sparsity (it shows and exports those after it):\n\n"
        + common.markdown_table(HEAD, before)
        + f"\n\nWhere ceopt is not better, of {len(COLUMNS) * len(names) * len(methods)} comparisons: "
        + ("\n\n- " + "\n- ".join(lost) if lost else "nowhere.")
        + "\n\n## Calls\n\nCPU milliseconds: median / 90 % / worst.\n\n"
        + common.markdown_table(
            ["data", "way", "calls", "answered", "other", "per call", "diversity, l1", "invalid answers", "CPU ms"],
            work,
        )
        + "\n\n## Time\n\nThe setting in bold against each method of dice-ml; medians.\n\n"
        + common.markdown_table(TIME_HEAD, times)
        + "\n\n## Settings\n\nalpha: the paper's 50 or 1000 where none is told.\n\n"
        + common.markdown_table(["way", *options], asked)
    )
    if settings["rows"][0] == protocol.VALIDATION_ROWS[0]:
        chosen = "\n".join(f"- {name}: {best(records, name, methods)}" for name in names)
        text += f"\n\nTo be held against dice-ml:\n\n{chosen}"
    common.report("diverse", TITLE, lambda _: text, record, quick=quick)
    journal.close()


def briefly(
    records: Sequence[Mapping[str, Any]], names: Sequence[str], ways: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Give for each data set and way the means of each network, and the CPU milliseconds of every call."""
    for name, way in itertools.product(names, ways):
        counts = counted(records, name, way)
        yield {
            "data": name,
            "way": way,
            "status": dict(counts["status"]),
            "answers": counts["answers"],
            "invalid": counts["invalid"],
            "cpu_ms": " ".join(f"{1000 * cpu:.1f}" for cpu in counts["cpu"]),
            **{norm: of_seeds(records, name, way, norm) for norm in protocol.NORMS},
        }


def quality_table(briefs: Sequence[Mapping[str, Any]]) -> str:
    """Return what the answers of every way are worth, from the means that are kept."""
    return common.markdown_table(HEAD, [qualities(brief, brief["data"], brief["way"]) for brief in briefs])


def qualities(means: Mapping[str, Any], name: str, way: str) -> list[str]:
    """Return what the answers of a way are worth, as cells."""
    shown = f"**{way}**" if way == CHOSEN[name] else way
    return [name, shown, *(cell(means[norm][measure]) for norm, measure in COLUMNS)]


def best(records: Sequence[Mapping[str, Any]], name: str, methods: Sequence[str]) -> str:
    """Return the setting that is to be held against dice-ml; see ``CHOSEN``."""
    means = {
        way: [np.mean(of_seeds(records, name, way, norm)[measure]) for norm, measure in COLUMNS]
        for way in (*SETTINGS, *methods)
    }
    counts = {way: counted(records, name, way) for way in (*SETTINGS, *methods)}
    slowest = min(float(np.median(counts[method]["cpu"])) for method in methods) / LEAST_RATIO
    enough = [
        way
        for way in SETTINGS
        if counts[way]["answers"] >= LEAST_ANSWERS * counts[way]["status"].total()
        and np.median(counts[way]["cpu"]) <= slowest
    ]
    theirs = np.min([means[method] for method in methods], axis=0)
    return min(enough, key=lambda way: float(np.max(np.divide(means[way], theirs))))


def not_better(records: Sequence[Mapping[str, Any]], name: str, methods: Sequence[str]) -> Iterator[str]:
    """Give a sentence for each measure in which the chosen setting is not better than a method of dice-ml."""
    for (norm, measure), method in itertools.product(COLUMNS, methods):
        mine = of_seeds(records, name, CHOSEN[name], norm)[measure]
        theirs = of_seeds(records, name, method, norm)[measure]
        if not mine or not theirs or not np.mean(mine) < np.mean(theirs):
            yield f"{name}, {norm}, {measure}: {cell(mine)} against {cell(theirs)} of {method}"


def time_cells(records: Sequence[Mapping[str, Any]], name: str, method: str) -> list[str]:
    """Return CPU times of the chosen setting and of a method of dice-ml, and their ratios."""
    counts, mine = counted(records, name, method), counted(records, name, CHOSEN[name])["cpu"]
    medians = [1000 * float(np.median(part)) for part in (mine, counts["cpu"])]
    unanswered = counts["status"].total() - counts["status"]["answered"]
    return [
        name,
        method,
        f"{counts['invalid']} of {counts['answers']}",
        str(unanswered),
        *(f"{median:.1f}" for median in medians),
        f"{medians[1] / medians[0]:.1f}",
        f"{np.mean(counts['cpu']) / np.mean(mine):.1f}",
    ]


def of_seeds(records: Sequence[Mapping[str, Any]], name: str, way: str, norm: str) -> dict[str, list[float]]:
    """Return each measure's mean over pairs, one for each seed."""
    found: dict[str, list[float]] = {measure: [] for measure in protocol.MEASURES}
    mine = [r for r in records if r["data"] == name and r["way"] == way and norm in r["measures"]]
    for seed in sorted({r["seed"] for r in mine}):
        pairs = [one for r in mine if r["seed"] == seed for one in r["measures"][norm]]
        for measure in protocol.MEASURES if pairs else ():
            found[measure].append(float(np.mean([pair[measure] for pair in pairs])))
    return found


def counted(records: Sequence[Mapping[str, Any]], name: str, way: str) -> dict[str, Any]:
    """Return how calls ended, answers, invalid ones and CPU seconds."""
    calls = [call for r in records if (r["data"], r["way"]) == (name, way) for call in r["calls"]]
    return {
        "status": Counter(call["status"] for call in calls),
        "answers": sum(call["answers"] for call in calls),
        "invalid": sum(call["invalid"] for call in calls),
        "cpu": [call["cpu"] for call in calls],
    }


def work_cells(records: Sequence[Mapping[str, Any]], name: str, way: str) -> list[str]:
    """Return counts, diversity and times as cells."""
    counts = counted(records, name, way)
    others = ", ".join(f"{status} {n}" for status, n in counts["status"].items() if status != "answered")
    calls = counts["status"].total()
    return [
        str(calls),
        str(counts["status"]["answered"]),
        others or "-",
        f"{counts['answers'] / max(calls, 1):.2f}",
        cell(of_seeds(records, name, way, "l1")["k_diversity"]),
        f"{counts['invalid']} of {counts['answers']}",
        common.spread([1000 * s for s in counts["cpu"]], 1),
    ]


def cell(values: Sequence[float]) -> str:
    """Return mean and spread over seeds."""
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}" if values else "-"


if __name__ == "__main__":
    main()
