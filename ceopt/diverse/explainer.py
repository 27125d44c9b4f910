"""Several ways out that stay nearly the same when the row moves a little: robustness through diversity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from ceopt.diverse.candidates import Searched
from ceopt.diverse.decisions import Memory, decisions_of
from ceopt.diverse.distance import distance_of
from ceopt.diverse.nearest import Neighbours
from ceopt.diverse.query import Fitted, Query
from ceopt.diverse.settings import DiverseSettings, whole_or_none
from ceopt.diverse.training_rows import row_of, rows_of
from ceopt.formulations.constraints import AbstractRule, parse_rules
from ceopt.formulations.constraints.rule import about_model
from ceopt.formulations.predictors.read import open_model, read
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, within_memory

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["DiverseRobustExplainer"]

_WHO: Final = "DiverseRobustExplainer"


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
        searched = distance_of(_WHO, "l2", self.scale, rows.space) if settings.is_released else distance
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
            raise InvalidValueError(
                f"{_WHO}.explain", "a fitted explainer", "fit was not called", "Call fit(X) with training rows first."
            )
        settings = self._settings()
        fitted = self.fitted_
        settings.check()
        changed = settings.changed_since(self.fitted_settings_)
        if changed is not None:
            raise InvalidValueError(
                f"{_WHO}.explain", f"the {changed} that it was fitted with", f"{changed} was changed since",
                "Call fit again.",
            )  # fmt: skip
        factual = row_of(fitted.rows, row)
        decisions = decisions_of(model_or_predict, fitted.rows.space, target, is_frame=fitted.rows.is_frame)
        space = fitted.rows.space
        rules = _rules(constraints, space)
        rules = tuple(about_model(rule, lambda: read(open_model(model_or_predict), space)) for rule in rules)
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
