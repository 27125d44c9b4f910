"""The data of a study as a file, in the form that the benchmarks have, and the commit that it comes from."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

from provenance import marked, source, text_of
from records import kept, read, write

__all__ = ["kept", "marked", "read", "source", "text_of", "write"]
