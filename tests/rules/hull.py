"""Hull: columns divided by their scale, categories as 0/1; distance to the nearest mixture of rows of one cluster.

In l1 and linf a linear program by SciPy; in l2 the nearest face, by trying every subset of the rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from rules.small import PEOPLE, coordinates
from scipy.optimize import linprog

from ceopt.formulations.constraints import Hull

#: Two groups that any clustering tells apart.
GROUPS = PEOPLE.iloc[[0, 0, 0, 5, 5]].assign(wage=[0.0, 0.5, 0.5, 1.0, 0.5], age=[1, 1, 2, 3, 3])
ROUNDING = 1e-7


def examples() -> list[Any]:
    return [
        Hull(PEOPLE),
        Hull(PEOPLE, radius=0.6),
        Hull(PEOPLE, radius=0.65, norm="l2"),
        Hull(PEOPLE, radius=0.3, norm="linf", scale="none"),
        Hull(PEOPLE, radius=0.5, clusters=[0, 1, 0, 0, 1, 1, 0, 1]),
        Hull(PEOPLE, radius=0.4, norm="linf", clusters=[0, 1, 0, 0, 1, 1, -1, 1], penalty=0.5),
        Hull(GROUPS, radius=1.2, clusters=2),
        Hull(PEOPLE, radius=2.5, scale={"age": 2.0, "wage": 0.25, "size": 4.0, "job": 0.5}, penalty=0.25),
    ]


@st.composite
def drawn(draw: Any, space: Any, factual: Any) -> Any:
    chosen = draw(st.lists(st.integers(0, len(PEOPLE) - 1), min_size=2, max_size=6))
    norm = draw(st.sampled_from(["l1", "l1", "linf", "l2"]))
    radius = draw(st.sampled_from([0.0, 0.3, 0.65, 1.0, 1.4]))
    clusters = draw(st.sampled_from([None, None, [k % 2 for k in range(len(chosen))]]))
    # Under l2 a penalty counts another norm than the radius: then there is no radius.
    penalty = draw(st.sampled_from([None, None, 0.25]))
    if norm == "l2" and penalty is not None:
        radius = 0.0
    scale = draw(st.sampled_from(["range", "range", "none"]))
    data = None if clusters is None and draw(st.booleans()) else PEOPLE.iloc[chosen]
    enlarge = draw(st.sampled_from([False, False, True])) and not (penalty is not None and radius == 0.0)
    return Hull(data, radius=radius, norm=norm, clusters=clusters, penalty=penalty, scale=scale, enlarge=enlarge)


def given(rule: Any, frame: Any) -> Any:
    return replace(rule, data=frame) if rule.data is None else rule


def keeps(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    if rule.penalty is not None and rule.radius == 0.0:
        return np.ones(len(points), dtype=bool)
    return distances(rule, space, points).min(axis=0) <= rule.radius + ROUNDING


def excess(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    """Return how far points are beyond the radius."""
    short = distances(rule, space, points).min(axis=0) - rule.radius
    return np.where(short <= ROUNDING, 0.0, short)


def near_clusters(rule: Any, space: Any, points: Any, had: Any) -> Any:
    """Return which points are within the radius of a cluster but those named."""
    labels = sorted({*rule.clusters} - {-1}) if not isinstance(rule.clusters, int) else list(range(rule.clusters))
    left = [label not in had for label in labels]
    found = distances(rule, space, points)[left]
    return (found <= rule.radius + ROUNDING).any(axis=0) if len(found) else np.zeros(len(points), dtype=bool)


def penalties(rule: Any, space: Any, factual: Any, points: Any) -> Any:
    """Penalty times the l1 norm of a slack that is within the radius in its own norm too."""
    if rule.penalty is None:
        return np.zeros(len(points))
    radius = math.inf if rule.radius == 0.0 else rule.radius
    x, found = scaled(rule, space, points), []
    for rows in groups(rule, space):
        if rule.norm == "linf" and math.isfinite(radius):
            found.append(nearest(x, rows, "l1", at_most=radius + 2.0 * ROUNDING))
        else:
            lengths = nearest(x, rows, "l1")
            near = distance(x, rows, rule.norm) <= radius + ROUNDING if math.isfinite(radius) else True
            found.append(np.where(near, lengths, math.inf))
    least = np.min(found, axis=0)
    return np.where(np.isfinite(least), rule.penalty * least, 0.0)


# ---- columns and rows ------------------------------------------------------------------------------------------------
def scaled(rule: Any, space: Any, points: Any) -> Any:
    """Return points as numbers over scales; one 0/1 column per level of a category, over its scale too."""
    columns = []
    for j, feature in enumerate(space):
        column = np.asarray(points)[:, j]
        unit = 1.0
        if feature.kind == "ordinal":
            unit = len(feature.levels) - 1.0
        elif feature.kind in {"integer", "continuous"} and rule.scale != "none":
            unit = feature.upper - feature.lower  # "range", the only statistic that the small table has
        if isinstance(rule.scale, Mapping):
            unit = rule.scale.get(feature.name, unit)
        if feature.kind == "categorical":
            columns += [(column == rank) / unit for rank in range(len(feature.levels))]
        else:
            columns.append(column / unit)
    return np.stack(columns, axis=1)


def groups(rule: Any, space: Any) -> list[Any]:
    """Return the rows of each cluster."""
    seen = [coordinates(space, row) for row in rule.data.to_dict("records")]
    rows = scaled(rule, space, np.array(seen).reshape(-1, len(space)))
    if rule.clusters is None:
        return [rows]
    if isinstance(rule.clusters, int):
        from sklearn.cluster import KMeans

        labels = KMeans(rule.clusters, n_init=10, random_state=0).fit_predict(rows)
    else:
        labels = np.asarray(rule.clusters)
    return [rows[labels == label] for label in sorted(set(labels) - {-1})]


def distances(rule: Any, space: Any, points: Any) -> Any:
    """Return how far each point is from each cluster's hull, (clusters, n)."""
    x = scaled(rule, space, points)
    return np.array([distance(x, rows, rule.norm) for rows in groups(rule, space)])


def distance(x: Any, rows: Any, norm: str) -> Any:
    return nearest_face(x, rows) if norm == "l2" else nearest(x, rows, norm)


# ---- the nearest mixture ---------------------------------------------------------------------------------------------
def nearest(x: Any, rows: Any, norm: str, at_most: float | None = None) -> Any:
    """Return the least norm of a slack at each of n points, by one linear program for all; "l1" with each part bounded.

    A point that the bound leaves without a slack has an infinite one.
    """
    (n, d), m = x.shape, len(rows)
    if at_most is not None:
        within = nearest(x, rows, "linf") <= at_most - ROUNDING / 2.0
        lengths = np.full(n, math.inf)
        if within.any():
            lengths[within] = _solved(x[within], rows, "l1", at_most)
        return lengths
    return _solved(x, rows, norm, None) if n * d * m else np.zeros(n)


def _solved(x: Any, rows: Any, norm: str, at_most: float | None) -> Any:
    (n, d), m = x.shape, len(rows)
    eye, top = sp.eye_array(d), sp.csr_array(np.ones((1, m)))
    # variables of one point: weights (m), over (d), under (d), greatest (1)
    equal = sp.block_array(
        [[sp.csr_array(rows.T), -eye, eye, sp.csr_array((d, 1))], [top, None, None, None]], format="csr"
    )
    below = sp.block_array([[sp.csr_array((d, m)), eye, eye, -sp.csr_array(np.ones((d, 1)))]], format="csr")
    price = np.concatenate([np.zeros(m), np.ones(2 * d) * (norm == "l1"), [float(norm == "linf")]])
    limits = [(0.0, None)] * m + [(0.0, at_most)] * (2 * d) + [(0.0, None)]
    solution = linprog(
        np.tile(price, n),
        A_ub=sp.block_diag([below] * n, format="csr"),
        b_ub=np.zeros(n * d),
        A_eq=sp.block_diag([equal] * n, format="csr"),
        b_eq=np.concatenate([np.concatenate([point, [1.0]]) for point in x]),
        bounds=limits * n,
        method="highs",
    )
    assert solution.status == 0, solution.message
    return solution.x.reshape(n, -1) @ price


def nearest_face(x: Any, rows: Any) -> Any:
    """Return the Euclidean distances, each attained inside the face of some affinely independent rows."""
    rows = np.unique(rows, axis=0)
    best = np.full(len(x), math.inf)
    for size in range(1, min(len(rows), x.shape[1] + 1) + 1):
        for chosen in itertools.combinations(range(len(rows)), size):
            corner, sides = rows[chosen[0]], rows[list(chosen[1:])] - rows[chosen[0]]
            shares = (x - corner) @ np.linalg.pinv(sides) if size > 1 else np.zeros((len(x), 0))
            lengths = np.linalg.norm(x - corner - shares @ sides, axis=1)
            inside = (shares >= -1e-9).all(axis=1) & (shares.sum(axis=1) <= 1.0 + 1e-9)
            best = np.where(inside & (lengths < best), lengths, best)
    return best
