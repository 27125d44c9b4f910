"""
The line drawn for a black box
==============================

The rows that a surrogate is fitted to, near where the model changes its mind, and the line of the surrogate.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ceopt
from ceopt.surrogates import BoundarySampler, MinimaxProbabilityMachine

book = ceopt.datasets.loans()
numbers, words = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), words))
model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(book.data, book.target)
refused = book.data[model.predict(book.data) == "bad"]

sampler = BoundarySampler(n_samples=400, radius=0.1)
sample = sampler.sample(model, refused.iloc[[2]], book.data, target="good", space=book.space)
machine = MinimaxProbabilityMachine("fisher_rao", (1.0, 0.0)).fit(sample.encoded, sample.favourable)

axes = sample.plot(["income", "loan_amount"], surrogate=machine)
