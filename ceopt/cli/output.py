"""What the commands do that needs the package: read answers, print them, explain for a demonstration.

Apart from the commands, so that ``ceopt version``, help and completion wait for nothing that they do not use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ceopt.base.results import Status
from ceopt.datasets import loans
from ceopt.formulations.constraints import MaxChanges
from ceopt.recourse import Recourse
from ceopt.result.cohort import FORMAT, Cohort
from ceopt.result.shown import rows
from ceopt.result.solution_set import SolutionSet
from ceopt.search.prepare import AS_BLACK_BOX
from ceopt.solvers.errors import InvalidValueError, UnsupportedModelError, counted, printable
from ceopt.solvers.whole_files import json_document, read_text
from ceopt.words.sentences import name_with_unit

if TYPE_CHECKING:
    from ceopt.formulations.space.space import FeatureSpace

# ==== Answers of a file: a result, a cohort, or the lines that ``ceopt explain --json`` prints ========================

_WHO: Final = "ceopt report"


def read_answers(path: Path) -> SolutionSet | Cohort:
    """Read one result, a cohort, or a cohort of results that stand a line each.

    Raises
    ------
    UnreadableFileError
        No such file, or no JSON in it.
    InvalidValueError
        JSON of another format, or results of several spaces.
    """
    lines = [line for line in read_text(_WHO, path).split("\n") if line.strip()]  # a text may hold U+2028
    if len(lines) > 1 and all(line.startswith("{") and line.rstrip().endswith("}") for line in lines):
        return _cohort_of(list(map(SolutionSet.from_json, lines)))
    _, document = json_document(_WHO, path)
    if isinstance(document, dict) and document.get("format") == FORMAT:
        return Cohort.from_json(path)
    return SolutionSet.from_json(path)


def _cohort_of(results: list[SolutionSet]) -> Cohort:
    space = results[0].space
    if space is None or any(result.space != space for result in results):
        but = "some line has another or none"
        raise InvalidValueError(_WHO, "results of one space", but, "Write them anew with explain --json.")
    queries = pd.concat([result.factual for result in results])
    queries.index = pd.Index([result.query_id for result in results])
    return Cohort(
        results=tuple(results),
        queries=queries,
        space=space,
        options=results[0].options,
        finished=(True,) * len(results),
    )


# ==== Output of a command: results as tables on standard output, notes on standard error ==============================


def note(text: str) -> None:
    """Write one line or, where the parts of a text were escaped before, several to standard error."""
    sys.stderr.write(printable(text, keep="\n") + "\n")
    sys.stderr.flush()


def print_line(text: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{printable(text)}\n")


def print_results(results: Iterable[SolutionSet]) -> None:
    """Write one line of JSON per result; who reads it gets every text as it is."""
    sys.stdout.writelines(f"{printable(result.to_json(), as_json=True)}\n" for result in results)


def print_answers(results: Sequence[SolutionSet], space: FeatureSpace) -> None:
    """Print one line per change that a person would make, then why who has no answer, or no more, has none."""
    table = _table("row", "answer", "column", numbers=("from", "to", "cost"))
    without = []
    for result in results:
        who = str(result.query_id)
        for rank, name, old, new, _, cost, _ in rows(result):
            table.add_row(*map(_text, (who, rank, name_with_unit(space[name]), old, new, cost)))
            who = ""
        if len(result):
            table.add_section()
        else:
            without.append(result)
    console = Console()
    if table.row_count:
        console.print(table)
    for result in without:
        status = str(result.status).replace("_", " ")
        console.print(_text(f"row {result.query_id}: {status}. {result.reason}".strip()), soft_wrap=True)
    told: dict[str, list[str]] = {}
    for result in results:
        if len(result) and result.reason:
            told.setdefault(str(result.reason), []).append(str(result.query_id))
    for reason, rows_told in told.items():
        console.print(_text(f"row {', '.join(rows_told)}: {reason}"), soft_wrap=True)
    verified = sum(answer.verified for result in results for answer in result)
    if verified:
        count = counted(verified, "answer")
        console.print(
            _text(f"{count}, each predicted again by the model itself and held against every rule."), soft_wrap=True
        )
    for status, proof in ((Status.OPTIMAL, "Proved"), (Status.FEASIBLE, "Not proved")):
        people = ", ".join(str(result.query_id) for result in results if result.status is status)
        if people:
            console.print(_text(f"{proof} to be the least change: row {people}."), soft_wrap=True)


def print_solvers(frame: pd.DataFrame) -> None:
    """Print one line per solver, and below why one cannot be used, or up to which size."""
    table = _table("solver", "version", "solves", "by cuts")
    notes = []
    for row in frame.to_dict("records"):
        cuts = row["by_cuts"].split(", ")
        itself = [name for name in row["supports"].split(", ") if name not in cuts]
        itself += ["nonconvex"] * row["nonconvex"]
        version = row["version"] if row["installed"] else "-"
        table.add_row(*map(_text, (row["solver"], version, " ".join(itself), " ".join(cuts))))
        if row["why_not"]:
            notes.append(f"{row['solver']}: {row['why_not']}")
        elif row["limits"]:
            notes.append(f"{row['solver']}: licence for {row['limits']}.")
    usable = ", ".join(frame.loc[frame["licensed"], "solver"])
    notes.append(f"Can be used here: {usable or 'none'}. Without a name, the first that solves the program does.")
    console = Console()
    console.print(table)
    for line in notes:
        console.print(_text(line), soft_wrap=True)


def print_frame(frame: pd.DataFrame) -> None:
    """Print a frame as a table."""
    table = _table(*frame.columns)
    for row in frame.itertuples(index=False):
        table.add_row(*(_text(_cell(cell)) for cell in row))
    Console().print(table)


def _cell(value: object) -> str:
    """Return a value as text, truth values as yes and no."""
    if value is True:
        return "yes"
    if value is False:
        return "no"
    return str(value)


def _text(text: str) -> Text:
    """Return data as they are shown: neither a terminal nor Rich finds anything in them to obey."""
    return Text(printable(text))


def _table(*titles: str, numbers: Iterable[str] = ()) -> Table:
    """Return an empty table, with columns of numbers after the others."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(_text(str(title)), overflow="fold")
    for title in numbers:
        table.add_column(title, overflow="fold", justify="right")
    return table


# ==== A model fitted, or refused ======================================================================================

_WITH_SURROGATE = "As a black box it is answered for: add --surrogate fisher_rao."


def fitted(recourse: Any, data: Any) -> Any:
    """Fit, or say in the command's own words what to do with a model that cannot be stated as a program."""
    try:
        return recourse.fit(data)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(str(error).replace(AS_BLACK_BOX, _WITH_SURROGATE)) from error


# ==== The demonstration: a loan book, a forest that decides, and what a few people who were rejected could do =========

_PEOPLE = 4
_RULES = (MaxChanges(1),)


def run_demo() -> Cohort:
    """Fit, explain and print; the answers are the same on every machine."""
    note("Drawing 2,000 loan applications and fitting a random forest to the decisions ...")
    book = loans(n=2000, random_state=0)
    space = book.space
    for name in ("age", "years_employed", "employment"):
        space = space.update(name, mutable=False)  # advice for today, not for the years to come
    model = _pipeline(space).fit(book.data, book.target)
    rejected = book.data[model.predict(book.data) != book.favourable]
    note(f"{len(rejected):,} people are rejected. Single changes that turn the decision, for {_PEOPLE} near the line:")
    chances = model.predict_proba(rejected)[:, model.classes_.tolist().index(book.favourable)]
    near = rejected.iloc[np.argsort(-chances, kind="stable")[: len(rejected) // 2]].sort_index()
    some = near.iloc[:: len(near) // _PEOPLE].head(_PEOPLE)
    recourse = Recourse(
        model, space, target=book.favourable, n=3, diversity="support", constraints=_RULES, time_limit_s=10
    )
    cohort = recourse.fit(book.data, book.target).explain(some, progress=True)
    print_answers(tuple(cohort), space)
    return cohort


def _pipeline(space: Any) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    numbers = [feature.name for feature in space if not feature.is_finite]
    ordinal = [feature.name for feature in space if feature.kind == "ordinal"]
    others = [feature.name for feature in space if feature.kind in {"categorical", "binary"}]
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), numbers),
            ("ordinal", OrdinalEncoder(categories=[list(space[name].levels) for name in ordinal]), ordinal),
            ("categories", OneHotEncoder(handle_unknown="ignore"), others),
        ]
    )
    forest = RandomForestClassifier(n_estimators=50, max_depth=6, random_state=0)
    return Pipeline([("columns", columns), ("forest", forest)])
