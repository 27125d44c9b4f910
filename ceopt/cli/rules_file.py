"""Rules from a file: a JSON list with an object for each, ``{"rule": "MaxChanges", "k": 2}``.

rules_schema.json beside this file is its schema. An object holds arguments by their own names, as plain data:

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

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
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

__all__ = ["read_rules"]

_WHO: Final = "--rules"
#: Arguments that only Python can give.
_NOT_PLAIN: Final = {("RobustValidity", "model")}


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
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidValueError(_WHO, "each name once in an object", f"{name!r} is there twice", "Remove one.")
        found[name] = value
    return found


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
    arguments = _arguments(name)
    for argument in given:
        if argument not in arguments:
            raise UnknownNameError.among(_WHO, f"argument of {name} in {where}", argument, arguments)
    for argument, field in arguments.items():
        if argument not in given and field.default is MISSING and field.default_factory is MISSING:
            needs = f"{argument!r} of {name} in {where}"
            raise InvalidValueError(_WHO, needs, "it is missing", f"Its arguments are: {', '.join(arguments)}.")
    try:
        for argument, value in given.items():
            read = _READ.get((name, argument))
            if read is not None:
                given[argument] = read(value, given, space)
        rule: AbstractRule = RULES[name](**given)
        rule.check(space)
    except CeoptError as error:
        raise type(error)(f"{_WHO} cannot use {where}: {error}") from error
    return rule


def _arguments(name: str) -> dict[str, Field[Any]]:
    """Return the arguments of a rule that a file can give."""
    found = {}
    for field in fields(RULES[name]):  # type: ignore[arg-type]  # every rule is a dataclass
        if field.init and (name, field.name) not in _NOT_PLAIN:
            found[field.name] = field
    return found


# ---- arguments that plain data stand for -----------------------------------------------------------------------------
def _frame(value: Any, given: Mapping[str, Any], space: FeatureSpace) -> Any:
    """Return a list of rows as a frame."""
    del given, space
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
            raise InvalidValueError(
                "A table", f"the columns {', '.join(names)} in each row", but, "Add what is missing."
            )
    return pd.DataFrame(value, columns=names)


def _transitions(value: Any, given: Mapping[str, Any], space: FeatureSpace) -> Any:
    """Return a mapping whose keys are levels of the column, where their texts are."""
    column = given.get("column")
    if not isinstance(value, dict) or not isinstance(column, str) or column not in space:
        return value
    levels = {_text(level): level for level in space[column].levels}
    return {levels.get(key, key): targets for key, targets in value.items()}


def _equations(value: Any, given: Mapping[str, Any], space: FeatureSpace) -> Any:
    """Return linear equations by column."""
    del given, space
    if not isinstance(value, dict):
        return value
    found = {}
    for column, equation in value.items():
        if not isinstance(equation, dict) or "parents" not in equation:
            but = f"that of {column!r} is {json.dumps(equation)}"
            raise InvalidTypeError("Causal", 'an object with "parents" as equation', but, "Write the parents in it.")
        for word in equation:
            if word not in {"parents", "intercept"}:
                raise UnknownNameError.among("Causal", "part of an equation", word, ("parents", "intercept"))
        found[column] = LinearEquation(**equation)
    return found


#: How a file's value becomes what a rule takes, by rule and argument.
_READ: Final[Mapping[tuple[str, str], Callable[[Any, Mapping[str, Any], FeatureSpace], Any]]] = {
    ("AllowedRows", "frame"): _frame,
    ("Hull", "data"): _frame,
    ("AllowedTransitions", "transitions"): _transitions,
    ("Causal", "equations"): _equations,
}


def _text(level: Any) -> str:
    """Return a level as JSON has it for a key."""
    return level if isinstance(level, str) else json.dumps(level)


def _kind(value: Any) -> str:
    """Return what a value of JSON is, in words."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
