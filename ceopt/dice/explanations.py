"""What dice_ml's calls return: counterfactuals of rows, the importance of columns, both as tables and as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, final

import numpy as np
import pandas as pd

from ceopt.base.results import Status
from ceopt.formulations.space.feature import is_gap
from ceopt.result.json_io import is_plain, is_text, list_of, or_none, require_fields
from ceopt.solvers.checks import Whole, is_number, plain
from ceopt.solvers.errors import CeoptError, InvalidValueError, UnreadableFileError, counted, printable
from ceopt.solvers.whole_files import json_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from ceopt.result.solution_set import SolutionSet

# ==== The error where nobody gets a counterfactual, which scripts written for dice_ml expect ==========================

#: So many rows are told why.
_SHOWN = 3
_NEEDLESS = "Nothing is to be changed: ask for another outcome."
_THEN = (
    "Let more columns vary (features_to_vary), widen permitted_range, or ask for another outcome; ceopt.explain says "
    "it by a status, without an error."
)


class NoCounterfactualsError(CeoptError, ValueError):
    """None of the rows that were asked about has a counterfactual."""


def require_some(who: str, results: Sequence[SolutionSet]) -> None:
    """Raise where no result has an answer, and say of the first rows why.

    Raises
    ------
    NoCounterfactualsError
        There is none at all.
    """
    if any(map(len, results)):
        return
    reasons = []
    for result in results[:_SHOWN]:
        why = ", ".join(filter(None, (result.status.value, result.reason.rstrip("."))))
        reasons.append(f"row {result.query_id!r}: {why}")
    if len(results) > _SHOWN:
        reasons.append("...")
    but = f"there is none for any of {len(results)} ({'; '.join(reasons)})"
    then = _THEN
    if all(result.status is Status.ALREADY_FAVOURABLE for result in results):
        then = _NEEDLESS
    raise NoCounterfactualsError(who, "a counterfactual for some row", but, then)


# ==== Tables shown where the user is: in a notebook as such, anywhere else as text ====================================

#: What stands for a value that stays.
_SAME = "-"


def say(text: str) -> None:
    """Print a text of one line or, where the parts were laid out as a table, of several."""
    print(printable(text, keep="\n"))  # noqa: T201 - these functions are asked to show something


def show(frame: pd.DataFrame) -> None:
    """Show a frame by the notebook that runs, or print it whole."""
    notebook = sys.modules.get("IPython")  # one that runs has loaded it
    if notebook is not None and notebook.get_ipython() is not None:
        sys.modules["IPython.display"].display(frame)
    else:
        say(frame.to_string())


def print_rows(frame: pd.DataFrame) -> None:
    """Print each row of a frame as a list."""
    for row in frame.itertuples(index=False, name=None):
        say(str(list(row)))


def _is_same(value: Any, other: Any) -> bool:
    """Whether two cells hold the same; missing ones do."""
    if is_gap(value) or is_gap(other):
        return is_gap(value) and is_gap(other)
    return bool(plain(value) == plain(other))


def only_changes(row: pd.DataFrame, counterfactuals: pd.DataFrame) -> pd.DataFrame:
    """Return the counterfactuals with a dash for each value that is the row's."""
    shown = {}
    for name in counterfactuals.columns:
        values = counterfactuals[name].astype(object)
        own = row[name].iloc[0]
        shown[name] = values.mask(np.array([_is_same(value, own) for value in values.tolist()], dtype=bool), _SAME)
    return pd.DataFrame(shown)


# ==== The counterfactuals of one row, as dice_ml puts them: frames with the outcome as their last column ==============


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CounterfactualExamples:
    """The counterfactuals of one row, nearest first.

    Parameters
    ----------
    test_instance_df
        The row, one row in raw units, with what the model says of it as the last column.
    final_cfs_df
        The counterfactuals, with what the model says of each; None where there is none.
    outcome_name
        The column of the outcome.
    model_type
        "classifier" or "regressor".
    desired_class
        The label, or the set of labels, that was asked for; None of a regressor.
    desired_range
        Least and greatest value that were asked for; None of a classifier.
    solution_set
        What ceopt says: status, costs, proved bounds, why there is no answer or no more; None of what JSON held.
    """

    test_instance_df: pd.DataFrame
    final_cfs_df: pd.DataFrame | None
    outcome_name: str
    model_type: str = "classifier"
    desired_class: Any = None
    desired_range: Any = None
    solution_set: SolutionSet | None = None

    @property
    def final_cfs_df_sparse(self) -> pd.DataFrame | None:
        """The same counterfactuals: they change no column that they could do without at a lower cost."""
        return self.final_cfs_df

    @property
    def test_pred(self) -> Any:
        """What the model says of the row."""
        return self.test_instance_df[self.outcome_name].iloc[0]

    @property
    def new_outcome(self) -> Any:
        """What was asked for."""
        if self.model_type == "classifier":
            return self.desired_class
        return self.desired_range

    @property
    def reason(self) -> str:
        """Why there is no counterfactual, or none beyond these; empty where there is nothing to say."""
        if self.solution_set is None:
            return ""
        return self.solution_set.reason

    def visualize_as_dataframe(self, display_sparse_df: bool = True, show_only_changes: bool = False) -> None:
        """Show the row and its counterfactuals as tables: in a notebook, else as text.

        Parameters
        ----------
        display_sparse_df
            Changes nothing: there is one table of counterfactuals.
        show_only_changes
            Put "-" for what stays.
        """
        del display_sparse_df
        self._tell(show, show_only_changes)

    def visualize_as_list(self, display_sparse_df: bool = True, show_only_changes: bool = False) -> None:
        """Print the row and its counterfactuals as lists; the arguments are those of :meth:`visualize_as_dataframe`."""
        del display_sparse_df
        self._tell(print_rows, show_only_changes)

    def _tell(self, show_frame: Callable[[pd.DataFrame], None], show_only_changes: bool) -> None:
        """Show the row, its counterfactuals, and why there are none or no more."""
        say(f"The row (outcome: {printable(str(self.test_pred))})")
        show_frame(self.test_instance_df)
        if self.final_cfs_df is None:
            status = "" if self.solution_set is None else f" ({self.solution_set.status.value})"
            say(f"No counterfactual{status}. {self.reason}".rstrip())
            return
        say(f"Counterfactuals (outcome wanted: {printable(str(self.new_outcome))})")
        counterfactuals = self.final_cfs_df
        if show_only_changes:
            counterfactuals = only_changes(self.test_instance_df, counterfactuals)
        show_frame(counterfactuals)
        if self.reason:
            say(self.reason)

    def __repr__(self) -> str:
        return f"CounterfactualExamples({_count(self)} for outcome {self.new_outcome!r})"


def _count(example: CounterfactualExamples) -> int:
    return 0 if example.final_cfs_df is None else len(example.final_cfs_df)


# ==== Explanations as the JSON that dice_ml writes and reads: its version 2.0, values in lists, columns named once ====

_VERSION: Final = "2.0"
_TEXT: Final = ("text", is_text)
_TABLES: Final = ("lists of rows, which are lists of plain values", list_of(list_of(list_of(is_plain))))
_SHARES: Final = ("a list of numbers, or null", or_none(list_of(is_number)))
_FIELDS: Final = {
    "feature_names": ("a list of texts", list_of(is_text)),
    "feature_names_including_target": ("a list of texts", list_of(is_text)),
    "test_data": _TABLES,
    "cfs_list": ("lists of rows, or null for each", list_of(or_none(list_of(list_of(is_plain))))),
    "model_type": _TEXT,
    "desired_class": ("text, a number or null", is_plain),
    "desired_range": _SHARES,
    "local_importance": ("lists of numbers, or null", or_none(list_of(list_of(is_number)))),
    "summary_importance": _SHARES,
}
_WHO: Final = "CounterfactualExplanations.from_json"
Shares = Mapping[str, float]


def to_text(examples: Sequence[CounterfactualExamples], local: Sequence[Shares] | None, summary: Shares | None) -> str:
    """Return the text; the outcome wanted is that of the last row, as the format holds one."""
    last = examples[-1]
    columns = list(map(str, last.test_instance_df.columns))
    names = [name for name in columns if name != last.outcome_name]
    local_shares = None
    if local is not None:
        local_shares = [list(map(shares.__getitem__, names)) for shares in local]
    summary_shares = None
    if summary is not None:
        summary_shares = list(map(summary.__getitem__, names))
    record = {
        "test_data": [_rows(example.test_instance_df) for example in examples],
        "cfs_list": [_rows(example.final_cfs_df) for example in examples],
        "local_importance": local_shares,
        "summary_importance": summary_shares,
        "data_interface": {"outcome_name": last.outcome_name, "data_df": "dummy_data"},
        "feature_names": names,
        "feature_names_including_target": columns,
        "model_type": last.model_type,
        "desired_class": _class(last.desired_class),
        "desired_range": last.desired_range,
        "metadata": {"version": _VERSION},
    }
    return json.dumps(record)


def _rows(frame: pd.DataFrame | None) -> list[list[Any]] | None:
    if frame is None:
        return None
    columns = []
    for name in frame.columns:
        columns.append([None if is_gap(value) else plain(value) for value in frame[name].tolist()])
    return list(map(list, zip(*columns, strict=True)))


def _class(desired: Any) -> Any:
    """Return a desired class as text or a whole number, which is all that the format takes."""
    if desired is None or (isinstance(desired, str | int) and not isinstance(desired, bool)):
        return desired
    if isinstance(desired, float) and desired.is_integer():
        return int(desired)
    return str(desired)


def from_text(text: str) -> tuple[list[CounterfactualExamples], list[dict[str, float]] | None, dict[str, float] | None]:
    """Return examples, the importances of each row, and those of all.

    Raises
    ------
    UnreadableFileError
        No JSON, another version, or another shape.
    """
    then = "Give what to_json returned."
    if not isinstance(text, str):
        but = f"the text is {type(text).__name__}"
        raise UnreadableFileError(_WHO, "JSON of explanations", but, then)
    record = json_in(_WHO, "the text", text, then, needs="JSON of explanations")
    try:
        version = record["metadata"]["version"]
    except (TypeError, LookupError) as error:
        raise UnreadableFileError(_WHO, "JSON of explanations", f"the text is not ({error!r})", then) from error
    if version != _VERSION:
        but = f"version is {version!r}"
        raise UnreadableFileError(_WHO, f"version {_VERSION!r}", but, "Write it anew with to_json.")
    try:
        _check(record)
        return _examples(record), *_importances(record)
    except CeoptError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise UnreadableFileError(_WHO, "complete JSON of explanations", f"it is damaged ({error!r})", then) from error


def _check(record: Mapping[str, Any]) -> None:
    """Refuse a field that holds something else than it may."""
    columns = record["feature_names_including_target"]
    names = record["feature_names"]
    require_fields(_WHO, "", record, _FIELDS)
    require_fields(_WHO, "", record["data_interface"], {"outcome_name": _TEXT})
    outcome = record["data_interface"]["outcome_name"]
    if len(set(columns)) < len(columns) or [name for name in columns if name != outcome] != names:
        raise ValueError("feature_names are not the columns without the outcome")
    if outcome not in columns:
        raise ValueError("the outcome is no column")
    for tables in (record["test_data"], record["cfs_list"]):
        for rows in tables:
            if any(len(row) != len(columns) for row in rows or ()):
                raise ValueError("a row has another number of values than there are columns")
    if any(len(rows) != 1 for rows in record["test_data"]):
        raise ValueError("test_data has not one row each")


def _examples(record: Mapping[str, Any]) -> list[CounterfactualExamples]:
    columns = record["feature_names_including_target"]
    examples = []
    for rows, counterfactuals in zip(record["test_data"], record["cfs_list"], strict=True):
        frame = None
        if counterfactuals is not None:
            frame = pd.DataFrame(counterfactuals, columns=columns)
        examples.append(
            CounterfactualExamples(
                test_instance_df=pd.DataFrame(rows, columns=columns),
                final_cfs_df=frame,
                outcome_name=record["data_interface"]["outcome_name"],
                model_type=record["model_type"],
                desired_class=record["desired_class"],
                desired_range=record["desired_range"],
            )
        )
    return examples


def _most_frequent_first(shares: Shares) -> dict[str, float]:
    """Return shares by column, the most frequent first, equal ones in their order."""
    return dict(sorted(shares.items(), key=lambda entry: -entry[1]))


def _importances(record: Mapping[str, Any]) -> tuple[list[dict[str, float]] | None, dict[str, float] | None]:
    """Return the shares by column of each row, and those of all."""
    names = record["feature_names"]
    local = None
    if record["local_importance"] is not None:
        local = [_most_frequent_first(dict(zip(names, shares, strict=True))) for shares in record["local_importance"]]
    summary = None
    if record["summary_importance"] is not None:
        summary = _most_frequent_first(dict(zip(names, record["summary_importance"], strict=True)))
    return local, summary


# ==== The result of a call for all rows: counterfactuals, how often columns change in them, and both as JSON ==========


@final
class CounterfactualExplanations:
    """The counterfactuals of all rows of a call, in their order.

    Parameters
    ----------
    cf_examples_list
        One entry a row.
    local_importance
        One mapping a row, column -> share of its counterfactuals in which the column changes; None unless asked for.
    summary_importance
        The same over all counterfactuals of all rows; None unless asked for.
    """

    __slots__ = ("cf_examples_list", "local_importance", "summary_importance")

    def __init__(
        self,
        cf_examples_list: Sequence[CounterfactualExamples],
        local_importance: Sequence[Mapping[str, float]] | None = None,
        summary_importance: Mapping[str, float] | None = None,
    ) -> None:
        self.cf_examples_list = list(cf_examples_list)
        self.local_importance = None if local_importance is None else [dict(shares) for shares in local_importance]
        self.summary_importance = None if summary_importance is None else dict(summary_importance)

    @property
    def solution_sets(self) -> list[SolutionSet | None]:
        """What ceopt says of each row: status, costs, proved bounds; None of what was read from JSON."""
        return [example.solution_set for example in self.cf_examples_list]

    def visualize_as_dataframe(self, display_sparse_df: bool = True, show_only_changes: bool = False) -> None:
        """Show every row and its counterfactuals as tables; arguments as of each :class:`CounterfactualExamples`."""
        for example in self.cf_examples_list:
            example.visualize_as_dataframe(display_sparse_df, show_only_changes)

    def visualize_as_list(self, display_sparse_df: bool = True, show_only_changes: bool = False) -> None:
        """Print every row and its counterfactuals as lists; arguments as of each :class:`CounterfactualExamples`."""
        for example in self.cf_examples_list:
            example.visualize_as_list(display_sparse_df, show_only_changes)

    def to_json(self) -> str:
        """Write the counterfactuals and importances in dice_ml's JSON, version 2.0, which dice_ml reads too.

        Bounds, costs and statuses are not in it; ``SolutionSet.to_json`` writes them.
        """
        return to_text(self.cf_examples_list, self.local_importance, self.summary_importance)

    @classmethod
    def from_json(cls, json_str: str) -> Self:
        """Read what :meth:`to_json`, or dice_ml, wrote; of it no ``solution_set`` is known.

        Raises
        ------
        UnreadableFileError
            No JSON, JSON of another version, or of another shape.
        """
        return cls(*from_text(json_str))

    def __repr__(self) -> str:
        count = sum(map(_count, self.cf_examples_list))
        return f"CounterfactualExplanations({len(self.cf_examples_list)} rows, {count} counterfactuals)"


# ==== How often columns change in counterfactuals: of one row, and of all =============================================

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
    if given is not None:
        rows = len(given)
    if summary and rows is not None and rows < _ENOUGH:
        but = f"there are {rows}"
        raise InvalidValueError(who, f"at least {_ENOUGH} rows", but, "Give more, or ask local_feature_importance.")
    if given is None:
        if _TOTAL.require(who, "total_CFs", total) < _ENOUGH:
            raise InvalidValueError(who, f"total_CFs of at least {_ENOUGH}", f"it is {total}", "Raise it.")
        return
    for place, example in enumerate(given):
        count = _count(example)
        result = example.solution_set
        asked = 0 if result is None else result.options.get("n", 0)
        is_all = result is not None and result.complete and count < asked
        if count < _ENOUGH and asked < _ENOUGH and not is_all:
            but = f"entry {place} of cf_examples_list has {count}"
            raise InvalidValueError(
                who, f"at least {_ENOUGH} counterfactuals of each row, or all that there are", but,
                f"Generate them with total_CFs={_ENOUGH}, or leave cf_examples_list out.",
            )  # fmt: skip


def warn_of_cut(who: str, examples: Sequence[CounterfactualExamples], *, stacklevel: int) -> None:
    """Name in one warning the rows that a limit has ended before all their counterfactuals were found."""
    cut = []
    for example in examples:
        result = example.solution_set
        if result is not None and not result.complete and result.status not in _NONE_LEFT:
            cut.append(repr(result.query_id))
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
    totals = list(map(_count, examples))
    of_rows = None
    if local:
        of_rows = [_shares(count, names, of) for count, of in zip(counts, totals, strict=True)]
    of_all = None
    if summary:
        of_all = _shares(sum(counts, Counter()), names, sum(totals))
    return CounterfactualExplanations(examples, local_importance=of_rows, summary_importance=of_all)


def _changes(example: CounterfactualExamples, names: Sequence[str]) -> Counter[str]:
    """Return in how many counterfactuals each column changes."""
    changed: Counter[str] = Counter()
    if example.final_cfs_df is None:
        return changed
    for name in names:
        before = example.test_instance_df[name].iloc[0]
        changed[name] = sum(not _is_same(value, before) for value in example.final_cfs_df[name].tolist())
    return changed


def _shares(changed: Counter[str], names: Sequence[str], of: int) -> dict[str, float]:
    """Return the share of each column among so many counterfactuals, the most frequent first."""
    return _most_frequent_first({name: changed[name] / max(of, 1) for name in names})
