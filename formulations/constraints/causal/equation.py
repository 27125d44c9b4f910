"""Structural equations: a linear equation, or a fitted regressor, asked by its own ``predict``, and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.read import open_model, read
from ceopt.formulations.predictors.read.model_input import given, names_of
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation
from ceopt.formulations.space.encoding import Encoding
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.checks import COEFFICIENT, ListOf, MappingOf, Refusal, Text, check_fields
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnsupportedModelError

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.predictor import Predictor

__all__ = ["Asked", "Equation", "FittedEquation", "LinearEquation", "parse_equations"]

_NO_COEFFICIENTS = Refusal(
    "a mapping from parents to coefficients", 'Write LinearEquation({"age": 120.0}).', error=InvalidTypeError
)
_NO_PARENT = Refusal("at least one parent", "A column without parents has no equation.", "{name} is empty")
_LINEAR = {
    "parents": MappingOf(_NO_COEFFICIENTS, COEFFICIENT, empty=_NO_PARENT, texts=True, entry="{column}"),
    "intercept": COEFFICIENT,
}
_NO_MAPPING = Refusal(
    "a mapping from columns to equations",
    'Write Causal({"income": LinearEquation({"age": 120.0})}).',
    error=InvalidTypeError,
)
_EQUATIONS = MappingOf(
    _NO_MAPPING, empty=Refusal("at least one equation", "Leave the rule out.", "{name} is empty"), texts=True
)
_NO_LIST = Refusal("its parents in a list", 'Write ["age", "education"].', "they are {value}", InvalidTypeError)
_NO_NAME = Refusal("names of columns as parents", "Name the columns.", "one is {value}", InvalidTypeError)
_NOTHING = Refusal("at least one parent", "Leave it out: it moves on its own.", "it has none")
_PARENTS = ListOf(_NO_LIST, Text(_NO_NAME), empty=_NOTHING)
Floats: TypeAlias = NDArray[np.float64]
#: Rows that are remembered; what a search for a start tries next differs little from what it tried before.
_MOST = 20_000


@final
@dataclass(frozen=True, slots=True)
class LinearEquation:
    r"""A column that is linear in its parents, but for noise: :math:`x = c + \sum_p a_p x_p + u`.

    A number counts in its own unit, an ordinal parent by its rank, a binary one as 0 or 1.

    Parameters
    ----------
    parents
        Parent -> coefficient :math:`a_p`.
    intercept
        The constant c. It takes no part in what a move brings about, as the noise u holds the rest of the factual.

    Raises
    ------
    InvalidTypeError
        ``parents`` is no mapping from names.
    InvalidValueError
        No parent, or a number that is not finite.
    """

    parents: Mapping[str, float]
    intercept: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, _LINEAR)


@final
@dataclass(frozen=True, slots=True, eq=False)
class FittedEquation:
    """A fitted regressor and its inputs.

    Parameters
    ----------
    model
        The user's own object, which predicts.
    parents
        Its inputs, in the order in which it was fitted on them.
    """

    model: Any
    parents: tuple[str, ...]

    def within(self, space: FeatureSpace) -> FittedEquation:
        """Return the equation with the parents as the space writes them (LightGBM writes blanks as underscores)."""
        written = {name.replace(" ", "_"): name for name in space.names}
        return replace(self, parents=tuple(p if p in space else written.get(p, p) for p in self.parents))

    def read(self, column: str, space: FeatureSpace) -> Predictor:
        """Return what the regressor computes of its parents, over the space of these alone.

        Raises
        ------
        UnsupportedModelError
            A classifier, or a model that is not fitted or has no exact representation; the column is named.
        """
        try:
            predictor = read(self.model, FeatureSpace(space[parent] for parent in self.parents))
        except CeoptError as error:
            raise type(error)(f"{error} This is the equation of {column!r}.") from error
        if predictor.labels is not None:
            raise UnsupportedModelError(
                "Causal", "regressors as equations", f"that of {column!r} is {type(self.model).__name__}, a classifier",
                "Fit a regressor; an ordinal column counts by rank, a binary one as 0 or 1.",
            )  # fmt: skip
        return predictor


Equation: TypeAlias = LinearEquation | FittedEquation


def parse_equations(given: Any) -> dict[str, Equation]:
    """Return the equations by column, or refuse what is none.

    Raises
    ------
    InvalidTypeError, InvalidValueError, UnsupportedModelError
        No mapping, or an empty one; something else than an equation; parents that are missing, named twice, or more or
        fewer than the regressor's inputs.
    """
    equations = _EQUATIONS.require("Causal", "equations", given)
    return {column: _parsed(column, equation) for column, equation in equations.items()}


def _parsed(column: str, given: Any) -> Equation:
    if isinstance(given, LinearEquation):
        return given
    if isinstance(getattr(given, "parents", None), Mapping) and hasattr(given, "intercept"):
        return LinearEquation(given.parents, given.intercept)
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InvalidTypeError(
                "Causal", "a pair (regressor, parents) as an equation", f"that of {column!r} has {len(given)} entries",
                'Write (regressor, ["age", "education"]).',
            )  # fmt: skip
        model = _opened(column, given[0])
        return _agreed(column, model, names_in(f"The equation of {column!r}", given[1]))
    model = _opened(column, given)
    names = _own_names(model)
    if names is None:
        raise InvalidValueError(
            "Causal", f"the parents of {column!r}", f"its {type(model).__name__} was not fitted on a frame",
            'Name them in the order of its inputs: (regressor, ["age", "education"]).',
        )  # fmt: skip
    return FittedEquation(model, names)


def names_in(who: str, given: Any) -> tuple[str, ...]:
    """Return a list of names, or refuse it: text, other things than names, none, or one twice."""
    names: tuple[str, ...] = _PARENTS.require(who, "parents", given)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidValueError(who, "each parent once", f"{name!r} is there twice", "Remove one.")
    return names


def _opened(column: str, given: Any) -> Any:
    try:
        model = open_model(given)
    except CeoptError as error:
        raise type(error)(f"{error} This is the equation of {column!r}.") from error
    predicts = hasattr(model, "predict") or isinstance(model, AbstractRepresentation)
    if isinstance(model, type) or not predicts:
        if isinstance(model, type):
            what = model.__name__
        else:
            what = repr(model)
        raise InvalidTypeError(
            "Causal", "a LinearEquation or a fitted regressor per column", f"that of {column!r} is {what}",
            'Write LinearEquation({"age": 120.0}), or give a fitted regressor.',
        )  # fmt: skip
    return model


def _own_names(model: Any) -> tuple[str, ...] | None:
    """Return the columns that a model was fitted on, as it writes them itself."""
    names = names_of(model, _Nothing())  # type: ignore[arg-type]
    return None if names is None else tuple(names)


def _agreed(column: str, model: Any, parents: tuple[str, ...]) -> FittedEquation:
    """Return the equation, or refuse parents that are not the model's inputs; it finds them by name where it can."""
    names = _own_names(model)
    if names is None:
        count = getattr(model, "n_features_in_", len(parents))
        if count != len(parents):
            raise InvalidValueError(
                f"The equation of {column!r}", f"a parent for each of the {count} inputs of its regressor",
                f"{len(parents)} are named: {', '.join(parents)}", "Name them in the order of its inputs.",
            )  # fmt: skip
        return FittedEquation(model, parents)
    written = {name.replace(" ", "_"): name for name in parents}
    names = tuple(name if name in parents else written.get(name, name) for name in names)
    for name in names:
        if name not in parents:
            raise InvalidValueError(
                f"The equation of {column!r}", "every input of its regressor among the parents",
                f"{name!r} is not named", f"Its regressor was fitted on: {', '.join(names)}.",
            )  # fmt: skip
    for name in parents:
        if name not in names:
            raise InvalidValueError(
                f"The equation of {column!r}", "parents that its regressor was fitted on", f"{name!r} is none of them",
                f"It was fitted on: {', '.join(names)}.",
            )  # fmt: skip
    return FittedEquation(model, parents)


@final
class _Nothing:
    """A space without columns, to ask a model for the names that it was fitted on."""

    names = ()

    def __contains__(self, name: object) -> bool:
        return False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a regressor says of rows of its parents, and what it has said.

    Parameters
    ----------
    predictor
        The regressor over the space of its parents.
    """

    predictor: Predictor
    _said: dict[tuple[float, ...], float] = field(init=False, repr=False, default_factory=dict)

    def values(self, parents: Floats) -> Floats:
        """Return what is said of rows (n, p) given as coordinates, (n,); NaN at a level that it was not fitted on."""
        rows, back = np.unique(parents, axis=0, return_inverse=True)
        keys = [tuple(row) for row in rows.tolist()]
        new = [k for k, key in enumerate(keys) if key not in self._said]
        if new:
            if len(self._said) + len(new) > _MOST:
                self._said.clear()
                new = list(range(len(keys)))
            self._said.update(zip((keys[k] for k in new), self._asked(rows[new]).tolist(), strict=True))
        return np.array([self._said[key] for key in keys])[np.ravel(back)]

    def _asked(self, rows: Floats) -> Floats:
        """Ask the user's own model."""
        space = self.predictor.space
        model = self.predictor.model
        known = np.ones(len(rows), dtype=bool)
        for name, ranks in self.predictor.unseen.items():
            known &= ~np.isin(rows[:, space.names.index(name)], list(ranks))
        held = rows[known]
        for j, feature in enumerate(space):
            if feature.kind != "continuous":  # a trial that is not whole where it must be is no answer, but has a price
                held[:, j] = np.clip(np.rint(held[:, j]), *feature.coordinate_limits)
        values = np.full(len(rows), np.nan)
        if len(held) and isinstance(model, AbstractRepresentation):
            values[known] = model.predict(Encoding.identity(space).matrix(held))
        elif len(held):
            frame = space.frame([dict(zip(space.names, row, strict=True)) for row in held.tolist()])
            values[known] = np.asarray(model.predict(given(model, space, frame)), dtype=np.float64).reshape(len(held))
        return values
