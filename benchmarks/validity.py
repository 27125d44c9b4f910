"""No invalid answer and no shirking: 16 models on real data, every answer checked apart from ceopt."""

from __future__ import annotations

from functools import partial
from typing import Any

import answers
import common
import pandas as pd
from sklearn.pipeline import Pipeline

from ceopt.search.prepare import prepare
from ceopt.settings import Settings

TITLE = "Validity"
MEASURES = ("ceopt/search", "formulations/predictors")

MODELS = ("logistic", "svm", "tree", "forest")
LIMIT_S = 60.0


def greatest_score(row: pd.DataFrame, model: Pipeline, task: common.Task) -> float:
    """Return the greatest score of a linear model in the person's reach: each column at its best, one by one.

    A linear score is a sum over columns, so the best of each column, found with the model's own decision function at
    the ends of its reach or at its levels, adds up.
    """
    sign = 1.0 if model.classes_[1] == task.target else -1.0
    base = sign * float(model.decision_function(row)[0])
    total = base
    for name, column in common.schema_of(task.bunch.name).items():
        home = row[name].iloc[0]
        if column.get("immutable"):
            continue
        if "levels" in column:
            place = column["levels"].index(home) if column.get("monotone") == "increasing" else 0
            values = column["levels"][place:]
        else:
            lower = home if column.get("monotone") == "increasing" else min(column["lower"], home)
            values = [lower, max(column["upper"], home)]
        tried = pd.concat([row] * len(values), ignore_index=True)
        tried[name] = pd.Series(values).astype(row[name].dtype)
        total += max(0.0, float((sign * model.decision_function(tried)).max()) - base)
    return total


def confirm(row: pd.DataFrame, *, model: Pipeline, name: str, task: common.Task) -> str:
    """Confirm a proof of infeasibility by another route; the word is "confirmed" or says what went otherwise."""
    if name in {"logistic", "svm"}:
        best = greatest_score(row, model, task)
        return "confirmed" if best <= 1e-4 else f"a score of {best:.3g} can be reached"
    return answers.confirmed_by("misic", model, row, task)


def main() -> None:
    """Run all tasks and write the report."""
    options = common.arguments("Validity of answers on real data.", rows=15, limit=int(LIMIT_S))
    rows = 2 if options.quick else options.rows
    settings = {"rows": rows, "limit_s": options.limit, "seed": common.SEED}
    journal = common.Journal("validity-quick" if options.quick else "validity", settings)
    with common.bar(None, rows * len(common.DATA_SETS) * len(MODELS)) as bar:
        for data_set in common.DATA_SETS:
            task = common.load(data_set)
            for name in MODELS:
                run(task, name, rows, options.limit, journal=journal, bar=bar)
    write(journal, settings, quick=options.quick)


def run(task: common.Task, name: str, rows: int, limit_s: float, *, journal: common.Journal, bar: Any) -> None:
    """Run the rows of one model that are not in the journal yet."""
    keys = [f"{task.bunch.name}/{name}/{place}" for place in range(rows)]
    bar.set_description(f"{task.bunch.name} {name}")
    if all(key in journal.done for key in keys):
        bar.update(rows)
        return
    model = common.fit(task, name)
    people = common.rejected(task, model, rows)
    asked = Settings(target=task.target, time_limit_s=limit_s)
    prepared = prepare(model, task.bunch.space, asked, data=task.train)
    again = partial(confirm, model=model, name=name, task=task)
    for place, key in enumerate(keys[: len(people)]):
        if key not in journal.done:
            record = answers.one(prepared, people.iloc[[place]], model, task, confirm=again)
            journal.add(key, {"data": task.bunch.name, "model": name, "row": str(people.index[place]), **record})
        bar.update()


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Count, and keep what was found."""
    record = {"settings": settings, "totals": answers.totals(journal.records), "records": journal.records}
    common.report("validity", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


def text_of(record: dict[str, Any]) -> str:
    """Summarise per task and in all."""
    settings = record["settings"]
    return (
        f"{settings['rows']} people per model whom it rejects, drawn with seed {settings['seed']}, "
        f"{settings['limit_s']} s each, cost l1, HiGHS on one thread. Each answer is put to the model's own `predict` "
        "and to the rules of the data's schema by code of this script. Infeasible rows are confirmed by the greatest "
        "score in reach (linear models) or by Misic's form (trees). CPU seconds are what the row needs; wall seconds "
        "hold the waiting for other jobs on the machine. Sizes are medians of the first program.\n\n"
        + answers.table(record["records"], MODELS)
    )


if __name__ == "__main__":
    main()
