"""What is proved of a further answer where an earlier one took repairs, and what one false bound costs the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import ceopt
from ceopt.formulations.predictors import Affine, TreeEnsemble
from ceopt.oracle.model import ModelOracle
from ceopt.search.prepare import prepare
from ceopt.search.search import search
from ceopt.search.solve_check_repair import is_disproved
from ceopt.search.solve_program import ProgramSolver
from ceopt.search.state import Predictions
from ceopt.settings import Settings
from ceopt.solvers.problem import Stop

PAY = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=0.0, upper=9.0) for name in ("a", "b")])
MODEL = Affine([1.0, 0.5], -3.0, labels=("no", "yes"))
COST = ceopt.L1(scale="none")


def test_a_margin_that_an_earlier_answer_has_raised_proves_nothing_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model asks for 3e-4 more than it was read to ask for: answers stand at a margin of 1e-3 or so."""
    judge = ModelOracle.judge

    def stricter(self: Any, frame: pd.DataFrame, target: Any) -> Any:
        predicted, met = judge(self, frame, target)
        return predicted, met & (frame["a"] + 0.5 * frame["b"] >= 3.0 + 3e-4).to_numpy()

    monkeypatch.setattr(ModelOracle, "judge", stricter)
    result = ceopt.explain(
        MODEL, {"a": 0.0, "b": 0.0}, PAY, target="yes", n=2, cost=COST, diversity="support", solver="highs"
    )
    assert [answer.changed for answer in result] == [("a",), ("a", "b")]
    # By b, which moves by a thousandth of its range at least, the second costs more.
    least = [3.0 + 3e-4, 3.0 + 3e-4 + 0.5 * 9e-3]
    for answer, cost in zip(result, least, strict=True):
        assert answer.cost > cost + 1e-4
        assert answer.bound <= cost
        assert answer.gap > 0.0


def test_a_cell_that_an_earlier_answer_has_barred_proves_nothing_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that its rows do not keep bars the whole cell of the point that broke it, in which others are legal."""
    tree = {"feature": 0, "threshold": 2.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    cut = {"feature": 1, "threshold": 4.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    model = TreeEnsemble([tree, cut], n_inputs=2)
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in ("a", "b")])
    run = ProgramSolver.run
    asked = []

    def barring(self: Any, request: Any, seconds: float) -> Any:
        asked.append(request)
        solved = run(self, request, seconds)
        if len(asked) < 3:  # twice a point that breaks the bounds of the space: exact first, then barred
            return replace(solved, point={"a": 99.0, "b": 0.0})
        return solved

    monkeypatch.setattr(ProgramSolver, "run", barring)
    result = ceopt.explain(
        model, {"a": 0, "b": 0}, space, target=ceopt.AtLeast(1.0), n=2, cost=COST, diversity="support", solver="highs"
    )
    assert any(len(request.barred) > 1 for request in asked)
    for answer, least in zip(result, [3.0, 4.0], strict=True):  # a = 3; then a = 3 and b = 1, in the same cell
        assert answer.cost >= least
        assert answer.bound <= least


def test_a_bound_that_is_false_takes_its_own_proof_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second answer is called cheapest at twice what the third costs: the first is still proved."""
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in ("a", "b", "c")])
    model = Affine([3.0, 2.0, 1.0], -5.5, labels=("no", "yes"))
    run = ProgramSolver.run
    points = [{"a": 2.0, "b": 0.0, "c": 0.0}, {"a": 0.0, "b": 0.0, "c": 6.0}, {"a": 0.0, "b": 3.0, "c": 0.0}]

    def unranked(self: Any, request: Any, seconds: float) -> Any:
        solved = run(self, request, seconds)
        found = len(request.barred)
        if found == 0 or found > 2:
            return solved
        cost = float(sum(points[found].values()))
        outcome = replace(solved.outcome, bound=cost, objective=cost)
        return replace(solved, point=points[found], outcome=outcome)

    monkeypatch.setattr(ProgramSolver, "run", unranked)
    result = ceopt.explain(
        model, {"a": 0, "b": 0, "c": 0}, space, target="yes", n=3, cost=COST, diversity="support", solver="highs"
    )
    costs = [answer.cost for answer in result]
    assert costs == sorted(costs)
    assert result[0].values.to_dict() == points[0]
    assert (result.status, result.gap, result[0].bound) == ("optimal", 0.0, 2.0)
    last = result[-1]
    assert (last.cost, last.bound) == (6.0, 0.0)


@pytest.mark.usefixtures("by_program")
def test_seconds_of_every_program_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start at a point that answers may not be sets a budget within which there is nothing: it is solved again."""
    solve = ProgramSolver.once
    spent = []

    def timed(self: Any, request: Any, seconds: float) -> Any:
        solved = solve(self, request, seconds)
        if request.budget is not None:
            solved = replace(solved, point=None, solve_s=5.0)
            solved = solved.with_outcome(status=ceopt.solvers.Status.INFEASIBLE, x=None)
        spent.append(solved.solve_s)
        return solved

    monkeypatch.setattr(ProgramSolver, "once", timed)
    tree = {"feature": 0, "threshold": 2.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", lower=0, upper=9)])
    result = ceopt.explain(TreeEnsemble([tree], n_inputs=1), {"a": 0}, space, target=ceopt.AtLeast(1.0), cost=COST)
    assert len(spent) > 1
    assert result.timings["solve"] == pytest.approx(sum(spent))
    assert np.isclose(result[0].cost, 3.0)


def test_memory_that_runs_out_in_predict_is_a_status_also_of_the_row_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(ModelOracle, "judge", full)
    result = ceopt.explain(MODEL, {"a": 0.0, "b": 0.0}, PAY, target="yes")
    assert result.status == "error"
    assert result.reason.startswith("Memory ran out")


def test_a_tie_within_a_firmer_distance_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver repeats the first answer until the distance is asked for more firmly, which leaves (0, 2, 1) out."""
    a = ceopt.Feature("a", kind="continuous", lower=0.0, upper=10.0)
    whole = [ceopt.Feature(name, kind="integer", lower=0, upper=6) for name in ("b", "c")]
    space = ceopt.FeatureSpace([a, *whole])
    model = Affine([-0.37, -1.0, -1.0], 3.0, labels=("yes", "no"))
    run = ProgramSolver.run
    repeated = []

    def stubborn(self: Any, request: Any, seconds: float) -> Any:
        solved = run(self, request, seconds)
        if len(request.barred) == 1 and request.margin and len(repeated) < 3:
            repeated.append(request)
            return replace(solved, point=dict(request.barred[0][0]))
        return solved

    monkeypatch.setattr(ProgramSolver, "run", stubborn)
    result = ceopt.explain(
        model, {"a": 0, "b": 0, "c": 0}, space, target="yes", n=2, solver="highs", why=False,
        cost=ceopt.L1(scale={"a": 0.001, "b": 1.0, "c": 1 / 1.1}),
        diversity=ceopt.Apart(2, cost=ceopt.L1(scale="none")),
    )  # fmt: skip
    assert len(repeated) == 3
    assert len(result) == 2
    assert result[1].bound <= 3.1 + 1e-9  # what (0, 2, 1) costs, which the model accepts


@pytest.mark.parametrize("seed", range(4))
def test_ties_that_a_forest_refuses_take_no_proof_under_a_margin_of_0(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(rng.integers(0, 6, (30, 3)), columns=list("abc"))
    wanted = ((people["a"] + people["b"] > 5) ^ (rng.random(30) < 0.25)).astype(int)
    model = RandomForestClassifier(2, random_state=0).fit(people, wanted)
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=5) for name in "abc"])
    row = people[model.predict(people) == 0].iloc[0]
    own, zero = (
        ceopt.explain(
            model, row, space, target=1, n=30, cost=COST, margin=margin, diversity="support", solver="highs", why=False
        )
        for margin in (None, 0.0)
    )
    assert [answer.cost for answer in zero] == [answer.cost for answer in own]
    assert (zero.status, zero.complete) == (own.status, own.complete) == ("optimal", True)
    assert [answer.gap for answer in zero] == pytest.approx([0.0] * len(own))


@pytest.mark.parametrize(("bound", "proved"), [(3.7, False), (3.999, False), (4.0, True), (6.0, True)])
def test_that_no_other_answer_costs_so_little_is_proved_by_a_bound_of_the_limit(
    monkeypatch: pytest.MonkeyPatch, bound: float, proved: bool
) -> None:
    """The best costs 2, and others may cost 4: one of 6 comes back, of which a bound is known."""
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in ("a", "b", "c")])
    model = Affine([3.0, 2.0, 1.0], -5.5, labels=("no", "yes"))
    run = ProgramSolver.run

    def dear(self: Any, request: Any, seconds: float) -> Any:
        solved = run(self, replace(request, budget=None), seconds)
        if not request.barred:
            return solved
        outcome = replace(solved.outcome, bound=bound, objective=6.0)
        return replace(solved, point={"a": 0.0, "b": 0.0, "c": 6.0}, outcome=outcome)

    monkeypatch.setattr(ProgramSolver, "run", dear)
    asked = Settings(target="yes", n=5, cost=COST, diversity="support", solver="highs")
    result = search(prepare(model, space, asked), {"a": 0, "b": 0, "c": 0}, within=2.0)
    assert [answer.cost for answer in result] == [2.0]
    assert (result.status, result.complete) == ("optimal", proved)
    assert ("Proved: there are no more." in result.reason) is proved


@pytest.mark.parametrize(("more", "proved"), [(1e-8, True), (1e-4, False), (0.01, False)])
@pytest.mark.usefixtures("by_program")
def test_a_further_answer_that_costs_a_ten_thousandth_less_takes_the_first_proof_back(
    monkeypatch: pytest.MonkeyPatch, more: float, proved: bool
) -> None:
    """Asked for the best, which a or b has at 3, the solver gives a bit more of a, and calls it optimal."""
    model = Affine([1.0, 1.0], -3.0, labels=("no", "yes"))
    run = ProgramSolver.run
    costs = []

    def dearer(self: Any, request: Any, seconds: float) -> Any:
        solved = run(self, request, seconds)
        if not request.barred:
            cost = float(solved.point["a"] + solved.point["b"]) * (1.0 + more)
            costs.append(cost)
            outcome = replace(solved.outcome, bound=cost, objective=cost)
            return replace(solved, point={"a": cost, "b": 0.0}, outcome=outcome)
        return solved

    monkeypatch.setattr(ProgramSolver, "run", dearer)
    result = ceopt.explain(
        model, {"a": 0.0, "b": 0.0}, PAY, target="yes", n=2, cost=COST, diversity="support", solver="highs", margin=1e-3
    )
    least = costs[0] / (1.0 + more)
    if proved:
        assert (result.status, result[0].changed) == ("optimal", ("a",))
    else:
        assert (result.status, result[0].changed) == ("feasible", ("b",))
        assert result[0].cost == pytest.approx(least, rel=1e-9)
        assert "less than was proved" in result.reason
        assert [answer.rank for answer in result] == [*range(1, len(result) + 1)]


@pytest.mark.parametrize("failing", [6, 99])
@pytest.mark.usefixtures("by_program")
def test_seven_points_may_fail_and_no_more(monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    run = ProgramSolver.run
    asked = []

    def wrong(self: Any, request: Any, seconds: float) -> Any:
        asked.append(request)
        solved = run(self, request, seconds)
        if len(asked) <= failing:
            return replace(solved, point={"a": 0.0, "b": 0.0})
        return solved

    monkeypatch.setattr(ProgramSolver, "run", wrong)
    result = ceopt.explain(MODEL, {"a": 0.0, "b": 0.0}, PAY, target="yes", cost=COST, solver="highs")
    assert len(asked) == 7
    assert len(result) == 1  # a point of the solver, or one of those that are known without it
    said = "7 points of the solver failed the check; the last: the model predicts no."
    assert (said in result.reason) is (failing == 99)


def test_an_answer_that_costs_just_as_much_as_it_may_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in ("a", "b", "c")])
    model = Affine([3.0, 2.0, 1.0], -5.5, labels=("no", "yes"))
    run, asked = ProgramSolver.run, []
    monkeypatch.setattr(ProgramSolver, "run", lambda self, ask, seconds: asked.append(ask) or run(self, ask, seconds))
    settings = Settings(target="yes", n=9, cost=COST, diversity="support", solver="highs")
    result = search(prepare(model, space, settings), {"a": 0, "b": 0, "c": 0}, within=1.0)
    # a = 2; b = 3; a = 2 and b = 1, or c = 1; one of each. b and c alone cost 4 together, and c alone 6.
    assert [answer.cost for answer in result] == [2.0, 3.0, 3.0, 3.0, 3.0]
    assert (result.status, result.complete) == ("optimal", True)
    further = [(request.is_hard_limit, request.budget) for request in asked if len(request.barred)]
    assert further == [(True, pytest.approx(3.0, rel=1e-4))] * len(further)
    assert len(further) >= 5


def test_which_bound_a_verified_cost_disproves() -> None:
    assert not is_disproved(None, 0.0)
    for bound, cost, said in (
        (0.0, 0.0, False), (0.9e-9, 0.0, False), (2e-9, 0.0, True),
        (1.0, 1.0, False), (1.0 + 0.9e-6, 1.0, False), (1.0 + 2e-6, 1.0, True), (1.5, 1.0, True), (0.5, 1.0, False),
    ):  # fmt: skip
        assert is_disproved(bound, cost) is said


@pytest.mark.usefixtures("by_program")
def test_a_start_that_costs_the_same_takes_no_answers_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both a and b reach the decision for 3: what the solver gives stays, and so does what it proves."""
    model = Affine([1.0, 1.0], -3.0, labels=("no", "yes"))
    run = ProgramSolver.run

    def by_a(self: Any, request: Any, seconds: float) -> Any:
        return replace(run(self, request, seconds), point={"a": 3.5, "b": 0.0})

    monkeypatch.setattr(ProgramSolver, "run", by_a)
    for b, changed in ((3.5, ("a",)), (3.4999, ("b",)), (3.6, ("a",))):
        starts = pd.DataFrame({"a": [0.0], "b": [b]})
        result = ceopt.explain(model, {"a": 0.0, "b": 0.0}, PAY, target="yes", cost=COST, solver="highs", starts=starts)
        assert result[0].changed == changed


def test_for_a_linear_model_the_program_itself_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Predictions, "met", lambda *_, **__: pytest.fail("no start is looked for"))
    result = ceopt.explain(MODEL, {"a": 0.0, "b": 0.0}, PAY, target="yes", cost=COST, solver="highs")
    assert (result.status, result[0].changed) == ("optimal", ("a",))


def test_a_cheaper_start_takes_no_further_answers_place_as_long_as_the_solver_is_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second answer changes both, as the solver has it; a point by b alone is in hand, and costs less."""
    model = Affine([1.0, 1.0], -3.0, labels=("no", "yes"))
    run = ProgramSolver.run

    def dear(self: Any, request: Any, seconds: float) -> Any:
        solved = run(self, request, seconds)
        if len(request.barred) != 1:
            return solved
        outcome = replace(solved.outcome, bound=3.0, objective=5.0)
        return replace(solved, point={"a": 1.0, "b": 4.0}, outcome=outcome)

    monkeypatch.setattr(ProgramSolver, "run", dear)
    starts = pd.DataFrame({"a": [0.0], "b": [3.2]})
    result = ceopt.explain(
        model, {"a": 0.0, "b": 0.0}, PAY, target="yes", n=2, diversity="support", solver="highs", starts=starts,
        cost=ceopt.L1(scale={"a": 1.1, "b": 1.0}),
    )  # fmt: skip
    assert [answer.changed for answer in result] == [("a",), ("a", "b")]
    assert result[1].cost > 4.0
    assert result[1].values.to_dict() == {"a": 1.0, "b": 4.0}


def test_a_point_that_failed_the_check_takes_no_proof_that_the_exact_program_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first point breaks the rule; asked to be exact, the solver proves that there is none."""
    rule = ceopt.Linear({"a": 1.0, "b": 1.0}, "<=", 2.0)
    run, asked = ProgramSolver.run, []

    def loose(self: Any, request: Any, seconds: float) -> Any:
        asked.append(request.exact)
        solved = run(self, request, seconds)
        if len(asked) > 1:
            return solved
        return replace(solved, point={"a": 9.0, "b": 9.0}, outcome=replace(solved.outcome, status=Stop.OPTIMAL))

    monkeypatch.setattr(ProgramSolver, "run", loose)
    result = ceopt.explain(
        MODEL, {"a": 0.0, "b": 0.0}, PAY, target="yes", cost=COST, constraints=[rule], solver="highs", why=False
    )
    assert asked[:2] == [False, True]
    assert (result.status, result.complete) == ("infeasible", True)
    assert result.reason.startswith("Proved: ")
