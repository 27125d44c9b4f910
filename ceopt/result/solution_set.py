"""The result for one person: verified answers in the person's own columns and units, and what is proved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final, overload

import pandas as pd

from ceopt.base.results import Status
from ceopt.formulations.space.space import FeatureSpace
from ceopt.result.counterfactual import Counterfactual, altered, as_scalars, hands_out_copies, in_slot, scalars
from ceopt.result.json_io import from_json, to_json
from ceopt.result.letter import require_audience, write_letter
from ceopt.result.shown import SurrogateReport, plot_answers, report_answers, to_html, to_text
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import printable
from ceopt.solvers.whole_files import write_text
from ceopt.words.language import language_of
from ceopt.words.sentences import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes


@final
# What the target and the removed values are in words is left to be made when somebody reads it.
@hands_out_copies(*"factual relaxed timings versions options target removed rules fingerprints size beyond".split())
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SolutionSet:
    """The answers for one person, best first, and what is known beyond them; frames and mappings come as copies.

    Empty (``len() == 0``) unless ``status`` is "optimal" or "feasible".

    Parameters
    ----------
    status
        Why the search ended; a :class:`Status`, which equals its text.
    counterfactuals
        The verified answers.
    factual
        The person's row, one row in raw units.
    bound, gap
        Proved least cost, and the relative gap of rank 1.
    margin
        Least slack of the decision in the program, in the model's own score; 0 where trees decide themselves. Where no
        program was solved, the slack that a program would ask for; an answer may then have less, if nobody gave one.
    complete
        False: fewer than asked for, for another reason than proof that there are no more; or several near answers
        (``proof=False``), as others may lie between them.
    reason
        One sentence, or empty.
    conflict
        When infeasible, and ``why`` was asked: (rule name, sentence, how much wider it would have to be or None). A
        smallest set that leaves no answer; where the search for it ended early, as ``reason`` then says, the fewest
        that are known to leave none.
    relaxed
        Rule name -> radius, of rules that were widened.
    timings
        Seconds per phase.
    solver
        Which solver answered, with its version; empty where none had to.
    proof
        What proved that rank 1 is optimal, or that there is no answer: "bound" (a lower bound on the cost, or on what
        is missing, found without a program), "cells" (no cell of the trees is left), "program" (a solver); else empty.
    versions, options
        Of the libraries; and every setting, seed and threads included.
    target
        The target in words.
    removed
        Column -> what bounds, direction, immutability or steps took from it.
    query_id
        The person's label in a cohort.
    min_distance
        Distance from the factual to the nearest candidate of a set of explanations; None where there was none.
    after_distance_filter, after_diversity_filter
        Positions, in the data that the explainer was fitted to, of the candidates that each filter kept, in its order.
    safety
        One number per answer, in their order: how far the factual may move without losing it.
    surrogate
        The linear surrogate whose program was solved in place of a black box; None where the model itself is stated.
    space
        What each column is; None where nobody said, as of text that was written by an earlier version.
    rules
        The sentence of each rule that was imposed, by name.
    beyond
        Rule name -> what to write in its place so that the person may stay where they are, or "" where it takes no
        ``beyond``: of each rule that the person's row breaks, but for those that are learned (:class:`~ceopt.Hull`,
        :class:`~ceopt.RobustValidity`), which whoever needs an answer breaks by nature.
    fingerprints
        "model" and "data" -> a hash of what each consists of, the same wherever it is taken; without what was not given
        or cannot be pickled.
    size
        "variables", "integers" and "rows" of the first program that was solved; empty where none was.

    Examples
    --------
    >>> import ceopt
    >>> from ceopt.formulations.predictors import Affine
    >>> space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9)])
    >>> result = ceopt.explain(Affine([1.0], -3.5, labels=("no", "yes")), {"income": 2}, space, target="yes")
    >>> result.status, len(result), result[0].values["income"]
    (<Status.OPTIMAL: 'optimal'>, 1, 4)
    >>> print(result.changes())
                 from to
    rank column
    1    income     2  4
    """

    status: Status
    counterfactuals: tuple[Counterfactual, ...]
    factual: pd.DataFrame
    bound: float | None = None
    gap: float | None = None
    margin: float | None = None
    complete: bool = True
    reason: str = ""
    conflict: tuple[tuple[str, str, float | None], ...] = ()
    relaxed: Mapping[str, float] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    solver: str = ""
    proof: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    removed: Mapping[str, str] = field(default_factory=dict)
    query_id: Any = None
    min_distance: float | None = None
    after_distance_filter: tuple[int, ...] = ()
    after_diversity_filter: tuple[int, ...] = ()
    safety: tuple[float, ...] = ()
    surrogate: SurrogateReport | None = None
    space: FeatureSpace | None = None
    rules: Mapping[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    size: Mapping[str, int] = field(default_factory=dict)
    beyond: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("after_distance_filter", "after_diversity_filter", "safety"):
            object.__setattr__(self, name, tuple(map(plain, getattr(self, name))))
        object.__setattr__(self, "min_distance", plain(self.min_distance))
        object.__setattr__(self, "status", Status(self.status))
        self._bind()
        object.__setattr__(self, "reason", printable(self.reason))
        conflict = tuple((name, printable(sentence), width) for name, sentence, width in self.conflict)
        object.__setattr__(self, "conflict", conflict)
        object.__setattr__(self, "query_id", _plain_label(self.query_id))

    def sharing(self, space: FeatureSpace | None, other: SolutionSet | None = None) -> SolutionSet:
        """Return the same result around what is equal in the space and in another result of its cohort."""
        shared: dict[str, Any] = {}
        if self.space is not space and self.space == space:
            shared["space"] = space
        for name in () if other is None else ("options", "rules", "versions", "fingerprints", "size"):
            held = in_slot(other, name)
            if held is not in_slot(self, name) and held == in_slot(self, name):
                shared[name] = held
        if not shared:
            return self
        new = altered(self, **shared)
        new._bind()  # noqa: SLF001 - one of its own class
        return new

    def _bind(self) -> None:
        """Tell each answer from which row it goes, and what the columns are."""
        before = as_scalars(in_slot(self, "factual"))
        answers = tuple(answer.about(before, self.space, self.rules) for answer in self.counterfactuals)
        object.__setattr__(self, "counterfactuals", answers)

    def __len__(self) -> int:
        return len(self.counterfactuals)

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.counterfactuals)

    @overload
    def __getitem__(self, index: int) -> Counterfactual: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Counterfactual, ...]: ...
    def __getitem__(self, index: int | slice) -> Counterfactual | tuple[Counterfactual, ...]:
        try:
            return self.counterfactuals[index]
        except IndexError:
            text = f"No answer {index}: there are {len(self)}, and the status is {self.status}. {self.reason}"
            raise IndexError(text.rstrip()) from None

    def to_frame(self) -> pd.DataFrame:
        """Return the answers in raw units and the columns' own dtypes, one row each, indexed by rank."""
        if not self.counterfactuals:
            frame = self.factual.iloc[:0].copy()
            frame.index = pd.Index([], dtype="int64", name="rank")
            return frame
        frame = pd.concat([answer.frame for answer in self.counterfactuals])
        frame.index = pd.Index([answer.rank for answer in self.counterfactuals], name="rank")
        return frame

    def changes(self) -> pd.DataFrame:
        """Return only what moves, in raw units: one row per rank and column, with the values ``from`` and ``to``.

        Under a causal model a column ``why`` says of each whether it is an "action" or a "consequence"; a column that
        is held where it is, so that it does not follow, is an action and is listed too. Where a rule that the person
        breaks today asks for a change that the model does not ask for, a column ``asked_by`` names such rules.
        """
        moves = list(moves_of(self))
        ranks = pd.Index([move["rank"] for move in moves], dtype="int64")
        names = pd.Index([move["column"] for move in moves], dtype=object)
        index = pd.MultiIndex.from_arrays([ranks, names], names=["rank", "column"])
        columns = {}
        for word in ("from", "to", *words_of_moves([self], moves)):
            columns[word] = pd.Series([move[word] for move in moves], index=index, dtype=object)
        return pd.DataFrame(columns)

    def sentences(self, language: str = "en", templates: Mapping[str, str] | None = None) -> list[str]:
        """Return how it ended, why, and each way out or the rules in conflict, in sentences of a language.

        What ceopt says is translated; names of columns, rules and levels, and what a solver or a model says, stay as
        they are. :func:`ceopt.words.in_words` gives the same part by part.

        Parameters
        ----------
        language, templates
            As of :meth:`Counterfactual.sentences`.

        Raises
        ------
        UnknownNameError
            A language, a template or a field of one that does not exist.

        Examples
        --------
        >>> import ceopt
        >>> from ceopt.formulations.predictors import Affine
        >>> space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9)])
        >>> model = Affine([1.0], -3.5, labels=("no", "yes"))
        >>> ceopt.explain(model, {"income": 2}, space, target="yes").sentences()
        ['There is a way to the goal (yes), and none asks for less.', 'Way 1: Raise income from 2 to 4.']
        """
        return in_words(self, language_of("SolutionSet.sentences", language, templates)).lines()

    def metrics(self, suite: str, **given: Any) -> pd.Series[Any]:
        """Return the metrics of a published suite, such as "ce_ocl2022", by name; see :func:`ceopt.metrics.suite`.

        The answers, the factual, the run time and how many were asked for are this set's own. What it cannot know
        (``model``, ``target``, ``data``, ``space``, ...) is passed by keyword; a metric that lacks something is refused
        by name, or nan with ``missing="nan"``.

        Examples
        --------
        >>> import ceopt
        >>> from ceopt.formulations.predictors import Affine
        >>> space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9)])
        >>> result = ceopt.explain(Affine([1.0], -3.5, labels=("no", "yes")), {"income": 2}, space, target="yes")
        >>> result.metrics("ce_ocl2022", missing="nan")[["continuous_proximity", "sparsity"]].to_dict()
        {'continuous_proximity': -2.0, 'sparsity': 0.0}
        """
        from ceopt.metrics import suite as metrics_of

        return metrics_of(suite, self, **given)  # type: ignore[no-any-return]

    def plot(
        self,
        kind: Literal["changes", "parallel", "surface"] = "changes",
        *,
        columns: Iterable[str] | None = None,
        rank: int = 1,
        ax: Axes | None = None,
        dark: bool = False,
        model: Any = None,
        target: Any = None,
        language: str = "en",
    ) -> Axes:
        """Draw the answers; matplotlib is the extra ``plot``.

        ============== =============================================================================================
        kind           what is drawn
        ============== =============================================================================================
        ``"changes"``  one answer: each column from 0 to its move over its scale (the median absolute deviation, as
                       :meth:`ceopt.Feature.scale` has it; another level moves 1), with the raw values at both ends.
                       Under a causal model consequences and columns that are held say so.
        ``"parallel"`` the row and all answers as lines over the columns, an axis each from the least to the greatest
                       value that occurs; the answer ``rank`` above the others.
        ``"surface"``  what ``model`` decides over two columns, of legal values, with the row and all answers; all
                       other columns are as in the answer ``rank`` or, without answers, as in the row. A point that
                       differs from them there is hollow.
        ============== =============================================================================================

        Parameters
        ----------
        kind
            Which picture.
        columns
            Their names, drawn in this order. By default those that change (in the answer ``rank``; for "parallel" in
            any); for "surface" two, of which numbers that change come first.
        rank
            Of the answer, from 1.
        ax
            Axes to draw on. By default a figure of its own, which pyplot does not know: ``plot().figure.savefig(...)``
            writes it, and a notebook shows it.
        dark
            Colours for a dark ground, which the figure gets.
        model
            For "surface": the model, or a function of rows, as for :func:`ceopt.verify`. A set of answers does not
            keep it.
        target
            For "surface": what is wanted, as for :func:`ceopt.explain`, to draw where it is met; by default what the
            model says is drawn, label by label or as a value.
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
            No answer (unless a surface is asked for) or none of this rank, another number of columns than two for
            "surface", no model for it, ``ax`` is something else.
        MissingLibraryError
            matplotlib is not installed.

        Examples
        --------
        >>> import ceopt
        >>> from ceopt.formulations.predictors import Affine
        >>> space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9, mad=2.0)])
        >>> result = ceopt.explain(Affine([1.0], -3.5, labels=("no", "yes")), {"income": 2}, space, target="yes")
        >>> ax = result.plot()
        >>> ax.get_title("left"), [text.get_text() for text in ax.texts], ax.lines[-1].get_xdata()
        ('Answer 1 of 1: yes, cost 1', ['2', '4'], array([1.]))
        """
        return plot_answers(
            self, kind, columns=columns, rank=rank, ax=ax, dark=dark, model=model, target=target, language=language
        )

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
        """Write one file of HTML that needs nothing else, and prints; it is the extra ``report``.

        For an auditor it says all that is known: the ways out in sentences and pictures, the person, the rules that
        were kept and which of them bound, what was out of reach, what was proved and by which solver, and by what
        model, data and program are known again.

        For a customer it is a letter of one page: the ways out by the labels of columns and levels, what was not asked,
        and whom to turn to. It names no cost, no solver and no target, and shows no value of a column that is fixed. An
        answer that needs a column of ``hide`` is left out, and the letter says that there is such a way: part of it
        alone would be advice that does not help.

        Names, labels, levels and units are escaped.

        Parameters
        ----------
        path
            Where the file is written.
        title
            Its heading.
        language
            "en" or "de".
        audience
            "auditor" or "customer".
        hide
            Columns of which a letter says nothing, not even that they are fixed.
        contact
            Whom the customer turns to, a text of any lines.

        Raises
        ------
        UnknownNameError
            A language that is not shipped, an audience or a column in ``hide`` that does not exist.
        InvalidValueError
            ``hide`` or ``contact`` beside the report for an auditor.
        UnwritableFileError
            The file cannot be written.
        MissingLibraryError
            jinja2 or matplotlib is not installed.

        Examples
        --------
        >>> import ceopt, pathlib, tempfile
        >>> from ceopt.formulations.predictors import Affine
        >>> space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9, mad=2.0)])
        >>> result = ceopt.explain(Affine([1.0], -3.5, labels=("no", "yes")), {"income": 2}, space, target="yes")
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "ann.html"
        >>> result.report(path, title="Ann's loan")
        >>> "Raise income from 2 to 4" in path.read_text()
        True
        """
        who = "SolutionSet.report"
        require_audience(who, audience, hide, contact)
        if audience == "customer":
            write_letter(who, self, path, title=title, language=language, hide=hide, contact=contact)
        else:
            report_answers(self, path, title=title, language=language)

    def to_json(self, path: str | Path | None = None) -> str:
        """Write everything as JSON that :meth:`from_json` reads back exactly; also to ``path`` if given."""
        text = to_json(self)
        if path is not None:
            write_text("SolutionSet.to_json", path, text)
        return text

    @classmethod
    def from_json(cls, text_or_path: str | Path) -> SolutionSet:
        """Read what :meth:`to_json` wrote: the same values bit for bit, in the same dtypes.

        Raises
        ------
        UnreadableFileError
            No such file, or no JSON in it.
        InvalidValueError
            JSON of another format or version.
        """
        return from_json(cls, text_or_path)

    def __repr__(self) -> str:
        return to_text(self)

    def _repr_html_(self) -> str:
        return to_html(self)


def moves_of(result: SolutionSet) -> Iterator[dict[str, Any]]:
    """Give what becomes of each column that an answer lists: its values, and why it moves."""
    before = scalars(result.factual)
    for answer in result:
        for name in answer.listed:
            yield {
                "rank": answer.rank,
                "column": name,
                "from": before[name],
                "to": answer.values[name],
                "why": answer.why(name),
                "asked_by": ", ".join(answer.asked_by.get(name, ())),
            }


def words_of_moves(results: Iterable[SolutionSet], moves: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what a table of moves says beside values: "why" under a causal model, "asked_by" where a rule asks."""
    words = []
    if any(answer.actions is not None for result in results for answer in result):
        words.append("why")
    if any(move["asked_by"] for move in moves):
        words.append("asked_by")
    return words


def _plain_label(label: Any) -> Any:
    """Return a row's label without numpy's scalars, also of several levels."""
    if isinstance(label, tuple):
        return tuple(map(plain, label))
    return plain(label)
