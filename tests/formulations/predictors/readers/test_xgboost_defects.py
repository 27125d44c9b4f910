"""Faults that other embedding libraries have with XGBoost, each reproduced there, are absent here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from xgboost import XGBClassifier, XGBRegressor

import ceopt
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.readers.xgboost import sigmoid

RNG = np.random.default_rng(11)
FRAME = pd.DataFrame({"a": RNG.normal(size=200).round(3), "b": RNG.normal(size=200).round(3)})
RARE = ((FRAME["a"] + FRAME["b"] + RNG.normal(size=200)) > 1.2).astype(int)
SPACE = ceopt.FeatureSpace.infer(FRAME)
ROWS = FRAME.to_numpy()


def fixed(space: ceopt.FeatureSpace) -> ceopt.FeatureSpace:
    for name in space.names:
        space = space.update(name, mutable=False)
    return space


def test_the_estimated_base_score_enters_the_sum_as_log_odds() -> None:
    """D4: a library that reads no base score of 3.x, or adds the probability itself to the margin."""
    model = XGBClassifier(n_estimators=3, max_depth=2).fit(FRAME, RARE)
    share = float(np.mean(RARE))

    core = read(model, SPACE).core

    assert core.base == pytest.approx([logit(share)], abs=1e-4)
    assert abs(share - logit(share)) > 1.0
    np.testing.assert_array_equal(core.score(ROWS), model.predict(FRAME, output_margin=True))


def test_probabilities_are_those_of_the_library() -> None:
    """D7: base score read but left out: 0.516, 0.163, 0.692 instead of 0.642, 0.247, 0.791."""
    model = XGBClassifier(n_estimators=3, max_depth=2).fit(FRAME, 1 - RARE)
    core, shares = read(model, SPACE).core, model.predict_proba(FRAME)[:, 1]

    np.testing.assert_allclose(sigmoid(core.score(ROWS)), shares, rtol=2e-7)
    assert np.abs(expit(core.score(ROWS) - core.base[0]) - shares).min() > 0.05
    row = FRAME.iloc[[int(np.argmin(shares))]]
    for at_least, status in (
        (float(shares.min()) - 1e-3, "already_favourable"),
        (float(shares.min()) + 1e-3, "infeasible"),
    ):
        answer = ceopt.explain(model, row, fixed(SPACE), target=ceopt.Probability(1, at_least))
        assert answer.status == status


@pytest.mark.parametrize("label", [0, 1])
def test_a_probability_that_is_attained_is_reached_for_either_label(label: int) -> None:
    """The library rounds 1 - p to float32 as well; in float64 a third of the first label's shares were too small."""
    model = XGBClassifier(n_estimators=3, max_depth=2).fit(FRAME, RARE)
    shares = model.predict_proba(FRAME)[:, label]
    core = read(model, SPACE).core
    np.testing.assert_array_equal(core.head.of_position(core.score(ROWS), label), shares.astype(float))

    row = FRAME.iloc[[int(np.argmin(shares))]]
    for level in sorted({float(share) for share in shares if share > shares.min()})[-5:]:
        answer = ceopt.explain(model, row, SPACE, target=ceopt.Probability(label, level))
        assert answer.status == "optimal", level


@pytest.mark.parametrize(
    "model", [XGBRegressor(n_estimators=4, max_depth=3), XGBClassifier(n_estimators=4, max_depth=3)]
)
def test_no_split_is_dropped(model: Any) -> None:
    """D5: ``<`` is a split like ``<=``: with every input fixed the output is one value, not a range."""
    model.fit(FRAME, RARE)
    saved = model.get_booster().get_dump(dump_format="text")
    predictor = read(model, SPACE)

    inner = [int(tree.inner.sum()) for tree in predictor.core.trees]
    assert inner == [text.count("[") for text in saved]
    assert sum(inner) > 8
    row = FRAME.iloc[[0]]
    if isinstance(model, XGBRegressor):
        value = float(model.predict(row)[0])
        for shift, status in ((-1e-3, "already_favourable"), (1e-3, "infeasible")):
            assert ceopt.explain(model, row, fixed(SPACE), target=ceopt.AtLeast(value + shift)).status == status
        return
    label = int(model.predict(row)[0])
    assert ceopt.explain(model, row, fixed(SPACE), target=1 - label).status == "infeasible"


@pytest.mark.parametrize("scale", [1.0, 150.0, 1e6])
def test_one_side_of_a_threshold_only_is_reached_from_any_number(scale: float) -> None:
    """D8: an epsilon of 1e-6 below a float32 threshold above 16 is no epsilon; a neighbouring float32 is."""
    frame = pd.DataFrame({"x": np.repeat([0.5, 1.5], 30) * scale})
    model = XGBClassifier(n_estimators=2, max_depth=1, tree_method="exact").fit(frame, frame["x"] > scale)
    space = ceopt.FeatureSpace([ceopt.Feature("x", kind="continuous", lower=0.0, upper=2.0 * scale)])
    (threshold,) = {float(tree.threshold[0]) for tree in read(model, space).core.trees}
    edge = np.float32(np.nextafter(threshold, np.inf))
    below = float(np.nextafter(edge, np.float32(0)))
    tie = (below + float(edge)) / 2  # rounds to the one of both that is even

    for x in (below, np.nextafter(tie, 0), tie, np.nextafter(tie, np.inf), float(edge)):
        row = pd.DataFrame({"x": [x]})
        own = int(model.predict(row)[0])
        assert ceopt.explain(model, row, fixed(space), target=own).status == "already_favourable"
        assert ceopt.explain(model, row, fixed(space), target=1 - own).status == "infeasible"

    for start, label in ((0.5 * scale, 1), (1.5 * scale, 0)):
        answer = ceopt.explain(model, pd.DataFrame({"x": [start]}), space, target=label, cost="l1")[0]
        assert answer.verified
        assert abs(answer.values["x"] - float(edge)) <= 2 * float(np.spacing(edge))
