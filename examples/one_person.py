"""One rejected applicant, a fitted pipeline, three verified ways to a loan.

Run: python examples/one_person.py [--fast]
"""

from __future__ import annotations

import argparse

from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import ceopt


def main(*, fast: bool) -> None:
    book = ceopt.datasets.loans()
    numbers = ["age", "years_employed", "income", "savings", "loan_amount", "duration", "open_loans"]
    encode = make_column_transformer(
        (StandardScaler(), numbers),
        (OrdinalEncoder(categories=[list(book.space["education"].levels)]), ["education"]),
        (OneHotEncoder(drop="if_binary"), ["sex", "region", "employment", "has_guarantor"]),
    )
    forest = RandomForestClassifier(20 if fast else 100, max_depth=6, random_state=0)
    pipeline = make_pipeline(encode, forest).fit(book.data, book.target)

    rejected = book.data[pipeline.predict(book.data) == "bad"]
    person = rejected.iloc[[3]]
    # What this person says: the job stays, and two changes are enough.
    space = book.space.update("employment", mutable=False)
    result = ceopt.explain(
        pipeline,
        person,
        space,
        target="good",
        n=3,
        constraints=[ceopt.MaxChanges(2)],
        data=book.data,
    )
    print(result)
    print(result.changes())
    report = ceopt.verify(result, pipeline, space, target="good", constraints=[ceopt.MaxChanges(2)])
    print(report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a smaller forest")
    main(fast=parser.parse_args().fast)
