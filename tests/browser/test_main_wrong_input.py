"""What the page makes of addresses and input that do not fit: a line, and never an empty page."""

from pathlib import Path
from typing import Any

import pytest

from hopscope.store import Store
from hopscope.web.frame import Frame
from hopscope.web.token import Once
from tests.browser.lookers import TOKEN, asked, opened, served, settled


@pytest.mark.parametrize("pane", ["foo", "fleet"])
def test_a_pane_that_the_run_does_not_have_hides_no_other(
    page: Any, explorer: str, pane: str
) -> None:
    opened(page, explorer, f"/run/gallery-demo?pane={pane}")
    assert page.is_visible(".scene")
    assert page.is_visible(".tokens")


def test_an_address_with_a_token_may_be_pasted_into_an_open_page(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-planted")
    with page.expect_navigation():
        page.evaluate(f"location.hash = '#token={TOKEN}&/run/gallery-demo?step=600'")
    settled(page)
    assert page.url.endswith("#/run/gallery-demo?step=600")


def test_an_address_opens_one_tab(page: Any, tmp_path: Path) -> None:
    """What the browser keeps in its history opens no other."""
    once = Once(TOKEN)
    with served(tmp_path / "runs", once) as address:
        url = f"{address}/#once={once.word}&/run/gallery-planted"
        page.goto(url)
        settled(page)
        assert page.url == f"{address}/#/run/gallery-planted"
        page.reload()
        settled(page)
        other = page.context.new_page()
        other.goto(url)
        other.wait_for_selector(".error:visible")
        assert "open the newest address that hopscope printed" in other.inner_text(".error")


def test_the_mark_leads_to_the_first_run(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-planted")
    page.click(".mark")
    page.wait_for_function("() => hopscope.state.about.name === 'gallery/demo'")
    settled(page)
    assert page.url.endswith("#/run/gallery-demo")


@pytest.mark.parametrize("link", [".mark", ".runs li a"])
def test_in_a_notebook_a_link_stays_in_the_frame(page: Any, tmp_path: Path, link: str) -> None:
    shown = Frame("gallery/ngram", Store(tmp_path))
    page.set_content(f"<!doctype html><title>notebook</title>{shown._repr_html_()}")
    (frame,) = page.main_frame.child_frames
    frame.wait_for_function("() => globalThis.hopscope?.state.values")
    frame.evaluate("() => { globalThis.first = true; hopscope.state.set({ step: 2000 }); }")
    frame.evaluate("(link) => document.querySelector(link).click()", link)
    frame.wait_for_function("() => globalThis.first && hopscope.state.step === null")
    frame.wait_for_function("() => hopscope.state.run === 'gallery-ngram'")
    assert frame.url == "about:srcdoc"


def test_a_head_that_is_not_there_is_said_where_it_was_typed(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    for typed, said in (("9.9", "This run has no head and no path called 9.9."), ("1.2", "")):
        page.fill(".find", typed)
        page.press(".find", "Enter")
        assert page.eval_on_selector(".find", "(box) => box.validationMessage") == said
    settled(page)
    assert asked(page)["head"] == "1.2"


@pytest.mark.parametrize(
    ("typed", "said"),
    [("abcx", "Got “x”"), ("ab", "Got 2 letters"), ("", "Got 0 letters"), ("ABC abc ab", "")],
)
def test_a_sequence_that_is_none_is_said(page: Any, explorer: str, typed: str, said: str) -> None:
    opened(page, explorer, "/run/gallery-ngram")
    page.fill(".typed", "abcabc")
    page.fill(".typed", typed)
    settled(page)
    told = page.locator(".refused").all_inner_texts()
    assert [said in each for each in told] == [True] * bool(said)
    letters = page.locator(".letter").count() - 1
    assert letters == (36 if said else len(typed.replace(" ", "")))


def test_who_types_a_sequence_keeps_the_keyboard(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-ngram")
    page.fill(".typed", "")
    page.focus(".typed")
    for letter in "abcab":
        page.keyboard.press(letter)
        settled(page)
    assert page.input_value(".typed") == "abcab"
    assert page.locator(".letter").count() - 1 == 5


def test_views_of_the_gallery_cannot_be_kept(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    assert page.is_disabled("text=keep")


def test_what_is_half_typed_is_given_up(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?pane=heads")
    page.keyboard.press("/")
    page.keyboard.type("1.2")
    page.keyboard.press("Escape")
    settled(page)
    assert asked(page) == {"pane": "heads"}
    assert page.input_value(".find") == ""
    assert page.evaluate("() => document.activeElement === document.body")


@pytest.mark.parametrize("way", ["Tab", "mouse"])
def test_a_search_for_nothing_can_be_left(page: Any, explorer: str, way: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.keyboard.press("/")
    page.keyboard.type("zz")
    if way == "Tab":
        page.keyboard.press("Tab")
    else:
        page.click(".heads h2")
    settled(page)
    assert not page.evaluate("() => document.activeElement.matches('.find')")
    page.keyboard.press("Home")
    page.wait_for_function("() => hopscope.state.step === 0")


def test_the_same_head_is_found_twice(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo")
    page.keyboard.press("/")
    page.keyboard.type("1.2")
    for _ in range(2):
        page.focus(".find")
        page.keyboard.press("Enter")
        page.wait_for_function("() => hopscope.state.head === '1.2'")
        page.click('.map[data-head="1.2"]')
        page.wait_for_function("() => hopscope.state.head === ''")
