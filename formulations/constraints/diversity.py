"""Rows that keep a program from giving an answer again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import pyomo.environ as pyo

from ceopt.formulations.linear import LinearForm, Rows, total

if TYPE_CHECKING:
    from ceopt.formulations.factual import Factual
    from ceopt.formulations.predictors.embedded import AbstractEmbedded

__all__ = ["DIVERSITIES", "Diversity", "exclude"]

Diversity = Literal["pool", "support"]
DIVERSITIES = ("pool", "support")


def exclude(
    block: Any, x: Factual, point: Mapping[str, float], how: Diversity, models: tuple[AbstractEmbedded, ...] = ()
) -> None:
    r"""Add a no-good row to ``block``: the next answer differs from ``point`` as ``how`` says.

    .. math:: \sum_{j:\, \hat z_j = 1} (1 - z_j) + \sum_{j:\, \hat z_j = 0} z_j \ge 1

    "support"
        z are the change indicators: another set of columns changes.
    "pool"
        z are the integer decisions: another cell of some number, another level, or another set of changed columns.

    A numeric coordinate counts as newly changed once it leaves its cell, or moves by its step or by a thousandth of its
    range (:class:`~ceopt.formulations.coordinates.moved.Moved`).

    Parameters
    ----------
    block
        Where the rows are kept, in the constraint ``differs``.
    x
        The person's block, whose variables hold the answer's values if ``models`` are given.
    point
        The earlier answer, in coordinates.
    how
        "pool" or "support".
    models
        Embedded models with integer decisions of their own (the research forms of trees).
    """
    moving = {name: c for name, c in x.coordinates.items() if not c.is_point}
    if how == "support":
        forms = [
            c.surely_changed_form() if point[name] == x.point[name] else c.changed_form().complement()
            for name, c in moving.items()
        ]
    else:
        forms = [c.differs(point[name]) for name, c in moving.items()]
        forms += [model.differs() for model in models]
    if block.component("differs") is None:
        block.differs = pyo.Constraint(pyo.Any)
    index = f"earlier_{len(block.differs) + 1}"
    Rows(block, "differs").add(index, total(forms) if forms else LinearForm(), lower=1.0)
