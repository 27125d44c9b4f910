"""Classifiers: the present one, those of its moments and those of the future, trained all at once in numpy.

"paper": one linear layer as the released code trains it, by full-batch gradient steps on summed cross-entropy, so few
of them that its start shows. "honest": logistic regression to its optimum, by Newton steps.
"""

from __future__ import annotations

import warnings
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from copa.protocol import Case, Floats

__all__ = ["HIDDEN", "Future", "accuracy", "futures", "network", "networks", "present", "trained", "validity"]

#: Of the released code: step, weight decay, most steps of the present model and of all others, and when it stops early.
RATE, DECAY, PRESENT_STEPS, OTHER_STEPS = 0.005, 1e-3, 2000, 200
SMALL, PATIENCE = 1e-5, 5
#: What "the loss stands still" may mean of a step: it makes the loss less by under 1e-5, or greater; it changes it by
#: under 1e-5; it changes it by under 1e-5 of itself.
RULES = ("improvement", "absolute", "relative")
#: Which of them the models of the tables stop by; ``stopping`` says why.
RULE = "improvement"
#: Half of the rows trains each of the other models.
SHARE = 0.5
#: Penalty of the honest logistic regression on half its squared weights, scikit-learn's C = 1; the intercept is free.
RIDGE = 1.0
HIDDEN = (20, 50, 20)


# ---- linear ----------------------------------------------------------------------------------------------------------
def trained(
    X: Floats,
    y: NDArray[np.int64],
    members: NDArray[np.bool_],
    *,
    steps: int,
    random_state: int,
    rule: str = RULE,
    taken: list[int] | None = None,
) -> Floats:
    """Return one model a row, as the released code trains it.

    Parameters
    ----------
    X, y
        Rows (n, d), the column of the intercept last, and labels.
    members
        Which rows each model sees, shape (models, n).
    steps
        How many at most. A model stops after 5 steps in a row that count as standing still.
    random_state
        Of the start: uniform within 1 / sqrt(inputs), as a linear layer of PyTorch starts.
    rule
        What counts: one of ``RULES``.
    taken
        Is given the steps of each model.
    """
    rng, inputs = np.random.default_rng(random_state), X.shape[1] - 1
    theta = rng.uniform(-1.0, 1.0, (len(members), X.shape[1])) / np.sqrt(inputs)
    seen, signs = members.astype(float), 2.0 * y - 1.0
    count = np.zeros(len(theta), int)
    before, waited, going = np.full(len(theta), np.inf), np.zeros(len(theta), int), np.ones(len(theta), bool)
    for _ in range(steps):
        scores = signs * (theta[going] @ X.T)
        weights = seen[going]
        small = np.exp(-np.abs(scores))
        losses = (weights * (np.maximum(-scores, 0.0) + np.log1p(small))).sum(axis=1)
        pull = (weights * signs * np.where(scores >= 0.0, small, 1.0) / (1.0 + small)) @ X
        theta[going] += RATE * (pull - DECAY * theta[going])
        count[going] += 1
        waited[going] = np.where(_stands_still(before[going], losses, rule), waited[going] + 1, 0)
        before[going] = losses
        going &= waited < PATIENCE
        if not going.any():
            break
    if taken is not None:
        taken.extend(count.tolist())
    return np.asarray(theta)


def _stands_still(before: Floats, now: Floats, rule: str) -> NDArray[np.bool_]:
    """Return for each model whether its loss counts as standing still."""
    better = before - now
    if rule == "improvement":
        return better < SMALL
    if rule == "absolute":
        return np.abs(better) < SMALL
    first = np.isinf(before)
    return ~first & (np.abs(better) < SMALL * np.where(first, 1.0, before))


def fitted(X: Floats, y: NDArray[np.int64], members: NDArray[np.bool_]) -> Floats:
    """Return one logistic regression a row, at its optimum."""
    penalty = np.full(X.shape[1], RIDGE)
    penalty[-1] = 1e-9  # no penalty, but a class of one label has an optimum
    theta = np.zeros((len(members), X.shape[1]))
    for i, rows in enumerate(members):
        inside, wanted = X[rows], y[rows]
        for _ in range(50):
            shares = 1.0 / (1.0 + np.exp(-inside @ theta[i]))
            pull = inside.T @ (wanted - shares) - penalty * theta[i]
            bend = (inside * (shares * (1.0 - shares))[:, None]).T @ inside + np.diag(penalty)
            step = np.linalg.solve(bend, pull)
            theta[i] += step
            if np.abs(step).max() < 1e-9:
                break
    return theta


def halves(y: NDArray[np.int64], count: int, seed: int = 0) -> NDArray[np.bool_]:
    """Return which rows each of ``count`` models sees: random halves, as many of each label as in the whole."""
    places = np.arange(len(y))
    members = np.zeros((count, len(y)), bool)
    for i in range(count):
        half = train_test_split(places, train_size=SHARE, stratify=y, random_state=seed * count + i)[0]
        members[i, half] = True
    return members


def present(case: Case, seed: int = 0) -> Floats:
    """Return the present model, (d,); ``seed`` is of its start."""
    rows = case.train[None, :]
    if case.is_released:
        return trained(case.X, case.y, rows, steps=PRESENT_STEPS, random_state=3 * seed)[0]
    return fitted(case.X, case.y, rows)[0]


def moments(case: Case, count: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return mean and covariance of models trained on halves of the present data.

    "paper": of all of it, and the covariance 1.5 times. "honest": of its training part, by ``ceopt``.
    """
    if case.is_released:
        members = halves(case.y, count, seed)
        theta = trained(case.X, case.y, members, steps=OTHER_STEPS, random_state=3 * seed + 1)
        return theta.mean(axis=0), 1.5 * np.cov(theta, rowvar=False)
    from ceopt.plans import bootstrap_moments

    # By lbfgs's stopping rule coefficients are right to 1e-4 alone, by newton-cholesky's to 1e-9.
    logistic = LogisticRegression(C=1.0 / RIDGE, solver="newton-cholesky", tol=1e-10)
    X, y = case.X[case.train][:, :-1], case.y[case.train]
    mean, covariance = bootstrap_moments(logistic, X, y, n_models=count, fraction=SHARE, random_state=1 + seed)
    return np.asarray(mean), np.asarray(covariance)


def futures(case: Case, count: int, seed: int = 0) -> Floats:
    """Return models trained on halves of the shifted data, one a row."""
    members = halves(case.later_y, count, seed)
    if case.is_released:
        return trained(case.later_rows, case.later_y, members, steps=OTHER_STEPS, random_state=3 * seed + 2)
    return fitted(case.later_rows, case.later_y, members)


# ---- networks --------------------------------------------------------------------------------------------------------
def network(X: Floats, y: NDArray[np.int64], random_state: int) -> MLPClassifier:
    """Return a network of 20, 50 and 20 ReLU neurons, Adam for at most 200 epochs as scikit-learn has it."""
    model = MLPClassifier(HIDDEN, learning_rate_init=0.005, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X[:, :-1], y)


def networks(case: Case, count: int, seed: int = 0) -> list[MLPClassifier]:
    """Return networks trained on halves of the shifted data."""
    members = halves(case.later_y, count, seed)
    return [network(case.later_rows[rows], case.later_y[rows], seed * count + i) for i, rows in enumerate(members)]


# ---- what is measured ------------------------------------------------------------------------------------------------
@final
class Future:
    """Models of the future, linear or not.

    Parameters
    ----------
    models
        Parameters (models, d), or fitted networks.
    """

    def __init__(self, models: Any) -> None:
        self.models, self._layers = models, list[tuple[Floats, Floats]]()
        if not isinstance(models, np.ndarray):
            weights, biases = ([getattr(one, name) for one in models] for name in ("coefs_", "intercepts_"))
            self._layers = [
                (np.stack(first), np.stack(second)[:, None])
                for first, second in zip(zip(*weights, strict=True), zip(*biases, strict=True), strict=True)
            ]

    def validity(self, plan: Floats) -> float:
        """Return the share of models for which every counterfactual is favourable."""
        if isinstance(self.models, np.ndarray):
            return validity(plan, self.models)
        values = plan[None, :, :-1]
        for place, (weights, biases) in enumerate(self._layers):
            values = values @ weights + biases
            values = np.maximum(values, 0.0) if place + 1 < len(self._layers) else values
        return float((values[..., 0] >= 0.0).all(axis=1).mean())


def validity(plan: Floats, theta: Floats) -> float:
    """Return the share of linear models for which every counterfactual is favourable."""
    return float(((theta @ plan.T) >= 0.0).all(axis=1).mean())


def accuracy(scores: Floats, y: NDArray[np.int64]) -> tuple[float, float]:
    """Return accuracy and area under the curve."""
    return float(((scores >= 0.0) == y).mean()), float(roc_auc_score(y, scores))
