"""Mixed columns and rules: every answer is verified by the user's model, and what rules forbid goes back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.diverse import DiverseRobustExplainer
from ceopt.diverse.projection import Projection
from ceopt.formulations.constraints import RULES
from ceopt.formulations.constraints.rule import overrides

NUMBERS, LEVELS = ["age", "income", "term", "rate"], ["job", "home", "owner", "size"]


def people(n: int = 250, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.normal(30, 12, n).round(2),
            "term": 12 * rng.integers(1, 6, n),
            "rate": rng.random(n),
            "job": rng.choice(["clerk", "nurse", "cook", "none"], n),
            "home": pd.Categorical(rng.choice(["rent", "own"], n)),
            "owner": rng.random(n) < 0.4,
            "size": pd.Categorical(rng.choice(list("SML"), n), categories=list("SML"), ordered=True),
        }
    )
    score = (frame["income"] - 30) / 12 + frame["owner"] + (frame["job"] == "nurse") - 1.5 * frame["rate"]
    return frame, np.where(score + rng.normal(0, 0.3, n) > 0, "yes", "no")


FRAME, LABELS = people()
SPACE = (
    ceopt.FeatureSpace.infer(FRAME, moves={"age": "up"})
    .update("home", mutable=False)
    .update("income", step=0.25, upper=70, weight=(2.0, 1.0))
    .update("term", lower=12, upper=60)
    .update("size", direction="decreasing")
)


def pipeline(classifier: Any) -> Any:
    columns = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), LEVELS))
    return make_pipeline(columns, classifier).fit(FRAME, LABELS)


FOREST = pipeline(RandomForestClassifier(15, max_depth=5, random_state=0))
LINEAR = pipeline(LogisticRegression())
REFUSED = {id(model): FRAME[model.predict(FRAME) == "no"] for model in (FOREST, LINEAR)}

rules = st.lists(
    st.sampled_from(
        [
            ceopt.MaxChanges(3),
            ceopt.MaxChanges(5, count="columns", name="five"),
            ceopt.AllowedValues({"term": [12, 36, 60], "job": ["nurse", "clerk"]}),
            ceopt.AllowedTransitions("job", {"none": ["cook"], "cook": ["nurse"], "clerk": ["nurse"]}),
            ceopt.Linear({"income": 1.0, "term": 0.5}, "<=", 62.0),
            ceopt.IfThen(("owner", "==", True), ("income", ">=", 25.0)),
            ceopt.AllowedRows(["owner", "size"], FRAME[["owner", "size"]].iloc[:40]),
        ]
    ),
    unique_by=id,
    max_size=3,
)


@draws(40)
@given(
    model=st.sampled_from([FOREST, LINEAR]),
    place=st.integers(0, 60),
    asked=rules,
    distance=st.sampled_from(["l1", "l2"]),
    scale=st.sampled_from(["none", "mad", "range"]),
    diversity=st.sampled_from(["angle", "distance"]),
    tolerance=st.sampled_from([None, 0.01, 0.2]),
    put_back=st.sampled_from(["categories", "columns"]),
    minimise=st.sampled_from(["chosen", "all"]),
    origin=st.sampled_from(["row", "data"]),
    bare=st.booleans(),
)
def test_every_answer_is_verified_whatever_is_asked(
    model, place, asked, distance, scale, diversity, tolerance, put_back, minimise, origin, bare
):
    row = REFUSED[id(model)].iloc[[place]]
    made = DiverseRobustExplainer(
        distance=distance,
        scale=scale,
        diversity=diversity,
        tolerance=tolerance,
        put_back=put_back,
        minimise=minimise,
        origin=origin,
        beta=0.3,
        alpha=30,
        space=SPACE,
    ).fit(FRAME, LABELS)
    result = made.explain(model.predict if bare else model, row, target="yes", n=4, constraints=asked)

    assert result.status in {"feasible", "rejected"}
    assert bool(len(result)) == (result.status == "feasible")
    assert result.complete == (len(result) == 4)
    assert bool(result.reason) == (not result.complete)
    if not len(result):
        return
    assert ceopt.verify(result, model, SPACE, target="yes", constraints=asked).ok is True
    assert len(result.to_frame().drop_duplicates()) == len(result)
    assert set(result.after_diversity_filter) <= set(result.after_distance_filter)
    assert set(model.predict(FRAME.iloc[list(result.after_distance_filter)])) == {"yes"}
    cost = (ceopt.L1 if distance == "l1" else ceopt.L2)(scale=scale)
    start = SPACE.row(row)
    costs = [cost.value(SPACE, start, SPACE.row(a.values)) for a in result]
    assert [a.cost for a in result] == pytest.approx(costs, rel=1e-12)
    assert all(a.verified and a.bound is None and a.gap is None and a.prediction == "yes" for a in result)
    assert [a.rank for a in result] == list(range(1, len(result) + 1))
    again = ceopt.SolutionSet.from_json(result.to_json())
    assert again.to_frame().equals(result.to_frame())
    for field in ("min_distance", "after_distance_filter", "after_diversity_filter", "safety", "reason", "complete"):
        assert getattr(again, field) == getattr(result, field)


@pytest.mark.long
@draws(8)
@given(seed=st.integers(0, 1000), place=st.integers(0, 40))
def test_the_order_of_the_rows_does_not_matter_but_for_ties(seed, place):
    order = np.random.default_rng(seed).permutation(len(FRAME))
    row = REFUSED[id(LINEAR)].iloc[[place]]
    made = DiverseRobustExplainer(scale="mad", space=SPACE)
    one = made.fit(FRAME).explain(LINEAR, row, target="yes")
    other = made.fit(FRAME.iloc[order]).explain(LINEAR, row, target="yes")

    assert one.to_frame().equals(other.to_frame())
    assert [order[k] for k in other.after_distance_filter] == list(one.after_distance_filter)


@pytest.mark.long
def test_no_candidate_that_could_be_nearer_is_left_out():
    """The candidates are the nearest of all favoured rows once these are put back, written apart from the search."""
    row = REFUSED[id(FOREST)].iloc[[3]]
    made = DiverseRobustExplainer(scale="mad", space=SPACE, alpha=20, tolerance=None).fit(FRAME)
    result = made.explain(FOREST, row, target="yes", n=None)
    home, cost, found = SPACE.row(row), ceopt.L1(scale="mad"), []
    for k in np.flatnonzero(FOREST.predict(FRAME) == "yes").tolist():
        point = SPACE.row(FRAME.iloc[[k]].assign(income=FRAME["income"].iloc[k].clip(max=70)))
        point["home"] = home["home"]
        point["age"], point["size"] = max(point["age"], home["age"]), min(point["size"], home["size"])
        steps = round((point["income"] - home["income"]) / 0.25)
        point["income"] = home["income"] + steps * 0.25
        if FOREST.predict(SPACE.frame([point]))[0] == "yes" and point["income"] <= 70:
            found.append((cost.value(SPACE, home, point), k, tuple(point.values())))
    found = sorted(found)
    kept = [entry for i, entry in enumerate(found) if entry[2] not in [other[2] for other in found[:i]]][:20]

    assert list(result.after_distance_filter) == [k for _, k, _ in kept]
    assert result.min_distance == pytest.approx(kept[0][0])


# ---- where categories switch -----------------------------------------------------------------------------------------
SMALL = ceopt.FeatureSpace(
    [
        ceopt.Feature("x", kind="continuous"),
        ceopt.Feature("job", kind="categorical", levels=("a", "b", "c"), weight=2.0),
        ceopt.Feature("owner", kind="binary", levels=(False, True)),
    ]
)


def ask(predict: Any, rows: list[Any], row: Any, **more: Any) -> ceopt.SolutionSet:
    frame = pd.DataFrame(rows, columns=list(SMALL.names))
    made = DiverseRobustExplainer(**{"space": SMALL, "beta": 0.0, "tolerance": 0.001} | more).fit(frame)
    return made.explain(predict, dict(zip(SMALL.names, row, strict=True)), target=True, n=None)


def test_categories_that_are_not_needed_go_back_before_the_numbers_do():
    result = ask(lambda X: X["x"] + 2.0 * X["owner"] > 3.0, [[4.0, "b", True]], (0.0, "a", False))

    assert result[0].changed == ("x",)
    assert result[0].values["x"] == pytest.approx(3.0, abs=0.001)


def test_a_category_that_is_needed_stays_on_the_whole_segment_and_numbers_that_are_not_go_all_the_way_back():
    result = ask(lambda X: X["job"] == "b", [[4.0, "b", True]], (0.0, "a", False))

    assert result[0].changed == ("job",)
    assert result[0].cost == 2.0


def test_the_dearest_category_goes_back_first():
    """Either of the two would do; the job costs 2 and the owner 1."""
    result = ask(lambda X: (X["job"] == "b") | X["owner"], [[0.0, "b", True]], (0.0, "a", False))

    assert result[0].changed == ("owner",)


def numbers(rows, decide, *, n=5, **options):
    data = np.array(rows)
    return DiverseRobustExplainer(**options).fit(data).explain(decide, np.zeros(data.shape[1]), target=True, n=n)


def test_columns_go_back_whole_longest_move_first_and_the_rest_along_the_segment():
    result = numbers([[4.0, 3.0, 1.0]], lambda A: A[:, 1] + A[:, 2] >= 2, put_back="columns", tolerance=1e-6)

    assert result.to_frame().to_numpy() == pytest.approx(np.array([[0.0, 2.0, 0.0]]), abs=1e-5)


def test_more_columns_than_one_call_tries_go_back_one_after_another():
    wide = np.arange(1.0, 41.0)[None, :]
    needed = [3, 20, 38]
    result = numbers(wide, lambda A: (A[:, needed] >= 2).all(axis=1), put_back="columns", tolerance=1e-9)

    assert list(result[0].changed) == [f"x{j}" for j in needed]


def test_what_follows_from_a_column_goes_back_with_it():
    space = ceopt.FeatureSpace([ceopt.Feature(f"x{j}", kind="continuous", lower=-9, upper=9) for j in range(3)])
    causes = ceopt.Causal({"x1": ceopt.LinearEquation({"x0": 2.0})})
    made = DiverseRobustExplainer(put_back="columns", tolerance=1e-6, space=space).fit([[3.0, 6.0, 4.0]])
    result = made.explain(lambda A: A[:, 2] >= 2, np.zeros(3), target=True, constraints=[causes])

    assert result.to_frame().to_numpy() == pytest.approx(np.array([[0.0, 0.0, 2.0]]), abs=1e-5)


def test_all_are_brought_nearer_before_the_nearest_are_taken():
    far = [[3.0, 0.0], [0.0, 4.0]]
    asked = {"rows": far, "decide": lambda A: (A[:, 0] >= 2) | (A[:, 1] >= 1), "tolerance": 1e-6, "n": 1}
    chosen, early = (numbers(minimise=word, **asked) for word in ("chosen", "all"))

    assert chosen.to_frame().to_numpy() == pytest.approx(np.array([[2.0, 0.0]]), abs=1e-5)
    assert early.to_frame().to_numpy() == pytest.approx(np.array([[0.0, 1.0]]), abs=1e-5)
    assert (early.min_distance, early.after_distance_filter, early.after_diversity_filter) == (3.0, (0, 1), (1,))


def test_answers_of_which_all_are_brought_nearer_first_are_as_diverse_as_is_asked():
    rng = np.random.default_rng(0)
    made = {"minimise": "all", "diversity": "distance", "beta": 0.5, "n": None}
    result = numbers(rng.normal(size=(60, 3)) * 3, lambda A: np.abs(A).sum(axis=1) > 2, **made)
    points = result.to_frame().to_numpy()
    apart = [np.abs(one - other).sum() for k, one in enumerate(points) for other in points[:k]]

    assert len(points) > 2
    assert min(apart) >= 1.5 * np.abs(points).sum(axis=1).min() * (1 - 1e-9)


def test_from_a_row_of_the_data_the_answers_do_not_move_with_the_row():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(80, 3))
    decide = lambda A: A.sum(axis=1) > 1  # noqa: E731
    made = DiverseRobustExplainer(origin="data").fit(rows)
    refused = rows[~decide(rows)]
    one, other = (made.explain(decide, refused[0] + move, target=True) for move in (0.01, -0.01))
    at = made.explain(decide, refused[0], target=True)

    assert one.to_frame().equals(other.to_frame())
    assert one.to_frame().equals(at.to_frame())
    assert [a.cost for a in one] != [a.cost for a in other]  # a cost is that of the person


def test_the_row_of_the_data_takes_the_categories_of_the_person_and_what_may_not_move():
    frame = pd.DataFrame({"age": [30.0, 30.0, 50.0], "job": ["a", "b", "b"], "pay": [1.0, 4.0, 9.0]})
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("age", kind="continuous", mutable=False),
            ceopt.Feature("job", kind="categorical", levels=["a", "b"]),
            ceopt.Feature("pay", kind="continuous"),
        ]
    )
    made = DiverseRobustExplainer(origin="data", space=space, tolerance=1e-6).fit(frame)
    person = {"age": 31.0, "job": "b", "pay": 1.2}
    result = made.explain(lambda F: F["pay"].to_numpy() >= 5, person, target=True)

    assert result.to_frame().iloc[0].to_dict() == {"age": 31.0, "job": "b", "pay": pytest.approx(5.0, abs=1e-5)}


def test_without_a_row_that_is_refused_the_person_is_the_origin():
    result = numbers([[2.0, 0.0], [0.0, 3.0]], lambda A: A.sum(axis=1) >= 1, origin="data", tolerance=1e-6)

    assert result.min_distance == 2.0
    assert result.to_frame().to_numpy()[0] == pytest.approx([1.0, 0.0], abs=1e-5)


def test_answers_that_coincide_are_given_once_and_another_is_asked_for():
    rows = [[0.5, "b", True], [0.6, "c", True], [-9.0, "a", False]]
    predict = lambda X: X["owner"] | (X["x"] < -8.0)  # noqa: E731
    frame = pd.DataFrame(rows, columns=list(SMALL.names))
    made = DiverseRobustExplainer(space=SMALL, beta=0.0, tolerance=0.001).fit(frame)
    result = made.explain(predict, {"x": 0.0, "job": "a", "owner": False}, target=True, n=2)
    all_three = made.explain(predict, {"x": 0.0, "job": "a", "owner": False}, target=True, n=3)

    assert [answer.changed for answer in result] == [("owner",), ("x",)]
    assert result.after_diversity_filter == (0, 1, 2)
    assert result.complete
    assert len(all_three) == 2
    assert not all_three.complete
    assert all_three.reason == (
        "2 of 3: 3 of the 3 candidates that the data has are diverse enough, they lead to 2 different answers."
    )


def test_whole_numbers_and_ranks_stay_whole_on_the_way():
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("loans", kind="integer", lower=0, upper=20),
            ceopt.Feature("grade", kind="ordinal", levels=("E", "D", "C", "B", "A")),
            ceopt.Feature("pay", kind="continuous", step=0.3),
        ]
    )
    frame = pd.DataFrame({"loans": [11], "grade": ["A"], "pay": [5.0]})
    made = DiverseRobustExplainer(space=space, tolerance=1e-6).fit(frame)
    model = lambda X: X["loans"] + X["pay"] > 7.3  # noqa: E731
    result = made.explain(model, {"loans": 2, "grade": "E", "pay": 1.0}, target=True)

    (answer,) = result
    # 5.0 is no whole number of steps from 1.0, but 4.9 is 13: the fifth step is taken at t = 4.5 / 13.
    assert answer.values["pay"] == 1.0 + 5 * 0.3
    assert answer.values["loans"] == 2 + round(9 * 4.5 / 13)
    assert answer.values["grade"] == "D"


# ---- rules -----------------------------------------------------------------------------------------------------------
def two(rule: Any, rows: Any, predict: Any, space: Any = None) -> ceopt.SolutionSet:
    space = space or ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous") for name in ("a", "b", "c")])
    frame = pd.DataFrame(rows, columns=list(space.names), dtype=float)
    made = DiverseRobustExplainer(space=space, tolerance=None, beta=0.0).fit(frame)
    return made.explain(predict, dict.fromkeys(space.names, 0.0), target=True, n=None, constraints=rule)


def any_big(X: pd.DataFrame) -> np.ndarray:
    return (X.abs() > 2.5).any(axis=1).to_numpy()


def test_of_too_many_changes_the_longest_stay():
    result = two(ceopt.MaxChanges(1), [[1.0, -3.0, 2.0], [5.0, 5.5, 6.0]], any_big)

    assert result.to_frame().to_numpy().tolist() == [[0.0, -3.0, 0.0], [0.0, 0.0, 6.0]]
    assert result.min_distance == 3.0


def test_a_category_may_count_as_two_changes():
    predict = lambda X: (X["job"] == "b") | (X["x"] > 0.4)  # noqa: E731
    frame = pd.DataFrame([[0.5, "b", True], [1.5, "b", True], [2.5, "b", False]], columns=list(SMALL.names))
    made = DiverseRobustExplainer(space=SMALL, beta=0.0, tolerance=None).fit(frame)
    asked = {"target": True, "n": None, "constraints": ceopt.MaxChanges(2, count="columns")}
    result = made.explain(predict, {"x": 0.0, "job": "a", "owner": False}, **asked)

    # The job is the longest move (2) of the first two rows and fills the two columns; of the last the number is longer,
    # and leaves no room for the job.
    assert [answer.changed for answer in result] == [("job",), ("x",)]
    assert result.after_distance_filter == (0, 2)


def test_a_level_that_is_not_listed_goes_home_or_the_row_is_dropped():
    predict = lambda X: X["x"] > 0.4  # noqa: E731
    frame = pd.DataFrame([[0.5, "b", False], [0.6, "c", False]], columns=list(SMALL.names))
    made = DiverseRobustExplainer(space=SMALL, beta=0.0, tolerance=None).fit(frame)
    row = {"x": 0.0, "job": "a", "owner": False}
    home, away = (
        made.explain(predict, row, target=True, n=None, constraints=ceopt.AllowedValues({"job": listed}))
        for listed in (["a", "b"], ["b"])
    )

    assert home.to_frame()["job"].tolist() == ["a", "b"]
    assert away.to_frame()["job"].tolist() == ["b"]


def test_on_the_way_a_number_goes_from_one_value_listed_to_the_next():
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="continuous", lower=0, upper=9)])
    made = DiverseRobustExplainer(space=space, tolerance=0.001).fit(pd.DataFrame({"a": [8.6]}))
    rule = ceopt.AllowedValues({"a": [0.7, 3.3, 5.1, 8.2]})
    result = made.explain(lambda X: X["a"] > 3.0, {"a": 0.7}, target=True, constraints=rule)

    assert result.min_distance == pytest.approx(7.5)
    assert result.to_frame().to_numpy().tolist() == [[3.3]]


def test_rows_that_become_equal_count_once_and_the_first_one_is_named():
    result = two(ceopt.MaxChanges(1), [[1.0, 4.0, 0.0], [2.0, 4.0, 0.0], [0.0, 3.0, 0.5]], any_big)

    assert result.after_distance_filter == (2, 0)


def test_immutable_and_one_way_columns_and_bounds_are_put_back_and_asked_about_again():
    space = ceopt.FeatureSpace(
        [
            ceopt.Feature("a", kind="continuous", mutable=False),
            ceopt.Feature("b", kind="continuous", direction="increasing"),
            ceopt.Feature("c", kind="continuous", lower=-4, upper=4),
        ]
    )
    rows = [[9.0, 0.0, 0.0], [9.0, -3.0, 1.0], [1.0, 3.0, 0.0], [1.0, -1.0, 9.0]]
    result = two((), rows, any_big, space)

    assert result.to_frame().to_numpy().tolist() == [[0.0, 3.0, 0.0], [0.0, 0.0, 4.0]]
    assert result.after_distance_filter == (2, 3)


def test_a_rule_that_says_not_where_to_drops_the_row_and_is_named_when_none_is_left():
    rule = ceopt.Linear({"a": 1.0, "b": 1.0}, "<=", 3.5, name="budget")
    some = two(rule, [[3.0, 0.0, 0.0], [3.0, 3.0, 0.0]], any_big)
    none = two(rule, [[3.0, 1.0, 0.0], [3.0, 3.0, 0.0]], any_big)

    assert some.after_distance_filter == (0,)
    assert none.status == "rejected"
    assert none.reason.startswith("Of the 2 rows that are predicted to be True, 2 break budget.")
    assert not none.complete
    assert none.min_distance is None


def test_rows_that_the_rules_of_the_space_turn_away_are_counted():
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", mutable=name != "a") for name in "ab"])
    result = two((), [[3.0, 0.0], [4.0, 1.0]], any_big, space)

    assert result.status == "rejected"
    assert result.reason.startswith(
        "Of the 2 rows that are predicted to be True, 2 no longer are once they are put where the person may go."
    )


def test_bounds_that_were_seen_in_other_data_are_no_rules():
    space = ceopt.FeatureSpace.infer(pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 1.0]}))
    result = two((), [[3.0, 0.0], [0.0, -4.0]], any_big, space)

    assert result.to_frame().to_numpy().tolist() == [[3.0, 0.0], [0.0, -4.0]]


def test_a_row_that_is_favourable_but_breaks_a_rule_is_answered():
    result = two(ceopt.Linear({"b": 1.0}, ">=", 1.0), [[0.0, 2.0, 0.0], [0.0, 0.5, 3.0]], lambda X: X["a"] > -1.0)

    assert result.to_frame().to_numpy().tolist() == [[0.0, 2.0, 0.0]]


def test_what_follows_from_other_columns_does_so_in_answers_and_is_told_as_a_consequence():
    loans = ceopt.datasets.loans(400)
    numbers = ["age", "years_employed", "income", "savings", "loan_amount", "duration", "open_loans"]
    model = make_pipeline(make_column_transformer((StandardScaler(), numbers)), LogisticRegression())
    model.fit(loans.data, loans.target)
    rule = ceopt.Causal(loans.equations, intervention="soft")
    row = loans.data[model.predict(loans.data) == "bad"].iloc[[0]]
    space = loans.space
    made = DiverseRobustExplainer(scale="mad", space=space).fit(loans.data)
    result = made.explain(model, row, target="good", n=2, constraints=[rule])

    assert len(result) == 2
    assert all(answer.actions is not None for answer in result)
    assert ceopt.verify(result, model, space, target="good", constraints=[rule]).ok is True


def test_a_hull_without_rows_learns_those_of_the_target():
    rows = [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.5, 0.5, 0.5], [3.0, 3.0, 0.0]]
    space = ceopt.FeatureSpace([ceopt.Feature(name, kind="continuous", lower=-9, upper=9) for name in "abc"])
    frame = pd.DataFrame(rows, columns=list("abc"))
    made = DiverseRobustExplainer(space=space, tolerance=0.01).fit(frame)
    asked = {"target": True, "n": None, "constraints": ceopt.Hull()}
    result = made.explain(any_big, dict.fromkeys("abc", 0.0), **asked)
    nobody = made.explain(lambda X: X["a"] > 50, dict.fromkeys("abc", 0.0), **asked)

    assert sorted(result.after_distance_filter) == [0, 1, 3]
    assert ceopt.Hull(frame.iloc[[0, 1, 3]]).violation(space, None, space.row(result[0].values)) <= 0
    away = made.explain(any_big, dict.fromkeys("abc", 8.0), **asked)
    assert away.status == "feasible"  # favourable, and not in the hull
    assert nobody.status == "rejected"
    assert nobody.reason.startswith("None of the 4 rows of the data is predicted to be True; what is predicted: False.")


def test_every_rule_there_is_was_thought_of():
    """A rule that puts points back says where in the table of Projection; all others drop the rows that break them."""
    named = {name for name in RULES if re.search(rf"^ *{name}\b", Projection.__doc__, re.MULTILINE)}
    mending = {name for name, kind in RULES.items() if overrides(object.__new__(kind), "mended")}
    assert named == mending | {"MaxChanges", "AllowedTransitions"}  # of these two it knows itself where to put points
    assert mending >= {"AllowedValues", "Causal", "ExactlyOne"}
