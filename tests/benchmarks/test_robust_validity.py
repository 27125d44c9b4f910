"""The curve of cost against level, as benchmarks/robust_validity.py draws it."""

import importlib
import importlib.util
import itertools
import subprocess
import sys

import numpy as np
import pytest


@pytest.fixture(scope="module", params=["one person", pytest.param("as a script", marks=pytest.mark.long)])
def page(request, benchmarks, tmp_path_factory):
    """Give what is written, of one person and few models, or by the script as a person without data would run it."""
    out = tmp_path_factory.mktemp("out")
    if request.param == "as a script":
        run = [sys.executable, str(benchmarks / "robust_validity.py"), "--fast", "--out", str(out), "--solver", "highs"]
        done = subprocess.run(run, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    else:
        script = importlib.import_module("robust_validity")
        scale = script.Scale(levels=(0.0, 0.9), radii=(0.0, 0.1), people=1, models=8, time_limit_s=10.0)
        script.run(scale, german=False, quiet=True, out=out, solver="highs")
    return out


@pytest.mark.long
def test_the_table_has_a_row_for_each_radius_and_level(page):
    text = (page / "robust_validity.md").read_text(encoding="utf-8")
    answers = importlib.import_module("records").read(page / "robust_validity.json")["answers"]
    levels = {answer["level"] for answer in answers}
    assert text.count("\n| 0 | ") == text.count("\n| 0.1 | ") == len(levels)
    assert f"{len(answers)} questions, all proved." in text
    if importlib.util.find_spec("matplotlib"):
        assert (page / "robust_validity.png").stat().st_size > 10_000


@pytest.mark.long
def test_costs_grow_with_the_level_and_bounds_reach_it(page):
    answers = importlib.import_module("records").read(page / "robust_validity.json")["answers"]
    assert all(a["bound"] >= a["level"] * (1.0 - 1e-9) for a in answers if a["cost"] is not None)
    for radius, person in {(a["radius"], a["person"]) for a in answers}:
        own = [a for a in answers if (a["radius"], a["person"]) == (radius, person)]
        costs = [np.inf if a["cost"] is None else a["cost"] for a in sorted(own, key=lambda a: a["level"])]
        assert costs[0] < np.inf
        assert all(later >= earlier * (1.0 - 1e-6) for earlier, later in itertools.pairwise(costs))
