"""Random questions of people with missing cells and codes, held against enumeration by the model's own predict.

The generator and the judge are those of the tests (``tests/gap_questions``); they share no code with the package.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from typing import Any

import common

sys.path.insert(
    0, str(common.ROOT / "tests")
)  # generator and judge are shared with tests/explain/test_gap_questions.py

from gap_questions.draw import KINDS, draw
from gap_questions.judge import faults

import ceopt

TITLE = "Missing cells and codes: every claim against enumeration"
MEASURES = ("ceopt/search", "ceopt/oracle", "formulations/columns", "formulations/predictors", "formulations/space")


def asked(kind: str, number: int) -> dict[str, Any]:
    """Ask one question, and say what is wrong with the answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of small fits
        question = draw(kind, number)
        if question is None:
            return {"kind": kind, "status": "not asked", "wrong": []}
        began = time.perf_counter()
        result = ceopt.explain(
            question.model,
            question.row,
            question.space,
            target=question.target,
            cost=question.cost,
            constraints=question.rules,
        )
        seconds = time.perf_counter() - began
        wrong = faults(question, result)
    return {"kind": kind, "status": str(result.status), "wrong": wrong, "seconds": seconds}


def text_of(record: dict[str, Any]) -> str:
    """Return the table."""
    statuses = list(dict.fromkeys(status for row in record["kinds"].values() for status in row["statuses"]))
    rows = []
    for kind, row in record["kinds"].items():
        counts = [row["statuses"].get(status, 0) for status in statuses]
        rows.append([kind, sum(counts), *counts, row["wrong"]])
    total = sum(sum(row["statuses"].values()) for row in record["kinds"].values())
    wrong = sum(row["wrong"] for row in record["kinds"].values())
    words = (
        f"{total:,} questions, {wrong} answers that enumeration contradicts. Two to four columns: numbers with steps, "
        "whole numbers and levels, with missing cells that may be filled in, stay or vanish, with codes within and "
        "beyond the bounds, prices of filling in from 0 to infinite, weights, one-way columns, L0, L1, L2 and "
        "l-infinity, and a limit on the number of changes. The judge tries every row that the documentation lets the "
        "person become."
    )
    head = ["model", "questions", *statuses, "wrong"]
    listed = "\n".join(f"- {line}" for line in record["wrong"]) or "None is wrong."
    return "\n\n".join([words, common.markdown_table(head, rows), listed])


def main() -> None:
    """Ask all questions, and go on where an earlier run stopped."""
    args = common.arguments(__doc__ or "", rows=2000)
    each = 3 if args.quick else -(-args.rows // len(KINDS))
    journal = common.Journal("gaps", {"each": each})
    waiting = [(kind, number) for number in range(each) for kind in KINDS if f"{kind}-{number}" not in journal.done]
    for kind, number in common.bar(waiting, len(waiting)):
        journal.add(f"{kind}-{number}", asked(kind, number))
    kinds = {}
    for kind in KINDS:
        part = [record for record in journal.records if record["kind"] == kind and record["status"] != "not asked"]
        statuses = Counter(record["status"] for record in part)
        kinds[kind] = {"statuses": dict(statuses), "wrong": sum(bool(record["wrong"]) for record in part)}
    wrong = [f"{record['key']}: {line}" for record in journal.records for line in record["wrong"]]
    common.report("gaps", TITLE, MEASURES, text_of, {"kinds": kinds, "wrong": wrong}, quick=args.quick)
    journal.close()


if __name__ == "__main__":
    main()
