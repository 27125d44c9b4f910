"""Tree ensembles by Misic's split formulation with a coordinate per column: selectable, for research."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import pyomo.environ as pyo

from ceopt.formulations.linear_form import LinearForm, Rows
from ceopt.formulations.predictors.embed.trees.base import AbstractForest
from ceopt.formulations.predictors.embed.trees.reachable_leaves import Cut, NumberCut
from ceopt.formulations.tolerances import TINY
from ceopt.solvers.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["MisicTrees"]

_MANIFEST = Manifest(
    title="trees by split binaries with coordinates",
    formula="leaves left of a split <= q, right of it <= 1 - q; x <= l + (u - l)(1 - q), x >= r - (r - l_0) q",
    reference="Misic 2020, (M)",
    features={"q": 0, "increasing": 0, "not_above": 0, "not_below": 0, "left": 2, "right": 2},
)


@final
class MisicTrees(AbstractForest):
    r"""The split formulation as published, with every split column as a continuous or integer coordinate.

    .. math::
        q_{fk} \le q_{f,k+1}, \qquad
        \sum_{\ell \text{ left of } s} z_{t\ell} \le q_{f(s)k(s)}, \quad
        \sum_{\ell \text{ right of } s} z_{t\ell} \le 1 - q_{f(s)k(s)} \\
        x_f \le l_{fk} + (u_f - l_{fk})(1 - q_{fk}), \qquad x_f \ge r_{fk} - (r_{fk} - \underline{x}_f)\, q_{fk}

    ======== ==================== ============================================================
    symbol   component            meaning
    ======== ==================== ============================================================
    q        ``q[name, cut]``     binary, 1 iff the column lies left of the cut
    z        ``leaf[t, node]``    1 iff tree t ends in that leaf; continuous
    l, r     neighbouring values left and right of the cut, in place of the paper's epsilon
    ======== ==================== ============================================================

    Adds per cut one binary and three rows, per split node two rows, and a coordinate per split column. MILP, exact in
    its integer decisions: a coordinate between l and r satisfies a solver's tolerance on either side.

    Raises
    ------
    UnboundedFeatureError
        A split column has an infinite bound.

    References
    ----------
    Misic, Optimization of tree ensembles, Operations Research 2020.
    """

    manifest = _MANIFEST

    def link(self) -> None:
        """Write the splits, their order, and the rows that tie them to coordinates."""
        self._splits: list[tuple[str, Any, float]] = []
        self.q = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
        below: dict[Cut, LinearForm] = {}
        names: dict[Cut, tuple[Any, ...]] = {}
        previous: NumberCut | None = None
        for cut in self.number_cuts:
            twin = previous is not None and previous.name == cut.name and previous.key[0] == cut.key[0]
            names[cut] = (cut.name, f"{cut.key[0]!r} {cut.key[1]!r}" if twin else repr(cut.key[0]))
            below[cut] = LinearForm(0.0, ((1.0, self.q[names[cut]]),))
            if previous is not None and previous.name == cut.name:
                form = below[cut] + below[previous].scaled(-1.0)
                Rows(self, "increasing").add(names[cut], form, lower=0.0)
            self._tie(cut, names[cut], below[cut])
            previous = cut
        left = Rows(self, "left")
        right = Rows(self, "right")
        for tree, pairs in zip(self.trees, self._variables, strict=True):
            for k, (split, lefts, rights) in enumerate(tree.nodes):
                if split not in below:
                    side, names[split] = self.goes_right(split)
                    below[split] = side.complement()
                index = (tree.position, k, *names[split])
                left.add(index, _sum(pairs, lefts) + below[split].scaled(-1.0), upper=0.0)
                right.add(index, _sum(pairs, rights) + below[split], upper=1.0)

    def _tie(self, cut: NumberCut, index: tuple[Any, ...], below: LinearForm) -> None:
        coordinate = self.x.numeric(cut.name)
        last, first = cut.key
        coordinate.require_bounds("Misic's form")
        value = coordinate.from_origin()
        origin = coordinate.origin
        low = coordinate.interval.lower
        high = coordinate.interval.upper
        unit = 1.0 / coordinate.unit
        if (high - last) * unit >= TINY:
            form = (value + below.scaled(high - last)).scaled(unit)
            Rows(self, "not_above").add(index, form, upper=(high - origin) * unit)
        if (first - low) * unit >= TINY:
            form = (value + below.scaled(first - low)).scaled(unit)
            Rows(self, "not_below").add(index, form, lower=(first - origin) * unit)
        ((_, variable),) = below.terms
        self._splits.append((cut.name, variable, last))
        coordinate.claim(variable, 1, low, last)
        coordinate.claim(variable, 0, first, high)

    def place(self, point: Mapping[str, float]) -> None:
        """Set leaves and splits to those of the point."""
        super().place(point)
        for name, variable, last in self._splits:
            variable.set_value(1 if point[name] <= last else 0, skip_validation=True)

    def differs(self) -> LinearForm:
        """Return the number of cuts that the column lies on the other side of."""
        flips = [LinearForm(0.0, ((1.0, v),)) for v in self.q.values()]
        forms = []
        for f, v in zip(flips, self.q.values(), strict=True):
            if round(v.value or 0):
                forms.append(f.complement())
            else:
                forms.append(f)
        return LinearForm(sum(f.constant for f in forms), tuple(t for f in forms for t in f.terms))


def _sum(pairs: list[tuple[Any, Any]], positions: tuple[int, ...]) -> LinearForm:
    return LinearForm(0.0, tuple((1.0, pairs[k][1]) for k in positions))
