"""The licence of a commercial solver, as found on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel

__all__ = ["Licence"]


def _takes_all(_compiled: CompiledModel) -> str:
    return ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """A licence, or why there is none.

    Parameters
    ----------
    why_not
        One sentence where there is none; else empty.
    limits
        The sizes that it takes, for people; empty where there is no limit.
    refusal
        One sentence on why a compiled model is too large for it; empty where it is not.
    """

    why_not: str = ""
    limits: str = ""
    refusal: Callable[[CompiledModel], str] = _takes_all
