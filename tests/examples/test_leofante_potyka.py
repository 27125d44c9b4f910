"""The protocol of the paper's experiments, as the study of the paper and benchmarks/diverse.py run it."""

import importlib
import json

import numpy as np
import pytest

#: Mean of k-distance, k-diversity, sum and max over 59 pairs: diabetes, l1, minimised, released network.
RELEASED = (1.1356, 1.3891, 0.2100, 0.5193)


@pytest.fixture
def protocol(papers):
    return importlib.import_module("leofante_potyka.protocol")


def test_columns_are_scaled_by_the_whole_file_before_the_split(protocol):
    split = protocol.loans()
    unit = np.vstack([split.train, split.test])

    assert unit.min(axis=0) == pytest.approx(0.0)
    assert unit.max(axis=0) == pytest.approx(1.0)
    assert len(split.test) == pytest.approx(0.2 * len(unit), abs=1)
    assert split.labels.mean() == pytest.approx(split.test_labels.mean(), abs=0.01)  # stratified


def test_copies_are_clipped_and_of_the_same_class_and_come_in_the_released_order(protocol):
    split = protocol.loans()
    low, high = split.train.min(axis=0), split.train.max(axis=0)
    middle = float(np.median(split.test[:, 0]))

    def predict(X):
        return (np.asarray(X)[:, 0] > middle).astype(int)

    found = list(protocol.pairs(split, predict, range(50, 70)))
    noise, expected = np.random.RandomState(42), []
    for place in range(50, 70):
        row = split.test[place]
        drawn = [noise.multivariate_normal(row, np.diag(0.08 * (high - low) / 100)) for _ in range(3)]
        expected += [z for z in np.clip(drawn, low, high) if (z[0] > middle) == (row[0] > middle)]

    assert [pair.place for pair in found] == list(range(50, 70))
    assert np.array([copy for pair in found for copy in pair.copies]) == pytest.approx(np.array(expected))
    assert len(expected) < 60  # a copy of the other class is skipped: else this shows nothing


def test_a_copy_is_drawn_again_until_it_keeps_the_class_where_there_is_one_of_each_row(protocol):
    split = protocol.loans()
    low, high = split.train.min(axis=0), split.train.max(axis=0)
    middle = float(np.median(split.test[:, 0]))
    found = list(
        protocol.pairs(
            split, lambda X: (np.asarray(X)[:, 0] > middle).astype(int), range(50), copies=1, seed=7, again=True
        )
    )
    noise, expected, drawn = np.random.RandomState(7), [], 0
    for row in split.test[:50]:
        while True:
            copy = np.clip(noise.multivariate_normal(row, np.diag(0.08 * (high - low) / 100)), low, high)
            drawn += 1
            if (copy[0] > middle) == (row[0] > middle):
                break
        expected.append(copy)

    assert [len(pair.copies) for pair in found] == [1] * 50
    assert np.array([pair.copies[0] for pair in found]) == pytest.approx(np.array(expected))
    assert drawn > 50  # else this shows nothing


def test_a_released_network_is_relu_layers_and_the_greatest_output(protocol, tmp_path):
    layers = [{"W": [[1.0, -1.0], [0.0, 1.0]], "b": [0.0, 0.5]}, {"W": [[1.0, 0.0], [0.0, 1.0]], "b": [0.0, 0.0]}]
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"networks": {"made up": layers}}), encoding="utf-8")
    network = protocol.released(path, "made up")

    # Hidden: (x, 0.5 - x + y) where positive. (2, 0) -> (2, 0); (0, 1) -> (0, 1.5); (-3, -4) -> (0, 0), a tie.
    assert network.predict([[2.0, 0.0], [0.0, 1.0], [-3.0, -4.0]]).tolist() == [0, 1, 0]


def test_measures_are_those_of_the_paper_and_one_answer_has_diversity_zero(protocol):
    measured = protocol.measured(np.zeros(1), np.array([[1.0], [4.0]]), np.array([[2.0]]), "l1")

    # Nearest: 1 and 2 away from the one side, 1 from the other.
    assert measured == pytest.approx(
        {"k_distance": 2.5, "k_diversity": 3.0, "set_distance_sum": 1.25, "set_distance_max": 1.5}
    )
    assert protocol.measured(np.zeros(1), np.ones((1, 1)), np.ones((1, 1)), "l2")["k_diversity"] == 0.0


def test_published_tables_are_complete_and_their_misprints_are_flagged(protocol):
    tables = protocol.published()
    printed = {(row["table"], row["data"], row["norm"], row["method"]): row for row in tables["rows"]}

    expected = {
        (t, d, n, m) for t in range(5, 11) for d in protocol.DATA_SETS for n in ("l1", "l2") for m in ("ours", "DiCE")
    }
    assert set(printed) == expected
    assert len(tables["differs"]) == 9
    for wrong in tables["differs"]:
        row = printed[wrong["table"], wrong["data"], wrong["norm"], wrong["method"]]
        assert row[wrong["metric"]] == wrong["printed"]
        assert any(abs(a - b) >= 0.01 for a, b in zip(wrong["printed"], wrong["released"], strict=True))


def test_the_released_files_are_what_is_printed_but_for_six_misprints(protocol):
    tables = protocol.published()
    printed = {(row["table"], row["data"], row["norm"]): row for row in tables["rows"] if row["method"] == "ours"}
    apart = [
        (row["table"], row["data"], row["norm"], measure)
        for row in tables["grid"]
        for measure in protocol.MEASURES
        if abs(printed[row["table"], row["data"], row["norm"]][measure][0] - row[measure]) >= 0.01
    ]

    assert len(tables["grid"]) == 4 * 5 * 2
    assert apart == [
        (6, "no2", "l2", "k_diversity"),
        (6, "credit", "l2", "k_diversity"),
        (6, "news", "l2", "set_distance_sum"),
        (6, "news", "l2", "set_distance_max"),
        (7, "credit", "l2", "k_diversity"),
        (8, "credit", "l2", "set_distance_sum"),
    ]


def test_a_fast_run_has_every_table_and_no_sentence_about_the_full_run(papers):
    report, runs = (importlib.import_module(f"leofante_potyka.{name}") for name in ("report", "runs"))
    keys = [key for key, _ in runs.wanted(("loans",), has_weights=False, fast=True)]
    measures = dict.fromkeys(report.MEASURES, (0.5, 0.1))
    one = {"measures": measures, "pairs": 3, "answers": 9, "per_row": 3.0, "invalid": 0, "cpu_s": 0.001}
    text = report.text_of(report.Found(dict.fromkeys(keys, one), ("loans",), {}))

    assert [f"## Table {number}: " in text for number in range(5, 11)] == [True] * 6
    assert not {"release", "paper", "noise", "momentum"} & set(text.lower().replace("'", " ").split())


def test_a_released_network_gives_the_l1_row_of_table_six_to_the_last_digit(protocol, data_dir, monkeypatch):
    if protocol.network_file() is None:
        pytest.skip("CEOPT_NN003 names no file of the released weights.")
    monkeypatch.setenv("CEOPT_DATA", str(data_dir))
    runs = importlib.import_module("leofante_potyka.runs")
    six = next(table for table in runs.TABLES if table.number == 6)
    found = runs.ask(runs.released("diabetes"), six, "l1")
    row = next(r for r in protocol.published()["grid"] if (r["table"], r["data"], r["norm"]) == (6, "diabetes", "l1"))

    assert found["pairs"] == 50
    for measure, (mean, _) in found["measures"].items():
        assert mean == pytest.approx(row[measure], rel=1e-9)


def test_a_released_network_gives_the_row_of_the_released_results(protocol, data_dir, monkeypatch):
    if protocol.network_file() is None:
        pytest.skip("CEOPT_NN003 names no file of the released weights.")
    from ceopt.diverse import DiverseRobustExplainer

    monkeypatch.setenv("CEOPT_DATA", str(data_dir))
    split, network = protocol.load("diabetes"), protocol.released(protocol.network_file(), "diabetes")
    explainer = DiverseRobustExplainer(alpha=50, tolerance=0.1, variant="released").fit(split.train)
    found = []
    for pair in protocol.pairs(split, network.predict):
        first = protocol.answers(explainer, network.predict, pair.row, pair.label)
        for copy in pair.copies:
            second = protocol.answers(explainer, network.predict, copy, pair.label)
            found.append(protocol.measured(pair.row, first, second, "l1"))

    assert len(found) == 59
    assert [mean for mean, _ in protocol.summary(found).values()] == pytest.approx(RELEASED, abs=1e-4)
