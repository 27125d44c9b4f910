"""Rows that leave out what the user's own model refuses, though its score is within rounding of the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ceopt.formulations.columns import Price
from ceopt.formulations.constraints.diversity.distance_rows import is_moved
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.predictors.decision.lattice import columns_read

if TYPE_CHECKING:
    from ceopt.formulations.recourse_program import RecourseProgram

__all__ = ["leave_out"]

#: A move counts 1, however long.
_EACH = Price("fixed", 1.0, 1.0)


def leave_out(program: RecourseProgram, points: Sequence[Mapping[str, float]]) -> None:
    r"""Add a row ``refused[point_k]`` for each point: the model does not see the same again.

    .. math:: \sum_{j \in R} [x_j \ne x^k_j] \ge 1

    R are the columns that the model reads, all of them on a lattice; of trees, the leaves that have other values.
    """
    rows = Rows(program.model, "refused")
    for place, point in enumerate(points, start=1):
        rows.add(f"point_{place}", _otherwise(program, point), lower=1.0)


def _otherwise(program: RecourseProgram, point: Mapping[str, float]) -> LinearForm:
    if program.embedded.predictor.is_trees:
        return program.embedded.other_leaves(point)
    x = program.x
    moving = [name for name in sorted(columns_read(program.embedded.predictor)) if not x.coordinates[name].is_point]
    return total(is_moved(x, name, point[name], _EACH) for name in moving)
