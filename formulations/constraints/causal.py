"""Causal models: what follows from a move, in plain numbers and in a program, and what an intervention costs.

An intervention is an amount per column with an equation. The amounts are the moves of a second person, who is at home
at 0, so that every cost prices them as it prices moves.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from ceopt.formulations.columns import AbstractCoordinate, Free, Numeric
from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints.causal_structure import (
    Equation,
    FittedEquation,
    LinearEquation,
    Structure,
    learned,
    ordered,
    parents_of,
    parse_equations,
)
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule, Point, is_off_amounts
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.predictors.embed import embed
from ceopt.formulations.space.feature import MISSING, Feature, sum_tolerance
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import Choice, Floats, ListOf, OneOrMapping, OrNone, Real, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, UnknownNameError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LinearEquation"]

# ==== Interventions in plain numbers: points that a causal model allows, their costs, and what was done ===============


@final
@dataclass(frozen=True, slots=True, eq=False)
class Interventions:
    """Equations of a space, and where they may be left.

    Parameters
    ----------
    structure
        The equations.
    kind
        "none", "soft" or "hard".
    acted_on
        Columns with an equation that may be off it.
    fixed
        Columns that may neither be acted on nor follow.
    """

    structure: Structure
    kind: str
    acted_on: frozenset[str]
    fixed: tuple[str, ...]

    @property
    def following(self) -> frozenset[str]:
        """Columns that must follow from their parents."""
        return frozenset(self.structure.equations) - self.acted_on

    def violation(self, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the largest residual of a column that must follow, or move of one that must stay; 0 if all do."""
        space = self.structure.space
        if not self.structure.holds_amounts(self.structure.row(factual), self.structure.row(point)):
            return math.inf
        row = self.structure.row(point)
        worst = 0.0
        for column in self.structure.equations:
            off, allowed = (float(part[0]) for part in self.structure.residuals(column, factual, row))
            if math.isnan(off):  # a level that the regressor does not know: what follows, or is charged, is unknown
                worst = math.inf
            elif column not in self.acted_on and abs(off) > allowed:
                worst = max(worst, abs(off))
        for name in self.fixed:
            feature = space[name]
            if is_off_amounts(space, [name], factual, point):
                worst = max(worst, float(point[name] != factual[name]))
                continue
            move = abs(point[name] - factual[name])
            noise = 0.0
            if not feature.is_finite:
                noise = float(sum_tolerance(feature, factual[name]))
            if move > noise:
                worst = max(worst, move)
        return worst

    def charged(self, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return points with each column that has an equation at the factual plus what is charged for it."""
        if self.kind == "none" or not self.structure.holds_amounts(self.structure.row(factual), points):
            return points
        seen = points.copy()
        for column in self.structure.equations:
            place = self.structure.place(column)
            seen[:, place] = factual[column]
            if column in self.acted_on:
                seen[:, place] += self._amounts(column, factual, points)[0]
        return seen

    def mended(self, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return points with columns that must stay at home, and those that must follow set from their parents."""
        points = points.copy()
        for name in self.fixed:
            points[:, self.structure.place(name)] = factual[name]
        if not self.structure.holds_amounts(self.structure.row(factual), points):  # the program refuses it, by name
            return points
        return self.structure.followed(self.following, factual, points)

    def actions(self, factual: Mapping[str, float], point: Mapping[str, float]) -> dict[str, Any]:
        """Return what is done by column: the value that it is set to, or the shift of a number that is shifted."""
        row = self.structure.row(point)
        done: dict[str, Any] = {}
        for feature in self.structure.space:
            name = feature.name
            is_free = is_off_amounts(self.structure.space, [name], factual, point)
            move = float(point[name] != factual[name]) if is_free else point[name] - factual[name]
            shifts = self.kind == "soft" and (name in self.acted_on or not feature.is_finite)
            if name in self.acted_on:
                (amount,), (is_off,) = self._amounts(name, factual, row)
                if is_off:
                    if shifts:
                        done[name] = float(amount)
                    else:
                        done[name] = feature.from_coordinate(point[name])
            elif name not in self.structure.equations and move != 0.0:
                if shifts and not is_free:
                    done[name] = move
                else:
                    done[name] = feature.from_coordinate(point[name])
        return done

    def _amounts(self, column: str, factual: Mapping[str, float], points: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return what is charged for a column that may be acted on, and whether it is, (n,) each."""
        off, allowed = self.structure.residuals(column, factual, points)
        if self.kind == "soft":
            slack = self.structure.slack[column]
            done = off - np.clip(off, -slack, slack)
        else:
            done = points[:, self.structure.place(column)] - factual[column]
        is_off = ~(np.abs(off) <= allowed)
        return np.where(is_off, done + 0.0 * off, 0.0), is_off


# ==== Structural equations in a program: how far each column is off its equation, as a linear form with bounds ========


@final
@dataclass(frozen=True, slots=True)
class Residual:
    """How far a column is off its equation: the move less what follows from its parents.

    Attributes
    ----------
    coordinate
        The column's own.
    parents
        Of the column.
    form
        In raw units, ranks of levels.
    move, effect
        Least and greatest move of the column, and of what follows from its parents: around 0, or infinite.
    slack
        How far off still counts as following.
    """

    coordinate: AbstractCoordinate
    parents: tuple[str, ...]
    form: LinearForm
    move: tuple[float, float]
    effect: tuple[float, float]
    slack: float

    @property
    def ends(self) -> tuple[float, float]:
        """Least and greatest residual."""
        return self.move[0] - self.effect[1], self.move[1] - self.effect[0]

    @property
    def unit(self) -> float:
        """Raw units in one unit of the column's own variables, in which its rows are written."""
        return self.coordinate.unit


def residuals(block: Any, x: Factual, structure: Structure) -> dict[str, Residual]:
    """Return the residual of each column with an equation; fitted equations become blocks of ``block``."""
    by_column = {}
    for column in structure.equations:
        effect, *ends = _effect(block, x, structure, column)
        by_column[column] = Residual(
            coordinate=x.coordinate(column),
            parents=tuple(structure.equations[column].parents),
            form=move_in(x, column) + effect.scaled(-1.0),
            move=span(x, column),
            effect=(ends[0], ends[1]),
            slack=structure.slack[column],
        )
    return by_column


def move_in(x: Factual, name: str) -> LinearForm:
    """Return a column's move, without variables where it has none."""
    coordinate = x.coordinate(name)
    if coordinate.stays:
        return LinearForm()
    return coordinate.move()


def span(x: Factual, name: str) -> tuple[float, float]:
    """Return the least and greatest move of a column in reach, 0 among them."""
    part = x.reach[name]
    x0 = x.point[name]
    if isinstance(part, Interval):
        low = part.lower
        high = part.upper
    else:
        low = part.ranks[0]
        high = part.ranks[-1]
    return min(low - x0, 0.0), max(high - x0, 0.0)


def _effect(block: Any, x: Factual, structure: Structure, column: str) -> tuple[LinearForm, float, float]:
    """Return by how much the equation says that its column changes, with bounds."""
    equation = structure.equations[column]
    if isinstance(equation, LinearEquation):
        slopes = {}
        for parent, slope in equation.parents.items():
            if slope != 0.0:
                slopes[parent] = float(slope)
        ends = []
        for parent, slope in slopes.items():
            ends.append(sorted(slope * end for end in span(x, parent)))
        form = total(move_in(x, parent).scaled(slope) for parent, slope in slopes.items())
        return form, sum(low for low, _ in ends), sum(high for _, high in ends)
    home = structure.at(column, x.point)
    embedded = embed(structure.predictors[column], x)
    block.add_component(f"equation_of_{column}", embedded)
    x.also_place(embedded.place)
    low, high = embedded.range_of((1.0,))
    return embedded.combine((1.0,)) + LinearForm(-home), min(low - home, 0.0), max(high - home, 0.0)


# ==== Costs under interventions: an amount per column with an equation, as a coordinate of its own ====================

_AMOUNTS: Final = Manifest(
    title="what is charged for columns with an equation",
    formula="x_i = the amount charged for column i, between the bounds that its column leaves",
    reference="Karimi, Schoelkopf & Valera 2021",
)


def hold(block: Any, residual: Residual, amount: LinearForm | None = None, on: Any = None) -> None:
    """Write that a column follows from its parents, but for an amount and the slack, unless it is intervened on."""
    form = residual.form
    if amount is not None:
        form = residual.form + amount.scaled(-1.0)
    unit = residual.unit
    name = residual.coordinate.name
    slack = residual.slack / unit
    form = form.scaled(1.0 / unit)
    rows = Rows(block, "follows")
    if on is None:
        rows.add(name, form, lower=0.0 - slack, upper=slack)
        return
    for side, sign, end in (("down", -1.0, residual.effect[1]), ("up", 1.0, -residual.effect[0])):
        rows.add((name, side), form.scaled(sign) + LinearForm(0.0, ((-end / unit, on),)), upper=slack)


def refuse_others(x: Factual, rule: Any, equations: Collection[str]) -> None:
    """Refuse what would leave a cost with other amounts than the rule's: a cost built before, another causal model.

    Raises
    ------
    InvalidTypeError
        Either of the two.
    """
    if x.is_charged:
        raise InvalidTypeError(
            "Causal", "to be imposed before a cost is built", "the Factual block has a cost that counts moves",
            "Impose the rule first: it says what costs count.",
        )  # fmt: skip
    for name, charge in x.charges.items():
        if isinstance(charge, Free):
            if name in equations:
                raise InvalidTypeError(
                    "Causal", "equations of columns that move by themselves", f"{name!r} is one of an ExactlyOne",
                    "Leave the equation out, or the rule.",
                )  # fmt: skip
            continue
        if getattr(getattr(charge, "block", None), "owner", (None,))[0] is not rule:
            raise InvalidTypeError(
                "Causal", "to be the only causal model with interventions", f"column {name!r} is charged by another",
                "Join the equations in one rule.",
            )  # fmt: skip


def shift(block: Any, x: Factual, residuals: Mapping[str, Residual], actionable: Collection[str], rule: Any) -> None:
    """Soft interventions: each actionable column is off its equation by a shift, and this is what is charged."""
    ends = dict.fromkeys(residuals, (0.0, 0.0)) | {k: r.ends for k, r in residuals.items() if k in actionable}
    amounts = _amounts(block, x, ends, rule)
    for name, residual in residuals.items():
        amount = amounts.coordinate(name)
        hold(block, residual, amount.raw())
        x.also_place(_Shift(amount, residual).place)
        x.charges[name] = amount


def intervene(
    block: Any, x: Factual, residuals: Mapping[str, Residual], actionable: Collection[str], rule: Any
) -> None:
    """Hard interventions: a binary lets a column off its equation, and then its whole move is charged."""
    _require_bounds(x, residuals, actionable)
    ends = dict.fromkeys(residuals, (0.0, 0.0)) | {k: r.move for k, r in residuals.items() if k in actionable}
    amounts = _amounts(block, x, ends, rule)
    block.intervened = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
    for name, residual in residuals.items():
        amount = amounts.coordinate(name)
        x.charges[name] = amount
        if name not in actionable:
            hold(block, residual)
            continue
        on = block.intervened[name]
        hold(block, residual, amount.raw(), on)
        _charge(block, residual, amount.raw(), move_in(x, name), on)
        x.also_place(_Intervention(amount, residual, on).place)


def _amounts(block: Any, x: Factual, ends: Mapping[str, tuple[float, float]], rule: Any) -> Factual:
    """Return the block of amounts, each a coordinate between its ends; it remembers whose they are."""
    features = [
        Feature(name, kind="continuous", lower=min(low, 0.0), upper=max(high, 0.0), range=x.space[name].scale("range"))
        for name, (low, high) in ends.items()
    ]
    block.charged = amounts = Factual(FeatureSpace(features), dict.fromkeys(ends, 0.0))
    amounts.owner = (rule,)
    describe(amounts, replace(_AMOUNTS, columns=amounts.space.names))
    return amounts


def _require_bounds(x: Factual, residuals: Mapping[str, Residual], actionable: Collection[str]) -> None:
    """Refuse columns without bounds, as no big-M exists; the column without them is named, be it a parent."""
    for name, residual in residuals.items():
        if name in actionable and math.isinf(residual.ends[1] - residual.ends[0]):
            for column in (name, *residual.parents):
                coordinate = x.coordinate(column)
                if isinstance(coordinate, Numeric):
                    coordinate.require_bounds("Causal with hard interventions")


def _charge(block: Any, residual: Residual, amount: LinearForm, move: LinearForm, on: Any) -> None:
    """Write that the amount is the move where the column is intervened on, else 0."""
    free = Rows(block, "free")
    whole = Rows(block, "whole")
    unit = residual.unit
    name = residual.coordinate.name
    rest = move + amount.scaled(-1.0)
    for side, sign, k in (("down", -1.0, 0), ("up", 1.0, 1)):
        most = sign * residual.move[k] / unit
        followed = min(most, (sign * residual.effect[k] + residual.slack) / unit)
        free.add((name, side), amount.scaled(sign / unit) + LinearForm(0.0, ((-most, on),)), upper=0.0)
        whole.add((name, side), rest.scaled(sign / unit) + LinearForm(0.0, ((followed, on),)), upper=followed)


@final
@dataclass(frozen=True, slots=True)
class _Shift:
    """Sets a shift to what the columns that were placed leave of it."""

    amount: AbstractCoordinate
    residual: Residual

    def place(self, point: Mapping[str, float]) -> None:
        """Set the amount."""
        off = _off(self.residual, point)
        self.amount.place(math.copysign(abs(off) - self.residual.slack, off) if off else 0.0)


@final
@dataclass(frozen=True, slots=True)
class _Intervention:
    """Sets the binary of a column that was placed off its equation, and what is charged."""

    amount: AbstractCoordinate
    residual: Residual
    on: Any

    def place(self, point: Mapping[str, float]) -> None:
        """Set the binary and the amount."""
        coordinate = self.residual.coordinate
        off = _off(self.residual, point)
        self.on.set_value(int(off != 0.0), skip_validation=True)
        self.amount.place(point[coordinate.name] - coordinate.x0 if off else 0.0)


def _off(residual: Residual, point: Mapping[str, float]) -> float:
    """Return how far off its equation a placed column is, 0 where it counts as following."""
    value = residual.form.value()
    x = point[residual.coordinate.name]
    noise = float(sum_tolerance(residual.coordinate.feature, max(abs(x), abs(residual.coordinate.x0))))
    return value if abs(value) > residual.slack + noise else 0.0


# ==== The causal rule: the equations of a causal model, and interventions on it =======================================

Intervention = Literal["none", "soft", "hard"]
_NO_NAMES = Refusal("a list of columns as {name}", 'Write ["income", "savings"].', error=InvalidTypeError)
_NO_SLACK = Refusal("a slack of at least 0", "Give a number, or one per column.")
_SLACK = Real(at_least=0.0, finite=True, otherwise=_NO_SLACK)
_CHECKS = {
    "name": RULE_NAME,
    "intervention": Choice(("none", "soft", "hard")),
    "slack": OneOrMapping(_SLACK, _SLACK, entry="{name} of {key}"),
    "actionable": OrNone(ListOf(_NO_NAMES, texts=True)),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Causal(AbstractRule):
    r"""What is done has consequences: a column with an equation follows from its parents, unless it is intervened on.

    The noise of an equation is what the factual leaves of it, so a column that follows has the residual

    .. math:: r_i = (x_i - x^0_i) - \bigl(c_i(x_{pa(i)}) - c_i(x^0_{pa(i)})\bigr) = 0.

    Every column i with an equation has, by ``intervention``,

    .. math::
        \text{none:}\quad & |r_i| \le s_i, && \text{and every move is charged;} \\
        \text{soft:}\quad & |r_i - a_i| \le s_i, && \text{and the shift } a_i \text{ is charged;} \\
        \text{hard:}\quad & r_i - a_i \le s_i + E^-_i\,\iota_i, \quad a_i - r_i \le s_i + E^+_i\,\iota_i, \\
            & -L_i\,\iota_i \le a_i \le U_i\,\iota_i, \\
            & -L'_i (1 - \iota_i) \le x_i - x^0_i - a_i \le U'_i (1 - \iota_i),
            && \text{and } a_i \text{, the move if intervened on, is charged.}

    A column that is not ``actionable`` has :math:`a_i = \iota_i = 0`; without an equation it stays. One that the space
    makes immutable is held at its value, as by an intervention that costs nothing: its equation does not bind, and it
    passes on nothing.

    ======== ================================= ==================================================================
    symbol   component                         meaning
    ======== ================================= ==================================================================
    c_i      ``equation_of_<column>``          the equation; a fitted one is embedded as models are
    a_i      ``charged.x[column]``             what costs count in the place of the move
    iota_i   ``intervened[column]``            binary, 1 lets the column off its equation
    s_i                                        ``slack``: how far off still counts as following
    E+, E-                                     how far up and down the parents in reach can bring the column
    U, L                                       how far the column itself may rise and fall
    U', L'                                     the lesser of the two, U and E+ + s, L and E- + s
    \        rows ``follows``                  none, soft, and the first line of hard
    \        rows ``free``, ``whole``          the second and third line of hard
    \        rows ``stays``                    a column that may neither be acted on nor follow
    ======== ================================= ==================================================================

    An equation is of amounts: a person of whose columns and parents one may be missing or on a code cannot be asked. A
    code of a category is a level as any other.

    Directions, bounds and steps of the space stay rules on x, whatever moves it. Adds a row per equation and what a
    fitted one needs; soft interventions add a variable each, hard ones a variable, a binary and six rows. A MILP, or an
    LP where equations are linear and interventions soft. Exact: a residual counts as 0 up to 1e-6 of the numbers that
    it is the difference of, in the check as in a solver's rows; of a shift, only what goes beyond the slack is charged.
    Under a Mahalanobis cost, to set a column to the value that it has anyway may be cheaper than to leave it alone. The
    program may do so, the check cannot see it: then the gap says by how much the answer may be too dear.

    Parameters
    ----------
    equations
        Column -> :class:`LinearEquation` (or anything with ``.parents`` and ``.intercept``, such as the equations of
        :func:`ceopt.datasets.loans`), a fitted regressor whose ``feature_names_in_`` are the parents, or
        ``(regressor, [parents])``.
    intervention
        "none": every column with an equation follows. "soft": it may be shifted, and the shift is charged. "hard": it
        may be set, and its move is charged; holding it at its value is free. Consequences are free in both.
    actionable
        Columns that may be acted on; by default all that the space lets move.
    slack
        How far off its equation a column still follows from it: a number in its own unit, or one per column. Whole
        numbers and steps need one: 0.5 lets whole numbers round. A step that ``FeatureSpace.infer`` has seen in the
        data brings half of it along.
    name
        Name in exports and reports.

    Raises
    ------
    InvalidValueError
        A cycle; a column that is its own parent; parents missing, named twice or not the regressor's inputs; no
        equation; a slack below zero or a coefficient that is not finite; a column of an equation that may be missing,
        or on a code, for the person (when built).
    InvalidTypeError
        Something else than an equation; a categorical column with an equation, or as a parent of a linear one; a cost
        that was built before the rule was imposed.
    UnknownNameError
        A column or intervention that does not exist.
    UnsupportedModelError
        A classifier, a regressor that is not fitted or that has no exact representation.
    UnboundedFeatureError
        A column without bounds under hard interventions.

    References
    ----------
    Maragno, Roeber & Birbil (2022), eq. (7); Karimi, Schoelkopf & Valera (2021), Algorithmic recourse: from
    counterfactual explanations to interventions.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints.causal import LinearEquation
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature(name, kind="integer", lower=0, upper=9) for name in ("income", "savings")])
    >>> rule = Causal({"savings": LinearEquation({"income": 0.5})}, intervention="hard")
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"income": 4, "savings": 2})
    >>> m.causal = impose(rule, m.x)
    >>> print(m.causal.follows["savings", "down"].expr)  # E+ = 0.5 * (9 - 4)
    - x.x[savings] + x.factual[savings] + 0.5*x.x[income] - 0.5*x.factual[income] + causal.charged.x[savings]...
    >>> print(m.causal.free["savings", "up"].expr)
    causal.charged.x[savings] - 7.0*causal.intervened[savings]  <=  0.0
    >>> print(m.causal.whole["savings", "up"].expr)
    x.x[savings] - x.factual[savings] - causal.charged.x[savings] + 2.5*causal.intervened[savings]  <=  2.5
    """

    equations: Mapping[str, Any]
    intervention: Intervention = field(default="none", kw_only=True)
    actionable: Iterable[str] | None = field(default=None, kw_only=True)
    slack: float | Mapping[str, float] = field(default=0.0, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    _parsed: dict[str, Equation] = field(init=False, repr=False)
    _known: dict[str, Any] = field(init=False, repr=False, default_factory=dict)
    manifest: ClassVar[Manifest] = Manifest(
        title="consequences by a causal model",
        formula="x_i - x0_i = c_i(parents) - c_i(factual parents) + what is done",
        reference="Maragno, Roeber & Birbil 2022, (7); Karimi, Schoelkopf & Valera 2021",
        rule="Causal",
        features=dict.fromkeys(("follows", "free", "whole", "stays", "intervened"), 0),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "actionable", check_fields(self, _CHECKS)["actionable"])
        object.__setattr__(self, "_parsed", parse_equations(self.equations))
        ordered(parents_of(self._parsed))

    @classmethod
    def learn(
        cls,
        graph: Any,
        data: pd.DataFrame,
        *,
        regressor: Any = None,
        space: FeatureSpace | None = None,
        intervention: Intervention = "none",
        actionable: Iterable[str] | None = None,
        slack: float | Mapping[str, float] = 0.0,
        name: str | None = None,
    ) -> Causal:
        """Return the rule with one equation per column that has parents, fitted on data.

        Parameters
        ----------
        graph
            ``{column: [parents]}``, or a directed graph of networkx.
        data
            Rows in raw units with these columns; others are not looked at.
        regressor
            A scikit-learn regressor or pipeline, cloned for each column. By default least squares, with a parent of
            levels by its rank or, if categorical, one column per level.
        space
            What the columns are; by default inferred from the data.
        intervention, actionable, slack, name
            As for :class:`Causal`.

        Raises
        ------
        InvalidTypeError
            A graph of another type, data that are no frame, a regressor that cannot be cloned.
        InvalidValueError
            A column that the data lack, no rows, no column with parents, a cycle, a regressor that fails on the data.

        Examples
        --------
        >>> import ceopt
        >>> book = ceopt.datasets.loans(n=400)
        >>> rule = ceopt.Causal.learn(book.graph, book.data, space=book.space, intervention="soft")
        >>> rule.sentence()[:57]
        'years_employed follows from age; income from age, educati'
        """
        equations = learned(graph, data, regressor, space)
        return cls(equations, intervention=intervention, actionable=actionable, slack=slack, name=name)

    # ---- what the rule is over a space -------------------------------------------------------------------------------
    def check(self, space: FeatureSpace) -> None:
        """Refuse equations and columns that do not fit the space."""
        for name in self.actionable or ():
            if name not in space:
                raise UnknownNameError.among("Causal", "column as actionable", name, space.names)
        fitted = []
        for equation in self._parsed.values():
            if isinstance(equation, FittedEquation):
                fitted.append(equation.model)
        content = content_of(fitted) if fitted else ""
        if content is None or content != self._known.get("content"):  # a regressor may have been fitted again since
            self._known.clear()
        self._over(space)
        self._known["content"] = content

    def _over(self, space: FeatureSpace) -> Interventions:
        """Return the rule over a space, whose regressors are read once."""
        known: Interventions | None = self._known.get("interventions")
        if known is None or (known.structure.space is not space and known.structure.space != space):
            structure = Structure.over(space, self._parsed, self.slack)
            able = space.names
            if self.actionable is not None:
                able = tuple(self.actionable)
            acted_on: frozenset[str] = frozenset()
            if self.intervention != "none":
                acted_on = frozenset(structure.equations) & frozenset(able)
            fixed = tuple(name for name in space.names if name not in structure.equations and name not in able)
            self._known["interventions"] = known = Interventions(structure, self.intervention, acted_on, fixed)
        return known

    # ---- the program -------------------------------------------------------------------------------------------------
    def needs_amount(self, space: FeatureSpace, name: str, label: float) -> bool:
        """Whether an equation has the column; a code of a category is a level like others."""
        return name in self._over(space).structure.columns and (space[name].kind != "categorical" or label == MISSING)

    def build(self, block: Any, x: Factual) -> None:
        """Add the rows, and say what costs are to count."""
        over = self._over(x.space)
        if self.intervention != "none":
            refuse_others(x, self, over.structure.equations)
        by_column = residuals(block, x, over.structure)
        match self.intervention:
            case "none":
                for residual in by_column.values():
                    hold(block, residual)
            case "soft" if by_column:  # where every column with an equation is held, nothing is charged otherwise
                shift(block, x, by_column, over.acted_on, self)
            case "hard" if by_column:
                intervene(block, x, by_column, over.acted_on, self)
        rows = Rows(block, "stays")
        for name in over.fixed:
            at = x.coordinate(name)
            if x.space[name].kind == "categorical" or at.labels_here:
                rows.add(name, at.equals(at.x0), lower=1.0, upper=1.0)
            else:
                rows.add(name, move_in(x, name), lower=0.0, upper=0.0)

    # ---- plain numbers -----------------------------------------------------------------------------------------------
    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return the largest residual of a column that must follow, or move of one that must stay."""
        assert factual is not None  # noqa: S101 - needs_factual
        return self._over(space).violation(factual, point)

    def unpriced(self, space: FeatureSpace) -> frozenset[str]:
        """Return the columns with an equation, unless every move is charged."""
        if self.intervention == "none":
            return frozenset()
        return frozenset(self._over(space).structure.equations)

    def charged(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points with each column that has an equation at the factual plus what is charged for it."""
        return self._over(space).charged(factual, points)

    @property
    def mends(self) -> bool:  # type: ignore[override]
        """Whether some column follows or stays, whatever a search for a start tries."""
        return self.intervention == "none" or self.actionable is not None

    def mended(self, space: FeatureSpace, factual: Point, points: Floats) -> Floats:
        """Return points with the columns that must follow set from their parents, and those that must stay, home."""
        return self._over(space).mended(factual, points)

    def actions(self, space: FeatureSpace, factual: Point, point: Point) -> dict[str, Any]:
        """Return what is done: the value that a column is set to, or under soft interventions the shift of a number."""
        return self._over(space).actions(factual, point)

    def sentence(self) -> str:
        """Return the rule in words."""
        parents = parents_of(self._parsed)
        first, *others = (f"{column} {{}}from {', '.join(parents[column])}" for column in ordered(parents))
        text = "; ".join([first.format("follows "), *(other.format("") for other in others)])
        if self.intervention == "none":
            return text
        return f"{text} ({self.intervention} interventions)"
