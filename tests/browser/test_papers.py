"""The page of both papers as people read it: claims first, the rest where one asks for it."""

from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

from hopscope.cli.main import run as command
from tests.browser.lookers import check_for_everybody

CLAIM = "#claim-musat-depth-law"
SPILLING = """() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  const texts = [...document.querySelectorAll("html, h1, h2, p, li, dt, dd, th, td")];
  return texts.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent);
}"""
"""Texts that are wider than their place, the page in its window among them."""
LONGER = """() => document.querySelectorAll("h2, p, dd, code").forEach(
  (one) => one.append("x".repeat(90)))"""
"""A word that does not fit on a telephone, at the end of each text."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    out: Path = tmp_path_factory.mktemp("papers") / "papers.html"
    words = ["--results", str(ROOT / "results"), "--save", str(out)]
    assert command(["papers", "report", *words]) == 0
    return out.as_uri()


@pytest.mark.slow
def test_a_claim_shows_its_values_to_who_asks(page: Any, address: str) -> None:
    """Or follows a link to it, or prints the page; and axe finds nothing."""
    page.goto(address)
    check_for_everybody(page, 390, 1300)
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


@pytest.mark.slow
def test_nothing_is_cut_off_on_any_screen(page: Any, address: str) -> None:
    page.goto(address)
    page.evaluate(LONGER)
    for width in (360, 768, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(SPILLING) == [], width
