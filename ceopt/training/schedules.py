"""How far the attacker may go in each epoch."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["SCHEDULES", "radius_at"]

SCHEDULES: Final = ("linear", "constant", "log")


def radius_at(schedule: str, epoch: int, epochs: int, perturbation: float) -> float:
    r"""Return the radius of the ball of shifts in an epoch, counted from 0, of N epochs.

    ========== ==================================================================
    schedule   radius, of the full one E
    ========== ==================================================================
    linear     :math:`E\,(e + 1) / N`, as Algorithm 2 prints it
    constant   :math:`E`
    log        :math:`E \log(e + 2) / \log(N + 1)`: fast at first, slow at the end
    ========== ==================================================================

    So the last epoch has the full radius under each of them; under "linear" and "log" it is the only one.

    Examples
    --------
    >>> from ceopt.training.schedules import radius_at
    >>> [radius_at("linear", epoch, 4, 0.2) for epoch in range(4)]
    [0.05, 0.1, 0.15000000000000002, 0.2]
    """
    if schedule == "linear":
        return perturbation * ((epoch + 1) / epochs)
    if schedule == "log":
        return perturbation * (math.log(epoch + 2) / math.log(epochs + 1))
    return perturbation
