"""Rows that are followed through a pipeline, step by step, together with what each column is.

The library's own transforms run on these rows. A level's encoding is read off them, and what the reader says about
numbers is compared with them bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.model_input import OVER_FITTED
from ceopt.formulations.space.encoding import Column
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnsupportedModelError

__all__ = ["Rule", "Trace", "UnseenLevelError", "dense", "is_fitted", "probe", "refuse", "same_version", "width"]

_RANDOM_ROWS: Final = 32  # so that levels of two columns with as many levels do not move together


@final
@dataclass(frozen=True, slots=True)
class Trace:
    """What some step sees: rows as the library passes them, and the meaning of their columns so far.

    A column with a table is a category's; the table is empty until the pipeline's end is reached and read.
    """

    data: Any
    columns: tuple[Column, ...]
    space: FeatureSpace

    @property
    def is_sparse(self) -> bool:
        """Whether the step sees a sparse matrix."""
        return hasattr(self.data, "tocsr")

    def numbers(self) -> list[Column]:
        """Columns that are functions of a number."""
        return [column for column in self.columns if column.feature is not None and column.table is None]

    def levels_seen(self, place: int) -> list[Any]:
        """Return what a category's column holds at each level, lowest rank first."""
        name = self.columns[place].feature
        count = len(self.space[name].levels) if name is not None else 1
        column = self.data.iloc[:count, place] if isinstance(self.data, pd.DataFrame) else self.data[:count, place]
        return list(column.toarray().ravel() if hasattr(column, "toarray") else column)


Rule: TypeAlias = Callable[[Any, Trace, Any], Sequence[Column]]
"""(fitted step, what it sees, its own output) -> the columns of the output."""


@final
class UnseenLevelError(UnsupportedModelError):
    """A category has a level that an encoder was not fitted on; ``unseen`` is (column, rank)."""

    unseen: tuple[str, int]


def is_fitted(model: Any) -> bool:
    """Return whether an object of scikit-learn was fitted; a threshold may be laid over a model that was already."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except NotFittedError:
        return type(model).__name__ == OVER_FITTED and is_fitted(model.estimator)
    return True


def refuse(needs: str, but: str, then: str) -> UnsupportedModelError:
    """Return the error of a reader."""
    return UnsupportedModelError("The model reader", needs, but, then)


@contextmanager
def same_version(step: Any) -> Iterator[None]:
    """Refuse a fitted object that lacks what the installed scikit-learn gives it: an old pickle keeps old attributes.

    Raises
    ------
    UnsupportedModelError
        An object of scikit-learn has no such attribute.
    """
    try:
        yield
    except AttributeError as error:
        if type(error.obj).__module__.partition(".")[0] != "sklearn":
            raise
        raise refuse(
            f"a model that the installed scikit-learn {version('scikit-learn')} fitted",
            f"{type(step).__name__} has no attribute {error.name!r}",
            "It was saved by another version: fit it again, or install the version that fitted it.",
        ) from error  # fmt: skip


def probe(space: FeatureSpace, unseen: Mapping[str, AbstractSet[int]]) -> NDArray[np.float64]:
    """Return coordinates (n, d) whose row ``r`` holds level ``r`` of each category that has so many, and more rows.

    A level in ``unseen`` is replaced by the first that is not: the pipeline would fail on it. Numbers take their least,
    greatest and middle value (around 0 where there is no bound), then random ones between.
    """
    rng = np.random.default_rng(0)
    known = max([3, *(len(feature.levels) for feature in space)])
    n = known + _RANDOM_ROWS
    rows = np.empty((n, len(space)))
    for j, feature in enumerate(space):
        if feature.is_finite:
            count = len(feature.levels)
            ranks = np.concatenate([np.arange(known) % count, rng.integers(count, size=_RANDOM_ROWS)])
            without = unseen.get(feature.name, set())
            seen = next((rank for rank in range(count) if rank not in without), 0)
            rows[:, j] = np.where(np.isin(ranks, list(without)), seen, ranks)
            continue
        low, high = feature.lower, feature.upper
        if not np.isfinite(low):
            low = 0.0 if high > 0 else max(high - 100.0, feature.coordinate_limits[0])
        if not np.isfinite(high):
            high = min(low + 100.0, feature.coordinate_limits[1])
        between = np.concatenate([[0.0, 1.0, 0.5], rng.random(n - 3)])
        column = np.clip(low * (1.0 - between) + high * between, low, high)
        if feature.kind == "integer":
            column = np.clip(np.rint(column), np.ceil(low), np.floor(high))
        rows[:, j] = column
    return rows


def dense(data: Any) -> NDArray[Any]:
    """Return rows as a plain array of whatever they hold."""
    return np.asarray(data.toarray() if hasattr(data, "toarray") else data)


def width(data: Any) -> list[str]:
    """Return the float width of each column: its own if it is a NumPy float, else float64, to which others convert."""
    dtypes = list(data.dtypes) if isinstance(data, pd.DataFrame) else [data.dtype] * data.shape[1]
    return [str(dtype) if isinstance(dtype, np.dtype) and dtype.kind == "f" else "float64" for dtype in dtypes]
