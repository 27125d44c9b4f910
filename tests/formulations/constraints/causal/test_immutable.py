"""Causal: a column that the space holds keeps its value, whatever its equation says, and passes nothing on."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import ceopt
from ceopt import Causal, Feature, FeatureSpace, LinearEquation
from ceopt.formulations.predictors import Affine

NAMES = ("age", "wage", "rent", "saved")
#: rent follows from wage and age, saved from rent; the oracle below writes them out.
EQUATIONS = {
    "wage": LinearEquation({"age": 2.0}, 5.0),
    "rent": LinearEquation({"wage": 1.0, "age": -1.0}),
    "saved": LinearEquation({"rent": -1.0, "wage": 2.0}),
}
HOME = {"age": 1, "wage": 2, "rent": 3, "saved": 4}
Kind = Literal["none", "soft", "hard"]


def space(held: tuple[str, ...]) -> FeatureSpace:
    columns = [Feature(name, kind="integer", lower=-2, upper=9, mutable=name not in held) for name in NAMES]
    return FeatureSpace(columns)


def cheapest(kind: Kind, held: tuple[str, ...], least: float) -> float | None:
    """Return the least charge over the lattice, by the equations in plain Python."""
    ranges = [[HOME[name]] if name in held else range(-2, 10) for name in NAMES]
    best = None
    for age, wage, rent, saved in itertools.product(*ranges):
        if 0.3 * age + 0.7 * wage - 0.4 * rent + saved < least - 1e-9:
            continue
        off = {
            "wage": (wage - 2) - 2 * (age - 1),
            "rent": (rent - 3) - ((wage - 2) - (age - 1)),
            "saved": (saved - 4) - (2 * (wage - 2) - (rent - 3)),
        }
        moves = {"age": age - 1, "wage": wage - 2, "rent": rent - 3, "saved": saved - 4}
        free = {name: gap for name, gap in off.items() if name not in held}
        if kind == "none":
            if any(free.values()):
                continue
            charge = sum(map(abs, moves.values()))
        elif kind == "soft":
            charge = abs(moves["age"]) + sum(map(abs, free.values()))
        else:
            charge = abs(moves["age"]) + sum(abs(moves[name]) for name, gap in free.items() if gap)
        best = charge if best is None else min(best, charge)
    return best


@pytest.mark.long(every=6)
@pytest.mark.parametrize("kind", ["none", "soft", "hard"])
@pytest.mark.parametrize("held", [("wage",), ("rent",), ("wage", "saved"), ("age", "rent"), NAMES[1:]])
def test_optima_are_those_of_enumeration(kind: Kind, held: tuple[str, ...]) -> None:
    model = Affine([0.3, 0.7, -0.4, 1.0], 0.0)
    for least in (6.5, 8.0, 15.1):
        found = ceopt.explain(
            model, HOME, space(held), target=ceopt.AtLeast(least), cost=ceopt.L1(scale="none"), margin=0.0,
            constraints=[Causal(EQUATIONS, intervention=kind)],
        )  # fmt: skip
        best = cheapest(kind, held, least)
        if best is None:
            assert found.status == "infeasible"
        else:
            assert found.status == "optimal"
            assert found[0].cost == pytest.approx(best, abs=1e-6)
            assert all(found[0].values[name] == HOME[name] for name in held)
            assert not {*held} & {*(found[0].actions if found[0].actions is not None else ())}


def test_a_held_column_is_checked_and_reported_as_such() -> None:
    rule, held = Causal(EQUATIONS, intervention="hard"), space(("wage",))
    model = Affine([0.0, 0.0, 0.0, 1.0], 0.0)
    row = HOME | {"age": 3, "rent": 1, "saved": 6}  # rent and saved follow from age, wage does not
    answer = pd.DataFrame([row])
    report = ceopt.verify(answer, model, held, target=ceopt.AtLeast(6.0), factual=HOME, constraints=[rule])
    assert report.ok
    moved = pd.DataFrame([row | {"wage": 6}])
    report = ceopt.verify(moved, model, held, target=ceopt.AtLeast(6.0), factual=HOME, constraints=[rule])
    assert not report.ok


def test_a_regressor_of_a_held_column_need_not_be_one_that_can_be_stated() -> None:
    """Its equation does not bind, so nothing asks it; that of a column that moves is refused as before."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.integers(0, 9, size=(40, 4)), columns=list(NAMES))
    neighbours = KNeighborsRegressor(2).fit(data[["age"]], data["wage"])
    tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(data[["wage", "age"]], data["rent"])
    rule = Causal({"wage": neighbours, "rent": tree}, intervention="soft", slack={"wage": 0.5, "rent": 0.5})
    found = ceopt.explain(
        Affine([0.0, 0.0, 1.0, 0.0], 0.0), HOME, space(("wage",)), target=ceopt.AtLeast(5.0), constraints=[rule]
    )
    assert found.status == "optimal"
    with pytest.raises(ceopt.CeoptError, match="equation of 'wage'"):
        rule.check(space(()))


def test_what_cannot_be_an_equation_is_refused_of_a_held_column_too() -> None:
    with pytest.raises(ceopt.CeoptError, match="Did you mean 'age'"):
        Causal({"wage": LinearEquation({"agee": 1.0})}).check(space(("wage",)))
    with pytest.raises(ceopt.CeoptError, match="cycle"):
        Causal({"wage": LinearEquation({"rent": 1.0}), "rent": LinearEquation({"wage": 1.0})})


def test_a_causal_model_of_a_real_book_takes_its_immutable_columns() -> None:
    """Every column of the graph, also where the schema holds it: it is the same as without these equations."""
    book = ceopt.datasets.loans(n=300)
    learned: Any = Causal.learn(book.graph, book.data, space=book.space, intervention="soft")
    held = list(learned.equations)[:1]
    fixed = book.space.update(held[0], mutable=False)
    without = Causal(
        {name: equation for name, equation in learned.equations.items() if name not in held}, intervention="soft"
    )
    points = fixed.coordinates(book.data.head(20))
    home = dict(zip(fixed.names, points[0], strict=True))
    for rule in (learned, without):
        rule.check(fixed)
    np.testing.assert_array_equal(learned.charged(fixed, home, points), without.charged(fixed, home, points))
