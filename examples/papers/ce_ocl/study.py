"""What a case study is: one person, one model, and parts that ask for more and more; each is solved and measured."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyomo.environ as pyo
from sklearn.compose import make_column_transformer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

import ceopt
from ceopt.formulations import Factual, Reaches, embed, impose
from ceopt.solvers import solve

__all__ = [
    "ALPHA",
    "BETA",
    "DIVERSITY",
    "Case",
    "Found",
    "Missed",
    "Part",
    "Table",
    "free_space",
    "program",
    "published",
    "released_cost",
    "run",
    "squares",
]

#: What the paper charges for a changed encoded column, and for a unit of l1 distance from the hull.
ALPHA, BETA = 10_000, 100_000
#: The margin in the model's score that answers keep.
MARGIN = 1e-6
#: How far answers are from each other at least, in l1: numbers by their ranges, 1 for each category that differs.
APART = 0.5
DIVERSITY = (
    f"diversity: three answers, each the best of those that are at least {APART} from all before in l1, which sums the "
    "differences of all numbers as shares of their ranges, and 1 for each category that differs"
)


# ---- the data and the model ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Table:
    """Rows, labels (1 is wanted) and the paper's preparation of them.

    Parameters
    ----------
    data, target
        All rows, and their labels.
    numbers
        The numeric columns; all others are categories.
    levels
        Of each category, in the order of its encoded columns.
    """

    data: pd.DataFrame
    target: pd.Series[Any]
    numbers: tuple[str, ...]
    levels: Mapping[str, list[Any]]

    @property
    def parts(self) -> tuple[pd.Index[Any], pd.Index[Any]]:
        """Rows of the training and of the test part."""
        train, test = train_test_split(self.data.index, test_size=0.2, stratify=self.target, random_state=0)
        return train, test

    @property
    def scale(self) -> dict[str, float]:
        """The range of each number in the training part: what min-max scaling divides by."""
        train = self.data.loc[self.parts[0], list(self.numbers)]
        return {name: float(train[name].max() - train[name].min()) for name in self.numbers}

    def fit(self, classifier: Any) -> Any:
        """Return the classifier behind min-max scaling and one-hot encoding, fitted on the training part."""
        categories = list(self.levels)
        encode = make_column_transformer(
            (MinMaxScaler(), list(self.numbers)),
            (OneHotEncoder(categories=[self.levels[name] for name in categories]), categories),
        )
        train, _ = self.parts
        return make_pipeline(encode, classifier).fit(self.data.loc[train], self.target[train])

    def auc(self, model: Any) -> tuple[float, float]:
        """Return the area under the curve on both parts."""
        of = model.decision_function if hasattr(model, "decision_function") else lambda x: model.predict_proba(x)[:, 1]
        first, second = (float(roc_auc_score(self.target[part], of(self.data.loc[part]))) for part in self.parts)
        return first, second

    def refused(self, model: Any) -> list[Any]:
        """Return the test rows that the model puts in class 0, in the order of the split."""
        _, test = self.parts
        return [row for row, label in zip(test, model.predict(self.data.loc[test]), strict=True) if label == 0]

    @property
    def favourable(self) -> pd.DataFrame:
        """All rows whose own label is 1, of both parts, as in the released code."""
        return self.data[self.target == 1]


def free_space(table: Table, person: pd.DataFrame, *, whole: Iterable[str] = (), ranges: float | None) -> Any:
    """Return the columns as the paper first has them: nothing is fixed, and continuous ones may take any value.

    ``ranges`` bounds them all the same, at so many ranges on either side of the person: rows that switch a column or a
    neuron on or off need a bound. The paper's is 10,000.
    """
    whole, features = tuple(whole), []
    for name in table.data:
        if name in table.levels:
            features.append(ceopt.Feature(name, kind="categorical", levels=tuple(table.levels[name])))
        elif name in whole:
            low, high = table.data[name].min(), table.data[name].max()
            features.append(ceopt.Feature(name, kind="integer", lower=float(low), upper=float(high)))
        elif ranges is None:
            features.append(ceopt.Feature(name, kind="continuous"))
        else:
            home, far = float(person[name].iloc[0]), ranges * table.scale[name]
            features.append(ceopt.Feature(name, kind="continuous", lower=home - far, upper=home + far))
    return ceopt.FeatureSpace(features)


# ---- the parts -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One question: what it adds to the one before, and all that it asks.

    ``instead`` are the rules for the case that the first ones are proved to leave nothing. ``beside`` says why the
    answers are not those of the paper. The gap is relative to the whole cost: beside 10,000 a change, 1e-11 of it is
    1e-7 of the square. A solver may promise less: what is proved is the bound that came back.
    """

    letter: str
    word: str
    adds: str
    space: Any
    cost: Any
    rules: tuple[Any, ...] = ()
    instead: tuple[Any, ...] = ()
    n: int = 1
    relative_gap: float = 1e-11
    beside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A person whom a model decides on, and the parts of the study."""

    name: str
    title: str
    table: Table
    model: Any
    row: Any
    parts: tuple[Part, ...]
    #: What a reader has to know of the data.
    note: str = ""
    #: Most seconds that a part may take.
    time_limit_s: float = 240.0

    @property
    def person(self) -> pd.DataFrame:
        """The person's row."""
        return self.table.data.loc[[self.row]]

    @property
    def published(self) -> Mapping[str, Any]:
        """The paper's and the release's values by part; nothing of a case that is not the paper's."""
        return published().get(self.name, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a part came to: its program at margin 0, and the verified answers.

    ``emptied`` is what is said of the part's first rules where they were proved to leave nothing.
    """

    part: Part
    rules: tuple[Any, ...]
    objective: float | None
    bound: float | None
    result: Any
    metrics: Mapping[str, float]
    seconds: float
    emptied: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A part that the solver does not take, and the sentence that says why."""

    part: Part
    why: str


@cache
def published() -> Mapping[str, Any]:
    """Return the values that the paper prints and those of its released notebooks, by case and part."""
    values: Mapping[str, Any] = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return values


def released_cost(scale: Mapping[str, float], *, sparse: bool) -> Any:
    """Return the objective of the released code: squared l2 over encoded columns, and 10,000 for each that changes."""
    near = ceopt.L2(scale=scale, squared=True, count="columns")
    return near + ALPHA * ceopt.Changes(count="columns") if sparse else near


def program(case: Case, part: Part, rules: tuple[Any, ...], *, margin: float = 0.0) -> pyo.ConcreteModel:
    """Return the part as a program, block by block."""
    m = pyo.ConcreteModel(name=f"{case.name}, part {part.letter}")
    m.x = Factual(part.space, case.person)
    m.predictor = embed(case.model, m.x)
    m.valid = Reaches(m.predictor, 1, margin=margin)
    m.rules = pyo.Block(concrete=True)
    for rule in rules:
        m.rules.add_component(rule.name, impose(rule, m.x))
    m.cost = pyo.Objective(expr=part.cost.build(m.x) + sum(m.x.surcharges))
    return m


def run(case: Case, part: Part, *, solver: str = "auto", state: bool = True) -> Found:
    """Solve one part: the program at margin 0 where ``state`` asks for it, and answers that the model confirms."""
    began, emptied, rules = time.perf_counter(), "", part.rules

    def answers() -> Any:
        return ceopt.explain(
            case.model,
            case.person,
            part.space,
            target=1,
            n=part.n,
            cost=part.cost,
            constraints=rules,
            diversity=ceopt.Apart(APART, cost=ceopt.L1(scale=case.table.scale)),
            solver=solver,
            margin=MARGIN,
            relative_gap=part.relative_gap,
            time_limit_s=case.time_limit_s,
        )

    result = answers()
    if result.status == "infeasible" and part.instead:
        emptied, rules = result.reason, part.instead
        result = answers()
    stated = None
    if state:
        m = program(case, part, rules)
        stated = solve(m, solver, time_limit_s=case.time_limit_s, relative_gap=part.relative_gap)
    metrics = result.metrics("ce_ocl2022", model=case.model, target=1, space=part.space, missing="nan")
    return Found(
        part=part,
        rules=rules,
        objective=None if stated is None else stated.objective,
        bound=None if stated is None else stated.bound,
        result=result,
        metrics=metrics.to_dict(),
        seconds=time.perf_counter() - began,
        emptied=emptied,
    )


def squares(case: Case, answer: Any) -> tuple[float, float]:
    """Return the square of an answer's distance, a changed category counted as one column and as two."""
    space, scale = case.parts[0].space, case.table.scale
    rows = (case.person.iloc[0], answer.values)
    before, after = ({name: space[name].to_coordinate(row[name]) for name in space.names} for row in rows)
    once, twice = ceopt.L2(scale, squared=True), ceopt.L2(scale, squared=True, count="columns")
    return once.value(space, before, after), twice.value(space, before, after)
