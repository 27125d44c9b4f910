"""Members of models that are made of others: read by name, and asked for what their library asks of them.

A library asks a member for its label, its decision value or its probabilities. Labels and values follow from any
member. Probabilities enter a sum, and a sum of models is linear in the members' scores only where each probability is:
shares of trees and of votes are, a logistic function of a score is not, unless a single tree has the score, whose
leaves then hold the probabilities themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ceopt.formulations.predictors.predictor import Combination, Predictor, coordinate_encoding
from ceopt.formulations.predictors.readers.model_input import Trace, class_labels, refuse
from ceopt.formulations.predictors.representation import AbstractRepresentation, Probability, of_one
from ceopt.formulations.predictors.trees import Tree, TreeEnsemble
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.solvers.checks import Floats
from ceopt.solvers.errors import UnsupportedModelError

if TYPE_CHECKING:
    from ceopt.formulations.predictors.readers import Behind

Composite: TypeAlias = tuple[AbstractRepresentation, Encoding]
"""What a model of models is read as, and what that sees of the raw columns."""


@final
@dataclass(frozen=True, slots=True)
class Member:
    """A fitted member: what refusals call it, the object itself, and what it was read as."""

    title: str
    model: Any
    predictor: Predictor

    @classmethod
    def read(cls, behind: Behind, place: str, model: Any, *steps: Any) -> Self:
        """Read what stands at a place of its model; a refusal says whose member it is."""
        title = titled(place, model)
        try:
            return cls(title, model, behind.member(model, *steps))
        except UnsupportedModelError as error:
            raise UnsupportedModelError(f"{error} This is {title}.") from error

    def places(self, labels: Sequence[Any]) -> Floats:
        """Return the (K, K_i) matrix that puts the member's label ``labels[k]`` into row k."""
        own = self.predictor.labels
        if own is None or not set(own) <= set(labels):
            raise refuse(
                f"members that know the labels {', '.join(map(repr, labels))}", f"{self.title} knows {own!r}",
                "Fit all members on the same labels.",
            )  # fmt: skip
        return np.array([[float(label == mine) for mine in own] for label in labels])

    def shares(self, instead: str) -> Predictor:
        """Return the model whose scores are the probabilities of the labels, or refuse it."""
        core = self.predictor.core
        if core.probability == "share":
            return self.predictor
        if core.probability is not None and is_one_tree(core):
            leaves = leaf_scores(core)
            shares = np.stack([core.head.of_position(leaves, k) for k in (0, 1)], axis=1)
            return relabelled(self.predictor, shares, "share")
        if core.probability == "identity":
            weights = [[[-1.0], [1.0]]]
            whole = Combination([self.predictor], weights, [1.0, 0.0], labels=core.labels, probability="share")
            return dataclasses.replace(self.predictor, core=whole, encoding=coordinate_encoding(self.predictor.space))
        raise refuse("probabilities that are linear in a member's score", f"those of {self.title} are not", instead)


def titled(place: str, model: Any) -> str:
    """Return what a refusal calls a member: where it stands, and the class that predicts."""
    while type(model).__name__ == "Pipeline":
        model = model.steps[-1][1]
    return f"{place} ({type(model).__name__})"


def labels_of(model: Any) -> list[Any]:
    """Return the labels of a classifier."""
    labels = class_labels(model)
    assert labels is not None  # noqa: S101 - every classifier has some
    return labels


# ---- trees whose leaves say something else ---------------------------------------------------------------------------
def is_one_tree(core: AbstractRepresentation) -> bool:
    """Return whether all scores are known: those of the leaves of one tree."""
    return isinstance(core, TreeEnsemble) and len(core.trees) == 1


def leaf_scores(core: AbstractRepresentation) -> Floats:
    """Return the scores at the leaves of the one tree, (leaves,) or (leaves, K)."""
    assert isinstance(core, TreeEnsemble)  # noqa: S101 - the caller has checked
    (tree,) = core.trees
    leaves = tree.value[~tree.inner].astype(core.sum_dtype)
    return of_one((core.base.astype(core.sum_dtype) + leaves).astype(np.float64) / core.divisor)


def relabelled(member: Predictor, leaves: Floats, probability: Probability | None) -> Predictor:
    """Return the one tree with other scores at its leaves, (leaves, K), one per label."""
    core = member.core
    assert isinstance(core, TreeEnsemble)  # noqa: S101 - the caller has checked
    (tree,) = core.trees
    value = np.zeros((len(tree.feature), leaves.shape[1]))
    value[~tree.inner] = leaves
    other = TreeEnsemble(
        [dataclasses.replace(tree, value=value)], labels=core.labels, input_dtype=core.input_dtype,
        probability=probability, n_inputs=core.n_inputs,
    )  # fmt: skip
    return dataclasses.replace(member, core=other)


# ---- sums and counts -------------------------------------------------------------------------------------------------
def average(
    members: Sequence[Predictor], weights: Sequence[ArrayLike], divisor: float, labels: Sequence[Any] | None
) -> Composite:
    """Return ``sum_i weights_i @ scores_i / divisor``, of a classifier's shares or a regressor's values."""
    core = Combination(
        members, weights, divisor=divisor, labels=labels, probability=None if labels is None else "share"
    )
    return one_ensemble(core) or composite(core)


def composite(core: Combination) -> Composite:
    """Return a combination over the coordinates."""
    return core, coordinate_encoding(core.members[0].space)


def count(members: Sequence[Predictor], weights: Sequence[ArrayLike], **options: Any) -> Combination:
    """Return a count of what members say, with options of `Combination`; a single tree says its label at each leaf."""
    return Combination(list(map(_says, members)), weights, votes=True, **options)


def _says(member: Predictor) -> Predictor:
    core = member.core
    if not is_one_tree(core):
        return member
    return relabelled(member, np.eye(len(core.labels or ()))[core.head.positions(leaf_scores(core))], None)


def one_ensemble(core: Combination) -> Composite | None:
    """Return single trees that add up as one ensemble over all columns that one of them sees, in the same order.

    None if a member is something else, or if the sum would be another one in floating point.
    """
    trees = [member.core for member in core.members if isinstance(member.core, TreeEnsemble)]
    plain = all(len(t.trees) == 1 and t.divisor == 1.0 and not t.base.any() and t.sum_dtype == "float64" for t in trees)
    if len(trees) < len(core.members) or not plain or len({tree.input_dtype for tree in trees}) > 1:
        return None
    columns: dict[Column, int] = {}
    moved: list[Tree] = []
    for member, ensemble, weights in zip(core.members, trees, core.weights, strict=True):
        place = np.array([columns.setdefault(column, len(columns)) for column in member.encoding.columns])
        (tree,) = ensemble.trees
        feature = np.where(tree.inner, place[tree.feature], -1)
        value = np.where(tree.inner[:, None], 0.0, tree.value) @ weights.T
        moved.append(dataclasses.replace(tree, feature=feature, value=value))
    whole = TreeEnsemble(
        moved, core.offset, labels=core.labels, divisor=core.divisor, input_dtype=trees[0].input_dtype,
        decision=core.decision, probability=core.probability, n_inputs=len(columns),
    )  # fmt: skip
    return whole, Encoding(tuple(columns), core.members[0].encoding.names)


@final
class ColumnSubset:
    """A step that does what BaggingClassifier and AdaBoostClassifier do: make an array and take columns of it.

    Parameters
    ----------
    ensemble
        The fitted ensemble; it is given the columns that this step is.
    places
        Columns of the member, which may occur more than once.
    """

    def __init__(self, ensemble: Any, places: NDArray[np.intp]) -> None:
        self.n_features_in_ = int(ensemble.n_features_in_)
        if hasattr(ensemble, "feature_names_in_"):
            self.feature_names_in_ = ensemble.feature_names_in_
        self.places = np.asarray(places, dtype=np.intp)

    def transform(self, data: Any) -> Any:
        """Return the member's columns of the array."""
        from sklearn.utils import check_array

        array = check_array(data, accept_sparse=["csr", "csc"], dtype=None, ensure_all_finite=False)
        return array[:, self.places]

    def columns(self, before: Trace) -> list[Column]:
        """Return what the member's columns are."""
        return list(map(before.columns.__getitem__, self.places))
