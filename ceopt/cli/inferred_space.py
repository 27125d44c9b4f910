"""A space that a command infers from its data, with what is easily overlooked in it, in the command's own words."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.pitfalls import pitfalls
from ceopt.formulations.space.space import FeatureSpace

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["inferred_space"]

_BY_FILE: Final = "write a space that says so by its to_json, and give it as --space."
#: What to do about a column by what it looks like; {name} is the column.
_ADVICE: Final = {
    "protected": "Add --fixed {name}.",
    "grows": f"Add --fixed {{name}}; to let it grow, {_BY_FILE}",
    "identifier": "Leave it out by --label-column {name}, or add --fixed {name} if the model reads it.",
    "constant": "Leave it out by --label-column {name}, or add --fixed {name} if the model reads it.",
    "text": "Convert it in DATA if it counts something, or add --fixed {name}.",
    "code": f"Add --fixed {{name}}; to make it a category, {_BY_FILE}",
}


def inferred_space(frame: pd.DataFrame, *, settled: Collection[str]) -> tuple[FeatureSpace, list[str]]:
    """Return the space of a frame, and a sentence on each column that is easily overlooked, but for settled ones.

    Raises
    ------
    CeoptError
        A column that no space can hold.
    """
    features = infer_features(frame)
    notes = []
    for pitfall in pitfalls(frame, features):
        if pitfall.column not in settled:
            advice = _ADVICE[pitfall.kind].format(name=shlex.quote(pitfall.column))
            notes.append(f"Column {pitfall.column!r} {pitfall.found}. {advice}")
    return FeatureSpace(features), notes
