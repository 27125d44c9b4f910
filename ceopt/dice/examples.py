"""The counterfactuals of one row, as dice_ml puts them: frames with the outcome as their last column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import pandas as pd

from ceopt.dice.showing import only_changes, print_rows, say, show
from ceopt.solvers.errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ceopt.solution.solution_set import SolutionSet

__all__ = ["CounterfactualExamples"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CounterfactualExamples:
    """The counterfactuals of one row, nearest first.

    Parameters
    ----------
    test_instance_df
        The row, one row in raw units, with what the model says of it as the last column.
    final_cfs_df
        The counterfactuals, with what the model says of each; None where there is none.
    outcome_name
        The column of the outcome.
    model_type
        "classifier" or "regressor".
    desired_class
        The label, or the set of labels, that was asked for; None of a regressor.
    desired_range
        Least and greatest value that were asked for; None of a classifier.
    solution_set
        What ceopt says: status, costs, proved bounds, why there is no answer or no more; None of what JSON held.
    """

    test_instance_df: pd.DataFrame
    final_cfs_df: pd.DataFrame | None
    outcome_name: str
    model_type: str = "classifier"
    desired_class: Any = None
    desired_range: Any = None
    solution_set: SolutionSet | None = None

    @property
    def final_cfs_df_sparse(self) -> pd.DataFrame | None:
        """The same counterfactuals: they change no column that they could do without at a lower cost."""
        return self.final_cfs_df

    @property
    def test_pred(self) -> Any:
        """What the model says of the row."""
        return self.test_instance_df[self.outcome_name].iloc[0]

    @property
    def new_outcome(self) -> Any:
        """What was asked for."""
        return self.desired_class if self.model_type == "classifier" else self.desired_range

    @property
    def reason(self) -> str:
        """Why there is no counterfactual, or none beyond these; empty where there is nothing to say."""
        return "" if self.solution_set is None else self.solution_set.reason

    def visualize_as_dataframe(self, display_sparse_df: bool = True, show_only_changes: bool = False) -> None:
        """Show the row and its counterfactuals as tables: in a notebook, else as text.

        Parameters
        ----------
        display_sparse_df
            Changes nothing: there is one table of counterfactuals.
        show_only_changes
            Put "-" for what stays.
        """
        del display_sparse_df
        self._tell(show, show_only_changes)

    def visualize_as_list(self, display_sparse_df: bool = True, show_only_changes: bool = False) -> None:
        """Print the row and its counterfactuals as lists; the arguments are those of :meth:`visualize_as_dataframe`."""
        del display_sparse_df
        self._tell(print_rows, show_only_changes)

    def _tell(self, show_frame: Callable[[pd.DataFrame], None], show_only_changes: bool) -> None:
        """Show the row, its counterfactuals, and why there are none or no more."""
        say(f"The row (outcome: {printable(str(self.test_pred))})")
        show_frame(self.test_instance_df)
        if self.final_cfs_df is None:
            status = "" if self.solution_set is None else f" ({self.solution_set.status.value})"
            say(f"No counterfactual{status}. {self.reason}".rstrip())
            return
        say(f"Counterfactuals (outcome wanted: {printable(str(self.new_outcome))})")
        found = self.final_cfs_df
        show_frame(only_changes(self.test_instance_df, found) if show_only_changes else found)
        if self.reason:
            say(self.reason)

    def __repr__(self) -> str:
        count = 0 if self.final_cfs_df is None else len(self.final_cfs_df)
        return f"CounterfactualExamples({count} for outcome {self.new_outcome!r})"
