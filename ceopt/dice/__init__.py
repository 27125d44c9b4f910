"""The names of dice_ml with ceopt's answers: a script moves over by its import line, ``import ceopt.dice as dice_ml``.

What is asked for is stated as a program, solved and checked on the model itself. Options that steer dice_ml's search
are named in one warning a call; what would give an answer another meaning is refused.
``docs/how_to/from_dice.md`` lists both.

>>> import pandas as pd
>>> from sklearn.linear_model import LogisticRegression
>>> import ceopt.dice as dice_ml
>>> people = pd.DataFrame({"age": [25, 31, 38, 45, 60], "hours": [20, 45, 30, 50, 60], "rich": [0, 0, 0, 1, 1]})
>>> model = LogisticRegression().fit(people[["age", "hours"]], people["rich"])
>>> data = dice_ml.Data(dataframe=people, continuous_features=["age", "hours"], outcome_name="rich")
>>> dice = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"))
>>> found = dice.generate_counterfactuals(people[["age", "hours"]].iloc[[2]], total_CFs=1, features_to_vary=["hours"])
>>> found.cf_examples_list[0].final_cfs_df
   age  hours  rich
0   38     48     1
"""

from __future__ import annotations

from ceopt.dice.dice import Dice
from ceopt.dice.explanations import CounterfactualExamples, CounterfactualExplanations, NoCounterfactualsError
from ceopt.dice.inputs import Data, Model

__all__ = [
    "CounterfactualExamples",
    "CounterfactualExplanations",
    "Data",
    "Dice",
    "Model",
    "NoCounterfactualsError",
]
