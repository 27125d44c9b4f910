r"""Second-order, semidefinite and exponential cones as expressions for an ordinary ``pyo.Constraint``.

Each expression is a margin: a number that is at least 0 exactly where the affine map of its arguments lies in the cone.

========================== ============================================== ==========================================
expression                 margin                                         cone
========================== ============================================== ==========================================
``soc(t, v)``              :math:`t - \lVert v \rVert`                    :math:`t \ge \lVert v \rVert`
``soc_affine(t, F, xs)``   :math:`t - \lVert F x \rVert`                  the same, coefficients as an array
``rotated_soc(t, u, v)``   :math:`\min(t, u, 2tu - \lVert v \rVert^2)`    :math:`2tu \ge \lVert v \rVert^2`; t, u >= 0
``psd(M)``                 :math:`\lambda_{\min}(M)`                      :math:`M \succeq 0`
``psd_affine(F0, Fs, xs)`` :math:`\lambda_{\min}(F_0 + \sum_k x_k F_k)`   the same, coefficients as arrays
``exponential(x, y, z)``   :math:`z - y e^{x/y}`                          :math:`z \ge y e^{x/y}`, y > 0
========================== ============================================== ==========================================

State it as ``pyo.Constraint(expr=soc(m.t, [m.x, m.y]) >= 0)``. The constraint can be indexed, deactivated, cloned,
pickled and printed, its body and slack are true residuals, and a writer or solver that does not know the cone refuses
the model, where any component of another kind would silently be left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.core.base.indexed_component_slice import IndexedComponent_slice
from pyomo.core.expr.compare import compare_expressions
from pyomo.core.expr.numeric_expr import NumericExpression
from pyomo.core.expr.visitor import identify_mutable_parameters, identify_variables
from pyomo.repn.linear import LinearRepnVisitor
from pyomo.repn.util import OrderedVarRecorder

from ceopt.solvers.checks import Floats, Matrix
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedProblemError

__all__ = [
    "Cone",
    "ConeMargin",
    "exponential",
    "margin_of",
    "psd",
    "psd_affine",
    "rotated_soc",
    "side_of",
    "soc",
    "soc_affine",
    "triangle",
]


class Cone(StrEnum):
    """The kinds of cone, each with the order of its entries."""

    SECOND_ORDER = "second-order"
    """(t, v): t at least the norm of v."""
    ROTATED = "rotated second-order"
    """(t, u, v): 2tu at least the squared norm of v, t and u at least 0."""
    SEMIDEFINITE = "semidefinite"
    """Upper triangle of a symmetric matrix, column by column, unscaled: m11, m12, m22, m13, m23, m33, ..."""
    EXPONENTIAL = "exponential"
    """(x, y, z): z at least y exp(x / y), y above 0; and the limit x <= 0 = y, z >= 0."""

    @property
    def heads(self) -> int:
        """How many first entries bound the norm of the others: 1 or 2 of the second-order cones, else 0."""
        return {Cone.SECOND_ORDER: 1, Cone.ROTATED: 2}.get(self, 0)


def triangle(side: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return (i, j), i <= j, of the upper triangle column by column."""
    j = np.repeat(np.arange(side), np.arange(1, side + 1))
    return np.arange(j.size) - j * (j + 1) // 2, j


def side_of(entries: int) -> int:
    """Return the side of the matrix whose triangle has so many entries."""
    return (math.isqrt(8 * entries + 1) - 1) // 2


def margin_of(cone: Cone, entries: Floats) -> float:
    """Return the margin of a cone at its entries: at least 0 exactly inside."""
    if cone is Cone.SECOND_ORDER:
        return float(entries[0] - np.linalg.norm(entries[1:]))
    if cone is Cone.ROTATED:
        t = float(entries[0])
        u = float(entries[1])
        return min(t, u, 2.0 * t * u - float(entries[2:] @ entries[2:]))
    if cone is Cone.SEMIDEFINITE:
        side = side_of(entries.size)
        i, j = triangle(side)
        matrix = np.empty((side, side))
        matrix[i, j] = matrix[j, i] = entries
        if np.isfinite(entries).all():
            return float(np.linalg.eigvalsh(matrix)[0])
        return math.nan
    x, y, z = (float(entry) for entry in entries)
    if y <= 0.0:
        if y < 0.0:
            return y
        if x <= 0.0:
            return z
        return -math.inf
    try:
        return z - y * math.exp(x / y)
    except OverflowError:
        return -math.inf


@final
class ConeMargin(NumericExpression):  # type: ignore[misc]
    """The margin of one cone: what ``soc``, ``psd`` and the others return.

    ``args`` are the entries themselves in the cone's order; with an affine map, they are the arguments of
    ``constant + matrix @ args``, which are the entries.
    """

    __slots__ = ("affine", "cone")
    PRECEDENCE = None

    def __init__(self, args: Sequence[Any], cone: Cone, affine: tuple[Floats, sp.csc_array] | None = None) -> None:
        super().__init__(tuple(args))
        self.cone = cone
        self.affine = affine

    def nargs(self) -> int:
        """Return the number of arguments."""
        return len(self._args_)

    def create_node_with_local_data(self, args: Sequence[Any], classtype: Any = None) -> Any:
        """Return the same margin of other arguments; how Pyomo clones and substitutes."""
        return (classtype or self.__class__)(args, self.cone, self.affine)

    def getname(self, *_args: Any, **_kwds: Any) -> str:
        """Return the name that a printed model shows."""
        return f"{self.cone.name.lower()}_margin"

    def is_fixed(self) -> bool:
        """Never folded into a constant, so that membership is always checked."""
        return False

    def _compute_polynomial_degree(self, _result: Any) -> None:
        return None

    def _apply_operation(self, result: Any) -> float:
        values = np.array([float(value) for value in result])
        if self.affine is not None:
            constant, matrix = self.affine
            values = constant + matrix @ values
        return margin_of(self.cone, values)

    def _to_string(self, values: Sequence[Any], _verbose: Any, smap: Any) -> str:
        if smap is not None:  # a writer of text, GAMS and BARON say, that would put our word for it into its file
            raise UnsupportedProblemError(
                "This writer", "a model without cones", f"it has one of the {self.cone} kind",
                "Use ceopt.write: .cbf, .ptf, or for second-order cones .lp and .mps.",
            )  # fmt: skip
        shown = values
        if len(values) > 12:
            shown = [*values[:12], f"... {len(values)} in all"]
        return f"{self.getname()}({', '.join(map(str, shown))})"


def soc(t: Any, v: Iterable[Any]) -> Any:
    r"""Return :math:`t - \lVert v \rVert`, at least 0 exactly in the second-order cone.

    Parameters
    ----------
    t
        An affine expression.
    v
        Affine expressions: a sequence, an array or an indexed Var.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import solve
    >>> from ceopt.solvers.cones import soc
    >>> m = pyo.ConcreteModel()
    >>> m.t, m.x, m.y = pyo.Var(), pyo.Var(bounds=(3, None)), pyo.Var(bounds=(4, None))
    >>> m.near = pyo.Constraint(expr=soc(m.t, [m.x, m.y]) >= 0)
    >>> m.cost = pyo.Objective(expr=m.t)
    >>> round(solve(m).objective, 6)
    5.0
    """
    return ConeMargin([_scalar("soc", "t", t), *_vector("soc", v)], Cone.SECOND_ORDER)


def soc_affine(t: Any, F: Any, xs: Iterable[Any]) -> Any:  # noqa: N803  (named as in the field's texts)
    r"""Return :math:`t - \lVert F x \rVert`, with the coefficients kept as an array: for dense factors of many columns.

    Parameters
    ----------
    t
        An affine expression.
    F
        (k, n) numbers, dense or sparse.
    xs
        n Vars or affine expressions: a sequence, an array or an indexed Var.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        F is no matrix of finite numbers, or has not as many columns as there are xs.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.solvers import solve
    >>> from ceopt.solvers.cones import soc_affine
    >>> m = pyo.ConcreteModel()
    >>> m.t, m.x = pyo.Var(), pyo.Var([0, 1], bounds=(1, None))
    >>> m.near = pyo.Constraint(expr=soc_affine(m.t, [[3, 0], [0, 4]], m.x) >= 0)
    >>> m.cost = pyo.Objective(expr=m.t)
    >>> round(solve(m).objective, 6)
    5.0
    """
    who = "soc_affine"
    arguments = _vector(who, xs)
    dense = F
    if hasattr(F, "toarray"):
        dense = F.toarray()
    factor = Matrix((None, len(arguments)), "Give one column for each x.").require(who, "F", dense)
    entries = sp.block_diag([sp.coo_array(np.ones((1, 1))), sp.coo_array(factor)], format="csc")
    constant = np.zeros(entries.shape[0])
    return ConeMargin([_scalar(who, "t", t), *arguments], Cone.SECOND_ORDER, (constant, sp.csc_array(entries)))


def rotated_soc(t: Any, u: Any, v: Iterable[Any]) -> Any:
    r"""Return a margin of :math:`2tu \ge \lVert v \rVert^2,\ t, u \ge 0`: the least of t, u and the difference.

    With u = 1 / 2 it states the square: t at least the squared norm of v.
    """
    who = "rotated_soc"
    return ConeMargin([_scalar(who, "t", t), _scalar(who, "u", u), *_vector(who, v)], Cone.ROTATED)


def psd(M: Any) -> Any:  # noqa: N803  (named as in the field's texts)
    """Return the least eigenvalue of a symmetric matrix of affine expressions, at least 0 exactly if semidefinite.

    Parameters
    ----------
    M
        Square: nested sequences or an array, with numbers, Vars and affine expressions.

    Raises
    ------
    InvalidValueError
        It is not square, or two entries that mirror each other differ.
    """
    rows = _rows_of(M)
    side = len(rows)
    if not side or any(len(row) != side for row in rows):
        lengths = sorted({len(row) for row in rows})
        shape = f"{side} rows of {' and '.join(map(str, lengths))} entries" if rows else _short(M)
        raise InvalidValueError("psd", "a square matrix", f"M is {shape}", "Give n rows of n entries.")
    for i in range(side):
        for j in range(i):
            if not _are_same(rows[i][j], rows[j][i]):
                raise InvalidValueError(
                    "psd",
                    "a symmetric matrix",
                    f"M[{i}][{j}] is {_short(rows[i][j])} and M[{j}][{i}] is {_short(rows[j][i])}",
                    "Give the same expression twice, or (M + M') / 2.",
                )
    entries = [_scalar("psd", f"M[{i}][{j}]", rows[i][j]) for j in range(side) for i in range(j + 1)]
    return ConeMargin(entries, Cone.SEMIDEFINITE)


def psd_affine(F0: Any, Fs: Sequence[Any], xs: Iterable[Any]) -> Any:  # noqa: N803  (named as in the field's texts)
    r"""Return the least eigenvalue of :math:`F_0 + \sum_k x_k F_k`, with the coefficients kept as arrays.

    Parameters
    ----------
    F0
        (n, n) symmetric numbers, dense or sparse.
    Fs
        One such matrix per x.
    xs
        Vars or affine expressions: a sequence, an array or an indexed Var.

    Raises
    ------
    InvalidValueError
        A matrix is not symmetric, not finite or of another shape, or there are not as many as xs.
    """
    arguments = _vector("psd_affine", xs)
    if not isinstance(Fs, Iterable) or isinstance(Fs, str | Mapping | AbstractSet) or sp.issparse(Fs):
        raise InvalidTypeError("psd_affine", "a sequence of matrices as Fs", f"it got {_short(Fs)}", "Give a list.")
    matrices = list(Fs)
    if len(matrices) != len(arguments):
        raise InvalidValueError(
            "psd_affine", "one matrix per x", f"Fs has {len(matrices)}, xs {len(arguments)}", "Match them."
        )
    first = _symmetric("F0", F0, None)
    side = first.shape[0]
    i, j = triangle(side)
    columns = [_upper(_symmetric(f"Fs[{k}]", F, side)) for k, F in enumerate(matrices)]
    starts = np.cumsum([0, *(rows.size for rows, _ in columns)])
    rows = np.concatenate([np.zeros(0, dtype=np.intp), *(rows for rows, _ in columns)])
    values = np.concatenate([np.zeros(0), *(values for _, values in columns)])
    constant = first[i, j]
    matrix = sp.csc_array((values, rows, starts), shape=(i.size, len(columns)))
    return ConeMargin(arguments, Cone.SEMIDEFINITE, (constant, matrix))


def exponential(x: Any, y: Any, z: Any) -> Any:
    r"""Return :math:`z - y e^{x/y}`, at least 0 exactly in the exponential cone (y above 0, and its limit at 0).

    With y = 1 it states z >= exp(x), and so x <= log(z).
    """
    entries = [_scalar("exponential", name, value) for name, value in (("x", x), ("y", y), ("z", z))]
    return ConeMargin(entries, Cone.EXPONENTIAL)


# -- checks ------------------------------------------------------------------------------------------------------------
def _scalar(who: str, name: str, value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
        value = value.item()
    if isinstance(value, IndexedComponent_slice) or (hasattr(value, "is_indexed") and value.is_indexed()):
        raise InvalidTypeError(
            who, f"one expression as {name}", f"{name} is {_short(value)}, which is indexed", "Index it."
        )
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number and not (hasattr(value, "is_numeric_type") and value.is_numeric_type()):
        raise InvalidTypeError(who, "numbers, Vars and affine expressions", f"{name} is {_short(value)}", "Change it.")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValueError(who, "finite numbers", f"{name} is {value}", "Change it.")
    return value


def _vector(who: str, values: Any) -> list[Any]:
    name = "xs" if who in {"psd_affine", "soc_affine"} else "v"
    if hasattr(values, "is_indexed") and not isinstance(values, IndexedComponent_slice):
        values = values.values() if values.is_indexed() else [values]
    if isinstance(values, str | Mapping | AbstractSet) or not isinstance(values, Iterable):
        raise InvalidTypeError(who, f"a sequence of expressions as {name}", f"it got {_short(values)}", "Give a list.")
    return [_scalar(who, f"{name}[{k}]", value) for k, value in enumerate(values)]


def _rows_of(matrix: Any) -> list[list[Any]]:
    """Return a matrix as lists; anything whose iteration gives keys or letters, and not entries, is refused."""
    for dense in ("toarray", "to_numpy"):
        if hasattr(matrix, dense):
            matrix = getattr(matrix, dense)()
    refused = (str, Mapping, AbstractSet)
    if isinstance(matrix, refused) or not isinstance(matrix, Iterable) or hasattr(matrix, "is_indexed"):
        raise InvalidTypeError("psd", "a matrix as nested lists or an array", f"M is {_short(matrix)}", "Give rows.")
    rows = list(matrix)
    for k, row in enumerate(rows):
        if isinstance(row, refused) or not isinstance(row, Iterable):
            raise InvalidTypeError("psd", "a matrix of rows", f"M[{k}] is {_short(row)}", "Give a list per row.")
    return [list(row) for row in rows]


def _symmetric(name: str, given: Any, side: int | None) -> Floats:
    plain = given
    if hasattr(given, "toarray"):
        plain = given.toarray()
    try:
        matrix = None
        if np.isrealobj(plain):
            matrix = np.asarray(plain, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = None
    if matrix is None:
        raise InvalidTypeError("psd_affine", "matrices of real numbers", f"{name} is {_short(given)}", "Use psd(M).")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size or side not in {None, len(matrix)}:
        wanted = "(n, n)"
        if side is not None:
            wanted = f"({side}, {side})"
        raise InvalidValueError("psd_affine", f"matrices of shape {wanted}", f"{name} has {matrix.shape}", "Change it.")
    if not np.isfinite(matrix).all():
        raise InvalidValueError("psd_affine", "finite numbers", f"{name} has NaN or an infinity", "Change it.")
    off = np.abs(matrix - matrix.T).max()
    if off > 1e-12 * max(1.0, float(np.abs(matrix).max())):
        raise InvalidValueError(
            "psd_affine", "symmetric matrices", f"{name} differs from its transpose by {off:.3g}", "Symmetrise it."
        )
    return 0.5 * (matrix + matrix.T)


def _upper(matrix: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the places in :func:`triangle` of the entries of the upper triangle that are not 0, and the entries."""
    j, i = np.nonzero(np.tril(matrix))
    return j * (j + 1) // 2 + i, matrix[j, i]


def _are_same(one: Any, other: Any) -> bool:
    """Whether two entries are the same expression for all values of their Vars and Params; numbers up to rounding."""
    if one is other:
        return True
    if all(isinstance(entry, int | float | np.number) for entry in (one, other)):
        return abs(float(one) - float(other)) <= 1e-12 * max(1.0, abs(float(one)))
    if not any(getattr(entry, "is_expression_type", bool)() for entry in (one, other)):
        return False  # a Var or Param, and another one or a number
    if compare_expressions(one, other):
        return True
    params = [set(map(id, identify_mutable_parameters(entry))) for entry in (one, other)]
    if params[0] != params[1]:
        return False
    difference: Any = one - other
    columns = OrderedVarRecorder({}, {}, None)
    for var in identify_variables(difference, include_fixed=True):
        columns.var_map[id(var)] = var
        columns.var_order[id(var)] = len(columns.var_order)
    repn = LinearRepnVisitor({}, var_recorder=columns).walk_expression(difference)
    if repn.nonlinear is not None:
        return True  # not affine: the walk over the model says so of the entry itself
    return max(abs(float(value)) for value in (repn.constant, *repn.linear.values())) <= 1e-12


def _short(value: Any) -> str:
    text = str(value)
    if len(text) <= 60:
        return text
    return text[:57] + "..."
