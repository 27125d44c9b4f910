"""The benchmarks, where they are beside the tests."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "benchmarks", ROOT / "examples" / "papers")


@pytest.fixture(scope="module")
def benchmarks():
    """Give the folder of benchmarks; they, and the studies of papers, can be imported."""
    if not all(folder.is_dir() for folder in FOLDERS):
        pytest.skip("The benchmarks are not beside the tests.")
    before = list(sys.path)
    known = set(sys.modules)
    sys.path[:0] = map(str, FOLDERS)
    yield FOLDERS[0]
    sys.path[:] = before
    for name in set(sys.modules) - known:
        origin = getattr(sys.modules[name], "__file__", None)
        if origin is not None and any(Path(origin).is_relative_to(folder) for folder in FOLDERS):
            del sys.modules[name]
