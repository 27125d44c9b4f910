"""Plausibility of a counterfactual: how near it is to people, and to those who got what it asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints.hull_points import hull_distance as nearest
from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import NORM, NORMS, Norm, embedded
from ceopt.oracle.model import meets_raw_target, predictions_of
from ceopt.oracle.rows import whole_people
from ceopt.solvers.checks import Floats, Refusal, Whole
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, counted, each_of


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
        People, in the columns of S; those with missing cells are left out with a warning, and their labels with them.
        CARLA takes the whole data set, RecourseBench the evaluated rows only.
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
    if data is not None:
        data, labels = whole_people("ynn", space, data, labels)
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
    if labels is None:
        labels = predictions_of("ynn", model, data, space)
    known = np.asarray(labels)
    if known.shape != (n,):
        but = f"the shape of labels is {known.shape}"
        raise InvalidValueError("ynn", f"a label for {each_of(n, 'row')} of data", but, "Correct it.")
    return meets_raw_target("ynn", known, target)


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
    points, people = embedded(
        "knn_distance", norm, space=space, scale=scale, zero=zero, data=data, include_data=True, S=S
    )
    distances, _ = _nearest("knn_distance", points, people, k, norm)
    return np.asarray(distances.mean(axis=1))


def require_count(who: str, k: Any, most: int, rows: str) -> None:
    """Refuse a count of neighbours that is not positive, or more than there are."""
    Whole(1, most, Refusal(f"k from 1 to {most}, with {rows}", "Choose another k.")).require(who, "k", k)


def _nearest(who: str, points: Floats, people: Floats, k: int, norm: Norm) -> tuple[Floats, NDArray[np.intp]]:
    from sklearn.neighbors import NearestNeighbors

    require_count(who, k, len(people), f"{counted(len(people), 'row')} of data")
    distances, nearest = NearestNeighbors(n_neighbors=k, metric=NORMS[norm]).fit(people).kneighbors(points)
    return distances, nearest


def lof(
    S: Any,
    data: Any,
    norm: Norm = "l2",
    *,
    k: int = 20,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    zero: float | None = None,
) -> Floats:
    r"""Local outlier factor of each counterfactual with respect to people, (n,): about 1 inside, above 1 outside.

    .. math:: \text{LOF}_k(c) = \frac1k \sum_{i \in N_k(c)} \frac{\mathrm{lrd}(d_i)}{\mathrm{lrd}(c)}, \qquad
        \mathrm{lrd}(p)^{-1} = \frac1k \sum_{i \in N_k(p)} \max\{d(p, d_i), \text{k-dist}(d_i)\}

    Neighbours are people, among them one who equals c; people's own densities do not see the counterfactuals
    ("novelty"). Densities are kept finite by adding 1e-10 to mean distances, so duplicates can make the factor huge.
    scikit-learn's ``score_samples`` is minus this number.

    Parameters
    ----------
    S, data
        Counterfactuals and people.
    k
        How many neighbours.
    norm, space, scale, zero
        As for :func:`~ceopt.metrics.distance.distance`. In raw units one large column decides who is near.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        As ``distance``; k is not below the number of people.

    References
    ----------
    Breunig et al. (2000), LOF; used by DACE (Kanamori et al. 2020) and CEL. The released code of Leofante & Potyka
    takes scikit-learn's flag, which is 1 for a factor up to 1.5 and -1 above.

    Examples
    --------
    People at 0, 1, 2 with k = 1. From 4 the nearest is 2, at distance 2, whose own nearest is 1 away:
    lrd(4) = 1/2 and lrd(2) = 1.

    >>> lof([[4.0]], [[0.0], [1.0], [2.0]], k=1).round(6).tolist()
    [2.0]
    """
    from sklearn.neighbors import LocalOutlierFactor

    points, people = embedded("lof", norm, space=space, scale=scale, zero=zero, data=data, include_data=True, S=S)
    require_count("lof", k, len(people) - 1, f"{counted(len(people), 'row')} of data")
    fitted = LocalOutlierFactor(n_neighbors=k, metric=NORMS[norm], novelty=True).fit(people)
    return np.asarray(-fitted.score_samples(points))


def hull_distance(
    S: Any,
    data: Any,
    norm: Norm = "l1",
    *,
    space: FeatureSpace | None = None,
    scale: Any = "none",
    zero: float | None = None,
) -> Floats:
    r"""Distance of each counterfactual to the convex hull of people, (n,): 0 inside.

    .. math:: \min_{s, \lambda} \{ \lVert s \rVert_p : c + s = \textstyle\sum_i \lambda_i d_i,\;
        \lambda \ge 0,\; 1^\top \lambda = 1 \}

    Columns are divided by their scales, so the distance is in raw units by default; a category stands for its 0/1
    columns, of which a switch moves two. With ``scale="range"`` and a space it is what ``Hull(data, radius=...)``
    bounds. Exact to 1e-9, by small linear programs (l1, linf) or least squares (l2).

    Parameters
    ----------
    S
        Counterfactuals.
    data
        The rows that span the hull, usually those of the target class.
    norm, space, scale, zero
        As for :func:`~ceopt.metrics.distance.distance`, save for the two 0/1 columns.

    Raises
    ------
    UnknownNameError, InvalidTypeError, InvalidValueError
        As ``distance``.

    References
    ----------
    Maragno, Roeber & Birbil (2022), eq. (3).

    Examples
    --------
    From (2, 2), the hull of (0, 0), (2, 0), (0, 2) is nearest at (1, 1), or in l1 also at (2, 0).

    >>> corners = [[0, 0], [2, 0], [0, 2]]
    >>> hull_distance([[2, 2], [0.5, 0.5]], corners, "l1").round(9).tolist()
    [2.0, 0.0]
    >>> hull_distance([[2, 2]], corners, "linf").round(9).tolist()
    [1.0]
    """
    points, people = embedded(
        "hull_distance", norm, space=space, scale=scale, zero=zero, corner=1.0, data=data, include_data=True, S=S
    )
    people = np.unique(people, axis=0)
    return np.array([nearest(people, point, norm)[0] for point in points])
