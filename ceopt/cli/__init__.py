"""The command ``ceopt``."""

from ceopt.cli.commands import app

__all__ = ["app"]
