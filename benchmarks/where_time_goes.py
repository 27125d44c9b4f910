"""Where the processor's time of a call goes: a sampler looks at the stack every two milliseconds.

Where a solver runs on without Python for longer, the next sample counts for all of that time. It counts for the first
of the parts of ceopt below on the way out of the innermost frame, so that what NumPy, pandas or a solver do counts for
whoever asked them. Collection of garbage is clocked apart.
"""

from __future__ import annotations

import gc
import signal
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import common
import matplotlib.pyplot as plt
import numpy as np
from default_models import estimator
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import ceopt

TITLE = "Where the time of a call goes"
MEASURES = ("ceopt", "formulations", "solvers")

ROWS, LIMIT = 20, 30
EVERY_S = 0.002
ROOT = Path(__file__).resolve().parents[1]
#: What a file's or a folder's frames count for; the first that fits.
PARTS = {
    "oracle/model.py": "the model's own predict",
    "search/near_points.py": "near points",
    "search/near_people.py": "near points",
    "search/near_values.py": "near points",
    "search/nearer.py": "near points",
    "search/model_start.py": "near points",
    "predictors/cell_branching.py": "bounds and cells",
    "predictors/tree_bounds.py": "bounds and cells",
    "search/least_costs.py": "bounds and cells",
    "search/network_boxes.py": "bounds and cells",
    "predictors/readers": "reading",
    "search/read_once.py": "reading",
    "predictors/read_model.py": "reading",
    "formulations/recourse_program.py": "stating the program",
    "predictors/embed": "stating the program",
    "solvers/compile": "lowering it",
    "solvers": "the solver",
}
REST = "rows, checks, result"
ORDER = (*dict.fromkeys(PARTS.values()), "garbage", REST)
#: Data set, model, and whether a cohort is asked, or each person alone.
CASES = (
    ("german", "RandomForest", "alone"),
    ("adult", "RandomForest", "alone"),
    ("heloc", "RandomForest", "alone"),
    ("heloc", "RandomForest 100 x 5", "alone"),
    ("heloc", "XGBoost 100 x 3", "alone"),
    ("adult", "XGBoost", "alone"),
    ("adult", "XGBoost", "cohort"),
    ("german", "MLP 20 x 20", "alone"),
    ("german", "LogisticRegression", "alone"),
    ("german", "LogisticRegression", "cohort"),
)


class Sampler:
    """Clocks, while it runs, in which part the processor is."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.garbage = 0.0
        self._began = 0.0
        self._last = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Sample the enclosed block."""
        before = signal.signal(signal.SIGPROF, self._look)
        gc.callbacks.append(self._collecting)
        self._last = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            gc.callbacks.remove(self._collecting)
            signal.signal(signal.SIGPROF, before)

    def _look(self, signum: int, frame: FrameType | None) -> None:
        del signum
        now = time.process_time()
        spent, self._last = now - self._last, now
        while frame is not None and not part_of(frame.f_code.co_filename):
            frame = frame.f_back
        self.seconds[REST if frame is None else part_of(frame.f_code.co_filename)] += spent

    def _collecting(self, phase: str, info: dict[str, int]) -> None:
        del info
        if phase == "start":
            self._began = time.process_time()
        else:
            self.garbage += time.process_time() - self._began

    def shares(self, seconds: float) -> dict[str, float]:
        """Return the share of each part, of so many seconds of the processor."""
        garbage = self.garbage / seconds
        total = sum(self.seconds.values()) or 1.0
        found = {part: own / total * (1.0 - garbage) for part, own in self.seconds.items()}
        return {**found, "garbage": garbage}


_PARTS: dict[str, str] = {}


def part_of(file: str) -> str:
    """Return what a file's frames count for; nothing for what lies outside."""
    if file not in _PARTS:
        inside = file.removeprefix(str(ROOT)).removeprefix("/ceopt") if file.startswith(str(ROOT)) else ""
        _PARTS[file] = next((part for name, part in PARTS.items() if f"/{name}" in inside), "")
    return _PARTS[file]


def profile(data: str, name: str, way: str, rows: int) -> dict[str, Any]:
    """Ask about people, after a first one for whom the model is read."""
    task = common.load(data)
    network = MLPClassifier((20, 20), max_iter=1000, random_state=common.SEED)
    fresh = network if name == "MLP 20 x 20" else estimator(name)
    rest = StandardScaler() if name in {"MLP 20 x 20", "LogisticRegression"} else "passthrough"
    model = common.one_hot(task.train, fresh, rest).fit(task.train, task.labels)
    people = common.rejected(task, model, rows + 1)
    space = task.bunch.space
    ask: Callable[[Any], Any]
    if way == "cohort":
        ask = ceopt.Recourse(model, space, target=task.target, time_limit_s=LIMIT).fit(task.train).explain
    else:
        ask = partial(ceopt.explain, model, space=space, target=task.target, data=task.train, time_limit_s=LIMIT)
    ask(people.iloc[[-1]])
    sampler = Sampler()
    cpu = time.process_time()
    with sampler.running():
        parts = [people.iloc[:-1]] if way == "cohort" else [people.iloc[[k]] for k in range(len(people) - 1)]
        results = [ask(part) for part in parts]
    cpu = time.process_time() - cpu
    statuses = Counter(str(one.status) for result in results for one in (result if way == "cohort" else [result]))
    return {
        "data": data,
        "model": name,
        "way": way,
        "people": len(people) - 1,
        "cpu": cpu,
        "statuses": dict(statuses),
        "shares": sampler.shares(cpu),
    }


def text_of(record: dict[str, Any]) -> str:
    """Tabulate the shares."""
    about = (
        f"Up to {record['settings']['rows']} people whom a model refuses, each asked about by `explain`, or all as a "
        "cohort by `Recourse.explain`, after a first person, for whom the model is read. Seconds are those of the "
        "processor, of one thread, a person; the shares of a row add up to 100 %. *Bounds and cells* are proofs "
        "without a program, *near points* the search for cheap points, with the scores that it asks for."
    )
    head = ["data", "model", "asked", "ms a person", *(f"{part}, %" for part in ORDER)]
    rows = []
    for one in record["records"]:
        shares = [f"{100.0 * one['shares'].get(part, 0.0):.0f}" for part in ORDER]
        rows.append([one["data"], one["model"], one["way"], f"{1e3 * one['cpu'] / one['people']:.0f}", *shares])
    return f"{about}\n\n{common.markdown_table(head, rows)}\n\n![shares of the parts](where_time_goes.png)"


def draw(records: list[dict[str, Any]]) -> None:
    """Draw the shares, one bar a case."""
    names = [f"{one['model']}, {one['data']}, {one['way']}" for one in records]
    figure, axes = plt.subplots(figsize=(8.0, 0.4 * len(names) + 1.4), layout="constrained")
    left = np.zeros(len(records))
    for k, part in enumerate(ORDER):
        shares = np.array([100.0 * one["shares"].get(part, 0.0) for one in records])
        axes.barh(names, shares, left=left, label=part, color=plt.get_cmap("tab10")(k))
        left += shares
    axes.set(xlabel="share of the processor's time, %", xlim=(0.0, 100.0))
    axes.invert_yaxis()
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(common.RESULTS / "where_time_goes.png", dpi=150)
    plt.close(figure)


def main() -> None:
    """Profile, and write the report."""
    args = common.arguments(__doc__ or "", rows=ROWS)
    rows = 2 if args.quick else args.rows
    settings = {"rows": rows, "limit_s": LIMIT, "every_s": EVERY_S, "seed": common.SEED}
    asks = {"/".join(case): partial(profile, *case, rows) for case in CASES}
    told = (TITLE, MEASURES, text_of)
    common.asked_one_by_one("where_time_goes", settings, asks, told, quick=args.quick, draw=draw)


if __name__ == "__main__":
    with threadpool_limits(1):
        warnings.simplefilter("ignore")
        main()
