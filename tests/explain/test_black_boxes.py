"""``explain`` with a black box: through a surrogate, or refused with the line to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import ceopt
from ceopt import AtLeast, CeoptError, MaxChanges, OtherThan
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnsupportedModelError
from ceopt.surrogates import BoundarySampler, LocalSurrogateRecourse, NoBoundaryError, SvmSurrogate

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
SPACE = ceopt.FeatureSpace.infer(X)
SVM = LocalSurrogateRecourse(BoundarySampler(n_samples=200), SvmSurrogate(), max_rounds=1)


def predict(rows: pd.DataFrame) -> Any:
    return np.where(rows["a"] + 0.5 * rows["b"] > 0.5, "yes", "no")


Y = predict(X)
ROW = X[Y == "no"].iloc[0]
LINE = (
    r"from ceopt\.surrogates import LocalSurrogateRecourse; explain\(\.\.\., surrogate=LocalSurrogateRecourse\(\), data"
)


class Unknown:
    """A model of no library: it knows no names, so that it is given arrays."""

    classes_ = np.array(["no", "yes"])

    def predict(self, rows: Any) -> Any:
        return predict(pd.DataFrame(rows, columns=list(X)))


class TakesFrames:
    """A model of no library that takes frames alone, and does not say so."""

    classes_ = np.array(["no", "yes"])

    def predict(self, rows: Any) -> Any:
        return predict(rows)


class WithoutClasses:
    """A model of no library that is known by its answers alone."""

    def predict(self, rows: Any) -> Any:
        return predict(rows)


def ask(model: Any = predict, **given: Any) -> ceopt.SolutionSet:
    keywords = {"target": "yes", "data": X, "surrogate": SVM} | given
    return ceopt.explain(model, ROW, SPACE, **keywords)


REFUSED = {
    "RBF": lambda: SVC().fit(X, Y),
    "kNN": lambda: KNeighborsClassifier().fit(X, Y),
    "Gaussian process": lambda: GaussianProcessClassifier().fit(X, Y),
    "stacking": lambda: StackingClassifier([("svc", SVC()), ("knn", KNeighborsClassifier())], cv=2).fit(X, Y),
    "unknown class": Unknown,
    "function": lambda: predict,
    "method": lambda: LogisticRegression().fit(X, Y).predict,
    "method of no library": lambda: Unknown().predict,
    "lambda": lambda: lambda rows: np.where(rows["a"] + 0.5 * rows["b"] > 0.5, "yes", "no"),
    "object without classes": WithoutClasses,
}


@pytest.mark.long(every=2)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_stated_is_refused_with_the_line_to_write_and_that_line_answers(kind: str) -> None:
    model = REFUSED[kind]()
    with pytest.raises(UnsupportedModelError, match=LINE):
        ceopt.explain(model, ROW, SPACE, target="yes")
    with pytest.raises(UnsupportedModelError, match=LINE):
        ceopt.Recourse(model, SPACE, target="yes").fit(X)
    result = ask(model)

    asked = model.predict if hasattr(model, "predict") else model
    assert result.status == "feasible"
    assert (asked(result.to_frame()[["a", "b"]]) == "yes").all()
    assert ceopt.verify(result, model, SPACE, target="yes").ok


def test_the_method_of_a_model_that_can_be_stated_names_the_model() -> None:
    with pytest.raises(UnsupportedModelError, match="a method of LogisticRegression.*Give the model itself"):
        ceopt.explain(LogisticRegression().fit(X, Y).predict, ROW, SPACE, target="yes")


@pytest.mark.parametrize("model", [SVC(), SVC, 5, "model.foo", None], ids=["not fitted", "class", "5", "path", "None"])
def test_what_no_surrogate_helps_is_not_sent_to_one(model: Any) -> None:
    with pytest.raises(CeoptError) as raised:
        ceopt.explain(model, ROW, SPACE, target="yes")
    assert "LocalSurrogateRecourse" not in str(raised.value)


def test_it_is_what_the_surrogate_itself_answers() -> None:
    rules = [MaxChanges(1)]
    ours = ask(n=2, cost="l2", constraints=rules, diversity="support", random_state=3, time_limit_s=30)
    own = SVM.explain(
        predict, ROW, SPACE, target="yes", data=X, n=2, cost="l2", constraints=rules, diversity="support",
        random_state=3, time_limit_s=30,
    )  # fmt: skip

    pd.testing.assert_frame_equal(ours.to_frame(), own.to_frame(), check_exact=True)
    assert [answer.way for answer in ours] == [answer.way for answer in own]
    assert ours.surrogate is not None
    assert own.surrogate is not None
    assert ours.surrogate.to_mapping() == own.surrogate.to_mapping()
    assert {key: ours.options[key] for key in ("n", "cost", "random_state")} == {
        "n": 2,
        "cost": "l2",
        "random_state": 3,
    }
    assert ours.options["time_limit_s"] == 30
    assert len(ours[0].changed) == 1


def test_cost_none_is_that_of_the_search() -> None:
    actionable = LocalSurrogateRecourse(SVM.sampler, SvmSurrogate(), search="actionable", max_rounds=0)

    assert ask(surrogate=actionable, cost=None).options["cost"] == "Percentile('max')"
    assert ask(surrogate=actionable).options["cost"] == "l1"


def test_the_exact_engine_bounds_it_where_it_knows_the_optimum() -> None:
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X, Y)
    exact = ceopt.explain(forest, ROW, SPACE, target="yes", data=X)
    result = ask(forest)

    assert exact.status == "optimal"
    assert result[0].cost >= exact[0].cost
    assert result[0].prediction == "yes"


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("model", "target"),
    [
        (predict, ["yes"]),
        (predict, {"yes", "maybe"}),
        (predict, OtherThan("no")),
        (lambda rows: rows["a"] + rows["b"], AtLeast(0.8)),
        (lambda rows: (rows["a"] > 0.2).to_numpy(), True),
        (lambda rows: (rows["a"] > 0.2).astype(int).tolist(), 1),
    ],
)
def test_targets_of_a_function(model: Any, target: Any) -> None:
    result = ask(model, target=target)

    assert result.status == "feasible"
    assert ceopt.verify(result, model, SPACE, target=target).ok


def test_a_saved_model_is_a_black_box_too(tmp_path: Path) -> None:
    from skl2onnx import to_onnx

    path = tmp_path / "model.onnx"
    model = LogisticRegression().fit(X.to_numpy(np.float32), Y == "yes")
    path.write_bytes(to_onnx(model, X.to_numpy(np.float32)[:1]).SerializeToString())
    result = ask(str(path), target=1)

    assert result.status == "feasible"
    assert ceopt.verify(result, path, SPACE, target=1).ok


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"data": None}, r"data beside a surrogate, but data is None\. Give data=X_train"),
        ({"data": X.to_numpy()}, "a DataFrame as data, but data is ndarray"),
        ({"surrogate": LocalSurrogateRecourse}, "surrogate is the class LocalSurrogateRecourse.*surrogate=LocalSurr"),
        ({"surrogate": SvmSurrogate()}, r"surrogate is SvmSurrogate\. Give surrogate=LocalSurrogateRecourse\(\)"),
        ({"surrogate": "fisher_rao"}, "surrogate is str"),
        ({"surrogate": False}, "surrogate is bool"),
        ({"starts": X.head(1)}, "no starts beside a surrogate.*Add the points to data"),
        ({"relative_gap": 1e-3}, r"no relative_gap beside a surrogate, but relative_gap is 0\.001"),
        ({"margin": 0.1}, r"no margin beside a surrogate, but margin is 0\.1\. .*LocalSurrogateRecourse\(margin="),
        ({"margin": 0.0}, "no margin beside"),
        ({"formulation": "leaf"}, "no formulation beside"),
        ({"threads": 2}, "no threads beside.*n_jobs"),
        ({"threads": True}, "no threads beside"),
        ({"solver_options": {}}, "no solver_options beside"),
        ({"why": False}, "no why beside"),
        ({"why": 3}, "no why beside"),
        ({"target": "granted"}, "there is none for target 'granted', and predict returns 'no', 'yes'"),
        ({"n": 0}, "n is 0"),
        ({"cost": "l7"}, "l7"),
        ({"time_limit_s": -1}, "time_limit_s"),
        ({"solver": "cplex"}, "cplex"),
        ({"constraints": 5}, "constraints"),
        ({"space": None}, "a FeatureSpace"),
    ],
)
def test_what_has_no_meaning_beside_a_surrogate_is_refused_by_name(given: dict[str, Any], match: str) -> None:
    space = given.pop("space", SPACE)
    with pytest.raises(CeoptError, match=match) as raised:
        ceopt.explain(predict, ROW, space, **({"target": "yes", "data": X, "surrogate": SVM} | given))
    assert str(raised.value).rstrip().endswith(".")


@pytest.mark.parametrize(
    ("model", "kind", "match"),
    [
        (lambda rows: np.column_stack([rows["a"], rows["b"]]), InvalidValueError, "shape"),
        (lambda rows: 1 / (1 + np.exp(-rows["a"])), CeoptError, "."),
        (lambda rows: np.full(len(rows), "no"), NoBoundaryError, "."),
        (lambda rows: rows["c"], InvalidValueError, "predict raised KeyError"),
        (lambda rows: (rows["a"] > 0).astype(int), InvalidValueError, "labels of the kind of 'yes'"),
        (lambda rows: np.random.default_rng().choice(["yes", "no"], len(rows)), InvalidValueError, "asked again"),
        (TakesFrames(), InvalidValueError, "predict raised IndexError.*It is given an array"),
        (SVC(), UnsupportedModelError, "SVC is not fitted"),
        (5, InvalidTypeError, "a fitted model or a function of rows"),
    ],
)
def test_functions_that_do_not_answer_are_refused(model: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        ask(model)


def test_who_is_favourable_needs_nothing() -> None:
    result = ceopt.explain(predict, X[Y == "yes"].iloc[0], SPACE, target="yes", data=X, surrogate=SVM)

    assert result.status == "already_favourable"
    assert len(result) == 0


def test_memory_that_runs_out_is_a_status() -> None:
    def hungry(rows: pd.DataFrame) -> Any:
        raise MemoryError

    result = ask(hungry)
    assert result.status == "error"
    assert "Memory ran out" in result.reason
