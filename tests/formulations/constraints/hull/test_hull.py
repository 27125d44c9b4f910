"""Hull: its rows, published optima through the one call, the user's own models, words, and everything it refuses."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from published import columns, cost_of, instances
from pyomo.core.base.block import ScalarBlock
from rowtext import rows, text, variables
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.linear_model import LogisticRegression

import ceopt
from ceopt import Feature, FeatureSpace, Hull
from ceopt.formulations import Factual, Reaches, embed, impose, l1
from ceopt.formulations.predictors import Affine
from ceopt.solvers import Status, model_summary, solve
from ceopt.solvers.cones import ConeMargin
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, UnknownNameError

WAGE = Feature("wage", kind="continuous", lower=0, upper=8)
SIZE = Feature("size", kind="ordinal", levels=("S", "M", "L"))
JOB = Feature("job", kind="categorical", levels=("a", "b", "c"))
HOME = Feature("home", kind="binary", levels=("rent", "own"))
SPACE = FeatureSpace([WAGE, SIZE, JOB, HOME])
ROW = {"wage": 1.0, "size": "S", "job": "a", "home": "rent"}
PEOPLE = pd.DataFrame(
    {
        "wage": [2.0, 6.0, 8.0, 2.0],
        "size": ["M", "L", "M", "M"],
        "job": ["a", "b", "b", "a"],
        "home": ["own", "own", "rent", "own"],
    }
)


def at() -> Any:
    m = pyo.ConcreteModel()
    m.x = Factual(SPACE, ROW)
    return m


# ---- rows ------------------------------------------------------------------------------------------------------------
# ---- rows ------------------------------------------------------------------------------------------------------------
POINTS = [
    "+0.125 x[wage] -0.5 weight[1] -0.75 weight[2]",
    "+0.5 at_least[size,L] +0.5 at_least[size,M] -0.5 weight[1]",
    "+1 level[job,a] -1 weight[0]",
    "+1 level[job,b] +1 weight[0]",
    "+1 level[home,own] +1 weight[2]",
]


def test_rows_of_the_hull_itself() -> None:
    m = at()
    m.hull = impose(Hull(PEOPLE), m.x)
    assert rows(m.hull, "point") == [
        "+0.5 at_least[size,L] +0.5 at_least[size,M] -0.5 weight[1] = 0.5",
        "+1 level[home,own] +1 weight[2] = 1",
        "+1 level[job,a] -1 weight[0] = 0",
        "+1 level[job,b] +1 weight[0] = 1",
        "+1 level[job,c] = 0",
        "-0.5 weight[1] -0.75 weight[2] +0.125 x[wage] = 0.25",
    ]
    assert rows(m.hull, "share") == ["+1 weight[0] +1 weight[1] +1 weight[2] = 1"]
    assert rows(m.hull) == sorted(rows(m.hull, "point", "share"))
    assert {name: kind for name, kind in variables(m.hull).items() if "weight" in name} == {
        f"weight[{i}]": "Reals [0, 1]" for i in range(3)
    }


def test_rows_of_a_radius_in_l1() -> None:
    m = at()
    m.hull = impose(Hull(PEOPLE, radius=0.25), m.x)
    assert {
        "+1 over[wage] -1 under[wage] -0.5 weight[1] -0.75 weight[2] +0.125 x[wage] = 0.25",
        "+0.5 at_least[size,L] +0.5 at_least[size,M] +1 over[size] -1 under[size] -0.5 weight[1] = 0.5",
        "+1 level[job,c] +1 over[job,c] -1 under[job,c] = 0",
    } < set(rows(m.hull, "point"))
    keys = ["home", "job,a", "job,b", "job,c", "size", "wage"]
    total = " ".join([f"+1 over[{key}]" for key in keys] + [f"+1 under[{key}]" for key in keys])
    assert rows(m.hull, "within") == [f"{total} <= 0.25"]
    assert variables(m.hull)["over[job,c]"] == variables(m.hull)["under[wage]"] == "Reals [0, 0.25]"


def test_rows_of_a_radius_in_linf() -> None:
    m = at()
    m.hull = impose(Hull(PEOPLE, radius=0.25, norm="linf"), m.x)
    assert {
        "+1 level[home,own] +1 slack[home] +1 weight[2] = 1",
        "+1 level[job,a] +1 slack[job,a] -1 weight[0] = 0",
    } < set(rows(m.hull, "point"))
    assert rows(m.hull) == sorted(rows(m.hull, "point", "share"))
    assert variables(m.hull)["slack[wage]"] == "Reals [-0.25, 0.25]"


def test_rows_of_a_radius_in_l2() -> None:
    m = at()
    m.hull = impose(Hull(PEOPLE, radius=0.25, norm="l2"), m.x)
    cone = m.hull.within.body
    assert isinstance(cone, ConeMargin)
    assert [str(entry) for entry in cone.args] == ["0.25", *(f"hull.slack[{key}]" for key in (
        "wage", "size", "job,a", "job,b", "job,c", "home"
    ))]  # fmt: skip
    assert model_summary(m).set_index("block").loc["hull", "cones"] == 1


def test_rows_of_clusters() -> None:
    m = at()
    m.hull = impose(Hull(PEOPLE, clusters=["far", "far", "near", "far"]), m.x)
    assert rows(m.hull, "share") == [
        "-1 in_cluster[far] +1 weight[0] +1 weight[1] = 0",
        "-1 in_cluster[near] +1 weight[2] = 0",
    ]
    assert rows(m.hull, "one_cluster") == ["+1 in_cluster[far] +1 in_cluster[near] = 1"]
    assert variables(m.hull)["in_cluster[far]"] == "Binary [0, 1]"


def test_rows_of_a_penalty() -> None:
    m = at()
    m.hull = impose(Hull(PEOPLE, radius=0.25, norm="linf", penalty=3.0), m.x)
    keys = ["home", "job,a", "job,b", "job,c", "size", "wage"]
    total = " ".join([f"+3 over[{key}]" for key in keys] + [f"+3 under[{key}]" for key in keys])
    assert text(m.hull.penalty) == total
    assert [extra is m.hull.penalty for extra in m.x.surcharges] == [True]
    m = at()
    m.hull = impose(Hull(PEOPLE, penalty=3.0), m.x)  # radius 0: no limit
    assert variables(m.hull)["over[wage]"] == "Reals [0, inf]"
    assert rows(m.hull) == sorted(rows(m.hull, "point", "share"))


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_rows_of_a_radius_that_may_grow(norm: Any) -> None:
    m = pyo.ConcreteModel()
    m.x, m.hull = Factual(FeatureSpace([WAGE]), {"wage": 1.0}), ScalarBlock(concrete=True)
    width = Hull(PEOPLE[["wage"]], radius=0.25, norm=norm).relax(m.hull, m.x)
    assert rows(m.hull, "within", "within_each") == ["+1 over[wage] -1 radius +1 under[wage] <= 0"]
    assert text(width) == "+1 radius -0.25"
    assert variables(m.hull)["radius"] == "Reals [0.25, inf]"


def test_rows_have_no_tiny_coefficients() -> None:
    """A column of hundred millions and one of billionths, by scales that make either tiny."""
    space = FeatureSpace(
        [
            Feature("large", kind="continuous", lower=0.0, upper=4e8),
            Feature("small", kind="continuous", lower=0.0, upper=4e-9),
        ]
    )
    data = pd.DataFrame({"large": [0.0, 3e8, 3e8 + 0.5], "small": [1e-9, 3e-9, 2e-9]})
    for scale in ("range", "none", {"large": 1e12, "small": 1.0}):
        m = pyo.ConcreteModel()
        m.x = Factual(space, {"large": 1e8, "small": 0.0})
        m.hull = impose(Hull(data, radius=0.1, scale=scale), m.x)
        found = [abs(float(word)) for row in rows(m.hull, "point") for word in row.split() if word[0] in "+-"]
        assert min(found) >= 1e-6
        assert max(found) <= 1e9


def test_what_a_solver_does_not_see_is_rounded() -> None:
    """A share of the range below 1e-6 is 0 or 1e-6, whichever is nearer."""
    space = FeatureSpace([Feature("large", kind="continuous", lower=0.0, upper=8192.0), HOME])
    people = pd.DataFrame({"large": [4096.0, 4096.0, 0.0, 4096.001, 4096.006], "home": ["own", "rent", *["own"] * 3]})
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"large": 0.0, "home": "own"})
    m.hull = impose(Hull(people, clusters=[0, 0, 0, 1, 2]), m.x)
    assert rows(m.hull, "point")[0] == "+0.5 weight[2] -1e-06 weight[4] +0.0001220703125 x[large] = 0.5"


def test_a_row_that_cannot_be_is_kept_as_impossible() -> None:
    space = FeatureSpace([WAGE, Feature("origin", kind="binary", levels=(0, 1), mutable=False)])
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"wage": 1.0, "origin": 1})
    m.hull = impose(Hull(pd.DataFrame({"wage": [1.0, 2.0], "origin": [0, 0]})), m.x)
    m.cost = pyo.Objective(expr=l1(m.x))
    assert solve(m).status is Status.INFEASIBLE


# ---- published -------------------------------------------------------------------------------------------------------
NORMS = {"1": "l1", "2": "l2", "inf": "linf"}


def ask(inputs: Any, data: Any, **more: Any) -> tuple[ceopt.SolutionSet, Hull]:
    space = columns(inputs)
    labels = more.pop("labels", None)
    hull = Hull(
        pd.DataFrame(data, columns=list(space.names)),
        radius=inputs["eps"],
        norm=NORMS[inputs["p"]],
        scale="none",
        clusters=labels,
    )
    model = Affine(inputs["w"], inputs["intercept"], labels=(0, 1), decision="nonnegative")
    row = dict(zip(space.names, inputs["x0"], strict=True))
    cost = cost_of(inputs, space.names)
    found = ceopt.explain(
        model, row, space, target=1, cost=cost, constraints=[hull], margin=0.0, relative_gap=1e-7, **more
    )
    assert ceopt.verify(found, model, space, target=1, factual=row, constraints=[hull]).ok is not False
    return found, hull


@pytest.mark.long(every=2)
@pytest.mark.parametrize("solver", ["auto", "highs"])
@pytest.mark.parametrize("instance", instances("epsilon_hull", "l1", "l2"))
def test_epsilon_hull(instance: Any, solver: str) -> None:
    inputs, expected, tolerance = instance["inputs"], instance["expected"], instance["tol"]
    found, hull = ask(inputs, inputs["points"], solver=solver)
    assert found.status == expected["status"]
    if expected["status"] == "infeasible":
        m = pyo.ConcreteModel()
        space = columns(inputs)
        m.x = Factual(space, dict(zip(space.names, inputs["x0"], strict=True)))
        m.p = embed(Affine(inputs["w"], inputs["intercept"], labels=(0, 1), decision="nonnegative"), m.x)
        m.valid, m.hull = Reaches(m.p, 1, margin=0.0), ScalarBlock(concrete=True)
        m.wider = pyo.Objective(expr=hull.relax(m.hull, m.x))
        radius = inputs["eps"] + solve(m, solver).objective
        assert radius == pytest.approx(expected["smallest_feasible_eps"], abs=tolerance["smallest_feasible_eps"])
        return
    for cost in (found.bound, found[0].cost):
        assert cost == pytest.approx(expected["cost"], abs=tolerance["cost"], rel=0)
    if instance["unique"]["x"]:
        assert found[0].values.to_numpy(float) == pytest.approx(np.array(expected["x"]), abs=tolerance["x"])


@pytest.mark.long
@pytest.mark.parametrize("instance", instances("clustered_hull", "l1", "l2"))
def test_clustered_hull(instance: Any) -> None:
    """The best, and one answer for each cluster that has some."""
    inputs, expected = instance["inputs"], instance["expected"]
    data = [point for own in inputs["clusters"] for point in own]
    labels = [k for k, own in enumerate(inputs["clusters"]) for _ in own]
    found, _ = ask(inputs, data, labels=labels, n=len(inputs["clusters"]), diversity="clusters")
    assert found[0].cost == pytest.approx(expected["cost"], abs=instance["tol"]["cost"], rel=0)
    assert found[0].cluster == expected["cluster"]
    listed = {k: cost for k, cost in enumerate(expected["per_cluster"]) if cost is not None}
    assert {answer.cluster: answer.cost for answer in found} == pytest.approx(
        listed, abs=instance["tol"]["per_cluster"], rel=0
    )


# ---- rows of the target class ----------------------------------------------------------------------------------------
MODEL = Affine([1.0, 2.0, 0.0, 1.0], -6.0, labels=("no", "yes"))
NUMBERS = FeatureSpace([WAGE, SIZE, Feature("job", kind="ordinal", levels=("a", "b", "c")), HOME])
EVERYONE = pd.concat([PEOPLE, PEOPLE.assign(wage=0.5, size="S", job="c")], ignore_index=True)


def costs(found: ceopt.SolutionSet) -> list[float]:
    return [answer.cost for answer in found]


@pytest.mark.parametrize("options", [{}, {"radius": 0.3}, {"radius": 0.3, "norm": "l2", "clusters": 2}])
def test_many_points_of_one_person_are_within_as_one_by_one(options: Any) -> None:
    space = FeatureSpace([replace(WAGE, missing=True), SIZE, JOB, HOME])
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({
        "wage": rng.uniform(1.0, 8.0, 40).round(1),
        "size": rng.choice(list(SIZE.levels), 40),
        "job": rng.choice(["a", "b"], 40),
        "home": rng.choice(["rent", "own"], 40),
    })  # fmt: skip
    hull = Hull(PEOPLE, **options)
    factual = space.row(pd.DataFrame([ROW]))
    asked = space.coordinates(rows)
    asked[::9, 0] = space.row(pd.DataFrame([{**ROW, "wage": np.nan}]))["wage"]
    judge = hull.judge(space, factual)
    kept = [judge.keeps(point[None, :])[0] for point in asked]
    alone = [hull.violation(space, factual, dict(zip(space.names, row, strict=True))) <= 0.0 for row in asked.tolist()]
    assert kept == alone
    assert 0 < sum(kept) < len(kept)
    may = judge.may_keep(asked)
    assert may[kept].all()
    assert not may.all()


def test_the_rows_are_those_that_the_model_favours() -> None:
    score = MODEL.score(NUMBERS.coordinates(EVERYONE))
    favoured = EVERYONE[score > 0]
    assert 0 < len(favoured) < len(EVERYONE)
    one = ceopt.explain(MODEL, ROW, NUMBERS, target="yes", constraints=[Hull(radius=0.2)], data=EVERYONE)
    other = ceopt.explain(MODEL, ROW, NUMBERS, target="yes", constraints=[Hull(favoured, radius=0.2)])
    assert one.status == other.status == "optimal"
    assert costs(one) == pytest.approx(costs(other))
    assert f"the hull of {len(favoured)} rows" in one.options["constraints"][0]


def test_the_rows_are_those_with_the_label_under_recourse() -> None:
    y = np.array(["yes", "no"] * 4)
    recourse = ceopt.Recourse(MODEL, NUMBERS, target="yes", constraints=[Hull(radius=0.3)]).fit(EVERYONE, y)
    cohort = recourse.explain(pd.DataFrame([ROW]))
    frame = EVERYONE[y == "yes"]
    alone = ceopt.explain(MODEL, ROW, NUMBERS, target="yes", constraints=[Hull(frame, radius=0.3)])
    assert cohort.to_frame()["cost"].tolist() == pytest.approx(costs(alone))


def test_labels_without_rows_of_its_own_belong_to_the_target_class() -> None:
    n = int((MODEL.score(NUMBERS.coordinates(EVERYONE)) > 0).sum())
    rule = Hull(radius=0.5, clusters=[k % 2 for k in range(n)])
    found = ceopt.explain(MODEL, ROW, NUMBERS, target="yes", constraints=[rule], data=EVERYONE)
    assert found[0].cluster in {0, 1}
    with pytest.raises(InvalidValueError, match=f"clusters has {len(EVERYONE)} labels for {n} rows"):
        ceopt.explain(
            MODEL, ROW, NUMBERS, target="yes", data=EVERYONE, constraints=[Hull(clusters=[0] * len(EVERYONE))]
        )


@pytest.mark.parametrize(
    ("rows", "said"),
    [(EVERYONE.iloc[:0], "Hull needs rows of the target class"), (EVERYONE.assign(wage=np.inf), "Column 'wage' needs")],
)
def test_data_that_the_model_does_not_take_are_refused_by_name(rows: pd.DataFrame, said: str) -> None:
    """They came back as the library's own bare ValueError."""
    people = EVERYONE[["wage"]]
    model = LogisticRegression().fit(people, people["wage"] > people["wage"].median())
    space = FeatureSpace.infer(people)
    with pytest.raises(InvalidValueError, match=said):
        ceopt.explain(model, people.iloc[0], space, target=True, constraints=[Hull()], data=rows[["wage"]])


def test_without_rows_it_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="needs data, but no data is given"):
        ceopt.explain(MODEL, ROW, NUMBERS, target="yes", constraints=[Hull()])
    nobody = EVERYONE.assign(wage=0.5, size="S", home="rent")
    with pytest.raises(InvalidValueError, match="Hull needs rows of the target class, but there is none in the data"):
        ceopt.explain(MODEL, ROW, NUMBERS, target="yes", constraints=[Hull()], data=nobody)
    m = at()
    for use in (
        lambda: impose(Hull(), m.x),
        lambda: Hull().relax(ScalarBlock(concrete=True), m.x),
        lambda: Hull().violation(SPACE, None, SPACE.row(ROW)),
    ):
        with pytest.raises(InvalidValueError, match=r"data is None .* Give it rows of its own: Hull\(frame\)"):
            use()


# ---- clusters --------------------------------------------------------------------------------------------------------
BLOBS = pd.DataFrame({"wage": [0.0, 0.1, 0.2, 7.8, 7.9, 8.0, 4.0]})
LINE = FeatureSpace([WAGE])


@pytest.mark.parametrize(
    ("clusters", "labels"),
    [(2, {0, 1}), (KMeans(3, n_init=5, random_state=1), {0, 1, 2}), (AgglomerativeClustering(2), {0, 1})],
)
def test_clusters_are_found(clusters: Any, labels: set[int]) -> None:
    assert set(Hull(BLOBS, clusters=clusters).distances(LINE, {"wage": 1.0})) == labels


def test_noise_is_left_out() -> None:
    hull = Hull(BLOBS, clusters=DBSCAN(eps=0.05, min_samples=2))
    assert hull.distances(LINE, {"wage": 4.0}) == pytest.approx({0: 3.8 / 8.0, 1: 3.8 / 8.0})
    assert hull.sentence() == "in the hull of 6 rows in 2 clusters"
    given = Hull(BLOBS, clusters=[0, 0, 0, 1, 1, 1, -1])
    assert given.distances(LINE, {"wage": 4.0}) == pytest.approx(hull.distances(LINE, {"wage": 4.0}))


def test_the_clusterer_itself_is_not_fitted() -> None:
    clusterer = DBSCAN(eps=0.05, min_samples=2)
    Hull(BLOBS, clusters=clusterer).check(LINE)
    assert not hasattr(clusterer, "labels_")


# ---- words and objects -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("hull", "sentence", "code"),
    [
        (Hull(), "in the hull of the rows of the target class", "Hull()"),
        (Hull(PEOPLE), "in the hull of 4 rows", "Hull(<4 x 4>)"),
        (
            Hull(PEOPLE, radius=0.1, clusters=2),
            "within 0.1 (l1, columns by range) of the hull of 4 rows in 2 clusters",
            "Hull(<4 x 4>, radius=0.1, clusters=2)",
        ),
        (
            Hull(radius=1.5, norm="l2", scale="none", clusters=DBSCAN(), name="likely"),
            "within 1.5 (l2, raw columns) of the hull of the rows of the target class in clusters",
            "Hull(radius=1.5, norm='l2', scale='none', clusters=DBSCAN(), name='likely')",
        ),
        (
            Hull(PEOPLE, penalty=2.0, scale="none", clusters=[1, 1, 1, 1]),
            "at any distance (raw columns) from the hull of 4 rows in clusters, at 2 for each unit of l1 off it",
            "Hull(<4 x 4>, scale='none', clusters=<4 labels>, penalty=2.0)",
        ),
        (
            Hull(radius=9.0, scale={"wage": 1.0}),
            "within 9 (l1, columns by their own scales) of the hull of the rows of the target class",
            "Hull(radius=9.0, scale={'wage': 1.0})",
        ),
        (Hull(PEOPLE, sample=3), "in the hull of a sample of at most 3 of 4 rows", "Hull(<4 x 4>, sample=3)"),
    ],
)
def test_words(hull: Hull, sentence: str, code: str) -> None:
    assert (hull.sentence(), repr(hull)) == (sentence, code)


def test_a_fitted_hull_is_a_value() -> None:
    fitted = Hull(radius=0.3, clusters=2).fitted(SPACE, lambda: SPACE.coordinates(PEOPLE))
    assert fitted.sentence() == "within 0.3 (l1, columns by range) of the hull of 4 rows in 2 clusters"
    assert repr(fitted) == "Hull(<4 rows>, radius=0.3, clusters=2)"
    point = SPACE.row(ROW)
    for copied in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), fitted.widened(0.0)):
        assert copied.violation(SPACE, None, point) == fitted.violation(SPACE, None, point) > 0.0
    assert fitted.widened(0.2).radius == 0.5
    assert fitted.widened(0.2).violation(SPACE, None, point) == pytest.approx(
        fitted.violation(SPACE, None, point) - 0.2
    )
    assert Hull(penalty=1.0).widened(0.5).radius == 0.0  # no limit stays none


def test_a_hull_learns_another_space_anew() -> None:
    hull = Hull(PEOPLE)
    half = FeatureSpace([Feature("wage", kind="continuous", lower=0, upper=4), SIZE, JOB, HOME])
    point = SPACE.row(ROW | {"wage": 0.0, "size": "M", "home": "own"})
    assert hull.violation(SPACE, None, point) == pytest.approx(0.25)
    assert hull.violation(half, None, point) == pytest.approx(0.5)
    assert hull.violation(SPACE, None, point) == pytest.approx(0.25)


def test_a_sample_is_said_and_is_always_the_same() -> None:
    data = pd.DataFrame({"wage": np.linspace(0.0, 8.0, 50), "home": ["own", "rent"] * 25})
    space = FeatureSpace([WAGE, HOME])
    one, other = Hull(data, sample=10), Hull(data, sample=10)
    for hull in (one, other):
        hull.check(space)
    assert one.sentence() == "in the hull of a sample of 10 of 50 rows"
    points = [{"wage": wage, "home": 0.5} for wage in (0.0, 0.3, 7.8)]
    assert [one.distances(space, p) for p in points] == [other.distances(space, p) for p in points]
    m = pyo.ConcreteModel()
    m.x = Factual(space, {"wage": 1.0, "home": "own"})
    m.hull = impose(one, m.x)
    assert "a sample of at most 10" in model_summary(m).set_index("block").loc["hull", "title"]
    assert Hull(data, sample=50).distances(space, points[0]) == Hull(data).distances(space, points[0])


def test_a_sample_keeps_labels_with_their_rows() -> None:
    data = pd.DataFrame({"wage": np.linspace(0.0, 8.0, 40)})
    hull = Hull(data, sample=12, clusters=["low"] * 20 + ["high"] * 20)
    found = hull.distances(LINE, {"wage": 4.0})
    assert found.keys() == {"low", "high"}
    assert min(found.values()) > 0.0
    assert hull.distances(LINE, {"wage": 7.0})["low"] > 0.3


def test_what_a_penalty_is_in_a_model_of_ones_own() -> None:
    m = pyo.ConcreteModel()
    m.x = Factual(LINE, {"wage": 1.0})
    m.hull = impose(Hull(pd.DataFrame({"wage": [5.0, 7.0]}), penalty=16.0), m.x)
    m.cost = pyo.Objective(expr=m.x.raw["wage"] + m.hull.penalty)  # 1 a unit, or 16 / 8 for being off by one
    assert solve(m).objective == pytest.approx(5.0)
    m.cost.deactivate()
    m.other = pyo.Objective(expr=3.0 * m.x.raw["wage"] + m.hull.penalty)
    assert solve(m).objective == pytest.approx(10.0)


# ---- refusals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"radius": -0.1}, InvalidValueError, "Hull needs a radius of at least 0, but radius is -0.1"),
        ({"radius": float("nan")}, InvalidValueError, "radius is nan"),
        ({"radius": "0.1"}, InvalidTypeError, "Hull needs a number as radius, but radius is '0.1'"),
        ({"radius": True}, InvalidTypeError, "radius is True"),
        ({"norm": "l3"}, UnknownNameError, "norm is 'l3'. .*Choose from: l1, l2, linf"),
        ({"scale": "iqr"}, UnknownNameError, "scale is 'iqr'"),
        ({"scale": {"wage": 0.0}}, InvalidValueError, "scale.'wage'. is 0.0"),
        ({"penalty": -1.0}, InvalidValueError, "Hull needs a penalty of at least 0, but penalty is -1.0"),
        ({"penalty": float("inf")}, InvalidValueError, "penalty is inf"),
        ({"penalty": "1"}, InvalidTypeError, "penalty is '1'"),
        ({"enlarge": True, "penalty": 1.0}, InvalidValueError, "radius is 0 beside a penalty, which is no limit"),
        (
            {"enlarge": True, "radius": float("inf")},
            InvalidValueError,
            "Hull needs a radius to enlarge, but radius is inf[.]",
        ),
        ({"clusters": 0}, InvalidValueError, "Hull needs at least one cluster, but clusters is 0"),
        ({"clusters": True}, InvalidTypeError, "clusters is bool"),
        ({"clusters": 2.0}, InvalidTypeError, "clusters is float"),
        ({"clusters": "kmeans"}, InvalidTypeError, "clusters is str"),
        ({"clusters": KMeans}, InvalidTypeError, r"clusters is the class KMeans. Make one: KMeans\(\)"),
        ({"clusters": object()}, InvalidTypeError, "clusters is object"),
        ({"clusters": [[0], [1]]}, InvalidTypeError, "clusters is list"),
        ({"clusters": [[0], [1, 2]]}, InvalidTypeError, "clusters is list"),
        ({"clusters": [0, None, 1]}, InvalidValueError, "one of clusters is missing"),
        ({"clusters": [{}, 1]}, InvalidTypeError, "one of clusters is {}"),
        ({"sample": 0}, InvalidValueError, "sample is 0"),
        ({"sample": 10.0}, InvalidValueError, "sample is 10.0"),
        ({"data": [[1.0]]}, InvalidTypeError, "Hull needs a DataFrame as data, but data is list"),
    ],
)
def test_refused_when_made(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Hull(**options)


class Odd(KMeans):
    """One label, whatever it is given."""

    def fit_predict(self, *_given: Any) -> list[int]:
        return [0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scale": {"wgae": 1.0}}, UnknownNameError, "column is 'wgae'. Did you mean 'wage'"),
        ({"data": PEOPLE.iloc[:0]}, InvalidValueError, "Hull needs at least one row, but data has none"),
        ({"data": PEOPLE.drop(columns="wage")}, InvalidValueError, "'wage' is missing"),
        ({"data": PEOPLE.assign(age=3)}, UnknownNameError, "column is 'age'"),
        ({"data": PEOPLE.assign(job="z")}, InvalidValueError, "'job'.*'z'"),
        ({"data": PEOPLE.assign(wage=np.nan)}, InvalidValueError, "missing.*'wage'"),
        (
            {"clusters": 4},
            InvalidValueError,
            "as many distinct rows as clusters, but clusters asks for 4 and there are 3",
        ),
        ({"clusters": KMeans(4)}, InvalidValueError, "clusters asks for 4 and there are 3"),
        ({"clusters": [0, 1]}, InvalidValueError, "clusters has 2 labels for 4 rows"),
        ({"clusters": [-1] * 4}, InvalidValueError, "every label is -1, which is noise"),
        ({"clusters": DBSCAN(eps=1e-9)}, InvalidValueError, "every label is -1"),
        ({"clusters": KMeans(2, n_init="no")}, InvalidValueError, "KMeans fails with InvalidParameterError"),
        ({"clusters": Odd(2)}, InvalidValueError, r"Odd returns shape \(1,\) for 4 rows"),
    ],
)
def test_refused_in_a_space_before_any_work(options: dict[str, Any], error: type[Exception], message: str) -> None:
    hull = Hull(**{"data": PEOPLE, **options})
    with pytest.raises(error, match=message):
        hull.check(SPACE)
    with pytest.raises(error, match=message):
        impose(hull, at().x)
