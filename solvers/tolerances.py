"""Tolerances of the solvers' room, each with its reason: what counts as kept, as optimal, as rounding.

A size without a unit is absolute, in the program's own units; "of" says what it is a share of.
"""

from __future__ import annotations

from typing import Final

# ---- What a point may miss -------------------------------------------------------------------------------------------
#: Ten times the solvers' own feasibility tolerance of 1e-6: a point that misses the program by more is reported so.
NOTABLE_VIOLATION: Final = 1e-5
#: Up to here a point that MOSEK does not vouch for is held all the same: the solvers' usual feasibility tolerance.
UNVOUCHED_VIOLATION: Final = 1e-6
#: A continuous method's last point that violates the program by more than the usual tolerance is none.
CUT_SHORT_VIOLATION: Final = 1e-6
#: Greatest primal or dual residual, relative, of a point that counts as feasible: the solvers' usual one.
FEASIBLE_RESIDUAL: Final = 1e-6
#: By which a row or cone of constants may miss its side: the solvers' own feasibility tolerance.
CONSTANT_MISS: Final = 1e-7
#: By which a cone of constants may miss where it becomes a quadratic row: rounding.
CONSTANT_CONE_MISS: Final = 1e-9
#: By which a program of constants alone may be violated and count as one point: SCIP's feasibility tolerance.
COUNTED_VIOLATION: Final = 1e-6
#: Of a cone's or row's entries, if they are above 1: a point of SCIP's that is farther outside is no optimum.
SCIP_MISSED: Final = 1e-6
#: The same of an exponential cone of Gurobi's.
GUROBI_MISSED_CONE: Final = 1e-6
#: A row missed by ten times SCIP's tolerance, and by more than its sum is rounded, asks for a finer run.
SCIP_MISSED_ROW: Final = 1e-5
#: Of what a row adds up: a row missed by less is missed by rounding, which a finer run would not mend.
SCIP_ROUNDED_ROW: Final = 1e-9
#: Tolerance of rows in a second run; SCIP's linear programs take none below 1e-10.
SCIP_FINE_TOLERANCE: Final = 1e-9
#: Of what a row adds up: up to this violation a solver may call a point feasible.
CALLED_FEASIBLE: Final = 1e-4
#: A point that overrules a solver keeps the program better than the solver's own tolerance of 1e-6 asks.
OVERRULING_VIOLATION: Final = 1e-9
#: Of what a program's rows add up: what a point may miss them by, to be held against a solver's word.
KEPT_SHARE: Final = 1e-9
#: A point is in a cone if it is at most this far outside, in units in which the head of the cone is near 1.
CONE_TOLERANCE: Final = 1e-8
#: HiGHS's own for integer programs: what its points may miss a linear row by.
ROW_TOLERANCE: Final = 1e-6
#: How near its cones the relaxation of an integer program is before integers are looked for.
ROUGH_CONES: Final = 1e-4
#: How far from a whole number, relatively, a solver's value of an integer may be: above what solvers call whole.
LOADED_WHOLE: Final = 1e-4
#: Of what a row adds up, or of a value: what a start may miss a row, a bound or a whole number by, as points do.
START_MISS: Final = 1e-5
#: An integer's bound this close to a whole number is that number: it may have been computed.
WHOLE_BOUND: Final = 1e-9

# ---- What solvers are asked for --------------------------------------------------------------------------------------
#: The finest that Gurobi takes; see the table of parameters in gurobi/session.py for what its own 1e-6 did.
GUROBI_TOLERANCE: Final = 1e-9
#: The barrier's tolerance at a second attempt, at most; else a share of the gap that is asked for.
BARRIER_COARSEST: Final = 1e-8
#: Neighbouring tangents differ by little, so HiGHS's finest tolerance comes first. What is infeasible under it may be
#: feasible as HiGHS commonly understands it, and numbers that are too far apart are solved under a coarser one only.
LINEAR_PROGRAM_TOLERANCES: Final = (1e-10, 1e-9, 1e-7)
#: Of HiGHS's searches for integers: its default where the first finds nothing or fails.
INTEGER_SEARCH_TOLERANCES: Final = (1e-9, 1e-6)
#: Tighter ones were seen to end further from the optimum: the last steps then spoil the point.
CLARABEL_TOLERANCE: Final = 1e-9
#: The certificate stops the run, where it is good enough before that.
SCS_TOLERANCE: Final = 1e-10
#: Residual at which SCS may call a program infeasible; conic/session.py looks at its ray again.
SCS_INFEASIBLE: Final = 1e-9

# ---- Gaps and bounds -------------------------------------------------------------------------------------------------
#: No smaller relative gap is promised: it is Gurobi's finest tolerance, and what SCIP takes for zero.
LEAST_GAP: Final = 1e-9
#: Of the greatest cost: what a column that is 0 up to rounding adds to the objective.
ZERO_SHARE: Final = 1e-14
#: No smaller relative gap is asked of the duals of a QP: HiGHS stops its residuals at 1e-7.
LEAST_QP_GAP: Final = 1e-7
#: HiGHS looks for no integer solution that is better by less: its MIP feasibility tolerance, absolute.
HIGHS_IMPROVEMENT: Final = 1e-6
#: No smaller relative gap is promised with tangents: HiGHS solves linear programs to 1e-10 at best.
LEAST_TANGENT_GAP: Final = 1e-8
#: No smaller gap is asked of an interior-point method: tighter tolerances end in "almost solved" (spec, section 15).
LEAST_CONIC_GAP: Final = 1e-7
#: Of what is added up in bound and objective: from this difference on one contradicts the other.
CONTRADICTION_SHARE: Final = 1e-6
#: No smaller difference contradicts, whatever is added up: a sum of nothing has no share.
LEAST_CONTRADICTION: Final = 1e-9
#: A bound beyond the point in hand by no more, relatively, is off by what rows may be missed by.
BOUND_NOISE: Final = 1e-8
#: Of the scaled objective: a second search of SCIP's is to gain this much at least.
LEAST_GAIN: Final = 1e-5
#: Of the objective's terms: seen of dual objectives at optima right to 1e-8.
GUROBI_DUAL_RESIDUAL: Final = 1e-10
#: Of the objective, so that rounding excludes no point as good as the one in hand.
INCUMBENT_SLACK: Final = 1e-6

# ---- What is rounding ------------------------------------------------------------------------------------------------
#: Of the terms that an objective adds up: some roundings of double precision.
GUROBI_ROUNDING: Final = 1e-15
#: Of the greatest cost: an objective below is 0.
GUROBI_NOTHING: Final = 1e-12
#: Size of a quadratic row's terms: below, its columns are below 1e-10.
NO_QUADRATIC_TERMS: Final = 1e-20
#: Of the sum of the objective's terms: some roundings of double precision.
SCIP_ROUNDING: Final = 1e-14
#: Of its side: a cut that a solution breaks by less is kept by it, as solvers keep rows.
CUTS_NOTHING: Final = 1e-6
#: Of what a row adds up: so near its side it may have a dual, as solvers' points keep their rows.
ACTIVE: Final = 1e-6
#: Of the objective's terms: what duals may leave open of an optimum to count as its own.
PROVED_BY_DUALS: Final = 1e-6
#: What SCIP takes for zero.
SCIP_EPSILON: Final = 1e-9
#: Of reduced costs, and of the row that holds a quadratic objective: what SCIP tells apart there.
SCIP_RESOLUTION: Final = 1e-7
#: Scaled costs from here on are far above the tolerance of reduced costs.
SCIP_SEEN_COST: Final = 1e-5
#: SCIP takes coefficients below its epsilon of 1e-9 for zero.
SCIP_DROPPED: Final = 1e-8
#: What the least coefficient of a row with such coefficients is raised to.
SCIP_SMALLEST: Final = 1e-6
#: Of the greatest cost: what is left of a cost that is wholly in the squares.
SCIP_NO_COST: Final = 1e-13
#: A reduced cost below this share of what it is the difference of, towards a bound that is not there, is rounding.
HIGHS_NO_REDUCED_COST: Final = 1e-9
#: Share of the sums' terms by which the bound may be off.
HIGHS_BOUND_ROUNDING: Final = 1e-12
#: Branching on a column counts as gaining this share of a node's bound at least, so that the other side counts too.
NO_GAIN: Final = 1e-10
#: Rows of branch and price that are missed by this, in all, are met.
NOT_MISSED: Final = 1e-9
#: A column of integers that is this near to a whole number at a node of branch and price is held there.
WHOLE: Final = 1e-9
#: Of the greatest cost: a ray that gains less gains nothing.
HIGHS_RAY_TOLERANCE: Final = 1e-9
#: A bound so near the objective, relatively, is off by rounding only.
HIGHS_ROUNDING: Final = 1e-12
#: Of the objective's terms: what their sum may be off, and HiGHS's of the same terms.
TANGENT_ROUNDING: Final = 1e-12
#: Of the terms that are added up in a cone's entry: rounding.
BLOCK_NOISE: Final = 1e-12
#: A cut that removes less, in units of the cone's head, is rounding.
CUT_DEPTH: Final = 3e-10
#: A flatter tangent says what z >= 0 says.
FLATTEST_TANGENT: Final = 1e-6
#: Least unit of an entry, of the one that is guessed.
SMALLEST_ENTRY: Final = 1e-4
#: Of the greatest cost: a direction that gains more improves for ever.
IMPROVING_RAY: Final = 1e-6
#: Of the greatest cost: a direction that gains less gains nothing, and the program is bounded.
USELESS_RAY: Final = 1e-9
#: Of what is added up: by which a ray may miss a cone or a zero.
RAY_MISS: Final = 1e-6
#: And by which where its objective and columns have units of 1: it speaks for points below 1e9.
RAY_NOISE: Final = 1e-9
#: Of the greatest absolute eigenvalue of a block: rounding of a semidefinite matrix.
SEMIDEFINITE_ROUNDING: Final = 1e-9
#: By which completing a square may miss.
SQUARE_ROUNDING: Final = 1e-11
#: Eigenvalues below this share of the greatest of their block are rounding.
RANK_ROUNDING: Final = 1e-12

# ---- Sizes of numbers ------------------------------------------------------------------------------------------------
#: By which rows of large numbers are multiplied: a power of two, which rounds nothing.
LARGE_ROW_SHRINK: Final = 2.0**-10
#: Share of a row's greatest coefficient below which a tolerance hides the step.
HIDDEN_STEP: Final = 1e-6
#: Share of a row's greatest coefficient below which one, in units of its column's width, is rounding of sums.
NO_COEFFICIENT: Final = 2.0**-48
#: A unit that rows suggest is extreme from here on.
SMALL_UNIT: Final = 1e-4
#: Sizes of coefficients that no solver's tolerance hides.
ORDINARY_COEFFICIENTS: Final = (1e-8, 1e9)
#: Sizes of the widths and values of continuous columns that no solver's tolerance hides.
ORDINARY_WIDTHS: Final = (2.0**-24, 2.0**24)
#: HiGHS would drop smaller coefficients silently.
DROPPED_COEFFICIENT: Final = 1e-9
#: What a row's sum in double precision may be off by, relative to its absolute terms: no solver can keep it closer.
ROW_ROUNDING: Final = 1e-15
