"""The explainer with dice_ml's calls: counterfactuals of rows, and how often each column changes in them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import pandas as pd

from ceopt.dice.explanations import (
    CounterfactualExamples,
    CounterfactualExplanations,
    importances,
    require_enough,
    require_some,
    warn_of_cut,
)
from ceopt.dice.inputs import (
    Data,
    Model,
    Wanted,
    beyond,
    checked_ranges,
    class_wanted,
    classes_of,
    narrowed,
    predictions_with_gaps,
    query_rows,
    range_wanted,
    varying,
    with_gaps,
)
from ceopt.formulations.constraints import AbstractRule
from ceopt.formulations.content_hash import content_of
from ceopt.formulations.space.space import FeatureSpace
from ceopt.formulations.targets import Probability
from ceopt.recourse import Recourse
from ceopt.settings import TIME_LIMIT_S
from ceopt.solvers.checks import Choice, Instance, OrNone, Refusal, Whole
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError, UnsupportedModelError, printable

if TYPE_CHECKING:
    from ceopt.result.solution_set import SolutionSet

# ==== Answers for all rows of one call: rows that are asked the same are asked together ===============================

#: Seconds of a question for which there is no time left: too few for any row, all of which are marked.
_LEAST_S: Final = 1e-6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What a call asks of every row.

    Parameters
    ----------
    model
        The fitted model.
    space
        The columns, those that may not vary held.
    ranges
        Permitted range or levels by column.
    rows
        The training rows without the outcome.
    options
        Keywords of :class:`ceopt.Recourse`: cost, constraints, solver, limits.
    total_time_limit_s
        Seconds for all rows together, without the reading of the model; None: no limit but that of each row.
    """

    model: Any
    space: FeatureSpace
    ranges: Mapping[str, tuple[Any, ...]]
    rows: pd.DataFrame
    options: Mapping[str, Any]
    total_time_limit_s: float | None = None

    def answer(self, queries: pd.DataFrame, targets: Sequence[Any], n: int) -> tuple[list[SolutionSet], str]:
        """Return at most ``n`` answers to each row for its target, and why the model is a black box, "" if it is none.

        A model that no program states is answered through a surrogate.
        """
        groups: dict[tuple[Hashable, tuple[str, ...]], list[int]] = {}
        for place, target in enumerate(targets):
            key = (content_of(target), beyond(self.space, self.ranges, queries.iloc[place]))
            groups.setdefault(key, []).append(place)
        results: dict[int, SolutionSet] = {}
        spent_s = 0.0
        black_box = ""
        for (_, outside), places in groups.items():
            some = queries.iloc[places]
            recourse, black_box = self._fitted(targets[places[0]], outside, n)
            part_s = None
            if self.total_time_limit_s is not None:
                left_s = self.total_time_limit_s - spent_s
                part_s = max(left_s * len(some) / (len(queries) - len(results)), _LEAST_S)
            began = time.perf_counter()
            cohort = recourse.explain(some, progress=len(some) > 1, total_time_limit_s=part_s)
            spent_s += time.perf_counter() - began
            results.update(zip(places, cohort, strict=True))
        return [results[place] for place in range(len(queries))], black_box

    def _fitted(self, target: Any, outside: tuple[str, ...], n: int) -> tuple[Recourse, str]:
        space, rules = narrowed(self.space, self.ranges, outside)
        constraints = self.options.get("constraints", ())
        if isinstance(constraints, AbstractRule):
            constraints = [constraints]
        given = {**self.options, "constraints": [*constraints, *rules]}
        try:
            return Recourse(self.model, space, target=target, n=n, **given).fit(self.rows), ""
        except UnsupportedModelError as refusal:
            from ceopt.surrogates.recourse import LocalSurrogateRecourse

            boxed = Recourse(self.model, space, target=target, n=n, surrogate=LocalSurrogateRecourse(), **given)
            return boxed.fit(self.rows), str(refusal)


# ==== Options of dice_ml: which steer its search, which would change what an answer means, and the one warning ========

#: Ways of searching that dice_ml has for models without gradients.
METHODS: Final = ("random", "genetic", "kdtree")

#: What steers a search, of any of the methods; a program is not searched, so that they change nothing.
STEERING: Final = frozenset(
    {
        "algorithm", "categorical_penalty", "diversity_loss_type", "diversity_weight", "eps", "feature_weights",
        "init_near_query_instance", "initialization", "learning_rate", "limit_steps_ls", "loss_converge_maxiter",
        "loss_diff_thres", "max_iter", "maxiterations", "min_iter", "optimizer", "posthoc_sparsity_algorithm",
        "posthoc_sparsity_param", "project_iter", "proximity_weight", "random_seed", "random_state", "sample_size",
        "sparsity_weight", "stopping_threshold", "thresh", "tie_random", "verbose", "yloss_type",
    }
)  # fmt: skip
#: Keywords of :class:`ceopt.Recourse` that hold for every call; all others follow from what a call asks.
OWN: Final = (
    "constraints", "cost", "diversity", "formulation", "margin", "proof", "random_state", "relative_gap", "solver",
    "solver_options", "threads", "time_limit_s", "why",
)  # fmt: skip
_NAMED: Final = frozenset(
    {"query_instances", "total_CFs", "desired_class", "desired_range", "permitted_range", "features_to_vary"}
)


def check_options(who: str, given: Mapping[str, Any]) -> None:
    """Refuse what is no option of dice_ml, and what would give an answer another meaning.

    Raises
    ------
    UnknownNameError
        No option of that name.
    InvalidValueError
        Weights of one's own for columns.
    """
    for name in given:
        if name in STEERING:
            continue
        if name in OWN:
            raise InvalidValueError(
                who, "options of one call", f"{name!r} holds for all", f"Give Dice(..., {name}=...)."
            )
        raise UnknownNameError.among(who, "option", name, sorted(STEERING | _NAMED))
    weights = given.get("feature_weights", "inverse_mad")
    if weights != "inverse_mad":
        then = "Give columns their weights in the space: Dice(..., space=data.space.update(name, weight=2))."
        raise InvalidValueError(who, "feature_weights='inverse_mad'", f"feature_weights is {weights!r}", then)


def warn_once(without_effect: Mapping[str, Any], black_box: str, *, stacklevel: int) -> None:
    """Name in one warning the options that change nothing, and a model that is answered as a black box."""
    notes = []
    if without_effect:
        named = ", ".join(f"{name}={value!r}" for name, value in without_effect.items())
        notes.append(f"ceopt.dice solves a program and does not search, so that these options change nothing: {named}.")
    if black_box:
        notes.append(
            f"The model is answered as a black box, through a surrogate: its answers are checked on the model, but not "
            f"proved to be nearest. {black_box}"
        )
    if notes:
        warnings.warn(printable(" ".join(notes)), UserWarning, stacklevel=stacklevel + 1)


# ==== The explainer with dice_ml's calls: counterfactuals of rows, and how often each column changes in them ==========

_DATA: Final = Instance(
    Data, Refusal("a ceopt.dice.Data", "Write Data(dataframe=...).", "it is {type}", InvalidTypeError)
)
_MODEL: Final = Instance(
    Model, Refusal("a ceopt.dice.Model", "Write Model(model=...).", "it is {type}", InvalidTypeError)
)
_SPACE: Final = OrNone(
    Instance(FeatureSpace, Refusal("a FeatureSpace as space", "Change data.space by update.", error=InvalidTypeError))
)
_METHOD: Final = Choice(METHODS)
_TOTAL_CFS: Final = Whole(at_least=1)
_TOTAL_TIME_LIMIT: Final = OrNone(TIME_LIMIT_S)
#: Seconds that all rows of an importance share unless told: a notebook is waited for.
_IMPORTANCE_S: Final = 120.0


@final
class Dice:
    """Counterfactuals by dice_ml's calls, from ceopt's programs: least changes first, each checked on the model.

    Each of several counterfactuals is the least change among those that differ from all before it as
    ``diversity="distinct"`` of :func:`ceopt.explain` says. What dice_ml's options of the search say changes nothing and
    is named in one warning a call.

    Parameters
    ----------
    data_interface
        The training data.
    model_interface
        The fitted model.
    method
        "random", "genetic" or "kdtree", which are ways of dice_ml to search. "gradient" is refused.
    space
        What each column is and how it may move; None: ``data_interface.space``. With it, all that a
        :class:`~ceopt.FeatureSpace` says counts: directions, steps, weights.
    total_time_limit_s
        Seconds for all rows of a call together, without the reading of the model: each row has an equal part of what is
        left. None: 120 where importance is asked for; no limit but that of each row where counterfactuals are.
    options
        Keywords of :class:`ceopt.Recourse` that hold for every call: ``cost``, ``constraints``, ``diversity``,
        ``solver``, ``time_limit_s`` (for each row), ``relative_gap``, ``margin``, ``formulation``, ``threads``,
        ``proof``.

    Raises
    ------
    InvalidTypeError, InvalidValueError, UnknownNameError
        No data or model of this module, another method, a keyword that Recourse does not have.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from ceopt.dice import Data, Dice, Model
    >>> rows = pd.DataFrame({"pay": [10, 20, 30, 40], "job": ["no", "no", "yes", "yes"], "loan": [0, 0, 1, 1]})
    >>> model = DecisionTreeClassifier(random_state=0).fit(rows[["pay"]].assign(job=0), rows["loan"])
    >>> data = Data(dataframe=rows[["pay", "loan"]].assign(job=0), continuous_features=["pay"], outcome_name="loan")
    >>> dice = Dice(data, Model(model=model))
    >>> found = dice.generate_counterfactuals(pd.DataFrame({"pay": [12], "job": [0]}), total_CFs=1)
    >>> found.cf_examples_list[0].final_cfs_df.to_dict("records")
    [{'pay': 26, 'job': 0, 'loan': 1}]
    """

    def __init__(
        self,
        data_interface: Data,
        model_interface: Model,
        method: str | None = None,
        *,
        space: FeatureSpace | None = None,
        total_time_limit_s: float | None = None,
        **options: Any,
    ) -> None:
        self.data_interface = _DATA.require("Dice", "data_interface", data_interface)
        self.model = _MODEL.require("Dice", "model_interface", model_interface)
        if method == "gradient":
            then = f"Choose from: {', '.join(METHODS)}; a network's gradients are not needed, as its program is solved."
            raise InvalidValueError("Dice", "a method for models without gradients", "method is 'gradient'", then)
        if method is not None:
            _METHOD.require("Dice", "method", method)
        self.method = method
        self.space = _SPACE.require("Dice", "space", space) or data_interface.space
        self.total_time_limit_s = _TOTAL_TIME_LIMIT.require("Dice", "total_time_limit_s", total_time_limit_s)
        for name in options:
            if name not in OWN:
                raise UnknownNameError.among("Dice", "option", name, OWN)
        self.options = options
        if set(self.space.names) != set(data_interface.feature_names):
            then = "Change data.space by update."
            raise InvalidValueError("Dice", "a space of the data's columns", f"it has {list(self.space.names)!r}", then)

    def generate_counterfactuals(  # noqa: PLR0917 - dice_ml's order
        self,
        query_instances: Any,
        total_CFs: int,  # noqa: N803 - dice_ml's name
        desired_class: Any = "opposite",
        desired_range: Sequence[float] | None = None,
        permitted_range: Mapping[str, Sequence[Any]] | None = None,
        features_to_vary: str | Sequence[str] = "all",
        **search: Any,
    ) -> CounterfactualExplanations:
        """Find the least changes of each row after which the model gives the desired outcome.

        Parameters
        ----------
        query_instances
            A frame of rows in raw units without the outcome; a Series, a dict or a list of dicts too. A cell that is
            missing stays so, if the model takes that; ``Dice(space=data.space.update(name, missing=True))`` lets it be
            filled in.
        total_CFs
            Counterfactuals wanted for each row.
        desired_class
            "opposite" (of two classes), a label, a set of labels, or a class by its place, which is what a number is to
            dice_ml. A row that the model puts there already has none, as it needs no change.
        desired_range
            Of a regressor: least and greatest outcome; one may be infinite.
        permitted_range
            Column -> [least, greatest], or levels; a row outside has to come in. Columns that are not named keep the
            range given to :class:`Data`, else that of the data.
        features_to_vary
            "all", or the columns that may change.
        search
            Options that steer dice_ml's search; they change nothing and are named in one warning. A
            ``stopping_threshold`` above 0.5 counts, with two classes: it asks for that probability.

        Returns
        -------
        CounterfactualExplanations
            ``.cf_examples_list``, one entry a row; ``.cf_examples_list[0].solution_set`` is ceopt's own result.

        Raises
        ------
        NoCounterfactualsError
            No row has any.
        CeoptError
            Misuse, before any work: an unseen level, an unknown column, class or option; a missing cell that the model
            fails on.
        """
        return self._explained(
            "generate_counterfactuals", query_instances, total_CFs, depth=2, desired_class=desired_class,
            desired_range=desired_range, permitted_range=permitted_range, features_to_vary=features_to_vary,
            search=search, total_time_limit_s=self.total_time_limit_s,
        )  # fmt: skip

    def local_feature_importance(  # noqa: PLR0917 - dice_ml's order
        self,
        query_instances: Any,
        cf_examples_list: Sequence[CounterfactualExamples] | None = None,
        total_CFs: int = 10,  # noqa: N803 - dice_ml's name
        desired_class: Any = "opposite",
        desired_range: Sequence[float] | None = None,
        permitted_range: Mapping[str, Sequence[Any]] | None = None,
        features_to_vary: str | Sequence[str] = "all",
        **search: Any,
    ) -> CounterfactualExplanations:
        """Tell for each row in what share of its counterfactuals each column changes.

        Parameters
        ----------
        query_instances, total_CFs, desired_class, desired_range, permitted_range, features_to_vary, search
            As for :meth:`generate_counterfactuals`; at least ten counterfactuals are asked for.
        cf_examples_list
            Counterfactuals found before, in place of new ones: ten a row, or all that there are.

        Returns
        -------
        CounterfactualExplanations
            With ``.local_importance``, one mapping a row, most frequent column first.

        Raises
        ------
        InvalidValueError
            Fewer than ten are asked for, or were given though there may be more.
        CeoptError
            As :meth:`generate_counterfactuals`.
        """
        return self._importance(
            "local_feature_importance", query_instances, cf_examples_list, total_CFs, local=True, summary=False,
            desired_class=desired_class, desired_range=desired_range, permitted_range=permitted_range,
            features_to_vary=features_to_vary, search=search,
        )  # fmt: skip

    def global_feature_importance(  # noqa: PLR0917 - dice_ml's order
        self,
        query_instances: Any,
        cf_examples_list: Sequence[CounterfactualExamples] | None = None,
        total_CFs: int = 10,  # noqa: N803 - dice_ml's name
        local_importance: bool = True,
        desired_class: Any = "opposite",
        desired_range: Sequence[float] | None = None,
        permitted_range: Mapping[str, Sequence[Any]] | None = None,
        features_to_vary: str | Sequence[str] = "all",
        **search: Any,
    ) -> CounterfactualExplanations:
        """Tell in what share of all counterfactuals of all rows each column changes.

        Parameters
        ----------
        query_instances, cf_examples_list, total_CFs, desired_class, desired_range, permitted_range, features_to_vary, \
search
            As for :meth:`local_feature_importance`; at least ten rows.
        local_importance
            Whether to tell it for each row too.

        Returns
        -------
        CounterfactualExplanations
            With ``.summary_importance``, most frequent column first, and ``.local_importance``.

        Raises
        ------
        InvalidValueError
            Fewer than ten rows; and as :meth:`local_feature_importance`.
        CeoptError
            As :meth:`generate_counterfactuals`.
        """
        return self._importance(
            "global_feature_importance", query_instances, cf_examples_list, total_CFs, local=local_importance,
            summary=True, desired_class=desired_class, desired_range=desired_range, permitted_range=permitted_range,
            features_to_vary=features_to_vary, search=search,
        )  # fmt: skip

    def _importance(
        self, who: str, queries: Any, given: Any, total: Any, *, local: bool, summary: bool, **asked: Any
    ) -> CounterfactualExplanations:
        """Return how often columns change, in counterfactuals that are given or found now."""
        rows = None if queries is None else len(query_rows(who, self.data_interface, queries))
        require_enough(who, rows, given, total, summary=summary)
        if given is None:
            total_s = self.total_time_limit_s or _IMPORTANCE_S
            given = self._explained(who, queries, total, depth=3, total_time_limit_s=total_s, **asked).cf_examples_list
        warn_of_cut(who, given, stacklevel=3)
        names = self.data_interface.categorical_feature_names + self.data_interface.continuous_feature_names
        return importances(given, names, local=local, summary=summary)

    def _explained(
        self, who: str, queries: Any, total: Any, *, depth: int, desired_class: Any, desired_range: Any,
        permitted_range: Any, features_to_vary: Any, search: Mapping[str, Any], total_time_limit_s: float | None,
    ) -> CounterfactualExplanations:  # fmt: skip
        """Return the counterfactuals of every row; misuse is refused before any work.

        ``who`` is what errors call the call, and ``depth`` counts the calls between the user's line and this one.
        """
        check_options(who, search)
        n = _TOTAL_CFS.require(who, "total_CFs", total)
        data = self.data_interface
        model = self.model.model
        rows = query_rows(who, data, queries)
        space = with_gaps(self.space, rows)
        inquiry = Inquiry(
            model=model,
            space=varying(who, space, features_to_vary),
            ranges={**data.ranges, **checked_ranges(who, space, permitted_range)},
            rows=data.rows,
            options=self.options,
            total_time_limit_s=total_time_limit_s,
        )
        before = predictions_with_gaps(who, model, rows, space)
        threshold = search.get("stopping_threshold", 0.5)
        wanted = self._wanted(who, desired_class, desired_range, before, threshold)
        results, black_box = inquiry.answer(rows, [one.target for one in wanted], n)
        warn_once(self._without_effect(search, wanted), black_box, stacklevel=depth + 1)
        require_some(who, results)
        examples = []
        for place, result in enumerate(results):
            row = rows.iloc[[place]].reset_index(drop=True)
            examples.append(self._example(row, before[place], wanted[place], result))
        return CounterfactualExplanations(examples)

    def _wanted(
        self, who: str, desired_class: Any, desired_range: Any, before: Sequence[Any], threshold: Any
    ) -> list[Wanted]:
        """Return what each row should get."""
        if not self.model.is_classifier:
            return [range_wanted(who, desired_range)] * len(before)
        if desired_range is not None:
            but = f"desired_range is {desired_range!r} and the model a classifier"
            raise InvalidValueError(who, "a class to be desired", but, "Give desired_class=.")
        data = self.data_interface
        classes = classes_of(self.model.model, data.data_df[data.outcome_name])
        return class_wanted(who, desired_class, classes, before, threshold)

    def _without_effect(self, search: Mapping[str, Any], wanted: Sequence[Wanted]) -> dict[str, Any]:
        """Return the options that were given and change nothing, by name."""
        given: dict[str, Any] = {}
        if self.method is not None:
            given["method"] = self.method
        given |= search
        if any(isinstance(one.target, Probability) for one in wanted):
            del given["stopping_threshold"]  # it is asked for
        return given

    def _example(self, row: pd.DataFrame, before: Any, wanted: Wanted, result: SolutionSet) -> CounterfactualExamples:
        """Return a result as dice_ml puts it: frames with the outcome as their last column."""
        data = self.data_interface
        model = self.model
        counterfactuals = None
        if len(result):
            predictions = [answer.prediction for answer in result]
            answers = result.to_frame()[data.feature_names].reset_index(drop=True)
            counterfactuals = answers.assign(**{data.outcome_name: predictions})
        return CounterfactualExamples(
            test_instance_df=row.assign(**{data.outcome_name: [before]}),
            final_cfs_df=counterfactuals,
            outcome_name=data.outcome_name,
            model_type=model.model_type,
            solution_set=result,
            **{"desired_class" if model.is_classifier else "desired_range": wanted.outcome},
        )
