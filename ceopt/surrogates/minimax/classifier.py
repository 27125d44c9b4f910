"""Minimax probability machine: the classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ceopt.formulations.programs.minimax import BURES, DIVERGENCE, Ambiguity, require_class_moments, require_radius
from ceopt.formulations.programs.parts import Floats
from ceopt.solvers.checks import LENGTH, OrNone, check_fields
from ceopt.solvers.errors import InvalidValueError, counted
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.surrogates.minimax.divergences import worst_covariances
from ceopt.surrogates.minimax.exact import hyperplane
from ceopt.surrogates.minimax.hyperplane import Hyperplane
from ceopt.surrogates.rivals.local_question import with_sample

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.surrogates.sampler import BoundarySample

__all__ = ["MinimaxProbabilityMachine"]

_CHECKS: Final = {
    "divergence": DIVERGENCE,
    "bures": BURES,
    "regularization": LENGTH,
    "solver": OrNone(SOLVER_NAME),
}


class MinimaxProbabilityMachine(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    r"""The hyperplane whose greater worst-case error is least, whatever distributions the two classes have.

    Of each class y only the mean :math:`\mu_y` and the covariance :math:`\hat\Sigma_y` are used, and of the covariance
    only that the true one is within a divergence :math:`\rho_y` of it:

    .. math::
        \min_{w, b}\ \max_{y \in \{-, +\}}\ \max_{P \sim (\mu_y, \Sigma),\ \varphi(\Sigma \Vert \hat\Sigma_y) \le
        \rho_y} P(\text{misclassified})
        = \frac{1}{1 + \kappa^2}, \qquad
        \frac{1}{\kappa} = \min_w \{\tau_-(w) + \tau_+(w) : (\mu_+ - \mu_-)^\top w = 1\},

    with the greatest standard deviations :math:`\tau_y` of :func:`worst_covariance`. A greater radius of the
    unfavourable class moves the hyperplane into the favourable one, where recourse lasts. Among Gaussians the same
    hyperplane is best, its error :math:`1 - \Phi(\kappa)`.

    The optimum is found without a solver, proved to a share of 1e-9 by the dual, also where covariances are singular
    and the sum of norms has edges (``norm_sum.py``); or as the cone program that ``formulations.programs`` states,
    where a solver is named.

    Parameters
    ----------
    divergence
        "nominal" (the covariances are known; the radius is not read), "quadratic", "bures", "fisher_rao" or "logdet".
    radius
        (unfavourable, favourable), at least 0: squared for "quadratic" and "bures", a distance for "fisher_rao", twice
        a Kullback-Leibler divergence for "logdet". One of them may be infinite: the limit, in which the hyperplane
        goes through the mean of the other class, kappa is 0 and so the worst-case error 1.
    bures
        "divergence": the radius bounds the squared Bures distance. "paper": its square does, as in the published text,
        where the length is the radius times the norm.
    regularization
        Added to the diagonals of both covariances.
    solver
        None: the exact method. A name: the cone program by this solver ("auto" is Clarabel), to its tolerance.

    Attributes
    ----------
    classes_
        The two labels, shape (2,); the second is the favourable one.
    coef_, intercept_
        Shapes (1, d) and (1,); the score is ``X @ coef_.T + intercept_``, favourable at 0 and above, and scaled so that
        the means' scores differ by 1. Of several best slopes the shortest beside the common null space.
    kappa_
        Standard deviations, at worst, between each mean and the hyperplane.
    worst_case_error_, gaussian_error_
        1 / (1 + kappa^2), and 1 - Phi(kappa).
    tau_, worst_covariances_
        Shapes (2,) and (2, d, d), unfavourable and favourable: the greatest standard deviations of the score, and the
        covariances that attain them. Infinite in the limit.
    status_
        "optimal", or "separable": some slope has no variance at all but tells the means apart, so that kappa is
        infinite, the error 0 and the hyperplane half way between the means.
    gap_
        Share up to which 1 / kappa is proved least; 0 of closed forms.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    "Coverage-Validity-Aware Algorithmic Recourse", propositions 3.4, 3.5, 4.4 and 5.4; Lanckriet et al. (2001).

    Examples
    --------
    Standard deviations 1 and 3, means 0 and 4: both classes are one deviation away from the hyperplane at 1.

    >>> from ceopt.surrogates import MinimaxProbabilityMachine
    >>> machine = MinimaxProbabilityMachine().fit_moments([0], [[1]], [4], [[9]])
    >>> float(-machine.intercept_[0] / machine.coef_[0, 0]), machine.kappa_, machine.worst_case_error_
    (1.0, 1.0, 0.5)

    Robust to a change of the unfavourable class's covariance, it stands farther inside:

    >>> robust = MinimaxProbabilityMachine("fisher_rao", radius=(2.0, 0.0)).fit_moments([0], [[1]], [4], [[9]])
    >>> round(float(-robust.intercept_[0] / robust.coef_[0, 0]), 4), round(robust.worst_case_error_, 4)
    (1.9015, 0.6714)
    """

    def __init__(
        self,
        divergence: str = "nominal",
        radius: Sequence[float] = (0.0, 0.0),
        *,
        bures: str = "divergence",
        regularization: float = 0.0,
        solver: str | None = None,
    ) -> None:
        self.divergence = divergence
        self.radius = radius
        self.bures = bures
        self.regularization = regularization
        self.solver = solver

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to the means and covariances (by 1 / (n - 1), of one row 0) of two classes.

        Parameters
        ----------
        X
            Shape (n, d), finite numbers.
        y
            Shape (n,), two different labels; the greater one is the favourable.

        Raises
        ------
        InvalidValueError, UnknownNameError
            One label or more than two, equal means, an argument of the constructor that makes no sense.
        """
        self._require_settings()
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        return self._fit_rows(rows, labels)

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
        """Fit to a black box near a row, in scaled columns, on a boundary sample; None: that of ``BoundarySampler()``.

        Shapes are those of :meth:`fit`, and the labels False and True, the target; ``columns_`` are the scaled columns
        and ``n_queries_`` the rows that were sent to the model.

        Parameters
        ----------
        predict
            A model, or a function of a frame with the columns of X to labels.
        factual
            The row: a mapping, a Series or a frame of one row.
        X
            Rows of data; those with missing cells are left out with a warning.
        target
            The favourable label.
        space
            The columns; None: inferred from X.
        sample
            A sample that :meth:`BoundarySampler.sample` returned.

        Raises
        ------
        CeoptError
            An argument of the constructor that makes no sense, what :meth:`BoundarySampler.sample` refuses, and a
            sample of equal means.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from ceopt.surrogates import MinimaxProbabilityMachine
        >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["income", "age"])
        >>> machine = MinimaxProbabilityMachine("fisher_rao", radius=(1.0, 0.0))
        >>> row = {"income": -1.0, "age": 0.0}
        >>> machine = machine.fit_local(lambda rows: rows["income"] > 0, row, people, target=True)
        >>> where = -machine.intercept_ / machine.coef_[:, 0] * people["income"].std(ddof=0)  # above 0: robust
        >>> bool(0 < where[0] < 0.2)
        True
        """
        self._require_settings()
        who = type(self).__name__
        asked, drawn = with_sample(who, predict, factual, X, target=target, space=space, sample=sample)
        self._fit_rows(np.asarray(drawn.encoded, dtype=np.float64), drawn.favourable)
        self.n_features_in_ = drawn.encoded.shape[1]
        self._forget_names()
        self.columns_ = drawn.columns
        self.n_queries_ = asked.n_queries
        return self

    def _fit_rows(self, rows: Floats, labels: NDArray[Any]) -> Self:
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            who = type(self).__name__
            count = counted(len(classes), "class", things="classes")
            then = "Only binary classification is supported. Give rows of two labels."
            raise InvalidValueError(who, "two classes", f"y has {count}", then)
        neg, pos = (_moments_of(rows[codes == code]) for code in (0, 1))
        found = self._hyperplane(neg, pos)
        self.classes_ = classes
        return self._with(found)

    def fit_moments(self, mean_neg: ArrayLike, cov_neg: ArrayLike, mean_pos: ArrayLike, cov_pos: ArrayLike) -> Self:
        """Fit to given moments, of the unfavourable and of the favourable class; the labels are then 0 and 1.

        Parameters
        ----------
        mean_neg, mean_pos
            Shape (d,).
        cov_neg, cov_pos
            Shape (d, d), symmetric and positive semidefinite.

        Raises
        ------
        InvalidValueError, UnknownNameError
            Shapes that disagree, NaN or an infinity, a covariance that is none, equal means, an argument of the
            constructor that makes no sense.
        """
        self._require_settings()
        found = self._hyperplane((mean_neg, cov_neg), (mean_pos, cov_pos))
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = found.weights.size
        self._forget_names()
        return self._with(found)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the scores of rows, shape (n,), favourable at 0 and above."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of each row, shape (n,)."""
        favourable = self.decision_function(X) >= 0.0
        return np.asarray(self.classes_[favourable.astype(np.intp)])

    @property
    def worst_covariances_(self) -> Floats:
        """Covariances of the unfavourable and the favourable class that attain ``tau_``, shape (2, d, d)."""
        check_is_fitted(self)
        return worst_covariances(self.coef_[0], self._moments, self._ambiguity)

    def _forget_names(self) -> None:
        """Forget the columns of an earlier frame."""
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _require_settings(self) -> None:
        check_fields(self, _CHECKS)
        radii = require_radius(type(self).__name__, self.radius, self.divergence, limit=True)
        self._ambiguity = Ambiguity(self.divergence, radii, self.bures)

    def _hyperplane(
        self, unfavourable: tuple[ArrayLike, ArrayLike], favourable: tuple[ArrayLike, ArrayLike]
    ) -> Hyperplane:
        """Return the hyperplane of moments, which are checked and kept."""
        who = type(self).__name__
        self._moments = require_class_moments(who, unfavourable, favourable, regularization=self.regularization)
        return hyperplane(self._moments, self._ambiguity, self.solver)

    def _with(self, found: Hyperplane) -> Self:
        """Set what is reported of a hyperplane."""
        self.coef_ = found.weights[np.newaxis]
        self.intercept_ = np.array([-found.threshold])
        self.kappa_ = found.kappa
        self.worst_case_error_ = 1.0 / (1.0 + found.kappa**2)
        self.gaussian_error_ = float(ndtr(-found.kappa))
        self.tau_ = np.array(found.taus)
        self.status_ = found.status
        self.gap_ = found.gap
        return self


def _moments_of(rows: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of the rows of a class; what is constant has no covariance, not even rounding."""
    mean = rows.mean(axis=0)
    constant = (rows == rows[0]).all(axis=0)
    mean[constant] = rows[0, constant]
    if len(rows) == 1:
        return mean, np.zeros((rows.shape[1], rows.shape[1]))
    apart = rows - mean
    return mean, np.asarray(apart.T @ apart / (len(rows) - 1))
