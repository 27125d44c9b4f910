"""Fitted models: what they compute, exactly, and the readers that find out."""

from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.representation import AbstractRepresentation, Affine, ReluNetwork
from ceopt.formulations.predictors.trees import Tree, TreeEnsemble

__all__ = ["AbstractRepresentation", "Affine", "Combination", "Predictor", "ReluNetwork", "Tree", "TreeEnsemble"]
