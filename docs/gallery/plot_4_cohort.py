"""
Many people at once
===================

Whom recourse reaches, what it asks for, and what it costs, group by group.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt

book = ceopt.datasets.loans()
numbers, words = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), words))
model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(book.data, book.target)
refused = book.data[model.predict(book.data) == "bad"]

# %%
# Some columns are fixed and two rules hold, so that not everybody has a way out.

space = book.space
for name in ("years_employed", "open_loans", "education", "employment", "has_guarantor"):
    space = space.update(name, mutable=False)
rules = [ceopt.Linear({"loan_amount": 1.0}, ">=", 14_000), ceopt.Linear({"income": 1.0, "savings": 1.0}, "<=", 52_000)]
recourse = ceopt.Recourse(model, space, target="good", constraints=rules).fit(book.data)
cohort = recourse.explain(refused.head(30))
print(cohort.summary())

# %%
# Which columns the best answers change:

axes = cohort.plot("changes")

# %%
# What the best answers cost. A dot is a person:

axes = cohort.plot("costs", by="education")

# %%
# Who has an answer, and who is proved to have none:

axes = cohort.plot("status", by="region")
