"""Every keyword of explain is checked before any work starts, and what is wrong is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ceopt import L1, Apart, AtLeast, CeoptError, Linear, MaxChanges, OtherThan, Probability, solvers
from ceopt.formulations.constraints.diversity import DIVERSITIES
from ceopt.settings import Settings
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, MissingLibraryError, UnknownNameError
from ceopt.solvers.registry import SOLVERS

LABELS = ("bad", "good")


def check(space, labels=LABELS, **options):
    return Settings(**({"target": "good"} | options)).check(space, labels)


def test_defaults_pass_and_are_plain_in_the_options(space):
    options = check(space).options()

    assert options == {
        "target": "good", "n": 1, "cost": "l1", "constraints": [], "solver": "auto", "time_limit_s": 60.0,
        "relative_gap": 1e-6, "margin": None, "diversity": "distinct", "formulation": "auto", "threads": 1,
        "random_state": 0, "solver_options": {}, "why": True, "proof": True,
    }  # fmt: skip


def test_diversities_are_plain_in_the_options(space):
    words = {word: check(space, diversity=word).options()["diversity"] for word in ("pool", "support", "incumbents")}

    assert words == {word: word for word in words}
    apart = check(space, diversity=Apart(1, cost=L1(scale="std"))).options()["diversity"]
    assert apart == "Apart(1.0, cost=L1(scale='std', count='features'))"


def test_a_way_to_differ_that_was_listed_later_is_known(space, monkeypatch):
    monkeypatch.setitem(DIVERSITIES, "mine", lambda: Apart(2.0))

    assert check(space, diversity="mine").diversity == Apart(2.0)


def test_rules_and_costs_are_read(space):
    checked = check(space, constraints=MaxChanges(2, name="few"), cost=L1(scale="std"))

    assert checked.rules == (MaxChanges(2, name="few"),)
    assert checked.cost == L1(scale="std")
    assert checked.options()["constraints"] == ["few: at most 2 features may change"]
    assert checked.options()["cost"] == repr(L1(scale="std"))


@pytest.mark.parametrize(
    ("options", "kind", "match"),
    [
        ({"why": "yes"}, InvalidTypeError, "a number as why.*why is 'yes'"),
        ({"why": -1.0}, InvalidValueError, "at least 0 as why.*why is -1.0"),
        ({"why": None}, InvalidTypeError, "why is None"),
        ({"target": "excellent"}, UnknownNameError, "'excellent'.*'bad', 'good'"),
        ({"target": OtherThan("excellent")}, UnknownNameError, "excellent"),
        ({"target": {"bad", "good"}}, InvalidValueError, "some classes wanted"),
        ({"target": AtLeast(3.0)}, InvalidTypeError, "classifier"),
        ({"cost": "l3"}, UnknownNameError, "'l3'.*l0, l1"),
        ({"cost": 3}, InvalidTypeError, "cost is 3"),
        ({"cost": L1(scale={"incom": 1.0})}, UnknownNameError, "'incom'.*Did you mean 'income'"),
        ({"constraints": "MaxChanges"}, InvalidTypeError, "'MaxChanges'"),
        ({"constraints": 3}, InvalidTypeError, "constraints is 3"),
        ({"constraints": [3]}, InvalidTypeError, "one is 3"),
        ({"constraints": [Linear({"incom": 1.0}, "<=", 1.0)]}, UnknownNameError, "'incom'"),
        ({"solver": "cplex"}, UnknownNameError, "'cplex'.*auto, highs"),
        ({"time_limit_s": 0}, InvalidValueError, "time_limit_s is 0"),
        ({"time_limit_s": float("inf")}, InvalidValueError, "time_limit_s is inf"),
        ({"time_limit_s": "60"}, InvalidTypeError, "time_limit_s is '60'"),
        ({"time_limit_s": True}, InvalidTypeError, "time_limit_s is True"),
        ({"relative_gap": -1e-9}, InvalidValueError, "relative_gap"),
        ({"margin": -1.0}, InvalidValueError, "margin is -1.0"),
        ({"margin": "none"}, InvalidTypeError, "margin is 'none'"),
        ({"n": 0}, InvalidValueError, "n is 0"),
        ({"n": 1.5}, InvalidTypeError, "n is 1.5"),
        ({"threads": 0}, InvalidValueError, "threads is 0"),
        ({"random_state": -1}, InvalidValueError, "random_state is -1"),
        ({"random_state": None}, InvalidTypeError, "random_state is None"),
        ({"diversity": "cluster"}, UnknownNameError, "Did you mean 'clusters'.*pool, support, clusters, incumbents"),
        ({"diversity": 3}, InvalidTypeError, "diversity is 3.*ceopt.Apart"),
        ({"diversity": None}, InvalidTypeError, "diversity is None"),
        ({"diversity": Apart}, InvalidTypeError, "diversity is <class"),
        ({"diversity": solvers.Apart([], 1.0)}, InvalidTypeError, r"diversity is Apart\(variables.*ceopt.Apart"),
        ({"diversity": "clusters"}, InvalidValueError, "exactly one rule Hull.*there is none.*Hull\\(clusters=3"),
        ({"diversity": Apart(1.0, cost=L1(scale={"incom": 1.0}))}, UnknownNameError, "Did you mean 'income'"),
        ({"diversity": "cluster", "target": "gut"}, UnknownNameError, "diversity is 'cluster'"),
        ({"diversity": "clusters", "n": 1.5}, InvalidValueError, "exactly one rule Hull"),
        ({"formulation": "leaves"}, UnknownNameError, "'leaves'.*Did you mean 'leaf'"),
        ({"solver_options": ["a"]}, InvalidTypeError, r"\['a'\]"),
    ],
)
def test_what_is_wrong_is_named(space, options, kind, match):
    with pytest.raises(kind, match=match) as caught:
        check(space, **options)

    assert isinstance(caught.value, CeoptError)


def test_a_probability_needs_two_classes(space):
    with pytest.raises(InvalidValueError, match="it is|has 3"):
        check(space, ("a", "b", "c"), target=Probability("a", at_least=0.6))


def test_a_regressor_needs_a_range(space):
    with pytest.raises(InvalidTypeError, match="regressor"):
        check(space, None, target="good")
    assert check(space, None, target=AtLeast(3)).target.text() == "at least 3"


def test_a_solver_that_is_not_installed_is_named_with_what_to_install(space, monkeypatch):
    absent = replace(SOLVERS["highs"], library="no_such_library", distribution="no-such-library")
    monkeypatch.setitem(SOLVERS, "highs", absent)  # type: ignore[arg-type]

    with pytest.raises(MissingLibraryError, match=r"'highs'.*pip install"):
        check(space, solver="highs")


def test_a_label_of_the_wrong_type_names_the_right_one(space):
    with pytest.raises(UnknownNameError, match="It is the text '1'; did you mean 1, of type int"):
        check(space, (0, 1), target="1")
