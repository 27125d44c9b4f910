"""One random question: a person, a model, a target, a cost, rules, and every point that could be the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import enumeration
import numpy as np
from judging import models
from judging.columns import LATTICE, NUMERIC, Floats, Rng, draw_space, is_lattice, lattice, pick, reach, step_of
from judging.estimators import MAKERS
from judging.lines import levels_of, turns
from judging.models import Fitted
from judging.narrow import NarrowQuestion, draw_narrow
from judging.thresholds import read_columns, sides
from judging.wide import Halfspace, draw_halfspace
from judging.wishes import Cost, draw_cost, draw_rules, draw_target, keeps, meets
from numpy.typing import NDArray

import ceopt
from ceopt.formulations.space import FeatureSpace
from ceopt.formulations.targets import Disagreement, Probability

#: Kinds whose answers are enumerated.
ENUMERATED = ("linear", "tree", "forest", "boosting", "network", "votes")
#: What they are asked otherwise: trees counted one by one, columns of neighbouring floats, columns that vary little
#: beside their size, and advice that is polished.
KINDS = (*ENUMERATED, "disagreement", "neighbours", "narrow", "polish")
TREES = ("tree", "forest", "boosting", "votes")
#: Points that a question may have at most; one with more is drawn again.
MOST = 12_000
#: A number without a step counts as changed once it moves by this share of its range.
LEAST_MOVE = 1e-3


class AgainError(Exception):
    """The question cannot be enumerated as drawn: it is drawn again, and counted."""


@dataclass(frozen=True)
class Question:
    """What ``explain`` is asked, and all points (n, d) that could be an answer, with the cost of each."""

    kind: str
    space: FeatureSpace
    home: Floats
    model: Fitted
    target: Any
    cost: Cost
    rules: tuple[Any, ...]
    options: dict[str, Any]
    points: Floats
    costs: Floats
    good: NDArray[np.bool_]
    tags: tuple[str, ...]
    redrawn: tuple[str, ...] = ()
    #: Whether the cost of an answer may lie above the infimum by the share that margins may take.
    open_end: bool = False
    cells: dict[int, Floats] = field(default_factory=dict)
    stays: tuple[int, ...] = ()
    #: Columns whose move inside a cell is another answer by "pool": levels, and numbers that not only trees read.
    counted: tuple[int, ...] = ()
    asked_alone: dict[int, bool] = field(default_factory=dict)

    @property
    def best(self) -> float | None:
        """The least cost of all, or None."""
        return self.least(self.good)

    def least(self, left: NDArray[np.bool_]) -> float | None:
        """Return the least cost of some points, or None.

        Sums over columns may round differently in a batch: where a point is a tie, the model is asked about it alone.
        """
        for place in np.argsort(self.costs, kind="stable"):
            if left[place] and (self.kind in TREES[:3] or self._alone(int(place))):
                return float(self.costs[place])
        return None

    def _alone(self, place: int) -> bool:
        if place not in self.asked_alone:
            self.asked_alone[place] = bool(meets(self.model, self.target, self.points[[place]])[0])
        return self.asked_alone[place]


@dataclass(frozen=True)
class PolishQuestion:
    """A question of one answer, what a generator advises, and how dear its advice may be."""

    asked: Question
    advice: Floats
    max_ratio: float

    @property
    def options(self) -> dict[str, Any]:
        """The options of the question."""
        return self.asked.options


Asked: TypeAlias = Question | Halfspace | NarrowQuestion | PolishQuestion


def polish_of(rng: Rng, question: Question) -> PolishQuestion:
    """Return a question of a label with advice: a point that is good, one that is not, or one out of reach."""
    labels = question.model.labels
    if labels is None or question.options["n"] > 1 or not isinstance(question.target, (str, int, np.generic)):
        raise AgainError("polish asks for one label")
    if question.model.unordered:
        raise AgainError("polish, and trees that add up in no fixed order")
    good = np.flatnonzero(question.good)
    if len(good) and rng.uniform() < 0.6:
        advice = question.points[int(pick(rng, *good.tolist()))].copy()
    else:
        advice = question.points[int(rng.integers(len(question.points)))].copy()
    return PolishQuestion(question, advice, float(pick(rng, 1.0, 1.0, 1.2, 1.5, 2.0, 5.0)))


def draw(kind: str, number: int, *, seed: int, solvers: Sequence[str]) -> Asked:
    """Return question ``number`` of a kind; the same seed gives the same question. Of linear ones a third is wide."""
    redrawn: list[str] = []
    for attempt in range(100):
        rng = np.random.default_rng([seed, KINDS.index(kind), number, attempt])
        if kind == "linear" and number % 3 == 2:
            return draw_halfspace(rng, str(pick(rng, *solvers)))
        try:
            return _drawn(rng, kind, number, solvers, tuple(redrawn))
        except AgainError as why:
            redrawn.append(str(why))
    raise AssertionError(redrawn)


def _drawn(rng: Rng, kind: str, number: int, solvers: Sequence[str], redrawn: tuple[str, ...]) -> Asked:
    if kind == "narrow" or (kind == "neighbours" and number % 3 == 2):
        narrow = draw_narrow(rng, str(pick(rng, *solvers)), floats=kind == "neighbours")
        if narrow is None:
            raise AgainError("the model puts everybody in the target")
        return narrow
    if kind == "polish":
        question = _draw(rng, str(pick(rng, "linear", "tree", "forest", "boosting")), solvers, redrawn)
        return polish_of(rng, question)
    if kind == "disagreement":
        return _draw(rng, "forest", solvers, redrawn, disagree=True)
    if kind == "neighbours":
        sort = str(pick(rng, "near32", "near64"))
        return _draw(rng, str(pick(rng, "tree", "forest", "boosting", "boosting")), solvers, redrawn, sort=sort)
    return _draw(rng, kind, solvers, redrawn)


def _draw(
    rng: Rng, kind: str, solvers: Sequence[str], redrawn: tuple[str, ...], *, sort: str = "", disagree: bool = False
) -> Question:
    model, home, line = _model(rng, kind, sort)
    if disagree and (model.unordered or not hasattr(_last(model), "estimators_")):
        raise AgainError("no trees that are counted one by one")
    space = model.space
    lattice_only = all(is_lattice(f) for f in space)
    n = int(pick(rng, 1, 1, 1, 2, 3, 4))
    rules = draw_rules(rng, space, home)
    cost = draw_cost(rng, space, home, lattice_only=lattice_only, cuttable=lattice_only)
    points = _lattice_points(model, home, line, rules, n > 1)
    target = draw_target(rng, model, points, home, smooth=kind not in TREES)
    if disagree:
        if isinstance(target, Probability):
            raise AgainError("a probability, which no tree decides")
        target = Disagreement(target, float(pick(rng, 0.0, 0.1, 0.2, 0.25, 1 / 3, 0.5)))
    if line is not None:
        points = _with_turns(model, points, home, line, levels_of(model, target))
    moves = enumeration.Moves(space, points - home)
    costs = np.asarray(cost.price(moves, points), dtype=float)
    options: dict[str, Any] = {"n": n, "solver": str(pick(rng, *solvers)), "time_limit_s": 30.0}
    form = _formulation(rng, kind)
    options["formulation"] = form if kind != "votes" or _has_trees(_last(model)) else "auto"
    if n > 1:
        options["diversity"] = _diversity(rng, lattice_only=lattice_only)
    _refuse_open(space, kind, options, cost, rules)
    good = meets(model, target, points) & keeps(rules, space, home, points)
    if model.unordered:
        clear = clear_of_ties(model, target, points)
        good = good & clear
        if not clear[0]:
            raise AgainError("the person stands on a tie that is added up in no fixed order")
    weighed = _weighed(cost, space, home)
    return Question(
        kind, space, home, model, target, cost, rules, options, points, costs, good,
        _tags(model, kind, rules), redrawn, open_end=line is not None,
        cells=_cells(model, rules), stays=_stays(model, rules, weighed),
        counted=_counted(model, kind, rules, weighed),
    )  # fmt: skip


# ---- model and columns -----------------------------------------------------------------------------------------------
def _model(rng: Rng, kind: str, sort: str = "") -> tuple[Fitted, Floats, int | None]:
    """Return a model over a random space, the person, and the column along which decisions turn anywhere."""
    d = int(rng.integers(1, 5))
    arrays = (
        rng.uniform() < {"tree": 0.2, "forest": 0.3, "boosting": 0.2, "votes": 0.0, "linear": 0.4, "network": 0.5}[kind]
    )
    sorts = [str(pick(rng, *LATTICE)) for _ in range(d)]
    if rng.uniform() < 0.25:
        sorts[int(rng.integers(d))] = "coarse"
    line = None
    if kind in {"linear", "network"}:
        if rng.uniform() < 0.5:
            line = int(rng.integers(d))
            sorts[line] = str(pick(rng, "wide", "wide", "free", *(("open",) if kind == "linear" else ("free",))))
    else:
        for j in range(d):
            if rng.uniform() < 0.3:
                sorts[j] = str(pick(rng, "free", "wide", "open"))
    if sort:
        sorts[int(rng.integers(d))] = sort
    if rng.uniform() < 0.3:
        # A model that is fitted on the array itself: numbers only.
        sorts = [sort if sort in NUMERIC else str(pick(rng, "small", "flag", "ranked")) for sort in sorts]
    if arrays:
        sorts = ["coded" if sort == "categorical" else sort for sort in sorts]  # a matrix has no text
    space, home = draw_space(rng, sorts)
    if line is not None and is_lattice(space[space.names[line]]):
        line = None  # it cannot move
    return _built(rng, kind, space, home, arrays=arrays), home, line


def _built(rng: Rng, kind: str, space: FeatureSpace, home: Floats, *, arrays: bool) -> Fitted:
    if arrays and kind == "linear":
        return models.affine(rng, space, what=pick(rng, "value", "score", "logistic", "scores"))
    if arrays and kind == "network":
        return models.network(rng, space, what=pick(rng, "value", "score", "logistic", "scores"))
    if arrays:
        what = pick(rng, "value", "score", "scores", "shares")
        return models.ensemble(rng, space, what=what, most=1 if kind == "tree" else 5)
    classes = int(pick(rng, 0, 0, 2, 2, 2, 3, 4))
    make = MAKERS[kind](rng, classes, int(rng.integers(1 << 20)))
    scale = bool(rng.uniform() < (0.75 if kind in {"linear", "network"} else 0.3))
    scale = scale and any(not f.is_finite for f in space)
    n = int(pick(rng, 12, 30, 60, 120))
    try:
        fitted = models.fitted(rng, space, home, make, classes=classes, n=n, scale=scale)
    except ValueError as error:
        raise AgainError(f"the library refuses to fit: {type(make).__name__}: {str(error)[:60]}") from error
    unordered = getattr(make, "n_jobs", None) == 2 and kind == "forest"
    if kind == "votes" and _has_linear(make) and not all(is_lattice(f) for f in space):
        raise AgainError("a vote with linear members over a column that is not written out")
    object.__setattr__(fitted, "unordered", unordered)
    return fitted


def _has_linear(make: Any) -> bool:
    return any("linear_model" in type(m).__module__ or "svm" in type(m).__module__ for _, m in make.estimators)


def _has_trees(make: Any) -> bool:
    """Tell whether a vote has a member to which the forms of trees apply; without one they are refused by name."""
    return any(hasattr(member, "tree_") or hasattr(member, "estimators_") for member in make.estimators_)


def _refuse_open(space: FeatureSpace, kind: str, options: dict[str, Any], cost: Cost, rules: Sequence[Any]) -> None:
    """Draw again what the package refuses by name: forms and counts that need bounds, of a column without."""
    if all(f.is_finite or not f.mutable or math.isfinite(f.upper - f.lower) for f in space):
        return
    counted = cost.name in {"l0", "sum"} or any(type(rule).__name__ == "MaxChanges" for rule in rules)
    if options["n"] > 1 or options["formulation"] in {"misic", "leaf"} or (kind not in TREES and counted):
        raise AgainError("a column without bounds, in a form or a count that needs them")


def _formulation(rng: Rng, kind: str) -> str:
    if kind in TREES:
        return str(pick(rng, "auto", "ordered", "misic", "leaf"))
    return str(pick(rng, "auto", "bigm", "partition", "extended")) if kind == "network" else "auto"


def _diversity(rng: Rng, *, lattice_only: bool) -> Any:
    words = ["pool", "pool", "support", "support", "incumbents"]
    if lattice_only:
        words += ["apart", "apart"]
    word = pick(rng, *words)
    if word != "apart":
        return word
    return ceopt.Apart(float(pick(rng, 0.5, 1.0, 1.5)), cost=str(pick(rng, "l1", "l0", "linf")))


# ---- points ----------------------------------------------------------------------------------------------------------
def _lattice_points(model: Fitted, home: Floats, line: int | None, rules: Sequence[Any], several: bool) -> Floats:
    """Return every combination of the values that matter, the person first."""
    columns, size = [], 1
    for j, feature in enumerate(model.space):
        x0 = float(home[j])
        values = {x0}
        low, high = reach(feature, x0)
        if j == line:
            values |= {v for v in (low, high) if math.isfinite(v)}
        elif is_lattice(feature):
            values |= set(lattice(feature, x0))
        else:
            values |= {v for v in (low, high) if math.isfinite(v)}
            whole = feature.kind == "integer"
            values |= {v for pair in sides(model, j, whole=whole) for v in pair if low <= v <= high}
        if several and not is_lattice(feature):
            values |= {v for v in least_moves(feature, x0) if low <= v <= high}
        if feature.kind == "integer":
            values = {v for v in values if v == math.floor(v)}
        columns.append(sorted(values, key=lambda v, x0=x0: (v != x0, v)))
        size *= len(values)
    if size > MOST:
        raise AgainError(f"more than {MOST} points")
    return enumeration.product(columns)


def least_moves(feature: Any, x0: float) -> list[float]:
    """Return the values that count as changed and are nearest."""
    step = step_of(feature)
    if step is None:
        width = feature.upper - feature.lower
        step = LEAST_MOVE * (width if math.isfinite(width) and width > 0 else 1.0)
    # Where the range is a few floats, the next float is farther than that.
    return [min(x0 - step, math.nextafter(x0, -math.inf)), max(x0 + step, math.nextafter(x0, math.inf))]


def _with_turns(model: Fitted, points: Floats, home: Floats, line: int, levels: list[float]) -> Floats:
    """Add to each row the values of the line's column around which a decision turns."""
    feature = model.space[model.space.names[line]]
    low, high = reach(feature, float(home[line]))
    others = points.copy()
    others[:, line] = home[line]
    others = np.unique(others, axis=0)
    added = [points]
    for row, places in zip(others, turns(model, others, line, levels, low, high), strict=True):
        if feature.kind == "integer":
            near = {math.floor(v) + k for v in places.tolist() for k in (-2, -1, 0, 1, 2, 3)}
        else:
            size = max(abs(low) if math.isfinite(low) else 0.0, abs(high) if math.isfinite(high) else 0.0, 1.0)
            near = {v + k * size * 1e-11 for v in places.tolist() for k in (-100, -1, 0, 1, 100)}
        inside = np.array(sorted(v for v in near if low <= v <= high))
        block = np.repeat(row[None, :], len(inside), axis=0)
        block[:, line] = inside
        added.append(block)
    every = np.unique(np.concatenate(added), axis=0)
    if len(every) > MOST:
        raise AgainError(f"more than {MOST} points")
    here = (every == home).all(axis=1)
    return np.concatenate([every[here], every[~here]])


def _weighed(cost: Cost, space: FeatureSpace, home: Floats) -> set[int]:
    """Return the numbers that a row of the cost reads, as it weighs several together: their moves make answers differ.

    Under a covariance a column that the model never reads moves for the sake of another one, and goes back.
    """
    if cost.name != "mahalanobis":
        return set()
    found = {j for j, f in enumerate(space) if not f.is_finite and len(lattice(f, float(home[j]))) > 1}
    return found if len(found) > 1 else set()


def _stays(model: Fitted, rules: Sequence[Any], weighed: set[int]) -> tuple[int, ...]:
    """Return the numbers that no row reads, of model, rule or cost: to move one is another answer in name only."""
    named = {name for rule in rules for name in _named(rule)}
    read = read_columns(model) | weighed
    return tuple(j for j, f in enumerate(model.space) if not f.is_finite and j not in read and f.name not in named)


def _counted(model: Fitted, kind: str, rules: Sequence[Any], weighed: set[int]) -> tuple[int, ...]:
    """Return the columns that count as changed by a move inside a cell of trees (docs/how_to/pools.md)."""
    only_trees = kind in TREES and not (kind == "votes" and _has_linear(_last(model)))
    summed = {name for rule in rules if type(rule).__name__ == "Linear" for name in rule.coefficients}
    # What a rule wants to see changed has to move, inside its cell too: the rule reads the number itself.
    summed |= {name for rule in rules if type(rule).__name__ == "IfThen" for name in _demanded(rule)}
    return tuple(
        j for j, f in enumerate(model.space) if f.is_finite or not only_trees or f.name in summed or j in weighed
    )


def _last(model: Fitted) -> Any:
    return model.given[-1] if hasattr(model.given, "named_steps") else model.given


def _named(rule: Any) -> list[str]:
    match type(rule).__name__:
        case "AllowedValues":
            return list(rule.values)
        case "AllowedRows":
            return list(rule.columns)
        case "AllowedTransitions":
            return [rule.column]
        case "Linear":
            return list(rule.coefficients)
        case "IfThen":
            return [side[0] for side in (rule.condition, rule.conclusion) if side[1] != "changed"] + _demanded(rule)
    return []


def _demanded(rule: Any) -> list[str]:
    """Return the columns that a rule wants to see changed; one that it may only forbid to move, it does not read."""
    parts = ((rule.condition, False), (rule.conclusion, True))
    return [side[0] for side, wanted in parts if side[1:] == ("changed", wanted)]


def _cells(model: Fitted, rules: Sequence[Any]) -> dict[int, Floats]:
    """Return the least values of the cells of each column of numbers: of thresholds, and of rules that cut it."""
    found = {}
    for j, feature in enumerate(model.space):
        if not feature.is_finite:
            ends = [right for _, right in sides(model, j, whole=False)]
            ends += [end for rule in rules for end in _cuts_of(rule, feature.name)]
            found[j] = np.unique(ends)
    return found


def _cuts_of(rule: Any, name: str) -> list[float]:
    """Return the least value of each cell that a rule makes of a column."""
    match type(rule).__name__:
        case "AllowedValues" if name in rule.values:
            return [float(v) for v in rule.values[name]]
        case "AllowedRows" if name in rule.columns:
            return [float(v) for v in rule.frame[name]]
        case "IfThen":
            ends = []
            for column, op, value in (rule.condition, rule.conclusion):
                if column != name or op == "changed":
                    continue
                values = list(value) if op == "in" else [value]
                ends += [float(v) for v in values if op != "<="]
                ends += [math.nextafter(float(v), math.inf) for v in values if op != ">="]
            return ends
    return []


def clear_of_ties(model: Fitted, target: Any, points: Floats) -> NDArray[np.bool_]:
    """Return which points lie clear of a tie of a mean that is added up in no fixed order."""
    if model.labels is None:
        said = model.predict(points)
        ends = [getattr(target, word) for word in ("value", "low", "high") if hasattr(target, word)]
        return np.asarray(np.min([np.abs(said - end) > 1e-9 * max(1.0, abs(end)) for end in ends], axis=0))
    assert model.chance is not None
    chances = np.asarray(model.chance(model.seen(points)), dtype=float)
    if hasattr(target, "at_least"):
        return np.asarray(np.abs(model.probability(points, target.label) - target.at_least) > 1e-9)
    labels = list(model.labels)
    wanted = [label for label in labels if label != target.label] if hasattr(target, "label") else target
    wanted = list(wanted) if isinstance(wanted, set | list) else [wanted]
    inside = [k for k, label in enumerate(labels) if label in wanted]
    outside = [k for k in range(len(labels)) if k not in inside]
    return np.asarray(np.abs(chances[:, inside].max(axis=1) - chances[:, outside].max(axis=1)) > 1e-9)


def _tags(model: Fitted, kind: str, rules: Sequence[Any]) -> tuple[str, ...]:
    """Say what is special about a question, for the report."""
    found = []
    widths = [f.upper - f.lower for f in model.space if not f.is_finite and f.mutable]
    if any(1e8 <= width < math.inf for width in widths):
        found.append("wide")
    if kind == "network" and any(width > 1e3 for width in widths) and not model.scaled:
        found.append("unscaled")
    if rules:
        found.append("rules")
    return tuple(found)
