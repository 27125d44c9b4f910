"""Classifiers trained again on rows that move, and predictor and recourse trained together against such shifts.

What is trained by gradients needs the extra ``training``, JAX and optax; neither is imported before that. The worst
shift as an explicit program needs no extra.
"""

from ceopt.training.recourse_network import CounterNet, RoCourseNet
from ceopt.training.rivals import Rbr, RoarLime, VanillaCF
from ceopt.training.shifts import RetrainedWeights, VirtualShift, WorstShift, retrained, virtual_data_shift, worst_shift

__all__ = [
    "CounterNet",
    "Rbr",
    "RetrainedWeights",
    "RoCourseNet",
    "RoarLime",
    "VanillaCF",
    "VirtualShift",
    "WorstShift",
    "retrained",
    "virtual_data_shift",
    "worst_shift",
]
