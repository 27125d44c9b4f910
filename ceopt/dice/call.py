"""One call of dice_ml's, from its arguments to its result: read, asked, and put as dice_ml puts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

import pandas as pd

from ceopt.dice.examples import CounterfactualExamples
from ceopt.dice.explanations import CounterfactualExplanations
from ceopt.dice.inquiry import Inquiry
from ceopt.dice.no_counterfactuals import require_some
from ceopt.dice.options import check_options, warn_once
from ceopt.dice.permitted import checked_ranges
from ceopt.dice.queries import query_rows, varying
from ceopt.dice.targets import Wanted, class_wanted, classes_of, range_wanted
from ceopt.formulations.targets import Probability
from ceopt.metrics.predictions import predicted
from ceopt.solvers.checks import Whole, plain
from ceopt.solvers.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ceopt.dice.data import Data
    from ceopt.dice.model import Model
    from ceopt.formulations.space.space import FeatureSpace
    from ceopt.solution.solution_set import SolutionSet

__all__ = ["Call", "explained"]

_TOTAL: Final = Whole(at_least=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The arguments of a call by dice_ml's names, as they were given.

    ``who`` is what errors call it; ``depth`` counts the calls between the user's line and :func:`explained`;
    ``total_time_limit_s`` is for all rows together.
    """

    who: str
    depth: int
    queries: Any
    total: Any
    desired_class: Any = "opposite"
    desired_range: Any = None
    permitted_range: Any = None
    features_to_vary: Any = "all"
    search: Mapping[str, Any] = field(default_factory=dict)
    total_time_limit_s: float | None = None


def explained(
    call: Call, *, data: Data, model: Model, space: FeatureSpace, options: Mapping[str, Any], method: str | None
) -> CounterfactualExplanations:
    """Return the counterfactuals of every row, or refuse the call before any work.

    Raises
    ------
    NoCounterfactualsError
        No row has any.
    CeoptError
        Misuse.
    """
    who = call.who
    check_options(who, call.search)
    n = _TOTAL.require(who, "total_CFs", call.total)
    queries = query_rows(who, data, call.queries)
    inquiry = Inquiry(
        model=model.model,
        space=varying(who, space, call.features_to_vary),
        ranges={**data.ranges, **checked_ranges(who, space, call.permitted_range)},
        rows=data.rows,
        options=options,
        total_time_limit_s=call.total_time_limit_s,
    )
    before = [plain(said) for said in predicted(who, model.model, queries, space).tolist()]
    wanted = _wanted(call, data, model, before)
    answered = inquiry.answer(queries, [one.target for one in wanted], n)
    warn_once(_without_effect(call, method, wanted), answered.black_box, stacklevel=call.depth + 2)
    require_some(who, answered.results)
    examples = []
    for place, result in enumerate(answered.results):
        row = queries.iloc[[place]].reset_index(drop=True)
        examples.append(_example(row, before[place], wanted[place], result, data=data, model=model))
    return CounterfactualExplanations(examples)


def _wanted(call: Call, data: Data, model: Model, before: Sequence[Any]) -> list[Wanted]:
    """Return what each row should get."""
    if not model.is_classifier:
        return [range_wanted(call.who, call.desired_range)] * len(before)
    if call.desired_range is not None:
        but = f"desired_range is {call.desired_range!r} and the model a classifier"
        raise InvalidValueError(call.who, "a class to be desired", but, "Give desired_class=.")
    classes = classes_of(model.model, data.data_df[data.outcome_name])
    threshold = call.search.get("stopping_threshold", 0.5)
    return class_wanted(call.who, call.desired_class, classes, before, threshold)


def _without_effect(call: Call, method: str | None, wanted: Sequence[Wanted]) -> dict[str, Any]:
    """Return what was given and changes nothing, by name."""
    given: dict[str, Any] = {}
    if method is not None:
        given["method"] = method
    given |= call.search
    if any(isinstance(one.target, Probability) for one in wanted):
        del given["stopping_threshold"]  # it is asked for
    return given


def _example(
    row: pd.DataFrame, before: Any, wanted: Wanted, result: SolutionSet, *, data: Data, model: Model
) -> CounterfactualExamples:
    """Return a result as dice_ml puts it: frames with the outcome as their last column."""
    found = None
    if len(result):
        said = [answer.prediction for answer in result]
        found = result.to_frame()[data.feature_names].reset_index(drop=True).assign(**{data.outcome_name: said})
    return CounterfactualExamples(
        test_instance_df=row.assign(**{data.outcome_name: [before]}),
        final_cfs_df=found,
        outcome_name=data.outcome_name,
        model_type=model.model_type,
        desired_class=wanted.outcome if model.is_classifier else None,
        desired_range=None if model.is_classifier else wanted.outcome,
        solution_set=result,
    )
