"""Several people in one program: who is served, and at what cost, as Vars that ordinary Pyomo rows couple."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns import Numeric
from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints import AbstractRule, impose, parse_rules, rule_name
from ceopt.formulations.constraints.rule import charged_by, component_name, require_exact_rows
from ceopt.formulations.costs import parse_cost
from ceopt.formulations.predictors.embed import embed_predictor
from ceopt.formulations.predictors.reaches import Reaches
from ceopt.formulations.predictors.read_model import read_model
from ceopt.formulations.predictors.ties import accepted
from ceopt.formulations.space.reachable import only_at, reach_of
from ceopt.formulations.space.space import known_part, require_space, warn_of
from ceopt.formulations.targets import parse_target
from ceopt.solvers.checks import NOT_A_NUMBER, Real
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.space.space import FeatureSpace

_WHO: Final = "People"
_MANIFEST: Final = Manifest(
    title="several people: who is served, and at what cost",
    formula="served_i = 1: x_i reaches the target and keeps every rule; served_i = 0: x_i = x0_i; cost_i = cost(x_i)",
)
#: Sizes of numbers that need no further look.
_ORDINARY: Final = (1e-3, 1e6)
_LIMIT: Final = Real(at_least=0.0, finite=True, wrong_type=NOT_A_NUMBER)


@final
@dataclass(frozen=True, slots=True)
class PeopleAsked:
    """What a :class:`People` block was made from, as it was given; ``cost`` and ``constraints`` as objects."""

    model: Any
    space: FeatureSpace
    target: Any
    cost: AbstractCost
    constraints: tuple[AbstractRule, ...]


@final
class People(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    r"""Several people, of whom a program chooses whom to serve.

    .. math::
        s_i \in \{0, 1\}, \qquad
        s_i = 1 \Rightarrow x_i \text{ reaches the target and keeps the rules}, \qquad
        s_i = 0 \Rightarrow x_i = x^0_i, \qquad
        c_i = \text{cost}(x_i, x^0_i)

    ====== ================= ===============================================================
    symbol component         meaning
    ====== ================= ===============================================================
    s_i    ``served[i]``     binary; i is the label of the person's row in the frame
    c_i    ``cost[i]``       what the person's change costs, in the unit of the cost; 0 unserved
    x_i    ``person[i].x``   the person's :class:`Factual` block
    x0_i   ``person[i].x``   its ``factual``
    ====== ================= ===============================================================

    Parameters
    ----------
    model
        A fitted model, as for :func:`ceopt.explain`. It is read once.
    people
        One row a person in raw units, with labels that differ.
    space
        What each column is and how it may move.
    target, cost, constraints
        As for :func:`ceopt.explain`; rules and costs that learn from data have to bring it.

    Attributes
    ----------
    served, cost
        Vars, by the labels of ``people``.
    person
        ``person[i].x``, ``.predictor``, ``.valid``, ``.rules``: what states one person. Those parts are written when
        they are first asked for, by reading ``person`` or by walking through the model, as every solver and writer
        does. :func:`ceopt.solve_people` does not need them where people share nothing but ``served`` and ``cost``.
    rows
        The people, as given.
    favourable
        Labels of those who reach the target and keep every rule as they are. They are served as they are: ``served`` is
        fixed at 1, ``cost`` at 0 and x at the factual.
    cost_is_exact
        Whether ``cost[i]`` equals what the answer costs in every direction, as of "l1", or is only at least that, as of
        costs that are counted or have a root. Where less is better it makes no difference.

    Notes
    -----
    The margin is :class:`Reaches`' own, as of :func:`ceopt.explain`. Once written, a person takes the variables and
    rows of a program of :func:`ceopt.explain`, with the least big-M in those of the decision, a row for each column
    that may move and, for numbers, the binaries of a move. Exact.

    A person who breaks a rule today cannot be left as they are in that one program, and is refused there by name;
    :func:`ceopt.solve_people` takes them where it need not write it.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No frame, no row, a label twice; a row that the space refuses, by its label; a rule without the rows that it
        learns from. While the parts are written: a person who breaks a rule today.
    UnboundedFeatureError
        While the parts are written: a column that may move has no bound.

    Examples
    --------
    >>> import pandas as pd
    >>> import pyomo.environ as pyo
    >>> from ceopt import FeatureSpace, solve_people
    >>> from ceopt.formulations import People, shared_budget
    >>> from ceopt.formulations.predictors import Affine
    >>> people = pd.DataFrame({"income": [1, 2, 5]}, index=["ann", "bob", "cleo"])
    >>> space = FeatureSpace.infer(people)
    >>> m = pyo.ConcreteModel()
    >>> m.people = People(Affine([1.0], -3.5, labels=("no", "yes")), people, space, target="yes")
    >>> m.budget = shared_budget(m.people, 2.5)
    >>> m.most = pyo.Objective(expr=sum(m.people.served.values()), sense=pyo.maximize)
    >>> result = solve_people(m)
    >>> print(result.status, result.objective)
    optimal 2.0
    >>> result.decode()
          income  served  cost
    ann        1   False   0.0
    bob        4    True   2.0
    cleo       5    True   0.0
    """

    def __init__(
        self,
        model: Any,
        people: pd.DataFrame,
        space: FeatureSpace,
        *,
        target: Any,
        cost: Any = "l1",
        constraints: Any = (),
    ) -> None:
        self._is_written = True  # there is nothing to write while Pyomo sets the block up
        super().__init__(concrete=True)
        require_space(_WHO, space)
        self.rows = _checked_frame(people, space)
        self.space = space
        self.predictor = predictor = read_model(model, space)
        self.points = _points(self.rows, space)
        rules = parse_rules(constraints, space)
        for rule in rules:
            if rule.lacks_rows:
                raise InvalidValueError(
                    _WHO, "rules that know their rows", f"{type(rule).__name__} learns from some", "Give it its rows."
                )
        self.rules = tuple(rule.about(lambda: predictor).aimed(target) for rule in rules)
        require_exact_rows(_WHO, self.rules)
        self.asked = PeopleAsked(model, space, target, parse_cost(cost).fitted(space, None), rules)
        self.target = parse_target(target, predictor.labels)
        labels = self.rows.index.tolist()
        self.served = pyo.Var(labels, domain=pyo.Binary)
        self.cost = pyo.Var(labels, domain=pyo.NonNegativeReals)
        self.favourable = self._favourable()
        for label in self.favourable:
            self.served[label].fix(1)
            self.cost[label].fix(0.0)
        describe(self, _MANIFEST)
        self._is_written = False

    @property
    def labels(self) -> list[Any]:
        """The labels of the people, in the order of their rows."""
        labels: list[Any] = self.rows.index.tolist()
        return labels

    @property
    def person(self) -> Any:
        """The blocks that state each person, which are written now if they were not."""
        self.write()
        return self.each

    @property
    def is_written(self) -> bool:
        """Whether the parts that state each person have been written."""
        return self.component("each") is not None

    @property
    def cost_is_exact(self) -> bool:
        """Whether ``cost`` is the cost of the answer in every direction."""
        if not self.asked.cost.additive or any(rule.charges_more or rule.unpriced(self.space) for rule in self.rules):
            return False
        prices = self.asked.cost.prices(self.space)
        numbers = [feature.name for feature in self.space if not feature.is_finite]
        return all(price.kind == "linear" for name in numbers for price in prices[name])

    def added(self) -> str:
        """Return in words what was added to the parts that state each person, changed or switched off; else nothing.

        Rows that a person's columns add on use count too, as nobody knows whose they are.
        """
        if not self.is_written:
            return ""
        written = {id(part): rest for part, *rest in self._stated}
        for part, size, working in _stated_in(self.each):
            before_size, before_working = written.get(id(part), (None, working))
            if before_size != size:
                return f"{part.name} stands among a person's own columns"
            if before_working != working:
                return f"{part.name} is not as it was stated: some of it is deactivated"
        before = {id(var): rest for var, *rest in self._bounded}
        for var, *rest in _bounded_in(self.each):
            if before.get(id(var)) != rest:
                return f"{var.name} is fixed or bounded, and one of a person's own columns"
        return ""

    def prices(self, part: Any) -> bool:
        """Tell whether a row is the one that states somebody's cost."""
        if part is None or not self.is_written:
            return False
        block = part.parent_block()
        return block.component("paid") is part and block.parent_component() is self.each

    def broken_today(self, label: Any) -> str:
        """Return the rule, or the column out of its reach, that keeps a person from staying; else nothing."""
        point = self.points[label]
        for place, rule in enumerate(self.rules):
            if not rule.violation(self.space, point, point) <= 0.0:
                return rule_name(rule, place)
        for name, part in reach_of(self.space, point).items():
            if not part.holds(point[name]):
                return f"the limits of column {name!r}"
        return ""

    def _favourable(self) -> tuple[Any, ...]:
        coordinates = np.array([[point[name] for name in self.space.names] for point in self.points.values()])
        is_met = accepted(self.predictor, coordinates, self.target)
        met = [label for label, holds in zip(self.points, is_met.tolist(), strict=True) if holds]
        return tuple(label for label in met if not self.broken_today(label))

    # ---- the parts that state each person ----------------------------------------------------------------------------
    @contextmanager
    def without_parts(self) -> Iterator[None]:
        """Show whoever walks through the model inside nothing but ``served`` and ``cost``."""
        was_written = self._is_written
        each = self.component("each")
        is_hidden = each is not None and each.active
        self._is_written = True
        if is_hidden:
            each.deactivate()
        try:
            yield
        finally:
            self._is_written = was_written
            if is_hidden:
                each.activate()

    def write(self) -> None:
        """Write the parts that state each person, if they are not there yet."""
        if self._is_written:
            return
        self._is_written = True
        try:
            self.each = pyo.Block(self.labels)
            with PauseGC():
                for place, label in enumerate(self.labels):
                    self._write_person(self.each[label], label, self.rows.iloc[[place]])
            self._stated, self._bounded = _stated_in(self.each), _bounded_in(self.each)
        except BaseException:
            self._is_written = False
            self.del_component("each")
            raise

    def _write_person(self, block: Any, label: Any, row: pd.DataFrame) -> None:
        point = self.points[label]
        if label in self.favourable:
            reach = {name: only_at(part, point[name]) for name, part in reach_of(self.space, point).items()}
            block.x = Factual(self.space, row, reach=reach)
            return
        broken = self.broken_today(label)
        if broken:
            raise InvalidValueError(
                _WHO, "people who may stay as they are, where all are one program", f"row {label!r} breaks {broken}",
                "Leave them out; or couple people by served and cost alone, and use ceopt.solve_people.",
            )  # fmt: skip
        block.x = x = Factual(self.space, row)
        served = self.served[label]
        with x.collecting():
            block.predictor = embed_predictor(self.predictor, x)
            block.valid = Reaches(block.predictor, self.target, when=served)
            block.rules = pyo.Block(concrete=True)
            for place, rule in sorted(enumerate(self.rules), key=lambda pair: not pair[1].gives_bounds):
                name = component_name(block.rules, rule_name(rule, place))
                block.rules.add_component(name, impose(rule, x))
            moving = [coordinate for coordinate in x.coordinates.values() if not coordinate.stays]
            block.stays = pyo.ConstraintList()
            for coordinate in moving:
                block.stays.add(coordinate.changed() <= served)
            paid = charged_by(self.asked.cost, self.rules, self.space).addend().build(x)
            if not self.cost_is_exact:
                block.paid = pyo.Constraint(expr=self.cost[label] >= paid)
                return
            for coordinate in moving:
                if isinstance(coordinate, Numeric):
                    coordinate.amount()  # where more cost is better, a value of a cell may be dearer than its nearest
                    coordinate.side_form("up")  # and up and down together would cost, and move nothing
            block.paid = pyo.Constraint(expr=self.cost[label] == paid)

    # ---- whoever walks through the model finds all of it -------------------------------------------------------------
    def component_map(self, *args: Any, **keywords: Any) -> Any:
        """Return the block's components as Pyomo does, after writing them."""
        self.write()
        return super().component_map(*args, **keywords)

    def _component_data_itervalues(self, *args: Any, **keywords: Any) -> Any:
        self.write()
        return super()._component_data_itervalues(*args, **keywords)


def shared_budget(block: People, limit: float) -> Any:
    r"""Return the row that all people together cost at most ``limit``: ``m.budget = shared_budget(m.people, 20.0)``.

    .. math:: \sum_i c_i \le L

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No :class:`People` block; a limit that is no finite number of at least 0.
    """
    if not isinstance(block, People):
        raise InvalidTypeError(
            "shared_budget", "a People block", f"it got {type(block).__name__}", "Pass m.people = People(...)."
        )
    most = _LIMIT.require("shared_budget", "limit", limit)
    return pyo.Constraint(expr=pyo.quicksum(block.cost.values()) <= most)


def _stated_in(each: Any) -> list[tuple[Any, int, int]]:
    """Return rows, sets and objectives inside some blocks, with how many members each has and how many are active."""
    kinds = (pyo.Constraint, pyo.SOSConstraint, pyo.Objective)
    stated = []
    for block in each.values():
        for inner in block.block_data_objects():
            works = _is_active(inner)
            for part in inner.component_objects(kinds, descend_into=False):
                active = sum(member.active for member in part.values()) if works and part.active else 0
                stated.append((part, len(part), active))
    return stated


def _is_active(block: Any) -> bool:
    """Return whether a block and all that it stands in are active."""
    while block is not None:
        if not block.active:
            return False
        block = block.parent_block()
    return True


def _bounded_in(each: Any) -> list[tuple[Any, float | None, float | None, bool]]:
    """Return the Vars inside some blocks, with their bounds and whether they are fixed."""
    own = [var for block in each.values() for var in block.component_data_objects(pyo.Var)]
    return [(var, var.lb, var.ub, var.fixed) for var in own]


def _checked_frame(people: Any, space: FeatureSpace) -> pd.DataFrame:
    """Return the people as a frame of the space's columns, or refuse what is no table of people."""
    if not isinstance(people, pd.DataFrame):
        raise InvalidTypeError(
            _WHO, "a DataFrame of people", f"people is {type(people).__name__}", "Give one row each."
        )
    if people.empty:
        raise InvalidValueError(_WHO, "at least one person", "people has no row", "Give one row a person.")
    labels = people.index
    if not labels.is_unique:
        twice = labels[labels.duplicated()].tolist()[0]
        raise InvalidValueError(
            _WHO, "labels that differ", f"{twice!r} stands in people.index twice", "Use people.reset_index(drop=True)."
        )
    _check_labels(labels.tolist())
    warn_of(_WHO, space, people=people)
    frame: pd.DataFrame = known_part(space, people).copy()
    return frame


def _check_labels(labels: list[Any]) -> None:
    """Refuse missing labels, and tuples that Pyomo would take for other ones."""
    lengths: dict[int, Any] = {}
    for label in labels:
        parts = label if isinstance(label, tuple) else (label,)
        lengths.setdefault(len(parts), label)
        if any(isinstance(part, tuple) for part in parts) or (isinstance(label, tuple) and len(label) < 2):
            raise InvalidValueError(
                _WHO, "labels that Pyomo takes as they are", f"{label!r} stands in people.index",
                "Use people.reset_index(drop=True).",
            )  # fmt: skip
        if any(pd.isna(part) for part in parts):
            raise InvalidValueError(_WHO, "a label a person", "one is missing", "Use people.reset_index(drop=True).")
    if len(lengths) > 1:
        first, second, *_ = lengths.values()
        raise InvalidValueError(
            _WHO, "labels of as many parts each", f"{first!r} and {second!r} stand in people.index",
            "Use people.reset_index(drop=True).",
        )  # fmt: skip


def _points(rows: pd.DataFrame, space: FeatureSpace) -> dict[Any, dict[str, float]]:
    """Return the coordinates of each row, by its label; what the space refuses is named by it."""
    space.require_moderate_bounds()
    labels = rows.index.tolist()
    try:
        coordinates = space.coordinates(rows)
    except CeoptError:
        coordinates = None
    if coordinates is None or any(feature.codes for feature in space):
        return {label: _point(rows.iloc[[place]], label, space) for place, label in enumerate(labels)}
    sizes = np.abs(coordinates)
    is_ordinary = ((sizes == 0.0) | ((sizes > _ORDINARY[0]) & (sizes < _ORDINARY[1]))).all(axis=1)
    for place in np.flatnonzero(~is_ordinary).tolist():
        _point(rows.iloc[[place]], labels[place], space)
    found = coordinates.tolist()
    return {label: dict(zip(space.names, row, strict=True)) for label, row in zip(labels, found, strict=True)}


def _point(row: pd.DataFrame, label: Any, space: FeatureSpace) -> dict[str, float]:
    try:
        point = space.row(row)
        space.require_moderate(point)
    except CeoptError as error:
        raise type(error)(f"In people, row {label!r}: {error}") from error
    return point
