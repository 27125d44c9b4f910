"""The explainer with dice_ml's calls: counterfactuals of rows, and how often each column changes in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from ceopt.dice.call import Call, explained
from ceopt.dice.data import Data
from ceopt.dice.examples import CounterfactualExamples
from ceopt.dice.explanations import CounterfactualExplanations
from ceopt.dice.importance import importances, require_enough, warn_of_cut
from ceopt.dice.model import Model
from ceopt.dice.options import METHODS, check_own_options
from ceopt.dice.queries import query_rows
from ceopt.formulations.space.space import FeatureSpace
from ceopt.settings import TIME_LIMIT_S
from ceopt.solvers.checks import Choice, Instance, OrNone, Refusal
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["Dice"]

_GENERATE: Final = "generate_counterfactuals"
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
_TOTAL: Final = OrNone(TIME_LIMIT_S)
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
        ``solver``, ``time_limit_s`` (for each row), ``relative_gap``, ``margin``, ``formulation``, ``threads``.

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
        self.total_time_limit_s = _TOTAL.require("Dice", "total_time_limit_s", total_time_limit_s)
        self.options = check_own_options(options)
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
            A frame of rows in raw units without the outcome; a Series, a dict or a list of dicts too.
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
            Misuse, before any work: a missing value, an unseen level, an unknown column, class or option.
        """
        return self._explained(
            _GENERATE, query_instances, total_CFs, depth=2, desired_class=desired_class, desired_range=desired_range,
            permitted_range=permitted_range, features_to_vary=features_to_vary, search=search,
            total_time_limit_s=self.total_time_limit_s,
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

    def _explained(self, who: str, queries: Any, total: Any, *, depth: int, **asked: Any) -> CounterfactualExplanations:
        call = Call(who=who, queries=queries, total=total, depth=depth, **asked)
        return explained(
            call, data=self.data_interface, model=self.model, space=self.space, options=self.options, method=self.method
        )
