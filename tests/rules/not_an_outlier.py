"""NotAnOutlier: the published score of a row, 2^(-E h / c(psi)), from the paths that scikit-learn's trees give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from rules.small import SPACE
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from ceopt.formulations.constraints import NotAnOutlier

#: Many people, of whom most are alike.
_RNG = np.random.default_rng(5)
CROWD = pd.DataFrame(
    {
        "age": _RNG.choice([0, 1, 2, 3], 60, p=[0.1, 0.5, 0.3, 0.1]),
        "wage": _RNG.choice([0.0, 0.5, 1.0], 60, p=[0.2, 0.6, 0.2]),
        "size": _RNG.choice(["S", "M", "L"], 60, p=[0.2, 0.6, 0.2]),
        "job": _RNG.choice([10, 30, 20], 60, p=[0.3, 0.6, 0.1]),
        "owner": _RNG.random(60) < 0.3,
        "origin": _RNG.choice([1, 2], 60),
    }
)


def encoded(encoder: Any, **options: Any) -> Any:
    """Return an isolation forest behind an encoder of the words."""
    before = make_column_transformer((encoder, ["size", "job"]), remainder="passthrough")
    return make_pipeline(before, IsolationForest(random_state=0, **options)).fit(CROWD)


FORESTS = [
    encoded(OneHotEncoder(), n_estimators=6, contamination=0.2),
    IsolationForest(n_estimators=4, max_samples=16, random_state=1, contamination=0.3).fit(CROWD[["age", "wage"]]),
    encoded(OrdinalEncoder(), n_estimators=3, max_samples=30, contamination=0.4),
    encoded(OneHotEncoder(), n_estimators=5, max_features=0.5, max_samples=20),
]


def examples() -> list[Any]:
    return [NotAnOutlier(FORESTS[0], name="usual"), *map(NotAnOutlier, FORESTS[1:])]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    return NotAnOutlier(draw(st.sampled_from(FORESTS)))


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    frame = SPACE.frame([dict(zip(space.names, point, strict=True)) for point in np.asarray(points).tolist()])
    given, forest = frame, rule.forest
    if hasattr(forest, "steps"):
        seen, forest = forest[:-1].transform(frame), forest[-1]
    else:
        given = frame[list(forest.feature_names_in_)]
        seen = given.to_numpy()
    total = np.zeros(len(frame))
    for tree, columns in zip(forest.estimators_, forest.estimators_features_, strict=True):
        matrix = np.asarray(seen, dtype=np.float32)[:, columns]
        splits = np.asarray(tree.decision_path(matrix).sum(axis=1)).ravel() - 1
        total += splits + np.array([average(n) for n in tree.tree_.n_node_samples[tree.apply(matrix)]])
    score = 2.0 ** (-total / len(forest.estimators_) / average(forest.max_samples_))
    is_tie = np.abs(score + forest.offset_) <= 1e-9
    is_ordinary = score < -forest.offset_
    if is_tie.any():  # at the level itself the library's own rounding decides
        is_ordinary[is_tie] = rule.forest.predict(given[is_tie]) == 1
    return is_ordinary


def average(n: int) -> float:
    """The mean length of the paths of an unsuccessful search among n rows."""
    if n <= 2:
        return float(n == 2)
    return 2.0 * (np.log(n - 1) + np.euler_gamma) - 2.0 * (n - 1) / n
