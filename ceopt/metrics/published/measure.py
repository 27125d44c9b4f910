"""One line of a suite, and what it is computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, final

from ceopt.formulations.space.space import FeatureSpace
from ceopt.metrics.changes import sparsity
from ceopt.metrics.distance import embedded
from ceopt.metrics.diversity import categorical_diversity, count_diversity
from ceopt.metrics.proximity import categorical_proximity
from ceopt.metrics.rows import Floats

__all__ = [
    "CATEGORICAL_DIVERSITY",
    "CATEGORICAL_PROXIMITY",
    "COUNT_DIVERSITY",
    "RUN_TIME",
    "SPARSITY",
    "Evidence",
    "Measure",
]

_STATISTICS = ("mad", "range")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What is known about one person's counterfactuals; see :func:`ceopt.metrics.suite` for each."""

    S: Any
    factual: Any = None
    space: FeatureSpace | None = None
    model: Any = None
    target: Any = None
    data: Any = None
    labels: Any = None
    others: Any = None
    models: Any = None
    seconds: float | None = None
    n: int | None = None
    neighbours: int = 5

    def lacks(self, need: str) -> bool:
        """Whether something is needed and not there.

        ``"mad"`` is data or a space that knows its own; ``"range"`` the same, needed only where there is a space, since
        columns without one are taken as they are; ``"classes"`` is a model or labels of the data.
        """
        if need in _STATISTICS:
            known = self.space is not None and all(
                feature.is_finite or getattr(feature, need) is not None for feature in self.space
            )
            return self.data is None and not known and (need == "mad" or self.space is not None)
        if need == "classes":
            return self.model is None and self.labels is None
        return getattr(self, need) is None

    def encoded(self, who: str, *, include_data: bool = False, **given: Any) -> list[Floats]:
        """Return tables as the source encodes them before it measures.

        With a space the tables are raw: numbers are mapped to [0, 1] by the range of the data (a constant column is
        divided by 1, as by scikit-learn's MinMaxScaler), a category becomes its 0/1 columns, a binary column one of
        them. Without a space the columns are taken as they are.
        """
        scale = "none" if self.space is None else "range"
        data = None if self.space is None and not include_data else self.data
        return embedded(
            who,
            "l2",
            space=self.space,
            scale=scale,
            data=data,
            zero=1.0,
            corner=1.0,
            include_data=include_data,
            **given,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measure:
    """A metric of a suite.

    Parameters
    ----------
    name
        In the result.
    function
        The function of :mod:`ceopt.metrics` that computes it, with the options that the source takes.
    better
        "higher" or "lower".
    needs
        Keywords of :func:`ceopt.metrics.suite` that it cannot do without; see :meth:`Evidence.lacks`.
    source
        Where it is defined.
    of
        The computation.
    when_empty
        The value for a person without a counterfactual.
    """

    name: str
    function: str
    better: Literal["higher", "lower"]
    needs: tuple[str, ...]
    source: str
    of: Callable[[Evidence], float]
    when_empty: float = float("nan")

    def by(self, source: str, name: str | None = None) -> Measure:
        """Return the same measure as another source has it, if need be by that source's own name."""
        return replace(self, source=source, name=name or self.name)

    def missing(self, evidence: Evidence) -> str | None:
        """Return the keyword that has to be passed, or None."""
        for need in self.needs:
            if evidence.lacks(need):
                return {"mad": "data", "range": "data", "classes": "model"}.get(need, need)
        return None


# ---- measures that several papers have -------------------------------------------------------------------------------
CATEGORICAL_PROXIMITY = Measure(
    name="categorical_proximity",
    function="categorical_proximity",
    better="higher",
    needs=("factual",),
    source="",
    of=lambda e: categorical_proximity(e.factual, e.S, space=e.space),
)
SPARSITY = replace(
    CATEGORICAL_PROXIMITY,
    name="sparsity",
    function="sparsity",
    of=lambda e: sparsity(e.factual, e.S, space=e.space),
)
CATEGORICAL_DIVERSITY = replace(
    CATEGORICAL_PROXIMITY,
    name="categorical_diversity",
    function="categorical_diversity",
    needs=(),
    of=lambda e: categorical_diversity(e.S, space=e.space),
)
COUNT_DIVERSITY = replace(
    CATEGORICAL_DIVERSITY,
    name="count_diversity",
    function="count_diversity",
    of=lambda e: count_diversity(e.S, space=e.space),
)
RUN_TIME = replace(
    CATEGORICAL_PROXIMITY,
    name="run_time",
    function="run_time",
    better="lower",
    needs=("seconds",),
    of=lambda e: float(e.seconds),  # type: ignore[arg-type]
)
