"""How often columns change in counterfactuals: of one row, and of all."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from ceopt.dice.examples import CounterfactualExamples
from ceopt.dice.explanations import CounterfactualExplanations
from ceopt.solvers.checks import Whole, plain
from ceopt.solvers.errors import InvalidValueError, counted
from ceopt.status import Status

__all__ = ["importances", "require_enough", "warn_of_cut"]

#: dice_ml asks for so many rows, and so many counterfactuals of each, before it speaks of importance.
_ENOUGH: Final = 10
_TOTAL: Final = Whole(at_least=1)
#: Statuses of rows that have no counterfactual to be found.
_NONE_LEFT: Final = frozenset({Status.ALREADY_FAVOURABLE, Status.INFEASIBLE})
#: So many rows are named in a warning.
_NAMED: Final = 20


def require_enough(
    who: str, rows: int | None, given: Sequence[CounterfactualExamples] | None, total: Any, *, summary: bool
) -> None:
    """Refuse what is too little to speak of importance, as dice_ml does.

    Fewer than ten of a row are enough where they are proved to be all, or where ten were asked for: :func:`warn_of_cut`
    says then which rows a limit of time has cut.

    Raises
    ------
    InvalidValueError
        Fewer than ten rows for a summary; fewer than ten counterfactuals of a row that may have more.
    """
    if rows is None and given is None:
        raise InvalidValueError(who, "rows or counterfactuals", "neither is given", "Give query_instances.")
    known = rows if given is None else len(given)
    if summary and known is not None and known < _ENOUGH:
        but = f"there are {known}"
        raise InvalidValueError(who, f"at least {_ENOUGH} rows", but, "Give more, or ask local_feature_importance.")
    if given is None:
        if _TOTAL.require(who, "total_CFs", total) < _ENOUGH:
            raise InvalidValueError(who, f"total_CFs of at least {_ENOUGH}", f"it is {total}", "Raise it.")
        return
    for place, example in enumerate(given):
        found = 0 if example.final_cfs_df is None else len(example.final_cfs_df)
        result = example.solution_set
        asked = 0 if result is None else result.options.get("n", 0)
        is_all = result is not None and result.complete and found < asked
        if found < _ENOUGH and asked < _ENOUGH and not is_all:
            but = f"entry {place} of cf_examples_list has {found}"
            raise InvalidValueError(
                who, f"at least {_ENOUGH} counterfactuals of each row, or all that there are", but,
                f"Generate them with total_CFs={_ENOUGH}, or leave cf_examples_list out.",
            )  # fmt: skip


def warn_of_cut(who: str, examples: Sequence[CounterfactualExamples], *, stacklevel: int) -> None:
    """Name in one warning the rows that a limit has ended before all their counterfactuals were found."""
    results = [example.solution_set for example in examples]
    cut = [repr(one.query_id) for one in results if one is not None and not (one.complete or one.status in _NONE_LEFT)]
    if cut:
        named = ", ".join(cut[:_NAMED]) + (", ..." if len(cut) > _NAMED else "")
        warnings.warn(
            f"{who} counts what was found of {counted(len(cut), 'row')} in time, which may be fewer than there are "
            f"({named}). Raise the limit by Dice(..., total_time_limit_s=...), which all rows share, or by "
            "time_limit_s=..., which holds for each.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def importances(
    examples: Sequence[CounterfactualExamples], names: Sequence[str], *, local: bool, summary: bool
) -> CounterfactualExplanations:
    """Return the counterfactuals with the share of them in which each column changes, of each row and of all."""
    counts = [_changes(example, names) for example in examples]
    found = [0 if example.final_cfs_df is None else len(example.final_cfs_df) for example in examples]
    of_rows = None
    if local:
        of_rows = [_shares(count, names, of) for count, of in zip(counts, found, strict=True)]
    of_all = None
    if summary:
        together: Counter[str] = Counter()
        for count in counts:
            together.update(count)
        of_all = _shares(together, names, sum(found))
    return CounterfactualExplanations(list(examples), local_importance=of_rows, summary_importance=of_all)


def _changes(example: CounterfactualExamples, names: Sequence[str]) -> Counter[str]:
    """Return in how many counterfactuals each column changes."""
    changed: Counter[str] = Counter()
    if example.final_cfs_df is None:
        return changed
    for name in names:
        home = plain(example.test_instance_df[name].iloc[0])
        values = [plain(value) for value in example.final_cfs_df[name].tolist()]
        changed[name] = sum(value != home for value in values)
    return changed


def _shares(changed: Counter[str], names: Sequence[str], of: int) -> dict[str, float]:
    """Return the shares by column, the most frequent first, equal ones in the order of the names."""
    shares = {name: changed[name] / of if of else 0.0 for name in names}
    return dict(sorted(shares.items(), key=lambda entry: -entry[1]))
