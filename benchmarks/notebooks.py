"""Six notebooks of gurobi-machinelearning and OMLT, here and there on the same fitted models, and both optima.

Their data are drawn here, as they would be fetched there. Run where both libraries are installed (README.md); one that
is not is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from own_programs_ask import RADIUS, attack_gurobi_ml, digits
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ceopt import L1, Feature, FeatureSpace
from ceopt.formulations import Cutoff, Factual, embed, l1
from ceopt.solvers import solve

TITLE = "Notebooks of gurobi-machinelearning and OMLT, restated"
MEASURES = (
    "formulations/predictors/embed",
    "formulations/predictors/margin.py",
    "solvers/gurobi.py",
    "solvers/highs.py",
)

#: How far two optima may lie apart and still count as the same.
SAME = 1e-4
LIMIT_S = 120.0


def network_of(X: pd.DataFrame, y: Any, *layers: int) -> Any:
    """Return a fitted ReLU network."""
    return MLPRegressor(hidden_layer_sizes=layers, solver="lbfgs", max_iter=4000, random_state=0).fit(X, y)


# ==== gurobi-machinelearning: prices of avocados ======================================================================
SHIPPING = {"north": 0.3, "east": 0.1, "south": 0.5, "west": 0.2}
REGIONS = list(SHIPPING)
WASTE = 0.1
STOCK = 9.0


def demand() -> tuple[pd.DataFrame, Any]:
    """Return rows of sales and a linear model of them by region, season and price."""
    draw = np.random.default_rng(0)
    columns = {
        "region": draw.choice(REGIONS, 400),
        "peak": draw.integers(0, 2, 400),
        "price": draw.uniform(0.7, 2.2, 400).round(2),
    }
    X = pd.DataFrame(columns)
    level = X["region"].map(dict(zip(REGIONS, (5.0, 4.0, 6.0, 3.5), strict=True)))
    sales = (level - 1.4 * X["price"] + 0.6 * X["peak"] + draw.normal(0, 0.3, 400)).round(3)
    encode = make_column_transformer((OneHotEncoder(), ["region"]), remainder="passthrough")
    return X, make_pipeline(encode, LinearRegression()).fit(X, sales)


def _prices_here() -> Any:
    X, model = demand()
    m = pyo.ConcreteModel()
    m.region = pyo.Set(initialize=REGIONS)
    m.price = pyo.Var(m.region, bounds=(0.7, 2.2))
    m.supply = pyo.Var(m.region, bounds=(0, 8))
    m.sold = pyo.Var(m.region, bounds=(0, 8))
    m.demand = pyo.Block(m.region)
    space = FeatureSpace.infer(X)
    for r in REGIONS:
        m.demand[r].sales = embed(model, {"price": m.price[r], "peak": 1, "region": r}, space=space)
    m.wanted = pyo.Constraint(m.region, rule=lambda m, r: m.sold[r] <= m.demand[r].sales.score)
    m.there = pyo.Constraint(m.region, rule=lambda m, r: m.sold[r] <= m.supply[r])
    m.stock = pyo.Constraint(expr=sum(m.supply.values()) == STOCK)
    profit = sum(
        m.price[r] * m.sold[r] - WASTE * (m.supply[r] - m.sold[r]) - SHIPPING[r] * m.supply[r] for r in REGIONS
    )
    m.profit = pyo.Objective(expr=profit, sense=pyo.maximize)
    return m


def _prices_there() -> float:
    import gurobipy as gp
    from gurobi_ml import add_predictor_constr

    _, model = demand()
    with _gurobi() as env, gp.Model(env=env) as m:
        price = m.addMVar(4, lb=0.7, ub=2.2)
        supply = m.addMVar(4, ub=8)
        sold = m.addMVar(4, ub=8)
        wanted = m.addMVar((4, 1), lb=-gp.GRB.INFINITY)
        inputs = m.addMVar((4, 6), lb=-gp.GRB.INFINITY)
        order = [str(name) for name in model[0].transformers_[0][1].categories_[0]]
        for k, region in enumerate(REGIONS):
            for j, level in enumerate(order):
                m.addConstr(inputs[k, j] == float(level == region))
            m.addConstr(inputs[k, 4] == 1.0)
            m.addConstr(inputs[k, 5] == price[k])
        add_predictor_constr(m, model[1], inputs, wanted)
        m.addConstr(sold <= wanted[:, 0])
        m.addConstr(sold <= supply)
        m.addConstr(supply.sum() == STOCK)
        shipping = np.array([SHIPPING[region] for region in REGIONS])
        m.setObjective((price * sold).sum() - WASTE * (supply - sold).sum() - shipping @ supply, gp.GRB.MAXIMIZE)
        m.optimize()
        return float(m.ObjVal)


# ==== gurobi-machinelearning: scholarships and enrolment ==============================================================
STUDENTS = 20


def enrolment() -> tuple[pd.DataFrame, Any]:
    """Return students, and a model of who enrols by test, grades and merit scholarship."""
    draw = np.random.default_rng(1)
    columns = {"merit": draw.uniform(0, 2.5, 500), "sat": draw.normal(1200, 120, 500), "gpa": draw.normal(3, 0.4, 500)}
    X = pd.DataFrame(columns).round(2)
    chance = 1.5 * X["merit"] - 0.004 * (X["sat"] - 1200) - 1.2 * (X["gpa"] - 3) - 0.8
    enrols = (draw.uniform(size=500) < 1 / (1 + np.exp(-chance))).astype(int)
    return X, make_pipeline(StandardScaler(), LogisticRegression()).fit(X, enrols)


def _enrolment_here() -> Any:
    X, model = enrolment()
    space = FeatureSpace.infer(X)
    m = pyo.ConcreteModel()
    m.student = pyo.RangeSet(0, STUDENTS - 1)
    m.merit = pyo.Var(m.student, bounds=(0, 2.5))
    m.enrols = pyo.Block(m.student)
    for k in m.student:
        known = {"sat": float(X["sat"][k]), "gpa": float(X["gpa"][k])}
        m.enrols[k].likely = embed(model, {"merit": m.merit[k], **known}, space=space)
    m.budget = pyo.Constraint(expr=sum(m.merit.values()) <= 0.2 * STUDENTS)
    m.most = pyo.Objective(
        expr=sum(m.enrols[k].likely.probability_within(1e-5)[1] for k in m.student), sense=pyo.maximize
    )
    return m


def _enrolment_there() -> float:
    import gurobipy as gp
    from gurobi_ml import add_predictor_constr

    X, model = enrolment()
    with _gurobi() as env, gp.Model(env=env) as m:
        own = X[["sat", "gpa"]].to_numpy()[:STUDENTS]
        merit = m.addMVar(STUDENTS, ub=2.5)
        inputs = m.addMVar((STUDENTS, 3), lb=-gp.GRB.INFINITY)
        m.addConstr(inputs[:, 0] == merit)
        m.addConstr(inputs[:, 1:] == own)
        share = m.addMVar((STUDENTS, 1))
        add_predictor_constr(m, model, inputs, share, output_type="probability_1")
        m.addConstr(merit.sum() <= 0.2 * STUDENTS)
        m.setObjective(share.sum(), gp.GRB.MAXIMIZE)
        m.optimize()
        return float(m.ObjVal)


# ==== gurobi-machinelearning: an attack on digits =====================================================================
def _attack_here() -> Any:
    network, row, own = digits()
    names = [f"pixel{k}" for k in range(len(row))]
    space = FeatureSpace([Feature(name, kind="continuous", lower=0, upper=1) for name in names])
    image = dict(zip(names, row.tolist(), strict=True))
    plain = dict.fromkeys(names, 1.0)
    m = pyo.ConcreteModel()
    m.x = Factual(space, image)
    m.ball = pyo.Constraint(expr=l1(m.x, scale=plain) <= RADIUS)
    m.network = embed(network, m.x, cutoff=Cutoff(space, image, L1(scale=plain), RADIUS))
    m.least = pyo.Objective(expr=m.network.margin(own) + m.network.margin(own).slack)
    return m


def _attack_there() -> float:
    return float(attack_gurobi_ml()["value"])


# ==== gurobi-machinelearning: a surrogate of a function ===============================================================
def peaks() -> tuple[pd.DataFrame, Any]:
    """Return points, and a network that was fitted to the function "peaks" at them."""
    draw = np.random.default_rng(2)
    X = pd.DataFrame(draw.uniform(-2, 2, (1500, 2)), columns=["u", "v"])
    u, v = X["u"], X["v"]
    height = 3 * (1 - u) ** 2 * np.exp(-(u**2) - (v + 1) ** 2) - 10 * (u / 5 - u**3 - v**5) * np.exp(-(u**2) - v**2)
    return X, network_of(X, height - np.exp(-((u + 1) ** 2) - v**2) / 3, 15, 15)


def _surrogate_here() -> Any:
    _, model = peaks()
    m = pyo.ConcreteModel()
    m.x = pyo.Var(["u", "v"], bounds=(-2, 2))
    m.height = embed(model, {name: m.x[name] for name in ("u", "v")})
    m.lowest = pyo.Objective(expr=m.height.score)
    return m


def _surrogate_there() -> float:
    import gurobipy as gp
    from gurobi_ml import add_predictor_constr

    _, model = peaks()
    with _gurobi() as env, gp.Model(env=env) as m:
        x = m.addMVar((1, 2), lb=-2, ub=2)
        height = m.addMVar((1, 1), lb=-gp.GRB.INFINITY)
        add_predictor_constr(m, model, x, height)
        m.setObjective(height[0, 0])
        m.optimize()
        return float(m.ObjVal)


# ==== OMLT: formulations of a network =================================================================================
def wave() -> tuple[pd.DataFrame, Any]:
    """Return points of a line, and a network that was fitted to a wave over it."""
    X = pd.DataFrame({"x": np.linspace(-2, 2, 400)})
    return X, network_of(X, np.sin(2 * np.pi * X["x"]) - 2 * X["x"] ** 2 + X["x"], 20, 20)


def _wave_here() -> Any:
    _, model = wave()
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(-2, 2))
    m.y = embed(model, {"x": m.x})
    m.top = pyo.Objective(expr=m.y.score, sense=pyo.maximize)
    return m


def _wave_there() -> float:
    _, model = wave()
    m = pyo.ConcreteModel()
    m.y = _omlt(model, [(-2.0, 2.0)])
    m.top = pyo.Objective(expr=m.y.outputs[0], sense=pyo.maximize)
    pyo.SolverFactory("appsi_highs").solve(m)
    return float(pyo.value(m.top))


# ==== OMLT: a control over several steps ==============================================================================
STEPS = 4
GOAL = 1.5


def plant() -> Any:
    """Return a network of where a plant stands a step later, by where it stands and what is done."""
    draw = np.random.default_rng(3)
    X = pd.DataFrame({"state": draw.uniform(-2, 2, 800), "control": draw.uniform(-1, 1, 800)})
    return network_of(X, 0.8 * X["state"] + 0.5 * X["control"] - 0.1 * X["state"] ** 3, 8)


def _control_here() -> Any:
    model = plant()
    m = _controls()
    m.plant = pyo.Block(range(STEPS))
    for t in range(STEPS):
        m.plant[t].next = embed(model, {"state": m.state[t], "control": m.control[t]})
        m.rows.add(m.state[t + 1] == m.plant[t].next.score)
    return m


def _control_there() -> float:
    model = plant()
    m = _controls()
    m.plant = pyo.Block(range(STEPS))
    for t in range(STEPS):
        m.plant[t].net = _omlt(model, [(-2.0, 2.0), (-1.0, 1.0)])
        m.rows.add(m.plant[t].net.inputs[0] == m.state[t])
        m.rows.add(m.plant[t].net.inputs[1] == m.control[t])
        m.rows.add(m.state[t + 1] == m.plant[t].net.outputs[0])
    pyo.SolverFactory("appsi_highs").solve(m)
    return float(pyo.value(m.effort))


def _controls() -> Any:
    """Return the states and controls, the start and the goal."""
    m = pyo.ConcreteModel()
    m.state = pyo.Var(range(STEPS + 1), bounds=(-2, 2))
    m.control = pyo.Var(range(STEPS), bounds=(-1, 1))
    m.size = pyo.Var(range(STEPS), bounds=(0, 1))
    m.rows = pyo.ConstraintList()
    m.rows.add(m.state[0] == -0.5)
    m.rows.add(m.state[STEPS] >= 0.6 * GOAL)
    for t in range(STEPS):
        m.rows.add(m.size[t] >= m.control[t])
        m.rows.add(m.size[t] >= -m.control[t])
    m.effort = pyo.Objective(expr=sum((1 + 0.1 * t) * m.size[t] for t in range(STEPS)))
    return m


# ==== What the other libraries need ===================================================================================
def _gurobi() -> Any:
    import gurobipy as gp

    return gp.Env(params={"OutputFlag": 0, "Threads": 1, "TimeLimit": LIMIT_S})


def _omlt(network: Any, bounds: list[tuple[float, float]]) -> Any:
    """Return OMLT's block of a ReLU network in the big-M form."""
    from omlt import OmltBlock
    from omlt.neuralnet import NetworkDefinition, ReluBigMFormulation
    from omlt.neuralnet.layer import DenseLayer, InputLayer

    definition = NetworkDefinition(scaled_input_bounds=dict(enumerate(bounds)))
    layer: Any = InputLayer([len(bounds)])
    definition.add_layer(layer)
    activations = ["relu"] * (len(network.coefs_) - 1) + ["linear"]
    for weights, biases, activation in zip(network.coefs_, network.intercepts_, activations, strict=True):
        sizes = list(layer.output_size), [weights.shape[1]]
        dense = DenseLayer(*sizes, activation=activation, weights=weights, biases=biases)
        definition.add_layer(dense)
        definition.add_edge(layer, dense)
        layer = dense
    block = OmltBlock(concrete=True)
    block.build_formulation(ReluBigMFormulation(definition))
    return block


#: By name: whose notebook it is, the module that must be there, and the program here and there.
NOTEBOOKS: dict[str, tuple[str, str, Callable[[], Any], Callable[[], float]]] = {
    "prices": ("gurobi-machinelearning", "gurobi_ml", _prices_here, _prices_there),
    "enrolment": ("gurobi-machinelearning", "gurobi_ml", _enrolment_here, _enrolment_there),
    "attack": ("gurobi-machinelearning", "gurobi_ml", _attack_here, _attack_there),
    "surrogate": ("gurobi-machinelearning", "gurobi_ml", _surrogate_here, _surrogate_there),
    "wave": ("OMLT", "omlt", _wave_here, _wave_there),
    "control": ("OMLT", "omlt", _control_here, _control_there),
}


def measure(name: str) -> dict[str, Any]:
    """Return both optima of a notebook, and the seconds for stating and solving; models are fitted outside of them."""
    whose, module, here, there = NOTEBOOKS[name]
    began = time.perf_counter()
    result = solve(here(), time_limit_s=LIMIT_S)
    seconds = time.perf_counter() - began
    record = {"name": name, "whose": whose, "here": result.objective, "status": str(result.status), "seconds": seconds}
    record["solver"] = result.solver
    if importlib.util.find_spec(module) is not None:
        began = time.perf_counter()
        record["there"] = there()
        record["seconds_there"] = time.perf_counter() - began
    return record


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="nothing is written")
    options = parser.parse_args()
    records = [measure(name) for name in common.bar(NOTEBOOKS, len(NOTEBOOKS))]
    beside = common.installed(["gurobi-machinelearning", "gurobipy", "omlt"])
    common.report("notebooks", TITLE, MEASURES, text_of, {"beside": beside, "records": records}, quick=options.quick)


def text_of(record: dict[str, Any]) -> str:
    """Tabulate both optima."""
    lines = []
    same = 0
    compared = 0
    for one in record["records"]:
        there = "not installed"
        if "there" in one:
            compared += 1
            there = f"{one['there']:.6f}"
            same += abs(one["there"] - one["here"]) <= SAME * max(1.0, abs(one["here"]))
        lines.append([one["name"], one["whose"], there, f"{one['here']:.6f}", one["status"], one["solver"]])
    beside = ", ".join(f"{name} {version}" for name, version in record["beside"].items())
    return (
        f"Beside: {beside}. The optimum is the same within {SAME:g}, relatively, for {same} of {compared}. Both sides "
        "get the same fitted model and rows; the data of the notebooks, which are fetched there, are drawn in "
        "`benchmarks/notebooks.py`.\n\n"
        + common.markdown_table(["notebook", "of", "optimum there", "optimum here", "status", "solver"], lines)
    )


if __name__ == "__main__":
    main()
