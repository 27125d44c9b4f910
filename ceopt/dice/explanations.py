"""The result of a call for all rows: counterfactuals, how often columns change in them, and both as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self, final

from ceopt.dice.examples import CounterfactualExamples
from ceopt.dice.json_format import from_text, to_text

if TYPE_CHECKING:
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["CounterfactualExplanations"]


@final
class CounterfactualExplanations:
    """The counterfactuals of all rows of a call, in their order.

    Parameters
    ----------
    cf_examples_list
        One entry a row.
    local_importance
        One mapping a row, column -> share of its counterfactuals in which the column changes; None unless asked for.
    summary_importance
        The same over all counterfactuals of all rows; None unless asked for.
    """

    __slots__ = ("cf_examples_list", "local_importance", "summary_importance")

    def __init__(
        self,
        cf_examples_list: Sequence[CounterfactualExamples],
        local_importance: Sequence[Mapping[str, float]] | None = None,
        summary_importance: Mapping[str, float] | None = None,
    ) -> None:
        self.cf_examples_list = list(cf_examples_list)
        self.local_importance = None if local_importance is None else [dict(shares) for shares in local_importance]
        self.summary_importance = None if summary_importance is None else dict(summary_importance)

    @property
    def solution_sets(self) -> list[SolutionSet | None]:
        """What ceopt says of each row: status, costs, proved bounds; None of what was read from JSON."""
        return [example.solution_set for example in self.cf_examples_list]

    def visualize_as_dataframe(self, display_sparse_df: bool = True, show_only_changes: bool = False) -> None:
        """Show every row and its counterfactuals as tables; arguments as of each :class:`CounterfactualExamples`."""
        for example in self.cf_examples_list:
            example.visualize_as_dataframe(display_sparse_df, show_only_changes)

    def visualize_as_list(self, display_sparse_df: bool = True, show_only_changes: bool = False) -> None:
        """Print every row and its counterfactuals as lists; arguments as of each :class:`CounterfactualExamples`."""
        for example in self.cf_examples_list:
            example.visualize_as_list(display_sparse_df, show_only_changes)

    def to_json(self) -> str:
        """Write the counterfactuals and importances in dice_ml's JSON, version 2.0, which dice_ml reads too.

        Bounds, costs and statuses are not in it; ``SolutionSet.to_json`` writes them.
        """
        return to_text(self.cf_examples_list, self.local_importance, self.summary_importance)

    @classmethod
    def from_json(cls, json_str: str) -> Self:
        """Read what :meth:`to_json`, or dice_ml, wrote; of it no ``solution_set`` is known.

        Raises
        ------
        UnreadableFileError
            No JSON, JSON of another version, or of another shape.
        """
        return cls(*from_text(json_str))

    def __repr__(self) -> str:
        found = [0 if example.final_cfs_df is None else len(example.final_cfs_df) for example in self.cf_examples_list]
        return f"CounterfactualExplanations({len(found)} rows, {sum(found)} counterfactuals)"
