"""How much a surrogate changes from a person to those nearby."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ceopt.metrics.stability import stability
from ceopt.solvers.deadline import OutOfTimeError, checkpoint
from ceopt.solvers.errors import CeoptError
from ceopt.surrogates.black_box import QueryLimitError
from ceopt.surrogates.linear_fit import fitted_on

if TYPE_CHECKING:
    from ceopt.surrogates.linear_fit import LinearFit
    from ceopt.surrogates.local_search import LocalSearch

__all__ = ["stability_of"]

#: People nearby, and their standard deviation in scaled columns: the numbers of the source's released code.
_NEARBY: Final = 10
_NEAR: Final = 0.001


def stability_of(search: LocalSearch, fit: LinearFit, surrogate: Any, random_state: int) -> float:
    """Return the greatest distance of the normalised parameters from those fitted for people near the person.

    Nine in ten of their rows or more are the person's own, so that the model is asked little; surrogates that draw
    their own rows ask about all of them. It is nan where the model may not be asked any more, or the time is over, and
    of fewer people where it ends on the way.
    """
    rng = np.random.default_rng(random_state)
    columns = fit.sample.columns
    rows = search.way.rows
    assert columns.factual is not None  # noqa: S101 - the columns are about a person
    home = columns.encoded(columns.factual[None])
    coefs = []
    intercepts = []
    for _ in range(_NEARBY):
        shift = _NEAR * rng.standard_normal(len(columns.names))
        try:
            checkpoint("fitting the surrogate")
            sample = search.sampler.shifted(rows, fit.sample, shift)
            own = fitted_on(surrogate, sample, rows.box, columns.decode(home + shift), search.data)
        except (QueryLimitError, OutOfTimeError):
            break
        except CeoptError:  # a sample of which the classes' means are equal
            continue
        coefs.append(own.coef)
        intercepts.append(own.intercept)
    if not coefs:
        return math.nan
    return float(stability(fit.coef, coefs, intercept=fit.intercept, nearby_intercept=intercepts))
