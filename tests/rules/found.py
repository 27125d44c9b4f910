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

    It holds ``examples()``, a list of rules that fit :data:`rules.small.SPACE`, each kept by some points of the lattice
    and broken by others; and ``keeps(rule, space, factual, points)``, which says from the text of the public interface,
    in plain numpy, which of many points (coordinates (n, d)) keep the rule. A rule that charges something else than the
    move has ``charged(rule, space, factual, points)``, one that adds to the cost has ``penalties(...)``, and one that
    learns from rows of the target has ``given(rule, frame)``, the rule with those rows, one that says what is to be done
    has ``actions(rule, space, factual, point)``, and an elastic one ``excess(...)``, by how much wider each point needs
    it. ``drawn(space, factual)``, a strategy of hypothesis, takes part in the random combinations; without it, the
    examples do.
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
