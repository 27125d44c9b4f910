"""One timed run of ``own_programs.py`` in a process of its own, with whichever ceopt is on its path; prints JSON.

It imports nothing of today's ceopt but in the ways that are of today.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import resample

RADIUS = 5 / 16
LIMIT_S = 300.0
MODELS = 100
LIBRARIES = {"highs": "highspy", "gurobi": "gurobipy"}
SHARE = 0.9
#: On how many rows a pipeline over the loans is asked while it is read.
ROWS_HELD = 37
#: What a user of 0.2.0 had to guess.
BIG_M = 25.0


# ---- an attack on digits ---------------------------------------------------------------------------------------------
def digits() -> tuple[Any, Any, int]:
    """Return the network, the first row and its class; pixels are between 0 and 1."""
    data = load_digits()
    network = MLPClassifier((15, 10, 10), random_state=0, max_iter=500).fit(data.data / 16.0, data.target)
    row = data.data[0] / 16.0
    return network, row, int(network.predict(row[None])[0])


def attack_now(solver: str) -> dict[str, Any]:
    """Return the least margin within the ball: one program, whose bounds know the ball."""
    import pyomo.environ as pyo

    from ceopt import L1, Feature, FeatureSpace
    from ceopt.formulations import Cutoff, Factual, embed, l1
    from ceopt.solvers import solve

    importlib.import_module(LIBRARIES[solver])  # outside the clock, as the peer's is
    network, row, own = digits()
    names = [f"pixel{k}" for k in range(len(row))]
    began, began_work = time.perf_counter(), time.process_time()
    space = FeatureSpace([Feature(name, kind="continuous", lower=0, upper=1) for name in names])
    person = dict(zip(names, row.tolist(), strict=True))
    scale = dict.fromkeys(names, 1.0)
    m = pyo.ConcreteModel()
    m.x = Factual(space, person)
    m.ball = pyo.Constraint(expr=l1(m.x, scale=scale) <= RADIUS)
    m.network = embed(network, m.x, cutoff=Cutoff(space, person, L1(scale=scale), RADIUS))
    m.least = pyo.Objective(expr=m.network.margin(own))
    result = solve(m, solver=solver, time_limit_s=LIMIT_S)
    spent = {"seconds": time.perf_counter() - began, "processor": time.process_time() - began_work}
    return {**spent, "value": result.objective, "status": str(result.status)}


def attack_before(solver: str) -> dict[str, Any]:
    """Return the same in names of 0.2.0: nine programs, one a rival class, over Vars with the ball's own bounds."""
    import pyomo.environ as pyo

    from ceopt import Feature, FeatureSpace
    from ceopt.formulations import embed
    from ceopt.solvers import solve

    importlib.import_module(LIBRARIES[solver])  # outside the clock, as the peer's is
    network, row, own = digits()
    pixels = range(len(row))
    began, began_work = time.perf_counter(), time.process_time()
    space = FeatureSpace([Feature(f"pixel{k}", kind="continuous", lower=0, upper=1) for k in pixels])
    m = pyo.ConcreteModel()
    m.x = pyo.Var(pixels, bounds=lambda _, k: (max(0.0, row[k] - RADIUS), min(1.0, row[k] + RADIUS)))
    m.move = pyo.Var(pixels, bounds=(0, RADIUS))
    m.up = pyo.Constraint(pixels, rule=lambda m, k: m.move[k] >= m.x[k] - row[k])
    m.down = pyo.Constraint(pixels, rule=lambda m, k: m.move[k] >= row[k] - m.x[k])
    m.ball = pyo.Constraint(expr=sum(m.move.values()) <= RADIUS)
    m.network = embed(network, {f"pixel{k}": m.x[k] for k in pixels}, space=space)
    values = []
    statuses = set()
    for rival in range(10):
        if rival == own:
            continue
        m.least = pyo.Objective(expr=m.network.score[own] - m.network.score[rival])
        result = solve(m, solver=solver, time_limit_s=LIMIT_S)
        m.del_component("least")
        values.append(result.objective)
        statuses.add(str(result.status))
    spent = {"seconds": time.perf_counter() - began, "processor": time.process_time() - began_work}
    return {**spent, "value": min(values), "status": " ".join(sorted(statuses))}


def attack_gurobi_ml() -> dict[str, Any]:
    """Return the same by gurobi-machinelearning: one program, with the greatest of the other scores."""
    import gurobipy as gp
    from gurobi_ml import add_predictor_constr

    network, row, own = digits()
    layers = MLPRegressor(
        hidden_layer_sizes=network.hidden_layer_sizes
    )  # it reads no classifier: the same layers, with scores as outputs
    layers.__dict__.update({name: value for name, value in vars(network).items() if name != "classes_"})
    layers.out_activation_ = "identity"
    began, began_work = time.perf_counter(), time.process_time()
    with gp.Env(params={"OutputFlag": 0, "Threads": 1, "TimeLimit": LIMIT_S}) as env, gp.Model(env=env) as m:
        low, high = (row - RADIUS).clip(0.0, 1.0), (row + RADIUS).clip(0.0, 1.0)
        x = m.addMVar(len(row), lb=low, ub=high)
        move = m.addMVar(len(row), ub=RADIUS)
        m.addConstr(move >= x - row)
        m.addConstr(move >= row - x)
        m.addConstr(move.sum() <= RADIUS)
        scores = m.addMVar(10, lb=-gp.GRB.INFINITY)
        add_predictor_constr(m, layers, x.reshape(1, -1), scores.reshape(1, -1))
        best = m.addVar(lb=-gp.GRB.INFINITY)
        m.addGenConstrMax(best, [scores[k].item() for k in range(10) if k != own])
        m.setObjective(scores[own].item() - best)
        m.optimize()
        spent = {"seconds": time.perf_counter() - began, "processor": time.process_time() - began_work}
        is_proved = m.Status == gp.GRB.OPTIMAL
        return {**spent, "value": m.ObjVal, "status": "optimal" if is_proved else f"Gurobi {m.Status}"}


# ---- valid for 90 of 100 bootstrapped models -------------------------------------------------------------------------
def town() -> tuple[Any, list[Any], Any]:
    """Return loans, the bootstrapped models over them, and people whom the first of them refuses."""
    import ceopt

    book = ceopt.datasets.loans()
    numbers = make_column_selector(dtype_include="number")
    words = make_column_selector(dtype_exclude="number")
    models = []
    for k in range(MODELS):
        encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), words))
        rows, labels = resample(book.data, book.target, random_state=k)
        models.append(make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(rows, labels))
    return book, models, book.data[models[0].predict(book.data) == "bad"]


def asked_alone() -> dict[str, Any]:
    """Return what scikit-learn itself takes for the rows that each reading is held against."""
    book, models, _ = town()
    rows = book.data.head(ROWS_HELD)
    began, began_work = time.perf_counter(), time.process_time()
    for model in models:
        model.predict_proba(rows)
    processor = time.process_time() - began_work
    return {"seconds": time.perf_counter() - began, "processor": processor, "value": None, "status": ""}


def bootstrapped(people: int, *, by_switch: bool, known: bool = False) -> dict[str, Any]:
    """Return what building the program of each of some people takes, and what solving the first one's takes."""
    import pyomo.environ as pyo

    from ceopt.formulations import Factual, Reaches, embed, l1
    from ceopt.solvers import solve

    book, models, refused = town()
    if known:
        from ceopt.formulations import predictors  # which 0.2.0 does not have

        for model in models:
            predictors.read(model, book.space)
    building = processor = solving = 0.0
    values = []
    for place in range(people):
        began, began_work = time.perf_counter(), time.process_time()
        m = pyo.ConcreteModel()
        m.x = Factual(book.space, refused.iloc[[place]])
        m.says_yes = pyo.Var(range(MODELS), domain=pyo.Binary)
        m.case = pyo.Block(range(MODELS))
        for k, model in enumerate(models):
            m.case[k].predictor = embed(model, m.x)
            if by_switch:
                m.case[k].valid = Reaches(m.case[k].predictor, "good", when=m.says_yes[k])
            else:
                score = m.case[k].predictor.score["good"]
                m.case[k].valid = pyo.Constraint(expr=score >= 1e-5 - BIG_M * (1 - m.says_yes[k]))
        m.enough = pyo.Constraint(expr=sum(m.says_yes.values()) >= SHARE * MODELS)
        m.cost = pyo.Objective(expr=l1(m.x))
        building += time.perf_counter() - began
        processor += time.process_time() - began_work
        began = time.perf_counter()
        result = solve(m, time_limit_s=LIMIT_S)
        solving += time.perf_counter() - began
        values.append(result.objective)
    found = {"seconds": building, "processor": processor, "solving": solving}
    return {**found, "value": values, "status": str(result.status)}


TASKS: dict[tuple[str, str], Callable[[], dict[str, Any]]] = {
    ("attack", "now, HiGHS"): lambda: attack_now("highs"),
    ("attack", "now, Gurobi"): lambda: attack_now("gurobi"),
    ("attack", "0.2.0, HiGHS"): lambda: attack_before("highs"),
    ("attack", "gurobi-machinelearning"): attack_gurobi_ml,
    ("one person", "now"): lambda: bootstrapped(1, by_switch=True),
    ("one person", "now, models read before"): lambda: bootstrapped(1, by_switch=True, known=True),
    ("one person", "scikit-learn alone"): asked_alone,
    ("one person", "0.2.0"): lambda: bootstrapped(1, by_switch=False),
    ("ten people", "now"): lambda: bootstrapped(10, by_switch=True),
    ("ten people", "0.2.0"): lambda: bootstrapped(10, by_switch=False),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(TASKS[sys.argv[1], sys.argv[2]]()))
