"""Training on disk after each epoch, so that an interruption costs one epoch at most."""

from __future__ import annotations

import json
import math
import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.checks import is_number, is_whole
from ceopt.solvers.errors import InvalidValueError, UnreadableFileError, UnwritableFileError

__all__ = ["restored", "saved"]

#: Changed whenever what is written changes its meaning.
_FORM: Final = 1
_HEAD: Final = "head"
#: Bytes of the head, which has a line a past epoch, and of what numpy and zip put around each array.
_MOST_OF_HEAD: Final = 1 << 26
_MOST_AROUND: Final = 1 << 12
#: Losses of an epoch in the head: prediction, validity, proximity, radius and, nan without one, held_out.
_LOSSES: Final = 5
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
    if not os.path.exists(path):  # noqa: PTH110 - of a path that is too long, Path.exists raises
        if not os.path.isdir(path.parent):  # noqa: PTH112 - likewise; else it would be found out after an epoch
            raise _unwritable(who, path, "No such folder")
        return None
    try:
        head, arrays = _read(path, shapes)
        _require_head(head)
    except Exception as error:  # zipfile, numpy and json raise what their own parts raise, of many kinds
        but = f"{str(path)!r} is none, or cut off"
        raise UnreadableFileError(who, "a checkpoint that ceopt wrote", but, _THEN) from error
    if head["form"] != _FORM:
        but = f"{str(path)!r} has form {head['form']!r}"
        raise UnreadableFileError(who, f"a checkpoint of form {_FORM}", but, _THEN)
    _require_same(who, path, head["made_by"], made_by)
    if arrays is None:
        but = f"the arrays of {str(path)!r} have other shapes"
        raise UnreadableFileError(who, "a checkpoint that ceopt wrote", but, _THEN)
    return head, arrays


def _read(path: Path, shapes: Sequence[NDArray[Any]]) -> tuple[Any, list[NDArray[Any]] | None]:
    """Return the head and the arrays of a file, None in their place where they have other shapes.

    Nothing is read that is larger than what is expected, whatever a header claims.
    """
    expected = sum(array.nbytes + _MOST_AROUND for array in shapes) + _MOST_OF_HEAD
    _expect(path.is_file() and path.stat().st_size <= expected)
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():  # savez does not pack, and what is packed may be of any size
            _expect(entry.compress_type == zipfile.ZIP_STORED and entry.file_size <= expected)
        with archive.open(f"{_HEAD}.npy") as file:
            size, dtype, _ = _header(file)
            _expect(dtype == np.uint8 and len(size) == 1 and size[0] <= _MOST_OF_HEAD)
            head = json.loads(file.read())
        names = {f"array{place}.npy" for place in range(len(shapes))}
        if {entry.filename for entry in archive.infolist()} != names | {f"{_HEAD}.npy"}:
            return head, None
        arrays = []
        for place, shape in enumerate(shapes):
            with archive.open(f"array{place}.npy") as file:
                size, dtype, order = _header(file)
                if (size, dtype) != (shape.shape, shape.dtype):
                    return head, None
                values = np.frombuffer(file.read(), dtype=dtype).reshape(size, order=order)
                _expect(dtype.kind != "f" or not np.isnan(values).any())
                arrays.append(values)
    return head, arrays


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], Any]:
    """Return shape, dtype and order of an array, of which nothing else is read."""
    version = np.lib.format.read_magic(file)
    _expect(version == (1, 0))  # what numpy writes of plain numbers
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype, "F" if is_fortran else "C"


def _require_head(head: Any) -> None:
    """Refuse a head in which a field is missing or holds something else."""
    _expect(isinstance(head, dict) and is_whole(head["form"]) and isinstance(head["made_by"], dict))
    if head["form"] != _FORM:
        return
    _expect(is_number(head["best_loss"]) and not math.isnan(head["best_loss"]))
    _expect(is_whole(head["waited"]) and head["waited"] >= 0)
    _expect(isinstance(head["history"], list))
    for losses in head["history"]:
        _expect(isinstance(losses, list) and len(losses) == _LOSSES and all(is_number(loss) for loss in losses))
        _expect(all(math.isfinite(loss) for loss in losses[:-1]) and not math.isinf(losses[-1]))


def _expect(holds: bool) -> None:
    if not holds:
        raise ValueError


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
