"""The three worst messages say what to do, and so do memory that runs out and numbers at the end of the floats."""

from __future__ import annotations

import importlib
import pickle
import sys

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.linear_model import LogisticRegression

import ceopt
import ceopt.population
from ceopt import CeoptError, Feature, FeatureSpace, Recourse, explain
from ceopt.cli.inputs import read_inputs, read_model, read_table
from ceopt.diverse import DiverseRobustExplainer
from ceopt.formulations import Factual, embed
from ceopt.formulations.predictors import Affine

PEOPLE = pd.DataFrame({"paid": [1.0, 2.0, 5.0], "debt": [0, 1, 2]})
SPACE = FeatureSpace.infer(PEOPLE)
MODEL = Affine([1.0, -1.0], -3.0, labels=("bad", "good"))


@pytest.mark.parametrize(
    "call",
    [
        lambda frame: explain(MODEL, frame.iloc[0], SPACE, target="good"),
        lambda frame: explain(MODEL, PEOPLE.iloc[0], SPACE, target="good", data=frame),
        lambda frame: Recourse(MODEL, SPACE, target="good").fit(frame),
        lambda frame: Recourse(MODEL, SPACE, target="good").fit(PEOPLE).explain(frame),
    ],
)
def test_an_id_column_is_left_out_with_a_warning(call):
    with pytest.warns(
        ceopt.SpaceWarning, match=r"leaves out 'id' of .*, which the space does not know. Write "
    ) as heard:
        call(PEOPLE.assign(id=["p1", "p2", "p3"]))
    assert len(heard) == 1


def test_a_column_that_is_misspelt_still_means_the_one_that_is_missing():
    with pytest.raises(CeoptError, match="column is 'payd'. Did you mean 'paid'"):
        Recourse(MODEL, SPACE, target="good").fit(PEOPLE.rename(columns={"paid": "payd"}))


def test_of_many_levels_a_few_are_listed():
    id_ = Feature("id", kind="categorical", levels=tuple(f"p{k}" for k in range(500)))
    with pytest.raises(CeoptError, match=r"its value is 'q'. Choose from: 'p0', 'p1',.* and 480 more") as caught:
        id_.rank("q")
    assert len(str(caught.value)) < 400


def test_a_table_in_another_encoding_is_named(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False, encoding="utf-16")
    with pytest.raises(CeoptError, match=r"DATA needs a file of UTF-8 text, but .*another encoding.*Save it as UTF-8"):
        read_table(tmp_path / "people.csv", None)


@pytest.mark.parametrize("allow", [False, True])
def test_a_table_is_no_pickle(tmp_path, allow):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(
        CeoptError,
        match=r"MODEL needs a saved model, but .*cannot be loaded: it is text that begins 'paid,debt'. Give the model",
    ):
        read_model(tmp_path / "people.csv", allow_pickle=allow)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_every_kind_are_still_loaded(tmp_path, protocol):
    model = LogisticRegression().fit(PEOPLE, ["bad", "bad", "good"])
    (tmp_path / "model").write_bytes(pickle.dumps(model, protocol))
    assert isinstance(read_model(tmp_path / "model", allow_pickle=True), LogisticRegression)


def test_a_table_without_any_column_of_the_model_is_named(tmp_path):
    model = LogisticRegression().fit(PEOPLE, ["bad", "bad", "good"])
    (tmp_path / "model").write_bytes(pickle.dumps(model))
    (tmp_path / "other.csv").write_text("x,y\n1,2\n")
    with pytest.raises(CeoptError, match=r"DATA needs columns that the model knows .paid, debt., but .* has only x, y"):
        read_inputs(
            tmp_path / "model", tmp_path / "other.csv", rows=[0], target="good", space_path=None, moves={},
            categorical=(), label_columns=(), allow_pickle=True, limits={},
        )  # fmt: skip


@pytest.mark.parametrize("place", ["prepare", "search"])
def test_memory_that_runs_out_is_a_status(monkeypatch, place):
    def failing(*_, **__):
        raise MemoryError

    monkeypatch.setattr(sys.modules["ceopt.recourse"], place, failing)
    result = explain(MODEL, PEOPLE.iloc[0], SPACE, target="good")
    assert result.status == "error"
    assert "Memory ran out" in result.reason
    assert ceopt.SolutionSet.from_json(result.to_json()).reason == result.reason

    def failing_at_once(*_, **__):
        raise MemoryError
        yield

    monkeypatch.setattr("ceopt.search.side_by_side.search_in_parts", failing_at_once)
    cohort = Recourse(MODEL, SPACE, target="good").fit(PEOPLE).explain(PEOPLE)
    assert cohort.counts() == {"error": 3}
    assert "Memory ran out" in cohort[0].reason


def columns():
    """Coordinates of a person on a model of their own."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, PEOPLE.iloc[0])
    return m.x


ASKED = {
    "Recourse.fit": ("ceopt.recourse", "fit_of", lambda: Recourse(MODEL, SPACE, target="good").fit(PEOPLE)),
    "verify": ("ceopt.result.verify", "ModelOracle", lambda: ceopt.verify(PEOPLE, MODEL, SPACE, target="good")),
    "embed": ("ceopt.formulations.predictors.embed", "_embedded", lambda: embed(MODEL, columns())),
    "DiverseRobustExplainer.fit": (
        "ceopt.diverse.explainer",
        "Searched",
        lambda: DiverseRobustExplainer(space=SPACE).fit(PEOPLE),
    ),
}


@pytest.mark.parametrize("who", ASKED)
def test_memory_that_runs_out_where_there_is_no_result_is_named(monkeypatch, who):
    def failing(*_, **__):
        raise MemoryError

    module, name, call = ASKED[who]
    importlib.import_module(module)
    monkeypatch.setattr(sys.modules[module], name, failing)
    with pytest.raises(MemoryError, match=f"{who} needs more memory, but there is no more. Give fewer") as caught:
        call()
    assert isinstance(caught.value, CeoptError)


@pytest.mark.parametrize("data", [5, "people.csv", [PEOPLE], np.zeros((3, 2))])
def test_data_that_are_no_frame_are_named(data):
    with pytest.raises(CeoptError, match=r"a DataFrame as data, but data is "):
        explain(MODEL, PEOPLE.iloc[0], SPACE, target="good", data=data)


WIDE = FeatureSpace([Feature("paid", kind="continuous"), Feature("debt", kind="integer", lower=0, upper=9)])
HUGE = {
    "Column 'paid' needs": lambda h: explain(MODEL, {"paid": h, "debt": 1}, WIDE, target="good"),
    "Linear needs .* rhs": lambda h: ceopt.Linear({"paid": 1.0}, "<=", h),
    "Linear needs .* paid": lambda h: ceopt.Linear({"paid": h}, "<=", 1.0),
    "LinearEquation needs .* intercept": lambda h: ceopt.LinearEquation({"paid": 1.0}, intercept=h),
    "AtLeast needs .* value": ceopt.AtLeast,
    "Between needs .* low": lambda h: ceopt.Between(h, 1.7e308),
    "AllowedValues needs .* column 'paid'": lambda h: ceopt.AllowedValues({"paid": [h, 7.0]}).check(WIDE),
    "A condition needs .* column 'debt'": lambda h: ceopt.IfThen(("debt", "<=", h), ("paid", "<=", 1.0)).check(WIDE),
}


@pytest.mark.parametrize("huge", [1e308, -1e308, 1.1e150])
@pytest.mark.parametrize("who", HUGE)
def test_a_number_whose_square_overflows_is_named(who, huge):
    with pytest.raises(CeoptError, match=f"{who}.* is {repr(huge).replace('+', '.')}"):
        HUGE[who](huge)


@pytest.mark.parametrize(("word", "huge"), [("lower", -1e308), ("upper", 1e308)])
def test_so_is_a_bound_and_inf_means_none(word, huge):
    row = {"paid": 1.0, "debt": 1}
    with pytest.raises(CeoptError, match=f"Column 'paid' needs .* {word} is {repr(huge).replace('+', '.')}. Use -inf"):
        explain(MODEL, row, WIDE.update("paid", **{word: huge}), target="good")
    assert explain(MODEL, row, WIDE.update("paid", **{word: 10 * huge}), target="good").status == "optimal"
