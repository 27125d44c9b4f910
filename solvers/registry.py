"""Which solvers there are: what each supports, which library it needs and how it is called."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import pandas as pd

from ceopt.solvers.errors import MissingLibraryError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.problem import ProblemClass

__all__ = ["SOLVERS", "Solver", "available", "choose"]


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
        The problem classes that it solves.
    session
        Imports the adapter and returns its session class.
    exact
        Options under which integers are as whole as the solver can make them; slower, for where 1e-6 is too coarse.
    """

    name: str
    library: str
    distribution: str
    extra: str
    supports: frozenset[ProblemClass]
    session: Callable[[], Any]
    exact: Mapping[str, Any] = field(default_factory=dict)

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
    def why_not(self) -> str:
        """One sentence on why it cannot be used; empty where it can."""
        if self.is_installed:
            return ""
        package = f"ceopt[{self.extra}]" if self.extra else self.distribution
        return f"{self.library} is not installed: pip install {package}."


def _highs() -> Any:
    from ceopt.solvers.highs import HighsSession

    return HighsSession


SOLVERS: Mapping[str, Solver] = {
    "highs": Solver(
        name="highs",
        library="highspy",
        distribution="highspy",
        extra="",
        supports=frozenset({ProblemClass.LP, ProblemClass.MILP, ProblemClass.QP}),
        session=_highs,
        exact={"mip_feasibility_tolerance": 1e-9},
    )
}
"""Solvers by name, the preferred first."""


def choose(name: str, needed: ProblemClass) -> Solver:
    """Return the solver called ``name``, or for "auto" the first that is installed and supports ``needed``.

    Raises
    ------
    UnknownNameError
        There is no such solver.
    UnsupportedProblemError
        It, or every solver, does not solve this class.
    MissingLibraryError
        Its library is not installed.
    """
    if name != "auto" and name not in SOLVERS:
        raise UnknownNameError.among("solve", "solver", name, ["auto", *SOLVERS])
    able = [solver for solver in SOLVERS.values() if needed in solver.supports]
    wanted = able if name == "auto" else [SOLVERS[name]]
    if not wanted or needed not in wanted[0].supports:
        who = "solve" if name == "auto" else f"solver {name!r}"
        classes = sorted({c for solver in (wanted or SOLVERS.values()) for c in solver.supports})
        then = f"Use {', '.join(s.name for s in able)}." if able else _ADVICE.get(needed, "Restate the model.")
        raise UnsupportedProblemError(who, f"a model of class {', '.join(classes)}", f"this one is {needed}", then)
    for solver in wanted:
        if solver.is_installed:
            return solver
    raise MissingLibraryError("solve", "a solver that is installed", wanted[0].why_not.rstrip("."), "Install it.")


_ADVICE = {
    ProblemClass.MIQP: "A quadratic cost beside whole numbers or levels is one: state a linear cost (l1, linf, l0), or "
    "hand the model to SCIP or Gurobi through Pyomo."
}


def available() -> pd.DataFrame:
    """Return one row per solver: solver, installed, version, licensed, supports, why_not."""
    return pd.DataFrame(
        [
            {
                "solver": solver.name,
                "installed": solver.is_installed,
                "version": solver.version,
                "licensed": solver.is_installed,
                "supports": ", ".join(c for c in ProblemClass if c in solver.supports),
                "why_not": solver.why_not,
            }
            for solver in SOLVERS.values()
        ],
        columns=["solver", "installed", "version", "licensed", "supports", "why_not"],
    )
