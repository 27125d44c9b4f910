"""A question about a black box, answered through a surrogate: the keywords of ``explain`` that make sense there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pandas as pd

from ceopt.formulations.predictors.readers import open_model
from ceopt.formulations.space.space import FeatureSpace, complete_rows, require_space, with_labels_kept
from ceopt.oracle.model import model_behind
from ceopt.search.prepare import prepare
from ceopt.settings import Settings
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from ceopt.oracle.black_box import BlackBox
    from ceopt.result.solution_set import SolutionSet
    from ceopt.surrogates.recourse import LocalSurrogateRecourse
    from ceopt.surrogates.sampler import BoundarySampler

_WHO: Final = "explain"
_SURROGATE: Final = "LocalSurrogateRecourse"
#: What a surrogate's program decides itself, and what to do instead.
_MEANINGLESS: Final[Mapping[str, str]] = {
    "relative_gap": "Nothing is proved about the model itself; leave it out.",
    "margin": "The surrogate has its own: LocalSurrogateRecourse(margin=...).",
    "formulation": "A surrogate is linear; leave it out.",
    "threads": "A surrogate's program is small; leave it out, and give Recourse.explain n_jobs.",
    "solver_options": "Leave it out.",
    "proof": "Nothing is proved about the model itself; leave it out.",
    "why": "Rules in conflict are looked for wherever the rules alone leave nothing; leave it out.",
}
_NO_STARTS: Final = "Add the points to data: the search is led to its favourable rows."


@final
@dataclass(frozen=True, slots=True, eq=False)
class BlackBoxQuestion:
    """A black box and settings, ready for any number of people.

    Parameters
    ----------
    surrogate
        What answers.
    model
        A model or a function; or a ``BlackBox`` that knows its answers about the data, which is counted anew for each
        person.
    space, data
        The columns, and rows with exactly these, in their order.
    settings
        The keywords.
    said
        The settings as plain values, as a cohort carries them.
    """

    surrogate: LocalSurrogateRecourse
    model: Any
    space: FeatureSpace
    data: pd.DataFrame
    settings: Settings
    said: Mapping[str, Any]

    def answer(self, row: Any, *, query_id: Any = None) -> SolutionSet:
        """Return the verified answers for one person.

        Raises
        ------
        CeoptError
            As ``LocalSurrogateRecourse.explain``.
        """
        settings = self.settings
        model = self.model
        if hasattr(model, "again"):
            model = model.again()
        result = self.surrogate.explain(
            model,
            row,
            self.space,
            target=settings.target,
            data=self.data,
            n=settings.n,
            cost=settings.cost,
            constraints=settings.constraints,
            solver=settings.solver,
            time_limit_s=settings.time_limit_s,
            diversity=settings.diversity,
            random_state=settings.random_state,
        )
        if query_id is None:
            return result
        return replace(result, query_id=query_id)

    @property
    def sampler(self) -> BoundarySampler:
        """The sampler that the surrogate takes."""
        from ceopt.surrogates.sampler import BoundarySampler

        return self.surrogate.sampler or BoundarySampler(random_state=self.settings.random_state)

    def boxed(self, rows: pd.DataFrame) -> BlackBox:
        """Return the model as a black box over frames like the given rows, counting its queries."""
        from ceopt.oracle.black_box import BlackBox

        return BlackBox(
            self.model,
            self.settings.target,
            columns=list(self.space.names),
            dtypes=rows.dtypes,
            max_queries=self.sampler.max_queries,
            space=self.space,
        )

    def with_n(self, n: int) -> BlackBoxQuestion:
        """Return the question for another number of answers."""
        return replace(self, settings=replace(self.settings, n=n))

    def with_time_limit(self, time_limit_s: float) -> BlackBoxQuestion:
        """Return the question for another time limit."""
        return replace(self, settings=replace(self.settings, time_limit_s=time_limit_s))

    def options(self) -> dict[str, Any]:
        """Return the settings as plain values that JSON holds."""
        return {**self.said, "n": self.settings.n}


def asked_once(
    model: Any, space: FeatureSpace, settings: Settings, *, data: Any, surrogate: Any, starts: Any
) -> BlackBoxQuestion:
    """Return the question for one person, after every check that needs no call of the model.

    Parameters
    ----------
    model, space, settings, data, surrogate, starts
        As given to ``explain``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        No such surrogate, no data, or a keyword that has no meaning beside a surrogate.
    """
    from ceopt.surrogates.recourse import LocalSurrogateRecourse

    if not isinstance(surrogate, LocalSurrogateRecourse):
        but = f"surrogate is {type(surrogate).__name__}"
        if isinstance(surrogate, type):
            but = f"surrogate is the class {surrogate.__name__}"
        then = "Give surrogate=LocalSurrogateRecourse(), whose own surrogate= is what is fitted."
        raise InvalidTypeError(_WHO, "a LocalSurrogateRecourse as surrogate", but, then)
    require_space(_WHO, space)
    if starts is not None:
        raise InvalidValueError(_WHO, "no starts beside a surrogate", "starts is given", _NO_STARTS)
    _refuse_meaningless(settings)
    if data is None:
        then = "Give data=X_train, rows of which the model decides some otherwise."
        raise InvalidValueError(_WHO, "data beside a surrogate", "data is None", then)
    if not isinstance(data, pd.DataFrame):
        raise InvalidTypeError(_WHO, "a DataFrame as data", f"data is {type(data).__name__}", "Name its columns.")
    opened = model_behind(open_model(model), settings.target)
    return BlackBoxQuestion(surrogate, opened, space, data, settings, settings.unchecked_options())


def asked_often(question: BlackBoxQuestion, known: BlackBoxQuestion | None = None) -> BlackBoxQuestion:
    """Return the question for many people: every setting is checked, and the model is asked about the data once.

    An earlier question of the same model, target and data gives what it said then.

    Raises
    ------
    CeoptError
        A setting, rule, cost or target that does not fit; what a black box refuses of a model's answers.
    """
    space = question.space
    settings = question.settings
    sampler = question.sampler
    if known is not None:
        data = known.data
        box = known.model
    else:
        data = complete_rows(_SURROGATE, space, question.data[list(space.names)].copy())
        box = question.boxed(data)
    still = with_labels_kept(space)
    rows = sampler.decided(box, data, target=settings.target, space=still)
    labelled = None
    if rows.favourable.any():
        labelled = (data, rows.favourable)
    alone = rows.columns.affine(np.zeros(len(rows.columns.names)), 1.0)
    checked = replace(settings, target=True, cost="l1" if settings.cost is None else settings.cost)
    prepared = prepare(alone, still, checked, data=data, labelled=labelled)
    said = prepared.options() | {"target": str(settings.target), "surrogate": repr(question.surrogate)}
    if settings.cost is None:
        said["cost"] = "that of the search"
    for name in _MEANINGLESS:
        said.pop(name)
    return replace(question, model=box, data=data, said=said)


def _refuse_meaningless(settings: Settings) -> None:
    for name, then in _MEANINGLESS.items():
        value = getattr(settings, name)
        usual = Settings.__dataclass_fields__[name].default
        if type(value) is not type(usual) or value != usual:
            raise InvalidValueError(_WHO, f"no {name} beside a surrogate", f"{name} is {value!r}", then)
