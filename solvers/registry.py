"""The registry of solvers: what a solver says of itself, and which one takes a program.

The solvers that come with ceopt are listed in ``built_in.py``; the class to write for another is ``AbstractSession``
in ``adapter.py``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import pandas as pd

from ceopt.solvers.checks import Choice
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    MissingLibraryError,
    MissingLicenceError,
    UnknownNameError,
    UnsupportedProblemError,
)
from ceopt.solvers.problem import ProblemClass as Class

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel


def _takes_all(_compiled: CompiledModel) -> str:
    return ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """A licence, or why there is none.

    Parameters
    ----------
    why_not
        One sentence where there is none; else empty.
    limits
        The sizes that it takes, for people; empty where there is no limit.
    refusal
        One sentence on why a compiled model is too large for it; empty where it is not.
    """

    why_not: str = ""
    limits: str = ""
    refusal: Callable[[CompiledModel], str] = _takes_all


@final
@dataclass(frozen=True, slots=True)
class Imported:
    """An adapter that is imported once it is asked for: its session class by problem class.

    Parameters
    ----------
    usual
        Where the session class is, as "module:class".
    others
        The same for problem classes that have another.
    """

    usual: str
    others: Mapping[Class, str] = field(default_factory=dict)

    def __call__(self, needed: Class) -> Any:
        """Return the session class for a problem class."""
        module, _, name = self.others.get(needed, self.usual).partition(":")
        return getattr(importlib.import_module(module), name)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """One solver as data; its adapter is imported when it is used.

    Parameters
    ----------
    name
        What a user calls it.
    library, distribution
        The module that the adapter imports, and the package that brings it.
    extra
        The extra of ceopt that installs it; empty for a default dependency.
    supports
        The problem classes that it solves itself.
    by_cuts
        Further classes, whose cones it gets as tangent cuts.
    session
        Imports the adapter and returns its session class for a problem class.
    licence
        Looks for a licence; None for an open solver.
    exact
        Options under which integers are as whole as the solver can make them; slower, for where 1e-6 is too coarse.
    large
        Options for a program whose relaxation takes long.
    light
        Options for a linear program of trees with a good start: branching alone, with cuts and heuristics nearly off.
    pool
        Whether it enumerates the n best itself; else rows are added.
    takes_start
        Whether a start is used.
    streams
        Whether incumbents are reported as they come.
    takes_callback
        Whether its session asks a callback during the search.
    takes_lazy_rows
        Whether its session asks for further rows at each candidate in whole numbers.
    certifies
        Whether a certificate, recomputed from numbers, comes with an optimum.
    """

    name: str
    library: str
    distribution: str
    extra: str
    supports: frozenset[Class]
    session: Callable[[Class], Any]
    by_cuts: frozenset[Class] = frozenset()
    licence: Callable[[], Licence] | None = None
    exact: Mapping[str, Any] = field(default_factory=dict)
    large: Mapping[str, Any] = field(default_factory=dict)
    light: Mapping[str, Any] = field(default_factory=dict)
    pool: bool = False
    takes_start: bool = False
    streams: bool = False
    takes_callback: bool = False
    takes_lazy_rows: bool = False
    certifies: bool = False

    @property
    def is_installed(self) -> bool:
        """Whether the library can be found; it is not imported."""
        return importlib.util.find_spec(self.library) is not None

    @property
    def version(self) -> str:
        """Version of the installed package; empty where it is not installed."""
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return ""

    @property
    def classes(self) -> frozenset[Class]:
        """Every class that it solves, itself or by cuts."""
        return self.supports | self.by_cuts

    @property
    def is_licensed(self) -> bool:
        """Whether it is installed and may solve, up to its licence's size."""
        return self.is_installed and not self.found_licence.why_not

    @property
    def found_licence(self) -> Licence:
        """The licence as it was found; that of an open solver has no limits."""
        if self.licence is None:
            return Licence()
        return self.licence()

    @property
    def why_not(self) -> str:
        """One sentence on why it cannot be used; empty where it can."""
        if self.is_installed:
            return self.found_licence.why_not
        package = self.distribution
        if self.extra:
            package = f"ceopt[{self.extra}]"
        return f"{self.library} is not installed: pip install {package}."

    def refusal(self, compiled: CompiledModel) -> str:
        """Return one sentence on why it, installed, cannot solve this model; empty where it can."""
        found = self.found_licence
        return found.why_not or found.refusal(compiled)


_SOLVERS: dict[str, Solver] = {}
_OWN: set[str] = set()

SOLVERS: Mapping[str, Solver] = _SOLVERS
"""Solvers by name, the preferred first."""

SOLVER_NAME = Choice(lambda: ["auto", *SOLVERS], "solver")
"""What an argument that names a solver may be: one that is registered at the time, or "auto"."""


def register_built_in(solvers: Iterable[Solver]) -> None:
    """Add the solvers of ceopt itself, in their order; they stay."""
    for solver in solvers:
        _SOLVERS[solver.name] = solver
        _OWN.add(solver.name)


def register(solver: Solver) -> None:
    """Add a solver, behind those that are there: ``solve(model, name)``, "auto" and :func:`available` then know it.

    Raises
    ------
    InvalidValueError
        There is a solver of that name already, the name is no name, or it solves no class.
    InvalidTypeError
        It is no :class:`Solver`.

    Examples
    --------
    See ``docs/how_to/adding_a_solver.md``.
    """
    if not isinstance(solver, Solver):
        raise InvalidTypeError("register", "a Solver", f"it got {solver!r}", "See docs/how_to/adding_a_solver.md.")
    if solver.name in {*_SOLVERS, "auto"} or not solver.name:
        raise InvalidValueError(
            "register", "a new name", f"name is {solver.name!r}", f"Names that are taken: auto, {', '.join(_SOLVERS)}."
        )
    strange = [c for c in solver.classes if not isinstance(c, Class)]
    if strange or not solver.classes:
        found = f"{solver.name!r} supports {strange or 'none'}"
        raise InvalidValueError("register", "problem classes", found, f"Choose from: {', '.join(Class)}.")
    _SOLVERS[solver.name] = solver


def unregister(name: str) -> None:
    """Take a solver away that :func:`register` added.

    Raises
    ------
    UnknownNameError
        Nobody registered a solver of that name; those of ceopt itself stay.
    """
    added = [known for known in _SOLVERS if known not in _OWN]
    if name not in added:
        raise UnknownNameError.among("unregister", "registered solver", name, added or ["(none)"])
    del _SOLVERS[name]


def choose(name: str, compiled: CompiledModel) -> Solver:
    """Return the solver called ``name``, or for "auto" the first that is installed, licensed and able.

    One that takes the program's cones itself goes before one that gets them as cuts; but for squares beside integers,
    of which tangent cuts prove the optimum in less time.

    Raises
    ------
    UnknownNameError
        There is no such solver.
    UnsupportedProblemError
        It, or every solver, does not solve this class; the message names who does.
    MissingLibraryError, MissingLicenceError
        Its library is not installed, its licence is missing or too small; or that of every solver of this class.
    """
    SOLVER_NAME.require("solve", "solver", name)
    needed = compiled.problem_class
    able = [solver for solver in SOLVERS.values() if needed in solver.supports]
    by_cuts = [solver for solver in SOLVERS.values() if needed in solver.by_cuts]
    able = by_cuts + able if needed is Class.MIQP else able + by_cuts
    wanted = able
    if name != "auto":
        wanted = [SOLVERS[name]]
    if not wanted or needed not in wanted[0].classes:
        who = "solve"
        if name != "auto":
            who = f"Solver {name!r}"
        classes = ", ".join(c for c in Class if any(c in s.classes for s in wanted or SOLVERS.values()))
        raise UnsupportedProblemError(
            who, f"a model of class {classes}", f"this one is {needed}", _who_could(able, needed, compiled)
        )
    for solver in wanted:
        if solver.is_installed and not solver.refusal(compiled):
            return solver
    best = wanted[0]
    others = _who_could([solver for solver in able if solver is not best], needed, compiled)
    if not best.is_installed:
        raise MissingLibraryError("solve", "a solver that is installed", best.why_not.rstrip("."), others)
    why = best.refusal(compiled).rstrip(".")
    raise MissingLicenceError("solve", f"a licence for {best.name!r} that takes this model", why, others)


def refuse_callback(solver: Solver, compiled: CompiledModel) -> None:
    """Refuse a callback for a solver that never calls it, naming those that would.

    Raises
    ------
    UnsupportedProblemError
        The solver takes none.
    """
    if solver.takes_callback:
        return
    needed = compiled.problem_class
    others = [other for other in SOLVERS.values() if other.takes_callback and needed in other.classes]
    then = "Leave the callback out."
    if others:
        then = _who_could(others, needed, compiled)
    raise UnsupportedProblemError("callback", "a solver that calls it", f"the solver is {solver.name!r}", then)


def multiplies(name: str) -> bool:
    """Whether a solver, named and no "auto", takes products of variables of any number.

    It then gets them as they are; a licence that takes few of them (Gurobi's without an account) does not count.
    """
    solver = SOLVERS.get(name)
    return solver is not None and Class.NONCONVEX in solver.supports and not solver.found_licence.limits


def _who_could(able: list[Solver], needed: Class, compiled: CompiledModel) -> str:
    """Return what to do, naming who solves this class and can be used here, else who would have to be installed."""
    ready = [s.name for s in able if s.is_installed and not s.refusal(compiled)]
    if ready:
        return f"Use solver {' or '.join(map(repr, ready))}, or 'auto'."
    if able:
        why = able[0].why_not or able[0].refusal(compiled)
        return f"Solvers for {needed} are {', '.join(s.name for s in able)}: {why}"
    return _ADVICE.get(needed, "Restate the model.")


_ADVICE = {
    Class.MISDP: "No solver here takes integers beside semidefinite cones: enumerate the integers, or relax them.",
    Class.NONCONVEX_CONIC: "No solver here takes a nonconvex quadratic beside semidefinite cones: "
    "restate the quadratic.",
    Class.MIEXP: "Enumerate the integers, or replace the exponential by pieces.",
}

#: The classes that ``available`` speaks of; nonconvex ones and integers beside exponentials have columns of their own.
_LISTED = (Class.LP, Class.MILP, Class.QP, Class.MIQP, Class.SOCP, Class.MISOCP, Class.SDP, Class.EXP)


def available() -> pd.DataFrame:
    """Return one row per solver.

    Columns: solver, installed, version, licensed, supports (classes), why_not, by_cuts (of the classes, those whose
    cones it gets as tangent cuts), nonconvex (takes nonconvex quadratics), pool (finds the n best itself), start,
    incumbents, callback (takes starts; streams what it meets; asks a callback), certificate (comes with an optimum),
    limits (of its licence).
    """
    return pd.DataFrame(
        [
            {
                "solver": solver.name,
                "installed": solver.is_installed,
                "version": solver.version,
                "licensed": solver.is_licensed,
                "supports": ", ".join(c for c in _LISTED if c in solver.classes),
                "why_not": solver.why_not,
                "by_cuts": ", ".join(c for c in _LISTED if c in solver.by_cuts),
                "nonconvex": Class.NONCONVEX in solver.supports,
                "pool": solver.pool,
                "start": solver.takes_start,
                "incumbents": solver.streams,
                "callback": solver.takes_callback,
                "certificate": solver.certifies,
                "limits": solver.found_licence.limits if solver.is_installed else "",
            }
            for solver in SOLVERS.values()
        ]
    )
