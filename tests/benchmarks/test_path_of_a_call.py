"""The path of one call through the package, as benchmarks/path_of_a_call.py counts it."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

import pytest
from sources import ROOT

#: What CONTRIBUTING says of the files that a call enters.
MOST_FILES = 60


@pytest.mark.long
def test_a_call_enters_no_more_files_than_a_reader_can_follow() -> None:
    script = ROOT / "benchmarks" / "path_of_a_call.py"
    command = [sys.executable, str(script), "--count", str(ROOT)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=300)
    people = json.loads(done.stdout.splitlines()[-1])
    assert len(people) == 3
    assert median(person["files"] for person in people) <= MOST_FILES
