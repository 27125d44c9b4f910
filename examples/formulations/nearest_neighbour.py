"""The nearest neighbour as the model: the person who is nearest to the answer is one who was accepted.

Run: python examples/formulations/nearest_neighbour.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pyomo.environ as pyo
from town import COST, PEOPLE, SPACE, WANTED

from ceopt import solvers
from ceopt.formulations import Factual, l1


def program(rows: Any, accepted: Any, person: Any) -> Any:
    """Return the program: of squared distances the difference is linear, |x - q|^2 - |x - p|^2 = 2 (p - q) x + ..."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    x = [m.x.raw[name] for name in SPACE.names]
    ends = np.array([[0, 9], [1, 4], [0, 2], [0, 1]])
    good, bad = rows[accepted], rows[~accepted]
    m.nearest = pyo.Var(range(len(good)), domain=pyo.Binary)
    m.one = pyo.Constraint(expr=pyo.quicksum(m.nearest.values()) == 1)
    m.nearer = pyo.ConstraintList()
    for k, p in enumerate(good):
        for q in bad:
            weights = 2 * (p - q)
            constant = q @ q - p @ p
            low = np.minimum(weights * ends[:, 0], weights * ends[:, 1]).sum() + constant
            further = sum(float(w) * column for w, column in zip(weights, x, strict=True)) + float(constant)
            m.nearer.add(further >= 1 + (low - 1) * (1 - m.nearest[k]))  # whole numbers: nearer by one at least
    m.cost = pyo.Objective(expr=l1(m.x, scale=COST.scale))
    return m


def main(*, fast: bool) -> None:
    few = 12 if fast else 40
    rows, accepted = PEOPLE.to_numpy()[:few], WANTED[:few] == "yes"
    m = program(rows, accepted, PEOPLE.iloc[int(np.flatnonzero(~accepted)[0])])
    result = solvers.solve(m)
    print(result.status, round(result.objective, 6))
    print(m.x.decode(result.solutions[0]).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="twelve neighbours")
    main(fast=parser.parse_args().fast)
