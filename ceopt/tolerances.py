"""Tolerances of the outer room, each with its reason: what counts as cheaper, as equal, as rounding.

A size without a unit is absolute, in the program's own units; "of" or "share" says what it is a share of.
"""

from __future__ import annotations

from typing import Final

# ---- Answers and bounds ----------------------------------------------------------------------------------------------
#: A cost is below another, or below a bound, if it is by more than this share: what a solver's tolerances explain.
CHEAPER: Final = 1e-6
#: And by more than this, for costs of about 0.
LEAST_CHEAPER: Final = 1e-9
#: Values this close, relatively, are told apart by a solver's tolerance only.
SAME_VALUE: Final = 1e-6
#: First margin of a repair that began at none, as a share of the one that a solver can be trusted with.
FIRST_REPAIR: Final = 2e-4
#: The heuristic asks for this much more than the margin, relatively, or the program would cut off its own start.
START_MARGIN_ROUNDING: Final = 1e-6
#: Share of an answer's cost that a default margin may add.
COST_OF_MARGIN: Final = 1e-5
#: Of the least margin that is safe near a person: what a model says of a point farther from the decision is believed
#: where it was asked about many rows at once. The margin is 2.5e-6 of a person's way, or what the floats of the score
#: make necessary, so that half of it is beyond what the order of a sum can shift.
CLEAR_OF_THE_DECISION: Final = 0.5
#: Share of the way to the decision that a change may add while a rule is what asks for it: at an optimum nothing is to
#: spare, so that every change which helps by a hair seems to be asked for by the model.
LITTLE_OF_THE_WAY: Final = 0.05
#: A number this close to an end of its reach, or to the factual's, relatively to its reach, stands there.
NEAR_AN_END: Final = 1e-6
#: Steps from here on are ordinary in whatever unit they are stated: a hundred times what a solver's tolerance moves.
FINE_STEP: Final = 1e-4
#: Costs below are the rounding of coordinates: no unit makes a solver see them.
COST_NOISE: Final = 1e-12
#: Slack of a point that the model refuses by a hair.
REFUSED_BY_A_HAIR: Final = 1e-300
#: A bound this close to the cost, relatively, is off by the rounding of sums only.
BOUND_ROUNDING: Final = 1e-13
#: Of its cost: what rounding an answer to the decimals of its data may cost at most, whatever gap is asked for.
ROUNDED_GAP: Final = 1e-6
#: Share of a value that is rounding of floats, not a digit that somebody chose; and a gap that is none.
DIGIT_NOISE: Final = 1e-12
#: By how much solvers are off where there are cones, relatively and absolutely: without that room, SCIP found no point
#: within the l2 radius that it had just called the least.
CURVED_ROOM: Final = 1e-6
#: Share of a width that is the rounding of floats.
WIDTH_NOISE: Final = 1e-12
#: Relative gap at which a width is the least.
WIDTH_GAP: Final = 1e-6
#: By how much more, relatively and at least, radii grow where the solver finds nothing at the very least ones.
WIDTH_ROOM: Final = ((0.0, 0.0), (1e-6, 1e-6), (1e-4, 1e-5))
#: A score whose sum may be off by more than this is bounded by no sum of ours: at 1e16 the model's own drops units.
UNSURE_SUM: Final = 1e-4
#: What a column counts at least, of its own weight, beside those in which neurons switch.
LEAST_INFLUENCE: Final = 1e-6
#: A point is cheaper if its price is less by more than this share.
CHEAPER_START: Final = 1e-9
#: Shares of the way to a crossing are multiples of this, so that no last digit of a sum moves a point.
CROSSING_ROUNDING: Final = 2.0**-30
#: A crossing is found where its line is this share of the way to it, a tenth of what a default margin may cost.
CROSSING_FOUND: Final = 1e-6
#: Of a step: a number this far beyond one is that one.
STEP_ROUNDING: Final = 1e-9
#: Share of a cost, or of a number, that adding up a few prices may leave: bounds of boxes are lowered by it.
BOX_BOUND_ROUNDING: Final = 1e-12

# ---- Sets of answers -------------------------------------------------------------------------------------------------
#: A comparison with a limit holds if it fails by no more than the rounding of the numbers compared.
LIMIT_ROUNDING: Final = 1e-12
#: By what share of it a distance in the tree may differ from the same distance computed here.
TREE_DISTANCE_ROUNDING: Final = 1e-9
#: A cost that exceeds another by this share of it is equal to it: sums are added in different orders.
EQUAL_COSTS: Final = 1e-9
#: Counts of votes are equal up to this.
EQUAL_VOTES: Final = 1e-9
#: What rounding of a pipeline's float64 takes at most, as a share of the greatest terms.
LINEAR_PART_ROUNDING: Final = 1e-11
#: Sums of a few prices in different orders differ by less than this share.
PRICE_ROUNDING: Final = 1e-12
#: A row that is missed by more than this share of its side, or by this of a side below 1, is broken: what solvers keep.
BROKEN_ROW: Final = 2e-6
#: A linear score, and the sum of what its columns add to it, differ by less than this share of the sizes added up.
GAIN_ROUNDING: Final = 1e-11
#: A price this share of a step below the next one is that one.
NEXT_STEP: Final = 1e-6
#: Share of an allowance that rounding of sums may take.
ALLOWANCE_ROUNDING: Final = 1e-9
#: Relative gap that solvers are asked for: below what counts as proved, so that it is reached.
SUBSET_GAP_ASKED: Final = 1e-9
#: Relative gap up to which a value counts as proved.
SUBSET_GAP_PROVED: Final = 1e-6
#: Share of the greatest number of a program that is rounding.
SUBSET_ROUNDING: Final = 1e-12
#: A swap counts if it gains at least this share: less is rounding, and could go round in circles.
LEAST_SWAP_GAIN: Final = 1e-12

# ---- Plans -----------------------------------------------------------------------------------------------------------
#: Of the size of what is added up in a score.
PROJECTION_ROUNDING: Final = 1e-13
#: Of 1 + the objective: an exchange gains at least so much.
EXCHANGE_GAIN: Final = 1e-7
#: Of the angle: where the last search ends.
FINE_ANGLE: Final = 1e-6
#: Of |F| / |mean|: a least spread below this is 0.
STILL_SPREAD: Final = 1e-8
#: At 0 the cone is a ray, without interior.
LEAST_ANGLE: Final = 1e-5
#: Length of Adam's last steps, in units.
LAST_STEP: Final = 1e-5
#: Of the greatest slope so far: what Adam divides by is more.
LEAST_SLOPE: Final = 1e-12
#: What the published descent adds to the size that Adam divides by: Adam's own default.
DESCENT_LEAST_SIZE: Final = 1e-8
#: By how much the objective may change in a step of the published descent and count as standing still.
DESCENT_STILL: Final = 1e-7
#: Softness of the least ratio at the first and last step, of the size of the ratios.
SOFTNESS: Final = (0.2, 1e-4)
#: Of the objective: plans closer than this are taken for the same optimum.
ALIKE_PLANS: Final = 1e-4
#: Relative gap that SCIP is asked for: that of ``explain``.
PLAN_GAP: Final = 1e-6
#: Least bound on how far counterfactuals may be, as a program takes none of 0.
LEAST_WITHIN: Final = 1e-6
#: Of 1 + the margin: by what the greatest score may miss it and count as equal.
MARGIN_ROUNDING: Final = 1e-12
#: Of 1 + the proximity: counterfactuals closer than this coincide.
COINCIDING: Final = 1e-9
#: Of 1 + the margin: what a point of a feature map may miss.
MARGIN_MISSED: Final = 1e-9
#: Of |F| |x|: a counterfactual whose score spreads less has no variance.
STILL_SCORE: Final = 1e-12
#: A score within this of 0, relative to the sizes that it is made of, is on the boundary: favourable is above 0.
BOUNDARY_ROUNDING: Final = 1e-12
#: A system F'x = 0 is solved if its residual is below this, relative to F and x.
SOLVED_RESIDUAL: Final = 1e-10
#: Weights that differ by less are equal: the solver's own accuracy, on probabilities.
EQUAL_WEIGHTS: Final = 1e-6
#: A row of the inequalities may be missed by rounding, relative to its size.
INEQUALITY_ROUNDING: Final = 1e-12
#: Of the sizes at hand: how far out of reach and of an inequality a solver's point may be.
CORRECTION_MISSED: Final = 1e-5
#: Of an entry: what rounding leaves of one that the move takes to 0.
ENTRY_NOISE: Final = 1e-14
#: A part of less mass is no more than the solver's tolerance, and moves nothing.
FAINT: Final = 1e-9
#: A score within this of 0, relative to the sizes that it is added up from, is 0.
SCORE_ROUNDING: Final = 1e-14
#: Mass of the rest where it is none: what the bound is missed by at most.
LEAST_MASS: Final = 1e-8
#: Of the greatest eigenvalue: a direction of less variance predicts nothing.
PREDICTING_RANK: Final = 1e-8
#: How far beyond its hyperplane an atom is set, in units of the parameters.
BESIDE_HYPERPLANE: Final = 1e-12
#: Of the scalar form's search: kappa rises to its optimum faster than linearly.
SCALAR_GAP: Final = 1e-7
#: Residual of a system of unit columns that is 0 but for rounding; its square is the bound.
SYSTEM_ROUNDING: Final = 1e-9
#: Two directions that are nearer are one, up to the rounding of their own norms.
SAME_DIRECTION: Final = 1e-12
#: Of the greatest singular value of unit rows: one below adds no direction.
DIRECTION_RANK: Final = 1e-10
#: A linear score equals its coefficients' up to rounding, of single precision at worst.
LINEAR_SCORE: Final = 1e-6

# ---- Surrogates ------------------------------------------------------------------------------------------------------
#: Added to the size of a step's gradient, so that none is divided by 0; of Adam as published.
ADAM_LEAST: Final = 1e-8
#: A double root of a cubic equation comes out as a pair with imaginary parts of the root of the rounding.
DOUBLE_ROOT: Final = 1e-7
#: Of a penalty that is a loss of at most its weight plus a cost: an interval that could hold no more is closed.
PENALTY_GAP: Final = 1e-6
#: Relative distance of the value from its proved bound, below which a sum of norms is least.
NORM_SUM_CLOSED: Final = 1e-9
#: At which Newton's steps end: the next would gain its square, and below is the rounding of a linear system.
NORM_SUM_EXACT: Final = 1e-12
#: Of what a variance is added up from, at most: one below is rounding.
NORM_SUM_NOISE: Final = 1e-12
#: Of a column's own variance: what the other columns leave of it, if it is that little, is rounding.
NORM_SUM_PIVOT: Final = 1e-11
#: Of the greatest eigenvalue of the correlations, which is at least 1: one below is 0.
NORM_SUM_RANK: Final = 1e-12
#: Of a vector's length: its part in a null space, if it is that little, is rounding.
NORM_SUM_NULL: Final = 1e-8
#: Of the greatest that a score's variance may be at its columns' variances: one below is 0.
SCORE_VARIANCE_ROUNDING: Final = 1e-14

# ---- Training -------------------------------------------------------------------------------------------------------
#: Probabilities of a model and of the network that stands for it differ by the rounding of single precision at most.
SAME_SHARES: Final = 1e-4
#: Asked of whatever trains a linear classifier: less than its arithmetic can tell, so that it ends at its own best.
OPTIMUM_FOUND: Final = 1e-12
#: Unit of columns, in roots of the regularization: weights of smaller ones are 0 to all digits, and no program takes
#: the squares of what would be left.
LEAST_UNIT: Final = 1e-6
#: Rows whose margin is missed or exceeded by no more are tried on it: a quadratic program leaves them 1e-5 off.
NEAR_MARGIN: Final = 1e-4
#: Relative gap asked of the engine where advice may cost no more than the optimum: what ``explain`` calls optimal.
POLISH_GAP: Final = 1e-6
#: Relative gap asked of the worst shift of data: golden optima are known to 1e-6.
SHIFT_GAP: Final = 1e-7
#: By how much a score of the retrained classifier may differ from the solver's, as a share of the greatest entry of an
#: explanation or, where that is less, of the greatest score that it can have: rows of products and of complementarity
#: are right to 1e-6 each.
SHIFT_CHECKED: Final = 1e-5

# ---- Surrogates ------------------------------------------------------------------------------------------------------
#: Share of the uncertainty of one parameter by which the least score may miss the margin before another row is added.
LEAST_SCORE_ROUNDING: Final = 1e-6
#: Of a surrogate's greatest coefficient in scaled columns: one of no more is rounding of its fit, and would decide ties
#: alone in the program.
COEFFICIENT_ROUNDING: Final = 1e-12
#: Distance of two surrogates' parameters, their coefficients of length 1 in scaled columns, below which both give the
#: same answers but for ten-thousandths of a column's scale.
SAME_LINE: Final = 1e-4

# ---- Metrics as published --------------------------------------------------------------------------------------------
#: Columns that move by no more than this have not moved, in the l0 distance only.
CARLA_STILL: Final = 1e-5
#: On the diagonal of the similarities, in the released code.
COPA_JITTER: Final = 1e-4
