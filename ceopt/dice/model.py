"""A fitted model as dice_ml wraps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from ceopt.solvers.checks import Choice, Refusal, Text
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedModelError

__all__ = ["Model"]

_WHO: Final = "Model"
#: Back ends of dice_ml that are networks of a framework, by what they are.
_NETWORKS: Final = {"TF1": "TensorFlow", "TF2": "TensorFlow", "PYT": "PyTorch"}
#: Frameworks by the modules of their models, which have predict too.
_FRAMEWORKS: Final = {"tensorflow": "TensorFlow", "keras": "Keras", "torch": "PyTorch"}
_EXPORT: Final = "Export the network to ONNX and ask ceopt.explain about the file, which is read exactly."
_NO_PATH: Final = Refusal(
    "the fitted model itself", "Load it and pass model=; a pickle runs whatever code its writer chose.",
    "model_path is {value}",
)  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class Model:
    """Wrap a fitted model: of scikit-learn, XGBoost or LightGBM, a pipeline of them, or any object with ``predict``.

    One that ceopt reads is stated exactly; any other is a black box, answered through a surrogate.

    Parameters
    ----------
    model
        The fitted model, which takes raw rows: encoders belong into its pipeline.
    model_path
        Refused: load the model yourself.
    backend
        "sklearn". "TF1", "TF2" and "PYT" are refused.
    model_type
        "classifier" or "regressor".
    func, kw_args
        Refused: a transformation belongs into the pipeline.

    Raises
    ------
    UnsupportedModelError, InvalidValueError, InvalidTypeError, UnknownNameError
        Another back end, a network of a framework, a path, a transformation; no model.
    """

    model: Any = None
    model_path: str = ""
    backend: Any = "sklearn"
    model_type: str = "classifier"
    func: Any = None
    kw_args: Any = None

    def __post_init__(self) -> None:
        self._check_backend()
        Choice(("classifier", "regressor")).require(_WHO, "model_type", self.model_type)
        Text().require(_WHO, "model_path", self.model_path)
        if self.model_path:
            raise _NO_PATH.of(_WHO, "model_path", self.model_path)
        if self.func is not None or self.kw_args is not None:
            word, given = ("func", self.func) if self.func is not None else ("kw_args", self.kw_args)
            then = "Put the transformation before the model: sklearn.pipeline.make_pipeline(encoder, model)."
            raise InvalidValueError(_WHO, "a model that takes raw rows", f"{word} is {given!r}", then)
        if isinstance(self.model, type) or not callable(getattr(self.model, "predict", None)):
            but = f"model is {self.model!r}"
            raise InvalidTypeError(_WHO, "a fitted model with predict", but, "Fit one and pass it as model=.")
        framework = _FRAMEWORKS.get(type(self.model).__module__.partition(".")[0])
        if framework is not None:
            raise UnsupportedModelError(_WHO, "a model of scikit-learn's kind", f"model is of {framework}", _EXPORT)

    def _check_backend(self) -> None:
        if isinstance(self.backend, str) and self.backend in _NETWORKS:
            but = f"backend is {self.backend!r} ({_NETWORKS[self.backend]})"
            raise UnsupportedModelError(_WHO, "the back end 'sklearn'", but, _EXPORT)
        if self.backend != "sklearn":
            then = "Write backend='sklearn': models of XGBoost and LightGBM are read by it too."
            raise InvalidValueError(_WHO, "the back end 'sklearn'", f"backend is {self.backend!r}", then)

    @property
    def is_classifier(self) -> bool:
        """Whether the outcome is a class."""
        return self.model_type == "classifier"
