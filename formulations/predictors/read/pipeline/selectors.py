"""Steps of scikit-learn that keep, drop or reorder columns of complete rows without changing a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from ceopt.formulations.predictors.read.pipeline.trace import Rule, Trace, refuse
from ceopt.formulations.space.encoding import Column

__all__ = ["IDENTITIES"]


def _impute(imputer: Any, before: Trace, output: Any) -> Sequence[Column]:
    """Keep the columns that had a value at fitting, then one constant 0 per column that had a gap."""
    missing = imputer.missing_values
    if not (missing is None or missing is pd.NA or (isinstance(missing, float) and math.isnan(missing))):
        for column in before.numbers():
            raise refuse(
                "imputers of missing values alone",
                f"SimpleImputer replaces {missing!r} in the numeric column {column.feature!r}",
                "Replace that number in the data before the model is fitted.",
            )  # fmt: skip
    flags = len(imputer.indicator_.features_) if imputer.add_indicator else 0
    kept = list(before.columns)
    if len(kept) + flags != output.shape[1]:  # columns without any value at fitting are dropped
        kept = [column for column, fill in zip(kept, imputer.statistics_, strict=True) if not pd.isna(fill)]
    return [*kept, *[Column(None)] * flags]


def _function(step: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    if step.func is not None:
        name = getattr(step.func, "__name__", repr(step.func))
        raise refuse(
            "functions that are the identity", f"FunctionTransformer has func={name}",
            "Apply the function to the data before the model is fitted, and describe its result in the space.",
        )  # fmt: skip
    return before.columns


def _select(step: Any, before: Trace, output: Any) -> Sequence[Column]:  # noqa: ARG001
    return [before.columns[place] for place in step.get_support(indices=True)]


_SELECTORS: Final = (
    "GenericUnivariateSelect", "RFE", "RFECV", "SelectFdr", "SelectFpr", "SelectFromModel", "SelectFwe", "SelectKBest",
    "SelectPercentile", "SequentialFeatureSelector", "VarianceThreshold",
)  # fmt: skip

IDENTITIES: Final[Mapping[str, Rule]] = {
    "FunctionTransformer": _function,
    "SimpleImputer": _impute,
    **dict.fromkeys(_SELECTORS, _select),
}
