"""The person in the program: a Pyomo block with one coordinate per column, in raw units, around the factual row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import pandas as pd
import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.coordinates import AbstractCoordinate, Category, Numeric, Ranked
from ceopt.formulations.space.reach import Reach, reach_of
from ceopt.solvers.errors import InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Factual"]

#: Components of the block whose index begins with a column's name.
_COLUMNWISE = """
    factual x steps up down cut at_least level moved direction surely
    ordered one_level on_grid move left_end right_end up_floor down_floor
    moved_floor moved_up moved_down moved_claim most least one_direction greatest_of
"""

_MANIFEST = Manifest(
    title="counterfactual x around the factual row",
    formula="x_j in reach(x0_j): cut_1 >= cut_2 >= ...; sum_c level_c = 1; x = x0 + up - down",
    reference="ordered split binaries: Misic 2020, (M); separable cost as their linear function",
    features=dict.fromkeys(_COLUMNWISE.split(), 0),
)

#: Variables of the block by domain; each is made when a formulation first asks for its index.
_VARIABLES = {
    "Reals": "x",
    "NonNegativeReals": "up down",
    "Integers": "steps",
    "Binary": "cut at_least level moved direction surely",
}


@final
class _Lookup(Mapping[Any, Any]):
    """A mapping over the columns that makes its values when they are asked for."""

    __slots__ = ("_block", "_keys", "_make")

    def __init__(
        self, block: Factual, keys: Callable[[Factual], list[Any]], make: Callable[[Factual, Any], Any]
    ) -> None:
        self._block, self._keys, self._make = block, keys, make

    def __getitem__(self, key: Any) -> Any:
        return self._make(self._block, key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys(self._block))

    def __len__(self) -> int:
        return len(self._keys(self._block))


def _numbered(block: Factual) -> list[str]:
    return [feature.name for feature in block.space if feature.kind != "categorical"]


def _levelled(block: Factual) -> list[tuple[str, Any]]:
    return [(feature.name, level) for feature in block.space for level in feature.levels]


def _names(block: Factual) -> list[str]:
    return list(block.space.names)


def _raw(block: Factual, name: str) -> Any:
    return block.coordinate(name).raw().expression()


def _changed(block: Factual, name: str) -> Any:
    return block.coordinate(name).changed()


def _is_level(block: Factual, key: tuple[str, Any]) -> Any:
    if not (isinstance(key, tuple) and len(key) == 2):
        raise InvalidValueError(
            "is_level", "a column and a level", f"the index is {key!r}", "Write is_level[name, level]."
        )
    name, level = key
    coordinate = block.coordinate(name)
    if not coordinate.feature.is_finite:
        return coordinate.indicator(frozenset()).expression()
    return coordinate.indicator({coordinate.feature.rank(level)}).expression()


@final
class Factual(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
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
        ``changed[name]``, 1 iff the column leaves the factual (it *permits* a numeric coordinate to move); their sum.
    factual
        ``factual[name]``: fixed variables that hold the row; compiled as columns, another person is a change of bounds.
    reach
        Values that each column may take, after bounds, direction, immutability, levels and steps.

    Notes
    -----
    Exact. Adds nothing by itself but for the levels; each formulation asks for the variables that it needs
    (:mod:`ceopt.formulations.coordinates` states the rows).

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
        super().__init__(concrete=True)
        point = space.row(row)
        self.space, self.point = space, point
        self.reach = dict(reach_of(space, point) if reach is None else reach)
        self._cut_texts: dict[tuple[str, tuple[float, float]], str] = {}
        self.factual = pyo.Var(list(space.names))
        for name, value in point.items():
            self.factual[name].fix(value)
        for domain, names in _VARIABLES.items():
            for name in names.split():
                self.add_component(name, pyo.Var(pyo.Any, dense=False, domain=getattr(pyo, domain)))
        self.expressions = pyo.Expression(pyo.Any)
        self.coordinates: dict[str, AbstractCoordinate] = {}
        for feature in space:
            kind = Category if feature.kind == "categorical" else Ranked if feature.is_finite else Numeric
            self.coordinates[feature.name] = kind(self, feature, point[feature.name])
        self.raw = _Lookup(self, _numbered, _raw)
        self.changed = _Lookup(self, _names, _changed)
        self.is_level = _Lookup(self, _levelled, _is_level)
        describe(self, _MANIFEST)

    # ---- what formulations use ---------------------------------------------------------------------------------------
    def coordinate(self, name: str) -> AbstractCoordinate:
        """Return the coordinate of a column, or refuse an unknown one with the choices."""
        if name not in self.coordinates:
            raise UnknownNameError.among("Factual", "column", name, self.coordinates)
        return self.coordinates[name]

    def numeric(self, name: str) -> Numeric:
        """Return the coordinate of a numeric column."""
        coordinate = self.coordinate(name)
        assert isinstance(coordinate, Numeric)  # noqa: S101 - callers hold a split on a number
        return coordinate

    def named_expression(self, *index: Any) -> Any:
        """Return a new named expression of this block, whose content may be replaced later."""
        count = sum(1 for key in self.expressions if key[: len(index)] == index)
        key = (*index, count)
        self.expressions[key] = 0.0
        return self.expressions[key]

    def cut_text(self, name: str, key: tuple[float, float]) -> str:
        """Return the text by which the cut between two neighbouring values is named."""
        return self._cut_texts.get((name, key), "")

    def remember_cut(self, name: str, key: tuple[float, float], text: str) -> None:
        """Keep the text by which a cut is named."""
        self._cut_texts[name, key] = text

    @property
    def n_changed(self) -> Any:
        """The number of columns that leave the factual."""
        return self.count_changes()

    def count_changes(self, count: str = "features") -> Any:
        """Return the number of changed features, or of changed encoded columns (a category switch counts twice).

        An expression that later cuts and coordinates keep up to date; 0 where nothing can change.
        """
        double = count == "columns"
        moving = [c for c in self.coordinates.values() if not c.stays]
        return sum((2.0 if double and isinstance(c, Category) else 1.0) * c.changed() for c in moving)

    # ---- values ------------------------------------------------------------------------------------------------------
    def place(self, point: Mapping[str, float]) -> None:
        """Set the variables to a point given in coordinates: a start for the solver."""
        for name, coordinate in self.coordinates.items():
            coordinate.place(point[name])

    def decoded(self) -> dict[str, float]:
        """Return the coordinates that the variables' current values stand for, rebuilt from the integer decisions."""
        return {name: coordinate.decode() for name, coordinate in self.coordinates.items()}

    def decode(self, solution: Any = None) -> pd.Series:
        """Return the answer as a Series in raw units and dtypes.

        Parameters
        ----------
        solution
            One of ``result.solutions``; without one, the values that the variables hold now.
        """
        if solution is not None:
            solution.load()
        frame = self.space.frame([self.decoded()])
        # One dtype for a Series: without object, 3 years beside 1.5 would become 3.0.
        return (frame if len(set(frame.dtypes)) == 1 else frame.astype(object)).iloc[0]
