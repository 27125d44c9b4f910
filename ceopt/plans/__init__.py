"""Plans of recourse that are to survive retraining: how likely they do, at worst and at best, and better plans.

The parameters of a linear classifier are uncertain: only their mean and covariance are known, and those up to a
Gelbrich distance of ``radius``. A plan is valid if all its counterfactuals are favourable. With an intercept, the last
column of plan and factual is 1 and ``fixed=[d - 1]`` holds it.
"""

__all__: list[str] = []
