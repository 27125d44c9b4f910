"""What the gradient attacker finds of the worst shift of training data, beside the proved optimum on small data."""

from __future__ import annotations

import time
from typing import Any

import common
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from ceopt.training import retrained, virtual_data_shift, worst_shift

TITLE = "The gradient attacker beside the worst shift of training data"
MEASURES = (
    "ceopt/training/shifts.py",
    "ceopt/training/training.py",
    "formulations/programs/data_shift.py",
    "solvers/scip.py",
)

#: Rows and columns of the training data.
SIZES = ((6, 1), (6, 2), (8, 2))
LOSSES = ("squared", "hinge", "logistic")
RADIUS = 0.1
REGULARIZATION = 0.05
#: Steps, unrolled steps and starts of the attacker: Algorithm 1 as the paper runs it, and with far more of everything.
ATTACKERS = {"T = 7, K = 2": (7, 2, 1), "T = 30, K = 8, best of 5": (30, 8, 5)}
RATE = 1.0
LIMIT_S = 60.0


def instance(n: int, d: int, seed: int) -> tuple[Any, Any, Any]:
    """Return rows of two overlapping classes, their range from 0 to 1, and a point halfway into the favourable one."""
    rng = np.random.default_rng([common.SEED, n, d, seed])
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = rng.normal(size=(n, d)) + 0.8 * y[:, None]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return X, y, 0.5 * (X[y > 0.0].mean(axis=0) + X.mean(axis=0))


# ---- two attackers ---------------------------------------------------------------------------------------------------
def proved(X: Any, y: Any, at: Any, loss: str) -> dict[str, Any]:
    """Return the optimum of the program, checked by training again, and what it proves."""
    began = time.perf_counter()
    found = worst_shift(X, y, at, radius=RADIUS, regularization=REGULARIZATION, loss=loss, time_limit_s=LIMIT_S)
    return {
        "wall_s": time.perf_counter() - began, "status": str(found.status), "before": found.unshifted,
        "score": found.score, "bound": found.bound,
    }  # fmt: skip


def by_gradients(X: Any, y: Any, at: Any, attacker: str) -> tuple[list[Any], float]:
    """Return the shifts that Algorithm 1 ends at, one a start, and its seconds; the model is a logistic regression."""
    steps, unroll, starts = ATTACKERS[attacker]
    names = [f"x{j}" for j in range(X.shape[1])]
    rows = pd.DataFrame(X, columns=names)
    model = LogisticRegression(C=1.0 / (len(y) * REGULARIZATION), tol=1e-10).fit(rows, y)
    advice = pd.DataFrame([at], columns=names)
    began = time.perf_counter()
    shifts = []
    for seed in range(starts):
        found = virtual_data_shift(
            model, rows, y, advice, targets=[1.0], perturbation=RADIUS, steps=steps, unroll=unroll, learning_rate=RATE,
            random_state=seed,
        )  # fmt: skip
        shifts.append(np.clip(found.shift, -RADIUS, RADIUS))
    return shifts, time.perf_counter() - began


def score_after(X: Any, y: Any, at: Any, loss: str) -> float:
    """Return the score of the explanation by the classifier that the rows train, by its least optimal intercept."""
    trained = retrained(X, y, loss=loss, regularization=REGULARIZATION)
    return float(at @ trained.weights + trained.intercepts[0])


# ---- measuring -------------------------------------------------------------------------------------------------------
def measured(seeds: int) -> list[dict[str, Any]]:
    """Return a record an instance, loss and attacker."""
    records = []
    turns = [(n, d, seed) for n, d in SIZES for seed in range(seeds)]
    for n, d, seed in common.bar(turns, len(turns)):
        X, y, at = instance(n, d, seed)
        found = {attacker: by_gradients(X, y, at, attacker) for attacker in ATTACKERS}
        for loss in LOSSES:
            known = proved(X, y, at, loss)
            own = {"n": n, "d": d, "seed": seed, "loss": loss}
            records.append({"way": "program", **own, **known})
            for attacker, (shifts, seconds) in found.items():
                score = min(score_after(X + shift, y, at, loss) for shift in shifts)
                records.append({"way": attacker, **own, "wall_s": seconds, "score": score})
    return records


def shares(records: list[dict[str, Any]], attacker: str, n: int, d: int, loss: str) -> list[float]:
    """Return, an instance each, how much of what the worst shift takes off the score the attacker takes off."""
    of = {(r["way"], r["seed"]): r for r in records if (r["n"], r["d"], r["loss"]) == (n, d, loss)}
    found = []
    for way, seed in of:
        if way == attacker:
            known = of["program", seed]
            found.append((known["before"] - of[way, seed]["score"]) / (known["before"] - known["bound"]))
    return found


def text_of(record: dict[str, Any]) -> str:
    """Summarise."""
    records = record["records"]
    lines = []
    for n, d in SIZES:
        for loss in LOSSES:
            own = [r for r in records if (r["way"], r["n"], r["d"], r["loss"]) == ("program", n, d, loss)]
            of = {attacker: shares(records, attacker, n, d, loss) for attacker in ATTACKERS}
            cells = [f"{np.mean(of[a]):.2f} ({min(of[a]):.2f} to {max(of[a]):.2f})" for a in ATTACKERS]
            optimal = sum(r["status"] == "optimal" for r in own)
            before = np.mean([r["before"] for r in own])
            bound = np.mean([r["bound"] for r in own])
            seconds = np.median([r["wall_s"] for r in own])
            lines.append(
                [n, d, loss, f"{before:.3f}", f"{bound:.3f}", f"{optimal} of {len(own)}", f"{seconds:.1f}", *cells]
            )
    missed = []
    for n, d in SIZES:
        for loss in LOSSES:
            for attacker in ATTACKERS:
                missed += [1.0 - share for share in shares(records, attacker, n, d, loss)]
    return (
        f"Instances of two overlapping classes, columns from 0 to 1, each entry moved by at most {RADIUS:g}; "
        f"regularization {REGULARIZATION:g}. `worst_shift` proves how low the score of an explanation can fall after "
        "retraining; `virtual_data_shift` (Algorithm 1, on a logistic regression, inner rate "
        f"{RATE:g}) ends at a shift, on which each classifier is trained to its optimum. The last columns are the "
        "share of the worst fall of the score that the attacker finds, mean (least to greatest): below 0, its shift "
        "raises the score.\n\n"
        + common.markdown_table(
            ["rows", "columns", "loss", "score before", "worst score, proved", "proved optimal", "program, s, median",
             *(f"found, {a}" for a in ATTACKERS)], lines,
        )
        + f"\n\nNo attacker went beyond the bound: the least part of the fall that one missed is {min(missed):.1e}."
    )  # fmt: skip


def main() -> None:
    """Measure, and write the report."""
    options = common.arguments("The gradient attacker beside the worst shift.", rows=5)
    seeds = 1 if options.quick else options.rows
    with threadpool_limits(1):
        records = measured(seeds)
    record = {"libraries": common.installed(["pyscipopt", "jax", "scikit-learn"]), "records": records}
    common.report("shifts", TITLE, MEASURES, text_of, record, quick=options.quick)


if __name__ == "__main__":
    main()
