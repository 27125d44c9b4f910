"""The bounds on a plan's validity over a range of radii, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.plans.validity.bounds import validity_bounds
from ceopt.solvers import Status
from ceopt.solvers.checks import Matrix
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_validity"]

_WHO: Final = "plot_validity"
_RADII: Final = Matrix((None,), "Give a list of radii, such as [0.0, 0.1, 0.2].")


def plot_validity(
    plan: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    radii: ArrayLike,
    *,
    ax: Axes | None = None,
    dark: bool = False,
    solver: str = "auto",
) -> Axes:
    """Draw the bounds on the probability that a plan is valid against the radius; matplotlib is the extra ``plot``.

    They are those of :func:`ceopt.plans.validity_bounds`, radius by radius. Where one is not proved to be the closest
    the marks are hollow.

    Parameters
    ----------
    plan, mean, covariance
        As for :func:`ceopt.plans.validity_bounds`.
    radii
        Shape (k,), each at least 0, in any order.
    ax
        Axes to draw on. By default a figure of its own, which pyplot does not know.
    dark
        Colours for a dark ground, which the figure gets.
    solver
        As for :func:`ceopt.plans.validity_bounds`.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on: its first two lines are the upper and the lower bound.

    Raises
    ------
    CeoptError
        What :func:`ceopt.plans.validity_bounds` refuses; no radii.
    MissingLibraryError
        matplotlib is not installed.

    Examples
    --------
    >>> from ceopt.plans import plot_validity
    >>> ax = plot_validity([[1, 0], [1, 1]], [2, 1], [[0.5, 0], [0, 0.5]], [0.0, 0.1])
    >>> ax.lines[1].get_xdata(), ax.lines[1].get_ydata().round(4)
    (array([0. , 0.1]), array([0.8238, 0.7867]))
    """
    from ceopt.extras import require_library
    from ceopt.pictures.validity import draw_validity

    require_library(_WHO, "matplotlib")
    given = np.unique(_RADII.require(_WHO, "radii", radii))
    if not len(given):
        raise InvalidValueError(_WHO, "some radius", "radii is empty", "Give a list, such as [0.0, 0.1, 0.2].")
    found = [validity_bounds(plan, mean, covariance, float(radius), solver=solver) for radius in given]
    lower = np.array([bounds.lower for bounds in found])
    upper = np.array([bounds.upper for bounds in found])
    unproved = np.array([bounds.status is not Status.OPTIMAL for bounds in found])
    return draw_validity(_WHO, given, lower, upper, unproved, ax=ax, dark=dark)
