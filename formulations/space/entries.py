"""Entries of a row whose categories are 0/1 a level: how they are called, and where each column's stand."""

from __future__ import annotations

from collections.abc import Iterable

from ceopt.formulations.space.feature import Feature

__all__ = ["entry_names", "entry_places"]


def entry_names(features: Iterable[Feature]) -> tuple[str, ...]:
    """Return names (p,): a column's own, and "column=level" for each level of a category."""
    found: list[str] = []
    for feature in features:
        if feature.kind == "categorical":
            found += [f"{feature.name}={level}" for level in feature.levels]
        else:
            found.append(feature.name)
    return tuple(found)


def entry_places(features: Iterable[Feature]) -> tuple[slice, ...]:
    """Return where the entries of each column stand, (d,): one for each level of a category, else one."""
    found = []
    start = 0
    for feature in features:
        stop = start + (len(feature.levels) if feature.kind == "categorical" else 1)
        found.append(slice(start, stop))
        start = stop
    return tuple(found)
