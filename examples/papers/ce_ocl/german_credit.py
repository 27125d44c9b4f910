"""German credit, parts A to F: the case study of CE-OCL (Maragno, Roeber & Birbil 2022, Table 5), done again.

Set CEOPT_DATA to the folder of data; --fast needs none. HiGHS solves it; SCIP and Gurobi come to the same. Gurobi's
size-limited licence takes parts A to E, and part F is reported as not solved.

Run: python examples/papers/ce_ocl/german_credit.py [--fast] [--out FOLDER] [--solver NAME]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the papers find one another and what they share

from ce_ocl.german import german
from ce_ocl.report import command

if __name__ == "__main__":
    about = "German credit, parts A to F: the case study of CE-OCL (Maragno, Roeber & Birbil 2022, Table 5)"
    command("german_credit", about, german, network=False)
