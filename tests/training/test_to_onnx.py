"""The exported predictor: onnxruntime and the exact engine say of raw rows what the network says."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from loan_people import loan_people, loan_space, small

pytest.importorskip("jax")

import onnx

import ceopt
from ceopt import FeatureSpace
from ceopt.formulations.predictors.readers import read
from ceopt.solvers.errors import UnsupportedModelError, UnwritableFileError
from ceopt.training.networks import shares_of

TYPES = {
    "tensor(double)": np.float64, "tensor(string)": object, "tensor(int64)": np.int64, "tensor(bool)": np.bool_,
    "tensor(float)": np.float32,
}  # fmt: skip


def every_level(n=120):
    """Rows with numbers, and levels of every type and kind."""
    frame, labels = loan_people(n)
    rng = np.random.default_rng(1)
    frame["share"] = rng.choice([0.1, 0.5, 2.5], n)
    frame["zone"] = rng.choice([3, 5, 7], n)
    frame["grade"] = rng.choice([1, 2, 4], n)
    frame["rate"] = rng.choice([0.25, 0.3], n)
    frame["label"] = rng.choice(["no", "yes"], n)  # bears the name of an output
    space = loan_space(frame)
    space = space.update("share", kind="categorical", levels=[2.5, 0.1, 0.5])
    space = space.update("zone", kind="categorical", levels=[7, 3, 5])
    space = space.update("grade", kind="ordinal", levels=[1, 2, 4])
    space = space.update("rate", kind="binary", levels=[0.3, 0.25])
    return frame, labels, space.update("owner", kind="binary", levels=[True, False])


def run(content, frame):
    """What onnxruntime says, given each column by its name."""
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(content)
    given = {}
    for value in session.get_inputs():
        given[value.name] = frame[value.name].to_numpy().astype(TYPES[value.type]).reshape(-1, 1)
    assert set(given) == set(frame)
    return session.run(None, given)


def read_shares(found, frame):
    """Probabilities by what the exact engine has read."""
    scores = found.score(found.space.coordinates(frame))
    return shares_of(scores.reshape(len(frame), -1), np)


def labels_as(kind, given):
    yes = np.asarray(given == "yes")
    if kind == "floats":
        return np.where(yes, 2.0, -1.0)
    if kind == "texts":
        return np.where(yes, "yes", "no").astype(object)
    return yes if kind == "truth" else yes.astype(np.int32) * 5


@pytest.mark.long
@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("kind", ["texts", "whole", "truth", "floats"])
def test_the_runtime_and_the_engine_say_what_the_network_says(kind, activation):
    frame, given, space = every_level()
    y = labels_as(kind, given)
    model = small(space=space, activation=activation, epochs=25, dropout=0.0).fit(frame, y)
    content = model.to_onnx()
    label, shares = run(content, frame)

    assert (label == model.predict(frame)).all()
    assert len(set(label.tolist())) == 2
    assert label.dtype.kind == {"texts": "O", "whole": "i", "truth": "b", "floats": "f"}[kind]
    np.testing.assert_allclose(shares, model.predict_proba(frame), atol=1e-6)
    for form in (content, model):
        found = read(form, space)
        np.testing.assert_allclose(read_shares(found, frame), model.predict_proba(frame), atol=1e-6)
        assert found.core.labels == tuple(model.classes_.tolist())


@pytest.mark.long
@pytest.mark.parametrize("options", [{"predictor": ()}, {"activation": "leaky_relu", "shared": False}])
def test_several_classes_and_other_layers(options):
    frame, _, space = every_level()
    y = np.array(["a", "b", "c"])[np.digitize(frame["income"], [26.0, 34.0])]
    model = small(space=space, epochs=40, dropout=0.0, desired="c", **options).fit(frame, y)
    label, shares = run(model.to_onnx(), frame)

    assert (label == model.predict(frame)).all()
    assert set(label) == {"a", "b", "c"}
    np.testing.assert_allclose(shares, model.predict_proba(frame), atol=1e-6)
    np.testing.assert_allclose(read_shares(read(model, space), frame), model.predict_proba(frame), atol=1e-6)


def test_the_engine_finds_the_nearest_row_for_the_model_and_for_its_file(tmp_path):
    frame, labels = loan_people()
    space = loan_space(frame)
    model = small(space=space, epochs=40, dropout=0.0).fit(frame, labels)
    path = tmp_path / "model.onnx"
    assert model.to_onnx(path) == path.read_bytes()
    refused = frame[model.predict(frame) == "no"].iloc[[0]]
    found = [ceopt.explain(form, refused, data=frame, target="yes", space=space) for form in (model, str(path))]

    assert [one.status for one in found] == ["optimal", "optimal"]
    assert found[0][0].cost == pytest.approx(found[1][0].cost)
    assert model.predict(found[0][0].frame).tolist() == ["yes"]
    advice = model.recourse(refused)
    if model.predict(advice)[0] == "yes":
        started = ceopt.explain(model, refused, data=frame, target="yes", space=space, starts=advice)
        assert started[0].cost == pytest.approx(found[0][0].cost)
    assert ceopt.verify(found[0], model, space, target="yes", factual=refused).ok


@pytest.mark.long
def test_levels_that_were_not_seen_are_told():
    frame, labels = loan_people()
    model = small(space=loan_space(frame), epochs=2).fit(frame, labels)
    with pytest.raises(Exception, match="(?i)unknown|categor|invalid"):
        run(model.to_onnx(), frame.assign(job="pilot"))
    assert np.isnan(run(model.to_onnx(), frame.assign(school="none"))[1]).all()


@pytest.mark.long
def test_what_onnx_cannot_hold_is_one_sentence(tmp_path):
    days = pd.to_datetime(["2024-01-01", "2024-01-02"])
    frame = pd.DataFrame({"day": days[[0, 1, 0, 1] * 5], "income": np.arange(20.0)})
    space = FeatureSpace.infer(frame[["income"]])
    model = small(space=space, epochs=1).fit(frame[["income"]], frame["day"].astype(str))
    with pytest.raises(UnwritableFileError, match="needs a file that can be written, but path is"):
        model.to_onnx(tmp_path / "absent" / "model.onnx")
    with pytest.raises(ceopt.CeoptError, match="needs a path as path, but path is 3"):
        model.to_onnx(3)
    model = small(space=space, epochs=1).fit(frame[["income"]], np.array([1, 2**63 + 1] * 10, dtype=np.uint64))
    with pytest.raises(UnsupportedModelError, match="numbers of 64 bits .* the labels are 1, 9223372036854775809"):
        model.to_onnx()
    mixed = ceopt.Feature("zone", kind="categorical", levels=("a", 1))
    frame = pd.DataFrame({"zone": pd.Series(["a", 1] * 10, dtype=object), "income": np.arange(20.0)})
    space = FeatureSpace([mixed, *FeatureSpace.infer(frame[["income"]])])
    model = small(space=space, epochs=1).fit(frame, np.arange(20) % 2)
    with pytest.raises(
        UnsupportedModelError, match="needs texts, numbers of 64 bits or truth values .* levels of 'zone' are 'a', 1"
    ):
        model.to_onnx()


@pytest.mark.long
def test_the_file_names_its_columns_and_types():
    frame, labels, space = every_level()
    content = small(space=space, epochs=1).fit(frame, labels).to_onnx()
    graph = onnx.load(io.BytesIO(content)).graph
    names = dict(onnx.TensorProto.DataType.items())
    types = {value.name: value.type.tensor_type.elem_type for value in graph.input}

    assert list(types) == list(frame)
    assert types["income"] == types["age"] == names["DOUBLE"]
    assert types["job"] == types["school"] == names["STRING"]
    assert types["owner"] == names["BOOL"]
    assert types["zone"] == types["grade"] == names["INT64"]
    assert types["share"] == names["FLOAT"]
    assert [value.name for value in graph.output] == ["label_", "probabilities"]
