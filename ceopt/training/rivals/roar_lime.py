"""RoarLime: ROAR on the linear model that LIME fits about each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
import pandas as pd

from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import LENGTH, Choice, Whole, check_arguments
from ceopt.surrogates.black_box import BlackBox
from ceopt.surrogates.rivals.lime import LimeSurrogate
from ceopt.surrogates.sampler import NoBoundaryError
from ceopt.surrogates.searches.roar import roar
from ceopt.training.rivals.row_recourse import AbstractRowRecourse
from ceopt.training.scaled_frame import Floats

__all__ = ["RoarLime"]

_CHECKS: Final = {
    "radius": LENGTH,
    "weight": LENGTH,
    "norm": Choice(("l1", "l2", "linf")),
    "mode": Choice(("hard", "soft")),
    "loss": Choice(("logistic", "hinge")),
    "method": Choice(("program", "gradient")),
    "n_samples": Whole(at_least=2),
    "random_state": Whole(at_least=0),
}
#: A probability grows by a quarter of its logit where it is a half: LIME's slopes become those of the logit.
_LOGIT_SLOPE: Final = 4.0


@final
class RoarLime(AbstractRowRecourse):
    r"""Recourse for any model by ROAR over LIME's linear model about each row.

    .. math::
        \min_{l \le z \le u}\ \ell\big(w^\top z + c - \delta \lVert (z, 1) \rVert_*\big) + \lambda \lVert z - z^0
        \rVert_1

    ============ ====== ====== ==========================================================================
    symbol       shape  unit   meaning
    ============ ====== ====== ==========================================================================
    z, z^0       (p,)   range  the advice and the row: numbers over their range, a column a level
    l, u         (p,)   range  what the person may reach; what is fixed has its own entry as both
    w, c         (p,)   logit  four times what :class:`ceopt.surrogates.LimeSurrogate` fits to the probability
                               less a half (or to decisions), which is its logit to first order at a half
    delta        ()     logit  ``radius`` of the ball of (w, c), in ``norm``; the dual norm measures (z, 1)
    lambda       ()     none   ``weight``
    ============ ====== ====== ==========================================================================

    The adversary is in closed form, so :func:`ceopt.surrogates.roar` finds the optimum; ``method="gradient"`` is the
    published descent, and ``mode="hard"`` the nearest point whose score is favourable at the worst parameters, if there
    is one. Then the nearest legal row is taken.

    Parameters
    ----------
    model
        A fitted model, or a function of raw rows to labels; with ``predict_proba`` and two classes LIME sees
        probabilities, else decisions.
    data
        Raw rows from whose means and deviations LIME draws, and whose ranges are the units.
    space
        The columns; None: inferred.
    radius, norm, mode, loss, weight, method
        As of :func:`ceopt.surrogates.roar`.
    n_samples, random_state
        Of LIME's draws about each row.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        An option out of its range; data that do not fit.

    References
    ----------
    Upadhyay, Joshi & Lakkaraju (2021), algorithm 1; Ribeiro, Singh & Guestrin (2016). "ROAR-LIME" of Guo et al. (2023).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ceopt.training import RoarLime
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 2)), columns=["income", "age"])
    >>> model = LogisticRegression(C=100.0).fit(people, people["income"] > 0.5)
    >>> refused = people[~model.predict(people)].head(5)
    >>> model.predict(RoarLime(model, people, loss="hinge").recourse(refused)).tolist()
    [True, True, True, True, True]
    """

    def __init__(
        self,
        model: Any,
        data: pd.DataFrame,
        *,
        space: FeatureSpace | None = None,
        radius: float = 0.1,
        norm: Literal["l1", "l2", "linf"] = "linf",
        mode: Literal["hard", "soft"] = "soft",
        loss: Literal["logistic", "hinge"] = "logistic",
        weight: float = 0.1,
        method: Literal["program", "gradient"] = "program",
        n_samples: int = 1000,
        random_state: int = 0,
    ) -> None:
        given = {"radius": radius, "norm": norm, "mode": mode, "loss": loss, "weight": weight, "method": method}
        asked = {"n_samples": n_samples, "random_state": random_state}
        check_arguments("RoarLime", _CHECKS, given | asked)
        super().__init__(model, data, space=space)
        self.options: dict[str, Any] = given
        self.lime = LimeSurrogate(n_samples=n_samples, random_state=random_state)

    def _prepared(self, box: BlackBox) -> BlackBox:
        return box

    def _advised(
        self, ready: BlackBox, row: pd.DataFrame, point: Floats, low: Floats, high: Floats
    ) -> Iterable[Floats]:
        score = self._linear(ready, row)
        if score is not None:
            found = roar(point, score.coef, score.intercept, lower=low, upper=high, **self.options)
            if found.point is not None:
                yield found.point

    def _linear(self, box: BlackBox, row: pd.DataFrame) -> _LinearScore | None:
        """Return LIME's score about a row over columns from 0 to 1; None where the model says the same of all draws."""
        try:
            lime = self.lime.fit_local(box, row, self.data, target=box.target, space=self.columns.space)
        except NoBoundaryError:
            return None
        coef = _LOGIT_SLOPE * np.asarray(lime.coef_)
        own = self.columns
        slopes = np.ones(len(coef))
        offsets = np.zeros(len(coef))
        for j, (feature, place) in enumerate(zip(own.space, own.places, strict=True)):
            if not feature.is_finite:
                scale = lime.columns_.scales[j]
                slopes[place] = own.width[j] / scale
                offsets[place] = own.least[j] / scale
        return _LinearScore(coef * slopes, float(_LOGIT_SLOPE * lime.intercept_ + coef @ offsets))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _LinearScore:
    """``coef @ z + intercept``, in columns from 0 to 1."""

    coef: Floats
    intercept: float
