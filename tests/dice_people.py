"""Borrowers, a model of them, and both as dice_ml's scripts describe them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt.dice as dice_ml

NUMBERS = ["age", "hours"]
CATEGORIES = ["job", "school"]


def borrowers(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "job": rng.choice(["cook", "nurse", "clerk"], n),
            "school": rng.integers(1, 4, n),  # numbers that are categories
            "hours": rng.normal(38, 8, n).round(1),
        },
        index=[f"p{place}" for place in range(n)],
    )
    score = frame["age"] / 10 + frame["hours"] / 5 + 3.0 * (frame["job"] == "nurse") + frame["school"]
    return frame.assign(rich=(score > score.median()).astype(int))


def fitted(frame, estimator=None, outcome="rich"):
    columns = ColumnTransformer([("number", StandardScaler(), NUMBERS), ("level", OneHotEncoder(), CATEGORIES)])
    model = make_pipeline(columns, LogisticRegression() if estimator is None else estimator)
    return model.fit(frame[NUMBERS + CATEGORIES], frame[outcome])


def tree(frame, depth=4):
    return fitted(frame, DecisionTreeClassifier(max_depth=depth, random_state=0))


def explainer(frame, model, method=None, outcome="rich", model_type="classifier", **options):
    data = dice_ml.Data(dataframe=frame, continuous_features=NUMBERS, outcome_name=outcome)
    return dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn", model_type=model_type), method, **options)


def queries(frame, outcome="rich"):
    return frame.drop(columns=outcome)
