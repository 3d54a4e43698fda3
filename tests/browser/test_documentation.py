"""The documentation is for everybody: axe finds nothing on its pages, and none is too wide for a
telephone, in light and in dark.

The pages are those that `./test` has built a moment ago: to build them takes minutes.
"""

from typing import Any

import pytest
from pages import ROOT

from tests.browser.conftest import absent
from tests.browser.lookers import check_for_everybody

BUILT = ROOT / "docs" / "_build" / "html"
PAGES = ("index", "live", "tutorials/start", "questions/needed", "papers", "fields")
REFUSED = (
    "Access to XMLHttpRequest at 'file:|Failed to load resource: net::ERR_FAILED|Couldn't load pre"
    "|Failed to execute 'postMessage' on 'DOMWindow': The target origin provided \\('file://'\\)"
)
"""What a browser says where axe asks for style sheets and frames of a page from a disk."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_it_fits(page: Any, name: str, forgiven: list[str]) -> None:
    forgiven.append(REFUSED)
    if not (BUILT / "index.html").is_file():
        absent("no documentation: sphinx-build -b html docs docs/_build/html")
    page.goto((BUILT / f"{name}.html").as_uri())
    check_for_everybody(page, 400, 1300)
