"""One stated model, many solvers: a plan within a norm, solved by every solver here, pooled, written and solved again.

Run: python examples/many_solvers.py [--fast]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pyomo.environ as pyo
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ceopt
from ceopt.formulations import Factual, Reaches, embed
from ceopt.solvers.cones import soc

NUMBERS = ["age", "years_employed", "income", "savings", "loan_amount", "duration", "open_loans"]


def main(*, fast: bool) -> None:
    book = ceopt.datasets.loans(500 if fast else 2000)
    frame = book.data[NUMBERS]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, book.target)
    person = frame[model.predict(frame) == "bad"].iloc[[0]]
    space = ceopt.FeatureSpace.infer(frame, moves={"age": "fixed", "years_employed": "up"})

    m = pyo.ConcreteModel()
    m.x = x = Factual(space, person)
    m.predictor = embed(model, x)
    m.valid = Reaches(m.predictor, "good", margin=1e-4)
    # The distance as a second-order cone, in standard deviations: an ordinary constraint of an ordinary model.
    moves = [(x.raw[name] - x.factual[name]) / space[name].scale("std") for name in NUMBERS if name != "age"]
    m.distance = pyo.Var(bounds=(0, None))
    m.norm = pyo.Constraint(expr=soc(m.distance, moves) >= 0)
    m.cost = pyo.Objective(expr=m.distance)

    print(ceopt.solvers.available()[["solver", "installed", "licensed", "supports", "why_not"]].to_string(index=False))
    print(f"\nthe model is of class {ceopt.solvers.compile_model(m).problem_class}")
    table = ceopt.solvers.available().set_index("solver")
    for solver in table.index[table["installed"] & table["licensed"]]:
        if "MISOCP" in table.loc[solver, "supports"]:
            result = ceopt.solvers.solve(m, solver)
            print(f"{solver:10} {result.status:10} {result.objective:.6f}  gap {result.gap:.1e}  {m.norm.body():+.1e}")

    pool = ceopt.solvers.solve(m, pool=3)  # other integer decisions each; the first is loaded
    print("the three best:", *(f"{found.objective:.6f}" for found in pool.solutions), pool.status)
    answer = x.decode(pool.solutions[0])
    print(answer.to_string())
    print(ceopt.verify([answer], model, space, target="good", factual=person))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.cbf"
        ceopt.write(m, path)
        again = ceopt.solvers.solve(ceopt.solvers.read(path))
        print(f"solved from {path.name}: objective {again.objective:.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="fewer rows of data")
    main(fast=parser.parse_args().fast)
