"""Stability and fidelity of a local explanation: the same nearby, and the same as the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError


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
