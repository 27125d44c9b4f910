"""One answer for each cluster of a hull: each the best of its cluster, the cheapest cluster first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import ceopt
from ceopt.formulations.constraints import AbstractRule, MaxChanges
from ceopt.formulations.constraints.diversity.diversity import OtherCluster
from ceopt.formulations.constraints.hull import Hull
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.search.solve_program import ProgramSolver
from ceopt.solvers.manifest import Manifest
from ceopt.solvers.problem import Outcome, Stop

SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=0, upper=10) for name in "ab"])
COST = ceopt.L1(scale="none")
PEOPLE = pd.DataFrame({"a": [4, 4, 5, 5, 8, 9, 8, 3, 4], "b": [1, 2, 1, 2, 8, 8, 9, 9, 9.5]}).astype(float)
LABELS = list("xxxxyyyzz")
MODEL = Affine([1.0, 1.0], -4.5, labels=("no", "yes"))
#: The same, as a network: it has starts.
NETWORK = ReluNetwork([[[1.0, 1.0]], [[1.0]]], [[0.0], [-4.5]], labels=("no", "yes"))
ROW = {"a": 1.0, "b": 1.0}


def asked(n: int = 5, *, model: Any = MODEL, row: Any = ROW, hull: Any = None, **options: Any) -> ceopt.SolutionSet:
    hull = Hull(PEOPLE, clusters=LABELS) if hull is None else hull
    words = {"target": "yes", "cost": COST, "diversity": "clusters", "constraints": [hull]}
    return ceopt.explain(model, row, SPACE, n=n, **words | options)


def least_cost(points: Any, row: Any, weights: Any, least: float) -> float | None:
    """Return the least l1 cost of a point in the hull of some points with ``weights @ x >= least``."""
    k, d = points.shape
    home = np.array([row[name] for name in "ab"])
    # Weights of the points, then moves up and down.
    equal = np.block([[points.T, -np.eye(d), np.eye(d)], [np.ones((1, k)), np.zeros((1, 2 * d))]])
    result = linprog(
        [0.0] * k + [1.0] * 2 * d,
        A_ub=[-np.concatenate([points @ weights, np.zeros(2 * d)])], b_ub=[-least],
        A_eq=equal, b_eq=[*home, 1.0],
    )  # fmt: skip
    return float(result.fun) if result.status == 0 else None


@pytest.mark.long
@draws(40)
@given(
    points=st.lists(st.tuples(*[st.integers(0, 10)] * 2), min_size=2, max_size=9),
    cuts=st.lists(st.sampled_from("pqr"), min_size=9, max_size=9),
    row=st.tuples(*[st.integers(0, 10)] * 2),
    weights=st.tuples(*[st.integers(-2, 3)] * 2),
    least=st.integers(-4, 15),
    n=st.integers(1, 4),
)
def test_each_is_the_best_of_its_cluster(points: Any, cuts: Any, row: Any, weights: Any, least: int, n: int) -> None:
    values, labels = np.array(points, dtype=float), cuts[: len(points)]
    person, slopes = dict(zip("ab", map(float, row), strict=True)), np.array(weights, dtype=float)
    model = Affine(slopes, -float(least), labels=("no", "yes"))
    margin = 0.03125
    own = {k: values[[label == k for label in labels]] for k in set(labels)}
    best = {k: least_cost(part, person, slopes, least + margin) for k, part in own.items()}
    expected = sorted(cost for cost in best.values() if cost is not None)

    frame = pd.DataFrame(values, columns=list("ab"))
    result = asked(n, model=model, row=person, hull=Hull(frame, clusters=labels), margin=margin)
    if result.status == "already_favourable":
        return

    assert [answer.cost for answer in result] == pytest.approx(expected[:n], abs=1e-6)
    assert [best[answer.cluster] for answer in result] == pytest.approx([a.cost for a in result], abs=1e-6)
    assert len({answer.cluster for answer in result}) == len(result)
    assert [answer.bound for answer in result] == pytest.approx([a.cost for a in result], abs=1e-6)
    assert result.complete
    assert all(answer.verified for answer in result)
    if 0 < len(expected) < n:
        assert "Proved: there are no more." in result.reason


def test_overlapping_clusters_may_have_the_same_answer() -> None:
    twice = pd.concat([PEOPLE.iloc[:4], PEOPLE.iloc[:4]])
    result = asked(hull=Hull(twice, clusters=[0] * 4 + [1] * 4))
    assert [answer.cost for answer in result] == pytest.approx([3.0, 3.0])
    assert {answer.cluster for answer in result} == {0, 1}
    assert result.complete


@pytest.mark.parametrize("n", [1, 2, 3])
def test_as_many_as_wanted_is_complete(n: int) -> None:
    result = asked(n)
    assert [answer.cluster for answer in result] == ["x", "z", "y"][:n]
    assert (len(result), result.complete, result.reason) == (n, True, "")


def test_trees_with_a_rule_agree_with_each_cluster_alone() -> None:
    """Starts from the data set budgets, and must not cut off a cluster's best."""
    rng = np.random.default_rng(4)
    data = pd.DataFrame(rng.uniform(0, 10, (60, 2)).round(1), columns=list("ab"))
    split = {"feature": 1, "threshold": 4.0, "left": {"value": -1.0}, "right": {"value": 1.0}}
    tree = {"feature": 0, "threshold": 3.5, "left": {"value": -1.0}, "right": split}
    model = TreeEnsemble([tree, split | {"feature": 0, "threshold": 6.0}], labels=("no", "yes"))
    good = data[(model.score(data.to_numpy()) > 0)]
    labels = np.where(good["a"] > 7.5, "right", np.where(good["b"] > 7.0, "top", "middle"))
    rules = [MaxChanges(2)]
    alone = {
        k: asked(1, model=model, hull=Hull(good[labels == k]), constraints=[Hull(good[labels == k]), *rules],
                 diversity="pool")[0].cost
        for k in set(labels)
    }  # fmt: skip

    result = asked(model=model, data=data, constraints=[Hull(good, clusters=labels), *rules])

    assert {answer.cluster: answer.cost for answer in result} == pytest.approx(alone)
    assert [a.cost for a in result] == sorted(a.cost for a in result)
    assert result.complete


def test_a_start_is_put_in_the_cluster_that_it_lies_in(monkeypatch: Any) -> None:
    """Where the solver has nothing in hand, the answer is a start, and the next lies in another cluster."""
    run = ProgramSolver.run

    def late(self: Any, ask: Any, seconds: float) -> Any:
        attempt = run(self, ask, seconds)
        nothing = replace(attempt, point=None, cluster=None, outcome=Outcome(status=Stop.TIME_LIMIT, message="Late."))
        return attempt if ask.barred else nothing

    monkeypatch.setattr(ProgramSolver, "run", late)
    result = asked(model=NETWORK, data=PEOPLE)

    assert result.status == "feasible"
    clusters = [answer.cluster for answer in result]
    assert clusters[0] == min(Hull(PEOPLE, clusters=LABELS).distances(SPACE, dict(result[0].values)).items(),
                              key=lambda pair: pair[1])[0]  # fmt: skip
    assert sorted(clusters) == ["x", "y", "z"]
    assert result[0].bound == 0.0 < result[0].cost


def test_what_was_met_on_the_way_has_a_cluster_too() -> None:
    result = asked(3, model=NETWORK, data=PEOPLE, diversity="incumbents")
    assert len(result) > 1
    assert {answer.cluster for answer in result} <= {"x", "y", "z"}


@pytest.mark.long
def test_nothing_in_any_cluster_is_infeasible() -> None:
    result = asked(model=Affine([1.0, 1.0], -19.9, labels=("no", "yes")))
    assert (result.status, len(result), result.complete) == ("infeasible", 0, True)


@pytest.mark.parametrize(
    ("rules", "match"),
    [
        ([], "exactly one rule Hull.*there is none.*clusters=3"),
        ([Hull(PEOPLE), MaxChanges(2)], "there is none"),
        ([Hull(PEOPLE, clusters=2, name="a"), Hull(PEOPLE, clusters=3, name="b")], "there are 2. Keep one"),
    ],
)
def test_one_hull_must_have_clusters(rules: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        asked(constraints=rules)


# ---- any rule with clusters -----------------------------------------------------------------------------------------
@final
@dataclass(frozen=True, slots=True)
class Islands(AbstractRule):
    """Column a lies on one of some intervals: what a rule with clusters needs to have, and no more."""

    clusters: dict[str, tuple[float, float]]
    manifest: ClassVar[Manifest] = Manifest(title="islands", formula="a in one of them", rule="Islands")

    def check(self, space: Any) -> None:
        pass

    def build(self, block: Any, x: Any) -> None:
        block.in_cluster = on = pyo.Var(list(self.clusters), domain=pyo.Binary)
        block.one = pyo.Constraint(expr=pyo.quicksum(on.values()) == 1)
        block.low = pyo.Constraint(expr=x.raw["a"] >= sum(low * on[k] for k, (low, _) in self.clusters.items()))
        block.high = pyo.Constraint(expr=x.raw["a"] <= sum(high * on[k] for k, (_, high) in self.clusters.items()))

    def distances(self, space: Any, point: Any) -> dict[str, float]:
        del space
        return {k: max(low - point["a"], point["a"] - high, 0.0) for k, (low, high) in self.clusters.items()}

    def violation(self, space: Any, factual: Any, point: Any) -> float:
        del factual
        return max(min(self.distances(space, point).values()) - 1e-6, 0.0)

    def cluster_in(self, block: Any) -> Any:
        return max(block.in_cluster, key=lambda k: block.in_cluster[k].value or 0.0)

    def sentence(self) -> str:
        return "on an island"


def test_a_rule_of_ones_own_may_have_the_clusters() -> None:
    rule = Islands({"far": (8.0, 9.0), "near": (2.0, 3.0), "mid": (2.5, 6.0)})
    result = asked(hull=rule, n=9)
    # "yes" from a + b = 4.5 on; from (1, 1) the way along b is as long.
    assert [answer.cluster for answer in result][2] == "far"
    assert [answer.cost for answer in result] == pytest.approx([2.5, 2.5, 7.0], abs=1e-4)
    assert result.complete


def test_a_way_to_differ_knows_nothing_without_the_rule() -> None:
    how = OtherCluster("x")
    assert not how.surely(SPACE, ROW, ROW, ROW)
    assert how.differ(SPACE, ROW, ROW, ROW)
    fitted = OtherCluster().fitted((Hull(PEOPLE, clusters=LABELS),))
    inside = {"a": 4.5, "b": 1.5}
    assert fitted.after("y").surely(SPACE, ROW, ROW, inside)
    assert not fitted.after("x").surely(SPACE, ROW, ROW, inside)
