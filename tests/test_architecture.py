"""Three rooms, one direction: what may import what, read off the source files themselves."""

from __future__ import annotations

import ast
import contextlib
import graphlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from import_graph import imports, modules
from sources import ROOT, pyproject, requirement_names

import ceopt
from ceopt.base.libraries import _EXTRAS
from ceopt.formulations.predictors.readers import supported
from ceopt.formulations.predictors.readers.agreement import DISTRIBUTIONS as READ_FROM
from ceopt.solvers.registry import SOLVERS

#: What a room may import of the project. Nothing points back.
MAY_IMPORT = {
    "ceopt.solvers": ("ceopt.solvers",),
    "ceopt.formulations": ("ceopt.formulations", "ceopt.solvers"),
    "ceopt": ("ceopt",),
}

#: The libraries whose models are read; inside the formulations only the readers know them.
MODEL_LIBRARIES = {"onnxruntime", "torch", *supported()["library"]}
READERS = "ceopt.formulations.predictors.readers."

#: Beside them, those that fit something of their own: only scikit-learn, and only on use.
FITTERS = {"ceopt.formulations.constraints.causal_structure", "ceopt.formulations.constraints.hull_points"}

#: Installed by default, but slow to load or not needed by everyone: imported on use like the optional ones.
ON_USE = {"clarabel", "highspy", "onnx", "torch"}

#: Import names that differ from the names of their distributions.
DISTRIBUTIONS = {**READ_FROM, **{solver.library: solver.distribution for solver in SOLVERS.values()}}


def _inside(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _room(module: str) -> str:
    return next(room for room in MAY_IMPORT if _inside(module, room))


def test_every_room_has_sources():
    assert {_room(module) for module in modules()} == set(MAY_IMPORT)
    assert any(_inside(found.target, "ceopt.solvers") for found in imports())


def test_imports_are_absolute():
    assert [str(found) for found in imports() if found.level] == []


def test_the_folders_are_imported_under_the_name_they_are_installed_as():
    assert [str(found) for found in imports() if found.top in {"formulations", "solvers"}] == []


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_point_down_the_rooms(room):
    wrong = [
        str(found)
        for found in imports()
        if _room(found.module) == room
        and _inside(found.target, "ceopt")
        and not any(_inside(found.target, allowed) for allowed in MAY_IMPORT[room])
    ]

    assert wrong == []


def test_no_module_is_reached_from_what_it_imports():
    """Imports for types and inside functions count: a circle is a circle wherever it hides."""
    graph: dict[str, set[str]] = {module: set() for module in modules()}
    for found in imports():
        if found.target in graph:
            graph[found.module].add(found.target)

    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def _part(module: str) -> str:
    """Return the folder, or the loose file, one level below a room's own."""
    room = _room(module)
    return ".".join(module.split(".")[: room.count(".") + 2])


def test_no_part_of_a_room_is_reached_from_what_it_needs():
    """What a module imports at its top counts: results may import what shows them on use."""
    graph: dict[str, set[str]] = {_part(module): set() for module in modules()}
    for found in imports():
        early = not (found.lazy or found.for_types)
        if early and found.target in modules() and found.target not in MAY_IMPORT:
            graph[_part(found.module)] |= {_part(found.target)} - {_part(found.module)}

    graphlib.TopologicalSorter(graph).prepare()


#: From here down a number is a tolerance: it says what counts as kept, as equal or as nothing.
LARGEST_TOLERANCE = 1e-3
#: Small numbers that stand elsewhere, as they are something else.
NO_TOLERANCES = {
    "ceopt.dice.dice._LEAST_S": "seconds, the least limit that a question is given",
    "ceopt.diverse.exhaustive._PUT_TOGETHER_S": "seconds of putting one answer together",
    "ceopt.formulations.digits._LEAST_PLAIN": "from where on a number is written without an exponent",
    "ceopt.formulations.predictors.readers.lightgbm._ZERO": "what LightGBM's code compares with",
    "ceopt.solvers.built_in.BUILT_IN": "options of each solver's, by its own names, for exact answers",
    "ceopt.solvers.conic.clarabel._OTHER_ROUNDINGS": "options of Clarabel's, by its own names, for another run",
    "ceopt.solvers.conic.clarabel._SET_UP_S": "seconds of setting up for each number of a block",
    "ceopt.solvers.highs._PRESOLVE_S": "seconds of presolving for each coefficient",
    "ceopt.solvers.gurobi._PARAMETERS": "parameters of Gurobi's, by its own names",
}


def _value(node: ast.AST) -> float | None:
    """Return a float that is written as such or as a power, 2.0**-48; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        with contextlib.suppress(ValueError, TypeError):
            return float(ast.literal_eval(node.left)) ** ast.literal_eval(node.right)
    return None


def _constants(tree: ast.Module) -> Iterator[tuple[ast.stmt, str, float]]:
    """Each constant of a module that holds a small number: its statement, its name and the least of them."""
    for statement in tree.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        small = []
        for node in ast.walk(statement.value):
            value = _value(node)
            if value is not None and 0.0 < abs(value) < LARGEST_TOLERANCE:
                small.append(value)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if small and isinstance(target, ast.Name | ast.Tuple):
            yield statement, ast.unparse(target), min(small)


@pytest.mark.long
def test_tolerances_stand_in_one_file_a_room():
    elsewhere = set()
    for module, name in modules().items():
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"), name)
        if module.rsplit(".", 1)[-1] != "tolerances":
            elsewhere |= {f"{module}.{constant}" for _, constant, _ in _constants(tree)}

    assert elsewhere == set(NO_TOLERANCES)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_each_tolerance_says_why_and_is_used(room):
    source = (ROOT / modules()[f"{room}.tolerances"]).read_text(encoding="utf-8")
    lines = source.splitlines()
    found = [(statement, constant) for statement, constant, _ in _constants(ast.parse(source))]
    elsewhere = [(ROOT / name).read_text(encoding="utf-8") for name in modules().values()]

    assert [name for statement, name in found if not lines[statement.lineno - 2].startswith("#: ")] == []
    assert [name for _, name in found if sum(name in text for text in elsewhere) < 2] == []


def test_no_two_classes_bear_one_name():
    named = Counter(
        node.name
        for name in modules().values()
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"), name))
        if isinstance(node, ast.ClassDef)
    )

    assert not {name for name, count in named.items() if count > 1}


def test_only_readers_know_the_model_libraries():
    wrong = [
        str(found)
        for found in imports()
        if found.top in MODEL_LIBRARIES
        and _inside(found.module, "ceopt.formulations")
        and not found.module.startswith(READERS)
        and not (found.module in FITTERS and found.top == "sklearn" and found.lazy)
    ]

    assert wrong == []


def _default() -> set[str]:
    return requirement_names(pyproject()["project"]["dependencies"])


def _optional() -> set[str]:
    """Distributions that only an extra for users brings."""
    extras = pyproject()["project"]["optional-dependencies"]
    for_work = {"test", "docs", "bench"}
    return {name for extra, needed in extras.items() if extra not in for_work for name in requirement_names(needed)}


def test_the_extra_all_names_every_extra_for_users():
    extras = pyproject()["project"]["optional-dependencies"]
    named = set(extras["all"][0].removeprefix("ceopt[").removesuffix("]").split(","))

    assert named == set(extras) - {"all", "test", "docs", "bench"}


def test_sentences_name_extras_that_exist():
    """What an error says to install is what ``pyproject.toml`` has, and that brings the library."""
    extras = pyproject()["project"]["optional-dependencies"]
    named = set[str]()
    made = set[str]()
    for folder in ("ceopt", "formulations", "solvers"):
        for path in (ROOT / folder).rglob("*.py"):
            for found in re.findall(r"ceopt\[([\w,]+|\{)", path.read_text(encoding="utf-8")):
                if found == "{":
                    made.add(path.name)
                else:
                    named.update(found.split(","))

    assert {"training", "parquet", "lightgbm", "xgboost"} <= named <= set(extras)
    assert made == {"libraries.py", "registry.py"}  # whose extras are looked at here
    for library, extra in _EXTRAS.items():
        assert library in requirement_names(extras[extra])
    for solver in SOLVERS.values():
        assert not solver.extra or solver.distribution in requirement_names(extras[solver.extra])
    assert "onnx" in _default()  # by no extra: it comes with every installation


def test_optional_libraries_are_imported_on_use():
    """The files of the ONNX reader are themselves imported on use, and onnx comes with every installation."""
    on_use = ON_USE | _optional()
    early = [found for found in imports() if found.top in on_use and not (found.lazy or found.for_types)]

    assert [str(found) for found in early if not (found.top == "onnx" and found.module.startswith(READERS))] == []


def test_every_imported_library_is_declared_and_tested():
    extras = pyproject()["project"]["optional-dependencies"]
    tested = _default() | requirement_names(extras["test"])
    foreign = [found for found in imports() if found.top not in {*sys.stdlib_module_names, "ceopt", "__future__"}]
    named = {str(found): DISTRIBUTIONS.get(found.top, found.top) for found in foreign}

    assert {where: name for where, name in named.items() if name not in _default() | _optional()} == {}
    assert {where: name for where, name in named.items() if name not in tested} == {}


def _python(code: str, folder: Path) -> str:
    """What a fresh interpreter prints, from a folder without the sources."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=os.environ, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


DEFAULTS_LOADED = "import joblib, numpy, pandas, pyomo.environ, rich, scipy, sklearn, tqdm, typer"


@pytest.mark.long
def test_import_loads_no_library_that_is_used_on_demand(tmp_path):
    """What the default libraries load by themselves (pandas loads pyarrow where it finds it) is not counted."""
    names = sorted(ON_USE | _optional())
    code = (
        f"import sys\n{DEFAULTS_LOADED}\nbefore = set(sys.modules)\nimport ceopt\n"
        f"print(*[name for name in {names} if name in set(sys.modules) - before])"
    )

    assert _python(code, tmp_path).split() == []


def test_import_loads_no_library_until_a_name_is_asked_for(tmp_path):
    libraries = {"joblib", "numpy", "pandas", "pyomo", "scipy", "sklearn"}
    before = f"import sys, ceopt\nprint(*({libraries} & set(sys.modules)))\n"
    after = f"ceopt.explain\nprint(*({libraries} - set(sys.modules)))"

    assert _python(before + after, tmp_path).splitlines() == ["", ""]


def test_every_public_name_is_defined_where_the_package_looks_for_it():
    named = [name for names in ceopt._DEFINED.values() for name in names.split()]

    assert sorted([*named, *ceopt._PARTS, "__version__"]) == sorted(ceopt.__all__)
    for module, names in ceopt._DEFINED.items():
        for name in names.split():
            assert getattr(ceopt, name) is getattr(sys.modules[module], name)


@pytest.mark.long
def test_import_works_where_no_optional_library_is_installed(tmp_path):
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {sorted(_optional())}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import ceopt\n"
        "on_use = {'ceopt.plans', 'ceopt.dice', 'ceopt.diverse', 'ceopt.surrogates', 'ceopt.training'}\n"
        "assert not on_use & set(sys.modules), 'they are imported when they are asked for'\n"
        "parts = ceopt.plans, ceopt.diverse, ceopt.training, ceopt.dice\n"
        "print(ceopt.__name__, *(part.__name__ for part in parts))"
    )

    assert _python(code, tmp_path).split() == ["ceopt", "ceopt.plans", "ceopt.diverse", "ceopt.training", "ceopt.dice"]
