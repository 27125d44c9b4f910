"""Robust to noise in what is done: a move that succeeds up to some error keeps the decision, by a second-order cone.

Run: python examples/formulations/noise_cone.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import pyomo.environ as pyo
from sklearn.linear_model import LogisticRegression
from town import COST, SPACE, fitted, refused

from ceopt import solvers
from ceopt.formulations import Factual, embed, l1, predictors
from ceopt.solvers.cones import soc

#: Standard deviation of each column's move, as a share of it, and how many deviations have to be borne.
NOISE, DEVIATIONS = {"income": 0.3, "rooms": 0.2}, 1.645


def program(model: Any, person: Any) -> Any:
    """Return the program: margin >= kappa |(w_j sigma_j move_j)_j|, so 95 % of normal errors keep the decision."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.predictor = embed(model, m.x)
    weights = dict(zip(SPACE.names, predictors.read(model, SPACE).signed("yes").core.weights[0], strict=True))
    spread = []
    for name, noise in NOISE.items():
        move = m.x.raw[name] - m.x.factual[name]
        spread.append(DEVIATIONS * noise * float(weights[name]) * move)
    m.robust = pyo.Constraint(expr=soc(m.predictor.margin("yes"), spread) >= 0)
    m.cost = pyo.Objective(expr=l1(m.x, scale=COST.scale))
    return m


def main(*, fast: bool) -> None:
    model = fitted(LogisticRegression())
    for place in range(1 if fast else 3):
        m = program(model, refused(model).iloc[place])
        result = solvers.solve(m)
        print(result.status, round(result.objective, 6))
        print(m.x.decode(result.solutions[0]).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="one person")
    main(fast=parser.parse_args().fast)
