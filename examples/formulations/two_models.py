"""Two models at once: the least change that the bank's forest and the insurer's linear model both accept.

Run: python examples/formulations/two_models.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import pyomo.environ as pyo
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from town import COST, SPACE, fitted, refused

from ceopt import solvers
from ceopt.formulations import Factual, Reaches, embed, l1


def program(bank: Any, insurer: Any, person: Any) -> Any:
    """Return the program: two models on one block of columns."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.bank = embed(bank, m.x)
    m.insurer = embed(insurer, m.x)
    m.loan = Reaches(m.bank, "yes")
    m.cover = Reaches(m.insurer, "yes")
    m.cost = pyo.Objective(expr=l1(m.x, scale=COST.scale))
    return m


def main(*, fast: bool) -> None:
    bank = fitted(RandomForestClassifier(5 if fast else 20, max_depth=4, random_state=0))
    insurer = fitted(LogisticRegression())
    person = refused(insurer).iloc[0]
    m = program(bank, insurer, person)
    result = solvers.solve(m)
    print(result.status, round(result.objective, 6))
    print(m.x.decode(result.solutions[0]).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a smaller forest")
    main(fast=parser.parse_args().fast)
