"""What is said of the linear surrogate whose program gave an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, final

import pandas as pd

from ceopt.solution.copies import hands_out_copies
from ceopt.solvers.checks import plain

__all__ = ["SurrogateReport"]


@final
@hands_out_copies("coef")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SurrogateReport:
    """A linear surrogate in scaled columns, how near it is to the model, and what was proved about it.

    Parameters
    ----------
    coef, intercept
        Of the surrogate, favourable where ``coef @ z + intercept >= 0``; a Series by scaled column.
    fidelity
        Share of rows about the centre of its sample of which it says the same as the model; nan without queries left.
    stability
        Greatest distance of its normalised parameters from those of ten surrogates for people a thousandth of a scale
        off (standard deviation), as :func:`ceopt.metrics.stability` has it; nan without queries left.
    worst_case_error
        Greatest error of a class over the ambiguity; nan of surrogates that know none.
    radius
        Of the unfavourable class's ambiguity, as far as it was grown; nan of surrogates without one.
    program_status, program_gap
        What is proved about the program over the surrogate.
    n_queries
        Rows that were sent to the model for this person. ``explain`` sends the data too; ``Recourse`` does so once, in
        ``fit``, and counts it for nobody.
    """

    coef: pd.Series[float]
    intercept: float
    fidelity: float
    stability: float
    worst_case_error: float
    radius: float
    program_status: str
    program_gap: float
    n_queries: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "coef", pd.Series(self.coef, dtype="float64"))
        for name in ("intercept", "fidelity", "stability", "worst_case_error", "radius", "program_gap", "n_queries"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        object.__setattr__(self, "program_status", str(self.program_status))

    def to_mapping(self) -> dict[str, Any]:
        """Return every field as plain values, as JSON holds them."""
        found: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        found["coef"] = {str(name): float(value) for name, value in self.coef.items()}
        return found

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any] | None) -> SurrogateReport | None:
        """Return what :meth:`to_mapping` wrote."""
        return None if given is None else cls(**given)
