"""The experiments of COPA: data under both protocols, classifiers, two descents restated, and how rows are judged."""

import importlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ceopt.plans import gelbrich_distance


@pytest.fixture
def example(papers):
    return lambda part: importlib.import_module(f"copa.{part}")


# ---- data ------------------------------------------------------------------------------------------------------------
def test_honest_data_have_no_leak_and_the_right_label_and_order(example, data_dir, monkeypatch):
    monkeypatch.setenv("CEOPT_DATA", str(data_dir))
    load = example("protocol").load
    honest, paper = load("sba", "honest"), load("sba", "paper")

    assert {"ChgOffPrinGr", "Selected"} <= set(paper.columns)
    assert not {"ChgOffPrinGr", "Selected"} & set(honest.columns)
    assert (len(honest.X), len(honest.later_rows), len(paper.X), len(paper.later_rows)) == (1159, 943, 943, 1159)
    assert honest.y.mean() == pytest.approx(1.0 - paper.later_y.mean())  # paid in full, and default
    leak = paper.X[:, paper.columns.index("ChgOffPrinGr")] > 0.0
    assert (leak == (paper.y == 1)).mean() > 0.95


def test_the_correction_changes_ten_rows_of_the_released_columns_and_nearly_all_of_the_honest_ones(
    example, data_dir, monkeypatch
):
    monkeypatch.setenv("CEOPT_DATA", str(data_dir))
    kept = {}
    for protocol in ("paper", "honest"):
        case = example("protocol").load("german", protocol)
        rows = [
            sorted(map(tuple, np.column_stack([X, y]).round(9).tolist()))
            for X, y in ((case.X, case.y), (case.later_rows, case.later_y))
        ]
        kept[protocol] = len(set(rows[0]) & set(rows[1])) / len(set(rows[0]))

    assert 0.985 < kept["paper"] < 1.0
    assert kept["honest"] < 0.1


def test_released_data_are_scaled_with_the_future_and_honest_ones_are_not(example):
    honest, paper = (example("protocol").loans(protocol) for protocol in ("honest", "paper"))
    numbers = [place for place in range(honest.d - 1) if not any(place in group for group in honest.groups)]

    assert honest.X[:, numbers].min(axis=0) == pytest.approx(0.0)
    assert honest.X[:, numbers].max(axis=0) == pytest.approx(1.0)
    assert honest.later_rows[:, numbers].max() > 1.0
    both = np.vstack([paper.X, paper.later_rows])[:, numbers]
    assert (both.min(axis=0), both.max(axis=0)) == (pytest.approx(0.0), pytest.approx(1.0))


def test_people_are_rejected_and_those_of_the_test_part_come_first(example):
    case = example("protocol").loans("honest")
    scores = np.where(np.arange(len(case.X)) % 2 == 0, -1.0, 1.0)
    found = case.people(scores, 200)

    assert (scores[found] < 0.0).all()
    assert (np.diff(case.train[found].astype(int)) >= 0).all()
    assert not case.train[found][0]


def test_possible_is_in_range_one_level_a_category_and_nothing_fixed_changed(example):
    case = example("protocol").loans("honest")
    row = case.X[0]
    plan = np.repeat(row[None], 4, axis=0)
    free = next(place for place in range(case.d - 1) if place not in case.fixed)
    plan[1, free] = 1.1
    plan[2, list(case.groups[0])] = 0.5
    plan[3, case.fixed[0]] += 0.1

    assert case.is_possible(plan, row).tolist() == [True, False, False, False]


# ---- classifiers -----------------------------------------------------------------------------------------------------
def test_models_trained_at_once_are_those_trained_one_by_one(example):
    models, case = example("models"), example("protocol").loans("paper")
    members = models.halves(case.y, 3)
    found = models.trained(case.X, case.y, members, steps=30, random_state=5)
    starts = np.random.default_rng(5).uniform(-1.0, 1.0, found.shape) / np.sqrt(case.d - 1)
    for theta, rows, expected in zip(starts, members, found, strict=True):
        X, y = case.X[rows], case.y[rows]
        for _ in range(30):
            theta = theta + 0.005 * (X.T @ (y - 1.0 / (1.0 + np.exp(-X @ theta))) - 1e-3 * theta)  # noqa: PLW2901
        assert expected == pytest.approx(theta, abs=1e-9)


def test_a_model_stops_where_its_loss_stands_still(example):
    models, case = example("models"), example("protocol").loans("paper")
    rows = np.ones((1, len(case.y)), bool)
    long = [models.trained(case.X, case.y, rows, steps=steps, random_state=0) for steps in (20_000, 40_000)]

    assert (long[0] == long[1]).all()


def test_honest_models_are_at_the_optimum_of_logistic_regression(example):
    models, case = example("models"), example("protocol").loans("honest")
    rows = models.halves(case.y, 1)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(case.X[rows[0], :-1], case.y[rows[0]])

    assert models.fitted(case.X, case.y, rows)[0] == pytest.approx(
        np.append(theirs.coef_[0], theirs.intercept_), abs=1e-6
    )


def test_released_moments_are_inflated(example):
    models, case = example("models"), example("protocol").loans("paper")
    theta = models.trained(case.X, case.y, models.halves(case.y, 20), steps=models.OTHER_STEPS, random_state=1)
    mean, covariance = models.moments(case, 20)

    assert mean == pytest.approx(theta.mean(axis=0))
    assert covariance == pytest.approx(1.5 * np.cov(theta.T))


def test_validity_is_of_the_whole_plan_for_lines_and_networks(example):
    models, case = example("models"), example("protocol").loans("honest")
    plan = case.X[:3]
    theta = np.vstack([np.zeros(case.d), -np.eye(case.d)[-1], np.eye(case.d)[-1]])
    networks = [models.network(case.X[i::4], case.y[i::4], random_state=i) for i in range(3)]
    accepted = [bool((network.predict(plan[:, :-1]) == 1).all()) for network in networks]

    assert models.Future(theta).validity(plan) == pytest.approx(2.0 / 3.0)
    assert models.Future(networks).validity(plan) == pytest.approx(np.mean(accepted))
    one = case.X[:50]
    each = [models.Future(networks).validity(row[None]) for row in one]
    assert each == pytest.approx(np.mean([network.predict(one[:, :-1]) == 1 for network in networks], axis=0))


# ---- descents --------------------------------------------------------------------------------------------------------
def _slope(function, point, step=1e-6):
    out = np.zeros_like(point)
    for place in np.ndindex(point.shape):
        up, down = point.copy(), point.copy()
        up[place] += step
        down[place] -= step
        out[place] = (function(up) - function(down)) / (2.0 * step)
    return out


@pytest.mark.parametrize("is_network", [False, True])
def test_dice_descends_along_the_slope_of_its_loss(example, is_network):
    descent, models, case = example("descent"), example("models"), example("protocol").loans("honest")
    model = models.network(case.X, case.y, random_state=0) if is_network else models.present(case)
    score = descent.scored(model)
    rng = np.random.default_rng(0)
    plan, x, weights = rng.uniform(size=(1, 3, case.d - 1)), case.X[:1, None, :-1], rng.uniform(1, 3, case.d - 1)

    def loss(point):
        logits = score(point)[0][0]
        apart = np.abs(point[0][:, None] - point[0]) @ weights
        spare = sum((point[0][:, list(group)].sum(axis=1) - 1.0) ** 2 for group in case.groups)
        return (
            np.maximum(1.0 - logits, 0.0).mean()
            + 0.5 * (np.abs(point - x) @ weights).sum() / (3 * (case.d - 1))
            - np.linalg.det(1.0 / (1.0 + apart) + 1e-4 * np.eye(3))
            + 0.1 * spare.sum()
        )

    value, slope = descent._dice_loss(case, score, plan, x, weights)
    assert value[0] == pytest.approx(loss(plan))
    assert slope == pytest.approx(_slope(loss, plan), abs=1e-5)


def test_a_network_scores_as_scikit_learn_has_it(example):
    descent, models, case = example("descent"), example("models"), example("protocol").loans("honest")
    model = models.network(case.X, case.y, random_state=0)
    logits = descent.scored(model)(case.X[:, :-1])[0]

    assert 1.0 / (1.0 + np.exp(-logits)) == pytest.approx(model.predict_proba(case.X[:, :-1])[:, 1])


def test_plans_of_dice_are_valid_and_honest_ones_possible(example):
    descent, models, case = example("descent"), example("models"), example("protocol").loans("honest")
    model = models.present(case)
    people = case.X[case.people(case.X @ model, 3)]
    plans = descent.dice(case, descent.scored(model), people, n=4)

    assert plans.shape == (3, 4, case.d)
    assert (plans @ model >= 0.0).all()
    assert all(case.is_possible(plan, row).all() for plan, row in zip(plans, people, strict=True))


def test_the_descent_takes_the_steps_of_dice_ml(example):
    if not example("dice").is_installed():
        pytest.skip("dice-ml and PyTorch are not installed.")
    descent, models = example("descent"), example("models")
    for protocol in ("honest", "paper"):
        case = example("protocol").loans(protocol)
        model = models.present(case)
        row = case.X[case.people(case.X @ model, 1)]
        ours = descent.dice(case, descent.scored(model), row, n=3, steps=40)[0]
        theirs = example("dice").Dice(case, model).plan(row[0], n=3, seed=0, steps=40)

        assert ours == pytest.approx(theirs, abs=1e-4)


# ---- the table -------------------------------------------------------------------------------------------------------
SIZE = {"seeds": 2, "people": 2, "searched": 1, "moments": 20, "futures": 20, "networks": 2}


def test_a_run_goes_on_where_it_was_interrupted(example, tmp_path, monkeypatch):
    table, journals, made = example("table"), importlib.import_module("shared.journal"), []
    size = table.Size(**SIZE)

    def counted(self, method):
        made.append((self.seed, method))
        if len(made) == 3:
            raise KeyboardInterrupt
        return {"people": 2, "plans": 0}

    monkeypatch.setattr(table.Study, "result", counted)
    path = tmp_path / "journal.jsonl"
    journal = journals.Journal(path, ("numpy",))
    with pytest.raises(KeyboardInterrupt):
        table.run(1, ["loans"], "honest", size, journal, quiet=True)
    table.run(1, ["loans"], "honest", size, journals.Journal(path, ("numpy",)), quiet=True)

    asked = [(seed, method) for seed in range(2) for method in table.methods(1, "honest")]
    assert made == [*asked[:3], *asked[2:]]


def test_each_seed_draws_everything_anew(example):
    table = example("table")
    first, second, again = (table.Study(1, "loans", "paper", table.Size(**SIZE), seed) for seed in (0, 1, 0))

    assert (first.case.train != second.case.train).any()
    assert (first.model != second.model).all()
    assert (first.moments[0][0] != second.moments[0][0]).all()
    assert (first.future.models != second.future.models).any()
    assert (first.future.models == again.future.models).all()


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("number", "protocol"), [(1, "honest"), (1, "paper"), (4, "paper")])
def test_a_person_has_a_plan_by_each_method_and_a_row_in_the_table(example, number, protocol, monkeypatch):
    table, report, journals = example("table"), example("report"), importlib.import_module("shared.journal")
    monkeypatch.setitem(table.WEIGHTS, number, table.WEIGHTS[number][-1:])
    monkeypatch.setattr("ceopt.plans.copa_search._DESCENT_STEPS", 200)
    size, journal = table.Size(**SIZE | {"seeds": 1, "people": 1, "moments": 40}), journals.Journal(None, ())
    table.run(number, ["loans"], protocol, size, journal, quiet=True)
    head = f"{number}/{protocol}/loans"
    text = report.page(journal.kept, number, ["loans"], protocol, size, is_full=False)

    for method in table.methods(number, protocol):
        (record,) = report.group(journal.kept, head, method)
        assert record["plans"] == record["people"] == 1
        assert 0.0 <= record["lower"] <= 1.0
        assert 0.0 <= record["empirical"] <= 1.0
        assert record["proximity"] > 0.0
        assert f"| {report._title(method)} | 1/1 |" in text
    if protocol == "honest":
        assert journal.kept[f"{head}/0/search 1,10"]["possible"] == 1.0
        assert journal.kept[f"{head}/0/descent 1,10"]["possible"] == 1.0
        assert journal.kept[f"{head}/0/search 1,10"]["lower"] >= journal.kept[f"{head}/0/dice"]["lower"]


def test_a_fast_run_says_nothing_of_the_full_one(example):
    report = example("report")
    kept = _kept((0.1, 0.2), [(0.9, 0.05), (0.9, 0.05)])
    about = {"people": 2, "columns": 3, "now": (0.5, 0.5), "later": (0.5, 0.5), "rejected": 0.1, "rejected_later": 0.1}
    kept.update({f"1/paper/german/{seed}/about": {**about, "shift": 1.0} for seed in range(2)})
    size = example("table").Size(**SIZE)
    full, fast = (report.page(kept, 1, ["german"], "paper", size, is_full=is_full) for is_full in (True, False))

    assert full.startswith("- **german: no method survives retraining.** Most futures reject")
    assert "## Why" in full
    assert "survives" not in fast
    assert "## Why" not in fast


# ---- studies ---------------------------------------------------------------------------------------------------------
def test_a_rule_of_stopping_counts_what_it_says(example):
    models = example("models")
    before, now = np.array([np.inf, 100.0, 100.0, 100.0, 100.0]), np.array([90.0, 101.0, 99.9995, 100.0, 99.0])

    for rule, expected in (
        ("improvement", [False, True, False, True, False]),
        ("absolute", [False, False, False, True, False]),
        ("relative", [False, False, True, True, False]),
    ):
        assert models._stands_still(before, now, rule).tolist() == expected


def test_a_rows_frame_is_read_as_the_row(example):
    survival, models, case = example("survival"), example("models"), example("protocol").loans("honest")
    model = models.present(case)
    pipeline, space = survival._pipeline(case, model)
    rows = case.X[:20]

    assert pipeline[:-1].transform(survival._frame(case, rows)) == pytest.approx(rows[:, :-1])
    assert pipeline.decision_function(survival._frame(case, rows)) == pytest.approx(rows @ model)
    assert {feature.name for feature in space} == set(survival._frame(case, rows))


@pytest.mark.long
@pytest.mark.parametrize("name", ["stopping", "survival"])
def test_studies_run_on_loans(example, name):
    study, journals = example(name), importlib.import_module("shared.journal")
    journal = journals.Journal(None, ())
    study.run(["loans"], study.FAST, journal, quiet=True)

    assert "| DiCE |" in study.described(journal.kept, ["loans"], study.FAST, is_full=False) or name == "stopping"


def test_what_the_docs_advise_is_what_was_measured(example):
    """docs/explanation/plans.md, what no plan can promise: in words, so that the numbers stand in the results alone."""
    results, report = importlib.import_module("shared.results"), example("report")
    folder = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
    kept = results.read(folder / "copa_survival.json")["results"]

    def mean(name, method, what="empirical"):
        return np.mean([record[what] for key, record in kept.items() if key.startswith(name) and key.endswith(method)])

    radius, later, usual = "plan (10, 10), radius 1", "plan (1, 10), later moments", "plan (1, 10)"
    assert mean("sba", radius) > 0.9
    assert mean("sba", usual) < 0.5
    assert mean("sba", radius, "proximity") > mean("sba", usual, "proximity")
    plans = [method for method in example("survival").PLANS if method != later]
    assert max(mean("german", method) for method in plans) < 0.5
    assert mean("german", later) > 0.9
    assert mean("german", later, "proximity") < 1.1 * mean("german", usual, "proximity")
    small, wide = "rule, radius 0, level 0.9", "rule, radius 1, level 0.5"
    for name, method in (("german", small), ("sba", wide)):
        assert mean(name, method) > 0.5
        assert 0.4 < mean(name, method, "proximity") / mean(name, usual, "proximity") < 0.6
    assert mean("sba", small) < 0.1
    record = results.read(folder / "copa_stopping.json")
    stopping = example("stopping")
    assert "**not reached**" in stopping._beside(record["results"], stopping.Size(**record["size"]))
    kept = results.read(folder / "copa_table1_honest.json")["results"]
    for method in example("table").methods(1, "honest"):
        assert report.summary(report.group(kept, "1/honest/german", method))["empirical"][0] < 0.2
    kept = results.read(folder / "copa_table1_paper.json")["results"]
    assert report.summary(report.group(kept, "1/paper/sba", "search 1,10"))["empirical"][0] < 0.1


# ---- figures ---------------------------------------------------------------------------------------------------------
def test_futures_are_within_the_ball(example):
    rng = np.random.default_rng(2)
    mean, covariance = np.array([1.0, -2.0, 0.5]), 0.5 * np.eye(3)
    distances = [
        gelbrich_distance(*future, mean, covariance)
        for future in example("figure_3").in_ball(mean, covariance, 200, rng)
    ]

    assert max(distances) <= 1.0 + 1e-6
    assert min(distances) < 0.1
    assert max(distances) > 0.8


@pytest.mark.long
def test_figures_are_computed_and_described(example, tmp_path, monkeypatch):
    monkeypatch.setattr("ceopt.plans.copa_search._DESCENT_STEPS", 200)
    monkeypatch.setattr("ceopt.plans.copa_search._STARTS", (2, 2))
    monkeypatch.setitem(example("dice").OPTIONS, "max_iter", 60)
    for number, words in ((3, "mean inside"), (4, "mean and covariance shift")):
        figure, journal = example(f"figure_{number}"), importlib.import_module("shared.journal").Journal(None, ())
        figure.run("honest", figure.FAST, journal, quiet=True)

        assert words in figure.described(journal.kept, figure.FAST, "honest", is_full=False)
        if find_spec("matplotlib"):
            assert figure.draw(journal.kept, figure.FAST, "honest", tmp_path / "figure.png")
            assert (tmp_path / "figure.png").stat().st_size > 10_000
    shares = np.array(journal.kept["scaled to [0, 1]/0"]["panels"]["mean"]["COPA (2, 2)"])
    assert (np.diff(shares) <= 0.01).all()


@pytest.mark.long
def test_data_as_generated_leave_dice_what_it_is_and_the_release_inside_the_unit_box(example):
    figure, journal = example("figure_4"), importlib.import_module("shared.journal").Journal(None, ())
    figure.run("paper", figure.FAST, journal, quiet=True)
    scaled, raw = (journal.kept[f"{scale}/0"] for scale in (figure.SCALED, figure.RAW))

    assert raw["plans"][figure.PUBLISHED]["proximity"] > 2 * scaled["plans"]["DiCE"]["proximity"]
    stable, unstable = (raw["panels"]["both"][name][-1] for name in (figure.PUBLISHED, "DiCE"))
    assert stable > 0.9
    assert unstable < 0.8


# ---- judging ---------------------------------------------------------------------------------------------------------
def _kept(dice, copa):
    """Two methods of one data set, a record a seed: of DiCE the validity, of COPA the bound and the validity."""
    records = {}
    for seed, value in enumerate(dice):
        records[f"1/paper/german/{seed}/dice"] = dict(_MEASURES, empirical=value)
    for seed, (lower, empirical) in enumerate(copa):
        measures = {"lower": lower, "empirical": empirical, "over_dice": empirical - dice[seed]}
        records[f"1/paper/german/{seed}/descent 1,10"] = _MEASURES | measures
    return records


_MEASURES = {
    "people": 2,
    "plans": 2,
    "statuses": {"answered": 2},
    "put_back": 0,
    "cpu_s": 0.1,
    "proximity": 1.0,
    "diversity": 0.1,
    "lower": 0.5,
    "empirical": 0.5,
    "current": 1.0,
    "possible": 1.0,
    "over_dice": 0.0,
    "objective": 0.0,
}


@pytest.mark.parametrize(
    ("dice", "copa", "expected"),
    [
        ((0.5, 0.6, 0.7), [(0.7, 0.7), (0.7, 0.8), (0.7, 0.9)], (True, True)),  # 0.2 each time
        ((0.5, 0.5, 0.5), [(0.4, 0.5), (0.4, 0.5), (0.4, 0.8)], (False, True)),  # 0.1 <= 2 * 0.1
        ((0.5, 0.5, 0.5), [(0.9, 0.5), (0.9, 0.5), (0.9, 0.5)], (False, False)),
        ((0.5, 0.5, 0.5), [(0.9, 0.7), (0.6, 0.6), (0.6, 0.7)], (True, True)),  # bound: 0.033 <= 2 * 0.088
    ],
)
def test_rows_are_judged_over_seeds(example, dice, copa, expected):
    assert example("report").target(_kept(dice, copa), "1/paper/german", "descent 1,10")[:2] == expected


def test_mean_and_standard_error_are_over_seeds_with_a_plan(example):
    records = [dict(_MEASURES, lower=value) for value in (0.1, 0.2, 0.3)] + [{"people": 2, "plans": 0}]

    assert example("report").summary(records)["lower"] == pytest.approx((0.2, 0.1 / np.sqrt(3)))


def test_a_seeds_record_counts_who_has_no_plan(example):
    one = dict.fromkeys(example("table").MEASURED, 0.5) | {"over_dice": 0.1, "objective": 1.0}
    planned = {"status": "feasible", "cpu_s": 0.1, "put_back": True, **one}
    record = example("table").summary_of([planned, {"status": "infeasible", "cpu_s": 0.3, "put_back": False}])

    assert (record["people"], record["plans"], record["put_back"]) == (2, 1, 1)
    assert record["statuses"] == {"feasible": 1, "infeasible": 1}
    assert (record["empirical"], record["objective"]) == (0.5, 1.0)


def test_published_rows_are_complete(example):
    published, weights = example("report").published(), example("table").WEIGHTS
    rows = set()
    for number, pairs in weights.items():
        names = ["dice", "mahalanobis", *(f"copa {first:g},{second:g}" for first, second in pairs)]
        rows |= {(number, data, name) for data in example("protocol").DATA_SETS for name in names}

    assert set(published) == rows
    assert published[1, "sba", "dice"]["empirical"] == [0.801, 0.061]
    assert all("current" in row for (table, _, _), row in published.items() if table == 4)
