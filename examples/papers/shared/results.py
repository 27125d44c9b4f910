"""The data of a study as a file, in the form that the benchmarks have."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

from records import kept, read, write

__all__ = ["kept", "read", "write"]
