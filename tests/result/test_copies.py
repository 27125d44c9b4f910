"""Writing into what a result hands out changes no result."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle

import pandas as pd
import pytest

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.search import search
from ceopt.settings import CheckedSettings

SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in ("a", "b")])
MODEL = Affine([1.0, 1.0], -5.5, labels=("no", "yes"))
RULE = ceopt.Causal({"b": ceopt.LinearEquation({"a": 1.0})}, intervention="soft")


@pytest.fixture
def row():
    return pd.DataFrame({"a": [1], "b": [1]})


@pytest.fixture
def result(row):
    return ceopt.explain(MODEL, row, SPACE, target="yes", constraints=[RULE])


def contents(result):
    return result.to_json()


def test_series_and_frames_of_an_answer_are_copies(result):
    before, answer = contents(result), result[0]
    values, held, actions = answer.values, answer.frame, answer.actions
    values["a"] = actions["a"] = 999
    held.loc[0, "b"] = 999
    frame, changes = result.to_frame(), result.changes()
    frame.iloc[0, 0] = changes.iloc[0, 0] = 999

    assert contents(result) == before
    assert answer.values["a"] != 999
    assert ceopt.verify(result, MODEL, SPACE, target="yes", constraints=[RULE]).ok


@pytest.mark.parametrize("name", ["timings", "versions", "options", "relaxed", "removed"])
def test_mappings_are_copies(result, name):
    before = contents(result)
    getattr(result, name)["more"] = 999
    getattr(result, name).clear()

    assert contents(result) == before


def test_the_row_that_was_asked_about_is_a_copy_on_both_sides(row, result):
    before = contents(result)
    factual = result.factual
    factual.iloc[0, 0] = 999
    row.iloc[0, 0] = 999

    assert contents(result) == before


def test_so_are_a_cohorts_rows(row):
    cohort = ceopt.Recourse(MODEL, SPACE, target="yes").fit(row).explain(row)
    queries = cohort.queries
    queries.iloc[0, 0] = 999
    cohort.options["n"] = 999
    row.iloc[0, 0] = 999

    assert cohort.queries.iloc[0, 0] == 1
    assert cohort.options["n"] == 1
    assert cohort[0].factual.iloc[0, 0] == 1


def test_results_are_still_frozen_replaced_copied_and_pickled(result):
    answer = result[0]
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), dataclasses.replace(result)):
        assert contents(again) == contents(result)
    assert dataclasses.replace(answer, rank=7).rank == 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.values = None
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.timings = {}


WORDS = ("target", "removed", "rules")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda held: pickle.loads(pickle.dumps(held))])
def test_words_that_nobody_has_read_are_the_same_in_every_copy(copied, row):
    space = SPACE.fix("b")
    rules = [ceopt.MaxChanges(1)]
    unread = ceopt.explain(MODEL, row, space, target="yes", constraints=rules)
    read = ceopt.explain(MODEL, row, space, target="yes", constraints=rules)
    expected = {name: getattr(read, name) for name in WORDS}

    again = copied(unread)
    assert {name: getattr(again, name) for name in WORDS} == expected
    assert expected == {
        "target": "yes", "removed": {"b": "fixed at 1"}, "rules": {"MaxChanges_1": "at most 1 feature may change"},
    }  # fmt: skip


def test_words_are_made_when_somebody_reads_them_and_once(monkeypatch, row):
    made = []

    def removed_said(space, reach, factual):
        made.append(reach)
        return {"a": f"one of {len(space)} columns"}

    monkeypatch.setattr(search, "removed_said", removed_said)
    result = ceopt.explain(MODEL, row, SPACE, target="yes")
    assert made == []
    assert result.removed == {"a": "one of 2 columns"}
    result.removed["more"] = "nothing"
    assert result.removed == {"a": "one of 2 columns"}
    assert len(made) == 1


def test_what_a_rule_said_stays_whatever_becomes_of_what_it_was_made_of(row):
    coefficients = {"a": 1.0, "b": 1.0}
    result = ceopt.explain(MODEL, row, SPACE, target="yes", constraints=[ceopt.Linear(coefficients, "<=", 50.0)])
    coefficients.clear()
    assert result.rules == {"Linear_1": "a + b <= 50"}
    assert pickle.loads(pickle.dumps(result)).rules == {"Linear_1": "a + b <= 50"}
    assert "a + b" in result.to_json()


def test_a_result_that_nobody_reads_keeps_no_rule_and_no_cost_alive(row):
    def alive():
        gc.collect()
        kinds = (ceopt.Hull, ceopt.Percentile, CheckedSettings)
        return sum(isinstance(thing, kinds) for thing in gc.get_objects())

    people = pd.DataFrame({"a": [6, 7, 8], "b": [6, 7, 8]})
    before = alive()
    hull = ceopt.Hull(people, radius=3.0)
    cost = ceopt.Percentile("max", data=people)
    result = ceopt.explain(MODEL, row, SPACE, target="yes", constraints=[hull], cost=cost)
    assert len(result) == 1
    del hull, cost
    assert alive() == before
