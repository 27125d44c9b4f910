"""Fitted models: what they compute, exactly, and the readers that find out."""

from ceopt.formulations.predictors.representation.affine import Affine
from ceopt.formulations.predictors.representation.decision_rule import AbstractRepresentation
from ceopt.formulations.predictors.representation.predictor import Combination, Predictor
from ceopt.formulations.predictors.representation.relu_network import ReluNetwork
from ceopt.formulations.predictors.representation.trees import Tree, TreeEnsemble

__all__ = ["AbstractRepresentation", "Affine", "Combination", "Predictor", "ReluNetwork", "Tree", "TreeEnsemble"]
