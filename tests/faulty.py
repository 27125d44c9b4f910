"""Solvers that lie, fail or talk nonsense, each HiGHS behind a fault and under its own name; a program to ask them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ceopt.solvers import Outcome, ProblemClass, Status, compile_model
from ceopt.solvers.highs import HighsSession
from ceopt.solvers.registry import Solver, register, unregister
from ceopt.solvers.units import wide_columns


class DiedError(RuntimeError):
    """What a foreign library raises in the middle of a solve."""


def dies(_outcome: Outcome) -> Any:
    raise DiedError("out of tree")


def with_point(change: Callable[[Any], Any]) -> Callable[[Outcome], Outcome]:
    return lambda told: told if told.x is None else replace(told, x=change(told.x))


def with_bound(change: Callable[[float], Any]) -> Callable[[Outcome], Outcome]:
    return lambda told: told if told.bound is None else replace(told, bound=change(told.bound))


#: What becomes of an outcome of HiGHS. None of these may be believed; ``honest`` is.
FAULTS: dict[str, Callable[[Outcome], Any]] = {
    "infeasible": lambda _: Outcome(status=Status.INFEASIBLE),
    "unbounded": lambda _: Outcome(status=Status.UNBOUNDED),
    "raises": dies,
    "a dict": lambda _: {"status": "optimal"},
    "None": lambda _: None,
    "NaN": with_point(lambda x: np.full_like(x, np.nan)),
    "one NaN": with_point(lambda x: np.append(x[:-1], np.nan)),
    "infinite": with_point(lambda x: np.full_like(x, np.inf)),
    "too short": with_point(lambda x: x[:-1]),
    "a matrix": with_point(lambda x: x[:, None]),
    "text": with_point(lambda x: np.array(["x"] * len(x))),
    "point in error": lambda told: replace(told, status=Status.ERROR),
    "point of the infeasible": lambda told: replace(told, status=Status.INFEASIBLE),
    "no point": lambda _: Outcome(status=Status.OPTIMAL, bound=0.0),
    "bound above": with_bound(lambda bound: 1.5 * bound + 1.0),
    "bound NaN": with_bound(lambda _: float("nan")),
    "bound infinite": with_bound(lambda _: float("inf")),
    "bound text": with_bound(lambda _: "low"),
    "other objective": lambda told: told if told.x is None else replace(told, objective=told.objective / 2 - 1.0),
    "no status": lambda told: replace(told, status="done"),
    "zeros": with_point(np.zeros_like),
}


@contextmanager
def faulty(fault: Callable[[Outcome, Any], Any] | str, *, opens: bool = True) -> Iterator[str]:
    """Give the name of a solver that is HiGHS with a fault: by name, or a function of outcome and compiled program."""

    class Session:
        version = "0"

        def __init__(self, compiled: Any, **how: Any) -> None:
            if not opens:
                raise DiedError("no server")
            self.compiled, self.inner = compiled, HighsSession(compiled, **how)

        def solve(self, **asked: Any) -> Any:
            told = self.inner.solve(**asked)
            return FAULTS[fault](told) if isinstance(fault, str) else fault(told, self.compiled)

    classes = frozenset({ProblemClass.LP, ProblemClass.MILP, ProblemClass.QP})
    register(
        Solver(
            name="faulty", library="highspy", distribution="highspy", extra="", supports=classes,
            session=lambda _needed: Session, takes_start=True,
        )
    )  # fmt: skip
    try:
        yield "faulty"
    finally:
        unregister("faulty")


def wide_program() -> Any:
    """Return a program of least cost 0.5, by an integer of which one step is a billionth of what its row adds up."""
    m = pyo.ConcreteModel()
    m.income = pyo.Var(domain=pyo.Integers, bounds=(0, 10**9))
    m.ratio = pyo.Var(bounds=(-3, 3))
    m.score = pyo.Constraint(expr=9e-10 * m.income + m.ratio >= 1.45)
    m.cost = pyo.Objective(expr=1e-9 * m.income + 10 * m.ratio)
    assert wide_columns(compile_model(m)).any()
    return m
