"""What is switched off, and on again: never anything twice, as that would be refused."""

from random import Random
from typing import Any

from tests.browser.lookers import asked, at, measured, opened

TOGGLED = """async ([as, off, items]) => {
  const { State } = await import("/state.js"), { asFlag, item } = await import("/changes.js");
  const state = new State();
  state.set({ as, off: off.map((text) => item(text, as)) }, "none");
  return items.map((text) => {
    state.toggle(item(text));
    return state.off.map(asFlag);
  });
}"""
"""What is off after each of the items was toggled."""


def toggled(blank: Any, off: list[str], *items: str, as_: str = "uniform") -> Any:
    return blank.evaluate(TOGGLED, [as_, off, items])


HEADS_AND_ROWS = (
    ([], "1.0", ["1.0=uniform"]),
    (["1.0"], "1.0", []),
    (["1.0", "1.1"], "1.0:query", ["1.1=uniform"]),
    (["1.0:query", "1.1:query", "1.0:key 0"], "1.0", ["1.1:query=uniform", "1.0=uniform"]),
    (["1.0:query"], "1.0:key 0", ["1.0:query=uniform", "1.0:key 0=uniform"]),
    (["1.0:query", "1.0:key 0"], "1.0:query", ["1.0:key 0=uniform"]),
    (["1.0=mean"], "1.0:query", []),
    (["1.0", "1.0:query"], "1.0:query", []),  # as an address may say
)


def test_a_head_and_its_rows(blank: Any) -> None:
    for off, item, left in HEADS_AND_ROWS:
        assert toggled(blank, off, item) == [left], (off, item)
    for way in ("mean", "itself"):
        after = toggled(blank, [], "1.0:query", "1.1", as_=way)
        assert after[-1] == [f"1.0:query={way}", f"1.1={way}"]


def test_nothing_is_off_twice_whatever_is_pressed(blank: Any) -> None:
    names = ["1.0", "1.0:query", "1.0:key 0", "1.1", "1.1:query"]
    pressed = Random(0).choices(names, k=200)
    for after in toggled(blank, [], *pressed):
        off = [text.removesuffix("=uniform") for text in after]
        rows = [name for name in off if ":" in name]
        assert len(set(off)) == len(off)
        assert not {name.partition(":")[0] for name in rows} & set(off)


REFUSES = """() => {
  for (const way of ["pushState", "replaceState"]) history[way] = () => {
    throw new DOMException("more than 100 times per 10 seconds", "SecurityError");
  };
}"""
"""As WebKit does; what is the prototype's comes back when these are deleted."""


def test_a_head_then_its_arrow_then_the_head(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?as=mean")
    chip, arrow = '.chip[data-item="1.3"]', '.tag[data-path="1.3 value 1 → value 0"]'
    page.click(chip)
    whole = measured(page)
    page.click(arrow)
    assert "off" not in asked(page)
    page.click(arrow)
    page.click(chip)
    assert measured(page) == whole
    assert asked(page)["off"] == "1.3"
    assert not page.is_visible(".error")
    # What the history refuses is written later.
    at(page, "/run/gallery-demo")
    page.evaluate(REFUSES)
    for _ in range(2):
        page.keyboard.press("n")
    page.locator(".example .hint:has-text('number 2')").wait_for()
    page.wait_for_timeout(400)  # it is tried again, and refused
    assert "ex=" not in page.url
    page.evaluate("delete history.pushState; delete history.replaceState")
    assert asked(page)["ex"] == "2"
    page.keyboard.press("n")
    assert asked(page)["ex"] == "3"
    page.go_back()
    assert asked(page)["ex"] == "2"


REPLACED = """async () => {
  const { State } = await import("/state.js");
  const state = new State();
  state.set({ steps: [0, 150], answer: { of: "" } }, "none");
  state.answer.of = state.which;
  const before = state.fits;
  state.set({ steps: [0, 200] }, "none");
  return [before, state.fits];
}"""
"""A run that was stopped at step 150 goes on: that checkpoint is gone."""


def test_losses_of_a_checkpoint_that_is_gone_are_not_those_of_the_next(blank: Any) -> None:
    assert blank.evaluate(REPLACED) == [True, False]
