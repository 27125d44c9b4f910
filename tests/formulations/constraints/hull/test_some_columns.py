"""A hull of some columns: the same as that of a space which has no others, and free in the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt import Hull
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

RNG = np.random.default_rng(0)
SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("wage", kind="continuous", lower=0.0, upper=9.0),
        ceopt.Feature("rooms", kind="integer", lower=0, upper=9),
        ceopt.Feature("job", kind="categorical", levels=("a", "b")),
    ]
)
ROWS = pd.DataFrame({"wage": [2.0, 6.0, 4.0], "rooms": [1, 5, 4], "job": ["a", "a", "b"]})
MODEL = Affine([1.0, 1.0], -9.5, labels=("no", "yes"), columns=["wage", "rooms"])
PERSON = {"wage": 1.0, "rooms": 3, "job": "b"}
SCALE = {"wage": 1.0, "rooms": 1.0}


def asked(rule: Any, space: Any = SPACE, model: Any = MODEL, **options: Any) -> Any:
    row = {name: PERSON[name] for name in space.names}
    return ceopt.explain(model, row, space, target="yes", constraints=[rule], cost=ceopt.L1(scale="none"), **options)


@pytest.mark.parametrize("options", [{}, {"radius": 0.3}, {"radius": 0.3, "norm": "linf"}, {"clusters": 2}])
def test_it_is_the_hull_in_a_space_of_these_columns(options: dict[str, Any]) -> None:
    small = ceopt.FeatureSpace([SPACE["wage"], SPACE["rooms"]])
    first = asked(Hull(ROWS[["wage", "rooms"]], **options), small)
    second = asked(Hull(ROWS, columns=["wage", "rooms"], **options))
    third = asked(Hull(ROWS[["rooms", "wage"]], columns=["rooms", "wage"], **options))
    assert first.status == second.status == third.status
    if len(first):
        assert second[0].cost == pytest.approx(first[0].cost, rel=1e-6)
        assert third[0].cost == pytest.approx(first[0].cost, rel=1e-6)
        report = ceopt.verify(
            second, MODEL, SPACE, target="yes", factual=PERSON,
            constraints=[Hull(ROWS, columns=["wage", "rooms"], **options)],
        )  # fmt: skip
        assert report.ok


def test_the_other_columns_are_free() -> None:
    space = SPACE.fix("job")
    answer = asked(Hull(ROWS, columns=["wage"]), space)
    assert answer.status == "optimal"
    assert answer[0].values["wage"] <= 6.0
    assert asked(Hull(ROWS), space).status == "infeasible"


def test_rows_of_the_target_class_are_taken_in_these_columns() -> None:
    data = pd.DataFrame(
        {"wage": RNG.uniform(0, 9, 60), "rooms": RNG.integers(0, 10, 60), "job": RNG.choice(["a", "b"], 60)}
    )
    answer = asked(Hull(columns=["wage"]), data=data)
    inside = data.loc[data["wage"] + data["rooms"] > 9.5, "wage"]
    assert inside.min() <= answer[0].values["wage"] <= inside.max()


def test_a_mapping_scales_these_columns_alone() -> None:
    answer = asked(Hull(ROWS, columns=["wage"], radius=0.5, scale={"wage": 2.0}))
    assert answer[0].values["wage"] <= 7.0 + 1e-6


def test_what_is_no_list_of_columns_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="columns is 'wage'"):
        Hull(ROWS, columns="wage")
    with pytest.raises(UnknownNameError, match="income"):
        asked(Hull(ROWS, columns=["income"]))
    with pytest.raises(InvalidValueError, match="columns is empty"):
        asked(Hull(ROWS, columns=[]))


def test_it_says_so() -> None:
    rule = Hull(ROWS, columns=["wage", "rooms"])
    assert rule.sentence() == "in the hull of 3 rows in wage, rooms"
    assert repr(rule) == "Hull(<3 x 3>, columns=['wage', 'rooms'])"
