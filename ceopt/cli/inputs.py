"""Inputs of a command: a saved model, a table of people, a space, a target given as text.

A file of CSV does not say whether 00123 is a number. The model does: it was fitted on one or the other, so encoders
fitted on texts, and inputs that are texts, say which columns are read as text.

Rules from a file: a JSON list with an object for each, ``{"rule": "MaxChanges", "k": 2}``.

rules_schema.json beside this file is its schema, and says to the reader, too, what each rule takes. An object holds
arguments by their own names, as plain data:

==================================== =================================================================================
argument                             in the file
==================================== =================================================================================
numbers, texts, lists, mappings      as they are; true and false are levels and flags
levels as keys of a mapping          their text: "1" is the level 1 where the column has that one
frames (``AllowedRows``, ``Hull``)   a list of rows, each an object of values by column
equations (``Causal``)               column -> {"parents": {parent: coefficient}, "intercept": 0.0}
==================================== =================================================================================
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import shlex
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np
import pandas as pd

from ceopt.formulations.constraints import RULES
from ceopt.formulations.constraints.causal_structure import LinearEquation
from ceopt.formulations.predictors.readers import SUFFIXES, is_function, open_model
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.pitfalls import pitfalls
from ceopt.formulations.space.space import FeatureSpace, SpaceWarning
from ceopt.formulations.targets import AtLeast, AtMost, Between, OtherThan, Probability
from ceopt.oracle.model import FunctionOracle, ModelOracle
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import (
    CeoptError,
    InvalidTypeError,
    InvalidValueError,
    MissingLibraryError,
    UnknownNameError,
    UnreadableFileError,
    counted,
    printable,
)
from ceopt.solvers.whole_files import json_in, read_text

if TYPE_CHECKING:
    from ceopt.formulations.constraints import AbstractRule
    from ceopt.result.solution_set import SolutionSet
    from ceopt.surrogates.recourse import LocalSurrogateRecourse

# ==== A space that a command infers from its data, with what is easily overlooked in it, in the command's own words ===

#: What to do about a column by what it looks like; {name} is the column.
_ADVICE: Final = {
    "protected": "Add --fixed {name}.",
    "grows": "Add --up {name}, or --fixed {name}.",
    "identifier": "Leave it out by --label-column {name}, or add --fixed {name} if the model reads it.",
    "constant": "Leave it out by --label-column {name}, or add --fixed {name} if the model reads it.",
    "text": "Convert it in DATA if it counts something, or add --fixed {name}.",
    "code": "Add --categorical {name} if its numbers are names, or --fixed {name}.",
    "codes": "Add --codes {name}=..., or --fixed {name}.",
    "unknown": "Add --codes {name}=..., or leave such cells empty before the model is fitted.",
    "absent": "Correct --codes.",
    "one_hot": 'Name it in a file of rules (--rules): [{{"rule": "ExactlyOne", "columns": [...]}}].',
    "sum": 'Name it in a file of rules (--rules), as Linear with "==".',
    "same": "Add --fixed {name}.",
}


def inferred_space(
    frame: pd.DataFrame, *, categorical: Collection[str], settled: Collection[str], codes: Sequence[str] = ()
) -> tuple[FeatureSpace, list[str]]:
    """Return the space of a frame, and a sentence on each column that is easily overlooked, but for settled ones.

    Raises
    ------
    CeoptError
        A column that no space can hold, or a categorical or coded one that the frame has not.
    """
    for name in categorical:
        if name not in frame.columns:
            raise UnknownNameError.among("--categorical", "column", name, frame.columns)
    coded = read_codes(codes, frame)
    features = infer_features(frame, categorical=categorical, codes=coded)
    notes = []
    for pitfall in pitfalls(frame, features, codes=coded):
        if pitfall.column not in {*settled, *categorical}:
            advice = _ADVICE[pitfall.kind].format(name=shlex.quote(pitfall.column))
            notes.append(f"{pitfall.seen}. {advice}")
    return FeatureSpace(features), notes


def read_codes(given: Sequence[str], frame: pd.DataFrame) -> dict[str, Any]:
    """Return the codes of each column, with what they mean where that is said, from ``COL=CODE[:TEXT],...``.

    A code is the value of the column that is written so, else a number, else a text.

    Raises
    ------
    InvalidValueError, UnknownNameError
        No equals sign or no code, a column twice or that is not there.

    Examples
    --------
    >>> late = pd.DataFrame({"late": [-9, 0, 3]})
    >>> read_codes(["late=-9,-8"], late), read_codes(["late=-9:no record"], late)
    ({'late': [-9, -8]}, {'late': {-9: 'no record'}})
    """
    coded: dict[str, Any] = {}
    for entry in given:
        name, mark, listed = entry.rpartition("=")
        parts = [part.strip().partition(":") for part in listed.split(",")]
        if not mark or not all(code.strip() for code, _, _ in parts):
            needs = "a column and its codes"
            raise InvalidValueError("--codes", needs, f"it is {entry!r}", "Write COL=-9,-8 or 'COL=-9:no record'.")
        if name not in frame.columns:
            raise UnknownNameError.among("--codes", "column", name, frame.columns)
        if name in coded:
            raise InvalidValueError("--codes", "each column once", f"{name!r} is there twice", "Write COL=-9,-8.")
        codes = [_code(code.strip(), frame[name]) for code, _, _ in parts]
        texts = [text.strip() for _, _, text in parts]
        coded[name] = dict(zip(codes, texts, strict=True)) if any(texts) else codes
    return coded


def _code(text: str, column: pd.Series[Any]) -> Any:
    for value in map(plain, pd.unique(column.dropna()).tolist()):
        if _means(text, value):
            return value
    with contextlib.suppress(ValueError):
        number = float(text)
        if number.is_integer():
            return int(number)
        if math.isfinite(number):
            return number
    return text


# ==== Surrogates by the names that a command takes ====================================================================

#: Minimax probability machines by their ambiguity, then the rivals.
_MACHINES: Final = ("fisher_rao", "nominal", "quadratic", "bures", "logdet")
_RIVALS: Final = {
    "lime": "LimeSurrogate",
    "clime": "ClimeSurrogate",
    "limels": "LimelsSurrogate",
    "svm": "SvmSurrogate",
}
NAMES: Final = (*_MACHINES, *_RIVALS)


def surrogate_named(name: str) -> LocalSurrogateRecourse:
    """Return what answers with the surrogate of a name, everything else at its default.

    Raises
    ------
    UnknownNameError
        No such surrogate.

    Examples
    --------
    >>> surrogate_named("svm").surrogate
    SvmSurrogate()
    """
    from ceopt import surrogates

    if name not in NAMES:
        raise UnknownNameError.among("--surrogate", "surrogate", name, NAMES)
    fitted: Any
    if name in _RIVALS:
        fitted = getattr(surrogates, _RIVALS[name])()
    elif name == "nominal":
        fitted = surrogates.MinimaxProbabilityMachine()
    else:
        fitted = surrogates.MinimaxProbabilityMachine(name, (1.0, 0.0))
    return surrogates.LocalSurrogateRecourse(surrogate=fitted)


def says_of_surrogate(result: SolutionSet) -> str:
    """Return in one line how a row was answered for, and how near the surrogate is to the model; "" without one."""
    report = result.surrogate
    if report is None or not len(result):
        return ""
    ways = ", ".join(dict.fromkeys(str(answer.way) for answer in result))
    return (
        f"row {result.query_id}: by the way {ways!r}; of the linear surrogate: fidelity {report.fidelity:.3g}, "
        f"stability {report.stability:.3g}, worst-case error {report.worst_case_error:.3g}; "
        f"{report.n_queries:,} rows sent to the model."
    )


# ==== A table of people, read from a file by its ending, with what was assumed of it ==================================

_WHO: Final = "DATA"
_NONE: Final[Mapping[str, Collection[str]]] = {}
#: Cells of a number that mean "missing". A level of text is what it says, "NA" included; there only an empty cell is.
_MISSING: Final = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
#: What separates columns where it is no comma, the likeliest first.
_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_COMMA: Final = re.compile(r"\s*[+-]?\d+,\d+\s*")
_WHOLE: Final = re.compile(r"\s*[+-]?\d+\s*")
_WITH_ZERO: Final = re.compile(r"\s*0\d+\s*")


def read_table(
    path: Path, space: FeatureSpace | None, *, texts: Mapping[str, Collection[str]] = _NONE, codes: Collection[str] = ()
) -> tuple[Any, ...]:
    """Return the frame of a .csv or .parquet file, then a note on each thing that was assumed of it.

    A .csv file may separate its columns by semicolons (and write decimals with commas then), tabs or vertical bars.

    Parameters
    ----------
    path
        The file.
    space
        Says which columns are text whatever they look like.
    texts
        Without a space: columns that are text whatever they look like, and the texts that are known of each, which are
        levels even where they look like a missing value ("None").
    codes
        Without a space: columns that are text where a number in them begins with a zero, which it would lose.

    Raises
    ------
    UnreadableFileError
        No file, or none that is what its ending says; no rows.
    MissingLibraryError
        A .parquet file without pyarrow.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - of a path that is too long, Path.is_file raises
        raise UnreadableFileError(_WHO, "a file", f"{str(path)!r} is none", "Check the path.")
    suffix = path.suffix.lower()
    if suffix not in {".csv", ".parquet"}:
        raise UnreadableFileError(_WHO, "a .csv or .parquet file", f"it is {str(path)!r}", "Convert it.")
    notes: list[str] = []
    try:
        frame = pd.read_parquet(path) if suffix == ".parquet" else _read_csv(path, space, texts, codes, notes)
    except ImportError as error:
        but = f"it is not installed and DATA is {str(path)!r}"
        then = 'Install it by pip install "ceopt[parquet]", or give a CSV file.'
        raise MissingLibraryError(_WHO, "pyarrow to read parquet", but, then) from error
    except UnicodeError as error:
        but = f"{str(path)!r} is in another encoding ({_line(error)})"
        raise UnreadableFileError(_WHO, "a file of UTF-8 text", but, "Save it as UTF-8.") from error
    except Exception as error:  # pandas and pyarrow raise much for files that are not what they say, KeyError included
        but = f"{str(path)!r} is none ({_line(error)})"
        raise UnreadableFileError(_WHO, f"a readable {suffix} file", but, "Write it anew.") from error
    if not len(frame) or not len(frame.columns):
        raise UnreadableFileError(_WHO, "rows", f"{str(path)!r} has none", "Give a table with a header and rows.")
    return frame, *notes


def _read_csv(
    path: Path,
    space: FeatureSpace | None,
    texts: Mapping[str, Collection[str]],
    codes: Collection[str],
    notes: list[str],
) -> pd.DataFrame:
    """Return the frame of a file, and note where it is not as CSV files are."""
    how: dict[str, Any] = {"sep": _separator(path)}
    frame = _parsed(path, space, texts, **how)
    note = ""
    if how["sep"] != ",":
        note = f"{path} separates its columns by {_SEPARATORS[how['sep']]}"
    if how["sep"] == ";" and _has_commas_in_numbers(frame.drop(columns=list(texts), errors="ignore")):
        note += " and writes decimals with commas"
        how["decimal"] = ","
        frame = _parsed(path, space, texts, **how)
    if note:
        notes.append(f"{note}; it was read so.")
    if space is not None:
        return frame
    lost = _with_zeros_lost(path, frame, **how)
    kept = lost.keys() & set(codes)
    if kept:
        frame = _parsed(path, space, {**texts, **dict.fromkeys(kept, ())}, **how)
    for name, cell in lost.items():
        if name not in kept:
            notes.append(
                f"Column {name!r} has {cell!r} in {path}, read as the number {int(cell)}, as the model does not say "
                "that it is text. A space in which its levels are texts (--space) keeps the zeros."
            )
    return frame


def _with_zeros_lost(path: Path, frame: pd.DataFrame, **how: Any) -> dict[str, str]:
    """Return the columns that were read as numbers though a whole number in them begins with a zero, and one such."""
    names = frame.select_dtypes(include="number").columns.tolist()
    if not names:
        return {}
    texts = pd.read_csv(path, dtype=str, **how)
    lost = {}
    for name in names:
        cells = texts[name].dropna().unique()
        first = next((cell.strip() for cell in cells if _WITH_ZERO.fullmatch(cell)), None)
        if first is not None:
            lost[name] = first
    return lost


def _separator(path: Path) -> str:
    names = pd.read_csv(path, nrows=0).columns
    if len(names) == 1:
        for mark in _SEPARATORS:
            if mark in str(names[0]):
                return mark
    return ","


def _has_commas_in_numbers(frame: pd.DataFrame) -> bool:
    """Tell whether some column holds numbers with a comma, and nothing else."""
    for name in frame.select_dtypes(exclude="number").columns:
        texts = list(map(str, frame[name].dropna().unique()))
        has_comma = any(map(_COMMA.fullmatch, texts))
        if has_comma and all(_COMMA.fullmatch(text) or _WHOLE.fullmatch(text) for text in texts):
            return True
    return False


def _parsed(path: Path, space: FeatureSpace | None, texts: Mapping[str, Collection[str]], **how: Any) -> pd.DataFrame:
    names = pd.read_csv(path, nrows=0, **how).columns
    if space is None:
        plain: pd.DataFrame = pd.read_csv(path, dtype={name: str for name in names if name in texts}, **how)
        return _with_levels(path, plain, texts, **how)
    levels = {f.name: f.levels for f in space if f.name in names and any(isinstance(level, str) for level in f.levels)}
    missing: dict[str, list[str]] = dict.fromkeys(names, _MISSING)
    missing |= {name: list({""}.difference(known)) for name, known in levels.items()}
    frame: pd.DataFrame = pd.read_csv(
        path, dtype=dict.fromkeys(levels, str), keep_default_na=False, na_values=missing, **how
    )
    return frame


def _with_levels(path: Path, frame: pd.DataFrame, texts: Mapping[str, Collection[str]], **how: Any) -> pd.DataFrame:
    """Return the frame with the texts that are known in place of the missing values that they were taken for."""
    names = [name for name in frame.columns if texts.get(name) and frame[name].isna().any()]
    if not names:
        return frame
    cells = pd.read_csv(path, dtype=str, keep_default_na=False, **how)
    for name in names:
        is_level = frame[name].isna() & cells[name].isin(list(texts[name]))
        frame[name] = frame[name].mask(is_level, cells[name])
    return frame


# ==== Columns that a saved model knows as text: its encoders were fitted on texts, or its inputs are texts ============

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
    columns: dict[str, set[str]] = {}
    for name, texts in _texts_of(model, _names(getattr(model, "feature_names_in_", None))):
        columns.setdefault(name, set()).update(texts)
    return columns


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
        if not isinstance(held, list):
            held = [held]
        yield from (inner for inner in held if inner is not None and not isinstance(inner, str))


def _names(given: Any) -> list[str]:
    """Return names as a list; none where a model was not fitted on a frame."""
    if given is None:
        return []
    return list(map(str, given))


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


# ==== Inputs of a command: a saved model, a table of people, a space, a target given as text ==========================

#: How an option says that a column may move.
Move = Literal["fixed", "up", "down"]


@final
@dataclass(frozen=True, slots=True)
class CommandInputs:
    """What ``ceopt explain`` and ``ceopt export`` work on.

    Parameters
    ----------
    model, space
        The fitted model, and its columns.
    data
        Rows of the file that the space can hold, columns of the space.
    rows
        The rows asked about, labelled by their position in the file.
    target
        As :func:`ceopt.explain` takes it.
    notes
        What was assumed, one sentence each.
    """

    model: Any
    space: FeatureSpace
    data: pd.DataFrame
    rows: pd.DataFrame
    target: Any
    notes: tuple[str, ...]


def read_inputs(
    model_path: Path,
    data_path: Path,
    *,
    rows: Sequence[int],
    target: str,
    space_path: Path | None,
    moves: Mapping[str, Move],
    limits: Mapping[Literal["max_up", "max_down"], Sequence[str]],
    categorical: Sequence[str],
    label_columns: Sequence[str],
    allow_pickle: bool,
    codes: Sequence[str] = (),
    missing: Sequence[str] = (),
    stays: Sequence[str] = (),
    may_be_function: bool = False,
    show_space: bool = False,
) -> CommandInputs:
    """Read everything, or say in one sentence which file, column or option is at fault.

    A function of rows in place of a model is taken where it ``may_be_function``. The space is among the notes where it
    is to be shown; what is easily overlooked in one that was inferred always is. Columns of an inferred space may be
    missing where the file has gaps and the model takes them, or where ``missing`` or ``stays`` names them.

    Raises
    ------
    UnreadableFileError, MissingLibraryError
        A file that is missing, truncated or not what its name says; parquet without pyarrow.
    InvalidValueError, UnknownNameError
        A pickle that was not allowed; an unknown column, label or row.
    """
    model = read_model(model_path, allow_pickle=allow_pickle, may_be_function=may_be_function)
    space = None
    known = getattr(model, "feature_names_in_", None)
    who = "the model"
    if space_path is not None:
        space = FeatureSpace.from_json(space_path)
        known = space.names
        who = "the space"
    texts = categorical if is_function(model) else ()
    frame, *notes = read_table(data_path, space, texts=text_columns(model), codes=texts)
    features = _without(frame, label_columns)
    extra = [name for name in features.columns if known is not None and name not in list(known)]
    if extra:
        notes.append(f"Left out, as {who} does not know them: {', '.join(map(str, extra))}.")
        features = features.drop(columns=extra)
    if not len(features.columns):
        wanted = "" if known is None else f" ({', '.join(map(str, known))})"
        but = f"{str(data_path)!r} has only {', '.join(map(str, frame.columns[:10]))}"
        raise UnreadableFileError("DATA", f"columns that {who} knows{wanted}", but, "Check the file and its header.")
    if space is None:
        space, seen = inferred_space(features, categorical=categorical, settled=moves, codes=codes)
        space, without = _as_model_takes(model, space, features, named={*missing, *stays})
        seen += without
        shown = "" if show_space else "; --show-space prints it"
        notes += [f"The space is inferred from {data_path} (no --space was given){shown}.", *seen]
    else:
        for option, value in (("--categorical", categorical), ("--codes", codes)):
            if value:
                then = "Say it in the file of the space, or leave --space out."
                raise InvalidValueError(option, "a space that is inferred", "--space is given", then)
    space, short = _limited(moved(space, moves, missing=missing, stays=stays), limits)
    notes = list(map(printable, [*notes, *short]))
    if show_space:
        notes.append(str(space))
    for name in space.names:
        if name not in features.columns:
            raise UnreadableFileError("DATA", f"column {name!r}", f"{str(data_path)!r} has none", "Add it.")
    asked = _asked(features[list(space.names)], rows, data_path)
    data, note = _usable(features[list(space.names)], space)
    wanted = read_target(target, _labels_of(model, space, data))
    return CommandInputs(model, space, data, asked, wanted, (*notes, *note))


def written_space(
    data_path: Path,
    *,
    moves: Mapping[str, Move],
    categorical: Sequence[str],
    label_columns: Sequence[str],
    codes: Sequence[str],
    missing: Sequence[str],
    stays: Sequence[str],
    limits: Mapping[Literal["max_up", "max_down"], Sequence[str]],
) -> tuple[FeatureSpace, tuple[str, ...]]:
    """Return the space of a table as options describe it, and what was assumed of it, one sentence each.

    Raises
    ------
    UnreadableFileError, MissingLibraryError
        A file that is missing, truncated or not what its name says; parquet without pyarrow.
    InvalidValueError, UnknownNameError
        An unknown column, codes that are none.
    """
    frame, *notes = read_table(data_path, None, codes=categorical)
    features = _without(frame, label_columns)
    if not len(features.columns):
        raise UnreadableFileError("DATA", "a column that is a feature", "each is named no feature", "Leave some in.")
    space, seen = inferred_space(features, categorical=categorical, settled=moves, codes=codes)
    space, short = _limited(moved(space, moves, missing=missing, stays=stays), limits)
    return space, tuple(map(printable, (*notes, *seen, *short)))


def _without(frame: pd.DataFrame, label_columns: Sequence[str]) -> pd.DataFrame:
    """Return the columns that may be features."""
    for name in label_columns:
        if name not in frame.columns:
            raise UnknownNameError.among("--label-column", "column", name, frame.columns)
    return frame.drop(columns=list(label_columns))


def moved(
    space: FeatureSpace, moves: Mapping[str, Move], *, missing: Sequence[str] = (), stays: Sequence[str] = ()
) -> FeatureSpace:
    """Return the space with columns that move, and may be missing, as options say."""
    for name, move in moves.items():
        if name not in space.names:
            raise UnknownNameError.among(f"--{move}", "column", name, space.names)
        space = space.fix(name) if move == "fixed" else space.update(name, direction=move)
    for name in missing:
        space = space.update(name, missing=space[name].missing or True)
    for name in stays:
        space = space.update(name, missing=space[name].missing or not space[name].codes, fill=math.inf)
    return space


def _as_model_takes(
    model: Any, space: FeatureSpace, features: pd.DataFrame, *, named: Collection[str]
) -> tuple[FeatureSpace, list[str]]:
    """Return the space without the gaps of the data that the model fails on, named ones apart, and a note on them."""
    gaps = [feature.name for feature in space if feature.missing and feature.name not in named]
    refused = [name for name in gaps if not _takes_gap(model, space, features, name)]
    if not refused:
        return space, []
    shown = ", ".join(map(repr, refused))
    note = f"The model takes no missing cells of {shown}: rows that lack one are not used, nor asked about."
    return space.update(refused, missing=False), [note]


def _takes_gap(model: Any, space: FeatureSpace, features: pd.DataFrame, name: str) -> bool:
    """Tell whether a model has a prediction of a row that lacks one cell."""
    row = features[list(space.names)].ffill().bfill().iloc[[0]]
    row[name] = features.loc[features[name].isna(), name].iloc[:1].array
    oracle: Any = FunctionOracle(model, space) if is_function(model) else ModelOracle(model, space)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            oracle.predict(row)
    except Exception:  # noqa: BLE001 - libraries have errors of their own for this
        return False
    return True


def _limited(
    space: FeatureSpace, limits: Mapping[Literal["max_up", "max_down"], Sequence[str]]
) -> tuple[FeatureSpace, list[str]]:
    """Return the space with columns that move no further than options say, "income=20%" or "age=2", and what is odd."""
    notes = []
    for word, given in limits.items():
        option = f"--{word.replace('_', '-')}"
        known: set[str] = set()
        for text in given:
            name, _, by = text.rpartition("=")
            limit: Any = by
            with contextlib.suppress(ValueError):
                limit = float(by)
            if not name or not by:
                then = "Write the column, = and how far it may go."
                raise InvalidValueError(option, "COL=BY, such as income=20% or age=2", f"it is {text!r}", then)
            if name in known:
                raise InvalidValueError(option, "each column once", f"{name!r} is there twice", "Leave one out.")
            known.add(name)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", SpaceWarning)
                space = space.update(name, **{word: limit})
            if said:
                share = f" Write {name}={limit * 100:g}% for a share." if limit < 1 else ""
                notes.append(f"{option} {text} allows no move, being less than a step of the column.{share}")
    return space, notes


def _labels_of(model: Any, space: FeatureSpace, data: pd.DataFrame) -> tuple[Any, ...] | None:
    """Return the model's classes, those that a function gives to the rows of data, or None of a regressor."""
    if not is_function(model):
        return ModelOracle(model, space).labels
    predicted = FunctionOracle(model, space).predict(data)
    if predicted.dtype.kind == "f" and (predicted != np.floor(predicted)).any():
        return None
    return tuple(map(plain, pd.unique(pd.Series(predicted)).tolist()))


def read_model(path: Path, *, allow_pickle: bool, may_be_function: bool = False) -> Any:
    """Open a model that its library saved (ONNX, XGBoost, LightGBM), or load what ``joblib.dump`` wrote."""
    who = "MODEL"
    if not os.path.isfile(path):  # noqa: PTH113 - of a path that is too long, Path.is_file raises
        raise UnreadableFileError(who, "a file", f"{str(path)!r} is none", "Check the path.")
    if path.suffix.lower() in SUFFIXES:
        return open_model(path)
    _refuse_tables(who, path)
    if not allow_pickle:
        but = f"{str(path)!r} is a pickle, which runs code when it is loaded"
        then = "Add --allow-pickle if you trust where the file comes from."
        raise InvalidValueError(who, "--allow-pickle to be opened", but, then)
    import joblib

    try:
        model = joblib.load(path)
    except Exception as error:
        but = f"{str(path)!r} cannot be loaded ({type(error).__name__}: {_line(error)})"
        then = "Save it anew, and load it where the libraries that it was made with are installed."
        raise UnreadableFileError(who, "a model saved by joblib.dump", but, then) from error
    if not hasattr(model, "predict") and not (may_be_function and is_function(model)):
        but = f"{str(path)!r} holds a {type(model).__name__}"
        then = "Save the fitted model itself; a function of rows needs --surrogate."
        raise UnreadableFileError(who, "a model with predict", but, then)
    return model


def _refuse_tables(who: str, path: Path) -> None:
    """Refuse what is text, and so no pickle, before anybody is asked to trust it."""
    with path.open("rb") as file:
        start = file.read(512)
    with contextlib.suppress(UnicodeDecodeError):
        line = start.decode().splitlines()[0] if start.strip() else ""
        held = f"it is text that begins {line[:60]!r}" if line else "it is empty"
        if start[:1] not in {b"(", b"c"} and b"\0" not in start:  # with which pickles of the oldest kinds begin
            then = f"Give the model first, then DATA; models are {', '.join(SUFFIXES)} or what joblib.dump writes."
            raise UnreadableFileError(who, "a saved model", f"{str(path)!r} cannot be loaded: {held}", then)


def _asked(frame: pd.DataFrame, rows: Sequence[int], path: Path) -> pd.DataFrame:
    for row in rows:
        if not 0 <= row < len(frame):
            but = f"it is {row} and {str(path)!r} has {counted(len(frame), 'row')}"
            then = "Count from 0, the header left out."
            raise InvalidValueError("--row", f"a position from 0 to {len(frame) - 1}", but, then)
    return frame.reset_index(drop=True).iloc[list(rows)]


def _usable(frame: pd.DataFrame, space: FeatureSpace) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the rows that the space can hold, and a note on the others."""
    with contextlib.suppress(CeoptError):
        space.coordinates(frame)
        return frame, ()
    reasons: dict[int, str] = {}
    for place in range(len(frame)):
        try:
            space.coordinates(frame.iloc[[place]])
        except CeoptError as error:
            reasons[place] = str(error)
    first, reason = next(iter(reasons.items()))
    if len(reasons) == len(frame):
        raise UnreadableFileError("DATA", "a row that the space can hold", "there is none", f"Row {first}: {reason}")
    note = f"{counted(len(reasons), 'row')} not used as examples; the first is row {first}: {reason}"
    return frame.drop(index=frame.index[list(reasons)]), (printable(note),)


def read_target(text: str, labels: tuple[Any, ...] | None) -> Any:
    """Turn a target given as text into one of the model's own labels, or a regressor's range of values.

    A range is ``">=5"``, ``"<=5"`` or ``"5..8"``. Several classes are ``"good|fair"``, any but one ``"!bad"``, and a
    probability is ``"good>=0.6"``.

    Examples
    --------
    >>> read_target("1", (0, 1)), read_target("true", (False, True)), read_target(">=5", None)
    (1, True, AtLeast(value=5.0))
    >>> read_target("good|fair", ("bad", "fair", "good")), read_target("!bad", ("bad", "fair", "good"))
    (['good', 'fair'], OtherThan(label='bad'))
    >>> read_target("good>=0.6", ("bad", "good"))
    Probability(label='good', at_least=0.6)
    """
    if labels is None:
        return _range(text)
    known = _label(text, labels)
    if known is not None:
        return known
    if "|" in text:
        return [_required(part, labels) for part in text.split("|")]
    if text.startswith("!"):
        return OtherThan(_required(text[1:], labels))
    label, _, share = text.rpartition(">=")
    try:
        return Probability(_required(label, labels), float(share))
    except ValueError as error:
        raise UnknownNameError.among("--target", "class of the model", text, labels) from error


def _required(text: str, labels: tuple[Any, ...]) -> Any:
    label = _label(text.strip(), labels)
    if label is None:
        raise UnknownNameError.among("--target", "class of the model", text.strip(), labels)
    return label


def _label(text: str, labels: tuple[Any, ...]) -> Any:
    return next((label for label in labels if _means(text, label)), None)


def _means(text: str, label: Any) -> bool:
    if isinstance(label, bool):
        return text.lower() == str(label).lower()
    if isinstance(label, int | float):
        with contextlib.suppress(ValueError):
            return float(text) == label
    return text == str(label)


def _range(text: str) -> Any:
    try:
        if text.startswith(">="):
            return AtLeast(float(text[2:]))
        if text.startswith("<="):
            return AtMost(float(text[2:]))
        low, _, high = text.partition("..")
        return Between(float(low), float(high or math.nan))
    except ValueError as error:
        if isinstance(error, CeoptError) and ".." in text:
            raise
        needs = "a range, as the model is a regressor"
        raise InvalidValueError("--target", needs, f"it is {text!r}", "Write '>=5', '<=5' or '5..8'.") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


# ==== Rules from a file: a JSON list with an object for each, ``{"rule": "MaxChanges", "k": 2}`` ======================

_RULES: Final = "--rules"


def read_rules(path: Path, space: FeatureSpace, *, allow_pickle: bool = False) -> tuple[AbstractRule, ...]:
    """Return the rules of a file, each of which fits the space; a forest that a rule names lies beside the file.

    Raises
    ------
    UnreadableFileError
        No such file, or no JSON in it.
    InvalidTypeError, InvalidValueError
        No list of objects, a rule that lacks an argument, or whatever the rule itself refuses; the message says which.
    UnknownNameError
        A rule, argument or column that does not exist.
    """
    listed = _document(path)
    if not isinstance(listed, list):
        but = f"{str(path)!r} holds {_kind(listed)}"
        raise InvalidTypeError(_RULES, "a list of rules", but, 'Write [{"rule": "MaxChanges", "k": 2}, ...].')
    rules = []
    for place, entry in enumerate(listed, start=1):
        given = entry
        if isinstance(entry, dict) and isinstance(entry.get("forest"), str):
            given = {**entry, "forest": _Forest(path.parent / entry["forest"], allow_pickle)}
        rules.append(_rule(given, f"rule {place} of {str(path)!r}", space))
    return tuple(rules)


@final
@dataclass(frozen=True, slots=True)
class _Forest:
    """A file of a fitted isolation forest, and whether it may be opened."""

    path: Path
    allow_pickle: bool


def _document(path: Path) -> Any:
    hooks: dict[str, Any] = {"object_pairs_hook": _object, "parse_constant": _refuse_constant}
    return json_in(_RULES, repr(str(path)), read_text(_RULES, path), "Correct it.", **hooks)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, or refuse a name that stands in it twice: one of the two would be passed over."""
    read: dict[str, Any] = {}
    for name, value in pairs:
        if name in read:
            raise InvalidValueError(_RULES, "each name once in an object", f"{name!r} is there twice", "Remove one.")
        read[name] = value
    return read


def _refuse_constant(word: str) -> float:
    raise InvalidValueError(_RULES, "finite numbers", f"one is {word}", "Leave such an argument out, or correct it.")


def _rule(entry: Any, where: str, space: FeatureSpace) -> AbstractRule:
    if not isinstance(entry, dict):
        raise InvalidTypeError(_RULES, f"an object as {where}", f"it is {_kind(entry)}", 'Write {"rule": ...}.')
    given = dict(entry)
    if "rule" not in given:
        known = ", ".join(RULES)
        raise InvalidValueError(_RULES, f'a name as "rule" in {where}', "there is none", f"Choose from: {known}.")
    name = given.pop("rule")
    if not isinstance(name, str) or name not in RULES:
        raise UnknownNameError.among(_RULES, f"rule as {where}", name, RULES)
    described = _schema()[name]
    arguments = [argument for argument in described["properties"] if argument != "rule"]
    for argument in given:
        if argument not in arguments:
            raise UnknownNameError.among(_RULES, f"argument of {name} in {where}", argument, arguments)
    for argument in described["required"]:
        if argument not in entry:
            needs = f"{argument!r} of {name} in {where}"
            raise InvalidValueError(_RULES, needs, "it is missing", f"Its arguments are: {', '.join(arguments)}.")
    try:
        for argument, value in given.items():
            given[argument] = _read(argument, value, given, space)
        rule: AbstractRule = RULES[name](**given)
        rule.check(space)
    except CeoptError as error:
        raise type(error)(f"{_RULES} cannot use {where}: {error}") from error
    return rule


@functools.cache
def _schema() -> dict[str, Any]:
    """Return what each rule takes, by name: the same file that editors and other programs check rules by."""
    text = files("ceopt.cli").joinpath("rules_schema.json").read_text(encoding="utf-8")
    described: dict[str, Any] = json.loads(text)["$defs"]
    return described


# ---- arguments that plain data stand for -----------------------------------------------------------------------------
def _read(argument: str, value: Any, given: Mapping[str, Any], space: FeatureSpace) -> Any:
    """Return what a rule takes for a value of a file."""
    match argument:
        case "frame" | "data":
            return _frame(value)
        case "equations":
            return _equations(value)
        case "forest" if isinstance(value, _Forest):
            return read_model(value.path, allow_pickle=value.allow_pickle)
        case "transitions":
            return _transitions(value, given.get("column"), space)
    return value


def _frame(value: Any) -> pd.DataFrame | None:
    """Return a list of rows as a frame."""
    if value is None:
        return None
    is_table = isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
    if not is_table:
        but = f"it is {_kind(value)}"
        raise InvalidTypeError("A table", "a list of rows, each an object", but, 'Write [{"age": 30}, ...].')
    names = list(value[0])
    for place, row in enumerate(value, start=1):
        if set(row) != set(names):
            but = f"row {place} has {', '.join(row) or 'none'}"
            then = "Add what is missing."
            raise InvalidValueError("A table", f"the columns {', '.join(names)} in each row", but, then)
    return pd.DataFrame(value, columns=names)


def _transitions(value: Any, column: Any, space: FeatureSpace) -> Any:
    """Return a mapping whose keys are levels of the column, where their texts are."""
    if not isinstance(value, dict) or not isinstance(column, str) or column not in space:
        return value
    levels = {_text(level): level for level in (*space[column].levels, None)}
    return {levels.get(key, key): targets for key, targets in value.items()}


def _equations(value: Any) -> Any:
    """Return linear equations by column."""
    if not isinstance(value, dict):
        return value
    equations = {}
    for column, equation in value.items():
        if not isinstance(equation, dict) or "parents" not in equation:
            but = f"that of {column!r} is {json.dumps(equation)}"
            raise InvalidTypeError("Causal", 'an object with "parents" as equation', but, "Write the parents in it.")
        for word in equation:
            if word not in {"parents", "intercept"}:
                raise UnknownNameError.among("Causal", "part of an equation", word, ("parents", "intercept"))
        equations[column] = LinearEquation(**equation)
    return equations


def _text(level: Any) -> str:
    """Return a level as JSON has it for a key."""
    if isinstance(level, str):
        return level
    return json.dumps(level)


def _kind(value: Any) -> str:
    """Return what a value of JSON is, in words."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
