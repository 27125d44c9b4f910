"""The origin of a result: the commit and the modules that a page names, and what makes it old."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def provenance(benchmarks: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The module over a repository of its own, with one commit."""
    module = importlib.import_module("provenance")
    (tmp_path / "search.py").write_text("one\n")
    (tmp_path / "other.py").write_text("one\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path, "first")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "_COMMIT", git(tmp_path, "rev-parse", "--short=7", "HEAD"))
    monkeypatch.setattr(module, "_CHANGED", [])
    monkeypatch.setattr(module, "REFACTORINGS", tmp_path / "refactorings.txt")
    module.REFACTORINGS.write_text("# none yet\n")
    monkeypatch.setattr(module, "LOST", tmp_path / "lost_commits.txt")
    module.LOST.write_text("# none yet\n")
    return module


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *name, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, subject: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", subject)


def page(module: Any, folder: Path) -> Path:
    path = folder / "page.md"
    path.write_text(f"# A page\n\n{module.text_of(module.source(['search.py']))}\n\nA table.\n")
    return path


def test_a_page_names_commit_and_modules(provenance: Any, tmp_path: Path) -> None:
    record = provenance.source(["search.py"])
    assert provenance.text_of(record) == f"Measured at commit `{record['commit']}`: `search.py`."
    assert provenance._age(page(provenance, tmp_path)) == ""
    assert provenance.text_of({"settings": {}}) == ""


def test_a_page_is_old_once_a_module_of_its_own_has_changed(provenance: Any, tmp_path: Path) -> None:
    written = page(provenance, tmp_path)
    (tmp_path / "other.py").write_text("two\n")
    commit(tmp_path, "another module")
    assert provenance._age(written) == ""
    (tmp_path / "search.py").write_text("two\n")
    commit(tmp_path, "its own module")
    assert provenance._age(written).endswith("its own module")
    assert "in 1 commits since" in provenance._age(written)


def test_commits_that_change_no_behaviour_do_not_count(provenance: Any, tmp_path: Path) -> None:
    written = page(provenance, tmp_path)
    (tmp_path / "search.py").write_text("two\n")
    commit(tmp_path, "names")
    named = git(tmp_path, "rev-parse", "--short=7", "HEAD").strip()
    provenance.REFACTORINGS.write_text(f"# why\n{named} names\n")
    assert provenance._age(written) == ""
    (tmp_path / "search.py").write_text("three\n")
    commit(tmp_path, "another search")
    assert "in 1 commits since" in provenance._age(written)


def test_the_list_of_refactorings_names_commits_of_this_history(benchmarks: Any) -> None:
    named = importlib.import_module("provenance").refactorings()
    assert named
    assert not_of_this_history(named) == set()


# ---- commits that are lost -------------------------------------------------------------------------------------------
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
#: A commit as pages name it: hexadecimal digits in backticks, or seven and more of them with a letter among them.
NAMED = re.compile(r"`([0-9a-f]{7,40})`|(?<![\w.`/-])(?=\d*[a-f])(?=[a-f]*\d)([0-9a-f]{7,40})(?![\w.`/-])")


def commits_of(text: str) -> set[str]:
    return {quoted or bare for quoted, bare in NAMED.findall(text)}


def not_of_this_history(named: Any) -> set[str]:
    """Return those of some commits that are not of this history, which must be here whole."""
    module = importlib.import_module("provenance")
    history = module._git("log", "--format=%H")
    if not history or module._git("rev-parse", "--is-shallow-repository") != "false\n":
        pytest.skip("the history is not here")
    commits = history.splitlines()
    return {short for short in named if not any(commit.startswith(short) for commit in commits)}


def test_commits_are_found_in_a_page() -> None:
    text = "At 703e96d (before), commit `3092597`: `ceopt/a1b2c3d`, 1234567 rows, 0.0327646, 1e-09, a defaced page."
    assert commits_of(text) == {"703e96d", "3092597"}


def test_a_page_names_commits_of_this_history_or_marks_them(benchmarks: Any) -> None:
    """A commit that was joined with others on its way here cannot be looked up, and its page says so."""
    named = {page.stem: commits_of(page.read_text(encoding="utf-8")) for page in RESULTS.glob("*.md")}
    assert len(set().union(*named.values())) > 20
    gone = not_of_this_history(set().union(*named.values()))
    listed = importlib.import_module("provenance").lost()
    assert gone == set(listed), "benchmarks/lost_commits.txt lists the commits of pages that are not of this history"
    assert not_of_this_history(listed.values()) == set()


def test_a_page_marks_every_lost_commit(benchmarks: Any) -> None:
    lost = importlib.import_module("provenance").lost()
    marked = set()
    for page in RESULTS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for commit in commits_of(text) & set(lost):
            assert f"{commit}` (not in this history: it came with `{lost[commit]}`" in text, page.name
            marked.add(commit)
    assert marked == set(lost), "a commit that no page names any more leaves benchmarks/lost_commits.txt"


def test_a_lost_commit_is_marked_and_its_age_is_that_of_the_commit_it_came_with(
    provenance: Any, tmp_path: Path
) -> None:
    came = git(tmp_path, "rev-parse", "--short=7", "HEAD").strip()
    provenance.LOST.write_text(f"# why\n0123abc {came}\n")
    record = {"commit": "0123abc", "changed": False, "measures": ["search.py"]}
    line = provenance.text_of(record)
    mark = f"(not in this history: it came with `{came}`; not run again since)"
    assert line == f"Measured at commit `0123abc` {mark}: `search.py`."
    assert provenance.marked("Asked later, at `0123abc`, at `3210cba`.") == (
        f"Asked later, at `0123abc` {mark}, at `3210cba`."
    )
    written = tmp_path / "page.md"
    written.write_text(f"# A page\n\n{line}\n")
    assert provenance._age(written) == f"measured at 0123abc, which is not in this history but came with {came}"
    (tmp_path / "search.py").write_text("two\n")
    commit(tmp_path, "its own module")
    assert "in 1 commits since" in provenance._age(written)
    assert provenance._age(written).startswith(
        f"measured at 0123abc, which is not in this history but came with {came}; "
    )
    changed = provenance.text_of(record | {"changed": True})
    assert changed == f"Measured at commit `0123abc` {mark} with changes of its own: `search.py`."


def test_changes_that_are_not_committed_are_named(provenance: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(provenance, "_CHANGED", ["search.py"])
    assert "with changes that were not committed" in provenance._age(page(provenance, tmp_path))


def test_a_page_without_a_commit_or_of_another_history_is_named(provenance: Any, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# A page\n\nA table.\n")
    assert provenance._age(tmp_path / "page.md") == "names no commit"
    (tmp_path / "page.md").write_text("Measured at commit `0123abc`: `search.py`.\n")
    assert "not in this history" in provenance._age(tmp_path / "page.md")


def test_a_module_that_was_moved_is_refused(provenance: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.py is not there"):
        provenance.source(["gone.py"])


def test_outside_a_repository_nothing_is_said(provenance: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(provenance, "_COMMIT", None)
    assert provenance.source(["search.py"]) == {}


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[2].glob("benchmarks/*.py")), ids=lambda path: path.stem)
def test_what_a_script_measures_is_there(benchmarks: Any, path: Path) -> None:
    script = path.read_text(encoding="utf-8")
    if "\nMEASURES = " in script:
        line = script.partition("\nMEASURES = ")[2].partition("\n")[0]
        importlib.import_module("provenance").source([part for part in line.split('"') if part.strip("(), ")])
