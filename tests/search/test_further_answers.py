"""Several answers: each the best of those that differ, whatever number was asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import ceopt
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.search.solve_program import ProgramSolver

COLUMNS = {"a": (0, 4), "b": (0, 3), "c": (0, 1)}
SPACE = ceopt.FeatureSpace(
    [ceopt.Feature(name, kind="integer", lower=low, upper=high) for name, (low, high) in COLUMNS.items()]
)
LATTICE = [
    dict(zip(COLUMNS, values, strict=True))
    for values in itertools.product(*(range(low, high + 1) for low, high in COLUMNS.values()))
]


def leaf() -> st.SearchStrategy[dict]:
    return st.builds(lambda value: {"value": float(value)}, st.integers(-2, 2))


def tree() -> st.SearchStrategy[dict]:
    def grow(child: st.SearchStrategy[dict]) -> st.SearchStrategy[dict]:
        split = {"feature": st.integers(0, 2), "threshold": st.integers(0, 3).map(lambda k: k + 0.5)}
        return st.fixed_dictionaries({**split, "left": child, "right": child})

    return st.recursive(leaf(), grow, max_leaves=5)


def ranked(model: TreeEnsemble, row: dict, cuts: dict, diversity: str) -> list[float]:
    """Costs of the best answer of each cell (or set of changed columns), by enumeration of the lattice."""
    best: dict[tuple, float] = {}
    for point in LATTICE:
        # A number moves to the nearest value of a cell; where no tree splits it, not at all.
        cell = tuple(sum(point[name] > cut for cut in cuts[name]) for name in COLUMNS)
        home = tuple(sum(row[name] > cut for cut in cuts[name]) for name in COLUMNS)
        inside = [name for name, c, h in zip(COLUMNS, cell, home, strict=True) if c == h and point[name] != row[name]]
        # By cells a move inside one is no other answer; by changed columns it is one.
        if any(diversity == "pool" or not cuts[name] for name in inside):
            continue
        if model.score([list(point.values())])[0] < 1.0:
            continue
        key = cell if diversity == "pool" else tuple(point[name] != row[name] for name in COLUMNS)
        cost = float(sum(abs(point[name] - row[name]) for name in COLUMNS))
        best[key] = min(cost, best.get(key, np.inf))
    return sorted(best.values())


@draws(40)
@given(
    trees=st.lists(tree(), min_size=1, max_size=2),
    row=st.sampled_from(LATTICE),
    diversity=st.sampled_from(["pool", "support"]),
    n=st.integers(2, 5),
    form=st.sampled_from(["ordered", "misic", "leaf"]),
)
def test_rank_by_rank_they_are_those_of_enumeration(trees: list, row: dict, diversity: str, n: int, form: str) -> None:
    model = TreeEnsemble(trees, n_inputs=3)
    if model.score([list(row.values())])[0] >= 1.0:
        return
    cuts: dict[str, set[float]] = {name: set() for name in COLUMNS}
    for each in model.trees:
        for feature, threshold in zip(each.feature.tolist(), each.threshold.tolist(), strict=True):
            if feature >= 0:
                cuts[list(COLUMNS)[feature]].add(threshold)

    result = ceopt.explain(
        model, row, SPACE, target=ceopt.AtLeast(1.0), n=n, cost=ceopt.L1(scale="none"), diversity=diversity,
        formulation=form,
    )  # fmt: skip

    expected = ranked(model, row, cuts, diversity)
    assert [answer.cost for answer in result] == pytest.approx(expected[:n])
    assert result.complete
    if 0 < len(expected) < n:
        assert "there are no more" in result.reason


@pytest.mark.parametrize("form", ["ordered", "misic", "leaf"])
def test_a_move_inside_a_cell_is_another_set_of_changed_columns(form: str) -> None:
    """The split on b beyond 1.5 decides nothing: to leave b's cell costs 2, to move inside it 1."""
    idle = {"feature": 1, "threshold": 1.5, "left": {"value": 1.0}, "right": {"value": 1.0}}
    model = TreeEnsemble([{"feature": 0, "threshold": 0.5, "left": {"value": 0.0}, "right": idle}], n_inputs=3)

    def asked(diversity: str, **options: object) -> list[tuple[float, tuple[str, ...]]]:
        words = {"target": ceopt.AtLeast(0.5), "cost": ceopt.L1(scale="none"), "n": 5, "formulation": form, **options}
        found = ceopt.explain(model, {"a": 0, "b": 0, "c": 0}, SPACE, diversity=diversity, **words)
        assert found.complete
        return [(answer.cost, answer.changed) for answer in found]

    assert asked("support") == [(1.0, ("a",)), (2.0, ("a", "b"))]
    assert asked("support", constraints=[ceopt.MaxChanges(1)]) == [(1.0, ("a",))]
    assert asked("pool") == [(1.0, ("a",)), (3.0, ("a", "b"))]


def test_a_move_inside_a_cell_needs_no_bound_and_is_a_thousandth_of_a_continuous_range() -> None:
    idle = {"feature": 1, "threshold": 1.5, "left": {"value": 1.0}, "right": {"value": 1.0}}
    model = TreeEnsemble([{"feature": 0, "threshold": 0.5, "left": {"value": 0.0}, "right": idle}])
    rate = ceopt.Feature("b", kind="continuous", lower=0.0, upper=100.0, direction="decreasing")
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer"), rate])

    found = ceopt.explain(
        model,
        {"a": 0, "b": 1.0},
        space,
        target=ceopt.AtLeast(0.5),
        cost=ceopt.L1(scale="none"),
        n=3,
        diversity="support",
    )

    assert [answer.cost for answer in found] == pytest.approx([1.0, 1.1])
    assert found.complete


@pytest.mark.parametrize("diversity", ["pool", "support"])
def test_fewer_are_the_first_of_more(diversity: str) -> None:
    """A budget from the starts once cut off columns in which answers may differ: asked for two, one came back."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"age": rng.integers(18, 80, 300), "wage": rng.normal(3000.0, 800.0, 300)})
    data["owner"] = rng.choice([True, False], 300)
    value = (data["wage"] - 3000) / 8 + 3 * (data["age"] - 40) + 80 * data["owner"]
    model = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=5, random_state=0)).fit(data, value)
    space = ceopt.FeatureSpace.infer(data, moves={"age": "any"})
    row = data.iloc[[int(np.argsort(model.predict(data))[60])]]

    costs = [
        [a.cost for a in ceopt.explain(model, row, space, target=ceopt.AtLeast(50.0), n=n, diversity=diversity)]
        for n in (1, 2, 3, 5)
    ]

    assert [len(found) for found in costs] == [1, 2, 3, 5]
    assert all(found == pytest.approx(costs[-1][: len(found)]) for found in costs)


def test_cells_that_decide_nothing_are_cells() -> None:
    """The split on b decides nothing: by cells it makes another answer, by distance it is not needed for one."""
    idle = {"feature": 1, "threshold": 1.5, "left": {"value": 1.0}, "right": {"value": 1.0}}
    model = TreeEnsemble([{"feature": 0, "threshold": 2.5, "left": {"value": 0.0}, "right": idle}], n_inputs=3)
    words = {"target": ceopt.AtLeast(0.5), "cost": ceopt.L1(scale="none"), "n": 5}
    row = {"a": 0, "b": 0, "c": 0}

    pool = ceopt.explain(model, row, SPACE, diversity="pool", **words)
    apart = ceopt.explain(model, row, SPACE, diversity=ceopt.Apart(3.0, cost=ceopt.L1(scale="none")), **words)

    assert [(a.cost, a.changed) for a in pool] == [(3.0, ("a",)), (5.0, ("a", "b"))]
    assert [a.cost for a in apart][:2] == [3.0, 6.0]
    assert pool.complete
    assert apart.complete


@pytest.mark.usefixtures("by_program")
def test_a_start_that_surely_is_another_answer_bounds_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    left = {"feature": 1, "threshold": 1.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    model = TreeEnsemble([{"feature": 0, "threshold": 2.5, "left": left, "right": {"value": 1.0}}], n_inputs=3)
    asked, run = [], ProgramSolver.run
    monkeypatch.setattr(ProgramSolver, "run", lambda self, ask, seconds: asked.append(ask) or run(self, ask, seconds))

    far = ceopt.Apart(9.0, cost=ceopt.L1(scale="none"))
    for diversity in ("pool", "support", "distinct", ceopt.Apart(2.0, cost="l0"), far):
        asked.clear()
        words = {"target": ceopt.AtLeast(0.5), "cost": ceopt.L1(scale="none"), "n": 2, "diversity": diversity}
        ceopt.explain(model, {"a": 0, "b": 0, "c": 0}, SPACE, **words)
        near = diversity != far
        assert [ask.budget for ask in asked] == [2.0, 3.0 if near else None], diversity
