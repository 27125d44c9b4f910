"""Every criterion at once on real data: plausible, sparse, actionable, causal, diverse, and checked apart."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import answers
import common
import numpy as np
import pandas as pd
from scipy.optimize import linprog
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier

from ceopt import L1, AllowedRows, AllowedTransitions, AllowedValues, Causal, Changes, Hull, IfThen, Linear, MaxChanges
from ceopt.search.prepare import Prepared, prepare
from ceopt.search.search import search
from ceopt.settings import Settings

TITLE = "Every criterion at once"
MEASURES = (
    "ceopt/search",
    "formulations/constraints",
    "formulations/predictors/embed",
)

DATA_SETS = ("german", "heloc")
MODELS: dict[str, Any] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "forest": lambda: RandomForestClassifier(n_estimators=50, max_depth=5, random_state=common.SEED, n_jobs=1),
    "network": lambda: MLPClassifier((10, 10), max_iter=1000, random_state=common.SEED),
}
GRAPHS = json.loads((Path(__file__).parent / "causal_graphs.json").read_text(encoding="utf-8"))
LIMIT_S = 60.0
#: How many answers each person is given, that change other columns.
ANSWERS = 3
#: Which rows of the target class span the hulls -> how many are drawn; None for all.
HULLS: dict[str, int | None] = {"sampled": 500, "whole": None}
CLUSTERS = 3
RADIUS, CHANGES, PER_CHANGE = 1.0, 6, 0.1
#: A consequence in a column of whole numbers or levels may be off its equation by half a unit: it is rounded.
ROUNDED = 0.5
TOLERANCE = 1e-5

TERMS = list(range(3, 75, 3))
HOUSING = {"for_free": ["rent", "own"], "rent": ["own"]}
PAIRS = {"german": ["status", "savings"], "heloc": ["MaxDelq2PublicRecLast12M", "MaxDelqEver"]}


# ---- the question ----------------------------------------------------------------------------------------------------
def load(name: str) -> common.Task:
    """Load a data set; of HELOC the people with a record, whose numbers mean something."""
    task = common.as_amounts(common.load(name))
    if name != "heloc":
        return task
    known = [part["ExternalRiskEstimate"] >= 0 for part in (task.bunch.data, task.train, task.others)]
    bunch = replace(task.bunch, data=task.bunch.data[known[0]], target=task.bunch.target[known[0]])
    return common.Task(bunch, task.train[known[1]], task.labels[known[1]], task.others[known[2]])


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Everything that is asked of the answers for one data set, as plain data.

    Parameters
    ----------
    task
        The data.
    rows, labels
        Rows of the target class that span the hulls, and the hull of each.
    equations
        Column -> (regressor, parents).
    """

    task: common.Task
    rows: pd.DataFrame
    labels: np.ndarray
    equations: dict[str, tuple[Any, list[str]]]

    @classmethod
    def of(cls, task: common.Task, drawn: int | None) -> Question:
        """Draw and cluster the rows of the hulls, and fit the equations of the committed graph."""
        liked = task.train[task.labels == task.target].drop_duplicates()
        if drawn is not None:
            liked = liked.sample(min(len(liked), drawn), random_state=common.SEED)
        labels = KMeans(CLUSTERS, random_state=common.SEED, n_init=10).fit_predict(coded(task, liked))
        equations = {}
        for column, parents in GRAPHS[task.bunch.name].items():
            regressor = LinearRegression().fit(task.train[parents].astype(float), task.train[column].astype(float))
            equations[column] = (regressor, parents)
        return cls(task, liked, labels, equations)

    def rules(self) -> list[Any]:
        """Return the rules: three hulls of which one is to hold the answer, and one rule of each other kind."""
        task = self.task
        pair = PAIRS[task.bunch.name]
        rules = [
            Hull(self.rows, radius=RADIUS, norm="l1", clusters=self.labels, enlarge=True, name="plausible"),
            MaxChanges(CHANGES, name="few"),
            AllowedRows(pair, task.train[pair].drop_duplicates(), name="together"),
            Causal(self.equations, intervention="hard", slack=dict.fromkeys(self.equations, ROUNDED), name="causes"),
        ]
        if task.bunch.name == "german":
            return [
                *rules,
                AllowedValues({"duration": TERMS}, name="terms"),
                AllowedTransitions("housing", HOUSING, name="housing"),
                IfThen(("duration", ">=", 36), ("amount", ">=", 2000), name="long"),
            ]
        return [
            *rules,
            Linear({"NumSatisfactoryTrades": 1.0, "NumTotalTrades": -1.0}, "<=", 0.0, name="part"),
            IfThen(("NumTradesOpeninLast12M", "changed"), ("MSinceMostRecentTradeOpen", "<=", 12), name="opened"),
        ]

    # ---- the check: nothing of ceopt -------------------------------------------------------------------------------
    def broken(self, row: pd.DataFrame, answer: pd.DataFrame, radius: float) -> Iterator[str]:
        """Name what one answer breaks, in pandas and numpy."""
        task, home, new = self.task, row.iloc[0], answer.iloc[0]
        if sum(home[column] != new[column] for column in row.columns) > CHANGES:
            yield "few"
        pair = PAIRS[task.bunch.name]
        if not (task.train[pair] == [new[column] for column in pair]).all(axis=1).any():
            yield "together"
        if task.bunch.name == "german":
            if new["duration"] not in TERMS:
                yield "terms"
            if new["housing"] != home["housing"] and new["housing"] not in HOUSING.get(home["housing"], []):
                yield "housing"
            if new["duration"] >= 36 and not new["amount"] >= 2000:
                yield "long"
        else:
            if new["NumSatisfactoryTrades"] > new["NumTotalTrades"]:
                yield "part"
            opened = new["NumTradesOpeninLast12M"] != home["NumTradesOpeninLast12M"]
            if opened and not new["MSinceMostRecentTradeOpen"] <= 12:
                yield "opened"
        points, x = coded(task, self.rows), coded(task, answer)[0]
        if min(distance(points[self.labels == k], x) for k in range(CLUSTERS)) > radius + TOLERANCE:
            yield "plausible"

    def cost(self, row: pd.DataFrame, answer: pd.DataFrame) -> float:
        """Return what an answer costs: consequences are free, and each other change costs its length and a tenth."""
        total = 0.0
        for name, column in common.schema_of(self.task.bunch.name).items():
            home, new = row[name].iloc[0], answer[name].iloc[0]
            if home == new or (name in self.equations and self._follows(name, row, answer)):
                continue
            scale = self.task.bunch.space[name].scale("mad")
            if column["kind"] == "categorical":
                length = 1.0
            elif "levels" in column:
                length = abs(column["levels"].index(new) - column["levels"].index(home)) / scale
            else:
                length = abs(float(new) - float(home)) / scale
            total += length + PER_CHANGE
        return total

    def _follows(self, name: str, row: pd.DataFrame, answer: pd.DataFrame) -> bool:
        regressor, parents = self.equations[name]
        caused = [float(regressor.predict(frame[parents].astype(float))[0]) for frame in (row, answer)]
        off = float(answer[name].iloc[0]) - float(row[name].iloc[0]) - (caused[1] - caused[0])
        return abs(off) <= ROUNDED + TOLERANCE


def coded(task: common.Task, frame: pd.DataFrame) -> np.ndarray:
    """Return rows as the hull counts them: numbers by their range, levels in order by their place, others as 0/1."""
    parts = []
    for name, column in common.schema_of(task.bunch.name).items():
        values = frame[name].to_numpy()
        if "levels" in column and column["kind"] == "categorical":
            parts += [(values == level).astype(float) for level in column["levels"]]
        elif "levels" in column:
            places = np.array([column["levels"].index(value) for value in values.tolist()], dtype=float)
            parts.append(places / max(len(column["levels"]) - 1, 1))
        else:
            parts.append(values.astype(float) / task.bunch.space[name].scale("range"))
    return np.stack(parts, axis=1)


def distance(points: np.ndarray, x: np.ndarray) -> float:
    """Return the l1 distance of a point from the hull of others, by a linear program."""
    n, d = points.shape
    rows = np.vstack([np.hstack([points.T, np.eye(d), -np.eye(d)]), np.r_[np.ones(n), np.zeros(2 * d)][None, :]])
    found = linprog(np.r_[np.zeros(n), np.ones(2 * d)], A_eq=rows, b_eq=np.r_[x, 1.0], method="highs")
    return float(found.fun)


# ---- the run ---------------------------------------------------------------------------------------------------------
def main() -> None:
    """Run all tasks and write the report."""
    options = common.arguments("Every criterion at once on real data.", rows=10, limit=int(LIMIT_S))
    rows = 2 if options.quick else options.rows
    settings = {"rows": rows, "limit_s": options.limit, "seed": common.SEED, "answers": ANSWERS}
    journal = common.Journal("criteria-quick" if options.quick else "criteria", settings)
    with common.bar(None, rows * len(DATA_SETS) * len(MODELS) * len(HULLS)) as bar:
        for data_set in DATA_SETS:
            task = load(data_set)
            for name, hull in product(MODELS, HULLS):
                run(task, name, hull, rows, options.limit, journal=journal, bar=bar)
    write(journal, settings, quick=options.quick)


def run(
    task: common.Task, name: str, hull: str, rows: int, limit_s: float, *, journal: common.Journal, bar: Any
) -> None:
    """Run the rows of one model and one kind of hull that are not in the journal yet."""
    keys = [f"{task.bunch.name}/{name}/{hull}/{place}" for place in range(rows)]
    bar.set_description(f"{task.bunch.name} {name} {hull}")
    if all(key in journal.done for key in keys):
        bar.update(rows)
        return
    model = common.fit(task, MODELS[name]())
    people = common.rejected(task, model, rows)
    question = Question.of(task, HULLS[hull])
    asked = Settings(
        target=task.target, n=ANSWERS, diversity="support", cost=L1() + PER_CHANGE * Changes(),
        constraints=question.rules(), time_limit_s=limit_s,
    )  # fmt: skip
    prepared = prepare(model, task.bunch.space, asked, data=task.train)
    for place, key in enumerate(keys[: len(people)]):
        if key not in journal.done:
            record = one(prepared, question, people.iloc[[place]], model)
            about = {"data": task.bunch.name, "model": name, "hull": hull, "hull_rows": len(question.rows)}
            journal.add(key, {**about, "row": str(people.index[place]), **record})
        bar.update()


def one(prepared: Prepared, question: Question, row: pd.DataFrame, model: Any) -> dict[str, Any]:
    """Ask for one person, and check every answer."""
    cpu = time.process_time()
    with common.sizes() as sizes:
        result = search(prepared, row)
    radius = result.relaxed.get("plausible", RADIUS)
    faults: list[str] = []
    for answer in result:
        faults += answers.faults(answer.frame, row.reset_index(drop=True), model, question.task)
        faults += question.broken(row, answer.frame, radius)
        by_hand = question.cost(row, answer.frame)
        if abs(by_hand - answer.cost) > 1e-6 * max(1.0, by_hand):
            faults.append(f"cost {answer.cost:.8g}, by hand {by_hand:.8g}")
    if len({answer.changed for answer in result}) < len(result):
        faults.append("two answers change the same columns")
    return {
        "status": str(result.status),
        "reason": result.reason,
        "seconds": result.timings["total"],
        "cpu": time.process_time() - cpu,
        "timings": dict(result.timings),
        "programs": len(sizes),
        "size": sizes[0] if sizes else {},
        "gap": result.gap,
        "bound": result.bound,
        "answers": len(result),
        "complete": result.complete,
        "proved": [answer.gap is not None and answer.gap <= 1e-6 for answer in result],
        "costs": [answer.cost for answer in result],
        "changed": [list(answer.changed) for answer in result],
        "relaxed": dict(result.relaxed),
        "conflict": [list(entry) for entry in result.conflict],
        "faults": faults,
    }


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Keep what was found."""
    record = {"settings": settings, "records": journal.records}
    common.report("criteria", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


def text_of(record: dict[str, Any]) -> str:
    """Summarise per task and in all."""
    settings = record["settings"]
    hulls = [hull for hull in HULLS if any(r["hull"] == hull for r in record["records"])]
    rows = {"sampled": f"{HULLS['sampled']} rows drawn of the target class", "whole": "all rows of the target class"}
    spanned = " or ".join(rows[hull] for hull in hulls)
    about = (
        f"{settings['rows']} people per model whom it rejects, drawn with seed {settings['seed']}, "
        f"{settings['limit_s']} s each for up to {ANSWERS} answers that change other columns, HiGHS on one thread. "
        "Asked of every answer: the decision; the data's bounds, fixed and one-way columns; to stand within "
        f"{RADIUS:g} (l1 over ranges) of one of {CLUSTERS} hulls over {spanned}, which widens by the least radius "
        f"where nothing else is left; at most {CHANGES} changes; combinations of levels that occur; "
        "if-then, allowed values, transitions or a linear row; and the causal graph of `benchmarks/causal_graphs.json` "
        f"by hard interventions. Cost: l1 by median absolute deviations plus {PER_CHANGE:g} for each change, "
        "consequences free. Every answer is put to the model's own `predict`, to each rule and to the cost's formula "
        "by code of this script. Statuses are those of the first answer."
    )
    parts = [about, table(record["records"])]
    for hull in hulls:
        parts += [f"Hulls of {hull} data:", reached([r for r in record["records"] if r["hull"] == hull])]
    return "\n\n".join(parts)


def table(records: list[dict[str, Any]]) -> str:
    """Return a line per data set and model."""
    head = (
        "data", "model", "rows of hulls", "people", "statuses", "answers", "of them proved optimal",
        "invalid", "widened hulls", "seconds: median / 90 % / worst", "variables/binaries/rows",
    )  # fmt: skip
    lines = []
    for data_set in DATA_SETS:
        for name, hull in product(MODELS, HULLS):
            part = [r for r in records if (r["data"], r["model"], r["hull"]) == (data_set, name, hull)]
            if part:
                sized = [r["size"] for r in part if r["size"]]
                size = "/".join(str(round(float(np.median([s[k] for s in sized])))) for k in sized[0]) if sized else "-"
                counts = Counter(r["status"] for r in part)
                lines.append(
                    [
                        data_set, name, f"{part[0]['hull_rows']:,} ({hull})", len(part),
                        ", ".join(f"{word} {k}" for word, k in counts.most_common()),
                        sum(r["answers"] for r in part), sum(sum(r["proved"]) for r in part),
                        sum(bool(r["faults"]) for r in part), sum(bool(r["relaxed"]) for r in part),
                        common.spread([r["seconds"] for r in part], 1), size,
                    ]
                )  # fmt: skip
    return common.markdown_table(head, lines)


def reached(records: list[dict[str, Any]]) -> str:
    """Return what was to be reached, and what was."""
    left = [r for r in records if r["status"] != "infeasible"]
    answered, optimal = sum(r["answers"] > 0 for r in left), sum(r["status"] == "optimal" for r in left)
    invalid = sum(bool(r["faults"]) for r in records)
    n = max(len(left), 1)
    return (
        f"- invalid answers: {invalid} (to reach: 0)\n"
        f"- answered, of {len(left)} rows not proved infeasible: {answered} = {answered / n:.0%} (90 %)\n"
        f"- first answer proved optimal: {optimal} = {optimal / n:.0%} (half)\n"
        f"- proved infeasible: {len(records) - len(left)}"
    )


if __name__ == "__main__":
    main()
