"""Networks of two and three layers: ceopt with HiGHS and with Gurobi beside gurobi-machinelearning, in turns."""

from __future__ import annotations

import warnings
from typing import Any

import common
import networks
import numpy as np
import peers
from networks import Cell, Way
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

TITLE = "Networks of several sizes: ceopt beside gurobi-machinelearning"
MEASURES = ("formulations/predictors/embed/networks.py", "ceopt/search")

HIGHS, GUROBI, PEER = "ceopt, HiGHS", "ceopt, Gurobi", "gurobi-machinelearning"
OURS = {HIGHS: Way("ceopt", {"solver": "highs"}), GUROBI: Way("ceopt", {"solver": "gurobi"})}
WAYS = OURS | {PEER: Way(PEER, {})}
SMALL, LARGE, DEEP = ((10, 10), (20, 20)), (50, 50), (50, 50, 50)
#: Data, layers, and who is asked: nobody compares three layers of 50. ``--models N`` asks the first N.
CELLS = [
    *(("german", layers, WAYS) for layers in (*SMALL, LARGE)),
    ("german", DEEP, OURS),
    *((data, layers, WAYS) for data in ("adult", "heloc") for layers in SMALL),
]
#: Networks that stop early are trained on little of these: of 1,000 people they refuse 2 to 246.
TO_THE_END = {"german"}
#: The goals: at most so many times the peer and 2 P, at least so many times faster, under so many seconds for everyone.
WITHIN = 1.3
FASTER = {GUROBI: 15.0, HIGHS: 5.0}
UNDER_S = {LARGE: 10.0, DEEP: 30.0}


def main() -> None:
    """Run every way on every person, interleaved, and write the report."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # 200 epochs, as by default
    options = common.arguments(TITLE, rows=20, limit=60, models=len(CELLS))
    rows, limit_s = (2, 20) if options.quick else (options.rows, options.limit)
    if PEER not in peers.available():
        raise SystemExit(f"{PEER} cannot be imported; README.md says how to install it.")
    settings = {"rows": rows, "limit_s": limit_s, "seed": common.SEED}
    settings["libraries"] = common.installed(peers.PEERS[PEER].packages)
    journal = common.Journal("network_sizes-quick" if options.quick else "network_sizes", settings)
    cells = CELLS[: options.models]
    with common.bar(None, rows * sum(len(ways) for *_, ways in cells)) as bar, threadpool_limits(1):
        for data, layers, ways in cells:
            about = {"data": data, "network": size(layers)}
            bar.set_description(" ".join(about.values()))
            if networks.is_asked(journal, about, ways, rows):
                bar.update(rows * len(ways))
                continue
            stops = data not in TO_THE_END
            network = MLPClassifier(layers, early_stopping=stops, random_state=common.SEED)
            cell = Cell(data, network, ways, rows, limit_s)
            predict = "/".join([*about.values(), "predict"])
            if predict not in journal.done:
                journal.add(predict, about | {"cpu": common.seconds_of_predict(cell.model, cell.people)})
            cell.asked(journal, about, limit_s, bar)
    asked = {(data, size(layers)) for data, layers, _ in cells}
    kept = [r for r in journal.records if (r["data"], r["network"]) in asked]
    record = {
        "settings": settings,
        "models": len(cells),
        "predict": [r for r in kept if "way" not in r],
        "records": [r for r in kept if "way" in r],
    }
    common.report("network_sizes", TITLE, MEASURES, text_of, record, quick=options.quick)
    journal.close()


def size(layers: tuple[int, ...]) -> str:
    """Return the number of layers and their width."""
    return f"{len(layers)}x{layers[0]}"


# ---- the page --------------------------------------------------------------------------------------------------------
ABOUT = (
    "Networks of ReLU neurons on scaled columns at the end of a pipeline, as scikit-learn trains them, with early "
    "stopping but for German (where they then refuse too few), {rows} people each whom they refuse, drawn with "
    "seed {seed}; cost l1, relative gap {gap:g}, one thread, {limit_s} s of the wall. Same costs, margin and reach for "
    "all; codes in HELOC's columns are amounts. Reading the model, and stating reach and codes for {peer}, happen "
    "before the clock starts. The clock then covers a person's whole question: ceopt's search for a start, bounds, "
    "program, solving and checking; the peer's variables, rows, its embedding of the network within the person's reach "
    "(which differs from one to the next), and its solving. Ways take turns person by person. A time-out counts with "
    "the seconds that it took; who has timed out on more than half of a model's people is asked no further, and the "
    "rest count as the least of these: what the peer needs is then more. An answer is invalid where the pipeline's "
    "own `predict` or the schema of the data refuses it. Size: the median over people for whom a program was built, "
    "rows with Gurobi's general constraints. Seconds are of the processor unless said; `P` is one `predict` of one "
    "row.\n\n"
)


def text_of(record: dict[str, Any]) -> str:
    """Tabulate answers and seconds, the ratios to the peer, and what of the goals is reached."""
    head = ["data", "network", "way", "statuses", "without a program", "invalid", "variables/binaries/rows",
            "seconds: median / 90 % / worst", "wall seconds"]  # fmt: skip
    cells = CELLS[: record["models"]]
    parts = {(data, layers, way): _part(record, data, layers, way) for data, layers, ways in cells for way in ways}
    lines = []
    for (data, layers, way), part in parts.items():
        statuses, invalid, sizes, wall, cpu, _ = networks.cells(part)
        bare = "" if way == PEER else sum(r["proof"] == "bound" for r in part)
        lines.append([data, size(layers), way, statuses, bare, invalid, sizes, cpu, wall])
    beside, reached, apart = [], [], [0.0]
    for data, layers, ways in cells:
        of_way = {way: parts[data, layers, way] for way in ways}
        apart.append(common.disagreement([r for part in of_way.values() for r in part]))
        for way in OURS:
            if PEER in ways:
                line, goal = _beside(data, layers, way, of_way, _predict(record, data, layers))
                beside.append(line)
                reached += goal
            if layers in UNDER_S:
                reached.append(_under(data, layers, way, of_way[way]))
    libraries = "".join(f" {name} {version}." for name, version in record["settings"]["libraries"].items())
    return (
        ABOUT.format(gap=networks.RELATIVE_GAP, peer=PEER, **record["settings"])
        + common.markdown_table(head, lines)
        + "\n\nceopt over the peer and 2 P, and how many times faster than the peer alone: of the medians, and the "
        "ratios person by person.\n\n"
        + common.markdown_table(
            ["data", "network", "way", "P", "over peer + 2 P: medians", "10 % / median / 90 %", "times faster: medians",
             "10 % / median / 90 %", "the peer's time-outs"], beside)
        + f"\n\nProved optima differ by at most {max(apart):.1e}, relatively.\n\n## Goals, by medians\n\n"
        + common.markdown_table(["data", "network", "way", "goal", "found", "reached"], reached)
        + f"\n\n{libraries.strip()}"
    )  # fmt: skip


def _part(record: dict[str, Any], data: str, layers: tuple[int, ...], way: str) -> list[dict[str, Any]]:
    wanted = (data, size(layers), way)
    return [r for r in record["records"] if (r["data"], r["network"], r["way"]) == wanted]


def _predict(record: dict[str, Any], data: str, layers: tuple[int, ...]) -> float:
    wanted = (data, size(layers))
    return next(float(r["cpu"]) for r in record["predict"] if (r["data"], r["network"]) == wanted)


def _beside(
    data: str, layers: tuple[int, ...], way: str, of_way: dict[str, list[dict[str, Any]]], predicted: float
) -> tuple[list[Any], list[list[Any]]]:
    """Return the line of a way beside the peer, and its line of the goals where there is one."""
    rows = {r["row"]: r["cpu"] for r in of_way[PEER]}
    ours = np.array([r["cpu"] for r in of_way[way]])
    theirs = np.array([rows[r["row"]] for r in of_way[way]])
    over, least = float(np.median(ours) / np.median(theirs + 2 * predicted)), ours / (theirs + 2 * predicted)
    faster, times = float(np.median(theirs) / np.median(ours)), theirs / ours
    time_outs = sum(r["timed_out"] for r in of_way[PEER])
    about = [data, size(layers), way]
    line = [*about, f"{predicted:.4f}", f"{over:.2f}", _spread(least), f"{faster:.1f}", _spread(times), time_outs]
    if layers in SMALL and way == GUROBI:
        return line, [[*about, f"at most {WITHIN:g} times (peer + 2 P)", f"{over:.2f}", _word(over <= WITHIN)]]
    if layers == LARGE:
        goal = f"at least {FASTER[way]:g} times faster than the peer"
        return line, [[*about, goal, f"{faster:.1f}", _word(faster >= FASTER[way])]]
    return line, []


def _under(data: str, layers: tuple[int, ...], way: str, part: list[dict[str, Any]]) -> list[Any]:
    """Return the line of the goals that says whether everyone is proved in time."""
    worst = max(r["cpu"] for r in part)
    proved = sum(not r["timed_out"] for r in part)
    goal = f"everyone proved under {UNDER_S[layers]:g} s"
    found = f"{proved} of {len(part)}, worst {worst:.2f}"
    return [data, size(layers), way, goal, found, _word(proved == len(part) and worst < UNDER_S[layers])]


def _spread(values: np.ndarray) -> str:
    return " / ".join(f"{np.quantile(values, share):.2f}" for share in (0.1, 0.5, 0.9))


def _word(reached: bool) -> str:
    return "yes" if reached else "**no**"


if __name__ == "__main__":
    main()
