"""The rows of robust validity: what the covariance and the radius take off a mean score, as norms of what it sees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.predictors.decision.margin import margin_near, row_scale
from ceopt.formulations.predictors.embed.inputs import Inputs
from ceopt.formulations.predictors.representation.predictor import Predictor
from ceopt.formulations.predictors.representation.representation import Affine
from ceopt.solvers.cones import soc

if TYPE_CHECKING:
    from ceopt.formulations.columns.factual import Factual
    from ceopt.formulations.predictors.representation.tree import Floats
    from ceopt.formulations.programs.moments import Moments

__all__ = ["RobustRows"]

_NONE = 1e-12  # of the greatest entry: an entry below is rounding


@final
@dataclass(frozen=True, slots=True)
class RobustRows:
    """Writes the rows of one rule into an empty block.

    Parameters
    ----------
    block, x
        Where the rows go, and the person.
    predictor
        What says which columns the classifier sees of x.
    moments
        Mean and covariance of its parameters, the intercept last.
    """

    block: Any
    x: Factual
    predictor: Predictor
    moments: Moments

    def write(self, kappa: float, ambiguity: float) -> None:
        """State that the mean score less ``kappa`` deviations less ``ambiguity`` lengths is at least the margin."""
        mean, factor = self.moments.mean, self.moments.factor
        score = Predictor(Affine(mean[:-1], mean[-1]), self.predictor.encoding, None, self.predictor.space)
        point = np.array([[self.x.point[name] for name in self.x.space.names]])
        margin = margin_near(score, float(score.score(point)[0]), point)
        unit = row_scale(score, margin)
        read = np.ones(len(mean) - 1, dtype=bool)
        if ambiguity == 0.0:
            read = mean[:-1].astype(bool) | (kappa > 0.0) & factor[:-1].any(axis=1)
        inputs = Inputs(self.predictor, self.x, read)
        favourable = _forms(inputs, unit * mean[None, :])[0]
        if kappa > 0.0 and factor.size:
            favourable += self._norm("spread", _forms(inputs, unit * kappa * factor.T, triangular=True)).scaled(-1.0)
        if ambiguity > 0.0:
            favourable += self._norm("ambiguity", _forms(inputs, unit * ambiguity * np.eye(len(mean)))).scaled(-1.0)
        Rows(self.block, "favourable").add("score", favourable, lower=unit * margin)

    def keep_off_unseen(self) -> None:
        """Keep the person off the levels that the pipeline fails on."""
        for column, ranks in self.predictor.unseen.items():
            Rows(self.block, "never_seen").add(column, self.x.coordinate(column).indicator(ranks), upper=0.0)

    def _norm(self, name: str, entries: list[LinearForm]) -> LinearForm:
        """Return a form that is at least the norm of the entries: a variable of its own, or a number."""
        still = math.hypot(*(form.constant for form in entries if not form.terms))
        moving = tuple(form for form in entries if form.terms)
        if not moving:
            return LinearForm(still)
        entries = [*moving, LinearForm(still)] if still > 0.0 else list(moving)
        variable = pyo.Var(bounds=(0.0, None))
        self.block.add_component(name, variable)
        cone = soc(variable, [form.expression() for form in entries]) >= 0.0
        self.block.add_component(f"{name}_cone", pyo.Constraint(expr=cone))
        self.x.also_place(_Length(variable, tuple(entries)))
        return LinearForm(0.0, ((1.0, variable),))


@final
@dataclass(frozen=True, slots=True)
class _Length:
    """Sets a variable to the norm of some forms, once the columns are placed."""

    variable: Any
    entries: tuple[LinearForm, ...]

    def __call__(self, _point: Any) -> None:
        if all(v.value is not None for form in self.entries for _, v in form.terms):
            self.variable.set_value(math.hypot(*(form.value() for form in self.entries)), skip_validation=True)


def _forms(inputs: Inputs, weights: Floats, *, triangular: bool = False) -> list[LinearForm]:
    """Return ``weights @ (phi(x), 1)``, of several rows such that their norm is the same.

    There are no more rows than atoms, and a constant. Triangular ones have half the terms of dense ones: with the rows
    of an eigenvalue decomposition, HiGHS failed on one in four of the programs of German credit.
    """
    rows = np.column_stack([weights[:, :-1] @ inputs.matrix, weights[:, :-1] @ inputs.offset + weights[:, -1]])
    if triangular or len(rows) > rows.shape[1]:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
        lead = rows[np.arange(len(rows)), (np.abs(rows) > _NONE * np.abs(rows).max(initial=0.0)).argmax(axis=1)]
        rows = rows * np.where(lead < 0.0, -1.0, 1.0)[:, None] + 0.0  # no -0
    return inputs.forms(rows[:, :-1], rows[:, -1])
