"""Rules with ``beyond="no_further"``: who breaks them today may stay or come nearer, in rows, checks and answers."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pyomo.environ as pyo
import pytest

import ceopt
from ceopt import AllowedRows, Feature, FeatureSpace, IfThen, Linear
from ceopt.formulations import Columns, Factual, impose
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0.0, upper=90_000.0, step=100.0, mad=10_000.0),
        Feature("hours", kind="integer", lower=0, upper=60, mad=10.0),
        Feature("job", kind="categorical", levels=(1, 2, 3)),
    ]
)
COOK, NURSE, VET = 1, 2, 3
RICH = {"income": 40_400.0, "hours": 60, "job": NURSE}
POOR = {"income": 9_000.0, "hours": 30, "job": COOK}
#: Fewer hours, or more income, make it; jobs do not count.
MODEL = Affine([0.001, -1.0, 0.0], 0.05, labels=("no", "yes"))
CEILING = Linear({"income": 1.0}, "<=", 12_000, name="income", beyond="no_further")


def answer(row, *rules, **options):
    result = ceopt.explain(MODEL, row, SPACE, target="yes", constraints=rules, **options)
    assert result.status == "optimal", result.reason
    return result[0].values


def rows(rule, row):
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, row)
    m.rule = impose(rule, m.x)
    return [str(row.expr) for row in m.rule.component_data_objects(pyo.Constraint)]


@pytest.mark.parametrize(
    ("sense", "rhs", "row", "expected"),
    [
        ("<=", 12_000, RICH, "x.x[income]  <=  40400.0"),
        ("<=", 12_000, POOR, "x.x[income]  <=  12000.0"),
        (">=", 12_000, RICH, "12000.0  <=  x.x[income]"),
        (">=", 12_000, POOR, "9000.0  <=  x.x[income]"),
        ("==", 12_000, RICH, "12000.0  <=  x.x[income]  <=  40400.0"),
        ("==", 12_000, POOR, "9000.0  <=  x.x[income]  <=  12000.0"),
    ],
)
def test_the_row_has_the_looser_of_limit_and_own_value(sense, rhs, row, expected):
    assert rows(Linear({"income": 1.0}, sense, rhs, beyond="no_further"), row) == [expected]


def test_a_ceiling_lowers_nobody_and_lifts_nobody_above_it():
    assert answer(RICH, CEILING)["income"] == 40_400.0
    assert answer(POOR, CEILING)["income"] <= 12_000.0
    # Meant as "meet" it lowers the same person, as it always did.
    assert answer(RICH, Linear({"income": 1.0}, "<=", 12_000))["income"] == 12_000.0


@pytest.mark.parametrize("income", [40_400.0, 20_000.0, 12_000.0, 40_500.0])
def test_verify_says_of_every_value_what_the_program_does(income):
    there = dict(RICH, income=income, hours=0)
    frame = SPACE.frame([SPACE.row(there)])
    report = ceopt.verify(frame, MODEL, SPACE, target="yes", factual=RICH, constraints=[CEILING])

    assert report.ok == (income <= 40_400.0)
    # Nobody knows how far is further where nobody knows from where.
    alone = ceopt.verify(frame, MODEL, SPACE, target="yes", constraints=[CEILING])
    assert alone.ok is None
    assert alone.unchecked[1:] == ("income: income <= 12000, or no further from it than today",)


def test_if_then_keeps_the_combination_of_today_and_no_other_that_breaks_it():
    rule = IfThen(("job", "in", [NURSE, VET]), ("hours", ">=", 40), beyond="no_further")
    space = SPACE.update("income", mutable=False)

    def kept(row, **changed):
        return rule.violation(space, space.row(row), space.row(row | changed)) == 0.0

    nurse = dict(RICH, hours=30)
    assert kept(nurse)
    assert kept(nurse, hours=35), "nearer"
    assert kept(nurse, hours=45), "met"
    assert kept(nurse, hours=10, job=COOK), "met, as the condition is not"
    assert not kept(nurse, hours=25), "further"
    assert not kept(nurse, job=VET), "another combination that breaks it"
    assert not kept(POOR, job=NURSE), "who keeps it today meets it"


def test_allowed_rows_keep_the_combination_of_today_as_a_whole():
    table = pd.DataFrame({"job": [COOK, VET], "hours": [20, 20]})
    rule = AllowedRows(["job", "hours"], table, beyond="no_further")
    found = answer(RICH, rule)  # in place of hours, which may not move alone, the income
    assert found[["job", "hours"]].tolist() == [NURSE, 60]
    assert found["income"] == 60_000.0
    assert answer(RICH, replace(rule, beyond="meet"))["hours"] == 20
    home = SPACE.row(RICH)
    for job, hours, is_kept in ((NURSE, 60, True), (COOK, 20, True), (COOK, 60, False), (NURSE, 20, False)):
        broken = rule.violation(SPACE, home, SPACE.row(dict(RICH, job=job, hours=hours)))
        assert (broken == 0.0) == is_kept, (job, hours)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Linear({"income": 1.0}, "<=", 1, beyond="stay"), UnknownNameError, "beyond is 'stay'.*no_further"),
        (lambda: IfThen(("job", "changed"), ("hours", "changed"), beyond=None), UnknownNameError, "beyond is None"),
        (lambda: AllowedRows(["job"], pd.DataFrame({"job": [VET]}), beyond=1), UnknownNameError, "beyond is 1"),
        (lambda: Linear({"income": 1.0}, "<=", 1, further=1.0), InvalidValueError, "further .* beyond 'meet'"),
        (lambda: Linear({"income": 1.0}, "<=", 1, beyond="no_further", further=-1.0), InvalidValueError, "-1.0"),
    ],
)
def test_what_makes_no_sense_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_it_is_about_a_person_and_not_about_any_row():
    m = pyo.ConcreteModel()
    m.income = pyo.Var(bounds=(0, 90_000))
    m.row = Columns(SPACE, {"income": m.income, "hours": 30, "job": VET})
    impose(Linear({"income": 1.0}, "<=", 12_000), m.row)
    with pytest.raises(InvalidTypeError, match="Linear needs a Factual block, as it is about a change"):
        impose(CEILING, m.row)


def test_a_conflict_says_by_how_much_further_would_do():
    fixed = SPACE.update("hours", mutable=False).update("job", mutable=False)
    result = ceopt.explain(MODEL, dict(RICH, hours=45), fixed, target="yes", constraints=[CEILING])

    ((name, _, width),) = result.conflict
    assert (name, width) == ("income", pytest.approx(4_600.0, rel=1e-4))
    wider = CEILING.widened(width)
    assert answer(dict(RICH, hours=45), wider)["income"] <= 45_000.0
