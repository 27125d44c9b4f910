"""HiGHS options by their own names, refused before work starts if unknown or out of range."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ceopt.solvers.checks import refuse_argument
from ceopt.solvers.errors import InvalidValueError, UnknownNameError

__all__ = ["set_options"]

_ARGUMENTS = {
    "time_limit": "time_limit_s",
    "mip_rel_gap": "relative_gap",
    "threads": "threads",
    "random_seed": "random_state",
}


def set_options(highs: Any, options: Mapping[str, Any]) -> None:
    """Set each option on a ``highspy.Highs``.

    Raises
    ------
    UnknownNameError
        HiGHS has no option of that name.
    InvalidValueError
        HiGHS does not take the value, or the option has an argument of its own.
    """
    import highspy

    for name, value in options.items():
        refuse_argument("HiGHS", name, value, _ARGUMENTS)
        status, kind = highs.getOptionType(name)
        if status != highspy.HighsStatus.kOk:
            raise UnknownNameError.among("HiGHS", "option", name, _names(highs))
        plain = _plain(value, kind.name)
        if plain is None or highs.setOptionValue(name, plain) != highspy.HighsStatus.kOk:
            raise InvalidValueError(
                "HiGHS",
                f"a value of type {kind.name[1:].lower()} that option {name!r} takes",
                f"{name} is {value!r}",
                f"Its present value is {highs.getOptionValue(name)[1]!r}.",
            )


def _plain(value: Any, kind: str) -> bool | int | float | str | None:
    value = value.item() if hasattr(value, "item") and not isinstance(value, str) else value
    if kind == "kBool":
        return value if isinstance(value, bool) else None
    if kind == "kInt":
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if kind == "kDouble":
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and not math.isnan(value) else None
    return value if isinstance(value, str) else None


def _names(highs: Any) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "options.txt"
        highs.writeOptions(str(path))
        lines = path.read_text(encoding="utf-8").splitlines()
    return sorted(line.split("=")[0].strip() for line in lines if "=" in line and not line.startswith("#"))
