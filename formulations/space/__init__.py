"""The space of a person's row: what each column is and how it may move, in raw units and as coordinates."""

from ceopt.formulations.space.feature import Feature
from ceopt.formulations.space.space import FeatureSpace, RuleWarning, SpaceWarning

__all__ = ["Feature", "FeatureSpace", "RuleWarning", "SpaceWarning"]
