"""The rows that put a person's block near a hull of points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.common.gc_manager import PauseGC
from pyomo.core.expr.numeric_expr import LinearExpression

from ceopt.formulations.constraints.hull.distance import Norm
from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.tolerances import ORDINARY_HULL_COEFFICIENTS, TINY
from ceopt.solvers.cones import soc

if TYPE_CHECKING:
    from ceopt.formulations.columns.columns_block import AbstractColumns
    from ceopt.formulations.constraints.hull.points import HullColumn, HullPoints

__all__ = ["HullRows"]


@final
@dataclass(frozen=True, slots=True)
class HullRows:
    """Writes the rows of one :class:`Hull` into an empty block.

    Parameters
    ----------
    block, x
        Where the rows go, and the person.
    points
        What spans the hulls.
    norm, penalty
        As the rule has them.
    limit
        Greatest norm of the slack: a number, 0 for no slack at all, a variable, or None where there is no limit.
    """

    block: Any
    x: AbstractColumns
    points: HullPoints
    norm: Norm
    limit: Any
    penalty: float | None

    def write(self) -> None:
        """Add the variables ``weight``, ``in_cluster`` and those of the slack, and every row."""
        with PauseGC():  # looking again and again at what was just made takes longer than making it
            self._write()

    def _write(self) -> None:
        slackless = isinstance(self.limit, float) and self.limit == 0.0
        if slackless:
            places = self.points.within(self.x.reach)
        else:
            places = np.arange(len(self.points.values))
        self.block.weight = pyo.Var(places.tolist(), bounds=(0.0, 1.0))
        weights = list(self.block.weight.values())
        self._write_shares(places, weights)
        values = self.points.values[places] - self.points.shift
        slacks = []
        for j, column in enumerate(self.points.columns):
            form = self._value(column) + LinearForm(-float(self.points.shift[j]))
            if not form.terms and abs(form.constant) <= 1e-12 and not values[:, j].any():
                continue
            if not slackless:
                slacks.append((column.key, *self._slack(column.key)))
                form += total(slacks[-1][1:])
            self._write_point(column.key, form, values[:, j], weights)
        self._write_norm(slacks)

    def _value(self, column: HullColumn) -> LinearForm:
        """Return what the person's column counts in the hull."""
        coordinate = self.x.coordinate(column.name)
        if column.rank is None:
            form = coordinate.raw()
        else:
            form = coordinate.indicator({column.rank})
        return form.scaled(1.0 / column.scale)

    def _write_shares(self, places: NDArray[np.intp], weights: list[Any]) -> None:
        rows = Rows(self.block, "share")
        labels = self.points.labels
        cluster = self.points.cluster[places]
        if labels == (None,):
            rows.add("all", LinearForm(0.0, tuple((1.0, v) for v in weights)), lower=1.0, upper=1.0)
            return
        self.block.in_cluster = pyo.Var(list(labels), domain=pyo.Binary)
        for k, label in enumerate(labels):
            own = tuple((1.0, weights[i]) for i in np.flatnonzero(cluster == k))
            rows.add(label, LinearForm(0.0, (*own, (-1.0, self.block.in_cluster[label]))), lower=0.0, upper=0.0)
        one = LinearForm(0.0, tuple((1.0, v) for v in self.block.in_cluster.values()))
        Rows(self.block, "one_cluster").add("all", one, lower=1.0, upper=1.0)

    def _write_point(self, key: Any, form: LinearForm, values: NDArray[np.float64], weights: list[Any]) -> None:
        """Add a column's row, multiplied so that a solver sees its smallest coefficients."""
        sizes = [abs(c) for c, _ in form.terms] + [float(np.abs(values).max(initial=0.0))]
        low = min(size for size in (*sizes, 1e300) if size > 0.0)
        high = max(sizes)
        least, greatest = ORDINARY_HULL_COEFFICIENTS
        ordinary = high == 0.0 or (low >= least and high <= greatest)
        if ordinary:
            factor = 1.0
        else:
            factor = max(2.0 ** -round(math.log2(math.sqrt(low) * math.sqrt(high))), 2.0**-13)
        scaled = factor * values
        # What is no more than a solver's tolerance counts as that, or as nothing, whichever is nearer.
        scaled = np.where(np.abs(scaled) >= TINY, scaled, TINY * np.round(scaled / TINY))
        taken = np.flatnonzero(scaled)
        form = form.scaled(factor)
        rows = Rows(self.block, "point")
        if not taken.size:
            rows.add(key, form, lower=0.0, upper=0.0)
            return
        # As one expression of plain lists: with a few hundred thousand terms, a tuple for each would take seconds.
        short = form.expression()
        if isinstance(short, float):
            coefs = []
            variables = []
        else:
            coefs = short.linear_coefs
            variables = short.linear_vars
        body = LinearExpression(
            constant=form.constant,
            linear_coefs=[*coefs, *(-scaled[taken]).tolist()],
            linear_vars=[*variables, *(weights[i] for i in taken.tolist())],
        )
        self.block.point[key] = body == 0.0

    # ---- the slack ---------------------------------------------------------------------------------------------------
    @property
    def _is_split(self) -> bool:
        """Whether the slack is stated as two parts, so that its absolute value is linear."""
        return self.norm == "l1" or self.penalty is not None or (self.norm == "linf" and not self._is_number)

    @property
    def _is_number(self) -> bool:
        return isinstance(self.limit, float)

    def _slack(self, key: Any) -> tuple[LinearForm, ...]:
        """Return a column's slack as one signed form, or as its two parts."""
        most = self.limit if self._is_number else None
        if self._is_split:
            names = {"over": 1.0, "under": -1.0}
        else:
            names = {"slack": 1.0}
        forms = []
        for name, sign in names.items():
            if self.block.component(name) is None:
                self.block.add_component(name, pyo.Var(pyo.Any, dense=False))
            variable = self.block.component(name)[key]
            if self._is_split:
                variable.setlb(0.0)
            elif most is not None:
                variable.setlb(-most)
            variable.setub(most)
            forms.append(LinearForm(0.0, ((sign, variable),)))
        return tuple(forms)

    def _write_norm(self, slacks: list[tuple[Any, ...]]) -> None:
        """Limit the norm of the slack, and charge for it."""
        lengths = {}
        for key, *parts in slacks:
            terms: list[tuple[float, Any]] = []
            for part in parts:
                terms += [(1.0, variable) for _, variable in part.terms]
            lengths[key] = LinearForm(0.0, tuple(terms))
        if self.limit is not None and slacks:
            if self._is_number:
                most = LinearForm(self.limit)
            else:
                most = LinearForm(0.0, ((1.0, self.limit),))
            if self.norm == "l1":
                Rows(self.block, "within").add("norm", total(lengths.values()) + most.scaled(-1.0), upper=0.0)
            elif self.norm == "l2":
                entries = [total(parts).expression() for _, *parts in slacks]
                self.block.within = pyo.Constraint(expr=soc(self.limit, entries) >= 0.0)
            elif not self._is_number:
                for key, length in lengths.items():
                    Rows(self.block, "within_each").add(key, length + most.scaled(-1.0), upper=0.0)
        if self.penalty is not None:
            charged = total(lengths.values()).scaled(float(self.penalty)).expression()
            self.block.penalty = pyo.Expression(expr=charged)
            self.x.surcharges.append(self.block.penalty)
