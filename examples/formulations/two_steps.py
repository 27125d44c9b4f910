"""A plan in two steps with a lag: what is done in the second step may need what the first one reached.

Run: python examples/formulations/two_steps.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import pyomo.environ as pyo
from sklearn.linear_model import LogisticRegression
from town import COST, SPACE, fitted, refused

from ceopt import solvers
from ceopt.formulations import Factual, Reaches, embed, l1

#: The most that one step may cost, and what a unit of the second step costs beside one of the first.
EACH, LATER = 3.0, 0.5


def program(model: Any, person: Any) -> Any:
    """Return the program: income rises in the second step only if the grade was raised to the top in the first."""
    m = pyo.ConcreteModel()
    m.first = Factual(SPACE, person)
    m.second = Factual(SPACE, person)
    m.predictor = embed(model, m.second)
    m.valid = Reaches(m.predictor, "yes")
    first = l1(m.first, scale=COST.scale)
    second = l1(m.second, origin=m.first, scale=COST.scale)
    m.each = pyo.ConstraintList()
    m.each.add(first <= EACH)
    m.each.add(second <= EACH)
    rise = m.second.raw["income"] - m.first.raw["income"]
    m.lag = pyo.Constraint(expr=rise <= 9 * m.first.above["grade", 1])
    m.cost = pyo.Objective(expr=first + LATER * second)
    return m


def main(*, fast: bool) -> None:
    model = fitted(LogisticRegression())
    for place in range(1 if fast else 5):
        m = program(model, refused(model).iloc[place])
        result = solvers.solve(m)
        print(result.status, round(result.objective, 6))
        if result.solutions:
            result.solutions[0].load()
            print(m.first.decode().to_frame("first").join(m.second.decode().to_frame("second")).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="one person")
    main(fast=parser.parse_args().fast)
