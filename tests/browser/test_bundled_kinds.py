"""Saved pages of runs of every kind open from a file with the network cut."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.configs import LlmMechanism
from hopscope.errors import ConfigError
from hopscope.store import Store
from hopscope.web.bundle import single
from hopscope.web.carried import QUESTIONS, carried
from hopscope.web.mechanism import Traced
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views
from tests.browser.lookers import SOON, complaints_of_axe
from tests.browser.test_main_states import FOUND, KIND, of_language_models

NGRAM = "gallery-ngram"
SEEN = {"ngram": ".predicted svg", "llm": ".prompt", "mechanism": ".shares"}
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
        name: single(views, id_, folder / f"{name}.html").as_uri() for name, id_ in ids.items()
    }
    return {**pages, "llm id": ids["llm"]}


@pytest.mark.parametrize("name", SEEN)
def test_it_opens_without_a_server(page: Any, saved: dict[str, str], name: str) -> None:
    page.context.set_offline(True)
    page.goto(saved[name])
    page.wait_for_selector(f"{SEEN[name]}:visible", timeout=SOON)
    assert page.evaluate("() => hopscope.state.error") is None
    assert complaints_of_axe(page) == []


def test_the_predictions_of_an_ngram_run_are_the_servers(
    page: Any, saved: dict[str, str], views: Views
) -> None:
    page.goto(saved["ngram"])
    page.wait_for_selector(SEEN["ngram"])
    page.fill(".typed", "abcabcabbcab")
    page.wait_for_function("() => hopscope.state.tokens?.length === 12")
    asked = ExampleQuestion(tokens=tuple("abcabcabbcab"))
    _, about = unpacked(views.example(NGRAM, asked))
    page.wait_for_function("() => !hopscope.state.waiting")
    told = page.get_attribute(SEEN["ngram"], "aria-label")
    mine = [
        [float(number) for number in re.findall(r"\d[\d.e-]*", its)] for its in told.split(", ")
    ]
    wanted = zip(about["answers"]["model"], about["answers"]["gih"], strict=True)
    for numbers, its in zip(mine, wanted, strict=True):
        assert numbers == pytest.approx(its, abs=1e-3)


def test_a_benchmark_carries_its_first_questions(page: Any, saved: dict[str, str]) -> None:
    page.goto(saved["llm"])
    page.wait_for_selector(SEEN["llm"])
    page.evaluate("(ex) => hopscope.state.set({ ex })", QUESTIONS - 1)
    page.wait_for_function(
        "(text) => document.querySelector('#pane-question .hint').textContent.includes(text)",
        arg=f"number {QUESTIONS - 1} of 30; this page has the first {QUESTIONS}",
    )
    assert page.locator("#pane-question button:text('next')").is_disabled()
    page.evaluate("(ex) => hopscope.state.set({ ex })", QUESTIONS)
    page.wait_for_selector(".error:visible")
    said = page.inner_text(".error span")
    assert said == (
        f'this page has no question {QUESTIONS} of kind "{KIND.label}": it has the first '
        f"{QUESTIONS} of {KIND.label}"
    )
    page.wait_for_function("(ex) => hopscope.state.ex === ex", arg=QUESTIONS - 1)


def test_the_last_question_is_not_passed(page: Any, saved: dict[str, str]) -> None:
    page.goto(saved["llm"] + f"#/run/{saved['llm id']}?ex={QUESTIONS - 1}")
    page.wait_for_selector(SEEN["llm"])
    for _ in range(2):
        page.keyboard.press("n")
        page.wait_for_selector(".error:visible")
        page.wait_for_function("(ex) => hopscope.state.ex === ex", arg=QUESTIONS - 1)
        page.wait_for_function("() => !hopscope.state.waiting")
        assert f"no question {QUESTIONS} of" in page.inner_text(".error span")
    page.click("#pane-question button:text('‹')")
    page.wait_for_selector(".error", state="hidden")
    assert f"number {QUESTIONS - 2} of 30" in page.inner_text("#pane-question .hint")


def test_an_address_past_the_last_question_shows_the_first(
    page: Any, saved: dict[str, str]
) -> None:
    page.goto(saved["llm"] + f"#/run/{saved['llm id']}?ex={QUESTIONS}")
    page.wait_for_selector(SEEN["llm"])
    assert "number 0 of 30" in page.inner_text("#pane-question .hint")
    assert f"no question {QUESTIONS} of" in page.inner_text(".error span")


def test_a_kind_of_question_that_the_run_has_not_is_not_asked(
    page: Any, saved: dict[str, str]
) -> None:
    page.goto(saved["llm"])
    page.wait_for_selector(SEEN["llm"])
    page.evaluate("() => hopscope.state.set({ asked: 'x1', ex: 1 })")
    page.wait_for_function(
        "(text) => document.querySelector('#pane-question .hint').textContent.startsWith(text)",
        arg=f"{KIND.label}, number 1 of",
    )
    assert page.evaluate("() => hopscope.state.error") is None


def test_a_mechanism_that_is_not_all_measured_has_no_page(tmp_path: Path) -> None:
    views = Views(Store(tmp_path / "runs"))
    begun = views.store.create(LlmMechanism(model="y", prompts=KIND))
    with pytest.raises(ConfigError, match="has nothing to show before all of it is measured"):
        carried(views, begun.name.rpartition("-")[2])
