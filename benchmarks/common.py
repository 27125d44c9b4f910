"""What the benchmarks share: data, models, rejected people, a journal that survives an interruption, and the report."""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import provenance
import records
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tqdm import tqdm

import ceopt.search.solve_program
from ceopt.datasets import Bunch

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DATA_SETS = ("german", "adult", "compas", "heloc")
SEED = 0

MODELS: dict[str, Any] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "svm": lambda: LinearSVC(random_state=SEED, max_iter=20_000),
    "tree": lambda: DecisionTreeClassifier(max_depth=8, random_state=SEED),
    "forest": lambda: RandomForestClassifier(n_estimators=100, max_depth=6, random_state=SEED, n_jobs=1),
    "forest5": lambda: RandomForestClassifier(n_estimators=100, max_depth=5, random_state=SEED, n_jobs=1),
}


# ---- data and models -------------------------------------------------------------------------------------------------
def data_folder() -> Path:
    """Return the folder of real data, or leave with a sentence."""
    folder = Path(os.environ.get("CEOPT_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / "schema.json").is_file():
        sys.exit("The benchmarks need the real data. Set CEOPT_DATA to the folder that holds schema.json.")
    os.environ["CEOPT_DATA"] = str(folder)
    return folder


def schema_of(name: str) -> dict[str, dict[str, Any]]:
    """Return what the data's own schema says of each feature, read without ceopt."""
    entry = json.loads((data_folder() / "schema.json").read_text(encoding="utf-8"))["datasets"][name]
    return {column["name"]: column for column in entry["features"] if "role" not in column}


@dataclass(frozen=True, slots=True)
class Task:
    """A data set, its training part, and the part that people are drawn from."""

    bunch: Bunch
    train: pd.DataFrame
    labels: pd.Series[Any]
    others: pd.DataFrame

    @property
    def target(self) -> int:
        """The favourable label, as the models know it."""
        return int(self.bunch.favourable)


def load(name: str) -> Task:
    """Load a data set; its published split where there is one, else 7 : 3 by a fixed seed."""
    data_folder()
    bunch = ceopt.datasets.load(name)
    if bunch.split is not None:
        part = bunch.split == "train"
        return Task(bunch, bunch.data[part], bunch.target[part], bunch.data[~part])
    train, others, labels, _ = train_test_split(bunch.data, bunch.target, test_size=0.3, random_state=SEED)
    return Task(bunch, train, labels, others)


def as_amounts(task: Task) -> Task:
    """Return the task with codes of a column as amounts and levels like the others, which is how a peer has them."""
    schema = schema_of(task.bunch.name)
    features = [
        replace(feature, codes=(), code_labels=(), lower=schema[feature.name].get("lower", feature.lower))
        for feature in task.bunch.space
    ]
    return replace(task, bunch=replace(task.bunch, space=ceopt.FeatureSpace(features)))


def groups_of(name: str) -> dict[str, list[str]]:
    """Return the columns of a data set by how the pipelines encode them."""
    groups: dict[str, list[str]] = {"one_hot": [], "ranked": [], "number": []}
    for feature, column in schema_of(name).items():
        text = any(isinstance(level, str) for level in column.get("levels", ()))
        ranked = column["kind"] == "ordinal" and text
        one_hot = column["kind"] == "categorical" or (column["kind"] == "binary" and text)
        groups["ranked" if ranked else "one_hot" if one_hot else "number"].append(feature)
    return groups


def fit(task: Task, model: str | Any) -> Pipeline:
    """Fit a pipeline: one-hot categories, ordered text by rank, numbers scaled; of ``MODELS`` or another."""
    schema, groups = schema_of(task.bunch.name), groups_of(task.bunch.name)
    levels = [schema[name]["levels"] for name in groups["ranked"]]
    columns = ColumnTransformer(
        [
            ("one_hot", OneHotEncoder(handle_unknown="ignore", sparse_output=False), groups["one_hot"]),
            ("ranked", make_pipeline(OrdinalEncoder(categories=levels), StandardScaler()), groups["ranked"]),
            ("number", StandardScaler(), groups["number"]),
        ]
    )
    estimator = MODELS[model]() if isinstance(model, str) else model
    return make_pipeline(columns, estimator).fit(task.train, task.labels)


def one_hot(train: pd.DataFrame, estimator: Any, rest: Any = "passthrough") -> Pipeline:
    """Return a pipeline that is not fitted yet: text one-hot, the other columns as they are or through ``rest``."""
    words = [name for name in train if not pd.api.types.is_numeric_dtype(train[name])]
    takes_sparse = not isinstance(estimator, HistGradientBoostingClassifier)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=takes_sparse)
    encode = make_column_transformer((encoder, words), remainder=rest)
    return make_pipeline(encode, estimator)


def rejected(task: Task, model: Any, rows: int, seed: int = SEED) -> pd.DataFrame:
    """Draw people whom the model refuses, of those it was not trained on where there are enough."""
    for pool in (task.others, task.bunch.data):
        refused = pool[model.predict(pool) != task.target]
        if len(refused) >= rows:
            break
    chosen = np.random.default_rng(seed).choice(len(refused), min(rows, len(refused)), replace=False)
    return refused.iloc[np.sort(chosen)]


# ---- measuring -------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def sizes() -> Iterator[list[dict[str, int]]]:
    """Note the size of every program that ceopt compiles on the way."""
    seen: list[dict[str, int]] = []
    compile_model = ceopt.search.solve_program.compile_model

    def noted(model: Any, *args: Any) -> Any:
        compiled = compile_model(model, *args)
        seen.append(size_of(compiled))
        return compiled

    ceopt.search.solve_program.compile_model = noted  # type: ignore[attr-defined]
    try:
        yield seen
    finally:
        ceopt.search.solve_program.compile_model = compile_model  # type: ignore[attr-defined]


def size_of(compiled: Any) -> dict[str, int]:
    """Return variables, binaries and rows of a compiled program."""
    binary = compiled.integer & (compiled.lb >= 0) & (compiled.ub <= 1)
    return {"variables": len(compiled.columns), "binaries": int(binary.sum()), "rows": len(compiled.rows)}


@contextlib.contextmanager
def clocked(owner: Any, method: str) -> Iterator[dict[str, float]]:
    """Add up the wall and CPU seconds that are spent in a method, calls within calls once."""
    spent, depth = {"wall": 0.0, "cpu": 0.0}, [0]
    original = getattr(owner, method)

    def noted(*args: Any, **words: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        depth[0] += 1
        try:
            return original(*args, **words)
        finally:
            depth[0] -= 1
            if not depth[0]:
                spent["wall"] += time.perf_counter() - wall
                spent["cpu"] += time.process_time() - cpu

    setattr(owner, method, noted)
    try:
        yield spent
    finally:
        setattr(owner, method, original)


def spread(seconds: Sequence[float], digits: int = 3) -> str:
    """Return "median / 90 % / worst"."""
    if not len(seconds):
        return "-"
    return " / ".join(f"{np.quantile(seconds, share):.{digits}f}" for share in (0.5, 0.9, 1.0))


def timed(ask: Callable[[], dict[str, Any]], limit_s: float) -> dict[str, Any]:
    """Return the record with wall and CPU seconds; a time-out counts as the limit."""
    began, cpu = time.perf_counter(), time.process_time()
    record = ask()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    proved = record["status"] in {"optimal", "infeasible"}
    seconds = seconds if proved else max(seconds, limit_s)
    return record | {"seconds": seconds, "cpu": cpu_seconds, "timed_out": not proved}


def rotated(ways: list[str], place: int) -> list[str]:
    """Begin with another way at each row, so that none always runs on a warm or a busy machine."""
    return ways[place % len(ways) :] + ways[: place % len(ways)]


def ratios(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], what: str) -> dict[str, float]:
    """Return how many times less the first needed: by medians, by sums, and the median over rows."""
    a, b = (np.array([r[what] for r in sorted(part, key=lambda r: r["row"])]) for part in (ours, theirs))
    return {
        "medians": float(np.median(b) / np.median(a)),
        "sums": float(b.sum() / a.sum()),
        "median": float(np.median(b / a)),
    }


def disagreement(records: list[dict[str, Any]]) -> float:
    """Return the greatest relative difference of proved and valid optima of the same row."""
    worst = 0.0
    for row in {r["row"] for r in records}:
        costs = [r["cost"] for r in records if r["row"] == row and r["status"] == "optimal" and not r.get("invalid")]
        if costs:
            worst = max(worst, (max(costs) - min(costs)) / max(1e-12, *costs))
    return worst


# ---- journal ---------------------------------------------------------------------------------------------------------
class Journal:
    """Results kept line by line as they come; a run with the same settings goes on where the last one stopped."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.path = RESULTS / f"{name}.partial.jsonl"
        header = json.dumps({"settings": settings, "versions": versions()}, sort_keys=True)
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        if not lines or lines[0] != header:
            lines = [header]
            RESULTS.mkdir(exist_ok=True)
            self.path.write_text(header + "\n", encoding="utf-8")
        self.records: list[dict[str, Any]] = [json.loads(line) for line in lines[1:]]
        self.done = {record["key"] for record in self.records}

    def add(self, key: str, record: dict[str, Any]) -> None:
        """Keep one result."""
        record = {"key": key, **record}
        self.records.append(record)
        self.done.add(key)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def close(self) -> None:
        """Remove the journal, once its results are in the report."""
        self.path.unlink(missing_ok=True)


# ---- reports ---------------------------------------------------------------------------------------------------------
def arguments(description: str, **numbers: int) -> argparse.Namespace:
    """Read the command line; a ``--quick`` run writes nothing over the kept results."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    parser.add_argument("--quick", action="store_true", help="a few rows, to see that it runs")
    parser.add_argument("--all", action="store_true", help="further formulations too, where there are some")
    return parser.parse_args()


def asked_one_by_one(
    name: str,
    settings: dict[str, Any],
    asks: Mapping[str, Callable[[], dict[str, Any]]],
    told: tuple[str, Sequence[str], Callable[[dict[str, Any]], str]],
    *,
    quick: bool,
    own: Collection[str] | None = None,
    so_far: bool = False,
    draw: Callable[[list[dict[str, Any]]], None] | None = None,
) -> None:
    """Ask each question that an earlier run with the same settings did not, and report on all.

    ``told``: title, measures and text of :func:`report`. A quick run writes and draws nothing; one that reports ``so
    far`` asks nothing, and its record says what is missing. Only its ``own`` questions are asked by a run beside which
    others share the journal.
    """
    kept = f"{name}-quick" if quick else name
    journal = Journal(kept, settings)
    left = [] if so_far else [key for key in (asks if own is None else own) if key not in journal.done]
    for key in bar(left, len(left)):
        journal.add(key, asks[key]())
    journal = Journal(kept, settings)  # with what others asked
    by_key = {record["key"]: record for record in journal.records}
    records = [by_key[key] for key in asks if key in by_key]
    missing = [key for key in asks if key not in by_key]
    report(name, *told, {"settings": settings, "missing": missing, "records": records}, quick=quick)
    if draw is not None and not quick:
        draw(records)
    if quick or not missing:
        journal.close()


def not_asked_yet(record: Mapping[str, Any]) -> list[str]:
    """Return the line that says what an interrupted run has not asked; none where it asked all."""
    missing = record.get("missing")
    return [f"Not asked yet: {', '.join(missing)}."] if missing else []


def bar(items: Iterable[Any], total: int) -> Any:
    """Show progress on standard error."""
    return tqdm(items, total=total, unit="row", file=sys.stderr)


def seconds_of_predict(model: Any, people: pd.DataFrame) -> float:
    """Return what one ``predict`` of one row takes of the processor, the median of nine."""
    predicted = []
    for _ in range(9):
        began = time.process_time()
        model.predict(people.iloc[[0]])
        predicted.append(time.process_time() - began)
    return float(np.median(predicted))


def in_own_process(script: str, words: Sequence[str], checkout: Path) -> dict[str, Any]:
    """Run a script beside this one in a process of its own, with the ceopt of a checkout; return the JSON it prints."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name(script)), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


class Asked:
    """A script beside this one in a process of its own, with the ceopt of a checkout; it is asked in lines of JSON.

    It begins by a line about itself, ``told``, and answers a line to each that it reads.
    """

    def __init__(self, script: str, words: Sequence[str], checkout: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(Path(__file__).with_name(script)), *words]
        self.script = script
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.told: dict[str, Any] = self.read()

    def read(self) -> dict[str, Any]:
        """Return the next line that it writes."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            sys.exit(f"The process of {self.script} ended.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, *what: Any) -> dict[str, Any]:
        """Write a line, and return the answer."""
        if self.process.stdin:
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
        return self.read()


@contextlib.contextmanager
def asked(script: str, words: Sequence[str], checkout: Path) -> Iterator[Asked]:
    """Keep a process for as long as it is asked."""
    one = Asked(script, words, checkout)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()


def versions() -> dict[str, str]:
    """Return the versions that decide the numbers."""
    packages = ("ceopt", "pyomo", "highspy", "scikit-learn", "numpy", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def installed(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are there."""
    found = {}
    for name in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def machine() -> dict[str, Any]:
    """Return cores and memory, and how busy the machine is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cores": os.cpu_count(), "memory_gib": round(memory, 1), "load": round(os.getloadavg()[0], 1)}


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join(lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows])


def page(title: str, text_of: Callable[[dict[str, Any]], str], record: dict[str, Any]) -> str:
    """Return the page of a record: how it was made, and what the benchmark has to say of it."""
    rig = record["machine"]
    libraries = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
    about = (
        f"`{record['command']}`, {record['date']}, {rig['cores']} cores (load {rig['load']}), {rig['memory_gib']} GiB; "
        f"{libraries}."
    )
    parts = [f"# {title}", about, provenance.text_of(record), text_of(record)]
    return "\n\n".join(filter(None, parts)) + "\n"


def report(
    name: str,
    title: str,
    measures: Sequence[str],
    text_of: Callable[[dict[str, Any]], str],
    record: dict[str, Any],
    *,
    quick: bool,
) -> None:
    """Print the page of a record and write both, with what is needed to repeat it; the page is made of what is kept.

    ``measures`` names the modules whose change makes the result old.
    """
    head = {
        "command": "python " + shlex.join([f"benchmarks/{name}.py", *sys.argv[1:]]),
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions(),
        **provenance.source(measures),
    }
    record = records.kept({**head, **record})
    text = page(title, text_of, record)
    print(text)
    if quick:
        print("A quick run: nothing is written.")
        return
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    records.write(RESULTS / f"{name}.json", record)
