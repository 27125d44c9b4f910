r"""Uncertain parameters: a plan, and the mean and covariance of the parameters, for every program over them.

A linear classifier :math:`\theta \in \mathbb{R}^d` calls x favourable where :math:`\theta^\top x \ge 0`. Its intercept,
if it has one, is one more parameter, whose column of x is 1. A plan is a matrix of J counterfactuals, one a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf

from ceopt.formulations.programs.parts import bordered, described, sum_of, symmetric
from ceopt.formulations.tolerances import (
    COVARIANCE_INDEFINITE,
    COVARIANCE_RANK,
    COVARIANCE_SYMMETRIC,
    VARIANCE_ROUNDING,
)
from ceopt.solvers.checks import Floats, Matrix
from ceopt.solvers.errors import InvalidValueError

# ==== Uncertain parameters: a plan, and the mean and covariance of the parameters, for every program over them ========

_COLUMNS = "Give one column for each parameter, one of ones for the intercept."
_EVERY_NUMBER = "A plan counts with every number: fill the cell in, or leave its column out, of the moments too."


@final
@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Mean and covariance of d parameters.

    Parameters
    ----------
    mean
        Shape (d,).
    covariance
        Shape (d, d), symmetric and positive semidefinite.
    """

    mean: Floats
    covariance: Floats

    @property
    def factor(self) -> Floats:
        """F of shape (d, r) with covariance = F F', r being the rank."""
        sizes = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        units = np.where(sizes > 0.0, sizes, 1.0)  # of each parameter its own, so that no small one is taken for 0
        alike = self.covariance / np.outer(units, units)
        np.fill_diagonal(alike, sizes > 0.0)
        values, vectors = np.linalg.eigh(alike)
        kept = values > COVARIANCE_RANK * max(values[-1], 0.0)
        return np.asarray(sizes[:, None] * vectors[:, kept] * np.sqrt(values[kept]))

    @property
    def root(self) -> Floats:
        """The symmetric root of the covariance."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)

    @property
    def second(self) -> Floats:
        """The second moment: covariance + mean mean'."""
        return self.covariance + np.outer(self.mean, self.mean)

    def seen_by(self, basis: Floats) -> Moments:
        """Return the moments of ``basis @ theta``, for a basis of shape (r, d).

        What is seen at right angles to the covariance is 0, not what rounding leaves of it.
        """
        seen = _even(basis @ self.covariance @ basis.T)
        terms = np.einsum("ik,kl,il->i", np.abs(basis), np.abs(self.covariance), np.abs(basis), optimize=True)
        is_seen = np.diag(seen) > VARIANCE_ROUNDING * terms
        seen = np.where(np.outer(is_seen, is_seen), seen, 0.0)
        factor = Moments(basis @ self.mean, seen).factor
        return Moments(basis @ self.mean, factor @ factor.T)


def require_moments(who: str, mean: ArrayLike, covariance: ArrayLike, *, d: int | None = None) -> Moments:
    """Return mean and covariance of parameters, d of them if given, or refuse them in the name of ``who``."""
    m = require_mean(who, mean, d=d)
    return Moments(m, require_covariance(who, "covariance", covariance, len(m)))


def require_covariance(who: str, name: str, covariance: ArrayLike, d: int) -> Floats:
    """Return a covariance of d numbers, equal to its transpose, or refuse it in the name of ``who``."""
    s = Matrix((d, d)).require(who, name, covariance)
    size = float(np.abs(s).max(initial=0.0))
    apart = np.abs(s - s.T)
    if (apart > COVARIANCE_SYMMETRIC * size).any():
        i, j = np.unravel_index(int(apart.argmax()), s.shape)
        but = f"{name}[{i}, {j}] is {s[i, j]} and {name}[{j}, {i}] is {s[j, i]}"
        raise InvalidValueError(who, "a symmetric covariance", but, "Give (S + S.T) / 2 if they are meant to be equal.")
    even = _even(s)
    if _is_definite(even):
        return even
    values = np.linalg.eigvalsh(even)
    if len(values) and values[0] < -COVARIANCE_INDEFINITE * max(abs(float(values[-1])), abs(float(values[0]))):
        but = f"the least eigenvalue of {name} is {values[0]:.6g}"
        raise InvalidValueError(who, "a positive semidefinite covariance", but, "Nothing has this covariance.")
    return even


def _is_definite(matrix: Floats) -> bool:
    """Whether a Cholesky factor exists, which takes a tenth of the time of a spectrum; False says nothing."""
    return not dpotrf(matrix.T, lower=1, clean=0)[1]


def require_point(who: str, name: str, values: ArrayLike, moments: Moments | None) -> Floats:
    """Return a point of a column for each parameter, or of any number, or refuse it in the name of ``who``."""
    d = None if moments is None else len(moments.mean)
    return Matrix((d,), _COLUMNS, _EVERY_NUMBER).require(who, name, values)


def require_mean(who: str, mean: ArrayLike, *, d: int | None = None) -> Floats:
    """Return the mean of parameters, d of them if given, or refuse it in the name of ``who``."""
    m = Matrix((d,), _COLUMNS).require(who, "mean", mean)
    if not len(m):
        raise InvalidValueError(who, "at least one parameter", "mean is empty", "Give the mean of the parameters.")
    return m


def require_plan(who: str, plan: ArrayLike, *, d: int | None = None) -> Floats:
    """Return a plan of shape (J, d), J at least 1, or refuse what is none in the name of ``who``."""
    then = _COLUMNS
    if np.ndim(plan) == 1:
        then = "Give one counterfactual a row: [[...]] for one."
    found = Matrix((None, d), then).require(who, "plan", plan)
    if not len(found):
        raise InvalidValueError(who, "a plan", "plan has no rows", "Give one counterfactual a row.")
    return found


def _even(matrix: Floats) -> Floats:
    return np.asarray((matrix + matrix.T) / 2.0)


# ==== The Gelbrich distance of two pairs of moments, and the ball that it makes, as semidefinite programs =============


def gelbrich_distance(
    mean_a: ArrayLike, covariance_a: ArrayLike, mean_b: ArrayLike, covariance_b: ArrayLike
) -> pyo.ConcreteModel:
    r"""State the squared Gelbrich distance of two pairs of a mean and a covariance.

    .. math::
        \min_K\ \lVert \mu_a - \mu_b \rVert^2 + \operatorname{Tr} \Sigma_a + \operatorname{Tr} \Sigma_b
        - 2 \operatorname{Tr}(F_a K F_b^\top) \quad\text{s.t.}\quad
        \begin{pmatrix} I & K \\ K^\top & I \end{pmatrix} \succeq 0, \qquad
        \Sigma_a = F_a F_a^\top, \quad \Sigma_b = F_b F_b^\top.

    :math:`C = F_a K F_b^\top` is the cross covariance of two vectors with these moments, and twice its trace is what
    their coupling saves. In terms of C the block is the published :math:`\begin{pmatrix} \Sigma_a & C \\ C^\top &
    \Sigma_b \end{pmatrix} \succeq 0`, which has no interior where a covariance is singular; this one always has.

    ========= ========= ============ ============================================================
    symbol    component shape        meaning
    ========= ========= ============ ============================================================
    mu, Sigma           (d,), (d, d) the two pairs
    F                   (d, r)       a factor of the covariance, r its rank
    K         ``K``     (r_a, r_b)   correlation of the two whitened vectors
    block     ``cone``  r_a + r_b    semidefinite
    ========= ========= ============ ============================================================

    r_a r_b numbers and one semidefinite block of side r_a + r_b (SDP). Exact: the optimum is the squared distance.

    Parameters
    ----------
    mean_a, mean_b
        Shape (d,).
    covariance_a, covariance_b
        Shape (d, d), symmetric and positive semidefinite.

    Raises
    ------
    InvalidValueError
        Shapes disagree, a number is not finite, or a covariance is none.

    References
    ----------
    Bui, Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, definition 2.1. The block
    in K is that of their (T5), which a singular covariance leaves without interior, reduced.
    :func:`ceopt.plans.gelbrich_distance` is the closed form.

    Examples
    --------
    Standard deviations 1 and 3, means 0 and 2: the squared distance is 4 + 4.

    >>> from ceopt.formulations import programs
    >>> from ceopt.solvers import solve
    >>> m = programs.gelbrich_distance([0], [[1]], [2], [[9]])
    >>> print(m.cone.expr)
    0  <=  semidefinite_margin(1.0, K[0,0], 1.0)
    >>> print(m.squared.expr)
    14.0 - 6.0*K[0,0]
    >>> round(solve(m).objective, 6)
    8.0
    """
    who = "gelbrich_distance"
    a = require_moments(f"{who} (first pair)", mean_a, covariance_a)
    b = require_moments(f"{who} (second pair)", mean_b, covariance_b, d=len(a.mean))
    one = a.factor
    other = b.factor
    k = one.shape[1]
    n = other.shape[1]
    model = pyo.ConcreteModel(name=who)
    model.K = pyo.Var(range(k), range(n))
    if k and n:
        model.cone = pyo.Constraint(expr=bordered(_unit, k, lambda i, j: model.K[i, j], n, _unit) >= 0)
    saved = one.T @ other
    constant = float(np.sum((a.mean - b.mean) ** 2) + np.trace(a.covariance) + np.trace(b.covariance))
    model.squared = pyo.Objective(expr=sum_of(model.K.values(), -2.0 * saved.ravel(), constant))
    return described(
        model,
        title="Gelbrich distance, squared",
        formula="min |mu_a - mu_b|^2 + Tr S_a + Tr S_b - 2 Tr(F_a K F_b'), [[I, K], [K', I]] psd",
        reference="COPA definition 2.1",
    )


def add_ball(block: Any, moments: Moments, radius: float, mean: Callable[[int], Any], second: Any) -> None:
    r"""Fill an empty block with: a mean and a second moment lie within the Gelbrich ball around ``moments``.

    .. math::
        \begin{pmatrix} M & K & \mu \\ K^\top & I_r & 0 \\ \mu^\top & 0 & 1 \end{pmatrix} \succeq 0, \qquad
        \lVert \hat\mu \rVert^2 - 2 \hat\mu^\top \mu + \operatorname{Tr} M + \operatorname{Tr} \hat\Sigma
        - 2 \operatorname{Tr}(K F^\top) \le \rho^2, \qquad \hat\Sigma = F F^\top.

    ====== ========= ============ ===========================================================================
    symbol component shape        meaning
    ====== ========= ============ ===========================================================================
    mu-hat           (d,), (d, d) ``moments``: centre of the ball
    rho                           ``radius``, a distance and not its square; above 0
    mu               (d,)         ``mean``: affine expression by index
    M                (d, d)       ``second``: Var over the pairs a <= b, the second moment, covariance + mu mu'
    K      ``K``     (d, r)       covariance with the whitened vector of the centre
    first  ``cone``  d + r + 1    semidefinite
    second ``near``  1            linear
    ====== ========= ============ ===========================================================================

    Exact: the set of (mu, M) is convex and is the projection of this one. A singular covariance has fewer columns of
    K, and none at all if it is 0, so that the ball always has an interior.

    References
    ----------
    The rows (T4) to (T6) of :func:`~ceopt.formulations.programs.validity_lower`, which are those of theorem 2.2 of Bui,
    Nguyen & Nguyen (2022), Counterfactual plans under distributional ambiguity, with their Sigma eliminated: a Schur
    complement of the last row gives M - mu mu' as the covariance.
    """
    d = len(moments.mean)
    factor = moments.factor
    r = factor.shape[1]
    block.K = pyo.Var(range(d), range(r))

    def edge(a: int, b: int) -> Any:
        return mean(a) if b == r else block.K[a, b]

    block.cone = pyo.Constraint(expr=bordered(lambda a, b: second[a, b], d, edge, r + 1, _unit) >= 0)
    centre = float(moments.mean @ moments.mean + np.trace(moments.covariance))
    trace = sum_of([second[a, a] for a in range(d)])
    cross = sum_of(block.K.values(), -2.0 * factor.ravel())
    moved = sum(-2.0 * float(m) * mean(a) for a, m in enumerate(moments.mean))
    block.near = pyo.Constraint(expr=moved + trace + cross <= radius**2 - centre)


def _unit(a: int, b: int) -> float:
    return float(a == b)


def add_coupling(block: Any, moments: Moments, radius: float, mean: Any, *, second: Any, covariance: Any) -> None:
    r"""Fill an empty block with the same ball in the theorem's variables, covariance apart from the second moment.

    .. math::
        \begin{pmatrix} \Sigma & C \\ C^\top & \hat\Sigma \end{pmatrix} \succeq 0, \qquad
        \lVert \hat\mu \rVert^2 - 2 \hat\mu^\top \mu + \operatorname{Tr} M + \operatorname{Tr} \hat\Sigma
        - 2 \operatorname{Tr} C \le \rho^2.

    A singular :math:`\hat\Sigma = F F^\top` has :math:`C = K F^\top`, and the block :math:`\Sigma, K, I_r` of side
    d + r in place of 2d, which has an interior. ``K`` is C, shape (d, d), or K, shape (d, r); ``cone`` the block and
    ``near`` the row. The caller states that M is at least the covariance and :math:`\mu \mu^\top`. The rows are (T5)
    and (T6) of :func:`~ceopt.formulations.programs.validity_lower`.
    """
    d = len(moments.mean)
    factor = moments.factor
    r = factor.shape[1]
    hat = moments.covariance if r == d else np.eye(r)
    block.K = pyo.Var(range(d), range(r))

    def corner(a: int, b: int) -> float:
        return float(hat[a, b])

    coupled = bordered(lambda a, b: covariance[a, b], d, lambda a, b: block.K[a, b], r, corner)
    block.cone = pyo.Constraint(expr=coupled >= 0)
    saved = np.eye(d) if r == d else factor
    kept = [(block.K[a, b], -2.0 * saved[a, b]) for a in range(d) for b in range(r) if saved[a, b]]
    terms = [(mean[a], -2.0 * moments.mean[a]) for a in range(d)] + [(second[a, a], 1.0) for a in range(d)] + kept
    centre = float(moments.mean @ moments.mean + np.trace(moments.covariance))
    block.near = pyo.Constraint(expr=sum_of([var for var, _ in terms], [c for _, c in terms]) <= radius**2 - centre)


def add_price(block: Any, moments: Moments, radius: float, quadratic: Any, linear: Any) -> None:
    r"""Fill an empty block with the greatest mean of a quadratic over the ball, by its dual.

    .. math::
        \max_{(\mu, M)} \operatorname{Tr} P M + 2 q^\top \mu = \min\ \gamma (\rho^2 - \lVert \hat\mu \rVert^2
        - \operatorname{Tr} \hat\Sigma) + q_0 + \operatorname{Tr} W \quad\text{s.t.}\quad
        \begin{pmatrix} \gamma I - P & \gamma F \\ \cdot & W \end{pmatrix} \succeq 0, \quad
        \begin{pmatrix} \gamma I - P & \gamma \hat\mu + q \\ \cdot & q_0 \end{pmatrix} \succeq 0, \quad \gamma \ge 0.

    ``g``, ``q`` and ``W`` are gamma, q_0 and the upper triangle of W; ``spread`` and ``shift`` the two blocks; the
    Expression ``worth`` what is to be minimised. ``quadratic`` is a Var over pairs a <= b, ``linear`` one by index.
    The blocks are (U1) and (U2) of :func:`~ceopt.formulations.programs.validity_upper`, from theorem 2.3 of Bui, Nguyen
    & Nguyen (2022), Counterfactual plans under distributional ambiguity.
    """
    d = len(moments.mean)
    factor = moments.factor
    r = factor.shape[1]
    block.g = pyo.Var(bounds=(0.0, None))
    block.q = pyo.Var()
    block.W = symmetric(r)

    def inside(a: int, b: int) -> Any:
        if a == b:
            return sum_of([block.g, quadratic[a, b]], [1.0, -1.0])
        return sum_of([quadratic[a, b]], [-1.0])

    def spread(a: int, b: int) -> Any:
        return sum_of([block.g], [factor[a, b]])

    def shift(a: int, _b: int) -> Any:
        return sum_of([block.g, linear[a]], [moments.mean[a], 1.0])

    if r:
        block.spread = pyo.Constraint(expr=bordered(inside, d, spread, r, lambda a, b: block.W[a, b]) >= 0)
    block.shift = pyo.Constraint(expr=bordered(inside, d, shift, 1, lambda _a, _b: block.q) >= 0)
    spare = radius**2 - float(moments.mean @ moments.mean + np.trace(moments.covariance))
    block.worth = pyo.Expression(
        expr=sum_of([block.g, block.q, *(block.W[a, a] for a in range(r))], [spare] + [1.0] * (1 + r))
    )
