"""Tables 2 and 5: grids of actions within what people can change, on each method's surrogate (Ustun et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from tqdm import tqdm

import ceopt
from ceopt.formulations.predictors import Affine
from ceopt.surrogates import NoBoundaryError
from coverage_validity.frontiers import FoldModels, judged
from coverage_validity.local_models import TARGET, Data, Line, Local
from coverage_validity.protocol import Floats

__all__ = ["SURROGATES", "actions"]

#: Radius of the unfavourable covariance in the tables.
RADIUS: Final = 10.0
#: Actions reach from the 1st to the 99th percentile, in steps of a hundredth of that range.
ENDS: Final = (1.0, 99.0)
STEPS: Final = 100
#: Seconds for one person's program.
LIMIT_S: Final = 10.0

#: Row of the tables -> surrogate.
SURROGATES: Mapping[str, Callable[[Local], Line]] = {
    "LIME-AR": lambda local: local.rival("lime"),
    "CLIME-AR": lambda local: local.rival("clime"),
    "LIMELS-AR": lambda local: local.rival("limels"),
    "SVM-AR": lambda local: local.rival("svm"),
    "MPM-AR": lambda local: local.rival("mpm"),
    "QUAD-MPM-AR": lambda local: local.machine("quadratic", RADIUS),
    "BW-MPM-AR": lambda local: local.machine("bures", RADIUS),
    "FR-MPM-AR": lambda local: local.machine("fisher_rao", RADIUS),
}


def actions(models: FoldModels, people: Floats, *, quiet: bool) -> dict[str, Any]:
    """Return cost and validities of each surrogate's best actions, people in order; None where there are none.

    The actions are those of :func:`ceopt.explain` over the surrogate, not checked on the network: the tables are about
    the surrogates.
    """
    found: dict[str, Any] = {name: {"cost": [], "current": [], "future": []} for name in SURROGATES}
    data = models.data
    title = f"{data.case.name}, {data.case.protocol}, actions"
    for factual in tqdm(people, unit="person", desc=title, disable=quiet):
        local = data.local(factual)
        space = _space(data, factual)
        rules = _one_level_each(data)
        for name, fitted in SURROGATES.items():
            try:
                line = fitted(local)
            except NoBoundaryError:
                point = None
            else:
                point = _actions(data, line, local, space, rules)
            for key, value in judged(models, factual, point).items():
                found[name][key].append(value)
    return found


def _actions(data: Data, line: Line, local: Local, space: ceopt.FeatureSpace, rules: list[Any]) -> Floats | None:
    """Return the point of the actions with the least greatest shift of a percentile."""
    result = ceopt.explain(
        Affine(line.coef, line.intercept, labels=(0, 1)),
        local.row,
        space,
        target=TARGET,
        cost=ceopt.Percentile("max"),
        constraints=rules,
        data=data.frame,
        time_limit_s=LIMIT_S,
        why=False,
    )
    if result.status is ceopt.Status.ALREADY_FAVOURABLE:
        return local.factual
    if not len(result):
        return None
    return np.asarray(result[0].values, dtype=float)


def _space(data: Data, factual: Floats) -> ceopt.FeatureSpace:
    """Return the grid of one person: numbers in steps between two percentiles, levels 0 or 1, and what may move how."""
    case = data.case
    levels = {place for group in case.groups for place in group}
    features = []
    for place, name in enumerate(case.columns):
        mutable = place not in case.fixed
        if place in levels:
            features.append(ceopt.Feature(name, kind="binary", levels=(0.0, 1.0), mutable=mutable))
            continue
        low, high = np.percentile(data.frame[name], ENDS)
        step = float(high - low) / STEPS
        features.append(
            ceopt.Feature(
                name,
                kind="continuous",
                lower=min(float(low), float(factual[place])),
                upper=max(float(high), float(factual[place])),
                step=step if step > 0.0 else None,
                mutable=mutable,
                direction="increasing" if place in case.growing else "any",
            )
        )
    return ceopt.FeatureSpace(features)


def _one_level_each(data: Data) -> list[Any]:
    """Return the rules that of each category's columns one is 1."""
    rules = []
    for group in data.case.groups:
        names = [data.case.columns[place] for place in group]
        rules.append(ceopt.Linear(dict.fromkeys(names, 1.0), "==", 1.0))
    return rules
