"""The table of supported models, as the readers name them: for docs/reference/models.md and for ``ceopt models``.

To add a reader see ``read/__init__.py``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Final

import pandas as pd

import ceopt.formulations.predictors.read as readers
from ceopt.solvers.errors import UnknownNameError

#: How each kind of model is embedded, in the words of docs/reference/models.md.
_EMBEDDED: Final[Mapping[str, str]] = {
    "linear": "one row per rival class",
    "trees": "ordered split binaries shared by all trees, no coordinates and no big-M",
    "networks": "a binary per neuron that can switch, within back-substituted bounds that a known answer tightens",
    "models of models": "members' scores or votes added up; soft votes of trees and forests, one calibrator",
}


def supported() -> pd.DataFrame:
    """Return what each reader reads: library, models (as text, and as tuple ``names``), and how they are embedded.

    A reader says so in ``MODELS``, a mapping from the kind of model to names, so a reader that joins the folder joins
    the table.

    Raises
    ------
    UnknownNameError
        A kind in ``MODELS`` is none of those that are embedded.

    Examples
    --------
    >>> frame = supported()
    >>> list(frame.columns)
    ['library', 'models', 'embedded', 'names']
    >>> frame.loc[frame["library"] == "sklearn", "models"].str.contains("RandomForestClassifier").any()
    np.True_
    """
    rows = []
    for reader in pkgutil.iter_modules(readers.__path__):
        module = importlib.import_module(f"{readers.__name__}.{reader.name}")
        for kind, names in getattr(module, "MODELS", {}).items():
            if kind not in _EMBEDDED:
                raise UnknownNameError.among(f"MODELS of {module.__name__}", "kind of model", kind, _EMBEDDED)
            rows.append((reader.name, ", ".join(names), _EMBEDDED[kind], names))
    return pd.DataFrame(rows, columns=["library", "models", "embedded", "names"])


def markdown() -> str:
    """Return the same as the table in docs/reference/models.md."""
    head = ["| library | models read | how they are embedded |", "|---|---|---|"]
    rows = supported().itertuples(index=False)
    return "\n".join([*head, *(f"| `{row.library}` | {row.models} | {row.embedded} |" for row in rows)])
