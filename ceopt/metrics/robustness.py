"""Robustness: validity under a model trained anew, under another model as good, or a little off the plan.

These are shares that were counted. Bounds on what a plan's probability of validity can be are no counts, and belong to
the plans (COPA).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.predictions import accepted, alike, predicted, table_of, wanted
from ceopt.metrics.rows import Floats, read
from ceopt.solvers.checks import Refusal, Whole
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["invalidation_rate", "multiplicity_validity", "plan_validity", "robustness"]


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
    told = []
    for model in _listed("multiplicity_validity", models):
        before = predicted("multiplicity_validity", model, x, space)[0]
        after = predicted("multiplicity_validity", model, alike(S, x), space)
        told.append(~wanted("multiplicity_validity", after, before))
    return np.asarray(np.mean(told, axis=0))


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
        raise InvalidValueError(
            "invalidation_rate", f"sd of at least 0, one or {len(rows.numeric)}", f"sd is {sd!r}", "Correct it."
        )
    draws = Whole(1, None, Refusal("a positive number of draws", "Give for example 1000."))
    draws.require("invalidation_rate", "n_samples", n_samples)
    noise = np.random.default_rng(random_state).standard_normal((n_samples, len(rows.numeric))) * spread
    table = table_of(S, space)
    lost = []
    for place in range(len(rows)):
        copies = rows.numbers[place] + noise
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
