"""A local surrogate, fitted in scaled columns, and one person's program over it with the engine's rules and costs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from sklearn.base import clone

from ceopt.formulations.constraints import AbstractRule, AllowedValues, RobustValidity
from ceopt.formulations.digits import in_places
from ceopt.formulations.space.reachable import decimal_grid
from ceopt.metrics.plausibility import local_fidelity
from ceopt.oracle.black_box import QueryLimitError
from ceopt.search.prepare import prepare
from ceopt.search.search import search
from ceopt.solvers.deadline import OutOfTimeError
from ceopt.surrogates.minimax import MinimaxProbabilityMachine
from ceopt.tolerances import COEFFICIENT_ROUNDING, LEAST_SCORE_ROUNDING, SAME_LINE

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.oracle.black_box import BlackBox
    from ceopt.result.solution_set import SolutionSet
    from ceopt.search.prepare import Prepared
    from ceopt.settings import Settings
    from ceopt.solvers.checks import Floats
    from ceopt.surrogates.sampler import BoundarySample
    from ceopt.surrogates.scaled_columns import ScaledColumns

# ==== A local surrogate of any kind, fitted and read as coefficients in scaled columns ================================

#: Rows that are asked about for the fidelity.
_ASKED: Final = 500


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """A surrogate, favourable where ``coef @ z + intercept >= 0``.

    Parameters
    ----------
    coef, intercept
        In scaled columns, (p,).
    worst_case_error, radius
        Of a minimax machine, and its unfavourable class's; nan of the others.
    sample
        What it was fitted on.
    """

    coef: Floats
    intercept: float
    worst_case_error: float
    radius: float
    sample: BoundarySample

    def score(self, points: Floats) -> Floats:
        """Return the scores of points (m, p)."""
        return np.asarray(points @ self.coef + self.intercept)

    @property
    def unit(self) -> float:
        """By how much the mean scores of the sample's two classes differ; 1 where they do not."""
        scores = self.score(self.sample.encoded)
        good = self.sample.favourable
        apart = float(scores[good].mean() - scores[~good].mean())
        return apart if apart > 0.0 else 1.0

    def is_nearly(self, other: LinearFit) -> bool:
        """Whether another surrogate has the same half-space, so nearly that no answer tells them apart."""
        mine = np.append(self.coef, self.intercept) / np.linalg.norm(self.coef)
        theirs = np.append(other.coef, other.intercept) / np.linalg.norm(other.coef)
        return bool(np.linalg.norm(mine - theirs) <= SAME_LINE)

    def scaled_to(self, unit: float) -> LinearFit:
        """Return the same half-space with scores whose classes' means differ by ``unit``."""
        factor = unit / self.unit
        return replace(self, coef=self.coef * factor, intercept=self.intercept * factor)


def has_radius(surrogate: Any) -> bool:
    """Return whether a surrogate has an ambiguity whose radius can be grown."""
    return isinstance(surrogate, MinimaxProbabilityMachine) and surrogate.divergence != "nominal"


def with_radius(surrogate: Any, radius: float) -> Any:
    """Return a machine, not fitted, with another radius of the unfavourable class."""
    return clone(surrogate).set_params(radius=(radius, surrogate.radius[1]))


def fitted_on(surrogate: Any, sample: BoundarySample, box: BlackBox, factual: Any, data: pd.DataFrame) -> LinearFit:
    """Fit a copy of a surrogate on a sample.

    Raises
    ------
    CeoptError
        What the surrogate refuses, such as classes of equal means.
    """
    own = clone(surrogate)
    if isinstance(own, MinimaxProbabilityMachine):
        own.fit(sample.encoded, sample.favourable)
        radius = float(own.radius[0]) if has_radius(own) else math.nan
        worst = float(own.worst_case_error_)
        return LinearFit(_without_rounding(own.coef_[0]), float(own.intercept_[0]), worst, radius, sample)
    own.fit_local(box, factual, data, target=box.target, space=sample.columns.space, sample=sample)
    coef = np.asarray(own.coef_, dtype=np.float64).reshape(-1)
    intercept = float(np.ravel(own.intercept_)[0])
    return LinearFit(_without_rounding(coef), intercept, math.nan, math.nan, sample)


def _without_rounding(coef: Floats) -> Floats:
    """Return coefficients with 0 for those that are rounding beside the greatest."""
    least = COEFFICIENT_ROUNDING * float(np.abs(coef).max(initial=0.0))
    return np.where(np.abs(coef) <= least, 0.0, coef)


def fidelity_of(fit: LinearFit, box: BlackBox, random_state: int) -> float:
    """Return the share of legal rows about the sample's centre on which surrogate and model agree.

    It is nan where the model may not be asked any more, or the time is over.
    """
    columns = fit.sample.columns
    centre = columns.encoded([list(columns.space.row(fit.sample.boundary).values())])[0]

    def model(points: Floats) -> Any:
        return box.favourable(columns.frame(columns.legal(points)))

    def surrogate(points: Floats) -> Any:
        return fit.score(columns.encoded(columns.legal(points))) >= 0.0

    try:
        found: float = local_fidelity(
            model, surrogate, centre, fit.sample.radius, n_samples=_ASKED, random_state=random_state
        )
    except (QueryLimitError, OutOfTimeError):
        return math.nan
    return found


# ==== One person's program over a surrogate in place of the model =====================================================

_LEAST_S: Final = 0.01
#: Of the range between the percentiles, one step of the grid of actions.
_STEPS: Final = 100
_PERCENTILES: Final = (1.0, 99.0)
#: Share of the length of the coefficients that the parameters of a robust search may be off by.
_OFF: Final = 0.1
#: Score that the hard form of Wachter asks for, where the classes' means have scores 2 apart, as about -1 and 1.
_WACHTER: Final = 1.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class SurrogateProgram:
    """States and solves the program of one person, whatever the surrogate is.

    Parameters
    ----------
    kind
        "projection", "robust", "actionable", "roar" or "wachter".
    settings
        Of the engine, with the target True.
    space, row, data
        As for :func:`ceopt.explain`.
    favourable
        What the model says of the data, (n,): from these rows rules learn, not from what the surrogate says.
    columns
        The scaled columns.
    deadline
        On the clock of ``time.perf_counter``.
    """

    kind: str
    settings: Settings
    space: FeatureSpace
    row: Any
    data: pd.DataFrame
    favourable: Any
    columns: ScaledColumns
    deadline: float

    @property
    def is_late(self) -> bool:
        """Whether the time is used up."""
        return time.perf_counter() >= self.deadline

    def rules_alone(self) -> Prepared:
        """Return the settings with a surrogate that favours everything: rules and costs, fitted to the data."""
        return self._prepared(np.zeros(len(self.columns.names)), 1.0, self.settings)

    def alone(self, prepared: Prepared) -> SolutionSet:
        """Return the answer of the rules without a surrogate."""
        return search(prepared, self.row)

    def solve(self, fit: LinearFit, margin: float) -> SolutionSet:
        """Return the answers of the program over a surrogate, whose score reaches a margin."""
        rules = self.settings.constraints
        if isinstance(rules, AbstractRule):
            rules = [rules]
        rules = tuple(rules)
        if self.kind == "wachter":
            fit = fit.scaled_to(2.0)
            margin = max(margin, _WACHTER)
        if self.kind == "robust":
            rules = (*rules, _robust(fit, margin))
        if self.kind == "roar":
            return self._roar(fit, margin, rules)
        return self._solved(fit, margin, rules)

    def _roar(self, fit: LinearFit, margin: float, rules: tuple[Any, ...]) -> SolutionSet:
        r"""Return the answers whose score is at least the margin for all parameters within ``off`` each.

        The least score, :math:`w^\top z + b - \delta (\lVert z \rVert_1 + 1)`, is the least of one linear score for
        each way to choose the signs of z. Rows are added for the signs that the answers so far have, beginning with the
        person's, until all answers keep the least score itself: then a row that is left out would take nothing away.
        """
        off = _OFF * float(np.linalg.norm(fit.coef)) / math.sqrt(len(fit.coef))
        assert self.columns.factual is not None  # noqa: S101 - the columns are about the person
        known = _signs(self.columns.encoded(self.columns.factual[None]))
        while True:
            rows = tuple(_signed(fit, margin, off, signs, number) for number, signs in enumerate(known, 1))
            result = self._solved(fit, margin, (*rules, *rows))
            if not len(result):
                return result
            points = self.columns.encode(result.to_frame())
            least = fit.score(points) - off * (np.abs(points).sum(axis=1) + 1.0)
            short = points[least < margin - off * LEAST_SCORE_ROUNDING]
            more = np.unique(np.vstack([known, _signs(short)]), axis=0)
            if len(more) == len(known):
                return result
            known = more

    def _solved(self, fit: LinearFit, margin: float, rules: tuple[Any, ...]) -> SolutionSet:
        settings = replace(
            self.settings,
            constraints=rules,
            margin=margin if margin > 0.0 else None,
            time_limit_s=max(self.deadline - time.perf_counter(), _LEAST_S),
            why=False,
        )
        return search(self._prepared(fit.coef, fit.intercept, settings), self.row)

    def _prepared(self, coef: Floats, intercept: float, settings: Settings) -> Prepared:
        model = self.columns.affine(coef, intercept)
        labelled = None
        if self.favourable.any():
            labelled = (self.data, self.favourable)
        return prepare(model, self.space, settings, data=self.data, labelled=labelled)


def _robust(fit: LinearFit, margin: float) -> RobustValidity:
    r"""Return the rule that the score less ``off |z|_2`` is at least the margin.

    At level 1/2 the rule of uncertain parameters asks for one deviation, and with the covariance off² I in the
    coefficients, and none in the intercept, that is off times the length of z.
    """
    mean = np.append(fit.coef, fit.intercept - margin)
    off = _OFF * float(np.linalg.norm(fit.coef))
    deviations = np.append(np.full(len(fit.coef), off), 0.0)
    return RobustValidity(mean, np.diag(deviations**2), 0.0, 0.5, name="robust score of the surrogate")


def _signs(points: Floats) -> Floats:
    """Return the signs of points (m, p), 1 at 0."""
    return np.where(points < 0.0, -1.0, 1.0)


def _signed(fit: LinearFit, margin: float, off: float, signs: Floats, number: int) -> RobustValidity:
    """Return the rule that the score less ``off`` a column, and the intercept's, is at least the margin.

    The moves of a column are counted in the direction of its sign; without a covariance the rule is a linear row.
    """
    mean = np.append(fit.coef - off * signs, fit.intercept - off - margin)
    return RobustValidity(
        mean, np.zeros((len(mean), len(mean))), 0.0, 0.5, name=f"least score of the surrogate {number}"
    )


def action_grid(space: FeatureSpace, factual: Mapping[str, float], data: pd.DataFrame) -> AllowedValues | None:
    """Return the grid of actions: each number may move from the person's in steps, between two percentiles of the data.

    A step is a hundredth of the range between the 1st and the 99th percentile, in whole numbers, the column's own steps
    or the decimals of its data where it has such. None without a number that may move.
    """
    coordinates = space.coordinates(data)
    values: dict[str, list[float]] = {}
    for feature, column in zip(space, coordinates.T, strict=True):
        own = factual[feature.name]
        if feature.is_finite or not feature.mutable or feature.is_label(own):
            continue
        amounts = column[~feature.are_codes(column)]
        low = high = own
        if len(amounts):
            low, high = np.percentile(amounts, _PERCENTILES)
        step = (high - low) / _STEPS
        moves = np.zeros(1)
        if step > 0.0:
            moves = step * np.arange(np.ceil((low - own) / step), np.floor((high - own) / step) + 1.0)
        if feature.spacing is None and feature.decimals is not None:
            reached = np.array([in_places(value, feature.decimals, "nearest", home=own) for value in own + moves])
        elif feature.spacing is None:
            reached = own + moves
        else:
            reached = decimal_grid(own, feature.spacing).many(np.rint(moves / feature.spacing))
        values[feature.name] = np.unique(np.append(reached, own)).tolist()
    if not values:
        return None
    return AllowedValues(values, name="grid of actions")
