"""The demonstration: a loan book, a forest that decides, and what a few people who were rejected could do."""

from __future__ import annotations

from typing import Any

import numpy as np

from ceopt.cli.output import note, print_answers
from ceopt.datasets import loans
from ceopt.formulations.constraints import MaxChanges
from ceopt.population.cohort import Cohort
from ceopt.recourse import Recourse

__all__ = ["run_demo"]

_PEOPLE = 4
_RULES = (MaxChanges(1),)


def run_demo() -> Cohort:
    """Fit, explain and print; the answers are the same on every machine."""
    note("Drawing 2,000 loan applications and fitting a random forest to the decisions ...")
    book = loans(n=2000, random_state=0)
    space = book.space
    for name in ("age", "years_employed", "employment"):
        space = space.update(name, mutable=False)  # advice for today, not for the years to come
    model = _pipeline(space).fit(book.data, book.target)
    rejected = book.data[model.predict(book.data) != book.favourable]
    note(f"{len(rejected):,} people are rejected. Single changes that turn the decision, for {_PEOPLE} near the line:")
    chances = model.predict_proba(rejected)[:, model.classes_.tolist().index(book.favourable)]
    near = rejected.iloc[np.argsort(-chances, kind="stable")[: len(rejected) // 2]].sort_index()
    some = near.iloc[:: len(near) // _PEOPLE].head(_PEOPLE)
    recourse = Recourse(
        model, space, target=book.favourable, n=3, diversity="support", constraints=_RULES, time_limit_s=10
    )
    cohort = recourse.fit(book.data, book.target).explain(some, progress=True)
    print_answers(tuple(cohort), space)
    return cohort


def _pipeline(space: Any) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    numbers = [feature.name for feature in space if not feature.is_finite]
    ordinal = [feature.name for feature in space if feature.kind == "ordinal"]
    others = [feature.name for feature in space if feature.kind in {"categorical", "binary"}]
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), numbers),
            ("ordinal", OrdinalEncoder(categories=[list(space[name].levels) for name in ordinal]), ordinal),
            ("categories", OneHotEncoder(handle_unknown="ignore"), others),
        ]
    )
    forest = RandomForestClassifier(n_estimators=50, max_depth=6, random_state=0)
    return Pipeline([("columns", columns), ("forest", forest)])
