"""Diverse robust sets against dice-ml's random, genetic and k-d tree methods: distance, robustness, time, validity.

Where dice-ml is not installed, settings that the kept results do not have are asked and added to them, with one that
they have, to see that networks, rows and copies are still the same.
"""

from __future__ import annotations

import datetime as dt
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import common
import numpy as np
import provenance
import records

from ceopt.diverse import DiverseRobustExplainer

sys.path.insert(0, str(common.ROOT / "examples" / "papers"))  # the protocol of the paper is the example's

from leofante_potyka import dice, protocol
from shared.dice import PRECISION, is_installed

TITLE = "Diverse robust sets and dice-ml"
MEASURES = ("ceopt/diverse",)

#: Lower is better; diversity is told beside them.
QUALITIES = ("k_distance", "set_distance_sum", "set_distance_max")
#: Answers that are asked for.
WANTED = 5
#: Without a filter for diversity, as dice-ml's k-d tree is.
_NEAREST = {"diversity": "angle", "beta": 0.0, "tolerance": 0.01, "alpha": 50}
#: Different ways out: each half as far again from the others as the nearest row is, among so many candidates that
#: there are five where the data has them.
_APART = {"diversity": "distance", "beta": 0.5, "tolerance": 0.01, "alpha": 1000}
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
    "apart": _APART,
    "apart, from data": _APART | {"origin": "data"},
    "apart, from data, as they are": _APART | {"origin": "data", "tolerance": None},
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


#: What is asked again where settings are added to kept results.
AGAIN = "angle"


class Case:
    """A data set, a network and everybody who is asked about it."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self.split = protocol.load(name)
        self.network = protocol.retrained(self.split, seed)
        self.accuracy = float(self.network.score(self.split.test, self.split.test_labels))
        self.dice = dice.Dice(self.split, self.network) if is_installed() else None
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
        peer = self.dice
        assert peer is not None  # noqa: S101 - its methods are asked where it is installed
        return lambda row, _, seed: peer.ask(way, row, seed=seed, n=WANTED, limit_s=limit_s)


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
    methods = dice.METHODS if is_installed() else ()
    earlier = common.RESULTS / "diverse.json"
    kept = None
    asked = list(SETTINGS)
    if not methods:
        if options.quick or options.all or not earlier.is_file():
            sys.exit("This benchmark asks dice-ml. Install benchmarks/requirements-dice.txt.")
        kept = records.read(earlier)
        asked = [AGAIN, *(way for way in SETTINGS if way not in kept["settings"]["ways"])]
    ways = [(way, norm) for way in asked for norm in protocol.NORMS] + [(way, "both") for way in methods]
    settings = {
        "seeds": seeds,
        "rows": [rows[0], rows[-1]],
        "limit_s": options.limit,
        "ways": {way: dict(SETTINGS[way]) for way in asked},
        "dice": common.installed(("dice-ml",)),
    }
    name = "diverse-quick" if options.quick else "diverse-validation" if options.all else "diverse"
    journal = common.Journal(name, settings)
    answer(journal, seeds, rows, ways, options.limit)
    if kept is None:
        write(journal, settings, [*asked, *methods], quick=options.quick or options.all)
    else:
        add(journal, settings, kept, asked)


def answer(
    journal: common.Journal, seeds: int, rows: Sequence[int], ways: Sequence[tuple[str, str]], limit_s: int
) -> None:
    """Ask all ways about every row that the journal does not have yet."""
    cases = list(itertools.product(protocol.DATA_SETS, range(seeds)))
    bar = common.bar([], len(cases) * len(rows) * len(ways))
    for data, seed in cases:
        keys = [f"{data}/{seed}/{row}/{way}/{norm}" for row in rows for way, norm in ways]
        if all(key in journal.done for key in keys):
            bar.update(len(keys))
            continue
        case = Case(data, seed)
        warm(case, ways, limit_s)
        for key, pair, way, norm in turns(case, rows, ways):
            if key not in journal.done:
                record = ask(case, pair, way, norm, limit_s)
                about = {"data": data, "seed": seed, "row": pair.place, "way": way, "norm": norm}
                journal.add(key, {**about, "accuracy": case.accuracy, **record})
            bar.update()
    bar.close()


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
COLUMNS = tuple(itertools.product(protocol.NORMS, QUALITIES))
TIME_HEAD = (
    "data", "dice-ml", "invalid answers", "calls without one", "ceopt, CPU ms", "dice-ml, CPU ms", "ratio", "of means",
)  # fmt: skip
HEAD = ("data", "way", *(f"{measure.replace('_', ' ')}, {norm}" for norm, measure in COLUMNS))


def write(journal: common.Journal, settings: dict[str, Any], ways: Sequence[str], *, quick: bool) -> None:
    """Keep each network's means, and the CPU milliseconds of every call."""
    names = [name for name in protocol.DATA_SETS if any(r["data"] == name for r in journal.records)]
    before = []
    for name in names:
        means = {norm: of_seeds(journal.records, name, "kdtree", f"{norm} before sparsity") for norm in protocol.NORMS}
        before.append([name, "kdtree", *(cell(means[norm][measure]) for norm, measure in COLUMNS)])
    record = {
        "settings": settings,
        "chosen": dict(CHOSEN),
        "before_sparsity": before,
        "records": list(briefly(journal.records, names, ways)),
    }
    common.report("diverse", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


def add(journal: common.Journal, settings: dict[str, Any], kept: dict[str, Any], asked: Sequence[str]) -> None:
    """Add settings to the kept results, and say whether the one that was asked again says what it said."""
    briefs = {(one["data"], one["way"]): one for one in kept["records"]}
    same = total = 0
    for one in briefly(journal.records, protocol.DATA_SETS, asked):
        if one["way"] != AGAIN:
            briefs[one["data"], one["way"]] = one
            continue
        before = briefs[one["data"], AGAIN]
        for norm, measure in itertools.product(protocol.NORMS, protocol.MEASURES):
            total += 1
            same += bool(np.allclose(one[norm][measure], before[norm][measure], rtol=1e-9, atol=0.0))
    ways = [*SETTINGS, *dice.METHODS]
    added = {
        "ways": [way for way in asked if way != AGAIN],
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "again": AGAIN,
        "same": same,
        "means": total,
        **provenance.source(MEASURES),
    }
    every = {**kept["settings"]["ways"], **settings["ways"]}
    record = records.kept(
        {
            **kept,
            "added": [*kept.get("added", ()), added],
            "settings": {**kept["settings"], "ways": {way: every[way] for way in SETTINGS}},
            "records": [briefs[key] for key in itertools.product(protocol.DATA_SETS, ways)],
        }
    )
    text = common.page(TITLE, text_of, record)
    print(text)
    (common.RESULTS / "diverse.md").write_text(text, encoding="utf-8")
    records.write(common.RESULTS / "diverse.json", record)
    journal.close()


def briefly(
    answers: Sequence[Mapping[str, Any]], names: Sequence[str], ways: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Give for each data set and way the means of each network, and the CPU milliseconds of every call."""
    for name, way in itertools.product(names, ways):
        calls = [call for r in answers if (r["data"], r["way"]) == (name, way) for call in r["calls"]]
        yield {
            "data": name,
            "way": way,
            "status": dict(Counter(call["status"] for call in calls)),
            "answers": sum(call["answers"] for call in calls),
            "invalid": sum(call["invalid"] for call in calls),
            "cpu_ms": " ".join(f"{1000 * call['cpu']:.1f}" for call in calls),
            **{norm: of_seeds(answers, name, way, norm) for norm in protocol.NORMS},
        }


def of_seeds(answers: Sequence[Mapping[str, Any]], name: str, way: str, norm: str) -> dict[str, list[float]]:
    """Return each measure's mean over pairs, one for each seed."""
    found: dict[str, list[float]] = {measure: [] for measure in protocol.MEASURES}
    mine = [r for r in answers if r["data"] == name and r["way"] == way and norm in r["measures"]]
    for seed in sorted({r["seed"] for r in mine}):
        pairs = [one for r in mine if r["seed"] == seed for one in r["measures"][norm]]
        for measure in protocol.MEASURES if pairs else ():
            found[measure].append(float(np.mean([pair[measure] for pair in pairs])))
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """What was kept, by data set and way."""

    briefs: Mapping[tuple[str, str], Mapping[str, Any]]
    chosen: Mapping[str, str]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Found:
        """Index the record of a run."""
        return cls({(each["data"], each["way"]): each for each in record["records"]}, record["chosen"])

    @property
    def names(self) -> list[str]:
        """The data sets."""
        return list(dict.fromkeys(name for name, _ in self.briefs))

    @property
    def settings(self) -> list[str]:
        """The settings of ceopt."""
        return [way for way in dict.fromkeys(way for _, way in self.briefs) if way in SETTINGS]

    @property
    def methods(self) -> list[str]:
        """The methods of dice-ml."""
        return [way for way in dict.fromkeys(way for _, way in self.briefs) if way not in SETTINGS]

    def mean(self, name: str, way: str, norm: str, measure: str) -> float:
        """Return a measure's mean over seeds."""
        return float(np.mean(self.briefs[name, way][norm][measure]))

    def cell(self, name: str, way: str, norm: str, measure: str) -> str:
        """Return a measure's mean and spread over seeds."""
        return cell(self.briefs[name, way][norm][measure])

    def cpu_ms(self, name: str, way: str) -> list[float]:
        """Return the CPU milliseconds of each call."""
        return [float(text) for text in self.briefs[name, way]["cpu_ms"].split()]

    def calls(self, name: str, way: str) -> int:
        """Return how often a way was asked."""
        return sum(self.briefs[name, way]["status"].values())

    def answers_a_call(self, name: str, way: str) -> float:
        """Return how many answers a call gave."""
        return float(self.briefs[name, way]["answers"]) / max(self.calls(name, way), 1)

    def comparisons(self, way_of: Mapping[str, str]) -> Iterator[tuple[bool, str]]:
        """Give for each data set, measure and method of dice-ml whether ceopt is better, and a sentence."""
        for name, (norm, measure), method in itertools.product(self.names, COLUMNS, self.methods):
            mine, theirs = (self.mean(name, way, norm, measure) for way in (way_of[name], method))
            cells = [self.cell(name, way, norm, measure) for way in (way_of[name], method)]
            yield mine < theirs, f"{name}, {norm}, {measure}: {cells[0]} against {cells[1]} of {method}"

    def less_diverse(self, way_of: Mapping[str, str]) -> tuple[int, int]:
        """Return in how many comparisons of k-diversity ceopt's sets are the less diverse, and of how many."""
        less = [
            self.mean(name, way_of[name], norm, "k_diversity") < self.mean(name, method, norm, "k_diversity")
            for name, norm, method in itertools.product(self.names, protocol.NORMS, self.methods)
        ]
        return sum(less), len(less)


# ---- the page --------------------------------------------------------------------------------------------------------
#: Ways with a filter that keeps answers apart.
FILTERED = ("angle", "distance", "apart", "apart, from data", "apart, from data, as they are")


def text_of(record: dict[str, Any]) -> str:
    """Say what was asked, how the ways compare, and what the choice of a setting does."""
    found = Found.of(record)
    settings = record["settings"]
    about = (
        f"Networks of 20 and 10 neurons, trained with {settings['seeds']} seeds; test rows {settings['rows']}, three "
        "noisy copies of each; five answers asked for; the protocol of Leofante & Potyka "
        "(`examples/papers/leofante_potyka/`). "
        f"dice-ml {settings['dice'].get('dice-ml', '-')}, scikit-learn back end, its "
        f"defaults on scaled columns of {PRECISION} decimals, a fresh seed per call. Lower is better; mean over "
        "seeds ± standard deviation of the seeds' means. In bold the setting that is held against dice-ml. It was "
        "chosen on ten validation rows of each network: of the settings that give at least "
        f"{LEAST_ANSWERS:.0f} answers a call and are at least {LEAST_RATIO:.0f} times faster than dice-ml's fastest "
        "method, the one of which the worst measure, relative to the best of dice-ml's methods, is best."
    )
    parts = [
        _first_words(found),
        about,
        *(_added(run) for run in record.get("added", ())),
        quality_table(found),
        "The k-d tree's answers before dice-ml's step for sparsity (it shows and exports those after it):",
        common.markdown_table(HEAD, record["before_sparsity"]),
        _not_better(found),
        "## One setting for all data sets",
        _one_setting(found),
        "## Diversity, and five different ways out at a price",
        _diversity(found),
        "## Calls",
        "CPU milliseconds: median / 90 % / worst.",
        common.markdown_table(
            ["data", "way", "calls", "answered", "other", "per call", "diversity, l1", "invalid answers", "CPU ms"],
            [work_cells(found, *key) for key in found.briefs],
        ),
        "## Time",
        "The setting in bold against each method of dice-ml; medians.",
        common.markdown_table(TIME_HEAD, [time_cells(found, n, m) for n in found.names for m in found.methods]),
        "## Settings",
        "alpha: the paper's 50 or 1000 where none is told.",
        _settings_table(),
    ]
    if settings["rows"][0] == protocol.VALIDATION_ROWS[0]:
        parts += ["To be held against dice-ml:", "\n".join(f"- {name}: {best(found, name)}" for name in found.names)]
    return "\n\n".join(parts)


def _first_words(found: Found) -> str:
    """Say whether the filter for diversity is on in the settings that are held against dice-ml."""
    off = [name for name, way in found.chosen.items() if SETTINGS[way] | {"beta": 0.0} == SETTINGS[way]]
    off = [name for name in off if SETTINGS[found.chosen[name]]["diversity"] == "angle"]
    return (
        f"The filter for diversity is off in {len(off)} of the {len(found.chosen)} settings that are held against "
        "dice-ml below: nearer and firmer sets are what is compared, and they are less diverse."
    )


def _added(run: Mapping[str, Any]) -> str:
    """Say what was asked later."""
    ways = ", ".join(f'"{way}"' for way in run["ways"])
    return (
        f'{ways}: asked on {run["date"]}, without dice-ml. {provenance.text_of(run)} "{run["again"]}" was asked '
        f"again with them: {run['same']} of {run['means']} lists of means are the same, so that networks, rows and "
        "copies are; times are not comparable."
    )


def quality_table(found: Found) -> str:
    """Return what the answers of every way are worth."""
    lines = []
    for name, way in found.briefs:
        shown = f"**{way}**" if way == found.chosen[name] else way
        lines.append([name, shown, *(found.cell(name, way, norm, measure) for norm, measure in COLUMNS)])
    return common.markdown_table(HEAD, lines)


def _not_better(found: Found) -> str:
    judged = list(found.comparisons(found.chosen))
    lost = [sentence for is_better, sentence in judged if not is_better]
    where = "\n\n- " + "\n- ".join(lost) if lost else "nowhere."
    return f"Where ceopt is not better, of {len(judged)} comparisons: {where}"


def _one_setting(found: Found) -> str:
    """Say what each setting does if it is used for all data sets."""
    lines = []
    lost = {}
    for way in found.settings:
        everywhere = dict.fromkeys(found.names, way)
        judged = [is_better for is_better, _ in found.comparisons(everywhere)]
        lost[way] = judged.count(False)
        less, of = found.less_diverse(everywhere)
        each = [found.answers_a_call(name, way) for name in found.names]
        lines.append([way, f"{lost[way]} of {len(judged)}", f"{less} of {of}", f"{min(each):.2f} to {max(each):.2f}"])
    best_way = min(lost, key=lost.__getitem__)
    paper = found.settings[0]
    return (
        f'The settings above differ by data set. Of those that are used for all, "{best_way}" fails least often '
        f'({lost[best_way]} of {len(judged)} comparisons); the paper\'s own, "{paper}", fails {lost[paper]}.\n\n'
        + common.markdown_table(
            ["one setting for all", "not better than dice-ml", "less diverse than dice-ml", "answers a call"], lines
        )
    )


def _diversity(found: Found) -> str:
    """Compare k-diversity, and say what filters that keep answers apart cost."""
    less, of = found.less_diverse(found.chosen)
    lines = []
    filtered = [way for way in FILTERED if way in found.settings]
    prices: dict[str, list[float]] = {way: [] for way in filtered}
    for name in found.names:
        for way in (found.chosen[name], *filtered, *found.methods):
            distance = found.mean(name, way, "l1", "k_distance")
            price = distance / found.mean(name, found.chosen[name], "l1", "k_distance")
            if way in filtered:
                prices[way].append(price)
            shown = f"**{way}**" if way == found.chosen[name] else way
            diversity = [found.cell(name, way, norm, "k_diversity") for norm in protocol.NORMS]
            lines.append(
                [name, shown, f"{found.answers_a_call(name, way):.2f}", *diversity, f"{distance:.3f}", f"{price:.1f}"]
            )
    said = []
    for way in filtered:
        everywhere = dict.fromkeys(found.names, way)
        count, _ = found.less_diverse(everywhere)
        lost = [is_better for is_better, _ in found.comparisons(everywhere)].count(False)
        each = [found.answers_a_call(name, way) for name in found.names]
        said.append(
            f'\n- "{way}": {min(each):.2f} to {max(each):.2f} answers a call, {min(prices[way]):.1f} to '
            f"{max(prices[way]):.1f} times as far as the chosen setting (k-distance, l1); less diverse than dice-ml in "
            f"{count} of {of}, not better in distance and firmness in {lost}."
        )
    return (
        "k-diversity is the mean distance between the answers of a set; more is better. The chosen settings are less "
        f"diverse than dice-ml's methods in {less} of {of} comparisons. Who wants different ways out asks with the "
        f"filter on, at a price:\n{''.join(said)}\n\n"
        + common.markdown_table(
            [
                "data",
                "way",
                "answers a call",
                "k-diversity, l1",
                "k-diversity, l2",
                "k-distance, l1",
                "times the chosen",
            ],
            lines,
        )
    )


def best(found: Found, name: str) -> str:
    """Return the setting that is to be held against dice-ml; see ``CHOSEN``."""

    def means(way: str) -> list[float]:
        return [found.mean(name, way, norm, measure) for norm, measure in COLUMNS]

    slowest = min(float(np.median(found.cpu_ms(name, method))) for method in found.methods) / LEAST_RATIO
    enough = [
        way
        for way in found.settings
        if found.answers_a_call(name, way) >= LEAST_ANSWERS and np.median(found.cpu_ms(name, way)) <= slowest
    ]
    theirs = np.min([means(method) for method in found.methods], axis=0)
    return min(enough, key=lambda way: float(np.max(np.divide(means(way), theirs))))


def ratio_of_medians(found: Found, name: str, method: str) -> float:
    """Return how many times more CPU time a method of dice-ml takes than the chosen setting."""
    mine, theirs = (np.median(found.cpu_ms(name, way)) for way in (found.chosen[name], method))
    return float(theirs / mine)


def time_cells(found: Found, name: str, method: str) -> list[str]:
    """Return CPU times of the chosen setting and of a method of dice-ml, and their ratios."""
    brief = found.briefs[name, method]
    mine, theirs = (found.cpu_ms(name, way) for way in (found.chosen[name], method))
    return [
        name,
        method,
        f"{brief['invalid']} of {brief['answers']}",
        str(found.calls(name, method) - brief["status"].get("answered", 0)),
        f"{np.median(mine):.1f}",
        f"{np.median(theirs):.1f}",
        f"{ratio_of_medians(found, name, method):.1f}",
        f"{np.mean(theirs) / np.mean(mine):.1f}",
    ]


def work_cells(found: Found, name: str, way: str) -> list[str]:
    """Return counts, diversity and times as cells."""
    brief = found.briefs[name, way]
    others = ", ".join(f"{status} {n}" for status, n in brief["status"].items() if status != "answered")
    return [
        name,
        way,
        str(found.calls(name, way)),
        str(brief["status"].get("answered", 0)),
        others or "-",
        f"{found.answers_a_call(name, way):.2f}",
        found.cell(name, way, "l1", "k_diversity"),
        f"{brief['invalid']} of {brief['answers']}",
        common.spread(found.cpu_ms(name, way), 1),
    ]


def _settings_table() -> str:
    options = ("alpha", "diversity", "beta", "tolerance", "put_back", "minimise", "origin")
    asked = [[way, *(str(words.get(option, "-")) for option in options)] for way, words in SETTINGS.items()]
    return common.markdown_table(["way", *options], asked)


def cell(values: Sequence[float]) -> str:
    """Return mean and spread over seeds."""
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}" if values else "-"


if __name__ == "__main__":
    main()
