"""What a shell completes: values of options that are one of a list. Options and files it knows from the parser.

Each function gives the values that begin with what was typed. The lists are those of the package, which is too slow to
import while somebody waits for TAB: a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Shells that typer has a script for.
_SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")
_COSTS: Final = ("l0", "l1", "l2", "l2_squared", "linf", "mahalanobis", "few_changes")
_FORMULATIONS: Final = ("auto", "affine", "bigm", "partition", "extended", "ordered", "misic", "leaf")
_LANGUAGES: Final = ("en", "de")
_SOLVERS: Final = ("auto", "highs", "clarabel", "scip", "gurobi", "scs", "mosek")
_SURROGATES: Final = ("fisher_rao", "nominal", "quadratic", "bures", "logdet", "lime", "clime", "limels", "svm")


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
    return _beginning(_COSTS, incomplete)


def formulations(incomplete: str) -> list[str]:
    """Return names that ``--formulation`` takes, of any kind of model."""
    return _beginning(_FORMULATIONS, incomplete)


def languages(incomplete: str) -> list[str]:
    """Return names that ``--language`` takes."""
    return _beginning(_LANGUAGES, incomplete)


def solvers(incomplete: str) -> list[str]:
    """Return names that ``--solver`` takes, whether their library is here or not."""
    return _beginning(_SOLVERS, incomplete)


def surrogates(incomplete: str) -> list[str]:
    """Return names that ``--surrogate`` takes."""
    return _beginning(_SURROGATES, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
