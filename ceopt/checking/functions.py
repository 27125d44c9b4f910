"""Functions of rows in the place of a model: of them nothing is known but what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.targets import AtLeast, AtMost, Between, Disagreement, OtherThan, Probability, parse_target
from ceopt.metrics.predictions import predicted, wanted
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["LIBRARIES", "FunctionOracle", "FunctionTarget", "Oracle", "check_kind", "model_behind"]

_WHO: Final = "The model"
_RANGES: Final = (AtLeast, AtMost, Between)
_SETS: Final = (set, frozenset, list)
#: Whose models say what they are: a regressor by having no classes, one that was fitted again by other content.
LIBRARIES: Final = frozenset({"ceopt", "lightgbm", "onnxruntime", "sklearn", "xgboost"})


class Oracle(Protocol):
    """What says of raw rows whether they meet a target: a model's oracle or a function's, each with its own targets."""

    def meets(self, frame: pd.DataFrame, target: Any) -> NDArray[np.bool_]:
        """Return whether each raw row meets the target, (n,)."""

    def judge(self, frame: pd.DataFrame, target: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return predictions and whether they meet the target."""


def model_behind(model: Any, target: Any) -> Any:
    """Return what is to be asked for a target in place of a model or a function.

    A fitted scikit-learn model stands for its own ``model.predict``. An object of a library that ceopt does not know
    and that has no ``classes_`` is, where a label is wanted, its ``predict``: a function of frames. All else is itself.
    """
    owner = getattr(model, "__self__", None)
    if getattr(model, "__name__", "") == "predict" and hasattr(owner, "__sklearn_tags__"):
        return owner
    is_object = hasattr(model, "predict") and not isinstance(model, type) and not isinstance(target, _RANGES)
    if not is_object or hasattr(model, "__sklearn_tags__") or getattr(model, "classes_", None) is not None:
        return model
    if type(model).__module__.partition(".")[0] in LIBRARIES:
        return model
    return model.predict


def check_kind(who: str, labels: NDArray[Any], target: Any) -> None:
    """Refuse text where numbers are asked for, and numbers where text is.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        A range of values of what are no numbers; labels of another kind than the target.
    """
    if isinstance(target, (*_RANGES, Probability, Disagreement)):
        if labels.dtype.kind not in "biuf":
            but = f"predict returned {labels.tolist()[0]!r}"
            raise InvalidTypeError(who, f"numbers to hold against {target!r}", but, "Ask for a label.")
        return
    asked = _named(target)
    said = pd.unique(pd.Series(labels.tolist(), dtype=object)).tolist()
    are_text = {isinstance(label, str) for label in said}
    if are_text.isdisjoint(isinstance(label, str) for label in asked):
        shown = ", ".join(_in_short(label) for label in said[:5])
        raise InvalidValueError(
            who, f"labels of the kind of {asked[0]!r}, which is the target", f"predict returned {shown}",
            "Give a target that predict returns.",
        )  # fmt: skip


def _in_short(label: Any) -> str:
    """Return a label as it is told: numbers to six digits."""
    return f"{label:.6g}" if isinstance(label, float) else repr(label)


@final
@dataclass(frozen=True, slots=True)
class FunctionTarget:
    """What a function should say: a label, a set or list of labels, ``OtherThan(label)``, or a range of values.

    Raises
    ------
    InvalidTypeError
        No target, or one that a function cannot be asked for.
    """

    target: Any

    def __post_init__(self) -> None:
        if self.target is None or isinstance(self.target, np.ndarray | pd.Series | pd.Index):
            but = f"target is {type(self.target).__name__}"
            raise InvalidTypeError("target", "a label or a set of labels", but, "Write target={...}.")
        if isinstance(self.target, Probability | Disagreement):
            raise InvalidTypeError(
                "target", "a label or a range of values, as the model is a function", f"target is {self.target!r}",
                "Give the fitted model, or wrap the threshold into the function.",
            )  # fmt: skip
        if isinstance(self.target, _SETS) and not self.target:
            raise InvalidValueError("target", "some label", f"target is {self.target!r}", "Name what is wanted.")

    def holds(self, said: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which labels or values are wanted, (n,)."""
        check_kind(_WHO, said, self.target)
        return wanted(_WHO, said, self.target)

    def text(self) -> str:
        """Return the target as a person would write it."""
        if isinstance(self.target, _RANGES):
            return parse_target(self.target, None).text()
        named = " or ".join(map(str, _named(self.target)))
        return f"other than {named}" if isinstance(self.target, OtherThan) else named


@final
@dataclass(frozen=True, slots=True)
class FunctionOracle:
    """Ask a function what it says of raw rows, as :class:`~ceopt.checking.answer_check.ModelOracle` asks a model.

    Parameters
    ----------
    ask
        From a frame with the columns and dtypes of the space to labels or values (n,).
    space
        The raw columns.
    """

    ask: Callable[[pd.DataFrame], Any]
    space: FeatureSpace

    def predict(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Return the labels or values of raw rows (n, d), shape (n,).

        Raises
        ------
        InvalidValueError
            Another shape, or a missing value.
        """
        return predicted(_WHO, self.ask, frame)

    def meets(self, frame: pd.DataFrame, target: FunctionTarget) -> NDArray[np.bool_]:
        """Return whether what is said of each raw row is wanted, (n,)."""
        return self.judge(frame, target)[1]

    def judge(self, frame: pd.DataFrame, target: FunctionTarget) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return what is said of raw rows and whether it is wanted, with one call for all."""
        said = self.predict(frame)
        return said, target.holds(said)


def _named(target: Any) -> list[Any]:
    if isinstance(target, OtherThan):
        return [target.label]
    return list(target) if isinstance(target, _SETS) else [target]
