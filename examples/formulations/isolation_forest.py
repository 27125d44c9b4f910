"""An ordinary row: an isolation forest's mean path is long enough, stated over the binaries of its own splits.

The rule ceopt.NotAnOutlier does the same behind any encoder; this is how it is built.

Run: python examples/formulations/isolation_forest.py [--fast]
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest
from town import COST, PEOPLE, SPACE, fitted, refused

from ceopt import solvers
from ceopt.formulations import Factual, Reaches, embed, l1


def usual_path(rows: int) -> float:
    """Return c(n): the mean path of an unsuccessful search in a tree of n rows, which a leaf of n rows stands for."""
    if rows <= 2:
        return float(rows - 1)
    return 2.0 * (math.log(rows - 1.0) + np.euler_gamma) - 2.0 * (rows - 1.0) / rows


def program(model: Any, forest: IsolationForest, person: Any) -> Any:
    """Return the program: one unit falls through each tree, left or right as the binaries of its splits say."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.predictor = embed(model, m.x)
    m.valid = Reaches(m.predictor, "yes")
    m.falls = pyo.Var(pyo.Any, dense=False, bounds=(0, 1))
    m.rows = pyo.ConstraintList()
    length = 0.0
    for t, tree in enumerate(one.tree_ for one in forest.estimators_):
        m.rows.add(m.falls[t, 0] == 1)
        for node, (left, right) in enumerate(zip(tree.children_left, tree.children_right, strict=True)):
            if left < 0:
                length += usual_path(tree.n_node_samples[node]) * m.falls[t, node]
                continue
            length += m.falls[t, node]  # one step down
            above = m.x.above[PEOPLE.columns[tree.feature[node]], tree.threshold[node]]
            m.rows.add(m.falls[t, left] + m.falls[t, right] == m.falls[t, node])
            m.rows.add(m.falls[t, left] <= 1 - above)
            m.rows.add(m.falls[t, right] <= above)
    level = -len(forest.estimators_) * usual_path(forest.max_samples_) * math.log2(-forest.offset_)
    m.ordinary = pyo.Constraint(expr=length >= level - 1e-7)
    m.cost = pyo.Objective(expr=l1(m.x, scale=COST.scale))
    return m


def main(*, fast: bool) -> None:
    model = fitted(GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0))
    forest = IsolationForest(n_estimators=5 if fast else 20, contamination=0.3, random_state=0).fit(PEOPLE)
    m = program(model, forest, refused(model).iloc[0])
    result = solvers.solve(m)
    answer = m.x.decode(result.solutions[0])
    print(result.status, round(result.objective, 6), forest.predict(answer.to_frame().T.astype(float)))
    print(answer.to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="five trees")
    main(fast=parser.parse_args().fast)
