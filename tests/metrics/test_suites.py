"""Suites: each number by hand, quirks included; what they need; one person, a solution set, a cohort, a frame."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.formulations.predictors import Affine
from ceopt.metrics import suite, suites
from ceopt.metrics.suites import SUITES
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

SPACE = FeatureSpace(
    [
        Feature("pay", kind="continuous"),
        Feature("age", kind="integer", mutable=False),
        Feature("job", kind="categorical", levels=("a", "b", "c")),
        Feature("own", kind="binary", levels=("no", "yes")),
    ]
)
# MAD of pay: median 4, deviations 4, 0, 4, 0, 6: 4. Of age: all but one are 30: 0. Ranges 14 and 10.
DATA = pd.DataFrame(
    {
        "pay": [0.0, 4.0, 8.0, 4.0, -6.0],
        "age": [30, 30, 30, 30, 40],
        "job": list("abcab"),
        "own": ["no", "yes", "no", "yes", "no"],
    }
)
X = {"pay": 2.0, "age": 30, "job": "a", "own": "no"}
S = pd.DataFrame(
    {
        "pay": [9.0, 2.0, 2.0, 2.0],
        "age": [30, 35, 30, 30],
        "job": ["a", "b", "a", "a"],
        "own": ["no", "yes", "yes", "yes"],
    }
)


def model(rows):
    """Favour pay above 7, or job b."""
    return np.where((rows["pay"] > 7) | (rows["job"] == "b"), 1, 0)


def approx(**expected):
    return pytest.approx(expected, nan_ok=True)


def test_dice2020_by_hand():
    found = suite("dice2020", S, factual=X, space=SPACE, model=model, target=1, data=DATA, n=5)

    # pairs 1-2: pay 7, age 5, job, own; 1-3 and 1-4: pay 7, own; 2-3 and 2-4: age 5, job; 3-4: none
    assert found.to_dict() == approx(
        validity=2 / 5,  # rows 1 and 2 of five asked for
        continuous_proximity=-((7 / 4) / 2 + (5 / 1.0) / 2) / 4,  # age has a MAD of 0, which counts as 1.0
        categorical_proximity=1 - (0 + 2 + 1 + 1) / 8,
        sparsity=1 - (1 + 3 + 1 + 1) / 16,
        continuous_diversity=((7 / 4 + 5) + 2 * 7 / 4 + 2 * 5) / 2 / 6,
        categorical_diversity=(2 + 1 + 1 + 1 + 1 + 0) / 12,
        count_diversity=(4 + 2 + 2 + 2 + 2 + 0) / 24,
    )


def test_dice2020_counts_distinct_rows_once():
    S_twice = pd.concat([S.iloc[:1]] * 3)

    assert suite("dice2020", S_twice, factual=X, space=SPACE, model=model, target=1, data=DATA)["validity"] == 1 / 3


def test_ce_ocl2022_by_hand():
    found = suite("ce_ocl2022", S, factual=X, space=SPACE, model=model)

    assert found.to_dict() == approx(
        validity=2 / 4,
        categorical_proximity=1 - 4 / 8,
        continuous_proximity=-(7 + 5) / 4,
        sparsity=1 - 6 / 16,
        categorical_diversity=6 / 12,
        continuous_diversity=(12 + 7 + 7 + 5 + 5) / 6,
        sparsity_based_diversity=12 / 24,
    )


def test_ce_ocl2022_rounds_numbers_to_four_decimals_in_the_diversity_only():
    # 0.00004 rounds to 0 and 0.00006 to 0.0001
    found = suite("ce_ocl2022", [[0.00004], [0.00006]], factual=[0.0], model=lambda rows: rows[:, 0] > 1)

    assert found["continuous_diversity"] == pytest.approx(1e-4, rel=1e-9)
    assert found["continuous_proximity"] == pytest.approx(-5e-5)


def test_ce_ocl2022_validity_cancels_and_takes_text_by_its_target():
    labels = lambda rows: np.asarray(rows)[:, 0].astype(int)  # noqa: E731
    words = lambda rows: np.where(np.asarray(rows)[:, 0] > 1, "good", "bad")  # noqa: E731

    assert suite("ce_ocl2022", [[0.0], [2.0]], factual=[1.0], model=labels)["validity"] == 0
    assert suite("ce_ocl2022", [[0.0], [2.0]], factual=[1.0], model=words, target="good")["validity"] == 1 / 2


def test_carla2021_by_hand_on_raw_rows():
    seconds = {"build": 1.0, "solve": 0.5}
    found = suite(
        "carla2021", S, factual=X, space=SPACE, model=model, target=1, data=DATA, seconds=seconds, neighbours=2
    )

    # encoded moves: pay / 14, age / 10, job as three 0/1 columns, own as one
    #   row 1: 1/2        row 2: 1/2, 1 and 1 (job), 1 (own)        rows 3, 4: 1 (own)
    # nearest two of S among data, as (pay/14, age/10, job, own):
    #   row 1 (9, 30, a, no): to (0,a,no) 81/196; (8,c,no) 1/196 + 2; (4,a,yes) 25/196 + 1: rows 0 and 3, not favoured
    #   row 2 (2, 35, b, yes): to (4,30,b,yes) 4/196 + 1/4; (-6,40,b,no) 64/196 + 1/4 + 1; (4,a,yes) 2 + 1/4 + ..:
    #     rows 1 and 4, both b, favoured
    #   rows 3, 4 (2, 30, a, yes): to (4,a,yes) 4/196, (0,a,no) 4/196 + 1: rows 3 and 0, not favoured
    assert found.to_dict() == approx(
        success_rate=1.0,
        l0_distance=(1 + 4 + 1 + 1) / 4,
        l1_distance=(0.5 + 3.5 + 1 + 1) / 4,
        l2_distance=(0.25 + 3.25 + 1 + 1) / 4,  # squared
        linf_distance=(0.5 + 1 + 1 + 1) / 4,
        constraint_violation=1 / 4,
        redundancy=(0 + 2 + 0 + 0) / 4,  # of row 2 age and own may go, of rows 3, 4 nothing reaches the target
        ynn=2 / 8,
        avg_time=1.5,
    )


def test_carla2021_takes_encoded_arrays_as_they_are():
    encoded = np.array([[0.5, 1.0, 0.0], [0.5, 1.0, 0.000001]])
    found = suite(
        "carla2021", encoded, factual=[0.5, 0.0, 0.0], model=lambda rows: rows[:, 1].astype(int), target=1,
        data=[[0.5, 1.0, 0.0], [0.5, 0.0, 0.0]], seconds=1.0, neighbours=1, missing="nan",
    )  # fmt: skip

    assert found.to_dict() == approx(
        success_rate=1.0,
        l0_distance=1.0,  # a move of 1e-6 is none
        l1_distance=1 + 5e-7,
        l2_distance=1 + 5e-13,
        linf_distance=1.0,
        constraint_violation=math.nan,  # no space, so nobody knows what is immutable
        redundancy=0.5,  # taking the noise back keeps the label, and it counts as a change here
        ynn=1.0,
        avg_time=1.0,
    )


def test_carla2021_leaves_rows_without_an_answer_out_of_everything_but_the_success_rate():
    missing = pd.concat([S, S.iloc[:1].assign(pay=np.nan)], ignore_index=True)
    given = {"factual": X, "space": SPACE, "model": model, "target": 1, "data": DATA, "seconds": 1.0, "neighbours": 2}
    found, without = suite("carla2021", missing, **given), suite("carla2021", S, **given)

    assert found["success_rate"] == 4 / 5
    assert found.drop("success_rate").to_dict() == without.drop("success_rate").to_dict()
    nobody = suite("carla2021", missing.iloc[4:], **given)
    assert nobody["success_rate"] == 0
    assert nobody.drop(["success_rate", "avg_time"]).isna().all()


def test_copa2022_by_hand():
    # in encoded columns: distances 3 and 5 from 0, and 4 apart: K = [[1.0001, 1/5], [1/5, 1.0001]]
    plan, models = [[3.0, 0.0], [3.0, 4.0]], [lambda rows, m=m: rows[:, 0] + rows[:, 1] > m for m in (2, 5, 9)]
    found = suite("copa2022", plan, factual=[0.0, 0.0], model=models[0], models=models, target=True)

    assert found.to_dict() == approx(
        proximity=4.0, diversity=1.0001**2 - 1 / 25, empirical_validity=1 / 3, current_validity=1.0
    )
    assert suite("copa2022", plan[:1], factual=[0.0, 0.0], missing="nan")["diversity"] == pytest.approx(1.0001)


def test_copa2022_encodes_raw_rows():
    found = suite("copa2022", S.iloc[:2], factual=X, space=SPACE, data=DATA, missing="nan")

    # row 1: 1/2; row 2: 1/2, 1, 1, 1; apart: 1/2, 1/2, 1, 1, 1
    assert found["proximity"] == pytest.approx((0.5 + math.sqrt(3.25)) / 2)
    assert found["diversity"] == pytest.approx(1.0001**2 - 1 / (1 + math.sqrt(3.5)) ** 2)


def test_a_constant_intercept_changes_nothing_in_copa2022():
    plan, x = np.array([[3.0, 0.0], [3.0, 4.0]]), np.zeros((1, 2))
    with_one = [np.hstack([np.ones((len(rows), 1)), rows]) for rows in (plan, x)]
    first = suite("copa2022", plan, factual=x, missing="nan")

    assert (
        suite("copa2022", with_one[0], factual=with_one[1], missing="nan").dropna().to_dict()
        == first.dropna().to_dict()
    )


def test_leofante_potyka2024_by_hand():
    S, others = [[3.0, 0.0], [3.0, 4.0]], [[3.0, 1.0]]
    found = suite(
        "leofante_potyka2024", S, factual=[0.0, 0.0], model=lambda rows: rows[:, 0] > 1, others=others, seconds=2.0
    )

    # from S the other is 1 and 3 away, from it 1
    assert found.to_dict() == approx(
        validity=1.0,
        k_distance_l1=5.0, k_diversity_l1=4.0, set_distance_sum_l1=(2 + 1) / 2, set_distance_max_l1=(3 + 1) / 2,
        k_distance_l2=4.0, k_diversity_l2=4.0, set_distance_sum_l2=(2 + 1) / 2, set_distance_max_l2=(3 + 1) / 2,
        time=2.0,
    )  # fmt: skip


def test_leofante_potyka2024_has_zero_for_one_counterfactual_and_one_failure_spoils_the_set():
    given = {"factual": [0.0], "model": lambda rows: rows[:, 0] > 1, "seconds": 0.0}
    found = suite("leofante_potyka2024", [[2.0]], others=[[3.0], [0.5]], **given)
    alone = suite("leofante_potyka2024", [[2.0]], missing="nan", **given)

    assert found["k_diversity_l1"] == found["k_diversity_l2"] == 0
    assert found["validity"] == 0  # one of the other set keeps the label of the factual
    assert alone["validity"] == 1
    assert alone[["set_distance_sum_l1", "set_distance_max_l2"]].isna().all()


# ---- what they need --------------------------------------------------------------------------------------------------
EVERYTHING = {
    "factual": X, "space": SPACE, "model": model, "target": 1, "data": DATA, "models": [model], "others": S,
    "seconds": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_takes_everything_and_gives_a_number_for_each_metric(name):
    found = suite(name, S, **EVERYTHING)

    assert found.name == name
    assert found.dtype == np.float64
    assert list(found.index) == list(suites().loc[name].index)
    assert found.notna().all()
    assert found.attrs["suite"] == name
    assert found.attrs["better"] == suites().loc[name]["better"].to_dict()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", SUITES)
def test_what_a_metric_needs_is_named_and_without_it_only_that_metric_is_nan(name):
    full = suite(name, S, **EVERYTHING)
    for measure in SUITES[name]:
        for need in measure.needs:
            word = {"mad": "data", "range": "data", "classes": "model"}.get(need, need)
            rest = {key: value for key, value in EVERYTHING.items() if key != word}
            if word == "space":  # then columns are taken as they are, which text cannot be
                continue
            with pytest.raises(
                InvalidTypeError, match=f"suite\\('{name}'\\) needs {word} for \\w+, but {word} is None"
            ):
                suite(name, S, **rest)
            found = suite(name, S, missing="nan", **rest)
            lost = {m.name for m in SUITES[name] if m.missing(_evidence(rest)) is not None}
            assert measure.name in lost
            assert set(found[found.isna()].index) == lost
            kept = [key for key in full.index if key not in lost and (key, word) != ("validity", "others")]
            assert found[kept].to_dict() == full[kept].to_dict()


def _evidence(given):
    from ceopt.metrics.people import Evidence

    return Evidence(S=S, **given)


def test_every_need_is_a_keyword():
    known = {
        "factual",
        "space",
        "model",
        "target",
        "data",
        "labels",
        "others",
        "models",
        "seconds",
        "mad",
        "range",
        "classes",
    }

    for measures in SUITES.values():
        assert len({measure.name for measure in measures}) == len(measures)
        assert {need for measure in measures for need in measure.needs} <= known
        assert {measure.better for measure in measures} <= {"higher", "lower"}


def test_suites_are_listed_with_the_functions_that_exist():
    import ceopt.metrics

    table = suites()
    named = {word.partition("(")[0].split()[0] for word in table["function"]}

    assert list(dict.fromkeys(table.index.get_level_values("suite"))) == [
        "dice2020", "carla2021", "ce_ocl2022", "copa2022", "leofante_potyka2024"
    ]  # fmt: skip
    assert named - {"encoded"} <= set(ceopt.metrics.__all__)
    assert table.loc[("carla2021", "ynn"), "needs"] == "data, model or labels, target"
    assert (table["source"] != "").all()


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="suite is 'dice'. .*Choose from: dice2020, carla2021, ce_ocl2022"):
        suite("dice", S)
    with pytest.raises(UnknownNameError, match="suite is None"):
        suite(None, S)
    with pytest.raises(UnknownNameError, match="missing is 'ignore'. Choose from: raise, nan"):
        suite("dice2020", S, missing="ignore")


def test_no_counterfactual():
    with pytest.raises(InvalidValueError, match="suite\\('dice2020'\\) needs a counterfactual, but there is none"):
        suite("dice2020", S.iloc[:0], **EVERYTHING)
    found = suite("dice2020", S.iloc[:0], missing="nan", **EVERYTHING)
    assert found["validity"] == 0
    assert found.drop("validity").isna().all()


# ---- solution sets and cohorts ---------------------------------------------------------------------------------------
PEOPLE = FeatureSpace(
    [Feature("pay", kind="integer", lower=0, upper=9), Feature("debt", kind="integer", lower=0, upper=9)]
)
BANK = Affine([1.0, -1.0], -3.5, labels=("no", "yes"))
ROWS = pd.DataFrame({"pay": [2, 1, 9, 3], "debt": [0, 1, 0, 9]}, index=["ann", "bob", "cyd", "dan"])


def explained(row, **more):
    return ceopt.explain(BANK, row, PEOPLE, target="yes", **more)


def test_a_solution_set_knows_its_factual_its_time_and_how_many_were_asked_for():
    result = explained(ROWS.loc["ann"], n=3, diversity="pool")
    found = result.metrics("leofante_potyka2024", model=BANK, others=explained(ROWS.loc["bob"], n=2, diversity="pool"))
    by_hand = suite("dice2020", result.to_frame(), factual=ROWS.loc["ann"], space=PEOPLE, model=BANK, target="yes",
                    data=ROWS, n=3)  # fmt: skip

    assert found["time"] == result.timings["total"]
    assert found["validity"] == 1
    assert found["k_distance_l1"] == suite("leofante_potyka2024", result, missing="nan")["k_distance_l1"]
    dice = result.metrics("dice2020", space=PEOPLE, model=BANK, target="yes", data=ROWS)
    assert dice.to_dict() == pytest.approx(by_hand.to_dict(), nan_ok=True)
    assert (
        result.metrics("dice2020", space=PEOPLE, model=BANK, target="yes", data=ROWS, n=6)["validity"]
        == len(result) / 6
    )


def test_an_empty_solution_set_says_why():
    favourable, never = explained(ROWS.loc["cyd"]), explained({"pay": 0, "debt": 9}, constraints=[ceopt.MaxChanges(0)])

    for result in (favourable, never):
        with pytest.raises(InvalidValueError, match="needs a counterfactual, but there is none"):
            result.metrics("dice2020", space=PEOPLE, model=BANK, target="yes", data=ROWS)
    assert never.reason
    with pytest.raises(InvalidValueError, match=re.escape(never.reason)):
        never.metrics("copa2022")
    assert never.metrics("copa2022", missing="nan").isna().all()


def test_what_a_solution_set_cannot_know_is_asked_for():
    with pytest.raises(InvalidTypeError, match="needs model for validity, but model is None. Pass model="):
        explained(ROWS.loc["ann"]).metrics("ce_ocl2022")


@pytest.fixture(scope="module")
def cohort():
    recourse = ceopt.Recourse(BANK, PEOPLE, target="yes", n=2, constraints=[ceopt.MaxChanges(1)]).fit(ROWS)
    return recourse.explain(ROWS)


def test_a_cohort_gives_a_row_for_each_and_their_mean(cohort):
    found = suite("dice2020", cohort, space=PEOPLE, model=BANK, target="yes", data=ROWS)
    each = {
        result.query_id: result.metrics("dice2020", space=PEOPLE, model=BANK, target="yes", data=ROWS)
        for result in cohort
        if len(result)
    }

    assert list(found.index) == [*ROWS.index, "mean"]
    assert found.index.name == "query_id"
    assert {"ann", "bob"} <= each.keys() < set(ROWS.index)
    for person, row in each.items():
        assert found.loc[person].to_dict() == pytest.approx(row.to_dict(), nan_ok=True)
    # cyd is favourable already and has no counterfactual: none of two, and nothing else to measure
    assert found.loc["cyd", "validity"] == 0
    assert found.loc["cyd"].drop("validity").isna().all()
    assert found.loc["mean", "validity"] == pytest.approx(found["validity"].iloc[:-1].mean())
    assert found.loc["mean", "sparsity"] == pytest.approx(np.mean([row["sparsity"] for row in each.values()]))
    assert found.attrs["counted"]["validity"] == 4
    assert found.attrs["counted"]["sparsity"] == len(each)


def test_the_frame_of_a_cohort_gives_the_same(cohort):
    given = {"space": PEOPLE, "model": BANK, "target": "yes", "data": ROWS, "n": 2}
    found = suite("dice2020", cohort.to_frame(), factual=ROWS, **given)
    bare = suite("dice2020", cohort.to_frame(), factual=ROWS, **{**given, "space": None})

    pd.testing.assert_frame_equal(found, suite("dice2020", cohort, **given))
    pd.testing.assert_frame_equal(found, bare)


def test_frames_of_other_libraries_may_count_from_zero():
    S = pd.DataFrame(
        {"pay": [5, 6, 7.0, np.nan]}, index=pd.MultiIndex.from_tuples([("ann", 0), ("ann", 1), ("bob", 0), ("cyd", 0)])
    )
    factual = pd.DataFrame({"pay": [4, 5, 6]}, index=["ann", "bob", "cyd"])
    found = suite("copa2022", S, factual=factual, missing="nan")

    assert found["proximity"].to_dict() == pytest.approx(
        {"ann": 1.5, "bob": 2.0, "cyd": math.nan, "mean": 1.75}, nan_ok=True
    )


def test_sets_of_moved_people_are_matched_by_label(cohort):
    others = cohort.to_frame().iloc[::-1]
    seconds = pd.Series(dict.fromkeys(ROWS.index, 2.0))
    found = suite("leofante_potyka2024", cohort, others=others, model=BANK, seconds=seconds)

    assert found.loc[["ann", "bob"], ["set_distance_sum_l1", "set_distance_max_l2"]].eq(0).all(axis=None)
    assert found.loc["mean", "set_distance_sum_l1"] == 0
    assert found.loc["ann", "time"] == 2
    assert (
        suite("leofante_potyka2024", cohort, others=cohort, model=BANK).loc["ann", "time"] == cohort[0].timings["total"]
    )


def test_people_that_cannot_be_told_apart_or_found(cohort):
    frame = cohort.to_frame()

    with pytest.raises(InvalidValueError, match="a factual row for each person, but 'bob' has none"):
        suite("ce_ocl2022", frame, factual=ROWS.drop("bob"), model=BANK)
    with pytest.raises(InvalidValueError, match="'mean' is one of"):
        suite("ce_ocl2022", frame.rename(index={"ann": "mean"}), factual=ROWS.rename(index={"ann": "mean"}), model=BANK)
    with pytest.raises(InvalidTypeError, match="a set of others for each person, but others is list"):
        suite("leofante_potyka2024", cohort, others=[[1, 2]], model=BANK)
    with pytest.raises(InvalidValueError, match="one set of others for each person, but 'ann' has 0"):
        suite("leofante_potyka2024", cohort, others=frame.drop(index="ann", level=0), model=BANK)
    with pytest.raises(InvalidValueError, match="the seconds of each person, but 'ann' has none"):
        suite("carla2021", cohort, seconds={"bob": 1.0}, missing="nan")
    with pytest.raises(InvalidValueError, match="needs a person, but there is none"):
        suite("ce_ocl2022", frame.iloc[:0], factual=ROWS, model=BANK)
    with pytest.raises(InvalidValueError, match="one set of others for each person, but 'ann' has 2"):
        suite("leofante_potyka2024", cohort, others=_renamed(), model=BANK)


def _renamed():
    return ceopt.Recourse(BANK, PEOPLE, target="yes").fit(ROWS).explain(ROWS.rename(index={"bob": "ann"}))


def test_labels_of_a_cohort_may_repeat():
    found = suite("leofante_potyka2024", _renamed(), others=_renamed(), model=BANK)

    assert list(found.index) == ["ann", "ann", "cyd", "dan", "mean"]
    # 2 -> 4 and 1 -> 5 over 0 and 1 of debt: either person has their own
    assert found["k_distance_l1"].iloc[:2].tolist() == [2, 4]
    assert found["set_distance_sum_l1"].iloc[:2].tolist() == [0, 0]


def test_a_fitted_model_sees_a_cohorts_frame_as_it_was_fitted(cohort):
    fitted = LogisticRegression().fit(ROWS, ["no", "no", "yes", "no"])

    assert "Int64" in map(str, cohort.to_frame().dtypes)
    found = suite("ce_ocl2022", cohort.to_frame(), factual=ROWS, model=fitted, target="yes")
    assert found.loc[["ann", "bob"], "validity"].isin([0.0, 0.5, 1.0]).all()


def test_an_answer_that_is_all_missing_is_a_failure_unless_a_cohort_says_that_there_is_none():
    S = pd.DataFrame({"pay": [5, np.nan]}, index=pd.MultiIndex.from_tuples([("ann", 1), ("ann", 2)]))
    factual = pd.DataFrame({"pay": [4]}, index=["ann"])

    assert suite("carla2021", S, factual=factual, missing="nan").loc["ann", "success_rate"] == 1 / 2
    none = S.iloc[1:].rename(index={2: 0})
    assert suite("carla2021", none, factual=factual, missing="nan").loc["ann", "success_rate"] == 0


def test_a_function_sees_a_cohorts_whole_numbers_as_they_were(cohort):
    seen = []

    def answer(rows):
        seen.append({*map(str, rows.dtypes)})
        return np.ones(len(rows), dtype=int)

    suite("ce_ocl2022", cohort.to_frame(), factual=ROWS, model=answer)

    assert seen
    assert all(dtypes == {"int64"} for dtypes in seen)


def test_a_constant_column_is_divided_by_one_as_a_min_max_scaler_does():
    space = FeatureSpace([Feature("pay", kind="continuous"), Feature("debt", kind="continuous")])
    found = suite(
        "carla2021", [[5.0, 4.0]], factual=[5.0, 7.0], space=space, data=[[5.0, 7.0], [9.0, 7.0]], missing="nan"
    )

    assert found[["l1_distance", "l2_distance"]].tolist() == [3, 9]


def test_a_fall_is_as_far_as_a_rise():
    found = suite("carla2021", [[-3.0, 1.0]], factual=[0.0, 0.0], missing="nan")

    assert found[[f"{norm}_distance" for norm in ("l0", "l1", "l2", "linf")]].tolist() == [2, 4, 10, 3]


def test_neighbours_of_carla2021_are_euclidean():
    # from 0: (3, 3) is 4.24 away and 6 in l1, (0, 5) is 5 and 5
    given = {"data": [[3.0, 3.0], [0.0, 5.0]], "labels": [True, False], "target": True, "neighbours": 1}

    assert suite("carla2021", [[0.0, 0.0]], missing="nan", **given)["ynn"] == 1
