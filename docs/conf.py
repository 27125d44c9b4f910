"""The site: how Sphinx makes it of the pages, the docstrings, the notebooks and the programs of the gallery.

`python docs/build.py` runs it. What is made on the way stands in docs/made/, the site in site/; git keeps neither.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))  # as running from the root has it, where no ceopt is installed
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# JAX compiles the notebook's training lightly, and once: it trains for less time than it compiles.
JAX = {
    "JAX_COMPILATION_CACHE_DIR": str(HERE.parent / ".jupyter_cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
}
for name, value in JAX.items():
    os.environ.setdefault(name, value)

import array_types  # noqa: E402

array_types.name_them()  # before ceopt is imported

import outside_pages  # noqa: E402
import reference_pages  # noqa: E402
from gallery_pictures import AxesScraper  # noqa: E402

import ceopt  # noqa: E402

project = "ceopt"
author = "the authors of ceopt"
copyright = f"{author}, Apache-2.0"  # noqa: A001 - Sphinx's name
version = release = ceopt.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",  # beside this file
    "numpydoc",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery", *(f"made/gallery/*.{kind}" for kind in ("ipynb", "json", "py")), "**.ipynb_checkpoints"]
templates_path = ["templates"]
nitpicky = True
#: What other libraries name, whose pages a build without network cannot look up.
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(numpy|np|pandas|pd|scipy|sklearn|pyomo|pyo|matplotlib|jax|optax|onnx|joblib|networkx|typer|tqdm)(\..*)?",
    ),
    (r"py:.*", r"(NDArray|Axes|ArrayLike|Generator|ModelProto|Path|pathlib\.Path)"),
    (r"py:.*", r"(collections|typing|os|io|datetime|types|dataclasses|enum|fractions|threading|contextlib)(\..*)?"),
    (
        r"py:(obj|class|data)",
        r"(Any|Callable|Mapping|Sequence|Iterable|Iterator|Hashable|Literal|Self|Collection|Final|ClassVar)",
    ),
    (r"py:(obj|class|exc)", r"(str|int|float|bool|bytes|object|type|tuple|list|dict|set|frozenset|None|slice|range)"),
    (r"py:class", r"(abc\.ABC|decimal\.Decimal|Figure|Metric|BlockData|RowDistance|Keeper|KeptRow)"),
    # Names for types that say what they are, and bases that only share code.
    (
        r"py:class",
        r"(Floats|Bools|Codes|FeatureMap|Flags|Point|Interval|Reach|DataRows|Intervention|Count|Link|Bound|Moments)",
    ),
    (r"py:class", r"ceopt\..*\.(Link|Bound|Interval|Moments|Auxiliary)"),
    (r"py:class", r"ceopt\..*\.(Readable|AbstractMahalanobis|AbstractNorm|AbstractLevels)"),
    (r"py:exc", r"[A-Z][A-Za-z]*(Error|Warning|Exception)"),  # of Python's own
]

# ---- pages in Markdown, and the notebooks among them -----------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4  # as GitHub names them, so that a link to a heading works there and here
myst_links_external_new_tab = False
nb_execution_mode = os.environ.get("CEOPT_SITE_NOTEBOOKS", "cache")
nb_execution_cache_path = os.environ.get("CEOPT_SITE_CACHE", str(HERE.parent / ".jupyter_cache"))
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"  # what libraries log; an error ends the build all the same

# ---- the reference ---------------------------------------------------------------------------------------------------
autosummary_generate = [str(HERE / "made" / "reference" / f"{name}.rst") for name in reference_pages.pages()]
autosummary_imported_members = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the templates list them
numpydoc_xref_param_type = False

# ---- the gallery -----------------------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["made/gallery"],
    "filename_pattern": r"/plot_",
    "image_scrapers": (AxesScraper(),),
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 1_000,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "parallel": False,
    "reference_url": {"ceopt": None},
}

# ---- what it looks like ----------------------------------------------------------------------------------------------
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "ceopt"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "ceopt"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "show_nav_level": 1,
    "header_links_before_dropdown": 6,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
suppress_warnings = [
    "config.cache",  # the scraper of pictures is an object, which Sphinx cannot keep between builds
]


def setup(app: Any) -> None:
    """Write the pages that are made before Sphinx looks for pages, and hold the result against the public names."""
    logging.getLogger("ceopt").setLevel(logging.WARNING)
    app.connect("config-inited", lambda app, config: reference_pages.write(HERE / "made" / "reference"))
    app.connect("config-inited", lambda app, config: outside_pages.write(HERE / "made" / "outside"))
    app.connect("source-read", outside_pages.links_inside)
    app.connect("autodoc-skip-member", reference_pages.skipped)
    app.connect("autodoc-process-signature", reference_pages.readable)
    app.connect("missing-reference", reference_pages.resolved)
    app.connect("env-check-consistency", reference_pages.check_complete)
