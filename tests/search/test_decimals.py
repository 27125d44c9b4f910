"""Answers in the decimals of their data: checked like any other, at no cost to speak of, and proved as before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from faulty import faulty
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.diverse import exhaustive
from ceopt.formulations.digits import in_places, places_of
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.oracle.model import ModelOracle
from ceopt.search.prepare import Prepared
from ceopt.solvers import Outcome
from ceopt.solvers.problem import Stop
from ceopt.surrogates import BoundarySampler, LocalSurrogateRecourse

RNG = np.random.default_rng(0)
N = 300
X = pd.DataFrame(
    {
        "used": RNG.random(N).round(9),
        "ratio": RNG.random(N).round(5),
        "money": RNG.normal(5000.0, 2000.0, N).round(2),
        "measured": RNG.random(N),
    }
)
Y = np.where(2.0 * X["used"] + X["ratio"] - X["money"] / 5000.0 + 0.3 * RNG.normal(size=N) > 0.5, "yes", "no")
MODELS = {
    "linear": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, Y),
    "forest": RandomForestClassifier(8, max_depth=4, random_state=0).fit(X, Y),
}
SPACE = FeatureSpace.infer(X, steps=False)


def without_decimals(space: FeatureSpace) -> FeatureSpace:
    """The space as it was before it knew of decimals: numbers as the program leaves them."""
    fields = ("name", "kind", "lower", "upper", "mad", "std", "range", "lower_inferred", "upper_inferred")
    return FeatureSpace(Feature(**{field: getattr(feature, field) for field in fields}) for feature in space)


def places(value: float) -> int:
    found = places_of(np.array([value]), 17)
    return 17 if found is None else found


def test_infer_sees_the_decimals_of_the_data():
    assert [feature.decimals for feature in SPACE] == [9, 5, 2, None]
    whole = FeatureSpace.infer(pd.DataFrame({"x": [1.0, 4.0], "n": [1, 2]}), continuous=["x"])
    assert [feature.decimals for feature in whole] == [0, None]
    assert FeatureSpace.from_json(SPACE.to_json()) == SPACE


@pytest.mark.parametrize("name", MODELS)
def test_answers_have_the_decimals_of_the_data_and_are_as_good(name):
    model = MODELS[name]
    people = X[model.predict(X) == "no"].iloc[:4]
    plain = without_decimals(SPACE)
    rounded = 0
    for _, row in people.iterrows():
        result = ceopt.explain(model, row, SPACE, target="yes", n=2)
        before = ceopt.explain(model, row, plain, target="yes", n=2)
        assert result.status == before.status == "optimal"
        assert ceopt.verify(result, model, SPACE, target="yes").ok
        costs = [answer.cost for answer in result]
        assert costs == sorted(costs)
        for answer, unrounded in zip(result, before, strict=True):
            assert answer.changed == unrounded.changed
            assert unrounded.cost * (1 - 1e-9) <= answer.cost <= unrounded.cost * (1 + 2e-6)
            assert answer.gap <= 1e-6
            assert answer.bound <= answer.cost
            move = [abs(answer.values[c] - row[c]) / SPACE[c].scale("mad") for c in answer.changed]
            assert answer.cost == pytest.approx(sum(move), rel=1e-12)
            for column in answer.changed:
                if column == "used":
                    assert places(answer.values[column]) <= 9
                    rounded += places(unrounded.values[column]) > 9
                if SPACE[column].decimals is None:
                    assert answer.values[column] == pytest.approx(unrounded.values[column], abs=1e-6)
        assert result.bound == result[0].bound
        assert result.gap == result[0].gap
    assert rounded or name == "forest"


@pytest.mark.usefixtures("by_program")
def test_answers_of_which_nothing_is_proved_have_the_decimals_too():
    """The solver calls everything infeasible, so that the answer is a start, which costs less than 1."""
    model = MODELS["tree"]
    row = X[model.predict(X) == "no"].iloc[0]
    space = SPACE.only("used", "ratio")
    cost = ceopt.L1(scale={"used": 1.0, "ratio": 1.0, "money": 1.0, "measured": 1.0})
    with faulty("infeasible") as solver:
        result = ceopt.explain(model, row, space, target="yes", cost=cost, solver=solver)
        before = ceopt.explain(model, row, without_decimals(space), target="yes", cost=cost, solver=solver)
    assert result.status == before.status == "feasible"
    assert result.bound == 0.0
    assert result[0].cost < 1.0
    for column in result[0].changed:
        assert places(result[0].values[column]) <= SPACE[column].decimals < places(before[0].values[column])


def test_sentences_and_tables_say_the_number_of_the_answer():
    model = MODELS["tree"]
    row = X[model.predict(X) == "no"].iloc[0]
    result = ceopt.explain(model, row, SPACE.only("money"), target="yes")
    assert len(result)
    for column, sentence in zip(result[0].changed, result[0].sentences(), strict=True):
        before, after = (np.format_float_positional(v, trim="-") for v in (row[column], result[0].values[column]))
        if places(result[0].values[column]) <= SPACE[column].decimals <= 4:
            assert f"from {before} to {after}" in sentence
            assert after in str(result)


def test_a_gap_of_nothing_keeps_the_digits_that_rounding_would_pay_for():
    model = MODELS["linear"]
    row = X[model.predict(X) == "no"].iloc[0]
    exact = ceopt.explain(model, row, without_decimals(SPACE), target="yes", relative_gap=0.0)
    result = ceopt.explain(model, row, SPACE, target="yes", relative_gap=0.0)
    assert result[0].cost <= exact[0].cost * (1 + 1e-12)
    assert result.status == exact.status


def test_a_rule_that_rounding_would_break_keeps_the_digits():
    """Three shares that sum to 1 in nine decimals: rounded to two they would not."""
    space = FeatureSpace(
        [Feature(name, kind="continuous", lower=0, upper=1, decimals=2, mad=1.0) for name in ("a", "b", "c")]
    )
    from ceopt.formulations.predictors import Affine

    model = Affine([1.0, 0.3, 0.0], -0.612345678, labels=("no", "yes"))
    rule = ceopt.Linear({"a": 1, "b": 1, "c": 1}, "==", 1)
    result = ceopt.explain(model, {"a": 0.2, "b": 0.3, "c": 0.5}, space, target="yes", constraints=rule)
    assert result.status == "optimal"
    assert result[0].values.sum() == pytest.approx(1.0, abs=1e-8)
    assert ceopt.verify(result, model, space, target="yes", constraints=rule).ok


def test_rounding_to_places():
    assert in_places(0.036973345000000005, 9, "nearest", home=0.5) == 0.036973345
    assert in_places(2.345, 1, "away", home=0.0) == 2.4
    assert in_places(2.345, 1, "home", home=0.0) == 2.3
    assert in_places(2.345, 1, "away", home=9.0) == 2.3
    assert in_places(-2.345, 1, "away", home=0.0) == -2.4


def test_an_answer_within_a_wide_gap_is_rounded_too():
    """It kept its digits wherever its own gap was above a millionth, and no more than that was asked for."""
    model = MODELS["forest"]
    wide = []
    for _, row in X[model.predict(X) == "no"].iloc[:5].iterrows():
        plain = ceopt.explain(model, row, without_decimals(SPACE), target="yes", relative_gap=1 / 3)
        result = ceopt.explain(model, row, SPACE, target="yes", relative_gap=1 / 3)
        assert plain[0].cost * (1 - 1e-9) <= result[0].cost <= plain[0].cost * (1 + 1e-6)
        assert result[0].gap <= 1 / 3
        assert ceopt.verify(result, model, SPACE, target="yes").ok
        if result[0].gap > 1e-3 and "used" in result[0].changed:
            wide.append((places(result[0].values["used"]), places(plain[0].values["used"])))
    assert wide
    assert all(after <= 9 < before for after, before in wide)


def cell(model, point):
    """The leaves that a point falls into."""
    rows = pd.DataFrame([point], columns=list(X.columns))
    return tuple(np.ravel(model.apply(rows)))


@pytest.mark.parametrize("name", ["tree", "forest"])
def test_every_answer_of_exhaustive_has_the_decimals_of_the_data_and_stays_in_its_cell(name):
    model = MODELS[name]
    row = X[model.predict(X) == "no"].iloc[0]
    epsilon = {"tree": 2.5, "forest": 0.4}[name]
    exact = exhaustive(model, row, without_decimals(SPACE), target="yes", epsilon=epsilon)
    found = exhaustive(model, row, SPACE, target="yes", epsilon=epsilon)
    assert found.status == exact.status == "optimal"
    assert found.complete
    assert len(found) == len(exact) > 30
    assert [answer.rank for answer in found] == list(range(1, len(found) + 1))
    assert [answer.cost for answer in found] == sorted(answer.cost for answer in found)
    assert ceopt.verify(found, model, SPACE, target="yes").ok
    finer = 0
    for answer, unrounded, safety in zip(found, exact, found.safety, strict=True):
        assert cell(model, answer.values) == cell(model, unrounded.values)
        assert answer.bound == pytest.approx(unrounded.cost, rel=1e-12)
        assert answer.bound <= answer.cost * (1 + 1e-12)
        assert answer.cost <= unrounded.cost * (1 + 1e-6)
        assert safety == pytest.approx(max(exact[0].cost + epsilon - answer.cost, 0.0), abs=1e-12)
        if "used" in answer.changed:
            finer += places(unrounded.values["used"]) > 9
            assert places(answer.values["used"]) <= 11
    assert finer > 10
    assert np.mean([places(answer.values["used"]) <= 9 for answer in found]) > 0.9


@pytest.mark.filterwarnings("ignore::ceopt.RuleWarning")
def test_exhaustive_keeps_digits_that_a_rule_asks_for():
    """A rule of twelve decimals over columns of nine and five."""
    model = MODELS["tree"]
    row = X[model.predict(X) == "no"].iloc[0]
    rule = ceopt.Linear({"used": 1.0, "ratio": 1.0}, ">=", row["used"] + row["ratio"] + 0.123456789123)
    asked = {"target": "yes", "epsilon": 1.0, "constraints": rule}
    found = exhaustive(model, row, SPACE, **asked)
    exact = exhaustive(model, row, without_decimals(SPACE), **asked)
    assert len(found) == len(exact) > 0
    assert ceopt.verify(found, model, SPACE, target="yes", constraints=rule).ok
    for answer, unrounded in zip(found, exact, strict=True):
        assert unrounded.cost * (1 - 1e-6) <= answer.cost <= unrounded.cost * (1 + 2e-6)


def test_exhaustive_keeps_digits_that_the_model_favours(monkeypatch):
    """A model's own arithmetic may refuse what was rounded, whatever the cell says: its word is asked for."""
    model = MODELS["tree"]
    row = X[model.predict(X) == "no"].iloc[0]
    exact = exhaustive(model, row, without_decimals(SPACE), target="yes", epsilon=1.0)
    judge = Prepared.judge

    def strict(prepared, points):
        said, met = judge(prepared, points)
        return said, met & np.array([p["used"] == row["used"] or places(p["used"]) > 9 for p in points])

    monkeypatch.setattr(Prepared, "judge", strict)
    found = exhaustive(model, row, SPACE, target="yes", epsilon=1.0)
    kept = [answer for answer in found if "used" in answer.changed]
    assert kept
    assert all(places(answer.values["used"]) > 9 for answer in kept)
    assert len(found) == len(exact)


@pytest.mark.long(every=6)
@pytest.mark.parametrize("name", ["linear", "tree"])
@pytest.mark.parametrize("search", ["projection", "actionable", "roar"])
def test_answers_through_surrogates_have_the_decimals_of_the_data(name, search):
    """Boundary points were where a halving ended, and actions a hundredth of a range of any digits."""
    model = MODELS[name]
    ways = set()
    for _, row in X[model.predict(X) == "no"].iloc[[0]].iterrows():
        asked = {"target": "yes", "data": X}
        finder = LocalSurrogateRecourse(search=search, sampler=BoundarySampler(n_samples=300))
        result = finder.explain(model.predict, row, SPACE, **asked)
        exact = finder.explain(model.predict, row, without_decimals(SPACE), **asked)
        assert ceopt.verify(result, model, SPACE, target="yes").ok
        (answer,), (unrounded,) = result, exact
        ways.add(answer.way)
        for column in answer.changed:
            if column != "measured":
                assert places(answer.values[column]) <= SPACE[column].decimals + 2
        if answer.way == unrounded.way == "boundary":
            assert answer.cost <= unrounded.cost * (1 + 1e-6)
    assert "boundary" in ways or search == "actionable"


def test_a_boundary_point_that_the_model_favours_for_its_digits_keeps_them():
    row = {"used": 0.1, "ratio": 0.5}

    def fine(rows):
        is_fine = np.array([places(value) > 9 for value in rows["used"]])
        return (rows["used"].to_numpy() > 0.6) & is_fine

    rows = pd.DataFrame({"used": np.random.default_rng(1).random(200), "ratio": X["ratio"][:200]})
    space = FeatureSpace(replace(f, decimals=5) for f in FeatureSpace.infer(rows, steps=False))
    finder = LocalSurrogateRecourse(sampler=BoundarySampler(n_samples=300, max_queries=2000))
    result = finder.explain(fine, row, space, target=True, data=rows)
    assert result.status == "feasible"
    assert places(result[0].values["used"]) > 9
    assert fine(result[0].frame).all()


@pytest.mark.usefixtures("by_program")
def test_after_ctrl_c_numbers_keep_their_digits_and_the_model_is_not_asked_again(monkeypatch):
    person = X[MODELS["linear"].predict(X) == "no"].iloc[0]
    runs, after = [], []
    judge = ModelOracle.judge

    def interrupted(told, _):
        runs.append(told)
        return told if len(runs) == 1 else Outcome(status=Stop.INTERRUPTED)

    def judged(self, *asked):
        after.extend(asked[:1] if len(runs) > 1 else ())
        return judge(self, *asked)

    monkeypatch.setattr(ModelOracle, "judge", judged)
    with faulty(interrupted) as solver:
        result = ceopt.explain(MODELS["linear"], person, SPACE, target="yes", n=2, diversity="support", solver=solver)
    assert (len(result), len(runs), after) == (1, 2, [])
    assert not result.complete
    (moved,) = result[0].changed
    assert places(result[0].values[moved]) > SPACE[moved].decimals
