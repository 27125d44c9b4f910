"""Tables 1 and 4: plans of each method for each person, and what is measured of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
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
from copa.dice import Dice
from copa.protocol import Case, Floats, load

__all__ = ["EARLY", "MARGIN", "RADIUS", "WEIGHTS", "N", "Size", "Study", "methods", "run"]

#: J, rho, epsilon, and K and Delta of the Mahalanobis correction.
N, RADIUS, MARGIN, CORRECTED, PERTURBATION = 5, 0.01, 0.1, 3, 0.1
#: Table -> weights of validity and diversity.
WEIGHTS = {1: ((0.2, 2.0), (0.5, 5.0), (1.0, 10.0)), 4: ((0.1, 1.0), (0.1, 2.0), (0.2, 2.0))}
#: The released code multiplies the covariance by this before it evaluates a plan.
EVALUATED = 1.0001
SAMPLES, VARIANCE = 5000, 0.05
SEED = 124
#: Steps after which dice-ml and its descent restated are compared before they part.
EARLY = 100


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done.

    Parameters
    ----------
    people
        Of each data set.
    moments, futures, networks
        Models whose moments are taken, linear models of the future, and networks of the future.
    checked
        People whom dice-ml itself is asked about.
    """

    people: int = 100
    moments: int = 1000
    futures: int = 1000
    networks: int = 200
    checked: int = 3


def methods(table: int, protocol: str) -> list[str]:
    """Return the rows of a table; "released", as the released code descends, and "tenfold" are of its protocol."""
    pairs = [f"{first:g},{second:g}" for first, second in WEIGHTS[table]]
    released = [f"released {pair}" for pair in pairs] if protocol == "paper" else []
    control = [f"tenfold {pairs[-1]}"] if protocol == "paper" and table == 1 else []
    return ["dice", "mahalanobis", *released, *(f"copa {pair}" for pair in pairs), *control]


@final
class Study:
    """One data set of one table.

    Parameters
    ----------
    table
        1: logistic regression. 4: a network, by a local linear model for each person.
    name, protocol
        Of the data.
    size
        How much is done.
    """

    def __init__(self, table: int, name: str, protocol: str, size: Size) -> None:
        self.table, self.size = table, size
        self.case: Case = load(name, protocol)
        self.key = f"{table}/{protocol}/{name}"

    # ---- classifiers, each made when it is needed ----
    @cached_property
    def model(self) -> Any:
        """The present classifier."""
        case = self.case
        if self.table == 1:
            return models.present(case)
        return models.network(case.X[case.train], case.y[case.train], random_state=0)

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
            return models.Future(models.futures(self.case, self.size.futures))
        return models.Future(models.networks(self.case, self.size.networks))

    @cached_property
    def moments(self) -> list[tuple[Floats, Floats]]:
        """Mean and covariance of the parameters, for each person."""
        case = self.case
        if self.table == 1:
            return [models.moments(case, self.size.moments)] * len(self.people)
        spread = case.X[case.train][:, :-1].std(axis=0)
        scale = np.where(spread > 0.0, spread, 1.0)
        found = [
            local_moments(self.model, row[:-1], n_samples=SAMPLES, variance=VARIANCE, scale=scale, random_state=SEED)
            for row in self.people
        ]
        return [(np.asarray(mean), np.asarray(covariance)) for mean, covariance in found]

    @cached_property
    def dice_plans(self) -> Floats:
        """Plans of dice-ml's gradient method."""
        return descent.dice(self.case, descent.scored(self.model), self.people, n=N)

    # ---- results, by their keys ----
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

    def result(self, method: str, k: int) -> dict[str, Any]:
        """Return what is measured of the plan that a method has for a person."""
        began = time.process_time()
        plan, status = self.plan(method, k)
        spent = time.process_time() - began
        if plan is None:
            return {"status": status, "cpu_s": spent}
        return {"status": status, "cpu_s": spent, **self.measured(plan, k, method)}

    def plan(self, method: str, k: int) -> tuple[Floats | None, str]:
        """Return the plan that a method has for a person, and how it ended."""
        case, row, (mean, covariance) = self.case, self.people[k], self._moments_of(method, k)
        way, _, pair = method.partition(" ")
        if way == "dice":
            return self.dice_plans[k], "answered"
        if way == "mahalanobis":
            required = requirement_correction(self.dice_plans[k], mean, MARGIN, fixed=case.fixed)
            if required.plan is None:
                return None, str(required.status)
            better = mahalanobis_correction(
                required.plan,
                mean,
                covariance,
                perturbation=PERTURBATION,
                n_corrected=CORRECTED,
                radius=RADIUS,
                fixed=case.fixed,
            )
            return better.plan, str(better.status)
        first, second = map(float, pair.split(","))
        if way in {"released", "tenfold"}:
            return self._released(first, second, 10.0 if way == "tenfold" else 1.0)[k], "answered"
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
            random_state=SEED,
        )
        return found.plan, str(found.status)

    @cache  # noqa: B019 - a study ends with its table
    def _released(self, first: float, second: float, factor: float) -> Floats:
        """Return everybody's plan by the released descent; those with the same moments descend together."""
        people, weights = self.people, (first, second)
        moments = [(mean, factor * covariance) for mean, covariance in self.moments]
        if self.table == 1:
            return descent.copa(people, *moments[0], n=N, weights=weights, margin=MARGIN, seed=SEED)
        each = zip(people, moments, strict=True)
        plans = [descent.copa(x[None], *both, n=N, weights=weights, margin=MARGIN, seed=SEED) for x, both in each]
        return np.concatenate(plans)

    @cached_property
    def _dice(self) -> Dice:
        return Dice(self.case, self.model)

    def _moments_of(self, method: str, k: int) -> tuple[Floats, Floats]:
        mean, covariance = self.moments[k]
        return mean, covariance * (10.0 if method.startswith("tenfold") else 1.0)

    def measured(self, plan: Floats, k: int, method: str = "") -> dict[str, float | None]:
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

    def compared(self, k: int) -> dict[str, Any]:
        """Return what dice-ml itself answers, and how far its descent restated is from it: at first, and at the end."""
        row = self.people[k]
        first = self._dice.plan(row, n=N, seed=SEED, steps=EARLY)
        same = descent.dice(self.case, descent.scored(self.model), row[None], n=N, steps=EARLY)[0]
        plan = self._dice.plan(row, n=N, seed=SEED)
        return {
            **self.measured(plan, k),
            "early": float(np.abs(first - same).max()),
            "apart": float(np.abs(plan - self.dice_plans[k]).max()),
        }


def run(
    table: int, names: Sequence[str], protocol: str, size: Size, journal: Journal, *, with_dice: bool, quiet: bool
) -> None:
    """Answer what the journal does not have yet."""
    for name in names:
        study = Study(table, name, protocol, size)
        keys = list(_keys(study, journal, with_dice=with_dice))
        with tqdm(keys, unit="plan", desc=study.key, file=sys.stderr, disable=quiet) as bar:
            for key in bar:
                journal.add(key, _answer(study, key.removeprefix(f"{study.key}/")))


def _keys(study: Study, journal: Journal, *, with_dice: bool) -> Iterator[str]:
    about = f"{study.key}/about"
    people = journal.result(about, study.about)["people"]
    asked = [(method, people) for method in methods(study.table, study.case.protocol)]
    asked += [("dice-ml", min(people, study.size.checked))] if with_dice else []
    for method, count in asked:
        yield from (key for k in range(count) if (key := f"{study.key}/{method}/{k}") not in journal.kept)


def _answer(study: Study, key: str) -> dict[str, Any]:
    method, _, k = key.rpartition("/")
    return study.compared(int(k)) if method == "dice-ml" else study.result(method, int(k))
