"""What NumPy calls an array and what becomes one, under these names; a signature shows what is behind them otherwise.

``ArrayLike`` is a union of seven private types there, and ``NDArray[np.float64]`` is ``ndarray[tuple[Any, ...], ...]``.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy.typing as npt

Scalar = TypeVar("Scalar")


class ArrayLike:
    """What NumPy makes an array of."""


class NDArray(Generic[Scalar]):
    """An array of some type."""


def name_them() -> None:
    """Put both in the place of NumPy's own, for this process."""
    for named in (ArrayLike, NDArray):
        named.__module__ = "numpy.typing"
        setattr(npt, named.__name__, named)
