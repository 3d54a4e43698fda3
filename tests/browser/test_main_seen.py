"""Everybody can use the page: axe finds nothing, no state is wider than its screen."""

from typing import Any

import pytest

from tests.browser.lookers import complaints_of_axe, opened, ready

STATES = {
    "demo": "/run/gallery-demo",
    "ablated": "/run/gallery-demo?step=800&off=1.3:value+0;2.0",
    "planted": "/run/gallery-planted?ghost=theory",
    "n-gram": "/run/gallery-ngram?step=20000",
    "maximised": "/run/gallery-demo?pane=circuit",
}


@pytest.mark.parametrize("name", STATES)
def test_axe_finds_nothing(page: Any, explorer: str, name: str) -> None:
    opened(page, explorer, STATES[name])
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        ready(page)
        assert complaints_of_axe(page) == []
    for width in (400, 800, 2560):  # and nothing is wider than its screen
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_axe_finds_nothing_beside_an_error_and_in_tables(page: Any, explorer: str) -> None:
    """And every canvas has a table behind it."""
    opened(page, explorer, "/run/gallery-demo?off=9.9")
    page.wait_for_selector(".error:visible")
    for pane in page.locator(".pane:visible").all():
        pane.locator(".menu summary").click()
        pane.locator(".menu button:text('Table')").click()
        assert not pane.locator("canvas").count() or pane.locator(".behind td").count() > 10
    assert complaints_of_axe(page) == []


def test_a_choice_is_seen_without_colour(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=2.0")
    chip = page.locator('.chip[data-item="2.0"]')
    assert chip.get_attribute("aria-pressed") == "true"
    assert "switched off" in chip.get_attribute("aria-label")
    assert chip.locator(".cross").evaluate("(e) => getComputedStyle(e).visibility") == "visible"


@pytest.mark.slow
def test_what_is_maximised_is_drawn_higher_and_then_as_before(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 600, "height": 900})  # no pane is wider alone
    opened(page, explorer, "/run/gallery-demo")
    for pane, drawn in (("circuit", ".scene"), ("time", ".chart")):
        place = page.locator(f"#pane-{pane} {drawn}").first
        heights = [place.bounding_box()["height"]]
        for _ in range(2):
            page.click(f"#pane-{pane} [aria-pressed][title^='Maximise']")
            ready(page)
            heights.append(place.bounding_box()["height"])
        assert heights[0] == heights[2] < heights[1] / 1.3, pane
