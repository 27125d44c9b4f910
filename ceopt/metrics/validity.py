"""Validity: whether counterfactuals get the decision. Five definitions go by the name; each has one of its own here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.predictions import accepted, alike, predicted, wanted
from ceopt.metrics.rows import frame_of, read
from ceopt.solvers.checks import Real, Refusal, Whole
from ceopt.solvers.errors import InvalidTypeError

__all__ = ["distinct_validity", "label_change", "label_gap", "success_rate", "validity"]


def validity(S: Any, model: Any, target: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Share of the counterfactuals that the model, asked anew, puts in the target; higher is better.

    .. math:: \frac{1}{|S|} \sum_{c \in S} [f(c) \in T]

    Parameters
    ----------
    S
        Counterfactuals in the units that the model takes.
    model
        A fitted model, or a function from rows to labels.
    target
        A label, a set of labels, ``OtherThan``, or of a regressor ``AtLeast``, ``AtMost``, ``Between``.
    space
        What the columns are; needed by representations of ceopt, if there are categories.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        An empty set, no target, a ``predict`` that returns probabilities or another shape.

    References
    ----------
    The common definition; RobustX ``ValidityEvaluator`` (for the label 1).

    Examples
    --------
    >>> validity([[1.0], [3.0], [5.0]], lambda rows: rows[:, 0] > 2, True)
    0.6666666666666666
    """
    read("validity", space, S=S)
    return float(accepted("validity", model, S, target, space).mean())


def distinct_validity(
    S: Any, model: Any, target: Any, *, n: int | None = None, space: FeatureSpace | None = None
) -> float:
    r"""How many *distinct* counterfactuals are valid, over the number asked for; higher is better.

    .. math:: \frac{1}{n} \big|\{c \in S : f(c) \in T\}\big|

    Parameters
    ----------
    S, model, target, space
        As for :func:`validity`.
    n
        How many were asked for; by default as many as S has rows, repetitions included.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As :func:`validity`; ``n`` is less than 1 or than the number of distinct rows.

    References
    ----------
    Mothilal, Sharma & Tan (2020), evaluation, validity.

    Examples
    --------
    Two of the three valid rows are equal, and four were asked for.

    >>> distinct_validity([[1.0], [3.0], [3.0], [5.0]], lambda rows: rows[:, 0] > 2, True)
    0.5
    """
    (rows,) = read("distinct_validity", space, S=S)
    valid = accepted("distinct_validity", model, S, target, space)
    distinct = {
        (*numbers, *codes)
        for numbers, codes in zip(rows.numbers[valid].tolist(), rows.codes[valid].tolist(), strict=True)
    }
    asked = len(rows) if n is None else n
    needs = f"n of at least the {len(distinct)} distinct valid rows"
    too_few = Refusal(needs, "Give how many counterfactuals were asked for.")
    Whole(max(len(distinct), 1), None, too_few).require("distinct_validity", "n", asked)
    return len(distinct) / int(asked)


def label_change(x: Any, S: Any, model: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Share of the counterfactuals whose label is not that of the factual, whatever it is; higher is better.

    .. math:: \frac{1}{|S|} \sum_{c \in S} [f(c) \ne f(x)]

    With two labels this is :func:`validity` for an unfavourable factual; with more, another label than the one wanted
    counts too.

    Parameters
    ----------
    x, S
        Factual and counterfactuals.
    model, space
        As for :func:`validity`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As :func:`validity`.

    References
    ----------
    ReLax ``evaluate.py``; Leofante & Potyka (2024), released code (there: of all, or not).

    Examples
    --------
    >>> label_change([0.0], [[1.0], [3.0], [5.0], [9.0]], lambda rows: rows[:, 0] // 4)
    0.5
    """
    read("label_change", space, x=x, S=S)
    before = predicted("label_change", model, x, space)[0]
    return float(1.0 - wanted("label_change", predicted("label_change", model, alike(S, x), space), before).mean())


def label_gap(x: Any, S: Any, model: Any, target: Any = None, *, space: FeatureSpace | None = None) -> float:
    r"""Absolute mean difference of the labels, as numbers, of factual and counterfactuals.

    .. math:: \Big| \frac{1}{|S|} \sum_{c \in S} \big(f(x) - f(c)\big) \Big|

    With labels 0 and 1 this is the share of changed labels. With others it is no share, and changes in opposite
    directions cancel.

    Parameters
    ----------
    x, S
        Factual and counterfactuals.
    model, space
        As for :func:`validity`.
    target
        Only for labels that are no numbers: those in the target count 1, others 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As :func:`validity`; labels that are no numbers, without a target.

    References
    ----------
    CE-OCL ``ce_helpers.py``, ``evaluation``: there called validity.

    Examples
    --------
    >>> label_gap([0.0], [[1.0], [3.0]], lambda rows: (rows[:, 0] > 2).astype(int))
    0.5
    """
    read("label_gap", space, x=x, S=S)
    before, after = (predicted("label_gap", model, table, space) for table in (x, alike(S, x)))
    if before.dtype.kind not in "biuf" or after.dtype.kind not in "biuf":
        if target is None:
            raise InvalidTypeError(
                "label_gap", "labels that are numbers, or a target", f"a label is {before.tolist()[0]!r}",
                "Pass target=, which then counts 1.",
            )  # fmt: skip
        before, after = (wanted("label_gap", labels, target) for labels in (before, after))
    return float(abs(before.astype(np.float64)[0] - after.astype(np.float64).mean()))


def success_rate(S: Any, *, n: int | None = None) -> float:
    r"""Share of the rows without a missing value: those for which a method returned something. No model is asked.

    A method that never checks its own answers has 1 here. Compare :func:`validity`.

    Parameters
    ----------
    S
        A frame or array, missing rows filled with NaN; may be empty if ``n`` is given.
    n
        How many rows were asked for; by default as many as there are.

    Raises
    ------
    InvalidValueError
        No row and no ``n``; ``n`` less than the rows without a missing value.

    References
    ----------
    CARLA ``success_rate.py`` (Pawelczyk et al. 2021); RecourseBench calls the same validity.

    Examples
    --------
    >>> success_rate([[1.0, 2.0], [float("nan"), float("nan")]])
    0.5
    """
    frame = frame_of(S) if isinstance(frame_of(S), pd.DataFrame) else pd.DataFrame(S)
    found = len(frame.dropna())
    asked = len(frame) if n is None else n
    least = max(found, 1)
    too_few = Refusal(f"n of at least {least}", "Give how many rows were asked for.", "{name} is {text}")
    Real(at_least=least, otherwise=too_few).require("success_rate", "n", asked)
    return found / int(asked)
