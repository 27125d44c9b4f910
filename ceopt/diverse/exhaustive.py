"""Every near-optimal way out: one answer of every cell of the model, and the proof that there is no further one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from ceopt.base.results import Status
from ceopt.base.said import said
from ceopt.diverse.enumeration import Enumeration, Kept
from ceopt.diverse.score_bounds import cell_columns, cell_of, has_a_cheapest_point, is_in_cell
from ceopt.formulations.constraints.diversity.diversity import OtherCells
from ceopt.formulations.constraints.rule import require_exact_rows
from ceopt.formulations.digits import digits, rounded
from ceopt.formulations.predictors.ties import default_margin, tie_width
from ceopt.formulations.space.reachable import Reach
from ceopt.result.counterfactual import Counterfactual, altered
from ceopt.result.solution_set import SolutionSet
from ceopt.search.build_answer import answers_of, with_printed
from ceopt.search.nearer import Point
from ceopt.search.prepare import Prepared, fingerprints_of, prepare
from ceopt.search.search import in_fewer_decimals, init, result_without_model, rounded_gap, search
from ceopt.search.solve_check_repair import used_up
from ceopt.search.state import reach_without
from ceopt.settings import Settings
from ceopt.solvers.checks import OrNone, Real, Refusal, Whole, check_arguments
from ceopt.solvers.deadline import OutOfTimeError, until, without_deadline
from ceopt.solvers.errors import InvalidTypeError
from ceopt.tolerances import DIGIT_NOISE, EQUAL_COSTS, EQUAL_VOTES

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

_WHO = "exhaustive"
#: Answers that are asked for where there is no limit: none has so many.
_ALL = 10**9
#: Share of the time that the proof of the least cost may take where the walk can prove it as well.
_LEAST_SHARE = 0.5
#: Answers that are made to see how long one takes.
_SAMPLE = 8
#: Answers that are made, and whose printed digits are asked for, at once, before the clock is looked at again.
_AT_ONCE = 100
#: Seconds an answer that it takes to put the result together, at the end.
_PUT_TOGETHER_S = 2e-5
_IN_UNITS = "Give one in the cost's units."
_CHECKS = {
    "epsilon": Real(
        at_least=0.0,
        finite=True,
        otherwise=Refusal("a finite epsilon of at least 0", _IN_UNITS),
        wrong_type=Refusal("a number as {name}", _IN_UNITS, error=InvalidTypeError),
    ),
    "limit": OrNone(
        Whole(
            at_least=1,
            at_most=None,
            otherwise=Refusal("a limit of at least 1", "Raise it, or give None for all."),
            wrong_type=Refusal("a whole number as {name}", "Give an int, or None for all.", error=InvalidTypeError),
        )
    ),
}


def exhaustive(
    model: Any,
    row: Any,
    space: FeatureSpace,
    *,
    target: Any,
    epsilon: float,
    cost: Any = "l1",
    constraints: Any = (),
    margin: float | None = None,
    solver: str = "auto",
    time_limit_s: float = 60.0,
    limit: int | None = None,
) -> SolutionSet:
    r"""Find every change, one of each cell of the model, that costs at most ``epsilon`` more than the least one.

    .. math::
        E^\varepsilon(x^0) = \Bigl\{ \operatorname*{arg\,min}_{x \in C} \text{cost}(x, x^0) \;:\; C \text{ a cell},\
        \min_{x \in C} \text{cost}(x, x^0) \le c^* + \varepsilon \Bigr\}, \qquad
        c^* = \min_x \text{cost}(x, x^0)

    over all x that reach the target with the margin, lie in the person's reach and keep the rules.

    A cell is a region on which every split, category and integer decision of the model is constant. Two points are in
    one cell if they have the same level of every column with levels, lie on the same side of every split of the model's
    trees, agree in every number in whole steps that a linear part of the model, or a network, reads, and in which cells
    are missing or hold which code. A linear model of continuous columns has one cell, also where their data had few
    decimals (steps that ``FeatureSpace.infer`` has seen shape the answers and make no cells); what switches inside a
    network makes none. Where a cell of the row is filled in, all amounts of a region cost the same, and one is given.

    Parameters
    ----------
    model, row, space, target, cost, constraints, margin, solver
        As for :func:`ceopt.explain`.
    epsilon
        How much more than the least cost an answer may cost, in the cost's own units.
    time_limit_s
        Seconds for the whole call.
    limit
        Most answers wanted, the cheapest ones; None for all.

    Returns
    -------
    SolutionSet
        The answers in order of cost, each the cheapest of its cell and verified by the user's own model. ``.status`` is
        "optimal" if the least cost is proved. ``.complete``: whether it is proved that no other cell holds an answer
        within the threshold; if not, ``.reason`` says why.
        ``.safety``: :math:`\delta = c^* + \varepsilon - \text{cost}` of each. For a cost that is a distance, an answer
        is within the threshold of every factual closer than :math:`\delta / 2` too, as long as that one is not
        favourable itself and may become as much.

    Raises
    ------
    CeoptError
        Misuse, as for :func:`ceopt.explain`, and an epsilon below 0 or no finite number, or a limit below 1.

    Notes
    -----
    The least cost is proved by the program of ``explain``. Then, where a score is constant on cells (trees, votes and
    sums of trees, linear models whose moving columns are all discrete) and the cost is "l0", "l1", "l2", "linf" or a
    sum of such, the cells are walked through by branch and bound over the boxes that they form, with valid bounds of
    cost and score, so that the walk is itself a proof; a cell whose nearest point breaks a rule is settled by a program
    of its own. All else is a sequence of programs, each without the cells in hand, until one is proved to be empty or
    dearer than the threshold.

    Numbers come in the decimals of their column's data, or in some more, where the rounded point lies in its cell,
    passes every check and costs at most a millionth more; ``.bound`` is then the cost of the cheapest point itself.
    What there is no time for keeps its digits.

    A cost that exceeds the threshold by no more than rounding (1e-9 of it; 1e-6, the gap within which programs are
    solved, in a sequence of programs) is within it, and its delta is 0.

    A decision counts that has the margin. Without one, what the model itself says decides wherever cells are walked
    through, be it by a hair: ``.margin`` is then 0, and the least cost is that of the set. For trees it is that of
    ``explain``; for linear models it may lie below. In a sequence of programs it is, as in ``explain``, what trees
    decide themselves, or a slack just above the solver's tolerance.

    References
    ----------
    Leofante & Potyka (2024), Definition 5 and Propositions 1 and 2.

    Examples
    --------
    >>> import ceopt
    >>> from ceopt.diverse import exhaustive
    >>> from ceopt.formulations.predictors import Affine
    >>> space = ceopt.FeatureSpace(
    ...     [ceopt.Feature("income", kind="integer", lower=0, upper=9), ceopt.Feature("owner", kind="binary",
    ...      levels=(False, True))]
    ... )
    >>> model = Affine([1.0, 2.0], -3.5, labels=("no", "yes"))
    >>> found = exhaustive(model, {"income": 1, "owner": False}, space, target="yes", epsilon=0.25, cost="l1")
    >>> [(answer.changed, round(answer.cost, 3)) for answer in found], found.complete
    ([(('income',), 0.333), (('income',), 0.444), (('income',), 0.556)], True)
    """
    began = time.perf_counter()
    check_arguments(_WHO, _CHECKS, locals())
    settings = Settings(
        target=target, cost=cost, constraints=constraints, solver=solver, time_limit_s=time_limit_s, margin=margin
    )
    try:
        with until(began + settings.limit_s()):
            prepared = prepare(model, space, settings, fingerprints=fingerprints_of(model, None))
            require_exact_rows(_WHO, prepared.settings.rules)
            return _answered(_Question(prepared, row, float(epsilon), limit, began), model, settings)
    except OutOfTimeError as error:  # in reading
        return result_without_model(settings, space, row, stage=error.stage, began=began)


def _answered(question: _Question, model: Any, settings: Settings) -> SolutionSet:
    """Return the answers, before a deadline that is set."""
    prepared = question.prepared
    space = prepared.space
    factual = space.row(question.row)
    reach = reach_without(prepared.predictor.unseen, space, factual)
    if not has_a_cheapest_point(prepared, reach):
        return question.by_programs()
    found = question.by_walking(factual, reach)
    if found.status is Status.INFEASIBLE and settings.margin is None and not prepared.predictor.is_trees:
        # With a margin there is nothing; the model itself may still decide so, by a hair.
        unforced = prepare(model, space, replace(settings, margin=0.0), fingerprints=prepared.fingerprints)
        question = replace(question, prepared=unforced)
        by_a_hair = question.by_walking(factual, reach)
        if len(by_a_hair):
            return by_a_hair
    return found


@final
@dataclass(frozen=True, slots=True)
class _Question:
    """One person's question, and when it began."""

    prepared: Prepared
    row: Any
    epsilon: float
    limit: int | None
    began: float

    # ---- by a walk over the cells ------------------------------------------------------------------------------------
    def by_walking(self, factual: Point, reach: Reach) -> SolutionSet:
        """Prove the least cost by the program, and what lies near it by a walk."""
        prepared = self.prepared
        settings = prepared.settings
        first = self._least(_LEAST_SHARE * settings.time_limit_s)
        if first.status is Status.TIME_LIMIT:  # nothing to begin a walk with
            first = self._least(self._left)
        if not first.status.has_answers:
            return self._dressed(first)
        most = (first[0].cost + self.epsilon) * (1.0 + EQUAL_COSTS)
        try:
            columns = cell_columns(prepared.predictor, settings.cost, factual, reach, settings.cost.to_objective(most))
        except OutOfTimeError as error:
            return self._dressed(first, why=used_up(settings.time_limit_s, error.stage))
        if columns is None:
            return self.by_programs()
        walk_began = time.perf_counter()
        known = self._known(first[0])
        enumeration = Enumeration(
            prepared,
            factual,
            first.factual,
            reach,
            columns,
            least_slack=self._least_slack(first[0]),
            most=most,
            wanted=None if self.limit is None else self.limit + 1,
            deadline=self._deadline,
            answer_s=self._answer_s(factual, known),
        )
        enumeration.run()
        with without_deadline():  # which looks at the clock itself
            kept = enumeration.kept
            if not enumeration.is_complete or not kept:
                cell = cell_of(columns, known.point)
                if not any(is_in_cell(columns, cell, other.point) for other in kept):
                    kept = [known, *kept]
            timings = {**first.timings, "walk": time.perf_counter() - walk_began}
            margin = 0.0 if settings.margin is None else prepared.margin
            return self._from(replace(first, timings=timings, margin=margin), factual, kept, enumeration)

    def _least(self, seconds: float) -> SolutionSet:
        """Ask for the least cost alone, for so long."""
        return search(self.prepared.with_time_limit(seconds), self.row, keep_on_interrupt=False)

    @property
    def _deadline(self) -> float:
        return self.began + self.prepared.settings.time_limit_s

    @property
    def _left(self) -> float:
        return max(self._deadline - time.perf_counter(), 1e-2)

    def _least_slack(self, first: Counterfactual) -> float:
        """Return the slack that counts: the one asked for, or a solver's tolerance less in the program's own answer."""
        predictor = self.prepared.predictor
        margin = self.prepared.settings.margin
        assert first.slack is not None  # noqa: S101 - computed with every answer
        if margin is None and predictor.is_trees:
            # Floats decide: the model is asked.
            return -max(EQUAL_VOTES, tie_width(predictor, self.prepared.settings.target))
        if not margin or (predictor.has_ties and margin <= default_margin(predictor)):
            return min(-EQUAL_VOTES, first.slack)  # on a tie the library decides, and its word is asked for
        return min(margin, first.slack)

    def _known(self, first: Counterfactual) -> Kept:
        (values,) = self.prepared.space.coordinates(first.frame).tolist()
        return Kept(first.cost, dict(zip(self.prepared.space.names, values, strict=True)), first.prediction)

    def _answers(self, factual: Point, kept: list[Kept], bounds: list[float | None]) -> Iterator[Counterfactual]:
        for k in range(0, len(kept), _AT_ONCE):
            part = kept[k : k + _AT_ONCE]
            yield from answers_of(
                self.prepared,
                factual,
                [known.point for known in part],
                predictions=[known.prediction for known in part],
                bounds=bounds[k : k + _AT_ONCE],
                rank=k + 1,
            )

    def _answer_s(self, factual: Point, known: Kept) -> float:
        """Return the seconds that it takes to make an answer."""
        began = time.perf_counter()
        made = len(list(self._answers(factual, [known] * _SAMPLE, [None] * _SAMPLE)))
        return (time.perf_counter() - began) / made

    def _from(self, first: SolutionSet, factual: Point, kept: list[Kept], done: Enumeration) -> SolutionSet:
        """Return the answers as far as there is time to make them."""
        kept = sorted(kept, key=lambda known: (known.cost, tuple(known.point.values())))
        kept = [known for known in kept if known.cost <= (kept[0].cost + self.epsilon) * (1.0 + EQUAL_COSTS)]
        least = kept[0].cost
        wanted = kept[: self.limit]
        bounds = [first.bound] * len(wanted)
        if done.is_complete:
            bounds = [known.cost for known in wanted]
        why = done.why
        try:
            wanted = self._in_decimals(wanted, done)
        except KeyboardInterrupt:
            why = said("The search was interrupted.", "interrupted")
        answers: list[Counterfactual] = []
        try:
            for answer in self._answers(factual, wanted, bounds):
                answers.append(answer)
                if len(answers) < len(wanted) and time.perf_counter() > self._deadline:
                    why = (
                        f"{done.out_of_time} These are the cheapest of {len(wanted)} answers found: limit= takes less."
                    )
                    break
        except KeyboardInterrupt:
            if not answers:
                raise
            why = said("The search was interrupted.", "interrupted")
        with suppress(KeyboardInterrupt):
            answers = self._printed(answers)
        found = replace(first, counterfactuals=tuple(answers), bound=answers[0].bound, gap=answers[0].gap)
        if done.is_complete:
            found = replace(found, status=Status.OPTIMAL)
        return self._dressed(found, why=why, more=len(kept) > len(wanted), least=least)

    def _in_decimals(self, kept: list[Kept], done: Enumeration) -> list[Kept]:
        """Return answers in order of cost with their numbers in the decimals of their data, each within its cell.

        What the model does not accept then, and what there is no time for, keeps its digits.
        """
        question = init(self.prepared, self.row, keep_on_interrupt=False, within=None, began=self.began).question
        most = (kept[0].cost + self.epsilon) * (1.0 + EQUAL_COSTS)
        rounded: list[Kept] = []
        for place, known in enumerate(kept):
            if time.perf_counter() + done.answer_s * len(kept) > self._deadline:
                rounded += kept[place:]
                break
            least = max(known.cost * (1.0 - DIGIT_NOISE), rounded[-1].cost if rounded else 0.0)
            dearest = min(known.cost * (1.0 + rounded_gap(question)), most)
            if place + 1 < len(kept):
                dearest = min(dearest, kept[place + 1].cost)
            cell = _Cell(done, cell_of(done.columns, known.point))
            point = in_fewer_decimals(question, known.point, (least, dearest), cell.allows, margin=None)
            rounded.append(replace(known, cost=question.cost(point), point=point))
        places = [place for place, known in enumerate(kept) if rounded[place].point != known.point]
        if not places:
            return kept
        predictions, is_met = self.prepared.judge([rounded[place].point for place in places])
        for place, prediction, is_good in zip(places, predictions, is_met, strict=True):
            rounded[place] = replace(rounded[place], prediction=prediction) if is_good else kept[place]
        return rounded

    def _printed(self, answers: list[Counterfactual]) -> list[Counterfactual]:
        """Return the answers with the digits to print, as far as there is time."""
        question = init(self.prepared, self.row, keep_on_interrupt=False, within=None, began=self.began).question
        rules, space = self.prepared.settings.rules, question.space
        printed: list[Counterfactual] = []
        while len(printed) < len(answers):
            pairs = [(answer, space.row(answer.frame)) for answer in answers[len(printed) : len(printed) + _AT_ONCE]]
            printed += with_printed(pairs, rules, space, question.factual, question.accepts)
            if time.perf_counter() + _PUT_TOGETHER_S * len(answers) > self._deadline:
                break
        return printed + answers[len(printed) :]

    # ---- by a sequence of programs -----------------------------------------------------------------------------------
    def by_programs(self) -> SolutionSet:
        """Solve the program again and again without the cells in hand, until it is proved that there are no more."""
        prepared = self.prepared
        wanted = _ALL if self.limit is None else self.limit + 1
        left = rounded(self._left, 3, "up")
        settings = replace(prepared.settings, n=wanted, diversity=OtherCells(prepared.predictor), time_limit_s=left)
        found = search(replace(prepared, settings=settings), self.row, within=self.epsilon)
        answers = sorted(found, key=lambda answer: answer.cost)
        ranked = [altered(answer, rank=rank) for rank, answer in enumerate(answers, start=1)]
        more = self.limit is not None and len(ranked) > self.limit
        why = ""
        if not found.complete:
            why = found.reason or said("The search ended.", "search_ended")
        return self._dressed(replace(found, counterfactuals=tuple(ranked[: self.limit])), why=why, more=more)

    # ---- what is said of it ------------------------------------------------------------------------------------------
    def _dressed(
        self, found: SolutionSet, *, why: str = "", more: bool = False, least: float | None = None
    ) -> SolutionSet:
        """Return the result with its safety, its settings, and whether it is complete.

        ``least`` is the least cost as it was proved, where the first answer is rounded.
        """
        options = {**self.prepared.settings.options(), "epsilon": self.epsilon, "limit": self.limit}
        for word in ("n", "diversity", "why"):
            del options[word]
        timings = {**found.timings, "total": time.perf_counter() - self.began}
        found = replace(found, options=options, timings=timings)
        if not len(found):
            if found.status is Status.TIME_LIMIT:
                found = replace(found, reason=used_up(self.prepared.settings.time_limit_s, ""))
            return found
        assert found.bound is not None  # noqa: S101 - known with every answer
        proved = found.status is Status.OPTIMAL
        # Where the least cost is not proved, it may be as low as its bound, and the threshold with it.
        threshold = found.bound + self.epsilon
        if proved:
            threshold = (found[0].cost if least is None else least) + self.epsilon
        most = rounded(threshold, 6, "down")
        text = f"Proved: no other cell has an answer that costs at most {digits(most)}."
        reason: str = said(text, "no_other_cell", cost=most)
        if more:
            text = f"There are more: these are the {len(found)} cheapest, as limit={self.limit} asks."
            reason = said(text, "more_cells", count=len(found))
        if why or not proved:
            reason = why or said("The least cost is not proved.", "least_cost_unproved")
        return replace(
            found,
            complete=not why and not more and proved,
            reason=reason,
            safety=tuple(max(threshold - answer.cost, 0.0) for answer in found),
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """One of the cells that were walked through, by its position in each column."""

    enumeration: Enumeration
    places: tuple[int, ...]

    def allows(self, point: Point) -> bool:
        """Tell whether a point lies in the cell and keeps every rule."""
        return is_in_cell(self.enumeration.columns, self.places, point) and not self.enumeration.broken(point)
