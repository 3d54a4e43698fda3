"""What is pointed at is told and can be switched off as long as it is there; all can be undone."""

from typing import Any

import pytest

from hopscope.circuits.saved import saved_circuit
from hopscope.store import gallery
from tests.browser.lookers import asked, opened, pressed, ready

UNDER = "() => Boolean(document.querySelector('.tag:hover, .arrow:hover'))"


def test_what_is_pointed_at_is_told_and_switched_off_while_it_is_there(
    page: Any, explorer: str
) -> None:
    """The tip goes with another size, another step, another run. What it says of a component is
    what the circuit says.
    """
    opened(page, explorer, "/run/gallery-demo")
    circuit = saved_circuit(gallery.find("demo"), 0)
    assert circuit is not None
    assert page.inner_text("#pane-circuit .body > :first-child") == circuit.verdict
    by_position = next(each for each in circuit.components if each.heads == (2,))
    assert by_position.lost_computed is not None
    page.hover('.chip[data-item="0.2"]')
    its = page.inner_text(".tip")
    assert circuit.described(by_position) in its
    cost = by_position.lost_computed.mean
    assert f"weak, the circuit loses {100 * cost:.1f} % without it" in its
    page.hover('.map[data-head="0.1"]')
    assert pressed(page, "a")["off"] == "0.1"
    page.hover(".heads h2")
    assert pressed(page, "a")["off"] == "0.1"
    page.hover('.tag[data-path="1.3 value 1 → value 0"]')
    before = page.inner_text(".tip")
    moves = next(each for each in circuit.components if each.at == ((1, 3),))
    assert moves.lost_computed is not None
    cost = moves.lost_computed.mean
    for told in ("1.3 value 1 → value 0", "moves content", f"{100 * cost:.1f} % ±"):
        assert told in before
    pressed(page, "Home")
    assert "attention here" in page.inner_text(".tip")
    assert page.inner_text(".tip") != before
    pressed(page, "f")
    assert page.is_visible(".tip") == page.evaluate(UNDER)
    page.evaluate("location.hash = '#/run/gallery-planted'")
    ready(page)
    page.locator(".tag").first.hover()
    assert page.is_visible(".tip")
    page.go_back()
    ready(page)
    assert page.is_visible(".tip") == page.evaluate(UNDER)


VALUES = """() => [document.querySelector(".legend > p").textContent,
  ...[...document.querySelectorAll(".legend .key b")].slice(0, 2).map((its) => its.textContent)]"""


def test_a_chart_says_the_values_under_the_pointer(page: Any, explorer: str) -> None:
    """In its legend, as long as it is there; the slider stays."""
    page.set_viewport_size({"width": 1280, "height": 1400})
    opened(page, explorer, "/run/gallery-demo")
    usual = page.evaluate(VALUES)
    box = page.locator(".time .chart").first.bounding_box()
    page.mouse.move(box["x"] + 46, box["y"] + 20)
    early = page.evaluate(VALUES)
    assert usual[0] == "at step 2,500" != early[0]
    assert all(
        float(one) > 0.9 > 0.1 > float(other)
        for one, other in zip(early[1:], usual[1:], strict=True)
    )
    assert asked(page) == {}
    page.hover(".heads h2")
    assert page.evaluate(VALUES) == usual


ABOVE = """() => hopscope.state.set({ losses: {
  trainSteps: [], train: null,
  validationSteps: [0, 2500], validation: (n, member, hop) => 8 + 40 * n + hop,
} }, "none")"""


def test_losses_that_are_all_above_chance_are_seen(page: Any, explorer: str) -> None:
    """And what is cut is said."""
    opened(page, explorer, "/run/gallery-demo")
    usual = page.inner_text(".time .hint")
    page.evaluate(ABOVE)
    page.wait_for_function("(usual) => document.querySelector('.time .hint').innerText !== usual",
                           arg=usual)  # fmt: skip
    assert "losses above 10.8 are cut" in page.inner_text(".time .hint")
    dots = page.locator(".time .chart").first.locator(".dot")
    heights = [float(dot.get_attribute("cy")) for dot in dots.all()]
    assert len(heights) == 4
    assert sum(height > 10 for height in heights) == 2  # both hops at the first step


@pytest.mark.slow
def test_undo_and_the_history(page: Any, explorer: str) -> None:
    """It does not do again what the history took back, and outlives what moved beside it; the same
    preset twice is one change.
    """
    opened(page, explorer, "/run/gallery-demo")
    undo = page.locator(".tray button:text('undo')")
    for head in ("2.0", "2.1"):
        page.click(f'.chip[data-item="{head}"]')
    page.go_back()
    assert pressed(page, "u")["off"] == "2.0"
    assert undo.is_disabled()
    page.click('.chip[data-item="2.1"]')
    assert pressed(page, "n")["ex"] == "1"
    page.go_back()
    found = pressed(page, "u")
    assert ("ex" in found, found["off"]) == (False, "2.0")
    for _ in range(2):
        page.select_option('[aria-label="Presets"]', "every head off")
        assert len(asked(page)["off"].split(";")) == 12
        assert page.input_value('[aria-label="Presets"]') == ""
    page.keyboard.press("Escape")
    undo.click()
    assert asked(page)["off"] == "2.0"
