"""A custom recourse program from blocks: add a plain Pyomo row, look at the size, export it, solve the file again.

Run: python examples/custom_program.py [--fast]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pyomo.environ as pyo
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import ceopt
from ceopt.formulations import Factual, Reaches, embed, impose, l1


def main(*, fast: bool) -> None:
    book = ceopt.datasets.loans()
    numbers = ["age", "years_employed", "income", "savings", "loan_amount", "duration", "open_loans"]
    encode = make_column_transformer(
        (StandardScaler(), numbers),
        (OrdinalEncoder(categories=[list(book.space["education"].levels)]), ["education"]),
        (OneHotEncoder(), ["sex", "region", "employment", "has_guarantor"]),
    )
    forest = RandomForestClassifier(5 if fast else 20, max_depth=5, random_state=0)
    pipeline = make_pipeline(encode, forest).fit(book.data, book.target)
    person = book.data[pipeline.predict(book.data) == "bad"].iloc[[0]]

    m = pyo.ConcreteModel()
    m.x = Factual(book.space, person)
    m.predictor = embed(pipeline, m.x)
    m.valid = Reaches(m.predictor, "good", margin=1e-4)
    m.few = impose(ceopt.MaxChanges(3), m.x)
    # A rule of this lender, in raw units: no loan above four fifths of a year's income.
    m.mine = pyo.Constraint(expr=m.x.raw["loan_amount"] <= 0.8 * m.x.raw["income"])
    m.cost = pyo.Objective(expr=l1(m.x) + 0.1 * m.x.n_changed)
    print(ceopt.model_summary(m).to_string())

    result = ceopt.solvers.solve(m, "highs")
    answer = m.x.decode(result.solutions[0])
    print(f"\n{result.status}, objective {result.objective:.6f}")
    print(answer.to_string())
    print(ceopt.verify([answer], pipeline, book.space, target="good", factual=person))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recourse.lp"
        ceopt.write(m, path)
        print("\n" + "\n".join(path.read_text().splitlines()[:12]) + "\n...")
        again = ceopt.solvers.solve(ceopt.solvers.read(path))
        print(f"solved from the file: objective {again.objective:.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a smaller forest")
    main(fast=parser.parse_args().fast)
