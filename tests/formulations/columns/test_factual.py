"""A Factual belongs to one person: a program in which its row is another is refused wherever it is seen."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from ceopt.formulations import Factual, Reaches, embed, l1
from ceopt.formulations.space import Feature, FeatureSpace
from ceopt.solvers import compile_model, count, solve, write
from ceopt.solvers.errors import CeoptError, InvalidValueError
from ceopt.solvers.highs import HighsSession

SPACE = FeatureSpace(
    [
        Feature("income", kind="continuous", lower=0, upper=10, direction="increasing"),
        Feature("age", kind="integer", lower=18, upper=90),
        Feature("school", kind="ordinal", levels=("low", "mid", "high")),
        Feature("owner", kind="binary", levels=("no", "yes")),
        Feature("job", kind="categorical", levels=("cook", "nurse", "smith")),
    ]
)
ANN: dict[str, Any] = {"income": 2.5, "age": 30, "school": "low", "owner": "no", "job": "cook"}


def model_of(kind: str) -> Any:
    rng = np.random.default_rng(0)
    rows = rng.uniform([0, 18, 0, 0, 0], [10, 91, 3, 2, 3], size=(300, 5))
    frame = SPACE.frame(
        [dict(zip(SPACE.names, row, strict=True)) for row in np.column_stack([rows[:, 0], rows[:, 1:] // 1])]
    )
    good = rows[:, 0] + rows[:, 1] / 20 + rows[:, 2] > 7
    ordinal = OrdinalEncoder(categories=[["low", "mid", "high"]])
    steps = [("school", ordinal, ["school"]), ("levels", OneHotEncoder(), ["owner", "job"])]
    seen = ColumnTransformer(steps, remainder="passthrough")
    model = (
        LogisticRegression(max_iter=5000)
        if kind == "logistic"
        else RandomForestClassifier(5, max_depth=3, random_state=0)
    )
    return make_pipeline(seen, model).fit(frame, good)


def program(kind: str = "logistic", row: Any = ANN) -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, row)
    m.predictor = embed(model_of(kind), m.x)
    m.valid = Reaches(m.predictor, True)
    m.cost = pyo.Objective(expr=l1(m.x, scale="none"))
    return m


@pytest.mark.parametrize("kind", ["logistic", "forest"])
def test_a_program_of_the_product_refuses_another_row(kind: str) -> None:
    m = program(kind)
    own = solve(m).objective
    m.x.factual["income"].fix(3.25)
    said = r"'income' of block 'x' to be 2\.5, the person's own, but 'x\.factual\[income\]' is 3\.25\. Make a Factual"
    with pytest.raises(InvalidValueError, match=said):
        solve(m)
    m.x.factual["income"].fix(2.5)
    assert solve(m).objective == own


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("age", 31.0, r"'age' of block 'x' to be 30\.0, the person's own, but .* is 31\.0"),
        ("school", 2, r"'school' .* to be 0 \('low'\), .* is 2 \('high'\)"),
        ("owner", 1, r"'owner' .* to be 0 \('no'\), .* is 1 \('yes'\)"),
        ("job", 1.0, r"'job' .* to be 0 \('cook'\), .* is 1 \('nurse'\)"),
        ("job", 7.0, r"'job' .* is 7\.0"),
        ("age", float("nan"), r"'age' .* is nan"),
        ("age", float("inf"), r"'age' .* is inf"),
    ],
)
def test_the_sentence_names_column_value_and_the_persons(name: str, value: float, said: str) -> None:
    m = program()
    m.x.factual[name].set_value(value, skip_validation=True)
    with pytest.raises(InvalidValueError, match=said):
        compile_model(m)


def test_a_row_that_is_freed_or_empty_is_refused() -> None:
    m = program()
    m.x.factual["age"].unfix()
    with pytest.raises(InvalidValueError, match=r"'age' .* 30\.0, .* 'x\.factual\[age\]' is not fixed"):
        compile_model(m)
    m = program()
    m.x.factual["age"].value = None
    with pytest.raises(InvalidValueError, match=r"'age' .* is without a value"):
        compile_model(m)


@pytest.mark.parametrize("suffix", [".lp", ".mps", ".cbf"])
def test_no_file_is_written_and_no_answer_decoded(tmp_path: Path, suffix: str) -> None:
    m = program()
    solve(m)
    m.x.factual["age"].fix(40)
    with pytest.raises(CeoptError, match="'age'"):
        write(m, tmp_path / f"other{suffix}")
    assert not list(tmp_path.iterdir())
    with pytest.raises(CeoptError, match="'age'"):
        m.x.decode()


def test_copies_and_deactivated_blocks_are_seen_too() -> None:
    m = program()
    for copy in (m.clone(), pickle.loads(pickle.dumps(m))):
        assert solve(copy).objective == pytest.approx(solve(m).objective, rel=1e-9)
        copy.x.factual["age"].fix(40)
        with pytest.raises(InvalidValueError, match="'age'"):
            solve(copy)
    m.x.deactivate()
    m.x.factual["age"].fix(40)
    with pytest.raises(InvalidValueError, match="'age'"):
        compile_model(m)


def test_of_two_people_in_one_model_the_one_that_moved_is_named() -> None:
    m = program()
    m.ben = Factual(SPACE, ANN | {"age": 50})
    compile_model(m)
    m.ben.factual["age"].fix(30)
    with pytest.raises(InvalidValueError, match=r"'age' of block 'ben' to be 50\.0, .* is 30\.0"):
        compile_model(m)


def test_a_live_session_cannot_move_to_another_person() -> None:
    """As data columns the row stays one person's: the same values pass, others are refused."""
    m = program("forest")
    compiled = compile_model(m, data=[m.x.factual])
    own = {name: m.x.factual[name].value for name in SPACE.names}
    compiled.set_data(m.x.factual, own)
    with pytest.raises(InvalidValueError, match=r"^set_data needs 'age' of block 'x' to be 30\.0, .* is 31\.0"):
        compiled.set_data(m.x.factual, own | {"age": 31.0})
    with pytest.raises(InvalidValueError, match="'age'"):
        compiled.set_data(m.x.factual["age"], 31.0)
    assert compiled.lb[compiled.index[m.x.factual["age"]]] == 30.0


def test_rules_bounds_and_other_data_of_a_live_program_still_change() -> None:
    m = program("forest")
    m.most = pyo.Var()
    m.most.fix(10.0)
    m.limit = pyo.Constraint(expr=m.x.raw["income"] <= m.most)
    compiled = compile_model(m, data=[m.most])
    session = HighsSession(compiled)
    for most in (10.0, 4.0, 3.0, 6.0):
        compiled.set_data(m.most, most)
        m.most.fix(most)
        assert session.solve().objective == pytest.approx(solve(m).objective, rel=1e-9)
        assert m.x.decode()["income"] <= most
    m.less = pyo.Constraint(expr=m.x.raw["income"] <= 2.75)
    assert m.x.decode(solve(m).solutions[0])["income"] <= 2.75


def test_counting_refuses_it_as_well() -> None:
    m = program("forest")
    m.x.factual["age"].fix(40)
    with pytest.raises(InvalidValueError, match="'age'"):
        count(m)


def test_asking_whether_a_lookup_has_a_key_makes_nothing_and_raises_nothing() -> None:
    space = FeatureSpace(
        [Feature("age", kind="integer", lower=0, upper=9), Feature("job", kind="categorical", levels=["a", "b", "c"])]
    )
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"age": 3, "job": "a"})
    before = len(list(m.component_data_objects(pyo.Var)))

    assert "age" in m.x.raw
    assert "job" not in m.x.raw
    assert "unknown" not in m.x.raw
    assert ("job", "b") in m.x.is_level
    assert ("age", 3) not in m.x.is_level
    assert m.x.raw.get("job") is None
    assert m.x.changed.get("unknown", 0) == 0
    assert len(list(m.component_data_objects(pyo.Var))) == before
    assert str(m.x.raw.get("age")) == str(m.x.raw["age"])
    with pytest.raises(CeoptError, match="a column with levels"):
        m.x.is_level["age", 3]
