"""200 people with one budget: as many as possible are served, of low and of high income to about the same share.

Run: python examples/formulations/budget_and_fairness.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import pyomo.environ as pyo
from sklearn.ensemble import GradientBoostingClassifier
from town import COST, POINTS, SPACE, fitted

from ceopt import solve_people
from ceopt.formulations import People, shared_budget

#: What there is for all together, and by how much the shares served may differ.
BUDGET, FAIR = 150.0, 0.05


def drawn(model: Any, n: int) -> Any:
    """Return some people whom a model refuses; many are alike."""
    return POINTS[model.predict(POINTS) == "no"].sample(n, replace=True, random_state=0, ignore_index=True)


def program(model: Any, people: Any) -> Any:
    """Return the program: a budget for all, and the shares served of both groups within a few percent."""
    m = pyo.ConcreteModel()
    m.people = People(model, people, SPACE, target="yes", cost=COST)
    m.budget = shared_budget(m.people, BUDGET)
    served = m.people.served
    high, low = (people.index[(people["income"] > 4) == is_high] for is_high in (True, False))
    difference = sum(served[i] for i in high) / len(high) - sum(served[i] for i in low) / len(low)
    m.fair = pyo.Constraint(expr=(-FAIR, difference, FAIR))
    m.most = pyo.Objective(expr=pyo.quicksum(served.values()), sense=pyo.maximize)
    return m


def main(*, fast: bool) -> None:
    model = fitted(GradientBoostingClassifier(n_estimators=5 if fast else 20, max_depth=2, random_state=0))
    people = drawn(model, 200)
    result = solve_people(program(model, people))
    print(result)
    after = result.decode().assign(high_income=people["income"] > 4)
    print(after.groupby("high_income").agg({"served": "mean", "cost": "sum"}))
    print("checked:", result.verify()["valid"].all())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a smaller model")
    main(fast=parser.parse_args().fast)
