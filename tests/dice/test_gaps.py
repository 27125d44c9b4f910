"""People with missing cells, asked by dice_ml's calls: the cells stay, unless the space says otherwise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import ceopt.dice as dice_ml

RNG = np.random.default_rng(0)
N = 150
FRAME = pd.DataFrame({"pay": RNG.integers(10, 90, N) / 10, "debt": RNG.integers(0, 9, N)})
RICH = (FRAME["pay"] - 0.5 * FRAME["debt"] > 2.0).astype(int)
GAPS = FRAME.assign(pay=FRAME["pay"].mask(np.arange(N) % 5 == 0))
MODEL = HistGradientBoostingClassifier(max_iter=15, min_samples_leaf=5).fit(GAPS, RICH)
DATA = dice_ml.Data(dataframe=FRAME.assign(rich=RICH), continuous_features=["pay", "debt"], outcome_name="rich")
POOR = GAPS[MODEL.predict(GAPS) == 0]
LACKING = POOR[POOR["pay"].isna()]


def explained(model=MODEL, rows=LACKING[:2], space=None, **options):
    explainer = dice_ml.Dice(DATA, dice_ml.Model(model=model), space=space)
    return explainer.generate_counterfactuals(rows, total_CFs=1, **options)


def test_a_missing_cell_stays_missing_and_counts_as_no_change():
    found = explained(rows=pd.concat([LACKING[:2], POOR.dropna()[:1]]))
    assert len(found.cf_examples_list) == 3
    for example in found.cf_examples_list[:2]:
        assert example.test_instance_df["pay"].isna().all()
        if example.final_cfs_df is not None:
            assert example.final_cfs_df["pay"].isna().all()
    assert found.cf_examples_list[2].final_cfs_df["pay"].notna().all()
    again = dice_ml.CounterfactualExplanations.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.cf_examples_list[0].test_instance_df["pay"].isna().all()


def test_the_importance_of_a_cell_that_stays_missing_is_none():
    explainer = dice_ml.Dice(DATA, dice_ml.Model(model=MODEL))
    found = explainer.local_feature_importance(LACKING[:1], total_CFs=10)
    assert found.local_importance[0] == {"debt": 1.0, "pay": 0.0}


def test_the_space_may_let_it_be_filled_in():
    space = DATA.space.update("pay", missing=True, fill=0.01).fix("debt")
    found = explained(space=space)
    for example in found.cf_examples_list:
        assert example.final_cfs_df["pay"].notna().all()
        assert MODEL.predict(example.final_cfs_df[["pay", "debt"]]).tolist() == [1]


def test_a_permitted_range_does_not_bind_what_is_missing():
    found = explained(permitted_range={"pay": [4.0, 8.0], "debt": [0, 8]})
    for example in found.cf_examples_list:
        if example.final_cfs_df is not None:
            assert example.final_cfs_df["pay"].isna().all()


def test_a_model_that_takes_no_missing_cells_is_named_with_the_columns():
    model = LogisticRegression(max_iter=1000).fit(FRAME, RICH)
    with pytest.raises(ValueError, match="the model fails where 'pay' is missing .*put an imputer before the model"):
        explained(model)
    assert len(explained(model, rows=FRAME[model.predict(FRAME) == 0][:1]).cf_examples_list) == 1
