"""What a call of ``exhaustive`` takes and refuses, and what it says of how it ended."""

from __future__ import annotations

import itertools
import math
import sys
import time
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import ceopt
import ceopt.diverse.enumeration as enumeration_module
from ceopt.diverse import exhaustive
from ceopt.diverse.enumeration import Settling, Walk
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.search.build_answer import answers_of
from ceopt.solvers.problem import Outcome, Stop

MODULE = "ceopt.diverse.exhaustive"
SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="integer", lower=0, upper=20),
        ceopt.Feature("loans", kind="integer", lower=0, upper=9),
        ceopt.Feature("owner", kind="binary", levels=("no", "yes")),
    ]
)
LINE = Affine([1.0, -1.0, 3.0], -8.5, labels=("refused", "granted"))
ROW = {"income": 4, "loans": 2, "owner": "no"}
COST = ceopt.L1(scale="none")


def stump(feature: int, at: float, left: float, right: float) -> dict[str, Any]:
    return {"feature": feature, "threshold": at, "left": {"value": left}, "right": {"value": right}}


TREES = [stump(0, at, -1.0, 1.0) for at in (5.5, 7.5, 9.5)] + [stump(1, 0.5, 1.0, -1.0), stump(2, 0.5, -1.0, 1.0)]
FOREST = TreeEnsemble(TREES, -0.5, labels=("refused", "granted"))
#: Score: -0.5, and each of five stumps adds or takes 1, so that three must favour. All that costs at most 5 + 2:
ANSWERS = {
    (6, 0, "yes"): 5.0, (8, 2, "yes"): 5.0, (8, 0, "no"): 6.0, (10, 2, "no"): 6.0, (8, 0, "yes"): 7.0,
    (10, 2, "yes"): 7.0,
}  # fmt: skip
PRICES = sorted(ANSWERS.values())


def ask(model: Any = FOREST, row: Any = None, **words: Any) -> ceopt.SolutionSet:
    given = {"target": "granted", "epsilon": 2.0, "cost": COST} | words
    return exhaustive(model, ROW if row is None else row, SPACE, **given)


# ---- what comes back -------------------------------------------------------------------------------------------------
def test_a_result_by_hand() -> None:
    found = ask()

    assert found.status == "optimal"
    assert {tuple(answer.values.to_list()): answer.cost for answer in found} == ANSWERS
    assert [answer.cost for answer in found] == PRICES
    assert [answer.rank for answer in found] == [1, 2, 3, 4, 5, 6]
    assert found.safety == pytest.approx((2.0, 2.0, 1.0, 1.0, 0.0, 0.0))
    assert (found.bound, found.gap, found.margin) == (5.0, 0.0, 0.0)
    assert found.complete
    assert "Proved: no other cell" in found.reason
    assert all(answer.bound == answer.cost and answer.gap == 0.0 for answer in found)
    assert (found.options["epsilon"], found.options["limit"]) == (2.0, None)
    assert "n" not in found.options
    assert ceopt.verify(found, FOREST, SPACE, target="granted").ok


def test_the_first_is_that_of_explain() -> None:
    best = ceopt.explain(FOREST, ROW, SPACE, target="granted", cost=COST)
    assert ask()[0].cost == best[0].cost


def test_a_result_survives_json() -> None:
    found = ask()
    again = ceopt.SolutionSet.from_json(found.to_json())
    assert again.safety == found.safety
    assert again.to_json() == found.to_json()
    assert again.options == found.options


def test_no_epsilon_means_the_best_alone_and_all_that_cost_as_little() -> None:
    assert [answer.cost for answer in ask(epsilon=0)] == [5.0, 5.0]


def test_favourable_already() -> None:
    found = ask(row=ROW | {"income": 20, "owner": "yes"})
    assert found.status == "already_favourable"
    assert len(found) == 0
    assert found.safety == ()
    assert found.complete


def test_nothing_in_reach() -> None:
    space = SPACE.update("income", mutable=False).update("owner", mutable=False)
    found = exhaustive(FOREST, ROW, space, target="granted", epsilon=1.0)
    assert found.status == "infeasible"
    assert found.complete
    assert found.conflict


def test_a_rule_that_leaves_nothing_is_named() -> None:
    found = ask(constraints=[ceopt.MaxChanges(0, name="few")])
    assert found.status == "infeasible"
    assert "few" in {name for name, _, _ in found.conflict}


def test_values_of_regressors() -> None:
    model = TreeEnsemble(TREES, -0.5)
    found = ask(model, target=ceopt.AtLeast(0.0), epsilon=0.0)
    assert [answer.cost for answer in found] == [5.0, 5.0]
    assert all(answer.prediction == 0.5 for answer in found)


def test_actionability_is_kept() -> None:
    space = SPACE.update("owner", mutable=False).update("loans", direction="decreasing")
    found = exhaustive(FOREST, ROW, space, target="granted", epsilon=4.0, cost=COST)
    assert {tuple(answer.values.to_list()) for answer in found} == {(8, 0, "no"), (10, 2, "no"), (10, 0, "no")}


def test_a_linear_model_has_a_cell_for_every_combination() -> None:
    found = ask(LINE, epsilon=1.0)
    every = {
        (income, loans, owner): abs(income - 4) + abs(loans - 2) + (owner == "yes")
        for income in range(21)
        for loans in range(10)
        for owner in ("no", "yes")
        if income - loans + 3 * (owner == "yes") > 8.5
    }
    least = min(every.values())
    assert {tuple(a.values.to_list()): a.cost for a in found} == {k: c for k, c in every.items() if c <= least + 1}
    assert found.complete


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_a_margin_is_kept(margin: float) -> None:
    found = ask(margin=margin, epsilon=10.0)
    assert found.margin == margin
    assert {answer.slack for answer in found} == ({0.5, 2.5, 4.5} if margin == 0.0 else {2.5, 4.5})


RULES: dict[str, list[Any]] = {
    "values": [ceopt.AllowedValues({"income": [0, 4, 7, 12]})],
    "transitions": [ceopt.AllowedTransitions("owner", {"no": ["no"]})],
    "rows": [ceopt.AllowedRows(["income", "loans"], pd.DataFrame({"income": [4, 9, 12, 7], "loans": [2, 1, 0, 0]}))],
    "if": [ceopt.IfThen(("income", ">=", 8), ("loans", "<=", 1))],
    "line": [ceopt.Linear({"income": 1.0, "loans": 2.0}, "<=", 9.0)],
    "equal": [ceopt.Linear({"income": 1.0, "loans": -1.0}, "==", 8.0)],
    "changes": [ceopt.MaxChanges(2), ceopt.IfThen(("owner", "changed"), ("loans", "changed"))],
    "none_left": [ceopt.Linear({"income": 1.0}, "<=", 5.0)],
}


def every_row(model: str, rules: list[Any], epsilon: float, *, space: Any = SPACE, cost: Any = COST) -> list[float]:
    """Return the costs of near cells, of all 420 rows: kept by the rules, favoured, the cheapest of its cell."""
    judge, home, best = FOREST if model == "trees" else LINE, space.row(ROW), dict[Any, float]()
    for income, loans, owner in itertools.product(range(21), range(10), (0, 1)):
        point = {"income": float(income), "loans": float(loans), "owner": float(owner)}
        favoured = judge.predict([list(point.values())])[0] == "granted"
        if favoured and all(rule.violation(space, home, point) <= 0 for rule in rules):
            of_trees = (*(income > at for at in (5.5, 7.5, 9.5)), loans > 0.5, owner)
            cell = of_trees if model == "trees" else (income, loans, owner)
            best[cell] = min(best.get(cell, math.inf), cost.value(space, home, point))
    return sorted(cost for cost in best.values() if cost <= min(best.values()) + epsilon)


@pytest.mark.long(every=10)
@pytest.mark.parametrize("model", ["trees", "line"])
@pytest.mark.parametrize("walks", [True, False])
@pytest.mark.parametrize("name", RULES)
def test_every_rule_against_all_rows(name: str, walks: bool, model: str) -> None:
    judge, epsilon = (FOREST, 4.0) if model == "trees" else (LINE, 2.0)
    expected = every_row(model, RULES[name], epsilon)

    with mock.patch.object(sys.modules[MODULE], "has_a_cheapest_point", return_value=walks):
        found = ask(judge, epsilon=epsilon, constraints=RULES[name])

    assert found.complete, found.reason
    assert [answer.cost for answer in found] == pytest.approx(expected)
    assert found.status == ("optimal" if expected else "infeasible")
    assert ceopt.verify(found, judge, SPACE, target="granted", constraints=RULES[name]).ok or not expected


@pytest.mark.long(every=10)
@pytest.mark.parametrize("weight", [(1.0, 3.0), (3.0, 1.0)])
@pytest.mark.parametrize("rule", ["line", "if", "equal"])
@pytest.mark.parametrize("cost", [ceopt.L0(), ceopt.L1(scale="none"), ceopt.L2(scale="none"), ceopt.Linf(scale="none")])
def test_prices_by_direction_where_a_rule_moves_the_point(cost: Any, rule: str, weight: Any) -> None:
    """In a cell away from the factual a column moves one way, and costs what that way costs."""
    space = SPACE.update("income", weight=weight).update("loans", weight=weight)

    found = exhaustive(FOREST, ROW, space, target="granted", epsilon=4.0, cost=cost, constraints=RULES[rule])

    assert found.complete, found.reason
    expected = every_row("trees", RULES[rule], 4.0, space=space, cost=cost)
    assert [answer.cost for answer in found] == pytest.approx(expected, rel=2e-6)


# ---- where it stops --------------------------------------------------------------------------------------------------
@pytest.mark.long(every=2)
@pytest.mark.parametrize(("limit", "complete"), [(1, False), (3, False), (5, False), (6, True), (9, True)])
@pytest.mark.parametrize("walks", [True, False])
def test_a_limit(limit: int, complete: bool, walks: bool) -> None:
    with mock.patch.object(sys.modules[MODULE], "has_a_cheapest_point", return_value=walks):
        found = ask(limit=limit)
    assert [answer.cost for answer in found] == pytest.approx(PRICES[:limit])
    assert len(found.safety) == len(found)
    assert found.complete is complete
    assert ("There are more" in found.reason) is not complete
    assert found.status == "optimal"


class Clock:
    """A clock that a test can put forward, so that none depends on how busy the machine is."""

    ahead = 0.0

    def perf_counter(self) -> float:
        return time.perf_counter() + self.ahead


def test_time_ends_in_the_walk() -> None:
    """What was found so far is given, with the cheapest of all, and it says that there may be more."""
    run, clock = Walk.run, Clock()

    def late(self: Walk) -> Any:
        for place, cells in enumerate(run(self)):
            clock.ahead = 100.0 * (place > 1)
            yield cells

    with mock.patch.object(enumeration_module, "time", clock), mock.patch.object(Walk, "run", late):
        found = ask()
    assert not found.complete
    assert "time limit of 60 s" in found.reason
    assert found[0].cost == 5.0
    assert len(found) < len(ANSWERS)
    assert found.bound == 5.0
    assert all(answer.bound == 5.0 for answer in found)
    assert len(found.safety) == len(found)


def test_time_ends_while_answers_are_made() -> None:
    clock, module = Clock(), sys.modules[MODULE]

    def slow(*args: Any, **words: Any) -> Any:
        for place, made in enumerate(answers_of(*args, **words)):
            if len(args[2]) == len(ANSWERS):
                clock.ahead = 100.0 * (place > 1)
            yield made

    with mock.patch.object(module, "time", clock), mock.patch.object(module, "answers_of", slow):
        found = ask()
    assert [answer.cost for answer in found] == PRICES[:3]
    assert not found.complete
    assert "cheapest of 6 answers found" in found.reason


def test_the_least_cost_is_not_proved() -> None:
    """Then nothing is said of a threshold, unless the walk proves it by itself."""
    best = ceopt.explain(FOREST, ROW, SPACE, target="granted", cost=COST)
    unproved = replace(best, status=ceopt.Status.FEASIBLE, bound=4.0, gap=0.2)
    with mock.patch.object(sys.modules[MODULE], "search", return_value=unproved):
        walked = ask()
    assert walked.status == "optimal"
    assert walked.complete
    with (
        mock.patch.object(sys.modules[MODULE], "search", return_value=replace(unproved, complete=False)),
        mock.patch.object(sys.modules[MODULE], "has_a_cheapest_point", return_value=False),
    ):
        found = ask()
    assert found.status == "feasible"
    assert not found.complete
    assert found.reason
    assert found.safety == (1.0,)  # 4 is proved, and 4 + 2 - 5 is left


@pytest.mark.parametrize("where", ["walk", "answers"])
def test_an_interruption_keeps_what_is_in_hand(where: str) -> None:
    run = Walk.run

    def pressed(self: Walk) -> Any:
        for place, cells in enumerate(run(self)):
            if place > 2:
                raise KeyboardInterrupt
            yield cells

    def pressed_later(*args: Any, **words: Any) -> Any:
        for place, made in enumerate(answers_of(*args, **words)):
            if place == 2 and len(args[2]) == len(ANSWERS):
                raise KeyboardInterrupt
            yield made

    if where == "walk":
        with mock.patch.object(Walk, "run", pressed):
            found = ask()
        assert len(found) >= 1
    else:
        with mock.patch.object(sys.modules[MODULE], "answers_of", pressed_later):
            found = ask()
        assert len(found) == 2
    assert found[0].cost == 5.0
    assert not found.complete
    assert "interrupted" in found.reason


@pytest.mark.parametrize("stop", [Stop.INTERRUPTED, Stop.TIME_LIMIT])
def test_a_solver_that_is_stopped_settles_nothing(stop: Any) -> None:
    """What needs no program is kept; of the rest it is said that it is not settled."""
    rule = ceopt.IfThen(("owner", "changed"), ("loans", "==", 1))
    stopped = Outcome(status=stop, bound=None, x=None)
    with mock.patch.object(Settling, "_solved", return_value=(stopped, None)):
        found = ask(constraints=[rule], epsilon=3.0)
    assert found[0].cost == 6.0
    assert all(answer.values["owner"] == "no" for answer in found)
    assert not found.complete
    assert ("interrupted" if stop is Stop.INTERRUPTED else "could not settle") in found.reason


def test_too_many_values_for_a_list_are_found_by_programs() -> None:
    """A column with more whole numbers than can be listed is left to the sequence of programs."""
    space = SPACE.update("income", upper=10**9)
    model = Affine([1e-6, 0.0, 0.0], -1.0, labels=("refused", "granted"))
    found = exhaustive(model, ROW, space, target="granted", epsilon=1.0, cost=COST, limit=2)
    assert found.status in {"optimal", "feasible"}
    assert found[0].values["income"] >= 1_000_000
    assert not found.complete


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"epsilon": -0.5}, "exhaustive needs a finite epsilon of at least 0, but epsilon is -0.5"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"epsilon": math.inf}, "epsilon is inf"),
        ({"epsilon": "10%"}, "exhaustive needs a number as epsilon, but epsilon is '10%'"),
        ({"epsilon": True}, "epsilon is True"),
        ({"epsilon": None}, "epsilon is None"),
        ({"limit": 0}, "exhaustive needs a limit of at least 1, but limit is 0"),
        ({"limit": 2.5}, "exhaustive needs a whole number as limit, but limit is 2.5"),
        ({"limit": True}, "limit is True"),
        ({"margin": -1.0}, "margin is -1.0"),
        ({"time_limit_s": 0}, "time_limit_s is 0"),
        ({"target": "perhaps"}, "perhaps"),
        ({"target": ceopt.AtLeast(1.0)}, "classifier"),
        ({"cost": "l3"}, "l3"),
        ({"cost": "mahalanobis"}, "data"),
        ({"solver": "nobody"}, "nobody"),
        ({"constraints": ["few"]}, "few"),
        ({"constraints": [ceopt.Hull()]}, "data"),
    ],
)
def test_misuse_is_named(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ceopt.CeoptError) as error:
        ask(**words)
    assert sentence in str(error.value)


def test_an_unusable_row_is_named() -> None:
    with pytest.raises(ceopt.CeoptError, match="income"):
        ask(row=ROW | {"income": math.nan})


def test_numpy_numbers_are_numbers() -> None:
    assert len(ask(epsilon=np.float64(2.0), limit=np.int64(3))) == 3
    assert len(ask(epsilon=np.int64(2))) == len(ANSWERS)


# ---- costs beyond columns and rules beyond cells ---------------------------------------------------------------------
def test_a_cost_that_ties_columns_is_left_to_programs() -> None:
    """Mahalanobis: a correlated column may make a move cheaper, so the nearest value need not be the cheapest."""
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=-5, upper=5) for name in "uv"])
    model = TreeEnsemble([stump(0, 0.95, -1.0, 1.0), stump(1, 3.0, -0.75, 0.75)], labels=("refused", "granted"))
    cost = ceopt.Mahalanobis(covariance=[[1.0, 0.8], [0.8, 1.0]])
    found = exhaustive(model, {"u": 0.0, "v": 0.0}, space, target="granted", epsilon=2.5, cost=cost)
    assert found.complete, found.reason
    assert [(answer.values["u"] > 0.95, answer.values["v"] > 3.0) for answer in found] == [(True, False), (True, True)]
    assert found[0].values["v"] == pytest.approx(0.8 * 0.95, rel=1e-3)  # v follows, which is cheaper than staying
    assert found[0].cost == pytest.approx(0.95, rel=1e-4)


def test_a_causal_rule_is_kept() -> None:
    rule = ceopt.Causal({"loans": ceopt.LinearEquation({"income": -0.5})}, intervention="soft")
    found = ask(constraints=[rule], epsilon=1.0)
    assert found.complete, found.reason
    assert all(answer.actions is not None for answer in found)
    assert ceopt.verify(found, FOREST, SPACE, target="granted", constraints=[rule]).ok


def test_a_hull_is_kept() -> None:
    frame = pd.DataFrame({"income": [4, 12, 8], "loans": [2, 2, 0], "owner": ["no", "no", "yes"]})
    rule = ceopt.Hull(frame)
    found = ask(constraints=[rule], epsilon=20.0)
    assert found.complete, found.reason
    assert len(found) >= 1
    assert ceopt.verify(found, FOREST, SPACE, target="granted", constraints=[rule]).ok


def test_one_name_for_package_and_call() -> None:
    import ceopt.diverse

    assert callable(ceopt.diverse.exhaustive)
    assert "exhaustive" in ceopt.diverse.__all__


def test_a_limit_skips_the_cells_that_have_become_too_dear() -> None:
    """A rule breaks the nearest points of cells that were found before the limit lowered what a point may cost."""
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=5) for name in "ij"])

    def tree(feature: int, threshold: float, left: float, right: float) -> dict[str, Any]:
        return {"feature": feature, "threshold": threshold, "left": {"value": left}, "right": {"value": right}}

    trees = [tree(0, 2.5, 1.0, 0.0), tree(0, 1.5, -2.0, 2.0), tree(1, 1.5, 1.0, -1.0)]
    model = TreeEnsemble(trees, 0.5, labels=("no", "yes"))
    rule, cost = ceopt.Linear({"i": 2, "j": 2}, "<=", 8.0), ceopt.L2(scale="none")
    found = {
        limit: exhaustive(
            model, {"i": 0, "j": 2}, space, target="yes", epsilon=2.0, cost=cost, constraints=[rule], limit=limit
        )
        for limit in (None, 1)
    }

    assert [answer.cost for answer in found[None]] == pytest.approx([1.0, 2.0, math.sqrt(5.0)])
    assert [answer.cost for answer in found[1]] == [1.0]
    assert (found[None].complete, found[1].complete) == (True, False)
