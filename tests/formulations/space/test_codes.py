"""Codes: values that are no amounts. Nobody becomes one; who stands on one may stay, or become an amount."""

from __future__ import annotations

import itertools
import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt.diverse import DiverseRobustExplainer
from ceopt.formulations.costs.mahalanobis import covariance_of
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.space.reachable import reach_of
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.surrogates import LocalSurrogateRecourse, ScaledColumns
from ceopt.surrogates.rivals import question_of
from ceopt.surrogates.scaled_columns import ScaledFrame
from ceopt.surrogates.surrogate_program import action_grid

SPACE = FeatureSpace(
    [
        Feature("inquiries", kind="integer", lower=0, upper=6, codes=[-9, -8]),
        Feature("worst", kind="ordinal", levels=(-9, 0, 1, 2), codes=(-9,)),
        Feature("burden", kind="integer", lower=0, upper=4),
    ]
)
#: Who stands on a code of levels.
CODED = {"inquiries": 2, "worst": -9, "burden": 3}
LENIENT = Affine([-1.0, 0.1, -1.0], 2.5, labels=("no", "yes"))
#: Fewer inquiries and less burden are favourable, and so are the codes of inquiries, to the model.
MODEL = Affine([-1.0, 0.4, -1.0], 0.5, labels=("no", "yes"))


def reached(row: dict[str, int]) -> list[tuple[float, ...]]:
    """Every favourable point in reach of a person, by the words of the rule."""
    columns = {"inquiries": range(7), "worst": (0, 1, 2), "burden": range(5)}
    for name, codes in (("inquiries", (-9, -8)), ("worst", (-9,))):
        if row[name] in codes:
            columns[name] = (row[name],)
    found = []
    for point in itertools.product(*columns.values()):
        if 0.5 - point[0] + 0.4 * point[1] - point[2] >= 0:
            found.append(point)
    return found


PEOPLE = [
    {"inquiries": inquiries, "worst": worst, "burden": burden}
    for inquiries, worst, burden in [(5, 2, 3), (-9, 2, 4), (4, 1, 1), (1, 1, 2), (6, 0, 4)]
]


@pytest.mark.parametrize("row", PEOPLE, ids=str)
@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
def test_answers_are_those_of_enumeration_without_the_codes(row):
    result = ceopt.explain(MODEL, row, SPACE, target="yes", cost=ceopt.L1(scale="none"))
    if row["inquiries"] < 0:  # favourable by the code alone
        assert result.status == "already_favourable"
        return
    costs = []
    for point in reached(row):
        moves = [abs(a - b) for a, b in zip(point, row.values(), strict=True)]
        levels = [SPACE["worst"].levels.index(value) for value in (point[1], row["worst"])]
        costs.append(moves[0] + abs(levels[0] - levels[1]) / 2 + moves[2])
    assert result[0].cost == pytest.approx(min(costs), rel=1e-6)
    assert tuple(result[0].values) in reached(row)
    assert ceopt.verify(result, MODEL, SPACE, target="yes").ok


def test_who_stands_on_one_stays_where_that_is_least_and_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ceopt.explain(LENIENT, CODED, SPACE, target="yes")
        ceopt.explain(LENIENT, CODED, SPACE.fix("worst"), target="yes")
    assert result[0].values["worst"] == -9


def test_a_cohort_of_people_on_codes_is_asked_about_without_a_warning():
    people = pd.DataFrame([*PEOPLE, CODED])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cohort = ceopt.Recourse(MODEL, SPACE, target="yes").fit(people).explain(people)
    assert not [result.reason for result in cohort if result.status == "error"]


def test_verify_holds_answers_to_them():
    def broken(after: dict[str, int], before: dict[str, int] | None) -> tuple[str, ...]:
        report = ceopt.verify([after], LENIENT, SPACE, target="yes", factual=before)
        found: tuple[str, ...] = report.to_frame()["broken"][0]
        return found

    start = {"inquiries": 3, "worst": 2, "burden": 0}
    assert broken(start | {"inquiries": -9}, start) == ("inquiries: must not become -9, which is a code",)
    on_code = {"inquiries": 1, "worst": -9, "burden": 3}
    assert broken(on_code | {"worst": 0, "burden": 0}, on_code) == ()
    assert broken(on_code | {"inquiries": -8}, on_code) == ("inquiries: must not become -8, which is a code",)
    assert broken(on_code | {"burden": 0}, on_code) == ()
    assert broken(on_code | {"burden": 0}, None) == ()


def test_a_number_beyond_the_bounds_that_is_no_code_is_asked_about_unless_it_lies_beyond_one():
    assert SPACE.row(PEOPLE[0] | {"inquiries": -7})["inquiries"] == -7.0
    with pytest.raises(InvalidValueError, match="beyond none of its codes, but its value is -12"):
        ceopt.explain(MODEL, PEOPLE[0] | {"inquiries": -12}, SPACE, target="yes")


def test_why_nothing_is_possible_names_the_code():
    model = Affine([-1.0, -1.0, -1.0], -10.0, labels=("no", "yes"))
    space = SPACE.update("inquiries", fill=math.inf)
    result = ceopt.explain(model, PEOPLE[1] | {"worst": 0, "burden": 0}, space, target="yes")
    assert result.status == "infeasible"
    assert ("inquiries: on a code", "inquiries must stay -9") in [rule[:2] for rule in result.conflict]


@pytest.mark.parametrize(
    ("code", "held", "model"),
    [
        (-9, {"mutable": False}, Affine([1.0, 1.0], -3.5, labels=("no", "yes"))),
        (99, {"direction": "up"}, Affine([-1.0, 1.0], 5.5, labels=("no", "yes"))),
    ],
)
def test_a_code_is_not_all_that_holds_a_column_that_is_fixed_or_moves_one_way(code, held, model):
    """With every rule of ``late`` left out, its amounts reach the target: ``other`` alone is not in conflict."""
    late = Feature("late", kind="integer", lower=0, upper=9, codes=[code], fill=math.inf, **held)
    space = FeatureSpace([late, Feature("other", kind="integer", lower=0, upper=9, mutable=False)])
    result = ceopt.explain(model, {"late": code, "other": 2}, space, target="yes")
    assert result.status == "infeasible"
    names = {name for name, _, _ in result.conflict}
    assert "other: fixed" in names
    assert any(name.startswith("late: ") for name in names), result.reason


def test_update_names_them():
    space = FeatureSpace.infer(pd.DataFrame({"x": [-9, 0, 3, 7], "y": [0.5, 1.0, 2.0, 4.0]}))
    bounded = space.update("x", lower=0, codes=[-9])
    assert (bounded["x"].codes, bounded["x"].lower, bounded["x"].upper) == ((-9,), 0, 7)
    assert bounded.update("x", codes=[])["x"].codes == ()
    assert "0 .. ~7 (codes -9)" in str(bounded)
    assert bounded.to_frame().loc["x", "codes"] == (-9,)
    assert "~-9 .. ~7 (codes -9)" in str(space.update("x", codes=[-9]))  # without data the bounds stay
    with pytest.raises(InvalidValueError, match="'y' needs a step beside codes"):
        space.update("y", kind="continuous", codes=[-9])
    with pytest.raises(InvalidTypeError, match="'x' needs numbers as codes, but one is 'none'"):
        space.update("x", codes=["none"])
    with pytest.raises(InvalidTypeError, match="codes in a list"):
        space.update("x", codes=5)
    with pytest.raises(InvalidValueError, match="codes that are levels, but 5 is none"):
        SPACE.update("worst", codes=[5])
    with pytest.raises(InvalidValueError, match="a level that is no code"):
        Feature("g", kind="binary", levels=(0, 1), codes=(0, 1))


def test_files_keep_them_and_files_of_earlier_releases_have_none():
    assert FeatureSpace.from_json(SPACE.to_json()) == SPACE
    document = json.loads(SPACE.to_json())
    for feature in document["features"]:
        del feature["codes"]
    assert [feature.codes for feature in FeatureSpace.from_json(json.dumps(document))] == [(), (), ()]


def test_black_boxes_leave_them_alone():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {
            "inquiries": rng.choice([-9, -8, 0, 1, 2, 3, 4, 5, 6], 200),
            "worst": rng.choice([-9, 0, 1, 2], 200),
            "burden": rng.integers(0, 5, 200),
        }
    )

    def says(rows: pd.DataFrame) -> list[str]:
        return ["yes" if value <= 2 else "no" for value in rows["inquiries"] + rows["burden"]]

    for row in (PEOPLE[0], {"inquiries": 6, "worst": -9, "burden": 4}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = ceopt.explain(says, row, SPACE, target="yes", data=data, surrogate=LocalSurrogateRecourse())
        assert len(result) == 1
        for answer in result:
            assert answer.values["inquiries"] >= 0
            assert (answer.values["worst"] == -9) is (row["worst"] == -9)


def test_what_a_network_advises_is_put_off_codes():
    rows = np.array([[5.0, 3.0, 3.0], [-9.0, 0.0, 4.0]])
    people = pd.DataFrame({"inquiries": [5, -9, 0], "worst": [2, -9, 1], "burden": [3, 4, 4]})
    columns = ScaledFrame.of("test", SPACE, people)
    wanted = columns.encoded(np.array([[-9.0, 0.0, 1.0], [2.0, 2.0, 1.0]]))
    found = columns.legal(wanted, rows)
    assert found[0].tolist() == [0.0, 3.0, 1.0]
    assert found[1].tolist() == [-9.0, 0.0, 1.0]
    low, high = columns.room(rows)
    assert low[1, 0] == high[1, 0] == columns.encoded(rows)[1, 0]


def test_a_level_that_is_a_code_is_left_where_that_pays_and_never_taken():
    low_is_good = Affine([0.0, -1.0, -0.1], -0.5, labels=("no", "yes"))
    found = ceopt.explain(low_is_good, {"inquiries": 0, "worst": 2, "burden": 0}, SPACE, target="yes", why=False)
    assert found.status == "infeasible"  # -9 alone would do
    high_is_good = Affine([0.0, 1.0, -0.1], -1.5, labels=("no", "yes"))
    found = ceopt.explain(high_is_good, CODED, SPACE, target="yes", why=False)
    assert found[0].values["worst"] in {1, 2}
    assert found[0].cost == pytest.approx(1.0)  # what filling in costs, wherever it lands
    assert ceopt.explain(high_is_good, CODED | {"worst": 0}, SPACE, target="yes").status == "optimal"


def test_a_number_that_is_a_code_is_left_where_that_pays():
    many_are_good = Affine([1.0, 0.0, -0.1], -1.5, labels=("no", "yes"))
    row = {"inquiries": -9, "worst": 1, "burden": 2}
    found = ceopt.explain(many_are_good, row, SPACE, target="yes", why=False)
    assert found[0].values["inquiries"] >= 2
    assert found[0].cost == pytest.approx(1.0)
    assert (
        ceopt.explain(many_are_good, row, SPACE.update("inquiries", fill=np.inf), target="yes").status == "infeasible"
    )
    assert ceopt.explain(many_are_good, row | {"inquiries": 0}, SPACE, target="yes").status == "optimal"


# ---- scales are those of the amounts ---------------------------------------------------------------------------------
#: "late" holds amounts in the first rows, and a code in the last; "debt" is known of all.
AMOUNTS = pd.DataFrame({"late": [0, 1, 1, 2, 3, 5, 8, 2], "debt": [3.0, 1.0, 4.0, 1.5, 9.0, 2.5, 6.0, 5.0]})
ON_CODES = pd.DataFrame({"late": [-9, 98, -8, 98], "debt": [7.0, 2.0, 2.0, 8.5]})
BOTH = pd.concat([AMOUNTS, ON_CODES], ignore_index=True)
LATE = FeatureSpace(
    [Feature("late", kind="integer", lower=0, upper=8, codes=[-9, -8, 98]), Feature("debt", kind="continuous")]
)
#: The same without a word of codes.
PLAIN = FeatureSpace([Feature("late", kind="integer"), Feature("debt", kind="continuous")])
HERE = {"late": 5, "debt": 4.0}
MANY = Affine([1.0, 0.0], -6.0, labels=("no", "yes"))
THERE = {"late": 2, "debt": 4.0}


def test_the_scale_of_levels_counts_no_codes():
    with_code = Feature("worst", kind="ordinal", levels=(-9, 1, 2, 3), codes=(-9,))
    without = Feature("worst", kind="ordinal", levels=(1, 2, 3))
    only = Feature("worst", kind="ordinal", levels=(-9, 1), codes=(-9,))

    assert with_code.scale("range") == without.scale("range") == 2.0
    assert only.scale("range") == 1.0


def test_update_counts_scales_over_the_amounts_of_data():
    guessed = FeatureSpace.infer(BOTH, integer=["late"])
    assert guessed["late"].range == 107.0
    told = guessed.update("late", lower=0, upper=8, codes=[-9, -8, 98], data=BOTH)
    late = AMOUNTS["late"]
    assert told["late"].mad == (late - late.median()).abs().median() != guessed["late"].mad
    assert (told["late"].std, told["late"].range) == (pytest.approx(late.std(ddof=0)), 8.0)
    assert told["debt"] == guessed["debt"]
    gaps = pd.concat([BOTH, pd.DataFrame({"late": [None], "debt": [1.0]})], ignore_index=True)
    assert guessed.update("late", lower=0, upper=8, codes=[-9, -8, 98], data=gaps) == told
    both = guessed.update("late", lower=0, upper=8, codes=[-9, -8, 98]).update(["late", "debt"], data=BOTH)
    assert both == told


@pytest.mark.filterwarnings("ignore::ceopt.SpaceWarning")
def test_codes_with_data_leave_bounds_that_were_seen_to_widen():
    told = FeatureSpace.infer(BOTH, integer=["late"]).update("late", codes=[-9, -8, 98], data=BOTH)
    late = told["late"]
    assert (late.lower, late.upper, late.range) == (0, 8, 8.0)
    assert late.lower_inferred
    assert late.upper_inferred
    assert "~0 .. ~8 (codes -9, -8, 98)" in str(told)
    model = Affine([-1.0, 0.0], 9.5, labels=("no", "yes"))
    result = ceopt.explain(model, {"late": 11, "debt": 4.0}, told, target="yes")  # nobody of the data has 11
    assert result[0].values["late"] == 9
    half = FeatureSpace.infer(BOTH, integer=["late"]).update("late", upper=20, codes=[-9, -8, 98], data=BOTH)["late"]
    assert (half.lower, half.lower_inferred, half.upper, half.upper_inferred) == (0, True, 20, False)
    mine = LATE.update("late", codes=[-9], data=BOTH.query("late < 98"))["late"]  # bounds by hand stay
    assert (mine.lower, mine.upper, mine.lower_inferred, mine.upper_inferred) == (0, 8, False, False)
    tenths = pd.DataFrame({"x": [-99.0, 0.1, 0.2, 0.1 + 0.2, 0.5]})
    assert FeatureSpace.infer(tenths).update("x", codes=[-99], data=tenths)["x"].lower == 0.1


def test_codes_among_the_amounts_of_data_are_cut_out_of_them():
    guessed = FeatureSpace.infer(BOTH, integer=["late"])
    late = guessed.update("late", codes=[-8, 98], data=BOTH)["late"]
    assert (late.lower, late.upper, late.range) == (-9, 8, 17.0)
    reach = reach_of(FeatureSpace([late]), {"late": 8.0})["late"]
    assert [reach.holds(value) for value in (-9.0, -8.0, -7.0, 98.0)] == [True, False, True, False]
    with pytest.raises(InvalidTypeError, match="'late' needs numbers as codes, but one is 'none'"):
        guessed.update("late", codes=["none"], data=BOTH)
    with pytest.raises(InvalidTypeError, match="codes in a list"):
        guessed.update("late", codes=5, data=BOTH)
    with pytest.raises(InvalidValueError, match="'late' needs an amount in data"):
        guessed.update("late", codes=[-9, -8, 98], data=ON_CODES)


@pytest.mark.parametrize("kind", ["integer", "continuous"])
def test_bounds_that_were_seen_widen_no_further_than_to_a_code(kind):
    step = None if kind == "integer" else 1.0
    told = FeatureSpace.infer(BOTH, **{kind: ["late"]}).update("late", step=step, codes=[-9, -8, 98], data=BOTH)
    assert told.row({"late": 97, "debt": 4.0})["late"] == 97.0
    assert told.row({"late": 98, "debt": 4.0})["late"] == 98.0  # who stands on one is answered
    for late in (99, -10):
        with pytest.raises(InvalidValueError, match=f"'late' needs .* beyond none of its codes, .* {late}.0. Name"):
            told.row({"late": late, "debt": 4.0})
    report = ceopt.verify([{"late": 99, "debt": 4.0}], MANY, told, target="yes", factual=HERE)
    assert not report.ok


def test_answers_from_rows_of_data_are_put_off_codes_where_bounds_were_seen():
    told = FeatureSpace.infer(BOTH, integer=["late"]).update("late", codes=[-9, -8, 98], data=BOTH)
    columns = ScaledFrame.of("test", told, BOTH)
    assert columns.room(told.coordinates(BOTH[:1]))[1][0, 0] < columns.encoded(np.array([[98.0, 3.0]]))[0, 0]
    explainer = DiverseRobustExplainer(space=told).fit(BOTH)
    answers = explainer.explain(lambda rows: rows["late"] > 6, HERE, target=True)
    assert [answer.values["late"] for answer in answers]
    for answer in answers:
        assert 6 < answer.values["late"] < 98


def test_bounds_alone_and_codes_alone_change_no_scale():
    def scales(feature: Feature) -> tuple[float | None, ...]:
        return feature.mad, feature.std, feature.range

    guessed = FeatureSpace.infer(BOTH, integer=["late"])
    assert scales(guessed.update("late", lower=0, upper=3)["late"]) == scales(guessed["late"])
    assert scales(guessed.update("late", lower=0, codes=[-9])["late"]) == scales(guessed["late"])
    bounded = guessed.update("debt", upper=3.0, data=BOTH)  # what is beyond a bound is an amount all the same
    assert scales(bounded["debt"]) == scales(guessed["debt"])


def test_update_refuses_data_that_say_nothing_of_a_column():
    with pytest.raises(InvalidTypeError, match="a DataFrame as data, but data is list"):
        LATE.update("late", data=[1, 2])
    with pytest.raises(UnknownNameError, match="'late'"):
        LATE.update("late", data=AMOUNTS[["debt"]])
    with pytest.raises(
        InvalidValueError, match="'late' needs an amount in data, but each cell is missing or holds a code"
    ):
        LATE.update("late", data=ON_CODES)
    with pytest.raises(InvalidTypeError, match="'late' needs (a number|numbers)"):
        LATE.update("late", data=pd.DataFrame({"late": ["a", "b"]}))


def lime_of(space: FeatureSpace, data: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    asked = question_of("t", lambda rows: rows["late"] > 3, HERE, data, target=True, space=space, sample=None)
    return asked.moments()


@pytest.mark.parametrize(
    "learned",
    [
        lambda space, data: covariance_of("t", space, data).to_numpy(),
        lambda space, data: ceopt.Percentile("max", data).table(HERE, {"late": [2, 8]}, space=space)["late"],
        lambda space, data: ceopt.Percentile("total_log", data).table(HERE, {"late": [2, 8]}, space=space)["late"],
        lambda space, data: ceopt.metrics.cost(HERE, [THERE], space, ceopt.Percentile("max"), data=data),
        lambda space, data: ceopt.metrics.cost(HERE, [THERE], space, ceopt.Percentile("total_log"), data=data),
        lambda space, data: ceopt.metrics.cost(HERE, [THERE], space, "mahalanobis", data=data),
        lambda space, data: ceopt.metrics.distance(HERE, [THERE], space=space, scale="mad", data=data),
        lambda space, data: ceopt.metrics.distance(HERE, [THERE], space=space, scale="std", data=data),
        lambda space, data: ceopt.metrics.gower(HERE, [THERE], space=space, data=data),
        lambda space, data: ScaledColumns.of(space, data).scales[0],
        lambda space, data: (ScaledFrame.of("t", space, data).least[0], ScaledFrame.of("t", space, data).width[0]),
        lambda space, data: action_grid(space.fix("debt"), space.row(HERE), data).values["late"],
        lambda space, data: [moment[0] for moment in lime_of(space, data)],
        lambda space, data: ScaledColumns.of(space, data, "none").diameter(space.coordinates(data)),
    ],
    ids=[
        "covariance", "percentile", "total_log", "percentile of metrics", "total_log of metrics", "mahalanobis", "mad",
        "std", "gower", "scaled columns", "scaled frame", "action grid", "lime",
        "diameter",
    ],
)  # fmt: skip
def test_people_on_codes_change_nothing_that_is_learned_of_the_amounts(learned):
    of_amounts = learned(LATE, AMOUNTS)
    assert np.allclose(learned(LATE, BOTH), of_amounts, rtol=1e-12, atol=0.0)
    of_all = learned(PLAIN, BOTH)
    assert np.shape(of_all) != np.shape(of_amounts) or not np.allclose(of_all, of_amounts, rtol=1e-3, atol=0.0)


def test_programs_with_a_percentile_agree_with_enumeration_over_the_amounts():
    model = Affine([-1.0, 0.0], 2.5, labels=("no", "yes"))
    space = LATE.fix("debt")
    found = ceopt.explain(model, HERE, space, target="yes", cost=ceopt.Percentile("max"), data=BOTH)[0]
    late = AMOUNTS["late"]
    shares = {value: ((late <= value).sum() + 0.5) / (len(late) + 2) for value in range(9)}
    assert found.cost == pytest.approx(min(abs(shares[value] - shares[5]) for value in (0, 1, 2)))
    stays = ceopt.Percentile("max", BOTH).value(space, {"late": -9.0, "debt": 1.0}, {"late": -9.0, "debt": 1.0})
    assert stays == 0.0


@pytest.mark.parametrize(
    "learned",
    [
        lambda data: covariance_of("t", LATE, data),
        lambda data: ceopt.metrics.distance(HERE, [THERE], space=LATE, scale="mad", data=data),
        lambda data: ScaledFrame.of("t", LATE, data),
    ],
    ids=["covariance", "metrics", "network"],
)
def test_data_of_codes_alone_are_refused(learned):
    with pytest.raises(InvalidValueError, match="code"):
        learned(ON_CODES)
    assert ScaledColumns.of(LATE, ON_CODES).scales[0] == 8.0  # upper less lower, where no data say more


@pytest.mark.parametrize(
    ("codes", "options", "words"),
    [
        ([-9], {"dtype": "uint8"}, "codes that its cells can hold, whole numbers from 0 to 255, but a code is -9"),
        ([98.5], {}, "codes that its cells can hold, .*but a code is 98.5"),
        ([10**400], {}, "codes that its cells can hold"),
        ([0, 1, 2], {"lower": 0, "upper": 2}, "an amount that is no code, but each whole number from 0 to 2 is a code"),
    ],
)
def test_codes_that_leave_nothing_or_that_no_cell_holds_are_refused(codes, options, words):
    with pytest.raises(InvalidValueError, match=words):
        Feature("late", kind="integer", codes=codes, **options)


def test_that_missing_cells_stay_says_what_codes_do():
    space = FeatureSpace([Feature("late", kind="integer", lower=0, upper=9, codes=[98])])
    with pytest.warns(ceopt.SpaceWarning, match="codes of 'late' may still become amounts"):
        space.update("late", missing="stays")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        space.update("late", missing="stays", fill=math.inf)


def test_codes_between_ordered_numbers_are_no_step_on_the_way():
    space = FeatureSpace([Feature("agrees", kind="ordinal", levels=(1, 2, 3, 4, 5), codes=(3,), max_up=1)])
    model = Affine([1.0], -3.5, labels=("no", "yes"))
    result = ceopt.explain(model, {"agrees": 2}, space, target="yes")

    assert space["agrees"].levels == (1, 2, 4, 5, 3)
    assert FeatureSpace.from_json(space.to_json()) == space
    assert result.status is ceopt.Status.OPTIMAL
    assert result[0].values["agrees"] == 4


def test_words_that_are_codes_stand_at_an_end_of_the_order():
    with pytest.raises(InvalidValueError, match=r"codes at an end of its levels, but '\?' stands between 'a' and 'c'"):
        Feature("grade", kind="ordinal", levels=("a", "?", "c"), codes=("?",))


def test_a_code_that_no_amount_can_take_the_place_of_stays():
    space = FeatureSpace(
        [
            Feature("held", kind="continuous", lower=2, upper=2, step=1, codes=(2.0,)),
            Feature("sparse", kind="integer", lower=0, upper=5, step=10, codes=(0,)),
            Feature("free", kind="integer", lower=0, upper=9),
        ]
    )
    person = {"held": 2, "sparse": 0, "free": 1}
    result = ceopt.explain(Affine([1.0, 1.0, 1.0], -5.5, labels=("no", "yes")), person, space, target="yes")
    linked = space.update("sparse", codes=(0, 7), codes_in_reach=True)

    assert result[0].changed == ("free",)
    assert result[0].values["free"] == 4
    with pytest.raises(InvalidValueError, match="Column 'sparse' needs an amount that can be filled in"):
        reach_of(linked, linked.row(person))
