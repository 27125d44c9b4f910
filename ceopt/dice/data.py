"""Training data as dice_ml describes them: a frame, which columns are numbers, and which is the outcome."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pandas as pd

from ceopt.dice.permitted import checked_ranges, full_ranges
from ceopt.formulations.space.space import FeatureSpace, SpaceWarning, check_unique, has_every_cell, warn_of_gaps
from ceopt.solvers.checks import Choice, Instance, ListOf, MappingOf, OrNone, Refusal, Text, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = ["Data"]

_WHO: Final = "Data"
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
        given = check_arguments(_WHO, _CHECKS, locals())
        check_unique(_WHO, dataframe.columns)
        check_unique(f"{_WHO}'s continuous_features", pd.Index(given["continuous_features"]))
        outcome = Choice(dataframe.columns.tolist(), "column").require(_WHO, "outcome_name", outcome_name)
        names = [name for name in dataframe.columns.tolist() if name != outcome]
        numbers = list(given["continuous_features"])
        for name in numbers:
            Choice(names, "column").require(_WHO, "continuous_features", name)
        line = f"dataframe = dataframe.dropna(subset=dataframe.columns.drop({outcome!r}))"
        warn_of_gaps(_WHO, None, lines={"dataframe": line}, dataframe=dataframe[names])
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
        settled["ranges"] = checked_ranges(_WHO, settled["space"], permitted_range)
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
            raise InvalidValueError(_WHO, "rows of data", f"{name} describes data without rows", then)
        known = list(Data.__init__.__kwdefaults__ or {})
        raise UnknownNameError.among(_WHO, "argument", name, known)


def _space(rows: pd.DataFrame, numbers: list[str], decimals: Mapping[str, int]) -> FeatureSpace:
    """Return what the columns are: numbers with their steps, all others categories."""
    for name in decimals:
        Choice(numbers, "column of continuous_features").require(_WHO, "continuous_features_precision", name)
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
        found = decimals.get(name, _decimals(rows[name]))
        if found is not None:
            space = space.update(name, step=10.0**-found)
    return space


def _decimals(column: pd.Series[Any]) -> int | None:
    """Return with how many decimals the numbers of a column are written; None for more than a few."""
    values = column.dropna().to_numpy(dtype=np.float64)
    for decimals in range(_MOST_DECIMALS + 1):
        if np.array_equal(np.round(values, decimals), values):
            return decimals
    return None
