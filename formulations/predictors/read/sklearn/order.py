"""The order in which a fitted model adds up its trees: fixed, or another each time that it is asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import joblib

__all__ = ["adds_in_order"]

#: What adds the trees' shares or values as its jobs finish, in ``sklearn.ensemble._forest``.
_FORESTS: Final = frozenset(
    {"ExtraTreesClassifier", "ExtraTreesRegressor", "RandomForestClassifier", "RandomForestRegressor"}
)


def adds_in_order(model: Any) -> bool:
    """Tell whether no forest in a fitted model, however deep, adds its trees in several jobs.

    The forests of scikit-learn add what each tree says under a lock, in the order in which the jobs finish. How many
    there are is joblib's word: ``n_jobs``, where it is None that of ``joblib.parallel_config``, negative numbers from
    the machine's cores, and never more than trees. A number counts as it does where threads can be started: in a worker
    process that may have no children joblib makes it 1, but an answer has to hold wherever the model is asked. Every
    other model that is read adds in its members' order.
    """
    return not any(_jobs(forest) > 1 for forest in _forests(model, set()))


def _jobs(forest: Any) -> int:
    is_asked = forest.n_jobs is not None
    with joblib.parallel_config(backend="threading") if is_asked else contextlib.nullcontext():
        return min(int(joblib.effective_n_jobs(forest.n_jobs)), len(forest.estimators_))


def _forests(model: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the fitted forests among a model's own attributes; what is not fitted (templates) has no trees."""
    if id(model) in seen:
        return
    seen.add(id(model))
    if isinstance(model, Mapping):
        parts: Any = model.values()
    elif isinstance(model, list | tuple):
        parts = model
    elif type(model).__module__.partition(".")[0] != "sklearn":
        return
    elif type(model).__name__ in _FORESTS:
        if hasattr(model, "estimators_"):
            yield model
        return
    else:
        parts = getattr(model, "__dict__", {}).values()
    for part in parts:
        yield from _forests(part, seen)
