"""A column of ones that moved."""

from __future__ import annotations

import numpy as np

from ceopt.formulations.programs.subset.pairs import Floats

__all__ = ["moved_intercept"]


def moved_intercept(before: Floats, after: Floats) -> str:
    """Return a sentence where the last column was 1, as an intercept's is, and is so no more; else nothing."""
    first, last = np.atleast_2d(before), np.atleast_2d(after)
    if first.shape[1] == 1 or (first[:, -1] != 1.0).any() or (last[:, -1] == 1.0).all():
        return ""
    return "The last column was 1 and moved: if it is the intercept's, hold it by fixed=[-1]."
