"""Models whose decision is that of the points of a lattice: what they refuse can be left out point by point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.formulations.predictors.representation.relu_network import ReluNetwork
from ceopt.formulations.space.reachable import Interval, Levels

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.predictor import Predictor
    from ceopt.formulations.space.reachable import Reach

__all__ = ["columns_read", "is_on_lattice"]

#: Steps of a number beyond which a solver takes it for a continuous one: no point of it is left out alone.
_STEPS = 1e5


def columns_read(predictor: Predictor) -> frozenset[str]:
    """Return the raw columns that a linear model or a network gives some weight."""
    core = predictor.core
    assert isinstance(core, Affine | ReluNetwork)  # noqa: S101 - the caller has asked is_on_lattice
    if isinstance(core, Affine):
        weights = core.weights
    else:
        weights = core.weights[0]
    read = (weights != 0.0).any(axis=0).tolist()
    columns = zip(predictor.encoding.columns, read, strict=True)
    return frozenset(column.feature for column, used in columns if used and column.feature is not None)


def is_on_lattice(predictor: Predictor, reach: Reach, *, steps: float = _STEPS) -> bool:
    """Tell whether all that a linear model or a network reads and that can move are levels and numbers of few steps."""
    if not isinstance(predictor.core, Affine | ReluNetwork):
        return False
    return all(_has_few_values(reach[name], steps) for name in columns_read(predictor))


def _has_few_values(part: Interval | Levels, steps: float) -> bool:
    if isinstance(part, Levels) or part.is_point:
        return True
    return part.step is not None and part.upper - part.lower <= steps * part.step
