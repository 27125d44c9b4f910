"""Structural causal models with additive noise: their equations and graph, in plain numbers and in a program."""

from ceopt.formulations.causality.equation import LinearEquation

__all__ = ["LinearEquation"]
