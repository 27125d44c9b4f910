"""Tables of the comparison: what was measured beside what the paper printed, the checks, and what was to be reached."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from shared.table import markdown

from ce_ocl.comparison_asking import METHODS, summary
from ce_ocl.comparison_judged import (
    CAUSE,
    FAVOURED,
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
    is_reached,
    published,
)
from ce_ocl.comparison_run import others
from ce_ocl.comparison_words import about, first_words, trainings

__all__ = ["CAUSE", "MEASURES", "OURS", "briefly", "exceptions", "group", "page", "published"]

_READING = (
    "A mean counts as equal within the paper's standard error and the rounding of its two decimals. A cell is reached "
    "where one set is as good in every measure."
)
_OTHERS = (
    "Where neither set of answers is as good as the paper's: the same model by another objective (raw, of "
    "heloc_imputed only), and where that is no better either, the same people with the other models of the grid, and "
    "with the best one trained from other seeds."
)
_ONE = "The first answer of each person, of forests, beside table 2 of the paper."
_BESIDE = ("people", *(f"{MEASURES[name]}, ours / paper" for name in TARGETS))


# ---- what was to be reached ------------------------------------------------------------------------------------------
def _target_table(kept: Kept, names: Sequence[str]) -> str:
    cells = itertools.product([n for n in TARGET_DATA if n in names], TARGET_KINDS)
    lines = [
        [name, kind, method, *beside]
        for name, kind in cells
        for method in OURS
        if (beside := _beside(kept, name, kind, method))
    ]
    return markdown(("data", "model", "set", *_BESIDE), lines)


def _exception_table(kept: Kept, names: Sequence[str]) -> str:
    lines = []
    for name, kind in exceptions(kept, names):
        best, *_ = grid = kept[f"{name}/{kind}"]
        scores = {str(k): f"{option['auc']:.4f}" for k, option in enumerate(grid)}
        for place, options in ({"0": best["options"]} | others(name, kind, kept)).items():
            for method in (*OURS, CAUSE):
                if beside := _beside(kept, name, kind, method, place):
                    favoured = sum(r["status"] == FAVOURED for r in group(kept, name, kind, method, place))
                    says = ", ".join(f"{word} {value}" for word, value in options.items())
                    lines.append([name, kind, says, scores.get(place, ""), favoured, method, *beside])
    head = ("data", "model", "options", "AUC", "already favoured", "set", *_BESIDE)
    return markdown(head, lines) if lines else "None."


def _beside(kept: Kept, name: str, kind: str, method: str, place: str = "0") -> list[str]:
    """Return people and measures of a set of answers beside the paper's, and which is better; nothing if not asked."""
    records = asked(group(kept, name, kind, method, place))
    if not records:
        return []
    ours, paper = summary(records), published()[3, name, kind, "CE-OCL"]
    cells = [f"{sum(bool(record['answers']) for record in records)}/{len(records)}"]
    for one in TARGETS:
        if one not in paper:
            cells.append("")
        elif one not in ours:
            cells.append(f"none / {cell(paper[one])}: **worse**")
        else:
            mark = "as good" if is_reached(ours[one][0], paper[one]) else "**worse**"
            cells.append(f"{cell(ours[one])} / {cell(paper[one])}: {mark}")
    return cells


# ---- tables ----------------------------------------------------------------------------------------------------------
def page(kept: Kept, names: Sequence[str], kinds: Sequence[str], dice: str | None) -> str:
    """Return everything of some data and kinds as Markdown."""
    kept = {key: value for key, value in kept.items() if key.split("/")[0] in names and key.split("/")[1] in kinds}
    kept = briefly(kept)
    parts = [
        first_words(kept, names, kinds),
        about(kept, names, dice),
        f"## Models\n\n{_model_table(kept, names, kinds)}",
        *(f"## {name}\n\n{_data_table(kept, name, kinds)}" for name in names),
        f"## One answer each\n\n{_ONE}\n\n{_first_table(kept, names)}",
        f"## Checks\n\n{_checks(kept)}",
    ]
    if set(names) & set(TARGET_DATA):
        parts += [f"## At least as good as CE-OCL's rows\n\n{_READING}\n\n{_target_table(kept, names)}"]
        parts += [f"## Exceptions\n\n{_OTHERS}\n\n{_exception_table(kept, names)}"]
        parts += [trainings(kept, *cell) for cell in exceptions(kept, names, (*OURS, CAUSE))]
    return "\n\n".join(filter(None, parts))


def briefly(kept: Kept) -> Kept:
    """Return results with the number of answers in the place of the answers: all that the tables tell."""
    brief = dict(kept)
    for key, value in kept.items():
        if isinstance(value, dict) and isinstance(value["answers"], list):
            brief[key] = {**value, "answers": len(value["answers"])}
    return brief


def _model_table(kept: Kept, names: Sequence[str], kinds: Sequence[str]) -> str:
    lines = []
    for name, kind in itertools.product(names, kinds):
        best, records = kept[f"{name}/{kind}"][0], group(kept, name, kind, "pool")
        options = ", ".join(f"{word} {value}" for word, value in best["options"].items())
        lines.append(
            [name, kind, options, f"{best['auc']:.4f}", f"{best['accuracy']:.3f}", len(records) - len(asked(records))]
        )
    return markdown(("data", "model", "options", "AUC, 3 folds", "accuracy, test", "already favoured"), lines)


def _data_table(kept: Kept, name: str, kinds: Sequence[str]) -> str:
    lines = []
    for kind in kinds:
        for method in (*METHODS, "dice"):
            records = asked(group(kept, name, kind, method))
            if not records:
                continue
            answered = [record for record in records if record["answers"]]
            proved = sum(record["status"] == "optimal" for record in records)
            share = "" if method == "dice" else f"{proved}/{len(records)}"
            title = "dice-ml" if method == "dice" else f"ceopt, {method}"
            cpu = f"{np.median([record['cpu_s'] for record in records]):.2f}"
            means = summary(answered)
            lines.append([kind, title, f"{len(answered)}/{len(records)}", share, *_cells(means), cpu])
        mark = ", no target" if kind == "boosting" else ""
        for method in ("CE-OCL", "CE-OCL_tr", "DiCE"):
            row = published().get((3, name, kind, method))
            if row:
                title = f"paper, {method}{mark if method != 'DiCE' else ''}"
                lines.append([kind, title, "", "", *_cells(row), ""])
    return markdown(("model", "answers", "people", "proved optimal", *MEASURES.values(), "CPU s"), lines)


def _first_table(kept: Kept, names: Sequence[str]) -> str:
    columns, lines = (*MEASURES,)[:4], []
    for name in names:
        for method in (*METHODS, "dice"):
            records = asked(group(kept, name, "forest", method))
            if found := summary(records, "first"):
                title = "dice-ml" if method == "dice" else f"ceopt, {method}"
                people = sum(bool(record["first"]) for record in records)
                lines.append([name, title, str(people), *_cells(found, columns)])
        lines += [
            [name, f"paper, {method}", "", *_cells(row, columns)]
            for method in ("CE-OCL", "CE-OCL_tr", "DiCE")
            if (row := published().get((2, name, "forest", method)))
        ]
    return markdown(("data", "answers", "people", *(MEASURES[one] for one in columns)), lines)


def _checks(kept: Kept) -> str:
    lines = []
    for who, methods in (("ceopt", tuple(METHODS)), ("dice-ml", ("dice",))):
        records = [r for key, r in kept.items() if key.count("/") == 4 and key.split("/")[3] in methods]
        answers = sum(record["answers"] for record in records)
        if not records:
            continue
        counts = [sum(record.get(word, 0) for record in records) for word in ("valid", "valid_numpy", "kept")]
        how = ", ".join(f"{word} {count}" for word, count in Counter(r["status"] for r in records).most_common())
        gap = max((record["gap"] for record in records if record["gap"] is not None), default=0.0)
        lines.append([who, len(records), answers, *counts, how, f"{gap:.1e}" if who == "ceopt" else ""])
    head = ("", "questions", "answers", "valid by the model", "valid in numpy", "fixed columns kept", "status", "gap")
    return markdown(head, lines)


def _cells(values: Mapping[str, Sequence[float]], columns: Iterable[str] = MEASURES) -> list[str]:
    return [cell(values[name]) if name in values else "" for name in columns]
