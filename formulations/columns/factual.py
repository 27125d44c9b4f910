"""The counterfactual in the program: a Pyomo block with one coordinate per column, in raw units, around the factual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo

from ceopt.formulations.columns import AbstractCharge, Category
from ceopt.formulations.columns.columns_block import AbstractColumns, Lookup
from ceopt.formulations.space.reachable import Reach, reach_of
from ceopt.solvers.errors import InvalidTypeError
from ceopt.solvers.manifest import Held, Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Factual", "require_factual"]

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
        ``changed[name]``, 1 iff the column leaves the factual (it *permits* a numeric coordinate to move); their sum.
    factual
        ``factual[name]``: fixed variables that hold the row. They stay there: a block belongs to one person.
    reach
        Values that each column may take, after bounds, direction, immutability, levels and steps.
    charges
        Column -> what costs count instead of its move, where a rule (:class:`Causal`) says so.

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
        self.changed = Lookup(self, _names, _changed)
        describe(self, replace(_MANIFEST, columns=space.names, held=self._held))

    @property
    def n_changed(self) -> Any:
        """The number of columns that leave the factual."""
        return self.count_changes()

    def count_changes(self, count: str = "features") -> Any:
        """Return the number of changed features, or of changed encoded columns (a category switch counts twice).

        An expression that holds whatever is asked of the columns later; 0 where nothing can change.
        """
        double = count == "columns"
        moving = [c for c in self.coordinates.values() if not c.stays]
        with self.collecting():
            return sum((2.0 if double and isinstance(c, Category) else 1.0) * c.changed() for c in moving)

    def charge(self, name: str) -> AbstractCharge:
        """Return what costs count of a column: its move, or what a rule has put in its place."""
        self.is_charged = True
        return self.charges[name] if name in self.charges else self.coordinate(name)

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
