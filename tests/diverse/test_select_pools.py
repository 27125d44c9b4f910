"""What a pool may be, how far its points are apart, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt import CeoptError
from ceopt.diverse import select
from ceopt.diverse.subset import pool_distances
from ceopt.formulations.predictors import Affine

SQUARE = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
SIZES = pd.CategoricalDtype(["S", "M", "L"], ordered=True)
PEOPLE = pd.DataFrame(
    {
        "age": [20, 23, 20],
        "owner": [False, True, False],
        "size": pd.Categorical(["S", "M", "L"], dtype=SIZES),
        "job": ["cook", "nurse", "cook"],
    },
    index=["a", "b", "c"],
)


def matrix(a: float, b: float, c: float) -> Any:
    """Distances of the pairs 01, 02 and 12."""
    return pytest.approx(np.array([[0.0, a, b], [a, 0.0, c], [b, c, 0.0]]), abs=1e-12)


@pytest.mark.parametrize(("norm", "pairs"), [("l1", (3, 4, 7)), ("l2", (3, 4, 5)), ("linf", (3, 4, 4))])
def test_distances_of_an_array(norm: Any, pairs: tuple[float, float, float]) -> None:
    assert pool_distances(SQUARE, norm) == matrix(*pairs)
    assert pool_distances(SQUARE.tolist(), norm) == matrix(*pairs)
    assert pool_distances(pd.DataFrame(SQUARE), norm) == matrix(*pairs)


@pytest.mark.parametrize(
    ("norm", "pairs"),
    [
        ("l1", (3 + 1 + 0.5 + 1, 1.0, 3 + 1 + 0.5 + 1)),
        ("l2", (np.sqrt(9 + 1 + 0.25 + 1), 1.0, np.sqrt(9 + 1 + 0.25 + 1))),
        ("linf", (3.0, 1.0, 3.0)),
    ],
)
def test_categories_are_one_apart_and_ordered_ones_by_rank(norm: Any, pairs: Any) -> None:
    assert pool_distances(PEOPLE, norm) == matrix(*pairs)
    assert pool_distances(PEOPLE.astype({"job": "category", "age": object}), norm) == matrix(*pairs)


def test_columns_are_divided_by_their_scales() -> None:
    frame = pd.DataFrame({"pay": [0.0, 3000.0, 0.0], "age": [0.0, 1.0, 4.0]})

    assert pool_distances(frame, "l1", scale={"pay": 1000.0}) == matrix(4.0, 4.0, 6.0)
    assert select(answers(6), 2, scale={"hours": 2.0}).value == pytest.approx(
        select(answers(6).to_frame().assign(hours=lambda f: f["hours"] / 2.0), 2).value
    )


def test_angles_are_seen_from_the_origin() -> None:
    points = [[2.0, 1.0], [1.0, 5.0], [-3.0, 1.0]]
    right, opposite = 1.0, 2.0
    assert pool_distances(points, "cosine", [1.0, 1.0]) == matrix(right, opposite, right)
    assert pool_distances(pd.DataFrame(points, columns=["x", "y"]), "cosine", {"y": 1, "x": 1}) == matrix(
        right, opposite, right
    )
    far = np.array([[1e-200, 0.0], [0.0, 1e200], [1e-200, 1e-200]])  # lengths that squares do not hold
    assert pool_distances(far, "cosine", [0, 0]) == matrix(1.0, 1.0 - np.sqrt(0.5), 1.0 - np.sqrt(0.5))
    found = select(points, objective="largest", norm="cosine", beta=1.0, origin=[1.0, 1.0])
    assert found.value == 3
    assert select(points, objective="largest", norm="cosine", beta=1.5, origin=[1.0, 1.0]).indices.tolist() == [0, 2]


def test_categories_have_directions() -> None:
    """Cook to nurse and cook to clerk are 60 degrees apart."""
    jobs = pd.DataFrame({"job": ["nurse", "clerk", "nurse"], "age": [20, 20, 20]})
    for origin in (
        {"job": "cook", "age": 20},
        pd.Series({"age": 20, "job": "cook"}),
        pd.DataFrame({"job": ["cook"], "age": 20}),
    ):
        assert pool_distances(jobs, "cosine", origin) == matrix(0.5, 0.0, 0.5)


def test_a_change_of_category_is_as_long_as_one_unit() -> None:
    rows = pd.DataFrame({"job": ["nurse", "cook", "nurse"], "age": [21, 21, 20]})
    half = 1.0 - np.sqrt(0.5)  # 45 degrees
    assert pool_distances(rows, "cosine", {"job": "cook", "age": 20}) == matrix(half, half, 1.0)


SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("hours", kind="integer", lower=0, upper=9),
        ceopt.Feature("loans", kind="integer", lower=0, upper=9),
    ]
)


def answers(n: int, target: str = "yes") -> ceopt.SolutionSet:
    model = Affine([1.0, -1.0], -2.5, labels=("no", "yes"))
    apart = ceopt.Apart(1, cost=ceopt.L1(scale="none"))
    return ceopt.explain(model, {"hours": 2, "loans": 4}, SPACE, target=target, n=n, diversity=apart)


def test_answers_are_a_pool_with_costs_and_an_origin() -> None:
    pool = answers(6)
    frame = pool.to_frame()
    assert len(pool) == 6
    for objective in ("max_sum", "max_min"):
        found, same = select(pool, 2, objective=objective), select(frame.to_numpy(), 2, objective=objective)
        assert found.value == pytest.approx(same.value)
    costs = [answer.cost for answer in pool]
    found = select(pool, 2, objective="cheapest", beta=2.0)
    assert found.value == pytest.approx(select(frame, 2, objective="cheapest", beta=2.0, costs=costs).value)
    assert found.value == pytest.approx(sum(costs[p] for p in found.indices))
    angles = select(pool, objective="largest", norm="cosine", beta=0.1)
    assert angles.value == select(frame, objective="largest", norm="cosine", beta=0.1, origin=pool.factual).value
    dear = select(pool, 2, objective="cheapest", beta=2.0, costs=[10.0 - cost for cost in costs])
    assert dear.value == pytest.approx(sum(10.0 - costs[p] for p in dear.indices))


# ---- bad input -------------------------------------------------------------------------------------------------------
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "k too large": (lambda: select(SQUARE, 4), "k to be a whole number from 1 to 3, but k is 4"),
    "k zero": (lambda: select(SQUARE, 0), "k is 0"),
    "k true": (lambda: select(SQUARE, True), "k is True"),
    "no k": (lambda: select(SQUARE), "k for objective 'max_sum', but k is None"),
    "no k for determinant": (lambda: select(SQUARE, objective="determinant"), "k for objective 'determinant'"),
    "k for largest": (lambda: select(SQUARE, 2, objective="largest", beta=1), "no k for objective 'largest'"),
    "no beta": (lambda: select(SQUARE, objective="largest"), "beta for objective 'largest', but beta is None"),
    "no beta for cheapest": (lambda: select(SQUARE, 2, objective="cheapest", costs=[1, 1, 1]), "beta for objective"),
    "unused beta": (lambda: select(SQUARE, 2, beta=1.0), "no beta for objective 'max_sum'.*'cheapest' and 'largest'"),
    "negative beta": (lambda: select(SQUARE, objective="largest", beta=-1.0), "beta of at least 0, but beta is -1.0"),
    "nan beta": (lambda: select(SQUARE, objective="largest", beta=np.nan), "beta is nan"),
    "infinite beta": (lambda: select(SQUARE, objective="largest", beta=np.inf), "beta is inf"),
    "text as beta": (lambda: select(SQUARE, objective="largest", beta="1"), "a number as beta, but beta is '1'"),
    "angle beyond 2": (
        lambda: select(SQUARE, objective="largest", norm="cosine", origin=[1, 1], beta=2.1),
        "beta from 0 to 2",
    ),
    "no costs": (lambda: select(SQUARE, 2, objective="cheapest", beta=1.0), "costs for objective 'cheapest'"),
    "unused costs": (lambda: select(SQUARE, 2, costs=[1, 1, 1]), "no costs for objective 'max_sum'"),
    "costs too short": (
        lambda: select(SQUARE, 2, objective="cheapest", beta=1.0, costs=[1, 1]),
        r"costs of shape 3, but its shape is \(2,\)",
    ),
    "cost nan": (
        lambda: select(SQUARE, 2, objective="cheapest", beta=1.0, costs=[1, np.nan, 1]),
        r"finite costs, but costs\[1\] is nan",
    ),
    "objective": (
        lambda: select(SQUARE, 2, objective="max_mim"),
        "Did you mean 'max_min'.*Choose from: max_sum, max_min",
    ),
    "norm": (lambda: select(SQUARE, 2, norm="l3"), "norm is 'l3'.*Choose from: l1, l2, linf, cosine"),
    "norm as number": (lambda: select(SQUARE, 2, norm=2), "norm is 2"),
    "solver": (lambda: select(SQUARE, 2, solver="higs"), "Did you mean 'highs'"),
    "solver of the determinant": (lambda: select(SQUARE, 2, objective="determinant", solver="no"), "solver is 'no'"),
    "time": (lambda: select(SQUARE, 2, time_limit_s=0.0), "time_limit_s is 0.0"),
    "nan point": (lambda: select([[0, 1], [np.nan, 2]], 1), r"finite points, but points\[1, 0\] is nan"),
    "infinite point": (lambda: select([[0, 1], [3, np.inf]], 1), r"points\[1, 1\] is inf"),
    "missing cell": (lambda: select(PEOPLE.replace("nurse", None), 1), "column 'job' has (None|nan) in row 'b'"),
    "infinite cell": (lambda: select(pd.DataFrame({"x": [0.0, -np.inf]}), 1), "column 'x' has -inf in row 1"),
    "empty pool": (lambda: select(np.empty((0, 2)), 1), "at least one point"),
    "empty frame": (lambda: select(PEOPLE.iloc[:0], 1), "at least one point"),
    "no columns": (lambda: select(np.empty((2, 0)), 1), "at least one point with a column"),
    "only an origin": (lambda: select(np.empty((0, 2)), 1, norm="cosine", origin=[0, 0]), "at least one point"),
    "a list": (lambda: select([1.0, 2.0], 1), r"points with a row for each point, but its shape is \(2,\)"),
    "text in an array": (lambda: select([["a", "b"]], 1), "numbers as points"),
    "ragged": (lambda: select([[1, 2], [3]], 1), "numbers as points"),
    "dates": (lambda: select(pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), 1), "column 'day' holds Timestamp"),
    "column twice": (lambda: select(pd.DataFrame([[1, 2]], columns=["x", "x"]), 1), "each column once"),
    "no origin": (
        lambda: select(SQUARE, 2, norm="cosine"),
        "the row that directions are seen from, but origin is None",
    ),
    "unused origin": (lambda: select(SQUARE, 2, origin=[0, 0]), "no origin, but it is given with norm 'l2'"),
    "origin too short": (lambda: select(SQUARE, 2, norm="cosine", origin=[1]), "an origin with the 2 columns"),
    "origin nan": (lambda: select(SQUARE, 2, norm="cosine", origin=[1, np.nan]), r"origin\[1\] is nan"),
    "origin of a frame": (lambda: select(PEOPLE, 2, norm="cosine", origin=[1, 2]), "but origin is list"),
    "column of origin": (lambda: select(PEOPLE, 2, norm="cosine", origin={"age": 3}), "column of origin is 'owner'"),
    "level of origin": (
        lambda: select(PEOPLE, 2, norm="cosine", origin={"age": 3, "owner": True, "size": "XL", "job": "cook"}),
        "level of column 'size' is 'XL'",
    ),
    "scale of an array": (lambda: select(SQUARE, 2, scale={"x": 1.0}), "named columns for a scale"),
    "scale of another column": (lambda: select(PEOPLE, 2, scale={"ages": 1.0}), "column of scale is 'ages'"),
    "no scale": (lambda: select(PEOPLE, 2, scale=3.0), "a scale by column, but scale is float"),
    "scale zero": (lambda: select(PEOPLE, 2, scale={"age": 0.0}), "a scale above 0, but that of 'age' is 0.0"),
    "point at the origin": (lambda: select(SQUARE, 2, norm="cosine", origin=[3, 0]), "but point 1 is the origin"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_misuse_is_refused_by_name(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(CeoptError, match=message):
        call()


def test_no_answers_are_no_pool() -> None:
    nobody = answers(2, target="no")  # the row is there already
    assert not len(nobody)
    with pytest.raises(CeoptError, match="at least one answer, but the solution set has none: already_favourable"):
        select(nobody, 1)
    with pytest.raises(CeoptError, match="no origin, but it is given with norm 'l2'"):
        select(answers(2), 1, origin={"hours": 1, "loans": 1})


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "cosine"])
def test_a_column_that_stays_missing_counts_nothing(norm: Any) -> None:
    origin = {"a": 0.0, "b": 0.5, "gap": np.nan} if norm == "cosine" else None
    pool = pd.DataFrame({"a": [1.0, 3.0, -2.0], "b": [0.0, 1.0, 4.0], "gap": [np.nan, None, np.nan]})
    known = None if origin is None else {name: origin[name] for name in "ab"}

    found = pool_distances(pool, norm, origin)
    np.testing.assert_array_equal(found, pool_distances(pool[["a", "b"]], norm, known))
