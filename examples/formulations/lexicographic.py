"""First things first: the fewest changes; among these the safest, by the margin of the model's decision.

Run: python examples/formulations/lexicographic.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import pyomo.environ as pyo
from sklearn.ensemble import RandomForestClassifier
from town import COST, SPACE, fitted, refused

from ceopt import solvers
from ceopt.formulations import Factual, embed, l1

#: The most that an answer may cost.
BUDGET = 6.0


def program(model: Any, person: Any) -> Any:
    """Return the program of the fewest changes; ``m.margin`` is the second objective, switched off."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.predictor = embed(model, m.x)
    margin = m.predictor.margin("yes")
    m.valid = pyo.Constraint(expr=margin >= 0)
    m.within = pyo.Constraint(expr=l1(m.x, scale=COST.scale) <= BUDGET)
    m.changes = pyo.Objective(expr=m.x.n_changed)
    m.margin = pyo.Objective(expr=margin, sense=pyo.maximize)
    m.margin.deactivate()
    return m


def solve(m: Any) -> tuple[float, Any]:
    """Solve for the first objective, hold it, and solve for the second."""
    fewest = solvers.solve(m).objective
    m.held = pyo.Constraint(expr=m.x.n_changed <= round(fewest))
    m.changes.deactivate()
    m.margin.activate()
    return fewest, solvers.solve(m)


def main(*, fast: bool) -> None:
    model = fitted(RandomForestClassifier(5 if fast else 30, max_depth=4, random_state=0))
    m = program(model, refused(model).iloc[0])
    fewest, result = solve(m)
    print(f"{fewest:.0f} changes, margin {result.objective:.3f}")
    print(m.x.decode(result.solutions[0]).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a smaller forest")
    main(fast=parser.parse_args().fast)
