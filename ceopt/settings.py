"""The keywords of ``explain``: their defaults, and every check that needs no program."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, final

from ceopt.formulations.constraints import AbstractRule, parse_rules, rule_name
from ceopt.formulations.constraints.diversity import DIVERSITIES
from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
from ceopt.formulations.constraints.rule import one_change_groups
from ceopt.formulations.costs import COST, AbstractCost
from ceopt.formulations.predictors.embed import FORMULATIONS
from ceopt.formulations.targets import Target, parse_target
from ceopt.solvers.checks import (
    NOT_A_NUMBER,
    OPTIONS,
    AbstractCheck,
    AllOf,
    Choice,
    Divisor,
    Flag,
    NameOrObject,
    OrNone,
    Real,
    Refusal,
    check_arguments,
    whole_from,
)
from ceopt.solvers.errors import (
    InvalidTypeError,
    MissingLibraryError,
    MissingLicenceError,
)
from ceopt.solvers.registry import SOLVER_NAME, SOLVERS

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.space.space import FeatureSpace

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
    proof: bool
    cost_name: str

    def options(self) -> dict[str, Any]:
        """Return the settings as plain values that JSON holds, as a result carries them."""
        in_words = {
            "target": self.target.text(),
            "cost": self.cost_name,
            "constraints": [f"{rule_name(rule, place)}: {rule.sentence()}" for place, rule in enumerate(self.rules)],
            "diversity": INCUMBENTS if self.diversity is None else self.diversity.text,
            "solver_options": dict(self.solver_options),
        }
        options = {}
        for keyword in fields(Settings):
            name = keyword.name
            if name in in_words:
                options[name] = in_words[name]
            else:
                options[name] = getattr(self, name)
        return options

    @property
    def why_s(self) -> float:
        """Return the seconds that the search for a conflict may take; 0 to leave it out, as without proof."""
        if not self.proof:
            return 0.0
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
    diversity: Any = "distinct"
    formulation: str = "auto"
    threads: int = 1
    random_state: int = 0
    solver_options: Mapping[str, Any] | None = None
    why: bool | float = True
    proof: bool = True

    def limit_s(self) -> float:
        """Return the checked time limit, needed before anything is read."""
        limit_s: float = check_setting("time_limit_s", self.time_limit_s)
        return limit_s

    def unchecked_options(self) -> dict[str, Any]:
        """Return unchecked settings as plain values; objects as their text."""
        options: dict[str, Any] = {}
        for keyword in fields(self):
            value = getattr(self, keyword.name)
            if isinstance(value, Mapping):
                options[keyword.name] = dict(value)
            elif isinstance(value, str | int | float | bool | None):
                options[keyword.name] = value
            else:
                options[keyword.name] = repr(value)
        return options

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
        asked = COST.require("cost", "cost", self.cost)
        cost = asked.fitted(space, data)
        cost.prices(space)  # refuses scales of columns that do not exist
        rules = _rules(self.constraints, space)
        diversity = _DIVERSITY.require("explain", "diversity", self.diversity)
        together = one_change_groups(rules)
        if diversity is not None and together:
            diversity = diversity.counting(together)
        if diversity is not None:
            diversity.check(space, rules)
        wanted = parse_target(self.target, labels)
        given = {word.name: getattr(self, word.name) for word in fields(self)}
        checked = check_arguments("explain", _CHECKS, given)
        checked["solver_options"] = checked["solver_options"] or {}
        _require_licence(self.solver)
        return CheckedSettings(
            **checked,
            target=wanted,
            cost=cost,
            rules=rules,
            diversity=diversity,
            cost_name=self.cost if isinstance(self.cost, str) else repr(asked),
        )


def check_setting(name: str, value: Any) -> Any:
    """Return one setting as a plain value, or refuse it by name."""
    return _CHECKS[name].require("explain", name, value)


@final
@dataclass(frozen=True, slots=True)
class _OrFlag(AbstractCheck):
    """True or False, or what another check asks for."""

    check: AbstractCheck

    def require(self, who: str, name: str, value: Any) -> Any:
        """Return the flag, or what the other check returns."""
        if isinstance(value, bool):
            return value
        return self.check.require(who, name, value)


#: Seconds that something may take.
TIME_LIMIT_S: Final = Real(
    above=0.0,
    finite=True,
    otherwise=Refusal("a finite number above 0 as {name}", "Change it."),
    wrong_type=NOT_A_NUMBER,
)
_AT_LEAST_0 = Real(
    at_least=0.0,
    finite=True,
    otherwise=Refusal("a finite number of at least 0 as {name}", "Change it."),
    wrong_type=NOT_A_NUMBER,
)
_FORMULATIONS = ("auto", *dict.fromkeys(name for names in FORMULATIONS.values() for name in names))
#: Ways to differ by word; answers that were met on the way need not differ in any.
_DIVERSITIES: Mapping[str, Any] = ChainMap({INCUMBENTS: lambda: None}, DIVERSITIES)
_DIVERSITY = NameOrObject(
    AbstractDiversity,
    _DIVERSITIES,
    Refusal(
        "a word or ceopt.Apart(least) as diversity",
        f"Choose from: {', '.join(_DIVERSITIES)}, ceopt.Apart(least).",
        error=InvalidTypeError,
    ),
)
#: The settings that need neither the model nor the space to be checked.
_CHECKS: Mapping[str, AbstractCheck] = {
    "formulation": Choice(_FORMULATIONS),
    "margin": OrNone(AllOf((_AT_LEAST_0, Divisor("Give None, 0 or an ordinary number.")))),
    "n": whole_from(1),
    "solver": SOLVER_NAME,
    "time_limit_s": TIME_LIMIT_S,
    "relative_gap": _AT_LEAST_0,
    "threads": whole_from(1),
    "random_state": whole_from(0, 2**31 - 1),
    "solver_options": OPTIONS,
    "why": _OrFlag(_AT_LEAST_0),
    "proof": Flag(Refusal("True or False as {name}", "Change it.", error=InvalidTypeError)),
}


def _rules(constraints: Any, space: FeatureSpace) -> tuple[AbstractRule, ...]:
    listed = hasattr(constraints, "__iter__") and not isinstance(constraints, str | Mapping)
    if not listed and not isinstance(constraints, AbstractRule):
        but = f"constraints is {constraints!r}"
        raise InvalidTypeError("explain", "rules as constraints", but, "Pass a list such as [MaxChanges(3)].")
    return parse_rules(constraints, space)


_MEND = "Mend that, or use solver='auto'."


def _require_licence(name: str) -> None:
    """Refuse a solver that is asked for by name and cannot be used."""
    if name == "auto":
        return
    solver = SOLVERS[name]
    if not solver.is_installed:
        wanted = f"solver {name!r} to be installed"
        raise MissingLibraryError("explain", wanted, solver.why_not.rstrip("."), _MEND)
    if not solver.is_licensed:
        wanted = f"solver {name!r} to be licensed"
        raise MissingLicenceError("explain", wanted, solver.why_not.rstrip("."), _MEND)
