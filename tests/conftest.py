"""What every test file shares."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # histogram boosting: threads per core and worker are ten times slower
os.environ.setdefault("MPLBACKEND", "Agg")  # a documentation block may draw; nobody is there to close a window

# No deadline: a property may build and solve a program. In CI the same examples each time, so that red stays red.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_report_header() -> str:
    """Say which ceopt is tested: the installed one, or the source tree."""
    import ceopt

    return f"ceopt: {Path(ceopt.__file__).parent}"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Give the folder of real data: CEOPT_DATA, or shared/data beside the repository; it is never committed."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CEOPT_DATA") or beside)
    if not (folder / "schema.json").is_file():
        pytest.skip("no real data: set CEOPT_DATA to the folder that holds schema.json")
    return folder
