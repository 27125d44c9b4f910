"""The picture of a sample: its rows by what the model says, its boundary point, and the surrogate's line."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ceopt import CeoptError, FeatureSpace
from ceopt.pictures.surface import Plane, segment_of
from ceopt.surrogates import BoundarySampler, SvmSurrogate


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, 200),
            "loans": rng.integers(0, 9, 200),
            "age": rng.integers(20, 70, 200),
            "job": rng.choice(["cook", "nurse"], 200),
        }
    )


@pytest.fixture(scope="module")
def sample(people):
    row = {"income": 20.0, "loans": 4, "age": 30, "job": "cook"}
    sampler = BoundarySampler(n_samples=150, radius=0.2)
    space = FeatureSpace.infer(people, categorical=["job"], moves={"age": "up"}).update("income", unit="k$")
    return sampler.sample(lambda rows: rows["income"] - 2 * rows["loans"] > 20, row, people, target=True, space=space)


def test_rows_stand_where_they_are_with_a_mark_for_what_the_model_says(sample):
    ax = sample.plot(["loans", "income"])

    good, bad, boundary = ax.lines
    of = sample.points[["loans", "income"]].to_numpy(dtype=float)
    assert np.array_equal(good.get_xydata(), of[sample.favourable])
    assert np.array_equal(bad.get_xydata(), of[~sample.favourable])
    assert good.get_marker() != bad.get_marker()
    assert boundary.get_xydata().tolist() == [[sample.boundary["loans"], sample.boundary["income"]]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("loans", "income (k$)")


def test_the_line_is_where_the_surrogate_is_nought_with_the_other_columns_of_the_point(sample, people):
    rng = np.random.default_rng(2)
    coef, intercept = rng.normal(size=len(sample.columns.names)), 0.0
    at_point = sample.columns.encode(sample.boundary.to_frame().T)[0] @ coef
    ax = sample.plot(["loans", "income"], surrogate=(coef, intercept - at_point + 0.05))

    ends = ax.lines[3].get_xydata()
    assert len(ends) == 2
    for loans, income in ends.tolist():
        place = {name: list(sample.columns.names).index(name) for name in sample.columns.names}
        z = sample.columns.encode(sample.boundary.to_frame().T)[0].copy()
        z[place["income"]] = income / people["income"].std(ddof=0)
        z[place["loans"]] = loans / people["loans"].std(ddof=0)
        assert z @ coef + intercept - at_point + 0.05 == pytest.approx(0.0, abs=1e-9)


def test_a_fitted_surrogate_and_that_of_a_result_are_taken(sample, people):
    row = {"income": 20.0, "loans": 4, "age": 30, "job": "cook"}
    fitted = SvmSurrogate().fit_local(
        lambda rows: rows["income"] - 2 * rows["loans"] > 20, row, people, target=True, space=sample.columns.space,
        sample=sample,
    )  # fmt: skip

    ax = sample.plot(["loans", "income"], surrogate=fitted)

    assert ax.get_legend().get_texts()[-1].get_text() == "surrogate, at its other columns"


def test_a_surrogate_whose_line_is_elsewhere_says_so(sample):
    flat = (np.zeros(len(sample.columns.names)), 1.0)

    ax = sample.plot(["loans", "income"], surrogate=flat)

    assert ax.get_legend().get_texts()[-1].get_text() == "surrogate: its line is not here"
    assert len(ax.lines[-1].get_xdata()) == 0


@pytest.mark.parametrize(
    ("plane", "ends"),
    [
        (Plane(1.0, 0.0, -1.0), ((1.0, 0.0), (1.0, 2.0))),
        (Plane(0.0, 2.0, -1.0), ((0.0, 0.5), (2.0, 0.5))),
        (Plane(1.0, -1.0, 0.0), ((0.0, 0.0), (2.0, 2.0))),
        (Plane(1.0, 1.0, 5.0), None),
    ],
)
def test_a_line_ends_at_the_rim_of_the_picture(plane, ends):
    assert segment_of(plane, (0.0, 2.0, 0.0, 2.0)) == ends


@pytest.mark.parametrize(
    ("columns", "surrogate", "sentence"),
    [
        (["loans", "incom"], None, "needs a known column, but column is 'incom'. Did you mean 'income'?"),
        (
            ["loans", "job"],
            None,
            "needs columns of numbers, but 'job' is categorical. Choose from: income, loans, age.",
        ),
        (["loans"], None, "needs two columns, but columns are 'loans'"),
        (["loans", "loans"], None, "needs two columns"),
        ("loans", None, "needs a list of two names as columns"),
        (["loans", "income"], "svm", "needs a linear surrogate, but surrogate is str"),
        (["loans", "income"], ([1.0], 0.0), "needs 5 finite coefficients, but surrogate is tuple with 1"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(sample, columns, surrogate, sentence):
    with pytest.raises(CeoptError, match=r"^BoundarySample\.plot") as error:
        sample.plot(columns, surrogate=surrogate)

    assert sentence in str(error.value)


def test_given_axes_are_drawn_on(sample):
    figure, given = plt.subplots()

    assert sample.plot(["loans", "income"], ax=given, dark=True) is given
    assert plt.get_fignums() == [figure.number]
    plt.close(figure)


def test_without_matplotlib_the_extra_is_named(sample, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(ImportError, match=r"pip install 'ceopt\[plot\]'"):
        sample.plot(["loans", "income"])
