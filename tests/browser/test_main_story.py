"""The whole story of the demo on the page: once by mouse, once by keyboard alone."""

from typing import Any

import pytest

from hopscope.circuits import Ablation, Ablator, exam_of, subject_of
from hopscope.circuits.changes import changes_of
from hopscope.study import load
from tests.browser.lookers import asked, bars, measured, opened, settled, state

EXAMPLES = 1024
"""The page measures few examples at once, and in the end so many."""


def by_command(changes: list[str], step: int | None = None) -> list[float]:
    """What `hopscope ablate` measures."""
    model = load("gallery/demo", step=step)
    ablator = Ablator(subject_of(model.model), exam_of(model.task, EXAMPLES, 0))
    return ablator.losses([Ablation.of(changes_of(changes, {}))]).double().mean(1)[0].tolist()


def test_by_mouse(page: Any, explorer: str) -> None:
    opened(page, explorer)
    assert "/run/gallery-demo" in page.url
    assert "token" not in page.url
    page.click('.tag[data-path="1.3 value 0 ← value 1"]')
    assert measured(page) == pytest.approx(by_command(["1.3:value 0=uniform"]), abs=1e-6)
    assert asked(page)["off"] == "1.3:value 0"
    assert asked(page)["head"] == "1.3"
    page.click('.chip[data-item="2.0"]')
    both = ["1.3:value 0=uniform", "2.0=uniform"]
    assert measured(page) == pytest.approx(by_command(both), abs=1e-6)
    page.click(".tray button:text('undo')")
    assert measured(page) == pytest.approx(by_command(both[:1]), abs=1e-6)
    page.select_option('[aria-label="What 1.3:value 0 does instead"]', "itself")
    assert measured(page) == pytest.approx(by_command(["1.3:value 0=itself"]), abs=1e-6)
    page.click(".tray button:text('at every step')")
    page.wait_for_function(
        "() => hopscope.state.overTime?.length === hopscope.state.steps.length", timeout=60_000
    )
    row = next(row for row in state(page, "overTime") if row["step"] == 500)
    alone = load("gallery/demo", step=500)
    ablator = Ablator(subject_of(alone.model), exam_of(alone.task, 256, 0))
    own = ablator.losses([Ablation.of(changes_of(["1.3:value 0=itself"], {}))])
    assert row["changed"]["mean"] == pytest.approx(own.double().mean(1)[0].tolist(), abs=1e-6)
    page.click(".tray button:text('all on')")
    settled(page)
    page.locator(".slider").scroll_into_view_if_needed()
    notches = page.locator(".slider .notch")
    for number in (25, 20, 12, 7, 5):
        notch = notches.nth(number).bounding_box()
        page.mouse.move(notch["x"], notch["y"] + 4)
        page.mouse.down()
    page.mouse.up()
    assert state(page, "step") == 500
    settled(page)
    page.click(".example button:text('next')")
    page.wait_for_function("() => hopscope.state.ex === 1")
    page.click('.map[data-head="0.1"]')
    settled(page)
    assert "Head 0.1" in page.inner_text(".large")


SCRUB = """() => { for (let n = 0; n < 20; n++) {
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
} }"""


def test_scrubbing_asks_for_nothing_until_one_rests(
    page: Any, explorer: str, requests: list[str]
) -> None:
    opened(page, explorer, "/run/gallery-demo")
    settled(page)
    with page.expect_response("**/example") as rested:
        before = len(requests)
        page.evaluate(SCRUB)
    assert rested.value.ok
    assert state(page, "step") == 500
    asked_for = [url for url in requests[before:] if "/api/" in url and "since=" not in url]
    assert [url.rsplit("/", 1)[1] for url in asked_for] == ["example"]


def test_by_keyboard_alone(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.keyboard.press("Home")
    assert page.wait_for_function("() => hopscope.state.step === 0")
    page.keyboard.press("ArrowRight")
    assert page.wait_for_function("() => hopscope.state.step === 100")
    page.keyboard.press("]")
    assert page.wait_for_function("() => hopscope.state.step === 400")  # the first path emerges
    page.keyboard.press("[")
    page.keyboard.press("End")
    assert page.wait_for_function("() => hopscope.state.step === 2500")
    settled(page)
    for _ in range(200):
        page.keyboard.press("Tab")
        here = page.evaluate("() => document.activeElement.dataset?.path ?? ''")
        if here == "1.3 value 0 ← value 1":
            break
    assert here == "1.3 value 0 ← value 1"
    page.keyboard.press("Enter")
    assert measured(page) == pytest.approx(by_command(["1.3:value 0=uniform"], step=2500), abs=1e-6)
    page.keyboard.press("a")
    page.wait_for_function("() => hopscope.state.off.length === 0")
    page.keyboard.press("u")
    page.wait_for_function("() => hopscope.state.off.length === 1")
    page.keyboard.press("n")
    page.wait_for_function("() => hopscope.state.ex === 1")
    page.keyboard.press("/")
    page.keyboard.type("0.3")
    page.keyboard.press("Enter")
    page.wait_for_function("() => hopscope.state.head === '0.3'")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.wait_for_function("() => hopscope.state.pane !== ''")
    page.keyboard.press("Escape")
    page.wait_for_function("() => hopscope.state.pane === ''")
    page.keyboard.press("?")
    assert page.is_visible("dialog")
    page.keyboard.press("Escape")
    assert not page.is_visible("dialog")


def test_costs_come_one_after_the_other(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.click(".tray button:text('what each costs')")
    page.wait_for_function("() => hopscope.state.costs?.length >= 12 && !hopscope.state.working")
    rows = {row["change"]: row["changed"]["mean"] for row in state(page, "costs")}
    model = load("gallery/demo")
    ablator = Ablator(subject_of(model.model), exam_of(model.task, 256, 0))
    own = ablator.losses([Ablation.of(changes_of(["2.1=uniform"], {}))]).double().mean(1)[0]
    assert rows["2.1=uniform"] == pytest.approx(own.tolist(), abs=1e-6)
    worst = page.locator(".costs li button").first.inner_text()
    assert worst == max(rows, key=lambda text: sum(rows[text])).removesuffix("=uniform")


def test_bars_without_changes_are_those_of_the_training(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?step=700")
    run = load("gallery/demo").run
    steps, losses = run.losses("validation")
    assert bars(page) == pytest.approx(losses[steps == 700][0, 0].tolist(), abs=1e-6)


def test_what_is_being_typed_stays_when_another_answer_arrives(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.locator(".token").first.dblclick()
    page.keyboard.type("zz")
    page.evaluate("() => hopscope.state.set({ example: { ...hopscope.state.example } }, 'none')")
    settled(page)
    page.keyboard.type("9")
    assert page.input_value(".token input") == "zz9"
    page.keyboard.press("Escape")
    assert not page.locator(".token input").count()
    assert page.evaluate("() => document.activeElement.dataset.place") == "0"


def test_a_typed_symbol_is_answered_and_one_that_is_unknown_is_a_line(
    page: Any, explorer: str, complaints: list[str]
) -> None:
    opened(page, explorer, "/run/gallery-demo")
    first = page.locator(".token").first
    before = first.locator("b").inner_text()
    first.dblclick()
    page.keyboard.type("b1" if before != "b1" else "c1")
    page.keyboard.press("Enter")
    page.wait_for_function("() => hopscope.state.tokens !== null")
    settled(page)
    first = page.locator(".token").first
    first.dblclick()
    page.keyboard.type("zz9")
    page.keyboard.press("Enter")
    page.wait_for_selector(".error:visible")
    assert "zz9" in page.inner_text(".error")
    assert page.is_visible(".scene")  # everything else goes on
    assert "zz9" not in page.inner_text(".tokens")
    page.click("text=as it was")
    page.wait_for_selector(".error", state="hidden")
    settled(page)
    assert page.locator(".token b").first.inner_text() == before
    assert all("422" in each or "400" in each for each in complaints)
    complaints.clear()  # the browser notes an answer that is no 200
