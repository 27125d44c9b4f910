r"""Predictor and generator as plain trees of arrays, and what they compute: by JAX in training, by NumPy afterwards.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias, final

__all__ = [
    "LEAK",
    "OWN_LOGIT",
    "Array",
    "Design",
    "Layers",
    "Thinning",
    "Tree",
    "generated",
    "initial",
    "scores_of",
    "shares_of",
]

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
