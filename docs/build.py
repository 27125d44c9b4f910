"""The site, made from docs/ and the docstrings: any warning is an error, and so is a link to nothing.

Where there is node, the search of the site is then asked what people type (docs/asked.py).
The notebooks are run once and kept in a cache, which a change of their code renews; `--anew` runs them all again.

Run: python docs/build.py              needs the extra `docs`; the site stands in site/, open site/index.html
     python docs/build.py --anew       with nothing kept from builds before
     python docs/build.py --out FOLDER
     python docs/build.py --outer      tries every link to another site (docs/reference/outer_links.md)
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import asked

DOCS = Path(__file__).resolve().parent
#: What is made on the way: pages beside the sources, and what Sphinx and the notebooks keep.
MADE = (DOCS / "made", DOCS.parent / ".doctrees", DOCS.parent / ".jupyter_cache")


def command(out: Path, *, outer: bool) -> list[str]:
    """Return Sphinx's command."""
    kind = ["-b", "linkcheck"] if outer else ["-b", "html", "-W", "--keep-going"]
    return [sys.executable, "-m", "sphinx", *kind, "-j", "2", "-q", "-d", str(MADE[1]), str(DOCS), str(out)]


def main() -> int:
    """Make the site, and say how long it took and how many pages it has."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=DOCS.parent / "site", help="where the site stands")
    parser.add_argument("--anew", action="store_true", help="run notebooks and gallery again")
    parser.add_argument("--outer", action="store_true", help="only ask the links to other sites")
    chosen = parser.parse_args()
    if chosen.anew:
        for folder in (*MADE, chosen.out):
            shutil.rmtree(folder, ignore_errors=True)
    start, spent = time.perf_counter(), os.times()
    status = subprocess.run(command(chosen.out, outer=chosen.outer), check=False).returncode  # noqa: S603
    now = os.times()
    seconds = (now.children_user - spent.children_user) + (now.children_system - spent.children_system)
    pages = sum(1 for _ in chosen.out.rglob("*.html"))
    sys.stdout.write(f"{pages} pages, {time.perf_counter() - start:.0f} s, {seconds:.0f} s of the processor\n")
    if status or chosen.outer or shutil.which("node") is None:
        return status
    return asked.report(chosen.out)


if __name__ == "__main__":
    sys.exit(main())
