"""What "the loss stands still" may mean in the released training, and which meaning the printed numbers allow.

The present model takes up to 2,000 steps or stops. Its data are those of protocol "paper", everything drawn anew with
each seed. What a rule decides shows in DiCE's plans, which lie on the present model's boundary.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from shared.journal import Journal
from shared.table import markdown
from tqdm import tqdm

from ceopt.plans import copa_plan, validity_bounds
from copa import descent, models
from copa.protocol import Case, Floats, load
from copa.report import ERRORS, published, spread, standard_error
from copa.table import EVALUATED, JUDGED, MARGIN, RADIUS, SEED, WEIGHTS, N

__all__ = ["FAST", "MEASURES", "TITLE", "VARIANTS", "Size", "described", "run"]

TITLE = "which rule stops the released training"
MEASURES = (
    "ceopt/plans/copa.py",
    "ceopt/plans/validity.py",
    "examples/papers/copa/descent.py",
    "examples/papers/copa/models.py",
    "examples/papers/copa/protocol.py",
    "examples/papers/copa/stopping.py",
)
#: Name -> rule, and most steps of the present model: the last has as many as all other models.
VARIANTS: Mapping[str, tuple[str, int]] = {
    **{rule: (rule, models.PRESENT_STEPS) for rule in models.RULES},
    "short": ("improvement", models.OTHER_STEPS),
}
#: The data on which training overshoots, and steps within which a model has stopped early.
OVERSHOOTING, EARLY = "sba", 100
#: The present logistic regressions of the paper's table 2: accuracy and area under the curve.
PRINTED: Mapping[str, tuple[float, float]] = {"german": (0.71, 0.64), "sba": (0.71, 0.86), "student": (0.83, 0.91)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done.

    Parameters
    ----------
    seeds
        How often everything is drawn.
    people
        Of each data set and seed.
    models
        For the moments, and as many of the future.
    starts
        Of the present model on the first split of SBA, where it overshoots.
    """

    seeds: int = 10
    people: int = 8
    models: int = 80
    starts: int = 20


FAST = Size(seeds=1, people=2, models=40, starts=2)


def run(names: Sequence[str], size: Size, journal: Journal, *, quiet: bool) -> None:
    """Answer what the journal does not have yet."""
    for seed in range(size.seeds):
        for name in tqdm(names, unit="data set", desc=f"seed {seed}", file=sys.stderr, disable=quiet):
            case = load(name, "paper", seed)
            trained: dict[str, tuple[Floats, Floats]] = {}
            for variant, (rule, _) in VARIANTS.items():
                key = f"{name}/{seed}/{variant}"
                if key in journal.kept:
                    continue
                if rule not in trained:
                    trained[rule] = _others(case, rule, size, seed)
                journal.add(key, _result(case, variant, trained[rule], size, 3 * seed))
    if OVERSHOOTING in names:
        _from_starts(size, journal)


def _from_starts(size: Size, journal: Journal) -> None:
    """Answer the same of other starts, the split and all other models being those of the first seed."""
    case = load(OVERSHOOTING, "paper", 0)
    left = [start for start in range(size.starts) if f"starts/{start}" not in journal.kept]
    others = _others(case, "improvement", size, 0) if left else None
    for start in left:
        assert others is not None  # noqa: S101 - some are left
        journal.add(f"starts/{start}", _result(case, "improvement", others, size, start, with_copa=True))


def _others(case: Case, rule: str, size: Size, seed: int) -> tuple[Floats, Floats]:
    """Return the models of the moments and those of the future."""
    options: dict[str, Any] = {"steps": models.OTHER_STEPS, "rule": rule}
    members = models.halves(case.y, size.models, seed)
    known = models.trained(case.X, case.y, members, random_state=3 * seed + 1, **options)
    members = models.halves(case.later_y, size.models, seed)
    return known, models.trained(case.later_rows, case.later_y, members, random_state=3 * seed + 2, **options)


def _result(
    case: Case,
    variant: str,
    others: tuple[Floats, Floats],
    size: Size,
    start: int,
    *,
    with_copa: bool = False,
) -> dict[str, Any]:
    """Return the present model's steps and accuracy, and what DiCE's plans of it are worth."""
    rule, steps = VARIANTS[variant]
    taken: list[int] = []
    options: dict[str, Any] = {"random_state": start, "rule": rule, "taken": taken}
    model = models.trained(case.X, case.y, case.train[None], steps=steps, **options)[0]
    known, future = others
    scores = case.X @ model
    people = case.X[case.people(scores, size.people)]
    plans = descent.dice(case, descent.scored(model), people, n=N)
    mean, covariance = known.mean(axis=0), 1.5 * EVALUATED * np.cov(known, rowvar=False)
    test = ~case.train
    accuracy, area = models.accuracy(scores[test], case.y[test])
    found = {
        "steps": taken[0],
        "model": model.tolist(),
        "accuracy": accuracy,
        "area": area,
        "rejected": float((scores < 0.0).mean()),
        "proximity": float(np.linalg.norm(plans - people[:, None], axis=2).mean()),
        "lower": float(np.mean([validity_bounds(plan, mean, covariance, RADIUS).lower for plan in plans])),
        "empirical": float(np.mean([models.validity(plan, future) for plan in plans])),
    }
    if with_copa:
        inflated = mean, 1.5 * np.cov(known, rowvar=False)
        found["copa"] = float(np.mean([models.validity(_planned(case, row, *inflated), future) for row in people]))
    return found


def _planned(case: Case, row: Floats, mean: Floats, covariance: Floats) -> Floats:
    """Return a person's plan by the published descent with the last weights of table 1."""
    validity, diversity = WEIGHTS[1][-1]
    found = copa_plan(
        row,
        mean,
        covariance,
        n=N,
        validity_weight=validity,
        diversity_weight=diversity,
        margin=MARGIN,
        fixed=case.fixed,
        bounds=(0.0, 1.0),
        method="descent",
        random_state=SEED,
    )
    assert found.plan is not None  # noqa: S101 - the margin is within reach
    return found.plan


# ---- page ------------------------------------------------------------------------------------------------------------
_MEANINGS = {
    "improvement": "the loss falls by under 1e-5, or rises",
    "absolute": "the loss changes by under 1e-5",
    "relative": "the loss changes by under 1e-5 of itself",
    "short": "as *improvement*, and after 200 steps, as all other models, where the code says 2,000",
}


def described(kept: Mapping[str, Any], names: Sequence[str], size: Size, *, is_full: bool) -> str:
    """Return the runs beside the printed numbers, and what they settle."""
    meanings = "\n".join(f"- *{name}*: {text}." for name, text in _MEANINGS.items())
    first = (
        f"The released code ends the training of a model after {models.PATIENCE} steps in a row that improve its loss "
        f"by under 1e-5. What a step counts as that changes the loss by more in the wrong direction, and whether 1e-5 "
        f"is of the loss, its description leaves open:\n\n{meanings}\n\n"
        f"Protocol paper, {size.seeds} seeds of split, start and halves, {size.people} people a data set and seed, "
        f"moments of {size.models} models and {size.models} of the future, all by the same rule. Mean (standard error "
        "over seeds); steps from the fewest to the most of a seed. *Paper* has its table 2 and DiCE's row of table 1."
    )
    head = ("data", "rule", "steps", "accuracy", "AUC", "DiCE: proximity", "L*", "empirical validity")
    rows = []
    for name in names:
        for variant in VARIANTS:
            found = _records(kept, name, variant)
            steps = [one["steps"] for one in found]
            cells = [
                spread([one[what] for one in found]) for what in ("accuracy", "area", "proximity", "lower", "empirical")
            ]
            rows.append([name, variant, f"{min(steps)} to {max(steps)}", *cells])
        if name in PRINTED:
            printed = published()[1, name, "dice"]
            about = [f"{value:.2f}" for value in PRINTED[name]]
            plans = [f"{printed[what][0]:.3f}" for what in ("proximity", "lower", "empirical")]
            rows.append([name, "*paper*", "", *about, *plans])
    parts = [first, markdown(head, rows)]
    if OVERSHOOTING in names:
        text = (
            f"The split and all other models are those of the first seed; {size.starts} starts of the present model, "
            'by *improvement*. *COPA\'s* is the empirical validity of `copa_plan(method="descent")` with the weights '
            f"{JUDGED[1]}, for the same people:"
        )
        parts.append(f"## SBA, start by start\n\n{text}\n\n{_by_start(kept, size)}")
    if is_full:
        parts.append("## What that settles\n\n" + _settled(kept, names, size))
    return "\n\n".join(parts)


def _records(kept: Mapping[str, Any], name: str, variant: str) -> list[dict[str, Any]]:
    return [value for key, value in kept.items() if key.startswith(f"{name}/") and key.endswith(f"/{variant}")]


def _by_start(kept: Mapping[str, Any], size: Size) -> str:
    rows = []
    for start in range(size.starts):
        one = kept[f"starts/{start}"]
        numbers = [f"{one[what]:.3f}" for what in ("accuracy", "rejected", "proximity", "lower", "empirical", "copa")]
        rows.append([start, one["steps"], *numbers])
    head = (
        "start",
        "steps",
        "accuracy",
        "present rows rejected",
        "DiCE: proximity",
        "L*",
        "empirical validity",
        "COPA's",
    )
    return markdown(head, rows) + "\n\n" + _beside(kept, size)


def _beside(kept: Mapping[str, Any], size: Size) -> str:
    """Return whether COPA's plans survive more often than DiCE's, over starts."""
    over = [kept[f"starts/{start}"]["copa"] - kept[f"starts/{start}"]["empirical"] for start in range(size.starts)]
    mean, error = float(np.mean(over)), standard_error(over)
    verdict = "reached" if mean > ERRORS * error else "**not reached**"
    fewer = sum(value < 0.0 for value in over)
    return (
        f"Over these starts COPA's validity less DiCE's is {mean:+.3f} (standard error over starts {error:.3f}): "
        f"{verdict}; with {fewer} of the {size.starts} it is below DiCE's."
    )


def _settled(kept: Mapping[str, Any], names: Sequence[str], size: Size) -> str:
    """Return which rules the printed numbers allow, in counts of the runs above."""
    alike = []
    for name in names:
        pairs = zip(_records(kept, name, "absolute"), _records(kept, name, "relative"), strict=True)
        if all(np.allclose(first["model"], second["model"]) for first, second in pairs):
            alike.append(name)
    apart = {}
    for name in names:
        if name not in alike:
            both = [_mean(kept, name, rule, "empirical") for rule in ("absolute", "relative")]
            apart[name] = f"{both[0]:.3f} and {both[1]:.3f}"
    sba = {variant: _records(kept, OVERSHOOTING, variant) for variant in VARIANTS}
    printed = published()[1, OVERSHOOTING, "dice"]["empirical"]
    starts = [kept[f"starts/{start}"] for start in range(size.starts)]
    overshot = [one for one in starts if one["steps"] < EARLY]
    high = [one for one in overshot if one["empirical"] > 0.5]
    bounds = [one["lower"] for one in high]
    low = max((one["empirical"] for one in starts if one["empirical"] <= 0.5), default=0.0)
    never = max(one["empirical"] for variant in ("absolute", "relative") for one in sba[variant])
    exact = _mean(kept, OVERSHOOTING, "absolute", "accuracy")
    few, many = (_mean(kept, "student", variant, "empirical") for variant in ("short", "improvement"))
    early, late = (_mean(kept, "student", variant, "accuracy") for variant in ("short", "improvement"))
    return "\n".join(
        [
            (
                f"- *Absolute or relative?* On {_listed(alike)} both end with the same present models in all "
                f"{size.seeds} seeds, those of the 2,000th step; on {_listed(list(apart))} they differ, and DiCE's "
                f"validity is {'; '.join(apart.values())}."
            ),
            (
                f"- *SBA.* A step of {models.RATE:g} on a summed loss overshoots. By *improvement* that counts as "
                f"standing still: {len(overshot)} of {size.starts} starts end within {EARLY} steps, wherever they are "
                f"then. In {len(high)} of these DiCE's plans have an empirical validity above one half "
                f"({_ends([one['empirical'] for one in high])}; L* {_ends(bounds)}), in all others at most "
                f"{low:.3f}; the paper prints {printed[0]:.3f}. By *absolute* and *relative* training goes on to an "
                f"accuracy of {exact:.2f} (the paper: {PRINTED[OVERSHOOTING][0]:.2f}), and DiCE's validity is never "
                f"above {never:.3f}. So the printed row is the draw of a start, and only the rule by which an "
                "overshoot ends training can draw it. The overshoot itself does not make plans fail: with some starts "
                "it makes them hold, and more often than COPA's."
            ),
            (
                "- *Student.* No rule stops the present model before its 2,000 steps. After 200 its accuracy is "
                f"{early:.3f} and DiCE's empirical validity {few:.3f}, after 2,000 {late:.3f} and {many:.3f}; the "
                f"paper prints {PRINTED['student'][0]:.2f} and {published()[1, 'student', 'dice']['empirical'][0]:.3f}."
            ),
            f"- The tables stop by *{models.RULE}*.",
        ]
    )


def _mean(kept: Mapping[str, Any], name: str, variant: str, what: str) -> float:
    return float(np.mean([one[what] for one in _records(kept, name, variant)]))


def _ends(values: Sequence[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}" if values else "none"


def _listed(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words) or "none"
    return ", ".join(words[:-1]) + f" and {words[-1]}"
