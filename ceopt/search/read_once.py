"""Models that were read before, so that the next call for the same model reads nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from ceopt.formulations.content_hash import code_of
from ceopt.formulations.predictors.predictor import numbers_in
from ceopt.formulations.space.space import types_in
from ceopt.oracle.model import LIBRARIES, ModelOracle

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.formulations.targets import Target

#: Nodes, weights and cells of data of all models that are kept: a forest of a million leaves, hundreds of small models.
_MOST_NUMBERS: Final = 3_000_000
#: Packages whose code changes with no call; what a user's own class or function does may differ at the same hash.
_SETTLED: Final = LIBRARIES | {"numpy", "pandas", "scipy"} | sys.stdlib_module_names


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A model as it was read, and the rows of the data that it puts in a target.

    Parameters
    ----------
    model
        The user's own object, or the path of a file.
    key
        What the model, the data and the space consisted of; None where it is not to be kept.
    oracle, predictor
        The user's model to be asked, and the model as read.
    target_rows
        Coordinates (n, d) by target.
    """

    model: Any
    key: tuple[Any, ...] | None
    oracle: ModelOracle
    predictor: Predictor
    target_rows: dict[Target, NDArray[np.float64]] = field(default_factory=dict)

    def rows_of(self, target: Target, find: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the rows of a target, which are found once."""
        if target not in self.target_rows:
            rows = find()
            rows.flags.writeable = False
            self.target_rows[target] = rows
            _forget_oldest()
        return self.target_rows[target]

    @property
    def numbers(self) -> int:
        """How many nodes, weights and cells of data it holds."""
        return numbers_in(self.predictor) + sum(rows.size for rows in self.target_rows.values())


_kept: list[Reading] = []  # the one asked for last at the end
_lock: Final = threading.RLock()


def read_once(
    model: Any,
    space: FeatureSpace,
    contents: Mapping[str, str],
    *,
    has_data: bool,
    read: Callable[[], tuple[ModelOracle, Predictor]],
) -> Reading:
    """Return a model as it was read before, if it is the same object of the same content, or else read it.

    The content decides, and with it that of data and space; the object is asked for besides, as what was read may share
    arrays with it. A model with code of the user's own, or without a hash, is read in each call.

    Parameters
    ----------
    model, space
        The user's own model, or a path, and the columns.
    contents
        Hashes of "model" and "data", without what has none.
    has_data
        Whether there are data.
    read
        Reads the model.
    """
    key = None
    if "model" in contents and (not has_data or "data" in contents):
        key = (contents["model"], contents.get("data"), space, types_in(space))
        with _lock:
            for reading in reversed(_kept):
                if reading.key == key and _is_same(reading.model, model):
                    _kept.remove(reading)
                    _kept.append(reading)
                    return reading
    reading = Reading(model, key, *read())
    if key is not None and code_of(reading.oracle.model) <= _SETTLED:
        with _lock:
            _kept[:] = [other for other in _kept if not _is_outdated(other, reading)]
            _kept.append(reading)
        _forget_oldest()
    return reading


def forget() -> None:
    """Forget all models."""
    with _lock:
        _kept.clear()


def _is_same(kept: Any, model: Any) -> bool:
    if isinstance(model, str | Path):
        return isinstance(kept, str | Path) and str(kept) == str(model)
    return kept is model


def _is_outdated(kept: Reading, reading: Reading) -> bool:
    """Whether a model has changed since it was read, or was read twice at a time by two threads."""
    if kept.key is None or reading.key is None or not _is_same(kept.model, reading.model):
        return False
    return kept.key == reading.key or kept.key[0] != reading.key[0]


def _forget_oldest() -> None:
    """Forget models until the rest holds few enough numbers."""
    with _lock:
        numbers = 0
        for place in reversed(range(len(_kept))):
            numbers += _kept[place].numbers
            if numbers > _MOST_NUMBERS:
                del _kept[: place + 1]
                return
