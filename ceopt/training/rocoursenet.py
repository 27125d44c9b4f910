"""RoCourseNet: predictor and recourse from one network, trained against the worst shift of the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final

from ceopt.solvers.checks import LENGTH, Choice, Flag, Real, Whole, check_fields
from ceopt.training.recourse_network import AbstractRecourseNetwork
from ceopt.training.schedules import SCHEDULES
from ceopt.training.shift_attack import ShiftAttack

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["RoCourseNet"]

_CHECKS: Final = {
    "attack_steps": Whole(at_least=1),
    "unroll": Whole(at_least=1),
    "perturbation": LENGTH,
    "norm": Choice(("linf", "l2")),
    "schedule": Choice(SCHEDULES),
    "inner_rate": Real(above=0.0, finite=True),
    "restart": Flag(),
    "attacked": Choice(("all", "head")),
}
#: Lists of layers that the attacker retrains.
_ATTACKED: Final = {"all": ("encoder", "head"), "head": ("head",)}


@final
class RoCourseNet(AbstractRecourseNetwork):
    r"""A predictor f and a generator g of recourse, trained so that recourse outlasts retraining on shifted data.

    For each batch, with an attacker (:func:`virtual_data_shift`) between the two steps of :class:`CounterNet`:

    .. math::
        &\theta \leftarrow \text{step on}\ \lambda_1 L(f(x; \theta), y) \\
        &(\theta', \delta) = \text{VDS}(x, y, x^{cf}, t; \theta, \varepsilon), \qquad
        \lVert \delta_i \rVert \le \varepsilon \\
        &\theta_g \leftarrow \text{step on}\ \lambda_2 L\big(f(x^{cf}; \theta'), t\big) + \lambda_3 L(x, x^{cf}), \quad
        x^{cf} = g(x; \theta_g)

    The radius grows from epoch to epoch. Losses on rows held out are always taken at the full radius, so that epochs
    can be compared and the best weights are the best against the full attack; and training ends early only by epochs
    that were trained at the full radius: with "constant" after ``patience`` of them, with "linear" and "log", whose
    last epoch is the only one, never.

    Parameters
    ----------
    space, encoder, predictor, generator, shared, residual, activation, dropout, weights, learning_rate, batch_size
        As of :class:`CounterNet`.
    epochs, patience, label_smoothing, desired, device, checkpoint, progress, random_state
        As of :class:`CounterNet`.
    attack_steps, unroll
        Steps T of the attack, and steps K of retraining in each.
    perturbation
        The full radius E, a share of each column's range; columns of numbers shift.
    norm
        The ball of each row's shift, "linf" or "l2".
    schedule
        How the radius reaches E after N epochs: "linear" :math:`E (e + 1) / N`, "constant", or "log"
        :math:`E \log(e + 2) / \log(N + 1)`.
    inner_rate
        Step of retraining, by plain gradients. The attack grows with it: on Loan 0.1 suffices against attackers of up
        to 5; with 1 validity under them grows no more, at twice the proximity, and with 3 retraining overshoots.
    restart
        Whether each step of the attack retrains from the predictor, and not from where the last one ended.
    attacked
        Whether the attacker retrains "all" layers, or the "head" behind the encoder.

    Attributes
    ----------
    classes_, predictor_, generator_, history_, space_, n_features_in_, feature_names_in_
        As of :class:`CounterNet`; ``epsilon`` of ``history_`` is the radius of each epoch.

    References
    ----------
    Guo, Jia, Chen, Squicciarini & Yadav (2023), "RoCourseNet: Robust training of a prediction aware recourse model",
    problem (4), Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.training import RoCourseNet
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(200, 2)), columns=["income", "age"])
    >>> granted = np.where(people["income"] > 0.5, "yes", "no")
    >>> model = RoCourseNet(dropout=0.0).fit(people, granted)
    >>> refused = people[model.predict(people) == "no"]
    >>> bool((model.predict(model.recourse(refused)) == "yes").mean() > 0.9)
    True
    """

    def __init__(
        self,
        *,
        space: FeatureSpace | None = None,
        encoder: tuple[int, ...] = (50, 10),
        predictor: tuple[int, ...] = (10,),
        generator: tuple[int, ...] = (50, 50),
        shared: bool = True,
        residual: bool = True,
        activation: Literal["relu", "leaky_relu"] = "relu",
        dropout: float = 0.3,
        weights: tuple[float, float, float] = (1.0, 0.2, 0.1),
        learning_rate: float = 3e-3,
        batch_size: int = 128,
        epochs: int = 100,
        patience: int | None = 10,
        label_smoothing: bool = False,
        desired: Any = None,
        device: str | None = None,
        checkpoint: str | Path | None = None,
        progress: bool = False,
        random_state: int = 0,
        attack_steps: int = 7,
        unroll: int = 2,
        perturbation: float = 0.1,
        norm: Literal["linf", "l2"] = "linf",
        schedule: Literal["linear", "constant", "log"] = "linear",
        inner_rate: float = 0.1,
        restart: bool = False,
        attacked: Literal["all", "head"] = "all",
    ) -> None:
        self.space = space
        self.encoder = encoder
        self.predictor = predictor
        self.generator = generator
        self.shared = shared
        self.residual = residual
        self.activation = activation
        self.dropout = dropout
        self.weights = weights
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.label_smoothing = label_smoothing
        self.desired = desired
        self.device = device
        self.checkpoint = checkpoint
        self.progress = progress
        self.random_state = random_state
        self.attack_steps = attack_steps
        self.unroll = unroll
        self.perturbation = perturbation
        self.norm = norm
        self.schedule = schedule
        self.inner_rate = inner_rate
        self.restart = restart
        self.attacked = attacked

    def _attack(self) -> ShiftAttack | None:
        given = check_fields(self, _CHECKS)
        return ShiftAttack(
            steps=given["attack_steps"],
            unroll=given["unroll"],
            norm=given["norm"],
            learning_rate=given["inner_rate"],
            restart=given["restart"],
            retrained=_ATTACKED[given["attacked"]],
        )

    def _radius(self) -> tuple[float, str]:
        return float(self.perturbation), self.schedule
