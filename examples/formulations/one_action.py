"""One action for many: the raise in income and grade, the same for all, that helps most people within a price.

Run: python examples/formulations/one_action.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import pyomo.environ as pyo
from sklearn.ensemble import GradientBoostingClassifier
from town import SPACE, fitted, refused

from ceopt import solvers
from ceopt.formulations import Factual, Reaches, embed

#: What a unit costs for each person, and what there is.
PRICES, BUDGET = {"income": 1.0, "grade": 1.5}, 4.0


def program(model: Any, people: Any) -> Any:
    """Return the program: everybody moves by the same step, as far as the column goes, and nothing else moves."""
    m = pyo.ConcreteModel()
    m.step = pyo.Var(list(PRICES), domain=pyo.NonNegativeIntegers, bounds=(0, 9))
    m.person = pyo.Block(range(len(people)))
    m.served = pyo.Var(range(len(people)), domain=pyo.Binary)
    for k, block in m.person.items():
        block.x = Factual(SPACE.only(*PRICES), people.iloc[k])
        block.predictor = embed(model, block.x)
        block.valid = Reaches(block.predictor, "yes", when=m.served[k])
        block.same = pyo.ConstraintList()
        for name in PRICES:
            rise = block.x.raw[name] - block.x.factual[name]
            block.same.add(rise <= m.step[name])
            block.same.add(rise >= 0)
    m.within = pyo.Constraint(expr=sum(price * m.step[name] for name, price in PRICES.items()) <= BUDGET)
    m.most = pyo.Objective(expr=pyo.quicksum(m.served.values()), sense=pyo.maximize)
    return m


def main(*, fast: bool) -> None:
    model = fitted(GradientBoostingClassifier(n_estimators=5 if fast else 20, max_depth=2, random_state=0))
    people = refused(model).head(10 if fast else 40)
    m = program(model, people)
    result = solvers.solve(m)
    print(result.status, f"{result.objective:.0f} of {len(people)}", {name: m.step[name].value for name in PRICES})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="ten people")
    main(fast=parser.parse_args().fast)
