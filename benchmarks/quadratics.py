"""Squares and second-order cones: tangent cuts over HiGHS against SCIP, on programs that calls of the package state."""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import common
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations import programs
from ceopt.solvers import CompiledModel, ProblemClass, Solver, Status, compile_model, register, unregister
from ceopt.solvers.adapter import AbstractSession, RunResult, SolveRun
from ceopt.solvers.guarded_session import GuardedSession
from ceopt.solvers.registry import SOLVERS

sys.path.insert(0, str(common.ROOT / "tests"))  # the random questions are shared with benchmarks/questions.py

from judging.judge import ask
from judging.question import draw

TITLE = "Squares and cones: tangent cuts over HiGHS against SCIP"
MEASURES = (
    "solvers/outer_approximation.py",
    "solvers/tangent_cuts.py",
    "solvers/guarded_session.py",
    "solvers/scip.py",
    "solvers/trust.py",
)

OWN, GUARDED, BARE = "tangent cuts", "SCIP", "SCIP, bare"
WAYS = (OWN, GUARDED, BARE)
CLASSES = (ProblemClass.MIQP, ProblemClass.SOCP, ProblemClass.MISOCP)

#: Data of the questions: all kinds of models over the first, the linear one over columns that are all numbers. Where
#: there are no data, the loans that ceopt makes up.
MIXED, NUMBERS = ("german", "adult", "heloc", "gmsc"), ("diabetes", "no2", "spambase")
KINDS = ("logistic", "tree", "forest", "network")
#: Rows of a data set that models are made of, at most, and rows that a call is given.
ROWS, GIVEN = 4000, 1000
#: Random halves of the rows that the linear model is retrained on, for the moments of its parameters.
HALVES = 60
#: Random questions of linear models over columns of up to 1e9 steps, by their numbers in benchmarks/questions.py.
WIDE = range(2, 900, 3)
#: Seconds that a call may take while its programs are recorded.
RECORDED_S = 5
#: Relative gap that the programs of no call are solved to.
GAP = 1e-6
#: A point keeps a program up to this share of what a row adds up.
KEPT = 1e-6
#: One that disproves a claim keeps it up to this share of what the row adds up, however little that is.
EXACTLY, NOTHING = 1e-8, 1e-12
#: What one claim may differ from another, relatively, before a third solver is asked.
APART = 2e-6
#: The rule: how much slower SCIP may be at the median.
SLOWER = 2.0
#: Seconds of the third solver.
THIRD_S = 20


# ---- the programs ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Program:
    """A compiled program, what a call asked of its solver, and where it comes from."""

    compiled: CompiledModel
    start: dict[int, float]
    gap: float


class Recorder(AbstractSession):
    """Solves by the default solver, and keeps what it was given."""

    who = "Recorder"
    kept: list[Program] = []  # noqa: RUF012 - a list for all sessions, emptied by who reads it

    @property
    def version(self) -> str:
        """Return nothing: it is none of its own."""
        return ""

    def _open(self) -> None:
        self._inner = SOLVERS["highs"].session(self._compiled.problem_class)(self._compiled, options=self._options)

    def _run(self, search: SolveRun) -> RunResult:
        self.kept.append(Program(self._compiled, dict(search.start), search.relative_gap))
        found = self._inner.solve(
            time_limit_s=search.seconds_left, relative_gap=search.relative_gap, start=search.start or None
        )
        return RunResult(status=found.status, x=found.x, bound=found.bound, message=found.message)


RECORDER = Solver(
    name="recorder", library="highspy", distribution="highspy", extra="", supports=SOLVERS["highs"].classes,
    session=lambda _needed: Recorder, takes_start=True, certifies=True,
)  # fmt: skip


@dataclass(frozen=True)
class Book:
    """A data set, models of it, people whom the models reject, and moments of the parameters of the linear one."""

    name: str
    bunch: Any
    models: dict[str, Any]
    people: dict[str, pd.DataFrame]
    mean: np.ndarray
    covariance: np.ndarray

    @property
    def sign(self) -> float:
        """1 if a positive score of the linear model is favourable, else -1."""
        return 1.0 if self.models["logistic"].classes_[1] == self.bunch.favourable else -1.0

    def seen(self, rows: pd.DataFrame) -> np.ndarray:
        """Return what the linear model sees of rows, the 1 of its intercept last."""
        return np.column_stack([self.models["logistic"][:-1].transform(rows), np.ones(len(rows))])


def book(name: str, people: int, *, kinds: tuple[str, ...]) -> Book:
    """Load data, fit the models, retrain the linear one on halves, and draw people whom each of them rejects."""
    bunch = ceopt.datasets.loans(1000) if name == "loans" else ceopt.datasets.load(name)
    whole = bunch.data.notna().all(axis=1)
    rng = np.random.default_rng(common.SEED)
    order = rng.permutation(np.flatnonzero(whole))[:ROWS]
    cut = len(order) * 4 // 5
    train, labels, others = bunch.data.iloc[order[:cut]], bunch.target.iloc[order[:cut]], bunch.data.iloc[order[cut:]]
    estimators: dict[str, Any] = {
        "logistic": LogisticRegression(max_iter=5000),
        "tree": DecisionTreeClassifier(max_depth=6, random_state=common.SEED),
        "forest": RandomForestClassifier(20, max_depth=4, random_state=common.SEED, n_jobs=1),
        "network": MLPClassifier((8, 8), random_state=common.SEED, max_iter=400, early_stopping=True),
    }
    models, drawn = {}, {}
    for kind in kinds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models[kind] = make_pipeline(encoder(bunch.space), estimators[kind]).fit(train, labels)
        refused = others[models[kind].predict(others) != bunch.favourable]
        drawn[kind] = refused.iloc[:people]
    parameters = []
    X, y = models["logistic"][:-1].transform(train), np.asarray(labels)
    for _ in range(HALVES):
        half = rng.permutation(len(X))[: len(X) // 2]
        fitted = LogisticRegression(max_iter=5000).fit(X[half], y[half])
        parameters.append(np.append(fitted.coef_[0], fitted.intercept_))
    return Book(name, bunch, models, drawn, np.mean(parameters, axis=0), np.cov(np.array(parameters).T))


def encoder(space: Any) -> Any:
    """Return what makes numbers of the columns of a space."""
    numbers = [f.name for f in space if f.kind in {"continuous", "integer"}]
    ordinals = [f for f in space if f.kind == "ordinal"]
    levels = [f.name for f in space if f.kind in {"categorical", "binary"}]
    ranks = OrdinalEncoder(categories=[list(f.levels) for f in ordinals])
    parts: list[tuple[Any, list[str]]] = [(StandardScaler(), numbers)]
    if ordinals:
        parts.append((make_pipeline(ranks, StandardScaler()), [f.name for f in ordinals]))
    if levels:
        parts.append((OneHotEncoder(drop="if_binary", sparse_output=False, handle_unknown="ignore"), levels))
    return make_column_transformer(*parts)


def asked(given: Book) -> Iterator[tuple[str, Callable[[], list[Program]]]]:
    """Give the questions about each person by name: the programs that ``explain`` solves for them."""
    l2, l1 = ceopt.L2(), ceopt.L1()
    for kind, people in given.people.items():
        questions: dict[str, dict[str, Any]] = {
            "l2": {"cost": l2},
            "mahalanobis": {"cost": "mahalanobis"},
            "l2 and changes": {"cost": l2 + 0.1 * ceopt.Changes()},
            "mahalanobis and l1": {"cost": ceopt.Mahalanobis() + 0.5 * l1},
            "l2 hull": {"constraints": [ceopt.Hull(norm="l2", radius=0.1, sample=200)]},
            "l2 hull, clusters": {"constraints": [ceopt.Hull(norm="l2", radius=0.05, sample=200, clusters=3)]},
            "l2, apart": {"cost": l2, "n": 2, "diversity": ceopt.Apart(0.5)},
        }
        if kind == "logistic":
            for level, radius in ((0.6, 0.0), (0.8, 0.05), (0.95, 0.2)):
                rule = ceopt.RobustValidity(given.sign * given.mean, given.covariance, radius, level)
                questions[f"valid {level:g}, {radius:g}"] = {"constraints": [rule]}
            rule = ceopt.RobustValidity(given.sign * given.mean, given.covariance, 0.02, 0.7)
            questions["l2, valid 0.7"] = {"cost": l2, "constraints": [rule]}
        for place in range(len(people)):
            for question, words in questions.items():
                name = f"{given.name}/{kind}/{place}/{question}"
                yield name, partial(recorded, given, kind, people.iloc[[place]], words)


def recorded(given: Book, kind: str, row: pd.DataFrame, words: dict[str, Any]) -> list[Program]:
    """Return the largest program with squares or cones that ``explain`` solves for the question."""
    Recorder.kept.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ceopt.explain(
            given.models[kind], row, given.bunch.space, target=given.bunch.favourable, data=given.bunch.data[:GIVEN],
            solver="recorder", time_limit_s=RECORDED_S, why=False, **words,
        )  # fmt: skip
    return largest()


def largest() -> list[Program]:
    """Return the largest program with squares or cones that was recorded, if there is one."""
    kept = [program for program in Recorder.kept if program.compiled.problem_class in CLASSES]
    return sorted(kept, key=lambda program: sum(program.compiled.shape))[-1:]


def wide() -> Iterator[tuple[str, Callable[[], list[Program]]]]:
    """Give the random questions over wide columns whose cost is an l2 norm or its square, by their numbers."""
    for number in WIDE:
        question = draw("linear", number, seed=common.SEED, solvers=(RECORDER.name,) * 4)
        if question.word in {"l2", "l2_squared"}:
            yield f"wide/linear-{number}", partial(recorded_wide, question)


def recorded_wide(question: Any) -> list[Program]:
    """Return the largest program with squares that ``explain`` solves for a random question."""
    Recorder.kept.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ask(question)
    return largest()


def published(given: Book) -> Iterator[tuple[str, Callable[[], list[Program]]]]:
    """Give the published programs over what the linear model sees, by name."""
    logistic = given.models["logistic"]
    mean, covariance = given.sign * given.mean, given.covariance
    people = given.seen(given.people["logistic"])
    d = people.shape[1]
    groups = [columns for columns in groups_of(logistic) if len(columns) > 1]
    bounds = (np.append(np.full(d - 1, -4.0), 1.0), np.append(np.full(d - 1, 4.0), 1.0))
    for columns in groups:
        bounds[0][columns], bounds[1][columns] = 0.0, 1.0
    good = given.bunch.target == given.bunch.favourable
    X = given.seen(given.bunch.data[given.bunch.data.notna().all(axis=1)])[:, :-1]
    good = good[given.bunch.data.notna().all(axis=1)].to_numpy()
    moments = (X[~good].mean(axis=0), np.cov(X[~good].T), X[good].mean(axis=0), np.cov(X[good].T))
    ridge = 1e-3 * np.eye(d - 1)
    moments = (moments[0], moments[1] + ridge, moments[2], moments[3] + ridge)
    top = math.sqrt(float(mean @ np.linalg.lstsq(covariance + 1e-9 * np.eye(d), mean, rcond=None)[0]))
    coef, intercept = mean[:-1], float(mean[-1])
    made: dict[str, Callable[[], pyo.ConcreteModel]] = {}
    for place, person in enumerate(people):
        x = person[:-1]
        for share in (0.05, 0.2):
            words = {"radius": share * top, "margin": 0.1, "fixed": [d - 1], "bounds": bounds}
            made[f"{place}/plan alike {share}"] = partial(programs.copa_plan_alike, person, mean, covariance, **words)
            if groups:
                words = {**words, "groups": groups}
                name = f"{place}/plan alike {share}, levels"
                made[name] = partial(programs.copa_plan_alike, person, mean, covariance, **words)
        for radius in (0.05, 0.2):
            words = {"cost": "l2", "radius": radius, "lower": bounds[0][:-1], "upper": bounds[1][:-1]}
            made[f"{place}/projection {radius}"] = partial(programs.robust_projection, x, coef, intercept, **words)
        words = {"radius": 0.1, "norm": "l2", "loss": "hinge"}
        made[f"{place}/roar"] = partial(programs.roar, x, coef, intercept, **words)
        words = {"kappa": 1.0, "perturbation": 2.0, "radius": 0.05, "fixed": [d - 1]}
        made[f"{place}/improvement"] = partial(programs.robust_improvement, person, mean, covariance, **words)
        words = {"perturbation": 3.0, "fixed": [d - 1]}
        made[f"{place}/correction"] = partial(programs.mahalanobis_correction, person, mean, covariance, **words)
        made[f"{place}/upper bound"] = partial(
            programs.validity_upper_scalar, people[place : place + 1], mean, covariance, 0.05
        )
    for divergence, radius in (("nominal", (0.0, 0.0)), ("fisher_rao", (1.0, 0.2)), ("bures", (0.3, 0.1))):
        words = {"divergence": divergence, "radius": radius}
        made[f"machine, {divergence}"] = partial(programs.minimax_machine, *moments, **words)
    for name, make in made.items():
        yield f"{given.name}/{name}", partial(compiled_alone, make)


def compiled_alone(make: Callable[[], pyo.ConcreteModel]) -> list[Program]:
    """Return a published program as one, without a start."""
    model = make()
    compiled = compile_model(model)
    return [Program(compiled, {}, GAP)] if compiled.problem_class in CLASSES else []


def groups_of(logistic: Any) -> list[list[int]]:
    """Return the places of the columns of each category among those that the linear model sees."""
    columns = logistic[0]
    found = []
    for name, encode, _used in columns.transformers_:
        if isinstance(encode, OneHotEncoder):
            at = columns.output_indices_[name].start
            for levels, dropped in zip(encode.categories_, encode.drop_idx_, strict=True):
                width = len(levels) - (dropped is not None)
                found.append(list(range(at, at + width)))
                at += width
    return found


# ---- the ways --------------------------------------------------------------------------------------------------------
def solved(way: str, program: Program, limit_s: float) -> Any:
    """Return the outcome of one way."""
    words: dict[str, Any] = {"threads": 1, "random_state": 0, "options": {}}
    solver = SOLVERS["highs" if way == OWN else "scip"]
    if way == BARE:
        session = solver.session(program.compiled.problem_class)(program.compiled, **words)
    else:
        session = GuardedSession(solver, program.compiled, **words)
    return session.solve(time_limit_s=limit_s, relative_gap=program.gap, start=program.start or None)


def measured(way: str, program: Program, limit_s: float) -> tuple[Any, dict[str, Any]]:
    """Return the outcome of one way, and what is kept of it."""
    began, cpu = time.perf_counter(), time.process_time()
    try:
        outcome = solved(way, program, limit_s)
    except Exception as error:  # noqa: BLE001 - a bare session may raise what its library raises
        outcome = ceopt.solvers.Outcome(status=Status.ERROR, message=f"{type(error).__name__}: {error}")
    seconds = {"cpu": time.process_time() - cpu, "seconds": time.perf_counter() - began}
    return outcome, {
        "status": str(outcome.status), "objective": outcome.objective, "bound": outcome.bound, **seconds,
        "missed": missed(program.compiled, outcome.x), "message": outcome.message[:120],
    }  # fmt: skip


# ---- who is right ----------------------------------------------------------------------------------------------------
def missed(compiled: CompiledModel, x: Any, least: float = 1.0) -> float | None:
    """Return by what share of what it adds up, at least ``least``, a point misses the worst row.

    Pyomo evaluates the rows, at the point as it would be loaded: the solver's with its integers rounded.
    """
    if x is None:
        return None
    compiled.load(x)
    values = np.array([float(var.value) for var in compiled.columns])
    sizes = dict(zip(map(id, compiled.rows), abs(compiled.A) @ np.abs(values), strict=True))
    for row in compiled.quadratics:
        sizes[id(row.constraint)] = float(
            (abs(row.a) @ np.abs(values))[0] + np.abs(values) @ (abs(row.Q) @ np.abs(values))
        )
    for cone in compiled.cones:
        sizes[id(cone.constraint)] = float(np.abs(cone.entries(values)).max())
    worst = 0.0
    for row in compiled.columns[0].model().component_data_objects(pyo.Constraint, active=True):
        body = float(pyo.value(row.body))
        sides = [side - body for side in (pyo.value(row.lower),) if side is not None]
        sides += [body - side for side in (pyo.value(row.upper),) if side is not None]
        worst = max(worst, *(side / max(least, sizes.get(id(row), 1.0)) for side in sides))
    off = np.maximum(compiled.lb - values, values - compiled.ub) / np.maximum(1.0, np.abs(values))
    whole = np.abs(values - np.asarray(x)) / np.maximum(1.0, np.abs(values))
    return max(worst, float(off.max()), float(whole[compiled.integer].max(initial=0.0)))


def value_of(compiled: CompiledModel, x: Any) -> float:
    """Return the objective at a point, as Pyomo evaluates it."""
    compiled.load(x)
    (objective,) = compiled.columns[0].model().component_data_objects(pyo.Objective, active=True)
    return float(pyo.value(objective.expr))


def at_integers(compiled: CompiledModel, x: Any) -> Any:
    """Return Clarabel's outcome for the continuous part, with the integers as they are at a point."""
    held = compiled.extended()
    whole = np.round(np.asarray(x)[compiled.integer])
    held.lb[compiled.integer], held.ub[compiled.integer] = whole, whole
    held.integer = np.zeros_like(held.integer)
    solver = SOLVERS["clarabel"]
    return GuardedSession(solver, held, threads=1, random_state=0, options={}).solve(time_limit_s=THIRD_S)


def third(program: Program) -> dict[str, Any]:
    """Return the outcome of a third solver: Clarabel without integers, else Gurobi as far as its licence goes."""
    compiled = program.compiled
    name = "gurobi" if compiled.integer.any() else "clarabel"
    solver = SOLVERS[name]
    if not solver.is_licensed or solver.refusal(compiled):
        return {}
    session = GuardedSession(solver, compiled, threads=1, random_state=0, options={})
    return {name: session.solve(time_limit_s=THIRD_S, relative_gap=program.gap)}


def judged(program: Program, outcomes: dict[str, Any]) -> dict[str, str]:
    """Return what each way says that a point disproves; the points are those of all ways and of a third solver."""
    compiled = program.compiled
    known = outcomes | third(program)
    points = {name: each.x for name, each in known.items() if each.x is not None}
    wrong = {}
    for way, outcome in outcomes.items():
        own = missed(compiled, outcome.x)
        if own is not None and own > KEPT:
            wrong[way] = f"its point misses a row by {own:.1e}"
        for name, x in points.items():
            if name == way or way in wrong or not contradicts(compiled, outcome, value_of(compiled, x)):
                continue
            value = disproof(compiled, outcome, x)
            if value is not None:
                said = f"bound {outcome.bound:.8g}" if outcome.bound is not None else str(outcome.status)
                wrong[way] = f"{said}, {outcome.status}: {name} has {value:.8g}"
    return wrong


def disproof(compiled: CompiledModel, outcome: Any, x: Any) -> float | None:
    """Return the value by which a point, or Clarabel's for its integers, disproves what a way says; None if none does.

    It has to keep the program far better than solvers do: a point that leans on the tolerance of a row may be too
    cheap, and of a program that misses feasibility by 1e-8 both answers can be had.
    """
    for point in (x, at_integers(compiled, x).x):
        if point is not None and (missed(compiled, point, NOTHING) or 0.0) <= EXACTLY:
            value = value_of(compiled, point)
            if contradicts(compiled, outcome, value):
                return value
    return None


def contradicts(compiled: CompiledModel, outcome: Any, value: float) -> bool:
    """Tell whether a feasible point's value disproves what a way says."""
    if outcome.status is Status.INFEASIBLE:
        return True
    claims = [outcome.bound]
    if outcome.status is Status.OPTIMAL:
        claims.append(outcome.objective)
    size = max(abs(value), 1e-6)
    return any(claim is not None and compiled.sense * (claim - value) > APART * size for claim in claims)


# ---- the run ---------------------------------------------------------------------------------------------------------
def sources(options: Any) -> Iterator[tuple[str, Callable[[], list[Program]]]]:
    """Give all programs by name, made when they are called for."""
    if options.quick:
        loans = book("loans", 1, kinds=("logistic",))
        yield from [*published(loans)][:4]
        yield from [*asked(loans)][:4]
        yield from [*wide()][:2]
        return
    has_data = (common.ROOT.parent / "shared" / "data" / "schema.json").is_file() or "CEOPT_DATA" in os.environ
    names = (*MIXED, *NUMBERS) if has_data else ("loans",)
    if has_data:
        common.data_folder()
    for name in names:
        given = book(name, options.people, kinds=("logistic",) if name in NUMBERS else KINDS)
        yield from published(given)
        yield from asked(given)
    yield from wide()


def main() -> None:
    """Solve every program every way, in turns, judge what is said, and write the report."""
    options = common.arguments("Tangent cuts over HiGHS against SCIP.", people=1, limit=20)
    settings = {"people": options.people, "limit_s": options.limit, "seed": common.SEED}
    journal = common.Journal("quadratics-quick" if options.quick else "quadratics", settings)
    register(RECORDER)
    warm_up(options.limit)
    for place, (name, make) in enumerate(common.bar(sources(options), 0)):
        if name in journal.done:
            continue
        for program in make():
            journal.add(name, one(program, place, options.limit))
    unregister(RECORDER.name)
    write(journal, settings, quick=options.quick)


def warm_up(limit_s: float) -> None:
    """Import what the first call would pay for."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    model.cost = pyo.Objective(expr=(model.x - 2.3) ** 2)
    program = Program(compile_model(model), {}, GAP)
    judged(program, {way: solved(way, program, limit_s) for way in WAYS})


def one(program: Program, place: int, limit_s: float) -> dict[str, Any]:
    """Return what each way makes of a program, and who is wrong."""
    compiled = program.compiled
    outcomes, found = {}, {}
    for way in common.rotated(list(WAYS), place):
        outcomes[way], found[way] = measured(way, program, limit_s)
    wrong = judged(program, outcomes)
    rows, columns, quadratics, cones = compiled.shape
    size = {"variables": columns, "integers": int(compiled.integer.sum()), "rows": rows, "cones": cones + quadratics}
    ways = {way: found[way] | {"wrong": wrong.get(way, "")} for way in WAYS}
    return {"class": str(compiled.problem_class), "size": size, "start": bool(program.start), **ways}


def write(journal: common.Journal, settings: dict[str, Any], *, quick: bool) -> None:
    """Keep what was found."""
    record = {
        "libraries": common.installed(["pyscipopt", "clarabel", "gurobipy"]),
        "settings": settings,
        "records": journal.records,
    }
    common.report("quadratics", TITLE, MEASURES, text_of, record, quick=quick)
    journal.close()


# ---- the page --------------------------------------------------------------------------------------------------------
def is_proved(found: dict[str, Any]) -> bool:
    """Tell whether a way ended with a proof that nothing disproves."""
    return found["status"] in {Status.OPTIMAL, Status.INFEASIBLE} and not found["wrong"]


def seconds_of(found: dict[str, Any], limit_s: float) -> float:
    """Return the CPU seconds of a way, at least the limit where it ended without a proof."""
    return max(found["cpu"], limit_s) if not is_proved(found) else max(found["cpu"], 1e-3)


def totals(records: list[dict[str, Any]], way: str, limit_s: float) -> dict[str, Any]:
    """Return what one way came to beside the tangent cuts."""
    own = np.array([seconds_of(r[OWN], limit_s) for r in records])
    his = np.array([seconds_of(r[way], limit_s) for r in records])
    ratios = his / own
    return {
        "programs": len(records),
        "proved": sum(is_proved(r[way]) for r in records),
        "wrong": sum(bool(r[way]["wrong"]) for r in records),
        "median": float(np.median(ratios)),
        "most": float(np.quantile(ratios, 0.9)),
        "cpu": sum(r[way]["cpu"] for r in records),
        "times": [r[way]["cpu"] for r in records],
    }


def against(records: list[dict[str, Any]], way: str, limit_s: float) -> list[str]:
    """Return why a way does not keep the rule by which it would replace the tangent cuts; nothing where it does."""
    his, own = totals(records, way, limit_s), totals(records, OWN, limit_s)
    reasons = []
    if his["median"] > SLOWER:
        reasons.append(f"it takes {his['median']:.1f} times the CPU time at the median")
    if his["proved"] < own["proved"]:
        reasons.append(f"it proves {his['proved']} programs and the tangent cuts {own['proved']}")
    if his["wrong"]:
        reasons.append(f"it is wrong on {his['wrong']}")
    return reasons


def verdict(records: list[dict[str, Any]], way: str, limit_s: float) -> str:
    """Return one sentence: whether a way keeps the rule."""
    reasons = against(records, way, limit_s)
    if reasons:
        return f"{way} does not keep the rule: {', and '.join(reasons)}."
    his, own = totals(records, way, limit_s), totals(records, OWN, limit_s)
    return (
        f"{way} keeps the rule: {his['median']:.2f} times the CPU time at the median, {his['proved']} programs proved "
        f"against {own['proved']}, and never wrong."
    )


def decision(records: list[dict[str, Any]], limit_s: float) -> str:
    """Return one sentence: what the rule comes to, where SCIP as the package runs it leans on the tangent cuts."""
    if not against(records, BARE, limit_s):
        return "SCIP replaces the tangent cuts."
    return (
        "So the tangent cuts stay: without them there is SCIP alone, for its second run where a quadratic objective "
        "stands beside integers is theirs."
    )


def text_of(record: dict[str, Any]) -> str:
    """Summarise by class and by source, list what is wrong, and say who keeps the rule."""
    records, limit_s = record["records"], record["settings"]["limit_s"]
    parts = {"all": records}
    for kind in CLASSES:
        parts[str(kind)] = [r for r in records if r["class"] == kind]
    for r in records:
        parts.setdefault(source_of(r), []).append(r)
    lines = []
    for part, of in parts.items():
        for way in WAYS if of else ():
            total = totals(of, way, limit_s)
            ratio = ["-", "-"] if way == OWN else [f"{total['median']:.2f}", f"{total['most']:.2f}"]
            statuses = ", ".join(f"{s} {n}" for s, n in Counter(r[way]["status"] for r in of).most_common())
            lines.append(
                [part, len(of), way, total["proved"], total["wrong"], statuses, *ratio,
                 common.spread(total["times"], 2), f"{total['cpu']:.0f}"]
            )  # fmt: skip
    wrong = [[r["key"], r["class"], way, r[way]["wrong"]] for r in records for way in WAYS if r[way]["wrong"]]
    open_ = [
        [r["key"], r["class"], "/".join(str(n) for n in r["size"].values()), *(said(r[way]) for way in WAYS)]
        for r in records
        if not all(is_proved(r[way]) for way in WAYS)
    ]
    sizes = np.array([list(r["size"].values()) for r in records])
    middle, most = ("/".join(f"{n:.0f}" for n in size) for size in (np.median(sizes, axis=0), sizes.max(axis=0)))
    verdicts = [verdict(records, way, limit_s) for way in (GUARDED, BARE)]
    by_class = [
        f"{part}: {verdict(of, way, limit_s)}" for part, of in parts.items() if of and part in CLASSES
        for way in (GUARDED, BARE)
    ]  # fmt: skip
    false = "Nothing is wrong."
    if wrong:
        false = "Wrong:\n\n" + common.markdown_table(["program", "class", "way", "what it says, and what is so"], wrong)
    libraries = ", ".join(f"{name} {number}" for name, number in record["libraries"].items())
    return (
        f"{len(records)} programs (variables/integers/rows/cones: median {middle}, greatest {most}), each solved in "
        f'turns by *{OWN}* (what solver "highs" does), by *{GUARDED}* as the package runs it (those with a quadratic '
        "objective beside integers are solved by the tangent cuts too, and what both say is held against each other), "
        f"and by *{BARE}*, the same adapter alone; {limit_s} s, one thread, with the gap and the start that the call "
        f"gave ({libraries}). The programs are the largest with squares or cones of each call of `explain` (costs l2, "
        "Mahalanobis, both in sums as cones; hulls in l2; `RobustValidity`; `Apart`) for a logistic model, a tree, a "
        f"forest and a network on {', '.join(MIXED)}, and for a logistic model on {', '.join(NUMBERS)}; published "
        "programs over the same people (plans, projections, ROAR, corrections, bounds, minimax machines); and, as "
        "*wide*, random questions over columns of up to 1e9 steps.\n\n"
        "A claim is *wrong* where a point disproves it: of any way, or of a third solver (Clarabel without integers, "
        "Gurobi as far as its licence goes). The point, or Clarabel's for its integers, is loaded and "
        f"evaluated by Pyomo, and counts if it keeps every row to {EXACTLY:g} of what the row adds up; {APART:g} "
        "relatively are nobody's fault. Wrong is also a point that misses "
        f"a row by more than {KEPT:g} of its size. *Proved* is optimal or infeasible, and not wrong. Ratios are CPU "
        "seconds over those of the tangent cuts, program by program; what ends without a proof counts with the limit "
        "at least. The limit is one of wall time: a busy machine leaves fewer CPU seconds, to all ways alike.\n\n"
        f"The rule: SCIP replaces the tangent cuts if it takes at most {SLOWER:g} times the CPU time at the median, "
        f"proves no fewer and is never wrong. **{' '.join(verdicts)} {decision(records, limit_s)}**\n\n"
        + "\n".join(f"- {sentence}" for sentence in by_class)
        + "\n\n"
        + common.markdown_table(
            ["programs", "number", "way", "proved", "wrong", "statuses", "ratio: median", "90 %",
             "CPU seconds: median / 90 % / worst", "sum"], lines)
        + f"\n\n{false}"
        + "\n\nWithout a proof by somebody (objective, bound, CPU seconds):\n\n"
        + common.markdown_table(["program", "class", "variables/integers/rows/cones", *WAYS], open_)
    )  # fmt: skip


def source_of(record: dict[str, Any]) -> str:
    """Return where a program comes from."""
    first, second, *_ = record["key"].split("/")
    if first == "wide":
        return "wide questions"
    return "calls of explain" if second in KINDS else "published programs"


def said(found: dict[str, Any]) -> str:
    """Return a way's outcome in a few words."""
    numbers = [f"{value:.6g}" for value in (found["objective"], found["bound"]) if value is not None]
    return ", ".join([found["status"] + " (wrong)" * bool(found["wrong"]), *numbers, f"{found['cpu']:.1f} s"])


if __name__ == "__main__":
    main()
