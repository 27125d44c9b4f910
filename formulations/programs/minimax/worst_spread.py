r"""The greatest standard deviation of a score over an ambiguity set of covariances, for each divergence a sum of norms.

Over :math:`\{\Sigma \succeq 0 : \varphi(\Sigma \Vert \hat\Sigma) \le \rho\}` it is, with a factor k, a ridge r and a
length l that depend on the radius alone,

.. math::
    \tau(w) = \max \sqrt{w^\top \Sigma w} = k \sqrt{w^\top (\hat\Sigma + r I) w} + l \lVert w \rVert.

============= ======================================================================== ================= ============
divergence    :math:`\varphi(\Sigma \Vert \hat\Sigma)`                                  unit of the radius what is not
                                                                                                          k=1, r=l=0
============= ======================================================================== ================= ============
nominal       (none; the radius is not read)
quadratic     :math:`\lVert \Sigma - \hat\Sigma \rVert_F^2`                             squared           r = sqrt(rho)
bures         squared Bures distance, Tr S + Tr S-hat - 2 Tr (S^1/2 S-hat S^1/2)^1/2    squared           l = sqrt(rho)
fisher_rao    :math:`\lVert \log \hat\Sigma^{-1/2} \Sigma \hat\Sigma^{-1/2} \rVert_F`   distance          k = e^(rho/2)
logdet        :math:`\operatorname{Tr} \Sigma \hat\Sigma^{-1} - \log\det                2 KL              k = sqrt(c)
              \Sigma \hat\Sigma^{-1} - d`
============= ======================================================================== ================= ============

c is :func:`logdet_factor` of the radius. The published text writes the Bures length as rho itself, without the root;
``bures="paper"`` does the same.

References
----------
Theorems 3.3, 4.2, 5.2 and C.2 of "Coverage-Validity-Aware Algorithmic Recourse".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from ceopt.formulations.tolerances import LOGDET_SERIES, LOGDET_STEP
from ceopt.solvers.checks import LARGEST, Choice, Real, Refusal, is_number
from ceopt.solvers.errors import InvalidValueError

__all__ = [
    "BURES",
    "DIVERGENCE",
    "Ambiguity",
    "WorstSpread",
    "logdet_factor",
    "require_one_radius",
    "require_radius",
    "worst_spread",
]

DIVERGENCE: Final = Choice(("nominal", "quadratic", "bures", "fisher_rao", "logdet"))
BURES: Final = Choice(("divergence", "paper"))

#: Beyond this Fisher-Rao radius e^rho is no longer a number.
_GREATEST_FISHER_RAO: Final = 700.0

_RADIUS: Final = Real(at_least=0.0, at_most=LARGEST)
_PAIR: Final = Refusal("a pair (unfavourable, favourable) as {name}", "Give a radius for each class.")


@final
@dataclass(frozen=True, slots=True)
class WorstSpread:
    """k, r and l of the greatest standard deviation, ``factor * |(S + ridge I)^1/2 w| + length * |w|``."""

    factor: float = 1.0
    ridge: float = 0.0
    length: float = 0.0


def worst_spread(divergence: str, radius: float, bures: str = "divergence") -> WorstSpread:
    """Return k, r and l of a divergence at a finite radius; see the head of this file."""
    if divergence == "quadratic":
        return WorstSpread(ridge=math.sqrt(radius))
    if divergence == "bures" and bures == "paper":
        return WorstSpread(length=radius)
    if divergence == "bures":
        return WorstSpread(length=math.sqrt(radius))
    if divergence == "fisher_rao":
        return WorstSpread(factor=math.exp(radius / 2.0))
    if divergence == "logdet":
        return WorstSpread(factor=math.sqrt(logdet_factor(radius)))
    return WorstSpread()


@final
@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Divergence, radii of the unfavourable and the favourable class, and what a Bures radius means."""

    divergence: str
    radii: tuple[float, float]
    bures: str = "divergence"

    @property
    def spreads(self) -> tuple[WorstSpread, WorstSpread]:
        """The greatest standard deviations as norms; radii are finite."""
        neg, pos = (worst_spread(self.divergence, rho, self.bures) for rho in self.radii)
        return neg, pos


def logdet_factor(radius: float) -> float:
    r"""Return c of the log-det ambiguity set: the greatest variance is c times the nominal one.

    c >= 1 is the root of :math:`c - \log c = 1 + \rho`, which is :math:`-W_{-1}(-e^{-\rho-1})`. Found by Newton's
    method on :math:`x - \log(1 + x) = \rho` from :math:`x = \rho + \sqrt{2 \rho}`, which lies above the root of a
    convex function, so that every step goes down to it; near 0 by its series. To the last digits at any radius, where
    library functions of Lambert lose half of theirs near 0 and underflow near 745.

    Parameters
    ----------
    radius
        At least 0 and finite; twice a Kullback-Leibler divergence.

    Raises
    ------
    InvalidValueError
        The radius is negative, infinite or no number.

    References
    ----------
    Proposition C.3 of "Coverage-Validity-Aware Algorithmic Recourse".

    Examples
    --------
    >>> from ceopt.formulations.programs.minimax.worst_spread import logdet_factor
    >>> round(logdet_factor(1.0), 6), logdet_factor(0.0)
    (3.146193, 1.0)
    """
    rho = _RADIUS.require("logdet_factor", "radius", radius)
    if rho < LOGDET_SERIES:
        return 1.0 + math.sqrt(2.0 * rho) + 2.0 * rho / 3.0
    x = rho + math.sqrt(2.0 * rho)
    while True:
        step = (x - math.log1p(x) - rho) * (1.0 + x) / x
        if step <= LOGDET_STEP * x:  # only rounding takes it up
            break
        x -= step
    return 1.0 + x


def require_radius(who: str, radius: Any, divergence: str, *, limit: bool = False) -> tuple[float, float]:
    """Return the radii of the unfavourable and the favourable class, or refuse them in the name of ``who``.

    With ``limit`` one of them may be infinite. Those of "nominal" may be any radii: they are not read.
    """
    is_read = divergence != "nominal"
    if isinstance(radius, str) or not isinstance(radius, Sequence | np.ndarray) or len(radius) != 2:
        raise _PAIR.of(who, "radius", radius)
    pair = []
    for k, side in enumerate(radius):
        pair.append(require_one_radius(who, f"radius[{k}]", side, divergence, limit=limit or not is_read))
    if not is_read:
        return 0.0, 0.0
    if math.isinf(pair[0]) and math.isinf(pair[1]):
        then = "Let one of them be finite: where both grow, the limit depends on how."
        raise InvalidValueError(who, "one infinite radius at most", f"radius is {radius!r}", then)
    return pair[0], pair[1]


def require_one_radius(who: str, name: str, radius: Any, divergence: str, *, limit: bool = False) -> float:
    """Return the radius of one class, or refuse it in the name of ``who``; infinite only with ``limit``."""
    if limit and is_number(radius) and radius == math.inf:
        return math.inf
    at_most = LARGEST
    if divergence == "fisher_rao":
        at_most = _GREATEST_FISHER_RAO
    if limit:
        then = "Give such a number, or inf for the limit."
    else:
        then = "Give such a number; MinimaxProbabilityMachine knows the limit."
    refusal = Refusal(f"{{name}} to be a number from 0 to {at_most:g}", then)
    return Real(at_least=0.0, at_most=at_most, otherwise=refusal).require(who, name, radius)
