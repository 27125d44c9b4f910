"""Structural causal models with additive noise: their equations and graph, in plain numbers and in a program."""

from ceopt.formulations.constraints.causal.equation import LinearEquation

__all__ = ["LinearEquation"]
