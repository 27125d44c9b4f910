"""Manifest of a model: who added what, as a note on each block and a table of the whole.

A note may hold fixed Vars that its block was built around: its rows hold for these values alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import pandas as pd
import pyomo.environ as pyo

from ceopt.solvers.cones import ConeMargin
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = [
    "Held",
    "Manifest",
    "check_held",
    "describe",
    "described_block",
    "feature_of",
    "held_of",
    "manifest_of",
    "model_summary",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Values that fixed Vars of a block must keep, because the rest of the block was derived from them.

    Parameters
    ----------
    component
        Local name of the indexed Var.
    values
        Index -> value, in the Var's own units.
    of
        Whose values they are, as an error says it: "the person's own".
    then
        What to do for other values, a full sentence.
    words
        Index -> what the whole values 0, 1, ... stand for, where they stand for something.
    """

    component: str
    values: Mapping[Any, float]
    of: str
    then: str
    words: Mapping[Any, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", dict(self.values))
        object.__setattr__(self, "words", dict(self.words))

    def check(self, block: Any, who: str) -> None:
        """Refuse a block whose Vars hold other values, or none.

        Raises
        ------
        InvalidValueError
            A Var is not fixed, or not to its value.
        """
        container = block.component(self.component)
        if container is None:
            return
        for index in self.values:
            var = container[index]
            if not var.fixed:
                raise self._refusal(block, index, who, f"Var {var.name!r} is not fixed")
            self.check_one(block, index, var.value, who)

    def check_one(self, block: Any, index: Any, value: float | None, who: str) -> None:
        """Refuse another value of one Var."""
        if value != self.values[index]:
            name = block.component(self.component)[index].name
            raise self._refusal(block, index, who, f"{name!r} is {self._text(index, value)}")

    def _refusal(self, block: Any, index: Any, who: str, but: str) -> InvalidValueError:
        own = self._text(index, self.values[index])
        return InvalidValueError(who, f"{index!r} of block {block.name!r} to be {own}, {self.of}", but, self.then)

    def _text(self, index: Any, value: float | None) -> str:
        if value is None:
            return "without a value"
        words = self.words.get(index, ())
        if value in range(len(words)):
            return f"{int(value)} ({words[int(value)]!r})"
        return repr(float(value))


_ATTRIBUTE = "_ceopt_manifest"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What one block states.

    Parameters
    ----------
    title
        A few words: "tree ensemble, leaf formulation".
    formula
        The program that the block adds, in one line.
    reference
        Where it comes from.
    rule
        Name of the user's rule that the block enforces, or empty.
    features
        Local name of a component -> position of the feature's name in its index; -1 if it is about no single feature.
    columns
        Names that stand first in the index of a component that ``features`` does not list, where it is about one.
    held
        Fixed Vars whose values the rest of the block was derived from; the model is refused with other values.
    """

    title: str
    formula: str
    reference: str = ""
    rule: str = ""
    features: Mapping[str, int] = field(default_factory=dict)
    columns: Collection[str] = ()
    held: Held | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", dict(self.features))
        object.__setattr__(self, "columns", frozenset(self.columns))


def describe(block: Any, manifest: Manifest) -> None:
    """Attach ``manifest`` to a Pyomo block; it survives ``clone()`` and pickling, and no solver sees it."""
    if not isinstance(manifest, Manifest):
        raise InvalidTypeError("describe", "a Manifest", f"it got {type(manifest).__name__}", "Build one.")
    object.__setattr__(_data(block), _ATTRIBUTE, manifest)


def manifest_of(block: Any) -> Manifest | None:
    """Return the manifest of a block; None if it has none."""
    found: Manifest | None = getattr(_data(block), "__dict__", {}).get(_ATTRIBUTE)
    return found


def described_block(component: Any) -> Any | None:
    """Return the innermost block around a component (data) that has a manifest; None if there is none."""
    block = component.parent_block()
    while block is not None and manifest_of(block) is None:
        block = block.parent_block()
    return block


def feature_of(component: Any) -> str:
    """Return the feature that one component data is about, as its block's manifest says; empty if about none."""
    block = described_block(component)
    manifest = None
    if block is not None:
        manifest = manifest_of(block)
    if manifest is None:
        return ""
    index = component.index()
    parts = index
    if not isinstance(index, tuple):
        parts = (index,)
    position = manifest.features.get(component.parent_component().local_name)
    if position is None:
        return str(parts[0]) if parts[0] in manifest.columns else ""
    if index is not None and 0 <= position < len(parts):
        return str(parts[position])
    return ""


def check_held(model: Any, who: str) -> None:
    """Refuse a model in which a block was built around values that its Vars no longer hold.

    Deactivated blocks count too, as rows elsewhere may read their Vars.

    Raises
    ------
    InvalidValueError
        One of those Vars is not fixed to its value.
    """
    for block in model.block_data_objects(active=None, descend_into=True):
        manifest = manifest_of(block)
        if manifest is not None and manifest.held is not None:
            manifest.held.check(block, who)


def held_of(var: Any) -> Held | None:
    """Return what its block says of a Var (data) that must keep its value; None if it may take others."""
    manifest = manifest_of(var.parent_block())
    if manifest is None or manifest.held is None or manifest.held.component != var.parent_component().local_name:
        return None
    return manifest.held


def model_summary(model: Any) -> pd.DataFrame:
    """Return one row per block with a manifest, and one for what stands outside any.

    Columns: block, title, variables, binaries, rows, cones, formula, reference, rule. Counts are of active components
    of the block that lie in no nested block with a manifest of its own; fixed Vars are data and are not counted.
    """
    counts: dict[int, list[int]] = {}
    described: dict[int, Any] = {}
    for block in _blocks(model):
        owner = block
        if manifest_of(block) is None:
            owner = described_block(block)
        key = 0
        if owner is not None:
            key = id(owner)
            described[key] = owner
        count = counts.setdefault(key, [0, 0, 0, 0])
        for var in block.component_data_objects(pyo.Var, descend_into=False):
            count[0] += not var.fixed
            count[1] += not var.fixed and var.is_binary()
        for constraint in block.component_data_objects(pyo.Constraint, active=True, descend_into=False):
            is_cone = isinstance(constraint.body, ConeMargin)
            count[2] += not is_cone
            count[3] += is_cone
    rows = []
    for key, (variables, binaries, lines, cones) in counts.items():
        block = described.get(key)
        manifest = Manifest(title="outside any described block", formula="") if block is None else manifest_of(block)
        if manifest is None or (block is None and not variables + lines + cones):
            continue
        rows.append(
            {
                "block": "" if block is None else block.name,
                "title": manifest.title,
                "variables": variables,
                "binaries": binaries,
                "rows": lines,
                "cones": cones,
                "formula": manifest.formula,
                "reference": manifest.reference,
                "rule": manifest.rule,
            }
        )
    columns = ["block", "title", "variables", "binaries", "rows", "cones", "formula", "reference", "rule"]
    return pd.DataFrame(rows, columns=columns)


def _blocks(model: Any) -> Iterator[Any]:
    yield from model.block_data_objects(active=True, descend_into=True)


def _data(block: Any) -> Any:
    """Return the block data itself; an indexed Block stands for no single one."""
    if not hasattr(block, "component_data_objects"):
        raise InvalidTypeError(
            "describe", "a Pyomo block", f"it got {type(block).__name__}", "Describe each of its members."
        )
    return block
