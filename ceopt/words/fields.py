"""Templates by name, and the fields that each may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["FIELDS"]

_TABLE: Final = """
    thousands:  decimal:  list_separator:  or_separator:  separator:  next_change:  connecting:
    quoted: value           amount: value unit          percent: value unit      currency: value unit
    yes:                    no:                         missing:

    raise: column before after unit by                  lower: column before after unit by
    raise_part: column before after unit by done        lower_part: column before after unit by done
    raise_level: column before after                    lower_level: column before after
    change: column before after                         switch_on: column before after
    switch_off: column before after                     follows: column before after unit
    hold: column before                                 way: rank changes
    for_rule: change rules  the_rule: rule

    optimal_one: target     optimal_many: target count  feasible_one: target     feasible_many: target count
    infeasible: target      time_limit: target          rejected: target         already_favourable: target
    unbounded: target       error: target

    target_labels: labels   target_probability: label level                      target_between: low high
    target_at_least: value  target_at_most: value       target_trees: target share
    target_every_tree: target                           target_other: label

    max_feature:            max_features: k             max_column:              max_columns: k
    at_most: column value   at_least: column value      equals: column value     is_not: column value
    is_one_of: column values                            changes: column          stays: column
    linear_at_most: terms value                         linear_at_least: terms value
    linear_equals: terms value                          within: rule width
    or_no_further: rule                                 or_little_further: rule width
    if_then: condition result                           transitions: column ways
    transition: before after                            allowed_rows: columns count
    exactly_one: columns
    hull_inside: rows       hull_near: rows radius      hull_anywhere: rows
    people_of_target:       people_of_data: count       follows_from: column causes
    robust: level           robust_near: level radius

    must_stay: column value                             may_only_rise: column value
    may_only_fall: column value                         moves_in_steps: column step value
    moves_in_steps_of_data: column step value
    cannot_become: column values                        stays_between: column low high

    beyond_one: name        beyond_many: name count people
    beyond_unmoved: name count people
    beyond_line: line       beyond_no_line:             beyond_leave_out:

    conflict_found:         conflict_among:             conflict_named: name rule
    conflict_wider: rule width                          conflict_wider_for: rule count widths
    widths: least most
    conflict_unknown: why   conflicts_late:             conflicts_interrupted:

    favourable_already:     proved_none:                proved_no_more:          no_more_as: why
    gap_open: percent       time_used_up: limit_s       time_ended:              interrupted:
    time_ended_before:
    points_failed: count failure                        point_failed: failure
    no_other_point: failure breaks_rules: rules         breaks_a_rule:           model_predicts: label
    not_believed: solver    nothing_at_margin:          bound_disproved: solver bound
    start_in_hand: solver   least_cost_unproved:        cheaper_than_proved:     none_met:
    not_distinct_left_out:  tie_unsettled:          hint_why:                   reach_of_data: columns
    width_unknown: why      widths_unproved:            in_conflict: rules       widths_unfinished: why
    conflict_unfinished: rules why                      none_needed: why         none_to_blame:
    none_to_blame_even_wider: times                     late:                    was_interrupted:
    steps_may_pass:         steps_leave_gap: percent
    ties_leave_gap: percent

    none_predicted: count target                        candidates_lost: count target causes
    lost_in_reach: count    break_rule: count rule      fewer_diverse: answers wanted
    fewer_of_all: answers
    surrogate_proof:        boundary_proof:             radius_raised: radius    margin_raised:
    fewer_than_wanted: answers wanted                   no_surrogate: why        none_passed:
    no_other_cell: cost     more_cells: count           search_ended:            advice_kept:
    row_interrupted:        row_lost:                   out_of_memory:           row_not_begun:
"""


def _fields() -> dict[str, tuple[str, ...]]:
    table: dict[str, list[str]] = {}
    fields: list[str] = []
    for word in _TABLE.split():
        if word.endswith(":"):
            fields = table[word.removesuffix(":")] = []
        else:
            fields.append(word)
    return {name: tuple(found) for name, found in table.items()}


#: Template -> its fields.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = _fields()
