"""Random questions over columns of 1e-12 to 1e12, and the cheapest favourable point of a lattice in each.

Nothing here is the package's but the objects that a user gives it: spaces, costs, a linear model from plain arrays.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations.predictors import Affine

__all__ = ["COSTS", "KINDS", "Question", "question", "verdict"]

KINDS = ("linear", "logistic", "svm", "tree", "forest", "boosting", "network", "raw network")
COSTS = ("l0", "l1", "l2", "l2_squared", "linf")
#: Powers of ten between which the step of a column lies, and how many steps it has at least and at most.
_POWERS, _STEPS = (-12.0, 12.0), (4, 9)
#: What an optimum may cost more than a point of the lattice, relatively: a margin stands between decision and answer.
_CLOSE = 3e-5


@final
@dataclass(frozen=True)
class Question:
    """One model, one person, and the lattice on which the answer is judged.

    Attributes
    ----------
    on_lattice
        Whether the answer has to be one of its points; else columns are continuous, or have a step of 1.
    scales
        What a column's move is divided by.
    """

    name: str
    model: Any
    space: Any
    lattice: pd.DataFrame
    favoured: np.ndarray
    place: int
    cost: str
    scales: dict[str, float]
    on_lattice: bool

    @property
    def row(self) -> pd.DataFrame:
        """The person."""
        return self.lattice.iloc[[self.place]]

    def ask(self, solver: str, **options: Any) -> Any:
        """Ask the package."""
        made = {
            "l0": ceopt.L0,
            "l1": lambda: ceopt.L1(scale=self.scales),
            "l2": lambda: ceopt.L2(scale=self.scales),
            "l2_squared": lambda: ceopt.L2(scale=self.scales, squared=True),
            "linf": lambda: ceopt.Linf(scale=self.scales),
        }[self.cost]()
        return ceopt.explain(self.model, self.row, self.space, target=1, cost=made, solver=solver, **options)

    def costs(self, points: pd.DataFrame) -> np.ndarray:
        """Return what points cost, in plain numbers."""
        moves = np.abs(points.to_numpy(float) - self.row.to_numpy(float)) / np.array(list(self.scales.values()))
        match self.cost:
            case "l0":
                return np.count_nonzero(moves, axis=1).astype(float)
            case "l1":
                return moves.sum(axis=1)
            case "l2":
                return np.sqrt((moves**2).sum(axis=1))
            case "l2_squared":
                return (moves**2).sum(axis=1)
            case _:
                return moves.max(axis=1)

    def accepts(self, points: pd.DataFrame) -> np.ndarray:
        """Return which points the user's own model puts in the target."""
        if isinstance(self.model, Affine):
            return np.asarray(self.model.predict(points.to_numpy(float)) == 1)
        return np.asarray(self.model.predict(points) == 1)


def question(kind: str, number: int, seed: int = 0) -> Question | None:
    """Return a question; None where the model decides alike for everybody."""
    rng = np.random.default_rng([seed, KINDS.index(kind), number])
    cost, on_lattice = COSTS[number % len(COSTS)], bool(rng.integers(2))
    powers = rng.uniform(*_POWERS, size=int(rng.integers(2, 4)))
    columns, features, scales, parts = {}, [], {}, []
    for j, power in enumerate(powers):
        name, steps = f"x{j}", int(rng.integers(*_STEPS))
        step = float(10.0**power) if power < 0 else float(np.round(10.0**power))
        columns[name] = np.arange(steps + 1) * step
        parts.append(rng.normal() * np.linspace(0, 1, steps + 1))
        whole = not on_lattice and power >= 0 and bool(rng.integers(2))
        words: dict[str, Any] = {"kind": "integer" if whole else "continuous", "step": step if on_lattice else None}
        features.append(ceopt.Feature(name, lower=0.0, upper=float(columns[name][-1]), **words))
        scales[name] = float(columns[name][-1] * 10.0 ** rng.uniform(-1, 1)) if rng.integers(3) else 1.0
    lattice = pd.DataFrame(list(itertools.product(*columns.values())), columns=list(columns))
    value = np.array([sum(point) for point in itertools.product(*parts)]) + rng.normal(0, 0.1, len(lattice))
    y = (value > np.quantile(value, rng.uniform(0.4, 0.9))).astype(int)
    model = _model(kind, columns, lattice, y, rng)
    said = np.asarray(model.predict(lattice.to_numpy(float) if isinstance(model, Affine) else lattice) == 1)
    if said.all() or not said.any():
        return None
    place = int(rng.choice(np.flatnonzero(~said)))
    name = f"{kind} {number}: {cost}, steps {', '.join(f'{10.0**p:.1e}' for p in powers)}"
    space = ceopt.FeatureSpace(features)
    return Question(name, model, space, lattice, said, place, cost, scales, on_lattice)


def _model(kind: str, columns: dict[str, Any], lattice: pd.DataFrame, y: np.ndarray, rng: Any) -> Any:
    if kind == "linear":
        weights = rng.normal(size=len(columns)) / np.array([values[-1] for values in columns.values()])
        level = float(np.quantile(lattice.to_numpy() @ weights, rng.uniform(0.3, 0.9)))
        size = 10.0 ** rng.uniform(-6, 6)
        return Affine(size * weights, -size * level, labels=(0, 1))
    made = {
        "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        "svm": lambda: make_pipeline(StandardScaler(), LinearSVC()),
        "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
        "forest": lambda: RandomForestClassifier(6, max_depth=4, random_state=0),
        "boosting": lambda: GradientBoostingClassifier(n_estimators=6, random_state=0),
        "network": lambda: make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=60, random_state=0)),
        "raw network": lambda: MLPClassifier((5,), max_iter=60, random_state=0),
    }[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that are not trained to the end do as well
        return made.fit(lattice, y)


def verdict(asked: Question, result: Any) -> str:
    """Return what is wrong about an answer; empty where nothing is."""
    best = float(asked.costs(asked.lattice)[asked.favoured].min())
    if result.status == "infeasible":
        return f"infeasible, but a point of the lattice costs {best:.9g}"
    if not len(result):
        return "" if result.reason else f"{result.status} without a reason"
    answer = result[0]
    point = pd.DataFrame(np.asarray(answer.values, dtype=float).reshape(1, -1), columns=asked.lattice.columns)
    if not asked.accepts(point)[0]:
        return "the model refuses the answer"
    (cost,) = asked.costs(point)
    if not np.isclose(answer.cost, cost, rtol=1e-6):
        return f"it costs {cost:.9g}, not {answer.cost:.9g}"
    if answer.bound > best * (1.0 + _CLOSE):
        return f"bound {answer.bound:.9g}, but a point of the lattice costs {best:.9g}"
    if result.status == "optimal" and cost > best * (1.0 + _CLOSE):
        return f"optimal at {cost:.9g}, but a point of the lattice costs {best:.9g}"
    if asked.on_lattice and cost < best * (1.0 - _CLOSE):
        return f"it costs {cost:.9g}, less than any favourable point of the lattice ({best:.9g})"
    return ""
