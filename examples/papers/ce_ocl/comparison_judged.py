"""What is held against the paper's rows: records by group, what is printed, and whether a mean is as good."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ce_ocl.comparison_asking import summary

__all__ = [
    "CAUSE",
    "FAVOURED",
    "MEASURES",
    "OURS",
    "TARGETS",
    "TARGET_DATA",
    "TARGET_KINDS",
    "Kept",
    "asked",
    "cell",
    "exceptions",
    "group",
    "is_as_good",
    "is_reached",
    "published",
]

#: Names in the suite "ce_ocl2022", and how the tables are headed.
MEASURES: Mapping[str, str] = {
    "validity": "validity",
    "sparsity": "sparsity",
    "categorical_proximity": "categorical proximity",
    "continuous_proximity": "continuous proximity",
    "categorical_diversity": "categorical diversity",
    "continuous_diversity": "continuous diversity",
    "sparsity_based_diversity": "sparsity diversity",
}
#: What is to be at least as good as the paper's, where, and by which of our answers.
TARGETS = ("sparsity", "categorical_proximity", "continuous_proximity")
TARGET_DATA, TARGET_KINDS = ("adult_binary", "compas", "heloc_imputed"), ("logistic", "tree", "forest", "network")
OURS = ("pool", "nearest")
#: By which a cause is shown: another objective.
CAUSE = "raw"
FAVOURED = "already_favourable"
Kept = Mapping[str, Any]


@cache
def published() -> dict[tuple[int, str, str, str], dict[str, list[float]]]:
    """Return the paper's rows by table, data, kind and method."""
    rows = json.loads(Path(__file__).with_name("published_comparison.json").read_text(encoding="utf-8"))["rows"]
    words = ("table", "data", "kind", "method")
    return {tuple(row[word] for word in words): {name: row[name] for name in MEASURES if name in row} for row in rows}


def group(kept: Kept, name: str, kind: str, method: str, place: str = "0") -> list[dict[str, Any]]:
    """Return the records of one group of questions."""
    head = f"{name}/{kind}/{place}/{method}/"
    return [record for key, record in kept.items() if key.startswith(head)]


def asked(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those of people whom the model does not favour already."""
    return [record for record in records if record["status"] != FAVOURED]


def is_reached(measured: float, printed: Sequence[float]) -> bool:
    """Whether a mean is at least as good as a printed one: within its standard error, and the rounding of both."""
    mean, error = printed
    return measured >= mean - error - 0.005


def exceptions(kept: Kept, names: Iterable[str], methods: Sequence[str] = OURS) -> list[tuple[str, str]]:
    """Return data and kind where no set of answers is at least as good as the paper's in every measure."""
    return [
        (name, kind)
        for name, kind in itertools.product([n for n in TARGET_DATA if n in names], TARGET_KINDS)
        if any(group(kept, name, kind, method) for method in methods)
        and not any(is_as_good(kept, name, kind, method) for method in methods)
    ]


def is_as_good(kept: Kept, name: str, kind: str, method: str) -> bool:
    """Whether everybody has answers, as good as the paper's in every measure."""
    records = asked(group(kept, name, kind, method))
    ours, paper = summary(records), published()[3, name, kind, "CE-OCL"]
    return all(record["answers"] for record in records) and all(
        one in ours and is_reached(ours[one][0], paper[one]) for one in TARGETS if one in paper
    )


def cell(value: Sequence[float]) -> str:
    """Return mean and error as a cell."""
    return f"{value[0]:.2f} ({value[1]:.2f})"
