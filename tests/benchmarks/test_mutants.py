"""Mutants: every place once, each a program of its own, and the same ones drawn whatever is edited elsewhere."""

from __future__ import annotations

import ast
import importlib
from typing import Any

import pytest

SOURCE = b'''"""A module: 1 + 1."""

__all__ = ["f"]
LEAST = 0.5


class Kept:
    """Not a claim."""

    n: int = 3

    def f(self, x: float, strict: bool = False) -> float | None:
        """Return x < 1."""
        assert x > 0
        if not strict and x >= LEAST:
            return -x
        total = [y * 2 for y in (x, 0.0) if y]
        return None if x is None else total[0] + 1
'''


@pytest.fixture
def mutants(benchmarks: Any) -> Any:
    return importlib.import_module("mutants")


def found(mutants: Any, source: bytes = SOURCE, seed: int = 0) -> list[Any]:
    return list(mutants._Finder("kept.py", source, seed).found)


def test_every_place_is_found_once_and_types_and_texts_are_left_alone(mutants: Any) -> None:
    changes = [(m.before, m.after, m.function) for m in found(mutants)]
    assert len(changes) == len(set(changes))
    outside = {(before, after) for before, after, function in changes if not function}
    assert outside == {("0.5", "1.0"), ("3", "4"), ("False", "True")}
    inside = [(before, after) for before, after, function in changes if function]
    assert {function for _, _, function in changes} == {"", "Kept.f"}
    condition = "not strict and x >= LEAST"
    assert sorted(inside) == sorted(
        [
            (condition, f"(not ({condition}))"), (condition, "(not strict or x >= LEAST)"),
            ("not strict", "(strict)"), ("x >= LEAST", "(x > LEAST)"), ("x >= LEAST", "(x < LEAST)"),
            ("-x", "None"), ("-x", "(x)"), ("y * 2", "(y / 2)"), ("2", "3"), ("0.0", "1.0"), ("y", "(not (y))"),
            ("None if x is None else total[0] + 1", "None"), ("x is None", "(not (x is None))"),
            ("x is None", "(x is not None)"), ("total[0] + 1", "(total[0] - 1)"), ("0", "1"), ("1", "2"),
        ]
    )  # fmt: skip


def test_each_is_the_file_with_one_change(mutants: Any) -> None:
    plain = ast.dump(ast.parse(SOURCE))
    changed = {ast.dump(ast.parse(mutant.applied(SOURCE))) for mutant in found(mutants)}
    assert plain not in changed
    # Where a comparison is the whole condition, to turn it round is one of its mutants.
    assert len(changed) >= len(found(mutants)) - 1
    for mutant in found(mutants):
        assert mutant.applied(SOURCE).count(b"\n") == SOURCE.count(b"\n")


def test_an_edit_elsewhere_leaves_the_names_and_another_seed_does_not(mutants: Any) -> None:
    names = [mutant.name for mutant in found(mutants)]
    edited = SOURCE.replace(b"class Kept", b"def other(x):\n    return x - 7\n\n\nclass Kept")
    assert [mutant.name for mutant in found(mutants, edited) if mutant.function != "other"] == names
    assert set(names).isdisjoint(mutant.name for mutant in found(mutants, seed=1))
    assert mutants.draw(20, 0) == mutants.draw(40, 0)[:20]


def test_named_mutants_change_what_they_name(mutants: Any) -> None:
    for mutant in mutants.named():
        source = (mutants.common.ROOT / mutant.path).read_bytes()
        assert source[mutant.start : mutant.end].decode() == mutant.before
        assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source))
        assert mutants.own_tests(mutant.path)


def test_every_file_that_is_mutated_and_every_test_of_its_own_is_there(mutants: Any) -> None:
    for owner, tests in {**mutants.OWN, **mutants.ALSO}.items():
        for path in (owner, *tests):
            assert (mutants.common.ROOT / path).exists(), path
