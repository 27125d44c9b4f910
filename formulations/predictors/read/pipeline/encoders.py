"""Encoders of scikit-learn: which raw column each output column comes from; the values are read off probe rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ceopt.formulations.predictors.read.pipeline.trace import Rule, Trace, UnseenLevelError, refuse
from ceopt.formulations.space.encoding import Column

__all__ = ["ENCODERS", "check_encoder", "unseen_levels"]


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
        kind = before.space[column.feature].kind if column.feature is not None else ""
        raise refuse(
            f"levels in the columns of {name}", f"column {column.feature!r} is {kind} in the space",
            f"Declare it with space.update({column.feature!r}, kind='categorical', levels=[...]), or 'ordinal' or "
            "'binary'.",
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
    dropped = encoder.drop_idx_ if encoder.drop_idx_ is not None else [None] * len(encoder.categories_)
    columns: list[Column] = []
    for column, categories, drop in zip(before.columns, encoder.categories_, dropped, strict=True):
        columns += [column] * (len(categories) - (drop is not None))
    return columns


def _ordinal(encoder: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    return before.columns


ENCODERS: Final[Mapping[str, Rule]] = {"OneHotEncoder": _one_hot, "OrdinalEncoder": _ordinal}
