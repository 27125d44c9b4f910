"""The ingredients of a fit for a black box, and the check that they still hold when people are asked about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd

from ceopt.checking.functions import LIBRARIES
from ceopt.formulations.constraints.rule import lacks_rows, parse_rules
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.space.space import FeatureSpace, complete_part, require_space
from ceopt.population.fitted import changed, changed_model, rows_of, state_of
from ceopt.query.black_box_question import BlackBoxQuestion, asked_often, asked_once
from ceopt.solvers.errors import InvalidValueError, each_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ceopt.formulations.constraints import AbstractRule
    from ceopt.settings import Settings

__all__ = ["BlackBoxFit", "black_box_fit"]

#: Rows by whose answers a function is known.
_ROWS: Final = 50


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlackBoxFit:
    """What ``Recourse.fit`` was given for a black box, and what it made of it.

    Parameters
    ----------
    prepared
        The question, with what the model says of the data.
    model
        Content of the model; of a function, what it says of ``rows``.
    rows
        Some rows of the data, in raw units.
    data
        The parameter of that name.
    X
        The rows that ``fit`` was given.
    learned
        Content of the rows that samples begin at.
    """

    prepared: BlackBoxQuestion
    model: str | None
    rows: pd.DataFrame
    data: pd.DataFrame | None
    X: pd.DataFrame
    learned: str | None

    def marks(self) -> dict[str, Any]:
        """Return by what a cohort knows the model and the data that its answers are about."""
        return {"model": self.model, "data": self.learned}

    def renewed(
        self,
        model: Any,
        space: FeatureSpace,
        data: pd.DataFrame | None,
        settings: Settings,
        *,
        surrogate: Any,
        starts: Any,
    ) -> BlackBoxQuestion:
        """Return what is ready for people under the settings of now, or refuse what would need another fit.

        Raises
        ------
        InvalidValueError
            The model or the surrogate was changed, or another space, data or target is asked for.
        CeoptError
            A setting that makes no sense.
        """
        known = self.prepared
        if space is not known.space and space != known.space:
            raise changed("space")
        if data is not self.data and (data is None or self.data is None or not data.equals(self.data)):
            raise changed("data")
        if surrogate is None or content_of(surrogate) != content_of(known.surrogate):
            raise changed("surrogate")
        if content_of(settings.target) != content_of(known.settings.target):
            raise changed("target")
        used = self.X if data is None else complete_part(space, data)
        asked = asked_once(model, space, settings, data=used, surrogate=surrogate, starts=starts)
        if _state_of(model, asked, self.rows) != self.model:
            raise changed_model(model)
        return asked_often(asked, known)


def black_box_fit(
    model: Any,
    space: FeatureSpace,
    settings: Settings,
    *,
    data: pd.DataFrame | None,
    X: pd.DataFrame,
    y: Any,
    surrogate: Any,
    starts: Any,
) -> BlackBoxFit:
    """Check every setting, ask the model about the data once, and note what all this was.

    Raises
    ------
    InvalidValueError
        Another number of labels than rows; labels ``y`` and a rule that learns from rows, which here are those that the
        model favours.
    CeoptError
        A setting or a model that does not fit.
    """
    require_space("Recourse", space)
    used = X if data is None else complete_part(space, data)
    asked = asked_once(model, space, settings, data=used, surrogate=surrogate, starts=starts)
    if y is not None:
        _check_labels(y, len(X), parse_rules(settings.constraints, space))
    prepared = asked_often(asked)
    rows = rows_of(X, space).iloc[:_ROWS]
    return BlackBoxFit(
        prepared=prepared,
        model=_state_of(model, asked, rows),
        rows=rows,
        data=data,
        X=X,
        learned=content_of(prepared.data),
    )


def _state_of(model: Any, question: BlackBoxQuestion, rows: pd.DataFrame) -> str | None:
    """Return the content of a library's model or of a file; of all else, what it says of some rows.

    What a function holds may change with each call, as the count of one that counts.
    """
    library = type(model).__module__.partition(".")[0]
    if isinstance(model, str | Path | bytes) or library in LIBRARIES:
        return state_of(model, question.space, rows)
    return content_of(question.boxed(rows).labels(rows).tolist())


def _check_labels(y: Any, n: int, rules: Sequence[AbstractRule]) -> None:
    labels = np.asarray(y)
    if labels.shape != (n,):
        but = f"y has shape {labels.shape}"
        raise InvalidValueError("Recourse.fit", f"one label for {each_of(n, 'row')}", but, "Match X.")
    for rule in rules:
        if lacks_rows(rule):
            raise InvalidValueError(
                "Recourse.fit", "no y beside a surrogate and a rule that learns from rows",
                f"y is given and {type(rule).__name__} has no rows of its own",
                "Leave y out, or give the rule its rows.",
            )  # fmt: skip
