"""One column described anew: the rules of ``FeatureSpace.update``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from ceopt.formulations.digits import digits
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.feature_checks import LEVELS, Kind, require_level
from ceopt.solvers.checks import Choice, plain
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

__all__ = ["changed"]

_NUMBERS = {"continuous", "integer"}


def changed(
    feature: Feature, *, kind: Kind | None = None, levels: Sequence[Any] | None = None, **options: Any
) -> Feature:
    """Give ``feature`` with what is not ``None`` replaced; see :meth:`FeatureSpace.update`."""
    news = {word: value for word, value in options.items() if value is not None}
    for word in ("lower", "upper", "step"):
        if word in news:
            news[f"{word}_inferred"] = False
    if levels is not None:
        levels = LEVELS.require(feature.who, "levels", levels)
        news["levels"] = tuple(plain(level) for level in levels)
    if kind is not None:
        Choice(get_args(Kind)).require(feature.who, "kind", kind)
    if kind in _NUMBERS and feature.step_inferred and "step" not in news:
        news["step"] = None  # that of the data's decimals is a guess, which a kind that is named takes back
    if kind is not None and kind != feature.kind:
        news = _of_kind(feature, kind, news) | {"kind": kind}
    elif "levels" in news and feature.is_finite:
        news |= _known(feature, news["levels"])
    return replace(feature, **news)


def _known(feature: Feature, levels: tuple[Any, ...]) -> dict[str, Any]:
    """Refuse levels that an inferred column never had; let a column made by hand have new categories."""
    known = (*feature.levels, *(feature.categories or ()))
    for level in levels:
        require_level(feature.who, level)
    new = [level for level in levels if level not in known]
    if new and feature.guess:
        raise UnknownNameError.among(feature.who, "level", new[0], dict.fromkeys(known))
    if new and feature.categories is not None:
        return {"categories": (*feature.categories, *new)}
    return {}


def _of_kind(feature: Feature, kind: Kind, news: dict[str, Any]) -> dict[str, Any]:
    if feature.is_finite and kind in _NUMBERS:
        return _numbers_of_levels(feature, kind) | news
    if feature.is_finite:
        return news | _levels_of_levels(feature, news)
    if kind == "integer":
        return _whole_bounds(feature, news) | news
    if kind in _NUMBERS:
        return news
    if "levels" not in news:
        whole = feature.kind == "integer" and math.isfinite(feature.lower) and math.isfinite(feature.upper)
        if not (kind == "binary" and whole and feature.upper - feature.lower == 1):
            raise InvalidValueError(
                feature.who,
                f"levels to become {kind}",
                f"it is {feature.kind} from {digits(feature.lower)} to {digits(feature.upper)}",
                "Give levels=[...].",
            )
        news = news | {"levels": (int(feature.lower), int(feature.upper))}
    cleared = {"lower": -math.inf, "upper": math.inf, "lower_inferred": False, "upper_inferred": False, "step": None}
    return cleared | {"mad": None, "std": None, "range": None} | news


def _levels_of_levels(feature: Feature, news: dict[str, Any]) -> dict[str, Any]:
    if "levels" not in news:
        return {}
    return _known(feature, news["levels"])


def _numbers_of_levels(feature: Feature, kind: Kind) -> dict[str, Any]:
    levels = feature.levels
    numbers = [level for level in levels if isinstance(level, int | float) and not isinstance(level, bool)]
    if len(numbers) < len(levels) or feature.categories is not None:
        raise InvalidTypeError(
            feature.who,
            f"numbers to become {kind}",
            f"its levels are {', '.join(map(repr, levels[:5]))} ({feature.pandas_dtype})",
            "Convert the column in the frame and infer the space again.",
        )
    inferred = bool(feature.guess)
    bounds = {"lower": min(numbers), "upper": max(numbers), "lower_inferred": inferred, "upper_inferred": inferred}
    return {"levels": (), "range": float(max(numbers) - min(numbers)), **bounds}


def _whole_bounds(feature: Feature, news: dict[str, Any]) -> dict[str, Any]:
    """Inferred bounds of a continuous column, moved inwards to whole numbers."""
    inward = {}
    for bound, step in (("lower", math.ceil), ("upper", math.floor)):
        value = getattr(feature, bound)
        if bound not in news and getattr(feature, f"{bound}_inferred") and math.isfinite(value):
            inward[bound] = float(step(value))
    return inward
