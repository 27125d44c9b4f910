"""CounterNet and RoCourseNet on raw frames: what they learn, what they promise, and each refusal."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import given
from hypothesis import strategies as st
from loan_people import loan_people, loan_space, small
from sklearn.base import clone

pytest.importorskip("jax")

from ceopt import FeatureSpace, MaxChanges
from ceopt.formulations.costs import L1
from ceopt.solvers.errors import CeoptError, MissingLibraryError
from ceopt.training import CounterNet, RoCourseNet, virtual_data_shift


@pytest.fixture(scope="module")
def people():
    return loan_people()


@pytest.fixture(scope="module", params=[CounterNet, RoCourseNet])
def model(people, request):
    frame, labels = people
    return small(request.param, space=loan_space(frame), dropout=0.0, epochs=40).fit(frame, labels)


@pytest.fixture(scope="module")
def plain(people):
    frame, labels = people
    return small(space=loan_space(frame), dropout=0.0, epochs=40).fit(frame, labels)


@pytest.fixture(scope="module")
def usual(people):
    return small(RoCourseNet, dropout=0.0, epochs=20).fit(*people)


# ---- what it learns --------------------------------------------------------------------------------------------------
@pytest.mark.long
def test_both_networks_learn(people, model):
    frame, labels = people
    said = model.predict(frame)
    advice = model.recourse(frame)

    assert (said == labels).mean() > 0.85
    assert model.score(frame, labels) == (said == labels).mean()
    assert (model.predict(advice) != said).mean() > 0.85
    assert model.history_["prediction"].iloc[-1] < 0.5 * model.history_["prediction"].iloc[0]
    assert model.history_["validity"].iloc[-1] < 0.5 * model.history_["validity"].iloc[0]
    assert model.predict_proba(frame).argmax(axis=1).tolist() == (said == "yes").astype(int).tolist()
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == list(frame)
    assert model.n_features_in_ == 7


def test_the_history_says_what_happened_in_each_epoch(people, model):
    history = model.history_

    assert history.columns.tolist() == ["prediction", "validity", "proximity", "epsilon", "held_out"]
    assert history.index.tolist() == list(range(1, len(history) + 1))
    assert np.isfinite(history.to_numpy()).all()
    if isinstance(model, RoCourseNet):
        assert len(history) == 40
        assert history["epsilon"].tolist() == pytest.approx([0.1 * (epoch + 1) / 40 for epoch in range(40)])
    else:
        assert (history["epsilon"] == 0.0).all()


@pytest.mark.long
def test_with_a_weight_of_proximity_people_get_advice_of_their_own():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(200, 2)), columns=["income", "age"])
    labels = frame["income"] > 0.5
    options = {"dropout": 0.0, "epochs": 60, "generator": (16, 16)}
    apart = small(weights=(1.0, 0.2, 2.0), **options).fit(frame, labels).recourse(frame)
    alike = small(weights=(1.0, 0.2, 0.0), **options).fit(frame, labels).recourse(frame)

    assert np.corrcoef(apart["age"], frame["age"])[0, 1] > 0.9
    assert abs(np.corrcoef(alike["age"], frame["age"])[0, 1]) < 0.7
    assert (apart - frame).abs().to_numpy().mean() < 0.5 * (alike - frame).abs().to_numpy().mean()


@pytest.mark.long
@pytest.mark.parametrize("kind", [CounterNet, RoCourseNet])
def test_several_classes_aim_at_the_desired_one(people, kind):
    frame, _ = people
    labels = np.digitize(frame["income"], [26.0, 34.0])
    model = small(kind, dropout=0.0, epochs=60, desired=2, weights=(1.0, 1.0, 0.1)).fit(frame, labels)
    said = model.predict(frame)
    advice = model.recourse(frame)

    assert (said == labels).mean() > 0.75
    assert model.predict_proba(frame).shape == (120, 3)
    assert model.predict_proba(frame).sum(axis=1) == pytest.approx(np.ones(120), abs=1e-5)
    assert (model.predict(advice)[said != 2] == 2).mean() > 0.85
    assert advice[said == 2].equals(frame[said == 2])
    assert model.recourse(frame, target=2).equals(advice)
    with pytest.raises(CeoptError, match="needs the target that it was trained for, 2, but target is 0"):
        model.recourse(frame, target=0)


@pytest.mark.long
def test_the_predictor_knows_nothing_of_the_attacker(people):
    """Block-wise descent: the same seed gives the same predictor, whoever judges the recourse."""
    frame, labels = people
    plain = small(patience=None).fit(frame, labels)
    attacked = small(RoCourseNet, patience=None, perturbation=0.5, inner_rate=1.0).fit(frame, labels)
    harmless = small(RoCourseNet, patience=None, perturbation=0.0, inner_rate=1e-9).fit(frame, labels)

    for other in (attacked, harmless):
        np.testing.assert_allclose(other.predict_proba(frame), plain.predict_proba(frame), atol=1e-4)
        np.testing.assert_allclose(other.history_["prediction"], plain.history_["prediction"], rtol=1e-3)
    np.testing.assert_allclose(harmless.history_["validity"], plain.history_["validity"], rtol=1e-2)
    assert (attacked.history_["validity"] > plain.history_["validity"]).iloc[-3:].all()


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"shared": False}, {"residual": False},
        {"activation": "leaky_relu"}, {"label_smoothing": True},
        {"predictor": (), "generator": ()}, {"norm": "l2"}, {"restart": True}, {"attacked": "head"},
        {"schedule": "log"}, {"batch_size": 1000},
    ],
)  # fmt: skip
def test_every_option_trains(people, usual, options):
    frame, labels = people
    model = small(RoCourseNet, dropout=0.0, epochs=20, **options).fit(frame, labels)

    assert (model.predict(frame) == labels).mean() > 0.7
    assert not np.array_equal(model.history_.to_numpy(), usual.history_.to_numpy())


# ---- what it promises ------------------------------------------------------------------------------------------------
def require_legal(model, frame, advice):
    assert advice.index.equals(frame.index)
    assert advice.columns.equals(frame.columns)
    assert (advice.dtypes == frame.dtypes).all()
    ranks = {"low": 0, "middle": 1, "high": 2}
    assert (advice["sex"] == frame["sex"]).all()
    assert (advice["age"] >= frame["age"]).all()
    assert (advice["school"].map(ranks) >= frame["school"].map(ranks)).all()
    steps = (advice["income"] - frame["income"]) / 0.5
    assert np.allclose(steps, steps.round(), atol=1e-6)
    assert advice["income"].between(0.0, 60.0).all()
    assert advice["loans"].between(0, 5).all()
    assert advice["job"].isin(["clerk", "cook", "nurse"]).all()


@given(seed=st.integers(1, 9999), n=st.integers(1, 30))
@draws(40)
def test_recourse_keeps_the_rules_of_the_space(plain, seed, n):
    frame = loan_people(n, seed)[0]
    frame["income"] = frame["income"].clip(0.0, 60.0)
    shuffled = frame[list(frame)[::-1]]

    require_legal(plain, frame, plain.recourse(frame))
    require_legal(plain, shuffled, plain.recourse(shuffled))
    said = plain.predict(frame)
    for target in plain.classes_:
        advice = plain.recourse(frame, target=target)
        assert advice[said == target].equals(frame[said == target])
        assert advice[said != target].equals(plain.recourse(frame)[said != target])


@pytest.mark.long
def test_types_are_those_of_the_rows(people):
    frame, labels = people
    given = frame.astype({"income": "float32", "loans": "int8", "job": "category", "age": "Int64"})
    model = small(dropout=0.0).fit(given, labels)
    advice = model.recourse(given)
    assert (advice.dtypes == given.dtypes).all()

    whole = frame.assign(income=frame["income"].round().astype(int))
    advice = small(dropout=0.0).fit(frame, labels).recourse(whole)
    assert (advice.dtypes == whole.dtypes).all()
    assert (advice["income"] != whole["income"]).any()
    assert plain_index_of_none(frame, model)


def plain_index_of_none(frame, model):
    none = model.recourse(frame[:0])
    return list(none.columns) == list(frame) and not len(none)


@pytest.mark.long
def test_one_desired_label_of_two(people):
    frame, labels = people
    model = small(desired="yes", dropout=0.0, epochs=30).fit(frame, labels)
    said = model.predict(frame)

    assert model.recourse(frame)[said == "yes"].equals(frame[said == "yes"])
    assert (model.predict(model.recourse(frame)) == "yes").mean() > 0.9
    with pytest.raises(CeoptError, match="trained for, 'yes', but target is 'no'"):
        model.recourse(frame, target="no")


# ---- advice polished by the engine -----------------------------------------------------------------------------------
@pytest.mark.long(every=2)
def test_polished_advice_is_checked_and_has_a_proved_price(people, model):
    frame, _ = people
    before = frame.head(12)
    said = model.predict(before)
    advice = model.recourse(before)
    cohort = model.polish(before, max_ratio=3.0)
    table = cohort.to_frame().droplevel("rank")
    after = table[list(frame)]

    assert all(result.status == ("optimal" if result.gap <= 1e-6 else "feasible") for result in cohort)
    assert "feasible" in cohort.counts()
    assert (model.predict(after) != said).all()
    assert (after["sex"] == before["sex"]).all()
    assert (after["age"] >= before["age"]).all()
    assert (table["cost"] <= 3.0 * table["bound"] + 1e-6).all()
    kept = table["source"] == "generator"
    assert after[kept].astype(str).equals(advice[kept.to_numpy()].astype(str))
    assert 0 < kept.sum() < 12
    assert cohort.repaired == pytest.approx(1.0 - kept.mean())
    strict = model.polish(before, max_ratio=1.0).to_frame().droplevel("rank")
    assert (strict["cost"] <= table["cost"] + 1e-6).all()
    assert (strict["cost"] >= table["bound"] - 1e-6).all()


def test_refined_advice_passes_every_check_and_costs_no_more(people, model):
    """It lies between the advice and what is proved least; under a rule that the advice breaks it keeps the rule."""
    frame, _ = people
    before = frame.head(8)
    space = model.space_
    cost = L1(scale="range")
    advice = model.recourse(before)
    after = model.recourse(before, refine=True, cost=cost)
    proved = model.polish(before, max_ratio=1.0, cost=cost)
    costs = {}
    for name, rows in (("advice", advice), ("after", after)):
        pairs = zip(space.coordinates(before), space.coordinates(rows), strict=True)
        costs[name] = [
            cost.value(space, dict(zip(space.names, own, strict=True)), dict(zip(space.names, to, strict=True)))
            for own, to in pairs
        ]
    is_valid = model.predict(advice) != model.predict(before)

    assert (model.predict(after) != model.predict(before)).all()
    assert (after.dtypes == before.dtypes).all()
    assert (np.array(costs["after"]) <= np.where(is_valid, costs["advice"], np.inf) * (1.0 + 1e-9)).all()
    assert sum(costs["after"]) < 0.75 * sum(costs["advice"])
    for paid, result in zip(costs["after"], proved, strict=True):
        assert result.bound * (1.0 - 1e-6) <= paid <= 1.1 * result.bound
    few = model.recourse(before, refine=True, constraints=[MaxChanges(2)])
    assert ((few != before).sum(axis=1) <= 2).all()


def test_refine_is_true_or_false(people, model):
    with pytest.raises(CeoptError, match="refine"):
        model.recourse(people[0].head(1), refine="yes")


@pytest.mark.long
def test_who_is_at_the_target_needs_no_polish(people, plain):
    frame, _ = people
    before = frame.head(20)
    said = plain.predict(before)
    cohort = plain.polish(before, target="yes")
    sources = cohort.audit["source"]

    assert 0 < (said == "yes").sum() < 20
    assert cohort.counts()["already_favourable"] == (said == "yes").sum()
    assert set(cohort.counts()) <= {"already_favourable", "feasible", "optimal"}
    assert (sources[said == "yes"] == "generator").all()
    assert (plain.predict(cohort.to_frame()[list(frame)].dropna()) == "yes").all()


@pytest.mark.long
def test_advice_is_polished_for_the_desired_class_of_several(people):
    frame, _ = people
    labels = np.digitize(frame["income"], [26.0, 34.0])
    model = small(epochs=30, desired=2, weights=(1.0, 1.0, 0.1)).fit(frame, labels)
    before = frame[model.predict(frame) != 2].head(4)
    rule = MaxChanges(2)
    cohort = model.polish(before, constraints=rule)

    assert set(cohort.counts()) <= {"feasible", "optimal"}
    after = cohort.to_frame().droplevel("rank")[list(frame)]
    assert model.predict(after).tolist() == [2] * 4
    assert ((after.astype(str) != before.astype(str)).sum(axis=1) <= 2).all()
    with pytest.raises(
        CeoptError, match=r"CounterNet.polish needs the target that it was trained for, 2, but target is 0"
    ):
        model.polish(before, target=0)
    with pytest.raises(CeoptError, match="max_ratio is 0.5"):
        model.polish(before, max_ratio=0.5)


@pytest.mark.parametrize("labels", [[False, True], [0, 1], [1.0, 2.0], ["a", "b"]])
def test_labels_keep_their_type(people, labels):
    frame, given = people
    y = np.where(given == "yes", labels[1], labels[0])
    model = small(epochs=2).fit(frame, y)

    assert model.classes_.dtype == y.dtype
    assert model.predict(frame).dtype == y.dtype
    assert model.recourse(frame, target=labels[1]).shape == frame.shape


@pytest.mark.parametrize(("worse", "better"), [(False, True), (0, 1), (1.0, 2.0), ("bad", "good")])
def test_labels_in_a_column_of_objects_are_those_of_their_type(people, worse, better):
    frame, given = people
    y = pd.Series([better if label == "yes" else worse for label in given], dtype=object)
    model = small(epochs=2).fit(frame, y)
    typed = small(epochs=2).fit(frame, y.infer_objects())

    assert model.classes_.tolist() == [worse, better]
    assert model.predict(frame).tolist() == typed.predict(frame).tolist()


@pytest.mark.long
def test_steps_are_kept_where_single_precision_would_miss_them(people):
    frame, labels = people
    given = frame.astype({"income": "float32"})
    space = FeatureSpace.infer(given, moves={"age": "any", "sex": "any"}).update("income", step=0.3)
    advice = small(space=space, dropout=0.0).fit(given, labels).recourse(given)
    steps = (advice["income"] - given["income"].astype(float)) / 0.3

    assert (steps.round() != 0).any()
    assert np.abs(steps - steps.round()).max() < 1e-9
    assert (advice.dtypes == given.dtypes).drop("income").all()


@pytest.mark.long
def test_the_attacker_reads_it(people, model):
    frame, labels = people
    found = virtual_data_shift(model, frame, labels, model.recourse(frame), perturbation=0.3, learning_rate=1.0)

    assert found.objective[-1] > found.objective[0]


# ---- as an estimator -------------------------------------------------------------------------------------------------
def test_the_same_seed_gives_the_same_model(people):
    frame, labels = people
    first, again, other = (small(random_state=seed).fit(frame, labels) for seed in (1, 1, 2))

    assert first.history_.equals(again.history_)
    assert first.recourse(frame).equals(again.recourse(frame))
    assert not first.history_.equals(other.history_)


def test_it_can_be_cloned_and_pickled(people, model):
    frame, _ = people
    again = pickle.loads(pickle.dumps(model))
    assert again.recourse(frame).equals(model.recourse(frame))
    assert (again.predict_proba(frame) == model.predict_proba(frame)).all()

    fresh = clone(model).set_params(dropout=0.5)
    assert fresh.get_params()["dropout"] == 0.5
    assert {**fresh.get_params(), "dropout": 0.0} == model.get_params()
    assert not hasattr(fresh, "classes_")


@pytest.mark.long
def test_training_ends_early_and_keeps_the_best(people):
    frame, labels = people
    short = small(epochs=200, patience=3, learning_rate=0.05).fit(frame, labels)
    history = short.history_["held_out"]
    best = int(history.idxmin())
    assert len(history) == best + 3 < 200

    again = small(epochs=best, patience=None, learning_rate=0.05).fit(frame, labels)
    assert again.history_["held_out"].isna().all()
    cut = small(epochs=best, patience=3, learning_rate=0.05).fit(frame, labels)
    np.testing.assert_array_equal(cut.predict_proba(frame), short.predict_proba(frame))
    assert cut.recourse(frame).equals(short.recourse(frame))


@pytest.mark.long
def test_a_growing_radius_is_reached(people):
    frame, labels = people
    options = {"epochs": 30, "patience": 1, "learning_rate": 0.1}
    lengths = {}
    for schedule in ("linear", "log", "constant"):
        lengths[schedule] = len(small(RoCourseNet, schedule=schedule, **options).fit(frame, labels).history_)

    assert lengths["linear"] == lengths["log"] == 30
    assert lengths["constant"] < 30


def test_progress_is_a_bar_of_epochs(people, capsys):
    small(epochs=2, progress=True).fit(*people)
    assert "2/2" in capsys.readouterr().err
    small(epochs=2).fit(*people)
    assert not capsys.readouterr().err


# ---- refusals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"space": "all"}, "CounterNet needs a FeatureSpace"),
        ({"encoder": 50}, "needs numbers of units as encoder, but encoder is 50"),
        ({"encoder": ()}, "needs a layer in encoder, but encoder is ()"),
        ({"predictor": (0,)}, "predictor to be a whole number from 1, but predictor is 0"),
        ({"generator": (2.5,)}, "generator is 2.5"),
        ({"shared": 1}, "shared is 1"),
        ({"residual": None}, "residual is None"),
        ({"activation": "tanh"}, "needs a known activation, but activation is 'tanh'"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"weights": (1.0, 1.0)}, "needs three numbers as weights"),
        ({"weights": (1.0, -1.0, 0.1)}, "weights is -1.0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"epochs": 0}, "epochs is 0"),
        ({"patience": 0}, "patience is 0"),
        ({"label_smoothing": None}, "label_smoothing is None"),
        ({"desired": "perhaps"}, "needs a known desired, but desired is 'perhaps'. Choose from: 'no', 'yes'."),
        ({"desired": ["yes"]}, "needs one label as desired, but desired is list"),
        ({"device": "tpu9"}, "needs a device that JAX finds, but device is 'tpu9'"),
        ({"device": 0}, "needs the name of a device as device"),
        ({"checkpoint": 3}, "needs a path as checkpoint, but checkpoint is 3"),
        ({"progress": "yes"}, "progress is 'yes'"),
        ({"random_state": -1}, "random_state is -1"),
    ],
)
def test_options_that_make_no_sense_are_one_sentence(people, options, says):
    with pytest.raises(CeoptError) as caught:
        small(**options).fit(*people)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"attack_steps": 0}, "RoCourseNet needs attack_steps to be a whole number from 1, but attack_steps is 0"),
        ({"unroll": 0}, "unroll is 0"),
        ({"perturbation": -0.1}, "perturbation to be a number at least 0 and finite, but perturbation is -0.1"),
        ({"norm": "l1"}, "norm is 'l1'"),
        ({"schedule": "static"}, "schedule is 'static'"),
        ({"inner_rate": 0.0}, "inner_rate is 0.0"),
        ({"restart": 1}, "restart is 1"),
        ({"attacked": "generator"}, "attacked is 'generator'"),
    ],
)
def test_attackers_that_make_no_sense_are_one_sentence(people, options, says):
    with pytest.raises(CeoptError) as caught:
        small(RoCourseNet, **options).fit(*people)
    assert says in str(caught.value)


def test_bad_data_are_one_sentence(people):
    frame, labels = people
    cases = [
        ((frame.to_numpy(), labels), "needs a DataFrame of raw columns, but X is ndarray"),
        ((frame, labels[:-1]), "as many labels as rows, but X has 120 and y has 119"),
        ((frame, frame[["sex"]]), "one label a row as y, but its shape is (120, 1)"),
        ((frame, frame["income"]), "labels that are classes, but y holds values such as"),
        ((frame, np.where(labels == "yes", np.inf, 0.0)), "labels that are classes, but y holds values such as"),
        ((frame, np.where(labels == "yes", b"a", b"b")), "labels that are classes, but y holds values such as b'"),
        ((frame, np.full(120, "yes")), "rows of at least two classes, but y has 'yes' alone"),
        ((frame, labels.where(labels == "yes")), "a label of each row, but y has none in row"),
        ((frame, [float("nan"), *labels[1:]]), "a label of each row, but y has none in row 0"),
        ((frame, labels.astype(object).where(labels == "yes", 3)), "labels of one type, but y holds int and str"),
        ((frame.assign(income=np.nan), labels), "'income'"),
        ((frame.assign(income=3.0), labels), "columns of a width above zero, but the width of 'income' is 0"),
        ((frame.assign(job="cook"), labels), "'job' has the level 'cook' alone"),
        ((frame[:0], labels[:0]), "rows of at least two classes, but y has none alone"),
        ((frame, np.arange(120) % 3), "needs a desired class with 3 classes, but desired is None"),
    ]
    for wrong, says in cases:
        with pytest.raises(CeoptError) as caught:
            small().fit(*wrong)
        assert says in str(caught.value), says
        assert str(caught.value).startswith(("CounterNet needs", "FeatureSpace", "Column")), str(caught.value)


def test_bad_questions_are_one_sentence(people, plain):
    frame, _ = people
    cases = [
        ({"X": frame, "target": "perhaps"}, "needs a known target, but target is 'perhaps'"),
        ({"X": frame, "target": np.array(["yes"] * 120)}, "one label as target, but target is ndarray"),
        ({"X": frame, "target": pd.Series(["yes"] * 120)}, "one label as target, but target is Series"),
        ({"X": frame.drop(columns="job")}, "'job' is missing"),
        ({"X": frame.assign(wage=1.0)}, "'wage'"),
        ({"X": frame.assign(job="pilot")}, "'pilot'"),
        ({"X": frame.to_numpy()}, "a DataFrame"),
    ]
    for wrong, says in cases:
        with pytest.raises(CeoptError) as caught:
            plain.recourse(**wrong)
        assert says in str(caught.value), says


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "options"),
    [(CounterNet, {"learning_rate": 1e30}), (RoCourseNet, {"perturbation": 1e39}), (RoCourseNet, {"inner_rate": 1e38})],
)
@pytest.mark.parametrize("patience", [None, 5])
def test_training_that_overflows_is_one_sentence_and_no_network(people, kind, options, patience):
    with pytest.raises(CeoptError, match=r"needs losses and weights that stay finite, but .* nan after epoch"):
        small(kind, patience=patience, **options).fit(*people)


def test_rows_beyond_single_precision_are_told(people, plain):
    far = people[0].assign(age=np.where(np.arange(120) == 3, 10**15, 30))
    fine = plain.predict_proba(far)
    assert np.isfinite(fine).all()
    model = small(epochs=1).fit(people[0].assign(income=people[0]["income"] / 1e3), people[1])
    far = people[0].assign(income=np.where(np.arange(120) == 3, 1e250, 0.03))
    for ask in (model.predict, model.predict_proba, model.recourse):
        with pytest.raises(CeoptError, match=r"needs numbers that fit single precision, but in row 3 'income' is"):
            ask(far)


def test_without_jax_one_sentence_says_what_to_install(people, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingLibraryError, match=r"CounterNet needs JAX .* pip install 'ceopt\[training\]'"):
        small().fit(*people)
