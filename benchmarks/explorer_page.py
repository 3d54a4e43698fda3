"""How fast the explorer's page loads, scrubs and answers clicks, in a real Chromium.

    python benchmarks/explorer_page.py [--rounds 8]

* First paint of gallery/demo: the time from the command to the picture, and from the browser's
  request to the first paint and to the picture.
* Scrubbing, one checkpoint per frame, back and forth through all: gaps between frames, processor
  time of the page's thread per frame (in total, and for scripts only), and the number of requests
  (without those for changes in the store).
* Clicks, on the demo and on transformer A: each head and row of the circuit is switched off and on
  again, from the moment the picture is drawn (while squares are still being requested). Measured is
  the time until the losses on the first and on the second number of examples are drawn, for the
  first click (which waits until the server has loaded the model) and for the others.

Prints a JSON row for each.
"""

import argparse
import statistics
import time
from itertools import pairwise
from typing import Any

from explorer_server import Server, chromium, started
from playwright.sync_api import Browser, Page, ViewportSize
from rows import print_row

DRAWN = """() => { const { state } = globalThis.hopscope ?? {};
return state?.maps && state.contents && document.querySelector(".scene"); }"""
RESTS = "() => !hopscope.live.pending.length"
SIZE: ViewportSize = {"width": 1600, "height": 1100}
PAINTED = """() => ({ paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
drawn: performance.now() })"""
SCRUB = """(rounds) => new Promise((done) => {
  const steps = hopscope.state.steps.length, times = [], all = 2 * rounds * (steps - 1);
  const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const frame = (now) => {
    times.push(now);
    if (times.length > all) return done(times);
    press(Math.floor((times.length - 1) / (steps - 1)) % 2 ? "ArrowRight" : "ArrowLeft");
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""  # noqa: E501

COUNTS = (256, 1024)
"""The numbers of examples on which the page measures losses, one after the other."""
CLICK = """([number, examples]) => new Promise((done, fail) => {
  const { state, live } = hopscope, tags = document.querySelectorAll("#pane-circuit .tag");
  const begun = performance.now(), took = [];
  tags[number].dispatchEvent(new MouseEvent("click", { bubbles: true }));
  if (!state.off.length) return done(null);
  const asked = JSON.stringify(live.question().changes);
  const look = (now) => {
    const fits = state.answer && JSON.stringify(state.answer.changes) === asked;
    if (fits && state.answer.examples >= examples[took.length]) took.push(now - begun);
    if (took.length === examples.length) return done(took);
    if (now - begun > 60_000) return fail(new Error("no losses"));
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=8)
    chosen = parser.parse_args()
    with chromium() as browser:
        page = browser.new_page(viewport=SIZE)
        begun = time.perf_counter()
        with started() as server:
            print_row(paint(page, server, begun))
            print_row(scrub(page, chosen.rounds))
            for model in ("demo", "transformer-a"):
                page = drawn(browser, server, model)
                print_row(clicks(page, model))


def drawn(browser: Browser, server: Server, model: str) -> Page:
    """The page of a gallery model, after it is drawn."""
    page = browser.new_page(viewport=SIZE)
    server.show(page, f"/run/gallery-{model}", DRAWN)
    return page


def paint(page: Page, server: Server, begun: float) -> dict[str, object]:
    """Times from the command, and from the browser's request, to the picture."""
    server.show(page, "/run/gallery-demo", DRAWN)
    from_command = 1_000 * (time.perf_counter() - begun)
    found = page.evaluate(PAINTED)
    return {
        "benchmark": "explorer paint",
        "first_paint_ms": round(found["paint"], 1),
        "drawn_ms": round(found["drawn"], 1),
        "from_command_ms": round(from_command, 1),
    }


def scrub(page: Page, rounds: int) -> dict[str, object]:
    """Scrub through the training, one checkpoint per frame; a row of times and requests."""
    page.wait_for_function(RESTS, timeout=120_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = metrics(session)
    times = page.evaluate(SCRUB, rounds)
    spent = {name: value - before[name] for name, value in metrics(session).items()}
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return {
        "benchmark": "explorer scrub",
        "frames": len(gaps),
        "median_gap_ms": round(statistics.median(gaps), 2),
        "p95_gap_ms": round(statistics.quantiles(gaps, n=20)[-1], 2),
        "over_20_ms": sum(gap > 20 for gap in gaps),
        "script_ms_a_frame": round(1_000 * spent["ScriptDuration"] / len(gaps), 2),
        "task_ms_a_frame": round(1_000 * spent["TaskDuration"] / len(gaps), 2),
        "requests": sum("since=" not in url for url in asked),
    }


def clicks(page: Page, model: str) -> dict[str, object]:
    """Times from a click to new losses; each head or row is switched on again before the next."""
    took = []
    for number in range(page.locator("#pane-circuit .tag").count()):
        took.append(page.evaluate(CLICK, [number, COUNTS]))
        page.evaluate(CLICK, [number, COUNTS])
    row: dict[str, object] = {"benchmark": "explorer clicks", "model": model, "clicks": len(took)}
    for examples, (first, *times) in zip(COUNTS, zip(*took, strict=True), strict=True):
        row[f"first_ms_{examples}"] = round(first)
        row[f"median_ms_{examples}"] = round(statistics.median(times))
        row[f"p95_ms_{examples}"] = round(statistics.quantiles(times, n=20)[-1])
    return row


def metrics(session: Any) -> dict[str, float]:
    """The time that the page's thread has used so far, in seconds, by kind of work."""
    return {
        each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]
    }


if __name__ == "__main__":
    main()
