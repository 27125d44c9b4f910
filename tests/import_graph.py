"""The imports of the project, read off its source files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from sources import ROOT, sources

__all__ = ["Import", "imports", "modules"]


@dataclass(frozen=True)
class Import:
    """One import statement's one name."""

    module: str
    target: str
    line: int
    level: int
    lazy: bool
    for_types: bool

    def __str__(self) -> str:
        return f"{self.module}, line {self.line}: {'.' * self.level}{self.target}"

    @property
    def top(self) -> str:
        return self.target.partition(".")[0]


def _walk(node: ast.AST, *, lazy: bool = False, for_types: bool = False) -> Iterator[tuple[ast.AST, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        inner_lazy = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        inner_types = for_types or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
        yield child, inner_lazy, inner_types
        yield from _walk(child, lazy=inner_lazy, for_types=inner_types)


def _imports(module: str, tree: ast.AST, known: frozenset[str]) -> Iterator[Import]:
    for node, lazy, for_types in _walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno, 0, lazy, for_types)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(module, full if full in known else base, node.lineno, node.level, lazy, for_types)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(":") == 1:
            target = node.value.partition(":")[0]  # "module:class", as registry.Imported has it
            if target in known:
                yield Import(module, target, node.lineno, 0, lazy=True, for_types=False)


@cache
def modules() -> dict[str, str]:
    """Dotted name -> file, for every module of the three rooms."""
    return {
        installed.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name
        for installed, name in sources().items()
        if installed.endswith(".py")
    }


@cache
def imports() -> tuple[Import, ...]:
    known = frozenset(modules())
    return tuple(
        found
        for module, name in modules().items()
        for found in _imports(module, ast.parse((ROOT / name).read_text(encoding="utf-8"), name), known)
    )
