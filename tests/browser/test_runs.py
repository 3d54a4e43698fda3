"""The list of runs: its order, and that it is there though nobody looks yet."""

from pathlib import Path
from typing import Any

import pytest
from short import ID

from tests.browser.lookers import TOKEN, at, held, opened, ready

ORDERED = """async ([rows, ...chosen]) => {
  const { runsPane } = await import("/runs.js");
  const state = { run: "", watch() {}, set() {}, mend() {} };
  const made = runsPane(state, { live: false, runs: async () => ({ rows, cursor: "1" }) });
  await made.start();
  for (const [label, value] of chosen) {
    const its = made.element.querySelector(`[aria-label="${label}"]`);
    its.value = value;
    for (const kind of ["input", "change"]) its.dispatchEvent(new Event(kind));
  }
  return [...made.element.querySelectorAll("b, h2")].map((its) => its.textContent);
}"""
TOLD = ORDERED.replace("b, h2", "small")
HIDDEN = """globalThis.away = true;
Object.defineProperty(Document.prototype, "hidden", { get: () => globalThis.away });"""


def row(name: str, date: str) -> dict[str, str]:
    return {"id": name.replace("/", "-"), "name": name, "date": date, "state": "complete"}


def test_runs_stand_in_groups_and_are_sorted(blank: Any) -> None:
    rows = [
        row("old", "2026-01-01") | {"task": "mqar"},
        row("gallery/three-heads", "2026-09-01") | {"task": "retrieval"},
        row("gallery/ngram", "2026-08-01") | {"kind": "ngram"},
        row("new", "2026-12-01") | {"task": "retrieval"},
        row("gallery/planted", "2026-01-01") | {"task": "retrieval"},
        row("demo", "2026-06-01") | {"task": "retrieval"},
        row("gallery/demo", "2026-02-01") | {"task": "retrieval"},
    ]
    usual = blank.evaluate(ORDERED, [rows])
    assert usual[:5] == ["Gallery", "demo", "planted", "ngram", "three-heads"]  # its own order
    assert usual[5:] == ["Mine", "new", "demo", "old"]
    kinds = blank.evaluate(ORDERED, [rows, ["Group runs", "by kind"], ["Sort runs", "name"]])
    assert kinds[:6] == ["retrieval", "demo", "demo", "planted", "three-heads", "new"]
    assert kinds[6:] == ["ngram", "ngram", "mqar", "old"]
    flat = blank.evaluate(ORDERED, [rows, ["Group runs", "ungrouped"]])
    assert flat == [name for name in usual if name not in ("Gallery", "Mine")]


def test_a_row_says_its_state_first_and_counts_many_seeds(blank: Any) -> None:
    """And the search for a seed finds that seed, and no other that begins with its digits."""
    rows = [
        row("a", "2026-01-03") | {"seeds": [1, 2], "state": "training", "task": "mqar"},
        row("b", "2026-01-02") | {"seeds": [*range(64)], "task": "mqar"},
        row("c", "2026-01-01") | {"seeds": [12], "task": "retrieval"},
    ]
    pair, many, one = "training · seed 1 · seed 2 · mqar", "64 seeds · mqar", "seed 12 · retrieval"
    found = {"": [pair, many, one], "seed 12": [many, one], "seed 1 mqar": [pair, many]}
    for words, told in found.items():
        assert blank.evaluate(TOLD, [rows, ["Filter runs", words]]) == told, words


def test_runs_that_differ_in_their_seed_are_told_apart(page: Any, fleet: tuple[str, Path]) -> None:
    opened(page, fleet[0], f"/run/{ID}")
    row = page.locator(f'.run[data-key="{ID}"]')
    assert "seed 4 · seed 9" in row.locator("small").inner_text()
    cut = "(b) => b.scrollWidth - b.clientWidth"
    assert row.locator("b").evaluate(cut) <= 0  # it ends with the hash
    whole = page.locator('.run[title="gallery/transformer-d-fan-in"] b span').first
    assert whole.inner_text() == "transformer-d-fan-in"  # it has no hash
    for words, count in (("seed 9", 1), ("seed 5", 0)):
        page.fill(".runs input", words)
        assert row.count() == count
    at(page, "/run/gallery-planted")
    assert page.inner_text(".bar .about").endswith(" · seed 0")


def test_runs_are_sorted_and_one_that_is_removed_while_it_is_shown_says_so(
    page: Any, explorer: str
) -> None:
    """And before, runs are sorted by their losses: what was not trained has no line."""
    opened(page, explorer)
    page.select_option('[aria-label="Sort runs"]', "loss")
    told = page.locator(".run small").all_inner_texts()
    losses = [float(its.split()[1]) for its in told if its.startswith("loss")]
    assert len(losses) == len(told) - 1
    assert losses == sorted(losses)
    assert page.locator(".runs .spark").count() == len(losses)
    at(page, "/run/gallery-planted")
    gone = {"rows": [], "gone": ["gallery-planted"], "cursor": "x"}
    page.route("**/api/runs?since=*", lambda its: its.fulfill(json=gone), times=1)
    page.wait_for_selector(".error:visible")
    assert page.inner_text(".error span").startswith("this run was removed")
    page.click('.runs a[href="#/run/gallery-demo"]')
    ready(page)
    assert not page.is_visible(".error")


def test_a_page_that_opens_behind_others_is_not_blank(fresh: Any, explorer: str) -> None:
    fresh.add_init_script(HIDDEN)
    opened(fresh, explorer)
    assert fresh.url.endswith("/run/gallery-demo")
    assert fresh.locator(".runs li a").count() > 3
    fresh.evaluate("() => { globalThis.away = false; }")
    ready(fresh)
    assert fresh.is_visible(".scene")


@pytest.mark.slow
@pytest.mark.parametrize("address", ["", "/run/gallery-planted"])
def test_a_server_that_is_gone_for_a_moment_is_asked_again(
    page: Any, explorer: str, forgiven: list[str], address: str
) -> None:
    forgiven.append("ERR_FAILED")
    gone = "**/api/runs*" if not address else "**/api/**"
    page.route(gone, lambda route: route.abort())
    page.goto(f"{explorer}/#token={TOKEN}&{address or '/'}")
    page.wait_for_selector(".error:visible")
    assert page.inner_text(".error span").startswith("the server does not answer")
    page.unroute_all()
    page.wait_for_selector(".error", state="hidden")
    ready(page)
    assert page.url.endswith(address or "/run/gallery-demo")
    assert page.locator(".runs li a").count() > 3


def test_a_server_that_is_gone_while_a_run_is_opened_is_asked_for_the_run_again(
    demo: Any, forgiven: list[str]
) -> None:
    forgiven.append("ERR_FAILED")
    demo.route("**/api/**", lambda route: route.abort())
    with demo.expect_request("**/api/runs?since=*"):
        demo.click('.runs a[href="#/run/gallery-planted"]')
    demo.wait_for_selector(".error:visible")
    with demo.expect_request("**/api/runs?since=*"):
        pass
    demo.unroute_all()
    demo.wait_for_selector(".error", state="hidden")
    demo.wait_for_selector("h1:text('gallery/planted')")


def test_a_run_is_opened_once_though_the_list_comes_later(
    page: Any, explorer: str, requests: list[str]
) -> None:
    listed = held(page, "**/api/runs")
    page.goto(f"{explorer}/#token={TOKEN}&/run/gallery-demo")
    page.wait_for_selector("h1:text('gallery/demo')")
    listed[0].continue_()
    page.wait_for_selector(".run")
    ready(page)
    assert sum(url.endswith("/api/runs/gallery-demo") for url in requests) == 1


def test_a_server_that_is_busy_is_asked_for_the_curves_again(
    page: Any, explorer: str, forgiven: list[str]
) -> None:
    forgiven.append("503")
    busy = {"status": 503, "json": {"error": "busy"}}
    page.route("**/gallery-transformer-a/arrays/losses", lambda its: its.fulfill(**busy), times=1)
    opened(page, explorer, "/run/gallery-demo")
    page.wait_for_selector('.run[data-key="gallery-transformer-a"] .spark')


def test_a_list_that_is_shown_later_or_beside_no_run_has_its_curves(
    page: Any, explorer: str, forgiven: list[str]
) -> None:
    """And without a run there is no tour."""
    page.set_viewport_size({"width": 800, "height": 720})
    opened(page, explorer, "/run/gallery-demo")
    page.keyboard.press("r")
    page.wait_for_selector(".runs .spark")
    ready(page)
    page.set_viewport_size({"width": 1280, "height": 720})
    forgiven.append("404")
    opened(page, explorer, "/run/none")
    page.wait_for_selector(".runs .spark")
    ready(page)
    assert not page.is_visible(".bar button:text('tour')")
