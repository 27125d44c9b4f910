"""All questions of the comparison, answered one by one or side by side, and kept as they come."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from paper.journal import Journal
from tqdm import tqdm

from ce_ocl import comparison, comparison_dice
from ce_ocl.comparison_asking import METHODS, ask
from ce_ocl.comparison_models import KINDS, fitted, tuned

__all__ = ["case_of", "opened", "questions", "run", "runners_up"]


def opened(path: Path | None) -> Journal:
    """Return the journal in a file."""
    return Journal(path, ("ceopt", "highspy", "numpy", "scikit-learn"))


def run(keys: Iterable[str], journal: Journal, jobs: int, *, quiet: bool) -> None:
    """Answer what the journal does not have yet."""
    todo = [(key, _needs(key, journal)) for key in keys if key not in journal.kept]
    with tqdm(total=len(todo), unit="result", file=sys.stderr, disable=quiet) as bar:
        for key, result in _each(answer, todo, jobs):
            bar.set_description(key)
            journal.add(key, result)
            bar.update()


def _each(make: Callable[[tuple[str, str]], Any], todo: list[tuple[str, str]], jobs: int) -> Iterator[tuple[str, Any]]:
    if jobs == 1:
        yield from ((item[0], make(item)) for item in todo)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from zip([key for key, _ in todo], pool.map(make, todo), strict=True)


# ---- questions, by their keys ----------------------------------------------------------------------------------------
def questions(names: Sequence[str], kinds: Sequence[str], *, with_dice: bool) -> Iterator[str]:
    """Give the keys ``data/kind/0/method/person``, 0 being the best model of the grid."""
    for method, name, kind in itertools.product((*METHODS, "dice"), names, kinds):
        if method == "dice":
            wanted = with_dice and hasattr(KINDS[kind].estimator, "predict_proba")
        else:
            way = METHODS[method]
            wanted = kind in (way.kinds or kinds) and name in (way.data_sets or names)
        if wanted:
            yield from (f"{name}/{kind}/0/{method}/{k}" for k in range(len(case_of(name).people)))


def runners_up(name: str, kind: str, journal: Journal) -> Iterator[str]:
    """Give the same of the other models of the grid, next best first."""
    for place in range(1, len(journal.kept[f"{name}/{kind}"])):
        yield from (f"{name}/{kind}/{place}/pool/{k}" for k in range(len(case_of(name).people)))


def _needs(key: str, journal: Journal) -> str:
    """Return the options of the model that a question is for, as text; of a grid none."""
    name, kind, *rest = key.split("/")
    return json.dumps(journal.kept[f"{name}/{kind}"][int(rest[0])]["options"]) if rest else ""


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
def case_of(name: str) -> comparison.Case:
    """Return a data set, read once."""
    return comparison.loans() if name == "loans" else comparison.load(name)


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
