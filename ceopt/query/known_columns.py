"""The columns of a call's rows and frames that the space knows; one warning names all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from ceopt.formulations.space.space import row_mapping
from ceopt.formulations.space.space_warning import warn

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["known_part", "known_row", "unknown_columns", "warn_of"]


def known_part(space: FeatureSpace, frame: Any) -> Any:
    """Return a frame without the columns that the space does not know; itself where it has none, or lacks one.

    What lacks a column is refused where it is used, and a column too many may be the one that is missing, misspelt.
    """
    return frame[list(space.names)] if unknown_columns(space, frame) else frame


def known_row(who: str, space: FeatureSpace, row: Any) -> dict[str, Any]:
    """Return one raw row by column, without what the space does not know.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        Something else than a Series, a dict or a one-row frame; several rows, a name twice, a column that is missing.
    """
    values = row_mapping(row, who)
    known = {name: values[name] for name in space.names if name in values}
    if len(known) < len(space):
        space.check_names(who, values)
    return known


def unknown_columns(space: FeatureSpace, given: Any) -> list[Any]:
    """Return the columns that the space does not know, of a frame, a Series or a mapping that lacks none of its own."""
    if isinstance(given, pd.DataFrame):
        names: Any = given.columns.tolist()
    elif isinstance(given, pd.Series):
        names = given.index.tolist()
    elif isinstance(given, Mapping):
        names = list(given)
    else:
        return []
    if not set(space.names) <= set(names):
        return []
    return [name for name in names if name not in space]


def warn_of(who: str, space: FeatureSpace, **given: Any) -> None:
    """Warn, once for all that a call was given, of the columns that it leaves out."""
    extra: dict[Any, None] = {}
    holders = []
    for word, part in given.items():
        unknown = unknown_columns(space, part)
        if unknown:
            holders.append(word)
            extra.update(dict.fromkeys(unknown))
    if extra:
        names = ", ".join(map(repr, extra))
        warn(
            f"{who} leaves out {names} of {' and '.join(holders)}, which the space does not know. "
            "Write frame[list(space.names)] for what you give, or describe such a column in the space."
        )
