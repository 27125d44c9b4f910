"""The loan book: its causal model holds, its decision can be learnt, and the same seed draws the same rows."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest

from ceopt.datasets import loans
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

BOOK = loans(20_000)


def coordinates(book):
    return pd.DataFrame(book.space.coordinates(book.data), columns=book.space.names)


def test_the_same_seed_draws_the_same_rows():
    once, again = loans(300, random_state=7), loans(300, random_state=7)
    pd.testing.assert_frame_equal(once.frame, again.frame, check_exact=True)
    assert once.space == again.space
    assert not once.data.equals(loans(300, random_state=8).data)
    digest = hashlib.sha256(loans().frame.to_csv(index=False).encode()).hexdigest()
    assert digest == "ca8cf80158eb6e55ba9a4420964c2ebdf8dfa756b214cf117de1671b24453c3a"


def test_what_comes_back():
    book = loans()
    assert book.data.shape == (2000, 12)
    assert list(book.frame) == [*book.data, "decision"]
    assert set(book.target) == {"good", "bad"}
    assert book.favourable == "good"
    assert book.space.names == tuple(book.data)
    assert "2000 rows, 12 features" in repr(book)
    assert {feature.kind for feature in book.space} == {"continuous", "integer", "ordinal", "categorical", "binary"}
    pd.testing.assert_frame_equal(
        book.space.frame([book.space.row(book.data.iloc[5])], index=[5]), book.data.iloc[[5]], check_exact=True
    )


def test_about_thirty_per_cent_are_rejected():
    assert (BOOK.target == "bad").mean() == pytest.approx(0.3, abs=0.01)
    assert (loans().target == "bad").mean() == pytest.approx(0.3, abs=0.03)


def test_equations_hold_with_independent_bounded_noise():
    x = coordinates(BOOK)
    noises = {}
    units = {"years_employed": 0.1, "income": 100, "savings": 100, "loan_amount": 100, "duration": 1}
    assert set(BOOK.equations) == set(units)
    for name, equation in BOOK.equations.items():
        linear = equation.intercept + sum(a * x[parent] for parent, a in equation.parents.items())
        noise = x[name] - linear
        assert noise.abs().max() <= np.sqrt(6) * equation.noise_scale + units[name] / 2 + 1e-9
        assert abs(noise.mean()) < 4 * equation.noise_scale / np.sqrt(len(x))
        assert noise.std() == pytest.approx(equation.noise_scale, rel=0.02)
        assert np.allclose(np.round(x[name] / units[name]), x[name] / units[name])
        noises[name] = noise
        for parent in equation.parents:
            assert abs(np.corrcoef(noise, x[parent])[0, 1]) < 0.03
    correlation = np.corrcoef(np.array(list(noises.values())))
    assert np.abs(correlation - np.eye(5)).max() < 0.03


def test_the_coefficients_are_those_that_regression_finds():
    x = coordinates(BOOK)
    for name, equation in BOOK.equations.items():
        design = np.column_stack([np.ones(len(x)), x[list(equation.parents)]])
        found, *_ = np.linalg.lstsq(design, x[name].to_numpy(), rcond=None)
        assert found[1:] == pytest.approx(list(equation.parents.values()), rel=0.03)


def test_the_graph_is_that_of_the_equations_and_has_no_cycle():
    assert BOOK.graph == {name: list(equation.parents) for name, equation in BOOK.equations.items()}
    order = list(BOOK.data)
    for name, parents in BOOK.graph.items():
        assert all(order.index(parent) < order.index(name) for parent in parents)


def test_the_space_says_what_may_move():
    space = BOOK.space
    assert [feature.name for feature in space if not feature.mutable] == ["sex", "region"]
    assert [f.name for f in space if f.direction == "increasing"] == ["age", "education", "years_employed"]
    assert [f.name for f in space if f.step == 100] == ["income", "savings", "loan_amount"]
    assert space["income"].unit == "dollars a year"
    for feature in space:
        if not feature.is_finite:
            assert feature.lower <= BOOK.data[feature.name].min()
            assert BOOK.data[feature.name].max() <= feature.upper
            assert not feature.lower_inferred
    tiny = loans(1).space
    for name in ("sex", "region", "education", "employment", "has_guarantor"):
        assert tiny[name].levels == space[name].levels
        assert tiny[name].kind == space[name].kind


def test_the_decision_can_be_learnt():
    score = (
        coordinates(BOOK)[["income", "savings", "loan_amount"]].to_numpy() @ [0.6, 0.5, -1.6] / 10_000
        - 0.5 * BOOK.data["open_loans"].to_numpy()
    )
    good = (BOOK.target == "good").to_numpy()
    assert score[good].mean() - score[~good].mean() > 0.5


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n": 0}, InvalidValueError, "loans needs n to be at least 1, but n is 0"),
        ({"n": 2.5}, InvalidTypeError, "n is 2.5"),
        ({"n": True}, InvalidTypeError, "n is True"),
        ({"random_state": -1}, InvalidValueError, "random_state is -1"),
        ({"random_state": None}, InvalidTypeError, "random_state is None"),
    ],
)
def test_bad_arguments(options, error, match):
    with pytest.raises(error, match=match):
        loans(**options)
