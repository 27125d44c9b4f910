"""Excess: answers of any library beside the optimum by enumeration, and what each of them breaks."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.formulations.predictors import Affine
from ceopt.formulations.recourse_program import recourse_program
from ceopt.metrics import cost, excess
from ceopt.search import prepare as prepare_module

SPACE = FeatureSpace(
    [
        Feature("a", kind="integer", lower=0, upper=4),
        Feature("b", kind="integer", lower=0, upper=4, direction="increasing"),
        Feature("c", kind="categorical", levels=("u", "v", "w")),
    ]
)
GRID = pd.DataFrame(list(itertools.product(range(5), range(5), "uvw")), columns=list(SPACE.names))


class OnCodes:
    """A tree on raw rows, its category as numbers: what a user's own pipeline would do."""

    def __init__(self, seed):
        from sklearn.compose import ColumnTransformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        rng = np.random.default_rng(seed)
        labels = np.where(rng.random(len(GRID)) < 0.3, "yes", "no")
        columns = ColumnTransformer([("c", OneHotEncoder(), ["c"])], remainder="passthrough")
        self.model = make_pipeline(columns, DecisionTreeClassifier(max_depth=4, random_state=0)).fit(GRID, labels)


def by_hand(model, factual, rules=()):
    """The least l1 over the grid: everything that the model and the rules take."""
    allowed = GRID[(model.predict(GRID) == "yes") & (GRID["b"] >= factual["b"])]
    for rule in rules:
        allowed = allowed[[rule(row) for _, row in allowed.iterrows()]]
    return cost(factual, allowed, SPACE).min() if len(allowed) else math.nan


@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_is_that_of_enumeration_and_so_is_the_excess(seed):
    model = OnCodes(seed).model
    rng = np.random.default_rng(seed)
    factuals = GRID[model.predict(GRID) == "no"].sample(2, random_state=seed)
    answers = GRID.sample(8, random_state=seed + 100)
    starts = factuals.iloc[rng.integers(0, 2, 8)]

    table = excess(answers, model, SPACE, target="yes", factual=starts)

    assert table["answer"].tolist() == answers.index.tolist()
    for place, line in enumerate(table.itertuples()):
        start = starts.iloc[place].to_dict()
        best = by_hand(model, start)
        own = cost(start, answers.iloc[[place]], SPACE)[0]
        assert line.optimum == pytest.approx(best)
        assert line.bound == pytest.approx(best)
        assert line.cost == pytest.approx(own)
        assert line.excess == pytest.approx(own / best - 1)
        assert line.valid == (model.predict(answers.iloc[[place]])[0] == "yes")
        assert bool(line.broken) == (answers.iloc[place]["b"] < start["b"])
        if line.valid and not line.broken:
            assert line.excess >= -1e-9


def test_rules_of_the_question_count_for_both():
    model = OnCodes(3).model
    factual = GRID[(model.predict(GRID) == "no") & (GRID["b"] == 1)].iloc[[0]]
    home = factual.iloc[0]
    rule = ceopt.MaxChanges(1)

    def few(row):
        return (row != home).sum() <= 1

    answers = GRID[model.predict(GRID) == "yes"]
    table = excess(answers, model, SPACE, target="yes", factual=factual, constraints=[rule])

    best = by_hand(model, home.to_dict(), [few])
    assert np.isfinite(best)
    assert table["optimum"].to_numpy() == pytest.approx(np.full(len(answers), best))
    over = [(row != home).sum() > 1 for _, row in answers.iterrows()]
    assert [any("at most 1 feature" in text for text in broken) for broken in table["broken"]] == over


def test_own_answers_have_no_excess_and_bear_their_ranks():
    model = OnCodes(1).model
    factual = GRID[model.predict(GRID) == "no"].iloc[[0]]
    result = ceopt.explain(model, factual, SPACE, target="yes", n=2)

    table = excess(result, model, SPACE, target="yes", factual=factual)

    assert table["answer"].tolist() == [1, 2]
    assert table["excess"].iloc[0] == 0
    assert (table["excess"] >= 0).all()
    assert table["valid"].all()


def test_bad_answers_are_reported_and_never_raise():
    model = OnCodes(1).model
    factual = GRID[model.predict(GRID) == "no"].iloc[[0]]
    answers = [
        {"a": 1.5, "b": 0, "c": "u"},
        {"a": 1, "b": 0, "c": "x"},
        {"a": 9, "b": 0, "c": "u"},
        {"a": np.nan, "b": 0, "c": "u"},
        {"a": 1, "b": 0},
        {"a": 1, "b": 0, "c": "u", "d": 1},
        "row",
    ]

    with pytest.warns(UserWarning, match="leaves out 'd' of answers"):
        table = excess(answers, model, SPACE, target="yes", factual=factual)

    told = ["whole number", "'x'", "must be at most 4", "a:", "c: missing from the row", "", "not a row"]
    for part, broken in zip(told, table["broken"], strict=True):
        assert (not part and not broken) or any(part in text for text in broken), (part, broken)
    assert not table["valid"].iloc[[0, 1, 3, 4, 6]].any()
    assert table["cost"].isna().tolist() == [True, True, False, True, True, False, True]
    assert table["optimum"].notna().all()


def test_inferred_bounds_are_no_rules_and_the_optimum_is_sought_where_the_answer_went():
    data = pd.DataFrame({"pay": [1.0, 2.0, 3.0, 4.0]})
    space = FeatureSpace.infer(data)
    model = Affine([1.0], -8.5, labels=("no", "yes"))  # nobody in the data is favoured

    table = excess([{"pay": 10.0}], model, space, target="yes", factual={"pay": 2.0}, cost=ceopt.L1(scale="none"))

    assert table["broken"][0] == ()
    assert table["optimum"][0] == pytest.approx(7.0)
    assert table["excess"][0] == pytest.approx(8.0 / 7.0 - 1)


def test_steps_seen_in_data_are_no_rules_either_so_that_no_answer_between_them_is_below_the_optimum():
    data = pd.DataFrame({"pay": [1.0, 2.0, 3.0, 4.0]})
    space = FeatureSpace.infer(data)
    model = Affine([1.0], -8.5, labels=("no", "yes"))

    table = excess([{"pay": 8.6}], model, space, target="yes", factual={"pay": 2.0}, cost=ceopt.L1(scale="none"))

    assert table["broken"][0] == ()
    assert table["optimum"][0] == pytest.approx(6.5, rel=1e-4)
    assert table["excess"][0] == pytest.approx(6.6 / 6.5 - 1, abs=1e-3)


def test_nothing_possible_and_nothing_needed():
    space = FeatureSpace([Feature("pay", kind="integer", lower=0, upper=5)])
    model = Affine([1.0], -7.5, labels=("no", "yes"))

    none = excess([{"pay": 4}], model, space, target="yes", factual={"pay": 2})
    assert math.isnan(none["optimum"][0])
    assert math.isinf(none["bound"][0])
    assert math.isnan(none["excess"][0])

    need_not = excess([{"pay": 2}, {"pay": 4}], model, space, target="no", factual={"pay": 2})
    assert need_not["optimum"].tolist() == [0.0, 0.0]
    assert need_not["excess"].tolist() == [0.0, math.inf]


def test_a_model_that_fails_on_one_answer_fails_on_that_alone():
    data = pd.DataFrame({"pay": [1.0, 2.0, 3.0, 4.0]})

    class Fragile(LogisticRegression):
        def predict(self, X):
            if (np.asarray(X) == 3.5).any():
                raise RuntimeError("no")
            return super().predict(X)

    model = LogisticRegression().fit(data, ["no", "no", "yes", "yes"])
    model.__class__ = Fragile
    space = FeatureSpace.infer(data)

    with pytest.raises(TypeError):  # another class is not read as the one that it inherits from
        excess([{"pay": 3.5}], model, space, target="yes", factual={"pay": 1.0})


def test_misuse_is_named():
    model = OnCodes(1).model
    factual = GRID.iloc[[0, 1]]

    with pytest.raises(ValueError, match="one factual, or one for each answer, but factual has 2 rows and there are 3"):
        excess(GRID[:3], model, SPACE, target="yes", factual=factual)
    with pytest.raises(TypeError, match="excess needs a SolutionSet, a frame or a list of rows, but answers is int"):
        excess(7, model, SPACE, target="yes", factual=factual[:1])
    with pytest.raises(TypeError, match="excess needs a FeatureSpace"):
        excess(GRID[:1], model, None, target="yes", factual=factual[:1])
    with pytest.raises(ValueError, match="cost is 'l3'"):
        excess(GRID[:1], model, SPACE, target="yes", factual=factual[:1], cost="l3")
    numbers = GRID[["a", "b"]]
    black_box = KNeighborsClassifier(3).fit(numbers, model.predict(GRID))
    with pytest.raises(TypeError, match="KNeighborsClassifier"):
        excess(numbers[:1], black_box, FeatureSpace(list(SPACE)[:2]), target="yes", factual=numbers[:1])


# ---- the limit -------------------------------------------------------------------------------------------------------
def test_the_reading_of_the_model_is_within_the_limit(monkeypatch):
    """Where it takes all of it, the optimum is not known, and the answers are checked all the same."""
    model = OnCodes(1).model
    factual = GRID[model.predict(GRID) == "no"].iloc[[0]]
    answers = GRID.sample(5, random_state=3)
    known = excess(answers, model, SPACE, target="yes", factual=factual)
    now = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    inner = prepare_module.read

    def slow(*arguments, **options):
        now[0] += 10.0
        return inner(*arguments, **options)

    monkeypatch.setattr(prepare_module, "read", slow)
    programs = []
    monkeypatch.setattr(
        "ceopt.search.solve_program.recourse_program", lambda *a, **k: programs.append(1) or recourse_program(*a, **k)
    )
    late = excess(answers, model, SPACE, target="yes", factual=factual, time_limit_s=5.0)

    assert now[0] == 1010.0
    assert not programs
    assert late[["optimum", "excess"]].isna().all(axis=None)
    assert (late["bound"] == -math.inf).all()
    pd.testing.assert_frame_equal(
        late[["answer", "cost", "valid", "broken"]], known[["answer", "cost", "valid", "broken"]]
    )
    in_time = excess(answers, model, SPACE, target="yes", factual=factual, time_limit_s=15.0)
    assert in_time["optimum"].equals(known["optimum"])


def test_the_limit_is_that_of_each_person_and_reading_again_counts(monkeypatch):
    """Answers beyond the bounds that data gave widen the space, for which the model is read once more."""
    data = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [0.0, 1.0, 2.0, 3.0]})
    space = FeatureSpace.infer(data)
    model = Affine([1.0, 1.0], -5.0, labels=("no", "yes"))
    people = pd.DataFrame({"a": [1.0, 0.0], "b": [1.0, 1.0]})
    answers = pd.DataFrame({"a": [9.0, 2.0], "b": [1.0, 1.0]})
    now = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    inner = prepare_module.read
    reads = []

    def slow(*arguments, **options):
        reads.append(now[0] - 1000.0)
        now[0] += 4.0
        return inner(*arguments, **options)

    monkeypatch.setattr(prepare_module, "read", slow)
    table = excess(answers, model, space, target="yes", factual=people, time_limit_s=6.0)

    assert reads == [0.0, 4.0]
    assert math.isnan(table["optimum"][0])  # 8 s of 6 for the first person
    assert table["optimum"][1] > 0.0
    assert (table["cost"] > 0.0).all()
