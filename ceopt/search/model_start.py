"""Where a caller's own program begins: at a person's row that he names, or at one that the start search finds."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.reaches import Reaches, slack
from ceopt.formulations.predictors.ties import encoding_rounding
from ceopt.formulations.space.space import point_row
from ceopt.oracle.model import ModelOracle
from ceopt.oracle.rows import points_of
from ceopt.search.near_values import NearValues, met_alone
from ceopt.search.prepare import Prepared
from ceopt.settings import INCUMBENTS, Settings
from ceopt.solvers.checks import Floats, is_number
from ceopt.solvers.compile.compiled_model import compile_model
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.solvers.start import broken_row
from ceopt.tolerances import START_MARGIN_ROUNDING

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.targets import Target
    from ceopt.solvers.compile.compiled_model import CompiledModel

_WHO: Final = "start"
#: Share of the time after which a search that has found something ends.
_WITH_SOMETHING: Final = 0.5
#: Points that are wanted of a search, with other columns changed each.
_WANTED: Final = 10
#: Points that are tried against the rows of the program, at most.
_MOST_TRIED: Final = 50

Point = dict[str, float]


def start(model: Any, row: Any = None, *, time_limit_s: float = 10.0, random_state: int = 0) -> Any:
    """Return values of a program's Vars to begin from: ``solve(m, start=ceopt.start(m))``.

    Parameters
    ----------
    model
        A ConcreteModel with :class:`~ceopt.formulations.Factual` blocks, and what was built on them: embedded models,
        :class:`~ceopt.formulations.Reaches`, margins, rules and costs.
    row
        The row, in raw units, that a block's columns are to begin at; for several blocks a DataFrame or a list with one
        for each, in the order in which they stand in the model. Where trees alone cut a column, its cell counts. None:
        the search of :func:`ceopt.explain` looks for rows that reach every target at a low cost and keep the rules that
        were imposed.
    time_limit_s
        Seconds for the search.
    random_state
        Seed of the search.

    Returns
    -------
    pyomo.environ.ComponentMap
        Var -> value: the Vars of the columns, of the models, of margins, rules and costs. Vars of the caller's own, and
        the binaries by which a target of several labels chooses, are left to the solver. The model's own values stay.
        Of a search None, where no row was found that keeps the program's rows; also where no such Var is left, as of a
        person who cannot move.

    Notes
    -----
    A target is one of a ``Reaches`` without ``when``; of a model without one those of the margins that were asked for.
    Of the rows that are found that with the best objective is taken, or the first, where the objective has other Vars.

    Raises
    ------
    InvalidTypeError
        No model, or one without such a block.
    InvalidValueError
        A row that the person cannot become, by the column; more or fewer rows than blocks.
    UnsupportedProblemError
        Of a search: the program is of no class that is solved here.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt import start
    >>> from ceopt.formulations import Factual, Reaches, embed, l1
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("income", kind="continuous", lower=0, upper=9)])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"income": 2.0})
    >>> m.predictor = embed(Affine([1.0], -3.0, labels=("bad", "good")), m.x)
    >>> m.valid = Reaches(m.predictor, "good")
    >>> m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    >>> values = start(m, {"income": 5.0})
    >>> values[m.x.x["income"]]
    5.0
    """
    blocks = _blocks(model)
    if not is_number(time_limit_s) or not time_limit_s > 0.0:
        raise InvalidValueError(_WHO, "seconds above zero", f"time_limit_s is {time_limit_s!r}", "Give some.")
    if row is not None:
        rows = _rows(row, len(blocks))
        points = [_reachable(block, one) for block, one in zip(blocks, rows, strict=True)]
        return ProgramValues(model, blocks).at(points) or None
    deadline = time.perf_counter() + time_limit_s
    found = []
    for number, block in enumerate(blocks):
        share = (deadline - time.perf_counter()) / (len(blocks) - number)
        found.append(_points_of(_OwnProgram.of(model, block), share, random_state))
    return _best(model, blocks, found)


def _blocks(model: Any) -> list[Factual]:
    """Return the persons' blocks of a model."""
    if not hasattr(model, "component_data_objects"):
        but = f"it got {type(model).__name__}"
        raise InvalidTypeError(_WHO, "a Pyomo model", but, "Build a ConcreteModel with m.x = Factual(space, row).")
    blocks = [block for block in _parts(model) if isinstance(block, Factual)]
    if not blocks:
        then = "Build one with m.x = Factual(space, row); of a model without, name the values: solve(m, start=...)."
        raise InvalidTypeError(_WHO, "a model with a Factual block", f"{model.name!r} has none", then)
    return blocks


def _parts(model: Any) -> Iterator[Any]:
    yield from model.component_data_objects(pyo.Block, active=True, descend_into=True)


def _rows(row: Any, count: int) -> list[Any]:
    """Return one row for each block."""
    if isinstance(row, pd.DataFrame):
        rows = [row.iloc[[k]] for k in range(len(row))]
    elif isinstance(row, list | tuple):
        rows = list(row)
    else:
        rows = [row]
    if len(rows) != count:
        but = f"it got {len(rows)}"
        then = "Give a DataFrame or a list with one for each, in the order in which the blocks stand."
        raise InvalidValueError(_WHO, f"{count} row{'s' * (count > 1)}, one for each Factual block", but, then)
    return rows


def _reachable(block: Factual, row: Any) -> Point:
    """Return the coordinates of a row that the person can become."""
    point: Point = block.space.row(row)
    for name, part in block.reach.items():
        if not part.holds(point[name]):
            feature = block.space[name]
            but = f"column {name!r} gets {feature.from_coordinate(point[name])!r}"
            then = "Keep to its bounds, direction, steps and levels, as the space says."
            raise InvalidValueError(_WHO, f"a row that {block.name} can become", but, then)
    return point


# ---- the values of a program at points -------------------------------------------------------------------------------
@final
class ProgramValues:
    """What the Vars of a program take where its blocks' columns are at points."""

    __slots__ = ("_blocks", "_variables")

    def __init__(self, model: Any, blocks: Sequence[Factual]) -> None:
        #: Each person's block, with the models over it.
        self._blocks: dict[int, tuple[Factual, list[AbstractEmbedded]]] = {id(block): (block, []) for block in blocks}
        for part in _parts(model):
            if isinstance(part, AbstractEmbedded) and id(part.x) in self._blocks:
                self._blocks[id(part.x)][1].append(part)
        self._variables = [var for var in model.component_data_objects(pyo.Var, descend_into=True) if not var.fixed]

    def at(self, points: Sequence[Mapping[str, float]]) -> Any:
        """Return Var -> value where the blocks' columns are at points; the Vars keep what they hold."""
        before = [var.value for var in self._variables]
        for var in self._variables:
            var.set_value(None, skip_validation=True)
        try:
            for (block, embedded), point in zip(self._blocks.values(), points, strict=True):
                for part in embedded:
                    part.place(point)
                block.place(point)  # last, as costs and margins may follow from what a model's Vars hold
            return pyo.ComponentMap((var, var.value) for var in self._variables if var.value is not None)
        finally:
            for var, value in zip(self._variables, before, strict=True):
                var.set_value(value, skip_validation=True)


# ---- the search ------------------------------------------------------------------------------------------------------
@final
@dataclass(frozen=True, slots=True, eq=False)
class _OwnProgram:
    """What a program asks of one person's row.

    Parameters
    ----------
    block
        The person's block.
    asked
        Each model with a target and the least slack of its decision.
    rules
        The rules that were imposed.
    """

    block: Factual
    asked: tuple[tuple[Predictor, Target, float], ...]
    rules: tuple[AbstractRule, ...]

    @classmethod
    def of(cls, model: Any, block: Factual) -> _OwnProgram:
        """Collect what stands on a block."""
        asked = []
        rules = []
        by_row = set()
        embedded = []
        for part in _parts(model):
            if isinstance(part, Reaches) and part.embedded.x is block and part.when is None:
                asked.append(_with_least_slack(block, part.embedded.predictor, part.target, part.margin))
                by_row.add(id(part.embedded))
            elif isinstance(part, AbstractEmbedded) and part.x is block:
                embedded.append(part)
            rule, on = getattr(part, "imposed", (None, None))
            if rule is not None and on is block:
                rules.append(rule)
        for part in embedded:
            if id(part) not in by_row:
                for target, margin in part.margins.items():
                    asked.append(_with_least_slack(block, part.predictor, target, margin.slack))
        return cls(block, tuple(asked), tuple(rules))

    def slacks(self, points: Floats) -> Floats:
        """Return by how much rows of coordinates (n, d) reach every target beyond its margin, (n,)."""
        found = np.full(len(points), np.inf)
        for predictor, target, least in self.asked:
            places = [self.block.space.names.index(name) for name in predictor.space.names]
            found = np.minimum(found, slack(predictor, points[:, places], target) - least)
        return np.where(np.isfinite(found), found, 1.0)


def _with_least_slack(
    block: Factual, predictor: Predictor, target: Target, margin: float
) -> tuple[Predictor, Target, float]:
    """Return a model and a target with the slack that keeps the margin, in the rounding of the person's numbers too."""
    least = margin * (1.0 + START_MARGIN_ROUNDING)
    if margin > 0.0:
        least += encoding_rounding(predictor, block.point, block.reach)
    return predictor, target, least


def _points_of(question: _OwnProgram, seconds: float, seed: int) -> list[Point]:
    """Return rows for one person that reach what is asked: as it is, where that does, and the cheapest first."""
    block = question.block
    points = []
    if question.slacks(point_row(block.space, block.point))[0] >= 0.0:
        points.append(dict(block.point))
    began = time.perf_counter()
    deadlines = (began + _WITH_SOMETHING * seconds, began + seconds)
    for predictor, target, margin in question.asked:
        if predictor.space.names != block.space.names:
            continue  # a model over some of the columns, or in another order, has no places for the others
        prepared = _prepared(predictor, target, margin, question.rules, seed)
        search = NearValues(prepared, question.slacks)
        found = met_alone(search, prepared, (block.point, block.reach), deadlines)
        points += points_of(block.space, found.points)
    return points


def _prepared(
    predictor: Predictor, target: Target, margin: float, rules: tuple[AbstractRule, ...], seed: int
) -> Prepared:
    """Return the question of a person's cheapest row that a model alone puts in a target."""
    space = predictor.space
    asked = Settings(target=target, n=_WANTED, diversity=INCUMBENTS, random_state=seed)
    settings = replace(asked.check(space, predictor.labels), rules=rules, margin=margin)
    oracle = ModelOracle(predictor, space)
    return Prepared(predictor, oracle, space, settings, margin, margin, asks_model=False, is_reproducible=True)


def _best(model: Any, blocks: Sequence[Factual], found: Sequence[list[Point]]) -> Any:
    """Return the values at the rows that keep the program and have the best objective; None if none keeps it."""
    if not all(found):
        return None
    compiled = compile_model(model)
    placed = ProgramValues(model, blocks)
    best: Any = None
    best_objective = np.inf
    for k in range(min(max(map(len, found)), _MOST_TRIED)):
        points = [rows[min(k, len(rows) - 1)] for rows in found]
        values = placed.at(points)
        by_column = {compiled.index[var]: value for var, value in values.items() if var in compiled.index}
        if broken_row(compiled, by_column) is not None:
            continue
        objective = _objective(compiled, by_column)
        if best is None or objective < best_objective:
            best, best_objective = values, objective
    return best or None


def _objective(compiled: CompiledModel, values: Mapping[int, float]) -> float:
    """Return the objective, the less the better; infinite where a Var of it has no value yet."""
    x = np.where(compiled.lb == compiled.ub, compiled.lb, np.nan)
    x[list(values)] = list(values.values())
    is_open = np.isnan(x)
    used = compiled.c != 0.0
    if compiled.Q is not None:
        for places in compiled.Q.nonzero():
            used[places] = True
    if (used & is_open).any():
        return math.inf
    return compiled.sense * compiled.evaluate(np.where(is_open, 0.0, x))
