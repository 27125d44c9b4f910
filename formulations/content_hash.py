"""The content of an object as a hash: equal for equal content, whoever holds it and in whichever process."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, final

import numpy as np
from pandas.util import hash_array

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


def code_of(thing: Any) -> frozenset[str]:
    """Return the packages of all classes and functions that an object is made of, which its hash knows by name alone.

    Examples
    --------
    >>> import numpy as np
    >>> from functools import partial
    >>> {"functools", "numpy"} <= code_of(partial(np.searchsorted, np.zeros(2)))
    True
    """
    pickler = _Pickler(_Digest())
    pickler.dump(thing)
    return frozenset(pickler.code)


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
        self.code: set[str] = set()

    def reducer_override(self, obj: Any) -> Any:
        kind: type = type(obj)
        named = obj if hasattr(obj, "__qualname__") else kind  # a class or a function itself
        self.code.add(str(getattr(named, "__module__", None)).partition(".")[0])
        parts = _parts_of(kind)
        if parts is None:
            return NotImplemented
        return _held, parts(obj)


@lru_cache(1024)
def _parts_of(kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return what stands for objects of a class; None for those that are pickled as they are."""
    if issubclass(kind, np.ma.MaskedArray):
        return lambda obj: ("masked", np.asarray(obj.data), np.ma.getmaskarray(obj))
    if issubclass(kind, np.ndarray):
        return lambda obj: (kind.__name__, _name_of(obj.dtype), obj.shape, *_values(obj))
    if any(base.__name__ == "ArrowExtensionArray" for base in kind.__mro__):  # a part of one saves the whole
        return lambda obj: (kind.__name__, str(obj.dtype), hash_array(obj))
    if issubclass(kind, dict | MappingProxyType):
        return lambda obj: (kind.__name__, dict(obj))
    if issubclass(kind, _RANDOM):
        return lambda _: ("random",)
    if hasattr(kind, "reset_n_calls"):  # a KDTree or a BallTree, which saves its counts too
        return lambda obj: (kind.__name__, *map(np.asarray, obj.get_arrays()), obj.sample_weight)
    if is_dataclass(kind) and kind.__module__.partition(".")[0] == _OWN:
        names = [field.name for field in fields(kind) if field.init]
        return lambda obj: (kind.__qualname__, {name: getattr(obj, name) for name in names})
    return None


@lru_cache(1024)
def _name_of(dtype: np.dtype[Any]) -> str:
    return str(dtype)


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
