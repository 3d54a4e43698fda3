"""The page of both papers as people read it: claims first, the rest where one asks for it."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

from hopscope.cli.claims import ReportArguments, report
from tests.browser.lookers import complaints_of_axe

CLAIM = "#claim-musat-depth-law"
NARROW, WIDE = 390, 1300


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    out: Path = tmp_path_factory.mktemp("papers") / "papers.html"
    assert report(ReportArguments(results=ROOT / "results", out=out)) == 0
    return out.as_uri()


@pytest.mark.slow
def test_axe_finds_nothing_and_it_fits(page: Any, address: str) -> None:
    page.goto(address)
    for scheme, width in itertools.product(("light", "dark"), (NARROW, WIDE)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints_of_axe(page) == []


@pytest.mark.slow
def test_a_claim_shows_its_values_to_who_asks(page: Any, address: str) -> None:
    """Or follows a link to it, or prints the page."""
    page.goto(address)
    assert not page.is_visible(CLAIM)
    page.get_by_text("No transformer learns more hops").first.click()
    assert page.is_visible(CLAIM)
    page.goto("about:blank")
    page.goto(f"{address}{CLAIM}")
    assert page.is_visible(CLAIM)
    page.emulate_media(media="print")
    page.goto("about:blank")
    page.goto(address)
    seen = page.eval_on_selector_all(
        ".claims dl", "(all) => all.map((one) => one.checkVisibility())"
    )
    assert len(seen) > 40
    assert all(seen)
