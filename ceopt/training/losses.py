r"""The three losses of training: prediction, validity, proximity; each a mean squared error.

.. math::
    L_1 = \frac{1}{2n} \sum_i \lVert f(x_i) - y_i \rVert^2, \quad
    L_2 = \frac{1}{2n} \sum_i \lVert f(x^{cf}_i; \theta') - t_i \rVert^2, \quad
    L_3 = \frac{1}{np} \sum_i \lVert x_i - x^{cf}_i \rVert^2

f gives probabilities, y and t are classes (one 1 a row): for two classes :math:`L_1` is the mean of
:math:`(f_1(x_i) - y_{i1})^2`. The third is a mean over rows and columns, as the published code takes it.
"""

from __future__ import annotations

from typing import Final

from ceopt.training.networks import Array
from ceopt.training.shift_attack import squared_error

__all__ = ["proximity_loss", "smoothed", "squared_error"]

#: The share that the true class of a row gets in place of 1: uniform between these, as the published code draws it.
_SMOOTHED: Final = (0.8, 0.95)


def proximity_loss(x: Array, made: Array) -> Array:
    """Return the mean of squared differences of entries (n, p)."""
    return ((x - made) ** 2).mean()


def smoothed(wanted: Array, key: Array) -> Array:
    """Return classes (n, K) in which the true one has less than 1 and the others share the rest."""
    import jax

    least, most = _SMOOTHED
    kept = jax.random.uniform(key, (wanted.shape[0], 1), wanted.dtype, minval=least, maxval=most)
    return wanted * kept + (1.0 - wanted) * (1.0 - kept) / (wanted.shape[1] - 1)
