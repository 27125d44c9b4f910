"""A model that is asked about again is read once, and one that has changed is read again."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.search import prepare as preparing
from ceopt.search import read_once as reading

SPACE = ceopt.FeatureSpace([ceopt.Feature(name, kind="integer", lower=0, upper=9) for name in ("a", "b")])
DATA = pd.DataFrame([(a, b) for a in range(10) for b in range(10)], columns=["a", "b"])
ROW = {"a": 1, "b": 1}


def fitted(model, least=9):
    return model.fit(DATA, (DATA.a + DATA.b >= least).map({True: "yes", False: "no"}))


@pytest.fixture
def reads(monkeypatch):
    """The models that are read."""
    models = []
    read = preparing.read

    def noted(model, *args, **kwargs):
        models.append(model)
        return read(model, *args, **kwargs)

    monkeypatch.setattr(preparing, "read", noted)
    return models


def asked(model, space=SPACE, target="yes", **given):
    return ceopt.explain(model, ROW, space, target=target, **given)


@pytest.mark.parametrize("model", [LogisticRegression(), DecisionTreeClassifier(random_state=0)])
def test_a_second_call_reads_nothing(reads, model):
    model = fitted(copy.deepcopy(model))

    costs = [asked(model, data=DATA)[0].cost for _ in range(3)]

    assert len(set(costs)) == 1
    assert len(reads) == 1


def test_recourse_reads_what_explain_has_read(reads):
    model = fitted(LogisticRegression())
    asked(model, data=DATA)

    cohort = ceopt.Recourse(model, SPACE, target="yes").fit(DATA).explain(DATA.iloc[[11]])

    assert cohort[0][0].cost == asked(model, data=DATA)[0].cost
    assert len(reads) == 1


def test_another_space_or_other_data_is_read_for_itself(reads):
    model = fitted(LogisticRegression())
    narrow = SPACE.update("a", upper=5)

    asked(model, data=DATA)
    assert asked(model, narrow, data=DATA)[0].values["a"] <= 5
    asked(model, data=DATA.iloc[::2])
    asked(model)

    assert len(reads) == 4


def test_a_model_changed_in_place_is_read_again(reads):
    model = fitted(LogisticRegression())
    before = asked(model)[0].cost

    model.intercept_ += model.coef_[0, 0] * 3.0
    after = asked(model)[0]
    model.intercept_ -= model.coef_[0, 0] * 3.0

    assert after.cost < before
    assert model.predict(after.frame) == ["no"]  # it was changed back
    assert asked(model)[0].cost == before
    assert len(reads) == 3


def test_a_model_fitted_again_is_read_again(reads):
    model = fitted(DecisionTreeClassifier(random_state=0))
    before = asked(model)[0].cost
    fitted(model, least=12)

    assert asked(model)[0].cost > before
    assert len(reads) == 2


def test_an_equal_model_does_not_share_what_the_first_may_change(reads):
    first = fitted(LogisticRegression())
    second = copy.deepcopy(first)
    cost = asked(first)[0].cost
    first.coef_ *= 0.5

    assert asked(second)[0].cost == cost
    assert len(reads) == 2


def test_rows_of_the_data_are_those_of_the_target(reads):
    model = fitted(LogisticRegression())
    kept = [preparing.prepare(model, SPACE, settings(target), data=DATA, fingerprints=marks(model)) for target in "yn"]
    fresh = [preparing.prepare(model, SPACE, settings(target), data=DATA) for target in "yn"]

    for one, other in zip(kept, fresh, strict=True):
        assert one.target_rows.tolist() == other.target_rows.tolist()
    assert len(kept[0].target_rows) + len(kept[1].target_rows) == len(DATA)
    assert len(reads) == 3


def test_text_of_many_rows_has_a_content_and_a_part_of_it_that_of_its_copy():
    """pyarrow hands such columns over as buffers, and of a part the whole column."""
    frame = pd.DataFrame({"job": [f"job {k % 70}" for k in range(40_000)], "age": range(40_000)})
    assert preparing.content_of(frame) == preparing.content_of(frame.copy()) is not None
    assert preparing.content_of(frame.iloc[:90]) == preparing.content_of(frame.iloc[:90].copy())
    assert preparing.content_of(frame.iloc[:90]) != preparing.content_of(frame.iloc[1:91])
    assert preparing.content_of(frame) != preparing.content_of(frame.assign(job=frame["job"].replace("job 7", "job 8")))


def settings(letter):
    from ceopt.settings import Settings

    return Settings(target={"y": "yes", "n": "no"}[letter])


def marks(model):
    return preparing.fingerprints_of(model, DATA)


def same(x):
    return x


def test_code_of_the_users_own_is_read_in_each_call(reads):
    """A function may be another one, of the same name: its hash does not tell."""
    model = fitted(LogisticRegression())
    model.note = same
    assert preparing.model_content(model) is not None
    for _ in range(2):
        asked(model)

    assert len(reads) == 2


def test_a_model_without_a_hash_is_read_in_each_call(reads):
    model = fitted(LogisticRegression())
    model.note = lambda: None
    assert preparing.model_content(model) is None
    for _ in range(2):
        asked(model)

    assert len(reads) == 2


def test_a_file_counts_by_its_bytes(reads, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    path = tmp_path / "model.json"

    def saved(least):
        model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(DATA, DATA.a + DATA.b >= least)
        model.get_booster().save_model(path)
        return asked(path, target=1)[0].cost

    first = saved(9)
    assert asked(path, target=1)[0].cost == first
    assert saved(12) > first
    assert len(reads) == 2


def test_few_numbers_are_kept(reads, monkeypatch):
    models = [fitted(DecisionTreeClassifier(random_state=0), least) for least in (8, 9, 10)]
    for model in models:
        asked(model)
    sizes = [one.numbers for one in reading._kept]
    assert len(sizes) == 3
    assert min(sizes) > 20

    monkeypatch.setattr(reading, "_MOST_NUMBERS", sizes[0] + sizes[2])
    asked(models[0])
    fourth = fitted(DecisionTreeClassifier(random_state=0, max_depth=1))
    asked(fourth)

    kept = [one.model for one in reading._kept]
    assert kept[-1] is fourth
    assert models[1] not in kept
    assert sum(one.numbers for one in reading._kept) <= sizes[0] + sizes[2]


def test_a_representation_is_kept_with_the_rows_of_its_target(reads):
    model = Affine([1.0, 1.0], -8.5, labels=("no", "yes"))
    first, second = (asked(model, data=DATA)[0].cost for _ in range(2))

    assert first == second == pytest.approx(asked(Affine([1.0, 1.0], -8.5, labels=("no", "yes")))[0].cost)


def test_threads_share_a_reading(reads):
    models = [fitted(LogisticRegression(), least) for least in (8, 9, 10)]
    alone = [asked(model)[0].cost for model in models]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: asked(models[k % 3])[0].cost, range(12)))

    assert found == [alone[k % 3] for k in range(12)]
    assert len(reads) == 3
    assert len(np.unique(alone)) == 3
