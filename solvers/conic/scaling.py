"""Columns and rows in units near 1, so that a conic solver's tolerances mean something for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.conic.certificate import cost_unit, greatest_along
from ceopt.solvers.conic.form import ConicForm
from ceopt.solvers.problem import Vector

__all__ = ["Scaled", "scalings"]

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

    def back(self, x: Vector, s: Vector, z: Vector) -> tuple[Vector, Vector, Vector]:
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
    cost = 1.0 if 1.0 <= unit <= _NEAR else _power_of_two(1.0 / unit)
    return Scaled(_with_costs(better, cost), columns, rows, cost)


def _with_costs(form: ConicForm, times: float) -> ConicForm:
    return replace(form, P=form.P * times, q=form.q * times, c0=form.c0 * times)


def _units(greatest: Vector) -> Vector:
    """Return what brings each to 1, or 1 where it is near enough."""
    far = (greatest > _NEAR) | (greatest < 1.0 / _NEAR)
    return np.where(far, 2.0 ** np.round(-np.log2(greatest)), 1.0)


def _power_of_two(value: float) -> float:
    return float(2.0 ** np.round(np.log2(value)))
