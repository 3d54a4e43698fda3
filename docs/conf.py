"""Sphinx settings: Markdown pages (MyST), of which some are notebooks, and the docstrings of the
public names.
"""

import os
import sys
from pathlib import Path

from hopscope import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_building"))
project = "hopscope"
author = "The hopscope authors"
copyright = "2026, The hopscope authors"
release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "accessible", "live", "links"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_building"]

# Notebooks are executed in a folder of their own, and kept: whoever changed the package and wants
# to see them anew removes docs/_build. A clean clone, such as that of CI, executes all of them.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / ".executed")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 900
nb_merge_streams = True
nb_code_prompt_show = "Answer"
nb_code_prompt_hide = "Hide the answer"
# A progress bar that is drawn as text is nothing that a page needs to say.
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"
html_theme = "furo"
html_title = "hopscope"
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
# Blocks of code as wide as our lines of code; the same in the dark.
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {"code-font-size": "75%"},
}
html_show_sourcelink = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
