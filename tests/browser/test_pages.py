"""The documentation can be used by everybody: axe finds nothing on five pages, none is too wide.

They are those that `./test` has built; without them there is nothing to look at.
"""

from pathlib import Path
from typing import Any

import pytest

import hopscope
from tests.browser.lookers import complaints_of_axe

BUILT = Path(hopscope.__file__).parents[1] / "docs" / "_build" / "html"
PAGES = ("index", "tutorials/start", "questions/needed", "fields", "api")
NARROW = 400


@pytest.mark.skipif(not (BUILT / "index.html").is_file(), reason="the documentation is not built")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_it_fits(page: Any, name: str, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": NARROW, "height": 800})
    page.goto((BUILT / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
    assert complaints_of_axe(page) == []
