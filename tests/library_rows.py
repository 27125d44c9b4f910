"""Rows on which a model that was read is held against the library: random ones, and those next to every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.svm import SVC

from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.representation import Affine, ReluNetwork
from ceopt.formulations.predictors.trees import TreeEnsemble

__all__ = ["as_given", "check", "check_composite", "frame_of", "trial_rows"]


def as_given(frame: pd.DataFrame, *, array: bool) -> Any:
    """What the user hands to a model fitted on an array or on a frame."""
    if not array:
        return frame
    return frame.to_numpy(dtype=float if all(map(pd.api.types.is_numeric_dtype, frame.dtypes)) else object)


def frame_of(space: Any, coordinates: np.ndarray[Any, Any]) -> pd.DataFrame:
    return space.frame([dict(zip(space.names, row, strict=True)) for row in coordinates.tolist()])


def trial_rows(predictor: Any, coordinates: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Random rows, then for every threshold of every part the rows on it and next to it."""
    space, rng = predictor.space, np.random.default_rng(1)
    rows = [*coordinates]
    for part in predictor.forests:
        for place, column in enumerate(part.encoding.columns):
            used = [tree.threshold[tree.feature == place] for tree in part.core.trees]
            if column.table is not None or column.feature is None or not np.concatenate(used).size:
                continue
            last = column.largest_left(np.unique(np.concatenate(used)), part.core.input_dtype)
            near = [last, np.nextafter(last, np.inf), np.nextafter(last, -np.inf)]
            with np.errstate(over="ignore"):
                near += [np.nextafter(last.astype("f4"), np.float32(end)).astype(float) for end in (np.inf, -np.inf)]
            values = np.concatenate(near)
            if space[column.feature].kind == "integer":
                values = np.concatenate([np.floor(last), np.floor(last) + 1])
            low, high = space[column.feature].coordinate_limits
            with np.errstate(over="ignore"):  # the library refuses numbers that its width does not hold
                held = np.isfinite(values.astype(part.core.input_dtype)) & (values >= low) & (values <= high)
            for value in values[held]:
                row = coordinates[rng.integers(len(coordinates))].copy()
                row[space.names.index(column.feature)] = value
                rows.append(row)
    return np.array(rows)


def check(model: Any, data: Any, *, array: bool, steps: Any, estimator: Any) -> None:
    predictor = read(model, data.space)
    rows = trial_rows(predictor, data.space.coordinates(data.frame))
    given = as_given(frame_of(data.space, rows), array=array)
    seen = steps.transform(given) if steps is not None else given
    matrix = predictor.encoding.matrix(rows)
    core = predictor.core

    own = getattr(estimator, "_preprocessor", None)  # codes of native categories, unknown ones NaN
    plain = seen.toarray() if hasattr(seen, "toarray") else np.asarray(seen)
    plain = plain if own is None else np.nan_to_num(own.transform(seen), nan=-1.0)
    np.testing.assert_array_equal(matrix, plain.astype(float))
    if core.labels is not None:
        assert list(core.labels) == estimator.classes_.tolist()
    if isinstance(core, TreeEnsemble) and "Boosting" in type(estimator).__name__:
        check_boosted(estimator, core, seen, matrix)
        return
    if isinstance(core, TreeEnsemble):
        np.testing.assert_array_equal(core.apply(matrix), np.asarray(estimator.apply(seen)).reshape(len(rows), -1))
        expected = model.predict(given) if core.labels is None else model.predict_proba(given)
        np.testing.assert_array_equal(core.score(matrix), expected)
        np.testing.assert_array_equal(core.predict(matrix), model.predict(given))
        assert core.probability == (None if core.labels is None else "share")
        return
    if isinstance(core, ReluNetwork):
        check_network(estimator, core, seen, matrix)
        return
    assert isinstance(core, Affine)
    expected = model.predict(given) if core.labels is None else model.decision_function(given)
    score = core.score(matrix)
    size = np.abs(matrix) @ np.abs(core.weights.T) + np.abs(core.intercept)
    if isinstance(estimator, SVC):  # the library adds up over support vectors instead of over columns
        size = np.abs(estimator.dual_coef_) @ (np.abs(estimator.support_vectors_) @ np.abs(plain.T.astype(float)))
    error = 4 * matrix.shape[1] * np.finfo(core.dtype).eps * size.reshape(score.shape)
    assert (np.abs(score - expected) <= error).all()
    clear = np.abs(score) > error if score.ndim == 1 else np.sort(score)[:, -1] - np.sort(score)[:, -2] > error.max(1)
    assert clear.mean() > 0.9
    if core.labels is not None:
        np.testing.assert_array_equal(core.predict(matrix)[clear], model.predict(given)[clear])
    if core.probability == "logistic":
        np.testing.assert_allclose(expit(score), model.predict_proba(given)[:, 1], rtol=1e-12)


def check_composite(model: Any, data: Any, *, array: bool, exact: bool = True) -> Any:
    """Labels are those of the model on every row, and its probabilities or values to the bit, or to a few roundings.

    Rows on which a linear member stands within a rounding of a tie do not occur among the trial rows.
    """
    predictor = read(model, data.space)
    core, rows = predictor.core, trial_rows(predictor, data.space.coordinates(data.frame))
    given = as_given(frame_of(data.space, rows), array=array)
    scores = predictor.score(rows)
    if core.labels is None:
        compare(scores, model.predict(given), exact=exact)
        return predictor
    assert list(core.labels) == model.classes_.tolist()
    np.testing.assert_array_equal(core.head.decide(scores), model.predict(given))
    assert len(set(model.predict(given))) > 1
    if hasattr(model, "predict_proba") and core.probability is not None:
        shares = np.stack([core.head.of_position(scores, k) for k in range(len(core.labels))], axis=1)
        compare(shares, model.predict_proba(given), exact=exact)
    return predictor


def compare(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], *, exact: bool) -> None:
    if exact:
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-11 * np.abs(theirs).max())


def check_boosted(estimator: Any, core: TreeEnsemble, seen: Any, matrix: np.ndarray[Any, Any]) -> None:
    """Leaves and labels are the library's, scores to a few units in the last place per term."""
    leaves = core.apply(matrix)
    if hasattr(estimator, "apply"):
        assert core.input_dtype == "float32"
        plain = seen.to_numpy() if isinstance(seen, pd.DataFrame) else seen  # its apply() warns of a frame's names
        np.testing.assert_array_equal(leaves, np.asarray(estimator.apply(plain)).reshape(len(leaves), -1))
    else:  # the library tells the value of a leaf, not its number
        assert core.input_dtype == "float64"
        trees = [tree for stage in estimator._predictors for tree in stage]
        rows = np.ascontiguousarray(estimator._preprocess_X(seen, reset=False))
        known = estimator._bin_mapper.make_known_categories_bitsets()
        for tree, ours, leaf in zip(trees, core.trees, leaves.T, strict=True):
            np.testing.assert_array_equal(ours.value[leaf].sum(axis=1), tree.predict(rows, *known, 1))
            assert np.array_equal(ours.inner, tree.nodes["is_leaf"] == 0)
    np.testing.assert_array_equal(core.predict(matrix), estimator.predict(seen))
    exponential = estimator.loss == "exponential"
    expected = estimator.predict(seen) if core.labels is None else estimator.decision_function(seen)
    terms = [tree.value[leaf] for tree, leaf in zip(core.trees, leaves.T, strict=True)]
    size = np.abs(core.base) + np.abs(terms).sum(axis=0)
    error = 4 * np.finfo(float).eps * (size[:, 0] if core.n_scores == 1 else size)
    assert (np.abs(core.score(matrix) / (2.0 if exponential else 1.0) - expected) <= error).all()
    if core.labels is None or core.n_scores > 1:
        assert core.probability is None
    else:
        assert core.probability == "logistic"
        assert core.decision == ("nonnegative" if hasattr(estimator, "apply") else "positive")
        np.testing.assert_allclose(expit(core.score(matrix)), estimator.predict_proba(seen)[:, 1], rtol=1e-12)


def check_network(estimator: Any, core: ReluNetwork, seen: Any, matrix: np.ndarray[Any, Any]) -> None:
    """Values and probabilities are the library's up to rounding, labels wherever the margin is above it."""
    size, terms = np.abs(matrix).astype(float), 0
    for w, b in zip(core.weights, core.biases, strict=True):
        size, terms = size @ np.abs(w).T + np.abs(b), terms + w.shape[1] + 2
    score, predicted = core.score(matrix), core.predict(matrix)
    error = 2 * terms * np.finfo(core.dtype).eps * (size[:, 0] if score.ndim == 1 else size)
    theirs = estimator.predict(seen)
    if core.labels is None:
        assert core.dtype == theirs.dtype
        assert (np.abs(score - theirs) <= error).all()
        return
    share = estimator.predict_proba(seen)
    assert core.dtype == share.dtype
    if score.ndim == 1:
        ours, clear = np.asarray(core.probability(score)), np.abs(score) > error
        assert (np.abs(ours - share[:, 1]) <= error + np.finfo(core.dtype).eps).all()
    else:
        best = np.sort(score)[:, ::-1]
        clear, error = best[:, 0] - best[:, 1] > 2 * error.max(axis=1), error.max(axis=1, keepdims=True)
        assert core.probability is None
        assert (np.abs(softmax(score, axis=1) - share) <= 2 * error + 4 * np.finfo(core.dtype).eps).all()
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(predicted[clear], theirs[clear])
