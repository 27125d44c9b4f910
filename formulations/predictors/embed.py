"""Put a fitted model into a program: the one call behind every formulation of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ceopt.formulations.factual import Factual
from ceopt.formulations.linear import Rows
from ceopt.formulations.predictors.affine import EmbeddedAffine
from ceopt.formulations.predictors.combination import Combination
from ceopt.formulations.predictors.combined import EmbeddedSum, EmbeddedVotes
from ceopt.formulations.predictors.embedded import AbstractEmbedded
from ceopt.formulations.predictors.network import ReluNetwork
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.pruning import Box
from ceopt.formulations.predictors.read import read
from ceopt.formulations.predictors.representation import Affine
from ceopt.formulations.predictors.tree_leaf import LeafTrees
from ceopt.formulations.predictors.tree_misic import MisicTrees
from ceopt.formulations.predictors.tree_ordered import OrderedTrees
from ceopt.solvers.errors import InvalidTypeError, UnknownNameError

__all__ = ["FORMULATIONS", "check_formulation", "embed", "kind_of"]

#: Formulations by representation and name; the first of each is what "auto" means.
FORMULATIONS: Mapping[str, Mapping[str, Callable[..., AbstractEmbedded]]] = {
    "linear": {"affine": EmbeddedAffine},
    "trees": {"ordered": OrderedTrees, "misic": MisicTrees, "leaf": LeafTrees},
}


def kind_of(predictor: Predictor) -> str:
    """Return the key of ``FORMULATIONS`` under which a model that is no combination stands."""
    match predictor.core:
        case Affine():
            return "linear"
        case ReluNetwork():
            return "networks"
        case _:
            return "trees"


def check_formulation(predictor: Predictor, name: str) -> None:
    """Refuse a formulation that no part of the model has, with the choices."""
    kinds = dict.fromkeys(kind_of(part) for part in predictor.parts)
    choices = ["auto", *(choice for kind in kinds for choice in FORMULATIONS[kind])]
    if name not in choices:
        raise UnknownNameError.among("embed", "formulation", name, choices)


def embed(
    model: Any,
    x: Factual,
    *,
    formulation: str = "auto",
    too_far: Callable[[Box], bool] | None = None,
    all_cells: bool = False,
) -> AbstractEmbedded:
    """Put a fitted model into the program, on the person's coordinates.

    Parameters
    ----------
    model
        A fitted model of a library, a representation from plain arrays, or a :class:`Predictor` that was read before.
    x
        The person's block, already part of a ConcreteModel.
    formulation
        "auto"; "affine" for linear models; "ordered", "misic" or "leaf" for trees; "bigm", "partition" or "extended"
        for networks. Parts of a model that do not have it take their own default.
    too_far
        Drops leaves by their box, where the caller knows that no answer lies there (trees only).
    all_cells
        Keep the splits that decide nothing for this person, so that answers can differ by any cell of the trees.

    Returns
    -------
    AbstractEmbedded
        A Pyomo block with ``.score`` and ``.predictor``; several of them may share one ``x``.

    Raises
    ------
    UnsupportedModelError
        The model, or a step of its pipeline, cannot be represented exactly.
    UnknownNameError
        The formulation does not exist for this kind of model.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from ceopt.formulations import Factual, Reaches, embed, l1
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.space import Feature, FeatureSpace
    >>> space = FeatureSpace([Feature("income", kind="continuous", lower=0, upper=9)])
    >>> m = pyo.ConcreteModel()
    >>> m.x = Factual(space, {"income": 2.0})
    >>> m.predictor = embed(Affine([1.0], -3.0, labels=("bad", "good")), m.x)
    >>> m.valid = Reaches(m.predictor, "good", margin=0.5)
    >>> m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    >>> print(m.valid.valid["good"].expr)
    0.5  <=  -3.0 + x.x[income]
    """
    if not isinstance(x, Factual):
        raise InvalidTypeError("embed", "a Factual block", f"x is {x!r}", "Pass m.x = Factual(space, row).")
    predictor = model if isinstance(model, Predictor) else read(model, x.space)
    check_formulation(predictor, formulation)
    block = _embedded(predictor, x, formulation, {"too_far": too_far, "all_cells": all_cells})
    for column, ranks in predictor.unseen.items():
        Rows(block, "never_seen").add(column, x.coordinate(column).indicator(ranks), upper=0.0)
    return block


def _embedded(predictor: Predictor, x: Factual, formulation: str, of_trees: Mapping[str, Any]) -> AbstractEmbedded:
    """Return the block of a model; a formulation that a part does not have leaves that part its own default."""
    core = predictor.core
    if isinstance(core, Combination):
        members = [_embedded(member, x, formulation, of_trees) for member in core.members]
        return (EmbeddedVotes if core.votes else EmbeddedSum)(predictor, x, members)
    kind = kind_of(predictor)
    choices = FORMULATIONS[kind]
    make = choices.get(formulation, next(iter(choices.values())))
    return make(predictor, x, **of_trees) if kind == "trees" else make(predictor, x)
