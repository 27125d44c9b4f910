"""What survives retraining where no plan of table 1 does, and at which price.

Two cases: German in protocol "honest", whose correction moves nearly all rows, and SBA in protocol "paper", across the
years. Asked are plans with more weight on validity, plans for a wider
radius, single answers under ``ceopt.RobustValidity``, and plans by moments that a tenth of the later rows gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from shared.journal import Journal
from shared.table import markdown
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tqdm import tqdm

import ceopt
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.plans import copa_plan, gelbrich_distance
from copa import descent, models
from copa.protocol import Case, Floats, load
from copa.report import ERRORS, SURVIVING, spread, standard_error
from copa.table import MARGIN, SEED, N

__all__ = ["FAST", "MEASURES", "TITLE", "Size", "described", "run"]

TITLE = "what survives where no plan of table 1 does"
MEASURES = (
    "ceopt/plans",
    "ceopt/formulations/constraints/robust_validity.py",
    "examples/papers/copa/descent.py",
    "examples/papers/copa/models.py",
    "examples/papers/copa/protocol.py",
    "examples/papers/copa/survival.py",
)
#: Data set -> protocol.
CASES: Mapping[str, str] = {"german": "honest", "sba": "paper"}
#: Name -> weights of validity and of diversity, radius by which the covariance is widened, whether its moments are the
#: later ones.
PLANS: Mapping[str, tuple[float, float, float, bool]] = {
    "plan (1, 10)": (1.0, 10.0, 0.0, False),
    "plan (10, 10)": (10.0, 10.0, 0.0, False),
    "plan (10, 10), radius 1": (10.0, 10.0, 1.0, False),
    "plan (10, 10), radius 3": (10.0, 10.0, 3.0, False),
    "plan (1, 10), later moments": (1.0, 10.0, 0.0, True),
}
#: Name -> radius and level of ``RobustValidity``.
RULES: Mapping[str, tuple[float, float]] = {
    "rule, radius 0, level 0.9": (0.0, 0.9),
    "rule, radius 0.1, level 0.5": (0.1, 0.5),
    "rule, radius 1, level 0.5": (1.0, 0.5),
}
METHODS = ("DiCE", *PLANS, *RULES)
#: Of the later rows are known so many, and so many models are trained on halves of them.
KNOWN, LATER_MODELS = 0.1, 60


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done.

    Parameters
    ----------
    seeds
        How often everything is drawn.
    people
        Of each case and seed.
    models
        For the moments, and as many of the future.
    time_limit_s
        Of a question under a rule.
    """

    seeds: int = 5
    people: int = 4
    models: int = 200
    time_limit_s: float = 20.0


FAST = Size(seeds=2, people=1, models=60)


def run(names: Sequence[str], size: Size, journal: Journal, *, quiet: bool) -> None:
    """Answer what the journal does not have yet."""
    for seed in range(size.seeds):
        for name in [*_cases(names)]:
            left = [method for method in ("about", *METHODS) if f"{name}/{seed}/{method}" not in journal.kept]
            if not left:
                continue
            one = _Drawn(name, size, seed)
            for method in tqdm(left, unit="method", desc=f"{name}/{seed}", file=sys.stderr, disable=quiet):
                journal.add(f"{name}/{seed}/{method}", one.about() if method == "about" else one.result(method))


def _cases(names: Sequence[str]) -> Mapping[str, str]:
    return {name: CASES.get(name, "honest") for name in names if name in CASES or name == "loans"}


@final
class _Drawn:
    """One case, drawn once: a tenth of the later rows is known, and the futures are trained on halves of the others."""

    def __init__(self, name: str, size: Size, seed: int) -> None:
        case = load(name, _cases([name])[name], seed)
        self.case, self.size, self.seed = case, size, seed
        self.model = models.present(case, seed)
        self.people = case.X[case.people(case.X @ self.model, size.people)]
        self.moments = models.moments(case, size.models, seed)
        rng = np.random.default_rng(SEED + seed)
        known = rng.random(len(case.later_y)) < KNOWN
        later = self._trained(np.stack([known & (rng.random(len(known)) < 0.5) for _ in range(LATER_MODELS)]), 3)
        self.later = later.mean(axis=0), np.cov(later, rowvar=False)
        self.future = self._trained(~known & models.halves(case.later_y, size.models, seed), 2)
        self.dice = descent.dice(case, descent.scored(self.model), self.people, n=N)

    def _trained(self, members: NDArray[np.bool_], place: int) -> Floats:
        """Return models of the later rows."""
        case = self.case
        if not case.is_released:
            return models.fitted(case.later_rows, case.later_y, members)
        start = 4 * self.seed + place
        return models.trained(
            case.later_rows, case.later_y, members, steps=models.OTHER_STEPS, random_state=1000 + start
        )

    def about(self) -> dict[str, Any]:
        """Return how far the futures' moments are from the present ones and from the later ones that are known."""
        moments = self.future.mean(axis=0), np.cov(self.future, rowvar=False)
        return {
            "people": len(self.people),
            "shift": gelbrich_distance(*self.moments, *moments),
            "later": gelbrich_distance(*self.later, *moments),
        }

    def result(self, method: str) -> dict[str, Any]:
        """Return how many people have an answer, its mean validity and proximity, and the validity less DiCE's."""
        answered: Callable[[int], Floats | None]
        if method == "DiCE":
            answered = self.dice.__getitem__
        elif method in PLANS:
            answered = self._planner(method)
        else:
            answered = self._ruled(*RULES[method])
        validity, proximity, over = [], [], []
        for k, row in enumerate(self.people):
            plan = answered(k)
            if plan is None:
                continue
            validity.append(models.validity(plan, self.future))
            proximity.append(float(np.linalg.norm(plan - row, axis=1).mean()))
            over.append(validity[-1] - models.validity(self.dice[k], self.future))
        record: dict[str, Any] = {"people": len(self.people), "answers": len(validity)}
        if validity:
            means = {"empirical": validity, "proximity": proximity, "over_dice": over}
            record.update({name: float(np.mean(values)) for name, values in means.items()})
        return record

    def _planner(self, method: str) -> Callable[[int], Floats | None]:
        validity, diversity, radius, is_later = PLANS[method]
        mean, covariance = self.later if is_later else self.moments
        case = self.case

        def planned(k: int) -> Floats | None:
            found = copa_plan(
                self.people[k],
                mean,
                covariance + radius**2 * np.eye(case.d),
                n=N,
                validity_weight=validity,
                diversity_weight=diversity,
                margin=MARGIN,
                fixed=case.fixed,
                bounds=(0.0, 1.0),
                groups=None if case.is_released else case.groups,
                random_state=SEED + self.seed,
            )
            return found.plan

        return planned

    def _ruled(self, radius: float, level: float) -> Callable[[int], Floats | None]:
        pipeline, space = _pipeline(self.case, self.model)
        frame = _frame(self.case, self.people)
        rule = ceopt.RobustValidity(*self.moments, radius, level, model=pipeline)

        def answered(k: int) -> Floats | None:
            found = ceopt.explain(
                pipeline,
                frame.iloc[[k]],
                space,
                target=1,
                constraints=[rule],
                time_limit_s=self.size.time_limit_s,
            )
            if not len(found):
                return None
            return np.append(pipeline[:-1].transform(found[0].frame)[0], 1.0)[None]

        return answered


def _numbers(case: Case) -> list[str]:
    inside = {place for group in case.groups for place in group}
    return [name for place, name in enumerate(case.columns) if place not in inside]


def _levels(case: Case) -> list[list[str]]:
    levels = []
    for word, group in zip(case.words, case.groups, strict=True):
        levels.append([case.columns[place].removeprefix(f"{word}_") for place in group])
    return levels


def _frame(case: Case, rows: Floats) -> pd.DataFrame:
    """Return rows with a column a category."""
    columns: dict[str, Any] = {name: rows[:, case.columns.index(name)] for name in _numbers(case)}
    for word, group, levels in zip(case.words, case.groups, _levels(case), strict=True):
        columns[word] = np.array(levels)[rows[:, list(group)].argmax(axis=1)]
    return pd.DataFrame(columns)


def _pipeline(case: Case, model: Floats) -> tuple[Pipeline, FeatureSpace]:
    """Return a linear classifier as scikit-learn has it, and what its columns may be."""
    still = {case.columns[place] for place in case.fixed[:-1]}
    features = []
    for name in _numbers(case):
        features.append(Feature(name, kind="continuous", lower=0.0, upper=1.0, mutable=name not in still))
    for word, group, levels in zip(case.words, case.groups, _levels(case), strict=True):
        is_free = case.columns[group[0]] not in still
        features.append(Feature(word, kind="categorical", levels=tuple(levels), mutable=is_free))
    encode = make_column_transformer(
        ("passthrough", _numbers(case)),
        (OneHotEncoder(categories=_levels(case), sparse_output=False), list(case.words)),
    )
    pipeline = make_pipeline(encode, LogisticRegression()).fit(_frame(case, case.X[case.train]), case.y[case.train])
    pipeline[-1].coef_ = model[None, :-1].copy()
    pipeline[-1].intercept_ = model[-1:].copy()
    return pipeline, FeatureSpace(features)


# ---- page ------------------------------------------------------------------------------------------------------------
def described(kept: Mapping[str, Any], names: Sequence[str], size: Size, *, is_full: bool) -> str:
    """Return what each method reaches, what survives, and what is advised."""
    first = (
        f"Data of table 1 where no method, or not `copa_plan`, survives retraining. {size.seeds} seeds of everything "
        f"that is drawn, {size.people} people a case and seed, moments of {size.models} models. A tenth of the later "
        f"rows is known; the {size.models} models of the future are trained on halves of the others.\n\n"
        f"- *plan (a, b)*: `copa_plan` with {N} counterfactuals and weights a of validity, b of diversity.\n"
        "- *radius r*: the same with r² added to each variance, so that the mean may be off by r in any direction.\n"
        f"- *later moments*: those of {LATER_MODELS} models on halves of the tenth that is known.\n"
        "- *rule*: one answer of `ceopt.explain` under `ceopt.RobustValidity`, nearest in l1, all its columns in "
        "range.\n"
        "\nMeans over seeds of the mean over people (standard error over seeds). Proximity is the mean Euclidean "
        "distance on columns in [0, 1]. A plan is valid if all its counterfactuals are, a rule's answer is but one."
    )
    parts = [first]
    for name, protocol in _cases(names).items():
        abouts = [kept[f"{name}/{seed}/about"] for seed in range(size.seeds)]
        shift, later = (spread([one[what] for one in abouts]) for what in ("shift", "later"))
        rows = []
        for method in METHODS:
            found = _records(kept, name, method, size)
            asked, answers = (sum(one[what] for one in found) for what in ("people", "answers"))
            whole = [one for one in found if one["answers"]]
            cells = ["", "", ""]
            if whole:
                cells = [spread([one[what] for one in whole]) for what in ("empirical", "over_dice", "proximity")]
            rows.append([method, f"{answers}/{asked}", *cells])
        head = ("method", "answers", "empirical validity", "less DiCE's", "proximity")
        about = f"The moments of the futures are {shift} from the present ones, and {later} from the later ones."
        parts.append(f"## {name}, protocol {protocol}\n\n{about}\n\n{markdown(head, rows)}")
    if is_full:
        advice = "\n".join(f"- {_advice(kept, name, size)}" for name in _cases(names))
        parts.append(f"## What survives, and at which price\n\n{advice}\n{_GENERAL}")
    return "\n\n".join(parts)


_GENERAL = (
    "- *So:* measure how far the moments of two past trainings are apart, and plan for that radius. Where that is not "
    "enough, as on German, later rows are; until there are some, offer a single answer under a rule, and report how "
    "many retrained models accept it, not its L* alone."
)


def _records(kept: Mapping[str, Any], name: str, method: str, size: Size) -> list[dict[str, Any]]:
    return [kept[f"{name}/{seed}/{method}"] for seed in range(size.seeds)]


def _mean(kept: Mapping[str, Any], name: str, method: str, size: Size, what: str) -> float:
    found = [one[what] for one in _records(kept, name, method, size) if one["answers"]]
    return float(np.mean(found)) if found else float("nan")


def _advice(kept: Mapping[str, Any], name: str, size: Size) -> str:
    """Return which methods most futures accept, their price against the plan of table 1, and what the others reach."""
    usual = "plan (1, 10)"
    price = _mean(kept, name, usual, size, "proximity")
    surviving, others = [], []
    for method in METHODS:
        validity = _mean(kept, name, method, size, "empirical")
        if not np.isfinite(validity):
            continue
        over = [one["over_dice"] for one in _records(kept, name, method, size) if one["answers"]]
        far = _mean(kept, name, method, size, "proximity")
        text = f"{method} {validity:.3f} at a proximity of {far:.3f}"
        is_more = method == "DiCE" or float(np.mean(over)) > ERRORS * standard_error(over)
        if validity >= SURVIVING and is_more:
            surviving.append(text)
        else:
            others.append(text)
    return (
        f"*{name}.* {usual} is at {price:.3f}. Most futures accept: {'; '.join(surviving) or 'nothing'}. "
        f"They reject, or do not accept more often than DiCE's: {'; '.join(others) or 'nothing'}."
    )
