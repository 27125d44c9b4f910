"""The parts of the study: what is computed for one fold of one data set, and how much of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from coverage_validity import networks
from coverage_validity.actionable import actions
from coverage_validity.causes import causes
from coverage_validity.frontiers import FoldModels, frontiers, models_of
from coverage_validity.local_models import Data
from coverage_validity.planes import planes
from coverage_validity.protocol import Case, Fold, load
from coverage_validity.quality import SETTINGS, qualities

__all__ = ["FAST", "FULL", "PARTS", "Size", "computed"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done.

    Parameters
    ----------
    folds
        How many of the five.
    people, judged
        Of each fold, to be given recourse, and whose surrogates are judged.
    futures
        Networks of the future of each fold.
    samples
        Sizes of the samples of figures 4, 7 and 8.
    few
        Sizes of the samples of figure 15.
    """

    folds: int = 5
    people: int = 50
    judged: int = 20
    futures: int = 100
    samples: tuple[int, ...] = (500, 1000, 2000, 5000, 10_000)
    few: tuple[int, ...] = (50, 100, 200, 500, 1000)


FULL = Size()
FAST = Size(folds=1, people=2, judged=1, futures=3, samples=(100,), few=(50,))


def computed(part: str, name: str, protocol: str, number: int, size: Size, *, quiet: bool) -> Any:
    """Return what a part finds on one fold of one data set."""
    case = load(name, protocol)
    return PARTS[part](case, case.folds()[number], size, quiet=quiet)


def _recourse(case: Case, fold: Fold, size: Size, *, quiet: bool) -> dict[str, Any]:
    """Return every method's costs and validities, and how right the networks are."""
    models = models_of(case, fold, size.futures)
    people = models.people(size.people)
    return {
        "people": len(people),
        "classifiers": _accuracies(models),
        "methods": frontiers(models, people, quiet=quiet),
        "actions": actions(models, people, quiet=quiet),
    }


def _accuracies(models: FoldModels) -> dict[str, tuple[float, float]]:
    """Return accuracy and area under the curve of the networks on rows that they were not trained on, and later."""
    case = models.data.case
    present = models.data.present
    return {
        "present, test rows": networks.accuracy(present, case.X[case.test], case.y[case.test]),
        "present, later rows": networks.accuracy(present, case.later_rows, case.later_y),
        "future, later rows": networks.accuracy(models.futures, case.later_rows, case.later_y),
    }


def _quality(case: Case, fold: Fold, size: Size, *, quiet: bool) -> dict[str, Any]:
    """Return fidelity and stability of surrogates by the size of the sample."""
    data = Data(case, fold, networks.present(case, fold))
    people = case.X[case.test][: size.judged]
    found: dict[str, Any] = {}
    for setting in SETTINGS:
        found[setting] = {str(count): qualities(data, people, setting, count, quiet=quiet) for count in size.samples}
    found["15"] = {str(count): qualities(data, people, "4, 7", count, quiet=quiet) for count in size.few}
    return found


def _planes(case: Case, fold: Fold, size: Size, *, quiet: bool) -> dict[str, Any]:
    """Return the machines of one person of the made-up data, in two dimensions."""
    del size, quiet
    if case.p != 2:
        return {}
    return planes(Data(case, fold, networks.present(case, fold)))


def _causes(case: Case, fold: Fold, size: Size, *, quiet: bool) -> dict[str, float]:
    """Return how far the future is from the present, and whether methods move the same column."""
    models = models_of(case, fold, size.futures)
    return causes(models, models.people(size.people), quiet=quiet)


PARTS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "recourse": _recourse,
    "quality": _quality,
    "planes": _planes,
    "causes": _causes,
}
