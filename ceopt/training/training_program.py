r"""An epoch of block-wise coordinate descent as one compiled program, and the losses on rows held out.

For each batch, with one Adam for each block and gradients cut to a length of 0.5:

.. math::
    &\theta \leftarrow \text{Adam}\ \nabla_\theta\ \lambda_1 L(f(x; \theta), y) \\
    &\theta' = \text{VDS}(x, y, x^{cf}, t; \theta, \varepsilon) \quad\text{(RoCourseNet; CounterNet has }
    \theta' = \theta) \\
    &\theta_g \leftarrow \text{Adam}\ \nabla_{\theta_g}\ \lambda_2 L(f(x^{cf}; \theta'), t) + \lambda_3 L(x, x^{cf}),
    \quad x^{cf} = g(x; \theta_g)

The predictor is fixed in the last step, also where the generator reads its hidden units. The targets t are the other
of two classes than f says of x, rounded; or the desired class.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from ceopt.training.losses import proximity_loss, smoothed
from ceopt.training.networks import Array, Design, Thinning, Tree, generated, initial, scores_of, shares_of
from ceopt.training.shift_attack import AttackedRows, ShiftAttack, squared_error

__all__ = ["RANDOM", "Batch", "Compiled", "Networks", "Sizes", "TrainingProgram", "compiled"]

#: Length to which gradients are cut, as in the published code.
_LONGEST: Final = 0.5
#: Length of a step of the attack, in radii of the ball over the number of steps, as Algorithm 1 takes it.
_STEPS_OF_RADIUS: Final = 2.5
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
    """The options that are numbers: no program is compiled anew for another."""

    weights: Array
    learning_rate: Array
    radius: Array
    movable: Array


#: Losses (3,): prediction, validity, proximity.
Losses: TypeAlias = Array


@final
@dataclass(frozen=True, slots=True)
class TrainingProgram:
    """The options that are no numbers, for each of which a program is compiled.

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
        tree: Tree = _trees(self.design)[0](weights)
        return tree

    def generator_of(self, weights: Array) -> Tree:
        """Return the generator of a vector of weights."""
        tree: Tree = _trees(self.design)[1](weights)
        return tree

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
    def _units_of_predictor(self) -> tuple[int, ...]:
        return (*self.design.encoder, *self.design.predictor)

    @property
    def _units_of_generator(self) -> tuple[int, ...]:
        if self.design.shared:
            return self.design.generator
        return (*self.design.encoder, *self.design.generator)

    # ---- both steps of a batch ---------------------------------------------------------------------------------------
    def predictor_step(self, networks: Networks, rows: Batch, sizes: Sizes, key: Array) -> tuple[Networks, Array]:
        """Return the networks after a step of the predictor alone, and its loss."""
        import jax

        of_labels, of_units = jax.random.split(key)
        wanted = rows.labels
        if self.smoothing:
            wanted = smoothed(wanted, of_labels)

        def loss(predictor: Array) -> tuple[Array, Array]:
            thin = self._thinning(of_units, len(rows.x), self._units_of_predictor)
            found = squared_error(self.shares(self.predictor_of(predictor), rows.x, thin), wanted)
            return sizes.weights[0] * found, found

        slope, found = jax.grad(loss, has_aux=True)(networks.predictor)
        moves, memory = _adam().update(slope, networks.of_predictor)
        predictor = networks.predictor - sizes.learning_rate * moves
        return networks._replace(predictor=predictor, of_predictor=memory), found

    def generator_step(
        self, networks: Networks, rows: Batch, sizes: Sizes, key: Array
    ) -> tuple[Networks, tuple[Array, Array]]:
        """Return the networks after a step of the generator alone, and its losses of validity and proximity."""
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
        step_size = _STEPS_OF_RADIUS * sizes.radius / attack.steps
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
def _trees(design: Design) -> tuple[Any, Any]:
    """Return what makes a predictor, and a generator, of a vector of weights."""
    import jax
    from jax.flatten_util import ravel_pytree

    shapes = jax.eval_shape(functools.partial(initial, design), jax.random.key(0, impl=RANDOM))
    empty = jax.tree.map(lambda shape: np.zeros(shape.shape, np.float32), shapes)
    return ravel_pytree(empty[0])[1], ravel_pytree(empty[1])[1]


class Compiled(NamedTuple):
    """The functions of a program, compiled on their first call."""

    begun: Any
    epoch: Any
    held_out: Any


@functools.lru_cache(maxsize=32)
def compiled(program: TrainingProgram) -> Compiled:
    """Return the functions of a program; those of an equal one are the same."""
    import jax

    return Compiled(jax.jit(program.begun), jax.jit(program.epoch), jax.jit(program.held_out))
