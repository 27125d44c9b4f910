"""Recourse for models of which only the answers are known, through linear surrogates near the decision boundary.

A surrogate is linear in *scaled columns*: numbers over their scale, levels as shares from 0 to 1. What is proved is
proved about the surrogate; what is answered is checked on the model.
"""

from ceopt.formulations.programs.minimax import logdet_factor
from ceopt.surrogates.black_box import BlackBox, QueryLimitError
from ceopt.surrogates.minimax.classifier import MinimaxProbabilityMachine
from ceopt.surrogates.minimax.divergences import WorstCovariance, worst_covariance
from ceopt.surrogates.recourse import LocalSurrogateRecourse
from ceopt.surrogates.rivals.clime import ClimeSurrogate
from ceopt.surrogates.rivals.lime import LimeSurrogate
from ceopt.surrogates.rivals.limels import LimelsSurrogate
from ceopt.surrogates.rivals.svm import SvmSurrogate
from ceopt.surrogates.sampler import BoundarySample, BoundarySampler, DecidedRows, NoBoundaryError
from ceopt.surrogates.scaled_columns import ScaledColumns
from ceopt.surrogates.searches.projection import ProjectedPoint, project, project_l1
from ceopt.surrogates.searches.roar import RoarRecourse, roar
from ceopt.surrogates.searches.wachter import WachterRecourse, wachter

__all__ = [
    "BlackBox",
    "BoundarySample",
    "BoundarySampler",
    "ClimeSurrogate",
    "DecidedRows",
    "LimeSurrogate",
    "LimelsSurrogate",
    "LocalSurrogateRecourse",
    "MinimaxProbabilityMachine",
    "NoBoundaryError",
    "ProjectedPoint",
    "QueryLimitError",
    "RoarRecourse",
    "ScaledColumns",
    "SvmSurrogate",
    "WachterRecourse",
    "WorstCovariance",
    "logdet_factor",
    "project",
    "project_l1",
    "roar",
    "wachter",
    "worst_covariance",
]
