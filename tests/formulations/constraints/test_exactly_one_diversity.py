"""Further answers over 0/1 columns of which one is 1: told apart as those over a real category, and by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import Apart, ExactlyOne, Feature, FeatureSpace
from ceopt.formulations.constraints.diversity.distinct import Distinct
from ceopt.formulations.constraints.diversity.diversity import OtherSupport, SomeStay

COLOURS = ("blue", "green", "red", "white")
RNG = np.random.default_rng(3)
PEOPLE = pd.DataFrame(
    {"colour": RNG.choice(COLOURS, 400), "income": RNG.integers(0, 7, 400), "years": RNG.integers(0, 5, 400)}
)
WORTH = {"red": 0.0, "blue": 2.0, "green": 2.6, "white": 1.1}
Y = np.where(PEOPLE["colour"].map(WORTH) + 0.6 * PEOPLE["income"] + 0.5 * PEOPLE["years"] > 3.9, 1, 0)
KINDS = {
    "bool": lambda name: Feature(name, kind="binary", levels=(0, 1)),
    "int": lambda name: Feature(name, kind="integer", lower=0, upper=1, mad=1.0),
    "float": lambda name: Feature(name, kind="continuous", lower=0.0, upper=1.0, mad=1.0),
}
INCOME = Feature("income", kind="integer", lower=0, upper=6, mad=1.37)
YEARS = Feature("years", kind="integer", lower=0, upper=4, mad=0.83)
CATEGORY = FeatureSpace([Feature("colour", kind="categorical", levels=COLOURS), INCOME, YEARS])
ROWS = {
    "red": {"colour": "red", "income": 1, "years": 0},
    "white": {"colour": "white", "income": 0, "years": 1},
    "green": {"colour": "green", "income": 0, "years": 0},
}
ESTIMATORS = {
    "linear": lambda: LogisticRegression(C=100.0, max_iter=1000),
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
}


def by_hand(frame, dtype=int):
    """The frame with a column for each colour."""
    dummies = {name: (frame["colour"] == name).astype(dtype) for name in COLOURS}
    return pd.DataFrame({**dummies, "income": frame["income"], "years": frame["years"]})


def models(name):
    """The same estimator over a category and over columns made by hand."""
    encode = make_column_transformer((OneHotEncoder(categories=[list(COLOURS)]), ["colour"]), remainder="passthrough")
    return make_pipeline(encode, ESTIMATORS[name]()).fit(PEOPLE, Y), ESTIMATORS[name]().fit(by_hand(PEOPLE), Y)


MODELS = {name: models(name) for name in ESTIMATORS}


def space_of(kind):
    return FeatureSpace([*(KINDS[kind](name) for name in COLOURS), INCOME, YEARS])


def of_hand(row):
    return by_hand(pd.DataFrame([row])).iloc[0].to_dict()


def colour_of(answer):
    return next(name for name in COLOURS if answer.values[name])


# ---- brute force, over the category ----------------------------------------------------------------------------------
GRID = pd.DataFrame(list(itertools.product(COLOURS, range(7), range(5))), columns=["colour", "income", "years"])


def price(row, point):
    return float(point["colour"] != row["colour"]) + sum(
        abs(point[f.name] - row[f.name]) / f.mad for f in (INCOME, YEARS)
    )


def support(row, point):
    return frozenset(name for name in row if point[name] != row[name])


def is_other(word, row, a, b):
    if word == "support":
        return support(row, a) != support(row, b)
    if word == "distinct":
        before, after = support(row, a), support(row, b)
        if not before <= after:
            return True
        if before != after:
            return False
        goes = {"income": np.sign, "years": np.sign}
        return any(a[n] != b[n] if n == "colour" else goes[n](a[n] - row[n]) != goes[n](b[n] - row[n]) for n in before)
    least, measure = word
    if measure == "l0":
        return len({n for n in row if a[n] != b[n]}) >= least
    return price(a, b) >= least - 1e-9


def ranked(model, row, word, n):
    """The costs, cheapest first, each answer other than all before; of equal ones that with the fewest changes."""
    good = GRID[model.predict(GRID) == 1].to_dict("records")
    good.sort(key=lambda point: (round(price(row, point), 9), len(support(row, point))))
    found = []
    for point in good:
        if all(is_other(word, row, earlier, point) for earlier in found):
            found.append(point)
        if len(found) == n:
            break
    return [price(row, point) for point in found]


WORDS = ["distinct", "support", (2, "l0"), (1.0, "l1"), (1.5, "l1")]


@pytest.mark.long(every=4)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
def test_each_rank_costs_what_it_costs_over_a_category_and_by_enumeration(word, name, kind, row):
    category, hand = MODELS[name]
    diversity = word if isinstance(word, str) else Apart(word[0], cost=ceopt.L0() if word[1] == "l0" else ceopt.L1())
    asked = {"target": 1, "n": 5, "diversity": diversity}
    over = ceopt.explain(category, ROWS[row], CATEGORY, **asked)
    found = ceopt.explain(hand, of_hand(ROWS[row]), space_of(kind), constraints=[ExactlyOne(COLOURS)], **asked)
    costs = [answer.cost for answer in found]
    assert costs == pytest.approx([answer.cost for answer in over], rel=1e-6)
    assert costs == pytest.approx(ranked(category, ROWS[row], word, 5), rel=1e-6)
    assert found.complete == over.complete
    for answer in found:
        assert sum(map(bool, answer.values[list(COLOURS)])) == 1
    if word == "support":
        ways = [frozenset("colour" if n in COLOURS else n for n in answer.changed) for answer in found]
        assert len(set(ways)) == len(ways)


@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
def test_red_to_blue_and_red_to_green_have_one_support_and_are_two_answers():
    space = space_of("bool")
    groups = (COLOURS,)
    red, blue, green = (
        {name: float(name == colour) for name in COLOURS} | {"income": 1.0, "years": 0.0}
        for colour in ("red", "blue", "green")
    )
    richer = {**blue, "income": 3.0}
    assert not OtherSupport(together=groups).differ(space, red, blue, green)
    assert OtherSupport().differ(space, red, blue, green)
    assert Distinct(together=groups).differ(space, red, blue, green)
    assert not Distinct(together=groups).differ(space, red, blue, {**green, "income": 3.0})  # more than was needed
    assert Distinct().differ(space, red, blue, {**green, "income": 3.0})
    assert not Distinct(together=groups).differ(space, red, blue, blue)
    assert SomeStay(together=groups).differ(space, red, richer, green)
    assert not SomeStay(together=groups).differ(space, red, richer, {**green, "income": 2.0})
    assert Apart(1, cost="l0", together=groups).between(space, blue, green) == 1.0
    assert Apart(1, cost="l0").between(space, blue, green) == 2.0
    # Who breaks the rule today has no column that stands for the others: changes count as they are.
    none = {**red, "red": 0.0}
    assert OtherSupport(together=groups).differ(space, none, blue, green)
    # Nor have groups that share a column.
    shared = (COLOURS, ("red", "income"))
    assert OtherSupport(together=shared).differ(space, red, blue, green)


@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
def test_support_asks_for_another_column_than_the_colour():
    _, hand = MODELS["linear"]
    asked = {"target": 1, "n": 3, "diversity": "support", "constraints": [ExactlyOne(COLOURS)]}
    found = ceopt.explain(hand, of_hand(ROWS["red"]), space_of("int"), **asked)
    moves = [frozenset("colour" if n in COLOURS else n for n in answer.changed) for answer in found]
    assert len(set(moves)) == 3
    apart = ceopt.explain(
        hand, of_hand(ROWS["red"]), space_of("int"), target=1, n=4, diversity="distinct",
        constraints=[ExactlyOne(COLOURS)],
    )  # fmt: skip
    alone = [colour_of(answer) for answer in apart if set(answer.changed) <= set(COLOURS)]
    assert len(set(alone)) == len(alone)
