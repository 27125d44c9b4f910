"""Distances, order and filters against a few lines of plain Python that were written apart from them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ceopt
from ceopt.diverse import DiverseRobustExplainer, line_search
from ceopt.diverse import candidates as nearest
from ceopt.diverse.candidates import Neighbours, in_order
from ceopt.diverse.line_search import Segments, shortened
from ceopt.diverse.projection import cosines, distance_of
from ceopt.formulations.predictors import Affine

whole = st.integers(-3, 3).map(float)


# ---- the explainer in plain Python: numbers only, a linear model ----------------------------------------------------
def plain_distance(norm: str, a: Any, b: Any) -> float:
    moves = [abs(p - q) for p, q in zip(a, b, strict=True)]
    return sum(moves) if norm == "l1" else math.sqrt(sum(move * move for move in moves))


def plain_cosine(x: Any, a: Any, b: Any) -> float:
    u, v = [p - q for p, q in zip(a, x, strict=True)], [p - q for p, q in zip(b, x, strict=True)]
    return sum(p * q for p, q in zip(u, v, strict=True)) / (math.hypot(*u) * math.hypot(*v))


def plain_nearer(x: Any, point: Any, is_good: Any, *, norm: str, gamma: float, columns: bool) -> list[float]:
    low, high = list(x), list(point)
    for j in sorted(range(len(x)), key=lambda j: -abs(point[j] - x[j])) if columns else ():
        back = [x[j] if i == j else value for i, value in enumerate(high)]
        high = back if is_good(back) else high
    while plain_distance(norm, low, high) > gamma:
        middle = [(p + q) / 2 for p, q in zip(low, high, strict=True)]
        if is_good(middle):
            high = middle
        else:
            low = middle
    return high


def plain_explainer(
    x: Any, data: Any, is_good: Any, *, norm: str, keep: str, alpha: float, diversity: str, beta: float, gamma: float,
    columns: bool, early: bool, from_data: bool,
) -> tuple[float | None, list[int], list[int], list[list[float]]]:  # fmt: skip
    refused = sorted((plain_distance(norm, x, row), k) for k, row in enumerate(data) if not is_good(row))
    if from_data and refused:
        x = data[refused[0][1]]
    candidates = sorted((plain_distance(norm, x, row), k) for k, row in enumerate(data) if is_good(row))
    if not candidates:
        return None, [], [], []
    least = m = candidates[0][0]
    near = candidates[: int(alpha)] if keep == "nearest" else [c for c in candidates if c[0] <= (1 + alpha) * m + 1e-9]

    def nearer(point: Any) -> list[float]:
        return plain_nearer(x, point, is_good, norm=norm, gamma=gamma, columns=columns)

    points = [(k, data[k]) for _, k in near]
    if early:
        ends = [(k, nearer(point)) for k, point in points]
        ends = [(k, point) for i, (k, point) in enumerate(ends) if point not in [other for _, other in ends[:i]]]
        points = sorted(ends, key=lambda end: plain_distance(norm, x, end[1]))
        m = plain_distance(norm, x, points[0][1])
    kept: list[tuple[int, Any]] = []
    for k, point in points:
        if diversity == "angle":
            fine = [1 - plain_cosine(x, point, other) >= beta - 1e-9 for _, other in kept]
        else:
            fine = [plain_distance(norm, other, point) >= (1 + beta) * m - 1e-9 for _, other in kept]
        if all(fine):
            kept.append((k, point))
    answers = [point if early else nearer(point) for _, point in kept]
    return least, [k for _, k in near], [k for k, _ in kept], answers


cases = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(["l1", "l2"]),
        "cut": st.one_of(
            st.tuples(st.just("nearest"), st.integers(1, 12)),
            st.tuples(st.just("within"), st.sampled_from([0.0, 0.3, 1.0, 4.0])),
        ),
        "diverse": st.one_of(
            st.tuples(st.just("angle"), st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.7])),
            st.tuples(st.just("distance"), st.sampled_from([0.0, 0.2, 0.5, 1.0])),
        ),
        "gamma": st.sampled_from([0.01, 0.1, 0.5, 5.0]),
        "columns": st.booleans(),
        "early": st.booleans(),
        "from_data": st.booleans(),
    }
)


@given(
    data=st.lists(st.tuples(whole, whole, whole).map(list), min_size=1, max_size=25),
    w=st.tuples(whole, whole, whole),
    b=st.sampled_from([-2.5, -0.5, 0.5]),
    case=cases,
)
def test_equals_the_explainer_in_plain_python(data, w, b, case):
    (keep, alpha), (diversity, beta) = case["cut"], case["diverse"]
    x = [0.0, 0.0, 0.0] if b < 0 else [-1.0, 0.0, 1.0]

    def is_good(row: Any) -> bool:
        return sum(p * q for p, q in zip(w, row, strict=True)) + b > 0

    options = {
        "put_back": "columns" if case["columns"] else "categories",
        "minimise": "all" if case["early"] else "chosen",
        "origin": "data" if case["from_data"] else "row",
    }
    made = DiverseRobustExplainer(
        distance=case["norm"],
        keep=keep,
        alpha=alpha,
        diversity=diversity,
        beta=beta,
        tolerance=case["gamma"],
        **options,
    ).fit(data)
    result = made.explain(Affine(list(w), b, labels=("no", "yes")), x, target="yes", n=None)
    if is_good(x):
        assert result.status == "already_favourable"
        return
    m, near, kept, answers = plain_explainer(
        x, data, is_good, keep=keep, alpha=alpha, diversity=diversity, beta=beta,
        **{word: case[word] for word in ("norm", "gamma", "columns", "early", "from_data")},
    )  # fmt: skip
    assert result.min_distance == (None if m is None else pytest.approx(m))
    assert list(result.after_distance_filter) == near
    assert list(result.after_diversity_filter) == kept
    distinct = [row for k, row in enumerate(answers) if row not in answers[:k]]
    assert result.to_frame().to_numpy().tolist() == distinct
    assert result.status == ("feasible" if kept else "rejected")


# ---- what a published implementation gets wrong ----------------------------------------------------------------------
def test_diversity_is_measured_against_what_is_kept_and_not_against_the_row():
    """Rows 0 and 1 are far enough from the person (1.5 and 1.6 times the nearest), and next to each other."""
    data = [[1.5, 0.0], [1.6, 0.0], [0.0, 1.0], [-1.7, 0.0]]
    made = DiverseRobustExplainer(distance="l1", diversity="distance", beta=0.5, tolerance=None).fit(data)
    result = made.explain(lambda X: np.abs(X).sum(axis=1) >= 0.9, [0.0, 0.0], target=True)

    assert result.min_distance == 1.0
    assert result.after_distance_filter == (2, 0, 1, 3)
    assert result.after_diversity_filter == (2, 0, 3)


def test_the_angle_is_that_between_directions_from_the_row_and_signed():
    """From (1, 1) the first two rows lie in one direction; from the origin they would be at right angles."""
    data = [[2.0, 1.0], [3.0, 1.0], [-1.0, 1.0], [1.0, 9.0]]
    shared = {"distance": "l2", "diversity": "angle", "beta": 0.5, "tolerance": None}

    def predict(X):
        return np.abs(X - 1.0).sum(axis=1) >= 0.5

    paper = DiverseRobustExplainer(**shared).fit(data).explain(predict, [1.0, 1.0], target=True)
    released = DiverseRobustExplainer(**shared, variant="released").fit(data).explain(predict, [1.0, 1.0], target=True)

    assert paper.after_diversity_filter == (0, 2, 3)
    assert released.after_diversity_filter == (0, 3)


# ---- the parts -------------------------------------------------------------------------------------------------------
SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("hours", kind="integer", weight=(1.0, 3.0), mad=2.0),
        ceopt.Feature("rate", kind="continuous", weight=0.5, mad=0.25),
        ceopt.Feature("job", kind="categorical", levels=("a", "b", "c"), weight=2.0),
        ceopt.Feature("size", kind="ordinal", levels=("S", "M", "L", "XL")),
        ceopt.Feature("owner", kind="binary", levels=(False, True)),
    ]
)
ROW = st.tuples(st.integers(-5, 5), st.floats(-2, 2), st.integers(0, 2), st.integers(0, 3), st.integers(0, 1))
ROWS = st.lists(ROW.map(lambda row: [float(value) for value in row]), min_size=1, max_size=8)


@given(rows=ROWS, home=ROW, norm=st.sampled_from(["l1", "l2"]), scale=st.sampled_from(["none", "mad", "range"]))
def test_the_distance_is_what_explain_charges(rows, home, norm, scale):
    cost = (ceopt.L1 if norm == "l1" else ceopt.L2)(scale=scale)
    distance = distance_of("test", norm, scale, SPACE)
    start = dict(zip(SPACE.names, map(float, home), strict=True))
    charged = [cost.value(SPACE, start, dict(zip(SPACE.names, row, strict=True))) for row in rows]

    assert distance.between(np.array(home, dtype=float), np.array(rows)) == pytest.approx(charged)
    many = np.tile(np.array(home, dtype=float), (len(rows), 1))
    assert distance.between(many, np.array(rows)) == pytest.approx(charged)


@given(rows=ROWS, norm=st.sampled_from(["l1", "l2"]))
def test_the_embedding_keeps_distances_and_directions_have_their_lengths(rows, norm):
    space = SPACE.update("hours", weight=3.0)
    distance = distance_of("test", norm, "mad", space)
    points = np.array(rows)
    there = np.linalg.norm(distance.embedded(points) - distance.embedded(points[:1]), {"l1": 1, "l2": 2}[norm], axis=1)

    assert there == pytest.approx(distance.between(points[0], points), abs=1e-9)
    euclid = distance_of("test", "l2", "mad", space)
    lengths = np.linalg.norm(distance.directions(points[0], points), axis=1)
    assert lengths == pytest.approx(euclid.between(points[0], points), abs=1e-9)


def test_moves_to_two_levels_are_sixty_degrees_apart_and_to_one_level_none():
    distance = distance_of("test", "l1", "none", SPACE)
    home = np.array([0.0, 0.0, 0.0, 0.0, 0.0])
    moves = distance.directions(
        home, np.array([[0, 0, 1, 0, 0], [0, 0, 2, 0, 0], [0, 0, 1, 0, 1], [1, 0, 0, 0, 0]], float)
    )

    assert cosines(moves[0], moves) == pytest.approx([1.0, 0.5, 2 / math.sqrt(5), 0.0])


def test_directions_without_length_are_at_right_angles_and_short_ones_count():
    cosine = cosines(np.array([1e-200, 0.0]), np.array([[0.0, 0.0], [1e200, 1e200], [-1e-300, 0.0], [5.0, 0.0]]))

    assert cosine == pytest.approx([0.0, math.sqrt(0.5), -1.0, 1.0])


@given(values=st.lists(st.integers(0, 6), max_size=40), first=st.integers(1, 9))
def test_blocks_are_in_order_and_ties_are_never_parted(values, first):
    blocks = list(in_order(np.array(values, dtype=float), first))
    order = [int(place) for block in blocks for place in block]

    assert order == sorted(range(len(values)), key=lambda k: (values[k], k))
    for block, after in itertools.pairwise(blocks):
        assert len(block) >= first
        assert values[block[-1]] < values[after[0]]


@given(
    rows=st.lists(st.tuples(whole, whole).map(list), min_size=1, max_size=60),
    home=st.tuples(whole, whole),
    norm=st.sampled_from(["l1", "l2"]),
    first=st.integers(1, 9),
)
def test_the_tree_gives_the_order_of_a_look_at_every_row(rows, home, norm, first):
    space = ceopt.FeatureSpace([ceopt.Feature("a", kind="continuous"), ceopt.Feature("b", kind="integer")])
    distance, points = distance_of("test", norm, "none", space), np.array(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "_TREE_ROWS", 1)
        neighbours = Neighbours(points, distance)
    assert neighbours._tree is not None
    found = list(neighbours.blocks(np.array(home, dtype=float), first))
    expected = sorted(range(len(rows)), key=lambda k: (plain_distance(norm, home, rows[k]), k))

    assert [int(place) for places, _ in found for place in places] == expected
    distances = [float(value) for _, values in found for value in values]
    assert distances == pytest.approx([plain_distance(norm, home, rows[k]) for k in expected])


def test_a_tree_is_built_for_many_rows_of_few_columns_and_symmetric_weights_only():
    rng = np.random.default_rng(0)
    numbers = [ceopt.Feature(f"x{j}", kind="continuous") for j in range(20)]
    narrow, wide = ceopt.FeatureSpace(numbers[:3]), ceopt.FeatureSpace(numbers)
    one_way = narrow.update("x0", weight=(1.0, 2.0))
    found = [
        Neighbours(rng.random((n, len(space))), distance_of("test", "l1", "none", space))._tree is not None
        for n, space in [(20_000, narrow), (500, narrow), (20_000, wide), (20_000, one_way)]
    ]

    assert found == [True, False, False, False]


def test_a_large_table_gives_what_a_small_look_gives():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30_000, 3)).round(1)  # many ties
    model, row = Affine([1.0, 0.5, -1.0], -2.0, labels=(0, 1)), np.array([0.0, 0.0, 0.0])
    made = DiverseRobustExplainer(alpha=300).fit(X)
    assert made.fitted_.data.neighbours._tree is not None
    result = made.explain(model, row, target=1, n=None)

    good = np.flatnonzero(model.predict(X) == 1)
    distances = np.abs(X[good]).sum(axis=1)
    expected = good[np.lexsort((good, distances))][:300]
    assert list(result.after_distance_filter) == expected.tolist()


# ---- bisection -------------------------------------------------------------------------------------------------------
@given(
    ends=st.lists(st.tuples(st.floats(-10, 10), st.floats(-10, 10)), min_size=1, max_size=5),
    cuts=st.lists(st.floats(0.01, 12.0), min_size=1, max_size=4),
    tolerance=st.sampled_from([1e-9, 1e-3, 0.1, 100.0]),
)
def test_the_bracket_is_short_and_its_ends_decide_otherwise(ends, cuts, tolerance):
    """Also where the decision changes several times on the way: it does at each cut, by the distance from the start."""
    asked: list[int] = []

    def accepts(points):
        asked.append(len(points))
        return (np.linalg.norm(points, axis=1)[:, None] >= cuts).sum(axis=1) % 2 == 1

    c = np.array(ends)
    c = c[accepts(c)]
    asked.clear()
    lengths = np.abs(c).sum(axis=1)
    segments = Segments(np.zeros_like(c), c, np.zeros(2), np.zeros(2), lambda points: points)
    points, low, high = shortened(segments, lengths, accepts, tolerance=tolerance)
    longest = max(lengths.max(initial=0.0), tolerance)
    assert len(asked) == math.ceil(math.ceil(math.log2(longest / tolerance)) / line_search._HALVINGS_AHEAD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_search, "_HALVINGS_AHEAD", 1)  # one halving a call, as the paper has it
        alone = shortened(segments, lengths, accepts, tolerance=tolerance)
    assert [part.tolist() for part in (points, low, high)] == [part.tolist() for part in alone]
    assert accepts(points).all()
    assert not accepts(segments.at(low, np.arange(len(low)))).any()
    assert (lengths * (high - low) <= tolerance).all()


def test_a_fixed_number_of_halvings_is_the_same_for_all_segments():
    c = np.array([[1.0], [8.0]])
    segments = Segments(np.zeros((2, 1)), c, np.zeros(1), np.zeros(1), lambda points: points)
    found = {k: shortened(segments, c[:, 0], lambda p: p[:, 0] >= 0.7, halvings=k)[0][:, 0] for k in (0, 1, 3, -2)}

    assert found[0].tolist() == found[-2].tolist() == [1.0, 8.0]
    assert found[1].tolist() == [1.0, 4.0]
    assert found[3].tolist() == [0.75, 1.0]


def test_a_tolerance_below_the_floats_ends():
    c = np.array([[3.0]])
    segments = Segments(np.zeros((1, 1)), c, np.zeros(1), np.zeros(1), lambda points: points)
    points, low, high = shortened(segments, c[:, 0], lambda p: p[:, 0] >= 1.0, tolerance=5e-324)

    assert points[0, 0] == pytest.approx(1.0, abs=1e-15)
    assert np.nextafter(low[0], 1.0) == high[0]


def test_a_grid_is_kept_on_the_way_and_the_end_is_exact():
    anchor, step = np.array([0.5, 0.0]), np.array([0.1, 0.0])
    segments = Segments(np.array([[0.5, 0.3]]), np.array([[1.2, 0.9]]), anchor, step, lambda points: points)
    t = np.array([0.0, 0.3, 0.52, 1.0])
    points = segments.at(t, np.zeros(4, dtype=int))

    assert points[:, 0].tolist() == [0.5, 0.5 + 2 * 0.1, 0.5 + 4 * 0.1, 1.2]
    assert points[:, 1] == pytest.approx([0.3, 0.48, 0.612, 0.9])
    assert points[3].tolist() == [1.2, 0.9]
