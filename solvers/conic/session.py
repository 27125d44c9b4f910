"""Sessions of conic solvers: lower, solve, and let the numbers decide what was proved."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import scipy.sparse as sp

from ceopt.solvers.adapter import AbstractSession, RunResult, SolveRun
from ceopt.solvers.conic.certificate import Proof, is_dual_ray, is_primal_ray, prove, scalings
from ceopt.solvers.conic.form import ConicForm, Lowering
from ceopt.solvers.problem import Stop, Vector
from ceopt.solvers.trust import NO_OPTIMUM

_STOPPED = frozenset({Stop.TIME_LIMIT, Stop.INTERRUPTED})
_PROVED = frozenset({Stop.OPTIMAL, *NO_OPTIMUM})
_SHOWN = 1e-2  # greatest doubt, relative, beside which a bound is shown


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a conic solver.

    Parameters
    ----------
    status
        Our word for what it says itself: OPTIMAL (accurately or not), INFEASIBLE or UNBOUNDED (then z or x is a ray),
        TIME_LIMIT for any limit, INTERRUPTED or ERROR.
    words
        What it says, in its own words.
    x, s, z
        Primal point, slack and dual point, in the order of the form.
    """

    status: Stop
    words: str
    x: Vector
    s: Vector
    z: Vector


class AbstractConicSession(AbstractSession):
    r"""One compiled model inside a conic solver.

    The solver's word is not taken for anything. Its points are put into the program's own numbers
    (:mod:`ceopt.solvers.conic.certificate`), and the status is

    ============ ===============================================================================================
    status       if
    ============ ===============================================================================================
    optimal      primal and dual residuals are at most 1e-6, relative, and the gap, with what the residuals may be
                 worth in it, at most ``relative_gap`` (1e-7 if that is less) of the objective (of 1, or of the
                 greatest cost, if the objective is less)
    infeasible   the dual point is a ray that proves it
    unbounded    the primal point is a ray along which every feasible point improves, and there is a feasible point
    feasible     the primal residual is at most 1e-6, and nothing more is proved
    otherwise    interrupted, time_limit or error, as the solver stopped
    ============ ===============================================================================================

    The bound is the dual objective, given where the dual residual is at most 1e-6 and less than a hundredth of it is in
    doubt; where the status is not optimal, it is lower by the doubt.
    """

    def _open(self) -> None:
        self._prepare()
        self._lowering = Lowering(self._compiled, self.who)

    @abstractmethod
    def _prepare(self) -> None:
        """Import the solver, and refuse options that it does not take."""

    @abstractmethod
    def _answers(self, form: ConicForm, search: SolveRun) -> Iterator[Answer]:
        """Solve a form that has columns; a further answer is asked for as long as those before are no proof."""

    def _run(self, search: SolveRun) -> RunResult:
        form = self._lowering.form(self._compiled)
        if form.broken:
            return RunResult(status=Stop.INFEASIBLE, message=f"The program is infeasible: {form.broken} cannot hold.")
        if not form.q.size:
            return RunResult(status=Stop.OPTIMAL, x=form.point, bound=form.sense * form.c0)
        if search.switch.poll():
            return RunResult(status=Stop.INTERRUPTED, message=f"{self.who} stopped before it began.")
        result = self._found(form, search)
        if result.status is not Stop.UNBOUNDED:
            return result
        there_is = self._found(replace(form, q=np.zeros(form.q.size), P=sp.csc_array(form.P.shape), c0=0.0), search)
        if there_is.x is not None and there_is.status is not Stop.INTERRUPTED:
            return result
        return replace(there_is, x=None, bound=None, certificate=None, message=there_is.message)

    def _found(self, form: ConicForm, search: SolveRun) -> RunResult:
        """Return the result of the first answer with a proof; without one, of the least doubtful answer."""
        held = None
        held_proof = None
        least = math.inf
        for answer in self._attempts(form, search):
            proof = prove(form, answer.x, answer.s, answer.z)
            result = self._judged(form, answer, proof, search.relative_gap)
            if result.status in _PROVED:
                return result
            doubt = math.inf if proof is None or result.x is None else proof.doubt
            if held is None or doubt <= least:
                held = answer
                held_proof = proof
                least = doubt
            stop = answer.words, answer.status
            if search.switch.pressed:
                stop = "interrupted", Stop.INTERRUPTED
            elif search.deadline <= time.perf_counter():
                stop = "time limit", Stop.TIME_LIMIT
            if stop[1] in _STOPPED:
                held = replace(held, words=stop[0], status=stop[1])
                break
        assert held is not None  # noqa: S101 - there is a first answer
        return self._judged(form, held, held_proof, search.relative_gap)

    def _attempts(self, form: ConicForm, search: SolveRun) -> Iterator[Answer]:
        for better in scalings(form):
            for answer in self._answers(better.form, search):
                x, s, z = better.unscaled(answer.x, answer.s, answer.z)
                yield replace(answer, x=x, s=s, z=z)

    def _judged(self, form: ConicForm, answer: Answer, proof: Proof | None, relative_gap: float) -> RunResult:
        if proof is not None and proof.is_optimal(relative_gap):
            return _held(Stop.OPTIMAL, form, answer, proof, "")
        if answer.status not in {Stop.OPTIMAL, Stop.UNBOUNDED} and is_dual_ray(form, answer.z):
            return RunResult(status=Stop.INFEASIBLE, message=f"{self.who} proved that the program is infeasible.")
        if answer.status not in {Stop.OPTIMAL, Stop.INFEASIBLE} and is_primal_ray(form, answer.x):
            message = f"{self.who} found a direction that improves every point for ever."
            return RunResult(status=Stop.UNBOUNDED, message=message)
        ended = f"{self.who} stopped: {answer.words}"
        stop = answer.status if answer.status in _STOPPED else Stop.ERROR
        if answer.status in NO_OPTIMUM:
            return RunResult(status=stop, message=f"{ended}; but its ray does not prove so.")
        if proof is None:
            return RunResult(status=stop, message=f"{ended}; without a point.")
        numbers = proof.certificate
        message = f"{ended}; residuals {numbers.primal:.1e} and {numbers.dual:.1e}, gap {numbers.gap:.1e}."
        if not proof.is_primal_feasible:
            return RunResult(status=stop, message=message)
        return _held(
            Stop.INTERRUPTED if stop is Stop.INTERRUPTED else Stop.FEASIBLE,
            form,
            answer,
            proof,
            message,
        )


def _held(status: Stop, form: ConicForm, answer: Answer, proof: Proof, message: str) -> RunResult:
    """Return the point; without a proof of optimality, the bound gives way by all that is in doubt."""
    held_back = 0.0
    if status is not Stop.OPTIMAL:
        held_back = proof.doubt * proof.unit
    return RunResult(
        status=status,
        x=form.expanded(answer.x),
        bound=form.sense * (proof.bound - held_back) if proof.is_dual_feasible and proof.doubt <= _SHOWN else None,
        message=message,
        certificate=proof.certificate,
    )
