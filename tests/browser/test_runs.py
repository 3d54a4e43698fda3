"""The list of runs: its order, and that it is there though nobody looks yet."""

from typing import Any

import pytest

from tests.browser.lookers import TOKEN, opened, ready

ORDERED = """async (rows) => {
  const { runsPane } = await import("/runs.js");
  const state = { run: "", watch() {}, set() {} };
  const made = runsPane(state, { live: false, runs: async () => ({ rows, cursor: "1" }) });
  await made.start();
  return [...made.element.querySelectorAll("b")].map((its) => its.textContent);
}"""
HIDDEN = """globalThis.away = true;
Object.defineProperty(Document.prototype, "hidden", { get: () => globalThis.away });"""


def row(name: str, date: str) -> dict[str, str]:
    return {"id": name.replace("/", "-"), "name": name, "date": date, "state": "complete"}


def test_the_gallery_has_its_order_and_the_store_goes_by_date(page: Any, site: str) -> None:
    page.goto(f"{site}/blank")
    rows = [
        row("old", "2026-01-01"),
        row("gallery/three-heads", "2026-09-01"),
        row("gallery/ngram", "2026-08-01"),
        row("new", "2026-12-01"),
        row("gallery/planted", "2026-01-01"),
        row("demo", "2026-06-01"),
        row("gallery/figure-5", "2026-07-01"),
        row("gallery/demo", "2026-02-01"),
    ]
    assert page.evaluate(ORDERED, rows) == [
        *("gallery/demo", "gallery/planted", "gallery/ngram"),
        *("gallery/three-heads", "gallery/figure-5"),
        *("new", "demo", "old"),
    ]


def test_a_page_that_opens_behind_others_is_not_blank(page: Any, explorer: str) -> None:
    page.add_init_script(HIDDEN)
    opened(page, explorer)
    assert page.url.endswith("/run/gallery-demo")
    assert page.locator(".runs li a").count() > 3
    page.evaluate("() => { globalThis.away = false; }")
    ready(page)
    assert page.is_visible(".scene")


@pytest.mark.slow
@pytest.mark.parametrize("address", ["", "/run/gallery-planted"])
def test_a_server_that_is_gone_for_a_moment_is_asked_again(
    page: Any, explorer: str, complaints: list[str], address: str
) -> None:
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
    assert all("ERR_FAILED" in line for line in complaints)
    complaints.clear()
