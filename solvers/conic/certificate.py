r"""The certificate of a primal and a dual point of a conic program, recomputed from its numbers alone.

With :math:`s \in K` and :math:`z \in K^*`, for :math:`\min \tfrac12 x^\top P x + q^\top x` and :math:`b - A x \in K`:

=================== ======================================== =====================================================
condition           numbers                                  relative to
=================== ======================================== =====================================================
primal              :math:`A x + s - b`, and s to K          :math:`\max(1, |A| |x| + |b|)`, row by row
dual                :math:`P x + q + A^\top z`, and z to K*  :math:`\max(10^{-2} c, |Px| + |q| + |A|^\top |z|)`
complementarity     :math:`s^\top z`, cone by cone, summed   :math:`\max(\kappa, |p|)`
gap                 :math:`p - d`                            the same
=================== ======================================== =====================================================

Here :math:`p = \tfrac12 x^\top P x + q^\top x + c_0` and :math:`d = -\tfrac12 x^\top P x - b^\top z + c_0` are the two
objectives, c is the greatest cost, and :math:`\kappa = \min(1, c)`, so that the unit of cost does not matter. The dual
residual is taken column by column: one dear column excuses no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.compile.compiled_model import power_of_two
from ceopt.solvers.compile.rows_and_cones import distance
from ceopt.solvers.cones import Cone
from ceopt.solvers.conic.form import ConicForm
from ceopt.solvers.problem import Certificate, Vector
from ceopt.solvers.tolerances import FEASIBLE_RESIDUAL, LEAST_CONIC_GAP, RAY_MISS, RAY_NOISE

# ==== The certificate of a primal and a dual point of a conic program, recomputed from its numbers alone ==============

_COSTLESS = (
    1e-2  # of the greatest cost: what adds up to less counts as this, as solvers stop at 1e-9 or so of that cost
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    r"""How far two points prove each other optimal.

    Parameters
    ----------
    certificate
        The four residuals.
    objective, bound
        Primal and dual objective of the form (to be minimised). The bound is valid as far as the dual point is
        feasible, which the certificate tells.
    doubt
        What the gap and the residuals together may be worth in the objective, relative to it:
        :math:`|p - d| + \sum_k |z_k^\top (A x + s - b)_k| + \max(|x|, \rho)^\top |P x + q + A^\top z|` over rows and
        cones k. The last two are how far, to first order, the residuals move the primal and the dual optimum;
        :math:`\rho_j` is how far column j may go where its residual improves the objective, if a bound ends that: at
        this price the bound's dual takes the residual up. The gap alone says little: of ``programs.validity_lower``
        with a radius of 0.01, points with gaps of 1e-8 are off by 6e-6.
    unit
        What the doubt is relative to.
    """

    certificate: Certificate
    objective: float
    bound: float
    doubt: float
    unit: float

    @property
    def is_primal_feasible(self) -> bool:
        """Whether the point may be shown."""
        return self.certificate.primal <= FEASIBLE_RESIDUAL

    @property
    def is_dual_feasible(self) -> bool:
        """Whether the bound may be."""
        return self.certificate.dual <= FEASIBLE_RESIDUAL

    def is_optimal(self, relative_gap: float) -> bool:
        """Whether no residual is above 1e-6, and all that is in doubt within the gap, or 1e-7 if that is more."""
        return self.certificate.worst <= FEASIBLE_RESIDUAL and self.doubt <= max(relative_gap, LEAST_CONIC_GAP)


def prove(form: ConicForm, x: Vector, s: Vector, z: Vector) -> Proof | None:
    """Return the proof that primal ``x``, ``s`` and dual ``z`` give; None if they are not finite.

    Parameters
    ----------
    x, s, z
        (n,), (m,), (m,), in the order of the form.
    """
    if not all(np.isfinite(part).all() for part in (x, s, z)):
        return None
    size = abs(form.A)
    cost = cost_unit(form)
    curved = form.hessian(x)
    objective = form.c0 + float(form.q @ x) + 0.5 * float(x @ curved)
    bound = form.c0 - 0.5 * float(x @ curved) - float(form.b @ z)
    unit = max(min(1.0, cost), abs(objective))
    primal = form.A @ x + s - form.b
    dual = curved + form.q + form.A.T @ z
    rows = np.maximum(1.0, size @ np.abs(x) + np.abs(form.b))
    columns = np.maximum(_COSTLESS * cost, np.abs(curved) + np.abs(form.q) + size.T @ np.abs(z))
    starts = _starts(form)
    far = np.maximum(np.abs(x), _reach(form, x, dual))
    doubt = abs(objective - bound) + float(np.abs(_sums(z * primal, starts)).sum()) + float(far @ np.abs(dual))
    misses = [
        np.abs(primal) / rows,
        outside(form, s) / _greatest(rows, starts),
        np.abs(dual) / columns,
        outside(form, z, dual=True) / _greatest(np.maximum(cost, np.abs(z)), starts),
    ]
    to_equations, to_cone, to_stationarity, to_dual_cone = (float(part.max(initial=0.0)) for part in misses)
    certificate = Certificate(
        primal=max(to_equations, to_cone),
        dual=max(to_stationarity, to_dual_cone),
        complementarity=float(np.abs(_sums(s * z, starts)).sum()) / unit,
        gap=abs(objective - bound) / unit,
    )
    return Proof(certificate=certificate, objective=objective, bound=bound, doubt=doubt / unit, unit=unit)


def is_dual_ray(form: ConicForm, z: Vector) -> bool:
    r"""Return whether ``z`` proves that no point exists: :math:`z \in K^*, A^\top z = 0, b^\top z < 0`.

    A point x would have :math:`0 \le z^\top (b - A x) = b^\top z - x^\top A^\top z`; so, with :math:`b^\top z = -1` and
    columns scaled to a greatest coefficient of 1, a residual r of the second condition speaks for all points below
    1 / r in size.
    """
    value = float(form.b @ z)
    if not (np.isfinite(z).all() and value < 0):
        return False
    z = z / -value
    size = abs(form.A)
    columns = greatest_along(size, 0)
    left = float((np.abs(form.A.T @ z) / columns).max(initial=0.0))
    added = float(((size.T @ np.abs(z)) / columns).max(initial=0.0))
    missed = float(outside(form, z, dual=True).max(initial=0.0))
    return left <= max(RAY_NOISE, RAY_MISS * min(1.0, added)) and missed <= RAY_NOISE * float(np.abs(z).max())


def is_primal_ray(form: ConicForm, x: Vector) -> bool:
    r"""Return whether ``x`` improves any feasible point for ever: :math:`-A x \in K, P x = 0, q^\top x < 0`.

    With columns scaled to a greatest coefficient of 1 and then costs to 1, and :math:`q^\top x = -1`, a miss of m in a
    row whose greatest coefficient is 1 speaks for all points below 1 / m in size. Scaled by the cost alone, a cheap
    step along a column with small coefficients would hide beside the others of its cone. What a solver leaves at its
    noise is not held against the ray: without these steps it is looked at too, as a ray of its own.
    """
    if not np.isfinite(x).all():
        return False
    steps = np.abs(x) * greatest_along(abs(form.A), 0)
    cleaned = np.where(steps <= RAY_MISS * steps.max(initial=0.0), 0.0, x)
    return _is_primal_ray(form, x) or _is_primal_ray(form, cleaned)


def _is_primal_ray(form: ConicForm, x: Vector) -> bool:
    value = float(form.q @ x)
    size = abs(form.A)
    if not value < 0:
        return False
    columns = greatest_along(size, 0)
    x = x / -value * float((np.abs(form.q) / columns).max())
    units = sp.diags_array(1.0 / columns)
    curvature = float(np.abs((units @ form.P @ units).data).max(initial=0.0)) or 1.0
    bends = float((np.abs(form.hessian(x)) / columns).max(initial=0.0)) / curvature
    starts = _starts(form)
    rows = _greatest(greatest_along(sp.csc_array(size @ units), 1), starts)
    added = _greatest(size @ np.abs(x), starts)
    misses = outside(form, -(form.A @ x)) / rows
    return bends <= RAY_MISS and bool(np.all(misses <= np.maximum(RAY_NOISE, RAY_MISS * np.minimum(1.0, added / rows))))


def outside(form: ConicForm, values: Vector, *, dual: bool = False) -> Vector:
    """Return how far rows are outside of their cones, or the dual ones: one number per linear row, then per cone."""
    zero = values[: form.zero]
    rest = values[form.zero : form.linear]
    parts = [np.zeros(form.zero) if dual else np.abs(zero), np.maximum(0.0, -rest)]
    distances = np.empty(len(form.cones))
    for k, (cone, rows) in enumerate(form.slices()):
        entries = values[rows]
        if cone is Cone.SEMIDEFINITE:
            entries = entries / form.scale[rows]
        elif cone is Cone.EXPONENTIAL and dual:  # (u, v, w) is dual exactly if (u - v, -u, w) is in the cone itself
            entries = np.array([entries[0] - entries[1], -entries[0], entries[2]])
        distances[k] = distance(cone, entries)
    return np.concatenate([*parts, distances])


def cost_unit(form: ConicForm) -> float:
    """Return the greatest cost coefficient; 1 if there is none."""
    greatest = max(float(np.abs(form.q).max(initial=0.0)), float(np.abs(form.P.data).max(initial=0.0)))
    return greatest or 1.0


def _reach(form: ConicForm, x: Vector, dual: Vector) -> Vector:
    """Return how far each column is, against the sign of its dual residual, from its bound; 0 where it has none."""
    matrix = form.A[: form.linear].tocsr()
    alone = np.flatnonzero(np.diff(matrix.indptr) == 1)
    at = matrix.indptr[alone]
    column = matrix.indices[at]
    coefficient = matrix.data[at]
    room = np.maximum(0.0, form.b[alone] - coefficient * x[column]) / np.abs(coefficient)
    ends = coefficient * dual[column] < 0  # x <= u ends what a negative residual asks for
    reach = np.full(x.size, np.inf)
    np.minimum.at(reach, column[ends], room[ends])
    return np.where(np.isfinite(reach), reach, 0.0)


def _starts(form: ConicForm) -> NDArray[np.intp]:
    """Return the first row of every linear row and cone."""
    return np.array([*range(form.linear), *(rows.start for _, rows in form.slices())], dtype=np.intp)


def _greatest(values: Vector, starts: NDArray[np.intp]) -> Vector:
    """Return the greatest value of each part."""
    if starts.size:
        return np.asarray(np.maximum.reduceat(values, starts))
    return np.zeros(0)


def _sums(values: Vector, starts: NDArray[np.intp]) -> Vector:
    if starts.size:
        return np.asarray(np.add.reduceat(values, starts))
    return np.zeros(0)


def greatest_along(size: sp.csc_array, axis: int) -> Vector:
    """Return the greatest coefficient of each row (axis 1) or column; 1 where there is none."""
    if not all(size.shape):
        return np.ones(size.shape[1 - axis])
    greatest = size.max(axis=axis).toarray().ravel()
    greatest[greatest == 0] = 1.0
    return np.asarray(greatest, dtype=np.float64)


# ==== Columns and rows in units near 1, so that a conic solver's tolerances mean something for each of them ===========

_NEAR = 1e3  # greatest coefficients between the inverse of this and this are left to the solver's own scaling


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    r"""A form whose columns, linear rows and costs were multiplied by powers of two, exactly.

    Solvers measure the residual of a row against the size of x itself, of :math:`10^{-8} x \ge 1` against 1e8.
    """

    form: ConicForm
    columns: Vector
    rows: Vector
    cost: float

    def unscaled(self, x: Vector, s: Vector, z: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the points in the units of the form that was scaled."""
        return x * self.columns, s / self.rows, z * self.rows / self.cost


def scalings(form: ConicForm) -> Iterator[Scaled]:
    """Yield the form in better units, tiny and huge costs near 1; after huge ones, also with the costs as they are.

    Tolerances are absolute for an objective below 1, and so too coarse for tiny costs, or for an optimum that is small
    beside its costs. With huge costs, on the other hand, Clarabel takes any step for a ray.
    """
    first = _scaled(form)
    yield first
    if first.cost < 1.0:
        yield replace(first, form=_with_costs(first.form, 1.0 / first.cost), cost=1.0)


def _scaled(form: ConicForm) -> Scaled:
    columns = _units(greatest_along(abs(form.A), 0))
    A = form.A @ sp.diags_array(columns)
    rows = np.ones(form.b.size)
    rows[: form.linear] = _units(greatest_along(abs(sp.csc_array(A)), 1)[: form.linear])
    wide = sp.diags_array(columns)
    better = replace(
        form,
        A=sp.csc_array(sp.diags_array(rows) @ A),
        b=form.b * rows,
        P=sp.csc_array(wide @ form.P @ wide),
        q=form.q * columns,
    )
    unit = cost_unit(better)
    cost = 1.0 if 1.0 <= unit <= _NEAR else power_of_two(1.0 / unit)
    return Scaled(_with_costs(better, cost), columns, rows, cost)


def _with_costs(form: ConicForm, times: float) -> ConicForm:
    return replace(form, P=form.P * times, q=form.q * times, c0=form.c0 * times)


def _units(greatest: Vector) -> Vector:
    """Return the power of two that brings each size near 1; 1 where it is near enough."""
    far = (greatest > _NEAR) | (greatest < 1.0 / _NEAR)
    return np.where(far, 2.0 ** np.round(-np.log2(greatest)), 1.0)
