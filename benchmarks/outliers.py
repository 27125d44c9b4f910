"""Answers that an isolation forest calls ordinary: what the rule NotAnOutlier costs in time, and what it changes."""

from __future__ import annotations

import argparse
import functools
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import common
import numpy as np
import pandas as pd
import provenance
import records as kept_records
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest, RandomForestClassifier

import ceopt

TITLE = "Answers that are no outliers"
MEASURES = ("ceopt/search", "formulations/constraints", "formulations/predictors", "solvers/highs.py")

DATA_SETS = ("german", "heloc", "adult")
MODELS: dict[str, Any] = {
    "boosting of 50": lambda: GradientBoostingClassifier(n_estimators=50, random_state=common.SEED),
    "forest of 50": lambda: RandomForestClassifier(n_estimators=50, max_depth=5, random_state=common.SEED, n_jobs=1),
}
#: Answers asked of each person.
COUNTS = (1, 3)
#: A share of the rows on which it is fitted is flagged; all else is as the library sets it: 100 trees of 256 rows.
CONTAMINATION = 0.1
#: Ends the key of a question that was asked again.
AGAIN = "/again"
#: What counts as near enough to proved.
LEAST_GAP = 0.01


@functools.cache
def task(name: str) -> common.Task:
    """Load a data set once."""
    return common.load(name)


@functools.cache
def model_of(name: str, kind: str) -> Any:
    """Fit a model once."""
    return common.fit(task(name), MODELS[kind]())


@functools.cache
def outliers_of(name: str) -> Any:
    """Fit an isolation forest once, behind the encoders of the models."""
    return common.fit(task(name), IsolationForest(contamination=CONTAMINATION, random_state=common.SEED))


def asked(  # noqa: PLR0917 - what a question is made of
    name: str, kind: str, n: int, row: pd.DataFrame, limit_s: float, solver: str = "auto", *, is_ruled: bool
) -> dict[str, Any]:
    """Ask for a person's nearest answers and let the library say which of them it flags."""
    bunch = task(name).bunch
    usual = outliers_of(name)

    def ask() -> dict[str, Any]:
        result = ceopt.explain(
            model_of(name, kind),
            row,
            bunch.space,
            target=task(name).target,
            n=n,
            constraints=[ceopt.NotAnOutlier(usual)] if is_ruled else [],
            data=task(name).train,
            time_limit_s=limit_s,
            solver=solver,
        )
        flags = []
        if len(result):
            flags = (usual.predict(result.to_frame()[list(bunch.data)]) == -1).tolist()
        return {
            "status": str(result.status),
            "complete": result.complete,
            "gaps": [answer.gap for answer in result],
            "costs": [answer.cost for answer in result],
            "flagged": sum(flags),
            "size": dict(result.size or {}),
        }

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ceopt.RuleWarning)  # people who are outliers themselves are asked about too
        return common.timed(ask, limit_s)


def is_closed(record: dict[str, Any]) -> bool:
    """Whether all that was asked for is proved, or within a hundredth of it."""
    if record["status"] == "infeasible":
        return True
    is_whole = record["complete"] or len(record["gaps"]) == record["n"]
    return is_whole and bool(record["gaps"]) and all(gap is not None and gap <= LEAST_GAP for gap in record["gaps"])


def summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers of one data set, model and number of answers."""
    free, ruled = (sorted((r for r in records if r["ruled"] is kind), key=lambda r: r["row"]) for kind in (False, True))
    costs = [(a["costs"][0], b["costs"][0]) for a, b in zip(free, ruled, strict=True) if a["costs"] and b["costs"]]
    is_dearer = [b > a * (1.0 + 1e-6) for a, b in costs]
    return {
        "data": ruled[0]["data"],
        "model": ruled[0]["model"],
        "n": ruled[0]["n"],
        "people": len(ruled),
        "outliers today": sum(r["today"] for r in ruled),
        "flagged without": sum(r["flagged"] > 0 for r in free),
        "flagged with": sum(r["flagged"] > 0 for r in ruled),
        "dearer": sum(is_dearer),
        "closed": sum(map(is_closed, ruled)),
        "without": [r["seconds"] for r in free],
        "with": [r["seconds"] for r in ruled],
        "medians": float(np.median([r["seconds"] for r in ruled]) / np.median([r["seconds"] for r in free])),
        "ratio": float(np.median([b["seconds"] / a["seconds"] for a, b in zip(free, ruled, strict=True)])),
        "cpu medians": float(np.median([r["cpu"] for r in ruled]) / np.median([r["cpu"] for r in free])),
    }


def text_of(record: dict[str, Any]) -> str:
    """Return the tables."""
    settings = record["settings"]
    rows = []
    for part in record["parts"]:
        rows.append([
            part["data"], part["model"], part["n"], part["people"], part["outliers today"], part["flagged without"],
            part["flagged with"], part["dearer"], part["closed"], common.spread(part["without"], 2),
            common.spread(part["with"], 2), f"{part['medians']:.2f}", f"{part['ratio']:.2f}",
            f"{part['cpu medians']:.2f}",
        ])  # fmt: skip
    people = sum(part["people"] for part in record["parts"])
    closed = sum(part["closed"] for part in record["parts"])
    flagged = sum(part["flagged with"] for part in record["parts"])
    worst = max(part["medians"] for part in record["parts"])
    more = ""
    if record["asked_again"]:
        more = f", and {settings['again_s']} more for {record['asked_again']} that were open with the rule"
    words = (
        f"Rejected people of {', '.join(DATA_SETS)} ask a model for their nearest answer, and for three that change "
        "other columns, without a rule and with `NotAnOutlier(forest)`: scikit-learn's isolation forest of 100 trees "
        f"with contamination {CONTAMINATION}, behind the encoders of the model. Trees are of depth 3 (boosting) and 5. "
        f"{settings['limit_s']} seconds a question{more}, HiGHS, one thread; l1 in units of the columns' MAD. "
        "*Flagged* counts people one of whose answers is an outlier to the library; *dearer* those whose nearest "
        f"answer costs more with the rule; *closed* those of whom all is proved or within {LEAST_GAP:.0%} of it. "
        "Seconds are median / 90 % / worst; *medians* is the ratio of the two medians, *ratio* the median over people, "
        "*processor* the ratio of the medians of processor seconds: several processes asked at once on a machine with "
        f"other work on it, where {record['share']:.0%} of the seconds were the processor's. "
        f"People with one row are asked once for all of them ({record['shared']} of the questions)."
    )
    found = (
        f"With the rule {closed} of {people} questions are closed, {flagged} have an answer that is flagged, and the "
        f"median takes at most {worst:.2f} times that without it."
    )
    head = ["data", "model", "answers", "people", "outliers today", "flagged without", "flagged with", "dearer",
            "closed", "seconds without", "seconds with", "medians", "ratio", "processor"]  # fmt: skip
    parts = [words, common.markdown_table(head, rows), found]
    left = record["open"]
    if left:
        rows = [
            [r["data"], r["model"], r["n"], r["row"], r["amounts"], r["costs"], r["bounds"], f"{r['seconds']:.0f}",
             f"{r['cpu']:.0f}"]
            for r in left
        ]  # fmt: skip
        head = ["data", "model", "answers", "row", "amounts", "costs", "at least", "seconds", "processor"]
        words = (
            "Not closed, with the costs found, what is proved of each, seconds, and those of the processor. *Amounts* "
            "counts the columns that hold one, and no code: a code gives way to any amount at a price of 1, so that "
            "for a row of codes alone all choices of as many columns cost the same. Nor is the start, a dearer choice, "
            "of use to HiGHS there: asked by hand for one answer of row 1172 (heloc, forest), it took 75 seconds of a "
            "processor without one, and 276 with it."
        )
        parts += [words, common.markdown_table(head, rows)]
    if "scip" in record:
        parts.append(by_scip(record["scip"]))
    return "\n\n".join(parts)


def by_scip(said: dict[str, Any]) -> str:
    """Return what SCIP says of what HiGHS left open."""
    sentences = [f"`--scip {said['limit_s']}` asks SCIP about these, at commit `{said['commit']}`."]
    for one in said["asked"]:
        costs = ", ".join(f"{cost:.6g}" for cost in one["costs"])
        end = "all proved" if is_closed(one) else "not all proved"
        sentences.append(
            f"The {one['n']} answers of the row that {len(one['rows'])} of the people share ({one['data']}, "
            f"{one['model']}) cost {costs}, {end}, in {one['seconds']:.0f} seconds, {one['cpu']:.0f} of a processor."
        )
    return " ".join(sentences)


def amounts_in(name: str, row: int) -> int:
    """Return how many columns of a row hold an amount or a level, and no code."""
    bunch = task(name).bunch
    values = bunch.data.loc[row]
    return sum(values[feature.name] not in feature.codes for feature in bunch.space)


def open_ones(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is not closed with the rule, in few words."""
    found = []
    for r in records:
        if not r["ruled"] or is_closed(r):
            continue
        bounds = [
            f"{cost * (1.0 - gap):.3g}" if gap is not None else "-"
            for cost, gap in zip(r["costs"], r["gaps"], strict=True)
        ]
        found.append({
            "data": r["data"], "model": r["model"], "n": r["n"], "row": r["row"], "seconds": r["seconds"],
            "cpu": r["cpu"], "amounts": amounts_in(r["data"], r["row"]),
            "costs": ", ".join(f"{cost:.3g}" for cost in r["costs"]) or "none", "bounds": ", ".join(bounds) or "-",
        })  # fmt: skip
    return found


def asked_of_scip(limit_s: float) -> None:
    """Ask SCIP what the page has open, one question for all people of one row, and add what it says to the page."""
    record = kept_records.read(common.RESULTS / "outliers.json")
    found: list[dict[str, Any]] = []
    for one in record["open"]:
        row = task(one["data"]).bunch.data.loc[[one["row"]]]
        question = {"data": one["data"], "model": one["model"], "n": one["n"]}
        for before in found:
            same = row.equals(task(one["data"]).bunch.data.loc[[before["rows"][0]]].set_axis(row.index))
            if same and all(before[word] == value for word, value in question.items()):
                before["rows"].append(one["row"])
                break
        else:
            said = asked(one["data"], one["model"], one["n"], row, limit_s, "scip", is_ruled=True)
            found.append({**question, "rows": [one["row"]], **said})
    source = provenance.source(MEASURES)["commit"]
    record["scip"] = {"limit_s": limit_s, "commit": source, "asked": found}
    record = kept_records.kept(record)
    (common.RESULTS / "outliers.md").write_text(common.page(TITLE, text_of, record), encoding="utf-8")
    kept_records.write(common.RESULTS / "outliers.json", record)


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40, help="people of each data set and model, default 40")
    parser.add_argument("--limit", type=int, default=300, help="seconds a question, default 300")
    parser.add_argument(
        "--again", type=int, default=600, help="seconds for what is then open with the rule, default 600"
    )
    parser.add_argument(
        "--only",
        default="",
        help="what begins so, as 'heloc/forest of 50/3'; runs share a journal, the last writes the page",
    )
    parser.add_argument("--now", action="store_true", help="ask nothing: the page of those asked so far")
    parser.add_argument("--scip", type=int, default=0, help="seconds of SCIP for what the page says is open; no more")
    parser.add_argument("--quick", action="store_true", help="three people each, to see that it runs; writes nothing")
    return parser.parse_args()


def questions(count: int, only: str) -> dict[str, tuple[str, str, int, pd.DataFrame, bool]]:
    """Return all questions by their keys: data, model, number of answers, the person's row, and whether ruled."""
    found = {}
    for name, kind, n in itertools.product(DATA_SETS, MODELS, COUNTS):
        if not f"{name}/{kind}/{n}/".startswith(only):
            continue
        people = common.rejected(task(name), model_of(name, kind), count)
        for place in range(len(people)):
            for is_ruled in (bool(place % 2), not place % 2):
                found[f"{name}/{kind}/{n}/{place}/{is_ruled}"] = (name, kind, n, people.iloc[[place]], is_ruled)
    return found


def recorded(question: tuple[str, str, int, pd.DataFrame, bool], limit_s: float) -> dict[str, Any]:
    """Ask a question, and return what is kept of it."""
    name, kind, n, row, is_ruled = question
    today = bool(outliers_of(name).predict(row)[0] == -1)
    about = {"data": name, "model": kind, "n": n, "row": int(row.index[0]), "ruled": is_ruled, "today": today}
    return about | asked(name, kind, n, row, limit_s, is_ruled=is_ruled)


def last_words(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one record a question; one that was asked again with more time has the seconds of both."""
    found: dict[str, dict[str, Any]] = {}
    for r in records:
        key = r["key"].removesuffix(AGAIN)
        before = found.get(key)
        both = {name: before[name] + r[name] for name in ("seconds", "cpu")} if before is not None else {}
        found[key] = r | {"key": key} | both
    return list(found.values())


def answered(
    journal: common.Journal, key: str, question: tuple[str, str, int, pd.DataFrame, bool], limit_s: float
) -> dict[str, Any]:
    """Return what is kept of a question: of one that a person with the same row has asked, that."""
    name, kind, n, row, is_ruled = question
    cells = [str(value) for value in row.iloc[0]]
    about = {"data": name, "model": kind, "n": n, "ruled": is_ruled, "cells": cells}
    for record in journal.records:
        is_again = record["key"].endswith(AGAIN)
        if is_again == key.endswith(AGAIN) and all(record[word] == value for word, value in about.items()):
            kept = {word: value for word, value in record.items() if word != "key"}
            return kept | {"row": int(row.index[0]), "is_shared": True}
    return recorded(question, limit_s) | {"cells": cells, "is_shared": False}


def main() -> None:
    """Ask all, and go on where an earlier run stopped; then ask again, with more time, what is open with the rule."""
    args = options()
    if args.scip:
        asked_of_scip(args.scip)
        return
    count = 3 if args.quick else args.rows
    settings = {"people": count, "limit_s": args.limit}
    name = "outliers-quick" if args.quick else "outliers"
    journal = common.Journal(name, settings)
    wanted = questions(count, args.only)
    waiting = [key for key in wanted if key not in journal.done and not args.now]
    for key in common.bar(waiting, len(waiting)):
        journal.add(key, answered(journal, key, wanted[key], args.limit))
    if not args.quick and not args.now:
        waiting = [r["key"] for r in last_words(journal.records) if r["ruled"] and not is_closed(r)]
        waiting = [key for key in waiting if key in wanted and f"{key}{AGAIN}" not in journal.done]
        for key in common.bar(waiting, len(waiting)):
            journal.add(f"{key}{AGAIN}", answered(journal, f"{key}{AGAIN}", wanted[key], args.again))
    journal = common.Journal(name, settings)  # with what others have added
    last = last_words(journal.records)
    parts = []
    for part in itertools.product(DATA_SETS, MODELS, COUNTS):
        records = [r for r in last if (r["data"], r["model"], r["n"]) == part]
        arms = [{r["row"] for r in records if r["ruled"] is is_ruled} for is_ruled in (False, True)]
        records = [r for r in records if r["row"] in arms[0] & arms[1]]
        if args.now and not records:
            continue
        if not args.now and len(records) < 2 * count:
            print("Others are still to come.")
            return
        parts.append(summary(records))
    record = {
        "settings": settings | {"again_s": args.again},
        "share": sum(r["cpu"] for r in journal.records) / sum(r["seconds"] for r in journal.records),
        "shared": sum(r["is_shared"] and not r["key"].endswith(AGAIN) for r in journal.records),
        "asked_again": sum(r["key"].endswith(AGAIN) for r in journal.records),
        "parts": parts,
        "open": open_ones(last),
        "records": [{word: value for word, value in r.items() if word != "cells"} for r in last],
    }
    common.report("outliers", TITLE, MEASURES, text_of, record, quick=args.quick)
    journal.close()


if __name__ == "__main__":
    main()
