"""Pools: several solutions of one program."""
