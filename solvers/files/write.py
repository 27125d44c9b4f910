r"""A model as an LP, MPS, CBF or PTF file, with names that a person can read and a table of what each name means.

LP and MPS files know no cones. A second-order cone is restated in them, exactly, as a quadratic row:

.. math::
    t \ge \lVert v \rVert \iff v^\top v - t^2 \le 0,\ t \ge 0 \qquad
    2tu \ge \lVert v \rVert^2,\ t, u \ge 0 \iff v^\top v - 2tu \le 0,\ t, u \ge 0

An entry that is a number or a Var stands in the row itself; an affine one gets a column, and a row that says what it
is. So does a head that may be negative.

They know SOS1 and SOS2 sets: ``pyo.SOSConstraint`` stands in them as itself. In CBF and PTF files it stands as the
binaries and rows of :mod:`ceopt.solvers.compile.ordered_sets`.
"""

from __future__ import annotations

import io
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import pyomo.environ as pyo
from pyomo.core.base.expression import NamedExpressionData
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn.plugins.lp_writer import LPWriter
from pyomo.repn.plugins.mps import ProblemWriter_mps

from ceopt.solvers.compile.compiled_model import CompiledModel, compile_model
from ceopt.solvers.compile.names import ROW_MARKS, FileNames, label_components
from ceopt.solvers.compile.ordered_sets import refuse_wrong_piecewise, says_something
from ceopt.solvers.compile.pyomo_walker import Recorder, Walker, refuse_foreign_components
from ceopt.solvers.compile.quadratic_cones import without_quadratics
from ceopt.solvers.compile.rows_and_cones import cone_of, is_convex
from ceopt.solvers.cones import ConeMargin
from ceopt.solvers.errors import CeoptError, UnknownNameError, UnsupportedProblemError
from ceopt.solvers.files.cbf import cbf_text
from ceopt.solvers.files.model_builder import add
from ceopt.solvers.manifest import check_held, described_block, feature_of, manifest_of
from ceopt.solvers.whole_files import file_path, named_failures, require_place, write_files

# ==== Second-order cones as quadratic rows, for files that know no cones: an exact restatement ========================


@contextmanager
def cones_as_quadratic_rows(model: Any, suffix: str) -> Iterator[dict[int, Any]]:
    """Put quadratic rows in the place of the model's active second-order cones for the time of writing.

    Yields
    ------
    dict
        ``id`` of each component that was added -> the constraint that it is for.

    Raises
    ------
    UnsupportedProblemError
        A cone is semidefinite or exponential, or not stated as a cone.
    """
    active = model.component_data_objects(pyo.Constraint, active=True)
    found = [(con, margin) for con in active if (margin := _margin(con)) is not None]
    for con, margin in found:
        if not margin.cone.heads:
            raise UnsupportedProblemError(
                "write",
                f"linear, quadratic and second-order constraints in a file that ends in {suffix}",
                f"constraint {con.name!r} is a cone of the {margin.cone} kind",
                "Write the model as .cbf.",
            )
        Walker(Recorder()).row(con)  # refuses other bounds than 0, and entries that are not affine
    if not found:
        yield {}
        return
    block = add(model, "cones", pyo.Block(concrete=True))
    try:
        restating = _Restating(block)
        for con, margin in found:
            con.deactivate()
            restating.add(con, margin)
        yield restating.origin
    finally:
        for con, _ in found:
            con.activate()
        model.del_component(block)


@final
class _Restating:
    """Columns and rows on a block of their own, under the names of the constraints that they are for."""

    def __init__(self, block: Any) -> None:
        self._block = block
        self._components: dict[tuple[int, str], Any] = {}
        self.origin: dict[int, Any] = {}

    def add(self, con: Any, margin: Any) -> None:
        """Add one cone's row, and the columns and rows of entries that cannot stand in it."""
        n_heads = margin.cone.heads
        entries = list(margin.args)
        numbers = [_is_number(entry) for entry in entries]
        for k, entry in enumerate(entries):
            is_head = k < n_heads
            # a row of numbers alone would be none: its first entry becomes a column
            if not (k == 0 and all(numbers)) and _stands(entry, is_number=numbers[k], is_head=is_head):
                entries[k] = pyo.value(entry) if numbers[k] else entry
                continue
            column = self._component_for(con, "_entry", pyo.Var)[_index(con, k)]
            if is_head:
                column.setlb(0.0)
            row = self._component_for(con, "_entry_is", pyo.Constraint)
            row[_index(con, k)] = column == entry
            self._trace(con, column, row[_index(con, k)])
            entries[k] = column
        tail = entries[n_heads:]
        if tail:
            product = entries[0] * entries[0] if n_heads == 1 else 2.0 * entries[0] * entries[1]
            row = self._component_for(con, "", pyo.Constraint)
            row[_index(con)] = pyo.quicksum(entry * entry for entry in tail) - product <= 0
            self._trace(con, row[_index(con)])

    def _component_for(self, con: Any, ending: str, kind: Any) -> Any:
        """Return the component on the block to which one constraint's members add."""
        parent = con.parent_component()
        key = (id(parent), ending)
        if key not in self._components:
            name = parent.local_name.strip("'") + ending
            if not ending and not parent.is_indexed():
                component = kind([None])
            elif kind is pyo.Var:
                component = kind(pyo.Any, dense=False)
            else:
                component = kind(pyo.Any)
            self._components[key] = add(self._block, name, component)
        return self._components[key]

    def _trace(self, con: Any, *members: Any) -> None:
        self.origin.update((id(member), con) for member in members)


def _margin(con: Any) -> Any:
    body = con.body
    while isinstance(body, NamedExpressionData):
        body = body.expr
    if body.__class__ is ConeMargin:
        return body
    return None


def _index(con: Any, *more: int) -> Any:
    """Return the constraint's index with more behind it."""
    index = con.index()
    if index is None:
        index = ()
    elif not isinstance(index, tuple):
        index = (index,)
    whole = (*index, *more)
    if not whole:
        return None
    if len(whole) == 1:
        return whole[0]
    return whole


def _is_number(entry: Any) -> bool:
    if not hasattr(entry, "is_potentially_variable") or not entry.is_potentially_variable():
        return True
    return bool(entry.is_variable_type() and entry.fixed)


def _stands(entry: Any, *, is_number: bool, is_head: bool) -> bool:
    """Whether an entry can stand in the quadratic row itself."""
    if is_number:
        return not is_head or pyo.value(entry) >= 0
    if not entry.is_variable_type():
        return False
    return not is_head or (entry.lb is not None and entry.lb >= 0)


# ==== SOS1 and SOS2 sets, for files that know them: each member a column with its bounds ==============================


@contextmanager
def sets_over_columns(model: Any) -> Iterator[None]:
    """Make every member of the model's active sets a column of its file, for the time of writing.

    A fixed Var becomes one with equal bounds: as a constant it would lose its place among its neighbours. A Var that
    stands in sets alone gets a row that says a bound of its own, without which writers leave its bounds out. A set of
    so few members that it says nothing is left out.
    """
    active = list(model.component_data_objects(pyo.SOSConstraint, active=True))
    if not active:
        yield
        return
    empty = [member for member in active if not says_something(member)]
    members = {id(var): var for member in active for var in member.get_variables()}
    fixed = [(var, var.lower, var.upper) for var in members.values() if var.fixed]
    block = add(model, "sets", pyo.Block(concrete=True))
    try:
        for member in empty:
            member.deactivate()
        for var, _, _ in fixed:
            var.setlb(var.value)
            var.setub(var.value)
            var.unfix()
        block.bound = pyo.Constraint(pyo.Any)
        for k, var in enumerate(_strays(model, members)):
            if var.lb is not None:
                block.bound[k] = var >= var.lb
            elif var.ub is not None:
                block.bound[k] = var <= var.ub
        yield
    finally:
        model.del_component(block)
        for var, lower, upper in fixed:
            var.fix()
            var.lower = lower
            var.upper = upper
        for member in empty:
            member.activate()


def _strays(model: Any, members: dict[int, Any]) -> list[Any]:
    """Return the Vars of sets that are in no active constraint and no active objective."""
    left = dict(members)
    for kind in (pyo.Constraint, pyo.Objective):
        for component in model.component_data_objects(kind, active=True):
            if not left:
                return []
            for var in identify_variables(component.expr, include_fixed=False):
                left.pop(id(var), None)
    return list(left.values())


# ==== A model as a file with names that a person can read, and a table of where each name comes from ==================

CONSTANT = "ONE_VAR_CONSTANT"  # the column fixed at 1 that carries the objective's constant in Pyomo's files
#: Columns that SCIP adds for a quadratic cost when it reads an LP and an MPS file.
_OF_QUADRATIC_COST = ("quadobjvar", "qmatrixvar")

_Names = dict[str, dict[str, str]]


def write(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a ConcreteModel as ``.lp``, ``.mps``, ``.cbf`` or ``.ptf``, and beside it ``path + ".names.json"``.

    The table maps each name of a column or row, exactly as it stands in the file, to ``component`` (full Pyomo name),
    ``feature``, ``block`` and ``rule``, as the manifests of the blocks say (empty where they say nothing). Fixed Vars
    are constants. The same model gives the same bytes. Both files are written beside and moved into place, names first.

    ============== ====================================================================================================
    suffix         what it holds
    ============== ====================================================================================================
    .lp, .mps      linear and quadratic rows and costs, integers; a second-order cone as an equivalent quadratic row
                   over non-negative heads, its affine entries as columns. A range is two rows; the objective's
                   constant is a column ``ONE_VAR_CONSTANT`` fixed at 1. SOS1 and SOS2 sets as such, which HiGHS alone
                   does not read; a fixed Var in one is a column with equal bounds. Other cones are refused.
    .cbf           linear rows, all cones, integers; convex quadratics as cones; SOS1 and SOS2 sets by binaries, for
                   which their Vars need finite bounds. The names stand in comments.
    .ptf           the same, in MOSEK's text format, which has names (needs the library, but no licence).
    ============== ====================================================================================================

    Raises
    ------
    UnknownNameError
        Another suffix.
    UnsupportedProblemError
        Something that such a file cannot hold.
    MissingLibraryError
        A .ptf file, and MOSEK is not installed.
    InvalidValueError
        The folder does not exist; or a Var no longer holds the value that its block was built around.
    """
    target = file_path("write", path)
    suffix = target.suffix.lower()
    if suffix not in {*_WRITERS, *_CONIC_WRITERS}:
        raise UnknownNameError.among("write", "suffix", target.suffix, [*_WRITERS, *_CONIC_WRITERS])
    require_place("write", target)
    refuse_foreign_components(model, "write")
    refuse_wrong_piecewise(model)
    check_held(model, "write")
    with named_failures("write", target):  # some writers need a folder for the time of writing
        text, names = _algebraic(model, suffix) if suffix in _WRITERS else _conic(model, suffix)
    table = json.dumps(names, indent=1, ensure_ascii=False) + "\n"
    beside = target.with_name(target.name + ".names.json")
    write_files("write", {beside: table.encode(), target: text.encode("ascii", "replace")})


# -- LP and MPS: Pyomo's writers over the model ------------------------------------------------------------------------
def _algebraic(model: Any, suffix: str) -> tuple[str, _Names]:
    """Return the text of an LP or MPS file, and the meaning of its names."""
    rows = cones_as_quadratic_rows(model, suffix)
    with sets_over_columns(model), _objective_of(model) as objective, rows as origin:
        components = list(_components(model))
        labels = label_components(components)
        try:
            text = _WRITERS[suffix](model, lambda member: _label(member, labels))
        except CeoptError:
            raise
        except (ValueError, TypeError, KeyError, RuntimeError, ArithmeticError, NotImplementedError) as error:
            compile_model(model)  # says which component it is, where it is one that no solver here takes
            raise UnsupportedProblemError(
                "write",
                f"a model that {suffix} can hold",
                str(error).strip().rstrip("."),
                "Restate that component.",
            ) from error
        used = set(text.replace(":", " ").split())
        names: _Names = {}
        for member in components:
            label = labels[id(member)]
            is_row = member.ctype is pyo.Constraint
            forms = [f"{mark}{label}_" for mark in ROW_MARKS] if is_row else [label]
            names |= {form: _origin(origin.get(id(member), member)) for form in forms if form in used}
        names |= {form: _origin(objective) for form in (CONSTANT, f"c_e_{CONSTANT}") if form in used}
    return text, names


def _label(member: Any, labels: dict[int, str]) -> str:
    if id(member) in labels:
        return labels[id(member)]
    if member.name == CONSTANT and member.parent_block() is None:
        return CONSTANT
    raise UnsupportedProblemError(
        "write", "the Vars of this model", f"{member.name!r} belongs to none of its blocks", "Add it to the model."
    )


def _write_lp(model: Any, labeler: Callable[[Any], str]) -> str:
    stream = io.StringIO()
    LPWriter().write(model, stream, labeler=labeler)
    return stream.getvalue().replace(" ^ 2", "^2")  # SCIP does not read the blanks


def _write_mps(model: Any, labeler: Callable[[Any], str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mps"
        log = logging.getLogger("pyomo.core")
        # a model without an objective gets a constant one: no news
        was = log.disabled
        log.disabled = True
        try:
            ProblemWriter_mps()(model, str(path), lambda _feature: True, {"labeler": labeler})
        finally:
            log.disabled = was
        return _with_all_columns(_with_one_section(path.read_text(encoding="utf-8")))


def _with_one_section(text: str) -> str:
    """Put all sets into one section: Pyomo begins one for each, which not every reader takes."""
    before, heading, sets = text.partition("\nSOS\n")
    return before + heading + sets.replace("\nSOS\n", "\n")


def _with_all_columns(text: str) -> str:
    """Add the columns that stand only in products: Pyomo leaves them out, and Gurobi and MOSEK refuse the file."""
    lines = text.splitlines()
    sections = {"COLUMNS": [""], "QUADOBJ": [""], "QCMATRIX": [""]}
    heading = ""
    for line in lines:
        if not line.startswith((" ", "*")):
            heading = line.split()[0]
        elif heading in sections:
            sections[heading] += line.split()[:-1]
    listed = {*sections["COLUMNS"]}
    missing = dict.fromkeys(name for name in sections["QUADOBJ"] + sections["QCMATRIX"] if name not in listed)
    if not missing:
        return text
    objective = next(line.split()[1] for line in lines if line.startswith(" N "))
    at = lines.index("RHS")
    return "\n".join([*lines[:at], *(f"     {name} {objective} 0" for name in missing), *lines[at:]]) + "\n"


_WRITERS: dict[str, Callable[[Any, Callable[[Any], str]], str]] = {".lp": _write_lp, ".mps": _write_mps}


@contextmanager
def _objective_of(model: Any) -> Iterator[Any]:
    """Yield the active objective; for a model without one, a constant objective while it is written."""
    objective = next(model.component_data_objects(pyo.Objective, active=True), None)
    if objective is not None:
        yield objective
        return
    objective = add(model, "feasibility", pyo.Objective(expr=0.0))
    try:
        yield objective
    finally:
        model.del_component(objective)


def _components(model: Any) -> Iterator[Any]:
    """Yield the components that get a name: every Var, and every active Constraint, set and Objective."""
    yield from model.component_data_objects(pyo.Var, descend_into=True)
    yield from model.component_data_objects(pyo.Constraint, active=True)
    yield from model.component_data_objects(pyo.Objective, active=True)
    yield from model.component_data_objects(pyo.SOSConstraint, active=True)


# -- CBF and PTF: the compiled arrays ----------------------------------------------------------------------------------
def _conic(model: Any, suffix: str) -> tuple[str, _Names]:
    """Return the text of a CBF or PTF file, and the meaning of its names."""
    compiled = compile_model(model)
    objective: Any = next(model.component_data_objects(pyo.Objective, active=True), None)
    bent = [row.constraint for row in compiled.quadratics if cone_of(row, compiled.lb) is None]
    if bent or not is_convex(compiled.Q, compiled.sense):
        culprit = bent[0] if bent else objective
        raise UnsupportedProblemError(
            "write",
            f"convex quadratics in a file that ends in {suffix}",
            f"{culprit.ctype.__name__.lower()} {culprit.name!r} is not convex",
            "Write the model as .lp or .mps.",
        )
    program = without_quadratics(compiled)
    names = FileNames.of(program, objective)
    text = _CONIC_WRITERS[suffix](program, names)
    members = [*program.columns, *program.rows, *(cone.constraint for cone in program.cones), objective]
    labels = [*names.columns, *names.rows, *names.cones, names.objective]
    of_sets = {id(part): one.constraint for one in compiled.sets for part in one.parts}
    origins = {}
    for label, made in zip(labels, members, strict=True):
        member = of_sets.get(id(made), made)
        owner = member if hasattr(member, "parent_component") else objective
        if owner is not None:
            origins[label] = _origin(owner)
    return text, origins


def _write_ptf(program: CompiledModel, names: FileNames) -> str:
    from ceopt.solvers.mosek import ptf_text

    return ptf_text(program, names)


_CONIC_WRITERS: dict[str, Callable[[CompiledModel, FileNames], str]] = {".cbf": cbf_text, ".ptf": _write_ptf}


# -- the names of columns, without a file ------------------------------------------------------------------------------
def column_names(model: Any, compiled: CompiledModel, suffix: str) -> dict[str, int | None]:
    """Return the names of a file's columns: name -> column of the compiled model, None for columns of the file's own.

    Vars that are fixed, or in no row and no cost, are none of the file's; a file may list the latter all the same.
    """
    names: dict[str, int | None] = {}
    if suffix in _CONIC_WRITERS:
        program = without_quadratics(compiled)
        objective: Any = next(model.component_data_objects(pyo.Objective, active=True), None)
        for place, label in enumerate(FileNames.of(program, objective).columns):
            names[label] = place if place < len(compiled.columns) else None
        return names
    with sets_over_columns(model), _objective_of(model), cones_as_quadratic_rows(model, suffix):
        components = list(_components(model))
        labels = label_components(components)
        for member in components:
            if member.ctype is pyo.Var:
                names[labels[id(member)]] = compiled.index.get(member)
    added = [CONSTANT] if compiled.Q is None else [CONSTANT, *_OF_QUADRATIC_COST]
    return {**names, **dict.fromkeys(added)}


# -- the table of names ------------------------------------------------------------------------------------------------
def _origin(member: Any) -> dict[str, str]:
    block = described_block(member)
    manifest = None if block is None else manifest_of(block)
    owner = member.parent_block() if block is None else block
    is_root = owner.parent_block() is None
    return {
        "component": member.name,
        "feature": feature_of(member),
        "block": "" if is_root else owner.name,
        "rule": "" if manifest is None else manifest.rule,
    }
