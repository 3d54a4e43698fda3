"""What was pressed keeps the keyboard, and takes every press, though the page is drawn anew."""

from typing import Any

import pytest

from tests.browser.lookers import SOON, asked, learned, opened, pressed, ready

HELD = 90
"""Milliseconds for which people hold the mouse's button down."""
FOCUSED = """() => { const { activeElement: its } = document;
return its.getAttribute("aria-label") ?? its.textContent; }"""
CONTROLS = {
    ".heads .choice button:text('other chains')": "other chains",
    ".time .choice button:text('log')": "log",
    ".example button:text('next')": "next",
    ".example button:text('shuffle')": "shuffle",
    ".tray button[title='On again']": "undo",  # which comes next
    ".tray button:text('what each costs')": "what each costs",
    ".map[data-head='1.3']": "Head 1.3",
    ".large .top button": "switch on",
    ".tray button:text('only these')": "only these",
    ".tray button:text('all on')": "all on",
}
"""What is pressed in turn, and how the name of what has the keyboard then begins."""


def press(page: Any, found: Any) -> None:
    """Press as a hand does: the button of the mouse is down for a moment."""
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.wait_for_timeout(HELD)
    page.mouse.up()


@pytest.mark.slow
def test_what_is_pressed_keeps_the_keyboard(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=2.0")
    for label in ("Ghost behind the circuit", "What 2.0 does instead"):
        before = page.url
        page.focus(f'[aria-label="{label}"]')
        pressed(page, "ArrowDown")
        assert (page.evaluate(FOCUSED), page.url != before) == (label, True)
    for control, name in CONTROLS.items():
        page.focus(control)
        pressed(page, "Enter")
        assert page.evaluate(FOCUSED).startswith(name), control


def test_an_arrow_keeps_the_keyboard_when_the_run_changes(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.focus('.tag[data-path="1.3 value 0 ← value 1"]')
    learned(page)
    path = page.evaluate("() => document.activeElement.dataset.path")
    assert path == "1.3 value 0 ← value 1"
    assert pressed(page, "Enter")["off"] == "1.3:value 0"


@pytest.mark.slow
def test_next_is_pressed_as_often_as_it_is(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    for _ in range(4):
        press(page, page.locator(".example button:text('next')"))
    assert asked(page)["ex"] == "4"


@pytest.mark.slow
def test_stop_stops_one_of_two(page: Any, explorer: str) -> None:
    """Each by its own button, which stays the one that is pressed."""
    opened(page, explorer, "/run/gallery-demo?off=0.2;2.2;1.1")
    every = page.locator(".tray .row button[title^='The same changes']")
    costs = page.locator(".tray .row button[title^='Every head']")
    begun = page.locator(".tray button:text('hide curves')")
    for button in (every, costs):
        button.click()
    begun.wait_for()
    assert [every.inner_text(), costs.inner_text()] == ["stop", "stop"]
    press(page, every)
    assert [every.inner_text(), costs.inner_text()] == ["at every step", "stop"]
    page.wait_for_selector(".tray button:text('what each costs')", timeout=SOON)
    assert page.locator(".costs li").count() > 12


@pytest.mark.slow
def test_the_cell_that_the_arrows_reach_is_said(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?head=1.3")
    page.focus(".large .axes")
    said = []
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowRight"):
        pressed(page, key)
        said.append(page.text_content("#said"))
        assert said[-1] == page.inner_text(".large .readout")
    assert said[0].startswith("query reads query: ")
    assert len(set(said)) == 4


def test_letters_are_no_keys_for_those_who_switch_them_off(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.keyboard.press("?")
    page.uncheck(".letters input")
    page.keyboard.press("Escape")
    for _ in range(2):  # and so it stays
        assert pressed(page, "n", "f", "/", "[", "r", "?", "Home") == {"step": "0"}
        assert not page.is_visible("dialog")
        assert page.evaluate("() => document.activeElement === document.body")
        page.reload()
        ready(page)
    page.click("[aria-label='Keys']")
    page.check(".letters input")
    assert pressed(page, "Escape", "n")["ex"] == "1"


def test_escape_goes_one_step_back(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?head=1.3&pane=heads")
    page.focus(".large .axes")
    pressed(page, "ArrowRight")
    left = []
    for _ in range(3):
        found = pressed(page, "Escape")
        left.append(["pane" in found, page.locator(".spot:visible").count(), "head" in found])
    assert left == [[False, 1, True], [False, 0, True], [False, 0, False]]


@pytest.mark.slow
def test_f_maximises_a_pane_that_there_is(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.hover("#pane-heads h2")
    page.evaluate("location.hash = '#/run/gallery-ngram'")
    ready(page)
    pressed(page, "f")
    assert page.locator(".pane:visible").count() == 1


@pytest.mark.slow
def test_a_row_is_offered_what_a_row_can_do(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=0.2;2.0:query")
    offered = page.evaluate("""() => [...document.querySelectorAll(".tray li select")]
      .map((its) => [...its.options].map((one) => one.value))""")
    assert [ways.count("mean") + ways.count("resample") for ways in offered] == [2, 0]
    assert offered[1] == ["uniform", "itself", "previous", "position"]
