"""A cone stated in plain Pyomo is never dropped silently: all that Pyomo has refuse a model that has one.

Each road is also gone with the same model without its cone, so that it is the cone that is refused. The writers are
those that Pyomo's own factory knows, so that a new one is tried from the day on which Pyomo has it.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
from licences import skip_without
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.opt import WriterFactory

from ceopt.solvers.cones import exponential, psd, psd_affine, rotated_soc, soc

Road = Callable[[Any, Path], None]

CONES: dict[str, Callable[[Any], Any]] = {
    "second-order": lambda m: soc(m.z, [m.x, m.y]),
    "rotated": lambda m: rotated_soc(m.z, 1, [m.x, m.y]),
    "semidefinite": lambda m: psd([[m.z, m.x], [m.x, 1]]),
    "semidefinite from arrays": lambda m: psd_affine(
        [[0, 0], [0, 1]], [[[1, 0], [0, 0]], [[0, 1], [1, 0]]], [m.z, m.x]
    ),
    "exponential": lambda m: exponential(m.x, 1, m.z),
}
WAYS: dict[str, Callable[[Any, Any], None]] = {
    "scalar": lambda m, margin: m.add_component("cone", pyo.Constraint(expr=margin >= 0)),
    "indexed": lambda m, margin: m.add_component("cone", pyo.Constraint([1], rule=lambda _m, _i: margin >= 0)),
    "in a block": lambda m, margin: m.b.add_component("cone", pyo.Constraint(expr=margin >= 0)),
    "triple": lambda m, margin: m.add_component("cone", pyo.Constraint(expr=(0, margin, None))),
    "named": lambda m, margin: (
        m.add_component("margin", pyo.Expression(expr=margin)),
        m.add_component("cone", pyo.Constraint(expr=m.margin >= 0)),
    )[0],
}


def model(domain: Any = pyo.Reals) -> Any:
    m = pyo.ConcreteModel()
    m.x, m.y, m.z = (pyo.Var(domain=domain, bounds=(0, 9)) for _ in range(3))
    m.b = pyo.Block()
    m.row = pyo.Constraint(expr=m.x + m.y >= 1)
    m.cost = pyo.Objective(expr=m.z + m.x + 2 * m.y)
    return m


def _writes(name: str) -> Road:
    """Call a writer as its kind is called: as a function with a file's name, or by ``write``, into a stream or not."""

    def road(m: Any, folder: Path) -> None:
        writer, path = WriterFactory(name), folder / "m.txt"
        if not hasattr(writer, "write"):
            writer(m, str(path), lambda _: True, {})
            return
        stream = inspect.signature(writer.write).parameters.get("ostream")
        if stream is not None and stream.default is inspect.Parameter.empty:
            with path.open("w", encoding="utf-8") as file:
                writer.write(m, file)
        else:  # into arrays, or a model of another library
            assert writer.write(m) is not None

    return road


def _solves(name: str) -> Road:
    return lambda m, _folder: SolverFactory(name).solve(m)


def _solves_as_before(name: str) -> Road:
    return lambda m, _folder: pyo.SolverFactory(name).solve(m)


def _fills_a_mosek_task(m: Any, folder: Path) -> None:
    solver = pyo.SolverFactory("mosek_direct")
    solver._set_instance(m)
    solver._solver_model.writedata(str(folder / "m.task"))


#: Writers of Pyomo that make a model of another library.
LIBRARIES = {"docplex_model": ("docplex",), "gurobi_minlp": ("gurobipy",)}
WRITERS = {f"{name} writer": name for name in sorted(WriterFactory)}
#: Solvers of Pyomo's contrib, and the library of each; Pyomo has those of SCIP from 6.10.1 on.
CONTRIB = {
    "highs": "highspy",
    "gurobi_direct": "gurobipy",
    "gurobi_persistent": "gurobipy",
    "gurobi_direct_minlp": "gurobipy",
    "scip_direct": "pyscipopt",
    "scip_persistent": "pyscipopt",
}

#: name -> (libraries that it needs, what it does with a model and a folder)
ROADS: dict[str, tuple[tuple[str, ...], Road]] = {
    **{road: (LIBRARIES.get(name, ()), _writes(name)) for road, name in WRITERS.items()},
    **{f"contrib {name}": ((library,), _solves(name)) for name, library in CONTRIB.items() if name in SolverFactory},
    "legacy gurobi_direct": (("gurobipy",), _solves_as_before("gurobi_direct")),
    "appsi_highs": (("highspy",), _solves_as_before("appsi_highs")),
    "appsi_gurobi": (("gurobipy",), _solves_as_before("appsi_gurobi")),
    "mosek_direct": (("mosek",), _fills_a_mosek_task),
}


@pytest.fixture(params=ROADS)
def road(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> str:
    caplog.set_level(logging.CRITICAL)
    for library in ROADS[request.param][0]:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
        if library == "gurobipy":
            skip_without("gurobi")
    return str(request.param)


def _model_for(road: str) -> Any:
    return model(pyo.Integers if road == "docplex_model writer" else pyo.Reals)  # it has no continuous columns


@pytest.mark.long(every=14)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore")  # libraries of others warn of their own things
def test_a_cone_is_refused(road: str, cone: str, way: str, tmp_path: Path) -> None:
    m, says = _model_for(road), "ConeMargin|_ComponentFromExprCollector|needs a model without cones"
    if (road, way) == ("docplex_model writer", "named"):
        says = "does not know how to process"  # no Expression at all
    WAYS[way](m, CONES[cone](m))
    with pytest.raises(Exception, match=says):  # what the road says it stumbled on
        ROADS[road][1](m, tmp_path)
    assert m.x.value is m.y.value is m.z.value is None  # nothing was loaded
    for left in list(tmp_path.iterdir()):  # nothing was written that a reader would take for a file
        assert left.suffix != ".task"
        text = left.read_text(encoding="utf-8")
        assert text.rstrip().rsplit("\n", 1)[-1].lower() not in {"end", "endata"}
        ROADS[road][1](_model_for(road), tmp_path)
        assert left.read_text(encoding="utf-8").rstrip()[-40:] not in text  # it was cut off before its end


@pytest.mark.filterwarnings("ignore")
def test_without_its_cone_it_is_not(road: str, tmp_path: Path) -> None:
    m = _model_for(road)
    m.cone = pyo.Constraint(expr=soc(m.z, [m.x, m.y]) >= 0)
    m.cone.deactivate()
    ROADS[road][1](m, tmp_path)
    if road in WRITERS or road == "mosek_direct":
        assert all(written.stat().st_size for written in tmp_path.iterdir())
    else:
        assert m.x.value == pytest.approx(1)
        assert not any(tmp_path.iterdir())


def test_writers_of_all_kinds_are_among_the_roads() -> None:
    """Those of text that took a cone for a function of that name (gams, bar) and those that walk expressions."""
    assert {"bar", "gams", "gams_writer_v2", "lp", "mps", "nl", "compile_standard_form"} <= set(WRITERS.values())


def test_the_printed_form_of_a_cone_is_no_writers() -> None:
    m = model()
    assert "second_order_margin" in str(soc(m.z, [m.x, m.y]) >= 0)
