"""Advice that nobody has to be ashamed of: a ceiling, one-hot columns made by hand, and codes among amounts."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import common
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import ceopt
from ceopt import ExactlyOne, Linear

TITLE = "Advice: ceilings, one-hot columns, codes"
MEASURES = (
    "ceopt/search",
    "ceopt/datasets.py",
    "formulations/constraints",
    "formulations/space",
)

#: Meant as "ask for no impossible incomes".
CEILING = 12_000
#: Of the made-up loans a tenth of the incomes are below it; dollars a month of Give Me Some Credit mostly are.
COHORTS = ("loans", "gmsc")
BEYOND = ("meet", "no_further")
CODED = {"heloc": "logistic", "gmsc_raw": "logistic"}


# ---- a ceiling -------------------------------------------------------------------------------------------------------
def people_of(name: str, rows: int) -> tuple[Any, pd.DataFrame, pd.DataFrame, str, Any]:
    """Return a model, its data, people whom it refuses, the column of incomes and the target."""
    if name == "loans":
        book = ceopt.datasets.loans(random_state=common.SEED)
        numbers = list(book.data.select_dtypes("number").columns)
        words = [column for column in book.data.columns if column not in numbers]
        encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), words))
        model: Any = make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(book.data, book.target)
        data, target, column = book.data, "good", "income"
    else:
        task = common.load(name)
        model = common.fit(task, "logistic")
        data, target, column = task.train, task.target, "MonthlyIncome"
    return model, data, drawn(data[model.predict(data) != target], rows), column, target


def drawn(people: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Return some people by chance, in the order of the data."""
    chosen = np.random.default_rng(common.SEED).choice(len(people), min(rows, len(people)), replace=False)
    return people.iloc[np.sort(chosen)]


def ceilings(rows: int, limit_s: float) -> list[dict[str, Any]]:
    """Ask a cohort under the ceiling, with each meaning of it."""
    found = []
    for name in COHORTS:
        model, data, people, column, target = people_of(name, rows)
        for beyond in BEYOND:
            rule = Linear({column: 1.0}, "<=", CEILING, name="income", beyond=beyond)  # type: ignore[arg-type]
            cohort, warned = asked(
                model, space_of(name), people, data=data, target=target, constraints=rule, time_limit_s=limit_s
            )
            moves = cohort.changes()
            incomes = moves[moves["column"] == column]
            lowered = incomes[incomes["move"] < 0.0]
            marked = 0
            if "asked_by" in moves:
                marked = int((lowered["asked_by"] == "income").sum())
            found.append(
                {
                    "data": name,
                    "beyond": beyond,
                    "people": len(people),
                    "above": int((people[column] > CEILING).sum()),
                    "answers": sum(len(result) > 0 for result in cohort),
                    "lowered": len(lowered),
                    "for_the_rule": marked,
                    "above_both": int(_above_both(incomes).sum()),
                    "statuses": cohort.counts(),
                    "warned": warned,
                }
            )
    return found


def space_of(name: str) -> ceopt.FeatureSpace:
    """Return the columns as the data set describes them."""
    if name == "loans":
        return ceopt.datasets.loans(random_state=common.SEED).space
    return common.load(name).bunch.space


def _above_both(incomes: pd.DataFrame) -> Any:
    """Tell which incomes end above the ceiling and above where they were: what the rule is there to forbid."""
    before, after = (incomes[word].astype(float) for word in ("from", "to"))
    return after > np.maximum(before, CEILING) + 1e-6


def asked(
    model: Any, space: ceopt.FeatureSpace, people: pd.DataFrame, *, data: pd.DataFrame, **options: Any
) -> tuple[ceopt.Cohort, list[str]]:
    """Return the answers, and what was warned of rules."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recourse = ceopt.Recourse(model, space, **options).fit(data)
        cohort = recourse.explain(people)
    return cohort, [str(one.message) for one in caught if issubclass(one.category, ceopt.RuleWarning)]


# ---- one-hot columns made by hand ------------------------------------------------------------------------------------
def dummies(rows: int, limit_s: float) -> list[dict[str, Any]]:
    """Ask over columns of ``pd.get_dummies``, as they are and with a rule for each group of them."""
    task = common.load("german")
    words = [name for name in task.train.columns if not pd.api.types.is_numeric_dtype(task.train[name])]
    X = pd.get_dummies(task.train, columns=words)
    groups = {word: [name for name in X.columns if name.startswith(f"{word}_")] for word in words}
    groups = {word: names for word, names in groups.items() if len(names) > 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ceopt.SpaceWarning)
        space = ceopt.FeatureSpace.infer(X)
    found = []
    models = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "forest": RandomForestClassifier(n_estimators=50, max_depth=6, random_state=common.SEED, n_jobs=1),
    }
    for name, model in models.items():
        model.fit(X, task.labels)
        people = X[model.predict(X) != task.target].head(rows)
        for rules in ([], [ExactlyOne(names, name=word) for word, names in groups.items()]):
            cohort, _ = asked(model, space, people, data=X, target=task.target, constraints=rules, time_limit_s=limit_s)
            answers = [(result, answer) for result in cohort for answer in result]
            ones = [{word: int(answer.values[names].sum()) for word, names in groups.items()} for _, answer in answers]
            found.append(
                {
                    "model": name,
                    "rule": bool(rules),
                    "people": len(people),
                    "answers": len(answers),
                    "several": sum(any(count > 1 for count in one.values()) for one in ones),
                    "none": sum(any(count < 1 for count in one.values()) for one in ones),
                    "absurd": sum(any(count != 1 for count in one.values()) for one in ones),
                }
            )
    return found


# ---- codes among amounts ---------------------------------------------------------------------------------------------
def codes(rows: int, limit_s: float) -> list[dict[str, Any]]:
    """Ask about data in which some numbers are codes, over the space of ``datasets.load``."""
    found = []
    for name, kind in CODED.items():
        task = complete(common.load(name))
        schema = common.schema_of(name)
        model = common.fit(task, kind)
        people = drawn(task.others[model.predict(task.others) != task.target], rows)
        cohort, _ = asked(model, task.bunch.space, people, data=task.train, target=task.target, time_limit_s=limit_s)
        onto, off = 0, 0
        for result in cohort:
            before = result.factual.iloc[0]
            for answer in result:
                changed = [column for column in answer.changed if "codes" in schema[column]]
                onto += any(_is_code(schema[column], answer.values[column]) for column in changed)
                off += any(_is_code(schema[column], before[column]) for column in changed)
        on_code = sum(
            any(_is_code(schema[c], row[c]) for c in schema if "codes" in schema[c]) for _, row in people.iterrows()
        )
        found.append(
            {
                "data": name,
                "model": kind,
                "people": len(people),
                "on_code": on_code,
                "answers": sum(len(result) for result in cohort),
                "onto": onto,
                "off": off,
                "statuses": cohort.counts(),
            }
        )
    return found


def complete(task: common.Task) -> common.Task:
    """Return a data set without the rows that have empty cells, which a logistic model does not take."""
    known = task.train.notna().all(axis=1)
    space = ceopt.FeatureSpace(replace(feature, missing=False) for feature in task.bunch.space)
    return replace(
        task,
        bunch=replace(task.bunch, space=space),
        train=task.train[known],
        labels=task.labels[known],
        others=task.others[task.others.notna().all(axis=1)],
    )


def _is_code(column: dict[str, Any], value: Any) -> bool:
    """Tell whether a value is no amount, by what the data's own schema says of them."""
    if column["kind"] == "ordinal":
        return str(value) in column["codes"]
    number = float(value)
    return number < column.get("amount_lower", -np.inf) or number > column.get("amount_upper", np.inf)


def main() -> None:
    """Ask all three kinds of people and write the report."""
    options = common.arguments(__doc__ or "", rows=200, dummies=12, coded=40, limit=30)
    rows, few, coded = (10, 3, 5) if options.quick else (options.rows, options.dummies, options.coded)
    settings = {"rows": rows, "dummies": few, "coded": coded, "limit_s": options.limit, "seed": common.SEED}
    common.data_folder()
    with threadpool_limits(1):
        record: dict[str, Any] = {
            "settings": settings,
            "ceilings": ceilings(rows, options.limit),
            "dummies": dummies(few, options.limit),
            "codes": codes(coded, options.limit),
        }
    common.report("advice", TITLE, MEASURES, text_of, record, quick=options.quick)


def text_of(record: dict[str, Any]) -> str:
    """Count, in each kind, the answers that would be absurd as advice."""
    ceiling = [
        [
            r["data"],
            r["beyond"],
            r["people"],
            r["above"],
            r["answers"],
            r["lowered"],
            r["for_the_rule"],
            r["above_both"],
        ]
        for r in record["ceilings"]
    ]
    warned = "\n".join(f"> {line}" for r in record["ceilings"] for line in r["warned"])
    hot = [
        [
            r["model"],
            "with" if r["rule"] else "without",
            r["people"],
            r["answers"],
            r["several"],
            r["none"],
            r["absurd"],
        ]
        for r in record["dummies"]
    ]
    coded = [
        [r["data"], r["model"], r["people"], r["on_code"], r["answers"], r["onto"], r["off"]] for r in record["codes"]
    ]
    limits = record["settings"]["limit_s"]
    return (
        f'## A ceiling that lowers people\n\n`Linear({{income: 1}}, "<=", {CEILING})`, meant as "ask for no '
        'impossible incomes", over made-up loans (dollars a year) and Give Me Some Credit (a month); logistic models, '
        f'l1 cost, {limits} s a person. With `beyond="meet"`, the default, the rule is literal: who is above it is '
        "lowered, a warning says so and every such change is marked as asked for by the rule alone. With "
        '`beyond="no_further"` the same people may stay.\n\n'
        + common.markdown_table(
            [
                "data",
                "beyond",
                "people",
                "above it today",
                "with an answer",
                "incomes lowered",
                "of them marked",
                "raised above both",
            ],
            ceiling,
        )
        + f"\n\nThe warnings, once a call:\n\n{warned}\n\n"
        "## One-hot columns made by hand\n\nGerman credit through `pd.get_dummies`: every text column is several 0/1 "
        "columns, and nothing tells a space that one of them is 1. With an `ExactlyOne` for each group an answer has "
        "one level of each, and a move between two is charged once.\n\n"
        + common.markdown_table(
            [
                "model",
                "`ExactlyOne`",
                "people",
                "answers",
                "two or more of one",
                "none of one",
                "either",
            ],
            hot,
        )
        + "\n\n## Codes among amounts\n\nHELOC writes -9, -8 and -7, and Give Me Some Credit 98, where nothing is "
        "known. People over the space of `ceopt.datasets.load`; what is an amount is read from the data's schema.\n\n"
        + common.markdown_table(
            [
                "data",
                "model",
                "people",
                "who stand on a code",
                "answers",
                "that come onto what is no amount",
                "that leave a code",
            ],
            coded,
        )
    )


if __name__ == "__main__":
    main()
