"""Answers under a causal model, on the loans whose causal model is known: what is done, what follows, what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import ceopt
from ceopt import Causal
from ceopt.search.near_people import Met
from ceopt.search.solve_program import ProgramSolver

BOOK = ceopt.datasets.loans(n=600)
SPACE = BOOK.space
EDUCATION = list(SPACE["education"].levels)
#: Amounts move in steps of 100 dollars and durations in months: half a step lets what follows round.
SLACK = {"income": 50.0, "savings": 50.0, "loan_amount": 50.0, "duration": 0.5}


def fitted(model: Any) -> Any:
    encoder = make_column_transformer(
        (OneHotEncoder(drop="if_binary"), ["sex", "region", "employment", "has_guarantor"]),
        (OrdinalEncoder(categories=[EDUCATION]), ["education"]),
        remainder=StandardScaler(),
    )
    return make_pipeline(encoder, model).fit(BOOK.data, BOOK.target)


MODELS = {
    "logistic": fitted(LogisticRegression(max_iter=1000)),
    "forest": fitted(RandomForestClassifier(5, max_depth=4, random_state=0)),
    "network": fitted(MLPClassifier((5,), max_iter=4000, random_state=0, tol=1e-3)),
}


def rejected(name: str, count: int) -> pd.DataFrame:
    data = BOOK.data[MODELS[name].predict(BOOK.data) == "bad"]
    return data.iloc[:: max(1, len(data) // count)].head(count)


def by_hand(before: pd.Series, after: pd.Series) -> dict[str, float]:
    """Return what is left of each move when the loans' own equations have had their part, from their text."""
    rank = {level: float(k) for k, level in enumerate(EDUCATION)}
    move = {name: float(after[name]) - float(before[name]) for name in (*SLACK, "age", "years_employed")}
    move["education"] = rank[after["education"]] - rank[before["education"]]
    return {
        "years_employed": move["years_employed"] - 0.3 * move["age"],
        "income": move["income"] - 120 * move["age"] - 8500 * move["education"] - 600 * move["years_employed"],
        "savings": move["savings"] - 150 * move["age"] - 0.4 * move["income"],
        "loan_amount": move["loan_amount"] - 0.25 * move["income"],
        "duration": move["duration"] - 0.0012 * move["loan_amount"],
    }


def l1_of(amounts: dict[str, float], before: pd.Series, after: pd.Series) -> float:
    """Return the l1 cost of amounts for columns with an equation, and of the moves of all others."""
    total = 0.0
    for feature in SPACE:
        name = feature.name
        move = amounts.get(name, 0.0)
        if name not in BOOK.equations:
            if feature.kind == "categorical":
                move = float(after[name] != before[name])
            else:
                move = feature.to_coordinate(after[name]) - feature.to_coordinate(before[name])
        total += abs(move) / feature.scale("mad")
    return total


@pytest.mark.long(every=3)
@pytest.mark.parametrize("intervention", ["none", "soft", "hard"])
@pytest.mark.parametrize("name", MODELS)
def test_actions_and_consequences_are_those_of_the_known_model(name: str, intervention: Any) -> None:
    rule = Causal(BOOK.equations, intervention=intervention, slack=SLACK)
    for _, row in rejected(name, 2).iterrows():
        result = ceopt.explain(MODELS[name], row, SPACE, target="good", constraints=[rule], data=BOOK.data)
        assert result.status == "optimal", result
        assert ceopt.verify(result, MODELS[name], SPACE, target="good", constraints=[rule]).ok
        answer = result[0]
        assert answer.actions is not None
        off = by_hand(row, answer.values)
        beyond = {c: r for c, r in off.items() if abs(r) > SLACK.get(c, 0.0) + 1e-6 * max(1.0, abs(answer.values[c]))}
        others = {c for c in answer.changed if c not in off}
        assert set(answer.actions.index) == others | beyond.keys()
        if intervention == "none":
            assert not beyond
            amounts = {c: float(answer.values[c]) - float(row[c]) for c in off}
        elif intervention == "soft":
            amounts = {c: np.sign(r) * (abs(r) - SLACK.get(c, 0.0)) for c, r in beyond.items()}
            for column, amount in amounts.items():
                assert answer.actions[column] == pytest.approx(amount, abs=1e-6 * max(1.0, abs(row[column])))
        else:
            amounts = {c: float(answer.values[c]) - float(row[c]) for c in beyond}
            for column in beyond:
                assert answer.actions[column] == answer.values[column]
        assert answer.cost == pytest.approx(l1_of(amounts, row, answer.values), rel=1e-9, abs=1e-9)
        why = result.changes()["why"].loc[1]
        assert {c for c in why.index if why[c] == "consequence"} == set(answer.changed) - set(answer.actions.index)
        assert "why" in repr(result).splitlines()[1]


@pytest.mark.long
def test_to_do_less_is_cheaper_where_things_follow() -> None:
    """Interventions whose consequences are free cost at most what all moves together cost, in the rows' mean."""
    for name in ("logistic", "forest"):
        for _, row in rejected(name, 3).iterrows():
            cost = {
                kind: ceopt.explain(
                    MODELS[name], row, SPACE, target="good", data=BOOK.data,
                    constraints=[Causal(BOOK.equations, intervention=kind, slack=SLACK)],
                )[0].cost
                for kind in ("none", "soft", "hard")
            }  # fmt: skip
            assert cost["soft"] <= cost["none"] + 1e-9
            assert cost["hard"] <= cost["none"] + 1e-9


@pytest.mark.long(every=5)
@pytest.mark.parametrize("intervention", ["none", "soft", "hard"])
@pytest.mark.parametrize("cost", ["l0", "l1", "linf", "l1 and changes"])
def test_starts_and_cutoffs_do_not_move_the_optimum(cost: str, intervention: Any, monkeypatch: Any) -> None:
    rule = Causal(
        BOOK.equations, intervention=intervention, slack=SLACK, actionable=["education", "income", "employment", "age"]
    )
    price = ceopt.L1() + 0.1 * ceopt.Changes() if cost == "l1 and changes" else cost
    (_, row), *_ = rejected("forest", 1).iterrows()

    def ask() -> Any:
        return ceopt.explain(
            MODELS["forest"], row, SPACE, target="good", cost=price, constraints=[rule], data=BOOK.data
        )

    with_starts = ask()
    nothing = Met(0.0, np.zeros((0, len(SPACE.names)))), 0.0
    monkeypatch.setattr("ceopt.search.state.Predictions.met", lambda *_: nothing)
    alone = ask()
    assert with_starts.status == alone.status == "optimal"
    assert with_starts[0].cost == pytest.approx(alone[0].cost, rel=2e-6)


def test_starts_are_complete_and_feasible(monkeypatch: Any) -> None:
    """Every variable of the rule's blocks, those of fitted equations included, has a value that the rows accept."""
    wage = make_pipeline(
        make_column_transformer((OrdinalEncoder(categories=[EDUCATION]), ["education"]), remainder=MinMaxScaler()),
        GradientBoostingRegressor(n_estimators=5, random_state=0),
    ).fit(BOOK.data[["age", "education"]], BOOK.data["income"])
    savings = DecisionTreeRegressor(max_depth=3).fit(BOOK.data[["income"]], BOOK.data["savings"])
    seen: list[float] = []
    place = ProgramSolver._start

    def checked(self: Any, program: Any, compiled: Any, ask: Any) -> Any:
        start = place(self, program, compiled, ask)
        assert start is not None
        assert len(start) == len(compiled.index)
        for row in program.model.component_data_objects(pyo.Constraint):
            body = pyo.value(row.body)
            size = 1e-7 * max(1.0, abs(body))
            assert row.lower is None or body >= pyo.value(row.lower) - size, row.name
            assert row.upper is None or body <= pyo.value(row.upper) + size, row.name
        seen.append(pyo.value(program.model.cost))
        return start

    monkeypatch.setattr(ProgramSolver, "_start", checked)
    (_, row), *_ = rejected("forest", 1).iterrows()
    for intervention in ("none", "soft", "hard"):
        rule = Causal(
            {"income": wage, "savings": savings}, intervention=intervention, slack={"income": 50, "savings": 50}
        )
        result = ceopt.explain(MODELS["forest"], row, SPACE, target="good", constraints=[rule], data=BOOK.data)
        assert result.status == "optimal"
        assert result[0].cost <= seen[-1] * (1.0 + 1e-6) + 1e-9  # told in decimals, within the relative gap
    assert len(seen) >= 3


def test_learned_equations_are_near_the_true_ones() -> None:
    """With the graph known, the learned model's answer is one of the true model but for the error of the fit."""
    rule = Causal.learn(BOOK.graph, BOOK.data, space=SPACE, intervention="hard", slack=SLACK)
    numbers = BOOK.data.assign(education=BOOK.data["education"].cat.codes)
    for column, (model, parents) in rule.equations.items():
        true = BOOK.equations[column]
        expected = sum(a * numbers[parent] for parent, a in true.parents.items()) + true.intercept
        error = model.predict(BOOK.data[parents]) - expected
        assert np.sqrt(np.mean(error**2)) < 0.2 * true.noise_scale, column
    (_, row), *_ = rejected("logistic", 1).iterrows()
    result = ceopt.explain(MODELS["logistic"], row, SPACE, target="good", constraints=[rule])
    assert result.status == "optimal"


def test_several_answers_and_a_cohort() -> None:
    rule = Causal(BOOK.equations, intervention="soft", slack=SLACK)
    rows = rejected("logistic", 2)
    recourse = ceopt.Recourse(
        MODELS["logistic"], SPACE, target="good", constraints=[rule], n=2, diversity="support"
    ).fit(BOOK.data)
    cohort = recourse.explain(rows)
    assert len(cohort) == 2
    assert (cohort.to_frame()["verified"] == True).all()  # noqa: E712 - a column of objects
    result = ceopt.explain(
        MODELS["logistic"], rows.iloc[0], SPACE, target="good", constraints=[rule], n=3, diversity="support"
    )
    assert len(result) == 3
    assert [a.cost for a in result] == sorted(a.cost for a in result)
    again = ceopt.SolutionSet.from_json(result.to_json())
    assert [a.actions.to_dict() for a in again] == [a.actions.to_dict() for a in result]
    assert repr(again) == repr(result)
