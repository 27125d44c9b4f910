"""The pictures of one person's answers: what is drawn is what the numbers say."""

from __future__ import annotations

import string
import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from drawn import arrows, names, offsets, outside, overlapping, texts
from matplotlib import pyplot as plt

import ceopt
from ceopt import Feature, FeatureSpace, SolutionSet
from ceopt.pictures.canvas import CAPTIONS
from ceopt.pictures.surface import decisions
from ceopt.pictures.svg import svg
from ceopt.words import LANGUAGES

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0.0, upper=50.0, mad=2.0, unit="k$"),
        Feature("age", kind="integer", lower=18, upper=99, mad=4.0),
        Feature("_size", kind="ordinal", levels=("S", "M", "L")),
        Feature("job", kind="categorical", levels=("cook", "clerk", "nurse")),
        Feature("owner", kind="binary", levels=(False, True)),
    ]
)
ROW = {"income": 5.0, "age": 30, "_size": "L", "job": "nurse", "owner": False}
FIRST = {"income": 9.0, "age": 28, "_size": "M", "job": "cook"}
SECOND = {"income": 6.5, "owner": True}


def score(rows):
    """A function of rows in the place of a regressor."""
    return (rows["income"] + rows["age"] / 2.0).to_numpy()


def decide(rows):
    """The same in the place of a classifier."""
    return np.where(score(rows) >= 22.5, "good", "bad")


def answer(rank, changes, **more):
    return ceopt.Counterfactual(
        values=SPACE.frame([SPACE.row(ROW | changes)]), cost=float(rank), prediction="good", score=1.0, slack=1.0,
        changed=tuple(changes), verified=True, rank=rank, bound=None, gap=None, **more,
    )  # fmt: skip


def a_set(*answers, **more):
    given = {"status": "optimal", "factual": SPACE.frame([SPACE.row(ROW)]), "target": "good", "space": SPACE}
    return SolutionSet(counterfactuals=answers, **(given | more))


@pytest.fixture
def result():
    return a_set(answer(1, FIRST), answer(2, SECOND))


# ---- languages -------------------------------------------------------------------------------------------------------
def test_a_picture_speaks_german_and_writes_numbers_so():
    rich = {"income": 1500.5, "owner": True, "job": "cook"}
    space = SPACE.update("income", upper=5000.0)
    found = a_set(replace(answer(1, {}), values=space.frame([space.row(ROW | rich)]), changed=tuple(rich)), space=space)

    ax = found.plot(language="de")
    lines = found.plot("parallel", language="de")
    surface = found.plot("surface", columns=["income", "age"], model=decide, language="de")

    assert ax.get_title("left") == "Weg 1 von 1: good, Kosten 1"
    assert texts(ax) == ["5", "1.500,5", "nurse", "cook", "Nein", "Ja"]
    assert ax.get_xlabel().startswith("Änderung / ")
    assert lines.get_title("left").startswith("Alle Wege: good; ")
    assert [text.get_text() for text in lines.get_legend().get_texts()] == ["wie es ist", "Weg 1, Kosten 1"]
    assert surface.get_title("left").startswith(
        "Was das Modell entscheidet; andere Spalten wie in Weg 1: owner Ja, job"
    )
    assert "das Modell sagt good" in [text.get_text() for text in surface.get_legend().get_texts()]


def test_every_caption_is_there_in_every_language_with_the_same_fields():
    fields = {}
    for language, captions in CAPTIONS.items():
        fields[language] = {
            name: sorted(field for _, field, _, _ in string.Formatter().parse(text) if field)
            for name, text in captions.texts.items()
        }

    assert set(CAPTIONS) == set(LANGUAGES)
    assert fields["de"] == fields["en"]


def test_a_language_that_is_not_shipped_is_refused(result):
    with pytest.raises(ceopt.CeoptError, match="language"):
        result.plot(language="fr")


# ---- changes ---------------------------------------------------------------------------------------------------------
def test_changes_are_moves_over_scales_with_the_raw_values_at_both_ends(result):
    ax = result.plot()

    assert names(ax) == ["income (k$)", "age", "_size", "job"]
    assert arrows(ax) == [4.0 / 2.0, -2.0 / 4.0, -1.0 / 2.0, 1.0]  # an ordinal level moves one over levels less one
    assert texts(ax) == ["5", "9", "30", "28", "L", "M", "nurse", "cook"]
    sides = {text.get_text(): text.get_ha() for text in ax.texts}
    assert (sides["5"], sides["9"], sides["30"], sides["28"]) == ("right", "left", "left", "right")
    assert ax.get_title("left") == "Answer 1 of 2: good, cost 1"


def test_a_unit_of_no_letters_is_none():
    space = SPACE.update("income", unit="")
    ax = a_set(answer(1, FIRST), space=space).plot()
    assert names(ax)[0] == "income"


def test_another_answer_is_drawn_by_its_rank_and_named_by_its_row(result):
    ax = replace(result, query_id="p7").plot("changes", rank=2)

    assert ax.get_title("left") == "Row p7, answer 2 of 2: good, cost 2"
    assert arrows(ax) == [0.75, 1.0]


def test_columns_are_drawn_in_the_order_given_and_what_stays_says_so(result):
    ax = result.plot(columns=["owner", "age"])

    assert names(ax) == ["owner", "age"]
    assert arrows(ax) == [-0.5]
    assert texts(ax) == ["stays", "False", "30", "28"]


def test_under_a_causal_model_it_is_said_what_is_done_and_what_follows():
    causal = answer(1, {"income": 9.0, "age": 28}, actions=pd.Series({"age": -2, "owner": False}, dtype=object))

    ax = a_set(causal).plot()

    assert names(ax) == ["income (k$)", "age", "owner"]
    assert [text for text in texts(ax) if text.isalpha() and text != "False"] == ["consequence", "action", "held"]


# ---- parallel coordinates --------------------------------------------------------------------------------------------
def test_every_axis_goes_from_the_least_to_the_greatest_value(result):
    ax = result.plot("parallel")

    first, second, person = (line.get_xdata() for line in ax.lines)
    assert names(ax) == ["income (k$)", "age", "_size", "job", "owner"]
    assert np.allclose(person, [0.0, 1.0, 1.0, 0.0, 0.0])
    assert np.allclose(first, [1.0, 0.0, 0.0, 1.0, 0.0])
    assert np.allclose(second, [1.5 / 4.0, 1.0, 1.0, 0.0, 1.0])
    assert set(texts(ax)) == {"5", "9", "6.5", "30", "28", "L", "M", "nurse", "cook", "False", "True"}
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["as it is", "answer 1, cost 1", "answer 2, cost 2"]


def test_ordinal_levels_stand_in_their_order_and_others_in_none():
    """Ranks ascend whichever answer has them; the person's category is first, then each as an answer comes to it."""
    found = a_set(answer(1, {"job": "clerk", "_size": "S"}), answer(2, {"job": "cook", "_size": "M"}))
    ax = found.plot("parallel")

    first, second, person = (line.get_xdata() for line in ax.lines)
    assert names(ax) == ["_size", "job"]
    assert np.allclose([person, first, second], [[1.0, 0.0], [0.0, 0.5], [0.5, 1.0]])
    axes = ax.collections[0]
    assert [dashes is None for _, dashes in axes.get_linestyle()] == [True, False]
    assert ax.get_xlabel() == "3 columns stay as they are and are not drawn; dotted: levels in no order"
    assert found.plot("parallel", columns=["_size"]).get_xlabel() == ""


def test_what_stays_is_counted_and_drawn_only_where_it_is_named(result):
    one = replace(result, counterfactuals=(answer(1, SECOND),))

    assert one.plot("parallel").get_xlabel() == "3 columns stay as they are and are not drawn"
    ax = one.plot("parallel", columns=["job", "income"])
    assert names(ax) == ["job", "income (k$)"]
    assert [line.get_xdata()[0] for line in ax.lines] == [0.5, 0.5]  # one value is in the middle


# ---- surface ---------------------------------------------------------------------------------------------------------
def colour_at(ax, x, y):
    """The colour of the region that is seen there."""
    holding = [patch for patch in ax.patches if patch.get_path().contains_point((x, y))]
    return mpl.colors.to_hex(holding[-1].get_facecolor())


def test_a_gap_parts_levels_that_have_no_order(result):
    ax = result.plot("surface", columns=["job", "_size"], model=decide)
    gaps = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2]

    assert gaps == [[0.5, 0.5], [1.5, 1.5]]
    ax = result.plot("surface", columns=["owner", "_size"], model=decide)
    assert [line for line in ax.lines if len(line.get_xdata()) == 2] == []


def test_a_surface_shows_what_the_model_decides_on_legal_values(result):
    ax = result.plot("surface", model=decide, rank=1)

    colours = [mpl.colors.to_hex(patch.get_facecolor()) for patch in ax.get_legend().get_patches()]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["the model says good", "the model says bad"]
    assert np.allclose(ax.get_ylim(), (23.5, 34.5))  # whole numbers, as far as a scale beyond the points
    left, right = ax.get_xlim()
    assert 3.0 - 0.1 < left < 3.0  # half a cell beyond half the points' distance
    assert 11.0 < right < 11.0 + 0.1
    for age in range(24, 35):
        edge = 22.5 - age / 2.0
        for income in np.linspace(3.0, 11.0, 50):
            if abs(income - edge) > 0.13:  # two cells
                assert colour_at(ax, income, age + 0.4) == colours[int(income < edge)]


def test_the_grid_holds_legal_values_only_and_those_of_the_points():
    space = FeatureSpace(
        [
            Feature("debt", kind="continuous", lower=0.0, upper=2.0, step=0.25, mad=1.0),
            Feature("age", kind="integer", lower=18, upper=99, mad=300.0),
            SPACE["job"],
        ]
    )
    points = [np.array([0.6, 30.0, 2.0]), np.array([1.1, 31.0, 0.0])]
    asked = []

    def model(rows):
        asked.append(rows)
        return rows["debt"] + (rows["job"] == "cook")

    grid = decisions(space, model, None, ("debt", "age"), held=points[1], points=points)

    assert np.allclose(grid.values[0], [0.1, 0.35, 0.6, 0.85, 1.1, 1.35, 1.6, 1.85])  # steps from the row
    assert (grid.values[1] == np.rint(grid.values[1])).all()
    assert (grid.values[1].min(), grid.values[1].max()) == (18.0, 99.0)
    assert {30.0, 31.0} <= set(grid.values[1])
    assert set(asked[0]["job"]) == {"cook"}
    assert np.allclose(grid.outputs, grid.values[0] + 1.0)
    assert grid.fits == (False, True)
    levels = decisions(space, model, None, ("job", "age"), held=points[1], points=points)
    assert levels.levels == (("cook", "clerk", "nurse"), None)


def test_the_points_of_a_surface_are_hollow_where_other_columns_differ(result):
    ax = result.plot("surface", model=decide, columns=["income", "job"], rank=2)

    points = [line for line in ax.lines if len(line.get_xdata()) == 1]  # others are gaps between levels
    assert offsets(points).tolist() == [[5.0, 2.0], [9.0, 0.0], [6.5, 2.0]]
    filled = [line.get_markerfacecolor() == line.get_markeredgecolor() for line in points]
    assert filled == [False, False, True]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["cook", "clerk", "nurse"]
    assert ax.get_title("left") == "What the model decides; other columns as in answer 2: owner True"
    assert set(texts(ax)) == {"as it is", "1", "2"}


def test_a_surface_shows_where_a_target_is_met_or_values(result):
    met = result.plot("surface", model=score, target=ceopt.AtLeast(22.5))
    ax = result.plot("surface", model=score)

    labels = [text.get_text() for text in met.get_legend().get_texts()]
    assert labels == ["meets the target", "misses the target"]
    assert colour_at(met, 9.0, 28.0) != colour_at(met, 5.0, 30.0)
    (image,) = ax.images
    assert image.get_array().max() == pytest.approx(11.0 + 34 / 2.0)
    assert ax.get_legend() is None
    assert ax.figure.axes[1].get_ylabel() == "the model says"


def test_a_surface_takes_a_function_and_needs_no_answer():
    nothing = a_set(status="infeasible", reason="Proved.")

    ax = nothing.plot("surface", model=lambda rows: rows["income"] > 6.0)

    assert ax.get_title("left") == "What the model decides; other columns as in the row"
    assert len(ax.lines) == 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "the model says False", "the model says True",
    ]  # fmt: skip


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"kind": "pie"}, "needs a known kind, but kind is 'pie'"),
        ({"columns": ["incom"]}, "needs a known column, but column is 'incom'. Did you mean 'income'?"),
        ({"columns": "income"}, "needs a list of names as columns, but columns is 'income'"),
        ({"columns": []}, "needs some column to draw"),
        ({"columns": ["age", "age"]}, "needs each column once, but 'age' is there twice"),
        ({"rank": 3}, "needs the rank of an answer, from 1 to 2, as rank, but rank is 3"),
        ({"rank": 0}, "but rank is 0"),
        ({"ax": "here"}, "needs Axes of matplotlib, or None, as ax, but ax is str"),
        ({"dark": 1}, "needs True or False as dark, but dark is 1"),
        ({"kind": "surface"}, "needs the model whose decision is drawn, but model is None"),
        ({"kind": "surface", "model": decide, "columns": ["age"]}, "needs two columns for a surface"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(result, given, sentence):
    with pytest.raises(ceopt.CeoptError, match=r"^SolutionSet\.plot") as error:
        result.plot(**given)

    assert sentence in str(error.value)


@pytest.mark.parametrize("kind", ["changes", "parallel"])
def test_without_an_answer_the_status_and_its_reason_are_told(kind):
    with pytest.raises(ceopt.CeoptError, match=r"needs an answer to draw, but the status is infeasible \(Proved\)\."):
        a_set(status="infeasible", reason="Proved.").plot(kind)


def test_a_set_without_its_space_says_how_to_give_it(result):
    with pytest.raises(ceopt.CeoptError, match=r"dataclasses\.replace\(result, space=space\)"):
        replace(result, space=None).plot()


def test_without_matplotlib_the_extra_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(ImportError, match=r"needs matplotlib, but it is not installed. .*pip install 'ceopt\[plot\]'"):
        result.plot()


# ---- where it is drawn -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["changes", "parallel", "surface"])
def test_given_axes_are_drawn_on_and_nothing_of_pyplot_or_the_settings_changes(result, kind):
    figure, given = plt.subplots()
    before = dict(mpl.rcParams)

    drawn = result.plot(kind, ax=given, dark=True, model=decide)
    own = result.plot(kind, model=decide)

    assert drawn is given
    assert mpl.colors.to_hex(figure.get_facecolor()) == "#12161b"
    assert own.figure is not figure
    assert plt.get_fignums() == [figure.number]
    assert dict(mpl.rcParams) == before
    plt.close(figure)


def test_a_notebook_shows_a_picture_of_its_own(result):
    assert result.plot()._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_space_comes_back_from_json_and_draws_the_same(result):
    again = SolutionSet.from_json(result.to_json())

    assert again.space == SPACE
    assert svg(again.plot()) == svg(result.plot())


# ---- readable --------------------------------------------------------------------------------------------------------
LONG = "the_number_of_months_since_the_last_payment_default_as_reported_by_the_bureau_in_2019_q{}"
LEVELS = ("temporary contract with the municipality until further notice", "permanent, without & <limit>", "$x$")


def wide(count, answers):
    """A set of many columns with long names and texts, huge numbers and tiny ones."""
    rng = np.random.default_rng(count)
    columns = {}
    for j in range(count):
        drawn = (
            rng.normal(-5e9, 3e9, answers + 5).round(0), rng.integers(0, 12, answers + 5),
            rng.choice(LEVELS, answers + 5), rng.normal(0.0, 1e-4, answers + 5),
        )  # fmt: skip
        columns[LONG.format(j) if j % 3 else f"x{j}"] = drawn[j % 4]
    frame = pd.DataFrame(columns)
    space = FeatureSpace.infer(frame, categorical=[name for name in frame if frame[name].dtype.kind not in "if"])
    found = []
    for rank in range(1, answers + 1):
        changed = tuple(name for name in frame if frame[name].iloc[rank] != frame[name].iloc[0])
        one = answer(rank, {})
        found.append(replace(one, values=frame.iloc[[rank]], changed=changed))  # type: ignore[arg-type]
    return a_set(*found, factual=frame.iloc[[0]], space=space)


@pytest.mark.filterwarnings("ignore::ceopt.formulations.space.space.SpaceWarning")  # drawn numbers mean nothing
@pytest.mark.parametrize("kind", ["changes", "parallel"])
@pytest.mark.parametrize(("count", "answers"), [(3, 10), (12, 2), pytest.param(40, 3, marks=pytest.mark.long)])
def test_no_text_runs_into_another_or_out_of_the_picture(kind, count, answers):
    ax = wide(count, answers).plot(kind)

    assert overlapping(ax) == []
    assert outside(ax) == []
