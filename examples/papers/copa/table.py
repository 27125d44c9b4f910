"""Tables 1 and 4: plans of each method for each person and seed, and what is measured of them."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from shared.journal import Journal
from tqdm import tqdm

from ceopt.plans import (
    copa_objective,
    copa_plan,
    gelbrich_distance,
    local_moments,
    mahalanobis_correction,
    requirement_correction,
    validity_bounds,
)
from copa import descent, models
from copa.protocol import Case, Floats, load

__all__ = [
    "JUDGED",
    "MARGIN",
    "MEASURED",
    "MEASURES",
    "RADIUS",
    "WEIGHTS",
    "N",
    "Size",
    "Study",
    "methods",
    "run",
    "summary_of",
]

#: What decides the results, beside the data.
MEASURES = (
    "ceopt/plans",
    "examples/papers/copa/descent.py",
    "examples/papers/copa/models.py",
    "examples/papers/copa/protocol.py",
    "examples/papers/copa/table.py",
)
#: What is measured of a plan.
MEASURED = ("proximity", "diversity", "lower", "empirical", "current", "possible")

#: J, rho, epsilon, and K and Delta of the Mahalanobis correction.
N, RADIUS, MARGIN, CORRECTED, PERTURBATION = 5, 0.01, 0.1, 3, 0.1
#: Table -> weights of validity and diversity.
WEIGHTS = {1: ((0.2, 2.0), (0.5, 5.0), (1.0, 10.0)), 4: ((0.1, 1.0), (0.1, 2.0), (0.2, 2.0))}
#: The released code multiplies the covariance by this before it evaluates a plan.
EVALUATED = 1.0001
#: Table -> the weights that are judged, the last ones.
JUDGED = {table: "{:g},{:g}".format(*pairs[-1]) for table, pairs in WEIGHTS.items()}
SAMPLES, VARIANCE = 5000, 0.05
#: Of the noise of descents and of local models, as released; each further seed adds 1.
SEED = 124


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done.

    Parameters
    ----------
    seeds
        How often everything is drawn: split, starts, halves, noise.
    people
        Of each data set and seed.
    searched
        Those of them for whom ``copa_plan`` searches by its default method too, which takes five times as long.
    moments, futures, networks
        Models whose moments are taken, linear models of the future, and networks of the future; of each seed.
    """

    seeds: int = 5
    people: int = 50
    searched: int = 10
    moments: int = 400
    futures: int = 400
    networks: int = 30


def methods(table: int, protocol: str) -> list[str]:
    """Return the rows of a table.

    "descent" and "search" are ``copa_plan`` by the published descent and by its default method; "tenfold" is the
    descent with ten times the covariance.
    """
    pairs = [f"{first:g},{second:g}" for first, second in WEIGHTS[table]]
    control = [f"tenfold {JUDGED[table]}"] if protocol == "paper" and table == 1 else []
    return ["dice", "mahalanobis", *(f"descent {pair}" for pair in pairs), f"search {JUDGED[table]}", *control]


@final
class Study:
    """One data set of one table, drawn once.

    Parameters
    ----------
    table
        1: logistic regression. 4: a network, by a local linear model for each person.
    name, protocol
        Of the data.
    size
        How much is done.
    seed
        Of the split, the starts and orders of all training, the halves, the noise of descents and local models.
    """

    def __init__(self, table: int, name: str, protocol: str, size: Size, seed: int = 0) -> None:
        self.table, self.size, self.seed = table, size, seed
        self.case: Case = load(name, protocol, seed)
        self.key = f"{table}/{protocol}/{name}/{seed}"

    # ---- classifiers, each made when it is needed ----
    @cached_property
    def model(self) -> Any:
        """The present classifier."""
        case = self.case
        if self.table == 1:
            return models.present(case, self.seed)
        return models.network(case.X[case.train], case.y[case.train], random_state=self.seed)

    @cached_property
    def scores(self) -> Floats:
        """Its logits of the present data."""
        return np.asarray(descent.scored(self.model)(self.case.X[:, :-1])[0])

    @cached_property
    def people(self) -> Floats:
        """Who is asked about, a row each."""
        return self.case.X[self.case.people(self.scores, self.size.people)]

    @cached_property
    def future(self) -> models.Future:
        """The classifiers of the future."""
        if self.table == 1:
            return models.Future(models.futures(self.case, self.size.futures, self.seed))
        return models.Future(models.networks(self.case, self.size.networks, self.seed))

    @cached_property
    def moments(self) -> list[tuple[Floats, Floats]]:
        """Mean and covariance of the parameters, for each person."""
        case = self.case
        if self.table == 1:
            return [models.moments(case, self.size.moments, self.seed)] * len(self.people)
        spread = case.X[case.train][:, :-1].std(axis=0)
        scale = np.where(spread > 0.0, spread, 1.0)
        found = []
        for row in self.people:
            moments = local_moments(
                self.model,
                row[:-1],
                n_samples=SAMPLES,
                variance=VARIANCE,
                scale=scale,
                random_state=SEED + self.seed,
            )
            found.append((np.asarray(moments[0]), np.asarray(moments[1])))
        return found

    @cached_property
    def dice_plans(self) -> Floats:
        """Plans of dice-ml's gradient method."""
        return descent.dice(self.case, descent.scored(self.model), self.people, n=N)

    @cached_property
    def dice_validity(self) -> Floats:
        """Empirical validity of each of them."""
        return np.array([self.future.validity(plan) for plan in self.dice_plans])

    # ---- results ----
    def about(self) -> dict[str, Any]:
        """Return accuracy and area under the curve now and later, how many people there are, and the shift itself."""
        case, later = self.case, self.future.models
        test = ~case.train
        shares = (later if isinstance(later, np.ndarray) else list(later))[:20]
        then = [models.accuracy(descent.scored(one)(case.later_rows[:, :-1])[0], case.later_y) for one in shares]
        shift = None
        if isinstance(later, np.ndarray):
            shift = gelbrich_distance(*self.moments[0], later.mean(axis=0), np.cov(later, rowvar=False, bias=True))
        return {
            "shift": shift,
            "now": models.accuracy(self.scores[test], case.y[test]),
            "later": np.mean(then, axis=0).tolist(),
            "people": len(self.people),
            "columns": case.d - 1,
            "rejected": float((self.scores < 0.0).mean()),
            "rejected_later": float(np.mean([(descent.scored(one)(case.X[:, :-1])[0] < 0.0).mean() for one in shares])),
        }

    def result(self, method: str) -> dict[str, Any]:
        """Return what is measured of a method's plans, over people."""
        count = len(self.people)
        if method.startswith("search"):
            count = min(count, self.size.searched)
        found = []
        for k in range(count):
            began = time.process_time()
            plan, status, put_back = self.plan(method, k)
            spent = time.process_time() - began
            one = {"status": status, "cpu_s": spent, "put_back": put_back}
            if plan is not None:
                measures = self.measured(plan, k, method)
                one.update(measures, over_dice=measures["empirical"] - self.dice_validity[k])
            found.append(one)
        return summary_of(found)

    def plan(self, method: str, k: int) -> tuple[Floats | None, str, bool]:
        """Return a method's plan for a person, how it ended, and whether the published descent ended off the margin."""
        case, row, (mean, covariance) = self.case, self.people[k], self._moments_of(method, k)
        way, _, pair = method.partition(" ")
        if way == "dice":
            return self.dice_plans[k], "answered", False
        if way == "mahalanobis":
            required = requirement_correction(self.dice_plans[k], mean, MARGIN, fixed=case.fixed)
            if required.plan is None:
                return None, str(required.status), False
            better = mahalanobis_correction(
                required.plan,
                mean,
                covariance,
                perturbation=PERTURBATION,
                n_corrected=CORRECTED,
                radius=RADIUS,
                fixed=case.fixed,
            )
            return better.plan, str(better.status), False
        first, second = map(float, pair.split(","))
        found = copa_plan(
            row,
            mean,
            covariance,
            n=N,
            validity_weight=first,
            diversity_weight=second,
            margin=MARGIN,
            fixed=case.fixed,
            bounds=(0.0, 1.0),
            groups=None if case.is_released else case.groups,
            method="gradient" if way == "search" else "descent",
            random_state=SEED + self.seed,
        )
        return found.plan, str(found.status), "put back" in found.reason

    def _moments_of(self, method: str, k: int) -> tuple[Floats, Floats]:
        mean, covariance = self.moments[k]
        return mean, covariance * (10.0 if method.startswith("tenfold") else 1.0)

    def measured(self, plan: Floats, k: int, method: str = "") -> dict[str, Any]:
        """Return the columns of the tables."""
        row, (mean, covariance) = self.people[k], self._moments_of(method, k)
        first, second = map(float, method.partition(" ")[2].split(",")) if " " in method else (0.0, 0.0)
        terms = copa_objective(row, plan, mean, covariance, validity_weight=first, diversity_weight=second)
        bounds = validity_bounds(plan, mean, covariance * (EVALUATED if self.case.is_released else 1.0), RADIUS)
        now = descent.scored(self.model)(plan[:, :-1])[0] >= 0.0
        return {
            "proximity": float(terms.proximity),
            "diversity": float(terms.diversity),
            "objective": float(terms.objective) if np.isfinite(terms.objective) else None,
            "lower": bounds.lower,
            "empirical": self.future.validity(plan),
            "current": float(now.all()),
            "possible": float(self.case.is_possible(plan, row).mean()),
        }


def summary_of(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return of one method and seed: each measure's mean over people with a plan, and how the others ended."""
    planned = [one for one in found if "lower" in one]
    record: dict[str, Any] = {
        "people": len(found),
        "plans": len(planned),
        "statuses": dict(Counter(one["status"] for one in found)),
        "put_back": sum(one.get("put_back", False) for one in found),
        "cpu_s": float(np.median([one["cpu_s"] for one in found])) if found else 0.0,
    }
    if not planned:
        return record
    for name in (*MEASURED, "over_dice"):
        record[name] = float(np.mean([one[name] for one in planned]))
    objectives = [one["objective"] for one in planned if one.get("objective") is not None]
    record["objective"] = float(np.mean(objectives)) if len(objectives) == len(planned) else None
    return record


def run(table: int, names: Sequence[str], protocol: str, size: Size, journal: Journal, *, quiet: bool) -> None:
    """Answer what the journal does not have yet, one seed after the other."""
    for seed in range(size.seeds):
        for name in names:
            study = Study(table, name, protocol, size, seed)
            asked = [f"{study.key}/{method}" for method in methods(table, protocol)]
            left = [key for key in (f"{study.key}/about", *asked) if key not in journal.kept]
            for key in tqdm(left, unit="method", desc=study.key, file=sys.stderr, disable=quiet):
                method = key.removeprefix(f"{study.key}/")
                journal.add(key, study.about() if method == "about" else study.result(method))
