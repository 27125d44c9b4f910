"""Columns that vary little beside their size: the model's own ``predict`` along lines is the judge.

A frame of ordinary columns and of one or two narrow ones, ``base * (1 + rel * u)`` with rel from 1e-3 to 1e-14, that
stay or move, behind a scaler and a linear model or a network. Along each column that may move, and along the way from
the person to the answer, ``predict`` is asked until two neighbouring floats are found between which it turns: what
turns there is in reach, so nothing can be proved that contradicts it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from judging.columns import Floats, Rng, pick
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC

from ceopt.formulations.space import FeatureSpace
from ceopt.formulations.targets import AtLeast

#: Share by which a claim may lie above the infimum: what margins may take, and the relative gap.
ALLOWED = 1e-5 + 2e-6
#: Points of a line that are asked before turns are looked for between them.
ON_A_LINE = 257
#: Roundings that one number takes on its way through a scaler and into a sum.
ROUNDINGS = 4

_LINEAR: tuple[Callable[[], Any], ...] = (
    LogisticRegression,
    LinearSVC,
    RidgeClassifier,
    lambda: SGDClassifier(random_state=0),
    lambda: SGDClassifier("log_loss", random_state=0),
    lambda: Perceptron(random_state=0),
)
_NETWORKS: tuple[Callable[[], Any], ...] = (
    lambda: MLPClassifier((5,), max_iter=150, random_state=0),
    lambda: MLPClassifier((4, 3), max_iter=150, random_state=1),
)
_REGRESSORS: tuple[Callable[[], Any], ...] = (
    LinearRegression,
    lambda: MLPRegressor(hidden_layer_sizes=(4,), max_iter=150, random_state=0),
)


@dataclass(frozen=True)
class NarrowQuestion:
    """A person, a pipeline, and which columns may move."""

    model: Any
    frame: pd.DataFrame
    row: pd.DataFrame
    space: FeatureSpace
    target: Any
    cost: str
    moving: tuple[str, ...]
    narrow: tuple[str, ...]
    rel: float
    options: dict[str, Any]
    title: str

    @property
    def tags(self) -> tuple[str, ...]:
        """What the question is of: scaler, model, which columns move, and the order of spread / size."""
        *words, _, _ = self.title.split(", ")
        return (*words, f"spread / size 1e{int(np.floor(np.log10(self.rel)))}")

    def good(self, rows: pd.DataFrame) -> Any:
        """Return which rows the model puts in the target."""
        said = self.model.predict(rows)
        if isinstance(self.target, AtLeast):
            return said >= self.target.value
        return said == self.target

    def score(self, rows: pd.DataFrame) -> Floats:
        """Return the model's own score."""
        if hasattr(self.model, "decision_function"):
            return np.asarray(self.model.decision_function(rows), dtype=float)
        if hasattr(self.model, "predict_proba"):
            share = np.clip(self.model.predict_proba(rows)[:, 1], 1e-15, 1.0 - 1e-15)
            return np.asarray(np.log(share / (1.0 - share)))
        return np.asarray(self.model.predict(rows), dtype=float)

    def priced(self, rows: pd.DataFrame) -> Floats:
        """Return the cost of rows, from the medians of the data."""
        x0 = self.row.iloc[0]
        moves = []
        for name in self.frame:
            scale = float(np.median(np.abs(self.frame[name] - np.median(self.frame[name]))))
            moves.append(np.abs(rows[name].to_numpy() - x0[name]) / scale)
        lengths = np.stack(moves, axis=1)
        match self.cost:
            case "l1":
                return np.asarray(lengths.sum(axis=1))
            case "linf":
                return np.asarray(lengths.max(axis=1))
            case "l2":
                return np.asarray(np.sqrt((lengths**2).sum(axis=1)))
            case "l2_squared":
                return np.asarray((lengths**2).sum(axis=1))
        return np.asarray((lengths > 0).sum(axis=1), dtype=float)


def draw_narrow(rng: Rng, solver: str, *, floats: bool = False) -> NarrowQuestion | None:
    """Return a random question; None where everybody is favourable.

    With ``floats`` the narrow columns take a dozen neighbouring floats.
    """
    n = int(pick(rng, 60, 120, 240))
    ordinary = int(rng.integers(1, 4))
    columns: dict[str, Floats] = {}
    seen = []
    for k in range(ordinary):
        u = rng.uniform(-1, 1, n) if rng.uniform() < 0.5 else rng.normal(size=n)
        columns["abc"[k]] = u * 10.0 ** rng.uniform(-1, 4) + float(pick(rng, 0.0, 3.0))
        seen.append(u)
    rel = 10.0 ** float(rng.uniform(-14, -3))
    count = int(pick(rng, 1, 1, 2))
    names = tuple("yz"[:count])
    for name in names:
        u = rng.uniform(-1, 1, n)
        base = 10.0 ** float(rng.uniform(0, 9)) * float(pick(rng, 1.0, -1.0, 1.0))
        if floats:
            u = rng.integers(0, 13, n).astype(float)
            columns[name] = base + u * np.spacing(abs(base))
        else:
            columns[name] = base * (1.0 + rel * u)
        seen.append(u)
    frame = pd.DataFrame(columns)
    hidden = np.stack(seen, axis=1) @ rng.normal(size=len(seen)) + rng.normal(0, 0.3, n)
    kind = pick(rng, "linear", "linear", "network", "network", "regressor")
    makers = {"linear": _LINEAR, "network": _NETWORKS, "regressor": _REGRESSORS}[str(kind)]
    estimator = makers[int(rng.integers(len(makers)))]()
    scaler = pick(rng, StandardScaler, MinMaxScaler, RobustScaler)()
    labels: Any = np.where(hidden > np.median(hidden), "good", "bad")
    target: Any = "good"
    if kind == "regressor":
        labels = hidden
        target = AtLeast(float(np.round(np.quantile(hidden, 0.7), 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(scaler, estimator).fit(frame, labels)
    role = pick(rng, "fixed", "fixed", "moves", "moves", "alone")
    if role == "fixed":
        moving = tuple(name for name in frame if name not in names)
    elif role == "moves":
        moving = tuple(frame)
    else:
        moving = names
    space = FeatureSpace.infer(frame).only(list(moving))
    options = {"solver": solver, "time_limit_s": 10.0, "n": 1, "formulation": "auto"}
    cost = str(pick(rng, "l1", "l1", "l1", "l2", "l2_squared", "linf", "l0"))
    title = f"{type(scaler).__name__}, {type(estimator).__name__}, {role}, rel {rel:.1e}, {cost}"
    question = NarrowQuestion(model, frame, frame.iloc[:1], space, target, cost, moving, names, rel, options, title)
    below = np.flatnonzero(~np.asarray(question.good(frame)))
    if not len(below):
        return None
    row = frame.iloc[[int(pick(rng, *below.tolist()))]]
    return NarrowQuestion(model, frame, row, space, target, cost, moving, names, rel, options, title)


# ---- lines -----------------------------------------------------------------------------------------------------------
def cheapest_on_lines(question: NarrowQuestion) -> tuple[float, pd.DataFrame] | None:
    """Return the least cost of what ``predict`` accepts along single columns, and that row; None where nothing is."""
    found: tuple[float, pd.DataFrame] | None = None
    x0 = question.row.iloc[0]
    for name in question.moving:
        for end in (float(question.frame[name].min()), float(question.frame[name].max())):
            to = question.row.assign(**{name: end})
            for row in turns(question, question.row, to):
                if not _in_reach(question, row, x0):
                    continue
                cost = float(question.priced(row)[0])
                if found is None or cost < found[0]:
                    found = cost, row
    return found


def turns(question: NarrowQuestion, start: pd.DataFrame, end: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the accepted rows next to a refused one, from the start on, up to the first that is followed by more."""
    shares = np.concatenate((np.linspace(0.0, 1.0, ON_A_LINE), np.geomspace(1e-9, 1.0, 64)))
    shares = np.unique(shares)
    good = np.asarray(question.good(between(start, end, shares)))
    found = []
    for k in np.flatnonzero(good[1:] & ~good[:-1])[:4]:
        low, high = float(shares[k]), float(shares[k + 1])
        while True:
            middle = (low + high) / 2.0
            rows = between(start, end, np.array([low, middle, high]))
            same_low = bool((rows.iloc[1] == rows.iloc[0]).all())
            same_high = bool((rows.iloc[1] == rows.iloc[2]).all())
            if not low < middle < high or same_low or same_high:
                break
            if question.good(rows.iloc[[1]])[0]:
                high = middle
            else:
                low = middle
        row = between(start, end, np.array([high]))
        if question.good(row)[0]:
            found.append(row)
    return found


def between(start: pd.DataFrame, end: pd.DataFrame, shares: Floats) -> pd.DataFrame:
    """Return rows on the way from one to another."""
    columns = {}
    for name in start:
        a, b = float(start[name].iloc[0]), float(end[name].iloc[0])
        values = a + shares * (b - a)
        values[shares == 1.0] = b
        columns[name] = values
    return pd.DataFrame(columns)


def _in_reach(question: NarrowQuestion, row: pd.DataFrame, x0: pd.Series) -> bool:
    for name in question.frame:
        value = float(row[name].iloc[0])
        if name in question.moving:
            low, high = float(question.frame[name].min()), float(question.frame[name].max())
            if not min(low, x0[name]) <= value <= max(high, x0[name]):
                return False
        elif value != x0[name]:
            return False
    return True


def step_share(question: NarrowQuestion) -> float:
    """Return one step of the model's own arithmetic through its moving narrow columns, as a share of the way."""
    step = 0.0
    for name in question.narrow:
        if name not in question.moving:
            continue
        low, high = float(question.frame[name].min()), float(question.frame[name].max())
        if low == high:
            continue
        rows = between(question.row.assign(**{name: low}), question.row.assign(**{name: high}), np.linspace(0, 1, 33))
        slope = float(np.abs(np.diff(question.score(rows))).max()) * 32 / (high - low)
        step += ROUNDINGS * slope * float(np.spacing(max(abs(low), abs(high))))
    level = question.target.value if isinstance(question.target, AtLeast) else 0.0
    away = abs(float(question.score(question.row)[0]) - level)
    share = step / max(away, 1e-300)
    return 2.0 * share if question.cost == "l2_squared" else share


# ---- what is wrong ---------------------------------------------------------------------------------------------------
def compare_narrow(question: NarrowQuestion, result: Any) -> list[str]:
    """Return what contradicts the model's own ``predict``, in words."""
    best = cheapest_on_lines(question)
    if str(result.status) == "infeasible" and best is not None:
        return [f"infeasible, but predict turns at {best[1].iloc[0].to_dict()}; {result.reason}"]
    if not len(result):
        return []
    return [*_invalid(question, result[0]), *_too_dear(question, result, best)]


def _invalid(question: NarrowQuestion, given: Any) -> list[str]:
    """Check an answer apart from the package: the model, the reach, the cost."""
    answer = given.frame
    x0 = question.row.iloc[0]
    wrong = []
    if not question.good(answer)[0]:
        wrong.append(f"the model says {question.model.predict(answer)[0]}")
    if not _in_reach(question, answer, x0):
        wrong.append(f"out of reach: {answer.iloc[0].to_dict()}")
    cost = float(question.priced(answer)[0])
    if abs(cost - given.cost) > 1e-6 * max(cost, 1e-12):
        wrong.append(f"cost {given.cost!r}, by hand {cost!r}")
    return wrong


def _too_dear(question: NarrowQuestion, result: Any, best: tuple[float, pd.DataFrame] | None) -> list[str]:
    """Hold what is claimed of the cost against what predict accepts on lines, the way to the answer among them."""
    cost = result[0].cost
    x0 = question.row.iloc[0]
    wrong: list[str] = []
    for row in turns(question, question.row, result[0].frame):
        if _in_reach(question, row, x0):
            there = float(question.priced(row)[0])
            if best is None or there < best[0]:
                best = there, row
    if best is None:
        return wrong
    allowed = ALLOWED + step_share(question)
    if str(result.status) == "optimal" and cost > best[0] * (1.0 + allowed) + 1e-12:
        wrong.append(f"optimal at {cost!r}, but {best[0]!r} is enough ({cost / best[0] - 1.0:.2e} too dear)")
    if result.bound is not None and result.bound > best[0] * (1.0 + allowed) + 1e-12:
        wrong.append(f"bound {result.bound!r}, but {best[0]!r} is enough ({result.bound / best[0] - 1.0:.2e})")
    return wrong
