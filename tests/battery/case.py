"""What a model of the battery is: a builder, and what is known about the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo

from ceopt.solvers import CompiledModel, ProblemClass, Status, compile_model

__all__ = ["MODELS", "Case", "case"]


@dataclass(frozen=True)
class Case:
    """One model and its answer, from a closed form or by hand, as the builder's docstring says.

    ``data`` are (value of the Var ``x0``, optimum) of a model that holds one instance in columns; the first is the
    case's own optimum.
    """

    name: str
    kind: ProblemClass
    status: Status
    optimum: float | None
    builder: Callable[[Any], None]
    data: Sequence[tuple[Any, float]] = ()

    def build(self) -> Any:
        """A new model."""
        model = pyo.ConcreteModel(name=self.name)
        self.builder(model)
        return model

    def compile(self) -> tuple[Any, CompiledModel]:
        """A new model and its arrays, with the first data in place."""
        model = self.build()
        compiled = compile_model(model, [model.x0] if self.data else [])
        if self.data:
            compiled.set_data(model.x0, self.data[0][0])
        return model, compiled


#: Every model by its name.
MODELS: dict[str, Case] = {}


def case(
    kind: ProblemClass,
    optimum: float | None = None,
    *,
    status: Status = Status.OPTIMAL,
    data: Sequence[tuple[Any, float]] = (),
) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Put a builder in the battery, under its own name."""
    known = data[0][1] if data else optimum
    assert (known is not None) == (status is Status.OPTIMAL)

    def put(builder: Callable[[Any], None]) -> Callable[[Any], None]:
        name = builder.__name__
        assert name not in MODELS, f"two models are called {name}"
        MODELS[name] = Case(name, kind, status, known, builder, data)
        return builder

    return put
