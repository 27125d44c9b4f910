r"""Predictor and generator of recourse: rows as they read them, their layers, and what they say of raw rows.

A layer is a pair (W, b) of shapes (in, out) and (out,), and a list of layers is a chain. With the activation
:math:`\sigma` behind every layer but a last one,

.. math::
    z = \mathrm{encoder}(x), \quad p = \mathrm{predictor}(z), \quad s = p W + b, \quad
    x^{cf} = \mathrm{heads}(\mathrm{generator}([z, p])),

or, in the general framework (``shared=False``), :math:`x^{cf} = \mathrm{heads}(\mathrm{generator}(\mathrm{own\
encoder}(x)))`. There is one score s for two classes (its sigmoid is the second's probability), and one a class for
more (softmax). Heads: a softmax for the columns of each category, numbers and shares cut to what the person may reach;
what is beyond still learns the way back, and no more than that: else numbers run off, and all people end at the same
bounds. A residual generator adds x (and 4 for the own level of a category) before the heads: without, what it knows of
a person is what the predictor's last units tell, and people who are alike to the predictor get the same advice.

Every function takes the module of arrays, ``numpy`` or ``jax.numpy``, as ``xp``.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from ceopt.formulations.digits import digits
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.representation import Affine, ReluNetwork
from ceopt.formulations.space.encoding import Column
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import FeatureSpace, raw_frame, require_every_label, rows_to_keep, taken
from ceopt.solvers.checks import Floats, OrNone, Refusal, Text, plain
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    MissingLibraryError,
    UnknownNameError,
    UnsupportedModelError,
)
from ceopt.surrogates.scaled_columns import Flags, ScaledFrame
from ceopt.tolerances import SAME_SHARES

# ==== JAX and optax, which the extra ``training`` brings: whether they are there, and on which device they calculate ==

_NO_DEVICE: Final = Refusal("the name of a device as {name}", 'Write "cpu" or "gpu".', error=InvalidTypeError)
#: None, which leaves the choice to JAX, or the name of a kind of device.
DEVICE: Final = OrNone(Text(_NO_DEVICE))


def require_jax(who: str) -> None:
    """Refuse to train where JAX or optax is not installed.

    Raises
    ------
    MissingLibraryError
        One of them is missing.
    """
    for library in ("jax", "optax"):
        if importlib.util.find_spec(library) is None:
            then = "Install both: pip install 'ceopt[training]'."
            raise MissingLibraryError(who, "JAX and optax", f"{library} is not installed", then)


def on_device(who: str, name: str | None) -> contextlib.AbstractContextManager[Any]:
    """Return the context in which JAX calculates on a kind of device, "cpu" or "gpu"; None: where JAX likes best.

    Raises
    ------
    InvalidValueError
        JAX finds no such device.
    """
    import jax

    if name is None:
        return contextlib.nullcontext()
    try:
        device = jax.local_devices(backend=name)[0]
    except RuntimeError:
        found = sorted({device.platform for device in jax.local_devices()})
        then = f"Choose from: {', '.join(found)}; or install JAX for it."
        raise InvalidValueError(who, "a device that JAX finds", f"device is {name!r}", then) from None
    context: contextlib.AbstractContextManager[Any] = jax.default_device(device)
    return context


# ==== Predictor and generator as plain trees of arrays, and what they compute =========================================

#: An array of NumPy or of JAX.
Array: TypeAlias = Any
#: Weights (in, out) and biases (out,), layer by layer.
Layers: TypeAlias = list[tuple[Array, Array]]
#: Lists of layers by name.
Tree: TypeAlias = dict[str, Layers]
#: What is done to the hidden units in training: nothing, or dropout.
Thinning: TypeAlias = Callable[[Array], Array]

#: What a person's own level counts in the softmax of a residual generator: it has e^4 / (e^4 + L - 1) of L levels where
#: nothing is learned yet, 0.93 of five.
OWN_LOGIT: Final = 4.0
#: Slope of the leaky ReLU below 0: that of PyTorch, which the paper used.
LEAK: Final = 0.01


@final
@dataclass(frozen=True, slots=True)
class Design:
    """The widths of the networks, and the columns that they read and make.

    Parameters
    ----------
    n_columns
        Columns p of a row.
    n_scores
        1 for two classes, else the number of classes.
    encoder, predictor, generator
        Units of each hidden layer.
    shared
        Whether the generator reads the predictor's hidden units, or has an encoder of its own.
    activation
        "relu" or "leaky_relu".
    groups
        First place and the place after the last of each category's columns.
    residual
        Whether the generator's last layer says by how much the row changes, and not what it becomes.
    """

    n_columns: int
    n_scores: int
    encoder: tuple[int, ...]
    predictor: tuple[int, ...]
    generator: tuple[int, ...]
    shared: bool
    activation: str
    groups: tuple[tuple[int, int], ...]
    residual: bool = False


def initial(design: Design, key: Array) -> tuple[Tree, Tree]:
    """Return a predictor and a generator to start from: weights uniform by He's rule, biases 0."""
    import jax
    import jax.numpy as jnp

    predictor: Tree = {}
    generator: Tree = {}
    shapes = []
    for tree, name, units in _chains(design):
        shapes += [(tree, name, shape) for shape in pairwise(units)]
    sizes = [n_in * n_out for _, _, (n_in, n_out) in shapes]
    drawn = jax.random.uniform(key, (sum(sizes),), jnp.float32, minval=-1.0, maxval=1.0)  # one draw compiles fast
    start = 0
    for (tree, name, (n_in, n_out)), size in zip(shapes, sizes, strict=True):
        weights = (6.0 / n_in) ** 0.5 * drawn[start : start + size].reshape(n_in, n_out)
        layers = {"predictor": predictor, "generator": generator}[tree].setdefault(name, [])
        layers.append((weights, jnp.zeros(n_out, jnp.float32)))
        start += size
    return predictor, generator


def _chains(design: Design) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return of each list of layers its network, its name, and the units from the first to the last."""
    z = design.encoder[-1]
    read = z
    found = [
        ("predictor", "encoder", (design.n_columns, *design.encoder)),
        ("predictor", "head", (z, *design.predictor, design.n_scores)),
    ]
    if not design.shared:
        found.append(("generator", "encoder", (design.n_columns, *design.encoder)))
    elif design.predictor:
        read += design.predictor[-1]
    found.append(("generator", "head", (read, *design.generator, design.n_columns)))
    return found


def _bent(h: Array, activation: str, xp: Any) -> Array:
    if activation == "relu":
        return xp.maximum(h, 0.0)
    return xp.where(h > 0.0, h, LEAK * h)


def _hidden(layers: Sequence[tuple[Array, Array]], h: Array, activation: str, xp: Any, thin: Thinning | None) -> Array:
    for weights, biases in layers:
        h = _bent(h @ weights + biases, activation, xp)
        if thin is not None:
            h = thin(h)
    return h


def as_relu(layers: Layers, activation: str) -> Layers:
    """Return a chain of layers whose hidden units are ReLUs: a leaky one becomes two, of h and of -h."""
    chain = list(layers)
    if activation == "relu":
        return chain
    for k in range(len(chain) - 1):
        weights, biases = chain[k]
        chain[k] = (np.hstack([weights, -weights]), np.concatenate([biases, -biases]))
        weights, biases = chain[k + 1]
        chain[k + 1] = (np.vstack([weights, -LEAK * weights]), biases)
    return chain


def scores_of(predictor: Tree, x: Array, activation: str, xp: Any, thin: Thinning | None = None) -> Array:
    """Return the scores (n, 1) or (n, K) of rows (n, p)."""
    z = _hidden(predictor["encoder"], x, activation, xp, thin)
    *inner, (weights, biases) = predictor["head"]
    return _hidden(inner, z, activation, xp, thin) @ weights + biases


def shares_of(scores: Array, xp: Any) -> Array:
    """Return the probabilities (n, K) of the classes; K is 2 for one score."""
    if scores.shape[1] == 1:
        second = 0.5 * (xp.tanh(0.5 * scores) + 1.0)
        return xp.concatenate([1.0 - second, second], axis=1)
    return _softmax(scores, xp)


def generated(
    predictor: Tree,
    generator: Tree,
    design: Design,
    x: Array,
    *,
    room: tuple[Array, Array],
    xp: Any,
    thin: Thinning | None = None,
) -> Array:
    """Return recourse (n, p) for rows (n, p), within the room (n, p) of each person.

    Parameters
    ----------
    predictor, generator
        The networks; the predictor's hidden units are read, never changed, where they are shared.
    design
        Widths and columns.
    x
        The rows.
    room
        The least and the greatest entries that each person may reach; what is fixed has its own entry as both.
    xp
        ``numpy`` or ``jax.numpy``.
    thin
        Dropout of the generator's own units.
    """
    if design.shared:
        z = _hidden(predictor["encoder"], x, design.activation, xp, None)
        p = _hidden(predictor["head"][:-1], z, design.activation, xp, None)
        read = xp.concatenate([z, p], axis=1) if design.predictor else z
    else:
        read = _hidden(generator["encoder"], x, design.activation, xp, thin)
    *inner, (weights, biases) = generator["head"]
    raw = _hidden(inner, read, design.activation, xp, thin) @ weights + biases
    if design.residual:
        raw = raw + _own_weight(design, xp) * x
    parts = []
    start = 0
    for first, stop in design.groups:
        parts.append(raw[:, start:first])
        parts.append(_softmax(raw[:, first:stop], xp))
        start = stop
    parts.append(raw[:, start:])
    low, high = room
    return _cut(xp.concatenate(parts, axis=1), low, high, xp)


def _own_weight(design: Design, xp: Any) -> Array:
    """Return by how much each entry of a row counts (p,) before the heads: a number as it is, a level as a logit."""
    place = xp.arange(design.n_columns)
    found = xp.ones(design.n_columns, dtype=xp.float32)
    for first, stop in design.groups:
        found = xp.where((place >= first) & (place < stop), xp.float32(OWN_LOGIT), found)
    return found


def _softmax(h: Array, xp: Any) -> Array:
    powers = xp.exp(h - h.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _cut(h: Array, low: Array, high: Array, xp: Any) -> Array:
    """Cut entries to their room; beyond it they learn only what leads back, and nothing where nothing may move."""
    if xp.__name__ == "numpy":
        return xp.clip(h, low, high)
    import jax

    @jax.custom_vjp
    def cut(h: Array, low: Array, high: Array) -> Array:
        return xp.clip(h, low, high)

    def forward(h: Array, low: Array, high: Array) -> tuple[Array, Any]:
        return xp.clip(h, low, high), (h, low, high)

    def backward(known: Any, slope: Array) -> tuple[Array, None, None]:
        h, low, high = known
        leads_back = xp.where(slope > 0.0, h > low, h < high)  # a step against the slope
        return xp.where(leads_back & (low < high), slope, 0.0), None, None

    cut.defvjp(forward, backward)
    return cut(h, low, high)


# ==== A trained predictor: raw rows in, labels and probabilities out, by NumPy alone ==================================

#: Places of labels among the classes.
Codes: TypeAlias = NDArray[np.intp]

_SHOWN: Final = 10


@final
@dataclass(frozen=True, eq=False)
class PredictorNetwork:
    """A network over scaled columns, which says one of several labels of a raw row.

    Parameters
    ----------
    columns
        From raw rows to what the network reads.
    layers
        Encoder and head as arrays in single precision.
    activation
        "relu" or "leaky_relu".
    classes_
        The labels (K,), ascending.
    """

    columns: ScaledFrame
    layers: Tree
    activation: str
    classes_: NDArray[Any]

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Raw columns: it is asked about frames."""
        return np.array(self.columns.space.names, dtype=object)

    def shares(self, points: Floats) -> NDArray[np.float32]:
        """Return the probabilities (n, K) of points (n, p), in single precision.

        Raises
        ------
        InvalidValueError
            Entries so great that the scores overflow.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scores = scores_of(self.layers, points.astype(np.float32), self.activation, np)
            found = np.asarray(shares_of(scores, np), dtype=np.float32)
        self.require_calculable(found, points)
        return found

    def require_calculable(self, found: NDArray[Any], points: Floats) -> None:
        """Refuse points (n, p) that overflow single precision, seen as NaN in the outputs (n, q).

        Raises
        ------
        InvalidValueError
            There is one.
        """
        lost = np.flatnonzero(np.isnan(found).any(axis=1))
        if len(lost):
            row = int(lost[0])
            place = int(np.abs(points[row]).argmax())
            but = f"in row {row} {self.columns.names[place]!r} is {points[row, place]:.3g} ranges of the data away"
            then = "Correct the row, or leave it out."
            raise InvalidValueError("A trained network", "numbers that fit single precision", but, then)

    def codes(self, points: Floats) -> Codes:
        """Return the place (n,) of the likeliest class of points (n, p); the first on ties."""
        return np.asarray(self.shares(points).argmax(axis=1))

    def predict_proba(self, X: pd.DataFrame) -> Floats:
        """Return the probabilities of ``classes_`` for raw rows, (n, K)."""
        return self.shares(self.columns.encode(X)).astype(np.float64)

    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        """Return the label of each raw row, (n,)."""
        return np.asarray(self.classes_[self.codes(self.columns.encode(X))])

    def codes_of(self, who: str, name: str, labels: Sequence[Any] | NDArray[Any] | pd.Series[Any]) -> Codes:
        """Return the places (n,) of labels among the classes.

        Raises
        ------
        UnknownNameError
            A label that is no class.
        """
        given = np.asarray(labels)
        if given.ndim != 1:
            raise InvalidValueError(who, f"one label a row as {name}", f"its shape is {given.shape}", "Give a column.")
        place = {label: code for code, label in enumerate(self.classes_.tolist())}
        codes = np.empty(len(given), dtype=np.intp)
        for row, label in enumerate(given.tolist()):
            if not isinstance(label, Hashable) or label not in place:
                shown = list(place)[:_SHOWN]
                raise UnknownNameError.among(who, f"class in {name}", label, shown, quoted=True)
            codes[row] = place[label]
        return codes


# ==== A linear model or ReLU network that someone else trained, as a predictor network over scaled columns ============

_THEN: Final = "Give a CounterNet, a logistic regression or a ReLU network with sigmoid or softmax probabilities."


def network_of(who: str, model: Any, X: pd.DataFrame) -> PredictorNetwork:
    """Return a model as layers over the scaled columns of the rows of a frame.

    Its probabilities must be the sigmoid or softmax of scores that are affine in the columns, or a ReLU network of
    them; they are compared with those of the model on the rows given.

    Raises
    ------
    UnsupportedModelError
        A model that ceopt does not read, or of another kind.
    """
    if isinstance(model, PredictorNetwork):
        return model
    found = read(model, FeatureSpace(infer_features(X, steps=False)))
    columns = ScaledFrame.of(who, found.space, X)
    core = found.core
    if isinstance(core, Affine):
        weights, biases = [core.weights], [core.intercept]
    elif isinstance(core, ReluNetwork) and "identity" not in core.activations:
        weights, biases = list(core.weights), list(core.biases)
    else:
        raise _refusal(who, f"it got {type(model).__name__}")
    if core.labels is None or not hasattr(model, "predict_proba"):
        raise _refusal(who, f"{type(model).__name__} gives no probabilities of classes")
    slopes, offsets = _over_scaled(who, found, columns)
    biases[0] = biases[0] + weights[0] @ offsets
    weights[0] = weights[0] @ slopes
    layers: Layers = []
    for matrix, bias in zip(weights, biases, strict=True):
        layers.append((matrix.T.astype(np.float32), bias.astype(np.float32)))
    tree = {"encoder": layers[:-1], "head": layers[-1:]}
    network = PredictorNetwork(columns, tree, "relu", np.asarray(core.labels))
    theirs = np.asarray(model.predict_proba(X))
    ours = network.predict_proba(X)
    if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0.0, atol=SAME_SHARES):
        raise _refusal(who, f"the probabilities of {type(model).__name__} are no sigmoid or softmax of its scores")
    return network


def _refusal(who: str, but: str) -> UnsupportedModelError:
    return UnsupportedModelError(who, "a model that can be differentiated", but, _THEN)


def _over_scaled(who: str, found: Predictor, columns: ScaledFrame) -> tuple[Floats, Floats]:
    """Return A (m, p) and c (m,): the matrix that the model reads is A z + c of scaled columns z."""
    places = dict(zip(columns.space.names, range(len(columns.space)), strict=True))
    slopes = np.zeros((len(found.encoding.columns), len(columns.names)))
    offsets = np.zeros(len(slopes))
    for row, column in enumerate(found.encoding.columns):
        if column.feature is None:
            offsets[row] = column.constant
            continue
        j = places[column.feature]
        own, offsets[row] = _slopes_of(who, column, columns, j)
        slopes[row, columns.places[j]] = own
    return slopes, offsets


def _slopes_of(who: str, column: Column, columns: ScaledFrame, j: int) -> tuple[Floats, float]:
    feature = columns.space[str(column.feature)]
    if column.table is None:
        if not column.is_affine:
            raise _refusal(who, f"the model cuts column {feature.name!r}")
        slope, offset = column.affine()
        return np.array([slope * columns.width[j]]), slope * float(columns.least[j]) + offset
    table = np.asarray(column.table, dtype=np.float64)
    if feature.kind == "categorical":
        return table, 0.0
    steps = np.diff(table)
    if not np.allclose(steps, steps[0]):
        raise _refusal(who, f"the model reads ordinal column {feature.name!r} level by level")
    return np.array([table[-1] - table[0]]), float(table[0])


# ==== Raw rows and their labels as what networks are trained on =======================================================


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingFrame:
    """Rows as points, what each person may reach, and classes.

    Parameters
    ----------
    columns
        From raw rows to points.
    points
        The rows (n, p).
    low, high
        The least and the greatest entries that each person may reach, (n, p).
    codes
        Place of each row's label among the classes, (n,).
    classes
        The labels (K,), ascending.
    """

    columns: ScaledFrame
    points: Floats
    low: Floats
    high: Floats
    codes: Codes
    classes: NDArray[Any]

    @classmethod
    def of(
        cls, who: str, space: FeatureSpace | None, X: pd.DataFrame, y: Sequence[Any] | pd.Series[Any]
    ) -> TrainingFrame:
        """Return the rows of a frame with their labels.

        Raises
        ------
        InvalidTypeError, InvalidValueError, UnknownNameError
            No frame, columns that are not those of the space or have no width; labels that are no classes, fewer than
            two of them, missing, or not one a row. Rows with missing cells are left out with a warning.
        """
        if not isinstance(X, pd.DataFrame):
            but = f"X is {type(X).__name__}"
            raise InvalidTypeError(who, "a DataFrame of raw columns", but, "Put the rows in a frame with names.")
        labels = _labels(who, y, len(X))
        kept = rows_to_keep(who, space, X, word="X", y=y)
        X = taken(X, kept)
        classes, codes = _classes(who, taken(labels, kept))
        if space is None:
            space = FeatureSpace(infer_features(X, steps=False))
        columns = ScaledFrame.of(who, space, X)
        coordinates = space.coordinates(X)
        return cls(columns, columns.encoded(coordinates), *columns.room(coordinates), codes, classes)


def _labels(who: str, y: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels (n,), one for each row, or refuse them."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidValueError(who, "one label a row as y", f"its shape is {labels.shape}", "Give a column.")
    if len(labels) != n_rows:
        but = f"X has {n_rows} and y has {len(labels)}"
        raise InvalidValueError(who, "as many labels as rows", but, "Give the label of each row.")
    require_every_label(who, y)
    return labels


def _classes(who: str, labels: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Return the classes and the place of each label among them."""
    given = list(map(plain, labels.tolist()))
    kinds = sorted({type(label).__name__ for label in given})
    if len(kinds) > 1:
        but = f"y holds {' and '.join(kinds)}"
        raise InvalidTypeError(who, "labels of one type", but, "Make all of them one.")
    if labels.dtype == object and kinds != ["str"]:
        labels = np.array(given)  # truth values and whole numbers in a column of objects
    if len(labels) and not _are_classes(labels):
        then = "Cut a number into classes first, and write what is no number as text."
        raise InvalidValueError(who, "labels that are classes", f"y holds values such as {given[0]!r}", then)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        listed = ", ".join(map(repr, classes.tolist())) or "none"
        raise InvalidValueError(who, "rows of at least two classes", f"y has {listed} alone", "Give rows of another.")
    return classes, codes


def _are_classes(labels: NDArray[Any]) -> bool:
    """Return whether labels are few values, and not numbers that are measured, infinities or bytes."""
    if labels.ndim != 1 or labels.dtype.kind == "S":
        return False
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        return False
    return type_of_target(labels) in {"binary", "multiclass"}


def place_of(who: str, name: str, label: Any, classes: NDArray[Any]) -> int:
    """Return the place of one label among classes.

    Raises
    ------
    InvalidTypeError
        Several labels, as an array or a column.
    UnknownNameError
        A label that is no class.
    """
    if isinstance(label, pd.Series | pd.DataFrame | pd.Index | list | tuple | dict | set) or np.ndim(label):
        but = f"{name} is {type(label).__name__}"
        raise InvalidTypeError(who, f"one label as {name}", but, "Ask for the rows of each label apart.")
    known = classes.tolist()
    if isinstance(label, np.generic):
        label = label.item()
    for place, own in enumerate(known):
        if own == label and isinstance(own, bool) == isinstance(label, bool):
            return place
    raise UnknownNameError.among(who, name, label, known, quoted=True)


# ==== Recourse as a raw frame: what moved in the columns' own types, what did not move as it was given ================

RawColumn: TypeAlias = "pd.Series[Any]"


def require_within(who: str, space: FeatureSpace, coordinates: Floats) -> None:
    """Refuse rows (n, d) with a number that lies beyond a code."""
    for feature, values in zip(space, coordinates.T, strict=True):
        low, high = feature.amounts
        if feature.is_finite:
            continue
        outside = np.flatnonzero(((values < low) | (values > high)) & ~feature.are_labels(values))
        if len(outside):
            but = f"it is {digits(values[outside[0]])} in row {outside[0]}"
            needs = f"column {feature.name!r} beyond none of its codes"
            raise InvalidValueError(who, needs, but, "Name it as a code too with space.update, or correct the row.")


def moved_frame(X: pd.DataFrame, space: FeatureSpace, found: Floats, coordinates: Floats) -> pd.DataFrame:
    """Return the rows of a frame at other coordinates, where they moved.

    Index, columns and types are those of X. A column of whole numbers that got a fraction is one of floats, and one
    that moves in steps of double precision where a narrower type misses them.

    Parameters
    ----------
    X
        The rows as they were given.
    space
        The d columns.
    found, coordinates
        The rows as they shall be and as they were, (n, d).
    """
    made = raw_frame(space, found)
    moved = found != coordinates
    frame = X.copy()
    for j, feature in enumerate(space):
        if moved[:, j].any():
            has_steps = feature.step is not None
            values = _column(X[feature.name], made[feature.name], moved[:, j], has_steps=has_steps)
            frame[feature.name] = pd.Series(values, index=frame.index, dtype=values.dtype)  # pandas 3 reads text anew
    return frame


def _column(own: RawColumn, made: RawColumn, moved: Flags, *, has_steps: bool) -> Any:
    """Return one column, of the type that it had where that holds its values."""
    if made.dtype != own.dtype:
        made = _as(own, made, has_steps=has_steps)
    if made.dtype != own.dtype or pd.api.types.is_numeric_dtype(made.dtype):
        return made.array  # a number that did not move is the same number
    values = own.array.copy()
    values[moved] = made.array[moved]
    return values


def _as(own: RawColumn, made: RawColumn, *, has_steps: bool) -> RawColumn:
    dtype = own.dtype
    try:
        cast = made.astype(dtype)
        if getattr(dtype, "kind", "") == "f" and not has_steps:
            return _inwards(own, made, cast)
        same = cast.astype(object) == made.astype(object)
    except (TypeError, ValueError):
        return made
    if same.all():
        return cast
    return made


def _inwards(own: RawColumn, made: RawColumn, cast: RawColumn) -> RawColumn:
    """Return numbers in a narrower type, rounded towards where they came from: no bound is left."""
    start = own.to_numpy(dtype=np.float64)
    wide = made.to_numpy(dtype=np.float64)
    narrow = cast.to_numpy()
    too_far = np.abs(narrow.astype(np.float64) - start) > np.abs(wide - start)
    inner = np.nextafter(narrow, own.to_numpy())
    return pd.Series(np.where(too_far, inner, narrow), dtype=cast.dtype)


# ==== A trained generator: raw rows in, recourse as raw rows out, by NumPy alone ======================================


@final
@dataclass(frozen=True, eq=False)
class GeneratorNetwork:
    """A network that says for a raw row what the person is advised to become.

    Parameters
    ----------
    predictor
        Whose hidden units it reads, and whose columns.
    layers
        Head, and where it does not read the predictor an encoder of its own, as arrays in single precision.
    design
        Widths and columns.
    """

    predictor: PredictorNetwork
    layers: Tree
    design: Design

    def points(self, points: Floats, low: Floats, high: Floats) -> Floats:
        """Return recourse (n, p) for points (n, p), within what each person may reach; shares of levels are soft.

        Raises
        ------
        InvalidValueError
            Entries so great that numbers overflow.
        """
        single = np.float32
        with np.errstate(over="ignore", invalid="ignore"):
            room = (low.astype(single), high.astype(single))
            x = points.astype(single)
            found = generated(self.predictor.layers, self.layers, self.design, x, room=room, xp=np)
        self.predictor.require_calculable(found, points)
        return np.asarray(found, dtype=np.float64)

    def advised(self, who: str, X: pd.DataFrame, target: int | None) -> pd.DataFrame:
        """Return raw rows that each person may reach; those that the predictor places at the target stay.

        Parameters
        ----------
        who
            Who asks.
        X
            Raw rows (n, d).
        target
            Place of a class; None: everyone moves.

        Raises
        ------
        InvalidValueError, InvalidTypeError, UnknownNameError
            Rows that do not fit the space, lack a cell, or hold numbers beyond single precision.
        """
        columns = self.predictor.columns
        coordinates = columns.space.coordinates(X)
        require_within(who, columns.space, coordinates)
        if not len(X):
            return X.copy()
        points = columns.encoded(coordinates)
        made = self.points(points, *columns.room(coordinates))
        whole = np.array([pd.api.types.is_integer_dtype(X[name].dtype) for name in columns.space.names])
        found = columns.legal(made, coordinates, whole=whole)
        if target is not None:
            stays = self.predictor.codes(points) == target
            found[stays] = coordinates[stays]
        return moved_frame(X, columns.space, found, coordinates)
