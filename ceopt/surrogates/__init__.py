"""Recourse for models of which only the answers are known, through linear surrogates near the decision boundary.

A surrogate is linear in *scaled columns*: numbers over their scale, levels as shares from 0 to 1. What is proved is
proved about the surrogate; what is answered is checked on the model.
"""

from ceopt.formulations.programs.minimax import logdet_factor
from ceopt.oracle.black_box import BlackBox, QueryLimitError
from ceopt.surrogates.linear_recourse import (
    ProjectedPoint,
    RoarRecourse,
    WachterRecourse,
    project,
    project_l1,
    roar,
    wachter,
)
from ceopt.surrogates.minimax import MinimaxProbabilityMachine, WorstCovariance, worst_covariance
from ceopt.surrogates.recourse import LocalSurrogateRecourse
from ceopt.surrogates.rivals import ClimeSurrogate, LimelsSurrogate, LimeSurrogate, SvmSurrogate
from ceopt.surrogates.sampler import BoundarySample, BoundarySampler, DecidedRows, NoBoundaryError
from ceopt.surrogates.scaled_columns import ScaledColumns

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
