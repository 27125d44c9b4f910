"""The matrix is what each of its columns says alone, in every float width, with missing cells and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.feature import MISSING, Step

NAMES = ("age", "wage", "job")
WIDTHS = st.sampled_from(["float32", "float64"])
NUMBERS = st.floats(0.1, 9.0)


@st.composite
def steps(draw: Any) -> Step:
    operation = draw(st.sampled_from(["cast", "subtract", "divide", "multiply", "add", "at_least", "at_most"]))
    return Step(operation, np.dtype(draw(WIDTHS)).type(draw(NUMBERS)), draw(WIDTHS))


@st.composite
def columns(draw: Any) -> Column:
    kind = draw(st.sampled_from(["number", "indicator", "levels", "constant"]))
    gap = draw(st.one_of(st.none(), NUMBERS))
    width = draw(WIDTHS)
    if kind == "constant":
        return Column(None, constant=draw(NUMBERS), dtype=width)
    if kind == "levels":
        return Column("job", table=tuple(draw(st.lists(NUMBERS, min_size=3, max_size=3))), missing=gap, dtype=width)
    name = draw(st.sampled_from(NAMES[:2]))
    if kind == "indicator":
        return Column(name, constant=draw(NUMBERS), is_indicator=True, missing=gap, dtype=width)
    return Column(name, tuple(draw(st.lists(steps(), max_size=2))), missing=gap, dtype=width)


@given(st.lists(columns(), min_size=1, max_size=8), st.booleans())
def test_a_matrix_holds_what_each_column_computes(held: list[Column], with_gaps: bool) -> None:
    encoding = Encoding(tuple(held), NAMES)
    rows = np.array([[31.7, 0.1, 2.0], [18.0, 1e-3, 0.0], [64.3, 1e30, 1.0]])
    if with_gaps:
        rows[1, 0] = rows[2, 2] = MISSING
    matrix = encoding.matrix(rows)
    for i, column in enumerate(held):
        source = 0
        if column.feature is not None:
            source = NAMES.index(column.feature)
            assert encoding.sources[i] == source
        own = column.evaluate(rows[:, source])
        if column.feature is None:
            own = np.full(len(rows), column.constant).astype(column.dtype)
        np.testing.assert_array_equal(matrix[:, i], own.astype(encoding.dtype))
    np.testing.assert_array_equal(encoding.sparse_matrix(rows).toarray(), matrix)


def test_slopes_are_those_of_each_column() -> None:
    scaled = Column("age", (Step("subtract", np.float64(40.0)), Step("divide", np.float64(0.3))))
    clipped = Column("wage", (Step("at_most", np.float64(9.0)),))
    encoding = Encoding((scaled, clipped, Column(None, constant=7.0), Column("job", table=(1.0, 2.0, 3.0))), NAMES)
    slopes, offsets = encoding.slopes
    assert (slopes[0], offsets[0]) == scaled.affine()
    assert np.isnan([slopes[1], offsets[1]]).all()
    assert [*slopes[2:], *offsets[2:]] == [0.0] * 4
