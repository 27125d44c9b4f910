"""Several ways out that stay nearly the same when the row moves a little: robustness through diversity."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ceopt.base.libraries import versions
from ceopt.base.results import Status
from ceopt.base.said import said
from ceopt.diverse.candidates import (
    Candidates,
    Cutoff,
    Diversity,
    Keeper,
    Neighbours,
    Searched,
    nearest_candidates,
    origin_in_data,
    row_of,
    rows_of,
)
from ceopt.diverse.decisions import Memory, decisions_of
from ceopt.diverse.line_search import nearer
from ceopt.diverse.projection import Projection, distance_of
from ceopt.formulations.constraints import AbstractRule, parse_rules, rule_name
from ceopt.formulations.costs.base import SCALE
from ceopt.formulations.predictors.readers import open_model, read
from ceopt.formulations.space.reachable import reach_of
from ceopt.formulations.space.space import FeatureSpace, raw_frame, with_labels_kept
from ceopt.formulations.targets import OtherThan
from ceopt.result.solution_set import SolutionSet
from ceopt.search.build_answer import assembled
from ceopt.solvers.checks import AbstractCheck, AllOf, Choice, Instance, OrNone, Real, Refusal, Whole, check_arguments
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, within_memory
from ceopt.words.sentences import removed_said, rules_said, wanted_said

if TYPE_CHECKING:
    from ceopt.diverse.candidates import TrainingRows
    from ceopt.diverse.decisions import Decisions
    from ceopt.diverse.projection import RowDistance
    from ceopt.result.counterfactual import Counterfactual
    from ceopt.solvers.checks import Floats

# ==== One person's query ==============================================================================================

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
        if any(rule.lacks_rows for rule in self.rules):
            rows = self.fitted.rows.coordinates
            known = self.fitted.data.memory.learn(self.decisions, rows)
            if known is None:
                known = self.decisions.meets(rows)
            favoured = rows[known]
            if not len(favoured):
                return self._without(Candidates(looked_at=len(rows)))
            self.rules = tuple(rule.fitted(self.fitted.rows.space, lambda: favoured) for rule in self.rules)
        projection = Projection.of(self.fitted.rows.space, self.factual, self.rules, self.fitted.searched)
        keeper = Keeper(projection, self.decisions, projection.home)
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
            added = points[new]
            if not early:
                added = self._shortened(keeper, found, added)
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
        costs = self.fitted.distance.between(keeper.projection.home, points).tolist()
        answers: list[Counterfactual] = []
        for k in good:
            answers.append(
                assembled(
                    self.rules,
                    space,
                    self.factual,
                    keeper.named(points[k]),
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
        """Return the distinct predictions for the rows of the data."""
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
            removed=removed_said(space, reach_of(with_labels_kept(space), self.factual), self.factual),
            space=space,
            rules=rules_said(self.rules, space),
            **found,
        )

    def _lap(self, phase: str) -> None:
        since_last = time.perf_counter() - self.began - sum(self.timings.values())
        self.timings[phase] = self.timings.get(phase, 0.0) + since_last


def _first(points: Floats) -> NDArray[np.intp]:
    """Return the places of points (k, d) that repeat no earlier one."""
    return np.sort(np.unique(points + 0.0, axis=0, return_index=True)[1])  # -0.0 is 0.0


# ==== Parameters, checked =============================================================================================

_WHO: Final = "DiverseRobustExplainer"


def _real(needs: str, at_most: float | None = None) -> Real:
    """Return the check of a finite number of at least 0."""
    return Real(
        at_least=0.0,
        at_most=at_most,
        finite=True,
        otherwise=Refusal(f"{needs} as {{name}}", "Change it."),
        wrong_type=Refusal(f"{needs} as {{name}}", "Give such a number.", error=InvalidTypeError),
    )


def _count(needs: str) -> Whole:
    """Return the check of a whole number of at least 1."""
    return Whole(
        at_least=1,
        at_most=None,
        otherwise=Refusal(f"{needs} as {{name}}", "Change it."),
        wrong_type=Refusal(f"{needs} as {{name}}", "Give such a number.", error=InvalidTypeError),
    )


_BEYOND = _real("a share of at least 0 beyond the nearest distance")
_LENGTH = _real("a length above 0, or None for no minimisation")
_NO_TOLERANCE = Refusal("a tolerance above 0", "None switches minimisation off.")
_NO_SPACE = Refusal("a FeatureSpace", "Make one: ceopt.FeatureSpace.infer(X).", "{name} is {type}", InvalidTypeError)
_CHECKS: Final[Mapping[str, AbstractCheck]] = {
    "distance": Choice(("l1", "l2")),
    "keep": Choice(("nearest", "within")),
    "diversity": Choice(("angle", "distance")),
    "put_back": Choice(("categories", "columns")),
    "minimise": Choice(("chosen", "all")),
    "origin": Choice(("row", "data")),
    "variant": Choice(("paper", "released")),
    "scale": SCALE,
    "tolerance": OrNone(AllOf((_LENGTH, Real(above=0.0, otherwise=_NO_TOLERANCE)))),
    "space": OrNone(Instance(FeatureSpace, _NO_SPACE)),
}
#: What alpha means depends on what is kept, and what beta means on what diversity is.
_ALPHA: Final[Mapping[str, AbstractCheck]] = {
    "nearest": _count("a whole number of candidates, at least 1"),
    "within": _BEYOND,
}
_BETA: Final[Mapping[str, AbstractCheck]] = {"angle": _real("1 less a cosine, from 0 to 2", 2.0), "distance": _BEYOND}
_LIMIT: Final = OrNone(_count("a whole number of at least 1, or None for all"))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiverseSettings:
    """What :class:`~ceopt.diverse.DiverseRobustExplainer` takes; see there for each."""

    distance: Any
    scale: Any
    keep: Any
    alpha: Any
    diversity: Any
    beta: Any
    tolerance: Any
    put_back: Any
    minimise: Any
    origin: Any
    space: Any
    variant: Any

    def check(self) -> None:
        """Refuse what has no meaning, naming it.

        Raises
        ------
        UnknownNameError
            A word that does not exist.
        InvalidTypeError, InvalidValueError
            A number that is none or out of its range; a space that is none.
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        check_arguments(_WHO, _CHECKS, given)
        _ALPHA[self.keep].require(_WHO, "alpha", self.alpha)
        _BETA[self.diversity].require(_WHO, "beta", self.beta)

    @property
    def is_released(self) -> bool:
        """Whether the published code is followed where it leaves the paper."""
        return bool(self.variant == "released")

    @property
    def cutoff(self) -> Cutoff:
        """Which candidates are near."""
        if self.keep == "nearest":
            return Cutoff(int(self.alpha), None)
        return Cutoff(None, float(self.alpha))

    @property
    def diverse(self) -> Diversity:
        """What two explanations must have apart."""
        return Diversity(self.diversity, float(self.beta), absolute=self.is_released)

    def changed_since(self, fitted: DiverseSettings) -> str | None:
        """Return the first parameter that rows were fitted with and that is another now; None if they serve these."""
        words = ("distance", "scale", "space", "variant")
        return next((word for word in words if getattr(self, word) != getattr(fitted, word)), None)

    def options(self) -> dict[str, Any]:
        """Return the settings as plain values that JSON holds."""
        words = "distance keep alpha diversity beta tolerance put_back minimise origin variant".split()
        scale = dict(self.scale) if isinstance(self.scale, Mapping) else self.scale
        return {"scale": scale, **{word: getattr(self, word) for word in words}}


def whole_or_none(word: str, value: Any) -> int | None:
    """Return a whole number of at least 1, or None, or refuse the option by name."""
    limit: int | None = _LIMIT.require(_WHO, word, value)
    return limit


# ==== The explainer ===================================================================================================


class DiverseRobustExplainer(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    r"""A set of counterfactuals from the nearest favourable rows of the data, diverse among themselves.

    A single nearest counterfactual can jump when the row moves a little; a set that holds *all* nearly nearest ones in
    all directions cannot lose them at once. This is its finite approximation by data:

    .. math::
        \text{1.}\quad & S_1 = \{x' \text{ in the data}: f(x') \text{ is wanted}\}, \text{ by } d(x, x') \\
        \text{2.}\quad & S_2 = \text{the } \alpha \text{ nearest of } S_1, \quad\text{or}\quad
            \{c \in S_1 : d(x, c) \le (1 + \alpha)\, m\}, \quad m = \min_{c \in S_1} d(x, c) \\
        \text{3.}\quad & S_3: \text{ greedily, nearest first, each } c \text{ with }
            1 - \cos(c - x, c' - x) \ge \beta \ \text{ or } \ d(c', c) \ge (1 + \beta)\, m
            \ \text{ for all } c' \text{ kept before} \\
        \text{4.}\quad & \text{bisect } [x, c] \text{ until it is at most } \gamma \text{ long; keep the end that is
            wanted}

    ======== ============= ===================================================================================
    symbol   parameter     meaning
    ======== ============= ===================================================================================
    d        ``distance``  l1 or l2 as :func:`ceopt.explain` charges it: weight times move over ``scale``, a
                           changed category moves 1
    alpha    ``alpha``     how many candidates, or up to which share beyond the nearest (``keep``)
    beta     ``beta``      how diverse: 0 keeps all directions, 1 right angles and wider, 2 only opposite ones
    gamma    ``tolerance`` how exactly the way is shortened
    ======== ============= ===================================================================================

    The candidates are diverse among themselves; what step 4 makes of them lies on their segments, so it is seen in the
    same directions. Every answer is checked by the model itself and against every rule. Heuristic: nothing is proved of
    the cost (``.bound`` is None), and an answer is the nearest on its segment only where the decision changes once on
    it. :func:`ceopt.explain` proves; ``ceopt.diverse.exhaustive`` enumerates.

    Parameters
    ----------
    distance
        "l1" or "l2".
    scale
        By what moves are divided: "none" (default), "mad", "std", "range", or a mapping column -> scale.
    keep
        "nearest": ``alpha`` is a count; "within": a share beyond the nearest distance.
    alpha
        Which candidates are near (step 2).
    diversity
        "angle" (signed cosine, directions seen from the row) or "distance" (step 3).
    beta
        How diverse they are: for "angle" from 0 to 2, for "distance" at least 0. Limits hold up to rounding.
    tolerance
        Length, in the distance, at which the bisection ends; None: no step 4, answers are rows of the data.
    put_back
        What goes back whole before the bisection, the longest move first, for as long as the model agrees:
        "categories" (default), which have nothing in between, or "columns", numbers too. Answers then change few
        columns, and where there are many are nearer, at the price of following the row more closely.
    minimise
        Which candidates step 4 brings nearer: those that are "chosen" by step 3 (default), or "all" before step 3, of
        which then the nearest are taken: nearer answers, that are diverse themselves.
    origin
        From where distances and directions are seen, and to where the bisection leads: the "row" (default), or the
        nearest row of the "data" that is no answer, with the row's own categories. The answers then depend on the row
        only through which row of the data is its nearest, and do not move with it in between.
    space
        What each column is and how it may move. None: inferred from a frame; all columns of an array are continuous and
        called x0, x1, ...
    variant
        "paper", or "released", which follows the code published with the paper where it differs: candidates by
        Euclidean distance whatever ``distance`` is; the cosine without its sign, so that opposite
        directions count as one; in "l1", as the m of diversity by "distance", the longest move of one column to the
        nearest candidate, which is less and keeps candidates less apart; and as many halvings for each candidate as the
        farthest one needs, :math:`\lceil \log_2(d_{\max} / \gamma) \rceil`.

    Attributes
    ----------
    space_
        The columns.
    n_candidates_
        Rows of the data that lack no cell.
    n_features_in_, feature_names_in_
        Columns; their names where ``fit`` was given a frame.

    Notes
    -----
    Where a row may not go (immutable and one-way columns, bounds, steps, rules), a candidate is put back as far as the
    rule says where to, asked about again, and dropped if it still breaks a rule: see
    :class:`ceopt.diverse.projection.Projection`. What categories do along the segment: see
    :func:`ceopt.diverse.line_search.nearer`. Ties are broken by the data's order. Repeated rows
    count as often as they stand there, but rows that rules have made equal once; no answer is given twice.

    Rows are asked about from the nearest on, and only as many as are needed. Where these are more than a thousand, all
    are asked about and the answer is remembered under a hash of the model's whole content, so that one that was fitted
    anew is another model. Of functions nothing is remembered.

    References
    ----------
    Leofante & Potyka (2024), Promoting counterfactual robustness through diversity, AAAI: (7) to (11), Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ceopt.diverse import DiverseRobustExplainer
    >>> people = np.array([[0.0, 3.0], [3.0, 0.0], [3.5, 0.0], [-4.0, 0.0], [0.5, 0.5]])
    >>> explainer = DiverseRobustExplainer(distance="l2").fit(people)
    >>> result = explainer.explain(lambda X: np.abs(X).sum(axis=1) > 2, [0.0, 0.0], target=True)
    >>> result.min_distance, result.after_distance_filter, result.after_diversity_filter
    (3.0, (0, 1, 2, 3), (0, 1, 3))
    >>> print(result.to_frame())
              x0      x1
    rank
    1     0.0000  2.0625
    2     2.0625  0.0000
    3    -2.0625  0.0000
    """

    def __init__(
        self,
        *,
        distance: Literal["l1", "l2"] = "l1",
        scale: str | Mapping[str, float] = "none",
        keep: Literal["nearest", "within"] = "nearest",
        alpha: float = 50,
        diversity: Literal["angle", "distance"] = "angle",
        beta: float = 0.5,
        tolerance: float | None = 0.1,
        put_back: Literal["categories", "columns"] = "categories",
        minimise: Literal["chosen", "all"] = "chosen",
        origin: Literal["row", "data"] = "row",
        space: FeatureSpace | None = None,
        variant: Literal["paper", "released"] = "paper",
    ) -> None:
        self.distance = distance
        self.scale = scale
        self.keep = keep
        self.alpha = alpha
        self.diversity = diversity
        self.beta = beta
        self.tolerance = tolerance
        self.put_back = put_back
        self.minimise = minimise
        self.origin = origin
        self.space = space
        self.variant = variant

    @within_memory("DiverseRobustExplainer.fit")
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check every parameter and keep the rows.

        Parameters
        ----------
        X
            Rows in raw units, shape (n, d): a frame, or an array in the order of the space. Those with missing cells
            are left out with a warning.
        y
            Their labels, shape (n,). Checked, and not used: what counts is what the model says of a row, (7).

        Raises
        ------
        CeoptError
            A parameter out of its range, no rows, a column that is missing or unknown, a missing label.
        """
        settings = self._settings()
        settings.check()
        rows = rows_of(X, y, self.space)
        distance = distance_of(_WHO, self.distance, self.scale, rows.space)
        searched = distance
        if settings.is_released:
            searched = distance_of(_WHO, "l2", self.scale, rows.space)
        self.fitted_ = Fitted(Searched(rows, Neighbours(rows.coordinates, searched), Memory()), distance, searched)
        self.fitted_settings_ = settings
        self.space_ = rows.space
        self.n_candidates_ = len(rows.coordinates)
        self.n_features_in_ = len(rows.space)
        if rows.is_frame:
            self.feature_names_in_ = np.array(rows.space.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    @within_memory("DiverseRobustExplainer.explain")
    def explain(
        self, model_or_predict: Any, row: Any, *, target: Any, n: int | None = 5, constraints: Any = ()
    ) -> SolutionSet:
        """Return up to ``n`` diverse counterfactuals for one row.

        Parameters
        ----------
        model_or_predict
            Whatever :func:`ceopt.explain` takes, and any other model with ``predict``; or a function that is given raw
            rows (a frame if ``fit`` was, else an array) and returns one label or value for each.
        row
            The person in raw units: a Series, a dict, a one-row frame, or where ``fit`` was given an array, an array.
        target
            As for :func:`ceopt.explain`. Of a function: a label, a set of labels, ``OtherThan``, ``AtLeast``,
            ``AtMost`` or ``Between``.
        n
            How many at most; None: all that the filters keep.
        constraints
            Rules that every answer keeps.

        Returns
        -------
        SolutionSet
            ``.min_distance`` (of the nearest candidate, from the origin), ``.after_distance_filter`` and
            ``.after_diversity_filter`` (positions in X; several may lead to one answer), and the answers in the order
            in which they were chosen. ``.status`` is "feasible", "already_favourable", or
            "rejected" where no row of the data is a candidate, which proves nothing; ``.complete`` and ``.reason`` say
            if and why there are fewer than ``n``. ``.cost`` is the distance. ``.score`` and ``.slack`` are told for
            representations from plain arrays only, as of other models nothing but decisions is asked.

        Raises
        ------
        CeoptError
            Not fitted; the row, target, rules or ``n`` are unusable; the model fails, or returns no decisions.
        """
        if not hasattr(self, "fitted_"):
            then = "Call fit(X) with training rows first."
            raise InvalidValueError(f"{_WHO}.explain", "a fitted explainer", "fit was not called", then)
        settings = self._settings()
        fitted = self.fitted_
        settings.check()
        changed = settings.changed_since(self.fitted_settings_)
        if changed is not None:
            needs = f"the {changed} that it was fitted with"
            raise InvalidValueError(f"{_WHO}.explain", needs, f"{changed} was changed since", "Call fit again.")
        factual = row_of(fitted.rows, row)
        decisions = decisions_of(model_or_predict, fitted.rows.space, target, is_frame=fitted.rows.is_frame)
        space = fitted.rows.space
        rules = _rules(constraints, space)
        rules = tuple(rule.about(lambda: read(open_model(model_or_predict), space)).aimed(target) for rule in rules)
        return Query(fitted, settings, decisions, rules, target, factual, whole_or_none("n", n)).run()

    def _settings(self) -> DiverseSettings:
        given = {part.name: getattr(self, part.name) for part in fields(DiverseSettings)}
        if isinstance(self.scale, Mapping):
            given["scale"] = dict(self.scale)  # what fit has used is compared with what the caller's mapping holds then
        return DiverseSettings(**given)


def _rules(constraints: Any, space: FeatureSpace) -> tuple[AbstractRule, ...]:
    listed = hasattr(constraints, "__iter__") and not isinstance(constraints, str | Mapping)
    if not listed and not isinstance(constraints, AbstractRule):
        but = f"constraints is {constraints!r}"
        raise InvalidTypeError(f"{_WHO}.explain", "rules as constraints", but, "Give a list such as [MaxChanges(3)].")
    return parse_rules(constraints, space)
