"""The limit bounds the whole call: every stage looks at the clock, and what is in hand by then is kept.

No test asks how long something takes. The clock is the test's own: it goes on by a second whenever a chosen function is
called, or jumps far beyond the limit when a chosen stage begins.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from faulty import faulty
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.diverse import exhaustive
from ceopt.formulations.predictors import Affine
from ceopt.search import near_people, read_once
from ceopt.search.state import Question
from ceopt.solvers import Support
from ceopt.solvers.adapter import AbstractSession
from ceopt.solvers.deadline import OutOfTimeError, checkpoint, seconds_left, until, without_deadline
from ceopt.solvers.problem import Stop
from ceopt.solvers.registry import SOLVERS


class Clock:
    """A clock that stands still but for what it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


def slowed(monkeypatch: pytest.MonkeyPatch, clock: Clock, where: str, seconds: float) -> list[int]:
    """Let each call of a function take some seconds more of the test's clock; return a list of one entry, its calls."""
    path, _, name = where.rpartition(".")
    owner: Any
    try:
        owner = importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, cls = path.rpartition(".")
        owner = getattr(importlib.import_module(module), cls)
    inner: Callable[..., Any] = getattr(owner, name)
    calls = [0]

    def slow(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        result = inner(*args, **kwargs)
        clock.now += seconds
        return result

    monkeypatch.setattr(owner, name, slow)
    return calls


# ---- people and models -----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(300, 4)).round(2), columns=list("abcd"))
    return frame.assign(job=rng.choice([f"job {k}" for k in range(9)], 300))


@pytest.fixture(scope="module")
def numbers(people: pd.DataFrame) -> pd.DataFrame:
    return people[list("abcd")]


def labels(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    return np.where(frame["a"] + frame["b"] * frame["c"] > 0.3, "good", "bad")


@pytest.fixture(scope="module")
def forest(numbers: pd.DataFrame) -> RandomForestClassifier:
    return RandomForestClassifier(40, max_depth=4, random_state=0).fit(numbers, labels(numbers))


@pytest.fixture(scope="module")
def deep(numbers: pd.DataFrame) -> RandomForestClassifier:
    return RandomForestClassifier(5, max_features=1, random_state=0).fit(numbers, labels(numbers))


@pytest.fixture(scope="module")
def linear(numbers: pd.DataFrame) -> LogisticRegression:
    return LogisticRegression().fit(numbers, labels(numbers))


@pytest.fixture(scope="module")
def network(numbers: pd.DataFrame) -> MLPClassifier:
    return MLPClassifier((5, 5, 5, 5, 5), max_iter=2000, random_state=0).fit(numbers, labels(numbers))


@pytest.fixture(scope="module")
def encoded(people: pd.DataFrame) -> Any:
    steps = make_column_transformer((StandardScaler(), list("abcd")), (OneHotEncoder(), ["job"]))
    return make_pipeline(steps, LogisticRegression()).fit(people, labels(people))


def ask(model: Any, frame: pd.DataFrame, **options: Any) -> ceopt.SolutionSet:
    row = frame[np.asarray(model.predict(frame) == "bad")].iloc[0]
    return ceopt.explain(model, row, ceopt.FeatureSpace.infer(frame), target="good", **options)


# ---- a stage that takes too long is the last one ---------------------------------------------------------------------
READING = {
    "ceopt.search.prepare.open_model": "opening the model",
    "ceopt.search.prepare.read": "reading the model",
    "ceopt.formulations.predictors.readers.pipeline.probe": "reading the steps of the pipeline",
    "ceopt.search.prepare.check_formulation": "checking the settings",
}


@pytest.mark.parametrize("where", READING)
def test_a_limit_used_up_in_reading_is_a_status_that_names_the_stage(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, linear: Any, numbers: pd.DataFrame
) -> None:
    slowed(monkeypatch, clock, where, 1e3)
    result = ask(linear, numbers, time_limit_s=60.0, data=numbers)

    assert result.status == "time_limit"
    assert not len(result)
    assert not result.complete
    assert result.reason == f"The time limit of 60 s is used up while {READING[where]}."
    assert result.timings["total"] >= 1e3
    assert result.options["time_limit_s"] == 60.0
    assert ceopt.SolutionSet.from_json(result.to_json()).reason == result.reason
    assert result.to_frame().empty


#: Stages after reading, and what is told of them.
LATER = {
    "ceopt.formulations.recourse_program.Factual": "stating what the model reads",
    "ceopt.search.solve_program.recourse_program": "lowering the program to arrays",
}


@pytest.mark.parametrize("where", LATER)
@pytest.mark.usefixtures("by_program")
def test_a_limit_used_up_in_building_leaves_the_verified_start(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, forest: Any, numbers: pd.DataFrame
) -> None:
    asked = slowed(monkeypatch, clock, "ceopt.solvers.adapter.AbstractSession.solve", 0.0)
    slowed(monkeypatch, clock, where, 1e3)
    result = ask(forest, numbers, data=numbers)

    assert result.status == "feasible"
    assert result[0].verified
    assert result[0].bound == 0.0
    assert "is used up while" in result.reason
    assert result.timings["build"] >= 1e3
    assert asked == [0]


@pytest.mark.parametrize("where", LATER)
@pytest.mark.usefixtures("by_program")
def test_a_limit_used_up_in_building_a_linear_model_leaves_nothing(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, linear: Any, numbers: pd.DataFrame
) -> None:
    slowed(monkeypatch, clock, where, 1e3)
    result = ask(linear, numbers)

    assert result.status == "time_limit"
    assert result.reason == f"The time limit of 60 s is used up while {LATER[where]}."
    assert result.bound is None


def test_a_limit_used_up_in_the_search_for_a_start_ends_the_call(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, forest: Any, numbers: pd.DataFrame
) -> None:
    built = slowed(monkeypatch, clock, "ceopt.search.solve_program.recourse_program", 0.0)
    slowed(monkeypatch, clock, "ceopt.formulations.predictors.raw_trees.RawTrees._read", 1e3)
    result = ask(forest, numbers, data=numbers)

    assert result.status == "time_limit"
    assert result.reason == "The time limit of 60 s is used up while reading the leaves of the trees."
    assert built == [0]


# ---- each stage looks at the clock within ----------------------------------------------------------------------------
#: Rounds between two looks at the clock, where a round takes microseconds.
ROUNDS = {"the rows written": 32}
#: What is called once in each round of a stage, the model, and the rules.
WITHIN = {
    "the trees read": ("ceopt.formulations.predictors.trees.Tree._unreachable", "forest", ()),
    "the leaves read": ("ceopt.formulations.predictors.leaf_boxes._Growing._below", "deep", ()),
    "the trees pruned": ("ceopt.formulations.predictors.pruned_leaves._PrunedWriter._tree", "forest", ()),
    "the rows written": ("ceopt.formulations.linear_form.LinearForm.expression", "forest", ()),
    "the rows lowered": ("ceopt.solvers.compile.pyomo_walker.Walker.row", "forest", ()),
    "the columns lowered": ("ceopt.solvers.compile.compiled_model.CompiledModel._bounds", "forest", ()),
    "the layers bounded": (
        "ceopt.formulations.predictors.embed.networks.NetworkBounds._substituted",
        "network",
        (),
    ),
    "the columns read": ("ceopt.formulations.predictors.readers.pipeline.Column", "encoded", ()),
    "the clusters found": ("sklearn.cluster.KMeans.fit", "linear", (ceopt.Hull(clusters=2),)),
    "the points of clusters": (
        "ceopt.formulations.constraints.hull_points.vertices",
        "linear",
        (ceopt.Hull(clusters=[k % 20 for k in range(300)]),),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("stage", WITHIN)
@pytest.mark.usefixtures("by_program")
def test_a_stage_ends_soon_after_the_limit(
    stage: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    where, fixture, rules = WITHIN[stage]
    frame: pd.DataFrame = request.getfixturevalue("people" if fixture == "encoded" else "numbers")
    model, calls = request.getfixturevalue(fixture), slowed(monkeypatch, clock, where, 1.0)

    ask(model, frame, time_limit_s=1e6, constraints=[replace(rule, data=frame) for rule in rules])
    whole, calls[0] = calls[0], 0
    read_once.forget()
    result = ask(model, frame, time_limit_s=5.0, constraints=[replace(rule, data=frame) for rule in rules])

    rounds = ROUNDS.get(stage, 0)
    assert whole >= 9 + rounds
    assert calls[0] <= 6 + rounds
    assert result.status in {"time_limit", "feasible"}
    assert result.reason.startswith("The time limit of 5 s is used up")


# ---- what is left ----------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("by_program")
def test_the_solver_is_given_what_is_left(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, linear: Any, numbers: pd.DataFrame
) -> None:
    given, inner = [], AbstractSession.solve

    def solve(self: Any, **options: Any) -> Any:
        given.append(options["time_limit_s"])
        return inner(self, **options)

    monkeypatch.setattr(AbstractSession, "solve", solve)
    slowed(monkeypatch, clock, "ceopt.search.prepare.read", 20.0)
    slowed(monkeypatch, clock, "ceopt.search.solve_program.recourse_program", 15.0)
    slowed(monkeypatch, clock, "ceopt.search.solve_program.compile_model", 10.0)
    result = ask(linear, numbers, time_limit_s=60.0, margin=1e-5)

    assert result.status == "optimal"
    assert given == [15.0]
    assert result.timings["read"] == 20.0
    assert result.timings["total"] == 45.0
    assert sum(result.timings.values()) == 90.0  # the phases add up to the total


def test_the_phases_add_up_to_the_total(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, forest: Any, numbers: pd.DataFrame
) -> None:
    """Also what is between them: rules that are asked as a start is checked, and as the answer is printed."""
    slowed(monkeypatch, clock, "ceopt.search.prepare.read", 2.0)
    slowed(monkeypatch, clock, "ceopt.search.search.person_of", 3.0)
    slowed(monkeypatch, clock, "ceopt.search.search.with_printed", 5.0)
    slowed(monkeypatch, clock, "ceopt.search.search.settled", 7.0)
    timings = dict(ask(forest, numbers, time_limit_s=60.0).timings)

    total = timings.pop("total")
    assert total >= 17.0
    assert sum(timings.values()) == total
    assert timings["check"] >= 5.0


@pytest.mark.usefixtures("by_program")
def test_answers_in_hand_are_kept(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, forest: Any, numbers: pd.DataFrame
) -> None:
    slowed(monkeypatch, clock, "ceopt.search.solve_program.compile_model", 25.0)
    result = ask(forest, numbers, n=5, diversity="pool", time_limit_s=60.0)

    assert result.status == "optimal"
    assert len(result) == 2
    assert not result.complete
    assert result.reason == "No more, as: The time limit of 60 s is used up while building the trees."


def test_a_first_attempt_that_failed_the_check_is_no_loss_of_its_bound(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, forest: Any, numbers: pd.DataFrame
) -> None:
    """The solver's first point is refused; building the repaired program takes too long: the start stays, proved."""
    inner, asked = Question.check, [0]

    def check(self: Any, point: dict[str, float]) -> Any:
        asked[0] += 1
        found = inner(self, point)
        return found._replace(valid=False) if asked[0] == 2 else found

    monkeypatch.setattr(Question, "check", check)
    slowed(monkeypatch, clock, "ceopt.search.solve_program.recourse_program", 40.0)
    result = ask(forest, numbers, data=numbers, time_limit_s=60.0)

    assert result.status.has_answers
    assert result[0].bound > 0.0


def test_under_a_recourse_reading_belongs_to_fit(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, linear: Any, numbers: pd.DataFrame
) -> None:
    slowed(monkeypatch, clock, "ceopt.search.prepare.read", 1e3)
    recourse = ceopt.Recourse(linear, ceopt.FeatureSpace.infer(numbers), target="good", time_limit_s=60.0).fit(numbers)
    (result,) = recourse.explain(numbers[linear.predict(numbers) == "bad"].head(1))

    assert result.status == "optimal"
    assert result.timings["read"] == 0.0
    assert result.timings["total"] < 60.0


def test_a_limit_that_is_none_is_refused_before_anything_is_read(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, linear: Any, numbers: pd.DataFrame
) -> None:
    opened = slowed(monkeypatch, clock, "ceopt.search.prepare.open_model", 0.0)
    for limit in (0.0, -1, "long", None, True, float("inf")):
        with pytest.raises(ceopt.CeoptError, match="time_limit_s"):
            ask(linear, numbers, time_limit_s=limit)
    assert opened == [0]


def test_a_bad_row_is_refused_whatever_the_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, linear: Any, numbers: pd.DataFrame
) -> None:
    slowed(monkeypatch, clock, "ceopt.search.prepare.read", 1e3)
    with pytest.raises(ceopt.CeoptError, match="'d'"):
        ceopt.explain(linear, {"a": 1.0, "b": 1.0, "c": 1.0}, ceopt.FeatureSpace.infer(numbers), target="good")


# ---- the deadline itself ---------------------------------------------------------------------------------------------
def test_the_earlier_of_two_deadlines_counts(clock: Clock) -> None:
    with until(clock.now + 10.0):
        with until(clock.now + 100.0):
            assert seconds_left() == 10.0
        with until(clock.now + 1.0):
            assert seconds_left() == 1.0
            clock.now += 1.0
            with pytest.raises(OutOfTimeError, match="sorting"):
                checkpoint("sorting")
            with without_deadline():
                checkpoint("sorting")
        checkpoint("sorting")
        assert seconds_left() == 9.0
    assert seconds_left() == float("inf")


def test_a_solver_whose_model_takes_too_long_stops(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage within a session that looks at the clock ends the session with a status."""
    highs = importlib.import_module("ceopt.solvers.highs")
    compiled = importlib.import_module("ceopt.solvers.compile.compiled_model")
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Binary)
    model.cost = pyo.Objective(expr=model.x)
    session = highs.HighsSession(compiled.compile_model(model))

    def run(search: Any) -> Any:
        clock.now += 100.0
        checkpoint("cutting")
        raise AssertionError

    monkeypatch.setattr(highs.HighsSession, "_run", lambda _, search: run(search))
    outcome = session.solve(time_limit_s=60.0)
    assert outcome.status is Stop.TIME_LIMIT
    assert outcome.message == "The time limit is used up while cutting."


def test_a_session_within_a_call_ends_with_it(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    highs = importlib.import_module("ceopt.solvers.highs")
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Binary)
    model.cost = pyo.Objective(expr=model.x)
    left = []
    inner = highs.HighsSession._run
    monkeypatch.setattr(highs.HighsSession, "_run", lambda own, s: left.append(s.seconds_left) or inner(own, s))
    with until(clock.now + 7.0):
        ceopt.solvers.solve(model)
        ceopt.solvers.solve(model, time_limit_s=60.0)
        ceopt.solvers.solve(model, time_limit_s=3.0)
    ceopt.solvers.solve(model, time_limit_s=60.0)
    assert left == [7.0, 7.0, 3.0, 60.0]


# ---- solve -----------------------------------------------------------------------------------------------------------
def knapsack() -> pyo.ConcreteModel:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), domain=pyo.Binary)
    model.rows = pyo.Constraint(range(12), rule=lambda m, i: sum((i + j + 1) * m.x[j] for j in range(4)) <= 20 + i)
    model.value = pyo.Objective(expr=sum((j + 1) * model.x[j] for j in range(4)), sense=pyo.maximize)
    return model


def test_solve_ends_in_lowering(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = slowed(monkeypatch, clock, "ceopt.solvers.compile.pyomo_walker.Walker.row", 1.0)
    result = ceopt.solvers.solve(knapsack(), time_limit_s=5.0)

    assert result.status is Stop.TIME_LIMIT
    assert result.message == "The time limit is used up while lowering the program to arrays."
    assert not result.solutions
    assert not result.complete
    assert result.bound is None
    assert calls == [5]


@pytest.mark.skipif(not SOLVERS["scip"].is_licensed, reason="SCIP is not installed")
def test_solve_ends_in_handing_the_program_to_scip(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = slowed(monkeypatch, clock, "ceopt.solvers.scip._finite", 1.0)
    result = ceopt.solvers.solve(knapsack(), "scip", time_limit_s=20.0)

    assert result.status is Stop.TIME_LIMIT
    assert result.message == "The time limit is used up while handing the program to SCIP."
    assert calls[0] < 24


def test_a_pool_keeps_the_solutions_in_hand(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening the third session takes too long."""
    runner = importlib.import_module("ceopt.solvers.pool.ranking")
    inner, opened = runner.Runner.session, [0]

    def session(self: Any, compiled: Any) -> Any:
        opened[0] += 1
        with until(self.deadline):
            clock.now += 1e3 * (opened[0] == 3)
            checkpoint("opening")
        return inner(self, compiled)

    monkeypatch.setattr(runner.Runner, "session", session)
    model = knapsack()
    result = ceopt.solvers.solve(model, pool=5, distinct=Support([model.x[0], model.x[1]]), time_limit_s=60.0)

    assert len(result.solutions) == 2
    assert result.status is Stop.FEASIBLE
    assert not result.complete
    assert "The time limit ended the search." in result.message


# ---- exhaustive ------------------------------------------------------------------------------------------------------
def every_cell(model: Any, frame: pd.DataFrame, **options: Any) -> ceopt.SolutionSet:
    row = frame[np.asarray(model.predict(frame) == "bad")].iloc[0]
    return exhaustive(model, row, ceopt.FeatureSpace.infer(frame), target="good", epsilon=0.2, **options)


def test_all_cells_within_a_limit_used_up_in_reading(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, forest: Any, numbers: pd.DataFrame
) -> None:
    slowed(monkeypatch, clock, "ceopt.search.prepare.read", 1e3)
    result = every_cell(forest, numbers)

    assert (str(result.status), len(result), result.complete) == ("time_limit", 0, False)
    assert result.reason == "The time limit of 60 s is used up while reading the model."


@pytest.mark.parametrize(
    "where",
    [
        "ceopt.diverse.exhaustive.cell_columns",
        "ceopt.diverse.enumeration.demands_of",
    ],
)
def test_all_cells_keep_the_cheapest(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, forest: Any, numbers: pd.DataFrame
) -> None:
    slowed(monkeypatch, clock, where, 1e3)
    result = every_cell(forest, numbers)

    assert result.status.has_answers
    assert len(result) >= 1
    assert not result.complete
    assert "The time limit of 60 s is used up" in result.reason


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        (Stop.TIME_LIMIT, "HiGHS stopped: time limit.", True),
        (Stop.FEASIBLE, "MOSEK stopped: max time.", True),
        (Stop.FEASIBLE, "SCIP stopped: time limit.", True),
        (Stop.FEASIBLE, "The numbers are bad.", False),
    ],
)
@pytest.mark.usefixtures("by_program")
def test_a_solver_that_the_time_ended_is_told_so_whatever_it_calls_that(status: Stop, message: str, said: bool) -> None:
    def late(told: Any, _: Any) -> Any:
        return replace(told, status=status, bound=0.0, message=message)

    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="continuous", lower=0.0, upper=9.0)])
    model = Affine([1.0], -3.0, labels=("no", "yes"))
    with faulty(late) as solver:
        result = ceopt.explain(model, {"a": 0.0}, space, target="yes", solver=solver)
    assert (result.status, result.reason) == ("feasible", message)
    assert ("The time ended before more was proved." in result.sentences()) is said


# ---- a search for near points that meets nothing ---------------------------------------------------------------------
CONTRADICTION = [
    *(ceopt.Linear({"a": 1.0, "b": 1.0, name: 0.1}, "<=", 90.0, name=f"cap {name}") for name in "cd"),
    ceopt.Linear({"a": 1.0, "d": 1.0}, "<=", -1.0, name="low"),
    ceopt.Linear({"a": 1.0, "d": 1.0}, ">=", 1.0, name="high"),
]


def test_rules_that_no_near_point_keeps_leave_half_of_the_time_to_a_program(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, forest: Any, numbers: pd.DataFrame
) -> None:
    """The search for a start went on to the deadline, and nothing was left in which to prove that there is none."""
    slowed(monkeypatch, clock, "ceopt.search.near_people.AbstractNearPeople._keeps_when_asked", 1.0)
    result = ask(forest, numbers, time_limit_s=60.0, constraints=CONTRADICTION)
    assert (result.status, result.proof) == ("infeasible", "program"), result.reason


def test_a_search_ends_where_rules_have_kept_none_of_very_many_points(
    monkeypatch: pytest.MonkeyPatch, forest: Any, numbers: pd.DataFrame
) -> None:
    refused = []
    inner = near_people.AbstractNearPeople._keeps_when_asked

    def counted(self: Any, who: Any, states: Any) -> Any:
        refused.append(len(who))
        return inner(self, who, states)

    monkeypatch.setattr(near_people.AbstractNearPeople, "_keeps_when_asked", counted)
    monkeypatch.setattr(near_people, "_REFUSED", 50)
    result = ask(forest, numbers, constraints=CONTRADICTION)
    assert (result.status, result.proof) == ("infeasible", "program"), result.reason
    assert sum(refused) < 400  # fifty and a step more, by each of two searches
    proved = sum(refused)
    refused.clear()
    near = ask(forest, numbers, constraints=CONTRADICTION, proof=False)
    assert near.status == "time_limit"
    assert sum(refused) > proved  # no program is to follow
