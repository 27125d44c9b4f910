"""The pictures of docs/how_to/pictures.md, made by the code that the page shows.

The page's blocks of Python run one after the other. Where a picture follows a block, it is what the block's last line
returned, written as SVG to the file that the page names. With the same versions of the libraries the same file comes
out each time.

Run: python docs/pictures.py            writes docs/pictures/*.svg
     python docs/pictures.py FOLDER     writes them there instead
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ceopt.pictures.svg import svg

FOLDER = Path(__file__).resolve().with_suffix("")
PAGE = FOLDER.parent / "how_to" / "pictures.md"
_PART = re.compile(
    r"^```python\n(?P<code>.*?)^```$|^!\[(?P<title>[^\]]*)\]\((?P<file>[^)]*)\)$", re.MULTILINE | re.DOTALL
)


def parts(page: str) -> Iterator[re.Match[str]]:
    """Give the blocks of Python and the pictures of a page, in their order."""
    return _PART.finditer(page)


def last_value(code: str, names: dict[str, Any]) -> Any:
    """Run a block, quietly, and return the value of its last line; None if that is no expression."""
    tree = ast.parse(code)
    last = None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(tree, PAGE.name, "exec"), names)  # noqa: S102 - the page's own code
        if last is None:
            return None
        return eval(compile(last, PAGE.name, "eval"), names)  # noqa: S307 - the same


def write(folder: Path) -> list[Path]:
    """Write all pictures, each into the folder under its own name, and return their paths."""
    names: dict[str, Any] = {"__name__": "__main__"}
    drawn = None
    written = []
    for part in parts(PAGE.read_text(encoding="utf-8")):
        if part["code"] is not None:
            drawn = last_value(part["code"], names)
            continue
        path = folder / Path(part["file"]).name
        path.write_text(svg(drawn, prefix=path.stem, title=part["title"]), encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    given = [Path(word) for word in sys.argv[1:]]
    for one in write(*(given or [FOLDER])):
        sys.stdout.write(f"{one}\n")
