"""The packages, found in the three folders: those of ``formulations`` and ``solvers`` are installed inside ``ceopt``.

Everything else stands in ``pyproject.toml``. The two links inside ``ceopt`` are not followed: a checkout may lack them.
"""

from setuptools import find_packages, setup

LINKED = ("formulations", "solvers")

packages = ["ceopt"]
for package in find_packages("ceopt"):
    if package.partition(".")[0] not in LINKED:
        packages.append(f"ceopt.{package}")
for folder in LINKED:
    packages.append(f"ceopt.{folder}")
    for package in find_packages(folder):
        packages.append(f"ceopt.{folder}.{package}")

setup(packages=packages)
