"""What dice_ml's calls are given, read as ceopt has it: model, ranges, training data, rows to explain, outcomes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, final

import numpy as np
import pandas as pd

from ceopt.formulations.constraints import AllowedValues, Linear
from ceopt.formulations.constraints.rule import AbstractRule
from ceopt.formulations.space.dtypes import are_gaps
from ceopt.formulations.space.feature import Feature, is_gap
from ceopt.formulations.space.space import FeatureSpace, SpaceWarning, check_unique, has_every_cell, warn_of_gaps
from ceopt.formulations.targets import AtLeast, AtMost, Between, Probability
from ceopt.oracle.model import predictions_of
from ceopt.solvers.checks import (
    Choice,
    Instance,
    ListOf,
    MappingOf,
    OrNone,
    Real,
    Refusal,
    Text,
    Whole,
    check_arguments,
    is_whole,
    plain,
)
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnsupportedModelError

# ==== A fitted model as dice_ml wraps it ==============================================================================

_WHO_MODEL: Final = "Model"
#: Back ends of dice_ml that are networks of a framework, by what they are.
_NETWORKS: Final = {"TF1": "TensorFlow", "TF2": "TensorFlow", "PYT": "PyTorch"}
#: Frameworks by the modules of their models, which have predict too.
_FRAMEWORKS: Final = {"tensorflow": "TensorFlow", "keras": "Keras", "torch": "PyTorch"}
_EXPORT: Final = "Export the network to ONNX and ask ceopt.explain about the file, which is read exactly."
_NO_PATH: Final = Refusal(
    "the fitted model itself", "Load it and pass model=; a pickle runs whatever code its writer chose.",
    "model_path is {value}",
)  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class Model:
    """Wrap a fitted model: of scikit-learn, XGBoost or LightGBM, a pipeline of them, or any object with ``predict``.

    One that ceopt reads is stated exactly; any other is a black box, answered through a surrogate.

    Parameters
    ----------
    model
        The fitted model, which takes raw rows: encoders belong into its pipeline.
    model_path
        Refused: load the model yourself.
    backend
        "sklearn". "TF1", "TF2" and "PYT" are refused.
    model_type
        "classifier" or "regressor".
    func, kw_args
        Refused: a transformation belongs into the pipeline.

    Raises
    ------
    UnsupportedModelError, InvalidValueError, InvalidTypeError, UnknownNameError
        Another back end, a network of a framework, a path, a transformation; no model.
    """

    model: Any = None
    model_path: str = ""
    backend: Any = "sklearn"
    model_type: str = "classifier"
    func: Any = None
    kw_args: Any = None

    def __post_init__(self) -> None:
        self._check_backend()
        Choice(("classifier", "regressor")).require(_WHO_MODEL, "model_type", self.model_type)
        Text().require(_WHO_MODEL, "model_path", self.model_path)
        if self.model_path:
            raise _NO_PATH.of(_WHO_MODEL, "model_path", self.model_path)
        for word, given in (("func", self.func), ("kw_args", self.kw_args)):
            if given is not None:
                then = "Put the transformation before the model: sklearn.pipeline.make_pipeline(encoder, model)."
                raise InvalidValueError(_WHO_MODEL, "a model that takes raw rows", f"{word} is {given!r}", then)
        if isinstance(self.model, type) or not callable(getattr(self.model, "predict", None)):
            but = f"model is {self.model!r}"
            raise InvalidTypeError(_WHO_MODEL, "a fitted model with predict", but, "Fit one and pass it as model=.")
        framework = _FRAMEWORKS.get(type(self.model).__module__.partition(".")[0])
        if framework is not None:
            but = f"model is of {framework}"
            raise UnsupportedModelError(_WHO_MODEL, "a model of scikit-learn's kind", but, _EXPORT)

    def _check_backend(self) -> None:
        if isinstance(self.backend, str) and self.backend in _NETWORKS:
            but = f"backend is {self.backend!r} ({_NETWORKS[self.backend]})"
            raise UnsupportedModelError(_WHO_MODEL, "the back end 'sklearn'", but, _EXPORT)
        if self.backend != "sklearn":
            then = "Write backend='sklearn': models of XGBoost and LightGBM are read by it too."
            raise InvalidValueError(_WHO_MODEL, "the back end 'sklearn'", f"backend is {self.backend!r}", then)

    @property
    def is_classifier(self) -> bool:
        """Whether the outcome is a class."""
        return self.model_type == "classifier"


# ==== Permitted ranges: what each column may become, as dice_ml says it, put as bounds and rules of ceopt =============

Ranges = Mapping[str, tuple[Any, ...]]

_NO_RANGES = Refusal(
    "permitted_range as a mapping from columns to ranges", 'Write {"age": [20, 30]}.', error=InvalidTypeError
)
_NO_RANGE = Refusal(
    "[least, greatest] or a list of levels for each column", "Write it so.", "{name} is {value}", InvalidTypeError
)
_RANGES: Final = OrNone(MappingOf(_NO_RANGES, ListOf(_NO_RANGE), entry="{name}[{key}]"))
_FINITE_BOUND: Final = Real(finite=True)


def checked_ranges(who: str, space: FeatureSpace, given: Any) -> dict[str, tuple[Any, ...]]:
    """Return the ranges by column, levels as the data hold them (dice_ml writes each as text).

    Raises
    ------
    InvalidTypeError, InvalidValueError, UnknownNameError
        No mapping, a column or level that is not there, no two numbers in ascending order.
    """
    ranges: dict[str, tuple[Any, ...]] = {}
    for name, entries in (_RANGES.require(who, "permitted_range", given) or {}).items():
        Choice(space.names, "column").require(who, "permitted_range", name)
        feature = space[name]
        if feature.is_finite:
            ranges[name] = _levels(who, feature, entries)
        else:
            ranges[name] = _numbers(who, name, entries)
    return ranges


def _numbers(who: str, name: str, entries: tuple[Any, ...]) -> tuple[float, float]:
    where = f"permitted_range[{name!r}]"
    bounds = [_FINITE_BOUND.require(who, where, entry) for entry in entries]
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        but = f"{where} is {list(entries)!r}"
        raise InvalidValueError(who, "two numbers in ascending order for a number", but, "Write [least, greatest].")
    return bounds[0], bounds[1]


def _levels(who: str, feature: Feature, entries: tuple[Any, ...]) -> tuple[Any, ...]:
    texts = {str(level): level for level in feature.levels}
    where = f"permitted_range[{feature.name!r}]"
    if not entries:
        raise InvalidValueError(who, "at least one level", f"{where} is empty", "Name one, or leave the column out.")
    levels = []
    for entry in entries:
        if str(entry) not in texts:
            raise UnknownNameError.among(who, f"level of {feature.name!r}", entry, feature.levels)
        levels.append(texts[str(entry)])
    return tuple(levels)


def full_ranges(space: FeatureSpace, ranges: Ranges) -> dict[str, list[Any]]:
    """Return the range or the levels of every column, those of the data where no others are given."""
    full: dict[str, list[Any]] = {}
    for feature in space:
        full[feature.name] = list(ranges.get(feature.name, feature.levels or (feature.lower, feature.upper)))
    return full


def beyond(space: FeatureSpace, ranges: Ranges, row: pd.Series[Any]) -> tuple[str, ...]:
    """Return the numbers of a row that lie outside their permitted range, where bounds would refuse the row."""
    outside = []
    for name, bounds in ranges.items():
        is_bound = not space[name].is_finite and not is_gap(row[name])
        if is_bound and not bounds[0] <= row[name] <= bounds[1]:
            outside.append(name)
    return tuple(outside)


def narrowed(space: FeatureSpace, ranges: Ranges, outside: tuple[str, ...]) -> tuple[FeatureSpace, list[AbstractRule]]:
    """Return the space and the rules under which every answer keeps the permitted ranges.

    A number whose own value keeps its range is bounded by it; where it does not, it has to come in, which is a rule.
    """
    rules: list[AbstractRule] = []
    features = {feature.name: feature for feature in space}
    for name, entries in ranges.items():
        feature = features[name]
        rule_name = f"permitted range of {name}"
        if feature.is_finite:
            rules.append(AllowedValues({name: list(entries)}, name=rule_name))
        elif name in outside:
            least, greatest = entries
            wide = replace(feature, lower=min(feature.lower, least), upper=max(feature.upper, greatest))
            features[name] = wide
            rules.append(Linear({name: 1.0}, ">=", least, name=f"{rule_name}, least"))
            rules.append(Linear({name: 1.0}, "<=", greatest, name=f"{rule_name}, greatest"))
        else:
            features[name] = FeatureSpace([feature]).update(name, lower=entries[0], upper=entries[1])[name]
    return FeatureSpace(features.values()), rules


# ==== Training data as dice_ml describes them: a frame, which columns are numbers, and which is the outcome ===========

_WHO_DATA: Final = "Data"
#: A column of floats with more decimals than this was calculated, not written: it may hold any number.
_MOST_DECIMALS: Final = 4
_NO_FRAME = Refusal("a DataFrame as dataframe", "Give the training rows, outcome included.", error=InvalidTypeError)
_NO_NAMES = Refusal("continuous_features as a list of column names", "Name the numbers.", error=InvalidTypeError)
_NO_PRECISION = Refusal(
    "continuous_features_precision as a mapping from columns to decimals", 'Write {"age": 0}.', error=InvalidTypeError
)
_CHECKS: Final = {
    "dataframe": Instance(pd.DataFrame, _NO_FRAME),
    "continuous_features": ListOf(_NO_NAMES, texts=True),
    "outcome_name": Text(Refusal("the outcome's column as outcome_name", "Name it.", error=InvalidTypeError)),
    "continuous_features_precision": OrNone(MappingOf(_NO_PRECISION, Whole(at_least=0, at_most=15))),
    "data_name": Text(),
}
#: What describes data without rows in dice_ml.
_PRIVATE: Final = ("features", "type_and_precision", "mad")


@final
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Data:
    """Describe the training data, and so what each column is and how it may move.

    ``continuous_features`` are numbers (of an integer dtype whole numbers), all other columns categories, each with its
    own values as levels. Bounds are those of the data, and widen for the row that is asked about.

    Parameters
    ----------
    dataframe
        The training rows, outcome included, in raw units. Those with missing cells are left out, with a warning; a
        missing outcome leaves none out.
    continuous_features
        Columns that are numbers.
    outcome_name
        The column of the outcome.
    permitted_range
        Column -> [least, greatest] of a number, or the levels that a category may take; holds for every query, and a
        query may name other ranges, column by column.
    continuous_features_precision
        Column -> decimals: the column then moves in steps of 10^-decimals. Where it names nothing, a column of floats
        moves in steps of its values' last decimal, if none has more than four.
    data_name
        What the data are called; it changes nothing.

    Raises
    ------
    InvalidTypeError, InvalidValueError, UnknownNameError
        No frame, no list of columns, a column that is not there or is there twice; a description without rows
        (``features``).

    Examples
    --------
    >>> import pandas as pd
    >>> from ceopt.dice import Data
    >>> people = pd.DataFrame({"age": [25, 60], "weight": [61.5, 80.0], "job": [1, 2], "rich": [0, 1]})
    >>> data = Data(dataframe=people, continuous_features=["age", "weight"], outcome_name="rich")
    >>> [(feature.name, feature.kind, feature.step) for feature in data.space]
    [('age', 'integer', None), ('weight', 'continuous', 0.1), ('job', 'categorical', None)]
    """

    data_df: pd.DataFrame
    outcome_name: str
    continuous_feature_names: list[str]
    categorical_feature_names: list[str]
    feature_names: list[str]
    data_name: str
    space: FeatureSpace
    ranges: Mapping[str, tuple[Any, ...]]

    def __init__(
        self,
        *,
        dataframe: Any = None,
        continuous_features: Any = None,
        outcome_name: Any = None,
        permitted_range: Any = None,
        continuous_features_precision: Any = None,
        data_name: str = "mydata",
        **others: Any,
    ) -> None:
        _refuse_others(others)
        given = check_arguments(_WHO_DATA, _CHECKS, locals())
        check_unique(_WHO_DATA, dataframe.columns)
        check_unique(f"{_WHO_DATA}'s continuous_features", pd.Index(given["continuous_features"]))
        outcome = Choice(dataframe.columns.tolist(), "column").require(_WHO_DATA, "outcome_name", outcome_name)
        names = [name for name in dataframe.columns.tolist() if name != outcome]
        numbers = list(given["continuous_features"])
        for name in numbers:
            Choice(names, "column").require(_WHO_DATA, "continuous_features", name)
        line = f"dataframe = dataframe.dropna(subset=dataframe.columns.drop({outcome!r}))"
        warn_of_gaps(_WHO_DATA, None, lines={"dataframe": line}, dataframe=dataframe[names])
        dataframe = dataframe[has_every_cell(None, dataframe[names])]
        rows = dataframe[names].reset_index(drop=True)
        settled: dict[str, Any] = {
            "data_df": dataframe.copy(),
            "outcome_name": outcome,
            "continuous_feature_names": numbers,
            "categorical_feature_names": [name for name in names if name not in numbers],
            "feature_names": names,
            "data_name": data_name,
            "space": _space(rows, numbers, given["continuous_features_precision"] or {}),
        }
        settled["ranges"] = checked_ranges(_WHO_DATA, settled["space"], permitted_range)
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @property
    def permitted_range(self) -> dict[str, list[Any]]:
        """The range of each number and the levels of each category, those of the data where no others were given."""
        return full_ranges(self.space, self.ranges)

    @property
    def rows(self) -> pd.DataFrame:
        """The training rows without the outcome."""
        return self.data_df[self.feature_names]

    def __repr__(self) -> str:
        return f"Data({self.data_name}, {len(self.data_df)} rows, outcome {self.outcome_name!r})\n{self.space}"


def _refuse_others(others: Mapping[str, Any]) -> None:
    for name in others:
        if name in _PRIVATE:
            then = "Give dataframe=, or describe the columns by ceopt.FeatureSpace([...]) and ask ceopt.explain."
            raise InvalidValueError(_WHO_DATA, "rows of data", f"{name} describes data without rows", then)
        known = list(Data.__init__.__kwdefaults__ or {})
        raise UnknownNameError.among(_WHO_DATA, "argument", name, known)


def _space(rows: pd.DataFrame, numbers: list[str], decimals: Mapping[str, int]) -> FeatureSpace:
    """Return what the columns are: numbers with their steps, all others categories."""
    for name in decimals:
        Choice(numbers, "column of continuous_features").require(_WHO_DATA, "continuous_features_precision", name)
    whole = [name for name in numbers if pd.api.types.is_integer_dtype(rows[name].dtype)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaceWarning)  # its advice is for another call: here features_to_vary decides
        space = FeatureSpace.infer(
            rows,
            integer=whole,
            continuous=[name for name in numbers if name not in whole],
            categorical=[name for name in rows.columns if name not in numbers],
        )
    for name in numbers:
        if name in whole:
            continue
        places = decimals.get(name, _decimals(rows[name]))
        if places is not None:
            space = space.update(name, step=10.0**-places)
    return space


def _decimals(column: pd.Series[Any]) -> int | None:
    """Return with how many decimals the numbers of a column are written; None for more than a few."""
    values = column.dropna().to_numpy(dtype=np.float64)
    for decimals in range(_MOST_DECIMALS + 1):
        if np.array_equal(np.round(values, decimals), values):
            return decimals
    return None


# ==== The rows that a call asks about, and the columns that it lets vary ==============================================

_NO_COLUMNS: Final = Refusal(
    "features_to_vary as 'all' or a list of columns", "Correct it.", "features_to_vary is {value}", InvalidTypeError
)
_NONE_VARIES: Final = Refusal("a column that may vary", "Name one, or 'all'.", "features_to_vary is empty")
_VARYING: Final = ListOf(_NO_COLUMNS, empty=_NONE_VARIES)


def query_rows(who: str, data: Data, given: Any) -> pd.DataFrame:
    """Return the rows with the data's columns in their order, after every check of them; cells may be missing.

    Raises
    ------
    InvalidTypeError, InvalidValueError, UnknownNameError
        No rows, the outcome among the columns, a missing or unknown column, an unseen level.
    """
    frame = _frame(who, given)
    if data.outcome_name in frame.columns:
        then = f"Drop it: frame.drop(columns={data.outcome_name!r})."
        raise InvalidValueError(who, "rows without the outcome", f"column {data.outcome_name!r} is there", then)
    if not len(frame):
        raise InvalidValueError(who, "a row to explain", "query_instances is empty", "Give some rows.")
    data.space.check_names(who, dict.fromkeys(frame.columns))
    with_gaps(data.space, frame).coordinates(frame)
    return frame[data.feature_names]


def with_gaps(space: FeatureSpace, rows: pd.DataFrame) -> FeatureSpace:
    """Return the space in which a cell that a row lacks stays missing, unless the space says what else it may do."""
    gaps = [feature.name for feature in space if not feature.missing and are_gaps(rows[feature.name]).any()]
    return space.update(gaps, missing="stays") if gaps else space


def predictions_with_gaps(who: str, model: Any, rows: pd.DataFrame, space: FeatureSpace) -> list[Any]:
    """Return what the model says of the rows, or refuse cells that are missing where it takes none.

    Raises
    ------
    InvalidValueError
        Some cell is missing, and the model fails on it.
    """
    gaps = [name for name in space.names if are_gaps(rows[name]).any()]
    try:
        return list(map(plain, predictions_of(who, model, rows, space).tolist()))
    except Exception as error:
        if not gaps:
            raise
        listed = ", ".join(map(repr, gaps))
        but = f"the model fails where {listed} {'is' if len(gaps) == 1 else 'are'} missing ({type(error).__name__})"
        then = "Fill the cells in, or put an imputer before the model and fit it again."
        raise InvalidValueError(who, "rows that the model takes", but, then) from error


def _frame(who: str, given: Any) -> pd.DataFrame:
    match given:
        case pd.DataFrame():
            return given
        case pd.Series():
            return given.to_frame().T.infer_objects()
        case Mapping():
            return pd.DataFrame([dict(given)])
        case list() if given and all(isinstance(row, Mapping) for row in given):
            return pd.DataFrame(list(map(dict, given)))
    but = f"query_instances is {type(given).__name__}"
    raise InvalidTypeError(who, "rows by column name", but, "Give a frame, as X_test[0:1], a dict or a list of dicts.")


def varying(who: str, space: FeatureSpace, names: Any) -> FeatureSpace:
    """Return the space with every other column held where it is.

    Raises
    ------
    InvalidTypeError, InvalidValueError, UnknownNameError
        No list of columns, an empty one, a column that is not there.
    """
    if isinstance(names, str) and names == "all":
        return space
    chosen = _VARYING.require(who, "features_to_vary", names)
    for name in chosen:
        Choice(space.names, "column").require(who, "features_to_vary", name)
    return space.fix([name for name in space.names if name not in chosen])


# ==== What dice_ml calls a desired class or range, as targets of ceopt, one for each row ==============================

_OPPOSITE: Final = "opposite"
_SETS: Final = (set, frozenset, list, tuple)
_BOUND: Final = Real()
_SHARE: Final = Real(at_least=0.0, at_most=1.0)


class Wanted(NamedTuple):
    """What a row should get: as dice_ml says it (a label, a set of labels or a range), and as a target of ceopt."""

    outcome: Any
    target: Any


def classes_of(model: Any, outcomes: Any) -> tuple[Any, ...]:
    """Return the labels of a classifier in its order; of one that does not say, those of the data in theirs."""
    known = getattr(model, "classes_", None)
    if known is None:
        known = sorted(outcomes.dropna().unique().tolist())
    return tuple(map(plain, known))


def class_wanted(
    who: str, desired: Any, classes: tuple[Any, ...], predicted: Sequence[Any], threshold: Any
) -> list[Wanted]:
    """Return what each row should get of a classifier.

    "opposite" is the other of two classes. A label is itself. A whole number that is no label is the place of a class,
    as in dice_ml; where a number is the one and the other and they differ, it is refused. A threshold above one half
    asks for that probability, if there are two classes: with more, it means nothing to dice_ml either.

    Raises
    ------
    InvalidValueError, UnknownNameError
        No such class, "opposite" of more than two, or a number that is another class here than there; a threshold that
        is no probability.
    """
    share = _SHARE.require(who, "stopping_threshold", threshold)
    wanted = []
    for label in _labels(who, desired, classes, predicted):
        if share > 0.5 and len(classes) == 2 and not isinstance(label, set):
            wanted.append(Wanted(label, Probability(label, at_least=share)))
        else:
            wanted.append(Wanted(label, label))
    return wanted


def _labels(who: str, desired: Any, classes: tuple[Any, ...], predicted: Sequence[Any]) -> list[Any]:
    """Return the label, or the set of labels, that each row should get."""
    if isinstance(desired, _SETS):
        for label in desired:
            if not _is_among(label, classes):
                raise UnknownNameError.among(who, "class in desired_class", label, classes, quoted=True)
        return [set(desired)] * len(predicted)
    if isinstance(desired, str) and desired == _OPPOSITE and not _is_among(desired, classes):
        return _opposites(who, classes, predicted)
    return [_label(who, plain(desired), classes)] * len(predicted)


def _opposites(who: str, classes: tuple[Any, ...], predicted: Sequence[Any]) -> list[Any]:
    if len(classes) != 2:
        but = f"desired_class is 'opposite' and the model has {len(classes)}"
        listed = ", ".join(map(repr, classes))
        raise InvalidValueError(who, "two classes for an opposite one", but, f"Name the class: one of {listed}.")
    return [classes[1] if label == classes[0] else classes[0] for label in predicted]


def _label(who: str, desired: Any, classes: tuple[Any, ...]) -> Any:
    is_place = is_whole(desired) and 0 <= desired < len(classes)
    if _is_among(desired, classes):
        if is_place and not isinstance(classes[desired], str) and classes[desired] != desired:
            but = f"desired_class is {desired}, a label here and the place of label {classes[desired]!r} in dice_ml"
            then = f"Write the label in a set, {{{desired}}} or {{{classes[desired]!r}}}, which is read as labels."
            raise InvalidValueError(who, "a class that both understand", but, then)
        return desired
    if is_place:
        return classes[desired]
    raise UnknownNameError.among(who, "desired_class", desired, classes, quoted=True)


def _is_among(label: Any, classes: tuple[Any, ...]) -> bool:
    """Tell whether a label is a class; 1 is not the class True, nor "1" the class 1."""
    alike = (isinstance(label, str), isinstance(label, bool))
    return any((isinstance(known, str), isinstance(known, bool)) == alike and known == label for known in classes)


def range_wanted(who: str, desired: Any) -> Wanted:
    """Return what a regressor should say: a value between two numbers, of which one may be infinite.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No two numbers in ascending order.
    """
    then = "Give desired_range=[least, greatest]."
    if desired is None:
        but = "desired_range is None"
        raise InvalidValueError(who, "a range of the outcome, as the model is a regressor", but, then)
    if isinstance(desired, str) or not hasattr(desired, "__len__") or len(desired) != 2:
        raise InvalidTypeError(who, "two numbers as desired_range", f"desired_range is {desired!r}", then)
    low, high = (_BOUND.require(who, "desired_range", bound) for bound in desired)
    if low > high:
        raise InvalidValueError(who, "desired_range in ascending order", f"it is {[low, high]!r}", then)
    if math.isinf(low) and math.isinf(high):
        raise InvalidValueError(who, "a bound of the outcome", f"desired_range is {[low, high]!r}", then)
    target: Any
    if math.isinf(low):
        target = AtMost(high)
    elif math.isinf(high):
        target = AtLeast(low)
    else:
        target = Between(low, high)
    return Wanted([low, high], target)
