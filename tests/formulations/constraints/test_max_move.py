"""MaxMove: rows, refusals, decimals, columns without bounds, conflicts and words."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import MaxMove
from ceopt.cli.inputs import read_rules
from ceopt.formulations import Factual, impose
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import CeoptError
from ceopt.words import in_words

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="continuous", lower=0, upper=90_000, unit="euros"),
        ceopt.Feature("age", kind="integer", lower=18, upper=99),
        ceopt.Feature("size", kind="ordinal", levels=("S", "M", "L", "XL")),
        ceopt.Feature("owner", kind="binary", levels=(False, True)),
    ]
)
PERSON = {"income": 30_000.0, "age": 40, "size": "S", "owner": False}
WANTS_INCOME = Affine([1.0, 0.0, 0.0, 0.0], -37_000.0, labels=("no", "yes"))


@pytest.mark.filterwarnings("ignore::ceopt.RuleWarning")
def test_the_rows_are_one_a_column_and_side():
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, PERSON)
    m.rule = impose(MaxMove(["income", "age", "size"], up=2, down=0), m.x)
    assert {index: str(row.expr) for index, row in m.rule.within.items()} == {
        ("income", "down"): "x.cut[income,'30000']  ==  1.0",
        ("income", "up"): "1.0 - x.cut[income,'30002']  ==  1.0",
        ("age", "down"): "x.cut[age,'39']  ==  1.0",
        ("age", "up"): "1.0 - x.cut[age,'42']  ==  1.0",
        ("size", "up"): "1.0 - x.at_least[size,XL]  ==  1.0",
    }


@pytest.mark.parametrize(
    ("columns", "limits", "says"),
    [
        ("incme", {"up": 1}, "but column is 'incme'. Did you mean 'income'?"),
        ("owner", {"up": 1}, "MaxMove of column 'owner' needs no up, being binary"),
        ("size", {"down": "20%"}, "MaxMove of column 'size' needs a whole number of levels as down, being ordinal"),
        ("size", {"up": 1.5}, "a whole number of levels as up"),
        ("income", {}, "MaxMove needs up, down, or both"),
        ("income", {"up": float("inf")}, "MaxMove needs up, down, or both"),
        ("income", {"up": -1}, "up to be a number of at least 0, or a percentage such as"),
        ("income", {"up": "a lot"}, "but up is 'a lot'"),
        ("income", {"up": 1, "further": -1}, "further"),
        ([], {"up": 1}, "MaxMove needs columns, each once"),
        (["income", "income"], {"up": 1}, "MaxMove needs columns, each once"),
        (3, {"up": 1}, "MaxMove needs the names of columns"),
    ],
)
def test_what_is_refused(columns, limits, says):
    with pytest.raises(CeoptError) as caught:
        ceopt.explain(WANTS_INCOME, PERSON, SPACE, target="yes", constraints=MaxMove(columns, **limits))
    assert says in str(caught.value)


@pytest.mark.parametrize(("own", "most"), [(100.0, 129.0), (0.1, 0.129), (0.0, 0.0), (33.3, 42.957)])
def test_a_share_is_counted_in_decimals(own, most):
    asked = ceopt.FeatureSpace([ceopt.Feature("x", kind="continuous", lower=0, upper=1e6)])
    rule = MaxMove("x", up="29%")
    at_end = Affine([1.0], -most, labels=("no", "yes"), decision="nonnegative")
    result = ceopt.explain(at_end, {"x": own}, asked, target="yes", constraints=rule)
    if own:
        assert result[0].values["x"] == most
        assert ceopt.verify(result, at_end, asked, target="yes", constraints=rule).ok
    beyond = Affine([1.0], -most - 1e-4, labels=("no", "yes"), decision="nonnegative")
    assert ceopt.explain(beyond, {"x": own}, asked, target="yes", constraints=rule).status == "infeasible"
    report = ceopt.verify([{"x": most + 1e-4}], beyond, asked, target="yes", factual={"x": own}, constraints=rule)
    assert report.to_frame()["broken"][0] == ("MaxMove_1: x may rise by at most 29% of today's value",)


@pytest.mark.parametrize("limits", [{"up": 5}, {"down": 5}, {"up": "20%", "down": "20%"}])
@pytest.mark.parametrize("bounds", [{}, {"lower": 0}, {"upper": 80}])
@pytest.mark.parametrize("step", [None, 1])
def test_columns_without_bounds(limits, bounds, step):
    """A limit stands for the bound that is not there, under a line and a tree, which cut such columns otherwise."""
    asked = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", step=step, **bounds) for name in ("a", "b")])
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 80, (200, 2)) * 1.0, columns=["a", "b"])
    labels = np.where(rows["a"] + rows["b"] > 70, "yes", "no")
    rises = Affine([1.0, 1.0], -70.5, labels=("no", "yes"))
    falls = Affine([-1.0, 1.0], 5.5, labels=("no", "yes"))
    rule = MaxMove("a", **limits)
    for model in (rises, falls, DecisionTreeClassifier(max_depth=6, random_state=0).fit(rows, labels)):
        result = ceopt.explain(model, {"a": 30.0, "b": 20.0}, asked, target="yes", constraints=rule)
        assert result.status in {"optimal", "already_favourable"}, result.reason
        assert ceopt.verify(result, model, asked, target="yes", constraints=rule).ok is not False


def test_a_conflict_names_it_and_how_much_further_would_do():
    rule = MaxMove("income", up="20%", name="a fifth")
    result = ceopt.explain(WANTS_INCOME, PERSON, SPACE, target="yes", constraints=rule, why=True)
    assert result.status == "infeasible"
    ((name, sentence, width),) = result.conflict
    assert (name, sentence) == ("a fifth", "income may rise by at most 20% of today's value")
    assert width == pytest.approx(1000.0, abs=0.1)
    wider = rule.widened(width + 0.1)
    assert wider.sentence() == f"income may rise by at most 20% of today's value, and {wider.further:g} more"
    assert ceopt.explain(WANTS_INCOME, PERSON, SPACE, target="yes", constraints=wider).status == "optimal"


def test_it_is_said_in_two_languages():
    rules = [
        MaxMove(["income", "age"], up="20%", down=0),
        MaxMove("size", up=1),
        MaxMove("size", up=2, down=3),
        MaxMove("income", down=500, further=10),
    ]
    model = Affine([1.0, 0.0, 0.0, 0.0], -33_000.0, labels=("no", "yes"))
    result = ceopt.explain(model, PERSON, SPACE, target="yes", constraints=rules)
    first, *others = in_words(result).rules
    assert first.split("; ") == [
        "income may rise by at most 20% of what it is today",
        "income may fall by at most 0 euros",
        "age may rise by at most 20% of what it is today",
        "age may fall by at most 0",
    ]
    assert tuple(others) == (
        "size may rise by at most 1 level",
        "size may rise by at most 2 levels; size may fall by at most 3 levels",
        "income may fall by at most 500 euros, and 10 more",
    )
    assert in_words(result, "de").rules[1:] == (
        "size darf um höchstens 1 Stufe steigen",
        "size darf um höchstens 2 Stufen steigen; size darf um höchstens 3 Stufen fallen",
        "income darf um höchstens 500 euros fallen, und um 10 mehr",
    )
    again = ceopt.SolutionSet.from_json(result.to_json())
    assert in_words(again, "de").rules == in_words(result, "de").rules


def test_it_is_read_from_a_file(tmp_path):
    path = tmp_path / "rules.json"
    listed = [{"rule": "MaxMove", "columns": "income", "up": "20%"}, {"rule": "MaxMove", "columns": ["age"], "down": 0}]
    path.write_text(json.dumps(listed), encoding="utf-8")
    assert read_rules(path, SPACE) == (MaxMove("income", up="20%"), MaxMove(["age"], down=0))


@pytest.mark.parametrize(
    ("of_space", "of_rule", "status"),
    [("30%", "40%", "optimal"), ("30%", "20%", "infeasible"), ("20%", "40%", "infeasible")],
)
def test_of_the_rule_and_the_space_the_tighter_holds(of_space, of_rule, status):
    asked = SPACE.update("income", max_up=of_space)
    result = ceopt.explain(WANTS_INCOME, PERSON, asked, target="yes", constraints=MaxMove("income", up=of_rule))
    assert result.status == status


def test_points_are_put_back_to_the_limit_on_the_steps():
    asked = ceopt.FeatureSpace([ceopt.Feature("a", kind="integer", step=5), ceopt.Feature("b", kind="continuous")])
    rule = MaxMove(["a", "b"], up="20%", down=0)
    points = np.array([[100.0, 100.0], [20.0, 35.9], [44.0, 36.0]])
    mended = rule.mended(asked, {"a": 33.0, "b": 30.0}, points)
    assert mended.tolist() == [[38.0, 36.0], [33.0, 35.9], [38.0, 36.0]]
