r"""LightGBM: leaves added up in float64, tree by tree, in the order of the iterations (for "rf" then their mean).

The score is what ``predict(raw_score=True)`` returns (for "rf" that divided by the iterations); the average of the
target, at which boosting starts, is inside the first trees. How a score becomes a prediction is the objective's:

============================================= ============================================================
objective                                     prediction
============================================= ============================================================
binary, cross_entropy                         p = 1 / (1 + exp(-sigmoid * s)); second label iff p > 1 - p
multiclass, multiclassova                     the label of the largest score, the first of them on ties
regression, regression_l1, huber, fair, mape, the score
quantile, lambdarank, rank_xendcg, custom
poisson, gamma, tweedie, cross_entropy_lambda a function of the score: refused, and so are reg_sqrt=True, a
                                              classifier with a custom objective and linear_tree=True
============================================= ============================================================

The trees are read from the text of a model, which ``model_to_string`` and ``save_model`` write. Its numbers have 17
digits, so they are the library's own. The text is checked here from end to end before the library
sees it: what is out of place in a file would make the library read beyond its arrays.

============= ================================= ===================================================
decision_type a row goes left iff               NaN
============= ================================= ===================================================
``<=``        ``x <= threshold``, in float64    goes to the default side if the column had some at
\                                               fitting; else it is 0, which zero_as_missing sends
``==``        the whole part of x is in a set   is in no set
============= ================================= ===================================================

The library takes ``|x| <= 1e-35`` for 0 as it reads a dense matrix, before any test. (It keeps such an x of a sparse
matrix, where the one number that goes elsewhere is -1e-35 itself.)
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.readers.model_input import class_labels, dense, refuse
from ceopt.formulations.predictors.representation import Probability
from ceopt.formulations.predictors.trees import Link, Tree, TreeEnsemble, TreeWriter
from ceopt.formulations.space.encoding import last_true
from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import InvalidValueError, MissingLibraryError, UnreadableFileError, UnsupportedModelError

# ==== LightGBM's text of a model, which ``model_to_string`` and ``save_model`` write, as trees ========================

#: The library's kZeroThreshold: numbers up to it are 0.
_ZERO: Final = float(np.float32(1e-35))
#: The greatest number that is below all that are 0.
_BELOW: Final = math.nextafter(-_ZERO, -math.inf)
_CATEGORICAL, _DEFAULT_LEFT, _MISSING, _MISSING_ZERO, _MISSING_NAN = 1, 2, 12, 4, 8  # bits of decision_type
_END: Final = "\nend of trees\n"
_VERSIONS: Final = ("v3", "v4")
_PER_SPLIT: Final = (
    "split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child", "internal_value",
    "internal_weight", "internal_count",
)  # fmt: skip
_PER_LEAF: Final = ("leaf_weight", "leaf_count")
_NUMBER: Final = r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)"
_LIST: Final = re.compile(rf"(?:{_NUMBER}(?: {_NUMBER})*)?")
_MOST_NODES: Final = 100_000  # of a tree with zero_as_missing, whose branches are written several times

Ints: TypeAlias = NDArray[np.intp]


class UnlikelyTextError(Exception):
    """What is wrong with a text: ``(needs, but)``, two parts of a sentence."""


@final
@dataclass(frozen=True, slots=True)
class LightgbmText:
    """What the text says.

    Parameters
    ----------
    objective
        Its name and options as written, ``("binary", "sigmoid:1")``; empty for the user's own.
    n_scores
        Trees per iteration.
    averages
        Whether scores are means over iterations (``boosting="rf"``).
    names
        Columns, in order.
    trees
        In the order in which they are added up.
    by_set, by_number
        Columns that some split takes as categories, as numbers.
    """

    objective: tuple[str, ...]
    n_scores: int
    averages: bool
    names: tuple[str, ...]
    trees: tuple[Tree, ...]
    by_set: frozenset[int]
    by_number: frozenset[int]


def parse(text: str) -> LightgbmText:
    """Read the text of a model.

    Raises
    ------
    UnlikelyTextError
        It is not LightGBM's, is cut off, or contradicts itself.
    UnsupportedModelError
        Its leaves hold linear models.
    """
    if not text.startswith("tree\n"):
        raise UnlikelyTextError("a model that LightGBM saved", "its first line is not 'tree'")
    body, end, _ = text.partition(_END)
    if not end:
        raise UnlikelyTextError("a whole model", "the line 'end of trees' is missing")
    top, *blocks = re.split(r"^Tree=\d+\n", body + "\n", flags=re.MULTILINE)
    head = _fields(top)
    if head.get("version") not in _VERSIONS:
        raise UnlikelyTextError(f"a version among {', '.join(_VERSIONS)}", f"its version is {head.get('version')}")
    if any("\nis_linear=1\n" in block for block in blocks):
        raise refuse(
            "leaves that are numbers", "the model was fitted with linear_tree=True", "Fit it with linear_tree=False."
        )
    try:
        return _model(head, blocks, _sizes(f"{body}\n".encode()))
    except (IndexError, KeyError, OverflowError, ValueError) as error:  # InvalidValueError is a ValueError
        raise UnlikelyTextError("a model that LightGBM saved", f"it contradicts itself ({_said(error)})") from error


def deciding(text: str) -> str:
    """Return the trees and the categories of a text, without the training parameters, which may crash the library."""
    last = text.rstrip("\n").rpartition("\n")[2]
    categories = ""
    if last.startswith("pandas_categorical:"):
        categories = f"\n{last}\n"
    return f"{text.partition(_END)[0]}{_END}{categories}"


def _model(head: Mapping[str, str], blocks: list[str], sizes: list[int]) -> LightgbmText:
    n_scores = int(head["num_tree_per_iteration"])
    n_columns = int(head["max_feature_idx"]) + 1
    names = tuple(head["feature_names"].split(" "))
    if len(names) != n_columns or len(head["feature_infos"].split(" ")) != n_columns:
        raise ValueError(f"{n_columns} columns, {len(names)} names")
    if n_scores < 1 or not blocks or len(blocks) % n_scores:
        raise ValueError(f"{len(blocks)} trees for {n_scores} scores")
    objective = tuple(head.get("objective", "").split())
    if int(head["num_class"]) != n_scores or (objective and _classes(objective) != n_scores):
        raise ValueError(f"another number of classes than of scores, {n_scores}")
    if sizes != list(map(int, head["tree_sizes"].split())):
        raise ValueError("trees of other sizes than tree_sizes")
    trees = []
    by_set = set()
    by_number = set()
    for place, block in enumerate(blocks):
        nodes = _TreeNodes.read(_numbers(block), n_columns)
        trees.append(nodes.tree(place % n_scores, n_scores))
        by_set |= set(nodes.feature[nodes.is_set].tolist())
        by_number |= set(nodes.feature[~nodes.is_set].tolist())
    return LightgbmText(
        objective=objective, n_scores=n_scores, averages="average_output" in head,
        names=names, trees=tuple(trees), by_set=frozenset(by_set), by_number=frozenset(by_number),
    )  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class _TreeNodes:
    """The splits of one tree and its leaves, as written; child ``~k`` is leaf k."""

    feature: Ints
    threshold: NDArray[np.float64]
    kind: Ints
    left: Ints
    right: Ints
    leaves: NDArray[np.float64]
    sets: tuple[frozenset[float], ...]

    @classmethod
    def read(cls, fields: Mapping[str, list[str]], n_columns: int) -> _TreeNodes:
        count = int(fields["num_leaves"][0])
        sizes = {"leaf_value": count}
        if count > 1:  # of a tree without a split the library writes and reads nothing else
            sizes |= {**dict.fromkeys(_PER_SPLIT, count - 1), **dict.fromkeys(_PER_LEAF, count)}
        for name, size in sizes.items():
            if len(fields.get(name, range(size))) != size:
                raise ValueError(f"{len(fields[name])} of {size} numbers in {name}")

        def column(name: str, of: Callable[[str], Any], dtype: Any = np.intp) -> NDArray[Any]:
            words = fields[name] if name in sizes else []
            return np.array(list(map(of, words)), dtype=dtype)

        nodes = cls(
            feature=column("split_feature", int), threshold=column("threshold", float, float),
            kind=column("decision_type", int), left=column("left_child", int), right=column("right_child", int),
            leaves=column("leaf_value", float, float), sets=_sets(fields),
        )  # fmt: skip
        if ((nodes.feature < 0) | (nodes.feature >= n_columns)).any():
            raise ValueError("a split on a column that does not exist")
        sets = nodes.threshold[nodes.is_set]
        if ((sets < 0) | (sets >= len(nodes.sets))).any():
            raise ValueError("a split on a set of categories that does not exist")
        return nodes

    @property
    def is_set(self) -> NDArray[np.bool_]:
        """Which splits are on categories."""
        return np.asarray((self.kind & _CATEGORICAL) != 0)

    @property
    def diverted(self) -> NDArray[np.bool_]:
        """Which splits on numbers send 0, as a missing value, to another side than its threshold does."""
        default = (self.kind & _DEFAULT_LEFT) != 0
        zero_is_missing = ~self.is_set & ((self.kind & _MISSING) == _MISSING_ZERO)
        return np.asarray(zero_is_missing & (default != (self.threshold >= 0.0)))

    @property
    def missing_left(self) -> NDArray[np.bool_]:
        """At which splits NaN goes left: it is 0 where the column had none at fitting."""
        default = (self.kind & _DEFAULT_LEFT) != 0
        is_default = np.isin(self.kind & _MISSING, (_MISSING_ZERO, _MISSING_NAN))
        return np.asarray(~self.is_set & np.where(is_default, default, self.threshold >= 0.0))

    def tree(self, k: int, n_scores: int) -> Tree:
        """Return the tree that adds to score ``k``."""
        count = len(self.feature)
        # Leaf k is node count + k; the root is node 0 also where it is a leaf.
        left, right = (np.where(child < 0, count + ~child, child) for child in (self.left, self.right))
        leaf = np.full(len(self.leaves), -1)
        value = np.zeros((count + len(self.leaves), n_scores))
        value[count:, k] = self.leaves
        subset = np.where(self.is_set, self.threshold, -1).astype(np.intp)
        # A number up to _ZERO is 0: a threshold on one side of 0 cannot cut between them.
        theta = np.where((self.threshold >= 0.0) & (self.threshold < _ZERO), _ZERO, self.threshold)
        theta = np.where((theta < 0.0) & (theta >= -_ZERO), _BELOW, theta)
        # A split of missing values from all others has threshold inf; every number goes left.
        theta = np.minimum(theta, np.finfo(np.float64).max)
        padded = [np.concatenate([ints, leaf]) for ints in (self.feature, left, right, subset)]
        gaps = np.concatenate([self.missing_left, np.zeros(len(leaf), dtype=bool)])
        tree = Tree(
            padded[0], np.concatenate([theta, leaf]), padded[1], padded[2], value, padded[3], self.sets, gaps
        )  # fmt: skip
        if self.diverted.any():
            return _with_diversions(tree, self)
        return tree


def _with_diversions(tree: Tree, nodes: _TreeNodes) -> Tree:
    """Return the tree with a chain of splits where 0 goes to another side than its neighbours.

    The chain cuts the line at the threshold and around 0. A child that is reached from several of its cells is
    written once for each. On the way down it is kept which columns are known to be 0 or not, so that no column is
    cut around 0 twice. NaN goes with 0.
    """
    assert tree.missing_left is not None  # noqa: S101 - all that are read here have it
    diverted = set(np.flatnonzero(nodes.diverted).tolist())
    writer = TreeWriter()  # its values are the nodes that it copies
    waiting: list[tuple[int, dict[int, bool], Link | None]] = [(0, {}, None)]
    while waiting:
        node, known, link = waiting.pop()
        j = int(tree.feature[node])
        while node in diverted and known.get(j):
            default_left = bool(nodes.kind[node] & _DEFAULT_LEFT)
            node = int((tree.left if default_left else tree.right)[node])
            j = int(tree.feature[node])
        if j < 0:
            writer.add(link, threshold=float(tree.threshold[node]), value=node)
            continue
        children = (int(tree.right[node]), int(tree.left[node]))
        is_cut = node in diverted and j not in known
        if is_cut:
            *cells, (_, _, beyond) = _cells(tree, nodes, node)
        else:
            *cells, (_, _, beyond) = [(float(tree.threshold[node]), True, None), (math.inf, False, None)]
        members = tree.sets[tree.subset[node]] if tree.subset[node] >= 0 else None
        for end, goes_left, zero in cells:
            gap = zero is not False if is_cut else bool(tree.missing_left[node])
            number = writer.add(link, column=j, threshold=end, members=members, value=node, missing_left=gap)
            waiting.append((children[goes_left], _knowing(known, j, zero), (number, 0)))
            link = (number, 1)
        waiting.append((children[0], _knowing(known, j, beyond), link))
        if len(writer.values) + len(waiting) > _MOST_NODES:
            raise refuse(
                f"trees of at most {_MOST_NODES} nodes", "a tree of the model has more with zero_as_missing=True",
                "Fit it with zero_as_missing=False.",
            )  # fmt: skip
    return Tree(**writer.arrays(tree.value[writer.values]), missing_left=writer.missing_left())


def _cells(tree: Tree, nodes: _TreeNodes, node: int) -> list[tuple[float, bool, bool | None]]:
    """Return the cells of a diverted split: end, whether it goes left, whether it is 0 (None: it has 0 and others)."""
    threshold = float(tree.threshold[node])
    default_left = bool(nodes.kind[node] & _DEFAULT_LEFT)
    ends = sorted({_BELOW, _ZERO, threshold})
    cells = []
    for end in ends:
        cells.append((end, default_left if end == _ZERO else end <= threshold, end == _ZERO))
    merged: list[tuple[float, bool, bool | None]] = []
    for goes_left, run in itertools.groupby([*cells, (math.inf, False, False)], key=lambda cell: cell[1]):
        parts = list(run)
        zeros = {zero for _, _, zero in parts}
        merged.append((parts[-1][0], goes_left, zeros.pop() if len(zeros) == 1 else None))
    return merged


def _knowing(known: dict[int, bool], j: int, zero: bool | None) -> dict[int, bool]:
    if zero is None:
        return known
    return {**known, j: zero}


def _fields(block: str) -> dict[str, str]:
    """Return ``name=value`` by line; a line without value is its own name."""
    return {name: value for name, _, value in (line.partition("=") for line in block.split("\n")) if name}


def _classes(objective: tuple[str, ...]) -> int:
    return next((int(word.removeprefix("num_class:")) for word in objective if word.startswith("num_class:")), 1)


def _numbers(block: str) -> dict[str, list[str]]:
    """Return the words of each line of a tree, all of which are numbers: the library aborts on others."""
    numbers: dict[str, list[str]] = {}
    for line in block.rstrip("\n").split("\n"):
        name, equals, values = line.partition("=")
        if not equals or name in numbers or not _LIST.fullmatch(values):
            raise ValueError(f"the line {line[:40]!r}")
        numbers[name] = values.split(" ") if values else []
    return numbers


def _sets(fields: Mapping[str, list[str]]) -> tuple[frozenset[float], ...]:
    """Return the categories that go left: bit b of word w of a set is category 32 w + b."""
    count = int(fields["num_cat"][0])
    if count == 0:
        return ()
    ends = list(map(int, fields["cat_boundaries"]))
    words = list(map(int, fields["cat_threshold"]))
    if len(ends) != count + 1 or ends[0] != 0 or ends != sorted(ends) or ends[-1] != len(words):
        raise ValueError("sets of categories that do not fit cat_boundaries")
    sets = []
    for start, stop in itertools.pairwise(ends):
        categories: set[float] = set()
        for w, word in enumerate(words[start:stop]):
            categories.update(float(32 * w + b) for b in range(32) if word >> b & 1)
        sets.append(frozenset(categories))
    return tuple(sets)


def _sizes(body: bytes) -> list[int]:
    """Return the bytes of each tree, from its own first line to that of the next or of the end."""
    starts = [line.start() for line in re.finditer(rb"^Tree=\d+\n", body, flags=re.MULTILINE)]
    return [after - before for before, after in itertools.pairwise([*starts, len(body)])]


def _said(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    if not isinstance(error, InvalidValueError):
        return str(error)
    return str(error).partition(", but ")[2]


# ==== LightGBM: leaves added up in float64, tree by tree, in the order of the iterations (for "rf" then their mean) ===

_TWO: Final = ("binary", "cross_entropy")
_SEVERAL: Final = ("multiclass", "multiclassova")
_SUMS: Final = (
    "regression", "regression_l1", "huber", "fair", "mape", "quantile", "lambdarank", "rank_xendcg", "custom",
)  # fmt: skip
_CLASSIFIERS: Final = ("LGBMClassifier", "BoosterClassifier")
_REGRESSORS: Final = ("LGBMRegressor", "LGBMRanker", "BoosterRegressor")
#: What is read, by how it is embedded (see ``read.supported``).
MODELS: Final = {"trees": ("Booster", "LGBMClassifier", "LGBMRanker", "LGBMRegressor")}
#: Scores, times sigmoid, beyond which the probabilities of one-vs-all round so much that they tie: e^20 / 2^53 < 1e-7.
_SATURATED: Final = 20.0


class _Booster:
    """A native booster as an estimator: its columns have names unless it was trained on an array."""

    def __init__(self, booster: Any) -> None:
        self.booster = booster
        names = booster.feature_name()
        self.n_features_in_ = len(names)
        if names != [f"Column_{place}" for place in range(len(names))]:
            self.feature_names_in_ = np.array(names, dtype=object)


@final
class BoosterClassifier(_Booster):
    """A booster whose objective has classes 0, ..., K - 1, which predicts as ``LGBMClassifier`` does."""

    def __init__(self, booster: Any, n_classes: int) -> None:
        super().__init__(booster)
        self.classes_ = np.arange(n_classes)

    def predict_proba(self, rows: Any) -> Floats:
        """Return the probability of each class, (n, K)."""
        share = np.asarray(self.booster.predict(rows))
        if share.ndim == 2:
            return share
        return np.column_stack([1.0 - share, share])

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return the most probable class, (n,)."""
        return np.asarray(self.classes_[self.predict_proba(rows).argmax(axis=1)])


@final
class BoosterRegressor(_Booster):
    """A booster whose objective has a value."""

    def predict(self, rows: Any) -> Floats:
        """Return the values, (n,)."""
        return np.asarray(self.booster.predict(rows))


@final
@dataclass(frozen=True, slots=True)
class _Sigmoid:
    """The probability of the second label: ``1 / (1 + exp(-slope * s))``."""

    slope: float

    def __call__(self, scores: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + np.exp(-self.slope * scores)))

    def level(self) -> float:
        """Return the last score at which the first label is predicted: its probability is not the smaller one."""
        return float(last_true(np.vectorize(self._is_first)))

    def _is_first(self, score: float) -> bool:
        # The C library's exponential, which LightGBM calls too; NumPy has one of its own.
        if -self.slope * score > 700.0:
            p = 0.0
        else:
            p = 1.0 / (1.0 + math.exp(-self.slope * score))
        return not p > 1.0 - p


def open_model(model: Any) -> Any:
    """Return an estimator for a file of ``Booster.save_model`` or a booster; estimators are what they are.

    Raises
    ------
    UnreadableFileError
        The file is missing, cut off, or not a model of LightGBM.
    MissingLibraryError
        LightGBM is not installed.
    UnsupportedModelError
        It is another object of LightGBM, or not fitted.
    """
    if isinstance(model, str | Path):
        return _adapted(*_from_file(Path(model)))
    if type(model).__name__ == "Booster":
        return _adapted(model, _text(model))
    _booster(model)  # refuses all else of the library: Dataset, CVBooster, ...
    return model


def own_steps(estimator: Any) -> list[Callable[[Any], Any]]:
    """Return what the library makes of its input before the trees see it."""
    return [partial(_matrix, booster := _booster(estimator), _text(booster))]


def read_estimator(estimator: Any, dtype: str) -> TreeEnsemble:  # noqa: ARG001
    """Return what a LightGBM model computes.

    Raises
    ------
    UnsupportedModelError
        It is not fitted, or its class, objective or an option has no exact representation.
    """
    name = type(estimator).__name__
    booster = _booster(estimator)
    text = _text(booster)
    kind, *options = text.objective or ("custom",)
    _check_options(estimator, name, kind, options)
    labels = class_labels(estimator)
    if labels is None and text.n_scores > 1:
        raise refuse(
            "one score", f"the model has {text.n_scores} and no classes", "Fit it with objective='multiclass'."
        )
    two = labels is not None and text.n_scores == 1
    probability: Probability | None = None
    level = 0.0
    if two:
        slope = _slope(booster, options)
        probability = "logistic" if slope == 1.0 else _Sigmoid(slope)
        level = _Sigmoid(slope).level()
    divisor = len(text.trees) // text.n_scores if text.averages else 1
    model = TreeEnsemble(
        text.trees, labels=labels, divisor=divisor, probability=probability, level=level, n_inputs=len(text.names)
    )
    if kind == "multiclassova":
        _check_saturation(model, _option(options, "sigmoid"))
    return model


def own_scores(estimator: Any, rows: Any) -> Floats:
    """Return the library's own sums, before any probability: (n,) or (n, K)."""
    asked = estimator
    booster = _booster(estimator)
    if isinstance(estimator, _Booster):
        asked = booster
    scores = np.asarray(asked.predict(rows, raw_score=True), dtype=np.float64)
    if "\naverage_output\n" not in booster.model_to_string(num_iteration=1):
        return scores
    # Raw scores of a forest are sums, its predictions follow from means.
    rounds = int(max(booster.best_iteration, 0) or booster.current_iteration())
    return np.asarray(scores / rounds)


def _check_options(estimator: Any, name: str, kind: str, options: list[str]) -> None:
    """Refuse predictions that are not the sum of leaves or its most probable class."""
    fitting: tuple[str, ...] = _SUMS
    if name in _CLASSIFIERS:
        fitting = (*_TWO, *_SEVERAL)
    if kind not in fitting or "sqrt" in options:
        if name in _CLASSIFIERS:
            then = f"Objectives that are read: {', '.join(fitting)}."
        elif kind in {*_TWO, *_SEVERAL}:
            then = "Fit LGBMClassifier, and ask for a ceopt.Probability."
        elif "sqrt" in options:
            then = "Fit it with objective='regression' on the square root of the target."
        else:
            then = "Fit it with objective='regression' on the logarithm of the target."
        but = f"{name} has objective={kind!r}"
        if "sqrt" in options:
            but = f"{name} has reg_sqrt=True"
        raise refuse("a prediction that is a sum of leaves, or the most probable class", but, then)
    if hasattr(estimator, "get_params") and estimator.get_params().get("pred_early_stop") in {True, "true"}:
        raise refuse("predictions from all trees", f"{name} has pred_early_stop=True", "Set it to False.")


def _slope(booster: Any, options: list[str]) -> float:
    """Return the factor of the score in the exponent; the library writes six of its digits."""
    written = _option(options, "sigmoid")
    given = float(booster.params.get("sigmoid", _option(options, "sigmoid")))
    if given != written:
        raise refuse(
            "a sigmoid of at most six digits", f"the model has sigmoid={given!r}", f"Fit it with sigmoid={written}."
        )
    return written


def _option(options: list[str], name: str) -> float:
    return next((float(option.partition(":")[2]) for option in options if option.startswith(f"{name}:")), 1.0)


def _check_saturation(model: TreeEnsemble, slope: float) -> None:
    """Refuse one-vs-all scores so large that several probabilities may round to the same: the first would win."""
    most = slope * np.sort(sum(tree.value[~tree.inner].max(axis=0) for tree in model.trees) / model.divisor)[-2]
    if most > _SATURATED:
        raise refuse(
            f"scores of at most {_SATURATED:g}, beyond which probabilities are not told apart",
            f"those of objective='multiclassova' reach {most:.3g}", "Fit it with objective='multiclass'.",
        )  # fmt: skip


def _booster(estimator: Any) -> Any:
    name = type(estimator).__name__
    if name not in {*_CLASSIFIERS, *_REGRESSORS}:
        raise refuse(
            "a model that it can state exactly", f"the estimator is {name}",
            "Give LGBMClassifier, LGBMRegressor, LGBMRanker (of a distributed model its to_local()), a Booster, or the "
            "file of its save_model.",
        )  # fmt: skip
    if isinstance(estimator, _Booster):
        return estimator.booster
    if not estimator.__sklearn_is_fitted__():
        raise refuse("a fitted model", f"{name} is not fitted", "Call fit first.")
    return estimator.booster_


def _text(booster: Any) -> LightgbmText:
    """Read a booster's text: the iterations up to the best one, which are those that it predicts with."""
    try:
        return parse(booster.model_to_string())
    except UnlikelyTextError as error:
        needs, but = error.args
        raise UnsupportedModelError("The LightGBM model", needs, but, "Fit it again.") from error


def _adapted(booster: Any, text: LightgbmText) -> BoosterClassifier | BoosterRegressor:
    if next(iter(text.objective), "") in {*_TWO, *_SEVERAL}:
        return BoosterClassifier(booster, max(2, text.n_scores))
    return BoosterRegressor(booster)


def _from_file(path: Path) -> tuple[Any, LightgbmText]:
    """Return the booster of a file and its text, checked before the library reads it."""
    try:
        content = path.read_text(encoding="utf-8")
        text = parse(content)
    except UnlikelyTextError as error:
        needs, but = error.args
        raise _unreadable(path, needs, but) from error
    except (OSError, UnicodeError) as error:
        raise _unreadable(path, "a model that LightGBM saved", f"it cannot be read ({error})") from error
    try:
        import lightgbm
    except ImportError as error:
        raise MissingLibraryError(
            "A LightGBM model", "the library lightgbm", "it is not installed", "Run: pip install 'ceopt[lightgbm]'."
        ) from error
    try:
        booster = lightgbm.Booster(model_str=deciding(content))
    except (ValueError, lightgbm.basic.LightGBMError) as error:
        raise _unreadable(path, "a model that LightGBM saved", f"the library refuses it ({error})") from error
    categories = booster.pandas_categorical
    if not (
        categories is None or (isinstance(categories, list) and all(isinstance(part, list) for part in categories))
    ):
        raise _unreadable(path, "lists of categories", f"pandas_categorical is {categories!r}")
    return booster, text


def _unreadable(path: Path, needs: str, but: str) -> UnreadableFileError:
    return UnreadableFileError(f"The file {str(path)!r}", needs, but, "Save the model again with Booster.save_model.")


def _matrix(booster: Any, text: LightgbmText, rows: Any) -> Any:
    """Return the numbers that the library makes of its input: codes of categories, in the float width that it takes.

    A category column becomes its place among the categories of the training frame. One that is not among them is
    missing, and so in no set: its code is -1.

    Raises
    ------
    UnsupportedModelError
        The library would not take the columns, or takes as categories what are no codes.
    """
    if isinstance(rows, pd.DataFrame):
        rows = _codes(booster, text, rows)
    elif isinstance(rows, np.ndarray) and rows.dtype.kind in "biu":
        rows = rows.astype(np.float32)
    for place in sorted(text.by_set):
        values = np.asarray(dense(rows[:, [place]]), dtype=np.float64)
        values = values[~np.isnan(values)]
        if (values != np.rint(values)).any() or (np.abs(values) >= 2.0**31).any():
            raise refuse(
                "whole numbers as categories", f"LightGBM takes column {text.names[place]!r} as such and it has others",
                "Make it integer or categorical in the space, as it was when the model was fitted.",
            )  # fmt: skip
    return rows


def _codes(booster: Any, text: LightgbmText, frame: pd.DataFrame) -> NDArray[Any]:
    categories = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    trained = booster.pandas_categorical or []
    for name in frame:
        if name not in categories and not pd.api.types.is_numeric_dtype(frame[name].dtype):
            raise refuse(
                "columns that are numbers, bool or categories", f"column {name!r} is text in the space",
                "Infer the space from the frame that the model was fitted on, where its dtype is category.",
            )  # fmt: skip
    if len(categories) != len(trained):
        raise refuse(
            f"as many columns of dtype category as the model was fitted on, {len(trained)}",
            f"the space has {', '.join(map(repr, categories)) or 'none'}",
            "Infer the space from the frame that the model was fitted on.",
        )  # fmt: skip
    frame = frame.copy(deep=False)
    for name, levels in zip(categories, trained, strict=True):
        codes = frame[name].cat.set_categories(levels).cat.codes
        if frame.columns.get_loc(name) in text.by_number:
            frame[name] = codes.where(codes >= 0, np.nan)
        else:
            frame[name] = codes
    return frame.to_numpy(dtype=np.result_type(*(dtype.type for dtype in frame.dtypes), np.float32))
