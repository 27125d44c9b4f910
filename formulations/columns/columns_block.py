"""The counterfactual as a Pyomo block, one coordinate a column, in raw units.

:class:`AbstractColumns` is what models, rules and costs are built on; :class:`Factual` is the block of one person's
row. A caller's own variables are in ``caller_columns.py``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

import pandas as pd
import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns import AbstractCharge, AbstractCoordinate, Category, Free, Numeric, Ranked
from ceopt.formulations.space.reachable import Interval, Reach, reach_of
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Held, Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

#: Variables of the block by name, with their domains; each is made when its index, a column's name first, is asked for.
_DOMAINS: Final = {
    "x": pyo.Reals,
    "length": pyo.Reals,
    "up": pyo.NonNegativeReals,
    "down": pyo.NonNegativeReals,
    "steps": pyo.Integers,
    "cut": pyo.Binary,
    "at_least": pyo.Binary,
    "level": pyo.Binary,
    "moved": pyo.Binary,
    "direction": pyo.Binary,
    "surely": pyo.Binary,
}


@final
class Lookup(Mapping[Any, Any]):
    """A mapping over the columns that makes its values when they are asked for."""

    __slots__ = ("_block", "_keys", "_make")

    def __init__(self, block: Any, keys: Callable[[Any], list[Any]], make: Callable[[Any, Any], Any]) -> None:
        self._block, self._keys, self._make = block, keys, make

    def __getitem__(self, key: Any) -> Any:
        return self._make(self._block, key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys(self._block))

    def __len__(self) -> int:
        return len(self._keys(self._block))


# ---- the indices and values of the block's lookups, by name ----------------------------------------------------------
def _numbered(block: AbstractColumns) -> list[str]:
    return [feature.name for feature in block.space if feature.kind != "categorical"]


def _levelled(block: AbstractColumns) -> list[tuple[str, Any]]:
    return [(feature.name, level) for feature in block.space for level in feature.levels]


def _raw(block: AbstractColumns, name: str) -> Any:
    return block.coordinate(name).raw().expression()


def _is_level(block: AbstractColumns, key: tuple[str, Any]) -> Any:
    if not (isinstance(key, tuple) and len(key) == 2):
        raise InvalidValueError(
            "is_level", "a column and a level", f"the index is {key!r}", "Write is_level[name, level]."
        )
    name, level = key
    coordinate = block.coordinate(name)
    if not coordinate.feature.is_finite:
        return coordinate.indicator(frozenset()).expression()
    return coordinate.indicator({coordinate.feature.rank(level)}).expression()


class AbstractColumns(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    """The columns of one row, each as a coordinate that formulations ask for the variables that they need.

    Attributes
    ----------
    space
        The columns: kinds, bounds, levels.
    reach
        Values that each column may take.
    coordinates
        One per column, by name.
    raw
        ``raw[name]`` in raw units; the rank of an ordinal column, 0 or 1 of a binary one; a categorical one has none.
    is_level
        ``is_level[name, level]``, 1 iff the column takes the level.
    surcharges
        Expressions that rules (a penalised :class:`Hull`) want added to the objective.
    """

    def __init__(self, space: FeatureSpace, reach: Reach) -> None:
        super().__init__(concrete=True)
        self.space = space
        self.reach = dict(reach)
        self.coordinates: dict[str, AbstractCoordinate] = {}
        self.surcharges: list[Any] = []
        self.raw = Lookup(self, _numbered, _raw)
        self.is_level = Lookup(self, _levelled, _is_level)
        #: Columns whose rows do not follow yet from all that was asked of them.
        self._unwritten: dict[str, AbstractCoordinate] = {}
        self._is_collecting = False

    def declare(self, home: Mapping[str, float]) -> None:
        """Make the containers of variables, and the coordinates around the row ``home``."""
        for name, domain in _DOMAINS.items():
            self.add_component(name, pyo.Var(pyo.Any, dense=False, domain=domain))
        self.expressions = pyo.Expression(pyo.Any)
        for feature in self.space:
            coordinate: AbstractCoordinate
            if feature.kind == "categorical":
                coordinate = Category(self, feature, home[feature.name])
            elif feature.is_finite:
                coordinate = Ranked(self, feature, home[feature.name])
            else:
                coordinate = Numeric(self, feature, home[feature.name])
            self.coordinates[feature.name] = coordinate

    # ---- what formulations use ---------------------------------------------------------------------------------------
    def coordinate(self, name: str) -> AbstractCoordinate:
        """Return the coordinate of a column, or refuse an unknown one with the choices."""
        if name not in self.coordinates:
            raise UnknownNameError.among(type(self).__name__, "column", name, self.coordinates)
        return self.coordinates[name]

    def numeric(self, name: str) -> Numeric:
        """Return the coordinate of a numeric column."""
        coordinate = self.coordinate(name)
        assert isinstance(coordinate, Numeric)  # noqa: S101 - callers hold a split on a number
        return coordinate

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect what is asked of the columns inside, and write the rows of each column once, at the end.

        Whoever builds several blocks on the columns does it in here. Elsewhere each new demand is met at once, so that
        rows may be added to a model in any order.
        """
        if self._is_collecting:  # whoever began will write
            yield
            return
        self._is_collecting = True
        try:
            yield
            for coordinate in self._unwritten.values():
                coordinate.write()
            self._unwritten.clear()
        finally:
            self._is_collecting = False

    def write_soon(self, coordinate: AbstractCoordinate) -> None:
        """Note that more was asked of a column: its rows are written now, or when no more is being asked."""
        self._unwritten[coordinate.name] = coordinate
        with self.collecting():
            pass

    def new_expression(self, *index: Any) -> Any:
        """Return a named expression, whose content a coordinate writes later."""
        self.expressions[index] = 0.0
        return self.expressions[index]

    # ---- bounds ------------------------------------------------------------------------------------------------------
    def unbounded(self) -> str:
        """Return the first column that may reach infinity; "" where none does."""
        for name, part in self.reach.items():
            if isinstance(part, Interval) and not math.isfinite(part.upper - part.lower):
                return name
        return ""

    def bounds_advice(self, name: str) -> str:
        """Return what to do where a formulation needs a bound that the column does not have."""
        return f"Set them: space.update({name!r}, lower=..., upper=...)."

    # ---- values ------------------------------------------------------------------------------------------------------
    @abstractmethod
    def decoded(self) -> dict[str, float]:
        """Return the coordinates that the variables' current values stand for."""

    def decode(self, solution: Any = None) -> pd.Series:
        """Return the row as a Series in raw units and dtypes.

        Parameters
        ----------
        solution
            One of ``result.solutions``; without one, the values that the variables hold now.
        """
        if solution is not None:
            self._require_own(solution)
            solution.load()
        frame = self.space.frame([self.decoded()])
        # One dtype for a Series: without object, 3 years beside 1.5 would become 3.0.
        return (frame if len(set(frame.dtypes)) == 1 else frame.astype(object)).iloc[0]

    def _require_own(self, solution: Any) -> None:
        """Refuse what is no solution, and one of another model, whose values would not reach these variables."""
        who = f"decode of {self.name}"
        if not hasattr(solution, "load") or not hasattr(solution, "compiled"):
            raise InvalidTypeError(
                who, "one of result.solutions", f"it got {type(solution).__name__}", "Pass result.solutions[0]."
            )
        columns = solution.compiled.columns
        if columns and columns[0].model() is not self.model():
            raise InvalidValueError(
                who, "a solution of the model that it belongs to", f"this one is of {columns[0].model().name!r}",
                "Solve that model, or read the values of a file's solution by name: each of its variables is named in "
                "path + '.names.json'.",
            )  # fmt: skip


# ---- a person's row: what it may become ------------------------------------------------------------------------------
_MANIFEST = Manifest(
    title="counterfactual x around the factual row",
    formula="x_j in reach(x0_j): cut_1 >= cut_2 >= ...; sum_c level_c = 1; x = x0 + up - down",
    reference="ordered split binaries: Misic 2020, (M); separable cost as their linear function",
)


def _names(block: Factual) -> list[str]:
    return list(block.space.names)


def _changed(block: Factual, name: str) -> Any:
    return block.coordinate(name).changed()


@final
class Factual(AbstractColumns):
    r"""What the person's row may become: variables for what can move, numbers for what cannot.

    Parameters
    ----------
    space
        The columns: kinds, bounds, directions, steps, levels.
    row
        The factual in raw units: a Series, a dict or a one-row frame.
    reach
        Narrower values per column than ``space`` allows (an interval or a set of ranks); by default all in reach.

    Attributes
    ----------
    raw
        ``raw[name]`` in raw units; the rank of an ordinal column, 0 or 1 of a binary one; a categorical one has none.
        Asking creates the coordinate of a numeric column and, where a model cuts it, its two link rows.
    is_level
        ``is_level[name, level]``, 1 iff the column takes the level.
    changed, n_changed
        ``changed[name]``, 1 iff the column leaves the factual (it *permits* a numeric coordinate to move); their sum,
        in which a move between two columns of an :class:`ExactlyOne` is one change.
    factual
        ``factual[name]``: fixed variables that hold the row. They stay there: a block belongs to one person.
    reach
        Values that each column may take, after bounds, direction, immutability, levels and steps.
    charges
        Column -> what costs count instead of its move, where a rule (:class:`Causal`, :class:`ExactlyOne`) says so.

    Notes
    -----
    Exact. Adds nothing by itself but for the levels; each formulation asks for the variables that it needs
    (:mod:`ceopt.formulations.columns` states the rows), and the rows of a column are written from all of them.

    Reach, bounds, the splits and leaves that are kept and the breakpoints of costs are those of this row. Another
    person needs another block: a model in which ``factual`` holds anything else is refused when it is compiled or
    written, as the block's manifest says, and so is :meth:`decode`. Other solvers that Pyomo calls see ordinary fixed
    variables and cannot know. Rules, limits and bounds may change between solves as in any Pyomo model.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("age", kind="integer", lower=18, upper=90, direction="increasing")])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"age": 35})
    >>> print(m.x.raw["age"], m.x.reach["age"].lower)
    x.x[age] 35.0
    """

    def __init__(self, space: FeatureSpace, row: Any, *, reach: Reach | None = None) -> None:
        point = space.row(row)
        super().__init__(space, reach_of(space, point) if reach is None else reach)
        self.point = point
        self.factual = pyo.Var(list(space.names))
        for name, value in point.items():
            self.factual[name].fix(value)
        self.declare(point)
        self._held = Held(
            component="factual",
            values=point,
            of="the person's own",
            then="Make a Factual of that row: a block holds for the person that it was made for.",
            words={feature.name: feature.levels for feature in space if feature.is_finite},
        )
        self._followers: list[tuple[Any, Callable[[list[float]], float], list[Any]]] = []
        self._placed_with: list[Callable[[Mapping[str, float]], None]] = []
        self.charges: dict[str, AbstractCharge] = {}
        self.is_charged = False
        self.is_counted = False
        self.changed = Lookup(self, _names, _changed)
        describe(self, replace(_MANIFEST, columns=space.names, held=self._held))

    @property
    def n_changed(self) -> Any:
        """The number of columns that leave the factual."""
        return self.count_changes()

    def count_changes(self, count: str = "features", *, free: Collection[str] = ()) -> Any:
        """Return the number of changed features, or of changed encoded columns (a category switch counts twice).

        An expression that holds whatever is asked of the columns later; 0 where nothing can change. A column that goes
        with another's change (:class:`ExactlyOne`) is not counted, nor are those of ``free``.
        """
        self.is_counted = True
        double = count == "columns"
        moving = []
        for name, coordinate in self.coordinates.items():
            is_free = name in free or isinstance(self.charge_of(name), Free)
            if not coordinate.stays and not is_free:
                moving.append(coordinate)
        with self.collecting():
            return sum((2.0 if double and isinstance(c, Category) else 1.0) * c.changed() for c in moving)

    def charge(self, name: str) -> AbstractCharge:
        """Return what costs count of a column: its move, or what a rule has put in its place."""
        self.is_charged = True
        return self.charge_of(name)

    def charge_of(self, name: str) -> AbstractCharge:
        """Return the same, without noting that a cost counts it."""
        return self.charges.get(name) or self.coordinate(name)

    # ---- values ------------------------------------------------------------------------------------------------------
    def follow(self, variable: Any, value: Callable[[list[float]], float], of: list[Any]) -> None:
        """Let a cost's own variable take ``value`` of some expressions whenever the columns are placed.

        ``value`` is a function that can be pickled with the model.
        """
        self._followers.append((variable, value, of))

    def also_place(self, place: Callable[[Mapping[str, float]], None]) -> None:
        """Let a rule set variables of its own whenever the columns are placed, before any cost's own follow.

        ``place`` takes the point and can be pickled with the model.
        """
        self._placed_with.append(place)

    def place(self, point: Mapping[str, float]) -> None:
        """Set the variables to a point given in coordinates: a start for the solver."""
        for name, coordinate in self.coordinates.items():
            coordinate.place(point[name])
        for place in self._placed_with:
            place(point)
        for variable, value, of in self._followers:
            known = [pyo.value(expression, exception=False) for expression in of]
            if None not in known:
                variable.set_value(value(known), skip_validation=True)

    def decoded(self) -> dict[str, float]:
        """Return the coordinates that the variables' current values stand for, rebuilt from the integer decisions.

        Raises
        ------
        InvalidValueError
            ``factual`` holds another row than the one that the block was made for.
        """
        self._held.check(self, "decode")
        return {name: coordinate.decode() for name, coordinate in self.coordinates.items()}


def require_factual(who: str, x: Any) -> Factual:
    """Return a person's block, or refuse what has no factual to change from."""
    if not isinstance(x, Factual):
        raise InvalidTypeError(
            who, "a Factual block, as it is about a change", f"it got {type(x).__name__}",
            "Pass m.x = Factual(space, row), or state it in Pyomo over your own variables.",
        )  # fmt: skip
    return x
