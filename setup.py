"""The packages, found in the three folders: those of ``formulations`` and ``solvers`` are installed inside ``ceopt``.

Everything else stands in ``pyproject.toml``. The two links inside ``ceopt`` are not followed: a checkout may lack them.
What an earlier build left in ``build/lib`` is removed first: setuptools would install modules that are no more.
"""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

LINKED = ("formulations", "solvers")

packages = ["ceopt"]
for package in find_packages("ceopt"):
    if package.partition(".")[0] not in LINKED:
        packages.append(f"ceopt.{package}")
for folder in LINKED:
    packages.append(f"ceopt.{folder}")
    for package in find_packages(folder):
        packages.append(f"ceopt.{folder}.{package}")


class BuildAnew(build_py):
    """Build into an empty folder."""

    def run(self) -> None:
        """Remove the package of an earlier build, and build."""
        shutil.rmtree(Path(self.build_lib) / "ceopt", ignore_errors=True)
        super().run()


setup(packages=packages, cmdclass={"build_py": BuildAnew})
