"""Random questions for each kind of model, held against enumeration by the model's own predict.

The generator and the judge are those of the tests (``tests/judging``); they share no code with the package.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import queue
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import common

sys.path.insert(0, str(common.ROOT / "tests"))  # generator and judge are shared with tests/explain/test_questions.py

from judging.judge import describe_all
from judging.question import KINDS

TITLE = "Questions: every claim against enumeration"
MEASURES = ("ceopt", "formulations", "solvers")

#: Solvers among which questions are spread: the default twice as often.
SOLVERS = ("highs", "highs", "scip", "gurobi")
#: Seconds after which a question that does not come back is counted as hung, and its process ended.
PATIENCE = 120.0


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2000, help="questions a kind, default 2000")
    parser.add_argument("--first", type=int, default=0, help="number of the first question, default 0")
    parser.add_argument("--seed", type=int, default=common.SEED, help="default 0")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"comma-separated, default {','.join(KINDS)}")
    parser.add_argument("--jobs", type=int, default=1, help="processes, default 1")
    parser.add_argument("--only", help="ask one question, as tree-17, and print all about it")
    parser.add_argument("--fast", action="store_true", help="25 questions a kind, to see that it runs; writes nothing")
    parser.add_argument("--out", default="questions", help="name of the files in results, default questions")
    return parser.parse_args()


def main() -> None:
    """Ask, compare, count."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    args = options()
    solvers = tuple(name for name in SOLVERS if name in installed())
    if args.only:
        kind, number = args.only.rsplit("-", 1)
        print(json.dumps(one(kind, int(number), args.seed, solvers), indent=1))
        return
    count = 25 if args.fast else args.questions
    kinds = args.kinds.split(",")
    print(f"seed {args.seed}, solvers {', '.join(sorted(set(solvers)))}, {json.dumps(common.versions())}", flush=True)
    asked = [(kind, number) for number in range(args.first, args.first + count) for kind in kinds]
    settings: dict[str, Any] = {
        "commit": commit(),
        "seed": args.seed,
        "first": args.first,
        "questions": count,
        "kinds": kinds,
        "solvers": sorted(set(solvers)),
    }
    journal = common.Journal(f"{args.out}-fast" if args.fast else args.out, settings)
    waiting = [pair for pair in asked if f"{pair[0]}-{pair[1]}" not in journal.done]
    for record in common.bar(answers(waiting, args.seed, solvers, args.jobs), len(waiting)):
        journal.add(record["key"], record)
        for line in record["wrong"]:
            print(f"WRONG {record['question']}\n      {line}\n      {again(record, args.seed)}", flush=True)
    write(journal, settings, args)


def commit() -> str:
    """Return the commit whose package is asked, so that an interrupted run goes on with the same code only."""
    said = subprocess.run(
        ["git", "-C", str(common.ROOT), "rev-parse", "--short", "HEAD"],  # noqa: S607 - the git of the checkout
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return said.stdout.strip() or "unknown"


def installed() -> list[str]:
    """Return the solvers that are there."""
    import ceopt

    table = ceopt.solvers.available()
    return list(table.loc[table["installed"] & (table["licensed"] != False), "solver"])  # noqa: E712 - may be missing


def again(record: dict[str, Any], seed: int) -> str:
    """Return the command that asks this one question again."""
    return f"python benchmarks/questions.py --only {record['key']} --seed {seed}"


def one(kind: str, number: int, seed: int, solvers: tuple[str, ...]) -> dict[str, Any]:
    """Ask one question and return everything about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of small fits and of libraries; what is wrong is compared, not warned of
        return describe_all(kind, number, seed=seed, solvers=solvers)


# ---- processes that can be ended -------------------------------------------------------------------------------------
def _work(inbox: Any, outbox: Any, seed: int, solvers: tuple[str, ...]) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    while (pair := inbox.get()) is not None:
        outbox.put(one(*pair, seed, solvers))


class Worker:
    """A process that answers one question at a time, and is replaced when it does not."""

    def __init__(self, seed: int, solvers: tuple[str, ...]) -> None:
        self.given = (seed, solvers)
        self.start()

    def start(self) -> None:
        """Start the process."""
        context = mp.get_context("spawn")
        self.inbox, self.outbox = context.Queue(), context.Queue()
        self.process = context.Process(target=_work, args=(self.inbox, self.outbox, *self.given), daemon=True)
        self.process.start()
        self.pair: tuple[str, int] | None = None
        self.since = 0.0

    def ask(self, pair: tuple[str, int]) -> None:
        """Hand over a question."""
        self.pair, self.since = pair, time.monotonic()
        self.inbox.put(pair)

    def answer(self) -> dict[str, Any] | None:
        """Return what came back, or None while it is waited for."""
        kind, number = self.pair or ("", -1)
        try:
            record: dict[str, Any] = self.outbox.get(timeout=0.02)
        except queue.Empty:
            late = time.monotonic() - self.since > PATIENCE
            if not late and self.process.is_alive():
                return None
            why = f"hung for {PATIENCE:g} s" if late else f"process died ({self.process.exitcode})"
            self.process.kill()
            self.process.join()
            self.start()
            record = {"question": f"{kind}-{number}", "status": "hung", "expected": "", "wrong": [why], "tags": []}
            record |= {"solver": "", "form": "", "seconds": PATIENCE, "redrawn": [], "n": 0, "ranks": 0, "reason": why}
        self.pair = None
        return record | {"key": f"{kind}-{number}", "kind": kind}


def answers(waiting: list[tuple[str, int]], seed: int, solvers: tuple[str, ...], jobs: int) -> Iterator[dict[str, Any]]:
    """Yield the record of every question, as they come."""
    workers, left = [Worker(seed, solvers) for _ in range(jobs)], iter(waiting)
    open_ones = 0
    for worker in workers:
        if (pair := next(left, None)) is not None:
            worker.ask(pair)
            open_ones += 1
    while open_ones:
        for worker in workers:
            if worker.pair is None or (record := worker.answer()) is None:
                continue
            open_ones -= 1
            if (pair := next(left, None)) is not None:
                worker.ask(pair)
                open_ones += 1
            yield record
    for worker in workers:
        worker.inbox.put(None)


# ---- the report ------------------------------------------------------------------------------------------------------
_STATUSES = ("optimal", "infeasible", "already_favourable", "feasible", "time_limit", "unproved", "refused")


def write(journal: common.Journal, settings: dict[str, Any], args: argparse.Namespace) -> None:
    """Count, and keep the counts and what is wrong."""
    common.report(
        args.out, TITLE, MEASURES, text_of, {"settings": settings, **counted(journal.records)}, quick=args.fast
    )
    journal.close()


def counted(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Count by kind and status, by solver and form, by what is among them, and by reason."""
    kinds = {}
    for kind in dict.fromkeys(r["kind"] for r in records):
        part = [r for r in records if r["kind"] == kind]
        statuses = Counter(r["status"] for r in part)
        kinds[kind] = {
            "questions": len(part),
            "wrong": sum(bool(r["wrong"]) for r in part),
            **{status: statuses[status] for status in _STATUSES},
            "other": len(part) - sum(statuses[status] for status in _STATUSES),
        }
    ways = Counter((r["kind"], r["solver"], r["form"]) for r in records)
    tags = Counter((r["kind"], tag) for r in records for tag in r["tags"])
    why = {
        "Drawn again before asking, as no enumeration or no model exists": Counter(
            w for r in records for w in r["redrawn"]
        ),
        "Refused by name": Counter(r["reason"][:160] for r in records if r["status"] == "refused"),
        "Further ranks left open, and why": Counter(
            f"{r['kind']}, {r['reason'][:160]}" for r in records if "further ranks left open" in r["tags"]
        ),
        "Time limit or unproved, and why": Counter(
            f"{r['kind']}, {r['reason'][:120]}" for r in records if r["status"] in {"time_limit", "unproved"}
        ),
        "Feasible, and why": Counter(
            f"{r['kind']}, {without_numbers(r['reason'])[:120]}" for r in records if r["status"] == "feasible"
        ),
    }
    return {
        "totals": {
            "wrong": sum(bool(r["wrong"]) for r in records),
            "questions": len(records),
            "seconds": common.spread([r["seconds"] for r in records]),
        },
        "kinds": kinds,
        "ways": [{"kind": k, "solver": s, "form": f, "questions": n} for (k, s, f), n in sorted(ways.items())],
        "tags": [{"kind": kind, "tag": tag, "questions": n} for (kind, tag), n in sorted(tags.items())],
        "why": {what: dict(counts.most_common()) for what, counts in why.items()},
        "records": [r for r in records if r["wrong"]],
    }


def without_numbers(reason: str) -> str:
    """Return a reason with a dot for each number, so that like reasons are counted together."""
    return re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", ".", reason)


def text_of(record: dict[str, Any]) -> str:
    """Return the counts as tables, and what is wrong."""
    settings, totals = record["settings"], record["totals"]
    lines = []
    for kind in settings["kinds"]:
        counts = record["kinds"][kind]
        shares = [share(counts[status], counts["questions"]) for status in _STATUSES]
        lines.append([kind, counts["questions"], counts["wrong"], *shares, counts["other"]])
    along_lines = ""
    if "narrow" in settings["kinds"]:
        along_lines = (
            "Columns whose spread is 1e-3 to 1e-14 of their size (narrow, and a third of neighbours) are held against "
            "the model's own `predict` along lines, to the last float. "
        )
    last = settings["first"] + settings["questions"] - 1
    about = (
        f"Seed {settings['seed']}, questions {settings['first']} to {last} of each kind, commit {settings['commit']}; "
        "every status, cost, bound and rank against enumeration by the model's own `predict` (closed form in fractions "
        f"for linear models over several wide columns). {along_lines}"
        f"**{totals['wrong']} wrong of {totals['questions']}.** "
        f"Seconds a question (median / 90 % / worst): {totals['seconds']}."
    )
    head = ["kind", "questions", "wrong", *(status.replace("_", " ") for status in _STATUSES), "other"]
    parts = [
        about,
        common.markdown_table(head, lines),
        common.markdown_table(["kind", "solver", "form", "questions"], [way.values() for way in record["ways"]]),
        common.markdown_table(["kind", "among them", "questions"], [tag.values() for tag in record["tags"]]),
    ]
    for what, counts in record["why"].items():
        said = "; ".join(f"{why}: {n}" for why, n in counts.items())
        parts.append(f"{what}: {said or 'none'}.")
    if record["records"]:
        lost = [f"- `{again(r, settings['seed'])}`: {r['wrong'][0][:300]}" for r in record["records"]]
        parts.append("Wrong:\n\n" + "\n".join(lost))
    return "\n\n".join(parts)


def share(count: int, questions: int) -> str:
    """Return how many questions ended so."""
    return f"{count} ({count / max(questions, 1):.2%})" if count else "0"


if __name__ == "__main__":
    main()
