"""What HiGHS does not read as the format says: refused, or taken out of the text before HiGHS reads it; and PTF files.

Refused in an LP file: a number that stands alone on the left of a row, ``x + 3 <= 4``, or before brackets, ``2 [ x^2
]``: HiGHS drops it. A column that stands twice in the objective, of which it keeps one; a binary column with bounds
beyond 0 and 1. Refused in an MPS file: an entry that stands twice, of which it keeps the first, and the right side of a
free row that is not the objective, which it takes for the objective's.

Refused in both, by line: coefficients that are not finite. HiGHS takes a cost of nan or infinity as it stands and drops
such a term of a row or of a product, so that the program is another one; the text is looked through before it is
parsed. Infinity stays legal as a bound and as the side of a row, nan nowhere.

Taken out: quadratic rows, as HiGHS refuses a file that has them. In LP a row's products stand in brackets, ``3 y + [
x^2 - 2 x * y ] <= 4``. Each pair of brackets is replaced by a column that is not in the file; where HiGHS reports that
column, the products belong. In MPS they are sections ``QCMATRIX row`` of their own, which are left out. So are sections
``SOS``, of which HiGHS takes none.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from ceopt.solvers.cones import Cone
from ceopt.solvers.errors import UnreadableFileError, UnsupportedProblemError
from ceopt.solvers.files.model_builder import add_column, add_cone, add_objective, add_row, affine, costs
from ceopt.solvers.mosek import layout, name_of, require_library

# ==== Coefficients of an LP, MPS or PTF file that are not finite, refused by line =====================================

#: Files without any of these hold no such number: the word, a large exponent, or very many digits.
_PERHAPS = re.compile(r"nan|inf|[ed]\+?\d{3}|\d{300}", re.IGNORECASE)
_COMMENT = re.compile(r"\\.*")
_PERHAPS_IN_LP = re.compile(r"(?<![^\s\d.+\-*/^\[\]:<>=])(?:nan|inf)|e\+?\d{3}|\d{300}", re.IGNORECASE)
_BOUNDS_LINE = re.compile(r"^[ \t]*bounds?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_INFINITE_BOUND = re.compile(
    r"^[ \t]*(?:[+-]?inf(?:inity)?[ \t]*<=[ \t]*)?(?!nan|inf)[^\s\d.+\-*/^\[\]:<>=][^\s+\-*^\[\]:<>=]*"
    r"[ \t]*(?:<=[ \t]*[+-]?(?:inf(?:inity)?|[\d.]+)[ \t]*)?$",
    re.IGNORECASE | re.MULTILINE,
)
_LP_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<relation>[<>=]+)|(?P<mark>[+\-*/^\[\]:])"
    r"|(?P<word>[^\s\d.+\-*/^\[\]:<>=][^\s+\-*^\[\]:<>=]*)"
)
#: Readers take the beginning of a word for a number, as C does.
_WORD = re.compile(r"[+-]?(?:(?P<nan>nan)|inf(?:inity)?)", re.IGNORECASE)
_LEADING_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?")
#: Words of an LP file after which a row or a bound begins; "to" is that of "subject to".
_BEFORE_A_ROW = frozenset({"to", "that", "st", "s.t.", "bounds", "bound", "free"})
_WITH_A_NAME = frozenset({"NAME", "OBJSENSE", "QSECTION", "QCMATRIX"})
_COEFFICIENTS = frozenset({"COLUMNS", "QSECTION", "QCMATRIX", "QUADOBJ", "QMATRIX"})
_SIDE_SECTIONS = frozenset({"RHS", "RANGES"})
_BOUNDS_WITHOUT_A_NUMBER = frozenset({"FR", "MI", "PL", "BV"})


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def refuse_odd_numbers(text: str, suffix: str, path: str) -> None:
    """Refuse nan, and infinity as a coefficient, in a file that ends in .lp or .mps.

    Raises
    ------
    UnreadableFileError
        There is one; or, in an LP file, a name that every reader takes for one.
    """
    if not _PERHAPS.search(text):
        return
    if suffix == ".lp":
        _look_through_lp(text, path)
    else:
        _look_through_mps(text, path)


def odd_number_of_ptf(text: str) -> tuple[int, str] | None:
    """Return the line and the word of the first such number in a PTF file that MOSEK refused."""
    for number, line in enumerate(text.splitlines(), 1):
        stated = line.split("#")[0]
        sides = " ".join(re.findall(r"\[([^\]]*)\]", stated))
        for word in re.split(r"[\s;,]+", sides):
            if _odd(word) == "nan":
                return number, word
        for word in re.sub(r"\[[^\]]*\]", " ", stated).split():
            if _odd(word) and (_LEADING_NUMBER.match(word) or _is_whole(word)):
                return number, word
    return None


def _odd(word: str) -> str:
    """Return "nan" or "inf" where a word begins as such a number, else an empty text."""
    if match := _WORD.match(word):
        if match["nan"]:
            return "nan"
        return "inf"
    digits = _LEADING_NUMBER.match(word)
    if digits and math.isinf(float(re.sub("[dD]", "e", digits[0]))):
        return "inf"
    return ""


def _is_whole(word: str) -> bool:
    """Whether a word is nan or infinity, rather than a name that begins as they do."""
    return word.lstrip("+-").lower() in {"nan", "inf", "infinity"}


# -- LP ----------------------------------------------------------------------------------------------------------------
def _look_through_lp(text: str, path: str) -> None:
    text = _COMMENT.sub("", text)
    bounds = _BOUNDS_LINE.search(text)
    if bounds:  # most infinities are ordinary bounds; without them most files are done with
        text = text[: bounds.end()] + _INFINITE_BOUND.sub("", text[bounds.end() :])
    if not _PERHAPS_IN_LP.search(text):
        return
    tokens = list(_tokens(text))
    for k, token in enumerate(tokens):
        odd = ""
        if token.kind in {"number", "word"}:
            odd = _odd(token.text)
        if odd and token.kind == "word" and not _is_whole(token.text):
            raise UnreadableFileError(
                "read",
                "names that do not begin as nan and infinity do",
                f"line {token.line} of {path!r} has {token.text[:60]!r}",
                "Readers of LP files take them for numbers: rename it.",
            )
        is_label = k + 1 < len(tokens) and tokens[k + 1].text == ":"
        if odd and not is_label and (odd == "nan" or not _is_side(tokens, k)):
            _refuse(token.line, path, token.text)


def _tokens(text: str) -> Iterator[_Token]:
    for number, line in enumerate(text.splitlines(), 1):
        for match in _LP_TOKEN.finditer(line):
            yield _Token(str(match.lastgroup), match[0], number)


def _is_side(tokens: list[_Token], k: int) -> bool:
    """Whether the number ``tokens[k]`` is a whole side of a relation."""
    before = k - 1
    while before >= 0 and tokens[before].text in {"+", "-"}:
        before -= 1
    after = None
    if k + 1 < len(tokens):
        after = tokens[k + 1]
    label = k + 2 < len(tokens) and tokens[k + 2].text == ":"
    if before >= 0 and tokens[before].kind == "relation":
        multiplies = after is not None and after.line == tokens[k].line and after.kind == "word" and not label
        return not multiplies and (after is None or after.text not in {"*", "/", "^", "["})
    if after is None or after.kind != "relation":
        return False
    if before < 0:
        return True
    kind, word, _ = tokens[before]
    return kind == "number" or word == ":" or word.lower() in _BEFORE_A_ROW or bool(_odd(word))


# -- MPS ---------------------------------------------------------------------------------------------------------------
def _look_through_mps(text: str, path: str) -> None:
    section = ""
    objective = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or line.startswith("*"):
            continue
        first = words[0].upper()
        if len(words) == 1 or (not line[0].isspace() and first in _WITH_A_NAME):
            section = first
        elif section == "ROWS" and first == "N":
            objective = objective or " ".join(words[1:])
        elif section in _COEFFICIENTS:
            for _, word in _pairs(words, odd_length=True):
                if _odd(word):
                    _refuse(number, path, word)
        elif section in _SIDE_SECTIONS:
            for row, word in _pairs(words, odd_length=len(words) % 2 == 1):
                if _odd(word) == "nan" or (_odd(word) and section == "RHS" and row == objective):
                    _refuse(number, path, word)
        elif section == "BOUNDS" and first not in _BOUNDS_WITHOUT_A_NUMBER and _odd(words[-1]) == "nan":
            _refuse(number, path, words[-1])


def _pairs(words: list[str], *, odd_length: bool) -> list[tuple[str, str]]:
    """Return (name, number) of a line; where spaces in names blur them, the last one, which is sure."""
    start = 1 if odd_length else 0
    if (len(words) - start) % 2:
        return [(words[-2], words[-1])]
    return list(zip(words[start::2], words[start + 1 :: 2], strict=True))


def _refuse(line: int, path: str, word: str) -> None:
    raise UnreadableFileError(
        "read", "finite coefficients", f"line {line} of {path!r} has {word[:60]!r}", "Check the file."
    )


# ==== Parts of a file that HiGHS reads otherwise than its format says: found in the text, and refused =================

_TO_ROWS = r"^[ \t]*(?:subject\s+to|such\s+that|st\.?|s\.t\.)[ \t]*:?"
_ENDS = r"bounds?|gen|generals?|integers?|bin|binar(?:y|ies)|semi|sos|free|end"
_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL
_OBJECTIVE = re.compile(rf"^[ \t]*(?:min|max)\w*[ \t]*:?(?P<text>.*?)(?={_TO_ROWS})", _FLAGS)
_ROWS = re.compile(rf"{_TO_ROWS}(?P<text>.*?)(?=^[ \t]*(?:{_ENDS})\b)", _FLAGS)
_BOUNDS = re.compile(rf"^[ \t]*bounds?[ \t]*$(?P<text>.*?)(?=^[ \t]*(?:{_ENDS})\b)", _FLAGS)
_BINARIES = re.compile(rf"^[ \t]*(?:bin|binary|binaries)[ \t]*$(?P<text>.*?)(?=^[ \t]*(?:{_ENDS})\b)", _FLAGS)
_BRACKETS = re.compile(r"\[[^\]]*\](?:\s*/\s*2)?")
_LABEL = re.compile(r"[^\s:]+\s*:")
_NUMBER = r"(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?\d++)?+"
_NAME = re.compile(r"(?<![^\s+\-*])[^\s\d.+\-*/^\[\]:<>=][^\s+\-*/^\[\]:<>=]*")
_LONE = re.compile(rf"(?<![^\s+\-:<>=^/]){_NUMBER}(?:\s*(?=[-+<>=\[])|\s+(?=[\d.]))")
#: What stands before a number that is a row's right side, an exponent or the divisor of a product.
_BELONGS = re.compile(r"[\^/<>=]\s*[+-]?\s*$")
_BOUND = re.compile(rf"(?P<sign>[+-]?)\s*(?P<number>{_NUMBER})")


def refuse_misread(text: str, suffix: str, path: str) -> None:
    """Refuse the text of a file that ends in .lp or .mps and has something of that kind.

    Raises
    ------
    UnreadableFileError
        It has.
    """
    if suffix == ".lp":
        text = _COMMENT.sub("", text)
        _refuse_constants(text, path)
        _refuse_repeated_costs(text, path)
        _refuse_wide_binaries(text, path)
    else:
        _refuse_repeated_entries(text, path)


# ---- LP --------------------------------------------------------------------------------------------------------------
def _refuse_constants(text: str, path: str) -> None:
    rows = _part(_ROWS, text)
    for match in _LONE.finditer(rows):
        number = match[0].strip()
        behind = rows[match.end() : match.end() + 1]
        is_empty_row = not float(number) and behind != "["
        begin = rows.rfind("\n", 0, match.start()) + 1
        if is_empty_row or _BELONGS.search(rows, max(0, begin - 80), match.start()):
            continue
        line = rows[begin:].split("\n", 1)[0]
        raise _refused(
            path, "a column behind every number on the left of a row", line,
            f"Move {number} to the right side, or into the brackets.",
        )  # fmt: skip


def _refuse_repeated_costs(text: str, path: str) -> None:
    objective = _LABEL.sub(" ", _BRACKETS.sub(" ", _part(_OBJECTIVE, text)), count=1)
    seen: set[str] = set()
    for match in _NAME.finditer(objective):
        if match[0] in seen:
            raise _refused(path, "each column once in the objective", match[0], "Add up its terms.")
        seen.add(match[0])


def _refuse_wide_binaries(text: str, path: str) -> None:
    binaries = set(_part(_BINARIES, text).split())
    if not binaries:
        return
    for line in _part(_BOUNDS, text).splitlines():
        if binaries.isdisjoint(line.split()):
            continue
        if any(match["sign"] == "-" or float(match["number"]) > 1.0 for match in _numbers(line)):
            raise _refused(
                path, "bounds of binary columns within 0 and 1", line, "Make it integer, or mend its bounds."
            )


def _numbers(line: str) -> Iterator[re.Match[str]]:
    """Give the numbers of a bound that are not part of a name, and not 0 with a sign."""
    for match in _BOUND.finditer(line):
        is_name = match.start("number") > 0 and line[match.start("number") - 1] not in " \t+-<>="
        if not is_name and float(match["number"]):
            yield match


def _part(section: re.Pattern[str], text: str) -> str:
    found = section.search(text)
    if found is None:
        return ""
    return found["text"]


# ---- MPS -------------------------------------------------------------------------------------------------------------
def _refuse_repeated_entries(text: str, path: str) -> None:
    section = ""
    column = ""
    seen: set[str] = set()
    free: list[str] = []  # the objective first
    for line in text.splitlines():
        words = line.split()
        if not words or line.startswith("*"):
            continue
        if not line[0].isspace():
            section = words[0].upper()
        elif section == "ROWS" and words[0].upper() == "N":
            free.append(words[-1])
        elif section == "COLUMNS" and len(words) in {3, 5}:
            if words[0] != column:
                column = words[0]
                seen = set()
            for row in words[1::2]:
                if row in seen:
                    raise _refused(path, "each entry of a column once", f"{column} {row}", "Add up its entries.")
                seen.add(row)
        elif section == "RHS":
            for row in words[len(words) % 2 :: 2]:
                if row in free and row != free[0]:
                    needs = "right sides of rows and of the objective alone"
                    raise _refused(path, needs, line, "Leave it out: that row is free.")


def _refused(path: str, needs: str, has: str, then: str = "Restate that row.") -> UnreadableFileError:
    return UnreadableFileError("read", needs, f"{path!r} has {' '.join(has.split())[:60]!r}", then)


# ==== SOS1 and SOS2 sets, taken out of the text =======================================================================

_SETS = re.compile(rf"^[ \t]*sos[12]?[ \t]*$(?P<text>.*?)(?=^[ \t]*(?:{_ENDS})[ \t]*$)", _FLAGS)
_SET = re.compile(r"(?:(?P<name>[^\s:]+)\s*:\s*)?S(?P<kind>[12])\s*::", re.IGNORECASE)
_MEMBER = re.compile(rf"(?P<column>[^\s:,]+)\s*:\s*(?P<weight>[+-]?{_NUMBER})[\s,]*")


@final
@dataclass(frozen=True, slots=True)
class SetOfFile:
    """A set of kind 1 or 2: column -> weight."""

    name: str
    kind: int
    weights: dict[str, float]


def take_sets(text: str, suffix: str, path: str) -> tuple[str, list[SetOfFile]]:
    """Return the text of a file that ends in .lp or .mps without its sets, and the sets.

    Raises
    ------
    UnreadableFileError
        A section of sets has something else in it, or a column twice in one set.
    """
    if "sos" not in text.lower():
        return text, []
    if suffix == ".lp":
        return _sets_of_lp(text, path)
    return _sets_of_mps(text, path)


def _sets_of_lp(text: str, path: str) -> tuple[str, list[SetOfFile]]:
    bare = _COMMENT.sub("", text)
    sets: list[SetOfFile] = []
    for section in _SETS.finditer(bare):
        inside = section["text"]
        heads = list(_SET.finditer(inside))
        first = heads[0].start() if heads else len(inside)
        if inside[:first].strip():
            raise _refused(path, "sets as 'name: S1:: column:weight ...'", inside)
        for head, behind in zip(heads, [*heads[1:], None], strict=True):
            body = inside[head.end() : behind.start() if behind else None]
            if _MEMBER.sub("", body).strip():
                raise _refused(path, "members of a set as column:weight", body, "Check the file.")
            pairs = [(member["column"], member["weight"]) for member in _MEMBER.finditer(body)]
            sets.append(_set(head["name"] or f"sos_{len(sets)}", int(head["kind"]), pairs, path))
    if not sets:
        return text, []
    return _SETS.sub("", bare), sets


def _sets_of_mps(text: str, path: str) -> tuple[str, list[SetOfFile]]:
    kept = []
    read: list[tuple[str, int, list[tuple[str, str]]]] = []
    inside = False
    for line in text.splitlines():
        words = line.split()
        is_heading = bool(words) and not line[0].isspace() and not line.startswith("*")
        if is_heading:
            inside = words[0].upper() == "SOS" and len(words) == 1
        if not inside:
            kept.append(line)
            continue
        if is_heading or not words or line.startswith("*"):
            continue
        if words[0].upper() in {"S1", "S2"} and not _is_number(words[-1]):
            read.append((words[-1] if len(words) > 1 else f"sos_{len(read)}", int(words[0][1]), []))
        elif read and len(words) == 2 and _is_number(words[1]):
            read[-1][2].append((words[0], words[1]))
        else:
            raise _refused(path, "sets as ' S1 name' and lines 'column weight'", line, "Check the file.")
    if not read:
        return text, []
    return "\n".join(kept) + "\n", [_set(*one, path) for one in read]


def _set(name: str, kind: int, pairs: list[tuple[str, str]], path: str) -> SetOfFile:
    weights = {column: float(weight) for column, weight in pairs}
    if len(weights) < len(pairs):
        raise _refused(path, "each column once in a set", name, "Take it out.")
    return SetOfFile(name, kind, weights)


def _is_number(word: str) -> bool:
    return re.fullmatch(rf"[+-]?{_NUMBER}", word) is not None


# ==== A file in MOSEK's own text format as a ConcreteModel; MOSEK parses it, without a licence ========================

_CONES = {
    "quadratic_cone": Cone.SECOND_ORDER,
    "rquadratic_cone": Cone.ROTATED,
    "svec_psd_cone": Cone.SEMIDEFINITE,
    "primal_exp_cone": Cone.EXPONENTIAL,
}
_PTF_SIDES = {"rzero": (0.0, 0.0), "rplus": (0.0, math.inf), "rminus": (-math.inf, 0.0)}


def model_of_ptf(text: str, path: str) -> Any:
    """Return the model.

    Raises
    ------
    MissingLibraryError
        MOSEK is not installed.
    UnreadableFileError
        MOSEK does not take it for such a file.
    UnsupportedProblemError
        It has matrix variables, disjunctions or cones of other kinds.
    """
    library = require_library("read")
    with library.Task() as task, tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model.ptf"
        copy.write_text(text, encoding="utf-8")
        try:
            task.readdata(str(copy))
        except library.Error as error:
            answer = " ".join((error.msg or name_of(error.errno)).split()).rstrip(".").replace(str(copy), path)
            if odd := odd_number_of_ptf(text):
                but = f"line {odd[0]} of {path!r} has {odd[1][:60]!r} (MOSEK says: {answer})"
                raise UnreadableFileError("read", "finite coefficients", but, "Check the file.") from error
            raise UnreadableFileError("read", "a PTF file", f"MOSEK says of {path!r}: {answer}", "Check it.") from error
        if not task.getnumvar() and "\nObjective" not in text:  # MOSEK takes an empty file for an empty program
            raise UnreadableFileError(
                "read", "a PTF file with variables or an objective", f"{path!r} has none", "Check it."
            )
        return _model(task, library, path)


def _model(task: Any, library: Any, path: str) -> Any:
    for what, count in (
        ("matrix variables", task.getnumbarvar()),
        ("disjunctions", task.getnumdjc()),
        ("variables in cones of the old kind", task.getnumcone()),
        ("quadratic terms", task.getnumqobjnz() + sum(map(task.getnumqconknz, range(task.getnumcon())))),
    ):
        if count:
            raise UnsupportedProblemError("read", f"a file without {what}", f"{path!r} has {count}", "Convert it.")
    model = pyo.ConcreteModel()
    n = task.getnumvar()
    m = task.getnumcon()
    columns = []
    for k in range(n):
        bounds = _sides(library, *task.getvarbound(k))
        whole = task.getvartype(k) == library.variabletype.type_int
        columns.append(add_column(model, task.getvarname(k) or f"column_{k}", bounds, integer=whole))
    for r in range(m):
        _, at, values = task.getarow(r)
        bounds = _sides(library, *task.getconbound(r))
        add_row(model, task.getconname(r) or f"row_{r}", list(values), [columns[k] for k in at], bounds)
    _add_cones(model, task, columns, path)
    minimise = task.getobjsense() == library.objsense.minimize
    add_objective(model, task.getobjname(), costs(task.getcfix(), task.getc(), columns), minimise=minimise)
    return model


def _add_cones(model: Any, task: Any, columns: list[Any], path: str) -> None:
    rows, at, values = task.getaccftrip()
    shape = (task.getaccntot(), len(columns))
    whole = sp.csr_array((np.array(values), (np.array(rows, int), np.array(at, int))), shape=shape)
    g = np.array(task.getaccgvector())
    first = 0
    for k in range(task.getnumacc()):
        size = task.getaccn(k)
        name = task.getaccname(k) or f"cone_{k}"
        part = slice(first, first + size)
        domain = name_of(task.getdomaintype(task.getaccdomain(k)))
        first += size
        constant = g[part] - np.array(task.getaccb(k))
        matrix = whole[part]
        if domain in _CONES:
            order, scale = layout(_CONES[domain], size)
            own_order = np.argsort(order)
            constant = (constant / scale)[own_order]
            matrix = sp.csr_array(sp.diags_array(1.0 / scale) @ matrix)[own_order]
            add_cone(model, name, _CONES[domain], _expressions(constant, matrix, columns))
        elif domain in _PTF_SIDES:
            for r, expression in enumerate(_expressions(constant, matrix, columns)):
                add_row(model, name if size == 1 else f"{name}_{r}", [1.0], [expression], _PTF_SIDES[domain])
        elif domain != "r":
            raise UnsupportedProblemError("read", "cones that are known", f"{name!r} of {path!r} is a {domain}", "")


def _expressions(constant: Any, matrix: Any, columns: list[Any]) -> list[Any]:
    parts = [slice(matrix.indptr[r], matrix.indptr[r + 1]) for r in range(len(constant))]
    return [
        affine(float(constant[r]), matrix.data[part].tolist(), [columns[k] for k in matrix.indices[part].tolist()])
        for r, part in enumerate(parts)
    ]


def _sides(library: Any, key: Any, lower: float, upper: float) -> tuple[float, float]:
    keys = library.boundkey
    has_lower = key in {keys.lo, keys.ra, keys.fx}
    has_upper = key in {keys.up, keys.ra, keys.fx}
    return lower if has_lower else -math.inf, upper if has_upper else math.inf


# ==== Quadratic rows of LP and MPS files, taken out of the text =======================================================

_Term = tuple[float, str, str]
_ROWS_BEGIN = re.compile(r"^[ \t]*(subject\s+to|such\s+that|st\.?|s\.t\.)[ \t]*:?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_QUADRATIC_PART = re.compile(r"\[([^\[\]]*)\](\s*/)?")
_TOKEN = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([^\s\d.+\-*^\[\]:<>=][^\s+\-*^\[\]:<>=]*)|([+\-*^])")


@final
@dataclass(frozen=True, slots=True)
class QuadraticRows:
    """A file's text without its quadratic rows, and those rows.

    Parameters
    ----------
    text
        For HiGHS; empty if there was nothing to take out.
    by_column
        Name of a column in ``text`` that is none of the file's -> the terms (coefficient, column, column) in its place.
    by_row
        Name of a row -> its terms.
    extra_row
        Name of a row in ``text`` that is none of the file's.
    """

    text: str = ""
    by_column: dict[str, list[_Term]] = field(default_factory=dict)
    by_row: dict[str, list[_Term]] = field(default_factory=dict)
    extra_row: str = ""


def take_quadratic_rows(text: str, suffix: str, path: str) -> QuadraticRows:
    """Return the quadratic rows of a file that ends in .lp or .mps, and the text without them.

    Raises
    ------
    UnreadableFileError
        A product that is none.
    """
    if suffix == ".lp":
        return _of_lp(text, path)
    return _of_mps(text, path)


def _of_lp(text: str, path: str) -> QuadraticRows:
    if "[" not in text:
        return QuadraticRows()
    text = re.sub(r"\\.*", "", text)
    begin = _ROWS_BEGIN.search(text)
    if begin is None or "[" not in text[begin.end() :]:
        return QuadraticRows()
    head = text[: begin.end()]
    rows = text[begin.end() :]
    mark = "quadratic"
    while mark in text.lower():
        mark += "_"
    by_column: dict[str, list[_Term]] = {}

    def replaced(brackets: re.Match[str]) -> str:
        if brackets[2]:
            raise _refused(path, "no division behind the brackets of a row", brackets[0])
        name = f"{mark}{len(by_column)}"
        by_column[name] = _terms(brackets[1], path)
        return f"1 {name}"

    rows = _QUADRATIC_PART.sub(replaced, rows)
    # a column that stands in products alone is unknown to HiGHS without this row
    columns = {column: None for terms in by_column.values() for _, *pair in terms for column in pair}
    declared = "".join(f"\n+ 0 {column}" for column in columns)
    return QuadraticRows(f"{head}\n{mark}:{declared}\n>= -1\n{rows}", by_column, {}, mark)


def _terms(inside: str, path: str) -> list[_Term]:
    """Return the terms between two brackets."""
    if _TOKEN.sub("", inside).strip():
        raise _refused(path, "products of columns between the brackets of a row", inside)
    tokens = [(match.lastindex, match[0]) for match in _TOKEN.finditer(inside)]
    terms: list[_Term] = []
    while tokens:
        coefficient = 1.0
        while tokens and tokens[0][1] in {"+", "-"}:
            coefficient *= -1.0 if tokens.pop(0)[1] == "-" else 1.0
        if tokens and tokens[0][0] == 1:
            coefficient *= float(tokens.pop(0)[1])
        kinds = "".join(str(kind) for kind, _ in tokens[:3])
        words = [word for _, word in tokens[:3]]
        if kinds == "231" and words[1:] == ["^", "2"]:
            terms.append((coefficient, words[0], words[0]))
        elif kinds == "232" and words[1] == "*":
            terms.append((coefficient, words[0], words[2]))
        else:
            raise _refused(
                path, "terms such as 2 x^2 and 3 x * y between the brackets of a row", inside, "Restate that row."
            )
        del tokens[:3]
    return terms


def _of_mps(text: str, path: str) -> QuadraticRows:
    if "qcmatrix" not in text.lower():
        return QuadraticRows()
    kept: list[str] = []
    by_row: dict[str, list[_Term]] = defaultdict(list)
    row: str | None = None
    for line in text.splitlines():
        words = line.split()
        if words and not line[0].isspace() and not line.startswith("*"):
            if words[0].upper() == "QCMATRIX" and len(words) != 2:
                raise _refused(path, "the name of a row behind QCMATRIX", line)
            row = None
            if words[0].upper() == "QCMATRIX":
                row = words[1]
            if row is not None:
                continue
        if row is None:
            kept.append(line)
        elif words and not line.startswith("*"):
            try:
                first, second, value = words
                by_row[row].append((float(value), first, second))
            except ValueError as error:
                raise _refused(
                    path, "two columns and a number in each line of QCMATRIX", line, "Restate that row."
                ) from error
    if by_row:
        return QuadraticRows("\n".join(kept) + "\n", {}, dict(by_row))
    return QuadraticRows()
