"""Options of dice_ml: which steer its search, which would change what an answer means, and the one warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final

from ceopt.solvers.errors import InvalidValueError, UnknownNameError, printable

__all__ = ["METHODS", "check_options", "check_own_options", "warn_once"]

#: Ways of searching that dice_ml has for models without gradients.
METHODS: Final = ("random", "genetic", "kdtree")

#: What steers a search, of any of the methods; a program is not searched, so that they change nothing.
STEERING: Final = frozenset(
    {
        "algorithm", "categorical_penalty", "diversity_loss_type", "diversity_weight", "eps", "feature_weights",
        "init_near_query_instance", "initialization", "learning_rate", "limit_steps_ls", "loss_converge_maxiter",
        "loss_diff_thres", "max_iter", "maxiterations", "min_iter", "optimizer", "posthoc_sparsity_algorithm",
        "posthoc_sparsity_param", "project_iter", "proximity_weight", "random_seed", "random_state", "sample_size",
        "sparsity_weight", "stopping_threshold", "thresh", "tie_random", "verbose", "yloss_type",
    }
)  # fmt: skip
#: Keywords of :class:`ceopt.Recourse` that hold for every call; all others follow from what a call asks.
OWN: Final = (
    "constraints", "cost", "diversity", "formulation", "margin", "random_state", "relative_gap", "solver",
    "solver_options", "threads", "time_limit_s", "why",
)  # fmt: skip
_NAMED: Final = frozenset(
    {"query_instances", "total_CFs", "desired_class", "desired_range", "permitted_range", "features_to_vary"}
)


def check_options(who: str, given: Mapping[str, Any]) -> None:
    """Refuse what is no option of dice_ml, and what would give an answer another meaning.

    Raises
    ------
    UnknownNameError
        No option of that name.
    InvalidValueError
        Weights of one's own for columns.
    """
    for name in given:
        if name not in STEERING:
            raise UnknownNameError.among(who, "option", name, sorted(STEERING | _NAMED))
    weights = given.get("feature_weights", "inverse_mad")
    if weights != "inverse_mad":
        then = "Give columns their weights in the space: Dice(..., space=data.space.update(name, weight=2))."
        raise InvalidValueError(who, "feature_weights='inverse_mad'", f"feature_weights is {weights!r}", then)


def check_own_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of Recourse, or refuse one that it does not have or that a call of dice_ml says."""
    for name in given:
        if name not in OWN:
            raise UnknownNameError.among("Dice", "option", name, OWN)
    return dict(given)


def warn_once(without_effect: Mapping[str, Any], black_box: str, *, stacklevel: int) -> None:
    """Name in one warning the options that change nothing, and a model that is answered as a black box."""
    said = []
    if without_effect:
        named = ", ".join(f"{name}={value!r}" for name, value in without_effect.items())
        said.append(f"ceopt.dice solves a program and does not search, so that these options change nothing: {named}.")
    if black_box:
        said.append(
            f"The model is answered as a black box, through a surrogate: its answers are checked on the model, but not "
            f"proved to be nearest. {black_box}"
        )
    if said:
        warnings.warn(printable(" ".join(said)), UserWarning, stacklevel=stacklevel + 1)
