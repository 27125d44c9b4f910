r"""The bounds of one counterfactual, for every radius, in closed form.

With :math:`m = x^\top \hat\mu`, :math:`s = \sqrt{x^\top \hat\Sigma x}`, :math:`r = \rho \lVert x \rVert` and
:math:`R^2 = m^2 + s^2`, mean and standard deviation of the score range over the half disc of radius r around (m, s).
The worst of them is where a line through 0 touches it:

.. math::
    L = \Big( \frac{m \sqrt{R^2 - r^2} - s r}{R^2} \Big)^2 \text{ if } m > r, \text{ else } 0; \qquad
    U = \Big( \frac{s \sqrt{R^2 - r^2} + |m| r}{R^2} \Big)^2 \text{ if } m < -r, \text{ else } 1.

Both are computed without differences of near numbers (specification 2.11).
"""

from __future__ import annotations

import numpy as np

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.subset.pairs import Floats
from ceopt.formulations.programs.validity.score_bound import least_of_score
from ceopt.plans.copa.validity_value import margins, spreads

__all__ = ["lower_bound_of_one", "upper_bound_of_one"]


def lower_bound_of_one(x: Floats, moments: Moments, radius: float) -> float:
    """Return the least probability that x is favourable.

    Parameters
    ----------
    x
        Shape (d,).
    moments
        Of the parameters.
    radius
        Gelbrich distance up to which they are uncertain, at least 0.
    """
    return least_of_score(*_score(x, moments, radius))[0]


def upper_bound_of_one(x: Floats, moments: Moments, radius: float) -> float:
    """Return the greatest probability that x is favourable; the arguments are those of :func:`lower_bound_of_one`."""
    if not np.any(x):
        return 1.0
    m, s, r = _score(x, moments, radius)
    return least_of_score(-m, s, r)[1] if m < 0.0 else 1.0


def _score(x: Floats, moments: Moments, radius: float) -> tuple[float, float, float]:
    row = np.asarray(x, dtype=np.float64)[None]
    return float(margins(row, moments)[0]), float(spreads(row, moments)[0]), radius * float(np.linalg.norm(x))
