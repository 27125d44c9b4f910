r"""A norm as the objective: its square is minimised in its place.

.. math:: \min \{ \alpha + \beta t : t \ge \lVert v(x) \rVert, \ldots \} = \alpha + \beta
    \sqrt{\min \{ \lVert v(x) \rVert^2 : \ldots \}}\quad (\beta > 0).

The square is a parabola in every entry, for which secants between integers are exact; the norm is not, for its tangents
depend on the unknown t.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.compile.compiled_model import CompiledModel
from ceopt.solvers.outer_approximation.blocks import AffineRows, Blocks
from ceopt.solvers.problem import Vector

__all__ = ["NormObjective", "squared"]


class NormObjective(NamedTuple):
    """``objective = constant + factor * norm``, with the norm in a column of its own; the plain objective without one.

    Parameters
    ----------
    column
        The norm's column; -1 if the relaxation's objective is the program's own.
    constant, factor
        Of the norm; the sign of the factor is the program's sense.
    """

    column: int = -1
    constant: float = 0.0
    factor: float = 1.0

    def proved(self, bound: float) -> float:
        """Return what a bound on the relaxation's objective proves about the program's own."""
        return bound if self.column < 0 else self.constant + self.factor * math.sqrt(max(0.0, abs(bound)))

    def squared_gap(self, gap: float, objective: float) -> float:
        """Return the relative gap on the relaxation's objective that comes to ``gap`` on the program's own."""
        norm = abs(objective - self.constant)
        return gap if self.column < 0 or not norm else min(0.5, 2.0 * gap * abs(objective) / norm)


def squared(blocks: Blocks, compiled: CompiledModel) -> tuple[Blocks, NormObjective]:
    """Return the blocks with a norm that is the whole objective replaced by its square, or as they are."""
    sense, free = compiled.sense, compiled.lb != compiled.ub
    charged = np.flatnonzero((compiled.c != 0) & free)
    if compiled.Q is not None or charged.size != 1:
        return blocks, NormObjective()
    t = int(charged[0])
    column: Vector = np.zeros(len(compiled.c))
    column[t] = 1.0
    elsewhere = np.concatenate([abs(compiled.A) @ column, abs(blocks.v.matrix) @ column])
    heads, scales = blocks.head.matrix @ column, blocks.scale.matrix @ column
    own = np.flatnonzero((heads != 0) | (scales != 0))
    if own.size != 1 or elsewhere.any() or compiled.integer[t]:
        return blocks, NormObjective()
    b, cost = int(own[0]), float(compiled.c[t])
    alone = blocks.both[b] and blocks.head.lengths[b] == 1 and blocks.head.constant[b] == 0.0
    if not alone or compiled.lb[t] > 0 or compiled.ub[t] < np.inf or sense * cost <= 0 or heads[b] <= 0:
        return blocks, NormObjective()
    fixed = np.where(free, 0.0, compiled.lb)
    price, both = blocks.price.copy(), blocks.both.copy()
    price[b], both[b] = sense, False
    changed = replace(
        blocks,
        head=_with_constant(blocks.head, b, 0.0),
        scale=_with_constant(blocks.scale, b, 1.0),
        price=price,
        both=both,
        c=np.zeros(len(compiled.c)),
        c0=0.0,
    )
    return changed, NormObjective(t, compiled.c0 + float(compiled.c @ fixed), cost / float(heads[b]))


def _with_constant(part: AffineRows, row: int, value: float) -> AffineRows:
    """Return the rows, one of them a constant."""
    kept = np.ones(len(part.constant))
    kept[row] = 0.0
    matrix = sp.csr_array(sp.diags_array(kept) @ part.matrix)
    matrix.eliminate_zeros()
    constant = part.constant.copy()
    constant[row] = value
    return AffineRows(matrix, constant)
