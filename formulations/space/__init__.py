"""What each column is and how it may move; raw units to the coordinates that programs use, and back."""

from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace

__all__ = ["Feature", "FeatureSpace"]
