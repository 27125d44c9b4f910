"""One way to choose whom to serve, once, in a process of its own: what ``several_people.py`` runs with each version."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import pyomo.environ as pyo
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt

PEOPLE, BUDGET, FAIR = 200, 20.0, 0.05
WHOLE_S = 60.0
TODAY, LOOP, COHORT, WHOLE = "solve_people", "0.2.0, explain for each", "0.2.0, Recourse", "one program of all"
MODELS = {
    "logistic": lambda: LogisticRegression(max_iter=1000),
    "boosting of 50": lambda: GradientBoostingClassifier(n_estimators=50, random_state=0),
}
TASKS = [(model, way) for model in MODELS for way in (TODAY, LOOP, COHORT, WHOLE)]


def question(name: str) -> tuple[Any, Any, Any]:
    """Return the fitted model, the people and the space."""
    book = ceopt.datasets.loans()
    numbers = make_column_selector(dtype_include="number")
    words = make_column_selector(dtype_exclude="number")
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), words))
    model = make_pipeline(encode, MODELS[name]()).fit(book.data, book.target)
    return model, book.data[model.predict(book.data) == "bad"].head(PEOPLE), book.space


def shared(m: Any, served: Any, people: Any) -> None:
    """Add the row of fairness, and the objective: as many people as the budget allows."""
    shares = []
    for _, group in people.groupby("sex"):
        shares.append(sum(served[i] for i in group.index) / len(group))
    m.fair = pyo.Constraint(expr=(-FAIR, shares[0] - shares[1], FAIR))
    m.most = pyo.Objective(expr=sum(served[i] for i in people.index), sense=pyo.maximize)


def of_all(model: Any, people: Any, space: Any) -> Any:
    """Return the model that holds the people, the budget and the row of fairness."""
    from ceopt.formulations import People, shared_budget  # 0.2.0 has neither

    m = pyo.ConcreteModel()
    m.people = People(model, people, space, target="good")
    m.budget = shared_budget(m.people, BUDGET)
    shared(m, m.people.served, people)
    return m


def knapsack(found: list[Any], people: Any) -> tuple[Any, Any]:
    """Choose among answers in hand; return the result, and the rows of those who are served."""
    by_label = dict(zip(people.index, found, strict=True))
    m = pyo.ConcreteModel()
    m.served = pyo.Var(list(people.index), domain=pyo.Binary)
    costs = {i: result[0].cost for i, result in by_label.items() if len(result)}
    for i in people.index:
        if i not in costs:
            m.served[i].fix(0)
    m.budget = pyo.Constraint(expr=sum(cost * m.served[i] for i, cost in costs.items()) <= BUDGET)
    shared(m, m.served, people)
    result = ceopt.solvers.solve(m)
    return result, [by_label[i][0].frame for i in people.index if (m.served[i].value or 0.0) > 0.5]


def ask(name: str, way: str) -> dict[str, Any]:
    """Return status, objective, bound and seconds of one way, from the fitted model to the answers in hand."""
    model, people, space = question(name)
    began, cpu_began = time.perf_counter(), time.process_time()
    if way == LOOP:
        result, rows = knapsack(
            [ceopt.explain(model, people.loc[[i]], space, target="good") for i in people.index], people
        )
    elif way == COHORT:
        cohort = ceopt.Recourse(model, space, target="good").fit(people).explain(people, progress=False)
        result, rows = knapsack(list(cohort), people)
    elif way == WHOLE:
        m = of_all(model, people, space)
        result = ceopt.solvers.solve(m, time_limit_s=WHOLE_S)
        served = [i for i in people.index if (m.people.served[i].value or 0.0) > 0.5] if result.solutions else []
        rows = [m.people.person[i].x.decode(result.solutions[0]).to_frame().T for i in served]
    else:
        result = ceopt.solve_people(of_all(model, people, space))
        frame = result.decode()
        rows = [frame[frame["served"]][list(space.names)]]
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    right = sum(int((model.predict(row.astype(people.dtypes)) == "good").sum()) for row in rows)
    return {
        "status": str(result.status),
        "objective": result.objective,
        "bound": result.bound,
        "right": right,
        "seconds": seconds,
        "cpu": cpu,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(ask(*sys.argv[1:3])))
