"""Diversity: in what a further answer differs from those before it. One way a file, listed by the word for each."""

from __future__ import annotations

from collections.abc import Callable

from ceopt.formulations.constraints.diversity.distinct import Distinct
from ceopt.formulations.constraints.diversity.diversity import (
    AbstractDiversity,
    OtherCluster,
    OtherDecisions,
    OtherSupport,
)

__all__ = ["DIVERSITIES"]

#: Ways to differ by the word that ``explain(diversity=...)`` takes.
DIVERSITIES: dict[str, Callable[[], AbstractDiversity]] = {
    "distinct": Distinct,
    "pool": OtherDecisions,
    "support": OtherSupport,
    "clusters": OtherCluster,
}
