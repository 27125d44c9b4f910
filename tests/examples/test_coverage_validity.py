"""The study of coverage-validity-aware recourse: its data, networks, frontiers and pages, on made-up data."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAPERS = Path(__file__).resolve().parents[2] / "examples" / "papers"
pytest.importorskip("jax")


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PAPERS))
    for name in [name for name in sys.modules if name.split(".")[0] in {"coverage_validity", "shared"}]:
        monkeypatch.delitem(sys.modules, name)
    return lambda name: importlib.import_module(f"coverage_validity.{name}")


def test_folds_leave_out_each_training_row_once(study: Any) -> None:
    case = study("protocol").load("synthetic", "honest")
    left = np.sum([~fold.train & ~case.test for fold in case.folds()], axis=0)
    assert (left == ~case.test).all()
    assert case.test.mean() == pytest.approx(0.2)


def test_an_honest_person_keeps_what_nobody_can_change(study: Any) -> None:
    case = study("protocol").load("loans", "honest")
    lower, upper = case.limits(case.X[0])
    held = list(case.fixed)
    assert [case.columns[place] for place in held] == ["sex=female", "sex=male"]
    assert (lower[held] == case.X[0][held]).all()
    assert (upper[held] == case.X[0][held]).all()
    grows = list(case.growing)
    assert (lower[grows] == case.X[0][grows]).all()
    assert np.isinf(upper[grows]).all()


@pytest.mark.long
def test_networks_side_by_side_are_those_trained_alone(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = study("networks")
    monkeypatch.setattr(networks, "EPOCHS", 100)  # over a thousand, single precision drifts apart by percents
    case = study("protocol").load("synthetic", "honest")
    members = np.stack([fold.train for fold in case.folds()[:2]])
    both = networks._trained(case.X, case.y, members, [5, 6])
    alone = networks._trained(case.X, case.y, members[1:], [6])
    assert both.scores(case.X[:50])[1] == pytest.approx(alone.scores(case.X[:50])[0], rel=1e-2, abs=0.01)
    assert np.abs(both.scores(case.X[:50])[0] - both.scores(case.X[:50])[1]).max() > 0.1


@pytest.mark.long
def test_networks_learn(study: Any) -> None:
    networks = study("networks")
    case = study("protocol").load("synthetic", "honest")
    both = networks._trained(case.X, case.y, np.stack([fold.train for fold in case.folds()[:2]]), [5, 6])
    accuracy, area = networks.accuracy(both, case.X[case.test], case.y[case.test])
    assert accuracy > 0.95
    assert area > 0.98


@pytest.mark.long
def test_the_descent_on_a_network_reaches_its_level_within_the_bounds(study: Any) -> None:
    networks = study("networks")
    case = study("protocol").load("synthetic", "honest")
    model = networks.present(case, case.folds()[0])
    factual = case.X[np.flatnonzero(~model.favourable(case.X)[0])[0]]
    lower, upper = factual - 5.0, factual + np.array([5.0, 0.0])
    point = study("network_descent").descend(model, factual, level=0.8, lower=lower, upper=upper)
    assert model.probability(point[None])[0] >= 0.8
    assert point[1] <= factual[1]
    score, slope = study("network_descent")._score(model, factual)
    for k in range(2):
        moved = factual.copy()
        moved[k] += 1e-6
        assert (model.scores(moved[None])[0, 0] - score) / 1e-6 == pytest.approx(slope[k], abs=1e-3)


@pytest.mark.long
def test_a_future_like_the_present_agrees_with_it(study: Any) -> None:
    frontiers, networks = study("frontiers"), study("networks")
    case = study("protocol").load("synthetic", "honest")
    fold = case.folds()[0]
    models = frontiers.models_of(case, fold, 2)
    people = models.people(2)
    same = frontiers.FoldModels(models.data, networks.present(case, fold))
    found = study("causes").causes(same, people, quiet=True)
    assert (found["agreement"], found["unmoved"], found["kept"]) == (1.0, 0.0, 1.0)
    assert found["same column"] in {0.0, 0.5, 1.0}
    assert 0.5 <= found["in that column"] <= 1.0
    later = study("causes").causes(models, people, quiet=True)
    assert 0.9 < later["agreement"] < 1.0


def test_the_release_leaves_its_made_up_data_as_they_are(study: Any) -> None:
    load = study("protocol").load
    low, high = load("synthetic", "paper").X.min(axis=0), load("synthetic", "paper").X.max(axis=0)
    assert low == pytest.approx([-2.0, -2.0], abs=0.05)
    assert high == pytest.approx([4.0, 7.0], abs=0.05)
    assert load("synthetic", "honest").X.std(axis=0) == pytest.approx([1.0, 1.0])


def _line(costs: list[float], futures: list[float]) -> dict[str, Any]:
    return {"people": 1, "cost": costs, "future": futures}


def test_costs_are_compared_at_the_same_validity(study: Any) -> None:
    curves = study("curves")
    assert curves.frontier(np.array([3.0, 1.0, 2.0]), np.array([0.8, 0.2, 0.1])).tolist() == [1, 0]
    theirs = _line([2.0, 4.0], [0.0, 1.0])
    folds = [
        {"pairs": {"LIME-ROAR": {"FR-MPM-PROJ": _line(costs, [0.0, 1.0]), "LIME-ROAR": theirs}}}
        for costs in ([1.0, 2.0], [1.0, 3.0])
    ]
    found = curves.compared(folds, "LIME-ROAR")
    assert [one.level for one in found] == pytest.approx([0.25, 0.5, 0.75])
    assert [one.ours for one in found] == [(1.25, 1.5), (1.5, 2.0), (1.75, 2.5)]
    assert [one.difference[0] for one in found] == pytest.approx([-1.125, -1.25, -1.375])
    assert [one.difference[1] for one in found] == pytest.approx([0.125, 0.25, 0.375])


def test_a_fold_apart_is_compared_where_the_means_meet(study: Any) -> None:
    """One fold's validities are all above the other's; costs are still of the same levels of robustness."""
    curves = study("curves")
    folds = []
    for low in (0.1, 0.7):
        lines = {name: _line([cost, cost + 1.0], [low, low + 0.2]) for name, cost in (("FR-MPM-PROJ", 1.0), ("a", 3.0))}
        folds.append({"pairs": {"a": lines}})
    found = curves.compared(folds, "a")
    assert [one.level for one in found] == pytest.approx([0.45, 0.5, 0.55])
    assert found[1].ours == pytest.approx((1.5, 1.5))
    apart = [{"pairs": {"a": {"FR-MPM-PROJ": _line([1.0], [0.0]), "a": _line([2.0], [0.5])}}}]
    assert curves.compared(apart, "a") == []
    point = [{"pairs": {"a": {"FR-MPM-PROJ": _line([1.0, 2.0], [0.0, 1.0]), "a": _line([2.0], [0.5])}}}]
    assert [(one.level, one.ours, one.theirs) for one in curves.compared(point, "a")] == [(0.5, (1.5,), (2.0,))]
    assert curves.ends(apart, "a") == {"FR-MPM-PROJ": (0.0, 1.0, 0.0, 1.0), "a": (0.5, 2.0, 0.5, 2.0)}
    said = study("report")._apart("loans", "a", curves.ends(apart, "a"))
    assert said == "on loans a begins at 0.500 for 2.00, above where FR-MPM-PROJ ends, 0.000 for 1.00"


def test_levels_that_are_nearly_one_count_once(study: Any) -> None:
    """Three levels 0.002 apart or nearer are one, the middle; a little farther apart they are three."""
    curves = study("curves")

    def levels(width: float) -> list[float]:
        ours = _line([1.0, 2.0], [0.5, 0.5 + width])
        folds = [{"pairs": {"a": {"FR-MPM-PROJ": ours, "a": _line([3.0, 4.0], [0.0, 1.0])}}}]
        return [one.level for one in curves.compared(folds, "a")]

    assert levels(0.0079) == pytest.approx([0.50395])
    assert levels(0.0081) == pytest.approx([0.502025, 0.50405, 0.506075])


def test_the_verdict_is_over_all_data_and_by_two_standard_errors(study: Any) -> None:
    """One data set on which it is dearer, one on which folds differ too much to say, one on which it is cheaper."""
    report, summaries = study("report"), study("summaries")

    def folds(costs: tuple[float, float]) -> list[Any]:
        found = []
        for cost in costs:
            pair = {summaries.OURS: _line([cost, cost], [0.0, 1.0])}
            pairs = {rival: {**pair, rival: _line([2.0, 4.0], [0.0, 1.0])} for rival in summaries.RIVALS}
            found.append({"pairs": pairs})
        return found

    data = {"synthetic": folds((5.0, 5.0)), "sba": folds((0.0, 3.9)), "student": folds((1.0, 1.1))}
    said, *_, table, _, _ = report._gate(data, "honest")
    assert (
        "cheaper at 8 of 12 levels, by two standard errors at 4, and dearer by as much at 4: synthetic at 0 of 4"
        in said
    )
    assert "sba at 4 of 4, by two standard errors at 0; student at 4 of 4, by two standard errors at 4." in said
    assert "It is not at: synthetic, LIME-ROAR at 1.000; synthetic, LIME-ROAR, exact at 1.000" in said
    assert table.count("| no |") == 4
    assert table.count("| yes, not shown |") == 4
    assert table.count("| yes |") == 4


def test_means_are_over_those_to_whom_both_give_every_point(study: Any) -> None:
    def method(costs: list[list[float | None]]) -> dict[str, Any]:
        return {"levels": [0.0, 1.0], "seconds": 4.0, "cost": costs, "current": costs, "future": costs}

    summaries = study("summaries")
    ours = method([[1.0, 2.0], [3.0, 4.0]])
    partly = method([[1.0, 2.0], [3.0, None]])
    found = {
        "people": 2,
        "classifiers": {},
        "actions": {"a": {"cost": [1.0, None], "current": [0.0, None], "future": [1.0, None]}},
    }
    found["methods"] = {summaries.OURS: ours, **dict.fromkeys(summaries.RIVALS, partly)}
    kept = summaries.SUMMARIES["recourse"](found)
    assert kept["alone"][summaries.OURS]["cost"] == [2.0, 3.0]
    pair = kept["pairs"]["LIME-ROAR"]
    assert pair[summaries.OURS] == {
        "people": 1,
        "levels": [0.0, 1.0],
        "cost": [1.0, 2.0],
        "current": [1.0, 2.0],
        "future": [1.0, 2.0],
    }
    assert kept["actions"]["a"] == {"without": 1, "cost": 1.0, "current": 0.0, "future": 1.0}
    assert kept["seconds"]["LIME-ROAR"] == 2.0


@pytest.mark.long
def test_points_of_every_method_are_favoured_by_their_surrogate(study: Any) -> None:
    """At the person's own columns, within the bounds, and robust ones for all parameters of the ball."""
    local_models, methods, networks = study("local_models"), study("methods"), study("networks")
    case = study("protocol").load("loans", "honest")
    fold = case.folds()[0]
    data = local_models.Data(case, fold, networks.present(case, fold))
    rejected = case.people(data.present.favourable(case.X)[0], fold, 1)
    local = data.local(case.X[rejected[0]], n_samples=200)
    lower, upper = case.limits(local.factual)
    for name in ("FR-MPM-PROJ", "QUAD-MPM-PROJ", "BW-MPM-PROJ", "LIMELS-ROAR", "LIME-ROAR, exact", "LIME-ROBUST-PROJ"):
        method = methods.METHODS[name]
        costs = []
        for level in (method.levels[0], method.levels[-1]):
            point = method.find(local, level)
            assert (point >= lower - 1e-6).all(), name
            assert (point <= upper + 1e-6).all(), name
            costs.append(np.abs(point - local.factual).sum())
        assert costs[0] <= costs[1] + 1e-6, name
