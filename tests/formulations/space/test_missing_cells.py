"""Rows of data with missing cells: left out, counted by one warning a call, whoever is given the data."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt import dice, surrogates, training
from ceopt.diverse import DiverseRobustExplainer
from ceopt.formulations.predictors import Affine
from ceopt.solvers.errors import InvalidValueError
from ceopt.surrogates import BoundarySampler, LocalSurrogateRecourse
from ceopt.training.networks import TrainingFrame

RNG = np.random.default_rng(0)
WHOLE = pd.DataFrame(
    {
        "income": RNG.integers(10, 90, 60) / 10,
        "debt": RNG.integers(0, 9, 60),
        "home": RNG.choice(["rent", "own"], 60),
    }
)
SPACE = ceopt.FeatureSpace.infer(WHOLE)
MODEL = Affine([1.0, -0.5, 0.3], -4.0, labels=("no", "yes"))
PERSON = {"income": 2.5, "debt": 3, "home": "own"}
GAPS = WHOLE.astype({"debt": float})
GAPS.loc[[3, 9], "income"] = np.nan
GAPS.loc[[9, 20], "debt"] = np.nan
GAPS.loc[31, "home"] = None
LEFT_OUT = [3, 9, 20, 31]
KEPT = WHOLE.drop(index=LEFT_OUT)


def heard(call: Any) -> tuple[Any, list[str]]:
    """What a call returns, and the texts of what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    assert all(warning.category is ceopt.SpaceWarning for warning in caught)
    return found, [str(warning.message) for warning in caught]


def asked(data: Any, **options: Any) -> ceopt.SolutionSet:
    return ceopt.explain(MODEL, PERSON, SPACE, target="yes", data=data, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"cost": "mahalanobis"}, {"cost": ceopt.Percentile("max")}, {"constraints": ceopt.Hull(radius=0.1)}],
    ids=["alone", "mahalanobis", "percentile", "hull"],
)
def test_explain_leaves_them_out_and_answers_as_from_the_others(options):
    result, told = heard(lambda: asked(GAPS, **options))
    (sentence,) = told
    assert sentence == (
        "explain leaves out 4 of 60 rows of data, in which cells of 'income', 'debt', 'home' are missing. "
        "Write data = data.dropna(subset=list(space.names)), or fill them in."
    )
    assert result.status == "optimal"
    assert result[0].cost == asked(KEPT, **options)[0].cost


def test_starts_and_data_are_counted_in_one_warning():
    result, told = heard(lambda: asked(GAPS, starts=GAPS.iloc[:5]))
    assert result.status == "optimal"
    assert len(told) == 1
    assert "4 of 60 rows of data and 1 of 5 rows of starts" in told[0]


def test_a_person_with_a_missing_cell_is_refused_as_ever():
    with pytest.raises(InvalidValueError, match="'income'.*missing"):
        ceopt.explain(MODEL, PERSON | {"income": np.nan}, SPACE, target="yes", data=WHOLE)


def test_data_without_a_whole_row_are_refused_by_name():
    with pytest.raises(InvalidValueError, match="explain needs rows of data without missing cells.*'income'"):
        asked(WHOLE.assign(income=np.nan))


def test_missing_cells_of_columns_that_the_space_does_not_have_leave_nothing_out():
    _, told = heard(lambda: asked(WHOLE.assign(note=None)))
    assert len(told) == 1
    assert told[0].startswith("explain leaves out 'note' of data")


@pytest.mark.parametrize("as_labels", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_fit_leaves_out_rows_with_their_labels(as_labels):
    y = np.where(np.arange(60) % 3 == 0, "yes", "no")
    rule = ceopt.Hull(radius=0.05)
    recourse = ceopt.Recourse(MODEL, SPACE, target="yes", constraints=[rule])
    fitted, told = heard(lambda: recourse.fit(GAPS, as_labels(y)))
    assert len(told) == 1
    assert told[0].startswith("Recourse.fit leaves out 4 of 60 rows of X")
    assert len(fitted.data_) == 56
    people = WHOLE.iloc[:3]
    found = fitted.explain(people)
    again = ceopt.Recourse(MODEL, SPACE, target="yes", constraints=[rule]).fit(KEPT, np.delete(y, LEFT_OUT))
    assert found.to_frame()["cost"].equals(again.explain(people).to_frame()["cost"])


def test_fit_keeps_its_own_data_whole_and_knows_them_again():
    recourse = ceopt.Recourse(MODEL, SPACE, target="yes", data=GAPS, cost="mahalanobis")
    _, told = heard(lambda: recourse.fit(WHOLE))
    assert len(told) == 1
    assert "4 of 60 rows of data" in told[0]
    assert recourse.explain(WHOLE.iloc[:2]).failures().empty


def test_another_number_of_labels_is_refused_as_ever():
    with (
        pytest.warns(ceopt.SpaceWarning, match="leaves out 4 of 60"),
        pytest.raises(InvalidValueError, match=r"one label for each of 60 rows.*\(59,\)"),
    ):
        ceopt.Recourse(MODEL, SPACE, target="yes").fit(GAPS, ["yes"] * 59)


def test_a_hull_of_rows_of_its_own_leaves_them_out_with_their_clusters():
    clusters = (np.arange(60) % 2).tolist()
    with_gaps, told = heard(
        lambda: ceopt.explain(MODEL, PERSON, SPACE, target="yes", constraints=ceopt.Hull(GAPS, clusters=clusters))
    )
    assert len(told) == 1
    assert told[0].startswith("Hull leaves out 4 of 60 rows of data")
    whole = ceopt.Hull(KEPT, clusters=np.delete(clusters, LEFT_OUT).tolist())
    assert with_gaps[0].cost == ceopt.explain(MODEL, PERSON, SPACE, target="yes", constraints=whole)[0].cost


def test_a_percentile_of_rows_of_its_own_leaves_them_out():
    result, told = heard(lambda: ceopt.explain(MODEL, PERSON, SPACE, target="yes", cost=ceopt.Percentile("max", GAPS)))
    assert len(told) == 1
    assert told[0].startswith("Percentile leaves out 4 of 60 rows of data")
    whole = ceopt.explain(MODEL, PERSON, SPACE, target="yes", cost=ceopt.Percentile("max", KEPT))
    assert result[0].cost == whole[0].cost


def test_verify_and_excess_leave_them_out():
    answer = asked(WHOLE)[0]
    rule = ceopt.Hull(radius=0.5)
    report, told = heard(
        lambda: ceopt.verify([answer], MODEL, SPACE, target="yes", factual=PERSON, constraints=rule, data=GAPS)
    )
    assert len(told) == 1
    assert report.ok is True
    _, told = heard(lambda: ceopt.metrics.excess([answer], MODEL, SPACE, target="yes", factual=PERSON, data=GAPS))
    assert len(told) == 1


def test_surrogates_and_samplers_leave_them_out():
    def says(rows: pd.DataFrame) -> Any:
        return np.where(rows["income"] - 0.5 * rows["debt"] > 4.0, "yes", "no")

    result, told = heard(
        lambda: ceopt.explain(says, PERSON, SPACE, target="yes", data=GAPS, surrogate=LocalSurrogateRecourse())
    )
    assert len(told) == 1
    assert result.status == "feasible"
    _, told = heard(lambda: LocalSurrogateRecourse().explain(says, PERSON, SPACE, target="yes", data=GAPS))
    assert len(told) == 1
    sample, told = heard(lambda: BoundarySampler(n_samples=50).sample(says, PERSON, GAPS, target="yes", space=SPACE))
    assert len(told) == 1
    assert len(sample.encoded) == 50


def test_causal_equations_are_learned_from_the_others():
    graph = {"income": ["debt"]}
    rule, told = heard(lambda: ceopt.Causal.learn(graph, GAPS, space=SPACE))
    assert len(told) == 1
    assert told[0].startswith("Causal.learn leaves out 3 of 60 rows of data, in which cells of 'debt', 'income'")
    whole = ceopt.Causal.learn(graph, WHOLE.drop(index=[3, 9, 20]), space=SPACE)
    assert rule.sentence() == whole.sentence()
    point = {"income": 5.0, "debt": 2.0, "home": 0.0}
    start = SPACE.row(PERSON)
    assert rule.violation(SPACE, start, point) == whole.violation(SPACE, start, point)


# ---- all who learn from rows -----------------------------------------------------------------------------------------
#: Each kind of missing cell: NaN in floats, pd.NA in Int64, None and NaT among objects.
ROWS = WHOLE.astype({"debt": "Int64", "home": object})
ROWS.loc[3, "income"] = np.nan
ROWS.loc[9, "debt"] = pd.NA
ROWS.loc[20, "home"] = None
ROWS.loc[31, "home"] = pd.NaT
Y = np.where(WHOLE["income"] - 0.5 * WHOLE["debt"] > 4.0, "yes", "no")
FITTED = make_pipeline(
    make_column_transformer((StandardScaler(), ["income", "debt"]), (OneHotEncoder(), ["home"])), LogisticRegression()
).fit(WHOLE, Y)
#: The same of numbers alone, as an array.
NUMBERS = ROWS[["income", "debt"]].astype(float).to_numpy()
SIGNS = np.where(Y == "yes", 1, -1)
#: A space that knows no scales.
FREE = ceopt.FeatureSpace(
    [
        ceopt.Feature("income", kind="continuous"),
        ceopt.Feature("debt", kind="integer"),
        ceopt.Feature("home", kind="binary", levels=("own", "rent")),
    ]
)
ANSWER = {"income": 6.5, "debt": 3, "home": "own"}


@dataclass(frozen=True)
class Entry:
    """Who is given rows: ``call(rows, beside)`` returns what it has learned, as something that can be compared."""

    call: Callable[..., Any]
    who: str
    word: str = "data"
    rows: Any = field(default_factory=lambda: ROWS)
    beside: dict[str, Any] = field(default_factory=dict)
    n_left_out: int = 4


def measured(name: str, *given: Any, **options: Any) -> Entry:
    """A metric that is given ``data``."""
    metric = getattr(ceopt.metrics, name)
    return Entry(lambda data: metric(*given, space=SPACE, data=data, **options), name)


def learned(cost: Any) -> Entry:
    return Entry(
        lambda data: cost.fitted(SPACE, data).value(SPACE, SPACE.row(PERSON), SPACE.row(ANSWER)), "Mahalanobis"
    )


def surrogate(name: str) -> Entry:
    """A surrogate near the person, of a model."""

    def fitted(X: Any) -> Any:
        found = getattr(surrogates, name)().fit_local(FITTED, PERSON, X, target="yes", space=SPACE)
        return found.coef_

    return Entry(fitted, name, "X")


def network(name: str) -> Entry:
    def trained(X: Any, y: Any) -> Any:
        small = {"encoder": (4,), "predictor": (4,), "generator": (4,), "epochs": 1}
        return getattr(training, name)(**small).fit(X, y).predict_proba(WHOLE)

    return Entry(trained, name, "X", beside={"y": Y})


def training_rows(frame: TrainingFrame) -> Any:
    """Points and classes, row by row."""
    return np.column_stack([frame.points, frame.codes])


def rival(name: str, **options: Any) -> Entry:
    """A rival of the networks."""

    def advised(data: Any) -> Any:
        return getattr(training, name)(FITTED, data, **options).recourse(WHOLE.iloc[:2], target="yes")

    return Entry(advised, name)


def diverse(X: Any, y: Any = None) -> Any:
    found = DiverseRobustExplainer(space=SPACE).fit(X, y).explain(FITTED, PERSON, target="yes")
    return found.to_frame()


def by_dice(dataframe: Any) -> Any:
    data = dice.Data(dataframe=dataframe, continuous_features=["income", "debt"], outcome_name="out")
    found = dice.Dice(data, dice.Model(model=FITTED, backend="sklearn")).generate_counterfactuals(
        pd.DataFrame([PERSON]), total_CFs=1, desired_class="yes"
    )
    return found.cf_examples_list[0].final_cfs_df


def recourse(X: Any, y: Any) -> Any:
    fitted = ceopt.Recourse(MODEL, SPACE, target="yes", constraints=[ceopt.Hull(radius=0.05)]).fit(X, y)
    return fitted.explain(WHOLE.iloc[:2]).to_frame()["cost"]


def worst(X: Any, y: Any) -> Any:
    found = training.worst_shift(X, y, [1.0, 1.0], radius=0.1, regularization=1.0, shift="label")
    return found.weights


def shifted(X: Any, y: Any, counterfactuals: Any) -> Any:
    return training.virtual_data_shift(FITTED, X, y, counterfactuals, steps=1).shift


def sampled(X: Any) -> Any:
    return surrogates.BoundarySampler(n_samples=20).sample(FITTED, PERSON, X, target="yes", space=SPACE).encoded


def by_surrogate(data: Any) -> Any:
    found = surrogates.LocalSurrogateRecourse().explain(FITTED, PERSON, SPACE, target="yes", data=data)
    return found.to_frame()


def checked(data: Any) -> Any:
    report = ceopt.verify([ANSWER], MODEL, SPACE, target="yes", factual=PERSON, constraints=ceopt.Hull(), data=data)
    return report.to_frame()


def ridge(X: Any, y: Any) -> Any:
    return training.retrained(X, y, loss="squared", regularization=1.0).weights


def of_suite(data: Any, labels: Any) -> Any:
    return ceopt.metrics.suite(
        "carla2021", pd.DataFrame([ANSWER]), factual=PERSON, space=SPACE, target="yes", data=data, labels=labels,
        missing="nan",
    )  # fmt: skip


PAIR = pd.DataFrame([ANSWER, {"income": 7.5, "debt": 1, "home": "rent"}])
ENTRIES = {
    "explain(data=)": Entry(lambda data: asked(data, cost="mahalanobis")[0].cost, "explain"),
    "explain(starts=)": Entry(lambda starts: asked(WHOLE, starts=starts)[0].cost, "explain", "starts"),
    "verify(data=)": Entry(checked, "verify"),
    "excess(data=)": Entry(
        lambda data: ceopt.metrics.excess(
            [ANSWER], MODEL, SPACE, target="yes", factual=PERSON, data=data, cost="mahalanobis"
        ),
        "excess",
    ),
    "Recourse.fit(X=)": Entry(recourse, "Recourse.fit", "X", beside={"y": Y}),
    "Recourse(data=)": Entry(
        lambda data: (
            ceopt.Recourse(MODEL, SPACE, target="yes", data=data, cost="mahalanobis")
            .fit(WHOLE)
            .explain(WHOLE.iloc[:2])
            .to_frame()["cost"]
        ),
        "Recourse.fit",
    ),
    "Recourse(starts=)": Entry(
        lambda starts: (
            ceopt.Recourse(MODEL, SPACE, target="yes", starts=starts)
            .fit(WHOLE)
            .explain(WHOLE.iloc[:2])
            .to_frame()["cost"]
        ),
        "Recourse.fit",
        "starts",
    ),
    "Hull(data=)": Entry(lambda data: asked(None, constraints=ceopt.Hull(data, radius=0.1))[0].cost, "Hull"),
    "Hull(data=, clusters)": Entry(
        lambda data, clusters: asked(None, constraints=ceopt.Hull(data, radius=0.1, clusters=clusters))[0].cost,
        "Hull",
        beside={"clusters": (np.arange(60) % 2).tolist()},
    ),
    "Percentile(data=)": Entry(lambda data: asked(None, cost=ceopt.Percentile("max", data))[0].cost, "Percentile"),
    "Percentile(data=).table": Entry(
        lambda data: ceopt.Percentile("max", data).table(PERSON, {"income": [3.0, 6.0]}, space=SPACE)["income"],
        "Percentile",
    ),
    "Mahalanobis.fitted(data=)": learned(ceopt.Mahalanobis()),
    "Causal.learn(data=)": Entry(
        lambda data: ceopt.Causal.learn({"income": ["debt", "home"]}, data, space=SPACE).violation(
            SPACE, SPACE.row(PERSON), SPACE.row(ANSWER)
        ),
        "Causal.learn",
    ),
    "Data(dataframe=)": Entry(by_dice, "Data", "dataframe", rows=ROWS.assign(out=Y)),
    "DiverseRobustExplainer.fit(X=)": Entry(diverse, "DiverseRobustExplainer.fit", "X"),
    "DiverseRobustExplainer.fit(X=, y)": Entry(diverse, "DiverseRobustExplainer.fit", "X", beside={"y": list(Y)}),
    "DiverseRobustExplainer.fit(X=array)": Entry(
        lambda X: (
            DiverseRobustExplainer().fit(X).explain(lambda rows: rows[:, 0] > 5.0, [2.0, 3.0], target=True).to_frame()
        ),
        "DiverseRobustExplainer.fit",
        "X",
        rows=NUMBERS,
        n_left_out=2,
    ),
    "continuous_diversity(data=)": measured("continuous_diversity", PAIR),
    "continuous_proximity(data=)": measured("continuous_proximity", PERSON, PAIR),
    "cost(data=)": Entry(lambda data: ceopt.metrics.cost(PERSON, PAIR, SPACE, "mahalanobis", data=data), "cost"),
    "distance(data=)": measured("distance", PERSON, PAIR, scale="std"),
    "dpp_determinant(data=)": measured("dpp_determinant", PAIR, scale="std"),
    "gower(data=)": measured("gower", PERSON, PAIR),
    "heom(data=)": measured("heom", PERSON, PAIR),
    "hull_distance(data=)": measured("hull_distance", PAIR),
    "k_distance(data=)": measured("k_distance", PERSON, PAIR, scale="mad"),
    "k_diversity(data=)": measured("k_diversity", PAIR, scale="mad"),
    "knn_distance(data=)": measured("knn_distance", PAIR, k=3),
    "knn_distance(data=array)": Entry(
        lambda data: ceopt.metrics.knn_distance([[6.0, 3.0]], data), "knn_distance", rows=NUMBERS, n_left_out=2
    ),
    "lof(data=)": measured("lof", PAIR),
    "set_distance(data=)": measured("set_distance", PAIR, PAIR.iloc[:1], scale="range"),
    "suite(data=)": Entry(of_suite, "suite('carla2021')", beside={"labels": list(Y)}),
    "ynn(data=)": measured("ynn", PAIR, model=FITTED, target="yes"),
    "ynn(data=, labels)": Entry(
        lambda data, labels: ceopt.metrics.ynn(PAIR, data, target="yes", labels=labels, space=SPACE),
        "ynn",
        beside={"labels": pd.Series(Y)},
    ),
    "TrainingFrame.of(X=)": Entry(
        lambda X, y: training_rows(TrainingFrame.of("CounterNet", None, X, y)), "CounterNet", "X", beside={"y": Y}
    ),
    "BoundarySampler.sample(X=)": Entry(sampled, "BoundarySampler", "X"),
    "BoundarySampler.decided(X=)": Entry(
        lambda X: surrogates.BoundarySampler().decided(FITTED, X, target="yes").encoded, "BoundarySampler", "X"
    ),
    "LocalSurrogateRecourse.explain(data=)": Entry(by_surrogate, "LocalSurrogateRecourse"),
    "ClimeSurrogate.fit_local(X=)": surrogate("ClimeSurrogate"),
    "LimeSurrogate.fit_local(X=)": surrogate("LimeSurrogate"),
    "LimelsSurrogate.fit_local(X=)": surrogate("LimelsSurrogate"),
    "MinimaxProbabilityMachine.fit_local(X=)": surrogate("MinimaxProbabilityMachine"),
    "SvmSurrogate.fit_local(X=)": surrogate("SvmSurrogate"),
    "ScaledColumns.of(frame=)": Entry(
        lambda frame: surrogates.ScaledColumns.of(FREE, frame).scales, "ScaledColumns", "frame"
    ),
    "CounterNet.fit(X=)": network("CounterNet"),
    "RoCourseNet.fit(X=)": network("RoCourseNet"),
    "Rbr(data=)": rival("Rbr"),
    "RoarLime(data=)": rival("RoarLime"),
    "VanillaCF(data=)": rival("VanillaCF"),
    "retrained(X=)": Entry(ridge, "retrained", "X", rows=NUMBERS, beside={"y": SIGNS}, n_left_out=2),
    "virtual_data_shift(X=)": Entry(
        shifted, "virtual_data_shift", "X", beside={"y": Y, "counterfactuals": WHOLE.iloc[::-1]}
    ),
    "worst_shift(X=)": Entry(worst, "worst_shift", "X", rows=NUMBERS, beside={"y": SIGNS}, n_left_out=2),
}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, pd.DataFrame | pd.Series):
        return one.reset_index(drop=True).equals(other.reset_index(drop=True))
    return bool(np.array_equal(one, other, equal_nan=True))


#: Who takes longer than a second; what they share with others is tried of these.
SLOW = ("CounterNet.fit(X=)", "RoCourseNet.fit(X=)", "LocalSurrogateRecourse.explain(data=)", "Rbr(data=)")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in SLOW else ()) for name in ENTRIES]
)
def test_all_who_learn_from_rows_leave_out_those_with_missing_cells_and_say_what_to_write(name):
    """One warning counts them; what it says to write is written, and what is learned is the same, without a word."""
    entry = ENTRIES[name]
    found, told = heard(lambda: entry.call(entry.rows, **entry.beside))
    (sentence,) = told
    assert sentence.startswith(f"{entry.who} leaves out {entry.n_left_out} of 60 rows of {entry.word}, in which cells ")
    line = sentence.partition("Write ")[2].removesuffix(", or fill them in.")
    names = {entry.word: entry.rows, **entry.beside, "space": SPACE, "pandas": pd, "numpy": np}
    exec(line, names)  # noqa: S102 - the line is what the user is told to write
    assert len(names[entry.word]) == 60 - entry.n_left_out
    again, told = heard(lambda: entry.call(names[entry.word], **{word: names[word] for word in entry.beside}))
    assert told == []
    assert same(found, again)


#: Whose argument of such a name teaches nothing: people who are asked about, points, what another argument replaces.
TAUGHT_NOTHING = {
    "AllowedRows(frame=)": "a rule that names its rows, each of which an answer may become",
    "BlackBox.favourable(frame=)": "people",
    "BlackBox.labels(frame=)": "people",
    "BlackBox.leaning(frame=)": "people",
    "BlackBox.of_data(frame=)": "rows that a sampler has looked through",
    "BoundarySample(points=)": "a result",
    "BoundarySampler.around(rows=)": "rows that decided() has looked through",
    "BoundarySampler.boundary(rows=)": "rows that decided() has looked through",
    "BoundarySampler.near(rows=)": "rows that decided() has looked through",
    "BoundarySampler.shifted(rows=)": "rows that decided() has looked through",
    "Bunch(data=)": "a result",
    "FeatureSpace.coordinates(frame=)": "people",
    "FeatureSpace.frame(rows=)": "coordinates",
    "FeatureSpace.update(data=)": "column by column: missing cells are no values",
    "FeatureSpace.infer(frame=)": "column by column: missing cells are no values",
    "MinimaxProbabilityMachine.fit(X=)": "scikit-learn's estimators refuse NaN, and check_estimator asks for it",
    "People(people=)": "people",
    "Recourse.explain(frame=)": "people, each with a status",
    "ScaledColumns.encode(frame=)": "people",
    "bootstrap_moments(X=)": "rows of the caller's own estimator, which may take them or fill them in",
    "data_shift(X=)": "a program about the very rows",
    "future_validity(X=)": "rows of the caller's own estimator, which may take them or fill them in",
    "select(points=)": "points",
}
#: Methods of many classes whose rows are people, points, or data for which the class above has an entry.
OF_MANY = {"charged", "construct", "decode", "decision_function", "fitted", "legal", "mended", "objectives", "polish"}
OF_MANY |= {"keeps", "predict", "predict_proba", "reconstruct", "recourse", "score"}
WORDS = {"X", "data", "dataframe", "frame", "people", "points", "rows", "starts"}
MODULES = ("", ".datasets", ".dice", ".diverse", ".metrics", ".plans", ".surrogates", ".training", ".formulations")
MODULES += (".formulations.constraints", ".formulations.costs", ".formulations.programs", ".formulations.space")


def given_rows() -> set[str]:
    """Who is given rows, of all that is public: the function, class or method, with the argument."""
    found = set()
    for place in MODULES:
        module = importlib.import_module(f"ceopt{place}")
        for name in module.__all__:
            thing = getattr(module, name)
            calls = {name: thing}
            if inspect.isclass(thing):
                methods = {part: getattr(thing, part) for part in dir(thing) if not part.startswith("_")}
                calls |= {f"{name}.{part}": call for part, call in methods.items() if part not in OF_MANY}
            for called, call in calls.items():
                try:
                    arguments = inspect.signature(call).parameters if callable(call) else ()
                except ValueError:  # a class without a signature, such as an error
                    continue
                words = {"X", "data", "dataframe", "frame", "people", "points", "rows", "starts"}.intersection(
                    arguments
                )
                found |= {f"{called}({word}=)" for word in words}
    return found


def test_each_public_argument_of_rows_has_an_entry_or_a_reason():
    assert given_rows() - set(ENTRIES) == set(TAUGHT_NOTHING)


@pytest.mark.parametrize(
    ("name", "call", "error"),
    [
        ("AllowedRows(frame=)", lambda: asked(WHOLE, constraints=ceopt.AllowedRows(list(ROWS), ROWS)), "missing"),
        ("select(points=)", lambda: ceopt.diverse.select(ROWS, 2), "income.*nan"),
        ("data_shift(X=)", lambda: shift_program(NUMBERS), "finite X"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_rows_that_teach_nothing_are_refused_by_name(name, call, error):
    assert name in TAUGHT_NOTHING
    with pytest.raises(InvalidValueError, match=error):
        call()


def shift_program(X: Any) -> Any:
    return ceopt.formulations.programs.data_shift(X, SIGNS, [1.0, 1.0], radius=0.1, regularization=1.0)


def without_the_sixth(labels: Any) -> Any:
    absent = [str(label) for label in labels]
    absent[5] = None
    return absent


@pytest.mark.parametrize(
    "call",
    [
        lambda y: DiverseRobustExplainer(space=SPACE).fit(ROWS, y),
        lambda y: TrainingFrame.of("CounterNet", SPACE, ROWS, y),
    ],
    ids=["DiverseRobustExplainer.fit", "TrainingFrame.of"],
)
def test_a_missing_label_is_refused_by_its_row(call):
    with pytest.raises(InvalidValueError, match="row 5"):
        call(without_the_sixth(Y))


def test_other_labels_than_rows_are_refused_and_nothing_is_left_out():
    with pytest.raises(InvalidValueError, match="60"):
        TrainingFrame.of("CounterNet", SPACE, ROWS, Y[:59])
    with pytest.raises(InvalidValueError, match=r"ynn needs a label for each of 60 rows.*\(59,\)"):
        ceopt.metrics.ynn(PAIR, ROWS, target="yes", labels=Y[:59], space=SPACE)


def test_diverse_candidates_are_named_by_their_positions_in_the_data_that_was_given():
    explainer, told = heard(lambda: DiverseRobustExplainer(space=SPACE, alpha=3, tolerance=None).fit(ROWS))
    assert len(told) == 1
    assert explainer.n_candidates_ == 56
    found = explainer.explain(FITTED, PERSON, target="yes", n=None)
    said = FITTED.predict(WHOLE)
    places = list(found.after_distance_filter)
    assert [said[place] for place in places] == ["yes"] * 3
    assert not set(places) & {3, 9, 20, 31}
    moves = WHOLE.iloc[places]
    lengths = (moves["income"] - 2.5).abs() + (moves["debt"] - 3).abs() + (moves["home"] != "own")
    allowed = WHOLE[(said == "yes") & ~WHOLE.index.isin([3, 9, 20, 31])]
    every = (allowed["income"] - 2.5).abs() + (allowed["debt"] - 3).abs() + (allowed["home"] != "own")
    assert sorted(lengths.round(9)) == sorted(every.round(9))[:3]


def test_a_table_in_which_each_row_lacks_a_cell_is_refused_by_the_name_of_the_argument():
    for call, word in (
        (lambda rows: DiverseRobustExplainer(space=SPACE).fit(rows), "X"),
        (lambda rows: ceopt.metrics.knn_distance(PAIR, rows, space=SPACE), "data"),
        (lambda rows: TrainingFrame.of("CounterNet", SPACE, rows, Y), "X"),
        (lambda rows: by_dice(rows.assign(out=Y)), "dataframe"),
    ):
        with pytest.raises(InvalidValueError, match=f"rows of {word} without missing cells.*'income'"):
            call(ROWS.assign(income=np.nan))


def test_the_line_about_several_tables_writes_each():
    recourse = ceopt.Recourse(MODEL, SPACE, target="yes", data=ROWS)
    _, (sentence,) = heard(lambda: recourse.fit(ROWS, Y))
    line = sentence.partition("Write ")[2].removesuffix(", or fill them in.")
    names = {"X": ROWS, "y": Y, "data": ROWS, "space": SPACE}
    exec(line, names)  # noqa: S102 - the line is what the user is told to write
    assert [len(names[word]) for word in ("X", "y", "data")] == [56, 56, 56]
