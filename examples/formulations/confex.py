"""CONFEX: sure to be accepted, as a conformal threshold of the score says that depends on where the answer is.

A tree divides the people whom the bank refused in truth and whom no model was fitted on; in each leaf, nine tenths of
such people score at most q. Beyond it "no" is outside the prediction set: f(x) > q(leaf(x)) is one row over two
embedded models. After CONFEX, uncertainty-aware counterfactual explanations with conformal guarantees (2025).

Run: python examples/formulations/confex.py [--fast]
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeRegressor
from town import COST, PEOPLE, SPACE, WANTED, refused

from ceopt import solvers
from ceopt.formulations import Factual, embed, l1, predictors

#: The first half of the town is for the model, the second for its thresholds.
HALF = 80


def scores(network: Any, rows: Any) -> Any:
    """Return the logit of "yes" of each row."""
    share = network.predict_proba(rows)
    return np.log(share[:, 1]) - np.log(share[:, 0])


def thresholds(network: Any, miss: float = 0.1) -> DecisionTreeRegressor:
    """Return a tree whose leaves say what refused people score at most there, but for a share of them."""
    rows = PEOPLE[HALF:][WANTED[HALF:] == "no"]
    score = scores(network, rows)
    tree = DecisionTreeRegressor(min_samples_leaf=12, random_state=0).fit(rows, score)
    reached = tree.apply(rows)
    for leaf in np.unique(reached):
        own = np.sort(score[reached == leaf])
        tree.tree_.value[leaf] = own[math.ceil((len(own) + 1) * (1.0 - miss)) - 1]
    return tree


def program(network: Any, tree: DecisionTreeRegressor, person: Any) -> Any:
    """Return the program: two models on one block of columns, and a row between their scores."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.network = embed(network, m.x)
    m.threshold = embed(tree, m.x)
    m.accepted = pyo.Constraint(expr=m.network.margin("yes") >= 0)
    m.sure = pyo.Constraint(expr=m.network.margin("yes") >= m.threshold.score)
    m.cost = pyo.Objective(expr=l1(m.x, scale=COST.scale))
    return m


def main(*, fast: bool) -> None:
    network = MLPClassifier((4,) if fast else (8, 8), solver="lbfgs", alpha=1.0, max_iter=5000, random_state=0)
    network.fit(PEOPLE[:HALF], WANTED[:HALF])
    tree = thresholds(network)
    print(predictors.read(tree, SPACE).leaves(0).to_string())
    m = program(network, tree, refused(network).iloc[0])
    result = solvers.solve(m)
    print(result.status, round(result.objective, 6))
    print(m.x.decode(result.solutions[0]).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a smaller network")
    main(fast=parser.parse_args().fast)
