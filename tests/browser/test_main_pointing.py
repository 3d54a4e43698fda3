"""What is pointed at is told and can be switched off as long as it is there; all can be undone."""

from typing import Any

import pytest

from hopscope.circuits.saved import saved_circuit
from hopscope.store import gallery
from tests.browser.lookers import asked, opened, pressed, ready

UNDER = "() => Boolean(document.querySelector('.tag:hover, .arrow:hover'))"


def test_what_is_pointed_at_is_told_and_switched_off_while_it_is_there(demo: Any) -> None:
    """The tip goes with another size, another step, another run. What it says of a component is
    what the circuit says.
    """
    circuit = saved_circuit(gallery.find("demo"), 0)
    assert circuit is not None
    assert demo.inner_text("#pane-circuit .body > :first-child") == circuit.verdict
    itself = next(each for each in circuit.components if not each.paths)
    assert itself.lost_computed is not None
    demo.hover('.chip[data-item="0.1"]')
    its = demo.inner_text(".tip")
    assert circuit.described(itself) in its
    assert f"the circuit loses {100 * itself.lost_computed.mean:.1f} % without it" in its
    demo.hover('.map[data-head="0.1"]')
    assert pressed(demo, "a")["off"] == "0.1"
    demo.hover(".heads h2")
    assert pressed(demo, "a")["off"] == "0.1"
    shared = next(each for each in circuit.components if each.sharing)
    demo.hover('.tag[data-path="2.1 value 0 → query"]')
    told = demo.inner_text(".tip").split("the model loses without this head")[1]
    own = shared.sharing[1]
    assert own.head == (2, 1)
    assert own.gained is not None
    assert told.split()[0] == f"{100 * own.lost.mean:.1f}"
    assert told.split("with it alone of them")[1].split()[0] == f"{100 * own.gained.mean:.1f}"
    demo.hover('.tag[data-path="1.3 value 1 → value 0"]')
    before = demo.inner_text(".tip")
    moves = next(each for each in circuit.components if each.at == ((1, 3),))
    assert moves.lost_computed is not None
    cost = moves.lost_computed.mean
    for told in ("1.3 value 1 → value 0", "moves content", f"{100 * cost:.1f} % ±"):
        assert told in before
    pressed(demo, "Home")
    assert "attention here" in demo.inner_text(".tip")
    assert demo.inner_text(".tip") != before
    pressed(demo, "f")
    assert demo.is_visible(".tip") == demo.evaluate(UNDER)
    demo.evaluate("location.hash = '#/run/gallery-planted'")
    ready(demo)
    demo.locator(".tag").first.hover()
    assert demo.is_visible(".tip")
    demo.go_back()
    ready(demo)
    assert demo.is_visible(".tip") == demo.evaluate(UNDER)


ABOVE = """() => hopscope.state.set({ losses: {
  trainSteps: [], train: null,
  validationSteps: [0, 2500], validation: (n, member, hop) => 8 + 40 * n + hop,
} }, "none")"""
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
    assert usual[0] == "at step 2,500"
    assert early[0].startswith("near step ")  # values are of the nearest that was measured
    assert all(
        float(one) > 0.9 > 0.1 > float(other)
        for one, other in zip(early[1:], usual[1:], strict=True)
    )
    assert asked(page) == {}
    page.hover(".heads h2")
    assert page.evaluate(VALUES) == usual
    # Losses that are all above chance are seen, and what is cut is said.
    hint = page.inner_text(".time .hint")
    page.evaluate(ABOVE)
    changed = "(hint) => document.querySelector('.time .hint').innerText !== hint"
    page.wait_for_function(changed, arg=hint)
    assert "losses above 10.8 are cut" in page.inner_text(".time .hint")
    dots = page.locator(".time .chart").first.locator(".dot")
    heights = [float(dot.get_attribute("cy")) for dot in dots.all()]
    assert len(heights) == 4
    assert sum(height > 10 for height in heights) == 2  # both hops at the first step


@pytest.mark.slow
def test_undo_and_the_history(demo: Any) -> None:
    """It does not do again what the history took back, and outlives what moved beside it; the same
    preset twice is one change.
    """
    undo = demo.locator(".tray button:text('undo')")
    for head in ("2.0", "2.1"):
        demo.click(f'.chip[data-item="{head}"]')
    demo.go_back()
    assert pressed(demo, "u")["off"] == "2.0"
    assert undo.is_disabled()
    demo.click('.chip[data-item="2.1"]')
    assert pressed(demo, "n")["ex"] == "1"
    demo.go_back()
    found = pressed(demo, "u")
    assert ("ex" in found, found["off"]) == (False, "2.0")
    for _ in range(2):
        demo.select_option('[aria-label="Presets"]', "every head off")
        assert len(asked(demo)["off"].split(";")) == 12
        assert demo.input_value('[aria-label="Presets"]') == ""
    demo.keyboard.press("Escape")
    undo.click()
    assert asked(demo)["off"] == "2.0"
