"""Nearest neighbours of a counterfactual: whether it is among people, and among those who got what it asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.asking import predicted, wanted
from ceopt.metrics.distance import NORM, NORMS, Norm, embedded
from ceopt.metrics.rows import Floats
from ceopt.solvers.checks import Refusal, Whole
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["favoured", "favoured_share", "knn_distance", "require_count", "ynn"]


def ynn(
    S: Any,
    data: Any,
    model: Any = None,
    target: Any = None,
    *,
    k: int = 5,
    labels: Any = None,
    norm: Norm = "l2",
    space: FeatureSpace | None = None,
    scale: Any = "none",
    zero: float | None = None,
) -> float:
    r"""Share of the k nearest people of each counterfactual that are in the target, on average; higher is better.

    .. math:: \text{yNN} = \frac{1}{|S|\,k} \sum_{c \in S} \sum_{i \in N_k(c)} [f(d_i) \in T]
        \;=\; 1 - \frac{1}{|S|\,k} \sum_{c \in S} \sum_{i \in N_k(c)} |y^* - f(d_i)| \ \text{for labels 0 and 1}

    Neighbours are taken from all of ``data``, whatever their label; a row that equals c counts. Ties are broken as
    scikit-learn does.

    Parameters
    ----------
    S
        Counterfactuals.
    data
        People, in the columns of S. CARLA takes the whole data set, RecourseBench the evaluated rows only.
    model, target
        As for :func:`~ceopt.metrics.validity.validity`.
    k
        How many neighbours; CARLA's y.
    labels
        Of the rows of ``data``, instead of a model.
    norm, space, scale, zero
        As for :func:`~ceopt.metrics.distance.distance`: raw units by default, in which one large column decides who is
        near. CARLA works on columns scaled to [0, 1], ``scale="range"``, with a category as 0/1 columns.

    Raises
    ------
    UnknownNameError, InvalidTypeError
        As ``distance`` and ``validity``; neither model nor labels.
    InvalidValueError
        The same; less than k people; labels of another number than people.

    References
    ----------
    Pawelczyk et al. (2021), CARLA, yNN.

    Examples
    --------
    The two people next to 2.9 are at 3 and 2, of which 3 is favoured; those next to 9 are both.

    >>> ynn([[2.9], [9.0]], [[1.0], [2.0], [3.0], [4.0]], lambda rows: rows[:, 0] > 2, True, k=2)
    0.75
    """
    NORM.require("ynn", "norm", norm)
    points, people = embedded("ynn", norm, space=space, scale=scale, zero=zero, data=data, include_data=True, S=S)
    return favoured_share(points, people, k, norm, favoured(data, model, target, labels, len(people), space))


def favoured(  # noqa: PLR0917 - a step of ynn
    data: Any, model: Any, target: Any, labels: Any, n: int, space: FeatureSpace | None
) -> NDArray[np.bool_]:
    """Return which of n people are in the target, by their labels or else by a model."""
    if target is None:
        raise InvalidTypeError("ynn", "a target", "target is None", "Give the label that neighbours should have.")
    if labels is None and model is None:
        raise InvalidTypeError("ynn", "a model, or labels of the data", "both are None", "Pass one of them.")
    known = predicted("ynn", model, data, space) if labels is None else np.asarray(labels)
    if known.shape != (n,):
        raise InvalidValueError(
            "ynn", f"a label for each of {n} rows of data", f"the shape of labels is {known.shape}", "Correct it."
        )
    return wanted("ynn", known, target)


def favoured_share(points: Floats, people: Floats, k: int, norm: Norm, favoured: NDArray[np.bool_]) -> float:
    """Return the share of favoured people among the k nearest of each point, on average."""
    return float(favoured[_nearest("ynn", points, people, k, norm)[1]].mean())


def knn_distance(
    S: Any,
    data: Any,
    norm: Norm = "l2",
    *,
    k: int = 1,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    zero: float | None = None,
) -> Floats:
    r"""Mean distance of each counterfactual to its k nearest people, (n,); lower is more plausible.

    .. math:: \frac1k \sum_{i \in N_k(c)} d(c, d_i)

    Parameters
    ----------
    S, data
        Counterfactuals and people.
    norm, space, scale, zero
        As for :func:`~ceopt.metrics.distance.distance`.
    k
        How many neighbours.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        As ``distance``; less than k people.

    References
    ----------
    RecourseBench (l2); ``dist_train`` of the R package counterfactuals is Gower's distance with k = 1.

    Examples
    --------
    >>> knn_distance([[0.0], [5.0]], [[1.0], [2.0], [9.0]], k=2).tolist()
    [1.5, 3.5]
    """
    NORM.require("knn_distance", "norm", norm)
    points, people = embedded(
        "knn_distance", norm, space=space, scale=scale, zero=zero, data=data, include_data=True, S=S
    )
    distances, _ = _nearest("knn_distance", points, people, k, norm)
    return np.asarray(distances.mean(axis=1))


def require_count(who: str, k: Any, most: int, rows: str) -> None:
    """Refuse a count of neighbours that is none, or more than there are."""
    Whole(1, most, Refusal(f"k from 1 to {most}, with {rows}", "Choose another k.")).require(who, "k", k)


def _nearest(who: str, points: Floats, people: Floats, k: int, norm: Norm) -> tuple[Floats, NDArray[np.intp]]:
    from sklearn.neighbors import NearestNeighbors

    require_count(who, k, len(people), f"{len(people)} rows of data")
    distances, nearest = NearestNeighbors(n_neighbors=k, metric=NORMS[norm]).fit(people).kneighbors(points)
    return distances, nearest
