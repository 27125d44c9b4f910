"""The graph of a causal model: which column comes before which, and the cycle where there is no such order."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping
from typing import Any

from ceopt.formulations.constraints.causal.equation import names_in
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["ordered", "parents_in"]


def ordered(parents: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the columns that have parents, each after all of its own.

    Raises
    ------
    InvalidValueError
        A column that is its own parent, or a cycle; it is named.

    Examples
    --------
    >>> ordered({"savings": ["income"], "income": ["age"]})
    ('income', 'savings')
    """
    for column, above in parents.items():
        if column in above:
            raise InvalidValueError(
                "Causal", "columns that are not their own parents", f"{column!r} is its own", "Remove it from them."
            )
    try:
        order = tuple(graphlib.TopologicalSorter(parents).static_order())
    except graphlib.CycleError as error:
        raise InvalidValueError(
            "Causal", "equations without a cycle", f"there is one: {' -> '.join(error.args[1])}",
            "Remove one of these equations.",
        ) from None  # fmt: skip
    return tuple(column for column in order if column in parents)


def parents_in(graph: Any) -> dict[str, tuple[str, ...]]:
    """Return the parents of each column that has some, of a mapping or of a directed graph of networkx.

    Raises
    ------
    InvalidTypeError
        Neither of the two, or parents that are no list of names.
    InvalidValueError
        No column has parents, or one has a parent twice.
    """
    if hasattr(graph, "predecessors") and hasattr(graph, "nodes"):
        listed: dict[Any, Any] = {column: list(graph.predecessors(column)) for column in graph.nodes}
    elif isinstance(graph, Mapping):
        listed = dict(graph)
    else:
        raise InvalidTypeError(
            "Causal.learn", "a mapping {column: [parents]} or a networkx DiGraph as graph",
            f"it got {type(graph).__name__}", 'Write {"income": ["age", "education"]}.',
        )  # fmt: skip
    found = {}
    for column, above in listed.items():
        if not isinstance(column, str):
            raise InvalidTypeError("Causal.learn", "names of columns in the graph", f"one is {column!r}", "Name it.")
        is_list = isinstance(above, Iterable) and not isinstance(above, str)
        names = tuple(above) if is_list else above
        if names != ():
            found[column] = names_in(f"The graph at {column!r}", names)
    if not found:
        raise InvalidValueError("Causal.learn", "a column with parents", "the graph has none", "Name its parents.")
    return found
