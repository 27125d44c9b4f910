"""What was read of a model, to build on: its splits and leaves in raw units, a target as one score, and a memory."""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.content_hash import content_of
from ceopt.formulations.predictors.leaf_boxes import CellRanges, LevelSets, leaf_boxes
from ceopt.formulations.predictors.predictor import Combination, Predictor, coordinate_encoding, numbers_in
from ceopt.formulations.predictors.raw_trees import raw_trees
from ceopt.formulations.predictors.reaches import WantedSum, wanted_sums
from ceopt.formulations.predictors.readers import of_output, open_model, read
from ceopt.formulations.predictors.representation import (
    AbstractRepresentation,
    Affine,
    Decision,
    ReluNetwork,
)
from ceopt.formulations.predictors.ties import link_rounding, sums_of
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace, types_in
from ceopt.formulations.targets import ProbabilityOf, parse_target
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnsupportedModelError


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReadModel(Predictor):
    """A model as it was read over the columns of a space: what ``predictors.read`` returns, and ``embed`` takes.

    Attributes
    ----------
    core
        What the estimator computes of the encoded columns: ``Affine``, ``ReluNetwork``, ``TreeEnsemble`` or
        ``Combination``, with their arrays.
    encoding
        What the estimator sees of the raw columns; ``encoding.matrix(coordinates)`` is its input.
    model, space
        The user's own model, and the raw columns.
    """

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return what the model says of raw rows: labels, or the values of a regressor, (n,).

        Parameters
        ----------
        rows
            A frame, whose columns are matched by name, or a matrix (n, d) of the columns in the order of the space.

        Raises
        ------
        InvalidTypeError, InvalidValueError, UnknownNameError
            A column or a value that the space does not have, or a matrix of another width.
        """
        names = self.space.names
        frame = rows
        if isinstance(rows, pd.DataFrame):
            frame = rows[[name for name in rows.columns if name in self.space]]
        else:
            matrix = np.asarray(rows)
            if matrix.ndim != 2 or matrix.shape[1] != len(names):
                raise InvalidValueError(
                    "predict", f"a matrix of {len(names)} columns", f"rows has shape {matrix.shape}",
                    f"Give one row each, in the order of the space: {', '.join(names)}.",
                )  # fmt: skip
            frame = pd.DataFrame(matrix, columns=list(names)).infer_objects()
        return self.core.head.decide(self.score(self.space.coordinates(frame)))

    def signed(self, target: Any) -> ReadModel:
        """Return the model whose one score is at least 0 where the target is reached: a target as arrays.

        Parameters
        ----------
        target
            A label of two, a probability, ``AtLeast`` or ``AtMost``.

        Returns
        -------
        ReadModel
            A classifier with labels False and True. Its score is the slack of the decision, in the unit of ``margin=``.

        Raises
        ------
        InvalidValueError
            Several rivals or both ends of a range decide, so no one score does.
        """
        alternatives = self._wanted(target)
        if len(alternatives) != 1 or len(alternatives[0]) != 1:
            raise InvalidValueError(
                "signed", "a target that one score decides", f"target is {target!r}",
                "Ask for a label of two, a probability, AtLeast or AtMost; block.margin(target) takes every target.",
            )  # fmt: skip
        return self._one_scored(alternatives[0][0], target)

    def conditions(self, target: Any) -> tuple[tuple[ReadModel, float], ...]:
        """Return what a target asks for as models like :meth:`signed` gives, all of which have to be reached.

        With several rivals one for each, and with both ends of a range two. Beside each model how far from 0 its score
        may be where the library's rounding decides: 0 for models other than of trees.

        Raises
        ------
        InvalidValueError
            Any of several labels would do, or trees are counted.
        """
        asked = parse_target(target, self.labels)
        alternatives = self._wanted(asked)
        if len(alternatives) != 1:
            raise InvalidValueError(
                "conditions", "a target that sums of the scores decide together", f"target is {target!r}",
                "Ask for one label, a probability or a range of values.",
            )  # fmt: skip
        more = 0.0
        if isinstance(asked, ProbabilityOf) and self.core.probability != "share":
            more = link_rounding(self, asked)
        found = []
        for wanted in alternatives[0]:
            undecided = 0.0
            if self.is_trees:
                undecided = sums_of(self, wanted.weights).undecided_within(wanted.level, more)
            found.append((self._one_scored(wanted, target), undecided))
        return tuple(found)

    def _wanted(self, target: Any) -> list[tuple[WantedSum, ...]]:
        asked = parse_target(target, self.labels)
        return [sums for _, sums in wanted_sums(self.core, asked)]

    def _one_scored(self, wanted: WantedSum, target: Any) -> ReadModel:
        """Return the model whose one score is a sum of this one's, less the level that it has to reach."""
        if math.isinf(wanted.level):
            raise InvalidValueError(
                "signed", "a target that some scores reach and others do not", f"target is {target!r}",
                "Ask for another.",
            )  # fmt: skip
        decision: Decision = "nonnegative" if wanted.ties else "positive"
        core = _one_score(self, np.array(wanted.weights), wanted.level, decision)
        encoding = self.encoding
        if isinstance(core, Combination):
            encoding = coordinate_encoding(self.space)
        return ReadModel(core, encoding, core, self.space)

    @property
    def splits(self) -> Mapping[str, tuple[tuple[Any, Any], ...]]:
        """Per column that trees split, ascending: (greatest value left, least value right) of each split.

        Raw units: ``x.above[name, left]`` is that split's binary. Of an ordered column the two are neighbouring levels;
        where levels of another set go left, (levels left, levels right) as tuples. A column of the space that no tree
        splits has none.
        """
        found: dict[str, set[tuple[Any, Any]]] = {}
        for part in self._trees():
            raw = raw_trees(part)
            for name in raw.names:
                if name in raw.sets:
                    pairs = {_pair(goes_left, self.space[name]) for goes_left in raw.sets[name].tolist()}
                else:
                    pairs = set(zip(raw.lefts[name].tolist(), raw.rights[name].tolist(), strict=True))
                found[name] = found.get(name, set()) | pairs
        return _Splits(
            {name: tuple(sorted(pairs, key=repr_of)) for name, pairs in found.items() if pairs}, self.space.names
        )

    def leaves(self, tree: int) -> pd.DataFrame:
        """Return the leaves of one tree in raw units: what reaches each, and its value.

        Parameters
        ----------
        tree
            Position among all trees of the model.

        Returns
        -------
        DataFrame
            Index ``leaf``; where several paths lead to a leaf, a row for each. A column for each raw column that the
            tree splits: (least, greatest) of a number, infinite where nothing ends it, the levels of others; with
            ``missing`` the columns whose missing cell goes there; and ``value``, or one column for each label. Where a
            raw column has such a name, that is ``missing_of_leaf``, ``value_of_leaf`` and the like.

        Raises
        ------
        UnsupportedModelError
            The model has no trees.
        InvalidValueError
            It has not so many.
        """
        places = [(part, position) for part in self._trees() for position in range(len(part.core.trees))]  # type: ignore[attr-defined]
        if not isinstance(tree, int | np.integer) or not 0 <= tree < len(places):
            raise InvalidValueError("leaves", f"a tree from 0 to {len(places) - 1}", f"it got {tree!r}", "Choose one.")
        part, position = places[int(tree)]
        names = raw_trees(part).names_in(position)
        value_names: list[Any] = ["value"]
        if part.core.n_scores > 1:
            value_names = list(part.core.labels or range(part.core.n_scores))
        value_names = [_other_than(names, name) for name in value_names]
        lost = _other_than(names, "missing")
        boxes = leaf_boxes(part)
        own = np.flatnonzero(boxes.tree == position)
        admitted = {name: _in_words(self.space[name], boxes.columns.get(name), own) for name in names}
        columns: dict[Any, Any] = {name: words for name, (words, _) in admitted.items()}
        if any(self.space[name].missing is not False for name in names):
            columns[lost] = [tuple(n for n in names if admitted[n][1][k]) for k in range(len(own))]
        columns |= dict(zip(value_names, boxes.values[own].T, strict=True))
        return pd.DataFrame(columns, index=pd.Index(boxes.node[own], name="leaf"))

    def _trees(self) -> tuple[Predictor, ...]:
        forests = self.forests
        if not forests:
            raise UnsupportedModelError(
                "splits, or leaves,", "a model with trees", "this one has none", "Read a tree, a forest or boosting."
            )
        return forests


def _other_than(names: Sequence[Any], name: Any) -> Any:
    """Return a name for what a leaf has, which no raw column has."""
    return f"{name}_of_leaf" if name in names else name


@final
class _Splits(dict[str, tuple[tuple[Any, Any], ...]]):
    """Splits by column; of a column without any it is (), and what is no column is refused by name."""

    def __init__(self, found: Mapping[str, tuple[tuple[Any, Any], ...]], names: Iterable[str]) -> None:
        super().__init__(found)
        self._names = tuple(names)

    def __missing__(self, name: str) -> tuple[tuple[Any, Any], ...]:
        if name not in self._names:
            raise UnknownNameError.among("splits", "column", name, self._names)
        return ()


def repr_of(pair: tuple[Any, Any]) -> tuple[int, Any]:
    """Return what pairs are sorted by: numbers by value, before sets of levels by their text."""
    if isinstance(pair[0], int | float) and not isinstance(pair[0], bool):
        return 0, pair
    return 1, tuple(map(str, pair))


def _pair(goes_left: Sequence[bool], feature: Feature) -> tuple[Any, Any]:
    """Return a split of levels: the neighbours of an ordered column, else the levels left and right."""
    words = feature.levels
    left = [rank for rank in range(len(words)) if goes_left[rank]]
    right = [rank for rank in range(len(words)) if not goes_left[rank]]
    if feature.kind != "categorical" and left and right:
        if max(left) < min(right):
            return words[max(left)], words[min(right)]
        if max(right) < min(left):
            return words[max(right)], words[min(left)]
    return tuple(words[rank] for rank in left), tuple(words[rank] for rank in right)


def _in_words(feature: Feature, column: CellRanges | LevelSets | None, own: Any) -> tuple[list[Any], list[bool]]:
    """Return (least, greatest) or the levels that some leaves admit of a column, and whether a missing cell."""
    may_be_missing = feature.missing is not False
    if isinstance(column, CellRanges):
        low, high = column.ends()
        return list(zip(low[own].tolist(), high[own].tolist(), strict=True)), (
            column.gap[own] & may_be_missing
        ).tolist()
    assert column is not None  # noqa: S101 - a column that is split
    admitted = column.admits[column.part[own]]
    levels = [tuple(feature.levels[k] for k in np.flatnonzero(row[:-1]).tolist()) for row in admitted]
    return levels, (admitted[:, -1] & may_be_missing).tolist()


def _one_score(predictor: Predictor, weights: Any, level: float, decision: Decision) -> AbstractRepresentation:
    """Return the representation of ``weights @ scores - level``."""
    core = predictor.core
    labels = (False, True)
    if isinstance(core, Affine):
        intercept = float(weights @ core.intercept) - level
        return Affine(
            weights @ core.weights, intercept, labels=labels, decision=decision, dtype=core.dtype, columns=core.columns
        )
    if isinstance(core, ReluNetwork):
        last = (weights @ core.weights[-1])[None, :]
        bias = [float(weights @ core.biases[-1]) - level]
        return ReluNetwork(
            [*core.weights[:-1], last], [*core.biases[:-1], bias],
            activations=core.activations, labels=labels, decision=decision, dtype=core.dtype, columns=core.columns,
        )  # fmt: skip
    if isinstance(core, TreeEnsemble):
        trees = [dataclasses.replace(tree, value=(tree.value @ weights)[:, None]) for tree in core.trees]
        return TreeEnsemble(
            trees, float(weights @ core.base) - level * core.divisor,
            right_gap=core.right_gap, labels=labels, divisor=core.divisor, input_dtype=core.input_dtype,
            decision=decision, n_inputs=core.n_inputs, columns=core.columns,
        )  # fmt: skip
    return Combination([predictor], [weights[None, :]], -level, labels=labels, decision=decision)


# ==== Reading with a memory ===========================================================================================

#: Models that are remembered, however large.
_KEPT: Final = 8
#: Weights and nodes up to which more of them are: hundreds of linear models, as of a bootstrap.
_MOST_NUMBERS: Final = 1_000_000


@final
class _Memory:
    """The models that were read last, by content and space; it changes as models are read."""

    def __init__(self) -> None:
        self._models: OrderedDict[tuple[Any, ...], ReadModel] = OrderedDict()
        self._numbers = 0
        self._lock = Lock()

    def get(self, content: str, space: FeatureSpace) -> ReadModel | None:
        """Return the model that was read of this content, None if there is none; it is the last one from now on."""
        key = (content, space, types_in(space))
        with self._lock:
            known = self._models.get(key)
            if known is not None:
                self._models.move_to_end(key)
        return known

    def keep(self, content: str, space: FeatureSpace, known: ReadModel) -> None:
        """Keep a model, and drop those that were not read for the longest time if they are too many and too large."""
        key = (content, space, types_in(space))
        with self._lock:
            former = self._models.pop(key, None)
            if former is not None:
                self._numbers -= numbers_in(former)
            self._models[key] = known
            self._numbers += numbers_in(known)
            while len(self._models) > _KEPT and self._numbers > _MOST_NUMBERS:
                _, oldest = self._models.popitem(last=False)
                self._numbers -= numbers_in(oldest)

    def clear(self) -> None:
        """Forget all models."""
        with self._lock:
            self._models.clear()
            self._numbers = 0


_MEMORY: Final = _Memory()


def read_model(model: Any, space: FeatureSpace | None = None, *, output: int | None = None) -> ReadModel:
    """Read a fitted model over the raw columns of a space, to build on; what was read before is not read again.

    The last eight models, and hundreds of small ones, are remembered by their content, so a model that was fitted
    again, or a file that was written again, is read again.

    Parameters
    ----------
    model
        As for :func:`ceopt.explain`: a fitted model of a library, a file, or a representation from plain arrays.
    space
        The raw columns. By default numbers without bounds, by the names that the model was fitted on or that a
        representation has.
    output
        Of a regressor of scikit-learn that was fitted on several columns of y, the number of one of them. What is read
        is a model of its own: the estimator with the other outputs left out, behind the same pipeline.

    Returns
    -------
    ReadModel
        With ``.core`` (arrays), ``.encoding``, ``.splits``, ``.leaves(tree)`` and ``.signed(target)``.

    Raises
    ------
    UnsupportedModelError
        As for :func:`ceopt.explain`; an output of a model whose outputs cannot be told apart.
    InvalidTypeError
        No space is given, and the model does not name its columns.
    InvalidTypeError, InvalidValueError
        There is no such output.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from ceopt import FeatureSpace
    >>> X = pd.DataFrame({"income": [1.0, 2.0, 4.0, 5.0], "rooms": [3, 6, 3, 6]})
    >>> tree = DecisionTreeClassifier().fit(X, [0, 0, 1, 1])
    >>> found = read_model(tree, FeatureSpace.infer(X))
    >>> [round(left, 6) for left, right in found.splits["income"]]
    [3.0]
    >>> found is read_model(tree, FeatureSpace.infer(X))
    True
    """
    if space is None:
        space = _space_of(model)
    if not isinstance(space, FeatureSpace):
        raise InvalidTypeError("read", "a FeatureSpace", f"space is {type(space).__name__}", "Describe the columns.")
    if output is not None:
        model = of_output(model, output)
    if isinstance(model, ReadModel):
        return model
    content = None
    if not isinstance(model, Predictor):
        content = content_of(Path(model).read_bytes() if _is_file(model) else model)
    if content is None:
        return _as_read(read(model, space))
    known = _MEMORY.get(content, space)
    if known is not None and (known.model is model or isinstance(model, str | bytes | Path)):
        return known
    if known is None:
        known = _as_read(read(model, space))
    else:  # as much the same as one object is another's copy: verification asks the one that was given
        known = dataclasses.replace(known, model=model)
    _MEMORY.keep(content, space, known)
    return known


def _as_read(predictor: Predictor) -> ReadModel:
    return ReadModel(predictor.core, predictor.encoding, predictor.model, predictor.space)


def _is_file(model: Any) -> bool:
    return isinstance(model, str | Path) and Path(model).is_file()


def _space_of(model: Any) -> FeatureSpace:
    """Return a space of numbers by the names that a model has for its columns."""
    if isinstance(model, Predictor):
        return model.space
    names: Any = None
    if isinstance(model, AbstractRepresentation):
        names = model.columns or [f"x{k}" for k in range(model.n_inputs)]
    else:
        names = getattr(open_model(model), "feature_names_in_", None)
    if names is None:
        raise InvalidTypeError(
            "read", "a space, or a model that was fitted on a frame", "the model does not name its columns",
            "Pass space=FeatureSpace.infer(X_train).",
        )  # fmt: skip
    return FeatureSpace([Feature(str(name), kind="continuous") for name in names])
