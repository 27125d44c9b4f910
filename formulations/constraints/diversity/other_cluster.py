"""One answer for each cluster of a hull."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity, Point
from ceopt.formulations.constraints.rule import adds_to_cost, has_clusters, nearest_cluster
from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from ceopt.formulations.constraints.rule import AbstractRule
    from ceopt.formulations.recourse_program import RecourseProgram
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["OtherCluster"]


@final
@dataclass(frozen=True, slots=True)
class OtherCluster(AbstractDiversity):
    r"""A cluster of the hull in which no earlier answer lies.

    .. math:: u_k = 0 \qquad\text{for the cluster k of each earlier answer}

    ====== ================= ==============================================================
    symbol component         meaning
    ====== ================= ==============================================================
    u_k    ``in_cluster[k]`` binary of the hull's block: 1 iff the answer lies in cluster k
    ====== ================= ==============================================================

    One row for each earlier answer. Exact: answers are optimal each in the clusters that are left, so there are at most
    as many as clusters. Where clusters overlap, two answers may be the same point.

    Parameters
    ----------
    cluster
        That of the earlier answer.
    hull
        The rule with the clusters, fitted.
    known
        Nearest cluster by point, of starts that were looked at.

    Raises
    ------
    InvalidValueError
        The rules hold no hull with clusters, or several.

    References
    ----------
    One explanation per cluster: Maragno, Roeber & Birbil (2022), eq. (3) over clusters.

    Examples
    --------
    >>> import pandas as pd
    >>> from ceopt import L1, Feature, FeatureSpace
    >>> from ceopt.formulations.constraints.hull.hull import Hull
    >>> from ceopt.formulations.constraints.diversity.other_cluster import OtherCluster
    >>> from ceopt.formulations.predictors import Affine
    >>> from ceopt.formulations.predictors.read import read
    >>> from ceopt.formulations.recourse_program import recourse_program
    >>> space = FeatureSpace([Feature("hours", kind="continuous", lower=0, upper=9)])
    >>> model = read(Affine([1.0], -1.0, labels=("no", "yes")), space)
    >>> people = Hull(pd.DataFrame({"hours": [2.0, 3.0, 7.0, 8.0]}), clusters=["few", "few", "many", "many"])
    >>> program = recourse_program(model, {"hours": 0}, target="yes", cost=L1(), rules=[people])
    >>> OtherCluster("few").exclude(program, {"hours": 2.0})
    >>> print(program.model.other_cluster["few"].expr)
    rules.Hull_1.in_cluster[few]  ==  0.0
    """

    cluster: Any = None
    hull: AbstractRule | None = field(default=None, repr=False)
    known: dict[tuple[float, ...], Any] = field(default_factory=dict, repr=False, compare=False)
    text = "clusters"

    def check(self, space: FeatureSpace, rules: tuple[AbstractRule, ...]) -> None:
        """Refuse rules without exactly one hull with clusters."""
        del space
        count = sum(map(has_clusters, rules))
        if count != 1:
            raise InvalidValueError(
                "diversity='clusters'",
                "exactly one rule Hull(..., clusters=...) in constraints",
                f"there are {count}" if count else "there is none",
                "Keep one of them." if count else "Add one, such as Hull(clusters=3).",
            )
        if adds_to_cost(next(filter(has_clusters, rules))):
            raise InvalidValueError(
                "diversity='clusters'", "a Hull without a penalty", "it has one, charged by the nearest cluster",
                "Ask for each cluster alone: Hull(rows of the cluster, penalty=...), or give a radius instead.",
            )  # fmt: skip

    def fitted(self, rules: tuple[AbstractRule, ...]) -> OtherCluster:
        """Return the same with the hull that has the clusters."""
        return OtherCluster(hull=next(filter(has_clusters, rules)))

    def after(self, cluster: Any) -> OtherCluster:
        """Return what keeps answers out of a cluster."""
        return replace(self, cluster=cluster)

    def exclude(self, program: RecourseProgram, point: Point) -> None:
        """Add the row ``other_cluster[k]``."""
        del point
        block = next(block for rule, block in program.rules if has_clusters(rule))
        form = LinearForm(0.0, ((1.0, block.in_cluster[self.cluster]),))
        Rows(program.model, "other_cluster").add(self.cluster, form, lower=0.0, upper=0.0)

    def differ(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Accept: answers in two clusters are two answers even where the clusters, and the answers, meet."""
        del space, factual, a, b
        return True

    def surely(self, space: FeatureSpace, factual: Point, a: Point, b: Point) -> bool:
        """Tell whether the cluster nearest to b is another."""
        del factual, a
        key = tuple(b[name] for name in space.names)
        if key not in self.known:
            self.known[key] = nearest_cluster((self.hull,) if self.hull else (), space, b)
        return self.known[key] not in {None, self.cluster}
