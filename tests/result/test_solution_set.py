"""A solution set: the table people read, the frames, and JSON that loses nothing."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceopt.base.results import Status
from ceopt.result.counterfactual import Counterfactual, shown
from ceopt.result.solution_set import SolutionSet
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnreadableFileError

FACTUAL = pd.DataFrame(
    {
        "income": [26_800.0],
        "age": np.array([38], dtype=np.int32),
        "loans": pd.array([2], dtype="Int64"),
        "owner": [True],
        "flag": pd.array([False], dtype="boolean"),
        "job": ["<cook>"],
        "size": pd.Categorical(["M"], ["S", "M", "L"], ordered=True),
        "code": pd.Categorical([2], [3, 1, 2]),
        "mixed": pd.Series([1.5], dtype=object),
    },
    index=["ann"],
)


def answer(**changes: Any) -> Counterfactual:
    values = FACTUAL.assign(income=29_741.445003, loans=pd.array([1], dtype="Int64"))
    fields: dict[str, Any] = {
        "values": values,
        "cost": 0.1 + 0.2,
        "prediction": np.str_("good"),
        "score": 0.25,
        "slack": 1e-5,
        "changed": ("income", "loans"),
        "verified": True,
        "rank": 1,
        "bound": 0.3,
        "gap": 0.0,
        "printed": {"income": (29_742.0, 29_741.5)},
    }
    return Counterfactual(**(fields | changes))


def solved(**changes: Any) -> SolutionSet:
    second = answer(rank=2, score={0: 0.25, 1: 0.75}, bound=-math.inf, gap=None, actions=pd.Series({"income": 1.5}))
    fields: dict[str, Any] = {
        "status": "optimal",
        "counterfactuals": (answer(), second),
        "factual": FACTUAL,
        "target": "good",
        "timings": {"solve": 0.1},
        "options": {"n": 2, "margin": None, "constraints": ["MaxChanges_1: at most 3"]},
        "conflict": (("few", "at most 1", None), ("more", "at least 2", 1.5)),
        "query_id": np.int64(7),
    }
    return SolutionSet(**(fields | changes))


def test_values_keep_each_columns_own_scalar():
    values = answer().values

    assert {name: type(value) for name, value in values.items()} == {
        "income": float, "age": int, "loans": int, "owner": bool, "flag": bool, "job": str, "size": str, "code": int,
        "mixed": float,
    }  # fmt: skip
    assert values["income"] == 29_741.445003
    assert answer().prediction == "good"
    assert type(answer().prediction) is str


def test_to_frame_has_the_dtypes_of_the_factual_and_one_row_per_answer():
    frame = solved().to_frame()

    assert frame.dtypes.to_dict() == FACTUAL.dtypes.to_dict()
    assert frame.index.tolist() == [1, 2]
    assert frame.index.name == "rank"


def test_to_frame_without_answers_is_empty_and_still_typed():
    frame = solved(status="infeasible", counterfactuals=()).to_frame()

    assert len(frame) == 0
    assert frame.dtypes.to_dict() == FACTUAL.dtypes.to_dict()


def test_changes_lists_only_what_moves_from_and_to():
    changes = solved(counterfactuals=(answer(), answer(rank=2))).changes()

    assert changes.index.names == ["rank", "column"]
    assert changes.index.tolist() == [(1, "income"), (1, "loans"), (2, "income"), (2, "loans")]
    assert changes.loc[1].to_dict("list") == {"from": [26_800.0, 2], "to": [29_741.445003, 1]}
    assert list(solved(counterfactuals=(), status="error").changes().columns) == ["from", "to"]


def test_it_is_a_sequence_of_its_answers():
    result = solved()

    assert len(result) == 2
    assert [found.rank for found in result] == [1, 2]
    assert result[-1].rank == 2
    assert result[:1] == (result[0],)
    assert not solved(counterfactuals=(), status="infeasible")


def test_status_is_its_text_and_others_are_refused():
    assert solved().status == "optimal"
    assert f"{Status.ALREADY_FAVOURABLE}" == "already_favourable"
    assert [str(s) for s in Status if s.is_settled] == ["optimal", "feasible", "already_favourable"]
    with pytest.raises(ValueError, match="solved"):
        solved(status="solved")


def test_text_shows_who_what_and_how_much():
    text = repr(solved(counterfactuals=(answer(), answer(rank=2))))

    assert text.splitlines()[0] == "7: optimal, 2 answers, target good"
    assert text.splitlines()[3].split() == ["1", "income", "26,800", "29,741.5", "0.3", "0"]
    assert (
        repr(solved(counterfactuals=(), status="infeasible", reason="Proved.", conflict=()))
        == "7: infeasible, target good. Proved."
    )


def causal(actions: dict[str, object], **changes: Any) -> SolutionSet:
    return solved(counterfactuals=(answer(actions=pd.Series(actions, dtype=object)),), **changes)


def test_changes_say_what_is_done_and_what_follows():
    changes = causal({"income": 29_741.445003}).changes()

    assert list(changes.columns) == ["from", "to", "why"]
    assert changes.loc[1]["why"].to_dict() == {"income": "action", "loans": "consequence"}


def test_a_column_held_where_it_is_is_an_action():
    changes = causal({"age": 38, "income": 29_741.445003}).changes()

    assert changes.loc[1].loc["age"].to_dict() == {"from": 38, "to": 38, "why": "action"}
    assert changes.loc[1].index.tolist() == ["income", "age", "loans"]


@pytest.mark.parametrize(
    ("actions", "income", "loans"),
    [
        ({"income": 29_741.445003}, "action", "consequence"),  # set
        ({"income": 29_741.445003 - 26_800.0}, "action", "consequence"),  # shifted, and nothing follows
        ({"income": 2_000.0, "loans": -1.5}, "action by +2,000", "action by -1.5"),  # shifted, and the rest follows
    ],
)
def test_the_table_says_by_how_much_where_a_part_follows(actions, income, loans):
    result = causal(actions)
    lines = repr(result).splitlines()

    assert lines[1].split() == ["rank", "column", "from", "to", "why", "cost", "gap"]
    assert lines[3].split() == ["1", "income", "26,800", "29,741.5", *income.split(), "0.3", "0"]
    assert lines[4].split() == ["loans", "2", "1", *loans.split()]
    assert f"<td>{loans}</td>" in result._repr_html_()
    assert "why" not in repr(solved(counterfactuals=(answer(),)))


def test_html_escapes_what_people_typed():
    html = solved(counterfactuals=(answer(changed=("job",)),))._repr_html_()

    assert "&lt;cook&gt;" in html
    assert "<cook>" not in html
    assert "<table" not in solved(counterfactuals=(), status="error", conflict=())._repr_html_()


@pytest.mark.parametrize(
    ("value", "away_from", "text"),
    [
        (29_741.445003, 26_800.0, "29,741.5"),
        (29_741.445003, 30_000.0, "29,741.4"),
        (3.5000000000000004, 3.0, "3.50001"),
        (3.4999999999999996, 3.0, "3.5"),
        (3.5000001, 3.0, "3.50001"),
        (-2.3456789, 0.0, "-2.34568"),
        (12_345_678.9, 0.0, "12,345,679"),
        (1e22, 0.0, "1e+22"),
        (0.30000000000000004, None, "0.3"),
        (5.0, 1.0, "5"),
        (True, False, "True"),
        (None, None, "missing"),
        (math.nan, None, "missing"),
        ("M", "S", "M"),
    ],
)
def test_numbers_are_shown_short_and_never_closer_to_the_factual(value, away_from, text):
    assert shown(value, away_from) == text


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_a_shown_step_is_at_least_the_checked_one(value, home):
    text = shown(value, home)

    if "e" not in text and value != home:
        noise = 1e-12 * value
        assert (float(text.replace(",", "")) - value) * (1 if value > home else -1) >= -noise


def test_json_gives_everything_back():
    result = solved()
    text = result.to_json()
    again = SolutionSet.from_json(text)

    assert again.to_json() == text
    assert json.loads(text)["format"] == "ceopt solution set"
    pd.testing.assert_frame_equal(again.to_frame(), result.to_frame(), check_exact=True)
    pd.testing.assert_frame_equal(again.factual, result.factual, check_exact=True)
    assert again[0].cost == 0.1 + 0.2
    assert again[1].score == {0: 0.25, 1: 0.75}
    assert again[1].bound == -math.inf
    assert again[1].actions is not None
    assert again[1].actions.to_dict() == {"income": 1.5}
    assert again.conflict == result.conflict
    assert again.query_id == 7


@pytest.mark.parametrize("label", ["ann", ("x", 3), 2.5, None, True, pd.Timestamp("2024-02-29")])
def test_json_keeps_labels(label):
    again = SolutionSet.from_json(solved(query_id=label).to_json())

    assert again.query_id == label
    assert type(again.query_id) is type(label)


def test_json_keeps_what_a_refused_row_held():
    row = pd.DataFrame(
        {"when": [pd.Timestamp("2024-02-29")], "income": [math.nan], "n": pd.array([None], dtype="Int64")}
    )
    again = SolutionSet.from_json(solved(status="error", counterfactuals=(), factual=row).to_json())

    assert again.factual["when"].iloc[0] == pd.Timestamp("2024-02-29")
    assert math.isnan(again.factual["income"].iloc[0])
    assert again.factual["n"].iloc[0] is pd.NA


@given(st.floats(allow_nan=False))
def test_json_keeps_every_bit_of_a_number(number):
    row = FACTUAL.assign(income=number)
    again = SolutionSet.from_json(solved(factual=row, bound=number).to_json())

    assert again.bound == number
    assert again.factual["income"].iloc[0].tobytes() == np.float64(number).tobytes()


def test_json_is_written_to_and_read_from_a_file(tmp_path):
    path = tmp_path / "answers.json"
    text = solved().to_json(path)

    assert SolutionSet.from_json(path).to_json() == text
    assert SolutionSet.from_json(str(path)).to_json() == text


def test_json_of_another_kind_is_refused(tmp_path):
    missing, text = tmp_path / "none.json", solved().to_json()

    with pytest.raises(UnreadableFileError, match=r"none\.json"):
        SolutionSet.from_json(missing)
    with pytest.raises(UnreadableFileError, match="JSON"):
        SolutionSet.from_json(text[:-20])
    with pytest.raises(InvalidValueError, match='"format"'):
        SolutionSet.from_json("{}")
    with pytest.raises(InvalidValueError, match="damaged"):
        SolutionSet.from_json(text.replace('"factual"', '"fact"'))
    with pytest.raises(InvalidTypeError, match="it got int"):
        SolutionSet.from_json(3)  # type: ignore[arg-type]


def test_a_series_will_do_as_values_and_pickles_keep_all():
    alone = answer(values=pd.Series({"income": 1.5, "job": "cook"}, dtype=object), changed=["income"])
    again = pickle.loads(pickle.dumps(solved(counterfactuals=(alone,))))

    assert alone.frame["income"].dtype == np.float64
    assert again[0].values.to_dict() == {"income": 1.5, "job": "cook"}
    assert again[0].changed == ("income",)
