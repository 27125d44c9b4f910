"""Advice kept, repaired or replaced: what the audit says is held against brute force over a grid of people."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ceopt
import ceopt.training.recourse_network
from ceopt import FeatureSpace, Linear, MaxChanges
from ceopt.solvers.errors import CeoptError, InvalidValueError
from ceopt.training.recourse_network import polished

GRID = pd.DataFrame(list(itertools.product(range(6), range(6), ["x", "y"])), columns=["a", "b", "c"])
LABELS = np.where(2 * GRID["a"] + GRID["b"] + 2 * (GRID["c"] == "y") > 9, "yes", "no")


class Model:
    """A scorecard that reads the category as 0 and 1."""

    @staticmethod
    def fitted():
        from sklearn.compose import make_column_transformer
        from sklearn.preprocessing import OneHotEncoder

        encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
        return make_pipeline(encode, LogisticRegression(C=1000.0, max_iter=5000)).fit(GRID, LABELS)


MODEL = Model.fitted()
SPACE = FeatureSpace.infer(GRID)
PEOPLE = GRID[MODEL.predict(GRID) == "no"].sample(12, random_state=0).set_axis(list("abcdefghijkl"))


def price(before, after):
    moved = abs(after["a"] - before["a"]) + abs(after["b"] - before["b"])
    return moved / 1.5 + float(after["c"] != before["c"])  # 1.5 is the median absolute deviation of 0 to 5


def least(before, keeps=None):
    """The least cost of what the model accepts, by brute force."""
    accepted = GRID[MODEL.predict(GRID) == "yes"]
    return min(price(before, row) for _, row in accepted.iterrows() if keeps is None or keeps(before, row))


def advice_at(row):
    return pd.DataFrame([row] * len(PEOPLE), index=PEOPLE.index).astype(GRID.dtypes)


def polish(advice, people=PEOPLE, targets=None, **given):
    targets = ["yes"] * len(people) if targets is None else targets
    return polished(MODEL, SPACE, people, advice, targets, **given)


@pytest.mark.long
def test_every_person_gets_an_answer_within_the_ratio_of_the_true_optimum():
    for row in ({"a": 5, "b": 5, "c": "y"}, {"a": 4, "b": 2, "c": "x"}, {"a": 0, "b": 0, "c": "x"}):
        cohort = polish(advice_at(row))
        table = cohort.to_frame()
        assert set(cohort.counts()) <= {"optimal", "feasible"}
        assert (MODEL.predict(table[["a", "b", "c"]]) == "yes").all()
        for (label, _), answer in table.iterrows():
            true = least(PEOPLE.loc[label])
            line = cohort.audit.loc[label]
            assert answer["cost"] == pytest.approx(price(PEOPLE.loc[label], answer))
            assert line["bound"] <= true + 1e-9
            assert answer["cost"] <= 1.5 * line["bound"] + 1e-9
            assert line["source"] == answer["source"]


def test_the_source_says_what_became_of_the_advice():
    people = PEOPLE.head(3)
    cheap = pd.DataFrame([_cheapest(row) for _, row in people.iterrows()], index=people.index).astype(GRID.dtypes)
    advice = cheap.copy()
    advice.iloc[1] = [5, 5, "y"]  # accepted, and far too dear
    advice.iloc[2] = [0, 0, "x"]  # refused by the model
    cohort = polish(advice, people, max_ratio=1.1)

    assert cohort.audit["source"].tolist() == ["generator", "repaired", "engine"]
    assert cohort.audit["valid"].tolist() == [True, True, False]
    assert cohort.repaired == pytest.approx(1 / 3)
    pd.testing.assert_frame_equal(cohort[0].to_frame().reset_index(drop=True), cheap.head(1).reset_index(drop=True))
    assert cohort.audit["excess"].iloc[1] == pytest.approx(
        cohort.audit["advised_cost"].iloc[1] / cohort.audit["bound"].iloc[1] - 1.0
    )
    assert np.isnan(cohort.audit["excess"].iloc[2])


@pytest.mark.parametrize("max_ratio", [1.0, 1.2, 3.0, 100.0])
def test_what_is_called_optimal_is_proved_best(max_ratio):
    """Within the ratio an answer is feasible, with its gap and a reason, whether the advice stands or was replaced."""
    people = PEOPLE.head(4)
    advice = pd.DataFrame([_cheapest(row) for _, row in people.iterrows()], index=people.index).astype(GRID.dtypes)
    advice.iloc[1] = [5, 5, "y"]
    advice.iloc[2, 1] = min(advice.iloc[2, 1] + 1, 5)
    cohort = polish(advice, people, max_ratio=max_ratio)
    for result, (_, before) in zip(cohort, people.iterrows(), strict=True):
        best = least(before)
        gap = result[0].gap
        assert result.gap == gap == pytest.approx(1.0 - result.bound / result[0].cost, abs=1e-9)
        assert result.status == ("optimal" if gap <= 1e-6 else "feasible")
        assert bool(result.reason) == (result.status == "feasible")
        if result.status == "optimal":
            assert result[0].cost == pytest.approx(best)
        else:
            assert result[0].cost <= max_ratio * result.bound + 1e-9
            assert f"{max_ratio:g} times" in result.reason
        assert cohort.to_frame()["status"].loc[result.query_id].eq(str(result.status)).all()
    if max_ratio == 100.0:
        assert cohort.counts()["feasible"] >= 2
        assert "optimal" not in {str(cohort[k].status) for k in (1, 2)}
    if max_ratio == 1.0:
        assert cohort.counts() == {"optimal": 4}


def _cheapest(before):
    accepted = GRID[MODEL.predict(GRID) == "yes"]
    return min((row for _, row in accepted.iterrows()), key=lambda row: price(before, row))


def test_advice_within_the_ratio_stays_as_it_is_though_the_engine_knows_better():
    people = PEOPLE.head(6)
    best = [_cheapest(row) for _, row in people.iterrows()]
    advice = pd.DataFrame(best, index=people.index).astype(GRID.dtypes)
    advice["b"] = (advice["b"] + 1).clip(upper=5)
    kept = polish(advice, people, max_ratio=10.0)
    proved = polish(advice, people, max_ratio=1.0)

    assert kept.audit["source"].eq("generator").all()
    pd.testing.assert_frame_equal(
        kept.to_frame()[["a", "b", "c"]].reset_index(drop=True), advice.reset_index(drop=True), check_dtype=False
    )
    for label, cost in proved.audit["cost"].items():
        assert cost == pytest.approx(least(people.loc[label]))


def test_rules_count_for_advice_and_for_what_replaces_it():
    people = PEOPLE[PEOPLE["c"] == "x"].head(3)
    advice = pd.DataFrame([[5, 5, "y"]] * len(people), columns=list("abc"), index=people.index).astype(GRID.dtypes)
    rules = [MaxChanges(2), Linear({"b": 1.0}, "<=", 4.0)]
    cohort = polish(advice, people, constraints=rules)

    assert all("may change" in " ".join(broken) for broken in cohort.audit["broken"])
    assert cohort.audit["source"].isin(["repaired", "engine"]).all()
    for result, (_, before) in zip(cohort, people.iterrows(), strict=True):
        assert ceopt.verify(result, MODEL, SPACE, target="yes", constraints=rules).ok
        true = least(before, lambda old, new: new["b"] <= 4 and (old != new).sum() <= 2)
        assert result.bound <= true + 1e-9 <= 1.5 * result.bound + 2e-9


def test_cheap_advice_that_breaks_a_rule_is_not_kept():
    people = PEOPLE.head(2)
    advice = pd.DataFrame([_cheapest(row) for _, row in people.iterrows()], index=people.index).astype(GRID.dtypes)
    stays = people.iloc[0]["a"]
    cohort = polish(advice, people, constraints=[Linear({"a": 1.0}, "==", float(stays))], max_ratio=100.0)

    assert cohort.audit["valid"].all()
    assert len(cohort.audit["broken"].iloc[0]) == 1
    assert cohort.audit["source"].iloc[0] == "engine"
    assert cohort[0][0].values["a"] == stays


def test_the_engine_begins_with_the_advice_and_falls_back_on_it(monkeypatch):
    begun = []
    solved = ceopt.training.recourse_network.answered

    def noting(prepared, row):
        begun.append(prepared.starts.tolist())
        return solved(prepared, row)

    monkeypatch.setattr(ceopt.training.recourse_network, "answered", noting)
    advice = advice_at({"a": 5, "b": 5, "c": "y"})
    cohort = polish(advice, time_limit_s=1e-6)

    assert begun == [[[5.0, 5.0, 1.0]]] * len(PEOPLE)
    assert cohort.counts() == {"feasible": len(PEOPLE)}
    assert cohort.audit["source"].eq("generator").all()
    assert all("time limit" in result.reason for result in cohort)


def test_each_person_may_have_a_target_of_their_own():
    people = pd.concat([PEOPLE.head(2), GRID[LABELS == "yes"].head(2)])
    targets = ["yes", "yes", "no", "yes"]
    cohort = polish(people.copy(), people, targets)

    assert all(result.status.has_answers for result in cohort[:3])
    assert cohort[3].status == "already_favourable"
    assert [result[0].prediction for result in cohort[:3]] == ["yes", "yes", "no"]
    assert cohort.audit["source"].tolist() == ["engine"] * 3 + ["generator"]
    assert cohort.options["target"] == "yes or no"


def test_nobody_is_lost_where_nothing_is_possible():
    cohort = polish(PEOPLE.copy(), constraints=[MaxChanges(0)])

    assert cohort.counts() == {"infeasible": len(PEOPLE)}
    assert cohort.repaired == 0.0
    assert cohort.to_frame()["source"].eq("engine").all()


@pytest.mark.long
def test_processes_and_pickles_change_nothing():
    advice = advice_at({"a": 5, "b": 5, "c": "y"})
    cohort = polish(advice)
    other = polish(advice, n_jobs=2)

    pd.testing.assert_frame_equal(other.to_frame(), cohort.to_frame())
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(other)).audit, cohort.audit)


def test_without_an_audit_nothing_is_said_of_repairs():
    cohort = ceopt.Recourse(MODEL, SPACE, target="yes").fit(GRID).explain(PEOPLE.head(1))
    assert cohort.repaired is None
    assert "source" not in cohort.to_frame()


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"max_ratio": 0.9}, r"polish needs .*max_ratio .*0\.9"),
        ({"max_ratio": np.inf}, "max_ratio"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"cost": "l9"}, "l9"),
        ({"time_limit_s": -1.0}, "time_limit_s"),
        ({"targets": ["maybe"] * len(PEOPLE)}, "maybe"),
    ],
)
def test_misuse_is_refused_at_once(given, match):
    with pytest.raises(CeoptError, match=match) as caught:
        polish(advice_at({"a": 5, "b": 5, "c": "y"}), **given)
    assert isinstance(caught.value, InvalidValueError | LookupError | ValueError)


def decimal_question():
    """People of nine decimals, advice of more, and a forest whose splits lie between them."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"used": rng.random(300).round(9), "money": rng.normal(5000.0, 2000.0, 300).round(4)})
    wanted = np.where(2.0 * people["used"] - people["money"] / 5000.0 > 0.2, "yes", "no")
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(people, wanted)
    return forest, FeatureSpace.infer(people), people[forest.predict(people) == "no"].iloc[:6]


def places(value):
    return len(np.format_float_positional(value, trim="-").partition(".")[2])


def test_answers_of_the_engine_within_the_ratio_have_the_decimals_of_the_data():
    """They kept all digits wherever the engine had stopped early, within the ratio."""
    forest, space, people = decimal_question()
    cohort = polished(forest, space, people, people, ["yes"] * 6, max_ratio=1.5)
    assert cohort.audit["source"].eq("engine").all()
    assert (cohort.audit["gap"] > 1e-3).any()
    for result in cohort:
        assert result[0].verified
        assert places(result[0].values["used"]) <= 9
        assert places(result[0].values["money"]) <= 8


def test_advice_that_the_engine_only_rounds_stays_as_it_stands():
    """The engine's answer is the advice but for its digits: the advice was the best, so nothing is repaired."""
    forest, space, people = decimal_question()
    rows = pd.concat([people, pd.DataFrame({"used": [0.9, 0.8], "money": [1000.5, 999.25]})])
    line = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, forest.predict(rows))
    people = people[line.predict(people) == "no"]
    exact = FeatureSpace(replace(feature, decimals=None) for feature in space)
    best = [ceopt.explain(line, row, exact, target="yes", cost="l2")[0].frame for _, row in people.iterrows()]
    advice = pd.concat(best).set_axis(people.index)
    assert advice["used"].map(places).max() > 9
    cohort = polished(line, space, people, advice, ["yes"] * len(people), cost="l2", max_ratio=1.0)
    assert cohort.audit["source"].eq("generator").all()
    kept = cohort.to_frame()[["used", "money"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, advice.reset_index(drop=True), check_exact=True)
