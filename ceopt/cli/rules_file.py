"""Rules from a file: a JSON list with an object for each, ``{"rule": "MaxChanges", "k": 2}``.

rules_schema.json beside this file is its schema, and says to the reader, too, what each rule takes. An object holds
arguments by their own names, as plain data:

==================================== =================================================================================
argument                             in the file
==================================== =================================================================================
numbers, texts, lists, mappings      as they are; true and false are levels and flags
levels as keys of a mapping          their text: "1" is the level 1 where the column has that one
frames (``AllowedRows``, ``Hull``)   a list of rows, each an object of values by column
equations (``Causal``)               column -> {"parents": {parent: coefficient}, "intercept": 0.0}
==================================== =================================================================================
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from ceopt.formulations.constraints import RULES
from ceopt.formulations.constraints.causal_structure import LinearEquation
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError
from ceopt.solvers.whole_files import json_in, read_text

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.space.space import FeatureSpace

_WHO: Final = "--rules"


def read_rules(path: Path, space: FeatureSpace) -> tuple[AbstractRule, ...]:
    """Return the rules of a file, each of which fits the space.

    Raises
    ------
    UnreadableFileError
        No such file, or no JSON in it.
    InvalidTypeError, InvalidValueError
        No list of objects, a rule that lacks an argument, or whatever the rule itself refuses; the message says which.
    UnknownNameError
        A rule, argument or column that does not exist.
    """
    listed = _document(path)
    if not isinstance(listed, list):
        but = f"{str(path)!r} holds {_kind(listed)}"
        raise InvalidTypeError(_WHO, "a list of rules", but, 'Write [{"rule": "MaxChanges", "k": 2}, ...].')
    return tuple(_rule(entry, f"rule {place} of {str(path)!r}", space) for place, entry in enumerate(listed, start=1))


def _document(path: Path) -> Any:
    hooks: dict[str, Any] = {"object_pairs_hook": _object, "parse_constant": _refuse_constant}
    return json_in(_WHO, repr(str(path)), read_text(_WHO, path), "Correct it.", **hooks)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, or refuse a name that stands in it twice: one of the two would be passed over."""
    read: dict[str, Any] = {}
    for name, value in pairs:
        if name in read:
            raise InvalidValueError(_WHO, "each name once in an object", f"{name!r} is there twice", "Remove one.")
        read[name] = value
    return read


def _refuse_constant(word: str) -> float:
    raise InvalidValueError(_WHO, "finite numbers", f"one is {word}", "Leave such an argument out, or correct it.")


def _rule(entry: Any, where: str, space: FeatureSpace) -> AbstractRule:
    if not isinstance(entry, dict):
        raise InvalidTypeError(_WHO, f"an object as {where}", f"it is {_kind(entry)}", 'Write {"rule": ...}.')
    given = dict(entry)
    if "rule" not in given:
        known = ", ".join(RULES)
        raise InvalidValueError(_WHO, f'a name as "rule" in {where}', "there is none", f"Choose from: {known}.")
    name = given.pop("rule")
    if not isinstance(name, str) or name not in RULES:
        raise UnknownNameError.among(_WHO, f"rule as {where}", name, RULES)
    described = _schema()[name]
    arguments = [argument for argument in described["properties"] if argument != "rule"]
    for argument in given:
        if argument not in arguments:
            raise UnknownNameError.among(_WHO, f"argument of {name} in {where}", argument, arguments)
    for argument in described["required"]:
        if argument not in entry:
            needs = f"{argument!r} of {name} in {where}"
            raise InvalidValueError(_WHO, needs, "it is missing", f"Its arguments are: {', '.join(arguments)}.")
    try:
        for argument, value in given.items():
            given[argument] = _read(argument, value, given, space)
        rule: AbstractRule = RULES[name](**given)
        rule.check(space)
    except CeoptError as error:
        raise type(error)(f"{_WHO} cannot use {where}: {error}") from error
    return rule


@functools.cache
def _schema() -> dict[str, Any]:
    """Return what each rule takes, by name: the same file that editors and other programs check rules by."""
    text = files("ceopt.cli").joinpath("rules_schema.json").read_text(encoding="utf-8")
    described: dict[str, Any] = json.loads(text)["$defs"]
    return described


# ---- arguments that plain data stand for -----------------------------------------------------------------------------
def _read(argument: str, value: Any, given: Mapping[str, Any], space: FeatureSpace) -> Any:
    """Return what a rule takes for a value of a file."""
    match argument:
        case "frame" | "data":
            return _frame(value)
        case "equations":
            return _equations(value)
        case "transitions":
            return _transitions(value, given.get("column"), space)
    return value


def _frame(value: Any) -> pd.DataFrame | None:
    """Return a list of rows as a frame."""
    if value is None:
        return None
    is_table = isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
    if not is_table:
        but = f"it is {_kind(value)}"
        raise InvalidTypeError("A table", "a list of rows, each an object", but, 'Write [{"age": 30}, ...].')
    names = list(value[0])
    for place, row in enumerate(value, start=1):
        if set(row) != set(names):
            but = f"row {place} has {', '.join(row) or 'none'}"
            then = "Add what is missing."
            raise InvalidValueError("A table", f"the columns {', '.join(names)} in each row", but, then)
    return pd.DataFrame(value, columns=names)


def _transitions(value: Any, column: Any, space: FeatureSpace) -> Any:
    """Return a mapping whose keys are levels of the column, where their texts are."""
    if not isinstance(value, dict) or not isinstance(column, str) or column not in space:
        return value
    levels = {_text(level): level for level in space[column].levels}
    return {levels.get(key, key): targets for key, targets in value.items()}


def _equations(value: Any) -> Any:
    """Return linear equations by column."""
    if not isinstance(value, dict):
        return value
    equations = {}
    for column, equation in value.items():
        if not isinstance(equation, dict) or "parents" not in equation:
            but = f"that of {column!r} is {json.dumps(equation)}"
            raise InvalidTypeError("Causal", 'an object with "parents" as equation', but, "Write the parents in it.")
        for word in equation:
            if word not in {"parents", "intercept"}:
                raise UnknownNameError.among("Causal", "part of an equation", word, ("parents", "intercept"))
        equations[column] = LinearEquation(**equation)
    return equations


def _text(level: Any) -> str:
    """Return a level as JSON has it for a key."""
    if isinstance(level, str):
        return level
    return json.dumps(level)


def _kind(value: Any) -> str:
    """Return what a value of JSON is, in words."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
