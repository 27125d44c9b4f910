"""A query before its person: the model as read, its oracle, checked settings, favourable data, given starts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.constraints.rule import charged_by, mended_points
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.predictors.embed import check_formulation
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.reaches import require_probability, slack, target_margin
from ceopt.formulations.predictors.read import is_function, open_model, read
from ceopt.formulations.predictors.ties import (
    accepted,
    default_margin,
    forest_of,
    has_fixed_order,
    is_on_lattice,
    own_steps,
    tie_width,
)
from ceopt.formulations.space.reachable import Interval
from ceopt.formulations.space.space import FeatureSpace, require_space
from ceopt.formulations.targets import DisagreementOf, ProbabilityOf, Target
from ceopt.oracle.model import FavourableRows, ModelOracle, are_wanted
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import (
    CeoptError,
    InvalidTypeError,
    InvalidValueError,
    UnknownNameError,
    UnsupportedModelError,
)
from ceopt.tolerances import REFUSED_BY_A_HAIR

if TYPE_CHECKING:
    from collections.abc import Callable

    from ceopt.formulations.constraints import AbstractRule
    from ceopt.formulations.space.reachable import Reach
    from ceopt.settings import CheckedSettings, Settings

# ==== Given starts ====================================================================================================

_WHO: Final = "explain"


def starts_of(starts: Any, space: FeatureSpace) -> NDArray[np.float64]:
    """Return the user's points as coordinates, (k, d).

    Raises
    ------
    InvalidTypeError, UnknownNameError, InvalidValueError
        No frame; a column that is missing, unknown or there twice; a value that the space does not have.
    """
    if not isinstance(starts, pd.DataFrame):
        but = f"starts is {type(starts).__name__}"
        raise InvalidTypeError(_WHO, "a DataFrame as starts", but, "Give one row a point, such as found.to_frame().")
    missing = [name for name in space.names if name not in starts.columns]
    for name in starts.columns:
        if name not in space and missing:
            raise UnknownNameError.among("starts", "column", name, missing)
        if name not in space:
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
    """Return points (k, d), each once, with every column at a value that the person can have.

    A number is moved to the nearest one; a level that is out of reach becomes the person's own.
    """
    legal = points.copy()
    for j, name in enumerate(space.names):
        part = reach[name]
        if isinstance(part, Interval):
            legal[:, j] = [part.clip(value) for value in legal[:, j].tolist()]
        else:
            legal[~np.isin(legal[:, j], part.ranks), j] = factual[name]
    return np.unique(mended_points(rules, space, factual, legal), axis=0)


# ==== The prepared query ==============================================================================================

#: What to write where a model cannot be stated as a program.
AS_BLACK_BOX: Final = (
    "As a black box it is answered for: from ceopt.surrogates import LocalSurrogateRecourse; "
    "explain(..., surrogate=LocalSurrogateRecourse(), data=X_train)."
)


@final
@dataclass(frozen=True, slots=True)
class Prepared:
    """A model and settings that fit each other, ready for any number of people.

    Parameters
    ----------
    predictor
        The model as it was read.
    oracle
        The user's own model, which has the last word.
    space, settings
        The columns, and every checked keyword.
    margin, least_margin
        Margin of the first program, and the one that a solver can be trusted with; :meth:`about` a person, both follow
        the numbers near that one. None where trees are asked for what they decide themselves.
    steps
        By how much the model's own score may differ from the program's, through columns that vary little beside their
        size (:func:`~ceopt.formulations.predictors.ties.own_steps`).
    is_own
        Whether the decision is the model's own, without a margin: it is asked about what the program finds, and what it
        refuses is left out point by point. So for trees, and for other models on a lattice.
    is_ordered
        Whether the model's floats are the same whenever it is asked; if not, ties within their rounding are undecided.
    favoured
        Rows of the data, as coordinates (n, d), that the model puts in the target; None without data.
    starts
        Points that the user gave to be tried first, as coordinates (k, d); None without any.
    read_s
        Seconds that all this took.
    fingerprints
        Hashes of the model and of the data, by which a result says what it is about. Those that answer a user
        (``explain``, ``Recourse``) fill them in, :func:`prepare` does not.
    """

    predictor: Predictor
    oracle: ModelOracle
    space: FeatureSpace
    settings: CheckedSettings
    margin: float | None
    least_margin: float
    is_own: bool
    is_ordered: bool
    favoured: np.ndarray | None
    starts: np.ndarray | None
    read_s: float
    steps: float = 0.0
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Return the settings as plain values that JSON holds."""
        return self.settings.options()

    def wanting(self, n: int) -> Prepared:
        """Return the same for another number of answers."""
        return replace(self, settings=replace(self.settings, n=n))

    def within(self, time_limit_s: float) -> Prepared:
        """Return the same for another time limit."""
        return replace(self, settings=replace(self.settings, time_limit_s=time_limit_s))

    def judge(self, points: Sequence[Mapping[str, float]]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return what the user's own model says of points, and whether that meets the target whenever it is asked."""
        predicted, met = self.oracle.judge(self.space.frame(points), self.settings.target)
        return predicted, met if self.is_ordered else met & self._are_clear(points)

    def slacks(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slack of rows (n, d), at least 0 exactly where the model as read decides for the target, (n,)."""
        predictor = self.predictor
        target = self.settings.target
        scores = predictor.score(coordinates)
        found = slack(predictor, coordinates, target, scores=scores)
        kept = accepted(predictor, coordinates, target, scores=scores)
        if not self.is_ordered:
            kept &= found > tie_width(predictor, target)
        return np.where(kept, np.maximum(found, 0.0), np.minimum(found, -REFUSED_BY_A_HAIR))

    def _are_clear(self, points: Sequence[Mapping[str, float]]) -> NDArray[np.bool_]:
        names = self.space.names
        target = self.settings.target
        coordinates = np.array([[point[name] for name in names] for point in points])
        return slack(self.predictor, coordinates, target) > tie_width(self.predictor, target)

    def about(self, factual: Mapping[str, float], reach: Reach) -> Prepared:
        """Return the same for one person, in coordinates, with the margins that the numbers near that one ask for.

        What the person can become decides whether the model is one of a lattice.
        """
        predictor = self.predictor
        settings = self.settings
        if predictor.is_trees or isinstance(settings.target, DisagreementOf):
            return self
        near = target_margin(None, predictor, settings.target, factual, reach)
        steps = own_steps(predictor, factual, reach)
        if settings.margin is not None:
            return replace(self, least_margin=near, steps=steps)
        if not is_on_lattice(predictor, reach):
            return replace(self, margin=near, least_margin=near, is_own=False, is_ordered=True, steps=steps)
        is_ordered = has_fixed_order(predictor)
        return replace(self, margin=0.0, least_margin=near, is_own=True, is_ordered=is_ordered, steps=steps)


@final
@dataclass(frozen=True, slots=True)
class Learned:
    """What an earlier reading of the same model, space, target and data has found.

    Parameters
    ----------
    prepared
        What was ready then.
    rule
        Gives a rule as it was fitted then, or as it stands if it learns nothing.
    """

    prepared: Prepared
    rule: Callable[[AbstractRule], AbstractRule]


def _shown(data: Any) -> str:
    return repr(data) if isinstance(data, str | int | float) else type(data).__name__


def prepare(
    model: Any,
    space: FeatureSpace,
    settings: Settings,
    *,
    data: pd.DataFrame | None = None,
    labelled: tuple[pd.DataFrame, Any] | None = None,
    starts: pd.DataFrame | None = None,
    learned: Learned | None = None,
) -> Prepared:
    """Read the model and check every setting against it and the space, before any work on a person.

    ``starts`` are points to be tried first.

    Rules about the model are given it. Rules that learn from rows of the target are given those of the data that the
    model puts there, or, if there are ``labelled`` rows (X, y), those whose own label is in the target. With what was
    ``learned`` before, nothing is read or learned again.

    Raises
    ------
    CeoptError
        A setting, target, rule, cost or solver that does not exist or does not fit; a model that cannot be represented.
    """
    began = time.perf_counter()
    require_space("explain", space)
    if data is not None and not isinstance(data, pd.DataFrame):
        raise InvalidTypeError("explain", "a DataFrame as data", f"data is {_shown(data)}", "Name its columns.")
    if learned is None:
        opened = open_model(model)
        if is_function(opened):
            raise _refused_function(opened)
        oracle = ModelOracle(opened, space)
        checkpoint("opening the model")
        predictor = _as_read(opened, space, data)
        checkpoint("reading the model")
    else:
        oracle = learned.prepared.oracle
        predictor = learned.prepared.predictor
    checked = settings.check(space, predictor.labels, data=data)
    tried_first = None
    if starts is not None:
        tried_first = starts_of(starts, space)
    _check_model(checked, predictor, oracle)
    if labelled is not None:
        are_wanted(labelled[1], len(labelled[0]), checked.target)
    space.require_moderate_bounds()
    checkpoint("checking the settings")
    if learned is None:
        rows = FavourableRows(space, oracle, checked.target, data, labelled)
        rules = tuple(rule.about(lambda: predictor).fitted(space, rows) for rule in checked.rules)
    else:
        rules = tuple(learned.rule(rule) for rule in checked.rules)
    checked = replace(checked, rules=rules, cost=charged_by(checked.cost, rules, space))
    checkpoint("fitting the rules to the data")
    favoured = None
    if data is not None:
        favoured = _favoured(data, predictor, checked.target)
    elif learned is not None:
        favoured = learned.prepared.favoured
    counts_trees = isinstance(checked.target, DisagreementOf)
    is_own = checked.margin is None and predictor.is_trees
    return Prepared(
        predictor=predictor,
        oracle=oracle,
        space=space,
        settings=checked,
        margin=None if is_own else target_margin(checked.margin, predictor, checked.target),
        least_margin=0.0 if counts_trees else default_margin(predictor),
        is_own=is_own,
        is_ordered=not is_own or counts_trees or has_fixed_order(predictor),
        favoured=favoured,
        starts=tried_first,
        read_s=time.perf_counter() - began,
    )


def fingerprints_of(model: Any, data: pd.DataFrame | None) -> Mapping[str, str]:
    """Return hashes of the model and of the data by name; those not given or not picklable are left out."""
    found = {"model": model_content(model)}
    if data is not None:
        found["data"] = content_of(data)
    return {name: content for name, content in found.items() if content is not None}


def model_content(model: Any) -> str | None:
    """Return the content hash of a model, or of a file's bytes; None for a missing file or an unhashable model."""
    if not isinstance(model, str | Path):
        return content_of(model)
    if not Path(model).is_file():
        return None
    return content_of(Path(model).read_bytes())


def _as_read(opened: Any, space: FeatureSpace, data: pd.DataFrame | None) -> Predictor:
    """Return the model as read, or say of one that cannot be how it is answered for all the same."""
    try:
        return read(opened, space, data=data)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{error} {AS_BLACK_BOX}") from error


def _refused_function(function: Any) -> UnsupportedModelError:
    owner = getattr(function, "__self__", None)
    but = "it is a function, of which only the answers are known"
    if hasattr(owner, "predict"):
        but = f"it is a method of {type(owner).__name__}, of which only the answers are known"
        return UnsupportedModelError(
            "The model", "a fitted model, to state it as a program", but, f"Give the model itself. {AS_BLACK_BOX}"
        )
    return UnsupportedModelError("The model", "a fitted model, to state it as a program", but, AS_BLACK_BOX)


def _check_model(checked: CheckedSettings, predictor: Predictor, oracle: ModelOracle) -> None:
    """Refuse a model that the formulation or the target is not for."""
    check_formulation(predictor, checked.formulation)
    if isinstance(checked.target, ProbabilityOf):
        require_probability(predictor.core)
    if isinstance(checked.target, DisagreementOf):
        forest_of(predictor.core)
        oracle.tree_oracle()


def _favoured(data: pd.DataFrame, predictor: Predictor, target: Target) -> NDArray[np.float64]:
    """Return the rows that the model puts in the target, as coordinates, without levels that it was not fitted on."""
    space = predictor.space
    coordinates = space.coordinates(data)
    for name, ranks in predictor.unseen.items():
        column = coordinates[:, space.names.index(name)]
        coordinates = coordinates[~np.isin(column, list(ranks))]
    return coordinates[accepted(predictor, coordinates, target)]
