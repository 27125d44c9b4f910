"""Representations: what a fitted model computes, as plain arrays."""
