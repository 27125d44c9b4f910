"""What it costs that an answer survives the next retraining: cost against level, and whether it then does survive.

A linear classifier is fitted on four fifths of German credit, and again on random halves of them: the mean and the
covariance of the parameters. Twenty rejected people of the last fifth are asked what to change so that the model's
successor is favourable with at least a probability (``ceopt.RobustValidity``), whole numbers, steps and levels as the
data have them. Other halves give the models that the answers then meet. Set CEOPT_DATA to the folder of data; without
it, the loans that ceopt makes up take its place.

Run: python benchmarks/robust_validity.py [--fast] [--out FOLDER] [--solver NAME]
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
import numpy as np
import provenance
import records
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from tqdm import tqdm

import ceopt

TITLE = "What robust validity costs"
MEASURES = ("ceopt/search", "formulations/constraints/robust_validity.py")
LEVELS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
RADII = (0.0, 0.1)


@dataclass(frozen=True)
class Scale:
    """How much is done: levels, radii, people, and retrained models (as many again to meet the answers)."""

    levels: tuple[float, ...] = LEVELS
    radii: tuple[float, ...] = RADII
    people: int = 20
    models: int = 200
    time_limit_s: float = 30.0


FAST = Scale(levels=(0.0, 0.5, 0.9), radii=(0.0, 0.1), people=3, models=20, time_limit_s=10.0)


@dataclass(frozen=True)
class Asked:
    """One question and its answer: cost is infinite where it is proved that there is none."""

    radius: float
    level: float
    person: int
    status: str
    cost: float
    gap: float
    bound: float
    validity: float
    seconds: float


@dataclass(frozen=True)
class Study:
    """A classifier, moments of its parameters, other parameters drawn alike, and the people it rejects."""

    title: str
    space: ceopt.FeatureSpace
    model: Any
    target: Any
    mean: np.ndarray
    covariance: np.ndarray
    successors: np.ndarray
    people: Any

    def seen(self, frame: Any) -> np.ndarray:
        """Return what the classifier sees of rows, the 1 of its intercept last: (n, m + 1)."""
        return np.column_stack([self.model[:-1].transform(frame), np.ones(len(frame))])


# ---- what is asked ---------------------------------------------------------------------------------------------------
def study(scale: Scale, *, german: bool) -> Study:
    """Fit the classifier, retrain it on halves, and pick the people."""
    book = ceopt.datasets.load("german") if german else ceopt.datasets.loans(600)
    target = 1 if german else "good"
    kinds = {kind: [f.name for f in book.space if f.kind in kind.split()] for kind in ("continuous integer", "ordinal")}
    levels = [f.name for f in book.space if f.kind in {"categorical", "binary"}]
    ranks = OrdinalEncoder(categories=[list(book.space[name].levels) for name in kinds["ordinal"]])
    encode = make_column_transformer(
        (StandardScaler(), kinds["continuous integer"]),
        (make_pipeline(ranks, StandardScaler()), kinds["ordinal"]),
        (OneHotEncoder(drop="if_binary", sparse_output=False), levels),
    )
    rng = np.random.default_rng(0)
    order = rng.permutation(len(book.data))
    cut = len(order) * 4 // 5
    data, decided, later = book.data.iloc[order[:cut]], book.target.iloc[order[:cut]], book.data.iloc[order[cut:]]
    model = make_pipeline(encode, LogisticRegression(max_iter=5_000)).fit(data, decided)
    X, y = model[:-1].transform(data), np.asarray(decided)
    parameters = np.array([retrained(X, y, rng) for _ in range(2 * scale.models)])
    known, successors = parameters[: scale.models], parameters[scale.models :]
    rejected = later[model.predict(later) != target].iloc[: scale.people]
    title = "German credit" if german else "Loans"
    return Study(title, book.space, model, target, known.mean(axis=0), np.cov(known.T), successors, rejected)


def retrained(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return coefficients and intercept of the classifier on a random half of the rows."""
    half = rng.permutation(len(X))[: len(X) // 2]
    fitted = LogisticRegression(max_iter=5_000).fit(X[half], y[half])
    return np.append(fitted.coef_[0], fitted.intercept_)


def ask(given: Study, person: int, radius: float, level: float, *, solver: str, time_limit_s: float) -> Asked:
    """Ask about one person."""
    rule = ceopt.RobustValidity(given.mean, given.covariance, radius, level, model=given.model)
    began = time.perf_counter()
    found = ceopt.explain(
        given.model,
        given.people.iloc[[person]],
        given.space,
        target=given.target,
        constraints=[rule],
        solver=solver,
        time_limit_s=time_limit_s,
    )
    seconds = time.perf_counter() - began
    if not len(found):
        cost = np.inf if found.status == "infeasible" else np.nan
        return Asked(radius, level, person, found.status.value, cost, np.nan, np.nan, np.nan, seconds)
    answer = found[0]
    favourable = given.successors @ given.seen(answer.frame)[0] > 0.0
    bound = rule.bound(given.space, given.space.row(answer.frame))
    status, gap = found.status.value, float(answer.gap)
    return Asked(radius, level, person, status, answer.cost, gap, bound, float(favourable.mean()), seconds)


# ---- what is told ----------------------------------------------------------------------------------------------------
HEAD = (
    "radius", "level", "answered", "no answer", "lower quartile", "median cost", "upper quartile", "lower bound, mean",
    "validity, mean", "validity, least", "seconds, median",
)  # fmt: skip


def quartiles(asked: list[Asked]) -> np.ndarray:
    """Return the quartiles of the cost over people, one without an answer counting as infinite."""
    costs = [each.cost for each in asked if not np.isnan(each.cost)]
    return np.quantile(costs, (0.25, 0.5, 0.75), method="inverted_cdf") if costs else np.full(3, np.nan)


def table(done: list[Asked]) -> str:
    """Return a row for each radius and level."""
    rows = []
    for radius, level in dict.fromkeys((each.radius, each.level) for each in done):
        asked = [each for each in done if (each.radius, each.level) == (radius, level)]
        answered = [each for each in asked if np.isfinite(each.cost)]
        none = sum(np.isinf(each.cost) for each in asked)
        costs = [f"{cost:.3f}" if np.isfinite(cost) else "none" for cost in quartiles(asked)]
        shares = [np.array([getattr(each, word) for each in answered]) for word in ("bound", "validity")]
        told = [shares[0].mean(), shares[1].mean(), shares[1].min()] if answered else []
        texts = [f"{share:.3f}" for share in told] or ["-"] * 3
        rows.append((f"{radius:g}", f"{level:g}", len(answered), none, *costs, *texts,
                     f"{np.median([each.seconds for each in asked]):.2f}"))  # fmt: skip
    return common.markdown_table(HEAD, rows)


def draw(given: Study, done: list[Asked], path: Path) -> bool:
    """Draw cost against level, and the share of retrained models that the answers survive."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print('The figure needs matplotlib: pip install ".[plot]".')
        return False
    figure = Figure(figsize=(10, 4), layout="constrained")
    costs, survives = figure.subplots(1, 2)
    radii = list(dict.fromkeys(each.radius for each in done))
    levels = list(dict.fromkeys(each.level for each in done))
    places = np.arange(len(levels), dtype=float)
    for radius, colour in zip(radii, ("#1b6ca8", "#d1495b", "#6a994e", "#8d6a9f"), strict=False):
        groups = [[each for each in done if (each.radius, each.level) == (radius, level)] for level in levels]
        low, middle, high = np.array([quartiles(group) for group in groups]).T
        low, middle, high = (np.where(np.isfinite(part), part, np.nan) for part in (low, middle, high))
        costs.plot(places, middle, "o-", color=colour, ms=4, label=f"radius {radius:g}")
        costs.fill_between(places, low, np.where(np.isnan(high), middle, high), color=colour, alpha=0.15, lw=0)
        kept = [[each.validity for each in group if np.isfinite(each.cost)] for group in groups]
        survives.plot(places, [np.mean(part) if part else np.nan for part in kept], "o-", color=colour, ms=4)
        survives.plot(places, [min(part) if part else np.nan for part in kept], "v:", color=colour, ms=4)
    survives.plot(places, levels, "k--", lw=1)
    survives.plot([], [], "ko-", ms=4, label="mean over people")
    survives.plot([], [], "kv:", ms=4, label="least over people")
    survives.plot([], [], "k--", lw=1, label="the level asked for")
    costs.set(ylabel="cost (l1 by median absolute deviation)", title="median and quartiles over people")
    survives.set(ylabel="share of retrained models that are favourable", title="empirical validity", ylim=(-0.03, 1.03))
    for ax in (costs, survives):
        ax.set_xticks(places, [f"{level:g}" for level in levels])
        ax.set_xlabel("level: least probability asked for (0: none)")
        ax.grid(lw=0.4, color="0.85")
        ax.legend(frameon=False, fontsize=8)
    figure.suptitle(f"{given.title}: what robust validity costs")
    figure.savefig(path, dpi=150)
    return True


def text_of(record: dict[str, Any]) -> str:
    """Return table and words."""
    given = record["study"]
    done = [answered(row) for row in record["answers"]]
    about = (
        f"{given['title']}: {given['people']} rejected people, a logistic regression of {given['parameters']} "
        f"parameters, {given['models']} times retrained on random halves of the training part for the moments and "
        f"{given['models']} times for the validity. The mean parameters have length {given['length']:.2f}, and their "
        f"deviations {given['deviations']:.2f} "
        "together: a radius counts in the same unit. Costs are l1 by the median absolute deviation of the data. A "
        "person without an answer counts as infinitely dear in the quartiles; that there is none is proved. The lower "
        "bound is the probability that holds for all parameters within the radius of the moments, at the answer."
    )
    late = sum(np.isnan(each.cost) or (np.isfinite(each.cost) and each.status != "optimal") for each in done)
    ended = f"{len(done)} questions; {late} ended without a proof." if late else f"{len(done)} questions, all proved."
    return f"{about}\n\n{table(done)}\n\n{ended}"


def page(record: dict[str, Any]) -> str:
    """Return what is written: how it was made, the figure, the text."""
    shown = "\n\n![Cost against level](robust_validity.png)" if record["figure"] else ""
    made = f"`{record['command']}`, {record['about']}, solver {record['solver']}."
    parts = [f"# {TITLE}", f"{made}{shown}", provenance.text_of(record), text_of(record)]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_row(each: Asked) -> dict[str, Any]:
    """Return an answer as it is kept: JSON has no infinity."""
    row = asdict(each)
    for name in ("cost", "gap", "bound", "validity"):
        if not np.isfinite(row[name]):
            row[name] = None
    return row


def answered(row: dict[str, Any]) -> Asked:
    """Return what was kept as an answer again; the status says what a missing cost is."""
    numbers = {name: np.nan if row[name] is None else row[name] for name in ("cost", "gap", "bound", "validity")}
    if row["cost"] is None and row["status"] == "infeasible":
        numbers["cost"] = np.inf
    return Asked(**{**row, **numbers})


def main(*, fast: bool, out: Path | None, solver: str) -> None:
    """Ask, print, and write where a folder is given."""
    has_data = (Path(os.environ.get("CEOPT_DATA", "")) / "schema.json").is_file()
    if not has_data:
        print("CEOPT_DATA names no folder of data: the people are of the loans that ceopt makes up.")
    run(FAST if fast else Scale(), german=has_data and not fast, quiet=fast, out=out, solver=solver)


def run(scale: Scale, *, german: bool, quiet: bool, out: Path | None, solver: str) -> None:
    """Ask all questions of a scale."""
    given = study(scale, german=german)
    todo = [(r, level, p) for r in scale.radii for level in scale.levels for p in range(len(given.people))]
    done = [
        ask(given, person, radius, level, solver=solver, time_limit_s=scale.time_limit_s)
        for radius, level, person in tqdm(todo, unit="question", file=sys.stderr, disable=quiet)
    ]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    record = records.kept(
        {
            "command": "python benchmarks/robust_validity.py " + " ".join(sys.argv[1:]),
            "about": f"{dt.datetime.now(tz=dt.UTC).date()}, python {platform.python_version()}, "
            f"ceopt {version('ceopt')}",
            **provenance.source(MEASURES),
            "solver": solver,
            "figure": out is not None and draw(given, done, out / "robust_validity.png"),
            "study": {
                "title": given.title,
                "people": len(given.people),
                "parameters": len(given.mean),
                "models": scale.models,
                "length": float(np.linalg.norm(given.mean)),
                "deviations": float(np.sqrt(np.trace(given.covariance))),
            },
            "answers": [as_row(each) for each in done],
        }
    )
    print(text_of(record))
    if out is not None:
        (out / "robust_validity.md").write_text(page(record), encoding="utf-8")
        records.write(out / "robust_validity.json", record)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fast", action="store_true", help="three people of made-up loans, nothing else needed")
    parser.add_argument("--out", type=Path, help="write table, figure and numbers to this folder")
    parser.add_argument("--solver", default="auto", help="auto, highs, scip or gurobi")
    options = parser.parse_args()
    main(fast=options.fast, out=options.out, solver=options.solver)
