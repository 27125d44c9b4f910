"""An estimator for a population: one bad row stops nobody, and what is finished is kept."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

import ceopt
from ceopt import MaxChanges, Recourse, explain
from ceopt.formulations.predictors import Affine
from ceopt.formulations.space import FeatureSpace
from ceopt.search import side_by_side
from ceopt.search.search import search_in_parts
from ceopt.solvers.errors import (
    CeoptError,
    InvalidTypeError,
    InvalidValueError,
    UnknownNameError,
    UnsupportedModelError,
)
from ceopt.surrogates import LocalSurrogateRecourse


@pytest.fixture
def people():
    """Two who need a change, one who does not, and one whom nothing can help."""
    return pd.DataFrame({"income": [1.0, 2.0, 5.0, 2.5], "debt": [0, 0, 0, 9]}, index=["ann", "bob", "cleo", "ann"])


@pytest.fixture
def small(people):
    return FeatureSpace.infer(people).update("debt", mutable=False).update("income", lower=0, upper=6)


@pytest.fixture
def simple():
    return Affine([1.0, -1.0], -3.0, labels=("bad", "good"))


@pytest.fixture
def recourse(simple, small, people):
    return Recourse(simple, small, target="good").fit(people)


def test_rows_come_back_in_order_with_their_own_status(recourse, people):
    cohort = recourse.explain(people)

    assert [result.query_id for result in cohort] == ["ann", "bob", "cleo", "ann"]
    assert [str(result.status) for result in cohort] == ["optimal", "optimal", "already_favourable", "infeasible"]
    assert len(cohort) == 4
    assert cohort.counts() == {"optimal": 2, "infeasible": 1, "already_favourable": 1}
    assert all(cohort.finished)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(["bad", "good", pd.NA, "good"], dtype="string"),
        pd.Series(["bad", "good", None, "good"], dtype=object),
        ["bad", "good", float("nan"), "good"],
        pd.Series(["bad", "good", None, "good"], dtype="category", index=["ann", "bob", "cleo", "ann"]),
    ],
    ids=["NA", "None", "NaN", "category"],
)
@pytest.mark.parametrize("surrogate", [None, LocalSurrogateRecourse()], ids=["read", "surrogate"])
def test_a_missing_label_is_refused_by_its_row(simple, small, people, y, surrogate):
    with pytest.raises(InvalidValueError, match=r"Recourse\.fit needs a label of each row, but y has none in row 2\."):
        Recourse(simple, small, target="good", surrogate=surrogate).fit(people, y)
    gap = people.assign(income=[None, 2.0, 5.0, 2.5])
    with pytest.raises(InvalidValueError, match="y has none in row 2"):  # rows count as they were given
        Recourse(simple, small, target="good", surrogate=surrogate).fit(gap, y)


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "float"])
def test_missing_numbers_and_truths_are_refused_as_labels(small, people, dtype):
    model = Affine([1.0, -1.0], -3.0, labels=(0, 1))
    with pytest.raises(InvalidValueError, match="y has none in row 3"):
        Recourse(model, small, target=1).fit(people, pd.Series([0, 1, 1, None], dtype=dtype))


def test_each_row_is_answered_as_explain_does(credit):
    recourse = Recourse(credit.model, credit.space, target="good", n=2, constraints=[MaxChanges(2)]).fit(credit.frame)
    cohort = recourse.explain(credit.rejected.head(3))

    for label, result in zip(credit.rejected.index, cohort, strict=False):
        alone = explain(
            credit.model, credit.frame.loc[label], credit.space, target="good", n=2, constraints=[MaxChanges(2)],
            data=credit.frame,
        )  # fmt: skip
        pd.testing.assert_frame_equal(result.to_frame(), alone.to_frame(), check_exact=True)
        assert result.bound == alone.bound


@pytest.mark.long
def test_two_processes_give_the_same_frame(credit):
    recourse = Recourse(credit.model, credit.space, target="good").fit(credit.frame)
    rows = credit.rejected.head(3)

    pd.testing.assert_frame_equal(
        recourse.explain(rows, n_jobs=2).to_frame(), recourse.explain(rows).to_frame(), check_exact=True
    )


def test_columns_may_come_in_any_order(recourse, people):
    backwards = recourse.explain(people[["debt", "income"]])

    pd.testing.assert_frame_equal(backwards.to_frame(), recourse.explain(people).to_frame())


def test_a_bad_row_is_one_row_with_a_reason(recourse, people):
    people.iloc[1, 0] = np.nan
    cohort = recourse.explain(people)

    assert [str(result.status) for result in cohort] == ["optimal", "error", "already_favourable", "infeasible"]
    assert "'income' needs a value" in cohort[1].reason
    assert cohort.failures()["status"].tolist() == ["error", "infeasible"]
    assert cohort.failures().index.tolist() == ["bob", "ann"]


def test_an_unforeseen_failure_is_that_rows_reason(recourse, people, monkeypatch):
    def failing(prepared, row, *, query_id, predictions):
        if query_id == "bob":
            raise ZeroDivisionError("in the middle")
        return (yield from search_in_parts(prepared, row, query_id=query_id, predictions=predictions))

    monkeypatch.setattr(side_by_side, "search_in_parts", failing)
    cohort = recourse.explain(people)

    assert [result.status.value for result in cohort][:2] == ["optimal", "error"]
    assert cohort[1].reason == "ZeroDivisionError: in the middle"


def interrupted(monkeypatch, at):
    """Make the search raise Ctrl-C at the call of that number; list who was asked."""
    asked = []

    def stopping(prepared, row, *, query_id, predictions):
        if len(asked) == at:
            raise KeyboardInterrupt
        asked.append(query_id)
        return search_in_parts(prepared, row, query_id=query_id, predictions=predictions)

    monkeypatch.setattr(side_by_side, "search_in_parts", stopping)
    return asked


def test_an_interrupt_keeps_what_is_finished_and_resume_goes_on(recourse, people, monkeypatch, capsys):
    interrupted(monkeypatch, at=2)
    partial = recourse.explain(people)

    assert partial.finished == (True, True, False, False)
    assert [str(result.status) for result in partial] == ["optimal", "optimal", "error", "error"]
    assert "Interrupted" in partial[2].reason
    assert "2 of 4 rows finished and kept" in capsys.readouterr().err

    asked = interrupted(monkeypatch, at=99)
    complete = recourse.explain(people, resume=pickle.loads(pickle.dumps(partial)))
    assert asked == ["cleo", "ann"]
    assert all(complete.finished)
    pd.testing.assert_frame_equal(complete.to_frame(), recourse.explain(people).to_frame())


def test_resume_refuses_what_was_another_question(recourse, simple, small, people):
    cohort = recourse.explain(people)

    with pytest.raises(InvalidTypeError, match="resume is DataFrame"):
        recourse.explain(people, resume=cohort.to_frame())
    with pytest.raises(InvalidValueError, match="the same rows"):
        recourse.explain(people.assign(income=1.5), resume=cohort)
    with pytest.raises(InvalidValueError, match="the same rows"):
        recourse.explain(people.head(2), resume=cohort)
    with pytest.raises(InvalidValueError, match="n was 1 and is 2"):
        recourse.explain(people, resume=cohort, n=2)
    with pytest.raises(InvalidValueError, match="target was 'good' and is 'bad'"):
        Recourse(simple, small, target="bad").fit(people).explain(people, resume=cohort)
    with pytest.raises(InvalidValueError, match="the same space"):
        Recourse(simple, small.update("income", upper=8), target="good").fit(people).explain(people, resume=cohort)
    longer = Recourse(simple, small, target="good", time_limit_s=90).fit(people)
    assert longer.explain(people, resume=cohort).results == cohort.results


def test_progress_is_shown_on_standard_error_only_if_asked(recourse, people, capsys):
    recourse.explain(people)
    assert capsys.readouterr().err == ""

    recourse.explain(people, progress=True)
    shown = capsys.readouterr()
    assert "4/4" in shown.err
    assert shown.out == ""


def test_n_may_be_given_with_the_rows(recourse, people):
    cohort = recourse.explain(people.head(1), n=3)

    assert cohort.options["n"] == 3
    assert recourse.n == 1
    with pytest.raises(InvalidValueError, match="n is 0"):
        recourse.explain(people, n=0)


def test_parameters_are_stored_and_set_as_scikit_learn_does(simple, small):
    recourse = Recourse(simple, small, target="good", n=2)
    parameters = recourse.get_params()

    assert parameters["model"] is simple
    assert parameters["space"] is small
    assert (parameters["n"], parameters["cost"], parameters["time_limit_s"]) == (2, "l1", 60.0)
    assert recourse.set_params(n=5, cost="l0") is recourse
    assert (recourse.n, recourse.cost) == (5, "l0")
    with pytest.raises(ValueError, match="costs"):
        recourse.set_params(costs="l0")
    with pytest.raises(TypeError, match="targets"):
        Recourse(simple, small, target="good", targets="good")


def test_clone_keeps_the_model_and_its_fit(credit):
    recourse = Recourse(credit.model, credit.space, target="good").fit(credit.frame)
    again = clone(recourse)

    assert again.model is credit.model
    check_is_fitted(again.model)
    check_is_fitted(recourse)
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    assert again.fit(credit.frame).explain(credit.rejected.head(1))[0].status == "optimal"


def test_constructing_checks_nothing_and_fitting_everything(simple, small, people):
    wrong = Recourse(simple, small, target="excellent", time_limit_s=0)
    with pytest.raises(UnknownNameError, match="'excellent'"):
        wrong.fit(people)
    with pytest.raises(InvalidValueError, match="time_limit_s is 0"):
        Recourse(simple, small, target="good", time_limit_s=0).fit(people)
    with pytest.raises(UnsupportedModelError, match="not fitted"):
        Recourse(LogisticRegression(), small, target="good").fit(people)


@pytest.mark.parametrize("call", ["fit", "explain"])
@pytest.mark.parametrize(
    ("change", "kind", "match"),
    [
        (lambda frame: frame.iloc[:0], InvalidValueError, "empty"),
        (lambda frame: frame.rename(columns={"debt": "dept"}), UnknownNameError, "'dept'.*Did you mean 'debt'"),
        (lambda frame: frame[["income"]], InvalidValueError, "'debt' once.*0 times"),
        (lambda frame: frame[["income", "debt", "debt"]], InvalidValueError, "'debt' once.*2 times"),
        (lambda frame: frame.to_numpy(), InvalidTypeError, "ndarray"),
    ],
)
def test_misuse_of_a_whole_call_is_refused(recourse, people, call, change, kind, match):
    with pytest.raises(kind, match=f"Recourse.{call}.*{match}") as caught:
        getattr(recourse, call)(change(people))

    assert isinstance(caught.value, CeoptError)


def test_other_misuse_is_refused(simple, small, people, recourse):
    with pytest.raises(InvalidValueError, match="fit was not called"):
        Recourse(simple, small, target="good").explain(people)
    with pytest.raises(InvalidValueError, match="n_jobs is 0"):
        recourse.explain(people, n_jobs=0)
    with pytest.raises(InvalidValueError, match=r"4 rows.*\(3,\)"):
        recourse.fit(people, ["good", "bad", "bad"])
    with pytest.raises(InvalidValueError, match="'good' never occurs"):
        recourse.fit(people, ["bad"] * 4)
    with pytest.raises(InvalidValueError, match="'good' never occurs"):
        recourse.fit(people, pd.Series([0, 1, 0, 1]))
    assert recourse.fit(people, ["bad", "bad", "good", "bad"]) is recourse


def test_an_estimator_survives_a_pickle(recourse, people):
    again = pickle.loads(pickle.dumps(recourse))

    pd.testing.assert_frame_equal(again.explain(people).to_frame(), recourse.explain(people).to_frame())


@pytest.mark.parametrize(("n_jobs", "total_s"), [(1, 20.0), (2, 300.0)])  # the start of processes counts
def test_rows_share_a_limit_and_leave_what_they_do_not_need_to_those_after_them(recourse, people, n_jobs, total_s):
    own = recourse.explain(people)
    shared = recourse.explain(people, total_time_limit_s=total_s, n_jobs=n_jobs)

    assert own.to_frame().equals(shared.to_frame())
    assert [result.options["time_limit_s"] for result in own] == [60.0] * 4
    limits = [result.options["time_limit_s"] for result in shared]
    assert max(limits) <= min(total_s, 60.0)
    if n_jobs == 1:
        # Half of what is left as long as nothing is known of how long a row takes, then equal parts, then all.
        assert limits == pytest.approx([10.0, 20.0 / 3.0, 10.0, 20.0], rel=0.2)
    assert [result.options["time_limit_s"] for result in recourse.explain(people, total_time_limit_s=1e6)] == [60.0] * 4


def test_a_limit_that_is_used_up_leaves_every_row_with_a_reason(recourse, people):
    cohort = recourse.explain(people, total_time_limit_s=1e-9)

    assert len(cohort) == 4
    assert cohort.counts() == {"time_limit": 4}
    assert cohort.finished == (False,) * 4
    assert {result.reason for result in cohort} == {
        "The time for all rows was used up before this one was begun; pass this cohort as resume to go on."
    }
    assert ceopt.Cohort.from_json(cohort.to_json()).failures().equals(cohort.failures())
    again = recourse.explain(people, resume=cohort, total_time_limit_s=60.0)
    assert again.to_frame().equals(recourse.explain(people).to_frame())
    assert again.finished == (True,) * 4
    with pytest.raises(InvalidValueError, match="total_time_limit_s is 0"):
        recourse.explain(people, total_time_limit_s=0)
