"""Rbr: recourse where the posterior odds of the classes are best, at worst densities of either class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import LENGTH, Real, Whole, check_arguments
from ceopt.surrogates.black_box import BlackBox
from ceopt.surrogates.sampler import BoundarySampler, DecidedRows, NoBoundaryError
from ceopt.training.rivals.row_recourse import AbstractRowRecourse
from ceopt.training.rivals.worst_densities import WorstDensities
from ceopt.training.scaled_frame import Floats

__all__ = ["Rbr"]

_CHECKS: Final = {
    "unfavourable_radius": LENGTH,
    "favourable_radius": LENGTH,
    "sigma": Real(above=0.0, finite=True),
    "allowance": LENGTH,
    "n_samples": Whole(at_least=2),
    "steps": Whole(at_least=1),
    "random_state": Whole(at_least=0),
}
#: Halvings that find the threshold of a projection: to the last digit.
_HALVINGS: Final = 60


@final
class Rbr(AbstractRowRecourse):
    r"""Robust Bayesian recourse for any model: Gaussian kernels about samples of both classes near the boundary.

    .. math::
        \min_z\ \log \sum_{i \in -} e^{A_i(z)} - \log \sum_{j \in +} e^{B_j(z)} \quad\text{s.t.}\quad
        \lVert z - z^0 \rVert_1 \le \lVert z_b - z^0 \rVert_1 + \Delta, \quad l \le z \le u

    ============ ====== ====== ==========================================================================
    symbol       shape  unit   meaning
    ============ ====== ====== ==========================================================================
    z, z^0       (p,)   range  the advice and the row: numbers over their range, a column a level
    z_b          (p,)   range  the nearest boundary point of :class:`ceopt.surrogates.BoundarySampler`
    l, u         (p,)   range  what the person may reach; what is fixed has its own entry as both
    A_i          ()     none   greatest log density at z of a Gaussian about sample i that is not favourable
    B_j          ()     none   least log density at z of one about sample j that is; both over the moments of
                               :class:`~ceopt.training.rivals.worst_densities.WorstDensities`
    Delta        ()     range  ``allowance``
    ============ ====== ====== ==========================================================================

    Projected gradient steps of length 1 over the root of their number, from the boundary point; the best point met is
    taken, and the nearest legal row. Nothing is proved: the odds are not convex.

    Parameters
    ----------
    model
        A fitted model, or a function of raw rows to labels: decisions are enough.
    data
        Raw rows among which the boundary is looked for, and whose ranges are the units.
    space
        The columns; None: inferred.
    unfavourable_radius, favourable_radius
        Of the balls of moments of either class.
    sigma
        Standard deviation of the kernels.
    allowance
        By how much the advice may be farther away than the boundary point.
    n_samples, random_state
        Of the sampler about each row.
    steps
        Gradient steps.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        An option out of its range; data that do not fit.

    References
    ----------
    Nguyen, Bui & Nguyen (2022), Robust Bayesian recourse (UAI). "RBR" of Guo et al. (2023).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ceopt.training import Rbr
    >>> people = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 2)), columns=["income", "age"])
    >>> model = LogisticRegression(C=100.0).fit(people, people["income"] > 0.5)
    >>> refused = people[~model.predict(people)].head(3)
    >>> model.predict(Rbr(model, people).recourse(refused)).tolist()
    [True, True, True]
    """

    def __init__(
        self,
        model: Any,
        data: pd.DataFrame,
        *,
        space: FeatureSpace | None = None,
        unfavourable_radius: float = 0.5,
        favourable_radius: float = 0.5,
        sigma: float = 1.0,
        allowance: float = 0.2,
        n_samples: int = 200,
        steps: int = 1000,
        random_state: int = 0,
    ) -> None:
        found = check_arguments("Rbr", _CHECKS, locals())
        super().__init__(model, data, space=space)
        self.allowance = float(found["allowance"])
        self.steps = int(found["steps"])
        self.sampler = BoundarySampler(n_samples=n_samples, scale="range", random_state=random_state)
        self.densities = WorstDensities.of(
            len(self.columns.names), float(sigma), float(unfavourable_radius), float(favourable_radius)
        )

    def _prepared(self, box: BlackBox) -> DecidedRows:
        return self.sampler.decided(box, self.data, target=box.target, space=self.columns.space)

    def _advised(
        self, ready: DecidedRows, row: pd.DataFrame, point: Floats, low: Floats, high: Floats
    ) -> Iterable[Floats]:
        try:
            sample = self.sampler.near(ready, row)
        except NoBoundaryError:
            return
        points = self.columns.encode(sample.points)
        boundary = self.columns.encoded(np.array([list(self.columns.space.row(sample.boundary).values())]))[0]
        odds = PosteriorOdds(self.densities, points[~sample.favourable], points[sample.favourable])
        budget = float(np.abs(boundary - point).sum()) + self.allowance
        z = projected(boundary, point, budget, low, high)
        best, slope = odds.with_slope(z)
        found = z
        for _ in range(self.steps):
            z = projected(z - slope / np.sqrt(self.steps), point, budget, low, high)
            value, slope = odds.with_slope(z)
            if value < best:
                best = value
                found = z
        yield found


@final
@dataclass(frozen=True, slots=True, eq=False)
class PosteriorOdds:
    """The logarithm of the greatest posterior odds against the target.

    Parameters
    ----------
    densities
        Of one kernel, at worst.
    unfavourable, favourable
        Samples of either class, (m, p).
    """

    densities: WorstDensities
    unfavourable: Floats
    favourable: Floats

    def with_slope(self, z: Floats) -> tuple[float, Floats]:
        """Return the odds at a point (p,), and their gradient."""
        against, down = self._part(z, self.unfavourable, is_greatest=True)
        towards, up = self._part(z, self.favourable, is_greatest=False)
        return against - towards, np.asarray(down - up)

    def _part(self, z: Floats, centres: Floats, *, is_greatest: bool) -> tuple[float, Floats]:
        """Return the logarithm of the sum of one class's densities, and its gradient."""
        away = z - centres
        c = np.sqrt((away**2).sum(axis=1))
        if is_greatest:
            values, slopes = self.densities.greatest(c)
        else:
            values, slopes = self.densities.least(c)
        pulls = softmax(values) * np.divide(slopes, c, out=np.zeros_like(c), where=c > 0.0)
        return float(logsumexp(values)), np.asarray(pulls @ away)


def projected(point: Floats, centre: Floats, budget: float, low: Floats, high: Floats) -> Floats:
    """Return the nearest point within a box, and within a distance of a point of the box in l1.

    The moves are all shortened by the same threshold, and cut to the box.
    """
    move = point - centre
    room = np.where(move > 0.0, high - centre, centre - low)

    def shortened(threshold: float) -> Floats:
        return np.asarray(np.minimum(np.maximum(np.abs(move) - threshold, 0.0), room))

    least = 0.0
    if shortened(0.0).sum() > budget:
        most = float(np.abs(move).max())
        for _ in range(_HALVINGS):
            middle = 0.5 * (least + most)
            if shortened(middle).sum() > budget:
                least = middle
            else:
                most = middle
        least = most
    return np.asarray(centre + np.sign(move) * shortened(least))
