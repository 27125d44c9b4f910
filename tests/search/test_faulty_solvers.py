"""What the answers are worth where the solver is not: a verified point outweighs its word, and nothing is proved."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from faulty import FAULTS, faulty, with_point
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import ceopt
from ceopt.search.solve_program import ProgramSolver
from ceopt.solvers import Outcome
from ceopt.solvers.highs import HighsSession
from ceopt.solvers.pool.ranking import integers
from ceopt.solvers.problem import Stop

#: The faults after which HiGHS's own point is still there to be checked.
KEEPS_A_POINT = {"point in error", "point of the infeasible", "bound above", "bound NaN", "bound infinite",
                 "bound text", "other objective"}  # fmt: skip
#: All columns at 1: of a program of few cells the optimum may be all at 0, which is then no fault.
ONES = pytest.param(lambda told, _: with_point(np.ones_like)(told), id="ones")
PAIRED = [(kind, fault) for kind in ("forest", "logistic") for fault in FAULTS]


@pytest.fixture(scope="module")
def people() -> SimpleNamespace:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"income": rng.normal(30.0, 8.0, 200).round(1), "loans": rng.integers(0, 6, 200)})
    frame["owner"] = rng.random(200) < 0.4
    score = frame["income"] / 8 - frame["loans"] + frame["owner"]
    label = np.where(score > score.median(), "good", "bad")
    models = {
        "forest": RandomForestClassifier(12, max_depth=4, random_state=0).fit(frame, label),
        "logistic": LogisticRegression().fit(frame, label),
    }
    # An income takes any number: the integers that a faulty solver bars are then decisions, and not steps of 0.1.
    return SimpleNamespace(frame=frame, models=models, space=ceopt.FeatureSpace.infer(frame, steps=False))


def ask(people: Any, kind: str, **more: Any) -> ceopt.SolutionSet:
    model = people.models[kind]
    row = people.frame[model.predict(people.frame) == "bad"].iloc[3]
    return ceopt.explain(model, row, people.space, **{"target": "good", "data": people.frame, **more})


@pytest.mark.long(every=22)
@pytest.mark.parametrize(("kind", "fault"), PAIRED)
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.usefixtures("by_program")
def test_what_passes_the_check_is_returned_as_feasible_and_the_fault_is_named(people, kind, fault, n) -> None:
    best = ask(people, kind, n=n, diversity="pool")
    assert best.status == "optimal"
    with faulty(fault) as solver:
        found = ask(people, kind, n=n, diversity="pool", solver=solver)
    assert found.status == "feasible"
    assert solver in found.reason
    assert found.bound == 0.0
    assert found.gap == 1.0
    assert len(found) == n
    assert all(answer.verified for answer in found)
    costs = [answer.cost for answer in found]
    assert costs[0] >= best[0].cost - 1e-9
    assert costs == sorted(costs)
    assert [answer.rank for answer in found] == [*range(1, n + 1)]
    if kind == "forest" or fault in KEEPS_A_POINT:  # the forest's start is the best there is
        assert costs[0] == pytest.approx(best[0].cost)


@pytest.mark.parametrize("kind", ["forest", "logistic"])
@pytest.mark.usefixtures("by_program")
def test_a_solver_that_does_not_open_is_no_exception(people, kind) -> None:
    with faulty("raises", opens=False) as solver:
        found = ask(people, kind, solver=solver)
    assert (found.status, len(found)) == ("feasible", 1)
    assert "failed (DiedError: no server)" in found.reason


@pytest.mark.long(every=10)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("by_program")
def test_without_a_point_in_hand_it_is_an_error_and_no_exception(people, fault) -> None:
    """Nothing may move but income, and no income is enough: no start is found, and no answer exists."""
    fixed = people.space.update("loans", mutable=False).update("owner", mutable=False)
    fixed = fixed.update("income", lower=0.0, upper=21.0)
    row = people.frame.iloc[0].to_dict() | {"income": 20.0, "loans": 5, "owner": False}
    asked = {"target": "good", "data": people.frame}
    assert ceopt.explain(people.models["logistic"], row, fixed, **asked).status == "infeasible"
    with faulty(fault) as solver:
        found = ceopt.explain(people.models["logistic"], row, fixed, solver=solver, **asked)
    lies = {"unbounded", "raises", "a dict", "None", "point in error", "no point", "no status"}
    assert found.status == ("error" if fault in lies else "infeasible")  # the others change nothing without a point
    assert len(found) == 0


@pytest.mark.usefixtures("by_program")
def test_a_false_proof_is_not_followed_by_a_believed_one(people) -> None:
    """A solver that calls everything infeasible does not prove that the starts are all there is."""
    with faulty("infeasible") as solver:
        found = ask(people, "forest", n=50, diversity="pool", solver=solver)
    assert found.status == "feasible"
    assert 1 < len(found) < 50
    assert not found.complete
    assert "Proved" not in found.reason


@pytest.mark.usefixtures("by_program")
def test_a_further_answer_that_is_cheaper_takes_the_first_proof_back(people) -> None:
    """Asked for the best, the solver gives the best with other integers as optimal; asked for another, the best."""
    best = ask(people, "logistic")[0]
    runs: list[Outcome] = []

    def late(told: Outcome, compiled: Any) -> Outcome:
        runs.append(told)
        if len(runs) > 1:
            return told
        found = HighsSession(integers(compiled).barred(compiled, [told.x])).solve()
        assert found.x is not None
        return replace(found, x=found.x[: len(compiled.columns)], incumbents=())

    with faulty(late) as solver:
        found = ask(people, "logistic", n=2, diversity="pool", solver=solver, margin=1e-5)
    assert found.status == "feasible"
    assert [answer.rank for answer in found] == [1, 2]
    assert found[0].cost == pytest.approx(best.cost, rel=1e-2)
    assert found[1].cost > 1.05 * found[0].cost
    assert found[1].bound == 0.0
    assert "less than was proved" in found.reason


@pytest.mark.long(every=2)
@pytest.mark.parametrize("fault", ["infeasible", "unbounded", "raises", ONES])
@pytest.mark.usefixtures("by_program")
def test_a_start_that_the_program_does_not_hold_counts_as_well(people, monkeypatch, fault) -> None:
    """The solver was given no start, so that nothing but the verified answer itself contradicts it."""
    best = ask(people, "forest")[0]
    monkeypatch.setattr(ProgramSolver, "_start", lambda *_: None)
    with faulty(fault) as solver:
        found = ask(people, "forest", solver=solver)
    assert found.status == "feasible"
    assert (found[0].cost, found.bound) == (pytest.approx(best.cost), 0.0)


@pytest.mark.usefixtures("by_program")
def test_a_point_dearer_than_a_start_is_not_the_best(people, monkeypatch) -> None:
    """The dearest point of the program, given as its optimum."""

    def dearest(_told: Outcome, compiled: Any) -> Outcome:
        upside_down = compiled.extended()
        upside_down.c = -compiled.c
        found = HighsSession(upside_down).solve()
        assert found.x is not None
        return replace(found, objective=None, incumbents=(), bound=compiled.evaluate(found.x))

    best = ask(people, "forest")[0]
    monkeypatch.setattr(ProgramSolver, "_start", lambda *_: None)
    monkeypatch.setattr("ceopt.search.solve_check_repair.budget_for_next", lambda _: None)
    with faulty(dearest) as solver:
        found = ask(people, "forest", solver=solver)
    assert found.status == "feasible"
    assert (found[0].cost, found.bound) == (pytest.approx(best.cost), 0.0)


@pytest.mark.long(every=10)
@pytest.mark.parametrize("diversity", ["incumbents", "distinct", "support", ceopt.Apart(1.0)])
@pytest.mark.parametrize("fault", ["infeasible", "raises", "NaN", "bound above", ONES])
@pytest.mark.usefixtures("by_program")
def test_other_ways_to_differ_claim_no_more(people, diversity, fault) -> None:
    with faulty(fault) as solver:
        found = ask(people, "forest", n=3, diversity=diversity, solver=solver)
    assert found.status == "feasible"
    assert len(found) >= 1
    assert "faulty" in found.reason


@pytest.mark.parametrize("fault", ["raises", "a dict", "NaN", "no status"])
def test_a_fault_in_the_search_for_a_conflict_is_a_sentence(people, fault) -> None:
    """The question itself is answered as it should be; it is the search for the rules in conflict that fails."""
    runs: list[Outcome] = []

    def later(told: Outcome, _compiled: Any) -> Any:
        runs.append(told)
        told = replace(told, x=np.zeros(1)) if told.x is None and len(runs) > 1 else told
        return told if len(runs) == 1 else FAULTS[fault](told)

    rules = [ceopt.Linear({"income": 1.0}, "<=", 20.0, name="poor"), ceopt.Linear({"loans": 1.0}, ">=", 5.0)]
    with faulty(later) as solver:
        found = ask(people, "logistic", constraints=rules, solver=solver, margin=1e-5)
    assert found.status == "infeasible"
    assert "faulty" in found.reason
    assert len(runs) > 1


@pytest.mark.usefixtures("by_program")
def test_ctrl_c_goes_through(people) -> None:
    def interrupted(_told: Outcome, _compiled: Any) -> Any:
        raise KeyboardInterrupt

    with faulty(interrupted) as solver, pytest.raises(KeyboardInterrupt):
        ask(people, "logistic", solver=solver)


@pytest.mark.usefixtures("by_program")
def test_ctrl_c_in_the_solver_leaves_the_point_in_hand_and_takes_no_further_one(people, monkeypatch) -> None:
    """The solver was given no start and has no point: for the first answer a start is taken, for others none."""
    monkeypatch.setattr(ProgramSolver, "_start", lambda *_: None)
    runs: list[Outcome] = []

    def interrupted(told: Outcome, _compiled: Any) -> Outcome:
        runs.append(told)
        return told if len(runs) < at else Outcome(status=Stop.INTERRUPTED)

    best = ask(people, "forest")[0]
    for at, status in ((1, "feasible"), (2, "optimal")):
        runs.clear()
        with faulty(interrupted) as solver:
            found = ask(people, "forest", n=3, diversity="pool", solver=solver)
        assert (found.status, len(found), len(runs)) == (status, 1, at)
        assert found[0].cost == pytest.approx(best.cost)
        assert not found.complete


@pytest.mark.usefixtures("by_program")
def test_a_cohort_goes_on_after_a_fault(people) -> None:
    with faulty("raises") as solver:
        how = ceopt.Recourse(people.models["logistic"], people.space, target="good", solver=solver)
        cohort = how.fit(people.frame).explain(people.frame.head(4))
    assert {str(found.status) for found in cohort} <= {"feasible", "already_favourable"}


@pytest.mark.usefixtures("by_program")
def test_a_misuse_is_still_refused(people) -> None:
    with faulty("raises") as solver, pytest.raises(ceopt.CeoptError, match="nonsense"):
        ask(people, "logistic", solver=solver, solver_options={"nonsense": 1})
