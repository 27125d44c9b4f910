"""ONNX graphs made by hand, as exporters write them, and what onnxruntime says of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

FLOAT, DOUBLE, INT64, STRING = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **at: Any) -> NodeProto:
    ml = operator in {
        "ArrayFeatureExtractor", "FeatureVectorizer", "Imputer", "LabelEncoder", "LinearClassifier", "LinearRegressor",
        "Normalizer", "OneHotEncoder", "Scaler", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor",
        "ZipMap",
    }  # fmt: skip
    return helper.make_node(operator, list(inputs), list(outputs), domain="ai.onnx.ml" if ml else "", **at)


def value(name: str, kind: int = FLOAT, shape: Sequence[Any] | None = (None, None)) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[NodeProto],
    inputs: Any,
    outputs: Sequence[Any],
    constants: Mapping[str, Any] | None = None,
    *,
    ml: int = 3,
    opset: int = 21,
) -> ModelProto:
    """Return a model; ``inputs`` may be the width of one float input X."""
    given = [value("X", FLOAT, [None, inputs])] if isinstance(inputs, int) else list(inputs)
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "g", given, list(outputs), tensors)
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def run(given: ModelProto | bytes, *arrays: Any, threads: int = 1) -> list[Any]:
    """Return what onnxruntime says, asked without any code of ceopt."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    data = given if isinstance(given, bytes) else given.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]
    return list(session.run(None, dict(zip(names, arrays, strict=True))))


def grown(seed: int, trees: int, scores: int, modes: Sequence[str], *, low: float = -1.0, depth: int = 4) -> Any:
    """Return random trees over 4 columns: nodes (tree, node, feature, mode, value, true, false) and leaf weights."""
    rng = np.random.default_rng(seed)
    nodes, weights = [], []
    for tree in range(trees):
        waiting, free = [(0, 0)], 1
        while waiting:
            number, level = waiting.pop(0)
            if level == depth or (level and rng.random() < 0.2):
                nodes.append((tree, number, 0, "LEAF", 0.0, 0, 0))
                weights += [(tree, number, k, float(np.float32(rng.uniform(low, 1.0)))) for k in range(scores)]
                continue
            at = float(np.float32(rng.integers(-3, 4) + (rng.random() if rng.random() < 0.5 else 0.0)))
            nodes.append((tree, number, int(rng.integers(4)), str(rng.choice(modes)), at, free, free + 1))
            waiting += [(free, level + 1), (free + 1, level + 1)]
            free += 2
    return nodes, weights


def tree_node(trees: Any, labels: Sequence[Any] | None = None, *, double: bool = False, **at: Any) -> NodeProto:
    """Return TreeEnsembleClassifier with labels, TreeEnsembleRegressor without."""
    nodes, weights = trees
    kind = "target" if labels is None else "class"
    names = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_values", "nodes_truenodeids",
             "nodes_falsenodeids")  # fmt: skip
    fields: dict[str, Any] = dict(zip(names, map(list, zip(*nodes, strict=True)), strict=True))
    parts = (f"{kind}_treeids", f"{kind}_nodeids", f"{kind}_ids", f"{kind}_weights")
    fields |= dict(zip(parts, map(list, zip(*weights, strict=True)), strict=True))
    if labels is None:
        fields["n_targets"] = 1 + max(fields["target_ids"])
    else:
        fields["classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s"] = list(labels)
    fields |= at
    if double:
        for name in ("nodes_values", f"{kind}_weights", "base_values"):
            if name in fields:
                numbers = fields.pop(name)
                fields[f"{name}_as_tensor"] = helper.make_tensor("", DOUBLE, [len(numbers)], numbers)
    operator, outputs = ("TreeEnsembleRegressor", ["y"]) if labels is None else (
        "TreeEnsembleClassifier", ["label", "scores"]
    )  # fmt: skip
    return node(operator, ["X"], outputs, **fields)


def tree_model(trees: Any, labels: Sequence[Any] | None = None, *, double: bool = False, **at: Any) -> ModelProto:
    """Return a model of one tree operator over a float or double input X of 4 columns."""
    outputs = [value("y")]
    if labels is not None:
        outputs = [value("label", STRING if isinstance(labels[0], str) else INT64, [None]), value("scores")]
    given = [value("X", DOUBLE if double else FLOAT, [None, 4])]
    return model([tree_node(trees, labels, double=double, **at)], given, outputs)


def new_trees(
    dtype: Any, *, aggregate: int = 1, members: Sequence[float] = (0.0, 2.0, 3.0, float("nan")), **changed: Any
) -> ModelProto:
    """Return two trees of the operator of ai.onnx.ml 5, one of whose splits is on a set of values."""
    kind = TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT

    def tensor(values: Any, of: int = kind) -> Any:
        return helper.make_tensor("", of, [len(values)], list(values))

    fields = {
        "nodes_featureids": [0, 1, 2, 0, 3, 1],
        "nodes_modes": tensor([0, 6, 4, 2, 5, 3], TensorProto.UINT8),
        "nodes_splits": tensor([0.5, 0.0, 1.0, -1.0, 2.0, 1.5]),
        "nodes_truenodeids": [1, 2, 0, 4, 4, 6],
        "nodes_trueleafs": [0, 0, 1, 0, 1, 1],
        "nodes_falsenodeids": [3, 1, 2, 3, 5, 7],
        "nodes_falseleafs": [0, 1, 1, 1, 1, 1],
        "leaf_targetids": [0] * 8,
        "leaf_weights": tensor([0.5, -1.0, 2.0, 0.25, -0.75, 1.5, 0.1, -0.2]),
        "tree_roots": [0, 5],
        "n_targets": 1,
        "aggregate_function": aggregate,
        "post_transform": 0,
        "membership_values": tensor(members),
    }
    outputs = [value("y", kind)]
    made = node("TreeEnsemble", ["X"], ["y"], **(fields | changed))
    return model([made], [value("X", kind, [None, 4])], outputs, ml=5)


def near(core: Any, *, double: bool = False, n: int = 3000) -> Any:
    """Return random rows of 4 columns, half of whose numbers are thresholds or their neighbours."""
    rng, width = np.random.default_rng(1), np.float64 if double else np.float32
    rows = (rng.integers(-4, 5, size=(n, 4)) + rng.random((n, 4)) * (rng.random((n, 4)) < 0.3)).astype(width)
    for place in range(core.n_inputs):
        used = [tree.threshold[tree.feature == place] for tree in core.trees]
        used += [np.array(sorted(members)) for tree in core.trees for members in tree.sets]
        at = np.concatenate(used).astype(width)
        if len(at):
            values = np.concatenate([at, np.nextafter(at, width(99)), np.nextafter(at, width(-99))])
            chosen = rng.random(n) < 0.5
            rows[chosen, place] = rng.choice(values, chosen.sum())
    return rows


def dense(sizes: Sequence[int], seed: int = 0, dtype: Any = np.float32) -> tuple[list[Any], list[Any]]:
    """Return weights (in, out) and biases of a random network."""
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=pair).astype(dtype) for pair in pairwise(sizes)]
    return weights, [rng.normal(size=size).astype(dtype) for size in sizes[1:]]


def torch_net(weights: Any, biases: Any, end: Sequence[str] = ()) -> ModelProto:
    """Return what torch.onnx.export writes of Sequential(Linear, ReLU, ...): Gemm with transB=1, and Relu."""
    nodes, constants, name = [], {}, "X"
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        constants |= {f"{k}.weight": w.T.copy(), f"{k}.bias": b}
        nodes.append(node("Gemm", [name, f"{k}.weight", f"{k}.bias"], [f"g{k}"], alpha=1.0, beta=1.0, transB=1))
        name = f"g{k}"
        if k < len(weights) - 1:
            nodes.append(node("Relu", [name], [f"r{k}"]))
            name = f"r{k}"
    for k, operator in enumerate(end):
        nodes.append(node(operator, [name], [f"e{k}"], **({"axis": 1} if operator == "Softmax" else {})))
        name = f"e{k}"
    return model(nodes, weights[0].shape[0], [value(name)], constants)


def keras_net(weights: Any, biases: Any, end: Sequence[str] = ()) -> ModelProto:
    """Return what tf2onnx writes of Dense layers: MatMul and Add, Relu, Squeeze or Reshape around."""
    nodes, constants, name = [], {"shape": np.array([-1, weights[-1].shape[1]])}, "X"
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        constants |= {f"w{k}": w, f"b{k}": b}
        nodes += [node("MatMul", [name, f"w{k}"], [f"m{k}"]), node("Add", [f"m{k}", f"b{k}"], [f"a{k}"])]
        name = f"a{k}"
        if k < len(weights) - 1:
            nodes.append(node("Relu", [name], [f"r{k}"]))
            name = f"r{k}"
    nodes.append(node("Reshape", [name, "shape"], ["flat"]))
    name = "flat"
    for k, operator in enumerate(end):
        nodes.append(node(operator, [name], [f"e{k}"]))
        name = f"e{k}"
    return model(nodes, weights[0].shape[0], [value(name)], constants)
