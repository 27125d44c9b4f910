"""The study of RoCourseNet: its data, measures, gates and pages, on made-up data."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

PAPERS = Path(__file__).resolve().parents[2] / "examples" / "papers"
jax = pytest.importorskip("jax")


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PAPERS))
    for name in [name for name in sys.modules if name.split(".")[0] in {"rocoursenet", "shared"}]:
        monkeypatch.delitem(sys.modules, name)
    return lambda name: importlib.import_module(f"rocoursenet.{name}")


# ---- data ------------------------------------------------------------------------------------------------------------
def test_a_split_is_the_seeds_own_and_leaves_no_row_out(study: Any) -> None:
    part = study("protocol").load("loans", "honest").parts[0]
    train, test = part.split(3)
    assert len(test) == len(part.X) // 4
    assert sorted([*train, *test]) == list(range(len(part.X)))
    assert (part.split(3)[1] == test).all()
    assert (part.split(4)[1] != test).any()


def test_another_level_is_two_away_and_a_whole_range_one(study: Any) -> None:
    case = study("protocol").load("loans", "honest")
    rows = pd.concat([part.X for part in case.parts])
    person = rows.iloc[[0]]
    other = person.copy()
    numbers = [feature.name for feature in case.space if not feature.is_finite]
    values = rows[numbers[0]]
    person[numbers[0]], other[numbers[0]] = values.min(), values.max()
    level = next(feature for feature in case.space if feature.kind == "categorical")
    other[level.name] = next(one for one in level.levels if one != person[level.name].iloc[0])
    assert case.distances(person, other).sum() == pytest.approx(3.0)


@pytest.mark.skipif("CEOPT_DATA" not in os.environ, reason="needs the folder of data")
def test_real_parts_are_those_of_the_paper(study: Any) -> None:
    protocol = study("protocol")
    assert {name: len(protocol.load(name, "honest").parts) for name in protocol.DATA_SETS} == {
        "german": 2,
        "student": 2,
        "loan": 16,
    }
    loan = protocol.load("loan", "honest")
    assert [part.name for part in loan.years(4)] == ["1994", "1999", "2004", "2009"]
    assert not loan.space["State"].mutable
    assert loan.parts[0].X["GrAppv"].between(np.log(1000.0), np.log(5e6)).all()
    assert protocol.load("german", "honest").space["age"].direction == "increasing"
    released = protocol.load("student", "paper")
    assert set(released.parts[0].X["G2"]) <= set("ABCDF")
    assert all(feature.mutable and feature.direction == "any" for feature in released.space)


def test_shifts_are_those_of_the_released_code(study: Any) -> None:
    simulated = study("simulated").simulated
    before, after = simulated("covariate shift", 0, 4000).parts
    assert before.X.mean().to_numpy() == pytest.approx([0.5, 0.0], abs=0.03)
    assert after.X.std().to_numpy() == pytest.approx([0.3, 0.5], abs=0.03)
    sure = before.X["x1"] ** 3 - before.X["x2"] - 0.1
    assert (before.y[sure > 0.4] == 1).all()
    assert (before.y[sure < -0.4] == 0).all()
    before, after = simulated("label shift", 0, 4000).parts
    assert before.y.mean() == pytest.approx(0.6, abs=0.03)
    assert after.y.mean() == pytest.approx(0.3, abs=0.03)


# ---- measures --------------------------------------------------------------------------------------------------------
def _constant(study: Any, case: Any, place: int, threshold: float, advised: float) -> Any:
    """Return a model that favours incomes from a threshold on, and advises all the same income."""
    part = case.parts[place]
    train, test = part.split(0)
    model = SimpleNamespace(
        predict=lambda X: (X["x1"] >= threshold).to_numpy().astype(int),
        recourse=lambda X: X.assign(x1=advised),
    )
    return study("networks").Fitted(part, train, test, model, 0.0)


def test_robust_validity_is_that_of_the_other_models(study: Any) -> None:
    case = study("simulated").simulated("covariate shift", 0, 40)
    low, high = case.parts[0].X["x1"].min() - 1.0, case.parts[0].X["x1"].max() + 5.0
    first = _constant(study, case, 0, high, high + 1.0)  # favours nobody, advises what it favours
    second = _constant(study, case, 1, low, low - 1.0)  # favours everybody
    found = study("judged").judged(case, [first, second], 0)
    assert found["validity"] == [1.0, 1.0]
    assert found["robust"] == [1.0, 1.0]
    stubborn = _constant(study, case, 1, high + 2.0, high)
    assert study("judged").judged(case, [first, stubborn], 0)["robust"][0] == 0.0
    assert found["rows"] == [10, 10]
    assert study("judged").judged(case, [first, second], 0, count=3)["rows"] == [3, 3]


def test_one_point_for_everybody_is_seen(study: Any) -> None:
    case = study("simulated").simulated("covariate shift", 0, 40)
    X = case.parts[0].X.head(10)
    distinct = study("judged")._distinct
    assert distinct(case, X) == 1.0
    assert distinct(case, X.assign(x1=0.0, x2=0.0)) == 0.1


@pytest.mark.long
def test_both_networks_of_a_seed_have_one_predictor(study: Any) -> None:
    """Else differences of robust validity would be those of the judges."""
    case = study("protocol").load("loans", "honest")
    networks = study("networks")
    first, second = (networks.fitted(case, kind, 1, 2, quiet=True) for kind in networks.KINDS)
    assert study("parts")._agreement(first, second) == 1.0
    X = first[0].tested_rows()
    assert first[0].model.predict_proba(X) == pytest.approx(second[0].model.predict_proba(X), abs=1e-5)
    weights = [
        np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(one[0].model.generator_.layers)])
        for one in (first, second)
    ]
    assert (weights[0] != weights[1]).any()


# ---- gates -----------------------------------------------------------------------------------------------------------
def _records(ours: list[float], theirs: list[float]) -> list[Any]:
    return [
        {"methods": {"RoCourseNet": {"robust": [a, a]}, "CounterNet": {"robust": [b, b]}}}
        for a, b in zip(ours, theirs, strict=True)
    ]


def test_reached_is_above_zero_by_two_standard_errors(study: Any) -> None:
    gates = study("gates")
    found = gates.tables_differences(_records([0.6, 0.8], [0.62, 0.8]), "CounterNet")
    assert (found.mean, found.error) == pytest.approx((-0.01, 0.01))
    assert not found.is_reached
    assert not found.is_below
    assert gates.Difference(0.021, 0.01).is_reached
    assert not gates.Difference(0.019, 0.01).is_reached
    assert not gates.Difference(0.0, 0.0).is_reached
    assert gates.Difference(-0.021, 0.01).is_below
    assert not gates.Difference(-0.019, 0.01).is_below
    for mean in (0.01, -0.01):
        unknown = gates.Difference(mean, float("nan"))
        assert not unknown.is_reached
        assert not unknown.is_below


def test_frontiers_are_read_at_equal_proximity(study: Any) -> None:
    def method(proximities: list[float], robust: list[float]) -> dict[str, Any]:
        return {
            str(k): {"proximity": [proximity], "robust": [value]}
            for k, (proximity, value) in enumerate(zip(proximities, robust, strict=True))
        }

    records = [
        {"RoCourseNet": method([3.0, 1.0], [1.0, 0.6]), "a": method([1.0, 2.0], [0.5 - k, 0.6 - k])} for k in (0.0, 0.1)
    ]
    found = study("gates").at_equal_proximity(records, "a")
    assert [level for level, *_ in found] == pytest.approx([1.25, 1.5, 1.75])
    assert found[1][1:3] == pytest.approx((0.7, 0.5))
    assert (found[1][3].mean, found[1][3].error) == pytest.approx((0.2, 0.05))
    apart = [{"RoCourseNet": method([1.0], [0.5]), "a": method([2.0], [0.5])}]
    assert study("gates").at_equal_proximity(apart, "a") == []


def test_frontiers_apart_are_no_gate_that_was_reached(study: Any) -> None:
    def method(proximity: float) -> dict[str, Any]:
        return {"1": {"proximity": [proximity], "robust": [0.9]}}

    records = [{"RoCourseNet": method(3.0), "CounterNet": method(1.0), "ROAR-LIME": method(3.0)}] * 2
    said, table = study("report")._equal({"loan": records})
    assert said.endswith("Reached at 0 of 3: loan: CounterNet, no proximity in common, ROAR-LIME 0 of 3.")
    assert table.count("not decided") == 1
    assert table.count("| not shown |") == 3


def test_the_frontiers_of_all_data_are_summarised(study: Any) -> None:
    def method(robust: float) -> dict[str, Any]:
        return {str(k): {"proximity": [proximity], "robust": [robust]} for k, proximity in enumerate((1.0, 2.0))}

    one = {"RoCourseNet": method(0.7), "CounterNet": method(0.8), "ROAR-LIME": method(0.6)}
    said, table = study("report")._equal({"german": [one] * 2, "loan": [one] * 2})
    assert (
        "Reached at 6 of 12: german: CounterNet 0 of 3, ROAR-LIME 3 of 3; loan: CounterNet 0 of 3, ROAR-LIME 3 of 3."
        in said
    )
    assert "Below zero by as much: german against CounterNet at 3, loan against CounterNet at 3." in said
    assert table.count("| yes |") == table.count("| not shown |") == 6


def test_the_first_line_names_the_attacker_of_each_data_set(study: Any) -> None:
    protocol = study("protocol")
    experiments = study("experiments")
    names = ("german", "student", "loan", "label shift")
    size = study("sizes").FULL["table1"]
    record = {
        "part": "simulations",
        "protocol": "honest",
        "command": "python experiments.py",
        "about": "today",
        "figure": None,
        "is_full": True,
        "settings": {name: experiments._settings(name, size) for name in names},
        "attacker": experiments.ATTACKER,
        "size": {"simulated": 9, "seeds": 5},
        "results": {},
    }
    first = study("report").page(record).split("\n\n")[1]
    assert protocol.ATTACKERS["loan"]["perturbation"] == 0.03
    assert first == (
        "RoCourseNet is trained against an attacker that was chosen for each data set, by robust validity on seeds "
        "that no page has: german: E = 0.1, steps of 0.1, all layers; student: E = 0.1, steps of 1, the head; loan: "
        "E = 0.03, steps of 0.1, all layers; label shift: as student. The paper has one for all: E = 0.1, all layers."
    )


def test_an_attacker_that_gains_nothing_with_its_steps_is_seen(study: Any) -> None:
    def records(values: list[float]) -> list[Any]:
        return [{"CounterNet": {"T": {step: [value] for step, value in zip("1357", values, strict=True)}}}]

    falling = study("gates").falling
    assert falling(records([0.9, 0.8, 0.7, 0.6]), "CounterNet", "T") == pytest.approx((-1.0, 0.3))
    assert falling(records([0.6, 0.7, 0.8, 0.9]), "CounterNet", "T") == pytest.approx((1.0, -0.3))


def test_a_missed_gate_is_said(study: Any) -> None:
    report = study("report")
    one = {"robust": [0.5], "distinct": [0.02], "rows": [50], "validity": [1.0], "levels": [0.25], "proximity": [1.0]}
    better = {**one, "robust": [0.9]}
    records = [{"methods": {"RoCourseNet": one, "CounterNet": better, "ROAR-LIME": one}}] * 2
    said, table, cause = report._table_gate({"german": records})
    assert (
        "Reached for 0 of 2. Not shown for german against CounterNet, -0.400 (0.000); german against ROAR-LIME, +0.000"
        in said
    )
    assert "Below zero by as much: german against CounterNet." in said
    assert "Few different pieces of advice: german (0.02 of the rows)" in said
    assert table.count("| not shown |") == 2
    assert "On german 0.25 of the distance of RoCourseNet's advice is in columns of levels" in cause


def test_models_that_contradict_one_another_are_said(study: Any) -> None:
    methods = {"RoCourseNet": {"robust": [0.5]}, "RBR": {"robust": [0.6, 0.7]}}
    said = study("report")._contradictions
    assert said({"german": [{"between": 0.35, "methods": methods}]}).startswith(
        " On german models contradict one another: who stays as they are has a robust validity of 0.650, and the best "
        "method, RBR, 0.650."
    )
    assert not said({"german": [{"between": 0.55, "methods": methods}]})


def test_sweeps_on_loan_are_within_the_years(study: Any) -> None:
    case = study("simulated").simulated("label shift", 0, 8)
    case = type(case)(case.name, case.protocol, case.space, case.parts[:1] * 16, case.columns, {}, {}, 1)
    places = [place for place, part in enumerate(case.parts) if part is case.parts[0]]
    assert len(places) == 16
    assert len(case.within(3)) == 3
    assert len(case.within(16)) == len(case.within(20)) == 16


# ---- runs ------------------------------------------------------------------------------------------------------------
def test_what_a_journal_has_is_not_computed_again(study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiments = study("experiments")
    size = study("sizes").FAST["general"]
    calls = []

    def counted(*key: Any, quiet: bool) -> dict[str, Any]:
        assert quiet
        calls.append(key)
        return {"seed": key[3]}

    monkeypatch.setattr(experiments, "computed", counted)
    for again in range(2):
        journal = experiments.Journal(tmp_path / "a.jsonl", experiments.LIBRARIES)
        found = experiments._found("general", ("loans",), "honest", size, journal, jobs=1, quiet=True)
        assert found == {"loans": [{"seed": 0}, {"seed": 1}]}
        assert len(calls) == 2, again
    shorter = study("sizes").Size(seeds=2, epochs=7)
    experiments._found("general", ("loans",), "honest", shorter, journal, jobs=1, quiet=True)
    assert len(calls) == 4


@pytest.mark.long  # CI runs the example itself too
def test_a_fast_run_writes_every_page_without_a_path_of_this_machine(tmp_path: Path) -> None:
    out = tmp_path / "pages"
    script = PAPERS / "rocoursenet" / "experiments.py"
    run = [sys.executable, str(script), "--fast", "--out", str(out), "--journal", str(tmp_path / "journal")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(run, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    parts = ("table1", "attack", "frontiers", "training", "simulations", "general")
    for part in parts:
        text = (out / f"rocoursenet_{part}_honest.md").read_text(encoding="utf-8")
        assert text.startswith("# RoCourseNet: ")
        assert "A fast run" in text
        assert "nan" not in text
        assert str(tmp_path / "journal") not in text
    assert sorted(path.stem for path in out.glob("*.png")) == [
        f"rocoursenet_{part}_honest" for part in ("attack", "frontiers", "training")
    ]
    assert (tmp_path / "journal" / "rocoursenet.partial.jsonl").is_file()


@pytest.mark.parametrize(
    ("data", "has_data", "names", "said"),
    [
        (None, True, ("loans",), ""),
        (None, False, ("loans",), ""),
        (["student"], True, ("student",), ""),
        (["student", "german"], True, ("german", "student"), ""),
        (["student"], False, ("loans",), "the loans are made up by ceopt, in the place of student."),
    ],
)
def test_a_fast_run_is_about_the_data_it_is_asked_for_or_says_so(
    study: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    data: list[str] | None,
    has_data: bool,
    names: tuple[str, ...],
    said: str,
) -> None:
    experiments = study("experiments")
    made = []
    monkeypatch.setattr(experiments, "has_data", lambda: has_data)
    monkeypatch.setattr(experiments, "make", lambda part, names, *_, **__: made.append((part, names)))
    asked = [] if data is None else ["--data", *data]
    monkeypatch.setattr(sys, "argv", ["experiments.py", "--fast", "--only", "table1", *asked])
    experiments.main()
    assert [(part, tuple(sorted(found))) for part, found in made] == [("table1", tuple(sorted(names)))]
    printed = capsys.readouterr().out
    assert (said in printed) if said else not printed
