"""Tree ensembles of ONNX made by hand: every mode, rule of labels, width and version, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import MODES, grown, near, new_trees, run, tree_model

from ceopt.formulations.predictors.readers import open_model
from ceopt.solvers.errors import UnsupportedModelError

NAN = float("nan")


def agree(given, *, double=False, rows=None):
    """Labels equal; a regressor's values equal in the float32 of its output."""
    core = open_model(given.SerializeToString()).core
    rows = near(core, double=double) if rows is None else rows
    said = run(given, rows)[0].ravel()
    if core.labels is None:
        np.testing.assert_array_equal(core.predict(rows).astype(said.dtype), said)
        assert len(np.unique(said)) > 3
    else:
        np.testing.assert_array_equal(core.predict(rows), said)
        assert set(said.tolist()) == set(core.labels)
    return core


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("mode", [*MODES, "mixed"])
def test_every_mode_on_every_threshold_and_its_neighbours(mode, double):
    trees = grown(0, 7, 1, MODES if mode == "mixed" else [mode])
    core = agree(tree_model(trees, double=double, base_values=[0.3]), double=double)

    assert core.input_dtype == core.sum_dtype == ("float64" if double else "float32")


@pytest.mark.parametrize("link", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("base", [[], [0.1]])
@pytest.mark.parametrize(("low", "level"), [(0.0, 0.5), (-1.0, 0.0)])
def test_one_score_of_two_labels_turns_over_at_a_half_unless_a_weight_is_negative(link, base, low, level):
    trees = grown(1, 1 if low == 0 else 3, 1, MODES, low=low)
    core = agree(tree_model(trees, [3, 7], post_transform=link, **({"base_values": base} if base else {})))

    assert (core.level, core.decision, core.labels) == (level, "positive", (3, 7))


def test_probabilities_are_those_of_the_graph():
    for low, link, kind in ((0.0, "NONE", None), (-1.0, "LOGISTIC", "logistic"), (-1.0, "NONE", None)):
        opened = open_model(tree_model(grown(1, 3, 1, MODES, low=low), ["n", "y"], post_transform=link))
        assert opened.core.probability == kind
        assert hasattr(opened, "predict_proba") == (kind is not None)
    fractions = [(t, n, k, w / 3) for t, n, k, w in grown(1, 3, 1, MODES, low=0.0)[1]]
    forest = tree_model((grown(1, 3, 1, MODES, low=0.0)[0], fractions), ["n", "y"])
    rows = near(open_model(forest).core)

    assert open_model(forest).core.probability == "identity"
    np.testing.assert_array_equal(open_model(forest).predict_proba(rows), run(forest, rows)[1])


@pytest.mark.parametrize("link", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("base", [[], [0.5, 0.0, 0.5]])
def test_the_first_of_several_largest_scores_wins(link, base):
    nodes, weights = grown(2, 3, 3, MODES)
    halves = [(t, n, k, round(2 * w) / 2) for t, n, k, w in weights]
    given = tree_model((nodes, halves), ["a", "b", "c"], post_transform=link, **({"base_values": base} if base else {}))
    core = agree(given)
    scores = np.sort(core.score(near(core)), axis=1)

    assert (scores[:, -1] == scores[:, -2]).mean() > 0.05


def test_an_average_divides_before_the_base_is_added():
    given = tree_model(grown(3, 5, 1, MODES), aggregate_function="AVERAGE", base_values=[0.25])
    core = open_model(given).core
    rows = near(core)

    np.testing.assert_allclose(core.score(rows), run(given, rows)[0].ravel(), rtol=0, atol=2e-7)
    assert core.divisor == 5


def test_sums_are_those_of_one_thread_whatever_the_batch():
    given = tree_model(grown(4, 200, 1, MODES[:4]), base_values=[0.3])
    core = agree(given)
    rows = near(core)[:60]
    said = core.predict(rows).astype(np.float32)

    np.testing.assert_array_equal(said, run(given, rows)[0].ravel())
    np.testing.assert_array_equal(said, [run(given, row[None])[0].item() for row in rows])


def test_whole_numbers_are_compared_as_float32():
    given = tree_model(grown(5, 4, 1, MODES), ["n", "y"])
    given.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    core = open_model(given).core
    rows = np.random.default_rng(0).integers(-5, 6, size=(500, 4))

    assert core.input_dtype == "float32"
    np.testing.assert_array_equal(core.predict(rows), run(given, rows)[0])


# ---- the operator of ai.onnx.ml 5 ----
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_new_operator_with_sets_of_values(dtype):
    given = new_trees(dtype)
    core = agree(given, double=dtype == np.float64)

    assert frozenset({0.0, 2.0, 3.0}) in core.trees[0].sets
    assert len(core.trees) == 2


def test_sets_of_categories_beyond_a_bit_mask():
    given = new_trees(np.float32, members=(-1.0, 2.0, 40.0, NAN))
    core = open_model(given).core
    rows = np.random.default_rng(0).integers(-3, 4, size=(800, 4)).astype("f4")
    rows[::7, 1] = 40

    np.testing.assert_array_equal(core.predict(rows).astype("f4"), run(given, rows)[0].ravel())


def test_a_new_tree_without_a_split():
    weights = helper.make_tensor("", TensorProto.FLOAT, [1], [2.5])
    one = {
        "nodes_featureids": [0],
        "nodes_truenodeids": [0],
        "nodes_falsenodeids": [0],
        "nodes_trueleafs": [1],
        "nodes_falseleafs": [1],
        "leaf_targetids": [0],
        "leaf_weights": weights,
        "tree_roots": [0],
        "nodes_modes": helper.make_tensor("", TensorProto.UINT8, [1], [0]),
        "nodes_splits": helper.make_tensor("", TensorProto.FLOAT, [1], [0.0]),
    }
    given = new_trees(np.float32, **one)
    del given.graph.node[0].attribute[[a.name for a in given.graph.node[0].attribute].index("membership_values")]

    assert open_model(given).core.predict(np.zeros((2, 4))).tolist() == [2.5, 2.5]


# ---- what is refused ----
def edited(change, labels=None, **at):
    """A small regressor or classifier whose stored lists are changed."""
    nodes, weights = grown(6, 2, 1 if labels is None or len(labels) == 2 else len(labels), ["BRANCH_LEQ"], depth=2)
    return tree_model(change(list(nodes), list(weights)), labels, **at)


def put(place, field, number):
    """Change a field of a node."""

    def change(nodes, weights):
        nodes[place] = (*nodes[place][:field], number, *nodes[place][field + 1 :])
        return nodes, weights

    return change


def same(nodes, weights):
    return nodes, weights


REFUSED = {
    "cycle": (edited(put(1, 5, 0)), r"has a node with two in the tree of 0|node 1 of tree 0"),
    "own child": (edited(put(0, 5, 0)), r"trees, in which each node has one parent"),
    "two parents": (edited(put(0, 5, 2)), r"trees, in which each node has one parent"),
    "child out of range": (
        edited(put(0, 6, 99)),
        r"children that are nodes, but the ONNX model has node 0 of tree 0 with child 99",
    ),
    "same node twice": (edited(put(1, 1, 0)), r"a node once, but the ONNX model has node 0 of tree 0 twice"),
    "negative feature": (edited(put(0, 2, -1)), r"features from 0 to 9999, but the ONNX model has feature -1"),
    "huge feature": (edited(put(0, 2, 1 << 40)), r"has feature 1099511627776"),
    "nan threshold": (edited(put(0, 4, NAN)), r"finite nodes_values, but the ONNX model has nan"),
    "infinite threshold": (edited(put(0, 4, float("inf"))), r"has inf in TreeEnsembleRegressor"),
    "mode": (edited(put(0, 3, "BRANCH_MAYBE")), r"mode 'BRANCH_MAYBE'"),
    "nan weight": (
        edited(lambda n, w: (n, [(*w[0][:3], NAN), *w[1:]])),
        r"finite target_weights, but the ONNX model has nan",
    ),
    "weight nowhere": (
        edited(lambda n, w: (n, [(0, 77, 0, 1.0), *w])),
        r"weights at leaves, but .* has one at node 77 of tree 0",
    ),
    "leaf without": (edited(lambda n, w: (n, w[1:])), r"a weight at each leaf, but .* has none at node"),
    "two weights": (edited(lambda n, w: (n, [*w, w[0]])), r"one weight per leaf and score"),
    "target id": (edited(same, n_targets=0), r"below the number of scores, 0"),
    "length": (edited(same, nodes_featureids=[0]), r"lists of one length, .*nodes_featureids 1"),
    "maximum": (edited(same, aggregate_function="MAX"), r"trees that add up, but .* aggregate_function 'MAX'"),
    "probit": (edited(same, ["n", "y"], post_transform="PROBIT"), r"post_transform 'PROBIT' in TreeEnsembleClassifier"),
    "softmax of one": (edited(same, ["n", "y"], post_transform="SOFTMAX"), r"among NONE, LOGISTIC, but"),
    "two bases": (edited(same, ["n", "y"], base_values=[0.1, 0.2]), r"1 base values, but the ONNX model has 2"),
    "second class": (edited(lambda n, w: (n, [(t, i, 1, x) for t, i, _, x in w]), ["n", "y"]), r"class ids \[1\]"),
    "one label": (edited(same, ["n"]), r"at least two different class labels, but the ONNX model has \['n'\]"),
    "unscored": (edited(lambda n, w: (n, [one for one in w if one[2]]), [1, 2, 3]), r"none for class id 0"),
    "many scores": (edited(same, n_targets=1 << 40), r"at most 10000 numbers per row, but .* makes 1099511627776"),
    "new child": (new_trees(np.float32, nodes_falsenodeids=[3, 1, 2, 3, 5, 70]), r"node 5 with child 70"),
    "new cycle": (new_trees(np.float32, nodes_truenodeids=[0, 2, 0, 4, 4, 6]), r"each node has one parent"),
    "new root": (new_trees(np.float32, tree_roots=[9]), r"tree_roots that are nodes, but the ONNX model has \[9\]"),
    "no set": (new_trees(np.float32, members=()), r"a set of finite values per BRANCH_MEMBER node, but .* has 0 for 1"),
    "new mode": (new_trees(np.float32, nodes_modes=helper.make_tensor("", TensorProto.UINT8, [6], [9] * 6)), r"mode 9"),
    "new maximum": (new_trees(np.float32, aggregate=3), r"aggregate_function 'MAX'"),
    "new length": (new_trees(np.float32, nodes_trueleafs=[1]), r"lists of one length"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_trees_that_are_none_are_refused_by_name(name):
    given, match = REFUSED[name]
    with pytest.raises(UnsupportedModelError, match=match):
        open_model(given)


def test_a_chain_deeper_than_runtimes_walk_is_refused():
    n = 1500
    nodes = [(0, 2 * k, 0, "BRANCH_LEQ", float(k), 2 * k + 1, 2 * k + 2) for k in range(n)]
    leaves = [(0, 2 * k + 1, 0, "LEAF", 0.0, 0, 0) for k in range(n)] + [(0, 2 * n, 0, "LEAF", 0.0, 0, 0)]
    weights = [(0, leaf[1], 0, 1.0) for leaf in leaves]

    with pytest.raises(UnsupportedModelError, match="trees of depth 1000 at most"):
        open_model(tree_model((nodes + leaves, weights)))


def test_a_reader_that_understood_a_file_otherwise_than_its_runtime_refuses_it(monkeypatch):
    """The representation is held against the graph on random rows; here the reader loses the base value."""
    monkeypatch.setattr("ceopt.formulations.predictors.readers.onnx.model._constant", lambda _: [])
    given = tree_model(grown(0, 3, 1, MODES), base_values=[0.75])

    with pytest.raises(UnsupportedModelError, match="to predict what the graph does, but the ONNX model says"):
        open_model(given)
