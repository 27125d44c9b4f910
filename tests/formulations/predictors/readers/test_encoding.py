"""Columns: the library's arithmetic, and the exact raw value at which a split turns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draws import draws
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import ceopt
from ceopt.formulations.predictors.readers import read
from ceopt.formulations.predictors.readers.model_input import probe_frame
from ceopt.formulations.predictors.trees import TreeEnsemble
from ceopt.formulations.space.encoding import Column, Encoding
from ceopt.formulations.space.feature import Feature, Step
from ceopt.formulations.space.space import FeatureSpace
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

SCALERS: dict[str, Any] = {
    "standard": StandardScaler(),
    "min max": MinMaxScaler(feature_range=(-1, 3)),
    "clipped": MinMaxScaler(clip=True),
    "max abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "two": make_pipeline(StandardScaler(), MinMaxScaler()),
}
numbers = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)
up, down = np.inf, -np.inf


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", SCALERS)
@draws(40)
@example(a=1000.0, b=1001.0)
@example(a=0.1, b=0.30000000000000004)
@given(a=numbers, b=numbers)
def test_largest_left_is_where_the_real_pipeline_turns(name, a, b):
    """The tree is fitted on two points; the answer goes left in it, and the next float64 goes right."""
    if abs(a - b) < 1e-5 * max(abs(a), abs(b), 1.0):
        b = a + 1.0
    frame = pd.DataFrame({"x": [a, b]})
    model = make_pipeline(SCALERS[name], DecisionTreeClassifier(max_depth=1)).fit(frame, [a > b, a <= b])
    tree = model[-1].tree_
    assert tree.node_count == 3
    space = FeatureSpace([Feature("x", kind="continuous", lower=min(a, b), upper=max(a, b))])

    column = read(model, space).encoding.columns[0]
    last = column.largest_left(tree.threshold[:1], "float32")[0]

    rows = pd.DataFrame({"x": [last, np.nextafter(last, up), np.nextafter(last, down), min(a, b), max(a, b)]})
    assert model[:-1].transform(rows)[:, 0].tolist() == column.evaluate(rows["x"]).tolist()
    assert model[-1].apply(model[:-1].transform(rows)).tolist() == [1, 2, 1, 1, 2]


@draws(100)
@given(
    scaler=st.tuples(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3)), x=st.floats(-1e5, 1e5), theta=st.floats(-1e2, 1e2),
    width=st.sampled_from(["float32", "float64"]), inclusive=st.booleans(),
)  # fmt: skip
def test_largest_left_has_no_number_between(scaler, x, theta, width, inclusive):
    low, size = scaler
    steps = (Step("subtract", np.float64(low)), Step("divide", np.float64(size)), Step("at_least", np.float64(-3.0)))
    column = Column("x", steps)

    last = column.largest_left(np.array([theta]), width, inclusive=inclusive)[0]

    def left(raw: float) -> bool:
        seen = max((raw - low) / size, -3.0)
        seen = float(np.float32(seen)) if width == "float32" else seen
        return seen <= theta if inclusive else seen < theta

    assert left(x) == (x <= last) == bool(column.goes_left(x, theta, width, inclusive=inclusive))
    if np.isfinite(last):
        assert left(float(last))
        assert not left(float(np.nextafter(last, up)))
    else:
        assert left(0.0) == (last > 0)


def test_d11_inputs_are_rounded_to_float32_before_they_are_compared():
    """embedding.md D11: past the threshold 1000.5 another 3e-5 still goes left, 4e-5 goes right."""
    frame = pd.DataFrame({"x": [1000.0, 1001.0]})
    model = DecisionTreeClassifier().fit(frame, [0, 1])
    assert model.tree_.threshold[0] == 1000.5

    predictor = read(model, FeatureSpace.infer(frame))
    last = predictor.encoding.columns[0].largest_left([1000.5], predictor.core.input_dtype)[0]

    points = np.array([1000.5, 1000.5 + 1e-8, 1000.5 + 3e-5, last, np.nextafter(last, up), 1000.5 + 4e-5])
    expected = [0, 0, 0, 0, 1, 1]
    assert model.predict(pd.DataFrame({"x": points})).tolist() == expected
    assert predictor.core.predict(points[:, None]).tolist() == expected
    assert 1000.5 + 3e-5 < last < 1000.5 + 4e-5
    assert Column("x").largest_left([1000.5], "float64").tolist() == [1000.5]


def test_d12_a_float32_value_is_compared_with_the_threshold_in_float64():
    """embedding.md D12: NumPy 2 compares a float32 scalar with a Python float in float32, so 0.1f <= 0.1 holds."""
    assert np.float32(0.1) <= 0.1
    assert float(np.float32(0.1)) > 0.1
    column = Column("x", (Step("cast", dtype="float32"),), dtype="float32")

    assert not column.goes_left(0.1, 0.1, "float32")
    last = column.largest_left(0.1, "float32")
    assert last < 0.1
    assert float(np.float32(last)) < 0.1 < float(np.float32(np.nextafter(last, up)))
    stump = {"feature": 0, "threshold": 0.1, "left": {"value": 0.0}, "right": {"value": 1.0}}
    assert TreeEnsemble([stump], input_dtype="float32").score([[0.1]]).tolist() == [1.0]
    assert TreeEnsemble([stump], input_dtype="float64").score([[0.1]]).tolist() == [0.0]


def test_largest_left_at_the_ends_of_the_numbers():
    column = Column("x")
    biggest = np.finfo(float).max

    assert column.largest_left([biggest, -biggest, np.inf], "float64").tolist() == [np.inf, -biggest, np.inf]
    assert column.largest_left([-biggest], "float64", inclusive=False).tolist() == [-np.inf]
    assert column.largest_left([0.0], "float64", inclusive=False).tolist() == [-5e-324]
    assert column.largest_left([[0.0], [1.0]], "float64").shape == (2, 1)
    assert np.float32(column.largest_left([np.finfo(np.float32).max], "float32")[0]) == np.finfo(np.float32).max
    clipped = Column("x", (Step("at_least", np.float64(0.0)), Step("at_most", np.float64(1.0))))
    assert clipped.largest_left([-0.5, 0.5, 1.0], "float64").tolist() == [-np.inf, 0.5, np.inf]


def test_steps_round_as_the_library_does():
    third = np.float64(1 / 3)
    x = np.array([0.1, 7.0], dtype=np.float32)

    narrow, wide = Step("multiply", third, "float32").apply(x), Step("multiply", third).apply(x)

    in_place = x.copy()
    in_place *= np.array([third, third])  # NumPy multiplies in float64, then rounds
    assert narrow.tolist() == in_place.tolist()
    assert narrow.dtype == np.float32
    assert wide.tolist() == (x.astype(float) / 1 * third).tolist()


def test_affine_is_the_real_function_rounded_once():
    steps = (
        Step("subtract", np.float64(10.0)), Step("divide", np.float64(4.0)), Step("cast", dtype="float32"),
        Step("multiply", np.float32(3.0)), Step("add", np.float64(1.0)),
    )  # fmt: skip

    assert Column("x", steps).affine() == (0.75, -6.5)
    assert Column("x", steps).evaluate([12.0]).tolist() == [2.5]
    assert Column("x").affine() == (1.0, 0.0)


NO_NUMBERS = [
    (Column(None, constant=2.0), "it is constant"),
    (Column("x", table=(0.0, 1.0)), "it reads the levels of 'x'"),
]
CLIPPED = (Column("x", (Step("at_most", np.float64(1.0)),)), "it clips 'x'")


@pytest.mark.parametrize(("column", "reason"), [*NO_NUMBERS, CLIPPED])
def test_only_numbers_that_are_not_clipped_have_a_slope(column, reason):
    with pytest.raises(
        InvalidTypeError, match=rf"Column.affine needs a numeric column that is not clipped, but {reason}\. Use"
    ):
        column.affine()


@pytest.mark.parametrize(("column", "reason"), NO_NUMBERS)
def test_only_numbers_have_a_largest_left(column, reason):
    with pytest.raises(InvalidTypeError, match=rf"largest_left needs a numeric column, but {reason}\. Use goes_left."):
        column.largest_left([0.5], "float32")


def test_levels_and_constants_are_looked_up():
    assert Column("x", table=(5.0, -1.0, 2.0)).evaluate([2, 0, 1, 1]).tolist() == [2.0, 5.0, -1.0, -1.0]
    assert Column("x", table=(5.0, -1.0, 2.0)).goes_left([0, 1, 2], 2.0, "float32").tolist() == [False, True, True]
    assert Column("x", table=(5.0, -1.0, 2.0)).goes_left([2], 2.0, "float32", inclusive=False).tolist() == [False]
    assert Column(None, constant=2.5).evaluate([7.0, 8.0]).tolist() == [2.5, 2.5]


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (("root", np.float64(1.0)), UnknownNameError, "operation is 'root'. Choose from: cast, subtract"),
        (("subtract", np.float64(np.nan)), InvalidValueError, "a finite operand, but subtract has nan"),
        (("divide", np.float64(-2.0)), InvalidValueError, "a positive factor, but divide has -2.0"),
        (("multiply", np.float64(0.0)), InvalidValueError, "a positive factor, but multiply has 0.0"),
    ],
)
def test_steps_that_do_not_keep_the_order_are_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        Step(*arguments)


def test_the_identity_encodes_levels_as_numbers_or_ranks():
    space = FeatureSpace(
        [
            Feature("number", kind="continuous"),
            Feature("whole", kind="integer"),
            Feature("text pair", kind="binary", levels=("n", "y")),
            Feature("bool", kind="binary", levels=(False, True)),
            Feature("pair", kind="binary", levels=(1, 2)),
            Feature("size", kind="ordinal", levels=("S", "M", "L")),
            Feature("stars", kind="ordinal", levels=(1, 3, 5)),
            Feature("code", kind="categorical", levels=(10, 7)),
        ]
    )

    encoding = Encoding.identity(space)

    rows = [[0.1, 3, 0, 0, 0, 0, 0, 0], [0.2, 4, 1, 1, 1, 2, 1, 1]]
    assert encoding.matrix(rows).tolist() == [[0.1, 3, 0, 0, 1, 0, 1, 10], [0.2, 4, 1, 1, 2, 2, 3, 7]]
    with pytest.raises(InvalidValueError, match=r"each of 8 columns, but the array has shape \(1, 7\)"):
        encoding.matrix([rows[0][:7]])


# ---- columns that a pipeline drops -----------------------------------------------------------------------------------
def _dropping(kind: str) -> tuple[Any, pd.DataFrame]:
    """A fitted model whose pipeline drops the columns "note" and "branch", which stand between those that it reads."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "note": [f"n{k}" for k in range(60)],
            "income": rng.integers(10, 90, 60) / 10,
            "branch": rng.choice(["north", "south"], 60),
            "job": rng.choice(["a", "b", "c"], 60),
            "debt": rng.integers(0, 9, 60),
        }
    )
    y = np.where(frame["income"] - 0.4 * frame["debt"] + (frame["job"] == "a") > 3.0, "yes", "no")
    read_columns = [("numbers", StandardScaler(), ["debt", "income"]), ("levels", OneHotEncoder(), ["job"])]
    dropping = ColumnTransformer(read_columns, remainder="drop")
    if kind == "named":
        dropping = ColumnTransformer([("away", "drop", ["note", "branch"]), *read_columns], remainder="passthrough")
    model = make_pipeline(dropping, LogisticRegression())
    if kind == "nested":
        model = make_pipeline(make_pipeline(dropping), LogisticRegression())
    if kind == "search":
        model = GridSearchCV(model, {"logisticregression__C": [0.5, 1.0]}, cv=2)
    return model.fit(frame, y), frame


@pytest.mark.parametrize("kind", ["remainder", "named", "nested", "search"])
def test_columns_that_a_pipeline_drops_need_not_be_in_the_space_or_the_row(kind):
    model, frame = _dropping(kind)
    person = frame[model.predict(frame) == "no"].iloc[0]
    kept = ["income", "job", "debt"]
    space = FeatureSpace.infer(frame[kept])

    answer = ceopt.explain(model, person[kept], space, target="yes", data=frame[kept])[0]

    with_all = FeatureSpace.infer(frame, categorical=["note"])
    whole = ceopt.explain(model, person, with_all.fix("note", "branch"), target="yes")[0]
    assert answer.cost == pytest.approx(whole.cost, rel=1e-9)
    asked = pd.DataFrame([{**person.to_dict(), **answer.values.to_dict()}])
    assert model.predict(asked).tolist() == ["yes"]
    assert ceopt.verify([answer.values], model, space, target="yes", factual=person[kept]).ok


_NUMBERS = ("numbers", StandardScaler(), ["debt", "income"])
_LEVELS = ("levels", OneHotEncoder(), ["job"])
_ONCE: dict[str, Any] = {
    "parts": ColumnTransformer([_NUMBERS, _LEVELS, ("filled", SimpleImputer(), ["debt"])]),
    "pipelines": ColumnTransformer([
        ("numbers", make_pipeline(FunctionTransformer(), StandardScaler()), ["debt", "income"]),
        ("levels", make_pipeline(FunctionTransformer(), OneHotEncoder(drop="first")), ["job"]),
    ]),
    "union": make_union(ColumnTransformer([_LEVELS]), "drop", ColumnTransformer([_NUMBERS])),
    "union of steps": make_pipeline(
        ColumnTransformer([_NUMBERS, ("rank", OrdinalEncoder(), ["job"])]),
        make_union(MinMaxScaler(), make_pipeline(FunctionTransformer(), MaxAbsScaler()), RobustScaler()),
    ),
    "union of encoders": ColumnTransformer([
        ("numbers", make_union(StandardScaler(), MinMaxScaler()), ["debt", "income"]),
        ("levels", make_union(OrdinalEncoder(), OneHotEncoder(drop=["b"])), ["job"]),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", _ONCE)
def test_each_step_runs_once_while_a_model_is_read(monkeypatch, name):
    """Parts side by side are cut from their output, and the rows that were followed are not run again."""
    _, frame = _dropping("remainder")
    frame = frame[["income", "job", "debt"]]
    model = make_pipeline(_ONCE[name], LogisticRegression()).fit(frame, frame["income"] > 4.0)
    runs: list[int] = []
    for step in (
        ColumnTransformer, FeatureUnion, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, OneHotEncoder,
        OrdinalEncoder, SimpleImputer,
    ):  # fmt: skip
        own = step.transform
        monkeypatch.setattr(step, "transform", lambda self, X, own=own: runs.append(id(self)) or own(self, X))
    predictor = read(model, FeatureSpace.infer(frame, categorical=["job"]))
    assert len(runs) == len(set(runs)) >= 2
    rows = predictor.space.coordinates(frame)
    own = model[0].transform(frame)
    np.testing.assert_array_equal(predictor.encoding.matrix(rows), own.toarray() if hasattr(own, "toarray") else own)


def test_a_step_that_writes_into_its_rows_changes_nothing_for_the_next_model():
    """The rows across a space are made once, and each model is given a copy."""
    rows = np.random.default_rng(0).normal(5.0, 2.0, (40, 2))
    space = FeatureSpace([Feature(name, kind="continuous", lower=0, upper=9) for name in "ab"])
    models = [
        make_pipeline(StandardScaler(copy=False), LogisticRegression()).fit(data, rows[:, 0] > 5.0)
        for data in (rows.copy(), pd.DataFrame(rows, columns=["a", "b"]))
    ]
    before = probe_frame(space, {})
    for model in [*models, *models]:
        read(model, space)
    pd.testing.assert_frame_equal(probe_frame(space, {}), before)


def test_equal_spaces_have_rows_of_their_own():
    """0 and 1 equal False and True, in a space as everywhere in Python, and encoders tell them apart."""
    spaces = [FeatureSpace([Feature("owner", kind="binary", levels=levels)]) for levels in ((0, 1), (False, True))]
    assert spaces[0] == spaces[1]
    assert [probe_frame(space, {})["owner"].dtype.kind for space in spaces] == ["i", "b"]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_part_in_float32_keeps_its_width_in_a_wider_whole(sparse):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(1e3, 7, 80), "debt": rng.normal(5, 1, 80), "job": ["a", "b"] * 40})
    narrow = make_pipeline(FunctionTransformer(), OrdinalEncoder(dtype=np.float32), StandardScaler())
    numbers = ("numbers", StandardScaler(), ["income", "debt"])
    step = ColumnTransformer([("job", narrow, ["job"]), numbers], sparse_threshold=float(sparse))
    model = make_pipeline(step, LogisticRegression()).fit(frame, frame["debt"] > 5)
    predictor = read(model, FeatureSpace.infer(frame))
    own = model[0].transform(frame)
    np.testing.assert_array_equal(predictor.encoding.matrix(predictor.space.coordinates(frame)), own)
    assert len(set(own[:, 0].tolist())) == 2


def test_a_column_that_a_pipeline_reads_is_still_asked_for():
    model, frame = _dropping("remainder")
    space = FeatureSpace.infer(frame[["income", "debt"]])
    with pytest.raises(ceopt.CeoptError, match="column 'job' is not in the space"):
        ceopt.explain(model, frame[["income", "debt"]].iloc[0], space, target="yes")


def test_every_number_goes_left_where_only_missing_cells_go_right():
    """Such a split has the largest float as its threshold; float32 makes some numbers below that infinite."""
    greatest = np.finfo(np.float64).max
    for width in ("float32", "float64"):
        assert Column("a").largest_left([greatest], width).tolist() == [math.inf]
        assert Column("a").goes_left([3.4028235677973366e38], [greatest], width).tolist() == [True]
