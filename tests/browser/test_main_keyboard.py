"""What was pressed keeps the keyboard, and takes every press, though the page is drawn anew."""

from typing import Any

import pytest

from tests.browser.lookers import asked, at, learned, opened, pressed, ready, table_of

HELD = 90
"""Milliseconds for which people hold the mouse's button down."""
FOCUSED = """() => { const { activeElement: its } = document;
return its.getAttribute("aria-label") ?? its.textContent; }"""
CONTROLS = {
    ".heads .choice button:text('others')": "others",
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


@pytest.mark.slow
def test_what_is_pressed_keeps_the_keyboard(page: Any, explorer: str) -> None:
    """And is pressed as often as it is."""
    opened(page, explorer, "/run/gallery-demo?off=2.0")
    for label in ("Compare the circuit with", "What 2.0 does instead"):
        before = page.url
        page.focus(f'[aria-label="{label}"]')
        pressed(page, "ArrowDown")
        assert (page.evaluate(FOCUSED), page.url != before) == (label, True)
    for control, name in CONTROLS.items():
        page.focus(control)
        pressed(page, "Enter")
        assert page.evaluate(FOCUSED).startswith(name), control
    for _ in range(4):
        page.click(".example button:text('next')", delay=HELD)
    assert asked(page)["ex"] == "5"


def test_an_arrow_keeps_the_keyboard_when_the_run_changes(demo: Any) -> None:
    demo.focus('.tag[data-path="1.3 value 1 → value 0"]')
    learned(demo)
    path = demo.evaluate("() => document.activeElement.dataset.path")
    assert path == "1.3 value 1 → value 0"
    assert pressed(demo, "Enter")["off"] == "1.3:value 0"


def test_the_cell_that_the_arrows_reach_is_said_and_escape_goes_one_step_back(
    page: Any, explorer: str
) -> None:
    opened(page, explorer, "/run/gallery-demo?head=1.3&pane=heads")
    page.focus(".large .axes")
    said = []
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowRight"):
        pressed(page, key)
        said.append(page.text_content("#said"))
        assert said[-1] == page.inner_text(".large .readout")
    assert said[0].startswith("query attends to query: ")
    assert len(set(said)) == 4
    left = []
    for _ in range(3):
        found = pressed(page, "Escape")
        left.append(["pane" in found, page.locator(".spot:visible").count(), "head" in found])
    assert left == [[False, 1, True], [False, 0, True], [False, 0, False]]


FIT = """() => { const { width } = document.querySelector(".arcs").viewBox.baseVal;
return width > 0 && width === document.querySelector(".strip").clientWidth; }"""


def test_arcs_fit_their_place_after_another_pane_was_large(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?pane=circuit")
    pressed(page, "f")
    page.wait_for_function(FIT)


AT_ONCE = """() => { const box = document.querySelector(".letters input");
box.closest("dialog").showModal();
box.focus();
box.closest("dialog").close();
document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
}"""


def test_letters_are_no_keys_for_those_who_switch_them_off(demo: Any) -> None:
    """Keys count as soon as the list of them is closed, whose box keeps the keyboard until the page
    is drawn anew.
    """
    demo.keyboard.press("?")
    demo.uncheck(".letters input")
    demo.keyboard.press("Escape")
    for _ in range(2):  # and so it stays
        assert pressed(demo, "n", "f", "/", "[", "r", "?", "Home") == {"step": "0"}
        assert not demo.is_visible("dialog")
        assert demo.evaluate("() => document.activeElement === document.body")
        demo.reload()
        ready(demo)
    demo.click("[aria-label='Keys']")
    demo.check(".letters input")
    assert pressed(demo, "Escape", "n", "End") == {"ex": "1", "step": "2500"}
    demo.evaluate(AT_ONCE)
    assert asked(demo) == {"ex": "1", "step": "0"}


def test_tables_and_the_slider_take_their_own_keys(demo: Any) -> None:
    """A table is scrolled by keys unless all of it is seen."""
    table_of(demo, "heads")
    demo.keyboard.press("End")
    demo.wait_for_function("() => document.activeElement.scrollTop > 200")
    demo.keyboard.press("Home")
    demo.wait_for_function("() => document.activeElement.scrollTop === 0")
    assert pressed(demo, "ArrowLeft") == {}
    demo.evaluate("location.hash = '#/run/gallery-demo?pane=losses'")
    asked(demo)
    table = table_of(demo, "losses")
    assert table.evaluate("(e) => e.scrollHeight <= e.clientHeight")
    assert pressed(demo, "Home")["step"] == "0"
    # The slider takes all keys of a slider, and the left button alone.
    at(demo, "/run/gallery-demo")
    for place in (".slider", ".time .chart"):
        demo.locator(place).first.click(button="right", position={"x": 200, "y": 20})
        assert asked(demo) == {}
    demo.focus(".slider")
    for key, place in (
        ("Home", 0),
        ("ArrowUp", 1),
        ("PageUp", 3),
        ("ArrowDown", 2),
        ("PageDown", 0),
    ):
        pressed(demo, key)
        assert demo.get_attribute(".slider", "aria-valuenow") == str(place)
    assert demo.evaluate("() => document.activeElement.matches('.slider')")


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
