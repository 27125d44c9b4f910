"""XGBoost: a start and one leaf per tree, added up in float32, tree by tree.

==================================== ============================================================= ===================
objective                            prediction                                                    probability
==================================== ============================================================= ===================
binary:logistic, reg:logistic        1 iff ``p > 0.5`` in float32, which a sum up to 8.9e-8 misses :func:`sigmoid`
binary:logitraw                      of a classifier 1 iff the sum is > 0.5; else the sum itself   none
binary:hinge                         1 iff the sum is > 0                                          none
multi:softmax, multi:softprob        the first of the largest sums                                 none: it is no sum
reg:squarederror and others that     the sum
predict a sum (``_SUMS``)
==================================== ============================================================= ===================

Where the sum starts (the base score, a number or one per class, in the units of the objective or of the sum) is not
computed here: the library predicts it with the model's trees taken out. ``gblinear`` is affine in float32. Trees of
``dart`` are scaled as the estimators of the library scale them, rounding included: which dart is, a booster says by its
weights, as since 3.3 it is called ``gbtree`` like all others and may be fitted so. Trees after the best iteration of
early stopping count or not as they do for ``predict``: the library's estimators leave them out, a ``Booster`` does not.

A native booster or a saved file is held in the library's own XGBClassifier or XGBRegressor, whichever it was saved
from, or its objective is for; the classes of a booster are 0, 1, ..., and ``missing`` is NaN, as files do not hold it.

Native categories are coded by the table of names that the model carries (xgboost 3.1 and later). Of the K shares of
multi:softprob the library takes the largest *after* it rounds them to float32, so sums nearer than 1e-7 may tie there.
A ``base_margin`` is an argument of the library's ``predict``, not a part of a model: it is never used here.

Trees are read from the document that the library saves. A row goes left iff ``x < t``, both float32: in float64 that is
``x <= np.nextafter(t, -inf)``. At a split on categories it goes *right* iff its code is in the node's set. What is
missing takes the node's default side: NaN, and numbers that stand for a missing value (``missing=`` of an estimator;
the zeros that a sparse matrix does not store). Where such a number would go to the other side, the node becomes two: a
split on the set of these numbers, then the threshold for all others. What follows on the default side is then known to
be missing and is not asked again. ``gblinear`` adds nothing for a missing cell.

Saved files are taken apart here before the library sees them, as it crashes on indices that lead nowhere, or follows
them: of 236 damaged files it crashed on 35 and took 24 that contradict themselves (xgboost 3.2, in a process of its
own). Both formats hold one document, as JSON or as UBJSON with big-endian numbers: strings ``S``, integers
``i U I l L``, floats ``d D``, ``T F Z N``, objects ``{ ... }`` and arrays ``[ ... ]``, also written ``[$type#count``
and ``[#count``.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OrdinalEncoder

from ceopt.formulations.predictors.readers.model_input import refuse
from ceopt.formulations.predictors.representation import AbstractRepresentation, Affine
from ceopt.formulations.predictors.trees import Link, Tree, TreeEnsemble, TreeWriter
from ceopt.formulations.space.encoding import Column, Encoding, last_true
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import CeoptError, MissingLibraryError, UnreadableFileError

if TYPE_CHECKING:
    from ceopt.formulations.predictors.readers import Behind

# ==== Columns as XGBoost sees them: codes of its own for categories, and numbers that stand for a missing value =======


def category_tables(entries: Sequence[Mapping[str, Any]]) -> dict[int, list[Any]]:
    """Return the categories that a model names, in the order of their codes, by the place of the column.

    Raises
    ------
    UnsupportedModelError
        Categories are numbers out of order, which no fitted encoder of scikit-learn can hold.
    """
    tables: dict[int, list[Any]] = {}
    for place, entry in enumerate(entries):
        if "offsets" in entry and len(entry["offsets"]) > 1:
            text = bytes(entry["values"])
            tables[place] = [text[a:b].decode() for a, b in itertools.pairwise(entry["offsets"])]
        elif "offsets" not in entry and entry["values"]:
            tables[place] = entry["values"]
            if tables[place] != sorted(tables[place]):
                raise refuse(
                    "categories that are numbers to be in ascending order",
                    f"column {place + 1} of the model has {', '.join(map(str, tables[place]))}",
                    "Sort the categories of the column, or write them as text, and fit again.",
                )  # fmt: skip
    return tables


def coder(
    tables: Mapping[int, list[Any]], names: Sequence[str], n_inputs: int, *, gaps: bool = False
) -> ColumnTransformer:
    """Return what the library does first, as a fitted step: it codes categories by the model's own tables.

    With ``gaps`` the step takes missing cells, which stay NaN.
    """
    first: list[Any] = [0.0] * n_inputs
    parts: list[Any] = [(str(place), "passthrough", [place]) for place in range(n_inputs)]
    for place, table in tables.items():
        categories = _with_gap(table) if gaps else np.array(table)
        first[place] = categories.tolist()[0]  # whole numbers would be the dtype in which NaN is lost
        parts[place] = (str(place), OrdinalEncoder(categories=[categories]), [place])
    row: Any = pd.DataFrame([first], columns=list(names) or range(n_inputs))
    if not names:
        row = row.to_numpy()
    return ColumnTransformer(parts).fit(row)


def _with_gap(table: list[Any]) -> NDArray[Any]:
    """Return categories with NaN, which stays what it is, after them."""
    numbers = not isinstance(table[0], str)
    return np.array([*table, np.nan], dtype=np.float64 if numbers else object)


def check_codes(column: Column, space: FeatureSpace, *, named: bool) -> None:
    """Refuse a column of categories whose codes in the library are not those that the encoding gives.

    Parameters
    ----------
    column
        A column that the model takes as categories.
    space
        The raw columns.
    named
        Whether the model has their names.

    Raises
    ------
    UnsupportedModelError
        Model and frame code it differently, it is a number, or its codes are not 0, 1, ...
    """
    if column.feature is None:
        return
    feature = space[column.feature]
    if named != isinstance(feature.pandas_dtype, pd.CategoricalDtype):
        raise refuse(
            "categories that model and frame code alike",
            f"column {column.feature!r} has dtype {feature.pandas_dtype} and the model "
            f"{'names its categories' if named else 'does not name its categories'}",
            "Give the column dtype category in the space (on the command line, by --space)." if named else
            "Fit the model with xgboost 3.1 or later on a frame, or encode the column by an OrdinalEncoder.",
        )  # fmt: skip
    if column.table is None:
        raise refuse(
            "levels in a column of categories", f"column {column.feature!r} is {feature.kind} in the space",
            f"Declare it with space.update({column.feature!r}, kind='categorical', levels=[...]).",
        )  # fmt: skip
    for value in column.table:
        if value < 0 or value != np.floor(value):  # the library would drop the fraction; NaN is no level in reach
            if np.isnan(value):
                continue
            raise refuse(
                "codes 0, 1, ... in a column of categories", f"column {column.feature!r} holds {value}",
                "Code its levels by whole numbers from 0, and fit again.",
            )  # fmt: skip


def missing_numbers(own: float | None, encoding: Encoding) -> list[frozenset[float]]:
    """Return, per column, which of the numbers that it can hold stand for a missing value.

    Parameters
    ----------
    own
        What the estimator says that is missing; compared in float32.
    encoding
        What it sees. Zeros of a sparse matrix are not stored, so they are missing too.
    """
    numbers = set()
    if encoding.sparse:
        numbers.add(0.0)
    if own is not None and not np.isnan(own):
        numbers.add(float(np.float32(own)))
    return [frozenset(number for number in numbers if _holds(column, number)) for column in encoding.columns]


def _holds(column: Column, number: float) -> bool:
    """Return whether a column can hold a number; yes of every number, whose bounds may widen."""
    if column.feature is not None and column.table is None:
        return True
    at_levels = column.seen(np.arange(len(column.table or (0.0,))), "float32")
    return number in at_levels or column.missing == number


# ==== A booster of XGBoost as the document that it would save: the parts that decide, and where its sum starts ========


def trees_of(booster: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a saved booster that holds its trees or weights; dart has it one level deeper up to 3.2."""
    part: Mapping[str, Any] = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    return part


def drop_weights(booster: Mapping[str, Any]) -> Sequence[float]:
    """Return by what dart scales each tree of a saved booster: beside the model up to 3.3, in it since 3.4."""
    weights: Sequence[float] = booster.get("weight_drop") or trees_of(booster).get("weight_drop") or ()
    return weights


@final
@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """The document of a booster.

    Parameters
    ----------
    booster
        The booster itself.
    document
        What it saves as JSON.
    kind
        "gbtree", "gblinear" or, up to version 3.2, "dart"; later ones say "gbtree" of dart as well.
    model
        The part of the document that holds trees or weights.
    scales
        By what dart scales the leaves of each tree; None where every tree counts as it is.
    scales_sums
        Whether the library scales the sum that a tree alone gives, start included, as up to version 3.2; else leaves.
    """

    booster: Any
    document: Mapping[str, Any]
    kind: str
    model: Mapping[str, Any]
    scales: Sequence[float] | None
    scales_sums: bool = False

    @classmethod
    def of(cls, booster: Any) -> Self:
        """Return the document of a booster."""
        document = json.loads(booster.save_raw("json"))
        part = document["learner"]["gradient_booster"]
        name = str(part["name"])
        model = trees_of(part)
        return cls(booster, document, name, model, drop_weights(part) or None, scales_sums=name == "dart")

    @property
    def objective(self) -> str:
        """Name of the objective."""
        return str(self.document["learner"]["objective"]["name"])

    @property
    def names(self) -> list[str]:
        """Columns of the frame that it was fitted on; none of an array."""
        return list(self.document["learner"]["feature_names"])

    @property
    def categorical(self) -> list[int]:
        """Places of the columns that hold categories."""
        return [place for place, kind in enumerate(self.document["learner"]["feature_types"]) if kind == "c"]

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix."""
        return self._size("num_feature")

    @property
    def n_outputs(self) -> int:
        """Columns of the target."""
        return self._size("num_target")

    @property
    def n_scores(self) -> int:
        """Sums per row."""
        return max(1, self._size("num_class"))

    def start_of_sum(self) -> Floats:
        """Return where the sums start: what the library predicts with the model's trees taken out."""
        import xgboost

        learner = self.document["learner"]
        empty = {
            "gbtree_model_param": {**self.model["gbtree_model_param"], "num_trees": "0"},
            "iteration_indptr": [0], "tree_info": [], "trees": [],
        }  # fmt: skip
        bare = {
            **learner,
            "gradient_booster": {"name": "gbtree", "model": empty},
            # A model without trees that says 1 here has its start estimated anew.
            "learner_model_param": {**learner["learner_model_param"], "boost_from_average": "0"},
        }
        booster = xgboost.Booster()
        booster.load_model(bytearray(json.dumps({**self.document, "learner": bare}).encode()))
        return _at_zero(booster, self.n_inputs)

    def _size(self, name: str) -> int:
        return int(self.document["learner"]["learner_model_param"][name])


def _at_zero(booster: Any, n_inputs: int) -> Floats:
    """Return the library's own sums at a row of zeros, one per score."""
    import xgboost

    row = xgboost.DMatrix(np.zeros((1, n_inputs), dtype=np.float32))
    return np.asarray(booster.predict(row, output_margin=True, validate_features=False), dtype=np.float64).ravel()


# ==== Trees of XGBoost, from the document that the library saves, with the side that each takes for a missing value ===

#: Numbers that stand for a missing value, per column of the matrix.
Numbers: TypeAlias = Sequence[frozenset[float]]
#: What leaves add, as a function of their values.
Scaled: TypeAlias = Callable[[NDArray[np.float32]], NDArray[np.float32]]

_LARGEST: Final = float(np.finfo(np.float64).max)
_BY_CATEGORY: Final = 1


class _Place(NamedTuple):
    """A node of the saved tree that is still to be written, and what the path says of columns: missing or not."""

    node: int
    link: Link | None
    missing: Mapping[int, bool]


def read_tree(
    saved: Mapping[str, Any], score: int, n_scores: int, missing: Numbers, scaled: Scaled | None = None
) -> Tree:
    """Return a saved tree that adds to one of the scores.

    Parameters
    ----------
    saved
        The tree, as the library writes it.
    score, n_scores
        Which score its leaves add to, and of how many.
    missing
        Numbers that stand for a missing value.
    scaled
        What leaves add, given their values (float32); by default the values themselves.

    Raises
    ------
    UnsupportedModelError
        A leaf holds several values, or the nodes form no tree over the columns.
    """
    if int(saved["tree_param"]["size_leaf_vector"]) > 1:
        raise refuse(
            "one value per leaf", "the model has multi_strategy='multi_output_tree'",
            "Fit it with multi_strategy='one_output_per_tree'.",
        )  # fmt: skip
    return _Writer(saved, missing, scaled).tree(score, n_scores)


@final
class _Writer:
    """One saved tree on its way into the arrays of a :class:`Tree`."""

    def __init__(self, saved: Mapping[str, Any], missing: Numbers, scaled: Scaled | None) -> None:
        self._left: list[int] = list(saved["left_children"])
        self._right: list[int] = list(saved["right_children"])
        self._column = list(saved["split_indices"])
        self._missing = missing
        self._goes_left = list(map(bool, saved["default_left"]))
        # One array holds the thresholds of inner nodes and the values of leaves.
        numbers = np.array(saved["split_conditions"], dtype=np.float32)
        self._threshold = np.clip(np.nextafter(numbers.astype(np.float64), -np.inf), -_LARGEST, _LARGEST).tolist()
        if scaled is not None:
            numbers = scaled(numbers)
        self._value = numbers.astype(np.float64).tolist()
        self._check()
        kinds = saved.get("split_type") or [0] * len(self._left)
        self._sets = {node: frozenset[float]() for node, kind in enumerate(kinds) if kind == _BY_CATEGORY}
        starts = zip(saved.get("categories_segments", ()), saved.get("categories_sizes", ()), strict=True)
        for node, (first, size) in zip(saved.get("categories_nodes", ()), starts, strict=True):
            self._sets[node] = frozenset(map(float, saved["categories"][first : first + size]))
        self._written = TreeWriter()
        self._waiting: list[_Place] = [_Place(0, None, {})]

    def tree(self, score: int, n_scores: int) -> Tree:
        """Write all that the root reaches."""
        while self._waiting:
            self._write(self._waiting.pop())
        value = np.zeros((len(self._written.values), n_scores))
        value[:, score] = self._written.values
        return Tree(**self._written.arrays(value), missing_left=self._written.missing_left())

    def _check(self) -> None:
        """Refuse nodes that form no tree over the columns: following them might never end."""
        nodes = len(self._left)
        inner = [node for node, child in enumerate(self._left) if child != -1]
        children = [*map(self._left.__getitem__, inner), *map(self._right.__getitem__, inner)]
        columns = list(map(self._column.__getitem__, inner))
        sizes = {nodes, len(self._right), len(self._column), len(self._goes_left), len(self._threshold)}
        if (
            len(sizes) != 1
            or not nodes
            or len(set(children)) != len(children)
            or not all(0 < child < nodes for child in children)
            or not all(0 <= column < len(self._missing) for column in columns)
        ):
            raise refuse("trees whose nodes hang together", "a tree of the model does not", "Save the model again.")

    def _write(self, place: _Place) -> None:
        node = place.node
        missing = place.missing
        while self._left[node] != -1 and missing.get(self._column[node], False):
            node = self._default(node)
        if self._left[node] == -1:
            self._written.add(place.link, value=self._value[node])
            return
        column = self._column[node]
        left = self._left[node]
        right = self._right[node]
        absent = frozenset[float]()
        if column not in missing:
            absent = self._missing[column]
        if node in self._sets:
            codes = self._sets[node]
            if self._goes_left[node]:
                codes = codes - absent
            else:
                codes = codes | absent
            if codes:  # which go right
                gap = not self._goes_left[node]
                self._split(place, (right, missing), (left, missing), column=column, codes=codes, gap=gap)
            elif self._goes_left[node]:  # all go left
                self._waiting.append(place._replace(node=left))
            else:  # every category goes left
                self._split(place, (left, missing), (right, missing), column=column, threshold=_LARGEST, gap=False)
        elif any((number <= self._threshold[node]) != self._goes_left[node] for number in absent):
            children = (self._default(node), {**missing, column: True}), (node, {**missing, column: False})
            self._split(place, *children, column=column, codes=absent, gap=True)
        else:
            tests = {"threshold": self._threshold[node], "gap": self._goes_left[node]}
            self._split(place, (left, missing), (right, missing), column=column, **tests)

    def _default(self, node: int) -> int:
        if self._goes_left[node]:
            return self._left[node]
        return self._right[node]

    def _split(
        self,
        place: _Place,
        left: tuple[int, Mapping[int, bool]],
        right: tuple[int, Mapping[int, bool]],
        *,
        column: int,
        gap: bool,
        threshold: float = 0.0,
        codes: frozenset[float] | None = None,
    ) -> None:
        """Write a split, and put its two children, with what their paths say is missing, among those that wait.

        ``gap``: whether NaN goes left.
        """
        test: dict[str, Any] = {"column": column, "threshold": threshold, "members": codes, "missing_left": gap}
        number = self._written.add(place.link, **test, value=0.0)
        for side, (child, missing) in ((1, right), (0, left)):
            self._waiting.append(_Place(child, (number, side), missing))


# ==== Saved files of XGBoost, taken apart here before the library sees them: it crashes on indices that lead nowhere ==

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
    entries = dict(pairs)
    _expect(len(entries) == len(pairs), "a key is there twice")
    return entries


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
        value = self._value(self._marker(), 0)
        _expect(self._at == len(self._raw), "more follows its end")
        return value

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
        items = []
        while kind != "]":
            items.append(self._value(kind, depth + 1))
            kind = self._marker()
        return items


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
        is_text = all(0 <= a <= b for a, b in itertools.pairwise(ends)) and ends[:1] in ([], [0])
        _expect(is_text and ends[-1:] in ([], [len(table["values"])]), "the name of a category leaves its array")
    places = iter(cats["sorted_idx"])
    for count in counts:
        _expect(sorted(itertools.islice(places, count)) == list(range(count)), "its categories are out of order")
    _expect(next(places, None) is None, "it has more categories than told")


# ==== XGBoost: a start and one leaf per tree, added up in float32, tree by tree =======================================

_CLASSIFIERS: Final = ("XGBClassifier", "XGBRFClassifier")
_REGRESSORS: Final = ("XGBRFRegressor", "XGBRegressor")
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "trees": ("Booster", *_CLASSIFIERS, *_REGRESSORS),
    "linear": ("booster='gblinear'",),
}
_LOGISTIC: Final = ("binary:logistic", "reg:logistic")
_SEVERAL: Final = ("multi:softmax", "multi:softprob")
#: Objectives whose prediction is the sum itself.
_SUMS: Final = (
    "binary:logitraw", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror", "reg:squarederror",
    "reg:squaredlogerror",
)  # fmt: skip
#: What a classifier that ends in one sum does with it: label 1 iff the sum exceeds ...; None is found by bisection.
_TWO: Final[Mapping[str, float | None]] = {
    **dict.fromkeys(_LOGISTIC), "binary:logitraw": 0.5, "binary:hinge": 0.0,
}  # fmt: skip
_LOGARITHM: Final = "Fit it with objective='reg:squarederror' on the logarithm of the target."
_INSTEAD: Final[Mapping[str, str]] = {
    "count:poisson": _LOGARITHM, "reg:gamma": _LOGARITHM, "reg:tweedie": _LOGARITHM, "survival:aft": _LOGARITHM,
    "survival:cox": _LOGARITHM,
    **dict.fromkeys((*_LOGISTIC, *_SEVERAL, "binary:hinge"), "Fit XGBClassifier, and ask for a label or Probability."),
}  # fmt: skip


def sigmoid(scores: Floats) -> NDArray[np.float32]:
    """Return ``1 / (1 + exp(-s))`` as the library rounds it: in float32, the exponent cut at 88.7.

    Examples
    --------
    >>> sigmoid(np.array([0.0, 8.9e-8, 9.0e-8])) > 0.5
    array([False, False,  True])
    """
    with np.errstate(over="ignore", under="ignore"):  # the ends of float64 lie beyond float32
        exponent = np.minimum(-np.asarray(scores).astype(np.float32), np.float32(88.7))
        power = np.exp(exponent.astype(np.float64)).astype(np.float32)  # the library's expf rounds once
        return np.asarray(np.float32(1.0) / (power + np.float32(1.0)), dtype=np.float32)


def open_model(model: Any) -> Any:
    """Return an estimator of the library for a file or a native booster; any other model is returned as it is.

    Raises
    ------
    MissingLibraryError
        A file is given and the library is not installed.
    UnreadableFileError
        The file is missing, truncated or no model of XGBoost.
    UnsupportedModelError
        The library or the file is too old.
    """
    if isinstance(model, str | Path):
        return _from_file(Path(model))
    if type(model).__name__ != "Booster":
        return model
    _library()
    native = model.copy()
    # Its own predict takes all trees, and is that of its objective, whatever saved it.
    native.set_attr(best_iteration=None, best_score=None, scikit_learn=None)
    return _held(native.save_raw("ubj"), native)


def read_estimator(estimator: Any, dtype: str) -> AbstractRepresentation:  # noqa: ARG001 - it always casts to float32
    """Return what an estimator of XGBoost computes from a dense matrix in which nothing stands for a missing value.

    Raises
    ------
    UnsupportedModelError
        Its class, objective, booster or an option has no exact representation.
    """
    saved = _saved(estimator)
    return _representation(estimator, saved, [frozenset()] * saved.n_inputs)


def read_composite(estimator: Any, behind: Behind) -> tuple[AbstractRepresentation, Encoding]:
    """Return what an estimator computes, and what it sees: codes of its own for categories, numbers that are missing.

    Raises
    ------
    UnsupportedModelError
        As :func:`read_estimator`; or a column's categories or missing numbers have no exact statement.
    """
    saved = _saved(estimator)
    tables = category_tables(saved.model.get("cats", {}).get("enc", ()))
    steps = []
    if tables:
        gaps = any(feature.missing is not False for feature in behind.space)
        steps = [coder(tables, saved.names, saved.n_inputs, gaps=gaps)]
    encoding = behind.encoding(estimator, *steps)
    if len(encoding.columns) != saved.n_inputs:
        raise refuse(
            f"as many columns as the model was fitted on, {saved.n_inputs}", f"it is given {len(encoding.columns)}",
            "Describe every column that the model was fitted on.",
        )  # fmt: skip
    for place in saved.categorical:
        check_codes(encoding.columns[place], behind.space, named=place in tables)
    core = _representation(estimator, saved, missing_numbers(estimator.missing, encoding))
    if saved.kind == "gblinear":
        encoding = replace(encoding, columns=tuple(map(_without_gap, encoding.columns)))
    return core, encoding


def _without_gap(column: Column) -> Column:
    """Return a column with 0 for a missing cell: a linear booster skips it."""
    if column.passes_gaps:
        return replace(column, missing=0.0)
    return column


def own_scores(estimator: Any, rows: Any) -> Floats:
    """Return the library's own sums, before any probability: (n,) or (n, K)."""
    return np.asarray(estimator.predict(rows, output_margin=True), dtype=np.float64)


# ---- what the estimator is ------------------------------------------------------------------------------------------
def _library() -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise MissingLibraryError(
            "A model of XGBoost", "the library xgboost", "it is not installed",
            'Install it by pip install "ceopt[xgboost]".',
        ) from error  # fmt: skip
    if int(xgboost.__version__.partition(".")[0]) < 3:
        raise refuse("xgboost 3 or later", f"version {xgboost.__version__} is installed", "Update it.")
    return xgboost


def _saved(estimator: Any) -> Saved:
    name = type(estimator).__name__
    _library()
    if name not in (*_CLASSIFIERS, *_REGRESSORS):
        raise refuse(
            "a model that it can state exactly", f"the estimator is {name}",
            f"Models of XGBoost that are read: {', '.join(MODELS['trees'])}.",
        )  # fmt: skip
    if not estimator.__sklearn_is_fitted__():
        raise refuse("a fitted model", f"{name} is not fitted", "Call fit first.")
    return Saved.of(estimator.get_booster())


def _representation(estimator: Any, saved: Saved, missing: Numbers) -> AbstractRepresentation:
    head = _head(estimator, saved)
    if saved.kind == "gblinear":
        return _affine(saved, missing, head)
    rounds = getattr(estimator, "best_iteration", saved.booster.num_boosted_rounds() - 1) + 1
    count = saved.model["iteration_indptr"][rounds]
    if count == 0:
        raise refuse("at least one tree", f"{type(estimator).__name__} has none", "Fit it with n_estimators above 0.")
    base = saved.start_of_sum()
    trees = []
    for place, (tree, score) in enumerate(zip(saved.model["trees"][:count], saved.model["tree_info"], strict=False)):
        start = base[score] if saved.scales_sums else 0.0
        scaled = None
        if saved.scales is not None:
            scaled = partial(_scaled, start, saved.scales[place])
        trees.append(read_tree(tree, score, saved.n_scores, missing, scaled))
    return TreeEnsemble(trees, base, input_dtype="float32", sum_dtype="float32", n_inputs=saved.n_inputs, **head)


def _head(estimator: Any, saved: Saved) -> dict[str, Any]:
    """Return labels, probability and level."""
    name = type(estimator).__name__
    objective = saved.objective
    classifier = name in _CLASSIFIERS
    if callable(getattr(estimator, "objective", None)):
        raise refuse(
            "an objective of XGBoost's own", f"{name} has a function as objective", "Fit it with one that it names."
        )
    known = (*_TWO, *_SEVERAL) if classifier else _SUMS
    if objective not in known:
        raise refuse(
            "a prediction that is a sum of leaves or decided by one", f"{name} has objective={objective!r}",
            f"{_INSTEAD.get(objective, 'Choose another.')} Objectives that are read: {', '.join(sorted(known))}.",
        )  # fmt: skip
    if saved.n_outputs > 1:
        raise refuse("one output", f"{name} was fitted on {saved.n_outputs}", "Fit one model per output or level.")
    if not classifier:
        return {}
    labels = estimator.classes_.tolist()
    if len(labels) < 2:
        raise refuse("at least two classes", f"{name} knows only {labels!r}", "Fit it on data with other labels.")
    if objective in _SEVERAL:
        if len(labels) == 2 and objective == "multi:softprob":
            raise refuse("three classes or more with multi:softprob", f"{name} has two", "Fit it with binary:logistic.")
        return {"labels": labels}
    level = _TWO[objective]
    if level is not None:
        return {"labels": labels, "level": level}
    even = float(last_true(lambda scores: sigmoid(scores) <= 0.5))
    return {"labels": labels, "level": even, "probability": sigmoid}


# ---- numbers of the sum ---------------------------------------------------------------------------------------------
def _scaled(base: float, factor: float, leaves: Any) -> Any:
    """Return what leaves of a tree of dart add: up to 3.2 the library takes the start off a sum and scales the rest."""
    start = np.float32(base)
    return ((start + leaves) - start) * np.float32(factor)


def _affine(saved: Saved, missing: Numbers, head: Mapping[str, Any]) -> Affine:
    if saved.categorical or any(numbers - {0.0} for numbers in missing):
        raise refuse(
            "numbers that are what they are in a linear booster", "gblinear takes categories or missing numbers",
            "Encode categories by a OneHotEncoder, and leave missing=nan.",
        )  # fmt: skip
    weights = np.array(saved.model["weights"], dtype=np.float32).reshape(saved.n_inputs + 1, saved.n_scores)
    return Affine(weights[:-1].T, _at_zero(saved.booster, saved.n_inputs), dtype="float32", **head)


# ---- files and native boosters --------------------------------------------------------------------------------------
def _from_file(path: Path) -> Any:
    xgboost = _library()
    raw, document = checked_bytes(path)
    try:
        held = _held(raw, xgboost.Booster(model_file=raw))
        saved = Saved.of(held.get_booster())  # the library takes some trees that it cannot write again
    except (xgboost.core.XGBoostError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, CeoptError):
            raise
        raise unreadable(path, re.sub(r"^\[[\d:]+\] \S+:\d+: ", "", str(error).partition("\n")[0])) from error
    if drop_weights(document["learner"]["gradient_booster"]) and not saved.scales:
        raise refuse(
            "a library that reads the weights of the model's trees",
            f"{str(path)!r} is a dart model of version {'.'.join(map(str, document['version']))} and xgboost "
            f"{xgboost.__version__}, which is installed, drops them", "Update xgboost, or fit the model with this one.",
        )  # fmt: skip
    return held


def _held(raw: bytearray, booster: Any) -> Any:
    """Return the estimator that a saved booster is of: that which saved it, else by its objective."""
    xgboost = _library()
    kind = json.loads(booster.attr("scikit_learn") or "{}").get("_estimator_type")
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    if kind not in {None, "classifier", "regressor"}:
        raise refuse("a classifier or regressor", f"the file holds a {kind}", "Fit XGBRegressor.")
    by_objective = objective in {"binary:logistic", "binary:hinge", *_SEVERAL}
    if kind == "classifier" or (kind is None and by_objective):
        estimator = xgboost.XGBClassifier()
    else:
        estimator = xgboost.XGBRegressor()
    estimator.load_model(raw)
    return estimator
