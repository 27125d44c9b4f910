"""A few people with columns of every kind, and networks small enough to train in a test."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ceopt import FeatureSpace
from ceopt.training import CounterNet, RoCourseNet

SMALL = {"encoder": (8, 4), "predictor": (4,), "generator": (8,), "batch_size": 32, "epochs": 12, "learning_rate": 0.02}


def loan_people(n=120, seed=0):
    """Rows, and labels that they decide."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.normal(30.0, 8.0, n).round(2),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "loans": rng.integers(0, 6, n),
            "school": rng.choice(["low", "middle", "high"], n),
            "owner": rng.random(n) < 0.4,
            "age": rng.integers(20, 60, n),
            "sex": rng.choice(["f", "m"], n),
        },
        index=[f"p{row}" for row in range(n)],
    )
    score = frame["income"] / 8 - frame["loans"] + frame["owner"] + 2.0 * (frame["job"] == "nurse")
    return frame, pd.Series(np.where(score > score.median(), "yes", "no"), index=frame.index)


def loan_space(frame):
    """School only rises, age only grows, sex stays, income moves in steps and has the user's bounds."""
    space = FeatureSpace.infer(frame, moves={"age": "up", "sex": "fixed"})
    space = space.update("school", kind="ordinal", levels=["low", "middle", "high"], direction="increasing")
    return space.update("income", step=0.5, lower=0.0, upper=60.0)


def small(kind=CounterNet, **options):
    """An estimator that fits in a second."""
    given = {**SMALL, **options}
    if kind is RoCourseNet:
        given = {"attack_steps": 2, "unroll": 1, **given}
    return kind(**given)
