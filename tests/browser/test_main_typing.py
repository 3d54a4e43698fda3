"""A symbol is typed: the keyboard goes where it should, what is refused leaves nothing behind."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.configs import InductionModel, MarkovExperiment, MarkovProcess
from hopscope.configs.markov import Descent
from hopscope.runs import train
from hopscope.store import Store
from hopscope.tasks.spelled import letters
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views
from tests.browser.lookers import SOON, asked, opened, served, settled, state

PLACE = "() => document.activeElement.dataset.place"


def edited(page: Any, place: int, text: str) -> str:
    """Type into a position that is opened by a double click; what stood there."""
    token = page.locator(".token").nth(place)
    before = token.locator("b").inner_text()
    token.dblclick()
    page.keyboard.type(text)
    return str(before)


def other(page: Any, place: int) -> str:
    """A symbol that stands somewhere else."""
    before = page.locator(".token b").nth(place).inner_text()
    return "b1" if before != "b1" else "c1"


def test_the_keyboard_stays_at_the_position(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    edited(page, 2, other(page, 2))
    page.keyboard.press("Enter")
    page.wait_for_function("() => hopscope.state.example.tokens")
    settled(page)
    assert page.evaluate(PLACE) == "2"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.matches('.token input')")


def test_tab_leaves_for_the_next_position(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    edited(page, 2, page.locator(".token b").nth(2).inner_text())
    page.keyboard.press("Tab")
    assert page.evaluate(PLACE) == "3"
    assert not page.locator(".token input").count()
    page.keyboard.press("Enter")
    text = other(page, 4)
    page.keyboard.type(text)
    page.keyboard.press("Tab")
    page.wait_for_function("() => hopscope.state.example.tokens")
    settled(page)
    assert state(page, "tokens")[3] == text
    assert page.evaluate(PLACE) == "4"


def test_next_is_taken_right_after_typing(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    edited(page, 2, other(page, 2))
    box = page.locator(".example button:text('next')").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.wait_for_timeout(90)
    page.mouse.up()
    page.wait_for_function("() => hopscope.state.ex === 1")
    settled(page)
    assert state(page, "tokens") is None


def test_a_refusal_leaves_the_next_box_open(
    page: Any, explorer: str, complaints: list[str]
) -> None:
    opened(page, explorer, "/run/gallery-demo")
    before = edited(page, 2, "zz9")
    page.keyboard.press("Enter")
    edited(page, 5, "b")
    page.wait_for_selector(".error:visible", timeout=SOON)
    settled(page)
    page.keyboard.type("1")
    assert page.input_value(".token[data-place='5'] input") == "b1"
    assert page.locator(".token b").nth(2).inner_text() == before
    page.keyboard.press("Escape")
    complaints.clear()  # the browser notes an answer that is no 200


@pytest.mark.parametrize("typed", [True, False])
def test_what_is_refused_is_not_in_the_address(
    page: Any, explorer: str, complaints: list[str], typed: bool
) -> None:
    """Whether it was typed, or came with an address."""
    opened(page, explorer, "/run/gallery-demo")
    texts = page.locator(".token b").all_inner_texts()
    if typed:
        edited(page, 0, "zz9")
        page.keyboard.press("Enter")
    else:
        tokens = "+".join(["zz9", *texts[1:]])
        page.evaluate("(tokens) => { location.hash += `?tokens=${tokens}`; }", tokens)
    page.wait_for_selector(".error:visible", timeout=SOON)
    page.wait_for_function("() => !location.hash.includes('zz9')")
    settled(page)
    assert "zz9" in page.inner_text(".error")
    assert "tokens" not in asked(page)
    assert page.locator(".token b").all_inner_texts() == texts
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.wait_for_selector(".error", state="hidden")
    complaints.clear()  # the browser notes an answer that is no 200


def test_the_box_for_a_sequence_holds_what_the_address_says(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-ngram")
    before = page.input_value(".typed")
    page.evaluate("location.hash += '?tokens=a+b+c+a+b'")
    page.wait_for_function("() => document.querySelector('.typed').value === 'abcab'")
    page.focus(".typed")
    page.go_back()
    page.wait_for_function("() => hopscope.state.tokens === null")
    settled(page)
    assert page.input_value(".typed") == before
    page.keyboard.press("Control+a")
    page.keyboard.press("Backspace")
    page.wait_for_function("() => location.hash.endsWith('?tokens=')")
    page.reload()
    settled(page)
    assert page.input_value(".typed") == ""
    assert "Got 0 letters" in page.inner_text(".refused")


def test_the_box_takes_no_more_letters_than_are_shown(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-ngram")
    page.focus(".typed")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("ab" * 300)
    settled(page)
    assert len(page.input_value(".typed")) == page.locator(".letter").count() - 1 == 400


DESCENT = Descent(stages="CWa", epochs=(3,), chains=8, validation_chains=8, records=2)
MANY = MarkovExperiment(process=MarkovProcess(alphabet=30, length=12), descent=DESCENT)
WIDE = MarkovExperiment(
    process=MarkovProcess(length=60), model=InductionModel(window=45), descent=DESCENT
)
CHIPS = "(all) => all.map((its) => its.textContent)"


@pytest.fixture(scope="module")
def ngrams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Views]]:
    """The address of a server of both n-gram runs, and what it answers from."""
    root: Path = tmp_path_factory.mktemp("ngrams")
    for recipe in (MANY, WIDE):
        train(recipe, Store(root))
    with served(root) as address:
        yield address, Views(Store(root))


def test_more_symbols_than_letters_are_typed_with_spaces(
    page: Any, ngrams: tuple[str, Views]
) -> None:
    site, views = ngrams
    id_ = MANY.run_name().rpartition("-")[2]
    opened(page, site, f"/run/{id_}")
    names = [letters(number) for number in range(30)]
    assert set(page.eval_on_selector_all("#pane-sequence .letter", CHIPS)) <= {*names, "?"}
    assert page.eval_on_selector_all(".predicted .strong", CHIPS) == names
    typed = ["a", "ba", "b", "bd", "a", "ba", "z", "bd"]
    page.fill(".typed", "")
    page.focus(".typed")
    page.keyboard.type(" ".join(typed), delay=20)
    page.wait_for_function("() => hopscope.state.tokens?.length === 8")
    settled(page)
    assert page.input_value(".typed") == " ".join(typed)
    assert page.eval_on_selector_all("#pane-sequence .letter", CHIPS) == [*typed, "?"]
    _, about = unpacked(views.example(id_, ExampleQuestion(tokens=tuple(typed))))
    rows = page.evaluate("async () => (await import('/sequence.js')).answers(hopscope.state).rows")
    assert [name for name, *_ in rows] == [*names, "sequence"]
    assert [head for *_, head in rows[:-1]] == pytest.approx(about["answers"]["gih"], abs=1e-5)
    page.reload()
    settled(page)
    assert page.input_value(".typed") == " ".join(typed)
    page.fill(".typed", "a be")
    page.wait_for_selector(".refused")
    assert page.inner_text(".refused") == (
        "Got “be”; expected at least 4 symbols with spaces between them, each one of a … bd. "
        "Shown is another sequence."
    )


def test_the_sequence_that_nobody_typed_is_longer_than_the_window(
    page: Any, ngrams: tuple[str, Views]
) -> None:
    opened(page, ngrams[0], f"/run/{WIDE.run_name().rpartition('-')[2]}")
    assert page.locator("#pane-sequence .letter").count() - 1 == 65
    assert "NaN" not in page.get_attribute(".predicted svg", "aria-label")
    assert not page.locator(".refused").count()
