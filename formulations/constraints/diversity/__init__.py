"""Diversity: in what a further answer differs from those before it. One way a file, listed by the word for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ceopt.formulations.constraints.diversity.distinct import Distinct
from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity, OtherDecisions, OtherSupport
from ceopt.formulations.constraints.diversity.other_cluster import OtherCluster
from ceopt.solvers.errors import InvalidTypeError, UnknownNameError

__all__ = ["DIVERSITIES", "parse_diversity"]

#: Ways to differ by the word that ``explain(diversity=...)`` takes.
DIVERSITIES: Mapping[str, Callable[[], AbstractDiversity]] = {
    "distinct": Distinct,
    "pool": OtherDecisions,
    "support": OtherSupport,
    "clusters": OtherCluster,
}


def parse_diversity(given: Any, *others: str) -> AbstractDiversity | None:
    """Return a way to differ given by word or as an object, None for one of the words ``others``; or refuse it."""
    if isinstance(given, AbstractDiversity):
        return given
    words = (*DIVERSITIES, *others)
    if not isinstance(given, str):
        raise InvalidTypeError(
            "explain", "a word or ceopt.Apart(least) as diversity", f"diversity is {given!r}",
            f"Choose from: {', '.join(words)}, ceopt.Apart(least).",
        )  # fmt: skip
    if given not in words:
        raise UnknownNameError.among("explain", "diversity", given, words)
    return None if given in others else DIVERSITIES[given]()
