"""Who is wrong, as benchmarks/quadratics.py tells it from outside; its programs, its rule and its page."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from ceopt.solvers import Outcome, ProblemClass, Status, compile_model, register, unregister
from ceopt.solvers.cones import soc


@pytest.fixture
def script(benchmarks: Any) -> Any:
    return importlib.import_module("quadratics")


@pytest.fixture
def program(script: Any) -> Any:
    """The point in whole numbers whose sum is at least 1.5 that is nearest to (0.4, 0.4): (1, 1)."""
    m = pyo.ConcreteModel()
    m.i = pyo.Var(domain=pyo.Integers, bounds=(-3, 3))
    m.j = pyo.Var(domain=pyo.Integers, bounds=(-3, 3))
    m.t = pyo.Var()
    m.far = pyo.Constraint(expr=m.i + m.j >= 1.5)
    m.near = pyo.Constraint(expr=soc(m.t, [m.i - 0.4, m.j - 0.4]) >= 0)
    m.cost = pyo.Objective(expr=m.t - 0.6)
    return script.Program(compile_model(m), {}, 1e-6)


def judged(script: Any, program: Any, change: Callable[[Outcome], Outcome]) -> dict[str, str]:
    """Return who is wrong where two ways say what is true, and the third what it is made to say."""
    true = script.solved(script.OWN, program, 10)
    assert true.objective == pytest.approx(2**0.5 * 0.6 - 0.6, rel=1e-6)
    found: dict[str, str] = script.judged(program, {script.OWN: true, script.GUARDED: true, script.BARE: change(true)})
    return found


def test_what_is_true_is_not_wrong(script: Any, program: Any) -> None:
    assert judged(script, program, lambda true: true) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda true: replace(true, bound=true.bound + 1e-3, status=Status.FEASIBLE), "bound 0.24952814, feasible"),
        (lambda _true: Outcome(status=Status.INFEASIBLE), "infeasible, infeasible: tangent cuts has 0.24852814"),
        (lambda true: replace(true, x=true.x - [0.0, 0.0, 1e-3]), "its point misses a row by"),
        (lambda true: replace(true, x=true.x - [1e-3, 0.0, 0.0]), "its point misses a row by"),
        (lambda true: replace(true, x=true.x - [0.0, 0.0, -0.5], objective=0.74852814, bound=None), "optimal, optimal"),
    ],
    ids=["bound", "infeasible", "outside a cone", "not whole", "dearer"],
)
def test_what_a_point_disproves_is_wrong(
    script: Any, program: Any, change: Callable[[Outcome], Outcome], said: str
) -> None:
    wrong = judged(script, program, change)

    assert list(wrong) == [script.BARE]
    assert said in wrong[script.BARE]


def test_what_leans_on_a_tolerance_disproves_nothing(script: Any, program: Any) -> None:
    """A point that is 4e-6 too cheap, in a cone up to its tolerance, counts with the cost of its integers."""
    lean = judged(script, program, lambda true: replace(true, x=true.x - [0.0, 0.0, 9e-7], objective=None, bound=None))

    assert lean == {}


def test_what_is_feasible_by_a_tolerance_alone_may_be_called_infeasible(script: Any) -> None:
    m = pyo.ConcreteModel()
    m.i = pyo.Var(domain=pyo.Binary)
    m.row = pyo.Constraint(expr=1e-3 * m.i >= 1.00001e-3)
    m.cost = pyo.Objective(expr=(m.i + 1) ** 2)
    compiled = compile_model(m)
    point = Outcome(status=Status.OPTIMAL, x=np.ones(1), objective=4.0, bound=4.0)
    outcomes = {script.OWN: point, script.GUARDED: point, script.BARE: Outcome(status=Status.INFEASIBLE)}

    assert script.judged(script.Program(compiled, {}, 1e-6), outcomes) == {}


@pytest.fixture
def recorder(script: Any) -> Iterator[Any]:
    register(script.RECORDER)
    yield script
    unregister(script.RECORDER.name)


def test_programs_are_those_that_calls_state(recorder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "HALVES", 5)
    loans = recorder.book("loans", 1, kinds=("logistic",))
    classes = {}
    for name, make in [*recorder.asked(loans), *recorder.published(loans)]:
        if name.endswith(("/l2", "/valid 0.6, 0", "/projection 0.05")):
            (found,) = make()
            classes[name] = found.compiled.problem_class

    assert classes == {
        "loans/logistic/0/l2": ProblemClass.MIQP,
        "loans/logistic/0/valid 0.6, 0": ProblemClass.MISOCP,
        "loans/0/projection 0.05": ProblemClass.SOCP,
    }


# ---- the rule, and the page ------------------------------------------------------------------------------------------
def record(script: Any, k: int, scip: dict[str, Any]) -> dict[str, Any]:
    found = {
        "status": "optimal", "objective": 1.0, "bound": 1.0, "cpu": 0.1, "seconds": 0.1, "missed": 0.0, "message": "",
        "wrong": "",
    }  # fmt: skip
    ways = {way: dict(found) for way in script.WAYS}
    ways[script.BARE] |= scip
    size = {"variables": 9, "integers": 3, "rows": 4, "cones": 1}
    return {"key": f"german/tree/{k}/l2", "class": "MISOCP", "size": size, "start": False, **ways}


@pytest.mark.parametrize(
    ("scip", "said"),
    [
        (
            {"cpu": 0.19},
            "SCIP, bare keeps the rule: 1.90 times the CPU time at the median, 3 programs proved against 3",
        ),
        ({"cpu": 0.25}, "SCIP, bare does not keep the rule: it takes 2.5 times the CPU time at the median."),
        ({"status": "feasible"}, "it proves 0 programs and the tangent cuts 3"),
        ({"wrong": "bound 2"}, "it is wrong on 3"),
    ],
    ids=["kept", "slow", "open", "wrong"],
)
def test_the_verdict_is_computed(script: Any, scip: dict[str, Any], said: str) -> None:
    records = [record(script, k, scip) for k in range(3)]

    assert said in script.verdict(records, script.BARE, 20)
    assert script.decision(records, 20).startswith("SCIP replaces" if "keeps" in said else "So the tangent cuts stay")


def test_the_page_is_made_of_what_is_kept(script: Any, benchmarks: Any, tmp_path: Any) -> None:
    records = importlib.import_module("records")
    kept = {
        "libraries": {"pyscipopt": "6.3.0"},
        "settings": {"people": 1, "limit_s": 20, "seed": 0},
        "records": [record(script, 0, {}), record(script, 1, {"status": "time_limit"}), record(script, 2, {})],
    }

    records.write(tmp_path / "quadratics.json", records.kept(kept))
    text = script.text_of(records.read(tmp_path / "quadratics.json"))

    assert text == script.text_of(kept)
    assert "| MISOCP | 3 | SCIP, bare | 2 | 0 | optimal 2, time_limit 1 |" in text
    assert "| german/tree/1/l2 | MISOCP | 9/3/4/1 |" in text
