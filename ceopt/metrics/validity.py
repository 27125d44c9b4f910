"""Validity of counterfactuals and its robustness, as shares that are counted.

Five definitions go by the name of validity; each has one of its own here. Robustness is validity under a model trained
anew, under another as good, or a little off the plan. Bounds on a plan's probability of validity belong to the plans.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ceopt.base.parallel import each_retrained, labels_of, rows_of_data
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.space import FeatureSpace
from ceopt.oracle.model import accepted, in_column_order_of, meets_raw_target, predictions_of, rows_for_predict
from ceopt.oracle.rows import frame_of, read
from ceopt.solvers.checks import AllOf, Flag, Floats, Real, Refusal, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

# ==== Validity under models that are yet to come: the estimator trained again on parts of later data ==================

_WHO: Final = "future_validity"
_TOO_LARGE: Final = Refusal("a fraction of at most 1", "Give for example 0.8.")
_CHECKS: Final = {
    "n_models": Whole(at_least=1),
    "fraction": AllOf((Real(above=0.0), Real(at_most=1.0, otherwise=_TOO_LARGE))),
    "random_state": Whole(at_least=0),
    "progress": Flag(),
}


def future_validity(
    S: Any,
    estimator: Any,
    X: Any,
    y: ArrayLike,
    target: Any,
    *,
    n_models: int = 100,
    fraction: float = 0.8,
    space: FeatureSpace | None = None,
    n_jobs: int = 1,
    random_state: int = 0,
    progress: bool = False,
) -> Floats:
    r"""Share of retrained models that put each counterfactual in the target, (n,); higher is more robust.

    .. math:: \frac1M \sum_{m=1}^M [f_m(c) \in T]

    with :math:`f_m` a clone of the estimator fitted on a random part of X and y, drawn without replacement: of a
    classifier ``fraction`` of the rows of each class, at least one, of a regressor of all rows. X and y are later data,
    or the data of the present model again. The current validity beside it is
    :func:`~ceopt.metrics.validity` with the present model; with models at hand, take
    :func:`~ceopt.metrics.robustness`.

    Parameters
    ----------
    S
        Counterfactuals in the units that the estimator takes.
    estimator
        A scikit-learn estimator, fitted or not; it stays as it is. Of a pipeline every step is fitted again.
    X, y
        Rows to train on, (n_rows, d), and their labels or values, (n_rows,).
    target, space
        As for :func:`~ceopt.metrics.validity`.
    n_models
        M, how many models are trained.
    fraction
        Part of the rows that each sees, above 0, at most 1.
    n_jobs
        Processes, as joblib counts them; backends as in :meth:`ceopt.Recourse.explain`. One that is killed costs time,
        not the work of the others.
    random_state
        Of the parts, and of estimators whose ``random_state`` is None. The same number gives the same models whatever
        ``n_jobs`` is.
    progress
        Show a bar on standard error.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As for :func:`~ceopt.metrics.validity`; no estimator, another number of labels than rows, an option out of
        range.

    References
    ----------
    Upadhyay, Joshi & Lakkaraju (2021), ROAR; Bui et al., Coverage-validity-aware algorithmic recourse, section 6: 100
    models, each on 80 % of the shifted data.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> future_validity([[2.0, 1.0], [-1.0, -1.0]], LogisticRegression(), X, y, True, n_models=10).tolist()
    [1.0, 0.0]
    """
    check_arguments(_WHO, _CHECKS, locals())
    read(_WHO, space, S=S)
    labels = labels_of(_WHO, y)
    rows = rows_of_data(_WHO, estimator, X, labels)
    decisions = each_retrained(
        _WHO, functools.partial(_future_decisions, S, target, space), estimator, rows, labels,
        n_models=n_models, fraction=fraction, n_jobs=n_jobs, random_state=random_state, progress=progress,
    )  # fmt: skip
    return np.asarray(np.mean(decisions, axis=0))


def _future_decisions(S: Any, target: Any, space: FeatureSpace | None, model: Any) -> NDArray[np.bool_]:
    return accepted(_WHO, model, S, target, space)


# ==== Robustness: validity under a model trained anew, under another model as good, or a little off the plan ==========


def robustness(S: Any, models: Any, target: Any, *, space: FeatureSpace | None = None) -> Floats:
    r"""Share of the models that put each counterfactual in the target, (n,); higher is more robust.

    .. math:: \frac1M \sum_{m=1}^M [f_m(c) \in T]

    Also called empirical or future validity. RobustX's validity after retraining is whether all do:
    ``robustness(...) == 1``.

    Parameters
    ----------
    S
        Counterfactuals.
    models
        Models trained anew, on other seeds, bootstrap samples or later data: each a fitted model or a function.
    target, space
        As for :func:`~ceopt.metrics.validity.validity`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As there; no model.

    References
    ----------
    The common definition, as in Nguyen, Bui, Nguyen, Yue & Nguyen (2022), robust Bayesian recourse, future validity.

    Examples
    --------
    >>> models = [lambda rows, limit=limit: rows[:, 0] > limit for limit in (1, 2, 3, 4)]
    >>> robustness([[2.5], [9.0]], models, True).tolist()
    [0.5, 1.0]
    """
    return np.asarray(_decisions("robustness", S, models, target, space).mean(axis=0))


def plan_validity(S: Any, models: Any, target: Any, *, space: FeatureSpace | None = None) -> float:
    r"""Share of the models that put *all* counterfactuals of a set in the target; higher is more robust.

    .. math:: \frac1M \sum_{m=1}^M \prod_{c \in S} [f_m(c) \in T]

    Parameters
    ----------
    S, models, target, space
        As for :func:`robustness`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As there.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), COPA, definition 1.1 and section 5.2: empirical validity; current validity with the
    one present model.

    Examples
    --------
    >>> models = [lambda rows, limit=limit: rows[:, 0] > limit for limit in (1, 2, 3, 4)]
    >>> plan_validity([[2.5], [9.0]], models, True)
    0.5
    """
    return float(_decisions("plan_validity", S, models, target, space).all(axis=1).mean())


def multiplicity_validity(x: Any, S: Any, models: Any, *, space: FeatureSpace | None = None) -> Floats:
    r"""Share of the models that tell each counterfactual from the factual, (n,).

    .. math:: \frac1M \sum_{m=1}^M [f_m(c) \ne f_m(x)]

    A model that favours x and not c counts as a success: :func:`robustness` is usually what is meant.

    Parameters
    ----------
    x, S
        Factual and counterfactuals.
    models, space
        As for :func:`robustness`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As there.

    References
    ----------
    RobustX ``MultiplicityValidityRobustnessEvaluator.py`` (2025).

    Examples
    --------
    >>> models = [lambda rows, limit=limit: rows[:, 0] > limit for limit in (-1, 2, 3, 4)]
    >>> multiplicity_validity([0.0], [[2.5], [9.0]], models).tolist()
    [0.25, 0.75]
    """
    read("multiplicity_validity", space, x=x, S=S)
    changed = []
    for model in _listed("multiplicity_validity", models):
        before = predictions_of("multiplicity_validity", model, x, space)[0]
        after = predictions_of("multiplicity_validity", model, in_column_order_of(S, x), space)
        changed.append(~meets_raw_target("multiplicity_validity", after, before))
    return np.asarray(np.mean(changed, axis=0))


def invalidation_rate(
    S: Any,
    model: Any,
    target: Any,
    sd: Any,
    *,
    n_samples: int = 1000,
    random_state: int = 0,
    space: FeatureSpace | None = None,
) -> Floats:
    r"""Share of noisy copies of each counterfactual that miss the target, (n,); lower is more robust.

    .. math:: \mathrm{P}\big(f(c + e) \notin T\big), \qquad e \sim N(0, \mathrm{diag}(\sigma)^2)

    Estimated from ``n_samples`` draws, the same for every counterfactual; the standard error is at most
    :math:`1/(2\sqrt n)`. Only numeric columns are moved, in raw units, and whole numbers do not stay whole.

    Parameters
    ----------
    S
        Counterfactuals.
    model, target, space
        As for :func:`~ceopt.metrics.validity.validity`.
    sd
        Standard deviations of the noise: one for all numeric columns, or one for each.
    n_samples, random_state
        How many draws, and their seed.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As there; an ``sd`` that is negative or of another length; no draw.

    References
    ----------
    Pawelczyk et al. (2023), PROBE, recourse invalidation rate. CARLA's file of this name returns
    :math:`y^* -` the mean of *probabilities* under noise of variance ``var``.

    Examples
    --------
    At the edge half of the copies are lost, far from it none.

    >>> rate = invalidation_rate([[0.0], [9.0]], lambda rows: rows[:, 0] > 0, True, sd=1.0, n_samples=4000)
    >>> rate.round(1).tolist()
    [0.5, 0.0]
    """
    (rows,) = read("invalidation_rate", space, S=S)
    spread = np.asarray(sd, dtype=np.float64)
    if spread.shape not in {(), (len(rows.numeric),)} or not (np.isfinite(spread).all() and (spread >= 0.0).all()):
        needs = f"sd of at least 0, one or {len(rows.numeric)}"
        raise InvalidValueError("invalidation_rate", needs, f"sd is {sd!r}", "Correct it.")
    draws = Whole(1, None, Refusal("a positive number of draws", "Give for example 1000."))
    draws.require("invalidation_rate", "n_samples", n_samples)
    noise = np.random.default_rng(random_state).standard_normal((n_samples, len(rows.numeric))) * spread
    table = rows_for_predict(S, space)
    is_amount = ~rows.hold_no_amount(rows.numbers)
    lost = []
    for place in range(len(rows)):
        copies = rows.numbers[place] + np.where(is_amount[place], noise, 0.0)
        copies[:, rows.numbers[place] == MISSING] = np.nan
        if isinstance(table, pd.DataFrame):
            asked: Any = table.iloc[[place] * n_samples].reset_index(drop=True)
            asked[list(rows.numeric)] = copies
        else:
            asked = copies
        lost.append(1.0 - accepted("invalidation_rate", model, asked, target, space).mean())
    return np.array(lost)


def _decisions(who: str, S: Any, models: Any, target: Any, space: FeatureSpace | None) -> NDArray[np.bool_]:
    """Return which model (rows) accepts which counterfactual (columns)."""
    read(who, space, S=S)
    return np.array([accepted(who, model, S, target, space) for model in _listed(who, models)])


def _listed(who: str, models: Any) -> list[Any]:
    if hasattr(models, "predict") or not isinstance(models, Iterable) or isinstance(models, str):
        raise InvalidTypeError(who, "a list of models", f"models is {type(models).__name__}", "Write models=[...].")
    listed = list(models)
    if not listed:
        raise InvalidValueError(who, "a model", "models is empty", "Give models that were trained anew.")
    return listed


# ==== Validity ========================================================================================================


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
    if n is None:
        n = len(rows)
    needs = f"n of at least the {len(distinct)} distinct valid rows"
    too_few = Refusal(needs, "Give how many counterfactuals were asked for.")
    Whole(max(len(distinct), 1), None, too_few).require("distinct_validity", "n", n)
    return len(distinct) / int(n)


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
    before = predictions_of("label_change", model, x, space)[0]
    after = predictions_of("label_change", model, in_column_order_of(S, x), space)
    return float(1.0 - meets_raw_target("label_change", after, before).mean())


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
    before, after = (predictions_of("label_gap", model, table, space) for table in (x, in_column_order_of(S, x)))
    if before.dtype.kind not in "biuf" or after.dtype.kind not in "biuf":
        if target is None:
            but = f"a label is {before.tolist()[0]!r}"
            then = "Pass target=, which then counts 1."
            raise InvalidTypeError("label_gap", "labels that are numbers, or a target", but, then)
        before, after = (meets_raw_target("label_gap", labels, target) for labels in (before, after))
    return float(abs(before.astype(np.float64)[0] - after.astype(np.float64).mean()))


def found(S: Any, space: FeatureSpace | None) -> pd.DataFrame | NDArray[Any]:
    """Return the rows that a method returned: those that lack no cell, or only cells of columns that may be missing."""
    table: pd.DataFrame | NDArray[Any] = frame_of(S)
    if not isinstance(table, pd.DataFrame):
        table = np.asarray(table)
    if table.ndim != 2:
        return table
    is_missing = np.asarray(pd.isna(table))
    is_lost = is_missing
    if space is not None and is_missing.shape[1] == len(space):
        names = table.columns if isinstance(table, pd.DataFrame) else space.names
        is_lost = is_missing[:, [name not in space or space[name].missing is False for name in names]]
    is_kept = ~is_lost.any(axis=1) & ~is_missing.all(axis=1)
    if isinstance(table, pd.DataFrame):
        return table.iloc[np.flatnonzero(is_kept)]
    return table[is_kept]


def success_rate(S: Any, *, n: int | None = None, space: FeatureSpace | None = None) -> float:
    r"""Share of the rows without a missing value: those for which a method returned something. No model is asked.

    A method that never checks its own answers has 1 here. Compare :func:`validity`.

    Parameters
    ----------
    S
        A frame or array, missing rows filled with NaN; may be empty if ``n`` is given.
    n
        How many rows were asked for; by default as many as there are.
    space
        Which columns may be missing: their cells do not count, unless all of a row are missing.

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
    frame = pd.DataFrame(frame_of(S))
    count = len(found(frame, space))
    if n is None:
        n = len(frame)
    least = max(count, 1)
    too_few = Refusal(f"n of at least {least}", "Give how many rows were asked for.", "{name} is {text}")
    Real(at_least=least, otherwise=too_few).require("success_rate", "n", n)
    return count / int(n)
