"""The validity bounds of plans: against the theorem's form and the reduced form in cvxpy, by size, and by sampling."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from cones import in_cvxpy

import ceopt.plans.validity
from ceopt.formulations import programs
from ceopt.plans import extremal_distribution, validity_bounds

TITLE = "Validity bounds of plans"
MEASURES = ("ceopt/plans/validity.py", "formulations/programs/validity_lower.py")
WAYS = ("ceopt", "cvxpy, reduced", "cvxpy, theorem")

RADIUS, LARGE, PLANS = 0.1, 50, 5
SIZES = (10, 50, 100, 200, 500)
MANY, SMALL, FEW = 1000, 10, 3
DRAWS = 20_000


def instance(d: int, n: int, seed: int, *, inside: bool = True) -> dict[str, Any]:
    """Return a random plan of n counterfactuals, favourable at the mean or not, and the moments of the classifier."""
    rng = np.random.default_rng([common.SEED, d, n, seed])
    mean = rng.normal(size=d) / np.sqrt(d)
    factor = rng.normal(size=(d, d)) / np.sqrt(d)
    side = 1.0 if inside else -1.0
    plan = rng.normal(size=(n, d)) / np.sqrt(d)
    scores = plan @ mean
    wanted = side * rng.uniform(0.5, 1.5, size=n)
    plan += np.outer(wanted - scores, mean) / (mean @ mean)
    return {"plan": plan, "mean": mean, "covariance": 0.1 * factor @ factor.T + 0.02 * np.eye(d)}


# ---- cvxpy -----------------------------------------------------------------------------------------------------------
def theorem_by_cvxpy(plan: Any, mean: Any, covariance: Any) -> tuple[float, str]:
    """Return the lower bound by the theorem's form (LB-T), as a cvxpy user states it."""
    return solved(in_cvxpy(plan, mean, covariance))


def reduced_by_cvxpy(plan: Any, mean: Any, covariance: Any) -> tuple[float, str]:
    """Return the lower bound by the arrow form (LB-A) in the dimensions of the plan."""
    import cvxpy as cp

    _, sizes, right = np.linalg.svd(plan, full_matrices=False)
    basis = right[sizes > 1e-10 * sizes[0]]
    x, mu, sigma = plan @ basis.T, basis @ mean, basis @ covariance @ basis.T
    (n, d), factor = x.shape, np.linalg.cholesky(sigma)
    moment, cross = cp.Variable((d, d), symmetric=True), cp.Variable((d, d))
    weight, z = cp.Variable(n + 1), cp.Variable((d, n + 1))
    total = cp.reshape(cp.sum(z, axis=1), (d, 1), order="C")
    one, none = np.ones((1, 1)), np.zeros((d, 1))
    rows = [cp.sum(weight) == 1, *(x[j] @ z[:, j + 1] <= 0 for j in range(n))]
    rows += [
        cp.bmat([[moment, z], [z.T, cp.diag(weight)]]) >> 0,
        cp.bmat([[moment, cross, total], [cross.T, np.eye(d), none], [total.T, none.T, one]]) >> 0,
        mu @ mu - 2 * mu @ total[:, 0] + cp.trace(moment) + np.trace(sigma) - 2 * cp.trace(cross @ factor.T)
        <= RADIUS**2,
    ]
    return solved(cp.Problem(cp.Minimize(weight[0]), rows))


def solved(problem: Any) -> tuple[float, str]:
    """Return optimum and status of a cvxpy problem by Clarabel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL")
    return float(problem.value), str(problem.status)


def ours(plan: Any, mean: Any, covariance: Any) -> tuple[float, str]:
    """Return the same by ceopt, checks of the input included."""
    found = validity_bounds(plan, mean, covariance, RADIUS)
    return found.lower, str(found.lower_status)


def measured(way: Callable[..., tuple[float, str]], data: dict[str, Any]) -> dict[str, Any]:
    """Return value, status, seconds by both clocks."""
    wall, cpu = time.perf_counter(), time.process_time()
    value, status = way(**data)
    return {
        "value": value, "status": status, "wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu,
    }  # fmt: skip


# ---- the measurements ------------------------------------------------------------------------------------------------
def against_cvxpy(repeats: int, *, quick: bool) -> dict[str, Any]:
    """Solve d = 50, J = 5: the reduced form by both, in turn, and the theorem's form once between them."""
    data = instance(10 if quick else LARGE, PLANS, 0)
    ways = {"ceopt": ours, "cvxpy, reduced": reduced_by_cvxpy}
    for way in ways.values():
        way(**data)  # the first pays for imports
    records = []
    once: dict[str, Any] = {}
    for place in common.bar(range(repeats), repeats):
        if place == repeats // 2:
            once = {"way": "cvxpy, theorem", "row": 0, **measured(theorem_by_cvxpy, data)}
        turn = common.rotated(list(ways), place)
        records += [{"way": name, "row": place, **measured(ways[name], data)} for name in turn]
    return {"records": [*records, once], "d": len(data["mean"]), "J": PLANS}


def by_size(repeats: int) -> dict[str, Any]:
    """Measure what a bound takes after the checks of its input, by the number of features, in turn."""
    checked = ceopt.plans.validity.require_bound_arguments
    spent = {"checks": 0.0}

    def clocked(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return checked(*arguments)
        finally:
            spent["checks"] = time.perf_counter() - began

    records = []
    ceopt.plans.validity.require_bound_arguments = clocked
    try:
        for place in common.bar(range(repeats), repeats):
            for d in common.rotated(list(SIZES), place):
                data = instance(d, FEW, place, inside=place % 2 == 0)
                began = time.perf_counter()
                found = validity_bounds(**data, radius=RADIUS)
                whole = time.perf_counter() - began
                records.append(
                    {
                        "d": d,
                        "row": place,
                        "status": str(found.status),
                        "lower": found.lower,
                        "upper": found.upper,
                        "checks_s": spent["checks"],
                        "after_s": whole - spent["checks"],
                    }
                )
    finally:
        ceopt.plans.validity.require_bound_arguments = checked
    return {"records": records}


def many(n: int) -> dict[str, Any]:
    """Measure n pairs of bounds of three counterfactuals and ten features; half of the plans fail at the mean."""
    cases = [instance(SMALL, FEW, k, inside=k % 2 == 0) for k in range(n)]
    wall, cpu = time.perf_counter(), time.process_time()
    found = [validity_bounds(**case, radius=RADIUS) for case in common.bar(cases, n)]
    return {
        "bounds": n, "wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu,
        "statuses": {s: sum(str(f.status) == s for f in found) for s in sorted({str(f.status) for f in found})},
        "strictly_between": sum(0.0 < f.lower < 1.0 or 0.0 < f.upper < 1.0 for f in found),
    }  # fmt: skip


def sampled(n: int) -> dict[str, Any]:
    """Compare frequencies with the bounds: Gaussians with moments drawn from the ball, and extremal distributions."""
    rng = np.random.default_rng(common.SEED)
    beyond = {"Gaussian": 0, "extremal": 0}
    asked = {"Gaussian": 0, "extremal": 0}
    largest = {"Gaussian": -np.inf, "extremal": -np.inf}
    for k in common.bar(range(n), n):
        d, plans = int(rng.integers(2, 21)), int(rng.integers(1, 6))
        data = instance(d, plans, k, inside=k % 2 == 0)
        bounds = validity_bounds(**data, radius=RADIUS)
        draws = {"Gaussian": [gaussian(data, rng) for _ in range(5)], "extremal": []}
        for side in ("lower", "upper"):
            found = extremal_distribution(**data, radius=RADIUS, bound=side)
            draws["extremal"].append(found.sample(DRAWS, random_state=k))
        for kind, samples in draws.items():
            for theta in samples:
                scores = theta @ data["plan"].T
                noise = 1e-9 * np.abs(data["plan"]).sum(axis=1)
                strict, loose = (scores > 0.0).all(axis=1).mean(), (scores >= -noise).all(axis=1).mean()
                for miss, bound in ((bounds.lower - strict, bounds.lower), (loose - bounds.upper, bounds.upper)):
                    if bound in {0.0, 1.0}:
                        continue
                    error = np.sqrt(max(bound * (1.0 - bound), 1.0 / DRAWS) / DRAWS)
                    asked[kind] += 1
                    beyond[kind] += miss > 3.0 * error
                    largest[kind] = max(largest[kind], float(miss / error))
    return {
        kind: {"asked": asked[kind], "beyond_3_errors": int(beyond[kind]), "largest_in_errors": largest[kind]}
        for kind in asked
    }


def gaussian(data: dict[str, Any], rng: Any) -> Any:
    """Return draws of a Gaussian whose moments lie in the ball: mean + shift, A S A with Tr(E S E) spent."""
    d = len(data["mean"])
    shift, bent = rng.normal(size=d), rng.normal(size=(d, d))
    bent = bent + bent.T
    split = rng.uniform()
    shift *= RADIUS * np.sqrt(split) / np.linalg.norm(shift)
    bent *= RADIUS * np.sqrt((1.0 - split) / np.trace(bent @ data["covariance"] @ bent))
    bent *= min(1.0, 1.0 / max(-np.linalg.eigvalsh(bent)[0], 1e-12))  # I + E is to be semidefinite
    root = (np.eye(d) + bent) @ np.linalg.cholesky(data["covariance"])
    return data["mean"] + shift + rng.normal(size=(DRAWS, d)) @ root.T


def main() -> None:
    """Measure, and write the report."""
    options = common.arguments("Validity bounds: against cvxpy, by size, a thousand of them, by sampling.", rows=20)
    quick = options.quick
    repeats = 4 if quick else options.rows
    record = {
        "libraries": common.installed(["clarabel", "cvxpy", "scipy"]),
        "against_cvxpy": against_cvxpy(repeats, quick=quick),
        "by_size": by_size(repeats),
        "many": many(50 if quick else MANY),
        "sampled": sampled(4 if quick else 60),
    }
    write(record, quick=quick)


def sizes_of(d: int) -> list[list[Any]]:
    """Return variables, rows and cones of the two forms at d and in the dimensions of the plan."""
    data = instance(d, PLANS, 0)
    rows = []
    for name, program, n in (
        ("theorem's form", programs.validity_lower, d),
        ("arrow form, reduced", programs.validity_lower_arrow, PLANS),
        ("coupled form, reduced (ceopt)", programs.validity_lower_coupled, PLANS),
    ):
        part = data if n == d else instance(n, PLANS, 0)
        compiled = ceopt.solvers.compile_model(program(**part, radius=RADIUS))
        sides = [
            int((np.sqrt(8 * cone.constant.size + 1) - 1) / 2) for cone in compiled.cones if cone.cone == "semidefinite"
        ]
        blocks = ", ".join(f"{sides.count(side)} of side {side}" for side in sorted(set(sides)))
        rows.append([name, len(compiled.columns), len(compiled.rows), blocks])
    return rows


def write(record: dict[str, Any], *, quick: bool) -> None:
    """Compare, and keep what was found."""
    of = {name: [r for r in record["against_cvxpy"]["records"] if r["way"] == name] for name in WAYS}
    median = {name: float(np.median([r["wall_s"] for r in own])) for name, own in of.items()}
    record["ratios"] = {
        "theorem": median["cvxpy, theorem"] / median["ceopt"],
        "reduced": common.ratios(of["ceopt"], of["cvxpy, reduced"], "wall_s"),
    }
    least, most = (
        float(np.median([r["after_s"] for r in record["by_size"]["records"] if r["d"] == d]))
        for d in (SIZES[0], SIZES[-1])
    )
    record["by_size"]["ratio"] = most / least
    common.report("validity_bounds", TITLE, MEASURES, text_of, record, quick=quick)


def text_of(record: dict[str, Any]) -> str:
    """Summarise."""
    versus = record["against_cvxpy"]
    of = {name: [r for r in versus["records"] if r["way"] == name] for name in WAYS}
    median = {name: float(np.median([r["wall_s"] for r in own])) for name, own in of.items()}
    cpu = {name: float(np.median([r["cpu_s"] for r in own])) for name, own in of.items()}
    lines = [
        [name, len(of[name]), f"{median[name] * 1e3:.1f}", f"{cpu[name] * 1e3:.1f}",
         f"{median[name] / median['ceopt']:.1f}", f"{of[name][0]['value']:.9f}", of[name][0]["status"]]
        for name in of
    ]  # fmt: skip
    after = {d: [r["after_s"] for r in record["by_size"]["records"] if r["d"] == d] for d in SIZES}
    checks = {d: [r["checks_s"] for r in record["by_size"]["records"] if r["d"] == d] for d in SIZES}
    least = float(np.median(after[SIZES[0]]))
    sizes = [
        [
            d,
            f"{np.median(checks[d]) * 1e3:.1f}",
            f"{np.median(after[d]) * 1e3:.1f}",
            f"{np.median(after[d]) / least:.2f}",
        ]
        for d in SIZES
    ]
    lot, sample = record["many"], record["sampled"]
    statuses = ", ".join(f"{count} {status}" for status, count in lot["statuses"].items())
    samples = [[kind, s["asked"], s["beyond_3_errors"], f"{s['largest_in_errors']:.2f}"] for kind, s in sample.items()]
    return (
        f"**Against cvxpy {record['libraries']['cvxpy']}**, d = {versus['d']}, J = {versus['J']}, radius {RADIUS}, "
        "lower bound, the same Clarabel. Whole calls: checks, statement, compilation, solve; medians of interleaved "
        "runs, the theorem's form once between them.\n\n"
        + common.markdown_table(["way", "runs", "wall, ms", "CPU, ms", "times ceopt", "value", "status"], lines)
        + "\n\nThe programs:\n\n"
        + common.markdown_table(["form", "variables", "rows", "semidefinite blocks"], sizes_of(versus["d"]))
        + f"\n\n**By the number of features**, J = {FEW}, both bounds, milliseconds, medians of interleaved runs; "
        "the checks of the input (one spectrum of the covariance) apart.\n\n"
        + common.markdown_table(["d", "checks", "after the checks", "times d = 10"], sizes)
        + f"\n\n**{lot['bounds']} pairs of bounds**, d = {SMALL}, J = {FEW}, half of the plans failing at the mean: "
        f"{lot['wall_s']:.1f} s wall, {lot['cpu_s']:.1f} s CPU; {statuses}; {lot['strictly_between']} with a bound "
        "strictly between 0 and 1.\n\n"
        f"**By sampling**, d from 2 to 20, J from 1 to 5, {DRAWS} draws each: Gaussians with moments drawn from the "
        "ball, and the distributions that attain the bounds. A frequency beyond a bound by more than three standard "
        "errors is to be rare among the extremal ones, whose probability is the bound itself, and absent among the "
        "others.\n\n"
        + common.markdown_table(["distributions", "comparisons", "beyond 3 errors", "farthest, in errors"], samples)
    )


if __name__ == "__main__":
    main()
