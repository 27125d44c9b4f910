"""The whole program for one person: coordinates, embedded model, decision, rules and cost in one ConcreteModel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints import AbstractRule, impose, rule_name
from ceopt.formulations.constraints.rule import component_name
from ceopt.formulations.predictors.embed import embed_predictor
from ceopt.formulations.predictors.pruned_leaves import reach_within
from ceopt.formulations.predictors.reaches import Reaches, wanted_sums
from ceopt.formulations.predictors.tree_bounds import TreeNeed
from ceopt.formulations.space.reachable import Reach
from ceopt.formulations.targets import Target, parse_target

if TYPE_CHECKING:
    from ceopt.formulations.costs import AbstractCost
    from ceopt.formulations.costs.base import CostCutoff
    from ceopt.formulations.predictors.embed.embedded import AbstractEmbedded
    from ceopt.formulations.predictors.predictor import Predictor
    from ceopt.formulations.space.space import FeatureSpace

__all__ = ["RecourseProgram", "recourse_program"]


@final
@dataclass(frozen=True, slots=True)
class RecourseProgram:
    """A recourse program and the blocks in it: ``model.x``, ``model.predictor``, ``model.valid``, ``model.rules``."""

    model: Any
    x: Factual
    embedded: AbstractEmbedded
    margin: float
    rules: tuple[tuple[AbstractRule, Any], ...] = ()

    @property
    def cluster(self) -> Any:
        """Which cluster of a hull the solution that is loaded lies in; None without clusters."""
        for rule, block in self.rules:
            label = rule.cluster_in(block)
            if label is not None:
                return label
        return None


def recourse_program(
    predictor: Predictor,
    row: Any,
    *,
    target: Target | Any,
    cost: AbstractCost,
    rules: Sequence[AbstractRule] = (),
    margin: float | None = None,
    below: float = 0.0,
    formulation: str = "auto",
    reach: Reach | None = None,
    space: FeatureSpace | None = None,
    cutoff: CostCutoff | None = None,
    all_cells: bool = False,
    products: bool = False,
    decides_only: bool = False,
    about: tuple[Predictor, Any] | None = None,
) -> RecourseProgram:
    r"""State "the least change for which the model decides otherwise" for one person.

    .. math::
        \min_x\ \text{cost}(x, x^0) \quad\text{s.t.}\quad s(x) \text{ reaches the target with margin } m, \quad
        x \in \text{reach}(x^0), \quad \text{rules}.

    Parameters
    ----------
    predictor
        The fitted model as it was read.
    row
        The factual in raw units.
    target, cost, rules, margin, formulation
        As for :func:`ceopt.explain`.
    below
        As for :class:`ceopt.formulations.predictors.reaches.Reaches`.
    reach
        Values that each column may take, where narrower than the space says.
    space
        The columns, where they may move otherwise than in the space that the model was read over.
    cutoff
        A cost that no answer worth finding exceeds, where one is known; the reach is narrowed by the caller.
    all_cells
        Keep the splits of trees that decide nothing for this person, for answers that differ by any cell.
    products
        State products of columns as they are, for a solver that takes them, and not value by value.
    decides_only
        Nothing but the decision and the rules is asked of the embedded model: no row that leaves out its leaves, and no
        other row over its scores. Leaves of trees that are worst for the decision then need no variables.
    about
        The model and the decision that rules are about, where others stand in for them here.

    Returns
    -------
    RecourseProgram
        ``.model`` is an ordinary ConcreteModel: add rows, export it, or hand it to any solver.
    """
    need = None
    if cutoff is not None and below == 0.0 and not any(rule.mends for rule in rules):
        wanted = parse_target(target, predictor.labels)
        need = TreeNeed.of(predictor, wanted, None if margin is None else 0.0)
        if need is not None and reach is not None and cutoff.cost.additive:
            reach = reach_within(predictor, reach, cutoff, need)
    with PauseGC():  # looking again and again at what was just made takes a third of the time of a large forest
        model = pyo.ConcreteModel(name="recourse")
        model.x = x = Factual(space or predictor.space, row, reach=reach)
        x.takes_products = products
        x.cutoff = cutoff
        with x.collecting():  # what the parts ask of the columns is known at the end, and their rows are written then
            model.predictor = embedded = embed_predictor(
                predictor,
                x,
                formulation=formulation,
                cutoff=cutoff,
                need=need,
                all_cells=all_cells,
                more_in=_weights_in_rows(predictor, target) if decides_only else (),
            )
            model.valid = valid = Reaches(embedded, target, margin=margin, below=below)
            model.rules = pyo.Block(concrete=True)
            explained, asked = about or (predictor, target)
            imposed: dict[int, tuple[AbstractRule, Any]] = {}
            for position, rule in sorted(enumerate(rules), key=lambda pair: not pair[1].gives_bounds):
                known = rule.about(lambda: explained).aimed(asked)
                imposed[position] = known, impose(known, x)
                name = component_name(model.rules, rule_name(rule, position))
                model.rules.add_component(name, imposed[position][1])
            model.cost = pyo.Objective(expr=cost.build(x))
    return RecourseProgram(model, x, embedded, valid.margin, tuple(imposed[k] for k in range(len(rules))))


def _weights_in_rows(predictor: Predictor, target: Target | Any) -> tuple[tuple[float, ...], ...]:
    """Return the weights of the scores in the rows of a decision, each of which wants more."""
    checked = parse_target(target, predictor.labels)
    return tuple(one.weights for _, sums in wanted_sums(predictor.core, checked) for one in sums)
