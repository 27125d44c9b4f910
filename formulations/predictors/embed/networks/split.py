"""Neurons whose inputs are split in two by their binary: shared by the partition and the extended form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyomo.environ as pyo

from ceopt.formulations.linear_form import LinearForm, Rows, total
from ceopt.formulations.predictors.embed.networks.base import AbstractNetwork, Neuron
from ceopt.formulations.predictors.embed.networks.big_m import big_m_rows

if TYPE_CHECKING:
    from ceopt.formulations.predictors.representation.decision_rule import Floats

__all__ = ["AbstractSplitNetwork", "Group"]


@final
@dataclass(frozen=True, slots=True)
class Group:
    """A sum ``weights @ atoms`` that is split; it enters the pre-activation times ``factor``."""

    weights: Floats
    factor: float = 1.0


class AbstractSplitNetwork(AbstractNetwork):
    r"""Rows (B), and groups :math:`g_n` of inputs with a part :math:`\zeta_n = z g_n` each.

    .. math::
        y = \textstyle\sum_n c_n \zeta_n + b z, \qquad A_n z \le \zeta_n \le B_n z, \qquad
        A_n (1 - z) \le g_n - \zeta_n \le B_n (1 - z)
    """

    @abstractmethod
    def groups_of(self, neuron: Neuron) -> Sequence[Group]:
        """Divide a neuron's inputs."""

    def switch(self, neuron: Neuron) -> None:
        """Write rows (B); where there are several groups, also theirs."""
        big_m_rows(self, neuron)
        groups = self.groups_of(neuron)
        if len(groups) > 1:
            self._split(neuron, groups)

    def _split(self, neuron: Neuron, groups: Sequence[Group]) -> None:
        if self.component("part") is None:
            self.part = pyo.Var(pyo.Any, dense=False)
        weights = np.stack([group.weights for group in groups])
        lows, highs = (side.tolist() for side in self.spans(weights))
        z = LinearForm(0.0, ((1.0, neuron.on),))
        parts: list[LinearForm] = []
        forms = self.forms(weights, np.zeros(len(groups)))
        for n, (group, form, low, high) in enumerate(zip(groups, forms, lows, highs, strict=True)):
            index = (*neuron.index, n)
            variable = self.part[(*neuron.index, n)]
            neuron.parts.append((variable, group.weights))
            part = LinearForm(0.0, ((1.0, variable),))
            rest = form + part.scaled(-1.0)
            Rows(self, "on_low").add(index, part + z.scaled(-low), lower=0.0)
            Rows(self, "on_high").add(index, part + z.scaled(-high), upper=0.0)
            Rows(self, "off_low").add(index, rest + z.scaled(low), lower=low)
            Rows(self, "off_high").add(index, rest + z.scaled(high), upper=high)
            parts.append(part.scaled(group.factor))
        y = LinearForm(0.0, ((-1.0, neuron.output),))
        Rows(self, "sum").add(neuron.index, total([*parts, z.scaled(neuron.bias), y]), lower=0.0, upper=0.0)

    def part_of(self, neuron: Neuron, n: int) -> Any:
        """Return the variable of a group's part."""
        return self.part[(*neuron.index, n)]
