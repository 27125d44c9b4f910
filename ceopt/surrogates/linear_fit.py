"""A local surrogate of any kind, fitted and read as coefficients in scaled columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from sklearn.base import clone

from ceopt.metrics.stability import local_fidelity
from ceopt.oracle.black_box import QueryLimitError
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.surrogates.minimax import MinimaxProbabilityMachine
from ceopt.tolerances import COEFFICIENT_ROUNDING, SAME_LINE

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.oracle.black_box import BlackBox
    from ceopt.solvers.checks import Floats
    from ceopt.surrogates.sampler import BoundarySample

#: Rows that are asked about for the fidelity.
_ASKED: Final = 500


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """A surrogate, favourable where ``coef @ z + intercept >= 0``.

    Parameters
    ----------
    coef, intercept
        In scaled columns, (p,).
    worst_case_error, radius
        Of a minimax machine, and its unfavourable class's; nan of the others.
    sample
        What it was fitted on.
    """

    coef: Floats
    intercept: float
    worst_case_error: float
    radius: float
    sample: BoundarySample

    def score(self, points: Floats) -> Floats:
        """Return the scores of points (m, p)."""
        return np.asarray(points @ self.coef + self.intercept)

    @property
    def unit(self) -> float:
        """By how much the mean scores of the sample's two classes differ; 1 where they do not."""
        scores = self.score(self.sample.encoded)
        good = self.sample.favourable
        apart = float(scores[good].mean() - scores[~good].mean())
        return apart if apart > 0.0 else 1.0

    def is_nearly(self, other: LinearFit) -> bool:
        """Whether another surrogate has the same half-space, so nearly that no answer tells them apart."""
        mine = np.append(self.coef, self.intercept) / np.linalg.norm(self.coef)
        theirs = np.append(other.coef, other.intercept) / np.linalg.norm(other.coef)
        return bool(np.linalg.norm(mine - theirs) <= SAME_LINE)

    def scaled_to(self, unit: float) -> LinearFit:
        """Return the same half-space with scores whose classes' means differ by ``unit``."""
        factor = unit / self.unit
        return replace(self, coef=self.coef * factor, intercept=self.intercept * factor)


def has_radius(surrogate: Any) -> bool:
    """Return whether a surrogate has an ambiguity whose radius can be grown."""
    return isinstance(surrogate, MinimaxProbabilityMachine) and surrogate.divergence != "nominal"


def with_radius(surrogate: Any, radius: float) -> Any:
    """Return a machine, not fitted, with another radius of the unfavourable class."""
    return clone(surrogate).set_params(radius=(radius, surrogate.radius[1]))


def fitted_on(surrogate: Any, sample: BoundarySample, box: BlackBox, factual: Any, data: pd.DataFrame) -> LinearFit:
    """Fit a copy of a surrogate on a sample.

    Raises
    ------
    CeoptError
        What the surrogate refuses, such as classes of equal means.
    """
    own = clone(surrogate)
    if isinstance(own, MinimaxProbabilityMachine):
        own.fit(sample.encoded, sample.favourable)
        radius = float(own.radius[0]) if has_radius(own) else math.nan
        worst = float(own.worst_case_error_)
        return LinearFit(_without_rounding(own.coef_[0]), float(own.intercept_[0]), worst, radius, sample)
    own.fit_local(box, factual, data, target=box.target, space=sample.columns.space, sample=sample)
    coef = np.asarray(own.coef_, dtype=np.float64).reshape(-1)
    intercept = float(np.ravel(own.intercept_)[0])
    return LinearFit(_without_rounding(coef), intercept, math.nan, math.nan, sample)


def _without_rounding(coef: Floats) -> Floats:
    """Return coefficients with 0 for those that are rounding beside the greatest."""
    least = COEFFICIENT_ROUNDING * float(np.abs(coef).max(initial=0.0))
    return np.where(np.abs(coef) <= least, 0.0, coef)


def fidelity_of(fit: LinearFit, box: BlackBox, random_state: int) -> float:
    """Return the share of legal rows about the sample's centre on which surrogate and model agree.

    It is nan where the model may not be asked any more, or the time is over.
    """
    columns = fit.sample.columns
    centre = columns.encoded([list(columns.space.row(fit.sample.boundary).values())])[0]

    def model(points: Floats) -> Any:
        return box.favourable(columns.frame(columns.legal(points)))

    def surrogate(points: Floats) -> Any:
        return fit.score(columns.encoded(columns.legal(points))) >= 0.0

    try:
        found: float = local_fidelity(
            model, surrogate, centre, fit.sample.radius, n_samples=_ASKED, random_state=random_state
        )
    except (QueryLimitError, OutOfTimeError):
        return math.nan
    return found
