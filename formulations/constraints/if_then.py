"""If-then rules: where one condition holds, another must."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, final

from ceopt.formulations.constraints.condition import Condition
from ceopt.formulations.constraints.rule import BEYOND, RULE_NAME, AbstractRule, Beyond, no_further_words
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.solvers.checks import check_fields
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["IfThen"]


@final
@dataclass(frozen=True, slots=True)
class IfThen(AbstractRule):
    r"""If one condition holds of the answer, so does another.

    .. math:: a \le b, \qquad a = [\text{condition}], \; b = [\text{conclusion}]

    ====== ========================= =================================================================
    symbol component                 meaning
    ====== ========================= =================================================================
    a, b   ``x.cut``, ``x.level``,   1 where the condition holds: a sum of the binaries of levels, or
           ``x.at_least``            of the cuts between a number and its neighbour in reach
    a, b   ``x.moved``, ``x.surely`` of "changed" on a number: 1 permits, or forces, a move
    ====== ========================= =================================================================

    A conclusion that no value meets, alone or beside the condition, says that the condition must not hold.

    With ``beyond="no_further"``, for a person whose own row meets the condition and not the conclusion, the rule is met
    as well where both columns stay as they are or come nearer:

    .. math:: a \le b + s_a, \qquad a \le b + s_b, \qquad s = [\text{the column is no further than today}].

    By "<=" and ">=" a number or a rank comes nearer to the end of the condition, or to the conclusion, as far as it
    moves that way: a limit of 24 that somebody of 20 misses is 20 for them. By any other op there is no nearer, and
    ``s`` is 1 where the column keeps its own value. For everybody else the rule is what it is with "meet".

    One row, or two. A comparison of a number adds at most two cuts per value, and where the number has a coordinate its
    two link rows. Exact, with one exception: that a continuous column without a step has changed is known once it moved
    by a thousandth of its range, or across a cut. A conclusion "changed" asks for that much; a condition "not changed"
    holds of anything less.

    Parameters
    ----------
    condition, conclusion
        (column, op, value) each, in raw units and levels: op is "==", "!=", "<=", ">=" (of levels by rank), "in" (value
        is a list), or "changed" (value is True, and may be left out, or False).
    name
        Name in exports and reports.
    beyond
        What is asked of a person who breaks the rule today: "meet" it, or go "no_further".

    Raises
    ------
    UnknownNameError
        A column, an op or a word for ``beyond`` that does not exist.
    InvalidTypeError
        Something else than a condition; an order of a categorical column; a value of the wrong kind.
    InvalidValueError
        An unknown level, a number that is not finite, an empty list.
    UnboundedFeatureError
        A number with a coordinate has an infinite bound (when built).

    References
    ----------
    Maragno, Roeber & Birbil (2022), actionability (6), made conditional.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, impose
    >>> from ceopt.formulations.constraints import IfThen
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("job", kind="categorical", levels=("cook", "nurse", "vet")),
    ...                       Feature("age", kind="integer", lower=18, upper=90)])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"job": "cook", "age": 20})
    >>> m.study = impose(IfThen(("job", "in", ["nurse", "vet"]), ("age", ">=", 24)), m.x)
    >>> print(m.study.row["job"].expr)
    x.level[job,nurse] + x.level[job,vet] - x.cut[age,'23']  <=  0.0

    A nurse of 20 today may stay one, grow older, or leave; a vet has to be 24:

    >>> m.y = Factual(space, {"job": "nurse", "age": 20})
    >>> m.stay = impose(IfThen(("job", "in", ["nurse", "vet"]), ("age", ">=", 24), beyond="no_further"), m.y)
    >>> for row in m.stay.row.values():
    ...     print(row.expr)
    y.level[job,vet] - y.cut[age,'23']  <=  0.0
    y.level[job,nurse] + y.level[job,vet] - y.cut[age,'23'] - y.cut[age,'19']  <=  0.0
    """

    condition: Any
    conclusion: Any
    name: str | None = None
    beyond: Beyond = field(default="meet", kw_only=True)
    _if: Condition = field(init=False, repr=False, compare=False)
    _then: Condition = field(init=False, repr=False, compare=False)
    manifest: ClassVar[Manifest] = Manifest(
        title="if one condition holds, so does another",
        formula="[condition] <= [conclusion]",
        reference="Maragno, Roeber & Birbil 2022, actionability",
        rule="IfThen",
        features={"row": 0},
    )

    def __post_init__(self) -> None:
        check_fields(self, {"name": RULE_NAME, "beyond": BEYOND})
        for own, given in (("_if", "condition"), ("_then", "conclusion")):
            parsed = Condition.parse("IfThen", getattr(self, given))
            object.__setattr__(self, own, parsed)
            object.__setattr__(self, given, parsed.plain)

    def check(self, space: FeatureSpace) -> None:
        """Refuse what the space does not know."""
        for condition in (self._if, self._then):
            condition.check(space)

    def build(self, block: Any, x: Factual) -> None:
        """Add the row ``row``, unless it holds whatever happens; one for each column where it need not be met."""
        premise = self._if.indicator(x, surely=False)
        conclusion = self._then.indicator(x, surely=True)
        rows = Rows(block, "row")
        if _settled(premise) == 0.0 or _settled(conclusion) == 1.0:
            return
        if not self._spares(x.space, x.point):
            _add_row(rows, self._if.column, premise, conclusion, LinearForm())
            return
        for word, side in (("condition", self._if), ("conclusion", self._then)):
            stays = side.no_further(x.coordinate(side.column), toward=side is self._then)
            _add_row(rows, (side.column, word), premise, conclusion, stays)

    def _spares(self, space: FeatureSpace, factual: Mapping[str, float]) -> bool:
        """Whether the person breaks the rule today and need not meet it."""
        if self.beyond == "meet":
            return False
        met = []
        for c in (self._if, self._then):
            met.append(c.holds(space[c.column], factual[c.column], factual[c.column]))
        return met == [True, False]

    def violation(self, space: FeatureSpace, factual: Mapping[str, float] | None, point: Mapping[str, float]) -> float:
        """Return 1 where the condition holds and the conclusion does not, and that is not allowed as it is today."""
        met = []
        for c in (self._if, self._then):
            met.append(c.holds(space[c.column], None if factual is None else factual[c.column], point[c.column]))
        if met != [True, False]:
            return 0.0
        if factual is None or not self._spares(space, factual):
            return 1.0
        for c in (self._if, self._then):
            if not c.is_no_further(space[c.column], factual[c.column], point[c.column], toward=c is self._then):
                return 1.0
        return 0.0

    def sentence(self) -> str:
        """Return the rule in words."""
        sentence = f"if {self._if.sentence()}, then {self._then.sentence()}"
        return sentence + no_further_words() if self.beyond == "no_further" else sentence


def _add_row(rows: Rows, index: Any, premise: Any, conclusion: Any, stays: LinearForm) -> None:
    """Add the row that the condition holds only with the conclusion, or where the column stays."""
    if isinstance(premise, LinearForm) and isinstance(conclusion, LinearForm):
        rows.add(index, premise + conclusion.scaled(-1.0) + stays.scaled(-1.0), upper=0.0)
        return
    one, two = (side.expression() if isinstance(side, LinearForm) else side for side in (premise, conclusion))
    rows.block.row[index] = one - two - stays.expression() <= 0.0


def _settled(side: LinearForm | Any) -> float | None:
    """Return 0 or 1 where no variable decides, else None."""
    if isinstance(side, LinearForm):
        value = side.expression()
    else:
        value = None
    return value if isinstance(value, float) else None
