"""Arguments at the ends of double precision, and of the wrong type, are refused in a sentence that names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import ceopt
from ceopt import L1, Feature, FeatureSpace, MaxChanges, Recourse
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import CeoptError

SPACE = FeatureSpace([Feature("a", kind="integer", lower=0, upper=10)])
MODEL = Affine([1.0], -5.5, labels=("n", "y"))


def _explain(**options: Any) -> Any:
    return ceopt.explain(MODEL, {"a": 2}, SPACE, target="y", **options)


def _column(**options: Any) -> Any:
    return Feature("b", kind="continuous", **{"lower": 0.0, "upper": 1.0, **options})


def _generated() -> Any:
    rules = (rule for rule in [MaxChanges(1)])
    return Recourse(MODEL, SPACE, target="y", constraints=rules).fit(pd.DataFrame({"a": [1, 2, 5]}))


CALLS: dict[str, Callable[[], Any]] = {
    "margin is 5e-324": lambda: _explain(margin=5e-324),
    "margin is 1e\\+308": lambda: _explain(margin=1e308),
    "data is 5": lambda: _explain(data=5),
    "scale\\['a'\\] is 5e-324": lambda: _explain(cost=L1(scale={"a": 5e-324})),
    "step is 5e-324": lambda: _column(step=5e-324),
    "upper less lower is 5e-324": lambda: ceopt.explain(
        Affine([1.0], 1.0), {"b": 0.0}, FeatureSpace([_column(upper=5e-324)]), target=ceopt.AtLeast(2.0)
    ),
    "constraints is a generator": _generated,
}


@pytest.mark.parametrize("named", CALLS)
def test_an_extreme_argument_is_named(named: str) -> None:
    with pytest.raises(CeoptError, match=named):
        CALLS[named]()


def test_a_spread_that_nothing_can_be_divided_by_is_passed_over() -> None:
    assert _column(mad=5e-324, std=0.5).scale("mad") == 0.5


def test_a_frame_with_a_name_twice_is_no_row() -> None:
    frame = pd.DataFrame([[0, 6]], columns=["a", "a"])

    found = ceopt.verify(frame, MODEL, SPACE, target="y", factual={"a": 2}).to_frame()

    assert not found["valid"].any()
    assert found["broken"].tolist() == [("not a row: a name stands in it twice",)]
