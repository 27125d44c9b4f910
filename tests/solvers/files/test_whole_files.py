"""Files are written whole or not at all: a full disk, a limit, an end of the process leave what stood there."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pyomo.environ as pyo
import pytest

from ceopt import Feature, FeatureSpace
from ceopt.solvers import write
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnwritableFileError
from ceopt.solvers.whole_files import read_text, write_files, write_text

SPACE = FeatureSpace([Feature(f"column_{k}", kind="integer", lower=0, upper=9) for k in range(40)])


def program(n: int = 60) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), bounds=(0, 1))
    model.row = pyo.Constraint(expr=sum(model.x[k] for k in range(n)) >= 1)
    model.cost = pyo.Objective(expr=sum((k + 1) * model.x[k] for k in range(n)))
    return model


WRITERS = {
    "space.json": SPACE.to_json,
    "m.lp": lambda path: write(program(), path),
    "m.mps": lambda path: write(program(), path),
    "m.cbf": lambda path: write(program(), path),
}


@pytest.fixture(params=[*WRITERS, "m.ptf"])
def case(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "m.ptf":
        pytest.importorskip("mosek")
    writer = WRITERS.get(request.param, WRITERS["m.lp"])
    return tmp_path / request.param, writer


@contextlib.contextmanager
def limited():
    """Files of at most 300 bytes: no longer than it takes, as pytest itself may be writing to one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_limit_leaves_the_old_files_whole_and_nothing_beside(case):
    path, writer = case
    writer(path)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert all(len(text) > 300 for text in before.values())

    with limited(), pytest.raises(UnwritableFileError, match=re.escape(repr(str(path))[:-1])) as caught:
        writer(path)

    assert isinstance(caught.value, OSError)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_table_of_names_that_does_not_fit_leaves_the_program_too(tmp_path):
    model = program(2)
    write(model, tmp_path / "m.cbf")
    before = (tmp_path / "m.cbf").read_bytes()
    assert len(before) < 300 < (tmp_path / "m.cbf.names.json").stat().st_size
    model.cost.expr *= 2

    with limited(), pytest.raises(UnwritableFileError, match=r"m.cbf.names.json'.*larger than a file may be here"):
        write(model, tmp_path / "m.cbf")

    assert (tmp_path / "m.cbf").read_bytes() == before


def test_the_names_stand_there_before_the_program(tmp_path, monkeypatch):
    moved = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, place: (moved.append(Path(place).name), replace(self, place)))

    write(program(), tmp_path / "m.lp")

    assert moved == ["m.lp.names.json", "m.lp"]


@pytest.mark.long
def test_a_process_that_ends_while_it_writes_leaves_nothing_else(tmp_path):
    """Between the last byte and the move is the worst moment."""
    (tmp_path / "a").write_text("old")
    code = (
        "import os, sys, ceopt.solvers.whole_files as files\n"
        "files._Beside.move = lambda self: os.kill(os.getpid(), 9)\n"
        "files.write_text('test', sys.argv[1], 'new' * 100000)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=False)

    assert ended.returncode == -9
    assert (tmp_path / "a").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_where_files_have_names_at_once_the_same_holds(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE")
    write_text("test", tmp_path / "a", "old")
    write_text("test", tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"

    with limited(), pytest.raises(UnwritableFileError):
        write_text("test", tmp_path / "a", "newer" * 100)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "new")]


def test_a_full_disk_is_a_sentence():
    if not Path("/dev/full").exists():
        pytest.skip("/dev/full is not there")
    with pytest.raises(UnwritableFileError, match=r"FeatureSpace.to_json needs .*'/dev/full' on a disk that is full"):
        SPACE.to_json("/dev/full")


@pytest.mark.long
def test_pipes_and_standard_output_are_written_as_they_are(tmp_path):
    code = "from ceopt.solvers.whole_files import write_text as w\nw('t', '/dev/stdout', 'one ')\nprint('two')"
    piped = subprocess.run([sys.executable, "-u", "-c", code], check=True, capture_output=True, text=True)
    assert piped.stdout == "one two\n"

    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_text("test", tmp_path / "pipe", "through")
    reader.join(timeout=10)
    assert read == ["through"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "real").write_text("old")
    (tmp_path / "middle").symlink_to("deep/real")
    (tmp_path / "link").symlink_to(tmp_path / "middle")
    (tmp_path / "dangling").symlink_to("deep/new")

    write_text("test", tmp_path / "link", "new")
    write_text("test", str(tmp_path / "dangling"), "made")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert (tmp_path / "deep" / "real").read_text() == "new"
    assert (tmp_path / "deep" / "new").read_text() == "made"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UnwritableFileError, match="'.*loop'"):
        write_text("test", tmp_path / "loop", "never")


def test_the_mode_is_an_ordinary_files(tmp_path):
    before = os.umask(0o027)
    try:
        write_text("test", tmp_path / "new", "a")
        (tmp_path / "old").write_text("b")
        (tmp_path / "old").chmod(0o604)
        write_text("test", tmp_path / "old", "c")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o604


def test_a_file_that_may_not_be_written_is_kept(tmp_path, monkeypatch):
    write_text("test", tmp_path / "kept", "old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # as root, every file may be written
    with pytest.raises(UnwritableFileError, match="kept', which may not be written"):
        write_text("test", tmp_path / "kept", "new")
    assert (tmp_path / "kept").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent/a.json", r"a folder that exists, but the file is '.*absent/a.json'\. Make the folder first\."),
        ("file/a.json", r"a folder that exists, but the file is '.*file/a.json'"),
        ("folder", "'.*folder', which is a folder. Give the name of a file in it."),
        ("long" * 80 + ".json", "which is longer than a name can be"),
        ("a\0b", r"a path without NUL bytes, but path is '.*a\\x00b'"),
    ],
)
def test_a_path_that_cannot_be_written_is_named(tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValueError, match=f"^FeatureSpace.to_json needs .*{message}"):
        SPACE.to_json(f"{tmp_path}/{name}")


def test_a_program_is_refused_likewise_and_before_work_starts(tmp_path):
    (tmp_path / "m.lp").mkdir()
    with pytest.raises(
        InvalidValueError, match="write needs a file that can be written, but .*m.lp', which is a folder"
    ):
        write(None, tmp_path / "m.lp")
    with pytest.raises(InvalidValueError, match="write needs a folder that exists"):
        write(None, tmp_path / "absent" / "m.lp")
    with pytest.raises(InvalidValueError, match="NUL"):
        write(None, f"{tmp_path}/\0.lp")


@pytest.mark.parametrize("path", [5, 2.5, b"a.lp", ["a.lp"], True])
def test_what_is_no_path_is_refused(path):
    for call in (SPACE.to_json, lambda p: write(program(2), p)):
        with pytest.raises(InvalidTypeError, match=r"needs a path as text or pathlib.Path, but path is "):
            call(path)


def test_the_error_crosses_a_process(tmp_path):
    with pytest.raises(CeoptError) as caught:
        write_files("test", {tmp_path / "no" / "file": b""})
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert isinstance(again, UnwritableFileError)


def test_a_mark_of_utf_8_is_read_and_other_encodings_are_named(tmp_path):
    (tmp_path / "a.json").write_text(SPACE.to_json(), encoding="utf-8-sig")
    assert FeatureSpace.from_json(tmp_path / "a.json") == SPACE
    assert read_text("test", tmp_path / "a.json").startswith("{")

    (tmp_path / "a.json").write_text(SPACE.to_json(), encoding="utf-16")
    with pytest.raises(CeoptError, match=r"a.json' is in another encoding .*Save it as UTF-8"):
        FeatureSpace.from_json(tmp_path / "a.json")
