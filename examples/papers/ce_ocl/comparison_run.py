"""All questions of the comparison, answered one by one or side by side, and kept as they come."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from shared.journal import Journal
from tqdm import tqdm

from ce_ocl import comparison_cases, comparison_dice
from ce_ocl.comparison_asking import ANSWERS, GAP, LIMIT_S, METHODS, ask
from ce_ocl.comparison_models import KINDS, fitted, tuned

__all__ = ["SEEDS", "case_of", "opened", "others", "questions", "run", "runners_up"]

#: Of other trainings of the best model, where a measure may depend on which one was drawn.
SEEDS = (2, 3, 4, 5)


def opened(path: Path | None, dice: str | None = None) -> Journal:
    """Return the journal in a file, of what is asked now."""
    asked = {"asked": repr((ANSWERS, GAP, LIMIT_S, METHODS)), "dice-ml": dice or "none"}
    return Journal(path, ("ceopt", "highspy", "numpy", "scikit-learn"), asked)


def run(keys: Iterable[str], journal: Journal, jobs: int, *, quiet: bool) -> None:
    """Answer what the journal does not have yet."""
    todo = [(key, _needs(key, journal)) for key in keys if key not in journal.kept]
    with tqdm(total=len(todo), unit="result", file=sys.stderr, disable=quiet) as bar:
        work = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        for key, result in work(joblib.delayed(_kept)(*item) for item in todo):
            bar.set_description(key)
            journal.add(key, result)
            bar.update()


def _kept(key: str, options: str) -> tuple[str, Any]:
    return key, answer((key, options))


# ---- questions, by their keys ----------------------------------------------------------------------------------------
def questions(names: Sequence[str], kinds: Sequence[str], *, with_dice: bool) -> Iterator[str]:
    """Give the keys ``data/kind/0/method/person``, 0 being the best model of the grid."""
    for method, name, kind in itertools.product((*METHODS, "dice"), names, kinds):
        people = len(case_of(name).people)
        if method == "dice":
            wanted = with_dice and hasattr(KINDS[kind].estimator, "predict_proba")
        else:
            way = METHODS[method]
            wanted = kind in (way.kinds or kinds)
            if name not in (way.data_sets or names):
                people = min(people, way.few)
        if wanted:
            yield from (f"{name}/{kind}/0/{method}/{k}" for k in range(people))


def runners_up(name: str, kind: str, journal: Journal) -> Iterator[str]:
    """Give the same of the other models of the grid, next best first, and of the best one trained from other seeds."""
    places = others(name, kind, journal.kept)
    yield from (f"{name}/{kind}/{place}/pool/{k}" for place in places for k in range(len(case_of(name).people)))


def others(name: str, kind: str, kept: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of all models but the best, by their place in a key."""
    found = kept[f"{name}/{kind}"]
    places = {str(k): option["options"] for k, option in enumerate(found) if k}
    if "random_state" in KINDS[kind].estimator.get_params():
        places |= {f"seed {seed}": found[0]["options"] | {"random_state": seed} for seed in SEEDS}
    return places


def _needs(key: str, journal: Journal) -> str:
    """Return the options of the model that a question is for, as text; of a grid none."""
    name, kind, *rest = key.split("/")
    if not rest:
        return ""
    best = {"0": journal.kept[f"{name}/{kind}"][0]["options"]}
    return json.dumps((best | others(name, kind, journal.kept))[rest[0]])


def answer(item: tuple[str, str]) -> Any:
    """Return the result of a key."""
    key, options = item
    name, kind, *rest = key.split("/")
    if not rest:
        return _models(name, kind)
    model, place = _model(name, kind, options), int(rest[2])
    person = case_of(name).people.iloc[[place]]
    if model.predict(person)[0] == 1:
        return {"status": "already_favourable", "gap": None, "cpu_s": 0.0, "answers": []}
    if rest[1] == "dice":
        return _dice(name, kind, options).ask(person, seed=place)
    return ask(case_of(name), model, rest[1], person)


@cache
def case_of(name: str) -> comparison_cases.Case:
    """Return a data set, read once."""
    return comparison_cases.loans() if name == "loans" else comparison_cases.load(name)


def _models(name: str, kind: str) -> list[dict[str, Any]]:
    case, found = case_of(name), tuned(case_of(name), kind)
    rest: pd.DataFrame = case.data[~case.train]
    for one in found[:1]:
        says = fitted(case, kind, one["options"]).predict(rest)
        one["accuracy"] = float((says == case.labels[~case.train]).mean())
    return found


@cache
def _model(name: str, kind: str, options: str) -> Any:
    return fitted(case_of(name), kind, json.loads(options))


@cache
def _dice(name: str, kind: str, options: str) -> comparison_dice.Dice:
    return comparison_dice.Dice(case_of(name), _model(name, kind, options))
