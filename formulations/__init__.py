"""The statement of the problem, as Pyomo: spaces, embedded models, decisions, rules and costs.

Each formulation is a block that states one thing; a recourse program is a few of them in an ordinary ConcreteModel.
"""

from ceopt.formulations import predictors, programs
from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints import AbstractRule, impose
from ceopt.formulations.costs import AbstractCost, Cutoff, l0, l1, l2, l2_squared, linf, mahalanobis
from ceopt.formulations.people import People, shared_budget
from ceopt.formulations.predictors.embed import embed
from ceopt.formulations.predictors.embed.caller_columns import Columns
from ceopt.formulations.predictors.embed.embedded import embedding_error
from ceopt.formulations.predictors.reaches import Reaches
from ceopt.solvers.manifest import Manifest

__all__ = [
    "AbstractCost",
    "AbstractRule",
    "Columns",
    "Cutoff",
    "Factual",
    "Manifest",
    "People",
    "Reaches",
    "embed",
    "embedding_error",
    "impose",
    "l0",
    "l1",
    "l2",
    "l2_squared",
    "linf",
    "mahalanobis",
    "predictors",
    "programs",
    "shared_budget",
]
