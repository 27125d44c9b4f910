"""Files that a stranger sends, cut off or with a byte flipped anywhere: read, or refused in a sentence of ours."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from damage import cut, flipped
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import CeoptError, FeatureSpace
from ceopt.cli.inputs import read_model, read_table
from ceopt.formulations.predictors.readers import _module
from ceopt.formulations.predictors.readers import read as read_fitted
from ceopt.solvers.errors import MissingLibraryError

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=60).astype(np.float32), "b": RNG.integers(0, 5, 60).astype(np.float32)})
LABELS = np.where(X["a"] + X["b"] > 2.0, "good", "bad")
SPACE = FeatureSpace.infer(X)
WIDE = FeatureSpace.infer(X.astype(float))


def save(kind, path):
    """Write a small file of a kind that ceopt reads."""
    codes = (LABELS == "good").astype(int)
    if kind in {"json", "ubj"}:
        pytest.importorskip("xgboost").XGBClassifier(n_estimators=1, max_depth=2).fit(
            X, codes
        ).get_booster().save_model(path)
    elif kind == "txt":
        lightgbm = pytest.importorskip("lightgbm")
        options = {"n_estimators": 1, "num_leaves": 3, "min_child_samples": 5, "verbose": -1}
        lightgbm.LGBMClassifier(**options).fit(X, codes).booster_.save_model(path)
    elif kind == "onnx":
        to_onnx = pytest.importorskip("skl2onnx").to_onnx
        model = DecisionTreeClassifier(max_depth=2).fit(X.to_numpy(), codes)
        path.write_bytes(to_onnx(model, X.to_numpy()[:1], options={"zipmap": False}).SerializeToString())
    elif kind == "csv":
        X.head(6).assign(job=["cook", "nurse"] * 3).to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        X.head(6).assign(job=["cook", "nurse"] * 3).to_parquet(path)


def read(kind, path):
    if kind in {"csv", "parquet"}:
        return read_table(path, None)
    return read_fitted(str(path), SPACE)


@pytest.mark.parametrize("kind", ["json", "ubj", "txt", "onnx", "csv", "parquet"])
def test_a_file_that_is_cut_off_or_has_a_byte_flipped_is_read_or_refused(kind, tmp_path):
    path = tmp_path / f"file.{kind}"
    save(kind, path)
    whole = path.read_bytes()
    assert read(kind, path)
    few = max(1, len(whole) // 25)
    refused = 0
    for content in [*cut(whole, every=few), *flipped(whole, every=few)]:
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read(kind, path)
            except CeoptError:
                refused += 1
    assert refused > 10


def test_a_path_that_is_too_long_is_a_sentence(tmp_path):
    long = tmp_path / ("long" * 100)
    for suffix in (".onnx", ".json", ".txt", ".joblib"):
        with pytest.raises(CeoptError):
            read_model(long.with_suffix(suffix), allow_pickle=True)
    for suffix in (".csv", ".parquet"):
        with pytest.raises(CeoptError):
            read_table(long.with_suffix(suffix), None)
    for suffix in (".lp", ".mps", ".cbf"):
        with pytest.raises(CeoptError):
            ceopt.solvers.read(long.with_suffix(suffix))


@pytest.mark.parametrize(("part", "other"), [(b'"start"', b'"stbrt"'), (b'"float32"', b'"fuoat32"')])
def test_parquet_whose_notes_for_pandas_are_damaged_is_refused(part, other, tmp_path):
    path = tmp_path / "people.parquet"
    save("parquet", path)
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(path)
    notes = table.schema.metadata[b"pandas"]
    assert part in notes
    parquet.write_table(table.replace_schema_metadata({b"pandas": notes.replace(part, other)}), path)
    with pytest.raises(CeoptError, match="DATA needs a readable .parquet file"):
        read_table(path, None)


def test_a_model_without_its_library_is_refused_by_the_librarys_name(monkeypatch, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"")
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnx" or ".readers.onnx" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    _module.cache_clear()
    for given in (str(path), b"model"):
        with pytest.raises(MissingLibraryError, match=r"onnx, but it is not installed\. Run: pip install onnx\.$"):
            read_fitted(given, SPACE)
    _module.cache_clear()


# ---- fitted models that somebody has changed -------------------------------------------------------------------------
def changed(model, **attributes):
    for name, value in attributes.items():
        setattr(model, name, value(getattr(model, name)))
    return model


@pytest.mark.parametrize(
    "make",
    [
        lambda: changed(LogisticRegression().fit(X, LABELS), coef_=lambda w: w.tolist()),
        lambda: changed(LinearRegression().fit(X, X["a"]), coef_=lambda w: w.tolist()),
        lambda: changed(LogisticRegression().fit(X, LABELS), coef_=lambda _: None),
        lambda: changed(LogisticRegression().fit(X, LABELS), coef_=lambda _: "text"),
        lambda: changed(LogisticRegression().fit(X, LABELS), coef_=lambda w: w[:, :1]),
        lambda: changed(MLPClassifier((3,), max_iter=5).fit(X, LABELS), coefs_=lambda ws: [w.tolist() for w in ws]),
        lambda: changed(StandardScaler().fit(X), mean_=lambda _: "text"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_whose_attributes_somebody_has_changed_is_a_sentence(make):
    model = make()
    if isinstance(model, StandardScaler):
        model = make_pipeline(model, LogisticRegression().fit(X.to_numpy(), LABELS))
    with pytest.raises(CeoptError, match=r"^(The model reader|The model|Affine) needs .*\.$"):
        read_fitted(model, SPACE)


@pytest.mark.parametrize("factor", [5e-324, 1e-308, 1e-300, 1e-200, 1e200, 1e300])
def test_scores_that_are_no_ordinary_numbers_are_a_sentence_about_the_model(factor):
    model = LogisticRegression().fit(X.astype(float), LABELS)
    changed(model, coef_=lambda w: w * factor, intercept_=lambda w: w * factor)
    with pytest.raises(CeoptError, match=r"The model needs scores that differ by 1e-130 to 1e\+130 .* Fit it again"):
        ceopt.explain(model, {"a": 0.5, "b": 1.0}, WIDE, target="good")


@pytest.mark.parametrize("factor", [1e-30, 1e-12, 1.0])
def test_small_scores_are_answered_as_ordinary_ones(factor):
    model = LogisticRegression().fit(X.astype(float), LABELS)
    changed(model, coef_=lambda w: w * factor, intercept_=lambda w: w * factor)
    row = X[LABELS == "bad"].iloc[0].to_dict()
    found = ceopt.explain(model, row, WIDE, target="good")
    usual = ceopt.explain(LogisticRegression().fit(X.astype(float), LABELS), row, WIDE, target="good")
    assert found.status == "optimal"
    assert found[0].cost == pytest.approx(usual[0].cost, rel=1e-4)
