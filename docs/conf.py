"""Sphinx settings: Markdown pages (MyST) and the docstrings of the public names."""

from hopscope import __version__

project = "hopscope"
author = "The hopscope authors"
copyright = "2026, The hopscope authors"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "hopscope"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
