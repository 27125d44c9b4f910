"""The golden instances as spaces, costs and parameters, for tests of blocks and of calls alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ceopt.formulations.costs import L0, L1, L2, AbstractCost, Linf, Mahalanobis
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers.problem import ProblemClass
from ceopt.solvers.registry import SOLVERS

FOLDER = Path(__file__).parent / "golden"


def golden(family: str) -> list[Any]:
    """Return all instances of a family."""
    found: list[Any] = json.loads((FOLDER / f"{family}.json").read_text())["instances"]
    return found


def instances(family: str, *costs: str) -> list[Any]:
    found = golden(family)
    kept = [i for i in found if i["inputs"]["cost"] in costs]
    assert kept
    return [pytest.param(i, id=i["id"]) for i in kept]


def columns(inputs: Any) -> FeatureSpace:
    d = len(inputs["x0"])
    lower, upper = inputs.get("lower") or [-np.inf] * d, inputs.get("upper") or [np.inf] * d
    bounds = [(float(l), float(u)) for l, u in zip(lower, upper, strict=True)]
    return FeatureSpace([Feature(f"x{j}", kind="continuous", lower=l, upper=u) for j, (l, u) in enumerate(bounds)])


def cost_of(inputs: Any, names: tuple[str, ...]) -> AbstractCost:
    if inputs["cost"] == "mad":
        return L1(scale=dict(zip(names, inputs["mad"], strict=True)))
    if inputs["cost"] == "mahalanobis":
        return Mahalanobis(precision=inputs["M"])
    named = {"l0": L0(), "l1": L1(scale="none"), "l2": L2(scale="none"), "linf": Linf(scale="none")}
    return named[inputs["cost"]]


#: What a cost makes of a linear model over numbers.
CLASSES = {"l0": ProblemClass.MILP, "l2": ProblemClass.QP, "mahalanobis": ProblemClass.QP}


def on_every_solver(family: str, *costs: str) -> list[Any]:
    """Return (instance, solver) for every solver here that takes what the instance's cost makes of it."""
    ready = {name: s.classes for name, s in SOLVERS.items() if s.is_installed and s.is_licensed}
    return [
        pytest.param(instance, name, id=f"{instance['id']}-{name}")
        for instance in (parameter.values[0] for parameter in instances(family, *costs))
        for name, classes in ready.items()
        if CLASSES.get(instance["inputs"]["cost"], ProblemClass.LP) in classes
    ]
