"""The rows that a call asks about, and the columns that it lets vary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from ceopt.solvers.checks import Choice, ListOf, Refusal
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from ceopt.dice.data import Data
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["query_rows", "varying"]

_NO_COLUMNS: Final = Refusal(
    "features_to_vary as 'all' or a list of columns", "Correct it.", "features_to_vary is {value}", InvalidTypeError
)
_NONE_VARIES: Final = Refusal("a column that may vary", "Name one, or 'all'.", "features_to_vary is empty")
_VARYING: Final = ListOf(_NO_COLUMNS, empty=_NONE_VARIES)


def query_rows(who: str, data: Data, given: Any) -> pd.DataFrame:
    """Return the rows with the data's columns in their order, after every check of them.

    Raises
    ------
    InvalidTypeError, InvalidValueError, UnknownNameError
        No rows, the outcome among the columns, a missing or unknown column, a missing value, an unseen level.
    """
    frame = _frame(who, given)
    if data.outcome_name in frame.columns:
        then = f"Drop it: frame.drop(columns={data.outcome_name!r})."
        raise InvalidValueError(who, "rows without the outcome", f"column {data.outcome_name!r} is there", then)
    if not len(frame):
        raise InvalidValueError(who, "a row to explain", "query_instances is empty", "Give some rows.")
    data.space.check_names(who, dict.fromkeys(frame.columns))
    data.space.coordinates(frame)
    return frame[data.feature_names]


def _frame(who: str, given: Any) -> pd.DataFrame:
    match given:
        case pd.DataFrame():
            return given
        case pd.Series():
            return given.to_frame().T.infer_objects()
        case Mapping():
            return pd.DataFrame([dict(given)])
        case list() if given and all(isinstance(row, Mapping) for row in given):
            return pd.DataFrame([dict(row) for row in given])
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
