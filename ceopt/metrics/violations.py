"""Violations: changes that a counterfactual asks for and that nobody can make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ceopt.checking.rule_checks import broken_moves
from ceopt.formulations.space.space import FeatureSpace, require_space
from ceopt.metrics.rows import read

__all__ = ["broken_rules", "immutable_changes"]


def immutable_changes(x: Any, S: Any, space: FeatureSpace) -> NDArray[np.int64]:
    r"""How many immutable columns each counterfactual changes, (n,); 0 is needed.

    .. math:: |\{ j\ \text{immutable} : c_j \ne x_j \}|, \qquad
        \text{numbers being equal where}\ |c_j - x_j| \le 10^{-8} + 10^{-5} |x_j|

    Parameters
    ----------
    x, S
        Factual and counterfactuals, in raw units.
    space
        Says which columns are immutable.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No space, an empty set, a missing value.

    References
    ----------
    CARLA ``violations.py`` (Pawelczyk et al. 2021), whose tolerance is numpy's ``isclose``.

    Examples
    --------
    >>> import ceopt
    >>> age = ceopt.Feature("age", kind="integer", mutable=False)
    >>> space = ceopt.FeatureSpace([age, ceopt.Feature("pay", kind="integer")])
    >>> immutable_changes([40, 1], [[40, 2], [41, 3]], space).tolist()
    [0, 1]
    """
    require_space("immutable_changes", space)
    home, rows = read("immutable_changes", space, x=x, S=S)
    fixed = [[not space[name].mutable for name in names] for names in (rows.numeric, rows.categorical)]
    moved = ~np.isclose(rows.numbers, home.numbers)
    switched = rows.codes != home.codes
    return np.asarray(moved[:, fixed[0]].sum(axis=1) + switched[:, fixed[1]].sum(axis=1))


def broken_rules(x: Any, S: Any, space: FeatureSpace) -> NDArray[np.int64]:
    """Count the rules of the space that each counterfactual breaks, (n,); 0 is needed.

    Bounds set by the user, immutable columns, directions, steps, whole numbers, levels: one each per column, compared
    exactly. :func:`ceopt.verify` says which, and checks constraints and the model too.

    Parameters
    ----------
    x, S
        Factual and counterfactuals, in raw units.
    space
        The rules.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No space, an empty set, a missing value.

    References
    ----------
    Share of rows with one or more: "actionability" of RecourseBench, ``(broken_rules(...) > 0).mean()``.

    Examples
    --------
    >>> import ceopt
    >>> space = ceopt.FeatureSpace([ceopt.Feature("age", kind="integer", direction="increasing", upper=99)])
    >>> broken_rules([40], [[41], [39.5], [100]], space).tolist()
    [0, 2, 1]
    """
    require_space("broken_rules", space)
    home, rows = read("broken_rules", space, x=x, S=S)
    names = (*rows.numeric, *rows.categorical)
    before, *after = (
        dict(zip(names, (*numbers, *map(float, codes)), strict=True))
        for table in (home, rows)
        for numbers, codes in zip(table.numbers.tolist(), table.codes.tolist(), strict=True)
    )
    return np.array([len(broken_moves(space, before, point)) for point in after], dtype=np.int64)
