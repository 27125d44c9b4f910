"""The optimum over small ReLU networks equals that of activation patterns, one linear program each."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import enumeration as by_hand
import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from problems import same
from scipy.optimize import linprog

from ceopt.formulations import Factual, Reaches, embed
from ceopt.formulations.costs import L1, AbstractCost, Linf
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.predictors import Predictor, ReluNetwork
from ceopt.formulations.predictors.embed import FORMULATIONS
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.targets import AtLeast, OtherThan
from ceopt.solvers import Status, solve

Floats = NDArray[np.float64]
MARGIN = 1 / 32
COSTS: dict[str, AbstractCost] = {"l1": L1(scale="none"), "linf": Linf(scale="none")}


# ---- problems -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Case:
    """A network on a person's columns, and what its scores have to do."""

    predictor: Predictor
    row: dict[str, Any]
    target: Any
    cost: str

    @property
    def space(self) -> FeatureSpace:
        return self.predictor.space

    @property
    def point(self) -> Floats:
        return np.array([self.space[name].to_coordinate(value) for name, value in self.row.items()])


def columns_of(feature: Feature) -> list[Column]:
    """A number as it is; one column for each level of a category, of which the first also shares a table."""
    if not feature.is_finite:
        return [Column(feature.name)]
    if feature.kind == "categorical":
        n = len(feature.levels)
        return [Column(feature.name, table=tuple(float(j == k) for j in range(n))) for k in range(n)]
    return [Column(feature.name, table=tuple(float(k) for k in range(len(feature.levels))))]


KINDS = {
    "continuous": {"kind": "continuous", "lower": -1.0, "upper": 2.0},
    "stuck": {"kind": "continuous", "lower": -1.0, "upper": 2.0, "mutable": False},
    "rising": {"kind": "continuous", "lower": -1.0, "upper": 2.0, "direction": "increasing"},
    "integer": {"kind": "integer", "lower": -1, "upper": 1},
    "ordinal": {"kind": "ordinal", "levels": ("S", "M", "L")},
    "category": {"kind": "categorical", "levels": ("cook", "nurse", "clerk")},
    "binary": {"kind": "binary", "levels": (False, True)},
}
halves = st.integers(-4, 4).map(lambda k: k / 2)


@st.composite
def cases(draw: Any) -> Case:
    """Draw up to two numbers and two other columns, one or two hidden layers, and a target that some point reaches."""
    kinds = draw(st.lists(st.sampled_from(["continuous", "continuous", "stuck", "rising"]), max_size=2))
    kinds += draw(
        st.lists(st.sampled_from(["integer", "ordinal", "category", "binary"]), min_size=not kinds, max_size=2)
    )
    space = FeatureSpace([Feature(f"{kind} {k}", **KINDS[kind]) for k, kind in enumerate(kinds)])
    row = {f.name: draw(st.sampled_from(f.levels)) if f.is_finite else float(draw(st.integers(-1, 1))) for f in space}
    encoding = Encoding(tuple(c for feature in space for c in columns_of(feature)), tuple(space.names))
    sizes = [len(encoding.columns), *draw(st.lists(st.integers(1, 3), max_size=2)), draw(st.sampled_from([1, 1, 3]))]
    weights = [draw(matrix(out, into)) for into, out in itertools.pairwise(sizes)]
    biases = [np.array(draw(st.lists(halves, min_size=n, max_size=n))) for n in sizes[1:]]
    after = draw(
        st.lists(
            st.sampled_from(["relu", "relu", "relu", "identity"]), min_size=len(sizes) - 2, max_size=len(sizes) - 2
        )
    )
    points = sampled(space, 40)
    labels = None if sizes[-1] == 1 else ("a", "b", "c")
    core = ReluNetwork(weights, biases, activations=after, labels=labels)
    scores = core.score(encoding.matrix(points))
    target: Any = AtLeast(float(scores[draw(st.integers(0, 39))]) - 2 * MARGIN) if labels is None else None
    if labels is not None:
        target = draw(st.sampled_from(["a", {"b", "c"}, OtherThan("b")]))
    return Case(Predictor(core, encoding, core, space), row, target, draw(st.sampled_from(sorted(COSTS))))


def matrix(rows: int, columns: int) -> st.SearchStrategy[Floats]:
    line = st.lists(halves, min_size=columns, max_size=columns)
    return st.lists(line, min_size=rows, max_size=rows).map(np.array)


def sampled(space: FeatureSpace, count: int) -> Floats:
    """Return coordinates between the bounds, (count, d)."""
    rng = np.random.default_rng(0)
    columns = [
        rng.integers(0, len(f.levels), count) if f.is_finite
        else rng.integers(int(f.lower), int(f.upper) + 1, count) if f.kind == "integer"
        else rng.uniform(f.lower, f.upper, count)
        for f in space
    ]  # fmt: skip
    return np.stack(columns, axis=1).astype(float)


# ---- the answer by activation patterns ------------------------------------------------------------------------------
def best_by_patterns(case: Case) -> float | None:
    """Return the least cost over all values of whole columns and all activation patterns."""
    space, here = case.space, case.point
    free = [j for j, f in enumerate(space) if f.kind == "continuous" and f.mutable]
    choices = [
        [x] if not f.mutable or f.kind == "continuous" else map(float, range(len(f.levels))) if f.is_finite
        else map(float, range(int(f.lower), int(f.upper) + 1))
        for f, x in zip(space, here.tolist(), strict=True)
    ]  # fmt: skip
    costs = []
    for values in by_hand.product([list(choice) for choice in choices]):
        start = values.copy()
        start[free] = 0.0
        units = start + np.eye(len(space))[free]
        shift = case.predictor.encoding.matrix(start[None, :])[0]
        slope = (case.predictor.encoding.matrix(units) - shift).T if free else np.zeros((len(shift), 0))
        spent = by_hand.Moves(space, (values - here)[None, :]).terms("none")[0]  # free columns stay
        costs += [
            cost
            for rows in cells(case, slope, shift)
            if (cost := least(case, free, rows, float(spent.sum()), float(spent.max(initial=0.0)))) is not None
        ]
    return min(costs, default=None)


Rows = tuple[Floats, Floats]


def cells(case: Case, slope: Floats, shift: Floats) -> list[Rows]:
    """Return rows ``a @ x >= b``, for each pattern and each label that may win, on which the network is affine."""
    core = case.predictor.core
    assert isinstance(core, ReluNetwork)
    switching = [len(b) if kind == "relu" else 0 for b, kind in zip(core.biases, core.activations, strict=False)]
    found = []
    for pattern in itertools.product((0.0, 1.0), repeat=sum(switching)):
        left, a, c, rows = list(pattern), slope, shift, []
        for w, b, kind in zip(core.weights, core.biases, (*core.activations, "identity"), strict=True):
            a, c = w @ a, w @ c + b
            if kind == "relu":
                on, left = np.array(left[: len(b)]), left[len(b) :]
                sign = 2.0 * on - 1.0
                rows.append((sign[:, None] * a, -sign * c))
                a, c = on[:, None] * a, on * c
        found += [_stacked([*rows, goal]) for goal in goals(case, a, c)]
    return found


def goals(case: Case, a: Floats, c: Floats) -> list[Rows]:
    """Return the rows of the target, one set for each label that may win."""
    if isinstance(case.target, AtLeast):
        return [(a, case.target.value + MARGIN - c)]
    wanted = {"a": [0]}.get(case.target, [1, 2]) if isinstance(case.target, str) else [1, 2]
    wanted = [0, 2] if isinstance(case.target, OtherThan) else wanted
    rivals = [k for k in range(3) if k not in wanted]
    return [(a[[t]] - a[rivals], MARGIN - c[[t]] + c[rivals]) for t in wanted]


def _stacked(rows: list[Rows]) -> Rows:
    return np.vstack([a for a, _ in rows]), np.concatenate([b for _, b in rows])


def least(case: Case, free: list[int], rows: Rows, spent: float, most: float) -> float | None:
    """Return the least cost of the continuous columns over one polyhedron, or None where it is empty."""
    a, b = rows
    if not free:
        return (spent if case.cost == "l1" else most) if (b <= 1e-12).all() else None
    n, x0, features = len(free), case.point[free], [case.space[case.space.names[j]] for j in free]
    bounds = [(x if f.direction == "increasing" else f.lower, f.upper) for f, x in zip(features, x0, strict=True)]
    t = np.eye(n) if case.cost == "l1" else np.ones((n, 1))
    above = np.vstack(
        [np.hstack([np.eye(n), -t]), np.hstack([-np.eye(n), -t]), np.hstack([-a, np.zeros((len(a), t.shape[1]))])]
    )
    price = np.concatenate([np.zeros(n), np.ones(t.shape[1])])
    bounds += [(0.0 if case.cost == "l1" else most, None)] * t.shape[1]
    result = linprog(price, A_ub=above, b_ub=np.concatenate([x0, -x0, -b]), bounds=bounds)
    assert result.status in (0, 2), result.message
    return None if result.status == 2 else float(result.fun) + (spent if case.cost == "l1" else 0.0)


# ---- the program ----------------------------------------------------------------------------------------------------
def program(case: Case, formulation: str, **options: Any) -> Any:
    m = pyo.ConcreteModel()
    cutoff = options.get("cutoff")
    whole = Factual(case.space, case.row)
    m.x = whole if cutoff is None else Factual(case.space, case.row, reach=cutoff.narrowed(whole.reach))
    m.p = embed(case.predictor, m.x, formulation=formulation, **options)
    m.v = Reaches(m.p, case.target, margin=MARGIN)
    m.c = pyo.Objective(expr=COSTS[case.cost].build(m.x))
    return m


def answered(case: Case, m: Any) -> float | None:
    """Solve; check the answer's own score, cost, and the variables that a forward pass gives."""
    result = solve(m, relative_gap=1e-9)
    if result.status is Status.INFEASIBLE:
        return None
    assert result.objective is not None, result
    point = m.x.decoded()
    values = np.array([[point[name] for name in case.space.names]])
    scores = case.predictor.score(values)
    if isinstance(case.target, AtLeast):
        assert scores[0] >= case.target.value + MARGIN - 1e-5
    m.x.place(point)
    m.p.place(point)
    for row in m.p.component_data_objects(pyo.Constraint):
        body = pyo.value(row.body)
        assert row.lb is None or body >= row.lb - 1e-5, row.name
        assert row.ub is None or body <= row.ub + 1e-5, row.name
    for k, label in enumerate(case.predictor.labels or ()):
        assert pyo.value(m.p.score[label]) == pytest.approx(scores[0, k], abs=1e-6)
    if case.predictor.labels is None:
        assert pyo.value(m.p.score) == pytest.approx(scores[0], abs=1e-6)
    return result.objective


@pytest.mark.long
@draws(60)
@given(case=cases())
def test_every_form_has_the_optimum_of_patterns(case: Case) -> None:
    best = best_by_patterns(case)
    for formulation in FORMULATIONS["networks"]:
        cost = answered(case, program(case, formulation))
        assert same(cost, best), f"{formulation} {cost}, patterns {best}"


@draws(40)
@given(case=cases(), room=st.sampled_from([0.0, 0.1, 1.0]))
def test_a_known_cost_takes_no_optimum_away(case: Case, room: float) -> None:
    best = best_by_patterns(case)
    if best is None:
        return
    budget = best * (1.0 + 1e-6) + room
    factual = dict(zip(case.space.names, case.point.tolist(), strict=True))
    for formulation in FORMULATIONS["networks"]:
        near = CostCutoff(case.space, factual, COSTS[case.cost], budget)
        assert same(answered(case, program(case, formulation, cutoff=near)), best), formulation


@draws(40)
@given(case=cases())
def test_relaxations_are_nested(case: Case) -> None:
    found = []
    for formulation in ("bigm", "partition", "extended"):
        m = program(case, formulation)
        pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
        result = solve(m)
        found.append(np.inf if result.status is Status.INFEASIBLE else result.objective)
    slack = [1e-6 * max(1.0, min(abs(f), 1e9)) for f in found]
    assert found[0] <= found[1] + slack[0]
    assert found[1] <= found[2] + slack[1]
