"""
How likely a plan is to outlast retraining
==========================================

The least and the greatest probability that both ways of a plan hold.
To the right, the moments of the parameters become less certain.
Both bounds are optimal values of programs.
"""

from ceopt import plans

plan = [[1.0, 2.0, 1.0], [3.0, 0.5, 1.0]]  # a way a row, as the classifier sees it; 1 for the intercept
mean = [0.8, 0.6, -0.5]
covariance = [[0.04, 0.01, 0], [0.01, 0.05, 0], [0, 0, 0.02]]

axes = plans.plot_validity(plan, mean, covariance, radii=[0.0, 0.05, 0.1, 0.2, 0.3, 0.4])
