"""Numbers in README and docs: each is what the committed results say."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "made" not in path.parts)]


class Claim(NamedTuple):
    """A sentence of a page, with its numbers left open, and the record that they are computed from."""

    page: str
    sentence: str
    record: str
    numbers: Callable[[dict[str, Any]], dict[str, str]]


def of_diverse(record: dict[str, Any]) -> dict[str, str]:
    script = importlib.import_module("diverse")
    found = script.Found.of(record)
    judged = [is_better for is_better, _ in found.comparisons(found.chosen)]
    less, of = found.less_diverse(found.chosen)
    ratios = [script.ratio_of_medians(found, name, method) for name in found.names for method in found.methods]
    fails = [
        [is_better for is_better, _ in found.comparisons(dict.fromkeys(found.names, way))].count(False)
        for way in found.settings
    ]
    return {
        "better": str(judged.count(True)),
        "of": str(len(judged)),
        "less": str(less),
        "pairs": str(of),
        "least": f"{min(ratios):.0f}",
        "most": f"{max(ratios):.0f}",
        "fails": str(min(fails)),
    }


def of_libraries(record: dict[str, Any]) -> dict[str, str]:
    totals = record["totals"]["ceopt"]
    assert totals["invalid_answers"] == 0
    assert set(totals["statuses"]) <= {"optimal", "feasible"}
    return {
        "rows": f"{totals['rows']:,}",
        "limit": str(record["settings"]["limit_s"]),
        "optimal": f"{totals['statuses']['optimal']:,}",
    }


def of_training(record: dict[str, Any]) -> dict[str, str]:
    """Excess of the generators' advice over the proved bound, and how near the bound is where it is near."""
    near, every, gaps = [], [], []
    for one in record["records"]:
        for ratio in ("1.5", "10"):
            found = one[f"at most {ratio} times"]
            if found["people"]:
                every.append(found["median_excess"])
                if ratio == "1.5":
                    near.append(found["median_excess"])
                    gaps.append(found["median_gap"])
    return {
        "least": str(math.floor(min(every))),
        "most": str(math.floor(max(every))),
        "near": str(math.floor(max(near))),
        "gap": f"{max(gaps):.2f}",
    }


def of_copa(data: str) -> Callable[[dict[str, Any]], dict[str, str]]:
    """Return what finds the greatest empirical validity of all methods on a data set, which is no survival."""

    def numbers(record: dict[str, Any]) -> dict[str, str]:
        report = importlib.import_module("copa.report")
        table, protocol = record["table"], record["protocol"]
        assert protocol == "honest"
        found = []
        for method in importlib.import_module("copa.table").methods(table, protocol):
            means = report.summary(report.group(record["results"], f"{table}/{protocol}/{data}", method))
            if means:
                found.append(means["empirical"][0])
        assert max(found) < report.SURVIVING
        return {"best": f"{max(found):.3f}"}

    return numbers


def of_rocoursenet(record: dict[str, Any]) -> dict[str, str]:
    gates = importlib.import_module("rocoursenet.gates")
    found = []
    for records in record["results"].values():
        found += [gates.tables_differences(records, rival) for rival in ("CounterNet", "ROAR-LIME")]
    return {"reached": str(sum(one.is_reached for one in found)), "of": str(len(found))}


def of_network_sizes(record: dict[str, Any]) -> dict[str, str]:
    german = [one for one in record["records"] if one["data"] == "german" and one["way"] == "ceopt, HiGHS"]
    seconds = {size: [one["cpu"] for one in german if one["network"] == size] for size in ("2x50", "3x50")}
    assert all(one["status"] == "optimal" and not one["invalid"] for one in german)
    return {
        "two": f"{np.median(seconds['2x50']):.1f}",
        "three": f"{np.median(seconds['3x50']):.1f}",
        "worst": f"{max(*seconds['2x50'], *seconds['3x50']):.1f}",
        "rows": str(len(seconds["3x50"])),
    }


def of_scaling(record: dict[str, Any]) -> dict[str, str]:
    points = {(one["curve"], one["value"]): one["people"] for one in record["records"]}
    seconds = {point: f"{np.median([one['cpu'] for one in people]):.2f}" for point, people in points.items()}
    deepest = points["depth", None]
    assert not any(one["invalid"] for people in points.values() for one in people)
    return {
        "ten": seconds["trees", 10],
        "many": seconds["trees", 300],
        "shallow": seconds["depth", 2],
        "deep": seconds["depth", None],
        "proved": str(sum(one["status"] == "optimal" for one in deepest)),
        "of": str(len(deepest)),
        "limit": str(int(record["settings"]["limit_s"])),
    }


def of_cohorts(record: dict[str, Any]) -> dict[str, str]:
    script = importlib.import_module("cohorts")
    rates = {(one["data"], one["model"]): script.rate(one["parts"], "today") for one in record["records"]}
    assert not any(part["invalid"] for one in record["records"] for part in one["parts"])
    return {
        "logistic": f"{rates['german', 'LogisticRegression']:.0f}",
        "boosting": f"{rates['adult', 'XGBoost']:.0f}",
    }


def of_near_answers(record: dict[str, Any]) -> dict[str, str]:
    (one,) = (one for one in record["records"] if (one["data"], one["model"]) == ("heloc", "LightGBM"))
    excess = [person["cohort, cost"] / person["proved"]["cost"] - 1.0 for person in one["people"]]
    assert not one["invalid"]["cohort"]
    assert not one["unanswered"]["cohort"]
    return {
        "rows": str(one["rows"]),
        "ms": f"{1e3 * np.median(one['cpu']['cohort']) / one['rows']:.0f}",
        "people": str(len(excess)),
        "excess": f"{100.0 * np.quantile(excess, 0.9):.1f}",
    }


def of_default_models(record: dict[str, Any]) -> dict[str, str]:
    script = importlib.import_module("default_models")
    ways = {(one["data"], one["model"]): script.by_way(one["people"]) for one in record["records"]}
    today = {key: [one["cpu"] for one in own["today"]] for key, own in ways.items()}
    medians = {key: float(np.median(seconds)) for key, seconds in today.items()}
    boosting = [key for key in today if key[1] in {"HistGradientBoosting", "XGBoost", "LightGBM"}]
    proved = {key: sum(map(script.is_proved, own["today"])) for key, own in ways.items()}
    assert all(proved[key] == len(today[key]) for key in boosting)
    assert not any(one["invalid"] for own in ways.values() for way in own.values() for one in way)
    more = {}
    for word, way in (("three", "today, n = 3"), ("ten", "today, n = 10")):
        ratios = [float(np.median(script.ratios(own[way], own["today"]))) for own in ways.values() if way in own]
        more |= {f"{word}_least": f"{min(ratios):.1f}", f"{word}_most": f"{max(ratios):.0f}"}
    return {
        "least": f"{min(medians[key] for key in boosting):.2f}",
        "most": f"{max(medians[key] for key in boosting):.2f}",
        "people": str(sum(len(today[key]) for key in boosting)),
        "worst": f"{max(max(today[key]) for key in boosting):.1f}",
        **{data: f"{medians[data, 'RandomForest']:.1f}" for data in ("german", "adult", "heloc")},
        "proved": str(proved["heloc", "RandomForest"]),
        "random": str(proved["heloc", "ExtraTrees"]),
        "of": str(record["settings"]["rows"]),
        "limit": str(int(record["settings"]["limit_s"])),
        "logistic": f"{max(own for key, own in medians.items() if key[1] == 'LogisticRegression'):.2f}",
        "near": f"{np.median([one['cpu'] for one in ways['heloc', 'RandomForest']['today, proof=False']]):.1f}",
        **more,
    }


CLAIMS = [
    Claim(
        "README.md",
        "on German (linear models) the best plans have a validity of {best} over retrained models",
        "copa_table1_honest",
        of_copa("german"),
    ),
    Claim("README.md", "on SBA (networks) of {best}", "copa_table4_honest", of_copa("sba")),
    Claim(
        "README.md",
        "RoCourseNet's advice outlasts retraining more often than its rivals' in {reached} of {of} comparisons",
        "rocoursenet_table1_honest",
        of_rocoursenet,
    ),
    Claim("docs/explanation/plans.md", "the best have a validity of {best}", "copa_table4_honest", of_copa("sba")),
    Claim(
        "docs/how_to/training.md",
        "a generator's advice costs {least} to {most} times the optimum, counted from its proved bound, in the median "
        "over people of German, HELOC and COMPAS (`benchmarks/results/training.md`); {least} to {near} times at "
        "`max_ratio=1.5`, where the bound is within {gap} of the optimum",
        "training",
        of_training,
    ),
    Claim(
        "docs/how_to/training.md",
        "RoCourseNet's robust validity is above that of CounterNet and of ROAR-LIME by two standard errors in "
        "{reached} of {of} comparisons",
        "rocoursenet_table1_honest",
        of_rocoursenet,
    ),
    Claim(
        "docs/how_to/retraining.md",
        "more robust than its rivals in {reached} of {of} comparisons",
        "rocoursenet_table1_honest",
        of_rocoursenet,
    ),
    Claim(
        "docs/explanation/diverse.md",
        "nearer and firmer than those of each of dice-ml's three methods in {better} of {of} comparisons, and less "
        "diverse in {less} of {pairs}; they take {least} to {most} times less CPU time. One setting for all fails "
        "{fails} of the {of} (`benchmarks/results/diverse.md`)",
        "diverse",
        of_diverse,
    ),
    Claim(
        "README.md",
        "default boosting is proved in {least} to {most} s at the median, a default forest in {german} s on German, "
        "{adult} s on Adult; on HELOC {proved} of {of} people within {limit} s",
        "default_models",
        of_default_models,
    ),
    Claim(
        "docs/explanation/speed.md",
        "is proved in {least} to {most} s at the median of a data set; the slowest of {people} people took {worst} s",
        "default_models",
        of_default_models,
    ),
    Claim(
        "docs/explanation/speed.md",
        "takes {german} s at the median on German, {adult} s on Adult and {heloc} s on HELOC, where {proved} of {of} "
        "people are proved within {limit} s; of `ExtraTreesClassifier` {random} of {of} are",
        "default_models",
        of_default_models,
    ),
    Claim(
        "docs/explanation/speed.md",
        "of 2 x 50 neurons takes {two} s at the median of {rows} people of German, one of 3 x 50 {three} s, and the "
        "slowest {worst} s",
        "network_sizes",
        of_network_sizes,
    ),
    Claim(
        "docs/explanation/speed.md",
        "Ten trees take {ten} s at the median, 300 trees {many} s; depth 2 takes {shallow} s, no limit of depth "
        "{deep} s, and there {proved} of {of} people are proved within {limit} s",
        "scaling",
        of_scaling,
    ),
    Claim(
        "docs/explanation/speed.md",
        "{logistic} rows a second of the processor are proved on German's logistic model, {boosting} on Adult's",
        "cohorts",
        of_cohorts,
    ),
    Claim(
        "docs/explanation/speed.md",
        "{rows} people of HELOC take {ms} ms each under default LightGBM, and 90 % of the first {people} get an answer "
        "that costs at most {excess} % more than the optimum",
        "near_answers",
        of_near_answers,
    ),
    Claim(
        "docs/explanation/speed.md",
        "takes at most {logistic} s at the median",
        "default_models",
        of_default_models,
    ),
    Claim(
        "docs/explanation/speed.md",
        "{near} s at the median on HELOC's default forest",
        "default_models",
        of_default_models,
    ),
    Claim(
        "docs/explanation/speed.md",
        "Three answers take {three_least} to {three_most} times as long as one at the median of a model, ten take "
        "{ten_least} to {ten_most} times as long",
        "default_models",
        of_default_models,
    ),
    Claim(
        "docs/reference/models.md",
        "On {rows} rows of boosted trees, XGBoost, LightGBM, networks and ONNX files over four data sets, every row "
        "was answered within {limit} seconds, no answer was refused by its model, and {optimal} were proved optimal "
        "(`benchmarks/libraries.py`",
        "libraries",
        of_libraries,
    ),
]


def prose(page: Path) -> str:
    """Return a page without its code, with single blanks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return " ".join(text.split())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}-{claim.record}")
def test_a_claim_is_what_the_results_say(benchmarks: Any, claim: Claim) -> None:
    record = importlib.import_module("records").read(RESULTS / f"{claim.record}.json")
    expected = claim.sentence.format(**claim.numbers(record))
    assert expected in prose(ROOT / claim.page)


#: Numbers with a unit of time or a ratio that are settings of a call, not measurements.
SETTINGS = {
    "docs/how_to/command_line.md": ["`--max-up income=20%`"],
    "docs/how_to/limits.md": [
        '`max_up="20%"`',
        "29% of 100 is 29",
        "20% of -50 is 10",
        "`--max-up income=20%`",
    ],
    "docs/how_to/many_people.md": ["by default the smaller of 10 s and a twentieth of all their limits"],
    "docs/how_to/questions.md": ["60 s, if none is given"],
    "docs/how_to/ratio.md": ["at most 40 % of the income"],
    "docs/how_to/retraining.md": ["a probability of at least 80 %"],
    "docs/how_to/surrogates.md": ["of a model that takes a second whatever its rows are, give some 15 seconds"],
    "docs/how_to/rules.md": ["the smaller of 5 s and a fifth of the limit", 'up="20%"'],
}
#: What a measurement looks like: seconds, milliseconds, minutes, times faster or less, per cent.
MEASURED = re.compile(
    r"\b\d[\d.,]*( to \d[\d.,]*)? ?(ms|milliseconds|s|seconds|minutes|%|times (faster|slower|less|as))(?!\w)"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_states_a_measurement_that_no_claim_covers(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    text = prose(page)
    for claim in CLAIMS:
        if claim.page == name:
            pattern = re.escape(re.sub(r"\{\w+\}", "NUMBER", claim.sentence)).replace("NUMBER", r"[\d.,]+")
            text = re.sub(pattern, "", text)
    for sentence in SETTINGS.get(name, []):
        assert sentence in text
        text = text.replace(sentence, "")
    found = [text[max(0, hit.start() - 60) : hit.end() + 30] for hit in MEASURED.finditer(text)]
    assert not found
