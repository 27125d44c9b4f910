"""``ceopt explain --surrogate``: black boxes from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from typer.testing import CliRunner

from ceopt import SolutionSet
from ceopt.cli.commands import app
from ceopt.cli.inputs import NAMES, says_of_surrogate, surrogate_named
from ceopt.solvers.errors import UnknownNameError
from ceopt.surrogates import LocalSurrogateRecourse, MinimaxProbabilityMachine

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 2)), columns=["a", "b"]).round(3)
Y = np.where(X["a"] + 0.5 * X["b"] > 0.5, "yes", "no")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Save a model that cannot be stated as a program, a regressor, a function of a module, and the people."""
    monkeypatch.chdir(tmp_path)
    joblib.dump(KNeighborsClassifier(15).fit(X, Y), "model.joblib")
    joblib.dump(KNeighborsRegressor(15).fit(X, X["a"] + 0.5 * X["b"]), "number.joblib")
    X.to_csv("people.csv", index=False)
    (tmp_path / "scorer.py").write_text("def decide(rows):\n    return (rows['a'] + rows['b'] > 0.5).astype(int)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import scorer  # type: ignore[import-not-found]

    joblib.dump(scorer.decide, "function.joblib")
    del sys.modules["scorer"]


ROW = int(np.flatnonzero(Y == "no")[0])


def asked(*words: Any, model: str = "model.joblib", target: str = "yes") -> Any:
    common = ["explain", model, "people.csv", "--row", ROW, "--target", target, "--allow-pickle", *words]
    return CliRunner().invoke(app, [str(word) for word in common])


def test_a_model_that_cannot_be_stated_names_the_option_and_the_option_answers() -> None:
    refused = asked()
    assert refused.exit_code == 2
    assert refused.stderr.strip().splitlines()[-1].endswith("add --surrogate fisher_rao.")
    assert "LocalSurrogateRecourse" not in refused.stderr

    answered = asked("--surrogate", "svm")
    assert answered.exit_code == 0, answered.output
    assert "1 answer, each predicted again by the model itself" in answered.stdout
    assert f"row {ROW}: by the way '" in answered.stdout
    assert "rows sent to the model." in answered.stdout


def test_json_has_the_way_and_the_surrogate() -> None:
    done = asked("--surrogate", "nominal", "--json", "--n", 2, "--max-changes", 1, "--cost", "l2")
    (line,) = done.stdout.splitlines()
    result = SolutionSet.from_json(line)

    assert done.exit_code == 0, done.output
    assert json.loads(line)["surrogate"]["n_queries"] > 0
    assert all(answer.way in {"surrogate", "grown", "boundary"} for answer in result)
    assert all(len(answer.changed) == 1 for answer in result)
    assert "by the way" not in done.stdout
    assert says_of_surrogate(result)


def test_a_function_is_taken_beside_a_surrogate_alone() -> None:
    refused = asked(model="function.joblib", target="1")
    assert refused.exit_code == 2
    assert "a function of rows needs --surrogate" in refused.stderr

    answered = asked("--surrogate", "svm", model="function.joblib", target="1")
    assert answered.exit_code == 0, answered.output


@pytest.mark.long
def test_a_regressor_is_asked_for_a_range() -> None:
    assert asked("--surrogate", "svm", model="number.joblib", target=">=0.8").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--surrogate", "rbf"), "surrogate is 'rbf'. Choose from: fisher_rao, nominal"),
        (("--surrogate", "fisher-rao"), "Did you mean 'fisher_rao'?"),
        (("--surrogate", ""), "surrogate is ''"),
        (("--surrogate", "svm", "--no-why"), "no --no-why beside it"),
        (("--surrogate", "svm", "--cost", "l7"), "l7"),
        (("--surrogate", "svm", "--n", "0"), "n is 0"),
    ],
)
def test_wrong_use_is_one_sentence(words: tuple[str, ...], said: str) -> None:
    done = asked(*words)
    assert done.exit_code == 2
    assert said in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_a_surrogate(name: str) -> None:
    made = surrogate_named(name)
    assert isinstance(made, LocalSurrogateRecourse)
    if isinstance(made.surrogate, MinimaxProbabilityMachine):
        assert made.surrogate.divergence == name
        assert (made.surrogate.radius == (0.0, 0.0)) == (name == "nominal")
    with pytest.raises(UnknownNameError):
        surrogate_named(name.upper())


def test_help_names_every_surrogate() -> None:
    shown = CliRunner().invoke(app, ["explain", "--help"], env={"COLUMNS": "300"}).output
    assert all(name in shown for name in NAMES)
