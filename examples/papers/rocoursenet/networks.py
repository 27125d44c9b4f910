"""CounterNet and RoCourseNet, one for each part of a data set, as the study trains them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from ceopt.training import CounterNet, RoCourseNet
from rocoursenet.protocol import Case, Part

__all__ = ["ATTACKER", "KINDS", "Fitted", "as_printed", "attacker_of", "fitted"]

KINDS: Mapping[str, type[CounterNet | RoCourseNet]] = {"CounterNet": CounterNet, "RoCourseNet": RoCourseNet}
#: What RoCourseNet is trained against: T, K and E of the paper.
ATTACKER: Mapping[str, Any] = {"attack_steps": 7, "unroll": 2, "perturbation": 0.1}
#: What the protocols differ in. The paper's generator says what a row becomes.
OF_PROTOCOL: Mapping[str, Mapping[str, Any]] = {
    "honest": {"residual": True},
    "paper": {"residual": False, "activation": "leaky_relu", "label_smoothing": True},
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A network trained on one part.

    Parameters
    ----------
    part
        The data.
    train, test
        Places of the rows that it was trained on, and of the others.
    model
        The network.
    seconds
        That training took.
    """

    part: Part
    train: NDArray[Any]
    test: NDArray[Any]
    model: CounterNet | RoCourseNet
    seconds: float

    @property
    def trained_rows(self) -> pd.DataFrame:
        """The rows that it was trained on."""
        return self.part.X.iloc[self.train]

    def tested_rows(self, count: int | None = None) -> pd.DataFrame:
        """Return the first test rows, or all."""
        return self.part.X.iloc[self.test[:count]]


def attacker_of(case: Case) -> dict[str, Any]:
    """Return what RoCourseNet is trained against on a data set."""
    return {**ATTACKER, **case.attacker}


def as_printed(case: Case) -> dict[str, Any]:
    """Return what of a data set's attacker is otherwise in the paper, as the paper has it; empty where nothing is."""
    printed = {"perturbation": ATTACKER["perturbation"], "attacked": "all"}
    own = {"attacked": "all", **attacker_of(case)}
    return {name: value for name, value in printed.items() if own[name] != value}


def fitted(
    case: Case,
    kind: str,
    seed: int,
    epochs: int | None = None,
    *,
    parts: Sequence[Part] | None = None,
    quiet: bool,
    **options: Any,
) -> list[Fitted]:
    """Return a network for each part of a data set, all with one seed.

    Parameters
    ----------
    case
        The data set.
    kind
        "CounterNet" or "RoCourseNet".
    seed
        Of split and network.
    epochs
        Instead of those of the data set.
    parts
        Some of the parts; None: all.
    quiet
        Whether no bar is shown.
    options
        What differs from the settings of the data set.
    """
    attacker: Mapping[str, Any] = {}
    if kind == "RoCourseNet":
        attacker = attacker_of(case)
    settings = {**case.settings, **OF_PROTOCOL[case.protocol], **attacker, **options}
    found = []
    for part in tqdm(parts or case.parts, desc=f"{case.name}, {kind}, seed {seed}", unit="network", disable=quiet):
        train, test = part.split(seed)
        model = KINDS[kind](
            space=case.space, epochs=epochs or case.epochs, patience=None, random_state=seed, **settings
        )
        begun = time.perf_counter()
        model.fit(part.X.iloc[train], part.y[train])
        found.append(Fitted(part, train, test, model, time.perf_counter() - begun))
    return found
