"""Statlog heart, parts A to E: the second case study of CE-OCL's released notebooks, with a network of 50 neurons.

Set CEOPT_DATA to the folder of data. The network is trained here: the released weights are not at hand. So the released
values of parts A to D can only be near; in part E it is the hull that decides, and the objective is the released one.
The class that the notebooks ask for, 1, is the presence of the disease: answers lead to illness and are no advice.

Run: python examples/papers/ce_ocl/heart_disease.py [--fast] [--out FOLDER] [--solver NAME]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the papers find one another and what they share

from ce_ocl.heart import heart
from ce_ocl.report import command

if __name__ == "__main__":
    about = "Statlog heart, parts A to E: the case study of CE-OCL's released notebooks (Maragno, Roeber & Birbil 2022)"
    command("heart_disease", about, heart, network=True)
