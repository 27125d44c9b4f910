"""The reference: a page for each public module, which lists its names, and what finds a name wherever it is documented.

A name that several modules export is documented once, in the first of ``MODULES`` that has it; the others point there.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

#: What a user imports from, by what it is for; a test compares with what is exported and with what the pages import.
MODULES: Mapping[str, tuple[str, ...]] = {
    "A question and its answer": ("ceopt", "ceopt.datasets", "ceopt.words", "ceopt.pictures.svg"),
    "Coming from DiCE": ("ceopt.dice",),
    "Sets, plans, black boxes, training": (
        "ceopt.diverse",
        "ceopt.plans",
        "ceopt.surrogates",
        "ceopt.training",
        "ceopt.metrics",
    ),
    "Formulations": (
        "ceopt.formulations",
        "ceopt.formulations.space",
        "ceopt.formulations.targets",
        "ceopt.formulations.constraints",
        "ceopt.formulations.constraints.causal",
        "ceopt.formulations.constraints.diversity",
        "ceopt.formulations.constraints.diversity.distinct",
        "ceopt.formulations.costs",
        "ceopt.formulations.costs.base",
        "ceopt.formulations.columns",
        "ceopt.formulations.predictors",
        "ceopt.formulations.predictors.embed",
        "ceopt.formulations.predictors.readers",
        "ceopt.formulations.predictors.readers.model_input",
        "ceopt.formulations.programs",
        "ceopt.formulations.recourse_program",
        "ceopt.formulations.linear_form",
    ),
    "Solvers": (
        "ceopt.solvers",
        "ceopt.solvers.cones",
        "ceopt.solvers.errors",
        "ceopt.solvers.manifest",
        "ceopt.solvers.adapter",
    ),
}

#: What public functions return or take, and docstrings point to, though nothing exports it.
RETURNED = (
    "ceopt.result.verify.Report",
    "ceopt.result.cohort_shown.CohortSummary",
    "ceopt.people.PeopleResult",
    "ceopt.people.PeopleSolution",
    "ceopt.result.shown.SurrogateReport",
    "ceopt.words.sentences.ToldResult",
    "ceopt.words.language.Language",
    "ceopt.formulations.columns.columns_block.AbstractColumns",
    "ceopt.formulations.columns.numeric.Cells",
    "ceopt.formulations.columns.numeric.write_rows",
    "ceopt.formulations.constraints.diversity.diversity.AbstractDiversity",
    "ceopt.formulations.costs.base.CostCutoff",
    "ceopt.formulations.predictors.ties.default_margin",
    "ceopt.formulations.predictors.ties.margin_near",
    "ceopt.formulations.predictors.embed.embedded.AbstractEmbedded",
    "ceopt.formulations.predictors.margin.DecisionMargin",
    "ceopt.formulations.predictors.margin.LeastAndGreatest",
    "ceopt.formulations.predictors.embed.embedded.EmbeddingError",
    "ceopt.formulations.predictors.readers.read",
    "ceopt.formulations.predictors.embed.probability.LogisticCurve",
    "ceopt.formulations.predictors.embed.probability.PiecewiseLink",
    "ceopt.formulations.predictors.embed.probability.Probabilities",
    "ceopt.formulations.predictors.representation.Head",
    "ceopt.formulations.programs.data_shift.add_shift",
    "ceopt.formulations.programs.data_shift.add_switched",
    "ceopt.formulations.programs.minimax.worst_spread",
    "ceopt.formulations.programs.moments.add_ball",
    "ceopt.formulations.programs.moments.add_coupling",
    "ceopt.formulations.programs.moments.add_price",
    "ceopt.formulations.space.encoding.Column",
    "ceopt.formulations.space.encoding.Encoding",
    "ceopt.formulations.space.encoding.SparseTable",
    "ceopt.solvers.compile.ordered_sets.OrderedSet",
    "ceopt.solvers.compile.rows_and_cones.ConeRows",
    "ceopt.solvers.compile.rows_and_cones.QuadraticRow",
    "ceopt.solvers.adapter.apply_options",
    "ceopt.solvers.problem.Certificate",
    "ceopt.solvers.registry.Licence",
    "ceopt.diverse.line_search.nearer",
    "ceopt.diverse.projection.Projection",
    "ceopt.metrics.distance.scales_of",
    "ceopt.surrogates.rivals.AbstractLinearSurrogate",
    "ceopt.surrogates.scaled_columns.AbstractPoints",
    "ceopt.training.networks.PredictorNetwork",
    "ceopt.training.recourse_network.AbstractRecourseNetwork",
    "ceopt.training.rivals.AbstractRowRecourse",
    "ceopt.training.rivals.WorstDensities",
)


def modules() -> list[str]:
    """Return the public modules, in order."""
    return [name for names in MODULES.values() for name in names]


def exported_modules() -> set[str]:
    """Return every package that exports names; what the readers of single libraries share is their own affair."""
    package = importlib.import_module("ceopt")
    found = {"ceopt"}
    for module in pkgutil.walk_packages(package.__path__, "ceopt."):
        inside = module.name.startswith(("ceopt.formulations.predictors.readers.", "ceopt.cli", "ceopt.metrics."))
        if module.ispkg and not inside and getattr(importlib.import_module(module.name), "__all__", ()):
            found.add(module.name)
    return found


@cache
def places() -> Mapping[str, str]:
    """Return where each public name is documented: "module.name" -> the same, or the first module that exports it."""
    found: dict[str, str] = {}
    first: dict[int, str] = {}
    for name in modules():
        module = importlib.import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            full = f"{name}.{public}"
            if isinstance(value, ModuleType):
                found[full] = value.__name__
            elif callable(value):
                found[full] = first.setdefault(id(value), full)
            else:
                found[full] = full
    return found


def kind_of(value: Any) -> str:
    """Return under which heading a name stands."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return "Errors and warnings"
    if isinstance(value, type):
        return "Classes"
    if isinstance(value, ModuleType):
        return "Modules"
    if callable(value):
        return "Functions"
    return "Data"


def page(name: str) -> str:
    """Return the page of a module, as reStructuredText."""
    module = importlib.import_module(name)
    title = name
    lines = [
        f".. _module-{name}:",
        "",
        title,
        "=" * len(title),
        "",
        f".. py:module:: {name}",
        "",
        f".. currentmodule:: {name}",
        "",
    ]
    lines += [_first_lines(module), ""]
    by_kind: dict[str, list[str]] = {}
    elsewhere: list[str] = []
    for public in module.__all__:
        full = f"{name}.{public}"
        if kind_of(getattr(module, public)) != "Modules" and places()[full] != full:
            elsewhere.append(places()[full])
        else:
            by_kind.setdefault(kind_of(getattr(module, public)), []).append(public)
    for kind in ("Functions", "Classes", "Errors and warnings"):
        if kind in by_kind:
            lines += [kind, "-" * len(kind), "", ".. autosummary::", "   :toctree: names", "   :nosignatures:", ""]
            lines += [f"   {public}" for public in by_kind[kind]] + [""]
    if "Data" in by_kind:
        lines += ["Data", "----", ""]
        for public in by_kind["Data"]:
            lines += _data(module, public)
    if "Modules" in by_kind:
        lines += ["Modules", "-------", ""]
        lines += [f"- :ref:`{name}.{public} <module-{name}.{public}>`" for public in by_kind["Modules"]] + [""]
    if elsewhere:
        lines += ["Also here", "---------", ""]
        lines += ["Exported here too, and described where they are first met:", ""]
        lines += [", ".join(f":py:obj:`~{full}`" for full in elsewhere) + ".", ""]
    return "\n".join(lines)


def _first_lines(module: ModuleType) -> str:
    """Return the docstring of a module as far as its examples, as a sentence."""
    text = inspect.cleandoc(module.__doc__ or "")
    return text.partition("\n>>>")[0].strip()


def _data(module: ModuleType, public: str) -> list[str]:
    """Return what is said of a constant: the comment beside it, and the names in it where it is a list of names."""
    value = getattr(module, public)
    lines = [f".. py:data:: {public}", ""]
    said = _comment(module, public)
    if said:
        lines += [f"   {said}", ""]
    if isinstance(value, str):
        lines += [f"   Here ``{value!r}``.", ""]
    elif isinstance(value, Mapping) and all(isinstance(inner, Mapping) for inner in value.values()):
        for key, inner in value.items():
            lines += [f"   - ``{key}``: " + ", ".join(f"``{one}``" for one in inner)]
        lines += [""]
    elif isinstance(value, Mapping | tuple | list | set | frozenset):
        lines += ["   " + ", ".join(f"``{one}``" for one in value) + ".", ""]
    return lines


def _comment(module: ModuleType, public: str) -> str:
    """Return the ``#:`` lines above a constant, in the module or in the one that it is imported from."""
    for source in _sources(module, public):
        found = re.search(rf"((?:^#: .*\n)+){public}\b[^\n]*=", source, re.MULTILINE)
        if found:
            return " ".join(line.removeprefix("#: ") for line in found[1].splitlines())
    return "The installed version." if public == "__version__" else ""


def _sources(module: ModuleType, public: str) -> Iterator[str]:
    """Give the source of a module, then of those from which it may have the name."""
    own = inspect.getsource(module)
    yield own
    for found in re.finditer(rf"from (\S+) import [^\n(]*\b{public}\b", own):
        yield inspect.getsource(importlib.import_module(found[1]))


def index() -> str:
    """Return the list of the modules, as reStructuredText."""
    lines = ["All public names", "================", ""]
    lines += ["Every name that ``ceopt`` exports, from the docstrings of the code that is installed.", ""]
    for title, names in MODULES.items():
        lines += [title, "-" * len(title), "", ".. toctree::", "   :hidden:", ""]
        lines += [f"   {_breakable(name)} <{name}>" for name in names] + [""]
        lines += [".. list-table::", "   :widths: 40 60", "   :class: modules", ""]
        for name in names:
            said = _first_lines(importlib.import_module(name)).partition("\n\n")[0].replace("\n", " ")
            lines += [f"   * - :ref:`{name} <module-{name}>`", f"     - {said}"]
        lines += [""]
    lines += ["What they return", "----------------", "", ".. toctree::", "", "   returned", ""]
    return "\n".join(lines)


def _breakable(name: str) -> str:
    """Return a dotted name that a narrow column breaks behind its dots, and nowhere else."""
    return name.replace(".", ".\u200b")


def returned() -> str:
    """Return the page of what is returned and not exported, as reStructuredText."""
    title = "Returned, and inside"
    lines = [title, "=" * len(title), ""]
    lines += ["What public functions return or take, and docstrings point to. Nobody needs to import it.", ""]
    lines += [".. autosummary::", "   :toctree: names", "   :nosignatures:", ""]
    return "\n".join([*lines, *(f"   {full}" for full in RETURNED), ""])


@cache
def pages() -> Mapping[str, str]:
    """Return the text of every page by its name."""
    found = {"index": index(), "returned": returned()}
    for name in modules():
        found[name] = page(name)
    return found


def write(folder: Path) -> None:
    """Write all pages; one that is there and says the same is left alone, so that Sphinx does not read it again."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        path = folder / f"{name}.rst"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# ---- what Sphinx asks ------------------------------------------------------------------------------------------------
@cache
def _documented() -> Mapping[int, str]:
    """Return where each class and function is documented, by its identity."""
    found: dict[int, str] = {}
    for name in modules():
        module = importlib.import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            if callable(value):
                found.setdefault(id(value), places()[f"{name}.{public}"])
    for full in RETURNED:
        found[id(_located(full, None))] = full
    return found


@cache
def _by_last_name() -> Mapping[str, str]:
    """Return where a name is documented that is given without its module; none that stands for several things."""
    found: dict[str, str] = {}
    twice = set()
    for full in _documented().values():
        last = full.rpartition(".")[2]
        if last in found:
            twice.add(last)
        found[last] = full
    return {last: full for last, full in found.items() if last not in twice}


def _located(target: str, module: str | None) -> Any:
    """Return what a dotted name means, from a module or from the top; None if nothing."""
    for full in ([f"{module}.{target}"] if module else []) + [target]:
        parts = full.split(".")
        for cut in range(len(parts), 0, -1):
            try:
                value = importlib.import_module(".".join(parts[:cut]))
            except ImportError:
                continue
            try:
                for part in parts[cut:]:
                    value = getattr(value, part)
            except AttributeError:
                break
            return value
    return None


def resolved(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Resolve a name that is documented under another module than the one by which it is called."""
    if node.get("refdomain") != "py":
        return None
    target = node.get("reftarget", "")
    value = _located(target, node.get("py:module"))
    full = _documented().get(id(value)) if callable(value) else None
    if full is None and value is None:
        first, dot, rest = target.partition(".")
        full = _by_last_name()[first] + dot + rest if first in _by_last_name() else None
    if full is None and "." in target:  # a method of a class that is documented elsewhere
        above, _, last = target.rpartition(".")
        owner = _located(above, node.get("py:module"))
        if callable(owner) and id(owner) in _documented():
            full = f"{_documented()[id(owner)]}.{last}"
    if full is None:  # what is there and has no page is no dead link: a type inside the package
        return contnode if value is not None and target.startswith("ceopt.") else None
    if full == target:
        return None
    return env.get_domain("py").resolve_xref(
        env, node["refdoc"], app.builder, node.get("reftype"), full, node, contnode
    )


def skipped(app: Any, what: str, name: str, value: Any, *rest: Any) -> bool | None:
    """Leave out members that a class has from another library: they are described there."""
    own = getattr(value, "fget", None) or getattr(value, "__func__", value)
    module = getattr(own, "__module__", None) or "ceopt"
    return None if module.startswith("ceopt") else True


def readable(app: Any, what: str, name: str, *rest: Any) -> tuple[str | None, str | None]:
    """Write a default that is no Python, such as ``<factory>``, as dots: else Sphinx lays no signature out."""
    *_, signature, returned = rest
    return (re.sub(r"= ?<[^<>]*>", "= ...", signature) if signature else signature), returned


def check_complete(app: Any, env: Any) -> None:
    """Refuse a site in which a public name has no place."""
    known = env.get_domain("py").objects
    missing = sorted(full for full, place in places().items() if place not in known)
    if missing:
        raise RuntimeError(f"The reference needs every public name, but has no place for {', '.join(missing)}.")
