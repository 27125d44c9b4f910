"""Fifty questions without an answer: every conflict irreducible, every rule as wide as is said, by asking anew."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import common
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import ceopt
import ceopt.search.phases
from ceopt import AllowedRows, AllowedTransitions, AllowedValues, Hull, IfThen, Linear, MaxChanges
from ceopt.search.conflict import Conflict
from ceopt.search.relaxation import Relaxer

TITLE = "Why there is no answer"
MEASURES = (
    "ceopt/search",
    "formulations/constraints",
)

CASES, LIMIT_S = 50, 600
DATA_SETS = ("german", "compas")
#: Two cases are of HELOC, whose 23 columns of numbers make each proof the longest: minutes, and of networks more.
HELOC = (3, 13)
MODELS: dict[str, Any] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "forest": lambda: RandomForestClassifier(n_estimators=20, max_depth=4, random_state=common.SEED, n_jobs=1),
    "network": lambda: MLPClassifier((10, 10), max_iter=1000, random_state=common.SEED),
}
#: Every so many cases the rules are those of the space.
OF_SPACE = 5
#: Rows that span a hull; a width is clearly less below this share of it; bounds that are dropped lie so far out.
ROWS, LESS, WIDE = 60, 0.98, 10.0
#: Rules that are added at random; after them, the columns that change are fixed one by one.
MOST = 10
#: What a column may do without a rule.
FREE = {"mutable": True, "direction": "any"}
#: Statuses with an answer in hand.
ANSWERED = {"optimal", "feasible", "already_favourable"}


@dataclass(slots=True, eq=False)
class Case:
    """One person, one model, and rules that were added until nothing was left.

    Parameters
    ----------
    rules
        What is passed as constraints.
    settings
        Name of a rule of the space -> column and what was set.
    """

    data_set: str
    model: str
    row: pd.DataFrame
    rules: list[Any] = field(default_factory=list)
    settings: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)

    @property
    def task(self) -> common.Task:
        """The data."""
        return load(self.data_set)

    def space(self, settings: Iterable[str]) -> ceopt.FeatureSpace:
        """Return the space of the data with some of the settings; bounds of the columns of the others are far out."""
        space, kept = self.task.bunch.space, set(settings)
        for name, (column, given) in self.settings.items():
            if name in kept:
                space = space.update(column, **given)
            elif bounds := {"lower", "upper"} & given.keys():
                (bound,) = bounds
                far = WIDE * space[column].scale("range") * (1.0 if bound == "upper" else -1.0)
                space = space.update(column, **{bound: float(round(getattr(space[column], bound) + far))})
            else:
                space = space.update(column, **{word: FREE[word] for word in given})
        return space

    def take_settings(self) -> None:
        """Take what the data's own schema forbids as settings too."""
        for feature in self.task.bunch.space:
            if not feature.mutable:
                self.settings[f"{feature.name}: fixed"] = (feature.name, {"mutable": False})
            if feature.direction != "any":
                word = {"increasing": "increase", "decreasing": "decrease"}[feature.direction]
                self.settings[f"{feature.name}: may only {word}"] = (feature.name, {"direction": feature.direction})

    def ask(self, rules: Iterable[Any] | None = None, settings: Iterable[str] | None = None) -> ceopt.SolutionSet:
        """Ask with all rules and settings, or with some."""
        return ceopt.explain(
            fitted(self.data_set, self.model),
            self.row,
            self.space(self.settings if settings is None else settings),
            target=self.task.target,
            constraints=self.rules if rules is None else list(rules),
            time_limit_s=LIMIT_S,
            why=float(LIMIT_S),
            relative_gap=1.0,  # whether there is an answer is all that is asked
        )


@functools.cache
def load(name: str) -> common.Task:
    """Load a data set once."""
    return common.as_amounts(common.load(name))


@functools.cache
def fitted(data_set: str, model: str) -> Any:
    """Fit a model once."""
    return common.fit(load(data_set), MODELS[model]())


# ---- building a case ------------------------------------------------------------------------------------------------
def build(number: int) -> Case:
    """Add rules that the last answer breaks, of kinds drawn at random, until there is no answer."""
    rng = np.random.default_rng(number)
    data_set = "heloc" if number in HELOC else DATA_SETS[number % 2]
    model = list(MODELS)[number // 2 % (2 if data_set == "heloc" else 3)]
    people = common.rejected(load(data_set), fitted(data_set, model), CASES, common.SEED)
    case = Case(data_set, model, people.iloc[[number % len(people)]].reset_index(drop=True))
    is_of_space = number % OF_SPACE == OF_SPACE - 1
    if is_of_space:
        case.take_settings()
    for step in range(100):
        result = case.ask()
        if result.status not in ANSWERED:
            if not case.rules and not case.settings:  # the data's own schema leaves no answer
                case.take_settings()
            return case
        if is_of_space:
            set_one(case, result, rng)
            continue
        for kind in rng.permutation(np.array(KINDS if step < MOST else LAST, dtype=object)):
            rule = kind(case, result, rng, f"{kind.__name__} {step + 1}")
            if rule is not None and broken_by(rule, case, result):
                break
        case.rules.append(rule)
    message = f"case {number} still has an answer"
    raise RuntimeError(message)


def broken_by(rule: Any, case: Case, result: ceopt.SolutionSet) -> bool:
    """Whether the answer in hand breaks a rule."""
    space = case.task.bunch.space
    home, point = space.row(case.row), space.row(result[0].frame)
    return bool(rule.violation(space, home, point) > 0.0)


def numbers(case: Case, result: ceopt.SolutionSet) -> list[str]:
    """Return the numbers that the answer changes."""
    return [name for name in result[0].changed if not case.task.bunch.space[name].is_finite]


def between(case: Case, result: ceopt.SolutionSet, name: str, share: float = 0.5) -> tuple[str, float]:
    """Return on which side of which value the row lies, and the answer does not."""
    home, new = float(case.row[name].iloc[0]), float(result[0].values[name])
    middle = home + share * (new - home)
    return ("<=", float(math.floor(middle))) if new > home else (">=", float(math.ceil(middle)))


def cap(case: Case, result: ceopt.SolutionSet, rng: Any, name: str) -> Any:
    """Let a number go at most half of the way."""
    found = numbers(case, result)
    if not found:
        return None
    column = str(rng.choice(found))
    return Linear({column: 1.0}, *between(case, result, column), name=name)


def pair(case: Case, result: ceopt.SolutionSet, rng: Any, name: str) -> Any:
    """Let two numbers together go at most half of the way, in units of their ranges."""
    found = numbers(case, result)
    if len(found) < 2:
        return None
    chosen = [str(column) for column in rng.choice(found, 2, replace=False)]
    row, half = {}, 0.0
    for column in chosen:
        home, new = float(case.row[column].iloc[0]), float(result[0].values[column])
        weight = math.copysign(1.0 / case.task.bunch.space[column].scale("range"), new - home)
        row[column], half = weight, half + weight * (home + new) / 2.0
    return Linear(row, "<=", half, name=name)


def equal(case: Case, result: ceopt.SolutionSet, rng: Any, name: str) -> Any:
    """Let a number stay."""
    found = numbers(case, result)
    if not found:
        return None
    column = str(rng.choice(found))
    return Linear({column: 1.0}, "==", float(case.row[column].iloc[0]), name=name)


def levels(case: Case, result: ceopt.SolutionSet) -> list[str]:
    """Return the columns with levels that the answer changes."""
    return [name for name in result[0].changed if case.task.bunch.space[name].is_finite]


def plain(case: Case, column: str) -> Any:
    """Return the person's value as the space has it."""
    feature = case.task.bunch.space[column]
    return feature.from_coordinate(space_value(case, case.row, column))


def values(case: Case, result: ceopt.SolutionSet, rng: Any, name: str) -> Any:
    """Let a column take any level but the answer's."""
    found = levels(case, result)
    if not found:
        return None
    column = str(rng.choice(found))
    left = [level for level in case.task.bunch.space[column].levels if level != result[0].values[column]]
    return AllowedValues({column: left}, name=name)


def transitions(case: Case, result: ceopt.SolutionSet, rng: Any, name: str) -> Any:
    """Let a level become any other but the answer's."""
    found = levels(case, result)
    if not found:
        return None
    column = str(rng.choice(found))
    home = plain(case, column)
    left = [level for level in case.task.bunch.space[column].levels if level not in {result[0].values[column], home}]
    return AllowedTransitions(column, {home: left}, name=name)


def implied(case: Case, result: ceopt.SolutionSet, rng: Any, name: str) -> Any:
    """Let one column change only where another stays."""
    found = list(result[0].changed)
    if len(found) < 2:
        return None
    one, other = (str(column) for column in rng.choice(found, 2, replace=False))
    return IfThen((one, "changed"), (other, "==", plain(case, other)), name=name)


def together(case: Case, result: ceopt.SolutionSet, rng: Any, name: str) -> Any:
    """Let two columns be as in the row of somebody in the data, or as they are."""
    found = list(result[0].changed)
    if len(found) < 2:
        return None
    columns = [str(column) for column in rng.choice(found, 2, replace=False)]
    known = pd.concat([case.task.train[columns], case.row[columns]]).drop_duplicates()
    known = known[~(known == [result[0].values[column] for column in columns]).all(axis=1)]
    return AllowedRows(columns, known, name=name)


def likely(case: Case, result: ceopt.SolutionSet, rng: Any, name: str) -> Any:
    """Let the answer be nearer to rows of the target class than the last one is."""
    if any(isinstance(rule, Hull) for rule in case.rules):
        return None
    task = case.task
    rows = task.train[task.labels == task.target].sample(ROWS, random_state=int(rng.integers(1000)))
    hull, space = Hull(rows, norm="l1", name=name), task.bunch.space
    far = hull.violation(space, None, space.row(result[0].frame))
    return Hull(rows, norm="l1", radius=0.9 * far, name=name)


def few(case: Case, result: ceopt.SolutionSet, rng: Any, name: str) -> Any:
    """Let fewer columns change."""
    del rng
    k = len(result[0].changed) - 1
    return MaxChanges(k, name=name) if k and not any(isinstance(rule, MaxChanges) for rule in case.rules) else None


KINDS = (cap, pair, equal, values, transitions, implied, together, likely, few)
LAST = (equal, values)


def set_one(case: Case, result: ceopt.SolutionSet, rng: Any) -> None:
    """Fix a column that the answer changes, or bound it half of the way, or let it move the other way alone."""
    column = str(rng.choice(list(result[0].changed)))
    feature = case.task.bunch.space[column]
    if not feature.is_finite and rng.random() < 0.6:
        sense, value = between(case, result, column)
        word, bound = ("at most", "upper") if sense == "<=" else ("at least", "lower")
        for name in [name for name, (of, given) in case.settings.items() if of == column and bound in given]:
            del case.settings[name]
        case.settings[f"{column}: {word} {value:.0f}"] = (column, {bound: value})
    elif feature.kind != "categorical" and feature.direction == "any" and rng.random() < 0.5:
        home, new = (space_value(case, frame, column) for frame in (case.row, result[0].frame))
        word, way = ("decrease", "decreasing") if new > home else ("increase", "increasing")
        case.settings[f"{column}: may only {word}"] = (column, {"direction": way})
    else:
        case.settings[f"{column}: fixed"] = (column, {"mutable": False})


def space_value(case: Case, frame: pd.DataFrame, column: str) -> float:
    """Return a value as a number or rank."""
    return case.task.bunch.space.row(frame)[column]


# ---- checking it -----------------------------------------------------------------------------------------------------
def check(case: Case, result: ceopt.SolutionSet) -> Iterator[str]:
    """Name what is wrong with a conflict, by asking again without, and with wider rules."""
    names = [name for name, _, _ in result.conflict]
    if not names:
        yield f"no conflict ({result.reason})"
        return
    if case.settings:
        yield from check_settings(case, result, names)
        return
    rules = {rule.name: rule for rule in case.rules}
    if case.ask([rules[name] for name in names]).status != "infeasible":
        yield "the conflict has an answer"
    for name, _, width in result.conflict:
        if case.ask([rules[other] for other in names if other != name]).status not in ANSWERED:
            yield f"{name} can be spared"
        if width is not None:
            less = width - 1.0 if isinstance(rules[name], MaxChanges) else LESS * width
            for by, expected in ((width, ANSWERED), (less, {"infeasible"})):
                wider = [rule.widened(by) if rule.name == name else rule for rule in case.rules]
                if by > 0.0 and case.ask(wider).status not in expected:
                    yield f"{name} by {by:g} is not {' or '.join(sorted(expected))}"


@contextlib.contextmanager
def without_reasons() -> Iterator[None]:
    """Ask only whether there is an answer, not why there is none."""
    real = ceopt.search.phases.conflict_of
    ceopt.search.phases.conflict_of = lambda *_, **__: Conflict((), "")  # type: ignore[assignment]
    try:
        yield
    finally:
        ceopt.search.phases.conflict_of = real


def check_settings(case: Case, result: ceopt.SolutionSet, names: list[str]) -> Iterator[str]:
    """Name what is wrong where the rules are those of the space."""
    if case.ask(settings=names).status != "infeasible":
        yield "the conflict has an answer"
    for name, _, width in result.conflict:
        if case.ask(settings=[other for other in names if other != name]).status not in ANSWERED:
            yield f"{name} can be spared"
        column, setting = case.settings[name]
        for bound in {"lower", "upper"} & setting.keys() if width is not None else ():
            for by, expected in ((width, ANSWERED), (width - 1.0, {"infeasible"})):
                moved = setting[bound] + (by if bound == "upper" else -by)
                wider = Case(case.data_set, case.model, case.row, case.rules, dict(case.settings))
                wider.settings[name] = (column, {bound: moved})
                if by > 0.0 and wider.ask().status not in expected:
                    yield f"{name} by {by:g} is not {' or '.join(sorted(expected))}"


# ---- the run ---------------------------------------------------------------------------------------------------------
def run(number: int) -> dict[str, Any]:
    """Build a case, ask once more with clocks, and check what is said."""
    with without_reasons():
        case = build(number)
    counted: list[int] = []
    least = Relaxer.least

    def noted(self: Any, *args: Any, **words: Any) -> Any:
        counted.append(0)
        return least(self, *args, **words)

    Relaxer.least = noted  # type: ignore[method-assign]
    try:
        with common.clocked(ceopt.search.phases, "conflict_of") as spent:
            began = time.perf_counter()
            result = case.ask()
            seconds = time.perf_counter() - began
    finally:
        Relaxer.least = least  # type: ignore[method-assign]
    with without_reasons():
        faults = list(check(case, result))
    listed = [f"{rule.name}: {rule.sentence()}" for rule in case.rules] or list(case.settings)
    sizes = [width for _, _, width in result.conflict]
    return {
        "data_set": case.data_set,
        "model": case.model,
        "of": "space" if case.settings else "rules",
        "status": str(result.status),
        "rules": listed,
        "conflict": [list(entry) for entry in result.conflict],
        "widths": sum(width is not None for width in sizes),
        "solves": len(counted),
        "seconds": seconds,
        "conflict_s": spent["wall"],
        "conflict_cpu_s": spent["cpu"],
        "faults": faults,
    }


def main() -> None:
    """Run all cases and write the report."""
    options = common.arguments("Fifty questions without an answer.", cases=CASES)
    cases = 6 if options.quick else options.cases
    settings = {"cases": cases, "limit_s": LIMIT_S, "seed": common.SEED}
    journal = common.Journal("conflicts-quick" if options.quick else "conflicts", settings)
    for number in common.bar(range(cases), cases):
        if str(number) not in journal.done:
            journal.add(str(number), run(number))
    write(journal, settings, quick=options.quick)


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Keep what was found."""
    record = {"settings": settings, "records": journal.records}
    common.report("conflicts", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


def text_of(record: dict[str, Any]) -> str:
    """Summarise by data set and model."""
    records, lines = record["records"], []
    keys = sorted({(r["data_set"], r["model"], r["of"]) for r in records})
    for key in keys:
        part = [r for r in records if (r["data_set"], r["model"], r["of"]) == key]
        lines.append([*key, len(part), *(spread([measure(r) for r in part], digits) for measure, digits in CELLS)])
    wrong = [f"{r['key']}: {', '.join(r['faults'])}" for r in records if r["faults"] or r["status"] != "infeasible"]
    widths, entries = sum(r["widths"] for r in records), sum(len(r["conflict"]) for r in records)
    return (
        f"{len(records)} questions without an answer, on rejected people of three data sets and three models (logistic "
        "regression, forest of 20, network of 2 x 10, but for HELOC). To each person's question rules are added that "
        "the last answer breaks, of kinds drawn at random (caps, sums of two columns, equations, allowed values, "
        "transitions, rows, a condition, a hull, fewer changes), until none is left; "
        "in every fifth case the space is narrowed instead. "
        "Checked by asking `explain` anew: the conflict alone has no answer, it has one without any one of its rules, "
        f"the whole question has one with a rule as much wider as is said, and none with {LESS:g} of that (a count or "
        "whole bound: one less).\n\n"
        + common.markdown_table(HEAD, lines)
        + "\n\nMedian / 90 % / worst. A solve is one program of the search for the conflict, widths included; the "
        f"seconds are those of that search.\n\n{len(records) - len(wrong)} of {len(records)} conflicts are irreducible "
        f"and as wide as is said; {widths} of their {entries} rules alone could be widened to make room for an answer."
        + ("" if not wrong else "\n\nWrong: " + "; ".join(wrong))
    )


def spread(numbers: list[float], digits: int) -> str:
    """Return "median / 90 % / worst"."""
    return common.spread(numbers, digits)


Measure = Callable[[dict[str, Any]], float]
CELLS: tuple[tuple[Measure, int], ...] = (
    (lambda r: len(r["rules"]), 0),
    (lambda r: len(r["conflict"]), 0),
    (lambda r: r["solves"], 0),
    (lambda r: r["conflict_s"], 2),
    (lambda r: r["conflict_cpu_s"], 2),
)
HEAD = ["data", "model", "rules of", "cases", "rules", "in conflict", "solves", "seconds", "CPU"]


if __name__ == "__main__":
    main()
