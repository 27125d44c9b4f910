"""Rivals that work row by row: legal rows in the frame's own types, and the same answers as the searches they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ceopt import CeoptError, FeatureSpace, OtherThan, Probability, verify
from ceopt.surrogates import roar, wachter
from ceopt.surrogates.scaled_columns import ScaledFrame
from ceopt.training import Rbr, RoarLime, VanillaCF, virtual_data_shift
from ceopt.training.networks import PredictorNetwork
from ceopt.training.rivals import over

RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "income": RNG.uniform(10.0, 90.0, 200),
        "kids": RNG.integers(0, 5, 200),
        "job": RNG.choice(["clerk", "cook", "nurse"], 200),
        "age": RNG.integers(20, 70, 200),
        "savings": RNG.uniform(0.0, 1.0, 200).astype("float32"),
    },
    index=RNG.permutation(200),
)
GRANTED = np.where(PEOPLE["income"] + 8.0 * (PEOPLE["job"] == "nurse") - 3.0 * PEOPLE["kids"] > 50.0, "yes", "no")
SPACE = FeatureSpace.infer(PEOPLE, moves={"age": "fixed", "kids": "up"})


def fitted(model: Any, labels: Any = GRANTED) -> Any:
    scaled = make_column_transformer(
        (OneHotEncoder(), ["job"]), (StandardScaler(), ["income", "kids", "age", "savings"])
    )
    return make_pipeline(scaled, model).fit(PEOPLE, labels)


@pytest.fixture(scope="module")
def linear() -> Any:
    return fitted(LogisticRegression())


@pytest.fixture(scope="module")
def network() -> Any:
    return fitted(MLPClassifier((8,), solver="lbfgs", alpha=0.1, max_iter=5000, random_state=0))


@pytest.fixture(scope="module")
def forest() -> Any:
    return fitted(RandomForestClassifier(20, random_state=0))


WAYS = [
    ("linear", VanillaCF, {}),
    ("linear", VanillaCF, {"method": "program", "weight": 10.0}),
    ("network", VanillaCF, {}),
    ("network", RoarLime, {"loss": "hinge"}),
    ("forest", RoarLime, {"loss": "hinge"}),
    ("linear", RoarLime, {"method": "gradient"}),
]


# ---- frames ----------------------------------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.parametrize(("name", "rival", "options"), WAYS)
def test_advice_is_legal_and_mostly_works(name: str, rival: Any, options: Any, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    rows = PEOPLE.iloc[:12]
    found = rival(model, PEOPLE, space=SPACE, **options).recourse(rows, target="yes")
    assert list(found.columns) == list(rows.columns)
    assert found.index.equals(rows.index)
    assert found.dtypes.equals(rows.dtypes)
    assert (found["age"] == rows["age"]).all()
    assert (found["kids"] >= rows["kids"]).all()
    assert set(found["job"]) <= {"clerk", "cook", "nurse"}
    assert found["income"].between(PEOPLE["income"].min(), PEOPLE["income"].max()).all()
    already = model.predict(rows) == "yes"
    assert found[already].equals(rows[already])
    assert 0 < already.sum() < len(rows)
    assert (model.predict(found) == "yes").mean() >= 0.75
    moved = (found != rows).any(axis=1)
    assert moved[~already].any()


@pytest.mark.long
def test_without_a_target_each_row_goes_to_the_other_class(linear: Any) -> None:
    rows = PEOPLE.iloc[:10]
    before = linear.predict(rows)
    after = linear.predict(VanillaCF(linear, PEOPLE).recourse(rows))
    assert set(before) == {"no", "yes"}
    assert (after != before).mean() >= 0.9


def test_no_rows_give_none(linear: Any) -> None:
    assert VanillaCF(linear, PEOPLE).recourse(PEOPLE.iloc[:0]).empty


def test_several_classes_need_a_target() -> None:
    labels = np.array(["a", "b", "c"])[np.digitize(PEOPLE["income"], [35.0, 60.0])]
    model = fitted(LogisticRegression(), labels)
    rival = RoarLime(model, PEOPLE, loss="hinge")
    with pytest.raises(CeoptError, match="RoarLime.recourse needs a target with 3 classes, but target is None"):
        rival.recourse(PEOPLE.head(2))
    rows = PEOPLE[model.predict(PEOPLE) == "a"].head(4)
    assert (model.predict(rival.recourse(rows, target="b")) != "a").mean() >= 0.5
    with pytest.raises(CeoptError, match="VanillaCF needs a model of two classes, but Pipeline has 3"):
        VanillaCF(model, PEOPLE)


# ---- the searches they share -----------------------------------------------------------------------------------------
def cube() -> tuple[pd.DataFrame, Any]:
    """Rows whose columns go from 0 to 1, and a model that is linear in them."""
    rows = pd.DataFrame(np.random.default_rng(1).uniform(size=(100, 2)), columns=["a", "b"])
    rows.iloc[0] = 0.0
    rows.iloc[1] = 1.0
    return rows, LogisticRegression(C=10.0).fit(rows, rows["a"] + 0.3 * rows["b"] > 0.7)


@pytest.mark.parametrize("target", [True, False])
def test_vanilla_cf_is_wachter_on_the_model(target: bool) -> None:
    rows, model = cube()
    sign = 1.0 if target else -1.0
    coef, intercept = sign * model.coef_[0], sign * float(model.intercept_[0])
    row = rows[model.predict(rows) != target].iloc[[0]]
    known = wachter(row.to_numpy()[0], coef, intercept, weight=4.0, lower=0.0, upper=1.0)
    found = VanillaCF(model, rows, weight=4.0, method="program").recourse(row, target=target)
    assert found.to_numpy()[0] == pytest.approx(known.point, abs=1e-5)  # the network is in single precision
    known = wachter(row.to_numpy()[0], coef, intercept, method="gradient", lower=0.0, upper=1.0)
    found = VanillaCF(model, rows).recourse(row, target=target)
    assert found.to_numpy()[0] == pytest.approx(known.point, abs=1e-4)


def test_roar_lime_is_roar_on_the_linear_model() -> None:
    rows, model = cube()
    rival = RoarLime(model, rows, loss="hinge", radius=0.2, weight=0.3)
    row = rows[~model.predict(rows)].iloc[[0]]
    score = rival._linear(rival.box(True), row)
    assert score is not None
    lime = rival.lime
    z = np.random.default_rng(2).uniform(size=(20, 2))
    own = z / lime.columns_.scales  # the raw row is z itself
    coef, intercept = score
    assert z @ coef + intercept == pytest.approx(4.0 * (own @ lime.coef_ + lime.intercept_), abs=1e-9)
    known = roar(
        row.to_numpy()[0], coef, intercept, loss="hinge", mode="soft", radius=0.2, weight=0.3, lower=0.0,
        upper=1.0,
    )  # fmt: skip
    assert rival.recourse(row).to_numpy()[0] == pytest.approx(known.point, abs=1e-6)


def test_limes_slopes_are_those_of_the_logit_at_the_boundary() -> None:
    rows, _ = cube()
    model = LogisticRegression(C=1.0).fit(rows, rows["a"] > 0.5)
    middle = pd.DataFrame([[0.5, 0.5]], columns=["a", "b"])
    middle["a"] = -(model.intercept_[0] + 0.5 * model.coef_[0, 1]) / model.coef_[0, 0]
    score = RoarLime(model, rows, n_samples=4000)._linear(RoarLime(model, rows).box(True), middle)
    assert score is not None
    assert score[0] == pytest.approx(model.coef_[0], rel=0.2, abs=0.1)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_network_is_the_same_over_other_columns(activation: str, outputs: int) -> None:
    rng = np.random.default_rng(3)
    own = ScaledFrame.of("test", SPACE, PEOPLE.iloc[:50])
    other = ScaledFrame.of("test", SPACE, PEOPLE)
    p = len(own.names)

    def layer(n_in: int, n_out: int) -> tuple[Any, Any]:
        return rng.normal(size=(n_in, n_out)).astype("float32"), rng.normal(size=n_out).astype("float32")

    tree = {"encoder": [layer(p, 6)], "head": [layer(6, 4), layer(4, outputs)]}
    network = PredictorNetwork(own, tree, activation, np.array(["no", "yes"]))
    h = other.encode(PEOPLE)
    *inner, (weights, biases) = over(other, network)
    for slopes, offsets in inner:
        h = np.maximum(0.0, h @ slopes.T + offsets)
    share = 1.0 / (1.0 + np.exp(-(h @ weights.T + biases)[:, 0]))
    assert share == pytest.approx(network.predict_proba(PEOPLE)[:, 1], abs=1e-5)


# ---- refusals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rival", "options", "message"),
    [
        (VanillaCF, {"weight": -1.0}, "VanillaCF needs weight"),
        (VanillaCF, {"method": "adam"}, "VanillaCF needs a known method"),
        (RoarLime, {"radius": -0.1}, "RoarLime needs radius"),
        (RoarLime, {"norm": "l3"}, "RoarLime needs a known norm"),
        (RoarLime, {"n_samples": 1}, "RoarLime needs n_samples"),
        (RoarLime, {"random_state": -1}, "RoarLime needs random_state"),
    ],
)
def test_options_out_of_range_are_refused(linear: Any, rival: Any, options: Any, message: str) -> None:
    with pytest.raises(CeoptError, match=message):
        rival(linear, PEOPLE, **options)


@pytest.mark.long
@pytest.mark.parametrize("rival", [RoarLime, Rbr])
def test_a_function_of_rows_is_a_model(linear: Any, rival: Any) -> None:
    people = PEOPLE.head(3)
    said = linear.predict(people)
    assert rival(linear.predict, PEOPLE).recourse(people).equals(rival(linear, PEOPLE).recourse(people))
    assert (linear.predict(rival(_bare(linear), PEOPLE).recourse(people)) != said).any()
    with pytest.raises(CeoptError, match="needs a fitted model or a function of rows, but model is None"):
        rival(None, PEOPLE)


def _bare(model: Any) -> Any:
    """Return a function of which nothing is known but what it says."""

    def predict(rows: Any) -> Any:
        return model.predict(rows)

    return predict


@pytest.mark.parametrize("rival", [VanillaCF, RoarLime, Rbr])
def test_a_target_is_one_label_of_the_model(linear: Any, rival: Any) -> None:
    found = rival(linear, PEOPLE)
    with pytest.raises(CeoptError, match=r"recourse needs one label as target, but target is list"):
        found.recourse(PEOPLE.head(2), target=["yes"])
    for wrong in (OtherThan("no"), "perhaps", Probability("yes", at_least=0.8)):
        with pytest.raises(CeoptError, match=r"recourse needs a known target, but target is"):
            found.recourse(PEOPLE.head(2), target=wrong)


@pytest.mark.long
def test_the_attackers_model_can_be_asked_like_any_other(linear: Any) -> None:
    pytest.importorskip("jax")
    said = linear.predict(PEOPLE)
    shifted = virtual_data_shift(linear, PEOPLE, said, PEOPLE, perturbation=0.1).model
    space = FeatureSpace.infer(PEOPLE, moves={"age": "any"})

    assert verify(PEOPLE.head(9), shifted, space, target="yes").to_frame()["prediction"].tolist() == [
        *shifted.predict(PEOPLE.head(9))
    ]
    assert VanillaCF(shifted, PEOPLE).recourse(PEOPLE.head(2)).shape == PEOPLE.head(2).shape


def test_what_does_not_fit_is_refused(linear: Any, forest: Any) -> None:
    with pytest.raises(CeoptError, match="VanillaCF needs a model that can be differentiated"):
        VanillaCF(forest, PEOPLE)
    with pytest.raises(CeoptError, match="RoarLime needs a DataFrame as data, but data is ndarray"):
        RoarLime(linear, PEOPLE.to_numpy())
    rival = VanillaCF(linear, PEOPLE)
    missing = PEOPLE.head(2).assign(income=np.nan)
    with pytest.raises(CeoptError, match="income"):
        rival.recourse(missing)
    bounded = {"lower": 0.0, "upper": 100.0, "step": 0.5, "codes": [150.0]}
    coded = VanillaCF(linear, PEOPLE, space=SPACE.update("income", **bounded))
    with pytest.raises(CeoptError, match=r"column 'income' beyond none of its codes, but it is 200 in row 1"):
        coded.recourse(PEOPLE.head(2).assign(income=[50.0, 200.0]))
