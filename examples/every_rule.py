"""Every criterion at once: plausible, sparse, actionable, causal and diverse answers; and when there is none, why.

Run: python examples/every_rule.py [--fast]
"""

from __future__ import annotations

import argparse

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt


def main(*, fast: bool) -> None:
    book = ceopt.datasets.loans()
    numbers, words = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), words))
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(book.data, book.target)
    person = book.data[model.predict(book.data) == "bad"].iloc[[2]]

    # Whole months and hundreds of dollars follow from the equations up to rounding.
    rounding = {"years_employed": 0.05, "income": 50, "savings": 50, "loan_amount": 50, "duration": 0.5}
    rules = [
        ceopt.Hull(radius=0.5, clusters=3, enlarge=True, sample=200 if fast else 600, name="plausible"),
        ceopt.MaxChanges(6, name="few"),
        ceopt.Causal(book.equations, intervention="hard", slack=rounding, name="causes"),
        ceopt.IfThen(("employment", "changed"), ("years_employed", ">=", 1), name="no leap"),
        ceopt.AllowedValues({"duration": range(6, 73, 6)}, name="half years"),
        ceopt.Linear({"loan_amount": 1.0, "income": -1.5}, "<=", 0.0, name="affordable"),
    ]
    result = ceopt.explain(
        model,
        person,
        book.space,
        target="good",
        n=3,
        cost=ceopt.L1() + 0.1 * ceopt.Changes(),
        constraints=rules,
        data=book.data,
        diversity="support",
    )
    print(result)
    for answer in result:
        print(f"{answer.rank}: do {dict(answer.actions)}; cluster {answer.cluster}")

    too_much = [
        *rules[1:],
        ceopt.MaxChanges(1, name="one"),
        ceopt.Linear({"savings": 1.0}, "<=", 18_000, name="savings"),
    ]
    result = ceopt.explain(model, person, book.space, target="good", constraints=too_much, data=book.data)
    print(result.status)
    for name, sentence, wider in result.conflict:
        print(f"  {name}: {sentence}" + ("" if wider is None else f"; {wider:g} wider would do"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a smaller hull")
    main(fast=parser.parse_args().fast)
