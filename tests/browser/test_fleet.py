"""The maps of every seed: asked for once, and again when the fleet has learned more."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from short import FLEET, ID

from hopscope.store import Store
from hopscope.study import load
from hopscope.web.bundle import write_page
from hopscope.web.views import Views
from tests.browser.lookers import asked, at, bars, learned, opened, ready

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
    assert asked(page) == {"seed": "9", "path": "key 0 → value 0"}
    page.wait_for_selector(MAPS)
    assert page.input_value(PATH) == "key 0 → value 0"
    before = of(requests)
    fewer = {"checkpoints": [0, 5, 10]}
    page.route(f"**/api/runs/{ID}*", lambda its: its.fulfill(json=its.fetch().json() | fewer))
    with page.expect_response("**/arrays/fleet"):
        learned(page, ID)
    page.wait_for_selector(MAPS)
    assert (of(requests), page.locator(MAPS).count()) == (before + 1, 2)


def test_the_chosen_path_is_in_the_address(page: Any, fleet: tuple[str, Path]) -> None:
    opened(page, fleet[0], f"/run/{ID}")
    page.wait_for_selector(MAPS)
    assert "at the last checkpoint" in page.inner_text(".fleet .hint")
    page.wait_for_selector(".runs small:text(' of seed 4 · ')")  # the loss is not that of all
    page.select_option(PATH, "key 0 → value 0")
    assert asked(page) == {"path": "key 0 → value 0"}
    page.reload()
    page.wait_for_selector(MAPS)
    assert page.input_value(PATH) == "key 0 → value 0"
    page.go_back()
    ready(page)
    assert page.input_value(PATH) == "key 0 → query"
    for wrong in ("key 0 → key 0", "key 7 → query"):
        at(page, f"/run/{ID}?path={quote(wrong)}")
        assert f"path={wrong}" in page.inner_text(".error")
        assert (asked(page), page.input_value(PATH)) == ({}, "key 0 → query")


def test_a_saved_page_opens_at_its_step_with_the_losses_of_its_model(
    page: Any, fleet: tuple[str, Path], tmp_path: Path
) -> None:
    file = write_page(Views(Store(fleet[1])), ID, tmp_path / "page.html", seed=9, step=5)
    page.goto(file.as_uri())
    assert asked(page) == {"step": "5"}
    steps, losses = load(FLEET.run_name(), store=fleet[1]).run.losses("validation")
    assert bars(page) == pytest.approx(losses[steps == 5, 1][0].tolist())
    said = page.get_attribute(".circuit .foot .line:not(.python) code", "title")
    assert said == f"hopscope circuit {FLEET.run_name()} --seed 9"
    said = page.get_attribute(".losses .foot .line:not(.python) code", "title")
    assert "seed = 9 and" in said
