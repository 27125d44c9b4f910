"""Clarabel over a compiled model: convex quadratic objectives, second-order, semidefinite and exponential cones."""

from __future__ import annotations

import functools
import importlib.metadata
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.adapter import Option, SolveRun, apply_options, split_words
from ceopt.solvers.cones import Cone
from ceopt.solvers.conic.form import ConicForm
from ceopt.solvers.conic.session import AbstractConicSession, Answer
from ceopt.solvers.errors import UnknownNameError
from ceopt.solvers.problem import Stop
from ceopt.solvers.tolerances import CLARABEL_TOLERANCE

STOP: dict[str, Stop] = {
    "Unsolved": Stop.ERROR,
    "Solved": Stop.OPTIMAL,
    "PrimalInfeasible": Stop.INFEASIBLE,
    "DualInfeasible": Stop.UNBOUNDED,
    "AlmostSolved": Stop.OPTIMAL,
    "AlmostPrimalInfeasible": Stop.INFEASIBLE,
    "AlmostDualInfeasible": Stop.UNBOUNDED,
    "MaxIterations": Stop.TIME_LIMIT,
    "MaxTime": Stop.TIME_LIMIT,
    "NumericalError": Stop.ERROR,
    "InsufficientProgress": Stop.ERROR,
    "CallbackTerminated": Stop.INTERRUPTED,
}
"""Name of ``clarabel.SolverStatus`` -> what it claims; the certificate decides."""

_SMALL = 3000
"""Rows up to which a point without proof is worth other roundings. Of 150 random programs of mixed cones in mixed units
four ended without proof at first, of 1300 none after these; of six badly conditioned ones
(``validity_lower`` and ``validity_lower_arrow`` with a radius of at most 0.01) five and two."""
_OTHER_ROUNDINGS: tuple[dict[str, Any], ...] = (
    {"direct_solve_method": "qdldl"},
    {"max_step_fraction": 0.9},
    {"static_regularization_constant": 1e-7},
    {"iterative_refinement_max_iter": 50, "iterative_refinement_stop_ratio": 1.5},
)
_QUICK = 1000
"""Rows below which a step takes some 20 ms at most; with 5,000 rows of semidefinite cones it took seconds."""
_SET_UP_S = 2.5e-7
"""Seconds of setting up for each number of the dense blocks that semidefinite cones make (1.3e-7 to 2.5e-7 measured).

No other thread runs meanwhile. The steps after it take as long each, and there are ten or so: with less than twice its
time left nothing would come of it."""
_GRACE_S = 0.05
"""Seconds after the limit that Clarabel may take to tell what it has."""
_ARGUMENTS = {"time_limit": "time_limit_s", "max_threads": "threads"}


@functools.cache
def _version() -> str:
    """Return Clarabel's version, read from its files once: that takes as long as a small program."""
    return importlib.metadata.version("clarabel")


@final
class ClarabelSession(AbstractConicSession):
    """One compiled LP, convex QP or conic program inside Clarabel, an interior-point method.

    Ctrl-C and ``should_stop`` are seen once an iteration. The seed is not used: the method draws no random numbers.
    Of a large program an iteration may take seconds: it is not waited for after the limit, and ends by itself. Where
    setting up alone would take the time, it does not begin.
    """

    who = "Clarabel"

    def _prepare(self) -> None:
        import clarabel

        self._library: Any = clarabel
        self._check_options()

    @property
    def version(self) -> str:
        """Version of Clarabel."""
        return _version()

    def _answers(self, form: ConicForm, search: SolveRun) -> Iterator[Answer]:
        yield self._answer(form, search, {})
        if form.b.size <= _SMALL:
            for options in _OTHER_ROUNDINGS:
                if self._options.keys().isdisjoint(options):
                    yield self._answer(form, search, options)

    def _answer(self, form: ConicForm, search: SolveRun, options: Mapping[str, Any]) -> Answer:
        library = self._library
        switch = search.switch
        kinds = {
            Cone.SECOND_ORDER: library.SecondOrderConeT,
            Cone.SEMIDEFINITE: library.PSDTriangleConeT,
            Cone.EXPONENTIAL: lambda _size: library.ExponentialConeT(),
        }
        cones = []
        if form.zero:
            cones = [library.ZeroConeT(form.zero)]
        cones += [library.NonnegativeConeT(form.nonnegative)] if form.nonnegative else []
        cones += [kinds[cone](size) for cone, size in form.cones]
        settings = self._settings(search.seconds_left, options)
        settings.verbose = settings.verbose or search.tee
        late = Answer(
            status=Stop.TIME_LIMIT,
            words="time limit",
            x=np.zeros(form.q.size),
            s=np.zeros(form.b.size),
            z=np.zeros(form.b.size),
        )
        if 2.0 * _set_up_s(form) > search.deadline - time.perf_counter():
            return late
        is_late = threading.Event()

        def solved() -> Answer:
            solver = library.DefaultSolver(form.P, form.q, form.A, form.b, cones, settings)
            solver.set_termination_callback(lambda _info: is_late.is_set() or switch.poll())
            solution = solver.solve()
            name = str(solution.status)
            x, s, z = (np.array(part, dtype=np.float64) for part in (solution.x, solution.s, solution.z))
            return Answer(status=STOP.get(name, Stop.ERROR), words=split_words(name), x=x, s=s, z=z)

        with switch.listening():
            if form.b.size < _QUICK or math.isinf(search.deadline):
                return solved()
            try:
                return _beside(solved, search.seconds_left + _GRACE_S)
            except TimeoutError:
                is_late.set()
        return late

    def _settings(self, seconds: float, options: Mapping[str, Any]) -> Any:
        settings = self._library.DefaultSettings()
        settings.verbose = False
        settings.time_limit = seconds
        settings.max_threads = self._threads
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CLARABEL_TOLERANCE
        for name, value in {**options, **self._options}.items():
            setattr(settings, name, value)
        return settings

    def _check_options(self) -> None:
        settings = self._library.DefaultSettings()
        known = [name for name in dir(settings) if not name.startswith("_") and name != "default"]
        one = sp.csc_array([[1.0]])

        def described(name: str) -> Option:
            if name not in known:
                raise UnknownNameError.among(self.who, "option", name, known)
            default = getattr(settings, name)
            return Option(takes=f"a value that option {name!r} takes", then=f"Its default is {default!r}.")

        def put(name: str, value: Any) -> None:
            if isinstance(value, int | float) and not value >= 0:
                raise ValueError(name)  # Clarabel would take it and fail later
            setattr(settings, name, value)
            self._library.DefaultSolver(one, np.ones(1), one, np.ones(1), [self._library.ZeroConeT(1)], settings)

        self._options = apply_options(self.who, self._options, arguments=_ARGUMENTS, describe=described, put=put)


def _set_up_s(form: ConicForm) -> float:
    """Return how long it takes to set up a form, where semidefinite cones make that long."""
    sides = np.array([side for cone, side in form.cones if cone is Cone.SEMIDEFINITE], dtype=np.float64)
    return _SET_UP_S * float(((sides * (sides + 1.0) / 2.0) ** 2).sum()) / 2.0


def _beside(work: Callable[[], Answer], seconds: float) -> Answer:
    """Return the answer of some work in a thread; work that takes longer is left to end by itself.

    Clarabel looks at the clock once a step, and steps of large cones take seconds.

    Raises
    ------
    TimeoutError
        It is not done in time.
    """
    executor = ThreadPoolExecutor(max_workers=1)
    future = executor.submit(work)
    executor.shutdown(wait=False)
    return future.result(timeout=seconds)
