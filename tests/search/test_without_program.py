"""People who are settled without a program: the same optimum as a program's; near answers, and what is said of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.search import without_program
from ceopt.solvers.deadline import OutOfTimeError

COSTS: list[Any] = [
    ceopt.L1(scale="none"), ceopt.L1(scale="none") + 0.1 * ceopt.Changes(), ceopt.L2(scale="none", squared=True),
    ceopt.L2(scale="none"), ceopt.Linf(scale="none"),
]  # fmt: skip
RULES: list[Any] = [(), [ceopt.MaxChanges(1)], [ceopt.Linear({"a": 1.0, "b": 1.0}, "<=", 8)]]


def asked_by_program(*args: Any, **given: Any) -> ceopt.SolutionSet:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(without_program, "least_cost", lambda *_, **__: None)
        return ceopt.explain(*args, **given)


def space_of(step: float | None, codes: tuple[int, ...], missing: Any) -> ceopt.FeatureSpace:
    return ceopt.FeatureSpace(
        [
            ceopt.Feature("a", kind="integer", lower=0, upper=12),
            ceopt.Feature("b", kind="continuous", lower=-5.0, upper=5.0, step=step),
            ceopt.Feature("c", kind="binary", levels=(0, 1), missing=missing),
            ceopt.Feature("d", kind="integer", lower=-3, upper=10, codes=codes, fill=1.5),
        ]
    )


@draws(60)
@given(
    weights=st.lists(st.sampled_from([-10.0, -1.3, -1.0, -0.1, 0.0, 0.7, 1.0, 2.0]), min_size=4, max_size=4),
    row=st.tuples(st.integers(0, 12), st.integers(-20, 20), st.integers(0, 1), st.integers(-3, 10)),
    missed=st.sampled_from([1e-4, 0.3, 1.0, 4.0, 17.25, 200.0]), step=st.sampled_from([None, 0.25]),
    codes=st.sampled_from([(), (-1, -2)]), cost=st.sampled_from(COSTS), rules=st.sampled_from(RULES),
    margin=st.sampled_from([None, None, 0.0, 0.1]), n=st.sampled_from([1, 1, 2]),
)  # fmt: skip
def test_a_bound_settles_linear_models_as_a_program_does(weights, row, missed, step, codes, cost, rules, margin, n):
    space = space_of(step, codes, missing=False)
    person = {"a": row[0], "b": row[1] / 4, "c": row[2], "d": row[3]}
    own = float(np.dot(weights, list(person.values())))
    model = Affine(weights, -own - missed, labels=("no", "yes"))
    given_ = {"target": "yes", "cost": cost, "constraints": rules, "margin": margin}
    proved = asked_by_program(model, person, space, n=n, **given_)
    found = ceopt.explain(model, person, space, n=n, **given_)
    near = ceopt.explain(model, person, space, n=n, proof=False, **given_)

    assert (found.status, len(found)) == (proved.status, len(proved))
    assert (found.proof == "") == (found.status not in {"optimal", "infeasible"})
    assert proved.proof in {"program", ""}
    assert near.status in {found.status, "feasible", "time_limit"}
    for result in (found, near):
        if result.proof == "bound":
            assert (result.solver, result.size) == ("", {}) or n > 1 or result.status == "infeasible"
        for answer, other in zip(result, proved, strict=False):
            least = proved[0].cost if result is near else other.cost
            assert answer.cost >= least * (1.0 - 1.1e-5) - 1e-9
    if len(found):
        assert found[0].cost == pytest.approx(proved[0].cost, rel=1.1e-5, abs=1e-9)
        assert near.bound is None or near.bound <= proved[0].cost * (1.0 + 1e-6) + 1e-9


@pytest.mark.parametrize("weights", [(-10.0, -10.0, -10.0, -10.0), (0.7, 0.0, 2.0, -1.3), (0.0, -0.1, 0.0, 0.0)])
@pytest.mark.parametrize("cost", [ceopt.L1(scale="none"), ceopt.L1(scale="none") + ceopt.Changes()])
def test_a_score_missed_by_a_hair_has_an_answer_and_a_bound_below_it(weights, cost):
    person = {"a": 3, "b": 0.0, "c": 1, "d": 2}
    own = float(np.dot(weights, list(person.values())))
    model, space = Affine(weights, -own - 1e-9, labels=("no", "yes")), space_of(None, (), missing=False)
    found = ceopt.explain(model, person, space, target="yes", cost=cost)
    proved = asked_by_program(model, person, space, target="yes", cost=cost)
    assert {found.status, proved.status} <= {"optimal", "feasible"}
    assert found[0].verified
    assert found.bound <= found[0].cost <= proved[0].cost + 1e-9
    assert found.bound <= proved[0].cost + 1e-9


@pytest.mark.parametrize("high", [2.9, 2.7, 1.7])
def test_of_a_range_of_values_the_nearer_end_is_no_sum_over_the_columns(high):
    """At the ends of a column, which are all that is asked, it looks like one: 1.4 more, then high less 2.8."""
    space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=3)])
    found = ceopt.explain(Affine([1.124], -0.58), {"income": 0}, space, target=ceopt.Between(1.39, high))
    assert (found.status, found[0].cost, found[0].values["income"]) == ("optimal", pytest.approx(2.0 / 3.0), 2)


ROWS = pd.DataFrame(np.random.default_rng(0).integers(0, 12, size=(200, 3)), columns=list("abc"))
LABELS = np.where(ROWS["a"] + 2 * ROWS["b"] - ROWS["c"] > 14, "yes", "no")
MODELS: dict[str, Any] = {
    "forest": RandomForestClassifier(12, max_depth=4, random_state=0).fit(ROWS, LABELS),
    "network": MLPClassifier((4,), solver="lbfgs", max_iter=5000, random_state=1).fit(ROWS, LABELS),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("rules", [(), (ceopt.MaxChanges(1),)], ids=["free", "one change"])
def test_near_answers_are_verified_and_never_cheaper_than_the_optimum(kind, rules):
    model, space = MODELS[kind], ceopt.FeatureSpace.infer(ROWS)
    people = ROWS[model.predict(ROWS) == "no"].head(8)
    given_ = {"target": "yes", "constraints": rules, "n": 2, "data": ROWS}
    for _, person in people.iterrows():
        near = ceopt.explain(model, person, space, proof=False, **given_)
        proved = asked_by_program(model, person, space, **given_)

        assert near.complete is False or near.status == "infeasible"
        assert near.status != "infeasible" or proved.status == "infeasible"
        assert near.bound is None or not len(proved) or near.bound <= proved[0].cost * (1.0 + 1e-6)
        costs = [answer.cost for answer in near]
        assert costs == sorted(costs)
        assert all(answer.verified for answer in near)
        if len(near):
            assert costs[0] >= proved[0].cost * (1.0 - 1e-5)
            assert near.gap == pytest.approx(1.0 - near.bound / costs[0], abs=1e-12)
        else:
            assert near.reason


@pytest.mark.parametrize("kind", MODELS)
def test_a_change_that_costs_nothing_is_a_near_answer_and_needs_no_program(kind):
    model, space = MODELS[kind], ceopt.FeatureSpace.infer(ROWS).update("b", weight=0.0)
    person = ROWS[model.predict(ROWS) == "no"].iloc[[1]]
    near = ceopt.explain(model, person, space, target="yes", proof=False)
    assert [(answer.cost, answer.changed) for answer in near] == [(0.0, ("b",))]
    assert (near.status, near.proof, near.solver) == ("optimal", "bound", "")


SPACE = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9)])
MODEL = Affine([1.0], -3.5, labels=("no", "yes"))


def test_what_proved_it_is_kept_in_text_and_tables():
    found = ceopt.explain(MODEL, {"income": 2}, SPACE, target="yes")
    again = ceopt.SolutionSet.from_json(found.to_json())
    cohort = ceopt.Recourse(MODEL, SPACE, target="yes").fit(pd.DataFrame({"income": [1, 5]}))
    table = cohort.explain(pd.DataFrame({"income": [1, 5]})).to_frame()

    assert (found.proof, found.solver, found.size, found.margin) == ("bound", "", {}, again.margin)
    assert again.proof == "bound"
    assert table["proof"].tolist() == ["bound", ""]


def test_text_of_an_earlier_version_says_nothing_of_the_proof():
    text = ceopt.explain(MODEL, {"income": 2}, SPACE, target="yes").to_json()
    assert ceopt.SolutionSet.from_json(text.replace('"proof": "bound", ', "")).proof == ""


def test_nothing_in_reach_is_proved_by_a_bound_and_without_proof_no_conflict_is_looked_for():
    far = Affine([1.0], -30.5, labels=("no", "yes"))
    found = ceopt.explain(far, {"income": 2}, SPACE, target="yes")
    near = ceopt.explain(far, {"income": 2}, SPACE, target="yes", proof=False)

    assert found.status == near.status == "infeasible"
    assert found.proof == near.proof == "bound"
    assert (near.solver, near.conflict, near.complete) == ("", (), True)


def test_no_point_that_was_met_proves_nothing():
    rule = ceopt.Linear({"income": 1.0}, "<=", 3)
    near = ceopt.explain(MODEL, {"income": 2}, SPACE, target="yes", constraints=[rule], proof=False)

    assert (near.status, len(near), near.complete, near.proof) == ("time_limit", 0, False, "")
    assert "proof=True" in near.reason
    assert near.bound == pytest.approx(ceopt.explain(MODEL, {"income": 2}, SPACE, target="yes")[0].cost)
    assert "there is one was not to be proved" in " ".join(near.sentences())


def test_a_proof_is_wanted_or_not():
    with pytest.raises(ceopt.CeoptError, match="True or False as proof"):
        ceopt.explain(MODEL, {"income": 2}, SPACE, target="yes", proof="no")


@pytest.mark.parametrize("rules", [(), [ceopt.MaxChanges(2)]], ids=["no rule", "MaxChanges"])
def test_several_near_answers_of_a_linear_model_come_where_a_bound_proves_the_first(rules):
    """The bound that settles the first looks for no other: there was one answer of three."""
    weights = np.array([1.0, 2.0, -1.5])
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in "abc"])
    model = Affine(weights, -9.5, labels=("no", "yes"))
    given_ = {"target": "yes", "cost": ceopt.L1(scale="none"), "constraints": rules, "n": 3}
    found = 0
    for row in ([3, 1, 5], [0, 0, 9], [2, 2, 2], [9, 0, 9]):
        person = dict(zip("abc", row, strict=True))
        near = ceopt.explain(model, person, space, proof=False, **given_)
        proved = ceopt.explain(model, person, space, **given_)
        assert len(near) == len(proved)
        found += len(near)
        assert near[0].cost == pytest.approx(proved[0].cost)
        changed = [set(answer.changed) for answer in near]
        assert all(not changed[k] <= changed[j] for j in range(len(near)) for k in range(j))
    assert found > 6


MENDING: list[Any] = [ceopt.AllowedValues({"d": range(-3, 11)}), ceopt.MaxMove(["a"], up=11)]


@pytest.mark.parametrize("rule", MENDING, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("proof", [True, False])
def test_rules_that_mend_points_leave_a_bound_as_it_is(rule, proof):
    """They only remove points; their people had no bound, and with proof=False a gap of 1."""
    space = space_of(0.25, (), missing=False)
    model = Affine([1.0, -0.5, 2.0, 0.3], -9.5, labels=("no", "yes"))
    for a, b, d in ((0, 1.25, 0), (4, -2.0, 3), (2, 5.0, -3)):
        person = {"a": a, "b": b, "c": 0, "d": d}
        without = ceopt.explain(model, person, space, target="yes", proof=proof)
        found = ceopt.explain(model, person, space, target="yes", proof=proof, constraints=rule)
        assert (found.status, found.proof, found.bound) == (without.status, without.proof, without.bound)
        assert found.bound > 0.0
        by_program = asked_by_program(model, person, space, target="yes", constraints=rule)
        assert found[0].cost >= by_program[0].cost * (1.0 - 1e-9)
        assert found[0].cost <= by_program[0].cost * (1.0 + 1e-9) or not proof


@pytest.mark.parametrize("proof", [True, False])
def test_rules_leave_a_bound_to_people_with_missing_cells_and_codes(proof):
    space = space_of(0.25, (-1, -2), missing=False)
    model = Affine([1.0, -0.5, 2.0, 0.3], -9.5, labels=("no", "yes"))
    for a, d in ((0, -1), (4, -2), (2, 5)):
        person = {"a": a, "b": 1.25, "c": 0, "d": d}
        found = ceopt.explain(model, person, space, target="yes", proof=proof, constraints=ceopt.MaxChanges(3))
        assert found.bound > 0.0
        assert found.gap <= 1e-6 or not proof
        by_program = asked_by_program(model, person, space, target="yes", constraints=ceopt.MaxChanges(3))
        assert found.bound <= by_program[0].cost * (1.0 + 1e-9)
        assert found[0].cost >= by_program[0].cost * (1.0 - 1e-9)


def test_what_the_leaves_say_stays_known_where_the_time_ends_before_a_program(monkeypatch):
    """The bound was 0 with proof=True, and not with proof=False."""
    model = RandomForestClassifier(20, random_state=0).fit(ROWS, np.where(ROWS["a"] + ROWS["b"] > 1, "yes", "no"))
    space = ceopt.FeatureSpace.infer(ROWS)
    person = ROWS[model.predict(ROWS) == "no"].iloc[[0]]
    near = ceopt.explain(model, person, space, target="yes", proof=False)

    def late(*_: Any) -> None:
        raise OutOfTimeError("branching")

    monkeypatch.setattr(without_program, "trees", late)
    found = ceopt.explain(model, person, space, target="yes")
    assert 0.0 < near.bound <= near[0].cost
    assert found.status == "feasible"
    assert 0.0 < found.bound <= found[0].cost
    assert "branching" in found.reason


@pytest.mark.parametrize("diversity", ["distinct", "support", ceopt.Apart(0.2)], ids=str)
def test_answers_that_were_met_are_given_where_the_time_ends(monkeypatch, diversity):
    """There was one answer of three, though the near answers of the same search were three."""
    model = RandomForestClassifier(20, random_state=0).fit(ROWS, np.where(ROWS["a"] + ROWS["b"] > 1, "yes", "no"))
    space = ceopt.FeatureSpace.infer(ROWS)
    person = ROWS[model.predict(ROWS) == "no"].iloc[[0]]
    given_ = {"target": "yes", "n": 3, "diversity": diversity}
    near = ceopt.explain(model, person, space, proof=False, **given_)

    def late(*_: Any, **__: Any) -> None:
        raise OutOfTimeError("branching")

    monkeypatch.setattr(without_program, "trees", late)
    found = ceopt.explain(model, person, space, **given_)
    assert len(found) == len(near) > 1
    assert [answer.changed for answer in found] == [answer.changed for answer in near]
    assert all(answer.verified and answer.gap > 0.0 for answer in found)
    assert (found.status, "branching" in found.reason) == ("feasible", True)
    costs = [answer.cost for answer in found]
    assert costs == sorted(costs)
