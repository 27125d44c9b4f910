"""One line for one person: the least change after which the model decides otherwise."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ceopt.formulations.space.space import FeatureSpace, known_part, known_row, require_space, warn_of
from ceopt.population.batch import OUT_OF_MEMORY, no_answer
from ceopt.query.black_box_question import asked_once
from ceopt.query.prepare import fingerprints_of, prepare
from ceopt.search.search import search, unread
from ceopt.settings import Settings
from ceopt.solvers.deadline import OutOfTimeError, until

if TYPE_CHECKING:
    import pandas as pd

    from ceopt.formulations.constraints.diversity.diversity import AbstractDiversity
    from ceopt.solution.solution_set import SolutionSet
    from ceopt.surrogates.recourse import LocalSurrogateRecourse

__all__ = ["explain"]


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
        Rows in raw units, from which a search may start, and from which "mahalanobis" takes its covariance.
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
        a tie is not favourable yet); for all others 5e-6 of the way from the row's score to the decision, at most 1e-5,
        or what the floats of the score make necessary. ``Disagreement`` counts trees and takes none.
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
        ``solver_options``, ``why`` and ``starts`` have no meaning beside it and are refused.
    starts
        Points to be tried first, a frame of the space's columns in raw units: each is put where the person can be (a
        number at the nearest value, a level out of reach back to the person's own) and checked like an answer. The
        cheapest that passes is where the solver begins and a cost that it need not exceed; where the time ends before
        the solver has a point, it is the answer. They change what is found first, not what is optimal.

    Returns
    -------
    SolutionSet
        ``.status``, the answers, ``.changes()``, ``.to_frame()``. A solver's outcome is a status, never an exception;
        so is memory that runs out ("error").

    Warns
    -----
    SpaceWarning
        A row, data or starts with columns that the space does not have: they are left out, and named once a call.

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
    )
    require_space("explain", space)
    warn_of("explain", space, row=row, data=data, starts=starts)
    row = known_row("explain", space, row)
    data = known_part(space, data)
    starts = known_part(space, starts)
    try:
        if surrogate is not None:
            with until(began + settings.limit_s()):
                asked = asked_once(
                    model, space, settings, data=data, surrogate=surrogate, starts=starts, why=Settings(target=None).why
                )
                return asked.answer(row)
        with until(began + settings.limit_s()):
            prepared = prepare(model, space, settings, data=data, starts=starts)
            prepared = replace(prepared, fingerprints=fingerprints_of(model, data))
        return search(prepared, row, began=began)
    except OutOfTimeError as error:
        return unread(settings, space, row, stage=error.stage, began=began)
    except MemoryError:
        return no_answer(space.frame([space.row(row)]), OUT_OF_MEMORY, settings.unchecked_options(), space)
