"""The synthetic data of figures 3 and 4: two Gaussian clouds, a logistic classifier and the moments around it."""

from __future__ import annotations

import numpy as np

from copa import models
from copa.protocol import SEED, Case, Floats

__all__ = ["VARIANCE", "clouds", "moments"]

#: Of each parameter, as the paper sets it.
VARIANCE = 0.5


def clouds(protocol: str, *, scaled: bool = True, seed: int = 0) -> Case:
    """Return 1,000 points of N((-2, -2), s I) and N((2, 2), s I), scaled to [0, 1] or not; s is 0.5, as released 1."""
    rng = np.random.default_rng(SEED + seed)
    s = 1.0 if protocol == "paper" else 0.5
    y = np.repeat([0, 1], 500)
    points = np.where(y[:, None] == 1, 2.0, -2.0) + np.sqrt(s) * rng.standard_normal((len(y), 2))
    if scaled:
        points = (points - points.min(axis=0)) / np.ptp(points, axis=0)
    X = np.column_stack([points, np.ones(len(y))])
    train = rng.permutation(len(y)) < 0.8 * len(y)
    return Case(
        name="clouds",
        protocol=protocol,
        columns=("first", "second"),
        words=(),
        groups=(),
        fixed=(2,),
        X=X,
        y=y.astype(np.int64),
        train=train,
        later_rows=X,
        later_y=y.astype(np.int64),
    )


def moments(case: Case, seed: int = 0) -> tuple[Floats, Floats]:
    """Return the present parameters as the mean, and 0.5 I as the covariance."""
    return models.present(case, seed), VARIANCE * np.eye(case.d)
