"""dice-ml's gradient method, in numpy and for all people at once.

It is a loop over one person's tensors. Here a step is a step of everybody who has not stopped; shapes are (people,
J, columns). The mathematics is that of the original, step by step, so that where dice-ml is installed its own plans
are the check (``dice_check``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from copa.dice import OPTIONS
from copa.protocol import Case, Floats

__all__ = ["dice", "scored"]

Scored = Callable[[Floats], tuple[Floats, Floats]]
#: What it adds to the diagonal of K before its determinant.
JITTER = 1e-4


@final
class _Adam:
    """Adam with the defaults of its paper, on arrays whose first axis is people."""

    def __init__(self, shape: tuple[int, ...], rate: float) -> None:
        self.rate, self.mean, self.square, self.count = rate, np.zeros(shape), np.zeros(shape), 0

    def step(self, slope: Floats, who: NDArray[np.bool_]) -> Floats:
        """Return by how much to move those who still go on; all started together, so one count is everybody's."""
        self.count += 1
        self.mean[who] = 0.9 * self.mean[who] + 0.1 * slope
        self.square[who] = 0.999 * self.square[who] + 0.001 * slope**2
        mean, square = self.mean[who] / (1.0 - 0.9**self.count), self.square[who] / (1.0 - 0.999**self.count)
        return np.asarray(-self.rate * mean / (np.sqrt(square) + 1e-8))


def _determinant(distances: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """Return det K, K = 1 / (1 + distance) with the jitter, and its slope in each point.

    ``directions[p, i, j]`` is the slope of the distance of i and j in point i.
    """
    kernel = 1.0 / (1.0 + distances)
    full = kernel + JITTER * np.eye(kernel.shape[1])
    value = np.linalg.det(full)
    # d det = det tr(K^-1 dK); a distance stands in K twice.
    pull = -2.0 * value[:, None, None] * np.linalg.inv(full) * kernel**2
    return np.asarray(value), np.einsum("pij,pijc->pic", pull, directions)


def dice(case: Case, score: Scored, people: Floats, *, n: int, steps: int | None = None) -> Floats:
    r"""Return plans (people, n, d) by dice-ml's gradient method with ``dice.OPTIONS``.

    .. math::
        \min \frac1n \sum_i (1 - f(c_i))_+ + \frac{w_p}{nm} \sum_i |c_i - x|_\omega - w_d \det K
        + w_c \sum_i \sum_g \Big(\sum_{k \in g} c_{ik} - 1\Big)^2

    f is the logit, :math:`K_{ij} = 1 / (1 + |c_i - c_j|_\omega)`, :math:`\omega` the inverse median absolute deviation
    of a number and 1 of a level. It starts at x + 0.01 i, takes 500 steps of Adam or more, up to 5,000, until the loss
    stands still and all are valid, and stays in [0, 1].

    Parameters
    ----------
    case
        "paper": points are taken as they are. "honest": a category's greatest level becomes its only one, and what
        nobody can change stays.
    score
        Logits of points (..., m) and their slopes.
    people
        Rows (people, d), the intercept's column last.
    n
        Counterfactuals of a plan.
    steps
        Exactly so many, for comparison.
    """
    x, m = people[:, None, :-1], people.shape[1] - 1
    free = np.isin(np.arange(m), case.fixed, invert=True)
    weights = _weights(case)
    plans = x + 0.01 * np.arange(n)[None, :, None] * free
    adam, going = _Adam(plans.shape, OPTIONS["learning_rate"]), np.ones(len(plans), bool)
    before, best, least = np.zeros(len(plans)), plans.copy(), np.full(len(plans), np.inf)
    for count in range(steps or OPTIONS["max_iter"]):
        loss, slope = _dice_loss(case, score, plans[going], x[going], weights)
        plans[going] += adam.step(slope * free, going)
        np.clip(plans, 0.0, 1.0, out=plans)
        still = np.abs(loss - before[going]) <= OPTIONS["loss_diff_thres"]
        before[going] = loss
        shown = _shown(case, plans[going])
        shares = 1.0 / (1.0 + np.exp(-score(shown)[0]))
        valid, near = (shares >= 0.5).all(axis=1), np.abs(shares - 0.5).mean(axis=1)
        who = np.flatnonzero(going)
        better = valid & (near < least[who])
        least[who[better]], best[who[better]] = near[better], shown[better]
        if count + 1 >= (steps or OPTIONS["min_iter"]):
            going[who[still & valid]] = False
        if not going.any():
            break
    found = _shown(case, plans)
    lost = ~(score(found)[0] >= 0.0).all(axis=1) & np.isfinite(least)
    found[lost] = best[lost]
    return np.concatenate([found, np.ones((len(people), n, 1))], axis=2)


def _dice_loss(case: Case, score: Scored, plans: Floats, x: Floats, weights: Floats) -> tuple[Floats, Floats]:
    n, m = plans.shape[1:]
    logits, slopes = score(plans)
    short = 1.0 - logits
    apart, signs = np.abs(plans - x), np.sign(plans - x)
    between = plans[:, :, None] - plans[:, None]
    value, pull = _determinant((np.abs(between) * weights).sum(axis=-1), np.sign(between) * weights)
    share, far = OPTIONS["proximity_weight"] / (n * m), OPTIONS["diversity_weight"]
    loss = np.maximum(short, 0.0).mean(axis=1) + share * (apart * weights).sum(axis=(1, 2)) - far * value
    slope = np.where(short > 0.0, -1.0, 0.0)[..., None] * slopes / n + share * signs * weights - far * pull
    for group in case.groups:
        spare = plans[..., list(group)].sum(axis=-1) - 1.0
        loss += OPTIONS["categorical_penalty"] * (spare**2).sum(axis=1)
        slope[..., list(group)] += 2.0 * OPTIONS["categorical_penalty"] * spare[..., None]
    return loss, slope


def _weights(case: Case) -> Floats:
    """Return the weight of each column in dice-ml's distances."""
    named = case.inverse_mads()
    return np.array([named.get(name, 1.0) for name in case.columns])


def _shown(case: Case, plans: Floats) -> Floats:
    """Return points as they are handed out: "honest" with one level a category."""
    found = plans.copy()
    if not case.is_released:
        for group in case.groups:
            levels = plans[..., list(group)]
            found[..., list(group)] = np.eye(len(group))[levels.argmax(axis=-1)]
    return found


# ---- classifiers -----------------------------------------------------------------------------------------------------
def scored(model: Any) -> Scored:
    """Return the logit and its slope of a linear classifier (d,) or a fitted network of ReLU neurons."""
    if isinstance(model, np.ndarray):
        return lambda points: (points @ model[:-1] + model[-1], np.broadcast_to(model[:-1], points.shape))

    def of_network(points: Floats) -> tuple[Floats, Floats]:
        active, values = [], points
        for weights, biases in zip(model.coefs_, model.intercepts_, strict=True):
            values = values @ weights + biases
            active.append(values > 0.0)
            values = np.maximum(values, 0.0) if weights is not model.coefs_[-1] else values
        slope = np.ones_like(values)
        for layer in range(len(model.coefs_) - 1, -1, -1):
            slope = slope @ model.coefs_[layer].T
            slope = slope * active[layer - 1] if layer else slope
        return np.asarray(values[..., 0]), np.asarray(slope)

    return of_network
