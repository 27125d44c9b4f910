"""The studies of papers, where the examples are beside the tests."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "papers"


@pytest.fixture(scope="module")
def papers():
    """Give the folder of studies, from which they can be imported."""
    if not FOLDER.is_dir():
        pytest.skip("The examples are not beside the tests.")
    sys.path.insert(0, str(FOLDER))
    yield FOLDER
    sys.path.remove(str(FOLDER))
    studies = {folder.name for folder in FOLDER.iterdir()}
    for name in list(sys.modules):
        if name.partition(".")[0] in studies:
            del sys.modules[name]
