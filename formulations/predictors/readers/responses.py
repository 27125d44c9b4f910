"""The response of a model of two classes, its decision value or a probability, as a function of one score.

Calibrated and thresholded models decide by a function of that value. It is monotone, so the decision turns over at one
score, which is found on the library's own arithmetic.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ceopt.formulations.predictors.predictor import Combination, Predictor
from ceopt.formulations.predictors.readers.model_input import refuse
from ceopt.formulations.predictors.readers.pipeline import split
from ceopt.formulations.predictors.readers.sklearn.members import Composite, Member, composite
from ceopt.formulations.predictors.representation import NEVER, Affine, Decision, Head, Probability, sign_of, with_head
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.encoding import last_true
from ceopt.solvers.checks import Floats

Values: TypeAlias = Callable[[Floats], Floats]

_DELEGATING: Final = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")


@final
@dataclass(frozen=True, slots=True)
class Response:
    """What a library computes of a model of two classes.

    Parameters
    ----------
    member
        The model.
    method
        What the library asks it for: "decision_function" or "predict_proba".
    row
        The one score is this weighted sum of the member's scores; it does not decrease from the first label to the
        second.
    values
        The library's value at each score.
    probability
        Of the second label, by the score.
    unit
        Of a decision value: what it is of the score.
    """

    member: Predictor
    method: str
    row: tuple[float, ...]
    values: Values
    probability: Probability | None
    unit: float = 1.0

    def reversed(self) -> Response:
        """Return the same values of the negative score."""
        return dataclasses.replace(
            self, row=tuple(-w for w in self.row), values=lambda scores: self.values(-scores), probability=None
        )

    def decided(
        self,
        labels: Sequence[Any],
        is_second: Callable[[Floats], NDArray[np.bool_]],
        probability: Probability | None,
        *,
        inclusive: bool = False,
    ) -> Composite:
        """Return the model of one score that says ``labels[1]`` where the library's test of the score holds.

        ``inclusive`` says of a test with >= that its level is the first score which passes, not the last which fails.
        """
        level = float(last_true(lambda scores: ~is_second(scores)))
        decision: Decision = "positive"
        if inclusive:
            decision = "nonnegative"
            level = math.nextafter(level, math.inf)
        level = float(np.clip(level, -NEVER, NEVER))
        return _image(self.member, self.row, Head.checked("Response", 1, labels, decision, probability, level))


def response(member: Member, methods: Sequence[str], position: int = 1) -> Response:
    """Return what a library gets that asks a member for the first of some methods, for the label at a position.

    Raises
    ------
    UnsupportedModelError
        The model has none of them, is not one of two classes, or the value is no function of one score.
    """
    model = member.model
    title = member.title
    core = member.predictor.core
    if core.labels is None or len(core.labels) != 2:
        raise refuse("a classifier of two classes", f"{title} has {len(core.labels or ())}", "Fit it on two classes.")
    method = next((name for name in methods if hasattr(model, name)), None)
    if method is None:
        raise refuse(f"a model with {' or '.join(methods)}", f"{title} has none", "Give another classifier.")
    if method == "decision_function":
        unit = decision_unit(model, title)
        factor = sign_of(position) * unit
        if core.n_scores == 1:
            return Response(member.predictor, method, (1.0,), lambda scores: factor * scores, core.probability, unit)
    elif core.probability == "share":
        if position == 1:
            return Response(member.predictor, method, (0.0, 1.0), lambda scores: scores, "identity")
        return Response(member.predictor, method, (-1.0, 0.0), lambda scores: -scores, _rest)
    elif core.probability is not None:
        values = partial(core.head.of_position, position=position)
        return Response(member.predictor, method, (1.0,), values, core.probability)
    raise refuse(
        f"a {method} that follows from one score", f"that of {title} does not", "Give another classifier under it."
    )


def _rest(scores: Floats) -> Floats:
    """Return the probability of the second label where the score is the negative of the first's."""
    return 1.0 + scores


def decision_unit(model: Any, title: str) -> float:
    """Return what the library's decision value is of the score that is read, or refuse one that is another sum."""
    _, estimator = split(model)
    name = type(estimator).__name__
    if name in _DELEGATING:
        return decision_unit(getattr(estimator, "estimator_", estimator.estimator), title)
    if name == "OneVsRestClassifier":
        return decision_unit(estimator.estimators_[0], title)
    if name == "BaggingClassifier":
        raise refuse(
            "decision values that decide", f"{title} adds up decision values of BaggingClassifier, which decides by "
            "probabilities or votes", "Bag classifiers without decision_function, such as trees.",
        )  # fmt: skip
    return 0.5 if getattr(estimator, "loss", None) == "exponential" else 1.0


def _image(member: Predictor, row: Sequence[float], head: Head) -> Composite:
    """Return a model whose one score is a weighted sum, exact in floating point, of the member's scores."""
    core = member.core
    weights = np.array([row])
    options: dict[str, Any] = {name: getattr(head, name) for name in ("labels", "decision", "probability", "level")}
    if np.array_equal(weights, [[1.0]]):
        return with_head(core, head), member.encoding
    if isinstance(core, TreeEnsemble):
        trees = [
            dataclasses.replace(tree, value=np.where(tree.inner[:, None], 0.0, tree.value) @ weights.T)
            for tree in core.trees
        ]
        ensemble = TreeEnsemble(
            trees, core.base @ weights.T, divisor=core.divisor, input_dtype=core.input_dtype, sum_dtype=core.sum_dtype,
            n_inputs=core.n_inputs, **options,
        )  # fmt: skip
        return ensemble, member.encoding
    if isinstance(core, Affine):
        return Affine(weights @ core.weights, weights @ core.intercept, dtype=core.dtype, **options), member.encoding
    if isinstance(core, Combination):
        parts = [weights @ part for part in core.weights]
        other = Combination(
            core.members, parts, weights @ core.offset, votes=core.votes, divisor=core.divisor, **options
        )
        return other, member.encoding
    return composite(Combination([member], [weights], **options))
