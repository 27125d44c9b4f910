"""Columns from 1e-12 to 1e12 under every kind of model and cost: no claim is wrong of the cheapest lattice point."""

from __future__ import annotations

import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from judging.scales import KINDS, question, verdict

from ceopt.solvers import registry

SOLVERS = [name for name in ("highs", "scip", "gurobi") if registry.SOLVERS[name].is_licensed]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@draws(6)
@given(number=st.integers(0, 10**6), solver=st.sampled_from(SOLVERS))
def test_no_optimum_is_above_the_cheapest_favourable_point_and_none_is_infeasible(kind, number, solver):
    asked = question(kind, number)
    if asked is None:  # the model decides alike for everybody
        return

    result = asked.ask(solver, time_limit_s=20.0)

    assert not verdict(asked, result), (asked.name, solver, verdict(asked, result))
