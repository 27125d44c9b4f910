"""The parameters of the explainer, checked; and which of them the fitted rows depend on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from ceopt.diverse.candidates import Cutoff
from ceopt.diverse.filters import Diversity
from ceopt.formulations.costs.cost import SCALE
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = ["DiverseSettings", "whole_or_none"]

_WHO: Final = "DiverseRobustExplainer"
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "distance": ("l1", "l2"),
    "keep": ("nearest", "within"),
    "diversity": ("angle", "distance"),
    "put_back": ("categories", "columns"),
    "minimise": ("chosen", "all"),
    "origin": ("row", "data"),
    "variant": ("paper", "released"),
}


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
        for word, choices in _WORDS.items():
            value = getattr(self, word)
            if not isinstance(value, str) or value not in choices:
                raise UnknownNameError.among(_WHO, word, value, choices)
        SCALE.require(_WHO, "scale", self.scale)
        if self.keep == "nearest":
            _number("alpha", self.alpha, "a whole number of candidates, at least 1", least=1, whole=True)
        else:
            _number("alpha", self.alpha, "a share of at least 0 beyond the nearest distance")
        if self.diversity == "angle":
            _number("beta", self.beta, "1 less a cosine, from 0 to 2", most=2.0)
        else:
            _number("beta", self.beta, "a share of at least 0 beyond the nearest distance")
        if self.tolerance is not None:
            _number("tolerance", self.tolerance, "a length above 0, or None for no minimisation")
            if not self.tolerance > 0:
                raise InvalidValueError(
                    _WHO, "a tolerance above 0", f"tolerance is {self.tolerance!r}", "None switches minimisation off."
                )
        if self.space is not None and not isinstance(self.space, FeatureSpace):
            but = f"space is {type(self.space).__name__}"
            raise InvalidTypeError(_WHO, "a FeatureSpace", but, "Make one: ceopt.FeatureSpace.infer(X).")

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
    if value is not None:
        _number(word, value, "a whole number of at least 1, or None for all", least=1, whole=True)
    return None if value is None else int(value)


def _number(
    word: str, value: Any, needs: str, *, least: float = 0.0, most: float = math.inf, whole: bool = False
) -> None:
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise InvalidTypeError(_WHO, f"{needs} as {word}", f"{word} is {value!r}", "Give such a number.")
    if not math.isfinite(value) or not least <= value <= most:
        raise InvalidValueError(_WHO, f"{needs} as {word}", f"{word} is {value!r}", "Change it.")
