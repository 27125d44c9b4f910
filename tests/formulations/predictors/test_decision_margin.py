"""The margin of a decision as an expression, and targets that hold only when a binary is 1, against every point."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations import Columns, Factual, Reaches, embed
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.predictors.reaches import slack
from ceopt.formulations.targets import parse_target
from ceopt.solvers import solve
from ceopt.solvers.errors import InvalidTypeError, UnboundedFeatureError

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("age", kind="integer", lower=0, upper=5),
        ceopt.Feature("rooms", kind="integer", lower=1, upper=4),
        ceopt.Feature("size", kind="ordinal", levels=(1, 2, 4)),
        ceopt.Feature("owner", kind="binary", levels=(0, 1)),
    ]
)
POINTS = pd.MultiIndex.from_product([range(6), range(1, 5), (1, 2, 4), (0, 1)], names=SPACE.names).to_frame(index=False)
HOME = {"age": 2, "rooms": 3, "size": 2, "owner": 1}


def value_of(frame: pd.DataFrame, seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    waves = np.sin(frame["age"] * frame["rooms"]) + 0.3 * frame["size"] * (frame["owner"] - 0.5)
    return np.asarray(waves + rng.normal(scale=0.2, size=len(frame)))


def labels_of(frame: pd.DataFrame, seed: int, classes: int) -> np.ndarray[Any, Any]:
    value = value_of(frame, seed)
    edges = np.quantile(value, np.linspace(0, 1, classes + 1)[1:-1])
    return np.array(["low", "mid", "high"])[np.digitize(value, edges)]


CLASSIFIERS = {
    "logistic": LogisticRegression,
    "scaled ridge": lambda: make_pipeline(StandardScaler(), RidgeClassifier()),
    "network": lambda: MLPClassifier((6,), solver="lbfgs", alpha=0.1, max_iter=5000, random_state=0),
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": lambda: RandomForestClassifier(6, max_depth=4, random_state=0),
    "even forest": lambda: RandomForestClassifier(4, random_state=1),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3),
    "votes": lambda: VotingClassifier(
        [("a", DecisionTreeClassifier(max_depth=2)), ("b", LogisticRegression()), ("c", DecisionTreeClassifier())]
    ),
    "soft votes": lambda: VotingClassifier(
        [("a", DecisionTreeClassifier(max_depth=2)), ("c", RandomForestClassifier(3, random_state=0))], voting="soft"
    ),
    "bagged votes": lambda: BaggingClassifier(RidgeClassifier(), n_estimators=4, random_state=0),
}


def classifier(name: str, classes: int) -> Any:
    return CLASSIFIERS[name]().fit(POINTS, labels_of(POINTS, 3, classes))


def stated(model: Any) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, HOME)
    m.p = embed(model, m.x)
    return m


def at_every_point(m: Any, expression: Any) -> np.ndarray[Any, Any]:
    found = []
    for row in POINTS.to_dict("records"):
        point = SPACE.row(row)
        m.x.place(point)
        m.p.place(point)
        found.append(pyo.value(expression))
    return np.array(found)


def assert_is_the_margin(m: Any, target: Any, reached: np.ndarray[Any, Any]) -> None:
    """Compare sign, value and bounds at every point, and both optima with those of enumeration."""
    margin = m.p.margin(target)
    assert m.p.margin(target) is margin
    found = at_every_point(m, margin)
    np.testing.assert_array_equal(found >= 0.0, reached)
    coordinates = np.array([list(SPACE.row(row).values()) for row in POINTS.to_dict("records")])
    asked = parse_target(target, m.p.predictor.labels)
    true = slack(m.p.predictor, coordinates, asked) - margin.slack
    clear = (found >= 0.0) == (true >= 0.0)  # all but ties
    off = found - true
    if m.p.predictor.is_trees:
        assert off[clear].max() <= 1e-9
    else:
        np.testing.assert_allclose(off, 0.0, atol=5e-5)  # votes: two margins
    low, high = margin.bounds
    assert low - 1e-9 <= found.min() <= found.max() <= high + 1e-9
    for sense, best in ((pyo.maximize, found.max()), (pyo.minimize, found.min())):
        m.goal = pyo.Objective(expr=margin, sense=sense)
        result = solve(m)
        assert result.status == "optimal"
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
        m.del_component("goal")


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("target", ["low", "high"])
def test_a_label_of_two_is_reached_where_the_margin_is_not_negative(name: str, target: str) -> None:
    model = CLASSIFIERS[name]().fit(POINTS, np.where(value_of(POINTS, 3) > 0.0, "high", "low"))
    assert_is_the_margin(stated(model), target, model.predict(POINTS) == target)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("target", ["mid", {"mid", "high"}, ceopt.OtherThan("mid")])
def test_labels_of_three_likewise(name: str, target: Any) -> None:
    model = classifier(name, 3)
    said = model.predict(POINTS)
    wanted = target if isinstance(target, set) else {"mid"}
    reached = np.isin(said, list(wanted))
    if isinstance(target, ceopt.OtherThan):
        reached = ~reached
    assert_is_the_margin(stated(model), target, reached)


@pytest.mark.parametrize("name", ["logistic", "forest", "boosting", "histograms", "bagged votes", "network"])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.75])
def test_a_probability_likewise(name: str, share: float) -> None:
    model = CLASSIFIERS[name]().fit(POINTS, np.where(value_of(POINTS, 3) > 0.0, "high", "low"))
    column = list(model.classes_).index("low")
    reached = model.predict_proba(POINTS)[:, column] >= share
    assert_is_the_margin(stated(model), ceopt.Probability("low", share), reached)


@pytest.mark.parametrize("model", [LinearRegression(), GradientBoostingRegressor(n_estimators=5, random_state=0)])
def test_a_range_of_values_likewise(model: Any) -> None:
    model.fit(POINTS, value_of(POINTS, 5))
    values = model.predict(POINTS)
    low, high = np.quantile(values, (0.3, 0.8))
    low, high = float(low) + 1e-3, float(high) + 1e-3
    assert_is_the_margin(stated(model), ceopt.AtLeast(low), values >= low)
    assert_is_the_margin(stated(model), ceopt.AtMost(high), values <= high)
    m = stated(model)
    assert_is_the_margin(m, ceopt.Between(low, high), (values >= low) & (values <= high))
    assert m.p.margin(ceopt.Between(low, high)).bounds[1] <= (high - low) / 2 + 1e-6


def test_a_limit_on_the_trees_that_disagree_is_counted_in_trees() -> None:
    model = RandomForestClassifier(5, max_depth=2, random_state=0).fit(POINTS, labels_of(POINTS, 3, 2))
    agree = sum((tree.predict(POINTS.to_numpy()) == 1).astype(int) for tree in model.estimators_)
    m = stated(model)
    wanted = model.classes_[1]
    found = at_every_point(m, m.p.margin(ceopt.Disagreement(wanted, at_most=0.4)))
    np.testing.assert_allclose(found, agree - 3, atol=1e-9)


def tie_of(first: float, second: float) -> TreeEnsemble:
    """Two stumps of shares: at (age > 2, rooms > 2) their mean is exactly a half."""
    stumps = [
        {"feature": 0, "threshold": 2.0, "left": {"value": [first, 1 - first]}, "right": {"value": [0.5, 0.5]}},
        {"feature": 1, "threshold": 2.0, "left": {"value": [second, 1 - second]}, "right": {"value": [0.5, 0.5]}},
    ]
    return TreeEnsemble(stumps, divisor=2, labels=("no", "yes"), probability="share", n_inputs=4)


def test_a_tie_that_is_refused_is_below_zero_and_one_that_is_accepted_is_not() -> None:
    m = stated(tie_of(0.75, 0.25))
    tie = SPACE.row({"age": 3, "rooms": 3, "size": 1, "owner": 0})
    m.x.place(tie)
    m.p.place(tie)
    assert 0.0 <= pyo.value(m.p.margin("no")) < 1e-9  # the first of equal shares wins
    assert pyo.value(m.p.margin("yes")) == pytest.approx(-0.125)  # the next share that there is


def test_over_own_variables_the_margin_is_that_of_no_person() -> None:
    m = pyo.ConcreteModel()
    m.age = pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    m.x = Columns(SPACE, {"age": m.age, "rooms": 2, "size": 1, "owner": 1})
    m.p = embed(Affine([1.0, 0.0, 0.0, 0.0], -3.0, labels=("no", "yes")), m.x)
    margin = m.p.margin("yes")
    assert margin.slack == pytest.approx(1e-5)
    m.met = pyo.Constraint(expr=margin >= 0)
    m.least = pyo.Objective(expr=m.age)
    assert solve(m).objective == 4.0  # a tie is "no"


def test_a_margin_survives_a_copy_and_a_pickle() -> None:
    m = stated(classifier("boosting", 3))
    best = None
    m.goal = pyo.Objective(expr=m.p.margin({"low", "high"}), sense=pyo.maximize)
    for model in (m, m.clone(), pickle.loads(pickle.dumps(m))):
        result = solve(model)
        best = best or result.objective
        assert result.objective == pytest.approx(best)
        assert model.p.margin({"low", "high"}) is model.goal.expr or model.goal.expr.name == "p.margin_0"


def test_what_decides_alone_needs_no_variables_and_no_bounds() -> None:
    space = ceopt.FeatureSpace([ceopt.Feature("wage", kind="continuous")])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"wage": 1.0})
    m.p = embed(Affine([[1.0], [2.0], [0.0]], [0.0, 0.0, 1.0], labels=("a", "b", "c")), m.x)
    m.q = embed(Affine([1.0], -3.0, labels=("no", "yes")), m.x)
    assert m.q.margin("yes").bounds == (-np.inf, np.inf)
    with pytest.raises(UnboundedFeatureError, match="'wage'"):
        m.p.margin("a")


# ---- when ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("target", ["mid", {"mid", "high"}])
def test_the_target_holds_only_when_the_binary_is_one(name: str, target: Any) -> None:
    model = classifier(name, 3)
    reached = np.isin(model.predict(POINTS), list(target) if isinstance(target, set) else [target])
    m = stated(model)
    m.on = pyo.Var(domain=pyo.Binary)
    m.valid = Reaches(m.p, target, when=m.on)
    m.most = pyo.Objective(expr=m.on, sense=pyo.maximize)
    for place in range(0, len(POINTS), 7):
        row = POINTS.iloc[place]
        m.del_component("here")
        m.here = pyo.Constraint(expr=m.x.raw["age"] == int(row["age"]))
        m.del_component("there")
        m.there = pyo.ConstraintList()
        m.there.add(m.x.raw["rooms"] == int(row["rooms"]))
        m.there.add(m.x.is_level["size", int(row["size"])] == 1)
        m.there.add(m.x.is_level["owner", int(row["owner"])] == 1)
        result = solve(m)
        assert (result.status, round(result.objective)) == ("optimal", int(reached[place]))


def test_one_less_a_binary_is_a_condition_too() -> None:
    m = stated(Affine([1.0, 0.0, 0.0, 0.0], -3.0, labels=("no", "yes")))
    m.off = pyo.Var(domain=pyo.Binary)
    m.valid = Reaches(m.p, "yes", when=1 - m.off)
    m.cost = pyo.Objective(expr=m.x.raw["age"] + 0.5 * m.off)
    assert solve(m).objective == 0.5
    m.off.fix(0)
    assert solve(m).objective == 4.0


def test_a_binary_that_is_fixed_is_a_condition_still_when_it_is_free() -> None:
    m = stated(Affine([1.0, 0.0, 0.0, 0.0], -3.0, labels=("no", "yes")))
    m.on = pyo.Var(domain=pyo.Binary)
    m.on.fix(1)
    m.valid = Reaches(m.p, "yes", when=m.on)
    m.cost = pyo.Objective(expr=m.x.raw["age"])
    assert solve(m).objective > 3.0
    m.on.fix(0)
    assert solve(m).objective == 0.0


def test_a_condition_that_is_settled_holds_or_asks_for_nothing() -> None:
    for value, least in ((99, 0.0), (-99, 4.0)):
        m = stated(Affine([1.0, 0.0, 0.0, 0.0], -3.0, labels=("no", "yes")))
        m.valid = Reaches(m.p, "yes", when=m.x.above["age", value])
        m.cost = pyo.Objective(expr=m.x.raw["age"])
        assert solve(m).objective == least


@pytest.mark.parametrize("short", [1.0, 1e-3])
def test_a_row_that_is_constant_switches_its_binary_off(short: float) -> None:
    m = stated(Affine([0.0, 0.0, 0.0, 0.0], -short, labels=("no", "yes")))
    m.on = pyo.Var(domain=pyo.Binary)
    m.valid = Reaches(m.p, "yes", when=m.on)
    m.also = Reaches(m.p, "no", when=m.on)
    m.most = pyo.Objective(expr=m.on, sense=pyo.maximize)
    assert solve(m).objective == 0.0


def test_what_is_no_binary_is_no_condition() -> None:
    m = stated(Affine([1.0, 0.0, 0.0, 0.0], -3.0, labels=("no", "yes")))
    m.share = pyo.Var(bounds=(0, 1))
    m.two = pyo.Var([0, 1], domain=pyo.Binary)
    for when in (m.share, 1, "on", m.two[0] + m.two[1], 2 - m.two[0], m.two[0] * m.two[1]):
        with pytest.raises(InvalidTypeError, match="when is"):
            m.valid = Reaches(m.p, "yes", when=when)
    with pytest.raises(InvalidTypeError, match=r"name one of its members, two\["):
        m.valid = Reaches(m.p, "yes", when=m.two)


def test_an_infinite_big_m_names_the_column() -> None:
    space = ceopt.FeatureSpace([ceopt.Feature("wage", kind="continuous")])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"wage": 1.0})
    m.p = embed(Affine([1.0], -3.0, labels=("no", "yes")), m.x)
    m.on = pyo.Var(domain=pyo.Binary)
    with pytest.raises(UnboundedFeatureError, match="'wage'"):
        m.valid = Reaches(m.p, "yes", when=m.on)
