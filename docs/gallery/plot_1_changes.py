"""
What an answer asks for
=======================

One row for each column that changes.
The ring is where the person stands, the arrow ends where the answer is.
Moves are divided by the scale of their column, so that dollars and months can be compared.
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

result = ceopt.explain(model, refused.iloc[[5]], book.space, target=ceopt.Probability("good", at_least=0.8), n=3)
print(result)

# %%
# The first answer:

axes = result.plot()

# %%
# The second one, on a dark page:

axes = result.plot(rank=2, dark=True)
