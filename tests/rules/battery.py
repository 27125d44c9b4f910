"""What every rule goes through, on the small lattice: none of it names a rule.

The independent half of a rule (:mod:`rules.found`) says which points keep it; the program, the rule's own check, the
files and the answers must all say the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import enumeration as by_hand
import numpy as np
import problems
import pyomo.environ as pyo
import pytest
from numpy.typing import NDArray
from rules.found import by_name, charged, column, half, kept, penalties
from rules.small import FACTUAL, MODELS, PEOPLE, POINTS, ROW, SPACE

import ceopt
from ceopt.formulations import Factual, impose, l1
from ceopt.formulations.constraints.rule import charged_by
from ceopt.formulations.costs import parse_cost
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.recourse_program import recourse_program
from ceopt.formulations.targets import parse_target
from ceopt.solvers import Status, compile_model, solve, write
from ceopt.solvers import read as read_program
from ceopt.solvers.registry import choose

Floats = NDArray[np.float64]


# ---- by enumeration --------------------------------------------------------------------------------------------------
def prices(rules: Sequence[Any], price: by_hand.Cost, points: Floats = POINTS) -> Floats:
    """Return the cost of each point under rules that may charge something else, or more."""
    moves = by_hand.Moves(SPACE, charged(rules, SPACE, FACTUAL, points) - FACTUAL)
    return np.broadcast_to(price(moves), len(points)) + penalties(rules, SPACE, FACTUAL, points)


def valid(model: Any, target: Any) -> NDArray[np.bool_]:
    """Return which points the model puts in the target; none is near a tie."""
    slack = problems.slack(model, target, model.score(by_hand.identity(SPACE, POINTS)))
    assert np.abs(slack).min() > 1e-3
    return np.asarray(slack > 0.0)


def least(costs: Floats, allowed: NDArray[np.bool_]) -> float | None:
    return float(costs[allowed].min()) if allowed.any() else None


def agrees(result: Any, best: float | None) -> bool:
    """Whether a solver's result is the optimum of enumeration, or the proof that there is none."""
    if best is None:
        return result.status is Status.INFEASIBLE
    return result.status is Status.OPTIMAL and problems.same(result.objective, best)


# ---- the points ------------------------------------------------------------------------------------------------------
def pinned(rules: Sequence[Any]) -> tuple[Any, Any]:
    """Return a program whose person is where its data columns ``at`` say, and those columns."""
    model = pyo.ConcreteModel()
    model.x = x = Factual(SPACE, ROW)
    held = {f.name: x.raw[f.name] for f in SPACE if f.kind != "categorical"}
    held |= {f"{f.name} {k}": x.is_level[f.name, f.levels[k]] for f, k in levels()}
    model.at = pyo.Var(list(held), initialize=0.0)
    model.pin = pyo.Constraint(list(held), rule=lambda m, key: held[key] == m.at[key])
    for k, rule in enumerate(rules):
        model.add_component(f"rule_{k}", impose(rule, x))
    return model, model.at


def levels() -> list[tuple[Any, int]]:
    return [(f, k) for f in SPACE if f.kind == "categorical" for k in range(len(f.levels))]


def pins(point: Floats) -> dict[str, float]:
    values = by_name(SPACE, point)
    numbers = {f.name: values[f.name] for f in SPACE if f.kind != "categorical"}
    return numbers | {f"{f.name} {k}": float(values[f.name] == k) for f, k in levels()}


def admitted(rules: Sequence[Any]) -> NDArray[np.bool_]:
    """Return at which points the rules' rows can be met, one solve each."""
    model, at = pinned(rules)
    compiled = compile_model(model, data=[at])
    session = choose("auto", compiled).session(compiled.problem_class)(compiled)
    found = []
    for point in POINTS:
        compiled.set_data(at, pins(point))
        status = session.solve().status
        assert status in {Status.OPTIMAL, Status.INFEASIBLE}, (status, point)
        found.append(status is Status.OPTIMAL)
    return np.array(found)


def check_points(rule: Any) -> None:
    """Rows, the rule's own check and the independent one accept the same points, and not all or none of them."""
    rule.check(SPACE)
    expected = kept([rule], SPACE, FACTUAL, POINTS)
    assert 0 < expected.sum() < len(POINTS), f"{rule!r}: an example must be kept by some points and broken by others"
    home = by_name(SPACE, FACTUAL)
    own = np.array([rule.violation(SPACE, home, by_name(SPACE, point)) for point in POINTS])
    assert (own >= 0.0).all()
    same(rule, "violation", own <= 0.0, expected)
    same(rule, "keeps", rule.keeps(SPACE, home, POINTS), expected)
    same(rule, "rows", admitted([rule]), expected)
    if not rule.needs_factual:
        alone = np.array([rule.violation(SPACE, None, by_name(SPACE, point)) for point in POINTS])
        same(rule, "violation without a factual", alone <= 0.0, expected)


def same(rule: Any, what: str, found: NDArray[np.bool_], expected: NDArray[np.bool_]) -> None:
    wrong = np.flatnonzero(found != expected)
    if len(wrong):
        where = by_name(SPACE, POINTS[wrong[0]])
        raise AssertionError(
            f"{what} of {rule!r}: {len(wrong)} of {len(POINTS)} points, such as {where}, where the independent check "
            f"says {'kept' if expected[wrong[0]] else 'broken'}"
        )


# ---- the optimum -----------------------------------------------------------------------------------------------------
def question(rules: Sequence[Any], name: str, formulation: str = "auto", cost: Any = "l1") -> Any:
    """Return the program that asks for the least change under rules."""
    model, target = MODELS[name]
    predictor = read(model, SPACE)
    return recourse_program(
        predictor,
        ROW,
        target=parse_target(target, predictor.labels),
        cost=charged_by(parse_cost(cost), rules, SPACE),
        rules=rules,
        formulation=formulation,
    )


def check_optimum(rules: Sequence[Any], name: str, formulation: str = "auto") -> None:
    """The program's optimum is that of enumeration, as is the proof that there is none; its point keeps the rules."""
    best = least(prices(rules, by_hand.l1()), valid(*MODELS[name]) & kept(rules, SPACE, FACTUAL, POINTS))
    program = question(rules, name, formulation)
    result = solve(program.model)
    assert agrees(result, best), f"{rules!r}, {name}, {formulation}: {result!r}, but enumeration says {best}"
    if best is not None:
        decoded = program.x.decoded()
        point = np.array([[decoded[name] for name in SPACE.names]])
        assert kept(rules, SPACE, FACTUAL, point).all(), point
        assert problems.same(float(prices(rules, by_hand.l1(), point)[0]), best)


def check_files(rule: Any, name: str, folder: Any) -> None:
    """The program written and read again has the same optimum."""
    best = least(prices([rule], by_hand.l1()), valid(*MODELS[name]) & kept([rule], SPACE, FACTUAL, POINTS))
    program = question([rule], name)
    for suffix in (".lp", ".mps"):
        write(program.model, folder / f"program{suffix}")
        result = solve(read_program(folder / f"program{suffix}"))
        assert agrees(result, best), f"{rule!r} from {suffix}: {result!r}, but enumeration says {best}"


# ---- in a model of the user's own ------------------------------------------------------------------------------------
@contextmanager
def no_warning() -> Iterator[None]:
    """Fail where Pyomo warns, as when a component silently takes the place of another of its name."""
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("pyomo")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
    assert not told, told[0]


def check_own_model(rule: Any) -> None:
    """Beside blocks of the user's own, twice on one person and once on another, with rows and gains that go across."""
    model = pyo.ConcreteModel()
    model.x, model.y = Factual(SPACE, ROW), Factual(SPACE, ROW)
    model.hours = pyo.Var(bounds=(0.0, 20.0))
    with no_warning():
        model.first, model.again, model.other = impose(rule, model.x), impose(rule, model.x), impose(rule, model.y)
    model.work = pyo.Constraint(expr=model.hours + 4.0 * model.x.raw["wage"] + model.x.raw["age"] >= 5.0)
    model.at_least = pyo.Constraint(expr=model.y.raw["age"] + model.y.raw["owner"] >= 3.0)
    gain = 2.5 * model.x.raw["owner"] + 1.75 * model.y.is_level["job", 20] - 2.0 * model.y.raw["size"]
    surcharge = sum(model.x.surcharges) + sum(model.y.surcharges)
    model.cost = pyo.Objective(expr=l1(model.x) + 0.25 * model.hours + l1(model.y) + surcharge - gain)
    result = solve(model)

    allowed = kept([rule], SPACE, FACTUAL, POINTS)
    age, wage, owner, size = (column(SPACE, POINTS, name) for name in ("age", "wage", "owner", "size"))
    clerk = column(SPACE, POINTS, "job") == SPACE["job"].rank(20)
    one = prices([rule], by_hand.l1()) + 0.25 * np.maximum(5.0 - 4.0 * wage - age, 0.0) - 2.5 * owner
    one += penalties([rule], SPACE, FACTUAL, POINTS)  # imposed twice, added twice
    two = prices([rule], by_hand.l1()) - 1.75 * clerk + 2.0 * size
    first, second = least(one, allowed), least(two, allowed & (age + owner >= 3.0))
    best = None if first is None or second is None else first + second
    assert agrees(result, best), f"{rule!r}: {result!r}, but enumeration says {best}"


# ---- wider -----------------------------------------------------------------------------------------------------------
def check_widened(rule: Any) -> None:
    """An elastic rule grows by just as much as a point is beyond it, and then admits it."""
    some, home = POINTS[::7], by_name(SPACE, FACTUAL)
    amounts = half(rule).excess(rule, SPACE, FACTUAL, some)
    model, at = pinned([])
    model.rule = pyo.Block(concrete=True)
    model.width = pyo.Objective(expr=rule.relax(model.rule, model.x))
    compiled = compile_model(model, data=[at])
    session = choose("auto", compiled).session(compiled.problem_class)(compiled)
    for raw, amount in zip(some, amounts, strict=True):
        compiled.set_data(at, pins(raw))
        outcome, point = session.solve(), by_name(SPACE, raw)
        assert outcome.status is Status.OPTIMAL, (rule, point)
        assert outcome.objective == pytest.approx(amount, abs=1e-5), (rule, point)
        own = rule.violation(SPACE, home, point)
        assert own == pytest.approx(amount, abs=1e-6), (rule, point)
        assert own == 0.0 or rule.widened(own).violation(SPACE, home, point) <= 0.0, (rule, point)
    wider = rule.widened(float(amounts[amounts > 0.0].min()))
    left = np.maximum(amounts - amounts[amounts > 0.0].min(), 0.0)
    assert half(rule).excess(wider, SPACE, FACTUAL, some) == pytest.approx(left, abs=1e-6), rule


# ---- answers ---------------------------------------------------------------------------------------------------------
def check_answers(rule: Any, name: str) -> None:
    """``explain`` returns the optimum of enumeration, verified and kept; ``verify`` judges every point alike."""
    model, target = MODELS[name]
    allowed = kept([rule], SPACE, FACTUAL, POINTS)
    best = least(prices([rule], by_hand.l1()), valid(model, target) & allowed)
    answers = ceopt.explain(model, ROW, SPACE, target=target, constraints=[rule], data=PEOPLE)
    if best is None:
        assert answers.status == "infeasible", f"{rule!r}: {answers!r}, but enumeration says there is none"
    else:
        assert answers.status == "optimal", f"{rule!r}: {answers!r}, but enumeration says {best}"
        answer = answers[0]
        point = np.array([[SPACE[key].to_coordinate(value) for key, value in answer.values.items()]])
        assert problems.same(answer.cost, best), f"{rule!r}: {answer.cost}, but enumeration says {best}"
        assert answer.verified
        assert kept([rule], SPACE, FACTUAL, point).all(), point

    sample = np.random.default_rng(0).choice(len(POINTS), 25, replace=False)
    frame = SPACE.frame([by_name(SPACE, POINTS[k]) for k in sample])
    report = ceopt.verify(frame, model, SPACE, target=target, factual=ROW, constraints=[rule]).to_frame()
    for k, broken in zip(sample, report["broken"], strict=True):
        others = [text for text in broken if not text.startswith("target:")]
        assert (not others) == allowed[k], (by_name(SPACE, POINTS[k]), broken)
