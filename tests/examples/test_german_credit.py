"""The case studies of CE-OCL, as german_credit.py and heart_disease.py of examples/papers/ce_ocl run them.

Golden numbers are those of the released notebooks; every rule that a part asks for is checked here in plain numpy.
"""

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import ceopt
from ceopt.solvers.problem import ProblemClass
from ceopt.solvers.registry import SOLVERS

SOLVED_BY = [
    name
    for name, solver in SOLVERS.items()
    if ProblemClass.MIQP in solver.classes and solver.is_installed and solver.is_licensed
]

#: Objectives of the released notebooks, and how near: a unit of slack costs 100,000 in part F, where 1e-8 is 1e-3.
RELEASED = {
    "A": (0.03276461923702208, 3e-8),
    "B": (10000.061604200753, 1e-6),
    "C": (10000.061604200753, 1e-6),
    "D": (10000.061604200788, 1e-6),
    "E": (80006.00089659344, 1e-6),
    "F": (63508.79469210477, 1e-3),
}
HEART_E = 60002.06426384043
#: How many values of each part are published, and their sum: what a clone without the reference can compare.
PUBLISHED = {
    "german": {
        "A": (8, -2001.707235380763),
        "B": (5, 9992.251604200753),
        "C": (12, 8616.791604200753),
        "D": (11, 10135.941604200788),
        "E": (16, 84898.63089659344),
        "F": (11, 66768.26469210477),
    },
    "heart": {
        "A": (1, 0.051319272107715475),
        "B": (4, 9860.763969578797),
        "C": (6, -123.4),
        "D": (6, 23.41),
        "E": (7, 60004.18426384043),
    },
}
#: What the released notebook measures in heart's part E, where the hull decides and not the network.
HEART_E_MEASURES = {
    "categorical_proximity": 0.62,
    "continuous_proximity": -50.19,
    "sparsity": 0.46,
    "categorical_diversity": 0.42,
    "continuous_diversity": 50.25,
    "sparsity_based_diversity": 0.56,
}


@pytest.fixture(scope="module")
def study(papers):
    return importlib.import_module("ce_ocl.study")


def case_of(name, data_dir):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CEOPT_DATA", str(data_dir))
        return getattr(importlib.import_module(f"ce_ocl.{name}"), name)()


@pytest.fixture(scope="module")
def german(study, data_dir):
    return case_of("german", data_dir)


@pytest.fixture(scope="module")
def heart(study, data_dir):
    return case_of("heart", data_dir)


@pytest.fixture(scope="module")
def found(study, german):
    """All parts, once, with the solver that everybody has; two answers of part F are enough for its rules."""
    parts = [replace(part, n=2) if part.letter == "F" else part for part in german.parts]
    return {part.letter: study.run(german, part, solver="highs") for part in parts}


# ---- plain numpy -----------------------------------------------------------------------------------------------------
def encoded(case, rows):
    """Numbers divided by their range in the training part, then one 0/1 column a level: all that costs count."""
    scale = case.table.scale
    numbers = [np.asarray(rows[name], dtype=float) / scale[name] for name in case.table.numbers]
    dummies = [np.asarray(rows[name]) == level for name, levels in case.table.levels.items() for level in levels]
    return np.stack([*numbers, *(np.asarray(column, dtype=float) for column in dummies)], axis=1)


def frame(result):
    return pd.concat([answer.frame for answer in result], ignore_index=True)


def score(case, rows):
    """The line of the support vector machine; min-max scaling also takes the least value off."""
    train = case.table.data.loc[case.table.parts[0], list(case.table.numbers)].min().to_numpy(dtype=float)
    x = encoded(case, rows)
    x[:, : len(train)] -= train / np.array(list(case.table.scale.values()))
    return x @ case.model[-1].coef_[0] + case.model[-1].intercept_[0]


def from_hull(case, rows):
    """The l1 distance of each row from the hull of the favourable rows, by a linear program of scipy."""
    corners, found = np.unique(encoded(case, case.table.data[case.table.target == 1]), axis=0), []
    k, d = corners.shape
    for x in encoded(case, rows):
        equal = np.block([[corners.T, np.eye(d), -np.eye(d)], [np.ones((1, k)), np.zeros((1, 2 * d))]])
        cost = np.concatenate([np.zeros(k), np.ones(2 * d)])
        found.append(linprog(cost, A_eq=equal, b_eq=[*x, 1.0]).fun)
    return np.array(found)


def is_actionable(case, rows):
    now, order = case.person.iloc[0], case.table.levels["employment_duration"]
    kept = [rows[name] == now[name] for name in ("foreign_worker", "personal_status_sex", "purpose")]
    kept += [rows[name] >= now[name] for name in ("age", "present_residence")]
    kept += [rows[name] >= 0 for name in ("duration", "amount", "installment_rate", "number_credits", "people_liable")]
    kept += [rows[name] == rows[name].round() for name in ("number_credits", "people_liable", "present_residence")]
    kept += [[order.index(level) >= order.index(now["employment_duration"]) for level in rows["employment_duration"]]]
    return np.all(kept, axis=0)


def off_the_equation(case, found):
    """By how much each answer's duration is off what its amount says, by the fitted network itself."""
    network = next(rule for rule in found.rules if rule.name == "causality").equations["duration"]
    rows = frame(found.result)
    follows = network.predict(rows[["amount"]]) - network.predict(case.person[["amount"]])
    return (rows["duration"] - case.person["duration"].iloc[0]).to_numpy() - follows


# ---- German credit ---------------------------------------------------------------------------------------------------
def test_the_preparation_is_that_of_the_notebooks(german):
    assert german.table.auc(german.model) == pytest.approx((0.8246354, 0.8285714), abs=1e-7)
    assert german.table.refused(german.model)[2] == german.row == 775
    assert score(german, german.person)[0] == pytest.approx(-0.1340203, abs=1e-7)
    assert german.model.decision_function(german.person)[0] == pytest.approx(score(german, german.person)[0], abs=1e-12)


@pytest.mark.parametrize("name", ["german", "heart"])
def test_the_hull_is_of_all_rows_whose_label_is_1(request, name):
    case = request.getfixturevalue(name)
    rows = case.table.data[case.table.target == 1]
    hulls = [rule for part in case.parts for rule in (*part.rules, *part.instead) if rule.name == "manifold"]

    assert len(rows) == {"german": 700, "heart": 120}[name]
    assert len(hulls) == {"german": 3, "heart": 1}[name]
    assert all(hull.data.equals(rows) and hull.scale == case.table.scale for hull in hulls)
    assert [hull.penalty for hull in hulls] == [None, None, 100_000][: len(hulls)]


def test_what_each_part_of_german_asks_for(german):
    parts = {part.letter: part for part in german.parts}
    names = {letter: [rule.name for rule in part.rules] for letter, part in parts.items()}
    home, scale = german.person.iloc[0], german.table.scale
    fixed = {"foreign_worker", "personal_status_sex", "purpose"}

    assert names == {
        **{letter: [] for letter in "ABC"},
        "D": ["employment"],
        "E": ["employment", "manifold"],
        "F": ["employment", "causality", "manifold"],
    }
    assert [rule.name for rule in parts["F"].instead] == names["F"]
    assert {letter: part.n for letter, part in parts.items()} == {"A": 1, "B": 1, "C": 3, "D": 3, "E": 3, "F": 3}
    for letter, part in parts.items():
        can = letter in "DEF"
        assert {name for name in part.space.names if not part.space[name].mutable} == (fixed if can else set())
        growing = {name for name in part.space.names if part.space[name].direction == "increasing"}
        assert growing == ({"age", "present_residence"} if can else set())
        for name in ("duration", "amount", "installment_rate", "age"):
            bounds = part.space[name].lower, part.space[name].upper
            far = np.inf if letter == "A" else 2 * scale[name]
            assert bounds == (0.0 if can and name != "age" else home[name] - far, home[name] + far)
    (job,) = parts["D"].rules
    order = german.table.levels["employment_duration"]
    assert order == ["unemployed", "below_1y", "1_to_4y", "4_to_7y", "7y_or_more"]
    assert job.column == "employment_duration"
    assert {now: list(then) for now, then in job.transitions.items()} == {now: order[k:] for k, now in enumerate(order)}


def test_what_each_part_of_heart_asks_for(heart):
    home, scale = heart.person.iloc[0], heart.table.scale

    assert heart.model[-1].hidden_layer_sizes == (50,)
    for part in heart.parts:
        can = part.letter in "DE"
        fixed = {name for name in part.space.names if not part.space[name].mutable}
        assert fixed == ({"age", "sex"} if can else set())
        assert [rule.name for rule in part.rules] == (["manifold"] if part.letter == "E" else [])
        for name in heart.table.numbers:
            far = 2 * scale[name]
            assert (part.space[name].lower, part.space[name].upper) == (home[name] - far, home[name] + far)


def test_the_network_of_part_f_is_fitted_on_the_training_part(german):
    rules = german.parts[-1].rules
    network = next(rule for rule in rules if rule.name == "causality").equations["duration"]
    data, target = german.table.data, german.table.target
    train, _ = train_test_split(data, test_size=0.2, stratify=target, random_state=0)
    again = TransformedTargetRegressor(
        make_pipeline(MinMaxScaler(), MLPRegressor(hidden_layer_sizes=(100,), max_iter=500, random_state=0)),
        transformer=StandardScaler(),
    ).fit(train[["amount"]], train["duration"].astype(float))

    assert len(train) == 800
    assert network.regressor_[-1].hidden_layer_sizes == (100,)
    assert network.predict(data[["amount"]]) == pytest.approx(again.predict(data[["amount"]]), rel=1e-9)


@pytest.mark.long
def test_the_paper_prints_part_a_rounded_to_four_decimals_of_the_scaled_unit(german, found):
    (answer,) = found["A"].result
    low = german.table.data.loc[german.table.parts[0]].min(numeric_only=True)
    for name, printed in german.published["parts"]["A"]["printed"]["a"].items():
        width = german.table.scale[name]
        assert round(round((answer.values[name] - low[name]) / width, 4) * width + low[name], 2) == printed


@pytest.mark.long(every=6)
@pytest.mark.parametrize("letter", RELEASED)
def test_objectives_are_the_released_ones_proved_on_the_scale_of_the_square(found, letter):
    expected, near = RELEASED[letter]
    part = found[letter]
    assert part.objective == pytest.approx(expected, abs=near)
    assert part.objective - part.bound <= max(1e-6 * (part.objective % 10_000), 1e-9)
    assert part.result.status == "optimal", part.result.reason


@pytest.mark.parametrize("letter", RELEASED)
def test_every_answer_is_valid_in_numpy_and_hardly_farther_than_the_program(german, found, letter):
    result = found[letter].result
    assert len(result) == {"A": 1, "B": 1, "F": 2}.get(letter, 3)
    assert (score(german, frame(result)) > 0.0).all()
    assert found[letter].metrics["validity"] == 1.0
    expected, near = RELEASED[letter]
    # near the released square, whose root is the distance
    assert result[0].cost - 10_000 * (expected // 10_000) <= (expected % 10_000) * (1 + 1e-4) ** 2 + near
    assert all(answer.verified and answer.slack > 0.0 for answer in result)
    assert [answer.cost for answer in result] == sorted(answer.cost for answer in result)


@pytest.mark.parametrize("letter", RELEASED)
def test_costs_are_squares_of_encoded_columns_and_ten_thousand_each(study, german, found, letter):
    rows = frame(found[letter].result)
    moves = encoded(german, rows) - encoded(german, german.person)
    cost = (moves**2).sum(axis=1) + (0 if letter == "A" else 10_000) * (moves != 0).sum(axis=1)
    if letter == "F":
        cost += 100_000 * from_hull(german, rows)
    assert [answer.cost for answer in found[letter].result] == pytest.approx(cost, rel=1e-9)
    both = [study.squares(german, answer) for answer in found[letter].result]
    categories = (rows[list(german.table.levels)] != german.person[list(german.table.levels)].iloc[0]).sum(axis=1)
    assert [twice for _, twice in both] == pytest.approx((moves**2).sum(axis=1), rel=1e-9)
    assert [twice - once for once, twice in both] == pytest.approx(categories.tolist(), abs=1e-9)


@pytest.mark.parametrize("letter", "CDEF")
def test_answers_are_half_a_range_or_a_category_apart(german, found, letter):
    rows = frame(found[letter].result)
    x, numbers = encoded(german, rows), len(german.table.numbers)
    for i, j in zip(*np.triu_indices(len(rows), 1), strict=True):
        apart = np.abs(x[i] - x[j])
        assert apart[:numbers].sum() + apart[numbers:].sum() / 2 >= 0.5 - 1e-6


@pytest.mark.parametrize("letter", "DEF")
def test_actionability_is_kept_from_part_d_on(german, found, letter):
    assert is_actionable(german, frame(found[letter].result)).all()


def test_only_what_has_no_rule_may_be_negative(german, found):
    assert (frame(found["A"].result)["amount"] < 0).all()
    assert not is_actionable(german, frame(found["C"].result)).all()


def test_part_e_is_in_the_hull_and_part_d_is_not(german, found):
    assert from_hull(german, frame(found["E"].result)) == pytest.approx(0.0, abs=1e-6)
    assert from_hull(german, frame(found["D"].result)).min() > 1.0


def test_part_f_is_causal_and_only_there_the_hull_has_to_grow(german, found):
    part = found["F"]
    assert "Proved: nothing in reach" in part.emptied
    assert all(word in part.emptied for word in ("causality", "manifold"))
    assert off_the_equation(german, part) == pytest.approx(0.0, abs=1e-4)
    assert from_hull(german, frame(part.result))[0] == pytest.approx(0.0350279, abs=1e-6)


@pytest.mark.long
def test_a_smaller_amount_has_its_consequence_in_part_f(study, german):
    """The cheapest answers leave the amount alone; where it may not stay, the duration follows in the same table."""
    (part,) = (part for part in german.parts if part.letter == "F")
    less = ceopt.Linear({"amount": 1.0}, "<=", 1_000.0, name="less")
    asked = study.run(german, replace(part, n=1, rules=(*part.instead, less), instead=()), solver="highs", state=False)
    (answer,) = asked.result
    assert answer.values["amount"] <= 1_000.0 + 1e-6
    assert abs(answer.values["duration"] - 24.0) > 0.1
    assert answer.why("duration") == "consequence"
    page = importlib.import_module("ce_ocl.report").page(german, [asked])
    assert "; † is a consequence;" in page
    assert f"| duration | 24 | {answer.values['duration']:.2f} † |" in page
    assert off_the_equation(german, asked) == pytest.approx(0.0, abs=1e-4)


@pytest.mark.long(every=5)
@pytest.mark.parametrize("letter", RELEASED)
@pytest.mark.parametrize("solver", [name for name in SOLVED_BY if name != "highs"])
def test_other_solvers_come_to_the_same(study, german, found, solver, letter):
    part = next(part for part in german.parts if part.letter == letter)
    if letter == "F" and solver == "gurobi":
        pytest.skip("Gurobi's size-limited licence takes 200 variables beside a square, part F has 974.")
    other = study.run(german, replace(part, n=1), solver=solver)
    expected, near = RELEASED[letter]
    assert other.objective == pytest.approx(expected, abs=near)
    assert other.result.status == "optimal", other.result.reason
    assert other.result[0].cost == pytest.approx(found[letter].result[0].cost, rel=1e-6 if letter == "A" else 1e-10)


# ---- heart -----------------------------------------------------------------------------------------------------------
@pytest.mark.long
def test_heart_is_valid_in_all_parts_and_keeps_age_and_sex_where_asked(study, heart):
    assert heart.table.refused(heart.model)[3] == heart.row == 263
    for part in heart.parts:
        found = study.run(heart, part, solver="highs", state=part.letter == "E")
        rows = frame(found.result)
        assert found.result.status == "optimal", found.result.reason
        assert len(rows) == part.n
        assert (heart.model.predict(rows) == 1).all()
        if part.letter in "DE":
            assert (rows[["age", "sex"]] == heart.person[["age", "sex"]].iloc[0]).all(axis=None)
        if part.letter == "E":
            assert from_hull(heart, rows) == pytest.approx(0.0, abs=1e-6)
            assert found.objective == pytest.approx(HEART_E, abs=1e-6)
            measured = {name: found.metrics[name] for name in HEART_E_MEASURES}
            assert measured == pytest.approx(HEART_E_MEASURES, abs=0.011)


# ---- what is printed and drawn ---------------------------------------------------------------------------------------
def test_a_part_is_printed_with_the_papers_values_beside_ours(study, german, found):
    report = importlib.import_module("ce_ocl.report")
    text = report.part_text(german, found["E"])
    assert "| duration | 24 | 22 |" in text
    assert "| published | - | 1.00 | -16.88 | 0.95 |" in report.part_text(german, found["B"])
    assert "| squared l2, a category twice |  | 6.000897 |" in text
    assert "| squared l2, a category once |  | 3.000897 |" in text
    assert "In conflict: causality" in report.part_text(german, found["F"])
    assert "†" not in report.page(german, list(found.values()))


def test_heart_says_that_its_class_1_is_the_disease(heart):
    page = importlib.import_module("ce_ocl.report").page(heart, [])
    assert "Class 1, which the released notebooks ask for, is the presence of heart disease" in page


def test_published_values_are_those_of_the_tables(papers, study):
    values = json.loads((papers / "ce_ocl" / "published.json").read_text(encoding="utf-8"))
    assert {letter: part["objective"] for letter, part in values["german"]["parts"].items()} == {
        letter: value for letter, (value, _) in RELEASED.items()
    }
    assert values["heart"]["parts"]["E"]["objective"] == HEART_E
    assert values["german"]["auc"] == [0.8246, 0.8286]
    assert "1018.71" in values["german"]["note"]
    for name, parts in PUBLISHED.items():
        for letter, (many, total) in parts.items():
            own = [value for (case, part, *_), value in told(values).items() if (case, part) == (name, letter)]
            assert (len(own), sum(own)) == (many, pytest.approx(total, rel=1e-12)), (name, letter)


def told(values):
    """Each value of the file by case, part, answer and name; an answer of "" is the part's own."""
    found = {}
    for case in ("german", "heart"):
        for letter, part in values[case]["parts"].items():
            found |= {(case, letter, "", name): value for name, value in part.items() if name != "printed"}
            for answer, row in part.get("printed", {}).items():
                found |= {(case, letter, answer, name): value for name, value in row.items()}
    return found


def test_published_values_are_those_of_the_reference(papers, study):
    """Both ways and value by value; left out are the factual and the artefact of heart's part A."""
    path = papers.parents[2] / "shared" / "reference" / "published.json"
    if not path.is_file():
        pytest.skip("The reference is not beside the repository.")
    names = {"F1": "duration", "F2": "amount", "F3": "installment_rate", "F4": "age"}
    names["sparsity_diversity"] = "sparsity_based_diversity"
    expected = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        if row["paper"] != "004" or row["dataset"] not in {"german", "heart"}:
            continue
        where = row["method"].removeprefix("CE-OCL part ")
        if where == "factual" or "artefact" in row.get("note", ""):
            continue
        answer = where[2:3]
        expected[row["dataset"], where[0], answer, names.get(row["metric"], row["metric"])] = row["value"]

    assert len(expected) > 80
    assert told(study.published()) == expected


# ---- the command -----------------------------------------------------------------------------------------------------
@pytest.fixture
def command(study, monkeypatch):
    """Run german_credit.py in this process, with made-up loans."""
    report = importlib.import_module("ce_ocl.report")

    def called(*options):
        monkeypatch.setattr(sys, "argv", ["german_credit.py", "--fast", *map(str, options)])
        report.command("german_credit", "German credit", lambda: None, network=False)

    return called


@pytest.mark.parametrize("solver", ["nonsense", "clarabel"])
def test_a_solver_that_takes_no_square_with_switches_is_refused(command, solver, capsys):
    with pytest.raises(SystemExit):
        command("--solver", solver)
    assert f"invalid choice: '{solver}'" in capsys.readouterr().err


def test_a_file_in_the_place_of_the_folder_is_refused_before_work_starts(command, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ce_ocl.report.run", lambda *_, **__: pytest.fail("Something was solved."))
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit):
        command("--out", tmp_path / "file")
    assert "--out needs a folder, but" in capsys.readouterr().err


@pytest.mark.long
def test_a_part_that_the_licence_does_not_take_leaves_the_others(study, command, tmp_path, capsys, monkeypatch):
    def refusing(case, part, **words):
        if part.letter == "B":
            raise ceopt.CeoptError("solve", "a licence", "the model is too large", "Use solver 'highs'.")
        return study.run(case, replace(part, n=1), **words)

    monkeypatch.setattr("ce_ocl.report.run", refusing)
    command("--out", tmp_path)
    said = "Part B: not solved: solve needs a licence, but the model is too large. Use solver 'highs'."
    page = (tmp_path / "german_credit.md").read_text(encoding="utf-8")

    assert said in capsys.readouterr().out
    assert said in page
    assert page.count("## Part") == 6
    assert page.count("| ceopt | 1.00 |") == 5
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / "german_credit.png").stat().st_size > 10_000


def test_a_run_in_which_no_part_is_solved_fails(command, tmp_path, capsys, monkeypatch):
    def refusing(*_, **__):
        raise ceopt.CeoptError("No solver.")

    monkeypatch.setattr("ce_ocl.report.run", refusing)
    with pytest.raises(SystemExit, match="No part was solved"):
        command("--out", tmp_path)
    assert capsys.readouterr().out.count("not solved: No solver.") == 6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("script", ["german_credit", "heart_disease"])
def test_fast_needs_nothing_and_the_whole_says_what_it_needs(papers, tmp_path, monkeypatch, script):
    monkeypatch.delenv("CEOPT_DATA", raising=False)
    run = [sys.executable, str(papers / "ce_ocl" / f"{script}.py")]
    refused = subprocess.run(run, check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr.startswith("Set CEOPT_DATA to the folder")
    done = subprocess.run([*run, "--fast", "--out", str(tmp_path)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"{script}.md").read_text(encoding="utf-8")
    assert page.count("| ceopt | 1.00 |") == page.count("## Part") == (6 if script == "german_credit" else 5)
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / f"{script}.png").stat().st_size > 10_000
