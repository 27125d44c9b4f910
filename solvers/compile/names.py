"""Names for files: readable, legal in LP and MPS, unique, and the same on every run."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel

# ==== Names for files: readable, legal in LP and MPS, unique, and the same on every run ===============================

#: Pyomo's writers put 5 characters around the name of a row. Gurobi takes names of 254 in LP files, and drops a row of
#: 255 without a word; SCIP takes objectives of 254 in MPS files. The rest is room for other readers.
MAX_LENGTH = 240
ROW_MARKS = ("c_e_", "c_l_", "c_u_", "r_l_", "r_u_")  # as Pyomo's writers put before a row's name; "_" comes behind

_KEYWORDS = frozenset(
    """
    st s.t. subject such that to bound bounds free inf infinity nan end bin binary binaries gen general
    generals int integer integers min minimum minimize minimise max maximum maximize maximise sos sos1
    sos2 semi semis sec secs sin obj constraint constraints lazy user cuts pwl pwlobj scenario name rows
    columns rhs ranges endata objsense marker objsense_max objsense_min quadobj qmatrix qcmatrix
    qsection one_var_constant c_e_one_var_constant quadobjvar qmatrixvar
    """.split()
)
_NUMBER_LIKE = re.compile(r"^([0-9.]|e([0-9e+-]|$)|inf|nan)", re.IGNORECASE)  # "inflow" too, to HiGHS's LP reader
_READ_FROM_A_FILE = re.compile(r"^\w+\(\w*\)$", re.ASCII)


def label_components(components: Iterable[Any], row_marks: Sequence[str] = ROW_MARKS) -> dict[int, str]:
    """Return ``id(component data) -> label`` for Vars, Constraints and Objectives.

    A label is the component's local name and its index, ``leaf(3_12)``. Components that would share one bear their
    block's path in front, ``second_leaf(3_12)``, and a number behind if they still do.

    Parameters
    ----------
    components
        In the order in which they get their names.
    row_marks
        What the file's writer may put before a row's name; none of the names it makes is that of another component.
        Empty where rows are written under their labels.
    """
    members = list(components)
    plain = [_plain(member) for member in members]
    owners: dict[str, set[int]] = defaultdict(set)
    for member, label in zip(members, plain, strict=True):
        owners[label].add(id(member.parent_component()))
    shared: set[int] = set()
    for together in owners.values():
        if len(together) > 1:
            shared |= together
    labels: dict[int, str] = {}
    taken: set[str] = set()
    for member, label in zip(members, plain, strict=True):
        full = label
        if id(member.parent_component()) in shared:
            full = _path(member) + label
        candidate = legal(full, member.name)
        number = 1
        while not taken.isdisjoint(_forms(candidate, member, row_marks)):
            number += 1
            candidate = legal(f"{full}_{number}", f"{member.name}_{number}")
        taken.update(_forms(candidate, member, row_marks))
        labels[id(member)] = candidate
    return labels


def legal(label: str, full_name: str) -> str:
    """Return ``label`` if a reader accepts it, else with ``_`` before it, or cut with a hash of ``full_name``."""
    if not label or label.lower() in _KEYWORDS or _NUMBER_LIKE.match(label):
        label = "_" + label
    if len(label) > MAX_LENGTH:
        tail = hashlib.blake2b(full_name.encode(), digest_size=5).hexdigest()
        label = f"{label[: MAX_LENGTH - len(tail) - 1]}_{tail}"
    return label


def _plain(member: Any) -> str:
    name = member.parent_component().local_name.strip("'")  # Pyomo's quotes around a name with signs in it
    base = str(name)
    if not _READ_FROM_A_FILE.match(name):
        base = _ascii(name)
    index = member.index()
    if index is None:
        return base
    parts = index
    if not isinstance(index, tuple):
        parts = (index,)
    return f"{base}({'_'.join(_ascii(str(part)) for part in parts)})"


def _path(member: Any) -> str:
    block = member.parent_block()
    if block.parent_block() is None:
        return ""
    return _ascii(block.name).strip("_") + "_"


def _forms(label: str, member: Any, row_marks: Sequence[str]) -> list[str]:
    """Return the names that the label becomes in a file, as readers that ignore case see them."""
    if member.ctype is pyo.Constraint and row_marks:
        return [f"{mark}{label}_".lower() for mark in row_marks]
    return [label.lower()]


def _ascii(text: str) -> str:
    """Return the text in letters, digits and ``_`` of ASCII, accents dropped."""
    if text.isascii():
        return re.sub(r"[^A-Za-z0-9_]", "_", text)
    decomposed = (unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "_" for letter in text)
    return re.sub(r"[^A-Za-z0-9_]", "_", "".join(decomposed))


# ==== The names that stand in a file of arrays: one for each column, row and cone, none twice =========================


@final
@dataclass(frozen=True, slots=True)
class FileNames:
    """Names of a program's columns, linear rows, cones and objective, in the program's own order."""

    columns: list[str]
    rows: list[str]
    cones: list[str]
    objective: str

    @classmethod
    def of(cls, program: CompiledModel, objective: Any) -> FileNames:
        """Return names for a program without quadratic rows.

        Parameters
        ----------
        program
            Its columns without a Var, and its cone without a Constraint, belong to the objective.
        objective
            The active Objective, or None.
        """
        members = [*program.columns, *program.rows, *(cone.constraint for cone in program.cones)]
        stated = [member for member in members if hasattr(member, "parent_component")]
        if objective is not None:
            stated.append(objective)
        labels = label_components(stated, row_marks=())
        taken = {label.lower() for label in labels.values()}

        def names(parts: Iterable[Any], otherwise: str) -> list[str]:
            found = []
            for part in parts:
                label = labels.get(id(part))
                if label is None:
                    label = _fresh(otherwise, taken)
                found.append(label)
            return found

        label = "objective"
        if objective is not None:
            label = labels[id(objective)]
        columns = names(program.columns, f"{label}_quadratic")
        rows = names(program.rows, "row")
        cones = names((cone.constraint for cone in program.cones), f"{label}_cone")
        if objective is None:
            label = _fresh(label, taken)
        return cls(columns, rows, cones, label)


def _fresh(wanted: str, taken: set[str]) -> str:
    name = legal(wanted, wanted)
    number = 1
    while name.lower() in taken:
        number += 1
        name = legal(f"{wanted}_{number}", f"{wanted}_{number}")
    taken.add(name.lower())
    return name
