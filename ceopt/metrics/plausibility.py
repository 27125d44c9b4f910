"""Plausibility of a counterfactual, how near it is to people who got what it asks for; stability of explanations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints.hull_points import hull_distance as nearest
from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.distance import NORM, NORMS, Norm, Points, embedded, only_amounts, pairwise
from ceopt.oracle.model import meets_raw_target, predictions_of
from ceopt.oracle.rows import whole_people
from ceopt.solvers.checks import Floats, Refusal, Whole
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, counted, each_of

# ==== Plausibility of a counterfactual: how near it is to people, and to those who got what it asks for ===============


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


def favoured_share(points: Points, people: Points, k: int, norm: Norm, favoured: NDArray[np.bool_]) -> float:
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


def _nearest(who: str, points: Points, people: Points, k: int, norm: Norm) -> tuple[Floats, NDArray[np.intp]]:
    from sklearn.neighbors import NearestNeighbors

    require_count(who, k, len(people), f"{counted(len(people), 'row')} of data")
    if points.mixed:  # no coordinates have these distances, so that all are looked at
        apart = pairwise(points, people, norm)
        order = np.argsort(apart, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(apart, order, axis=1), order
    distances, nearest = (
        NearestNeighbors(n_neighbors=k, metric=NORMS[norm]).fit(people.values).kneighbors(points.values)
    )
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

    tables = embedded("lof", norm, space=space, scale=scale, zero=zero, data=data, include_data=True, S=S)
    points, people = only_amounts("lof", tables)
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
    tables = embedded(
        "hull_distance", norm, space=space, scale=scale, zero=zero, corner=1.0, data=data, include_data=True, S=S
    )
    points, people = only_amounts("hull_distance", tables)
    people = np.unique(people, axis=0)
    return np.array([nearest(people, point, norm)[0] for point in points])


# ==== Stability and fidelity of a local explanation: the same nearby, and the same as the model =======================


def stability(weights: Any, nearby: Any, *, intercept: Any = None, nearby_intercept: Any = None) -> float:
    r"""Greatest distance of a linear surrogate's weights from those at nearby points; lower is more stable.

    .. math:: \max_{x' \in U_x} \lVert w_{x'} - w_x \rVert_2

    With intercepts, each surrogate is first divided by the length of weights and intercept together, so that surrogates
    with the same boundary are equal; without, weights are compared as they are.

    Parameters
    ----------
    weights
        Of the surrogate at the point, (d,).
    nearby
        Of the surrogates at points near it, (m, d); the source draws ten with variance 0.001 around the point.
    intercept, nearby_intercept
        One number, and (m,); both or none.

    Raises
    ------
    InvalidTypeError
        No numbers; only one of the intercepts.
    InvalidValueError
        Shapes that do not fit, no surrogate, a missing value, weights and intercept all zero.

    References
    ----------
    Covariance-robust minimax probability machines, section 6, stability, after Agarwal et al. (2021); the released code
    divides as above.

    Examples
    --------
    >>> stability([1.0, 0.0], [[1.0, 0.0], [1.0, 2.0]])
    2.0
    >>> stability([1.0, 0.0], [[5.0, 0.0]], intercept=0.0, nearby_intercept=[0.0])
    0.0
    """
    own = _numbers("weights", weights)
    others = _numbers("nearby", nearby)
    if own.ndim != 1 or others.ndim != 2 or others.shape[1] != len(own) or not len(others):
        but = f"the shapes are {own.shape} and {others.shape}"
        then = "Give one row per nearby surrogate."
        raise InvalidValueError("stability", "weights (d,) and nearby ones (m, d), m at least 1", but, then)
    if (intercept is None) != (nearby_intercept is None):
        raise InvalidTypeError("stability", "both intercepts or none", "one is None", "Pass the other too.")
    if intercept is not None:
        own = own / _length(own[None, :], _numbers("intercept", intercept).reshape(-1))[0]
        others = others / _length(others, _numbers("nearby_intercept", nearby_intercept).reshape(-1))[:, None]
    return float(np.linalg.norm(others - own, axis=1).max())


def local_fidelity(
    predict: Callable[[Any], Any],
    surrogate: Callable[[Any], Any],
    x: Any,
    radius: float,
    *,
    n_samples: int = 1000,
    random_state: int = 0,
) -> float:
    r"""Share of points around x, uniform in an l2 ball, about which model and surrogate agree; higher is better.

    .. math:: \mathrm{P}_{x' \sim \text{ball}(x, r)} \big(f(x') = g(x')\big)

    Parameters
    ----------
    predict, surrogate
        Functions from an array (n, d) to labels (n,).
    x
        The point, (d,), all numbers.
    radius
        Of the ball, in the units of x; the source takes a share of the greatest distance between training rows.
    n_samples, random_state
        How many points, and their seed.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No numbers, a radius or number of points that is not positive, labels of another number than points.

    References
    ----------
    Laugel et al. (2018), LocalFid.

    Examples
    --------
    >>> local_fidelity(lambda X: X[:, 0] > 0, lambda X: X[:, 0] > 0, [0.0, 0.0], 1.0)
    1.0
    """
    center = _numbers("x", x)
    if center.ndim != 1 or not 0.0 < radius < np.inf or n_samples < 1:
        but = f"they are of shape {center.shape}, {radius!r} and {n_samples!r}"
        then = "Correct them."
        raise InvalidValueError("local_fidelity", "a point (d,), a positive radius and number of points", but, then)
    draw = np.random.default_rng(random_state)
    away = draw.standard_normal((n_samples, len(center)))
    away *= (draw.random(n_samples) ** (1.0 / len(center)) / np.linalg.norm(away, axis=1))[:, None]
    points = center + radius * away
    said = [np.asarray(one(points)) for one in (predict, surrogate)]
    for labels in said:
        if labels.shape != (n_samples,):
            but = f"the shape is {labels.shape}"
            then = "Give functions that return labels."
            raise InvalidValueError("local_fidelity", f"a label for each of {n_samples} points", but, then)
    return float(np.mean([one == other for one, other in zip(*(labels.tolist() for labels in said), strict=True)]))


def _numbers(word: str, values: Any) -> Floats:
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        but = f"it got {type(values).__name__}"
        raise InvalidTypeError("A surrogate", f"numbers as {word}", but, "Give an array.") from error
    if not np.isfinite(found).all():
        raise InvalidValueError("A surrogate", f"finite numbers as {word}", "one is not", "Correct it.")
    return found


def _length(weights: Floats, intercepts: Floats) -> Floats:
    if len(intercepts) != len(weights):
        but = f"there are {len(intercepts)}"
        raise InvalidValueError("stability", f"{len(weights)} intercepts", but, "Give one per surrogate.")
    length = np.sqrt((weights**2).sum(axis=1) + intercepts**2)
    if not length.all():
        raise InvalidValueError("stability", "a surrogate that is not zero", "one is", "Leave it out.")
    return np.asarray(length)
