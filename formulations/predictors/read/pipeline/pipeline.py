"""From a fitted scikit-learn pipeline to an encoding: each column of the estimator's matrix from one raw column.

Classes are recognised by name and module, so this file imports nothing of scikit-learn. Each step runs its own fitted
transform on probe rows, and the result is compared with the encoding bit for bit before it is believed.
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from types import FunctionType
from typing import Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.model_input import (
    Rule,
    Trace,
    UnseenLevelError,
    dense,
    is_fitted,
    names_of,
    probe,
    refuse,
    same_version,
    width,
)
from ceopt.formulations.predictors.read.pipeline.steps import (
    ENCODERS,
    IDENTITIES,
    SCALERS,
    check_encoder,
    unseen_levels,
)
from ceopt.formulations.space.encoding import WIDE, Column, Encoding, LevelTable, SparseTable
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import UnsupportedModelError

__all__ = ["TRANSFORMERS", "encode", "split"]

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


def encode(steps: Sequence[Any], estimator: Any, space: FeatureSpace) -> Encoding:
    """Return what the estimator sees of the raw columns after the steps.

    Raises
    ------
    UnsupportedModelError
        Columns of model and space differ, a step or option is not exact, or the pipeline's own result differs.
    """
    unseen: dict[str, set[int]] = {}
    while True:
        coordinates = probe(space, unseen)
        try:
            return _checked(_traced(steps, estimator, space, coordinates), coordinates, unseen)
        except UnseenLevelError as error:
            name, rank = error.unseen
            ranks = unseen.setdefault(name, set())
            # A row of a level known to be unseen held a substitute: then that one is unseen as well.
            ranks.add(next(k for k in itertools.count() if k not in ranks) if rank in ranks else rank)
            if len(ranks) == len(space[name].levels):
                raise


def _traced(steps: Sequence[Any], estimator: Any, space: FeatureSpace, coordinates: NDArray[np.float64]) -> Trace:
    """Follow rows, given as coordinates, through all steps."""
    frame = space.frame([dict(zip(space.names, row, strict=True)) for row in coordinates.tolist()])
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
                    f"Remove it from the space; the model was fitted on: {', '.join(map(str, names))}.",
                )  # fmt: skip
        data: Any = frame[names]
    else:
        names = list(space.names)
        count = getattr(first, "n_features_in_", len(names))
        if count != len(names):
            raise refuse(
                f"as many columns in the space as the model was fitted on, {count}", f"the space has {len(names)}",
                "Describe the columns of its array, in order.",
            )  # fmt: skip
        plain = all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes)
        data = frame.to_numpy(dtype=np.float64 if plain else object)
    columns = [Column(name, table=() if space[name].is_finite else None) for name in names]
    return Trace(data, tuple(columns), space)


def _follow(step: Any, trace: Trace) -> Trace:
    """Run one fitted step on the rows and say what its output's columns are."""
    if _passes(step):
        return trace
    if _is_function(step):
        return Trace(step(trace.data), trace.columns, trace.space)
    name = _name(step)
    if name == "FrozenEstimator":
        return _follow(step.estimator, trace)
    if name == "Pipeline":
        for inner in _flat(step.steps):
            trace = _follow(inner, trace)
        return trace
    if name == "ColumnTransformer":
        columns = _stack(step, trace)
        output = _run(step, trace)
    elif name in {"ColumnSubset", "OnnxColumns"}:
        columns = step.columns(trace)
        output = step.transform(trace.data)
    elif name in TRANSFORMERS:
        if name in ENCODERS:
            check_encoder(step, trace)
        output = _run(step, trace)
        columns = list(TRANSFORMERS[name](step, trace, output))
    else:
        known = ", ".join(sorted(["ColumnTransformer", "Pipeline", *TRANSFORMERS]))
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


def _stack(step: Any, trace: Trace) -> list[Column]:
    """Return the columns of a ColumnTransformer, each part at its place in the output.

    Its columns come in the order in which it was fitted: so does the frame that the first step is given, and every step
    keeps its own order.
    """
    stacked: dict[int, Column] = {}
    given = _places_given(step, trace)
    for name, part, _ in step.transformers_:
        fitted = [int(place) for place in step._transformer_to_input_indices[name]]  # noqa: SLF001
        if (isinstance(part, str) and part == "drop") or not fitted:
            continue
        places = [given.get(place, place) for place in fitted]
        if isinstance(trace.data, pd.DataFrame):
            data = trace.data.iloc[:, places]
        else:
            data = trace.data[:, places]
        result = _follow(part, Trace(data, tuple(trace.columns[place] for place in places), trace.space))
        where = step.output_indices_[name]
        stacked |= dict(zip(range(where.start, where.stop), result.columns, strict=True))
    return [stacked[place] for place in sorted(stacked)]


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
    if trace.columns:
        dtype = str(np.result_type(*width(trace.data)))
    else:
        dtype = "float64"
    columns = []
    for place, column in enumerate(trace.columns):
        checkpoint(_STAGE)
        if column.feature is None:
            complete = Column(None, constant=float(values[0, place]), dtype=dtype)
        elif column.table is not None:
            table = _table(space[column.feature], values, place, unseen.get(column.feature, set()))
            complete = Column(column.feature, table=table, dtype=dtype)
        else:
            complete = dataclasses.replace(column, dtype=dtype)
        columns.append(complete)
    encoding = Encoding(tuple(columns), tuple(space.names), trace.is_sparse)
    if sp.issparse(values):
        own = sp.csc_array(encoding.sparse_matrix(coordinates).astype(np.float64))
        differs: Any = own != values
        wrong = np.diff(differs.tocsc().indptr) > 0
    else:
        wrong = (encoding.matrix(coordinates).astype(np.float64) != values).any(axis=0)
    for place in np.flatnonzero(wrong).tolist():
        raise UnsupportedModelError(
            "The model reader", "to repeat the pipeline's own transform bit for bit",
            f"column {columns[place].feature!r} differs in the estimator's column {place}",
            "Report this pipeline; until then apply its steps before the model is fitted.",
        )  # fmt: skip
    return encoding


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
    return sp.csc_array(values) if len(trace.columns) > WIDE else values


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
    found = dict(zip(ranks.tolist(), values.tolist(), strict=True)) | dict.fromkeys(unseen, np.nan)
    kept = sorted(rank for rank, value in found.items() if value != 0.0)
    return SparseTable(size, tuple(kept), tuple(found[rank] for rank in kept))


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
    """Whether a step of a pipeline says that it does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def _is_function(step: Any) -> bool:
    """Whether a step is what a reader says of a library: a function of the data that keeps its columns apart."""
    return isinstance(step, FunctionType | partial)


def _name(step: Any) -> str:
    """Return the class name of an object of scikit-learn itself, or ours; "" of any other, subclasses included."""
    if type(step).__module__.partition(".")[0] in {"ceopt", "sklearn"}:
        return type(step).__name__
    return ""


def _title(step: Any) -> str:
    return repr(step) if step is None or isinstance(step, str) else type(step).__name__
