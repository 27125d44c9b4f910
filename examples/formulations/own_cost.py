"""A cost of one's own: a price that rises in pieces, and a charge that is paid once whatever the size of the move.

Run: python examples/formulations/own_cost.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import pyomo.environ as pyo
from sklearn.ensemble import GradientBoostingClassifier
from town import SPACE, fitted, refused

from ceopt import solvers
from ceopt.formulations import Factual, Reaches, embed

#: What an income costs beside today's: cheap at first, then dear; less is free. And what moving house costs.
KINKS, PRICES = (-9.0, 0.0, 2.0, 9.0), (0.0, 0.0, 1.0, 15.0)
MOVING, STUDY = 2.5, 1.2


def program(model: Any, person: Any) -> Any:
    """Return the program: income by pieces, rooms at a fixed charge, a grade at a price for each step."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.predictor = embed(model, m.x)
    m.valid = Reaches(m.predictor, "yes")
    m.rise = pyo.Var(bounds=(-9, 9))
    m.is_rise = pyo.Constraint(expr=m.rise == m.x.raw["income"] - m.x.factual["income"])
    m.price = pyo.Var(bounds=(0, 15))
    m.pieces = pyo.Piecewise(m.price, m.rise, pw_pts=list(KINKS), f_rule=list(PRICES), pw_constr_type="EQ")
    study = m.x.raw["grade"] - m.x.factual["grade"]
    m.no_loss = pyo.Constraint(expr=study >= 0)
    m.keeps = pyo.Constraint(expr=m.x.changed["owner"] == 0)
    m.cost = pyo.Objective(expr=m.price + MOVING * m.x.changed["rooms"] + STUDY * study)
    return m


def main(*, fast: bool) -> None:
    model = fitted(GradientBoostingClassifier(n_estimators=5 if fast else 20, max_depth=2, random_state=0))
    m = program(model, refused(model).iloc[0])
    result = solvers.solve(m)
    print(result.status, round(result.objective, 6))
    print(m.x.decode(result.solutions[0]).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="fewer trees")
    main(fast=parser.parse_args().fast)
