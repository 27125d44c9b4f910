"""The causal rule: the equations of a causal model, and interventions on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from ceopt.formulations.constraints.causal.charges import hold, intervene, refuse_others, shift
from ceopt.formulations.constraints.causal.equation import Equation, FittedEquation, parse_equations
from ceopt.formulations.constraints.causal.graph import ordered
from ceopt.formulations.constraints.causal.interventions import Interventions
from ceopt.formulations.constraints.causal.learning import learned
from ceopt.formulations.constraints.causal.program import move_in, residuals
from ceopt.formulations.constraints.causal.structure import Structure
from ceopt.formulations.constraints.rule import RULE_NAME, AbstractRule, Floats, Point
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.linear_form import Rows
from ceopt.solvers.checks import Choice, ListOf, OneOrMapping, OrNone, Real, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, UnknownNameError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Causal"]

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
        equation; a slack below zero or a coefficient that is not finite.
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
        ordered({column: equation.parents for column, equation in self._parsed.items()})

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
            if self.actionable is None:
                able = space.names
            else:
                able = tuple(self.actionable)
            acted_on: frozenset[str] = frozenset()
            if self.intervention != "none":
                acted_on = frozenset(structure.equations) & frozenset(able)
            fixed = tuple(name for name in space.names if name not in structure.equations and name not in able)
            self._known["interventions"] = known = Interventions(structure, self.intervention, acted_on, fixed)
        return known

    # ---- the program -------------------------------------------------------------------------------------------------
    def build(self, block: Any, x: Factual) -> None:
        """Add the rows, and say what costs are to count."""
        over = self._over(x.space)
        if self.intervention != "none":
            refuse_others(x, self, over.structure.equations)
        found = residuals(block, x, over.structure)
        match self.intervention:
            case "none":
                for residual in found.values():
                    hold(block, residual)
            case "soft" if found:  # where every column with an equation is held, nothing is charged otherwise
                shift(block, x, found, over.acted_on, self)
            case "hard" if found:
                intervene(block, x, found, over.acted_on, self)
        rows = Rows(block, "stays")
        for name in over.fixed:
            if x.space[name].kind == "categorical":
                rows.add(name, x.coordinate(name).indicator({int(x.point[name])}), lower=1.0, upper=1.0)
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
    def mends(self) -> bool:
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
        parents = {column: equation.parents for column, equation in self._parsed.items()}
        first, *others = (f"{column} {{}}from {', '.join(parents[column])}" for column in ordered(parents))
        text = "; ".join([first.format("follows "), *(other.format("") for other in others)])
        return text if self.intervention == "none" else f"{text} ({self.intervention} interventions)"
