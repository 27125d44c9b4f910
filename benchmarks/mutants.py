"""Random mutants of the files that decide what is claimed, each against its own tests: who is killed, and who survives.

A mutant is the source with one place changed: a comparison, an operation, a number, ``and`` for ``or``, a condition
turned round, nothing returned. It is killed by a test that fails on it, or takes ten times as long. The tree is copied,
and nothing is changed in place. Tests are collected once; each mutant is a fork in which the code of one function is
exchanged, and those tests run that run through the mutated lines, the quick ones first. A mutant outside of functions
is written into the copy, which is then imported anew.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import functools
import gc
import hashlib
import importlib
import inspect
import itertools
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import coverage
import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before common loads what reads it; and a fork has no threads

import common

TITLE = "Mutants: what the tests would see"
#: The files that are mutated, and their own tests.
OWN: dict[str, tuple[str, ...]] = {
    "solvers/conic/certificate.py": ("tests/solvers/test_conic.py",),
    **dict.fromkeys(
        ("solvers/trust.py", "solvers/guarded_session.py", "solvers/units.py"),
        (
            "tests/solvers/trust",
            "tests/solvers/test_guarded_session.py",
            "tests/solvers/test_units.py",
            "tests/search/test_faulty_solvers.py",
        ),
    ),
    "solvers/pool/ranking.py": ("tests/solvers/pool",),
    "formulations/predictors/ties.py": (
        "tests/formulations/predictors/test_attained_levels.py",
        "tests/formulations/predictors/test_disagreement.py",
        "tests/formulations/predictors/test_lattice.py",
        "tests/formulations/predictors/test_margin.py",
        "tests/formulations/predictors/test_several_classes.py",
        "tests/formulations/predictors/embed/test_affine_optimum.py",
        "tests/formulations/predictors/embed/test_trees_optimum.py",
        "tests/formulations/predictors/readers/test_composites.py",
        "tests/explain/test_composites.py",
        "tests/explain/test_disagreement.py",
        "tests/explain/test_narrow_columns.py",
        "tests/explain/test_neighbouring_floats.py",
        "tests/search/test_ties_of_lattices.py",
        "tests/search/test_ties_of_trees.py",
        "tests/search/test_ties_of_wide_columns.py",
    ),
    "ceopt/search": (
        "tests/search",
        "tests/explain/test_black_boxes.py",
        "tests/explain/test_found.py",
        "tests/explain/test_narrow_columns.py",
        "tests/explain/test_neighbouring_floats.py",
        "tests/explain/test_odd_arguments.py",
        "tests/explain/test_scales.py",
        "tests/explain/test_settings.py",
        "tests/explain/test_steps.py",
        "tests/population/test_black_boxes.py",
    ),
}
_RULE = "formulations/predictors/representation.py"
#: Files of which only named mutants are asked, and their own tests.
ALSO = {_RULE: ("tests/explain/test_composites.py",)}
#: Mutants that survived once, beside those that are drawn: file, function, what stands there, and in the mutant.
NAMED = (
    ("ceopt/search/search.py", "_limit", "most * (1.0 - BOUND_ROUNDING)", "most * 0.9"),
    (_RULE, "_score_of_link", "_share_of(link, 0, scores) >= at_least", "_share_of(link, 0, scores) > at_least"),
    (_RULE, "_score_of_link", "_share_of(link, 1, scores) < at_least", "_share_of(link, 1, scores) <= at_least"),
    ("ceopt/search/solve_check_repair.py", "solve", "repairs > MOST_REPAIRS", "repairs >= MOST_REPAIRS"),
    (
        "ceopt/search/solve_check_repair.py",
        "is_disproved",
        "(1.0 + CHEAPER + share) + LEAST_CHEAPER",
        "(1.0 + 1e3 * CHEAPER) + 1e3 * LEAST_CHEAPER",
    ),
    ("solvers/pool/ranking.py", "NBest._is_within", "<= self._gap_at(loss)", "<= 1e3 * self._gap_at(loss)"),
    ("solvers/pool/ranking.py", "NBest._holds", "> self._gap_at(loss)", "> 1e3 * self._gap_at(loss)"),
    (
        "solvers/pool/ranking.py",
        "_Met._add",
        "self.compiled.violation(x) <= NOTABLE_VIOLATION",
        "self.compiled.violation(x) <= 1e3 * NOTABLE_VIOLATION",
    ),
)
#: Survivors that claim nothing else, and why: read one by one.
EQUIVALENT = {
    "m0043488643": "of some binaries one at least has to be 1: that one of them counts twice says the same",
    "m0082138633": "a point that costs nothing is a start or none: what is found is verified, and no claim hangs on it",
    "m011d28e520": "only where a move of a climb to a start adds a billionth of its cost: the start is verified",
    "m014c362157": "two milliseconds for one, where no time is left",
    "m03ef1e7897": "how far beyond a small number the search for a start looks where there is no bound: a heuristic",
    "m040fe824d7": "only where both ends are equally far: each is then a farthest point",
    "m0457fd5f0d": "a number for which six more decimals are too few is told in nine more, not eight: as valid",
    "m04b7a843cd": "a combination has weights for each member, which its constructor checks",
    "m0564932388": "only a column of exactly 2^23 steps, of a threshold that is an order of size",
    "m05acd43101": "only where the violation is the tolerance itself, to the last bit",
    "m064e1f26c3": "one trial for each entry, and one answer of the model for each trial: neither is longer",
    "m079372ace1": "one climb more in the search for a start: what it finds is verified, and no claim hangs on it",
    "m08e31891ca": "only where the span is the threshold itself, to the last bit",
    "m09afdd0f16": "two milliseconds for one, where no time is left",
    "m0adda453f7": "further points of a relaxation, which are read by none",
    "m0b13a7ad0b": "only where the cost is the limit itself, to the last bit",
    "m11c60dcec3": "only where the residual is the tolerance itself, to the last bit",
}
MEASURES = (
    "ceopt/search",
    "formulations/predictors/ties.py",
    "solvers",
)
#: Share of the mutants that the tests are to kill.
LEAST = 0.85
#: What is imported before the fork: libraries alone, none of the files that are mutated.
LIBRARIES = (
    "clarabel highspy hypothesis joblib lightgbm onnx pandas pyomo.environ scipy.optimize scipy.stats sklearn.compose "
    "sklearn.ensemble sklearn.linear_model sklearn.neural_network sklearn.pipeline sklearn.svm xgboost"
).split()
#: A test may take so many CPU seconds, and times what it takes without a mutant; and a mutant so many seconds.
CPU_S, TIMES, WALL_S = 5.0, 10.0, 900.0
#: Places of a hash by which a mutant is named.
PLACES = 10
#: The kind of those that are named.
NAME = "named"
#: Exit codes of a fork.
SURVIVED, KILLED, BROKEN = 0, 1, 3

Tests: TypeAlias = dict[str, float]
#: Path, qualified name and first line of code -> the functions in memory that have it.
Functions: TypeAlias = dict[tuple[str, str, int], list[types.FunctionType]]


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=200, help="how many are drawn, default 200")
    parser.add_argument("--seed", type=int, default=common.SEED, help="default 0")
    parser.add_argument("--only", help="mutants by name, comma-separated, or a part of a file's path; writes nothing")
    parser.add_argument("--fast", action="store_true", help="6 mutants of guard, to see that it runs; writes nothing")
    return parser.parse_args()


def main() -> None:
    """Draw, run, count."""
    args = options()
    drawn = [*named(), *draw(args.mutants, args.seed)]
    if args.fast:
        drawn = [mutant for mutant in drawn if mutant.path.startswith("solvers/trust.py")][:6]
    if args.only:
        names = args.only.split(",")
        drawn = [mutant for mutant in drawn if any(name == mutant.name or name in mutant.path for name in names)]
    is_part = args.fast or bool(args.only)
    settings = {"mutants": args.mutants, "seed": args.seed, "tree": fingerprint()}
    journal = common.Journal("mutants-part" if is_part else "mutants", settings)
    if is_part:
        journal.records.clear()
        journal.done.clear()
    began = time.process_time()
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        left = [mutant for mutant in drawn if mutant.name not in journal.done]
        for record in common.bar(results(copied(Path(folder)), left), len(left)):
            journal.add(record["name"], record)
            if args.only:
                print(json.dumps(record, indent=1))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    settings["cpu"] = time.process_time() - began + children.ru_utime + children.ru_stime
    records = sorted(journal.records, key=lambda record: (record["path"], record["line"], record["name"]))
    common.report("mutants", TITLE, MEASURES, text_of, {"settings": settings, "records": records}, quick=is_part)
    journal.close()


def fingerprint() -> str:
    """Return a hash of all that decides what a mutant comes to: a run goes on only where nothing has changed."""
    found = hashlib.sha256()
    for folder in ("ceopt", "formulations", "solvers", "tests"):
        for file in sorted((common.ROOT / folder).rglob("*.py")):
            found.update(file.read_bytes())
    return found.hexdigest()[:PLACES]


# ---- mutants ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Mutant:
    """One place of one file, changed.

    Parameters
    ----------
    name
        A hash of what is changed and of where in the code, not of the line: it stays while others edit the file.
    path, function
        The file, and the function or method in it; empty outside of functions.
    line, last
        Lines of the statement, or of the head of a compound one.
    kind
        What is changed.
    before, after
        The text, and what stands in its place.
    start, end
        Its place, in bytes of the file.
    """

    name: str
    path: str
    function: str
    line: int
    last: int
    kind: str
    before: str
    after: str
    start: int
    end: int

    def applied(self, source: bytes) -> bytes:
        """Return the file with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def name_of(what: str) -> str:
    """Return a name that nobody takes for a commit."""
    return "m" + hashlib.sha256(what.encode()).hexdigest()[:PLACES]


def named() -> list[Mutant]:
    """Return the named mutants, each the only place of its text in its function."""
    found = []
    for path, function, before, after in NAMED:
        source = (common.ROOT / path).read_bytes()
        head = f"def {function.rpartition('.')[2]}(".encode()
        start = source.index(before.encode(), source.index(head))
        line = source.count(b"\n", 0, start) + 1
        name = name_of(f"{path}\n{before}\n{after}")
        end = start + len(before.encode())
        found.append(Mutant(name, path, function, line, line, NAME, before, after, start, end))
    return found


def draw(count: int, seed: int) -> list[Mutant]:
    """Draw mutants, each as likely as any other; an edit elsewhere in the code leaves the same ones drawn."""
    found = []
    for owner in OWN:
        place = common.ROOT / owner
        files = sorted(place.glob("*.py")) if place.is_dir() else [place]
        for file in files:
            path = file.relative_to(common.ROOT).as_posix()
            found += _Finder(path, file.read_bytes(), seed).found
    return sorted(found, key=lambda mutant: mutant.name)[:count]


_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class _Finder:
    """Finds every place of a file that can be changed; what only types, imports or asserts say is left alone."""

    def __init__(self, path: str, source: bytes, seed: int) -> None:
        self.path = path
        self.source = source
        self.seed = seed
        self.found: list[Mutant] = []
        self.scope: list[str] = []
        self.is_inside = False  # of a function
        self.span = (0, 0)
        self.seen = Counter[str]()
        self.offsets = [0]
        for line in source.splitlines(keepends=True):
            self.offsets.append(self.offsets[-1] + len(line))
        self.walk(ast.parse(source))

    def walk(self, node: ast.AST) -> None:
        """Note what can be changed of a node and of those in it."""
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            self.span = (node.lineno, last)
        for part, kind, after in changes_of(node):
            self.add(part, kind, after)
        for child in parts_of(node):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and child in node.body:
                was = self.is_inside
                self.scope.append(node.name)
                self.is_inside = was or isinstance(node, ast.FunctionDef)
                self.walk(child)
                self.is_inside = was
                self.scope.pop()
            else:
                self.walk(child)

    def add(self, node: Any, kind: str, after: str) -> None:
        """Note a change of the text of a node."""
        start = self.offsets[node.lineno - 1] + node.col_offset
        end = self.offsets[node.end_lineno - 1] + node.end_col_offset
        before = self.source[start:end].decode()
        line, last = self.span
        statement = b"".join(self.source.splitlines()[line - 1 : last]).decode()
        function = ".".join(self.scope)
        what = "\n".join([self.path, function, " ".join(statement.split()), before, kind, after])
        self.seen[what] += 1
        name = name_of(f"{self.seed}\n{self.seen[what]}\n{what}")
        inside = function if self.is_inside else ""
        self.found.append(Mutant(name, self.path, inside, line, last, kind, before, after, start, end))


def parts_of(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node in which something is claimed."""
    match node:
        case ast.Assert() | ast.JoinedStr():  # which tell types, and texts
            return []
        case ast.FunctionDef():
            return [part for part in (*node.args.defaults, *node.args.kw_defaults, *node.body) if part is not None]
        case ast.ClassDef():
            return [*node.body]
        case ast.AnnAssign():
            return [node.value] if node.value is not None else []
        case ast.AugAssign():
            return [node.value]
        case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("__"):
            return []
    return [*ast.iter_child_nodes(node)]


def changes_of(node: Any) -> Iterator[tuple[Any, str, str]]:
    """Yield what of a node is changed: the part that is replaced, the kind of change, and the text in its place."""
    match node:
        case ast.Compare() | ast.BinOp() | ast.AugAssign() | ast.BoolOp() | ast.UnaryOp():
            for kind, changed in operations_of(node):
                text = ast.unparse(changed)
                yield node, kind, text if isinstance(node, ast.AugAssign) else f"({text})"
        case ast.Constant(value=bool()):
            yield node, "constant", str(not node.value)
        case ast.Constant(value=int()):
            yield node, "constant", str(node.value + 1)
        case ast.Constant(value=float()):
            yield node, "constant", repr(2.0 * node.value if node.value else 1.0)
        case ast.Return(value=ast.expr()) if ast.unparse(node.value) != "None":
            yield node.value, "return", "None"
        case ast.If() | ast.While() | ast.IfExp() if ast.unparse(node.test) != "TYPE_CHECKING":
            yield node.test, "condition", f"(not ({ast.unparse(node.test)}))"
        case ast.comprehension():
            for test in node.ifs:
                yield test, "condition", f"(not ({ast.unparse(test)}))"


def operations_of(node: Any) -> Iterator[tuple[str, ast.AST]]:
    """Yield an operation with another one in its place, or left out, and the kind of change."""
    match node:
        case ast.Compare():
            for k, operator in enumerate(node.ops):
                for other in _COMPARISONS[type(operator)]:
                    changed = copy.deepcopy(node)
                    changed.ops[k] = other()
                    yield "comparison", changed
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _OPERATIONS:
            changed = copy.deepcopy(node)
            changed.op = _OPERATIONS[type(node.op)]()
            yield "operation", changed
        case ast.UnaryOp(op=ast.USub()):
            yield "sign", node.operand
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield "not", node.operand
        case ast.BoolOp():
            changed = copy.deepcopy(node)
            changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and, or", changed


# ---- running ---------------------------------------------------------------------------------------------------------
def copied(folder: Path) -> Path:
    """Copy the tree, its links as links."""
    tree = folder / "tree"
    left = shutil.ignore_patterns(".git", ".ci", "results", "__pycache__", ".*_cache", ".hypothesis", "site", "build")
    shutil.copytree(common.ROOT, tree, symlinks=True, ignore=left)
    return tree


def results(tree: Path, drawn: Sequence[Mutant]) -> Iterator[dict[str, Any]]:
    """Yield what came of every mutant."""
    for owner in {**OWN, **ALSO}:
        part = [mutant for mutant in drawn if mutant.path.startswith(owner)]
        if part:
            yield from results_of(tree, part)


def results_of(tree: Path, drawn: Sequence[Mutant]) -> Iterator[dict[str, Any]]:
    """Yield what came of mutants that have the same tests of their own."""
    inside = [mutant for mutant in drawn if mutant.function]
    outside = [mutant for mutant in drawn if not mutant.function]
    files = own_tests(drawn[0].path)
    reached: Reached | None = None
    try:
        for line in said_by_a_fork(lambda tell: in_session(tree, files, Session(tree, inside, tell))):
            if "reached" in line:
                reached = Reached(**line["reached"])
            else:
                yield line
    except RuntimeError:
        print((tree / "printed.txt").read_text(encoding="utf-8")[-5000:], file=sys.stderr)
        raise
    assert reached is not None  # noqa: S101 - a session that ends before has raised
    for mutant in outside:
        yield imported_anew(tree, mutant, reached)


def own_tests(path: str) -> tuple[str, ...]:
    """Return the own tests of a file."""
    tests = {**OWN, **ALSO}
    owner = next(owner for owner in tests if path.startswith(owner))
    return tests[owner]


def said_by_a_fork(run: Callable[[Callable[[Any], None]], int | None]) -> Iterator[Any]:
    """Yield what a fork tells, line by line."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            os.close(reading)
            code = int(run(lambda line: _tell(writing, line)) or 0)
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"The tests need a session that ends with 0, but it ended with {status}. Run them alone.")


def _tell(where: int, line: Any) -> None:
    text = (json.dumps(line) + "\n").encode()
    while text:
        text = text[os.write(where, text) :]


def in_session(tree: Path, arguments: Sequence[str], plugin: Any) -> int:
    """Run pytest in the copy, whose package is imported; what it prints stays in a file there."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "ceopt"]:  # which common has loaded, of here
        del sys.modules[name]
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    sys.argv = ["pytest"]
    with (tree / "printed.txt").open("a", encoding="utf-8") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    words = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", f"--rootdir={tree}"]
    return int(pytest.main([*words, *arguments], plugins=[plugin]))


@dataclass(frozen=True, slots=True)
class Reached:
    """Which tests run through which lines, and what each takes.

    Parameters
    ----------
    lines
        ``path:line`` -> tests.
    seconds
        CPU seconds of every test.
    failing
        Tests that fail without any mutant, here and now: they kill none.
    """

    lines: dict[str, list[str]]
    seconds: Tests
    failing: list[str]

    def of(self, mutant: Mutant) -> list[str]:
        """Return the own tests that may see a mutant: file by file, and in each the quick ones first.

        Outside of functions these are all that run through the file.
        """
        places = [f"{mutant.path}:{line}" for line in range(mutant.line, mutant.last + 1)]
        if not mutant.function:
            places = [place for place in self.lines if place.startswith(f"{mutant.path}:")]
        own = own_tests(mutant.path)
        tests = {test for place in places for test in self.lines.get(place, ()) if test.startswith(own)}
        tests -= set(self.failing)
        quickest: Tests = {}
        for test in tests:
            file = test.partition("::")[0]
            quickest[file] = quickest.get(file, 0.0) + self.seconds[test]
        return sorted(tests, key=lambda test: (quickest[test.partition("::")[0]], self.seconds[test]))


class Session:
    """A plugin that runs the collected tests once, to see what they run through, and then on every mutant in a fork."""

    def __init__(self, tree: Path, mutants: Sequence[Mutant], tell: Callable[[Any], None]) -> None:
        self.tree = tree
        self.mutants = mutants
        self.tell = tell
        self.failed = False
        self.functions: Functions = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run in forks, in the place of pytest's own loop."""
        if session.testsfailed:
            raise session.Interrupted("a test file cannot be collected")
        items = {item.nodeid: item for item in session.items}
        (found,) = said_by_a_fork(lambda tell: tell(self.seen(items)))
        self.tell({"reached": found})
        reached = Reached(**found)
        paths = self.paths()
        for held in gc.get_objects():
            if isinstance(held, types.FunctionType) and held.__code__.co_filename in paths:
                place = (paths[held.__code__.co_filename], held.__code__.co_qualname, held.__code__.co_firstlineno)
                self.functions.setdefault(place, []).append(held)
        gc.freeze()  # a fork that collects would copy all of the memory
        for mutant in self.mutants:
            self.tell(self.result(mutant, reached, items))
        return True

    def seen(self, items: dict[str, pytest.Item]) -> dict[str, Any]:
        """Run every test, and note through which lines of the mutated files it runs."""
        paths = self.paths()
        watch = coverage.Coverage(data_file=None, config_file=False, include=list(paths))
        through: dict[str, list[str]] = {}
        seconds, failing = {}, []
        order = list(items.values())
        watch.start()
        for item, after in itertools.zip_longest(order, order[1:]):
            self.failed = False
            began = time.process_time()
            watch.switch_context(item.nodeid)
            run_item(item, after)
            seconds[item.nodeid] = time.process_time() - began
            if self.failed:
                failing.append(item.nodeid)
        watch.stop()
        data = watch.get_data()
        for file in data.measured_files():
            for line, tests in data.contexts_by_lineno(file).items():
                through[f"{paths[file]}:{line}"] = [test for test in tests if test]
        return {"lines": through, "seconds": seconds, "failing": failing}

    def paths(self) -> dict[str, str]:
        """Return the files that are mutated as the package names them, and as the tree does."""
        paths = {}
        for owner in (*OWN, *ALSO):
            place = self.tree / owner
            for file in [*place.glob("*.py")] if place.is_dir() else [place]:
                paths[str(file)] = file.relative_to(self.tree).as_posix()
                # ceopt.formulations and ceopt.solvers are links beside the package.
                paths[str(self.tree / "ceopt" / file.relative_to(self.tree))] = paths[str(file)]
        return paths

    def result(self, mutant: Mutant, reached: Reached, items: dict[str, pytest.Item]) -> dict[str, Any]:
        """Run the tests of a mutant until one fails, and that one without the mutant: only then it has killed."""
        tests = reached.of(mutant)
        while True:
            found = in_a_fork(functools.partial(self.run, tests, reached, items, mutant))
            killer = found["test"]
            if found["end"] == "survived":
                break
            again = in_a_fork(functools.partial(self.run, [killer], reached, items, None))
            if again["end"] == "survived":
                break
            tests = tests[tests.index(killer) + 1 :]
        return record_of(mutant, found, len(tests))

    def run(
        self,
        tests: Sequence[str],
        reached: Reached,
        items: dict[str, pytest.Item],
        mutant: Mutant | None,
        tell: Callable[[str], None],
    ) -> int:
        """Run tests until one fails."""
        if mutant is not None:
            exchange(self.tree, mutant, self.functions)
        chosen = [items[test] for test in tests]
        for item, after in itertools.zip_longest(chosen, chosen[1:]):
            tell(item.nodeid)
            self.failed = False
            limited(reached.seconds[item.nodeid])
            run_item(item, after)
            if self.failed:
                return KILLED
        return SURVIVED


def run_item(item: pytest.Item, after: pytest.Item | None) -> None:
    """Set up, call and tear down one test, but for the fixtures that the one after it has too."""
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)


def limited(seconds: float) -> None:
    """End this process, by SIGPROF, when a test takes much more CPU time than it does without a mutant."""
    signal.setitimer(signal.ITIMER_PROF, CPU_S + TIMES * seconds)


def in_a_fork(run: Callable[[Callable[[str], None]], int]) -> dict[str, Any]:
    """Run tests in a fork, which tells the name of each before it begins; return how that ended, and at which test."""
    reading, writing = os.pipe()
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        code = BROKEN
        try:
            os.close(reading)
            code = run(lambda test: _tell(writing, test))
        except KeyboardInterrupt:  # a test raises it, and the mutant no longer catches it
            code = KILLED
        except BaseException:  # noqa: BLE001 - a fork ends here, whatever happens
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)
    os.close(writing)
    code = None
    while code is None:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
        elif time.perf_counter() - began > WALL_S:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            code = -signal.SIGPROF
        else:
            time.sleep(0.01)
    with os.fdopen(reading, encoding="utf-8") as lines:
        tests = [json.loads(line) for line in lines]
    last = tests[-1] if tests else ""
    if code == BROKEN:
        raise RuntimeError("A mutant needs a fork that runs its tests, but this one failed. See what it printed.")
    if code == SURVIVED:
        return {"end": "survived", "test": ""}
    return {"end": "timed out" if code == -signal.SIGPROF else "killed", "test": last}


def record_of(mutant: Mutant, found: dict[str, Any], tests: int) -> dict[str, Any]:
    """Return what is kept of a mutant."""
    kept = asdict(mutant)
    for name in ("last", "start", "end"):
        del kept[name]
    return {**kept, **found, "tests": tests}


def exchange(tree: Path, mutant: Mutant, functions: Functions) -> None:
    """Put the code of a mutated function in the place of the one that was imported, wherever it is held."""
    file = tree / mutant.path
    code = compile(mutant.applied(file.read_bytes()), str(file), "exec")
    for part in mutant.function.split("."):
        inner = [c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == part]
        code = next(c for c in inner if c.co_firstlineno <= mutant.line <= _last_line(c))
        if code.co_flags & inspect.CO_OPTIMIZED:  # a function, not a class; those within it are its constants
            break
    for held in functions[mutant.path, code.co_qualname, code.co_firstlineno]:
        held.__code__ = code


def _last_line(code: types.CodeType) -> int:
    lines = [line for _, _, line in code.co_lines() if line is not None]
    inner = [_last_line(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return max([*lines, *inner])


class FirstFailure:
    """A plugin that notes which test runs."""

    def __init__(self, tell: Callable[[str], None], reached: Reached, order: Sequence[str]) -> None:
        self.tell = tell
        self.reached = reached
        self.places = {test: place for place, test in enumerate(order)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the quick ones first."""
        items.sort(key=lambda item: self.places[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say that a test begins."""
        self.tell(nodeid)
        limited(self.reached.seconds[nodeid])


def imported_anew(tree: Path, mutant: Mutant, reached: Reached) -> dict[str, Any]:
    """Run the tests of a mutant outside of functions: in a fork that has not imported the package yet."""
    tests = reached.of(mutant)
    file = tree / mutant.path
    source, times = file.read_bytes(), (file.stat().st_atime, file.stat().st_mtime)

    def run(tell: Callable[[str], None]) -> int:
        sys.dont_write_bytecode = True
        code = in_session(tree, tests, FirstFailure(tell, reached, tests))
        return SURVIVED if code == 0 else KILLED

    file.write_bytes(mutant.applied(source))
    try:
        found = in_a_fork(run)
    finally:
        file.write_bytes(source)
        os.utime(file, times)  # what was compiled of it holds on
    return record_of(mutant, found, len(tests))


# ---- the report ------------------------------------------------------------------------------------------------------
def text_of(record: dict[str, Any]) -> str:
    """Return how many were killed, by file and by kind, and who survived."""
    settings = record["settings"]
    records = [r for r in record["records"] if r["kind"] != NAME]
    killed = sum(is_killed(r) for r in records)
    about = (
        f"{len(records)} mutants, drawn with seed {settings['seed']} from every comparison, operation, sign, number, "
        "truth value, `and`, `or`, `not`, condition and returned value of the files named above; each against those of "
        f"its file's own tests that run through it. **{killed} of {len(records)} are killed "
        f"({killed / len(records):.1%}; to be reached: {LEAST:.0%}).** {settings['cpu'] / 60:.0f} CPU minutes."
    )
    by = [
        common.markdown_table([what, "mutants", "killed", "of these by time", "survived"], counts(records, key))
        for what, key in (("file", "path"), ("what is changed", "kind"))
    ]
    left = []
    for r in records:
        if not is_killed(r):
            why = EQUIVALENT.get(r["name"], "")
            left.append([f"`{r['name']}`", f"`{r['path']}:{r['line']}`", *changed(r), r["tests"], why])
    head = [
        "survivor",
        "where",
        "what stands there",
        "and in the mutant",
        "tests that run through it",
        "equivalent, as",
    ]
    parts = [about, *by, "Those that survive:", common.markdown_table(head, left)]
    old = []
    for r in record["records"]:
        if r["kind"] == NAME:
            old.append([f"`{r['path']}`", *changed(r), r["end"], f"`{r['test']}`"])
    if old:
        head = ["where", "what stands there", "and in the mutant", "end", "by"]
        parts += ["Beside them, some that survived once:", common.markdown_table(head, old)]
    return "\n\n".join(parts)


def changed(record: dict[str, Any]) -> list[str]:
    """Return what stands in the file and in the mutant, in cells of a table."""
    return [f"`{' '.join(record[part].split())}`".replace("|", "\\|") for part in ("before", "after")]


def is_killed(record: dict[str, Any]) -> bool:
    """Tell whether a test has seen the mutant."""
    return bool(record["end"] != "survived")


def counts(records: Sequence[dict[str, Any]], key: str) -> list[list[Any]]:
    """Return how the mutants of each file, or kind, ended."""
    lines = []
    for name in sorted({r[key] for r in records}):
        part = [r for r in records if r[key] == name]
        killed = sum(map(is_killed, part))
        lines.append([name, len(part), killed, sum(r["end"] == "timed out" for r in part), len(part) - killed])
    return lines


if __name__ == "__main__":
    main()
