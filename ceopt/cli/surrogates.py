"""Surrogates by the names that a command takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ceopt.solvers.errors import UnknownNameError

if TYPE_CHECKING:
    from ceopt.solution.solution_set import SolutionSet
    from ceopt.surrogates.recourse import LocalSurrogateRecourse

__all__ = ["NAMES", "says_of_surrogate", "surrogate_named"]

#: Minimax probability machines by their ambiguity, then the rivals.
_MACHINES: Final = ("fisher_rao", "nominal", "quadratic", "bures", "logdet")
_RIVALS: Final = {
    "lime": "LimeSurrogate",
    "clime": "ClimeSurrogate",
    "limels": "LimelsSurrogate",
    "svm": "SvmSurrogate",
}
NAMES: Final = (*_MACHINES, *_RIVALS)


def surrogate_named(name: str) -> LocalSurrogateRecourse:
    """Return what answers with the surrogate of a name, everything else at its default.

    Raises
    ------
    UnknownNameError
        No such surrogate.

    Examples
    --------
    >>> surrogate_named("svm").surrogate
    SvmSurrogate()
    """
    from ceopt import surrogates

    if name not in NAMES:
        raise UnknownNameError.among("--surrogate", "surrogate", name, NAMES)
    fitted: Any
    if name in _RIVALS:
        fitted = getattr(surrogates, _RIVALS[name])()
    elif name == "nominal":
        fitted = surrogates.MinimaxProbabilityMachine()
    else:
        fitted = surrogates.MinimaxProbabilityMachine(name, (1.0, 0.0))
    return surrogates.LocalSurrogateRecourse(surrogate=fitted)


def says_of_surrogate(result: SolutionSet) -> str:
    """Return in one line how a row was answered for, and how near the surrogate is to the model; "" without one."""
    report = result.surrogate
    if report is None or not len(result):
        return ""
    ways = ", ".join(dict.fromkeys(str(answer.way) for answer in result))
    return (
        f"row {result.query_id}: by the way {ways!r}; of the linear surrogate: fidelity {report.fidelity:.3g}, "
        f"stability {report.stability:.3g}, worst-case error {report.worst_case_error:.3g}; "
        f"{report.n_queries:,} rows sent to the model."
    )
