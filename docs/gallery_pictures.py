"""How the gallery finds a picture: in the Axes that a program's last line returned, as a notebook would show it."""

from __future__ import annotations

from typing import Any

from sphinx_gallery.scrapers import figure_rst


class AxesScraper:
    """Save the figure of the Axes that a block ended with; pyplot does not know of it, so no other scraper would."""

    def __repr__(self) -> str:
        return "AxesScraper"

    def __call__(self, block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
        """Return the reStructuredText that shows the figure, or nothing."""
        drawn = block_vars["example_globals"].pop("axes", None)
        figure = getattr(drawn, "figure", None)
        if figure is None:
            return ""
        path = next(block_vars["image_path_iterator"])
        figure.savefig(path, dpi=150, bbox_inches="tight")
        return str(figure_rst([path], gallery_conf["src_dir"]))
