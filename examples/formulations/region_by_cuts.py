"""Every row near the answer keeps the decision: a box around it, by cuts from the rows that a forest refuses.

Run: python examples/formulations/region_by_cuts.py [--fast]
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import pandas as pd
import pyomo.environ as pyo
from sklearn.ensemble import RandomForestClassifier
from town import COST, SPACE, fitted, refused

from ceopt import solvers
from ceopt.formulations import Factual, Reaches, embed, l1, predictors

#: By how much what is told of a person may be off.
OFF = {"income": 1, "rooms": 1}


def near(answer: Any) -> pd.DataFrame:
    """Return all rows near one: the adversary of this example lists them."""
    rows = []
    for moves in itertools.product(*(range(-off, off + 1) for off in OFF.values())):
        rows.append(answer.add(pd.Series(moves, index=list(OFF)), fill_value=0))
    return pd.DataFrame(rows)[list(SPACE.names)]


def program(model: Any, person: Any) -> tuple[Any, Any]:
    """Return the program without cuts, and what finds them: the box must not meet the cell of a row that is refused."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.predictor = embed(model, m.x)
    m.valid = Reaches(m.predictor, "yes")
    m.cost = pyo.Objective(expr=l1(m.x, scale=COST.scale))
    splits = {name: [left for left, _ in pairs] for name, pairs in predictors.read(model, SPACE).splits.items()}
    is_below, is_above = {}, {}  # whether all of the box lies on one side of a split
    for name, left in ((name, left) for name, lefts in splits.items() for left in lefts):
        is_below[name, left] = 1 - m.x.above[name, left - OFF.get(name, 0)]
        is_above[name, left] = m.x.above[name, left + OFF.get(name, 0)]

    def separate(solution: Any) -> list[Any]:
        rows = near(m.x.decode(solution))
        cuts = []
        for _, row in rows[model.predict(rows) != "yes"].iterrows():
            clear = [is_below[name, max(own)] for name, own in walls(splits, row, -1) if own]
            clear += [is_above[name, min(own)] for name, own in walls(splits, row, 1) if own]
            cuts.append(sum(clear) >= 1)
        return cuts

    return m, separate


def walls(splits: dict[str, list[Any]], row: Any, side: int) -> list[tuple[str, list[Any]]]:
    """Return the splits on one side of a row, by column."""
    return [(name, [left for left in lefts if (left < row[name]) == (side < 0)]) for name, lefts in splits.items()]


def main(*, fast: bool) -> None:
    model = fitted(RandomForestClassifier(5 if fast else 20, max_depth=3, random_state=0))
    for place in range(1 if fast else 3):
        m, separate = program(model, refused(model).iloc[place])
        result = solvers.cutting_planes(m, separate)
        print(result.status, round(result.objective, 6), f"by {len(result.cuts)} cuts in {len(result.rounds)} rounds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="five trees, one person")
    main(fast=parser.parse_args().fast)
