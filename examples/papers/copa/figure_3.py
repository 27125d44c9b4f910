"""Figure 3: the bounds of a plan against the radius, and how often it is valid for distributions in the ball."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from shared.table import markdown

from ceopt.plans import gelbrich_distance, validity_bounds
from copa import descent, synthetic
from copa.protocol import Floats
from copa.table import N

__all__ = ["computed", "described", "draw", "in_ball"]

RADII = np.linspace(0.0, 1.0, 21)
#: The paper: as many futures, of 1,000,000 samples each.
FUTURES, SAMPLES = 1000, 20_000


def computed(protocol: str, *, fast: bool = False) -> dict[str, Any]:
    """Return both panels: the mean is the present model, inside the set of favourable parameters, or its opposite."""
    case = synthetic.clouds(protocol)
    mean, covariance = synthetic.moments(case)
    scored = descent.scored(mean)
    person = case.X[case.people(scored(case.X[:, :-1])[0], 1)]
    plan = descent.dice(case, scored, person, n=N)[0]
    radii = RADII[::5] if fast else RADII
    futures, samples = (20, 2000) if fast else (FUTURES, SAMPLES)
    found: dict[str, Any] = {"protocol": protocol, "radii": radii.tolist(), "samples": samples, "panels": {}}
    for panel, centre in (("outside", -mean), ("inside", mean)):
        bounds = [validity_bounds(plan, centre, covariance, radius) for radius in radii]
        rng = np.random.default_rng(0)
        points = []
        for future in in_ball(centre, covariance, futures, rng):
            draws = rng.multivariate_normal(*future, size=samples)
            distance = gelbrich_distance(*future, centre, covariance)
            points.append((distance, float(((draws @ plan.T) >= 0.0).all(axis=1).mean())))
        found["panels"][panel] = {
            "lower": [one.lower for one in bounds],
            "upper": [one.upper for one in bounds],
            "points": points,
            "statuses": sorted({str(status) for one in bounds for status in (one.lower_status, one.upper_status)}),
        }
    return found


def in_ball(
    mean: Floats, covariance: Floats, count: int, rng: np.random.Generator, radius: float = 1.0
) -> Iterator[tuple[Floats, Floats]]:
    """Give moments in the Gelbrich ball, at distances uniform in [0, radius] and in random directions.

    The mean moves by delta, the covariance S to A S A with A = I + E positive semidefinite: the squared distance is
    then exactly ``|delta|^2 + trace(E S E)`` (specification 1.3).
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


def described(found: dict[str, Any]) -> str:
    """Return the bounds, and how many of the futures are within those of their own distance."""
    rows, radii = [], np.array(found["radii"])
    for panel, one in found["panels"].items():
        distances, shares = np.array(one["points"]).T
        error = 3.0 * np.sqrt(np.maximum(shares * (1.0 - shares), 1.0 / found["samples"]) / found["samples"])
        # Bounds at the next radius of the grid hold for every nearer future.
        place = np.searchsorted(radii, distances)
        within = (np.array(one["lower"])[place] <= shares + error) & (shares - error <= np.array(one["upper"])[place])
        ends = [f"{one[side][0]:.3f} to {one[side][-1]:.3f}" for side in ("lower", "upper")]
        frequencies = f"{shares.min():.3f} to {shares.max():.3f}"
        rows.append([f"mean {panel}", *ends, frequencies, f"{within.sum()}/{len(within)}", ", ".join(one["statuses"])])
    head = ("", "L* at radius 0 to 1", "U* at radius 0 to 1", "frequencies", "within L* and U*", "status of bounds")
    return (
        "A plan of dice-ml's descent for one person of the synthetic data, covariance 0.5 I. Each future is a Gaussian "
        "whose moments are within 1 of the nominal ones, its frequency of validity over "
        f"{found['samples']:,} samples (the paper: 1,000,000); it is held against the bounds at the next radius of the "
        "grid, up to three standard errors.\n\n" + markdown(head, rows)
    )


def draw(found: dict[str, Any], path: Path) -> bool:
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
        for ax, (panel, one) in zip(axes, found["panels"].items(), strict=True):
            ax.plot(
                *np.array(one["points"]).T, ".", ms=3, color="#4c9a2a", alpha=0.6, label="futures, by their distance"
            )
            ax.plot(found["radii"], one["lower"], color="#1b6ca8", label="lower bound L*")
            ax.plot(found["radii"], one["upper"], color="#c1541b", label="upper bound U*")
            where = r"\notin" if panel == "outside" else r"\in"
            ax.set(
                title=rf"$\hat\mu {where} \Theta$", xlabel=r"Gelbrich radius $\rho$", ylim=(-0.03, 1.03), xlim=(0, 1)
            )
        axes[0].set_ylabel("probability of validity")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(path, dpi=130)
    return True
