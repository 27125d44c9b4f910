r"""A compiled model as a MOSEK task, and a task's dual solution in the model's own terms.

Linear rows and bounds go over as they are, each cone as one affine conic constraint :math:`F x + g \in K`:

============================ ============================ ===========================================================
our cone                     MOSEK's domain               entries handed over
============================ ============================ ===========================================================
second-order (t, v)          quadratic                    t, v
rotated (t, u, v)            rotated quadratic            t, u, v
semidefinite                 scaled vectorised, "svec"    lower triangle by column, off the diagonal times sqrt(2)
exponential (x, y, z)        primal exponential           z, y, x
============================ ============================ ===========================================================
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.compile.rows_and_cones import ConeRows
from ceopt.solvers.cones import Cone, side_of
from ceopt.solvers.errors import MissingLibraryError, UnsupportedProblemError
from ceopt.solvers.files.file_names import FileNames
from ceopt.solvers.problem import Vector

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel

__all__ = ["fill", "layout", "name", "ptf_text", "put_bounds", "require_library", "scaled_rows"]

_DOMAINS: dict[Cone, Callable[[Any, int], int]] = {
    Cone.SECOND_ORDER: lambda task, size: task.appendquadraticconedomain(size),
    Cone.ROTATED: lambda task, size: task.appendrquadraticconedomain(size),
    Cone.SEMIDEFINITE: lambda task, size: task.appendsvecpsdconedomain(size),
    Cone.EXPONENTIAL: lambda task, _size: task.appendprimalexpconedomain(),
}


def require_library(who: str) -> Any:
    """Return the module ``mosek``.

    Raises
    ------
    MissingLibraryError
        It is not installed.
    """
    try:
        import mosek
    except ImportError as error:
        raise MissingLibraryError(
            who, "the library mosek", "it is not installed", "pip install ceopt[mosek]."
        ) from error
    return mosek


def fill(task: Any, compiled: CompiledModel) -> None:
    """Append the columns, rows and cones of a program without quadratics to an empty task."""
    import mosek

    m, n = compiled.A.shape
    task.appendvars(n)
    task.appendcons(m)
    put_bounds(task, compiled, 0, n)
    task.putcslice(0, n, compiled.c)
    task.putcfix(compiled.c0 + 0.0)
    task.putobjsense(mosek.objsense.minimize if compiled.sense > 0 else mosek.objsense.maximize)
    whole = np.flatnonzero(compiled.integer).tolist()
    task.putvartypelist(whole, [mosek.variabletype.type_int] * len(whole))
    start = compiled.A.indptr.astype(np.int64)
    task.putarowslice(0, m, start[:-1], start[1:], compiled.A.indices, compiled.A.data)
    keys = _bound_keys(compiled.row_lb, compiled.row_ub)
    task.putconboundslice(0, m, keys, _finite(compiled.row_lb), _finite(compiled.row_ub))
    for cone in compiled.cones:
        _append_cone(task, cone)


def put_bounds(task: Any, compiled: CompiledModel, first: int, last: int) -> None:
    """Set the bounds of the columns from first to last, without last; data without a value are free until they have."""
    lb = compiled.lb[first:last]
    ub = compiled.ub[first:last]
    task.putvarboundslice(first, last, _bound_keys(lb, ub), _finite(lb), _finite(ub))


def name(task: Any, names: FileNames) -> None:
    """Give every column, row and cone of a filled task its name."""
    for k, text in enumerate(names.columns):
        task.putvarname(k, text)
    for k, text in enumerate(names.rows):
        task.putconname(k, text)
    for k, text in enumerate(names.cones):
        task.putaccname(k, text)
    task.putobjname(names.objective)


def ptf_text(program: CompiledModel, names: FileNames) -> str:
    """Return a program without quadratics in MOSEK's text format.

    Raises
    ------
    MissingLibraryError
        MOSEK is not installed.
    UnsupportedProblemError
        It is infeasible by its constants, which such a file has no place for.
    """
    library = require_library("write")
    if program.contradiction is not None:
        raise UnsupportedProblemError(
            "write", "a program that may be feasible", f"{program.contradiction} cannot hold", "Write it as .cbf."
        )
    with library.Task() as task, tempfile.TemporaryDirectory() as folder:
        fill(task, program)
        name(task, names)
        path = Path(folder) / "model.ptf"
        task.writedata(str(path))
        return path.read_text(encoding="utf-8")


def scaled_rows(cone: ConeRows) -> tuple[Vector, sp.csr_array]:
    """Return (g, F): the cone's entries in MOSEK's order and scale."""
    order, scale = layout(cone.cone, cone.constant.size)
    matrix = sp.csr_array(sp.diags_array(scale) @ cone.matrix[order])
    return cone.constant[order] * scale + 0.0, matrix  # no -0, which MOSEK writes and does not read


def layout(cone: Cone, size: int) -> tuple[NDArray[np.intp], Vector]:
    """Return which of our entries stands at each of MOSEK's, and its factor."""
    if cone is Cone.EXPONENTIAL:
        return np.array([2, 1, 0]), np.ones(3)
    if cone is Cone.SEMIDEFINITE:
        pairs = np.array(list(_lower_triangle(side_of(size)))).T
        row, column = pairs
        return row * (row + 1) // 2 + column, np.where(row == column, 1.0, np.sqrt(2.0))
    return np.arange(size), np.ones(size)


def _lower_triangle(side: int) -> Iterator[tuple[int, int]]:
    """Yield (row, column) of the lower triangle, column by column."""
    return ((i, j) for j in range(side) for i in range(j, side))


def _append_cone(task: Any, cone: ConeRows) -> None:
    g, matrix = scaled_rows(cone)
    first = task.getnumafe()
    size = g.size
    task.appendafes(size)
    triples = matrix.tocoo()
    rows, columns = triples.coords
    task.putafefentrylist(first + rows.astype(np.int64), columns.astype(np.int32), triples.data)
    task.putafegslice(first, first + size, g)
    task.appendaccseq(_DOMAINS[cone.cone](task, size), first, None)


def _bound_keys(lower: Vector, upper: Vector) -> list[Any]:
    from mosek import boundkey

    table = {(False, False): boundkey.fr, (True, False): boundkey.lo, (False, True): boundkey.up}
    table[True, True] = boundkey.ra
    pairs = zip(np.isfinite(lower).tolist(), np.isfinite(upper).tolist(), (lower == upper).tolist(), strict=True)
    return [boundkey.fx if low and high and same else table[low, high] for low, high, same in pairs]


def _finite(bounds: Vector) -> Vector:
    """Replace what the bound key says is absent; MOSEK takes no NaN."""
    return np.where(np.isfinite(bounds), bounds, 0.0) + 0.0
