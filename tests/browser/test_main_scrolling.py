"""Keys move what has the keyboard: a table, a wide drawing, the slider; the mouse moves the step
with its left button alone."""

from typing import Any

import pytest

from tests.browser.lookers import asked, opened, pressed


def table_of(page: Any, pane: str) -> Any:
    """The numbers of a pane, opened by its menu."""
    page.click(f".{pane} .menu summary")
    page.click(f".{pane} .menu button:text('Table')")
    return page.locator(f".{pane} .behind")


def test_a_table_is_scrolled_by_keys_unless_all_of_it_is_seen(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    table_of(page, "heads")
    page.keyboard.press("End")
    page.wait_for_function("() => document.activeElement.scrollTop > 200")
    page.keyboard.press("Home")
    page.wait_for_function("() => document.activeElement.scrollTop === 0")
    assert pressed(page, "ArrowLeft") == {}
    page.evaluate("location.hash = '#/run/gallery-demo?pane=losses'")
    asked(page)
    table = table_of(page, "losses")
    assert table.evaluate("(e) => e.scrollHeight <= e.clientHeight")
    assert pressed(page, "Home")["step"] == "0"


AT_REST = """() => { const { scrollLeft: now } = document.activeElement, { before } = globalThis;
globalThis.before = now;
return now > 0 && now === before; }"""


@pytest.mark.slow
def test_a_wide_drawing_keeps_its_place(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    opened(page, explorer, "/run/gallery-ngram")
    page.focus(".parameters .wide")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(AT_REST, polling=200)
    before = page.evaluate("() => document.activeElement.scrollLeft")
    assert "step" in pressed(page, "[")
    assert page.evaluate("() => document.activeElement.scrollLeft") == before


def test_the_slider_takes_all_keys_of_a_slider(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.focus(".slider")
    for key, at in (("Home", 0), ("ArrowUp", 1), ("PageUp", 4), ("ArrowDown", 3), ("PageDown", 0)):
        pressed(page, key)
        assert page.get_attribute(".slider", "aria-valuenow") == str(at)
    assert page.evaluate("() => document.activeElement.matches('.slider')")


@pytest.mark.slow
def test_the_right_button_moves_no_step(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    for place in (".slider", ".time .chart"):
        page.locator(place).first.click(button="right", position={"x": 200, "y": 20})
        assert asked(page) == {}


UNDER = """() => { const { activeElement: its } = document;
const bar = document.querySelector(".bar");
return !bar.contains(its) && !its.closest(".runs") && its !== document.body
  && its.getBoundingClientRect().top < bar.getBoundingClientRect().bottom
  ? its.outerHTML.slice(0, 100) : null; }"""


@pytest.mark.slow
def test_nothing_that_has_the_keyboard_is_under_the_bar(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 420})
    opened(page, explorer, "/run/gallery-demo")
    page.focus(".slider")
    for _ in range(45):
        page.keyboard.press("Shift+Tab")
        assert page.evaluate(UNDER) is None


@pytest.mark.slow
def test_a_click_beside_the_list_of_keys_closes_it_and_one_within_does_not(
    page: Any, explorer: str
) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.keyboard.press("?")
    box = page.locator("dialog").bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + 5)
    assert page.is_visible("dialog")
    page.mouse.click(box["x"] - 20, box["y"] + 5)
    assert not page.is_visible("dialog")
