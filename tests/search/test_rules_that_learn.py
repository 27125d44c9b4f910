"""Rules that learn from data or from the model are asked about other spaces than the one that they were fitted to.

Where the space alone leaves no way, each of its settings is dropped in turn, and the user's own rules must mean there
what they meant before. Every width that a conflict names is held against ``explain`` in the space that it speaks of.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.cluster import AgglomerativeClustering
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import ceopt
from ceopt import Causal, Feature, FeatureSpace, Hull, Linear, Region, RobustToShift, RobustValidity
from ceopt.formulations.constraints import RULES, AbstractElastic, AbstractRule
from ceopt.formulations.constraints.rule import overrides
from ceopt.formulations.costs import L1Mahalanobis, Percentile
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import InvalidValueError
from ceopt.solvers.manifest import Manifest

#: Good iff income + age / 2 + 2 [owner] >= 40; the row has 25.
MODEL = Affine([1.0, 0.5, 2.0], -40.0, labels=("bad", "good"))
ROW = {"income": 10.0, "age": 30, "owner": "no"}
DATA = pd.DataFrame(
    {
        "income": [20.0, 12.0, 30.0, 45.0, 8.0, 35.0],
        "age": [30, 33, 45, 50, 20, 30],
        "owner": ["no", "yes", "yes", "yes", "no", "no"],
    }
)


def space(**changes: dict[str, Any]) -> FeatureSpace:
    found = FeatureSpace(
        [
            Feature("income", kind="continuous", lower=0, upper=50),
            Feature("age", kind="integer", lower=18, upper=90, direction="increasing"),
            Feature("owner", kind="binary", levels=("no", "yes")),
        ]
    )
    for name, change in changes.items():
        found = found.update(name, **change)
    return found


#: Spaces that leave no way by themselves.
CLOSED = {
    "fixed": space(income={"mutable": False}, age={"mutable": False}),
    "bounded": space(income={"upper": 12}, age={"upper": 31}),
    "inferred": FeatureSpace.infer(DATA, moves={"age": "any"}).update("income", mutable=False).update("age", upper=31),
    "stepped": space(income={"step": 17.0, "upper": 26}, age={"mutable": False}),
    "one way": space(income={"direction": "decreasing"}, age={"upper": 40}),
}
MOMENTS = np.array([1.0, 0.5, 2.0, -40.0]), 0.01 * np.eye(4)
GRAPH = {"income": ["age"]}
#: Every rule that learns, by its class.
LEARNING: dict[str, list[Any]] = {
    "Hull": [
        *(Hull(radius=0.5, norm=norm, clusters=k) for norm in ("l1", "l2", "linf") for k in (None, 2)),
        Hull(radius=0.6, scale="std"),
        Hull(radius=0.9, scale={"income": 20.0, "age": 30.0}),
        Hull(DATA, radius=0.5),
        Hull(DATA, radius=0.6, norm="l2", clusters=AgglomerativeClustering(2)),
        Hull(DATA, radius=0.6, clusters=[0, 0, 1, 1, -1, 0]),
        Hull(radius=0.5, clusters=[0, 1, 0]),
        Hull(penalty=0.5),
        Hull(radius=0.1, enlarge=True),
        Hull(radius=0.8, sample=2),
    ],
    "Causal": [
        Causal.learn(GRAPH, DATA, space=space()),
        Causal.learn(GRAPH, DATA, intervention="soft"),
        Causal.learn(GRAPH, DATA, space=space(), intervention="hard", regressor=DecisionTreeRegressor(max_depth=2)),
        Causal({"income": DecisionTreeRegressor(max_depth=2).fit(DATA[["age"]], DATA["income"])}, slack=20.0),
    ],
    "Region": [
        Region(0.01, scale={"income": 10.0}),
        Region(0.2, scale={"income": 10.0, "age": 10.0}, norm="l2", model=MODEL, target="good"),
    ],
    "RobustToShift": [RobustToShift(0.01), RobustToShift(0.02, model=MODEL, target="good")],
    "RobustValidity": [
        RobustValidity(*MOMENTS, 0.0, 0.5),
        RobustValidity(*MOMENTS, 0.01, 0.6, model=MODEL),
    ],
}
COSTS: list[Any] = ["l1", "mahalanobis", L1Mahalanobis(), Percentile("max"), Percentile("total_log"), "few_changes"]


def ask(rule: Any, within: FeatureSpace, cost: Any = "l1") -> ceopt.SolutionSet:
    return ceopt.explain(MODEL, ROW, within, target="good", constraints=[rule], data=DATA, cost=cost)


def learned(kind: str | None = None) -> list[Any]:
    return [rule for name, rules in LEARNING.items() for rule in rules if kind in {None, name}]


def cases() -> list[Any]:
    """Each rule in each space; one in twelve comes in every run."""
    found = []
    for place, (name, closed) in enumerate(CLOSED.items()):
        for k, rule in enumerate(learned()):
            marks = [] if (k + 3 * place) % 12 == 0 else [pytest.mark.long]
            found.append(pytest.param(rule, closed, id=f"{name}-{type(rule).__name__}_{k}", marks=marks))
    return found


def test_every_rule_that_learns_has_an_example() -> None:
    able = set()
    for name, rule in RULES.items():
        if overrides(object.__new__(rule), "fitted", "about") or hasattr(rule, "learn"):
            able.add(name)
    assert able == LEARNING.keys(), "Add an example of the rule, so that its conflicts are tested."


# ---- where the space alone leaves no way ----------------------------------------------------------------------------
def changed(closed: FeatureSpace, column: str, **changes: Any) -> FeatureSpace:
    """Return the space with a column described anew, bounds of whole numbers being whole."""
    if closed[column].kind == "integer":
        rounded = {"lower": np.ceil, "upper": np.floor}
        changes = {word: float(rounded[word](value)) if word in rounded else value for word, value in changes.items()}
    return FeatureSpace([replace(f, **changes) if f.name == column else f for f in closed])


def as_wide(closed: FeatureSpace, name: str, width: float) -> FeatureSpace:
    """Return the space with one of its settings wider, measured by the ranges that it had."""
    column, _, word = name.partition(": ")
    feature = closed[column]
    home = float(ROW[column])
    kept = {"range": feature.scale("range")}
    match word.split():
        case ["fixed"]:
            near = {"lower": max(feature.lower, home - width), "upper": min(feature.upper, home + width)}
            return changed(closed, column, mutable=True, **near, **kept)
        case ["may", "only", "increase"]:
            return changed(closed, column, direction="any", lower=max(feature.lower, home - width), **kept)
        case ["may", "only", "decrease"]:
            return changed(closed, column, direction="any", upper=min(feature.upper, home + width), **kept)
        case ["at", "least", _]:
            return changed(closed, column, lower=feature.lower - width, **kept)
        case ["at", "most", _]:
            return changed(closed, column, upper=feature.upper + width, **kept)
    raise AssertionError(name)


def widest(closed: FeatureSpace, name: str) -> FeatureSpace | None:
    """Return the space without one of its settings; None where the search sets a bound of its own."""
    column, _, word = name.partition(": ")
    match word.split():
        case ["fixed"]:
            return closed.update(column, mutable=True)
        case ["may", "only", _]:
            return closed.update(column, direction="any")
    return None


@pytest.mark.parametrize(("rule", "closed"), cases())
def test_widths_hold_in_the_space_that_they_speak_of(rule: Any, closed: FeatureSpace) -> None:
    """As wide as is said the question has an answer, a hundredth less has none."""
    result = ask(rule, closed)
    assert result.status == "infeasible"
    assert result.conflict
    assert "ended" not in result.reason
    tried = 0
    for name, _, width in result.conflict:
        if "steps" in name:
            continue
        hopeless = f"{name} (no width of it alone would do)" in result.reason
        assert hopeless == (width is None), (name, result.reason)
        if width is None:
            open_space = widest(closed, name)
            if open_space is not None:
                assert ask(rule, open_space).status == "infeasible", name
                tried += 1
            continue
        assert ask(rule, as_wide(closed, name, width * 1.0001)).status == "optimal", (name, width)
        assert ask(rule, as_wide(closed, name, width * 0.99)).status == "infeasible", (name, width)
        tried += 1
    assert tried or all("at " in name or "steps" in name for name, _, _ in result.conflict)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("cost", COSTS)
def test_a_cost_that_learns_changes_no_conflict(cost: Any) -> None:
    rule = Hull(radius=0.5)
    expected = ask(rule, CLOSED["fixed"]).conflict
    assert [name for name, _, _ in expected] == ["income: fixed", "age: fixed"]
    assert ask(rule, CLOSED["fixed"], cost).conflict == expected


def test_a_bound_that_is_dropped_leaves_the_unit_of_a_hull() -> None:
    """A radius counts the range of the user's bounds, whether a bound is dropped or not."""
    closed = space(income={"upper": 20}, age={"mutable": False})
    far = pd.DataFrame({"income": [20.0], "age": [30], "owner": ["no"]})
    result = ask(Hull(far, radius=0.5), closed)
    # income must be 25 and a bit, 5 beyond the only point, whose range is 20: a quarter of it, within the radius.
    widths = {name: width for name, _, width in result.conflict}
    assert widths["income: at most 20"] == pytest.approx(5.00001, abs=1e-5)
    too_near = ask(Hull(far, radius=0.2), closed)
    assert {name: width for name, _, width in too_near.conflict}["income: at most 20"] is None


def test_a_column_that_is_fixed_no_longer_follows_from_its_parents() -> None:
    """Its equation binds as soon as it may move, so that with its parent fixed no width of it alone helps."""
    follows = Causal.learn(GRAPH, DATA, space=space())
    result = ask(follows, CLOSED["fixed"])
    assert "income: fixed (no width of it alone would do)" in result.reason
    assert ask(follows, space(age={"mutable": False})).status == "infeasible"


@final
@dataclass(frozen=True, slots=True)
class LikeTheRows(AbstractRule):
    """A rule of a user's own that takes the least income from the rows, and knows no space but the one of its fit."""

    name: str | None = None
    least: float | None = None
    fit: FeatureSpace | None = None
    manifest: ClassVar[Manifest] = Manifest(title="like the rows", formula="x >= least", rule="LikeTheRows")

    def fitted(self, space: FeatureSpace, rows: Any) -> LikeTheRows:
        return replace(self, least=float(rows()[:, space.names.index("income")].min()), fit=space)

    def check(self, space: FeatureSpace) -> None:
        pass

    def build(self, block: Any, x: Any) -> None:
        block.income = pyo.Var(bounds=(self.least, None))
        block.row = pyo.Constraint(expr=block.income == x.raw["income"])

    def violation(self, space: FeatureSpace, factual: Any, point: Any) -> float:
        del factual
        if space != self.fit:
            raise InvalidValueError("LikeTheRows", "the space of its fit", "it is another", "Ask about that.")
        return max(self.least - point["income"], 0.0)

    def sentence(self) -> str:
        return f"income >= {self.least}"


def test_a_rule_that_knows_one_space_ends_the_search_and_not_the_call() -> None:
    result = ask(LikeTheRows(), CLOSED["fixed"])
    assert result.status == "infeasible"
    assert [(name, width) for name, _, width in result.conflict] == [("income: fixed", None), ("age: fixed", None)]
    assert "ended early, as LikeTheRows needs the space of its fit, but it is another" in result.reason


# ---- where rules leave no way ----------------------------------------------------------------------------------------
@pytest.mark.long(every=4)
@pytest.mark.parametrize("rule", learned())
def test_a_rule_in_conflict_is_as_wide_as_is_said(rule: Any) -> None:
    """Beside a rule that leaves none of the people near, each rule that has a width is enough as wide as it says."""
    if isinstance(rule, Hull) and not rule.penalty:
        rule = replace(rule, radius=0.02)
    far = Linear({"income": 1.0, "age": -0.5}, ">=", 34.0, name="far")
    rules = [replace(rule, name="learned"), far, Linear({"age": 1.0}, "<=", 32.0, name="young")]
    result = ceopt.explain(MODEL, ROW, space(), target="good", constraints=rules, data=DATA)
    gives_way = getattr(rule, "penalty", None) or getattr(rule, "enlarge", False)
    if (
        gives_way
        or isinstance(rule, Region | RobustToShift | RobustValidity)
        or getattr(rule, "intervention", "none") != "none"
    ):
        assert result.status == "optimal"
        assert bool(result.relaxed) == getattr(rule, "enlarge", False)
        return
    assert result.status == "infeasible"
    assert "ended" not in result.reason
    assert result.conflict
    named = {one.name: k for k, one in enumerate(rules)}
    for name, _, width in result.conflict:
        one = rules[named[name]]
        assert (width is None) == (not isinstance(one, AbstractElastic) or "no width of it alone" in result.reason)
        if width is not None:
            wider = list(rules)
            wider[named[name]] = one.widened(width * 1.0001)
            assert ceopt.explain(MODEL, ROW, space(), target="good", constraints=wider, data=DATA).status == "optimal"


@pytest.mark.parametrize("norm", ["l1", pytest.param("l2", marks=pytest.mark.long), "linf"])
@pytest.mark.parametrize("clusters", [None, 2])
def test_a_hull_grows_beside_rules_of_a_space_that_leaves_a_way(norm: Any, clusters: Any) -> None:
    """``relaxed`` says how far: with that radius there is an answer, with a hundredth less none."""
    narrow = space(age={"mutable": False}, income={"upper": 26})
    rule = Hull(radius=0.01, norm=norm, clusters=clusters, enlarge=True)
    result = ask(rule, narrow)
    assert result.status == "optimal"
    (radius,) = result.relaxed.values()
    assert radius > 0.02
    assert ask(replace(rule, enlarge=False, radius=radius), narrow).status == "optimal"
    assert ask(replace(rule, enlarge=False, radius=0.99 * radius), narrow).status == "infeasible"


def test_a_hull_that_grows_leaves_the_widths_of_a_space_to_what_does_not() -> None:
    """It gives way by itself as soon as the space has a way, so that a width without it is enough."""
    rule = Hull(radius=0.01, enlarge=True)
    result = ask(rule, CLOSED["fixed"])
    width = {name: width for name, _, width in result.conflict}["income: fixed"]
    assert width == pytest.approx(13.0001, abs=1e-4)
    answered = ask(rule, as_wide(CLOSED["fixed"], "income: fixed", width))
    assert answered.status == "optimal"
    assert answered.relaxed


# ---- cohorts ---------------------------------------------------------------------------------------------------------
PEOPLE = pd.DataFrame([ROW, ROW | {"owner": "yes"}, ROW | {"income": 11.0}, ROW | {"income": 45.0}])


def conflicts(result: Iterable[ceopt.SolutionSet]) -> list[Any]:
    return [(one.status, one.conflict, one.relaxed, one.reason) for one in result]


@pytest.mark.parametrize("closed", [CLOSED["fixed"], space(age={"mutable": False})])
@pytest.mark.long(every=7)
@pytest.mark.parametrize("rule", learned())
def test_a_cohort_says_of_each_what_explain_says(rule: Any, closed: FeatureSpace) -> None:
    """Also once it was saved, and in a space that is equal and another object."""
    people = PEOPLE.iloc[[1, 3]]
    one_by_one = []
    for row in people.to_dict("records"):
        one_by_one.append(ceopt.explain(MODEL, row, closed, target="good", constraints=[rule], data=DATA))
    recourse = ceopt.Recourse(MODEL, closed, target="good", constraints=[rule], why=True).fit(DATA)
    assert conflicts(recourse.explain(people)) == conflicts(one_by_one)
    again = pickle.loads(pickle.dumps(recourse))
    again.space = FeatureSpace(list(closed))
    assert conflicts(again.explain(people)) == conflicts(one_by_one)


def test_a_cohort_that_learned_from_labels_has_conflicts() -> None:
    labels = np.array(["good", "bad", "good", "good", "bad", "good"])
    recourse = ceopt.Recourse(MODEL, CLOSED["fixed"], target="good", constraints=[Hull(radius=0.5)], why=True)
    found = recourse.fit(DATA, labels).explain(PEOPLE.head(3))
    rows = Hull(DATA[labels == "good"], radius=0.5)
    expected = [ask(rows, CLOSED["fixed"]).conflict]
    assert found[0].conflict == expected[0]


@pytest.mark.long
def test_workers_find_the_same_conflicts() -> None:
    recourse = ceopt.Recourse(MODEL, CLOSED["fixed"], target="good", constraints=[Hull(radius=0.5)], why=True)
    recourse.fit(DATA)
    assert conflicts(recourse.explain(PEOPLE, n_jobs=2)) == conflicts(recourse.explain(PEOPLE))


def test_a_pipeline_of_the_users_own_is_asked_in_any_space() -> None:
    """A rule about a fitted model that reads frames, where a column that it reads is fixed."""
    frame = DATA[["income", "age"]]
    model = LogisticRegression().fit(frame, [0, 0, 1, 1, 0, 1])
    mean = np.append(model.coef_[0], model.intercept_)
    closed = FeatureSpace([replace(f, mutable=False) for f in space() if f.name != "owner"])
    row = {"income": 10.0, "age": 30}
    rule = RobustValidity(mean, 1e-6 * np.eye(3), 0.0, 0.5, model=model)
    result = ceopt.explain(model, row, closed, target=1, constraints=[rule], data=frame)
    assert {name for name, _, _ in result.conflict} <= {"income: fixed", "age: fixed"}
    assert result.conflict
    assert "ended" not in result.reason
