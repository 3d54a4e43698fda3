"""What is pointed at is told and can be switched off as long as it is there, and no longer."""

from typing import Any

from tests.browser.lookers import opened, settled, state

ARROW = '.tag[data-path="1.3 value 0 ← value 1"]'


def test_the_tip_goes_with_what_it_tells_of(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.hover(ARROW)
    assert page.is_visible(".tip")
    page.keyboard.press("f")
    page.wait_for_function("() => hopscope.state.pane === 'circuit'")
    settled(page)
    under = page.evaluate("() => Boolean(document.querySelector('.tag:hover, .arrow:hover'))")
    assert page.is_visible(".tip") == under


def test_the_tip_goes_with_the_run(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.evaluate("location.hash = '#/run/gallery-planted'")
    page.wait_for_function("() => hopscope.state.about?.id === 'gallery-planted'")
    settled(page)
    page.locator(".tag").first.hover()
    assert page.is_visible(".tip")
    page.go_back()
    page.wait_for_function("() => hopscope.state.about?.id === 'gallery-demo'")
    settled(page)
    under = page.evaluate("() => Boolean(document.querySelector('.tag:hover, .arrow:hover'))")
    assert page.is_visible(".tip") == under


def test_the_tip_tells_of_the_step_that_is_looked_at(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.hover(ARROW)
    before = page.inner_text(".tip")
    page.keyboard.press("Home")
    page.wait_for_function("() => hopscope.state.step === 0")
    settled(page)
    after = page.inner_text(".tip")
    assert "attention here" in after
    assert after != before


def test_only_what_is_pointed_at_is_switched_off(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.hover('.map[data-head="0.1"]')
    page.keyboard.press("a")
    page.wait_for_function("() => hopscope.state.off.length === 1")
    page.hover(".heads h2")
    page.keyboard.press("a")
    settled(page)
    assert len(state(page, "off")) == 1


def test_undo_does_not_do_again_what_the_history_took_back(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.click('.chip[data-item="2.0"]')
    page.wait_for_function("() => hopscope.state.off.length === 1")
    page.click('.chip[data-item="2.1"]')
    page.wait_for_function("() => hopscope.state.off.length === 2")
    page.go_back()
    page.wait_for_function("() => hopscope.state.off.length === 1")
    page.keyboard.press("u")
    settled(page)
    assert len(state(page, "off")) == 1
    assert page.locator(".tray button:text('undo')").is_disabled()


def test_the_same_preset_twice_is_one_change(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    for _ in range(2):
        page.select_option('[aria-label="Presets"]', "every head off")
        page.wait_for_function("() => hopscope.state.off.length === 12")
        assert page.input_value('[aria-label="Presets"]') == ""
    page.keyboard.press("Escape")
    page.locator(".tray button:text('undo')").click()
    page.wait_for_function("() => hopscope.state.off.length === 0")


def test_undo_is_there_after_the_history_moved_through_other_things(
    page: Any, explorer: str
) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.click('.chip[data-item="2.0"]')
    page.wait_for_function("() => hopscope.state.off.length === 1")
    page.keyboard.press("n")
    page.wait_for_function("() => hopscope.state.ex === 1")
    page.go_back()
    page.wait_for_function("() => hopscope.state.ex === 0")
    page.keyboard.press("u")
    page.wait_for_function("() => hopscope.state.off.length === 0")
