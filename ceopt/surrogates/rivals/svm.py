"""A linear support vector machine on the boundary sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.svm import LinearSVC

from ceopt.solvers.checks import Real, check_fields
from ceopt.surrogates.rivals.local_question import require_slope, with_sample

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.surrogates.sampler import BoundarySample

__all__ = ["SvmSurrogate"]

_WHO: Final = "SvmSurrogate"
_CHECKS: Final = {"C": Real(above=0.0, finite=True)}
_ITERATIONS: Final = 10_000


class SvmSurrogate(BaseEstimator):  # type: ignore[misc]
    r"""A linear support vector machine in scaled columns z: favourable where :math:`w^\top z + b \ge 0`.

    .. math:: \min_{w, c} \tfrac12 (\lVert w \rVert^2 + c^2)
        + C \sum_i \max(0, 1 - y_i (w^\top (z_i - \bar z) + c))^2, \qquad b = c - w^\top \bar z

    over the rows of a boundary sample of mean :math:`\bar z`, with decisions y of 1 and -1: scikit-learn's
    ``LinearSVC``, which penalises the intercept; with the mean taken off, that pulls it to the middle of the sample.

    Parameters
    ----------
    C
        Price of a row on the wrong side, above 0.

    Attributes
    ----------
    coef_, intercept_, columns_, n_queries_
        As of :class:`LimeSurrogate`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt.surrogates import SvmSurrogate
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
    >>> row = {"income": -1.0, "age": 0.0}
    >>> svm = SvmSurrogate().fit_local(lambda rows: rows["income"] > 0, row, people, target=True)
    >>> where = -svm.intercept_ / svm.coef_[0] * people["income"].std(ddof=0)  # income, where it decides
    >>> bool(abs(where) < 0.1)
    True
    """

    def __init__(self, *, C: float = 1.0) -> None:  # noqa: N803 - scikit-learn's name
        self.C = C

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
        middle = drawn.encoded.mean(axis=0)
        machine = LinearSVC(C=float(self.C), dual=False, max_iter=_ITERATIONS)
        machine.fit(drawn.encoded - middle, drawn.favourable)
        w = np.asarray(machine.coef_[0], dtype=np.float64)
        require_slope(_WHO, w)
        self.coef_ = w
        self.intercept_ = float(machine.intercept_[0] - w @ middle)
        self.columns_ = drawn.columns
        self.n_queries_ = asked.n_queries
        return self
