"""What was pressed keeps the keyboard, and takes every press, though the page is drawn anew."""

from typing import Any

import pytest

from tests.browser.lookers import SOON, measured, opened, settled, state

HELD = 90
"""Milliseconds for which people hold the mouse's button down."""
FOCUSED = """() => { const { activeElement: its } = document;
return its.getAttribute("aria-label") ?? its.textContent; }"""


def press(page: Any, found: Any) -> None:
    """Press as a hand does: the button of the mouse is down for a moment."""
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.wait_for_timeout(HELD)
    page.mouse.up()


CONTROLS = {
    ".heads .choice button:text('other chains')": "other chains",
    ".time .choice button:text('log')": "log",
    ".example button:text('next')": "next",
    ".example button:text('shuffle')": "shuffle",
    ".tray button:text('only these')": "only these",
    ".tray button:text('all on')": "all on",
    ".tray button:text('what each costs')": "what each costs",
    ".tray button[title='On again']": "undo",  # which comes next
    ".map[data-head='1.3']": "Head 1.3",
    ".large .top button": "switch on",
}
"""What is pressed, and how the name of what has the keyboard then begins."""


@pytest.mark.parametrize("control", CONTROLS)
def test_what_is_pressed_keeps_the_keyboard(page: Any, explorer: str, control: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=2.0")
    page.focus(control)
    page.keyboard.press("Enter")
    settled(page)
    assert page.evaluate(FOCUSED).startswith(CONTROLS[control])


@pytest.mark.parametrize(
    ("label", "key"),
    [("Ghost behind the circuit", "ArrowDown"), ("What 2.0 does instead", "ArrowDown")],
)
def test_a_list_keeps_the_keyboard(page: Any, explorer: str, label: str, key: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=2.0")
    before = page.url
    page.focus(f'[aria-label="{label}"]')
    page.keyboard.press(key)
    page.wait_for_function("(before) => location.href !== before", arg=before)
    settled(page)
    assert page.evaluate(FOCUSED) == label


def test_an_arrow_keeps_the_keyboard_when_the_run_changes(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.focus('.tag[data-path="1.3 value 0 ← value 1"]')
    page.evaluate("() => hopscope.live.openRun()")
    settled(page)
    path = page.evaluate("() => document.activeElement.dataset.path")
    assert path == "1.3 value 0 ← value 1"
    page.keyboard.press("Enter")
    page.wait_for_function("() => hopscope.state.off.length === 1")


def test_next_is_pressed_as_often_as_it_is(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    after = page.locator(".example button:text('next')")
    for _ in range(8):
        press(page, after)
    assert state(page, "ex") == 8


def test_stop_stops(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=1.3")
    measured(page)
    every = page.locator(".tray .row button[title^='The same changes']")
    for _ in range(3):  # where this process is slow, all may be there before it presses
        press(page, every)
        page.wait_for_function("() => hopscope.state.overTime?.length >= 2")
        last = ".tray .row:last-child button"
        page.evaluate("(last) => { globalThis.made = document.querySelector(last); }", last)
        press(page, every)
        page.wait_for_function("() => !hopscope.state.working", timeout=SOON)
        settled(page)
        assert page.evaluate("() => globalThis.made.isConnected")
        if len(state(page, "overTime")) < len(state(page, "steps")):
            return
    pytest.fail("it was stopped three times, and came to the end each time")


def test_the_cell_that_the_arrows_reach_is_said(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?head=1.3")
    page.focus(".large .axes")
    said = []
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
        settled(page)
        said.append(page.text_content("#said"))
        assert said[-1] == page.inner_text(".large .readout")
    assert said[0].startswith("query reads query: ")
    assert len(set(said)) == 4


LETTERS = ".letters input"


def test_letters_are_no_keys_for_those_who_switch_them_off(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.keyboard.press("?")
    page.uncheck(LETTERS)
    page.keyboard.press("Escape")
    for _ in range(2):  # and so it stays
        for key in ("n", "f", "/", "[", "r", "?"):
            page.keyboard.press(key)
        page.keyboard.press("Home")
        page.wait_for_function("() => hopscope.state.step === 0")
        assert (state(page, "ex"), state(page, "pane")) == (0, "")
        assert not page.is_visible("dialog")
        assert page.evaluate("() => document.activeElement === document.body")
        page.reload()
        settled(page)
    page.click("[aria-label='Keys']")
    page.check(LETTERS)
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.wait_for_function("() => hopscope.state.ex === 1")


def test_escape_goes_one_step_back(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?head=1.3&pane=heads")
    page.focus(".large .axes")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => hopscope.state.spot")
    left = []
    for _ in range(3):
        page.keyboard.press("Escape")
        settled(page)
        left.append([bool(state(page, key)) for key in ("pane", "spot", "head")])
    assert left == [[False, True, True], [False, False, True], [False, False, False]]


def test_f_maximises_a_pane_that_there_is(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.hover("#pane-heads h2")
    page.evaluate("location.hash = '#/run/gallery-ngram'")
    page.wait_for_function("() => hopscope.state.about?.id === 'gallery-ngram'")
    settled(page)
    page.evaluate("() => { hopscope.state.near = 'heads'; }")  # and nothing here was pointed at
    page.keyboard.press("f")
    settled(page)
    assert state(page, "pane") == "sequence"
    assert page.locator(".pane:visible").count() == 1
