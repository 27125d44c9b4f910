"""Inputs of a command: a saved model, a table of people, a space, a target given as text."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import pandas as pd

from ceopt.checking.answer_check import ModelOracle
from ceopt.checking.functions import FunctionOracle
from ceopt.cli.inferred_space import inferred_space
from ceopt.cli.tables import read_table
from ceopt.cli.text_columns import text_columns
from ceopt.formulations.predictors.read import SUFFIXES, is_function, open_model
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.targets import AtLeast, AtMost, Between, OtherThan, Probability
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import (
    CeoptError,
    InvalidValueError,
    UnknownNameError,
    UnreadableFileError,
    counted,
    printable,
)

__all__ = ["CommandInputs", "Move", "read_inputs", "read_model", "read_target"]

#: How an option says that a column may move.
Move = Literal["fixed", "up", "down"]


@final
@dataclass(frozen=True, slots=True)
class CommandInputs:
    """What ``ceopt explain`` and ``ceopt export`` work on.

    Parameters
    ----------
    model, space
        The fitted model, and its columns.
    data
        Rows of the file that the space can hold, columns of the space.
    rows
        The rows asked about, labelled by their position in the file.
    target
        As :func:`ceopt.explain` takes it.
    notes
        What was assumed, one sentence each.
    """

    model: Any
    space: FeatureSpace
    data: pd.DataFrame
    rows: pd.DataFrame
    target: Any
    notes: tuple[str, ...]


def read_inputs(
    model_path: Path,
    data_path: Path,
    *,
    rows: Sequence[int],
    target: str,
    space_path: Path | None,
    moves: Mapping[str, Move],
    categorical: Sequence[str],
    label_columns: Sequence[str],
    allow_pickle: bool,
    may_be_function: bool = False,
    show_space: bool = False,
) -> CommandInputs:
    """Read everything, or say in one sentence which file, column or option is at fault.

    A function of rows in place of a model is taken where it ``may_be_function``. The space is among the notes where it
    is to be shown; what is easily overlooked in one that was inferred always is.

    Raises
    ------
    UnreadableFileError, MissingLibraryError
        A file that is missing, truncated or not what its name says; parquet without pyarrow.
    InvalidValueError, UnknownNameError
        A pickle that was not allowed; an unknown column, label or row.
    """
    model = read_model(model_path, allow_pickle=allow_pickle, may_be_function=may_be_function)
    space = None if space_path is None else FeatureSpace.from_json(space_path)
    codes = categorical if is_function(model) else ()
    frame, *notes = read_table(data_path, space, texts=text_columns(model), codes=codes)
    for name in label_columns:
        if name not in frame.columns:
            raise UnknownNameError.among("--label-column", "column", name, frame.columns)
    features = frame.drop(columns=list(label_columns))
    known = getattr(model, "feature_names_in_", None) if space is None else space.names
    extra = [name for name in features.columns if known is not None and name not in list(known)]
    if extra:
        who = "the model" if space is None else "the space"
        notes.append(f"Left out, as {who} does not know them: {', '.join(map(str, extra))}.")
        features = features.drop(columns=extra)
    if not len(features.columns):
        who = "the model" if space is None else "the space"
        wanted = "" if known is None else f" ({', '.join(map(str, known))})"
        but = f"{str(data_path)!r} has only {', '.join(map(str, frame.columns[:10]))}"
        raise UnreadableFileError("DATA", f"columns that {who} knows{wanted}", but, "Check the file and its header.")
    if space is None:
        space, seen = inferred_space(features, categorical=categorical, settled=moves)
        shown = "" if show_space else "; --show-space prints it"
        notes += [f"The space is inferred from {data_path} (no --space was given){shown}.", *seen]
    elif categorical:
        then = "Say it in the file of the space, or leave --space out."
        raise InvalidValueError("--categorical", "a space that is inferred", "--space is given", then)
    space = _moved(space, moves)
    notes = [printable(note) for note in notes]
    if show_space:
        notes.append(str(space))
    for name in space.names:
        if name not in features.columns:
            raise UnreadableFileError("DATA", f"column {name!r}", f"{str(data_path)!r} has none", "Add it.")
    asked = _asked(features[list(space.names)], rows, data_path)
    data, note = _usable(features[list(space.names)], space)
    wanted = read_target(target, _labels_of(model, space, data))
    return CommandInputs(model, space, data, asked, wanted, (*notes, *note))


def _moved(space: FeatureSpace, moves: Mapping[str, Move]) -> FeatureSpace:
    """Return the space with columns that move as options say."""
    for name, move in moves.items():
        space = space.fix(name) if move == "fixed" else space.update(name, direction=move)
    return space


def _labels_of(model: Any, space: FeatureSpace, data: pd.DataFrame) -> tuple[Any, ...] | None:
    """Return the model's classes, those that a function gives to the rows of data, or None of a regressor."""
    if not is_function(model):
        return ModelOracle(model, space).labels
    said = FunctionOracle(model, space).predict(data)
    if said.dtype.kind == "f" and (said != np.floor(said)).any():
        return None
    return tuple(plain(label) for label in pd.unique(pd.Series(said)).tolist())


def read_model(path: Path, *, allow_pickle: bool, may_be_function: bool = False) -> Any:
    """Open a model that its library saved (ONNX, XGBoost, LightGBM), or load what ``joblib.dump`` wrote."""
    who = "MODEL"
    if not os.path.isfile(path):  # noqa: PTH113 - of a path that is too long, Path.is_file raises
        raise UnreadableFileError(who, "a file", f"{str(path)!r} is none", "Check the path.")
    if path.suffix.lower() in SUFFIXES:
        return open_model(path)
    _refuse_tables(who, path)
    if not allow_pickle:
        raise InvalidValueError(
            who, "--allow-pickle to be opened", f"{str(path)!r} is a pickle, which runs code when it is loaded",
            "Add --allow-pickle if you trust where the file comes from.",
        )  # fmt: skip
    import joblib

    try:
        model = joblib.load(path)
    except Exception as error:
        but = f"{str(path)!r} cannot be loaded ({type(error).__name__}: {_line(error)})"
        raise UnreadableFileError(
            who, "a model saved by joblib.dump", but,
            "Save it anew, and load it where the libraries that it was made with are installed.",
        ) from error  # fmt: skip
    if not hasattr(model, "predict") and not (may_be_function and is_function(model)):
        raise UnreadableFileError(
            who,
            "a model with predict",
            f"{str(path)!r} holds a {type(model).__name__}",
            "Save the fitted model itself; a function of rows needs --surrogate.",
        )
    return model


def _refuse_tables(who: str, path: Path) -> None:
    """Refuse what is text, and so no pickle, before anybody is asked to trust it."""
    with path.open("rb") as file:
        start = file.read(512)
    with contextlib.suppress(UnicodeDecodeError):
        line = start.decode().splitlines()[0] if start.strip() else ""
        held = f"it is text that begins {line[:60]!r}" if line else "it is empty"
        if start[:1] not in {b"(", b"c"} and b"\0" not in start:  # with which pickles of the oldest kinds begin
            raise UnreadableFileError(
                who, "a saved model", f"{str(path)!r} cannot be loaded: {held}",
                f"Give the model first, then DATA; models are {', '.join(SUFFIXES)} or what joblib.dump writes.",
            )  # fmt: skip


def _asked(frame: pd.DataFrame, rows: Sequence[int], path: Path) -> pd.DataFrame:
    for row in rows:
        if not 0 <= row < len(frame):
            but = f"it is {row} and {str(path)!r} has {counted(len(frame), 'row')}"
            raise InvalidValueError(
                "--row", f"a position from 0 to {len(frame) - 1}", but, "Count from 0, the header left out."
            )
    return frame.reset_index(drop=True).iloc[list(rows)]


def _usable(frame: pd.DataFrame, space: FeatureSpace) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the rows that the space can hold, and a note on the others."""
    with contextlib.suppress(CeoptError):
        space.coordinates(frame)
        return frame, ()
    reasons: dict[int, str] = {}
    for place in range(len(frame)):
        try:
            space.coordinates(frame.iloc[[place]])
        except CeoptError as error:
            reasons[place] = str(error)
    first, reason = next(iter(reasons.items()))
    if len(reasons) == len(frame):
        raise UnreadableFileError("DATA", "a row that the space can hold", "there is none", f"Row {first}: {reason}")
    note = f"{counted(len(reasons), 'row')} not used as examples; the first is row {first}: {reason}"
    return frame.drop(index=frame.index[list(reasons)]), (printable(note),)


def read_target(text: str, labels: tuple[Any, ...] | None) -> Any:
    """Turn a target given as text into one of the model's own labels, or a regressor's range of values.

    A range is ``">=5"``, ``"<=5"`` or ``"5..8"``. Several classes are ``"good|fair"``, any but one ``"!bad"``, and a
    probability is ``"good>=0.6"``.

    Examples
    --------
    >>> read_target("1", (0, 1)), read_target("true", (False, True)), read_target(">=5", None)
    (1, True, AtLeast(value=5.0))
    >>> read_target("good|fair", ("bad", "fair", "good")), read_target("!bad", ("bad", "fair", "good"))
    (['good', 'fair'], OtherThan(label='bad'))
    >>> read_target("good>=0.6", ("bad", "good"))
    Probability(label='good', at_least=0.6)
    """
    if labels is None:
        return _range(text)
    known = _label(text, labels)
    if known is not None:
        return known
    if "|" in text:
        return [_required(part, labels) for part in text.split("|")]
    if text.startswith("!"):
        return OtherThan(_required(text[1:], labels))
    label, _, share = text.rpartition(">=")
    try:
        return Probability(_required(label, labels), float(share))
    except ValueError as error:
        raise UnknownNameError.among("--target", "class of the model", text, labels) from error


def _required(text: str, labels: tuple[Any, ...]) -> Any:
    label = _label(text.strip(), labels)
    if label is None:
        raise UnknownNameError.among("--target", "class of the model", text.strip(), labels)
    return label


def _label(text: str, labels: tuple[Any, ...]) -> Any:
    return next((label for label in labels if _means(text, label)), None)


def _means(text: str, label: Any) -> bool:
    if isinstance(label, bool):
        return text.lower() == str(label).lower()
    if isinstance(label, int | float):
        with contextlib.suppress(ValueError):
            return float(text) == label
    return text == str(label)


def _range(text: str) -> Any:
    try:
        if text.startswith(">="):
            return AtLeast(float(text[2:]))
        if text.startswith("<="):
            return AtMost(float(text[2:]))
        low, _, high = text.partition("..")
        return Between(float(low), float(high or math.nan))
    except ValueError as error:
        if isinstance(error, CeoptError) and ".." in text:
            raise
        raise InvalidValueError(
            "--target", "a range, as the model is a regressor", f"it is {text!r}", "Write '>=5', '<=5' or '5..8'."
        ) from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
