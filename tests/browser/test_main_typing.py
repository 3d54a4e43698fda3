"""A symbol is typed: the keyboard goes where it should, what is refused leaves nothing behind."""

from pathlib import Path
from typing import Any

import pytest

from hopscope.configs import NgramExperiment, NgramProcess
from hopscope.configs.ngram import Descent
from hopscope.ngram.evaluation import gih
from hopscope.runs import train
from hopscope.store import Store
from hopscope.tasks.rendering import letters
from tests.browser.lookers import SOON, asked, opened, pressed, ready, served, table_of
from tests.browser.test_copier import typed as typed_chain

PLACE = "() => document.activeElement.dataset.place"
WORDS = ".token b"


def edited(page: Any, place: int, text: str) -> None:
    """Type into a position that is opened by a double click."""
    page.locator(".token").nth(place).dblclick()
    page.keyboard.type(text)


def other(page: Any, place: int) -> str:
    """A symbol that stands somewhere else."""
    return "b1" if page.locator(WORDS).nth(place).inner_text() != "b1" else "c1"


def test_the_keyboard_goes_where_it_should(demo: Any, forgiven: list[str]) -> None:
    """Enter stays at the position, Tab leaves for the next, Escape gives up what is typed, and a
    button is pressed right after it.
    """
    forgiven.append("422")  # the browser notes an answer that is no 200
    text = other(demo, 2)
    edited(demo, 2, text)
    assert pressed(demo, "Enter")["tokens"].split()[2] == text
    assert demo.evaluate(PLACE) == "2"
    demo.keyboard.press("Enter")
    assert demo.evaluate("() => document.activeElement.matches('.token input')")
    demo.keyboard.press("Tab")
    assert (demo.evaluate(PLACE), demo.locator(".token input").count()) == ("3", 0)
    demo.keyboard.press("Enter")
    text = other(demo, 4)
    demo.keyboard.type(text)
    assert pressed(demo, "Tab")["tokens"].split()[3] == text
    assert demo.evaluate(PLACE) == "4"
    demo.keyboard.press("Enter")
    demo.keyboard.type("zz")
    demo.keyboard.press("Escape")
    assert (demo.evaluate(PLACE), demo.locator(".token input").count()) == ("4", 0)
    edited(demo, 2, other(demo, 2))
    demo.locator(".example button:text('next')").click(delay=90)
    assert asked(demo) == {"ex": "1"}
    check_what_is_refused(demo)


def check_what_is_refused(page: Any) -> None:
    """It leaves nothing behind, whether it was typed, or came with an address; and the box that is
    open stays open.
    """
    texts = page.locator(WORDS).all_inner_texts()
    edited(page, 2, "zz9")
    page.keyboard.press("Enter")
    edited(page, 5, "b")
    page.wait_for_selector(".error:visible", timeout=SOON)
    ready(page)
    page.keyboard.type("1")
    assert page.input_value(".token[data-place='5'] input") == "b1"
    page.keyboard.press("Escape")
    assert "tokens" not in asked(page)
    assert page.locator(WORDS).all_inner_texts() == texts
    pressed(page, "n")
    page.wait_for_selector(".error", state="hidden")
    tokens = "+".join(["zz9", *texts[1:]])
    page.evaluate("(tokens) => { location.hash = `#/run/gallery-demo?tokens=${tokens}`; }", tokens)
    page.wait_for_selector(".error:visible", timeout=SOON)
    assert "tokens" not in asked(page)
    assert "zz9" in page.inner_text(".error")
    assert page.is_visible(".scene")  # everything else goes on


@pytest.mark.slow
def test_the_box_for_a_sequence_holds_what_the_address_says(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-ngram")
    before = page.input_value(".typed")
    page.evaluate("location.hash += '?tokens=a+b+c+a+b'")
    ready(page)
    assert page.input_value(".typed") == "abcab"
    page.focus(".typed")
    page.go_back()
    ready(page)
    assert page.input_value(".typed") == before
    assert pressed(page, "Control+a", "Backspace") == {"tokens": ""}
    page.reload()
    ready(page)
    assert page.input_value(".typed") == ""
    assert "Got 0 letters" in page.inner_text(".refused")
    page.focus(".typed")
    page.keyboard.insert_text("ab" * 300)
    ready(page)
    assert len(page.input_value(".typed")) == page.locator(".letter").count() - 1 == 400


MANY = NgramExperiment(
    process=NgramProcess(alphabet=30, length=12),
    descent=Descent(stages="CWa", epochs=(3,), chains=8, validation_chains=8, records=2),
)
CHIPS = "(all) => all.map((its) => its.textContent)"


@pytest.mark.slow
def test_more_symbols_than_letters_are_typed_with_spaces(page: Any, tmp_path: Path) -> None:
    train(MANY, Store(tmp_path))
    with served(tmp_path) as site:
        check_many_symbols(page, site)
        page.goto("about:blank")  # asks nothing more of a server that ends


def check_many_symbols(page: Any, site: str) -> None:
    id_ = MANY.run_name().rpartition("-")[2]
    opened(page, site, f"/run/{id_}")
    names = [letters(number) for number in range(30)]
    assert set(page.eval_on_selector_all("#pane-sequence .letter", CHIPS)) <= {*names, "?"}
    typed = ["a", "ba", "b", "bd", "a", "ba", "z", "bd"]
    page.fill(".typed", " ".join(typed))
    ready(page)
    page.reload()
    ready(page)
    assert page.input_value(".typed") == " ".join(typed)
    assert page.eval_on_selector_all("#pane-sequence .letter", CHIPS) == [*typed, "?"]
    chain = typed_chain(MANY.process, [names.index(name) for name in typed])
    (answer,), _ = gih(chain, MANY.model.window, MANY.process.parents)
    rows = [row.split() for row in table_of(page, "sequence").locator("tbody tr").all_inner_texts()]
    assert [name for name, *_ in rows] == [*names, "sequence"]
    heads = [float(head) for *_, head in rows[:-1]]
    assert heads == pytest.approx(answer.tolist(), abs=1e-3)
    page.fill(".typed", "a be")
    page.wait_for_selector(".refused")
    assert "Got “be”; expected at least 4 symbols with spaces" in page.inner_text(".refused")
