"""Percentile costs: a change is as dear as the number of people it overtakes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import pandas as pd

from ceopt.formulations.columns import Free, Price, Steps
from ceopt.formulations.costs.base import AbstractCost, are_filled, require_amounts
from ceopt.formulations.costs.norms import greatest_of
from ceopt.formulations.space.dtypes import is_number_dtype
from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.space import (
    FeatureSpace,
    column_coordinates,
    complete_rows,
    point_row,
    row_mapping,
    rows_to_keep,
    taken,
)
from ceopt.solvers.checks import Choice, Floats, Instance, OrNone, Refusal, check_fields
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import Factual

_NO_FRAME = Refusal("a DataFrame", "Name columns.", "{name} is {type}", InvalidTypeError)
_CHECKS = {"kind": Choice(("max", "total_log")), "data": OrNone(Instance(pd.DataFrame, _NO_FRAME))}


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Staircase:
    """What the values of one column cost: "max" in people, that is, in units of 1 / (n + 2).

    Parameters
    ----------
    known
        Coordinates of those of the people who stand on no code, ascending.
    n_people
        n, how many people there are.
    x0
        The factual's.
    kind
        Of the cost.
    unordered
        Whether the column is categorical, and so stands for its 0/1 columns.
    """

    known: Floats
    n_people: int
    x0: float
    kind: str
    unordered: bool

    def costs(self, values: Floats) -> Floats:
        """Return the costs of coordinates (m,)."""
        costs = self._of_levels(values) if self.unordered else self._of_numbers(values)
        if self.kind == "max" and len(self.known) < self.n_people:  # percentiles are of those who stand on no code
            costs = costs * ((self.n_people + 2.0) / (len(self.known) + 2.0))
        return costs

    def _of_numbers(self, values: Floats) -> Floats:
        below = np.searchsorted(self.known, values, side="right")
        below0 = np.searchsorted(self.known, self.x0, side="right")
        if self.kind == "max":
            return np.asarray(np.abs(below - below0), dtype=np.float64)
        above = len(self.known) + 1.5 - below
        above0 = len(self.known) + 1.5 - below0
        return np.asarray(np.abs(np.log(above / above0)))

    def _of_levels(self, values: Floats) -> Floats:
        have = self._have(values)
        have0 = self._have(np.array([self.x0]))
        # Two 0/1 columns move: the level that is left and the one that is taken.
        if self.kind == "max":
            both = np.maximum(have, have0)
        else:
            both = np.log((have + 1.5) / 1.5) + np.log((have0 + 1.5) / 1.5)
        return np.where(values == self.x0, 0.0, both)

    def _have(self, values: Floats) -> Floats:
        right = np.searchsorted(self.known, values, "right")
        left = np.searchsorted(self.known, values, "left")
        return np.asarray(right - left, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Percentile(AbstractCost):
    r"""The greatest shift in percentiles, or the total of their logarithms, over the columns.

    .. math::
        \max_j |Q_j(x_j) - Q_j(x^0_j)| \qquad\text{or}\qquad
        \sum_j \left| \log \frac{1 - Q_j(x_j)}{1 - Q_j(x^0_j)} \right|, \qquad
        Q_j(v) = \frac{\#\{i : d_{ij} \le v\} + 1/2}{n + 2} \\
        t \ge c_{j0} + \sum_k (c_{jk} - c_{j,k-1})\, y_{jk} \;\; \forall j \qquad\text{("max", in the program)}

    ====== ================== ===================================================================
    symbol component          meaning
    ====== ================== ===================================================================
    d      ``data``           n people; text by its rank where it is ordered
    y      ``x.cut``          binaries between a data value and the number before it; levels
    c                         cost of cell k, or of a level; of "max" in people, 1 / (n + 2)
    t      ``x.greatest``     the greatest of them, in people
    ====== ================== ===================================================================

    A step function of the value, so exact by cuts: a number that has a coordinate gets one binary at every data value
    in its reach (and needs finite bounds), or, where :class:`AllowedValues` or :class:`AllowedRows` has left it a grid,
    those of the grid; one that only trees split needs no more than their cuts; levels have a cost each.
    "max" adds one variable and a row per column that may move. MILP. A categorical column stands for its 0/1 columns,
    of which a switch moves two. People who stand on a code do not count in that column. Weights and scales do not
    count, and a move between two data values is free.

    Parameters
    ----------
    kind
        "max" or "total_log".
    data
        The target population as a frame in raw units; by default the ``data`` of :func:`ceopt.explain`, or the rows
        given to ``Recourse.fit``. Those with missing cells are left out with a warning.

    Raises
    ------
    UnknownNameError
        Another kind.
    InvalidTypeError
        Data that is no frame; a rule charges something else than where a column ends (an intervention of a causal model
        has no percentile).
    InvalidValueError
        No data, or no row in it that is whole; a missing column; a column that can move and may hold no amount for the
        person, but a code or nothing (when built).
    UnboundedFeatureError
        A number with a coordinate has an infinite bound (when built). :class:`AllowedValues` gives it finite ones.

    Notes
    -----
    A number with thousands of data values and no grid makes a hard program; a grid of some dozen values a column, as in
    the paper, an easy one, however many rows the data has. A rule that left a grid is dropped before the cost is built:
    between the values of the grid the cost is only bounded from below.

    References
    ----------
    Ustun, Spangher & Liu (2019), Actionable recourse in linear classification: cost functions.

    Examples
    --------
    >>> import pandas as pd
    >>> from ceopt.formulations.costs import Percentile
    >>> people = pd.DataFrame({"income": [1.0, 2.0, 2.0, 5.0], "home": ["rent", "own", "own", "free"]})
    >>> costs = Percentile("max", people).table({"income": 2.0, "home": "rent"}, {"income": [2, 4, 9], "home": ["own"]})
    >>> {name: values.round(3).tolist() for name, values in costs.items()}
    {'income': [0.0, 0.0, 0.167], 'home': [0.333]}
    """

    kind: Literal["max", "total_log"]
    data: Any = None
    _known: dict[str, Any] = field(init=False, default_factory=dict)

    additive = False
    needs_amounts = "Percentile"

    def __post_init__(self) -> None:
        check_fields(self, _CHECKS)
        if self.data is not None and not len(self.data):
            raise InvalidValueError("Percentile", "a row in data", "there is none", "Give the target population.")

    def fitted(self, space: FeatureSpace, data: pd.DataFrame | None) -> Percentile:
        """Return the cost over its own data, else over that given."""
        own = self
        if self.data is None:
            own = replace(self, data=data)
        whole = complete_rows("Percentile", space, own.data)
        if whole is not own.data:
            own = replace(own, data=whole)
        own.prices(space)  # refuses what does not fit the space
        return own

    def _people(self, space: FeatureSpace) -> dict[str, Floats]:
        """Return the amounts of each column of the data as coordinates, ascending."""
        if self._known.get("space") is not space:
            coordinates = np.sort(space.coordinates(self._needed), axis=0)
            people = {}
            for feature, column in zip(space, coordinates.T, strict=True):
                people[feature.name] = column[~feature.are_labels(column)]
            self._known.update(people=people, space=space)
        known: dict[str, Floats] = self._known["people"]
        return known

    @property
    def _needed(self) -> pd.DataFrame:
        if self.data is None:
            raise InvalidValueError(
                "Percentile", "data to take percentiles of", "no data is given", "Pass data=X_train."
            )
        frame: pd.DataFrame = self.data
        return frame

    @property
    def _unit(self) -> float:
        return self._unit_of(len(self._needed))

    def _unit_of(self, n_people: int) -> float:
        if self.kind != "max":
            return 1.0
        return 1.0 / (n_people + 2.0)

    # ---- in plain numbers --------------------------------------------------------------------------------------------
    def table(self, row: Any, grid: Mapping[str, Any], *, space: FeatureSpace | None = None) -> dict[str, Floats]:
        """Return what each value of a grid costs by itself: column -> costs, in the order of its values.

        Parameters
        ----------
        row
            The factual in raw units: a Series, a dict or a one-row frame.
        grid
            Column -> values in raw units.
        space
            What the columns are. By default numbers are numbers, and other columns what
            :meth:`FeatureSpace.infer` guesses from the data.
        """
        data = taken(self._needed, rows_to_keep("Percentile", space, self._needed, word="data"))
        home = row_mapping(row)
        unit = self._unit_of(len(data))
        return {name: unit * self._tabled(data, home, name, values, space) for name, values in grid.items()}

    def _tabled(
        self, data: pd.DataFrame, home: Mapping[Any, Any], name: str, values: Any, space: FeatureSpace | None
    ) -> Floats:
        for what, known in (("data", data.columns), ("row", home)):
            if name not in known:
                raise UnknownNameError.among("Percentile.table", f"column of the {what}", name, list(known))
        if space is not None:
            feature = space[name]
        elif is_number_dtype(data[name].dtype):
            feature = Feature(name, kind="continuous")
        else:
            feature = infer_features(data[[name]])[0]
        people = np.sort(column_coordinates(feature, data[name]))
        people = people[~feature.are_labels(people)]
        own = feature.to_coordinate(home[name])
        stairs = _Staircase(people, len(data), own, self.kind, feature.kind == "categorical")
        return stairs.costs(np.array(list(map(feature.to_coordinate, values))))

    def objectives(self, space: FeatureSpace, factual: Mapping[str, float], points: Floats) -> Floats:
        """Return the costs of many points."""
        stairs = self._stairs(space, factual)
        costs = np.stack([stairs[name].costs(points[:, j]) for j, name in enumerate(space.names)], axis=1)
        costs[are_filled(space, factual, points)] = np.inf
        return np.asarray(self._unit * (costs.max(axis=1) if self.kind == "max" else costs.sum(axis=1)))

    def value(self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]) -> float:
        """Return the cost of a point."""
        return float(self.objectives(space, factual, point_row(space, point))[0])

    def column_costs(
        self, space: FeatureSpace, factual: Mapping[str, float], point: Mapping[str, float]
    ) -> dict[str, float]:
        """Return what each column's value costs by itself."""
        stairs = self._stairs(space, factual)
        costs = {name: self._unit * float(s.costs(np.array([point[name]]))[0]) for name, s in stairs.items()}
        is_filled = are_filled(space, factual, point_row(space, point))[0].tolist()
        return costs | dict.fromkeys(compress(space.names, is_filled), math.inf)

    def cost_of(self, column_costs: Iterable[float]) -> float:
        """Return the greatest of the columns' own costs, or their sum."""
        if self.kind == "max":
            return max(column_costs, default=0.0)
        return float(sum(column_costs))

    def _stairs(self, space: FeatureSpace, factual: Mapping[str, float]) -> dict[str, _Staircase]:
        people = self._people(space)
        n = len(self._needed)
        stairs = {}
        for feature in space:
            name = feature.name
            stairs[name] = _Staircase(people[name], n, factual[name], self.kind, feature.kind == "categorical")
        return stairs

    def prices(self, space: FeatureSpace) -> dict[str, tuple[Price, ...]]:
        """Return none: a cost of the value has no bound by the move."""
        self._people(space)
        return dict.fromkeys(space.names, ())

    # ---- in the program ----------------------------------------------------------------------------------------------
    def build(self, x: Factual) -> Any:
        """Return the objective, after adding the cuts at data values and, for "max", the variable t and its rows."""
        require_amounts(self.needs_amounts, x.space, x.point, x.reach)
        stairs = self._stairs(x.space, x.point)
        terms = {}
        for name, people in self._people(x.space).items():
            charge = x.charge(name)
            if name in x.charges and not isinstance(charge, Free):
                raise InvalidTypeError(
                    "Percentile", "columns that cost what their value costs",
                    f"a rule charges an intervention on column {name!r} instead", "Use L1(), or intervention='none'.",
                )  # fmt: skip
            if not charge.stays:
                terms[name] = x.coordinate(name).price(Steps(stairs[name].costs, np.unique(people)))
        if self.kind == "max":
            return self._unit * greatest_of(x, terms)
        return sum(terms.values())

    def __repr__(self) -> str:
        data = ""
        if self.data is not None:
            data = f", data=<{len(self.data)} rows>"
        return f"Percentile({self.kind!r}{data})"
