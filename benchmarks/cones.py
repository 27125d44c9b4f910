"""The semidefinite bound of COPA theorem 2.2 in plain Pyomo: from the program to the solver, beside cvxpy."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import clarabel
import common
import numpy as np
import pyomo.environ as pyo

from ceopt.solvers import compile_model
from ceopt.solvers.cones import psd
from ceopt.solvers.conic.clarabel import ClarabelSession
from ceopt.solvers.conic.form import conic_form

TITLE = "From a stated semidefinite program to the solver"
MEASURES = ("solvers/compile", "solvers/conic")

SIZES, PLANS, RADIUS = (10, 20, 30), 5, 0.1
#: Up to this size both programs are also solved, by the same Clarabel.
SOLVED = 30
PARTS = ("state", "lower", "hand_over", "set_up")


def instance(d: int) -> dict[str, Any]:
    """Return a random plan that is valid at the mean, and the moments of the classifier."""
    rng = np.random.default_rng(common.SEED)
    mean = rng.normal(size=d)
    factor = rng.normal(size=(d, d)) / np.sqrt(d)
    plan = rng.normal(size=(PLANS, d)) + 2.0 * mean
    return {"plan": plan, "mean": mean, "covariance": 0.05 * factor @ factor.T + 0.01 * np.eye(d)}


# ---- the program, twice ----------------------------------------------------------------------------------------------
def in_pyomo(plan: Any, mean: Any, covariance: Any) -> Any:
    """Return LB-T, entry by entry."""
    (n, d), given, hat = plan.shape, mean.tolist(), covariance.tolist()
    m = pyo.ConcreteModel()
    m.columns, m.plans = pyo.RangeSet(0, d - 1), pyo.RangeSet(0, n - 1)
    pairs = [(a, b) for a in range(d) for b in range(a, d)]
    m.mean, m.cross = pyo.Var(m.columns), pyo.Var(m.columns, m.columns)
    m.moment, m.sigma = pyo.Var(pairs), pyo.Var(pairs)
    m.weight, m.z, m.zz = pyo.Var(m.plans), pyo.Var(m.plans, m.columns), pyo.Var(m.plans, pairs)
    moment, sigma, cross = dict(m.moment.items()), dict(m.sigma.items()), dict(m.cross.items())
    z, zz, w, mu = dict(m.z.items()), dict(m.zz.items()), list(m.weight.values()), list(m.mean.values())

    def bordered(inside: Callable[[int, int], Any], edge: Callable[[int], Any], corner: Any) -> Any:
        """Return the margin of ((inside, edge), (edge', corner))."""
        upper = {(a, b): inside(a, b) for a, b in pairs} | {(a, d): edge(a) for a in range(d)} | {(d, d): corner}
        return psd([[upper[min(a, b), max(a, b)] for b in range(d + 1)] for a in range(d + 1)]) >= 0

    rows = plan.tolist()
    m.T1 = pyo.Constraint(m.plans, rule=lambda _m, j: sum(rows[j][a] * z[j, a] for a in range(d)) <= 0)
    m.T2 = pyo.Constraint(m.plans, rule=lambda _m, j: bordered(lambda a, b: zz[j, a, b], lambda a: z[j, a], w[j]))
    m.T3 = pyo.Constraint(
        expr=bordered(
            lambda a, b: moment[a, b] - sum(zz[j, a, b] for j in range(n)),
            lambda a: mu[a] - sum(z[j, a] for j in range(n)),
            1 - sum(w),
        )
    )
    m.T4 = pyo.Constraint(expr=bordered(lambda a, b: moment[a, b] - sigma[a, b], lambda a: mu[a], 1.0))
    both = [[sigma[min(a, b), max(a, b)] for b in range(d)] + [cross[a, b] for b in range(d)] for a in range(d)]
    both += [[cross[b, a] for b in range(d)] + hat[a] for a in range(d)]
    m.T5 = pyo.Constraint(expr=psd(both) >= 0)
    constant = float(mean @ mean + np.trace(covariance))
    moved = sum(-2.0 * given[a] * mu[a] + moment[a, a] - 2.0 * cross[a, a] for a in range(d))
    m.T6 = pyo.Constraint(expr=constant + moved <= RADIUS**2)
    m.bound = pyo.Objective(expr=1 - sum(w))
    return m


def in_cvxpy(plan: Any, mean: Any, covariance: Any) -> Any:
    """Return the same as a cvxpy Problem."""
    import cvxpy as cp

    n, d = plan.shape
    mu, w = cp.Variable((d, 1)), cp.Variable(n)
    moment, sigma, cross = cp.Variable((d, d), symmetric=True), cp.Variable((d, d), symmetric=True), cp.Variable((d, d))
    z = [cp.Variable((d, 1)) for _ in range(n)]
    zz = [cp.Variable((d, d), symmetric=True) for _ in range(n)]
    one = np.ones((1, 1))
    blocks = [cp.bmat([[zz[j], z[j]], [z[j].T, cp.reshape(w[j], (1, 1), order="C")]]) for j in range(n)]
    rows = [plan[j] @ z[j] <= 0 for j in range(n)]
    rows += [block >> 0 for block in blocks]
    rows += [
        cp.bmat([[moment, mu], [mu.T, one]]) - cp.sum(blocks) >> 0,
        cp.bmat([[moment - sigma, mu], [mu.T, one]]) >> 0,
        cp.bmat([[sigma, cross], [cross.T, covariance]]) >> 0,
        mean @ mean - 2 * mean @ mu + cp.trace(moment) + np.trace(covariance) - 2 * cp.trace(cross) <= RADIUS**2,
    ]
    return cp.Problem(cp.Minimize(1 - cp.sum(w)), rows)


# ---- measuring -------------------------------------------------------------------------------------------------------
class Handed(Exception):  # noqa: N818 - not an error
    """The solver has the program."""


def now() -> Any:
    """Return both clocks: wall and CPU seconds."""
    return np.array([time.perf_counter(), time.process_time()])


@contextmanager
def up_to_the_solver() -> Iterator[dict[str, Any]]:
    """End a solve as soon as Clarabel's solver object is made; note what that took by itself."""
    original, spent = clarabel.DefaultSolver, {"set_up": np.zeros(2)}

    def made(*arguments: Any) -> Any:
        began = now()
        original(*arguments)
        spent["set_up"] = now() - began
        raise Handed

    clarabel.DefaultSolver = made
    try:
        yield spent
    except Handed:
        pass
    finally:
        clarabel.DefaultSolver = original


def ours(data: dict[str, Any]) -> dict[str, Any]:
    """Return seconds: stating the program, lowering it, from there to the solver, and the solver's own set-up."""
    began = now()
    model = in_pyomo(**data)
    built = now()
    conic_form(compile_model(model))
    lowered = now()
    with up_to_the_solver() as spent:
        ClarabelSession(compile_model(model)).solve()
    handed = now() - lowered - spent["set_up"]
    return {"state": built - began, "lower": lowered - built, "hand_over": handed, **spent}


def theirs(data: dict[str, Any]) -> dict[str, Any]:
    """Return the same of cvxpy; each with a problem of its own, as it keeps what it compiled."""
    began = now()
    problem, fresh = in_cvxpy(**data), in_cvxpy(**data)
    built = now()
    problem.get_problem_data("CLARABEL")
    lowered = now()
    with up_to_the_solver() as spent:
        fresh.solve(solver="CLARABEL")
    handed = now() - lowered - spent["set_up"]
    return {"state": (built - began) / 2, "lower": lowered - built, "hand_over": handed, **spent}


def measure(way: Callable[[dict[str, Any]], dict[str, Any]], data: dict[str, Any]) -> dict[str, list[float]]:
    """Return [wall, CPU] seconds of each part."""
    return {part: clocks.tolist() for part, clocks in way(data).items()}


WAYS = {"ceopt": ours, "cvxpy": theirs}


def optima(data: dict[str, Any]) -> dict[str, float]:
    """Return both optima and the worst number of our certificate."""
    outcome = ClarabelSession(compile_model(in_pyomo(**data))).solve(time_limit_s=900)
    problem = in_cvxpy(**data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL")
    worst = outcome.certificate.worst if outcome.certificate else float("nan")
    value = float("nan") if outcome.objective is None else outcome.objective
    return {"ceopt": value, "cvxpy": float(problem.value), "certificate": worst, "seconds": outcome.run_time}


def main() -> None:
    """Measure each size, both ways in turn, and write the report."""
    options = common.arguments("From a stated semidefinite program to the solver.", rows=15)
    repeats = 3 if options.quick else options.rows
    sizes = SIZES[:2] if options.quick else SIZES
    records: list[dict[str, Any]] = []
    solved: dict[int, dict[str, float]] = {}
    for d in common.bar(sizes, len(sizes)):
        data = instance(d)
        for way in WAYS.values():
            way(data)  # the first pays for imports
        for place in range(repeats):
            turn = common.rotated(list(WAYS), place)
            records += [{"d": d, "way": name, "row": place, **measure(WAYS[name], data)} for name in turn]
        if d <= SOLVED:
            solved[d] = optima(data)
    write(records, solved, sizes, repeats, quick=options.quick)


def write(records: list[dict[str, Any]], solved: Any, sizes: Any, repeats: int, *, quick: bool) -> None:
    """Take the medians by size, and keep what was found."""
    totals = {}
    for d in sizes:
        totals[str(d)] = {
            f"{name} {part}": (np.median([r[part] for r in records if (r["d"], r["way"]) == (d, name)], axis=0) * 1e3)
            for name in WAYS
            for part in PARTS
        }
        totals[str(d)]["share"] = totals[str(d)]["ceopt hand_over"] / totals[str(d)]["cvxpy lower"]
    record = {
        "libraries": common.installed(["clarabel", "cvxpy", "scipy"]),
        "repeats": repeats,
        "totals": {d: {name: clocks.tolist() for name, clocks in of.items()} for d, of in totals.items()},
        "optima": {str(d): found for d, found in solved.items()},
        "records": records,
    }
    common.report("cones", TITLE, MEASURES, text_of, record, quick=quick)


def text_of(record: dict[str, Any]) -> str:
    """Summarise by size."""
    lines = []
    for d, median in record["totals"].items():
        line = [d, *(f"{median[f'{name} {part}'][0]:.1f}" for part in PARTS for name in WAYS)]
        line += [f"{part:.2f}" for part in median["share"]]
        found = record["optima"].get(d)
        if found is not None:
            line += [f"{found[name]:.9f}" for name in WAYS]
            line += [f"{found['certificate']:.1e}", f"{found['seconds']:.1f}"]
        lines.append(line)
    return (
        f"The lower bound in theorem form (LB-T) for {PLANS} counterfactuals of d columns and radius {RADIUS}: "
        f"{PLANS + 2} semidefinite blocks of side d + 1 and one of side 2d, stated in plain Pyomo by `psd` and in "
        f"cvxpy by `bmat`; both go to the same Clarabel. Milliseconds, medians of {record['repeats']} runs, "
        "interleaved. *Lower* is `compile_model` and `conic_form`, and cvxpy's `get_problem_data`. *To the solver* is "
        "everything from the stated program until Clarabel's solver object is made, but for Clarabel's own *set-up* "
        "(its constructor). *Share* is ceopt's way to the solver over cvxpy's `get_problem_data` alone, by wall and by "
        "CPU time.\n\n"
        + common.markdown_table(
            ["d", "state: ceopt", "cvxpy", "lower: ceopt", "cvxpy", "to the solver: ceopt", "cvxpy",
             "set-up: ceopt", "cvxpy", "share, wall", "CPU", "optimum: ceopt", "cvxpy", "certificate", "solve, s"],
            lines,
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
