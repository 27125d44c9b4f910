"""What ceopt costs beside the solver: build, lower, decode, rule checks and the rest, per row after the first."""

from __future__ import annotations

from typing import Any

import common
import numpy as np

from ceopt.search import prepare, search
from ceopt.settings import Settings

MODELS = ("logistic", "tree")
#: Each row is asked this often. The least of the times is the program's own; the others hold other jobs' time too.
REPEATS = 3
PARTS = ("build", "lower", "check", "rest")


def measure(prepared: Any, row: Any) -> dict[str, float]:
    """Return seconds by part: ``check`` without the model's own predict, ``rest`` what no part of the timings names."""
    with common.predictions() as predicted:
        timings = dict(search(prepared, row).timings)
    own = sum(predicted)
    parts = {"build": timings["build"], "lower": timings["lower"], "predict": own}
    inside = timings["check"] if timings.get("predict", 0.0) == 0.0 else timings["check"] + timings["predict"]
    parts["check"] = inside - own
    parts["rest"] = timings["total"] - sum(timings[part] for part in ("start", "solve", "build", "lower")) - inside
    return parts | {
        "overhead": timings["total"] - timings["start"] - timings["solve"] - own,
        "start": timings["start"],
        "solve": timings["solve"],
        "total": timings["total"],
    }


def main() -> None:
    """Measure and write the report."""
    options = common.arguments("Overhead per row beside the solver.", rows=30)
    rows = 3 if options.quick else options.rows
    settings = {"rows": rows, "repeats": REPEATS, "seed": common.SEED}
    journal = common.Journal("overhead-quick" if options.quick else "overhead", settings)
    tasks = [(data_set, model) for data_set in common.DATA_SETS for model in MODELS]
    for data_set, name in common.bar(tasks, len(tasks)):
        if f"{data_set}/{name}" in journal.done:
            continue
        task = common.load(data_set)
        model = common.fit(task, name)
        people = common.rejected(task, model, rows + 1)
        prepared = prepare(model, task.bunch.space, Settings(target=task.target), data=task.train)
        search(prepared, people.iloc[[0]])  # the first pays for imports
        measured = [
            [measure(prepared, people.iloc[[place]]) for _ in range(REPEATS)] for place in range(1, len(people))
        ]
        journal.add(f"{data_set}/{name}", {"data": data_set, "model": name, "measured": measured})
    write(journal, settings, quick=options.quick)


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Summarise per task."""
    lines, every, quickest = [], [], []
    for record in journal.records:
        raw = [m["overhead"] * 1e3 for row in record["measured"] for m in row]
        best = [min(row, key=lambda m: m["overhead"]) for row in record["measured"]]
        own = [m["overhead"] * 1e3 for m in best]
        every += raw
        quickest += own
        parts = [f"{np.median([m[part] for m in best]) * 1e3:.1f}" for part in (*PARTS, "predict", "start", "solve")]
        lines.append([record["data"], record["model"], len(best), common.spread(own, 1), common.spread(raw, 1), *parts])
    totals = {
        "overhead_ms_median": float(np.median(quickest)),
        "overhead_ms_worst": float(np.max(quickest)),
        "overhead_ms_worst_of_all_repeats": float(np.max(every)),
        "share_of_all_repeats_under_50_ms": float(np.mean(np.array(every) < 50)),
    }
    text = (
        f"{settings['rows']} people per model after a first one, the model read once. Overhead is everything but the "
        "search for a start, the solver and the model's own `predict`: program, arrays, decoding, rule checks and what "
        f"no timing names. Each row is asked {settings['repeats']} times; its own time is the least of them, as other "
        "jobs run on the machine; all of them are beside it. Milliseconds.\n\n"
        + common.markdown_table(
            ["data", "model", "rows", "overhead: median / 90 % / worst", "of all repeats",
             *(f"{part}" for part in PARTS), "predict", "start", "solve"], lines)
        + "\n\n"
        + "\n".join(f"- {key.replace('_', ' ')}: {value:.3g}" for key, value in totals.items())
    )  # fmt: skip
    record = {"settings": settings, "totals": totals, "records": journal.records}
    common.report("overhead", "Overhead per row beside the solver", text, record, quick=quick)
    journal.close()


if __name__ == "__main__":
    main()
