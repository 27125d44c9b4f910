"""Models over columns that may be missing or hold codes, against walking the trees and the encoding itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceopt.formulations import Factual
from ceopt.formulations.costs import L1
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.predictors.embed import embed_predictor
from ceopt.formulations.predictors.embed.embedded import Inputs
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.pruned_leaves import Part, pruned_trees
from ceopt.formulations.predictors.raw_trees import LevelSplit, NumberSplit, raw_trees
from ceopt.formulations.predictors.trees import Tree
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.feature import MISSING, Step
from ceopt.formulations.space.reachable import Interval, Reach, reach_of
from ceopt.formulations.space.space import point_row
from ceopt.solvers.errors import InvalidValueError

SPACE = FeatureSpace([
    Feature("n", kind="integer", lower=0.0, upper=5.0, codes=(-9, 2, 98), missing="may_vanish", codes_in_reach=True),
    Feature("m", kind="integer", lower=-1.0, upper=3.0, codes=(1,), missing=True, fill=0.5, direction="increasing"),
    Feature("k", kind="categorical", levels=("p", "q", "r"), missing="may_vanish"),
    Feature("o", kind="ordinal", levels=(-7, 0, 1, 2), codes=(-7,), missing=True),
])  # fmt: skip
VALUES = [
    [*range(6), -9.0, 98.0, MISSING],
    [-1.0, 0.0, 1.0, 2.0, 3.0, MISSING],
    [0, 1, 2, MISSING],
    [0, 1, 2, 3, MISSING],
]


def _encoding(rng: np.random.Generator, *, fills_in: bool) -> Encoding:
    """Return columns of all kinds: numbers scaled or not, indicators, tables; gaps filled in or passed on at random."""

    def gap() -> float | None:
        return float(rng.integers(-2, 4)) if fills_in or rng.random() < 0.5 else None

    half = (Step("subtract", np.float64(1.0)), Step("multiply", np.float64(0.5)))
    columns = (
        Column("n", missing=gap()), Column("n", steps=half, missing=gap()),
        Column("n", is_indicator=True, constant=0.0, missing=1.0), Column("m", missing=gap()),
        Column("k", table=(1.0, 0.0, 2.0), missing=gap()), Column("k", table=(0.0, 0.0, 1.0), missing=0.0),
        Column("o", table=(-7.0, 0.0, 1.0, 2.0), missing=gap()), Column(None, constant=1.0),
    )  # fmt: skip
    return Encoding(columns, tuple(SPACE.names))


def _tree(rng: np.random.Generator, columns: int) -> Tree:
    """Return a tree whose nodes compare with thresholds or sets; NaN goes to a side of its own."""
    nodes: list[list[Any]] = []
    sets: list[frozenset[float]] = []

    def grow(depth: int) -> int:
        number = len(nodes)
        nodes.append([-1, 0.0, -1, -1, float(rng.integers(-3, 4)), -1, bool(rng.random() < 0.5)])
        if depth < 4 and rng.random() < 0.85:
            nodes[number][0] = int(rng.integers(columns))
            nodes[number][1] = float(rng.choice([-9.0, -1.0, 0.0, 0.5, 1.0, 2.0, 4.0, 50.0, 1e300]))
            if rng.random() < 0.25:
                sets.append(frozenset(rng.choice([-9.0, 0.0, 1.0, 2.0, 98.0], size=2).tolist()))
                nodes[number][5] = len(sets) - 1
            nodes[number][2] = grow(depth + 1)
            nodes[number][3] = grow(depth + 1)
        return number

    grow(0)
    feature, threshold, left, right, value, subset, gaps = map(np.array, zip(*nodes, strict=True))
    return Tree(feature, threshold, left, right, value, subset, tuple(sets), gaps)


def _forest(seed: int) -> Predictor:
    rng = np.random.default_rng(seed)
    encoding = _encoding(rng, fills_in=False)
    core = TreeEnsemble([_tree(rng, len(encoding.columns)) for _ in range(3)], n_inputs=len(encoding.columns))
    return Predictor(core, encoding, core, SPACE)


def _person(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {name: float(rng.choice(values)) for name, values in zip(SPACE.names, VALUES, strict=True)}


def _points(reach: Reach) -> Iterator[dict[str, float]]:
    own = [[float(v) for v in values if reach[name].holds(v)] for name, values in zip(SPACE.names, VALUES, strict=True)]
    for chosen in itertools.product(*own):
        yield dict(zip(SPACE.names, chosen, strict=True))


def _admits(part: Part, value: float, labels: tuple[float, ...]) -> bool:
    if isinstance(part, frozenset):
        return value in part
    low, high, on_labels = part
    return value in on_labels if value in (MISSING, *labels) else low <= value <= high


# ---- routes and leaves -----------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_routes_end_where_the_trees_do(seed):
    predictor = _forest(seed)
    rng = np.random.default_rng(seed)
    rows = np.array([[rng.choice(values) for values in VALUES] for _ in range(40)], dtype=np.float64)
    rows[:5, 0] = rng.normal(size=5)
    ends = predictor.core.apply(predictor.encoding.matrix(rows))
    raw = raw_trees(predictor)

    for row, nodes in zip(rows, ends.tolist(), strict=True):
        point = dict(zip(SPACE.names, row.tolist(), strict=True))
        for root, node in zip(raw.root, nodes, strict=True):
            at = root
            while not raw.is_leaf[at]:
                split = raw.split(at)
                left = True
                if isinstance(split, NumberSplit):
                    value = point[split.name]
                    left = split.missing_left if value == MISSING else value <= split.left
                elif isinstance(split, LevelSplit):
                    left = point[split.name] in split.ranks
                at = raw.left[at] if left else raw.right[at]
            assert at == root + node


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_each_point_in_reach_is_in_one_leaf_that_is_left_and_has_its_value(seed):
    predictor = _forest(seed)
    factual = _person(seed)
    reach = reach_of(SPACE, factual)
    trees = pruned_trees(predictor, reach)
    cutoff = CostCutoff(SPACE, factual, L1(scale="none"), 1.5)
    near = pruned_trees(predictor, reach, cutoff=cutoff)
    labels = {name: part.labels if isinstance(part, Interval) else () for name, part in reach.items()}

    for point in _points(reach):
        score = predictor.score(point_row(SPACE, point))[0]
        for pruned in (trees, near) if L1(scale="none").value(SPACE, factual, point) <= 1.5 else (trees,):
            total = 0.0
            for tree in pruned:
                inside = [
                    leaf.value[0]
                    for leaf in tree.leaves
                    if all(_admits(part, point[name], labels[name]) for name, part in leaf.box.items())
                ]
                assert len(inside) == 1
                total += inside[0]
                for cut in tree.cuts:  # a leaf that holds the point is not on the other side of a cut
                    lefts, rights = tree.sides.of(cut)
                    assert not set(lefts) & set(rights)
            assert total == score


# ---- programs --------------------------------------------------------------------------------------------------------
def _violated(model: Any) -> list[str]:
    wrong = []
    for row in model.component_data_objects(pyo.Constraint, active=True):
        body = pyo.value(row.body)
        low = -math.inf if row.lower is None else pyo.value(row.lower)
        high = math.inf if row.upper is None else pyo.value(row.upper)
        if not low - 1e-9 <= body <= high + 1e-9:
            wrong.append(f"{row.name}: {low} <= {body} <= {high}")
    return wrong


def _placed(model: Any, point: Mapping[str, float]) -> None:
    model.x.place(point)
    model.y.place(point)


def _programs(predictor: Predictor, factual: Mapping[str, float]) -> Any:
    model = pyo.ConcreteModel()
    model.x = Factual(SPACE, SPACE.frame([factual]))
    model.y = embed_predictor(predictor, model.x)
    return model


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_rows_of_trees_let_every_point_in_reach_pass_with_its_score(seed):
    predictor = _forest(seed)
    factual = _person(seed)
    model = _programs(predictor, factual)

    for point in itertools.islice(_points(model.x.reach), 150):
        _placed(model, point)
        assert _violated(model) == []
        assert model.y.combine((1.0,)).value() == pytest.approx(predictor.score(point_row(SPACE, point))[0])


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_rows_of_trees_leave_each_point_one_leaf_a_tree(seed):
    """With the binaries of the columns at a point, no other leaf variable may be 1."""
    predictor = _forest(seed)
    model = _programs(predictor, _person(seed))
    rng = np.random.default_rng(seed)
    points = list(_points(model.x.reach))

    for place in rng.choice(len(points), size=min(20, len(points)), replace=False).tolist():
        _placed(model, points[place])
        for variable in model.y.leaf.values():
            if round(variable.value) == 0:
                tree, _ = variable.index()
                others = [v for v in model.y.leaf.values() if v.index()[0] == tree]
                before = [v.value for v in others]
                for other in others:
                    other.set_value(int(other is variable))
                assert _violated(model)
                for other, value in zip(others, before, strict=True):
                    other.set_value(value)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), hidden=st.booleans())
def test_inputs_of_linear_models_and_networks_are_the_encodings_own(seed, hidden):
    rng = np.random.default_rng(seed)
    encoding = _encoding(rng, fills_in=True)
    width = len(encoding.columns)
    first = rng.integers(-2, 3, size=(2, width)).astype(float)
    core: Any = Affine(first[0], 0.5)
    if hidden:
        core = ReluNetwork([first, [[1.0, -1.0]]], [[0.5, -0.5], [0.25]])
    predictor = Predictor(core, encoding, core, SPACE)
    factual = _person(seed)
    model = _programs(predictor, factual)
    inputs = Inputs(predictor, model.x, np.ones(width, dtype=bool))
    weights = rng.normal(size=(1, width))
    sums = []

    for point in _points(model.x.reach):
        row = encoding.matrix(point_row(SPACE, point))[0]
        np.testing.assert_allclose(inputs.matrix @ inputs.atoms.values(point) + inputs.offset, row, atol=1e-12)
        sums.append(float(weights[0] @ row))
        if len(sums) % 7 == 1:
            _placed(model, point)
            assert _violated(model) == []
            assert model.y.combine((1.0,)).value() == pytest.approx(predictor.score(point_row(SPACE, point))[0])
    low, high = inputs.extremes(weights, np.zeros(1))
    assert (low[0], high[0]) == pytest.approx((min(sums), max(sums)))


@pytest.mark.parametrize("name", ["leaf", "misic"])
def test_formulations_whose_coordinates_are_amounts_refuse_labels_by_name(name):
    stump = {"feature": 0, "threshold": 3.0, "left": {"value": 1.0}, "right": {"value": 0.0}}
    core = TreeEnsemble([Tree.from_mapping(stump)], n_inputs=1)
    space = FeatureSpace([Feature("n", kind="integer", lower=0.0, upper=5.0, codes=(-9,))])
    predictor = Predictor(core, Encoding.identity(space), core, space)
    model = pyo.ConcreteModel()
    model.x = Factual(space, {"n": -9})

    with pytest.raises(InvalidValueError, match="column 'n' may be missing or hold a code. Use formulation='ordered'"):
        model.y = embed_predictor(predictor, model.x, formulation=name)
    model.z = Factual(space, {"n": 1})
    model.y = embed_predictor(predictor, model.z, formulation=name)
