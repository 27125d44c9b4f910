"""Pages of the repository that the site shows as well: how to contribute, what has changed, what was measured.

Their links, and the links of the site's own pages to them, are turned to where the pages stand on the site. A link to
any other file of the repository (a source file, a record of a benchmark) stays, and Sphinx gives the file to download.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
MADE = DOCS / "made" / "outside"
#: A link or picture in Markdown, with what may stand before and after its target.
LINK = re.compile(r"(?P<before>!?\[[^\]]*\]\()(?P<path>[^)#\s]*)(?P<anchor>#[^)\s]*)?(?P<after>(?: \"[^\"]*\")?\))")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def pages() -> dict[Path, str]:
    """Return every page from outside docs/ that the site shows -> its name on the site."""
    found = {}
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "benchmarks/README.md"):
        found[ROOT / name] = name.removesuffix(".md").replace("/README", "").lower()
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.md")):
        found[path] = f"measured_{path.stem}"
    return {path: name for path, name in found.items() if path.is_file()}


def turned(text: str, old: Path, new: Path) -> str:
    """Return the text of a page that stood in one folder and now stands in another, its links turned; code is left."""
    shown = pages()

    def link(found: re.Match[str]) -> str:
        path = found["path"]
        if not path or "://" in path or path.startswith("mailto:"):
            return found[0]
        target = Path(os.path.normpath(old / path))
        if target in shown:
            target = MADE / f"{shown[target]}.md"
        elif target == ROOT / "README.md":
            target = DOCS / "index.md"
        elif target.is_dir():
            return found[0].partition("](")[0].removeprefix("[")
        there = Path(os.path.relpath(target, new)).as_posix()
        return f"{found['before']}{there}{found['anchor'] or ''}{found['after']}"

    parts = _FENCE.split(text)
    for k in range(0, len(parts), 2):  # what stands between the code
        parts[k] = LINK.sub(link, parts[k])
    return "".join(parts)


def write(folder: Path) -> None:
    """Write the pages; one that is there and says the same is left alone, so that Sphinx does not read it again."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, name in pages().items():
        text = turned(path.read_text(encoding="utf-8"), path.parent, folder)
        made = folder / f"{name}.md"
        if not made.is_file() or made.read_text(encoding="utf-8") != text:
            made.write_text(text, encoding="utf-8")


def links_inside(app: Any, docname: str, source: list[str]) -> None:
    """Turn the links of a page of the site to pages from outside."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md" and MADE not in path.parents:
        source[0] = turned(source[0], path.parent, path.parent)
