"""RobustToShift: rows as in the docstring, the worst of the box by its corners, optima by enumeration, and refusals."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from draws import draws
from hypothesis import assume, example, given
from hypothesis import strategies as st
from rules.robust_to_shift import least_slack
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt import AtLeast, AtMost, Between, Feature, FeatureSpace, OtherThan, Probability, RobustToShift
from ceopt.formulations import Factual, People, impose, l1
from ceopt.formulations.predictors import Affine, ReluNetwork, TreeEnsemble
from ceopt.solvers import model_summary, solve

#: Whole numbers of both signs, 5 x 5 points.
SPACE = FeatureSpace([Feature(name, kind="integer", lower=-2, upper=2) for name in "ab"])
GRID = np.array(list(itertools.product(range(-2, 3), repeat=2)), dtype=float)
ROW = {"a": -2, "b": -2}
ONE = ReluNetwork([[[1.0, -0.5], [0.5, 1.0]], [[1.0, 0.5]]], [[0.5, 0.25], [-1.6]], labels=("no", "yes"))
TWO = ReluNetwork(
    [[[1.0, -0.5], [0.5, 1.0]], [[1.0, -0.5], [0.25, 1.0]], [[1.0, 0.5]]], [[0.5, 0.25], [0.0, 0.5], [-1.3]],
    labels=("no", "yes"),
)  # fmt: skip
HEADS = ReluNetwork(
    [[[1.0, -0.5], [0.5, 1.0]], [[1.0, -0.5], [0.25, 1.0], [-1.0, 0.5]]], [[0.5, 0.25], [0.1, -0.4, 0.9]],
    labels=("x", "y", "z"),
)  # fmt: skip
VALUE = ReluNetwork([ONE.weights[0], ONE.weights[1]], [ONE.biases[0], [0.0]])


def at(point: Any) -> dict[str, float]:
    return dict(zip("ab", map(float, point), strict=True))


# ---- the rows --------------------------------------------------------------------------------------------------------
def imposed(model: Any, target: Any = "yes", delta: float = 0.125) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    m.rule = impose(RobustToShift(delta, target=target, model=model), m.x)
    return m


def test_the_rows_are_those_of_the_docstring():
    """Of one hidden layer as wide as it is: lower bounds have a binary, negative parts none."""
    m = imposed(ONE)
    rows = {
        row.local_name: str(row.expr).replace("rule.network.", "") for row in m.component_data_objects(pyo.Constraint)
    }
    lower = {
        0: "-0.375 + post[1,0] - 0.875*x.x[a] + 0.625*x.x[b] + 0.25*post[0,2] + 0.25*post[0,3]",
        1: "-0.125 + post[1,1] - 0.375*x.x[a] - 0.875*x.x[b] + 0.25*post[0,2] + 0.25*post[0,3]",
    }
    assert rows.pop("holds[yes]").endswith("<=  -1.725 + 0.875*post[1,0] + 0.375*post[1,1]")
    for name, k in (("a", 2), ("b", 3)):
        assert rows.pop(f"not_below[0,{k}]") == f"0.0  <=  post[0,{k}] + x.x[{name}]"
    for k, text in lower.items():
        assert rows.pop(f"not_below[1,{k}]") == f"0.0  <=  {text}"
        assert rows.pop(f"not_above[1,{k}]").startswith(f"{text} + 3.")
        assert rows.pop(f"off[1,{k}]").startswith(f"post[1,{k}] - ")
    assert rows == {}
    assert "RobustToShift" in model_summary(m)["rule"].tolist()


def test_upper_bounds_have_a_row_from_below_and_no_binary():
    """Of two hidden layers: places 2 and 3 of the first are upper bounds, of which [W - delta]^- reads the last."""
    rows = {row.local_name: str(row.expr) for row in imposed(TWO).component_data_objects(pyo.Constraint)}
    upper = rows["not_below[1,3]"].replace("rule.network.", "")
    assert upper == ("0.0  <=  -0.375 + post[1,3] - 0.625*x.x[a] - 1.125*x.x[b] - 0.25*post[0,2] - 0.25*post[0,3]")
    second = rows["not_below[2,0]"].replace("rule.network.", "")
    assert second == "0.0  <=  0.125 + post[2,0] - 0.875*post[1,0] + 0.625*post[1,3]"
    assert {name for name in rows if name.startswith(("off", "not_above"))} == {
        f"{row}[{place}]" for row in ("off", "not_above") for place in ("1,0", "1,1", "2,0")
    }


@pytest.mark.parametrize(("model", "target"), [(ONE, "yes"), (ONE, "no"), (TWO, "yes"), (TWO, "no"), (HEADS, "y")])
@pytest.mark.parametrize("delta", [0.0, 0.03, 0.3])
def test_the_least_in_the_program_is_the_least_of_the_check(model, target, delta):
    """At each point of the grid the form is as large as the rows allow: the interval bound, and no more."""
    rule = RobustToShift(delta, target=target, model=model)
    expected = least_slack(model, target, delta, GRID)
    for point, slack in zip(GRID, expected, strict=True):
        m = pyo.ConcreteModel()
        m.x = Factual(SPACE, ROW)
        m.rule = impose(rule, m.x)
        (first, *others) = m.rule.holds.values()
        for name in "ab":
            m.add_component(f"pinned_{name}", pyo.Constraint(expr=m.x.raw[name] == at(point)[name]))
        form = [first.body - first.lower, *(row.body - row.lower for row in others)]
        for row in m.rule.holds.values():
            row.deactivate()
        m.least = pyo.Var()
        m.below = pyo.Constraint(range(len(form)), rule=lambda m, k, form=form: m.least <= form[k])
        m.most = pyo.Objective(expr=m.least, sense=pyo.maximize)
        assert solve(m).objective == pytest.approx(slack, abs=3e-5)  # less the margin
        assert rule.worst(SPACE, at(point)) == pytest.approx(slack, abs=1e-12)


# ---- the box ---------------------------------------------------------------------------------------------------------
def moved(model: Any, moves: Any) -> Any:
    """Return the layers of a model with each weight and bias moved."""
    layers, k = [], 0
    for w, b in model.layers:
        size = w.size
        layers.append((w + moves[k : k + size].reshape(w.shape), b + moves[k + size : k + size + b.size]))
        k += size + b.size
    return layers


def scores(layers: Any, points: Any) -> Any:
    h = points
    for k, (w, b) in enumerate(layers):
        h = h @ w.T + b
        if k < len(layers) - 1:
            h = np.maximum(h, 0.0)
    return h


def size_of(model: Any) -> int:
    return sum(w.size + b.size for w, b in model.layers)


def met(score: Any, position: int) -> Any:
    """Return by how much scores (n, K) are those of a label."""
    if score.shape[1] == 1:
        return score[:, 0] if position else -score[:, 0]
    return score[:, position] - np.delete(score, position, axis=1).max(axis=1)


@draws(15)
@given(
    first=st.lists(st.integers(-4, 4), min_size=4, max_size=4),
    biases=st.lists(st.integers(-4, 4), min_size=3, max_size=3),
    last=st.lists(st.integers(-4, 4), min_size=2, max_size=2), label=st.sampled_from(["no", "yes"]),
    delta=st.sampled_from([0.0, 0.05, 0.4, 1.7]),
)  # fmt: skip
@example(first=[1, -2, 3, 1], biases=[0, -1, 1], last=[1, -1], label="yes", delta=0.4)
def test_of_one_hidden_layer_the_worst_is_that_of_the_corners(first, biases, last, label, delta):
    """Brute force: each of the 2^9 corners of the box of a network of two neurons, at points of both signs."""
    model = ReluNetwork(
        [np.array(first, dtype=float).reshape(2, 2) / 2.0, np.array([last]) / 2.0],
        [biases[:2], biases[2:]],
        labels=("no", "yes"),
    )
    rule = RobustToShift(delta, target=label, model=model)
    rule.check(SPACE)
    points = GRID[::4]
    worst = np.full(len(points), math.inf)
    for signs in itertools.product([-delta, delta], repeat=size_of(model)):
        worst = np.minimum(worst, met(scores(moved(model, np.array(signs)), points), int(label == "yes")))
    assert [rule.worst(SPACE, at(point)) for point in points] == pytest.approx(worst.tolist(), abs=1e-9)


def test_of_several_heads_both_move():
    """The worst difference of two scores by the 2^15 corners: the neurons are shared, the heads are not."""
    heads = ReluNetwork([[[1.0, -0.5]], [[1.0], [0.25], [-1.0]]], [[0.5], [0.1, -0.4, 0.9]], labels=("x", "y", "z"))
    delta = 0.2
    rule = RobustToShift(delta, target="z", model=heads)
    points = GRID[[3, 11, 20]]
    worst = np.full(len(points), math.inf)
    for signs in itertools.product([-delta, delta], repeat=size_of(heads)):
        worst = np.minimum(worst, met(scores(moved(heads, np.array(signs)), points), 2))
    assert [rule.worst(SPACE, at(point)) for point in points] == pytest.approx(worst.tolist(), abs=1e-9)


@draws(40)
@given(st.integers(0, 2**31), st.sampled_from([(TWO, "yes"), (TWO, "no"), (HEADS, "y"), (ONE, "yes")]))
def test_no_shift_within_the_box_is_worse(seed, asked):
    """Of any depth, at corners and inside, the score stays above the bound."""
    model, label = asked
    rng = np.random.default_rng(seed)
    delta = float(rng.uniform(0.0, 0.5))
    rule = RobustToShift(delta, target=label, model=model)
    bound = np.array([rule.worst(SPACE, at(point)) for point in GRID])
    for _ in range(20):
        moves = rng.uniform(-delta, delta, size_of(model))
        if rng.random() < 0.7:
            moves = delta * np.sign(moves)
        slack = met(scores(moved(model, moves), GRID), model.labels.index(label))
        assert (slack >= bound - 1e-9).all()


# ---- the optimum -----------------------------------------------------------------------------------------------------
HALVES = st.integers(-4, 4).map(lambda k: k / 2.0)


@st.composite
def networks(draw: Any, depth: int, n_scores: int, labels: Any) -> Any:
    widths = [2, *draw(st.lists(st.integers(1, 3), min_size=depth, max_size=depth)), n_scores]
    w, b = [], []
    for m, n in itertools.pairwise(widths):
        w.append(np.array([[draw(HALVES) for _ in range(m)] for _ in range(n)]))
        b.append(np.array([draw(HALVES) + 0.13 for _ in range(n)]))
    return Affine(w[0], b[0], labels=labels) if depth == 0 else ReluNetwork(w, b, labels=labels)


@st.composite
def asked_of_networks(draw: Any) -> Any:
    depth = draw(st.integers(0, 3))
    kind = draw(st.sampled_from(["label", "value", "classes"]))
    if kind == "value":
        a, b = sorted((draw(HALVES) + 0.04, draw(HALVES) + 1.09))
        return draw(networks(depth, 1, None)), draw(st.sampled_from([AtLeast(a), AtMost(a), Between(a, b)]))
    if kind == "classes":
        target = draw(st.sampled_from(["x", "z", OtherThan("x"), {"x", "y"}]))
        return draw(networks(depth, 3, ("x", "y", "z"))), target
    return draw(networks(depth, 1, ("no", "yes"))), draw(st.sampled_from(["no", "yes", Probability("yes", 0.6)]))


@draws(60)
@given(asked_of_networks(), st.sampled_from([0.0, 0.011, 0.07, 0.31]), st.sampled_from(range(25)))
def test_the_optimum_is_that_of_enumeration(asked, delta, home):
    """On the grid, of any depth and target: the least change whose interval bound is met, or the proof of none."""
    model, target = asked
    if isinstance(target, Probability):
        model = type(model)(
            *((model.weights, model.intercept) if isinstance(model, Affine) else (model.weights, model.biases)),
            labels=model.labels, probability="logistic",
        )  # fmt: skip
    slack = least_slack(model, target, delta, GRID)
    assume(np.abs(slack).min() > 1e-3)
    person = at(GRID[home])
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, person)
    m.rule = impose(RobustToShift(delta, target=target, model=model), m.x)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    result = solve(m)
    costs = np.abs(GRID - GRID[home]).sum(axis=1)[slack > 0.0]
    if not len(costs):
        assert result.status == "infeasible"
        return
    assert result.status == "optimal"
    assert result.objective == pytest.approx(costs.min(), abs=1e-6)


@pytest.mark.parametrize("model", [Affine([0.5, 1.0], 0.3, labels=("no", "yes")), ONE, TWO])
@pytest.mark.parametrize(("low", "high"), [((-4, 1), (-1, 3)), ((-3, -4), (0, -1)), ((0, 1), (3, 2))])
def test_inputs_of_one_sign(model, low, high):
    """Below 0 a weight that rises takes from the score what it adds above."""
    features = zip("ab", low, high, strict=True)
    space = FeatureSpace([Feature(name, kind="integer", lower=least, upper=most) for name, least, most in features])
    points = np.array(list(itertools.product(*(range(least, most + 1) for least, most in zip(low, high, strict=True)))))
    for home, target, delta in itertools.product([0, -1], ["yes", "no"], [0.0, 0.09, 0.2]):
        slack = least_slack(model, target, delta, points)
        m = pyo.ConcreteModel()
        m.x = Factual(space, dict(zip("ab", points[home].tolist(), strict=True)))
        m.rule = impose(RobustToShift(delta, target=target, model=model), m.x)
        m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
        result = solve(m)
        costs = np.abs(points - points[home]).sum(axis=1)[slack > 1e-4]
        best = costs.min() if len(costs) else None
        assert (result.objective if result.status == "optimal" else None) == (
            best if best is None else pytest.approx(best)
        )
        assert m.rule.component("negative") is None


def test_a_network_that_reads_nothing():
    still = ReluNetwork([[[0.0, 0.0]], [[1.0]]], [[1.0], [-0.5]], labels=("no", "yes"))
    assert solve(with_cost(imposed(still, "yes", 0.0))).objective == 0.0
    assert solve(with_cost(imposed(still, "no", 0.0))).status == "infeasible"
    assert solve(with_cost(imposed(still, "no", 0.9))).status == "infeasible"


def with_cost(m: Any) -> Any:
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    return m


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (ONE, "yes"),
        (TWO, "yes"),
        (HEADS, "x"),
        (HEADS, OtherThan("z")),
        (VALUE, AtLeast(1.6)),
        (VALUE, Between(1.6, 3.2)),
    ],
)
def test_explain_with_delta_0_is_the_plain_question(model, target):
    plain = ceopt.explain(model, ROW, SPACE, target=target, cost="l1")
    asked = ceopt.explain(model, ROW, SPACE, target=target, cost="l1", constraints=[RobustToShift(0)])
    assert (asked.status, asked[0].cost) == (plain.status, pytest.approx(plain[0].cost, rel=1e-6))


# ---- models of a library, their own weights moved --------------------------------------------------------------------
LOANS = ceopt.datasets.loans()
NAMES = ["income", "savings", "employment", "duration", "open_loans"]
X, Y = LOANS.data[NAMES], LOANS.target
LOAN_SPACE = FeatureSpace.infer(X)


def piped(estimator: Any, labels: Any = Y) -> Any:
    seen = make_column_transformer((OneHotEncoder(), ["employment"]), remainder=StandardScaler())
    return make_pipeline(seen, estimator).fit(X, labels)


def shifted(model: Any, moves: Any) -> Any:
    """Return a copy of a pipeline whose last step has each parameter moved by ``moves(shape)``."""
    other = copy.deepcopy(model)
    last = other[-1]
    if hasattr(last, "coefs_"):
        last.coefs_ = [w + moves(w.shape) for w in last.coefs_]
        last.intercepts_ = [b + moves(b.shape) for b in last.intercepts_]
    else:
        last.coef_ = last.coef_ + moves(last.coef_.shape)
        last.intercept_ = last.intercept_ + moves(last.intercept_.shape)
    return other


@pytest.mark.parametrize(
    ("estimator", "delta"),
    [
        (LogisticRegression(), 0.05),
        (MLPClassifier((8,), max_iter=200, random_state=0), 0.02),
        (MLPClassifier((6, 5), max_iter=200, random_state=0), 0.01),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_shifted_models_of_scikit_learn_keep_the_decision(estimator, delta):
    """Answers without the rule lose it to some shift, and those with it to none, corners of the box included."""
    model = piped(estimator)
    people = X[model.predict(X) == "bad"].head(3)
    rng = np.random.default_rng(0)
    signs = [lambda shape: delta * rng.choice([-1.0, 1.0], shape), lambda shape: rng.uniform(-delta, delta, shape)]
    models = [shifted(model, move) for move in signs for _ in range(60)]
    models += [shifted(model, lambda shape, s=s: np.full(shape, s * delta)) for s in (-1.0, 1.0)]
    lost = 0
    for _, person in people.iterrows():
        plain = ceopt.explain(model, person, LOAN_SPACE, target="good")
        robust = ceopt.explain(model, person, LOAN_SPACE, target="good", constraints=[RobustToShift(delta)])
        assert robust.status == "optimal"
        assert robust[0].cost >= plain[0].cost
        lost += sum(other.predict(plain[0].frame)[0] == "bad" for other in models)
        assert all(other.predict(robust[0].frame)[0] == "good" for other in models)
    assert lost > 0


def test_a_linear_model_is_answered_by_its_closed_form():
    """The worst of a logistic model is the one that moves each weight against the sign of what it sees."""
    model = piped(LogisticRegression())
    person = X[model.predict(X) == "bad"].iloc[0]
    rule = RobustToShift(0.05)
    answer = ceopt.explain(model, person, LOAN_SPACE, target="good", constraints=[rule])[0]
    seen = np.asarray(model[:-1].transform(answer.frame)).ravel()
    sign = 1.0 if model.classes_[1] == "good" else -1.0
    least = sign * model.decision_function(answer.frame)[0] - 0.05 * (np.abs(seen).sum() + 1.0)
    known = RobustToShift(0.05, target="good", model=model)
    assert known.worst(LOAN_SPACE, LOAN_SPACE.row(answer.values)) == pytest.approx(least, abs=1e-9)
    assert least >= 0.0


# ---- an ordinary rule ------------------------------------------------------------------------------------------------
def brute(model: Any, target: Any, delta: float, allowed: Any = None) -> float:
    kept = least_slack(model, target, delta, GRID) > 0.0
    if allowed is not None:
        kept &= allowed
    return float(np.abs(GRID - GRID[0])[kept].sum(axis=1).min())


@pytest.mark.parametrize("model", [ONE, TWO])
def test_beside_other_rules(model):
    question: dict[str, Any] = {"target": "yes", "cost": ceopt.L1(scale="none")}
    few = ceopt.MaxChanges(1)
    causal = ceopt.Causal({"b": ceopt.LinearEquation({"a": 1.0})}, intervention="soft")
    hull = ceopt.Hull(pd.DataFrame({"a": [0, 2, 2], "b": [2, 2, 0]}))
    rule = RobustToShift(0.05)
    one = ceopt.explain(model, ROW, SPACE, constraints=[rule, few], **question)
    changed = (GRID[0] != GRID).sum(axis=1)
    kept = (least_slack(model, "yes", 0.05, GRID) > 0.0) & (changed <= 1)
    assert (one.status == "optimal") == bool(kept.any())
    within = ceopt.explain(model, ROW, SPACE, constraints=[rule, hull], **question)
    assert within[0].cost == pytest.approx(brute(model, "yes", 0.05, GRID.sum(axis=1) >= 2.0))
    follows = ceopt.explain(model, ROW, SPACE, constraints=[rule, causal], **question)
    assert follows.status in {"optimal", "infeasible"}
    assert all(rule.aimed("yes").about(lambda: _read(model)).worst(SPACE, at(one.values)) > 0.0 for one in follows)


def _read(model: Any) -> Any:
    return ceopt.formulations.predictors.read(model, SPACE)


def test_several_answers_and_another_cost():
    rule = RobustToShift(0.03)
    kept = GRID[least_slack(TWO, "yes", 0.03, GRID) > 0.0]
    moves = np.abs(kept - GRID[0])
    several = ceopt.explain(
        TWO, ROW, SPACE, target="yes", n=3, diversity="support", cost=ceopt.L1(scale="none"), constraints=[rule]
    )
    costs = {tuple(row > 0.0): math.inf for row in moves}
    for row in moves:
        costs[tuple(row > 0.0)] = min(costs[tuple(row > 0.0)], row.sum())
    assert [round(answer.cost, 6) for answer in several] == sorted(costs.values())
    assert len(several) > 1
    squares = ceopt.explain(
        TWO, ROW, SPACE, target="yes", cost=ceopt.L2(squared=True, scale="none"), constraints=[rule]
    )
    assert squares[0].cost == pytest.approx((moves**2).sum(axis=1).min())


def test_why_is_there_none_names_the_rule():
    low = ceopt.Linear({"a": 1.0, "b": 1.0}, "<=", 0.0, name="low")
    result = ceopt.explain(TWO, ROW, SPACE, target="yes", constraints=[RobustToShift(0.3, name="robust"), low])
    assert result.status == "infeasible"
    assert "robust" in {name for name, *_ in result.conflict}
    alone = ceopt.explain(TWO, ROW, SPACE, target="yes", constraints=[RobustToShift(30.0, name="robust")])
    assert alone.status == "infeasible"


def test_verify_asks_the_box():
    rule = RobustToShift(0.1, name="robust")
    slack = least_slack(ONE, "yes", 0.1, GRID)
    plain = met(scores(ONE.layers, GRID), 1)
    weak = at(GRID[np.flatnonzero((plain > 0.0) & (slack < 0.0))[0]])
    strong = at(GRID[np.flatnonzero(slack > 0.0)[0]])
    report = ceopt.verify([weak, strong], ONE, SPACE, target="yes", constraints=[rule], factual=ROW)
    first, second = report.to_frame()["broken"]
    assert "robust" in first[0]
    assert not second


def test_a_cohort_and_a_copy():
    rule = RobustToShift(0.05)
    recourse = ceopt.Recourse(TWO, SPACE, target="yes", constraints=[rule], cost=ceopt.L1(scale="none"))
    found = recourse.fit(pd.DataFrame(GRID, columns=list("ab")).astype(int)).explain(pd.DataFrame([ROW]))
    assert found[0][0].cost == pytest.approx(brute(TWO, "yes", 0.05))
    known = rule.about(lambda: _read(TWO)).aimed("yes")
    assert pickle.loads(pickle.dumps(known)).worst(SPACE, ROW) == known.worst(SPACE, ROW)
    assert known.aimed("yes") is known
    assert known.aimed("no").worst(SPACE, at((2, 2))) != known.worst(SPACE, at((2, 2)))


# ---- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("delta", [-0.1, math.nan, math.inf, -math.inf, "much", None, True])
def test_a_delta_that_is_none(delta):
    with pytest.raises(ceopt.CeoptError, match="RobustToShift needs a finite delta of at least 0, but delta is"):
        RobustToShift(delta)


def explain(model: Any, **more: Any) -> Any:
    return ceopt.explain(model, ROW, SPACE, **{"target": "yes", "constraints": [RobustToShift(0.01)], **more})


def test_models_without_weights_are_refused_with_the_next_step():
    stump = TreeEnsemble(
        [{"feature": 0, "threshold": 0.5, "left": {"value": -1.0}, "right": {"value": 1.0}}],
        n_inputs=2,
        labels=("no", "yes"),
    )
    with pytest.raises(ceopt.CeoptError, match=r"has trees, which have none. Ask for a margin instead"):
        explain(stump)
    grid = pd.DataFrame(GRID, columns=["a", "b"]).astype(int)
    labels = np.where(GRID.sum(axis=1) > 0, "yes", "no")
    forest = RandomForestClassifier(3, random_state=0).fit(grid, labels)
    with pytest.raises(ceopt.CeoptError, match=r"RandomForestClassifier has trees.*Disagreement\(target"):
        explain(forest)
    votes = VotingClassifier([("a", LogisticRegression()), ("b", LogisticRegression(C=0.1))]).fit(grid, labels)
    with pytest.raises(ceopt.CeoptError, match=r"one network or linear model, but VotingClassifier is made of 2"):
        explain(votes)
    straight = ReluNetwork(ONE.weights, ONE.biases, activations=["identity"], labels=("no", "yes"))
    with pytest.raises(ceopt.CeoptError, match="needs a ReLU behind every layer but the last"):
        explain(straight)


def test_questions_that_lack_something_are_refused_by_name():
    with pytest.raises(ceopt.CeoptError, match="needs a target beside a model of its own, but target is None"):
        RobustToShift(0.1, model=ONE)
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    with pytest.raises(ceopt.CeoptError, match="needs to know the model"):
        m.rule = impose(RobustToShift(0.1, target="yes"), m.x)
    with pytest.raises(ceopt.CeoptError, match="needs to know the target"):
        m.rule = impose(RobustToShift(0.1), m.x, model=ONE)
    m.rule = impose(RobustToShift(0.1, target="yes"), m.x, model=ONE)
    with pytest.raises(ceopt.CeoptError, match="maybe"):
        ceopt.explain(ONE, ROW, SPACE, target="yes", constraints=[RobustToShift(0.1, model=ONE, target="maybe")])
    open_space = FeatureSpace([Feature("a", kind="integer"), Feature("b", kind="integer", lower=-2, upper=2)])
    m.y = Factual(open_space, ROW)
    with pytest.raises(ceopt.CeoptError, match=r"finite bounds of every column that it sees, but column 'a' has none"):
        m.other = impose(RobustToShift(0.1, target="yes", model=ONE), m.y)


def test_a_linear_model_needs_no_bounds():
    open_space = FeatureSpace([Feature("a", kind="continuous"), Feature("b", kind="continuous")])
    model = Affine([1.0, 0.5], -1.0, labels=("no", "yes"))
    result = ceopt.explain(
        model,
        {"a": -2.0, "b": -2.0},
        open_space,
        target="yes",
        constraints=[RobustToShift(0.1)],
        cost=ceopt.L1(scale="none"),
    )
    # a rises to 0 first, and then by (1 - .1) a unit: -2 * .5 - .1 * 2 - 1 - .1 is left
    assert result[0].cost == pytest.approx(2.0 + 2.3 / 0.9, rel=1e-4)


def test_a_regressor_of_scikit_learn():
    model = MLPRegressor(hidden_layer_sizes=(4,), max_iter=3000, random_state=1, solver="lbfgs")
    grid = pd.DataFrame(GRID, columns=["a", "b"]).astype(int)
    model.fit(grid, GRID.sum(axis=1))
    result = explain(model, target=Between(0.5, 3.5), cost=ceopt.L1(scale="none"))
    assert result.status == "optimal"
    layers = ReluNetwork([w.T for w in model.coefs_], model.intercepts_)
    assert result[0].cost == pytest.approx(brute(layers, Between(0.5, 3.5), 0.01))


def test_several_people_in_one_program():
    people = pd.DataFrame([ROW, {"a": 0, "b": -2}, {"a": 2, "b": 2}], index=["ann", "bob", "cleo"])
    m = pyo.ConcreteModel()
    m.people = People(TWO, people, SPACE, target="yes", cost=ceopt.L1(scale="none"), constraints=[RobustToShift(0.05)])
    m.all = pyo.Constraint(expr=pyo.quicksum(m.people.served.values()) == 3)
    m.spent = pyo.Objective(expr=pyo.quicksum(m.people.cost.values()))
    kept = least_slack(TWO, "yes", 0.05, GRID) > 0.0
    best = sum(np.abs(GRID[kept] - row).sum(axis=1).min() for row in people.to_numpy())
    assert best > 0.0
    assert ceopt.solve_people(m).objective == pytest.approx(best)


def test_the_sentence_names_the_model_where_it_is_known():
    told = "the decision holds for every {} whose weights differ by at most 0.1"
    assert ceopt.RobustToShift(0.1).sentence() == told.format("model")
    assert ceopt.RobustToShift(0.1, target="yes", model=ONE).sentence() == told.format("ReluNetwork")
