"""Answers of a file: a result, a cohort, or the lines that ``ceopt explain --json`` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from ceopt.population.cohort import Cohort
from ceopt.population.cohort_json import FORMAT
from ceopt.solution.solution_set import SolutionSet
from ceopt.solvers.errors import InvalidValueError
from ceopt.solvers.whole_files import json_document, read_text

__all__ = ["read_answers"]

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
        return _cohort_of([SolutionSet.from_json(line) for line in lines])
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
