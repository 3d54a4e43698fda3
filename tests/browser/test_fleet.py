"""The maps of every seed: asked for once, and again when the fleet has learned more."""

from pathlib import Path
from typing import Any

from short import ID

from tests.browser.lookers import asked, learned, opened

MAPS = "#pane-fleet .map"
PATH = '[aria-label="Which path"]'


def of(requests: list[str]) -> int:
    return sum(url.endswith("/arrays/fleet") for url in requests)


def test_it_is_asked_again_when_the_run_has_learned(
    page: Any, fleet: tuple[str, Path], requests: list[str]
) -> None:
    opened(page, fleet[0], f"/run/{ID}")
    page.wait_for_selector(MAPS)
    assert (page.locator(MAPS).count(), page.input_value(PATH)) == (2, "key 0 → query")
    page.select_option(PATH, "key 0 → value 0")
    learned(page, ID)  # nothing new
    assert of(requests) == 1
    page.select_option('[aria-label="Seed"]', "9")
    assert asked(page) == {"seed": "9"}
    page.wait_for_selector(MAPS)
    assert page.input_value(PATH) == "key 0 → value 0"
    before = of(requests)
    fewer = {"checkpoints": [0, 5, 10]}
    page.route(f"**/api/runs/{ID}*", lambda its: its.fulfill(json=its.fetch().json() | fewer))
    with page.expect_response("**/arrays/fleet"):
        learned(page, ID)
    page.wait_for_selector(MAPS)
    assert (of(requests), page.locator(MAPS).count()) == (before + 1, 2)
