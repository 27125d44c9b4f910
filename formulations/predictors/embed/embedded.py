r"""An embedded model: a Pyomo block whose scores are linear forms over a person's coordinates.

The inputs of an estimator that is linear in its columns are, over all that one person may become,

.. math:: \phi(x) = o + M a, \qquad
          a = \bigl(x_j - \bar x_j \text{ of numbers},\ [x_f = c] \text{ of levels and labels}\bigr)

The *atoms* a are the numbers, and one indicator per level, of the raw columns. A number counts from the origin of its
coordinate, which is 0, or the person's own value where that is large beside the column's range: there the model's own
arithmetic says what the column adds, as it does for columns that cannot move, and these are part of o.

A number that may be missing or hold a code c has an indicator for each of these labels. Its own atom rests at home
meanwhile, so an indicator has the weight :math:`\phi(c) - \phi(\text{home})`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.linear_form import LinearForm, total
from ceopt.formulations.predictors.embed.probability import Probabilities, probabilities_of
from ceopt.formulations.predictors.margin import DecisionMargin, margin_of
from ceopt.formulations.predictors.readers import open_model
from ceopt.formulations.predictors.readers.model_input import given
from ceopt.formulations.predictors.representation import AbstractRepresentation, Affine
from ceopt.formulations.space.encoding import WIDE, entries_of
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Levels, Reach
from ceopt.formulations.space.space import point_row
from ceopt.formulations.targets import Target, parse_target
from ceopt.formulations.tolerances import SUM_ROUNDING, USUAL_LINK_ERROR
from ceopt.solvers.checks import plain
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.costs.base import CostCutoff
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.encoding import Encoding
    from ceopt.solvers.checks import Floats

#: Columns that are stated between two looks at the clock.
_ATOMS = 32

# ==== An embedded model: a Pyomo block whose scores are linear forms over a person's coordinates ======================


class AbstractEmbedded(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    """A fitted model inside a program.

    Attributes
    ----------
    predictor
        What was embedded: representation, encoding and the user's own model.
    x
        The person's coordinates.
    probability
        ``probability[label]`` for a classifier that gives some, as linear expressions.
    score
        ``score[label]`` for a classifier (one score: that of the second label, and its negative for the first);
        ``score`` for a regressor. In the model's own units; made when first asked for.
    """

    def __init__(self, predictor: Predictor, x: AbstractColumns, manifest: Manifest) -> None:
        super().__init__(concrete=True)
        # Held in tuples: Pyomo would otherwise adopt the block x as a child of this one.
        self._held = (predictor, x)
        self._margins: dict[Target, DecisionMargin] = {}
        self._probabilities: dict[float, Probabilities] = {}
        describe(self, manifest)

    @property
    def predictor(self) -> Predictor:
        """What was embedded."""
        return self._held[0]

    @property
    def x(self) -> AbstractColumns:
        """The person's coordinates."""
        return self._held[1]

    @property
    def margins(self) -> Mapping[Target, DecisionMargin]:
        """The margins that were asked for, by their targets."""
        return MappingProxyType(self._margins)

    def margin(self, target: Any) -> DecisionMargin:
        """Return the margin of a decision: one expression that is >= 0 where the model decides as the target says.

        It is in the unit of the argument ``margin`` of :class:`~ceopt.formulations.Reaches`: a linear expression where
        one score or rival decides, else a variable that equals the least or the greatest of some
        (:class:`~ceopt.formulations.predictors.margin.LeastAndGreatest`), so that it may be maximised, minimised or
        bounded. Asked again, it is the same expression.

        ================================= ==================================================================
        model                             the expression
        ================================= ==================================================================
        trees, votes of trees             the slack of the decision as the library computes it; where the library
                                          refuses a tie, the slack less what the next score is above it
        all others                        the slack less ``.slack``, the margin that ``explain`` asks for
        ================================= ==================================================================

        Slack is the score less the level of the decision (of logistic and boosting models the logit less 0),
        P(target) - 1/2 of a forest's two classes, and the best score wanted less the best of all others; of
        ``Disagreement`` the number of trees that agree less the number needed.

        Parameters
        ----------
        target
            As for :class:`~ceopt.formulations.Reaches`.

        Returns
        -------
        DecisionMargin
            With ``.bounds`` over the reach, ``.slack`` and ``.target``.

        Raises
        ------
        UnboundedFeatureError
            Several labels or both ends of a range matter, and a column that the model weighs has no bound.
        UnsupportedModelError
            As for ``Reaches``.

        Examples
        --------
        >>> import pyomo.environ as pyo
        >>> from ceopt.formulations import Factual, embed
        >>> from ceopt.formulations.predictors import Affine
        >>> from ceopt.formulations.space import Feature, FeatureSpace
        >>> from ceopt.solvers import solve
        >>> space = FeatureSpace([Feature("income", kind="continuous", lower=0, upper=9)])
        >>> m = pyo.ConcreteModel()
        >>> m.x = Factual(space, {"income": 2.0})
        >>> m.predictor = embed(Affine([1.0], -3.0, labels=("bad", "good")), m.x)
        >>> margin = m.predictor.margin("good")
        >>> print(margin.expr, margin.slack < 1e-5)
        -3.0000025 + x.x[income] True
        >>> m.most = pyo.Objective(expr=margin, sense=pyo.maximize)
        >>> round(solve(m).objective, 4), [round(end, 4) for end in margin.bounds]
        (6.0, [-3.0, 6.0])
        """
        checked = parse_target(target, self.predictor.labels)
        found: DecisionMargin = self._once(
            self._margins, checked, ("margin", "parts"), lambda: margin_of(self, checked)
        )
        return found

    @property
    def probability(self) -> Probabilities:
        """The probabilities of the labels, as linear expressions: ``probability[label]``, within ``.error``.

        Shares and votes of trees are exact, and ``.error`` is 0. A logistic output, or another link of one score, is
        :meth:`probability_within` 1e-4.
        """
        return self.probability_within(USUAL_LINK_ERROR)

    def probability_within(self, error: float) -> Probabilities:
        r"""Return the probabilities of the labels, each within ``error`` of what the model's link gives at the score.

        .. math:: p = l(s), \qquad |l(s) - f(s)| \le \text{error} \text{ for each score s in reach,}

        with a link f, such as :math:`1 / (1 + e^{-s})`, and a non-decreasing piecewise-linear l
        (:class:`~ceopt.formulations.predictors.embed.probability.PiecewiseLink`), exactly: p may be maximised,
        minimised and bounded on either side, on every solver of mixed-integer programs. Asked again for the same error,
        it is the same expressions. At 1e-4 a logistic link has at most 70 pieces, and so 7 binaries. With an error of 0
        a logistic link is the curve itself (:class:`~ceopt.formulations.predictors.embed.probability.LogisticCurve`), a
        nonconvex program that SCIP and Gurobi solve, within the tolerance of its rows.

        Parameters
        ----------
        error
            From 1e-5 to below .5; or 0.

        Returns
        -------
        Probabilities
            Label -> expression, with ``.error``: what is proved, at most ``error``.

        Raises
        ------
        UnsupportedModelError
            The scores give no probabilities, are those of several labels by a softmax, or the link jumps.
        UnboundedFeatureError
            A column that a model with a link weighs has no bound.
        InvalidValueError
            The error is out of range; or it is 0, and the scores are more than 18 from 0.

        Examples
        --------
        >>> import pyomo.environ as pyo
        >>> from ceopt.formulations import Factual, embed
        >>> from ceopt.formulations.predictors import Affine
        >>> from ceopt.formulations.space import Feature, FeatureSpace
        >>> from ceopt.solvers import solve
        >>> space = FeatureSpace([Feature("income", kind="continuous", lower=0, upper=9)])
        >>> m = pyo.ConcreteModel()
        >>> m.x = Factual(space, {"income": 2.0})
        >>> m.predictor = embed(Affine([1.0], -3.0, labels=("bad", "good"), probability="logistic"), m.x)
        >>> good = m.predictor.probability["good"]
        >>> m.likely = pyo.Constraint(expr=good >= 0.75)
        >>> m.least = pyo.Objective(expr=m.x.raw["income"])
        >>> round(solve(m).objective, 2)  # ln 3 above 3
        4.1
        """
        words = ("probability", "pieces")
        found: Probabilities = self._once(self._probabilities, error, words, lambda: probabilities_of(self, error))
        return found

    def _once(
        self, known: dict[Any, Any], key: Any, words: tuple[str, str], make: Callable[[], tuple[Any, Any]]
    ) -> Any:
        """Return the expression of a key, made when first asked for, with the block of variables that it needs."""
        if key not in known:
            name = f"{words[0]}_{len(known)}"
            with self.x.collecting():
                expression, parts = make()
            if parts is not None:
                self.add_component(f"{name}_{words[1]}", parts)
            self.add_component(name, expression)
            known[key] = expression
        return known[key]

    @abstractmethod
    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return ``sum_k weights[k] * score_k`` over the representation's K scores."""

    @abstractmethod
    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return bounds of that combination over the reach; infinite where a column has no bound."""

    def place(self, point: Mapping[str, float]) -> None:
        """Set the block's own variables to those of a point (coordinates by column); most blocks have none."""

    def differs(self) -> LinearForm:
        """Return a form that is at least 1 where this block's own integer decisions differ from what they are now."""
        return LinearForm()

    def make_cells(self) -> None:
        """Put on the columns what is needed to tell all cells apart, where :meth:`differs` alone does not."""

    def other_leaves(self, point: Mapping[str, float]) -> LinearForm:
        """Return the number of trees whose leaf has other values than at a point; for models of trees alone."""
        del point
        raise AssertionError

    def adding_up(self, amounts: Callable[[Floats], Floats]) -> LinearForm:
        """Return the sum over the trees of an amount for the leaf that each ends in; for models of trees alone."""
        del amounts
        raise AssertionError

    def __getattr__(self, name: str) -> Any:
        """Return the scores as expressions, made when first asked for: most programs never name them."""
        if name != "score":
            return super().__getattr__(name)
        core = self.predictor.core
        with self.x.collecting():
            if core.labels is None:
                self.score = pyo.Expression(expr=self.combine((1.0,)).expression())
                return self.score
            self.score = pyo.Expression(list(core.labels))
            units = np.eye(core.n_scores).tolist()
            if core.n_scores == 1:
                units = [[-1.0], [1.0]]
            for label, unit in zip(core.labels, units, strict=True):
                self.score[label] = self.combine(unit).expression()
        return self.score


# ==== The embedding error: the model in the program beside the model itself, at the current values of the variables ===


@final
@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingError:
    """What :func:`embedding_error` found; ``float()`` of it is the larger of ``scores`` and ``values``.

    Parameters
    ----------
    scores
        Largest absolute difference between the block's scores and those of the representation that was read.
    values
        Largest absolute difference between what follows from the block's scores and what the library's own model says:
        its value, or its probabilities where the scores give some. None where there is nothing to compare: a classifier
        without them, or a representation from plain arrays.
    agrees
        Whether the block's scores decide as the library's own model does (a regressor's always do).
    prediction
        What the library's own model says.
    row
        The row that was asked about, in raw units.
    """

    scores: float
    values: float | None
    agrees: bool
    prediction: Any
    row: pd.DataFrame

    def __float__(self) -> float:
        return max(self.scores, self.values or 0.0)


def embedding_error(block: AbstractEmbedded) -> EmbeddingError:
    """Compare a block's scores, at the current values of its variables, with the library's on the same raw row.

    The row is that of the block's columns: the caller's own variables as they stand, whole ones rounded
    (:class:`~ceopt.formulations.Columns`), or a person's decoded answer (:class:`~ceopt.formulations.Factual`).

    Returns
    -------
    EmbeddingError
        ``float(embedding_error(block))`` is 0 up to rounding where the block says what the library says.

    Raises
    ------
    InvalidTypeError
        ``block`` is no embedded model.
    InvalidValueError
        Its variables, or those of a column that it reads, have no values yet.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import embed, embedding_error
    >>> from ceopt.formulations.predictors import TreeEnsemble
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> from ceopt.solvers import solve
    >>> space = FeatureSpace([Feature("loan", kind="continuous")])
    >>> stump = {"feature": 0, "threshold": 3.0, "left": {"value": 1.0}, "right": {"value": 0.2}}
    >>> m = pyo.ConcreteModel()
    >>> m.loan = pyo.Var(bounds=(0, 9))
    >>> m.repaid = embed(TreeEnsemble([stump]), {"loan": m.loan}, space=space)
    >>> m.gain = pyo.Objective(expr=m.loan + 10 * m.repaid.score, sense=pyo.maximize)
    >>> print(solve(m).status, round(m.loan.value, 3), float(embedding_error(m.repaid)))
    optimal 3.0 0.0
    """
    if not isinstance(block, AbstractEmbedded):
        raise InvalidTypeError(
            "embedding_error", "a block that embed made", f"it got {type(block).__name__}", "Pass m.predictor."
        )
    predictor = block.predictor
    core = block.predictor.core
    point = block.x.decoded()
    theirs = predictor.score(point_row(predictor.space, point))
    ours = _scores(block, theirs.shape)
    row = predictor.space.frame([point])
    model = open_model(predictor.model)
    scores = float(np.abs(ours - theirs).max())
    decided = core.head.decide(ours)[0]
    if isinstance(model, AbstractRepresentation):
        prediction = core.head.decide(theirs)[0]
        values = None
    else:
        asked = given(model, predictor.space, row)
        prediction = np.asarray(model.predict(asked)).reshape(-1)[0]
        values = None
        if core.labels is None:
            values = float(abs(decided - prediction))
        elif core.probability is not None and hasattr(model, "predict_proba"):
            shares = [core.head.of_position(ours, k)[0] for k in range(len(core.labels))]
            values = float(np.abs(np.asarray(model.predict_proba(asked))[0] - shares).max())
    return EmbeddingError(scores, values, core.labels is None or bool(decided == prediction), plain(prediction), row)


def _scores(block: AbstractEmbedded, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the block's scores at the current values, in the shape of the representation's."""
    forms = list(map(block.combine, np.eye(block.predictor.core.n_scores).tolist()))
    without = next((v for form in forms for _, v in form.terms if v.value is None), None)
    if without is not None:
        raise InvalidValueError(
            "embedding_error", "values of the block's variables", f"{without.name} has none", "Solve the model first."
        )
    return np.array([form.value() for form in forms]).reshape(shape)


# ==== The inputs of an estimator that is linear in its columns, over all that one person may become ===================


def box_extremes(weights: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the least and greatest value of ``weights @ v`` over ``low <= v <= high``, (K,) each."""
    least, greatest = _extremes_of_terms(weights, low, high)
    return least.sum(axis=1), greatest.sum(axis=1)


def _extremes_of_terms(weights: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the least and greatest value of each term of ``weights @ v``, (K, n) each."""
    with np.errstate(invalid="ignore"):  # 0 * inf is not taken
        ends = np.where(weights == 0.0, 0.0, weights * low), np.where(weights == 0.0, 0.0, weights * high)
    return np.minimum(*ends), np.maximum(*ends)


@final
class Atoms:
    """What may vary of the columns that a model reads: one for all models that read the same columns of one block.

    Parameters
    ----------
    predictor
        The model as read; its encoding says what each column of the matrix is.
    x
        The person's coordinates.
    read
        Which columns of the matrix have a weight, (m,); no other gets a coordinate.

    Attributes
    ----------
    numbers, levels
        Raw columns that can move, of numbers, and of levels with the ranks that the pipeline was fitted on.
    labels
        Labels of the numbers that may take some, which come last among the numbers.
    count
        Number n of atoms.
    of_column
        First atom of the raw column that each column of the matrix reads, (m,); -1 where it cannot move.
    of_numbers
        Columns of the matrix that read a number that can move.
    held
        Coordinates at which columns that cannot move are, and from which numbers count; 0 of all others.
    pieces
        Slices of the atoms that vary on their own: one number with its labels, or all levels of one column (of which
        one is 1).
    labelled
        Those of them that are a number with labels.

    Notes
    -----
    A level that the pipeline fails on has no atom: a row of ``embed`` keeps it off.
    """

    def __init__(self, predictor: Predictor, x: AbstractColumns, read: NDArray[np.bool_]) -> None:
        self._x = x
        names, sources = predictor.encoding.names, predictor.encoding.sources
        places = dict.fromkeys(sources[read].tolist())
        places.pop(-1, None)
        moving = [names[place] for place in places if not x.coordinate(names[place]).is_point]
        numbers = [name for name in moving if not x.space[name].is_finite]
        self.labels = {name: x.reach[name].labels for name in numbers if x.reach[name].labels}
        self.numbers = (*(name for name in numbers if name not in self.labels), *self.labels)
        unseen = predictor.unseen
        self.levels: dict[str, Any] = {
            name: _known(x.reach[name], unseen.get(name, frozenset())) for name in moving if x.space[name].is_finite
        }
        plain = len(self.numbers) - len(self.labels)
        with_labels = [1 + len(labels) for labels in self.labels.values()]
        starts = np.cumsum([plain, *with_labels, *map(len, self.levels.values())]).tolist()
        self.count: int = starts[-1]
        groups = [slice(low, high) for low, high in pairwise(starts)]
        self.pieces = (*(slice(k, k + 1) for k in range(plain)), *groups)
        self.labelled = frozenset(piece.start for piece in groups[: len(with_labels)])
        self._starts = np.array([piece.start for piece in groups[len(with_labels) :]], dtype=np.intp)
        self._at = np.array([piece.start for piece in self.pieces[: len(self.numbers)]], dtype=np.intp)
        #: What a number with labels counts while it takes one.
        self.home = {name: x.numeric(name).home - x.numeric(name).origin for name in self.labels}
        origins = np.array([x.numeric(name).origin for name in self.numbers], dtype=np.float64)
        parts = [x.numeric(name).interval for name in self.numbers]
        self.low = np.array([p.lower for p in parts]) - origins
        self.high = np.array([p.upper for p in parts]) - origins
        self._forms: dict[int, LinearForm] = {}
        self._bases: dict[tuple[int, ...], tuple[Floats, Any, list[Any]]] = {}
        #: What each atom is: (column, None) of a number itself, else (column, level or label).
        self._atoms: list[tuple[str, float | None]] = [(name, None) for name in self.numbers[:plain]]
        for name, labels in self.labels.items():
            self._atoms += [(name, None), *((name, label) for label in labels)]
        self._atoms += [(name, rank) for name, ranks in self.levels.items() for rank in ranks]

        place_of = dict(zip(names, range(len(names)), strict=True))
        first = np.full(len(names) + 1, -1, dtype=np.intp)  # one more, for columns that read nothing
        for name, piece in zip((*self.numbers, *self.levels), self.pieces, strict=True):
            first[place_of[name]] = piece.start
        self.of_column = np.where(read, first[sources], -1)
        is_number = np.zeros(len(names) + 1, dtype=bool)
        is_number[[place_of[name] for name in self.numbers]] = True
        self.of_numbers = np.flatnonzero(read & is_number[sources])
        self.held = np.zeros(len(names))
        for place in places:
            if first[place] < 0:
                self.held[place] = x.reach[names[place]].only
        self.held[[place_of[name] for name in self.numbers]] = origins

    @classmethod
    def of(cls, predictor: Predictor, x: AbstractColumns, read: NDArray[np.bool_]) -> Self:
        """Return the atoms of the columns that are read, made once for a block of columns."""
        encoding = predictor.encoding
        key = (encoding.names, encoding.sources.tobytes(), read.tobytes(), frozenset(predictor.unseen.items()))
        if key not in x.atoms:
            x.atoms[key] = cls(predictor, x, read)
        found: Self = x.atoms[key]
        return found

    @property
    def reach(self) -> Reach:
        """Values that each raw column may take."""
        return self._x.reach

    # ---- ranges ------------------------------------------------------------------------------------------------------
    def extremes(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the least and greatest value of ``weights @ a``, (K,) each: piece by piece, as pieces are free."""
        low, high = self._extremes_of_pieces(weights)
        return low.sum(axis=1), high.sum(axis=1)

    def _extremes_of_pieces(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the least and greatest value of each piece of ``weights @ a``, (K, pieces) each."""
        low, high = _extremes_of_terms(weights[:, self._at], self.low, self.high)
        for place, (name, labels) in enumerate(self.labels.items(), len(self.numbers) - len(self.labels)):
            first = self._at[place]
            at_labels = weights[:, first, None] * self.home[name] + weights[:, first + 1 : first + 1 + len(labels)]
            low[:, place] = np.minimum(low[:, place], at_labels.min(axis=1))
            high[:, place] = np.maximum(high[:, place], at_labels.max(axis=1))
        if self.levels:
            low = np.hstack((low, np.minimum.reduceat(weights, self._starts, axis=1)))
            high = np.hstack((high, np.maximum.reduceat(weights, self._starts, axis=1)))
        return low, high

    @property
    def has_labels(self) -> bool:
        """Whether a column that varies may be missing or, being a number, hold a code."""
        return bool(self.labels) or any(MISSING in ranks for ranks in self.levels.values())

    def starts_from_label(self, factual: Mapping[str, float]) -> bool:
        """Return whether the person holds a label in a column that varies."""
        return any(self._x.space[name].is_label(factual[name]) for name in (*self.numbers, *self.levels))

    def by_column(self, weights: Floats) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return weights over the atoms (K, n) as slopes (K,) of numbers and tables (K, all levels) of levels.

        There must be no labels.
        """
        slopes = dict(zip(self.numbers, weights.T, strict=False))
        tables = {}
        for (name, ranks), piece in zip(self.levels.items(), self.pieces[len(self.numbers) :], strict=True):
            tables[name] = np.zeros((len(weights), len(self._x.space[name].levels)))
            tables[name][:, list(ranks)] = weights[:, piece]
        return slopes, tables

    def unbounded(self, weights: Floats) -> str | None:
        """Return the first column that weights over the atoms (K, n) read and that has no bound; None if all have."""
        slopes = (weights != 0.0).any(axis=0)[self._at]
        infinite = ~(np.isfinite(self.low) & np.isfinite(self.high))
        return next((name for k, name in enumerate(self.numbers) if slopes[k] and infinite[k]), None)

    # ---- values and forms --------------------------------------------------------------------------------------------
    def values(self, point: Mapping[str, float]) -> Floats:
        """Return the atoms of a point given in coordinates."""
        atoms = []
        for name, value in self._atoms:
            if value is not None:
                atoms.append(float(point[name] == value))
            elif point[name] in self.labels.get(name, ()):
                atoms.append(self.home[name])
            else:
                atoms.append(point[name] - self._x.numeric(name).origin)
        return np.array(atoms, dtype=np.float64)

    def forms(self, weights: Floats, constants: Floats) -> list[LinearForm]:
        """Return ``weights @ a + constants``, one form per row, traces left out; makes the coordinates that occur."""
        weights, constants = self._without_traces(weights, constants)
        used = np.flatnonzero(weights.any(axis=0))
        shift, basis, held = self._basis(tuple(used.tolist()))
        kept = weights[:, used]
        forms = []
        for row, constant in zip(np.asarray(kept @ basis).tolist(), (kept @ shift + constants).tolist(), strict=True):
            read = [(c, v) for c, v in zip(row, held, strict=True) if c != 0.0]
            forms.append(LinearForm(constant, tuple(read)))
        return forms

    def _basis(self, used: tuple[int, ...]) -> tuple[Floats, Any, list[Any]]:
        """Return these atoms as ``shift + basis @ variables``; the last ones are kept, as many models read the same."""
        if used not in self._bases:
            atoms = self._forms_of(used)
            place: dict[int, int] = {}
            held: list[Any] = []
            terms = []
            for row, atom in enumerate(atoms):
                for c, v in atom.terms:
                    at = place.setdefault(id(v), len(held))
                    if at == len(held):
                        held.append(v)
                    terms.append((row, at, c))
            shift = np.array([atom.constant for atom in atoms])
            self._bases.clear()
            self._bases[used] = shift, self._matrix_of(terms, (len(used), len(held))), held
        return self._bases[used]

    def _without_traces(self, weights: Floats, constants: Floats) -> tuple[Floats, Floats]:
        """Put pieces into the constants, at their middles, that move a row by less than rounding takes of its greatest.

        A fit on symmetric data leaves 1e-14 beside 1, and no solver tells what such a term adds.
        """
        low, high = self._extremes_of_pieces(weights)
        moves = high - low
        greatest = np.where(np.isfinite(moves), moves, 0.0).max(axis=1, initial=0.0)
        traces = (moves > 0.0) & (moves < SUM_ROUNDING * greatest[:, None])
        if not traces.any():
            return weights, constants
        for k in np.flatnonzero(traces.any(axis=0)).tolist():  # the model reads the column, though no row tells
            self._forms_of(range(self.pieces[k].start, self.pieces[k].stop))
        constants = constants + np.where(traces, (low + high) / 2.0, 0.0).sum(axis=1)
        widths = [piece.stop - piece.start for piece in self.pieces]
        return np.where(np.repeat(traces, widths, axis=1), 0.0, weights), constants

    @staticmethod
    def _matrix_of(terms: Sequence[tuple[int, int, float]], shape: tuple[int, int]) -> Any:
        """Return a matrix given by its (row, column, entry), those of one place added up; sparse where it is wide."""
        if shape[1] > WIDE:
            rows, columns, values = map(list, zip(*terms, strict=True))
            return sp.csr_array((values, (rows, columns)), shape=shape, dtype=np.float64)
        matrix = np.zeros(shape)
        for row, column, value in terms:
            matrix[row, column] += value
        return matrix

    def _forms_of(self, atoms: Iterable[int]) -> list[LinearForm]:
        """Return these atoms as forms over the columns."""
        forms = []
        for k in atoms:
            if k not in self._forms:
                if len(self._forms) % _ATOMS == 0:
                    checkpoint("stating what the model reads")
                self._forms[k] = self._form(*self._atoms[k])
            forms.append(self._forms[k])
        return forms

    def _form(self, name: str, value: float | None) -> LinearForm:
        if value is None:
            number = self._x.numeric(name)
            return number.amount() + LinearForm(-number.origin)
        if name in self.labels:
            return self._x.numeric(name).label_form(value)
        return self._x.coordinate(name).equals(value)


@final
class Inputs:
    r"""The encoded columns of a model as affine functions of atoms, with exact ranges over the person's reach.

    Parameters
    ----------
    predictor, x, read
        As of :class:`Atoms`.

    Attributes
    ----------
    atoms
        What may vary.
    matrix, offset
        M (m, n), sparse where it is large, and o (m,).
    """

    def __init__(self, predictor: Predictor, x: AbstractColumns, read: NDArray[np.bool_]) -> None:
        self.atoms = atoms = Atoms.of(predictor, x, read)
        encoding = predictor.encoding
        at_held = encoding.matrix(atoms.held[None, :])[0].astype(np.float64)
        at_held[np.isnan(at_held) | ~read] = 0.0
        slopes, offsets = encoding.slopes
        from_zero = (atoms.of_column >= 0) & (atoms.held[encoding.sources] == 0.0)
        self.offset = np.where(from_zero, offsets, at_held)
        self.matrix = self._filled(encoding, read, slopes)

    def _filled(self, encoding: Encoding, read: NDArray[np.bool_], slopes: NDArray[np.floating[Any]]) -> Any:
        """Return M."""
        atoms = self.atoms
        first = atoms.of_column
        rows, places, values = [atoms.of_numbers], [first[atoms.of_numbers]], [slopes[atoms.of_numbers]]
        for name, labels in atoms.labels.items():
            for i in np.flatnonzero(read & (encoding.sources == encoding.names.index(name))).tolist():
                at_home = self.offset[i] + slopes[i] * atoms.home[name]
                rows.append(np.full(len(labels), i))
                places.append(first[i] + 1 + np.arange(len(labels)))
                values.append(encoding.columns[i].evaluate(labels).astype(np.float64) - at_home)
        for name, targets, tables in encoding.tables:
            if name not in atoms.levels:
                continue
            checkpoint("stating what the model reads")
            own = np.array(targets)
            ranks = np.array(atoms.levels[name])
            (known,) = np.nonzero(ranks != MISSING)
            row, column, entries = entries_of(tables[ranks[known].astype(np.intp)])
            rows.append(own[column])
            places.append(first[own[column]] + known[row])
            values.append(entries)
            if len(known) < len(ranks):
                rows.append(own)
                places.append(first[own] + int(np.argmax(ranks == MISSING)))
                values.append(encoding.at_gaps(targets))
        row, place, entries = map(np.concatenate, (rows, places, values))
        kept = read[row] & ~np.isnan(entries)
        shape = (len(self.offset), atoms.count)
        if encoding.is_wide:
            stored: Any = (entries[kept], (row[kept], place[kept]))
            return sp.csr_array(stored, shape=shape, dtype=np.float64)
        matrix = np.zeros(shape)
        matrix[row[kept], place[kept]] = entries[kept]
        return matrix

    def extremes(self, weights: Floats, offset: Floats) -> tuple[Floats, Floats]:
        """Return the least and greatest value of ``weights @ phi(x) + offset`` over the reach, (K,) each."""
        low, high = self.atoms.extremes(weights @ self.matrix)
        constant = weights @ self.offset + offset
        return low + constant, high + constant

    def unbounded(self, weights: Floats) -> str | None:
        """Return the first column that the weights (K, m) read and that has no bound; None if all have."""
        return self.atoms.unbounded(weights @ self.matrix)


@final
class InputsWithin:
    """The same inputs, as far as they lie within a known cost of the factual.

    Parameters
    ----------
    inputs
        All that is in reach.
    cutoff
        The cost that is not to be exceeded.
    """

    def __init__(self, inputs: Inputs, cutoff: CostCutoff) -> None:
        self._inputs = inputs
        self._cutoff = cutoff
        self._is_box = inputs.atoms.has_labels or inputs.atoms.starts_from_label(cutoff.factual)
        if not self._is_box:
            self._at_factual = inputs.matrix @ inputs.atoms.values(cutoff.factual) + inputs.offset

    def extremes(self, weights: Floats, offset: Floats) -> tuple[Floats, Floats]:
        """Return bounds of ``weights @ phi(x) + offset``, (K,) each: a knapsack of the columns' moves, or the box.

        The box alone where a column may take a label.
        """
        low, high = self._inputs.extremes(weights, offset)
        atoms = weights @ self._inputs.matrix
        if self._is_box or not atoms.any():
            return low, high
        at_factual = weights @ self._at_factual + offset
        slopes, tables = self._inputs.atoms.by_column(np.vstack((atoms, -atoms)))
        gain = self._cutoff.greatest_gain(slopes, tables, self._inputs.atoms.reach)
        return np.maximum(low, at_factual - gain[len(at_factual) :]), np.minimum(
            high, at_factual + gain[: len(at_factual)]
        )


def _known(part: Interval | Levels, unseen: frozenset[int]) -> tuple[float, ...]:
    """Return the levels in reach that the pipeline was fitted on, and the missing cell; all where there are none."""
    assert isinstance(part, Levels)  # noqa: S101 - tables exist for levels only
    values = (*part.ranks, *part.labels)
    return tuple(k for k in values if k not in unseen) or values


# ==== A linear model on the person's coordinates: no variables of its own, its scores are rows' bodies ================

_MANIFEST = Manifest(
    title="linear model",
    formula="score_k = sum_j w_kj * column_j(x) + b_k",
    reference="standard",
)


@final
class EmbeddedAffine(AbstractEmbedded):
    r"""Scores of a linear, logistic or linear support vector model.

    .. math::
        s_k = b_k + \sum_j w_{kj}\, \phi_j(x), \qquad \phi_j(x) = \alpha_j x + \beta_j \ \text{(number)}, \quad
        \phi_j = \sum_c \text{table}_{jc} u_c\ \text{(levels)}.

    Adds no variables but a coordinate for each number with a nonzero weight; no rows. Exact up to rounding: the scaled
    columns are the real functions behind the library's rounded steps, and verification asks the library itself.
    """

    def __init__(self, predictor: Predictor, x: AbstractColumns) -> None:
        super().__init__(predictor, x, _MANIFEST)
        core = predictor.core
        assert isinstance(core, Affine)  # noqa: S101 - chosen by embed
        self._inputs = Inputs(predictor, x, core.reads)
        self._weights = core.weights @ self._inputs.matrix
        self._offset = core.weights @ self._inputs.offset + core.intercept
        self._scores = self._inputs.atoms.forms(self._weights, self._offset)

    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of the scores."""
        return total(form.scaled(weight) for form, weight in zip(self._scores, weights, strict=True))

    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return the least and greatest value over the reach, column by column."""
        row = np.array([list(weights)])
        (low,), (high,) = self._inputs.atoms.extremes(row @ self._weights)
        constant = float((row @ self._offset)[0])
        return float(low) + constant, float(high) + constant
