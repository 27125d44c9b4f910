"""Every person of Adult, Give Me Some Credit and HELOC: missing cells, "?", codes, and what one missing cell costs."""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import common
import numpy as np
import pandas as pd
import provenance
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import ceopt

TITLE = "Any row that people have"
MEASURES = (
    "ceopt/search",
    "ceopt/datasets.py",
    "formulations/columns",
    "formulations/predictors",
    "formulations/space",
)
#: Seconds a person, people of each table, and people of whom one cell is blanked.
LIMIT_S = 30.0
PEOPLE = 200
BLANKED = 100
#: The part of people, the riskiest by the model, who are asked about where few are refused.
RISKIEST = 0.2


# ---- models ----------------------------------------------------------------------------------------------------------
def _words(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name].dtype)]


def _boosted(model: Any) -> Callable[[pd.DataFrame], Any]:
    def pipeline(frame: pd.DataFrame) -> Any:
        # Takes a missing cell in every column, whether one was missing in the data or not.
        ranks = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan)
        return make_pipeline(make_column_transformer((ranks, _words(frame)), remainder="passthrough"), model)

    return pipeline


def _imputed(model: Any) -> Callable[[pd.DataFrame], Any]:
    def pipeline(frame: pd.DataFrame) -> Any:
        words = _words(frame)
        numbers = [name for name in frame if name not in words]
        filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
        return make_pipeline(make_column_transformer((filled, numbers), (levels, words)), model)

    return pipeline


def _xgboost() -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_jobs=1)


def _lightgbm() -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(n_jobs=1, verbose=-1)


MODELS: dict[str, Callable[[], Callable[[pd.DataFrame], Any]]] = {
    "HistGradientBoosting": lambda: _boosted(HistGradientBoostingClassifier(random_state=0)),
    "XGBoost": lambda: _boosted(_xgboost()),
    "LightGBM": lambda: _boosted(_lightgbm()),
    "imputer, forest": lambda: _imputed(RandomForestClassifier(100, max_depth=6, random_state=0, n_jobs=1)),
    "imputer, logistic": lambda: _imputed(LogisticRegression(max_iter=2000)),
}


# ---- people ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Table:
    """Rows, labels, the space, the favourable label, and which rows are asked about."""

    frame: pd.DataFrame
    labels: Any
    space: ceopt.FeatureSpace
    favourable: Any
    is_asked: Any
    riskiest: bool = False


@functools.cache
def _adult(way: str) -> Table:
    bunch = ceopt.datasets.load("adult")
    frame = bunch.data
    words = _words(frame)
    has_mark = frame[words].eq("?").any(axis=1).to_numpy()
    space = bunch.space
    if way == "nan":
        frame = frame.assign(**{name: frame[name].astype(object).where(frame[name] != "?", np.nan) for name in words})
        levels = {name: [level for level in space[name].levels if level != "?"] for name in words}
        for name in words:
            if frame[name].isna().any():
                space = space.update(name, levels=levels[name], missing=True)
    is_asked = ~has_mark if way == "complete" else has_mark
    return Table(frame, bunch.target, space, bunch.favourable, is_asked)


@functools.cache
def _gmsc(way: str) -> Table:
    bunch = ceopt.datasets.load("gmsc_raw")
    has_gap = bunch.data.isna().any(axis=1).to_numpy()
    space = bunch.space
    gaps = [name for name in space.names if bunch.data[name].isna().any()]
    space = space.update(gaps, missing=True).fix("age")
    return Table(bunch.data, bunch.target, space, bunch.favourable, has_gap if way == "nan" else ~has_gap, True)


@functools.cache
def _heloc() -> Table:
    bunch = ceopt.datasets.load("heloc")
    return Table(bunch.data, bunch.target, bunch.space, bunch.favourable, np.ones(len(bunch.data), dtype=bool))


TABLES: dict[str, Callable[[], Table]] = {
    "heloc": _heloc,
    "gmsc, missing": lambda: _gmsc("nan"),
    "gmsc, complete": lambda: _gmsc("complete"),
    "adult, ? as a level": lambda: _adult("mark"),
    "adult, ? as missing": lambda: _adult("nan"),
    "adult, complete": lambda: _adult("complete"),
}


@functools.cache
def fitted(table: str, model: str) -> Any:
    """Return a model, fitted to the table."""
    given = TABLES[table]()
    return MODELS[model]()(given.frame).fit(given.frame, given.labels)


def people(table: str, model: str, count: int) -> tuple[pd.DataFrame, Any]:
    """Return whom the model refuses, or the riskiest, and what they are to reach."""
    given = TABLES[table]()
    estimator = fitted(table, model)
    target: Any = given.favourable
    if given.riskiest:
        place = list(estimator.classes_).index(given.favourable)
        shares = estimator.predict_proba(given.frame)[:, place]
        least = float(np.quantile(shares, RISKIEST))
        is_refused = shares < least
        target = ceopt.Probability(given.favourable, least)
    else:
        is_refused = estimator.predict(given.frame) != given.favourable
    pool = np.flatnonzero(is_refused & given.is_asked)
    chosen = np.random.default_rng(0).choice(pool, min(count, len(pool)), replace=False)
    return given.frame.iloc[np.sort(chosen)], target


# ---- questions -------------------------------------------------------------------------------------------------------
def ask(model: Any, row: pd.DataFrame, space: ceopt.FeatureSpace, target: Any) -> dict[str, Any]:
    """Ask about one person, and judge the answer by the model's own word."""
    began = time.perf_counter()
    result = ceopt.explain(model, row, space, target=target, time_limit_s=LIMIT_S)
    seconds = time.perf_counter() - began
    record = {"status": str(result.status), "seconds": seconds, "invalid": 0, "put_there": 0, "filled": 0}
    if not len(result):
        return record
    answer = result.to_frame()[list(space.names)].iloc[[0]]
    if isinstance(target, ceopt.Probability):
        place = list(model.classes_).index(target.label)
        record["invalid"] = int(model.predict_proba(answer)[0, place] < target.at_least)
    else:
        record["invalid"] = int(model.predict(answer)[0] != target)
    for feature in space:
        before, after = row[feature.name].iloc[0], answer[feature.name].iloc[0]
        was_label = pd.isna(before) or before in feature.codes
        is_label = pd.isna(after) or after in feature.codes
        record["put_there"] += int(is_label and not was_label)
        record["filled"] += int(was_label and not is_label)
    return record | {"cost": result[0].cost, "gap": result[0].gap}


def blanked(table: str, model: str, place: int) -> dict[str, Any]:
    """Ask about one person, and about the same with one cell that may move blanked, in turns."""
    given = TABLES[table]()
    rows, target = people(table, model, BLANKED)
    row = rows.iloc[[place]]
    rng = np.random.default_rng(place)
    moving = [feature.name for feature in given.space if feature.mutable and not pd.isna(row[feature.name].iloc[0])]
    name = str(rng.choice(moving))
    without = row.copy()
    if pd.api.types.is_numeric_dtype(without[name].dtype):
        without[name] = without[name].astype(float)
    without[name] = np.nan
    space = given.space.update(name, missing=True)
    estimator = fitted(table, model)
    pairs = {"whole": (row, given.space), "blanked": (without, space)}
    record: dict[str, Any] = {"column": name}
    for way in common.rotated(list(pairs), place):
        record[way] = ask(estimator, *pairs[way], target)
    return record


# ---- the page --------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Return the tables."""
    head = [
        "people",
        "model",
        "asked",
        "optimal",
        "infeasible",
        "other",
        "invalid",
        "put there",
        "filled in",
        "seconds",
        "commit",
    ]
    rows = [
        [
            part["table"], part["model"], part["asked"], part["optimal"], part["infeasible"], part["other"],
            part["invalid"], part["put_there"], part["filled"], part["seconds"],
            part["commit"],
        ]
        for part in record["tables"]
    ]  # fmt: skip
    one = [
        [part["table"], part["model"], part["people"], f"{part['ratio']:.2f}", part["commit"]]
        for part in record["blanked"]
    ]
    asked = sum(part["asked"] for part in record["tables"])
    answered = sum(part["answered"] for part in record["tables"])
    words = (
        f"{asked:,} people, of whom {answered:,} have an answer or a proof that there is none; {LIMIT_S:g} s each. "
        '"Put there": answers in which a cell that held an amount is missing or holds a code. Seconds are the median, '
        "the 90 % quantile and the greatest."
    )
    cells = "The same people, and the same with one cell blanked, in turns: total seconds, blanked over whole."
    return "\n\n".join(
        [
            words,
            common.markdown_table(head, rows),
            cells,
            common.markdown_table(["people", "model", "pairs", "ratio", "commit"], one),
        ]
    )


def counted(table: str, model: str, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the line of a table."""
    statuses = Counter(record["status"] for record in records)
    known = statuses["optimal"] + statuses["infeasible"]
    return {
        "table": table,
        "model": model,
        "asked": len(records),
        "answered": sum("cost" in record or record["status"] == "infeasible" for record in records),
        "optimal": statuses["optimal"],
        "infeasible": statuses["infeasible"],
        "other": len(records) - known,
        **{word: sum(record[word] for record in records) for word in ("invalid", "put_there", "filled")},
        "seconds": common.spread([record["seconds"] for record in records], 2),
        "commit": commits_of(records),
    }


def commits_of(records: Sequence[dict[str, Any]]) -> str:
    """Return the commits at which some records were measured, as runs are taken up again."""
    return ", ".join(sorted({record["commit"] for record in records}))


def main() -> None:
    """Ask about everybody, and go on where an earlier run stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="tables whose names begin so; writes no page")
    parser.add_argument("--quick", action="store_true", help="3 people each; writes nothing")
    args = parser.parse_args()
    common.data_folder()
    warnings.simplefilter("ignore")
    count = 3 if args.quick else PEOPLE
    pairs = 3 if args.quick else BLANKED
    journal = common.Journal("any_row-quick" if args.quick else "any_row", {"people": count, "pairs": pairs})
    commit = provenance.source(MEASURES).get("commit", "")
    cells = [(table, model) for table in TABLES if table.startswith(args.only) for model in MODELS]
    for table, model in cells:
        rows, target = people(table, model, count)
        for place in common.bar(range(len(rows)), len(rows)):
            key = f"{table}|{model}|{place}"
            if key not in journal.done:
                asked = ask(fitted(table, model), rows.iloc[[place]], TABLES[table]().space, target)
                journal.add(key, asked | {"commit": commit})
        if "complete" not in table:
            continue
        for place in common.bar(range(min(pairs, len(rows))), pairs):
            key = f"{table}|{model}|blanked|{place}"
            if key not in journal.done:
                journal.add(key, blanked(table, model, place) | {"commit": commit})
    if args.only:
        return
    tables, one = [], []
    for table, model in cells:
        own = [r for r in journal.records if r["key"].startswith(f"{table}|{model}|") and "column" not in r]
        tables.append(counted(table, model, own))
        both = [r for r in journal.records if r["key"].startswith(f"{table}|{model}|blanked|")]
        if both:
            whole, without = (sum(r[way]["seconds"] for r in both) for way in ("whole", "blanked"))
            line = {"table": table, "model": model, "people": len(both), "ratio": without / whole}
            one.append(line | {"commit": commits_of(both)})
    common.report("any_row", TITLE, MEASURES, text_of, {"tables": tables, "blanked": one}, quick=args.quick)
    journal.close()


if __name__ == "__main__":
    main()
