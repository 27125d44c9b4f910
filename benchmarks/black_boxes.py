"""Recourse for models of which only ``predict`` is known: who is answered, how, at what cost, with how many rows.

Five models that no reader opens, the last of them a function that needs 5 ms a row; then forests and small networks,
asked through ``predict`` too, of which ceopt's exact engine knows the optimum.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import answers
import common
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import ceopt
from ceopt.metrics import cost
from ceopt.surrogates import BoundarySampler, LocalSurrogateRecourse

TITLE = "Black boxes"
MEASURES = ("ceopt/surrogates", "formulations/programs/minimax.py")

DATA_SETS = ("german", "heloc", "adult")
#: A Gaussian process takes the cube of the rows.
TRAINED_ON = 600
#: What the slow function waits for each row that it is sent.
SLOW_S = 0.005
#: People whom the slow function is asked about side by side.
SLEEPING = 6
LIMIT_S = 120.0
EXACT_LIMIT_S = 10.0
WAYS = ("surrogate", "grown", "boundary")


@dataclass(frozen=True, slots=True)
class Slow:
    """A function that needs its time: an SVM behind a wire."""

    model: Any

    def predict(self, frame: pd.DataFrame) -> Any:
        """Return labels, (n,)."""
        time.sleep(SLOW_S * len(frame))
        return self.model.predict(frame)


def _stacking() -> StackingClassifier:
    members = [
        ("svm", SVC()),
        ("neighbours", KNeighborsClassifier(15)),
        ("forest", RandomForestClassifier(50, max_depth=6, random_state=common.SEED)),
    ]
    return StackingClassifier(members, final_estimator=LogisticRegression())


#: Model -> what makes it; those of the second part are read exactly too.
CLOSED: dict[str, Callable[[], Any]] = {
    "RBF SVM": SVC,
    "nearest neighbours": lambda: KNeighborsClassifier(15),
    "Gaussian process": lambda: GaussianProcessClassifier(random_state=common.SEED),
    "stacking": _stacking,
    "5 ms a row": SVC,
}
OPEN: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(50, max_depth=6, random_state=common.SEED, n_jobs=1),
    "network": lambda: MLPClassifier((16, 8), max_iter=800, random_state=common.SEED),
}


def main() -> None:
    """Ask for everybody and write the report."""
    options = common.arguments("Recourse for black boxes.", rows=42)
    rows = 3 if options.quick else options.rows
    settings = {"rows": rows, "trained_on": TRAINED_ON, "limit_s": LIMIT_S, "seed": common.SEED}
    journal = common.Journal("black_boxes-quick" if options.quick else "black_boxes", settings)
    models = {**CLOSED, **OPEN}
    with common.bar(None, rows * len(models)) as bar:
        for name, make in models.items():
            bar.set_description(name)
            for data_set in DATA_SETS:
                run(name, make, data_set, rows // len(DATA_SETS), journal=journal, bar=bar)
    record = {"settings": settings, "records": journal.records}
    common.report("black_boxes", TITLE, MEASURES, text_of, record, quick=options.quick)
    journal.close()


def run(name: str, make: Callable[[], Any], data_set: str, rows: int, *, journal: common.Journal, bar: Any) -> None:
    """Ask for the people of one model and data set who are not in the journal yet."""
    keys = [f"{name}/{data_set}/{place}" for place in range(rows)]
    if all(key in journal.done for key in keys):
        bar.update(rows)
        return
    task = few(common.as_amounts(common.load(data_set)))
    model: Any = common.fit(task, make())
    people = common.rejected(task, model, rows)
    if name == "5 ms a row":
        model = Slow(model)
    left = [place for place, key in enumerate(keys[: len(people)]) if key not in journal.done]
    bar.update(rows - len(left))
    beside = SLEEPING if name == "5 ms a row" else 1  # who sleeps takes no processor
    asked = Parallel(n_jobs=beside, return_as="generator")(
        delayed(one)(model, people.iloc[[place]], task) for place in left
    )
    for place, found in zip(left, asked, strict=True):
        record = {"model": name, "data": data_set, "row": str(people.index[place]), **found}
        if name in OPEN:
            record |= exact(model, people.iloc[[place]], task)
        journal.add(keys[place], record)
        bar.update()


def few(task: common.Task) -> common.Task:
    """Return the task with some of its training rows."""
    kept = np.random.default_rng(common.SEED).permutation(len(task.train))[:TRAINED_ON]
    return replace(task, train=task.train.iloc[kept], labels=task.labels.iloc[kept])


def one(model: Any, person: pd.DataFrame, task: common.Task) -> dict[str, Any]:
    """Ask for one person through ``predict`` alone; check the answer apart from ceopt, and price the boundary point."""
    space = task.bunch.space
    began = time.perf_counter()
    result = LocalSurrogateRecourse().explain(
        model.predict, person, space, target=task.target, data=task.train, time_limit_s=LIMIT_S
    )
    seconds = time.perf_counter() - began
    record: dict[str, Any] = {"status": str(result.status), "reason": result.reason, "seconds": seconds}
    if result.surrogate is not None:
        report = result.surrogate
        record |= {"queries": report.n_queries, "fidelity": report.fidelity, "stability": report.stability}
    if len(result):
        record |= {"way": result[0].way, "cost": result[0].cost}
        record["faults"] = answers.faults(result[0].frame, person.reset_index(drop=True), model, task)
    quick = model.model if isinstance(model, Slow) else model
    sample = BoundarySampler(random_state=0).sample(quick.predict, person, task.train, target=task.target, space=space)
    boundary = space.frame([space.row(sample.boundary)])
    record["boundary"] = float(cost(person, boundary, space)[0])
    # The sampler moves what it likes; where that breaks a rule of the space, nobody could be told that point.
    record["boundary_faults"] = answers.faults(boundary, person.reset_index(drop=True), quick, task)
    return record


def exact(model: Any, person: pd.DataFrame, task: common.Task) -> dict[str, Any]:
    """Return what the exact engine proves of the same person."""
    result = ceopt.explain(
        model, person, task.bunch.space, target=task.target, data=task.train, time_limit_s=EXACT_LIMIT_S, why=False
    )
    found: dict[str, Any] = {"exact_status": str(result.status), "exact_bound": result.bound}
    if len(result):
        found["exact_cost"] = result[0].cost
    return found


# ---- the page --------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Summarise by model."""
    settings = record["settings"]
    records = record["records"]
    limit = settings["limit_s"]
    return (
        f"{settings['rows']} people per model whom it rejects, as many of each of {', '.join(DATA_SETS)}, drawn with "
        f"seed {settings['seed']}; models fitted on {settings['trained_on']} rows; "
        f"`LocalSurrogateRecourse()` as it comes (Fisher-Rao, radius 1 and 0), cost l1, {limit:g} s each. Each answer "
        "is put to the model's own `predict` and to the rules of the data's schema by code of this script. \"of the "
        "boundary point\": the cost divided by that of the sampler's boundary point where that point keeps every rule; "
        "above 1 none may be. Fidelity is the mean where rows were left to ask about it.\n\n"
        + _closed_table(records)
        + "\n\nForests and networks, asked through `predict` too, beside the optimum that the exact engine proves with "
        "the model read.\n\n" + _open_table(records)
    )


def _closed_table(records: list[dict[str, Any]]) -> str:
    head = (
        "model",
        "people",
        "answered",
        "invalid",
        *WAYS,
        "of the boundary point: median / 90 % / worst",
        "dearer",
        "rows sent: median / most",
        "fidelity",
        "seconds: median / 90 % / worst",
    )
    rows = []
    for name in (*CLOSED, *OPEN):
        own = [r for r in records if r["model"] == name]
        answered = [r for r in own if "cost" in r]
        ways = Counter(r["way"] for r in answered)
        shares = shares_of_boundary(answered)
        sent = [r["queries"] for r in own if "queries" in r]
        rows.append(
            (
                name,
                len(own),
                f"{len(answered) / max(1, len(own)):.0%}",
                sum(bool(r["faults"]) for r in answered),
                *(f"{ways[way] / max(1, len(answered)):.0%}" for way in WAYS),
                " / ".join(f"{np.quantile(shares, q):.2f}" for q in (0.5, 0.9, 1.0)) if shares else "-",
                sum(share > 1.0 + 1e-9 for share in shares),
                f"{np.median(sent):.0f} / {max(sent)}" if sent else "-",
                f"{np.nanmean([r['fidelity'] for r in own if 'fidelity' in r]):.2f}",
                common.spread([r["seconds"] for r in own], 1),
            )
        )
    return common.markdown_table(head, rows)


def shares_of_boundary(answered: list[dict[str, Any]]) -> list[float]:
    """Return costs as shares of that of the boundary point, where the person could be told that point."""
    return [r["cost"] / r["boundary"] for r in answered if not r["boundary_faults"] and r["boundary"] > 0.0]


def _open_table(records: list[dict[str, Any]]) -> str:
    head = (
        "model",
        "people",
        "optimum proved",
        "excess over it: median / 90 % / worst",
        "boundary point's excess: median",
    )
    rows = []
    for name in OPEN:
        own = [r for r in records if r["model"] == name]
        proved = [r for r in own if r.get("exact_status") == "optimal" and "cost" in r and r["exact_cost"] > 0.0]
        excess = [r["cost"] / r["exact_cost"] - 1.0 for r in proved]
        beyond = [r["boundary"] / r["exact_cost"] - 1.0 for r in proved if not r["boundary_faults"]]
        rows.append(
            (
                name,
                len(own),
                len(proved),
                " / ".join(f"{np.quantile(excess, share):.0%}" for share in (0.5, 0.9, 1.0)) if excess else "-",
                f"{np.median(beyond):.0%}" if beyond else "-",
            )
        )
    return common.markdown_table(head, rows)


if __name__ == "__main__":
    main()
