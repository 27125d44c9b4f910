"""One output of an estimator of scikit-learn that was fitted on several: the same estimator, with the others left out.

What is returned predicts by the library's own code, so that what is read of it is held against the library as always.

============================ =================================================================================
estimator                    what is left
============================ =================================================================================
linear regressors            a row of ``coef_`` and its intercept
MLPRegressor                 a column of the last layer
trees, and forests of them   a value of each leaf of each tree
MultiOutputRegressor         the regressor of that output
============================ =================================================================================
"""

from __future__ import annotations

import copy
from typing import Any, Final

import numpy as np

from ceopt.formulations.predictors.readers.model_input import refuse
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError

__all__ = ["one_output"]

_FORESTS: Final = ("ExtraTreesRegressor", "RandomForestRegressor")
_TREES: Final = ("DecisionTreeRegressor", "ExtraTreeRegressor")
_LINEAR: Final = ("ElasticNet", "Lasso", "LinearRegression", "Ridge", "RidgeCV")


def one_output(estimator: Any, output: Any) -> Any:
    """Return a regressor for one of the outputs of another, by its number from 0.

    Raises
    ------
    UnsupportedModelError
        Its outputs cannot be told apart, as of classifiers and of models of models.
    InvalidTypeError, InvalidValueError
        ``output`` is no whole number, or there are not so many.
    """
    name = type(estimator).__name__
    if name == "MultiOutputRegressor":
        return estimator.estimators_[_place(name, output, len(estimator.estimators_))]
    if name in _LINEAR:
        coef = np.atleast_2d(estimator.coef_)
        place = _place(name, output, len(coef))
        return _changed(
            estimator, coef_=coef[place], intercept_=np.broadcast_to(estimator.intercept_, len(coef))[place]
        )
    if name == "MLPRegressor":
        place = _place(name, output, estimator.n_outputs_)
        last = estimator.coefs_[-1][:, [place]]
        ends = estimator.intercepts_[-1][[place]]
        return _changed(
            estimator,
            coefs_=[*estimator.coefs_[:-1], last],
            intercepts_=[*estimator.intercepts_[:-1], ends],
            n_outputs_=1,
        )
    if name in _TREES:
        return _tree(estimator, _place(name, output, estimator.n_outputs_))
    if name in _FORESTS:
        place = _place(name, output, estimator.n_outputs_)
        trees = [_tree(tree, place) for tree in estimator.estimators_]
        return _changed(estimator, estimators_=trees, n_outputs_=1)
    raise refuse(
        "a regressor whose outputs can be told apart", f"it is {name}",
        f"Fit one model per output; outputs are read of {', '.join([*_LINEAR, 'MLPRegressor', *_TREES, *_FORESTS])} "
        "and MultiOutputRegressor.",
    )  # fmt: skip


def _place(name: str, output: Any, count: int) -> int:
    """Return the number of an output, or refuse it."""
    if isinstance(output, bool) or not isinstance(output, int | np.integer):
        raise InvalidTypeError(
            "read", "the number of an output", f"output is {output!r}",
            f"{name} keeps no names of outputs: count the columns of y from 0.",
        )  # fmt: skip
    if not 0 <= output < count:
        raise InvalidValueError("read", f"an output from 0 to {count - 1}", f"output is {output}", "Choose one.")
    return int(output)


def _changed(estimator: Any, **fitted: Any) -> Any:
    other = copy.copy(estimator)
    for name, value in fitted.items():
        setattr(other, name, value)
    return other


def _tree(estimator: Any, place: int) -> Any:
    """Return a tree whose leaves hold one of their values."""
    grown = estimator.tree_
    if grown.n_outputs == 1:
        return estimator
    state = grown.__getstate__()
    state["values"] = np.ascontiguousarray(state["values"][:, [place], :])
    other = type(grown)(grown.n_features, np.ones(1, dtype=np.intp), 1)
    other.__setstate__(state)
    return _changed(estimator, tree_=other, n_outputs_=1)
