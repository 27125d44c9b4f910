"""A session answers after each change as a fresh solve does, and compiles and hands over only what is new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from ceopt.solvers import Status, incremental, session, solve
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.highs import HighsSession
from ceopt.solvers.registry import SOLVERS

SOLVER_NAMES = ("highs", "scip", "gurobi")


@pytest.fixture(params=SOLVER_NAMES)
def solver(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not SOLVERS[name].is_licensed:
        pytest.skip(f"{name} is not here")
    return name


def program(kind: str, seed: int) -> Any:
    """Eight Vars, five rows; kind is LP, MILP, QP or MIQP."""
    draw = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(8), bounds=(0, 6), domain=pyo.Integers if kind.startswith("MI") else pyo.Reals)
    m.rows = pyo.ConstraintList()
    for _ in range(5):
        m.rows.add(sum(float(a) * m.x[j] for j, a in enumerate(draw.uniform(-1, 3, 8))) <= 20)
    cost = sum(float(c) * m.x[j] for j, c in enumerate(draw.uniform(-4, 1, 8)))
    if kind.endswith("QP"):
        cost += sum(0.3 * (m.x[j] - 2.2) ** 2 for j in range(8))
    m.cost = pyo.Objective(expr=cost)
    m.later = pyo.ConstraintList()
    return m


def agree(opened: Any, m: Any, solver: str) -> Any:
    result = opened.solve()
    fresh = solve(m, solver)
    assert result.status is fresh.status
    if fresh.objective is not None:
        assert result.objective == pytest.approx(fresh.objective, rel=2e-6, abs=1e-6)
        assert result.bound == pytest.approx(fresh.bound, rel=2e-6, abs=1e-6)
    return result


@pytest.mark.parametrize("kind", ["LP", "MILP", "QP", "MIQP"])
@pytest.mark.parametrize("seed", range(3))
def test_after_each_change_it_answers_as_a_fresh_solve(solver: str, kind: str, seed: int):
    draw = np.random.default_rng(100 + seed)
    m = program(kind, seed)
    with session(m, solver) as opened:
        before = agree(opened, m, solver)
        kept = dict(before.solutions[0])
        for _ in range(4):
            weights = draw.uniform(0, 1, 8)
            least = 0.9 * sum(w * m.x[j].value for j, w in enumerate(weights))
            opened.add(m.later.add(sum(float(w) * m.x[j] for j, w in enumerate(weights)) <= least))
            agree(opened, m, solver)
        opened.set(bounds=pyo.ComponentMap([(m.x[0], (1, 2)), (m.x[1], (0, 3))]))
        agree(opened, m, solver)
        opened.set(objective=m.cost.expr + 3 * m.x[2])
        agree(opened, m, solver)
        m.extra = pyo.Var(bounds=(0, 5))
        opened.add([m.later.add(m.extra + m.x[3] >= 2), m.later.add(m.extra <= 4)])
        agree(opened, m, solver)
        m.gain = pyo.Objective(expr=m.x[0] - m.extra, sense=pyo.maximize)
        m.gain.deactivate()
        opened.set(objective=m.gain)
        assert not m.cost.active
        agree(opened, m, solver)
        opened.add(m.later.add(m.x[0] >= 3))
        assert agree(opened, m, solver).status is Status.INFEASIBLE
        opened.set(bounds=pyo.ComponentMap([(m.x[0], (1, 6))]))
        assert m.x[0].ub == 6
        agree(opened, m, solver)
    assert dict(before.solutions[0]) == kept
    before.solutions[0].load()
    assert [m.x[j].value for j in range(8)] == [kept[f"x[{j}]"] for j in range(8)]


def test_a_curved_row_changes_the_class(solver: str):
    m = program("MILP", 1)
    with session(m, solver) as opened:
        agree(opened, m, solver)
        opened.add(m.later.add(sum((m.x[j] - 1) ** 2 for j in range(8)) <= 9))
        agree(opened, m, solver)
        opened.add(m.later.add(m.x[0] + m.x[1] >= 2))
        agree(opened, m, solver)


def test_rows_of_extreme_numbers_are_guarded_as_in_solve(solver: str):
    """The row is solved in other units, whose big-M the solver's own tolerance would let pass."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1e8))
    m.y = pyo.Var(domain=pyo.Binary)
    m.cost = pyo.Objective(expr=1e3 * m.y - m.x)
    m.later = pyo.ConstraintList()
    with session(m, solver) as opened:
        agree(opened, m, solver)
        opened.add(m.later.add(m.x <= 1e10 * m.y))
        agree(opened, m, solver)
        opened.add(m.later.add(m.x <= 17 + 1e9 * m.y))
        agree(opened, m, solver)


def test_nothing_is_compiled_or_handed_over_twice(monkeypatch: pytest.MonkeyPatch):
    compiled = []
    compile_model = incremental.compile_model
    monkeypatch.setattr(incremental, "compile_model", lambda model: compiled.append(1) or compile_model(model))
    passed = []
    hand_over = HighsSession._pass_model
    monkeypatch.setattr(
        HighsSession, "_pass_model", lambda self, scale=None: passed.append(1) or hand_over(self, scale)
    )
    m = program("LP", 2)
    with session(m, "highs") as opened:
        opened.solve()
        for j in range(6):
            opened.add(m.later.add(m.x[j] + m.x[j + 1] <= 5 - j / 2))
            assert opened.solve().status is Status.OPTIMAL
        assert (len(compiled), len(passed)) == (1, 1)
        assert opened.solver == "highs"


def test_an_lp_goes_on_from_its_basis():
    m = program("LP", 2)
    with session(m, "highs") as opened:
        opened.solve()
        inner = opened._opened._session._highs
        steps = inner.getInfo().simplex_iteration_count
        opened.add(m.later.add(sum(m.x.values()) <= 40))  # which is not tight
        opened.solve()
        assert inner.getInfo().simplex_iteration_count == 0 < steps


def test_a_limit_and_a_start_are_those_of_the_solve():
    m = program("MILP", 3)
    with session(m, "highs", time_limit_s=60.0, absolute_gap=100.0) as opened:
        assert opened.solve(time_limit_s=30.0).status is Status.OPTIMAL
        with pytest.raises(InvalidValueError, match=r"'x\[0\]' gets 9"):
            opened.solve(start=pyo.ComponentMap([(m.x[0], 9)]))
        with pytest.raises(InvalidValueError, match="time_limit_s"):
            opened.solve(time_limit_s=0.0)


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda s, m: s.add(m.rows[1]), InvalidValueError, r"'rows\[1\]' is in the program"),
        (lambda s, m: s.add(m.x[0] <= 1), InvalidTypeError, "add needs Constraints"),
        (lambda s, _: s.add(program("LP", 1).rows[1]), InvalidValueError, r"'rows\[1\]' is none"),
        (lambda s, _: s.set(bounds={"x": 1}), InvalidTypeError, "one is 'x'"),
        (lambda s, m: s.set(bounds=pyo.ComponentMap([(m.x[0], (3, 1))])), InvalidValueError, "gets \\(3, 1\\)"),
        (lambda s, m: s.set(bounds=pyo.ComponentMap([(m.x[0], 3)])), InvalidTypeError, "a pair"),
        (lambda s, m: s.set(bounds=pyo.ComponentMap([(m.x[0], (0, "a"))])), InvalidValueError, "numbers or None"),
        (lambda s, _: s.set(objective=program("LP", 1).cost), InvalidValueError, "Objective of the model"),
        (lambda s, _: (s.close(), s.close(), s.solve()), InvalidValueError, "it is closed"),
    ],
)
def test_misuse_is_named(ask: Any, error: type[Exception], message: str):
    m = program("LP", 0)
    with session(m, "highs") as opened, pytest.raises(error, match=message):
        ask(opened, m)


def test_who_keeps_no_program_is_refused_by_name():
    m = program("LP", 0)
    with pytest.raises(UnsupportedProblemError, match="solver is 'clarabel'. Use 'highs', 'scip', 'gurobi'"):
        session(m, "clarabel")
    with pytest.raises(UnknownNameError, match="highs"):
        session(m, "higs")
    m.curve = pyo.Constraint(expr=sum(m.x[j] ** 2 for j in range(8)) <= 9)
    assert session(m).solver in SOLVER_NAMES
    with session(m, "highs") as opened:
        m.bad = pyo.Constraint(expr=m.x[0] * m.x[1] >= 1 + m.x[2] * m.x[3])
        with pytest.raises(UnsupportedProblemError, match="highs"):
            opened.add(m.bad)
        with pytest.raises(InvalidValueError, match="closed"):
            opened.solve()


def test_duals_are_those_of_the_program_as_it_is():
    m = program("LP", 4)
    m.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    with session(m, "highs") as opened:
        opened.solve()
        cut = m.later.add(sum(m.x.values()) <= 0.5 * sum(var.value for var in m.x.values()))
        opened.add(cut)
        opened.solve()
        assert m.dual[cut] < -1e-6


@pytest.mark.parametrize("kind", [1, 2])
def test_a_set_that_is_added_holds(kind: int, solver: str) -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(4), bounds=(0, 3))
    m.gain = pyo.Objective(expr=sum((k + 1) * m.x[k] for k in m.x) - 3 * m.x[2], sense=pyo.maximize)
    with session(m, solver) as opened:
        assert opened.solve().objective == pytest.approx(3 * (1 + 2 + 0 + 4))
        m.few = pyo.SOSConstraint(var=m.x, sos=kind)
        opened.add(m.few)
        best = 12.0  # x[3] alone, or with its neighbour x[2], which gains nothing
        result = opened.solve()
        assert result.objective == pytest.approx(best)
        assert str(result.status) == "optimal"
        with pytest.raises(InvalidValueError, match="add needs new Constraints, but 'few' is in the program"):
            opened.add(m.few)
    with session(m, solver) as opened, pytest.raises(InvalidValueError, match="'few' is in the program"):
        opened.add(m.few)


def by_hand(m: Any, what: str) -> None:
    {
        "fixed": lambda: m.x[1].fix(2),
        "bound": lambda: m.x[1].setub(1),
        "crossed": lambda: (m.x[1].setlb(5), m.x[1].setub(1)),
        "domain": lambda: setattr(m.x[1], "domain", pyo.Reals),
        "row": m.rows[1].deactivate,
        "sense": lambda: setattr(m.cost, "sense", pyo.maximize),
        "objective": lambda: (m.cost.deactivate(), m.add_component("other", pyo.Objective(expr=m.x[0]))),
    }[what]()


@pytest.mark.parametrize("what", ["fixed", "bound", "crossed", "domain", "row", "sense", "objective"])
def test_a_change_by_hand_is_refused_by_name(solver: str, what: str):
    m = program("MILP", 0)
    with session(m, solver) as opened:
        opened.solve()
        by_hand(m, what)
        name = {"row": "rows\\[1\\]", "sense": "cost", "objective": "cost"}.get(what, "x\\[1\\]")
        with pytest.raises(InvalidValueError, match=name):
            opened.solve()


@pytest.mark.parametrize("what", ["fixed", "bound", "domain"])
def test_update_takes_over_what_a_var_is_now_and_was_again(solver: str, what: str):
    m = program("MILP", 1)
    with session(m, solver) as opened:
        first = opened.solve()
        by_hand(m, what)
        opened.update(m.x[1])
        agree(opened, m, solver)
        assert not m.x[1].fixed or m.x[1].value == 2
        m.x[1].unfix()
        m.x[1].setub(6)
        m.x[1].domain = pyo.Integers
        opened.update(m.x[1])
        assert agree(opened, m, solver).objective == pytest.approx(first.objective)


def test_the_same_bound_set_again_is_no_change(solver: str):
    m = program("MILP", 0)
    with session(m, solver) as opened:
        first = opened.solve()
        m.x[1].setub(float("6"))
        assert opened.solve().objective == pytest.approx(first.objective)


def test_a_whole_var_fixed_between_two_is_refused(solver: str):
    m = program("MILP", 0)
    with session(m, solver) as opened:
        m.x[1].fix(1.5)
        with pytest.raises(InvalidValueError, match="a whole number for a fixed Var"):
            opened.update(m.x[1])


def test_a_search_asks_at_candidates_and_takes_rows(solver: str) -> None:
    m = program("MILP", 0)
    with session(m, solver) as opened:
        if solver == "highs":
            assert not opened.takes_lazy_rows
            with pytest.raises(UnsupportedProblemError, match="Gurobi or SCIP, integers and linear rows for lazy="):
                opened.solve(lazy=lambda _: False)
            return
        whole = opened.solve().objective

        def at_most(limit: int) -> Any:
            def lazy(_solution: Any) -> bool:
                if sum(m.x[j].value for j in m.x) > limit + 0.5:
                    return not opened.add_lazily(m.later.add(pyo.quicksum(m.x.values()) <= limit))
                return False

            return lazy

        found = opened.solve(lazy=at_most(9))
        assert found.objective > whole
        assert agree(opened, m, solver).objective == pytest.approx(found.objective)
        ended = opened.solve(lazy=lambda _: True)
        assert (ended.status, ended.solutions) == (Status.INTERRUPTED, ())
        assert "asked to" in ended.message
        opened.set(objective=m.x[0] ** 2 + m.x[1])
        assert not opened.takes_lazy_rows
    with session(program("LP", 0), solver) as opened:
        assert not opened.takes_lazy_rows


@pytest.mark.parametrize(
    "call",
    [
        lambda opened, _m: opened.solve(),
        lambda opened, m: opened.add(m.later.add(m.x[0] <= 1)),
        lambda opened, m: opened.set(bounds=pyo.ComponentMap([(m.x[0], (0, 1))])),
        lambda opened, _m: opened.close(),
    ],
)
def test_nothing_else_is_asked_of_a_session_that_searches(call: Any):
    if not SOLVERS["scip"].is_licensed:
        pytest.skip("scip is not here")
    m = program("MILP", 0)
    with session(m, "scip") as opened:
        with pytest.raises(InvalidValueError, match="no other call during a search, but one is asking lazy"):
            opened.solve(lazy=lambda _: call(opened, m))
        with pytest.raises(InvalidValueError, match="a search that is asking lazy"):
            opened.add_lazily(m.later.add(m.x[0] <= 2))


def test_an_objective_that_is_no_expression_is_refused(solver: str):
    m = program("LP", 0)
    with session(m, solver) as opened:
        with pytest.raises(InvalidTypeError, match="an expression as objective, but it got 'x'"):
            opened.set(objective="x")
        assert agree(opened, m, solver).objective is not None
