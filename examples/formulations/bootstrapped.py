"""Valid for most models that other samples would have given: at least nine tenths of bootstrapped ones say yes.

Run: python examples/formulations/bootstrapped.py [--fast]
"""

from __future__ import annotations

import argparse
from typing import Any

import pyomo.environ as pyo
from sklearn.linear_model import LogisticRegression
from sklearn.utils import resample
from town import COST, PEOPLE, SPACE, WANTED, refused

from ceopt import solvers
from ceopt.formulations import Factual, Reaches, embed, l1


def bootstrapped(count: int) -> list[Any]:
    """Return models that were fitted on samples with replacement."""
    return [LogisticRegression().fit(*resample(PEOPLE, WANTED, random_state=k)) for k in range(count)]


def program(models: list[Any], person: Any, share: float = 0.9) -> Any:
    """Return the program: a binary for each model, on where it says yes."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.says_yes = pyo.Var(range(len(models)), domain=pyo.Binary)
    m.case = pyo.Block(range(len(models)))
    for k, model in enumerate(models):
        m.case[k].predictor = embed(model, m.x)
        m.case[k].valid = Reaches(m.case[k].predictor, "yes", when=m.says_yes[k])
    m.enough = pyo.Constraint(expr=pyo.quicksum(m.says_yes.values()) >= share * len(models))
    m.cost = pyo.Objective(expr=l1(m.x, scale=COST.scale))
    return m


def main(*, fast: bool) -> None:
    models = bootstrapped(20 if fast else 100)
    person = refused(models[0]).iloc[0]
    m = program(models, person)
    result = solvers.solve(m)
    print(result.status, round(result.objective, 6))
    answer = m.x.decode(result.solutions[0])
    print(answer.to_string())
    row = answer.to_frame().T.infer_objects()
    print(sum(model.predict(row)[0] == "yes" for model in models), "of", len(models), "say yes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="20 models")
    main(fast=parser.parse_args().fast)
