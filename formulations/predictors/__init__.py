"""Fitted models: what they compute, exactly, and the readers that find out."""

from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.read_model import ReadModel
from ceopt.formulations.predictors.read_model import read_model as read
from ceopt.formulations.predictors.representation import AbstractRepresentation, Affine, ReluNetwork
from ceopt.formulations.predictors.trees import Tree, TreeEnsemble

__all__ = [
    "AbstractRepresentation",
    "Affine",
    "Combination",
    "Predictor",
    "ReadModel",
    "ReluNetwork",
    "Tree",
    "TreeEnsemble",
    "read",
]
