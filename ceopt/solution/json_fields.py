"""The fields of a solution set in JSON, and what each may hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from ceopt.solvers.checks import is_number
from ceopt.solvers.errors import InvalidTypeError

__all__ = [
    "ANSWER",
    "RESULT",
    "SURROGATE",
    "is_label",
    "is_list",
    "is_plain",
    "is_text",
    "list_of",
    "or_none",
    "require_fields",
]

Check = Callable[[Any], bool]


def or_none(check: Check) -> Check:
    """Return a check that lets null pass too."""
    return lambda value: value is None or check(value)


_is_number_or_none: Final = or_none(is_number)


def is_text(value: Any) -> bool:
    """Whether a value is text."""
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


_is_mapping_or_none: Final = or_none(_is_mapping)


def is_list(value: Any) -> bool:
    """Whether a value is a list as JSON has it."""
    return isinstance(value, list)


def list_of(check: Check) -> Check:
    """Return a check of a list whose every entry passes one."""
    return lambda value: isinstance(value, list | tuple) and all(check(entry) for entry in value)


def _mapping_of(check: Check) -> Check:
    return lambda value: isinstance(value, Mapping) and all(check(entry) for entry in value.values())


def _is_printed(value: Any) -> bool:
    return list_of(is_number)(value) and len(value) == 2 and all(math.isfinite(number) for number in value)


def _is_conflict(value: Any) -> bool:
    three = isinstance(value, list | tuple) and len(value) == 3
    return three and isinstance(value[0], str) and isinstance(value[1], str) and _is_number_or_none(value[2])


def _is_score(value: Any) -> bool:
    return _is_number_or_none(value) or _mapping_of(_is_number_or_none)(value)


def is_plain(value: Any) -> bool:
    """Whether a value is null, text, true, false or a number."""
    return value is None or isinstance(value, str | bool) or is_number(value)


_is_actions: Final = or_none(_mapping_of(is_plain))


def is_label(value: Any) -> bool:
    """Whether a value may label a row: what can be looked up."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


RESULT: dict[str, tuple[str, Check]] = {
    "query_id": ("a label, of text, a number or a time", is_label),
    "bound": ("a number or null", _is_number_or_none),
    "gap": ("a number or null", _is_number_or_none),
    "margin": ("a number or null", _is_number_or_none),
    "complete": ("true or false", _is_truth),
    "reason": ("text", is_text),
    "conflict": ("a list of [name, sentence, number or null]", list_of(_is_conflict)),
    "relaxed": ("numbers by name", _mapping_of(is_number)),
    "timings": ("numbers by name", _mapping_of(is_number)),
    "solver": ("text", is_text),
    "versions": ("texts by name", _mapping_of(is_text)),
    "options": ("values by name", _is_mapping),
    "target": ("text", is_text),
    "removed": ("texts by name", _mapping_of(is_text)),
    "rules": ("texts by name", _mapping_of(is_text)),
    "beyond": ("texts by name", _mapping_of(is_text)),
    "fingerprints": ("texts by name", _mapping_of(is_text)),
    "size": ("whole numbers by name", _mapping_of(_is_whole)),
    "min_distance": ("a number or null", _is_number_or_none),
    "after_distance_filter": ("a list of whole numbers", list_of(_is_whole)),
    "after_diversity_filter": ("a list of whole numbers", list_of(_is_whole)),
    "safety": ("a list of numbers", list_of(is_number)),
    "surrogate": ("values by name, or null", _is_mapping_or_none),
    "space": ("values by name, or null", _is_mapping_or_none),
}
SURROGATE: dict[str, tuple[str, Check]] = {
    "coef": ("numbers by name", _mapping_of(is_number)),
    "intercept": ("a number", is_number),
    "fidelity": ("a number", is_number),
    "stability": ("a number", is_number),
    "worst_case_error": ("a number", is_number),
    "radius": ("a number", is_number),
    "program_status": ("text", is_text),
    "program_gap": ("a number", is_number),
    "n_queries": ("a whole number", _is_whole),
}
ANSWER: dict[str, tuple[str, Check]] = {
    "cost": ("a number", is_number),
    "score": ("a number, or numbers by label", _is_score),
    "slack": ("a number or null", _is_number_or_none),
    "changed": ("a list of texts", list_of(is_text)),
    "verified": ("true or false", _is_truth),
    "rank": ("a whole number", _is_whole),
    "bound": ("a number or null", _is_number_or_none),
    "gap": ("a number or null", _is_number_or_none),
    "asked_by": ("lists of texts by name", _mapping_of(list_of(is_text))),
    "printed": ("two numbers by name", _mapping_of(_is_printed)),
    "actions": ("values by name, or null", _is_actions),
    "cluster": ("a number, text or null", is_plain),
    "way": ("text or null", or_none(is_text)),
}


def require_fields(who: str, where: str, given: Mapping[str, Any], known: Mapping[str, tuple[str, Check]]) -> None:
    """Refuse a field that holds something else than it may."""
    for name, (needs, check) in known.items():
        if name in given and not check(given[name]):
            said = repr(given[name])
            said = said if len(said) <= 80 else f"{said[:80]}..."
            raise InvalidTypeError(who, f"{needs} as {name!r}{where}", f"it is {said}", "Write it anew with to_json.")
