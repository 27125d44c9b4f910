"""A file in the Conic Benchmark Format as a ConcreteModel with cones in ordinary Constraints."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, final

import pyomo.environ as pyo

from ceopt.solvers.cones import Cone, triangle
from ceopt.solvers.files.cbf_parse import CbfFile, parse
from ceopt.solvers.files.model_builder import add, add_column, add_cone, add_row, affine

__all__ = ["model_of_cbf"]

_CONES = {"Q": Cone.SECOND_ORDER, "QR": Cone.ROTATED, "EXP": Cone.EXPONENTIAL}
_ALL = (-math.inf, math.inf)


_Sides = tuple[float, float]


def model_of_cbf(text: str, path: str) -> Any:
    """Return the model; a file that :func:`ceopt.solvers.write` wrote keeps its names, ranges and bounds.

    Raises
    ------
    UnreadableFileError
        It is not such a file, or has a section or a cone that we do not know.
    """
    return _Builder(parse(text, path), path).model


@final
@dataclass(slots=True)
class _Affine:
    """``constant + sum of values * columns``."""

    constant: float
    values: list[float]
    columns: list[Any]

    @property
    def expression(self) -> Any:
        return affine(self.constant, self.values, self.columns)


@final
class _Builder:
    def __init__(self, file: CbfFile, path: str) -> None:
        self._file = file
        self._path = path
        self.model = pyo.ConcreteModel()
        self._terms: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for r, k, value in file.coordinates["ACOORD"]:
            self._terms[int(r)].append((int(k), value))
        self._rows = self._expressions()
        self._bounds: list[_Sides] = []
        for code, size in file.columns:
            low = 0.0 if code in {"L+", "L="} else -math.inf
            high = 0.0 if code in {"L-", "L="} else math.inf
            self._bounds += [(low, high)] * size
        stated = self._linear_rows()
        whole = set(file.integers)
        self._columns = [
            add_column(self.model, self._name("VAR", k, "column"), bounds, integer=k in whole)
            for k, bounds in enumerate(self._bounds)
        ]
        self._matrices = [self._matrix(k, side) for k, side in enumerate(file.matrices)]
        self._fill()
        for name, row, sides in stated:
            add_row(self.model, name, row.values, row.columns, sides)
        self._add_cones()
        self._add_objective()

    def _name(self, section: str, k: int, kind: str) -> str:
        return self._file.names[section].get(k, f"{kind}_{k}")

    # -- columns and rows ----------------------------------------------------------------------------------------------
    def _expressions(self) -> list[_Affine]:
        """Return the rows of CON with their constants; the terms come when there are columns."""
        rows = [_Affine(0.0, [], []) for _ in range(self._file.n_rows)]
        for r, value in self._file.coordinates["BCOORD"]:
            rows[int(r)].constant = value
        return rows

    def _linear_rows(self) -> list[tuple[str, _Affine, _Sides]]:
        """Return (name, row, sides) of the linear rows.

        Where the comments say so, and the numbers agree, a row is the bound of a column or the other side of a range.
        """
        merged: dict[str, tuple[int, int]] = {}
        stated: list[tuple[str, _Affine, _Sides]] = []
        names = self._file.names
        at = 0
        for code, size in self._file.rows:
            rows = range(at, at + size)
            at += size
            if code in _CONES:
                continue
            for r in rows:
                row = self._rows[r]
                side = -row.constant or 0.0
                low = side if code in {"L=", "L+"} else -math.inf
                high = side if code in {"L=", "L-"} else math.inf
                terms = self._terms[r]
                name = self._name("CON", r, "row")
                if r in names["BOUND"] and len(terms) == 1 and terms[0][1] == 1.0:
                    k = terms[0][0]
                    self._bounds[k] = _intersection(self._bounds[k], (low, high))
                    continue
                first, place = merged.get(name, (-1, -1))
                if r in names["CON"] and first >= 0 and terms == self._terms[first]:
                    _, body, sides = stated[place]
                    stated[place] = (name, body, _intersection(sides, (low, high)))
                    continue
                merged[name] = (r, len(stated))
                stated.append((name, row, (low, high)))
        return stated

    def _matrix(self, k: int, side: int) -> dict[tuple[int, int], Any]:
        """Add a matrix variable, its lower triangle as columns, and return them by (row, column)."""
        entries = {}
        for i, j in zip(*(part.tolist() for part in triangle(side)), strict=True):
            entries[j, i] = add_column(self.model, f"matrix_{k}({j}_{i})", _ALL, integer=False)
        add_cone(self.model, f"matrix_{k}", Cone.SEMIDEFINITE, list(entries.values()))
        return entries

    def _fill(self) -> None:
        """Put the terms of the rows in."""
        for r, terms in self._terms.items():
            row = self._rows[r]
            row.values += [value for _, value in terms]
            row.columns += [self._columns[k] for k, _ in terms]
        for at, k, i, j, value in self._file.coordinates["FCOORD"]:
            self._put_product(self._rows[int(at)], int(k), int(i), int(j), value)

    def _put_product(self, row: _Affine, k: int, i: int, j: int, value: float) -> None:
        """Add one entry of a symmetric matrix, times the matrix variable; off the diagonal it stands for two."""
        if i != j:
            value *= 2.0
        row.values.append(value)
        row.columns.append(self._matrices[k][max(i, j), min(i, j)])

    # -- cones and objective -------------------------------------------------------------------------------------------
    def _add_cones(self) -> None:
        at = 0
        for code, size in self._file.columns:
            if code in _CONES:
                self._add_cone(f"cone_of_column_{at}", code, self._columns[at : at + size])
            at += size
        at = 0
        for code, size in self._file.rows:
            if code in _CONES:
                entries = [row.expression for row in self._rows[at : at + size]]
                self._add_cone(self._name("CON", at, "cone"), code, entries)
            at += size
        entries_of: dict[tuple[int, int, int], _Affine] = defaultdict(lambda: _Affine(0.0, [], []))
        for c, i, j, value in self._file.coordinates["DCOORD"]:
            entries_of[int(c), int(max(i, j)), int(min(i, j))].constant += value
        for c, k, i, j, value in self._file.coordinates["HCOORD"]:
            entry = entries_of[int(c), int(max(i, j)), int(min(i, j))]
            entry.values.append(value)
            entry.columns.append(self._columns[int(k)])
        for c, side in enumerate(self._file.sides):
            pairs = zip(*(part.tolist() for part in triangle(side)), strict=True)
            entries = [entries_of[c, j, i].expression for i, j in pairs]
            add_cone(self.model, self._name("PSDCON", c, "psd"), Cone.SEMIDEFINITE, entries)

    def _add_cone(self, name: str, code: str, entries: list[Any]) -> None:
        ordered = entries
        if code == "EXP":  # the format has these the other way round
            ordered = entries[::-1]
        add_cone(self.model, name, _CONES[code], ordered)

    def _add_objective(self) -> None:
        cost = _Affine(self._file.constant, [], [])
        for k, value in self._file.coordinates["OBJACOORD"]:
            cost.values.append(value)
            cost.columns.append(self._columns[int(k)])
        for k, i, j, value in self._file.coordinates["OBJFCOORD"]:
            self._put_product(cost, int(k), int(i), int(j), value)
        sense = pyo.minimize if self._file.sense == "MIN" else pyo.maximize
        name = self._file.names["OBJ"].get(0, "objective")
        add(self.model, name, pyo.Objective(expr=cost.expression, sense=sense))


def _intersection(one: _Sides, other: _Sides) -> _Sides:
    return max(one[0], other[0]), min(one[1], other[1])
