"""The content of an object as a hash: equal for equal content, whoever holds it and in whichever process."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, final

import numpy as np

_OWN = __name__.partition(".")[0]
#: What draws numbers: an estimator fitted without a random_state holds the one of the whole process.
_RANDOM = (np.random.RandomState, np.random.Generator, np.random.BitGenerator)


def content_of(thing: Any) -> str | None:
    """Return a hash of all that an object consists of; None for what cannot be pickled.

    Arrays count by dtype, shape and values, whatever their order in memory; an object of this package by what it was
    made from, without what it remembers. A model of a library counts by what it would save; the state of a random
    number generator in it does not count, nor how often the search tree of scikit-learn's neighbours was asked.

    Examples
    --------
    >>> import numpy as np
    >>> content_of({"coef": np.zeros((2, 3))}) == content_of({"coef": np.zeros((3, 2)).T})
    True
    >>> content_of(lambda x: x) is None
    True
    """
    sink = _Digest()
    try:
        _Pickler(sink).dump(thing)
    except Exception:  # noqa: BLE001 - what cannot be pickled fails in many ways
        return None
    return sink.text


@final
class _Digest:
    """A file that keeps nothing of what is written to it but a hash."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)

    def write(self, data: Any) -> int:
        self._hash.update(data)
        return len(data)

    @property
    def text(self) -> str:
        return self._hash.hexdigest()


@final
class _Pickler(pickle.Pickler):
    """Pickles by content alone: no references to what came before, and arrays as hashes."""

    def __init__(self, sink: _Digest) -> None:
        super().__init__(sink, protocol=5)
        self.fast = True  # which objects are the same one, rather than equal, is lost in a copy; cycles are refused

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ma.MaskedArray):
            return _held, ("masked", np.asarray(obj.data), np.ma.getmaskarray(obj))
        if isinstance(obj, np.ndarray):
            return _held, (type(obj).__name__, str(obj.dtype), obj.shape, *_values(obj))
        if isinstance(obj, dict | MappingProxyType):
            return _held, (type(obj).__name__, dict(obj))
        if isinstance(obj, _RANDOM):
            return _held, ("random",)
        if hasattr(type(obj), "reset_n_calls"):  # a KDTree or a BallTree, which saves its counts too
            return _held, (type(obj).__name__, *map(np.asarray, obj.get_arrays()), obj.sample_weight)
        if is_dataclass(obj) and not isinstance(obj, type) and type(obj).__module__.partition(".")[0] == _OWN:
            made_from = {}
            for field in fields(obj):
                if field.init:
                    made_from[field.name] = getattr(obj, field.name)
            return _held, (type(obj).__qualname__, made_from)
        return NotImplemented


def _values(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Return hashes of an array's values, or the values themselves where they are objects."""
    if array.dtype.names is not None:  # between the fields may lie bytes that mean nothing
        return tuple(part for name in array.dtype.names for part in _values(array[name]))
    if array.dtype.hasobject:
        return (array.ravel().tolist(),)
    return (blake2b(array.tobytes(), digest_size=16).digest(),)


def _held(*parts: Any) -> tuple[Any, ...]:
    """Stand for an object in a pickle that nobody loads."""
    return parts
