"""One person's search: surrogate, sample again, grow, boundary; no answer that the model does not confirm."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ceopt.base.results import Status
from ceopt.formulations.digits import digits, rounded
from ceopt.metrics.plausibility import stability
from ceopt.oracle.black_box import QueryLimitError
from ceopt.result.counterfactual import altered
from ceopt.solvers.checks import plain
from ceopt.solvers.deadline import OutOfTimeError, checkpoint
from ceopt.solvers.errors import CeoptError, MissingLicenceError, UnsupportedProblemError
from ceopt.surrogates.minimax import MinimaxProbabilityMachine
from ceopt.surrogates.sampler import NoBoundaryError
from ceopt.surrogates.surrogate_program import LinearFit, fitted_on, has_radius, with_radius

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.result.counterfactual import Counterfactual
    from ceopt.result.solution_set import SolutionSet
    from ceopt.solvers.checks import Floats
    from ceopt.surrogates.boundary_way import BoundaryWay
    from ceopt.surrogates.sampler import BoundarySample, BoundarySampler
    from ceopt.surrogates.surrogate_program import SurrogateProgram

# ==== One person's search: surrogate, sample again, grow, boundary; no answer that the model does not confirm =========

_DOUBLINGS: Final = 10
_BISECTIONS: Final = 6
#: Share of the distance between the classes' mean scores by which a margin grows first.
_FIRST_MARGIN: Final = 1.0 / 16.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """A surrogate, the result of its program, and the answers that the model confirmed."""

    fit: LinearFit
    result: SolutionSet
    answers: tuple[Counterfactual, ...]
    surrogate: Any


@final
@dataclass(slots=True, eq=False)
class LocalSearch:
    """The ways to an answer in their order, for one person: it counts and remembers.

    Parameters
    ----------
    program, way
        The program over any surrogate, and the way without one.
    sampler, surrogate
        What draws, and what is fitted.
    row, data
        The person and the data, in raw units.
    margin, max_rounds
        As of :class:`LocalSurrogateRecourse`.
    """

    program: SurrogateProgram
    way: BoundaryWay
    sampler: BoundarySampler
    surrogate: Any
    row: Any
    data: pd.DataFrame
    margin: float
    max_rounds: int
    limit: float = math.inf
    start: Floats | None = None
    first: Attempt | None = None
    tried: list[Attempt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped_by: str = ""

    def run(self) -> Attempt | None:
        """Return the attempt that gave answers no dearer than the boundary point, or None.

        Where the time ends it is the cheapest such attempt so far.
        """
        try:
            sample = self._first_sample()
            if sample is None:
                return None
            found, last = self._rounds(sample)
            if found is None:
                found = self._grown(last)
        except OutOfTimeError:
            served = list(filter(self._serves, self.tried))
            return min(served, key=lambda attempt: attempt.answers[0].cost, default=None)
        return found

    def boundary(self) -> Floats | None:
        """Return the boundary point brought nearer; None if no boundary point keeps every rule."""
        if self.start is None:
            return None
        try:
            return self.way.nearer(self.start)
        except CeoptError as error:  # no queries left: the point is good as it is
            self.notes.append(str(error))
            return self.start

    def why_not(self) -> str:
        """Return why no surrogate gave the answer, in words that end a sentence and begin the next."""
        if self.program.is_late:
            return "the time ended."
        return f"{self._why_not()}. {self.stopped_by}".strip()

    def _why_not(self) -> str:
        if self.first is None:
            return "none could be fitted"
        agreed = [attempt.answers[0].cost for attempt in self.tried if attempt.answers]
        if agreed:
            cost = digits(rounded(min(agreed), 6, "down"))
            limit = digits(rounded(self.limit, 6, "down"))
            if cost == limit:
                cost, limit = digits(min(agreed)), digits(self.limit)
            found = f"the cheapest answer that the model confirmed costs {cost}"
            return f"{found}, more than the {limit} of the boundary point"
        if any(len(attempt.result) for attempt in self.tried):
            return "the model refused what the surrogates gave"
        result = self.first.result
        if result.status is Status.ALREADY_FAVOURABLE:
            return "the surrogate favours the row as it is, which the model does not"
        return f"its program ended as {result.status}"

    # ---- samples -----------------------------------------------------------------------------------------------------
    def _first_sample(self) -> BoundarySample | None:
        """Return the sample about the boundary point, the sampler's or, where that breaks a rule, a legal one.

        None where the ball about a point in hand has one class only, or may not be asked about.
        """
        point = self._sampled_boundary()
        if point is None or not self._is_told(point):
            try:
                self.start = self.way.from_data()
            except QueryLimitError as error:
                self.notes.append(str(error))
        else:
            self.start = point
        if self.start is not None:
            point = self.start
            self.limit = self.way.cost(point)
        if point is None:
            return None
        try:
            return self._around(point)
        except (NoBoundaryError, QueryLimitError) as error:
            if self.start is None and isinstance(error, QueryLimitError):
                raise
            self._stopped(error)
            return None

    def _sampled_boundary(self) -> Floats | None:
        """Return the sampler's boundary point; None where no row of the other side is in reach of the person."""
        try:
            return self.sampler.boundary(self.way.rows, self.row)
        except NoBoundaryError as error:
            if not self.way.rows.favourable.any():
                raise
            self.notes.append(str(error))
            return None

    def _is_told(self, point: Floats) -> bool:
        """Whether a point keeps every rule and the model favours it."""
        favourable = self.way.rows.box.favourable(self.way.columns.frame(point[None]))
        return bool(favourable[0]) and self.way.keeps_rules(point)

    def _around(self, point: Floats) -> BoundarySample:
        centre = self.way.columns.frame(point[None]).iloc[[0]]
        return self.sampler.around(self.way.rows, self.row, centre)

    def _coordinates(self, raw: Any) -> Floats:
        return np.array(list(self.program.space.row(raw).values()))

    # ---- the ways ----------------------------------------------------------------------------------------------------
    def _rounds(self, sample: BoundarySample) -> tuple[Attempt | None, BoundarySample]:
        """Solve over the surrogate of a sample, and of new samples nearer to points that the model refuses.

        The last sample comes back beside the attempt that serves.
        """
        met = set[bytes]()
        for _ in range(self.max_rounds + 1):
            if self.program.is_late:
                break
            try:
                attempt = self._tried(self.surrogate, sample, self.margin, "surrogate")
                if self.first is None:
                    self.first = attempt
                if self._serves(attempt):
                    return attempt, sample
                if not len(attempt.result) or attempt.answers:
                    break
                point = self._coordinates(attempt.result[0].frame)
                if point.tobytes() in met:
                    break
                met.add(point.tobytes())
                sample = self._around(self._towards(point))
            except CeoptError as error:
                if self._is_misuse(error):
                    raise
                self._stopped(error)
                break
        return None, sample

    def _stopped(self, error: CeoptError) -> None:
        self.stopped_by = str(error)
        self.notes.append(self.stopped_by)

    def _is_misuse(self, error: CeoptError) -> bool:
        """Whether a first fit failed by what was given: the solver, or the surrogate's parameters.

        Machines were tried with their parameters before, so what they refuse is a sample.
        """
        if self.first is not None:
            return False
        if isinstance(error, UnsupportedProblemError | MissingLicenceError):
            return True
        is_machine = isinstance(self.surrogate, MinimaxProbabilityMachine)
        return not (is_machine or isinstance(error, NoBoundaryError | QueryLimitError))

    def _towards(self, refused: Floats) -> Floats:
        """Return where the next sample is drawn: the best point in hand, led towards a refused one as far as it may go.

        It is a point of the boundary near the refused one, and becomes the best in hand. Without a point in hand, or
        where the way ends at once, it is the refused point itself.
        """
        if self.start is None:
            return refused
        found = self.way.led(self.start, refused)
        if found is None:
            return refused
        self.start = found
        return found

    def _grown(self, sample: BoundarySample) -> Attempt | None:
        """Grow the radius of the unfavourable class, or the margin, by doubling; bisect to the least that serves.

        Where the model agreed to less already, and only the cost is too great, there is nothing between to look for.
        """
        if self.first is None:
            return None
        last = self.tried[-1]
        if last.fit.sample is sample and self._only_gets_dearer(last):
            return None
        low = self.margin
        amount = self.margin + _FIRST_MARGIN * self.first.fit.unit
        if has_radius(self.surrogate):
            low = float(self.surrogate.radius[0])
            amount = max(2.0 * low, 1.0)
        before = last.fit
        has_agreed = bool(last.answers)
        for _ in range(_DOUBLINGS):
            attempt = self._tried_at(sample, amount)
            if attempt is None:
                return None
            agrees_now = bool(attempt.answers)
            if self._serves(attempt) or (agrees_now and not has_agreed):
                attempt = self._bisected(sample, low, amount, attempt)
            if self._serves(attempt):
                return attempt
            if self._only_gets_dearer(attempt):
                return None
            if has_radius(self.surrogate) and attempt.fit.is_nearly(before):
                return None  # so great a radius moves the line no more
            before = attempt.fit
            has_agreed = has_agreed or agrees_now
            low, amount = amount, 2.0 * amount
        return None

    def _bisected(self, sample: BoundarySample, low: float, high: float, best: Attempt) -> Attempt:
        """Return the attempt of the least amount found at which the model agrees, between one and that of the best."""
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            found = self._tried_at(sample, middle)
            if found is None or not found.answers or (self._serves(best) and not self._serves(found)):
                low = middle
            else:
                best, high = found, middle
        return best

    def _only_gets_dearer(self, attempt: Attempt) -> bool:
        """Whether it is proved that nothing serves at greater margins: they cost no less. A radius turns the line."""
        bound = attempt.result.bound
        return not has_radius(self.surrogate) and bound is not None and bound > self.limit

    def _tried_at(self, sample: BoundarySample, amount: float) -> Attempt | None:
        """Return the attempt with a radius or margin; None where its program has no answer."""
        if self.program.is_late or not math.isfinite(amount):
            return None
        try:
            if has_radius(self.surrogate):
                attempt = self._tried(with_radius(self.surrogate, amount), sample, self.margin, "grown")
            else:
                attempt = self._tried(self.surrogate, sample, amount, "grown")
        except CeoptError as error:
            self._stopped(error)
            return None
        if not len(attempt.result):
            return None
        return attempt

    def _tried(self, surrogate: Any, sample: BoundarySample, margin: float, way: str) -> Attempt:
        checkpoint("fitting the surrogate")
        fit = fitted_on(surrogate, sample, self.way.rows.box, self.row, self.data)
        result = self.program.solve(fit, margin)
        attempt = Attempt(fit, result, self._confirmed(result, way), surrogate)
        self.tried.append(attempt)
        return attempt

    def _confirmed(self, result: SolutionSet, way: str) -> tuple[Counterfactual, ...]:
        """Return those answers of a surrogate's program that the model itself favours."""
        if not len(result):
            return ()
        good = self.way.rows.box.favourable(result.to_frame().reset_index(drop=True))
        return confirmed(self.way, [answer for answer, is_good in zip(result, good, strict=True) if is_good], way)

    def _serves(self, attempt: Attempt) -> bool:
        return bool(attempt.answers) and attempt.answers[0].cost <= self.limit


def confirmed(way: BoundaryWay, answers: list[Counterfactual], name: str) -> tuple[Counterfactual, ...]:
    """Return answers with the model's predictions, ranked again, without a bound on the model."""
    found: list[Counterfactual] = []
    for answer in answers:
        prediction = way.rows.box.label_of(answer.frame)
        found.append(
            altered(
                answer,
                prediction=plain(prediction),
                slack=None,
                rank=len(found) + 1,
                way=name,
                bound=math.nan,
                gap=math.nan,
            )
        )
    return tuple(found)


# ==== How much a surrogate changes from a person to those nearby ======================================================

#: People nearby, and their standard deviation in scaled columns: the numbers of the source's released code.
_NEARBY: Final = 10
_NEAR: Final = 0.001


def stability_of(search: LocalSearch, fit: LinearFit, surrogate: Any, random_state: int) -> float:
    """Return the greatest distance of the normalised parameters from those fitted for people near the person.

    Nine in ten of their rows or more are the person's own, so that the model is asked little; surrogates that draw
    their own rows ask about all of them. It is nan where the model may not be asked any more, or the time is over, and
    of fewer people where it ends on the way.
    """
    rng = np.random.default_rng(random_state)
    columns = fit.sample.columns
    rows = search.way.rows
    assert columns.factual is not None  # noqa: S101 - the columns are about a person
    person = columns.encoded(columns.factual[None])
    coefs = []
    intercepts = []
    for _ in range(_NEARBY):
        shift = _NEAR * rng.standard_normal(len(columns.names))
        try:
            checkpoint("fitting the surrogate")
            sample = search.sampler.shifted(rows, fit.sample, shift)
            own = fitted_on(surrogate, sample, rows.box, columns.decode(person + shift), search.data)
        except (QueryLimitError, OutOfTimeError):
            break
        except CeoptError:  # a sample of which the classes' means are equal
            continue
        coefs.append(own.coef)
        intercepts.append(own.intercept)
    if not coefs:
        return math.nan
    return float(stability(fit.coef, coefs, intercept=fit.intercept, nearby_intercept=intercepts))
