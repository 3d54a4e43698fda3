"""Everybody can use the page: axe finds nothing, no state is wider than its screen."""

from typing import Any

import pytest

from tests.browser.lookers import complaints_of_axe, measured, opened, settled

STATES = {
    "demo": "/run/gallery-demo",
    "ablated": "/run/gallery-demo?step=800&off=1.3:value+0;2.0",
    "planted": "/run/gallery-planted?ghost=theory",
    "n-gram": "/run/gallery-ngram?step=20000",
    "maximised": "/run/gallery-demo?pane=circuit",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", STATES)
def test_axe_finds_nothing(page: Any, explorer: str, scheme: Any, name: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    opened(page, explorer, STATES[name])
    if name == "ablated":
        measured(page)
    assert complaints_of_axe(page) == []


def test_axe_finds_nothing_beside_an_error_and_in_tables(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    for summary in page.locator(".pane:visible .menu summary").all():
        summary.click()
        summary.locator("..").locator("button:text('Table')").click()
    page.evaluate("() => hopscope.state.set({ error: { text: 'one line' } }, 'none')")
    page.wait_for_selector(".error:visible")
    assert complaints_of_axe(page) == []


@pytest.mark.parametrize("width", [400, 800, 1280, 2560])
@pytest.mark.parametrize("name", ["ablated", "n-gram"])
def test_nothing_is_wider_than_the_screen(page: Any, explorer: str, width: int, name: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, explorer, STATES[name])
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_every_canvas_has_a_table_behind_it(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    for pane in page.locator(".pane:visible").all():
        if pane.locator("canvas").count():
            pane.locator(".menu summary").click()
            pane.locator(".menu button:text('Table')").click()
            assert pane.locator(".behind td").count() > 10


def test_a_choice_is_seen_without_colour(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=2.0")
    settled(page)
    chip = page.locator('.chip[data-item="2.0"]')
    assert chip.get_attribute("aria-pressed") == "true"
    assert "switched off" in chip.get_attribute("aria-label")
    assert chip.locator(".cross").evaluate("(e) => getComputedStyle(e).visibility") == "visible"


@pytest.mark.parametrize(("pane", "drawn"), [("circuit", ".scene"), ("time", ".chart")])
def test_what_is_maximised_is_drawn_higher_and_then_as_before(
    page: Any, explorer: str, pane: str, drawn: str
) -> None:
    page.set_viewport_size({"width": 600, "height": 900})  # no pane is wider alone
    opened(page, explorer, "/run/gallery-demo")
    place = page.locator(f"#pane-{pane} {drawn}").first
    heights = [place.bounding_box()["height"]]
    for _ in range(2):
        page.click(f"#pane-{pane} [aria-pressed][title^='Maximise']")
        settled(page)
        heights.append(place.bounding_box()["height"])
    assert heights[1] > 1.3 * heights[0]
    assert heights[2] == heights[0]
