"""Tables shown where the user is: in a notebook as such, anywhere else as text."""

from __future__ import annotations

import sys

import pandas as pd

from ceopt.solvers.errors import printable

__all__ = ["only_changes", "print_rows", "say", "show"]

#: What stands for a value that stays.
_SAME = "-"


def say(text: str) -> None:
    """Print a text of one line or, where the parts were laid out as a table, of several."""
    print(printable(text, keep="\n"))  # noqa: T201 - these functions are asked to show something


def show(frame: pd.DataFrame) -> None:
    """Show a frame by the notebook that runs, or print it whole."""
    notebook = sys.modules.get("IPython")  # one that runs has loaded it
    if notebook is not None and notebook.get_ipython() is not None:
        sys.modules["IPython.display"].display(frame)
    else:
        say(frame.to_string())


def print_rows(frame: pd.DataFrame) -> None:
    """Print each row of a frame as a list."""
    for place in range(len(frame)):
        say(str([frame[name].tolist()[place] for name in frame.columns]))


def only_changes(row: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Return the counterfactuals with a dash for each value that is the row's."""
    shown = {}
    for name in found.columns:
        home = row[name].iloc[0]
        cells = [_SAME if value == home else value for value in found[name].tolist()]
        shown[name] = pd.Series(cells, index=found.index, dtype=object)
    return pd.DataFrame(shown)
