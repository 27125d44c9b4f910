"""Whatever stands in an argument, the call answers or says in a sentence what it needs: no bare error, ever."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest

import ceopt
from ceopt import CeoptError, Feature, FeatureSpace, Recourse, explain, solvers, verify
from ceopt.formulations.predictors import Affine

DATA = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6], "b": [0, 1, 2, 3, 4, 5], "c": pd.Series(list("uvuwvu"))})
SPACE = FeatureSpace.infer(DATA[["a", "b"]])
MIXED = FeatureSpace.infer(DATA)
MODEL = Affine([1.0, 1.0], -4.5, labels=("no", "yes"))
NUMBER = Affine([1.0, 1.0], -4.5)
ROW = {"a": 1.0, "b": 0}
ODD = [
    None, True, -1, 1e308, -1e308, float("nan"), float("inf"), 10**400, "", "a", b"b", [], [1], [None], {}, {"a": 1},
    {"a": None}, {1: 2}, {"a"}, object(), pd.NA, np.array([1.0]), np.array(3), np.array([[1.0, 2.0]]), [["a"]], [pd.NA],
    np.datetime64("2020"), np.timedelta64(1, "s"), pd.Series([1, 2]), pd.DataFrame({"a": [1]}), 1 + 2j, int, ..., "\0",
    "long" * 99, {"a": [1]}, {"a": {"a": 1}}, range(3), lambda: None,
]  # fmt: skip


def ask(rule=(), cost="l1", target="yes", model=MODEL, **more):
    explain(model, ROW, SPACE, target=target, constraints=rule, cost=cost, data=DATA[["a", "b"]], **more)


def few():
    return Recourse(MODEL, SPACE, target="yes").fit(DATA[["a", "b"]])


def program():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.cost = pyo.Objective(expr=model.x)
    return model


EQUATION = ceopt.LinearEquation({"a": 1.0})
CALLS = {
    **{
        f"explain {word}": lambda o, word=word: explain(MODEL, ROW, SPACE, **{"target": "yes"} | {word: o})
        for word in (
            "target cost constraints data solver relative_gap margin diversity formulation threads random_state "
            "solver_options"
        ).split()
    },
    "explain model": lambda o: explain(o, ROW, SPACE, target="yes"),
    "explain row": lambda o: explain(MODEL, o, SPACE, target="yes"),
    "explain cell": lambda o: explain(MODEL, ROW | {"b": o}, SPACE, target="yes"),
    "explain space": lambda o: explain(MODEL, ROW, o, target="yes"),
    "explain time_limit_s": lambda o: explain(MODEL, ROW, SPACE, target="yes", time_limit_s=o),
    "Recourse.fit X": lambda o: Recourse(MODEL, SPACE, target="yes").fit(o),
    "Recourse.fit y": lambda o: Recourse(MODEL, SPACE, target="yes").fit(DATA[["a", "b"]], o),
    "Recourse.explain frame": lambda o: few().explain(o),
    "Recourse.explain resume": lambda o: few().explain(DATA[["a", "b"]].head(1), resume=o),
    "verify answers": lambda o: verify(o, MODEL, SPACE, target="yes"),
    "verify one": lambda o: verify([o], MODEL, SPACE, target="yes"),
    "verify space": lambda o: verify([ROW], MODEL, o, target="yes"),
    "verify factual": lambda o: verify([ROW], MODEL, SPACE, target="yes", factual=o),
    "verify constraints": lambda o: verify([ROW], MODEL, SPACE, target="yes", constraints=o),
    "FeatureSpace": FeatureSpace,
    "infer": FeatureSpace.infer,
    **{
        f"infer {kind}": lambda o, kind=kind: FeatureSpace.infer(DATA, **{kind: o})
        for kind in ("categorical", "ordinal", "binary", "integer", "continuous")
    },
    "infer levels": lambda o: FeatureSpace.infer(DATA, ordinal={"c": o}),
    "infer cell": lambda o: FeatureSpace.infer(pd.DataFrame({"q": pd.Series([o, o], dtype=object)})),
    **{
        f"update {name} {word}": lambda o, name=name, word=word: MIXED.update(name, **{word: o})
        for name in "ac"
        for word in "kind mutable direction lower upper step levels weight unit".split()
    },
    "update name": lambda o: MIXED.update(o, mutable=False),
    "space row": MIXED.row,
    "space frame": MIXED.frame,
    "space frame cell": lambda o: MIXED.frame([{"a": o, "b": 0, "c": 0}]),
    "space coordinates": MIXED.coordinates,
    "space from_json": FeatureSpace.from_json,
    "result from_json": ceopt.SolutionSet.from_json,
    **{
        f"Feature {kind} {word}": lambda o, kind=kind, word=word: Feature(
            "f", kind=kind, **({} if kind == "integer" else {"levels": ("u", "v")}) | {word: o}
        )
        for kind in ("integer", "ordinal")
        for word in "lower upper step levels mutable direction weight unit mad dtype categories lower_inferred".split()
    },
    "Feature name": lambda o: Feature(o, kind="integer"),
    "Feature kind": lambda o: Feature("f", kind=o),
    "Feature scale": MIXED["a"].scale,
    "Feature coordinate": lambda o: MIXED["c"].from_coordinate(MIXED["a"].from_coordinate(o)),
    "MaxChanges k": lambda o: ask(ceopt.MaxChanges(o)),
    "MaxChanges count": lambda o: ceopt.MaxChanges(1, count=o),
    "Linear coefficients": lambda o: ask(ceopt.Linear(o, "<=", 1)),
    "Linear coefficient": lambda o: ask(ceopt.Linear({"a": o}, "<=", 1)),
    "Linear sense": lambda o: ceopt.Linear({"a": 1}, o, 1),
    "Linear rhs": lambda o: ask(ceopt.Linear({"a": 1}, "<=", o)),
    "IfThen condition": lambda o: ask(ceopt.IfThen(o, ("a", "<=", 3))),
    "IfThen column": lambda o: ask(ceopt.IfThen((o, "<=", 3), ("a", "<=", 3))),
    "IfThen op": lambda o: ask(ceopt.IfThen(("a", o, 3), ("a", "<=", 3))),
    "IfThen value": lambda o: ask(ceopt.IfThen(("a", "<=", o), ("b", "in", o))),
    "AllowedValues": lambda o: ask(ceopt.AllowedValues(o)),
    "AllowedValues values": lambda o: ask(ceopt.AllowedValues({"a": o})),
    "AllowedTransitions column": lambda o: ask(ceopt.AllowedTransitions(o, {"u": ["v"]})),
    "AllowedTransitions levels": lambda o: ask(ceopt.AllowedTransitions("b", o)),
    "AllowedRows columns": lambda o: ask(ceopt.AllowedRows(o, DATA)),
    "AllowedRows frame": lambda o: ask(ceopt.AllowedRows(["a", "b"], o)),
    **{
        f"Hull {word}": lambda o, word=word: ask(ceopt.Hull(**{word: o}))
        for word in "data radius norm scale clusters enlarge penalty".split()
    },
    "Causal": lambda o: ask(ceopt.Causal(o)),
    "Causal equation": lambda o: ask(ceopt.Causal({"b": o})),
    "Causal intervention": lambda o: ceopt.Causal({"b": EQUATION}, intervention=o),
    "Causal actionable": lambda o: ceopt.Causal({"b": EQUATION}, actionable=o),
    "Causal slack": lambda o: ask(ceopt.Causal({"b": EQUATION}, slack=o)),
    "Causal.learn graph": lambda o: ceopt.Causal.learn(o, DATA),
    "Causal.learn regressor": lambda o: ceopt.Causal.learn({"b": ["a"]}, DATA, regressor=o),
    "Causal.learn space": lambda o: ceopt.Causal.learn({"b": ["a"]}, DATA, space=o),
    "LinearEquation": lambda o: ask(ceopt.Causal({"b": ceopt.LinearEquation(o)})),
    "LinearEquation coefficient": lambda o: ask(ceopt.Causal({"b": ceopt.LinearEquation({"a": o})})),
    "LinearEquation intercept": lambda o: ask(ceopt.Causal({"b": ceopt.LinearEquation({"a": 1.0}, intercept=o)})),
    "RobustValidity mean": lambda o: ask(ceopt.RobustValidity(o, np.eye(3), 0.1, 0.9)),
    "RobustValidity covariance": lambda o: ask(ceopt.RobustValidity([1.0, 1.0, 0.0], o, 0.1, 0.9)),
    "RobustValidity radius": lambda o: ceopt.RobustValidity([1.0, 1.0, 0.0], np.eye(3), o, 0.9),
    "RobustToShift delta": lambda o: ask(ceopt.RobustToShift(o)),
    "RobustToShift target": lambda o: ask(ceopt.RobustToShift(0.01, target=o)),
    "Region radius": lambda o: ask(ceopt.Region(o, scale={"a": 1.0})),
    "Region scale": lambda o: ask(ceopt.Region(0.1, scale=o)),
    "Region scale of one": lambda o: ask(ceopt.Region(0.1, scale={"a": o})),
    "Region columns": lambda o: ask(ceopt.Region(0.1, scale={"a": 1.0}, columns=o)),
    "Region norm": lambda o: ask(ceopt.Region(0.1, norm=o, scale={"a": 1.0})),
    "Region exact": lambda o: ask(ceopt.Region(0.1, scale={"a": 1.0}, exact=o)),
    "Region target": lambda o: ask(ceopt.Region(0.1, scale={"a": 1.0}, target=o)),
    "L1 scale": lambda o: ask(cost=ceopt.L1(scale=o)),
    "L1 scale of one": lambda o: ask(cost=ceopt.L1(scale={"a": o, "b": 1.0})),
    "L2 squared": lambda o: ask(cost=ceopt.L2(squared=o)),
    "Mahalanobis squared": lambda o: ceopt.Mahalanobis(squared=o),
    "Mahalanobis covariance": lambda o: ask(cost=ceopt.Mahalanobis(covariance=o)),
    "Changes count": lambda o: ceopt.Changes(count=o),
    "Percentile kind": ceopt.Percentile,
    "Percentile data": lambda o: ask(cost=ceopt.Percentile("max", data=o)),
    "OtherThan": lambda o: ask(target=ceopt.OtherThan(o)),
    "Probability label": lambda o: ask(target=ceopt.Probability(o, 0.6)),
    "Probability level": lambda o: ask(target=ceopt.Probability("yes", o)),
    "AtLeast": lambda o: ask(target=ceopt.AtLeast(o), model=NUMBER),
    "Between": lambda o: ask(target=ceopt.Between(o, 1), model=NUMBER),
    "several labels": lambda o: ask(target=[o, "yes"]),
    "Apart": ceopt.Apart,
    "Apart cost": lambda o: ask(n=2, diversity=ceopt.Apart(0.5, cost=o)),
    "solve model": solvers.solve,
    "solve solver": lambda o: solvers.solve(program(), o),
    **{
        f"solve {word}": lambda o, word=word: solvers.solve(program(), **{word: o})
        for word in "pool time_limit_s relative_gap threads random_state options".split()
    },
    "read path": solvers.read,
    "write model": lambda o: solvers.write(o, "never.lp"),
    "write path": lambda o: solvers.write(program(), o),
    "a rule's name": lambda o: [
        ceopt.MaxChanges(1, name=o), ceopt.Linear({"a": 1.0}, "<=", 1.0, name=o), ceopt.Hull(name=o),
        ceopt.IfThen(("a", "<=", 1.0), ("b", "<=", 1), name=o), ceopt.AllowedValues({"a": [1.0]}, name=o),
        ceopt.AllowedTransitions("b", {0: [1]}, name=o), ceopt.AllowedRows(["a"], DATA, name=o),
        ceopt.Causal({"b": EQUATION}, name=o), ceopt.RobustValidity([1.0], np.eye(1), 0.1, 0.9, name=o),
        ceopt.RobustToShift(0.1, name=o), ceopt.Region(0.1, name=o),
    ],
}  # fmt: skip


@pytest.mark.long(every=2)
@pytest.mark.parametrize("call", CALLS)
def test_an_odd_argument_is_answered_or_refused_in_a_sentence(call):
    said = [sentence for odd in ODD if (sentence := outcome(CALLS[call], odd))]

    assert all(sentence.rstrip().endswith((".", "?")) for sentence in said)


def outcome(call, odd):
    """Return the sentence of a refusal, or nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that overflow on their way to the sentence
        try:
            call(odd)
        except CeoptError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("rule", ["MaxChanges", "Linear"])
def test_the_name_of_a_rule_is_text(rule):
    make = {
        "MaxChanges": lambda: ceopt.MaxChanges(1, name=5),
        "Linear": lambda: ceopt.Linear({"a": 1.0}, "<=", 1, name=5),
    }
    with pytest.raises(CeoptError, match=f"{rule} needs text as name, but name is 5"):
        make[rule]()


def test_kinds_are_lists_of_names():
    with pytest.raises(
        CeoptError, match="FeatureSpace.infer needs categorical to be a list of column names, but .* is 5"
    ):
        FeatureSpace.infer(DATA, categorical=5)


def test_na_is_no_class():
    with pytest.raises(CeoptError, match="target needs a known class, but class is <NA>"):
        ask(target=pd.NA)
