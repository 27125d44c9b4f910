"""Prepare a query for any factual.

:func:`prepare` reads the model, checks the settings, fits the rules, selects the data rows of the target, and reads the
user's starting points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.constraints.rule import charged_by, mended_points, refuse_labels
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.costs.base import require_amounts
from ceopt.formulations.predictors.embed import check_formulation
from ceopt.formulations.predictors.predictor import MissingCellsError, Predictor
from ceopt.formulations.predictors.reaches import require_probability, slack, target_margin
from ceopt.formulations.predictors.readers import is_function, open_model, read
from ceopt.formulations.predictors.ties import (
    accepted,
    default_margin,
    encoding_rounding,
    forest_of,
    has_fixed_order,
    is_on_lattice,
    tie_width,
)
from ceopt.formulations.space.feature import MISSING
from ceopt.formulations.space.reachable import Interval, labels_in_reach
from ceopt.formulations.space.space import FeatureSpace, require_space
from ceopt.formulations.targets import DisagreementOf, ProbabilityOf, Target
from ceopt.oracle.model import FavourableRows, ModelOracle, labels_in_target
from ceopt.oracle.rows import coordinates_of
from ceopt.search.read_once import Reading, read_once
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import (
    CeoptError,
    InvalidTypeError,
    InvalidValueError,
    UnknownNameError,
    UnsupportedModelError,
)
from ceopt.tolerances import REFUSED_BY_A_HAIR, START_MARGIN_ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.space.reachable import Reach
    from ceopt.settings import CheckedSettings, Settings

# ==== Given starts ====================================================================================================


def starts_of(starts: Any, space: FeatureSpace) -> NDArray[np.float64]:
    """Return the user's starting points as coordinates (k, d).

    Raises
    ------
    InvalidTypeError, UnknownNameError, InvalidValueError
        Not a DataFrame; a missing, unknown or repeated column; a value outside the space.
    """
    if not isinstance(starts, pd.DataFrame):
        but = f"starts is {type(starts).__name__}"
        then = "Give one row a point, such as found.to_frame()."
        raise InvalidTypeError("explain", "a DataFrame as starts", but, then)
    missing = [name for name in space.names if name not in starts.columns]
    for name in starts.columns:
        if name in space:
            continue
        if missing:  # a misspelt name is matched against the missing ones
            raise UnknownNameError.among("starts", "column", name, missing)
        raise space.unknown_column("starts", name)
    for name in space.names:
        count = int((starts.columns == name).sum())
        if count != 1:
            but = f"it is there {count} times"
            raise InvalidValueError("starts", f"column {name!r} once", but, "Give each column of the space once.")
    try:
        return space.coordinates(starts[list(space.names)])
    except CeoptError as error:
        raise type(error)(f"In starts: {error}") from error


def put_in_reach(
    points: NDArray[np.float64],
    space: FeatureSpace,
    factual: Mapping[str, float],
    reach: Reach,
    rules: Sequence[AbstractRule],
) -> NDArray[np.float64]:
    """Return the distinct points (k, d), with every column moved into the person's reach, as repaired by the rules.

    A number is moved to the nearest reachable amount; an unreachable level, and a missing cell, become the factual's.
    """
    reachable = points.copy()
    for j, name in enumerate(space.names):
        part = reach[name]
        if isinstance(part, Interval):
            reachable[:, j] = [_nearest(part, value, factual[name]) for value in reachable[:, j].tolist()]
        else:
            reachable[~np.isin(reachable[:, j], part.values), j] = factual[name]
    return np.unique(mended_points(rules, space, factual, reachable), axis=0)


def _nearest(part: Interval, value: float, home: float) -> float:
    """Return the nearest amount in reach, a label in reach as it is, and the factual for what has no nearest amount."""
    if part.holds(value):
        return value
    if value == MISSING or part.is_point:
        return home
    return part.clip(value)


# ==== The prepared query ==============================================================================================

#: Advice for models that cannot be stated as a program.
AS_BLACK_BOX: Final = (
    "As a black box it is answered for: from ceopt.surrogates import LocalSurrogateRecourse; "
    "explain(..., surrogate=LocalSurrogateRecourse(), data=X_train)."
)


@final
@dataclass(frozen=True, slots=True)
class Prepared:
    """A model with checked settings, ready for any number of factuals.

    Parameters
    ----------
    predictor
        The model as it was read.
    oracle
        The user's own model, which has the last word.
    space, settings
        The columns, and every checked keyword.
    margin, least_margin
        Margin of the first program, which is None for trees that decide without a margin; and the least margin that is
        safe against a solver's tolerances. :meth:`for_person` adapts both to the magnitudes near one person.
    steps
        Greatest difference between the model's own score and the program's that comes from columns whose range is small
        relative to their values (:func:`~ceopt.formulations.predictors.ties.encoding_rounding`).
    asks_model
        Whether no margin is asked for: the model itself is asked about each point that a program finds, and a refused
        point is excluded from the next program. So for trees, and for other models on a lattice, if the user gave no
        margin.
    is_reproducible
        Whether the model's scores are the same to the bit whenever it is asked, as their sums have a fixed order; if
        not, ties within rounding are not accepted.
    target_rows
        Rows of the data, as coordinates (n, d), that the model puts in the target; None without data.
    starts
        The user's own starting points, as coordinates (k, d); None without any.
    fingerprints
        Hashes that identify model and data in a result, as ``explain`` and ``Recourse`` give them.
    """

    predictor: Predictor
    oracle: ModelOracle
    space: FeatureSpace
    settings: CheckedSettings
    margin: float | None
    least_margin: float
    asks_model: bool
    is_reproducible: bool
    target_rows: np.ndarray | None = None
    starts: np.ndarray | None = None
    steps: float = 0.0
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Return the settings as plain values that JSON holds."""
        return self.settings.options()

    def with_n(self, n: int) -> Prepared:
        """Return a copy for another number of answers."""
        return replace(self, settings=replace(self.settings, n=n))

    def with_time_limit(self, time_limit_s: float) -> Prepared:
        """Return a copy with another time limit."""
        return replace(self, settings=replace(self.settings, time_limit_s=time_limit_s))

    def judge(self, points: Sequence[Mapping[str, float]]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the model's predictions for points, and whether each meets the target whenever the model is asked."""
        predicted, met = self.oracle.judge(self.space.frame(points), self.settings.target)
        if self.is_reproducible:
            return predicted, met
        target = self.settings.target
        slacks = slack(self.predictor, coordinates_of(self.space, points), target)
        return predicted, met & (slacks > tie_width(self.predictor, target))

    def slacks(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slack (n,) of rows (n, d): at least 0 if and only if the model as read accepts the row.

        A rejected row whose slack is not negative gets -``REFUSED_BY_A_HAIR``.
        """
        predictor = self.predictor
        target = self.settings.target
        scores = predictor.score(coordinates)
        found = slack(predictor, coordinates, target, scores=scores)
        kept = accepted(predictor, coordinates, target, scores=scores)
        if not self.is_reproducible:
            kept &= found > tie_width(predictor, target)
        return np.where(kept, np.maximum(found, 0.0), np.minimum(found, -REFUSED_BY_A_HAIR))

    def slacks_beyond(self, coordinates: NDArray[np.float64], margin: float | None) -> NDArray[np.float64]:
        """Return by how much rows (n, d) exceed the margin of a program, (n,); without a margin, their slack."""
        if margin is None or (self.asks_model and margin == 0.0):
            return self.slacks(coordinates)  # the library's own decision counts, ties included
        least = margin * (1.0 + START_MARGIN_ROUNDING) + self.steps
        return slack(self.predictor, coordinates, self.settings.target) - least

    def require_amounts(self, factual: Mapping[str, float], reach: Reach) -> None:
        """Refuse a person who may hold a code, or nothing, where a rule or the cost needs an amount."""
        space = self.space
        for rule in self.settings.rules:
            refuse_labels(rule, space, lambda name: labels_in_reach(space[name], factual[name], reach[name]))
        if self.settings.cost.needs_amounts:
            require_amounts(self.settings.cost.needs_amounts, space, factual, reach)

    def for_person(self, factual: Mapping[str, float], reach: Reach) -> Prepared:
        """Return a copy for one person, given in coordinates, with margins that fit the magnitudes near that person.

        Whether the model is on a lattice depends on the person's reach.
        """
        predictor = self.predictor
        settings = self.settings
        if predictor.is_trees or isinstance(settings.target, DisagreementOf):
            return self
        near = target_margin(None, predictor, settings.target, factual, reach)
        fitted = replace(self, least_margin=near, steps=encoding_rounding(predictor, factual, reach))
        if settings.margin is not None:
            return fitted
        if not is_on_lattice(predictor, reach):
            return replace(fitted, margin=near, asks_model=False, is_reproducible=True)
        return replace(fitted, margin=0.0, asks_model=True, is_reproducible=has_fixed_order(predictor))


@final
@dataclass(frozen=True, slots=True)
class Learned:
    """Results of an earlier :func:`prepare` with the same model, space, target and data, to be used again.

    Parameters
    ----------
    prepared
        Its result.
    rule
        Function from a rule to the rule as it was fitted then, or unchanged if it learns nothing.
    """

    prepared: Prepared
    rule: Callable[[AbstractRule], AbstractRule]


def _shown(data: Any) -> str:
    if isinstance(data, str | int | float):
        return repr(data)
    return type(data).__name__


def prepare(
    model: Any,
    space: FeatureSpace,
    settings: Settings,
    *,
    data: pd.DataFrame | None = None,
    labelled: tuple[pd.DataFrame, Any] | None = None,
    starts: pd.DataFrame | None = None,
    learned: Learned | None = None,
    fingerprints: Mapping[str, str] | None = None,
) -> Prepared:
    """Return the model read, the settings checked and the rules fitted; ``starts`` are the user's starting points.

    Rules that need the model receive it. Rules that learn receive the rows of the data that the model predicts to be in
    the target or, with ``labelled`` rows (X, y), those with a label in it. With ``learned`` no model is read and no
    rule fitted again; with ``fingerprints`` none that was read before.

    Raises
    ------
    CeoptError
        A setting, target, rule, cost or solver that does not exist or does not fit; a model that cannot be represented.
    """
    require_space("explain", space)
    if data is not None and not isinstance(data, pd.DataFrame):
        raise InvalidTypeError("explain", "a DataFrame as data", f"data is {_shown(data)}", "Name its columns.")
    if learned is None:
        reading = read_once(
            model, space, fingerprints or {}, has_data=data is not None, read=lambda: _read_model(model, space, data)
        )
    else:
        reading = Reading(model, None, learned.prepared.oracle, learned.prepared.predictor)
    oracle, predictor = reading.oracle, reading.predictor
    checked = settings.check(space, predictor.labels, data=data)
    start_points = None
    if starts is not None:
        start_points = starts_of(starts, space)
    _check_model(checked, predictor, oracle)
    if labelled is not None:  # labels that do not fit are refused before the rules are fitted
        labels_in_target(labelled[1], len(labelled[0]), checked.target)
    space.require_moderate_bounds()
    checkpoint("checking the settings")
    if learned is None:
        rows = FavourableRows(space, oracle, checked.target, data, labelled)
        rules = tuple(rule.about(lambda: predictor).aimed(checked.target).fitted(space, rows) for rule in checked.rules)
    else:
        rules = tuple(map(learned.rule, checked.rules))
    checked = replace(checked, rules=rules, cost=charged_by(checked.cost, rules, space))
    checkpoint("fitting the rules to the data")
    target_rows = None
    if data is not None:
        target_rows = reading.rows_of(checked.target, lambda: _target_rows(data, predictor, checked.target))
    elif learned is not None:
        target_rows = learned.prepared.target_rows
    asks_model = checked.margin is None and predictor.is_trees
    margin = None
    if not asks_model:
        margin = target_margin(checked.margin, predictor, checked.target)
    least_margin = 0.0
    is_reproducible = True
    if not isinstance(checked.target, DisagreementOf):  # which is a count of trees
        least_margin = default_margin(predictor)
        is_reproducible = not asks_model or has_fixed_order(predictor)
    return Prepared(
        predictor=predictor,
        oracle=oracle,
        space=space,
        settings=checked,
        margin=margin,
        least_margin=least_margin,
        asks_model=asks_model,
        is_reproducible=is_reproducible,
        target_rows=target_rows,
        starts=start_points,
        fingerprints=fingerprints or {},
    )


def fingerprints_of(model: Any, data: pd.DataFrame | None) -> Mapping[str, str]:
    """Return hashes of the model and of the data by name; one that is missing or cannot be hashed is left out."""
    found = {"model": model_content(model)}
    if data is not None:
        found["data"] = content_of(data)
    return {name: content for name, content in found.items() if content is not None}


def model_content(model: Any) -> str | None:
    """Return the content hash of a model, or of a file's bytes; None for a missing file or an unhashable model."""
    if not isinstance(model, str | Path):
        return content_of(model)
    try:
        return content_of(Path(model).read_bytes())
    except (OSError, ValueError):  # no such file, or a name that none can have
        return None


def _read_model(model: Any, space: FeatureSpace, data: pd.DataFrame | None) -> tuple[ModelOracle, Predictor]:
    """Return the model's oracle and the model as read; for an unsupported one, raise an error that names a way out."""
    opened = open_model(model)
    if is_function(opened):
        raise _refused_function(opened)
    oracle = ModelOracle(opened, space)
    checkpoint("opening the model")
    try:
        predictor = read(opened, space, data=data)
    except MissingCellsError:  # which a black box would not take either
        raise
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{error} {AS_BLACK_BOX}") from error
    checkpoint("reading the model")
    return oracle, predictor


def _refused_function(function: Any) -> UnsupportedModelError:
    owner = getattr(function, "__self__", None)
    but = "it is a function, of which only the answers are known"
    then = AS_BLACK_BOX
    if hasattr(owner, "predict"):
        but = f"it is a method of {type(owner).__name__}, of which only the answers are known"
        then = f"Give the model itself. {AS_BLACK_BOX}"
    return UnsupportedModelError("The model", "a fitted model, to state it as a program", but, then)


def _check_model(checked: CheckedSettings, predictor: Predictor, oracle: ModelOracle) -> None:
    """Raise an error if the formulation or the target does not apply to the model."""
    check_formulation(predictor, checked.formulation)
    if isinstance(checked.target, ProbabilityOf):
        require_probability(predictor.core)
    if isinstance(checked.target, DisagreementOf):
        forest_of(predictor.core)
        oracle.tree_oracle()


def _target_rows(data: pd.DataFrame, predictor: Predictor, target: Target) -> NDArray[np.float64]:
    """Return the rows predicted to be in the target, as coordinates, without rows of a level unseen in training."""
    space = predictor.space
    coordinates = space.coordinates(data)
    for name, ranks in predictor.unseen.items():
        has_unseen = np.isin(coordinates[:, space.names.index(name)], list(ranks))
        coordinates = coordinates[~has_unseen]
    return coordinates[accepted(predictor, coordinates, target)]
