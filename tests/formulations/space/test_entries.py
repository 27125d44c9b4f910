"""Entries of a row whose categories are 0/1 a level."""

from __future__ import annotations

from ceopt import Feature
from ceopt.formulations.space.space import entry_names, entry_places

COLUMNS = [
    Feature("income", kind="continuous", lower=0, upper=1),
    Feature("job", kind="categorical", levels=("cook", "clerk", "nurse")),
    Feature("school", kind="ordinal", levels=("low", "high")),
]


def test_a_category_has_an_entry_a_level_and_any_other_column_one():
    assert entry_names(COLUMNS) == ("income", "job=cook", "job=clerk", "job=nurse", "school")
    assert entry_places(COLUMNS) == (slice(0, 1), slice(1, 4), slice(4, 5))
