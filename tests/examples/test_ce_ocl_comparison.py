"""The comparison with CE-OCL: data as the paper prepares them, what is asked and checked, and how it is judged."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def example(monkeypatch):
    if not (ROOT / "examples").is_dir():
        pytest.skip("The examples are not beside the tests.")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    yield lambda part="": importlib.import_module(f"ce_ocl.comparison{part and '_'}{part}")
    for name in [name for name in sys.modules if name.startswith(("ce_ocl", "leofante_potyka"))]:
        del sys.modules[name]


def test_numbers_are_scaled_by_all_rows_and_a_pair_of_levels_is_one_column(example):
    case = example().loans()
    rows = case.data.head(50)
    by_hand = np.column_stack(
        [(rows[name] - case.data[name].min()) / np.ptp(case.data[name]) for name in case.numbers]
        + [(rows[name] == max(case.data[name])).astype(float) for name in case.words]
    )

    assert case.words == ["sex"]
    assert example().encoded(case, rows) == pytest.approx(by_hand)
    assert np.asarray(case.encoder.transform(rows)) == pytest.approx(by_hand)


def test_loans_are_explained_to_people_outside_the_training_part(example):
    case = example().loans(people=4)

    assert len(case.people) == 4
    assert not set(case.people.index) & set(case.data.index[case.train])
    assert (case.labels[case.people.index] == 0).all()
    assert case.fixed == ["age", "sex"]


def test_released_people_columns_and_splits(example, data_dir, monkeypatch):
    monkeypatch.setenv("CEOPT_DATA", str(data_dir))
    load = example().load

    adult, compas, heloc, gmsc = (load(name) for name in example().DATA_SETS)
    assert [len(case.people) for case in (adult, compas, heloc, gmsc)] == [30] * 4
    assert [int(case.train.sum()) for case in (adult, compas, heloc)] == [36624, 4629, 7403]
    assert (len(adult.numbers), len(adult.words), adult.fixed) == (6, 7, ["age", "sex"])
    assert (set(compas.numbers), compas.words) == (
        {"age", "two_year_recid", "priors_count", "length_of_stay"},
        ["c_charge_degree", "race", "sex"],
    )
    assert set(compas.data["race"]) == {"African-American", "Other"}
    assert set(compas.fixed) == {"age", "race", "sex"}
    assert (len(heloc.numbers), heloc.fixed, gmsc.fixed) == (21, [], ["age"])
    assert not set(gmsc.people.index) & set(gmsc.data.index[gmsc.train])
    # The scaling of the whole set, of which the folder has a quarter.
    assert (gmsc.space["DebtRatio"].range, gmsc.data["DebtRatio"].max()) == (1299.0, 1294.5)
    # The first person of the released file of factuals, scaled.
    assert example().encoded(compas, compas.people)[:, :2].min() >= 0.0


def test_the_objective_counts_a_column_of_the_encoding_once_and_squares_of_ranges(example):
    case, cost = example().loans(), example("asking").COST
    person = case.people.iloc[0].to_dict()
    feature = case.space["income"]
    point = {name: case.space[name].to_coordinate(value) for name, value in person.items()}
    moved = point | {"income": point["income"] + 0.5 * feature.range, "sex": 1.0 - point["sex"]}

    assert cost.value(case.space, point, moved) == pytest.approx(20_000 + 0.25 + 1.0)


@pytest.mark.parametrize("method", ["pool", "nearest", "in range"])
def test_answers_are_valid_kept_and_measured(example, method):
    case, asking, models = example().loans(), example("asking"), example("models")
    model = models.fitted(case, "logistic", {"C": 0.5, "l1_ratio": 0.0})
    person = case.people[model.predict(case.people) == 0].iloc[[0]]
    found = asking.ask(case, model, method, person)
    answers = pd.DataFrame(found["answers"], columns=list(case.data))

    assert (found["status"], len(answers)) == ("optimal", 3)
    assert found["valid"] == found["valid_numpy"] == found["kept"] == 3
    assert (model.predict(answers) == 1).all()
    changed = (answers.to_numpy(dtype=object) != person.to_numpy(dtype=object)).mean()
    assert found["measures"]["sparsity"] == pytest.approx(1.0 - changed)
    if method == "in range":
        numbers = answers[case.numbers].astype(float)
        assert (numbers >= case.data[case.numbers].min() - 1e-9).all(axis=None)
        assert (numbers <= case.data[case.numbers].max() + 1e-9).all(axis=None)


def test_columns_stay_in_range_only_where_the_method_says_so(example, monkeypatch):
    case, asking, models, seen = example().loans(), example("asking"), example("models"), []
    model = models.fitted(case, "tree", {"max_depth": 3})
    explain = asking.ceopt.explain

    def noted(*args, **words):
        seen.append(args[2]["income"])
        return explain(*args, **words)

    monkeypatch.setattr(asking.ceopt, "explain", noted)
    for method in ("pool", "in range"):
        asking.ask(case, model, method, case.people.iloc[[0]])
    feature = case.space["income"]
    far = asking.FAR * feature.range

    assert [(f.lower, f.upper) for f in seen] == [
        (feature.lower - far, feature.upper + far),
        (feature.lower, feature.upper),
    ]


def test_checks_count_what_is_invalid_and_what_moved_a_fixed_column(example):
    case, asking, models = example().loans(), example("asking"), example("models")
    model = models.fitted(case, "tree", {"max_depth": 3})
    person = case.people[model.predict(case.people) == 0].iloc[[0]]
    older = person.assign(age=person["age"] + 1.0)
    found = asking.measured(case, model, person, pd.concat([person, older]))

    assert (found["valid"], found["valid_numpy"], found["kept"]) == (0, 0, 1)
    assert found["measures"]["validity"] == 0.0
    assert asking.measured(case, model, person, person.iloc[:0])["measures"] == {}


def test_mean_and_standard_error_are_over_people(example):
    records = [{"measures": {"sparsity": value}} for value in (0.8, 0.9, 1.0)] + [{"measures": {}}]

    assert example("asking").summary(records)["sparsity"] == pytest.approx((0.9, 0.1 / np.sqrt(3)))


def test_as_good_is_within_the_published_error_and_rounding(example):
    is_reached = example("report").is_reached

    assert is_reached(-14.3, (-13.12, 1.4))
    assert not is_reached(-14.6, (-13.12, 1.4))
    assert is_reached(0.946, (0.95, 0.0))
    assert not is_reached(0.944, (0.95, 0.0))


def test_exceptions_are_what_neither_set_of_answers_reaches(example):
    report = example("report")
    paper = report.published()[3, "compas", "network", "CE-OCL"]
    good = {name: paper[name][0] for name in report.TARGETS}
    poor = good | {"continuous_proximity": -1e4}

    def kept(pool, nearest):
        return {
            "compas/network/0/pool/0": {"status": "optimal", "measures": pool},
            "compas/network/0/nearest/0": {"status": "optimal", "measures": nearest},
            "compas/network/0/pool/1": {"status": "already_favourable", "measures": {}},
        }

    assert report.exceptions(kept(poor, good), ["compas"]) == []
    assert report.exceptions(kept(poor, poor), ["compas"]) == [("compas", "network", "continuous_proximity")]
    assert report.exceptions(kept(poor, poor), ["gmsc"]) == []


def test_published_rows_are_complete_and_say_what_is_no_target(example):
    report = example("report")
    text = json.loads((ROOT / "examples/ce_ocl/published_comparison.json").read_text(encoding="utf-8"))
    kinds = ("logistic", "tree", "forest", "boosting", "network")
    rows = {
        (3, data, kind, who)
        for data in example().DATA_SETS
        for kind in kinds
        for who in ("CE-OCL", "CE-OCL_tr", "DiCE")
    }

    assert {key for key in report.published() if key[0] == 3} == rows
    assert report.published()[3, "adult_binary", "forest", "CE-OCL"]["continuous_proximity"] == [-6775.61, 953.24]
    assert "boosting" in text["notes"]


def test_a_run_goes_on_where_it_was_interrupted(example, tmp_path, monkeypatch):
    run, path, made = example("run"), tmp_path / "journal.jsonl", []

    def counted(item):
        made.append(item)
        return [{"options": {"C": 1.0}, "auc": 0.5}]

    monkeypatch.setattr(run, "answer", counted)
    run.run(["loans/logistic"], run.opened(path), 1, quiet=True)
    again = run.opened(path)
    run.run(["loans/logistic", "loans/logistic/0/pool/0"], again, 1, quiet=True)

    assert made == [("loans/logistic", ""), ("loans/logistic/0/pool/0", '{"C": 1.0}')]
    assert set(again.kept) == {"loans/logistic", "loans/logistic/0/pool/0"}
    path.write_text(path.read_text(encoding="utf-8").replace('"ceopt": "', '"ceopt": "9.'), encoding="utf-8")
    assert run.opened(path).kept == {}


def test_the_grid_is_ranked_by_area_under_the_curve(example):
    found = example("models").tuned(example().loans(), "svm")

    assert len(found) == 4
    assert [one["auc"] for one in found] == sorted((one["auc"] for one in found), reverse=True)
