"""Saved files of XGBoost, taken apart here before the library sees them: it crashes on indices that lead nowhere.

Both formats hold one document, as JSON or as UBJSON with big-endian numbers: strings ``S``, integers ``i U I l L``,
floats ``d D``, ``T F Z N``, objects ``{ ... }`` and arrays ``[ ... ]``, also written ``[$type#count`` and ``[#count``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.read.xgboost.document import trees_of
from ceopt.formulations.predictors.read.xgboost.trees import read_tree
from ceopt.solvers.errors import UnreadableFileError

__all__ = ["checked_bytes", "unreadable"]

_NUMBERS: Final = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_WORDS: Final = {"T": True, "F": False, "Z": None, "N": None}
_DEEPEST: Final = 32  # of nested objects; the library's own files have 8
_NO_PARENT: Final = (1 << 31) - 1
_MOST_CATEGORIES: Final = 1 << 24  # codes are float32
_MOST_COLUMNS: Final = 1 << 20  # the library makes room for a row of so many


def checked_bytes(path: Path) -> tuple[bytearray, Any]:
    """Return the bytes of a file and its document, which holds together.

    Raises
    ------
    UnreadableFileError
        The file is missing, truncated, or no model of XGBoost.
    UnsupportedModelError
        The model is too old, or its leaves hold several values.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from error
    try:
        if path.suffix.lower() == ".json":
            document = json.loads(raw, object_pairs_hook=_once)
        else:
            document = _Ubjson(raw).document()
        _check(document)
    except RecursionError:
        raise unreadable(path, "it is nested too deeply") from None
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, UnreadableFileError) or type(error).__module__.startswith("ceopt"):
            raise
        if isinstance(error, KeyError):
            what = f"it has no {error}"
        else:
            what = str(error)
        raise unreadable(path, f"it is truncated or of another program ({what})") from error
    return bytearray(raw), document


def unreadable(path: Path, why: str) -> UnreadableFileError:
    """Return the error of a file."""
    return UnreadableFileError(
        "The model reader", "a model that XGBoost saved as .json or .ubj", f"{str(path)!r} is none: {why}",
        "Save it again with save_model.",
    )  # fmt: skip


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys differ: of equal ones, we and the library might take another."""
    found = dict(pairs)
    _expect(len(found) == len(pairs), "a key is there twice")
    return found


def _expect(holds: Any, what: str) -> None:
    if not holds:
        raise ValueError(what)


# ---- UBJSON ---------------------------------------------------------------------------------------------------------
@final
class _Ubjson:
    """A reader of bytes that allocates no more than they hold."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def document(self) -> Any:
        """Return what the whole of the bytes says."""
        found = self._value(self._marker(), 0)
        _expect(self._at == len(self._raw), "more follows its end")
        return found

    def _take(self, count: int) -> bytes:
        _expect(0 <= count <= len(self._raw) - self._at, "it ends too early")
        self._at += count
        return self._raw[self._at - count : self._at]

    def _marker(self) -> str:
        return self._take(1).decode("latin-1")

    def _count(self) -> int:
        return int(self._value(self._marker(), 0))

    def _numbers(self, kind: str, count: int) -> list[Any]:
        dtype = np.dtype(_NUMBERS[kind])
        taken: list[Any] = np.frombuffer(self._take(count * dtype.itemsize), dtype=dtype).tolist()
        return taken

    def _value(self, kind: str, depth: int) -> Any:
        _expect(depth <= _DEEPEST, "it is nested too deeply")
        match kind:
            case "{":
                return _once(list(self._pairs(depth)))
            case "[":
                return self._array(depth)
            case "S":
                return self._take(self._count()).decode()
            case _ if kind in _WORDS:
                return _WORDS[kind]
            case _:
                return self._numbers(kind, 1)[0]

    def _pairs(self, depth: int) -> Any:
        while (kind := self._marker()) != "}":
            name = self._take(int(self._value(kind, depth))).decode()
            yield name, self._value(self._marker(), depth + 1)

    def _array(self, depth: int) -> list[Any]:
        kind = self._marker()
        if kind == "$":
            of = self._marker()
            _expect(self._marker() == "#", "an array has no length")
            return self._numbers(of, self._count())
        if kind == "#":
            return [self._value(self._marker(), depth + 1) for _ in range(self._count())]
        found = []
        while kind != "]":
            found.append(self._value(kind, depth + 1))
            kind = self._marker()
        return found


# ---- what the library takes on trust --------------------------------------------------------------------------------
def _check(document: Any) -> None:
    """Raise unless every index of a document leads somewhere."""
    version = list(map(int, document["version"]))
    learner = document["learner"]
    if version[0] < 1:
        raise refuse(
            "a model of xgboost 1 or later", f"the file was saved by {'.'.join(map(str, version))}", "Fit it again."
        )
    sizes = learner["learner_model_param"]
    n_inputs, n_classes, n_targets = (int(sizes.get(key, 1)) for key in ("num_feature", "num_class", "num_target"))
    _expect(0 < n_inputs <= _MOST_COLUMNS, f"it has {n_inputs} columns")
    _expect(np.isfinite(json.loads(sizes["base_score"])).all(), "its base score is no number")
    for key in ("feature_names", "feature_types"):
        _expect(len(learner.get(key, ())) in {0, n_inputs}, f"{key} and num_feature differ")
    part = learner["gradient_booster"]
    if part["name"] == "gblinear":
        size = (n_inputs + 1) * max(1, n_classes, n_targets)
        _expect(len(part["model"]["weights"]) == size, "its weights do not fit its columns")
        return
    model = trees_of(part)
    trees = model["trees"]
    info = model["tree_info"]
    groups = max(1, n_classes, n_targets)
    _expect(
        len(trees) == len(info) == int(model["gbtree_model_param"]["num_trees"]), "its trees are not as many as told"
    )
    _expect(0 <= n_classes <= max(2, len(trees)), "it has fewer trees than classes")
    _expect(0 <= n_targets <= max(2, len(trees)), "it has fewer trees than outputs")
    _expect(all(0 <= score < groups for score in info), "a tree belongs to no class")
    for place in (part, model):  # of dart: beside the model up to 3.3, in it since 3.4
        _expect(len(place.get("weight_drop", trees)) == len(trees), "weight_drop and trees differ")
    ends = model.get("iteration_indptr", [0])
    _expect(ends[0] == 0 and all(a <= b for a, b in itertools.pairwise(ends)), "its rounds are out of order")
    _expect("iteration_indptr" not in model or ends[-1] == len(trees), "its rounds do not end with its trees")
    missing = [frozenset[float]()] * n_inputs
    for number, tree in enumerate(trees):
        _expect(tree.get("id", number) == number, "a tree has another's number")
        _check_nodes(tree)
        read_tree(tree, 0, 1, missing)
    if "cats" in model:
        _check_categories(model["cats"], n_inputs)


def _check_nodes(tree: Mapping[str, Any]) -> None:
    """Check what reading a tree does not: parents, and the sets of categories."""
    nodes = int(tree["tree_param"]["num_nodes"])
    codes = tree.get("categories", ())
    _expect(nodes == len(tree["left_children"]), "a tree has another number of nodes than told")
    parents = tree["parents"]
    links = zip(tree["left_children"], tree["right_children"], strict=True)
    follow = all(parents[child] == node for node, pair in enumerate(links) for child in pair if child != -1)
    _expect(follow and len(parents) == nodes and parents[0] == _NO_PARENT, "a node has another parent than told")
    _expect(all(0 <= parent < nodes for parent in parents[1:] if parent != _NO_PARENT), "a parent is no node")
    starts = [tree.get(f"categories_{word}", ()) for word in ("nodes", "segments", "sizes")]
    _expect(len(set(map(len, starts))) == 1, "its sets of categories are incomplete")
    for node, first, size in zip(*starts, strict=True):
        _expect(0 <= node < nodes and tree["split_type"][node] == 1, "a set of categories has no node")
        _expect(0 <= first <= first + size <= len(codes), "a set of categories leaves its array")
    _expect(all(0 <= code < _MOST_CATEGORIES for code in codes), "a category has no code")


def _check_categories(cats: Mapping[str, Any], n_inputs: int) -> None:
    """Check the tables of names: one per column, or none at all."""
    tables = cats["enc"]
    counts = [len(table["offsets"][1:] if "offsets" in table else table["values"]) for table in tables]
    _expect(len(tables) in {0, n_inputs}, "its categories do not fit its columns")
    _expect(cats["feature_segments"] == ([0, *itertools.accumulate(counts)] if tables else []), "categories overlap")
    for table in tables:
        ends = table.get("offsets", [])
        inside = all(0 <= a <= b for a, b in itertools.pairwise(ends)) and ends[:1] in ([], [0])
        _expect(inside and ends[-1:] in ([], [len(table["values"])]), "the name of a category leaves its array")
    places = iter(cats["sorted_idx"])
    for count in counts:
        _expect(sorted(itertools.islice(places, count)) == list(range(count)), "its categories are out of order")
    _expect(next(places, None) is None, "it has more categories than told")
