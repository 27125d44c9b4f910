"""What a shell completes: values of options that are one of a list. Options and files it knows from the parser.

Each function gives the values that begin with what was typed. Lists are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["costs", "formulations", "languages", "shell_named", "solvers", "surrogates"]

#: Shells that typer has a script for.
_SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")


def shell_named(option: str, name: str) -> str:
    """Return the shell of a name, or refuse it.

    Raises
    ------
    UnknownNameError
        No script for it.

    Examples
    --------
    >>> shell_named("--show-completion", "zsh")
    'zsh'
    """
    from ceopt.solvers.errors import UnknownNameError

    if name not in _SHELLS:
        raise UnknownNameError.among(option, "shell", name, _SHELLS)
    return name


def costs(incomplete: str) -> list[str]:
    """Return names that ``--cost`` takes.

    Examples
    --------
    >>> costs("l2")
    ['l2', 'l2_squared']
    """
    from ceopt.formulations.costs import COSTS

    return _beginning(COSTS, incomplete)


def formulations(incomplete: str) -> list[str]:
    """Return names that ``--formulation`` takes, of any kind of model."""
    from ceopt.formulations.predictors.embed import FORMULATIONS

    names = ["auto"]
    for kind in FORMULATIONS.values():
        names += [name for name in kind if name not in names]
    return _beginning(names, incomplete)


def languages(incomplete: str) -> list[str]:
    """Return names that ``--language`` takes."""
    from ceopt.words import LANGUAGES

    return _beginning(LANGUAGES, incomplete)


def solvers(incomplete: str) -> list[str]:
    """Return names that ``--solver`` takes, whether their library is here or not."""
    from ceopt.solvers import available

    return _beginning(["auto", *available()["solver"]], incomplete)


def surrogates(incomplete: str) -> list[str]:
    """Return names that ``--surrogate`` takes."""
    from ceopt.cli.inputs import NAMES

    return _beginning(NAMES, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
