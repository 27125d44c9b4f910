"""Put a fitted model into a program: the one call behind every formulation of it, and the list of formulations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyomo.common.gc_manager import PauseGC

from ceopt.formulations.columns.columns_block import AbstractColumns, Factual
from ceopt.formulations.costs.base import CostCutoff
from ceopt.formulations.linear_form import Rows
from ceopt.formulations.predictors.embed.caller_columns import Columns, require_on_model, space_of
from ceopt.formulations.predictors.embed.combined import EmbeddedSum, EmbeddedVotes
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded, EmbeddedAffine
from ceopt.formulations.predictors.embed.networks import BigMNetwork, ExtendedNetwork, PartitionNetwork
from ceopt.formulations.predictors.embed.trees import LeafTrees, MisicTrees, OrderedTrees
from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.read_model import read_model
from ceopt.formulations.predictors.representation import Affine, ReluNetwork
from ceopt.formulations.predictors.tree_bounds import TreeNeed
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import CeoptError, InvalidTypeError, InvalidValueError, UnknownNameError, within_memory

__all__ = ["FORMULATIONS", "check_formulation", "embed", "embed_predictor", "kind_of"]

#: Formulations by representation and name; the first of each is what "auto" means.
FORMULATIONS: Mapping[str, Mapping[str, Callable[..., AbstractEmbedded]]] = {
    "linear": {"affine": EmbeddedAffine},
    "networks": {"bigm": BigMNetwork, "partition": PartitionNetwork, "extended": ExtendedNetwork},
    "trees": {"ordered": OrderedTrees, "misic": MisicTrees, "leaf": LeafTrees},
}
#: What formulations by representation take beside the model and the columns.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "linear": (),
    "networks": ("cutoff",),
    "trees": ("cutoff", "need", "all_cells", "more_in"),
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


@within_memory("embed")
def embed(
    model: Any,
    x: AbstractColumns | Mapping[str, Any],
    *,
    formulation: str = "auto",
    cutoff: CostCutoff | None = None,
    all_cells: bool = False,
    space: FeatureSpace | None = None,
    split_gap: float | None = None,
) -> AbstractEmbedded:
    """Put a fitted model into the program, on a person's coordinates or on the caller's own variables.

    Parameters
    ----------
    model
        A fitted model of a library, a representation from plain arrays, or a :class:`Predictor` that was read before.
    x
        A person's block (:class:`~ceopt.formulations.Factual`), already part of a ConcreteModel. In the caller's own
        model a :class:`~ceopt.formulations.Columns` block, which several models may share, or the mapping from columns
        to Vars, expressions and values that makes one (as ``.columns`` of what is returned).
    formulation
        "auto"; "affine" for linear models; "ordered", "misic" or "leaf" for trees; "bigm", "partition" or "extended"
        for networks. Parts of a model that do not have it take their own default.
    cutoff
        A cost that no answer worth finding exceeds (:func:`~ceopt.formulations.Cutoff`): leaves beyond it are left out,
        and bounds of networks are tighter.
    all_cells
        Keep the splits that decide nothing for this person, so that answers can differ by any cell of the trees.
    space, split_gap
        With a mapping only: what its columns are, and the least distance between the two sides of a split, as
        ``Columns`` has it. Without a space the columns are those of a :class:`Predictor`, or else by the model's own
        names of the kinds that the variables are: Binary, whole or real, or a category where levels are mapped.

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
    UnboundedFeatureError
        The formulation needs a bound that a column, or the Var given for it, does not have.
    InvalidValueError
        A Var is not on a ConcreteModel.
    InvalidTypeError
        Without a space, a model that does not name its columns, or a domain or value that tells no kind.

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
    columns = _columns(model, x, space, split_gap)
    predictor = model
    if not isinstance(model, Predictor):
        predictor = _read(model, columns.space, is_given=columns is x or space is not None)
    block = embed_predictor(predictor, columns, formulation=formulation, cutoff=cutoff, all_cells=all_cells)
    if columns is not x:
        block.columns = columns
    return block


def embed_predictor(
    predictor: Predictor,
    columns: AbstractColumns,
    *,
    formulation: str = "auto",
    cutoff: CostCutoff | None = None,
    need: TreeNeed | None = None,
    all_cells: bool = False,
    more_in: Sequence[tuple[float, ...]] = (),
) -> AbstractEmbedded:
    """Put a model as it was read on a block of columns; all else is as for :func:`embed`.

    ``more_in``: weights of the scores in the only rows that there will be over them, each of which wants more.
    Levels on which the model's pipeline would fail are forbidden (``never_seen``). With a ``need`` of a model of trees,
    only points that reach it within the cut-off are kept.
    """
    check_formulation(predictor, formulation)
    if cutoff is not None and isinstance(columns, Factual) and dict(cutoff.factual) != dict(columns.point):
        raise InvalidValueError(
            "embed", "a cutoff from the row of its block", "that of cutoff is another row",
            "Make it of this person: Cutoff(space, row, cost, limit).",
        )  # fmt: skip
    with PauseGC(), columns.collecting():  # looking again at what was just made takes twice the time of making it
        if isinstance(predictor.core, Combination):
            more_in = ()
        known = {"cutoff": cutoff, "need": need, "all_cells": all_cells, "more_in": more_in}
        block = _embedded(predictor, columns, formulation, known)
        for column, ranks in predictor.unseen.items():
            Rows(block, "never_seen").add(column, columns.coordinate(column).indicator(ranks), upper=0.0)
    return block


def _columns(model: Any, x: Any, space: FeatureSpace | None, split_gap: float | None) -> AbstractColumns:
    """Return the block of columns: the one given, or one made of a mapping."""
    if isinstance(x, AbstractColumns):
        if space is not None or split_gap is not None:
            raise InvalidTypeError(
                "embed", "space and split_gap only with a mapping", f"x is a {type(x).__name__}, which has its own",
                "Leave them out.",
            )  # fmt: skip
        if x.parent_block() is None:
            raise InvalidTypeError(
                "embed", "a block of columns that is part of a model", f"the {type(x).__name__} block stands alone",
                "Assign it first: m.x = Factual(space, row), then embed(model, m.x).",
            )  # fmt: skip
        return x
    if not isinstance(x, Mapping):
        raise InvalidTypeError(
            "embed", "a Factual block, a Columns block or a mapping from columns to variables", f"x is {x!r}",
            "Pass m.x = Factual(space, row), or {column: Var} with space=.",
        )  # fmt: skip
    require_on_model("embed", x)
    if space is None and isinstance(model, Predictor):
        space = model.space
    return Columns(space_of(model, x) if space is None else space, x, split_gap=split_gap)


def _read(model: Any, space: FeatureSpace, *, is_given: bool) -> Predictor:
    """Read the model, and say of a space that was not given where it is from."""
    try:
        return read_model(model, space)
    except CeoptError as error:
        if is_given:
            raise
        raise type(error)(
            f"{error} The kinds of columns were taken from the Vars: pass space=FeatureSpace.infer(X_train), or map "
            "levels to Vars, where a column holds levels."
        ) from error


def _embedded(predictor: Predictor, x: AbstractColumns, formulation: str, known: Mapping[str, Any]) -> AbstractEmbedded:
    """Return the block of a model; a formulation that a part does not have leaves that part its own default."""
    core = predictor.core
    if isinstance(core, Combination):
        of_member = {**known, "need": None}
        members = [_embedded(member, x, formulation, of_member) for member in core.members]
        if core.votes:
            return EmbeddedVotes(predictor, x, members)
        return EmbeddedSum(predictor, x, members)
    kind = kind_of(predictor)
    choices = FORMULATIONS[kind]
    make = choices.get(formulation, next(iter(choices.values())))
    return make(predictor, x, **{name: known[name] for name in _OPTIONS[kind]})
