"""Fitted models: what they compute, exactly, and the readers that find out."""

from ceopt.formulations.predictors.predictor import Predictor
from ceopt.formulations.predictors.representation import Affine, Tree, TreeEnsemble

__all__ = ["Affine", "Predictor", "Tree", "TreeEnsemble"]
