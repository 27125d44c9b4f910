"""The elementary operations of scalers, rounded as the library rounds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.solvers.errors import InvalidValueError, UnknownNameError

__all__ = ["Floats", "Operation", "Step"]

Floats: TypeAlias = NDArray[np.floating[Any]]
Operation: TypeAlias = Literal["cast", "subtract", "divide", "multiply", "add", "at_least", "at_most"]

_UFUNCS: Final[Mapping[str, Callable[..., Any]]] = {
    "subtract": np.subtract,
    "divide": np.divide,
    "multiply": np.multiply,
    "add": np.add,
    "at_least": np.maximum,
    "at_most": np.minimum,
}


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One rounded, non-decreasing operation of a library: ``dtype(operation(x, operand))``.

    Parameters
    ----------
    operation
        ``"cast"`` (no operand), ``"subtract"``, ``"divide"``, ``"multiply"``, ``"add"``, ``"at_least"`` (maximum with
        the operand) or ``"at_most"`` (minimum).
    operand
        The library's own constant in its own float width: NumPy computes in the wider of the two widths.
    dtype
        Float width in which the library stores the result.

    Raises
    ------
    UnknownNameError
        The operation does not exist.
    InvalidValueError
        The operand is not finite, or a factor is not positive (the column would not increase).
    """

    operation: Operation
    operand: np.floating[Any] = np.float64(0.0)  # noqa: RUF009
    dtype: str = "float64"

    def __post_init__(self) -> None:
        if self.operation != "cast" and self.operation not in _UFUNCS:
            raise UnknownNameError.among("Step", "operation", self.operation, ["cast", *_UFUNCS])
        if not np.isfinite(self.operand):
            raise InvalidValueError(
                "Step", "a finite operand", f"{self.operation} has {self.operand}", "Fit the scaler on finite data."
            )
        if self.operation in {"divide", "multiply"} and not self.operand > 0:
            raise InvalidValueError(
                "Step", "a positive factor", f"{self.operation} has {self.operand}", "Keep the order."
            )

    @property
    def clips(self) -> bool:
        """Whether the step is a maximum or minimum, so not affine."""
        return self.operation in {"at_least", "at_most"}

    def apply(self, x: Floats) -> Floats:
        """Do to an array what the library does, rounding included."""
        if self.operation == "cast":
            return x.astype(self.dtype, copy=False)
        result: Floats = _UFUNCS[self.operation](x, self.operand)
        return result.astype(self.dtype, copy=False)

    def compose(self, slope: Fraction, offset: Fraction) -> tuple[Fraction, Fraction]:
        """Follow ``slope * x + offset`` by this step in real numbers (casts round, so they do nothing here)."""
        value = Fraction(float(self.operand))
        match self.operation:
            case "subtract":
                return slope, offset - value
            case "add":
                return slope, offset + value
            case "multiply":
                return slope * value, offset * value
            case "divide":
                return slope / value, offset / value
            case _:
                return slope, offset
