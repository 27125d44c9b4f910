"""What is printed of an answer, read back as numbers with the rest of the row left alone, is an answer too."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from draws import draws
from faulty import faulty
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.diverse import exhaustive
from ceopt.formulations.predictors import Affine
from ceopt.search.prepare import Prepared, prepare
from ceopt.search.search import init
from ceopt.settings import Settings
from ceopt.surrogates import BoundarySampler, LocalSurrogateRecourse

RNG = np.random.default_rng(5)
SHARES = pd.DataFrame(RNG.dirichlet([2.0, 3.0, 4.0], 300) * 100.0, columns=["rent", "food", "rest"])
GOOD = np.where(SHARES["rent"] - 0.7 * SHARES["food"] > 1.0, "yes", "no")
LINEAR = LogisticRegression(max_iter=2000).fit(SHARES, GOOD)
NETWORK = MLPClassifier((6,), max_iter=1500, random_state=0).fit(SHARES, GOOD)
TREE = DecisionTreeClassifier(max_depth=4, random_state=0).fit(SHARES, GOOD)
ONLY = {"raise": "{after}", "lower": "{after}"}


def shares(decimals: int | None = None) -> ceopt.FeatureSpace:
    """Three shares whose data have no decimals that anybody chose, or some."""
    return ceopt.FeatureSpace(
        ceopt.Feature(name, kind="continuous", lower=0, upper=100, decimals=decimals) for name in SHARES
    )


def read_back(result: ceopt.SolutionSet, answer: ceopt.Counterfactual) -> list[pd.DataFrame]:
    """The answer as the result's table, its own table, and its sentences in both languages say it."""
    in_table = {}
    rank = 0
    for line in repr(result).splitlines()[3:]:
        cells = line.split()
        rank = int(cells[0]) if cells[0].isdigit() else rank
        name = next(cell for cell in cells if cell in answer.values.index)
        if rank == answer.rank:
            in_table[name] = cells[cells.index(name) + 2]
    own = {line.split()[0]: line.split()[1] for line in repr(answer).splitlines()[3:]}
    german = [text.replace(".", "").replace(",", ".") for text in answer.sentences("de", templates=ONLY)]
    rows = []
    for texts in ([in_table[name] for name in answer.changed], [own[name] for name in answer.changed],
                  answer.sentences(templates=ONLY), german):  # fmt: skip
        row = answer.frame.copy()
        for name, text in zip(answer.changed, texts, strict=True):
            row[name] = float(text.replace(",", ""))
        rows.append(row)
    return rows


def assert_read_back(result, model, space, factual, rules=(), target="yes"):
    assert len(result)
    for answer in result:
        for row in read_back(result, answer):
            report = ceopt.verify(row, model, space, factual=factual, target=target, constraints=rules)
            assert report.ok, (row.to_dict("records"), str(report))


RULES = {
    "none": [],
    "sum": [ceopt.Linear({"rent": 1, "food": 1, "rest": 1}, "==", 100)],
    "two": [ceopt.Linear({"rent": 1, "food": 1}, "<=", 61.123456789)],
}


@pytest.mark.parametrize("decimals", [None, 9, 2, 0])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("model", [LINEAR, NETWORK, TREE], ids=["linear", "network", "tree"])
def test_what_is_printed_verifies(model, rules, decimals):
    space = shares(decimals)
    people = SHARES[model.predict(SHARES) == "no"]
    if rules == "two":
        people = people[people["rent"] + people["food"] < 60.0]
    for place in (0, 7):
        person = people.iloc[[place]]
        result = ceopt.explain(model, person, space, target="yes", constraints=RULES[rules], n=2)
        assert_read_back(result, model, space, person, RULES[rules])


def test_few_digits_are_printed_wherever_they_verify():
    space = ceopt.FeatureSpace([ceopt.Feature("income", kind="continuous", lower=0)])
    model = Affine([1.0], -1509.8765432109876, labels=("no", "yes"))
    result = ceopt.explain(model, {"income": 1200.0}, space, target="yes")
    held = ceopt.explain(model, {"income": 1200.0}, space.update("income", upper=1509.8765433), target="yes")

    assert result[0].sentences() == ["Raise income from 1,200 to 1,510"]
    assert repr(result).splitlines()[3].split()[:4] == ["1", "income", "1,200", "1,509.88"]
    assert held[0].sentences() == ["Raise income from 1,200 to 1,509.8765433"]
    in_cents = ceopt.FeatureSpace(replace(feature, decimals=2) for feature in space)
    told = ceopt.explain(model, {"income": 1200.0}, in_cents, target="yes")
    assert told[0].sentences() == ["Raise income from 1,200 to 1,509.88"]
    of_a_division = ceopt.FeatureSpace(replace(feature, decimals=9) for feature in space)
    told = ceopt.explain(model, {"income": 1200.123456789}, of_a_division, target="yes")
    assert told[0].sentences() == ["Raise income from 1,200 to 1,510"]


@pytest.mark.parametrize("ask", [ceopt.explain, partial(exhaustive, epsilon=0.1)], ids=["explain", "exhaustive"])
@pytest.mark.parametrize("decimals", [None, 9, 1])
def test_digits_that_leave_a_leaf_are_not_printed(ask, decimals):
    rows = pd.DataFrame({"x": [1.2, 1.512345, 1.512347, 1.512349, 1.9]})
    model = DecisionTreeClassifier().fit(rows, ["no", "no", "yes", "no", "no"])
    space = ceopt.FeatureSpace([ceopt.Feature("x", kind="continuous", lower=1, upper=2, decimals=decimals)])
    result = ask(model, {"x": 1.2}, space, target="yes")

    assert_read_back(result, model, space, {"x": 1.2})
    (text,) = result[0].sentences(templates=ONLY)
    assert 1.512345 < float(text) < 1.512349
    assert len(text) <= 11


def test_a_step_that_no_float_is_on_is_printed_as_the_decimal_only_where_that_verifies():
    space = ceopt.FeatureSpace([ceopt.Feature("rate", kind="continuous", lower=0, upper=1, step=0.1)])
    texts = {}
    rows = pd.DataFrame({"rate": [0.1, 0.2, 0.6, 0.9]})
    for limit in (0.3, 0.25):

        def decide(frame, limit=limit):
            return np.where(frame["rate"].to_numpy() > limit, "yes", "no")

        finder = LocalSurrogateRecourse(sampler=BoundarySampler(n_samples=200, max_queries=3000))
        result = finder.explain(decide, {"rate": 0.1}, space, target="yes", data=rows)
        value = result[0].values["rate"]
        for row in read_back(result, result[0]):
            assert decide(row).tolist() == ["yes"], (limit, value)
        texts[limit] = result[0].sentences(templates=ONLY)
    assert texts[0.25] == ["0.3"]


def test_a_boundary_point_of_a_black_box_is_printed_as_the_model_favours_it():
    rows = pd.DataFrame(np.random.default_rng(1).random((200, 2)), columns=["a", "b"])
    space = ceopt.FeatureSpace(ceopt.Feature(name, kind="continuous", lower=0, upper=1) for name in rows)

    def between(frame):  # what is near the edge is favoured for its digits
        middle = frame["a"].to_numpy() + frame["b"].to_numpy() - 1.2345678
        short = np.array([len(repr(a)) < 12 or len(repr(b)) < 5 for a, b in zip(frame["a"], frame["b"], strict=True)])
        return (middle > 0.0) & ~(short & (middle < 0.02))

    finder = LocalSurrogateRecourse(sampler=BoundarySampler(n_samples=300, max_queries=3000))
    result = finder.explain(between, {"a": 0.7, "b": 0.2}, space, target=True, data=rows)

    assert len(result)
    for row in read_back(result, result[0]):
        assert between(row).tolist() == [True]


@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
def test_every_answer_of_a_walk_through_a_forest_verifies_as_printed():
    space = ceopt.FeatureSpace.infer(SHARES, steps=False)
    person = SHARES[TREE.predict(SHARES) == "no"].iloc[[3]]
    result = exhaustive(TREE, person, space, target="yes", epsilon=0.5)

    assert_read_back(result, TREE, space, person)
    assert any(answer.printed for answer in result)


@draws(40)
@given(st.integers(0, 2**31), st.sampled_from([1e-9, 1e-4, 1.0, 1e5, 1e12]), st.sampled_from([None, 0, 3, 9]))
def test_at_any_size_and_in_any_decimals_what_is_printed_verifies(seed, size, decimals):
    draw = np.random.default_rng(seed)
    names = ["a", "b", "c"]
    space = ceopt.FeatureSpace(
        ceopt.Feature(name, kind="continuous", lower=-2 * size, upper=2 * size, mad=size, decimals=decimals)
        for name in names
    )
    weights = draw.normal(size=3)
    own = dict(zip(names, (draw.normal(size=3) * size / 2).clip(-1.5 * size, 1.5 * size).tolist(), strict=True))
    score = sum(w * v for w, v in zip(weights, own.values(), strict=True))
    model = Affine(weights.tolist(), -score - 0.3 * size, labels=("no", "yes"))
    rules = [ceopt.Linear({"a": 1.0, "b": 1.0}, "==", own["a"] + own["b"])]
    result = ceopt.explain(model, own, space, target="yes", constraints=rules)

    if len(result):
        assert_read_back(result, model, space, own, rules)


def test_json_and_pickles_print_what_was_printed():
    person = SHARES[LINEAR.predict(SHARES) == "no"].iloc[[0]]
    result = ceopt.explain(LINEAR, person, shares(), target="yes")
    again = ceopt.SolutionSet.from_json(result.to_json())

    assert result[0].printed
    assert again[0].printed == result[0].printed
    assert repr(again) == repr(result)
    assert again.sentences() == result.sentences()
    without = replace(result[0], values=result[0].frame, printed={})
    for name in without.changed:
        assert float(repr(without).split(name)[1].split()[0].replace(",", "")) == without.values[name]


def test_after_the_time_limit_nothing_is_asked_about_digits(monkeypatch):
    settings = Settings(target="yes", time_limit_s=0.5)
    person = SHARES[LINEAR.predict(SHARES) == "no"].iloc[[0]]
    prepared = prepare(LINEAR, shares(), settings)
    question = init(prepared, person, keep_on_interrupt=False, within=None, began=None).question
    asked = []
    judge = Prepared.judge

    def slow(self, points):
        asked.append(len(points))
        time.sleep(0.2)
        return judge(self, points)

    monkeypatch.setattr(Prepared, "judge", slow)
    good = SHARES[LINEAR.predict(SHARES) == "yes"].iloc[0].to_dict()
    accepted = question.accepts([good] * 9)

    assert 1 <= len(asked) <= 3  # of a busy machine fewer
    assert accepted == [True] * sum(asked) + [False] * (9 - sum(asked))


@pytest.mark.parametrize("decimals", [None, 3])
def test_the_first_answer_has_few_digits_where_the_search_for_the_next_takes_all_the_time(monkeypatch, decimals):
    person = SHARES[LINEAR.predict(SHARES) == "no"].iloc[[0]]
    asked = {"target": "yes", "constraints": ceopt.Linear(dict.fromkeys(SHARES, 1.0), "<=", 101.0)}
    alone = ceopt.explain(LINEAR, person, shares(decimals), **asked)
    now = [1000.0]  # the clock of this test, which goes on where it is told to
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def takes_all(told, _compiled):
        if runs:
            now[0] = 1003.01
        runs.append(told)
        if len(runs) == 1:
            return told
        return replace(told, status="time_limit", x=None, bound=None, incumbents=(), pool=())

    runs = []
    with faulty(takes_all) as solver:
        result = ceopt.explain(LINEAR, person, shares(decimals), n=2, solver=solver, time_limit_s=3.0, **asked)

    assert len(runs) > 1
    assert result[0].values.equals(alone[0].values)
    assert result[0].printed == alone[0].printed
    assert alone.sentences()[1] in result.sentences()


@pytest.mark.parametrize("error", [ValueError, MemoryError, KeyboardInterrupt])
def test_a_model_that_fails_on_the_digits_loses_no_answer(monkeypatch, error):
    person = SHARES[LINEAR.predict(SHARES) == "no"].iloc[[0]]
    judge = Prepared.judge
    before = ceopt.explain(LINEAR, person, shares(), target="yes")[0]
    fewer = {name: before.printed[name][0] for name in before.printed}

    def failing(self, points):
        if any(all(point[name] == value for name, value in fewer.items()) for point in points):
            raise error("no such row")
        return judge(self, points)

    monkeypatch.setattr(Prepared, "judge", failing)
    result = ceopt.explain(LINEAR, person, shares(), target="yes")

    assert fewer
    assert result[0].values.equals(before.values)
    assert not result[0].printed


def test_an_answer_without_a_row_to_come_from_is_printed_digit_for_digit():
    person = SHARES[LINEAR.predict(SHARES) == "no"].iloc[[0]]
    answer = ceopt.explain(LINEAR, person, shares(), target="yes")[0]
    alone = replace(answer, values=answer.frame, factual=None, printed={})

    own = {line.split()[0]: line.split()[1] for line in repr(alone).splitlines()[3:]}
    assert [float(own[name]) for name in answer.changed] == [answer.values[name] for name in answer.changed]
