"""Groups of rows, each with a hull of its own: by k-means, by a clusterer of scikit-learn, or as labelled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.solvers.checks import plain
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["check_clusters", "cluster_labels", "labels_of_rows"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

#: Runs of k-means, each from other centres; steps of one at most, and between two looks at the clock where numbers
#: times clusters are more than the last.
_RUNS, _STEPS, _AT_ONCE, _LARGE = 10, 300, 10, 200_000
#: What the time limit ends here.
_STAGE = "clustering the rows of a hull"
_CHOICES = "Give a count, a clusterer such as DBSCAN(), or a label per row."


def check_clusters(clusters: Any) -> None:
    """Refuse what is no count, clusterer or sequence of labels, before there are rows."""
    if clusters is None or _is_clusterer(clusters):
        return
    if isinstance(clusters, int | np.integer) and not isinstance(clusters, bool | np.timedelta64):
        if clusters < 1:
            raise InvalidValueError("Hull", "at least one cluster", f"clusters is {clusters!r}", _CHOICES)
        return
    if isinstance(clusters, type) and hasattr(clusters, "fit_predict"):
        name = clusters.__name__
        raise InvalidTypeError("Hull", "a clusterer", f"clusters is the class {name}", f"Make one: {name}().")
    if isinstance(clusters, str | bytes | Mapping | pd.DataFrame) or np.ndim(_as_array(clusters)) != 1:
        but = f"clusters is {type(clusters).__name__}"
        raise InvalidTypeError("Hull", "clusters as a count, a clusterer or labels", but, _CHOICES)
    labels = [plain(label) for label in _listed(clusters)]
    for label in (label for label in labels if not isinstance(label, Hashable)):
        raise InvalidTypeError("Hull", "labels such as numbers or text", f"one of clusters is {label!r}", _CHOICES)
    if any(pd.isna(label) is True for label in labels):
        raise InvalidValueError("Hull", "a label for every row", "one of clusters is missing", "Use -1 for noise.")


def labels_of_rows(clusters: Any, n_rows: int) -> list[Any] | None:
    """Return clusters that were given as a label for each of some rows; None where they are anything else."""
    if clusters is None or isinstance(clusters, int | np.integer) or _is_clusterer(clusters):
        return None
    labels = _listed(clusters)
    return labels if len(labels) == n_rows else None  # others are refused where they are read


def cluster_labels(clusters: Any, values: Floats, drawn: Places) -> tuple[tuple[Any, ...], Places]:
    """Return the labels of the clusters and, for each row drawn, the position of its own; -1 for noise.

    Parameters
    ----------
    clusters
        As :func:`check_clusters` accepts it.
    values
        All rows as the hull sees them, (n, D).
    drawn
        Places of the rows that are used: a count or a clusterer sees only these; labels are given for all.
    """
    if clusters is None:
        return (None,), np.zeros(len(drawn), dtype=np.intp)
    if isinstance(clusters, int | np.integer) or _is_clusterer(clusters):
        found = _clustered(clusters, values[drawn])
    else:
        found = _listed(clusters)
        if len(found) != len(values):
            but = f"clusters has {len(found)} labels for {len(values)} rows"
            raise InvalidValueError("Hull", "one label per row", but, "Label each row of its data, in their order.")
        found = [found[k] for k in drawn]
    labels = [plain(label) for label in found]
    names = sorted({label for label in labels if not _is_noise(label)}, key=lambda label: (type(label).__name__, label))
    if not names:
        raise InvalidValueError(
            "Hull", "rows in some cluster", "every label is -1, which is noise", "Let the clusterer join more rows."
        )
    position = {name: k for k, name in enumerate(names)}
    return tuple(names), np.array([-1 if _is_noise(label) else position[label] for label in labels], dtype=np.intp)


def _clustered(clusters: Any, values: Floats) -> list[Any]:
    from sklearn.base import clone

    checkpoint(_STAGE)
    count: Any = getattr(clusters, "n_clusters", None)
    if isinstance(clusters, int | np.integer):
        count = clusters
    distinct = len(np.unique(values, axis=0))
    if isinstance(count, int | np.integer) and count > distinct:
        raise InvalidValueError(
            "Hull", "at least as many distinct rows as clusters",
            f"clusters asks for {count} and there are {distinct}", "Ask for fewer, or give more rows.",
        )  # fmt: skip
    if count is clusters:
        return _by_k_means(int(count), values)
    name = type(clusters).__name__
    try:
        found = np.asarray(clone(clusters).fit_predict(values))
    except Exception as error:
        but = f"{name} fails with {type(error).__name__}: {error}"
        raise InvalidValueError("Hull", "a clusterer that takes its rows", but, _CHOICES) from error
    if found.shape != (len(values),):
        but = f"{name} returns shape {found.shape} for {len(values)} rows"
        raise InvalidValueError("Hull", "one label per row", but, _CHOICES)
    return list(found)


def _by_k_means(count: int, values: Floats) -> list[Any]:
    """Return the best of ten runs of k-means, those of ``KMeans(count, random_state=0, n_init=10)``.

    Run by run, so that a time limit can end it, and where a step takes milliseconds a few steps at a time: a run that
    has met its tolerance just then makes some more.
    """
    from sklearn.cluster import KMeans

    draws = np.random.RandomState(0)
    best = None
    for _ in range(_RUNS):
        checkpoint(_STAGE)
        steps = few = _STEPS if count * values.size <= _LARGE else _AT_ONCE
        run = KMeans(count, random_state=draws, n_init=1, max_iter=few).fit(values)
        while run.n_iter_ == few and steps < _STEPS:
            checkpoint(_STAGE)
            run = KMeans(count, init=run.cluster_centers_, n_init=1, max_iter=few).fit(values)
            steps += few
        if best is None or run.inertia_ < best.inertia_:
            best = run
    assert best is not None  # noqa: S101 - there is at least one run
    return list(best.labels_)


def _is_clusterer(clusters: Any) -> bool:
    return all(hasattr(clusters, word) for word in ("fit_predict", "get_params")) and not isinstance(clusters, type)


def _is_noise(label: Any) -> bool:
    return isinstance(label, int | float) and not isinstance(label, bool) and label == -1


def _as_array(clusters: Any) -> Any:
    try:
        return np.asarray(clusters)
    except ValueError:  # ragged
        return np.zeros((0, 0))


def _listed(clusters: Any) -> list[Any]:
    return clusters.tolist() if hasattr(clusters, "tolist") else list(clusters)
