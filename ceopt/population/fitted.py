"""The ingredients of a fit, and the check that they still hold when people are asked about."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ceopt.formulations.constraints.rule import RuleCharges, about_model, lacks_rows
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.costs import AbstractCost, parse_cost
from ceopt.formulations.predictors.read import open_model
from ceopt.formulations.predictors.read.model_input import given
from ceopt.formulations.space.space import FeatureSpace, complete_part
from ceopt.formulations.targets import parse_target
from ceopt.query.prepare import Learned, Prepared, fingerprints_of, model_content, prepare
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.constraints import AbstractRule
    from ceopt.settings import Settings

__all__ = ["Fit", "changed", "changed_model", "fit_of", "rows_of", "state_of"]

_WHO: Final = "Recourse.explain"
#: Rows of the data whose scores stand for a model that cannot be pickled.
_ROWS: Final = 200


@final
@dataclass(frozen=True, slots=True)
class _Asked:
    """An object as it was given to fit, its content then, and what became of it."""

    given: Any
    content: str | None
    fitted: Any

    def is_still(self, now: Any) -> bool:
        """Whether an object has the content of then; of what has none, whether it is the same."""
        if self.content is None:
            return self.given is now
        return self.content == content_of(now)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What ``Recourse.fit`` was given, and what it made of it.

    Parameters
    ----------
    prepared
        The model as read, and the settings as they were.
    model
        Content of the model, or of its scores where it cannot be pickled.
    rows
        Some rows of the data, in raw units.
    data
        The parameter of that name.
    cost, rules
        As given and as fitted.
    learned
        Content of what rules and cost have learned from; None where they learned nothing.
    """

    prepared: Prepared
    model: str | None
    rows: pd.DataFrame
    data: pd.DataFrame | None
    cost: _Asked
    rules: tuple[_Asked, ...]
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
    ) -> Prepared:
        """Return what is ready for people under the settings of now, or refuse what would need another fit.

        Raises
        ------
        InvalidValueError
            The model was fitted again or changed; another space, data or target, or a surrogate; a rule or a cost that
            learns from data and is not the one that has learned.
        CeoptError
            A setting that makes no sense.
        """
        known = self.prepared
        if space is not known.space and space != known.space:
            raise changed("space")
        if surrogate is not None:
            raise changed("surrogate")
        if data is not self.data and (data is None or self.data is None or not data.equals(self.data)):
            raise changed("data")
        now = state_of(model, space, self.rows)
        if now != self.model and not (now is None and isinstance(model, str | Path)):  # a file that is gone is no other
            raise changed_model(model)
        if parse_target(settings.target, known.predictor.labels) != known.settings.target:
            raise changed("target")
        asked = parse_cost(settings.cost)
        if self.cost.is_still(settings.cost):
            cost = self.cost.fitted
        else:
            cost = self._own_cost(asked)
        if isinstance(settings.cost, str):
            name = settings.cost
        else:
            name = repr(asked)
        learned = Learned(known, self._rule)
        prepared = prepare(model, space, replace(settings, cost=cost), starts=starts, learned=learned)
        named = replace(prepared.settings, cost_name=name)
        return replace(prepared, settings=named, fingerprints=known.fingerprints)

    def _own_cost(self, cost: AbstractCost) -> AbstractCost:
        """Return a cost that fit does not know, or refuse it if it learns from data."""
        try:
            content = content_of(cost.fitted(self.prepared.space, self.rows))
        except CeoptError:
            content = None
        if content is None or content != content_of(cost):
            raise changed("cost", " and is learned from the data")
        return cost

    def _rule(self, rule: AbstractRule) -> AbstractRule:
        """Return a rule as fitted, or one that fit does not know if it learns from no data."""
        for known in self.rules:
            if known.is_still(rule):
                fitted: AbstractRule = known.fitted
                return fitted
        about = about_model(rule, lambda: self.prepared.predictor)
        if lacks_rows(about):
            raise changed("constraints", f", and {type(rule).__name__} learns from the data")
        return about


def fit_of(
    model: Any,
    space: FeatureSpace,
    settings: Settings,
    *,
    data: pd.DataFrame | None,
    labelled: tuple[pd.DataFrame, Any] | None,
    X: pd.DataFrame,
    starts: pd.DataFrame | None = None,
) -> Fit:
    """Read the model, check every setting, learn what rules and cost learn from rows, and note what all this was."""
    if isinstance(settings.constraints, Iterator):
        but = f"constraints is a {type(settings.constraints).__name__}, which gives them once"
        raise InvalidTypeError("Recourse", "rules that explain can read again", but, "Pass a list.")
    used = X if data is None else complete_part(space, data).copy()
    prepared = prepare(model, space, settings, data=used, labelled=labelled, starts=starts)
    prepared = replace(prepared, fingerprints=fingerprints_of(model, used))
    rows = rows_of(X, space)
    if isinstance(prepared.settings.cost, RuleCharges):
        cost = prepared.settings.cost.cost
    else:
        cost = prepared.settings.cost
    if hasattr(settings.constraints, "violation"):
        given = (settings.constraints,)
    else:
        given = tuple(settings.constraints)
    pairs = list(zip(given, prepared.settings.rules, strict=True))
    learned = content_of(cost)
    if any(lacks_rows(rule) for rule in given):
        learned = content_of((learned, used if labelled is None else labelled))
    return Fit(
        prepared=prepared,
        model=prepared.fingerprints.get("model") or state_of(model, space, rows),
        rows=rows,
        data=data,
        cost=_Asked(settings.cost, content_of(settings.cost), cost),
        rules=tuple(_Asked(rule, content_of(rule), fitted) for rule, fitted in pairs),
        learned=learned,
    )


def rows_of(X: pd.DataFrame, space: FeatureSpace) -> pd.DataFrame:
    """Return some rows of the data, by which a model that cannot be pickled is known."""
    places = np.unique(np.linspace(0, len(X) - 1, min(len(X), _ROWS)).astype(int))
    return X[list(space.names)].iloc[places].copy()


def state_of(model: Any, space: FeatureSpace, rows: pd.DataFrame) -> str | None:
    """Return the content of a model; of a file, that of its bytes (None without one); else that of its scores."""
    content = model_content(model)
    if content is not None or isinstance(model, str | Path):
        return content
    return content_of(_scores(model, space, rows))


def _scores(model: Any, space: FeatureSpace, rows: pd.DataFrame) -> dict[str, Any]:
    """Return what a model says of some rows, by every method that it has; of one that fails, how."""
    said: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            opened = open_model(model)
            for method in ("predict", "predict_proba", "decision_function"):
                if hasattr(opened, method):
                    said[method] = np.asarray(getattr(opened, method)(given(opened, space, rows)))
        except Exception as error:  # noqa: BLE001 - a user's model may fail in any way, and then is not what it was
            said["fails"] = repr(error)
    return said


def _name(model: Any) -> str:
    return f"file {str(model)!r}" if isinstance(model, str | Path) else type(model).__name__


def changed_model(model: Any) -> InvalidValueError:
    """Return the refusal of a model that is not the one of the fit."""
    but = f"this {_name(model)} was changed or fitted again since"
    return InvalidValueError(_WHO, "the model as fit has read it", but, "Call fit again.")


def changed(word: str, why: str = "") -> InvalidValueError:
    """Return the refusal of what is not as it was fitted."""
    return InvalidValueError(
        _WHO, f"the {word} that it was fitted with", f"{word} was changed since{why}", "Call fit again."
    )
