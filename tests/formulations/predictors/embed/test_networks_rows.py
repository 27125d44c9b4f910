"""The rows of the network formulations are those of their docstrings; neurons that never switch have none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import rowtext
from rowtext import text, variables

from ceopt.formulations import Factual, Reaches, embed
from ceopt.formulations.predictors import Predictor, ReluNetwork
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.targets import AtLeast
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import UnboundedFeatureError
from ceopt.solvers.manifest import model_summary

A = Feature("a", kind="continuous", lower=0, upper=2)
B = Feature("b", kind="continuous", lower=-1, upper=1)
JOB = Feature("job", kind="categorical", levels=(10, 30, 20))
#: a - 2b + 0.5 in [-1.5, 4.5] switches, a + b + 2 in [1, 5] never does, -a - b - 5 is always negative.
NET = ReluNetwork([[[1, -2], [1, 1], [-1, -1]], [[1, 0.5, 3]]], [[0.5, 2, -5], [0.25]])
BIG_M = [
    "+1 post[0,0] -1 x[a] +2 x[b] >= 0.5",
    "+1.5 on[0,0] +1 post[0,0] -1 x[a] +2 x[b] <= 2",
    "-4.5 on[0,0] +1 post[0,0] <= 0",
]


def at(features: list[Feature], model: Any, formulation: str = "bigm", **row: Any) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(FeatureSpace(features), row)
    m.p = embed(model, m.x, formulation=formulation)
    return m


def rows(block: Any, *names: str) -> list[str]:
    """Rows as text to seven places: bounds are moved outwards by 1e-9 of their size."""
    number = re.compile(r"\d+\.?\d*(e-\d+)?")
    return [number.sub(lambda n: f"{round(float(n[0]), 7):.10g}", row) for row in rowtext.rows(block, *names)]


def test_big_m() -> None:
    m = at([A, B], NET, a=1.0, b=0.0)
    assert rows(m) == sorted(BIG_M)
    assert variables(m.p) == {"on[0,0]": "Binary [0, 1]", "post[0,0]": "Reals [0, 4.5]"}
    assert text(m.p.score) == "+1 post[0,0] +0.5 x[a] +0.5 x[b] +1.25"


def test_partition_adds_groups_sorted_by_what_they_add() -> None:
    m = at([A, B], NET, "partition", a=1.0, b=0.0)
    assert rows(m) == sorted([
        *BIG_M,
        "+0.5 on[0,0] +1 part[0,0,0] +1 part[0,0,1] -1 post[0,0] = 0",
        "+2 on[0,0] +1 part[0,0,0] >= 0",  # -2b in [-2, 2]
        "-2 on[0,0] +1 part[0,0,0] <= 0",
        "-2 on[0,0] -1 part[0,0,0] -2 x[b] >= -2",
        "+2 on[0,0] -1 part[0,0,0] -2 x[b] <= 2",
        "+1 part[0,0,1] >= 0",  # a in [0, 2]
        "-2 on[0,0] +1 part[0,0,1] <= 0",
        "-1 part[0,0,1] +1 x[a] >= 0",
        "+2 on[0,0] -1 part[0,0,1] +1 x[a] <= 2",
    ])  # fmt: skip


def test_a_partition_of_one_input_is_big_m() -> None:
    net = ReluNetwork([[[1.0]], [[1.0]]], [[-1.0], [0.0]])
    assert rows(at([A], net, "partition", a=1.0)) == rows(at([A], net, a=1.0))


def test_partition_groups_have_equal_numbers_of_inputs() -> None:
    features = [Feature(f"v{k}", kind="continuous", lower=-1, upper=1) for k in range(5)]
    net = ReluNetwork([[[3, -1, 2, -4, 1]], [[1]]], [[0], [0]])
    m = at(features, net, "partition", **{f"v{k}": 0.0 for k in range(5)})
    assert rows(m, "off_high") == [
        "+5 on[0,0] -1 part[0,0,1] +3 x[v0] +2 x[v2] <= 5",
        "+6 on[0,0] -1 part[0,0,0] -1 x[v1] -4 x[v3] +1 x[v4] <= 6",
    ]


def test_extended_copies_numbers_and_levels() -> None:
    net = ReluNetwork([[[1.0, 0.5]], [[2.0]]], [[-9.0], [0.0]])  # a + job / 2 - 9 in [-4, 8]
    m = at([A, JOB], net, "extended", a=1.0, job=30)
    levels = {"10": 1, "30": 2, "20": 3}
    expected = [
        "-5 level[job,10] -10 level[job,20] -15 level[job,30] +1 post[0,0] -1 x[a] >= -9",
        "-5 level[job,10] -10 level[job,20] -15 level[job,30] +4 on[0,0] +1 post[0,0] -1 x[a] <= -5",
        "-8 on[0,0] +1 post[0,0] <= 0",
        "-9 on[0,0] +1 part[0,0,0] +5 part[0,0,1] +15 part[0,0,2] +10 part[0,0,3] -1 post[0,0] = 0",
        "-1 on[0,0] +1 part[0,0,1] +1 part[0,0,2] +1 part[0,0,3] = 0",
        "+1 part[0,0,0] >= 0",
        "-2 on[0,0] +1 part[0,0,0] <= 0",
        "-1 part[0,0,0] +1 x[a] >= 0",
        "+2 on[0,0] -1 part[0,0,0] +1 x[a] <= 2",
        "+1 level[job,10] +1 level[job,20] +1 level[job,30] = 1",
    ]
    for level, n in levels.items():
        expected += [
            f"+1 part[0,0,{n}] >= 0",
            f"-1 on[0,0] +1 part[0,0,{n}] <= 0",
            f"+1 level[job,{level}] -1 part[0,0,{n}] >= 0",
            f"+1 level[job,{level}] +1 on[0,0] -1 part[0,0,{n}] <= 1",
        ]
    assert rows(m) == sorted(expected)


def test_later_layers_read_outputs_and_what_never_switches() -> None:
    """Layer 1: y - (a + b + 2) + 1, with y in [0, 4.5] the output that switches."""
    net = ReluNetwork([NET.weights[0], [[1, -1, 1]], [[1]]], [NET.biases[0], [1], [0]])
    m = at([A, B], net, a=1.0, b=0.0)
    assert [row for row in rows(m, "not_below") if "post[1,0]" in row] == [
        "-1 post[0,0] +1 post[1,0] +1 x[a] +1 x[b] >= -1"
    ]


@pytest.mark.parametrize("formulation", ["bigm", "partition", "extended"])
def test_a_network_that_never_switches_is_affine(formulation: str) -> None:
    net = ReluNetwork([[[1, 1], [-1, -1]], [[2, 5]]], [[2, -5], [1]])
    m = at([A, B], net, formulation, a=1.0, b=0.0)
    assert rows(m) == []
    assert variables(m.p) == {}
    assert text(m.p.score) == "+2 x[a] +2 x[b] +5"


def test_layers_without_relu_are_multiplied_out() -> None:
    net = ReluNetwork(
        [[[1, 1], [1, -1]], NET.weights[0], NET.weights[1]], [[0, 1], NET.biases[0], NET.biases[1]],
        activations=("identity", "relu"),
    )  # fmt: skip
    m = at([A, B], net, a=1.0, b=0.0)  # (a + b) - 2 (a - b + 1) + 0.5
    assert "+1 post[0,0] +1 x[a] -3 x[b] >= -1.5" in rows(m)
    linear = ReluNetwork([[[1, 1]], [[2]]], [[1], [3]], activations=("identity",))
    m = at([A, B], linear, a=1.0, b=0.0)
    assert text(m.p.score) == "+2 x[a] +2 x[b] +5"


def test_no_hidden_layer() -> None:
    m = at([A, B], ReluNetwork([[[1, -2]]], [[0.5]]), a=1.0, b=0.0)
    assert (rows(m), text(m.p.score)) == ([], "+1 x[a] -2 x[b] +0.5")


def test_what_no_score_depends_on_is_left_out() -> None:
    """The second neuron feeds a layer that ignores it; the third one that is dead."""
    net = ReluNetwork([[[1, 0], [0, 1], [1, -1]], [[1, 0, 0], [0, 0, -1]], [[1, 1]]], [[-1, 0, -1], [-0.5, -1], [0]])
    m = at([A, B], net, a=1.0, b=0.0)
    assert sorted(variables(m.p)) == ["on[0,0]", "on[1,0]", "post[0,0]", "post[1,0]"]


def test_a_neuron_that_is_always_active_gets_a_variable_where_that_is_sparser() -> None:
    features = [Feature(f"v{k}", kind="continuous", lower=0, upper=1) for k in range(6)]
    first = np.ones((1, 6))
    net = ReluNetwork([first, [[1], [-1], [2]], [[1, 1, 1]]], [[1], [-3, 4, -8], [0]])
    m = at(features, net, **{f"v{k}": 0.0 for k in range(6)})
    assert rows(m, "defined") == ["+1 post[0,0] " + " ".join(f"-1 x[v{k}]" for k in range(6)) + " = 1"]
    assert rows(m, "not_below") == [
        "+1 post[0,0] +1 post[1,1] >= 4",
        "-1 post[0,0] +1 post[1,0] >= -3",
        "-2 post[0,0] +1 post[1,2] >= -8",
    ]
    assert variables(m.p)["post[0,0]"] == "Reals [1, 7]"


def test_columns_that_cannot_move_are_numbers() -> None:
    fixed = Feature("b", kind="continuous", lower=-1, upper=1, mutable=False)
    m = at([A, fixed], NET, a=1.0, b=0.5)  # a - 0.5 in [-0.5, 1.5]
    assert rows(m) == [
        "+0.5 on[0,0] +1 post[0,0] -1 x[a] <= 0",
        "+1 post[0,0] -1 x[a] >= -0.5",
        "-1.5 on[0,0] +1 post[0,0] <= 0",
    ]


def test_a_level_that_the_pipeline_fails_on_is_kept_off_and_widens_no_bound() -> None:
    space = FeatureSpace([A, JOB])
    encoding = Encoding((Column("a"), Column("job", table=(1.0, float("nan"), 3.0))), ("a", "job"))
    net = ReluNetwork([[[1.0, 1.0]], [[1.0]]], [[-3.0], [0.0]])
    m = at([A, JOB], Predictor(net, encoding, net, space), a=1.0, job=10)  # a + {1, 3} - 3 in [-2, 2]
    assert rows(m.p) == sorted([
        "-1 level[job,10] -3 level[job,20] +1 post[0,0] -1 x[a] >= -3",
        "-1 level[job,10] -3 level[job,20] +2 on[0,0] +1 post[0,0] -1 x[a] <= -1",
        "-2 on[0,0] +1 post[0,0] <= 0",
        "+1 level[job,30] <= 0",
    ])  # fmt: skip


@pytest.mark.parametrize("formulation", ["bigm", "partition", "extended"])
def test_a_missing_bound_names_the_column(formulation: str) -> None:
    free = Feature("b", kind="continuous")
    with pytest.raises(UnboundedFeatureError, match="column 'b' has none"):
        at([A, free], NET, formulation, a=1.0, b=0.0)


def test_a_bound_that_no_neuron_needs_may_be_missing() -> None:
    above = Feature("b", kind="continuous", lower=0.0)
    net = ReluNetwork([[[1, 1], [-1, -1]], [[2, 5]]], [[2, -5], [1]])
    m = at([A, above], net, a=1.0, b=0.0)
    assert (rows(m), text(m.p.score)) == ([], "+2 x[a] +2 x[b] +5")
    assert m.p.range_of((1.0,)) == (pytest.approx(5.0), np.inf)
    with pytest.raises(UnboundedFeatureError, match="column 'b' has none"):
        at([A, above], ReluNetwork([[[1, 1]], [[-1]], [[1]]], [[2], [5], [0]]), a=1.0, b=0.0)


def test_one_person_without_a_choice() -> None:
    fixed = [Feature(name, kind="continuous", lower=-2, upper=2, mutable=False) for name in "ab"]
    m = at(fixed, NET, a=1.0, b=0.0)
    assert (rows(m), m.p.score.expr) == ([], 1.5 + 1.5 + 0.25)
    m.v = Reaches(m.p, AtLeast(4.0), margin=0.0)
    m.c = pyo.Objective(expr=0.0)
    assert solve(m).status is Status.INFEASIBLE


@pytest.mark.parametrize(("formulation", "rows_added"), [("bigm", 3), ("partition", 12), ("extended", 12)])
def test_the_summary_counts_what_the_docstring_says(formulation: str, rows_added: int) -> None:
    summary = model_summary(at([A, B], NET, formulation, a=1.0, b=0.0)).set_index("block").loc["p"]
    assert summary["rows"] == rows_added  # 3, and 4 for each of two parts and their sum
    assert summary["binaries"] == 1
    assert summary["reference"]
