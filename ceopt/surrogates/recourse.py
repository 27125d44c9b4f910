"""Recourse for a model of which only the answers are known: a program over a surrogate, and a check on the model."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd
from sklearn.base import clone

from ceopt.base.libraries import versions
from ceopt.base.results import Status
from ceopt.base.said import said, together
from ceopt.formulations.costs import Percentile
from ceopt.formulations.digits import digits
from ceopt.formulations.space.reachable import reach_of
from ceopt.formulations.space.space import FeatureSpace, complete_rows, require_space, with_labels_kept
from ceopt.oracle.black_box import BlackBox, QueryLimitError
from ceopt.oracle.model import broken_rules
from ceopt.result.counterfactual import altered
from ceopt.result.shown import SurrogateReport
from ceopt.result.solution_set import SolutionSet
from ceopt.search.build_answer import asked_by_rules, assembled, line_without, rules_beyond, with_printed
from ceopt.search.search import in_fewer_decimals, init, result_without_model, rounded_gap
from ceopt.settings import Settings
from ceopt.solvers.checks import Choice, Real, Whole, check_fields
from ceopt.solvers.deadline import OutOfTimeError, deadline_now, until
from ceopt.solvers.errors import CeoptError, InvalidTypeError
from ceopt.surrogates.boundary_way import BoundaryWay
from ceopt.surrogates.local_search import Attempt, LocalSearch, stability_of
from ceopt.surrogates.minimax import MinimaxProbabilityMachine
from ceopt.surrogates.sampler import BoundarySampler
from ceopt.surrogates.surrogate_program import SurrogateProgram, action_grid, fidelity_of
from ceopt.words.sentences import removed_said, rules_said, wanted_said

if TYPE_CHECKING:
    from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
    from ceopt.result.counterfactual import Counterfactual

_WHO: Final = "LocalSurrogateRecourse"
_CHECKS: Final = {
    "search": Choice(("projection", "robust", "actionable", "roar", "wachter")),
    "margin": Real(at_least=0.0, finite=True),
    "max_rounds": Whole(at_least=0),
}
_PROOF: Final = said(
    "What is proved is proved about a linear surrogate; each answer was checked on the model itself.", "surrogate_proof"
)
_NO_PROOF: Final = said(
    "The answer is a boundary point, brought nearer and checked on the model itself; nothing is proved.",
    "boundary_proof",
)


@final
@dataclass(frozen=True, slots=True)
class LocalSurrogateRecourse:
    r"""Find recourse through a linear surrogate fitted near the decision boundary; the model has the last word.

    1. Rows are drawn about the nearest boundary point, and a linear surrogate :math:`w^\top z + b \ge 0` is fitted to
       them in scaled columns.
    2. :func:`ceopt.explain`'s own program is solved with the surrogate in place of the model, with all its rules and
       costs. What it gives is put to the model.
    3. If the model refuses the point, rows are drawn anew, where the way from the best point in hand to the refused one
       leaves what the model favours, or about the refused point where nothing on that way is cheaper; at most
       ``max_rounds`` times. A plane far from where it was fitted says little: so it comes nearer in steps.
    4. Then the surrogate is made more careful: the radius of the unfavourable class, of surrogates without one the
       margin, doubles until the model agrees, and is bisected to the least that serves.
    5. Last, the boundary point, or what step 3 made of it, if it keeps every rule, brought nearer column by column.
       Where the sampler's breaks a rule, as where a column may not move, the way is led to rows of data put where the
       person may go.

    No first answer is dearer than the boundary point. Each answer names its way.

    A cell of the person that is missing, or holds a code, stays as it is, as ``.removed`` says, and the model is asked
    about rows with that cell as it is. No other cell goes missing or becomes a code.

    Parameters
    ----------
    sampler
        A :class:`BoundarySampler`; None: the default one. Its ``max_queries`` holds for the whole call; of
        ``Recourse`` for the data, and then for each person anew.
    surrogate
        A :class:`MinimaxProbabilityMachine` or one with ``fit_local``; None: Fisher-Rao with radius (1, 0).
    search
        "projection": the program as it is. "robust": the score holds for all coefficients within a tenth of their
        length (l2). "roar": for all coefficients and intercepts within a tenth of the coefficients' root mean square
        each (linf), the hard form of :func:`~ceopt.surrogates.roar`. "actionable": moves on a grid, of which a step is
        1 % of the range between the 1st and the 99th percentile, by default at the cost ``Percentile("max")``.
        "wachter": the hard form, score at least 1 where the classes' mean scores in the sample are 2 apart.
    margin
        Least score of the surrogate.
    max_rounds
        How often rows are drawn anew.

    Raises
    ------
    InvalidValueError, InvalidTypeError, UnknownNameError
        A parameter out of its range.

    References
    ----------
    Bui, Nguyen, Yue & Nguyen (2024), Coverage-validity-aware algorithmic recourse, section 2. Ustun, Spangher & Liu
    (2019), Actionable recourse in linear classification.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ceopt import FeatureSpace
    >>> from ceopt.surrogates import LocalSurrogateRecourse
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["income", "savings"])
    >>> result = LocalSurrogateRecourse().explain(
    ...     lambda rows: rows.sum(axis=1) > 0, {"income": -1.0, "savings": -1.0}, FeatureSpace.infer(people),
    ...     target=True, data=people)
    >>> result.status.value, bool(result[0].values.sum() > 0), result[0].bound
    ('feasible', True, nan)
    """

    sampler: BoundarySampler | None = None
    surrogate: Any = None
    search: str = field(default="projection", kw_only=True)
    margin: float = field(default=0.0, kw_only=True)
    max_rounds: int = field(default=20, kw_only=True)

    def __post_init__(self) -> None:
        check_fields(self, _CHECKS)
        if self.sampler is not None and not isinstance(self.sampler, BoundarySampler):
            but = f"sampler is {type(self.sampler).__name__}"
            raise InvalidTypeError(_WHO, "a BoundarySampler", but, "Give BoundarySampler(...), or leave it out.")
        fits = hasattr(self.surrogate, "fit_local") or isinstance(self.surrogate, MinimaxProbabilityMachine)
        if self.surrogate is not None and (isinstance(self.surrogate, type) or not fits):
            but = f"surrogate is {self.surrogate!r}"
            raise InvalidTypeError(_WHO, "a local surrogate", but, "Give MinimaxProbabilityMachine(), SvmSurrogate().")
        if isinstance(self.surrogate, MinimaxProbabilityMachine):  # its parameters are checked where it is fitted
            clone(self.surrogate).fit_moments([0.0], [[1.0]], [1.0], [[1.0]])

    def explain(
        self,
        model_or_predict: Any,
        row: Any,
        space: FeatureSpace,
        *,
        target: Any,
        data: pd.DataFrame,
        n: int = 1,
        cost: Any = None,
        constraints: Any = (),
        solver: str = "auto",
        time_limit_s: float = 60.0,
        diversity: str | AbstractDiversity = "distinct",
        random_state: int = 0,
    ) -> SolutionSet:
        """Return verified answers for one person.

        Parameters
        ----------
        model_or_predict
            A fitted model, or a function from a frame with the columns and dtypes of ``data`` to labels (n,).
        row, space, n, constraints, solver, time_limit_s, diversity, random_state
            As for :func:`ceopt.explain`. Answers after the first may cost more than the boundary point. No call of the
            model begins after the limit; many rows are asked about in short calls, so that the one under way is short.
        target
            As for :class:`BlackBox`.
        data
            Rows in raw units, of which the model decides some otherwise.
        cost
            As for :func:`ceopt.explain`; None: "l1", and ``Percentile("max")`` where the search is "actionable".

        Returns
        -------
        SolutionSet
            Status "feasible", "already_favourable", "rejected" (no way led to an answer), "time_limit", or "infeasible"
            where the rules alone leave nothing. ``.bound`` and ``.gap`` are nan, as nothing is proved about the model;
            ``.surrogate`` says what is proved about the surrogate. An answer's ``.score`` is the surrogate's.
            ``.reason`` says which way led to it and, of a boundary point, why no surrogate did.

        Raises
        ------
        NoBoundaryError, QueryLimitError
            The model decides one way on all rows; too few rows may be asked about to begin.
        UnsupportedProblemError
            A solver by name that does not take the program, such as Clarabel where columns are whole numbers.
        CeoptError
            Misuse, as :func:`ceopt.explain` and :class:`BlackBox`.
        """
        began = time.perf_counter()
        require_space(_WHO, space)
        if not isinstance(data, pd.DataFrame):
            raise InvalidTypeError(_WHO, "a DataFrame as data", f"data is {type(data).__name__}", "Name its columns.")
        settings = self._settings(
            n=n, cost=cost, constraints=constraints, solver=solver, time_limit_s=time_limit_s, diversity=diversity,
            random_state=random_state,
        )  # fmt: skip
        try:
            with until(began + settings.limit_s()):
                found = self._explained(model_or_predict, row, space, settings, target=target, data=data, began=began)
                return replace(found, space=space)
        except OutOfTimeError as error:
            late = result_without_model(replace(settings, target=target), space, row, stage=error.stage, began=began)
            return replace(late, options={**late.options, **_options_of(self, target)})

    def _explained(
        self,
        model_or_predict: Any,
        row: Any,
        space: FeatureSpace,
        settings: Settings,
        *,
        target: Any,
        data: pd.DataFrame,
        began: float,
    ) -> SolutionSet:
        """Return the answers, before the deadline that is set."""
        factual = space.row(row)
        space.require_moderate(factual)
        space = with_labels_kept(space)
        person = space.frame([factual])
        sampler = self.sampler or BoundarySampler(random_state=int(settings.random_state))
        names = list(space.names)
        known = data
        if list(data.columns) != names:  # the same frame is asked about once
            known = data[[name for name in names if name in data.columns]]
        box = model_or_predict
        if not isinstance(box, BlackBox):
            box = BlackBox(
                box, target, columns=names, dtypes=known.dtypes, max_queries=sampler.max_queries, space=space
            )  # fmt: skip
        known = complete_rows(_WHO, space, known)
        rows = sampler.decided(box, known, target=target, space=space)
        columns = rows.columns.about(person)
        if self.search == "actionable":
            grid = action_grid(space, factual, known)
            rules = settings.constraints
            given = rules if isinstance(rules, list | tuple) else (rules,)
            if grid is not None:
                settings = replace(settings, constraints=(*given, grid))
        program = SurrogateProgram(
            self.search, settings, space, person, known, rows.favourable, columns, deadline_now()
        )
        prepared = program.rules_alone()
        assert columns.factual is not None  # noqa: S101 - the columns are about the person
        way = BoundaryWay(rows, columns, prepared, columns.factual)
        search = LocalSearch(
            program, way, sampler, self.surrogate_or_default, person, known, self.margin, self.max_rounds
        )
        outcome = _Outcome(self, box, target, factual, way, prepared, search, began)
        if bool(box.favourable(person)[0]) and way.keeps_rules(columns.factual):
            already = said("The row meets the target and every rule already.", "favourable_already")
            return outcome.result(Status.ALREADY_FAVOURABLE, already)
        found = search.run()
        if found is not None:
            return outcome.of_attempt(found)
        point = search.boundary()
        if point is not None:
            return outcome.of_boundary(point)
        alone = program.alone(prepared)
        if alone.status is Status.INFEASIBLE:
            return outcome.result(Status.INFEASIBLE, alone.reason, conflict=alone.conflict)
        if program.is_late:
            late = said("The time ended before any answer passed the model's check.", "time_ended")
            return outcome.result(Status.TIME_LIMIT, late)
        why = ""
        if search.notes:
            why = search.notes[-1]
        none = said("No point of the surrogate and no legal boundary point passed the model's check.", "none_passed")
        return outcome.result(Status.REJECTED, together(none, why), attempt=search.first)

    @property
    def surrogate_or_default(self) -> Any:
        """The surrogate that is fitted: the one given, or Fisher-Rao with radius (1, 0)."""
        if self.surrogate is not None:
            return self.surrogate
        return MinimaxProbabilityMachine("fisher_rao", (1.0, 0.0))

    def _settings(self, *, cost: Any, **given: Any) -> Settings:
        if cost is None:
            cost = Percentile("max") if self.search == "actionable" else "l1"
        return Settings(target=True, cost=cost, **given)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """Makes the solution set of a person."""

    asked: LocalSurrogateRecourse
    box: BlackBox
    target: Any
    factual: Mapping[str, float]
    way: BoundaryWay
    prepared: Any
    search: LocalSearch
    began: float

    def of_attempt(self, attempt: Attempt) -> SolutionSet:
        """Return the answers of a surrogate that the model confirmed."""
        sentences: list[str] = [_PROOF]
        if attempt.answers[0].way == "grown":
            sentences.append(self._grown(attempt))
        refused = len(attempt.result) - len(attempt.answers)
        more = "the surrogate's program has no more"
        if refused:
            more = f"the model refused {refused} more"
        return self._feasible(sentences, more, attempt, attempt.answers)

    def of_boundary(self, point: np.ndarray[Any, Any]) -> SolutionSet:
        """Return the boundary point as the answer, in the decimals of its data."""
        search = self.search
        space = self.prepared.space
        named = self._in_decimals(point)
        point = np.array(list(named.values()))
        frame = space.frame([named])
        prediction = self._label(frame)
        score = None
        if search.first is not None:
            score = float(search.first.fit.score(self.way.columns.encoded(point[None]))[0])
        answer = assembled(
            self.prepared.settings.rules, space, self.factual, named, cost=self.way.cost(point),
            prediction=prediction, score=score, slack=None, rank=1, bound=math.nan, gap=math.nan,
        )  # fmt: skip
        answers = (altered(answer, way="boundary"),)
        why = search.why_not()
        sentences = [_NO_PROOF, said(f"No surrogate served: {why}", "no_surrogate", why=why)]
        return self._feasible(sentences, "the boundary way has one", search.first, answers)

    def _in_decimals(self, point: np.ndarray[Any, Any]) -> dict[str, float]:
        """Return a boundary point in few decimals, as long as the model may be asked whether it favours it still.

        It costs no more than the boundary point that it was before it was brought nearer.
        """
        space = self.prepared.space
        named = dict(zip(space.names, point.tolist(), strict=True))
        question = init(
            self.prepared, space.frame([self.factual]), keep_on_interrupt=False, within=None, began=self.began
        ).question  # fmt: skip
        cost = self.way.cost(point)
        dearest = min(cost * (1.0 + rounded_gap(question)), max(cost, self.search.limit))

        def passes(candidate: dict[str, float]) -> bool:
            if broken_rules(self.prepared.settings.rules, space, self.factual, candidate):
                return False
            try:
                return bool(self.box.favourable(space.frame([candidate]))[0])
            except (CeoptError, OutOfTimeError):  # it may not be asked any more
                return False

        return in_fewer_decimals(question, named, (0.0, dearest), passes, margin=None)

    def _feasible(
        self, sentences: Sequence[str], more: str, attempt: Attempt | None, answers: tuple[Counterfactual, ...]
    ) -> SolutionSet:
        """Return answers with their sentences, and why there are fewer than wanted."""
        wanted = self.prepared.settings.n
        if len(answers) < wanted:
            text = f"{len(answers)} of {wanted}: {more}."
            sentences = [said(text, "fewer_than_wanted", answers=len(answers), wanted=wanted), *sentences]
        return self.result(Status.FEASIBLE, together(*sentences), attempt=attempt, answers=answers)

    def _grown(self, attempt: Attempt) -> str:
        """Return what was made greater until the model agreed."""
        if math.isnan(attempt.fit.radius):
            return said("The surrogate's margin was raised until the model agreed.", "margin_raised")
        radius = attempt.fit.radius
        return said(
            f"The radius was raised to {digits(radius)}, where the model agreed.", "radius_raised", radius=radius
        )

    def result(
        self,
        status: Status,
        reason: str,
        *,
        attempt: Attempt | None = None,
        answers: tuple[Any, ...] = (),
        conflict: tuple[Any, ...] = (),
    ) -> SolutionSet:
        """Return the solution set."""
        space = self.prepared.space
        settings = self.prepared.settings
        answers = self._printed(answers)
        report = None
        solver = "none"
        if attempt is not None:
            report = self._report(attempt)
            solver = attempt.result.solver
        options = settings.options() | _options_of(self.asked, self.target)
        beyond = rules_beyond(settings.rules, space, self.factual)
        if beyond:
            answers = self._marked(answers, beyond)
        complete = status in {Status.ALREADY_FAVOURABLE, Status.INFEASIBLE} or len(answers) == settings.n
        return SolutionSet(
            status=status,
            counterfactuals=answers,
            factual=space.frame([self.factual]),
            bound=math.nan,
            gap=math.nan,
            complete=complete,
            reason=reason,
            conflict=conflict,
            timings={"total": time.perf_counter() - self.began},
            solver=solver,
            versions=dict(versions()),
            options=options,
            target=wanted_said(_text(self.target), self.target),
            removed=removed_said(space, reach_of(space, self.factual), self.factual),
            space=space,
            rules=rules_said(settings.rules, space),
            surrogate=report,
            beyond={name: line_without(rule) for name, rule in beyond.items()},
        )

    def _printed(self, answers: tuple[Counterfactual, ...]) -> tuple[Counterfactual, ...]:
        """Return the answers with the digits to print, as long as the model may be asked."""
        space = self.prepared.space
        pairs = [(answer, space.row(answer.frame)) for answer in answers]
        return tuple(with_printed(pairs, self.prepared.settings.rules, space, self.factual, self._accepts))

    def _accepts(self, points: list[dict[str, float]]) -> list[bool]:
        if not self.search.program.is_late:
            with suppress(QueryLimitError, OutOfTimeError):
                met: list[bool] = self.box.favourable(self.prepared.space.frame(points)).tolist()
                return met
        return [False] * len(points)

    def _marked(self, answers: tuple[Counterfactual, ...], beyond: Mapping[str, Any]) -> tuple[Counterfactual, ...]:
        """Return the answers marked where a rule forces a change, as long as the model may be asked."""
        space = self.prepared.space
        pairs = list(zip(answers, [space.row(answer.frame) for answer in answers], strict=True))
        return tuple(asked_by_rules(pairs, beyond, space, self.factual, self._accepts))

    def _report(self, attempt: Attempt) -> SurrogateReport:
        fit = attempt.fit
        seed = int(self.prepared.settings.random_state)
        gap = attempt.result.gap
        fidelity = fidelity_of(fit, self.box, seed)
        stability = stability_of(self.search, fit, attempt.surrogate, seed)
        return SurrogateReport(
            coef=pd.Series(fit.coef, index=list(self.way.columns.names)),
            intercept=fit.intercept,
            fidelity=fidelity,
            stability=stability,
            worst_case_error=fit.worst_case_error,
            radius=fit.radius,
            program_status=attempt.result.status,
            program_gap=math.nan if gap is None else gap,
            n_queries=self.box.n_queries,
        )

    def _label(self, frame: pd.DataFrame) -> Any:
        """Return what the model says; where it may not be asked any more, the target that it was seen to meet."""
        try:
            return self.box.label_of(frame)
        except (QueryLimitError, OutOfTimeError):
            return self.target


def _options_of(asked: LocalSurrogateRecourse, target: Any) -> dict[str, Any]:
    """Return the options beside the settings of the engine, as plain values."""
    return {
        "target": _text(target),
        "search": asked.search,
        "margin": asked.margin,
        "max_rounds": asked.max_rounds,
        "surrogate": repr(asked.surrogate_or_default),
    }


def _text(target: Any) -> str:
    if isinstance(target, str):
        return target
    return repr(target)
