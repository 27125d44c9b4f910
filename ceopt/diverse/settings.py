"""The parameters of the explainer, checked; and which of them the fitted rows depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, final

from ceopt.diverse.candidates import Cutoff
from ceopt.diverse.filters import Diversity
from ceopt.formulations.costs.base import SCALE
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import AbstractCheck, AllOf, Choice, Instance, OrNone, Real, Refusal, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError

__all__ = ["DiverseSettings", "whole_or_none"]

_WHO: Final = "DiverseRobustExplainer"


def _real(needs: str, at_most: float | None = None) -> Real:
    """Return the check of a finite number of at least 0."""
    return Real(
        at_least=0.0,
        at_most=at_most,
        finite=True,
        otherwise=Refusal(f"{needs} as {{name}}", "Change it."),
        wrong_type=Refusal(f"{needs} as {{name}}", "Give such a number.", error=InvalidTypeError),
    )


def _count(needs: str) -> Whole:
    """Return the check of a whole number of at least 1."""
    return Whole(
        at_least=1,
        at_most=None,
        otherwise=Refusal(f"{needs} as {{name}}", "Change it."),
        wrong_type=Refusal(f"{needs} as {{name}}", "Give such a number.", error=InvalidTypeError),
    )


_BEYOND = _real("a share of at least 0 beyond the nearest distance")
_LENGTH = _real("a length above 0, or None for no minimisation")
_NO_TOLERANCE = Refusal("a tolerance above 0", "None switches minimisation off.")
_NO_SPACE = Refusal("a FeatureSpace", "Make one: ceopt.FeatureSpace.infer(X).", "{name} is {type}", InvalidTypeError)
_CHECKS: Final[Mapping[str, AbstractCheck]] = {
    "distance": Choice(("l1", "l2")),
    "keep": Choice(("nearest", "within")),
    "diversity": Choice(("angle", "distance")),
    "put_back": Choice(("categories", "columns")),
    "minimise": Choice(("chosen", "all")),
    "origin": Choice(("row", "data")),
    "variant": Choice(("paper", "released")),
    "scale": SCALE,
    "tolerance": OrNone(AllOf((_LENGTH, Real(above=0.0, otherwise=_NO_TOLERANCE)))),
    "space": OrNone(Instance(FeatureSpace, _NO_SPACE)),
}
#: What alpha means depends on what is kept, and what beta means on what diversity is.
_ALPHA: Final[Mapping[str, AbstractCheck]] = {
    "nearest": _count("a whole number of candidates, at least 1"),
    "within": _BEYOND,
}
_BETA: Final[Mapping[str, AbstractCheck]] = {"angle": _real("1 less a cosine, from 0 to 2", 2.0), "distance": _BEYOND}
_LIMIT: Final = OrNone(_count("a whole number of at least 1, or None for all"))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiverseSettings:
    """What :class:`~ceopt.diverse.DiverseRobustExplainer` takes; see there for each."""

    distance: Any
    scale: Any
    keep: Any
    alpha: Any
    diversity: Any
    beta: Any
    tolerance: Any
    put_back: Any
    minimise: Any
    origin: Any
    space: Any
    variant: Any

    def check(self) -> None:
        """Refuse what has no meaning, naming it.

        Raises
        ------
        UnknownNameError
            A word that does not exist.
        InvalidTypeError, InvalidValueError
            A number that is none or out of its range; a space that is none.
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        check_arguments(_WHO, _CHECKS, given)
        _ALPHA[self.keep].require(_WHO, "alpha", self.alpha)
        _BETA[self.diversity].require(_WHO, "beta", self.beta)

    @property
    def is_released(self) -> bool:
        """Whether the published code is followed where it leaves the paper."""
        return bool(self.variant == "released")

    @property
    def cutoff(self) -> Cutoff:
        """Which candidates are near."""
        return Cutoff(int(self.alpha), None) if self.keep == "nearest" else Cutoff(None, float(self.alpha))

    @property
    def diverse(self) -> Diversity:
        """What two explanations must have apart."""
        return Diversity(self.diversity, float(self.beta), absolute=self.is_released)

    def changed_since(self, fitted: DiverseSettings) -> str | None:
        """Return the first parameter that rows were fitted with and that is another now; None if they serve these."""
        words = ("distance", "scale", "space", "variant")
        return next((word for word in words if getattr(self, word) != getattr(fitted, word)), None)

    def options(self) -> dict[str, Any]:
        """Return the settings as plain values that JSON holds."""
        words = (
            "distance",
            "keep",
            "alpha",
            "diversity",
            "beta",
            "tolerance",
            "put_back",
            "minimise",
            "origin",
            "variant",
        )
        scale = dict(self.scale) if isinstance(self.scale, Mapping) else self.scale
        return {"scale": scale, **{word: getattr(self, word) for word in words}}


def whole_or_none(word: str, value: Any) -> int | None:
    """Return a whole number of at least 1, or None, or refuse the option by name."""
    limit: int | None = _LIMIT.require(_WHO, word, value)
    return limit
