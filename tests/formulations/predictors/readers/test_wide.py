"""Categories of many levels: one-hot columns are read, stated and scored without their zeros, and come out the same."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import ceopt
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.space.encoding import WIDE, SparseTable, nonzero_entries, table_range
from ceopt.solvers.errors import UnsupportedModelError

#: Where the number of columns from which zeros are left out is read.
PLACES = (
    "ceopt.formulations.space.encoding",
    "ceopt.formulations.predictors.embed.embedded",
    "ceopt.formulations.predictors.readers.pipeline",
)


# ---- a table -----------------------------------------------------------------------------------------------------
TABLES = [(0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0), (2.0, -1.0, 0.5), (0.0, np.nan, -3.0)]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_zeros_holds_the_same(table: tuple[float, ...]) -> None:
    ranks, values = nonzero_entries(table)
    sparse = SparseTable(len(table), tuple(ranks.tolist()), tuple(values.tolist()))

    assert len(sparse) == len(table)
    np.testing.assert_array_equal(np.asarray(sparse), table)
    np.testing.assert_array_equal([sparse[k] for k in range(len(table))], table)
    np.testing.assert_array_equal(list(sparse), table)
    np.testing.assert_array_equal(sparse[1:], table[1:])
    assert sparse[-1] == table[-1]
    with pytest.raises(IndexError):
        sparse[len(table)]
    for mine, other in zip(nonzero_entries(sparse), (ranks, values), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert table_range(sparse) == table_range(table) == np.nanmax(table) - np.nanmin(table)


def test_a_table_of_missing_values_alone_has_no_width() -> None:
    assert table_range((np.nan, np.nan)) == table_range(SparseTable(2, (0, 1), (np.nan, np.nan))) == 0.0


# ---- what reading takes --------------------------------------------------------------------------------------------
def city_model(levels: int, **encoder: Any) -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": [f"c{k}" for k in range(levels)] * 2, "income": rng.normal(50.0, 10.0, 2 * levels)})
    label = frame["income"] + 3.0 * frame["city"].str.endswith("7") > 52.0
    steps = make_column_transformer((OneHotEncoder(**encoder), ["city"]), (StandardScaler(), ["income"]))
    return make_pipeline(steps, LogisticRegression(C=10.0)).fit(frame, label), frame


def held(value: Any) -> int:
    """Return how many numbers an encoding holds."""
    if hasattr(value, "nnz"):
        return int(value.nnz)
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, SparseTable):
        return 2 * len(value.ranks)
    return len(value) if isinstance(value, tuple) else 0


@pytest.mark.parametrize("encoder", [{}, {"sparse_output": False}])
def test_reading_one_hot_columns_is_linear_in_the_levels(encoder: dict[str, Any]) -> None:
    for levels in (WIDE + 1, 2 * WIDE):
        model, frame = city_model(levels, **encoder)
        encoding = read(model, ceopt.FeatureSpace.infer(frame)).encoding
        assert sum(held(column.table) for column in encoding.columns if column.table is not None) == 2 * levels
        assert sum(held(table) for *_, table in encoding.tables) == levels
        rows = encoding.sparse_matrix(np.column_stack([np.arange(levels), np.ones(levels)]))
        assert held(rows) == 2 * levels


def test_stating_one_hot_columns_is_linear_in_the_levels() -> None:
    inputs = importlib.import_module("ceopt.formulations.predictors.embed.embedded")
    recourse = importlib.import_module("ceopt.formulations.recourse_program")
    model, frame = city_model(WIDE + 88)
    space = ceopt.FeatureSpace.infer(frame)
    predictor = read(model, space)
    x = recourse.recourse_program(
        predictor,
        frame.iloc[0],
        target=ceopt.formulations.targets.parse_target(True, predictor.labels),
        cost=ceopt.L1(),
    ).x
    found = inputs.Inputs(predictor, x, np.ones(len(predictor.encoding.columns), dtype=bool))
    assert held(found.matrix) == WIDE + 89
    (form,) = found.atoms.forms(np.ones((1, WIDE + 89)), np.zeros(1))
    assert len(form.terms) == WIDE + 89


# ---- the same in every way -------------------------------------------------------------------------------------------
@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "a": rng.normal(size=240).round(2),
            "job": rng.choice(list("pqrstu"), 240),
            "b": rng.normal(size=240).round(2),
            "town": rng.choice(list("vwxyz"), 240),
        }
    )


def with_another_job(people: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([people, people.head(1).assign(job="a new one")], ignore_index=True)


ENCODERS = {
    "one-hot": OneHotEncoder(),
    "dense": OneHotEncoder(sparse_output=False),
    "dropped": OneHotEncoder(drop="first"),
    "ordinal": OrdinalEncoder(),
    "unknown": OneHotEncoder(handle_unknown="ignore"),
}
MODELS = {
    "linear": LogisticRegression(),
    "classes": LogisticRegression(),
    "forest": RandomForestClassifier(8, max_depth=4, random_state=0),
    "network": MLPClassifier((4,), max_iter=3000, random_state=0),
}


@pytest.mark.long(every=11)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_wide_matrix_gives_the_same_answers(
    kind: str, encoder: str, people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = people["a"] + people["b"] + (people["job"] < "r") - (people["town"] > "x")
    cuts = [0.4] if kind != "classes" else [-0.3, 0.6]
    label = np.array(["low", "good", "top"])[np.searchsorted(cuts, score)]
    steps = make_column_transformer((ENCODERS[encoder], ["job", "town"]), (StandardScaler(), ["a", "b"]))
    model = make_pipeline(steps, MODELS[kind]).fit(people, label)
    seen = people if encoder != "unknown" else with_another_job(people)  # a level that is all zeros
    space = ceopt.FeatureSpace.infer(seen)
    row = people[model.predict(people) == "low"].iloc[0]
    coordinates = space.coordinates(people)

    def asked() -> tuple[Any, ...]:
        predictor = read(model, space)
        result = ceopt.explain(model, row, space, target="good", data=people, n=2)
        matrix = predictor.encoding.matrix(coordinates)
        costs = [answer.cost for answer in result]
        is_wide = predictor.encoding.is_wide
        return matrix, predictor.score(coordinates), predictor.unseen, str(result.status), costs, is_wide, predictor

    narrow = asked()
    for place in PLACES:
        monkeypatch.setattr(importlib.import_module(place), "WIDE", 0)
    wide = asked()

    assert (narrow[5], wide[5]) == (False, True)
    assert any(isinstance(column.table, SparseTable) for column in wide[-1].encoding.columns)
    np.testing.assert_array_equal(wide[0], narrow[0])
    np.testing.assert_array_equal(wide[-1].encoding.sparse_matrix(coordinates).toarray(), narrow[0])
    np.testing.assert_allclose(wide[1], narrow[1], rtol=1e-12, atol=1e-12)
    assert wide[2:4] == narrow[2:4]
    assert wide[4] == pytest.approx(narrow[4], rel=1e-6)


def test_levels_that_a_wide_pipeline_fails_on_are_known(people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = make_column_transformer((OneHotEncoder(), ["job", "town"]), (StandardScaler(), ["a", "b"]))
    model = make_pipeline(steps, LogisticRegression()).fit(people, people["a"] > 0.0)
    space = ceopt.FeatureSpace.infer(with_another_job(people))
    for place in PLACES:
        monkeypatch.setattr(importlib.import_module(place), "WIDE", 0)
    predictor = read(model, space)

    assert predictor.unseen == {"job": frozenset({0})}
    result = ceopt.explain(model, people[people["a"] < 0.0].iloc[0], space, target=True)
    assert result.status == "optimal"


def test_a_wide_pipeline_that_is_read_wrongly_is_refused(people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = make_column_transformer((OneHotEncoder(), ["job", "town"]), (StandardScaler(), ["a", "b"]))
    model = make_pipeline(steps, LogisticRegression()).fit(people, people["a"] > 0.0)
    for place in PLACES:
        monkeypatch.setattr(importlib.import_module(place), "WIDE", 0)
    model[0].named_transformers_["standardscaler"].mean_ += 1e-3
    inner = importlib.import_module(PLACES[0]).Encoding.sparse_matrix
    monkeypatch.setattr(
        importlib.import_module(PLACES[0]).Encoding, "sparse_matrix", lambda self, x: inner(self, x) * 1.0000001
    )
    with pytest.raises(UnsupportedModelError, match="bit for bit"):
        read(model, ceopt.FeatureSpace.infer(people))
