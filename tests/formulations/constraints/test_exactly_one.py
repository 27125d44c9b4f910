"""ExactlyOne: a move between two columns is one change, in the program, in plain numbers, and by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from rowtext import rows
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import L0, L1, L2, Changes, ExactlyOne, Feature, FeatureSpace, IfThen, Linf, MaxChanges, Percentile
from ceopt.formulations import Columns, Factual, embed, impose, l1
from ceopt.formulations.predictors import Affine
from ceopt.solvers import Status, solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

NAMES = ("red", "blue", "green")
KINDS = {
    "bool": [Feature(name, kind="binary", levels=(False, True), weight=(1.0, 1.5)) for name in NAMES],
    "int": [Feature(name, kind="integer", lower=0, upper=1, mad=0.5, weight=(1.0, 1.5)) for name in NAMES],
    "float": [Feature(name, kind="continuous", lower=0.0, upper=1.0, step=1.0, mad=0.5) for name in NAMES],
}
INCOME = Feature("income", kind="integer", lower=0, upper=4, mad=2.0)
MODEL = Affine([0.9, 2.1, 3.2, 1.0], -4.0, labels=("no", "yes"))


def space_of(kind):
    return FeatureSpace([*KINDS[kind], INCOME])


def frames(space):
    """Every row of the lattice."""
    for values in itertools.product((0, 1), (0, 1), (0, 1), range(5)):
        yield dict(zip((*NAMES, "income"), values, strict=True))


def expected(space, row, cost, *, k=None):
    """Return the least cost over the lattice: the column that is the only 1 today moves for nothing."""
    today = [name for name in NAMES if row[name]]
    free = today[0] if len(today) == 1 else None
    best = None
    for point in frames(space):
        if sum(point[name] for name in NAMES) != 1 or MODEL.score(np.array([list(point.values())], float))[0] <= 0:
            continue
        moves = {name: float(point[name] - row[name]) for name in point if name != free}
        if k is not None and sum(move != 0.0 for move in moves.values()) > k:
            continue
        value = cost(space, moves)
        best = value if best is None else min(best, value)
    return best


def priced(space, moves, *, scaled=True):
    for name, move in moves.items():
        down, up = space[name].weights
        yield (up if move > 0 else down) * abs(move) / (space[name].scale("mad") if scaled else 1.0)


COSTS = {
    "l0": (
        L0(),
        lambda space, moves: sum(p for p in priced(space, {n: np.sign(m) for n, m in moves.items()}, scaled=False)),
    ),
    "changes": (Changes(), lambda _, moves: float(sum(move != 0 for move in moves.values()))),
    "l1": (L1(), lambda space, moves: sum(priced(space, moves))),
    "l2": (L2(), lambda space, moves: sum(p * p for p in priced(space, moves)) ** 0.5),
    "linf": (Linf(), lambda space, moves: max(priced(space, moves))),
    "sum": (
        L1() + 0.1 * Changes(),
        lambda space, moves: sum(priced(space, moves)) + 0.1 * sum(map(bool, moves.values())),
    ),
}
ROWS = {
    "red": {"red": 1, "blue": 0, "green": 0, "income": 1},
    "none": {"red": 0, "blue": 0, "green": 0, "income": 0},
    "two": {"red": 1, "blue": 1, "green": 0, "income": 0},
}


@pytest.mark.long(every=7)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
def test_the_optimum_is_that_of_enumeration(kind, row, cost):
    space = space_of(kind)
    asked, by_hand = COSTS[cost]
    for k in (None, 1, 2):
        rules = [ExactlyOne(NAMES), *([] if k is None else [MaxChanges(k)])]
        best = expected(space, ROWS[row], by_hand, k=k)
        for order in (rules, rules[::-1]):
            result = ceopt.explain(MODEL, ROWS[row], space, target="yes", cost=asked, constraints=order)
            if best is None:
                assert result.status == "infeasible"
                continue
            assert result.status == "optimal", (result.status, result.reason)
            assert result[0].cost == pytest.approx(best, rel=1e-6)
            assert sum(map(bool, result[0].values[list(NAMES)])) == 1
            assert result[0].verified
            frame = result.to_frame()
            assert ceopt.verify(frame, MODEL, space, target="yes", factual=ROWS[row], constraints=order).ok
            if k is not None:  # and one change fewer is one too few
                fewer = [MaxChanges(k - 1) if isinstance(rule, MaxChanges) else rule for rule in order]
                kept = ceopt.verify(frame, MODEL, space, target="yes", factual=ROWS[row], constraints=fewer).ok
                exists = expected(space, ROWS[row], by_hand, k=k - 1)
                assert kept == (exists is not None and exists <= best + 1e-9)


def test_without_the_rule_a_move_between_two_is_two_changes():
    space = space_of("bool")
    swap = space.frame([space.row({"red": 0, "blue": 0, "green": 1, "income": 1})])
    asked = {"target": "yes", "factual": ROWS["red"]}
    assert not ceopt.verify(swap, MODEL, space, constraints=[MaxChanges(1)], **asked).ok
    assert ceopt.verify(swap, MODEL, space, constraints=[MaxChanges(1), ExactlyOne(NAMES)], **asked).ok
    assert ceopt.verify(swap, MODEL, space, constraints=[MaxChanges(1, together=[NAMES])], **asked).ok


@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
def test_answers_over_dummies_have_one_colour():
    """What pd.get_dummies makes: trees and a linear model left 10 of 12 people with two colours or none."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"colour": rng.choice(["red", "blue", "green", "white"], 300), "age": rng.integers(18, 70, 300)}
    )
    y = ((people["colour"].isin(["green", "white"])) & (people["age"] > 30)).astype(int)
    for dtype in (bool, int):
        X = pd.get_dummies(people, columns=["colour"], dtype=dtype)
        columns = [name for name in X.columns if name.startswith("colour_")]
        space = FeatureSpace.infer(X)
        for model in (LogisticRegression(max_iter=1000), DecisionTreeClassifier(max_depth=4, random_state=0)):
            model.fit(X, y)
            refused = X[model.predict(X) == 0].head(6)
            found = (
                ceopt.Recourse(model, space, target=1, n=2, constraints=[ExactlyOne(columns)]).fit(X).explain(refused)
            )
            answers = [answer for result in found for answer in result]
            assert len(answers) >= 6
            assert all(sum(map(int, answer.values[columns])) == 1 for answer in answers)


def test_the_rows_of_numbers_are_those_of_the_docstring():
    space = space_of("int")
    m = pyo.ConcreteModel()
    m.x = Factual(space, ROWS["red"])
    m.colour = impose(ExactlyOne(["red", "blue"]), m.x)
    assert rows(m.colour) == [
        "+1 cut[blue,'0'] +1 cut[red,'0'] = 1",
    ]


def test_a_block_of_ones_own_counts_a_swap_once():
    space = space_of("bool")
    m = pyo.ConcreteModel()
    m.x = Factual(space, ROWS["red"])
    m.colour = impose(ExactlyOne(NAMES), m.x)
    m.swap = pyo.Constraint(expr=m.x.is_level["green", True] == 1)
    m.least = pyo.Objective(expr=l1(m.x) + 100.0 * m.x.n_changed)
    assert solve(m).objective == pytest.approx(1.5 + 100.0)
    # The same rule once more changes nothing; one that would make counts of before wrong is refused.
    impose(ExactlyOne(NAMES), m.x)
    m.y = Factual(space, ROWS["red"])
    m.few = impose(MaxChanges(1), m.y)
    with pytest.raises(InvalidTypeError, match="ExactlyOne needs to be imposed before changes are counted"):
        impose(ExactlyOne(NAMES), m.y)


def test_it_holds_on_the_callers_own_binaries():
    space = space_of("bool")
    m = pyo.ConcreteModel()
    m.on = pyo.Var(NAMES, domain=pyo.Binary)
    m.income = pyo.Var(bounds=(0, 4), domain=pyo.Integers)
    m.row = Columns(space, {**{name: m.on[name] for name in NAMES}, "income": m.income})
    m.colour = impose(ExactlyOne(NAMES), m.row)
    m.score = embed(MODEL, m.row)
    m.most = pyo.Objective(expr=sum(m.on[name] for name in NAMES) + 0.1 * m.income, sense=pyo.maximize)
    result = solve(m)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(1.4)


@pytest.mark.parametrize("kind", ["two", "none"])
def test_who_has_none_or_several_today_is_counted_move_by_move(kind):
    space = space_of("bool")
    home = space.row(ROWS[kind])
    rule = ExactlyOne(NAMES)
    assert rule.violation(space, None, home) == 1.0
    assert rule.given_up(home) == ()
    green = space.row({"red": 0, "blue": 0, "green": 1, "income": 0})
    many = MaxChanges(0, together=[NAMES]).violation(space, home, green)
    assert many == {"two": 3.0, "none": 1.0}[kind]


def test_percentiles_and_conflicts_know_it_too():
    space = space_of("int")
    data = pd.DataFrame(list(frames(space)))
    result = ceopt.explain(
        MODEL, ROWS["red"], space, target="yes", data=data, cost=Percentile("total_log"),
        constraints=[ExactlyOne(NAMES), MaxChanges(1)],
    )  # fmt: skip
    assert result.status == "optimal"
    assert result[0].gap == pytest.approx(0.0, abs=1e-9)
    poor = dict(ROWS["red"], income=0)
    none = ceopt.explain(MODEL, poor, space, target="yes", constraints=[
        MaxChanges(1, name="few"), ExactlyOne(NAMES, name="colour"), IfThen(("income", "<=", 4), ("income", "<=", 0)),
    ])  # fmt: skip
    assert none.status == "infeasible"
    names = [name for name, _, _ in none.conflict]
    assert "colour" in names


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ([], InvalidValueError, "columns, each once"),
        (["red", "red"], InvalidValueError, "each once"),
        ("red", InvalidTypeError, "a list of values for columns"),
        ([1], InvalidTypeError, "names of columns, but one is 1"),
        (["red", "grren"], UnknownNameError, "'grren'. Did you mean 'green'"),
        (["red", "job"], InvalidTypeError, "columns of 0 and 1, but column 'job' is categorical"),
    ],
)
def test_what_makes_no_sense_is_refused(columns, error, match):
    space = FeatureSpace([*KINDS["bool"], Feature("job", kind="categorical", levels=("cook", "vet"))])
    with pytest.raises(error, match=match):
        ExactlyOne(columns).check(space)


YEARS = Feature("age", kind="integer", lower=18, upper=79, lower_inferred=True, upper_inferred=True)
HALF = Feature("half", kind="continuous", lower=0.0)
BELOW = Feature("below", kind="integer", lower=-1, upper=1)


@pytest.mark.parametrize(("feature", "span"), [(YEARS, "18 to 79"), (HALF, "0 to inf"), (BELOW, "-1 to 1")])
def test_a_column_that_can_be_more_than_0_and_1_is_refused_by_name(feature, span):
    space = FeatureSpace([*KINDS["int"], feature])
    rule = ExactlyOne(["red", feature.name])
    row = {"red": 1, "blue": 0, "green": 0, feature.name: 30 if feature is YEARS else 0}
    says = rf"ExactlyOne needs columns of 0 and 1, but column '{feature.name}' goes from {span}\."
    with pytest.raises(InvalidValueError, match=says):
        ceopt.explain(MODEL, row, space, target="yes", constraints=[rule])
    with pytest.raises(InvalidValueError, match=says):
        ceopt.Recourse(MODEL, space, target="yes", constraints=[rule]).fit(pd.DataFrame([row]))
    m = pyo.ConcreteModel()
    m.x = Factual(space, row)
    with pytest.raises(InvalidValueError, match=says):
        impose(rule, m.x)


def test_a_causal_model_and_it_do_not_charge_for_one_column():
    causal = ceopt.Causal({"blue": ceopt.LinearEquation({"income": 1.0})}, intervention="soft")
    with pytest.raises(InvalidTypeError, match="'blue' has an equation, and is one of several"):
        ceopt.explain(MODEL, ROWS["red"], space_of("bool"), target="yes", constraints=[causal, ExactlyOne(NAMES)])


@pytest.mark.filterwarnings("ignore::ceopt.RuleWarning")
@pytest.mark.parametrize("name", ["values", "display", "clone", "_data", "model", "keys", "name", "a.b", "x y"])
def test_a_rule_may_bear_any_name(name):
    """Pyomo keeps some names of a block for itself: its bare ValueError ended the call."""
    space = space_of("bool")
    rules = [
        ExactlyOne(NAMES, name=name),
        ceopt.Linear({"income": 1}, "<=", 3, name=f"{name}_"),
        IfThen(("red", "==", True), ("income", "<=", 2), name="_decl"),
    ]
    result = ceopt.explain(MODEL, ROWS["red"], space, target="yes", constraints=rules)
    assert result.status == "optimal"
    assert set(result.rules) == {name, f"{name}_", "_decl"}
    assert result[0].cost == pytest.approx(expected(space, ROWS["red"], COSTS["l1"][1]))
    broken = ceopt.verify(
        {"red": 1, "blue": 1, "green": 0, "income": 4}, MODEL, space, target="yes", factual=ROWS["red"],
        constraints=rules,
    )  # fmt: skip
    assert f"{name}: " in str(broken)
    none = [*rules, ceopt.Linear({"income": 1}, ">=", 9, name="component")]
    result = ceopt.explain(MODEL, ROWS["red"], space, target="yes", constraints=none)
    assert [entry[0] for entry in result.conflict] == ["component"]
