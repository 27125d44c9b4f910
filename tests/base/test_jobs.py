"""Several processes: every backend gives the same cohort, and one that is killed loses nobody else's answer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib.parallel import ThreadingBackend, register_parallel_backend
from killing import Deadly, deadly_task
from sklearn.linear_model import LogisticRegression

import ceopt.base.parallel
from ceopt import FeatureSpace, Recourse
from ceopt.base import parallel as parents
from ceopt.base.parallel import Lost, completed
from ceopt.plans import bootstrap_moments
from ceopt.solvers.errors import CeoptError, InvalidTypeError

ROWS = pd.DataFrame({"income": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "debt": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]})


def fitted(data):
    wanted = np.where(data["income"] - 2 * data["debt"] > 20, "good", "bad")
    return LogisticRegression(max_iter=1000).fit(data, wanted)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    columns = {"income": rng.integers(0, 50, 200), "debt": rng.integers(0, 9, 200)}
    return pd.DataFrame(columns).astype(float)


@pytest.mark.long
def test_a_killed_process_loses_one_row_and_resume_asks_for_that_one_alone(data, tmp_path):
    model, log = fitted(data), tmp_path / "log"
    space = FeatureSpace.infer(data)
    alone = Recourse(model, space, target="good").fit(data).explain(ROWS).to_frame()
    model.predict = Deadly(model.predict, (3.0,), log)
    recourse = Recourse(model, space, target="good").fit(data)

    cohort = recourse.explain(ROWS, n_jobs=2)

    assert cohort.finished == (True, True, False, True, True, True)
    assert cohort.counts() == {"optimal": 5, "error": 1}
    reason = cohort.failures()["reason"].item()
    assert "SIGKILL" in reason
    assert "Pass this cohort as resume" in reason
    model.predict.deadly = ()
    log.write_text("")
    again = recourse.explain(ROWS, resume=cohort)
    assert again.counts() == {"optimal": 6}
    assert all(new is old for new, old in zip(again, cohort, strict=True) if old is not cohort[2])
    asked = {line for line in log.read_text().splitlines() if line in {f"[{income}]" for income in ROWS["income"]}}
    assert asked == {"[3.0]"}
    pd.testing.assert_frame_equal(again.to_frame(), alone)


@pytest.mark.long(every=4)
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing", "sequential"])
def test_every_backend_gives_the_same_cohort(data, backend, capsys):
    recourse = Recourse(fitted(data), FeatureSpace.infer(data), target="good").fit(data)
    alone = recourse.explain(ROWS).to_frame()

    with joblib.parallel_config(backend=backend):
        together = recourse.explain(ROWS, n_jobs=2, progress=True)

    pd.testing.assert_frame_equal(together.to_frame(), alone, check_exact=True)
    assert "6/6" in capsys.readouterr().err


def test_a_backend_that_gives_lists_only_works_round_by_round(data):
    class Lists(ThreadingBackend):
        supports_return_generator = False

    register_parallel_backend("lists", Lists)
    recourse = Recourse(fitted(data), FeatureSpace.infer(data), target="good").fit(data)

    with joblib.parallel_config(backend="lists"):
        together = recourse.explain(ROWS, n_jobs=2).to_frame()

    pd.testing.assert_frame_equal(together, recourse.explain(ROWS).to_frame(), check_exact=True)


def test_a_model_that_cannot_be_sent_is_refused(data):
    model = fitted(data)
    model.lock = threading.Lock()
    recourse = Recourse(model, FeatureSpace.infer(data), target="good").fit(data)

    with pytest.raises(InvalidTypeError, match=r"Recourse\.explain needs .* n_jobs is not 1, .*lock.*n_jobs=1"):
        recourse.explain(ROWS, n_jobs=2)
    assert recourse.explain(ROWS).counts() == {"optimal": 6}


def test_what_dies_alone_is_lost_and_after_some_in_a_row_the_rest_is_not_tried(monkeypatch):
    """The rounds without processes: the test below has them."""

    def breaks(work, arguments, places, n_jobs, started, *, one_by_one):
        started.append(places[0])
        raise RuntimeError
        yield

    monkeypatch.setattr(ceopt.base.parallel, "_parallel", breaks)
    monkeypatch.setattr(ceopt.base.parallel, "_MOST_IN_A_ROW", 2)

    found = dict(completed("test", deadly_task, lambda k: (k, os.getpid()), count=5, n_jobs=2))

    assert sorted(found) == [0, 1, 2, 3, 4]
    assert [found[k].reason.partition(" ")[0] for k in range(5)] == ["The", "The", "Not", "Not", "Not"]


@pytest.mark.long
def test_after_some_deaths_in_a_row_the_rest_is_not_tried(monkeypatch):
    monkeypatch.setattr(ceopt.base.parallel, "_MOST_IN_A_ROW", 1)

    found = dict(completed("test", deadly_task, lambda k: (k, os.getpid()), count=5, n_jobs=2))

    assert sorted(found) == [0, 1, 2, 3, 4]
    assert all(isinstance(lost, Lost) for lost in found.values())
    assert sum("Not tried" in lost.reason for lost in found.values()) == 4


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.long)])
def test_an_error_of_the_work_itself_is_raised_and_not_tried_again(backend):
    with joblib.parallel_config(backend=backend), pytest.raises(ZeroDivisionError):
        list(completed("test", divmod, lambda k: (k, 0), count=3, n_jobs=2))


def test_a_bootstrap_names_what_was_lost(monkeypatch, data):
    lost = Lost("The process ended (SIGKILL).")
    monkeypatch.setattr("ceopt.base.parallel.completed", lambda *_, **__: iter([(0, lost)]))

    with pytest.raises(CeoptError, match=r"bootstrap_moments needs processes that live.*SIGKILL.*fewer n_jobs"):
        bootstrap_moments(LogisticRegression(), data, data["income"] > 20, n_models=3, n_jobs=2)


@pytest.mark.long
def test_a_bootstrap_says_so(monkeypatch, data):
    monkeypatch.setattr(ceopt.base.parallel, "_MOST_IN_A_ROW", 1)

    class Mortal(LogisticRegression):
        home = os.getpid()

        def fit(self, X, y):
            deadly_task(0, self.home)
            return super().fit(X, y)

    with pytest.raises(CeoptError, match=r"bootstrap_moments needs processes that live.*SIGKILL.*fewer n_jobs"):
        bootstrap_moments(Mortal(), data, data["income"] > 20, n_models=3, n_jobs=2)


# ---- the end of either side ------------------------------------------------------------------------------------------
ASKED = """
import sys
from killing import deadly_task, slow_task
from ceopt.base.parallel import completed
import ceopt.base.parallel, os
def of(place):
    return place, os.getpid() if sys.argv[1] == "deadly" else sys.argv[2]
if __name__ == "__main__":
    ceopt.base.parallel._MOST_IN_A_ROW = 1
    work = {"deadly": deadly_task, "slow": slow_task}[sys.argv[1]]
    print(list(completed("test", work, of, count=2, n_jobs=2)))
"""


def started(tmp_path, *words):
    """Run a script that asks for two jobs."""
    script = tmp_path / "asked.py"
    script.write_text(ASKED)
    root = Path(__file__).parents[2]
    here = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}"}
    command = [sys.executable, str(script), *map(str, words)]
    return subprocess.Popen(command, env=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lives(pid):
    """Tell whether a process runs; one that ended and that nobody has asked about does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def until(holds, seconds=240.0):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.1)
    return holds()


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_end_with_their_parent_even_where_it_is_killed(tmp_path):
    log = tmp_path / "log"
    log.touch()
    parent = started(tmp_path, "slow", log)
    assert until(lambda: len(log.read_text().split()) == 2)
    workers = [int(word) for word in log.read_text().split()]
    assert all(map(lives, workers))

    parent.kill()
    parent.wait()

    assert until(lambda: not any(map(lives, workers)), 30.0)
    parent.communicate()


@pytest.mark.long
def test_of_a_worker_that_was_lost_no_semaphore_is_left_over(tmp_path):
    parent = started(tmp_path, "deadly")
    out, err = parent.communicate(timeout=1500)
    assert "Lost" in out
    assert err == ""


def test_a_process_watches_only_the_parent_that_started_it(monkeypatch):
    """Not itself, under threads, and no stranger, as in a cluster; the thread looks until it is another's child."""
    begun, ended = [], []
    monkeypatch.setattr(parents, "_watched", set())
    monkeypatch.setattr(parents, "_ask_kernel", lambda: begun.append("kernel"))
    monkeypatch.setattr(parents, "_is_child_of_first_thread", lambda parent: parent == 7)
    monkeypatch.setattr(parents.threading.Thread, "start", lambda thread: begun.append(thread.name))
    lock = object()  # which older Pyomo has not
    monkeypatch.setattr(parents.sys.modules["pyomo.common.dependencies"], "capture_output_lock", lock, raising=False)
    parents.end_with_parent(os.getpid())
    parents.end_with_parent(os.getppid() + 1)
    assert begun == []
    assert parents.sys.modules["pyomo.common.dependencies"].capture_output_lock is lock
    monkeypatch.setattr(parents.os, "getppid", lambda: 7)
    parents.end_with_parent(7)
    parents.end_with_parent(7)
    assert begun == ["kernel", "ceopt ends with its parent"]
    monkeypatch.setattr(parents.time, "sleep", lambda _: monkeypatch.setattr(parents.os, "getppid", lambda: 1))
    monkeypatch.setattr(parents.os, "_exit", ended.append)
    parents._watch(7)
    assert ended == [1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_kernel_is_asked_where_the_first_thread_started_this_process():
    code = "import os; from ceopt.base import parallel; print(parallel._is_child_of_first_thread(os.getppid()))"
    root = str(Path(__file__).parents[2])
    found = []

    def run():
        here = {**os.environ, "PYTHONPATH": root}
        found.append(subprocess.run([sys.executable, "-c", code], env=here, capture_output=True, text=True, check=True))

    run()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
        pytest.skip("this kernel lists no children")
    assert [one.stdout.strip() for one in found] == ["True", "False"]
