"""The statement of the problem, as Pyomo: spaces, embedded models, decisions, rules and costs.

Each formulation is a block that states one thing; a recourse program is a few of them in an ordinary ConcreteModel.
"""

from ceopt.formulations import predictors, programs
from ceopt.formulations.columns.caller_columns import Columns
from ceopt.formulations.columns.columns_block import Factual
from ceopt.formulations.constraints import impose
from ceopt.formulations.costs import l0, l1, l2, l2_squared, linf, mahalanobis
from ceopt.formulations.predictors.decision.reaches import Reaches
from ceopt.formulations.predictors.embed import embed
from ceopt.formulations.predictors.embed.embedding_error import embedding_error

__all__ = [
    "Columns",
    "Factual",
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
]
