"""LIME's surrogate: ridge regression on Gaussian draws, nearer ones counting more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from ceopt.solvers.checks import LENGTH, Choice, OrNone, Real, Whole, check_fields
from ceopt.surrogates.rivals.local_question import question_of, require_slope
from ceopt.surrogates.rivals.ridge import lime_kernel, lime_width, weighted_ridge

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.surrogates.sampler import BoundarySample

__all__ = ["LimeSurrogate"]

_WHO: Final = "LimeSurrogate"
_CHECKS: Final = {
    "n_samples": Whole(at_least=2),
    "around": Choice(("mean", "factual")),
    "kernel_width": OrNone(Real(above=0.0, finite=True)),
    "alpha": LENGTH,
    "random_state": Whole(at_least=0),
}


class LimeSurrogate(BaseEstimator):  # type: ignore[misc]
    r"""A linear model of a black box by LIME, in scaled columns z: favourable where :math:`w^\top z + b \ge 0`.

    1. Drawn: :math:`z_i = m + s \circ u_i`, u standard normal, s the standard deviation of each scaled column in the
       data, m their mean or the row, and the first draw the row :math:`z^0` itself; each made a legal row as
       :class:`~ceopt.surrogates.BoundarySampler` makes them.
    2. Asked: :math:`y_i`, the probability of the target less 0.5 of a model of two classes with ``predict_proba``;
       else its decision, 0.5 or -0.5.
    3. Weighted: :math:`k_i = \sqrt{\exp(-\lVert (z_i - z^0) / s \rVert^2 / h^2)}`.
    4. Fitted: :math:`\min_{\beta, c} \sum_i k_i (y_i - c - \beta^\top (z_i - z^0) / s)^2 + \alpha \lVert \beta
       \rVert^2`, then :math:`w = \beta / s`, :math:`b = c - w^\top z^0`.

    With continuous columns without bounds these are the draws and the fit of the package ``lime`` (0.2.0.1,
    ``discretize_continuous=False``), less the 0.5. A column that is constant in the data has no weight.

    Parameters
    ----------
    n_samples
        Rows that the model is asked about, at least 2.
    around
        "mean", as the package's default, or "factual": where the draws lie.
    kernel_width
        h; None: :math:`0.75 \sqrt p`.
    alpha
        Penalty, at least 0.
    random_state
        Of the draws.

    Attributes
    ----------
    coef_, intercept_
        w, (p,), and b.
    columns_
        The scaled columns.
    n_queries_
        Rows that were sent to the model.

    References
    ----------
    Ribeiro, Singh & Guestrin (2016), "Why should I trust you?".

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.surrogates import LimeSurrogate
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
    >>> lime = LimeSurrogate().fit_local(lambda rows: rows["income"] > 0, people.iloc[0], people, target=True)
    >>> bool(lime.coef_[0] > 10 * abs(lime.coef_[1])), lime.n_queries_
    (True, 1032)
    """

    def __init__(
        self,
        *,
        n_samples: int = 1000,
        around: Literal["mean", "factual"] = "mean",
        kernel_width: float | None = None,
        alpha: float = 1.0,
        random_state: int = 0,
    ) -> None:
        self.n_samples = n_samples
        self.around = around
        self.kernel_width = kernel_width
        self.alpha = alpha
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
        mean, spread = asked.moments()
        middle = asked.home if self.around == "factual" else mean
        rng = np.random.default_rng(self.random_state)
        draws = middle + spread * rng.standard_normal((self.n_samples, len(spread)))
        points, values = asked.leaning(draws, rng)
        away = (points - asked.home) / np.where(spread > 0.0, spread, 1.0)
        width = lime_width(len(spread)) if self.kernel_width is None else float(self.kernel_width)
        beta, middle_score = weighted_ridge(away, values, lime_kernel(away, width), float(self.alpha))
        w = np.where(spread > 0.0, beta / np.where(spread > 0.0, spread, 1.0), 0.0)
        require_slope(_WHO, w)
        self.coef_ = w
        self.intercept_ = float(middle_score - w @ asked.home)
        self.columns_ = asked.columns
        self.n_queries_ = asked.n_queries
        return self
