"""A space that a command infers from its data, with what is easily overlooked in it, in the command's own words."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.pitfalls import pitfalls
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["inferred_space"]

#: What to do about a column by what it looks like; {name} is the column.
_ADVICE: Final = {
    "protected": "Add --fixed {name}.",
    "grows": "Add --up {name}, or --fixed {name}.",
    "identifier": "Leave it out by --label-column {name}, or add --fixed {name} if the model reads it.",
    "constant": "Leave it out by --label-column {name}, or add --fixed {name} if the model reads it.",
    "text": "Convert it in DATA if it counts something, or add --fixed {name}.",
    "code": "Add --categorical {name} if its numbers are names, or --fixed {name}.",
    "codes": "Name them in a file of the space (--show-space, --space), or add --fixed {name}.",
    "one_hot": 'Name it in a file of rules (--rules): [{{"rule": "ExactlyOne", "columns": [...]}}].',
    "sum": 'Name it in a file of rules (--rules), as Linear with "==".',
    "same": "Add --fixed {name}.",
}


def inferred_space(
    frame: pd.DataFrame, *, categorical: Collection[str], settled: Collection[str]
) -> tuple[FeatureSpace, list[str]]:
    """Return the space of a frame, and a sentence on each column that is easily overlooked, but for settled ones.

    Raises
    ------
    CeoptError
        A column that no space can hold, or a categorical one that the frame has not.
    """
    for name in categorical:
        if name not in frame.columns:
            raise UnknownNameError.among("--categorical", "column", name, frame.columns)
    features = infer_features(frame, categorical=categorical)
    notes = []
    for pitfall in pitfalls(frame, features):
        if pitfall.column not in {*settled, *categorical}:
            advice = _ADVICE[pitfall.kind].format(name=shlex.quote(pitfall.column))
            notes.append(f"{pitfall.seen}. {advice}")
    return FeatureSpace(features), notes
