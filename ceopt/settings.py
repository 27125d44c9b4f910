"""The keywords of ``explain``: their defaults, and every check that needs no program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ceopt.formulations.constraints import AbstractRule, parse_rules, rule_name
from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
from ceopt.formulations.constraints.diversity.registry import parse_diversity
from ceopt.formulations.costs import AbstractCost, parse_cost
from ceopt.formulations.predictors.embed.embed import FORMULATIONS
from ceopt.formulations.targets import Target, parse_target
from ceopt.solvers.checks import is_number, require_choice, require_divisor
from ceopt.solvers.errors import (
    InvalidTypeError,
    InvalidValueError,
    MissingLibraryError,
    MissingLicenceError,
)
from ceopt.solvers.registry import SOLVERS

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["CheckedSettings", "Settings"]

INCUMBENTS = "incumbents"
#: Seconds, and share of the time limit, that the search for a conflict takes unless told: the lesser of both.
_WHY_S, _WHY_SHARE = 5.0, 0.2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSettings:
    """Settings that fit a model and a space: target, cost and rules as objects, numbers as plain numbers.

    Without a diversity, further answers are those that were met on the way ("incumbents").
    """

    target: Target
    n: int
    cost: AbstractCost
    rules: tuple[AbstractRule, ...]
    solver: str
    time_limit_s: float
    relative_gap: float
    margin: float | None
    diversity: AbstractDiversity | None
    formulation: str
    threads: int
    random_state: int
    solver_options: Mapping[str, Any]
    why: bool | float
    cost_name: str

    def options(self) -> dict[str, Any]:
        """Return the settings as plain values that JSON holds, as a result carries them."""
        rules = [f"{rule_name(rule, place)}: {rule.sentence()}" for place, rule in enumerate(self.rules)]
        return {
            "target": self.target.text(),
            "n": self.n,
            "cost": self.cost_name,
            "constraints": rules,
            "solver": self.solver,
            "time_limit_s": self.time_limit_s,
            "relative_gap": self.relative_gap,
            "margin": self.margin,
            "diversity": INCUMBENTS if self.diversity is None else self.diversity.text,
            "formulation": self.formulation,
            "threads": self.threads,
            "random_state": self.random_state,
            "solver_options": dict(self.solver_options),
            "why": self.why,
        }

    @property
    def why_s(self) -> float:
        """Return the seconds that the search for a conflict may take; 0 for none."""
        if isinstance(self.why, bool):
            return min(_WHY_S, _WHY_SHARE * self.time_limit_s) if self.why else 0.0
        return self.why


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What :func:`ceopt.explain` takes beside model, row, space and data; see there for each."""

    target: Any
    n: int = 1
    cost: Any = "l1"
    constraints: Any = ()
    solver: str = "auto"
    time_limit_s: float = 60.0
    relative_gap: float = 1e-6
    margin: float | None = None
    diversity: Any = "pool"
    formulation: str = "auto"
    threads: int = 1
    random_state: int = 0
    solver_options: Mapping[str, Any] | None = None
    why: bool | float = True

    def limit_s(self) -> float:
        """Return the time limit, or refuse what is none: it is asked for before anything else is read."""
        return number("time_limit_s", self.time_limit_s, above=0.0)

    def unchecked_options(self) -> dict[str, Any]:
        """Return the settings as plain values where there was no time to check them: what is an object, as its text."""
        told = {word.name: getattr(self, word.name) for word in fields(self)}
        plain = str | int | float | bool | None
        return {
            word: value if isinstance(value, plain) else dict(value) if isinstance(value, Mapping) else repr(value)
            for word, value in told.items()
        }

    def check(
        self, space: FeatureSpace, labels: tuple[Any, ...] | None, *, data: pd.DataFrame | None = None
    ) -> CheckedSettings:
        """Check everything against the space and the model's labels (None: a regressor), before any work starts.

        A cost takes what it needs from the data here.

        Raises
        ------
        UnknownNameError
            A label, cost, rule, solver, diversity, formulation or column that does not exist.
        InvalidTypeError, InvalidValueError
            A number out of range or not a number; a rule or target that does not fit.
        MissingLibraryError, MissingLicenceError
            The solver asked for is not installed, or has no licence.
        """
        asked = parse_cost(self.cost)
        cost = asked.fitted(space, data)
        cost.prices(space)  # refuses scales of columns that do not exist
        formulations = dict.fromkeys(name for names in FORMULATIONS.values() for name in names)
        rules, diversity = _rules(self.constraints, space), parse_diversity(self.diversity, INCUMBENTS)
        if diversity is not None:
            diversity.check(space, rules)
        among("formulation", self.formulation, ("auto", *formulations))
        margin = None if self.margin is None else number("margin", self.margin)
        if margin is not None:
            require_divisor("explain", "margin", margin, "Give None, 0 or an ordinary number.")
        checked = {word.name: getattr(self, word.name) for word in fields(self)} | {
            "target": parse_target(self.target, labels),
            "n": whole("n", self.n, least=1),
            "cost": cost,
            "rules": rules,
            "diversity": diversity,
            "solver": _solver(self.solver),
            "time_limit_s": self.limit_s(),
            "relative_gap": number("relative_gap", self.relative_gap),
            "margin": margin,
            "threads": whole("threads", self.threads, least=1),
            "random_state": whole("random_state", self.random_state, least=0, most=2**31 - 1),
            "solver_options": _solver_options(self.solver_options),
            "why": self.why if isinstance(self.why, bool) else number("why", self.why),
            "cost_name": self.cost if isinstance(self.cost, str) else repr(asked),
        }
        del checked["constraints"]
        return CheckedSettings(**checked)


def among(word: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse an option that is not one of a few words."""
    require_choice("explain", word, value, choices)


def whole(word: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return a whole number from ``least`` to ``most``, or refuse the option by name."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | np.integer):
        raise InvalidTypeError("explain", f"a whole number as {word}", f"{word} is {value!r}", "Give an int.")
    if value < least:
        raise InvalidValueError("explain", f"{word} to be at least {least}", f"{word} is {value!r}", "Raise it.")
    if most is not None and value > most:
        raise InvalidValueError("explain", f"{word} to be at most {most}", f"{word} is {value!r}", "Lower it.")
    return int(value)


def number(word: str, value: Any, *, above: float | None = None) -> float:
    """Return a finite number, above ``above`` or else at least 0, or refuse the option by name."""
    if not is_number(value):
        raise InvalidTypeError("explain", f"a number as {word}", f"{word} is {value!r}", "Give a number.")
    if not math.isfinite(value) or (value < 0 if above is None else value <= above):
        range_text = "of at least 0" if above is None else f"above {above:g}"
        raise InvalidValueError(
            "explain", f"a finite number {range_text} as {word}", f"{word} is {value!r}", "Change it."
        )
    return float(value)


def _rules(constraints: Any, space: FeatureSpace) -> tuple[AbstractRule, ...]:
    listed = hasattr(constraints, "__iter__") and not isinstance(constraints, str | Mapping)
    if not listed and not isinstance(constraints, AbstractRule):
        but = f"constraints is {constraints!r}"
        raise InvalidTypeError("explain", "rules as constraints", but, "Pass a list such as [MaxChanges(3)].")
    return parse_rules(constraints, space)


def _solver(name: str) -> str:
    require_choice("explain", "solver", name, ["auto", *SOLVERS])
    if name == "auto":
        return "auto"
    solver = SOLVERS[name]
    if not solver.is_licensed:
        kind = MissingLicenceError if solver.is_installed else MissingLibraryError
        wanted = f"solver {name!r} to be {'licensed' if solver.is_installed else 'installed'}"
        raise kind("explain", wanted, solver.why_not.rstrip("."), "Mend that, or use solver='auto'.")
    return name


def _solver_options(options: Any) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        raise InvalidTypeError(
            "explain", "a mapping from names to values as solver_options", f"it is {options!r}", "Give a dict."
        )
    return dict(options)
