"""Figure 3: the bounds of a plan against the radius, and how often it is valid for distributions in the ball."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from shared.journal import Journal
from shared.table import markdown
from tqdm import tqdm

from ceopt.plans import gelbrich_distance, validity_bounds
from copa import descent, synthetic
from copa.protocol import Floats
from copa.report import spread
from copa.table import N

__all__ = ["FAST", "MEASURES", "Size", "described", "draw", "in_ball", "run"]

MEASURES = (
    "ceopt/plans/validity.py",
    "examples/papers/copa/descent.py",
    "examples/papers/copa/figure_3.py",
    "examples/papers/copa/models.py",
    "examples/papers/copa/synthetic.py",
)
PANELS = {"outside": -1.0, "inside": 1.0}
#: Digits of what is drawn.
DIGITS = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done.

    Parameters
    ----------
    seeds
        How often data, present model, futures and samples are drawn.
    radii
        From 0 to 1.
    futures, samples
        Of each seed and panel, and samples of each; the paper has 1,000 and 1,000,000.
    """

    seeds: int = 5
    radii: int = 21
    futures: int = 1000
    samples: int = 20_000

    def grid(self) -> Floats:
        """Return the radii of the bounds."""
        return np.linspace(0.0, 1.0, self.radii)


FAST = Size(seeds=2, radii=5, futures=20, samples=2000)


def run(protocol: str, size: Size, journal: Journal, *, quiet: bool) -> None:
    """Compute the seeds that the journal does not have yet."""
    for seed in tqdm(range(size.seeds), unit="seed", desc=f"figure 3, {protocol}", file=sys.stderr, disable=quiet):
        if str(seed) not in journal.kept:
            journal.add(str(seed), _computed(protocol, size, seed))


def _computed(protocol: str, size: Size, seed: int) -> dict[str, Any]:
    """Return both panels: the mean is the present model, inside the set of favourable parameters, or its opposite."""
    case = synthetic.clouds(protocol, seed=seed)
    mean, covariance = synthetic.moments(case, seed)
    scored = descent.scored(mean)
    person = case.X[case.people(scored(case.X[:, :-1])[0], 1)]
    plan = descent.dice(case, scored, person, n=N)[0]
    return {panel: _panel(plan, (sign * mean, covariance), size, seed) for panel, sign in PANELS.items()}


def _panel(plan: Floats, nominal: tuple[Floats, Floats], size: Size, seed: int) -> dict[str, Any]:
    mean, covariance = nominal
    radii = size.grid()
    bounds = [validity_bounds(plan, mean, covariance, radius) for radius in radii]
    rng = np.random.default_rng(seed)
    points = []
    for future in in_ball(mean, covariance, size.futures, rng):
        draws = rng.multivariate_normal(*future, size=size.samples)
        distance = gelbrich_distance(*future, mean, covariance)
        points.append((distance, float(((draws @ plan.T) >= 0.0).all(axis=1).mean())))
    distances, shares = np.array(points).T
    error = 3.0 * np.sqrt(np.maximum(shares * (1.0 - shares), 1.0 / size.samples) / size.samples)
    # Bounds at the next radius of the grid hold for every nearer future.
    place = np.searchsorted(radii, np.minimum(distances, radii[-1]))
    lower = np.array([one.lower for one in bounds])
    upper = np.array([one.upper for one in bounds])
    within = (lower[place] <= shares + error) & (shares - error <= upper[place])
    found = {
        "lower": lower.tolist(),
        "upper": upper.tolist(),
        "least": float(shares.min()),
        "greatest": float(shares.max()),
        "within": int(within.sum()),
        "futures": len(within),
        "statuses": sorted({str(status) for one in bounds for status in (one.lower_status, one.upper_status)}),
    }
    if seed == 0:  # what is drawn
        found["points"] = np.round(points, DIGITS).tolist()
    return found


def in_ball(
    mean: Floats, covariance: Floats, count: int, rng: np.random.Generator, radius: float = 1.0
) -> Iterator[tuple[Floats, Floats]]:
    """Give moments in the Gelbrich ball, at distances uniform in [0, radius] and in random directions.

    The mean moves by delta, the covariance S to A S A with A = I + E positive semidefinite: the squared distance is
    then exactly ``|delta|^2 + trace(E S E)``, as A is the optimal map of
    the two normal distributions.
    """
    d = len(mean)
    for far in radius * rng.uniform(size=count):
        step, bend = rng.standard_normal(d), rng.standard_normal((d, d))
        bend = (bend + bend.T) / 2.0
        share = rng.uniform()
        step *= far * np.sqrt(share) / np.linalg.norm(step)
        bend *= far * np.sqrt(1.0 - share) / np.sqrt(np.trace(bend @ covariance @ bend))
        values, vectors = np.linalg.eigh(np.eye(d) + bend)
        root = (vectors * np.maximum(values, 0.0)) @ vectors.T  # nearer where an eigenvalue would be below 0
        yield mean + step, root @ covariance @ root


def described(kept: Mapping[str, Any], size: Size, protocol: str, *, is_full: bool) -> str:  # noqa: ARG001 - as the other pages
    """Return the bounds, and how many of the futures are within those of their own distance."""
    rows = []
    for panel in PANELS:
        found = [kept[str(seed)][panel] for seed in range(size.seeds)]
        ends = []
        for side in ("lower", "upper"):
            ends.append(" to ".join(spread([one[side][place] for one in found]) for place in (0, -1)))
        frequencies = f"{min(one['least'] for one in found):.3f} to {max(one['greatest'] for one in found):.3f}"
        within = f"{sum(one['within'] for one in found):,} of {sum(one['futures'] for one in found):,}"
        statuses = ", ".join(sorted({status for one in found for status in one["statuses"]}))
        rows.append([f"mean {panel}", *ends, frequencies, within, statuses])
    head = ("", "L* at radius 0 to 1", "U* at radius 0 to 1", "frequencies", "within L* and U*", "status of bounds")
    return (
        f"A plan of dice-ml's descent for one person of the synthetic data, protocol {protocol}, covariance 0.5 I; "
        f"{size.seeds} seeds of data, present model, futures and samples. Each future is a Gaussian whose moments are "
        f"within 1 of the nominal ones, its frequency of validity over {size.samples:,} samples (the paper: "
        f"1,000,000); "
        "it is held against the bounds at the next radius of the grid, up to three standard errors. Bounds: mean "
        "(standard error over seeds). Frequencies: the least and the greatest of all seeds. The figure has the bounds "
        "of all seeds and the futures of the first.\n\n" + markdown(head, rows)
    )


def draw(kept: Mapping[str, Any], size: Size, protocol: str, path: Path) -> bool:  # noqa: ARG001 - as the other figure
    """Draw both panels; without matplotlib, say so."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        print('The figure needs matplotlib: pip install ".[plot]".')
        return False
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(9.6, 3.6), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for ax, panel in zip(axes, PANELS, strict=True):
            points = np.array(kept["0"][panel]["points"]).T
            ax.plot(*points, ".", ms=3, color="#4c9a2a", alpha=0.6, label="futures, by their distance")
            for seed in range(size.seeds):
                one = kept[str(seed)][panel]
                look = {"alpha": 1.0 if seed == 0 else 0.35, "lw": 1.5 if seed == 0 else 0.8}
                ax.plot(size.grid(), one["lower"], color="#1b6ca8", label="" if seed else "lower bound L*", **look)
                ax.plot(size.grid(), one["upper"], color="#c1541b", label="" if seed else "upper bound U*", **look)
            where = r"\notin" if panel == "outside" else r"\in"
            ax.set(
                title=rf"$\hat\mu {where} \Theta$", xlabel=r"Gelbrich radius $\rho$", ylim=(-0.03, 1.03), xlim=(0, 1)
            )
        axes[0].set_ylabel("probability of validity")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(path, dpi=110)
    return True
