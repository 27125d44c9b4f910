"""The counterfactual as a Pyomo block, one coordinate a column, in raw units.

:class:`AbstractColumns` is what models, rules and costs are built on; :class:`Factual` is the block of one person's
row. A caller's own variables are in ``formulations/predictors/embed/caller_columns.py``.
"""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

import pandas as pd
import pyomo.environ as pyo
from pyomo.core.base.block import ScalarBlock

from ceopt.formulations.columns import AbstractCharge, AbstractCoordinate, Category, Free, Numeric, Ranked
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, Reach, reach_of
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.manifest import Held, Manifest, describe

if TYPE_CHECKING:
    from ceopt.formulations.space.feature import Feature
    from ceopt.formulations.space.space import FeatureSpace

#: Names and domains of the block's variables, indexed by column name (and more); each index is created on first use.
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
    "missing": pyo.Binary,
    "code": pyo.Binary,
}


@final
class Lookup(Mapping[Any, Any]):
    """A read-only mapping whose values are created on access, by functions that can be pickled with the block."""

    __slots__ = ("_block", "_keys", "_make")

    def __init__(self, block: Any, keys: Callable[[Any], list[Any]], make: Callable[[Any, Any], Any]) -> None:
        self._block = block
        self._keys = keys
        self._make = make

    def __getitem__(self, key: Any) -> Any:
        made = self._make(self._block, key)
        if isinstance(made, float):  # a bare number beside a number makes no Constraint, but True or False
            return self._block.constant(made)
        return made

    def __contains__(self, key: object) -> bool:
        return key in self._keys(self._block)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or ``default`` where there is no such key."""
        if key not in self:
            return default
        return self[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys(self._block))

    def __len__(self) -> int:
        return len(self._keys(self._block))


# ---- the indices and values of the block's lookups, by name ----------------------------------------------------------
def _names_with_raw(block: AbstractColumns) -> list[str]:
    return [feature.name for feature in block.space if feature.kind != "categorical"]


def _names_with_levels(block: AbstractColumns) -> list[tuple[str, Any]]:
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
    ranks: set[int] = set()  # of a number, which refuses
    if coordinate.feature.is_finite:
        ranks.add(coordinate.feature.rank(level))
    return coordinate.indicator(ranks).expression()


def _names_with_gaps(block: AbstractColumns) -> list[str]:
    return [feature.name for feature in block.space if feature.missing is not False]


def _is_missing(block: AbstractColumns, name: str) -> Any:
    return block.coordinate(name).label_form(MISSING).expression()


def _names_with_codes(block: AbstractColumns) -> list[tuple[str, Any]]:
    return [(feature.name, code) for feature in block.space for code in feature.codes]


def _is_code(block: AbstractColumns, key: tuple[str, Any]) -> Any:
    if key not in _names_with_codes(block):
        raise InvalidValueError(
            "is_code", "a column and one of its codes", f"the index is {key!r}", "Write is_code[name, code]."
        )
    name, code = key
    coordinate = block.coordinate(name)
    return coordinate.label_form(coordinate.feature.to_coordinate(code)).expression()


def _no_names(block: AbstractColumns) -> list[Any]:
    del block  # any number is a key
    return []


def _above(block: AbstractColumns, key: tuple[str, Any]) -> Any:
    if not (isinstance(key, tuple) and len(key) == 2):
        raise InvalidValueError("above", "a column and a value", f"the index is {key!r}", "Write above[name, value].")
    name, value = key
    coordinate = block.coordinate(name)
    return coordinate.above(_coordinate_below(coordinate.feature, value)).expression()


def _coordinate_below(feature: Feature, value: Any) -> float:
    """Return the greatest coordinate that is not above a value: a number, or the rank of a level."""
    if feature.kind == "categorical":
        raise InvalidTypeError(
            "above", "a column whose values have an order", f"column {feature.name!r} is categorical",
            "Use is_level[name, level], or declare it ordinal.",
        )  # fmt: skip
    is_number = isinstance(value, numbers.Real) and not math.isnan(value)
    if not feature.is_finite:
        if not is_number:
            raise InvalidTypeError(
                "above", "a number to compare with", f"the value for column {feature.name!r} is {value!r}", "Give one."
            )
        return float(value)
    if is_number and value not in feature.levels and all(isinstance(k, numbers.Real) for k in feature.levels):
        ranks = [rank for rank, level in enumerate(feature.levels) if level <= value]
        return float(max(ranks, default=-1))
    return float(feature.rank(value))


class AbstractColumns(ScalarBlock):  # type: ignore[misc]  # Pyomo is untyped
    """The columns of one row as coordinates, which create variables when a formulation asks for them.

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
    is_missing
        ``is_missing[name]``, 1 iff the cell of a column that may be missing is so.
    is_code
        ``is_code[name, code]``, 1 iff the column holds the code, and no amount.
    above
        ``above[name, value]``, 1 iff the column lies strictly above the value: a number, or a level of those in order.
        A cell that is missing or holds a code lies above nothing. It is the binary by which trees split there, exact
        between neighbouring floats, and no list of its keys exists.
    surcharges
        Penalty expressions of rules (such as a penalised :class:`Hull`), to be added to the objective.
    """

    def __init__(self, space: FeatureSpace, reach: Reach) -> None:
        super().__init__(concrete=True)
        self.space = space
        self.reach = dict(reach)
        self.coordinates: dict[str, AbstractCoordinate] = {}
        self.surcharges: list[Any] = []
        self.raw = Lookup(self, _names_with_raw, _raw)
        self.is_level = Lookup(self, _names_with_levels, _is_level)
        self.is_missing = Lookup(self, _names_with_gaps, _is_missing)
        self.is_code = Lookup(self, _names_with_codes, _is_code)
        self.above = Lookup(self, _no_names, _above)
        #: What models that read the same columns have in common (``predictors/embed/embedded.py``).
        self.atoms: dict[Any, Any] = {}
        #: Columns with requests that their rows do not reflect yet.
        self._unwritten: dict[str, AbstractCoordinate] = {}
        self._is_collecting = False

    def declare(self, reference: Mapping[str, float]) -> None:
        """Create the variable containers, and a coordinate per column with its value in ``reference``."""
        for name, domain in _DOMAINS.items():
            self.add_component(name, pyo.Var(pyo.Any, dense=False, domain=domain))
        self.expressions = pyo.Expression(pyo.Any)
        for feature in self.space:
            coordinate: AbstractCoordinate
            if feature.kind == "categorical":
                coordinate = Category(self, feature, reference[feature.name])
            elif feature.is_finite:
                coordinate = Ranked(self, feature, reference[feature.name])
            else:
                coordinate = Numeric(self, feature, reference[feature.name])
            self.coordinates[feature.name] = coordinate

    # ---- what formulations use ---------------------------------------------------------------------------------------
    def coordinate(self, name: str) -> AbstractCoordinate:
        """Return the coordinate of a column; raise UnknownNameError, with the choices, for an unknown one."""
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
        """Collect the requests to the columns inside, and write the rows of each column once, at the end.

        Use it around code that builds several blocks. Outside it, rows are rewritten after every request, so the order
        of requests does not matter. If the code inside raises, its rows are written with the next request.
        """
        if self._is_collecting:  # nested: the outermost block writes
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
        """Rewrite the rows of a column now, or at the end of :meth:`collecting`."""
        self._unwritten[coordinate.name] = coordinate
        with self.collecting():
            pass  # leaving the outermost block writes

    def new_expression(self, *index: Any) -> Any:
        """Return a named expression that a coordinate fills in later."""
        self.expressions[index] = 0.0
        return self.expressions[index]

    def constant(self, value: float) -> Any:
        """Return a named expression that is a number: of a column of which nothing is left to decide."""
        if ("constant", value) not in self.expressions:
            self.expressions["constant", value] = value
        return self.expressions["constant", value]

    # ---- bounds ------------------------------------------------------------------------------------------------------
    def unbounded(self) -> str:
        """Return the name of the first column without finite bounds in reach; "" if there is none."""
        for name, part in self.reach.items():
            if isinstance(part, Interval) and not math.isfinite(part.upper - part.lower):
                return name
        return ""

    def bounds_advice(self, name: str) -> str:
        """Return the advice, for an error message, on how to bound a column."""
        return f"Set them: space.update({name!r}, lower=..., upper=...)."

    # ---- values ------------------------------------------------------------------------------------------------------
    def follow(self, variable: Any, value: Callable[[list[float]], float], of: list[Any]) -> None:
        """Register an auxiliary variable for a start; a caller's own variables have none."""

    def also_place(self, place: Callable[[Mapping[str, float]], None]) -> None:
        """Register a function for a start, likewise."""

    @abstractmethod
    def decoded(self) -> dict[str, float]:
        """Return the coordinates of the current solution."""

    def decode(self, solution: Any = None, *, cell: bool = False) -> Any:
        """Return the row as a Series in raw units and dtypes.

        Parameters
        ----------
        solution
            One of ``result.solutions``; without one, the values that the variables hold now.
        cell
            Return the cell of the answer instead, a frame with a row ``lower, upper`` for each column: between which
            values every split of the models and every rule over cuts is decided as it is. Of levels, missing cells and
            codes both are the one taken; of a number that nothing cuts the ends of its reach.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            The solution is none of this model's; or none is given, and the model was never solved.
        """
        if solution is not None:
            self._require_own(solution)
            solution.load()
        if cell:
            self.decoded()  # which refuses another row
            ends = {name: self.coordinates[name].cell_here() for name in self.space.names}
            words = {name: [self.space[name].from_coordinate(end) for end in pair] for name, pair in ends.items()}
            return pd.DataFrame.from_dict(words, orient="index", columns=["lower", "upper"])
        frame = self.space.frame([self.decoded()])
        if len(set(frame.dtypes)) > 1:  # without object, 3 years beside 1.5 would become 3.0
            frame = frame.astype(object)
        return frame.iloc[0]

    def _require_own(self, solution: Any) -> None:
        """Raise unless ``solution`` is a solution of this block's model."""
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
    r"""The block of the counterfactual row, around one person's factual row: variables for what can move.

    Parameters
    ----------
    space
        The columns: kinds, bounds, directions, steps, levels.
    row
        The factual in raw units: a Series, a dict or a one-row frame.
    reach
        Allowed values per column (interval or ranks), narrower than ``space`` implies; by default those that ``space``
        implies for this row.

    Attributes
    ----------
    raw
        As of :class:`AbstractColumns`. Reading it creates the variable of a numeric column and, where a model cuts it,
        its two link rows.
    changed, n_changed
        ``changed[name]``, 1 iff the column leaves the factual (for a number, 0 fixes it and 1 only allows a move);
        their sum, in which a move between two columns of an :class:`ExactlyOne` is one change.
    factual
        ``factual[name]``: fixed variables that hold the row. They stay there: a block belongs to one person.
    reach
        As of :class:`AbstractColumns`, after bounds, direction, immutability, levels and steps.
    charges
        Replacements, by column, for the move that costs charge; set by rules (:class:`Causal`, :class:`ExactlyOne`).
    takes_products
        Whether products of numbers (:class:`Ratio`, :class:`Product`) are to be bilinear rows wherever they can, which
        few solvers take; by default only where nothing else is exact.
    multiplied
        Who multiplies which columns by such a row.
    expands_products
        Whether some product is written value by value or digit by digit.
    unresolved
        Who has a product written digit by digit whose numbers are too large for a solver's tolerance.
    cutoff
        A :class:`CostCutoff` that no answer worth finding exceeds, where one is known: rules that embed models leave
        out what is beyond it.

    Notes
    -----
    Exact. Creates no variables by itself except for columns of levels; each formulation asks for those that it needs
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
        self._settled_with: list[Callable[[dict[str, float]], dict[str, float]]] = []
        self.multiplied: list[tuple[str, tuple[str, ...]]] = []
        self.expands_products = False
        self.unresolved: list[str] = []
        self.takes_products = False
        self.cutoff: Any = None
        self.charges: dict[str, AbstractCharge] = {}
        self.is_charged = False
        self.is_counted = False
        self.changed = Lookup(self, _names, _changed)
        describe(self, replace(_MANIFEST, columns=space.names, held=self._held))

    @property
    def n_changed(self) -> Any:
        """The number of columns that leave the factual; reading it counts as a use, see :meth:`count_changes`."""
        return self.count_changes()

    def count_changes(self, count: str = "features", *, free: Collection[str] = ()) -> Any:
        """Return the number of changed features, or of changed encoded columns (a category switch counts twice).

        The expression stays correct when more is asked of the columns; it is 0 if nothing can change. Columns in
        ``free``, and columns whose change is implied by another's (:class:`ExactlyOne`), are not counted. Rules that
        change what counts (:class:`ExactlyOne`) are refused afterwards.
        """
        self.is_counted = True
        changes = []
        with self.collecting():
            for name, coordinate in self.coordinates.items():
                is_free = name in free or isinstance(self.charge_of(name), Free)
                if coordinate.stays or is_free:
                    continue
                weight = 1.0
                if count == "columns" and isinstance(coordinate, Category):
                    weight = 2.0
                changes.append(weight * coordinate.changed())
            return sum(changes)

    def charge(self, name: str) -> AbstractCharge:
        """Return what costs charge of a column, its move or a rule's replacement, and mark the block as charged."""
        self.is_charged = True
        return self.charge_of(name)

    def charge_of(self, name: str) -> AbstractCharge:
        """Return what :meth:`charge` returns, without marking the block as charged."""
        return self.charges.get(name) or self.coordinate(name)

    # ---- values ------------------------------------------------------------------------------------------------------
    def follow(self, variable: Any, value: Callable[[list[float]], float], of: list[Any]) -> None:
        """Register an auxiliary variable of a cost: :meth:`place` sets it to ``value`` of the expressions ``of``.

        ``value`` is a function that can be pickled with the model.
        """
        self._followers.append((variable, value, of))

    def also_place(self, place: Callable[[Mapping[str, float]], None]) -> None:
        """Register a function that :meth:`place` calls with the point, before it sets the variables of :meth:`follow`.

        ``place`` takes the point and can be pickled with the model.
        """
        self._placed_with.append(place)

    def also_settle(self, settle: Callable[[dict[str, float]], dict[str, float]]) -> None:
        """Register a function that :meth:`decoded` calls with its point, for one that is right to the last digit.

        ``settle`` stays within the cells that the integer variables select, and can be pickled with the model.
        """
        self._settled_with.append(settle)

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
        """Return the coordinates of the current solution, computed from the integer variables.

        Raises
        ------
        InvalidValueError
            ``factual`` holds another row than the one that the block was made for; or nobody has solved the model.
        """
        self._held.check(self, "decode")
        self._require_values()
        point = {name: coordinate.decode() for name, coordinate in self.coordinates.items()}
        for settle in self._settled_with:
            point = settle(point)
        return point

    def _require_values(self) -> None:
        """Raise where the variables hold no values: what they stand for would be made up.

        Coordinates ``x`` hold the person's own values from the start, and say nothing.
        """
        others = (var for name in _DOMAINS if name != "x" for var in self.component(name).values())
        first = next(others, None)
        if first is None or first.value is not None or any(var.value is not None for var in others):
            return
        if all(var.value is None or var.value == self.numeric(name).begins_at for name, var in self.x.items()):
            raise InvalidValueError(
                f"decode of {self.name}", "a solution", "none is given and its variables hold no values",
                "Solve the model first, and look whether it has a solution.",
            )  # fmt: skip


def require_factual(who: str, x: Any) -> Factual:
    """Return a person's block; raise InvalidTypeError for a block without a factual to change from."""
    if not isinstance(x, Factual):
        raise InvalidTypeError(
            who, "a Factual block, as it is about a change", f"it got {type(x).__name__}",
            "Pass m.x = Factual(space, row), or state it in Pyomo over your own variables.",
        )  # fmt: skip
    return x
