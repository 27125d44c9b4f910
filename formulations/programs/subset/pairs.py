"""Pairs of a pool of points: their distances, and those that are too close."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ceopt.formulations.programs.expressions import Floats, sum_of
from ceopt.solvers.checks import Matrix, Real, Whole
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidValueError

__all__ = [
    "Pair",
    "add_choice",
    "clique_cover",
    "close_pairs",
    "pairs_of",
    "require_pairs",
]

Pair = tuple[int, int]


def require_pairs(who: str, distances: ArrayLike) -> Floats:
    """Return the distances of all pairs of n points, shape (n, n), with a diagonal of 0, or refuse them."""
    found = Matrix((None, None)).require(who, "distances", distances)
    n = len(found)
    if not n:
        raise InvalidValueError(who, "at least one point", "distances is empty", "Give the distances of a pool.")
    if found.shape[1] != n:
        raise InvalidValueError(
            who, "a square matrix of distances", f"its shape is {found.shape}", "Give the distance of each pair."
        )
    np.fill_diagonal(found, 0.0)
    for wrong, is_so in ((found != found.T, "differ by direction"), (found < 0.0, "are negative")):
        if wrong.any():
            p, q = np.argwhere(wrong)[0]
            but = f"{found[p, q]} and {found[q, p]} of points {p} and {q} {is_so}"
            raise InvalidValueError(who, "distances", but, "A distance is the same there and back, and at least 0.")
    return found


def pairs_of(n: int) -> list[Pair]:
    """Return the pairs p < q of n points."""
    return [(p, q) for p in range(n) for q in range(p + 1, n)]


def close_pairs(who: str, distances: Floats, beta: float) -> list[Pair]:
    """Return the pairs p < q that are less than ``beta`` apart."""
    Real(at_least=0.0).require(who, "beta", beta)
    first, second = np.nonzero(np.triu(distances < beta, 1))
    return list(zip(first.tolist(), second.tolist(), strict=True))


def add_choice(model: Any, who: str, n: int, k: int | None = None) -> None:
    r"""Add ``y``, a binary for each point, and with ``k`` the row ``count``: :math:`\sum_p y_p = k`."""
    model.y = pyo.Var(range(n), domain=pyo.Binary)
    if k is not None:
        Whole(1, n).require(who, "k", k)
        model.count = pyo.Constraint(expr=sum_of(model.y.values()) == int(k))


def clique_cover(n: int, pairs: list[Pair]) -> Iterator[tuple[int, ...]]:
    """Yield sets of points, any two of a set being one of the pairs, until each pair is in a set.

    Greedy: each set starts at a pair that is in none yet and grows by the point that brings most
    such pairs.
    """
    near = np.zeros((n, n), dtype=bool)
    for p, q in pairs:
        near[p, q] = near[q, p] = True
    left = near.copy()
    for p, q in pairs:
        if not left[p, q]:
            continue
        checkpoint("stating the program")
        clique = [p, q]
        fits = near[p] & near[q]
        while fits.any():
            checkpoint("stating the program")
            gain = np.where(fits, left[clique].sum(axis=0), -1)
            best = int(gain.argmax())
            clique.append(best)
            fits &= near[best]
        left[np.ix_(clique, clique)] = False
        yield tuple(sorted(clique))
