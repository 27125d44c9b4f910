"""The solvers that ceopt brings, as data: their capabilities, and adapters that are imported when they are used."""

from __future__ import annotations

from typing import Final

from ceopt.solvers.problem import ProblemClass as Class
from ceopt.solvers.registry import Imported, Licence, Solver

_LINEAR = frozenset({Class.LP, Class.MILP})
_CONVEX = frozenset({Class.LP, Class.QP, Class.SOCP, Class.SDP, Class.EXP})
_QUADRATIC = _LINEAR | {Class.QP, Class.MIQP, Class.SOCP, Class.MISOCP}

#: Of SCIP's heuristics those that dive, or solve programs of their own.
_SCIP_HEURISTICS = (
    "adaptivediving", "alns", "conflictdiving", "crossover", "distributiondiving", "farkasdiving", "feaspump",
    "fracdiving", "gins", "guideddiving", "intshifting", "linesearchdiving", "lpface", "objpscostdiving", "oneopt",
    "pscostdiving", "randrounding", "rens", "rins", "rootsoldiving", "shifting", "veclendiving",
)  # fmt: skip


def _gurobi_licence() -> Licence:
    from ceopt.solvers.gurobi import licence

    return licence()


def _mosek_licence() -> Licence:
    from ceopt.solvers.mosek import licence

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
        session=Imported(
            "ceopt.solvers.outer_approximation:TangentSession",
            others=dict.fromkeys(_LINEAR | {Class.QP}, "ceopt.solvers.highs:HighsSession"),
        ),
        exact={"mip_feasibility_tolerance": 1e-9},
        # Strong branching solves dozens of relaxations a node: of two forests on 20 columns 5 nodes took 60 s with it,
        # and the whole tree of 133 nodes 27 s without.
        large={"mip_pscost_minreliable": 0},
        light={
            "mip_pscost_minreliable": 0,
            "mip_pool_soft_limit": 1,
            "mip_pool_age_limit": 0,
            "mip_lp_age_limit": 0,
            "mip_allow_cut_separation_at_nodes": False,
            "mip_detect_symmetry": False,
            "mip_heuristic_effort": 0.0,
            "mip_heuristic_run_rins": False,
            "mip_heuristic_run_rens": False,
            "mip_heuristic_run_root_reduced_cost": False,
            "mip_heuristic_run_feasibility_jump": False,
        },
        takes_start=True,
        streams=True,
        takes_callback=True,
    ),
    Solver(
        name="clarabel",
        library="clarabel",
        distribution="clarabel",
        extra="",
        supports=_CONVEX,
        session=Imported("ceopt.solvers.conic.clarabel:ClarabelSession"),
        certifies=True,
    ),
    Solver(
        name="scip",
        library="pyscipopt",
        distribution="pyscipopt",
        extra="scip",
        supports=_QUADRATIC | {Class.NONCONVEX, Class.NONCONVEX_EXP},
        session=Imported("ceopt.solvers.scip:ScipSession"),
        exact={"numerics/feastol": 1e-9},
        light={
            "separating/maxroundsroot": 0,
            "separating/maxrounds": 0,
            **{f"heuristics/{name}/freq": -1 for name in _SCIP_HEURISTICS},
        },
        takes_start=True,
        streams=True,
        takes_callback=True,
        takes_lazy_rows=True,
    ),
    Solver(
        name="gurobi",
        library="gurobipy",
        distribution="gurobipy",
        extra="gurobi",
        supports=_QUADRATIC | {Class.NONCONVEX, Class.NONCONVEX_EXP},
        session=Imported("ceopt.solvers.gurobi:GurobiSession"),
        licence=_gurobi_licence,
        exact={"IntFeasTol": 1e-9, "FeasibilityTol": 1e-9},
        pool=True,
        takes_start=True,
        streams=True,
        takes_callback=True,
        takes_lazy_rows=True,
    ),
    Solver(
        name="scs",
        library="scs",
        distribution="scs",
        extra="scs",
        supports=_CONVEX,
        session=Imported("ceopt.solvers.conic.scs:ScsSession"),
        certifies=True,
    ),
    Solver(
        name="mosek",
        library="mosek",
        distribution="mosek",
        extra="mosek",
        supports=_QUADRATIC | _CONVEX | {Class.MIEXP},
        session=Imported("ceopt.solvers.mosek:MosekSession"),
        licence=_mosek_licence,
        takes_start=True,
    ),
)
