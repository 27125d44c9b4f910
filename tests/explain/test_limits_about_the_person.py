"""Limits about the person (max_up, max_down): decimals, and answers held against enumeration."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space.reachable import reach_of
from ceopt.solvers.errors import CeoptError
from ceopt.surrogates import LocalSurrogateRecourse
from ceopt.words import in_words

NAMES = ["age", "rate", "size"]
VALUES = {"age": range(-8, 17), "rate": [k / 2 for k in range(-12, 21)], "size": range(4)}
GRID = pd.DataFrame(list(itertools.product(*VALUES.values())), columns=NAMES)


# ---- shorter than a step --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_up": 0.2}, "max_up=0.2 allows no move of column 'age', which moves in steps of 1. Write max_up=\"20%\""),
        ({"max_down": 3, "step": 5}, "max_down=3 allows no move of column 'age', which moves in steps of 5.$"),
        ({"max_up": 1}, None),
        ({"max_up": 0}, None),
        ({"max_up": "20%"}, None),
        ({"max_up": 0.2, "kind": "continuous"}, None),
    ],
)
def test_a_limit_shorter_than_a_step_is_warned_of(limits, said):
    space = ceopt.FeatureSpace([ceopt.Feature("age", kind="integer", lower=0, upper=99)])
    if said is not None:
        with pytest.warns(ceopt.SpaceWarning, match=said):
            space = space.update("age", **limits)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        space.update("age", **limits)


# ---- decimals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("limit", "value", "highest"),
    [
        ("29%", 100.0, 129.0),  # 0.29 * 100 is 28.999999999999996
        ("20%", 30_000.0, 36_000.0),
        ("10%", 3.0, 3.3),  # 3 * 1.1 is 3.3000000000000003
        ("7%", 0.1, 0.107),
        ("20%", -50.0, -40.0),  # of its size
        ("20%", 0.0, 0.0),
        ("150%", 2.0, 5.0),
        ("33.3%", 10.0, 13.33),
        (0.1, 0.2, 0.3),  # 0.2 + 0.1 is 0.30000000000000004
        (2, 40.0, 42.0),
    ],
)
def test_shares_are_counted_in_decimals(limit, value, highest):
    feature = ceopt.Feature("x", kind="continuous", max_up=limit)
    part = reach_of(ceopt.FeatureSpace([feature]), {"x": value})["x"]
    assert part.upper == highest
    model = Affine([1.0], 1e6, labels=("no", "yes"))
    asked = ceopt.FeatureSpace([feature])
    held = [highest, np.nextafter(highest, np.inf) if highest else 0.0, highest + max(abs(highest), 1.0) * 1e-9]
    answers = [{"x": float(one)} for one in held]
    broken = ceopt.verify(answers, model, asked, target="yes", factual={"x": value}).to_frame()["broken"]
    assert broken[0] == broken[1] == ()
    assert "max_up of x (" in broken[2][0]


@pytest.mark.parametrize(
    ("told", "value", "ends"),
    [
        ({"kind": "integer", "max_up": "20%", "max_down": "20%"}, 33.0, (27.0, 39.0)),
        ({"kind": "integer", "max_up": 2.5}, 33.0, (-np.inf, 35.0)),
        ({"kind": "continuous", "step": 0.05, "max_up": "29%", "max_down": "29%"}, 1.0, (0.75, 1.25)),
        ({"kind": "integer", "step": 5, "max_up": 12, "lower": 18, "upper": 41}, 20.0, (20.0, 30.0)),
        ({"kind": "integer", "lower": 0, "upper": 30, "max_up": 5, "max_down": 5}, 28.0, (23.0, 30.0)),
        ({"kind": "integer", "lower": 0, "upper": 30, "max_up": 5, "max_down": 5}, 40.0, (35.0, 40.0)),
        ({"kind": "integer", "direction": "up", "max_up": 5, "max_down": 5}, 28.0, (28.0, 33.0)),
    ],
)
def test_they_are_rounded_down_to_the_step_and_the_tightest_holds(told, value, ends):
    part = reach_of(ceopt.FeatureSpace([ceopt.Feature("x", **told)]), {"x": value})["x"]
    assert (part.lower, part.upper) == ends


@draws(200)
@given(
    limit=st.one_of(st.integers(0, 300).map(lambda k: f"{k / 4:g}%"), st.integers(0, 400).map(lambda k: k / 16)),
    value=st.one_of(st.floats(-1e6, 1e6), st.integers(-300, 300).map(lambda k: k / 8)),
)
def test_an_end_is_the_last_float_whose_text_keeps_the_limit(limit, value):
    part = reach_of(
        ceopt.FeatureSpace([ceopt.Feature("x", kind="continuous", max_up=limit, max_down=limit)]), {"x": value}
    )["x"]
    room = _room(limit, value)
    own = Fraction(repr(value))
    assert Fraction(repr(part.upper)) <= own + room < Fraction(repr(float(np.nextafter(part.upper, np.inf))))
    assert Fraction(repr(part.lower)) >= own - room > Fraction(repr(float(np.nextafter(part.lower, -np.inf))))


def _room(limit: Any, value: float) -> Fraction:
    if limit is None:
        return Fraction(10**9)
    if isinstance(limit, str):
        return Fraction(limit[:-1]) * abs(Fraction(repr(float(value)))) / 100
    return Fraction(repr(float(limit)))


# ---- answers ---------------------------------------------------------------------------------------------------------
def space(told: dict[str, dict[str, Any]]) -> ceopt.FeatureSpace:
    return ceopt.FeatureSpace(
        [
            ceopt.Feature("age", kind="integer", **told["age"]),
            ceopt.Feature("rate", kind="continuous", step=0.5, **told["rate"]),
            ceopt.Feature("size", kind="ordinal", levels=(0, 1, 2, 3), **told["size"]),
        ]
    )


def is_allowed(told: dict[str, Any], own: float, value: float) -> bool:
    """The words of the rule, for a value on the grid."""
    if value == own:
        return True
    move = Fraction(repr(float(value))) - Fraction(repr(float(own)))
    if move > _room(told.get("max_up"), own) or -move > _room(told.get("max_down"), own):
        return False
    direction = told.get("direction", "any")
    if (direction == "increasing" and move < 0) or (direction == "decreasing" and move > 0):
        return False
    if value < told.get("lower", -np.inf) and value < own:
        return False
    return not (value > told.get("upper", np.inf) and value > own)


def cheapest(said: Any, told: dict[str, dict[str, Any]], person: dict[str, float]) -> float | None:
    allowed = np.ones(len(GRID), dtype=bool)
    cost = np.zeros(len(GRID))
    for name in NAMES:
        own = person[name]
        allowed &= GRID[name].map({value: is_allowed(told[name], own, value) for value in VALUES[name]}).to_numpy()
        cost += (GRID[name] - own).abs().to_numpy() / (3.0 if name == "size" else 1.0)
    held = cost[allowed & said]
    return float(held.min()) if len(held) else None


def limits(whole: bool = False) -> Any:
    if whole:
        return st.sampled_from([None, 0, 1, 2])
    return st.sampled_from([None, 0, 1, 1.5, 3, "0%", "20%", "50%", "120%"])


def column(lower: list[Any], upper: list[Any], whole: bool = False) -> Any:
    told: dict[str, Any] = {"max_up": limits(whole), "max_down": limits(whole)}
    told["direction"] = st.sampled_from(["any", "any", "increasing", "decreasing"])
    if not whole:
        told |= {"lower": st.sampled_from(lower), "upper": st.sampled_from(upper)}
    return st.fixed_dictionaries(told)


def tree(seed: int) -> DecisionTreeClassifier:
    rng = np.random.default_rng(seed)
    rows = GRID.iloc[rng.integers(0, len(GRID), 150)]
    labels = np.where((rows["age"] + 2 * rows["rate"] + 3 * rows["size"]) % 7 < 3, "yes", "no")
    return DecisionTreeClassifier(max_depth=6, random_state=seed).fit(rows, labels)


TREES = [tree(seed) for seed in range(4)]
OF_TREES = [model.predict(GRID) == "yes" for model in TREES]


@example(
    {
        "age": {"lower": 2, "upper": 5, "max_down": "20%", "direction": "any"},
        "rate": {"lower": 0.0, "upper": 4.0, "max_up": "50%", "direction": "any"},
        "size": {"max_up": 1, "direction": "any"},
    },
    {"age": 10, "rate": -1.5, "size": 1}, 0, (1, -1, 1, -3.5),
)  # fmt: skip
@given(
    told=st.fixed_dictionaries(
        {
            "age": column([-8, 0, 3], [5, 9, 16]),
            "rate": column([-6.0, 0.0], [1.5, 10.0]),
            "size": column([], [], whole=True),
        }
    ),
    person=st.fixed_dictionaries({name: st.sampled_from(VALUES[name]) for name in NAMES}),
    seed=st.integers(0, 3),
    plane=st.tuples(*[st.sampled_from([-2, -1, 1, 2])] * 3, st.sampled_from([-9.5, -3.5, 2.5, 8.5])),
)
@draws(60)
def test_answers_are_those_of_enumeration(told, person, seed, plane):
    asked = space(told)
    *weights, least = plane
    line = Affine([float(weight) for weight in weights], -least, labels=("no", "yes"), decision="nonnegative")
    on_line = (GRID * weights).sum(axis=1).to_numpy() >= least
    for model, said in ((line, on_line), (TREES[seed], OF_TREES[seed])):
        result = ceopt.explain(model, person, asked, target="yes", cost=ceopt.L1(scale="none"))
        best = cheapest(said, told, person)
        if best is None:
            assert result.status == "infeasible", (result.reason, model)
        elif best == 0.0:
            assert result.status == "already_favourable"
        else:
            assert result.status == "optimal", (result.reason, model)
            assert result[0].cost == pytest.approx(best, rel=1e-6)
            assert ceopt.verify(result, model, asked, target="yes").ok


@draws(60)
@given(
    told=st.fixed_dictionaries(
        {"age": column([0], [9]), "rate": column([0.0], [4.0]), "size": column([], [], whole=True)}
    ),
    person=st.fixed_dictionaries({name: st.sampled_from(VALUES[name]) for name in NAMES}),
)
def test_verify_takes_every_point_in_reach_and_refuses_every_other(told, person):
    asked = space(told)
    reach = reach_of(asked, asked.row(person))
    rows = GRID.iloc[:: max(len(GRID) // 150, 1)]
    model = Affine([0.0, 0.0, 0.0], 1.0, labels=("no", "yes"))
    report = ceopt.verify(rows, model, asked, target="yes", factual=person).to_frame()
    for row, valid in zip(rows.to_dict("records"), report["valid"], strict=True):
        assert valid == all(reach[name].holds(row[name]) for name in NAMES), (row, person)
        assert valid == all(is_allowed(told[name], person[name], row[name]) for name in NAMES)


LOANS = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="continuous", lower=0, max_up="20%", unit="euros"),
        ceopt.Feature("age", kind="integer", lower=18, upper=99, max_up=2, max_down=0),
        ceopt.Feature("debt", kind="continuous", lower=0, max_up="10%"),
        ceopt.Feature("size", kind="ordinal", levels=("S", "M", "L", "XL"), max_up=1, max_down=0),
    ]
)
PERSON = {"income": 30_000.0, "age": 40, "debt": 0.0, "size": "S"}


@pytest.mark.parametrize("by", ["space", "rule"])
@pytest.mark.parametrize(("value", "limits", "end"), [(0.1 * 3, {"down": 0.2}, 0.1), (0.1 + 0.7, {"up": 0.1}, 0.9)])
def test_who_stands_a_rounding_off_the_grid_goes_as_many_steps_as_from_it(by, value, limits, end):
    """0.1 * 3 is 0.30000000000000004, from where 0.1 is farther than 0.2 in its decimals, though two steps of 0.1."""
    way = 1.0 if end > value else -1.0
    model = Affine([way], 0.05 - way * end, labels=("no", "yes"))
    feature = ceopt.Feature("rate", kind="continuous", lower=0, upper=1, step=0.1)
    space, rules = ceopt.FeatureSpace([feature]), [ceopt.MaxMove(["rate"], **limits)]
    if by == "space":
        space, rules = space.update("rate", **{f"max_{side}": limit for side, limit in limits.items()}), []

    found = ceopt.explain(model, {"rate": value}, space, target="yes", constraints=rules)

    assert found.status == "optimal"
    assert found[0].values["rate"] == end


def test_one_space_serves_a_cohort():
    model = Affine([1.0, 0.0, 0.0, 0.0], -35_500.0, labels=("no", "yes"))
    people = pd.DataFrame([PERSON, PERSON | {"income": 29_000.0}, PERSON | {"income": 35_000.0}])
    first, second, third = ceopt.Recourse(model, LOANS, target="yes").fit(people).explain(people)
    assert [first.status, second.status, third.status] == ["optimal", "infeasible", "optimal"]
    assert second.conflict[0][:2] == (
        "income: max_up 20%",
        "income may rise by no more than max_up of income (20% of 29,000 = 5,800)",
    )
    assert second.conflict[0][2] == pytest.approx(700.0, abs=1e-3)
    assert "income: max_up 20%" in second.reason


def test_removed_names_the_limit_that_binds():
    result = ceopt.explain(Affine([1.0, 0, 0, 0], -35_500.0, labels=("no", "yes")), PERSON, LOANS, target="yes")
    assert result.removed == {
        "income": "stays within 0 and 36000 by max_up of income (20% of 30,000 = 6,000)",
        "age": "stays within 40 and 42 by max_down of age (0) and max_up of age (2)",
        "debt": "fixed at 0 by max_up of debt (10% of 0 = 0)",
        "size": "cannot become 'L', 'XL' by max_up of size (1 level)",
    }
    assert in_words(result).out_of_reach == (
        "income stays between 0 and 36,000 euros; income may rise by at most 20% of 30,000 euros, so by 6,000 euros",
        "age stays between 40 and 42; age may fall by at most 0; age may rise by at most 2",
        "debt stays at 0; debt may rise by at most 10% of 0, so by 0",
        "size cannot become L or XL; size may rise by at most 1 level",
    )
    assert (
        in_words(result, "de")
        .out_of_reach[0]
        .endswith("um höchstens 20 % von 30.000 euros steigen, also um 6.000 euros")
    )
    assert in_words(result, "de").out_of_reach[3].endswith("size darf um höchstens 1 Stufe steigen")


def test_a_limit_behind_a_bound_is_not_named():
    asked = LOANS.update("income", upper=33_000).update("age", max_down=50, max_up=3, direction="up")
    result = ceopt.explain(Affine([1.0, 0, 0, 0], -32_500.0, labels=("no", "yes")), PERSON, asked, target="yes")
    assert "income" not in result.removed
    assert result.removed["age"] == "stays within 40 and 43 by max_up of age (3)"


def test_a_result_keeps_them_in_json():
    result = ceopt.explain(Affine([1.0, 0, 0, 0], -35_500.0, labels=("no", "yes")), PERSON, LOANS, target="yes")
    again = ceopt.SolutionSet.from_json(result.to_json())
    assert again.removed == result.removed
    assert in_words(again, "de").out_of_reach == in_words(result, "de").out_of_reach
    assert again.space == LOANS


def test_black_boxes_diverse_answers_and_networks_keep_them():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "income": rng.integers(20, 50, 80) * 1000.0,
            "age": rng.integers(20, 60, 80),
            "debt": rng.integers(0, 9, 80) * 1.0,
        }
    ).assign(size=rng.choice(["S", "M", "L", "XL"], 80))

    def black_box(rows: pd.DataFrame) -> Any:
        return np.where(rows["income"] + 500.0 * rows["age"] > 55_000.0, "yes", "no")

    person = PERSON | {"debt": 3.0}
    found = ceopt.explain(black_box, person, LOANS, target="yes", data=people, surrogate=LocalSurrogateRecourse())
    assert found.status.has_answers
    assert ceopt.verify(found, black_box, LOANS, target="yes").ok
    line = Affine([1.0, 500.0, 0.0, 2_000.0], -55_000.0, labels=("no", "yes"))
    for diversity in ("distinct", "support"):
        many = ceopt.explain(line, person, LOANS, target="yes", n=3, diversity=diversity)
        assert len(many) > 1
        assert ceopt.verify(many, line, LOANS, target="yes").ok


# ---- what is given ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"kind": "categorical", "levels": ("a", "b"), "max_up": 1}, "Column 'x' needs no max_up, being categorical"),
        ({"kind": "binary", "levels": (0, 1), "max_down": "5%"}, "Column 'x' needs no max_down, being binary"),
        (
            {"kind": "ordinal", "levels": ("a", "b"), "max_up": "20%"},
            "a whole number of levels as max_up, being ordinal",
        ),
        ({"kind": "ordinal", "levels": ("a", "b"), "max_down": 0.5}, "a whole number of levels as max_down"),
        ({"kind": "integer", "max_up": -1}, "'x' needs max_up to be a number of at least 0, or a percentage"),
        ({"kind": "integer", "max_up": float("nan")}, "max_up to be a number of at least 0"),
        ({"kind": "integer", "max_up": "20"}, "max_up to be a number of at least 0, or a percentage such as"),
        ({"kind": "integer", "max_up": "-20%"}, "but max_up is '-20%'"),
        ({"kind": "integer", "max_up": True}, "but max_up is True"),
        ({"kind": "integer", "max_up": [1]}, "max_up to be a number"),
    ],
)
def test_what_is_refused(told, says):
    with pytest.raises(CeoptError, match="Column 'x' needs") as caught:
        ceopt.Feature("x", **told)
    assert says in str(caught.value)


def test_they_are_updated_printed_and_kept_in_json():
    plain = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous"), ceopt.Feature("age", kind="integer")])
    asked = plain.update("income", max_up=" 20.0 %", max_down=100).update("age", max_up=2)
    assert (asked["income"].max_up, asked["income"].max_down, asked["age"].max_up) == ("20%", 100.0, 2.0)
    assert ceopt.FeatureSpace.from_json(asked.to_json()) == asked
    assert asked.update("income", max_up=float("inf"), max_down=float("inf"))["income"] == plain["income"]
    assert "down 100, up 20%" in str(asked)
    assert "at most" not in str(plain)
    assert asked.to_frame()["max_up"].tolist() == ["20%", 2.0]
    older = plain.to_json().replace('"max_up": null,', "").replace('"max_down": null,', "")
    assert "max_up" not in older
    assert ceopt.FeatureSpace.from_json(older) == plain


def test_another_kind_drops_a_limit_that_counts_other_things():
    asked = ceopt.FeatureSpace([ceopt.Feature("n", kind="integer", lower=0, upper=1, max_up="20%")])
    assert asked.update("n", kind="continuous")["n"].max_up == "20%"
    assert asked.update("n", kind="binary")["n"].max_up is None
    assert asked.update("n", kind="ordinal", levels=[0, 1], max_up=1)["n"].max_up == 1.0


def test_without_a_factual_they_are_unchecked():
    report = ceopt.verify([{"income": 1.0}], Affine([1.0], 0.0, labels=("no", "yes")),
                          ceopt.FeatureSpace([LOANS["income"]]), target="yes")  # fmt: skip
    assert report.unchecked == ("income: max_up 20%",)
