"""The curve of cost against level, as benchmarks/robust_validity.py draws it."""

import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Run the benchmark as a person without data would."""
    script, out = ROOT / "benchmarks" / "robust_validity.py", tmp_path_factory.mktemp("out")
    if not script.is_file():
        pytest.skip("The benchmarks are not beside the tests.")
    run = [sys.executable, str(script), "--fast", "--out", str(out), "--solver", "highs"]
    done = subprocess.run(run, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def test_the_table_has_a_row_for_each_radius_and_level(page):
    text = (page / "robust_validity.md").read_text(encoding="utf-8")
    assert text.count("\n| 0 | ") == text.count("\n| 0.1 | ") == 3
    assert "18 questions, all proved." in text
    if importlib.util.find_spec("matplotlib"):
        assert (page / "robust_validity.png").stat().st_size > 10_000


def test_costs_grow_with_the_level_and_bounds_reach_it(page):
    answers = json.loads((page / "robust_validity.json").read_text(encoding="utf-8"))["answers"]
    assert all(a["bound"] >= a["level"] * (1.0 - 1e-9) for a in answers if a["cost"] is not None)
    for radius, person in {(a["radius"], a["person"]) for a in answers}:
        own = [a for a in answers if (a["radius"], a["person"]) == (radius, person)]
        costs = [np.inf if a["cost"] is None else a["cost"] for a in sorted(own, key=lambda a: a["level"])]
        assert costs[0] < np.inf
        assert all(later >= earlier * (1.0 - 1e-6) for earlier, later in itertools.pairwise(costs))
