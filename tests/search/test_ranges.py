"""The amounts that would do in place of one that is filled in, held against the model at every amount."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.formulations.constraints import AbstractRule
from ceopt.search import phases, ranges
from ceopt.solvers.manifest import Manifest

NAN = float("nan")
SPACE = FeatureSpace(
    [
        Feature("income", kind="integer", lower=0, upper=600, step=3, missing=True, dtype="Int64"),
        Feature("age", kind="integer", lower=18, upper=90, missing="stays", dtype="Int64"),
        Feature("asked", kind="integer", lower=0, upper=9, codes=[-9, 4], dtype="int64"),
    ]
)
TREES = {
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=12, random_state=0),
    "forest": lambda: RandomForestClassifier(15, max_depth=4, random_state=0),
    "imputed forest": lambda: make_pipeline(
        SimpleImputer(add_indicator=True), RandomForestClassifier(15, max_depth=4, random_state=0)
    ),
}
OTHERS = {
    "logistic": lambda: make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()),
    "network": lambda: make_pipeline(
        SimpleImputer(), StandardScaler(), MLPClassifier((5,), random_state=0, max_iter=300)
    ),
}
MODELS = TREES | OTHERS


def people(n=400):
    """People of whom some have no income and some a code; what is good is not monotone."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "income": rng.integers(0, 600, n).astype(float),
            "age": rng.integers(18, 90, n).astype(float),
            "asked": rng.choice([-9, 0, 1, 2, 3, 5, 6], n).astype(float),
        }
    )
    X.loc[rng.random(n) < 0.25, "income"] = NAN
    X.loc[rng.random(n) < 0.1, "age"] = NAN
    is_good = X["income"].between(200, 330) | (X["income"] > 480) | (X["income"].isna() & (X["age"] > 70))
    return X, np.where(is_good & ~X["asked"].isin([3, 6]), "good", "bad")


@pytest.fixture(scope="module", params=sorted(MODELS))
def fitted(request):
    X, y = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return request.param, MODELS[request.param]().fit(X.to_numpy(), y)


def around(is_good, place):
    """The first and last of those around a place that are good."""
    first = last = place
    while first > 0 and is_good[first - 1]:
        first -= 1
    while last + 1 < len(is_good) and is_good[last + 1]:
        last += 1
    return first, last


def by_hand(model, answer, space, name, kept=lambda _: True):
    """The range of a filled column, by the model's own word at every amount of its grid."""
    feature = space[name]
    step = int(feature.step or 1)
    amounts = [
        amount for amount in range(int(feature.lower), int(feature.upper) + 1, step) if amount not in feature.codes
    ]
    rows = pd.DataFrame([{**answer.values, name: amount} for amount in amounts]).astype(float)[list(space.names)]
    is_good = (model.predict(rows.to_numpy()) == "good") & np.array(list(map(kept, amounts)))
    assert is_good[amounts.index(answer.values[name])]
    first, last = around(is_good, amounts.index(answer.values[name]))
    return amounts[first], amounts[last]


ROWS = [
    {"income": NAN, "age": 30, "asked": 2},
    {"income": NAN, "age": NAN, "asked": -9},
    {"income": 100, "age": 50, "asked": -9},
    {"income": NAN, "age": 80, "asked": 6},
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_range_is_that_of_the_model_at_every_amount(fitted, row):
    name, model = fitted
    result = ceopt.explain(model, row, SPACE, target="good")
    for answer in result:
        filled = [name for name in answer.changed if SPACE[name].is_label_value(result.factual[name].iloc[0])]
        assert sorted(answer.ranges) == sorted(filled), name
        for column in filled:
            assert answer.ranges[column] == by_hand(model, answer, SPACE, column)


TWO = FeatureSpace(
    [
        Feature(name, kind="integer", lower=0, upper=200, step=5, missing=True, dtype="Int64")
        for name in ("income", "savings", "rent")
    ]
)


def of_two(n=600):
    """People of whom some have neither an income nor savings; both have to be known, and count together."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({name: 5.0 * rng.integers(0, 41, n) for name in TWO.names})
    X[rng.random(X.shape) < 0.2] = NAN
    is_good = X["income"] + X["savings"] - 0.2 * X["rent"].fillna(0.0) > 150
    return X, np.where(is_good, "good", "bad")


def imputed(kind, X, y):
    """A model that knows which cells were missing."""
    last = {
        "forest": RandomForestClassifier(15, max_depth=4, random_state=0),
        "logistic": LogisticRegression(),
        "network": MLPClassifier((5,), random_state=0, max_iter=300),
    }[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), last).fit(X.to_numpy(), y)


@pytest.mark.parametrize("data", [True, False], ids=["data", "no data"])
@pytest.mark.parametrize("kind", ["forest", "logistic", "network"])
def test_of_several_numbers_all_amounts_do_together(kind, data):
    """Each stretch was found with the other numbers as in the answer, and all were told as one: half was refused."""
    X, y = of_two()
    model = imputed(kind, X, y)
    told = []
    for rent in range(0, 200, 20):
        row = {"income": NAN, "savings": NAN, "rent": rent}
        given = {"data": X} if data else {}
        result = ceopt.explain(model, row, TWO, target="good", n=2, **given)
        for answer in result:
            filled = [name for name in answer.changed if name != "rent"]
            if len(filled) == 2:
                told.append(len(answer.ranges))
            stretches = [
                np.arange(answer.ranges[name][0], answer.ranges[name][1] + 1, 5)
                if name in answer.ranges else [answer.values[name]]
                for name in TWO.names
            ]  # fmt: skip
            every = pd.DataFrame(list(itertools.product(*stretches)), columns=list(TWO.names)).astype(float)
            assert (model.predict(every.to_numpy()) == "good").all()
    assert len(told) > 2 or kind == "network"
    assert 2 in told or kind != "logistic"


@pytest.mark.parametrize("kind", ["forest", "logistic", "network"])
def test_what_is_filled_in_is_as_near_to_the_middle_of_the_data_as_the_model_lets(kind):
    """It costs the same whatever it is, and was the greatest amount of all under a linear model."""
    X, y = of_two()
    model = imputed(kind, X, y)
    middle = X.loc[model.predict(X.to_numpy()) == "good", "income"].median()
    space = TWO.fix("savings", "rent")
    filled = 0
    for savings, rent in itertools.product(range(0, 200, 25), range(0, 100, 20)):
        row = {"income": NAN, "savings": savings, "rent": rent}
        for answer in ceopt.explain(model, row, space, target="good", data=X):
            every = pd.DataFrame([{**row, "income": amount} for amount in range(0, 201, 5)]).astype(float)
            good = every.loc[model.predict(every.to_numpy()) == "good", "income"]
            nearest = (good - middle).abs().min()
            assert abs(answer.values["income"] - middle) == nearest
            filled += 1
    assert filled > 5


def test_of_several_labels_a_linear_model_may_refuse_amounts_between_those_it_accepts():
    """The farthest amount was asked about first: "any amount", of which 14 to 25 are refused."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 41, (1500, 2)).astype(float)
    y = np.where(X[:, 0] < 14, "A", np.where(X[:, 0] < 27, "B", "C"))
    X[rng.random(X.shape) < 0.05] = NAN
    fill = SimpleImputer(strategy="constant", fill_value=20.0)
    model = make_pipeline(fill, LogisticRegression(max_iter=2000, C=100)).fit(X, y)
    features = [Feature(name, kind="integer", lower=0, upper=40, missing=True, dtype="Int64") for name in "ab"]
    for target in (ceopt.OtherThan("B"), ["A", "C"]):
        (answer,) = ceopt.explain(model, {"a": NAN, "b": 20}, FeatureSpace(features), target=target)
        first, last = map(int, answer.ranges["a"])
        assert "B" not in model.predict([[amount, 20.0] for amount in range(first, last + 1)])
        assert first == 0 or last == 40


@dataclass(frozen=True, slots=True)
class LittleBesideMuch(AbstractRule):
    """The second amount is read where the first is large alone."""

    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(title="little beside much", formula="a >= 150 => b <= 120", rule="Own")
    reads = ("a", "b")

    def check(self, space):
        pass

    def build(self, block, x):
        ceopt.IfThen(("a", ">=", 150), ("b", "<=", 120)).build(block, x)

    def violation(self, space, factual, point):
        del space, factual
        if point["a"] < 150 or math.inf in (point["a"], point["b"]):
            return 0.0
        return max(point["b"] - 120.0, 0.0)

    def sentence(self):
        return "little beside much"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_rule_that_reads_a_number_beside_some_amounts_alone_is_kept_by_all_of_them(order):
    rng = np.random.default_rng(0)
    X = 5.0 * rng.integers(0, 41, (800, 2))
    X[rng.random(X.shape) < 0.2] = NAN
    y = np.where(np.nan_to_num(X).sum(axis=1) > 210, "good", "bad")
    features = [
        Feature(name, kind="integer", lower=0, upper=200, step=5, missing=True, dtype="Int64") for name in order
    ]
    model = make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0), LogisticRegression())
    model.fit(pd.DataFrame(X, columns=list(order)), y)
    rule = LittleBesideMuch()
    (answer,) = ceopt.explain(model, {"a": NAN, "b": NAN}, FeatureSpace(features), target="good", constraints=rule)
    told = [answer.ranges.get(name, (answer.values[name],) * 2) for name in "ab"]
    for a, b in itertools.product(*(np.arange(low, high + 1, 5) for low, high in told)):
        assert rule.violation(None, None, {"a": a, "b": b}) == 0.0
        assert model.predict(pd.DataFrame({"a": [a], "b": [b]})[list(order)])[0] == "good"
    assert answer.ranges


@dataclass(frozen=True, slots=True)
class Slow(LittleBesideMuch):
    """A rule of which each point takes its time."""

    slow: ClassVar[bool] = True


@pytest.mark.parametrize(("rule", "is_asked"), [(Slow(), False), (LittleBesideMuch(), True)], ids=["slow", "quick"])
def test_slow_rules_are_not_asked_which_amounts_are_usual(monkeypatch, rule, is_asked):
    """They were asked about hundreds, beyond the time limit."""
    asked = []
    nearest = phases._nearest_amount
    monkeypatch.setattr(phases, "_nearest_amount", lambda *args: asked.append(args) or nearest(*args))
    X = 5.0 * np.random.default_rng(0).integers(0, 41, (800, 2))
    y = np.where(X.sum(axis=1) > 210, "good", "bad")
    features = [Feature(name, kind="integer", lower=0, upper=200, step=5, missing=True, dtype="Int64") for name in "ab"]
    model = make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0), LogisticRegression()).fit(X, y)
    found = ceopt.explain(model, {"a": NAN, "b": NAN}, FeatureSpace(features), target="good", constraints=rule)
    assert len(found) == 1
    assert bool(asked) is is_asked


@pytest.mark.parametrize("apart", [60, 90, 115])
def test_amounts_stay_where_a_further_answer_has_to_be_so_far_away(apart):
    """Moved to the middle, the first took the room of the second."""
    fill = SimpleImputer(strategy="constant", fill_value=0.0)
    rows = np.array([[5.0 * k, 0.0] for k in range(41)])
    model = make_pipeline(fill, DecisionTreeClassifier()).fit(rows, np.where(rows[:, 0] > 82, "good", "bad"))
    space = FeatureSpace(
        [
            Feature("a", kind="integer", lower=0, upper=200, step=5, missing=True, dtype="Int64"),
            Feature("b", kind="integer", lower=0, upper=200, step=5),
        ]
    )
    cost = ceopt.L1(scale="none")
    found = ceopt.explain(
        model, {"a": NAN, "b": 0}, space, target="good", n=2, cost=cost, diversity=ceopt.Apart(apart, cost)
    )
    assert len(found) == 2
    assert ceopt.explain(model, {"a": NAN, "b": 0}, space, target="good", cost=cost)[0].values["a"] == 100


def first_filled(model, space, **given):
    """The answer of the first of some people that fills in the income, and nothing else."""
    for asked, age in itertools.product([2, 0, 9], [30, 60, 18, 89]):
        row = {"income": NAN, "age": age, "asked": asked}
        for answer in ceopt.explain(model, row, space.fix("age", "asked"), target="good", **given):
            if answer.changed == ("income",):
                return answer
    raise AssertionError("nobody's income is filled in")


def test_rules_that_ask_for_the_amount_narrow_it(fitted):
    """Of all amounts of the grid the rules allow some, which are no interval."""
    _, model = fitted
    allowed = {0, 3, 6, 240, 243, 249, 297, 300, 303, 306, 501, 504, 507, 510, 597, 600}
    rules = [ceopt.AllowedValues({"income": sorted(allowed)}), ceopt.MaxChanges(2)]
    answer = first_filled(model, SPACE, constraints=rules)

    assert answer.ranges["income"] == by_hand(model, answer, SPACE, "income", lambda amount: amount in allowed)


@pytest.mark.parametrize("kind", [*sorted(TREES), "logistic"])
def test_of_a_column_without_steps_every_number_between_does(kind):
    X, y = people()
    income = Feature("income", kind="continuous", lower=0, upper=600 if kind == "logistic" else math.inf, missing=True)
    space = FeatureSpace([income, SPACE["age"], SPACE["asked"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[kind]().fit(X.to_numpy(), y)
    answer = first_filled(model, space)
    low, high = answer.ranges["income"]

    assert low <= answer.values["income"] <= high
    inside = np.linspace(low, min(high, 5000.0), 2000).tolist()
    outside = [
        edge for edge in (low * (1 - 1e-4) - 1e-3, high * (1 + 1e-4) + 1e-3) if income.lower <= edge < income.upper
    ]
    rows = pd.DataFrame([{**answer.values, "income": amount} for amount in [*inside, *outside]]).astype(float)
    is_good = model.predict(rows[list(space.names)].to_numpy()) == "good"
    assert is_good.tolist() == [True] * 2000 + [False] * len(outside)


def test_a_network_without_steps_and_too_many_amounts_are_left_out(monkeypatch):
    X, y = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = MODELS["network"]().fit(X.to_numpy(), y)
        boosting = MODELS["boosting"]().fit(X.to_numpy(), y)
    continuous = FeatureSpace(
        [Feature("income", kind="continuous", lower=0, upper=600, missing=True), SPACE["age"], SPACE["asked"]]
    )
    assert ceopt.explain(network, ROWS[0], continuous, target="good")[0].ranges == {}

    monkeypatch.setattr(ranges, "_MOST_ROWS", 0)
    assert ceopt.explain(boosting, ROWS[0], SPACE, target="good")[0].ranges == {}


def test_a_model_that_fails_when_asked_leaves_the_answer_as_it_is(monkeypatch):
    def fails(*args, **words):
        raise ValueError("no")

    X, y = people()
    model = MODELS["boosting"]().fit(X.to_numpy(), y)
    monkeypatch.setattr(ranges, "_range", fails)
    result = ceopt.explain(model, ROWS[0], SPACE, target="good")

    assert result.status == "optimal"
    assert result[0].ranges == {}


def test_the_range_is_said_and_kept():
    X, y = people()
    model = MODELS["boosting"]().fit(X.to_numpy(), y)
    result = ceopt.explain(model, ROWS[0], SPACE.update("income", lower=0, upper=600), target="good")
    low, high = result[0].ranges["income"]
    back = ceopt.SolutionSet.from_json(result.to_json())

    assert back[0].ranges == result[0].ranges
    assert back[0].sentences() == result[0].sentences()
    ending = f"{low:.0f} to {high:.0f}" if high < 600 else f"{low:.0f} or more"
    assert result[0].sentences() == [f"Fill in income: {ending}"]
