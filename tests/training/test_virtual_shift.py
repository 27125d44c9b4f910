"""Virtual data shift on raw frames: what moves, what is promised, and each refusal."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

pytest.importorskip("jax")

import ceopt
from ceopt.solvers.errors import CeoptError
from ceopt.training import virtual_data_shift
from ceopt.training.networks import network_of, scores_of, shares_of
from ceopt.training.training import AttackedRows, ShiftAttack


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, n).round(2),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "loans": rng.integers(0, 5, n),
            "owner": rng.random(n) < 0.4,
        }
    )
    score = frame["income"] / 8 - frame["loans"] + frame["owner"] + (frame["job"] == "nurse")
    return frame, pd.Series(np.where(score > score.median(), "good", "bad"))


@pytest.fixture(scope="module")
def model(people):
    columns = make_column_transformer(
        (StandardScaler(), ["income", "loans"]), (OneHotEncoder(), ["job"]), ("passthrough", ["owner"])
    )
    return make_pipeline(columns, LogisticRegression(C=10.0)).fit(*people)


def advice(people):
    return people[0].assign(income=people[0]["income"].to_numpy()[::-1])


def test_a_pipeline_of_scalers_and_encoders_is_read_as_it_predicts(people, model):
    network = network_of("test", model, people[0])

    np.testing.assert_allclose(network.predict_proba(people[0]), model.predict_proba(people[0]), atol=1e-5)
    assert (network.predict(people[0]) == model.predict(people[0])).all()


@pytest.mark.long
def test_a_network_of_three_classes_is_read_as_it_predicts(people):
    frame = people[0][["income", "loans"]]
    labels = np.digitize(frame["income"], [26.0, 34.0])
    net = make_pipeline(StandardScaler(), MLPClassifier((6,), max_iter=60, random_state=0, tol=1.0)).fit(frame, labels)
    network = network_of("test", net, frame)

    np.testing.assert_allclose(network.predict_proba(frame), net.predict_proba(frame), atol=1e-5)
    found = virtual_data_shift(net, frame, labels, frame, targets=np.full(len(frame), 2), steps=3, learning_rate=1.0)
    assert found.objective.shape == (4,)
    assert found.objective[-1] > found.objective[0]


@pytest.mark.long
def test_a_stronger_attack_loses_more(people, model):
    losses = []
    for radius in (0.0, 0.1, 0.3):
        found = virtual_data_shift(
            model, *people, advice(people), perturbation=radius, learning_rate=2.0, unroll=3, steps=10
        )
        losses.append(found.objective[-1])
        assert np.abs(found.shift).max() <= radius + 1e-6

    assert losses[0] < losses[1] < losses[2]


@pytest.mark.long
def test_only_what_may_move_moves(people, model):
    numbers = virtual_data_shift(model, *people, advice(people), steps=2)
    chosen = virtual_data_shift(model, *people, advice(people), steps=2, movable=["job"])
    everything = virtual_data_shift(model, *people, advice(people), steps=2, movable="all")

    moved = [(found.shift != 0).any(axis=0).tolist() for found in (numbers, chosen, everything)]
    assert moved == [[True, False, False, False, True, False], [False, True, True, True, False, False], [True] * 6]


def test_the_same_seed_gives_the_same_shift(people, model):
    first, again, other = (virtual_data_shift(model, *people, advice(people), random_state=s) for s in (3, 3, 4))

    assert (first.shift == again.shift).all()
    assert (first.objective == again.objective).all()
    assert (first.shift != other.shift).any()


@pytest.mark.long
def test_the_retrained_model_is_the_one_whose_loss_is_reported(people, model):
    found = virtual_data_shift(model, *people, advice(people), steps=3)
    wanted = np.eye(2)[(model.predict(people[0]) == "bad").astype(int)]
    loss = 0.5 * ((found.model.predict_proba(advice(people)) - wanted) ** 2).sum(axis=1).mean()

    assert loss == pytest.approx(found.objective[-1], rel=1e-5)
    assert set(found.model.predict(people[0])) <= set(model.classes_)


def test_the_model_has_seen_the_rows_before_the_last_step(people, model):
    """Retrained from the model given in each step, that of step 2 is the one retrained at what step 1 shifted to."""
    import jax

    options = {"unroll": 3, "restart": True, "perturbation": 0.3, "step_size": 0.2, "learning_rate": 0.5}
    one = virtual_data_shift(model, *people, advice(people), steps=1, **options)
    two = virtual_data_shift(model, *people, advice(people), steps=2, **options)
    network = network_of("test", model, people[0])
    rows = network.columns.encode(people[0])
    codes = np.eye(2)[network.codes_of("test", "y", people[1])]
    attack = ShiftAttack(1, 3, "linf", 0.5, restart=True)

    def shares(layers, x):
        return shares_of(scores_of(layers, x, network.activation, jax.numpy), jax.numpy)

    def trained_at(shift):
        given = AttackedRows(rows, codes, rows, codes)
        layers = attack.ahead(shares, network.layers, jax.numpy.asarray(shift), given)[1]
        return np.concatenate([np.ravel(part) for part in jax.tree.leaves(layers)])

    def weights_of(found):
        return np.concatenate([np.ravel(part) for part in jax.tree.leaves(found.model.layers)])

    assert np.abs(trained_at(one.shift) - weights_of(two)).max() < 1e-5
    assert np.abs(trained_at(one.shift) - weights_of(one)).max() > 1e-4


@pytest.mark.long(every=2)
@pytest.mark.filterwarnings("error")  # a program that is new casts what another has cast already
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"perturbation": -0.1}, "needs perturbation to be a number at least 0 and finite, but perturbation is -0.1"),
        ({"steps": 0}, "needs steps to be a whole number from 1, but steps is 0"),
        ({"unroll": 0}, "needs unroll to be a whole number from 1, but unroll is 0"),
        ({"norm": "l1"}, "needs a known norm, but norm is 'l1'"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"step_size": -1.0}, "step_size is -1.0"),
        ({"movable": "numbers"}, "movable is 'numbers'"),
        ({"movable": ["wage"]}, "'wage'"),
        ({"movable": None}, "needs the names of columns as movable, but movable is None"),
        ({"movable": 3}, "movable is 3"),
        ({"perturbation": 1e39}, "needs a loss that stays finite, but after step 1 it is nan"),
        ({"perturbation": 1e39, "steps": 3}, "needs a loss that stays finite, but after step 1 it is nan"),
        ({"learning_rate": 1e39}, "needs a loss that stays finite, but after step 1 it is nan"),
        ({"targets": [{}] * 60}, "needs a known class in targets, but class in targets is {}"),
        ({"targets": ["good"]}, "counterfactuals has 60 rows and targets has 1"),
        ({"targets": ["better"] * 60}, "needs a known class in targets, but class in targets is 'better'"),
        ({"random_state": -1}, "random_state is -1"),
        ({"restart": 1}, "restart is 1"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(people, model, changes, says):
    with pytest.raises(CeoptError) as caught:
        virtual_data_shift(model, *people, advice(people), **changes)
    assert says in str(caught.value)


def test_bad_data_are_one_sentence(people, model):
    frame, labels = people
    cases = [
        ((frame, labels[:-1], advice(people)), "X has 60 and y has 59"),
        ((frame, labels.replace("bad", "worse"), advice(people)), "'worse'"),
        ((frame, labels, advice(people)[:0]), "needs at least one row in counterfactuals"),
        ((frame[:0], labels[:0], advice(people)), "a frame with rows and columns"),
        ((frame, labels, advice(people)[:9]), "X has 60 rows and counterfactuals has 9"),
        ((frame, labels, advice(people).assign(income=np.nan)), "'income'"),
    ]
    for given, says in cases:
        with pytest.raises(CeoptError) as caught:
            virtual_data_shift(model, *given)
        assert says in str(caught.value)
    with pytest.raises(CeoptError, match="a model that can be differentiated"):
        virtual_data_shift(LinearSVC().fit(frame[["income"]], labels), frame[["income"]], labels, frame[["income"]])
    three = labels.where(frame["loans"] > 1, "middling")
    net = LogisticRegression().fit(frame[["income"]], three)
    with pytest.raises(CeoptError, match="needs targets with 3 classes, but targets is None"):
        virtual_data_shift(net, frame[["income"]], three, frame[["income"]])


def test_without_jax_one_sentence_says_what_to_install(people, model, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ceopt.CeoptError, match=r"pip install 'ceopt\[training\]'"):
        virtual_data_shift(model, *people, advice(people))
