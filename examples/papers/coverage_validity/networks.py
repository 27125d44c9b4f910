"""Networks of 20, 50 and 20 ReLU neurons, many of them trained side by side in one vectorised JAX program."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from coverage_validity.protocol import Case, Floats, Fold

__all__ = ["Networks", "accuracy", "futures", "present"]

HIDDEN = (20, 50, 20)
#: Of the released code: Adam's step, weight decay, epochs on all rows at once, and how often the loss may not fall.
RATE, DECAY, EPOCHS, PATIENCE = 1e-3, 0.1, 1000, 3
#: Share of the later rows that each network of the future sees.
SHARE = 0.8
#: The released code starts every network of the future alike.
RELEASED_START = 123


@final
@dataclass(frozen=True, slots=True, eq=False)
class Networks:
    """Several networks of one shape.

    Parameters
    ----------
    layers
        Weights (k, inputs, outputs) and biases (k, 1, outputs) of each layer, for k networks.
    """

    layers: tuple[tuple[Floats, Floats], ...]

    def __len__(self) -> int:
        return len(self.layers[0][0])

    def scores(self, X: Floats) -> Floats:
        """Return the logits of rows (n, p), shape (k, n)."""
        values: Any = X[None, :, :]
        for place, (weights, biases) in enumerate(self.layers):
            values = values @ weights + biases
            if place + 1 < len(self.layers):
                values = np.maximum(values, 0.0)
        return np.asarray(values[..., 0])

    def favourable(self, X: Floats) -> NDArray[np.bool_]:
        """Return which rows each network favours, (k, n)."""
        return self.scores(X) >= 0.0

    def validity(self, X: Floats) -> Floats:
        """Return the share of networks that favour each row, (n,)."""
        return np.asarray(self.favourable(X).mean(axis=0))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the first network's labels, as a classifier's ``predict`` does."""
        return self.favourable(np.asarray(X, dtype=float))[0].astype(np.int64)

    def probability(self, X: Any) -> Floats:
        """Return the first network's probability of the favourable label, (n,)."""
        return np.asarray(expit(self.scores(np.asarray(X, dtype=float))[0]))


def present(case: Case, fold: Fold) -> Networks:
    """Return the classifier of today, trained on one fold."""
    start = RELEASED_START if case.is_released else fold.number
    return _trained(case.X, case.y, fold.train[None, :], [start])


def futures(case: Case, fold: Fold, count: int) -> Networks:
    """Return classifiers of the future: each sees another 80 % of the later rows.

    "paper": all start alike, and every fold meets the same ones. "honest": each has a start and a share of its own.
    """
    if case.is_released:
        return _released_futures(case, count)
    seeds = [1000 * (fold.number + 1) + k for k in range(count)]
    return _trained(case.later_rows, case.later_y, _shares(case, seeds), seeds)


@cache
def _released_futures(case: Case, count: int) -> Networks:
    """Return what every fold meets."""
    return _trained(case.later_rows, case.later_y, _shares(case, list(range(count))), [RELEASED_START] * count)


def _shares(case: Case, seeds: list[int]) -> NDArray[np.bool_]:
    """Return which later rows each network sees, (k, n)."""
    places = np.arange(len(case.later_y))
    members = np.zeros((len(seeds), len(places)), dtype=bool)
    for k, seed in enumerate(seeds):
        kept = train_test_split(places, train_size=SHARE, stratify=case.later_y, random_state=seed)[0]
        members[k, kept] = True
    return members


def accuracy(networks: Networks, X: Floats, y: NDArray[np.int64]) -> tuple[float, float]:
    """Return mean accuracy and mean area under the curve of networks on rows."""
    scores = networks.scores(X)
    shares = ((scores >= 0.0) == y[None, :]).mean(axis=1)
    areas = [roc_auc_score(y, one) for one in scores]
    return float(shares.mean()), float(np.mean(areas))


def _trained(X: Floats, y: NDArray[np.int64], members: NDArray[np.bool_], starts: list[int]) -> Networks:
    """Return one network for each row of ``members``, (k, n), trained as the released code trains one."""
    import jax

    first = jax.vmap(partial(_start, inputs=X.shape[1]))(np.array(starts, dtype=np.uint32))
    train = jax.jit(jax.vmap(_train, in_axes=(0, 0, None, None)))
    layers = train(first, members.astype(np.float32), X.astype(np.float32), y.astype(np.float32))
    return Networks(tuple((np.asarray(w, dtype=float), np.asarray(b, dtype=float)[:, None, :]) for w, b in layers))


def _start(seed: Any, *, inputs: int) -> list[tuple[Any, Any]]:
    """Return uniform weights of Xavier's width and biases of zero."""
    import jax
    import jax.numpy as jnp

    widths = (inputs, *HIDDEN, 1)
    keys = jax.random.split(jax.random.key(seed), len(widths) - 1)
    layers = []
    for key, width, after in zip(keys, widths[:-1], widths[1:], strict=True):
        bound = (6.0 / (width + after)) ** 0.5
        layers.append((jax.random.uniform(key, (width, after), minval=-bound, maxval=bound), jnp.zeros(after)))
    return layers


def _train(layers: list[tuple[Any, Any]], weights: Any, X: Any, y: Any) -> Any:
    """Return one network after Adam on summed cross-entropy, rows weighted by 0 or 1; it stops where the loss does."""
    import jax
    import jax.numpy as jnp
    import optax

    def loss(parameters: Any) -> Any:
        values = X
        for place, (matrix, bias) in enumerate(parameters):
            values = values @ matrix + bias
            if place + 1 < len(parameters):
                values = jax.nn.relu(values)
        return (weights * optax.sigmoid_binary_cross_entropy(values[:, 0], y)).sum()

    optimiser = optax.chain(optax.add_decayed_weights(DECAY), optax.adam(RATE))

    def epoch(state: Any, _: Any) -> tuple[Any, None]:
        parameters, moments, least, waited = state
        value, gradient = jax.value_and_grad(loss)(parameters)
        waited = jnp.where(value < least, 0, waited + 1)
        is_going = waited < PATIENCE
        updates, after = optimiser.update(gradient, moments, parameters)
        moved = optax.apply_updates(parameters, updates)

        def chosen(new: Any, old: Any) -> Any:
            return jnp.where(is_going, new, old)

        kept = jax.tree.map(chosen, (moved, after), (parameters, moments))
        # A network that has stopped stays so: its loss no longer falls.
        return (*kept, jnp.minimum(least, value), jnp.where(is_going, waited, PATIENCE)), None

    state = (layers, optimiser.init(layers), jnp.inf, 0)
    (trained, *_), _ = jax.lax.scan(epoch, state, length=EPOCHS)
    return trained
