"""CounterNet: predictor and recourse from one network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from ceopt.training.recourse_network import AbstractRecourseNetwork
from ceopt.training.shift_attack import ShiftAttack

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["CounterNet"]


@final
class CounterNet(AbstractRecourseNetwork):
    r"""A predictor f and a generator g of recourse, trained together by block-wise coordinate descent.

    .. math::
        &\theta \leftarrow \text{step on}\ \lambda_1 L(f(x; \theta), y) \\
        &\theta_g \leftarrow \text{step on}\ \lambda_2 L\big(f(x^{cf}; \theta), t\big) + \lambda_3 L(x, x^{cf}), \quad
        x^{cf} = g(x; \theta_g)

    ============ ====== ====== ==================================================================================
    symbol       shape  unit   meaning
    ============ ====== ====== ==================================================================================
    x, x^cf      (n, p) range  rows and recourse: numbers by their range, a column a level, its share as softmax
    y, t         (n, K)        classes, and those that recourse should get: of two the other, or ``desired``
    theta        ()            encoder and predictor, which end in ReLU units and a sigmoid or softmax
    theta_g      ()            generator; it reads encoder and predictor, fixed in its step, or has its own encoder
    lambda       (3,)   none   ``weights``
    L            ()     none   mean squared error; of x and x^cf over rows and columns
    ============ ====== ====== ==================================================================================

    Numbers are cut to what a person may reach, and what is fixed has its own value already in training. A row takes
    one pass through the network; whether the model says the target of it is to be checked.

    Parameters
    ----------
    space
        The columns, their bounds, steps and directions; None: inferred from the rows.
    encoder, predictor, generator
        Units of each hidden layer.
    shared
        Whether the generator reads the predictor's hidden units; False: it has an encoder of its own (the general
        framework).
    residual
        Whether the generator says by how much a row changes; False, as in the paper: what it becomes. The generator
        knows a person by the predictor's few last units, so without people get nearly the same advice: on German Credit
        (100 epochs, validity 0.99 both) categories take 2 to 8 combinations for 66 people, with it 63, at a proximity
        of 5.5 and not 9.3.
    activation
        "relu", or "leaky_relu" of slope 0.01 as in the paper.
    dropout
        Share of hidden units that are left out in training.
    weights
        Of prediction, validity and proximity.
    learning_rate, batch_size
        Of Adam, one for each block; gradients are cut to a length of 0.5.
    epochs, patience
        Epochs at most, and how many may pass without a better loss on a tenth of the rows, held out; the best weights
        are kept. ``patience=None``: all epochs on all rows, and the last weights.
    label_smoothing
        Whether the true class of a row counts as 0.8 to 0.95, drawn anew in each batch.
    desired
        The label that everybody should get. Needed with several classes; None: of two classes the other one.
    device
        "cpu" or "gpu"; None: what JAX prefers.
    checkpoint
        A file, written after each epoch: the next ``fit`` with the same settings and data goes on from it, to the same
        result.
    progress
        Whether a bar is shown.
    random_state
        The seed.

    Attributes
    ----------
    classes_
        The labels (K,), ascending.
    predictor_, generator_
        The networks, as arrays of NumPy.
    history_
        Losses by epoch: ``prediction``, ``validity``, ``proximity`` (means over batches), ``epsilon`` (0),
        ``held_out`` (the weighted sum on rows held out; NaN without).
    space_, n_features_in_, feature_names_in_
        The columns.

    References
    ----------
    Guo, Nguyen & Yadav (2023), "CounterNet: End-to-end training of prediction aware counterfactual explanations".

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.training import CounterNet
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(200, 2)), columns=["income", "age"])
    >>> granted = np.where(people["income"] > 0.5, "yes", "no")
    >>> model = CounterNet(dropout=0.0).fit(people, granted)
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

    def _attack(self) -> ShiftAttack | None:
        return None

    def _radius(self) -> tuple[float, str]:
        return 0.0, "constant"
