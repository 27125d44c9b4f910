"""Representations from plain arrays: scores, decisions and what they refuse."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceopt.formulations.predictors import Affine, Tree, TreeEnsemble, trees
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

STUMP = {"feature": 0, "threshold": 0.5, "left": {"value": -1.0}, "right": {"value": 2.0}}
DEEP = {
    "feature": 1, "threshold": -1.0, "left": STUMP,
    "right": {"feature": 0, "threshold": 3.0, "left": {"value": 5}, "right": {"value": 7.5}},
}  # fmt: skip


def walk(node, row):
    """The textbook evaluation of a nested tree."""
    while "value" not in node:
        node = node["left"] if row[node["feature"]] <= node["threshold"] else node["right"]
    return node["value"]


@given(rows=st.lists(st.tuples(*[st.sampled_from([-2.0, -1.0, 0.5, np.nextafter(0.5, 1), 3.0, 9.0])] * 2), min_size=1))
def test_trees_are_walked_as_the_textbook_says(rows):
    ensemble = TreeEnsemble([STUMP, DEEP, STUMP], base=0.25, divisor=3)

    expected = [(0.25 + walk(STUMP, row) + walk(DEEP, row) + walk(STUMP, row)) / 3 for row in rows]

    assert ensemble.score(rows).tolist() == expected
    assert ensemble.predict(rows).tolist() == expected


@pytest.mark.parametrize("few_rows", [0, 64])
def test_rows_walk_down_deep_trees_a_few_at_a_time(monkeypatch, few_rows):
    """Trees with more levels than rows walk before those who have arrived are left out, in parts of 2 trees, 8 rows."""
    depth = 3 * trees._LOOKED
    data = np.linspace(-1.0, depth + 1.0, 90)[:, None]
    chains = []
    for t in range(5):
        chain = {"value": 0.1 * t}
        for k in range(depth):
            chain = {"feature": 0, "threshold": depth - k - 0.3 * t, "left": {"value": 0.7**k}, "right": chain}
        for k in range(depth):
            chain = {"feature": 0, "threshold": k + 0.3 * t, "left": chain, "right": {"value": 0.9**k}}
        chains.append(chain)
    # The built-in sum compensates from Python 3.12 on, the libraries do not.
    expected = [functools.reduce(operator.add, (walk(chain, row) for chain in chains), 0.25) for row in data]
    at_once = TreeEnsemble(chains)
    nodes = at_once.apply(data)
    monkeypatch.setattr(trees, "_FEW_ROWS", few_rows)
    monkeypatch.setattr(trees, "_NODES", 2 * len(at_once.trees[0].feature))
    monkeypatch.setattr(trees, "_PAIRS", 16)

    ensemble = TreeEnsemble(chains, base=0.25)

    assert ensemble.score(data).tolist() == expected
    assert ensemble.apply(data).tolist() == nodes.tolist()


def test_nested_trees_are_numbered_root_first():
    tree = Tree.from_mapping(DEEP)

    assert tree.feature.tolist() == [1, 0, -1, -1, 0, -1, -1]
    assert tree.left.tolist() == [1, 2, -1, -1, 5, -1, -1]
    assert tree.right.tolist() == [4, 3, -1, -1, 6, -1, -1]
    assert tree.value[:, 0].tolist() == [0, 0, -1.0, 2.0, 0, 5.0, 7.5]
    assert TreeEnsemble([STUMP, tree]).apply([[0.5, 0.0], [9.0, 0.0]]).tolist() == [[1, 5], [2, 6]]


def test_a_tree_of_one_leaf_is_a_constant():
    ensemble = TreeEnsemble([{"value": [1.0, 2.0]}], base=[0.5, 0.0], labels="ab", n_inputs=3)

    assert ensemble.score(np.zeros((2, 3))).tolist() == [[1.5, 2.0]] * 2
    assert ensemble.predict(np.zeros((2, 3))).tolist() == ["b", "b"]


def test_defaults_follow_from_labels_and_scores():
    for model, decision, n_scores in (
        (Affine([1.0], 0.0), "value", 1),
        (Affine([1.0], 0.0, labels=(0, 1)), "positive", 1),
        (Affine([[1.0], [2.0]], 0.0, labels=(0, 1)), "argmax", 2),
        (TreeEnsemble([STUMP]), "value", 1),
        (TreeEnsemble([STUMP], labels=("a", "b")), "positive", 1),
        (TreeEnsemble([{"value": [1, 2, 3]}], labels="abc"), "argmax", 3),
    ):
        assert (model.decision, model.n_scores, model.probability) == (decision, n_scores, None)


def test_ties_are_decided_as_stated():
    assert Affine([1.0], 0.0, labels=("a", "b")).predict([[0.0], [5e-324]]).tolist() == ["a", "b"]
    assert Affine([1.0], 0.0, labels=("a", "b"), decision="nonnegative").predict([[0.0], [-1.0]]).tolist() == ["b", "a"]
    assert Affine([[1.0], [1.0]], 0.0, labels=("a", "b")).predict([[3.0]]).tolist() == ["a"]


def test_scores_have_a_column_per_score():
    model = Affine([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.5, -1.0], labels=("x", "y", "z"))

    assert model.score([[1.0, 2.0]]).tolist() == [[1.0, 2.5, 2.0]]
    assert model.predict([[1.0, 2.0]]).tolist() == ["y"]
    assert (model.weights.shape, model.intercept.shape, model.n_inputs, model.n_scores) == ((3, 2), (3,), 2, 3)


def test_labels_keep_their_type():
    assert Affine([1.0], 0.0, labels=(False, True)).predict([[1.0]]).dtype == bool
    assert Affine([1.0], 0.0, labels=("n", 1)).predict([[1.0], [-1.0]]).tolist() == [1, "n"]


def test_right_gap_belongs_to_programs_and_not_to_scores():
    assert TreeEnsemble([STUMP], right_gap=0.25).score([[0.6]]).tolist() == [2.0]


def test_arrays_cannot_be_changed_behind_the_back():
    weights = np.array([1.0, 2.0])
    model = Affine(weights, 0.0)
    weights[0] = 9.0

    assert model.weights.tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match="read-only"):
        model.weights[0, 0] = 3.0
    with pytest.raises(AttributeError):
        model.head = None


def leafless(**changes):
    arrays = {
        "feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1], "value": [0, 1, 2],
    }  # fmt: skip
    return Tree(**{name: np.array(values) for name, values in (arrays | changes).items()})


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: Affine([np.nan], 0.0), InvalidValueError, "finite weights, but weights has nan"),
        (lambda: Affine([1.0], np.inf), InvalidValueError, "intercept has inf"),
        (lambda: Affine(["a"], 0.0), InvalidTypeError, r"numbers as weights, but weights is \['a'\]"),
        (lambda: Affine([1.0], [0.0, 1.0]), InvalidValueError, r"weights are \(1, 1\) and intercept \(2,\)"),
        (lambda: Affine(np.zeros((2, 2, 2)), 0.0), InvalidValueError, "weights are"),
        (lambda: Affine([1.0], 0.0, labels=("a",)), InvalidValueError, "2 different labels for 1 score"),
        (lambda: Affine([1.0], 0.0, labels=("a", "a")), InvalidValueError, "2 different labels"),
        (lambda: Affine([[1.0], [2.0]], 0.0), InvalidValueError, "labels for several scores"),
        (lambda: Affine([[1.0], [2.0]], 0.0, labels="abc"), InvalidValueError, "2 different labels for 2 score"),
        (
            lambda: Affine([1.0], 0.0, decision="positive"),
            UnknownNameError,
            "decision is 'positive'. Choose from: value",
        ),
        (lambda: Affine([1.0], 0.0, labels="ab", decision="argmax"), UnknownNameError, "positive, nonnegative"),
        (lambda: Affine([1.0], 0.0, labels="ab", probability="share"), InvalidValueError, "probability is 'share'"),
        (lambda: Affine([1.0], 0.0, dtype="float16"), UnknownNameError, "dtype is 'float16'"),
        (lambda: Affine([1.0], 0.0).score([[1.0, 2.0]]), InvalidValueError, r"1 columns, but X has shape \(1, 2\)"),
        (lambda: Affine([1.0], 0.0).score([[np.nan]]), InvalidValueError, "X has nan"),
        (lambda: TreeEnsemble([]), InvalidValueError, "Give at least one tree"),
        (lambda: TreeEnsemble([STUMP], n_inputs=0), InvalidValueError, "below n_inputs 0, but a split has feature 0"),
        (lambda: TreeEnsemble([DEEP]).score([[1.0]]), InvalidValueError, "a matrix with 2 columns"),
        (lambda: TreeEnsemble([STUMP], base=[1.0, 2.0]), InvalidValueError, "one base or 1"),
        (lambda: TreeEnsemble([STUMP], base=np.nan), InvalidValueError, "base has nan"),
        (lambda: TreeEnsemble([STUMP], divisor=0), InvalidValueError, "a positive divisor, but divisor is 0"),
        (lambda: TreeEnsemble([STUMP], right_gap=-1), InvalidValueError, "a positive right_gap"),
        (lambda: TreeEnsemble([STUMP], input_dtype="float16"), UnknownNameError, "input_dtype is 'float16'"),
        (lambda: TreeEnsemble([STUMP, {"value": [1, 2]}]), InvalidValueError, r"they have \[1, 2\]"),
        (lambda: TreeEnsemble([STUMP | {"threshold": np.inf}]), InvalidValueError, "threshold has inf"),
        (lambda: TreeEnsemble([{"value": np.nan}]), InvalidValueError, "value has nan"),
        (lambda: TreeEnsemble([STUMP | {"feature": -1}]), InvalidValueError, "one is -1. Count from 0"),
        (lambda: TreeEnsemble([STUMP | {"feature": 0.5}]), InvalidValueError, "one is 0.5"),
        (lambda: TreeEnsemble([{"feature": 0, "threshold": 1.0}]), InvalidValueError, r"\['feature', 'threshold'\]"),
        (lambda: TreeEnsemble([STUMP | {"left": 3}]), InvalidValueError, "one has 3"),
        (lambda: TreeEnsemble([STUMP | {"left": {"value": [1, 2]}}]), InvalidValueError, r"leaves have \[1, 2\]"),
        (lambda: leafless(left=[2, -1, -1]), InvalidValueError, "every node but the root to be the child of one"),
        (lambda: leafless(left=[0, -1, -1]), InvalidValueError, "every node but the root"),
        (lambda: leafless(right=[7, -1, -1]), InvalidValueError, "every node but the root"),
        (lambda: leafless(value=[0, 1]), InvalidValueError, "arrays over the same nodes"),
        (lambda: leafless(value=[0, 1, np.inf]), InvalidValueError, "value has inf"),
    ],
)
def test_what_is_no_representation_is_refused(build, error, match):
    with pytest.raises(error, match=match):
        build()


def test_nodes_that_no_path_reaches_are_refused():
    """Node 1 is its own left child, and the root is a leaf."""
    with pytest.raises(InvalidValueError, match="every node but the root"):
        Tree(np.array([-1, 0, -1]), np.zeros(3), np.array([-1, 1, -1]), np.array([-1, 2, -1]), np.zeros(3))
