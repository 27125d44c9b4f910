"""One person's query: candidates, filters, minimisation, check; and what is said of the outcome."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from numpy.typing import NDArray

from ceopt.diverse.candidates import Candidates, Keeper, Searched, nearest_candidates, origin_in_data
from ceopt.diverse.line_search import nearer
from ceopt.diverse.projection import Projection
from ceopt.formulations.constraints import AbstractRule, rule_name
from ceopt.formulations.constraints.rule import fitted_to, lacks_rows
from ceopt.formulations.space.reachable import reach_of
from ceopt.formulations.space.space import raw_frame
from ceopt.formulations.targets import OtherThan
from ceopt.query.build_answer import assembled
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.errors import UnknownNameError
from ceopt.status import Status
from ceopt.versions import versions
from ceopt.words.limits import removed_said, wanted_said
from ceopt.words.rules import rules_said
from ceopt.words.said import said

if TYPE_CHECKING:
    from ceopt.diverse.decisions import Decisions
    from ceopt.diverse.distance import Floats, RowDistance
    from ceopt.diverse.settings import DiverseSettings
    from ceopt.diverse.training_rows import TrainingRows
    from ceopt.solution.counterfactual import Counterfactual

__all__ = ["Fitted", "Query"]

_SOLVER: Final = "none (rows of the data, nearest first, and bisection)"
#: How many of the labels that are predicted are listed when none of them is wanted.
_SHOWN: Final = 8


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What does not depend on the person.

    Parameters
    ----------
    data
        The training rows, an index of them, and what is known of them.
    distance, searched
        The explainer's distance, and the one by which candidates are searched.
    """

    data: Searched
    distance: RowDistance
    searched: RowDistance

    @property
    def rows(self) -> TrainingRows:
        """The training rows."""
        return self.data.rows


@final
@dataclass(slots=True)
class Query:
    """One call of ``explain``.

    Parameters
    ----------
    fitted, settings
        What was fitted, and the parameters.
    decisions, rules, target
        What decides, what must be kept, and what is wanted.
    factual, n
        The person (coordinates by name), and how many answers are wanted (None: all).
    """

    fitted: Fitted
    settings: DiverseSettings
    decisions: Decisions
    rules: tuple[AbstractRule, ...]
    target: Any
    factual: dict[str, float]
    n: int | None
    began: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)

    def run(self) -> SolutionSet:
        """Return the answers, in the order in which they were chosen: that of their candidates' distances."""
        home = np.array(list(self.factual.values()))
        met = self.decisions.meets(home[None, :])
        if any(lacks_rows(rule) for rule in self.rules):
            rows = self.fitted.rows.coordinates
            known = self.fitted.data.memory.learn(self.decisions, rows)
            favoured = rows[self.decisions.meets(rows) if known is None else known]
            if not len(favoured):
                return self._without(Candidates(looked_at=len(rows)))
            self.rules = tuple(fitted_to(rule, self.fitted.rows.space, lambda: favoured) for rule in self.rules)
        keeper = self._keeper(self.rules)
        if met[0] and not keeper.broken(home):
            self._require_labels()
            already = said("The row meets the target and every rule already.", "favourable_already")
            return self._result(Status.ALREADY_FAVOURABLE, reason=already)
        if self.settings.origin == "data":
            keeper = replace(keeper, origin=origin_in_data(self.fitted.data, keeper))
        found = nearest_candidates(
            self.fitted.data, keeper, self.settings.cutoff, keep_repeats=self.settings.is_released
        )  # fmt: skip
        self._lap("candidates")
        if not len(found):
            return self._without(found)
        return self._chosen(keeper, found)

    # ---- the steps ---------------------------------------------------------------------------------------------------
    def _keeper(self, rules: Sequence[AbstractRule]) -> Keeper:
        projection = Projection.of(self.fitted.rows.space, self.factual, rules, self.fitted.searched)
        return Keeper(projection, self.decisions, projection.home)

    def _chosen(self, keeper: Keeper, found: Candidates) -> SolutionSet:
        """Return those candidates that are diverse, brought nearer and checked again.

        Where two candidates lead to the same answer, the filter is asked for another.
        """
        points = np.array(found.points)
        places = np.arange(len(found))
        distance = self.fitted.distance
        least = nearest = float(distance.between(keeper.origin, points).min())
        early = self.settings.minimise == "all"
        if early:
            points = self._shortened(keeper, found, points)
            places = np.argsort(distance.between(keeper.origin, points), kind="stable")
            places = places[_first(points[places])]
            points = points[places]
            nearest = float(distance.between(keeper.origin, points[:1])[0])
        if self.settings.is_released and distance.norm == "l1":
            # The code takes numpy's norm of a matrix of one row, and the 1-norm of a matrix is its greatest column.
            nearest = float(distance.lengths(keeper.origin, points[:1]).max())
        diverse = self.settings.diverse
        kept = list[int]()
        chosen = points[:0]
        most = self.n
        while True:
            new = diverse.kept(distance, keeper.origin, points, nearest, most)[len(kept) :]
            kept += new
            self._lap("filters")
            added = points[new] if early else self._shortened(keeper, found, points[new])
            chosen = np.vstack([chosen, added])
            chosen = chosen[_first(chosen)]
            self._lap("minimise")
            if self.n is None or not new or len(chosen) >= self.n:
                break
            most = len(kept) + self.n - len(chosen)
        answers = self._checked(keeper, chosen)
        self._lap("check")
        positions = self.fitted.rows.places[found.places]
        return self._result(
            Status.FEASIBLE if answers else Status.REJECTED,
            answers=answers,
            reason=self._reason(found, len(kept), len(chosen), len(answers)),
            min_distance=least,
            after_distance_filter=tuple(positions.tolist()),
            after_diversity_filter=tuple(positions[places[kept]].tolist()),
        )

    def _shortened(self, keeper: Keeper, found: Candidates, points: Floats) -> Floats:
        """Return points (k, d) brought nearer to the origin; themselves if that is switched off."""
        gamma = self.settings.tolerance
        if gamma is None or not len(points):
            return points
        columns = self.settings.put_back == "columns"
        if not self.settings.is_released:
            return nearer(keeper, self.fitted.distance, points, columns=columns, tolerance=float(gamma))
        farthest = found.distances[-1]
        halvings = math.ceil(math.log2(farthest / gamma)) if farthest > 0.0 else 0
        return nearer(keeper, self.fitted.distance, points, columns=columns, halvings=halvings)

    def _checked(self, keeper: Keeper, points: Floats) -> tuple[Counterfactual, ...]:
        """Return those points as answers that pass once more: the user's own model has the last word."""
        predicted, met = self.decisions.judge(points)
        good = [k for k in np.flatnonzero(met).tolist() if not keeper.broken(points[k])]
        space = self.fitted.rows.space
        scores = self.decisions.scores(points)
        frame = raw_frame(space, points)
        costs = self.fitted.distance.between(keeper.projection.home, points).tolist()
        answers: list[Counterfactual] = []
        for k in good:
            answers.append(
                assembled(
                    self.rules,
                    space,
                    self.factual,
                    keeper.named(points[k]),
                    frame=frame.iloc[k : k + 1],
                    cost=costs[k],
                    prediction=predicted[k],
                    score=scores[k][0],
                    slack=scores[k][1],
                    rank=len(answers) + 1,
                    bound=None,
                    gap=None,
                )
            )
        return tuple(answers)

    # ---- what is said ------------------------------------------------------------------------------------------------
    def _require_labels(self) -> None:
        """Ask a function about the data before a row is called favourable.

        It may return shares, of which the row's happens to be 1, or the row be other than a label never predicted.
        """
        if self.decisions.is_function:
            seen = self._predicted()
            if isinstance(self.target, OtherThan) and self.target.label not in seen:
                raise UnknownNameError.among("target", "class", self.target.label, seen[:_SHOWN], quoted=True)

    def _predicted(self) -> list[Any]:
        """Return what is predicted for the rows of the data, each once."""
        predicted, _ = self.decisions.judge(self.fitted.rows.coordinates)
        return list(dict.fromkeys(predicted))

    def _without(self, found: Candidates) -> SolutionSet:
        """Say why no row of the data is a candidate. Nothing is proved by that."""
        text = self.decisions.text
        if not found.favoured:
            reason = f"None of the {found.looked_at} rows of the data is predicted to be {text}"
            if self.decisions.is_function:
                predicted = self._predicted()
                reason += f"; what is predicted: {', '.join(map(repr, predicted[:_SHOWN]))}"
                if len(predicted) > _SHOWN:
                    reason += ", ..."
            reason += ". Fit the explainer on rows of which the model favours some."
            reason = said(reason, "none_predicted", count=found.looked_at, target=self._target())
        else:
            parts: list[str] = []
            if found.lost:
                lost = f"{found.lost} no longer are once they are put where the person may go"
                parts.append(said(lost, "lost_in_reach", count=found.lost))
            for name, count in found.broken.items():
                parts.append(said(f"{count} break {name}", "break_rule", count=count, rule=name))
            reason = f"Of the {found.favoured} rows that are predicted to be {text}, {' and '.join(parts)}."
            reason += " ceopt.explain looks beyond the rows of the data."
            causes = tuple(parts)
            reason = said(reason, "candidates_lost", count=found.favoured, target=self._target(), causes=causes)
        return self._result(Status.REJECTED, reason=reason, complete=False)

    def _reason(self, found: Candidates, kept: int, distinct: int, answers: int) -> str:
        """Say why there are fewer answers than were asked for; empty if there are as many."""
        if answers == (distinct if self.n is None else self.n):
            return ""
        limit = self.settings.cutoff.count
        if limit is None:
            candidates = f"the {len(found)} candidates within the distance"
        elif len(found) < limit:
            candidates = f"the {len(found)} candidates that the data has"
        else:
            candidates = f"the {len(found)} nearest candidates"
        verb = "is" if kept == 1 else "are"
        parts = [f"{kept} of {candidates} {verb} diverse enough"]
        if distinct < kept:
            parts.append(f"they lead to {distinct} different answers")
        if answers < distinct:
            parts.append(f"{distinct - answers} failed the last check")
        told = f"{', '.join(parts)}.{self._hint(found, kept)}"
        if self.n is None:
            return said(f"{answers} of all: {told}", "fewer_of_all", answers=answers)
        return said(f"{answers} of {self.n}: {told}", "fewer_diverse", answers=answers, wanted=self.n)

    def _target(self) -> str:
        return wanted_said(self.decisions.text, self.target)

    def _hint(self, found: Candidates, kept: int) -> str:
        """Say which parameters leave room for more answers than were kept, where more were asked for."""
        if self.n is None or kept >= self.n:
            return ""
        limit = self.settings.cutoff.count
        ways = []
        if kept < len(found):
            ways.append("lower beta")
        if limit is None or len(found) == limit:
            ways.append("raise alpha")
        if not ways:
            return ""
        return f" For more, {' or '.join(ways)}."

    def _result(
        self,
        status: Status,
        *,
        answers: tuple[Counterfactual, ...] = (),
        reason: str,
        complete: bool | None = None,
        **found: Any,
    ) -> SolutionSet:
        space = self.fitted.rows.space
        rules = [f"{rule_name(rule, place)}: {rule.sentence()}" for place, rule in enumerate(self.rules)]
        is_done = status is Status.ALREADY_FAVOURABLE
        proved = 0.0 if is_done else None
        if complete is None:
            complete = not reason or is_done
        return SolutionSet(
            status=status,
            counterfactuals=answers,
            factual=raw_frame(space, np.array([list(self.factual.values())])),
            bound=proved,
            gap=proved,
            complete=complete,
            reason=reason,
            timings={**self.timings, "total": time.perf_counter() - self.began},
            solver=_SOLVER,
            versions=dict(versions()),
            options={"target": self.decisions.text, "n": self.n, "constraints": rules, **self.settings.options()},
            target=self._target(),
            removed=removed_said(space, reach_of(space, self.factual)),
            space=space,
            rules=rules_said(self.rules, space),
            **found,
        )

    def _lap(self, phase: str) -> None:
        since_last = time.perf_counter() - self.began - sum(self.timings.values())
        self.timings[phase] = self.timings.get(phase, 0.0) + since_last


def _first(points: Floats) -> NDArray[np.intp]:
    """Return the places of points (k, d) that are none of those before them."""
    return np.sort(np.unique(points + 0.0, axis=0, return_index=True)[1])  # -0.0 is 0.0
