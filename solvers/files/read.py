"""A file of a program as a ConcreteModel, and a solution that another program found for one.

LP and MPS files are parsed by HiGHS, once what it reads otherwise than the format says is refused and the quadratic
rows are taken out (:mod:`ceopt.solvers.files.misread`); CBF files by :mod:`ceopt.solvers.files.cbf`, PTF files by
MOSEK.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
from scipy.sparse import csc_array, csr_array

from ceopt.solvers.checks import in_double
from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.errors import (
    CeoptError,
    InvalidTypeError,
    InvalidValueError,
    UnknownNameError,
    UnreadableFileError,
    UnsupportedProblemError,
)
from ceopt.solvers.files.cbf import model_of_cbf
from ceopt.solvers.files.misread import (
    QuadraticRows,
    SetOfFile,
    refuse_misread,
    refuse_odd_numbers,
    take_quadratic_rows,
    take_sets,
)
from ceopt.solvers.files.model_builder import add, add_column, add_objective, add_row, costs
from ceopt.solvers.files.write import CONSTANT, column_names
from ceopt.solvers.highs import silent_highs
from ceopt.solvers.tolerances import LOADED_WHOLE
from ceopt.solvers.whole_files import file_path

# ==== A solution that was found elsewhere, by the names of a written file, as values of the model's Vars ==============


def load(model: Any, values: Mapping[str, float]) -> None:
    """Set a model's Vars to a solution that some program found for a file of :func:`write`.

    Parameters
    ----------
    model
        The ConcreteModel, as it was when the file was written.
    values
        Name of a column, as it stands in the file -> number. All columns of the file, in any order. Those that only
        the file has are passed over: ``ONE_VAR_CONSTANT``, which carries the objective's constant, and the columns for
        the entries of cones and for a quadratic cost; so are those that a solver adds for one (SCIP's ``quadobjvar``
        and ``qmatrixvar``).

    Notes
    -----
    Integers are rounded to the whole number that a solver's tolerance stands for. Fixed Vars keep their values: a file
    holds them as constants. Vars that occur in no row and no cost are in no file; they get the value nearest 0, as from
    :func:`solve`. Nothing is checked against the rows: evaluate them, or let ``decode`` and ``verify`` do it. Nothing
    is set if anything is refused.

    Raises
    ------
    InvalidTypeError
        ``values`` is no mapping, a name is no text, or a value is no number.
    UnknownNameError
        No column of the file has that name.
    InvalidValueError
        A column of the file is missing; or a value is not finite, or that of an integer is not whole.
    UnsupportedProblemError
        The model cannot be written.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import load
    >>> model = pyo.ConcreteModel()
    >>> model.take = pyo.Var(["a b", True], domain=pyo.Binary)
    >>> model.one = pyo.Constraint(expr=sum(model.take.values()) == 1)
    >>> load(model, {"take(a_b)": 0.0, "take(True)": 0.9999999})
    >>> [var.value for var in model.take.values()]
    [0, 1]
    """
    if not isinstance(values, Mapping):
        but = f"values is {type(values).__name__}"
        raise InvalidTypeError("load", "a mapping from names to values", but, "Give a dict: name in the file -> value.")
    compiled = compile_model(model)
    names = _names(model, compiled, values)
    x = np.where(compiled.lb == compiled.ub, compiled.lb, math.nan)
    for name, value in values.items():
        number = _number(name, value)
        if (column := names[name]) is not None:
            x[column] = _whole(name, number) if compiled.integer[column] else number
    given = compiled.completed({column: float(x[column]) for column in np.flatnonzero(~np.isnan(x)).tolist()})
    x[list(given)] = list(given.values())
    missing = np.setdiff1d(np.flatnonzero(np.isnan(x)), compiled.set_binaries)
    if missing.size:
        labels = {column: label for label, column in names.items()}
        some = ", ".join(repr(labels[column]) for column in missing[:3].tolist())
        but = f"{some}{', ...' if missing.size > 3 else ''} {'is' if missing.size == 1 else 'are'} missing"
        raise InvalidValueError("load", "a value for each column of the file", but, "Give all columns.")
    compiled.load(x)


def _names(model: Any, compiled: CompiledModel, values: Mapping[str, float]) -> dict[str, int | None]:
    """Return the column of each name in the first kind of file that fits; None for columns of the file's own."""
    known: dict[str, int | None] = {}
    refused: CeoptError | None = None
    for suffix in (".lp", ".cbf"):
        try:
            found = column_names(model, compiled, suffix)
        except CeoptError as error:  # a file of this kind cannot hold the model
            refused = refused or error
            continue
        if all(name in found for name in values):
            return found
        known = known or found
    if not known and refused is not None:
        raise refused
    strange = next(name for name in values if name not in known)
    if not isinstance(strange, str):
        raise InvalidTypeError("load", "names as text", f"one is {strange!r}", "Give them as they stand in the file.")
    listed = [name for name, column in known.items() if column is not None]
    raise UnknownNameError.among("load", "column of the file", strange, listed or [CONSTANT])


def _number(name: str, value: Any) -> float:
    """Return a finite value in double precision."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number:
        raise InvalidTypeError("load", "numbers", f"{name!r} is {value!r}", "Give the solver's own value.")
    if not math.isfinite(number := in_double(value)):
        raise InvalidValueError("load", "finite values", f"{name!r} is {value}", "Load a solution, if there is one.")
    return number


def _whole(name: str, value: float) -> float:
    if abs(value - round(value)) > LOADED_WHOLE * max(1.0, abs(value) * LOADED_WHOLE):
        then = "Load the solution of the program with its integers."
        raise InvalidValueError("load", "whole numbers for integers", f"{name!r} is {value!r}", then)
    return float(round(value))


# ==== An LP, MPS, CBF or PTF file as a ConcreteModel with the file's names ============================================

_LAST_LINE = {".lp": "end", ".mps": "endata"}
_SUFFIXES = (".cbf", ".lp", ".mps", ".ptf")


def read(path: str | os.PathLike[str]) -> Any:
    """Read a linear, quadratic or conic program, with integers or without.

    Each column and row becomes a component of the file's own name, ``model.component("x(age)")``, whose ``.name``
    Pyomo puts in quotes for its brackets; SOS1 and SOS2 sets become SOSConstraints. A name that Pyomo reserves, or that
    a row shares with a column, gets ``_`` behind it. A CBF file has names where :func:`write` wrote it, in its
    comments. Cones become ordinary Constraints over the expressions of :mod:`ceopt.solvers.cones`.

    Parameters
    ----------
    path
        A file that ends in .lp, .mps, .cbf, or .ptf (MOSEK's text format, which needs the library but no licence).

    Raises
    ------
    UnreadableFileError
        The file is missing, truncated or not what its suffix says, has a section or a cone that is unknown, a
        coefficient that is not finite, or something that readers take for different programs: a constant on the left
        of an LP row, a column twice in an LP objective, an MPS entry twice, a binary with bounds beyond 0 and 1, a
        right side of a free row. (Bounds and sides of rows may be infinite where the format has such.)
    UnsupportedProblemError
        It holds something that a model here cannot, such as semi-continuous columns.
    MissingLibraryError
        A .ptf file, and MOSEK is not installed.
    """
    path = file_path("read", path)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise UnreadableFileError(
            "read",
            f"a file that ends in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}",
            f"the file is {str(path)!r}",
            "Rename or convert it.",
        )
    text = _text(path)
    if suffix == ".cbf":
        return model_of_cbf(text, str(path))
    if suffix == ".ptf":
        from ceopt.solvers.files.misread import model_of_ptf

        return model_of_ptf(text, str(path))
    return _model_of_lp(text, suffix, path)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        reason = error.strerror or "cannot be opened"
        raise UnreadableFileError("read", "a file", f"{str(path)!r}: {reason}", "Check the path.") from error


def _model_of_lp(text: str, suffix: str, path: Path) -> Any:
    last = _LAST_LINE[suffix]
    if text.rstrip().rsplit("\n", 1)[-1].strip().lower() != last:
        raise UnreadableFileError(
            "read",
            f"a last line {last.upper()!r}",
            f"{str(path)!r} has none",
            "It is truncated, or not what its suffix says.",
        )
    text, sets = take_sets(text, suffix, str(path))
    refuse_odd_numbers(text, suffix, str(path))
    refuse_misread(text, suffix, str(path))
    taken = take_quadratic_rows(text, suffix, str(path))
    lp, hessian = _parse(taken.text or (text if sets else ""), suffix, path)
    model = pyo.ConcreteModel()
    columns: list[Any] = []
    names = _filled(lp.col_names_, lp.num_col_, "column")
    # each look at an attribute copies the whole vector
    lower = list(lp.col_lower_)
    upper = list(lp.col_upper_)
    kinds = [str(kind).rsplit(".", 1)[-1] for kind in lp.integrality_] or ["kContinuous"] * len(names)
    for name, low, high, whole in zip(names, lower, upper, kinds, strict=True):
        if whole not in {"kContinuous", "kInteger"}:
            raise UnsupportedProblemError(
                "read", "continuous and integer columns", f"{name!r} is {whole[1:]}", "Use a binary."
            )
        own = name not in taken.by_column
        bounds = float(low), float(high)
        columns.append(add_column(model, name, bounds, integer=whole == "kInteger") if own else name)
    _add_rows(model, lp, columns, taken, str(path))
    _add_sets(model, sets, dict(zip(names, columns, strict=True)))
    expression = costs(lp.offset_, list(lp.col_cost_), columns)
    for i, j, value in hessian:
        expression += (0.5 if i == j else 1.0) * value * columns[i] * columns[j]
    minimise = not str(lp.sense_).endswith("kMaximize")
    add_objective(model, str(getattr(lp, "objective_name_", "")), expression, minimise=minimise)
    return model


def _add_rows(model: Any, lp: Any, columns: list[Any], taken: QuadraticRows, path: str) -> None:
    """Add the rows, each with the products that were taken out of it; the column in their place is a name, no Var."""
    matrix = _matrix(lp)
    left = dict(taken.by_row)
    by_name = dict(zip(_filled(lp.col_names_, lp.num_col_, "column"), columns, strict=True))
    lower = list(lp.row_lower_)
    upper = list(lp.row_upper_)
    for r, name in enumerate(_filled(lp.row_names_, lp.num_row_, "row")):
        if name == taken.extra_row:
            continue
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        products = list(left.pop(name, ()))
        values = []
        variables = []
        for value, k in zip(matrix.data[part].tolist(), matrix.indices[part].tolist(), strict=True):
            if columns[k].__class__ is str:
                products += [(value * factor, *pair) for factor, *pair in taken.by_column[columns[k]]]
            else:
                values.append(value)
                variables.append(columns[k])
        terms: dict[tuple[int, int], tuple[float, Any, Any]] = defaultdict(lambda: (0.0, None, None))
        for factor, *pair in products:
            first, second = (_known(by_name, column, "column", path) for column in sorted(pair))
            key = id(first), id(second)
            terms[key] = (terms[key][0] + factor, first, second)
        add_row(model, name, values, variables, (float(lower[r]), float(upper[r])), products=terms)
    for name in left:
        _known({}, name, "row", path)


def _add_sets(model: Any, sets: list[SetOfFile], by_name: dict[str, Any]) -> None:
    """Add the sets; a column that stands in sets alone is continuous and at least 0, as the formats say."""
    for one in sets:
        for name in one.weights:
            if name not in by_name:
                by_name[name] = add_column(model, name, (0.0, math.inf), integer=False)
        items = [by_name[name] for name in one.weights], list(one.weights.values())
        add(model, one.name, pyo.SOSConstraint(rule=lambda _model, items=items: items, sos=one.kind))


def _known(by_name: dict[str, Any], name: str, kind: str, path: str) -> Any:
    if name in by_name:
        return by_name[name]
    raise UnreadableFileError("read", f"a {kind} for every product", f"{path!r} has no {kind} {name!r}", "Add it.")


def _parse(text: str, suffix: str, path: Path) -> tuple[Any, list[tuple[int, int, float]]]:
    """Return the program that HiGHS reads from the file, or from the text where there is one."""
    import highspy

    highs = silent_highs()
    highs.setOptionValue("small_matrix_value", 1e-12)
    for option in ("infinite_cost", "large_matrix_value"):  # what is finite in the file is so in the model
        highs.setOptionValue(option, math.inf)
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / f"model{suffix}"
        if text:
            other.write_text(text, encoding="utf-8")
        failed = highs.readModel(str(other if text else path)) == highspy.HighsStatus.kError
    if failed or not highs.getNumCol():  # HiGHS takes lines that it does not know for an empty program
        raise UnreadableFileError(
            "read",
            f"an {suffix[1:].upper()} file of a linear or quadratic program",
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
    return model.lp_, [(int(i), int(j), float(value)) for i, j, value in triples if value]


def _matrix(lp: Any) -> csr_array:
    a = lp.a_matrix_
    kind = csc_array if str(a.format_).endswith("kColwise") else csr_array
    return csr_array(kind((a.value_, a.index_, a.start_), shape=(lp.num_row_, lp.num_col_)))


def _filled(names: list[str], count: int, kind: str) -> list[str]:
    given = list(names) or [""] * count
    return [name or f"{kind}_{k}" for k, name in enumerate(given)]
