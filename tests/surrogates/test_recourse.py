"""LocalSurrogateRecourse: answers that the model confirms, by every way, beside what the exact engine knows."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import ceopt
from ceopt import CeoptError, Linear, MaxChanges, SolutionSet
from ceopt.formulations.costs import L1
from ceopt.formulations.digits import digits
from ceopt.formulations.space import FeatureSpace
from ceopt.settings import Settings
from ceopt.solvers.errors import UnsupportedProblemError
from ceopt.surrogates import (
    BoundarySampler,
    LimelsSurrogate,
    LimeSurrogate,
    LocalSurrogateRecourse,
    MinimaxProbabilityMachine,
    NoBoundaryError,
    QueryLimitError,
    SvmSurrogate,
)
from ceopt.surrogates.boundary_way import BoundaryWay
from ceopt.surrogates.surrogate_program import SurrogateProgram

rng = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "a": rng.normal(size=200),
        "b": 3.0 * rng.normal(size=200),
        "k": rng.integers(0, 6, 200),
        "job": rng.choice(["x", "y", "z"], 200),
    }
)
SPACE = FeatureSpace.infer(X)
SMALL = BoundarySampler(n_samples=300)


def predict(rows: pd.DataFrame) -> Any:
    return rows["a"] + rows["b"] / 3.0 + 0.4 * rows["k"] + 0.8 * (rows["job"] == "y") > 1.5


def slanted(rows: pd.DataFrame) -> Any:
    return rows["a"] + rows["b"] / 5.0 > 0.5


BAD = X[~predict(X)]
ROW = BAD.iloc[3]
NUMBERS = X[["a", "b"]]
PLANE = FeatureSpace.infer(NUMBERS)


def asked(row: Any = ROW, space: FeatureSpace = SPACE, model: Any = predict, **given: Any) -> SolutionSet:
    own = {
        name: given.pop(name) for name in ("sampler", "surrogate", "search", "margin", "max_rounds") if name in given
    }
    own.setdefault("sampler", SMALL)
    given.setdefault("target", True)
    given.setdefault("data", X)
    return LocalSurrogateRecourse(**own).explain(model, row, space, **given)


def require_sound(result: SolutionSet, model: Any = predict) -> None:
    assert result.status == "feasible"
    assert model(result.to_frame()).all()
    assert math.isnan(result.bound)
    assert math.isnan(result.gap)
    assert "checked on the model itself" in result.reason
    if result[0].way == "boundary":
        assert "nothing is proved" in result.reason
        assert "No surrogate served: " in result.reason
    else:
        assert "proved about a linear surrogate" in result.reason
    for answer in result:
        assert answer.verified
        assert answer.prediction
        assert answer.way in {"surrogate", "grown", "boundary"}
        assert list(answer.frame.dtypes) == list(X[list(answer.frame)].dtypes)


@pytest.mark.long
@pytest.mark.parametrize("search", ["projection", "robust", "actionable", "roar", "wachter"])
def test_every_search_answers_on_mixed_columns(search: str) -> None:
    result = asked(search=search)

    require_sound(result)
    assert result[0].cost > 0.0
    assert result.options["search"] == search


@pytest.mark.long
@pytest.mark.parametrize("surrogate", [None, MinimaxProbabilityMachine(), SvmSurrogate(), LimeSurrogate(n_samples=300)])
def test_the_answer_is_no_dearer_than_the_boundary_point(surrogate: Any) -> None:
    for k in range(2):
        row = BAD.iloc[k]
        sample = SMALL.sample(predict, row, X, target=True, space=SPACE)
        result = asked(row, surrogate=surrogate)

        require_sound(result)
        home, boundary = (SPACE.row(one) for one in (row, sample.boundary))
        assert result[0].cost <= L1().value(SPACE, home, boundary) * (1.0 + 1e-9)


def test_on_a_linear_model_it_is_nearly_the_optimum() -> None:
    model = LogisticRegression().fit(NUMBERS, NUMBERS["a"] + NUMBERS["b"] / 3.0 > 0.5)
    row = NUMBERS[~model.predict(NUMBERS)].iloc[0]
    exact = ceopt.explain(model, row, PLANE, target=True)
    found = asked(row, PLANE, model, data=NUMBERS)

    require_sound(found, lambda rows: model.predict(rows[["a", "b"]]))
    assert exact[0].cost - 1e-4 <= found[0].cost <= 1.1 * exact[0].cost
    assert found.surrogate.fidelity > 0.9
    assert found.surrogate.program_status == "optimal"


def test_on_a_forest_it_is_never_below_the_optimum() -> None:
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(NUMBERS, NUMBERS["a"] * NUMBERS["b"] > 0.5)
    row = NUMBERS[~model.predict(NUMBERS)].iloc[1]
    exact = ceopt.explain(model, row, PLANE, target=True)
    found = asked(row, PLANE, model, data=NUMBERS)

    require_sound(found, lambda rows: model.predict(rows[["a", "b"]]))
    assert found[0].cost >= exact[0].cost * (1.0 - 1e-6)


@pytest.mark.long
def test_rules_and_fixed_columns_are_kept() -> None:
    fixed = SPACE.update("job", mutable=False).update("a", direction="increasing")
    for row in (BAD.iloc[0], BAD.iloc[5]):
        result = asked(row, fixed, constraints=[MaxChanges(2), Linear({"b": 1.0}, "<=", 4.0)])

        require_sound(result)
        values = result[0].values
        assert values["job"] == row["job"]
        assert values["a"] >= row["a"]
        assert values["b"] <= 4.0
        assert len(result[0].changed) <= 2


def test_several_answers_differ() -> None:
    result = asked(n=3, diversity="support", surrogate=SvmSurrogate())

    require_sound(result)
    assert len({answer.changed for answer in result}) == len(result)
    assert [answer.rank for answer in result] == list(range(1, len(result) + 1))


@pytest.mark.long
def test_without_rounds_the_radius_grows() -> None:
    ways = []
    for k in (2, 3):
        result = asked(BAD.iloc[k], sampler=BoundarySampler(), max_rounds=0)
        require_sound(result)
        ways.append(result[0].way)
        if result[0].way == "grown":
            assert result.surrogate.radius > 1.0

    assert "grown" in ways


class Lax(SvmSurrogate):  # type: ignore[misc]
    """A surrogate that favours too much."""

    def fit_local(self, *given: Any, **named: Any) -> Any:
        super().fit_local(*given, **named)
        self.intercept_ += 0.2 * float(np.linalg.norm(self.coef_))
        return self


def test_without_a_radius_the_margin_grows() -> None:
    row = NUMBERS[~slanted(NUMBERS)].iloc[1]
    result = asked(row, PLANE, slanted, data=NUMBERS, max_rounds=0, surrogate=Lax())

    require_sound(result, slanted)
    assert result[0].way == "grown"
    assert math.isnan(result.surrogate.radius)


class Rounded(SvmSurrogate):  # type: ignore[misc]
    """A surrogate about one column, with the rounding of a linear system in the others."""

    def fit_local(self, *given: Any, **named: Any) -> Any:
        super().fit_local(*given, **named)
        scale = np.where(np.abs(self.coef_) == np.abs(self.coef_).max(), 1.0, 1e-16)
        self.coef_ = self.coef_ * scale
        return self


def test_what_is_rounding_in_a_surrogate_is_none_of_its_coefficients() -> None:
    report = asked(surrogate=Rounded(), max_rounds=0).surrogate

    assert np.count_nonzero(report.coef) == 1
    assert np.count_nonzero(asked(surrogate=SvmSurrogate(), max_rounds=0).surrogate.coef) > 1


class Blind(SvmSurrogate):  # type: ignore[misc]
    """A surrogate that points away from what the model favours."""

    def fit_local(self, *given: Any, **named: Any) -> Any:
        super().fit_local(*given, **named)
        self.coef_ = -self.coef_
        self.intercept_ = -self.intercept_
        return self


def test_where_no_surrogate_serves_the_boundary_point_does() -> None:
    result = asked(surrogate=Blind(), max_rounds=2)

    require_sound(result)
    assert result[0].way == "boundary"
    sample = SMALL.sample(predict, ROW, X, target=True, space=SPACE)
    assert {name for name in X if sample.boundary[name] != ROW[name]} >= set(result[0].changed)


def test_rejected_where_nothing_serves() -> None:
    nothing_helps = SPACE
    for name in ("a", "b", "k"):
        nothing_helps = nothing_helps.update(name, mutable=False)
    low = ROW.copy()
    low["a"] = float(X["a"].min())
    low["job"] = "x"
    result = asked(low, nothing_helps)

    assert (result.status, len(result)) == ("rejected", 0)
    assert "passed the model's check" in result.reason


def test_infeasible_only_by_the_rules() -> None:
    result = asked(constraints=[Linear({"a": 1.0}, ">=", 2.0, name="high"), Linear({"a": 1.0}, "<=", 1.0, name="low")])

    assert result.status == "infeasible"
    assert {name for name, *_ in result.conflict} == {"high", "low"}


def test_already_favourable() -> None:
    result = asked(X[predict(X)].iloc[0])

    assert (result.status, len(result)) == ("already_favourable", 0)
    assert math.isnan(result.bound)
    assert math.isnan(result.gap)


def test_the_same_twice_and_through_json() -> None:
    first, second = asked(), asked()

    assert first.to_frame().equals(second.to_frame())
    read = SolutionSet.from_json(first.to_json())
    assert read[0].way == first[0].way
    assert read.surrogate.coef.equals(first.surrogate.coef)
    mine, theirs = (one.surrogate.to_mapping() for one in (first, read))
    assert json.dumps(mine, default=str) == json.dumps(theirs, default=str)
    old = json.loads(first.to_json())
    del old["surrogate"], old["counterfactuals"][0]["way"]
    assert SolutionSet.from_json(json.dumps(old)).surrogate is None
    broken = json.loads(first.to_json())
    broken["surrogate"]["fidelity"] = "high"
    with pytest.raises(CeoptError, match="a number as 'fidelity' of the surrogate, but it is 'high'"):
        SolutionSet.from_json(json.dumps(broken))
    assert "nan" not in repr(first)


def test_a_model_is_asked_no_more_than_it_may_be() -> None:
    calls = []

    def counting(rows: pd.DataFrame) -> Any:
        calls.append(len(rows))
        return predict(rows)

    sampler = BoundarySampler(n_samples=300, max_queries=2000)
    result = asked(model=counting, sampler=sampler)
    assert result.surrogate.n_queries == sum(calls) <= 2000

    with pytest.raises(QueryLimitError):
        asked(sampler=BoundarySampler(max_queries=100))


@pytest.mark.long
def test_a_classifier_on_a_frame() -> None:
    model = KNeighborsClassifier(5).fit(NUMBERS, np.where(NUMBERS["a"] > 0.3, "yes", "no"))
    row = NUMBERS[model.predict(NUMBERS) == "no"].iloc[0]
    result = asked(row, PLANE, model, target="yes", data=NUMBERS)

    assert model.predict(result.to_frame()[["a", "b"]]).tolist() == ["yes"]
    assert result[0].prediction == "yes"
    assert result.target == "yes"


def raising(rows: pd.DataFrame) -> Any:
    return len(rows) / 0


def fickle() -> Any:
    draws = np.random.default_rng(0)
    return lambda rows: draws.random(len(rows)) < 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"search": "best"}, "search"),
        ({"margin": -1.0}, "margin"),
        ({"max_rounds": 1.5}, "max_rounds"),
        ({"sampler": 3}, "needs a BoundarySampler, but sampler is int"),
        ({"surrogate": SvmSurrogate}, "needs a local surrogate"),
        ({"data": [1]}, "needs a DataFrame as data, but data is list"),
        ({"n": 0}, "n"),
        ({"target": None}, "target"),
        ({"model": lambda rows: np.full(len(rows), 0.3)}, "label|probabilit"),
        ({"model": lambda rows: np.full(len(rows), "yes")}, "yes"),
        ({"model": lambda rows: np.ones((len(rows), 2))}, "shape"),
        ({"model": lambda rows: rows["a"].iloc[:1] > 0}, "shape"),
        ({"model": raising}, "predict raised ZeroDivisionError"),
        ({"model": fickle()}, "the same answer when asked again"),
        ({"data": X.assign(a=np.nan)}, "missing|nan"),
        ({"row": BAD.iloc[0].replace({BAD["a"].iloc[0]: np.nan})}, "missing|nan|finite"),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        asked(**given)


@pytest.mark.long
@pytest.mark.parametrize("surrogate", [SvmSurrogate(), LimelsSurrogate(), LimeSurrogate(n_samples=100), None])
def test_stability_is_known_of_every_surrogate(surrogate: Any) -> None:
    report = asked(surrogate=surrogate).surrogate

    assert 0.0 < report.stability < 0.5


def test_stability_is_unknown_where_nothing_may_be_asked() -> None:
    n_queries = asked(surrogate=LimeSurrogate(n_samples=100)).surrogate.n_queries
    few = BoundarySampler(n_samples=300, max_queries=n_queries - 1000 - 500)
    result = asked(surrogate=LimeSurrogate(n_samples=100), sampler=few)

    require_sound(result)
    assert math.isnan(result.surrogate.stability)


def both_great(rows: pd.DataFrame) -> Any:
    return (rows["a"] > 1.5) & (rows["b"] > 1.5)


def test_a_ball_of_one_class_leads_to_the_boundary_way() -> None:
    result = asked(NUMBERS.iloc[0], PLANE, both_great, data=NUMBERS, sampler=BoundarySampler(n_samples=2, radius=1e-9))

    require_sound(result, both_great)
    assert result[0].way == "boundary"


def test_where_few_columns_may_change_rows_of_fewer_moves_are_tried() -> None:
    few = MaxChanges(2)
    answers = 0
    for k in range(2):
        result = asked(BAD.iloc[k], surrogate=Blind(), max_rounds=0, constraints=[few])
        require_sound(result)
        answers += len(result)
        assert result[0].way == "boundary"
        assert len(result[0].changed) <= 2
    assert answers == 2


def test_a_good_point_is_led_towards_a_refused_one() -> None:
    def plane(rows: pd.DataFrame) -> Any:
        return rows["a"] + rows["b"] > 0.5

    home = {"a": 0.0, "b": -1.0}
    known = SMALL.decided(plane, NUMBERS, target=True, space=PLANE)
    columns = known.columns.about(home)
    settings = Settings(target=True, cost="l1", constraints=[Linear({"b": 1.0}, "<=", 3.5)])
    program = SurrogateProgram("projection", settings, PLANE, home, NUMBERS, known.favourable, columns, math.inf)
    way = BoundaryWay(known, columns, program.rules_alone(), np.array([0.0, -1.0]))
    found = way.led(np.array([1.0, 3.0]), np.array([0.0, 0.0]))

    assert found is not None  # 1 - t, 3 - 3 t: favourable for t < 7/8
    np.testing.assert_allclose(found, [0.13, 0.39], atol=1e-12)
    assert way.led(np.array([0.0, 0.501]), np.array([0.0, 0.0])) is None  # the model refuses all between
    assert way.led(np.array([0.0, 1.0]), np.array([2.0, 1.0])) is None  # all between is dearer
    forbidden = way.led(np.array([1.0, 3.9]), np.array([0.9, 3.6]))
    assert forbidden is None  # all between breaks the rule


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MinimaxProbabilityMachine("fisher_rao", (-1.0, 0.0)), "radius"),
        (lambda: MinimaxProbabilityMachine("euclid", (1.0, 0.0)), "divergence"),
        (lambda: SvmSurrogate(C=-1.0), "C"),
    ],
)
def test_a_machine_that_is_none_is_refused(make: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        asked(surrogate=make())


def test_constant_columns_do_no_harm() -> None:
    still = X.assign(b=2.0)
    space = FeatureSpace.infer(still, moves={"b": "any"})
    row = still[~predict(still)].iloc[0]

    require_sound(asked(row, space, data=still))


def test_one_class_is_refused() -> None:
    with pytest.raises(NoBoundaryError, match="a row of data that the model finds favourable"):
        asked(model=lambda rows: np.zeros(len(rows), dtype=bool))


def test_a_boundary_answer_says_why_no_surrogate_gave_it() -> None:
    two = asked(sampler=BoundarySampler(n_samples=2), surrogate=SvmSurrogate())
    none = asked(NUMBERS.iloc[0], PLANE, both_great, data=NUMBERS, sampler=BoundarySampler(n_samples=2, radius=1e-9))
    refused = asked(sampler=BoundarySampler(n_samples=2), surrogate=LimeSurrogate(n_samples=2), n=2, diversity="pool")
    dear = asked(NUMBERS.iloc[1], PLANE, slanted, data=NUMBERS)
    few = asked(surrogate=LimeSurrogate(), sampler=BoundarySampler(n_samples=300, max_queries=1600))

    assert all(result[0].way == "boundary" for result in (two, none, refused, dear, few))
    assert two.reason.endswith("the surrogate favours the row as it is, which the model does not.")
    assert "none could be fitted. BoundarySampler needs samples that the model finds favourable" in none.reason
    assert refused.reason.startswith("1 of 2: the boundary way has one. The answer is a boundary point")
    assert refused.reason.endswith("No surrogate served: the model refused what the surrogates gave.")
    assert re.search(
        r"that the model confirmed costs 1\.6\d+, more than the 1\.5\d+ of the boundary point", dear.reason
    )
    assert "none could be fitted. A black box needs room for 1000 more rows" in few.reason
    assert few.reason.endswith("max_queries is 1600. Raise max_queries, or take fewer samples.")


@pytest.mark.long
def test_a_grown_answer_says_how_far() -> None:
    result = asked(BAD.iloc[3], sampler=BoundarySampler(), max_rounds=0)
    lax = asked(NUMBERS[~slanted(NUMBERS)].iloc[1], PLANE, slanted, data=NUMBERS, max_rounds=0, surrogate=Lax())

    assert [result[0].way, lax[0].way] == ["grown", "grown"]
    assert result.reason.endswith(
        f"The radius was raised to {digits(result.surrogate.radius)}, where the model agreed."
    )
    assert lax.reason.endswith("The surrogate's margin was raised until the model agreed.")


@pytest.mark.long
def test_fewer_answers_than_wanted_are_told_with_their_cause() -> None:
    only = SPACE.update("b", mutable=False).update("k", mutable=False).update("job", mutable=False)
    one = asked(space=only, n=3, diversity="support", surrogate=SvmSurrogate())
    some = asked(BAD.iloc[1], n=8, diversity="support", surrogate=SvmSurrogate())

    assert 1 < len(some) < 8
    assert some.reason.startswith(f"{len(some)} of 8: the model refused {8 - len(some)} more. What is proved")
    assert one.reason.startswith("1 of 3: the surrogate's program has no more. What is proved")


@pytest.mark.parametrize("search", ["projection", "robust"])
@pytest.mark.usefixtures("by_program")
def test_a_solver_that_takes_no_whole_numbers_is_refused_by_name(search: str) -> None:
    with pytest.raises(UnsupportedProblemError, match=r"Solver 'clarabel' needs .* but this one is MI.*P"):
        asked(solver="clarabel", search=search)
    require_sound(asked(NUMBERS.iloc[1], PLANE, slanted, data=NUMBERS, solver="clarabel", search=search), slanted)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float, float]]:
    """Radius, margin and cost of the programs that are solved."""
    found = []
    solve = SurrogateProgram.solve

    def noted(self: SurrogateProgram, fit: Any, margin: float) -> SolutionSet:
        result = solve(self, fit, margin)
        found.append((fit.radius, margin, result[0].cost))
        return result

    monkeypatch.setattr(SurrogateProgram, "solve", noted)
    return found


def test_a_radius_grows_until_the_line_stands_still(tried: list[tuple[float, float, float]]) -> None:
    result = asked(NUMBERS.iloc[1], PLANE, slanted, data=NUMBERS)

    assert result[0].way == "boundary"
    radii = [radius for radius, _, _ in tried]
    grown = radii[radii.index(2.0) :]
    assert radii[: radii.index(2.0)] == [1.0]  # the model agrees, and the answer is too dear: nothing lies between
    assert grown == [2.0 ** (k + 1) for k in range(len(grown))]
    assert 16.0 <= grown[-1] <= 128.0  # from there the line stands still


def test_a_margin_does_not_grow_where_the_program_is_dearer_than_the_boundary_point(
    tried: list[tuple[float, float, float]],
) -> None:
    row = NUMBERS.iloc[0]
    boundary = SMALL.sample(slanted, row, NUMBERS, target=True, space=PLANE).boundary
    limit = L1().value(PLANE, PLANE.row(row), PLANE.row(boundary))
    result = asked(row, PLANE, slanted, data=NUMBERS, surrogate=LimeSurrogate(n_samples=300))

    assert result[0].way == "boundary"
    ((_, margin, cost),) = tried
    assert margin == 0.0
    assert cost > limit
