"""LIMELS's surrogate: ridge regression on the boundary sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator

from ceopt.solvers.checks import LENGTH, check_fields
from ceopt.surrogates.rivals.local_question import require_slope, with_sample
from ceopt.surrogates.rivals.ridge import weighted_ridge

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.surrogates.sampler import BoundarySample

__all__ = ["LimelsSurrogate"]

_WHO: Final = "LimelsSurrogate"
_CHECKS: Final = {"alpha": LENGTH}


class LimelsSurrogate(BaseEstimator):  # type: ignore[misc]
    r"""A linear model of a black box by LIMELS, in scaled columns z: favourable where :math:`w^\top z + b \ge 0`.

    .. math:: \min_{w, c} \sum_i (y_i - c - w^\top (z_i - \bar z))^2 + \alpha \lVert w \rVert^2, \qquad
        b = c - w^\top \bar z

    over the rows :math:`z_i` of a boundary sample of mean :math:`\bar z`, all weighing the same; y as of
    :class:`LimeSurrogate`: probabilities, for which the model is asked about the sample once more, where it has them,
    else the decisions of the sample.

    Parameters
    ----------
    alpha
        Penalty, at least 0.

    Attributes
    ----------
    coef_, intercept_, columns_, n_queries_
        As of :class:`LimeSurrogate`.

    References
    ----------
    Laugel et al. (2018), Defining locality for surrogates in post-hoc interpretability.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.surrogates import LimelsSurrogate
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
    >>> row = {"income": -1.0, "age": 0.0}
    >>> limels = LimelsSurrogate().fit_local(lambda rows: rows["income"] > 0, row, people, target=True)
    >>> where = -limels.intercept_ / limels.coef_[0] * people["income"].std(ddof=0)  # income, where it decides
    >>> bool(abs(where) < 0.1)
    True
    """

    def __init__(self, *, alpha: float = 1.0) -> None:
        self.alpha = alpha

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
        """Fit on a sample; None: that of ``BoundarySampler()``.

        Raises
        ------
        CeoptError
            A parameter out of its range, and what :meth:`BoundarySampler.sample` refuses.
        """
        check_fields(self, _CHECKS)
        asked, drawn = with_sample(_WHO, predict, factual, X, target=target, space=space, sample=sample)
        if asked.box.has_probability:
            values = asked.box.leaning(drawn.points)
        else:
            values = np.where(drawn.favourable, 0.5, -0.5)
        middle = drawn.encoded.mean(axis=0)
        w, middle_score = weighted_ridge(drawn.encoded - middle, values, None, float(self.alpha))
        require_slope(_WHO, w)
        self.coef_ = w
        self.intercept_ = float(middle_score - w @ middle)
        self.columns_ = drawn.columns
        self.n_queries_ = asked.n_queries
        return self
