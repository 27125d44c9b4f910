"""Region: rows, optima by enumeration of a lattice, published optima, its place in a search, and what is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression

import ceopt
from ceopt import Feature, FeatureSpace, Region
from ceopt.formulations import Factual, impose
from ceopt.formulations.constraints import region as region_module
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble, worst_case
from ceopt.formulations.predictors.read_model import read_model
from ceopt.formulations.space.reachable import reach_of
from ceopt.search import nearer, solve_program
from ceopt.solvers import solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnsupportedModelError
from tests.draws import draws

SPACE = FeatureSpace([Feature("a", kind="integer", lower=0, upper=6), Feature("b", kind="integer", lower=0, upper=6)])
WIDTHS = {"a": 1.0, "b": 1.0}
LATTICE = np.array(list(itertools.product(range(7), range(7))), dtype=float)
COST = ceopt.L1(scale="none")
LABELS = ("no", "yes")


def continuous(**bounds: float) -> FeatureSpace:
    return FeatureSpace([Feature(name, kind="continuous", **bounds) for name in ("a", "b")])


# ---- by enumeration --------------------------------------------------------------------------------------------------
def neighbours(radius: float, norm: str) -> np.ndarray:
    """Return the whole moves of two columns within a region of so many steps."""
    most = math.floor(radius + 1e-9)
    moves = np.array(list(itertools.product(range(-most, most + 1), repeat=2)), dtype=float)
    if norm == "l2":
        moves = moves[(moves**2).sum(axis=1) <= radius**2 + 1e-9]
    return moves


def robust(model: Any, target: Any, radius: float, norm: str, points: np.ndarray = LATTICE) -> np.ndarray:
    """Return which points keep the decision at all of their neighbours."""
    moves = neighbours(radius, norm)
    said = model.predict((points[:, None, :] + moves[None, :, :]).reshape(-1, 2))
    return np.asarray((said.reshape(len(points), len(moves)) == target).all(axis=1))


def check_against_enumeration(
    model: Any, row: Any, radius: float, norm: str, *, exact: bool, target: Any = "yes"
) -> None:
    rule = Region(radius, norm=norm, scale=WIDTHS, exact=exact)
    result = ceopt.explain(model, row, SPACE, target=target, cost=COST, constraints=[rule], time_limit_s=60)
    kept = robust(model, target, radius, norm)
    costs = np.abs(LATTICE - [row["a"], row["b"]]).sum(axis=1)
    if not kept.any():
        assert result.status == "infeasible", result.reason
        return
    least = costs[kept].min()
    if least == 0.0:
        assert result.status == "already_favourable"
        return
    answer = np.array([[float(result[0].values[name]) for name in "ab"]])
    assert robust(model, target, radius, norm, answer)[0], answer
    assert result[0].cost >= least - 1e-9
    assert result[0].bound <= least + 1e-6
    if result.status == "optimal" or norm == "linf":  # branching leaves nothing cheaper, proved or not
        assert result[0].cost == pytest.approx(least)
    assert result.status == ("optimal" if exact else result.status), result.reason


@st.composite
def tree(draw: Any, depth: int = 3) -> dict[str, Any]:
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return {"value": draw(st.integers(-8, 8)) + 0.25}
    return {
        "feature": draw(st.integers(0, 1)), "threshold": draw(st.integers(0, 5)) + 0.5,
        "left": draw(tree(depth - 1)), "right": draw(tree(depth - 1)),
    }  # fmt: skip


rows = st.fixed_dictionaries({"a": st.integers(0, 6), "b": st.integers(0, 6)})
radii = st.sampled_from([0.0, 1.0, 1.5, 2.0])


@draws(60)
@given(
    trees=st.lists(tree(), min_size=1, max_size=4),
    row=rows,
    radius=radii,
    exact=st.booleans(),
    norm=st.sampled_from(["linf", "linf", "l2"]),
)
def test_trees_are_as_by_enumeration(trees, row, radius, exact, norm):
    model = TreeEnsemble(trees, n_inputs=2, labels=LABELS)
    with np.errstate(all="raise"):
        check_against_enumeration(model, row, radius, norm, exact=exact)


@draws(30)
@given(trees=st.lists(tree(), min_size=1, max_size=2), row=rows, radius=radii)
def test_rows_for_each_leaf_are_as_by_enumeration(trees, row, radius):
    assume(any("feature" in tree for tree in trees))
    model = TreeEnsemble(trees, n_inputs=2, labels=LABELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worst_case, "MOST_NODES", 1)  # no worst case of a tree is written out
        check_against_enumeration(model, row, radius, "linf", exact=len(trees) > 1)


@draws(40)
@given(
    weights=st.tuples(*[st.integers(-5, 5)] * 2), intercept=st.integers(-20, 20), row=rows, radius=radii,
    norm=st.sampled_from(["linf", "l2"]),
)  # fmt: skip
def test_linear_models_are_as_by_enumeration(weights, intercept, row, radius, norm):
    model = Affine(list(map(float, weights)), intercept + 0.37, labels=LABELS)
    check_against_enumeration(model, row, radius, norm, exact=True)


@draws(20)
@given(
    seed=st.integers(0, 10**6), row=rows, radius=st.sampled_from([0.0, 1.0, 1.5]), norm=st.sampled_from(["linf", "l2"])
)
def test_networks_are_as_by_enumeration(seed, row, radius, norm):
    rng = np.random.default_rng(seed)
    model = ReluNetwork(
        [rng.normal(size=(4, 2)), rng.normal(size=(1, 4))], [rng.normal(size=4), rng.normal(size=1)], labels=LABELS
    )
    wide = np.array(list(itertools.product(range(-2, 9), repeat=2)), dtype=float)
    assume(np.abs(model.score(wide)).min() > 1e-3)
    check_against_enumeration(model, row, radius, norm, exact=True)


@draws(15)
@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.05, 0.2]))
def test_boosting_on_continuous_columns_is_as_the_arrangement_of_its_thresholds_says(seed, radius):
    """The cheapest answer lies at the factual or a threshold moved by the radius, and its worst point beside one."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(size=(60, 2)).round(2), columns=["a", "b"])
    y = (X["a"] + X["b"] + 0.3 * rng.normal(size=60) > 1.0).astype(int)
    assume(0 < y.sum() < 60)
    model = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0).fit(X, y)
    space, row = continuous(lower=0.0, upper=1.0), X.iloc[[0]]
    target = 1 - int(model.predict(row)[0])
    result = ceopt.explain(
        model, row, space, target=target, cost=COST, constraints=[Region(radius, scale=WIDTHS, exact=True)]
    )
    read = ceopt.formulations.predictors.read(model, space)
    cuts = [[left for left, _ in read.splits.get(name, ())] for name in "ab"]
    lines = [
        [float(row[n].iloc[0]), *(t + s * (radius + 1e-6) for t in own for s in (-1, 1))]
        for n, own in zip("ab", cuts, strict=True)
    ]
    points = [p for p in itertools.product(*lines) if min(p) >= 0.0 and max(p) <= 1.0]
    points.sort(key=lambda p: sum(abs(v - f) for v, f in zip(p, row.iloc[0], strict=True)))
    least = None
    for point in points:
        beside = []
        for value, own in zip(point, cuts, strict=True):
            inside = [t for t in own if abs(t - value) <= radius]
            beside.append([value - radius, value + radius, *inside, *(math.nextafter(t, 2.0) for t in inside)])
        near = pd.DataFrame(list(itertools.product(*beside)), columns=["a", "b"])
        if (model.predict(near) == target).all():
            least = sum(abs(v - f) for v, f in zip(point, row.iloc[0], strict=True))
            break
    if least is None:
        assert result.status == "infeasible", result.reason
    else:
        assert result.status == "optimal", result.reason
        assert result[0].cost == pytest.approx(least, abs=1e-5)


# ---- published optima (../shared/spec, family robust_region) ---------------------------------------------------------
@pytest.mark.parametrize(
    ("weights", "intercept", "x0", "norm", "cost", "expected"),
    [
        ([0.761315, 0.833111], -1.771707, [1.252859, 0.261534], "linf", "l1", 1.1029562665),
        (
            [-0.80641, 1.489321, 0.59299, 1.950165], 0.105683, [1.008129, 0.109389, 0.32801, -0.128266], "l2", "l2",
            0.426404609496,
        ),
    ],
)  # fmt: skip
def test_regions_of_linear_models_cost_what_is_published(weights, intercept, x0, norm, cost, expected):
    names = [f"x{k}" for k in range(len(weights))]
    space = FeatureSpace([Feature(name, kind="continuous", lower=-9, upper=9) for name in names])
    rule = Region(0.2, norm=norm, scale=dict.fromkeys(names, 1.0))
    own = {"l1": ceopt.L1(scale="none"), "l2": ceopt.L2(scale="none")}[cost]
    result = ceopt.explain(
        Affine(weights, intercept, labels=LABELS), dict(zip(names, x0, strict=True)), space, target="yes", cost=own,
        constraints=[rule],
    )  # fmt: skip
    assert (result.status, result[0].cost) == ("optimal", pytest.approx(expected, abs=2e-5))


def test_the_region_of_a_network_costs_what_is_published():
    net = ReluNetwork(
        [
            [[0.777395, 0.26609], [-0.180541, -0.634281], [-0.122055, 0.011785], [-0.837759, -2.272412]],
            [[1.182267, -0.670752, -0.621024, 1.142306]],
        ],
        [[0.411668, 0.467162, -0.003717, 0.426968], [0.086926]],
    )
    result = ceopt.explain(
        net, {"a": -2e-6, "b": 0.842536}, continuous(lower=-2, upper=2), target=ceopt.AtLeast(4.190438), cost=COST,
        constraints=[Region(0.1, scale=WIDTHS)],
    )  # fmt: skip
    assert (result.status, result[0].cost) == ("optimal", pytest.approx(2.79142208556, abs=5e-5))


TWO_TREES = TreeEnsemble(
    [
        {
            "feature": 1, "threshold": 0.0,
            "left": {"feature": 1, "threshold": -1.5, "left": {"value": -0.394244}, "right": {"value": -1.529321}},
            "right": {"feature": 0, "threshold": 0.0, "left": {"value": -0.61017}, "right": {"value": 1.447116}},
        },
        {"feature": 0, "threshold": 0.75, "left": {"value": 0.571944}, "right": {"value": 0.487637}},
    ],
    n_inputs=2,
)  # fmt: skip


@pytest.mark.parametrize("exact", [False, True])
def test_the_region_of_trees_costs_what_is_published(exact):
    result = ceopt.explain(
        TWO_TREES, {"a": 1.432241, "b": -1.316454}, continuous(lower=-2, upper=2), target=ceopt.AtLeast(1.924753),
        cost=COST, constraints=[Region(0.15, scale=WIDTHS, exact=exact)],
    )  # fmt: skip
    assert result.status == "optimal"
    assert result[0].cost == pytest.approx(1.466454, abs=1e-6)


# ---- what is said of an optimum --------------------------------------------------------------------------------------
#: Their worst leaves lie on two sides of one threshold: no point meets both, and no box is clear of either.
OPPOSED = TreeEnsemble(
    [
        {"feature": 0, "threshold": 2.5, "left": {"value": -1.0}, "right": {"value": 2.0}},
        {"feature": 0, "threshold": 2.5, "left": {"value": 2.0}, "right": {"value": -1.0}},
        {"feature": 1, "threshold": 1.5, "left": {"value": -2.0}, "right": {"value": 0.0}},
    ],
    n_inputs=2,
    labels=LABELS,
)


def test_where_stricter_rows_admit_nothing_the_rule_itself_is_asked():
    space = SPACE.update("a", lower=2, upper=3)
    result = ceopt.explain(
        OPPOSED, {"a": 2, "b": 0}, space, target="yes", cost=COST, constraints=[Region(1.0, scale=WIDTHS)]
    )
    assert (result.status, dict(result[0].values)) == ("optimal", {"a": 2, "b": 3})


def test_an_optimum_of_stricter_rows_is_called_feasible_and_the_reason_says_so(monkeypatch):
    monkeypatch.setattr(nearer, "_MOST_PARTS", 0)
    monkeypatch.setattr(solve_program, "_PROGRAMS", 1)
    asked = {"target": "yes", "cost": COST}
    found = ceopt.explain(OPPOSED, {"a": 2, "b": 0}, SPACE, constraints=[Region(1.0, scale=WIDTHS)], **asked)
    assert (found.status, found[0].cost) == ("feasible", 3.0)  # 4 by the rows: a leaves the threshold; b alone does
    assert "nothing cheaper" in found.reason
    proved = ceopt.explain(
        OPPOSED, {"a": 2, "b": 0}, SPACE, constraints=[Region(1.0, scale=WIDTHS, exact=True)], **asked
    )
    assert (proved.status, proved[0].cost) == ("optimal", 3.0)


#: a alone, or b, c and d together, whatever e is: the worst leaves of its two trees lie on two sides of one threshold.
TWO_WAYS = TreeEnsemble(
    [
        {"feature": 0, "threshold": 6.5, "left": {"value": 0.0}, "right": {"value": 10.0}},
        {
            "feature": 1, "threshold": 0.5, "left": {"value": -4.0}, "right": {
                "feature": 2, "threshold": 0.5, "left": {"value": -4.0}, "right": {
                    "feature": 3, "threshold": 0.5, "left": {"value": -4.0}, "right": {"value": 0.0},
                },
            },
        },
        {"feature": 4, "threshold": 0.5, "left": {"value": -1.0}, "right": {"value": 2.0}},
        {"feature": 4, "threshold": 0.5, "left": {"value": 2.0}, "right": {"value": -1.0}},
    ],
    n_inputs=5, labels=LABELS,
)  # fmt: skip


def test_several_trees_are_answered_at_least_cost_where_their_worst_leaves_never_meet(monkeypatch):
    """Stricter rows, and moves from their optimum, cost 8: they alone were off by up to 27 % on real data."""
    space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in "abcde"]).update("e", upper=1)
    asked = {"target": "yes", "cost": COST, "constraints": [Region(1.0, scale=dict.fromkeys("abcde", 1.0))]}
    found = ceopt.explain(TWO_WAYS, dict.fromkeys("abcde", 0), space, **asked)
    assert (found.status, found[0].cost, found[0].bound) == ("optimal", 6.0, pytest.approx(6.0))
    monkeypatch.setattr(solve_program, "_PROGRAMS", 0)
    found = ceopt.explain(TWO_WAYS, dict.fromkeys("abcde", 0), space, **asked)
    assert (found.status, found[0].cost) == ("feasible", 6.0)  # without a proof
    monkeypatch.setattr(nearer, "_MOST_PARTS", 0)
    monkeypatch.setattr(solve_program, "_PROGRAMS", 1)
    found = ceopt.explain(TWO_WAYS, dict.fromkeys("abcde", 0), space, **asked)
    assert (found.status, found[0].cost) == ("feasible", 8.0)


@pytest.mark.parametrize("exact", [False, True])
def test_the_rule_is_named_where_nothing_is_possible(exact):
    rules = [Region(3.0, scale=WIDTHS, exact=exact, name="near"), ceopt.Linear({"b": 1}, "<=", 3)]
    result = ceopt.explain(OPPOSED, {"a": 2, "b": 0}, SPACE, target="yes", cost=COST, constraints=rules, why=True)
    assert result.status == "infeasible"
    assert {name for name, _, _ in result.conflict} == {"near", "Linear_2"}


EITHER = TreeEnsemble(
    [
        {"feature": 0, "threshold": 2.5, "left": {"value": -1.0}, "right": {"value": 1.0}},
        {"feature": 1, "threshold": 2.5, "left": {"value": -1.0}, "right": {"value": 1.0}},
    ],
    base=0.5, n_inputs=2, labels=LABELS,
)  # fmt: skip


def test_stricter_rows_that_admit_nothing_put_no_blame_on_the_rule_alone():
    space = SPACE.update("a", lower=2, upper=3)
    rules = [Region(1.0, scale=WIDTHS, name="near"), ceopt.Linear({"b": 1}, "<=", 2, name="low")]
    result = ceopt.explain(OPPOSED, {"a": 2, "b": 0}, space, target="yes", cost=COST, constraints=rules, why=True)
    assert result.status == "infeasible"
    assert {name: width for name, _, width in result.conflict} == {"near": None, "low": 1.0}


@pytest.mark.parametrize("diversity", ["distinct", "incumbents"])
def test_several_answers_differ_and_each_is_in_its_region(diversity):
    rules = [Region(1.0, scale=WIDTHS, exact=True), ceopt.MaxChanges(1)]
    asked = {"target": "yes", "constraints": rules}
    result = ceopt.explain(EITHER, {"a": 2, "b": 0}, SPACE, cost=COST, n=2, diversity=diversity, **asked)
    points = np.array([[float(answer.values[name]) for name in "ab"] for answer in result])
    assert points[0].tolist() == [4.0, 0.0]
    assert robust(EITHER, "yes", 1.0, "linf", points).all()
    assert ceopt.verify(result, EITHER, SPACE, factual={"a": 2, "b": 0}, **asked).ok
    if diversity == "distinct":
        assert (result.status, points[1].tolist()) == ("optimal", [2.0, 4.0])


def test_verification_finds_the_point_that_is_decided_otherwise():
    row = [{"a": 2, "b": 2}]
    asked = {"target": "yes", "factual": {"a": 2, "b": 0}}
    assert ceopt.verify(row, OPPOSED, SPACE, **asked).ok
    report = ceopt.verify(row, OPPOSED, SPACE, constraints=[Region(1.0, scale=WIDTHS, name="near")], **asked)
    assert not report.ok
    assert report.to_frame()["broken"][0][0].startswith("near: every point of a box of 1 widths")


def test_a_point_just_above_a_threshold_and_the_radius_is_taken():
    """In floats x just above 0.3 + 0.1 may have x - 0.1 <= 0.3."""
    stump = TreeEnsemble(
        [{"feature": 0, "threshold": 0.3, "left": {"value": -1.0}, "right": {"value": 1.0}}], n_inputs=2, labels=LABELS
    )
    for radius in (0.1, 0.01, 1e-3, 1 / 3):
        result = ceopt.explain(
            stump, {"a": 0.0, "b": 0.0}, continuous(lower=0, upper=1), target="yes", cost=COST,
            constraints=[Region(radius, scale=WIDTHS)],
        )  # fmt: skip
        assert result.status == "optimal"
        assert float(result[0].values["a"]) - radius > 0.3
        assert result[0].cost == pytest.approx(0.3 + radius, abs=1e-6)


def test_a_ball_is_filled_by_whole_steps_and_what_they_leave():
    """One whole year and sqrt(1.5^2 - 1) of a wage take 1 + sqrt(1.25) off the score, and that is the most."""
    space = FeatureSpace(
        [Feature("a", kind="integer", lower=0, upper=9), Feature("b", kind="continuous", lower=0, upper=9)]
    )
    model, rule = Affine([1.0, 1.0], -3.0, labels=LABELS), Region(1.5, norm="l2", scale=WIDTHS)
    row, most = {"a": 3, "b": 0.0}, 1.0 + math.sqrt(1.25)
    result = ceopt.explain(model, row, space.fix("a"), target="yes", cost=COST, constraints=[rule])
    assert result[0].cost == pytest.approx(1.5, abs=1e-4)  # a is immutable, and held
    result = ceopt.explain(model, row, space.update("a", lower=3, upper=3), target="yes", cost=COST, constraints=[rule])
    assert (result.status, result[0].cost) == ("optimal", pytest.approx(most, abs=1e-4))
    for b, is_kept in ((most + 1e-3, True), (most - 1e-3, False)):
        report = ceopt.verify([{"a": 3, "b": b}], model, space, target="yes", factual=row, constraints=[rule])
        assert report.ok == is_kept


def test_columns_that_are_held_do_not_move():
    model = Affine([1.0, 1.0], -3.5, labels=LABELS)
    for rule, expected in (
        (Region(1.0, scale=WIDTHS), 6.0), (Region(1.0, scale=WIDTHS, columns=["a"]), 5.0),
        (Region(1.0, scale={"b": 2.0}), 6.0), (Region(0.0, scale=WIDTHS), 4.0),
    ):  # fmt: skip
        result = ceopt.explain(model, {"a": 0, "b": 0}, SPACE, target="yes", cost=COST, constraints=[rule])
        assert result[0].cost == expected, rule
    fixed = SPACE.fix("b")
    result = ceopt.explain(
        model, {"a": 0, "b": 0}, fixed, target="yes", cost=COST, constraints=[Region(1.0, scale=WIDTHS)]
    )
    assert result[0].cost == 5.0


def test_a_radius_below_a_step_holds_the_column_which_is_said():
    model = Affine([1.0, 1.0], -3.5, labels=LABELS)
    rule = Region(0.5, scale={"a": 1.0, "b": 4.0})
    with pytest.warns(ceopt.SpaceWarning, match="Region holds 'a' where they are: the radius is less than one of"):
        result = ceopt.explain(model, {"a": 0, "b": 0}, SPACE, target="yes", cost=COST, constraints=[rule])
    assert result[0].cost == 6.0


# ---- rows ------------------------------------------------------------------------------------------------------------
def lines(block: Any) -> list[str]:
    return [f"{row.local_name}: {row.expr}" for row in block.component_data_objects(pyo.Constraint)]


def test_the_worst_case_of_a_tree_is_a_tree_of_moved_splits():
    stump = {"feature": 0, "threshold": 2.5, "left": {"value": -1.0}, "right": {"value": 1.0}}
    model = TreeEnsemble([stump], n_inputs=2, labels=LABELS)
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, {"a": 0, "b": 0})
    m.near = impose(Region(2.0, scale=WIDTHS), m.x, model=model, target="yes")
    (cut,) = m.near.worst.trees[0].cuts
    assert cut.key == (4.0, 5.0)  # right of 2.5 with all that is up to 2 less
    assert lines(m.near.kept) == ["valid[True]: 0.9998  <=  -1.0 + 2.0*near.worst.leaf[0,2]"]
    m.cost = pyo.Objective(expr=m.x.raw["a"])
    assert solve(m).objective == 5.0


def test_a_tree_that_grows_too_large_is_a_row_for_each_leaf(monkeypatch):
    monkeypatch.setattr(worst_case, "MOST_NODES", 1)
    model = TreeEnsemble(
        [
            {
                "feature": 0, "threshold": 2.5, "left": {"value": -1.0},
                "right": {"feature": 1, "threshold": 3.5, "left": {"value": 0.5}, "right": {"value": 2.0}},
            }
        ],
        n_inputs=2, labels=LABELS,
    )  # fmt: skip
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, {"a": 0, "b": 0})
    m.near = impose(Region(1.0, scale=WIDTHS), m.x, model=model, target="yes")
    assert lines(m.near.worst) == [
        "in_order[0,2]: 0.0  <=  near.worst.least[0,1] - near.worst.least[0,2]",
        "is_clear[0,1]: near.worst.least[0,1] - x.cut[a,'3']  <=  0.0",
        "is_clear[0,3]: -1.0 + near.worst.least[0,2] + x.cut[a,'1'] - x.cut[b,'4']  <=  0.0",
    ]
    assert [str(row.expr) for row in m.near.kept.values()] == [
        "0.4997  <=  -1.0 + 1.5*near.worst.least[0,1] + 1.5*near.worst.least[0,2]"
    ]


def test_a_tree_of_hundreds_of_splits_in_one_box_is_stated():
    """Each further split may be met, so that no way down has an end before all are."""
    nested: dict[str, Any] = {"value": 250.0}
    for k in range(240):
        nested = {"feature": 0, "threshold": 240.5 - k, "left": {"value": 0.5 + k * 0.5}, "right": nested}
    space = FeatureSpace([Feature("a", kind="integer", lower=0, upper=260), SPACE["b"]])
    result = ceopt.explain(
        TreeEnsemble([nested], n_inputs=2), {"a": 0, "b": 0}, space, target=ceopt.AtLeast(200.0), cost=COST,
        constraints=[Region(250.0, scale={"a": 1.0})],
    )  # fmt: skip
    assert result.status == "infeasible"


def test_trees_of_any_size_are_moved():
    """A scenario of a ball gave up beyond 200 tests on one way down."""
    nested: dict[str, Any] = {"value": 1.0}
    for k in range(250):
        nested = {"feature": k % 2, "threshold": 250.5 - k, "left": {"value": k - 100.0}, "right": nested}
    space = continuous(lower=0.0, upper=300.0)
    predictor = read_model(TreeEnsemble([nested], n_inputs=2), space)
    moved = worst_case.moved(predictor, {"a": 1.5}, reach_of(space, {"a": 0.0, "b": 0.0}))
    points = np.random.default_rng(0).uniform(0.0, 300.0, (400, 2))
    assert (moved.score(points) == predictor.score(points + np.array([1.5, 0.0]))).all()


def test_a_box_that_is_decided_otherwise_is_a_row(monkeypatch):
    seen: list[Any] = []
    plain = Region.with_cuts

    def kept(self: Any, cuts: Any) -> Any:
        seen.append(cuts)
        return plain(self, cuts)

    monkeypatch.setattr(region_module.Region, "with_cuts", kept)
    ceopt.explain(
        OPPOSED, {"a": 2, "b": 0}, SPACE, target="yes", cost=COST, constraints=[Region(1.0, scale=WIDTHS, exact=True)]
    )
    boxes = {str(cut): cut for cuts in seen for cut in cuts}.values()
    assert all((box.labels, box.levels) == ({}, {}) for box in boxes)
    (box,) = (box for box in boxes if box.numbers == {"a": (-math.inf, 2.0), "b": (-math.inf, 1.0)})
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, {"a": 2, "b": 0})
    rule = Region(1.0, scale=WIDTHS, model=OPPOSED, target="yes")
    m.near = impose(plain(rule, [box]), m.x)
    assert lines(m.near) == ["avoids[0]: 1.0  <=  x.cut[a,'3'] + x.cut[b,'2']"]


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Region(-0.1), InvalidValueError, "Region needs a finite radius of at least 0, but radius is -0.1"),
        (lambda: Region(math.inf), InvalidValueError, "a finite radius"),
        (lambda: Region(True), InvalidValueError, "radius is True"),
        (lambda: Region(1.0, norm="l1"), UnknownNameError, "l1"),
        (lambda: Region(1.0, scale="mad"), InvalidValueError, "scale is 'mad'"),
        (lambda: Region(1.0, scale={"a": 0.0}), InvalidValueError, r"a finite width above 0, but scale\['a'\] is 0.0"),
        (lambda: Region(1.0, columns="a"), InvalidTypeError, "a list of column names"),
        (lambda: Region(1.0, columns=[]), InvalidValueError, r"a column at least as columns, but columns is \[\]"),
        (lambda: Region(1.0, exact=1), InvalidTypeError, "exact is 1"),
    ],
)
def test_arguments_are_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


PERSON = {"a": 1, "b": 1, "c": "x", "d": 1.0}
MIXED = FeatureSpace(
    [
        *SPACE, Feature("c", kind="categorical", levels=("x", "y")),
        Feature("d", kind="continuous", lower=0, upper=9, mutable=False, std=1.0),
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "space", "error", "match"),
    [
        (Region(1.0), MIXED, InvalidValueError, "a scale of each column, but column 'a' has none"),
        (Region(1.0, scale={"a": 1.0}, columns=["a", "b"]), MIXED, InvalidValueError, "column 'b' has none"),
        (Region(1.0, scale={"e": 1.0}), MIXED, UnknownNameError, "'e'"),
        (Region(1.0, columns=["e"]), MIXED, UnknownNameError, "'e'"),
        (Region(1.0, columns=["c"]), MIXED, InvalidValueError, "column 'c' is categorical"),
        (Region(1.0, columns=["d"]), MIXED, InvalidValueError, "column 'd' is immutable"),
        (Region(1.0, scale=WIDTHS), SPACE.update("a", missing=True), InvalidValueError, "'a' may be missing"),
        (Region(1.0, scale=WIDTHS), SPACE.update("a", codes=[-9]), InvalidValueError, "'a' may hold codes"),
    ],
)
def test_columns_are_refused_by_name(rule, space, error, match):
    with pytest.raises(error, match=match):
        rule.check(space)


def test_models_and_targets_are_refused_by_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 7, (40, 2)), columns=["a", "b"])
    y = (X["a"] > 3).astype(int) + (X["b"] > 3)
    row, rule = X.iloc[0], Region(1.0, scale=WIDTHS)
    both = VotingClassifier([("a", LogisticRegression()), ("b", RandomForestClassifier(3))]).fit(X, y > 0)
    with pytest.raises(UnsupportedModelError, match="VotingClassifier combines several models"):
        ceopt.explain(both, row, SPACE, target=not both.predict(X.iloc[[0]])[0], constraints=[rule])
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    with pytest.raises(InvalidValueError, match="a target of one label, a probability or values"):
        ceopt.explain(forest, row, SPACE, target={0, 1}, constraints=[rule])
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, row)
    with pytest.raises(InvalidValueError, match="to know the model and the decision"):
        impose(rule, m.x)
    net = ReluNetwork([[[1.0, 1.0]], [[1.0]]], [[0.0], [-1.0]], labels=LABELS)
    with pytest.raises(UnsupportedModelError, match=r"a linear model or trees in a model of one's own"):
        impose(rule, m.x, model=net, target="yes")


def test_calls_that_need_exact_rows_refuse_others():
    rule = Region(1.0, scale=WIDTHS)
    with pytest.raises(
        UnsupportedModelError, match="exhaustive needs rules that their rows state exactly, but Region is"
    ):
        ceopt.diverse.exhaustive(OPPOSED, {"a": 2, "b": 0}, SPACE, target="yes", epsilon=1.0, constraints=[rule])
    people = pd.DataFrame([{"a": 2, "b": 0}])
    m = pyo.ConcreteModel()
    with pytest.raises(UnsupportedModelError, match="People needs rules that their rows state exactly"):
        m.people = ceopt.formulations.People(OPPOSED, people, SPACE, target="yes", constraints=[rule])
    m.people = ceopt.formulations.People(
        Affine([1.0, 1.0], -3.5, labels=LABELS), people, SPACE, target="yes", constraints=[rule]
    )


def test_one_of_several_labels_beats_all_others_in_the_region():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.integers(0, 7, (80, 2)), columns=["a", "b"])
    y = np.select([X["a"] > 3, X["b"] > 3], ["left", "up"], "none")
    for model in (
        LogisticRegression(max_iter=500).fit(X, y),
        RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y),
    ):
        row = X[model.predict(X) == "none"].iloc[0]
        result = ceopt.explain(
            model, row, SPACE, target="up", cost=COST, constraints=[Region(1.0, scale=WIDTHS, exact=True)]
        )
        points = pd.DataFrame(LATTICE, columns=["a", "b"])
        near = [points.assign(a=points["a"] + i, b=points["b"] + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        kept = np.all([model.predict(frame) == "up" for frame in near], axis=0)
        costs = np.abs(LATTICE - row.to_numpy()).sum(axis=1)
        assert (result.status, result[0].cost) == ("optimal", pytest.approx(costs[kept].min()))
