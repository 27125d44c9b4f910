"""An LP or MPS file as a ConcreteModel with the file's names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression
from scipy.sparse import csc_array, csr_array

from ceopt.solvers.errors import UnreadableFileError, UnsupportedProblemError

__all__ = ["read"]

_LAST_LINE = {".lp": "end", ".mps": "endata"}


def read(path: str | os.PathLike[str]) -> Any:
    """Read a linear, integer or convex quadratic program.

    Each column and row becomes a component of the file's own name, ``model.component("x(age)")``, whose ``.name``
    Pyomo puts in quotes for its brackets. A name that Pyomo reserves, or that a row shares with a column, gets ``_``
    behind it.

    Parameters
    ----------
    path
        A file that ends in .lp or .mps.

    Raises
    ------
    UnreadableFileError
        The file is missing, truncated or not what its suffix says.
    UnsupportedProblemError
        It holds semi-continuous or semi-integer columns.
    """
    lp, hessian = _parse(Path(path))
    model = pyo.ConcreteModel()
    columns = []
    for k, name in enumerate(_filled(lp.col_names_, lp.num_col_, "column")):
        whole = str(lp.integrality_[k]).rsplit(".", 1)[-1] if len(lp.integrality_) else "kContinuous"
        if whole not in {"kContinuous", "kInteger"}:
            raise UnsupportedProblemError(
                "read", "continuous and integer columns", f"{name!r} is {whole[1:]}", "Use a binary."
            )
        lower, upper = float(lp.col_lower_[k]), float(lp.col_upper_[k])
        domain = pyo.Reals if whole == "kContinuous" else pyo.Binary if (lower, upper) == (0.0, 1.0) else pyo.Integers
        columns.append(_add(model, name, pyo.Var(domain=domain, bounds=(_finite(lower), _finite(upper)))))
    matrix = _matrix(lp)
    for r, name in enumerate(_filled(lp.row_names_, lp.num_row_, "row")):
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        body = _linear(matrix.data[part].tolist(), [columns[k] for k in matrix.indices[part].tolist()])
        low, high = _finite(float(lp.row_lower_[r])), _finite(float(lp.row_upper_[r]))
        if low is None and high is None:
            continue
        if not isinstance(body, LinearExpression):
            holds = (low is None or low <= 0) and (high is None or high >= 0)
            _add(model, name, pyo.Constraint(expr=pyo.Constraint.Feasible if holds else pyo.Constraint.Infeasible))
            continue
        _add(model, name, pyo.Constraint(expr=body == low if low == high else (low, body, high)))
    cost = [(float(value), columns[k]) for k, value in enumerate(lp.col_cost_) if value]
    expression = float(lp.offset_) + _linear([value for value, _ in cost], [column for _, column in cost])
    for i, j, value in hessian:
        expression += (0.5 if i == j else 1.0) * value * columns[i] * columns[j]
    sense = pyo.maximize if str(lp.sense_).endswith("kMaximize") else pyo.minimize
    _add(model, str(getattr(lp, "objective_name_", "")) or "objective", pyo.Objective(expr=expression, sense=sense))
    return model


def _parse(path: Path) -> tuple[Any, list[tuple[int, int, float]]]:
    import highspy

    last = _LAST_LINE.get(path.suffix.lower())
    if last is None:
        raise UnreadableFileError(
            "read", "a file that ends in .lp or .mps", f"the file is {str(path)!r}", "Rename or convert it."
        )
    try:
        text = path.read_text(encoding="utf-8", errors="replace").rstrip()
    except OSError as error:
        reason = error.strerror or "cannot be opened"
        raise UnreadableFileError("read", "a file", f"{str(path)!r}: {reason}", "Check the path.") from error
    if text.rsplit("\n", 1)[-1].strip().lower() != last:
        raise UnreadableFileError(
            "read",
            f"a last line {last.upper()!r}",
            f"{str(path)!r} has none",
            "It is truncated, or not what its suffix says.",
        )
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("small_matrix_value", 1e-12)
    failed = highs.readModel(str(path)) == highspy.HighsStatus.kError
    if failed or not highs.getNumCol():  # HiGHS takes lines that it does not know for an empty program
        raise UnreadableFileError(
            "read",
            f"an {path.suffix[1:].upper()} file of a linear or quadratic program",
            f"{str(path)!r} is not one",
            "Check it.",
        )
    model = highs.getModel()
    hessian = model.hessian_
    if not hessian.dim_:
        return model.lp_, []
    start = list(hessian.start_)
    columns = [k for k in range(hessian.dim_) for _ in range(start[k], start[k + 1])]
    triples = zip(hessian.index_, columns, hessian.value_, strict=True)
    return model.lp_, [(int(i), int(j), float(value)) for i, j, value in triples]


def _matrix(lp: Any) -> csr_array:
    a = lp.a_matrix_
    kind = csc_array if str(a.format_).endswith("kColwise") else csr_array
    return csr_array(kind((a.value_, a.index_, a.start_), shape=(lp.num_row_, lp.num_col_)))


def _linear(values: list[float], columns: list[Any]) -> Any:
    return LinearExpression(constant=0.0, linear_coefs=values, linear_vars=columns) if values else 0.0


def _filled(names: list[str], count: int, kind: str) -> list[str]:
    given = list(names) or [""] * count
    return [name or f"{kind}_{k}" for k, name in enumerate(given)]


def _finite(bound: float) -> float | None:
    return bound if abs(bound) < 1e20 else None


def _add(model: Any, name: str, component: Any) -> Any:
    while hasattr(model, name):
        name += "_"
    model.add_component(name, component)
    return component
