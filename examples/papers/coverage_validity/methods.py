"""The methods of the paper: each a point for one person at one level of its robustness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from ceopt.surrogates import project, roar, wachter
from coverage_validity.local_models import Line, Local
from coverage_validity.protocol import Floats

__all__ = ["METHODS", "Method"]

#: Radii of the unfavourable covariance, and of the ball of parameters, on the frontiers of the paper.
RADII = tuple(float(radius) for radius in range(11))
BALLS = tuple(round(0.02 * step, 2) for step in range(11))
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
#: Weight of the cost against the loss.
ROAR_WEIGHT = 0.1
#: How far inside the released projection ends, for weights of length 1.
RELEASED_MARGIN = 0.1


@final
@dataclass(frozen=True, slots=True)
class Method:
    """A way to a point.

    Parameters
    ----------
    find
        From a person and a level to a point (p,), or None where there is none.
    levels
        From the least robust to the most.
    symbol
        What the level is.
    """

    find: Callable[[Local, float], Floats | None]
    levels: tuple[float, ...]
    symbol: str


def _margin(local: Local, line: Line) -> float:
    if local.data.case.is_released:
        return RELEASED_MARGIN * float(np.linalg.norm(line.coef))
    return 0.0


def _projected(local: Local, line: Line, *, radius: float = 0.0) -> Floats | None:
    """Return the nearest point in l1 that the surrogate favours, for all weights within ``radius``."""
    lower, upper = local.data.case.limits(local.factual)
    found = project(
        local.factual,
        line.coef,
        line.intercept,
        cost="l1",
        lower=lower,
        upper=upper,
        radius=radius,
        norm="l2",
        margin=_margin(local, line),
    )
    return found.point


def machine_projection(divergence: str) -> Callable[[Local, float], Floats | None]:
    """Return projection on the machine of a divergence; the level is the unfavourable radius."""
    return lambda local, level: _projected(local, local.machine(divergence, level))


def surrogate_projection(name: str) -> Callable[[Local, float], Floats | None]:
    """Return projection on a surrogate that is not robust; the level shifts what counts as favourable from 0.5."""

    def find(local: Local, level: float) -> Floats | None:
        line = local.rival(name)
        return _projected(local, Line(line.coef, line.intercept - (level - 0.5)))

    return find


def robust_projection(name: str) -> Callable[[Local, float], Floats | None]:
    """Return projection that holds for all weights in a ball; the level is its radius."""
    return lambda local, level: _projected(local, local.rival(name).unit(), radius=level)


def roar_by_gradient(name: str) -> Callable[[Local, float], Floats | None]:
    """Return ROAR as the paper descends; the level is the radius of the ball of parameters."""

    def find(local: Local, level: float) -> Floats | None:
        line = local.rival(name).unit()
        lower, upper = local.data.case.limits(local.factual)
        found = roar(
            local.factual, line.coef, line.intercept, radius=level, norm="l2", mode="soft", loss="logistic",
            weight=ROAR_WEIGHT, method="gradient", lower=lower, upper=upper,
        )  # fmt: skip
        return found.point

    return find


def roar_by_program(name: str) -> Callable[[Local, float], Floats | None]:
    """Return the nearest point whose score holds for all parameters in the ball, exactly: ROAR's hard form."""

    def find(local: Local, level: float) -> Floats | None:
        line = local.rival(name).unit()
        lower, upper = local.data.case.limits(local.factual)
        found = roar(
            local.factual, line.coef, line.intercept, radius=level, norm="l2", mode="hard", lower=lower, upper=upper,
        )  # fmt: skip
        return found.point

    return find


def machine_wachter(divergence: str) -> Callable[[Local, float], Floats | None]:
    """Return Wachter's descent on the machine of a divergence; the level is the unfavourable radius."""

    def find(local: Local, level: float) -> Floats | None:
        line = local.machine(divergence, level).unit()
        return wachter(local.factual, line.coef, line.intercept, weight=1.0, method="gradient").point

    return find


METHODS: Mapping[str, Method] = {
    "FR-MPM-PROJ": Method(machine_projection("fisher_rao"), RADII, "rho"),
    "QUAD-MPM-PROJ": Method(machine_projection("quadratic"), RADII, "rho"),
    "BW-MPM-PROJ": Method(machine_projection("bures"), RADII, "rho"),
    "LogDet-MPM-PROJ": Method(machine_projection("logdet"), RADII, "rho"),
    "FR-MPM-Wachter": Method(machine_wachter("fisher_rao"), RADII, "rho"),
    "LIME-ROAR": Method(roar_by_gradient("lime"), BALLS, "delta"),
    "LIME-ROAR, exact": Method(roar_by_program("lime"), BALLS, "delta"),
    "LIME-ROAR, around the person": Method(roar_by_gradient("lime, person"), BALLS, "delta"),
    "LIME-ROAR, around the person, exact": Method(roar_by_program("lime, person"), BALLS, "delta"),
    "CLIME-ROAR": Method(roar_by_gradient("clime"), BALLS, "delta"),
    "LIMELS-ROAR": Method(roar_by_gradient("limels"), BALLS, "delta"),
    "MPM-ROAR": Method(roar_by_gradient("mpm"), BALLS, "delta"),
    "SVM-ROAR": Method(roar_by_gradient("svm"), BALLS, "delta"),
    "LIME-ROBUST-PROJ": Method(robust_projection("lime"), BALLS, "delta"),
    "MPM-PROJ": Method(surrogate_projection("mpm"), THRESHOLDS, "threshold"),
    "LIME-PROJ": Method(surrogate_projection("lime"), THRESHOLDS, "threshold"),
}
