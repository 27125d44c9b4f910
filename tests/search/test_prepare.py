"""A query without its person: whose decision is asked for, with which margin."""

from __future__ import annotations

from pathlib import Path

import pytest

import ceopt
from ceopt.formulations.predictors import TreeEnsemble
from ceopt.search.prepare import fingerprints_of, prepare
from ceopt.settings import Settings

SPACE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="integer", lower=0, upper=9),
        ceopt.Feature("loans", kind="integer", lower=0, upper=9),
    ]
)


def trees() -> TreeEnsemble:
    """Return two trees whose scores add up to -0.2, 0.1, 0.4 and 0.7."""
    stumps = []
    for place, (left, right) in enumerate(((-0.1, 0.2), (-0.1, 0.5))):
        stumps.append({"feature": place, "threshold": 4.5, "left": {"value": left}, "right": {"value": right}})
    return TreeEnsemble(stumps, labels=("bad", "good"))


@pytest.mark.parametrize(("margin", "cost"), [(None, 5.0), (0.0, 5.0), (0.3, 5.0), (0.5, 10.0)])
def test_trees_decide_for_themselves_unless_a_margin_is_asked_for(margin: float | None, cost: float) -> None:
    prepared = prepare(trees(), SPACE, Settings(target="good", margin=margin))
    assert prepared.asks_model == (margin is None)
    assert prepared.margin == margin

    result = ceopt.explain(
        trees(), {"income": 0, "loans": 0}, SPACE, target="good", margin=margin, cost=ceopt.L1(scale="none")
    )

    assert (result.status, result.margin) == ("optimal", margin or 0.0)
    assert result[0].cost == cost
    assert result[0].score >= (margin or 0.0)


def test_a_model_in_a_file_is_told_by_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "model"
    marks = []
    for content in (b"one", b"two", b"one"):
        file.write_bytes(content)
        marks.append(fingerprints_of(file, None))
        assert fingerprints_of(str(file), None) == marks[-1]
    assert marks[0] == marks[2] != marks[1]
    assert marks[0].keys() == {"model"}
    assert fingerprints_of(tmp_path / "none", None) == {}
