"""What ``infer`` points out: one warning a column, with the line to write, which then is silent."""

from __future__ import annotations

import inspect
import json
import warnings

import numpy as np
import pandas as pd
import pytest

import ceopt
from ceopt.formulations.space import FeatureSpace, SpaceWarning
from ceopt.formulations.space.infer import infer_features
from ceopt.formulations.space.pitfalls import pitfalls, words_of

_rng = np.random.default_rng(0)
N = 60
NUMBERS = _rng.integers(0, 9, N)
TEXTS = _rng.choice(["a", "b", "c"], N)


def found(frame: pd.DataFrame, **options) -> list[tuple[str, str]]:
    """Columns and what they look like, of what infer says."""
    kinds = {name: part for name, part in options.items() if name != "settled"}
    features = infer_features(frame, **kinds)
    return [(p.column, p.kind) for p in pitfalls(frame, features, settled=options.get("settled", ()))]


def of(values, name="x", **options) -> list[str]:
    return [kind for _, kind in found(pd.DataFrame({name: values}), **options)]


def says(frame: pd.DataFrame, **options) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FeatureSpace.infer(frame, **options)
    assert all(one.category is SpaceWarning for one in caught)
    return [str(one.message) for one in caught]


# ---- names -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name",
    ["sex", "Sex", "applicant_race", "raceEthnicity", "Race/Ethnicity", "native-country", "marital.status", "religion",
     "nationality", "has disability", "foreign_worker", "national_origin", "gender2", "GENDER", "familienstand"],
)  # fmt: skip
def test_names_that_look_protected(name):
    assert of(TEXTS, name) == ["protected"]
    (said,) = says(pd.DataFrame({name: TEXTS}))
    assert said == (
        f"Column {name!r} looks protected, and answers may change it. Write space = space.fix({name!r}), "
        f"or moves={{{name!r}: 'fixed'}} in infer ('any' leaves it free)."
    )


@pytest.mark.parametrize(
    "name",
    ["age", "Age", "customer_age", "ageInYears", "years_employed", "yearsEmployed", "tenure", "seniority", "experience",
     "months at address", "employment_length", "Years of membership"],
)  # fmt: skip
def test_names_that_only_grow_with_time(name):
    assert of(NUMBERS, name) == ["grows"]
    (said,) = says(pd.DataFrame({name: NUMBERS}))
    assert f"Write space = space.update({name!r}, direction='up'), or moves={{{name!r}: 'up'}} in infer" in said
    assert of(TEXTS, name) == ["grows"]
    (said,) = says(pd.DataFrame({name: TEXTS}))
    assert f"space.fix({name!r})" in said  # categories have no direction


@pytest.mark.parametrize(
    "name",
    ["racetrack", "homesexpense", "page", "average", "stage", "essex", "agent", "sexpenses", "terrace", "engender",
     "duration", "years", "customer_experience", "open_loans", "agenda", "grace_period", "income", "birthrate"],
)  # fmt: skip
def test_names_are_read_word_by_word(name):
    assert of(NUMBERS, name) == []
    assert says(pd.DataFrame({name: NUMBERS})) == []


def test_words_of_names():
    assert words_of("raceEthnicity") == ("race", "ethnicity")
    assert words_of("Nationalität_2") == ("nationalität",)
    assert words_of("customerID") == ("customer", "id")
    assert words_of("AGE") == ("age",)
    assert words_of("__") == ()


# ---- values ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("id", np.arange(N), "identifier"),
        ("customerID", _rng.permutation(10**6)[:N], "identifier"),
        ("Loan_ID", [f"LP{k:05}" for k in range(N)], "identifier"),
        ("uuid", [f"{k:032x}" for k in _rng.permutation(N)], "identifier"),
        ("loanid", np.arange(N) * 7, "identifier"),
        ("account number", np.arange(N) * 1001, "identifier"),
        ("id", np.where(np.arange(N) == 0, np.nan, np.arange(N)), "identifier"),
        ("visit_id", np.arange(N) // 2 * 2 + (np.arange(N) < N - 4) * (np.arange(N) % 2), "identifier"),
        ("x", np.arange(1000, 1000 + N), "identifier"),
        ("x", [f"note {k}" for k in range(N)], "identifier"),
        ("x", [str(k) for k in range(N)], "text"),
        ("x", [f"{k}.5" for k in NUMBERS], "text"),
        ("x", [f" {k} " for k in NUMBERS], "text"),
        ("x", [f"-{k}e3" for k in NUMBERS], "text"),
        ("x", [f"{k + 1},{k}00" for k in NUMBERS], "text"),
        ("x", [f"{k},5" for k in NUMBERS], "text"),
        ("x", [None, *map(str, NUMBERS[1:])], "text"),
        ("x", ["?", *map(str, _rng.permutation(N)[1:])], "text"),
        ("x", pd.Series(NUMBERS.tolist(), dtype=object), "text"),
        ("zip", _rng.integers(10000, 99999, N), "code"),
        ("Postcode", _rng.integers(10000, 99999, N), "code"),
        ("occupation_code", NUMBERS, "code"),
        ("jobcode", NUMBERS.astype(float), "code"),
        ("region", NUMBERS, "code"),
        ("branch_id", NUMBERS, "code"),
        ("x", np.full(N, 3), "constant"),
        ("x", ["only"] * N, "constant"),
        ("age", np.full(N, 30), "constant"),
        ("x", [None, *["only"] * (N - 1)], "constant"),
    ],
)
def test_what_values_look_like(name, values, kind):
    assert of(values, name) == [kind]
    (said,) = says(pd.DataFrame({name: values}))
    assert said.startswith(f"Column {name!r} ")
    assert "Write " in said
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", NUMBERS),
        ("x", _rng.permutation(10**6)[:N]),  # amounts differ by chance
        ("x", np.arange(15)),  # few rows prove little
        ("x", _rng.random(N)),
        ("x", _rng.random(N).round(2)),
        ("x", TEXTS),
        ("x", [f"note {k}" for k in range(15)]),
        ("x", ["0", "1"] * 10),
        ("x", ["1", "2", "3", "4", "5+"] * 4),
        ("x", [f"0{k}" for k in NUMBERS]),  # digits that are no number
        ("zip", [str(k) for k in NUMBERS]),
        ("x", pd.Categorical([str(k) for k in NUMBERS])),
        ("x", pd.Categorical([f"note {k}" for k in range(N)])),
        ("type", np.arange(N) % 2),
        ("region", np.arange(N) + 0.5),
        ("region", _rng.permutation(10**6)[:N]),  # not few
        ("code", [True, False] * 10),
        ("id", [1]),
        ("x", [3, 3]),
    ],
)
def test_what_looks_like_nothing_in_particular(name, values):
    assert of(values, name) == []


def test_what_a_text_that_holds_numbers_is_to_become():
    frame = pd.DataFrame({"x": [f"{k + 1},{k}00" for k in NUMBERS]})
    (said,) = says(frame)
    line = said.partition("Write ")[2].partition(" before infer")[0]
    exec(line, {"frame": frame, "pandas": pd})  # noqa: S102 - the line that users are told to write
    assert frame["x"].tolist() == [1000 * (k + 1) + 100 * k for k in NUMBERS]
    frame = pd.DataFrame({"x": [f"{k},5" for k in NUMBERS]})
    line = says(frame)[0].partition("Write ")[2].partition(" before infer")[0]
    exec(line, {"frame": frame, "pandas": pd})  # noqa: S102 - the same
    assert frame["x"].tolist() == [k + 0.5 for k in NUMBERS]
    (said,) = says(pd.DataFrame({"x": ["?", *map(str, range(N))]}))
    assert "holds numbers as text beside '?'" in said
    assert "errors='coerce'" in said


# ---- what is decided is not asked about ------------------------------------------------------------------------------
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "sex": _rng.choice(["f", "m"], N),
        "age": _rng.integers(18, 80, N),
        "zip": _rng.integers(10000, 99999, N),
        "income": [str(k) for k in NUMBERS],
        "still": np.ones(N),
        "debt": _rng.random(N),
    }
)


def test_one_warning_a_column_in_their_order_at_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        ceopt.FeatureSpace.infer(FRAME)
    assert [(one.filename, one.lineno) for one in caught] == [(__file__, line)] * 6
    names = [str(one.message).split("'")[1] for one in caught]
    assert names == ["id", "sex", "age", "zip", "income", "still"]


def test_the_lines_that_it_says_to_write_silence_it():
    assert found(FRAME) != []
    moves = {"sex": "fixed", "age": "up", "still": "any"}
    assert says(FRAME, moves=moves, integer=["id"], categorical=["zip", "income"]) == []
    kept = FRAME.drop(columns=["id", "still"])
    kept["income"] = pd.to_numeric(kept["income"])
    assert says(kept, moves={"sex": "any", "age": "any"}, categorical="zip") == []


def test_a_kind_settles_the_values_and_a_move_the_moves():
    assert found(FRAME[["sex", "age"]], categorical=["sex"], integer=["age"]) == [
        ("sex", "protected"),
        ("age", "grows"),
    ]
    assert found(FRAME[["zip", "id"]], moves={"zip": "up", "id": "any"}, settled=["zip", "id"]) == [
        ("zip", "code"),
        ("id", "identifier"),
    ]
    assert found(FRAME[["zip", "id"]], moves={"zip": "fixed", "id": "fixed"}) == []


def test_it_is_silenced_by_its_category():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ceopt.SpaceWarning)
        FeatureSpace.infer(FRAME)
    assert issubclass(ceopt.SpaceWarning, UserWarning)


def test_ceopt_itself_is_not_warned():
    """A default space, the built-in data, and what learns from a frame: nobody has asked infer there."""
    from ceopt.surrogates import BoundarySampler

    with warnings.catch_warnings():
        warnings.simplefilter("error", SpaceWarning)
        book = ceopt.datasets.loans(n=60)
        BoundarySampler(n_samples=20, n_line=4).sample(
            lambda rows: rows["age"] > 40, {"age": 20, "sex": "female"}, book.data[["age", "sex"]], target=True
        )
        ceopt.Causal.learn({"income": ["age"]}, book.data)
        ceopt.Percentile("max", data=book.data).table(book.data.iloc[0], {"sex": ["male"]})


# ---- values that stand for something else ----------------------------------------------------------------------------
_COUNTS = _rng.poisson(3, 400)
_AMOUNTS = _rng.integers(20, 90, 400)


def _with(values: np.ndarray, *codes: tuple[float, int]) -> np.ndarray:
    """Some values with codes in the place of the first rows: each code so many times."""
    found = values.copy()
    place = 0
    for code, count in codes:
        found[place : place + count] = code
        place += count
    return found


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (_with(_COUNTS, (-9, 5)), "codes=[-9]"),
        (_with(_COUNTS, (-9, 40), (-8, 9), (-7, 30)), "codes=[-9, -8, -7]"),
        (_with(_AMOUNTS, (-9, 4)), "codes=[-9]"),
        (_with(_AMOUNTS, (-99, 1)), "codes=[-99]"),
        (_with(_AMOUNTS.astype(float) / 10, (-999, 8)), "codes=[-999]"),
        (_with(_COUNTS, (-1, 320)), "codes=[-1]"),
        (_with(_COUNTS, (98, 6)), "codes=[98]"),
        (_with(_COUNTS, (96, 2), (98, 6)), "codes=[96, 98]"),
        (_with(_COUNTS, (999, 390)), "codes=[999]"),
        (_with(_rng.integers(1, 6, 400), (9, 8)), "codes=[9]"),
        (_with(_AMOUNTS * 100, (99999, 7)), "codes=[99999]"),
        (_with(_AMOUNTS, (-9, 12), (999, 12)), "codes=[-9, 999]"),
        (_with(_AMOUNTS, (0, 25)), "codes=[0]"),
    ],
)
def test_values_that_look_like_codes_have_the_line_that_names_them(values, line):
    frame = pd.DataFrame({"x": values})
    assert of(values) == ["codes"]
    (said,) = says(frame)
    assert f"Write space = space.update('x', {line}, data=frame), or " in said
    assert said.startswith("Column 'x' holds ")
    space = FeatureSpace(infer_features(frame))
    update = said.partition("Write space = ")[2].partition(", or ")[0]
    bounded = eval(update, {"space": space, "frame": frame})["x"]  # noqa: S307 - the line that users are told to write
    assert bounded.codes
    amounts = values[~np.isin(values, bounded.codes)]
    assert (bounded.lower, bounded.upper) == (amounts.min(), amounts.max())
    assert (bounded.lower_inferred, bounded.upper_inferred) == (True, True)
    assert bounded.mad == np.median(np.abs(amounts - np.median(amounts)))
    assert (bounded.std, bounded.range) == (pytest.approx(np.std(amounts)), np.ptp(amounts))


@pytest.mark.parametrize("named", [{"integer": ["x"]}, {"moves": {"x": "fixed"}}])
def test_a_column_that_is_decided_is_not_asked_about_its_codes(named):
    assert says(pd.DataFrame({"x": _with(_COUNTS, (-9, 5))}), **named) == []


def _ordinary(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Columns as they come, with ends that are thin, heavy, cut off, negative, in steps or full of zeros."""
    return {
        "normal": np.rint(rng.normal(rng.uniform(-20, 50), rng.uniform(1, 30), n)),
        "count": rng.poisson(rng.uniform(0.2, 20), n),
        "many": rng.negative_binomial(1, 0.05, n),
        "heavy": np.rint(rng.pareto(1.2, n) * 10),
        "money": np.rint(rng.lognormal(9, 0.6, n) / 100) * 100,
        "zeros": np.where(rng.random(n) < 0.4, 0, rng.integers(500, 20_000, n)),
        "change": np.rint(rng.laplace(0, 3, n)),
        "measured": rng.standard_t(2, n).round(1),
        "percent": np.clip(np.rint(rng.normal(60, 25, n)), 0, 100),
        "term": rng.choice([6, 12, 24, 36, 60, 120, 360], n),
        "likert": rng.choice([-2, -1, 0, 1, 2], n),
        "rating": rng.integers(1, 6, n),
        "years": rng.integers(1990, 2024, n),
        "points": np.clip(np.rint(rng.normal(690, 60, n)), 300, 850),
    }


@pytest.mark.long(every=3)
@pytest.mark.parametrize("n", [30, 200, 3000])
@pytest.mark.parametrize("seed", range(6))
def test_ordinary_columns_have_no_codes(n, seed):
    """8,400 such columns were tried: one of them was taken for codes."""
    frame = pd.DataFrame(_ordinary(np.random.default_rng([seed, n]), n))
    assert [(name, kind) for name, kind in found(frame) if kind == "codes"] == []


def test_real_columns_of_codes_are_those_that_their_schema_names(data_dir):
    schema = json.loads((data_dir / "schema.json").read_text(encoding="utf-8"))["datasets"]
    for name in ("heloc", "gmsc_raw"):
        told = [column for column in schema[name]["features"] if "role" not in column]
        frame = pd.read_csv(data_dir / schema[name]["file"])[[column["name"] for column in told]]
        assert {column for column, kind in found(frame) if kind == "codes"} == {
            column["name"] for column in told if "codes" in column
        }


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("german", set()),
        ("sba", set()),
        ("heart", set()),
        ("student", {"G2"}),
        ("diabetes", {"Glucose", "BloodPressure", "BMI"}),
        pytest.param("adult", {"capital_gain"}, marks=pytest.mark.long),
    ],
)
def test_other_real_columns_are_pointed_out_where_they_are_no_amounts(data_dir, name, codes):
    schema = json.loads((data_dir / "schema.json").read_text(encoding="utf-8"))["datasets"]
    names = [column["name"] for column in schema[name]["features"] if "role" not in column]
    told = found(pd.read_csv(data_dir / schema[name]["file"])[names])
    assert {column for column, kind in told if kind == "codes"} == codes
    assert {column for column, kind in told if kind == "same"} == ({"relationship"} if name == "adult" else set())


def test_the_built_in_loans_have_nothing_of_the_kind():
    book = ceopt.datasets.loans(n=500)
    assert {kind for _, kind in found(book.data)} == {"protected", "grows"}
