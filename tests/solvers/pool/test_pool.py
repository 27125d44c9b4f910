"""Pools: the n best as by enumeration, what "differ" means, and what is said where fewer come back."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ceopt.formulations import Factual, Reaches, embed
from ceopt.formulations.costs import L1
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.formulations.targets import AtLeast
from ceopt.solvers import Apart, Status, Support, count, registry, solve
from ceopt.solvers.compile.compiled_model import compile_model
from ceopt.solvers.cones import soc
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    MissingLibraryError,
    MissingLicenceError,
    UnboundedFeatureError,
    UnknownNameError,
)
from ceopt.solvers.highs import HighsSession
from ceopt.solvers.pool.pool import rule_of
from ceopt.solvers.pool.ranking import Runner

SOLVERS = [name for name in ("highs", "scip", "gurobi") if registry.SOLVERS[name].is_licensed]
BOUNDS = [(0, 1), (0, 1), (0, 1), (-1, 2), (3, 6)]


def program(seed: int, *, mixed: bool = False, ties: bool = False) -> Any:
    """Five integers, three of them binary, two rows, and two continuous Vars that follow them."""
    rng = np.random.default_rng(seed)
    n = len(BOUNDS)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(n), domain=pyo.Integers, bounds=lambda _m, j: BOUNDS[j])
    weights = rng.integers(-5, 9, (2, n)).tolist()
    m.rows = pyo.Constraint(range(2), rule=lambda m, i: sum(weights[i][j] * m.x[j] for j in range(n)) <= 14 + 5 * i)
    value = rng.integers(-3, 4, n).tolist() if ties else rng.normal(size=n).round(3).tolist()
    total = sum(value[j] * m.x[j] for j in range(n)) + 7
    if mixed:
        m.y = pyo.Var(range(2), bounds=(0, 3))
        m.follow = pyo.Constraint(range(2), rule=lambda m, i: m.y[i] <= 0.5 + m.x[i] + 0.25 * m.x[3 + i])
        m.both = pyo.Constraint(expr=m.y[0] + 2 * m.y[1] <= 2.75)
        total += 0.6 * m.y[0] + 0.7 * m.y[1]
    m.value = pyo.Objective(expr=total, sense=pyo.maximize if mixed or seed % 2 else pyo.minimize)
    return m


def enumerated(m: Any) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Every feasible assignment of the integers, ordered as ``m.x``, with the best value of the continuous part."""
    compiled = compile_model(m)
    whole, sense = compiled.integer, compiled.sense
    names = [var.name for var, is_whole in zip(compiled.columns, whole, strict=True) if is_whole]
    order = [names.index(var.name) for var in m.x.values()]  # that of the columns is Pyomo's affair
    ranges = [range(int(low), int(high) + 1) for low, high in zip(compiled.lb[whole], compiled.ub[whole], strict=True)]
    for values in itertools.product(*ranges):
        x = np.zeros(len(whole))
        x[whole] = values
        if not whole.all():
            rest = compiled.A[:, np.flatnonzero(~whole)].toarray()
            bounds = list(zip(compiled.lb[~whole], compiled.ub[~whole], strict=True))
            found = linprog(sense * compiled.c[~whole], rest, compiled.row_ub - compiled.A @ x, bounds=bounds)
            if found.x is None:
                continue
            x[~whole] = found.x
        if compiled.violation(x) < 1e-9:
            yield compiled.evaluate(x), tuple(values[place] for place in order)


def ranked(m: Any) -> list[tuple[float, tuple[int, ...]]]:
    sense = compile_model(m).sense
    return sorted(enumerated(m), key=lambda pair: sense * pair[0])


def integers(solution: Any, m: Any) -> tuple[int, ...]:
    values = [solution[v.name] for v in m.x.values()]
    assert all(isinstance(value, int) for value in values)
    return tuple(values)


# -- the exact n best --------------------------------------------------------------------------------------------------
@pytest.mark.long(every=3)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mixed", [False, True])
@draws(12)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 9), ties=st.booleans())
def test_the_n_best_are_those_of_enumeration(solver: str, mixed: bool, seed: int, n: int, ties: bool) -> None:
    m = program(seed, mixed=mixed, ties=ties)
    expected = ranked(m)

    result = solve(m, solver, pool=n)

    assert (result.status, result.complete) == (Status.OPTIMAL if expected else Status.INFEASIBLE, True)
    assert bool(result.message) == (len(expected) < n)
    assert [s.objective for s in result.solutions] == pytest.approx([value for value, _ in expected[:n]], abs=1e-6)
    assert len({integers(s, m) for s in result.solutions}) == min(n, len(expected))
    for solution in result.solutions:
        solution.load()
        assert pyo.value(m.value) == pytest.approx(solution.objective, abs=1e-6)
        assert all(con.slack() > -1e-6 for con in m.component_data_objects(pyo.Constraint))
    assert result.gap is None if not expected else result.gap <= 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_there_are_no_more_is_proved(solver: str) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], domain=pyo.Integers, bounds=(0, 2))
    m.sum = pyo.Constraint(expr=m.x[1] + m.x[2] == 2)
    m.cost = pyo.Objective(expr=m.x[1])

    result = solve(m, solver, pool=10)

    assert (result.status, result.complete) == (Status.OPTIMAL, True)
    assert result.message == "Proved: there are no more."
    assert [(s["x[1]"], s["x[2]"]) for s in result.solutions] == [(0, 2), (1, 1), (2, 0)]
    assert m.x[1].value == 0


def test_no_solution_at_all_is_complete() -> None:
    m = program(1)
    m.never = pyo.Constraint(expr=m.x[0] >= 2)
    result = solve(m, pool=3)
    assert (result.status, result.complete, result.solutions) == (Status.INFEASIBLE, True, ())


def test_a_continuous_program_has_one_solution() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 3))
    m.y = pyo.Var(bounds=(2, 2), domain=pyo.Integers)
    m.cost = pyo.Objective(expr=m.x + m.y)
    for distinct in ("decisions", "incumbents", Support(m.y)):
        result = solve(m, pool=4, distinct=distinct)
        assert (result.status, result.complete, len(result.solutions)) == (Status.OPTIMAL, True, 1)
        assert "one solution" in result.message


def test_a_value_just_off_an_integer_is_that_integer() -> None:
    m = program(0)
    compiled = compile_model(m)
    rule = rule_of("decisions", compiled)
    exact = np.array([0.0, 1.0, 1.0, 0.0, 6.0])
    near = exact + np.array([1e-7, -1e-7, 0.0, 1e-7, -1e-7])
    assert not rule.differ(exact, near)
    barred, same = rule.barred(compiled, [near]), rule.barred(compiled, [exact])
    assert (barred.A != same.A).nnz == 0
    assert barred.row_lb.tolist() == same.row_lb.tolist()


def test_the_rows_of_binaries_are_the_published_ones() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), domain=pyo.Binary)
    m.value = pyo.Objective(expr=sum(m.x.values()))
    compiled = compile_model(m)
    barred = rule_of("decisions", compiled).barred(compiled, [np.array([1.0, 0.0, 1.0])])
    assert barred.A.toarray().tolist() == [[-1.0, 1.0, -1.0]]  # (1 - x0) + x1 + (1 - x2) >= 1
    assert barred.row_lb.tolist() == [-1.0]


@pytest.mark.parametrize(("at", "low", "high"), [(0, 0, 3), (3, 0, 3), (1, 0, 3), (-2, -5, 3)])
def test_the_disjunction_of_an_integer_leaves_out_one_value(at: int, low: int, high: int) -> None:
    for value in range(low, high + 1):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(domain=pyo.Integers, bounds=(low, high))
        m.pin = pyo.Constraint(expr=m.x >= value)
        m.cost = pyo.Objective(expr=m.x)
        compiled = compile_model(m)
        barred = rule_of("decisions", compiled).barred(compiled, [np.array([float(at)])])
        x = HighsSession(barred).solve().x
        expected = value + 1 if value == at else value
        assert (None if x is None else round(x[0])) == (expected if expected <= high else None)


@pytest.mark.long(every=6)
@pytest.mark.parametrize("cone", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_n_best_of_a_quadratic_and_a_cone_program(solver: str, cone: bool) -> None:
    """|y - A z| (squared) with 0.3 z1 - 0.4 z2: y is the projection of A z on a line, by hand."""
    matrix = np.array([[1.0, -0.6, 0.25], [0.3, 0.8, -1.1]])
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), domain=pyo.Integers, bounds=(0, 2))
    m.y = pyo.Var(range(2), bounds=(-9, 9))
    m.t = pyo.Var(bounds=(0, 99))
    off = [m.y[i] - sum(matrix[i, j] * m.x[j] for j in range(3)) for i in range(2)]
    m.line = pyo.Constraint(expr=m.y[0] + m.y[1] == 1.5)
    if cone:
        m.cone = pyo.Constraint(expr=soc(m.t, off) >= 0)
    linear = 0.3 * m.x[1] - 0.4 * m.x[2]
    m.cost = pyo.Objective(expr=linear + (m.t if cone else off[0] ** 2 + off[1] ** 2))
    expected = []
    for z in itertools.product(range(3), repeat=3):
        distance = abs(1.5 - (matrix @ z).sum()) / 2**0.5
        expected.append(0.3 * z[1] - 0.4 * z[2] + (distance if cone else distance**2))

    result = solve(m, solver, pool=4)

    assert (result.status, result.complete) == (Status.OPTIMAL, True)
    assert [s.objective for s in result.solutions] == pytest.approx(sorted(expected)[:4], abs=2e-6)
    assert len({integers(s, m) for s in result.solutions}) == 4


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_ten_best_of_a_recourse_program(solver: str) -> None:
    """Six yes-or-no columns and two trees: every point that reaches the target, by its cost."""
    space = FeatureSpace(
        [Feature(name, kind="binary", levels=(0, 1), weight=1.0 + 0.13 * k) for k, name in enumerate("abcdef")]
    )
    trees = [
        {"feature": k, "threshold": 0.5, "left": {"value": 0.0}, "right": {
            "feature": k + 2, "threshold": 0.5, "left": {"value": 1.0 + k}, "right": {"value": 2.0}}}
        for k in range(4)
    ]  # fmt: skip
    ensemble, target, cost = TreeEnsemble(trees, n_inputs=6), AtLeast(3.5), L1(scale="none")
    row = space.row(dict.fromkeys("abcdef", 0))
    points = [dict(zip("abcdef", map(float, values), strict=True)) for values in itertools.product((0, 1), repeat=6)]
    valid = [p for p in points if ensemble.score(np.array([list(p.values())]))[0] >= 3.5]
    expected = sorted(cost.value(space, row, p) for p in valid)
    m = pyo.ConcreteModel()
    m.x = Factual(space, dict.fromkeys("abcdef", 0))
    m.predictor = embed(ensemble, m.x)
    m.reaches = Reaches(m.predictor, target, margin=0.0)
    m.cost = pyo.Objective(expr=cost.build(m.x))

    result = solve(m, solver, pool=10)

    assert len(expected) > 10
    assert [cost.from_objective(s.objective) for s in result.solutions] == pytest.approx(expected[:10])
    assert (result.status, result.complete) == (Status.OPTIMAL, True)
    decoded = []
    for solution in result.solutions:
        solution.load()
        decoded.append(m.x.decoded())
        assert decoded[-1] in valid
    assert len({tuple(point.values()) for point in decoded}) == 10


# -- other ways to differ ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", SOLVERS)
@draws(8)
@given(seed=st.integers(0, 10_000), mixed=st.booleans())
def test_support_is_the_best_of_each(solver: str, seed: int, mixed: bool) -> None:
    m = program(seed, mixed=mixed)
    best: dict[tuple[int, ...], float] = {}
    for value, values in ranked(m):
        best.setdefault(values[:2], value)

    result = solve(m, solver, pool=6, distinct=Support([m.x[0], m.x[1]]))

    assert [s.objective for s in result.solutions] == pytest.approx(list(best.values()), abs=1e-6)
    assert len({integers(s, m)[:2] for s in result.solutions}) == len(best)
    assert (result.status, result.complete) == (Status.OPTIMAL if best else Status.INFEASIBLE, True)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("solver", SOLVERS)
@draws(8)
@given(seed=st.integers(0, 10_000), least=st.sampled_from([1.0, 2.0, 2.5, 4.0]))
def test_apart_is_the_best_that_keeps_its_distance(solver: str, norm: str, seed: int, least: float) -> None:
    m = program(seed)
    kept: list[np.ndarray] = []
    expected = []
    for value, values in ranked(m):
        point = np.array(values[2:])
        moves = [np.abs(point - earlier) for earlier in kept]
        if all((move.sum() if norm == "l1" else move.max()) >= least for move in moves) and len(kept) < 4:
            kept.append(point)
            expected.append(value)

    result = solve(m, solver, pool=4, distinct=Apart([m.x[2], m.x[3], m.x[4]], least, norm=norm))

    assert [s.objective for s in result.solutions] == pytest.approx(expected, abs=1e-6)
    assert (result.status, result.complete) == (Status.OPTIMAL if expected else Status.INFEASIBLE, True)


def test_a_linear_program_kept_apart() -> None:
    """max x + 1.5 y on a square of side 2: (2, 2), then (0, 2), then (1, 1); nothing is 4.5 away."""
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(bounds=(0, 2)), pyo.Var(bounds=(0, 2))
    m.value = pyo.Objective(expr=m.x + 1.5 * m.y, sense=pyo.maximize)
    result = solve(m, pool=3, distinct=Apart([m.x, m.y], 2.0))
    assert [s.objective for s in result.solutions] == pytest.approx([5.0, 3.0, 2.5])
    far = solve(m, pool=3, distinct=Apart([m.x, m.y], 4.5))
    assert (far.status, far.complete, len(far.solutions)) == (Status.OPTIMAL, True, 1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_incumbents_are_checked_different_and_sorted(solver: str, make_knapsack: Callable[..., Any]) -> None:
    m = make_knapsack(25, 4)
    result = solve(m, solver, pool=5, distinct="incumbents")
    objectives = [s.objective for s in result.solutions]
    assert result.status is Status.OPTIMAL
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[0] == solve(m, solver).objective
    assert len({tuple(s.values()) for s in result.solutions}) == len(result.solutions)
    assert all(s.compiled.violation(s.x) <= 1e-5 for s in result.solutions)
    assert result.complete == (len(result.solutions) == 5)
    assert result.complete or f"met {len(objectives)}." in result.message


def test_one_free_choice_and_fewer_than_wanted() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Binary)
    m.value = pyo.Objective(expr=m.x, sense=pyo.maximize)
    result = solve(m, pool=5, distinct="incumbents")
    assert not result.complete
    assert "The solver met" in result.message


# -- what a solver may do ----------------------------------------------------------------------------------------------
class Deceptive:
    """HiGHS with another pool, or with the first point again and again."""

    def __init__(self, change: Callable[[Any], Any], compiled: Any, **words: Any) -> None:
        self.change, self.inner = change, HighsSession(compiled, **words)
        self.version = self.inner.version

    def solve(self, **words: Any) -> Any:
        return self.change(self.inner.solve(**words))


def as_highs(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any], **capabilities: Any) -> None:
    def session(_needed: Any) -> Any:
        return lambda compiled, **words: Deceptive(change, compiled, **words)

    fake = replace(registry.SOLVERS["highs"], session=session, **capabilities)
    monkeypatch.setattr(registry, "SOLVERS", {**registry.SOLVERS, "highs": fake})


def test_a_native_pool_is_believed_if_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    m = program(1)
    best = solve(m, "highs", pool=4)
    runs = []

    def enumerates(outcome: Any) -> Any:
        runs.append(1)
        return replace(outcome, pool=tuple(s.x for s in best.solutions))

    as_highs(monkeypatch, enumerates, pool=True)
    result = solve(m, "highs", pool=4)
    assert (result.status, len(runs)) == (Status.OPTIMAL, 1)
    assert [s.objective for s in result.solutions] == [s.objective for s in best.solutions]


@pytest.mark.parametrize("mixed", [False, True])
def test_a_native_pool_of_duplicates_is_completed_by_rows(monkeypatch: pytest.MonkeyPatch, mixed: bool) -> None:
    """The solver met the worst points, too: there are enough, but not the best."""
    m = program(1, mixed=mixed)
    values = ranked(m)
    worst = [np.append(np.array(point, dtype=float), np.zeros(2 * mixed)) for _, point in values[-4:]]

    def repeats(outcome: Any) -> Any:
        if outcome.x is None or len(outcome.x) > len(worst[0]):
            return outcome
        met = tuple((0.0, 0.0, x) for x in worst)
        return replace(outcome, pool=(outcome.x,) * 4, incumbents=met)

    as_highs(monkeypatch, repeats, pool=True)
    result = solve(m, "highs", pool=4)
    assert result.status is Status.OPTIMAL
    assert [s.objective for s in result.solutions] == pytest.approx([value for value, _ in values[:4]], abs=1e-6)


def test_a_point_of_a_pool_that_breaks_a_row_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    m = program(1)
    m.value.sense = pyo.maximize
    wrong = np.array([high for _, high in BOUNDS], dtype=float)
    m.cap = pyo.Constraint(expr=sum(m.x.values()) <= sum(wrong) - 1)
    expected = [value for value, _ in ranked(m)[:3]]
    as_highs(
        monkeypatch, lambda o: replace(o, pool=(np.append(wrong, np.zeros(len(o.x) - 5)),)) if o.x is not None else o
    )
    for distinct in ("decisions", "incumbents"):
        result = solve(m, "highs", pool=3, distinct=distinct)
        assert tuple(wrong) not in {integers(s, m) for s in result.solutions}
    assert [s.objective for s in solve(m, "highs", pool=3).solutions] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("distinct", ["decisions", "support"])
def test_a_solver_that_repeats_itself_is_stopped(monkeypatch: pytest.MonkeyPatch, distinct: str) -> None:
    """Of a million, one more or less is within a solver's tolerance."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(4), domain=pyo.Integers, bounds=(0, 10**6))
    m.value = pyo.Objective(expr=sum((k + 1) * m.x[k] for k in m.x), sense=pyo.maximize)
    first: list[Any] = []

    def repeats(outcome: Any) -> Any:
        first.append(replace(outcome, pool=(), incumbents=()))
        x = np.append(first[0].x, np.zeros(outcome.x.size - first[0].x.size))
        return replace(first[0], x=x)

    as_highs(monkeypatch, repeats)
    result = solve(m, "highs", pool=4, distinct=Support(m.x) if distinct == "decisions" else Support([m.x[0], m.x[3]]))
    assert len(first) == 3  # the third was asked to be exact
    assert (result.status, result.complete, len(result.solutions)) == (Status.FEASIBLE, False, 1)
    assert "earlier solution again" in result.message


def test_a_false_proof_of_emptiness_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    m = program(1)
    others = tuple(s.x for s in solve(m, "highs", pool=4).solutions)
    runs: list[Any] = []

    def lies(outcome: Any) -> Any:
        runs.append(outcome)
        if len(runs) == 1:
            return replace(outcome, pool=others)
        return replace(outcome, status=Status.INFEASIBLE, x=None, pool=(), incumbents=())

    as_highs(monkeypatch, lies)
    result = solve(m, "highs", pool=3)
    assert (result.status, len(result.solutions)) == (Status.FEASIBLE, 3)
    assert "of which it gave a point" in result.message


def test_a_weaker_bound_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run proved the best; that a later one is cut short does not change it."""
    m = program(1)
    runs: list[Any] = []

    def cut_short(outcome: Any) -> Any:
        runs.append(outcome)
        if len(runs) == 1:
            return replace(outcome, pool=(), incumbents=())
        return replace(
            outcome, status=Status.TIME_LIMIT, x=None, bound=1e9, message="Cut short.", pool=(), incumbents=()
        )

    as_highs(monkeypatch, cut_short)
    result = solve(m, "highs", pool=3)
    assert (result.status, result.complete, len(result.solutions)) == (Status.FEASIBLE, False, 1)
    assert result.message == "Cut short. 1 of 1 solutions are proved."
    assert result.gap is not None
    assert result.gap <= 1e-6


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("miss", "gap", "proved"), [(0.5e-6, 1e-6, 3), (1e-5, 1e-6, 2), (5e-4, 1e-6, 2), (0.0, 0.0, 3), (1e-12, 0.0, 2)]
)
def test_what_is_proved_ends_where_the_gap_ends(
    monkeypatch: pytest.MonkeyPatch, seed: int, miss: float, gap: float, proved: int
) -> None:
    """The three best are known, and of all others it is proved that none beats the third by more than a little."""
    m = program(seed)
    sense = compile_model(m).sense
    best = solve(m, "highs", pool=3)
    third = best.solutions[2].objective
    runs: list[Any] = []

    def cut_short(outcome: Any) -> Any:
        runs.append(outcome)
        if len(runs) == 1:
            return replace(outcome, pool=tuple(s.x for s in best.solutions), incumbents=())
        bound = third - sense * miss * abs(third)
        return replace(
            outcome, status=Status.TIME_LIMIT, x=None, bound=bound, message="Cut short.", pool=(), incumbents=()
        )

    as_highs(monkeypatch, cut_short)
    result = solve(m, "highs", pool=3, relative_gap=gap)
    assert [s.objective for s in result.solutions] == [s.objective for s in best.solutions]
    if proved == 3:
        assert result.status is Status.OPTIMAL
    else:
        assert result.status is Status.FEASIBLE
        assert result.message == f"Cut short. {proved} of 3 solutions are proved."


@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_a_native_pool_of_poor_continuous_parts_is_no_ranking(monkeypatch: pytest.MonkeyPatch, unit: float) -> None:
    """Of three choices it gives the first and the last, the last with y at .5: the second is better, and missing."""
    m = pyo.ConcreteModel()
    m.z = pyo.Var(range(3), domain=pyo.Binary)
    m.y = pyo.Var(bounds=(0, 1))
    m.one = pyo.Constraint(expr=sum(m.z.values()) == 1)
    least = 1e-3 if unit == 1.0 else 1e-2
    m.cost = pyo.Objective(expr=unit * (10 + least * m.z[1] + 2 * least * m.z[2] + 10 * least * m.y))
    columns = [var.name for var in compile_model(m).columns]
    chosen = [{"z[0]": 1.0}, {"z[2]": 1.0, "y": 0.5}]
    pool = tuple(np.array([point.get(name, 0.0) for name in columns]) for point in chosen)
    runs: list[Any] = []

    def enumerates(outcome: Any) -> Any:
        runs.append(outcome)
        return replace(outcome, pool=pool) if len(runs) == 1 else outcome

    as_highs(monkeypatch, enumerates, pool=True)
    result = solve(m, "highs", pool=2)
    assert result.status is Status.OPTIMAL
    assert [s.objective for s in result.solutions] == pytest.approx([10.0 * unit, (10.0 + least) * unit], rel=1e-9)


def test_where_the_time_ends_before_the_continuous_parts_are_best_nothing_is_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The best four are met in one run with continuous parts at 0; no time is left to find better ones."""
    m = program(2, mixed=True)
    compiled = compile_model(m)
    points = tuple(s.x * compiled.integer for s in solve(m, "highs", pool=4).solutions)

    def rough(outcome: Any) -> Any:
        return replace(outcome, pool=points, incumbents=())

    as_highs(monkeypatch, rough)
    monkeypatch.setattr(Runner, "why_stop", property(lambda _: "The time limit ended the search."))
    result = solve(m, "highs", pool=4)
    assert (result.status, len(result.solutions)) == (Status.FEASIBLE, 4)
    assert result.message == "The time limit ended the search. 0 of 4 solutions are proved."


def test_a_gap_of_0_is_reached_where_bounds_are_exact() -> None:
    m = program(2, ties=True)
    expected = [value for value, _ in ranked(m)[:3]]
    result = solve(m, "highs", pool=3, relative_gap=0.0)
    assert result.status is Status.OPTIMAL
    assert [s.objective for s in result.solutions] == pytest.approx(expected)


@pytest.mark.parametrize("miss", [1e-4, 1e-3])
def test_a_point_of_a_pool_that_breaks_a_row_by_a_little_is_left_out(
    monkeypatch: pytest.MonkeyPatch, miss: float
) -> None:
    m = pyo.ConcreteModel()
    m.z = pyo.Var(range(3), domain=pyo.Binary)
    m.cap = pyo.Constraint(expr=sum(m.z.values()) <= 2 - miss)
    m.value = pyo.Objective(expr=sum((k + 1) * m.z[k] for k in m.z), sense=pyo.maximize)
    pair = np.array([float(var.name != "z[0]") for var in compile_model(m).columns])
    as_highs(monkeypatch, lambda o: o if o.x is None else replace(o, pool=(np.resize(pair, o.x.size),)))
    result = solve(m, "highs", pool=3)
    assert [s.objective for s in result.solutions] == pytest.approx([3.0, 2.0, 1.0])
    assert result.status is Status.OPTIMAL


def test_a_licence_that_the_rows_outgrow_keeps_what_is_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []

    def session(_needed: Any) -> Any:
        def opens(compiled: Any, **words: Any) -> Any:
            opened.append(compiled)
            if len(opened) > 2:
                raise MissingLicenceError("Gurobi needs a larger licence.")
            return HighsSession(compiled, **words)

        return opens

    fake = replace(registry.SOLVERS["highs"], session=session)
    monkeypatch.setattr(registry, "SOLVERS", {**registry.SOLVERS, "highs": fake})
    m = program(1)
    result = solve(m, "highs", pool=4, distinct=Support([m.x[0], m.x[3]]))
    assert (result.status, result.complete, len(result.solutions)) == (Status.FEASIBLE, False, 2)
    assert result.message == "Gurobi needs a larger licence. 2 of 2 solutions are proved."


# -- limits ------------------------------------------------------------------------------------------------------------
def test_a_time_limit_bounds_the_whole_call(hard: Any) -> None:
    result = solve(hard, "highs", pool=10, time_limit_s=1.0)
    assert result.status in {Status.FEASIBLE, Status.TIME_LIMIT}
    assert sum(result.timings.values()) < 60
    assert "of" in result.message
    if result.status is Status.FEASIBLE:
        assert result.complete == (len(result.solutions) == 10)
        assert "solutions are proved" in result.message
        assert result.gap is not None
        assert result.gap > 1e-6


def test_ctrl_c_keeps_what_is_in_hand(hard: Any) -> None:
    result = solve(hard, "highs", pool=10, on_incumbent=lambda _s, _o: os.kill(os.getpid(), signal.SIGINT))
    assert result.status is Status.INTERRUPTED
    assert result.solutions


def test_the_later_runs_have_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    solve_highs = HighsSession.solve

    def noted(self: Any, **words: Any) -> Any:
        limits.append(words["time_limit_s"])
        return solve_highs(self, **words)

    monkeypatch.setattr(HighsSession, "solve", noted)
    m = program(3)
    solve(m, "highs", pool=4, distinct=Support(m.x[0]), time_limit_s=100.0)
    assert len(limits) >= 2
    assert 100.0 > limits[0] > limits[1] > limits[-1] - 1e-9


# -- misuse ------------------------------------------------------------------------------------------------------------
def test_misuse_is_named_before_work_starts() -> None:
    m = program(0, mixed=True)
    m.free = pyo.Var(domain=pyo.NonNegativeIntegers)
    m.loose = pyo.Var()
    m.idle = pyo.Var(domain=pyo.Binary)
    m.more = pyo.Constraint(expr=m.free + m.loose + m.x[0] <= 4)
    with pytest.raises(UnboundedFeatureError, match="'free'"):
        solve(m, pool=2)
    with pytest.raises(UnboundedFeatureError, match="'loose'"):
        solve(m, pool=2, distinct=Apart(m.loose, 1.0))
    with pytest.raises(InvalidValueError, match=r"'y\[0\]' is continuous"):
        solve(m, pool=2, distinct=Support(m.y))
    with pytest.raises(InvalidValueError, match="'idle' is in no active row"):
        solve(m, pool=2, distinct=Support(m.idle))
    with pytest.raises(UnknownNameError, match=r"Did you mean 'decisions'.*Support"):
        solve(m, pool=2, distinct="decision")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="type int"):
        solve(m, pool=2, distinct=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="Vars"):
        solve(m, pool=2, distinct=Support("x"))
    with pytest.raises(InvalidTypeError, match="rows"):
        solve(m, pool=2, distinct=Support(m.rows))
    with pytest.raises(InvalidValueError, match="pool is 0"):
        solve(m, pool=0)
    with pytest.raises(InvalidValueError, match="least is -1"):
        Apart(m.x, -1.0)
    with pytest.raises(UnknownNameError, match="norm is 'l7'"):
        Apart(m.x, 1.0, norm="l7")  # type: ignore[arg-type]
    assert all(v.value is None for v in m.component_data_objects(pyo.Var))
    assert solve(m, "highs", pool=2, distinct="incumbents").status is Status.OPTIMAL


def test_an_apart_that_the_solver_cannot_state_is_refused_first() -> None:
    """Distances need binaries, which Clarabel has not; nothing is solved before that is said."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 2))
    m.cost = pyo.Objective(expr=m.x)
    with pytest.raises(ValueError, match="MILP"):
        solve(m, "clarabel", pool=2, distinct=Apart(m.x, 1.0))
    assert m.x.value is None


# -- counting ----------------------------------------------------------------------------------------------------------
def test_counting_is_enumeration() -> None:
    pytest.importorskip("pyscipopt")
    for seed in range(3):
        m = program(seed)
        assert count(m) == (len(ranked(m)), True)
    assert count(m, limit=2).complete is False
    with pytest.raises(ValueError, match=r"y\[.\]' is continuous"):
        count(program(0, mixed=True))


def test_counting_needs_scip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingLibraryError, match="pyscipopt"):
        count(program(0))
