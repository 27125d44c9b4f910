"""The input of a fitted model: raw rows, given exactly as its user would give them, and followed through its steps.

The library's own transforms run on the rows that are followed. A level's encoding is read off them, and what the reader
says about numbers is compared with them bit for bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, TypeAlias, TypeVar, final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.space import FeatureSpace, frame_of, types_in
from ceopt.solvers.errors import UnsupportedModelError

__all__ = [
    "OVER_FITTED",
    "Rule",
    "Trace",
    "UnseenLevelError",
    "array_of",
    "as_written",
    "behind",
    "class_labels",
    "dense",
    "fitted_names",
    "given",
    "is_fitted",
    "names_of",
    "probe",
    "probe_frame",
    "refuse",
    "rows_with_labels",
    "same_version",
    "takes_numbers",
    "width",
]

#: What predicts without a fit of its own, over a model that was fitted.
OVER_FITTED: Final = "FixedThresholdClassifier"
_RANDOM_ROWS: Final = 32  # so that levels of two columns with as many levels do not move together
#: Rows in which each cell that may be missing is so, or holds a code, or neither; one more has every such cell missing.
_MIXED_ROWS: Final = 16
#: Spaces whose rows are kept for the next model, and cells up to which those of a space are.
_KEPT: Final = 4
_MOST_CELLS: Final = 100_000
Unseen: TypeAlias = Mapping[str, AbstractSet[int]]
T = TypeVar("T")


def names_of(model: Any, space: FeatureSpace) -> list[str] | None:
    """Return the columns that a model is to be given, if it was fitted on a frame.

    They are those that it was fitted on, without those that the space lacks and the model drops unread.
    """
    names = fitted_names(model, space.names)
    if names is None and hasattr(model, "best_estimator_"):
        return names_of(model.best_estimator_, space)
    if names is None and type(model).__name__ == OVER_FITTED:
        return names_of(model.estimator, space)
    if names is None and hasattr(model, "steps"):  # a pipeline asks its first step, which may be "passthrough"
        for _, step in model.steps:
            if step is not None and not isinstance(step, str):
                return names_of(step, space)
    if names is None or all(name in space for name in names):
        return names
    unread = _dropped(model)
    return [name for name in names if name in space or name not in unread]


def _dropped(model: Any) -> frozenset[str]:
    """Return the columns that a fitted model drops before anything reads them: nobody has to give them to it."""
    if type(model).__name__ == "ColumnTransformer":
        used = set()
        for name, part, _ in model.transformers_:
            if not (isinstance(part, str) and part == "drop"):
                used.update(model._transformer_to_input_indices[name])  # noqa: SLF001
        names = getattr(model, "feature_names_in_", ())
        return frozenset(str(name) for place, name in enumerate(names) if place not in used)
    if hasattr(model, "steps"):
        first = [step for _, step in model.steps if step is not None and not isinstance(step, str)][:1]
        return _dropped(first[0]) if first and first[0] is not model else frozenset()
    for word in ("best_estimator_", "estimator_", "estimator"):
        if hasattr(model, word):
            return _dropped(getattr(model, word))
    return frozenset()


def fitted_names(model: Any, columns: Sequence[Any]) -> list[str] | None:
    """Return the columns that an object says that it was fitted on, as ``columns`` writes them; None for an array.

    LightGBM writes blanks as underscores, and some versions call the columns of an array Column_0, Column_1, ...
    """
    fitted_on = getattr(model, "feature_names_in_", None)
    if fitted_on is None:
        return None
    names = list(map(str, fitted_on))
    if names == [f"Column_{place}" for place in range(len(names))] and set(names).isdisjoint(columns):
        return None
    return as_written(names, columns)


def as_written(names: Iterable[str], known: Collection[str]) -> list[str]:
    """Return names as ``known`` ones are written (LightGBM writes blanks as underscores); others as they are."""
    written = {str(name).replace(" ", "_"): name for name in known} | dict(zip(known, known, strict=True))
    return [written.get(name, name) for name in names]


def given(model: Any, space: FeatureSpace, frame: pd.DataFrame) -> Any:
    """Return what a model takes for raw rows: the columns that it knows, or an array in the order of the space.

    The array is float64 if every column is a number or bool, else of objects. A model that ``takes_codes`` gets the
    columns as :meth:`Encoding.identity` codes them.
    """
    if getattr(model, "takes_codes", False):
        return Encoding.identity(space).matrix(space.coordinates(frame))
    names = names_of(model, space)
    if names is not None:
        return _without_strangers(frame if names == frame.columns.tolist() else frame[names])
    return array_of(frame[list(space.names)])


def array_of(frame: pd.DataFrame) -> NDArray[Any]:
    """Return a frame's values (n, d): float64 if every column is a number or bool, else objects."""
    is_numeric = all(map(pd.api.types.is_numeric_dtype, frame.dtypes))  # bool is numeric here
    return frame.to_numpy(dtype=np.float64 if is_numeric else object)


def behind(steps: Sequence[Any], data: Any) -> Any:
    """Return what an estimator is given behind the steps of a pipeline, some of which may do nothing."""
    for step in steps:
        if step is not None and not isinstance(step, str):
            data = step.transform(data)
    return data


def takes_numbers(model: Any, space: FeatureSpace) -> bool:
    """Tell whether what a model is given for raw rows is their coordinates: an array of continuous columns."""
    return space.is_continuous and not getattr(model, "takes_codes", False) and names_of(model, space) is None


def _without_strangers(frame: pd.DataFrame) -> pd.DataFrame:
    """Drop categories that no row has: XGBoost fails on a dtype with a category that it was not trained on.

    All stay where each cell is missing: it fails on a dtype without categories as well.
    """
    names = []
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype) and frame[name].notna().any():
            names.append(name)
    if not names:
        return frame
    return frame.assign(**{str(name): frame[name].cat.remove_unused_categories() for name in names})


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
        return bool(sp.issparse(self.data))

    def numbers(self) -> list[Column]:
        """Columns that are functions of a number."""
        return [column for column in self.columns if column.feature is not None and column.table is None]

    def values_of(self, place: int) -> NDArray[Any]:
        """Return what a column holds, (n,)."""
        if isinstance(self.data, pd.DataFrame):
            return self.data.iloc[:, place].to_numpy(dtype=object)
        return dense(self.data[:, [place]]).ravel()

    def levels_seen(self, place: int) -> list[Any]:
        """Return what a category's column holds at each level, lowest rank first."""
        name = self.columns[place].feature
        count = 1 if name is None else len(self.space[name].levels)
        if isinstance(self.data, pd.DataFrame):
            return list(self.data.iloc[:count, place])
        return list(dense(self.data[:count, place]).ravel())


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


def class_labels(model: Any) -> list[Any] | None:
    """Return the labels of a classifier that knows at least two, as Python scalars; None for a regressor.

    Raises
    ------
    UnsupportedModelError
        It knows one label only.
    """
    if not hasattr(model, "classes_"):
        return None
    labels: list[Any] = np.asarray(model.classes_).tolist()
    if len(labels) == 1:
        name = type(model).__name__
        raise refuse("at least two classes", f"{name} knows only {labels[0]!r}", "Fit it on data with other labels.")
    return labels


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


def _kept(make: Callable[[FeatureSpace, Unseen], T]) -> Callable[[FeatureSpace, Unseen], T]:
    """Keep what is made for the last spaces: models of an ensemble or a bootstrap are read over the same one.

    Of equal spaces each whose levels are of other types has its own: encoders tell 0 and 1 from False and True.
    """

    @functools.lru_cache(maxsize=_KEPT)
    def made_before(space: FeatureSpace, types: tuple[type, ...], unseen: frozenset[tuple[str, frozenset[int]]]) -> T:
        del types  # by which it is known
        return make(space, dict(unseen))

    @functools.wraps(make)
    def made(space: FeatureSpace, unseen: Unseen) -> T:
        if len(space) * max(len(feature.levels) for feature in space) > _MOST_CELLS:
            return make(space, unseen)
        return made_before(
            space, types_in(space), frozenset((name, frozenset(ranks)) for name, ranks in unseen.items())
        )

    return made


@_kept
def probe(space: FeatureSpace, unseen: Unseen) -> NDArray[np.float64]:
    """Return coordinates (n, d) whose row ``r`` holds level ``r`` of each category that has so many, and more rows.

    A level in ``unseen`` is replaced by the first that is not: the pipeline would fail on it. Numbers take their least,
    greatest and middle value (around 0 where there is no bound), then random ones between. Where cells may be missing
    or hold codes, the last rows are :func:`rows_with_labels`. The array is read-only.
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
        low = feature.lower
        high = feature.upper
        if not np.isfinite(low):
            if high > 0:
                low = 0.0
            else:
                low = max(high - 100.0, feature.coordinate_limits[0])
        if not np.isfinite(high):
            high = min(low + 100.0, feature.coordinate_limits[1])
        between = np.concatenate([[0.0, 1.0, 0.5], rng.random(n - 3)])
        column = np.clip(low * (1.0 - between) + high * between, low, high)
        if feature.kind == "integer":
            column = np.clip(np.rint(column), np.ceil(low), np.floor(high))
        rows[:, j] = column
    rows = np.concatenate([rows, rows_with_labels(space, rows)])
    rows.setflags(write=False)
    return rows


def probe_frame(space: FeatureSpace, unseen: Unseen) -> pd.DataFrame:
    """Return the rows of :func:`probe` as a raw frame, a new one: steps may write into what they are given."""
    return _raw_probe(space, unseen).copy()


@_kept
def _raw_probe(space: FeatureSpace, unseen: Unseen) -> pd.DataFrame:
    return frame_of(space, probe(space, unseen))


def rows_with_labels(space: FeatureSpace, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return some of the rows with missing cells and codes where the space has them; none where it has neither.

    All that may be missing is so in the first; in the others a cell is missing or holds a code at random.
    """
    rng = np.random.default_rng(1)
    labels = [(MISSING,) * (f.missing is not False) + (() if f.is_finite else tuple(f.codes)) for f in space]
    if not any(labels) or not len(rows):
        return rows[:0]
    mixed = rows[np.arange(1 + _MIXED_ROWS) % len(rows)].copy()
    for j, of_column in enumerate(labels):
        if not of_column:
            continue
        if MISSING in of_column:
            mixed[0, j] = MISSING
        drawn = rng.choice(np.array(of_column, dtype=np.float64), size=_MIXED_ROWS)
        mixed[1:, j] = np.where(rng.random(_MIXED_ROWS) < 0.5, drawn, mixed[1:, j])
    return mixed


def dense(data: Any) -> NDArray[Any]:
    """Return rows as a plain array of whatever they hold, a number that is missing as NaN."""
    if hasattr(data, "toarray"):
        return np.asarray(data.toarray())
    if isinstance(data, pd.DataFrame):
        lacking = [name for name in data.columns if _has_nullable_gap(data[name])]
        data = data.assign(**{name: data[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in lacking})
    return np.asarray(data)


def _has_nullable_gap(column: Any) -> bool:
    """Whether a column of pandas' own numbers or truth values, which NumPy would hold as objects, lacks a cell."""
    is_number = pd.api.types.is_numeric_dtype(column.dtype) and not isinstance(column.dtype, np.dtype)
    return bool(is_number and column.isna().any())


def width(data: Any) -> list[str]:
    """Return the float width of each column: its own if it is a NumPy float, else float64, to which others convert."""
    if isinstance(data, pd.DataFrame):
        return list(map(_width, data.dtypes))
    return [_width(data.dtype)] * data.shape[1]


def _width(dtype: Any) -> str:
    return str(dtype) if isinstance(dtype, np.dtype) and dtype.kind == "f" else "float64"
