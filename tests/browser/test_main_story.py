"""The whole story of the demo on the page: once by mouse, once by keyboard alone."""

import re
from typing import Any

import pytest

from hopscope.circuits import Ablation, Ablator, adapter_of, examples_of
from hopscope.circuits.ablation import changes_of
from hopscope.study import load
from tests.browser.lookers import asked, at, measured, opened, pressed, ready, until

ARROW = '.tag[data-path="1.3 value 1 → value 0"]'


def by_command(*changes: str, examples: int = 1024) -> Any:
    """What `hopscope ablate` measures."""
    model = load("gallery/demo")
    ablator = Ablator(adapter_of(model.model), examples_of(model.task, examples, 0))
    found = ablator.losses([Ablation.of(changes_of(changes, {}))]).double().mean(1)[0]
    return pytest.approx(found.tolist(), abs=1e-6)


def test_by_mouse(page: Any, explorer: str) -> None:
    opened(page, explorer)
    assert page.url.endswith("/#/run/gallery-demo")  # without the token
    page.click(ARROW)
    assert measured(page) == by_command("1.3:value 0=uniform")
    assert asked(page) == {"off": "1.3:value 0", "head": "1.3"}
    page.click('.chip[data-item="2.0"]')
    assert measured(page) == by_command("1.3:value 0=uniform", "2.0=uniform")
    page.click(".tray button:text('undo')")
    assert measured(page) == by_command("1.3:value 0=uniform")
    page.select_option('[aria-label="What 1.3:value 0 does instead"]', "itself")
    assert measured(page) == by_command("1.3:value 0=itself")
    page.click(".tray button:text('at every step')")
    page.wait_for_selector(".time .legend :text('broad: with what is switched off')")
    page.click(".tray button:text('all on')")
    page.locator(".slider").scroll_into_view_if_needed()
    notches = page.locator(".slider .notch")
    for number in (19, 15, 12, 7, 5):
        notch = notches.nth(number).bounding_box()
        page.mouse.move(notch["x"], notch["y"] + 4)
        page.mouse.down()
    page.mouse.up()
    page.click(".example button:text('next')")
    page.click('.map[data-head="0.1"]')
    assert asked(page) == {"step": "500", "ex": "1", "head": "0.1"}
    assert "Head 0.1" in page.inner_text(".large")


TITLES = """() => [...document.querySelectorAll(".node title")].map((its) => its.textContent)"""
SQUARES = re.compile(r"query, after layer 2: x₀ \S+.* x₁ (\S+).* x₂ ([\d.-]+) \(?([\d.]*)")


def test_squares_and_costs(page: Any, explorer: str) -> None:
    """Squares follow what is switched off, by the server's numbers; on a saved page, which cannot
    know them, they are pale. Costs are those of the command, the worst first.
    """
    opened(page, explorer, "/run/gallery-demo?off=1.3")
    page.wait_for_selector(".nodes:not(.old)")
    told = next(filter(None, map(SQUARES.match, page.evaluate(TITLES))))
    x1, x2, usual = (float(its) for its in told.groups())
    assert x2 < 0.1 < 0.9 < min(x1, usual)
    assert "the changed model" in page.inner_text(".whose")
    page.click(".tray button:text('all on')")
    ready(page)
    assert "changed" not in page.inner_text(".whose")
    assert not page.locator(".nodes.old").count()
    page.click(".tray button:text('what each costs')")
    ready(page)
    rows = [row.split() for row in page.locator(".costs li").all_inner_texts()]
    costs = {" ".join(name): float(cost) for *name, cost in rows}
    assert len(costs) > 12
    assert list(costs.values()) == sorted(costs.values(), reverse=True)
    wanted = by_command("2.1=uniform", examples=256).expected
    assert costs["2.1"] == pytest.approx(sum(wanted) / len(wanted), rel=1e-2)


def test_by_keyboard_alone(demo: Any) -> None:
    for key, step in (
        ("Home", 0),
        ("ArrowRight", 100),
        ("]", 400),
        ("ArrowRight", 500),
        ("[", 400),
        ("End", 2500),
    ):
        assert pressed(demo, key) == {"step": str(step)}  # at 400 the first path emerges
    here = "() => document.activeElement.dataset.path ?? document.activeElement.dataset.item"
    demo.keyboard.press("Tab")  # the first stop leads to what is drawn
    demo.keyboard.press("Enter")
    assert demo.evaluate(here)
    pressed(demo, "/", "1", ".", "3", "Enter")
    assert demo.evaluate(here) == "1.3"
    for _ in range(4):  # past the other heads of its layer: 12 keys in all
        demo.keyboard.press("ArrowLeft")
    assert demo.evaluate(here) == "1.3 value 1 → value 0"
    demo.keyboard.press("Enter")
    assert measured(demo) == by_command("1.3:value 0=uniform")
    assert "off" not in pressed(demo, "a")
    assert pressed(demo, "u")["off"] == "1.3:value 0"
    assert pressed(demo, "n")["ex"] == "1"
    assert pressed(demo, "/", "Backspace", "0", ".", "3", "Enter")["head"] == "0.3"
    assert "pane" in pressed(demo, "Escape", "f")
    assert "pane" not in pressed(demo, "Escape")
    demo.keyboard.press("?")
    box = demo.locator("dialog").bounding_box()
    for beside, is_open in ((-5, True), (20, False)):  # a click within, and one beside it
        demo.mouse.click(box["x"] - beside, box["y"] + 5)
        assert demo.is_visible("dialog") == is_open


LABELLED = """() => new Promise((done) => {
  let [labels, frames] = [0, 0];
  new MutationObserver((all) => { labels += all.length; }).observe(
    document.querySelector("#pane-circuit"), { subtree: true, attributeFilter: ["aria-label"] });
  const frame = () => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
    if (++frames < 14) return requestAnimationFrame(frame);
    done(labels);
  };
  requestAnimationFrame(frame);
})"""


SCRUB = """() => { for (let n = 0; n < 14; n++) {
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
} }"""


def test_scrubbing_asks_for_nothing_until_one_rests(demo: Any, requests: list[str]) -> None:
    before = len(requests)
    demo.evaluate(SCRUB)
    assert asked(demo) == {"step": "500"}
    asked_for = [url for url in requests[before:] if "/api/" in url and "since=" not in url]
    assert [url.rsplit("/", 1)[1] for url in asked_for] == ["example"]
    # Labels are written when one rests, and when the circuit is drawn anew.
    assert pressed(demo, "End")["step"] == "2500"
    before = demo.get_attribute(ARROW, "aria-label")
    assert demo.evaluate(LABELLED) < 30  # there are seven arrows
    ready(demo)
    after = demo.get_attribute(ARROW, "aria-label")
    assert before.partition(", ")[0] == after.partition(", ")[0] == "1.3 value 1 to value 0"
    assert before != after
    width = demo.locator(".scene").get_attribute("width")
    demo.set_viewport_size({"width": 800, "height": 900})
    until(demo, lambda: demo.locator(".scene").get_attribute("width") != width)
    ready(demo)
    assert demo.locator(".scene [role='button']").count() > 12
    assert not demo.locator(".scene [role='button']:not([aria-label])").count()


def test_numbers_say_of_what_they_are(page: Any, explorer: str) -> None:
    """Maps are of the model with nothing off, though the example is of the changed one."""
    opened(page, explorer, "/run/gallery-demo?off=2.0:query&head=1.1&kind=others")
    label = page.get_attribute('.map[data-head="2.0"]', "aria-label")
    assert label.startswith("Head 2.0, in the circuit, switched off at query: ")
    readout = page.inner_text(".large .readout")
    assert " of other chains: " in readout
    assert readout.endswith(", with nothing off")
    assert page.inner_text(".large figcaption") == "in this example, with what is off"
    circuits = "0.0189 of the circuit with prescribed attention, 0.0548 with computed attention"
    assert page.inner_text(".key-line").endswith(circuits)
    assert "grey: x₀ or weak" in page.inner_text(".key-line")
    for cut in ("header .about", ".time .hint p"):
        assert page.get_attribute(cut, "title") == page.inner_text(cut)
    page.hover('.tag[data-path="1.3 value 1 → value 0"]')
    assert "attention here, with nothing off" in page.inner_text(".tip")
    at(page, "/run/gallery-demo?colour=emerged")
    assert page.inner_text(".key-line span:has(> .moments)").split() == ["step", "369", "628"]
    assert "dashed: routes later heads · grey: never emerged" in page.inner_text(".key-line")
