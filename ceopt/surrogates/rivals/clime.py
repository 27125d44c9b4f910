"""CLIME's surrogate: ridge regression on Gaussian draws about the row, all counting the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator

from ceopt.solvers.checks import Real, Whole, check_fields
from ceopt.surrogates.rivals.local_question import question_of, require_slope
from ceopt.surrogates.rivals.ridge import RIDGE, weighted_ridge

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.surrogates.sampler import BoundarySample

__all__ = ["ClimeSurrogate"]

_WHO: Final = "ClimeSurrogate"
_CHECKS: Final = {
    "n_samples": Whole(at_least=2),
    "radius": Real(above=0.0, finite=True),
    "random_state": Whole(at_least=0),
}


class ClimeSurrogate(BaseEstimator):  # type: ignore[misc]
    r"""A linear model of a black box by C-LIME, in scaled columns z: favourable where :math:`w^\top z + b \ge 0`.

    1. Drawn: :math:`z_i = z^0 + \sigma u_i`, u standard normal, :math:`\sigma` = ``radius`` times the largest distance
       of rows of data, the first draw the row itself; each made a legal row.
    2. Asked: as :class:`LimeSurrogate`.
    3. Fitted: :math:`\min_{w, c} \sum_i (y_i - c - w^\top (z_i - z^0))^2 + \lVert w \rVert^2`, :math:`b = c - w^\top
       z^0`: all draws weigh the same.

    Parameters
    ----------
    n_samples
        Rows that the model is asked about, at least 2.
    radius
        Standard deviation of the draws, as a share of the largest l2 distance of rows of data in scaled columns.
    random_state
        Of the draws.

    Attributes
    ----------
    coef_, intercept_, columns_, n_queries_
        As of :class:`LimeSurrogate`.

    References
    ----------
    Agarwal et al. (2021), Towards the unification and robustness of perturbation and gradient based explanations.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.surrogates import ClimeSurrogate
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
    >>> row = {"income": 0.0, "age": 0.0}
    >>> clime = ClimeSurrogate().fit_local(lambda rows: rows["income"] > 0, row, people, target=True)
    >>> bool(clime.coef_[0] > 10 * abs(clime.coef_[1]))
    True
    """

    def __init__(self, *, n_samples: int = 1000, radius: float = 0.1, random_state: int = 0) -> None:
        self.n_samples = n_samples
        self.radius = radius
        self.random_state = random_state

    def fit_local(
        self,
        predict: Any,
        factual: Any,
        X: pd.DataFrame,
        *,
        target: Any,
        space: FeatureSpace | None = None,
        sample: BoundarySample | None = None,
    ) -> Self:
        """Fit about a row; of a sample only the scaled columns are taken, as the draws are its own.

        Raises
        ------
        NoBoundaryError
            The model says the same of all draws.
        CeoptError
            A parameter out of its range, no whole row, and what :class:`~ceopt.surrogates.BlackBox` refuses.
        """
        check_fields(self, _CHECKS)
        asked = question_of(
            _WHO, predict, factual, X, target=target, space=space, sample=sample, n_samples=self.n_samples
        )
        rng = np.random.default_rng(self.random_state)
        size = self.radius * (asked.columns.diameter(asked.columns.space.coordinates(asked.X)) or 1.0)
        draws = asked.home + size * rng.standard_normal((self.n_samples, len(asked.home)))
        points, values = asked.leaning(draws, rng)
        w, middle_score = weighted_ridge(points - asked.home, values, None, RIDGE)
        require_slope(_WHO, w)
        self.coef_ = w
        self.intercept_ = float(middle_score - w @ asked.home)
        self.columns_ = asked.columns
        self.n_queries_ = asked.n_queries
        return self
