"""The doors: ``explain`` for one person, ``Recourse`` for many, fitted once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from ceopt.base.parallel import whole_jobs
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.space.space import (
    FeatureSpace,
    has_every_cell,
    known_row,
    line_of_gaps,
    require_every_label,
    require_space,
    taken,
    usable_part,
    warn_of,
    warn_of_gaps,
)
from ceopt.population import (
    OUT_OF_MEMORY,
    BlackBoxFit,
    Fit,
    answers,
    black_box_fit,
    cohort_of,
    fit_of,
    no_answer,
    resumed,
    seconds_for_conflicts,
    with_conflicts,
)
from ceopt.result.cohort import Cohort
from ceopt.result.solution_set import SolutionSet
from ceopt.search.black_box_question import asked_once
from ceopt.search.prepare import fingerprints_of, prepare
from ceopt.search.search import result_without_model, search
from ceopt.search.side_by_side import garbage_of_before_kept
from ceopt.settings import TIME_LIMIT_S, Settings, check_setting
from ceopt.solvers.deadline import OutOfTimeError, until
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, within_memory
from ceopt.words.sentences import warn_of_rules

if TYPE_CHECKING:
    from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
    from ceopt.surrogates.recourse import LocalSurrogateRecourse

# ==== One person ======================================================================================================


def explain(
    model: Any,
    row: Any,
    space: FeatureSpace,
    *,
    target: Any,
    n: int = 1,
    cost: Any = "l1",
    constraints: Any = (),
    data: pd.DataFrame | None = None,
    solver: str = "auto",
    time_limit_s: float = 60.0,
    relative_gap: float = 1e-6,
    margin: float | None = None,
    diversity: str | AbstractDiversity = "distinct",
    formulation: str = "auto",
    threads: int = 1,
    random_state: int = 0,
    solver_options: Mapping[str, Any] | None = None,
    why: bool | float = True,
    surrogate: LocalSurrogateRecourse | None = None,
    starts: pd.DataFrame | None = None,
    proof: bool = True,
) -> SolutionSet:
    r"""Find the least change of one person's row for which the model decides as the target says.

    .. math::
        \min_x\ \text{cost}(x, x^0) \quad\text{s.t.}\quad s(x) \text{ reaches the target with margin } m, \quad
        x \in \text{reach}(x^0), \quad \text{constraints}.

    Every answer is decoded to raw units, predicted again by the model itself and held against every rule; one that
    fails is repaired or rejected, never returned.

    Parameters
    ----------
    model
        A fitted scikit-learn classifier, regressor, pipeline or search object; an XGBoost or LightGBM model, or the
        path of one that they saved; path or bytes of an ONNX file; or a representation of
        ``ceopt.formulations.predictors``. One that was fitted on a frame is given frames; one that was fitted on an
        array is given the space's columns in the space's order. Beside a ``surrogate`` any model with ``predict``, or a
        function from a frame with the columns and dtypes of ``data`` to labels (n,).
    row
        The person in raw units: a Series, a dict or a one-row frame.
    space
        What each column is and how it may move.
    target
        A label; a set of labels; ``OtherThan(label)``; ``Probability(label, at_least)`` (two classes); ``AtLeast``,
        ``AtMost`` or ``Between`` for regressors; ``Disagreement(any of these but Probability, at_most)`` for the trees
        of a forest one by one.
    n
        Answers wanted. The first is optimal, each further one optimal among those that differ as ``diversity`` says.
    cost
        "l0", "l1", "l2", "l2_squared", "linf", "mahalanobis" (over ``data``), or "few_changes", which prefers answers
        that change few columns: it is ``L1() + 0.1 * Changes()``. Cost objects add and scale like that.
    constraints
        Rules such as ``MaxChanges(3)`` or ``Linear({...}, "<=", 1)``.
    data
        Rows in raw units, from which a search may start, and from which "mahalanobis" takes its covariance. Those that
        lack a cell are left out, but for cells that may be missing, as the space says.
    solver
        A name of ``ceopt.solvers.available()``, or "auto".
    time_limit_s
        Seconds for the whole call: reading the model, hulls, building, all answers, repairs and conflicts. It ends at
        most half a second or a tenth later, but for one call of the model's own ``predict`` and a first import.
    relative_gap
        What counts as optimal: ``(cost - bound) / max(|cost|, 1e-12)``.
    margin
        Least slack of the decision in the program, in the model's own score. None: for trees, forests, votes and
        boosting exactly what ``predict`` decides, ties as the library sends them (forests of scikit-learn with
        ``n_jobs`` other than 1 add their trees in no fixed order, so there an answer lies clear of a tie, and a row on
        a tie is not favourable yet), and so for linear models and networks on whole numbers, levels and steps; for all
        others 2.5e-6 of the way from the row's score to the decision, at most 1e-5, or what the floats of the score
        make necessary. ``Disagreement`` counts trees and takes none.
    diversity
        In what each answer differs from all before it: "distinct" (it does not change all columns that an earlier one
        changes and others beside, nor the same columns the same ways: a number, an ordinal or a binary column the other
        way, or another level of a category, makes another answer), "support" (other set of changed columns), "pool"
        (other tree cells, categories or set of changed columns), "clusters" (one answer for each cluster of the rule
        ``Hull`` that has some), ``Apart(least, cost="l1")`` (at least so far away); or "incumbents" (the first is
        optimal, the others were met on the way: verified like all, but any others may be cheaper). But for the last,
        costs do not decrease, each answer has its own ``.bound`` and ``.gap``, and ``.complete`` says whether there are
        no more.
    formulation
        How the model is stated: "auto"; trees by "ordered", "misic" or "leaf", networks by "bigm", "partition" or
        "extended".
    threads, random_state
        Of the solver and the search for a start; the same two give the same answer.
    solver_options
        The solver's own options by their own names.
    why
        Whether to look, where it is proved that there is no answer, for the rules in conflict, which are then in
        ``.conflict``: True for the smaller of 5 s and a fifth of the limit, False, or seconds.
    surrogate
        For a model that is a black box: a :class:`ceopt.surrogates.LocalSurrogateRecourse`, which answers in place of
        the exact program (its ``explain`` tells how, and what its status and ``.surrogate`` say). It needs ``data``.
        ``cost=None`` is then the cost of its search. ``relative_gap``, ``margin``, ``formulation``, ``threads``,
        ``solver_options``, ``why``, ``starts`` and ``proof`` have no meaning beside it and are refused.
    starts
        Points to be tried first, a frame of the space's columns in raw units: each is put where the person can be (a
        number at the nearest value, a level out of reach back to the person's own) and checked like an answer. The
        cheapest that passes is where the solver begins and a cost that it need not exceed; where the time ends before
        the solver has a point, it is the answer. They change what is found first, not what is optimal.
    proof
        False: no program is solved. The cheapest verified answer of the search that is the start of programs comes with
        the bound that is known without one, "feasible", or "optimal" where they meet; see the page on near answers.

    Returns
    -------
    SolutionSet
        ``.status``, the answers, ``.changes()``, ``.to_frame()``. A solver's outcome is a status, never an exception;
        so is memory that runs out ("error").

    Warns
    -----
    RuleWarning
        A rule that the person breaks today, so that the answer moves them for its sake alone, with the line to write if
        they may stay; such changes are marked in ``.changes()``, sentences and reports. Rules that are learned from
        data or the model are passed over (see ``SolutionSet.beyond``).
    SpaceWarning
        A row, data or starts with columns that the space does not have: they are left out, and named once a call. Rows
        of data or starts that lack a cell that may not be missing, which are left out, and counted once a call.

    Raises
    ------
    CeoptError
        Misuse, before any work starts: an unknown option, column, level, label or solver, a missing value, a model that
        is not fitted or cannot be stated exactly. The subclass is also a ValueError, TypeError or ImportError.

    Examples
    --------
    >>> import ceopt
    >>> from ceopt.formulations.predictors import Affine
    >>> space = ceopt.FeatureSpace([ceopt.Feature("income", kind="integer", lower=0, upper=9, unit="thousands")])
    >>> result = ceopt.explain(Affine([1.0], -3.5, labels=("no", "yes")), {"income": 2}, space, target="yes")
    >>> result.status.value, int(result[0].values["income"])
    ('optimal', 4)
    """
    began = time.perf_counter()
    settings = Settings(
        target=target,
        n=n,
        cost=cost,
        constraints=constraints,
        solver=solver,
        time_limit_s=time_limit_s,
        relative_gap=relative_gap,
        margin=margin,
        diversity=diversity,
        formulation=formulation,
        threads=threads,
        random_state=random_state,
        solver_options=solver_options,
        why=why,
        proof=proof,
    )
    require_space("explain", space)
    warn_of("explain", space, row=row, data=data, starts=starts)
    warn_of_gaps("explain", space, but_gaps=True, data=data, starts=starts)
    row = known_row("explain", space, row)
    data = usable_part(space, data)
    starts = usable_part(space, starts)
    try:
        if surrogate is not None:
            with until(began + settings.limit_s()):
                asked = asked_once(model, space, settings, data=data, surrogate=surrogate, starts=starts)
                found = asked.answer(row)
        else:
            with until(began + settings.limit_s()):
                known = fingerprints_of(model, data)
                prepared = prepare(model, space, settings, data=data, starts=starts, fingerprints=known)
            with garbage_of_before_kept():
                found = search(prepared, row, began=began)
    except OutOfTimeError as error:
        return result_without_model(settings, space, row, stage=error.stage, began=began)
    except MemoryError:
        return no_answer(space.frame([space.row(row)]), OUT_OF_MEMORY, settings.unchecked_options(), space)
    if found.beyond:
        warn_of_rules([found])
    return found


# ==== Many people: one person's bad row stops nobody else =============================================================


class Recourse(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Answers for many people, with the conventions of scikit-learn.

    Parameters
    ----------
    model
        The fitted model, or path or bytes of an ONNX file, as for :func:`ceopt.explain`; ``sklearn.base.clone`` of a
        Recourse keeps it fitted.
    space
        What each column is and how it may move.
    target, n, cost, constraints, data, solver, time_limit_s, relative_gap, margin, diversity, formulation, threads, \
random_state, solver_options, why, surrogate, starts, proof
        As for :func:`ceopt.explain`; ``time_limit_s`` is for each person, without the reading of the model, which
        ``fit`` does; ``data`` defaults to what ``fit`` is given; ``why`` are the seconds in which, after all answers,
        conflicts are looked for, for all people together: True for the smaller of 10 and a twentieth of all limits.

    Attributes
    ----------
    data_
        A copy of the frame given to ``fit``, without the rows that lack a cell that may not be missing.
    prepared_
        The model as read, or as a black box with what it says of the data, and the settings as ``fit`` checked them.
    fit_
        What ``fit`` was made from, by which a change is noticed.
    n_features_in_, feature_names_in_
        Columns of the space.

    Notes
    -----
    Parameters may be set after ``fit``, and objects changed in place. What ``explain`` alone uses counts when it is
    called: ``n``, ``margin``, ``diversity``, ``formulation``, limits, the solver and its options, rules and costs that
    learn nothing from data. What ``fit`` has used is refused once it has changed ("Call fit again."): ``space``,
    ``data``, ``target``, another rule or cost that learns from data, and the model, fitted anew or changed in any other
    way. Once a call, a model is compared with what ``fit`` has read by a hash of all that it would save (of a file, of
    its bytes); one that cannot be pickled by its scores of up to 200 rows. Frames are copied by ``fit``: one that is
    changed in place afterwards changes nothing.

    With a ``surrogate`` the model is a black box: ``fit`` asks it about the data once for all people, its answers are
    what rules that learn from rows of the target learn from, and ``why`` is left out. A function is known again by what
    it says of up to 50 rows.

    Examples
    --------
    >>> import ceopt, pandas as pd
    >>> from ceopt.formulations.predictors import Affine
    >>> people = pd.DataFrame({"income": [1, 2, 5]}, index=["ann", "bob", "cleo"])
    >>> space = ceopt.FeatureSpace.infer(people)
    >>> recourse = ceopt.Recourse(Affine([1.0], -3.5, labels=("no", "yes")), space, target="yes").fit(people)
    >>> recourse.explain(people).to_frame()[["status", "income"]]
                               status  income
    query_id rank
    ann      1                optimal       4
    bob      1                optimal       4
    cleo     0     already_favourable    <NA>
    """

    def __init__(
        self,
        model: Any,
        space: FeatureSpace,
        *,
        target: Any,
        n: int = 1,
        cost: Any = "l1",
        constraints: Any = (),
        data: pd.DataFrame | None = None,
        solver: str = "auto",
        time_limit_s: float = 60.0,
        relative_gap: float = 1e-6,
        margin: float | None = None,
        diversity: str | AbstractDiversity = "distinct",
        formulation: str = "auto",
        threads: int = 1,
        random_state: int = 0,
        solver_options: Mapping[str, Any] | None = None,
        why: bool | float = True,
        surrogate: LocalSurrogateRecourse | None = None,
        starts: pd.DataFrame | None = None,
        proof: bool = True,
    ) -> None:
        self.model = model
        self.space = space
        self.target = target
        self.n = n
        self.cost = cost
        self.constraints = constraints
        self.data = data
        self.solver = solver
        self.time_limit_s = time_limit_s
        self.relative_gap = relative_gap
        self.margin = margin
        self.diversity = diversity
        self.formulation = formulation
        self.threads = threads
        self.random_state = random_state
        self.solver_options = solver_options
        self.why = why
        self.surrogate = surrogate
        self.starts = starts
        self.proof = proof

    @within_memory("Recourse.fit")
    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        """Check every setting, read the model once, and keep the data.

        Parameters
        ----------
        X
            Rows in raw units, columns of the space, shape (n, d); answers start from those that the model favours.
        y
            Their labels, shape (n,), none of them missing.

        Raises
        ------
        CeoptError
            As :func:`ceopt.explain`, but for the row; and an empty frame, another number of labels than rows, a label
            that is missing, or a target class that ``y`` never holds. Columns that the space does not have are left out
            with a warning, and so are rows that lack a cell that may not be missing, of ``X`` with their labels.
        """
        self._check_frame("Recourse.fit", X)
        if np.shape(y) == (len(X),):  # other shapes are refused later
            require_every_label("Recourse.fit", y)
        warn_of("Recourse.fit", self.space, X=X, data=self.data, starts=self.starts)
        lines = {"X": line_of_gaps(self.space, X, word="X", but_gaps=True, y=y)}
        warn_of_gaps("Recourse.fit", self.space, but_gaps=True, lines=lines, X=X, data=self.data, starts=self.starts)
        X, y = self._usable(X[list(self.space.names)].copy(), y)  # they are read later, and the caller may change X
        self.fit_ = self._fit(X, y)
        self.prepared_ = self.fit_.prepared
        self.data_ = X
        self.n_features_in_ = len(self.space)
        self.feature_names_in_ = np.array(self.space.names, dtype=object)
        return self

    def _usable(self, X: pd.DataFrame, y: Any) -> tuple[pd.DataFrame, Any]:
        """Return the rows that lack no cell but what may be missing, and their labels.

        Another number of labels than rows is refused later.
        """
        is_usable = has_every_cell(self.space, X, but_gaps=True)
        if is_usable.all() or (y is not None and np.shape(y) != is_usable.shape):
            return X, y
        return X[is_usable], taken(y, is_usable)

    def _fit(self, X: pd.DataFrame, y: Any) -> Fit | BlackBoxFit:
        settings = self._settings()
        starts = usable_part(self.space, self.starts)
        if self.surrogate is not None:
            return black_box_fit(
                self.model, self.space, settings, data=self.data, X=X, y=y, surrogate=self.surrogate, starts=starts
            )
        labelled = None if y is None else (X, y)
        return fit_of(self.model, self.space, settings, data=self.data, labelled=labelled, X=X, starts=starts)

    def explain(
        self,
        frame: pd.DataFrame,
        *,
        n: int | None = None,
        n_jobs: int = 1,
        progress: bool = False,
        resume: Cohort | None = None,
        total_time_limit_s: float | None = None,
    ) -> Cohort:
        """Ask about each row of a frame; an unusable row gets the status "error" with a reason.

        Ctrl-C ends the call and keeps what is finished: the cohort comes back with the other rows marked, and
        ``resume`` takes it up again. A process that is killed, runs out of memory or crashes loses nobody else's
        answer: what it had not delivered is done again, and a row that ends its process once more, with nothing beside
        it, is marked and left to ``resume``.

        Parameters
        ----------
        frame
            Rows in raw units; labels may be anything and may repeat.
        n
            Answers per person, if other than at construction.
        n_jobs
            Processes, as joblib counts them; the backend is that of ``joblib.parallel_config``: "loky" (the default),
            "threading", "sequential", or one that another library registers, such as "dask". For "multiprocessing",
            whose pool waits for ever for a process that was killed, "loky" stands in.
        progress
            Show a bar on standard error.
        resume
            An earlier cohort of the same rows and settings, whose finished rows are not solved again.
        total_time_limit_s
            Seconds for all rows together, without the reading of the model. When its turn comes a row has an equal part
            of what is left, or four times the median of the rows before it where that is more: at most half of what is
            left, and ``time_limit_s``. Rows whose turn does not come have the status "time_limit" and are left to
            ``resume``. The start of processes counts. A twentieth is kept for the rules in conflict, if ``why`` asks
            for them. None: no limit but that of each row.

        Returns
        -------
        Cohort
            In the order of the rows; the same whatever ``n_jobs`` is, unless a limit of time ends a row.

        Warns
        -----
        RuleWarning
            Once for each rule that people break today: how many, and the line to write if they may stay.

        Raises
        ------
        CeoptError
            Not fitted, or the model or a parameter that ``fit`` has used has changed since; no frame, no rows, a column
            that is missing (one that the space does not have is left out with a warning); a cohort of other rows or
            settings, of another model, or with rules that have learned from other data.
        """
        if not hasattr(self, "prepared_"):
            raise InvalidValueError("Recourse.explain", "a fitted Recourse", "fit was not called", "Call fit(X) first.")
        prepared = self.fit_.renewed(
            self.model,
            self.space,
            self.data,
            self._settings(),
            surrogate=self.surrogate,
            starts=usable_part(self.space, self.starts),
        )
        if n is not None:
            prepared = prepared.with_n(check_setting("n", n))
        jobs = whole_jobs("Recourse.explain", n_jobs)
        if total_time_limit_s is not None:
            total_time_limit_s = TIME_LIMIT_S.require("Recourse.explain", "total_time_limit_s", total_time_limit_s)
        self._check_frame("Recourse.explain", frame)
        warn_of("Recourse.explain", self.space, frame=frame)
        queries = frame[list(self.space.names)]
        options = prepared.options() | self.fit_.marks() | {"rules": content_of(_listed(self.constraints))}
        done: list[SolutionSet | None] = [None] * len(queries)
        if resume is not None:
            done = resumed(resume, queries, self.space, options)
        left = [place for place, result in enumerate(done) if result is None]
        began = time.monotonic()
        why_s, kept_s = seconds_for_conflicts(prepared, len(queries), total_time_limit_s)
        rows_s = None if total_time_limit_s is None else total_time_limit_s - kept_s
        found = answers(prepared, queries, left, jobs, rows_s)
        with garbage_of_before_kept():
            cohort = cohort_of(found, queries, self.space, options, done=done, progress=progress)
        warn_of_rules(cohort.results)
        if total_time_limit_s is not None:
            why_s = min(why_s, total_time_limit_s - (time.monotonic() - began))
        return with_conflicts(cohort, prepared, seconds=why_s, n_jobs=jobs)

    def _settings(self) -> Settings:
        return Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})

    def _check_frame(self, who: str, frame: Any) -> None:
        if not isinstance(frame, pd.DataFrame):
            raise InvalidTypeError(who, "a DataFrame", f"it got {type(frame).__name__}", "Name its columns.")
        missing = [name for name in self.space.names if name not in frame.columns]
        for name in frame.columns:
            if name not in self.space and missing:
                raise UnknownNameError.among(who, "column", name, missing)
        for name in self.space.names:
            count = int((frame.columns == name).sum())
            if count != 1:
                but = f"it is there {count} times"
                raise InvalidValueError(who, f"column {name!r} once", but, "Give each column of the space once.")
        if not len(frame):
            raise InvalidValueError(who, "at least one row", "the frame is empty", "Give some rows.")

    def __sklearn_clone__(self) -> Self:
        """Make an unfitted Recourse of the same parameters, around the same fitted model."""
        return type(self)(**self.get_params(deep=False))


def _listed(constraints: Any) -> tuple[Any, ...]:
    """Return rules as they were given, one or several: their sentences do not say all of long lists and of tables."""
    if hasattr(constraints, "__iter__"):
        return tuple(constraints)
    return (constraints,)
