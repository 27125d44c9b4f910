"""What is asked of a model in the comparison, and what is measured of an answer: once by ceopt, once in plain numpy."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, final

import numpy as np
import pandas as pd

import ceopt
from ce_ocl.comparison_cases import Case, encoded

__all__ = ["ANSWERS", "LIMIT_S", "METHODS", "Method", "ask", "measured", "summary"]

#: The paper's objective: squared l2 of columns scaled to [0, 1], and 10,000 for each changed column of the encoding.
COST = ceopt.L2(scale="range", squared=True) + 10_000 * ceopt.Changes(count="columns")
#: The paper measures proximity in raw units, where a column of wide range weighs more than in the objective.
RAW_COST = ceopt.L1(scale="none") + 20 * ceopt.Changes(count="columns")
ANSWERS, LIMIT_S, SOLVER = 3, 20.0, "highs"
#: What HiGHS promises: 1e-4 of the square beside 10,000. A millionth would be 0.01, a move by a tenth of a range.
GAP = 1e-8
#: The paper's columns have no bounds. A count of changes needs some: ten ranges beyond what the data holds.
FAR = 10.0
SUITE = "ce_ocl2022"


@final
@dataclass(frozen=True, slots=True)
class Method:
    """A way to ask for three counterfactuals.

    Parameters
    ----------
    says
        What it is.
    kinds
        For which kinds of model; all if empty.
    data_sets
        Of which data; all if empty.
    few
        How many people of each other data set.
    cost
        What is minimised.
    diversity
        In what answers differ.
    in_range
        Columns stay within what the data holds.
    hull
        Answers are combinations of people with the label wanted.
    """

    says: str
    kinds: tuple[str, ...] = ()
    data_sets: tuple[str, ...] = ()
    few: int = 0
    cost: Any = COST
    diversity: Any = "pool"
    in_range: bool = False
    hull: bool = False


_APART = ceopt.Apart(1e-3, cost=ceopt.L1(scale="range"))
METHODS: Mapping[str, Method] = {
    "pool": Method("the three best, each with other tree cells, categories or changed columns than the others"),
    "nearest": Method(
        "the three best that are 0.001 apart in scaled columns; the paper tells answers apart by their fourth decimal",
        kinds=("logistic", "tree", "forest", "network"),
        diversity=_APART,
    ),
    "raw": Method(
        "as nearest, but of the least l1 in raw units, which is how the paper measures proximity, with 20 for each "
        "changed column",
        kinds=("logistic", "tree", "forest", "network"),
        data_sets=("heloc_imputed",),
        cost=RAW_COST,
        diversity=_APART,
    ),
    "in range": Method(
        "as pool, within the range of the data, which trees have no reason to leave", kinds=("logistic",), in_range=True
    ),
    "hull": Method(
        "as pool, within the hull of those with the label wanted, which is the paper's CE-OCL_tr",
        kinds=("forest",),
        data_sets=("adult_binary", "compas"),
        few=5,  # of these most take longer than a question may
        in_range=True,
        hull=True,
    ),
}


def ask(case: Case, model: Any, method: str, person: pd.DataFrame) -> dict[str, Any]:
    """Ask for a person, and keep answers, status, checks and measures."""
    way, began = METHODS[method], time.process_time()
    found = ceopt.explain(
        model,
        person,
        case.space if way.in_range else widened(case),
        target=1,
        n=ANSWERS,
        cost=way.cost,
        constraints=[ceopt.Hull(case.hull_rows, enlarge=True)] if way.hull else (),
        diversity=way.diversity,
        solver=SOLVER,
        relative_gap=GAP,
        time_limit_s=LIMIT_S,
    )
    gaps = [answer.gap for answer in found if answer.gap is not None]
    return {
        "status": found.status.value,
        "gap": max(gaps, default=None),
        "cpu_s": time.process_time() - began,
        **measured(case, model, person, pd.DataFrame([answer.values for answer in found], columns=list(case.data))),
    }


def widened(case: Case) -> ceopt.FeatureSpace:
    """Return the space with bounds far beyond the data."""
    space = case.space
    for feature in case.space:
        if not feature.is_finite and feature.range:
            far = FAR * feature.range
            space = space.update(feature.name, lower=feature.lower - far, upper=feature.upper + far)
    return space


def measured(case: Case, model: Any, person: pd.DataFrame, answers: pd.DataFrame) -> dict[str, Any]:
    """Return answers with the checks of their validity and actionability, and the paper's measures of them."""
    answers = answers[list(case.data)].astype(person.dtypes.to_dict()).reset_index(drop=True)
    if not len(answers):
        return {"answers": [], "valid": 0, "valid_numpy": 0, "kept": 0, "measures": {}, "first": {}}
    fixed = answers[case.fixed].to_numpy(dtype=object) == person[case.fixed].to_numpy(dtype=object)
    return {
        "answers": answers.to_numpy(dtype=object).tolist(),
        "valid": int((model.predict(answers) == 1).sum()),
        "valid_numpy": int((model.named_steps["model"].predict(encoded(case, answers)) == 1).sum()),
        "kept": int(fixed.all(axis=1).sum()),
        "measures": _suite(case, model, person, answers),
        "first": _suite(case, model, person, answers.iloc[:1]),
    }


def _suite(case: Case, model: Any, person: pd.DataFrame, answers: pd.DataFrame) -> dict[str, float]:
    values = ceopt.metrics.suite(SUITE, answers, factual=person, space=case.space, model=model, target=1)
    return {name: float(value) for name, value in values.items() if not math.isnan(value)}


def summary(records: list[dict[str, Any]], part: str = "measures") -> dict[str, tuple[float, float]]:
    """Return mean and standard error over people of each measure."""
    found = [record[part] for record in records if record[part]]
    columns = {name: np.array([one[name] for one in found if name in one]) for name in dict.fromkeys(chain(*found))}
    return {
        name: (float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0)
        for name, values in columns.items()
    }
