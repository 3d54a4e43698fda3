"""Saved pages of runs of every kind open from a file with the network cut."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from language import FOUND, KIND, SPEECHLESS, benchmark

from hopscope.configs import LmCircuit
from hopscope.errors import ConfigError
from hopscope.store import Store
from hopscope.web.bundle import write_page
from hopscope.web.carried import QUESTIONS, carried
from hopscope.web.mechanism import Traced
from hopscope.web.views import Views
from tests.browser.lookers import SOON, asked, complaints_of_axe, pressed, table_of
from tests.browser.test_main_seen import of_language_models

NGRAM = "gallery-ngram"
SEEN = {"ngram": ".predicted svg", "lm": ".prompt", "mechanism": ".shares"}
"""What is there when a saved page is drawn."""


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Views]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Traced, "findings", lambda _: FOUND)
        yield Views(Store(tmp_path_factory.mktemp("kinds") / "runs"))


@pytest.fixture(scope="module")
def saved(views: Views, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The address of a saved page of each kind."""
    runs = of_language_models(views.store)
    ids = {name: folder.name.rpartition("-")[2] for name, folder in runs.items()}
    ids["ngram"], folder = NGRAM, tmp_path_factory.mktemp("saved")
    pages = {
        name: write_page(views, id_, folder / f"{name}.html").as_uri() for name, id_ in ids.items()
    }
    return {**pages, "lm id": ids["lm"]}


@pytest.mark.parametrize("name", SEEN)
def test_it_opens_without_a_server(page: Any, saved: dict[str, str], name: str) -> None:
    page.context.set_offline(True)
    page.goto(saved[name])
    page.wait_for_selector(f"{SEEN[name]}:visible", timeout=SOON)
    assert not page.is_visible(".error")
    assert complaints_of_axe(page) == []


def test_a_benchmark_carries_its_first_questions(page: Any, saved: dict[str, str]) -> None:
    """No question follows the last; an address beyond it shows a line, and the first question."""
    hint, last = "#pane-question .hint", QUESTIONS - 1
    page.goto(saved["lm"] + f"#/run/{saved['lm id']}?ex={last}")
    text = f"number {last} of 30; this page has the first {QUESTIONS}"
    page.wait_for_selector(f"{hint} :text('{text}')")
    assert page.locator("#pane-question button:text('next')").is_disabled()
    assert pressed(page, "n") == {"ex": str(last)}
    page.click("#pane-question button:text('‹')")
    page.wait_for_selector(f"{hint} :text('number {last - 1} of 30')")
    page.goto("about:blank")
    page.goto(saved["lm"] + f"#/run/{saved['lm id']}?ex={QUESTIONS}")
    page.wait_for_selector(f"{hint} :text('number 0 of 30')")
    assert page.inner_text(".error span").endswith(f": ex={QUESTIONS}")
    assert asked(page) == {}


def test_words_that_cannot_be_right_are_shown(page: Any, views: Views, tmp_path: Path) -> None:
    """And an accuracy that could not be measured is an empty cell."""
    folder = benchmark(views.store, SPEECHLESS, kinds=(KIND,), protocol="greedy")
    page.goto(write_page(views, folder.name.rpartition("-")[2], tmp_path / "greedy.html").as_uri())
    page.wait_for_selector("#pane-question .prompt:visible", timeout=SOON)
    told = page.inner_text("#pane-question")
    assert "It said: what?" in told
    assert "No answer that could be right. True: " in told
    assert "the chance that it is right" not in told
    assert table_of(page, "lm").locator("tbody tr").count() == 1


def test_a_mechanism_that_is_not_all_measured_has_no_page(tmp_path: Path) -> None:
    views = Views(Store(tmp_path / "runs"))
    begun = views.store.create(LmCircuit(model="y", prompts=KIND))
    with pytest.raises(ConfigError, match="cannot be shown before it is complete"):
        carried(views, begun.name.rpartition("-")[2])
