"""Many people before a black box: as any other model, and the data asked about once."""

from __future__ import annotations

import pickle
import sys
import types
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import CeoptError, Hull, MaxChanges, Recourse, SolutionSet
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError
from ceopt.surrogates import BoundarySampler, LocalSurrogateRecourse, MinimaxProbabilityMachine, SvmSurrogate

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
SPACE = ceopt.FeatureSpace.infer(X)
SAMPLER = BoundarySampler(n_samples=200)
SVM = LocalSurrogateRecourse(SAMPLER, SvmSurrogate(), max_rounds=1)


def predict(rows: pd.DataFrame) -> Any:
    return np.where(rows["a"] + 0.5 * rows["b"] > 0.5, "yes", "no")


class Counted:
    """A function that counts its rows, and may fail about some."""

    def __init__(self, fails: Any = None) -> None:
        self.rows = 0
        self.fails = fails

    def __call__(self, rows: pd.DataFrame) -> Any:
        self.rows += len(rows)
        if self.fails is not None and self.fails(rows):
            raise ZeroDivisionError("in the middle")
        return predict(rows)


PEOPLE = X[predict(X) == "no"].head(3).set_axis(["ann", "bob", "ann"])


def fitted(model: Any = predict, **given: Any) -> Recourse:
    return Recourse(model, SPACE, **({"target": "yes", "surrogate": SVM} | given)).fit(X)


def test_rows_come_back_in_order_as_explain_answers_them() -> None:
    favourable = X[predict(X) == "yes"].head(1)
    people = pd.concat([PEOPLE, favourable])
    cohort = fitted(n=2, constraints=[MaxChanges(1)]).explain(people)

    assert [result.query_id for result in cohort] == ["ann", "bob", "ann", int(favourable.index[0])]
    assert [str(result.status) for result in cohort] == ["feasible"] * 3 + ["already_favourable"]
    assert all(cohort.finished)
    for place in range(3):
        alone = ceopt.explain(
            predict, people.iloc[place], SPACE, target="yes", data=X, surrogate=SVM, n=2, constraints=[MaxChanges(1)]
        )
        pd.testing.assert_frame_equal(cohort[place].to_frame(), alone.to_frame(), check_exact=True)
        assert [answer.way for answer in cohort[place]] == [answer.way for answer in alone]
        assert all(answer.verified for answer in cohort[place])
    assert ceopt.verify(cohort[0], predict, SPACE, target="yes", constraints=[MaxChanges(1)]).ok
    table = cohort.to_frame()
    assert table["bound"].isna().all()  # nothing is proved about the model


def test_the_model_is_asked_about_the_data_once() -> None:
    model = Counted()
    recourse = fitted(model)
    at_fit = model.rows
    cohort = recourse.explain(PEOPLE)
    sent = [result.surrogate.n_queries for result in cohort if result.surrogate is not None]

    assert at_fit == len(X) + 32 + 50  # some a second time, and some by which a function is known again
    assert len(sent) == 3
    assert model.rows - at_fit == 50 + sum(sent)
    alone = ceopt.explain(predict, PEOPLE.iloc[0], SPACE, target="yes", data=X, surrogate=SVM).surrogate
    assert alone is not None
    assert alone.n_queries == sent[0] + len(X) + 32


def test_two_processes_give_the_same_frame_of_a_lambda() -> None:
    recourse = fitted(lambda rows: np.where(rows["a"] + 0.5 * rows["b"] > 0.5, "yes", "no"))
    with joblib.parallel_config(backend="threading"):
        threads = recourse.explain(PEOPLE, n_jobs=2).to_frame()

    pd.testing.assert_frame_equal(threads, recourse.explain(PEOPLE).to_frame(), check_exact=True)


@pytest.mark.long
def test_other_processes_are_not_sent_the_data_again() -> None:
    at = 0.5  # a function in a function travels whole, and one of this file by a name that no other process knows
    recourse = fitted(lambda rows: np.where(rows["a"] + at * rows["b"] > at, "yes", "no"))
    there = recourse.explain(PEOPLE, n_jobs=2)

    pd.testing.assert_frame_equal(there.to_frame(), recourse.explain(PEOPLE).to_frame(), check_exact=True)
    assert there[0].surrogate is not None
    assert there[0].surrogate.n_queries < len(X) + 1800


@pytest.mark.long
def test_a_function_that_another_process_cannot_find_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    here_alone = types.ModuleType("here_alone")
    accepts = types.FunctionType(predict.__code__, {"np": np, "__name__": "here_alone"}, "accepts")
    accepts.__qualname__ = "accepts"
    monkeypatch.setattr(here_alone, "accepts", accepts, raising=False)
    monkeypatch.setitem(sys.modules, "here_alone", here_alone)

    with pytest.raises(InvalidTypeError, match=r"n_jobs is not 1, but .*No module named"):
        fitted(accepts).explain(PEOPLE, n_jobs=2)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree", "brute"])
def test_neighbours_are_the_same_model_after_they_were_asked(algorithm: str) -> None:
    model = KNeighborsClassifier(5, algorithm=algorithm).fit(X, predict(X))
    recourse = fitted(model)
    bad = X[model.predict(X) == "no"].head(1)

    assert recourse.explain(bad).to_frame().equals(recourse.explain(bad).to_frame())
    model.fit(X, predict(X + 0.5))
    with pytest.raises(InvalidValueError, match="was changed or fitted again since"):
        recourse.explain(bad)


def test_what_is_wrong_with_a_row_is_that_rows_reason_and_no_finished_row_is_lost() -> None:
    people = PEOPLE.copy()
    people.iloc[1, 0] = np.nan
    cohort = fitted().explain(people)

    assert [str(result.status) for result in cohort] == ["feasible", "error", "feasible"]
    assert "'a' needs a value" in cohort[1].reason
    assert cohort.failures().index.tolist() == ["bob"]
    assert cohort[1].options["surrogate"] == repr(SVM)


def test_a_model_that_fails_about_one_person_fails_for_that_one() -> None:
    second = PEOPLE.iloc[1].tolist()
    model = Counted(lambda rows: len(rows) == 1 and rows.iloc[0].tolist() == second)
    cohort = fitted(model).explain(PEOPLE)

    assert [str(result.status) for result in cohort] == ["feasible", "error", "feasible"]
    assert "predict raised ZeroDivisionError: in the middle" in cohort[1].reason


def test_rows_that_may_not_be_sent_are_a_reason() -> None:
    few = LocalSurrogateRecourse(BoundarySampler(n_samples=200, max_queries=160), SvmSurrogate())
    cohort = fitted(surrogate=few).explain(PEOPLE)

    assert [str(result.status) for result in cohort] == ["error"] * 3
    assert all("max_queries is 160" in result.reason for result in cohort)


@pytest.mark.long
def test_an_interrupt_keeps_what_is_finished_and_resume_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered = LocalSurrogateRecourse.explain
    asked = []

    def stopping(self: Any, model: Any, row: Any, *rest: Any, **given: Any) -> SolutionSet:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(row)
        return answered(self, model, row, *rest, **given)

    recourse = fitted()
    monkeypatch.setattr(LocalSurrogateRecourse, "explain", stopping)
    partial = recourse.explain(PEOPLE)
    assert partial.finished == (True, True, False)
    assert "2 of 3 rows finished and kept" in capsys.readouterr().err

    monkeypatch.undo()
    whole = recourse.explain(PEOPLE, resume=pickle.loads(pickle.dumps(partial)))
    assert all(whole.finished)
    pd.testing.assert_frame_equal(whole.to_frame(), recourse.explain(PEOPLE).to_frame())


def test_progress_is_shown_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    recourse = fitted()
    recourse.explain(PEOPLE.head(1))
    assert not capsys.readouterr().err
    recourse.explain(PEOPLE.head(1), progress=True)
    assert "1/1" in capsys.readouterr().err


def test_sets_and_cohorts_go_through_json_and_pickle() -> None:
    cohort = fitted().explain(PEOPLE)
    again = pickle.loads(pickle.dumps(cohort))
    read = SolutionSet.from_json(cohort[0].to_json())

    pd.testing.assert_frame_equal(again.to_frame(), cohort.to_frame())
    assert read[0].way == cohort[0][0].way
    assert read.to_json() == cohort[0].to_json()
    assert read.query_id == "ann"


@pytest.mark.long
def test_clone_and_pickle_keep_the_model_and_the_fit() -> None:
    recourse = fitted(KNeighborsClassifier().fit(X, predict(X)))
    anew = clone(recourse)
    read = pickle.loads(pickle.dumps(recourse))

    assert not hasattr(anew, "fit_")
    assert anew.surrogate is SVM
    table = recourse.explain(PEOPLE).to_frame()
    pd.testing.assert_frame_equal(anew.fit(X).explain(PEOPLE).to_frame(), table)
    pd.testing.assert_frame_equal(read.explain(PEOPLE).to_frame(), table)


@pytest.mark.long
def test_what_only_explain_uses_counts_when_it_is_called() -> None:
    recourse = fitted()
    before = recourse.explain(PEOPLE)
    dearer = recourse.set_params(cost="l0").explain(PEOPLE)

    assert before[0].options["cost"] == "l1"
    assert dearer[0][0].cost == 1.0
    assert len(recourse.explain(PEOPLE, n=2)[0]) == 2
    with pytest.raises(InvalidValueError, match="cost was 'l1' and is 'l0'"):
        recourse.explain(PEOPLE, resume=before)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"target": "no"}, "target was changed since"),
        ({"space": SPACE.update("a", mutable=False)}, "space was changed since"),
        ({"data": X.head(50)}, "data was changed since"),
        ({"surrogate": None}, "surrogate was changed since"),
        ({"surrogate": LocalSurrogateRecourse(SAMPLER, SvmSurrogate(C=2.0), max_rounds=1)}, "surrogate was changed"),
        ({"model": lambda rows: np.where(rows["b"] > 0, "yes", "no")}, "function was changed or fitted again since"),
        ({"margin": 0.1}, "no margin beside a surrogate"),
        ({"why": False}, "no why beside a surrogate"),
        ({"starts": X.head(1)}, "no starts beside a surrogate"),
        ({"constraints": [ceopt.Linear({"c": 1.0}, "<=", 1.0)]}, "'c'"),
    ],
)
def test_what_fit_has_used_and_what_has_no_meaning_is_refused(change: dict[str, Any], match: str) -> None:
    recourse = fitted(lambda rows: np.where(rows["a"] + 0.5 * rows["b"] > 0.5, "yes", "no"))
    with pytest.raises(CeoptError, match=match):
        recourse.set_params(**change).explain(PEOPLE)


def test_a_surrogate_beside_an_exact_fit_asks_for_another() -> None:
    recourse = Recourse(DecisionTreeClassifier(max_depth=3).fit(X, predict(X)), SPACE, target="yes").fit(X)
    with pytest.raises(InvalidValueError, match="surrogate was changed since"):
        recourse.set_params(surrogate=SVM).explain(PEOPLE)


def test_fit_checks_everything_and_constructing_nothing() -> None:
    Recourse(5, SPACE, target=None, surrogate="none")
    for given, match in [
        ({"model": 5}, "a fitted model or a function of rows"),
        ({"target": 1}, "labels of the kind of 1"),
        ({"surrogate": SvmSurrogate()}, "surrogate is SvmSurrogate"),
        ({"cost": "l9"}, "l9"),
        ({"solver": "none"}, "'none'"),
        ({"n": -1}, "n is -1"),
        ({"why": False}, "no why"),
    ]:
        with pytest.raises(CeoptError, match=match):
            fitted(**given)


@pytest.mark.long
def test_labels_count_where_no_rule_learns_from_rows_and_are_refused_where_one_does() -> None:
    recourse = Recourse(predict, SPACE, target="yes", surrogate=SVM)

    assert len(recourse.fit(X, predict(X)).explain(PEOPLE.head(1))[0]) == 1
    with pytest.raises(InvalidValueError, match=r"one label for each of 120 rows, but y has shape \(3,\)"):
        recourse.fit(X, [1, 2, 3])
    with pytest.raises(InvalidValueError, match="a rule that learns from rows, but y is given and Hull has no rows"):
        recourse.set_params(constraints=[Hull()]).fit(X, predict(X))
    result = recourse.fit(X).explain(PEOPLE.head(1))[0]
    assert ceopt.verify(result, predict, SPACE, target="yes", constraints=[Hull()], data=X).ok


def test_a_cohort_of_another_surrogate_is_not_resumed() -> None:
    cohort = fitted().explain(PEOPLE)
    other = LocalSurrogateRecourse(SAMPLER, MinimaxProbabilityMachine(), max_rounds=1)

    with pytest.raises(InvalidValueError, match="the same surrogate to resume"):
        fitted(surrogate=other).explain(PEOPLE, resume=cohort)
    with pytest.raises(InvalidValueError, match="the same data to resume"):
        Recourse(predict, SPACE, target="yes", surrogate=SVM).fit(X.head(100)).explain(PEOPLE, resume=cohort)
    assert fitted().explain(PEOPLE, resume=cohort).results == cohort.results
