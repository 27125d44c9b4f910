"""The results for many people: one solution set each, all of them as one table, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.base.results import Status
from ceopt.formulations.space.feature import Feature, features_document, features_in
from ceopt.formulations.space.space import FeatureSpace
from ceopt.result.cohort_shown import CohortSummary, plot_cohort, report_cohort, status_counts, summary_of
from ceopt.result.counterfactual import hands_out_copies
from ceopt.result.json_io import (
    damaged_as_sentence,
    is_list,
    is_mapping,
    read_frame,
    read_value,
    require_fields,
    require_format,
    result_document,
    result_in,
    write_frame,
    write_value,
)
from ceopt.result.letter import require_audience, write_letters
from ceopt.result.solution_set import SolutionSet, moves_of, words_of_moves
from ceopt.solvers.errors import InvalidValueError, counted, printable
from ceopt.solvers.whole_files import json_document, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# ==== A cohort as JSON of a fixed version, and back without loss: rows, results, audit and settings ===================

Made = TypeVar("Made")

FORMAT: Final = "ceopt cohort"
VERSION: Final = 1
_WHO: Final = "Cohort.from_json"
_LISTS: Final = {
    "results": ("a list of results", is_list),
    "finished": ("a list of true and false", lambda value: is_list(value) and all(isinstance(v, bool) for v in value)),
    "options": ("values by name", is_mapping),
}
#: What a result leaves out where it is what the first one says.
_SHARED: Final = ("options", "versions", "rules", "target")


def cohort_to_json(cohort: Any) -> str:
    """Write a :class:`~ceopt.Cohort` as one line of JSON; what all results share is written once."""
    results = [_entry(result, cohort.space) for result in cohort]
    shared: dict[str, Any] = {}
    if results:
        shared = {name: results[0][name] for name in _SHARED}
    for entry in results:
        for name, value in shared.items():
            if json.dumps(entry[name]) == json.dumps(value):  # 1, 1.0 and true are three
                del entry[name]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "ceopt": version("ceopt"),
        "space": features_document(tuple(cohort.space)),
        "options": write_value(dict(cohort.options)),
        "queries": write_frame(cohort.queries),
        "finished": list(cohort.finished),
        "audit": None if cohort.audit is None else write_frame(cohort.audit),
        "shared": shared,
        "results": results,
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def cohort_from_json(make: Callable[..., Made], text_or_path: Any) -> Made:
    """Read what :func:`cohort_to_json` wrote, from text or from a file, and make a :class:`~ceopt.Cohort` of it."""
    source, document = json_document(_WHO, text_or_path)
    require_format(_WHO, source, document, FORMAT, VERSION)
    with damaged_as_sentence(_WHO, "every field of a cohort", source):
        require_fields(_WHO, "", document, _LISTS)
        space = FeatureSpace(features_in(document["space"], source))
        queries = read_frame(_WHO, document["queries"])
        audit = None
        if document["audit"] is not None:
            audit = read_frame(_WHO, document["audit"])
        options = read_value(document["options"])
        require_fields(_WHO, "", {"options": options}, _LISTS)
        results = tuple(_result(entry, document["shared"], space, source) for entry in document["results"])
        _require_columns(source, space, results)
        _require_lengths(source, queries, audit, results, document["finished"])
        return make(
            results=results,
            queries=queries,
            space=space,
            options=options,
            finished=tuple(document["finished"]),
            audit=audit,
        )


def _entry(result: SolutionSet, space: FeatureSpace) -> dict[str, Any]:
    """Return one result; its space is written where it is not the cohort's."""
    entry = result_document(result)
    if result.space is None:
        entry["space"] = None
    elif result.space is not space and result.space != space:
        entry["space"] = features_document(tuple(result.space))
    return entry


def _result(entry: dict[str, Any], shared: dict[str, Any], space: FeatureSpace, source: str) -> SolutionSet:
    own: FeatureSpace | None = space
    if "space" in entry:
        own = None
        if entry["space"] is not None:
            own = FeatureSpace(features_in(entry["space"], source))
    return result_in(SolutionSet, {**shared, **entry}, own)


def _require_columns(source: str, space: FeatureSpace, results: tuple[Any, ...]) -> None:
    """Refuse a cohort whose people or answers have other columns than its space."""
    for place, result in enumerate(results):
        for frame in (result.factual, *(answer.frame for answer in result)):
            if set(frame.columns) != set(space.names):
                but = f"{source} has {list(frame.columns)!r} in result {place}"
                then = "Write it anew with to_json."
                raise InvalidValueError(_WHO, "results over the columns of its space", but, then)


def _require_lengths(
    source: str, queries: pd.DataFrame, audit: pd.DataFrame | None, results: tuple[Any, ...], finished: list[bool]
) -> None:
    """Refuse a cohort of another number of results than rows."""
    lengths = {len(queries), len(results), len(finished)}
    if audit is not None:
        lengths.add(len(audit))
    if len(lengths) > 1:
        but = f"{source} has {len(results)} results, {len(queries)} rows and {len(finished)} marks"
        raise InvalidValueError(_WHO, "as many results as rows", but, "Write it anew with to_json.")


# ==== The results for many people: one solution set each, and all of them as one table ================================

#: What a table of answers says beside their values, with the dtype of each column.
_OWN: Final = {
    "status": object, "cost": np.float64, "bound": np.float64, "verified": bool, "reason": object, "proof": object,
}  # fmt: skip
#: What a table of moves says, with the dtype of each column.
_MOVES: Final[Mapping[str, Any]] = {
    "rank": "int64", "column": object, "from": object, "to": object, "move": "float64", "unit": object,
}  # fmt: skip


@final
@hands_out_copies("queries", "options", "audit")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cohort:
    """The solution sets of many people, in the order of their rows.

    Parameters
    ----------
    results
        One per row.
    queries
        The rows that were asked about, in raw units; their labels may repeat.
    space
        The columns.
    options
        Every setting of the run.
    finished
        Whether each row was asked to the end; False for what an interrupt or the time for all rows left out and for a
        row whose process was killed, which ``resume`` takes up.
    audit
        Of recourse that a generator made, such as :meth:`ceopt.training.CounterNet.polish`: one row per person, see
        there for its columns. None for answers of the engine alone.
    """

    results: tuple[SolutionSet, ...]
    queries: pd.DataFrame
    space: FeatureSpace
    options: Mapping[str, Any] = field(default_factory=dict)
    finished: tuple[bool, ...]
    audit: pd.DataFrame | None = None

    @property
    def repaired(self) -> float | None:
        """The share of people whose advice was too dear or failed, and became what the engine began with."""
        if self.audit is None:
            return None
        return float((self.audit["source"] == "repaired").mean())

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[SolutionSet]:
        return iter(self.results)

    def __getitem__(self, position: int) -> SolutionSet:
        return self.results[position]

    def counts(self) -> dict[str, int]:
        """Return how many rows have each status."""
        return status_counts(self.results)

    def summary(self) -> CohortSummary:
        """Return the cohort in a few numbers: statuses, share answered, median cost, most changed columns, seconds."""
        return summary_of(self.results, self.space.names)

    def changes(self) -> pd.DataFrame:
        """Return every move of every answer in long form: one row a person, answer and column that changes.

        Columns: query_id (the row's label), rank, column, from, to, move, unit. ``move`` is ``to`` less ``from`` of a
        number, and a number of levels of an ordinal column; of any other it is missing, as of a missing cell or a code
        that is filled in, and so is a unit that a column does not have. Under a causal model a column ``why`` follows,
        "action" or "consequence", and what is held where it is, so that it does not follow, is there with a move of 0.
        Where a rule that a person breaks today asks for a change that the model does not ask for, a column ``asked_by``
        follows with the names of such rules.
        """
        moves: list[dict[str, Any]] = []
        for result in self.results:
            for move in moves_of(result):
                feature = self.space[move["column"]]
                step = _move(feature, move["from"], move["to"])
                moves.append({**move, "query_id": result.query_id, "move": step, "unit": feature.unit})
        columns: dict[str, Any] = {"query_id": _labels([move["query_id"] for move in moves], "query_id")}
        dtypes = {**_MOVES, **dict.fromkeys(words_of_moves(self.results, moves), object)}
        for name, dtype in dtypes.items():
            columns[name] = pd.Series([move[name] for move in moves], dtype=dtype)
        return pd.DataFrame(columns, index=pd.RangeIndex(len(moves)))

    def to_json(self, path: str | Path | None = None) -> str:
        """Write everything as JSON that :meth:`from_json` reads back exactly; also to ``path`` if given.

        A cohort that was read back gives the same tables, sentences and pictures, and may be resumed. A label of a row
        that is no number, text, truth value or time (a ``pandas.Interval``, for instance) comes back as its text.
        """
        text = cohort_to_json(self)
        if path is not None:
            write_text("Cohort.to_json", path, text)
        return text

    @classmethod
    def from_json(cls, text_or_path: str | Path) -> Cohort:
        """Read what :meth:`to_json` wrote: the same values bit for bit, in the same dtypes.

        Raises
        ------
        UnreadableFileError
            No such file, or no JSON in it.
        InvalidValueError
            JSON of another format or version, or damaged.
        """
        return cohort_from_json(cls, text_or_path)

    def failures(self) -> pd.DataFrame:
        """Return the rows that have no answer and need one, indexed by ``query_id``: status and reason."""
        failed = [result for result in self.results if not result.status.is_settled]
        index = _labels([result.query_id for result in failed], "query_id")
        rows = [(str(result.status), result.reason) for result in failed]
        return pd.DataFrame(rows, columns=["status", "reason"], index=index, dtype=object)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per answer, indexed by ``query_id`` (the row's label) and ``rank``.

        Columns: status, cost, bound, verified, reason, proof, then the raw columns in their own dtypes. A name of these
        that a raw column bears too gets the prefix ``ceopt_``. A person without an answer has one row of rank 0 whose
        raw columns are missing; for that, whole numbers become ``Int64`` and bool ``boolean``. One who is favourable
        already has cost 0 and counts as verified. Beside an ``audit`` a column ``source`` follows the proof: where the
        answer comes from.
        """
        own = dict(_OWN)
        lines = list(chain.from_iterable(map(_lines, self.results)))
        if self.audit is not None:
            own["source"] = object
            for line, source in zip(lines, self.audit["source"], strict=True):
                line["source"] = source
        names = {word: free_name(word, self.space.names) for word in ("query_id", "rank", *own)}
        columns: dict[str, pd.Series[Any]] = {}
        for word, dtype in own.items():
            columns[names[word]] = pd.Series([line[word] for line in lines], dtype=dtype)
        frames = [line["frame"] for line in lines if line["frame"] is not None]
        raw = pd.concat([self.space.frame([]), *frames], ignore_index=True)
        has_answer = np.array([line["frame"] is not None for line in lines], dtype=bool)
        place = np.where(has_answer, np.cumsum(has_answer) - 1, -1)
        for name in self.space.names:
            columns[name] = _spread(raw[name], place)
        table = pd.DataFrame(columns)
        labels = _labels([line["query_id"] for line in lines], names["query_id"])
        ranks = pd.Index([line["rank"] for line in lines], dtype="int64", name=names["rank"])
        table.index = pd.MultiIndex.from_arrays([labels, ranks])
        return table

    def plot(
        self,
        kind: Literal["changes", "costs", "status"] = "changes",
        *,
        by: Any = None,
        ax: Axes | None = None,
        dark: bool = False,
        language: str = "en",
    ) -> Axes:
        """Draw all results in one picture; matplotlib is the extra ``plot``.

        ============= ==============================================================================================
        kind          what is drawn
        ============= ==============================================================================================
        ``"changes"`` for each column, the most frequent first, how many people's best answers change it, and which
                      way. With groups: which share of each group's people with an answer.
        ``"costs"``   a row a group: what the best answers cost, from the 5th to the 95th percentile, the middle half
                      as a band, the median as a line; each person a dot where a group has at most 200 with an answer.
                      Beside it how many have an answer of those who are not favourable already: costs say nothing of
                      the others.
        ``"status"``  how many rows have each status; with groups, which share of each group.
        ============= ==============================================================================================

        Parameters
        ----------
        kind
            Which picture.
        by
            Groups, at most twelve: the name of a column of the rows, or one value a row, in their order (a Series with
            the labels of the rows: by these). A missing one is a group. None for one group of all.
        ax
            Axes to draw on. By default a figure of its own, which pyplot does not know: ``plot().figure.savefig(...)``
            writes it, and a notebook shows it.
        dark
            Colours for a dark ground, which the figure gets.
        language
            "en" or "de": what is written in the picture, and how its numbers are.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn on.

        Raises
        ------
        UnknownNameError
            There is no such kind, column or language.
        InvalidTypeError, InvalidValueError
            No rows; nobody with an answer, where answers are drawn; groups of another number than the rows, or too
            many; ``ax`` is something else.
        MissingLibraryError
            matplotlib is not installed.

        Examples
        --------
        >>> import ceopt
        >>> import pandas as pd
        >>> from ceopt.formulations.predictors import Affine
        >>> people = pd.DataFrame({"income": [1, 2, 9], "region": ["north", "south", "south"]})
        >>> space = ceopt.FeatureSpace.infer(people)
        >>> model = Affine([1.0, 0.0], -3.5, labels=("no", "yes"))
        >>> ax = ceopt.Recourse(model, space, target="yes").fit(people).explain(people).plot("status", by="region")
        >>> [text.get_text() for text in ax.get_yticklabels()], [text.get_text() for text in ax.texts]
        (['north', 'south'], ['1 of 1 served', '2 of 2 served'])
        """
        return plot_cohort(self.results, self.queries, self.space, kind, by=by, ax=ax, dark=dark, language=language)

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        language: str = "en",
        audience: Literal["auditor", "customer"] = "auditor",
        hide: Iterable[str] = (),
        contact: str = "",
    ) -> None:
        """Write one file of HTML about all people, which needs nothing else, and prints; it is the extra ``report``.

        For an auditor it has a table that sorts, pictures of what changes, what it costs and how it ended, which rules
        bound, and who is proved to have no way out. Who has no answer with nothing proved stands apart.

        For customers it is their letters: a page each in one file, or a file each where ``path`` is a folder, named by
        the person's label.

        Parameters
        ----------
        path, title, language, audience, hide, contact
            As of :meth:`SolutionSet.report`.

        Raises
        ------
        UnknownNameError, InvalidValueError, UnwritableFileError, MissingLibraryError
            As :meth:`SolutionSet.report` raises them.

        Examples
        --------
        >>> import ceopt, pathlib, tempfile
        >>> import pandas as pd
        >>> from ceopt.formulations.predictors import Affine
        >>> people = pd.DataFrame({"income": [1, 2, 9]}, index=["ann", "bob", "eve"])
        >>> space = ceopt.FeatureSpace.infer(people)
        >>> recourse = ceopt.Recourse(Affine([1.0], -3.5, labels=("no", "yes")), space, target="yes").fit(people)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.html"
        >>> recourse.explain(people).report(path)
        >>> "Raise income from 2 to 4" in path.read_text()
        True
        """
        who = "Cohort.report"
        require_audience(who, audience, hide, contact)
        if audience == "customer":
            told: dict[str, Any] = {"title": title, "language": language, "hide": hide, "contact": contact}
            write_letters(who, self.results, self.space, path, **told)
        else:
            report_cohort(self.results, self.queries, self.space, path, title=title, language=language)

    def __repr__(self) -> str:
        return f"<Cohort of {len(self)}: {self._counted()}>"

    def _repr_html_(self) -> str:
        table = printable(self.to_frame().to_html(), keep="\n")
        return f"<p>{counted(len(self), 'row')}: {self._counted()}</p>{table}"

    def _counted(self) -> str:
        return ", ".join(f"{count} {status}" for status, count in self.counts().items())


def _move(feature: Feature, old: Any, new: Any) -> float:
    """Return by how much a number or a rank moves; nan where there is no order, and of what is filled in or goes."""
    if feature.is_label_value(old) or feature.is_label_value(new):
        return np.nan
    if feature.kind == "ordinal":
        return float(feature.rank(new) - feature.rank(old))
    if feature.is_finite:
        return np.nan
    return float(new - old)


def _labels(labels: list[Any], name: str) -> pd.Index[Any]:
    """Return labels as an index of one level, whatever they are."""
    index: pd.Index[Any] = pd.Index(labels, name=name, tupleize_cols=False)
    return index


def free_name(word: str, taken: tuple[str, ...]) -> str:
    """Return a name for what a table says beside its columns, with a prefix where a column bears it too."""
    while word in taken:
        word = f"ceopt_{word}"
    return word


def _lines(result: SolutionSet) -> Iterator[dict[str, Any]]:
    """Give what a table says of each answer, or of a person without one."""
    of_person = {
        "query_id": result.query_id,
        "status": str(result.status),
        "reason": result.reason,
        "proof": result.proof,
    }
    if not result.counterfactuals:
        is_favourable = result.status is Status.ALREADY_FAVOURABLE
        cost = 0.0 if is_favourable else np.nan
        verified = {"cost": cost, "bound": result.bound, "verified": is_favourable}
        yield {**of_person, **verified, "rank": 0, "frame": None}
    for answer in result.counterfactuals:
        yield {
            **of_person,
            "rank": answer.rank,
            "cost": answer.cost,
            "bound": answer.bound,
            "verified": answer.verified,
            "frame": answer.frame,
        }


def _spread(column: pd.Series[Any], place: NDArray[np.intp]) -> pd.Series[Any]:
    """Take a column's values by place, -1 for a missing one, in a dtype that can hold what is missing."""
    if (place < 0).any():
        kind = getattr(column.dtype, "kind", "")
        if isinstance(column.dtype, np.dtype) and kind in "iu":
            nullable = str(column.dtype).replace("int", "Int").replace("u", "U")
            column = column.astype(nullable)  # type: ignore[call-overload]
        elif isinstance(column.dtype, np.dtype) and kind == "b":
            column = column.astype("boolean")
    spread = column.reindex(place)
    spread.index = pd.RangeIndex(len(place))
    return spread
