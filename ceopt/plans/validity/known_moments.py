r"""The upper bound on validity where mean and covariance are known: how near the plan's cone comes to the mean.

.. math:: U = \frac{1}{1 + \min \{ \lVert z \rVert^2 : X (\hat\mu + F z) \ge 0 \}}, \qquad \hat\Sigma = F F^\top,

and 0 where there is no such z: the probability of a convex set is greatest with one atom at its point nearest to the
mean, in standard deviations (Vandenberghe, Boyd & Comanor 2007, for a convex set; Marshall & Olkin 1960).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Floats
from ceopt.tolerances import SYSTEM_ROUNDING

__all__ = ["greatest_at"]


def greatest_at(rows: Floats, given: Moments) -> tuple[float, Floats]:
    """Return the bound, and the point of its atom; of a bound of 0 the mean.

    By Lawson & Hanson's least distance programming: the residual of the nearest point of a cone to a unit vector holds
    both z and the bound, and is 0 exactly where there is no z. It needs no solver.

    Parameters
    ----------
    rows
        Shape (n, d), each of a score that varies.
    given
        Moments of d parameters.
    """
    factor = given.factor
    system = np.column_stack([rows @ factor, -rows @ given.mean])
    system /= np.linalg.norm(system, axis=1)[:, None]
    unit = np.zeros(system.shape[1])
    unit[-1] = 1.0
    prices, _ = nnls(system.T, unit)
    left = unit - system.T @ prices
    size = float(np.linalg.norm(left))
    if size <= SYSTEM_ROUNDING:
        return 0.0, given.mean
    return min(size * size, 1.0), np.asarray(given.mean - factor @ (left[:-1] / (size * size)))
