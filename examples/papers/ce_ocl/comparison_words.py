"""The sentences of the comparison, computed from the records that they speak of."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ce_ocl.comparison_asking import FAR, GAP, LIMIT_S, METHODS, SOLVER, summary
from ce_ocl.comparison_cases import DATA_SETS
from ce_ocl.comparison_judged import (
    CAUSE,
    MEASURES,
    OURS,
    TARGET_DATA,
    TARGET_KINDS,
    TARGETS,
    Kept,
    asked,
    cell,
    exceptions,
    group,
    is_as_good,
    is_reached,
    published,
)
from ce_ocl.comparison_run import others

__all__ = ["about", "first_words", "trainings"]

#: In what the answers of a set differ.
DIVERSITY = "continuous_diversity"


def first_words(kept: Kept, names: Sequence[str], kinds: Sequence[str]) -> str:
    """Say how many cells are reached, like for like first, and how diverse the answers are that reach them."""
    targets = [
        (name, kind)
        for name, kind in itertools.product([n for n in TARGET_DATA if n in names], TARGET_KINDS)
        if kind in kinds
    ]
    said = []
    if targets:
        counts = {method: sum(is_as_good(kept, *cell, method) for cell in targets) for method in OURS}
        either = len(targets) - len(exceptions(kept, names))
        by_cause = len(targets) - len(exceptions(kept, names, (*OURS, CAUSE)))
        alike, *added = OURS
        each = ", ".join(f"*{method}* in {counts[method]}" for method in added)
        said.append(
            f"Like for like (*{alike}*: the paper's objective, its number of answers, and chosen before the run), "
            f"sparsity and proximity are as good as CE-OCL's rows in {counts[alike]} of {len(targets)} cells of data "
            f"and model. By sets that were added after a look at these results: {each}, one of the two in {either}, "
            f"and with *{CAUSE}*, of another objective, in {by_cause}."
        )
    below = [_less_diverse(kept, names, kinds, method) for method in OURS]
    if any(of for _, of in below):
        each = ", ".join(
            f"*{method}* in {less} of {of} rows" for method, (less, of) in zip(OURS, below, strict=True) if of
        )
        said.append(
            f"Their price is diversity: the three answers are nearer to one another than dice-ml's ({each}; continuous "
            "diversity)."
        )
    return " ".join(said)


def _less_diverse(kept: Kept, names: Sequence[str], kinds: Sequence[str], method: str) -> tuple[int, int]:
    """Return in how many rows a set is less diverse than dice-ml's, and of how many."""
    less = []
    for name, kind in itertools.product(names, kinds):
        mine, theirs = (summary(asked(group(kept, name, kind, who))) for who in (method, "dice"))
        if DIVERSITY in mine and DIVERSITY in theirs:
            less.append(mine[DIVERSITY][0] < theirs[DIVERSITY][0])
    return sum(less), len(less)


def about(kept: Kept, names: Sequence[str], dice: str | None) -> str:
    """Say what was asked, and in what it differs from the paper's."""
    used = {key.split("/")[3] for key in kept if key.count("/") == 4}
    ways = "\n".join(f"- **{name}**: {way.says}." for name, way in METHODS.items() if name in used)
    theirs = "No dice-ml here."
    if dice:
        theirs = (
            f"dice-ml {dice}, genetic, by its defaults, is asked about the same people, with another seed for each. "
            "Of each model there is one training, whose seed is the paper's."
        )
    text = (
        "Squared l2 on columns scaled to [0, 1] plus 10,000 for each changed column, three answers each, "
        f"{SOLVER}, relative gap {GAP:g}, {LIMIT_S:.0f} s a question (the paper: Gurobi, its gap of 1e-4). Measures "
        "are those of the suite ce_ocl2022, mean (standard error) over people whom the model does not favour already; "
        "the paper also counts the others, for whom any change is an answer. "
        f"Its columns have no bounds; ours have some {FAR:.0f} ranges away, except where they stay in range.\n\n"
        f"{ways}\n\n"
    )
    if not set(DATA_SETS) & set(names):
        return text + theirs
    split = (
        " Of gmsc the training part is missing: the rows at hand, the paper's test part, are split again, three to "
        "one, with its 30 people among those that no model is fitted on."
    )
    return (
        text + "The paper takes what the solver met on its way to the best answer, told apart by the fourth decimal, "
        "so that its three answers are often one and two beside it. Which answers are asked for was not fixed before "
        f"the run: *nearest* and *raw* were added after a look at the results of *pool*.{_hulls(kept, names)}"
        f"{split if 'gmsc' in names else ''}\n\n"
        f"{theirs} The paper's rows of boosting are no target (its embedding has no constraint), nor is its "
        "validity a measurement (it was set to 1)."
    )


def _hulls(kept: Kept, names: Sequence[str]) -> str:
    """Say of whom hulls are asked, and what became of those of whom few are."""
    way = METHODS["hull"]
    few = [name for name in names if name not in way.data_sets]
    records = [one for name in few for kind in way.kinds for one in asked(group(kept, name, kind, "hull"))]
    if not records:
        return ""
    over = [one for one in records if one["status"] != "optimal"]
    gaps = [one["gap"] for one in over if one["gap"] is not None]
    text = (
        f" *hull* is asked of all people of {' and '.join(way.data_sets)}; of {' and '.join(few)} of the first "
        f"{way.few} each, as its program has a weight for each person with the label wanted: of {len(records)} such "
        f"questions {len(over)} ended without a proof after {LIMIT_S:.0f} s (of the CPU "
        f"{np.median([one['cpu_s'] for one in records]):.0f} s in the median)"
    )
    if gaps:
        text += f", with gaps of {min(gaps):.2f} to {max(gaps):.2f}"
    return text + "."


def trainings(kept: Kept, name: str, kind: str) -> str:
    """Say what the best model of a cell that is not reached does over its trainings; nothing where it has no seed."""
    places = ["0", *(place for place in others(name, kind, kept) if place.startswith("seed"))]
    runs = [asked(group(kept, name, kind, "pool", place)) for place in places]
    runs = [records for records in runs if records]
    if len(runs) < 2:
        return ""
    paper = published()[3, name, kind, "CE-OCL"]
    measured = [summary(records) for records in runs]
    reached = 0
    for one in measured:
        reached += all(is_reached(one[measure][0], paper[measure]) for measure in TARGETS if measure in paper)
    said = []
    for measure in TARGETS:
        if measure in paper:
            values = [one[measure][0] for one in measured]
            said.append(f"{MEASURES[measure]} {np.mean(values):.2f} ± {np.std(values):.2f} / {cell(paper[measure])}")
    text = (
        f"Over {len(runs)} trainings of {name}'s best {kind} (mean ± standard deviation of the means / paper's): "
        f"{'; '.join(said)}. In {reached} of the {len(runs)} every measure is as good"
    )
    return text + (": it depends on the training." if 0 < reached < len(runs) else ".")
