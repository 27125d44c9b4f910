"""Why numbers are as they are: each cause shown by runs with and without it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from shared.table import markdown

from leofante_potyka import protocol
from leofante_potyka.found import BY_DISTANCE, GRID, MEASURES, NAMES, NEAR, NOISE, Found, listed
from leofante_potyka.runs import DRAWS, MOMENTA, SHARES, THINNED, Table

__all__ = ["copies", "missing_rows", "networks", "threshold"]

#: Rows of the release's training parts: three quarters of 115,527, and four fifths of 39,644.
RELEASE_ROWS = {"credit": 86_645, "news": 31_715}


# ---- what the release does -------------------------------------------------------------------------------------------
def _between(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _times(
    found: Found, tables: Sequence[Table], norm: str, run: str, measure: str = "set_distance_sum"
) -> list[float]:
    """Return how many times the release's mean another run's is, of the data that is the release's own."""
    return [
        found.mean(table, name, norm, run, measure) / found.mean(table, name, norm, NOISE, measure)
        for table, name in itertools.product(tables, found.complete)
    ]


def threshold(found: Found) -> str:
    """Show what the m of the filter by distance does."""
    by_angle = [table for table in GRID if table.diversity == "angle"]
    lines = []
    for table, name, norm in itertools.product(BY_DISTANCE, found.names, protocol.NORMS):
        cells = []
        for measure in ("set_distance_sum", "k_diversity"):
            mine, text = (found.mean(table, name, norm, run, measure) for run in (NOISE, "paper"))
            theirs = found.release[table.number, name, norm][measure]
            cells += [f"{theirs:.4f}", f"{mine:.4f}", f"{text:.4f}"]
        lines.append([str(table.number), name, norm, *cells])
    head = ("table", "data", "norm", *(f"{measure}, {who}" for measure in ("sum", "k-diversity")
                                       for who in ("release's file", "`released`", "`paper`")))  # fmt: skip
    return (
        "**The m of the filter by distance.** Two candidates are to be at least 1.5 m apart, and by the paper's text m "
        "is the distance of the nearest candidate. The release takes it by numpy's norm of a matrix of one row, and in "
        "l1 that is the greatest entry: its m is the longest move of a single column, while pairs are compared in l1. "
        '`DiverseRobustExplainer(variant="released")` does so; `variant="paper"` takes m as the text has it. In l1 the '
        f"set distance (sum) by the text is {_between(_times(found, BY_DISTANCE, 'l1', 'paper'))} times the release's. "
        "Two controls: in l2, where both have the same m, it is "
        f"{_between(_times(found, BY_DISTANCE, 'l2', 'paper'))} times, and in l1 with the filter by angle, which has "
        f"no m, {_between(_times(found, by_angle, 'l1', 'paper'))} times; that is what else the variants differ in.\n\n"
        + markdown(head, lines)
    )


def copies(found: Found) -> str:
    """Show what the number of copies does."""
    head = ("table", "data", "norm", "pairs", "sum, a copy each", "sum, three copies", "max, a copy", "max, three")
    lines = []
    for table, name, norm in itertools.product(GRID, found.names, protocol.NORMS):
        one, three = (found.get(table, name, norm, run) for run in (NOISE, "three copies"))
        cells = [
            f"{each['measures'][measure][0]:.4f}"
            for measure in ("set_distance_sum", "set_distance_max")
            for each in (one, three)
        ]
        lines.append([str(table.number), name, norm, f"{one['pairs']} / {three['pairs']}", *cells])
    times = [one for norm in protocol.NORMS for one in _times(found, GRID, norm, "three copies")]
    return (
        "**One copy of each row.** Behind tables 5 to 8 there are 50 pairs: of each validation row one noisy copy, "
        "drawn again until it keeps the class. Tables 9 and 10 have three copies of each test row, those of another "
        "class left out. With three copies the set distances (sum) of tables 5 to 8 are "
        f"{_between(times)} times these.\n\n" + markdown(head, lines)
    )


# ---- what differs in the data ----------------------------------------------------------------------------------------
def missing_rows(found: Found) -> str:
    """Show what fewer training rows do, and where more of them lead."""
    head = ("table", "data", "norm", "measure", *(f"{share:g} of our rows" for share in SHARES), "all of ours",
            "line, at the release's", "release's", "apart")  # fmt: skip
    lines = []
    apart: dict[str, list[tuple[str, float, float]]] = {name: [] for name in THINNED}
    for name, table, norm, measure in itertools.product(THINNED, BY_DISTANCE, protocol.NORMS, MEASURES):
        thin = [found.draws(table, name, norm, f"share {share}", measure) for share in SHARES]
        mine = found.mean(table, name, norm, NOISE, measure)
        theirs = float(found.release[table.number, name, norm][measure])
        at = _line([*(float(np.mean(part)) for part in thin), mine], found.rows[name], RELEASE_ROWS[name])
        apart[name].append((measure, abs(mine / theirs - 1.0), abs(at / theirs - 1.0)))
        cells = [f"{np.mean(part):.4f} ± {np.std(part):.4f}" for part in thin]
        lines.append(
            [str(table.number), name, norm, NAMES[measure], *cells, f"{mine:.4f}", f"{at:.4f}", f"{theirs:.4f}",
             f"{100 * (at / theirs - 1.0):+.0f} %"]
        )  # fmt: skip
    said = [_near(name, found_apart) for name, found_apart in apart.items()]
    return (
        "**Training rows.** Candidates are training rows, and where there are more of them some are nearer. `credit` "
        "is Give Me Some Credit, of which the release's training part is missing "
        f"({RELEASE_ROWS['credit']:,} rows): the file at hand is its test part, so that people are the paper's "
        f"own, and its other {found.rows['credit']:,} rows stand in for candidates. Of `news` there are the 9,874 "
        f"rows of 2013 of 39,644, split anew: {found.rows['news']:,} of {RELEASE_ROWS['news']:,} candidates, other "
        "people, and columns scaled by the bounds of fewer rows. Drawing fewer of our rows ("
        f"{DRAWS} draws; mean ± "
        "standard deviation) shows the way, and the line through the three means over the logarithm of the number of "
        "rows says where the release's number would lead. Within 10 % of the release's, as they are and by that line: "
        f"{'; '.join(said)}. What the line leaves apart, the number of rows does not explain; what else differs in "
        f"`news` cannot be had.\n\n{markdown(head, lines)}\n\n{_splits(found)}"
    )


def _near(name: str, apart: Sequence[tuple[str, float, float]]) -> str:
    """Say how many means are within a tenth of the release's, as they are and by the line."""
    said = []
    for title, measures in (("k-distance and k-diversity", MEASURES[:2]), ("set distances", MEASURES[2:])):
        mine = [one for one in apart if one[0] in measures]
        as_is = sum(one[1] <= NEAR for one in mine)
        by_line = sum(one[2] <= NEAR for one in mine)
        said.append(f"{title} {as_is} and {by_line} of {len(mine)}")
    return f"{name}, {', '.join(said)}"


def _line(means: Sequence[float], ours: int, release: int) -> float:
    """Return the least-squares line through means at shares of our rows, over the logarithm, at the release's rows."""
    sizes = np.log([*(share * ours for share in SHARES), ours])
    slope, start = np.polyfit(sizes, means, 1)
    return float(slope * np.log(release) + start)


def _splits(found: Found) -> str:
    """Show what other people do in the data that was split anew."""
    head = (
        "table",
        "norm",
        *(f"{name}, {DRAWS} splits" for name in NAMES.values()),
        *(f"{name}, release's" for name in NAMES.values()),
    )
    lines = []
    for table, norm in itertools.product(BY_DISTANCE, protocol.NORMS):
        mine, theirs = [], []
        for measure in MEASURES:
            values = found.draws(table, "news", norm, "split", measure)
            mine.append(f"{np.mean(values):.4f} ± {np.std(values):.4f}")
            theirs.append(f"{found.release[table.number, 'news', norm][measure]:.4f}")
        lines.append([str(table.number), norm, *mine, *theirs])
    return f"What other people do, by {DRAWS} splits of `news` with the released network:\n\n" + markdown(head, lines)


def networks(found: Found) -> str:
    """Show what the networks that are trained here know."""
    trained = [name for name in found.names if f"momentum {MOMENTA[0]}/{name}/0" in found.results]
    left_out = [name for name in found.names if name not in trained]
    head = ("data", "momentum", "accuracy", "most frequent label", "rarer answer, mean", "networks with one answer")
    lines = []
    silent: dict[float, list[str]] = {momentum: [] for momentum in MOMENTA}
    for name, momentum in itertools.product(trained, MOMENTA):
        all_of = [found.results[f"momentum {momentum}/{name}/{seed}"] for seed in range(DRAWS)]
        accuracy = [one["accuracy"] for one in all_of]
        rarer = [one["rarer"] for one in all_of]
        single = sum(share == 0.0 for share in rarer)
        if single:
            silent[momentum].append(f"{single} of {DRAWS} of {name}")
        lines.append(
            [name, f"{momentum:g}", f"{np.mean(accuracy):.3f} ± {np.std(accuracy):.3f}",
             f"{np.mean([one['majority'] for one in all_of]):.3f}", f"{np.mean(rarer):.3f}", f"{single} of {DRAWS}"]
        )  # fmt: skip
    said = "; ".join(f"with momentum {momentum:g}: {listed(names)}" for momentum, names in silent.items())
    if left_out:
        said += f". Of {' and '.join(left_out)} none were trained in this run (`--networks`)"
    return (
        f"**Networks that are trained here.** Rows called *{DRAWS} networks* have split, network and noise drawn anew, "
        "all by the same seed. The release trains without momentum for 100 epochs; here momentum is scikit-learn's "
        "0.9, and data of 5,000 rows and more has 20 epochs. A network that gives one answer only has no "
        "counterfactuals; such "
        f"networks: {said}.\n\n{markdown(head, lines)}"
    )
