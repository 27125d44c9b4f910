"""Steps in front of an estimator: pipelines of scikit-learn become an encoding, each matrix column from one raw column.

What an encoder makes of a level is read off probe rows. A scaler is its ``transform``, in the order of its operations
and in its float width:

=============== ========================== ==========================
class           dense                      sparse
=============== ========================== ==========================
StandardScaler  (x - mean) / scale         x * (1 / scale)
MinMaxScaler    x * scale + min, then clip refused by the library
MaxAbsScaler    x / scale, then clip       x * (1 / scale), then clip
RobustScaler    (x - center) / scale       x * (1 / scale)
=============== ========================== ==========================

StandardScaler rounds its constants to the width of its input first, and so do the ends of a clip; the others compute in
the wider of both widths and round the result.

Classes are recognised by name and module, so this file imports nothing of scikit-learn. Each step runs its own fitted
transform on probe rows, and the result is compared with the encoding bit for bit before it is believed.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from types import FunctionType
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.formulations.predictors.readers.model_input import (
    Rule,
    Trace,
    UnseenLevelError,
    array_of,
    dense,
    is_fitted,
    names_of,
    probe,
    probe_frame,
    refuse,
    same_version,
    width,
)
from ceopt.formulations.space.encoding import WIDE, Column, Encoding, LevelTable, SparseTable
from ceopt.formulations.space.feature import MISSING, Feature, Operation, Step
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import UnsupportedModelError

# ==== Steps of scikit-learn in front of an estimator: encoders, scalers, and what keeps, drops or reorders columns ====

_SELECTORS: Final = (
    "GenericUnivariateSelect", "RFE", "RFECV", "SelectFdr", "SelectFpr", "SelectFromModel", "SelectFwe", "SelectKBest",
    "SelectPercentile", "SequentialFeatureSelector", "VarianceThreshold",
)  # fmt: skip
Operations = Iterator[tuple[Operation, Any]]


def _impute(imputer: Any, before: Trace, output: Any) -> Sequence[Column]:
    """Keep the columns that had a value at fitting, then one indicator per column that had a gap."""
    missing = imputer.missing_values
    if not (missing is None or missing is pd.NA or (isinstance(missing, float) and math.isnan(missing))):
        for column in before.numbers():
            name = column.feature
            raise refuse(
                "imputers of missing values alone",
                f"SimpleImputer replaces {missing!r} in the numeric column {name!r}",
                f"Make such cells missing, as by X[{name!r}].replace({missing!r}, np.nan), fit again with "
                f"SimpleImputer(), and take space.update({name!r}, codes=None, missing=True).",
            )  # fmt: skip
    return _filled(imputer, before, output, [not pd.isna(fill) for fill in imputer.statistics_])


def _filled(imputer: Any, before: Trace, output: Any, had_values: Sequence[bool]) -> Sequence[Column]:
    """Return the columns that an imputer keeps, and its indicators; what a gap becomes is read off its output."""
    flags: list[Column] = []
    if imputer.add_indicator:
        flags = [_indicator(before, place) for place in imputer.indicator_.features_]
    kept = list(before.columns)
    if len(kept) + len(flags) != output.shape[1]:  # columns without any value at fitting are dropped
        kept = [column for column, had_value in zip(kept, had_values, strict=True) if had_value]
    return [*kept, *flags]


def _indicator(before: Trace, place: int) -> Column:
    """Return the column that tells where another one is missing; a constant if that never is."""
    column = before.columns[place]
    if column.feature is None or before.space[column.feature].missing is False:
        return Column(None)
    if column.table is not None:
        return Column(column.feature, table=())
    return Column(column.feature, is_indicator=True)


def _indicate(step: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    missing = step.missing_values
    if not pd.isna(missing):
        for column in before.numbers():
            raise refuse(
                "indicators of missing values alone",
                f"MissingIndicator looks for {missing!r} in the numeric column {column.feature!r}",
                "Make the column of that number in the data before the model is fitted.",
            )  # fmt: skip
    return [_indicator(before, place) for place in step.features_]


def _impute_jointly(imputer: Any, before: Trace, output: Any) -> Sequence[Column]:
    """Keep rows that are complete; what a gap becomes would depend on the other columns."""
    name = type(imputer).__name__
    for place, column in enumerate(before.columns):
        if pd.isna(before.values_of(place)).any():
            raise refuse(
                "values in every column, or a value for missing cells that no other column changes",
                f"column {column.feature!r} may be missing and {name} fills it in from the other columns",
                f"Put a SimpleImputer in the place of {name}, or leave the column without missing=True.",
            )  # fmt: skip
    had_values: Any
    if name == "KNNImputer":
        had_values = ~np.asarray(imputer._mask_fit_X).all(axis=0)  # noqa: SLF001
    else:
        had_values = ~pd.isna(imputer.initial_imputer_.statistics_)
    return _filled(imputer, before, output, had_values.tolist())


def _function(step: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    if step.func is not None:
        name = getattr(step.func, "__name__", repr(step.func))
        raise refuse(
            "functions that are the identity", f"FunctionTransformer has func={name}",
            "Apply the function to the data before the model is fitted, and describe its result in the space.",
        )  # fmt: skip
    return before.columns


def _select(step: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    return list(map(before.columns.__getitem__, step.get_support(indices=True)))


IDENTITIES: Final[Mapping[str, Rule]] = {
    "FunctionTransformer": _function,
    "IterativeImputer": _impute_jointly,
    "KNNImputer": _impute_jointly,
    "MissingIndicator": _indicate,
    "SimpleImputer": _impute,
    **dict.fromkeys(_SELECTORS, _select),
}


def check_encoder(encoder: Any, before: Trace) -> None:
    """Refuse what an encoder's table could not hold, before it runs.

    Raises
    ------
    UnsupportedModelError
        It groups infrequent levels, or encodes a number.
    """
    name = type(encoder).__name__
    for option in ("min_frequency", "max_categories"):
        if getattr(encoder, option, None) is not None:
            raise refuse(
                "encoders that keep every level apart", f"{name} has {option}={getattr(encoder, option)!r}",
                f"Group infrequent levels in the data, then fit {name} without {option}.",
            )  # fmt: skip
    for column in before.numbers():
        assert column.feature is not None  # noqa: S101 - a number is one of a column
        kind = before.space[column.feature].kind
        raise refuse(
            f"levels in the columns of {name}", f"column {column.feature!r} is {kind} in the space",
            f"Declare it with space.update({column.feature!r}, kind='categorical', levels=[...]), or 'ordinal' or "
            "'binary'.",
        )  # fmt: skip
    for place, (column, categories) in enumerate(zip(before.columns, encoder.categories_, strict=True)):
        if None in categories.tolist() and pd.isna(before.values_of(place)).any():
            raise refuse(
                "missing cells that are NaN", f"{name} was fitted on None in column {column.feature!r}, and a frame of "
                "the space holds NaN, which is another category to it", "Fit it on data.fillna(np.nan).",
            )  # fmt: skip


def unseen_levels(encoder: Any, before: Trace) -> None:
    """Name the level that made an encoder refuse the probe rows, if that is why.

    Raises
    ------
    UnsupportedModelError
        A column has a level that the encoder was not fitted on.
    """
    for place, (column, categories) in enumerate(zip(before.columns, encoder.categories_, strict=True)):
        if column.feature is None:
            continue
        known = set(categories.tolist())
        for rank, value in enumerate(before.levels_seen(place)):
            if value not in known:
                level = before.space[column.feature].levels[rank]
                error = UnseenLevelError(
                    "The model reader",
                    f"levels that {type(encoder).__name__} was fitted on",
                    f"column {column.feature!r} has none, {level!r} among them",
                    "Give the space the levels that the model was fitted on.",
                )
                error.unseen = (column.feature, rank)
                raise error


def _one_hot(encoder: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    dropped = encoder.drop_idx_
    if encoder.drop_idx_ is None:
        dropped = [None] * len(encoder.categories_)
    columns: list[Column] = []
    for column, categories, drop in zip(before.columns, encoder.categories_, dropped, strict=True):
        columns += [column] * (len(categories) - (drop is not None))
    return columns


def _ordinal(encoder: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    return before.columns


ENCODERS: Final[Mapping[str, Rule]] = {"OneHotEncoder": _one_hot, "OrdinalEncoder": _ordinal}


def _standard(scaler: Any, place: int, dtype: np.dtype[Any], *, sparse: bool) -> Operations:
    if sparse:
        if scaler.scale_ is not None:
            yield "multiply", (1 / scaler.scale_)[place]
        return
    if scaler.with_mean:
        yield "subtract", scaler.mean_.astype(dtype)[place]
    if scaler.with_std:
        yield "divide", scaler.scale_.astype(dtype)[place]


def _min_max(scaler: Any, place: int, dtype: np.dtype[Any], *, sparse: bool) -> Operations:  # noqa: ARG001
    yield "multiply", scaler.scale_[place]
    yield "add", scaler.min_[place]
    if scaler.clip:
        yield "at_least", dtype.type(scaler.feature_range[0])
        yield "at_most", dtype.type(scaler.feature_range[1])


def _divided(scaler: Any, place: int, *, sparse: bool) -> tuple[Operation, Any]:
    """Return a division by the scale, which of sparse rows is a multiplication."""
    if sparse:
        return "multiply", (1.0 / scaler.scale_)[place]
    return "divide", scaler.scale_[place]


def _max_abs(scaler: Any, place: int, dtype: np.dtype[Any], *, sparse: bool) -> Operations:
    yield _divided(scaler, place, sparse=sparse)
    if getattr(scaler, "clip", False):
        yield "at_least", dtype.type(-1.0)
        yield "at_most", dtype.type(1.0)


def _robust(scaler: Any, place: int, dtype: np.dtype[Any], *, sparse: bool) -> Operations:  # noqa: ARG001
    if scaler.with_centering and not sparse:
        yield "subtract", scaler.center_[place]
    if scaler.with_scaling:
        yield _divided(scaler, place, sparse=sparse)


_OPERATIONS: Final = {
    "MaxAbsScaler": _max_abs,
    "MinMaxScaler": _min_max,
    "RobustScaler": _robust,
    "StandardScaler": _standard,
}


def _scale(scaler: Any, before: Trace, output: Any) -> Sequence[Column]:
    name = type(scaler).__name__
    sparse = before.is_sparse
    scaled = []
    for place, (column, dtype) in enumerate(zip(before.columns, width(output), strict=True)):
        if column.feature is None or column.table is not None or column.is_indicator:
            scaled.append(column)
            continue
        steps = list(column.steps)
        if (steps[-1].dtype if steps else "float64") != dtype:
            steps.append(Step("cast", dtype=dtype))
        for operation, operand in _OPERATIONS[name](scaler, place, np.dtype(dtype), sparse=sparse):
            value: Any = np.asarray(operand)[()]  # a NumPy scalar keeps its own width
            if not np.isfinite(value) or (operation in {"divide", "multiply"} and not value > 0):
                raise refuse(
                    "scalers with finite, positive scales", f"{name} has {value} for column {column.feature!r}",
                    "Fit it on data in which the column varies and is finite.",
                )  # fmt: skip
            steps.append(Step(operation, value, dtype))
        scaled.append(dataclasses.replace(column, steps=tuple(steps)))
    return scaled


SCALERS: Final[Mapping[str, Rule]] = dict.fromkeys(_OPERATIONS, _scale)


# ==== From a fitted scikit-learn pipeline to an encoding: each column of the estimator's matrix from one raw column ===

#: What the time limit ends here.
_STAGE = "reading the steps of the pipeline"

TRANSFORMERS: Final[Mapping[str, Rule]] = {**SCALERS, **ENCODERS, **IDENTITIES}
_SEARCHES: Final = ("GridSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "RandomizedSearchCV")


def split(model: Any) -> tuple[list[Any], Any]:
    """Return the preparing steps of a fitted model and its estimator, out of searches, pipelines and freezing.

    Raises
    ------
    UnsupportedModelError
        It is a class, is not fitted, or ends in a step that does not predict.
    """
    if isinstance(model, type):
        raise refuse("a fitted model", f"{model.__name__} is a class", "Give an object that was fitted.")
    steps: list[Any] = []
    while True:
        name = _name(model)
        if name in _SEARCHES:
            if not hasattr(model, "best_estimator_"):
                raise refuse(
                    "a fitted model", f"{name} has no best_estimator_", "Fit it with refit=True, or give one estimator."
                )
            model = model.best_estimator_
        elif name == "FrozenEstimator":
            model = model.estimator
        elif name == "Pipeline":
            steps += _flat(model.steps[:-1])
            model = model.steps[-1][1]
        else:
            break
    for step in [*steps, model]:
        _check_fitted(step)
    if _passes(model) or (_name(model) and hasattr(model, "transform") and not hasattr(model, "predict")):
        raise refuse(
            "a pipeline that ends in an estimator", f"it ends in {_title(model)}", "Add a classifier or regressor."
        )
    return steps, model


def ending_in(model: Any, estimator: Any) -> Any:
    """Return a fitted model with another estimator at its end, behind the same steps; searches are left behind."""
    name = _name(model)
    if name in _SEARCHES:
        return ending_in(model.best_estimator_, estimator)
    if name == "FrozenEstimator":
        return ending_in(model.estimator, estimator)
    if name != "Pipeline":
        return estimator
    same = copy.copy(model)
    title, last = model.steps[-1]
    same.steps = [*model.steps[:-1], (title, ending_in(last, estimator))]
    return same


class Followed(NamedTuple):
    """Rows that were followed through all steps."""

    #: As coordinates (n, d).
    coordinates: NDArray[np.float64]
    #: What the estimator is given for them.
    data: Any


def encode(
    steps: Sequence[Any], estimator: Any, space: FeatureSpace, followed: list[Followed] | None = None
) -> Encoding:
    """Return what the estimator sees of the raw columns after the steps; arrays that say so go into ``followed``.

    Raises
    ------
    UnsupportedModelError
        Columns of model and space differ, a step or option is not exact, or the pipeline's own result differs.
    """
    unseen: dict[str, set[int]] = {}
    while True:
        coordinates = probe(space, unseen)
        try:
            trace = _traced(steps, estimator, space, probe_frame(space, unseen))
            encoding = _checked(trace, coordinates, unseen)
        except UnseenLevelError as error:
            name, rank = error.unseen
            ranks = unseen.setdefault(name, set())
            # A row of a level known to be unseen held a substitute: then that one is unseen as well.
            ranks.add(next(k for k in itertools.chain([rank], itertools.count()) if k not in ranks))
            if len(ranks) == len(space[name].levels):
                raise
        else:
            if followed is not None and steps and not isinstance(trace.data, pd.DataFrame):
                followed.append(Followed(coordinates, trace.data))
            return encoding


def _traced(steps: Sequence[Any], estimator: Any, space: FeatureSpace, frame: pd.DataFrame) -> Trace:
    """Follow raw rows through all steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown levels under handle_unknown="warn", all-missing columns, float width
        trace = _start([*steps, estimator], frame, space)
        for step in steps:
            checkpoint(_STAGE)
            with same_version(step):
                trace = _follow(step, trace)
    return trace


def _start(steps: Sequence[Any], frame: pd.DataFrame, space: FeatureSpace) -> Trace:
    """Give the model its columns: by name if it was fitted on a frame, else in the space's order."""
    first = next(step for step in steps if not _passes(step) and not _is_function(step))
    fitted = names_of(first, space)
    if fitted is not None:
        names = fitted
        for name in names:
            if name not in space:
                raise refuse(
                    "every column of the model in the space", f"column {name!r} is missing",
                    f"Add it to the space; the model was fitted on: {', '.join(map(str, names))}.",
                )  # fmt: skip
        for name in space.names:
            if name not in names:
                raise refuse(
                    "only columns of the model in the space", f"column {name!r} is unknown to it",
                    f"Remove it from the space; the model was fitted on: {', '.join(map(str, names))}. Beside other "
                    "models in one program: embed(predictors.read(model, space of its columns), m.x).",
                )  # fmt: skip
        data: Any = frame if names == frame.columns.tolist() else frame[names]
    else:
        names = list(space.names)
        count = getattr(first, "n_features_in_", len(names))
        if count != len(names):
            raise refuse(
                f"as many columns in the space as the model was fitted on, {count}", f"the space has {len(names)}",
                "Describe the columns of its array, in order.",
            )  # fmt: skip
        data = array_of(frame)
    columns = [Column(name, table=() if space[name].is_finite else None) for name in names]
    return Trace(data, tuple(columns), space)


def _follow(step: Any, trace: Trace, own: Any = None) -> Trace:
    """Run one fitted step on the rows, and say what its output's columns are.

    ``own`` is what the step gives as it stands in the output of steps side by side, whose float width may be wider: it
    does not run again.
    """
    if _passes(step):
        return trace
    if _is_function(step):
        return Trace(step(trace.data), trace.columns, trace.space)
    name = _name(step)
    if name == "FrozenEstimator":
        return _follow(step.estimator, trace, own)
    if name == "Pipeline":
        *first, last = _flat(step.steps)
        for inner in first:
            trace = _follow(inner, trace)
        return _follow(last, trace, own)
    if name in _SIDE_BY_SIDE:
        columns, output = _by_parts(step, trace, own)
    elif name in {"ColumnSubset", "OnnxColumns"}:
        columns = step.columns(trace)
        output = step.transform(trace.data)
    elif name in TRANSFORMERS:
        columns, output = _by_rule(step, trace, own)
    else:
        known = ", ".join(sorted(["ColumnTransformer", "FeatureUnion", "Pipeline", *TRANSFORMERS]))
        raise refuse(
            "steps that it can state exactly", f"the pipeline has {_title(step)}",
            "Apply it to the data before the model is fitted and describe its outputs in the space. "
            f"Steps that are read: {known}.",
        )  # fmt: skip
    if len(columns) != output.shape[1]:
        raise refuse(
            f"{len(columns)} columns from {_title(step)}", f"its own transform returns {output.shape[1]}",
            "Report this pipeline; until then apply the step before the model is fitted.",
        )  # fmt: skip
    return Trace(output, tuple(columns), trace.space)


def _by_rule(step: Any, trace: Trace, own: Any) -> tuple[list[Column], Any]:
    """Return the columns of a transformer and its output."""
    name = _name(step)
    if name in ENCODERS:
        check_encoder(step, trace)
    output = own
    if own is None or (name in SCALERS and set(width(trace.data)) != {"float64"}):  # whose rules read its float width
        output = _run(step, trace)
    return list(TRANSFORMERS[name](step, trace, output)), output


def _by_parts(step: Any, trace: Trace, whole: Any) -> tuple[list[Column], Any]:
    """Return the columns of steps side by side and their output; where they fail, the parts say why."""
    beside = _SIDE_BY_SIDE[_name(step)]
    if whole is None:
        try:
            whole = step.transform(trace.data)
        except (TypeError, ValueError):
            return beside(step, trace, None), _run(step, trace)
    return beside(step, trace, whole), whole


def _stack(step: Any, trace: Trace, whole: Any) -> list[Column]:
    """Return the columns of a ColumnTransformer, each part at its place in the output.

    Its columns come in the order in which it was fitted: so does the frame that the first step is given, and every step
    keeps its own order.
    """
    stacked: dict[int, Column] = {}
    given = _places_given(step, trace)
    for name, part, _ in step.transformers_:
        fitted = list(map(int, step._transformer_to_input_indices[name]))  # noqa: SLF001
        if (isinstance(part, str) and part == "drop") or not fitted:
            continue
        places = [given.get(place, place) for place in fitted]
        if isinstance(trace.data, pd.DataFrame):
            data = trace.data.take(places, axis=1)
        else:
            data = trace.data[:, places]
        where = step.output_indices_[name]
        before = Trace(data, tuple(map(trace.columns.__getitem__, places)), trace.space)
        result = _follow(part, before, _cut(whole, where))
        stacked |= dict(zip(range(where.start, where.stop), result.columns, strict=True))
    return list(map(stacked.__getitem__, sorted(stacked)))


def _union(step: Any, trace: Trace, whole: Any) -> list[Column]:
    """Return the columns of a FeatureUnion, part after part."""
    if step.transformer_weights is not None:
        raise refuse(
            "parts side by side as they are", f"FeatureUnion has transformer_weights={step.transformer_weights!r}",
            "Fit it without, or scale the parts by a scaler each.",
        )  # fmt: skip
    columns: list[Column] = []
    for _, part in step.transformer_list:
        if not (isinstance(part, str) and part == "drop"):
            columns += _follow(part, trace, _cut(whole, _next_columns(part, len(columns)))).columns
    return columns


_SIDE_BY_SIDE: Final = {"ColumnTransformer": _stack, "FeatureUnion": _union}


def _cut(whole: Any, where: slice | None) -> Any:
    """Return some columns of the output of steps side by side; None if it or their place is not known."""
    if whole is None or where is None:
        return None
    return whole.iloc[:, where] if isinstance(whole, pd.DataFrame) else whole[:, where]


def _next_columns(part: Any, start: int) -> slice | None:
    """Return where the output of a part of a FeatureUnion stands, if the part says how many columns it has."""
    name = _name(part)
    if name == "Pipeline":
        return _next_columns(part.steps[-1][1], start)
    if name == "ColumnTransformer":
        count = max((where.stop for where in part.output_indices_.values()), default=0)
    elif name == "OneHotEncoder":
        dropped = [] if part.drop_idx_ is None else [place for place in part.drop_idx_ if place is not None]
        count = sum(map(len, part.categories_)) - len(dropped)
    elif name in ENCODERS or name in SCALERS:
        count = part.n_features_in_
    else:
        return None
    return slice(start, start + count)


def _places_given(step: Any, trace: Trace) -> dict[int, int]:
    """Return where the columns stand now that a ColumnTransformer was fitted on: those that it drops may be absent."""
    fitted = getattr(step, "feature_names_in_", None)
    if fitted is None or not isinstance(trace.data, pd.DataFrame) or len(fitted) == trace.data.shape[1]:
        return {}
    now = {name: place for place, name in enumerate(trace.data.columns.tolist())}
    return {place: now[name] for place, name in enumerate(fitted.tolist()) if name in now}


def _run(step: Any, trace: Trace) -> Any:
    """Return the step's own output for the rows."""
    try:
        return step.transform(trace.data)
    except (TypeError, ValueError) as error:
        if _name(step) in ENCODERS:
            unseen_levels(step, trace)
        raise refuse(
            "a pipeline that transforms rows of the space", f"{_title(step)} fails: {error}",
            "Make kinds, levels and dtypes of the space those of the data that the model was fitted on.",
        ) from error  # fmt: skip


def _checked(trace: Trace, coordinates: NDArray[np.float64], unseen: Mapping[str, AbstractSet[int]]) -> Encoding:
    """Read the tables off the last output, and compare the encoding with it; an unseen level is encoded as NaN."""
    space = trace.space
    values = _numbers(trace)
    dtype = "float64"
    if trace.columns:
        dtype = str(np.result_type(*set(width(trace.data))))
    columns = []
    for place, column in enumerate(trace.columns):
        checkpoint(_STAGE)
        if column.feature is None:
            columns.append(Column(None, constant=float(values[0, place]), dtype=dtype))
            continue
        missing = _at_gap(coordinates, values, place, column, space)
        if column.table is not None:
            table = _table(space[column.feature], values, place, unseen.get(column.feature, set()))
            columns.append(Column(column.feature, table=table, dtype=dtype, missing=missing))
        elif column.is_indicator:
            constant = float(values[0, place])
            columns.append(dataclasses.replace(column, dtype=dtype, missing=missing, constant=constant))
        else:
            columns.append(dataclasses.replace(column, dtype=dtype, missing=missing))
    encoding = Encoding(tuple(columns), tuple(space.names), trace.is_sparse)
    if sp.issparse(values):
        own = sp.csc_array(encoding.sparse_matrix(coordinates).astype(np.float64))
        differs: Any = _with_plain_gaps(own) != _with_plain_gaps(values)
        wrong = np.diff(differs.tocsc().indptr) > 0
    else:
        given = encoding.matrix(coordinates).astype(np.float64)
        wrong = ((given != values) & ~(np.isnan(given) & np.isnan(values))).any(axis=0)
    for place in np.flatnonzero(wrong).tolist():
        raise UnsupportedModelError(
            "The model reader", "to repeat the pipeline's own transform bit for bit",
            f"column {columns[place].feature!r} differs in the estimator's column {place}",
            "Report this pipeline; until then apply its steps before the model is fitted.",
        )  # fmt: skip
    return encoding


def _at_gap(
    coordinates: NDArray[np.float64], values: Any, place: int, column: Column, space: FeatureSpace
) -> float | None:
    """Return what a column of the output holds where its raw column is missing; None for NaN, or where it never is."""
    assert column.feature is not None  # noqa: S101 - the caller has dealt with constants
    if space[column.feature].missing is False:
        return None
    rows = np.flatnonzero(coordinates[:, space.names.index(column.feature)] == MISSING)
    value = float(values[rows[0], place])
    return None if math.isnan(value) else value


def _with_plain_gaps(matrix: Any) -> Any:
    """Return a sparse matrix with a number that nothing else has for NaN, so that it equals itself."""
    same = matrix.copy()
    same.data = np.nan_to_num(same.data, nan=np.finfo(np.float64).max)
    return same


def _numbers(trace: Trace) -> Any:
    """Return the last output as float64: an array, or sparse columns where they are many."""
    if len(trace.columns) > WIDE and trace.is_sparse:
        return sp.csc_array(trace.data, dtype=np.float64)
    rows = dense(trace.data)
    try:
        values = rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        name = next(column.feature for place, column in enumerate(trace.columns) if _is_text(rows[:, place]))
        raise refuse(
            "numbers in the estimator's matrix", f"a column is still text: {name!r} ({error})",
            "Encode it with OneHotEncoder or OrdinalEncoder, or correct its levels in the space.",
        ) from error  # fmt: skip
    if len(trace.columns) > WIDE:
        return sp.csc_array(values)
    return values


def _table(feature: Feature, output: Any, place: int, unseen: AbstractSet[int]) -> LevelTable:
    """Return what a column of the output holds at each level, which are its first rows."""
    size = len(feature.levels)
    is_sparse = sp.issparse(output)
    if is_sparse:
        own = slice(*output.indptr[place : place + 2].tolist())
        among = output.indices[own] < size
        ranks = output.indices[own][among]
        values = output.data[own][among]
    else:
        ranks = np.arange(size)
        values = output[:size, place]
    for rank in ranks[~np.isfinite(values)].tolist():
        raise refuse(
            "finite codes for levels",
            f"column {feature.name!r} level {feature.levels[rank]!r} is encoded as {float(output[rank, place])}",
            "Remove the level from the space, or fit the encoder with it.",
        )
    if not is_sparse:
        return tuple(np.nan if rank in unseen else value for rank, value in enumerate(values.tolist()))
    by_rank = dict(zip(ranks.tolist(), values.tolist(), strict=True)) | dict.fromkeys(unseen, np.nan)
    kept = sorted(rank for rank, value in by_rank.items() if value != 0.0)
    return SparseTable(size, tuple(kept), tuple(map(by_rank.__getitem__, kept)))


def _is_text(values: NDArray[Any]) -> bool:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return True
    return False


def _flat(steps: Sequence[tuple[str, Any]]) -> list[Any]:
    """Return the steps of a pipeline, those of pipelines in it included."""
    flat: list[Any] = []
    for _, step in steps:
        flat += _flat(step.steps) if _name(step) == "Pipeline" else [step]
    return flat


def _check_fitted(step: Any) -> None:
    if _name(step) and hasattr(step, "__sklearn_tags__") and not is_fitted(step):
        raise refuse("a fitted model", f"{_title(step)} is not fitted", "Call fit first.")


def _passes(step: Any) -> bool:
    """Return whether a step of a pipeline says that it does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def _is_function(step: Any) -> bool:
    """Return whether a step is what a reader says of a library: a function of the data that keeps its columns apart."""
    return isinstance(step, FunctionType | partial)


def _name(step: Any) -> str:
    """Return the class name of an object of scikit-learn itself, or ours; "" of any other, subclasses included."""
    if type(step).__module__.partition(".")[0] in {"ceopt", "sklearn"}:
        return type(step).__name__
    return ""


def _title(step: Any) -> str:
    if step is None or isinstance(step, str):
        return repr(step)
    return type(step).__name__
