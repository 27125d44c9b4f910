"""What CounterNet and RoCourseNet share: the shape of a scikit-learn estimator about training and its two networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ceopt.formulations.space.space import require_space
from ceopt.population.cohort import Cohort
from ceopt.solvers.checks import (
    LENGTH,
    Choice,
    Flag,
    Instance,
    ListOf,
    OrNone,
    Real,
    Refusal,
    Whole,
    check_fields,
)
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnwritableFileError
from ceopt.training.generator_network import GeneratorNetwork
from ceopt.training.jax_library import DEVICE, on_device, require_jax
from ceopt.training.networks import Design
from ceopt.training.polish import polished
from ceopt.training.predictor_network import PredictorNetwork
from ceopt.training.shift_attack import ShiftAttack
from ceopt.training.to_onnx import onnx_bytes
from ceopt.training.training_frame import TrainingFrame, place_of
from ceopt.training.training_loop import Trained, TrainingPlan, trained
from ceopt.training.training_program import TrainingProgram

if TYPE_CHECKING:
    from ceopt.training.scaled_frame import Floats

__all__ = ["AbstractRecourseNetwork"]

_UNITS: Final = Refusal("numbers of units as {name}", "Give a tuple of whole numbers.", error=InvalidTypeError)
_NO_UNITS: Final = Refusal("a layer in {name}", "Give the units of one layer at least.")
_WEIGHTS: Final = Refusal(
    "three numbers as weights, of prediction, validity and proximity", "Give a tuple.", error=InvalidTypeError
)
_PATH: Final = Refusal("a path as {name}", "Name a file.", error=InvalidTypeError)
_PATH_OR_NONE: Final = OrNone(Instance((str, Path), _PATH))
_CHECKS: Final = {
    "encoder": ListOf(_UNITS, Whole(at_least=1), _NO_UNITS),
    "predictor": ListOf(_UNITS, Whole(at_least=1)),
    "generator": ListOf(_UNITS, Whole(at_least=1)),
    "shared": Flag(),
    "residual": Flag(),
    "activation": Choice(("relu", "leaky_relu")),
    "dropout": Real(at_least=0.0, below=1.0),
    "weights": ListOf(_WEIGHTS, LENGTH),
    "learning_rate": Real(above=0.0, finite=True),
    "batch_size": Whole(at_least=1),
    "epochs": Whole(at_least=1),
    "patience": OrNone(Whole(at_least=1)),
    "label_smoothing": Flag(),
    "device": DEVICE,
    "checkpoint": _PATH_OR_NONE,
    "progress": Flag(),
    "random_state": Whole(at_least=0),
}
#: Settings that change nothing about what is trained.
_BESIDE: Final = ("checkpoint", "progress", "device")


class AbstractRecourseNetwork(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is untyped
    """A predictor and a generator of recourse, trained together on raw rows.

    Who inherits from it stores its arguments under their names in ``__init__`` and says which attacker it trains
    against.
    """

    # ---- what differs ------------------------------------------------------------------------------------------------
    @abstractmethod
    def _attack(self) -> ShiftAttack | None:
        """Return the attacker, or None, or refuse its options."""

    @abstractmethod
    def _radius(self) -> tuple[float, str]:
        """Return the full radius of the attacker's ball, and the schedule."""

    # ---- training ----------------------------------------------------------------------------------------------------
    @final
    def fit(self, X: pd.DataFrame, y: Sequence[Any] | pd.Series[Any]) -> Self:
        """Train both networks; with ``checkpoint``, from where an interrupted training ended.

        Parameters
        ----------
        X
            Raw rows (n, d): numbers, texts, truth values. Those with missing cells are left out with a warning, and
            their labels with them.
        y
            Labels (n,), of two classes or more.

        Raises
        ------
        MissingLibraryError
            JAX or optax is not installed.
        InvalidValueError, InvalidTypeError, UnknownNameError
            An argument of the constructor out of its range; labels that are missing, no classes or one class alone;
            columns without width; several classes without ``desired``; a device that is absent; a checkpoint of
            another model, of other settings or of other data.
        UnreadableFileError, UnwritableFileError
            A checkpoint that is none, or that cannot be written.
        """
        who = type(self).__name__
        require_jax(who)
        settings = check_fields(self, _CHECKS)
        if len(settings["weights"]) != 3:
            raise _WEIGHTS.of(who, "weights", self.weights)
        if self.space is not None:
            require_space(who, self.space)
        attack = self._attack()
        frame = TrainingFrame.of(who, self.space, X, y)
        program = self._program(settings, frame, attack)
        plan = self._plan(who, settings, program.desired)
        with on_device(who, settings["device"]):
            found = trained(who, program, frame, plan)
            self._keep(program, frame, found)
        self.n_features_in_ = len(frame.columns.space)
        self.feature_names_in_ = np.array(frame.columns.space.names, dtype=object)
        return self

    def _program(self, settings: dict[str, Any], frame: TrainingFrame, attack: ShiftAttack | None) -> TrainingProgram:
        who = type(self).__name__
        n_classes = len(frame.classes)
        desired = None
        if self.desired is not None:
            desired = place_of(who, "desired", self.desired, frame.classes)
        elif n_classes > 2:
            but = "desired is None"
            then = "Name the class that people should get."
            raise InvalidValueError(who, f"a desired class with {n_classes} classes", but, then)
        design = Design(
            n_columns=len(frame.columns.names),
            n_scores=1 if n_classes == 2 else n_classes,
            encoder=settings["encoder"],
            predictor=settings["predictor"],
            generator=settings["generator"],
            shared=settings["shared"],
            activation=settings["activation"],
            groups=frame.columns.groups,
            residual=settings["residual"],
        )
        batch = min(settings["batch_size"], len(frame.codes))
        return TrainingProgram(design, settings["dropout"], batch, settings["label_smoothing"], desired, attack)

    def _plan(self, who: str, settings: dict[str, Any], desired: int | None) -> TrainingPlan:
        radius, schedule = self._radius()
        known = {}
        for name in self.get_params(deep=False):
            if name not in _BESIDE and name != "space":
                known[name] = settings.get(name, getattr(self, name))
        checkpoint = settings["checkpoint"]
        if checkpoint is not None:
            checkpoint = Path(checkpoint)
        return TrainingPlan(
            epochs=settings["epochs"],
            patience=settings["patience"],
            weights=settings["weights"],
            learning_rate=settings["learning_rate"],
            perturbation=radius,
            schedule=schedule,
            random_state=settings["random_state"],
            progress=settings["progress"],
            checkpoint=checkpoint,
            settings={"model": who, **known, "desired": desired},
        )

    def _keep(self, program: TrainingProgram, frame: TrainingFrame, found: Trained) -> None:
        """Set what is known after training, as arrays of NumPy."""
        import jax

        predictor = jax.tree.map(np.asarray, program.predictor_of(found.best[0]))
        generator = jax.tree.map(np.asarray, program.generator_of(found.best[1]))
        self.classes_ = frame.classes
        self.space_ = frame.columns.space
        self.predictor_ = PredictorNetwork(frame.columns, predictor, program.design.activation, frame.classes)
        self.generator_ = GeneratorNetwork(self.predictor_, generator, program.design)
        self.history_ = found.frame()
        self._desired = program.desired

    # ---- the predictor -----------------------------------------------------------------------------------------------
    @final
    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        """Return the label of each raw row, (n,)."""
        check_is_fitted(self)
        return self.predictor_.predict(X)

    @final
    def predict_proba(self, X: pd.DataFrame) -> Floats:
        """Return the probabilities of ``classes_`` for raw rows, (n, K)."""
        check_is_fitted(self)
        return self.predictor_.predict_proba(X)

    @final
    def to_onnx(self, path: str | Path | None = None) -> bytes:
        """Write the predictor as an ONNX file, which any runtime reads, and return its bytes.

        There is one input (n, 1) for each raw column, named as it is: double for numbers; string, int64, bool or float
        for levels. The encoding is inside. The outputs are ``label`` (n,), as in y, and ``probabilities`` (n, K).

        Parameters
        ----------
        path
            The file; None: the bytes alone.

        Raises
        ------
        UnsupportedModelError
            Labels or levels that are neither text nor numbers nor truth values.
        UnwritableFileError
            A folder that is not there or takes no more.
        """
        check_is_fitted(self)
        who = f"{type(self).__name__}.to_onnx"
        content = onnx_bytes(who, self.predictor_)
        if path is not None:
            _PATH_OR_NONE.require(who, "path", path)
            try:
                Path(path).write_bytes(content)
            except OSError as error:
                but = f"path is {str(path)!r} ({error.strerror})"
                raise UnwritableFileError(
                    who, "a file that can be written", but, "Name a file in a folder of yours."
                ) from error
        return content

    # ---- the generator -----------------------------------------------------------------------------------------------
    @final
    def recourse(self, X: pd.DataFrame, *, target: Any = None) -> pd.DataFrame:
        """Return what people are advised to become, as raw rows that each of them may reach.

        Index, columns and types are those of X. Numbers are on their steps and within their bounds, levels are legal,
        directions are kept, and what is fixed stays as it was given. That the model says the target of a row is not
        promised: check it with ``predict``.

        Parameters
        ----------
        X
            Raw rows (n, d).
        target
            A label; rows of which the model says so already stay. None: ``desired``, or without one of two classes the
            one that the model does not say of the row.

        Raises
        ------
        InvalidValueError, InvalidTypeError, UnknownNameError
            Rows that do not fit the space; a target that is no class, or not the one that was trained for.
        """
        check_is_fitted(self)
        who = f"{type(self).__name__}.recourse"
        return self.generator_.advised(who, X, self._target(who, target))

    @final
    def polish(
        self,
        X: pd.DataFrame,
        *,
        target: Any = None,
        cost: Any = "l1",
        constraints: Any = (),
        max_ratio: float = 1.5,
        time_limit_s: float = 10.0,
        n_jobs: int = 1,
        progress: bool = False,
    ) -> Cohort:
        r"""Return recourse that is checked and has a proved price: the generator's, or the exact engine's.

        For each person the engine bounds the least cost over the trained predictor from below, and begins with what
        :meth:`recourse` says:

        .. math::
            b \le \min_x\ \text{cost}(x, x^0) \quad\text{s.t.}\quad f(x) = t, \quad x \in \text{reach}(x^0), \quad
            \text{constraints}

        Advice that the predictor and every rule accept, at a cost of at most ``max_ratio`` times b, stays as it is. The
        rest is replaced by what the engine found.

        Parameters
        ----------
        X
            Raw rows (n, d).
        target
            As of :meth:`recourse`.
        cost, constraints
            As for :func:`ceopt.explain`. Rules that learn from rows learn from X.
        max_ratio
            How many times the proved bound advice may cost, at least 1.
        time_limit_s
            Seconds for each person.
        n_jobs
            Processes.
        progress
            Whether to show a bar on standard error.

        Returns
        -------
        Cohort
            One checked answer a person, with column ``source`` ("generator", "repaired": the engine began with the
            advice, or "engine"), ``audit`` (a frame of price, bound, gap and excess a person) and ``repaired`` (the
            share of people whose advice the engine began with). An answer that is within the ratio and not proved best
            is "feasible", with its gap.

        Raises
        ------
        CeoptError
            What :meth:`recourse` refuses; an option, cost or rule that does not exist or does not fit.
        """
        check_is_fitted(self)
        who = f"{type(self).__name__}.polish"
        place = self._target(who, target)
        advice = self.generator_.advised(who, X, place)
        labels = self.classes_.tolist()
        if place is None:
            codes = self.predictor_.codes(self.predictor_.columns.encode(X))
            targets = [labels[1 - code] for code in codes.tolist()]
        else:
            targets = [labels[place]] * len(X)
        return polished(
            self,
            self.space_,
            X,
            advice,
            targets,
            cost=cost,
            constraints=constraints,
            max_ratio=max_ratio,
            time_limit_s=time_limit_s,
            n_jobs=n_jobs,
            progress=progress,
        )

    def _target(self, who: str, target: Any) -> int | None:
        """Return the place of the class that people should get; None: of two classes the other one."""
        place = self._desired
        if target is None:
            return place
        asked = place_of(who, "target", target, self.classes_)
        if place not in {None, asked}:
            but = f"target is {target!r}"
            needs = f"the target that it was trained for, {self.classes_.tolist()[place]!r}"
            raise InvalidValueError(who, needs, but, "Train one with that class as desired.")
        return asked
