"""
Several answers side by side
============================

A line for the person, and one for each answer.
An axis goes from the least to the greatest value that occurs on it.
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

result = ceopt.explain(model, refused.iloc[[2]], book.space, target="good", n=3, cost="few_changes")
axes = result.plot("parallel")
