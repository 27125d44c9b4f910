"""Classifiers trained again on rows that move, and predictor and recourse trained together against such shifts.

What is trained by gradients needs the extra ``training``, JAX and optax; neither is imported before that. The worst
shift as an explicit program needs no extra.
"""

from ceopt.training.counternet import CounterNet
from ceopt.training.retrained import RetrainedWeights, retrained
from ceopt.training.rivals.rbr import Rbr
from ceopt.training.rivals.roar_lime import RoarLime
from ceopt.training.rivals.vanilla_cf import VanillaCF
from ceopt.training.rocoursenet import RoCourseNet
from ceopt.training.virtual_shift import VirtualShift, virtual_data_shift
from ceopt.training.worst_shift import WorstShift, worst_shift

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
