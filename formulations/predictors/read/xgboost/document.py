"""A booster of XGBoost as the document that it would save: the parts that decide, and where its sum starts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from ceopt.formulations.predictors.representation.decision_rule import Floats

__all__ = ["Saved", "drop_weights", "trees_of"]


def trees_of(booster: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a saved booster that holds its trees or weights; dart has it one level deeper up to 3.2."""
    part: Mapping[str, Any] = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    return part


def drop_weights(booster: Mapping[str, Any]) -> Sequence[float]:
    """Return by what dart scales each tree of a saved booster: beside the model up to 3.3, in it since 3.4."""
    found: Sequence[float] = booster.get("weight_drop") or trees_of(booster).get("weight_drop") or ()
    return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """The document of a booster.

    Parameters
    ----------
    booster
        The booster itself.
    document
        What it saves as JSON.
    kind
        "gbtree", "gblinear" or, up to version 3.2, "dart"; later ones say "gbtree" of dart as well.
    model
        The part of the document that holds trees or weights.
    scales
        By what dart scales the leaves of each tree; None where every tree counts as it is.
    scales_sums
        Whether the library scales the sum that a tree alone gives, start included, as up to version 3.2; else leaves.
    """

    booster: Any
    document: Mapping[str, Any]
    kind: str
    model: Mapping[str, Any]
    scales: Sequence[float] | None
    scales_sums: bool = False

    @classmethod
    def of(cls, booster: Any) -> Self:
        """Return the document of a booster."""
        document = json.loads(booster.save_raw("json"))
        part = document["learner"]["gradient_booster"]
        name = str(part["name"])
        model = trees_of(part)
        scales = drop_weights(part)
        return cls(booster, document, name, model, scales or None, scales_sums=name == "dart")

    @property
    def objective(self) -> str:
        """Name of the objective."""
        return str(self.document["learner"]["objective"]["name"])

    @property
    def names(self) -> list[str]:
        """Columns of the frame that it was fitted on; none of an array."""
        return list(self.document["learner"]["feature_names"])

    @property
    def categorical(self) -> list[int]:
        """Places of the columns that hold categories."""
        return [place for place, kind in enumerate(self.document["learner"]["feature_types"]) if kind == "c"]

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix."""
        return self._size("num_feature")

    @property
    def n_outputs(self) -> int:
        """Columns of the target."""
        return self._size("num_target")

    @property
    def n_scores(self) -> int:
        """Sums per row."""
        return max(1, self._size("num_class"))

    def at_zero(self) -> Floats:
        """Return the library's own sums at a row of zeros, one per score."""
        return _at_zero(self.booster, self.n_inputs)

    def start_of_sum(self) -> Floats:
        """Return where the sums start: what the library predicts with the model's trees taken out."""
        import xgboost

        learner = self.document["learner"]
        empty = {
            "gbtree_model_param": {**self.model["gbtree_model_param"], "num_trees": "0"},
            "iteration_indptr": [0], "tree_info": [], "trees": [],
        }  # fmt: skip
        bare = {
            **learner,
            "gradient_booster": {"name": "gbtree", "model": empty},
            # A model without trees that says 1 here has its start estimated anew.
            "learner_model_param": {**learner["learner_model_param"], "boost_from_average": "0"},
        }
        booster = xgboost.Booster()
        booster.load_model(bytearray(json.dumps({**self.document, "learner": bare}).encode()))
        return _at_zero(booster, self.n_inputs)

    def _size(self, name: str) -> int:
        return int(self.document["learner"]["learner_model_param"][name])


def _at_zero(booster: Any, n_inputs: int) -> Floats:
    import xgboost

    row = xgboost.DMatrix(np.zeros((1, n_inputs), dtype=np.float32))
    return np.asarray(booster.predict(row, output_margin=True, validate_features=False), dtype=np.float64).ravel()
