"""What the results keep of a fold: means over its people, of each method alone and of those that are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["OURS", "RIVALS", "SUMMARIES"]

Floats = NDArray[np.float64]
Found = Mapping[str, Any]

OURS = "FR-MPM-PROJ"
#: LIME with ROAR: as in the paper and around the person; as the paper descends and exactly.
RIVALS = (
    "LIME-ROAR",
    "LIME-ROAR, exact",
    "LIME-ROAR, around the person",
    "LIME-ROAR, around the person, exact",
)
MEASURES = ("cost", "current", "future")
DIGITS = 5


def _recourse(found: Found) -> dict[str, Any]:
    """Return the means of each method, of each pair that is compared, and of the actions, and seconds a person."""
    methods = found["methods"]
    count = max(found["people"], 1)
    return {
        "people": found["people"],
        "classifiers": found["classifiers"],
        "alone": {name: _means(methods, (name,))[name] for name in methods},
        "pairs": {rival: _means(methods, (OURS, rival)) for rival in RIVALS},
        "actions": {name: _action_means(one) for name, one in found["actions"].items()},
        "seconds": {name: one["seconds"] / count for name, one in methods.items()},
    }


def _means(methods: Found, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return mean cost and validities by level, over the people to whom all these methods give all their points."""
    tables = {name: {key: np.array(methods[name][key], dtype=float) for key in MEASURES} for name in names}
    whole = np.logical_and.reduce([~np.isnan(one["cost"]).any(axis=1) for one in tables.values()])
    found: dict[str, dict[str, Any]] = {}
    for name, one in tables.items():
        found[name] = {"people": int(whole.sum()), "levels": list(methods[name]["levels"])}
        for key, values in one.items():
            found[name][key] = _rounded(values[whole].mean(axis=0)) if whole.any() else []
    return found


def _action_means(one: Found) -> dict[str, Any]:
    tables = {key: np.array(one[key], dtype=float) for key in MEASURES}
    has_point = ~np.isnan(tables["cost"])
    found: dict[str, Any] = {"without": int((~has_point).sum())}
    for key, values in tables.items():
        found[key] = round(float(values[has_point].mean()), DIGITS) if has_point.any() else float("nan")
    return found


def _quality(found: Found) -> dict[str, Any]:
    """Return each surrogate's mean fidelity and stability by setting and size, and the median condition number."""
    summary: dict[str, Any] = {}
    for setting, sizes in found.items():
        summary[setting] = {}
        for size, one in sizes.items():
            surrogates = {}
            for name, measured in one["surrogates"].items():
                surrogates[name] = {key: round(float(np.mean(values)), DIGITS) for key, values in measured.items()}
            condition = float(f"{np.median(one['condition']):.4g}")
            summary[setting][size] = {"surrogates": surrogates, "condition": condition, "people": len(one["condition"])}
    return summary


def _as_found(found: Found) -> dict[str, Any]:
    return dict(found)


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), DIGITS) for value in values]


#: Part -> from what a fold found to what is kept of it.
SUMMARIES: Mapping[str, Callable[[Found], dict[str, Any]]] = {
    "recourse": _recourse,
    "quality": _quality,
    "planes": _as_found,
    "causes": _as_found,
}
