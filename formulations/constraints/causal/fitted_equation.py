"""A fitted equation asked by its own ``predict``, once for each row of its parents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.model_input import given
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation
from ceopt.formulations.space.encoding import Encoding

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.predictor import Predictor

__all__ = ["Asked"]

Floats: TypeAlias = NDArray[np.float64]

#: Rows that are remembered; what a search for a start tries next differs little from what it tried before.
_MOST = 20_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a regressor says of rows of its parents, and what it has said.

    Parameters
    ----------
    predictor
        The regressor over the space of its parents.
    """

    predictor: Predictor
    _said: dict[tuple[float, ...], float] = field(init=False, repr=False, default_factory=dict)

    def values(self, parents: Floats) -> Floats:
        """Return what is said of rows (n, p) given as coordinates, (n,); NaN at a level that it was not fitted on."""
        rows, back = np.unique(parents, axis=0, return_inverse=True)
        keys = [tuple(row) for row in rows.tolist()]
        new = [k for k, key in enumerate(keys) if key not in self._said]
        if new:
            if len(self._said) + len(new) > _MOST:
                self._said.clear()
                new = list(range(len(keys)))
            self._said.update(zip((keys[k] for k in new), self._asked(rows[new]).tolist(), strict=True))
        return np.array([self._said[key] for key in keys])[np.ravel(back)]

    def _asked(self, rows: Floats) -> Floats:
        """Ask the user's own model."""
        space = self.predictor.space
        model = self.predictor.model
        known = np.ones(len(rows), dtype=bool)
        for name, ranks in self.predictor.unseen.items():
            known &= ~np.isin(rows[:, space.names.index(name)], list(ranks))
        held = rows[known]
        for j, feature in enumerate(space):
            if feature.kind != "continuous":  # a trial that is not whole where it must be is no answer, but has a price
                held[:, j] = np.clip(np.rint(held[:, j]), *feature.coordinate_limits)
        values = np.full(len(rows), np.nan)
        if len(held) and isinstance(model, AbstractRepresentation):
            values[known] = model.predict(Encoding.identity(space).matrix(held))
        elif len(held):
            frame = space.frame([dict(zip(space.names, row, strict=True)) for row in held.tolist()])
            values[known] = np.asarray(model.predict(given(model, space, frame)), dtype=np.float64).reshape(len(held))
        return values
