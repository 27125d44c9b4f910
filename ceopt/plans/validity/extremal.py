"""Distributions of the parameters for which a plan is valid with the least, or the greatest, probability there is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, final

import numpy as np
from numpy.typing import ArrayLike

from ceopt.formulations.programs.moments import Moments
from ceopt.formulations.programs.parts import Floats
from ceopt.formulations.programs.validity_parts import require_bound_arguments
from ceopt.plans.results import Readable, frozen
from ceopt.plans.validity.attained import Attained
from ceopt.plans.validity.closed_form_cases import Bound, lower_bound, nearest_valid, upper_bound
from ceopt.plans.validity.forms import LOWER, UPPER
from ceopt.plans.validity.reduction import directions
from ceopt.solvers import Status
from ceopt.solvers.checks import Choice, Whole, check_arguments
from ceopt.solvers.registry import SOLVER_NAME
from ceopt.tolerances import BESIDE_HYPERPLANE, FAINT, LEAST_MASS, PREDICTING_RANK

__all__ = ["ExtremalDistribution", "extremal_distribution"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExtremalDistribution(Readable):
    """Atoms, and a Gaussian for what they leave of the mass.

    Parameters
    ----------
    atoms, weights
        Shapes (k, d) and (k,).
    rest_weight, rest_mean, rest_covariance
        Of the Gaussian.
    bound
        The bound that it attains, up to 1e-7.
    status, reason
        Of that bound; see :class:`ceopt.plans.ValidityBounds`. Where there are no atoms, the reason says why.
    """

    atoms: Floats
    weights: Floats
    rest_weight: float
    rest_mean: Floats
    rest_covariance: Floats
    bound: float
    status: Status
    reason: str

    def __post_init__(self) -> None:
        frozen(self, "atoms", "weights", "rest_mean", "rest_covariance")

    @property
    def mean(self) -> Floats:
        """Mean of the whole, shape (d,)."""
        return np.asarray(self.weights @ self.atoms + self.rest_weight * self.rest_mean)

    @property
    def covariance(self) -> Floats:
        """Covariance of the whole, shape (d, d)."""
        centred = self.atoms - self.mean
        rest = self.rest_mean - self.mean
        spread = self.rest_covariance + np.outer(rest, rest)
        return np.asarray((centred.T * self.weights) @ centred + self.rest_weight * spread)

    def sample(self, n: int, random_state: int = 0) -> Floats:
        """Return n draws of the parameters, shape (n, d)."""
        Whole(at_least=1).require("sample", "n", n)
        rng = np.random.default_rng(random_state)
        shares = np.append(self.weights, self.rest_weight)
        part = rng.choice(len(shares), size=n, p=shares / shares.sum())
        drawn = np.vstack([self.atoms, self.rest_mean])[part]
        rest = part == len(self.weights)
        factor = Moments(self.rest_mean, self.rest_covariance).factor
        drawn[rest] += rng.normal(size=(int(rest.sum()), factor.shape[1])) @ factor.T
        return np.asarray(drawn)


def extremal_distribution(
    plan: ArrayLike,
    mean: ArrayLike,
    covariance: ArrayLike,
    radius: float,
    *,
    bound: Literal["lower", "upper"] = "lower",
    solver: str = "auto",
) -> ExtremalDistribution:
    r"""Return a distribution within the radius for which a bound of :func:`validity_bounds` is attained.

    For the lower bound there is one atom for each counterfactual that matters, on the hyperplane where it fails (a
    trace beyond it, so that rounding does not decide), and the rest is where none does. For the upper bound the
    favourable mass is at one atom, whose least score is 0 up to rounding. The moments of what the atoms leave are
    those of a Gaussian. Where a bound is only approached, as a lower bound of 0 with the mean on a hyperplane, the
    distribution misses it by 1e-8.

    Parameters
    ----------
    plan, mean, covariance, radius, solver
        See :func:`validity_bounds`.
    bound
        Which one is to be attained.

    Raises
    ------
    InvalidValueError, UnknownNameError, UnsupportedProblemError
        See :func:`validity_bounds`.

    References
    ----------
    Vandenberghe, Boyd & Comanor (2007), Generalized Chebyshev bounds via semidefinite programming.

    Examples
    --------
    A score of mean 2 and variance 1 is 0 with probability 1 / 5 and 5 / 2 otherwise:

    >>> from ceopt.plans import extremal_distribution
    >>> found = extremal_distribution([[1]], [2], [[1]], radius=0)
    >>> found.atoms.round(6).tolist(), found.weights.round(6).tolist(), found.rest_mean.round(6).tolist()
    ([[-0.0]], [0.2], [2.5])
    >>> float((found.sample(100000) > 0).mean().round(2))
    0.8
    """
    who = "extremal_distribution"
    check_arguments(who, {"bound": Choice(("lower", "upper")), "solver": SOLVER_NAME}, locals())
    x, given, distance = require_bound_arguments(who, plan, mean, covariance, radius)
    if bound == "lower":
        side = lower_bound(x, given, distance, partial(LOWER["auto"], solver=solver))
    else:
        side = upper_bound(x, given, distance, partial(UPPER["auto"], solver=solver))
    found = directions(x)
    rows = found.rows
    whole = side.moments(given)
    if side.attained is None:
        atoms = side.mean[None].copy()
        weights = np.ones(1)
    else:
        atoms, weights = _atoms(side.attained, whole)
    unit = float(np.sqrt(np.trace(given.second))) or 1.0
    if bound == "upper" and side.value > 0.0 and len(rows):
        atoms = np.array([nearest_valid(rows, atom) for atom in atoms]).reshape(atoms.shape)
    elif bound == "lower" and side.value < 1.0 and not found.zero.size:
        atoms = np.array([_failing(rows, atom, BESIDE_HYPERPLANE * unit) for atom in atoms]).reshape(atoms.shape)
    if not len(atoms):
        faint = f"No atom has a mass above {FAINT:g}: the distribution misses the bound by no more than that."
        side = replace(side, reason=f"{side.reason} {faint}".strip())
    return _with_rest(atoms, weights, whole, side)


def _atoms(attained: Attained, whole: Moments) -> tuple[Floats, Floats]:
    """Return the atoms of all parameters: those of the projection, and elsewhere what it predicts."""
    reduction = attained.reduction
    kept = np.flatnonzero(attained.masses[1:] > FAINT) + 1
    weights = attained.masses[kept]
    seen = reduction.unit * attained.means[kept] / weights[:, None]
    q = reduction.basis
    cross = whole.covariance @ q.T
    beyond = (cross - q.T @ (q @ cross)) @ np.linalg.pinv(q @ cross, rcond=PREDICTING_RANK, hermitian=True)
    return whole.mean + (seen - q @ whole.mean) @ (q.T + beyond).T, weights


def _failing(rows: Floats, atom: Floats, beside: float) -> Floats:
    """Return the atom, moved to where its least score is surely below 0."""
    scores = rows @ atom
    worst = int(scores.argmin())
    return np.asarray(atom - max(scores[worst] + beside, 0.0) * rows[worst])


def _with_rest(atoms: Floats, weights: Floats, whole: Moments, side: Bound) -> ExtremalDistribution:
    """Return the distribution whose Gaussian has what the atoms leave of mass, mean and second moment."""
    total = float(weights.sum())
    if total > 1.0 - LEAST_MASS:
        weights = weights * ((1.0 - LEAST_MASS) / total)
    rest = 1.0 - float(weights.sum())
    left = (whole.mean - weights @ atoms) / rest
    from_mean = atoms - whole.mean
    from_left = left - whole.mean
    spread = (whole.covariance - (from_mean.T * weights) @ from_mean) / rest - np.outer(from_left, from_left)
    values, vectors = np.linalg.eigh((spread + spread.T) / 2.0)
    return ExtremalDistribution(
        atoms=atoms,
        weights=weights,
        rest_weight=rest,
        rest_mean=left,
        rest_covariance=(vectors * np.maximum(values, 0.0)) @ vectors.T,
        bound=side.value,
        status=side.status,
        reason=side.reason,
    )
