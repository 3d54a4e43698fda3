"""What is asked while somebody looks, and when it is given up: a server whose streams are slow."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from short import ID

from hopscope.web.trained import Trained
from tests.browser.lookers import (
    SOON,
    TOKEN,
    asked,
    at,
    bars,
    held,
    learned,
    opened,
    pressed,
    ready,
    served,
    until,
)

COSTS, EVERY = "what each costs", "at every step"
CURVES = ".tray button:text('hide curves')"
ROWS = 12 + 7
"""Heads and paths of the demo."""


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    def slowly(name: str, seconds: float) -> None:
        rows = getattr(Trained, name)

        def one_by_one(*asked: Any) -> Iterator[dict[str, Any]]:
            for row in rows(*asked):
                time.sleep(seconds)
                yield row

        patch.setattr(Trained, name, one_by_one)

    with pytest.MonkeyPatch.context() as patch, served(tmp_path_factory.mktemp("slow")) as address:
        slowly("costs", 0.1)
        slowly("over_time", 0.05)
        yield address


LATE = """async () => {
  const { State } = await import("/state.js"), { Live } = await import("/live.js");
  globalThis.requestAnimationFrame = (draw) => setTimeout(draw, 30);
  const moment = () => new Promise((done) => setTimeout(done, 200));
  let examples = 0;
  const given = (_id, _asked, { signal }) =>
    new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
  const source = {
    live: true,
    counts: [256],
    ablate: given,
    async run(id) {
      if (id === "none") throw new Error("there is no run");
      const model = { layers: 1, heads: 1 };
      return { id, checkpoints: [0], task: { roles: [] }, model, arrays: [], emerged: true };
    },
    example(...asked) {
      examples++;
      return given(...asked);
    },
  };
  const state = new State(), live = new Live(state, source);
  state.toggle({ layer: 0, head: 0 });
  state.set({ run: "demo" }, "none");
  await moment();
  const asked = [examples, state.asking];
  state.set({ run: "none" }, "none");
  await moment();
  return [...asked, state.error?.text, state.asking];
}"""


def test_a_late_frame_asks_nothing_twice_and_hides_no_error(blank: Any) -> None:
    """The run before is given up while it waits for its example and its losses."""
    assert blank.evaluate(LATE) == [1, True, "there is no run", False]


def begin(page: Any, text: str, seen: str) -> None:
    page.click(f".tray button:text('{text}')")
    page.locator(seen).first.wait_for(timeout=SOON)


def test_a_stream_ends_with_what_it_is_of(page: Any, slow: str) -> None:
    """Costs are of a step and of switches; curves are of every step."""
    opened(page, slow, "/run/gallery-demo?off=1.3")
    begin(page, COSTS, ".costs li")
    begin(page, EVERY, CURVES)
    page.keyboard.press("Home")
    page.wait_for_selector(".costs li", state="detached")
    assert page.is_visible(CURVES)
    ready(page)
    assert page.is_visible(CURVES)
    begin(page, COSTS, ".costs li")
    page.click('.chip[data-item="1.3"]')
    page.wait_for_selector(".costs li", state="detached")
    ready(page)
    assert not page.is_visible(CURVES)
    assert not page.locator(".costs li").count()


@pytest.mark.slow
def test_streams_that_are_stopped_or_whose_model_has_learned(page: Any, slow: str) -> None:
    """What is stopped, by its own button, can be asked for at once; what is not goes on, until
    there is another run.
    """
    opened(page, slow, "/run/gallery-demo?off=0.2")
    begin(page, EVERY, CURVES)
    begin(page, COSTS, ".costs li")
    costs = page.locator(".tray .row button[title^='Every head']")
    page.click(".tray .row button[title^='The same changes']")  # stops its own
    page.wait_for_selector(f".tray button:text('{EVERY}')")
    assert costs.inner_text() == "stop"
    costs.click()
    page.click(f".tray button:text('{COSTS}')")
    learned(page)
    assert page.inner_text(".costs small").startswith(f"{ROWS} measured · mean of the hops, 256")
    begin(page, COSTS, ".costs li")
    page.click('.runs a[href="#/run/gallery-planted"]')
    ready(page)
    assert not page.locator(".costs li").count()


def test_squares_come_step_by_step_the_one_that_is_shown_first(
    page: Any, fleet: tuple[str, Path], requests: list[str], forgiven: list[str]
) -> None:
    """And where they cannot be measured, a line says so."""
    opened(page, fleet[0], f"/run/{ID}?step=5&seed=9")
    asked = [url.partition("/contents")[2] for url in requests if "/contents" in url]
    assert asked == [f"?seed=9&step={step}" for step in (5, 0, 10, 12)]
    assert page.locator(".nodes .node").count()
    forgiven.append("422")
    page.route("**/arrays/contents?*", lambda its: its.fulfill(status=422, json=TOO_FEW))
    opened(page, fleet[0], f"/run/{ID}")
    assert page.inner_text(".whose") == f"Squares cannot be measured: {TOO_FEW['error']}"


TOO_FEW = {"error": "take more examples", "status": 422}


def test_losses_that_were_measured_are_not_measured_again(
    page: Any, explorer: str, requests: list[str]
) -> None:
    """The run has learned, and the checkpoint that is looked at is as it was."""
    opened(page, explorer, "/run/gallery-demo?step=300&off=1.3")
    losses, count = bars(page), sum(url.endswith("/ablate") for url in requests)
    learned(page)
    assert (bars(page), sum(url.endswith("/ablate") for url in requests)) == (losses, count)


def test_keys_and_clicks_change_nothing_of_a_run_that_is_still_opened(
    demo: Any, forgiven: list[str]
) -> None:
    run = held(demo, "**/api/runs/gallery-ngram")
    demo.click('.runs a[href="#/run/gallery-ngram"]')
    until(demo, lambda: run)
    for key in ("ArrowLeft", "ArrowUp", "n"):
        demo.locator(".slider").press(key)
    demo.locator(".heads .map").first.click()
    run[0].continue_()
    assert asked(demo) == {}
    assert not demo.is_visible(".error")
    forgiven.append("422")  # the browser notes an answer that is no 200
    demo.evaluate("location.hash = '#/run/gallery-planted?seed=99'")
    assert asked(demo) == {}
    assert demo.inner_text(".error span").endswith(": seed=99")


@pytest.mark.slow
def test_what_is_drawn_stays_until_the_new_maps_are_there(demo: Any) -> None:
    """And what is learned meanwhile gives no question up."""
    waiting = held(demo, "**/arrays/maps")
    row = {"id": "gallery-demo", "name": "gallery/demo", "state": "complete"}
    answer = {"rows": [row], "cursor": "x"}
    for _ in range(2):
        with demo.expect_response("**/api/runs?since=*"):
            demo.route("**/api/runs?since=*", lambda its: its.fulfill(json=answer), times=1)
    until(demo, lambda: waiting)
    assert (len(waiting), demo.locator(".map").count()) == (1, 12)
    waiting[0].continue_()
    demo.unroute_all()
    assert pressed(demo, "Home") == {"step": "0"}


@pytest.mark.slow
def test_who_returns_at_once_has_no_answer_of_the_run_before(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=2.0")
    wanted = bars(page)
    maps = held(page, "**/api/runs/gallery-planted/arrays/*")
    page.click('.runs a[href="#/run/gallery-planted"]')
    page.wait_for_selector("h1:text('gallery/planted')")
    run = held(page, "**/api/runs/gallery-demo")
    page.go_back()
    page.wait_for_timeout(600)  # losses would be asked for after 140 ms, and drawn on the other run
    assert not page.locator(".loss-bars").count()
    for each in (*maps, *run):
        each.continue_()
    page.unroute_all()
    assert bars(page) == wanted


def test_an_error_goes_with_what_it_is_of(page: Any, explorer: str, forgiven: list[str]) -> None:
    """Losses and curves that were refused leave no line when nothing is off any more."""
    forgiven.append("503")
    opened(page, explorer, "/run/gallery-demo")
    for kind in ("ablate", "over-time"):
        page.route(f"**/{kind}", lambda its: its.fulfill(status=503, json={"error": "busy"}))
        page.click('.chip[data-item="1.3"]')
        if kind == "over-time":
            page.click(f".tray button:text('{EVERY}')")
        page.wait_for_selector(".error:visible")
        pressed(page, "u")
        assert not page.is_visible(".error"), kind
        page.unroute_all()


PRESS = """() => setInterval(() => {
  const slider = document.querySelector(".slider");
  slider.dispatchEvent(new KeyboardEvent("keydown", { key: "PageUp" }));
  slider.dispatchEvent(new PointerEvent("pointermove", { buttons: 1 }));
})"""


def test_nothing_plays_on_where_a_seed_cannot_be_opened(
    page: Any, fleet: tuple[str, Path], forgiven: list[str]
) -> None:
    forgiven.append("503")
    opened(page, fleet[0], f"/run/{ID}?step=0")
    busy = {"status": 503, "json": {"error": "busy"}}
    page.route(f"**/api/runs/{ID}?seed=9", lambda its: its.fulfill(**busy))
    page.click(".play")
    pressing = page.evaluate(PRESS)  # requests wait for a moment of rest when the run goes
    page.select_option('[aria-label="Seed"]', "9")
    page.wait_for_selector(".error:visible")
    page.evaluate("(its) => clearInterval(its)", pressing)
    page.wait_for_timeout(300)  # a step takes 180 ms
    page.unroute_all()
    at(page, f"/run/{ID}")
    assert page.locator(".play").get_attribute("aria-label") == "Play through the training"


def test_losses_that_are_given_up_are_not_awaited_in_a_run_without_any(demo: Any) -> None:
    waiting = held(demo, "**/ablate")
    demo.click('.chip[data-item="1.3"]')
    until(demo, lambda: waiting)
    demo.click('.runs a[href="#/run/gallery-ngram"]')
    demo.wait_for_selector("h1:text('gallery/ngram')")
    ready(demo)


def test_the_slider_does_nothing_in_the_frame_in_which_its_run_goes(
    demo: Any, forgiven: list[str]
) -> None:
    forgiven.append("404")
    pressing = demo.evaluate(PRESS)
    at(demo, "/run/none")
    demo.evaluate("(its) => clearInterval(its)", pressing)
    assert demo.is_visible(".error")


def test_squares_of_the_changed_model_come_though_its_losses_came_first(
    page: Any, fleet: tuple[str, Path]
) -> None:
    contents = held(page, "**/arrays/contents?*")
    with page.expect_response("**/ablate"):
        page.goto(f"{fleet[0]}/#token={TOKEN}&/run/{ID}?off=1.0")
    until(page, lambda: contents)
    until(page, lambda: not page.evaluate("Boolean(hopscope.live.open.ablate)"))
    contents[0].continue_()
    page.unroute_all()
    ready(page)
    told = page.locator(".nodes .node title").first.text_content()
    assert told.endswith("with nothing off)")
