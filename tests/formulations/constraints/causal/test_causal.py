"""Causal: the rows that its docstring states, what it refuses, what it learns, and what it says of points."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from rowtext import rows, variables
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

import ceopt
from ceopt import Causal, Feature, FeatureSpace, LinearEquation
from ceopt.formulations import Factual, impose, l1
from ceopt.formulations.predictors import Affine, ReluNetwork
from ceopt.solvers import model_summary
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    UnboundedFeatureError,
    UnknownNameError,
    UnsupportedModelError,
)

AGE = Feature("age", kind="integer", lower=18, upper=90)
WAGE = Feature("wage", kind="continuous", lower=0.0, upper=50.0)
SAVED = Feature("saved", kind="continuous", lower=0.0, upper=100.0)
SIZE = Feature("size", kind="ordinal", levels=("S", "M", "L"))
JOB = Feature("job", kind="categorical", levels=("cook", "nurse"))
SPACE = FeatureSpace([AGE, WAGE, SAVED, SIZE, JOB])
ROW = {"age": 40, "wage": 20.0, "saved": 30.0, "size": "M", "job": "nurse"}
CHAIN = {"saved": LinearEquation({"wage": 2.0, "age": -0.5}, 1.0), "wage": LinearEquation({"age": 0.25, "size": 3.0})}


def imposed(rule: Any, space: FeatureSpace = SPACE, row: Any = None) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(space, ROW if row is None else row)
    m.causal = impose(rule, m.x)
    return m


# ---- rows ------------------------------------------------------------------------------------------------------------
def test_rows_without_interventions() -> None:
    m = imposed(Causal(CHAIN))
    assert rows(m.causal) == [
        "+0.5 x[age] +1 x[saved] -2 x[wage] = 10",  # 30 + 0.5 * 40 - 2 * 20
        "-3 at_least[size,L] -3 at_least[size,M] -0.25 x[age] +1 x[wage] = 7",  # 20 - 0.25 * 40 - 3 * 1
    ]
    assert variables(m.causal) == {}
    assert m.x.charges == {}


def test_rows_of_soft_interventions() -> None:
    m = imposed(Causal(CHAIN, intervention="soft", actionable=["age", "saved"], slack={"saved": 2.5}))
    assert rows(m.causal, "follows") == [
        "-3 at_least[size,L] -3 at_least[size,M] -0.25 x[age] +1 x[wage] = 7",  # its shift is the number 0
        "7.5 <= +0.5 x[age] -1 x[saved] +1 x[saved] -2 x[wage] <= 12.5",
    ]
    assert "x.x[saved] - x.factual[saved]" in str(m.causal.follows["saved"].expr)
    assert "- causal.charged.x[saved]" in str(m.causal.follows["saved"].expr)
    assert rows(m.causal, "stays") == ["+1 at_least[size,L] +1 at_least[size,M] = 1", "+1 level[job,nurse] = 1"]
    # saved moves by -30 .. 70; its parents bring it 2 * (-20 .. 30) - 0.5 * (-22 .. 50) = -65 .. 71
    assert variables(m.causal) == {"x[saved]": "Reals [-101, 135]"}
    assert m.x.charge("wage").stays
    assert not m.x.charge("saved").stays
    assert m.x.charge("age") is m.x.coordinate("age")


def test_rows_of_hard_interventions() -> None:
    m = imposed(Causal({"saved": CHAIN["saved"]}, intervention="hard", slack=2.0))
    up, down = (str(m.causal.follows["saved", side].expr) for side in ("up", "down"))
    assert up == (
        "x.x[saved] - x.factual[saved] - 2.0*x.x[wage] + 2.0*x.factual[wage] + 0.5*x.x[age] - 0.5*x.factual[age]"
        " - causal.charged.x[saved] - 65.0*causal.intervened[saved]  <=  2.0"
    )
    assert down == (
        "- x.x[saved] + x.factual[saved] + 2.0*x.x[wage] - 2.0*x.factual[wage] - 0.5*x.x[age] + 0.5*x.factual[age]"
        " + causal.charged.x[saved] - 71.0*causal.intervened[saved]  <=  2.0"
    )
    assert rows(m.causal, "free") == [
        "-30 intervened[saved] -1 x[saved] <= 0",
        "-70 intervened[saved] +1 x[saved] <= 0",
    ]
    assert rows(m.causal, "whole") == [
        "+30 intervened[saved] -1 x[saved] +1 x[saved] <= 0",  # 30, the factual, on the left
        "+70 intervened[saved] -1 x[saved] +1 x[saved] <= 100",
    ]
    assert "- causal.charged.x[saved]" in str(m.causal.whole["saved", "up"].expr)
    assert variables(m.causal) == {"x[saved]": "Reals [-30, 70]", "intervened[saved]": "Binary [0, 1]"}


def test_a_consequence_bounds_the_move_of_who_is_not_set() -> None:
    """What the parents can bring about is less than the column's own reach."""
    m = imposed(Causal({"saved": LinearEquation({"wage": 0.5})}, intervention="hard", slack=1.0))
    assert rows(m.causal, "whole") == [
        "+11 intervened[saved] -1 x[saved] +1 x[saved] <= -19",  # 0.5 * 20 + 1, less 30
        "+16 intervened[saved] -1 x[saved] +1 x[saved] <= 46",  # 0.5 * 30 + 1, plus 30
    ]


def test_who_is_not_actionable_is_held_under_hard_interventions() -> None:
    m = imposed(Causal(CHAIN, intervention="hard", actionable=["wage"]))
    assert "+0.5 x[age] +1 x[saved] -2 x[wage] = 10" in rows(m.causal, "follows")
    assert list(m.causal.intervened) == ["wage"]
    assert [name for name in m.x.charges if not m.x.charge(name).stays] == ["wage"]


def test_rows_are_in_units_of_very_wide_columns() -> None:
    space = FeatureSpace([Feature("a", kind="continuous", lower=0, upper=2.0**30), AGE])
    row, line = {"a": 0.0, "age": 20}, {"a": LinearEquation({"age": 2.0**20})}
    assert rows(imposed(Causal(line), space, row).causal) == ["+1 x[a] -0.0009765625 x[age] = -0.01953125"]
    m = imposed(Causal(line, slack=2.0**20), space, row)
    assert rows(m.causal) == ["-0.0205078125 <= +1 x[a] -0.0009765625 x[age] <= -0.0185546875"]
    m = imposed(Causal(line, slack=2.0**20, intervention="hard"), space, row)
    assert "-0.001953125 intervened[a] -1 x[a] +1 x[a] -0.0009765625 x[age] <= -0.0185546875" in rows(
        m.causal
    )  # E- = 2
    assert rows(m.causal, "free") == ["-1 intervened[a] +1 x[a] <= 0", "-1 x[a] <= 0"]
    assert "+0.0693359375 intervened[a] -1 x[a] +1 x[a] <= 0.0693359375" in rows(m.causal, "whole")  # E+ = 70, and s


def test_what_cannot_move_is_a_number() -> None:
    fixed = SPACE.update("age", mutable=False).update("size", mutable=False)
    assert rows(imposed(Causal(CHAIN), fixed).causal) == ["+1 x[saved] -2 x[wage] = -10", "+1 x[wage] = 20"]


def test_a_fitted_equation_is_a_block() -> None:
    data = pd.DataFrame({"age": [20, 30, 40, 50], "wage": [1.0, 1.0, 3.0, 5.0]})
    tree = DecisionTreeRegressor().fit(data[["age"]], data["wage"])
    m = imposed(Causal({"wage": tree}))
    assert rows(m.causal, "follows") == ["-2 leaf[0,3] -4 leaf[0,4] +1 x[wage] = 18"]  # 1, 3 or 5 less 3, from 20
    assert "+1 leaf[0,1] +1 leaf[0,3] +1 leaf[0,4] = 1" in rows(m.causal)
    assert m.causal.equation_of_wage.predictor.model is tree
    summary = model_summary(m).set_index("block")
    assert summary.loc["causal", "rule"] == "Causal"
    assert "causal.equation_of_wage" in summary.index


def test_the_model_survives_pickling_and_placing() -> None:
    m = imposed(Causal(CHAIN, intervention="hard", slack=0.5))
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    m = pickle.loads(pickle.dumps(m))
    m.x.place({"age": 44.0, "wage": 30.0, "saved": 48.0, "size": 1.0, "job": 1.0})
    # 2 * 10 - 0.5 * 4 = 18 is what saved does; wage should be 21
    assert (m.causal.intervened["wage"].value, m.causal.intervened["saved"].value) == (1, 0)
    assert pyo.value(m.cost) == 4.0 + 10.0
    assert all(
        pyo.value(row.lower, exception=False) is None or pyo.value(row.body) >= pyo.value(row.lower) - 1e-9
        for row in m.component_data_objects(pyo.Constraint)
    )
    assert all(
        pyo.value(row.upper, exception=False) is None or pyo.value(row.body) <= pyo.value(row.upper) + 1e-9
        for row in m.component_data_objects(pyo.Constraint)
    )
    m.x.place(m.x.point)
    assert pyo.value(m.cost) == 0.0


# ---- words -----------------------------------------------------------------------------------------------------------
def test_the_rule_in_words() -> None:
    assert Causal(CHAIN).sentence() == "wage follows from age, size; saved from wage, age"
    assert Causal(CHAIN, intervention="soft").sentence().endswith("saved from wage, age (soft interventions)")


# ---- refusals --------------------------------------------------------------------------------------------------------
DATA = pd.DataFrame(
    {
        "age": [20, 30, 40, 50, 60, 25],
        "wage": [10.0, 15.0, 18.0, 30.0, 28.0, 12.0],
        "saved": [5.0, 10.0, 11.0, 25.0, 40.0, 6.0],
        "size": ["S", "M", "M", "L", "L", "S"],
        "job": ["cook", "nurse", "cook", "nurse", "nurse", "cook"],
    }
)
LINE = LinearEquation({"age": 1.0})
FITTED = Ridge().fit(DATA[["age", "wage"]], DATA["saved"])
FITTED_WAGE = Ridge().fit(DATA[["age"]], DATA["wage"])
BLIND = Ridge().fit(DATA[["age", "wage"]].to_numpy(), DATA["saved"])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: LinearEquation(["age"]), InvalidTypeError, "mapping from parents .* parents is \\['age'\\]"),
        (lambda: LinearEquation({1: 2.0}), InvalidTypeError, "mapping from parents"),
        (lambda: LinearEquation({}), InvalidValueError, "at least one parent"),
        (lambda: LinearEquation({"age": np.nan}), InvalidValueError, "finite numbers, but age is nan"),
        (lambda: LinearEquation({"age": True}), InvalidValueError, "finite numbers, but age is True"),
        (lambda: LinearEquation({"age": 1.0}, np.inf), InvalidValueError, "finite numbers, but intercept is inf"),
        (lambda: Causal({}), InvalidValueError, "equations is empty"),
        (lambda: Causal([LINE]), InvalidTypeError, "mapping from columns to equations"),
        (lambda: Causal({"wage": 3}), InvalidTypeError, "'wage' is 3"),
        (lambda: Causal({"wage": "age"}), UnsupportedModelError, "it is 'age'.*equation of 'wage'"),
        (lambda: Causal({"wage": None}), InvalidTypeError, "'wage' is None"),
        (lambda: Causal({"wage": Ridge}), InvalidTypeError, "'wage' is Ridge"),
        (lambda: Causal({"wage": (FITTED,)}), InvalidTypeError, "'wage' has 1 entries"),
        (lambda: Causal({"saved": (FITTED, "age")}), InvalidTypeError, "'saved' needs its parents in a list"),
        (lambda: Causal({"saved": (FITTED, ["age", 3])}), InvalidTypeError, "one is 3"),
        (lambda: Causal({"saved": (FITTED, [])}), InvalidValueError, "at least one parent"),
        (lambda: Causal({"saved": (FITTED, ["age", "age"])}), InvalidValueError, "'age' is there twice"),
        (lambda: Causal({"saved": (FITTED, ["age"])}), InvalidValueError, "'wage' is not named"),
        (lambda: Causal({"saved": (FITTED, ["age", "wage", "size"])}), InvalidValueError, "'size' is none of them"),
        (lambda: Causal({"saved": BLIND}), InvalidValueError, "Ridge was not fitted on a frame"),
        (lambda: Causal({"saved": (BLIND, ["age"])}), InvalidValueError, "each of the 2 inputs .* 1 are named: age"),
        (lambda: Causal({"age": LINE}), InvalidValueError, "'age' is its own"),
        (
            lambda: Causal({"wage": LinearEquation({"saved": 1.0}), "saved": FITTED}),
            InvalidValueError,
            "without a cycle, but there is one: (saved -> wage -> saved|wage -> saved -> wage)",
        ),
        (lambda: Causal({"wage": LINE}, intervention="firm"), UnknownNameError, "intervention is 'firm'"),
        (lambda: Causal({"wage": LINE}, slack=-0.1), InvalidValueError, "slack is -0.1"),
        (lambda: Causal({"wage": LINE}, slack=np.inf), InvalidValueError, "slack is inf"),
        (lambda: Causal({"wage": LINE}, slack={"wage": "1"}), InvalidValueError, "slack of 'wage' is '1'"),
        (lambda: Causal({"wage": LINE}, actionable="age"), InvalidTypeError, "actionable is 'age'"),
        (lambda: Causal({"wage": LINE}, actionable=[3]), InvalidTypeError, "list of columns as actionable"),
    ],
)
def test_misuse_is_refused_at_once(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def by_levels() -> Any:
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    return make_pipeline(encoder, LinearRegression()).fit(DATA[["job", "age"]], DATA["wage"])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Causal({"pay": LINE}), UnknownNameError, "Causal needs a known column, but column is 'pay'"),
        (lambda: Causal({"wage": LinearEquation({"agee": 1.0})}), UnknownNameError, "Did you mean 'age'"),
        (lambda: Causal({"wage": LINE}, actionable=["pay"]), UnknownNameError, "column as actionable is 'pay'"),
        (lambda: Causal({"wage": LINE}, slack={"age": 1.0}), UnknownNameError, "column with an equation is 'age'"),
        (lambda: Causal({"job": LINE}), InvalidTypeError, "column 'job' is categorical"),
        (lambda: Causal({"wage": LinearEquation({"job": 1.0})}), InvalidTypeError, "'job' is categorical. Fit a regr"),
        (lambda: Causal({"wage": (Ridge(), ["age"])}), UnsupportedModelError, "not fitted.*equation of 'wage'"),
        (
            lambda: Causal({"saved": KNeighborsRegressor(2).fit(DATA[["age"]], DATA["saved"])}),
            UnsupportedModelError,
            "KNeighborsRegressor.*equation of 'saved'",
        ),
        (
            lambda: Causal({"wage": RandomForestClassifier(2).fit(DATA[["age"]], DATA["size"])}),
            UnsupportedModelError,
            "'wage' is RandomForestClassifier, a classifier",
        ),
        (
            lambda: Causal({"wage": (Affine([1.0], 0.0, labels=("no", "yes")), ["age"])}),
            UnsupportedModelError,
            "'wage' is Affine, a classifier",
        ),
        (
            lambda: Causal(
                {"wage": Ridge().fit(DATA[["age", "saved"]].rename(columns={"saved": "owed"}), DATA["wage"])}
            ),
            UnknownNameError,
            "equation of 'wage' needs a known column, but column is 'owed'",
        ),
    ],
)
def test_what_does_not_fit_the_space_is_refused_by_name(make: Any, error: type[Exception], match: str) -> None:
    space = SPACE.update("age", mutable=False)
    encoder = make_column_transformer((OneHotEncoder(), ["job", "size"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(2, random_state=0)).fit(DATA, DATA["age"] > 35)
    with pytest.raises(error, match=match):
        make().check(space)
    with pytest.raises(error, match=match):
        ceopt.explain(model, ROW, space, target=True, constraints=[make()])


def test_a_cost_built_before_is_refused() -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    m.cost = pyo.Objective(expr=l1(m.x))
    m.free = impose(Causal(CHAIN), m.x)  # every move is charged as it was
    with pytest.raises(InvalidTypeError, match="imposed before a cost is built"):
        impose(Causal(CHAIN, intervention="soft"), m.x)


def test_a_second_causal_model_is_refused() -> None:
    rule = Causal({"wage": LINE}, intervention="soft")
    m = imposed(rule)
    m.again = impose(rule, m.x)
    with pytest.raises(InvalidTypeError, match="only causal model with interventions, but column 'wage' is charged"):
        impose(Causal({"saved": LINE}, intervention="hard"), m.x)


@pytest.mark.parametrize("without", ["wage", "saved"])
def test_hard_interventions_need_bounds_and_name_who_has_none(without: str) -> None:
    space = SPACE.update(without, upper=np.inf)
    with pytest.raises(UnboundedFeatureError, match=f"column '{without}' may reach"):
        imposed(Causal({"saved": LinearEquation({"wage": 1.0})}, intervention="hard"), space)
    assert imposed(Causal({"saved": LinearEquation({"wage": 1.0})}, intervention="soft"), space).x.charges
    assert imposed(Causal({"saved": LinearEquation({"wage": 1.0})}, intervention="hard", actionable=["wage"]), space)


def test_a_level_that_the_regressor_does_not_know() -> None:
    """It cannot be the factual's; an answer that has it breaks the rule, and a search for a start may try it."""
    space = SPACE.update("job", levels=("cook", "nurse", "smith"))
    rule = Causal({"wage": by_levels()}, intervention="soft")
    with pytest.raises(InvalidValueError, match="equation of 'wage' needs levels .* column 'job' is 'smith'"):
        imposed(rule, space, ROW | {"job": "smith"})
    home, seen = space.row(ROW), space.row(ROW | {"job": "smith"})
    held = Causal({"wage": by_levels()})
    with pytest.raises(InvalidValueError, match="column 'job' is 'smith'"):
        held.violation(space, seen, home)
    assert rule.violation(space, home, seen) == np.inf
    assert held.violation(space, home, seen) == np.inf
    points = np.array([list(home.values()), list(seen.values())])
    assert held.mended(space, home, points).tolist() == points.tolist()
    assert np.isnan(rule.charged(space, home, points)[:, 1]).tolist() == [False, True]  # soft: charged, but unknown
    m = imposed(held, space)
    assert rows(m.causal, "never_seen") == ["+1 level[job,smith] <= 0"]


# ---- kinds of equations ----------------------------------------------------------------------------------------------
def everything() -> Iterator[Any]:
    frame, wage = DATA[["age", "saved"]], DATA["wage"]
    yield "linear", LinearEquation({"age": 0.5, "saved": 0.25}, 2.0)
    yield "has parents", SimpleNamespace(parents={"age": 0.5, "saved": 0.25}, intercept=2.0, noise_scale=1.0)
    yield "named", Ridge().fit(frame, wage)
    yield "named in another order", (Ridge().fit(frame, wage), ["saved", "age"])
    yield "by position", (Ridge().fit(frame.to_numpy(dtype=float), wage), ["age", "saved"])
    yield "plain arrays", (Affine([0.5, 0.25], 2.0), ["age", "saved"])
    yield "network", (ReluNetwork([[[0.5, 0.0], [0.0, 0.25]], [[1.0, 1.0]]], [[0.0, 0.0], [2.0]]), ["age", "saved"])
    yield "forest", RandomForestRegressor(3, random_state=0).fit(frame, wage)


@pytest.mark.parametrize("given", [pytest.param(one, id=name) for name, one in everything()])
def test_every_way_to_give_an_equation(given: Any) -> None:
    """The factual follows; the program and plain numbers agree on what follows from a move of age."""
    rule = Causal({"wage": given}, actionable=["age"])
    rule.check(SPACE)
    home = SPACE.row(ROW)
    assert rule.violation(SPACE, home, home) == 0.0
    moved = home | {"age": 53.0}
    (mended,) = rule.mended(SPACE, home, np.array([list(moved.values())]))
    assert mended[0] == 53.0
    assert mended[1] != pytest.approx(home["wage"], abs=1e-3)
    assert rule.violation(SPACE, home, moved) == pytest.approx(abs(mended[1] - home["wage"]))
    m = imposed(rule)
    m.x.coordinate("age").raw()
    m.x.place(dict(zip(SPACE.names, mended.tolist(), strict=True)))
    for row in m.causal.component_data_objects(pyo.Constraint):
        assert row.lower is None or pyo.value(row.body) >= pyo.value(row.lower) - 1e-7, row.name
        assert row.upper is None or pyo.value(row.body) <= pyo.value(row.upper) + 1e-7, row.name


def test_the_equations_of_the_loans_are_equations() -> None:
    book = ceopt.datasets.loans(n=50)
    rule = Causal(book.equations)
    rule.check(book.space)
    assert rule.sentence().startswith("years_employed follows from age; income from age, education, years_employed;")


# ---- plain numbers ---------------------------------------------------------------------------------------------------
def test_whole_numbers_and_levels_are_mended_to_what_they_can_hold() -> None:
    space = FeatureSpace([AGE, Feature("n", kind="integer", lower=0, upper=9, step=2), SIZE])
    home = {"age": 40.0, "n": 3.0, "size": 1.0}
    rule = Causal({"n": LinearEquation({"age": 0.5}), "size": LinearEquation({"age": 1.0})}, slack={"n": 0.5})
    points = np.array([[age, 3.0, 1.0] for age in (40.0, 43.0, 44.0, 47.0)])
    mended = rule.mended(space, home, points)
    # 3 + 0.5 * 3 = 4.5 is within 0.5 of 5, and 6.5 of 7: steps are counted from the factual; ranks end at 2
    assert mended.tolist() == [[40.0, 3.0, 1.0], [43.0, 5.0, 2.0], [44.0, 5.0, 2.0], [47.0, 7.0, 2.0]]
    exact = Causal({"n": LinearEquation({"age": 0.5})}).mended(space, home, points)
    assert exact[:, 1].tolist() == [3.0, 4.5, 5.0, 6.5]  # no answer: left as computed


def test_a_trial_that_is_not_whole_has_consequences_all_the_same() -> None:
    """A regressor takes no half of a year; a search for a start meets such trials, and no answer is one."""
    space = FeatureSpace([WAGE, AGE, SAVED])
    model = DecisionTreeRegressor(random_state=0).fit(DATA[["age"]], DATA["saved"])
    rule = Causal({"age": LinearEquation({"wage": 0.5}), "saved": model})
    home = {"wage": 20.0, "age": 40.0, "saved": 30.0}
    (mended,) = rule.mended(space, home, np.array([[37.0, 40.0, 30.0]]))
    assert mended.tolist() == [37.0, 48.5, 30.0 + model.predict(DATA[["age"]][:1].assign(age=48))[0] - 11.0]
    assert rule.violation(space, home, dict(zip(space.names, mended.tolist(), strict=True))) == 0.0


def test_one_rule_over_several_spaces() -> None:
    rule = Causal({"saved": LINE, "wage": FITTED_WAGE})
    turned = FeatureSpace(list(SPACE)[::-1])
    for space in (SPACE, turned, SPACE):
        home = space.row(ROW)
        moved = dict(
            zip(
                space.names, rule.mended(space, home, np.array([list((home | {"age": 50.0}).values())]))[0], strict=True
            )
        )
        assert moved["saved"] == 40.0
        assert moved["wage"] == pytest.approx(20.0 + 10.0 * FITTED_WAGE.coef_[0])


def test_what_is_off_by_a_solvers_tolerance_follows() -> None:
    home = SPACE.row(ROW)
    rule, hard = Causal({"saved": LINE}), Causal({"saved": LINE}, intervention="hard")
    near, far = (home | {"age": 50.0, "saved": 40.0 + off} for off in (3e-5, 6e-5))
    assert rule.violation(SPACE, home, near) == 0.0
    assert rule.violation(SPACE, home, far) == pytest.approx(6e-5)
    charged = hard.charged(SPACE, home, np.array([list(near.values()), list(far.values())]))
    assert charged[:, 2].tolist() == [30.0, 40.0 + 6e-5]
    assert hard.actions(SPACE, home, near) == {"age": 50}
    assert hard.actions(SPACE, home, far) == {"age": 50, "saved": 40.0 + 6e-5}


def test_actions_by_intervention() -> None:
    home = SPACE.row(ROW)
    point = home | {"age": 44.0, "wage": 26.0, "saved": 45.0, "size": 2.0, "job": 0.0}
    ask = {kind: Causal(CHAIN, intervention=kind, slack={"saved": 4.0}) for kind in ("none", "soft", "hard")}
    acted = {kind: rule.actions(SPACE, home, point) for kind, rule in ask.items()}
    assert acted["none"] == {"age": 44, "size": "L", "job": "cook"}
    # wage: 26 - 20 - (0.25 * 4 + 3) = 2; saved: 15 - (2 * 6 - 0.5 * 4) = 5, of which 4 are slack
    assert acted["soft"] == {"age": 4.0, "wage": 2.0, "saved": 1.0, "size": "L", "job": "cook"}
    assert acted["hard"] == {"age": 44, "wage": 26.0, "saved": 45.0, "size": "L", "job": "cook"}
    assert ask["hard"].actions(SPACE, home, home) == {}


def test_who_stays_is_named_by_the_check() -> None:
    home = SPACE.row(ROW)
    rule = Causal({"saved": LINE}, actionable=["age"])
    assert rule.violation(SPACE, home, home | {"age": 41.0, "saved": 31.0}) == 0.0
    assert rule.violation(SPACE, home, home | {"wage": 23.0}) == 3.0
    assert rule.violation(SPACE, home, home | {"job": 0.0}) == 1.0
    moved = np.array([[41.0, 22.0, 5.0, 2.0, 0.0]])
    assert rule.mended(SPACE, home, moved).tolist() == [[41.0, 20.0, 31.0, 1.0, 1.0]]


def test_a_regressor_is_asked_once_for_a_row_of_its_parents() -> None:
    class Counting(LinearRegression):
        asked = 0

        def predict(self, X: Any) -> Any:
            type(self).asked += len(X)
            return super().predict(X)

    Counting.__module__, Counting.__name__ = "sklearn.linear_model", "LinearRegression"
    model = Counting().fit(DATA[["age"]], DATA["wage"])
    rule = Causal({"wage": model})
    home = SPACE.row(ROW)
    points = np.tile(list(home.values()), (3000, 1))
    points[:, 0] = 18 + np.arange(3000) % 50
    rule.mended(SPACE, home, points[:1])  # reads the model, which asks it about rows of its own
    Counting.asked = 0
    first = rule.mended(SPACE, home, points)
    assert 48 <= Counting.asked <= 50  # one or two were met before
    asked = Counting.asked
    assert rule.mended(SPACE, home, points[::-1])[::-1].tolist() == first.tolist()
    assert Counting.asked == asked


# ---- learning --------------------------------------------------------------------------------------------------------
class DiGraph:
    """What is used of a directed graph of networkx."""

    def __init__(self, edges: list[tuple[str, str]]) -> None:
        self.edges, self.nodes = edges, list(dict.fromkeys(name for edge in edges for name in edge))

    def predecessors(self, node: str) -> Iterator[str]:
        return iter([a for a, b in self.edges if b == node])


GRAPH = {"wage": ["age", "size", "job"], "saved": ["wage"], "age": []}


def test_learned_equations_are_those_of_least_squares() -> None:
    """Ranks of ordered levels, and a column per unordered one, by hand."""
    rule = Causal.learn(GRAPH, DATA, space=SPACE, intervention="soft", name="nature")
    assert (rule.intervention, rule.name) == ("soft", "nature")
    assert rule.sentence() == "wage follows from age, size, job; saved from wage (soft interventions)"
    rank = DATA["size"].map({"S": 0.0, "M": 1.0, "L": 2.0})
    nurse = (DATA["job"] == "nurse").astype(float)
    matrix = np.column_stack([np.ones(6), DATA["age"], rank, nurse])
    slopes = np.linalg.lstsq(matrix, DATA["wage"], rcond=None)[0]
    home = SPACE.row(ROW)
    moved = home | {"age": 45.0, "size": 2.0, "job": 0.0}
    (mended,) = Causal.learn(GRAPH, DATA, space=SPACE).mended(SPACE, home, np.array([list(moved.values())]))
    wage = 5.0 * slopes[1] + slopes[2] - slopes[3]
    assert mended[1] == pytest.approx(20.0 + wage)
    assert mended[2] == pytest.approx(30.0 + wage * np.polyfit(DATA["wage"], DATA["saved"], 1)[0])


def test_a_graph_of_networkx_and_an_inferred_space() -> None:
    edges = [("age", "wage"), ("job", "wage"), ("wage", "saved")]
    rule = Causal.learn(DiGraph(edges), DATA)
    space = FeatureSpace.infer(DATA, moves={"age": "up"})
    rule.check(space)
    assert rule.sentence() == "wage follows from age, job; saved from wage"


@pytest.mark.parametrize("regressor", [RandomForestRegressor(3, random_state=0), Ridge()])
def test_a_regressor_is_cloned_for_each_column(regressor: Any) -> None:
    rule = Causal.learn({"wage": ["age"], "saved": ["age", "wage"]}, DATA, regressor=regressor, space=SPACE)
    (wage, above), (saved, more) = rule.equations["wage"], rule.equations["saved"]
    assert (above, more) == (["age"], ["age", "wage"])
    assert type(wage) is type(saved) is type(regressor)
    assert len({id(wage), id(saved), id(regressor)}) == 3
    assert not hasattr(regressor, "n_features_in_")


def test_levels_with_an_equation_count_by_rank() -> None:
    rule = Causal.learn({"size": ["wage"]}, DATA, space=SPACE)
    slope = np.polyfit(DATA["wage"], [0, 1, 1, 2, 2, 0], 1)[0]
    assert rule.equations["size"][0].coef_[0] == pytest.approx(slope)


@pytest.mark.parametrize(
    ("ask", "error", "match"),
    [
        (lambda: Causal.learn([("a", "b")], DATA), InvalidTypeError, "graph, but it got list"),
        (lambda: Causal.learn({"wage": "age"}, DATA), InvalidTypeError, "graph at 'wage' needs its parents in a list"),
        (lambda: Causal.learn({3: ["age"]}, DATA), InvalidTypeError, "one is 3"),
        (lambda: Causal.learn({"wage": ["age", "age"]}, DATA), InvalidValueError, "'age' is there twice"),
        (lambda: Causal.learn({"wage": []}, DATA), InvalidValueError, "the graph has none"),
        (lambda: Causal.learn({"wage": ["size", "saved"], "saved": ["wage"]}, DATA), InvalidValueError, "a cycle"),
        (lambda: Causal.learn({"wage": ["heigth"]}, DATA), InvalidValueError, "'heigth' is missing"),
        (lambda: Causal.learn({"pay": ["age"]}, DATA), InvalidValueError, "'pay' is missing"),
        (lambda: Causal.learn({"wage": ["age"]}, DATA.to_dict()), InvalidTypeError, "data is dict"),
        (lambda: Causal.learn({"wage": ["age"]}, DATA[:0]), InvalidValueError, "the data have none"),
        (lambda: Causal.learn({"wage": ["age"]}, DATA, regressor=3), InvalidTypeError, "regressor is 3"),
        (lambda: Causal.learn({"wage": ["job"]}, DATA, regressor=Ridge()), InvalidValueError, "Ridge fails"),
        (lambda: Causal.learn({"job": ["age"]}, DATA, space=SPACE), InvalidTypeError, "'job' is categorical"),
        (lambda: Causal.learn({"wage": ["age"]}, DATA.assign(age=np.nan), space=SPACE), InvalidValueError, "'age'"),
        (lambda: Causal.learn({"wage": ["x"]}, DATA.assign(x=1.0), space=SPACE), UnknownNameError, "column is 'x'"),
    ],
)
def test_misuse_of_learning_is_refused_by_name(ask: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ask()
