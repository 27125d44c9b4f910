"""``python -m ceopt`` is the command ``ceopt``."""

from __future__ import annotations

from ceopt.cli.commands import app

if __name__ == "__main__":
    app(prog_name="ceopt")
