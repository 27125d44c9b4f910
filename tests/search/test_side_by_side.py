"""The people of a cohort are predicted together, and each gets what they get alone."""

from __future__ import annotations

import gc
import json
import pickle
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt import population
from ceopt.base import parallel
from ceopt.base.parallel import Lost
from ceopt.oracle.model import ModelOracle
from ceopt.population import answered
from ceopt.search.near_points import NearSearch
from ceopt.search.near_values import NearValues
from ceopt.search.search import init
from ceopt.search.state import Predictions
from ceopt.solvers.deadline import checkpoint
from ceopt.solvers.errors import InvalidTypeError
from ceopt.tolerances import CLEAR_OF_THE_DECISION

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("a", kind="continuous", lower=0, upper=9),
        ceopt.Feature("b", kind="integer", lower=0, upper=9),
        ceopt.Feature("c", kind="categorical", levels=[0, 1, 2]),
    ]
)
_DRAWN = np.random.default_rng(0)
DATA = pd.DataFrame({
    "a": _DRAWN.uniform(0, 9, 200).round(2), "b": _DRAWN.integers(0, 10, 200), "c": _DRAWN.integers(0, 3, 200)
})  # fmt: skip
LABELS = (DATA.a + DATA.b + 2 * DATA.c >= 12).map({True: "yes", False: "no"})
MODELS = {
    "linear": LogisticRegression(),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(5, max_depth=3, random_state=0),
    "network": MLPClassifier((4,), solver="lbfgs", max_iter=3000, random_state=0),
}


def recourse(model, target="yes", **given):
    return ceopt.Recourse(model, SPACE, target=target, **given).fit(DATA)


def without_seconds(result):
    document = json.loads(result.to_json())
    del document["timings"]
    return document


@pytest.mark.parametrize("name", MODELS)
def test_each_gets_what_they_get_alone(name):
    asked = recourse(MODELS[name].fit(DATA, LABELS), n=2 if name == "tree" else 1)
    rows = pd.concat([DATA[:12], DATA[:3]], ignore_index=True)
    rows.loc[5, "a"] = np.nan
    rows.loc[7, "b"] = 40

    together = asked.explain(rows)

    for k, found in enumerate(together):
        alone = answered(asked.prepared_, rows.iloc[[k]])
        assert without_seconds(found) == without_seconds(alone)
    assert {"optimal", "already_favourable", "error"} <= set(together.counts())


@pytest.mark.usefixtures("by_program")
def test_the_model_is_asked_about_all_in_two_calls(monkeypatch):
    asked = recourse(MODELS["linear"].fit(DATA, LABELS))
    people = DATA[LABELS == "no"].assign(a=lambda rows: rows.a.round())[:20]  # whole numbers, of no decimals to print
    asks = []
    judge = ModelOracle.judge

    def noted(self, frame, target):
        asks.append(len(frame))
        return judge(self, frame, target)

    monkeypatch.setattr(ModelOracle, "judge", noted)
    asked.explain(people)
    together = asks.copy()
    asks.clear()
    for place in range(len(people)):
        answered(asked.prepared_, people.iloc[[place]])
    alone = asks

    assert together[:1] == [20]
    assert together.count(1) <= alone.count(1) - 38  # the row and the answer of each, but for one left over


def test_answers_that_a_bound_settles_are_asked_about_together(monkeypatch):
    asked = recourse(MODELS["linear"].fit(DATA, LABELS))
    people = DATA[LABELS == "no"].assign(a=lambda rows: rows.a.round())[:20]
    asks = []
    judge = ModelOracle.judge

    def noted(self, frame, target):
        asks.append(len(frame))
        return judge(self, frame, target)

    monkeypatch.setattr(ModelOracle, "judge", noted)
    found = asked.explain(people)

    settled = [result.proof for result in found].count("bound")
    assert settled > 5
    assert asks[:2] == [20, settled]
    (printed,) = asks[2:]  # up to three forms of each answer, of all people at once
    assert 3 < printed <= 3 * settled


def test_a_row_that_the_model_fails_on_harms_nobody(monkeypatch):
    asked = recourse(MODELS["tree"].fit(DATA, LABELS))
    people = DATA[LABELS == "no"][:5]
    bad = people.a.iloc[2]
    predict = DecisionTreeClassifier.predict

    def failing(self, X):
        if (np.asarray(X)[:, 0] == np.float64(bad)).any():
            raise RuntimeError("no")
        return predict(self, X)

    monkeypatch.setattr(DecisionTreeClassifier, "predict", failing)

    assert [str(found.status) for found in asked.explain(people)] == ["optimal"] * 2 + ["error"] + ["optimal"] * 2


def question(model, row):
    prepared = recourse(model).prepared_
    return init(prepared, row, keep_on_interrupt=False, within=None, began=None).question


def test_a_call_of_many_rows_is_believed_only_clear_of_the_decision():
    model = LogisticRegression().fit(DATA, LABELS)
    asked = question(model, DATA.iloc[0])
    prepared = asked.prepared
    weight = model.coef_[0, 0]
    home = {**asked.factual, "a": 0.0}
    to_tie = -float(prepared.predictor.score([list(home.values())])[0]) / weight
    near = CLEAR_OF_THE_DECISION * prepared.least_margin / weight
    points = [{**home, "a": to_tie + share * near} for share in (-4.0, -0.5, 0.5, 4.0)]
    predictions = Predictions()
    predictions.ask(prepared, points)

    believed = [predictions.of(point, prepared) for point in points]

    assert [None if said is None else said[:2] for said in believed] == [("no", False), None, None, ("yes", True)]
    assert predictions.of({**home, "a": 1.0}, prepared) is None


def test_what_contradicts_the_model_as_read_is_not_believed(monkeypatch):
    asked = question(LogisticRegression().fit(DATA, LABELS), DATA.iloc[0])
    points = [asked.factual, {**asked.factual, "a": 9.0}]
    judge = ModelOracle.judge

    def turned(self, frame, target):
        predicted, is_met = judge(self, frame, target)
        return predicted, is_met ^ (len(frame) > 1)

    monkeypatch.setattr(ModelOracle, "judge", turned)
    predictions = Predictions()
    predictions.ask(asked.prepared, points)

    assert [predictions.of(point, asked.prepared) for point in points] == [None, None]


def test_values_of_a_regressor_are_asked_for_alone():
    model = LinearRegression().fit(DATA, DATA.a)
    prepared = recourse(model, target=ceopt.AtLeast(4.0)).prepared_
    predictions = Predictions()
    points = [SPACE.row(DATA.iloc[k]) for k in range(3)]
    predictions.ask(prepared, points)

    assert predictions.of(points[0], prepared) is None


def test_a_break_does_not_count_towards_the_limit():
    state = init(
        recourse(MODELS["tree"].fit(DATA, LABELS)).prepared_, DATA[LABELS == "no"].iloc[0],
        keep_on_interrupt=False, within=None, began=None,
    )  # fmt: skip
    total = state.question.stopwatch.timings()["total"]
    later = state.later(100.0)

    assert later.question.deadline == state.question.deadline + 100.0
    assert later.question.stopwatch.timings()["total"] < total - 90.0


def test_others_that_take_long_cost_nobody_the_limit(monkeypatch):
    """One person's break is while another's program is solved."""
    asked = recourse(MODELS["linear"].fit(DATA, LABELS), time_limit_s=2.0)
    people = DATA[LABELS == "no"][:6]
    from ceopt.search import solve_check_repair as module

    attempt = module.attempt

    def slow(state, left, **given):
        time.sleep(0.5)
        return attempt(state, left, **given)

    monkeypatch.setattr(module, "attempt", slow)

    assert asked.explain(people).counts() == {"optimal": 6}


@pytest.mark.parametrize(("kind", "search"), [("forest", NearSearch), ("network", NearValues)])
def test_a_search_for_several_people_has_the_time_of_all(kind, search, monkeypatch):
    """It had that of the first, and cohorts of forests were left without answers that each had alone."""
    model = MODELS[kind].fit(DATA, LABELS)
    asked = recourse(model, time_limit_s=2.0, proof=False)
    people = DATA[model.predict(DATA) == "no"][:7]
    alone = [answered(asked.prepared_, people.iloc[[k]]) for k in range(len(people))]
    run, sizes = search.run, []

    def slow(self, people, *given):
        sizes.append(len(people))
        time.sleep(0.45 * len(people))
        return run(self, people, *given)

    monkeypatch.setattr(search, "run", slow)
    together = list(asked.explain(people))

    assert max(sizes) >= 5
    assert sum(sizes) == 7
    for found, other in zip(together, alone, strict=True):
        assert without_seconds(found) == without_seconds(other)
        *phases, total = found.timings.values()
        assert sum(phases) == pytest.approx(total, abs=0.01)
        assert 0.45 <= found.timings["start"] < 0.9


def test_whose_search_with_others_is_cut_off_is_searched_for_alone(monkeypatch):
    model = MODELS["forest"].fit(DATA, LABELS)
    asked = recourse(model, time_limit_s=1.0, proof=False)
    people = DATA[model.predict(DATA) == "no"][:5]
    run = NearSearch.run

    def endless(self, people):
        while len(people) > 1:
            checkpoint("searching")
        return run(self, people)

    monkeypatch.setattr(NearSearch, "run", endless)

    assert all(len(found) == 1 for found in asked.explain(people))


def test_one_who_fails_in_a_search_with_others_fails_alone(monkeypatch):
    model = MODELS["forest"].fit(DATA, LABELS)
    asked = recourse(model, proof=False)
    people = DATA[model.predict(DATA) == "no"][:5]
    bad = people.a.iloc[2]
    run = NearSearch.run

    def failing(self, people):
        if any(factual["a"] == bad for factual, _ in people):
            raise ValueError("no")
        return run(self, people)

    monkeypatch.setattr(NearSearch, "run", failing)

    assert [str(found.status) == "error" for found in asked.explain(people)] == [False, False, True, False, False]


def test_who_is_asked_about_twice_pays_once():
    model = MODELS["forest"].fit(DATA, LABELS)
    asked = recourse(model, proof=False)
    people = DATA[model.predict(DATA) == "no"][:5]
    began = time.perf_counter()
    found = list(asked.explain(pd.concat([people] * 12, ignore_index=True)))
    seconds = time.perf_counter() - began

    assert sum(one.timings["total"] for one in found) <= seconds
    assert sorted(one[0].cost for one in found) == sorted([one[0].cost for one in found[:5]] * 12)


def test_points_of_a_linear_model_are_looked_for_once(monkeypatch):
    model = MODELS["linear"].fit(DATA, LABELS)
    asked = recourse(model, proof=False, cost="l2", constraints=[ceopt.IfThen(("a", "changed"), ("b", "changed"))])
    people = DATA[model.predict(DATA) == "no"][:4]
    met, asks = Predictions.met, []

    def counted(self, prepared, person, deadlines):
        asks.append(person.factual["a"])
        return met(self, prepared, person, deadlines)

    monkeypatch.setattr(Predictions, "met", counted)

    assert all(len(found) == 1 for found in asked.explain(people))
    assert asks == people.a.tolist()


def test_points_that_are_counted_are_those_of_one_person(monkeypatch):
    """People shared the points that may be scored, and had dearer answers than each alone."""
    monkeypatch.setattr("ceopt.search.near_values._WORK", 60_000)
    forest = RandomForestRegressor(20, max_depth=4, random_state=0)
    score = DATA.a + DATA.b + 2 * DATA.c
    model = VotingRegressor([("forest", forest), ("line", LinearRegression())]).fit(DATA, score)
    asked = recourse(model, target=ceopt.AtLeast(13.0), proof=False)
    people = DATA[model.predict(DATA) < 10][:8]
    costs = [found[0].cost for found in asked.explain(people)]

    assert costs == [answered(asked.prepared_, people.iloc[[k]])[0].cost for k in range(len(people))]


@pytest.mark.parametrize("after", [1, 5, 12])
def test_ctrl_c_in_the_last_round_loses_one_row(after, monkeypatch):
    model = MODELS["forest"].fit(DATA, LABELS)
    asked = recourse(model, proof=False)
    people = DATA[model.predict(DATA) == "no"][:12]
    from ceopt.search import search as module

    result, ended = module.result, []

    def interrupted(*given):
        ended.append(given)
        if len(ended) == after:
            raise KeyboardInterrupt
        return result(*given)

    monkeypatch.setattr(module, "result", interrupted)

    assert sum(asked.explain(people).finished) == 11


def test_printed_forms_are_asked_about_together(monkeypatch):
    model = MODELS["linear"].fit(DATA, LABELS)
    asked = recourse(model)
    people = DATA[model.predict(DATA) == "no"][:20]
    alone = [answered(asked.prepared_, people.iloc[[k]]) for k in range(len(people))]
    judge, asks = ModelOracle.judge, []

    def noted(self, frame, target):
        asks.append(len(frame))
        return judge(self, frame, target)

    monkeypatch.setattr(ModelOracle, "judge", noted)
    together = list(asked.explain(people))

    assert sum(bool(found[0].printed) for found in together) >= 15
    assert len([count for count in asks if count >= 15]) >= 3  # the rows, the answers, and how these are printed
    for found, other in zip(together, alone, strict=True):
        assert without_seconds(found) == without_seconds(other)


def test_the_collector_is_left_as_it_was():
    asked = recourse(MODELS["tree"].fit(DATA, LABELS))
    before = gc.get_freeze_count()  # from 3.12 on, some objects are there from the start
    asked.explain(DATA[:2])
    assert gc.get_freeze_count() == before
    gc.freeze()
    try:
        asked.explain(DATA[:2])
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
    assert gc.isenabled()


# ---- in other processes ----------------------------------------------------------------------------------------------
def test_two_processes_say_the_same():
    asked = recourse(MODELS["tree"].fit(DATA, LABELS))
    rows = DATA[:20].copy()
    rows.loc[5, "a"] = np.nan

    pairs = zip(asked.explain(rows), asked.explain(rows, n_jobs=2), strict=True)

    assert all(without_seconds(alone) == without_seconds(found) for alone, found in pairs)


def test_parts_hold_every_row_once_and_those_of_a_lost_part_go_one_by_one(monkeypatch):
    asked = recourse(MODELS["tree"].fit(DATA, LABELS))
    sizes, singles = [], []

    def in_this_process(who, work, arguments, count, n_jobs, **_):
        for k in range(count):
            given = arguments(k)
            if given is None:
                return
            (sizes if work is population._answered_part else singles).append(len(given[1]))
            if work is population._answered_part and k == 1:
                yield k, Lost("It ended.")
            else:
                yield k, work(*given)

    monkeypatch.setattr(population, "completed", in_this_process)
    rows = DATA[:60]
    cohort = asked.explain(rows, n_jobs=2)

    assert all(cohort.finished)
    assert [found.query_id for found in cohort] == list(rows.index)
    assert sizes[0] == 1
    assert max(sizes) > 1
    assert sum(sizes) == 60
    assert singles == [1] * sizes[1]


def test_a_process_keeps_what_it_was_sent():
    prepared = recourse(MODELS["tree"].fit(DATA, LABELS)).prepared_
    sent = parallel.sendable(prepared)

    assert parallel.received(sent) is parallel.received(pickle.loads(pickle.dumps(sent)))
    assert parallel.received(sent) is not prepared
    assert parallel.received(parallel.sendable(asked := [1])) == asked
    assert parallel.sendable(local := threading.Lock()) is local
    with joblib.parallel_config(backend="threading"):
        assert parallel.sendable(prepared) is prepared


def test_what_cannot_be_read_elsewhere_is_refused():
    sent = parallel.Pickled("nothing", np.frombuffer(b"nothing", dtype=np.uint8))

    with pytest.raises(InvalidTypeError, match=r"explain needs what can be pickled and read.*invalid load key"):
        list(parallel.completed("explain", parallel.received, lambda _: (sent,), count=1, n_jobs=2))


def test_what_is_large_goes_to_other_processes_by_a_file():
    def total(sent):  # within, so that it is sent whole: other processes do not find this module
        return type(sent.content).__name__, float(parallel.received(sent).sum())

    sent = parallel.sendable(np.ones(200_000))

    assert dict(parallel.completed("explain", total, lambda _: (sent,), count=1, n_jobs=2))[0] == ("memmap", 200_000.0)


def test_a_process_of_its_own_looks_for_garbage_beside_what_it_was_sent():
    def frozen(sent):
        parallel.received(sent)
        return gc.get_freeze_count()

    sent = parallel.sendable(recourse(MODELS["tree"].fit(DATA, LABELS)).prepared_)
    before = gc.get_freeze_count()

    assert dict(parallel.completed("explain", frozen, lambda _: (sent,), count=1, n_jobs=2))[0] > 10_000
    assert frozen(sent) == before
