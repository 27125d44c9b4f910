"""A data set: features, labels, the space of its columns and what is known of its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import pandas as pd

from ceopt.formulations.space import FeatureSpace
from ceopt.solvers.errors import printable

__all__ = ["Bunch", "StructuralEquation"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StructuralEquation:
    r"""One linear equation of a causal model with additive noise.

    .. math:: x = c + \sum_p a_p x_p + U, \qquad E[U] = 0, \quad \mathrm{sd}(U) = \sigma.

    Parents enter by coordinate: numbers as they are, an ordinal by its rank from 0, a bool as 0 or 1. It stands for a
    :class:`ceopt.LinearEquation` wherever one is wanted: ``Causal(loans().equations)``.

    Parameters
    ----------
    parents
        Name of each parent -> its coefficient :math:`a_p`.
    intercept
        The constant :math:`c`, in the unit of the column.
    noise_scale
        Standard deviation :math:`\sigma` of the noise before rounding, in the unit of the column.
    """

    parents: Mapping[str, float]
    intercept: float
    noise_scale: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bunch:
    """A data set.

    Parameters
    ----------
    name
        By which it is asked for.
    data
        The features in raw units, shape (n, d); nothing that defines the label or is known only after it.
    target
        One label per row; its name is that of the label's column.
    space
        What each feature is and how it may move.
    favourable
        The label that people want.
    description, source, licence
        Where the rows come from, and on what terms.
    equations, graph
        The causal model, of the columns that have an equation: column -> equation, column -> its parents.
    split
        The published part ("train", "test") of each row, where there is one.
    factual
        Which rows a paper explains, where that is known.
    extra
        The columns of the file that are neither feature nor label: time, groups, leaks of the label.
    """

    name: str
    data: pd.DataFrame
    target: pd.Series[Any]
    space: FeatureSpace
    favourable: Any
    description: str
    source: str = ""
    licence: str = ""
    equations: Mapping[str, StructuralEquation] = field(default_factory=dict)
    graph: Mapping[str, list[str]] = field(default_factory=dict)
    split: pd.Series[Any] | None = None
    factual: pd.Series[bool] | None = None
    extra: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def frame(self) -> pd.DataFrame:
        """Features and label side by side, shape (n, d + 1)."""
        return self.data.assign(**{str(self.target.name): self.target})

    def __repr__(self) -> str:
        n, d = self.data.shape
        share = float((self.target == self.favourable).mean())
        favoured = f"{self.target.name} is {self.favourable!r}"
        return printable(f"<{self.name}: {n} rows, {d} features, {favoured} in {share:.1%}>")
