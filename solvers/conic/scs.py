"""SCS over a compiled model: a first-order method for large cones, to moderate accuracy."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.adapter import Option, SolveRun, apply_options
from ceopt.solvers.cones import Cone
from ceopt.solvers.conic.form import ConicForm
from ceopt.solvers.conic.session import AbstractConicSession, Answer
from ceopt.solvers.errors import MissingLibraryError, UnknownNameError
from ceopt.solvers.problem import Stop
from ceopt.solvers.tolerances import SCS_INFEASIBLE, SCS_TOLERANCE

STOP: dict[int, tuple[str, Stop]] = {
    -7: ("infeasible, inaccurately", Stop.INFEASIBLE),
    -6: ("unbounded, inaccurately", Stop.UNBOUNDED),
    -5: ("interrupted", Stop.INTERRUPTED),
    -4: ("failed", Stop.ERROR),
    -3: ("indeterminate", Stop.ERROR),
    -2: ("infeasible", Stop.INFEASIBLE),
    -1: ("unbounded", Stop.UNBOUNDED),
    0: ("unfinished", Stop.TIME_LIMIT),
    1: ("solved", Stop.OPTIMAL),
    2: ("solved, inaccurately", Stop.OPTIMAL),
}
"""SCS's ``status_val`` -> its words and what it claims; the certificate decides."""
_UNDECIDED = frozenset({-7, -6, 0, 2})  # a limit ended the slice

_SLICE = 500  # iterations between two looks at the certificate, the clock and the switch
_MOST = 100_000
_DEFAULTS = {"eps_abs": SCS_TOLERANCE, "eps_rel": SCS_TOLERANCE, "eps_infeas": SCS_INFEASIBLE, "verbose": False}
_ARGUMENTS = {"time_limit_secs": "time_limit_s"}
_FILES = frozenset({"log_csv_filename", "write_data_filename"})
_KNOWN = sorted(
    {"acceleration_interval", "acceleration_lookback", "adaptive_scale", "alpha", "eps_abs", "eps_infeas", "eps_rel"}
    | {"linear_solver", "max_iters", "normalize", "rho_x", "scale", "verbose"}
    | _FILES
)
"""The options of SCS 3 by its own names; what a later version adds is taken too."""


@final
class ScsSession(AbstractConicSession):
    """One compiled LP, convex QP or conic program inside SCS, a first-order method.

    It runs in slices of 500 iterations, each from where the last one ended. After each, the certificate decides whether
    the answer is good enough, and the clock, Ctrl-C and ``should_stop`` are seen. Its status is seldom "optimal" where
    the program is badly scaled: then the point is "feasible" or nothing. The seed is not used; ``threads`` is, in that
    a single one excludes linear solvers with threads of their own.
    """

    who = "SCS"

    def _prepare(self) -> None:
        try:
            import scs
        except ImportError as error:
            raise MissingLibraryError(
                "SCS", "the library scs", "it is not installed", "pip install ceopt[scs]."
            ) from error
        self._library: Any = scs
        self._check_options()

    @property
    def version(self) -> str:
        """Version of SCS."""
        return str(self._library.__version__)

    def _answers(self, form: ConicForm, search: SolveRun) -> Iterator[Answer]:
        order = form.lower_by_columns()
        left = int(self._options.get("max_iters", _MOST))
        stride = _SLICE
        longest = 0.0
        solver = None
        begin: dict[str, Any] = {"warm_start": False}
        kept: dict[str, Any] = {}
        while True:
            if solver is None or longest > search.seconds_left or left < stride:
                stride = min(stride, left)
                further = {"verbose": True} if search.tee else {}
                solver = self._solver(form, order, search.seconds_left, {**kept, **further, "max_iters": stride})
            began = time.perf_counter()
            with search.switch.listening():
                raw = solver.solve(**begin)
            longest = max(longest, time.perf_counter() - began)
            info = raw["info"]
            left -= info["iter"]
            words, status = STOP.get(info["status_val"], ("in a way that is not known", Stop.ERROR))
            goes_on = info["status_val"] in _UNDECIDED and left > 0
            if info["status_val"] in _UNDECIDED and left <= 0:
                words = "iteration limit"
                status = Stop.TIME_LIMIT
            search.switch.poll()
            y = np.empty(form.b.size)
            s = np.empty(form.b.size)
            y[order], s[order] = raw["y"][: order.size], raw["s"][: order.size]
            yield Answer(status=status, words=words, x=raw["x"].copy(), s=s, z=y)
            if not goes_on:
                return
            if status is Stop.OPTIMAL:
                begin = {"warm_start": True, "x": raw["x"], "y": raw["y"], "s": raw["s"]}
                kept = {"scale": info["scale"]}
            else:  # it gave a ray that proves nothing, and so no point to go on from: once more, and longer
                begin = {"warm_start": False}
                kept = {}
                solver = None
                stride = 4 * stride

    def _solver(self, form: ConicForm, order: Any, seconds: float, options: Mapping[str, Any]) -> Any:
        cone: dict[str, Any] = {
            "z": form.zero,
            "l": form.nonnegative,
            "q": [size for cone, size in form.cones if cone is Cone.SECOND_ORDER],
            "s": [size for cone, size in form.cones if cone is Cone.SEMIDEFINITE],
            "ep": sum(cone is Cone.EXPONENTIAL for cone, _ in form.cones),
        }
        A = sp.csc_array(form.A.tocsr()[order])
        b = form.b[order]
        if not b.size:  # SCS wants a row
            A, b, cone["l"] = sp.csc_array((1, form.q.size)), np.ones(1), 1
        data = {"A": sp.csc_matrix(A), "b": b, "c": form.q} | ({"P": sp.csc_matrix(form.P)} if form.P.nnz else {})
        single = {}
        if self._threads == 1 and hasattr(self._library, "LinearSolver"):
            single = {"linear_solver": "qdldl"}
        limit = seconds if math.isfinite(seconds) else 0.0  # 0 is none
        settings = {**_DEFAULTS, **single, **self._options, **options, "time_limit_secs": limit}
        return self._library.SCS(data, cone, **settings)

    def _check_options(self) -> None:
        def described(name: str) -> Option:
            return Option(takes=f"a value that option {name!r} takes", then="See the settings of SCS.")

        self._options = apply_options(self.who, self._options, arguments=_ARGUMENTS, describe=described, put=self._try)

    def _try(self, name: str, value: Any) -> None:
        """Let SCS itself refuse an option, with a program of one row; files that it would write are only looked at."""
        if name in _FILES and isinstance(value, str):
            return
        one = sp.csc_matrix([[1.0]])
        program = {"A": one, "b": np.ones(1), "c": np.ones(1)}
        try:
            self._library.SCS(program, {"z": 1}, **{"verbose": False, name: value})
        except TypeError as error:
            if name in _KNOWN:
                raise
            # Python words in each version anew that a function has no such argument.
            raise UnknownNameError.among(self.who, "option", name, _KNOWN) from error
