"""Files that are written whole or not at all, and read as text; what is wrong with a path is a sentence."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Self

from ceopt.solvers.errors import (
    CeoptError,
    InvalidTypeError,
    InvalidValueError,
    UnreadableFileError,
    UnwritableFileError,
)

#: What may stand for half of a surrogate pair, as JSON writes it or as it is.
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_FOLDER = "a folder that exists"
_FILE = "a file that can be written"
_STAYS = "what stood there before is untouched"
#: What is needed, what is wrong with the file, what to do.
_SAYS: dict[int, tuple[str, str, str]] = {
    errno.ENOENT: (_FOLDER, "", "Make the folder first."),
    errno.ENOTDIR: (_FOLDER, "", "Make the folder first."),
    errno.EISDIR: (_FILE, ", which is a folder", "Give the name of a file in it."),
    errno.ENAMETOOLONG: (_FILE, ", which is longer than a name can be", "Give a shorter one."),
    errno.ENOSPC: (_FILE, f" on a disk that is full ({_STAYS})", "Make room."),
    errno.EDQUOT: (_FILE, f" beyond the quota of its disk ({_STAYS})", "Make room."),
    errno.EFBIG: (_FILE, f" and larger than a file may be here ({_STAYS})", "Raise the limit."),
    errno.EACCES: (_FILE, ", which may not be written", "Check who may write it and its folder."),
    errno.EPERM: (_FILE, ", which may not be written", "Check who may write it and its folder."),
    errno.EROFS: (_FILE, " on a disk that is read only", "Write it elsewhere."),
}


def file_path(who: str, path: Any, option: str = "path") -> Path:
    """Return the path that an argument ``option`` gives, or refuse anything else."""
    if not isinstance(path, str | os.PathLike):
        given = (
            f"{option} is {path!r}" if isinstance(path, int | float | bytes) else f"{option} is {type(path).__name__}"
        )
        raise InvalidTypeError(who, "a path as text or pathlib.Path", given, "Give the name of a file.")
    text = os.fspath(path)
    if not isinstance(text, str) or "\0" in text or not text:
        raise InvalidValueError(who, "a path without NUL bytes", f"{option} is {text!r}", "Give the name of a file.")
    return Path(path)


def write_text(who: str, path: Any, text: str, option: str = "path") -> None:
    """Write one file as UTF-8, whole or not at all; see :func:`write_files`."""
    place = file_path(who, path, option)
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        but = f"{text[error.start : error.end]!r} is in it"
        then = "Name columns and levels without halves of surrogate pairs."
        raise InvalidValueError(who, "text that can be encoded", but, then) from error
    write_files(who, {place: data})


def write_files(who: str, files: Mapping[Path, bytes]) -> None:
    """Write files beside where they belong and, once all are whole, move them into place in the order given.

    A disk that is full, a limit or an end of the process leaves what stood there before. A new file has the mode that
    the process gives to new files, one that is replaced keeps its own. A link stays and what it points to is replaced;
    a pipe or a device is written as it is.

    Raises
    ------
    UnwritableFileError
        A folder that is missing, a path that is a folder, too long or may not be written; a disk that takes no more.
    """
    with contextlib.ExitStack() as stack:
        written: list[tuple[Path, _Beside | None]] = []
        for path, data in files.items():
            with named_failures(who, path):
                place = _behind_links(path)
                beside = None
                if place is not None:
                    beside = stack.enter_context(_Beside(place))
                if beside is not None:
                    beside.write(data)
                written.append((path, beside))
        for (path, beside), data in zip(written, files.values(), strict=True):
            with named_failures(who, path):
                if beside is not None:
                    beside.move()
                    continue
                with path.open("wb") as file:
                    file.write(data)


def require_place(who: str, path: Path) -> None:
    """Refuse, before work starts, a path at which no file can be put."""
    with named_failures(who, path):
        place = _behind_links(path)
        if place is not None and not place.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


class _Beside:
    """A new file in the folder of ``place``: without a name, where the system has such, until it is moved there."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.name = place.with_name(f".ceopt-{secrets.token_hex(8)}")
        self.mode: int | None = None
        with contextlib.suppress(FileNotFoundError):
            self.mode = stat.S_IMODE(place.stat().st_mode)
            if not os.access(place, os.W_OK):  # to be replaced it need not be writable, and should be
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        self.file: IO[bytes] = self._opened()

    def _opened(self) -> IO[bytes]:
        if hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").is_dir():
            with contextlib.suppress(OSError):  # not every file system has files without a name
                return os.fdopen(os.open(self.place.parent, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb")
        return self.name.open("xb")

    def __enter__(self) -> Self:
        return self

    def write(self, data: bytes) -> None:
        self.file.write(data)
        self.file.flush()
        if self.mode is not None and hasattr(os, "fchmod"):
            os.fchmod(self.file.fileno(), self.mode)

    def move(self) -> None:
        """Move the file to its place."""
        if not self.name.exists():
            number = self.file.fileno()  # src_dir_fd means nothing for a full path, but that the link is followed
            os.link(f"/proc/self/fd/{number}", self.name, src_dir_fd=number)
        self.file.close()
        self.name.replace(self.place)

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # what could not be written cannot be flushed either
            self.file.close()
        with contextlib.suppress(OSError):
            self.name.unlink()


def _behind_links(path: Path) -> Path | None:
    """Return the file to replace; None for a pipe, a device or an open descriptor, which are written as they are."""
    for _ in range(40):
        folder = str(path.parent.resolve())
        if folder == "/dev" or folder.startswith("/proc/"):
            return None
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return path
    if stat.S_ISREG(kind):
        return path
    return None


@contextmanager
def named_failures(who: str, path: Path) -> Iterator[None]:
    """Turn the system's error about a path into a sentence."""
    try:
        yield
    except UnwritableFileError:
        raise
    except OSError as error:
        other = (_FILE, f", which cannot be ({error.strerror or error})", "Check the path.")
        needs, why, then = _SAYS.get(error.errno or 0, other)
        raise UnwritableFileError(who, needs, f"the file is {_short(str(path))}{why}", then) from error


def read_text(who: str, path: Path) -> str:
    """Read a file of UTF-8 text, with or without its mark.

    Raises
    ------
    UnreadableFileError
        No such file, a folder, or text in another encoding.
    """
    needs = "a file of UTF-8 text"
    source = f"file {_short(str(path))}"
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeError as error:
        then = "Save it as UTF-8."
        raise UnreadableFileError(who, needs, f"{source} is in another encoding ({error})", then) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UnreadableFileError(who, needs, f"{source} cannot be read ({reason})", "Check the path.") from error


def json_document(who: str, text_or_path: Any) -> tuple[str, Any]:
    """Read JSON from text that starts with a bracket or from a file; give its source in words, and what it holds.

    Raises
    ------
    InvalidTypeError
        Neither text nor a path.
    UnreadableFileError
        No such file, or no JSON in it.
    """
    if not isinstance(text_or_path, str | Path):
        kind = type(text_or_path).__name__
        raise InvalidTypeError(who, "JSON text or a path", f"it got {kind}", "Give one of them.")
    source = "the text"
    text = str(text_or_path).lstrip("\ufeff \t\r\n")
    if isinstance(text_or_path, Path) or not text.startswith(("{", "[")):
        source = f"file {_short(str(text_or_path))}"
        text = read_text(who, Path(text_or_path))
    return source, json_in(who, source, text)


def json_in(
    who: str, source: str, text: str, then: str = "Write it anew with to_json.", *, needs: str = "JSON", **hooks: Any
) -> Any:
    """Return what a text of JSON holds; ``hooks`` are those of ``json.loads``.

    Raises
    ------
    UnreadableFileError
        No JSON; or a text in it that cannot be encoded, for half of a surrogate pair.
    """
    try:
        document = json.loads(text, **hooks)
        if _HALF.search(text) is not None:
            json.dumps(document, ensure_ascii=False).encode()
    except CeoptError:
        raise
    except RecursionError as error:
        but = f"{source} nests too deeply to be read"
        raise UnreadableFileError(who, "JSON of its own format", but, then) from error
    except UnicodeError as error:
        but = f"a text in {source} has half of a surrogate pair"
        raise UnreadableFileError(who, "JSON of texts that can be encoded", but, then) from error
    except ValueError as error:
        raise UnreadableFileError(who, needs, f"{source} is not ({error})", then) from error
    return document


def _short(path: str) -> str:
    return repr(path if len(path) <= 200 else f"{path[:80]}...{path[-80:]}")
