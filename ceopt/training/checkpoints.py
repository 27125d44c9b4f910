"""Training on disk after each epoch, so that an interruption costs one epoch at most."""

from __future__ import annotations

import json
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.errors import InvalidValueError, UnreadableFileError, UnwritableFileError

__all__ = ["restored", "saved"]

#: Changed whenever what is written changes its meaning.
_FORM: Final = 1
_HEAD: Final = "head"
_THEN: Final = "Name another file, or delete this one to begin anew."


def saved(who: str, path: Path, head: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
    """Write what is known after an epoch; the file is the old one or the new one at any time.

    Raises
    ------
    UnwritableFileError
        The folder is not there or takes no more.
    """
    entries = {f"array{place}": array for place, array in enumerate(arrays)}
    text = json.dumps({"form": _FORM, **head}).encode()
    written = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, suffix=".part", delete=False) as file:
            written = Path(file.name)
            np.savez(file, **{_HEAD: np.frombuffer(text, dtype=np.uint8)}, **entries)  # type: ignore[arg-type]
        written.replace(path)
    except OSError as error:
        raise _unwritable(who, path, str(error.strerror)) from error
    finally:
        if written is not None:
            written.unlink(missing_ok=True)  # gone already if it became the checkpoint


def _unwritable(who: str, path: Path, why: str) -> UnwritableFileError:
    but = f"checkpoint is {str(path)!r} ({why})"
    return UnwritableFileError(who, "a file that can be written", but, "Name a file in a folder of yours.")


def restored(
    who: str, path: Path, made_by: dict[str, Any], shapes: list[NDArray[Any]]
) -> tuple[dict[str, Any], list[NDArray[Any]]] | None:
    """Return what a checkpoint knows; None where there is none yet.

    Parameters
    ----------
    who
        Who asks.
    path
        The file.
    made_by
        Model, settings and data: the entry "made_by" that the checkpoint must have.
    shapes
        Arrays of the shapes and types that the checkpoint must hold.

    Raises
    ------
    UnreadableFileError
        What is no checkpoint, or is cut off.
    InvalidValueError
        A checkpoint of another model, of other settings or of other data.
    UnwritableFileError
        No checkpoint, and no folder for one.
    """
    if not path.exists():
        if not path.parent.is_dir():  # else it would be found out after an epoch
            raise _unwritable(who, path, "No such folder")
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            head = json.loads(file[_HEAD].tobytes())
            form = head["form"]
            theirs = dict(head["made_by"])
            arrays = [file[f"array{place}"] for place in range(len(file.files) - 1)]
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        but = f"{str(path)!r} is none, or cut off"
        raise UnreadableFileError(who, "a checkpoint that ceopt wrote", but, _THEN) from error
    if form != _FORM:
        but = f"{str(path)!r} has form {form!r}"
        raise UnreadableFileError(who, f"a checkpoint of form {_FORM}", but, _THEN)
    _require_same(who, path, theirs, made_by)
    if [(array.shape, array.dtype) for array in arrays] != [(array.shape, array.dtype) for array in shapes]:
        but = f"the arrays of {str(path)!r} have other shapes"
        raise UnreadableFileError(who, "a checkpoint that ceopt wrote", but, _THEN)
    return head, arrays


def _require_same(who: str, path: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Refuse a checkpoint of another model, other settings or other data, naming the first that differs."""
    ours = json.loads(json.dumps(ours))  # tuples are lists in the file
    for name, value in ours.items():
        if theirs.get(name) == value:
            continue
        if name == "data":
            but = f"{str(path)!r} is one of other data"
        else:
            but = f"{str(path)!r} is one with {name}={theirs.get(name)!r}, not {value!r}"
        raise InvalidValueError(who, "a checkpoint of this model, with these settings and data", but, _THEN)
