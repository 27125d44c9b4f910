"""The solvers that ceopt brings, as data: their capabilities, and adapters that are imported when they are used."""

from __future__ import annotations

from typing import Any, Final

from ceopt.solvers.problem import ProblemClass as Class
from ceopt.solvers.registry import Licence, Solver

__all__ = ["BUILT_IN"]

_LINEAR = frozenset({Class.LP, Class.MILP})
_CONVEX = frozenset({Class.LP, Class.QP, Class.SOCP, Class.SDP, Class.EXP})
_QUADRATIC = _LINEAR | {Class.QP, Class.MIQP, Class.SOCP, Class.MISOCP}


def _highs(needed: Class) -> Any:
    if needed in {Class.LP, Class.MILP, Class.QP}:
        from ceopt.solvers.highs.session import HighsSession

        return HighsSession
    from ceopt.solvers.outer_approximation.session import TangentSession

    return TangentSession


def _clarabel(_needed: Class) -> Any:
    from ceopt.solvers.conic.clarabel import ClarabelSession

    return ClarabelSession


def _scip(_needed: Class) -> Any:
    from ceopt.solvers.scip.session import ScipSession

    return ScipSession


def _gurobi(_needed: Class) -> Any:
    from ceopt.solvers.gurobi.session import GurobiSession

    return GurobiSession


def _gurobi_licence() -> Licence:
    from ceopt.solvers.gurobi.session import licence

    return licence()


def _scs(_needed: Class) -> Any:
    from ceopt.solvers.conic.scs import ScsSession

    return ScsSession


def _mosek(_needed: Class) -> Any:
    from ceopt.solvers.mosek.session import MosekSession

    return MosekSession


def _mosek_licence() -> Licence:
    from ceopt.solvers.mosek.session import licence

    return licence()


#: The preferred first.
BUILT_IN: Final = (
    Solver(
        name="highs",
        library="highspy",
        distribution="highspy",
        extra="",
        supports=_LINEAR | {Class.QP},
        by_cuts=frozenset({Class.MIQP, Class.SOCP, Class.MISOCP}),
        session=_highs,
        exact={"mip_feasibility_tolerance": 1e-9},
        takes_start=True,
        streams=True,
    ),
    Solver(
        name="clarabel",
        library="clarabel",
        distribution="clarabel",
        extra="",
        supports=_CONVEX,
        session=_clarabel,
        certifies=True,
    ),
    Solver(
        name="scip",
        library="pyscipopt",
        distribution="pyscipopt",
        extra="scip",
        supports=_QUADRATIC | {Class.NONCONVEX, Class.NONCONVEX_EXP},
        session=_scip,
        exact={"numerics/feastol": 1e-9},
        takes_start=True,
        streams=True,
    ),
    Solver(
        name="gurobi",
        library="gurobipy",
        distribution="gurobipy",
        extra="gurobi",
        supports=_QUADRATIC | {Class.NONCONVEX},
        session=_gurobi,
        licence=_gurobi_licence,
        exact={"IntFeasTol": 1e-9, "FeasibilityTol": 1e-9},
        pool=True,
        takes_start=True,
        streams=True,
    ),
    Solver(
        name="scs",
        library="scs",
        distribution="scs",
        extra="scs",
        supports=_CONVEX,
        session=_scs,
        certifies=True,
    ),
    Solver(
        name="mosek",
        library="mosek",
        distribution="mosek",
        extra="mosek",
        supports=_QUADRATIC | _CONVEX | {Class.MIEXP},
        session=_mosek,
        licence=_mosek_licence,
        takes_start=True,
    ),
)
