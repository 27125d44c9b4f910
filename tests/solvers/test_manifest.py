"""Notes on blocks survive copies, and the table counts each component once."""

from __future__ import annotations

import pickle
from typing import Any

import pyomo.environ as pyo
import pytest

from ceopt.solvers import Manifest, describe, manifest_of, model_summary
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import InvalidTypeError
from ceopt.solvers.manifest import feature_of


def described() -> Any:
    m = pyo.ConcreteModel()
    m.z = pyo.Var()
    m.outer = pyo.Block()
    m.outer.x = pyo.Var(["age", "income"])
    m.outer.cut = pyo.Var([("age", 37.5), ("income", 2)], domain=pyo.Binary)
    m.outer.plain = pyo.Block()
    m.outer.plain.y = pyo.Var(domain=pyo.Binary)
    m.outer.inner = pyo.Block([1, 2])
    for k in (1, 2):
        m.outer.inner[k].y = pyo.Var([1, 2], domain=pyo.Binary)
        m.outer.inner[k].c = pyo.Constraint(expr=m.outer.inner[k].y[1] <= m.z)
    m.outer.data = pyo.Var(initialize=1)
    m.outer.data.fix()
    m.outer.c = pyo.ConstraintList()
    m.outer.c.add(m.outer.x["age"] >= 1)
    m.outer.c.add(m.outer.x["age"] >= 2).deactivate()
    m.c = pyo.Constraint(expr=m.z >= 0)
    m.outer.near = pyo.Constraint(expr=soc(m.z, m.outer.x) >= 0)
    describe(
        m.outer, Manifest(title="outer", formula="f", reference="r", rule="rule", features={"x": 0, "cut": 0, "c": -1})
    )
    describe(m.outer.inner[1], Manifest(title="inner", formula="g"))
    return m


def test_summary_counts_each_component_once() -> None:
    frame = model_summary(described()).set_index("block")
    assert frame.columns.tolist() == ["title", "variables", "binaries", "rows", "cones", "formula", "reference", "rule"]
    counts = frame[["variables", "binaries", "rows", "cones"]].to_numpy().tolist()
    assert dict(zip(frame.index, counts, strict=True)) == {
        "": [1, 0, 1, 0],
        "outer": [7, 5, 2, 1],
        "outer.inner[1]": [2, 2, 1, 0],
    }
    assert frame.loc["outer", ["title", "formula", "reference", "rule"]].tolist() == ["outer", "f", "r", "rule"]
    assert len(model_summary(pyo.ConcreteModel())) == 0


def test_manifests_survive_clone_and_pickle() -> None:
    m = described()
    for copy in (m.clone(), pickle.loads(pickle.dumps(m))):
        assert manifest_of(copy.outer) == manifest_of(m.outer)
        assert manifest_of(copy.outer.inner[1]) == Manifest(title="inner", formula="g")
        assert manifest_of(copy.outer.inner[2]) is None
        assert feature_of(copy.outer.cut["age", 37.5]) == "age"


def test_features() -> None:
    m = described()
    assert feature_of(m.outer.x["income"]) == "income"
    assert feature_of(m.outer.plain.y) == feature_of(m.outer.c[1]) == feature_of(m.z) == ""
    with pytest.raises(InvalidTypeError, match="Manifest"):
        describe(m.outer, "title")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="block"):
        describe(m.outer.inner, Manifest(title="", formula=""))
