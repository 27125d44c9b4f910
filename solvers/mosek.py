r"""MOSEK over a compiled model: linear and conic programs, with integers beside all cones but the semidefinite.

Linear rows and bounds go over as they are, each cone as one affine conic constraint :math:`F x + g \in K`:

============================ ============================ ===========================================================
our cone                     MOSEK's domain               entries handed over
============================ ============================ ===========================================================
second-order (t, v)          quadratic                    t, v
rotated (t, u, v)            rotated quadratic            t, u, v
semidefinite                 scaled vectorised, "svec"    lower triangle by column, off the diagonal times sqrt(2)
exponential (x, y, z)        primal exponential           z, y, x
============================ ============================ ===========================================================

What MOSEK calls optimal is measured in the conic form, by :mod:`ceopt.solvers.conic.certificate`. Its dual of
:math:`\min c^\top x` with :math:`l_c \le A x \le u_c,\ l_x \le x \le u_x,\ F x + g \in K` has

.. math::
    c = A^\top (s_l^c - s_u^c) + s_l^x - s_u^x + F^\top \dot y,

all s non-negative and :math:`\dot y` in the dual cone; to maximise, all of them have the other sign. In the form, where
:math:`q + A^\top z = 0`, z of a row is s of its side, and z of a cone is :math:`\dot y` in the form's order.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ceopt.solvers.adapter import (
    AbstractSession,
    Option,
    RunResult,
    SolveRun,
    apply_options,
    require_class,
    without_a_best,
)
from ceopt.solvers.adapter import status_of as stop_status
from ceopt.solvers.compile.names import FileNames
from ceopt.solvers.compile.quadratic_cones import without_quadratics
from ceopt.solvers.compile.rows_and_cones import ConeRows
from ceopt.solvers.cones import Cone, side_of
from ceopt.solvers.conic.certificate import Proof, prove
from ceopt.solvers.conic.form import ConicForm, conic_form
from ceopt.solvers.errors import (
    MissingLibraryError,
    MissingLicenceError,
    UnknownNameError,
    UnsupportedProblemError,
)
from ceopt.solvers.problem import Stop, StopTable, Vector
from ceopt.solvers.registry import SOLVERS, Licence
from ceopt.solvers.tolerances import UNVOUCHED_VIOLATION
from ceopt.solvers.trust import NO_OPTIMUM

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel

# ==== MOSEK's own words: its statuses, each mapped to one of ours, and the parameters that it takes ===================

# ---- solution, problem and termination -------------------------------------------------------------------------------
# name of mosek.solsta -> our status; None where the problem status and the termination have to tell
SOLUTION: dict[str, Stop | None] = {
    "optimal": Stop.OPTIMAL,
    "integer_optimal": Stop.OPTIMAL,
    "prim_feas": Stop.FEASIBLE,
    "prim_and_dual_feas": Stop.FEASIBLE,
    "dual_feas": None,
    "prim_infeas_cer": Stop.INFEASIBLE,
    "dual_infeas_cer": Stop.UNBOUNDED,  # a ray; the session asks whether there is a point to start it from
    "prim_illposed_cer": Stop.ERROR,
    "dual_illposed_cer": Stop.ERROR,
    "unknown": None,
}

# name of mosek.prosta -> what is proved of the program; the integer optimizer says "infeasible" only here
PROBLEM: dict[str, Stop | None] = {
    "unknown": None,
    "prim_and_dual_feas": None,
    "prim_feas": None,
    "dual_feas": None,
    "prim_infeas": Stop.INFEASIBLE,
    "dual_infeas": Stop.UNBOUNDED,
    "prim_and_dual_infeas": Stop.INFEASIBLE,
    "ill_posed": Stop.ERROR,
    "prim_infeas_or_unbounded": Stop.UNBOUNDED,  # the session tells the two apart
}

# name of the termination code, a mosek.rescode
TERMINATION: StopTable = {
    "ok": (Stop.FEASIBLE, Stop.ERROR),
    "trm_max_iterations": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_max_time": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_objective_range": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_mio_num_relaxs": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_mio_num_branches": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_num_max_num_int_solutions": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_server_max_time": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_server_max_memory": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_lost_race": (Stop.FEASIBLE, Stop.TIME_LIMIT),
    "trm_user_callback": (Stop.INTERRUPTED, Stop.INTERRUPTED),
    "trm_stall": (Stop.FEASIBLE, Stop.ERROR),
    "trm_max_num_setbacks": (Stop.FEASIBLE, Stop.ERROR),
    "trm_numerical_problem": (Stop.FEASIBLE, Stop.ERROR),
    "trm_internal": (Stop.FEASIBLE, Stop.ERROR),
    "trm_internal_stop": (Stop.FEASIBLE, Stop.ERROR),
}


def name_of(member: Any) -> str:
    """Return the name of a member of one of MOSEK's enumerations: "optimal" for ``mosek.solsta.optimal``."""
    return str(member).rsplit(".", 1)[-1]


def status_of(solution: str, problem: str, termination: str, *, has_point: bool) -> Stop:
    """Return our status for the names of ``solsta``, ``prosta`` and the termination; an unknown name is an error.

    Parameters
    ----------
    solution, problem, termination
        As MOSEK gives them.
    has_point
        Whether the solution is a feasible point.
    """
    proved = SOLUTION.get(solution, Stop.ERROR)
    if proved is None and not has_point:
        proved = PROBLEM.get(problem, Stop.ERROR)
    if proved in {Stop.INFEASIBLE, Stop.UNBOUNDED} or (proved is Stop.OPTIMAL and has_point):
        return proved
    stop = stop_status(TERMINATION, termination, has_point=has_point)
    if proved is Stop.ERROR and stop is not Stop.INTERRUPTED:
        return Stop.ERROR
    return stop


# ---- parameters, refused before work starts if unknown or out of range -----------------------------------------------
_ARGUMENTS = {
    "MSK_DPAR_OPTIMIZER_MAX_TIME": "time_limit_s",
    "MSK_DPAR_MIO_MAX_TIME": "time_limit_s",
    "MSK_DPAR_MIO_TOL_REL_GAP": "relative_gap",
    "MSK_DPAR_MIO_TOL_ABS_GAP": "absolute_gap",
    "MSK_IPAR_NUM_THREADS": "threads",
    "MSK_IPAR_MIO_SEED": "random_state",
}
_TYPES: dict[str, tuple[type, ...]] = {"dparam": (float,), "iparam": (int, str), "sparam": (str,)}


def set_options(task: Any, options: Mapping[str, Any]) -> None:
    """Set each option on a ``mosek.Task``.

    Raises
    ------
    UnknownNameError
        MOSEK has no parameter of that name.
    InvalidValueError
        MOSEK does not take the value, or the parameter has an argument of its own.
    """
    import mosek

    known = dict(_names())

    def described(name: str) -> Option:
        if name not in known:
            raise UnknownNameError.among("MOSEK", "option", name, known)
        return Option(types=_TYPES[known[name]], takes=f"a value that option {name!r} takes")

    def put(name: str, value: Any) -> None:
        try:
            task.putparam(name, str(value))
        except mosek.Error as error:
            raise ValueError(f"{error.msg.strip().rstrip('.')}.") from error

    apply_options("MOSEK", options, arguments=_ARGUMENTS, describe=described, put=put)


def _names() -> Iterator[tuple[str, str]]:
    import mosek

    for kind in _TYPES:
        for member in getattr(mosek, kind).members():
            yield f"MSK_{kind[0].upper()}PAR_{name_of(member).upper()}", kind


# ==== A compiled model as a MOSEK task, and a task's dual solution in the model's own terms ===========================

_DOMAINS: dict[Cone, Callable[[Any, int], int]] = {
    Cone.SECOND_ORDER: lambda task, size: task.appendquadraticconedomain(size),
    Cone.ROTATED: lambda task, size: task.appendrquadraticconedomain(size),
    Cone.SEMIDEFINITE: lambda task, size: task.appendsvecpsdconedomain(size),
    Cone.EXPONENTIAL: lambda task, _size: task.appendprimalexpconedomain(),
}


def require_library(who: str) -> Any:
    """Return the module ``mosek``.

    Raises
    ------
    MissingLibraryError
        It is not installed.
    """
    try:
        import mosek
    except ImportError as error:
        raise MissingLibraryError(
            who, "the library mosek", "it is not installed", "pip install ceopt[mosek]."
        ) from error
    return mosek


def fill(task: Any, compiled: CompiledModel) -> None:
    """Append the columns, rows and cones of a program without quadratics to an empty task."""
    import mosek

    m, n = compiled.A.shape
    task.appendvars(n)
    task.appendcons(m)
    put_bounds(task, compiled, 0, n)
    task.putcslice(0, n, compiled.c)
    task.putcfix(compiled.c0 + 0.0)
    task.putobjsense(mosek.objsense.minimize if compiled.sense > 0 else mosek.objsense.maximize)
    whole = np.flatnonzero(compiled.integer).tolist()
    task.putvartypelist(whole, [mosek.variabletype.type_int] * len(whole))
    start = compiled.A.indptr.astype(np.int64)
    task.putarowslice(0, m, start[:-1], start[1:], compiled.A.indices, compiled.A.data)
    keys = _bound_keys(compiled.row_lb, compiled.row_ub)
    task.putconboundslice(0, m, keys, _finite(compiled.row_lb), _finite(compiled.row_ub))
    for cone in compiled.cones:
        _append_cone(task, cone)


def put_bounds(task: Any, compiled: CompiledModel, first: int, last: int) -> None:
    """Set the bounds of the columns from first to last, without last; data without a value are free until they have."""
    lb = compiled.lb[first:last]
    ub = compiled.ub[first:last]
    task.putvarboundslice(first, last, _bound_keys(lb, ub), _finite(lb), _finite(ub))


def name(task: Any, names: FileNames) -> None:
    """Give every column, row and cone of a filled task its name."""
    for k, text in enumerate(names.columns):
        task.putvarname(k, text)
    for k, text in enumerate(names.rows):
        task.putconname(k, text)
    for k, text in enumerate(names.cones):
        task.putaccname(k, text)
    task.putobjname(names.objective)


def ptf_text(program: CompiledModel, names: FileNames) -> str:
    """Return a program without quadratics in MOSEK's text format.

    Raises
    ------
    MissingLibraryError
        MOSEK is not installed.
    UnsupportedProblemError
        It is infeasible by its constants, which such a file has no place for.
    """
    library = require_library("write")
    if program.contradiction is not None:
        raise UnsupportedProblemError(
            "write", "a program that may be feasible", f"{program.contradiction} cannot hold", "Write it as .cbf."
        )
    with library.Task() as task, tempfile.TemporaryDirectory() as folder:
        fill(task, program)
        name(task, names)
        path = Path(folder) / "model.ptf"
        task.writedata(str(path))
        return path.read_text(encoding="utf-8")


def scaled_rows(cone: ConeRows) -> tuple[Vector, sp.csr_array]:
    """Return (g, F): the cone's entries in MOSEK's order and scale."""
    order, scale = layout(cone.cone, cone.constant.size)
    matrix = sp.csr_array(sp.diags_array(scale) @ cone.matrix[order])
    return cone.constant[order] * scale + 0.0, matrix  # no -0, which MOSEK writes and does not read


def layout(cone: Cone, size: int) -> tuple[NDArray[np.intp], Vector]:
    """Return which of our entries stands at each of MOSEK's, and its factor."""
    if cone is Cone.EXPONENTIAL:
        return np.array([2, 1, 0]), np.ones(3)
    if cone is Cone.SEMIDEFINITE:
        pairs = np.array(list(_lower_triangle(side_of(size)))).T
        row, column = pairs
        return row * (row + 1) // 2 + column, np.where(row == column, 1.0, np.sqrt(2.0))
    return np.arange(size), np.ones(size)


def _lower_triangle(side: int) -> Iterator[tuple[int, int]]:
    """Yield (row, column) of the lower triangle, column by column."""
    return ((i, j) for j in range(side) for i in range(j, side))


def _append_cone(task: Any, cone: ConeRows) -> None:
    g, matrix = scaled_rows(cone)
    first = task.getnumafe()
    size = g.size
    task.appendafes(size)
    triples = matrix.tocoo()
    rows, columns = triples.coords
    task.putafefentrylist(first + rows.astype(np.int64), columns.astype(np.int32), triples.data)
    task.putafegslice(first, first + size, g)
    task.appendaccseq(_DOMAINS[cone.cone](task, size), first, None)


def _bound_keys(lower: Vector, upper: Vector) -> list[Any]:
    from mosek import boundkey

    table = {(False, False): boundkey.fr, (True, False): boundkey.lo, (False, True): boundkey.up}
    table[True, True] = boundkey.ra
    pairs = zip(np.isfinite(lower).tolist(), np.isfinite(upper).tolist(), (lower == upper).tolist(), strict=True)
    return [boundkey.fx if low and high and same else table[low, high] for low, high, same in pairs]


def _finite(bounds: Vector) -> Vector:
    """Replace absent bounds by 0; their key says that they are absent, and MOSEK takes no NaN."""
    return np.where(np.isfinite(bounds), bounds, 0.0) + 0.0


# ==== The proof of MOSEK's primal and dual solution, put into the conic form and measured there =======================


@final
@dataclass(frozen=True, slots=True)
class MosekDual:
    """A dual solution: of the rows' lower and upper sides, of the columns', and of all cones below one another."""

    slc: Vector
    suc: Vector
    slx: Vector
    sux: Vector
    doty: Vector

    @classmethod
    def of(cls, task: Any, which: Any) -> MosekDual:
        """Read one of the task's solutions."""
        cones = ()
        if task.getnumacc():
            cones = task.getaccdotys(which)
        parts = (task.getslc(which), task.getsuc(which), task.getslx(which), task.getsux(which), cones)
        return cls(*(np.array(part, dtype=np.float64) for part in parts))


def proof_of(program: CompiledModel, x: Vector, dual: MosekDual) -> Proof | None:
    """Return the proof of a primal and dual solution of a continuous program without quadratics; None if not finite."""
    form = conic_form(program, "MOSEK")
    free = x[form.free]
    return prove(form, free, form.b - form.A @ free, _in_form(form, program, dual))


def _in_form(form: ConicForm, program: CompiledModel, dual: MosekDual) -> Vector:
    """Return z of the form."""
    z = np.empty(form.b.size)
    row_of = {id(row): k for k, row in enumerate(program.rows)}
    column_of = {id(column): k for k, column in enumerate(program.columns)}
    ends = np.cumsum([cone.constant.size for cone in program.cones], dtype=int).tolist()
    cone_of = {
        id(cone.constraint): (cone.cone, dual.doty[end - cone.constant.size : end])
        for cone, end in zip(program.cones, ends, strict=True)
    }
    seen: set[int] = set()
    for k, (source, rows) in enumerate(form.rows_of()):
        key = id(source)
        if key in row_of and k < form.zero:
            z[k] = dual.suc[row_of[key]] - dual.slc[row_of[key]]
        elif key in row_of or key in column_of:
            at, lower, upper, high = (
                (row_of[key], dual.slc, dual.suc, program.row_ub)
                if key in row_of
                else (column_of[key], dual.slx, dual.sux, program.ub)
            )
            z[k] = lower[at] if key in seen or not np.isfinite(high[at]) else upper[at]  # the upper side comes first
            seen.add(key)
        else:
            z[rows] = _entries(*cone_of[key])
    return program.sense * z


def _entries(cone: Cone, doty: Vector) -> Vector:
    """Return one cone's dual in the form's order; a rotated cone is turned into a second-order one."""
    entries = np.empty(doty.size)
    entries[layout(cone, doty.size)[0]] = doty
    if cone is Cone.ROTATED:
        t = doty[0]
        u = doty[1]
        entries[:2] = np.array([t + u, t - u]) / np.sqrt(2.0)
    return entries


# ==== MOSEK over a compiled model: linear and conic programs, with integers beside all cones but the semidefinite =====

_FILES = (".cbf", ".jtask", ".ptf", ".task")


@functools.cache
def licence() -> Licence:
    """Return MOSEK's licence, or why there is none; looked for once in a process."""
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
        takes = "a linear or convex program, with integers beside all cones but the semidefinite"
        then = "Call solve(model), which finds a solver for it or says why there is none."
        require_class(self.who, "mosek", takes, self._compiled, then)
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
        name(self._task, FileNames.of(self._conic, None))
        self._task.writedata(os.fspath(path))

    def _run(self, search: SolveRun) -> RunResult:
        if why := licence().why_not:
            raise self._no_licence(why)
        self._pass_changes()
        result = self._once(search)
        if result.status is not Stop.UNBOUNDED:
            return result
        return self._without_objective(search, result.message)

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
        if search.tee:
            task.set_Stream(library.streamtype.log, _print)
        try:
            with switch.listening():
                ended = name_of(task.optimize())
        except library.Error as error:
            code = name_of(error.errno)
            if _is_about_licences(code):
                raise self._no_licence(_why_no_licence(code)) from error
            return RunResult(status=Stop.ERROR, message=f"MOSEK stopped: {_words(code)}.")
        finally:
            if search.tee:
                task.set_Stream(library.streamtype.log, None)
            task.set_Progress(None)  # else the caller's functions would live as long as the task
        if switch.pressed:
            ended = "trm_user_callback"
        return self._found(ended, search.relative_gap)

    def _ask(self, search: SolveRun) -> None:
        """Set the limits and the start of this run, and delete the solutions of earlier ones."""
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
        task.putdouparam(library.dparam.mio_tol_abs_gap, search.absolute_gap)
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
        if status_of(solution, problem, "ok", has_point=True) not in NO_OPTIMUM:
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
        """Return the result that the residuals prove of a continuous program's solution, whatever MOSEK says of it."""
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

    def _without_objective(self, search: SolveRun, message: str) -> RunResult:
        """Tell unbounded from infeasible: a ray that improves says nothing of whether there is a point."""
        task = self._task
        n = self._conic.c.size
        task.putcslice(0, n, np.zeros(n))
        try:
            result = self._once(search, listen=False)
        finally:
            task.putcslice(0, n, self._conic.c)
        status = Stop.UNBOUNDED if result.x is not None else result.status
        return without_a_best(self.who, status, otherwise=message)

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
        set_options(task, self._options)
        fill(task, self._conic)
        self._passed = compiled.shape

    def _pass_changes(self) -> None:
        """Take over data and rows that changed since the last solve."""
        compiled = self._compiled
        k = len(self._compiled.data)
        if compiled.shape != self._passed or (k and compiled.quadratics):  # data may decide on which side a cone is
            self._build()
        elif k:
            self._conic.lb[:k], self._conic.ub[:k] = compiled.lb[:k], compiled.ub[:k]
            put_bounds(self._task, compiled, 0, k)

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


def _print(text: str) -> None:
    sys.stdout.write(text)


def _words(code: str) -> str:
    """Return ``trm_max_time`` as "max time"."""
    return code.removeprefix("trm_").removeprefix("err_").replace("_", " ")
