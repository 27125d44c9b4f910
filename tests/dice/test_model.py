"""The model: what is taken, and which back ends are refused by name."""

from __future__ import annotations

import pytest
from dice_people import borrowers, fitted

from ceopt.dice import Dice, Model


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"backend": "TF1"}, "but backend is 'TF1' (TensorFlow). Export the network to ONNX"),
        ({"backend": "TF2"}, "but backend is 'TF2' (TensorFlow). Export the network to ONNX"),
        ({"backend": "PYT"}, "but backend is 'PYT' (PyTorch). Export the network to ONNX"),
        ({"backend": {"model": "xgboost_model.XGBoostModel"}}, "models of XGBoost and LightGBM are read by it too"),
        ({"model_type": "ranker"}, "Choose from: classifier, regressor"),
        ({"model_path": "model.pkl"}, "a pickle runs whatever code its writer chose"),
        ({"func": "ohe-min-max"}, "but func is 'ohe-min-max'. Put the transformation before the model"),
        ({"kw_args": {}}, "but kw_args is {}"),
        ({"model": None}, "Model needs a fitted model with predict, but model is None"),
    ],
)
def test_what_would_change_the_meaning_is_refused(changed, sentence):
    given = {"model": fitted(borrowers()), "backend": "sklearn"} | changed

    with pytest.raises((TypeError, ValueError)) as caught:
        Model(**given)
    assert sentence in str(caught.value)


def test_a_network_is_refused_whatever_back_end_is_said():
    class Sequential:
        def predict(self, rows):
            return rows

    Sequential.__module__ = "keras.models"

    with pytest.raises(TypeError, match="model is of Keras. Export the network to ONNX"):
        Model(model=Sequential(), backend="sklearn")


def test_the_explainer_wants_both():
    with pytest.raises(TypeError, match=r"Dice needs a ceopt.dice.Data, but it is DataFrame. Write Data\("):
        Dice(borrowers(), Model(model=fitted(borrowers())))
