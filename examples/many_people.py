"""Everybody whom the model rejected, in one call: order kept, progress shown, one failure is one row.

Run: python examples/many_people.py [--fast]
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
    encode = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    )
    pipeline = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(book.data, book.target)
    rejected = book.data[pipeline.predict(book.data) == "bad"].head(10 if fast else 60)

    recourse = ceopt.Recourse(
        pipeline,
        book.space,
        target=ceopt.Probability("good", at_least=0.6),
        cost=ceopt.L1(scale="mad") + 0.1 * ceopt.Changes(),
        constraints=[ceopt.MaxChanges(3)],
    ).fit(book.data)
    table = recourse.explain(rejected, n=2, progress=not fast).to_frame()
    print(
        table[["status", "cost", "verified", "income", "savings", "loan_amount", "open_loans", "has_guarantor"]].head(
            10
        )
    )
    print(table["status"].value_counts().to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="ten people")
    main(fast=parser.parse_args().fast)
