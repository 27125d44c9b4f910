"""PROPLACE: among the people near whom every network near this one says yes, and itself accepted by all of them.

The hull of the ten nearest rows that keep the rule RobustToShift, beside that rule: Jiang, Lan, Leofante, Rago & Toni
(2023), Provably robust and plausible counterfactual explanations for neural networks via robust optimisation.

Run: python examples/formulations/proplace.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from sklearn.neural_network import MLPClassifier
from town import COST, PEOPLE, SPACE, fitted, refused

import ceopt
from ceopt import solvers
from ceopt.formulations import Factual, impose, l1


def nearest_robust(rule: ceopt.RobustToShift, person: Any, count: int = 10) -> pd.DataFrame:
    """Return the people nearest to a person, in the town's cost, to whom every network of the box says yes."""
    keeps = [rule.violation(SPACE, None, SPACE.row(row)) == 0.0 for _, row in PEOPLE.iterrows()]
    robust = PEOPLE[keeps]
    units = np.array([COST.scale[name] for name in PEOPLE])
    prices = (np.abs(robust.to_numpy() - np.asarray(person)) / units).sum(axis=1)
    return robust.iloc[np.argsort(prices, kind="stable")[:count]]


def program(network: Any, person: Any, delta: float) -> Any:
    """Return the program: two rules on one block of columns."""
    rule = ceopt.RobustToShift(delta, target="yes", model=network)
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.robust = impose(rule, m.x)
    m.plausible = impose(ceopt.Hull(nearest_robust(rule, person)), m.x)
    m.cost = pyo.Objective(expr=l1(m.x, scale=COST.scale))
    return m


def main(*, fast: bool) -> None:
    network = fitted(MLPClassifier((4,) if fast else (8, 8), solver="lbfgs", alpha=1.0, max_iter=5000, random_state=0))
    m = program(network, refused(network).iloc[0], 0.02)
    result = solvers.solve(m)
    print(result.status, round(result.objective, 6))
    print(m.x.decode(result.solutions[0]).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a smaller network")
    main(fast=parser.parse_args().fast)
