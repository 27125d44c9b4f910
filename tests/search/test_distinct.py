"""Distinct answers: what is particular about them, one case each; that they are the best is asked beside other ways."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from faulty import faulty
from licences import skip_without

import ceopt
from ceopt.formulations.columns import Numeric
from ceopt.formulations.constraints.diversity.distinct import Distinct
from ceopt.formulations.constraints.diversity.diversity import SomeStay
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.recourse_program import RecourseProgram, recourse_program
from ceopt.formulations.targets import AtLeast, parse_target
from ceopt.search.solve_program import ProgramSolver
from ceopt.settings import Settings
from ceopt.solvers.problem import Stop
from ceopt.surrogates import BoundarySampler, LocalSurrogateRecourse, SvmSurrogate

PLAIN = ceopt.L1(scale="none")
HOURS = ceopt.Feature("hours", kind="integer", lower=0, upper=9)
DEBT = ceopt.Feature("debt", kind="integer", lower=0, upper=9)
JOB = ceopt.Feature("job", kind="categorical", levels=(1, 2, 3))
SIZE = ceopt.Feature("size", kind="ordinal", levels=(0, 1, 2))


def asked(model: Any, row: dict[str, Any], space: list[Any], **options: Any) -> list[tuple[float, dict[str, Any]]]:
    """Return the cost of each answer and what it changes, all of which there are."""
    words = {"target": AtLeast(0.5), "cost": PLAIN, "n": 5, "margin": 0.125, **options}
    result = ceopt.explain(model, row, ceopt.FeatureSpace(space), **words)
    assert result.complete, result.reason
    assert all(answer.gap == pytest.approx(0.0, abs=1e-6) for answer in result)
    return [(answer.cost, {name: answer.values[name] for name in answer.changed}) for answer in result]


def is_clear_of_supersets(answers: Any) -> bool:
    """Tell whether no answer changes all that an earlier one changes, and more."""
    return not any(set(a.changed) < set(b.changed) for a, b in itertools.combinations(answers, 2))


# ---- what makes another answer ---------------------------------------------------------------------------------------
def test_it_is_what_everybody_gets_who_asks_for_several() -> None:
    doors = (ceopt.explain, ceopt.Recourse, Settings, LocalSurrogateRecourse.explain)

    assert {inspect.signature(door).parameters["diversity"].default for door in doors} == {"distinct"}
    assert ceopt.explain(Affine([1.0], -3.5), {"hours": 1}, ceopt.FeatureSpace([HOURS]), target=AtLeast(0)).options[
        "diversity"
    ] == "distinct"  # fmt: skip


#: From hours 3, debt 3, job 1, size 1: what an earlier and a later answer change, and whether the later is another.
PAIRS: list[tuple[dict[str, float], dict[str, float], bool]] = [
    ({"hours": 5}, {"hours": 6}, False),
    ({"hours": 5}, {"hours": 5, "debt": 2}, False),
    ({"hours": 5}, {"hours": 1, "debt": 2}, False),  # the other way, but with more beside
    ({"hours": 5}, {"hours": 1}, True),
    ({"hours": 5, "debt": 2}, {"hours": 5}, True),
    ({"hours": 5, "debt": 2}, {"hours": 6, "debt": 4}, True),
    ({"hours": 5, "debt": 2}, {"hours": 6, "debt": 0}, False),
    ({"hours": 5, "debt": 2}, {"debt": 2, "job": 2}, True),
    ({"job": 1}, {"job": 2}, True),
    ({"job": 1}, {"job": 2, "debt": 2}, False),
    ({"size": 2}, {"size": 0}, True),
    ({"size": 3}, {"size": 2}, False),
]


@pytest.mark.parametrize(("earlier", "later", "is_other"), PAIRS)
def test_in_plain_numbers_and_in_rows(earlier: dict[str, float], later: dict[str, float], is_other: bool) -> None:
    """Levels are given by their ranks, 0 being that of job 1."""
    home = {"hours": 3.0, "debt": 3.0, "job": 0.0, "size": 1.0}
    sizes = ceopt.Feature("size", kind="ordinal", levels=(0, 1, 2, 3))
    row = {"hours": 3, "debt": 3, "job": 1, "size": 1}
    program = program_of([HOURS, DEBT, JOB, sizes], row, [1.0, 1.0, 1.0, 1.0])
    Distinct().exclude(program, home | earlier)

    assert Distinct().differ(program.x.space, home, home | earlier, home | later) is is_other
    program.x.place(home | later)
    rows = program.model.distinct[1].component_data_objects(pyo.Constraint)
    assert all(row.slack() >= 0.0 for row in rows) is is_other


def test_more_of_the_same_is_no_other_answer() -> None:
    """Four hours will do, and nothing else without some of them; three and no debt cost as much, and come after."""
    found = asked(Affine([1.0, -1.0, 0.25], -4.5), {"hours": 2, "debt": 1, "job": 1}, [HOURS, DEBT, JOB])

    assert found == [(4.0, {"hours": 6})]


def test_a_part_of_an_earlier_answer_may_come_later() -> None:
    space = [HOURS, ceopt.Feature("help", kind="integer", lower=0, upper=2, weight=0.75)]

    found = asked(Affine([1.0, 0.875], -2.75), {"hours": 0, "help": 0}, space)

    assert found == [(3.5, {"hours": 2, "help": 2}), (4.0, {"hours": 4})]


@pytest.mark.parametrize("form", ["trees", "network"])
def test_a_number_the_other_way_is_another_answer_and_further_the_same_way_is_none(form: str) -> None:
    """Four hours or fewer, or eight and more, and all between refused: from six, two down and two up."""
    beyond = {"feature": 0, "threshold": 7.5, "left": {"value": 0.0}, "right": {"value": 1.0}}
    models = {
        "trees": TreeEnsemble([{"feature": 0, "threshold": 4.5, "left": {"value": 1.0}, "right": beyond}]),
        "network": ReluNetwork([[[-1.0], [1.0]], [[1.0, 1.0]]], [[5.0, -7.0], [0.0]]),
    }

    found = asked(models[form], {"hours": 6}, [HOURS])

    assert sorted(found, key=str) == [(2.0, {"hours": 4}), (2.0, {"hours": 8})]


def test_another_level_is_another_answer_of_a_category_and_none_of_an_ordinal_column() -> None:
    """Either job will do, and either step up; the second step up is more of the first."""
    model = Affine([1.0, 0.0, 0.0], -1.0)

    row = {"job": 1, "size": 0, "debt": 0}

    found = [changes["job"] for _, changes in asked(model, row, [JOB, SIZE, DEBT])]

    assert sorted(found) == [2, 3]
    assert asked(Affine([0.0, 1.0, 0.0], 0.0), row, [JOB, SIZE, DEBT]) == [(0.5, {"size": 1})]


def test_both_jobs_with_more_hours_but_neither_with_less_debt_too() -> None:
    rises = ceopt.IfThen(("job", "changed"), ("hours", ">=", 3))
    model = Affine([0.0, 0.0, 1.0], -1.0)

    found = asked(model, {"hours": 2, "debt": 1, "job": 1}, [HOURS, DEBT, JOB], constraints=[rises])

    assert sorted(found, key=str) == [(2.0, {"hours": 3, "job": 2}), (2.0, {"hours": 3, "job": 3})]


def test_a_column_that_follows_from_others_counts_as_changed() -> None:
    """Where hours rise, debt falls by itself: both change. Either alone is another answer, a part of it."""
    follows = ceopt.Causal({"debt": ceopt.LinearEquation({"hours": -1.0}, 9.0)}, intervention="soft")

    found = asked(
        Affine([1.0, -1.0], 1.0), {"hours": 2, "debt": 7}, [HOURS, DEBT], constraints=[follows], target=AtLeast(-2.0)
    )

    assert [(cost, set(changes)) for cost, changes in found] == [
        (2.0, {"hours", "debt"}),
        (3.0, {"debt"}),
        (6.0, {"hours"}),
    ]


def test_no_least_move_is_asked_for() -> None:
    """By support the next answer adds a thousandth of a range; here it is a way of its own, exactly the cheapest."""
    space = [ceopt.Feature(name, kind="continuous", lower=0.0, upper=10.0) for name in ("pay", "savings")]
    model = Affine([1.0, 0.5], -3.0)
    row = {"pay": 1.0, "savings": 1.0}

    found = asked(model, row, space, margin=1e-5)
    support = asked(model, row, space, margin=1e-5, diversity="support")

    assert [changes.keys() for _, changes in found] == [{"pay"}, {"savings"}]
    assert [cost for cost, _ in found] == pytest.approx([2.0, 4.0], abs=1e-4)
    assert support[1][0] == pytest.approx(2.005, abs=1e-4)


# ---- solvers, rows and points ----------------------------------------------------------------------------------------
@pytest.mark.long(every=2)
@pytest.mark.parametrize("solver", ["scip", "gurobi"])
@pytest.mark.parametrize("kind", ["linear", "network", "trees"])
def test_every_solver_gives_the_same_ranks(kind: str, solver: str) -> None:
    skip_without(solver)
    splits = [
        {"feature": j, "threshold": 4.5, "left": {"value": -0.5 * j}, "right": {"value": 1.0 + 0.25 * j}}
        for j in range(3)
    ]
    models = {
        "linear": Affine([1.0, -0.5, 0.75], -4.0),
        "network": ReluNetwork([[[1.0, -1.0, 0.0], [-1.0, 0.5, 1.0]], [[1.0, 0.5]]], [[-3.0, 1.0], [-1.5]]),
        "trees": TreeEnsemble(splits, base=-0.5, n_inputs=3),
    }
    row = {"hours": 3, "debt": 3, "size": 0}
    space = [HOURS, DEBT, ceopt.Feature("size", kind="integer", lower=0, upper=6, weight=1.5)]

    ours, theirs = (asked(models[kind], row, space, solver=word) for word in ("highs", solver))

    assert len(ours) > 1
    assert [cost for cost, _ in ours] == pytest.approx([cost for cost, _ in theirs])


def program_of(space: list[Any], row: dict[str, Any], weights: list[float]) -> RecourseProgram:
    """Return the program of a linear model."""
    model = read(Affine(weights, 0.0), ceopt.FeatureSpace(space))
    return recourse_program(model, row, target=parse_target(AtLeast(0.5), None), cost=PLAIN, margin=0.125)


@pytest.mark.parametrize("later", [{"hours": 6.0, "debt": 3.0, "job": 1.0}, {"hours": 1.0, "debt": 3.0, "job": 2.0}])
def test_a_start_that_is_another_answer_keeps_every_row(later: dict[str, float]) -> None:
    """All of its binaries are set, also those of directions: a start that a solver has to mend is often lost."""
    program = program_of([HOURS, DEBT, JOB], {"hours": 3, "debt": 3, "job": 1}, [1.0, 1.0, 1.0])
    Distinct().exclude(program, {"hours": 4.0, "debt": 3.0, "job": 2.0})
    program.x.place(later)

    assert Distinct().differ(program.x.space, program.x.point, {"hours": 4.0, "debt": 3.0, "job": 2.0}, later)
    for row in program.model.component_data_objects(pyo.Constraint, active=True, descend_into=True):
        if "valid" not in row.name:
            assert row.slack() >= -1e-9, row.name
    program.x.place({"hours": 5.0, "debt": 3.0, "job": 2.0})
    assert program.model.distinct[1].otherwise["columns"].slack() < 0


def test_a_trace_of_a_move_to_the_side_that_is_barred_is_none() -> None:
    """A binary of 1e-6 lets the coordinate off by as much of its range: read as integers, it stays."""
    pay = ceopt.Feature("pay", kind="continuous", lower=0.0, upper=1e4)
    program = program_of([pay, HOURS], {"pay": 5e3, "hours": 2}, [1.0, 1.0])
    Distinct().exclude(program, {"pay": 6e3, "hours": 2.0})
    at = program.x.coordinates["pay"]
    assert isinstance(at, Numeric)
    program.x.place({"pay": 4e3, "hours": 2.0})
    assert at.decode() == 4e3

    at.variable.set_value(5e3 + 4e-3)

    assert at.decode() == 5e3


def test_without_bounds_the_answers_in_hand_stay_where_a_program_is_asked(request: pytest.FixtureRequest) -> None:
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", mad=1.0) for name in ("pay", "savings")])

    result = ceopt.explain(Affine([1.0, 0.5], -3.0), {"pay": 1.0, "savings": 0.0}, space, target=AtLeast(0.0), n=3)

    assert (result.status, len(result), result.complete) == ("optimal", 2, True)  # by knapsacks

    request.getfixturevalue("by_program")
    result = ceopt.explain(Affine([1.0, 0.5], -3.0), {"pay": 1.0, "savings": 0.0}, space, target=AtLeast(0.0), n=3)

    assert (result.status, len(result), result.complete) == ("optimal", 1, False)
    assert "finite bounds, but column 'pay' may reach" in result.reason


@pytest.mark.usefixtures("by_program")
def test_an_answer_that_turns_out_to_be_more_of_a_cheaper_one_is_left_out() -> None:
    """A solver is wrong about the first: the second is a part of it and cheaper, so that the first is no answer."""
    space = ceopt.FeatureSpace([HOURS, DEBT])
    words = {"target": AtLeast(0.0), "cost": PLAIN, "margin": 0.125, "n": 2, "diversity": "distinct"}
    run = ProgramSolver.run
    runs = []

    def wrong(self: Any, request: Any, seconds: float) -> Any:
        solved = run(self, request, seconds)
        runs.append(request)
        if any(isinstance(how, SomeStay) for _, how in request.barred):
            return replace(solved, point=None).with_outcome(status=Stop.INFEASIBLE, x=None)
        if request.barred:
            return solved
        return replace(solved, point={"hours": 4.0, "debt": 0.0}).with_outcome(bound=4.0, objective=4.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramSolver, "run", wrong)
        result = ceopt.explain(Affine([1.0, -1.0], -2.5), {"hours": 1, "debt": 1}, space, **words)

    assert len(runs) > 1
    assert [answer.changed for answer in result] == [("hours",)]
    assert (result.status, result.complete, result[0].rank) == ("feasible", False, 1)
    assert "What does not differ from a cheaper answer is left out." in result.reason


@pytest.mark.parametrize("fault", ["infeasible", "raises"])
@pytest.mark.usefixtures("by_program")
def test_what_is_met_without_a_solver_is_distinct_too(fault: str) -> None:
    rng = np.random.default_rng(0)
    places = (rng.integers(1, 8, 9) + 0.5).tolist()
    ends = {"left": {"value": -1.0}, "right": {"value": 1.0}}
    splits = [{"feature": j % 3, "threshold": place, **ends} for j, place in enumerate(places)]
    space = ceopt.FeatureSpace([HOURS, DEBT, ceopt.Feature("years", kind="integer", lower=0, upper=9)])
    row = {"hours": 2, "debt": 2, "years": 2}
    with faulty(fault) as solver:
        result = ceopt.explain(
            TreeEnsemble(splits, n_inputs=3), row, space, target=AtLeast(2.0), cost=PLAIN, n=6, solver=solver
        )

    assert len(result) > 1
    assert is_clear_of_supersets(result)
    assert not result.complete or "Proved" not in result.reason


# ---- many people, and black boxes ------------------------------------------------------------------------------------
def test_a_cohort_and_a_black_box_get_distinct_answers_too() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 3)), columns=["a", "b", "c"])
    space = ceopt.FeatureSpace.infer(frame)

    def predict(rows: pd.DataFrame) -> Any:
        return np.where(rows["a"] + 0.8 * rows["b"] + 0.6 * rows["c"] > 1.0, "yes", "no")

    people = frame[predict(frame) == "no"].head(3)
    surrogate = LocalSurrogateRecourse(BoundarySampler(n_samples=200), SvmSurrogate(), max_rounds=1)
    words = {"target": "yes", "n": 3, "surrogate": surrogate}
    cohort = ceopt.Recourse(predict, space, **words).fit(frame).explain(people)
    alone = ceopt.explain(predict, people.iloc[0], space, data=frame, **words)

    assert cohort.options["diversity"] == alone.options["diversity"] == "distinct"
    assert sum(len(result) for result in cohort) > len(cohort)
    assert all(is_clear_of_supersets(result) for result in (*cohort, alone))


# ---- few changes -----------------------------------------------------------------------------------------------------
def test_few_changes_takes_one_column_where_two_are_hardly_cheaper() -> None:
    """Three hours cost 3; two, and one less debt at 0.98, cost 2.98."""
    space = [replace(HOURS, mad=1.0), replace(DEBT, mad=1.0, weight=0.98)]
    model = Affine([1.0, -0.75], -3.25)
    row = {"hours": 1, "debt": 1}

    near = asked(model, row, space, n=1, cost="l1", target=AtLeast(-0.5))
    few = asked(model, row, space, n=1, cost="few_changes", target=AtLeast(-0.5))
    same = asked(model, row, space, n=1, cost=ceopt.L1() + 0.1 * ceopt.Changes(), target=AtLeast(-0.5))

    assert near == [(pytest.approx(2.98), {"hours": 3, "debt": 0})]
    assert few == same == [(pytest.approx(3.1), {"hours": 4})]


def test_of_one_cost_the_answer_with_fewer_columns_comes_first_also_where_it_ties() -> None:
    """Three hours reach the target exactly; two and two of help cost the same and have something to spare."""
    help_ = ceopt.Feature("help", kind="integer", lower=0, upper=2, weight=0.5)
    pay = ceopt.Feature("pay", kind="continuous", lower=0.0, upper=9.0, weight=100.0)
    row = {"hours": 2, "help": 0, "pay": 1.0}

    found = asked(Affine([1.0, 0.75, 0.25], -5.25), row, [HOURS, help_, pay], margin=None, target=AtLeast(0.0))

    assert found[0] == (3.0, {"hours": 5})


def test_of_answers_that_cost_nothing_the_one_with_fewer_columns_comes_first() -> None:
    """Moves of weight 0 are free: of two columns that would do, and of both together, each alone is an answer."""
    free = [replace(HOURS, weight=0.0), replace(DEBT, weight=0.0)]
    for row in ({"hours": 0, "debt": 0}, {"hours": 1, "debt": 1}, {"hours": 2, "debt": 0}):
        found = asked(Affine([1.0, 1.0], -7.5), row, free, target=AtLeast(0.0))
        assert [cost for cost, _ in found] == [0.0, 0.0]
        assert sorted(tuple(changed) for _, changed in found) == [("debt",), ("hours",)]


def test_where_no_program_may_be_solved_any_more_an_answer_keeps_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ceopt.search.phases.MOST_REPAIRS", 0)
    space = [HOURS, DEBT]
    found = asked(Affine([1.0, 1.0], -14.5), {"hours": 0, "debt": 0}, space, margin=None, target=AtLeast(0.0), n=2)
    assert found == [(15.0, {"hours": found[0][1]["hours"], "debt": 15 - found[0][1]["hours"]})]


def test_ctrl_c_while_fewer_columns_are_looked_for_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the margin, and without one: the answer in hand stays, and no other program is solved."""
    help_ = ceopt.Feature("help", kind="integer", lower=0, upper=2, weight=0.5)
    pay = ceopt.Feature("pay", kind="continuous", lower=0.0, upper=9.0, weight=100.0)
    run, runs = ProgramSolver.run, []

    def interrupted(self: Any, request: Any, seconds: float) -> Any:
        runs.append(any(isinstance(how, SomeStay) for _, how in request.barred))
        solved = run(self, request, seconds)
        if not runs[-1] or sum(runs) > 1:
            return solved
        return replace(solved, point=None).with_outcome(status=Stop.INTERRUPTED, x=None)

    monkeypatch.setattr(ProgramSolver, "run", interrupted)
    result = ceopt.explain(
        Affine([1.0, 0.75, 0.25], -5.25), {"hours": 2, "help": 0, "pay": 1.0},
        ceopt.FeatureSpace([HOURS, help_, pay]), target=AtLeast(0.0), cost=PLAIN, n=5,
    )  # fmt: skip
    assert (sum(runs), runs[-1]) == (1, True)
    assert (len(result), result[0].cost, result.complete) == (1, 3.0, False)


@pytest.mark.parametrize("proof", [True, False])
def test_a_move_that_costs_nothing_is_made_only_where_it_is_needed(proof: bool) -> None:
    """Alone a cheapest answer also raised what has weight 0, though it reached the target without."""
    space = ceopt.FeatureSpace([ceopt.Feature("free", kind="integer", lower=0, upper=9, weight=0.0), HOURS, DEBT])
    row = {"free": 0, "hours": 0, "debt": 0}
    (answer,) = ceopt.explain(Affine([0.1, 1.0, 1.0], -2.95), row, space, target=AtLeast(0), cost=PLAIN, proof=proof)
    assert answer.cost == 3.0
    assert "free" not in answer.changed


def test_a_move_that_costs_nothing_stays_where_a_rule_or_the_target_needs_it() -> None:
    free = ceopt.Feature("free", kind="integer", lower=0, upper=9, weight=0.0)
    space = ceopt.FeatureSpace([free, HOURS])
    rules = [ceopt.IfThen(("hours", ">=", 3), ("free", ">=", 4))]
    (ruled,) = ceopt.explain(
        Affine([0.1, 1.0], -2.95), {"free": 0, "hours": 0}, space, target=AtLeast(0), cost=PLAIN, constraints=rules
    )
    (needed,) = ceopt.explain(Affine([1.0, 1.0], -9.0), {"free": 0, "hours": 0}, space, target=AtLeast(0), cost=PLAIN)
    assert (needed.cost, needed.changed) == (0.0, ("free",))
    assert ruled.values["free"] >= 4
