"""The same study of a loan that ceopt makes up: what ``--fast`` runs, on a clone without data."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

import ceopt
from ce_ocl.german import six_parts
from ce_ocl.heart import five_parts
from ce_ocl.study import Case, Table

__all__ = ["loans"]

NUMBERS = ("age", "years_employed", "income", "savings", "loan_amount", "duration", "open_loans")
FIXED, WHOLE = ("sex", "region"), ("open_loans",)


def loans(*, network: bool) -> Case:
    """Return the study of German credit, or of heart where a ``network`` decides, on made-up rows."""
    book = ceopt.datasets.loans(n=300)
    words = [name for name in book.data if name not in NUMBERS]
    data = book.data.assign(**{name: book.data[name].astype(str).astype(object) for name in words})
    levels = {name: [str(level) for level in book.space[name].levels] for name in words}
    rows = Table(data, pd.Series(book.target == "good", name="good").astype(int), NUMBERS, levels)
    classifier: Any = MLPClassifier((5,), solver="lbfgs", random_state=0) if network else LinearSVC(C=0.1, dual=False)
    model = rows.fit(classifier)
    row = rows.refused(model)[0]
    person = rows.data.loc[[row]]
    if network:
        parts = five_parts(rows, person, whole=WHOLE, fixed=FIXED)
    else:
        parts = six_parts(
            rows,
            person,
            whole=WHOLE,
            fixed=FIXED,
            growing=("age", "years_employed"),
            positive=("income", "savings", "loan_amount", "duration"),
            employment=("education", levels["education"]),
            effect="duration",
            cause="loan_amount",
            hidden=5,
        )
    return Case(name="loans", title="Loans that ceopt makes up", table=rows, model=model, row=row, parts=parts)
