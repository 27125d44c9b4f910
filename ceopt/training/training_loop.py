"""Epoch after epoch: the radius grows, losses are written down, the best weights kept, and training ends in time."""

from __future__ import annotations

import hashlib
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from ceopt.solvers.errors import InvalidValueError
from ceopt.training.checkpoints import restored, saved
from ceopt.training.schedules import radius_at
from ceopt.training.training_frame import TrainingFrame
from ceopt.training.training_program import RANDOM, Batch, Networks, Sizes, TrainingProgram, compiled

__all__ = ["LossesByEpoch", "Trained", "TrainingPlan", "trained"]

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


@final
@dataclass(frozen=True, slots=True)
class LossesByEpoch:
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
        names = list(LossesByEpoch.__dataclass_fields__)
        rows = [[getattr(losses, name) for name in names] for losses in self.history]
        return pd.DataFrame(rows, columns=names, index=epochs, dtype=np.float64)


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

    run = compiled(program)
    key = jax.random.key(plan.random_state, impl=RANDOM)
    seen, unseen = _parts(frame, plan)
    now = _begun(run.begun(jax.random.fold_in(key, _OF_START)))
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
            networks, losses = run.epoch(now.networks, seen, order, _sizes(plan, frame, radius), of_epoch)
            held_out = math.nan
            if unseen is not None:
                found_out = run.held_out(networks, unseen, full, jax.random.fold_in(key, _OF_HELD_OUT))
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

    return Batch(*(jnp.asarray(entries) for entries in rows))


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
    history = []
    for losses in now.history:
        history.append([getattr(losses, name) for name in LossesByEpoch.__dataclass_fields__])
    return {"made_by": made_by, "history": history, "best_loss": now.best_loss, "waited": now.waited}


def _from_checkpoint(now: Trained, head: dict[str, Any], arrays: list[NDArray[Any]]) -> Trained:
    import jax
    import jax.numpy as jnp

    shape = jax.tree.structure((now.networks, now.best))
    networks, best = jax.tree.unflatten(shape, [jnp.asarray(array) for array in arrays])
    history = tuple(LossesByEpoch(*losses) for losses in head["history"])
    return Trained(networks, best, float(head["best_loss"]), int(head["waited"]), history)
