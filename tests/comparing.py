"""Whether two compiled models are the same program, array by array and by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

_CONSTANT = ("ONE_VAR_CONSTANT", "c_e_ONE_VAR_CONSTANT")  # how Pyomo's files carry the objective's constant


@dataclass(frozen=True, slots=True)
class Arrays:
    """A program over columns in the order of their names; rows by name: (kind, lower, upper, coefficients)."""

    columns: list[str]
    sense: int
    constant: float
    vectors: dict[str, Any]
    rows: dict[str, tuple[str, float, float, Any]]


def arrays_of(compiled: Any, objective: str, table: Mapping[str, Mapping[str, str]] | None = None) -> Arrays:
    """Return the arrays by the names of the original's components.

    Parameters
    ----------
    compiled
        The original, or what was read from a file. Columns without any coefficient are left out.
    objective
        Name of the original's objective, which names what was made for it.
    table
        The contents of the file's .names.json, for what was read.
    """

    def name(member: Any) -> str:
        if not hasattr(member, "parent_component"):
            return objective
        return str(member.name) if table is None else table[member.name.replace("'", "")]["component"]

    is_extra = np.array([column.name in _CONSTANT for column in compiled.columns], dtype=bool)
    kept = np.flatnonzero(~is_extra & _stands_somewhere(compiled))
    labels = [name(compiled.columns[k]) for k in kept.tolist()]
    assert len(set(labels)) == len(labels)
    order = kept[np.argsort(labels)]
    n = len(compiled.columns)
    vectors = {
        "lb": compiled.lb[order],
        "ub": compiled.ub[order],
        "c": compiled.c[order],
        "integer": compiled.integer[order],
        "Q": _full(compiled.Q, n)[np.ix_(order, order)],
    }
    rows: dict[str, tuple[str, float, float, Any]] = {}
    for r, row in enumerate(compiled.rows):
        if row.name not in _CONSTANT:
            body = compiled.A[[r]].toarray()[0][order]
            _merge(rows, name(row), ("row", float(compiled.row_lb[r]), float(compiled.row_ub[r]), body))
    for row in compiled.quadratics:
        square = _full(row.Q, n)[np.ix_(order, order)]
        body = np.concatenate([row.a.toarray()[0][order], square.ravel()])
        _merge(rows, name(row.constraint), ("quadratic", row.lower, row.upper, body))
    for cone in compiled.cones:
        body = np.column_stack([cone.constant, cone.matrix.toarray()[:, order]])
        _merge(rows, name(cone.constraint), (cone.cone.value, 0.0, np.inf, body))
    constant = compiled.c0 + float(compiled.c[is_extra].sum())
    return Arrays(sorted(labels), compiled.sense, constant, vectors, rows)


def assert_same(one: Arrays, other: Arrays, *, rtol: float = 0.0) -> None:
    """Assert that two programs are the same; a relative tolerance of 0 asks for the same bits."""

    def close(first: Any, second: Any, what: str) -> None:
        np.testing.assert_allclose(np.asarray(second, float), np.asarray(first, float), rtol=rtol, err_msg=what)

    assert (one.columns, one.sense, one.rows.keys()) == (other.columns, other.sense, other.rows.keys())
    close(one.constant, other.constant, "constant")
    for what, vector in one.vectors.items():
        close(vector, other.vectors[what], what)
    for name, (kind, *sides, body) in one.rows.items():
        assert other.rows[name][0] == kind, name
        close(sides, other.rows[name][1:3], name)
        close(body, other.rows[name][3], name)


def _merge(rows: dict[str, Any], name: str, part: tuple[str, float, float, Any]) -> None:
    """Add a row; one that is there already is its other side."""
    if name in rows:
        kind, lower, upper, body = rows[name]
        assert kind == part[0]
        assert body.tolist() == part[3].tolist()
        part = (kind, max(lower, part[1]), min(upper, part[2]), body)
    rows[name] = part


def _stands_somewhere(compiled: Any) -> Any:
    parts = [sp.csr_array(compiled.c[None, :]), compiled.A, *(cone.matrix for cone in compiled.cones)]
    parts += [] if compiled.Q is None else [compiled.Q, compiled.Q.T]
    parts += [part for row in compiled.quadratics for part in (row.a, row.Q, row.Q.T)]
    return sum((abs(part).sum(axis=0) for part in parts), np.zeros(len(compiled.columns))) > 0


def _full(lower: Any, n: int) -> Any:
    return np.zeros((n, n)) if lower is None else (lower + sp.tril(lower, -1).T).toarray()
