"""Fitted models: what they compute, exactly, and the readers that find out."""

from ceopt.formulations.predictors.combination import Combination
from ceopt.formulations.predictors.head import AbstractRepresentation
from ceopt.formulations.predictors.network import ReluNetwork
from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.representation import Affine, Tree, TreeEnsemble

__all__ = ["AbstractRepresentation", "Affine", "Combination", "Predictor", "ReluNetwork", "Tree", "TreeEnsemble"]
