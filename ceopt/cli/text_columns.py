"""Columns that a saved model knows as text: its encoders were fitted on texts, or its inputs are texts.

A file of CSV does not say whether 00123 is a number. The model does: it was fitted on one or the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

__all__ = ["text_columns"]

#: Where models of scikit-learn keep the models that they are made of, once these are fitted.
_PARTS: Final = ("best_estimator_", "estimator_", "estimator", "estimators_", "calibrated_classifiers_")


def text_columns(model: Any) -> dict[str, set[str]]:
    """Return the columns that a model takes as text, as far as it says so, and the texts that it knows of each.

    Encoders of scikit-learn say it by their categories, at any place of pipelines and of what is made of them; a model
    of ONNX by the types of its inputs, which says nothing of the texts.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> known = text_columns(OneHotEncoder().fit(pd.DataFrame({"zip": ["00123", "10115"], "rooms": [2, 3]})))
    >>> {name: sorted(texts) for name, texts in known.items()}
    {'zip': ['00123', '10115']}
    """
    found: dict[str, set[str]] = {}
    for name, texts in _texts_of(model, _names(getattr(model, "feature_names_in_", None))):
        found.setdefault(name, set()).update(texts)
    return found


def _texts_of(part: Any, names: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield the columns that a part of a model takes as text, where it is given the columns ``names``."""
    names = _names(getattr(part, "feature_names_in_", names))
    if hasattr(part, "categories_"):
        yield from _of_encoder(names, part.categories_)
    elif hasattr(part, "takes_codes"):
        for name, kind in zip(names, part.types, strict=False):
            if kind == "object":
                yield name, set()
    elif hasattr(part, "transformers_"):
        for _, inner, columns in part.transformers_:
            yield from _texts_of(inner, _chosen(names, columns))
    elif hasattr(part, "steps"):
        for _, step in part.steps:
            yield from _texts_of(step, names)
            if hasattr(step, "transformers_"):  # what comes behind has other columns
                break
    else:
        for inner in _members(part):
            yield from _texts_of(inner, names)


def _of_encoder(names: Sequence[str], categories: Sequence[Any]) -> Iterator[tuple[str, set[str]]]:
    """Yield the columns of an encoder of which some category is a text, and these texts."""
    if len(names) != len(categories):
        return
    for name, known in zip(names, categories, strict=True):
        texts = {level for level in np.asarray(known).tolist() if isinstance(level, str)}
        if texts:
            yield name, texts


def _members(part: Any) -> Iterator[Any]:
    """Yield the models that a model is made of."""
    for word in _PARTS:
        held = getattr(part, word, None)
        listed = held if isinstance(held, list) else [held]
        yield from (inner for inner in listed if inner is not None and not isinstance(inner, str))


def _names(given: Any) -> list[str]:
    """Return names as a list; none where a model was not fitted on a frame."""
    return [] if given is None else [str(name) for name in given]


def _chosen(names: Sequence[str], columns: Any) -> list[str]:
    """Return the names of the columns of a transformer, which are named, counted, marked or a slice."""
    if isinstance(columns, str):
        return [columns]
    if not isinstance(columns, slice):
        columns = np.asarray(columns)
        listed = columns.tolist()
        if all(isinstance(column, str) for column in listed):
            return _names(listed)
    if not names:
        return []
    by_name: pd.Series[Any] = pd.Series(list(names), index=list(names))
    if isinstance(columns, slice) and isinstance(columns.start or columns.stop, str):
        return _names(by_name.loc[columns])
    return _names(by_name.to_numpy()[columns])
