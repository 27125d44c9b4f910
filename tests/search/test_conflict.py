"""Why there is no answer: the rules in conflict are irreducible, and as wide as is said they leave one."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import enumeration as by_hand
import joblib
import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import HealthCheck, assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from problems import KINDS, features, slack, trees
from rules.combos import Question, cannot_go_with, questions
from rules.found import half_of, kept
from rules.hull import distances
from rules.small import PEOPLE, lattice

import ceopt
import ceopt.search.relaxation
from ceopt import L1, Feature, FeatureSpace, Linear, MaxChanges
from ceopt.formulations.constraints import RULES, AbstractElastic, AbstractRule, Hull, parse_rules, rule_name
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.oracle.model import ModelOracle
from ceopt.search.conflict import _Filter
from ceopt.search.relaxation import Relaxation, RelaxedProgram
from ceopt.search.solve_program import ProgramSolver
from ceopt.solvers.problem import Outcome, Stop
from ceopt.solvers.registry import SOLVERS

LABELS = ("bad", "good")
SOLVED_BY = [name for name in ("highs", "scip") if SOLVERS[name].is_licensed]

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0, upper=50, mad=1.0),
        Feature("age", kind="integer", lower=18, upper=90, direction="increasing"),
        Feature("owner", kind="binary", levels=("no", "yes")),
    ]
)
ROW = {"income": 10.0, "age": 30, "owner": "no"}
#: Good iff income + age / 2 + 2 [owner] >= 40; the row has 25.
MODEL = Affine([1.0, 0.5, 2.0], -40.0, labels=LABELS)


PEOPLE_AROUND = pd.DataFrame({"income": [20.0, 12.0, 30.0], "age": [30, 33, 45], "owner": ["no", "yes", "yes"]})


def ask(*rules: Any, space: Any = SPACE, row: Any = ROW, model: Any = MODEL, **options: Any) -> ceopt.SolutionSet:
    return ceopt.explain(model, row, space, target="good", constraints=rules, **options)


def entries(result: ceopt.SolutionSet) -> dict[str, float | None]:
    assert result.status == "infeasible"
    assert result.complete
    return {name: width for name, _, width in result.conflict}


CAP = Linear({"income": 1.0}, "<=", 12.0, name="cap")
YOUNG = Linear({"age": 1.0}, "<=", 40.0, name="young")
OLD = Linear({"age": 1.0}, ">=", 45.0, name="old")


# ---- by hand --------------------------------------------------------------------------------------------------------
def test_a_conflict_names_rules_in_words_and_numbers() -> None:
    result = ask(MaxChanges(3, name="few"), CAP, YOUNG)
    # At 12 and 40, and owner, the sum is 34: 6 more of income, or 12 more of age, and the margin's share.
    assert [entry[:2] for entry in result.conflict] == [("cap", "income <= 12"), ("young", "age <= 40")]
    assert entries(result)["cap"] == pytest.approx(6.0, abs=2e-5)
    assert entries(result)["young"] == 13.0
    assert result.reason == (
        "Proved: nothing in reach meets the target and every rule. "
        "In conflict: cap (income <= 12; 6.00001 wider would do), young (age <= 40; 13 wider would do)."
    )


def test_a_single_rule_can_leave_nothing() -> None:
    assert entries(ask(YOUNG, MaxChanges(0))) == {"MaxChanges_2": 1.0}
    assert entries(ask(MaxChanges(0, name="stay"))) == {"stay": 1.0}


def test_rules_that_contradict_each_other_need_no_model() -> None:
    assert entries(ask(MaxChanges(2), YOUNG, OLD)) == {"young": 5.0, "old": 5.0}
    assert entries(ask(OLD, MaxChanges(0, name="stay"))) == {"stay": 1.0}


def test_an_equation_is_off_to_either_side() -> None:
    exactly = Linear({"age": 1.0, "owner": -1.0}, "==", 41.0, name="exactly")
    # 12 + 42 / 2 + 2 = 35 of 40 for an owner; at 12 the age must be 53, so that the row is 52.
    assert entries(ask(CAP, exactly)) == pytest.approx({"cap": 5.00001, "exactly": 11.0}, abs=1e-5)
    assert entries(ask(OLD, Linear({"age": 1.0}, "==", 40.0, name="exactly"))) == {"old": 5.0, "exactly": 5.0}


def test_widths_are_those_of_the_rule_alone_with_all_others_kept() -> None:
    """Two conflicts apart: no width of a rule of the one mends the other."""
    result = ask(YOUNG, OLD, Linear({"owner": 1.0}, "==", 1.0), Linear({"owner": 1.0}, "==", 0.0))
    assert len(result.conflict) == 2
    assert set(entries(result).values()) == {None}
    assert result.reason.count("no width of it alone would do") == 2


@pytest.mark.parametrize("count", ["features", "columns"])
def test_a_count_is_wider_by_whole_changes(count: Any) -> None:
    job = Feature("job", kind="categorical", levels=(0, 1))
    space = FeatureSpace([job, Feature("owner", kind="binary", levels=(False, True))])
    both = TreeEnsemble([stump(0.5, 0.0, 1.0, 0), stump(0.5, 0.0, 1.0, 1), {"value": -1.5}], labels=LABELS)
    result = ask(MaxChanges(0, count=count, name="few"), space=space, row={"job": 0, "owner": False}, model=both)
    assert entries(result) == {"few": 2.0 if count == "features" else 3.0}


def test_widened_rules_are_wider_in_their_own_unit() -> None:
    assert MaxChanges(1).widened(2.0000001) == MaxChanges(1).widened(1.9999999) == MaxChanges(3)
    assert MaxChanges(1, count="columns", name="few").widened(1.0) == MaxChanges(2, count="columns", name="few")
    assert CAP.widened(2.5).rhs == 14.5
    assert OLD.widened(2.5).rhs == 42.5
    once = Linear({"age": 1.0}, "==", 3.0).widened(1.0)
    assert (once.within, once.widened(0.5).within, once.rhs) == (1.0, 1.5, 3.0)
    assert once.sentence() == "age == 3 within 1"
    for age, off in ((1.0, 1.0), (2.0, 0.0), (4.0, 0.0), (4.5, 0.5)):
        assert once.violation(SPACE, None, {"age": age}) == off
    assert ask(once, Linear({"income": 1.0}, ">=", 40.0), row=ROW | {"age": 18}).status == "infeasible"
    near = Linear({"age": 1.0}, "==", 33.0, within=2.0)
    assert ask(near, Linear({"age": 1.0}, ">=", 35.0))[0].values["age"] == 35
    for within, sense in ((-1.0, "=="), (1.0, "<="), (math.nan, "==")):
        with pytest.raises(ceopt.CeoptError, match="within"):
            Linear({"age": 1.0}, sense, 3.0, within=within)


def test_a_rule_that_a_point_breaks_by_less_than_one_is_broken_all_the_same() -> None:
    """A share of 0.3 at most is the one rule in conflict: not the others, which points break by more."""
    names = ("rate", "age", "loans")
    space = FeatureSpace(
        [Feature(n, kind="continuous", lower=0, upper=u) for n, u in zip(names, (1, 90, 9), strict=True)]
    )
    model = Affine([1.0, 0.0, 0.0], -0.8, labels=LABELS)
    rules = [Linear({"age": 1.0}, ">=", 45.0), Linear({"loans": 1.0}, "<=", 4.0), Linear({"loans": 1.0}, ">=", 2.0)]
    low = Linear({"rate": 1.0}, "<=", 0.3, name="low")
    result = ask(*rules, low, space=space, row={"rate": 0.1, "age": 30.0, "loans": 9.0}, model=model)
    assert entries(result) == {"low": pytest.approx(0.5, abs=1e-4)}


# ---- rules of the space ---------------------------------------------------------------------------------------------
def test_the_space_alone_can_leave_nothing() -> None:
    space = SPACE.update("income", upper=12).update("owner", mutable=False).update("age", upper=40, lower=20)
    result = ask(space=space)
    assert [entry[:2] for entry in result.conflict] == [
        ("income: at most 12", "income must be at most 12"),
        ("age: at most 40", "age must be at most 40"),
    ]
    assert entries(result) == pytest.approx({"income: at most 12": 8.00001, "age: at most 40": 17.0}, abs=1e-5)
    assert "whatever other rules there are" in result.reason


def test_each_kind_of_rule_of_a_space() -> None:
    fixed = FeatureSpace([replace(feature, mutable=False) for feature in SPACE])
    result = ask(space=fixed)
    assert entries(result) == pytest.approx({"income: fixed": 15.0001, "age: fixed": 31.0}, abs=1e-4)
    assert dict(entry[:2] for entry in result.conflict) == {
        "income: fixed": "income must stay 10",
        "age: fixed": "age must stay 30",
    }
    # Good below an age of 24.5: 6 years against the direction.
    down = Affine([0.0, -1.0, 0.0], 24.5, labels=LABELS)
    assert entries(ask(model=down)) == {"age: may only increase": 6.0}
    assert ask(model=down).conflict[0][1] == "age may only increase from 30"
    assert entries(ask(model=down, space=SPACE.update("age", direction="any", lower=25))) == {"age: at least 25": 1.0}
    # Good at 17 only, which steps of 5 from 10 leave out: a step has no width.
    at_17 = {"feature": 0, "threshold": 17.5, "left": stump(16.5, -1.0, 1.0), "right": {"value": -1.0}}
    stepped = SPACE.update("income", step=5.0)
    result = ask(model=TreeEnsemble([at_17], labels=LABELS), space=stepped)
    assert result.conflict == (("income: steps of 5", "income moves in steps of 5 from 10", None),)
    owner = Affine([0.0, 0.0, 1.0], -0.5, labels=LABELS)
    result = ask(model=owner, space=SPACE.update("owner", mutable=False))
    assert result.conflict == (("owner: fixed", "owner must stay 'no'", None),)
    ranks = FeatureSpace([Feature("size", kind="ordinal", levels=("S", "M", "L"), direction="decreasing")])
    result = ask(model=Affine([1.0], -1.5, labels=LABELS), space=ranks, row={"size": "S"})
    assert result.conflict == (("size: may only decrease", "size may only decrease from 'S'", 2.0),)


def stump(threshold: float, left: float, right: float, feature: int = 0) -> dict[str, Any]:
    return {"feature": feature, "threshold": threshold, "left": {"value": left}, "right": {"value": right}}


def test_a_width_of_a_rule_of_the_space_keeps_the_rules_of_the_user_too() -> None:
    space = SPACE.update("income", upper=12).update("age", mutable=False)
    assert entries(ask(space=space)) == pytest.approx({"income: at most 12": 11.0001, "age: fixed": 23.0}, abs=1e-4)
    result = ask(Linear({"income": 1.0}, "<=", 20.0), space=space)
    assert entries(result) == {"income: at most 12": None, "age: fixed": 23.0}


def test_what_was_inferred_from_data_is_no_rule() -> None:
    people = pd.DataFrame({"income": [10.0, 14.0, 5.0], "age": [30, 20, 40]})
    space = FeatureSpace.infer(people, moves={"age": "any"})
    model = Affine([1.0, 0.5], -60.0, labels=LABELS)
    result = ask(space=space, row=people.iloc[0], model=model)
    assert entries(result) == {}
    assert "nothing within the data's range reaches the target" in result.reason
    assert "The reach of income, age ends where the data did" in result.reason
    # The bound that was set counts, and moves alone: income is still the data's.
    result = ask(space=space.update("age", upper=50), row=people.iloc[0], model=model)
    assert list(entries(result)) == ["age: at most 50"]
    assert entries(result)["age: at most 50"] == 43.0


def test_a_step_that_was_seen_in_the_data_may_be_in_conflict_and_is_told_as_such() -> None:
    """Without it there was a point, 10.200001, which came back as an answer: verify does not hold such a step."""
    people = pd.DataFrame({"income": [10.0, 14.0, 5.0]})
    space, model = FeatureSpace.infer(people).update("income", upper=10.7), Affine([1.0], -10.2, labels=LABELS)
    result = ask(space=space, row=people.iloc[0], model=model, why=20)
    assert result.status == "infeasible"
    assert entries(result) == pytest.approx({"income: at most 10.7": 0.3, "income: steps of 1": None})
    assert result.conflict[1][1] == "income moves in steps of 1 from 10, as its data do"
    assert "income ändert sich von 10 aus in Schritten von 1, wie seine Daten" in result.sentences("de")
    as_set = ask(space=space.update("income", step=1.0), row=people.iloc[0], model=model, why=20)
    assert as_set.conflict[1][1] == "income moves in steps of 1 from 10"
    assert ask(space=space.update("income", kind="continuous"), row=people.iloc[0], model=model).status == "optimal"


def test_networks_get_bounds_where_the_users_are_dropped() -> None:
    network = ReluNetwork([[[1.0, 0.5], [-1.0, 0.0]], [[1.0, -1.0]]], [[-10.0, 0.0], [-20.0]], labels=LABELS)
    space = FeatureSpace([SPACE["income"], SPACE["age"]]).update("income", upper=12).update("age", upper=40)
    result = ask(space=space, row={"income": 10.0, "age": 30}, model=network)
    # income + age / 2 - 10 - 20 >= 0, while 12 and 40 make 32: there was an answer; at 11 and 36 there is none.
    assert result.status == "optimal"
    tight = space.update("income", upper=11).update("age", upper=36)
    result = ask(space=tight, row={"income": 10.0, "age": 30}, model=network)
    assert entries(result) == pytest.approx({"income: at most 11": 1.00001, "age: at most 36": 3.0}, abs=1e-4)


def test_a_target_out_of_any_reach_is_no_rules_fault() -> None:
    never = TreeEnsemble([stump(20.0, -1.0, -2.0)], labels=LABELS)
    result = ask(MaxChanges(1), CAP, model=never)
    assert entries(result) == {}
    assert "No rule is to blame" in result.reason


# ---- how it ends ----------------------------------------------------------------------------------------------------
def after(solves: int, what: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something else in the place of every solve but the first few of those that look for the conflict."""
    real, asked = ceopt.search.relaxation.Relaxer._solved, itertools.count()

    def solved(self: Any, *args: Any, **words: Any) -> Any:
        return real(self, *args, **words) if next(asked) < solves else what()

    monkeypatch.setattr(ceopt.search.relaxation.Relaxer, "_solved", solved)


def interrupted() -> RelaxedProgram:
    return RelaxedProgram(Outcome(status=Stop.INTERRUPTED), None, [], 0.0)


def out_of_time() -> RelaxedProgram:
    return RelaxedProgram(Outcome(status=Stop.TIME_LIMIT, message="HiGHS stopped: time limit."), None, [], 0.0)


@pytest.mark.parametrize("what", [interrupted, out_of_time])
def test_the_proof_is_kept_where_there_is_no_time_for_the_conflict(what: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    after(1, what, monkeypatch)
    result = ask(CAP, YOUNG, MaxChanges(3, name="few"))
    assert entries(result) == {"cap": None, "young": None, "few": None}
    assert result.conflict[0] == ("cap", "income <= 12", None)
    why = "it was interrupted" if what is interrupted else "the time limit is used up"
    assert result.reason == (
        "Proved: nothing in reach meets the target and every rule. The rules in conflict are among cap, young, few; "
        f"the search for them ended after 1 solve, as {why}."
    )


@pytest.mark.parametrize("what", [interrupted, out_of_time])
def test_the_conflict_is_kept_where_there_is_no_time_for_widths(what: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    after(2, what, monkeypatch)
    result = ask(YOUNG, OLD)
    assert entries(result) == {"young": None, "old": None}
    assert "young (age <= 40), old (age >= 45). The search for what would do ended early, as " in result.reason


def test_ctrl_c_ends_the_search_of_a_whole_cohort_and_keeps_its_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    after(0, interrupted, monkeypatch)
    people = pd.DataFrame([ROW, ROW])
    recourse = ceopt.Recourse(MODEL, SPACE, target="good", constraints=[YOUNG, OLD], why=True).fit(people)
    cohort = recourse.explain(people)
    assert [str(result.status) for result in cohort] == ["infeasible", "infeasible"]
    assert [result.conflict for result in cohort] == [(), ()]
    for reason in cohort.failures()["reason"]:
        assert reason.endswith("The rules in conflict are not known: the work was interrupted before.")


@pytest.mark.long
def test_a_cohort_explains_itself_side_by_side() -> None:
    people = pd.DataFrame([ROW, ROW | {"age": 39}, ROW | {"income": 45.0}])
    recourse = ceopt.Recourse(MODEL, SPACE, target="good", constraints=[YOUNG, OLD], why=True).fit(people)
    alone = recourse.explain(people)
    with joblib.parallel_config(backend="threading"):
        together = recourse.explain(people, n_jobs=2)
    assert [result.conflict for result in alone] == [result.conflict for result in together]
    assert entries(together[0]) == entries(alone[2]) == {"young": 5.0, "old": 5.0}
    assert "In conflict: young (age <= 40; 5 wider would do)" in together.failures()["reason"].iloc[0]


def test_a_conflict_travels() -> None:
    result = ask(CAP, YOUNG)
    assert pickle.loads(pickle.dumps(result)).conflict == result.conflict
    assert ceopt.SolutionSet.from_json(result.to_json()).conflict == result.conflict


def test_only_what_is_proved_infeasible_has_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(CAP).conflict == ()
    assert ask(YOUNG, OLD, time_limit_s=1e-9).conflict == ()
    monkeypatch.setattr(
        ModelOracle, "judge", lambda _, frame, __: (np.zeros(len(frame)), np.zeros(len(frame), dtype=bool))
    )
    result = ask(MaxChanges(2))
    assert (str(result.status), result.conflict) == ("rejected", ())


@pytest.mark.usefixtures("by_program")
def test_what_a_proof_overlooks_within_its_tolerance_is_an_answer() -> None:
    """A row of a million is kept to within one, which a solver's absolute tolerance is not."""
    space = FeatureSpace([Feature("income", kind="continuous", lower=0, upper=4e6, mad=1.0)])
    model = Affine([1.0], -1_000_000.5, labels=LABELS)
    result = ask(Linear({"income": 1.0}, "<=", 1e6), space=space, row={"income": 10.0}, model=model)
    assert (str(result.status), result.conflict) == ("feasible", ())
    assert result.reason.endswith("calls the program infeasible, but a point that passes the check is in hand.")
    assert result[0].verified
    assert 1_000_000.5 < result[0].values["income"] <= 1_000_001.0


def test_a_result_shows_the_rules_in_conflict_and_what_grew() -> None:
    result = ask(CAP, YOUNG, MaxChanges(3))
    assert repr(result).splitlines()[1:] == [
        "in conflict  says          wider by",
        "-----------  ------------  --------",
        "cap          income <= 12  6.00001",
        "young        age <= 40     13",
    ]
    assert "<td>income &lt;= 12</td><td>6.00001</td>" in result._repr_html_()
    grown = ask(Hull(PEOPLE_AROUND, enlarge=True, name="likely"), Linear({"income": 1.0}, "<=", 15.0))
    assert repr(grown).startswith("optimal, 1 answer, target good, likely widened to 0.166667\n")


def test_time_for_the_conflict_is_part_of_the_timings() -> None:
    timings = ask(CAP, YOUNG).timings
    assert 0.0 < timings["solve"] <= timings["total"]
    assert timings["build"] > 0.0


# ---- against trying everything --------------------------------------------------------------------------------------
@st.composite
def lattices(draw: Any) -> tuple[FeatureSpace, dict[str, Any]]:
    """Draw up to four columns of any kind but free numbers, and a person."""
    kinds = [kind for kind in KINDS if kind not in {"continuous", "stepped"}]
    pairs = [draw(features(name, kinds)) for name in "abcd"[: draw(st.integers(2, 4))]]
    # A bound below the value of the row was inferred: the column may still be asked about.
    return FeatureSpace([feature for feature, _ in pairs]), {feature.name: value for feature, value in pairs}


@st.composite
def models(draw: Any, space: FeatureSpace, kind: str) -> Any:
    """Draw a model of small whole numbers over the columns."""
    small = st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0])
    d = sum(len(f.levels) if f.kind == "categorical" and not is_numeric(f) else 1 for f in space)
    if kind == "trees":
        grown = [draw(trees(space, 1, 2)) for _ in range(draw(st.integers(1, 3)))]
        return TreeEnsemble([*grown, {"value": 0.5 - draw(st.integers(0, 2))}], labels=LABELS)
    if kind == "affine":
        return Affine([draw(small) for _ in range(d)], draw(small) - 1.5, labels=LABELS)
    hidden = [[draw(small) for _ in range(d)] for _ in range(2)]
    weights, biases = [hidden, [[draw(small), draw(small)]]], [[draw(small), draw(small)], [draw(small) - 2.5]]
    return ReluNetwork(weights, biases, labels=LABELS)


def is_numeric(feature: Feature) -> bool:
    return all(isinstance(level, int | float) for level in feature.levels)


@st.composite
def rule_sets(draw: Any, space: FeatureSpace, home: NDArray[np.float64]) -> list[AbstractRule]:
    """Draw one to four rules that are tight more often than not."""
    names = [f.name for f in space if f.kind != "categorical"]
    found: list[AbstractRule] = []
    for _ in range(draw(st.integers(1, 4))):
        if not names or draw(st.sampled_from([True, False, False])):
            found.append(MaxChanges(draw(st.integers(0, 2)), count=draw(st.sampled_from(["features", "columns"]))))
            continue
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        row = {name: float(draw(st.sampled_from([-2, -1, 1, 3]))) for name in chosen}
        here = sum(a * home[space.names.index(name)] for name, a in row.items())
        found.append(Linear(row, draw(st.sampled_from(["<=", ">=", "=="])), here + draw(st.integers(-2, 2))))
    return found


def off(rule: AbstractRule, space: FeatureSpace, home: Any, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much each point breaks a rule, computed apart from the rule."""
    if isinstance(rule, MaxChanges):
        return np.maximum(by_hand.Moves(space, points - home).changes(rule.count) - rule.k, 0.0)
    assert isinstance(rule, Linear)
    left = sum(a * points[:, space.names.index(name)] for name, a in rule.coefficients.items())
    least = most = rule.rhs
    if rule.beyond == "no_further":  # the looser one of the limit and the person's own value
        today = sum(a * home[space.names.index(name)] for name, a in rule.coefficients.items())
        least, most = min(least, today - rule.further), max(most, today + rule.further)
    over, under = np.maximum(left - most, 0.0), np.maximum(least - left, 0.0)
    return {"<=": over, ">=": under, "==": over + under}[rule.sense]


def favoured(space: FeatureSpace, row: dict[str, Any], model: Any) -> NDArray[np.float64]:
    """Return every point of the lattice in reach that the model favours."""
    columns = [by_hand.candidates(f, f.to_coordinate(row[f.name]), everywhere(f)) for f in space]
    points = by_hand.product(columns)
    return points[model.score(by_hand.identity(space, points)) > 0]


def everywhere(feature: Feature) -> list[float]:
    """Return a threshold at each whole number within the bounds, so that enumeration tries all of them."""
    if feature.is_finite:
        return []
    return [float(k) for k in range(math.floor(feature.lower), math.ceil(feature.upper) + 1)]


def least(amounts: NDArray[np.float64]) -> float | None:
    return float(amounts.min()) if len(amounts) else None


def alike(width: float | None, expected: float | None) -> bool:
    """Whether a width is the least that there is, rounded up."""
    if width is None or expected is None:
        return width is expected
    return expected - 1e-6 * max(1.0, expected) <= width <= expected + 2e-5 * max(1.0, expected)


def check_conflict(space: FeatureSpace, row: dict[str, Any], model: Any, rules: Sequence[Any], solver: str) -> None:
    """Hold what is said of a question against every point of its lattice."""
    result = ceopt.explain(model, row, space, target="good", constraints=rules, solver=solver)
    points = favoured(space, row, model)
    home = np.array([space[name].to_coordinate(value) for name, value in row.items()])
    kept = np.array([off(rule, space, home, points) == 0.0 for rule in rules]).reshape(len(rules), len(points))
    assert (result.status == "infeasible") == (not kept.all(axis=0).any())
    if result.status != "infeasible":
        assert result.conflict == ()
        return
    if not len(points):
        listed = {rule_name(rule, place) for place, rule in enumerate(rules)}
        assert listed.isdisjoint(entries(result)), "the rules are not needed"
        return
    named = {rule_name(rule, place): place for place, rule in enumerate(rules)}
    core = [named[name] for name in entries(result)]
    assert core == sorted(core)
    assert core
    assert not kept[core].all(axis=0).any(), "the conflict leaves an answer"
    for k in core:
        assert kept[[j for j in core if j != k]].all(axis=0).any(), "a rule of the conflict can be spared"
        others = kept[[j for j in range(len(rules)) if j != k]].all(axis=0)
        width = entries(result)[rule_name(rules[k], k)]
        assert alike(width, least(off(rules[k], space, home, points[others])))
        assert result.conflict[core.index(k)][1] == rules[k].sentence()
        if width is not None:
            wider = [rule.widened(width) if j == k else rule for j, rule in enumerate(rules)]
            assert ceopt.explain(model, row, space, target="good", constraints=wider, solver=solver).status in {
                "optimal",
                "already_favourable",
            }


@pytest.mark.long(every=3)
@pytest.mark.parametrize("solver", SOLVED_BY)
@pytest.mark.parametrize("kind", ["trees", "affine", "network"])
def test_conflicts_are_irreducible_and_widths_least(kind: str, solver: str) -> None:
    @draws(25 if solver == "highs" else 10)
    @given(st.data())
    def check(data: Any) -> None:
        space, row = data.draw(lattices())
        model = data.draw(models(space, kind))
        home = np.array([space[name].to_coordinate(value) for name, value in row.items()])
        check_conflict(space, row, model, data.draw(rule_sets(space, home)), solver)

    check()


# ---- every kind of rule ---------------------------------------------------------------------------------------------
def stepped(question: Question) -> Question:
    """Let every number move in steps, so that enumeration tries all values and not only the ends of cells."""
    space = question.space.update("wage", step=0.25)
    question = replace(question, space=space, points=lattice(space, question.row), cost=L1(), rules=())
    seen = np.array([[f.to_coordinate(row[f.name]) for f in space] for row in PEOPLE.to_dict("records")])
    scores = question.model.score(by_hand.identity(space, np.concatenate([question.points, seen])))
    assume(np.abs(slack(question.model, question.target, scores)).min() > 1e-3)
    return question


@st.composite
def crowded(draw: Any, kind: str) -> Question:
    """Draw a question with up to seven rules of any kinds, each of which alone leaves an answer."""
    question = stepped(draw(questions(kind)))
    met, found = question.points[question.met(question.points)], list[Any]()
    for name in draw(st.lists(st.sampled_from(sorted(RULES)), min_size=3, max_size=7)):
        half = half_of(name)
        drawn = getattr(half, "drawn", None)
        rule = draw(st.sampled_from(half.examples()) if drawn is None else drawn(question.space, question.factual))
        rule = replace(rule, enlarge=False) if hasattr(rule, "enlarge") else rule
        try:
            parse_rules((*found, rule), question.space)
        except ceopt.CeoptError:  # two rules that both say what a move costs, and the like
            continue
        (known,) = question.given([rule])
        if getattr(known, "data", None) is not None and known.data.empty:
            continue  # a hull of nobody is refused
        if any(cannot_go_with(rule, other) for other in found):
            continue
        if kept([known], question.space, question.factual, met).any():
            found.append(rule)
    return replace(question, rules=tuple(found))


def amounts(rule: Any, question: Question, points: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return by how much each point breaks a rule, by the independent half of the rule; None of what has no amount."""
    if isinstance(rule, Hull):
        far = np.array(distances(rule, question.space, points).min(axis=0) - rule.radius)
        return np.where(far > 1e-6, far, 0.0) if rule.penalty is None or rule.radius else np.zeros(len(points))
    if isinstance(rule, AbstractElastic):
        return np.asarray(half_of(type(rule).__name__).excess(rule, question.space, question.factual, points))
    return None


@pytest.mark.filterwarnings("ignore::ceopt.RuleWarning")
@pytest.mark.long
@pytest.mark.parametrize("kind", ["linear", "trees", "network", "classes"])
def test_conflicts_of_every_kind_of_rule(kind: str) -> None:
    @draws(15, suppress_health_check=list(HealthCheck))
    @given(crowded(kind))
    def check(question: Question) -> None:
        result = put(question)
        points, known, factual = question.points[question.met(question.points)], question.known, question.factual
        assert (result.status == "infeasible") == (not kept(known, question.space, factual, points).any())
        if result.status != "infeasible" or not len(points):
            return
        holds = np.array([kept([rule], question.space, factual, points) for rule in known])
        named = {rule_name(rule, place): place for place, rule in enumerate(known)}
        core = [named[name] for name in entries(result)]
        assert core
        assert not holds[core].all(axis=0).any()
        for k, width in zip(core, entries(result).values(), strict=True):
            assert holds[[j for j in core if j != k]].all(axis=0).any()
            others = points[holds[[j for j in range(len(known)) if j != k]].all(axis=0)]
            far = amounts(known[k], question, others)
            assert alike(width, None if far is None else least(far))

    check()


def put(question: Question, *rules: Any, **options: Any) -> ceopt.SolutionSet:
    return ceopt.explain(
        question.model,
        question.row,
        question.space,
        target=question.target,
        cost=question.cost,
        constraints=rules or question.rules,
        data=PEOPLE,
        formulation=question.formulation,
        **options,
    )


# ---- rules that widen themselves ------------------------------------------------------------------------------------
@pytest.mark.long(every=2)
@pytest.mark.parametrize("kind", ["linear", "trees", "network"])
def test_a_hull_grows_by_the_least_that_has_an_answer(kind: str) -> None:
    @draws(8, suppress_health_check=list(HealthCheck))
    @given(questions(kind), st.sampled_from(["l1", "linf", "l2"]), st.sampled_from([0.0, 0.25]), st.integers(1, 3))
    def check(question: Question, norm: Any, radius: float, k: int) -> None:
        hull = Hull(PEOPLE.iloc[: k + 1], norm=norm, radius=radius, enlarge=True, name="likely")
        few, home, question = MaxChanges(k, name="few"), question.factual, stepped(question)
        points = question.points[question.met(question.points)]
        points = points[kept([few], question.space, question.factual, points)]
        result = put(question, few, hull)
        if result.status == "already_favourable":
            return
        assert (result.status == "infeasible") == (not len(points))
        if not len(points):
            assert "likely" not in entries(result)
            return
        far = distances(hull, question.space, points).min(axis=0)
        # A row that the model favours may be out of the hull, and in the wider one: then it has all that is asked.
        stays = bool((points[far <= far.min() + 1e-6] == home).all(axis=1).any()) and bool(result.relaxed)
        assert result.status == ("already_favourable" if stays else "optimal")
        assert bool(result.relaxed) == (far.min() > radius + 1e-5)
        if not result.relaxed:
            return
        grown = result.relaxed["likely"]
        assert grown == pytest.approx(far.min(), rel=1e-4, abs=1e-5)
        if stays:
            return
        near = points[far <= grown + 1e-5]
        assert result[0].cost == pytest.approx(least(by_hand.l1()(by_hand.Moves(question.space, near - home))))
        # That wide it has the answer without growing, and clearly less wide it has none.
        assert put(question, few, replace(hull, radius=grown, enlarge=False))[0].cost == pytest.approx(result[0].cost)
        less = replace(hull, radius=radius + 0.99 * (grown - radius), enlarge=False)
        assert entries(put(question, few, less)).keys() <= {"few", "likely"}

    check()


@pytest.mark.long
def test_several_rules_grow_by_the_least_sum() -> None:
    likely, other = (
        Hull(PEOPLE_AROUND, enlarge=True, name="likely"),
        Hull(PEOPLE_AROUND[:1], enlarge=True, name="other"),
    )
    cap = Linear({"income": 1.0}, "<=", 15.0, name="cap")
    alone, both = ask(likely, cap), ask(likely, other, cap)
    assert set(alone.relaxed) == {"likely"}
    assert set(both.relaxed) == {"likely", "other"}
    assert alone.status == both.status == "optimal"
    assert both.relaxed["likely"] > alone.relaxed["likely"]
    assert sum(both.relaxed.values()) < alone.relaxed["likely"] + 1.0 + 0.3
    # Where growing does not help, nothing has grown, and the conflict is told.
    none = ask(likely, cap, Linear({"age": 1.0}, "<=", 40.0, name="young"))
    assert (none.status, none.relaxed, set(entries(none))) == ("infeasible", {}, {"cap", "young"})


def test_a_hull_that_has_not_grown_enough_grows_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A least width is right to a solver's tolerance; here the first that is tried is but half of it."""
    hull, cap = Hull(PEOPLE_AROUND, enlarge=True, name="likely"), Linear({"income": 1.0}, "<=", 15.0, name="cap")
    enough = ask(hull, cap)
    monkeypatch.setattr("ceopt.search.relaxation.WIDTH_ROOM", ((-0.5, -math.inf), (1e-6, 1e-6)))
    found = ask(hull, cap)
    assert found.status == enough.status == "optimal"
    assert found.relaxed["likely"] == pytest.approx(enough.relaxed["likely"], rel=1e-5)
    assert found[0].cost == pytest.approx(enough[0].cost, rel=1e-4)


def test_where_no_hull_that_is_tried_is_enough_none_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    hull, cap = Hull(PEOPLE_AROUND, enlarge=True, name="likely"), Linear({"income": 1.0}, "<=", 15.0, name="cap")
    monkeypatch.setattr("ceopt.search.relaxation.WIDTH_ROOM", ((-0.5, -math.inf),))
    none = ask(hull, cap)
    assert (none.status, none.relaxed) == ("infeasible", {})
    assert {"likely", "cap"} >= set(entries(none)) > set()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_a_penalty_counts_the_slack_of_the_hull_that_grew(norm: Any) -> None:
    hull = Hull(PEOPLE_AROUND, enlarge=True, norm=norm, radius=0.01, penalty=3.0, name="likely")
    cap = Linear({"income": 1.0}, "<=", 15.0, name="cap")
    result = ask(hull, cap)
    assert result.status == "optimal"
    again = ask(replace(hull, radius=result.relaxed["likely"], enlarge=False), cap)
    assert again.status == "optimal"
    assert result[0].cost == pytest.approx(again[0].cost)


@pytest.mark.parametrize(
    ("width", "shown"),
    [(3.0, 3.0), (1234567.0, 1234567.0), (0.30000000000000004, 0.3), (2.00000001, 2.00001), (15.00001, 15.0001),
     (30000.100000000002, 30000.1), (1.234564e-7, 1.23457e-7)],
)  # fmt: skip
def test_widths_are_rounded_up_to_six_digits(width: float, shown: float) -> None:
    assert ceopt.search.relaxation._rounded_up(width, 0.0) == shown
    assert ceopt.search.relaxation._rounded_up(width, 1e-6) >= width * (1 + 1e-6)


def test_what_grew_holds_for_further_answers_and_is_written_down() -> None:
    likely, cap = Hull(PEOPLE_AROUND, enlarge=True, name="likely"), Linear({"income": 1.0}, "<=", 15.0, name="cap")
    result = ask(likely, cap, n=3)
    radius = result.relaxed["likely"]
    wider = replace(likely, radius=radius)
    assert len(result) == 1
    assert result.complete
    for answer in result:
        assert ceopt.verify([answer], MODEL, SPACE, target="good", factual=ROW, constraints=[wider, cap]).ok
    assert ceopt.SolutionSet.from_json(result.to_json()).relaxed == {"likely": radius}
    assert result.options["constraints"][0] == "likely: in the hull of 3 rows"
    wide = ask(replace(likely, radius=1.0), cap)
    assert (wide.relaxed, len(wide)) == ({}, 1)


@pytest.mark.parametrize("what", ["interrupted", "out_of_time"])
def test_nothing_is_proved_where_there_is_no_time_to_grow(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wider hull may do: that there is nothing in the hull as it is does not make the question infeasible."""
    after(0, interrupted if what == "interrupted" else out_of_time, monkeypatch)
    result = ask(Hull(PEOPLE_AROUND, enlarge=True), Linear({"income": 1.0}, "<=", 15.0))
    assert (result.status, result.relaxed, result.conflict, result.complete) == ("time_limit", {}, (), False)
    assert "every rule. By how much wider a rule would have to be is not known: the " in result.reason


def test_without_the_least_width_one_that_some_point_needs_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ceopt.search.relaxation.Relaxer.least

    def least(self: Any, person: Any, keep: Any, yielding: Any = (), **how: Any) -> Any:
        return ceopt.search.relaxation.Relaxation(reason="late") if yielding else real(self, person, keep)

    least_of_all = ask(Hull(PEOPLE_AROUND, enlarge=True, name="likely"), Linear({"income": 1.0}, "<=", 15.0))
    monkeypatch.setattr(ceopt.search.relaxation.Relaxer, "least", least)
    result = ask(Hull(PEOPLE_AROUND, enlarge=True, name="likely"), Linear({"income": 1.0}, "<=", 15.0))
    assert result.status in {"optimal", "feasible"}
    assert result.relaxed["likely"] >= least_of_all.relaxed["likely"]
    assert "The time limit ended the proof that no less would do." in result.reason
    none = ask(Hull(PEOPLE_AROUND, enlarge=True), Linear({"income": 1.0}, "<=", 15.0), Linear({"age": 1.0}, "<=", 40.0))
    assert none.status == "infeasible"


def test_ctrl_c_within_the_wider_question_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = ProgramSolver.run, itertools.count()

    def run(self: Any, *args: Any) -> Any:
        if next(asked) > 1:  # the first two prove that there is nothing, beyond the margin and within it
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(ProgramSolver, "run", run)
    result = ask(Hull(PEOPLE_AROUND, enlarge=True, name="likely"), Linear({"income": 1.0}, "<=", 15.0, name="cap"))
    assert (str(result.status), result.relaxed, result.conflict) == ("time_limit", {}, ())
    assert "the search was interrupted" in result.reason


# ---- which rules are in conflict, apart from any program -------------------------------------------------------------
class Sets:
    """Rules that leave nothing where they hold one of some sets; a point keeps as many rules as it can, or few."""

    def __init__(self, n: int, conflicts: list[frozenset[int]], greedy: Callable[[], bool]) -> None:
        self.names, self.conflicts, self.greedy, self.solves = tuple(map(str, range(n))), conflicts, greedy, 0

    def under(self, chosen: frozenset[int]) -> tuple[frozenset[int]]:
        return (chosen,)

    def is_empty(self, chosen: frozenset[int]) -> bool:
        return any(conflict <= chosen for conflict in self.conflicts)

    def least(self, chosen: frozenset[int]) -> Relaxation:
        self.solves += 1
        if self.is_empty(chosen):
            return Relaxation(is_empty=True)
        held = chosen
        for k in range(len(self.names)) if self.greedy() else ():
            held = held if self.is_empty(held | {k}) else held | {k}
        return Relaxation({str(k): 1.0 for k in held})

    def kept(self, point: Any) -> frozenset[int]:
        return frozenset(map(int, point))


@given(st.data(), st.integers(1, 8))
def test_the_filter_ends_with_a_set_of_which_nothing_can_be_spared(data: Any, n: int) -> None:
    some = st.frozensets(st.integers(0, n - 1), min_size=1)
    sets = Sets(n, data.draw(st.lists(some, min_size=1, max_size=4)), lambda: data.draw(st.booleans()))
    core = frozenset(_Filter(sets, sets).core())  # type: ignore[arg-type]
    assert sets.is_empty(core)
    assert not any(sets.is_empty(core - {k}) for k in core)
    assert sets.solves <= 2 * n


def test_the_filter_does_not_ask_about_every_rule() -> None:
    sets = Sets(40, [frozenset({31, 7, 12})], lambda: True)
    assert _Filter(sets, sets).core() == (7, 12, 31)  # type: ignore[arg-type]
    assert sets.solves <= 8


# ---- rules of the space against trying everything --------------------------------------------------------------------
Limits = tuple[bool, str, int | None, int | None, int | None]


def described(name: str, limits: Limits) -> Feature:
    fixed, direction, lower, upper, step = limits
    return Feature(
        name,
        kind="integer",
        mutable=not fixed,
        direction=direction,  # type: ignore[arg-type]
        lower=-9 if lower is None else lower,
        upper=9 if upper is None else upper,
        lower_inferred=lower is None,
        upper_inferred=upper is None,
        step=step,
        range=4.0,
    )


def reachable(limits: Limits, dropped: frozenset[str]) -> list[int]:
    """Return what a column at 0 may become without some of its rules."""
    fixed, direction, lower, upper, step = limits
    # A bound that is dropped moves ten spreads out; -40 and 40 are within that, and enough for what is asked below.
    low = -9 if lower is None else -40 if "lower" in dropped else lower
    high = 9 if upper is None else 40 if "upper" in dropped else upper
    return [
        k
        for k in range(low, high + 1)
        if (not fixed or "fixed" in dropped or k == 0)
        and (direction != "increasing" or "direction" in dropped or k >= 0)
        and (direction != "decreasing" or "direction" in dropped or k <= 0)
        and (step is None or "step" in dropped or k % step == 0)
    ]


def word(name: str) -> str:
    """Return which rule of a column a conflict names."""
    said = name.split(": ")[1].split()
    return {"fixed": "fixed", "may": "direction", "steps": "step"}.get(said[0]) or {
        "most": "upper", "least": "lower"
    }[said[1]]  # fmt: skip


all_limits = st.tuples(
    st.booleans(),
    st.sampled_from(["any", "increasing", "decreasing"]),
    st.sampled_from([None, -3, 0]),
    st.sampled_from([None, 2, 0]),
    st.sampled_from([None, 2]),
)


@draws(40)
@given(st.tuples(all_limits, all_limits), st.tuples(*[st.sampled_from([-2, -1, 0, 1, 3])] * 2), st.integers(1, 30))
@example(((True, "increasing", -3, 2, 2), (False, "any", None, None, None)), (1, 0), 5)
def test_rules_of_a_space_are_irreducible(columns: Any, weights: Any, wanted: int) -> None:
    space = FeatureSpace([described(name, limits) for name, limits in zip("ab", columns, strict=True)])
    model = Affine([float(w) for w in weights], 0.5 - wanted, labels=LABELS)

    def widths(dropped: tuple[frozenset[str], frozenset[str]], of: int = 0) -> list[int]:
        """Values of a column in the points that reach the target."""
        sides = [reachable(limits, part) for limits, part in zip(columns, dropped, strict=True)]
        return [
            p[of] for p in itertools.product(*sides) if sum(w * v for w, v in zip(weights, p, strict=True)) >= wanted
        ]

    def drop(kept: Any) -> tuple[frozenset[str], frozenset[str]]:
        every = {"fixed", "direction", "lower", "upper", "step"}
        return tuple(frozenset(every - {w for j, w in kept if j == k}) for k in (0, 1))  # type: ignore[return-value]

    def alone(which: tuple[int, str]) -> Any:
        return tuple(frozenset({which[1]} if which[0] == k else ()) for k in (0, 1))

    result = ask(space=space, row={"a": 0, "b": 0}, model=model)
    assert (result.status == "infeasible") == (not widths((frozenset(), frozenset())))
    if result.status != "infeasible":
        return
    core = [("ab".index(name[0]), word(name)) for name in entries(result)]
    assert bool(core) == bool(widths(drop([])))
    if core:
        assert not widths(drop(core))
    for which, width in zip(core, entries(result).values(), strict=True):
        assert widths(drop([other for other in core if other != which])), "a rule can be spared"
        values = widths(alone(which), which[0])
        limits = columns[which[0]]
        bound = {"upper": limits[3], "lower": limits[2]}.get(which[1], 0)
        expected = None if which[1] == "step" or not values else min(abs(v - bound) for v in values)
        assert width == expected


def test_what_lies_beside_a_step_by_a_rounding_is_not_overlooked():
    """A tree that splits at the last step was said to have an answer, one float right of that step."""
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="continuous", lower=-0.5, upper=1.5, step=0.5)])
    right = float(np.nextafter(1.125, 2.0))  # 1.125 is three steps from the person
    tree = TreeEnsemble([stump(1.125, -1.0, 1.0)], labels=LABELS)
    assert tree.predict(np.array([[1.125], [right]])).tolist() == list(LABELS)

    for solver in ("highs", "scip"):
        result = ceopt.explain(tree, {"a": -0.375}, space, target=LABELS[1], solver=solver)

        assert result.status == "infeasible"
        assert len(result) == 0
