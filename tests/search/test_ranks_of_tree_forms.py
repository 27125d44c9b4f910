"""Every form of trees gives the same ranks: those of enumeration, whatever rules read the numbers that trees split."""

from __future__ import annotations

from typing import Any

import enumeration as by_hand
import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from rules.found import half_of, kept

import ceopt
from ceopt import AllowedValues, Apart, Feature, FeatureSpace, Hull, IfThen, Linear, MaxChanges
from ceopt.formulations.predictors import TreeEnsemble

FORMS = ("ordered", "misic", "leaf")
N = 4
SPACE = FeatureSpace(
    [
        Feature("a", kind="integer", lower=0, upper=5),
        Feature("b", kind="integer", lower=0, upper=4, weight=(1.0, 2.0)),
        Feature("c", kind="continuous", lower=0.0, upper=2.0, step=0.5),
        Feature("job", kind="categorical", levels=(1, 2, 3)),
    ]
)
NUMBERS = {"a": 5, "b": 4, "c": 2}
POINTS = by_hand.product([by_hand.candidates(f, 0.0, []) for f in SPACE])
COSTS: list[tuple[Any, by_hand.Cost]] = [
    (ceopt.L1(scale="none"), by_hand.l1("none")),
    (ceopt.L0(), by_hand.l0),
    (ceopt.Linf(scale="none"), by_hand.linf("none")),
    (
        ceopt.L1(scale="none") + 0.25 * ceopt.Changes(),
        by_hand.total((1.0, by_hand.l1("none")), (0.25, by_hand.changes())),
    ),
    (ceopt.L2(scale="none", squared=True), by_hand.l2_squared("none")),
]
DISTANCES = {"l1": by_hand.l1(), "l0": by_hand.l0, "linf": by_hand.linf()}


# ---- questions ------------------------------------------------------------------------------------------------------
@st.composite
def trees(draw: Any, depth: int) -> dict[str, Any]:
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return {"value": float(draw(st.integers(-2, 2)))}
    j = draw(st.sampled_from([0, 0, 1, 1, 2, 3]))
    at = draw(st.integers(1, 3)) + 0.5 if j != 2 else draw(st.sampled_from([0.25, 0.75, 1.25]))
    return {"feature": j, "threshold": at, "left": draw(trees(depth - 1)), "right": draw(trees(depth - 1))}


@st.composite
def linear_rules(draw: Any) -> Linear:
    names = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2, unique=True))
    weights = {name: float(draw(st.sampled_from([-2, -1, 1, 3]))) for name in names}
    return Linear(weights, draw(st.sampled_from(["<=", ">="])), draw(st.integers(-6, 8)) + 0.25)


@st.composite
def conditions(draw: Any) -> tuple[str, str, Any]:
    name = draw(st.sampled_from(list(NUMBERS)))
    op = draw(st.sampled_from(["<=", ">=", "==", "changed"]))
    return (name, op, draw(st.booleans()) if op == "changed" else draw(st.integers(0, NUMBERS[name])))


@st.composite
def rules(draw: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    words = st.sampled_from(["linear", "if", "values", "changes", "hull"])
    for word in sorted(draw(st.lists(words, min_size=1, max_size=2, unique=True))):
        match word:
            case "linear":
                found.append(draw(linear_rules()))
            case "if":
                one, other = draw(conditions()), draw(conditions())
                found.append(IfThen(one, other if other[0] != one[0] else ("job", "==", 2)))
            case "values":
                name = draw(st.sampled_from(list(NUMBERS)))
                values = st.integers(0, NUMBERS[name])
                found.append(AllowedValues({name: sorted(draw(st.sets(values, min_size=2, max_size=4)))}))
            case "changes":
                found.append(MaxChanges(draw(st.integers(1, 3))))
            case _:
                found.append(draw(hulls()))
    return tuple(found)


@st.composite
def hulls(draw: Any, *, clusters: bool = False) -> Hull:
    places = draw(st.lists(st.integers(0, len(POINTS) - 1), min_size=4, max_size=7, unique=True))
    rows = SPACE.frame([dict(zip(SPACE.names, POINTS[k].tolist(), strict=True)) for k in places])
    groups = [k % 2 for k in range(len(rows))] if clusters else None
    return Hull(rows, radius=draw(st.sampled_from([0.3, 0.7])), clusters=groups)


# ---- the answers by hand --------------------------------------------------------------------------------------------
def thresholds(model: TreeEnsemble, j: int) -> list[float]:
    return sorted({float(t) for tree in model.trees for t in tree.threshold[tree.feature == j]})


def ends(given: Any, name: str) -> list[float]:
    """Places between the cells that a rule makes of a column: no value lies on them."""
    match given:
        case AllowedValues():
            return [v + d for v in given.values.get(name, ()) for d in (-0.25, 0.25)]
        case IfThen():
            cuts = {"<=": (0.25,), ">=": (-0.25,), "==": (-0.25, 0.25), "changed": ()}
            parts = [part for part in (given.condition, given.conclusion) if part[0] == name]
            return [part[2] + d for part in parts for d in cuts[part[1]]]
    return []


def has_row(given: Any, name: str) -> bool:
    """Tell whether a rule needs the number itself, and not a cell of it alone."""
    match given:
        case Linear():
            return name in given.coefficients
        case Hull():
            return True
        case IfThen():  # that it surely stays, or surely moves
            return given.condition == (name, "changed", False) or given.conclusion == (name, "changed", True)
    return False


def keys(model: TreeEnsemble, known: Any, home: Any, diversity: str) -> tuple[Any, NDArray[np.bool_]]:
    """Return what tells two answers apart, (n, m), and which points no column leaves that nothing reads."""
    found, stays = [], np.ones(len(POINTS), dtype=bool)
    for j, feature in enumerate(SPACE):
        values, moved = POINTS[:, j], POINTS[:, j] != home[j]
        if feature.is_finite:
            found.append(moved if diversity == "support" else values)
            continue
        places = sorted({*thresholds(model, j), *(end for rule in known for end in ends(rule, feature.name))})
        cell, own = np.searchsorted(places, values), np.searchsorted(places, home[j])
        is_read = any(has_row(rule, feature.name) for rule in known)
        if not is_read and not places:
            stays &= ~moved
        if diversity == "support":
            found.append(moved)
        else:
            found += [cell, moved & (cell == own) & is_read]
    return np.array(found, dtype=float).T, stays


def agrees(result: Any, model: TreeEnsemble, home: Any, known: Any, cost: by_hand.Cost, diversity: Any) -> list[float]:
    """Hold each rank against the cheapest point that differs from all before it, as the contract words it."""
    left = (model.score(by_hand.identity(SPACE, POINTS)) >= 1.0) & kept(known, SPACE, home, POINTS)
    costs = np.broadcast_to(cost(by_hand.Moves(SPACE, POINTS - home)), len(POINTS))
    key = None
    if diversity in ("pool", "support"):
        key, stays = keys(model, known, home, diversity)
        left = left & stays
    had: set[Any] = set()
    for answer in result:
        assert left.any(), f"rank {answer.rank}: {answer.cost}, by hand there is none"
        assert answer.cost == pytest.approx(costs[left].min(), rel=1e-6, abs=1e-6), f"rank {answer.rank}"
        point = np.array([SPACE[name].to_coordinate(answer.values[name]) for name in SPACE.names])
        place = int(np.flatnonzero((point == POINTS).all(axis=1))[0])
        assert left[place], f"rank {answer.rank} is none that differs"
        if key is not None:
            left = left & (key != key[place]).any(axis=1)
        elif diversity == "clusters":
            had.add(answer.cluster)
            (hull,) = (rule for rule in known if isinstance(rule, Hull))
            left = left & half_of("Hull").near_clusters(hull, SPACE, POINTS, had)
        elif diversity == "distinct":
            left = left & by_hand.distinct(SPACE, home, point, POINTS)
        else:
            apart = DISTANCES[diversity.cost](by_hand.Moves(SPACE, POINTS - point))
            left = left & (np.broadcast_to(apart, len(POINTS)) >= diversity.least * (1 - 1e-6))
    if len(result) < N:
        assert not left.any(), f"after {len(result)} another costs {costs[left].min()}"
    assert result.complete
    return [answer.cost for answer in result]


def check(forest: list[Any], home: Any, known: Any, cost: Any, diversity: Any) -> None:
    model = TreeEnsemble(forest, n_inputs=4)
    if model.score(by_hand.identity(SPACE, home[None, :]))[0] >= 1.0:
        return
    row = SPACE.frame([dict(zip(SPACE.names, home.tolist(), strict=True))])
    for form in FORMS:
        found = ceopt.explain(
            model, row, SPACE, target=ceopt.AtLeast(1.0), cost=cost[0], constraints=known, n=N, diversity=diversity,
            formulation=form,
        )  # fmt: skip
        costs = agrees(found, model, home, known, cost[1], diversity)
        if diversity == "distinct":
            assert costs == pytest.approx(distinct_costs(model, home, known, cost[1]), rel=1e-6, abs=1e-6)


def distinct_costs(model: TreeEnsemble, home: Any, known: Any, cost: by_hand.Cost) -> list[float]:
    """Return the costs of the ranks, which no tie changes."""
    good = (model.score(by_hand.identity(SPACE, POINTS)) >= 1.0) & kept(known, SPACE, home, POINTS)
    costs = np.broadcast_to(cost(by_hand.Moves(SPACE, POINTS - home)), len(POINTS))
    return by_hand.distinct_costs(SPACE, home, POINTS[good], costs[good], N)


#: Decides by a; what b is says which of two values is reached, both of them good.
SPLIT_ON_B = {"feature": 1, "threshold": 3.5, "left": {"value": 1.0}, "right": {"value": 2.0}}
BY_A = {"feature": 0, "threshold": 0.5, "left": {"value": 0.0}, "right": SPLIT_ON_B}
FORESTS = st.lists(trees(3), min_size=1, max_size=2)
HOMES = st.sampled_from(POINTS.tolist()).map(np.array)


@pytest.mark.long
@draws(40)
@given(forest=FORESTS, home=HOMES, known=rules(), cost=st.sampled_from(COSTS), how=st.sampled_from(["pool", "support"]))
@example([BY_A], np.array([0.0, 1.0, 0.0, 0.0]), (Linear({"b": 1.0, "c": -2.0}, "<=", 4.25),), COSTS[0], "pool")
@example([BY_A], np.array([0.0, 2.0, 0.5, 1.0]), (IfThen(("c", ">=", 2), ("job", "==", 2)),), COSTS[0], "support")
def test_cells_and_changed_columns(forest: Any, home: Any, known: Any, cost: Any, how: str) -> None:
    check(forest, home, known, cost, how)


@draws(40)
@given(forest=FORESTS, home=HOMES, known=rules(), cost=st.sampled_from(COSTS))
def test_distinct_columns_and_ways(forest: Any, home: Any, known: Any, cost: Any) -> None:
    check(forest, home, known, cost, "distinct")


@draws(8)
@given(
    forest=FORESTS,
    home=HOMES,
    known=rules(),
    cost=st.sampled_from(COSTS),
    how=st.builds(Apart, st.sampled_from([0.5, 1.0, 1.5]), cost=st.sampled_from(["l0", "l1", "linf"])),
)
def test_distances(forest: Any, home: Any, known: Any, cost: Any, how: Any) -> None:
    check(forest, home, known, cost, how)


@pytest.mark.long
@draws(8)
@given(
    forest=FORESTS,
    home=HOMES,
    hull=hulls(clusters=True),
    known=rules().map(lambda found: [rule for rule in found if not isinstance(rule, Hull)]),
    cost=st.sampled_from(COSTS),
)
def test_clusters(forest: Any, home: Any, hull: Any, known: Any, cost: Any) -> None:
    check(forest, home, (*known, hull), cost, "clusters")


def ranks(tree: Any, row: dict[str, Any], form: str, **options: Any) -> list[float]:
    """Return the costs of up to three answers; moves of b cost the same both ways, the job stays."""
    space = SPACE.update("b", weight=1.0).update("job", mutable=False)
    words = {"target": ceopt.AtLeast(1.0), "cost": ceopt.L1(scale="none"), "n": 3, "formulation": form}
    words |= {"diversity": "pool", **options}
    found = ceopt.explain(TreeEnsemble([tree], n_inputs=4), {"c": 0.0, "job": 1, **row}, space, **words)
    assert found.complete
    return [answer.cost for answer in found]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tied", [False, True])
def test_a_move_inside_a_cell_counts_where_a_rule_reads_the_number(form: str, tied: bool) -> None:
    """The tree splits b at 3.5 and the person is at 1: to leave the cell costs 3, to move inside it 1."""
    rules = [Linear({"a": 1.0, "b": 1.0}, "<=", 100.0)] if tied else []

    found = ranks(BY_A, {"a": 0, "b": 1}, form, constraints=rules)

    assert found == pytest.approx([1.0, 2.0, 4.0] if tied else [1.0, 4.0])


@pytest.mark.parametrize("form", FORMS)
def test_by_changed_columns_a_move_inside_the_cell_of_a_rule_counts(form: str) -> None:
    tree = BY_A | {"right": {"value": 1.0}}
    rules = [IfThen(("b", ">=", 3), ("job", "==", 1))]

    found = ranks(tree, {"a": 0, "b": 1}, form, constraints=rules, diversity="support")

    assert found == pytest.approx([1.0, 2.0])


@pytest.mark.parametrize("form", FORMS)
def test_by_changed_columns_a_cell_beside_the_person_is_nearer_than_the_least_move(form: str) -> None:
    """The tree splits income 0.004 below the person, on the other branch only; the least move is 0.01."""
    space = FeatureSpace(
        [Feature("income", kind="continuous", lower=0, upper=10), Feature("job", kind="binary", levels=(0, 1))]
    )
    poor = {"feature": 0, "threshold": 2.996, "left": {"value": -2.0}, "right": {"value": -1.0}}
    tree = {"feature": 1, "threshold": 0.5, "left": poor, "right": {"value": 1.0}}

    found = ceopt.explain(
        TreeEnsemble([tree], n_inputs=2), {"income": 3.0, "job": 0}, space, target=ceopt.AtLeast(1.0),
        cost=ceopt.L1(scale="none"), n=2, diversity="support", formulation=form,
    )  # fmt: skip

    assert [answer.cost for answer in found] == pytest.approx([1.0, 1.004], abs=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_jumps_of_a_cost_make_no_other_answer(form: str) -> None:
    """People live at every value of b: each of its values has another price, and one cell of the tree has four."""
    people = pd.DataFrame({"a": [0, 1, 2, 3], "b": [0, 1, 2, 3], "c": 0.0, "job": 1})
    cost = ceopt.Percentile("max", people)

    found = ranks(BY_A, {"a": 0, "b": 0}, form, cost=cost, diversity="pool")

    assert found == pytest.approx([1 / 6, 3 / 6])
