"""Costs with squares and cones: their numbers, their programs on every solver, and answers equal to enumeration."""

from __future__ import annotations

import itertools
import math
import pickle
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

import ceopt
from ceopt import L1, L2, Changes, L1Mahalanobis, Linf, Mahalanobis
from ceopt.formulations import Factual, Reaches, embed, l2, l2_squared, mahalanobis
from ceopt.formulations.columns import Price
from ceopt.formulations.constraints.rule import RuleCharges
from ceopt.formulations.costs import AbstractCost, parse_cost
from ceopt.formulations.costs.base import CostCutoff, InUnits
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.reachable import Levels, reach_of
from ceopt.solvers import Status, solve
from ceopt.solvers.compile.compiled_model import compile_model
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.problem import ProblemClass
from ceopt.solvers.registry import SOLVERS

READY = [name for name, solver in SOLVERS.items() if solver.is_installed and solver.is_licensed]
#: A size-limited licence is one: what these tests ask is small.
INTEGER = [name for name in READY if ProblemClass.MISOCP in SOLVERS[name].classes]
CONVEX = [name for name in READY if ProblemClass.SOCP in SOLVERS[name].classes]

COVARIANCE = np.array([[4.0, 1.5], [1.5, 1.0]])
SPACE = FeatureSpace(
    [
        Feature("age", kind="integer", lower=-3, upper=4, mad=1.5),
        Feature("size", kind="ordinal", levels=(0, 1, 2), weight=(1.0, 0.5)),
        Feature("term", kind="integer", lower=0, upper=5, weight=(1.0, 2.0)),
        Feature("job", kind="categorical", levels=(0, 1, 2), weight=0.7),
        Feature("owner", kind="binary", levels=(0, 1), weight=1.25),
    ]
)
POINTS = np.array(list(itertools.product(range(-3, 5), range(3), range(6), range(3), range(2))), dtype=float)
COSTS: list[AbstractCost] = [
    L2(),
    L2(scale="none", squared=True),
    Mahalanobis(COVARIANCE),
    Mahalanobis(precision=np.linalg.inv(COVARIANCE), squared=True),
    L1Mahalanobis(COVARIANCE),
    L2() + 0.1 * Changes(),
    0.5 * Mahalanobis(COVARIANCE) + L1(scale="none") + 0.2 * L2(squared=True),
    L2(scale="none") + 0.5 * Linf() + 0.25 * Mahalanobis(COVARIANCE, squared=True),
    L2(scale="none", count="columns"),
    L2(squared=True, count="columns") + 10_000 * Changes(count="columns"),
]


def named(point: Any) -> dict[str, float]:
    return dict(zip(SPACE.names, map(float, point), strict=True))


def by_hand(cost: AbstractCost, moves: NDArray[np.float64]) -> float:
    """The sentences of the public interface, for one move of SPACE."""
    age, size, term, job, owner = moves.tolist()
    up = [size > 0, term > 0]
    terms = [age / 1.5, (0.5 if up[0] else 1.0) * size / 2, (2.0 if up[1] else 1.0) * term / 5, 0.7 * (job != 0)]
    terms.append(1.25 * owner)
    plain = [age, terms[1], (2.0 if up[1] else 1.0) * term, terms[3], terms[4]]
    levels = [(0.5 if up[0] else 1.0) * (size != 0), 0.7 * (job != 0), 1.25 * (owner != 0)]
    form = float(np.array([age, term]) @ np.linalg.inv(COVARIANCE) @ np.array([age, term]))
    distance = math.sqrt(form + sum(w * w for w in levels))
    products = np.linalg.cholesky(np.linalg.inv(COVARIANCE)).T @ np.array([age, term])
    norm, length = math.hypot(*terms), math.hypot(*plain)
    by_place = [
        norm,
        length**2,
        distance,
        distance**2,
        float(np.abs(products).sum()) + sum(levels),
        norm + 0.1 * np.count_nonzero(moves),
        0.5 * distance + sum(map(abs, plain)) + 0.2 * norm**2,
        length + 0.5 * max(map(abs, terms)) + 0.25 * distance**2,
        math.hypot(length, plain[3]),
        norm**2 + terms[3] ** 2 + 10_000 * (np.count_nonzero(moves) + (job != 0)),
    ]
    return float(by_place[COSTS.index(cost)])


moves_of = st.tuples(st.sampled_from(POINTS.tolist()), st.sampled_from(POINTS.tolist()))


# ---- in numbers -----------------------------------------------------------------------------------------------------
@given(pair=moves_of, cost=st.sampled_from(COSTS), unit=st.sampled_from([1.0, 0.25, 8.0]))
def test_values_are_those_of_the_interface(pair: Any, cost: AbstractCost, unit: float) -> None:
    x0, x = (np.array(point) for point in pair)
    expected = by_hand(cost, x - x0)
    assert cost.value(SPACE, named(x0), named(x)) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    program = cost.in_units(unit)
    (objective,) = program.objectives(SPACE, named(x0), x[None, :])
    assert program.from_objective(float(objective)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert program.to_objective(expected) == pytest.approx(float(objective), rel=1e-9, abs=1e-9)
    assert program.value(SPACE, named(x0), named(x)) == cost.value(SPACE, named(x0), named(x))


@given(pair=moves_of, cost=st.sampled_from(COSTS), slack=st.sampled_from([0.0, 0.3]), unit=st.sampled_from([1.0, 8.0]))
def test_a_budget_never_rules_out_what_it_pays_for(pair: Any, cost: AbstractCost, slack: float, unit: float) -> None:
    x0, x = (named(point) for point in pair)
    program = cost.in_units(unit)
    cutoff = CostCutoff(SPACE, x0, program, program.to_objective(cost.value(SPACE, x0, x) * (1.0 + slack)))
    for name, part in cutoff.narrowed(reach_of(SPACE, x0)).items():
        held = x[name] in part.ranks if isinstance(part, Levels) else part.lower <= x[name] <= part.upper
        assert held, name
    prices = [float(cutoff.own_prices(name, np.array([x[name]]))[0]) for name in ("age", "term")]
    assert (sum(prices) if program.additive else max(prices)) <= cutoff.budget


@draws(60)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 4), rank=st.integers(1, 4))
def test_a_column_costs_at_least_what_its_price_says(seed: int, k: int, rank: int) -> None:
    """The least over all other moves, by least squares; 0 where a singular precision does not see the column alone."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(min(rank, k), k)) * 10.0 ** rng.integers(-4, 5, size=k)
    space = FeatureSpace([Feature(f"x{j}", kind="continuous") for j in range(k)])
    cost = Mahalanobis(precision=factor.T @ factor)
    for j, (prices,) in enumerate(cost.prices(space).values()):
        others = np.delete(factor, j, axis=1)
        size = np.linalg.norm(others, axis=0)
        rest = (
            factor[:, j] - (others / size) @ np.linalg.lstsq(others / size, factor[:, j], rcond=None)[0]
            if k > 1
            else factor[:, j]
        )
        assert prices.of(1.0) <= float(rest @ rest) * (1 + 1e-9) + 1e-30
        if k <= rank:
            assert prices.of(1.0) == pytest.approx(float(rest @ rest), rel=1e-4)


def test_a_covariance_caps_a_move_by_its_standard_deviation() -> None:
    x0 = named((0, 1, 2, 0, 0))
    reach = CostCutoff(SPACE, x0, Mahalanobis(COVARIANCE), 1.0).narrowed(reach_of(SPACE, x0))
    assert (reach["age"].lower, reach["age"].upper) == (-2.0, 2.0)  # type: ignore[union-attr]
    assert (reach["term"].lower, reach["term"].upper) == (1.0, 3.0)  # type: ignore[union-attr]
    assert reach["owner"].ranks == (0,)  # type: ignore[union-attr]


# ---- the matrix -----------------------------------------------------------------------------------------------------
def test_a_frame_is_matched_by_name_and_an_array_by_place() -> None:
    frame = pd.DataFrame(COVARIANCE, index=["age", "term"], columns=["age", "term"])
    turned = frame.loc[["term", "age"], ["term", "age"]]
    x0, x = named((0, 1, 2, 0, 0)), named((2, 1, 1, 0, 0))
    value = Mahalanobis(COVARIANCE).value(SPACE, x0, x)
    assert Mahalanobis(turned).value(SPACE, x0, x) == pytest.approx(value, rel=1e-12)
    assert Mahalanobis(precision=pd.DataFrame(np.linalg.inv(turned), turned.index, turned.columns)).value(
        SPACE, x0, x
    ) == pytest.approx(value, rel=1e-12)
    assert Mahalanobis(COVARIANCE.tolist()).value(SPACE, x0, x) == value


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age = rng.integers(-3, 5, n)
    rest = {name: rng.integers(0, len(SPACE[name].levels), n) for name in ("size", "job", "owner")}
    return pd.DataFrame({"age": age, "term": np.clip(age + rng.integers(0, 3, n), 0, 5)} | rest)[list(SPACE.names)]


@pytest.mark.parametrize("kind", [Mahalanobis, L1Mahalanobis])
def test_the_covariance_of_data_is_the_sample_covariance(kind: Any) -> None:
    data = people()
    given = kind(data[["age", "term"]].cov())
    x0, x = named((0, 1, 2, 0, 0)), named((2, 0, 1, 0, 1))
    assert kind().fitted(SPACE, data).value(SPACE, x0, x) == pytest.approx(given.value(SPACE, x0, x), rel=1e-12)
    assert given.fitted(SPACE, data) is given
    both = (kind() + Changes()).fitted(SPACE, data)
    assert both.value(SPACE, x0, x) == pytest.approx(given.value(SPACE, x0, x) + 4, rel=1e-12)


def test_explain_and_recourse_take_it_from_their_data() -> None:
    data, model = people(), Affine([1.0, 0.3, 0.5, -0.2, 0.4], -2.6, labels=("no", "yes"))
    row = {"age": 0, "size": 1, "term": 2, "job": 0, "owner": 0}
    expected = ceopt.explain(model, row, SPACE, target="yes", cost=Mahalanobis(data[["age", "term"]].cov()))
    found = ceopt.explain(model, row, SPACE, target="yes", cost="mahalanobis", data=data)
    assert expected.status == found.status == "optimal"
    assert found[0].cost == pytest.approx(expected[0].cost, rel=1e-9)
    assert found.options["cost"] == "mahalanobis"
    assert expected.options["cost"] == "Mahalanobis(covariance=<2 x 2>)"
    fitted = ceopt.Recourse(model, SPACE, target="yes", cost="mahalanobis").fit(data)
    assert fitted.explain(pd.DataFrame([row])).to_frame()["cost"].iloc[0] == pytest.approx(expected[0].cost, rel=1e-9)
    with pytest.raises(InvalidValueError, match=re.escape("no data is given. Pass data=X_train")):
        ceopt.explain(model, row, SPACE, target="yes", cost="mahalanobis")


def test_without_numeric_columns_no_matrix_is_needed() -> None:
    space = FeatureSpace([Feature("job", kind="categorical", levels=(0, 1), weight=3.0)])
    cost = parse_cost("mahalanobis").fitted(space, None)
    assert cost.value(space, {"job": 0.0}, {"job": 1.0}) == 3.0


COLLINEAR = pd.DataFrame({"age": [0, 1, 2, 3], "term": [0, 2, 4, 6]}).cov()


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Mahalanobis([[1.0, 2.0]]), InvalidValueError, "its shape is (1, 2)"),
        (lambda: Mahalanobis([[1.0, np.nan], [np.nan, 1.0]]), InvalidValueError, "entry [0][1] is nan"),
        (lambda: Mahalanobis(precision=[[1.0, 0.5], [0.4, 1.0]]), InvalidValueError, "[0][1] is 0.5 and [1][0] is 0.4"),
        (lambda: Mahalanobis([["a", "b"], ["b", "a"]]), InvalidTypeError, "numbers as covariance"),
        (lambda: Mahalanobis(np.eye(2), np.eye(2)), InvalidValueError, "both are given"),
        (lambda: Mahalanobis(pd.DataFrame(np.eye(2), index=["a", "b"])), InvalidValueError, "the rows are ['a', 'b']"),
        (
            lambda: Mahalanobis(np.eye(3)).metric(SPACE),
            InvalidValueError,
            "it has 3. The numeric columns are: age, term",
        ),
        (lambda: Mahalanobis(COLLINEAR).metric(SPACE), InvalidValueError, "columns 'age', 'term' are collinear"),
        (lambda: Mahalanobis(np.diag([1.0, 0.0])).metric(SPACE), InvalidValueError, "that of column 'term' is 0"),
        (
            lambda: Mahalanobis(precision=[[1.0, 2.0], [2.0, 1.0]]).metric(SPACE),
            InvalidValueError,
            "a positive semidefinite precision",
        ),
        (
            lambda: Mahalanobis([[1.0, 2.0], [2.0, 1.0]]).metric(SPACE),
            InvalidValueError,
            "a positive semidefinite covariance",
        ),
        (
            lambda: Mahalanobis(pd.DataFrame(np.eye(2), ["age", "job"], ["age", "job"])).metric(SPACE),
            UnknownNameError,
            "'job'",
        ),
        (
            lambda: Mahalanobis(pd.DataFrame(np.eye(1), ["age"], ["age"])).metric(SPACE),
            InvalidValueError,
            "it lacks 'term'",
        ),
        (lambda: Mahalanobis().fitted(SPACE, people(1)), InvalidValueError, "the data has 1 row."),
        (lambda: Mahalanobis().prices(SPACE), InvalidValueError, "no data is given"),
        (
            lambda: L1Mahalanobis(precision=[[1.0, 1.0], [1.0, 1.0]]).value(SPACE, named([0] * 5), named([1] * 5)),
            InvalidValueError,
            "L1Mahalanobis needs a positive definite precision",
        ),
        (lambda: mahalanobis(pyo.ConcreteModel(), covariance=COVARIANCE), InvalidTypeError, "a Factual block"),
    ],
)
def test_misuse_is_refused_by_name(make: Any, error: type[CeoptError], match: str) -> None:
    with pytest.raises(error, match=re.escape(match)):
        make()


@dataclass(frozen=True, slots=True)
class Square(AbstractCost):
    """The square of the age's move: a cost of a user's own, with the members that docs ask for and no more."""

    curved = True
    power = 2

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        return {name: (Price("square", 1.0, 1.0),) if name == "age" else () for name in space.names}

    def build(self, x: Any) -> Any:
        return (x.raw["age"] - x.point["age"]) ** 2


@pytest.mark.parametrize("unit", [8.0, 0.25])
def test_a_square_of_a_users_own_is_stated_in_another_unit(unit: float) -> None:
    compiled = compile_model(model := stated(Square(), unit))
    model.x.place(named((3, 1, 2, 0, 0)))
    objective = compiled.evaluate(np.array([float(v.value) for v in compiled.columns]))
    assert objective == pytest.approx(9.0 / unit**2)
    assert Square().in_units(unit).from_objective(objective) == pytest.approx(9.0)


@pytest.mark.parametrize("cost", [*COSTS, Square()])
def test_a_cost_in_another_unit_is_the_cost_but_for_its_program(cost: AbstractCost) -> None:
    home, point = named((0, 1, 2, 0, 0)), named((3, 0, 4, 2, 1))
    program = InUnits(cost, 8.0)
    assert (program.additive, program.curved, program.power) == (cost.additive, cost.curved, cost.power)
    assert program.is_joint == cost.is_joint
    assert program.fitted(SPACE, None) == InUnits(cost.fitted(SPACE, None), 8.0)
    assert program.size(SPACE, home, point) == cost.size(SPACE, home, point)
    shares = program.column_costs(SPACE, home, point)
    assert shares == cost.column_costs(SPACE, home, point)
    assert program.cost_of(shares.values()) == cost.cost_of(shares.values())
    added = InUnits(cost, 8.0) + Changes()
    assert added.value(SPACE, home, point) == (cost + Changes()).value(SPACE, home, point)
    points = np.array([list(point.values())])
    assert added.objectives(SPACE, home, points).tolist() == (cost + Changes()).objectives(SPACE, home, points).tolist()
    assert program.in_units(2.0) == cost.in_units(2.0)


def test_a_cost_that_rules_charge_is_joint_in_another_unit_as_well() -> None:
    assert InUnits(RuleCharges(L1(), ()), 8.0).is_joint


# ---- the program ----------------------------------------------------------------------------------------------------
ROW = {"age": 0, "size": 1, "term": 2, "job": 0, "owner": 0}


def stated(cost: AbstractCost, unit: float = 1.0) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    for name in ("age", "term"):
        assert m.x.raw[name] is not None
    m.cost = pyo.Objective(expr=cost.in_units(unit).build(m.x))
    return m


@draws(60)
@given(point=st.sampled_from(POINTS.tolist()), cost=st.sampled_from(COSTS), unit=st.sampled_from([1.0, 0.125]))
def test_a_placed_point_keeps_every_row_and_cone(point: Any, cost: AbstractCost, unit: float) -> None:
    """A start is complete: lengths, products and distances are placed with the columns, and cost what they should."""
    m = stated(cost, unit)
    compiled = compile_model(m)
    m.x.place(named(point))
    x = np.array([float(v.value) for v in compiled.columns])
    assert compiled.violation(x) <= 1e-9 / unit
    x0 = SPACE.row(ROW)
    expected = by_hand(cost, np.array(point) - list(x0.values()))
    assert cost.in_units(unit).from_objective(compiled.evaluate(x)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("cost", "needed"),
    [
        (L2(), ProblemClass.MIQP),
        (Mahalanobis(COVARIANCE), ProblemClass.MIQP),
        (L2() + Changes(), ProblemClass.MISOCP),
        (1.0 * Mahalanobis(COVARIANCE), ProblemClass.MISOCP),
        (L1Mahalanobis(COVARIANCE), ProblemClass.MILP),
        (L2(squared=True) + Changes(), ProblemClass.MIQP),
    ],
    ids=repr,
)
def test_a_cone_is_stated_only_where_a_distance_is_added(cost: AbstractCost, needed: ProblemClass) -> None:
    assert compile_model(stated(cost)).problem_class is needed


def test_uncoupled_columns_keep_their_cells_and_still_columns_have_none() -> None:
    space = FeatureSpace([Feature(n, kind="continuous", lower=0, upper=9, mutable=n != "c") for n in "abc"])
    cost = Mahalanobis(precision=[[4.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 2.0]])
    m = pyo.ConcreteModel()
    m.x = Factual(space, dict.fromkeys("abc", 1.0))
    m.p = embed(TreeEnsemble([{"feature": 0, "threshold": 4.0, "left": {"value": 0.0}, "right": {"value": 1.0}}]), m.x)
    m.cost = pyo.Objective(expr=cost.build(m.x))
    compiled = compile_model(m)
    assert compiled.Q is None
    assert not [v.name for v in compiled.columns if v.name.startswith(("x.x", "x.length", "x.product"))]
    # c stays, so a moves alone, and just beyond the cut: 4 * (4 - 1)**2.
    assert {compiled.columns[k].name: compiled.c[k] for k in np.flatnonzero(compiled.c)} == {
        "x.cut[a,'4']": pytest.approx(36.0)
    }


def test_a_model_with_followers_can_be_pickled_and_cloned() -> None:
    m = stated(COSTS[-1] + L1Mahalanobis(COVARIANCE))
    for copied in (m.clone(), pickle.loads(pickle.dumps(m))):
        copied.x.place(named((2, 1, 3, 1, 0)))
        compiled = compile_model(copied)
        assert compiled.violation(np.array([float(v.value) for v in compiled.columns])) <= 1e-9


@pytest.mark.parametrize("name", INTEGER)
def test_expressions_are_distances(name: str) -> None:
    """Each of the block's expressions takes the value that its name says at the optimum, also where it is added."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    m.far = pyo.Constraint(expr=m.x.raw["age"] + m.x.raw["term"] >= 5)
    m.owned = pyo.Constraint(expr=m.x.is_level["owner", 1] == 1)
    m.cost = pyo.Objective(expr=l2(m.x) + l2_squared(m.x, scale="none") + 3 * mahalanobis(m.x, covariance=COVARIANCE))
    result = solve(m, name)
    assert result.status is Status.OPTIMAL
    parts = (1.0, L2()), (1.0, L2(scale="none", squared=True)), (3.0, Mahalanobis(COVARIANCE))
    x0 = SPACE.row(ROW)
    near = [p for p in POINTS if p[0] + p[2] >= 5 and p[4] == 1]
    best = min(sum(f * cost.value(SPACE, x0, named(p)) for f, cost in parts) for p in near)
    assert result.objective == pytest.approx(best, rel=2e-6)


# ---- answers equal to enumeration -----------------------------------------------------------------------------------
def model_of(kind: str, rng: np.random.Generator) -> Any:
    if kind == "linear":
        return Affine(rng.normal(size=5), 0.0)
    if kind == "network":
        return ReluNetwork([rng.normal(size=(3, 5)), rng.normal(size=(1, 3))], [rng.normal(size=3), rng.normal(size=1)])

    def tree(depth: int) -> dict[str, Any]:
        if depth == 0:
            return {"value": float(rng.normal())}
        j = int(rng.integers(5))
        at = float(rng.choice(np.unique(POINTS[:, j])[:-1])) + 0.5
        return {"feature": j, "threshold": at, "left": tree(depth - 1), "right": tree(depth - 1)}

    return TreeEnsemble([tree(3) for _ in range(3)], 0.0)


@pytest.mark.long(every=2)
@draws(12)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["linear", "network", "tree"]),
    cost=st.sampled_from(COSTS),
    start=st.sampled_from(POINTS.tolist()),
)
@pytest.mark.parametrize("name", ["auto", *INTEGER])
def test_lattices_equal_enumeration(name: str, seed: int, kind: str, cost: AbstractCost, start: Any) -> None:
    model = model_of(kind, np.random.default_rng(seed))
    scores = model.score(POINTS)
    threshold = float(np.quantile(scores, 0.8))
    if model.score([start])[0] >= threshold:
        threshold = float(scores.max()) - 1e-3
    row = {n: SPACE[n].from_coordinate(v) for n, v in named(start).items()}
    result = ceopt.explain(model, row, SPACE, target=ceopt.AtLeast(threshold), cost=cost, margin=1e-4, solver=name)
    if result.status == "already_favourable":
        return
    reached = POINTS[scores >= threshold + 1e-4]
    if not len(reached):  # a network that is flat at the top
        assert result.status == "infeasible"
        return
    best = min(cost.value(SPACE, named(start), named(p)) for p in reached)
    assert result.status == "optimal", result.reason
    assert result[0].verified
    assert result[0].cost == pytest.approx(best, rel=2e-6, abs=1e-9)
    assert result[0].gap <= 1e-6
    assert result.bound is not None
    assert result.bound <= best * (1 + 1e-6) + 1e-12


@draws(10)
@given(seed=st.integers(0, 10_000))
@pytest.mark.parametrize("name", INTEGER)
def test_trees_on_correlated_numbers_equal_the_best_box(name: str, seed: int) -> None:
    """Continuous columns under trees: the nearest point of each box by bounded least squares."""
    rng = np.random.default_rng(seed)
    space = FeatureSpace([Feature(n, kind="continuous", lower=-4, upper=4) for n in "abc"])
    factor = np.triu(rng.normal(size=(3, 3))) + np.diag([1.0, 1.0, 1.0])
    cuts = [np.sort(rng.choice(np.arange(-3.5, 4.0, 0.5), size=2, replace=False)) for _ in range(3)]

    def tree(j: int) -> dict[str, Any]:
        low, high, (one, two, three) = *cuts[j].tolist(), rng.integers(-2, 3, size=3).tolist()
        inner = {"feature": j, "threshold": high, "left": {"value": two}, "right": {"value": three}}
        return {"feature": j, "threshold": low, "left": {"value": one}, "right": inner}

    model = TreeEnsemble([tree(0), tree(1), tree(2)])
    x0 = rng.uniform(-3.9, 3.9, size=3).round(1) + 0.03  # on no cut, where the next float would do
    edges = [(-4.0, *cut.tolist(), 4.0) for cut in cuts]
    boxes = list(itertools.product(*(itertools.pairwise(edge) for edge in edges)))
    middles = np.array([[(low + high) / 2 for low, high in box] for box in boxes])
    wanted = float(np.unique(model.score(middles))[-2:][0])
    best = math.inf
    for box, middle in zip(boxes, middles, strict=True):
        if model.score([middle])[0] >= wanted:
            low, high = (np.array(side) - x0 for side in zip(*box, strict=True))
            near = lsq_linear(factor, np.zeros(3), (low, high), method="bvls", tol=1e-14).x
            best = min(best, float(np.linalg.norm(factor @ near)))
    result = ceopt.explain(
        model, dict(zip("abc", x0.tolist(), strict=True)), space, target=ceopt.AtLeast(wanted - 0.5),
        cost=Mahalanobis(precision=factor.T @ factor), solver=name,
    )  # fmt: skip
    if result.status == "already_favourable":
        assert best < 1e-9
    else:
        assert result.status == "optimal", result.reason
        assert result[0].cost == pytest.approx(best, rel=3e-6, abs=1e-7)


# ---- sizes ----------------------------------------------------------------------------------------------------------
def ray(size: float, gap: float, seed: int) -> tuple[Any, dict[str, float], FeatureSpace, NDArray[np.float64]]:
    """A half-space at the Mahalanobis distance ``gap``; two of the four columns are in units of ``size``."""
    rng = np.random.default_rng(seed)
    mixing, units = rng.normal(size=(4, 4)), np.array([size, 1.0, 10 * size, 1.0])
    covariance = (mixing @ mixing.T + 0.1 * np.eye(4)) * units * units[:, None]
    deviation = np.sqrt(covariance.diagonal())
    x0, w = rng.normal(size=4) * deviation, rng.normal(size=4) / deviation
    w /= math.sqrt(float(w @ covariance @ w))
    space = FeatureSpace([Feature(n, kind="continuous", range=6 * d) for n, d in zip("abcd", deviation, strict=True)])
    model = Affine(w, -float(w @ x0) - gap, labels=(0, 1))
    return model, dict(zip("abcd", x0.tolist(), strict=True)), space, covariance


@pytest.mark.long(every=22)
@pytest.mark.parametrize("gap", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", ["auto", *CONVEX])
def test_units_of_columns_do_not_matter(name: str, size: float, gap: float) -> None:
    """Spec 6.1: gap / sqrt(w' C w). A wrong answer is never called optimal, whatever the size of its numbers."""
    for seed in range(2):
        model, row, space, covariance = ray(size, gap, seed)
        result = ceopt.explain(model, row, space, target=1, cost=Mahalanobis(covariance), margin=1e-6, solver=name)
        assert result.status in {"optimal", "feasible"}, result.reason
        assert result.bound is not None
        assert result.bound <= (gap + 1e-6) * (1 + 2e-6)
        if result.status == "optimal" or name in {"auto", "highs"}:
            assert result[0].cost == pytest.approx(gap + 1e-6, rel=1e-5)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("cost", [L2(scale="none"), L2(scale="none") + 0.0 * L1()], ids=["square", "cone"])
@pytest.mark.parametrize("size", [1e-5, 1e6])
@pytest.mark.parametrize("name", INTEGER)
def test_tiny_and_huge_distances_are_counted_in_a_unit_of_their_own(name: str, size: float, cost: AbstractCost) -> None:
    """Squares of 1e-10 and of 1e12: in their own unit SCIP "proved" optima 4 times, and 44 times, too dear."""
    space = FeatureSpace(
        [Feature("k", kind="integer", lower=0, upper=6)]
        + [Feature(n, kind="continuous", lower=-3 * size, upper=3 * size) for n in "uv"]
    )
    model = Affine([0.01, 0.6 / size, 0.8 / size], -1.02, labels=(0, 1))
    row = {"k": 2, "u": 0.0, "v": 0.0}
    # Either all in u and v, or k alone (which takes 100 steps, and so never alone); a step of k saves size / 100.
    best = min(math.hypot(k, max(1.0 + 1e-6 - 0.01 * k, 0.0) * size) for k in range(5))
    result = ceopt.explain(model, row, space, target=1, cost=cost, margin=1e-6, solver=name)
    assert result.status == "optimal", result.reason
    assert result[0].cost == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("name", INTEGER)
def test_a_square_beside_ten_thousand_a_change_is_proved_on_its_own_scale(name: str) -> None:
    """Its lengths have their own unit: in one that suits 10,000, HiGHS could prove no more than the 10,000."""
    space = FeatureSpace([Feature(n, kind="continuous", lower=-2.0, upper=2.0) for n in "uvw"])
    cost = L2(scale="none", squared=True) + 10_000 * Changes(count="columns")
    home = dict.fromkeys("uvw", 0.0)
    assert cost.size(space, home, {"u": 0.25, "v": 0.5, "w": 0.0}) == 0.3125
    model = Affine([0.54, 0.445, 0.19], -0.0134, labels=(0, 1))
    asked = {"margin": 1e-6, "relative_gap": 1e-11, "solver": name}
    result = ceopt.explain(model, home, space, target=1, cost=cost, **asked)
    assert result.status == "optimal", result.reason
    square = (0.013401 / 0.54) ** 2
    assert result.bound == pytest.approx(10_000 + square, abs=1e-6)
    assert result[0].cost == pytest.approx(10_000 + square, abs=1e-6)


def test_the_gap_of_a_root_is_that_of_the_root() -> None:
    """The square is solved to half the gap asked for, and the bound's root is reported."""
    cost = Mahalanobis(COVARIANCE)
    assert cost.from_objective(0.81) == pytest.approx(0.9)
    assert cost.to_objective(0.9) == pytest.approx(0.81)
    assert Mahalanobis(COVARIANCE, squared=True).from_objective(0.81) == 0.81
    model = Affine([1.0, 0.3, 0.5, -0.2, 0.4], -3.6, labels=("no", "yes"))
    for gap in (0.3, 1e-6):
        result = ceopt.explain(model, ROW, SPACE, target="yes", cost=cost, relative_gap=gap)
        assert result.status == "optimal"
        x0 = SPACE.row(ROW)
        best = min(cost.value(SPACE, x0, named(p)) for p in POINTS[model.score(POINTS) >= 1e-6])
        assert result.bound is not None
        assert result.bound <= best * (1 + 1e-9) <= result[0].cost * (1 + 2e-9)
        assert result[0].gap == pytest.approx((result[0].cost - result.bound) / result[0].cost, abs=1e-12)
        assert result[0].gap <= gap


def test_the_nearest_point_of_a_half_space_by_every_expression() -> None:
    """Closed forms of a half-space's nearest point through blocks: expressions are distances, so no root is taken."""
    model, row, space, covariance = ray(1.0, 2.0, 7)
    scales = [space[name].scale("mad") for name in space.names]
    norm = float(np.linalg.norm(model.weights[0] * scales))
    for expression, distance in ((lambda x: mahalanobis(x, covariance=covariance), 2.0), (l2, 2.0 / norm)):
        m = pyo.ConcreteModel()
        m.x = Factual(space, row)
        m.p = embed(model, m.x)
        m.valid = Reaches(m.p, 1, margin=0.0)
        m.cost = pyo.Objective(expr=expression(m.x))
        assert solve(m).objective == pytest.approx(distance, rel=1e-6)
