r"""Training of predictor and generator: epochs as compiled programs, the attacker, checkpoints, and when it ends.

For each batch, with one Adam for each block and gradients cut to a length of 0.5:

.. math::
    &\theta \leftarrow \text{Adam}\ \nabla_\theta\ \lambda_1 L(f(x; \theta), y) \\
    &\theta' = \text{VDS}(x, y, x^{cf}, t; \theta, \varepsilon) \quad\text{(RoCourseNet; CounterNet has }
    \theta' = \theta) \\
    &\theta_g \leftarrow \text{Adam}\ \nabla_{\theta_g}\ \lambda_2 L(f(x^{cf}; \theta'), t) + \lambda_3 L(x, x^{cf}),
    \quad x^{cf} = g(x; \theta_g)

The predictor is fixed in the last step, also where the generator reads its hidden units. The targets t are the other
of two classes than f says of x, rounded; or the desired class. The loss of probabilities q against wanted ones t is
:math:`L(q, t) = \frac{1}{2n} \sum_i \|q_i - t_i\|^2`, for two classes the mean of :math:`(q_{i1} - t_{i1})^2`; that of
rows and recourse is a mean over rows and columns, as the published code takes it.

The attacker of Algorithm 1 takes K look-ahead steps of retraining, and the gradient through them:

.. math::
    \max_{\delta:\ \|\delta_i\| \le \varepsilon}\ L\bigl(f(x^{cf}; \theta'_{opt}(\delta)), t\bigr) \quad \text{s.t.}
    \quad \theta'_{opt}(\delta) = \arg\min_{\theta'} L\bigl(f(x + \delta; \theta'), y\bigr)
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from ceopt.solvers.checks import is_number, is_whole
from ceopt.solvers.errors import InvalidValueError, UnreadableFileError, UnwritableFileError
from ceopt.training.networks import (
    Array,
    Design,
    Thinning,
    TrainingFrame,
    Tree,
    generated,
    initial,
    scores_of,
    shares_of,
)

# ==== Training on disk after each epoch, so that an interruption costs one epoch at most ==============================

#: Changed whenever what is written changes its meaning.
_FORM: Final = 1
_HEAD: Final = "head"
#: Bytes of the head, which has a line a past epoch, and of what numpy and zip put around each array.
_MOST_OF_HEAD: Final = 1 << 26
_MOST_AROUND: Final = 1 << 12
#: Losses of an epoch in the head: prediction, validity, proximity, radius and, nan without one, held_out.
_LOSSES: Final = 5
_THEN: Final = "Name another file, or delete this one to begin anew."


def saved(who: str, path: Path, head: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
    """Write the state after an epoch; the file is the old one or the new one at any time.

    Raises
    ------
    UnwritableFileError
        The folder is not there or takes no more.
    """
    entries = {f"array{place}": array for place, array in enumerate(arrays)}
    text = json.dumps({"form": _FORM, **head}).encode()
    written = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, suffix=".part", delete=False) as file:
            written = Path(file.name)
            np.savez(file, **{_HEAD: np.frombuffer(text, dtype=np.uint8)}, **entries)  # type: ignore[arg-type]
        written.replace(path)
    except OSError as error:
        raise _unwritable(who, path, str(error.strerror)) from error
    finally:
        if written is not None:
            written.unlink(missing_ok=True)  # gone already if it became the checkpoint


def _unwritable(who: str, path: Path, why: str) -> UnwritableFileError:
    but = f"checkpoint is {str(path)!r} ({why})"
    return UnwritableFileError(who, "a file that can be written", but, "Name a file in a folder of yours.")


def restored(
    who: str, path: Path, made_by: dict[str, Any], shapes: list[NDArray[Any]]
) -> tuple[dict[str, Any], list[NDArray[Any]]] | None:
    """Return head and arrays of a checkpoint; None where no file exists yet.

    Parameters
    ----------
    who
        Who asks.
    path
        The file.
    made_by
        Model, settings and data: the entry "made_by" that the checkpoint must have.
    shapes
        Arrays of the shapes and types that the checkpoint must hold.

    Raises
    ------
    UnreadableFileError
        What is no checkpoint, or is cut off.
    InvalidValueError
        A checkpoint of another model, of other settings or of other data.
    UnwritableFileError
        No checkpoint, and no folder for one.
    """
    if not os.path.exists(path):  # noqa: PTH110 - of a path that is too long, Path.exists raises
        if not os.path.isdir(path.parent):  # noqa: PTH112 - likewise; else it would be found out after an epoch
            raise _unwritable(who, path, "No such folder")
        return None
    try:
        head, arrays = _read(path, shapes)
        _require_head(head)
    except Exception as error:  # zipfile, numpy and json raise what their own parts raise, of many kinds
        but = f"{str(path)!r} is none, or cut off"
        raise UnreadableFileError(who, "a checkpoint that ceopt wrote", but, _THEN) from error
    if head["form"] != _FORM:
        but = f"{str(path)!r} has form {head['form']!r}"
        raise UnreadableFileError(who, f"a checkpoint of form {_FORM}", but, _THEN)
    _require_same(who, path, head["made_by"], made_by)
    if arrays is None:
        but = f"the arrays of {str(path)!r} have other shapes"
        raise UnreadableFileError(who, "a checkpoint that ceopt wrote", but, _THEN)
    return head, arrays


def _read(path: Path, shapes: Sequence[NDArray[Any]]) -> tuple[Any, list[NDArray[Any]] | None]:
    """Return the head and the arrays of a file, None in their place where they have other shapes.

    Nothing is read that is larger than what is expected, whatever a header claims.
    """
    expected = sum(array.nbytes + _MOST_AROUND for array in shapes) + _MOST_OF_HEAD
    _expect(path.is_file() and path.stat().st_size <= expected)
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():  # savez does not pack, and what is packed may be of any size
            _expect(entry.compress_type == zipfile.ZIP_STORED and entry.file_size <= expected)
        with archive.open(f"{_HEAD}.npy") as file:
            size, dtype, _ = _header(file)
            _expect(dtype == np.uint8 and len(size) == 1 and size[0] <= _MOST_OF_HEAD)
            head = json.loads(file.read())
        names = {f"array{place}.npy" for place in range(len(shapes))}
        if {entry.filename for entry in archive.infolist()} != names | {f"{_HEAD}.npy"}:
            return head, None
        arrays = []
        for place, shape in enumerate(shapes):
            with archive.open(f"array{place}.npy") as file:
                size, dtype, order = _header(file)
                if (size, dtype) != (shape.shape, shape.dtype):
                    return head, None
                values = np.frombuffer(file.read(), dtype=dtype).reshape(size, order=order)
                _expect(dtype.kind != "f" or not np.isnan(values).any())
                arrays.append(values)
    return head, arrays


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], Any]:
    """Return shape, dtype and order of an array from its header."""
    _expect(np.lib.format.read_magic(file) == (1, 0))  # what numpy writes of plain numbers
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype, "F" if is_fortran else "C"


def _require_head(head: Any) -> None:
    """Refuse a head in which a field is missing or holds something else."""
    _expect(isinstance(head, dict) and is_whole(head["form"]) and isinstance(head["made_by"], dict))
    if head["form"] != _FORM:
        return
    _expect(is_number(head["best_loss"]) and not math.isnan(head["best_loss"]))
    _expect(is_whole(head["waited"]) and head["waited"] >= 0)
    _expect(isinstance(head["history"], list))
    for losses in head["history"]:
        _expect(isinstance(losses, list) and len(losses) == _LOSSES and all(map(is_number, losses)))
        _expect(all(map(math.isfinite, losses[:-1])) and not math.isinf(losses[-1]))


def _expect(holds: bool) -> None:
    if not holds:
        raise ValueError


def _require_same(who: str, path: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Refuse a checkpoint of another model, other settings or other data, naming the first that differs."""
    ours = json.loads(json.dumps(ours))  # tuples are lists in the file
    for name, value in ours.items():
        if theirs.get(name) == value:
            continue
        if name == "data":
            but = f"{str(path)!r} is one of other data"
        else:
            but = f"{str(path)!r} is one with {name}={theirs.get(name)!r}, not {value!r}"
        raise InvalidValueError(who, "a checkpoint of this model, with these settings and data", but, _THEN)


# ==== How far the attacker may go in each epoch =======================================================================

SCHEDULES: Final = ("linear", "constant", "log")


def radius_at(schedule: str, epoch: int, epochs: int, perturbation: float) -> float:
    r"""Return the radius of the ball of shifts in an epoch, counted from 0, of N epochs.

    ========== ==================================================================
    schedule   radius, of the full one E
    ========== ==================================================================
    linear     :math:`E\,(e + 1) / N`, as Algorithm 2 prints it
    constant   :math:`E`
    log        :math:`E \log(e + 2) / \log(N + 1)`: fast at first, slow at the end
    ========== ==================================================================

    So the last epoch has the full radius under each of them; under "linear" and "log" it is the only one.

    Examples
    --------
    >>> from ceopt.training.training import radius_at
    >>> [radius_at("linear", epoch, 4, 0.2) for epoch in range(4)]
    [0.05, 0.1, 0.15000000000000002, 0.2]
    """
    if schedule == "linear":
        return perturbation * ((epoch + 1) / epochs)
    if schedule == "log":
        return perturbation * (math.log(epoch + 2) / math.log(epochs + 1))
    return perturbation


# ==== The attacker of Algorithm 1 on arrays: K look-ahead steps of retraining, and the gradient through them ==========

#: Probabilities (n, K) of rows (n, p) under parameters.
Shares: TypeAlias = Callable[[Tree, Array], Array]


def squared_error(shares: Array, wanted: Array) -> Array:
    """Return the loss L of probabilities (n, K)."""
    return 0.5 * ((shares - wanted) ** 2).sum(axis=1).mean()


@final
@dataclass(frozen=True, slots=True)
class AttackedRows:
    """What is attacked, as arrays.

    Parameters
    ----------
    rows, labels
        Training rows (n, p), which are shifted, and their classes (n, K), one 1 a row.
    counterfactuals, targets
        Recourse (m, p), and the classes (m, K) that it should get.
    """

    rows: Array
    labels: Array
    counterfactuals: Array
    targets: Array


@final
@dataclass(frozen=True, slots=True)
class ShiftAttack:
    """The options of an attack that are no arrays: a program is compiled for each.

    Parameters
    ----------
    steps, unroll
        T and K.
    norm
        The ball of each row's shift, "linf" or "l2".
    learning_rate
        Of the retraining.
    restart
        Whether each of the T steps retrains from the model given, and not from where the last one ended.
    retrained
        Names of the lists of layers that retraining changes.
    """

    steps: int
    unroll: int
    norm: str
    learning_rate: float
    restart: bool
    retrained: tuple[str, ...] = ("encoder", "head")

    def start(self, key: Array, shape: tuple[int, ...], movable: Array, perturbation: Array) -> Array:
        """Return shifts uniform between -perturbation and perturbation, within the ball."""
        import jax

        drawn = jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)
        return self.projected(perturbation * drawn * movable, perturbation)

    def projected(self, shift: Array, perturbation: Array) -> Array:
        """Return the nearest shifts (n, p) in the ball of each row."""
        import jax.numpy as jnp

        if self.norm == "linf":
            return jnp.clip(shift, -perturbation, perturbation)
        lengths = jnp.sqrt((shift**2).sum(axis=1, keepdims=True))
        factor = jnp.where(lengths > perturbation, perturbation / jnp.where(lengths > 0.0, lengths, 1.0), 1.0)
        return shift * factor

    def ahead(self, shares: Shares, model: Tree, shift: Array, given: AttackedRows) -> tuple[Array, Tree]:
        """Return the loss of the recourse after K steps of retraining on shifted rows, and the retrained model.

        Differentiable in the shift, through all K steps.
        """
        import jax

        kept = {name: layers for name, layers in model.items() if name not in self.retrained}
        moving = {name: layers for name, layers in model.items() if name in self.retrained}

        def training_loss(now: Tree) -> Array:
            return squared_error(shares({**kept, **now}, given.rows + shift), given.labels)

        def descend(now: Tree, _: Any) -> tuple[Tree, None]:
            slopes = jax.grad(training_loss)(now)
            return jax.tree.map(lambda weight, slope: weight - self.learning_rate * slope, now, slopes), None

        moved, _ = jax.lax.scan(descend, moving, None, length=self.unroll, unroll=min(self.unroll, 4))
        retrained = {**kept, **moved}
        return squared_error(shares(retrained, given.counterfactuals), given.targets), retrained

    def run(
        self,
        shares: Shares,
        model: Tree,
        given: AttackedRows,
        *,
        shift: Array,
        movable: Array,
        perturbation: Array,
        step_size: Array,
    ) -> tuple[Tree, Array, Array]:
        """Return the retrained model, the shifts (n, p) and the loss before and after each step (T + 1,).

        Parameters
        ----------
        shares
            What a model predicts.
        model
            The model to begin with.
        given
            What is attacked.
        shift
            Where the attack starts, (n, p).
        movable
            1 for columns that may shift, else 0, (p,).
        perturbation, step_size
            Radius of the ball, and length of a step.
        """
        import jax
        import jax.numpy as jnp

        def step(carried: tuple[Tree, Array], _: Any) -> tuple[tuple[Tree, Array], Array]:
            now, shift = carried
            begun = model if self.restart else now

            def loss(trial: Array) -> tuple[Array, Tree]:
                return self.ahead(shares, begun, trial, given)

            (value, retrained), slope = jax.value_and_grad(loss, has_aux=True)(shift)
            moved = self.projected(shift + step_size * jnp.sign(slope) * movable, perturbation)
            return (retrained, moved), value

        first = squared_error(shares(model, given.counterfactuals), given.targets)
        (shifted, shift), values = jax.lax.scan(step, (model, shift), None, length=self.steps)
        return shifted, shift, jnp.concatenate([first[None], values])


# ==== The three losses of training: prediction, validity, proximity; each a mean squared error ========================

#: The share that the true class of a row gets in place of 1: uniform between these, as the published code draws it.
_SMOOTHED: Final = (0.8, 0.95)


def proximity_loss(x: Array, made: Array) -> Array:
    """Return the mean of squared differences of entries (n, p)."""
    return ((x - made) ** 2).mean()


def smoothed(wanted: Array, key: Array) -> Array:
    """Return classes (n, K) in which the true one has less than 1 and the others share the rest."""
    import jax

    least, most = _SMOOTHED
    kept = jax.random.uniform(key, (wanted.shape[0], 1), wanted.dtype, minval=least, maxval=most)
    return wanted * kept + (1.0 - wanted) * (1.0 - kept) / (wanted.shape[1] - 1)


# ==== An epoch of block-wise coordinate descent as one compiled program, and the losses on rows held out ==============

#: Length to which gradients are cut, as in the published code.
_LONGEST: Final = 0.5
#: Length of a step of the attack, in radii of the ball over the number of steps, as Algorithm 1 takes it.
STEPS_OF_RADIUS: Final = 2.5
#: The generator of random numbers: the same ones on every device, whatever JAX is told to prefer.
RANDOM: Final = "threefry2x32"


class Networks(NamedTuple):
    """What training changes: the weights of both networks, each as one vector, and what Adam knows of each.

    One vector a network, and not an array a layer, halves the time that compiling takes.
    """

    predictor: Array
    generator: Array
    of_predictor: Any
    of_generator: Any


class Batch(NamedTuple):
    """Rows (n, p), their classes (n, K), and what each person may reach, (n, p) twice."""

    x: Array
    labels: Array
    low: Array
    high: Array


class Sizes(NamedTuple):
    """Numeric options, arguments of the compiled program."""

    weights: Array
    learning_rate: Array
    radius: Array
    movable: Array


#: Losses (3,): prediction, validity, proximity.
Losses: TypeAlias = Array


@final
@dataclass(frozen=True, slots=True)
class TrainingProgram:
    """Static options; JAX compiles one program per combination.

    Parameters
    ----------
    design
        The networks.
    dropout
        Share of hidden units that are left out in training.
    batch
        Rows of a batch.
    smoothing
        Whether classes are softened.
    desired
        Place of the class that all should get; None: of two classes the other one.
    attack
        The attacker; None: there is none, as in CounterNet.
    """

    design: Design
    dropout: float
    batch: int
    smoothing: bool
    desired: int | None
    attack: ShiftAttack | None

    # ---- networks ----------------------------------------------------------------------------------------------------
    def begun(self, key: Array) -> Networks:
        """Return the networks before training."""
        from jax.flatten_util import ravel_pytree

        predictor, generator = (ravel_pytree(tree)[0] for tree in initial(self.design, key))
        adam = _adam()
        return Networks(predictor, generator, adam.init(predictor), adam.init(generator))

    def predictor_of(self, weights: Array) -> Tree:
        """Return the predictor of a vector of weights."""
        return _trees(self.design)[0](weights)

    def generator_of(self, weights: Array) -> Tree:
        """Return the generator of a vector of weights."""
        return _trees(self.design)[1](weights)

    def shares(self, predictor: Tree, x: Array, thin: Thinning | None = None) -> Array:
        """Return probabilities (n, K)."""
        import jax.numpy as jnp

        return shares_of(scores_of(predictor, x, self.design.activation, jnp, thin), jnp)

    def made(self, predictor: Tree, generator: Array, rows: Batch, thin: Thinning | None = None) -> Array:
        """Return recourse (n, p) by a generator's vector of weights."""
        import jax.numpy as jnp

        room = (rows.low, rows.high)
        tree = self.generator_of(generator)
        return generated(predictor, tree, self.design, rows.x, room=room, xp=jnp, thin=thin)

    def targets(self, predictor: Tree, x: Array) -> Array:
        """Return the classes (n, K) that recourse should get."""
        import jax
        import jax.numpy as jnp

        shares = self.shares(predictor, x)
        if self.desired is None:
            places = 1 - shares.argmax(axis=1)
        else:
            places = jnp.full(len(x), self.desired)
        return jax.nn.one_hot(places, shares.shape[1], dtype=x.dtype)

    def _thinning(self, key: Array, n_rows: int, units: tuple[int, ...]) -> Thinning | None:
        """Return dropout of layers of so many units, one after the other; None without."""
        if self.dropout == 0.0:
            return None
        import jax
        import jax.numpy as jnp

        kept = 1.0 - self.dropout
        stays = jax.random.bernoulli(key, kept, (n_rows, sum(units)))  # one draw compiles fast
        ends = itertools.pairwise(itertools.accumulate(units, initial=0))

        def thin(h: Array) -> Array:
            first, stop = next(ends)
            return jnp.where(stays[:, first:stop], h / kept, 0.0)

        return thin

    @property
    def _units_of_generator(self) -> tuple[int, ...]:
        if self.design.shared:
            return self.design.generator
        return (*self.design.encoder, *self.design.generator)

    # ---- both steps of a batch ---------------------------------------------------------------------------------------
    def predictor_step(self, networks: Networks, rows: Batch, sizes: Sizes, key: Array) -> tuple[Networks, Array]:
        """Return the networks after one step of the predictor, and its loss."""
        import jax

        of_labels, of_units = jax.random.split(key)
        wanted = rows.labels
        if self.smoothing:
            wanted = smoothed(wanted, of_labels)

        def loss(predictor: Array) -> tuple[Array, Array]:
            thin = self._thinning(of_units, len(rows.x), (*self.design.encoder, *self.design.predictor))
            found = squared_error(self.shares(self.predictor_of(predictor), rows.x, thin), wanted)
            return sizes.weights[0] * found, found

        slope, found = jax.grad(loss, has_aux=True)(networks.predictor)
        moves, memory = _adam().update(slope, networks.of_predictor)
        predictor = networks.predictor - sizes.learning_rate * moves
        return networks._replace(predictor=predictor, of_predictor=memory), found

    def generator_step(
        self, networks: Networks, rows: Batch, sizes: Sizes, key: Array
    ) -> tuple[Networks, tuple[Array, Array]]:
        """Return the networks after one step of the generator, and its losses of validity and proximity."""
        import jax

        of_shift, of_units = jax.random.split(key)
        predictor = self.predictor_of(networks.predictor)
        targets = self.targets(predictor, rows.x)
        judge = self.judge(predictor, networks.generator, rows, targets=targets, sizes=sizes, key=of_shift)

        def loss(generator: Array) -> tuple[Array, tuple[Array, Array]]:
            thin = self._thinning(of_units, len(rows.x), self._units_of_generator)
            made = self.made(predictor, generator, rows, thin)
            validity = squared_error(self.shares(judge, made), targets)
            proximity = proximity_loss(rows.x, made)
            return sizes.weights[1] * validity + sizes.weights[2] * proximity, (validity, proximity)

        slope, found = jax.grad(loss, has_aux=True)(networks.generator)
        moves, memory = _adam().update(slope, networks.of_generator)
        generator = networks.generator - sizes.learning_rate * moves
        return networks._replace(generator=generator, of_generator=memory), found

    def judge(
        self, predictor: Tree, generator: Array, rows: Batch, *, targets: Array, sizes: Sizes, key: Array
    ) -> Tree:
        """Return the predictor that recourse should satisfy: the attacker's, or the network itself."""
        if self.attack is None:
            return predictor
        import jax.numpy as jnp

        attack = self.attack
        given = AttackedRows(rows.x, rows.labels, self.made(predictor, generator, rows), targets)
        shift = attack.start(key, rows.x.shape, sizes.movable, sizes.radius).astype(jnp.float32)
        step_size = STEPS_OF_RADIUS * sizes.radius / attack.steps
        return attack.run(
            self.shares, predictor, given,
            shift=shift, movable=sizes.movable, perturbation=sizes.radius, step_size=step_size,
        )[0]  # fmt: skip

    # ---- epochs ------------------------------------------------------------------------------------------------------
    def epoch(self, networks: Networks, rows: Batch, order: Array, sizes: Sizes, key: Array) -> tuple[Networks, Losses]:
        """Return the networks after all batches, and the mean losses of the batches; ``order`` has a row for each."""
        import jax
        import jax.numpy as jnp

        def step(networks: Networks, given: tuple[Array, Array]) -> tuple[Networks, Losses]:
            places, key = given
            of_predictor, of_generator = jax.random.split(key)
            batch = Batch(*(entries[places] for entries in rows))
            networks, prediction = self.predictor_step(networks, batch, sizes, of_predictor)
            networks, (validity, proximity) = self.generator_step(networks, batch, sizes, of_generator)
            return networks, jnp.stack([prediction, validity, proximity])

        networks, losses = jax.lax.scan(step, networks, (order, jax.random.split(key, len(order))))
        return networks, losses.mean(axis=0)

    def held_out(self, networks: Networks, rows: Batch, sizes: Sizes, key: Array) -> Losses:
        """Return the losses on rows that training does not see, without dropout."""
        import jax.numpy as jnp

        predictor = self.predictor_of(networks.predictor)
        targets = self.targets(predictor, rows.x)
        judge = self.judge(predictor, networks.generator, rows, targets=targets, sizes=sizes, key=key)
        made = self.made(predictor, networks.generator, rows)
        prediction = squared_error(self.shares(predictor, rows.x), rows.labels)
        validity = squared_error(self.shares(judge, made), targets)
        return jnp.stack([prediction, validity, proximity_loss(rows.x, made)])


def _adam() -> Any:
    """Return Adam without its learning rate, on gradients that were cut."""
    import optax

    return optax.chain(optax.clip_by_global_norm(_LONGEST), optax.scale_by_adam())


@functools.lru_cache(maxsize=32)
def _trees(design: Design) -> tuple[Callable[[Array], Tree], Callable[[Array], Tree]]:
    """Return what makes a predictor, and a generator, of a vector of weights."""
    import jax
    from jax.flatten_util import ravel_pytree

    shapes = jax.eval_shape(functools.partial(initial, design), jax.random.key(0, impl=RANDOM))
    empty = jax.tree.map(lambda shape: np.zeros(shape.shape, np.float32), shapes)
    return ravel_pytree(empty[0])[1], ravel_pytree(empty[1])[1]


@functools.lru_cache(maxsize=32)
def compiled(program: TrainingProgram) -> tuple[Any, Any, Any]:
    """Return the functions of a program, compiled on their first call: start, epoch and losses on rows held out."""
    import jax

    return jax.jit(program.begun), jax.jit(program.epoch), jax.jit(program.held_out)


# ==== Epoch after epoch: the radius grows, losses are written down, the best weights kept, and training ends in time ==

#: Share of the rows that training does not see, where it may end early: as scikit-learn's networks hold out.
_HELD_OUT: Final = 0.1
#: Places of the keys of random numbers: of the weights at the start, of rows held out, of the first epoch.
_OF_START, _OF_HELD_OUT, _OF_EPOCHS = range(3)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """How long and how fast.

    Parameters
    ----------
    epochs, patience
        Epochs at most; and, of those whose radius is the full one, how many may pass without a better loss on rows held
        out. None: all epochs on all rows, and the last weights.
    weights
        Of prediction, validity and proximity.
    learning_rate
        Of Adam.
    perturbation, schedule
        The full radius, and how it is reached.
    random_state
        The seed.
    progress
        Whether a bar is shown.
    checkpoint
        Where training is kept after each epoch, or None.
    settings
        Model and settings as a checkpoint knows them.
    """

    epochs: int
    patience: int | None
    weights: tuple[float, ...]
    learning_rate: float
    perturbation: float
    schedule: str
    random_state: int
    progress: bool
    checkpoint: Path | None
    settings: dict[str, Any]


class LossesByEpoch(NamedTuple):
    """Losses of an epoch: of its batches (prediction, validity, proximity), the radius, and the whole on rows held out.

    ``held_out`` is the weighted sum of the three losses, under an attack of the full radius; NaN without rows held out.
    """

    prediction: float
    validity: float
    proximity: float
    epsilon: float
    held_out: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """Training after some epochs.

    Parameters
    ----------
    networks
        As they are.
    best
        Weights of the predictor and of the generator at the least loss on rows held out.
    best_loss, waited
        That loss, and the epochs of full radius since then.
    history
        Losses of each epoch.
    """

    networks: Networks
    best: tuple[Any, Any]
    best_loss: float
    waited: int
    history: tuple[LossesByEpoch, ...]

    def frame(self) -> pd.DataFrame:
        """Return the losses as a frame with a row for each epoch, from 1."""
        epochs = pd.RangeIndex(1, len(self.history) + 1, name="epoch")
        return pd.DataFrame(self.history, columns=LossesByEpoch._fields, index=epochs, dtype=np.float64)


def trained(who: str, program: TrainingProgram, frame: TrainingFrame, plan: TrainingPlan) -> Trained:
    """Return both networks after training, from a checkpoint on where there is one.

    Parameters
    ----------
    who
        Who trains.
    program
        What an epoch does.
    frame
        Rows and labels.
    plan
        How long and how fast.

    Raises
    ------
    UnreadableFileError, UnwritableFileError, InvalidValueError
        A checkpoint that cannot be read or written, or that is one of another training; losses that are no numbers.
    """
    import jax

    begun, run_epoch, run_held_out = compiled(program)
    key = jax.random.key(plan.random_state, impl=RANDOM)
    seen, unseen = _parts(frame, plan)
    now = _begun(begun(jax.random.fold_in(key, _OF_START)))
    made_by = {**plan.settings, "data": _fingerprint(frame)}
    if plan.checkpoint is not None:
        found = restored(who, plan.checkpoint, made_by, jax.tree.map(np.asarray, _arrays(now)))
        if found is not None:
            now = _from_checkpoint(now, *found)
    full = _sizes(plan, frame, plan.perturbation)
    bar = tqdm(total=plan.epochs, initial=len(now.history), disable=not plan.progress, file=sys.stderr, unit="epoch")
    with bar:
        while not _is_over(now, plan):
            epoch = len(now.history)
            radius = radius_at(plan.schedule, epoch, plan.epochs, plan.perturbation)
            of_epoch = jax.random.fold_in(key, _OF_EPOCHS + epoch)
            order = _order(plan.random_state, epoch, len(seen.x), program.batch)
            networks, losses = run_epoch(now.networks, seen, order, _sizes(plan, frame, radius), of_epoch)
            held_out = math.nan
            if unseen is not None:
                found_out = run_held_out(networks, unseen, full, jax.random.fold_in(key, _OF_HELD_OUT))
                held_out = float(np.dot(plan.weights, np.asarray(found_out, dtype=np.float64)))
            prediction, validity, proximity = np.asarray(losses, dtype=np.float64).tolist()
            written = LossesByEpoch(prediction, validity, proximity, radius, held_out)
            _require_finite(who, written, networks, epoch, is_watched=unseen is not None)
            now = _after(now, networks, written, is_full=radius >= plan.perturbation)
            if plan.checkpoint is not None:
                saved(who, plan.checkpoint, _head(now, made_by), jax.tree.map(np.asarray, _arrays(now)))
            bar.update()
    return now


# ---- data ------------------------------------------------------------------------------------------------------------
def _parts(frame: TrainingFrame, plan: TrainingPlan) -> tuple[Batch, Batch | None]:
    """Return the rows to train on and those held out."""
    one = np.eye(len(frame.classes), dtype=np.float32)
    arrays = (frame.points, one[frame.codes], frame.low, frame.high)
    rows = Batch(*(entries.astype(np.float32) for entries in arrays))
    if plan.patience is None:
        return _on_device(rows), None
    n_rows = len(frame.codes)
    order = np.random.default_rng(plan.random_state).permutation(n_rows)
    n_unseen = max(1, round(_HELD_OUT * n_rows))
    seen, unseen = order[n_unseen:], order[:n_unseen]
    return (
        _on_device(Batch(*(entries[seen] for entries in rows))),
        _on_device(Batch(*(entries[unseen] for entries in rows))),
    )


def _on_device(rows: Batch) -> Batch:
    import jax.numpy as jnp

    return Batch(*map(jnp.asarray, rows))


def _sizes(plan: TrainingPlan, frame: TrainingFrame, radius: float) -> Sizes:
    single = np.float32
    movable = frame.columns.of_numbers.astype(single)
    with np.errstate(over="ignore"):  # what is infinite there is told by the losses
        return Sizes(np.array(plan.weights, dtype=single), single(plan.learning_rate), single(radius), movable)


def _order(seed: int, epoch: int, n_rows: int, batch: int) -> NDArray[np.int32]:
    """Return the rows of each batch; the last one is filled up with rows that were seen before."""
    order = np.random.default_rng([seed, epoch]).permutation(n_rows)
    return np.resize(order, (-(-n_rows // batch), batch)).astype(np.int32)


def _fingerprint(frame: TrainingFrame) -> str:
    found = hashlib.sha256()
    for entries in (frame.points, frame.low, frame.high, frame.codes):
        found.update(np.ascontiguousarray(entries).tobytes())
    found.update(repr(frame.classes.tolist()).encode())
    found.update(frame.columns.space.to_json().encode())
    return found.hexdigest()


# ---- from epoch to epoch ---------------------------------------------------------------------------------------------
def _begun(networks: Networks) -> Trained:
    return Trained(networks, (networks.predictor, networks.generator), math.inf, 0, ())


def _after(now: Trained, networks: Networks, losses: LossesByEpoch, *, is_full: bool) -> Trained:
    history = (*now.history, losses)
    own = (networks.predictor, networks.generator)
    if math.isnan(losses.held_out):
        return Trained(networks, own, math.inf, 0, history)
    if losses.held_out < now.best_loss:
        return Trained(networks, own, losses.held_out, 0, history)
    return Trained(networks, now.best, now.best_loss, now.waited + is_full, history)


def _require_finite(who: str, losses: LossesByEpoch, networks: Networks, epoch: int, *, is_watched: bool) -> None:
    """Refuse to go on where losses or weights are no numbers any more: nothing can be learned from there."""
    named = {"prediction": losses.prediction, "validity": losses.validity, "proximity": losses.proximity}
    if is_watched:
        named["held_out"] = losses.held_out
    for name, weights in (("the predictor", networks.predictor), ("the generator", networks.generator)):
        named[f"the weights of {name}"] = float(np.abs(np.asarray(weights)).sum(dtype=np.float64))
    for name, value in named.items():
        if not math.isfinite(value):
            but = f"{name} is {value} after epoch {epoch + 1}"
            then = "Take a smaller learning_rate; against an attacker also a smaller perturbation or inner_rate."
            raise InvalidValueError(who, "losses and weights that stay finite", but, then)


def _is_over(now: Trained, plan: TrainingPlan) -> bool:
    if len(now.history) >= plan.epochs:
        return True
    return plan.patience is not None and now.waited >= plan.patience


# ---- checkpoints -----------------------------------------------------------------------------------------------------
def _arrays(now: Trained) -> list[Any]:
    import jax

    leaves: list[Any] = jax.tree.leaves((now.networks, now.best))
    return leaves


def _head(now: Trained, made_by: dict[str, Any]) -> dict[str, Any]:
    return {"made_by": made_by, "history": now.history, "best_loss": now.best_loss, "waited": now.waited}


def _from_checkpoint(now: Trained, head: dict[str, Any], arrays: list[NDArray[Any]]) -> Trained:
    import jax
    import jax.numpy as jnp

    shape = jax.tree.structure((now.networks, now.best))
    networks, best = jax.tree.unflatten(shape, list(map(jnp.asarray, arrays)))
    history = tuple(LossesByEpoch(*losses) for losses in head["history"])
    return Trained(networks, best, float(head["best_loss"]), int(head["waited"]), history)
