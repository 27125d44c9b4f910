r"""Second-order cones as quadratic rows, for files that know no cones: an exact restatement.

.. math::
    t \ge \lVert v \rVert \iff v^\top v - t^2 \le 0,\ t \ge 0 \qquad
    2tu \ge \lVert v \rVert^2,\ t, u \ge 0 \iff v^\top v - 2tu \le 0,\ t, u \ge 0

An entry that is a number or a Var stands in the row itself; an affine one gets a column, and a row that says what it
is. So does a head that may be negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import pyomo.environ as pyo
from pyomo.core.base.expression import NamedExpressionData

from ceopt.solvers.compile.pyomo_walker import Recorder, Walker
from ceopt.solvers.cones import Cone, ConeMargin
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.solvers.files.model_builder import add

__all__ = ["cones_as_quadratic_rows"]

_HEADS = {Cone.SECOND_ORDER: 1, Cone.ROTATED: 2}


@contextmanager
def cones_as_quadratic_rows(model: Any, suffix: str) -> Iterator[dict[int, Any]]:
    """Put quadratic rows in the place of the model's active second-order cones for the time of writing.

    Yields
    ------
    dict
        ``id`` of each component that was added -> the constraint that it is for.

    Raises
    ------
    UnsupportedProblemError
        A cone is semidefinite or exponential, or not stated as a cone.
    """
    active = model.component_data_objects(pyo.Constraint, active=True)
    found = [(con, margin) for con in active if (margin := _margin(con)) is not None]
    for con, margin in found:
        if margin.cone not in _HEADS:
            raise UnsupportedProblemError(
                "write",
                f"linear, quadratic and second-order constraints in a file that ends in {suffix}",
                f"constraint {con.name!r} is a cone of the {margin.cone} kind",
                "Write the model as .cbf.",
            )
        Walker(Recorder()).row(con)  # refuses other bounds than 0, and entries that are not affine
    if not found:
        yield {}
        return
    block = add(model, "cones", pyo.Block(concrete=True))
    try:
        restating = _Restating(block)
        for con, margin in found:
            con.deactivate()
            restating.add(con, margin)
        yield restating.origin
    finally:
        for con, _ in found:
            con.activate()
        model.del_component(block)


@final
class _Restating:
    """Columns and rows on a block of their own, under the names of the constraints that they are for."""

    def __init__(self, block: Any) -> None:
        self._block = block
        self._homes: dict[tuple[int, str], Any] = {}
        self.origin: dict[int, Any] = {}

    def add(self, con: Any, margin: Any) -> None:
        """Add one cone's row, and the columns and rows of entries that cannot stand in it."""
        n_heads = _HEADS[margin.cone]
        entries = list(margin.args)
        numbers = [_is_number(entry) for entry in entries]
        for k, entry in enumerate(entries):
            is_head = k < n_heads
            # a row of numbers alone would be none: its first entry becomes a column
            if not (k == 0 and all(numbers)) and _stands(entry, is_number=numbers[k], is_head=is_head):
                entries[k] = pyo.value(entry) if numbers[k] else entry
                continue
            column = self._home(con, "_entry", pyo.Var)[_index(con, k)]
            if is_head:
                column.setlb(0.0)
            row = self._home(con, "_entry_is", pyo.Constraint)
            row[_index(con, k)] = column == entry
            self._trace(con, column, row[_index(con, k)])
            entries[k] = column
        tail = entries[n_heads:]
        if tail:
            product = entries[0] * entries[0] if n_heads == 1 else 2.0 * entries[0] * entries[1]
            row = self._home(con, "", pyo.Constraint)
            row[_index(con)] = pyo.quicksum(entry * entry for entry in tail) - product <= 0
            self._trace(con, row[_index(con)])

    def _home(self, con: Any, ending: str, kind: Any) -> Any:
        """Return the component for what one constraint's members add."""
        parent = con.parent_component()
        key = (id(parent), ending)
        if key not in self._homes:
            name = parent.local_name.strip("'") + ending
            if not ending and not parent.is_indexed():
                component = kind([None])
            elif kind is pyo.Var:
                component = kind(pyo.Any, dense=False)
            else:
                component = kind(pyo.Any)
            self._homes[key] = add(self._block, name, component)
        return self._homes[key]

    def _trace(self, con: Any, *members: Any) -> None:
        self.origin.update((id(member), con) for member in members)


def _margin(con: Any) -> Any:
    body = con.body
    while isinstance(body, NamedExpressionData):
        body = body.expr
    if body.__class__ is ConeMargin:
        return body
    return None


def _index(con: Any, *more: int) -> Any:
    """Return the constraint's index with more behind it."""
    index = con.index()
    if index is None:
        index = ()
    elif not isinstance(index, tuple):
        index = (index,)
    whole = (*index, *more)
    if not whole:
        return None
    if len(whole) == 1:
        return whole[0]
    return whole


def _is_number(entry: Any) -> bool:
    if not hasattr(entry, "is_potentially_variable") or not entry.is_potentially_variable():
        return True
    return bool(entry.is_variable_type() and entry.fixed)


def _stands(entry: Any, *, is_number: bool, is_head: bool) -> bool:
    """Whether an entry can stand in the quadratic row itself."""
    if is_number:
        return not is_head or pyo.value(entry) >= 0
    if not entry.is_variable_type():
        return False
    return not is_head or (entry.lb is not None and entry.lb >= 0)
