"""Random questions for each kind of model, the same each time: status, cost, bound and ranks are those of enumeration.

``benchmarks/questions.py`` asks thousands of the same kind, and one again: ``--only tree-3``.
"""

from __future__ import annotations

import warnings

import pytest
from oracle.judge import described, judge
from oracle.question import KINDS, draw

#: Questions of each kind.
N = 16


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_claimed_is_what_enumeration_finds(kind: str) -> None:
    statuses = set()
    for number in range(N):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a small network that has not converged is a model like any other
            question = draw(kind, number, seed=0, solvers=("highs", "highs", "scip"))
            verdict = judge(question)
        statuses.add(verdict.status)

        assert not verdict.wrong, f"{kind}-{number}: {described(question)}: {verdict.wrong}"
    assert "optimal" in statuses
