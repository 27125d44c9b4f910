"""What a space lets each column do, in sentences: limits that an answer keeps beside the rules of a question."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ceopt.formulations.space.feature import is_gap
from ceopt.formulations.space.limits import allowance
from ceopt.formulations.space.reachable import stepped
from ceopt.solvers.checks import plain
from ceopt.words.language import Language, is_number
from ceopt.words.sentences import value_phrase

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.limits import Limit

#: Direction -> template.
_DIRECTIONS: Final = {"increasing": "column_rises", "decreasing": "column_falls"}


def column_limits(feature: Feature, values: Sequence[Any], language: Language) -> list[str]:
    """Return what a column may do, one text a limit.

    Parameters
    ----------
    feature
        The column.
    values
        What stands there today, of each person. Of one alone the limits are told as they bind that person.
    language
        Says it.

    Examples
    --------
    >>> from ceopt.formulations.space import Feature
    >>> from ceopt.words.language import language_of
    >>> age = Feature("age", kind="integer", lower=18, upper=99, direction="up", max_up=2, unit="years")
    >>> column_limits(age, [40, 50], language_of("doc", "en"))
    ['may only rise', 'rises by at most 2 years', 'at most 99 years']
    """
    values = list(map(plain, values))
    if not feature.mutable:
        return [language.put("column_fixed")]
    own = values[0] if len(values) == 1 else None
    has_label = len(values) == 1 and feature.is_label_value(own)
    limits: list[str] = []
    if not has_label:
        if feature.direction in _DIRECTIONS:
            limits.append(language.put(_DIRECTIONS[feature.direction]))
        limits += _moves(feature, own, language)
    if not feature.is_finite:
        limits += _bounds(feature, values, language, is_one_way=not has_label)
    limits += _labels(feature, values, language)
    return limits


# ---- how far from the person's own value -----------------------------------------------------------------------------
def _moves(feature: Feature, own: Any, language: Language) -> Iterator[str]:
    if feature.max_up is not None and feature.direction != "decreasing":
        yield language.put("column_up", value=_width(feature, feature.max_up, own, language))
    if feature.max_down is not None and feature.direction != "increasing":
        yield language.put("column_down", value=_width(feature, feature.max_down, own, language))


def _width(feature: Feature, limit: Limit, own: Any, language: Language) -> str:
    """Return how far a column may move: an amount, levels, or a share, of the person's own value where it is known."""
    if not isinstance(limit, str):
        if feature.kind != "ordinal":
            return _said(feature, limit, language)
        if limit == 1:
            return language.put("column_level")
        return language.put("column_levels", count=language.number(limit))
    share = language.number(float(limit.removesuffix("%")))
    if not is_number(own):
        return language.put("column_share", share=share)
    width = float(stepped(feature, allowance(limit, own)))
    fields = {"own": _said(feature, abs(own), language), "value": _said(feature, width, language)}
    return language.put("column_share_of", share=share, **fields)


# ---- bounds and steps ------------------------------------------------------------------------------------------------
def _bounds(feature: Feature, values: Sequence[Any], language: Language, *, is_one_way: bool) -> Iterator[str]:
    """Give the ends to which a column may come, what that is to those who stand beyond, and steps that were set."""
    amounts = [value for value in values if is_number(value) and not feature.is_label_value(value)]
    if math.isfinite(feature.lower) and not (is_one_way and feature.direction == "increasing"):
        beyond = [value for value in amounts if value < feature.lower]
        name = "column_at_least_seen" if feature.lower_inferred else "column_at_least"
        yield _beyond(language.put(name, value=_said(feature, feature.lower, language)), beyond, values, language)
    if math.isfinite(feature.upper) and not (is_one_way and feature.direction == "decreasing"):
        beyond = [value for value in amounts if value > feature.upper]
        name = "column_at_most_seen" if feature.upper_inferred else "column_at_most"
        yield _beyond(language.put(name, value=_said(feature, feature.upper, language)), beyond, values, language)
    if feature.step is not None and not feature.step_inferred:
        yield language.put("column_steps", step=_said(feature, feature.step, language))


def _beyond(bound: str, beyond: Sequence[Any], values: Sequence[Any], language: Language) -> str:
    if not beyond:
        return bound
    if len(values) == 1:
        return language.put("column_beyond", bound=bound)
    return language.put(
        "column_beyond_many", bound=bound, count=language.number(len(beyond)), people=language.number(len(values))
    )


# ---- missing cells and codes -----------------------------------------------------------------------------------------
def _labels(feature: Feature, values: Sequence[Any], language: Language) -> Iterator[str]:
    """Give what becomes of missing cells and of codes; to one person only what concerns them."""
    fill = language.number(feature.fill) if math.isfinite(feature.fill) else ""
    is_one = len(values) == 1
    if feature.missing and (not is_one or is_gap(values[0])):
        stays = feature.missing == "stays" or not fill
        yield language.put("column_stays_missing" if stays else "column_fill", fill=fill)
    if feature.missing == "may_vanish" and fill:
        yield language.put("column_vanishes", fill=fill)
    if not feature.codes:
        return
    codes = language.field(tuple(language.level(code) for code in feature.codes))
    if not is_one or values[0] in feature.codes:
        yield language.put("column_leaves_code" if fill else "column_keeps_code", codes=codes, fill=fill)
    if feature.codes_in_reach and fill:
        yield language.put("column_takes_code", codes=codes, fill=fill)


def _said(feature: Feature, value: Any, language: Language) -> str:
    return language.phrase(value_phrase(feature, value))
