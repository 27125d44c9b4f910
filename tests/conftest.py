"""What every test file shares."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import draws
import hypothesis
import pytest

pytest_plugins = ("people",)  # fixtures that the tests of most folders share

os.environ.setdefault("OMP_NUM_THREADS", "1")  # histogram boosting: threads per core and worker are ten times slower
os.environ.setdefault("MPLBACKEND", "Agg")  # a documentation block may draw; nobody is there to close a window

# JAX compiles a training program for seconds and runs it for less: compiled lightly, once for all processes and runs.
JAX = {
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parents[1] / ".pytest_cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
}
for name, value in JAX.items():
    os.environ.setdefault(name, value)

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell's background job: the tests of Ctrl-C would press in vain
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: a property may build and solve a program. The same examples each time, so that a run says something of a
# change and of nothing else; other examples each time, and more of them, by --hypothesis-profile=others.
hypothesis.settings.register_profile(
    "same", deadline=None, derandomize=True, database=None, max_examples=draws.number_of_draws(draws.DEFAULT)
)
hypothesis.settings.register_profile(
    "many of the same", deadline=None, derandomize=True, database=None, max_examples=draws.DEFAULT // 2
)
hypothesis.settings.register_profile("others", deadline=None, derandomize=False, max_examples=500, print_blob=True)
hypothesis.settings.load_profile("same")


@pytest.fixture(autouse=True)
def _nothing_was_read_before() -> None:
    """Let a test that slows, counts or fakes the reading of a model see it read, whatever tests ran before."""
    if "ceopt.search.read_once" in sys.modules:
        sys.modules["ceopt.search.read_once"].forget()


#: Warnings of other libraries that --strict-warnings lets pass: whose each is, and why it does not matter.
PASSING = (
    # ceopt's own ceopt.RuleWarning: tests ask for people who break rules on purpose. tests/explain/test_rules_beyond.py
    # says when it comes.
    "ignore:rule .* beyond it today:UserWarning",
    "ignore:rule .* misses it today:UserWarning",
    "ignore:X does not have valid feature names, but LGBM:UserWarning",  # LightGBM 4.6 says so of every array
    # XGBoost 3.4 means to give these up; models of them exist, so they are still read.
    "ignore:`XGBRF(Classifier|Regressor)` is deprecated:FutureWarning",
    "ignore:.*`booster=(dart|gblinear)` is deprecated:UserWarning",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let whoever works on ceopt see what it, or a library through it, warns of; others' tests must not fail for it."""
    parser.addoption("--strict-warnings", action="store_true", help="make warnings errors, as CI does")
    parser.addoption(
        "--long",
        action="store_true",
        help="run the tests that are marked long too, and take half of the examples of properties, not a tenth",
    )
    parser.addoption(
        "--share",
        type=_share,
        metavar="K/N",
        help="run the K-th of N shares: of the cases of each parametrised test, and of the tests of one case",
    )


def _share(text: str) -> tuple[int, int]:
    """Return which of how many shares, as "2/3" says it."""
    share, shares = (int(part) for part in text.split("/"))
    if not 1 <= share <= shares:
        message = f"--share needs K/N with K from 1 to N, but it is {text}"
        raise argparse.ArgumentTypeError(message)
    return share, shares


def pytest_configure(config: pytest.Config) -> None:
    """Make warnings errors, and properties long, where that is asked for."""
    if config.getoption("--strict-warnings"):
        for line in ("error", *PASSING):
            config.addinivalue_line("filterwarnings", line)
    if config.getoption("--long"):
        draws.take_many()
        if not config.getoption("--hypothesis-profile"):
            hypothesis.settings.load_profile("many of the same")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked long, and the cases of other shares, unless the command names it."""
    if any("::" in argument for argument in config.args):
        return
    kept = items
    if not config.getoption("--long"):
        kept = _without_long(kept)
    if config.getoption("--share"):
        kept = _of_share(kept, *config.getoption("--share"))
    left = set(items) - set(kept)
    items[:] = kept
    config.hook.pytest_deselected(items=list(left))


def _without_long(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that are not marked long, and of the cases of ``long(every=k)`` every k-th."""
    kept = []
    cases = Counter[str]()
    for item in items:
        strides = [mark.kwargs.get("every") for mark in item.iter_markers("long")]
        if not strides:
            kept.append(item)
            continue
        if None in strides:  # a case that is long itself does not count among those of which every k-th runs
            continue
        every = max(strides)
        test = _test_of(item)
        place = cases[test]
        if (place + place // every) % every == 0:  # a diagonal: not always the same value of one parameter
            kept.append(item)
        cases[test] += 1
    return kept


def _of_share(items: list[pytest.Item], share: int, shares: int) -> list[pytest.Item]:
    """Return a share of the tests of one case, and of the cases of others; of few cases another may have it too."""
    cases = Counter(_test_of(item) for item in items)
    places = Counter[str]()
    kept = []
    for item in items:
        test = _test_of(item) if cases[_test_of(item)] > 1 else ""
        stride = min(shares, cases[test] or shares)
        place = places[test]
        if (place + place // stride) % stride == (share - 1) % stride:
            kept.append(item)
        places[test] += 1
    return kept


def _test_of(item: pytest.Item) -> str:
    """Return the name of a test, without the parameters of its case."""
    return item.nodeid.partition("[")[0]


def pytest_report_header() -> str:
    """Say which ceopt is tested: the installed one, or the source tree."""
    import ceopt

    return f"ceopt: {Path(ceopt.__file__).parent}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count what the solvers were asked in their battery; the reports carry it home from xdist's workers too."""
    models, checks, failed = Counter[str](), Counter[str](), Counter[str]()
    seen: set[tuple[str, str]] = set()
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for key, found in getattr(report, "user_properties", ()):
                if key == "battery":
                    name, model, asked = found
                    checks[name] += len(asked)
                    models[name] += (name, model) not in seen
                    failed[name] += outcome == "failed"
                    seen.add((name, model))
    if checks:
        terminalreporter.section("battery of solvers")
        for name, asked in checks.items():
            lost = f", {failed[name]} tests failed" if failed[name] else ""
            terminalreporter.line(f"{name}: {asked} checks on {models[name]} models{lost}")
        terminalreporter.line(f"in all: {checks.total()} checks")


@pytest.fixture(scope="session")
def python(pytestconfig: pytest.Config) -> list[str]:
    """Give the command of a Python of its own, in which warnings are errors where they are errors in the tests."""
    return [sys.executable, *(["-W", "error"] if pytestconfig.getoption("--strict-warnings") else [])]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Give the folder of real data: CEOPT_DATA, or shared/data beside the repository; it is never committed."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CEOPT_DATA") or beside)
    if not (folder / "schema.json").is_file():
        pytest.skip("no real data: set CEOPT_DATA to the folder that holds schema.json")
    return folder


@pytest.fixture
def by_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no bound without a program, so that every search solves one."""
    from ceopt.search import without_program

    monkeypatch.setattr(without_program, "least_cost", lambda *_, **__: None)
    monkeypatch.setattr(without_program, "_next_sum", lambda *_: None)
