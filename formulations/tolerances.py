"""Tolerances of the formulations, each with its reason: what counts as a move, as decided, as rounding.

A size without a unit is absolute, in the program's own units; "of" or "share" says what it is a share of.
"""

from __future__ import annotations

from typing import Final

# ---- Columns and their steps -----------------------------------------------------------------------------------------
#: Of a number, or of the width of its column, whichever is less; of a step: what a solver's tolerance of 1e-6 moves.
TRACE: Final = 1e-6
#: What adding up in double precision leaves of the numbers that are added.
SUM_ROUNDING: Final = 1e-12
#: Coefficients of a row below a solver's feasibility tolerance are noise to it: HiGHS 1.15 was seen to presolve a
#: better answer away from rows with coefficients of 1e-7 (tests/formulations/test_edges.py).
TINY: Final = 1e-6
#: Least distance of the two sides of a split, as a share of the column's range or, if that is more, of its unit in the
#: program: rows are right to 1e-6 of a unit, two of them lie between a cut and the caller's variable, and a binary is
#: right to 1e-6, which its row turns into as much of the range.
SPLIT_GAP: Final = 1e-5
#: A number this close to a decimal one, as a share of itself, is that one: adding up a few decimals leaves so much.
DECIMAL_ROUNDINGS: Final = 4 * 2.0**-53
#: A multiple of a step is computed as ``x0 + k * step``: off by a rounding of the product and one of the sum.
STEP_ROUNDINGS: Final = 4 * 2.0**-53

#: Square of a correlation that only rounding keeps from 1.
CORRELATED: Final = 1.0 - 1e-6

# ---- Decisions and scores --------------------------------------------------------------------------------------------
#: Shares of trees are whole counts up to rounding.
WHOLE_SHARE: Final = 1e-9
#: Ten times the feasibility tolerance that mixed-integer solvers use: a smaller margin is inside their noise.
LEAST_MARGIN: Final = 1e-5
#: Share of the way to the decision that a margin may add: of what an answer may cost beyond the infimum a quarter, as
#: squares cost twice the share and a network rises less near the decision than on the way there.
MARGIN_OF_THE_WAY: Final = 2.5e-6
#: Share of the numbers that a score adds up which their sum is told apart by: a solver's, and that of float32.
MARGIN_OF_TERMS: Final = {"float64": 1e-11, "float32": 1e-6}
#: And which a solver misses their sum by, through its own substitutions.
MARGIN_OF_A_ROW: Final = {"float64": 1e-9, "float32": 1e-6}
#: And by which two orders of adding up the same numbers differ: 32 roundings of float64, 16 of float32.
OWN_ROUNDING: Final = {"float64": 2.0**-48, "float32": 1e-6}
#: A margin below a solver's tolerance is stated in larger units, in which it is ten times the tolerance.
SOLVER_TOLERANCE: Final = 1e-6
#: Sizes of scores whose squares, and margins of 1e-11 of them, are numbers of full precision.
READABLE_SCORES: Final = (1e-130, 1e130)
#: Equal counts of votes, added up as floats, are equal to this.
VOTE_ROUNDING: Final = 1e-9
#: Least distance, in a row, between what it admits and what it does not, where the scores on both sides are known: a
#: hundred times a solver's tolerance.
CLEAR_DISTANCE: Final = 1e-4
#: Sums that differ by less than this share of their size are one.
SAME_SUM: Final = 1e-13
#: Below the decision's own rounding a row is lowered by this share of the score's size at least: what compiling and
#: presolving a row may lose.
LEVEL_ROOM: Final = 1e-10
#: Share of a score that adding it up may cost: a margin is raised by it, so that what counts stays >= 0.
SCORE_ROUNDING: Final = 2.0**-40
#: How far a piecewise probability may be from the link, unless a caller says.
USUAL_LINK_ERROR: Final = 1e-4
#: Finer, the grid of the proof takes millions of points.
LEAST_LINK_ERROR: Final = 1e-5
#: Scores up to which a logistic link is stated as a curve: beyond, its exponentials are too large for a solver.
MOST_CURVED_SCORE: Final = 18.0
#: Room of the odds of a curve, relative to them: without, SCIP loses points, as a row and its opposite leave it none.
ODDS_ROOM: Final = 1e-6
#: What a link in float32, and 1 less it, are rounded by.
PROBABILITY_ROUNDING: Final = 2e-7
#: Scores are this much beyond their bounds at most, relative to them: what sums of rows are rounded by.
SCORES_BEYOND_BOUNDS: Final = 1e-9
#: A link that still rises by more between scores this close, relative to their size, jumps.
LINK_JUMP: Final = 1e-9
#: Half the distance of two floats in [1, 2).
UNIT_ROUNDING: Final = {"float32": 2.0**-24, "float64": 2.0**-53}
#: What a sum may be off by, of its absolute terms: far above rounding, far below any term that was lost in reading.
READ_ROUNDING: Final = {"float32": 2e-5, "float64": 1e-9}
#: What a probability may be off by beside that: roundings of the exponential.
LINK_ROUNDING: Final = {"float32": 2e-6, "float64": 1e-12}
#: Bounds of neurons are moved outwards by this share of their size, a million times what rounding of float64 takes.
BOUNDS_OUTWARDS: Final = 1e-9
#: A bound that passes zero by no more than this share of the other one is the rounding of a neuron that never switches.
NEVER_SWITCHES: Final = 3e-9
#: The most that this may be, as what is dropped is an error of the score.
ALMOST_NEVER_SWITCHES: Final = 1e-7

# ---- Costs -----------------------------------------------------------------------------------------------------------
#: The budget is widened by this share before anything is ruled out, for the rounding of costs.
BUDGET_SLACK: Final = 1e-9
#: Off-diagonal pairs of a given matrix that differ by less, relative to the greatest entry, are rounding.
GIVEN_SYMMETRIC: Final = 1e-8
#: Eigenvalues of a correlation matrix below this share of the greatest are 0: its columns are collinear.
COLLINEAR: Final = 1e-10
#: Eigenvalues that are negative by less, of a matrix with unit diagonal, are rounding.
NEGATIVE_EIGENVALUE: Final = 1e-9
#: What rounding may add to the length of a move that the others cannot shorten, as a share of its length alone.
UNSHORTENED_MOVE: Final = 1e-9

# ---- Rules -----------------------------------------------------------------------------------------------------------
#: A count of further changes this close to a whole number is one: a solver's tolerance of integers.
WHOLE_COUNT: Final = 1e-6
#: Rounding of the bound, relative: the rows ask for more, so that a solver's tolerance does not use this up.
ROBUST_BOUND_ROUNDING: Final = 1e-9
#: Of the greatest entry of a factor: an entry below is rounding.
NO_ROBUST_ENTRY: Final = 1e-12
#: Of what is added up: by how much a number without steps may miss the formula that it follows from.
PRODUCT_ROUNDING: Final = 1e-9
#: Sizes of the factors of a bilinear row, and of the product, that count in their own unit: solvers hold such a row to
#: 1e-6 of its own, and SCIP takes a coefficient below 1e-9 for 0.
BILINEAR_SIZES: Final = (1e-1, 1e4)
#: Sizes of a product whose variables count in its own unit; others count in a power of two of it.
ORDINARY_PRODUCTS: Final = (5e-2, 1e7)
#: Greatest value of a product that is written digit by digit, over its least: beyond, HiGHS 1.15.1 called answers
#: optimal that were up to 41 % too dear, and one question infeasible that was not, in 4 of 250.
RESOLVED_PRODUCTS: Final = 1e8
#: Share of the distance by which an answer may miss it: what a solver takes for 0.
APART_TOLERANCE: Final = 1e-6
#: Share by which rows ask for less, so that sums of decimal steps that are equal on paper are so in binary.
DISTANCE_ROUNDING: Final = 1e-9
#: A distance is found once the bound on it is this near, relative beyond 1.
HULL_DISTANCE_FOUND: Final = 1e-9
#: By how much a solver's tolerances may leave the slack too long, as a share of its size.
HULL_TOLERANCE: Final = 1e-6
#: Coefficients that a row may have as they are; with smaller or larger ones it is multiplied by a power of two.
ORDINARY_HULL_COEFFICIENTS: Final = (1e-4, 1e7)
#: What rounding may do to a value, as a share of its column's width and of its size.
VERTEX_ROUNDING: Final = (1e-9, 1e-12)

# ---- Published programs ----------------------------------------------------------------------------------------------
#: Of the greatest entry: two entries of a covariance that differ by more are no rounding.
COVARIANCE_SYMMETRIC: Final = 1e-9
#: Of the greatest eigenvalue: one farther below 0 is no rounding.
COVARIANCE_INDEFINITE: Final = 1e-9
#: Of what a variance is added up from: one below is 0.
VARIANCE_ROUNDING: Final = 1e-13
#: Of the greatest eigenvalue of the correlations: one below is 0.
COVARIANCE_RANK: Final = 1e-12
#: Of the greater of two means, column by column: means that are closer differ by the order of adding up only.
SAME_MEANS: Final = 1e-14
#: Of the root: a step of Newton's that is less is rounding.
LOGDET_STEP: Final = 1e-15
#: Radii below: the third term of the series is less than the rounding of 1, and Newton's function rounding alone.
LOGDET_SERIES: Final = 1e-12

#: Share by which a region is wider in a program than where it is checked: x at theta + r has x - r <= theta by one ulp.
REGION_ROOM: Final = 1e-7
