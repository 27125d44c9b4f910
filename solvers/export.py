"""A model as an LP or MPS file with names that a person can read, and a table of where each name comes from."""

from __future__ import annotations

import io
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
from pyomo.common.modeling import unique_component_name
from pyomo.repn.plugins.lp_writer import LPWriter
from pyomo.repn.plugins.mps import ProblemWriter_mps

from ceopt.solvers.errors import CeoptError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.labels import ROW_MARKS, label_components
from ceopt.solvers.manifest import described_block, feature_of, manifest_of
from ceopt.solvers.walk import refuse_foreign_components

__all__ = ["write"]

_CONSTANT = "ONE_VAR_CONSTANT"  # the column fixed at 1 that carries the objective's constant in Pyomo's files


def write(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a ConcreteModel as ``.lp`` or ``.mps``, and beside it ``path + ".names.json"``.

    The table maps each name of a column or row, exactly as it stands in the file, to ``component`` (full Pyomo name),
    ``feature``, ``block`` and ``rule``, as the manifests of the blocks say (empty where they say nothing). A range row
    is two rows in the file; the objective's constant is a column ``ONE_VAR_CONSTANT`` fixed at 1. Fixed Vars are
    constants. The same model gives the same bytes.

    Raises
    ------
    UnknownNameError
        Another suffix.
    UnsupportedProblemError
        Something that such a file cannot hold.
    """
    target = Path(path)
    writer = _WRITERS.get(target.suffix.lower())
    if writer is None:
        raise UnknownNameError.among("write", "suffix", target.suffix, _WRITERS)
    refuse_foreign_components(model, "write")
    with _objective_of(model) as objective:
        components = list(_components(model))
        labels = label_components(components)
        try:
            text = writer(model, lambda member: _label(member, labels))
        except CeoptError:
            raise
        except (ValueError, TypeError, KeyError, RuntimeError, ArithmeticError, NotImplementedError) as error:
            raise UnsupportedProblemError(
                "write",
                f"a model that {target.suffix} can hold",
                str(error).strip().rstrip("."),
                "Restate that component.",
            ) from error
        names = _names(components, labels, objective, set(text.replace(":", " ").split()))
    target.write_bytes(text.encode("ascii", "replace"))
    table = json.dumps(names, indent=1, ensure_ascii=False) + "\n"
    target.with_name(target.name + ".names.json").write_bytes(table.encode())


def _label(member: Any, labels: dict[int, str]) -> str:
    if id(member) in labels:
        return labels[id(member)]
    if member.name == _CONSTANT and member.parent_block() is None:
        return _CONSTANT
    raise UnsupportedProblemError(
        "write", "the Vars of this model", f"{member.name!r} belongs to none of its blocks", "Add it to the model."
    )


def _write_lp(model: Any, labeler: Callable[[Any], str]) -> str:
    stream = io.StringIO()
    LPWriter().write(model, stream, labeler=labeler)
    return stream.getvalue().replace(" ^ 2", "^2")  # SCIP does not read the blanks


def _write_mps(model: Any, labeler: Callable[[Any], str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mps"
        log = logging.getLogger("pyomo.core")
        was, log.disabled = log.disabled, True  # a model without an objective gets a constant one: no news
        try:
            ProblemWriter_mps()(model, str(path), lambda _feature: True, {"labeler": labeler})
        finally:
            log.disabled = was
        return path.read_text(encoding="utf-8")


_WRITERS: dict[str, Callable[[Any, Callable[[Any], str]], str]] = {".lp": _write_lp, ".mps": _write_mps}


@contextmanager
def _objective_of(model: Any) -> Iterator[Any]:
    """Yield the active objective; for the time of writing, a constant one where the model has none."""
    objective = next(model.component_data_objects(pyo.Objective, active=True), None)
    if objective is not None:
        yield objective
        return
    name = unique_component_name(model, "feasibility")
    model.add_component(name, pyo.Objective(expr=0.0))
    try:
        yield model.component(name)
    finally:
        model.del_component(name)


def _components(model: Any) -> Iterator[Any]:
    """Yield what may get a name: every Var, and every active Constraint and Objective."""
    yield from model.component_data_objects(pyo.Var, descend_into=True)
    yield from model.component_data_objects(pyo.Constraint, active=True)
    yield from model.component_data_objects(pyo.Objective, active=True)


def _names(components: list[Any], labels: dict[int, str], objective: Any, used: set[str]) -> dict[str, dict[str, str]]:
    names = {}
    for member in components:
        label = labels[id(member)]
        is_row = member.ctype is pyo.Constraint
        forms = [f"{mark}{label}_" for mark in ROW_MARKS] if is_row else [label]
        for form in forms:
            if form in used:
                names[form] = _origin(member)
    for form in (_CONSTANT, f"c_e_{_CONSTANT}"):
        if form in used:
            names[form] = _origin(objective)
    return names


def _origin(member: Any) -> dict[str, str]:
    block = described_block(member)
    manifest = None if block is None else manifest_of(block)
    home = block if block is not None else member.parent_block()
    return {
        "component": member.name,
        "feature": feature_of(member),
        "block": "" if home.parent_block() is None else home.name,
        "rule": "" if manifest is None else manifest.rule,
    }
