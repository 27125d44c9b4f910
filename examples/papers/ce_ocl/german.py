"""German credit, parts A to F of the paper's Table 5, prepared as its released notebooks do."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

import ceopt
from ce_ocl.study import BETA, DIVERSITY, Case, Part, Table, free_space, released_cost

__all__ = ["german", "six_parts", "table"]

NUMBERS = ("duration", "amount", "installment_rate", "present_residence", "age", "number_credits", "people_liable")
WHOLE = ("present_residence", "number_credits", "people_liable")
#: The paper's bounds of a move are 10,000 ranges; no answer comes near two.
RANGES = 2.0
#: The paper's person: the third row of the test part that the model puts in class 0.
ROW = 775

#: Where an answer or a number is not the paper's, why.
BESIDE = {
    "A": "The same answer: the paper rounds scaled values to four decimals before it prints them, 1.57 marks of the "
    "amount. So rounded, this answer is the printed one in all four columns.",
    "B": "The released answer.",
    "C": "The paper takes what its solver met on its way. Its b and c change two columns, at 20,000.08 and 20,000.46; "
    "here each is proved to be the best that is left. Raw units let the amount decide what continuous proximity is.",
    "D": "As in part C: the paper's b changes two columns, at 20,000.46.",
    "E": "a is the released answer and c the paper's c (its amounts were rounded in scaled units). The paper's b "
    "changes four numbers and five categories, at 140,000 and more; b here is the best that is left. The paper's is "
    "nearer in raw units.",
    "F": "The objective is 2.6e-4 above the released one. At 100,000 a unit that is 2.6e-9 of distance from the hull, "
    "less than the tolerance of any solver's rows. a is the answer that has the released objective: it changes "
    "property (F18). The paper prints savings (F20), with which the row would be 4.04 from the hull. The paper's b and "
    "c are less than 0.5 from its a, and follow from its own network. The amount of its b is 990.51 as printed, "
    "1018.71 in the release.",
}


def table() -> Table:
    """Return the rows, all 13 columns that are no numbers as categories."""
    book = ceopt.datasets.load("german")
    levels = {name: list(book.space[name].levels) for name in book.data if name not in NUMBERS}
    return Table(book.data, book.target, NUMBERS, levels)


def german() -> Case:
    """Return the study."""
    rows = table()
    model = rows.fit(LinearSVC(C=0.1, dual=False))
    jobs = rows.levels["employment_duration"]
    parts = six_parts(
        rows,
        rows.data.loc[[ROW]],
        whole=WHOLE,
        fixed=("foreign_worker", "personal_status_sex", "purpose"),
        growing=("age", "present_residence"),
        positive=("duration", "amount", "installment_rate"),
        employment=("employment_duration", jobs),
        effect="duration",
        cause="amount",
        hidden=100,
    )
    parts = tuple(replace(part, beside=BESIDE[part.letter]) for part in parts)
    return Case(name="german", title="German credit", table=rows, model=model, row=ROW, parts=parts)


def six_parts(
    rows: Table,
    person: pd.DataFrame,
    *,
    whole: tuple[str, ...],
    fixed: tuple[str, ...],
    growing: tuple[str, ...],
    positive: tuple[str, ...],
    employment: tuple[str, list[Any]],
    effect: str,
    cause: str,
    hidden: int,
) -> tuple[Part, ...]:
    """Return the parts: near, sparse, several, actionable, plausible, causal; each has what those before it have."""
    near, sparse = (released_cost(rows.scale, sparse=sparse) for sparse in (False, True))
    anything = free_space(rows, person, whole=whole, ranges=None)
    free = free_space(rows, person, whole=whole, ranges=RANGES)
    can = free
    for name in fixed:
        can = can.update(name, mutable=False)
    for name in growing:
        can = can.update(name, direction="increasing")
    for name in positive:
        can = can.update(name, lower=0.0)
    column, order = employment
    job = ceopt.AllowedTransitions(column, {now: order[k:] for k, now in enumerate(order)}, name="employment")
    hull = ceopt.Hull(rows.favourable, scale=rows.scale, name="manifold")
    wide = ceopt.Hull(rows.favourable, scale=rows.scale, penalty=BETA, name="manifold")
    follows = ceopt.Causal({effect: consequence(rows, effect, cause, hidden)}, name="causality")
    said = {
        "A": "validity, proximity and coherence: the model says 1, the squared l2 distance of the scaled columns is "
        "least, one level of each category is on. Continuous columns have no bounds",
        "B": "sparsity: 10,000 for each encoded column that changes",
        "C": DIVERSITY,
        "D": f"actionability: {', '.join(fixed)} fixed, {', '.join(growing)} only up, {column} never to a level below, "
        f"{', '.join(positive)} not negative",
        "E": "the data manifold: in the hull of all rows whose own label is 1",
        "F": f"causality: {effect} follows from {cause} by a network of {hidden} neurons. Where no "
        "actionable point of the hull does, the hull is enlarged at 100,000 a unit of l1",
    }
    return (
        Part(letter="A", word="near", adds=said["A"], space=anything, cost=near, relative_gap=1e-7),
        Part(letter="B", word="sparse", adds=said["B"], space=free, cost=sparse),
        Part(letter="C", word="several", adds=said["C"], space=free, cost=sparse, n=3),
        Part(letter="D", word="actionable", adds=said["D"], space=can, cost=sparse, rules=(job,), n=3),
        Part(letter="E", word="plausible", adds=said["E"], space=can, cost=sparse, rules=(job, hull), n=3),
        Part(
            letter="F",
            word="causal",
            adds=said["F"],
            space=can,
            cost=sparse,
            rules=(job, follows, hull),
            instead=(job, follows, wide),
            n=3,
        ),
    )


def consequence(rows: Table, effect: str, cause: str, hidden: int) -> Any:
    """Return a network for one column from another, fitted on the training part."""
    inside = make_pipeline(MinMaxScaler(), MLPRegressor(hidden_layer_sizes=(hidden,), max_iter=500, random_state=0))
    train = rows.data.loc[rows.parts[0]]
    network = TransformedTargetRegressor(inside, transformer=StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return network.fit(train[[cause]], train[effect].astype(float))
