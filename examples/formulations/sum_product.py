"""Likely answers by a sum-product network, which is read from JSON: the best induced tree has enough likelihood.

Run: python examples/formulations/sum_product.py [--fast]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from typing import Any

import pyomo.environ as pyo
from sklearn.linear_model import LogisticRegression
from town import COST, PEOPLE, SPACE, WANTED, fitted, refused

from ceopt import solvers
from ceopt.formulations import Factual, Reaches, embed, l1

#: Ends of the bins of each column: above one end and not above the next.
ENDS = {"income": [-1, 2, 5, 9], "rooms": [0, 1, 2, 3, 4], "grade": [-1, 0, 1, 2], "owner": [-1, 0, 1]}


def learned() -> str:
    """Return a small network as JSON: a sum of two products of bins, one for those refused and one for the others."""
    nodes: list[dict[str, Any]] = [{"kind": "sum", "children": [1, 2], "shares": []}]
    groups = [PEOPLE[label == WANTED] for label in ("no", "yes")]
    nodes[0]["shares"] = [len(group) / len(PEOPLE) for group in groups]
    nodes += [{"kind": "product", "children": []} for _ in groups]
    for product, group in zip(nodes[1:3], groups, strict=True):
        for name, ends in ENDS.items():
            counts = [1 + int(((group[name] > low) & (group[name] <= high)).sum()) for low, high in pairs(ends)]
            product["children"].append(len(nodes))
            shares = [count / sum(counts) for count in counts]
            nodes.append({"kind": "leaf", "column": name, "ends": ends, "shares": shares})
    return json.dumps(nodes)


def pairs(ends: list[int]) -> list[tuple[int, int]]:
    """Return the two ends of each bin."""
    return list(itertools.pairwise(ends))


def in_bin(x: Any, name: str, low: float, high: float) -> Any:
    """Return the binary expression that a column lies in a bin."""
    return x.above[name, low] - x.above[name, high]


def program(model: Any, network: str, at_least: float, person: Any) -> Any:
    """Return the program: one unit flows from the root; sums split it, products copy it, leaves need their bin."""
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.predictor = embed(model, m.x)
    m.valid = Reaches(m.predictor, "yes")
    nodes = json.loads(network)
    m.flow = pyo.Var(range(len(nodes)), bounds=(0, 1))
    m.part = pyo.Var(pyo.Any, dense=False, bounds=(0, 1))
    m.rows = pyo.ConstraintList()
    m.rows.add(m.flow[0] == 1)
    likelihood = 0.0
    for k, node in enumerate(nodes):
        if node["kind"] == "product":
            for child in node["children"]:
                m.rows.add(m.flow[child] == m.flow[k])
            continue
        m.rows.add(sum(m.part[k, j] for j in range(len(node["shares"]))) == m.flow[k])
        for j, share in enumerate(node["shares"]):
            likelihood += math.log(share) * m.part[k, j]
            if node["kind"] == "sum":
                m.rows.add(m.flow[node["children"][j]] == m.part[k, j])
            else:
                m.rows.add(m.part[k, j] <= in_bin(m.x, node["column"], *pairs(node["ends"])[j]))
    m.likely = pyo.Constraint(expr=likelihood >= at_least)
    m.cost = pyo.Objective(expr=l1(m.x, scale=COST.scale))
    return m


def main(*, fast: bool) -> None:
    model = fitted(LogisticRegression())
    for place in range(1 if fast else 3):
        m = program(model, learned(), math.log(0.003), refused(model).iloc[place])
        result = solvers.solve(m)
        print(result.status, round(result.objective or math.nan, 6))
        if result.solutions:
            print(m.x.decode(result.solutions[0]).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="one person")
    main(fast=parser.parse_args().fast)
