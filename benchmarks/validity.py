"""No invalid answer and no shirking: 16 models on real data, every answer checked apart from ceopt."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import common
import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

import ceopt
from ceopt.prepare import prepare
from ceopt.search import search
from ceopt.settings import Settings

MODELS = ("logistic", "svm", "tree", "forest")
LIMIT_S = 60.0


def faults(answer: pd.DataFrame, row: pd.DataFrame, model: Pipeline, task: common.Task) -> list[str]:
    """Check one answer with the model's own predict and the schema's rules, in plain numpy and without ceopt."""
    found = []
    if model.predict(answer[list(row.columns)])[0] != task.target:
        found.append("predict")
    for name, column in common.schema_of(task.bunch.name).items():
        value, home = answer[name].iloc[0], row[name].iloc[0]
        if answer[name].dtype != row[name].dtype:
            found.append(f"{name}: dtype {answer[name].dtype}")
        if "levels" in column:
            if value not in column["levels"]:
                found.append(f"{name}: {value!r} is no level")
                continue
            before, after = column["levels"].index(home), column["levels"].index(value)
        else:
            before, after = float(home), float(value)
            if not np.isfinite(after) or (column.get("integer") and after != np.rint(after)):
                found.append(f"{name}: {value!r} is not whole")
            if not min(column["lower"], before) <= after <= max(column["upper"], before):
                found.append(f"{name}: {value!r} is out of bounds")
        if column.get("immutable") and after != before:
            found.append(f"{name}: moved")
        if column.get("monotone") == "increasing" and after < before:
            found.append(f"{name}: fell")
    return found


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


def confirm(row: pd.DataFrame, model: Pipeline, name: str, task: common.Task) -> str:
    """Confirm a proof of infeasibility by another route; the word is "confirmed" or says what went otherwise."""
    if name in {"logistic", "svm"}:
        best = greatest_score(row, model, task)
        return "confirmed" if best <= 1e-4 else f"a score of {best:.3g} can be reached"
    other = ceopt.explain(model, row, task.bunch.space, target=task.target, formulation="misic", time_limit_s=600)
    return "confirmed" if other.status == "infeasible" else f"Misic's form says {other.status}"


def one(prepared: Any, row: pd.DataFrame, model: Pipeline, name: str, task: common.Task) -> dict[str, Any]:
    """Ask for one person and check what comes back."""
    cpu = time.process_time()
    with common.sizes() as sizes:
        result = search(prepared, row)
    cpu = time.process_time() - cpu
    record: dict[str, Any] = {
        "status": str(result.status),
        "reason": result.reason,
        "seconds": result.timings["total"],
        "cpu": cpu,
        "timings": dict(result.timings),
        "programs": len(sizes),
        "size": sizes[0] if sizes else {},
        "gap": result.gap,
        "bound": result.bound,
    }
    if len(result):
        answer = result[0]
        record |= {"cost": answer.cost, "changed": list(answer.changed)}
        record["faults"] = faults(answer.frame, row.reset_index(drop=True), model, task)
        record["verified"] = answer.verified
    if result.status == "infeasible":
        record["confirmation"] = confirm(row, model, name, task)
    return record


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
    for place, key in enumerate(keys[: len(people)]):
        if key not in journal.done:
            record = one(prepared, people.iloc[[place]], model, name, task)
            journal.add(key, {"data": task.bunch.name, "model": name, "row": str(people.index[place]), **record})
        bar.update()


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Summarise per task and in all."""
    records = journal.records
    lines = []
    for data_set in common.DATA_SETS:
        for name in MODELS:
            part = [r for r in records if r["data"] == data_set and r["model"] == name]
            if part:
                lines.append([data_set, name, *summary(part)])
    answered = [r for r in records if "faults" in r]
    open_rows = [r for r in records if r["status"] != "infeasible"]
    infeasible = [r for r in records if r["status"] == "infeasible"]
    totals = {
        "rows": len(records),
        "statuses": dict(Counter(r["status"] for r in records)),
        "invalid_answers": sum(bool(r["faults"]) for r in answered),
        "answered_share_of_not_infeasible": len(answered) / max(1, len(open_rows)),
        "optimal_share_of_not_infeasible": sum(r["status"] == "optimal" for r in open_rows) / max(1, len(open_rows)),
        "infeasible": len(infeasible),
        "infeasible_confirmed": sum(r["confirmation"] == "confirmed" for r in infeasible),
        "solved_again_after_a_failed_check": sum(r["programs"] > 1 for r in records),
    }
    head = [
        "data",
        "model",
        "rows",
        "statuses",
        "invalid",
        "confirmed",
        "seconds: median / 90 % / worst",
        "CPU seconds",
    ]
    head += ["variables", "binaries", "rows of the program"]
    text = (
        f"{settings['rows']} people per model whom it rejects, drawn with seed {settings['seed']}, "
        f"{settings['limit_s']} s each, cost l1, HiGHS on one thread. Each answer is put to the model's own `predict` "
        "and to the rules of the data's schema by code of this script. Infeasible rows are confirmed by the greatest "
        "score in reach (linear models) or by Misic's form (trees). CPU seconds are what the row needs; wall seconds "
        "hold the waiting for other jobs on the machine. Sizes are medians of the first program.\n\n"
        + common.markdown_table(head, lines)
        + "\n\n"
        + "\n".join(f"- {key.replace('_', ' ')}: {value if not isinstance(value, float) else f'{value:.1%}'}"
                    for key, value in totals.items())
    )  # fmt: skip
    record = {"settings": settings, "totals": totals, "records": records}
    common.report("validity", "Validity", text, record, quick=quick)
    journal.close()


def summary(part: list[dict[str, Any]]) -> list[Any]:
    """Return the cells of one model's line."""
    counts = Counter(r["status"] for r in part)
    infeasible = [r for r in part if r["status"] == "infeasible"]
    confirmed = sum(r["confirmation"] == "confirmed" for r in infeasible)
    sized = [r["size"] for r in part if r["size"]]
    return [
        len(part),
        ", ".join(f"{status} {count}" for status, count in sorted(counts.items(), key=lambda item: -item[1])),
        sum(bool(r.get("faults")) for r in part),
        f"{confirmed} of {len(infeasible)}" if infeasible else "-",
        common.spread([r["seconds"] for r in part], 2),
        common.spread([r["cpu"] for r in part if "cpu" in r], 2),
        *(round(float(np.median([s[key] for s in sized] or [0]))) for key in ("variables", "binaries", "rows")),
    ]


if __name__ == "__main__":
    main()
