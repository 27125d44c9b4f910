"""A lender's own program: terms for three rejected customers under one budget, with two models inside.

For each customer the lender chooses how much of the loan asked for to grant, over how many months, and whether to ask
for a guarantor. A forest has to see a good risk with 55 percent, the old scorecard has to agree, the instalment is at
most a quarter of the income, and all loans come out of one budget. Nobody is to get a much smaller share of what they
asked for than the others.

Run: python examples/own_model.py [--fast]
"""

from __future__ import annotations

import argparse

import pandas as pd
import pyomo.environ as pyo
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.formulations import Columns, Reaches, embed, embedding_error

BUDGET = 24_000


def main(*, fast: bool) -> None:
    book = ceopt.datasets.loans()
    encode = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    )
    forest = RandomForestClassifier(15 if fast else 100, max_depth=6, random_state=0)
    risk = make_pipeline(encode, forest).fit(book.data, book.target)
    scorecard = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(book.data, book.target)
    queue = book.data[risk.predict(book.data) == "bad"].head(3)

    m = pyo.ConcreteModel(name="terms")
    m.customer = pyo.Block(queue.index)
    for label, row in queue.iterrows():
        b = m.customer[label]
        b.amount = pyo.Var(domain=pyo.Integers, bounds=(500, row["loan_amount"]))
        b.months = pyo.Var(domain=pyo.Integers, bounds=(6, 72))
        b.guarantor = pyo.Var(domain=pyo.Binary)
        terms = {"loan_amount": b.amount, "duration": b.months, "has_guarantor": b.guarantor}
        b.x = Columns(book.space, {**row, **terms})  # everything else about the customer stays as it is
        b.risk, b.scorecard = embed(risk, b.x), embed(scorecard, b.x)
        b.good_risk = Reaches(b.risk, ceopt.Probability("good", at_least=0.55))
        b.good_score = Reaches(b.scorecard, "good")
        b.instalment = pyo.Constraint(expr=b.amount <= 0.25 * row["income"] / 12 * b.months)
    m.budget = pyo.Constraint(expr=sum(m.customer[label].amount for label in queue.index) <= BUDGET)
    m.share = pyo.Var(bounds=(0, 1))
    for label in queue.index:
        m.customer[label].fair = pyo.Constraint(
            expr=m.customer[label].amount >= m.share * queue.loc[label, "loan_amount"]
        )
    # In points: a percent of the least share is worth one, a guarantor costs ten, a month a tenth.
    nuisance = sum(10 * b.guarantor + 0.1 * b.months for b in m.customer.values())
    m.points = pyo.Objective(expr=100 * m.share - nuisance, sense=pyo.maximize)

    result = ceopt.solvers.solve(m)
    if not result.solutions:
        print(result.status)
        return
    print(f"{result.status}: everybody gets at least {m.share.value:.1%}, out of a budget of {BUDGET}")
    table = [
        {
            "customer": label,
            "asked": queue.loc[label, "loan_amount"],
            "granted": round(b.amount.value),
            "months": round(b.months.value),
            "guarantor": bool(round(b.guarantor.value)),
            "P(good)": round(float(pyo.value(b.risk.score["good"])), 3),
            # What the program says of the terms, less what the fitted models say of them.
            "error": max(float(embedding_error(block)) for block in (b.risk, b.scorecard)),
        }
        for label, b in m.customer.items()
    ]
    print(pd.DataFrame(table).to_string(index=False))
    answers = pd.concat([embedding_error(b.risk).row for b in m.customer.values()])
    print(f"\nthe forest says {risk.predict(answers).tolist()}, the scorecard {scorecard.predict(answers).tolist()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a smaller forest")
    main(fast=parser.parse_args().fast)
