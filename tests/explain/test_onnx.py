"""Exported models through ``explain``: the answer costs what the cheapest point of the whole lattice does."""

from __future__ import annotations

import itertools
import pickle
import warnings
from typing import Any

import numpy as np
import onnxmltools
import pandas as pd
import pytest
import xgboost
from onnx_models import run, torch_net
from onnxmltools.convert.common.data_types import FloatTensorType as ToolsFloat
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.formulations.predictors.readers import open_model

COLUMNS = {"a": (0, 7), "b": (0, 5), "c": (0, 3)}
SPACE = ceopt.FeatureSpace(
    [ceopt.Feature(name, kind="integer", lower=low, upper=high) for name, (low, high) in COLUMNS.items()]
)
LATTICE = pd.DataFrame(
    list(itertools.product(*(range(low, high + 1) for low, high in COLUMNS.values()))), columns=list(COLUMNS)
)
MATRIX = LATTICE.to_numpy(dtype="f4")
VALUE = MATRIX[:, 0] + 2 * (MATRIX[:, 1] % 3) - MATRIX[:, 2] + np.random.default_rng(5).normal(0, 1.0, len(MATRIX))
CUTS = np.quantile(VALUE, [0.5, 0.8])
TWO, THREE = (CUTS[1] < VALUE).astype(int), np.digitize(VALUE, CUTS)
L1 = ceopt.L1(scale="none")
MLP = {"hidden_layer_sizes": (6, 4), "max_iter": 2000, "random_state": 0, "learning_rate_init": 0.02}


def export(fitted: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return to_onnx(fitted, MATRIX[:1], **options)


def boosted(y: Any) -> Any:
    fitted = xgboost.XGBClassifier(n_estimators=10, max_depth=3).fit(MATRIX, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return onnxmltools.convert_xgboost(fitted, initial_types=[("X", ToolsFloat([None, 3]))])


MODELS = {
    "forest": lambda y: export(RandomForestClassifier(8, max_depth=4, random_state=0).fit(MATRIX, y)),
    "gradient": lambda y: export(GradientBoostingClassifier(n_estimators=20, random_state=0).fit(MATRIX, y)),
    "xgboost": boosted,  # D5: peers drop its splits, which are BRANCH_LT
    "logistic": lambda y: export(LogisticRegression().fit(MATRIX, y)),
    "network": lambda y: export(MLPClassifier(**MLP).fit(MATRIX, y)),
}  # fmt: skip


def agree(given: Any, reached: Any, target: Any, rows: int = 5, space: Any = SPACE, lattice: Any = LATTICE) -> None:
    """From some rows of the lattice, the answer is verified and costs what the cheapest lattice point does."""
    assert 0 < reached.sum() < len(lattice)
    outside = np.flatnonzero(~reached)
    for start in outside[:: max(1, len(outside) // rows)]:
        row = lattice.iloc[[start]]
        result = ceopt.explain(given, row, space, target=target, cost=L1)
        steps = np.zeros(len(lattice))
        for name in lattice.columns:
            moved = lattice[name] != row[name].item()
            steps += moved if space[name].is_finite else np.abs(lattice[name] - row[name].item())
        assert result.status == "optimal"
        assert result[0].verified
        assert result[0].cost == pytest.approx(steps[reached].min())


@pytest.mark.long(every=5)
@pytest.mark.parametrize("target", [0, 1])
@pytest.mark.parametrize("name", MODELS)
def test_two_classes(name: str, target: int) -> None:
    made = MODELS[name](TWO)
    agree(made.SerializeToString(), run(made, MATRIX)[0] == target, target)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("target", [2, {0, 1}])
@pytest.mark.parametrize("name", MODELS)
def test_several_classes(name: str, target: Any) -> None:
    made = MODELS[name](THREE)
    wanted = target if isinstance(target, set) else {target}
    agree(made, np.isin(run(made, MATRIX)[0], list(wanted)), target, rows=3)


@pytest.mark.parametrize(
    "model", [RandomForestRegressor(8, max_depth=4, random_state=0), MLPRegressor(**MLP)], ids=repr
)
def test_regressors(model: Any) -> None:
    made = export(model.fit(MATRIX, VALUE))
    said = run(made, MATRIX)[0].ravel()
    level = float(np.quantile(said, 0.8)) + 0.01
    agree(made, said >= level, ceopt.AtLeast(level))


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", ["forest", "gradient", "logistic", "network"])
def test_a_probability(name: str) -> None:
    made = MODELS[name](TWO)
    shares = open_model(made).predict_proba(MATRIX)[:, 1]
    agree(made, shares >= 0.7, ceopt.Probability(1, 0.7), rows=3)


def test_a_file_of_pytorch(tmp_path: Any) -> None:
    fitted = MLPRegressor(**MLP).fit(MATRIX, VALUE - CUTS[1])
    weights = [np.asarray(w, "f4") for w in fitted.coefs_]
    made = torch_net(weights, [np.asarray(b, "f4") for b in fitted.intercepts_], ["Sigmoid"])
    path = tmp_path / "net.onnx"
    path.write_bytes(made.SerializeToString())

    agree(path, run(made, MATRIX)[0].ravel() > 0.5, 1)
    agree(str(path), run(made, MATRIX)[0].ravel() <= 0.5, 0, rows=2)


@pytest.mark.long
@pytest.mark.parametrize(
    "model", [RandomForestClassifier(8, max_depth=4, random_state=0), MLPClassifier(**MLP)], ids=repr
)
def test_a_pipeline_with_one_input_per_column(model: Any) -> None:
    lattice = LATTICE.assign(job=np.array(["cook", "miner", "nurse"])[LATTICE["a"] % 3]).drop_duplicates()
    lattice = lattice.drop(columns="a").drop_duplicates().merge(pd.DataFrame({"a": range(8)}), how="cross")
    value = lattice["a"] + 2 * (lattice["b"] % 3) + 3 * (lattice["job"] == "nurse")
    columns = ColumnTransformer([("n", StandardScaler(), ["a", "b", "c"]), ("c", OneHotEncoder(), ["job"])])
    fitted = make_pipeline(columns, model).fit(lattice, np.where(value > 6, "yes", "no"))
    types = [(name, (StringTensorType if name == "job" else FloatTensorType)([None, 1])) for name in lattice.columns]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = convert_sklearn(fitted, initial_types=types)
    space = ceopt.FeatureSpace(
        [ceopt.Feature("job", kind="categorical", levels=("cook", "miner", "nurse")), *SPACE][::-1]
    )
    feeds = [lattice[name].to_numpy(dtype=object if name == "job" else "f4")[:, None] for name in lattice.columns]

    agree(made, run(made, *feeds)[0] == "yes", "yes", rows=4, space=space, lattice=lattice)


@pytest.mark.long
def test_many_people_by_a_recourse_that_crossed_a_process_boundary() -> None:
    made = MODELS["gradient"](TWO)
    recourse = ceopt.Recourse(made.SerializeToString(), SPACE, target=1, cost=L1).fit(LATTICE)
    people = LATTICE.iloc[::40]
    here, there = recourse.explain(people).to_frame(), pickle.loads(pickle.dumps(recourse)).explain(people).to_frame()
    found = here[here["status"] == "optimal"][list(COLUMNS)].to_numpy(dtype="f4")

    pd.testing.assert_frame_equal(here, there)
    assert len(found) > 2
    assert (run(made, found)[0] == 1).all()
