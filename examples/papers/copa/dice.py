"""Plans by dice-ml's gradient method with PyTorch, the method of the paper, with the options of its released code."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, final

import numpy as np
import pandas as pd
from shared.dice import quiet

from copa.protocol import Case, Floats

__all__ = ["OPTIONS", "Dice", "is_installed"]

#: Of the released code; what it leaves out has dice-ml's default, which is the same.
OPTIONS: Mapping[str, Any] = {
    "proximity_weight": 0.5,
    "diversity_weight": 1.0,
    "categorical_penalty": 0.1,
    "yloss_type": "hinge_loss",
    "diversity_loss_type": "dpp_style:inverse_dist",
    "optimizer": "pytorch:adam",
    "learning_rate": 0.05,
    "min_iter": 500,
    "max_iter": 5000,
    "loss_diff_thres": 1e-5,
    "loss_converge_maxiter": 1,
    "stopping_threshold": 0.5,
    "posthoc_sparsity_param": 0.0,
}
#: Decimals of a scaled number.
PRECISION = 6


def is_installed() -> bool:
    """Whether dice-ml and PyTorch can be imported."""
    return find_spec("dice_ml") is not None and find_spec("torch") is not None


@final
class Dice:
    """dice-ml for one classifier, on columns scaled to [0, 1].

    Parameters
    ----------
    case
        The data. "paper": nothing is fixed and what the descent ends with is taken as it is, as the released code has
        it. "honest": what nobody can change is fixed, and a category has one level.
    model
        Parameters (d,) of a linear classifier, or a fitted network.
    """

    def __init__(self, case: Case, model: Any) -> None:
        import dice_ml
        import torch
        from dice_ml.explainer_interfaces.dice_pytorch import DicePyTorch

        torch.set_num_threads(1)  # its tensors have a dozen entries
        self.case = case
        inside = {place for group in case.groups for place in group}
        self.numbers = [name for place, name in enumerate(case.columns) if place not in inside]
        # Its scale is that of these rows: all that the columns were scaled by, so that it changes nothing.
        seen = np.vstack([case.X, case.later_rows]) if case.is_released else case.X
        data = dice_ml.Data(
            dataframe=pd.concat([self._described(row) for row in seen], ignore_index=True).assign(label=0),
            continuous_features=self.numbers,
            outcome_name="label",
            continuous_features_precision=dict.fromkeys(self.numbers, PRECISION),
        )
        backend = dice_ml.Model(model=_module(model), backend="PYT", func="ohe-min-max")
        self.explainer = DicePyTorch(data, backend)
        if case.is_released:
            self.explainer.round_off_cfs = lambda assign=False: _as_it_is(self.explainer, assign=assign)
        self.weights = case.inverse_mads()
        still = {case.columns[place] for place in case.fixed[:-1]}
        self.free = [name for name in self.numbers if name not in still]
        self.free += [
            word for word, group in zip(case.words, case.groups, strict=True) if case.columns[group[0]] not in still
        ]

    def plan(self, row: Floats, *, n: int, seed: int, steps: int | None = None) -> Floats:
        """Return n counterfactuals of a person, valid or not, the intercept's column last; after ``steps`` if given."""
        import torch
        from raiutils.exceptions import UserConfigValidationException

        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - dice-ml draws from it
        torch.manual_seed(seed)
        options = {**OPTIONS, **({"min_iter": steps, "max_iter": steps} if steps else {})}
        free: Any = self.free if self.case.fixed[:-1] else "all"
        self.explainer.final_cfs = []
        # It finds plans and then may fail to write them down as words, or refuses them as none is valid.
        with quiet(), contextlib.suppress(ValueError, UserConfigValidationException):
            self.explainer.generate_counterfactuals(
                self._described(row), n, desired_class=1, features_to_vary=free, feature_weights=self.weights, **options
            )
        found = np.vstack([np.ravel(one) for one in self.explainer.final_cfs]).astype(float)
        return np.column_stack([found, np.ones(len(found))])

    def _described(self, row: Floats) -> pd.DataFrame:
        """Return a person as a frame with a column a category."""
        case = self.case
        values: dict[str, Any] = {name: [float(row[case.columns.index(name)])] for name in self.numbers}
        for word, group in zip(case.words, case.groups, strict=True):
            values[word] = [case.columns[group[int(np.argmax(row[list(group)]))]].removeprefix(f"{word}_")]
        return pd.DataFrame(values)


def _as_it_is(explainer: Any, *, assign: bool) -> list[Floats] | None:
    return None if assign else [one.detach().clone().numpy() for one in explainer.cfs]


def _module(model: Any) -> Any:
    """Return a classifier as a module of PyTorch that gives the probability of label 1."""
    import torch

    if isinstance(model, np.ndarray):
        layers = [(model[:-1, None], model[-1:])]
    else:
        layers = list(zip(model.coefs_, model.intercepts_, strict=True))
    parts: list[Any] = []
    for weights, biases in layers:
        part = torch.nn.Linear(*weights.shape)
        with torch.no_grad():
            part.weight.copy_(torch.tensor(weights.T))
            part.bias.copy_(torch.tensor(biases))
        parts += [part, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1], torch.nn.Sigmoid())
