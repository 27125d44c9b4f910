"""Virtual data shift: the worst retrained model that a small change of the training data can lead to."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pandas as pd

from ceopt.formulations.space.space import rows_to_keep, taken
from ceopt.solvers.checks import LENGTH, Choice, Flag, OrNone, Real, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.training.differentiable import network_of
from ceopt.training.jax_library import require_jax
from ceopt.training.networks import Array, Tree, scores_of, shares_of
from ceopt.training.predictor_network import Codes, PredictorNetwork
from ceopt.training.scaled_frame import Flags, Floats, ScaledFrame
from ceopt.training.shift_attack import AttackedRows, ShiftAttack

__all__ = ["VirtualShift", "virtual_data_shift"]

_WHO: Final = "virtual_data_shift"
#: Length of a step, in radii of the ball over the number of steps, as Algorithm 1 takes it.
_STEPS_OF_RADIUS: Final = 2.5
_CHECKS: Final = {
    "perturbation": LENGTH,
    "steps": Whole(at_least=1),
    "unroll": Whole(at_least=1),
    "norm": Choice(("linf", "l2")),
    "learning_rate": Real(above=0.0, finite=True),
    "step_size": OrNone(Real(above=0.0, finite=True)),
    "restart": Flag(),
    "random_state": Whole(at_least=0),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class VirtualShift:
    """What the attacker found.

    Parameters
    ----------
    model
        The model as the last step of the attack retrained it: ``predict``, ``predict_proba`` and ``classes_`` of raw
        frames. It has seen the rows as they were shifted before that step, not at ``shift``, to which the step moved
        them afterwards.
    shift
        The shifts (n, p) of the training rows that lack no cell after the last step, in scaled columns.
    objective
        Loss of the recourse on the model given, and on the retrained model after each step, (steps + 1,).
    """

    model: PredictorNetwork
    shift: Floats
    objective: Floats


def virtual_data_shift(
    model: Any,
    X: pd.DataFrame,
    y: Sequence[Any] | pd.Series[Any],
    counterfactuals: pd.DataFrame,
    *,
    targets: Sequence[Any] | pd.Series[Any] | None = None,
    perturbation: float = 0.1,
    steps: int = 7,
    unroll: int = 2,
    norm: str = "linf",
    learning_rate: float = 0.1,
    step_size: float | None = None,
    movable: str | Sequence[str] = "continuous",
    restart: bool = False,
    random_state: int = 0,
) -> VirtualShift:
    r"""Shift training data, each row within a ball, so that the model retrained on them invalidates recourse.

    .. math::
        &\theta' \leftarrow \theta, \quad \delta \sim U(-\varepsilon, \varepsilon); \quad T \text{ times:} \\
        &\quad K \text{ times: } \theta' \leftarrow \theta' - \eta \nabla_{\theta'} L(f(x + \delta; \theta'), y) \\
        &\quad \delta \leftarrow \Pi_{\|\delta_i\| \le \varepsilon}\bigl(\delta + \alpha\, \mathrm{sign}\,
        \nabla_\delta L(f(x^{cf}; \theta'), t)\bigr)

    The gradient of :math:`\delta` goes through the K steps that were just taken. The retrained model is set to the
    given one once, before the first step, as Algorithm 1 prints it. A lower estimate of the worst case: K steps
    retrain only so far, and the ascent is local.

    ============ ====== ============= ===============================================================
    symbol       shape  unit          meaning
    ============ ====== ============= ===============================================================
    x, y         (n, p) scaled        training rows and their classes; ``X``, ``y``
    x^cf, t      (m, p) scaled        recourse and the classes it should get; ``counterfactuals``
    delta        (n, p) range         shift of each row; ``shift``
    epsilon      ()     range         ``perturbation``: 0.1 is a tenth of the range of a column
    T, K         ()     none          ``steps``, ``unroll``
    eta, alpha   ()     none, range   ``learning_rate``, ``step_size``
    L            ()     none          mean squared error of the probabilities
    ============ ====== ============= ===============================================================

    Parameters
    ----------
    model
        A fitted :class:`CounterNet` or :class:`RoCourseNet`; or a logistic regression or ReLU network, with the
        pipeline before it, whose probabilities are the sigmoid or softmax of its scores.
    X, y
        The training data in raw units, (n, d) and (n,). Rows of X with missing cells are left out with a warning: their
        labels too, and without ``targets`` their counterfactuals.
    counterfactuals
        Recourse in raw units, one row for each row of X; with ``targets``, any number m of rows.
    targets
        Labels (m,); None: of each row of X, the other of two classes than the model says.
    perturbation
        Radius of the ball of each row.
    steps, unroll
        Steps of the attack, and steps of retraining in each.
    norm
        "linf" or "l2".
    learning_rate, step_size
        Of retraining and of the attack; None: 2.5 ``perturbation / steps``.
    movable
        "continuous" (all columns of numbers), "all", or names of raw columns.
    restart
        Whether retraining begins with the given model in each step.
    random_state
        Seed of the start.

    Raises
    ------
    MissingLibraryError
        JAX is not installed.
    InvalidValueError, InvalidTypeError, UnknownNameError, UnsupportedModelError
        Missing labels or cells of counterfactuals, labels that are no classes, frames that do not fit or are empty,
        several classes without targets, an option out of its range or so great that numbers overflow, a model that
        cannot be differentiated.

    References
    ----------
    Guo et al. (2023), "RoCourseNet: Robust training of a prediction aware recourse model", problem (3), Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ceopt.training import virtual_data_shift
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 2)), columns=["income", "age"])
    >>> granted = people["income"] > 0.5
    >>> advice = people.assign(income=np.where(granted, 0.45, 0.55))  # just across the boundary
    >>> model = LogisticRegression(C=100.0).fit(people, granted)
    >>> found = virtual_data_shift(model, people, granted, advice, perturbation=0.2, learning_rate=1.0)
    >>> bool(found.objective[-1] > found.objective[0]), float(abs(found.shift).max().round(6))
    (True, 0.2)
    """
    require_jax(_WHO)
    settings = check_arguments(_WHO, _CHECKS, locals())
    beside = {"y": y} if targets is not None else {"y": y, "counterfactuals": counterfactuals}
    kept = rows_to_keep(_WHO, None, X, word="X", **beside)
    X = taken(X, kept)
    y = taken(y, kept)
    if targets is None:
        counterfactuals = taken(counterfactuals, kept)
    network = network_of(_WHO, getattr(model, "predictor_", model), X)
    columns = network.columns
    rows = columns.encode(X)
    advice = columns.encode(counterfactuals)
    for name, points in (("X", rows), ("counterfactuals", advice)):
        if not len(points):
            raise InvalidValueError(_WHO, f"at least one row in {name}", f"{name} is empty", "Give some.")
    labels = network.codes_of(_WHO, "y", y)
    if len(labels) != len(rows):
        but = f"X has {len(rows)} and y has {len(labels)}"
        raise InvalidValueError(_WHO, "as many labels as rows", but, "Give the label of each row.")
    wanted = _targets(network, rows, advice, targets)
    step_size = settings["step_size"]
    if step_size is None:
        step_size = _STEPS_OF_RADIUS * settings["perturbation"] / settings["steps"]
    attack = ShiftAttack(
        settings["steps"], settings["unroll"], settings["norm"], settings["learning_rate"], settings["restart"]
    )
    one = np.eye(len(network.classes_), dtype=np.float32)
    given = (rows.astype(np.float32), one[labels], advice.astype(np.float32), one[wanted])
    movable_columns = _movable(columns, movable).astype(np.float32)
    sizes = (settings["perturbation"], step_size)
    with np.errstate(over="ignore"):  # what is infinite in single precision is told by the losses
        layers, shift, values = _program(network.activation, attack)(
            network.layers, given, movable_columns, sizes, settings["random_state"]
        )
    import jax

    _require_finite(np.asarray(values))
    shifted = PredictorNetwork(columns, jax.tree.map(np.asarray, layers), network.activation, network.classes_)
    return VirtualShift(shifted, np.asarray(shift, dtype=np.float64), np.asarray(values, dtype=np.float64))


@functools.lru_cache(maxsize=32)
def _program(activation: str, attack: ShiftAttack) -> Any:
    """Return the compiled attack."""
    import jax
    import jax.numpy as jnp

    def shares(model: Tree, x: Array) -> Array:
        return shares_of(scores_of(model, x, activation, jnp), jnp)

    def run(layers: Tree, arrays: Any, movable: Array, sizes: tuple[float, float], seed: int) -> Any:
        given = AttackedRows(*arrays)
        radius, step_size = sizes
        shift = attack.start(jax.random.key(seed), given.rows.shape, movable, radius)
        return attack.run(shares, layers, given, shift=shift, movable=movable, perturbation=radius, step_size=step_size)

    return jax.jit(run)


def _targets(network: PredictorNetwork, rows: Floats, advice: Floats, targets: Any) -> Codes:
    if targets is not None:
        found = network.codes_of(_WHO, "targets", targets)
        if len(found) != len(advice):
            but = f"counterfactuals has {len(advice)} rows and targets has {len(found)}"
            raise InvalidValueError(_WHO, "a target for each counterfactual", but, "Give one a row.")
        return found
    count = len(network.classes_)
    if count != 2:
        then = "Give the class that each counterfactual should get."
        raise InvalidValueError(_WHO, f"targets with {count} classes", "targets is None", then)
    if len(rows) != len(advice):
        but = f"X has {len(rows)} rows and counterfactuals has {len(advice)}"
        raise InvalidValueError(_WHO, "a counterfactual for each row of X", but, "Give one a row, or targets.")
    return 1 - network.codes(rows)


def _require_finite(values: Floats) -> None:
    """Refuse options so great that the attack overflows single precision."""
    lost = np.flatnonzero(~np.isfinite(values))
    if len(lost):
        but = f"after step {lost[0]} it is {values[lost[0]]}"
        then = "Take a smaller perturbation, step_size or learning_rate."
        raise InvalidValueError(_WHO, "a loss that stays finite", but, then)


def _movable(columns: ScaledFrame, movable: Any) -> Flags:
    """Return which columns (p,) may shift."""
    if isinstance(movable, str):
        if movable == "continuous":
            return columns.of_numbers
        if movable == "all":
            return np.ones(len(columns.names), dtype=bool)
        raise UnknownNameError.among(_WHO, "movable", movable, ("continuous", "all", "a list of columns"))
    if not isinstance(movable, Iterable):
        but = f"movable is {movable!r}"
        then = 'Write "continuous", "all", or a list of columns.'
        raise InvalidTypeError(_WHO, "the names of columns as movable", but, then)
    names = list(movable)
    for name in names:
        if name not in columns.space:
            raise columns.space.unknown_column(_WHO, name)
    return columns.where(np.array([name in names for name in columns.space.names]))
