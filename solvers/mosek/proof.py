r"""The proof of MOSEK's primal and dual solution, put into the conic form and measured there.

MOSEK's dual of :math:`\min c^\top x` with :math:`l_c \le A x \le u_c,\ l_x \le x \le u_x,\ F x + g \in K` has

.. math::
    c = A^\top (s_l^c - s_u^c) + s_l^x - s_u^x + F^\top \dot y,

all s non-negative and :math:`\dot y` in the dual cone; to maximise, all of them have the other sign. In the form, where
:math:`q + A^\top z = 0`, z of a row is s of its side, and z of a cone is :math:`\dot y` in the form's order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ceopt.solvers.cones import Cone
from ceopt.solvers.conic.certificate import Proof, prove
from ceopt.solvers.conic.form import ConicForm, conic_form
from ceopt.solvers.mosek.task import layout
from ceopt.solvers.problem import Vector

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel

__all__ = ["MosekDual", "proof_of"]


@final
@dataclass(frozen=True, slots=True)
class MosekDual:
    """A dual solution: of the rows' lower and upper sides, of the columns', and of all cones below one another."""

    slc: Vector
    suc: Vector
    slx: Vector
    sux: Vector
    doty: Vector

    @classmethod
    def of(cls, task: Any, which: Any) -> MosekDual:
        """Read one of the task's solutions."""
        cones = ()
        if task.getnumacc():
            cones = task.getaccdotys(which)
        parts = (task.getslc(which), task.getsuc(which), task.getslx(which), task.getsux(which), cones)
        return cls(*(np.array(part, dtype=np.float64) for part in parts))


def proof_of(program: CompiledModel, x: Vector, dual: MosekDual) -> Proof | None:
    """Return what the two prove of a continuous program without quadratics; None if they are not numbers."""
    form = conic_form(program, "MOSEK")
    free = x[form.free]
    return prove(form, free, form.b - form.A @ free, _in_form(form, program, dual))


def _in_form(form: ConicForm, program: CompiledModel, dual: MosekDual) -> Vector:
    """Return z of the form."""
    z = np.empty(form.b.size)
    row_of = {id(row): k for k, row in enumerate(program.rows)}
    column_of = {id(column): k for k, column in enumerate(program.columns)}
    ends = np.cumsum([cone.constant.size for cone in program.cones], dtype=int).tolist()
    cone_of = {
        id(cone.constraint): (cone.cone, dual.doty[end - cone.constant.size : end])
        for cone, end in zip(program.cones, ends, strict=True)
    }
    seen: set[int] = set()
    for k, (source, rows) in enumerate(form.rows_of()):
        key = id(source)
        if key in row_of and k < form.zero:
            z[k] = dual.suc[row_of[key]] - dual.slc[row_of[key]]
        elif key in row_of or key in column_of:
            at, lower, upper, high = (
                (row_of[key], dual.slc, dual.suc, program.row_ub)
                if key in row_of
                else (column_of[key], dual.slx, dual.sux, program.ub)
            )
            z[k] = lower[at] if key in seen or not np.isfinite(high[at]) else upper[at]  # the upper side comes first
            seen.add(key)
        else:
            z[rows] = _entries(*cone_of[key])
    return program.sense * z


def _entries(cone: Cone, doty: Vector) -> Vector:
    """Return one cone's dual in the form's order; a rotated cone is turned into a second-order one."""
    entries = np.empty(doty.size)
    entries[layout(cone, doty.size)[0]] = doty
    if cone is Cone.ROTATED:
        t = doty[0]
        u = doty[1]
        entries[:2] = np.array([t + u, t - u]) / np.sqrt(2.0)
    return entries
