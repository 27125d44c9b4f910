"""What the documentation shows is what happens: every code block of README.md and docs/, every docstring's example."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sources import ROOT

import ceopt
from ceopt.formulations.predictors.readers import markdown

#: Languages of blocks that are read, not run. Any other block is run, or its language is refused.
SHOWN = {"json", "lp", "toml", "diff"}
RUN = {"python", "bash", "text", "{code-cell}"}

#: Pages that take five seconds and more: they run with --long, as in CI.
SLOW_PAGES = {
    "audit_of_a_cohort.md",
    "diverse.md",
    "first_recourse.md",
    "from_dice.md",
    "german_credit.md",
    "own_rules.md",
    "pictures.md",
    "plans.md",
    "report.md",
    "robust_to_retraining.md",
    "rules.md",
    "surrogates.md",
    "training.md",
}
#: Modules whose examples train networks for some seconds.
SLOW_MODULES = {
    "ceopt.plans.copa",
    "ceopt.training.recourse_network",
    "ceopt.training.rivals",
}
#: Says in a page that its blocks read real data, which nobody is given with ceopt.
_NEEDS_DATA = "<!-- needs CEOPT_DATA -->"
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\S*)[^\n]*\n(?P<body>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL
)
_SECONDS = re.compile(r"\d+(\.\d+)?(e-?\d+)? ?(ms|s|seconds)\b")
_CEOPT = (sys.executable, "-c", "from ceopt.cli.commands import app; app(prog_name='ceopt')")
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of its first line of text."""

    language: str
    body: str
    line: int


def blocks(text: str) -> list[Block]:
    return [
        Block(found["language"], found["body"], text.count("\n", 0, found.start("body")) + 1)
        for found in _FENCE.finditer(text)
    ]


def _execute(block: Block, where: Path, namespace: dict[str, Any]) -> str:
    """Run a block as a notebook cell: what it prints, then its last expression's value."""
    printed = io.StringIO()
    tree = ast.parse(block.body, str(where))
    ast.increment_lineno(tree, block.line - 1)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, str(where), "exec"), namespace)  # noqa: S102
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(where), "eval"), namespace)  # noqa: S307
            if value is not None:
                printed.write(f"{value!r}\n")
    return printed.getvalue()


def _command(block: Block) -> str:
    """Run the lines that call ceopt; .ci/run runs those that install it."""
    printed = ""
    for line in block.body.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "ceopt":
            done = subprocess.run([*_CEOPT, *words[1:]], check=False, capture_output=True, text=True)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
            printed += done.stdout
    return printed


def _comparable(text: str) -> str:
    """Lines with the seconds, the width of columns and the length of rules taken out."""
    lines = (_SECONDS.sub("# s", re.sub(r"([─━═-])\1+", r"\1", line)) for line in text.splitlines())
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


def _agrees(shown: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(_comparable(shown) + "\n", _comparable(printed) + "\n", _OPTIONS)


def _pages() -> list[Path]:
    made = ROOT / "docs" / "made"  # by a build of the site, of pages that stand elsewhere
    return [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if made not in path.parents)]


def _page(path: Path) -> Any:
    marks = [pytest.mark.long] if path.name in SLOW_PAGES else []
    return pytest.param(path, id=path.relative_to(ROOT).as_posix(), marks=marks)


@pytest.mark.parametrize("page", [_page(path) for path in _pages()])
def test_code_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    if _NEEDS_DATA in text:
        monkeypatch.setenv("CEOPT_DATA", str(request.getfixturevalue("data_dir")))  # or the page is skipped
    printed: str | None = None
    found = blocks(text)
    assert 2 * len(found) == sum(line.lstrip().startswith("```") for line in text.splitlines()), "a fence is not closed"
    for block in found:
        where = f"{page.name}, line {block.line}"
        if block.language in {"python", "{code-cell}"}:  # a cell of a notebook, which the site runs and shows
            printed = _execute(block, page, namespace)
        elif block.language == "bash":
            printed = _command(block)
        elif block.language == "text":
            assert printed is not None, f"{where}: a text block is the output of the block above it, which is not run"
            assert _agrees(block.body, printed), f"{where} shows\n{block.body}\nbut this is printed:\n{printed}"
            printed = None
        elif not block.language.startswith("{"):  # what Sphinx is told, such as a table of contents
            assert block.language in SHOWN, f"{where}: a block's language is one of {sorted(RUN | SHOWN)}"


def test_readme_has_code_that_runs_and_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [line for line in text.splitlines() if line.startswith("python3 -m venv .venv && ")]

    assert any(block.language == "python" for block in blocks(text))
    assert len(commands) == 2, "the README's two commands, which .ci/run runs: the main job, and the tests"
    assert commands[0].endswith(".venv/bin/ceopt demo")
    assert ".venv/bin/pytest" in commands[1]


def test_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120


def test_the_page_of_models_shows_what_the_readers_read():
    text = (ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8")
    assert markdown() in text, "run ceopt models --markdown and paste its table into docs/reference/models.md"


def _module_names() -> list[str]:
    return ["ceopt", *sorted(found.name for found in pkgutil.walk_packages(ceopt.__path__, "ceopt."))]


def _module(name: str) -> Any:
    return pytest.param(name, id=name, marks=[pytest.mark.long] if name in SLOW_MODULES else [])


@pytest.mark.parametrize("name", [_module(name) for name in _module_names()])
def test_examples_in_docstrings_run_and_print_what_is_shown(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    report = io.StringIO()
    with contextlib.redirect_stdout(report):
        doctest.testmod(module, optionflags=_OPTIONS, report=False)

    assert report.getvalue() == ""


def test_examples_in_docstrings_exist():
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [
        test.name for name in _module_names() for test in finder.find(importlib.import_module(name)) if test.examples
    ]

    assert examples


@pytest.mark.parametrize(
    ("shown", "printed", "agrees"),
    [
        ("status  optimal\n", "status optimal\n", True),
        ("solve   0.01 s\n", "solve   12.5 s\n", True),
        ("cost 1.25\n", "cost 1.26\n", False),
        ("ceopt ...\n", "ceopt 0.1.0\n", True),
        ("a\nb\n", "a\n", False),
        ("──────\n", "────\n", True),
    ],
)
def test_outputs_are_compared_but_for_seconds_and_widths(shown, printed, agrees):
    assert _agrees(shown, printed) is agrees


def test_python_blocks_echo_their_last_value_and_share_names():
    namespace: dict[str, Any] = {}
    first, second = blocks("```python\na = 2\n```\n\ntext\n\n```python\nprint('x')\na + 1\n```\n")

    assert (first.line, second.line) == (2, 8)
    assert _execute(first, ROOT, namespace) == ""
    assert _execute(second, ROOT, namespace) == "x\n3\n"
