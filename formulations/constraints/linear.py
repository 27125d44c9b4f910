"""A linear row over the raw columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np

from ceopt.formulations.constraints.rule import AbstractRule
from ceopt.formulations.linear import Rows, total
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.factual import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Linear"]

_SENSES = ("<=", ">=", "==")

#: Share of the row's own size that a solver's feasibility tolerance may leave it off by.
_TOLERANCE = 1e-6


@final
@dataclass(frozen=True, slots=True)
class Linear(AbstractRule):
    r"""A row :math:`\sum_j a_j x_j \;\{\le, \ge, =\}\; b` over raw columns.

    A number counts in its own unit, an ordinal column by its rank, a binary one as 0 or 1. One row, and a coordinate
    for each numeric column in it. Exact up to the solver's tolerance: a point is taken to keep the rule if it is off by
    at most 1e-6 of the row's size, ``max(1, |b|, max_j |a_j x_j|)``.

    Parameters
    ----------
    coefficients
        Column -> coefficient.
    sense
        "<=", ">=" or "==".
    rhs
        Right-hand side.
    name
        Name in exports and reports.

    Raises
    ------
    UnknownNameError
        A column or sense that does not exist.
    InvalidTypeError
        A categorical column, which has no number.
    InvalidValueError
        A coefficient or right-hand side that is not finite, or no coefficient.
    """

    coefficients: Mapping[str, float]
    sense: Literal["<=", ">=", "=="]
    rhs: float
    name: str | None = None
    manifest: ClassVar[Manifest] = Manifest(
        title="linear row over raw columns", formula="sum_j a_j x_j {<=, >=, ==} b", rule="Linear"
    )
    needs_factual: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.sense not in _SENSES:
            raise UnknownNameError.among("Linear", "sense", self.sense, _SENSES)
        if not isinstance(self.coefficients, Mapping) or not self.coefficients:
            raise InvalidValueError(
                "Linear", "a coefficient for some column", f"coefficients is {self.coefficients!r}", "Give a mapping."
            )
        for what, value in (("rhs", self.rhs), *self.coefficients.items()):
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not number or not np.isfinite(value):
                raise InvalidValueError("Linear", "finite numbers", f"{what} is {value!r}", "Give a number.")

    def check(self, space: FeatureSpace) -> None:
        """Refuse unknown and categorical columns."""
        for name in self.coefficients:
            if name not in space:
                raise UnknownNameError.among("Linear", "column", name, space.names)
            if space[name].kind == "categorical":
                raise InvalidTypeError(
                    "Linear",
                    "columns that are numbers, ranks or 0/1",
                    f"column {name!r} is categorical",
                    "State the row in Pyomo over is_level[name, level], or make the column ordinal.",
                )

    def build(self, block: Any, x: Factual) -> None:
        """Add the row ``row``."""
        form = total(x.coordinate(name).raw().scaled(float(a)) for name, a in self.coefficients.items())
        lower = float(self.rhs) if self.sense in {">=", "=="} else None
        upper = float(self.rhs) if self.sense in {"<=", "=="} else None
        Rows(block, "row").add(self.sense_word, form, lower=lower, upper=upper)

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return how far the left side is on the wrong side, beyond the tolerance."""
        del space, factual
        parts = [float(a) * point[name] for name, a in self.coefficients.items()]
        over = sum(parts) - float(self.rhs)
        off = abs(over) if self.sense == "==" else over if self.sense == "<=" else -over
        size = max(1.0, abs(float(self.rhs)), *(abs(part) for part in parts))
        return off if off > _TOLERANCE * size else 0.0

    @property
    def sense_word(self) -> str:
        """The sense as a word that may stand in a row's name."""
        return {"<=": "at_most", ">=": "at_least", "==": "equals"}[self.sense]

    def sentence(self) -> str:
        """Return the rule in words."""
        left = " + ".join(f"{a:g} {name}" for name, a in self.coefficients.items())
        return f"{left} {self.sense} {self.rhs:g}"
