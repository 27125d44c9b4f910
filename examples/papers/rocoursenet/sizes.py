"""How much of each part of the study is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

__all__ = ["FAST", "FULL", "Size"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done.

    Parameters
    ----------
    seeds
        Of everything that is drawn: splits, networks, attacks, samples.
    epochs
        Of every training instead of those of the data set; None: those.
    rows, loan_rows
        Test rows a part and seed that all methods of a comparison are given; on Loan.
    slow_rows, slow_loan_rows
        Those that VanillaCF and RBR are given, which take a second or more for a row.
    years
        Loan years of the attacker, from the first to the last, and of the other sweeps, within; table 1 has all.
    steps, radii
        The attackers: their steps T, and their radii E.
    attacked
        T of the attackers with different radii.
    proximity
        Weights of the loss of proximity of a frontier.
    roar_weights, rbr_radii
        The same of ROAR-LIME, and RBR's two radii.
    trained_steps, trained_radii
        T and E that RoCourseNet is trained against.
    options
        Names of the options of training; None: all.
    simulated
        Rows of each made-up data set.
    """

    seeds: int = 5
    epochs: int | None = None
    rows: int = 100
    loan_rows: int = 10
    slow_rows: int = 10
    slow_loan_rows: int = 3
    years: int = 4
    steps: tuple[int, ...] = (1, 2, 3, 5, 7, 10, 13, 15, 20)
    radii: tuple[float, ...] = (1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.5)
    attacked: int = 15
    proximity: tuple[float, ...] = (0.02, 0.1, 0.3, 1.0, 3.0)
    roar_weights: tuple[float, ...] = (0.01, 0.03, 0.1, 0.2)
    rbr_radii: tuple[float, ...] = (0.0, 1.0)
    trained_steps: tuple[int, ...] = (1, 3, 15)
    trained_radii: tuple[float, ...] = (0.01, 0.5)
    options: tuple[str, ...] | None = None
    simulated: int = 1000


#: Of the options of training, where the released code leaves the algorithm.
TRIED = ("CounterNet", "RoCourseNet", "radius constant", "restart in each step", "head alone attacked")
#: Part -> its size.
FULL: Mapping[str, Size] = {
    "table1": Size(),
    "attack": Size(),
    "frontiers": Size(rows=30, loan_rows=20, slow_rows=3, years=3, roar_weights=(0.01, 0.03, 0.1)),
    "training": Size(trained_steps=(1, 15), trained_radii=(0.01, 0.1, 0.5), options=TRIED),
    "simulations": Size(),
    "general": Size(rows=30, years=3, roar_weights=(0.01, 0.03, 0.1)),
}
_ONE = Size(
    seeds=2,
    epochs=2,
    rows=1,
    loan_rows=1,
    slow_rows=1,
    slow_loan_rows=1,
    years=2,
    steps=(1, 2),
    radii=(0.05, 0.1),
    attacked=1,
    proximity=(0.05, 0.5),
    roar_weights=(0.03, 0.3),
    rbr_radii=(0.5,),
    trained_steps=(1,),
    trained_radii=(0.01, 0.1),
    options=("CounterNet", "RoCourseNet", "radius constant"),
    simulated=60,
)
FAST: Mapping[str, Size] = dict.fromkeys(FULL, _ONE)
