"""The rows that each block emits are those of its docstring."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyomo.environ as pyo
import pytest
from rowtext import rows, text, variables

from ceopt.formulations import Factual, Reaches, embed, impose
from ceopt.formulations.columns import Price
from ceopt.formulations.constraints import Hull, Linear, MaxChanges
from ceopt.formulations.constraints.diversity.apart import Apart
from ceopt.formulations.constraints.diversity.distinct import Distinct
from ceopt.formulations.constraints.diversity.diversity import (
    AbstractDiversity,
    OtherCluster,
    OtherDecisions,
    OtherSupport,
)
from ceopt.formulations.costs import L0, L1, L2, Changes, Linf
from ceopt.formulations.linear_form import LinearForm
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.formulations.recourse_program import RecourseProgram
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.targets import AtLeast, AtMost, Between, OtherThan, Probability
from ceopt.solvers import model_summary
from ceopt.solvers.manifest import feature_of

AGE = Feature("age", kind="integer", lower=18, upper=90)
JOB = Feature("job", kind="categorical", levels=(10, 30, 20), weight=4.0)
SIZE = Feature("size", kind="ordinal", levels=("S", "M", "L"), weight=(1.0, 5.0))
HOME = Feature("home", kind="binary", levels=("rent", "own"))
WAGE = Feature("wage", kind="continuous", lower=0, upper=9, weight=(2.0, 3.0))

#: age <= 37.5 | age <= 50.2: leaves 1, 3 and 4; age becomes 37 | 38 .. 50 | 51.
BY_AGE = {
    "feature": 0,
    "threshold": 37.5,
    "left": {"value": -1.0},
    "right": {"feature": 0, "threshold": 50.2, "left": {"value": 2.0}, "right": {"value": 4.0}},
}


def at(space: list[Feature], **row: Any) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(FeatureSpace(space), row)
    return m


def aged(age: int, formulation: str = "ordered") -> Any:
    m = at([AGE], age=age)
    m.p = embed(TreeEnsemble([BY_AGE]), m.x, formulation=formulation)
    return m


# ---- coordinates ----------------------------------------------------------------------------------------------------
def test_a_category_takes_one_level() -> None:
    m = at([JOB], job=30)
    assert rows(m) == ["+1 level[job,10] +1 level[job,20] +1 level[job,30] = 1"]
    assert set(variables(m).values()) == {"Binary [0, 1]"}
    assert text(m.x.changed["job"]) == "-1 level[job,30] +1"
    assert text(m.x.is_level["job", 20]) == "+1 level[job,20]"


def test_levels_are_ordered() -> None:
    m = at([SIZE, HOME], size="M", home="own")
    assert rows(m) == ["-1 at_least[size,L] +1 at_least[size,M] >= 0"]
    assert text(m.x.raw["size"]) == "+1 at_least[size,L] +1 at_least[size,M]"
    assert text(m.x.raw["home"]) == "+1 level[home,own]"
    assert text(m.x.is_level["size", "M"]) == "-1 at_least[size,L] +1 at_least[size,M]"
    assert text(m.x.is_level["size", "S"]) == "-1 at_least[size,M] +1"
    assert text(m.x.changed["size"]) == "+1 at_least[size,L] -1 at_least[size,M] +1"
    assert text(m.x.changed["home"]) == "-1 level[home,own] +1"
    assert text(m.x.n_changed) == "+1 at_least[size,L] -1 at_least[size,M] -1 level[home,own] +2"
    assert variables(m) == dict.fromkeys(["at_least[size,M]", "at_least[size,L]", "level[home,own]"], "Binary [0, 1]")


def test_levels_out_of_reach_have_no_variable() -> None:
    up, down = (
        Feature("size", kind="ordinal", levels=("S", "M", "L"), direction=d) for d in ("increasing", "decreasing")
    )
    fixed = Feature("job", kind="categorical", levels=(1, 2), mutable=False)
    m = at([up, fixed], size="M", job=2)
    assert list(variables(m)) == ["at_least[size,L]"]
    assert text(m.x.raw["size"]) == "+1 at_least[size,L] +1"
    assert [pyo.value(m.x.is_level[key]) for key in (("size", "S"), ("job", 2), ("job", 1))] == [0, 1, 0]
    assert rows(m) == []
    m = at([down], size="M")
    assert list(variables(m)) == ["at_least[size,M]"]


def test_cuts_are_ordered_and_need_no_coordinate() -> None:
    m = aged(35)
    assert rows(m.x) == ["+1 cut[age,'37'] -1 cut[age,'50'] >= 0"]
    assert variables(m.x) == {"cut[age,'37']": "Binary [0, 1]", "cut[age,'50']": "Binary [0, 1]"}
    assert text(m.x.changed["age"]) == "+1 cut[age,'37']"
    m = aged(40)
    assert text(m.x.changed["age"]) == "-1 cut[age,'37'] +1 cut[age,'50'] +1"
    m = aged(60)
    assert text(m.x.changed["age"]) == "-1 cut[age,'50'] +1"


def test_a_coordinate_is_linked_to_the_cuts() -> None:
    m = aged(35)
    assert text(m.x.raw["age"]) == "+1 x[age]"
    assert variables(m.x)["x[age]"] == "Integers [18, 90]"
    assert rows(m.x, "left_end", "right_end") == [
        "-13 cut[age,'37'] -40 cut[age,'50'] +1 x[age] <= 37",
        "-20 cut[age,'37'] -13 cut[age,'50'] +1 x[age] >= 18",
    ]


def test_links_grow_with_the_cuts() -> None:
    m = at([AGE], age=35)
    assert text(m.x.raw["age"]) == "+1 x[age]"
    assert rows(m) == []
    m.p = embed(TreeEnsemble([BY_AGE]), m.x)
    assert rows(m.x) == rows_of_raw_after_trees()


def rows_of_raw_after_trees() -> list[str]:
    m = aged(35)
    assert m.x.raw["age"] is not None
    return rows(m.x)


@pytest.mark.parametrize(
    ("age", "floors"),
    [
        (35, ["+1 down[age] >= 0", "-3 cut[age,'37'] -13 cut[age,'50'] +1 up[age] >= 0"]),
        (60, ["+1 up[age] >= 0", "+13 cut[age,'37'] +10 cut[age,'50'] +1 down[age] >= 23"]),
    ],
)
def test_moves_and_their_floors(age: int, floors: list[str]) -> None:
    m = aged(age)
    m.x.coordinate("age").moves()
    assert rows(m.x, "move") == [f"+1 down[age] -1 up[age] +1 x[age] = {age}"]
    assert sorted(rows(m.x, "up_floor", "down_floor")) == sorted(floors)
    assert variables(m.x)["up[age]"] == "NonNegativeReals [0, inf]"
    assert variables(m.x)["down[age]"] == "NonNegativeReals [0, inf]"


def test_a_move_one_way_has_no_room_the_other_way() -> None:
    m = at([Feature("a", kind="continuous", upper=9, direction="increasing")], a=2.0)
    m.x.coordinate("a").moves()
    assert variables(m) == {
        "x[a]": "Reals [2, 9]",
        "up[a]": "NonNegativeReals [0, inf]",
        "down[a]": "NonNegativeReals [0, 0]",
    }


@pytest.mark.parametrize(
    ("age", "floor"),
    [(35, "-1 cut[age,'37'] +1 moved[age] >= 0"), (40, "+1 cut[age,'37'] -1 cut[age,'50'] +1 moved[age] >= 1")],
)
def test_moved_permits_a_move(age: int, floor: str) -> None:
    m = aged(age)
    assert m.x.raw["age"] is not None
    assert text(m.x.changed["age"]) == "+1 moved[age]"
    assert rows(m.x, "moved_up", "moved_down") == [
        f"+1 down[age] -{age - 18} moved[age] <= 0", f"-{90 - age} moved[age] +1 up[age] <= 0"
    ]  # fmt: skip
    assert rows(m.x, "moved_floor") == [floor]
    assert variables(m.x)["moved[age]"] == "Binary [0, 1]"


def test_a_sure_move_leaves_the_cell_or_is_the_least() -> None:
    m = aged(35)
    assert m.x.raw["age"] is not None
    m.x.coordinate("age").changed_form()
    form = m.x.coordinate("age").surely_changed_form()
    assert text(form.expression()) == "+1 surely[age,down] +1 surely[age,up]"
    assert rows(m.x, "most", "least", "one_direction") == [
        "+1 cut[age,'37'] +1 down[age] -1 surely[age,down] >= 0",
        "+1 cut[age,'37'] -1 surely[age,up] +1 up[age] >= 0",
        "+1 direction[age,down] +1 direction[age,up] -1 moved[age] = 0",
        "-17 direction[age,down] +1 down[age] <= 0",
        "-55 direction[age,up] +1 up[age] <= 0",
    ]


def test_a_move_across_a_cut_has_its_direction() -> None:
    m = aged(40)
    assert m.x.raw["age"] is not None
    assert m.x.coordinate("age").surely_changed_form().terms
    assert rows(m.x, "sided") == [
        "+1 cut[age,'50'] -1 direction[age,up] <= 0", "-1 cut[age,'37'] -1 direction[age,down] <= -1"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("feature", "least"),
    [
        (Feature("a", kind="continuous", lower=0, upper=5), "0.005"),
        (Feature("a", kind="continuous", lower=0, upper=5, step=0.5), "0.5"),
        (Feature("a", kind="integer", lower=0, upper=6, step=2), "2"),
    ],
)
def test_the_least_move_that_counts(feature: Feature, least: str) -> None:
    m = at([feature], a=2)
    assert m.x.raw["a"] is not None
    assert m.x.coordinate("a").surely_changed_form().terms
    assert f"-{least} surely[a,up] +1 up[a] >= 0" in rows(m.x, "least")


def test_claims_and_cuts_take_one_side() -> None:
    """Leaves 1, 3 and 4 claim ages up to 37, from 38 to 50, and from 51: each is left or right of a cut at 37."""
    m = aged(35, "leaf")
    assert text(m.x.coordinate("age").at_most(37.0).expression()) == "-1 cut[age,'37'] +1"
    assert rows(m.x, "claimed") == [
        "+1 cut[age,'37'] +1 leaf[0,1] <= 1", "-1 cut[age,'37'] +1 leaf[0,3] <= 0", "-1 cut[age,'37'] +1 leaf[0,4] <= 0"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("down", "up", "domain", "expected"),
    [
        (2.0, 2.0, "Reals [-inf, inf]", ["+1 length[wage,2.0,2.0] -2 x[wage] = -8"]),
        (2.0, 3.0, "Reals [0, inf]", [
            "+1 length[wage,2.0,3.0] +2 x[wage] >= 8", "+1 length[wage,2.0,3.0] -3 x[wage] >= -12"
        ]),
    ],
)  # fmt: skip
def test_a_length_is_the_move_in_units_of_a_cost(down: float, up: float, domain: str, expected: list[str]) -> None:
    m = at([WAGE], wage=4.0)
    assert m.x.raw["wage"] is not None
    m.x.coordinate("wage").price(Price("length", down, up))
    assert rows(m.x, "length_of") == expected
    assert variables(m.x)[f"length[wage,{down},{up}]"] == domain


def test_steps_from_the_factual() -> None:
    m = at([Feature("a", kind="continuous", lower=0, upper=2, step=0.25)], a=0.6)
    assert text(m.x.raw["a"]) == "+1 x[a]"
    assert rows(m) == ["-0.25 steps[a] +1 x[a] = 0.6"]
    assert variables(m) == {"x[a]": "Reals [0.1, 1.85]", "steps[a]": "Integers [-2, 5]"}


# ---- trees ----------------------------------------------------------------------------------------------------------
def test_trees_by_ordered_cuts() -> None:
    m = aged(35)
    assert rows(m.p) == [
        "+1 cut[age,'37'] +1 leaf[0,1] <= 1",
        "+1 cut[age,'50'] +1 leaf[0,1] +1 leaf[0,3] <= 1",
        "+1 leaf[0,1] +1 leaf[0,3] +1 leaf[0,4] = 1",
        "-1 cut[age,'37'] +1 leaf[0,3] +1 leaf[0,4] <= 0",
        "-1 cut[age,'50'] +1 leaf[0,4] <= 0",
    ]
    assert set(variables(m.p).values()) == {"NonNegativeReals [0, 1]"}
    assert text(m.p.score.expr) == "+3 leaf[0,3] +5 leaf[0,4] -1"
    assert not m.x.x


def test_trees_by_misic() -> None:
    m = aged(35, "misic")
    assert rows(m.p, "increasing") == ["-1 q[age,'37.0'] +1 q[age,'50.0'] >= 0"]
    assert rows(m.p, "left", "right") == [
        "+1 leaf[0,1] -1 q[age,'37.0'] <= 0",
        "+1 leaf[0,3] +1 leaf[0,4] +1 q[age,'37.0'] <= 1",
        "+1 leaf[0,3] -1 q[age,'50.0'] <= 0",
        "+1 leaf[0,4] +1 q[age,'50.0'] <= 1",
    ]
    assert rows(m.p, "not_above", "not_below") == [
        "+20 q[age,'37.0'] +1 x[age] >= 38",
        "+33 q[age,'50.0'] +1 x[age] >= 51",
        "+40 q[age,'50.0'] +1 x[age] <= 90",
        "+53 q[age,'37.0'] +1 x[age] <= 90",
    ]
    assert rows(m.p, "one_leaf") == ["+1 leaf[0,1] +1 leaf[0,3] +1 leaf[0,4] = 1"]
    assert {name: kind for name, kind in variables(m.p).items() if name[0] == "q"} == {
        "q[age,'37.0']": "Binary [0, 1]", "q[age,'50.0']": "Binary [0, 1]"
    }  # fmt: skip


def test_trees_by_leaves() -> None:
    m = aged(35, "leaf")
    assert rows(m.p) == [
        "+1 leaf[0,1] +1 leaf[0,3] +1 leaf[0,4] = 1",
        "+40 leaf[0,3] +1 x[age] <= 90",
        "+53 leaf[0,1] +1 x[age] <= 90",
        "-20 leaf[0,3] +1 x[age] >= 18",
        "-33 leaf[0,4] +1 x[age] >= 18",
    ]
    assert set(variables(m.p).values()) == {"Binary [0, 1]"}


def test_moves_forced_by_another_forms_binaries_count() -> None:
    m = aged(35, "misic")
    L0().build(m.x)
    assert rows(m.x, "moved_claim") == [
        "+1 moved[age] +1 q[age,'37.0'] >= 1", "+1 moved[age] +1 q[age,'50.0'] >= 1"
    ]  # fmt: skip
    m = at([AGE], age=35)
    L0().build(m.x)
    assert m.x.raw["age"] is not None
    m.p = embed(TreeEnsemble([BY_AGE]), m.x, formulation="leaf")
    assert rows(m.x, "moved_claim") == ["-1 leaf[0,3] +1 moved[age] >= 0", "-1 leaf[0,4] +1 moved[age] >= 0"]


@pytest.mark.parametrize(
    ("formulation", "expected"),
    [
        ("ordered", ["+1 leaf[0,1] -1 level[job,10] <= 0", "+1 leaf[0,2] +1 level[job,10] <= 1"]),
        ("misic", ["+1 leaf[0,1] -1 level[job,10] <= 0", "+1 leaf[0,2] +1 level[job,10] <= 1"]),
        ("leaf", ["+1 leaf[0,1] -1 level[job,10] <= 0", "+1 leaf[0,2] -1 level[job,20] -1 level[job,30] <= 0"]),
    ],
)
def test_splits_on_levels(formulation: str, expected: list[str]) -> None:
    m = at([JOB], job=30)
    stump = {"feature": 0, "threshold": 15.0, "left": {"value": 1.0}, "right": {"value": 0.0}}
    m.p = embed(TreeEnsemble([stump]), m.x, formulation=formulation)
    assert rows(m.p, "left", "right", "admits") == expected


def test_scores_of_a_forest_are_means_from_each_trees_least_leaf() -> None:
    m = at([AGE], age=35)
    trees = [
        BY_AGE,
        {"value": 3.0},
        {"feature": 0, "threshold": 37.5, "left": {"value": 1.0}, "right": {"value": -1.0}},
    ]
    m.p = embed(TreeEnsemble(trees, 2.0, divisor=2, labels=("no", "yes")), m.x)
    assert text(m.p.score["yes"]) == "+1.5 leaf[0,3] +2.5 leaf[0,4] +1 leaf[2,1] +1.5"
    assert text(m.p.score["no"]) == "+2.5 leaf[0,1] +1 leaf[0,3] +1 leaf[2,2] -5"


def test_a_tree_of_one_value_is_a_constant_and_equal_cuts_are_one_binary() -> None:
    same = {"feature": 0, "threshold": 50.2, "left": {"value": 2.0}, "right": {"value": 2.0}}
    tree = {"feature": 0, "threshold": 37.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    m = at([AGE], age=35)
    m.p = embed(TreeEnsemble([tree, BY_AGE | {"threshold": 37.1}, same]), m.x)
    assert sorted(variables(m.p)) == ["leaf[0,1]", "leaf[0,2]", "leaf[1,1]", "leaf[1,3]", "leaf[1,4]"]
    assert sorted(variables(m.x)) == ["cut[age,'37']", "cut[age,'50']"]


# ---- decisions ------------------------------------------------------------------------------------------------------
def line(target: Any, margin: float = 0.25, *, low: float = 0.0, **options: Any) -> Any:
    m = at(
        [Feature("a", kind="continuous", lower=low, upper=9), Feature("b", kind="continuous", lower=0, upper=9)],
        a=1,
        b=1,
    )
    m.p = embed(Affine([1.0, -2.0], 0.5, **options), m.x)
    m.v = Reaches(m.p, target, margin=margin)
    return m


LABELS = {"labels": ("no", "yes")}


@pytest.mark.parametrize(
    ("target", "options", "expected"),
    [
        ("yes", LABELS, ["+1 x[a] -2 x[b] >= -0.25"]),
        ("no", LABELS, ["-1 x[a] +2 x[b] >= 0.75"]),
        (OtherThan("yes"), LABELS, ["-1 x[a] +2 x[b] >= 0.75"]),
        (AtLeast(3), {}, ["+1 x[a] -2 x[b] >= 2.75"]),
        (AtMost(3), {}, ["+1 x[a] -2 x[b] <= 2.25"]),
        (Between(1, 3), {}, ["+1 x[a] -2 x[b] <= 2.25", "+1 x[a] -2 x[b] >= 0.75"]),
        (Probability("yes", 0.8), LABELS | {"probability": "logistic"}, ["+1 x[a] -2 x[b] >= 1.136294361"]),
        (Probability("no", 0.8), LABELS | {"probability": "logistic"}, ["-1 x[a] +2 x[b] >= 2.136294361"]),
    ],
)
def test_one_score_reaches(target: Any, options: Any, expected: list[str]) -> None:
    assert rows(line(target, **options).v) == expected  # log(0.8 / 0.2) = 1.386294361


def three(target: Any, margin: float = 0.25) -> Any:
    m = at([Feature("a", kind="continuous", lower=0, upper=9), HOME], a=1, home="rent")
    m.p = embed(Affine([[1, 0], [2, 3], [0, -1]], [0, 1, 5], labels=("x", "y", "z")), m.x)
    m.v = Reaches(m.p, target, margin=margin)
    return m


def test_several_scores_beat_each_rival() -> None:
    m = three("y")
    assert rows(m.v) == ["+3 level[home,own] +1 x[a] >= -0.75", "+4 level[home,own] +2 x[a] >= 4.25"]
    assert variables(m.v) == {}
    assert text(m.p.score["z"]) == "-1 level[home,own] +5"


def test_one_of_several_labels_wins_with_the_least_big_m() -> None:
    """x - z = a + own - 5 is at least -5, so M = 0.25 + 5; y - z = 2 a + 4 own - 4 is at least -4, so M = 4.25."""
    m = three({"x", "y"})
    assert rows(m.v) == [
        "+1 level[home,own] -5.25 wins[x] +1 x[a] >= 0",
        "+1 wins[x] +1 wins[y] = 1",
        "+4 level[home,own] -4.25 wins[y] +2 x[a] >= 0",
    ]
    assert variables(m.v) == {"wins[x]": "Binary [0, 1]", "wins[y]": "Binary [0, 1]"}
    assert rows(three(OtherThan("z")).v) == rows(m.v)


def test_big_m_of_trees_is_the_extreme_of_each_trees_leaves() -> None:
    m = at([AGE], age=35)
    values = {"left": {"value": [3.0, 0, 0]}, "right": {"value": [0.0, 2, 1]}}
    tree = {"feature": 0, "threshold": 37.5, **values}
    m.p = embed(TreeEnsemble([tree, tree], labels=("x", "y", "z")), m.x)
    m.v = Reaches(m.p, {"y", "z"}, margin=0.5)
    assert rows(m.v) == [  # y - x is -3 or 2 in each tree, z - x is -3 or 1
        "+1 wins[y] +1 wins[z] = 1",
        "+4 leaf[0,2] +4 leaf[1,2] -6.5 wins[z] >= 0",
        "+5 leaf[0,2] +5 leaf[1,2] -6.5 wins[y] >= 0",
    ]
    m.mean = embed(TreeEnsemble([tree, tree], 1.0, divisor=2, labels=("x", "y", "z")), m.x)
    m.w = Reaches(m.mean, {"y", "z"}, margin=0.5)
    assert rows(m.w)[1:] == [
        "+2 leaf[0,2] +2 leaf[1,2] -3.5 wins[z] >= 0",
        "+2.5 leaf[0,2] +2.5 leaf[1,2] -3.5 wins[y] >= 0",
    ]


def test_a_label_of_two_shares_needs_half() -> None:
    tree = {"feature": 0, "threshold": 37.5, "left": {"value": [1.0, 0.0]}, "right": {"value": [0.25, 0.75]}}
    m = at([AGE], age=35)
    m.p = embed(TreeEnsemble([tree], labels=("no", "yes"), probability="share"), m.x)
    m.label, m.level = Reaches(m.p, "yes", margin=0.125), Reaches(m.p, Probability("yes", 0.6), margin=0.125)
    assert rows(m.label) == ["+0.75 leaf[0,2] >= 0.625"]  # (P(yes) - P(no)) / 2 = P(yes) - 1/2
    assert rows(m.level) == ["+0.75 leaf[0,2] >= 0.725"]


def test_a_decision_without_variables_holds_or_cannot() -> None:
    m = at([Feature("a", kind="continuous", mutable=False)], a=1.0)
    m.p = embed(Affine([1.0], 0.0, labels=("no", "yes")), m.x)
    m.holds, m.fails = Reaches(m.p, "yes", margin=0.5), Reaches(m.p, "no", margin=0.5)
    assert rows(m.holds) == []
    assert rows(m.fails) == ["+1 impossible >= 1.5"]
    assert variables(m.fails) == {"impossible": "Reals [0, 0]"}


# ---- costs ----------------------------------------------------------------------------------------------------------
MIXED = [AGE, JOB, SIZE, HOME, WAGE]


def mixed() -> Any:
    return at(MIXED, age=35, job=30, size="M", home="own", wage=4.0)


def test_l0_is_linear_in_the_decisions() -> None:
    m = aged(40)
    assert text(L0().build(m.x)) == "-1 cut[age,'37'] +1 cut[age,'50'] +1"
    m = at([JOB, SIZE, HOME], job=30, size="M", home="own")
    job, size, home = (
        "+4 level[job,10] +4 level[job,20]",
        "+5 at_least[size,L] -1 at_least[size,M]",
        "-1 level[home,own]",
    )
    assert text(L0().build(m.x)) == f"{size} {home} {job} +2"


def test_another_category_is_a_move_up() -> None:
    m = at([Feature("job", kind="categorical", levels=(1, 2, 3), weight=(2.0, 5.0))], job=2)
    assert text(L1().build(m.x)) == "+5 level[job,1] +5 level[job,3]"


def test_l0_with_a_weight_per_direction() -> None:
    m = at([WAGE], wage=4.0)
    assert m.x.raw["wage"] is not None
    assert text(L0().build(m.x)) == "+2 direction[wage,down] +3 direction[wage,up]"
    assert rows(m.x, "one_direction", "most") == [
        "+1 direction[wage,down] +1 direction[wage,up] -1 moved[wage] = 0",
        "-4 direction[wage,down] +1 down[wage] <= 0",
        "-5 direction[wage,up] +1 up[wage] <= 0",
    ]


def test_l1_of_cells_is_telescoped() -> None:
    m = aged(35)
    assert text(L1(scale="none").build(m.x)) == "+3 cut[age,'37'] +13 cut[age,'50']"
    m = aged(40)
    assert text(L1(scale={"age": 2.0}).build(m.x)) == "-1.5 cut[age,'37'] +5.5 cut[age,'50'] +1.5"


def test_l1_with_coordinates_and_levels() -> None:
    m = mixed()
    for name in ("age", "wage"):
        assert m.x.raw[name] is not None
    assert text(L1(scale="none").build(m.x)) == (
        "+2.5 at_least[size,L] -0.5 at_least[size,M] +1 down[age] +2 down[wage] -1 level[home,own] "
        "+4 level[job,10] +4 level[job,20] +1 up[age] +3 up[wage] +1.5"
    )


def test_l2_of_cells_is_linear_and_of_a_coordinate_quadratic() -> None:
    m = aged(40)
    assert text(L2(scale="none").build(m.x)) == "-9 cut[age,'37'] +121 cut[age,'50'] +9"
    m = at([AGE, WAGE], age=35, wage=4.0)
    for name in ("age", "wage"):
        assert m.x.raw[name] is not None
    expression = L2(scale={"age": 2.0, "wage": 1.0}).build(m.x)
    m.x.place({"age": 39.0, "wage": 3.0})
    assert pyo.value(expression) == 4.0 + 4.0
    m.x.place({"age": 35.0, "wage": 5.0})
    assert pyo.value(expression) == 9.0


def test_linf_is_above_each_columns_own_cost() -> None:
    m = at([AGE, SIZE, Feature("c", kind="continuous", mutable=False)], age=35, size="S", c=1.0)
    m.p = embed(TreeEnsemble([BY_AGE]), m.x)
    assert text(Linf(scale="none").build(m.x)) == "+1 greatest[0]"
    assert rows(m.x, "greatest_of") == [
        "-2.5 at_least[size,L] -2.5 at_least[size,M] +1 greatest[0] >= 0",
        "-3 cut[age,'37'] -13 cut[age,'50'] +1 greatest[0] >= 0",
    ]
    assert variables(m.x)["greatest[0]"] == "NonNegativeReals [0, inf]"


def test_changes_ignore_weights_and_may_count_columns() -> None:
    m = at([JOB, HOME], job=30, home="rent")
    assert text(Changes().build(m.x)) == "+1 level[home,own] +1 level[job,10] +1 level[job,20]"
    assert text(Changes(count="columns").build(m.x)) == "+1 level[home,own] +2 level[job,10] +2 level[job,20]"


def test_distances_may_count_a_category_as_the_two_columns_that_it_moves() -> None:
    m = at([JOB, HOME], job=30, home="rent")
    assert text(L1(count="columns").build(m.x)) == "+1 level[home,own] +8 level[job,10] +8 level[job,20]"
    assert text(L2(squared=True).build(m.x)) == "+1 level[home,own] +16 level[job,10] +16 level[job,20]"
    square = L2(squared=True, count="columns")
    assert text(square.build(m.x)) == "+1 level[home,own] +32 level[job,10] +32 level[job,20]"


def test_costs_add_and_scale() -> None:
    m = at([JOB], job=30)
    cost = 2.0 * (L0() + 0.5 * (L1() + Changes())) * 3.0
    assert text(cost.build(m.x)) == "+39 level[job,10] +39 level[job,20]"


# ---- rules ----------------------------------------------------------------------------------------------------------
def test_max_changes() -> None:
    m = at([JOB, SIZE, WAGE, Feature("c", kind="integer", mutable=False)], job=30, size="S", wage=4.0, c=2)
    assert m.x.raw["wage"] is not None
    m.few, m.narrow = impose(MaxChanges(2), m.x), impose(MaxChanges(2, count="columns"), m.x)
    assert rows(m.few) == ["+1 at_least[size,M] -1 level[job,30] +1 moved[wage] <= 1"]
    assert rows(m.narrow) == ["+1 at_least[size,M] -2 level[job,30] +1 moved[wage] <= 0"]
    assert rows(m.x, "moved_up", "moved_down") == [
        "+1 down[wage] -4 moved[wage] <= 0",
        "-5 moved[wage] +1 up[wage] <= 0",
    ]


def test_max_changes_where_nothing_can_change() -> None:
    m = at([Feature("c", kind="integer", mutable=False)], c=2)
    m.few = impose(MaxChanges(0), m.x)
    assert rows(m) == []


@pytest.mark.parametrize(("sense", "row"), [("<=", "<= 5"), (">=", ">= 5"), ("==", "= 5")])
def test_linear(sense: Any, row: str) -> None:
    m = at([WAGE, SIZE, HOME, Feature("c", kind="integer", mutable=False)], wage=4.0, size="S", home="own", c=2)
    m.rule = impose(Linear({"wage": 2.0, "size": -1.0, "home": 3.0, "c": 4.0}, sense, 13.0), m.x)
    assert rows(m.rule) == [f"-1 at_least[size,L] -1 at_least[size,M] +3 level[home,own] +2 x[wage] {row}"]
    assert variables(m)["x[wage]"] == "Reals [0, 9]"


# ---- no-goods -------------------------------------------------------------------------------------------------------
def exclude(m: Any, how: AbstractDiversity, point: dict[str, float], *rules: Any) -> None:
    nothing = SimpleNamespace(differs=LinearForm, make_cells=lambda: None, predictor=SimpleNamespace(forests=()))
    embedded: Any = m.component("p") or nothing
    how.exclude(RecourseProgram(m, m.x, embedded, 0.0, rules), point)


def test_a_no_good_over_cells_and_levels() -> None:
    m = at([AGE, JOB, SIZE, HOME], age=35, job=30, size="M", home="own")
    m.p = embed(TreeEnsemble([BY_AGE], n_inputs=4), m.x)
    exclude(m, OtherDecisions(), {"age": 45, "job": 0, "size": 2, "home": 1})
    assert rows(m, "differs") == [  # 1 - (cut37 - cut50) + 1 - job10 + 1 - L + 1 - own >= 1
        "-1 at_least[size,L] -1 cut[age,'37'] +1 cut[age,'50'] -1 level[home,own] -1 level[job,10] >= -3"
    ]


def test_a_no_good_over_changes() -> None:
    m = at([AGE, JOB, SIZE, HOME], age=35, job=30, size="M", home="own")
    m.p = embed(TreeEnsemble([BY_AGE], n_inputs=4), m.x)
    exclude(m, OtherSupport(), {"age": 45, "job": 0, "size": 1, "home": 1})
    # (cut34 - cut35) + job30 + (1 - M + L) + 1 - own >= 1: 35 alone is no change
    numbers = "+1 cut[age,'34'] -1 cut[age,'35']"
    levels = "-1 level[home,own] +1 level[job,30]"
    assert rows(m, "differs") == [f"+1 at_least[size,L] -1 at_least[size,M] {numbers} {levels} >= -1"]


def test_a_no_good_over_a_coordinate_makes_its_move_exact() -> None:
    m = at([WAGE], wage=4.0)
    assert m.x.raw["wage"] is not None
    exclude(m, OtherDecisions(), {"wage": 5.0})
    assert rows(m, "differs") == ["-1 moved[wage] >= 0"]
    exclude(m, OtherSupport(), {"wage": 4.0})
    assert rows(m, "differs") == ["+1 surely[wage,down] +1 surely[wage,up] >= 1", "-1 moved[wage] >= 0"]
    assert rows(m.x, "least") == [
        "+1 down[wage] -0.009 surely[wage,down] >= 0",
        "-0.009 surely[wage,up] +1 up[wage] >= 0",
    ]


def test_distinct_over_levels_and_cuts() -> None:
    """The earlier answer is older, smaller and has another job: up, down, and the level."""
    m = at([AGE, JOB, SIZE, HOME], age=35, job=30, size="M", home="own")
    m.p = embed(TreeEnsemble([BY_AGE], n_inputs=4), m.x)
    exclude(m, Distinct(), {"age": 45, "job": 0, "size": 0, "home": 1})
    # cut37 + job10 + 1 - M <= 2; and 1 - own + cut37 + 1 - job30 + 1 - M + L <= 3
    assert rows(m.distinct[1], "otherwise") == ["-1 at_least[size,M] +1 cut[age,'37'] +1 level[job,10] <= 1"]
    assert rows(m.distinct[1], "no_further") == [
        "+1 at_least[size,L] -1 at_least[size,M] +1 cut[age,'37'] -1 level[home,own] -1 level[job,30] <= 0"
    ]
    exclude(m, Distinct(), {"age": 35, "job": 1, "size": 2, "home": 0})
    assert rows(m.distinct[2], "otherwise") == ["+1 at_least[size,L] -1 level[home,own] <= 0"]
    assert rows(m.distinct[2], "no_further") == [
        "+1 at_least[size,L] -1 at_least[size,M] +1 cut[age,'37'] -1 level[home,own] <= 0",
        "+1 at_least[size,L] -1 at_least[size,M] -1 level[home,own] -1 level[job,30] <= -1",
    ]


def test_distinct_cuts_on_both_sides_of_the_factual() -> None:
    m = aged(45)
    exclude(m, Distinct(), {"age": 60.0})
    exclude(m, Distinct(), {"age": 30.0})
    assert rows(m.distinct[1]) == ["+1 cut[age,'50'] <= 0"]
    assert rows(m.distinct[2]) == ["-1 cut[age,'37'] <= -1"]


def test_distinct_over_a_coordinate_permits_a_side() -> None:
    m = at([WAGE, HOME], wage=4.0, home="own")
    assert m.x.raw["wage"] is not None
    exclude(m, Distinct(), {"wage": 5.0, "home": 1})
    assert rows(m.distinct[1]) == ["+1 direction[wage,up] <= 0", "-1 level[home,own] +1 moved[wage] <= 0"]
    assert rows(m.x, "one_direction", "most") == [
        "+1 direction[wage,down] +1 direction[wage,up] -1 moved[wage] = 0",
        "-4 direction[wage,down] +1 down[wage] <= 0",
        "-5 direction[wage,up] +1 up[wage] <= 0",
    ]
    exclude(m, Distinct(), {"wage": 4.0, "home": 0})
    assert rows(m.distinct[2]) == ["-1 level[home,own] +1 moved[wage] <= 0", "-1 level[home,own] <= -1"]


def test_distinct_of_a_number_with_one_way_has_no_direction() -> None:
    m = at([Feature("c", kind="continuous", lower=0, upper=9, direction="increasing"), HOME], c=2.0, home="own")
    assert m.x.raw["c"] is not None
    exclude(m, Distinct(), {"c": 5.0, "home": 1})
    assert rows(m.distinct[1]) == ["+1 moved[c] <= 0", "-1 level[home,own] +1 moved[c] <= 0"]
    assert "direction[c,up]" not in variables(m)


def test_distinct_where_a_number_has_to_rise_leaves_nothing() -> None:
    m = pyo.ConcreteModel()
    space = FeatureSpace([Feature("c", kind="integer", lower=0, upper=9)])
    m.x = Factual(space, {"c": 2}, reach={"c": Interval(4.0, 9.0, 1.0, 2.0)})
    exclude(m, Distinct(), {"c": 4})
    assert rows(m.distinct[1]) == ["+1 impossible <= -1"]


def test_a_no_good_over_another_forms_binaries() -> None:
    m = aged(35, "misic")
    m.p.place({"age": 45.0})
    exclude(m, OtherDecisions(), {"age": 45.0})
    assert rows(m, "differs") == ["+1 q[age,'37.0'] -1 q[age,'50.0'] >= 0"]
    m = aged(35, "leaf")
    m.p.place({"age": 45.0})
    exclude(m, OtherDecisions(), {"age": 45.0})
    assert rows(m, "differs") == ["-1 cut[age,'37'] +1 cut[age,'50'] -1 leaf[0,3] >= -1"]


def test_nothing_else_to_differ_in_is_infeasible() -> None:
    m = at([Feature("c", kind="integer", mutable=False)], c=2)
    exclude(m, OtherDecisions(), {"c": 2})
    assert rows(m) == ["+1 impossible >= 1"]


def test_a_distance_by_sums() -> None:
    """From the earlier answer (job 10, size M, own, wage 3, up 1): wage has room for 3 down and 6 up."""
    up = Feature("up", kind="continuous", lower=0, upper=9, direction="increasing")
    m = at([JOB, SIZE, HOME, WAGE, up], job=30, size="S", home="rent", wage=4.0, up=1.0)
    exclude(m, Apart(2.0, cost=L1(scale="none")), {"job": 0, "size": 1, "home": 1, "wage": 3.0, "up": 1.0})
    # In units of 2: size (1 - M + 5 L) / 2, wage 3 up and 2 down, and "up" can but rise.
    assert " ".join(rows(m.apart[1], "distance")) == (
        "+1.25 at_least[size,L] -0.25 at_least[size,M] +0.6666666667 down[wage] -0.5 level[home,own] "
        "+2 level[job,20] +2 level[job,30] +1 up[wage] +1 way[up] >= 0.249999999"
    )
    assert rows(m.apart[1], "move", "most") == [
        "+1 down[wage] +4.5 rises[wage] <= 4.5",
        "+1 down[wage] -1 up[wage] +1.5 x[wage] = 4.5",
        "-2 way[up] +1 x[up] = 1",
        "-9 rises[wage] +1 up[wage] <= 0",
    ]
    assert variables(m.apart[1]) == {
        "up[wage]": "NonNegativeReals [0, inf]", "down[wage]": "NonNegativeReals [0, inf]",
        "rises[wage]": "Binary [0, 1]", "way[up]": "Reals [-inf, inf]",
    }  # fmt: skip


@pytest.mark.parametrize(("wage", "parts"), [(1.0, [0.0, 3.0, 0.0]), (5.0, [3.0, 0.0, 1.0]), (3.0, [0.0, 0.0, 0.0])])
def test_a_start_has_the_parts_of_its_move(wage: float, parts: list[float]) -> None:
    m = at([WAGE], wage=4.0)
    exclude(m, Apart(2.0, cost=L1(scale="none")), {"wage": 3.0})
    m.x.place({"wage": wage})
    assert [m.apart[1].component(name)["wage"].value for name in ("up", "down", "rises")] == parts


@pytest.mark.parametrize(("direction", "sign", "way"), [("increasing", "+1", 2.0), ("decreasing", "-1", -1.5)])
def test_one_way_needs_no_binary_and_no_far_bound(direction: Any, sign: str, way: float) -> None:
    m = at([Feature("wage", kind="continuous", direction=direction)], wage=4.0)
    exclude(m, Apart(1.0, cost=L1(scale="none")), {"wage": 4.0})
    assert rows(m.apart[1], "move") == ["-1 way[wage] +1 x[wage] = 4"]
    assert rows(m.apart[1], "distance") == [f"{sign} way[wage] >= 0.999999999"]
    m.x.place({"wage": 4.0 + way})
    assert m.apart[1].way["wage"].value == way


def test_a_distance_has_no_small_coefficient() -> None:
    """Where a column counts little, its parts count much in its row; where next to nothing, it is left out."""
    m = at([WAGE], wage=4.0)
    exclude(m, Apart(2.0, cost=L1(scale={"wage": 100.0})), {"wage": 3.0})
    assert rows(m.apart[1], "move") == ["+66.66666667 down[wage] -66.66666667 up[wage] +1 x[wage] = 3"]
    m = at([WAGE, HOME], wage=4.0, home="own")
    exclude(m, Apart(2.0, cost=L1(scale={"wage": 1e8})), {"wage": 3.0, "home": 0})
    assert rows(m.apart[1]) == ["+0.5 level[home,own] >= 0.999999999"]


def test_a_distance_by_counts_is_read_off_cuts() -> None:
    """Age leaves 40 by a step, wage 9 by a thousandth of its range; each counts its weight for that way."""
    m = at([AGE, JOB, SIZE, WAGE], age=35, job=30, size="M", wage=4.0)
    exclude(m, Apart(3.0, cost="l0"), {"age": 40.0, "job": 0, "size": 0, "wage": 9.0})
    assert " ".join(rows(m.apart[1])) == (
        "+1.666666667 at_least[size,M] -0.3333333333 cut[age,'39'] +0.3333333333 cut[age,'40'] "
        "-0.6666666667 cut[wage,'8.991'] +1.333333333 level[job,20] +1.333333333 level[job,30] >= -9.999999717e-10"
    )
    assert not m.x.x


def test_a_distance_by_the_greatest_move_is_read_off_cuts() -> None:
    """Age goes to 37 or 43, wage to 9 - 2.5 / 2, size one up, which costs 5 / 2; job costs 4."""
    m = at([AGE, JOB, SIZE, WAGE], age=35, job=30, size="M", wage=4.0)
    exclude(m, Apart(2.5, cost=Linf(scale="none")), {"age": 40.0, "job": 0, "size": 0, "wage": 9.0})
    assert " ".join(rows(m.apart[1])) == (
        "+1 at_least[size,M] -1 cut[age,'37'] +1 cut[age,'42'] -1 cut[wage,'7.75'] +1 level[job,20] "
        "+1 level[job,30] >= -1"
    )
    assert m.x.numeric("age").cells.keys == [(37.0, 38.0), (42.0, 43.0)]


def test_nothing_as_far_is_infeasible() -> None:
    m = at([WAGE], wage=4.0)
    exclude(m, Apart(100.0, cost=Linf(scale="none")), {"wage": 3.0})
    assert rows(m) == ["+1 impossible >= 1"]


def test_each_earlier_answer_has_its_own_block() -> None:
    m = at([WAGE], wage=4.0)
    for wage in (3.0, 5.0):
        exclude(m, Apart(2.0, cost=L1(scale="none")), {"wage": wage})
    assert rows(m.apart[2], "move") == ["+1 down[wage] -1 up[wage] +1.5 x[wage] = 7.5"]
    assert list(m.apart) == [1, 2]
    summary = model_summary(m)
    assert summary["title"].tolist().count("distance from an earlier answer") == 2
    assert feature_of(m.apart[1].up["wage"]) == feature_of(m.apart[1].most["wage", "up"]) == "wage"


def test_another_cluster() -> None:
    m = at([WAGE], wage=4.0)
    m.hull = pyo.Block()
    m.hull.in_cluster = pyo.Var(["few", "many"], domain=pyo.Binary)
    hull = Hull(clusters=2)
    for label in ("few", "many"):
        exclude(m, OtherCluster(label), {"wage": 3.0}, (MaxChanges(1), None), (hull, m.hull))
    assert rows(m) == ["+1 in_cluster[few] = 0", "+1 in_cluster[many] = 0"]
