r"""The attacker of Algorithm 1 on arrays: K look-ahead steps of retraining, and the gradient through them.

.. math::
    \max_{\delta:\ \|\delta_i\| \le \varepsilon}\ L\bigl(f(x^{cf}; \theta'_{opt}(\delta)), t\bigr) \quad \text{s.t.}
    \quad \theta'_{opt}(\delta) = \arg\min_{\theta'} L\bigl(f(x + \delta; \theta'), y\bigr)

The loss is the mean squared error of probabilities q against wanted ones t, :math:`L(q, t) = \frac{1}{2n} \sum_i
\|q_i - t_i\|^2`, which for two classes is the mean of :math:`(q_{i1} - t_{i1})^2`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from ceopt.training.networks import Array, Tree

__all__ = ["AttackedRows", "ShiftAttack", "squared_error"]

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
