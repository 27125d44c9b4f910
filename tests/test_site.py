"""The site: every public name has a place, every formulation a line, every link a target."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from sources import ROOT, checkout

DOCS = ROOT / "docs"
SITE = ROOT / "site"  # where docs/build.py puts it
SECTIONS = ("tutorials", "how_to", "explanation", "reference")
_FENCE = re.compile(r"^ *(`{3,}|:{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)(?: \"[^\"]*\")?\)")
_OUTER = re.compile(r"https?://[^\s)>\"'`]+")
_LISTED = re.compile(r"^```\{toctree\}\n:glob:\n(?:[^`]*\n)?(\w+\*)\n```$", re.MULTILINE)
_IMPORT = re.compile(r"^(?:>>> |\.\.\. )? *from (ceopt[\w.]*) import", re.MULTILINE)

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="The documentation is not beside the tests.")


@cache
def load(name: str) -> ModuleType:
    """A script of the site."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def pages() -> tuple[Path, ...]:
    """Every page in Markdown that people read."""
    kept = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "docs/", "benchmarks/")
    return tuple(ROOT / name for name in checkout() if name.endswith(".md") and name.startswith(kept))


def prose(page: Path) -> str:
    """A page without its code."""
    return _CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and MyST name them."""
    found: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        names.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return frozenset(names)


def dead_links(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no heading of one."""
    dead = []
    for found in _LINK.finditer(prose(page)):
        path, _, anchor = found["target"].partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        target = (page.parent / path).resolve() if path else page
        if DOCS / "made" in target.parents:
            continue  # made by the build, which finds the dead ones
        if not target.exists():
            dead.append(found["target"])
            continue
        if anchor and target.suffix == ".md" and anchor not in anchors(target):
            dead.append(found["target"])
    return dead


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading(page):
    assert dead_links(page) == []


def test_a_dead_link_and_a_dead_anchor_are_found(tmp_path):
    (tmp_path / "there.md").write_text("# A name, twice\n## A name, twice\n```\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md#a-name-twice) [b](there.md#a-name-twice-1) [c](there.md#no-heading) [d](gone.md) `[e](gone.md)`\n"
    )

    assert dead_links(page) == ["there.md#no-heading", "gone.md"]


def test_every_page_that_is_named_by_its_path_is_there():
    named = {}
    for name in checkout():
        if name.endswith((".py", ".md", ".toml")) and name != "CHANGELOG.md":
            for path in re.findall(r"\bdocs/[\w/]+\.(?:md|py|svg)\b", (ROOT / name).read_text(encoding="utf-8")):
                named[path] = name

    assert {path: name for path, name in named.items() if not (ROOT / path).is_file()} == {}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_index_of_a_section_links_to_each_of_its_pages(section):
    index = (DOCS / section / "index.md").read_text(encoding="utf-8")
    linked = {found["target"].partition("#")[0] for found in _LINK.finditer(index)}

    for shown in _LISTED.findall(index):  # a table of contents that is seen, of all pages whose names are alike
        linked |= {path.name for path in (DOCS / section).glob(f"{shown}.md")}

    assert {path.name for path in (DOCS / section).glob("*.md")} - {"index.md"} <= linked


def test_every_module_that_exports_names_or_is_shown_has_a_page_of_the_reference():
    shown = set()
    for page in pages():
        if page.is_relative_to(DOCS) or page.name == "README.md":
            shown |= set(_IMPORT.findall(page.read_text(encoding="utf-8")))

    assert load("reference_pages").exported_modules() | shown <= set(load("reference_pages").modules())


def test_every_public_name_stands_on_the_page_of_its_module():
    for name in load("reference_pages").modules():
        page = load("reference_pages").page(name)
        for public in importlib.import_module(name).__all__:
            place = load("reference_pages").places()[f"{name}.{public}"]
            assert re.search(rf"(?:{re.escape(place)}|^ +{public}|data:: {public})\b", page, re.MULTILINE), (
                name,
                public,
            )


def test_what_people_type_is_answered_by_pages_that_are_there():
    answers = {page for pages in load("asked").ASKED.values() for page in pages}

    assert {page for page in answers if not page.startswith("made/") and not (DOCS / f"{page}.md").is_file()} == set()


@pytest.mark.skipif(not SITE.is_dir() or shutil.which("node") is None, reason="No site was built, or no node.")
def test_the_search_of_the_site_answers_what_people_type():
    assert load("asked").missed(SITE) == {}


def test_every_link_to_another_site_is_listed_with_when_it_was_tried():
    listed = (DOCS / "reference" / "outer_links.md").read_text(encoding="utf-8")
    found = set()
    for page in pages():
        found |= set(_OUTER.findall(prose(page)))

    assert found
    assert sorted(link for link in found if f"<{link}>" not in listed) == []
