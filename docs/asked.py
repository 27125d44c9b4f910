"""What people type into the search of the site, and the pages of which one has to be among the first three found.

The questions are those that users of DiCE, alibi and OMLT ask most, and those of docs/how_to/questions.md.

Run: python docs/asked.py SITE         needs node; docs/build.py does so after every build where there is one
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

#: How many results somebody looks at.
FIRST = 3
#: What is typed -> pages that answer it, without how_to/questions, which answers all in a line.
ASKED: Mapping[str, tuple[str, ...]] = {
    "permitted range": ("how_to/spaces", "how_to/from_dice"),
    "features to vary": ("how_to/spaces", "how_to/from_dice"),
    "fixed features": ("how_to/spaces", "how_to/rules"),
    "immutable": ("how_to/spaces", "how_to/rules"),
    "at most 20 percent more": ("how_to/limits",),
    "does not flip": ("how_to/status",),
    "prediction unchanged": ("how_to/status",),
    "no counterfactuals found": ("how_to/status", "how_to/rules", "how_to/from_dice"),
    "infeasible": ("how_to/status", "how_to/rules", "tutorials/first_recourse"),
    "slow": ("how_to/status",),
    "time limit": ("how_to/status", "how_to/many_people"),
    "many rows": ("how_to/many_people",),
    "categorical one-hot": ("how_to/spaces", "tutorials/first_recourse"),
    "install dependencies": ("index",),
    "pipeline": ("reference/models", "tutorials/first_recourse", "reference/formulations"),
    "ColumnTransformer": ("reference/models", "tutorials/first_recourse", "reference/formulations"),
    "random forest": (
        "reference/models",
        "reference/formulations",
    ),
    "xgboost": (
        "reference/models",
        "reference/formulations",
    ),
    "lightgbm": (
        "reference/models",
        "reference/formulations",
    ),
    "pytorch": (
        "reference/models",
        "explanation/not_possible",
    ),
    "keras": (
        "reference/models",
        "explanation/not_possible",
    ),
    "black box": ("how_to/surrogates",),
    "custom predict function": ("how_to/surrogates",),
    "missing values": ("how_to/missing",),
    "NaN": ("how_to/missing",),
    "dtype": ("how_to/spaces",),
    "rounding": ("how_to/spaces", "how_to/status"),
    "multiclass": (
        "reference/models",
        "reference/formulations",
    ),
    "several classes": ("reference/formulations",),
    "probability target": ("reference/formulations",),
    "regression": (
        "reference/models",
        "reference/formulations",
    ),
    "desired range": ("reference/formulations", "how_to/from_dice"),
    "causal": ("how_to/rules",),
    "relations between features": ("how_to/rules", "how_to/ratio"),
    "ratio": ("how_to/ratio",),
    "time series": ("explanation/not_possible",),
    "images": ("explanation/not_possible",),
    "report": ("how_to/report",),
    "plot": ("how_to/pictures",),
    "dashboard": ("explanation/not_possible", "how_to/report"),
    "customer": ("how_to/customer", "how_to/letter"),
    "fairness": ("tutorials/audit_of_a_cohort",),
    "global explanations": ("tutorials/audit_of_a_cohort",),
    "subgroups": ("tutorials/audit_of_a_cohort",),
    "feature importance": ("how_to/pictures", "how_to/from_dice"),
    "retraining": ("how_to/retraining", "tutorials/robust_to_retraining"),
    "robust to noise": ("explanation/diverse", "how_to/retraining"),
    "random seed": ("how_to/status", "how_to/from_dice"),
    "same answer each run": ("how_to/status",),
    "reproducible": ("explanation/program", "reference/measured"),
    "onnx": ("reference/models", "how_to/adding_a_model_reader", "reference/formulations"),
    "bounds of inputs": ("explanation/program",),
    "linear leaf": ("explanation/not_possible",),
    "multi-output": ("explanation/not_possible",),
    "embed model": ("explanation/program", "tutorials/own_rules"),
    "pyomo": ("tutorials/own_rules", "how_to/cones"),
    "piecewise": ("how_to/piecewise",),
    "sos2": ("how_to/piecewise",),
    "embedding slow": ("reference/formulations",),
    "benchmarks": ("reference/measured", "made/outside/benchmarks"),
    "spark dask ray": ("how_to/many_people",),
    "parallel": ("how_to/many_people",),
    "gurobi": ("how_to/cones",),
    "which solver": ("how_to/cones",),
    "diverse": ("how_to/pools", "explanation/diverse"),
    "dice": ("how_to/from_dice",),
    "alibi": ("how_to/index",),
    "omlt": ("how_to/index",),
    "gurobi-machinelearning": ("how_to/index",),
    "opticl": ("how_to/index",),
    "excess": ("reference/metrics",),
    "optimality gap": ("reference/metrics", "reference/glossary"),
    "lp file": ("tutorials/own_rules",),
    "several people": ("how_to/several_people",),
    "budget": ("how_to/several_people",),
    "add a model": ("how_to/adding_a_model_reader",),
    "margin": ("reference/glossary",),
    "rival": ("reference/glossary",),
    "factual": ("reference/glossary",),
}


def found(site: Path) -> dict[str, list[str]]:
    """Return the pages that the site's own search finds, best first, for each thing that is typed."""
    node = shutil.which("node")
    if node is None:
        raise RuntimeError("The search of the site needs node, but there is none on PATH. Install Node.js.")
    command = [node, str(Path(__file__).with_name("search.js")), str(site)]
    printed = subprocess.run(command, input="\n".join(ASKED), capture_output=True, text=True, check=True)  # noqa: S603
    lines = printed.stdout.splitlines()
    return {typed: [page for page, *_ in json.loads(line)] for typed, line in zip(ASKED, lines, strict=True)}


def missed(site: Path) -> dict[str, list[str]]:
    """Return what was typed in vain -> the first pages that were found instead."""
    return {
        typed: pages[:FIRST]
        for typed, pages in found(site).items()
        if not {*ASKED[typed], "how_to/questions"} & set(pages[:FIRST])
    }


def report(site: Path) -> int:
    """Ask everything, print what was asked in vain, and return 1 if anything was."""
    vain = missed(site)
    for typed, pages in vain.items():
        sys.stdout.write(f"{typed!r} finds {', '.join(pages) or 'nothing'}, not {' or '.join(ASKED[typed])}\n")
    sys.stdout.write(f"search: {len(ASKED) - len(vain)} of {len(ASKED)} questions are answered by the first {FIRST}\n")
    return 1 if vain else 0


if __name__ == "__main__":
    sys.exit(report(Path(sys.argv[1])))
