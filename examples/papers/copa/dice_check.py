"""dice-ml's gradient method beside its descent restated, person by person.

dice-ml and PyTorch are needed (benchmarks/requirements-copa.txt), and 4 to 200 seconds a person.
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

from copa import descent, table
from copa.dice import Dice
from copa.protocol import PROTOCOLS, Floats

__all__ = ["FAST", "MEASURES", "TITLE", "Size", "described", "run"]

TITLE = "dice-ml itself, and its descent restated"
MEASURES = ("examples/papers/copa/descent.py", "examples/papers/copa/dice.py", "examples/papers/copa/dice_check.py")
#: Steps after which the two are compared before they part.
EARLY = 100
#: Plans that differ by no more agree; so many people may vouch for means.
AGREEING, ENOUGH = 1e-3, 30
COMPARED = ("proximity", "diversity", "lower", "empirical")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many people are asked about, of each table, protocol and data set; and models of moments and futures."""

    people: int = 30
    models: int = 400
    networks: int = 30


FAST = Size(people=1, models=40, networks=2)


def run(names: Sequence[str], size: Size, journal: Journal, *, quiet: bool) -> None:
    """Answer what the journal does not have yet."""
    cases = [(number, protocol, name) for number in table.WEIGHTS for protocol in PROTOCOLS for name in names]
    much = table.Size(people=size.people, moments=size.models, futures=size.models, networks=size.networks)
    for number, protocol, name in cases:
        study = table.Study(number, name, protocol, much)
        dice = Dice(study.case, study.model)
        for k in tqdm(range(len(study.people)), unit="person", desc=study.key, file=sys.stderr, disable=quiet):
            key = f"{number}/{protocol}/{name}/{k}"
            if key not in journal.kept:
                journal.add(key, _compared(study, dice, k))


def _compared(study: table.Study, dice: Dice, k: int) -> dict[str, Any]:
    """Return what dice-ml itself answers, what the restated descent does, and how far they are apart."""
    row = study.people[k]
    first = dice.plan(row, n=table.N, seed=table.SEED, steps=EARLY)
    same = descent.dice(study.case, descent.scored(study.model), row[None], n=table.N, steps=EARLY)[0]
    plan = dice.plan(row, n=table.N, seed=table.SEED)
    return {
        "itself": _measured(study, plan, k),
        "restated": _measured(study, study.dice_plans[k], k),
        "early": float(np.abs(first - same).max()),
        "apart": float(np.abs(plan - study.dice_plans[k]).max()),
    }


def _measured(study: table.Study, plan: Floats, k: int) -> dict[str, float]:
    found = study.measured(plan, k)
    return {name: found[name] for name in COMPARED}


# ---- page ------------------------------------------------------------------------------------------------------------
def described(kept: Mapping[str, Any], names: Sequence[str], size: Size, *, is_full: bool) -> str:  # noqa: ARG001 - as the other pages
    """Return how far the two are apart, early and at the end, and what both plans are worth."""
    lines = []
    for number in table.WEIGHTS:
        for protocol in PROTOCOLS:
            for name in names:
                start = f"{number}/{protocol}/{name}/"
                found = [record for key, record in kept.items() if key.startswith(start)]
                if not found:
                    continue
                apart = [f"{max(record[when] for record in found):.1e}" for when in ("early", "apart")]
                pairs = []
                for measure in COMPARED:
                    means = [np.mean([record[which][measure] for record in found]) for which in ("itself", "restated")]
                    pairs.append(" / ".join(f"{mean:.3f}" for mean in means))
                lines.append([number, protocol, name, len(found), *apart, *pairs])
    people = max((line[3] for line in lines), default=0)
    early = sum(float(line[4]) <= AGREEING for line in lines)
    late = sum(float(line[5]) <= AGREEING for line in lines)
    text = (
        "The first people of each data set by dice-ml itself / by its descent restated in numpy, which takes the same "
        "steps in double precision. Of rounding, hinges make steps of their own: after "
        f"{EARLY} steps plans agree to {AGREEING:g} in {early} of {len(lines)} rows, at the end in {late}. Each row is "
        f"of {people} people."
    )
    if people < ENOUGH:
        text += " That is too few to vouch for means."
    head = (
        "table",
        "protocol",
        "data",
        "people",
        f"greatest difference in a plan after {EARLY} steps",
        "at the end",
        "proximity",
        "diversity",
        "L*",
        "empirical validity",
    )
    return f"{text}\n\n{markdown(head, lines)}"
