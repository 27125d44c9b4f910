"""The optimum, against brute force: small random ensembles and networks over mixed columns, by three formulations."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import common
import numpy as np
import pandas as pd
from question import Choice, Number, Question
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt

TITLE = "Optimality against brute force"
MEASURES = ("ceopt/search", "formulations/predictors", "formulations/columns")

TREES, NETWORKS = ("ordered", "misic", "leaf"), ("bigm", "partition", "extended")
COSTS = ("l1", "l0", "linf", "l2_squared")
SCHOOLS = ["none", "school", "college", "doctor"]
NUMBERS = ("income", "debt")
TOLERANCE = 1e-6


def people(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw rows with a column of every kind."""
    return pd.DataFrame(
        {
            "income": rng.gamma(2.0, 20.0, n),
            "debt": rng.normal(0.0, 3.0, n),
            "children": rng.integers(0, 6, n),
            "school": rng.choice(SCHOOLS, n),
            "town": rng.choice(["north", "south", "west"], n),
            "member": rng.choice([False, True], n),
        }
    )


def case(seed: int) -> tuple[ceopt.FeatureSpace, Pipeline, pd.DataFrame, Any, str]:
    """Return a random space, a fitted pipeline, a row, a target that the row misses, and a cost."""
    rng = np.random.default_rng(seed)
    data = people(rng, 250)
    schooling = data["school"].map(SCHOOLS.index).to_numpy()
    score = (
        rng.normal() * np.sin(data["income"] / 15) + rng.normal() * data["debt"] / 3
        + rng.normal() * data["children"] / 3 + rng.normal() * schooling
        + rng.normal() * (data["town"] == "west") + rng.normal() * data["member"]
        + rng.normal(0, 0.5, len(data))
    )  # fmt: skip
    classes = 2 if rng.uniform() < 0.7 else 3
    labels = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    space = ceopt.FeatureSpace.infer(data, ordinal={"school": SCHOOLS})
    for name in space.names:
        if rng.uniform() < 0.12:
            space = space.update(name, mutable=False)
        elif name != "town" and rng.uniform() < 0.2:
            space = space.update(name, direction=str(rng.choice(["increasing", "decreasing"])))
        if rng.uniform() < 0.3:
            space = space.update(name, weight=float(rng.uniform(0.5, 2.0)))
    numbers = "passthrough" if rng.uniform() < 0.5 else StandardScaler()
    columns = ColumnTransformer(
        [
            ("numbers", numbers, [*NUMBERS, "children"]),
            ("school", OrdinalEncoder(categories=[SCHOOLS]), ["school"]),
            ("town", OneHotEncoder(sparse_output=False), ["town"]),
        ],
        remainder="passthrough",
    )
    model = make_pipeline(columns, estimator(rng)).fit(data, labels)
    predicted = model.predict(data)
    target = int(rng.choice([label for label in model.classes_ if (predicted != label).any()]))
    refused = np.flatnonzero(predicted != target)
    row = data.iloc[[int(rng.choice(refused))]]
    cost = str(rng.choice(COSTS, p=[0.55, 0.15, 0.15, 0.15]))
    return space, model, row, target, "l1" if isinstance(model[-1], MLPClassifier) else cost


def estimator(rng: np.random.Generator) -> Any:
    """Return a small model of a random kind, not yet fitted."""
    import lightgbm
    import xgboost

    state, trees = int(rng.integers(1 << 30)), int(rng.integers(2, 6))
    widths = [int(width) for width in rng.integers(2, 4, size=int(rng.integers(1, 3)))]
    kinds = [
        DecisionTreeClassifier(max_depth=4, random_state=state),
        RandomForestClassifier(n_estimators=trees, max_depth=3, random_state=state),
        ExtraTreesClassifier(n_estimators=trees, max_depth=3, random_state=state),
        GradientBoostingClassifier(n_estimators=trees, max_depth=3, learning_rate=0.5, random_state=state),
        HistGradientBoostingClassifier(max_iter=trees, max_leaf_nodes=6, learning_rate=0.5, random_state=state),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=trees, random_state=state),
        xgboost.XGBClassifier(n_estimators=trees, max_depth=3, n_jobs=1, random_state=state),
        lightgbm.LGBMClassifier(
            n_estimators=trees, num_leaves=6, learning_rate=0.5, n_jobs=1, random_state=state, verbose=-1
        ),
        MLPClassifier(widths, max_iter=60, learning_rate_init=0.03, random_state=state),
    ]
    return kinds[int(rng.integers(len(kinds)))]


# ---- brute force over cells of trees, from the model's own transform and predict -------------------------------------
def brute_force(
    space: ceopt.FeatureSpace, model: Pipeline, row: pd.DataFrame, target: Any, *, cost: str, margin: float
) -> tuple[float | None, int]:
    """Return the least cost over one value per cell of each column, the nearest to the row, and how many were tried."""
    choices = [_choices(space, model, row, name) for name in space.names]
    grid = pd.DataFrame(list(itertools.product(*choices)), columns=space.names).astype(row.dtypes.to_dict())
    good = (model.predict(grid) == target) & (_slack(model, grid, target) >= margin - 1e-12)
    if not good.any():
        return None, len(grid)
    return float(_costs(space, row, grid[good], cost).min()), len(grid)


def _slack(model: Pipeline, grid: pd.DataFrame, target: Any) -> np.ndarray:
    """Return by how much the model's own scores decide for the target, negative where they do not, (n,)."""
    scores, place = _scores(model, grid), list(model.classes_).index(target)
    if scores.ndim == 1:
        return scores if place else -scores
    rivals = np.delete(scores, place, axis=1).max(axis=1)
    # A forest of two classes: P(target) - 0.5; several: best in the target minus best outside.
    halved = scores.shape[1] == 2
    return (scores[:, place] - rivals) * (0.5 if halved else 1.0)


def _scores(model: Pipeline, grid: pd.DataFrame) -> np.ndarray:
    """Return what the margin is counted in: decision values of boosters, (n,) or (n, K), shares of forests, (n, K)."""
    match type(model[-1]).__name__:
        case "XGBClassifier":
            return np.asarray(model.predict(grid, output_margin=True), dtype=float)
        case "LGBMClassifier":
            return np.asarray(model.predict(grid, raw_score=True))
        case name if "Boost" in name:
            return np.asarray(model.decision_function(grid))
    return np.asarray(model.predict_proba(grid))


def _choices(space: ceopt.FeatureSpace, model: Pipeline, row: pd.DataFrame, name: str) -> list[Any]:
    feature, home = space[name], row[name].iloc[0]
    if not feature.mutable:
        return [home]
    if name not in NUMBERS:
        values = list(feature.levels) if feature.levels else list(range(int(feature.lower), int(feature.upper) + 1))
        place = values.index(home)
        return {"any": values, "increasing": values[place:], "decreasing": values[: place + 1]}[feature.direction]
    values = [home]
    for left, right in _ends(model, row, name, feature.lower, feature.upper):
        value = left if home > left else right
        if feature.direction == "any" or (value > home) == (feature.direction == "increasing"):
            values.append(value)
    return values


def _ends(model: Pipeline, row: pd.DataFrame, name: str, lower: float, upper: float) -> list[tuple[float, float]]:
    """Return the values left and right of each threshold on a numeric column, by bisection of the transform."""
    column = NUMBERS.index(name)
    cuts, width, strict = _cuts(model[-1], column)

    def goes_left(values: np.ndarray) -> np.ndarray:
        tried = pd.concat([row] * len(values), ignore_index=True)
        tried[name] = values
        seen = model[:-1].transform(tried)[:, column].astype(width).astype(np.float64)
        return seen < cuts if strict else seen <= cuts

    low, high = np.full(len(cuts), lower), np.full(len(cuts), upper)
    inside = goes_left(low) & ~goes_left(high) if len(cuts) else np.zeros(0, dtype=bool)
    for _ in range(60):
        middle = low + (high - low) / 2
        left = goes_left(middle) if len(cuts) else inside
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return list(zip(low[inside].tolist(), high[inside].tolist(), strict=True))


def _cuts(model: Any, column: int) -> tuple[np.ndarray, str, bool]:
    """Return the thresholds on a column, the width that the library compares in, and whether it splits by <."""
    match type(model).__name__:
        case "XGBClassifier":
            content = json.loads(model.get_booster().save_raw("json"))
            pairs = [
                (feature, float(np.float32(value)))
                for tree in content["learner"]["gradient_booster"]["model"]["trees"]
                for feature, value, child in zip(
                    tree["split_indices"], tree["split_conditions"], tree["left_children"], strict=True
                )
                if child >= 0
            ]
            return _of_column(pairs, column), "float32", True
        case "LGBMClassifier":
            table = model.booster_.trees_to_dataframe().dropna(subset="split_feature")
            names = model.booster_.feature_name()
            pairs = [(names.index(f), t) for f, t in zip(table["split_feature"], table["threshold"], strict=True)]
            return _of_column(pairs, column), "float64", False
        case "HistGradientBoostingClassifier":
            nodes = np.concatenate([tree.nodes for trees in model._predictors for tree in trees])  # noqa: SLF001
            inner = nodes[nodes["is_leaf"] == 0]
            return _of_column(zip(inner["feature_idx"], inner["num_threshold"], strict=True), column), "float64", False
    trees = np.ravel(getattr(model, "estimators_", [model]))
    pairs = [pair for tree in trees for pair in zip(tree.tree_.feature, tree.tree_.threshold, strict=True)]
    return _of_column(pairs, column), "float32", False


def _of_column(pairs: Iterable[tuple[int, float]], column: int) -> np.ndarray:
    return np.unique([float(value) for feature, value in pairs if feature == column])


def _costs(space: ceopt.FeatureSpace, row: pd.DataFrame, grid: pd.DataFrame, cost: str) -> np.ndarray:
    moves = []
    for feature in space:
        home, values = row[feature.name].iloc[0], grid[feature.name]
        if feature.kind == "ordinal":
            move = (values.map(feature.levels.index) - feature.levels.index(home)).abs() / (len(feature.levels) - 1)
        elif feature.levels:
            move = (values != home).astype(float)
        else:
            move = (values - home).abs() / feature.scale("mad")
        moves.append(feature.weight * ((move > 0) if cost == "l0" else move).to_numpy(dtype=float))
    table = np.array(moves)
    return {"l1": table.sum(0), "l0": table.sum(0), "linf": table.max(0), "l2_squared": (table**2).sum(0)}[cost]


# ---- every activation pattern of a network ---------------------------------------------------------------------------
def every_pattern(
    space: ceopt.FeatureSpace, model: Pipeline, row: pd.DataFrame, target: Any, *, margin: float
) -> tuple[float | None, int]:
    """Return the least l1 cost over all activation patterns, one linear network and one program each, and their number.

    No pattern is left out by bounds and no neuron has a big-M: what a pattern fixes, rows state.
    """
    network, program = model[-1], _Program.of(_question(space, model, row))
    widths = [len(b) for b in network.intercepts_[:-1]]
    least = math.inf
    for pattern in itertools.product((False, True), repeat=sum(widths)):
        on = np.split(np.array(pattern), np.cumsum(widths)[:-1])
        a, b = program.slope, program.home  # what reaches the layer: a @ variables + b
        signs = []
        for weights, biases, active in zip(network.coefs_, network.intercepts_, [*on, None], strict=True):
            a, b = weights.T @ a, weights.T @ b + biases
            if active is not None:
                side = np.where(active, 1.0, -1.0)
                signs.append(LinearConstraint(side[:, None] * a, -side * b, np.inf))
                a, b = a * active[:, None], b * active
        wanted = _beats(list(model.classes_).index(target), len(b))
        signs.append(LinearConstraint(wanted @ a, margin - wanted @ b, np.inf))
        found = milp(
            program.cost,
            integrality=program.integrality,
            bounds=program.bounds,
            constraints=[program.one_level, *signs],
        )
        if found.success:
            least = min(least, float(found.fun))
    return (None if least == math.inf else least), 2 ** sum(widths)


@dataclass(frozen=True, slots=True)
class _Program:
    """Variables of a question without the model: two moves >= 0 per number, a binary per level.

    ``codes = slope @ variables + home``; ``one_level`` states that a column has one level.
    """

    slope: np.ndarray
    home: np.ndarray
    cost: list[float]
    bounds: Bounds
    integrality: list[int]
    one_level: LinearConstraint

    @classmethod
    def of(cls, question: Question) -> _Program:
        columns: list[np.ndarray] = []
        cost: list[float] = []
        upper: list[float] = []
        groups: list[range] = []
        for part in question.parts:
            if isinstance(part, Choice):
                groups.append(range(len(cost), len(cost) + len(part.values)))
                columns += [
                    _column(len(question.codes), {code: change[k] for code, change in part.codes.items()})
                    for k in range(len(part.values))
                ]
                cost += part.costs
                upper += [1.0] * len(part.values)
            else:
                for sign, room in ((1.0, part.upper - part.home), (-1.0, part.home - part.lower)):
                    columns.append(_column(len(question.codes), {c: sign * slope for c, slope in part.slope.items()}))
                    cost.append(1.0 / part.scale)
                    upper.append(room)
        members = np.array([[float(k in group) for k in range(len(cost))] for group in groups])
        return cls(
            np.array(columns).T,
            question.codes,
            cost,
            Bounds(0.0, upper),
            [int(any(k in group for group in groups)) for k in range(len(cost))],
            LinearConstraint(members.reshape(len(groups), len(cost)), 1.0, 1.0),
        )


def _column(size: int, entries: Mapping[int, float]) -> np.ndarray:
    column = np.zeros(size)
    column[list(entries)] = list(entries.values())
    return column


def _beats(place: int, n_scores: int) -> np.ndarray:
    """Return the rows whose products with the scores must reach the margin: one score's sign, else every rival's."""
    if n_scores == 1:
        return np.array([[1.0 if place else -1.0]])
    return np.delete(np.eye(n_scores)[place] - np.eye(n_scores), place, axis=0)


def _question(space: ceopt.FeatureSpace, model: Pipeline, row: pd.DataFrame) -> Question:
    encoder = model[:-1]
    parts: list[Number | Choice] = []
    for feature in space:
        name, home = feature.name, row[feature.name].iloc[0]
        if not feature.mutable:
            continue
        if name in NUMBERS:
            lower = home if feature.direction == "increasing" else feature.lower
            upper = home if feature.direction == "decreasing" else feature.upper
            if lower < upper:
                scale = feature.scale("mad") / feature.weight
                parts.append(Number.of(encoder, row, name, lower=lower, upper=upper, integer=False, scale=scale))
            continue
        values = _choices(space, model, row, name)
        grid = pd.concat([row] * len(values), ignore_index=True).assign(**{name: values})
        parts.append(Choice.of(encoder, row, name, values, _costs(space, row, grid, "l1").tolist()))
    return Question(row, parts, np.asarray(encoder.transform(row), dtype=float)[0], 1, 0.0)


# ---- comparison ------------------------------------------------------------------------------------------------------
def one(seed: int) -> dict[str, Any]:
    """Solve a case by each formulation and by brute force."""
    space, model, row, target, cost = case(seed)
    found: dict[str, Any] = {}
    margin = 0.0
    is_network = isinstance(model[-1], MLPClassifier)
    for formulation in NETWORKS if is_network else TREES:
        if cost == "l2_squared" and formulation != "ordered":
            continue  # a squared coordinate beside integers is an MIQP, which HiGHS does not take
        result = ceopt.explain(model, row, space, target=target, cost=cost, formulation=formulation)
        found[formulation] = {"status": str(result.status), "cost": result[0].cost if len(result) else None}
        margin = 0.0  # without a program the model itself decides
        if result.proof == "program":
            margin = result.margin or 0.0
    if is_network:
        least, tried = every_pattern(space, model, row, target, margin=margin)
    else:
        least, tried = brute_force(space, model, row, target, cost=cost, margin=margin)
    wanted = "infeasible" if least is None else "optimal"
    wrong = [name for name, got in found.items() if got["status"] != wanted]
    costs = [got["cost"] for got in found.values() if got["cost"] is not None]
    apart = [abs(cost_found - least) / least for cost_found in costs if least]
    return {
        "kind": type(model[-1]).__name__,
        "classes": len(model.classes_),
        "cost": cost,
        "tried": tried,
        "least": least,
        "found": found,
        "wrong_status": wrong,
        "difference": max(apart, default=0.0),
    }


def main() -> None:
    """Compare on all cases and write the report."""
    options = common.arguments("Optimality against brute force.", rows=300)
    cases = 10 if options.quick else options.rows
    settings = {"cases": cases, "libraries": common.installed(("xgboost", "lightgbm"))}
    journal = common.Journal("optimality-quick" if options.quick else "optimality", settings)
    for seed in common.bar(range(cases), cases):
        if str(seed) not in journal.done:
            journal.add(str(seed), one(seed))
    write(journal, settings, quick=options.quick)


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Count, and keep what was found."""
    records = journal.records
    totals = {
        "cases": len(records),
        "comparisons": sum(len(r["found"]) for r in records),
        "points_and_patterns_tried": sum(r["tried"] for r in records),
        "statuses": dict(Counter(got["status"] for r in records for got in r["found"].values())),
        "wrong_statuses": sum(len(r["wrong_status"]) for r in records),
        "differences_beyond_1e-6": sum(r["difference"] > TOLERANCE for r in records),
        "greatest_relative_difference": max(r["difference"] for r in records),
    }
    record = {"settings": settings, "totals": totals, "records": records}
    common.report("optimality", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


def text_of(record: dict[str, Any]) -> str:
    """Summarise by kind of model and cost."""
    records = record["records"]
    lines = []
    for kind, cost in itertools.product(sorted({r["kind"] for r in records}), COSTS):
        part = [r for r in records if (r["kind"], r["cost"]) == (kind, cost)]
        if part:
            solved = sum(r["least"] is not None for r in part)
            worst = max(r["difference"] for r in part)
            wrong = sum(bool(r["wrong_status"]) for r in part)
            lines.append([kind, cost, len(part), solved, len(part) - solved, sum(len(r["found"]) for r in part), wrong,
                          f"{worst:.1e}"])  # fmt: skip
    return (
        "Random small models of two or three classes over six columns (two continuous, integer, ordinal, categorical, "
        "binary; some fixed, some one-way, some weighted), numbers raw or scaled. Trees: brute force tries every "
        "combination of one value per cell of each column, with the pipeline's own transform and scores, at the same "
        "margin. Networks: every activation pattern, a program of its own without bounds and big-M. Compared with it "
        "is the answer by each of the three formulations of trees (squared l2: the default only) or of networks.\n\n"
        + common.markdown_table(
            ["model", "cost", "cases", "feasible", "infeasible", "comparisons", "wrong statuses",
             "greatest relative difference"], lines)
        + "\n\n"
        + "\n".join(f"- {key.replace('_', ' ')}: {value}" for key, value in record["totals"].items())
        + "\n\nVersions: "
        + ", ".join(f"{name} {version}" for name, version in record["settings"]["libraries"].items())
        + "."
    )  # fmt: skip


if __name__ == "__main__":
    main()
