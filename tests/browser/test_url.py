"""The page's state in its address: back, forward and reload restore it; nonsense is left out."""

from typing import Any

from tests.browser.lookers import asked, opened, settled, state

FULL = "/run/gallery-demo?step=500&ex=3&off=1.3:value+0;2.0%3Ditself&head=2.1&kind=others&scale=log"


def test_reload_restores_all(page: Any, explorer: str) -> None:
    opened(page, explorer, FULL)
    before = {key: state(page, key) for key in ("step", "ex", "off", "head", "kind", "scale")}
    assert before["off"] == [
        {"layer": 1, "head": 3, "reader": "value 0", "as": "uniform"},
        {"layer": 2, "head": 0, "reader": "", "as": "itself"},
    ]
    page.reload()
    settled(page)
    assert {key: state(page, key) for key in before} == before


def test_back_and_forward(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.click('.chip[data-item="2.0"]')
    page.click('.chip[data-item="2.1"]')
    page.wait_for_function("() => hopscope.state.off.length === 2")
    page.go_back()
    page.wait_for_function("() => hopscope.state.off.length === 1")
    assert asked(page)["off"] == "2.0"
    page.go_back()
    page.wait_for_function("() => hopscope.state.off.length === 0")
    page.go_forward()
    page.wait_for_function("() => hopscope.state.off.length === 1")
    page.click('.runs a[href="#/run/gallery-planted"]')
    page.wait_for_function("() => hopscope.state.about?.id === 'gallery-planted'")
    page.go_back()
    page.wait_for_function("() => hopscope.state.about?.id === 'gallery-demo'")
    assert asked(page)["off"] == "2.0"


WORDS_WAIT = """
() => new Promise((done) => {
  const { state } = hopscope;
  const frame = window.requestAnimationFrame;
  const held = [];
  window.requestAnimationFrame = (run) => held.push(run);
  let written = 0;
  state.set({ contents: null }, "none");
  state.atRest(() => written++);
  setTimeout(() => {
    const early = written;
    window.requestAnimationFrame = frame;
    for (const run of held) run();
    setTimeout(() => done([early, written]), 500);
  }, 500);
})
"""
"""A run's contents go, words become due, and the next frame comes later than they."""


def test_words_are_of_what_is_drawn(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.wait_for_function("() => hopscope.state.contents && !hopscope.live.busy")
    page.evaluate("() => hopscope.state.set({ step: 300 })")
    page.wait_for_function("() => !hopscope.state.waiting")
    assert page.evaluate(WORDS_WAIT) == [0, 1]


def test_who_returns_at_once_has_no_answer_of_the_run_before(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=2.0")
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route("**/api/runs/gallery-planted/arrays/*", hold)
    page.click('.runs a[href="#/run/gallery-planted"]')
    page.wait_for_function("() => hopscope.state.about?.id === 'gallery-planted'")
    page.route("**/api/runs/gallery-demo", hold)
    page.go_back()
    page.wait_for_function("() => hopscope.state.off.length === 1")
    page.wait_for_timeout(600)  # losses would be asked for after 140 ms, and drawn on the other run
    assert page.evaluate("() => [hopscope.state.about.id, hopscope.state.answer]") == [
        "gallery-planted",
        None,
    ]
    for each in held:
        each.continue_()
    page.unroute_all()
    page.wait_for_function("() => hopscope.state.about?.id === 'gallery-demo'")
    page.wait_for_function("() => hopscope.state.answer?.names.length === 2")


def test_long_and_large_is_read_as_it_was_written(page: Any, site: str) -> None:
    page.goto(f"{site}/blank")
    state = {
        "seed": 2**31 - 1,
        "off": [
            {"layer": n // 64, "head": n % 64, "reader": "", "as": "uniform"} for n in range(640)
        ],
        "tokens": ["ba"] * 4096,
    }
    found = page.evaluate(
        """async (state) => {
          const { START, format, parse } = await import("/url.js");
          return [parse(format({ ...START, ...state })), parse(`#/?seed=${2 ** 31}`).seed];
        }""",
        state,
    )
    assert {key: found[0][key] for key in state} == state
    assert found[1] is None


def test_going_back_stops_what_plays(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?step=300")
    page.evaluate("() => hopscope.state.set({ head: '1.3' })")
    page.keyboard.press("Space")
    page.wait_for_function("() => hopscope.state.step > 400")
    page.go_back()
    page.wait_for_function("() => hopscope.state.head === ''")
    page.wait_for_timeout(700)  # some steps of what would still be playing
    assert (state(page, "playing"), state(page, "step")) == (False, 300)
    assert asked(page) == {"step": "300"}


def test_nonsense_is_left_out(page: Any, site: str) -> None:
    page.goto(f"{site}/blank")
    found = page.evaluate(
        """async () => {
          const { format, parse } = await import("/url.js");
          const odd = "#/run/a%2Fb?step=x&off=1.0;<img>;2.1:q=rm;9&kind=__proto__&ex=-1&pane=%00";
          const state = parse(odd);
          return [state, format(state), parse(format(state)), parse("#/run/%E0%A4%A")];
        }"""
    )
    state, _, again, broken = found
    assert state["run"] == "a/b"
    assert state["off"] == [
        {"layer": 1, "head": 0, "reader": "", "as": "uniform"},
        {"layer": 2, "head": 1, "reader": "q", "as": "uniform"},
    ]
    assert (state["step"], state["ex"], state["kind"], state["pane"]) == (None, 0, "own", "")
    assert again == state
    assert broken["run"] == ""
