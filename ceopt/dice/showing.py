"""Tables shown where the user is: in a notebook as such, anywhere else as text."""

from __future__ import annotations

import sys

import pandas as pd

__all__ = ["only_changes", "show"]

#: What stands for a value that stays.
_SAME = "-"


def show(frame: pd.DataFrame) -> None:
    """Show a frame by the notebook that runs, or print it whole."""
    notebook = sys.modules.get("IPython.display")  # a notebook has loaded it
    interactive = notebook is not None and sys.modules["IPython"].get_ipython() is not None
    if notebook is not None and interactive:
        notebook.display(frame)
    else:
        print(frame.to_string())  # noqa: T201 - it is asked to show


def only_changes(row: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Return the counterfactuals with a dash for each value that is the row's."""
    shown = found.astype(object)
    for name in found.columns:
        home = row[name].iloc[0]
        cells = [_SAME if value == home else value for value in found[name].tolist()]
        shown[name] = pd.Series(cells, index=found.index, dtype=object)
    return shown
