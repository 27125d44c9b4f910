"""The published CE-OCL instances: sparse, actionable and plausible at once, groups as 0/1 columns with a row each."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from published import FOLDER

import ceopt
from ceopt.formulations.predictors import Affine

INSTANCES = json.loads((FOLDER / "ce_ocl.json").read_text())["instances"]


def column(given: Any, j: int) -> ceopt.Feature:
    whole = j in given["integer"] or any(j in group for group in given["onehot"])
    return ceopt.Feature(
        f"x{j}", kind="integer" if whole else "continuous", lower=given["lower"][j], upper=given["upper"][j],
        weight=given["cost_weights"][j], mutable=j not in given["immutable"],
        direction="increasing" if j in given["nondecreasing"] else "any",
    )  # fmt: skip


@pytest.mark.parametrize("instance", INSTANCES, ids=[i["id"] for i in INSTANCES])
def test_published_optima(instance: Any) -> None:
    given, expected = instance["inputs"], instance["expected"]
    space = ceopt.FeatureSpace([column(given, j) for j in range(len(given["x0"]))])
    kinds = {name: int if space[name].kind == "integer" else float for name in space.names}
    row = {name: kinds[name](value) for name, value in zip(space.names, given["x0"], strict=True)}
    rules: list[Any] = [ceopt.MaxChanges(given["K"], name="sparse")]
    for k, group in enumerate(given["onehot"]):
        rules.append(ceopt.Linear({f"x{j}": 1.0 for j in group}, "==", 1.0, name=f"group_{k}"))
    if given["points"] is not None:
        points = pd.DataFrame(given["points"], columns=list(space.names)).astype(kinds)
        rules.append(ceopt.Hull(points, radius=given["eps"], norm=f"l{given['p']}", scale="none", name="plausible"))
    found = ceopt.explain(
        Affine(given["w"], given["intercept"], labels=("no", "yes")), row, space, target="yes",
        cost=ceopt.L1(scale="none") + given["alpha"] * ceopt.Changes(), constraints=rules, margin=0.0,
    )  # fmt: skip
    tolerance = instance["tol"]["objective"]
    assert found.status == expected["status"]
    assert found.bound == pytest.approx(expected["objective"], abs=tolerance)
    assert found[0].cost == pytest.approx(expected["objective"], abs=tolerance)
    # The stored point is one optimum of maybe several: feasible by its own numbers, at its own cost.
    x0, x = np.array(given["x0"]), found[0].values.to_numpy(dtype=float)
    own = np.abs(x - x0) @ given["cost_weights"] + given["alpha"] * (x != x0).sum()
    assert own == pytest.approx(expected["objective"], abs=tolerance)
    assert x @ given["w"] + given["intercept"] >= 0.0
    assert (x != x0).sum() <= given["K"]
    assert all(x[group].sum() == 1.0 for group in given["onehot"])
    assert (x[given["immutable"]] == x0[given["immutable"]]).all()
    assert (x[given["nondecreasing"]] >= x0[given["nondecreasing"]]).all()
