"""The docs. `make docs` builds them into build/docs; they need no network, then or when read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "_ext"), str(HERE.parent / "src")]
os.environ.setdefault("MPLBACKEND", "Agg")

import api  # noqa: E402

import mercer  # noqa: E402

project = "Mercer"
author = "The Mercer developers"
copyright = author
version = release = mercer.__version__
language = "en_GB"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx_gallery.gen_gallery",
    "api",
    "command_help",
    "docstrings",
    "equation_index",
    "mathml",
    "navigation",
    "source_pages",
]
exclude_patterns = ["_*", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
nitpicky = True
smartquotes = False  # in formulas x' is a prime
# Names in single backticks become links where they are found. Those of parameters and attributes,
# in small letters, of matrices, and pieces of code need not be; those of classes must.
default_role = "py:obj"
nitpick_ignore_regex = [
    ("py:obj", r"(?!mercer\.)[a-z_].*|[A-Z]\b.*|\w+_|.*[^\w.].*"),
    # scikit-learn's
    ("py:obj", r"(MultiOutputRegressor|OneVsOneClassifier|OneVsRestClassifier|OrdinalEncoder)"),
    ("py:obj", r"(CompoundKernel|ExpSineSquared|PairwiseKernel|WhiteKernel)"),
    ("py:(class|exc)", r"(Exception|Warning|UserWarning|ValueError)"),
    ("py:.*", r"(matplotlib|numpy|pandas|polars|scipy|sklearn)\..*"),
]

suppress_warnings = ["config.cache"]  # the templates are given a function

# --- Markdown -------------------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# --- API ------------------------------------------------------------------------------------------
api.write(HERE / "api")
linkcode_resolve = api.linkcode_resolve
# Named one by one: an incremental build does not know of new pages yet.
autosummary_generate = sorted(str(page) for page in (HERE / "api").glob("*.rst"))
autosummary_context = {"members_of": api.members}
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# --- Gallery --------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"plot_",
    "ignore_pattern": r"(demo|__init__)\.py$",
    "doc_module": ("mercer",),
    "backreferences_dir": "api/backreferences",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # a page that loads scripts from the network
    "within_subsection_order": "FileNameSortKey",
    "parallel": True,  # as many examples at a time as `sphinx -j` has processes
    "plot_gallery": os.environ.get("MERCER_DOCS_GALLERY", "1") == "1",
    "nested_sections": False,
    "remove_config_comments": True,
    # A warning in an example is for its reader to see, as it is for a user.
    "reset_modules": ("matplotlib",),
}

# Pages of scripts that are gone.
for page in (HERE / "auto_examples").glob("plot_*"):
    if not (HERE.parent / "examples" / f"{page.name.partition('.')[0]}.py").exists():
        page.unlink()

# --- HTML -----------------------------------------------------------------------------------------
html_theme = "furo"
html_title = f"Mercer {release}"
html_static_path = ["_static"]
html_css_files = ["mercer.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
