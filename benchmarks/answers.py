"""Ask ceopt for one person, check the answer apart from ceopt, and count: what the tables of answers share."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import common
import numpy as np
import pandas as pd

import ceopt
from ceopt.search.prepare import Prepared
from ceopt.search.search import search

#: Columns of the table, after data set and model.
HEAD = (
    "rows",
    "statuses",
    "invalid",
    "confirmed",
    "seconds: median / 90 % / worst",
    "CPU seconds",
    "variables",
    "binaries",
    "rows of the program",
)


def faults(answer: pd.DataFrame, row: pd.DataFrame, model: Any, task: common.Task) -> list[str]:
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


def one(
    prepared: Prepared, row: pd.DataFrame, model: Any, task: common.Task, *, confirm: Callable[[pd.DataFrame], str]
) -> dict[str, Any]:
    """Ask for one person and check what comes back; ``confirm`` judges a proof that there is nothing."""
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
        record["confirmation"] = confirm(row)
    return record


def confirmed_by(formulation: str, given: Any, row: pd.DataFrame, task: common.Task) -> str:
    """Prove infeasibility once more, by another formulation; "confirmed", or what it says instead."""
    other = ceopt.explain(given, row, task.bunch.space, target=task.target, formulation=formulation, time_limit_s=600)
    return "confirmed" if other.status == "infeasible" else f"{formulation} says {other.status}"


def totals(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Count over all rows."""
    answered = [r for r in records if "faults" in r]
    open_rows = [r for r in records if r["status"] != "infeasible"]
    infeasible = [r for r in records if r["status"] == "infeasible"]
    return {
        "rows": len(records),
        "statuses": dict(Counter(r["status"] for r in records)),
        "invalid_answers": sum(bool(r["faults"]) for r in answered),
        "answered_share_of_not_infeasible": len(answered) / max(1, len(open_rows)),
        "optimal_share_of_not_infeasible": sum(r["status"] == "optimal" for r in open_rows) / max(1, len(open_rows)),
        "infeasible": len(infeasible),
        "infeasible_confirmed": sum(r["confirmation"] == "confirmed" for r in infeasible),
        "solved_again_after_a_failed_check": sum(r["programs"] > 1 for r in records),
    }


def table(records: list[dict[str, Any]], models: Iterable[str]) -> str:
    """Return a line per data set and model, and the totals."""
    lines = [
        [data_set, name, *_summary(part)]
        for data_set in common.DATA_SETS
        for name in models
        if (part := [r for r in records if r["data"] == data_set and r["model"] == name])
    ]
    counts = "\n".join(
        f"- {key.replace('_', ' ')}: {value if not isinstance(value, float) else f'{value:.1%}'}"
        for key, value in totals(records).items()
    )
    return f"{common.markdown_table(['data', 'model', *HEAD], lines)}\n\n{counts}"


def _summary(part: list[dict[str, Any]]) -> list[Any]:
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
