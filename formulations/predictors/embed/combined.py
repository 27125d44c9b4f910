"""Models of models: sums of members' scores, and counts of members' votes, over one person's coordinates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.linear_form import LinearForm, Rows, sum_form, total
from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
from ceopt.formulations.predictors.predictor import Combination
from ceopt.formulations.predictors.representation import NEVER, AbstractRepresentation
from ceopt.formulations.predictors.ties import (
    above_level,
    default_margin,
    margin_near,
    right_side_of,
    row_scale,
    sums_of,
    trimmed,
)
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.space import point_row
from ceopt.solvers.errors import UnboundedFeatureError
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.predictors.predictor import Predictor

_SUM = Manifest(
    title="sum of models",
    formula="score_k = (b_k + sum_i sum_j W_ikj * score_ij) / D",
    reference="soft voting, bagging, one-vs-rest",
)
_VOTES = Manifest(
    title="votes of models",
    formula="score_k = (b_k + sum_i sum_j W_ikj * says_ij) / D; says_ij = 1 only where member i decides j",
    reference="hard voting; big-M rows",
    features={"decides": 3, "one_label": 1},
)


class AbstractCombined(AbstractEmbedded):
    """A combination whose members are blocks ``member_0``, ``member_1``, ... of this one."""

    #: The program and its source, as ``model_summary`` shows them.
    manifest: Manifest

    def __init__(self, predictor: Predictor, x: AbstractColumns, members: Sequence[AbstractEmbedded]) -> None:
        super().__init__(predictor, x, self.manifest)
        self._members = tuple(members)
        for position, member in enumerate(members):
            self.add_component(f"member_{position}", member)
        self.link()

    def link(self) -> None:
        """Write the rows that the members' scores need."""

    @property
    def core(self) -> Combination:
        """The combination."""
        core = self.predictor.core
        assert isinstance(core, Combination)  # noqa: S101 - chosen by embed
        return core

    @abstractmethod
    def member_form(self, position: int, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of what one member says."""

    @abstractmethod
    def member_range(self, position: int, weights: Sequence[float]) -> tuple[float, float]:
        """Return bounds of that sum over the reach."""

    def _weighted(self, weights: Sequence[float]) -> Iterator[tuple[int, list[float]]]:
        for position, part in enumerate(self.core.weights):
            yield position, (np.asarray(weights) @ part).tolist()

    def combine(self, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of the scores."""
        start = LinearForm(float(self.core.offset @ list(weights)))
        forms = [self.member_form(position, part) for position, part in self._weighted(weights)]
        return total([start, *forms]).scaled(1.0 / self.core.divisor)

    def range_of(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return bounds of the combination: the sum of the members' own."""
        low = high = float(self.core.offset @ list(weights))
        for position, part in self._weighted(weights):
            least, greatest = self.member_range(position, part)
            low = low + least
            high = high + greatest
        return low / self.core.divisor, high / self.core.divisor

    def place(self, point: Mapping[str, float]) -> None:
        """Set the members' variables to those of a point."""
        for member in self._members:
            member.place(point)

    def differs(self) -> LinearForm:
        """Return a form that is at least 1 where a member's own decisions differ."""
        return total(member.differs() for member in self._members)

    def make_cells(self) -> None:
        """Put what tells the members' cells apart on the columns."""
        for member in self._members:
            member.make_cells()

    def other_leaves(self, point: Mapping[str, float]) -> LinearForm:
        """Return the number of trees of all members that say something else than at a point."""
        return total(member.other_leaves(point) for member in self._members)


@final
class EmbeddedSum(AbstractCombined):
    r"""Scores that add up members' scores: soft voting, bagging, one-vs-rest, averages of regressors.

    .. math:: s_k = \bigl(b_k + \textstyle\sum_i \sum_j W_{ikj}\, s_{ij}\bigr) / D

    Adds no variables and no rows beside those of its members, which share the person's cuts. Exact.
    """

    manifest = _SUM

    def member_form(self, position: int, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of a member's scores."""
        return self._members[position].combine(weights)

    def member_range(self, position: int, weights: Sequence[float]) -> tuple[float, float]:
        """Return the member's own bounds."""
        return self._members[position].range_of(weights)


@final
class EmbeddedVotes(AbstractCombined):
    r"""Scores that count members' decisions: hard voting.

    .. math::
        s_k = \bigl(b_k + \textstyle\sum_i \sum_j W_{ikj}\, u_{ij}\bigr) / D, \qquad
        \textstyle\sum_j u_{ij} = 1, \qquad
        s_{ij} - s_{ik} \ge m_i - M_{ijk} (1 - u_{ij}) \quad \forall k \ne j

    A member with one score that decides at level c: :math:`\pm (s_i - c) \ge m_i - M (1 - u_{ij})`.

    ======== ==================== ===============================================================
    symbol   component            meaning
    ======== ==================== ===============================================================
    u_ij     ``says[i, label]``   binary, 1 iff member i decides for the label
    m_i                           margin of the member's own score near the person; 0 for trees
    M                             least big-M: m_i less the least of the left side in reach
    ======== ==================== ===============================================================

    Adds a binary per member and label, and per member one row and one per pair of labels. A single tree that says its
    label at each leaf adds nothing: its scores are the u. Exact at the margins: a point at which a member stands within
    m_i of a tie is left out. Ties of trees and of votes go to whom the library gives them; where it is floats that
    decide, either label may be said, and the whole model has to be asked.

    Raises
    ------
    UnboundedFeatureError
        A member is linear in a column that has no bound, so no big-M exists.
    """

    manifest = _VOTES

    def link(self) -> None:
        """Write the decision of each member as rows that its binary switches on."""
        voters = [(i, m) for i, m in enumerate(self._members) if not _votes_by_leaf(m.predictor.core)]
        self.says = pyo.Var([(i, label) for i, m in voters for label in m.predictor.labels or ()], domain=pyo.Binary)
        for i, member in voters:
            labels = member.predictor.labels or ()
            Rows(self, "one_label").add(i, sum_form(self.says[i, label] for label in labels), lower=1.0, upper=1.0)
            for j, label in enumerate(labels):
                for rival, weights, least, scale in _against(member, j, whole=self.predictor.is_trees):
                    says = self.says[i, label]
                    self._row((i, label, labels[rival]), member, weights, least, says=says, scale=scale)

    def _row(
        self,
        index: tuple[Any, ...],
        member: AbstractEmbedded,
        weights: Sequence[float],
        least: float,
        *,
        says: Any,
        scale: float,
    ) -> None:
        """Add ``weights . scores >= least`` where ``says`` is 1, in a unit that a tolerance does not hide."""
        if abs(least) >= NEVER:  # a label that no score has, or that every score has
            if least > 0.0:
                says.fix(0)
            return
        low = member.range_of(weights)[0]
        if not math.isfinite(low):
            name = self.x.unbounded()
            raise UnboundedFeatureError(
                "Hard voting",
                "finite bounds of all columns that a linear member reads",
                f"column {name!r} has none",
                self.x.bounds_advice(name),
            )
        big_m = max(least - low, 0.0)
        scores = member.combine(weights)
        if member.predictor.is_trees:
            scores, _, most = trimmed(member.predictor, scores, 0.0)
            least -= most
        form = scores + LinearForm(0.0, ((-big_m, says),))
        Rows(self, "decides").add(index, form.scaled(scale), lower=scale * (least - big_m))

    def member_form(self, position: int, weights: Sequence[float]) -> LinearForm:
        """Return the weighted sum of a member's votes."""
        if _votes_by_leaf(self._members[position].predictor.core):
            return self._members[position].combine(weights)
        labels = self._members[position].predictor.labels or ()
        pairs = zip(weights, labels, strict=True)
        return LinearForm(0.0, tuple((w, self.says[position, label]) for w, label in pairs if w != 0.0))

    def member_range(self, position: int, weights: Sequence[float]) -> tuple[float, float]:  # noqa: ARG002
        """Return the least and greatest weight: the member says one label."""
        return min(weights), max(weights)

    def place(self, point: Mapping[str, float]) -> None:
        """Set members' variables and votes to those of a point."""
        super().place(point)
        row = point_row(self.predictor.space, point)
        for i, member in enumerate(self._members):
            (voted,) = member.predictor.core.head.positions(member.predictor.score(row)).tolist()
            for j, label in enumerate(member.predictor.labels or ()):
                if (i, label) in self.says:
                    self.says[i, label].set_value(int(j == voted), skip_validation=True)


def _votes_by_leaf(core: AbstractRepresentation) -> bool:
    """Whether a member is one tree that says at each leaf 1 for a label and 0 for all others: its scores are votes."""
    if not isinstance(core, TreeEnsemble) or len(core.trees) > 1 or core.n_scores == 1:
        return False
    leaves = core.trees[0].value[~core.trees[0].inner]
    plain = core.divisor == 1.0 and not core.base.any() and np.isin(leaves, (0.0, 1.0)).all()
    return bool(plain and (leaves.sum(axis=1) == 1.0).all())


def _against(member: AbstractEmbedded, label: int, *, whole: bool) -> Iterator[tuple[int, list[float], float, float]]:
    """Yield per rival label the weights of the scores, what their sum must reach for ``label`` to win, and the unit.

    ``whole``: whether the whole combination is of trees, so that ties which floats decide are shown to the model.
    """
    predictor = member.predictor
    core = predictor.core
    is_own = predictor.is_trees
    for rival in range(max(core.n_scores, 2)):
        if rival == label:
            continue
        wins = core.head.wins_ties(label, rival)
        weights, level = core.against(label, rival)
        if abs(level) < NEVER and is_own and (whole or sums_of(predictor, weights).is_exact):
            yield rival, weights, right_side_of(predictor, weights, level, above_level(level, ties=wins)).least, 1.0
        else:
            margin = 0.0
            if not (is_own and whole):
                margin = _margin(member, weights, level)
            scale = row_scale(predictor, margin)
            # Sums of leaves, shares of trees and counts of votes are often equal, and the library says who wins then.
            if wins and (predictor.has_ties or is_own):
                margin = -margin
            yield rival, weights, level + margin, scale


def _margin(member: AbstractEmbedded, weights: Sequence[float], level: float) -> float:
    """Return the margin of a member's decision: by the numbers near the person, where there is one."""
    predictor = member.predictor
    if not isinstance(member.x, Factual):
        return default_margin(predictor)
    coordinates = point_row(predictor.space, member.x.point)
    scores = predictor.score(coordinates).reshape(-1)
    return margin_near(predictor, float(scores @ np.array(weights)) - level, coordinates, member.x.reach)
