"""A file in MOSEK's own text format as a ConcreteModel; MOSEK parses it, without a licence."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import UnreadableFileError, UnsupportedProblemError
from ceopt.solvers.files.finite_coefficients import odd_number_of_ptf
from ceopt.solvers.files.model_builder import add, add_column, add_cone, add_row, affine
from ceopt.solvers.mosek.tables import name_of
from ceopt.solvers.mosek.task import layout, require_library

__all__ = ["model_of_ptf"]

_CONES = {
    "quadratic_cone": Cone.SECOND_ORDER,
    "rquadratic_cone": Cone.ROTATED,
    "svec_psd_cone": Cone.SEMIDEFINITE,
    "primal_exp_cone": Cone.EXPONENTIAL,
}
_SIDES = {"rzero": (0.0, 0.0), "rplus": (0.0, math.inf), "rminus": (-math.inf, 0.0)}


def model_of_ptf(text: str, path: str) -> Any:
    """Return the model.

    Raises
    ------
    MissingLibraryError
        MOSEK is not installed.
    UnreadableFileError
        MOSEK does not take it for such a file.
    UnsupportedProblemError
        It has matrix variables, disjunctions or cones of other kinds.
    """
    library = require_library("read")
    with library.Task() as task, tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model.ptf"
        copy.write_text(text, encoding="utf-8")
        try:
            task.readdata(str(copy))
        except library.Error as error:
            said = " ".join((error.msg or name_of(error.errno)).split()).rstrip(".").replace(str(copy), path)
            if odd := odd_number_of_ptf(text):
                but = f"line {odd[0]} of {path!r} has {odd[1][:60]!r} (MOSEK says: {said})"
                raise UnreadableFileError("read", "finite coefficients", but, "Check the file.") from error
            raise UnreadableFileError("read", "a PTF file", f"MOSEK says of {path!r}: {said}", "Check it.") from error
        if not task.getnumvar() and "\nObjective" not in text:  # MOSEK takes an empty file for an empty program
            raise UnreadableFileError(
                "read", "a PTF file with variables or an objective", f"{path!r} has none", "Check it."
            )
        return _model(task, library, path)


def _model(task: Any, library: Any, path: str) -> Any:
    for what, count in (
        ("matrix variables", task.getnumbarvar()),
        ("disjunctions", task.getnumdjc()),
        ("variables in cones of the old kind", task.getnumcone()),
        ("quadratic terms", task.getnumqobjnz() + sum(map(task.getnumqconknz, range(task.getnumcon())))),
    ):
        if count:
            raise UnsupportedProblemError("read", f"a file without {what}", f"{path!r} has {count}", "Convert it.")
    model = pyo.ConcreteModel()
    n = task.getnumvar()
    m = task.getnumcon()
    columns = []
    for k in range(n):
        bounds = _sides(library, *task.getvarbound(k))
        whole = task.getvartype(k) == library.variabletype.type_int
        columns.append(add_column(model, task.getvarname(k) or f"column_{k}", bounds, integer=whole))
    for r in range(m):
        _, at, values = task.getarow(r)
        bounds = _sides(library, *task.getconbound(r))
        add_row(model, task.getconname(r) or f"row_{r}", list(values), [columns[k] for k in at], bounds)
    _add_cones(model, task, columns, path)
    cost = [(float(value), columns[k]) for k, value in enumerate(task.getc()) if value]
    expression = affine(task.getcfix(), [value for value, _ in cost], [column for _, column in cost])
    sense = pyo.minimize if task.getobjsense() == library.objsense.minimize else pyo.maximize
    add(model, task.getobjname() or "objective", pyo.Objective(expr=expression, sense=sense))
    return model


def _add_cones(model: Any, task: Any, columns: list[Any], path: str) -> None:
    rows, at, values = task.getaccftrip()
    shape = (task.getaccntot(), len(columns))
    whole = sp.csr_array((np.array(values), (np.array(rows, int), np.array(at, int))), shape=shape)
    g = np.array(task.getaccgvector())
    first = 0
    for k in range(task.getnumacc()):
        size = task.getaccn(k)
        name = task.getaccname(k) or f"cone_{k}"
        part = slice(first, first + size)
        domain = name_of(task.getdomaintype(task.getaccdomain(k)))
        first += size
        constant = g[part] - np.array(task.getaccb(k))
        matrix = whole[part]
        if domain in _CONES:
            order, scale = layout(_CONES[domain], size)
            back = np.argsort(order)
            constant = (constant / scale)[back]
            matrix = sp.csr_array(sp.diags_array(1.0 / scale) @ matrix)[back]
            add_cone(model, name, _CONES[domain], _expressions(constant, matrix, columns))
        elif domain in _SIDES:
            for r, expression in enumerate(_expressions(constant, matrix, columns)):
                add_row(model, name if size == 1 else f"{name}_{r}", [1.0], [expression], _SIDES[domain])
        elif domain != "r":
            raise UnsupportedProblemError("read", "cones that are known", f"{name!r} of {path!r} is a {domain}", "")


def _expressions(constant: Any, matrix: Any, columns: list[Any]) -> list[Any]:
    parts = [slice(matrix.indptr[r], matrix.indptr[r + 1]) for r in range(len(constant))]
    return [
        affine(float(constant[r]), matrix.data[part].tolist(), [columns[k] for k in matrix.indices[part].tolist()])
        for r, part in enumerate(parts)
    ]


def _sides(library: Any, key: Any, lower: float, upper: float) -> tuple[float, float]:
    keys = library.boundkey
    has_lower = key in {keys.lo, keys.ra, keys.fx}
    has_upper = key in {keys.up, keys.ra, keys.fx}
    return lower if has_lower else -math.inf, upper if has_upper else math.inf
