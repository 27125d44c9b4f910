"""MOSEK over a compiled model: linear and conic programs, with integers beside all cones but the semidefinite."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from pathlib import Path
from typing import Any, final

import numpy as np

from ceopt.solvers.compile.quadratic_to_cone import without_quadratics
from ceopt.solvers.conic.certificate import Proof
from ceopt.solvers.errors import MissingLicenceError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.files.file_names import FileNames
from ceopt.solvers.mosek import task as mosek_task
from ceopt.solvers.mosek.proof import MosekDual, proof_of
from ceopt.solvers.mosek.tables import name_of, set_options, status_of
from ceopt.solvers.mosek.task import require_library
from ceopt.solvers.problem import ProblemClass, Stop, Vector
from ceopt.solvers.registry import SOLVERS, Licence
from ceopt.solvers.session import PROVED_EMPTY, AbstractSession, RunResult, SolveRun
from ceopt.solvers.tolerances import UNVOUCHED_VIOLATION

__all__ = ["MosekSession", "licence"]

_REFUSED = frozenset({ProblemClass.MISDP, ProblemClass.NONCONVEX, ProblemClass.NONCONVEX_EXP})
_FILES = (".cbf", ".jtask", ".ptf", ".task")


@functools.cache
def licence() -> Licence:
    """Return what MOSEK's licence allows, or why there is none; looked for once in a process."""
    library = require_library("MOSEK")
    try:
        with library.Env() as env:
            env.checkoutlicense(library.feature.pts)
            env.checkinlicense(library.feature.pts)
    except library.Error as error:
        return Licence(why_not=_why_no_licence(name_of(error.errno)))
    return Licence()


def _why_no_licence(code: str) -> str:
    """Return one sentence for the name of MOSEK's error."""
    if code == "err_missing_license_file":
        return "MOSEK finds no licence file: get one from mosek.com and name it in MOSEKLM_LICENSE_FILE."
    return f"MOSEK does not accept its licence: {code.removeprefix('err_').replace('_', ' ')}."


def _is_about_licences(code: str) -> bool:
    return "license" in code and code.startswith("err_")


@final
class MosekSession(AbstractSession):
    """One compiled linear or conic program, or a convex quadratic one as cones, inside MOSEK.

    Without a licence the session can be made and its program written; only :meth:`solve` needs one.
    """

    who = "MOSEK"

    def _open(self) -> None:
        self._library = require_library("MOSEK")
        needed = self._compiled.problem_class
        if needed in _REFUSED:
            raise UnsupportedProblemError(
                "MOSEK",
                "a linear or convex program, with integers beside all cones but the semidefinite",
                f"the model is of class {needed}",
                "Call solve(model), which finds a solver for it or says why there is none.",
            )
        self._build()

    @property
    def version(self) -> str:
        """Version of MOSEK."""
        return ".".join(map(str, self._library.Env.getversion()))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the program as it is now, in MOSEK's words and with our names, for a machine that has a licence.

        Raises
        ------
        UnknownNameError
            The path ends neither in .jtask, .ptf or .task nor in .cbf, which has no names.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in _FILES:
            raise UnknownNameError.among("MOSEK", "suffix", suffix, _FILES)
        self._pass_changes()
        mosek_task.name(self._task, FileNames.of(self._conic, None))
        self._task.writedata(os.fspath(path))

    def _run(self, search: SolveRun) -> RunResult:
        if why := licence().why_not:
            raise self._no_licence(why)
        self._pass_changes()
        found = self._once(search)
        if found.status is not Stop.UNBOUNDED:
            return found
        status = self._status_without_objective(search)
        message = found.message
        if status in PROVED_EMPTY:
            message = f"MOSEK proved that the program is {status}."
        return RunResult(status=status, message=message)

    # -- one run -------------------------------------------------------------------------------------------------------
    def _once(self, search: SolveRun, *, listen: bool = True) -> RunResult:
        """Solve the task as it is."""
        task = self._task
        library = self._library
        switch = search.switch
        self._ask(search)
        whole = library.soltype.itg
        new = library.callbackcode.new_int_mio

        def called(code: Any) -> int:
            if code == new and listen:
                with contextlib.suppress(library.Error):
                    search.improved(self._own(task.getxx(whole)))
            return int(switch.poll())

        task.set_Progress(called)
        try:
            with switch.listening():
                ended = name_of(task.optimize())
        except library.Error as error:
            code = name_of(error.errno)
            if _is_about_licences(code):
                raise self._no_licence(_why_no_licence(code)) from error
            return RunResult(status=Stop.ERROR, message=f"MOSEK stopped: {_words(code)}.")
        finally:
            task.set_Progress(None)  # else the caller's functions would live as long as the task
        if switch.pressed:
            ended = "trm_user_callback"
        return self._found(ended, search.relative_gap)

    def _ask(self, search: SolveRun) -> None:
        """Set what this run is asked for, and forget what earlier ones found."""
        task = self._task
        library = self._library
        for solution in library.soltype.members():
            if task.solutiondef(solution):
                task.deletesolution(solution)
        limit = search.seconds_left
        if not math.isfinite(limit):
            limit = -1.0  # MOSEK's word for none
        task.putdouparam(library.dparam.optimizer_max_time, limit)
        task.putdouparam(library.dparam.mio_tol_rel_gap, search.relative_gap)
        if search.start and self._compiled.integer.any():
            point = np.full(task.getnumvar(), math.nan)
            point[list(search.start)] = list(search.start.values())
            task.putxx(library.soltype.itg, point)

    def _found(self, ended: str, relative_gap: float) -> RunResult:
        """Read the run that ended with this termination code."""
        task = self._task
        compiled = self._compiled
        which = self._best_solution()
        if which is None:
            status = status_of("unknown", "unknown", ended, has_point=False)
            return RunResult(status=status, message=f"MOSEK stopped: {_words(ended)}.")
        solution = name_of(task.getsolsta(which))
        problem = name_of(task.getprosta(which))
        message = f"MOSEK stopped: {_words(ended)}; the solution is {_words(solution)}."
        x: Vector | None = None
        if status_of(solution, problem, "ok", has_point=True) not in PROVED_EMPTY:
            x = np.array(task.getxx(which), dtype=np.float64)
            vouched = solution in {"optimal", "integer_optimal", "prim_feas", "prim_and_dual_feas"}
            if not vouched and not compiled.violation(self._own(x)) <= UNVOUCHED_VIOLATION:
                x = None
        status = status_of(solution, problem, ended, has_point=x is not None)
        if x is None or compiled.integer.any():
            if status is Stop.OPTIMAL:
                message = ""
            point = None
            if x is not None:
                point = self._own(x)
            return RunResult(status=status, x=point, bound=self._integer_bound(), message=message)
        return self._judged(status, x, proof_of(self._conic, x, MosekDual.of(task, which)), message, relative_gap)

    def _judged(self, status: Stop, x: Vector, proof: Proof | None, message: str, relative_gap: float) -> RunResult:
        """Return what the numbers prove of a continuous program's solution, whatever MOSEK says of it."""
        if proof is None or not proof.is_primal_feasible:
            if status not in {Stop.INTERRUPTED, Stop.TIME_LIMIT}:
                status = Stop.ERROR
            return RunResult(status=status, message=f"{message} It does not satisfy the rows.")
        if status is Stop.OPTIMAL and not proof.is_optimal(relative_gap):
            status = Stop.FEASIBLE
            message = f"{message} Its residuals do not prove so."
        return RunResult(
            status=status,
            x=self._own(x),
            bound=self._compiled.sense * proof.bound if proof.is_dual_feasible else None,
            message="" if status is Stop.OPTIMAL else message,
            certificate=proof.certificate,
        )

    def _best_solution(self) -> Any:
        """Return the kind of solution to read: the integer one, or the optimal one of vertex and interior."""
        task = self._task
        kinds = self._library.soltype
        order = (kinds.itg,) if self._compiled.integer.any() else (kinds.bas, kinds.itr)
        defined = [kind for kind in order if task.solutiondef(kind)]
        optimal = [kind for kind in defined if name_of(task.getsolsta(kind)) == "optimal"]
        return next(iter(optimal or defined[::-1]), None)

    def _integer_bound(self) -> float | None:
        task = self._task
        library = self._library
        if not self._compiled.integer.any() or not task.getintinf(library.iinfitem.mio_obj_bound_defined):
            return None
        return float(task.getdouinf(library.dinfitem.mio_obj_bound))

    def _own(self, x: Any) -> Vector:
        """Return the model's own columns of a point."""
        return np.array(x, dtype=np.float64)[: len(self._compiled.columns)]

    def _status_without_objective(self, search: SolveRun) -> Stop:
        """Tell unbounded from infeasible: a ray that improves says nothing of whether there is a point."""
        task = self._task
        n = self._conic.c.size
        task.putcslice(0, n, np.zeros(n))
        try:
            found = self._once(search, listen=False)
        finally:
            task.putcslice(0, n, self._conic.c)
        if found.x is not None:
            return Stop.UNBOUNDED
        return found.status

    # -- model into MOSEK ----------------------------------------------------------------------------------------------
    def _build(self) -> None:
        """Hand the whole program over, in a new task."""
        library = self._library
        compiled = self._compiled
        self._conic = without_quadratics(compiled)
        task = self._task = library.Task()
        task.putintparam(library.iparam.num_threads, self._threads)
        task.putintparam(library.iparam.mio_seed, self._random_state)
        task.putintparam(library.iparam.mio_construct_sol, library.onoffkey.on)
        task.putdouparam(library.dparam.mio_tol_abs_gap, 0.0)
        set_options(task, self._options)
        mosek_task.fill(task, self._conic)
        self._passed = compiled.shape

    def _pass_changes(self) -> None:
        """Take over data and rows that changed since the last solve."""
        compiled = self._compiled
        k = len(self._compiled.data)
        if compiled.shape != self._passed or (k and compiled.quadratics):  # data may decide on which side a cone is
            self._build()
        elif k:
            self._conic.lb[:k], self._conic.ub[:k] = compiled.lb[:k], compiled.ub[:k]
            mosek_task.put_bounds(self._task, compiled, 0, k)

    def _no_licence(self, why: str) -> MissingLicenceError:
        compiled = self._compiled
        needed = compiled.problem_class
        others = [s.name for s in SOLVERS.values() if s.name != "mosek" and needed in s.classes and s.is_installed]
        ready = " or ".join(repr(name) for name in others if not SOLVERS[name].refusal(compiled))
        instead = ""
        if ready:
            instead = f", or use solver {ready}"
        then = f"Write the program with .write('model.task') for a machine that has one{instead}."
        return MissingLicenceError("MOSEK", "a licence to solve", why.rstrip("."), then)


def _words(code: str) -> str:
    """Return ``trm_max_time`` as "max time"."""
    return code.removeprefix("trm_").removeprefix("err_").replace("_", " ")
