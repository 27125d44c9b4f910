"""Options by a solver's own names, handed over by one function for all adapters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ceopt.solvers.adapter import Option, apply_options
from ceopt.solvers.errors import InvalidValueError, UnknownNameError

KINDS: dict[str, tuple[type, ...]] = {"gap": (float,), "rounds": (int,), "method": (int, str), "any": ()}


def described(name: str) -> Option:
    if name not in KINDS:
        raise UnknownNameError.among("Solver", "option", name, KINDS)
    return Option(types=KINDS[name], takes=f"a value that {name!r} takes", then="" if name == "any" else "Change it.")


def applied(options: dict[str, Any]) -> dict[str, Any]:
    """Return what reaches a solver that takes no negative numbers."""
    reached: dict[str, Any] = {}

    def put(name: str, value: Any) -> None:
        if not isinstance(value, str) and value < 0:
            raise ValueError("It is negative.")
        reached[name] = value

    assert apply_options("Solver", options, arguments={"time": "time_limit_s"}, describe=described, put=put) == reached
    return reached


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"gap": 1}, {"gap": 1.0}),
        ({"rounds": np.int64(3)}, {"rounds": 3}),
        ({"method": "dual", "rounds": 0}, {"method": "dual", "rounds": 0}),
        ({"any": np.float64(0.5)}, {"any": 0.5}),
    ],
)
def test_plain_values_of_the_options_own_type_are_handed_over(given: dict[str, Any], taken: dict[str, Any]) -> None:
    reached = applied(given)
    assert reached == taken
    assert [type(value) for value in reached.values()] == [type(value) for value in taken.values()]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"time": 3.0}, InvalidValueError, "Solver needs option 'time' as an argument, .* Use time_limit_s= instead."),
        ({"gaps": 3.0}, UnknownNameError, "Did you mean 'gap'"),
        ({"rounds": 1.5}, InvalidValueError, "a value that 'rounds' takes, but rounds is 1.5. Change it."),
        ({"rounds": True}, InvalidValueError, "rounds is True"),
        ({"gap": float("nan")}, InvalidValueError, "gap is nan"),
        ({"gap": -1.0}, InvalidValueError, "gap is -1.0. Change it."),
        ({"any": -1}, InvalidValueError, "any is -1. It is negative."),
    ],
)
def test_others_are_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        applied(given)
