"""The names that stand in a file of arrays: one for each column, row and cone, none twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from ceopt.solvers.compile.component_names import label_components, legal

if TYPE_CHECKING:
    from ceopt.solvers.compile.compiled_model import CompiledModel

__all__ = ["FileNames"]


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
