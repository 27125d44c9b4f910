"""Answers at a distance: each the best of those that are far enough from all earlier ones, by trying everything."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import enumeration as by_hand
import numpy as np
import problems
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from problems import Problem, optimum, program, same
from scipy.optimize import linprog

from ceopt import Apart
from ceopt.formulations.costs import L0, L1, L2, Changes, L1Mahalanobis, Linf, Mahalanobis
from ceopt.formulations.recourse_program import RecourseProgram
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.tolerances import APART_TOLERANCE
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnboundedFeatureError, UnknownNameError

N = 4
LATTICE = tuple(kind for kind in problems.KINDS if kind != "continuous")
COUNTS = [("l0", by_hand.l0), (L0(), by_hand.l0), (Changes(count="columns"), by_hand.changes("columns"))]
GREATEST = [("linf", by_hand.linf()), (Linf(scale="none"), by_hand.linf("none"))]
SUMS = [("l1", by_hand.l1()), (L1(scale="range"), by_hand.l1("range")), (L1(scale="none"), by_hand.l1("none"))]
LEAST = st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 3.0])


def is_lattice(feature: Feature) -> bool:
    return feature.is_finite or feature.step is not None or feature.kind == "integer"


def short(feature: Feature) -> float:
    """The least move that counts, where counts are what is to differ."""
    return 0.0 if is_lattice(feature) else 1e-3 * (feature.upper - feature.lower)


def distances(problem: Problem, how: Apart, price: by_hand.Cost, points: Any, earlier: Any) -> Any:
    moves = points - earlier
    if price in (pair[1] for pair in COUNTS) or isinstance(how.measure, Changes):
        floors = np.array([short(feature) for feature in problem.space])
        moves = np.where(np.abs(moves) < floors * (1 - 1e-7), 0.0, moves)
    return np.broadcast_to(price(by_hand.Moves(problem.space, moves)), len(points))


def breakpoints(feature: Feature, how: Apart, earlier: float) -> list[float]:
    """Values at which a number is just far enough from an earlier one."""
    if is_lattice(feature):
        return []
    down, up = feature.weights
    if isinstance(how.measure, Linf):
        scale = by_hand.numeric_scale(feature, how.measure.scale)
        steps = [-how.least * scale / down if down else math.inf, how.least * scale / up if up else math.inf]
    else:
        steps = [-short(feature), short(feature)]
    return [earlier + step for step in steps if math.isfinite(step)]


def everything(problem: Problem, how: Apart, found: list[Any]) -> by_hand.Ranking:
    """All candidates that reach the target and keep the rules, those just far enough from answers in hand with them."""
    width = getattr(problem.model, "input_dtype", "float64")
    columns = []
    for j, feature in enumerate(problem.space):
        values = by_hand.candidates(feature, problem.point[j], problems.thresholds(problem.model, j), width=width)
        more = {b for point in found for b in breakpoints(feature, how, point[j])}
        low, high = (min(values), max(values)) if feature.mutable else (math.inf, -math.inf)
        columns.append(sorted({*values, *(b for b in more if low <= b <= high)}))
    points = by_hand.product(columns)
    scores = problem.model.score(by_hand.identity(problem.space, points))
    good = problems.slack(problem.model, problem.target, scores) >= problem.margin - 1e-9
    prices = np.broadcast_to(problem.price(by_hand.Moves(problem.space, points - problem.point)), len(points))
    return by_hand.Ranking(points, prices).only(good & problems.keeps(problem, points))


def agrees(problem: Problem, how: Apart, price: by_hand.Cost, formulation: str = "auto") -> None:
    """Rank by rank, what the program finds costs as little as anything far enough from what it found before."""
    model, found = program(problem, formulation), []
    recourse = RecourseProgram(model, model.x, model.predictor, problem.margin)
    costs: list[float] = []
    for _ in range(N):
        ranking = everything(problem, how, found)
        far = np.ones(len(ranking.points), dtype=bool)
        for earlier in found:
            far &= distances(problem, how, price, ranking.points, earlier) >= how.least - 1e-9
        cost, point = optimum(model, problem)
        assert same(cost, ranking.only(far).best), f"program {cost}, enumeration {ranking.only(far).best}"
        if cost is None or point is None:
            break
        named = dict(zip(problem.space.names, point.tolist(), strict=True))
        for earlier in found:
            own = float(distances(problem, how, price, point[None, :], earlier)[0])
            assert own >= how.least * (1 - 1e-6)
            before = dict(zip(problem.space.names, earlier.tolist(), strict=True))
            assert how.between(problem.space, before, named) == pytest.approx(own)
            assert how.differ(problem.space, before, before, named)
        costs.append(cost)
        found.append(point)
        how.exclude(recourse, named)
    assert all(b >= a - 1e-6 for a, b in itertools.pairwise(costs))


@draws(50)
@given(problem=problems.tree_problems(most=3), measure=st.sampled_from(COUNTS + GREATEST), least=LEAST)
def test_trees_by_counts_and_greatest_moves(problem: Problem, measure: Any, least: float) -> None:
    agrees(problem, Apart(least, cost=measure[0]), measure[1])


@draws(50)
@given(problem=problems.tree_problems(kinds=LATTICE, most=3), measure=st.sampled_from(SUMS), least=LEAST)
def test_trees_by_sums(problem: Problem, measure: Any, least: float) -> None:
    agrees(problem, Apart(least, cost=measure[0]), measure[1])


@pytest.mark.parametrize("formulation", ["misic", "leaf"])
@draws(10)
@given(
    problem=problems.tree_problems(kinds=LATTICE, most=2),
    measure=st.sampled_from(SUMS + COUNTS + GREATEST),
    least=LEAST,
)
def test_research_forms(formulation: str, problem: Problem, measure: Any, least: float) -> None:
    problem = replace(problem, margin=0.03125)  # their big-Ms make of a solver's tolerance more than 1e-5
    agrees(problem, Apart(least, cost=measure[0]), measure[1], formulation)


@draws(60)
@given(problem=problems.affine_problems(LATTICE), measure=st.sampled_from(SUMS + COUNTS + GREATEST), least=LEAST)
def test_linear_models(problem: Problem, measure: Any, least: float) -> None:
    agrees(problem, Apart(least, cost=measure[0]), measure[1])


# ---- sums over continuous columns: linear between the values where a cell ends or an earlier answer stands -----------
def by_segments(problem: Problem, found: list[Any], least: float) -> float | None:
    """Return the least l1 cost at l1 distance from all that was found, by a linear program for each box of segments."""
    features = [problem.space[name] for name in problem.space.names]
    segments = []
    for j, feature in enumerate(features):
        values = by_hand.candidates(feature, problem.point[j], problems.thresholds(problem.model, j))
        ends = sorted({*values, *(float(point[j]) for point in found)})
        pairs = [(v, v) for v in ends]
        if not is_lattice(feature):
            pairs += list(itertools.pairwise(ends))
        segments.append(pairs)
    best = math.inf
    for box in itertools.product(*segments):
        middle = np.array([[(low + high) / 2 for low, high in box]])
        score = problem.model.score(by_hand.identity(problem.space, middle))
        if problems.slack(problem.model, problem.target, score)[0] < problem.margin - 1e-9:
            continue
        slope, constant = linear(problem, box, problem.point)
        rows, sides = [], []
        for earlier in found:
            along, offset = linear(problem, box, earlier)
            rows.append(-along)
            sides.append(offset - least)
        result = linprog(slope, A_ub=np.array(rows) if rows else None, b_ub=sides or None, bounds=box)
        if result.status == 0:
            best = min(best, float(result.fun) + constant)
    return None if math.isinf(best) else best


def linear(problem: Problem, box: Any, home: Any) -> tuple[Any, float]:
    """Return slopes and constant of the l1 distance from ``home`` in a box that lies on one side of it."""
    low = np.array([[pair[0] for pair in box]])
    high = np.array([[pair[1] for pair in box]])
    first, last = (by_hand.Moves(problem.space, p - home).terms("none")[0] for p in (low, high))
    width = (high - low)[0]
    slope = np.where(width > 0, (last - first) / np.where(width > 0, width, 1.0), 0.0)
    return slope, float((first - slope * low[0]).sum())


@draws(25)
@given(problem=problems.tree_problems(kinds=("continuous", "continuous", "integer", "binary"), most=2), least=LEAST)
def test_sums_over_continuous_columns(problem: Problem, least: float) -> None:
    problem = replace(problem, cost=L1(scale="none"), price=by_hand.l1("none"), rules=())
    how, model, found = Apart(least, cost=L1(scale="none")), program(problem), []
    recourse = RecourseProgram(model, model.x, model.predictor, problem.margin)
    for _ in range(3):
        cost, point = optimum(model, problem)
        # A last float neighbour may miss the distance by less than a row's tolerance: either ruling is right there.
        nearly, fully = (by_segments(problem, found, share * least) for share in (1 - 1e-6, 1.0))
        assert same(cost, nearly) or same(cost, fully)
        if point is None:
            break
        for earlier in found:
            assert by_hand.l1("none")(by_hand.Moves(problem.space, (point - earlier)[None, :]))[0] >= least * (1 - 1e-6)
        found.append(point)
        how.exclude(recourse, dict(zip(problem.space.names, point.tolist(), strict=True)))


# ---- what is refused ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "kind", "match"),
    [
        ((0.0,), InvalidValueError, "above 0 as least, but least is 0.0"),
        ((-1,), InvalidValueError, "least is -1"),
        ((math.inf,), InvalidValueError, "finite.*least is inf"),
        ((math.nan,), InvalidValueError, "least is nan"),
        (("1",), InvalidTypeError, "a number as least, but least is '1'"),
        ((True,), InvalidTypeError, "least is True"),
        ((1.0, "l2"), InvalidValueError, "cost is 'l2': .*not convex.*Take 'linf', which is never above l2"),
        ((1.0, "l2_squared"), InvalidValueError, "cost is 'l2_squared': .*not convex"),
        ((1.0, L2()), InvalidValueError, "not convex"),
        ((1.0, "mahalanobis"), InvalidValueError, "not convex"),
        ((1.0, Mahalanobis(precision=np.eye(1))), InvalidValueError, "not convex"),
        ((1.0, L1() + Changes()), InvalidValueError, "a sum has no one unit.*Choose one part"),
        ((1.0, 2.0 * L1()), InvalidValueError, "a sum"),
        ((1.0, L1Mahalanobis(precision=np.eye(1))), InvalidValueError, "not a distance column by column"),
        ((1.0, "l3"), UnknownNameError, "'l3'"),
        ((1.0, 3), InvalidTypeError, "cost is 3"),
        ((1.0, L2), InvalidTypeError, "a cost object"),
    ],
)
def test_what_is_no_distance_is_refused(given: Any, kind: Any, match: str) -> None:
    with pytest.raises(kind, match=match):
        Apart(*given)


def test_a_number_that_can_go_both_ways_needs_bounds() -> None:
    space = FeatureSpace([Feature("wage", kind="continuous", mad=1.0)])
    problem = Problem(space, {"wage": 0.0}, None, None, L1(), by_hand.l1(), (), 0.0)
    model = bare(problem)
    with pytest.raises(UnboundedFeatureError, match="Apart.*'wage'.*space.update"):
        Apart(1.0).exclude(model, {"wage": 2.0})


@pytest.mark.parametrize("cost", ["l0", "linf"])
def test_cuts_need_no_bounds(cost: str) -> None:
    space = FeatureSpace([Feature("wage", kind="continuous", mad=2.0, weight=(1.0, 4.0))])
    model = bare(Problem(space, {"wage": 0.0}, None, None, L1(), by_hand.l1(), (), 0.0))
    Apart(1.0, cost=cost).exclude(model, {"wage": 2.0})
    keys = [left for left, _ in model.x.numeric("wage").cells.keys]
    step = (2.0, 0.5) if cost == "linf" else (1e-3, 1e-3)
    assert keys == pytest.approx([2.0 - step[0], 2.0 + step[1]], abs=1e-8)


def bare(problem: Problem) -> RecourseProgram:
    """A program with nothing in it but the person."""
    import pyomo.environ as pyo

    from ceopt.formulations import Factual

    m = pyo.ConcreteModel()
    m.x = Factual(problem.space, problem.row)
    return RecourseProgram(m, m.x, None, 0.0)  # type: ignore[arg-type]


def test_the_scale_must_fit_the_space() -> None:
    space = FeatureSpace([Feature("wage", kind="continuous", mad=1.0)])
    with pytest.raises(UnknownNameError, match="'wgae'.*Did you mean 'wage'"):
        Apart(1.0, cost=L1(scale={"wgae": 1.0})).check(space, ())


def test_its_text_is_the_call_that_makes_it() -> None:
    assert Apart(1, cost="linf").text == "Apart(1.0, cost='linf')"
    assert Apart(np.float64(0.5), cost=L1(scale="std")).text == "Apart(0.5, cost=L1(scale='std', count='features'))"


def test_firmer_rows_ask_for_a_trace_more() -> None:
    how = Apart(2.0)
    assert how.firmer().extra == APART_TOLERANCE
    assert how.firmer().firmer().extra == pytest.approx(10 * APART_TOLERANCE)
    assert how.firmer().differ(
        FeatureSpace([Feature("a", kind="continuous", lower=0, upper=9, mad=1.0)]), {}, {"a": 1}, {"a": 3}
    )


def test_moves_too_short_to_count_are_no_distance() -> None:
    """Of a number without a step, less than a thousandth of its range; by sums every move counts."""
    wage = Feature("wage", kind="continuous", lower=0, upper=9)
    space = FeatureSpace([wage, Feature("even", kind="integer", step=2), Feature("rate", kind="continuous", step=0.1)])
    here = {"wage": 1.0, "even": 2.0, "rate": 0.3}
    for name, move, counts in (("wage", 0.0089, 0), ("wage", 0.0091, 1), ("even", 2.0, 1), ("rate", 0.1, 1)):
        there = here | {name: here[name] - move}
        assert Apart(1.0, cost="l0").between(space, here, there) == counts
        assert Apart(1.0, cost="l0").differ(space, here, here, there) == bool(counts)
        assert Apart(1.0, cost=L1(scale="none")).between(space, here, there) == pytest.approx(move)


def test_a_distance_is_from_the_earlier_answer_to_the_later() -> None:
    space = FeatureSpace([Feature("wage", kind="continuous", lower=0, upper=9, weight=(1.0, 3.0))])
    how = Apart(3.0, cost=L1(scale="none"))
    assert how.differ(space, {}, {"wage": 2.0}, {"wage": 3.0})
    assert not how.differ(space, {}, {"wage": 3.0}, {"wage": 2.0})
