"""What is installed is what is written: the wheel, its list of files and its metadata."""

from __future__ import annotations

import email
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from sources import LINKS, ROOT, SHIPPED, checkout, pyproject, sources

import ceopt


def _has_build_backend() -> bool:
    """Whether the wheel can be built here with what is installed, without fetching anything."""
    try:
        return int(importlib.metadata.version("setuptools").partition(".")[0]) >= 77
    except importlib.metadata.PackageNotFoundError:
        return False


def _build(tree: Path, out: Path, *kinds: str) -> None:
    """Build from a copy without left-overs of earlier builds."""
    for name in checkout():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tree / name)
    isolation = ["--no-isolation"] if _has_build_backend() else []
    command = [sys.executable, "-m", "build", *isolation, *kinds, "--outdir", str(out), str(tree)]
    done = subprocess.run(command, cwd=out, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Source distribution, and the wheel that is built from it."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    (tree / "ceopt").mkdir()
    for link in LINKS:
        if (ROOT / link).is_symlink():
            (tree / link).symlink_to((ROOT / link).readlink())
    _build(tree, out)
    return out


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def _outside_metadata(wheel: zipfile.ZipFile) -> list[str]:
    return [name for name in wheel.namelist() if not name.partition("/")[0].endswith(".dist-info")]


def test_the_two_links_lead_to_the_rooms():
    for link in LINKS:
        path = ROOT / link
        if path.is_symlink():  # where a checkout cannot hold links, everything but static checking works without
            assert path.readlink().as_posix() == f"../{path.name}"


@pytest.mark.long
def test_wheel_holds_every_source_file_once_and_nothing_else(wheel):
    assert sorted(_outside_metadata(wheel)) == sorted(sources())


@pytest.mark.long
def test_a_checkout_without_the_links_gives_the_same_wheel(wheel, tmp_path):
    (tmp_path / "dist").mkdir()
    _build(tmp_path / "tree", tmp_path / "dist", "--wheel")
    (path,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as other:
        assert sorted(_outside_metadata(other)) == sorted(_outside_metadata(wheel))


@pytest.mark.long
def test_what_an_earlier_build_left_is_not_installed(wheel, tmp_path):
    """`pip install .` builds in the checkout: a package that had become a module was installed, and won over it."""
    tree, out = tmp_path / "tree", tmp_path / "out"
    left = tree / "build" / "lib" / "ceopt" / "population"
    left.mkdir(parents=True)
    out.mkdir()
    (left / "__init__.py").write_text("from ceopt.population.batch import Recourse\n", encoding="utf-8")
    _build(tree, out, "--wheel")
    (path,) = out.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == sorted(wheel.namelist())


def test_wheel_holds_files_as_they_are_in_the_repository(wheel):
    changed = [name for name, own in sources().items() if wheel.read(name) != (ROOT / own).read_bytes()]

    assert changed == []


@pytest.mark.parametrize(
    "name",
    [
        "ceopt/py.typed",
        "ceopt/cli/rules_schema.json",
        "ceopt/formulations/py.typed",
        "ceopt/solvers/py.typed",
        "ceopt/formulations/space/schema.json",
        "ceopt/report/templates/page.html",
        "ceopt/report/templates/parts.html",
        "ceopt/report/templates/people.html",
        "ceopt/report/templates/person.html",
        "ceopt/report/templates/sort.js",
        "ceopt/report/templates/style.css",
        "ceopt/solvers/ipopt.opt",
    ],
)
def test_wheel_holds_the_files_that_are_not_modules(wheel, name):
    assert name in wheel.namelist()


def test_wheel_tells_licence_version_and_command(wheel):
    (folder,) = {name.partition("/")[0] for name in wheel.namelist() if name.partition("/")[0].endswith(".dist-info")}
    metadata = email.message_from_bytes(wheel.read(f"{folder}/METADATA"))
    project = pyproject()["project"]

    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Version"] == project["version"]
    assert wheel.read(f"{folder}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert "ceopt = ceopt.cli.commands:app" in wheel.read(f"{folder}/entry_points.txt").decode()
    assert set(metadata.get_all("Provides-Extra")) == set(project["optional-dependencies"])


def test_source_distribution_holds_every_source_file_once(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()]

    rooms = ("ceopt/", "formulations/", "solvers/")
    assert sorted(name for name in names if name.startswith(rooms)) == sorted(sources().values())


def test_source_distribution_holds_every_file_of_the_project(built):
    """It alone builds the wheel (the fixture does so), passes the tests and makes the site."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers()}

    assert sorted(set(checkout()) - names) == []
    assert sorted(name for name in checkout() if not name.startswith(SHIPPED)) == []


def test_changelog_citation_and_project_agree_on_the_version():
    version = pyproject()["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^\]]*)\] - (\d{4}-\d{2}-\d{2})$", changes, re.MULTILINE)
    cited = re.search(r"^version: (?P<version>\S+)\ndate-released: (?P<date>\S+)$", citation, re.MULTILINE)

    assert cited is not None
    assert released[0] == (version, cited["date"])
    assert released == sorted(released, key=lambda entry: entry[1], reverse=True)
    assert re.findall(r"^## \[(\w+)\]", changes, re.MULTILINE)[0] == "Unreleased"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.skipif(
    os.environ.get("CEOPT_TEST_WHEEL") != "1", reason="set CEOPT_TEST_WHEEL=1 where the wheel is tested"
)
def test_the_tests_ran_on_the_installed_wheel():
    folder = Path(ceopt.__file__).resolve().parent
    assert folder.parent.name == "site-packages"

    installed = {
        path.relative_to(folder.parent).as_posix(): _digest(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert installed == {name: _digest((ROOT / own).read_bytes()) for name, own in sources().items()}
