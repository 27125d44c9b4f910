"""Interventions in plain numbers: points that a causal model allows, their costs, and what was done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.constraints.causal.structure import Floats
from ceopt.formulations.space.trace import trace_within

if TYPE_CHECKING:
    from ceopt.formulations.constraints.causal.structure import Structure

__all__ = ["Interventions"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Interventions:
    """Equations of a space, and where they may be left.

    Parameters
    ----------
    structure
        The equations.
    kind
        "none", "soft" or "hard".
    acted_on
        Columns with an equation that may be off it.
    fixed
        Columns that may neither be acted on nor follow.
    """

    structure: Structure
    kind: str
    acted_on: frozenset[str]
    fixed: tuple[str, ...]

    @property
    def following(self) -> frozenset[str]:
        """Columns that must follow from their parents."""
        return frozenset(self.structure.equations) - self.acted_on

    def violation(self, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the largest residual of a column that must follow, or move of one that must stay; 0 if all do."""
        row = self.structure.row(point)
        worst = 0.0
        for column in self.structure.equations:
            off, allowed = (float(part[0]) for part in self.structure.residuals(column, factual, row))
            if math.isnan(off):  # a level that the regressor does not know: what follows, or is charged, is unknown
                worst = math.inf
            elif column not in self.acted_on and abs(off) > allowed:
                worst = max(worst, abs(off))
        for name in self.fixed:
            move = abs(point[name] - factual[name])
            feature = self.structure.space[name]
            if feature.is_finite:
                noise = 0.0
            else:
                noise = float(trace_within(feature, factual[name]))
            worst = max(worst, move if move > noise else 0.0)
        return worst

    def charged(self, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return points with each column that has an equation at the factual plus what is charged for it."""
        if self.kind == "none":
            return points
        seen = points.copy()
        for column in self.structure.equations:
            place = self.structure.place(column)
            seen[:, place] = factual[column]
            if column in self.acted_on:
                seen[:, place] += self._amounts(column, factual, points)[0]
        return seen

    def mended(self, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return points with columns that must stay at home, and those that must follow set from their parents."""
        points = points.copy()
        for name in self.fixed:
            points[:, self.structure.place(name)] = factual[name]
        return self.structure.followed(self.following, factual, points)

    def actions(self, factual: Mapping[str, float], point: Mapping[str, float]) -> dict[str, Any]:
        """Return what is done by column: the value that it is set to, or the shift of a number that is shifted."""
        row = self.structure.row(point)
        done: dict[str, Any] = {}
        for feature in self.structure.space:
            name = feature.name
            move = point[feature.name] - factual[feature.name]
            shifts = self.kind == "soft" and (name in self.acted_on or not feature.is_finite)
            if name in self.acted_on:
                (amount,), (is_off,) = self._amounts(name, factual, row)
                if is_off:
                    if shifts:
                        done[name] = float(amount)
                    else:
                        done[name] = feature.from_coordinate(point[name])
            elif name not in self.structure.equations and move != 0.0:
                if shifts:
                    done[name] = move
                else:
                    done[name] = feature.from_coordinate(point[name])
        return done

    def _amounts(self, column: str, factual: Mapping[str, float], points: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return what is charged for a column that may be acted on, and whether it is, (n,) each."""
        off, allowed = self.structure.residuals(column, factual, points)
        if self.kind == "soft":
            slack = self.structure.slack[column]
            done = off - np.clip(off, -slack, slack)
        else:
            done = points[:, self.structure.place(column)] - factual[column]
        is_off = ~(np.abs(off) <= allowed)
        return np.where(is_off, done + 0.0 * off, 0.0), is_off
