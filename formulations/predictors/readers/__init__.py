"""Readers: a fitted model of some library becomes a representation with that library's exact semantics.

One file or folder per library, named as the library is imported (``sklearn/`` reads what ``import sklearn`` fits). It
is imported only when a model of that library is given, so another library is another folder, and no edit here unless it
saves files (``SUFFIXES``). It has

``read_estimator(estimator, dtype)``
    -> the representation of what the estimator computes from a matrix of float width ``dtype``;

and may have

``own_scores(estimator, rows)``
    -> what the library itself says of the scores, from what it is given behind the steps of a pipeline; None where it
    says nothing of them but labels and probabilities;
``open_model(model)``
    -> an estimator (``predict``, ``classes_``, ``feature_names_in_``) for what is not an estimator: a file, bytes, a
    booster;
``own_steps(estimator)``
    -> transformers that the estimator itself runs on its input before the model proper, or functions of the data that
    keep its columns apart;
``read_composite(estimator, behind)``
    -> (representation, encoding) of a model that is made of others or that encodes its own input, None for all else;
``one_output(estimator, output)``
    -> the estimator of one of the outputs that an estimator was fitted on;
``MODELS``
    kind of model -> names, for the table of ``ceopt models`` and of docs/reference/models.md.

What all of them use stands beside them: ``agreement.py``, ``model_input.py``, ``responses.py``, ``pipeline.py``.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final, final

import pandas as pd

from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.readers.agreement import (
    DISTRIBUTIONS,
    gap_refusal,
    require_agreement,
    require_prediction,
)
from ceopt.formulations.predictors.readers.pipeline import Followed, encode, ending_in, split
from ceopt.formulations.predictors.representation import AbstractRepresentation
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.solvers.errors import CeoptError, MissingLibraryError, UnknownNameError, UnsupportedModelError

__all__ = ["SUFFIXES", "Behind", "is_function", "of_output", "open_model", "read"]

# ==== Readers: a fitted model of some library becomes a representation with that library's exact semantics ============

#: Libraries by the suffix of the files that they save.
SUFFIXES: Final = {".onnx": "onnx", ".json": "xgboost", ".ubj": "xgboost", ".txt": "lightgbm"}


@final
@dataclass(frozen=True, slots=True)
class Behind:
    """Where a model stands: behind the steps of a pipeline, over the raw columns of a space."""

    steps: tuple[Any, ...]
    space: FeatureSpace
    #: Rows that were followed through the steps up to a member that was read here.
    followed: list[Followed] = field(default_factory=list, compare=False)

    def member(self, model: Any, *steps: Any) -> Predictor:
        """Read a model that is given what this place gives, through further steps."""
        inner, estimator = split(open_model(model))
        return _read([*self.steps, *steps, *inner], estimator, model, self)

    def encoding(self, estimator: Any, *steps: Any) -> Encoding:
        """Return what an estimator at this place sees, through further steps."""
        return encode([*self.steps, *steps], estimator, self.space)


def is_function(model: Any) -> bool:
    """Tell whether a model is a bare function of rows: it is called, and has no ``predict``."""
    return callable(model) and not hasattr(model, "predict") and not isinstance(model, type)


def read(model: Any, space: FeatureSpace, *, data: pd.DataFrame | None = None) -> Predictor:
    """Read a fitted model over the raw columns of a space, and compare what was read with the library's predictions.

    Columns are matched by name if the model was fitted on a frame, by position in the space's order if on an array.
    A representation from plain arrays is taken as it is, over the columns in the space's order.

    Parameters
    ----------
    model
        A fitted estimator, pipeline or search object of a library that has a reader; a saved model or a native one that
        a reader opens; or a representation.
    space
        The raw columns.
    data
        Rows of data on which the comparison is made; across the space without.

    Returns
    -------
    Predictor
        Whose matrix equals the pipeline's own on probe rows of the space, bit for bit, at every level of every column.

    Raises
    ------
    UnsupportedModelError
        The model, a step or an option has no exact representation; it is not fitted; its columns are not the space's;
        or the library predicts otherwise than the model as read (``agreement.py``).
    """
    if isinstance(model, Predictor):
        return model
    if isinstance(model, AbstractRepresentation):
        return Predictor(model, Encoding.identity(space, model.columns), model, space)
    opened = open_model(model)
    try:
        place = Behind((), space)
        predictor = place.member(opened)
    except UnsupportedModelError as error:
        raise gap_refusal(opened, space) or error from error.__cause__
    except (CeoptError, OutOfTimeError, MemoryError):
        raise
    except Exception:
        require_prediction(opened, space)  # else it is a fault of the reader, which is raised as it is
        raise
    reader = _module(_root(split(opened)[1]))
    assert reader is not None  # noqa: S101 - it has read the model
    try:
        require_agreement(predictor, opened, reader, data, place.followed)
    except UnsupportedModelError as error:
        raise gap_refusal(opened, space) or error from error.__cause__
    return predictor if opened is model else dataclasses.replace(predictor, model=model)


def open_model(model: Any) -> Any:
    """Return a fitted estimator: the model itself, or what its library's reader makes of a file, bytes or a booster.

    Raises
    ------
    UnsupportedModelError
        A file whose suffix no reader opens.
    """
    if isinstance(model, str | Path):
        name = SUFFIXES.get(Path(model).suffix.lower())
        if name is None:
            raise UnsupportedModelError(
                "The model", f"a fitted model, or a file that ends in {', '.join(SUFFIXES)}", f"it is {str(model)!r}",
                "Load the file and give the fitted model.",
            )  # fmt: skip
    elif isinstance(model, bytes | bytearray):
        name = "onnx"
    else:
        name = _root(model)
    module = _module(name)
    if module is None or not hasattr(module, "open_model"):
        return model
    return module.open_model(model)


def of_output(model: Any, output: Any) -> Any:
    """Return a fitted model for one of the outputs of another, by its number: its estimator with the others left out.

    Raises
    ------
    UnsupportedModelError
        Its outputs cannot be told apart.
    InvalidTypeError, InvalidValueError
        It has no such output.
    """
    opened = open_model(model)
    if isinstance(opened, AbstractRepresentation | Predictor):
        raise UnsupportedModelError(
            "read", "a fitted model of several outputs", f"it is {type(opened).__name__}", "Leave output out."
        )
    estimator = split(opened)[1]
    library = _module(_root(estimator))
    if library is None or not hasattr(library, "one_output"):
        raise UnsupportedModelError(
            "read", "a model whose outputs can be told apart", f"it is {type(estimator).__name__}",
            "Fit one model per output.",
        )  # fmt: skip
    return ending_in(opened, library.one_output(estimator, output))


def _read(steps: Sequence[Any], estimator: Any, model: Any, place: Behind) -> Predictor:
    library = _module(_root(estimator))
    if library is None or not hasattr(library, "read_estimator"):
        raise UnsupportedModelError(
            "The model", "a fitted estimator of a library that ceopt reads, or a representation",
            f"it is {type(estimator).__name__} of module {type(estimator).__module__}",
            "Give a scikit-learn estimator or pipeline, an XGBoost, LightGBM or ONNX model, or ceopt.formulations."
            "predictors.Affine, TreeEnsemble or ReluNetwork.",
        )  # fmt: skip
    if hasattr(library, "read_composite"):
        composite = library.read_composite(estimator, Behind(tuple(steps), place.space))
        if composite is not None:
            return Predictor(composite[0], composite[1], model, place.space)
    own = []
    if hasattr(library, "own_steps"):
        own = library.own_steps(estimator)
    encoding = encode([*steps, *own], estimator, place.space, None if own else place.followed)
    return Predictor(library.read_estimator(estimator, str(encoding.dtype)), encoding, model, place.space)


def _root(model: Any) -> str:
    """Return the name of the library that a model comes from; what a reader opened is of the reader's library."""
    return type(model).__module__.removeprefix(f"{__name__}.").partition(".")[0]


@functools.cache
def _module(library: str) -> ModuleType | None:
    """Return the reader of a library; None if there is none.

    Raises
    ------
    MissingLibraryError
        The reader needs a library that is not installed.
    """
    name = f"{__name__}.{library}"
    if not library.isidentifier() or not importlib.util.find_spec(name):
        return None
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        then = f"Run: pip install {DISTRIBUTIONS.get(library, library)}."
        raise MissingLibraryError("The model", f"the library {library}", "it is not installed", then) from error


# ==== The table of supported models, as the readers name them: for docs/reference/models.md and for ``ceopt models`` ==

#: How each kind of model is embedded, in the words of docs/reference/models.md.
_EMBEDDED: Final[Mapping[str, str]] = {
    "linear": "one row per rival class",
    "trees": "ordered split binaries shared by all trees, no coordinates and no big-M",
    "networks": "a binary per neuron that can switch, within back-substituted bounds that a known answer tightens",
    "models of models": "members' scores or votes added up; soft votes of trees and forests, one calibrator",
}


def supported() -> pd.DataFrame:
    """Return what each reader reads: library, models (as text, and as tuple ``names``), and how they are embedded.

    A reader says so in ``MODELS``, a mapping from the kind of model to names, so a reader that joins the folder joins
    the table.

    Raises
    ------
    UnknownNameError
        A kind in ``MODELS`` is none of those that are embedded.

    Examples
    --------
    >>> frame = supported()
    >>> list(frame.columns)
    ['library', 'models', 'embedded', 'names']
    >>> frame.loc[frame["library"] == "sklearn", "models"].str.contains("RandomForestClassifier").any()
    np.True_
    """
    rows = []
    for reader in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{reader.name}")
        for kind, names in getattr(module, "MODELS", {}).items():
            if kind not in _EMBEDDED:
                raise UnknownNameError.among(f"MODELS of {module.__name__}", "kind of model", kind, _EMBEDDED)
            rows.append((reader.name, ", ".join(names), _EMBEDDED[kind], names))
    return pd.DataFrame(rows, columns=["library", "models", "embedded", "names"])


def markdown() -> str:
    """Return the same as the table in docs/reference/models.md."""
    head = ["| library | models read | how they are embedded |", "|---|---|---|"]
    rows = supported().itertuples(index=False)
    return "\n".join([*head, *(f"| `{row.library}` | {row.models} | {row.embedded} |" for row in rows)])
