"""One verified answer: values in the person's own columns and units, cost, prediction and what is proved."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pandas as pd

from ceopt.formulations.space.space import FeatureSpace
from ceopt.solution.answer_table import answer_to_html, answer_to_text
from ceopt.solution.copies import hands_out_copies
from ceopt.solvers.checks import plain
from ceopt.solvers.errors import InvalidValueError
from ceopt.words.changes import sentences_of
from ceopt.words.language import language_of

__all__ = ["Counterfactual", "scalars"]


@final
@hands_out_copies("values", "actions", "frame", "factual", "asked_by", "printed", "rules")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counterfactual:
    """One verified answer. What it hands out is a copy: to write into it changes no answer.

    Parameters
    ----------
    values
        The answer in raw units: a one-row frame, or a Series. Read back as a Series of the columns' own scalars;
        ``frame`` is the row in the columns' own dtypes.
    cost
        Recomputed in plain arithmetic from the values.
    prediction
        What the user's own model says of the values.
    score, slack
        The model's score (by label where it has several), and by how much the decision meets the target.
    changed
        Names of the columns that leave the factual.
    verified
        Whether the user's own model and every rule agree.
    rank
        1 for the best.
    bound, gap
        Proved least cost among answers of this rank, and ``(cost - bound) / max(|cost|, 1e-12)``.
    actions
        Interventions by column, under a causal model.
    cluster
        Which hull of a clustered data manifold holds it.
    way
        How it was found for a black box: "surrogate", "grown" or "boundary"; None where the model itself is stated.
    asked_by
        Column -> names of rules that the person breaks today and that alone ask for its change: with the person's own
        value in its place the answer would break them, and have the decision but for a twentieth of the way at most.
    printed
        Column -> the number that sentences print for its value, and the one that tables print, where either has fewer
        digits than the value. With all of a kind in their places the row was checked as the answer was, by the user's
        own model and every rule; what is not named here is printed digit for digit.
    factual
        The person's row, a Series of the columns' own scalars; None of an answer that is in no solution set.
    space
        What each column is; None where nobody said.
    rules
        The sentence of each rule by name, as the solution set has it.
    """

    values: pd.Series[Any]
    cost: float
    prediction: Any
    score: Any
    slack: float | None
    changed: tuple[str, ...]
    verified: bool
    rank: int
    bound: float | None
    gap: float | None
    actions: pd.Series[Any] | None = None
    cluster: int | None = None
    way: str | None = None
    asked_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    printed: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    factual: pd.Series[Any] | None = field(default=None, repr=False)
    space: FeatureSpace | None = field(default=None, repr=False)
    rules: Mapping[str, str] = field(default_factory=dict, repr=False)
    frame: pd.DataFrame = field(init=False, repr=False)

    def __post_init__(self) -> None:
        frame: Any = self.values
        if isinstance(frame, pd.Series):
            frame = pd.DataFrame({name: [value] for name, value in frame.items()})
        object.__setattr__(self, "frame", frame.reset_index(drop=True))
        object.__setattr__(self, "values", scalars(frame))
        object.__setattr__(self, "changed", tuple(self.changed))
        object.__setattr__(self, "prediction", plain(self.prediction))

    @property
    def listed(self) -> tuple[str, ...]:
        """The columns that change, and those that an intervention holds where they are, in the row's order."""
        listed = []
        for name in self.values.index:
            is_action = self.actions is not None and name in self.actions.index
            if is_action or name in self.changed:
                listed.append(name)
        return tuple(listed)

    def why(self, name: str) -> str:
        """Return whether a column that is listed is an "action" or, under a causal model, a "consequence"."""
        if self.actions is None or name in self.actions.index:
            return "action"
        return "consequence"

    def about(self, factual: pd.Series[Any], space: FeatureSpace | None, rules: Mapping[str, str]) -> Counterfactual:
        """Return the same answer, as one about a person's row under some rules."""
        new = copy.copy(self)
        object.__setattr__(new, "rules", rules)
        object.__setattr__(new, "factual", factual)
        object.__setattr__(new, "space", space)
        return new

    def sentences(self, language: str = "en", templates: Mapping[str, str] | None = None) -> list[str]:
        """Return one sentence for each column that changes, in the order of ``changed``.

        A number is written in the language's own way, with its unit. It has few digits where the whole answer, read
        back as it is printed, was checked like the answer itself (``printed``), else all of the answer's value. What
        follows by a causal model is told apart from what is to be done, and so is a change that only a rule asks for
        which the person breaks today (``asked_by``). The text is plain: who puts it into markup escapes it.

        Parameters
        ----------
        language
            "en" or "de".
        templates
            Name -> text, in place of some or all of the language's: :func:`ceopt.words.templates` has them, and
            `docs/how_to/words.md` shows a third language.

        Raises
        ------
        InvalidValueError
            The answer is in no solution set, so that nobody knows from where it goes.
        UnknownNameError
            A language, a template or a field of one that does not exist.

        Examples
        --------
        >>> import ceopt
        >>> from ceopt.formulations.predictors import Affine
        >>> space = ceopt.FeatureSpace([ceopt.Feature("savings", kind="integer", lower=0, step=100, unit="euros")])
        >>> model = Affine([1.0], -22350.0, labels=("bad", "good"))
        >>> answer = ceopt.explain(model, {"savings": 21200}, space, target="good")[0]
        >>> answer.sentences()
        ['Raise savings from 21,200 to 22,400 euros']
        >>> answer.sentences("de")
        ['savings von 21.200 auf 22.400 euros erhöhen']
        >>> answer.sentences(templates={"raise": "{column}: +{by}"})
        ['savings: +1,200 euros']
        """
        if self.factual is None:
            but = "this one is in no solution set"
            raise InvalidValueError(
                "Counterfactual.sentences", "the person's row", but, "Make a SolutionSet with it and the factual."
            )
        return sentences_of(self, self.changed, language_of("Counterfactual.sentences", language, templates))

    def __repr__(self) -> str:
        return answer_to_text(self)

    def _repr_html_(self) -> str:
        return answer_to_html(self)


def scalars(frame: pd.DataFrame) -> pd.Series[Any]:
    """Return a one-row frame as a Series of each column's own scalar (nothing is widened to a common dtype)."""
    if all(dtype == np.float64 for dtype in frame.dtypes):  # column by column takes milliseconds where there are many
        if isinstance(frame.columns.dtype, pd.StringDtype):
            index: Any = frame.columns.rename(None)
        else:
            index = [str(name) for name in frame.columns]
        return pd.Series(frame.to_numpy()[0].tolist(), index=index, dtype=object)
    return pd.Series({str(name): plain(frame[name].iloc[0]) for name in frame.columns}, dtype=object)
