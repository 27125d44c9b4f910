"""Completion: what bash, zsh and fish ask the command, answered in this process."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ceopt
from ceopt.cli import commands as completion
from ceopt.cli.commands import app
from ceopt.cli.inputs import NAMES
from ceopt.formulations.costs import COSTS
from ceopt.formulations.predictors.embed import FORMULATIONS
from ceopt.recourse import explain
from ceopt.result.letter import AUDIENCES
from ceopt.solvers import available
from ceopt.words import LANGUAGES

SHELLS = ("bash", "zsh", "fish")


def answer(monkeypatch, capsys, shell, line):
    """What the command prints for a shell that has so much of a line, one candidate a line."""
    monkeypatch.setenv("_CEOPT_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit) as ended:
        app(prog_name="ceopt")
    assert ended.value.code == 0
    return capsys.readouterr().out


def words(printed):
    """Candidates without their descriptions, whatever the shell."""
    return [line.split("\t")[0].split(":")[0].strip("'\" ()") for line in printed.splitlines() if line.strip()]


@pytest.mark.parametrize("shell", SHELLS)
def test_options_are_completed(monkeypatch, capsys, shell):
    assert "--solver" in answer(monkeypatch, capsys, shell, "ceopt explain --so")
    assert "--surrogate" not in answer(monkeypatch, capsys, shell, "ceopt explain --so")


def test_options_of_bash_are_a_line_each(monkeypatch, capsys):
    assert words(answer(monkeypatch, capsys, "bash", "ceopt explain --so")) == ["--solver"]
    assert words(answer(monkeypatch, capsys, "bash", "ceopt ex")) == ["explain", "export"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("ceopt explain --solver hi", "highs"),
        ("ceopt explain --cost few", "few_changes"),
        ("ceopt explain --surrogate fish", "fisher_rao"),
        ("ceopt export --formulation or", "ordered"),
        ("ceopt report --language d", "de"),
        ("ceopt report --audience cu", "customer"),
    ],
)
def test_values_of_a_closed_list_are_completed(monkeypatch, capsys, shell, line, name):
    assert name in answer(monkeypatch, capsys, shell, line)


@pytest.mark.parametrize("line", ["ceopt explain mod", "ceopt explain --rules r", "ceopt report ans"])
def test_file_names_are_left_to_the_shell(monkeypatch, capsys, line):
    assert answer(monkeypatch, capsys, "bash", line).strip() == ""  # `complete -o default` then lists files
    assert answer(monkeypatch, capsys, "zsh", line).strip() == "_files"


def test_lists_are_those_of_the_program():
    assert completion.costs("") == list(COSTS)
    assert completion.languages("") == list(LANGUAGES)
    assert completion.audiences("") == list(AUDIENCES)
    assert completion.solver_names("") == ["auto", *available()["solver"]]
    assert completion.surrogates("") == list(NAMES)
    formulations = [name for kind in FORMULATIONS.values() for name in kind]
    assert completion.formulations("") == list(dict.fromkeys(["auto", *formulations]))


@pytest.mark.parametrize("line", ["version", "--version", "--help"])
def test_what_needs_no_library_imports_none(tmp_path, line):
    libraries = {"numpy", "pandas", "pyomo", "sklearn"}
    said = f"print(*({libraries} & set(sys.modules)), file=sys.stderr)"
    code = f"import sys\nfrom ceopt.cli.commands import app\ntry:\n    app([{line!r}])\nfinally:\n    {said}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == ""
    assert done.stdout.strip()


def test_the_version_is_said_by_an_option_too(capsys):
    for words_given in (["--version"], ["version"]):
        with pytest.raises(SystemExit) as ended:
            app(words_given)
        assert ended.value.code == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == said[1] == f"ceopt {ceopt.__version__}"

    assert explain.__kwdefaults__["formulation"] in completion.formulations("")


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_shown_and_installed(monkeypatch, capsys, tmp_path, shell):
    monkeypatch.setenv("HOME", str(tmp_path))
    for option in ("--show-completion", "--install-completion"):
        with pytest.raises(SystemExit) as ended:
            app([option, shell], prog_name="ceopt")
        assert ended.value.code == 0
        printed = capsys.readouterr().out
        assert (f"complete_{shell}" if option == "--show-completion" else shell) in printed

    assert any("_CEOPT_COMPLETE" in path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file())


def test_a_shell_without_a_script_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        app(["--show-completion", "tcsh"], prog_name="ceopt")
    assert ended.value.code == 2
    assert "shell" in capsys.readouterr().err
