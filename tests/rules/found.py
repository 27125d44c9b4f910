"""The independent half of each rule: found by the name of its class, so that no list here needs an edit."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ceopt.formulations.constraints import RULES
from ceopt.formulations.space import FeatureSpace

Floats = NDArray[np.float64]

#: Halves of rules that a test has made up, by the name of the class.
MADE_UP: dict[str, Any] = {}


def file_of(name: str) -> str:
    """MaxChanges -> max_changes."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def half_of(name: str) -> Any:
    """Return the module of a rule, or say which file it lacks.

    It knows the rule's fields and the text of the public interface, and shares nothing with the rule's own file. Points
    are coordinates (n, d), in plain numpy.

    ======================================== =======================================================================
    ``examples()``                           rules that fit :data:`rules.small.SPACE`, each kept by some points of
                                             its lattice and broken by others
    ``keeps(rule, space, factual, points)``  which points keep the rule
    ``excess(...)``                          of an elastic rule: by how much wider each point needs it
    ``charged(...)``                         points as costs see them, where that is something else than the move
    ``penalties(...)``                       what the rule adds to each point's cost, if it does
    ``actions(rule, space, factual, point)`` what is to be done, if something else follows from it
    ``given(rule, frame)``                   the rule with rows of the target that it would take from the data
    ``drawn(space, factual)``                a strategy of hypothesis, for the random combinations; else examples
    ======================================== =======================================================================
    """
    if name in MADE_UP:
        return MADE_UP[name]
    if importlib.util.find_spec(f"rules.{file_of(name)}") is None:
        pytest.fail(
            f"The rule {name} has no independent check: add tests/rules/{file_of(name)}.py with examples() and "
            "keeps(rule, space, factual, points), as tests/rules/found.py says."
        )
    return importlib.import_module(f"rules.{file_of(name)}")


def halves() -> list[tuple[str, Any]]:
    """Return (name, example) for every rule of the registry that has a half."""
    return [
        (name, rule)
        for name in RULES
        if name in MADE_UP or importlib.util.find_spec(f"rules.{file_of(name)}") is not None
        for rule in half_of(name).examples()
    ]


# ---- what several rules say together ---------------------------------------------------------------------------------
def half(rule: Any) -> Any:
    return half_of(type(rule).__name__)


def kept(rules: Sequence[Any], space: FeatureSpace, factual: Floats, points: Floats) -> NDArray[np.bool_]:
    """Return which points keep all rules."""
    every = np.ones(len(points), dtype=bool)
    for rule in rules:
        every &= half(rule).keeps(rule, space, factual, points)
    return every


def charged(rules: Sequence[Any], space: FeatureSpace, factual: Floats, points: Floats) -> Floats:
    """Return the points as a cost sees them."""
    for rule in rules:
        change = getattr(half(rule), "charged", None)
        points = points if change is None else change(rule, space, factual, points)
    return points


def penalties(rules: Sequence[Any], space: FeatureSpace, factual: Floats, points: Floats) -> Floats:
    """Return what the rules add to the cost of each point."""
    extra = np.zeros(len(points))
    for rule in rules:
        ask = getattr(half(rule), "penalties", None)
        extra = extra if ask is None else extra + ask(rule, space, factual, points)
    return extra


# ---- columns by name -------------------------------------------------------------------------------------------------
def column(space: FeatureSpace, points: Floats, name: str) -> Floats:
    """Return one column of many points."""
    return np.asarray(points)[:, list(space.names).index(name)]


def by_name(space: FeatureSpace, point: Floats) -> Mapping[str, float]:
    """Return a point as coordinates by column."""
    return dict(zip(space.names, np.asarray(point).tolist(), strict=True))
