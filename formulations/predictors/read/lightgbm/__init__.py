r"""LightGBM: leaves added up in float64, tree by tree, in the order of the iterations (for "rf" then their mean).

The score is what ``predict(raw_score=True)`` returns (for "rf" that divided by the iterations); the average of the
target, at which boosting starts, is inside the first trees. How a score becomes a prediction is the objective's:

============================================= ============================================================
objective                                     prediction
============================================= ============================================================
binary, cross_entropy                         p = 1 / (1 + exp(-sigmoid * s)); second label iff p > 1 - p
multiclass, multiclassova                     the label of the largest score, the first of them on ties
regression, regression_l1, huber, fair, mape, the score
quantile, lambdarank, rank_xendcg, custom
poisson, gamma, tweedie, cross_entropy_lambda a function of the score: refused, and so are reg_sqrt=True, a
                                              classifier with a custom objective and linear_tree=True
============================================= ============================================================

Here is what the estimators and their options mean; ``trees.py`` reads the trees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ceopt.formulations.predictors.read.lightgbm.trees import LightgbmText, UnlikelyTextError, deciding, parse
from ceopt.formulations.predictors.read.model_input import refuse
from ceopt.formulations.predictors.representation.decision_rule import Floats, Probability
from ceopt.formulations.predictors.representation.trees import TreeEnsemble
from ceopt.formulations.space.encoding import last_true
from ceopt.solvers.errors import MissingLibraryError, UnreadableFileError, UnsupportedModelError

__all__ = ["MODELS", "BoosterClassifier", "BoosterRegressor", "open_model", "own_scores", "own_steps", "read_estimator"]

_TWO: Final = ("binary", "cross_entropy")
_SEVERAL: Final = ("multiclass", "multiclassova")
_SUMS: Final = (
    "regression", "regression_l1", "huber", "fair", "mape", "quantile", "lambdarank", "rank_xendcg", "custom",
)  # fmt: skip
_CLASSIFIERS: Final = ("LGBMClassifier", "BoosterClassifier")
_REGRESSORS: Final = ("LGBMRegressor", "LGBMRanker", "BoosterRegressor")
#: What is read, by how it is embedded (see ``table_of_models.py``).
MODELS: Final = {"trees": ("Booster", "LGBMClassifier", "LGBMRanker", "LGBMRegressor")}
#: Scores, times sigmoid, beyond which the probabilities of one-vs-all round so much that they tie: e^20 / 2^53 < 1e-7.
_SATURATED: Final = 20.0


class _Booster:
    """A native booster as an estimator: its columns have names unless it was trained on an array."""

    def __init__(self, booster: Any) -> None:
        self.booster = booster
        names = booster.feature_name()
        self.n_features_in_ = len(names)
        if names != [f"Column_{place}" for place in range(len(names))]:
            self.feature_names_in_ = np.array(names, dtype=object)


@final
class BoosterClassifier(_Booster):
    """A booster whose objective has classes 0, ..., K - 1, which predicts as ``LGBMClassifier`` does."""

    def __init__(self, booster: Any, n_classes: int) -> None:
        super().__init__(booster)
        self.classes_ = np.arange(n_classes)

    def predict_proba(self, rows: Any) -> Floats:
        """Return the probability of each class, (n, K)."""
        share = np.asarray(self.booster.predict(rows))
        return share if share.ndim == 2 else np.column_stack([1.0 - share, share])

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return the most probable class, (n,)."""
        return np.asarray(self.classes_[self.predict_proba(rows).argmax(axis=1)])


@final
class BoosterRegressor(_Booster):
    """A booster whose objective has a value."""

    def predict(self, rows: Any) -> Floats:
        """Return the values, (n,)."""
        return np.asarray(self.booster.predict(rows))


@final
@dataclass(frozen=True, slots=True)
class _Sigmoid:
    """The probability of the second label: ``1 / (1 + exp(-slope * s))``."""

    slope: float

    def __call__(self, scores: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + np.exp(-self.slope * scores)))

    def level(self) -> float:
        """Return the last score at which the first label is predicted: its probability is not the smaller one."""
        return float(last_true(np.vectorize(self._is_first)))

    def _is_first(self, score: float) -> bool:
        # The C library's exponential, which LightGBM calls too; NumPy has one of its own.
        if -self.slope * score > 700.0:
            p = 0.0
        else:
            p = 1.0 / (1.0 + math.exp(-self.slope * score))
        return not p > 1.0 - p


def open_model(model: Any) -> Any:
    """Return an estimator for a file of ``Booster.save_model`` or a booster; estimators are what they are.

    Raises
    ------
    UnreadableFileError
        The file is missing, cut off, or not a model of LightGBM.
    MissingLibraryError
        LightGBM is not installed.
    UnsupportedModelError
        It is another object of LightGBM, or not fitted.
    """
    if isinstance(model, str | Path):
        return _adapted(*_from_file(Path(model)))
    if type(model).__name__ == "Booster":
        return _adapted(model, _text(model))
    _booster(model)  # refuses all else of the library: Dataset, CVBooster, ...
    return model


def own_steps(estimator: Any) -> list[Callable[[Any], Any]]:
    """Return what the library makes of its input before the trees see it."""
    return [partial(_matrix, booster := _booster(estimator), _text(booster))]


def read_estimator(estimator: Any, dtype: str) -> TreeEnsemble:  # noqa: ARG001
    """Return what a LightGBM model computes.

    Raises
    ------
    UnsupportedModelError
        It is not fitted, or its class, objective or an option has no exact representation.
    """
    name = type(estimator).__name__
    booster = _booster(estimator)
    text = _text(booster)
    kind, *options = text.objective or ("custom",)
    if name in _CLASSIFIERS:
        labels = np.asarray(estimator.classes_).tolist()
    else:
        labels = None
    _check_options(estimator, name, kind, options)
    if labels is not None and len(labels) == 1:
        raise refuse("at least two classes", f"{name} knows only {labels[0]!r}", "Fit it on data with other labels.")
    if labels is None and text.n_scores > 1:
        raise refuse(
            "one score", f"the model has {text.n_scores} and no classes", "Fit it with objective='multiclass'."
        )
    two = labels is not None and text.n_scores == 1
    probability: Probability | None = None
    level = 0.0
    if two:
        slope = _slope(booster, options)
        probability = "logistic" if slope == 1.0 else _Sigmoid(slope)
        level = _Sigmoid(slope).level()
    divisor = len(text.trees) // text.n_scores if text.averages else 1
    model = TreeEnsemble(
        text.trees, labels=labels, divisor=divisor, probability=probability, level=level, n_inputs=len(text.names)
    )
    if kind == "multiclassova":
        _check_saturation(model, _option(options, "sigmoid"))
    return model


def own_scores(estimator: Any, rows: Any) -> Floats:
    """Return the library's own sums, before any probability: (n,) or (n, K)."""
    asked = estimator
    booster = _booster(estimator)
    if isinstance(estimator, _Booster):
        asked = booster
    scores = np.asarray(asked.predict(rows, raw_score=True), dtype=np.float64)
    if "\naverage_output\n" not in booster.model_to_string(num_iteration=1):
        return scores
    # Raw scores of a forest are sums, its predictions follow from means.
    rounds = int(booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration())
    return np.asarray(scores / rounds)


def _check_options(estimator: Any, name: str, kind: str, options: list[str]) -> None:
    """Refuse predictions that are not the sum of leaves or its most probable class."""
    fitting: tuple[str, ...] = _SUMS
    if name in _CLASSIFIERS:
        fitting = (*_TWO, *_SEVERAL)
    if kind not in fitting or "sqrt" in options:
        if name in _CLASSIFIERS:
            then = f"Objectives that are read: {', '.join(fitting)}."
        elif kind in {*_TWO, *_SEVERAL}:
            then = "Fit LGBMClassifier, and ask for a ceopt.Probability."
        elif "sqrt" in options:
            then = "Fit it with objective='regression' on the square root of the target."
        else:
            then = "Fit it with objective='regression' on the logarithm of the target."
        but = f"{name} has {'reg_sqrt=True' if 'sqrt' in options else f'objective={kind!r}'}"
        raise refuse("a prediction that is a sum of leaves, or the most probable class", but, then)
    if hasattr(estimator, "get_params") and estimator.get_params().get("pred_early_stop") in {True, "true"}:
        raise refuse("predictions from all trees", f"{name} has pred_early_stop=True", "Set it to False.")


def _slope(booster: Any, options: list[str]) -> float:
    """Return the factor of the score in the exponent; the library writes six of its digits."""
    written = _option(options, "sigmoid")
    given = float(booster.params.get("sigmoid", _option(options, "sigmoid")))
    if given != written:
        raise refuse(
            "a sigmoid of at most six digits", f"the model has sigmoid={given!r}", f"Fit it with sigmoid={written}."
        )
    return written


def _option(options: list[str], name: str) -> float:
    return next((float(option.partition(":")[2]) for option in options if option.startswith(f"{name}:")), 1.0)


def _check_saturation(model: TreeEnsemble, slope: float) -> None:
    """Refuse one-vs-all scores so large that several probabilities may round to the same: the first would win."""
    most = slope * np.sort(sum(tree.value[~tree.inner].max(axis=0) for tree in model.trees) / model.divisor)[-2]
    if most > _SATURATED:
        raise refuse(
            f"scores of at most {_SATURATED:g}, beyond which probabilities are not told apart",
            f"those of objective='multiclassova' reach {most:.3g}", "Fit it with objective='multiclass'.",
        )  # fmt: skip


def _booster(estimator: Any) -> Any:
    name = type(estimator).__name__
    if name not in {*_CLASSIFIERS, *_REGRESSORS}:
        raise refuse(
            "a model that it can state exactly", f"the estimator is {name}",
            "Give LGBMClassifier, LGBMRegressor, LGBMRanker (of a distributed model its to_local()), a Booster, or the "
            "file of its save_model.",
        )  # fmt: skip
    if isinstance(estimator, _Booster):
        return estimator.booster
    if not estimator.__sklearn_is_fitted__():
        raise refuse("a fitted model", f"{name} is not fitted", "Call fit first.")
    return estimator.booster_


def _text(booster: Any) -> LightgbmText:
    """Read a booster's text: the iterations up to the best one, which are those that it predicts with."""
    try:
        return parse(booster.model_to_string())
    except UnlikelyTextError as error:
        needs, but = error.args
        raise UnsupportedModelError("The LightGBM model", needs, but, "Fit it again.") from error


def _adapted(booster: Any, text: LightgbmText) -> BoosterClassifier | BoosterRegressor:
    kind = text.objective[0] if text.objective else ""
    if kind in {*_TWO, *_SEVERAL}:
        return BoosterClassifier(booster, max(2, text.n_scores))
    return BoosterRegressor(booster)


def _from_file(path: Path) -> tuple[Any, LightgbmText]:
    """Return the booster of a file and its text, checked before the library reads it."""
    try:
        content = path.read_text(encoding="utf-8")
        text = parse(content)
    except UnlikelyTextError as error:
        needs, but = error.args
        raise _unreadable(path, needs, but) from error
    except (OSError, UnicodeError) as error:
        raise _unreadable(path, "a model that LightGBM saved", f"it cannot be read ({error})") from error
    try:
        import lightgbm
    except ImportError as error:
        raise MissingLibraryError(
            "A LightGBM model", "the library lightgbm", "it is not installed", "Run: pip install 'ceopt[lightgbm]'."
        ) from error
    try:
        booster = lightgbm.Booster(model_str=deciding(content))
    except (ValueError, lightgbm.basic.LightGBMError) as error:
        raise _unreadable(path, "a model that LightGBM saved", f"the library refuses it ({error})") from error
    categories = booster.pandas_categorical
    if not (
        categories is None or (isinstance(categories, list) and all(isinstance(part, list) for part in categories))
    ):
        raise _unreadable(path, "lists of categories", f"pandas_categorical is {categories!r}")
    return booster, text


def _unreadable(path: Path, needs: str, but: str) -> UnreadableFileError:
    return UnreadableFileError(f"The file {str(path)!r}", needs, but, "Save the model again with Booster.save_model.")


def _matrix(booster: Any, text: LightgbmText, rows: Any) -> Any:
    """Return the numbers that the library makes of its input: codes of categories, in the float width that it takes.

    A category column becomes its place among the categories of the training frame. One that is not among them is
    missing, and so in no set: its code is -1.

    Raises
    ------
    UnsupportedModelError
        The library would not take the columns, or takes as categories what are no codes.
    """
    if isinstance(rows, pd.DataFrame):
        rows = _codes(booster, text, rows)
    elif isinstance(rows, np.ndarray) and rows.dtype.kind in "biu":
        rows = rows.astype(np.float32)
    for place in sorted(text.by_set):
        column = rows[:, [place]]
        values = np.asarray(column.toarray() if hasattr(column, "toarray") else column, dtype=np.float64)
        if (values != np.rint(values)).any() or (np.abs(values) >= 2.0**31).any():
            raise refuse(
                "whole numbers as categories", f"LightGBM takes column {text.names[place]!r} as such and it has others",
                "Make it integer or categorical in the space, as it was when the model was fitted.",
            )  # fmt: skip
    return rows


def _codes(booster: Any, text: LightgbmText, frame: pd.DataFrame) -> NDArray[Any]:
    categories = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    trained = booster.pandas_categorical or []
    for name in frame:
        if name not in categories and not pd.api.types.is_numeric_dtype(frame[name].dtype):
            raise refuse(
                "columns that are numbers, bool or categories", f"column {name!r} is text in the space",
                "Infer the space from the frame that the model was fitted on, where its dtype is category.",
            )  # fmt: skip
    if len(categories) != len(trained):
        raise refuse(
            f"as many columns of dtype category as the model was fitted on, {len(trained)}",
            f"the space has {', '.join(map(repr, categories)) or 'none'}",
            "Infer the space from the frame that the model was fitted on.",
        )  # fmt: skip
    frame = frame.copy(deep=False)
    for name, levels in zip(categories, trained, strict=True):
        codes = frame[name].cat.set_categories(levels).cat.codes
        by_number = frame.columns.get_loc(name) in text.by_number
        if by_number:
            frame[name] = codes.where(codes >= 0, np.nan)
        else:
            frame[name] = codes
    return frame.to_numpy(dtype=np.result_type(*(dtype.type for dtype in frame.dtypes), np.float32))
