"""Formulas as MathML, which browsers draw themselves: a page needs no script and no network for them.

docutils turns TeX into MathML; what it does not know is said in its own words first.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml

#: A command that docutils does not know -> one that it knows, or nothing where only the size would differ.
SAID_OTHERWISE = {
    r"\\[bB]igg?[lrm]?": "",
    r"\\textstyle": "",
    r"\\dots": r"\\ldots",
    r"\\iff": r"\\Longleftrightarrow",
    r"\\[lr]Vert": r"\\Vert ",
}


def mathml(tex: str, *, block: bool) -> str:
    """Return a formula as MathML."""
    for command, instead in SAID_OTHERWISE.items():
        tex = re.sub(rf"{command}(?![A-Za-z])", instead, tex)
    try:
        return str(latex2mathml.tex2mathml(tex, as_block=block))
    except latex2mathml.MathError as error:
        message = f"A formula needs TeX that docutils knows, but {tex!r} has other: {error}"
        raise ValueError(f"{message} Write it otherwise, or name it in SAID_OTHERWISE of docs/mathml.py.") from error


def inline(self: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def displayed(self: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where the page is narrow."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(mathml(node.astext(), block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Make it Sphinx's way to write formulas."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
