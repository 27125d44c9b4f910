"""Every cost names itself where its scale does not fit: by name, as an object, in a sum, as an expression, in Apart."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
import pytest

import ceopt
from ceopt import Feature, FeatureSpace
from ceopt.formulations import Factual, l1, l2, l2_squared, linf
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import CeoptError

SPACE = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in ("age", "wage")])
HOME = {"age": 1, "wage": 2}
SCALES: list[tuple[Any, str]] = [
    ({"age": 1.0}, "a scale for every numeric column, but column 'wage' has none"),
    ({"age": 1.0, "wage": 1.0, "wages": 1.0}, "a known column, but column is 'wages'. Did you mean 'wage'"),
    ({"age": -1.0, "wage": 1.0}, r"positive scales, but scale\['age'\] is -1.0"),
    ("madd", "a known scale, but scale is 'madd'. Did you mean 'mad'"),
]


@pytest.mark.parametrize("make", [ceopt.L1, ceopt.L2, ceopt.Linf])
@pytest.mark.parametrize(("scale", "match"), SCALES)
def test_a_scale_that_does_not_fit_is_refused_in_the_name_of_the_cost(make: Any, scale: Any, match: str) -> None:
    said = f"^{make.__name__} needs {match}"
    model = Affine([1.0, 1.0], -9.0, labels=("no", "yes"))
    with pytest.raises(CeoptError, match=said):
        ceopt.explain(model, HOME, SPACE, target="yes", cost=make(scale=scale))
    with pytest.raises(CeoptError, match=said):
        ceopt.explain(model, HOME, SPACE, target="yes", cost=ceopt.Changes() + 2.0 * make(scale=scale))
    if make is not ceopt.L2:
        with pytest.raises(CeoptError, match=said):
            ceopt.explain(model, HOME, SPACE, target="yes", n=2, diversity=ceopt.Apart(1.0, cost=make(scale=scale)))


@pytest.mark.parametrize(("expression", "name"), [(l1, "L1"), (l2, "L2"), (l2_squared, "L2"), (linf, "Linf")])
@pytest.mark.parametrize(("scale", "match"), SCALES)
def test_expressions_name_their_cost_as_well(expression: Any, name: str, scale: Any, match: str) -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, HOME)
    with pytest.raises(CeoptError, match=f"^{name} needs {match}"):
        expression(m.x, scale=scale)


@pytest.mark.parametrize("expression", [l1, l2, l2_squared, linf])
def test_expressions_name_themselves_where_there_is_no_factual(expression: Any) -> None:
    with pytest.raises(CeoptError, match=rf"^{expression.__name__} needs a Factual block"):
        expression(pyo.ConcreteModel())
